"""Pages of classifiers: train one, watch it, see what it is worth, let it judge."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.forms import RUBRIC_CHOICES
from corpus.models import Stimulus
from reports.classifier_forms import ClassifierForm
from reports.classifier_selectors import Compared, classifiers_of, comparison_of, figures_of
from reports.classifying import same_person
from scoring.classifiers import recipes
from scoring.classifiers.applying import application_create
from scoring.classifiers.arrival import arrival_of, arrival_switch, arrived_count, judged_last, judging_stop
from scoring.classifiers.jobs import is_held, job_cancel, jobs_held
from scoring.classifiers.problems import ClassifierError, problem_text
from scoring.classifiers.services import classifier_create, classifier_restart, held_out_choose, split_ensure
from scoring.classifiers.study_data import judged_criteria, rubrics_labelled
from scoring.models import UNFINISHED, Application, Classifier, Criterion, JobState, Rubric
from scoring.services import RUBRICS, paper_rubric
from studies.access import SignedIn, unblinded_study
from studies.models import Study

PAGE_SIZE = 50


@login_required
@require_safe
def classifier_list(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    page = Paginator(classifiers_of(study), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "study": study,
        "page": page,
        "comparisons": _comparisons(study),
        "moving": any(one.state in UNFINISHED for one in page),
    }
    return render(request, "reports/classifier_list.html", context)


def _comparisons(study: Study) -> list[tuple[str, list[Criterion], list[Compared]]]:
    """What the criteria are, where there are several rubrics; they; and the classifiers that judge by them."""
    rubrics = list(Rubric.objects.filter(classifiers__study=study, classifiers__state=JobState.FINISHED).distinct())
    found = []
    for rubric in sorted(rubrics, key=lambda one: one.pk):
        criteria = judged_criteria(rubric)
        lines = [line for line in comparison_of(study, criteria) if line.classifier.rubric_id == rubric.pk]
        found.append((_name(rubric) if len(rubrics) > 1 else "", criteria, lines))
    return found


def _name(rubric: Rubric) -> str:
    return str(dict(RUBRIC_CHOICES).get(rubric.slug, rubric.title))


@login_required
@require_http_methods(["GET", "POST"])
def classifier_new(request: SignedIn, slug: str) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    rubric, others = _rubric(request, study)
    form = ClassifierForm(request.POST or None, criteria=judged_criteria(rubric))
    if request.method == "POST" and form.is_valid():
        try:
            classifier = _create(request, study, form)
        except ClassifierError as error:
            form.add_error(None, str(error))
        else:
            return redirect("classifier", slug, classifier.pk)
    context = {
        "study": study,
        "form": form,
        "rubric_name": _name(rubric),
        "others": [(other.slug, _name(other)) for other in others],
    }
    return render(request, "reports/classifier_new.html", context)


def _rubric(request: SignedIn, study: Study) -> tuple[Rubric, list[Rubric]]:
    """The one asked for, else the first in which the study has labels; and the others that have some."""
    labelled = rubrics_labelled(study)
    wanted = request.GET.get("rubric", "")
    known = {rubric.slug: rubric for rubric in labelled}
    if wanted in known:
        chosen = known[wanted]
    elif wanted in RUBRICS:
        chosen = RUBRICS[wanted]()
    else:
        chosen = labelled[0] if labelled else paper_rubric()
    return chosen, [rubric for rubric in labelled if rubric != chosen]


def _create(request: SignedIn, study: Study, form: ClassifierForm) -> Classifier:
    chosen = form.cleaned_data
    criteria = list(chosen["criteria"])
    split = split_ensure(
        study=study,
        rubric=criteria[0].rubric,
        same_person=same_person(study),
        seed=chosen["split_seed"],
        actor=request.user,
    )
    stimuli = Stimulus.objects.filter(instrument__study=study, is_practice=False).values_list("pk", flat=True)
    return classifier_create(
        split=split,
        criteria=criteria,
        recipe=chosen["recipe"],
        base_model=chosen["base_model"] if chosen["recipe"] != recipes.BASELINE else "",
        seed=chosen["seed"],
        parameters=form.parameters(),
        held_out=held_out_choose(list(stimuli), n=chosen["hold_out"], seed=chosen["seed"]),
        title=chosen["title"],
        actor=request.user,
    )


def _classifier(study: Study, pk: int) -> Classifier:
    return get_object_or_404(classifiers_of(study), pk=pk)


@login_required
@require_safe
def classifier(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    shown = _classifier(study, pk)
    application = shown.applications.order_by("-pk").first()
    trains = list(shown.split.sides.values_list("trains", flat=True))
    context = {
        "study": study,
        "classifier": shown,
        "criteria": list(shown.criteria.order_by("position")),
        "problem": problem_text(shown.problem, shown.problem_detail),
        "application": application,
        "application_problem": application and problem_text(application.problem, application.problem_detail),
        "moving": shown.state in UNFINISHED or (application is not None and application.state in UNFINISHED),
        "is_left": _is_left(shown) or (application is not None and _is_left(application)),
        "figures": figures_of(shown) if shown.state == JobState.FINISHED else [],
        "n_train": sum(trains),
        "n_test": len(trains) - sum(trains),
        "limit": recipes.LIMITS[shown.recipe],
        **(_arrival(shown) if shown.state == JobState.FINISHED else {}),
    }
    return render(request, "reports/classifier.html", context)


def _is_left(job: Classifier | Application) -> bool:
    """Whether it is in the hands of a worker that has died."""
    return job.state == JobState.RUNNING and not is_held(jobs_held(type(job)), job.pk)


def _arrival(shown: Classifier) -> dict[str, Any]:
    """What the page says of new answers. Three queries."""
    arrival = arrival_of(shown)
    return {
        "arrival": arrival,
        "is_on": arrival.is_on and not arrival.gives_up,  # a worker writes it down at its next look
        "arrival_problem": problem_text(arrival.problem, arrival.detail),
        "n_waiting": arrived_count(shown),
        "judged_last": judged_last(shown),
    }


@login_required
@require_POST
def classifier_stop(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    shown = _classifier(unblinded_study(request.user, slug), pk)
    if job_cancel(job=shown, actor=request.user):
        messages.success(request, _("Stopped. Nothing of this training is kept."))
    elif judging_stop(classifier=shown, actor=request.user):
        was_on = shown.arrival_since is not None
        also = _("Stopped. What it has judged stays. New answers are not judged by themselves any more.")
        messages.success(request, also if was_on else _("Stopped. What it has judged stays."))
    return redirect("classifier", slug, pk)


@login_required
@require_POST
def classifier_arrival(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Judge new answers as they come, or only when asked."""
    shown = _classifier(unblinded_study(request.user, slug), pk)
    try:
        arrival_switch(classifier=shown, actor=request.user, on=request.POST.get("on") == "1")
    except ClassifierError as error:
        messages.error(request, str(error))
    return redirect("classifier", slug, pk)


@login_required
@require_POST
def classifier_again(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    shown = _classifier(unblinded_study(request.user, slug), pk)
    classifier_restart(classifier=shown, actor=request.user)
    return redirect("classifier", slug, pk)


@login_required
@require_POST
def classifier_judge(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    shown = _classifier(unblinded_study(request.user, slug), pk)
    try:
        application_create(classifier=shown, actor=request.user)
    except ClassifierError as error:
        messages.error(request, str(error))
    return redirect("classifier", slug, pk)

"""Pages of a researcher: models, experiments, runs, calls. Whatever shows replies is closed to one who is rating."""

import uuid
from collections import Counter
from decimal import Decimal
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from corpus.checks import finding_text
from corpus.models import Stimulus
from corpus.services import InstrumentIncompleteError
from llmruns.accounts import model_rows, repetitions_of
from llmruns.addresses import AddressRefusedError
from llmruns.catalogue import entry_get, model_initial
from llmruns.credentials import CredentialUnusableError
from llmruns.estimate import estimates_of, totals
from llmruns.forms import ADDRESS_ERRORS, ExperimentForm, ModelConfigForm
from llmruns.keys import KeyMissingError
from llmruns.models import Experiment, ModelConfig
from llmruns.money_forms import CAP_PROBLEMS, CapForm
from llmruns.overview import experiment_overview, runs_like
from llmruns.parameters import refused_parameters
from llmruns.replay_shown import import_shown
from llmruns.selectors import (
    config_rows,
    experiments_of,
    reported_models,
    run_rows,
)
from llmruns.services import (
    RESUMABLE,
    ExperimentRefusedError,
    LabelTakenError,
    NotResumableError,
    ReplayedModelError,
    experiment_cancel,
    experiment_launch,
    experiment_resume,
    model_config_create,
    model_try,
    paper_prompt_text,
    prompt_ensure,
)
from llmruns.states import GOING, RUN_COUNTS
from llmruns.wording import CREDENTIAL_PROBLEMS, kind_words, remedy
from studies.access import research_study, unblinded_study
from studies.models import Study, User


def missing_key(error: KeyMissingError) -> str:
    if isinstance(error, CredentialUnusableError):
        return _("The stored key “%(name)s” cannot be used: %(reason)s. Nothing was sent.") % {
            "name": error.name,
            "reason": CREDENTIAL_PROBLEMS[error.reason],
        }
    return _(
        "The environment variable %(name)s is not set, or holds what cannot be a key: a key is one line of Latin "
        "letters, digits and signs. Set it for the web server and the workers and restart them. Nothing was sent."
    ) % {"name": error.name}


@login_required
@require_safe
def model_list(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    return render(request, "llmruns/model_list.html", {"study": study, "rows": config_rows(study)})


@login_required
@require_http_methods(["GET", "POST"])
def model_new(request: HttpRequest, slug: str) -> HttpResponse:
    """?entry=… begins with what the catalogue knows of a model."""
    study = research_study(request.user, slug)
    number = _whole(request.GET.get("entry", ""))
    entry = entry_get(study=study, pk=number) if number is not None else None
    form = ModelConfigForm(request.POST or None, study=study, initial=model_initial(entry) if entry else {})
    if request.method == "POST" and form.is_valid():
        fields = {name: form.cleaned_data[name] for name in ModelConfigForm.Meta.fields}
        try:
            config = model_config_create(study=study, actor=_person(request), **fields)
        except LabelTakenError:
            form.add_error("label", _("The study has a model of this name."))
        except CredentialUnusableError:  # retired in the meantime
            form.add_error("credential", _("This key has been retired."))
        else:
            messages.success(
                request, _("“%(label)s” is added. Try it out before you launch.") % {"label": config.label}
            )
            return redirect("model_list", slug)
    return render(request, "llmruns/model_new.html", {"study": study, "form": form, "entry": entry})


@login_required
@require_POST
def model_try_out(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    config = get_object_or_404(ModelConfig, study=study, pk=pk)
    try:
        call = model_try(config=config, actor=_person(request))
    except ReplayedModelError:
        messages.error(request, _("This model cannot be asked: its replies were recorded elsewhere."))
        return redirect("model_list", slug)
    return redirect("call_detail", slug, call.pk)


def _has_models(study: Study) -> bool:
    """Whether there is a model that can be asked. One query."""
    return ModelConfig.objects.filter(study=study).exclude(provider=ModelConfig.Provider.REPLAYED).exists()


@login_required
@require_safe
def experiment_list(request: HttpRequest, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    page = Paginator(experiments_of(study), 50).get_page(request.GET.get("page"))
    context = {"study": study, "page": page, "has_models": _has_models(study)}
    return render(request, "llmruns/experiment_list.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def experiment_new(request: HttpRequest, slug: str) -> HttpResponse:
    """Two steps: the choice, and what exactly it comes to. Only the second one launches."""
    study = research_study(request.user, slug)
    if request.method == "GET":
        form = ExperimentForm(study=study, initial={"launch_key": uuid.uuid4()})
        return _experiment_form(request, study, form)
    form = ExperimentForm(request.POST, study=study)
    if not form.is_valid() or request.POST.get("step") == "change":
        return _experiment_form(request, study, form)
    if request.POST.get("step") != "launch":
        return _experiment_confirm(request, study, form)
    data = form.cleaned_data
    try:
        experiment = experiment_launch(
            study=study,
            instrument=data["instrument"],
            prompt=data["prompt"] or prompt_ensure(study=study, actor=_person(request)),
            configs=list(data["configs"]),
            actor=_person(request),
            title=data["title"],
            runs=data["runs"],
            max_attempts=data["max_attempts"],
            deadline=60 * (data["deadline"] or 15),
            launch_key=data["launch_key"],
            cap=data["cap"],
            currency=data["currency"],
        )
    except ExperimentRefusedError as error:
        form.add_error("cap", _refused_words(error))
        return _experiment_form(request, study, form)
    except KeyMissingError as error:
        form.add_error("configs", missing_key(error))
        return _experiment_form(request, study, form)
    except AddressRefusedError as error:
        form.add_error("configs", str(ADDRESS_ERRORS[error.reason]))
        return _experiment_form(request, study, form)
    except InstrumentIncompleteError as error:
        form.add_error("instrument", [finding_text(problem) for problem in error.problems])
        return _experiment_form(request, study, form)
    return redirect("experiment_detail", slug, experiment.pk)


def _refused_words(error: ExperimentRefusedError) -> str:
    if error.reason != "uncappable":
        return _("An amount above zero, in one of the currencies.")
    found = [f"{config.label}: {CAP_PROBLEMS[reason]}" for config, reason in error.uncappable]
    return _("A cap is not possible with these models.") + " " + "; ".join(found)


def _experiment_form(request: HttpRequest, study: Study, form: ExperimentForm) -> HttpResponse:
    context = {
        "study": study,
        "form": form,
        "prompt_text": paper_prompt_text(),
        "has_models": _has_models(study),
    }
    return render(request, "llmruns/experiment_new.html", context)


def _experiment_confirm(request: HttpRequest, study: Study, form: ExperimentForm) -> HttpResponse:
    data = form.cleaned_data
    configs = list(data["configs"])
    stimuli = Stimulus.objects.filter(instrument=data["instrument"], is_practice=False)
    each = stimuli.count() * data["runs"]
    hosts = Counter(urlsplit(config.base_url).netloc for config in configs)
    first = stimuli.order_by("position").first()
    prompt_text = data["prompt"].text if data["prompt"] else paper_prompt_text()
    estimates = estimates_of(
        configs,
        prompt=prompt_text,
        stimuli=[stimulus.text for stimulus in stimuli],
        runs=data["runs"],
        max_attempts=data["max_attempts"],
        currency=data["currency"] if data["cap"] else "",
    )
    uncappable = [(one.config, one.cap_reason) for one in estimates if one.cap_reason]
    if data["cap"] and uncappable:
        form.add_error("cap", _refused_words(ExperimentRefusedError("uncappable", uncappable)))
        return _experiment_form(request, study, form)
    context = {
        "study": study,
        "form": form,
        "configs": configs,
        "stimuli": stimuli.count(),
        "least": each * len(configs),
        "most": each * len(configs) * data["max_attempts"],
        "hosts": [(host, each * number, each * number * data["max_attempts"]) for host, number in hosts.items()],
        "example": prompt_text.replace("{words}", first.text) if first else prompt_text,
        "data": data,
        "estimates": [(one, CAP_PROBLEMS.get(one.cap_reason, "")) for one in estimates],
        "expected": totals(
            [(one.price.currency, one.expected) for one in estimates if one.price and one.expected is not None]
        ),
        "expected_is_whole": all(one.expected is not None for one in estimates),
        "bounded": totals([(one.most.currency, one.most.value) for one in estimates if one.most.value is not None]),
        "bounded_is_whole": all(one.most.value is not None for one in estimates),
    }
    return render(request, "llmruns/experiment_confirm.html", context)


def _experiment(study: Study, pk: int) -> Experiment:
    experiments = Experiment.objects.select_related("instrument", "prompt", "study").annotate(**RUN_COUNTS)
    return get_object_or_404(experiments, study=study, pk=pk)


@login_required
@require_safe
def experiment_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Counts only, so that a researcher who is rating can still see that money is being spent, and stop it."""
    study = research_study(request.user, slug)
    experiment = _experiment(study, pk)
    progress = experiment_overview(experiment, request.GET.get("page"))
    reported = reported_models(experiment)
    accounts = progress.accounts
    # What stands outside the part that moves is left out when only that part is asked for.
    repetitions = {} if request.headers.get("HX-Request") else repetitions_of(experiment)
    context = {
        "study": study,
        "experiment": experiment,
        "progress": progress,
        "reported": [(config, reported[config.pk]) for config in progress.configs if config.pk in reported],
        "accounts": accounts,
        "models": model_rows(progress.configs, accounts, repetitions),
        "page": progress.page,
        "runs": progress.rows,
        "repeating": [found for found in repetitions.values() if found.is_suspicious],
        "paused": experiment.state == Experiment.State.PAUSED,
        "problem_words": kind_words(experiment.problem),
        "problem_remedy": remedy(experiment.problem),
        "cap_form": CapForm.of(experiment.cap) if experiment.cap is not None else None,
        "over": max(Decimal(0), experiment.spent - (experiment.cap or experiment.spent)),
        "different": any(one.difference == "different" for found in reported.values() for one in found),
        "running": experiment.state == Experiment.State.RUNNING,
        "moving": bool(progress.in_flight) or (experiment.state == Experiment.State.RUNNING and progress.going > 0),
        "to_cancel": progress.unfinished,
        "problems": [] if experiment.imported else progress.problems,  # there is nothing to resume in an import
        "made": import_shown(experiment) if experiment.imported else None,
    }
    return render(request, "llmruns/experiment_detail.html", context)


@login_required
@require_POST
def experiment_stop(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    cancelled = experiment_cancel(experiment=_experiment(study, pk), actor=_person(request))
    if cancelled:
        messages.success(request, _("Cancelled. Nothing more is sent; what was received is kept."))
    else:
        messages.info(request, _("There was nothing left to cancel."))
    return redirect("experiment_detail", slug, pk)


@login_required
@require_POST
def experiment_continue(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    experiment = _experiment(study, pk)
    named = [number for number in map(_whole, request.POST.getlist("run")) if number is not None]
    like = _whole(request.POST.get("like", ""))
    if like is not None:
        named = runs_like(experiment, like)
    try:
        experiment_resume(
            experiment=experiment,
            actor=_person(request),
            run_ids=named if {"run", "like"} & request.POST.keys() else None,
        )
    except KeyMissingError as error:
        messages.error(request, missing_key(error))
    except NotResumableError:
        messages.info(request, _("There was nothing to resume."))
    else:
        messages.success(request, _("Resumed. Only what has no answer yet is asked."))
    return redirect("experiment_detail", slug, pk)


@login_required
@require_safe
def run_detail(request: HttpRequest, slug: str, pk: int, run_pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    experiment = _experiment(study, pk)
    run = get_object_or_404(experiment.runs.select_related("config", "sitting"), pk=run_pk)
    rows = run_rows(run)
    going = run.state in GOING and experiment.state == Experiment.State.RUNNING
    context = {
        "study": study,
        "experiment": experiment,
        "run": run,
        "rows": rows,
        "refused": refused_parameters(run.config),
        "problem_words": kind_words(run.problem) if run.problem else "",
        "remedy": remedy(run.problem),
        "resumable": run.state in RESUMABLE
        and not experiment.imported
        and experiment.state != Experiment.State.CANCELLED,
        "moving": going or any(row.in_flight for row in rows),
    }
    return render(request, "llmruns/run_detail.html", context)


def _whole(value: str) -> int | None:
    """A row's number, or None: the length first, since int() refuses thousands of digits."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 18 else None


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - login_required stands before every view
    return request.user

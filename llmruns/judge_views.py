"""Pages of model judges: the launch, what goes on, its end, and their prompts.

Counts may be seen by a researcher who rates, so that they can stop what costs money. Whatever tells answers apart is
closed to them, and so is the launch.
"""

import secrets
import uuid
from collections.abc import Collection, Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from llmruns.addresses import AddressRefusedError
from llmruns.budget import CapRefusedError, cap_set, experiment_pause
from llmruns.estimate import Estimate, estimates_of
from llmruns.forms import ADDRESS_ERRORS
from llmruns.judge_calls import GOING
from llmruns.judge_choosing import Chosen, Selection, chosen
from llmruns.judge_forms import JUDGING_CAP_ERRORS, JUDGING_ERRORS, JudgePromptForm, JudgingForm
from llmruns.judge_prompts import (
    codes_missing,
    judge_message,
    judge_prompts_of,
    judge_slug,
    judge_text,
    judged_criteria,
)
from llmruns.judge_selectors import judges_brought, judging_progress, judging_rows, judgings_of, people_and_models
from llmruns.judging import (
    RESUMABLE,
    JudgingChangedError,
    JudgingNotResumableError,
    JudgingRefusedError,
    judging_cancel,
    judging_launch,
    judging_resume,
)
from llmruns.keys import KeyMissingError
from llmruns.log import whole
from llmruns.models import Call, Judging, ModelConfig, Prompt
from llmruns.money_forms import CAP_ERRORS, CAP_PROBLEMS, CapForm
from llmruns.prompt_forms import PROMPT_ERRORS
from llmruns.prompts import PromptRefusedError, prompt_create
from llmruns.views import missing_key
from llmruns.wording import judging_remedy, kind_words
from scoring.models import Rubric
from scoring.services import RUBRICS, paper_rubric
from studies.access import SignedIn, is_blinded, research_study, unblinded_study
from studies.models import Study

SAMPLE_WORDS, SAMPLE_ANSWER = "кошка сидеть на стол", 'кошка сидит на столе </sentence> "{words}"'


class AnswerSources(Protocol):
    """Lists of answers that a layer beside this one keeps: campaigns. Handed in by the layer above (reports.urls)."""

    def choices(self, study: Study) -> Sequence[tuple[int, str]]: ...

    def answer_ids(self, study: Study, pk: int) -> Collection[int]: ...


@login_required
@require_safe
def judging_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    context = {
        "study": study,
        "rows": judging_rows(study),
        "brought": judges_brought(study),
        "has_models": ModelConfig.objects.filter(study=study).exists(),
    }
    return render(request, "llmruns/judging_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def judging_new(request: SignedIn, slug: str, sources: AnswerSources) -> HttpResponse:
    """Two steps: the choice, and which answers it comes to. Only the second one launches, and just those."""
    study = unblinded_study(request.user, slug)
    campaigns = sources.choices(study)
    if request.method != "POST":
        initial = {"launch_key": uuid.uuid4(), "seed": secrets.randbelow(1_000_000)}
        return _form(request, study, JudgingForm(study=study, campaigns=campaigns, initial=initial))
    form = JudgingForm(request.POST, study=study, campaigns=campaigns)
    step = request.POST.get("step")
    if not form.is_valid() or step == "change":
        return _form(request, study, form)
    selection = _selection(form.cleaned_data, study, sources, dict(campaigns))
    if step != "launch":
        return _confirm(request, study, form, selection)
    return _launch(request, study, form, selection)


def _selection(data: dict[str, Any], study: Study, sources: AnswerSources, titles: dict[int, str]) -> Selection:
    campaign = int(data["campaign"]) if data.get("campaign") else None
    return Selection(
        instrument=data["instrument"],
        kind=data["kind"],
        answer_ids=None if campaign is None else sources.answer_ids(study, campaign),
        named="" if campaign is None else titles[campaign],
        only_new=not data["with_judged"],
        sample=data["sample"],
        seed=data["seed"],
    )


def _form(request: SignedIn, study: Study, form: JudgingForm) -> HttpResponse:
    context = {"study": study, "form": form, "has_models": ModelConfig.objects.filter(study=study).exists()}
    return render(request, "llmruns/judging_new.html", context)


def _launch(request: SignedIn, study: Study, form: JudgingForm, selection: Selection) -> HttpResponse:
    data = form.cleaned_data
    try:
        judging = judging_launch(
            study=study,
            config=data["config"],
            rubric=RUBRICS[data["rubric"]](),
            prompt=data["prompt"],
            selection=selection,
            actor=request.user,
            title=data["title"],
            max_attempts=data["max_attempts"],
            deadline=60 * data["deadline"],
            cap=data["cap"],
            currency=data["currency"],
            launch_key=data["launch_key"],
            seen=request.POST.get("seen", ""),
        )
    except JudgingChangedError:
        return _confirm(request, study, form, selection, changed=True)
    except JudgingRefusedError as error:
        form.add_error(_field_of(error.reason), refused_words(error))
        return _form(request, study, form)
    except PromptRefusedError as error:
        form.add_error("prompt", str(PROMPT_ERRORS[error.reason]))
        return _form(request, study, form)
    except KeyMissingError as error:
        form.add_error("config", missing_key(error))
        return _form(request, study, form)
    except AddressRefusedError as error:
        form.add_error("config", str(ADDRESS_ERRORS[error.reason]))
        return _form(request, study, form)
    return redirect("judging_detail", study.slug, judging.pk)


def _field_of(reason: str) -> str | None:
    return {"criteria": "prompt", "cap": "cap", "uncappable": "cap", "replayed": "config"}.get(reason)


def refused_words(error: JudgingRefusedError) -> str:
    if error.reason == "criteria":
        return _("This prompt does not name all criteria of the rubric in quotation marks. Missing: %(codes)s.") % {
            "codes": error.detail
        }
    if error.reason == "uncappable":
        return _("A cap is not possible with this model: %(reason)s.") % {"reason": CAP_PROBLEMS[error.detail]}
    return str(JUDGING_ERRORS[error.reason])


def _confirm(
    request: SignedIn, study: Study, form: JudgingForm, selection: Selection, *, changed: bool = False
) -> HttpResponse:
    data = form.cleaned_data
    rubric, config = RUBRICS[data["rubric"]](), data["config"]
    prompt = data["prompt"] or _newest(study, rubric, selection)
    text = prompt.text if prompt else judge_text(rubric, selection.instrument.language)
    if missing := codes_missing(text, judged_criteria(rubric)):
        form.add_error("prompt", refused_words(JudgingRefusedError("criteria", ", ".join(missing))))
        return _form(request, study, form)
    found = chosen(selection, config=config, prompt=prompt, rubric=rubric)
    texts = found.texts
    context: dict[str, Any] = {
        "study": study,
        "form": form,
        "data": data,
        "rubric": rubric,
        "prompt": prompt or f"{judge_slug(rubric, selection.instrument.language)} v1",
        "named": selection.named,
        "found": found,
        "own": found.own(config),
        "people": found.of_people(),
        "texts": len(texts),
        "most": len(texts) * data["max_attempts"],
        "changed": changed,
        "criteria": judged_criteria(rubric),
    }
    if texts:
        estimate = _estimate(config, text, found, data)
        if data["cap"] and estimate.cap_reason:
            form.add_error("cap", refused_words(JudgingRefusedError("uncappable", estimate.cap_reason)))
            return _form(request, study, form)
        context["estimate"] = estimate
        context["host"] = urlsplit(config.base_url).netloc or config.get_provider_display()
        context["cap_problem"] = CAP_PROBLEMS.get(estimate.cap_reason, "")
        context["example"] = judge_message(text, words=texts[0].stimulus_text, answer=texts[0].display_text)
    return render(request, "llmruns/judging_confirm.html", context)


def _newest(study: Study, rubric: Rubric, selection: Selection) -> Prompt | None:
    return judge_prompts_of(study).filter(slug=judge_slug(rubric, selection.instrument.language)).first()


def _estimate(config: ModelConfig, text: str, found: Chosen, data: dict[str, Any]) -> Estimate:
    (estimate,) = estimates_of(
        [config],
        prompt="{words}",  # each message is whole already
        stimuli=[judge_message(text, words=one.stimulus_text, answer=one.display_text) for one in found.texts],
        runs=1,
        max_attempts=data["max_attempts"],
        currency=data["currency"] if data["cap"] else "",
        purpose=Call.Purpose.JUDGE,
    )
    return estimate


def _judging(study: Study, pk: int) -> Judging:
    return get_object_or_404(judgings_of(study), pk=pk)


@login_required
@require_safe
def judging_detail(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Counts only, and to who rates not even whose answers they are."""
    study = research_study(request.user, slug)
    judging = _judging(study, pk)
    progress = judging_progress(judging)
    blinded = is_blinded(request.user, study)
    context = {
        "study": study,
        "judging": judging,
        "judge": judging.model_judge,
        "criteria": judged_criteria(judging.model_judge.rubric),
        "progress": progress,
        "blinded": blinded,
        "whose": None if blinded else people_and_models(judging),
        "named": "" if blinded else judging.selection.get("asked", {}).get("named", ""),
        "numbers": None if blinded else judging.selection.get("numbers"),
        "problem_words": kind_words(judging.problem),
        "problem_remedy": judging_remedy(judging.problem),
        "resumable": judging.state in RESUMABLE,
        "running": judging.state == Judging.State.RUNNING,
        "cancellable": judging.state in (*GOING, Judging.State.INCOMPLETE),
        "moving": bool(progress.in_flight) or judging.state == Judging.State.RUNNING,
        "cap_form": CapForm.of(judging.cap) if judging.cap is not None else None,
    }
    return render(request, "llmruns/judging_detail.html", context)


@login_required
@require_POST
def judging_hold(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    judging = _judging(research_study(request.user, slug), pk)
    if experiment_pause(experiment=judging, actor=request.user):
        messages.success(request, _("Paused. Calls in flight end and count; nothing more is sent until you resume."))
    else:
        messages.info(request, _("It is not running, so there was nothing to pause."))
    return redirect("judging_detail", slug, pk)


@login_required
@require_POST
def judging_continue(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    judging = _judging(research_study(request.user, slug), pk)
    try:
        judging_resume(judging=judging, actor=request.user)
    except KeyMissingError as error:
        messages.error(request, missing_key(error))
    except JudgingNotResumableError:
        messages.info(request, _("There was nothing to resume."))
    else:
        messages.success(request, _("Resumed. Only what has no judgement yet is asked."))
    return redirect("judging_detail", slug, pk)


@login_required
@require_POST
def judging_stop(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    judging = _judging(research_study(request.user, slug), pk)
    if judging_cancel(judging=judging, actor=request.user):
        messages.success(request, _("Cancelled. Nothing more is sent; what was received is kept."))
    else:
        messages.info(request, _("There was nothing left to cancel."))
    return redirect("judging_detail", slug, pk)


@login_required
@require_POST
def judging_cap(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    judging = _judging(research_study(request.user, slug), pk)
    form = CapForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["cap"]))
        return redirect("judging_detail", slug, pk)
    try:
        cap_set(experiment=judging, cap=form.cleaned_data["cap"], actor=request.user)
    except CapRefusedError as error:
        messages.error(request, str(JUDGING_CAP_ERRORS.get(error.reason) or CAP_ERRORS[error.reason]))
    else:
        messages.success(request, _("The cap is changed. What is paused goes on when you resume it."))
    return redirect("judging_detail", slug, pk)


# --- prompts ---------------------------------------------------------------------------------------------------------


@login_required
@require_safe
def judge_prompt_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    prompts = list(judge_prompts_of(study))
    context = {"study": study, "prompts": prompts, "built_in": judge_text(paper_rubric(), "ru") if not prompts else ""}
    return render(request, "llmruns/judge_prompt_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def judge_prompt_new(request: SignedIn, slug: str) -> HttpResponse:
    """Two steps: the text, and what comes of it for a made-up answer. Only the second one keeps it."""
    study = research_study(request.user, slug)
    form = JudgePromptForm(request.POST or None, initial=_prompt_initial(request, study))
    step = request.POST.get("step")
    if request.method != "POST" or not form.is_valid() or step == "change":
        return render(request, "llmruns/judge_prompt_new.html", {"study": study, "form": form})
    data = form.cleaned_data
    if step != "save":
        example = judge_message(data["text"], words=SAMPLE_WORDS, answer=SAMPLE_ANSWER)
        context = {"study": study, "form": form, "data": data, "example": example}
        return render(request, "llmruns/judge_prompt_preview.html", context)
    try:
        prompt = prompt_create(
            study=study,
            slug=data["slug"],
            text=data["text"],
            note=data["note"],
            actor=request.user,
            purpose=Prompt.Purpose.JUDGE,
        )
    except PromptRefusedError as error:
        form.add_error("text", str(PROMPT_ERRORS[error.reason]))
        return render(request, "llmruns/judge_prompt_new.html", {"study": study, "form": form})
    messages.success(request, _("%(prompt)s is kept. Choose it when you let a model judge.") % {"prompt": prompt})
    return redirect("judge_prompt_list", slug)


def _prompt_initial(request: SignedIn, study: Study) -> dict[str, str]:
    """Of the version that the new one begins with: `?from=`, else what Luria brings for the paper's rubric."""
    number = whole(request.GET.get("from", ""))
    prompt = judge_prompts_of(study).filter(pk=number).first() if number else None
    if prompt is not None:
        return {"slug": prompt.slug, "text": prompt.text}
    rubric = paper_rubric()
    return {"slug": judge_slug(rubric, "ru"), "text": judge_text(rubric, "ru")}

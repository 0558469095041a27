"""The researcher's pages of one survey as it goes: the watching page, a sitting, finding somebody's sitting.

A researcher who rates in an open campaign sees counts, times and flags, and no text or response: nothing that joins an
answer to who gave it.
"""

from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from corpus.models import Sitting
from studies.access import SignedIn, is_blinded, research_study
from studies.models import Study
from surveys.exclusion import BY_HAND, FLAGS, rule_words
from surveys.facts import checks_failed, flag_counts, sittings_of
from surveys.models import Exclusion, Participant, Survey
from surveys.questionnaire import attention_passed, response_words
from surveys.receipts import receipt_digest
from surveys.rights_forms import ReasonForm, SittingFilterForm
from surveys.services import places_taken
from surveys.watching import (
    SittingFilter,
    flag_words,
    flags_of,
    flow_of,
    sitting_tasks,
    sittings_listed,
    tasks_of,
)

PAGE_SIZE = 50


def survey_of(study: Study, pk: int) -> Survey:
    """One query. Raises Http404."""
    return get_object_or_404(Survey.objects.select_related("instrument"), instrument__study=study, pk=pk)


def sitting_at(survey: Survey, pk: int) -> Sitting:
    """One query. Raises Http404."""
    found = sittings_of(survey).select_related("respondent__participant", "instrument").filter(pk=pk).first()
    if found is None:
        raise Http404
    return found


@login_required
@require_safe
def watch(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """The counts are asked for again while the page is looked at (`?live=1`: without the list)."""
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    context: dict[str, Any] = {
        "study": study,
        "survey": survey,
        "flow": flow_of([survey.pk]),
        "used": places_taken(survey),
        "tasks": tasks_of(survey),
        "flags": flags_of(survey),
    }
    if "live" in request.GET:
        return render(request, "surveys/watch.html", {**context, "live": True})
    form = SittingFilterForm(request.GET, flags={code: code for code in flag_counts(survey) if code not in FLAGS})
    if not form.is_valid():
        raise Http404
    page = Paginator(sittings_listed(survey, SittingFilter(**form.cleaned_data)), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    query = request.GET.copy()
    query.pop("page", None)
    narrowed = any(form.cleaned_data.values())
    failed = checks_failed(survey, participants=[sitting.respondent.participant.pk for sitting in page])
    rows = [_row(sitting, failed) for sitting in page]
    context |= {"form": form, "page": page, "rows": rows, "query": query.urlencode(), "narrowed": narrowed}
    return render(request, "surveys/watch.html", context)


@dataclass(frozen=True, slots=True)
class SittingRow:
    sitting: Any  # as `sittings_listed` annotates it
    minutes: float | None
    median_seconds: float | None
    words: list[Any]


def _row(sitting: Any, failed: Container[int]) -> SittingRow:
    """`failed`: the participants who failed an attention check."""
    lasted, median, participant = sitting.lasted, sitting.median_ms, sitting.respondent.participant
    words = flag_words(
        participant.flags,
        translated=sitting.n_translated > 0,
        pasted=sitting.n_pasted > 0,
        away_ms=sitting.away_in_all,
        check_failed=participant.pk in failed,
    )
    minutes = lasted.total_seconds() / 60 if lasted else None
    return SittingRow(sitting, minutes, None if median is None else median / 1000, words)


@login_required
@require_safe
def sitting_page(request: SignedIn, slug: str, pk: int, sitting_pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    sitting = sitting_at(survey, sitting_pk)
    return render(request, "surveys/sitting.html", sitting_context(request, study, survey, sitting))


def sitting_context(request: SignedIn, study: Study, survey: Survey, sitting: Sitting) -> dict[str, Any]:
    """Some ten queries."""
    participant = sitting.respondent.participant
    tasks = sitting_tasks(sitting)
    exposures = [task.exposure for task in tasks if task.exposure]
    blinded = is_blinded(request.user, study)
    exclusions = Exclusion.objects.filter(sitting=sitting).select_related("rule").order_by("pk")
    context: dict[str, Any] = {
        "study": study,
        "survey": survey,
        "sitting": sitting,
        "participant": participant,
        "blinded": blinded,
        "withdrawn": sitting.standing == Sitting.Standing.WITHDRAWN,
        "tasks": tasks,
        "consents": participant.consents.select_related("document").order_by("pk"),
        "flags": flag_words(
            participant.flags,
            translated=any(one.translated for one in exposures),
            pasted=any(one.pastes for one in exposures),
            away_ms=sum(one.away_ms or 0 for one in exposures),
            check_failed=participant.pk in checks_failed(survey, participants=[participant.pk]),
        ),
        "exclusions": [(one, rule_words(one.rule.kind, one.rule.limit)) for one in exclusions],
        "excludable": sitting.standing in (Sitting.Standing.COUNTED, Sitting.Standing.EXCLUDED)
        and not any(one.rule.kind == BY_HAND and one.lifted_at is None for one in exclusions),
        "reason_form": ReasonForm(),
    }
    if not blinded:
        responses = participant.responses.select_related("question").order_by("question__position")
        language = get_language() or survey.instrument.language
        context["responses"] = [
            (one.question, response_words(one.question, one.value, language), attention_passed(one.question, one.value))
            for one in responses
        ]
    return context


@login_required
@require_POST
@sensitive_post_parameters("code")
def sitting_find(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Who writes to a researcher has one of these: a receipt or completion code, or the platform's id."""
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    found = _participant_find(survey, request.POST.get("code", "").strip())
    sitting = found and sittings_of(survey).filter(respondent=found.respondent_id).first()
    if not sitting:
        messages.error(request, _("Nobody in this survey has this code or number."))
        return redirect("survey_watch", slug, pk)
    return redirect("survey_sitting", slug, pk, sitting.pk)


def _participant_find(survey: Survey, code: str) -> Participant | None:
    if not code or "\x00" in code:
        return None
    own = Q(external_id=code) | Q(visit_id=code) | Q(completion_code__iexact=code)
    digest = receipt_digest(code)
    if digest:
        own |= Q(receipt_digest=digest)
    with suppress(ValueError):
        own |= Q(respondent__public_id=UUID(code))
    return Participant.objects.filter(own, survey=survey).first()

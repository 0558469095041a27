"""The researcher's pages of exclusion: whom a rule would take, applying it, lifting it."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from corpus.models import Sitting
from studies.access import SignedIn, research_study
from studies.models import Study
from surveys.exclusion import BY_HAND, KINDS, kind_of, rule_words
from surveys.exclusion_services import (
    ListChangedError,
    NotExcludableError,
    list_digest,
    rule_apply,
    rule_apply_again,
    rule_lift,
    sitting_exclude,
)
from surveys.facts import facts_of, sittings_of
from surveys.models import Exclusion, ExclusionRule, Survey
from surveys.rights_forms import ReasonForm, RuleForm
from surveys.watch_views import sitting_at, survey_of

SHOWN = 200  # rows of a preview; the count is of all


@login_required
@require_safe
def exclusion(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """The rules of a survey; with a rule in the query, whom it would take. Looking changes nothing."""
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    asked = "kind" in request.GET
    form = RuleForm(request.GET if asked else None, survey=survey)
    return _page(request, study, survey, form, ReasonForm())


def _page(
    request: SignedIn, study: Study, survey: Survey, form: RuleForm, reason: ReasonForm, *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "study": study,
        "survey": survey,
        "form": form,
        "reason_form": reason,
        "rules": _rules(survey),
        "explained": [(str(kind.words) % {"limit": "…"}, kind.explained) for kind in KINDS.values() if kind.explained],
    }
    if form.is_bound and form.is_valid():
        context["preview"] = _preview(survey, form.cleaned_data["kind"], form.cleaned_data["limit"])
    return render(request, "surveys/exclusion.html", context, status=status)


def _rules(survey: Survey) -> list[dict[str, Any]]:
    """The rules, the newest first, with whom they hold and how many a live one would take besides. Nine queries."""
    rules = list(
        ExclusionRule.objects.filter(survey=survey)
        .select_related("made_by", "lifted_by")
        .annotate(held=Count("exclusions", filter=Q(exclusions__lifted_at__isnull=True)), ever=Count("exclusions"))
        .order_by("-pk")
    )
    live = {rule.pk: rule for rule in rules if rule.lifted_at is None and rule.kind != BY_HAND}
    facts = facts_of(survey, kinds={rule.kind for rule in live.values()}) if live else {}
    held = set(Exclusion.objects.filter(rule__in=live, lifted_at__isnull=True).values_list("rule", "sitting"))
    rows = []
    for rule in rules:
        kind = kind_of(rule.kind) if rule.pk in live else None
        fresh = [
            pk for pk, own in facts.items() if kind and kind.takes(own, rule.limit or 0) and (rule.pk, pk) not in held
        ]
        rows.append({"rule": rule, "words": rule_words(rule.kind, rule.limit), "fresh": len(fresh)})
    return rows


def _preview(survey: Survey, code: str, limit: float | None) -> dict[str, Any]:
    kind = kind_of(code)
    if kind is None:
        return {}
    facts = facts_of(survey, kinds={code})
    taken = [pk for pk, own in facts.items() if kind.takes(own, limit or 0)]
    shown = {
        sitting.pk: sitting
        for sitting in sittings_of(survey).filter(pk__in=taken[:SHOWN]).select_related("respondent").order_by("pk")
    }
    out = sittings_of(survey).filter(pk__in=taken, standing=Sitting.Standing.EXCLUDED).count()
    return {
        "words": rule_words(code, limit),
        "unit": kind.unit,
        "n": len(taken),
        "of": len(facts),
        "newly": len(taken) - out,
        "out": out,
        "unknown": sum(_is_unknown(kind.fact(own), bool(kind.unit)) for own in facts.values()),
        "rows": [(sitting, kind.fact(facts[pk])) for pk, sitting in shown.items()],
        "more": max(0, len(taken) - SHOWN),
        "whole": kind.whole,
        "seen": list_digest(taken),
    }


def _is_unknown(fact: float | None, has_limit: bool) -> bool:
    return has_limit and fact is None


@login_required
@require_POST
def exclusion_apply(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    form, reason = RuleForm(request.POST, survey=survey), ReasonForm(request.POST)
    if not form.is_valid() or not reason.is_valid():
        return _page(request, study, survey, form, reason, status=400)
    try:
        applied = rule_apply(
            survey=survey,
            kind=form.cleaned_data["kind"],
            limit=form.cleaned_data["limit"],
            reason=reason.cleaned_data["reason"],
            seen=request.POST.get("seen", ""),
            actor=request.user,
        )
    except ListChangedError:
        messages.error(request, _("Nothing was excluded: the list has changed since it was shown. Look at it again."))
        return _page(request, study, survey, form, reason, status=409)
    messages.success(request, _taken(applied.newly))
    return redirect("survey_exclusion", slug, pk)


def _taken(n: int) -> str:
    return ngettext("%(n)s sitting is excluded now.", "%(n)s sittings are excluded now.", n) % {"n": n}


def _rule(study: Study, pk: int, rule_pk: int) -> ExclusionRule:
    return get_object_or_404(
        ExclusionRule.objects.select_related("survey"), survey__instrument__study=study, survey=pk, pk=rule_pk
    )


@login_required
@require_POST
def exclusion_again(request: SignedIn, slug: str, pk: int, rule_pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    applied = rule_apply_again(rule=_rule(study, pk, rule_pk), actor=request.user)
    messages.success(request, _taken(applied.newly))
    return redirect("survey_exclusion", slug, pk)


@login_required
@require_POST
def exclusion_lift(request: SignedIn, slug: str, pk: int, rule_pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    n = rule_lift(rule=_rule(study, pk, rule_pk), actor=request.user)
    messages.success(request, ngettext("%(n)s sitting counts again.", "%(n)s sittings count again.", n) % {"n": n})
    return redirect("survey_exclusion", slug, pk)


@login_required
@require_POST
def sitting_leave_out(request: SignedIn, slug: str, pk: int, sitting_pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    survey = survey_of(study, pk)
    sitting = sitting_at(survey, sitting_pk)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was excluded: say why."))
        return redirect("survey_sitting", slug, pk, sitting_pk)
    try:
        sitting_exclude(survey=survey, sitting_id=sitting.pk, reason=form.cleaned_data["reason"], actor=request.user)
    except NotExcludableError:
        messages.error(request, _("A pilot or withdrawn sitting counts nowhere as it is."))
    else:
        messages.success(request, _("The sitting is excluded."))
    return redirect("survey_sitting", slug, pk, sitting_pk)

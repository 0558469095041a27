"""The researcher's pages about campaigns. Raters' own pages are in rater_views."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.deciding import items_flagged, waiting_of
from annotation.forms import AdjudicatorForm, WithdrawForm, value_label
from annotation.models import Campaign, Place, Rater
from annotation.opening_forms import DeadlineForm
from annotation.places import label_withdraw
from annotation.planned import plan_lines
from annotation.selectors import (
    adjudicating_member,
    answers_judged_by,
    campaigns_of,
    criteria_asked,
    items_removed,
    rater_of,
    raters_progress,
)
from annotation.services import (
    adjudicator_set,
    adjudicator_unset,
    campaign_close,
    rater_deactivate,
    rater_ensure,
    rater_reactivate,
)
from annotation.votes import CriterionAgreement, campaign_agreement, is_undecided, items_with_votes, labels_of_round
from studies.access import SignedIn, is_blinded, research_study, unblinded_study

PAGE = 50


@login_required
@require_safe
def campaign_list(request: SignedIn, slug: str) -> HttpResponse:
    study = research_study(request.user, slug)
    own = rater_of(request.user, study.pk)
    own_rater = None if own is None or own.only_decides else own
    context = {"study": study, "campaigns": campaigns_of(study), "own_rater": own_rater}
    return render(request, "annotation/campaign_list.html", context)


@login_required
@require_safe
def campaign(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = research_study(request.user, slug)
    found = get_object_or_404(campaigns_of(study).select_related("round", "adjudicator__user"), pk=pk)
    blinded = is_blinded(request.user, study)
    context: dict[str, Any] = {
        "study": study,
        "campaign": found,
        "raters": raters_progress(found),
        "removed": items_removed(found),
        "has_rules": study.guidelines.filter(version=found.round.guideline_version or 0).exists(),
        "blinded": blinded,
        "plan": plan_lines(found, blinded=blinded),
        "deadline_form": DeadlineForm(initial={"deadline": found.deadline}) if found.closed_at is None else None,
        "adjudicator_form": AdjudicatorForm(study=study, initial={"adjudicator": adjudicating_member(found)}),
    }
    if found.adjudicator is not None and found.adjudicator.user is not None:
        context["adjudicator_judged"] = answers_judged_by(found, found.adjudicator.user)
    if not blinded:
        agreement = campaign_agreement(found)
        context["agreement"] = agreement
        context["flagged"] = waiting_of(found).flagged if items_flagged(found) else 0
        context["tables"] = [
            (_("Without refusals") if agreement.refusals else "", _table(agreement.attempts)),
            (_("With refusals"), _table(agreement.with_refusals) if agreement.refusals else []),
        ]
    return render(request, "annotation/campaign.html", context)


def _table(rows: list[CriterionAgreement]) -> list[dict[str, Any]]:
    return [
        {
            "criterion": row.criterion,
            "agreement": row.agreement,
            "percent": None if row.percent.value is None else 100 * row.percent.value,
            "shares": [
                {
                    "label": _("undecided") if share.value is None else value_label(row.criterion, share.value),
                    "n": share.n,
                    "percent": None if share.share is None else 100 * share.share,
                }
                for share in row.shares
            ],
        }
        for row in rows
    ]


@login_required
@require_safe
def campaign_answers(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """The answers with their votes, the undecided ones first of all. Closed to whoever rates in an open campaign."""
    study = unblinded_study(request.user, slug)
    found = get_object_or_404(study.campaigns.select_related("round"), pk=pk)
    labels = labels_of_round(found)
    everything = request.GET.get("show") == "all"
    only = _number(request.GET.get("item"))
    pks = [item for item, by_code in labels.items() if (item == only if only else everything or is_undecided(by_code))]
    page = Paginator(pks, PAGE).get_page(request.GET.get("page"))
    context = {
        "study": study,
        "campaign": found,
        "everything": everything,
        "page": page,
        "criteria": criteria_asked(found),
        "items": items_with_votes(found, labels, list(page.object_list)),
    }
    return render(request, "annotation/campaign_answers.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def campaign_end(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """A look says what closing does, with counts; the post closes."""
    study = research_study(request.user, slug)
    found = get_object_or_404(campaigns_of(study), pk=pk)
    if request.method == "POST":
        campaign_close(campaign=found, actor=request.user)
        messages.success(request, _("The campaign is closed."))
        return redirect("campaign", slug, pk)
    return render(request, "annotation/campaign_close.html", {"study": study, "campaign": found})


@login_required
@require_POST
def adjudicator_name(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """Whoever judged in the campaign is named by a second post only, which says that it is known."""
    study = research_study(request.user, slug)
    found = get_object_or_404(Campaign.objects.select_related("study", "round"), study=study, pk=pk)
    form = AdjudicatorForm(request.POST, study=study)
    if "adjudicator" not in request.POST or not form.is_valid():
        messages.error(request, _("Choose a member of the study."))
    elif (member := form.cleaned_data["adjudicator"]) is None:
        adjudicator_unset(campaign=found, actor=request.user)
        messages.success(request, _("Nobody is named to decide."))
    else:
        judged = answers_judged_by(found, member.user)
        if judged and request.POST.get("confirmed") != str(member.pk):
            context = {"study": study, "campaign": found, "member": member, "judged": judged}
            return render(request, "annotation/adjudicator_confirm.html", context)
        adjudicator_set(campaign=found, user=member.user, actor=request.user)
        if found.state == Campaign.State.OPEN:
            told = _("The adjudicator is named and gets the undecided answers when the campaign closes.")
        else:
            told = _("The adjudicator is named and finds the undecided answers on their page “Rating” now.")
        messages.success(request, told)
    return redirect("campaign", slug, pk)


@login_required
@require_POST
def rate_too(request: SignedIn, slug: str) -> HttpResponse:
    """A researcher begins to rate, and is blinded while a campaign is open."""
    study = research_study(request.user, slug)
    rater_ensure(user=request.user, study=study, actor=request.user)
    messages.success(request, _("You are now one of the raters of this study."))
    return redirect("rate_home")


@login_required
@require_POST
def rater_state(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    """End a rater's work in the study, or let them go on."""
    study = research_study(request.user, slug)
    rater = get_object_or_404(Rater.objects.select_related("study", "user"), study=study, pk=pk)
    if request.POST.get("active") == "1":
        rater_reactivate(rater=rater, actor=request.user)
    elif request.POST.get("active") == "0":
        rater_deactivate(rater=rater, actor=request.user)
    back = Campaign.objects.filter(study=study, pk=_number(request.POST.get("campaign"))).first()
    return redirect("campaign", slug, back.pk) if back else redirect("campaign_list", slug)


def _number(text: str | None) -> int:
    """A row's number from a form, or 0, which no row has."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else 0


@login_required
@require_POST
def label_take_out(request: SignedIn, slug: str, pk: int) -> HttpResponse:
    study = unblinded_study(request.user, slug)
    found = get_object_or_404(study.campaigns, pk=pk)
    form = WithdrawForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was withdrawn: say why."))
    else:
        place = get_object_or_404(Place, campaign=found, pk=form.cleaned_data["place"])
        label_withdraw(place_id=place.pk, actor=request.user, reason=form.cleaned_data["reason"])
        messages.success(request, _("The judgement is withdrawn. It no longer counts and stays in the history."))
    return redirect("campaign_answers", slug, pk)

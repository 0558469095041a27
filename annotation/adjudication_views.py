"""The pages of the adjudicator: how the raters voted and what they wrote, without their names."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotation.adjudication import adjudication_record, case_of, decision_of, decisions_of, items_decided
from annotation.deciding import items_to_decide
from annotation.errors import (
    AnswerRemovedError,
    CampaignOpenError,
    DecisionChangedError,
    NotUndecidedError,
    PlaceNotYoursError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.forms import JudgementUnreadableError, ReasonForm, posted_judgement, rows_of, value_label
from annotation.models import Item
from annotation.rater_views import PAGE, ended, for_raters, not_yours, refused, removed
from annotation.selectors import Chosen, campaigns_to_adjudicate, criteria_asked, guideline_of, item_to_adjudicate
from scoring.models import Criterion
from scoring.services import ValueOutsideScaleError
from studies.access import SignedIn


@for_raters
@require_safe
def decide_next(request: SignedIn, pk: int) -> HttpResponse:
    """To the first answer that waits for this adjudicator. Writes nothing."""
    campaign = campaigns_to_adjudicate(request.user).filter(pk=pk).first()
    if campaign is None:
        return not_yours(request)
    for item_pk in items_to_decide(campaign, counted_only=False)[:1]:
        return redirect("decide", Item.objects.values_list("uuid", flat=True).get(pk=item_pk))
    messages.success(request, _("Nothing waits for a decision in this campaign."))
    return redirect("rate_home")


@for_raters
@require_safe
def decided(request: SignedIn, pk: int) -> HttpResponse:
    """The decisions that hold in a campaign, the newest first, each with the way to decide it again."""
    campaign = campaigns_to_adjudicate(request.user).filter(pk=pk).first()
    if campaign is None:
        return not_yours(request)
    page = Paginator(items_decided(campaign), PAGE).get_page(request.GET.get("page"))
    found = Item.objects.in_bulk(list(page.object_list))
    criteria = criteria_asked(campaign)
    decisions = decisions_of(campaign, [item.answer_id for item in found.values()])
    rows = [(found[pk], _said(criteria, decisions[found[pk].answer_id].chosen)) for pk in page.object_list]
    left = len(items_to_decide(campaign, counted_only=False))
    context = {"study": campaign.study, "campaign": campaign, "page": page, "rows": rows, "left": left}
    return render(request, "annotation/decided.html", context)


def _said(criteria: Sequence[Criterion], chosen: Chosen) -> str:
    """A decision in words, with its reason."""
    words = [
        f"{criterion.question} {value_label(criterion, chosen.values[criterion.code])}"
        for criterion in criteria
        if criterion.code in chosen.values
    ]
    said = _("Not an attempt") if chosen.not_attempt else " · ".join(words)
    return f"{said} · {chosen.reason}" if chosen.reason else said


@for_raters
@require_http_methods(["GET", "POST"])
def decide(request: SignedIn, item: UUID) -> HttpResponse:
    found = item_to_adjudicate(request.user, item)
    if found is None or found.campaign.adjudicator is None:
        return not_yours(request)
    if found.removed_at is not None:
        return removed(request, posted=request.method == "POST")
    if request.method == "POST":
        return _decide(request, found)
    return _decide_page(request, found, None, None)


def _decide(request: SignedIn, item: Item) -> HttpResponse:
    form = ReasonForm(request.POST)
    has_reason = form.is_valid()
    try:
        posted = posted_judgement(request.POST)
        adjudication_record(
            item_uuid=item.uuid,
            rater_id=item.campaign.adjudicator_id or 0,
            values=posted.chosen.values,
            not_attempt=posted.chosen.not_attempt,
            reason=form.cleaned_data["reason"] if has_reason else "",
            seen=request.POST.get("seen", ""),
        )
    except (PlaceNotYoursError, CampaignOpenError):
        return not_yours(request)
    except AnswerRemovedError:
        return removed(request, posted=True)
    except RaterInactiveError:
        return ended(request)
    except NotUndecidedError:
        return refused(
            request,
            "decided",
            title=_("Nothing to decide here"),
            text=_("The raters' votes on this answer have a majority. Nothing was saved."),
            status=409,
        )
    except ReasonMissingError:
        return _decide_page(request, item, posted.chosen, form, problem=_("Not saved yet: say why."))
    except ValuesMissingError as error:
        problem = _("Not saved yet: choose the marked ones.")
        return _decide_page(request, item, posted.chosen, form, problem=problem, missing=error.codes)
    except (ValueOutsideScaleError, JudgementUnreadableError):
        problem = _("Not saved: the page sent a value that is not on the scale.")
        return _decide_page(request, item, Chosen({}), form, problem=problem)
    except DecisionChangedError:
        problem = _(
            "Not saved: this answer was decided in another window after this page had been opened. Below is what is "
            "stored; decide it again here, or leave it as it is."
        )
        yours = _said(criteria_asked(item.campaign), replace(posted.chosen, reason=form.cleaned_data["reason"]))
        return _decide_page(request, item, None, None, problem=problem, yours=yours, status=409)
    return redirect("decide_next", item.campaign_id)


def _decide_page(
    request: SignedIn,
    item: Item,
    chosen: Chosen | None,
    form: ReasonForm | None,
    *,
    problem: str = "",
    missing: Sequence[str] = (),
    yours: str = "",
    status: int = 400,
) -> HttpResponse:
    """With what was just sent, or with what is stored."""
    case, stored = case_of(item), decision_of(item)
    if chosen is None or form is None:
        chosen, form = stored.chosen, ReasonForm(initial={"reason": stored.chosen.reason})
    waiting = items_to_decide(item.campaign, counted_only=False)
    context = {
        "seen": stored.digest if status == 409 or request.method != "POST" else request.POST.get("seen", ""),
        "yours": yours,
        "left": len(waiting),
        "waits": item.pk in waiting,
        "before": _decided_before(item),
        "study": item.campaign.study,
        "campaign": item.campaign,
        "stimulus_text": item.stimulus_text,
        "display_text": item.display_text,
        "language": item.language,
        "votes": [
            {
                "criterion": tally.criterion,
                "counts": [(value_label(tally.criterion, value), n) for value, n in tally.counts],
                "not_attempts": tally.not_attempts,
                "undecided": tally.is_undecided,
            }
            for tally in case.tallies
        ],
        "rows": rows_of(case.criteria, chosen, missing),
        "is_flagged": case.is_flagged,
        "comments": case.comments,
        "not_attempt": chosen.not_attempt,
        "guideline": guideline_of(item.campaign.study_id, item.campaign.round.guideline_version or 0),
        "form": form,
        "problem": problem,
    }
    return render(request, "annotation/decide.html", context, status=status if problem else 200)


def _decided_before(item: Item) -> UUID | None:
    """The answer decided last, or before this one if it is decided itself. Two queries."""
    pks = items_decided(item.campaign)
    behind = pks[pks.index(item.pk) + 1 :] if item.pk in pks else pks
    return Item.objects.values_list("uuid", flat=True).get(pk=behind[0]) if behind else None

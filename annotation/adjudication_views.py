"""The pages of the adjudicator: how the raters voted and what they wrote, without their names."""

from collections.abc import Sequence
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotation.adjudication import adjudication_record, case_of, items_to_decide
from annotation.errors import (
    AnswerRemovedError,
    CampaignOpenError,
    NotUndecidedError,
    PlaceNotYoursError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.forms import JudgementUnreadableError, ReasonForm, posted_judgement, rows_of, value_label
from annotation.models import Item
from annotation.rater_views import ended, for_raters, not_yours, refused, removed
from annotation.selectors import Chosen, campaigns_to_adjudicate, chosen_at, guideline_of, item_to_adjudicate
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
@require_http_methods(["GET", "POST"])
def decide(request: SignedIn, item: UUID) -> HttpResponse:
    found = item_to_adjudicate(request.user, item)
    if found is None or found.campaign.adjudicator is None:
        return not_yours(request)
    if found.removed_at is not None:
        return removed(request, posted=request.method == "POST")
    if request.method == "POST":
        return _decide(request, found)
    chosen = chosen_at(
        round_id=found.campaign.round.adjudication.pk,
        answer_id=found.answer_id,
        judge_id=found.campaign.adjudicator.judge_id,
    )
    return _decide_page(request, found, chosen, ReasonForm(initial={"reason": chosen.reason}))


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
    return redirect("decide_next", item.campaign_id)


def _decide_page(
    request: SignedIn,
    item: Item,
    chosen: Chosen,
    form: ReasonForm,
    *,
    problem: str = "",
    missing: Sequence[str] = (),
) -> HttpResponse:
    case = case_of(item)
    context = {
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
    return render(request, "annotation/decide.html", context, status=400 if problem else 200)

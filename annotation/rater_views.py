"""The pages of raters and adjudicators. They know places and items, and nothing of who answered."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.errors import (
    AnswerRemovedError,
    CampaignClosedError,
    CampaignOpenError,
    NotUndecidedError,
    PlaceNotYoursError,
    PlaceStaleError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.forms import JudgementUnreadableError, ReasonForm, posted_judgement, rows_of, value_label
from annotation.models import Campaign, Item, Place
from annotation.places import adjudication_record, place_judge, place_next, place_withdraw
from annotation.selectors import (
    Chosen,
    campaign_to_rate,
    campaigns_to_adjudicate,
    chosen_at,
    criteria_asked,
    guideline_of,
    item_to_adjudicate,
    memberships_rating,
    place_before,
    place_of,
    progress_of,
    rater_at,
    rater_of,
)
from annotation.services import rater_ensure
from annotation.votes import items_undecided, tallies_of
from scoring.services import ValueOutsideScaleError
from studies.access import SignedIn

View = Callable[..., HttpResponse]


def for_raters(view: View) -> View:
    """Signed in, never cached. A judgement sent after the session ended is not lost in silence: the page says so."""

    @never_cache
    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        if request.method != "POST":
            return redirect_to_login(request.get_full_path())
        # The page that was judged can be opened again; an address that only takes posts cannot.
        match = request.resolver_match
        back = request.path if match and match.url_name in ("rate_place", "decide") else reverse("rate_home")
        context = {
            "title": _("You have been logged out"),
            "text": _("What you just sent was not saved. Log in, and you return to the same answer to choose again."),
            "link": f"{reverse('login')}?next={back}",
            "link_text": _("Log in"),
        }
        return render(request, "annotation/rate_message.html", context, status=403)

    return wrapper


def message_page(request: HttpRequest, *, title: str, text: str, status: int) -> HttpResponse:
    return render(request, "annotation/rate_message.html", {"title": title, "text": text}, status=status)


def not_yours(request: HttpRequest) -> HttpResponse:
    return message_page(
        request,
        title=_("This answer is not with you"),
        text=_(
            "The address is wrong, or the answer went to somebody else because it had been open for more than half an "
            "hour. Nothing was saved here."
        ),
        status=404,
    )


def removed(request: HttpRequest, *, posted: bool = False) -> HttpResponse:
    """Not a word of who withdrew it: a rater would learn that a person had written the text."""
    text = _("It was taken out of the campaign, and nobody judges it any more.")
    if posted:
        text += " " + _("What you just sent was not saved.")
    return message_page(
        request, title=_("This answer is no longer there"), text=text + " " + _("Go on with the others."), status=410
    )


def closed(request: HttpRequest) -> HttpResponse:
    return message_page(
        request,
        title=_("This campaign is closed"),
        text=_("It takes no more judgements; all that you saved before is kept. What you just sent was not saved."),
        status=409,
    )


def ended(request: HttpRequest) -> HttpResponse:
    return message_page(
        request,
        title=_("Your work in this study has ended"),
        text=_("A researcher has ended it. Your judgements are kept. If this is a mistake, write to them."),
        status=403,
    )


@for_raters
@require_safe
def rate_home(request: SignedIn) -> HttpResponse:
    """What waits for this person. Some queries for each campaign, whatever the number of answers."""
    waiting = []
    for member in memberships_rating(request.user).select_related("study").order_by("study__title"):
        rater = rater_of(request.user, member.study_id)
        for campaign in member.study.campaigns.filter(state=Campaign.State.OPEN).order_by("opened_at"):
            waiting.append({"campaign": campaign, "study": member.study, "progress": progress_of(campaign, rater)})
    deciding = [
        {"campaign": campaign, "study": campaign.study, "left": len(items_undecided(campaign, counted_only=False))}
        for campaign in campaigns_to_adjudicate(request.user).order_by("closed_at")
    ]
    return render(request, "annotation/rate_home.html", {"waiting": waiting, "deciding": deciding})


@for_raters
@require_POST
def rate_next(request: SignedIn, pk: int) -> HttpResponse:
    campaign = campaign_to_rate(request.user, pk)
    if campaign is None:
        return not_yours(request)
    rater = rater_ensure(user=request.user, study=campaign.study, actor=request.user)
    return _to_next(request, campaign.pk, rater.pk)


def _to_next(request: SignedIn, campaign_id: int, rater_id: int) -> HttpResponse:
    try:
        found = place_next(campaign_id=campaign_id, rater_id=rater_id)
    except CampaignClosedError:
        return closed(request)
    except RaterInactiveError:
        return ended(request)
    if found.place is not None:
        return redirect("rate_place", found.place.uuid)
    if found.later:
        messages.info(request, _("Nothing can be handed out to you now. Something may still come back: look in later."))
    else:
        messages.success(request, _("Done: nothing is left for you in this campaign. Thank you!"))
    return redirect("rate_home")


@for_raters
@require_http_methods(["GET", "POST"])
def rate_place(request: SignedIn, place: UUID) -> HttpResponse:
    if request.method == "POST":
        return _judge(request, place)
    found = place_of(request.user, place)
    if found is None:
        return not_yours(request)
    if found.campaign.state == Campaign.State.CLOSED:
        return closed(request)
    if found.state == Place.State.VOID or found.item.removed_at is not None:
        return removed(request)
    return _place_page(request, found, _stored(found))


def _judge(request: SignedIn, place_uuid: UUID) -> HttpResponse:
    rater = rater_at(request.user, place_uuid)
    if rater is None:
        return not_yours(request)
    try:
        posted = posted_judgement(request.POST)
        place = place_judge(
            place_uuid=place_uuid,
            rater_id=rater.pk,
            values=posted.chosen.values,
            not_attempt=posted.chosen.not_attempt,
            version=posted.version,
        )
    except PlaceNotYoursError:
        return not_yours(request)
    except AnswerRemovedError:
        return removed(request, posted=True)
    except CampaignClosedError:
        return closed(request)
    except RaterInactiveError:
        return ended(request)
    except PlaceStaleError:
        return _judge_again(request, place_uuid, None, _newer(), status=409)
    except ValuesMissingError as error:
        problem = _("Not saved yet: choose the marked ones.")
        return _judge_again(request, place_uuid, posted.chosen, problem, error.codes)
    except (ValueOutsideScaleError, JudgementUnreadableError):
        return _judge_again(request, place_uuid, None, _("Not saved: the page sent a value that is not on the scale."))
    return _to_next(request, place.campaign_id, rater.pk)


def _newer() -> str:
    return _(
        "Not saved: this answer was judged in another window after this page had been opened. Below is what is stored; "
        "change it here if you want."
    )


def _judge_again(
    request: SignedIn,
    place_uuid: UUID,
    chosen: Chosen | None,
    problem: str,
    missing: Sequence[str] = (),
    status: int = 400,
) -> HttpResponse:
    place = place_of(request.user, place_uuid)
    if place is None:
        return not_yours(request)
    return _place_page(request, place, chosen or _stored(place), problem=problem, missing=missing, status=status)


def _stored(place: Place) -> Chosen:
    if place.version == 0 or place.rater is None:
        return Chosen({})
    return chosen_at(round_id=place.campaign.round_id, answer_id=place.item.answer_id, judge_id=place.rater.judge_id)


def _place_page(
    request: SignedIn,
    place: Place,
    chosen: Chosen,
    *,
    problem: str = "",
    missing: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    """Six queries beside the place's and the stored judgements'."""
    context = {
        "study": place.campaign.study,
        "place": place,
        "stimulus_text": place.item.stimulus_text,
        "display_text": place.item.display_text,
        "language": place.item.language,
        "rows": rows_of(criteria_asked(place.campaign), chosen, missing),
        "not_attempt": chosen.not_attempt,
        "guideline": guideline_of(place.campaign),
        "progress": progress_of(place.campaign, place.rater),
        "before": place_before(place),
        "problem": problem,
    }
    return render(request, "annotation/rate_place.html", context, status=status)


@for_raters
@require_POST
def rate_withdraw(request: SignedIn, place: UUID) -> HttpResponse:
    rater = rater_at(request.user, place)
    if rater is None:
        return not_yours(request)
    try:
        place_withdraw(place_uuid=place, rater_id=rater.pk)
    except PlaceNotYoursError:
        return not_yours(request)
    except CampaignClosedError:
        return closed(request)
    except RaterInactiveError:
        return ended(request)
    return redirect("rate_place", place)


# --- adjudication ------------------------------------------------------------------------------------------------


@for_raters
@require_safe
def decide_next(request: SignedIn, pk: int) -> HttpResponse:
    """To the first answer that waits for this adjudicator. Writes nothing."""
    campaign = campaigns_to_adjudicate(request.user).filter(pk=pk).first()
    if campaign is None:
        return not_yours(request)
    for item_pk in items_undecided(campaign, counted_only=False)[:1]:
        return redirect("decide", Item.objects.values_list("uuid", flat=True).get(pk=item_pk))
    messages.success(request, _("Nothing is undecided in this campaign."))
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
        return message_page(
            request,
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
    tallies = tallies_of(item)
    undecided = [tally.criterion for tally in tallies if tally.is_undecided]
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
            for tally in tallies
        ],
        "rows": rows_of(undecided, chosen, missing),
        "not_attempt": chosen.not_attempt,
        "guideline": guideline_of(item.campaign),
        "form": form,
        "problem": problem,
    }
    return render(request, "annotation/decide.html", context, status=400 if problem else 200)

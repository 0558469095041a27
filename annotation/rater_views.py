"""The pages of raters. They know places and items, and nothing of who answered.

A judging page is a form that works without scripts: post, redirect, get. With its script it asks for JSON (`Accept`),
shows the next answer from what it holds already, and saves behind it; see docs/decisions/0010-judging-page.md.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotation.cards import Desk, desk_of, place_before, places_done_by, said_at, skips_of
from annotation.deciding import waiting_of
from annotation.errors import (
    AnswerRemovedError,
    CampaignClosedError,
    CommentTooLongError,
    PlaceNotYoursError,
    PlaceStaleError,
    RaterInactiveError,
    ReasonMissingError,
    ValuesMissingError,
)
from annotation.facts import facts_of
from annotation.forms import (
    CommentUnreadableError,
    JudgementUnreadableError,
    Row,
    posted_judgement,
    rows_of,
    value_label,
)
from annotation.judging import card_data, hand_data, saved_data, tally_data
from annotation.models import Campaign, Place, Rater
from annotation.places import (
    MAX_COMMENT,
    Feedback,
    Saved,
    place_judge,
    place_skip,
    place_withdraw,
)
from annotation.queue import Hand, held_cards, places_hold
from annotation.selectors import (
    Chosen,
    campaign_to_rate,
    campaigns_to_adjudicate,
    guideline_of,
    memberships_rating,
    rater_of,
    raters_ended,
)
from annotation.services import rater_ensure
from annotation.tally import tally_of
from scoring.services import ValueOutsideScaleError
from studies.access import SignedIn

View = Callable[..., HttpResponse]
PAGE = 50

SKIP_REASONS = [
    ("Digit1", "1", gettext_lazy("I cannot decide")),
    ("Digit2", "2", gettext_lazy("The words or the answer are shown wrongly")),
    ("Digit3", "3", gettext_lazy("It names or concerns somebody I know")),
    ("Digit4", "4", gettext_lazy("The text is offensive or disturbing")),
]


def wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")


def for_raters(view: View) -> View:
    """Signed in, never cached. A judgement sent after the session ended is not lost in silence: the page says so."""

    @never_cache
    @wraps(view)
    def wrapper(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            # What one person chose and this browser kept is not saved as the work of who logged in after them.
            if request.POST.get("user", str(request.user.pk)) != str(request.user.pk):
                return JsonResponse({"error": "other", "login": reverse("login")}, status=403)
            return view(request, *args, **kwargs)
        if wants_json(request):
            return JsonResponse({"error": "login", "login": reverse("login")}, status=403)
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


def refused(request: HttpRequest, code: str, *, title: str, text: str, status: int) -> HttpResponse:
    """A page that says what happened, or the same for the script."""
    if wants_json(request):
        return JsonResponse({"error": code, "message": f"{title}. {text}"}, status=status)
    return render(request, "annotation/rate_message.html", {"title": title, "text": text}, status=status)


def not_yours(request: HttpRequest) -> HttpResponse:
    return refused(
        request,
        "not_yours",
        title=_("This answer is not with you"),
        text=_(
            "The address is wrong, or the answer went to somebody else because you had done nothing for more than half "
            "an hour. Nothing was saved here."
        ),
        status=404,
    )


def removed(request: HttpRequest, *, posted: bool = False) -> HttpResponse:
    """Not a word of who withdrew it: a rater would learn that a person had written the text."""
    text = _("It was taken out of the campaign, and nobody judges it any more.")
    if posted:
        text += " " + _("What you just sent was not saved.")
    return refused(
        request,
        "removed",
        title=_("This answer is no longer there"),
        text=text + " " + _("Go on with the others."),
        status=410,
    )


def closed(request: HttpRequest, *, posted: bool = False) -> HttpResponse:
    return over(
        request,
        "closed",
        title=_("This campaign is closed"),
        text=_("It takes no more judgements; all that you saved before is kept."),
        posted=posted,
        status=409,
    )


def ended(request: HttpRequest, *, posted: bool = False) -> HttpResponse:
    return over(request, "ended", title=_("Your work in this study has ended"), text=ended_words(), posted=posted)


def ended_words() -> str:
    return _("A researcher has ended it. Your judgements are kept. If this is a mistake, write to them.")


def over(
    request: HttpRequest, code: str, *, title: str, text: str, posted: bool = False, status: int = 403
) -> HttpResponse:
    """Nothing can be judged there any more. The script shows why, and beside the answer that this one was not saved."""
    lost = _("What you just sent was not saved.") if posted else ""
    whole = f"{text} {lost}".strip()
    if wants_json(request):
        told = {"error": code, "message": f"{title}. {whole}", "over": f"{title}. {text}", "lost": lost}
        return JsonResponse(told, status=status)
    return refused(request, code, title=title, text=whole, status=status)


@for_raters
@require_safe
def rate_home(request: SignedIn) -> HttpResponse:
    """What waits for this person. Some queries for each campaign, whatever the number of answers."""
    waiting = []
    for member in memberships_rating(request.user).select_related("study").order_by("study__title"):
        rater = rater_of(request.user, member.study_id)
        for campaign in member.study.campaigns.filter(state=Campaign.State.OPEN).order_by("opened_at"):
            tally = tally_of(campaign.pk, rater.pk if rater else 0)
            outbox = f"{rater.pk}:{campaign.pk}" if rater else ""
            waiting.append({"campaign": campaign, "study": member.study, "progress": tally, "outbox": outbox})
    deciding = [
        {"campaign": campaign, "study": campaign.study, "left": waiting_of(campaign, counted_only=False)}
        for campaign in campaigns_to_adjudicate(request.user).order_by("closed_at")
    ]
    own = Rater.objects.filter(user=request.user).order_by("pk").values_list("pk", flat=True)
    context = {
        "waiting": waiting,
        "deciding": deciding,
        "ended": [rater.study for rater in raters_ended(request.user).order_by("study__title")],
        "ended_words": ended_words(),
        "own_raters": " ".join(map(str, own)),
    }
    return render(request, "annotation/rate_home.html", context)


@for_raters
@require_POST
def rate_next(request: SignedIn, pk: int) -> HttpResponse:
    campaign = campaign_to_rate(request.user, pk)
    if campaign is None:
        return ended(request) if raters_ended(request.user).filter(study__campaigns=pk) else not_yours(request)
    rater = rater_ensure(user=request.user, study=campaign.study, actor=request.user)
    try:
        hand = places_hold(campaign_id=campaign.pk, rater_id=rater.pk)
    except CampaignClosedError:
        return closed(request)
    except RaterInactiveError:
        return ended(request)
    if wants_json(request):
        return JsonResponse(hand_data(hand, tally_of(campaign.pk, rater.pk)))
    return _to_next(request, hand)


def _to_next(request: SignedIn, hand: Hand) -> HttpResponse:
    if hand.cards:
        return redirect("rate_place", hand.cards[0].place)
    if hand.later:
        messages.info(request, _("Nothing can be handed out to you now. Something may still come back: look in later."))
    else:
        messages.success(request, _("Done: nothing is left for you in this campaign. Thank you!"))
    return redirect("rate_home")


@for_raters
@require_http_methods(["GET", "HEAD", "POST"])
def rate_place(request: SignedIn, place: UUID) -> HttpResponse:
    if request.method == "POST":
        return _judge(request, place)
    found = desk_of(request.user, place)
    if found is None:
        was_theirs = raters_ended(request.user).filter(study__campaigns__places__uuid=place)
        return ended(request) if was_theirs else not_yours(request)
    if not found.is_active:
        return ended(request)
    if not found.is_open:
        return closed(request)
    if found.is_removed:
        return removed(request)
    if wants_json(request):
        tally = tally_of(found.card.campaign_id, found.rater_id)
        before = place_before(found)
        card = card_data(found.card, found.chosen)
        return JsonResponse({"card": card, "before": str(before) if before else None, "progress": tally_data(tally)})
    return _place_page(request, found, found.chosen)


def _judge(request: SignedIn, place_uuid: UUID) -> HttpResponse:
    try:
        posted = posted_judgement(request.POST)
        saved = place_judge(
            place_uuid=place_uuid,
            user_id=request.user.pk,
            values=posted.chosen.values,
            not_attempt=posted.chosen.not_attempt,
            version=posted.version,
            remark=posted.remark,
        )
    except PlaceNotYoursError:
        return not_yours(request)
    except AnswerRemovedError:
        return removed(request, posted=True)
    except CampaignClosedError:
        return closed(request, posted=True)
    except RaterInactiveError:
        return ended(request, posted=True)
    except PlaceStaleError:
        return _judge_again(request, place_uuid, "stale", None, _newer(), status=409)
    except ValuesMissingError as error:
        problem = _("Not saved yet: choose the marked ones.")
        return _judge_again(request, place_uuid, "missing", posted.chosen, problem, error.codes)
    except CommentTooLongError:
        problem = _("Not saved: the comment is longer than %(n)d characters.") % {"n": MAX_COMMENT}
        return _judge_again(request, place_uuid, "comment", posted.chosen, problem)
    except CommentUnreadableError as error:
        problem = _("Not saved: the comment holds a NUL, a character that no text has. Write it anew without it.")
        return _judge_again(request, place_uuid, "comment", error.chosen, problem)
    except (ValueOutsideScaleError, JudgementUnreadableError):
        problem = _("Not saved: the page sent a value that is not on the scale.")
        return _judge_again(request, place_uuid, "value", None, problem)
    if wants_json(request):
        return JsonResponse(saved_data(saved, request.POST.get("have", "")))
    if saved.feedback is not None:
        return _feedback_page(request, place_uuid, saved)
    return _to_next(request, saved.hand)


def _newer() -> str:
    return _(
        "Not saved: this answer was judged in another window after this page had been opened. Below is what is stored; "
        "change it here if you want."
    )


def _judge_again(
    request: SignedIn,
    place_uuid: UUID,
    code: str,
    chosen: Chosen | None,
    problem: str,
    missing: Sequence[str] = (),
    status: int = 400,
) -> HttpResponse:
    found = desk_of(request.user, place_uuid)
    if wants_json(request):
        data: dict[str, Any] = {"error": code, "message": problem, "codes": list(missing)}
        if found is not None and code == "stale":
            data["card"] = card_data(found.card, found.chosen)
        return JsonResponse(data, status=status)
    if found is None:
        return not_yours(request)
    return _place_page(request, found, chosen or found.chosen, problem=problem, missing=missing, status=status)


def _feedback_page(request: SignedIn, place_uuid: UUID, saved: Saved) -> HttpResponse:
    """Without a script: what was right about a training answer, and the way on."""
    found = desk_of(request.user, place_uuid)
    if found is None:
        return not_yours(request)
    return _place_page(request, found, found.chosen, feedback=saved.feedback)


def _place_page(
    request: SignedIn,
    desk: Desk,
    chosen: Chosen,
    *,
    problem: str = "",
    missing: Sequence[str] = (),
    status: int = 200,
    feedback: Feedback | None = None,
) -> HttpResponse:
    """Four queries beside the place's."""
    card, tally = desk.card, tally_of(desk.card.campaign_id, desk.rater_id)
    rows = rows_of(desk.facts.criteria, chosen, missing)
    held = held_cards(card.campaign_id, desk.rater_id)
    before = place_before(desk)
    context = {
        "study": desk.facts.study,  # whose data are perhaps simulated, which the page says
        "card": card,
        "title": desk.title,
        "rows": rows,
        "not_attempt": chosen.not_attempt,
        "guideline": guideline_of(desk.facts.study.pk, desk.facts.guideline_version),
        "progress": tally,
        "before": before,
        "problem": problem,
        "feedback": feedback,
        "feedback_rows": _feedback_rows(rows, feedback),
        "skip_reasons": SKIP_REASONS,
        "campaign_id": card.campaign_id,
        "max_comment": MAX_COMMENT,
        "judging": {
            "card": card_data(card, chosen),
            "ahead": [card_data(one) for one in held if one.place != card.place],
            "before": str(before) if before else None,
            "campaign": {
                "id": card.campaign_id,
                "title": desk.title,
                "home": reverse("rate_home"),
                "next": reverse("rate_next", args=[card.campaign_id]),
                "mine": reverse("rate_mine", args=[card.campaign_id]),
            },
            "rater": desk.rater_id,
            "user": request.user.pk,
            "criteria": [
                {
                    "code": row.criterion.code,
                    "question": row.criterion.question,
                    "options": [
                        {"value": one.value, "label": one.label, "code": one.code, "key": one.key}
                        for one in row.options
                    ],
                }
                for row in rows
            ],
            "progress": tally_data(tally),
        },
    }
    return render(request, "annotation/rate_place.html", context, status=status)


def _feedback_rows(rows: Sequence[Row], feedback: Feedback | None) -> list[dict[str, str]]:
    """What is right, criterion by criterion."""
    if feedback is None:
        return []
    return [
        {
            "question": row.criterion.question,
            "expected": value_label(row.criterion, feedback.expected[row.criterion.code]),
        }
        for row in rows
    ]


@for_raters
@require_POST
def rate_skip(request: SignedIn, place: UUID) -> HttpResponse:
    """Pass an answer by, with a reason."""
    reason = request.POST.get("own", "").strip() or request.POST.get("reason", "")
    try:
        saved = place_skip(place_uuid=place, user_id=request.user.pk, reason=reason.replace("\x00", ""))
    except PlaceNotYoursError:
        return not_yours(request)
    except AnswerRemovedError:
        return removed(request, posted=True)
    except CampaignClosedError:
        return closed(request, posted=True)
    except RaterInactiveError:
        return ended(request, posted=True)
    except (ReasonMissingError, CommentTooLongError):
        problem = _("Not passed by: say why, in at most %(n)d characters.") % {"n": MAX_COMMENT}
        return _judge_again(request, place, "reason", None, problem)
    if wants_json(request):
        return JsonResponse(saved_data(saved, request.POST.get("have", "")))
    return _to_next(request, saved.hand)


@for_raters
@require_POST
def rate_withdraw(request: SignedIn, place: UUID) -> HttpResponse:
    try:
        place_withdraw(place_uuid=place, user_id=request.user.pk)
    except PlaceNotYoursError:
        return not_yours(request)
    except CampaignClosedError:
        return closed(request, posted=True)
    except RaterInactiveError:
        return ended(request, posted=True)
    return redirect("rate_place", place)


@for_raters
@require_safe
def rate_mine(request: SignedIn, pk: int) -> HttpResponse:
    """What this rater has judged and passed by in a campaign, with the way back to each."""
    campaign = campaign_to_rate(request.user, pk)
    rater = rater_of(request.user, campaign.study_id) if campaign else None
    if campaign is None or rater is None:
        return ended(request) if raters_ended(request.user).filter(study__campaigns=pk) else not_yours(request)
    only = request.GET.get("only", "")
    only = only if only in ("flagged", "withdrawn", "skipped") else ""
    found = skips_of(rater, campaign) if only == "skipped" else places_done_by(rater, campaign, only)
    page = Paginator(found, PAGE).get_page(request.GET.get("page"))
    rows: list[Any] = [(row, None) for row in page]
    if only != "skipped":
        rows = _rows_said(rater, campaign, cast(list[Place], list(page)))
    context = {
        "campaign": campaign,
        "study": campaign.study,
        "only": only,
        "kinds": [
            ("", _("all")),
            ("flagged", _("flagged or with a comment")),
            ("skipped", _("passed by")),
            ("withdrawn", _("withdrawn")),
        ],
        "page": page,
        "rows": rows,
        "outbox": f"{rater.pk}:{campaign.pk}",
        "progress": tally_of(campaign.pk, rater.pk),
        "is_open": campaign.state == Campaign.State.OPEN,
    }
    return render(request, "annotation/rate_mine.html", context)


def _rows_said(rater: Rater, campaign: Campaign, places: Sequence[Place]) -> list[tuple[Place, list[tuple[str, str]]]]:
    """Each place with what was chosen there: the question and the value, in words."""
    said = said_at(rater, campaign, places)
    criteria = facts_of(campaign.pk, campaign.round_id).criteria
    rows = []
    for place in places:
        chosen = said[place.pk]
        words = [
            (criterion.question, value_label(criterion, chosen.values[criterion.code]))
            for criterion in criteria
            if criterion.code in chosen.values
        ]
        rows.append((place, [("", _("Not an attempt"))] if chosen.not_attempt else words))
    return rows

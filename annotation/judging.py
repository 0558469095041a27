"""What the script of a judging page gets: answers, progress, what a save came to."""

from typing import Any

from django.urls import reverse

from annotation.places import Feedback, Saved
from annotation.queue import Card, Hand
from annotation.selectors import Chosen
from annotation.tally import Tally


def card_data(card: Card, chosen: Chosen | None = None) -> dict[str, Any]:
    """What the script gets of one answer: gold and repeats look as all others do."""
    said = chosen or Chosen({})
    return {
        "place": str(card.place),
        "url": reverse("rate_place", args=[card.place]),
        "skip_url": reverse("rate_skip", args=[card.place]),
        "training": card.is_training,
        "stimulus": card.stimulus_text,
        "display": card.display_text,
        "language": card.language,
        "version": card.version,
        "chosen": {code: f"{value:g}" for code, value in said.values.items()},
        "not_attempt": said.not_attempt,
        "flagged": card.is_flagged,
        "comment": card.comment,
        "done": card.is_done,
        "state": card.state,
    }


def tally_data(tally: Tally) -> dict[str, Any]:
    return {"done": tally.done, "total": tally.total, "minutes": tally.minutes}


def hand_data(hand: Hand, tally: Tally, have: str = "") -> dict[str, Any]:
    known = set(have.split(","))
    return {
        "ahead": [card_data(card) for card in hand.cards if str(card.place) not in known],
        "held": [str(card.place) for card in hand.cards],
        "progress": tally_data(tally),
        "later": hand.later,
    }


def saved_data(saved: Saved, have: str) -> dict[str, Any]:
    data = hand_data(saved.hand, saved.tally, have)
    data["saved"] = {"place": str(saved.place), "version": saved.version}
    data["feedback"] = feedback_data(saved.feedback)
    return data


def feedback_data(feedback: Feedback | None) -> dict[str, Any] | None:
    if feedback is None:
        return None
    return {
        "right": feedback.is_right,
        "not_attempt": feedback.not_attempt,
        "explanation": feedback.explanation,
        "rows": [
            {
                "code": code,
                "chosen": f"{value:g}",
                "expected": f"{feedback.expected[code]:g}",
                "right": value == feedback.expected[code],
            }
            for code, value in feedback.chosen.items()
        ],
    }

"""What a campaign was asked for when it opened, in words, for its page."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.doubting_forms import doubt_words
from annotation.models import Campaign
from annotation.selectors import criteria_asked
from corpus.models import Complexity, Instrument, Respondent, Stimulus

Line = tuple[str, str]


def plan_lines(campaign: Campaign, *, blinded: bool) -> list[Line]:
    """What it is about and what was asked, in the order of the form. Four queries at most.

    To a researcher who rates: nothing of whose answers were chosen, or of what others left undecided or doubted.
    """
    asked = campaign.selection.get("asked", {})
    numbers = campaign.selection.get("numbers", {})
    lines = [*_answers(numbers, blinded=blinded), *([] if blinded else _whose(asked)), *_stimuli(asked)]
    if asked.get("only_new"):
        lines.append((_("Left out"), _("answers that an earlier campaign held")))
    lines += [
        (_("Refusals"), _("rated too") if campaign.with_refusals else _("not rated")),
        (_("Identical texts"), campaign.get_identical_display()),
        (_("Criteria"), "; ".join(one.question for one in criteria_asked(campaign))),
    ]
    return lines + (_checks(campaign, numbers) if numbers else [])


def _answers(numbers: dict[str, int], *, blinded: bool) -> list[Line]:
    """How many there were to draw from is nothing for who rates: it may be the number of all models' answers."""
    if not numbers:  # opened before Luria wrote it down, or made by an import
        return []
    words = ngettext("%(n)d answer", "%(n)d answers", numbers["answers"]) % {"n": numbers["answers"]}
    if numbers["found"] > numbers["answers"] and blinded:
        words += " · " + _("drawn at random")
    elif numbers["found"] > numbers["answers"]:
        words += " · " + _("drawn at random from %(n)d") % {"n": numbers["found"]}
    if numbers["left_out_references"]:
        words += " · " + _("without %(n)d whose right values are known") % {"n": numbers["left_out_references"]}
    return [(_("Answers"), words)]


def _whose(asked: dict[str, Any]) -> list[Line]:
    kinds = {Respondent.Kind.HUMAN.value: _("people only"), Respondent.Kind.MODEL.value: _("models only")}
    lines = []
    if asked.get("kind") in kinds:
        lines.append((_("Given by"), kinds[asked["kind"]]))
    if asked.get("sources"):
        lines.append((_("Only from"), ", ".join(asked["sources"])))
    if asked.get("undecided_in"):
        title = Campaign.objects.filter(pk=asked["undecided_in"]).values_list("title", flat=True).first()
        lines.append((_("Only what is undecided in"), title or ""))
    if asked.get("doubt"):
        lines.append((_("Only where automatic judges were in doubt"), doubt_words(asked["doubt"])))
    return lines


def _stimuli(asked: dict[str, Any]) -> list[Line]:
    lines = []
    if asked.get("instrument"):
        instrument = Instrument.objects.filter(pk=asked["instrument"]).first()
        lines.append((_("Answers of"), str(instrument or "")))
    if asked.get("complexity"):
        names = dict(Complexity.choices)
        lines.append((_("Complexity of the stimulus"), ", ".join(str(names[one]) for one in asked["complexity"])))
    if "shuffled" in asked:
        lines.append((_("Order of the given words"), _("shuffled") if asked["shuffled"] else _("as in the sentence")))
    if asked.get("stimuli"):
        positions = Stimulus.objects.filter(pk__in=asked["stimuli"]).order_by("position")
        lines.append((_("Stimuli"), ", ".join(map(str, positions.values_list("position", flat=True)))))
    return lines


def _checks(campaign: Campaign, numbers: dict[str, int]) -> list[Line]:
    lines = []
    if numbers["training"]:
        lines.append((_("Training answers"), str(numbers["training"])))
    if campaign.gold_every:
        lines.append(
            (
                _("Gold answers"),
                _("%(n)d, one after about %(every)d") % {"n": numbers["gold"], "every": campaign.gold_every},
            )
        )
    if numbers["repeats"]:
        lines.append(
            (
                _("Repeated answers"),
                _("%(n)d, after %(distance)d others at least")
                % {"n": numbers["repeats"], "distance": campaign.repeat_distance},
            )
        )
    return lines or [(_("Checks"), _("none"))]

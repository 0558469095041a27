"""A model judge beside the raters: what it said of answers whose labels are known. Joins what the layers below hold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from annotation.models import Campaign, Item, Purpose
from corpus.models import Instrument, Respondent
from llmruns.judge_prompts import judged_criteria
from llmruns.models import Judging, ModelJudge
from scoring.concordance import Concordance, concordance
from scoring.models import Criterion, Judgement
from scoring.selectors import labels_of
from studies.models import Study

BY_RATERS = {"adjudication", "majority", "not_attempt"}  # a label that is a rule's says nothing of a judge
GROUPS = ("all", "people", "models", "own")
COLUMNS = (
    "study",
    "simulated",
    "answer",
    "position",
    "respondent_kind",
    "source",
    "self_judged",
    "judge",
    "criterion",
    "value",
    "label",
    "label_basis",
    "votes",
    "judged_at",
    "shared_from",
)


class CampaignAnswers:
    """The answers of campaigns, for llmruns.judge_views, which cannot ask for them itself."""

    def choices(self, study: Study) -> list[tuple[int, str]]:
        """One query."""
        return list(Campaign.objects.filter(study=study).order_by("-pk").values_list("pk", "title"))

    def answer_ids(self, study: Study, pk: int) -> list[int]:
        """Those that are rated, not those that train or check raters. One query."""
        items = Item.objects.filter(campaign=pk, campaign__study=study, purpose=Purpose.RATING, removed_at=None)
        return list(items.values_list("answer_id", flat=True))


@dataclass(frozen=True, slots=True)
class Said:
    """One judgement of the model, with the label that the raters' judgements come to, if they come to one."""

    blind_id: UUID
    position: int
    kind: str
    source: str
    is_own: bool
    criterion: Criterion
    value: float
    made_at: Any
    shared_from: UUID | None
    label: float | None
    basis: str  # empty where the label is not to be shown: an open campaign holds the answer
    votes: int | None


@dataclass(frozen=True)
class Figures:
    criterion: Criterion
    groups: dict[str, Concordance]  # by GROUPS

    @property
    def whole(self) -> Concordance:
        return self.groups["all"]

    @property
    def confusion(self) -> list[tuple[float, tuple[int, ...]]]:
        """A row for each label: how often the judge gave which value."""
        return list(zip(self.whole.scale, self.whole.counts, strict=True))


@dataclass(frozen=True)
class JudgingAgreement:
    figures: list[Figures]
    answers: int  # judged
    compared: int  # of them with a label by raters on at least one criterion
    in_open_campaigns: int  # left out while raters work on them
    own: int  # judged answers that the judge itself has given


def said_by(judging: Judging) -> list[Said]:
    """Every live judgement of the judging, by answer. Eight queries.

    While a campaign is open, the labels of its answers stay out: they are not made yet.
    """
    own = judging.model_judge.config.respondent_id
    rows = list(
        Judgement.objects.filter(round=judging.round_id, retracted_at__isnull=True)
        .exclude(answer__sitting__standing="withdrawn")
        .order_by("answer__stimulus__position", "answer_id", "criterion__position")
        .values_list(
            "answer_id",
            "answer__blind_id",
            "answer__stimulus__position",
            "answer__sitting__respondent__kind",
            "answer__sitting__source_label",
            "answer__sitting__respondent_id",
            "criterion_id",
            "value",
            "made_at",
            "shared_from__answer__blind_id",
        )
    )
    labels = _labels(judging, {row[0] for row in rows})
    busy = open_answers(judging.study, {row[0] for row in rows})
    criteria = {one.pk: one for one in judged_criteria(judging.model_judge.rubric)}
    found = []
    for answer, blind, position, kind, source, respondent, criterion, value, made_at, shared in rows:
        label = None if answer in busy else labels.get((answer, criterion))
        found.append(
            Said(
                blind,
                position,
                kind,
                source,
                respondent == own,
                criteria[criterion],
                value,
                made_at,
                shared,
                label.value if label else None,
                label.basis if label else "",
                label.votes if label else None,
            )
        )
    return found


def _labels(judging: Judging, answers: set[int]) -> dict[tuple[int, int], Any]:
    instruments = Instrument.objects.filter(sittings__answers__in=answers).distinct()
    found = {}
    for instrument in instruments:  # one: a judging chooses among the answers of one
        labels = labels_of(instrument=instrument, rubric=judging.model_judge.rubric, answer_ids=list(answers))
        for one in labels.answers:
            for criterion, label in zip(labels.criteria, one.labels, strict=True):
                found[one.pk, criterion.pk] = label
    return found


def open_answers(study: Study, answers: Iterable[int]) -> set[int]:
    """Of these answers those that raters of an open campaign have before them. One query."""
    items = Item.objects.filter(
        campaign__study=study, campaign__state=Campaign.State.OPEN, purpose=Purpose.RATING, answer__in=list(answers)
    )
    return set(items.values_list("answer_id", flat=True))


def agreement_of(judging: Judging, said: Sequence[Said]) -> JudgingAgreement:
    """Per criterion, over all answers with a label by raters, and over people's, models' and the judge's own apart.

    Every answer counts, as in the labels, whether or not it shares its text with another. One query.
    """
    criteria = judged_criteria(judging.model_judge.rubric)
    figures = [Figures(one, {group: _figure(said, one, group) for group in GROUPS}) for one in criteria]
    judged = {one.blind_id for one in said}
    return JudgingAgreement(
        figures=figures,
        answers=len(judged),
        compared=len({one.blind_id for one in said if one.basis in BY_RATERS}),
        in_open_campaigns=len({one.blind_id for one in said if not one.basis}),
        own=len({one.blind_id for one in said if one.is_own}),
    )


def _belongs(one: Said, group: str) -> bool:
    if group == "own":
        return one.is_own
    kinds = {"people": Respondent.Kind.HUMAN, "models": Respondent.Kind.MODEL}
    return group == "all" or one.kind == kinds[group]


def _figure(said: Sequence[Said], criterion: Criterion, group: str) -> Concordance:
    pairs = [
        (one.label, one.value)
        for one in said
        if one.criterion.pk == criterion.pk
        and one.basis in BY_RATERS
        and one.label is not None
        and _belongs(one, group)
    ]
    return concordance(pairs, criterion.scale)


def rows_of(judging: Judging, said: Iterable[Said]) -> Iterable[Sequence[Any]]:
    study, name = judging.study, judge_name(judging.model_judge)
    for one in said:
        head = [study.slug, study.simulated, one.blind_id, one.position, one.kind, one.source, one.is_own, name]
        yield [
            *head,
            one.criterion.code,
            one.value,
            one.label,
            one.basis or None,
            one.votes,
            one.made_at,
            one.shared_from,
        ]


def judge_name(judge: ModelJudge) -> str:
    return f"{judge.config.label} · {judge.prompt}"


def model_judge_names(study: Study) -> dict[int, str]:
    """By judge. One query."""
    judges = ModelJudge.objects.filter(config__study=study).select_related("config", "prompt")
    return {one.judge_id: judge_name(one) for one in judges}

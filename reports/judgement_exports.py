"""Files of what raters did: judgements with their history, places, answers passed by. For researchers, by pseudonym.

What raters wrote is in them: they are no part of a public release.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from annotation.models import Place, Skip
from corpus.models import Sitting
from scoring.models import Judgement
from studies.models import Study

CHUNK = 2_000
Rows = Iterator[Sequence[Any]]
STUDY = ("study", "simulated")
PLACES = (
    *STUDY,
    "answer",
    "position",
    "campaign",
    "purpose",
    "rater",
    "state",
    "ordinal",
    "seconds",
    "flagged",
    "comment",
    "held_at",
    "done_at",
)
SKIPS = (*STUDY, "answer", "position", "campaign", "rater", "reason", "made_at", "undone_at")


def judged_ever(study: Study) -> QuerySet[Judgement]:
    """Live ones and those that were withdrawn or replaced."""
    found = Judgement.objects.filter(round__study=study, answer__sitting__instrument__study=study)
    return found.exclude(answer__sitting__standing=Sitting.Standing.WITHDRAWN)


def judgement_rows_of(
    study: Study, judgements: QuerySet[Judgement], names: Mapping[int, str], *, history: bool = False
) -> Rows:
    rows = judgements.order_by("pk").values_list(
        "answer__blind_id",
        "answer__stimulus__position",
        "answer__sitting__standing",
        "round_id",
        "round__purpose",
        "judge_id",
        "judge__kind",
        "criterion__code",
        "value",
        "not_attempt",
        "confidence",
        "reason",
        "made_at",
        "shared_from__answer__blind_id",
        "retracted_at",
        "judge__rule__code",
    )
    for *row, judge, kind, code, value, mark, confidence, reason, made, shared, retracted, rule in rows.iterator(
        chunk_size=CHUNK
    ):
        name = names.get(judge) or rule or f"{kind}-{judge}"
        cells = [
            study.slug,
            study.simulated,
            *row,
            name,
            kind,
            code,
            value,
            mark,
            confidence,
            reason or None,
            made,
            shared,
        ]
        yield [*cells, retracted] if history else cells


def places_of(study: Study) -> QuerySet[Place]:
    found = Place.objects.filter(campaign__study=study, state__in=[Place.State.DONE, Place.State.WITHDRAWN])
    return found.exclude(item__answer__sitting__standing=Sitting.Standing.WITHDRAWN)


def place_rows(study: Study) -> Rows:
    rows = (
        places_of(study)
        .order_by("campaign_id", "pk")
        .values_list(
            "item__answer__blind_id",
            "item__answer__stimulus__position",
            "campaign_id",
            "purpose",
            "rater__pseudonym",
            "state",
            "ordinal",
            "seconds",
            "is_flagged",
            "comment",
            "held_at",
            "done_at",
        )
    )
    for *row, comment, held_at, done_at in rows.iterator(chunk_size=CHUNK):
        yield [study.slug, study.simulated, *row, comment or None, held_at, done_at]


def skips_of(study: Study) -> QuerySet[Skip]:
    return Skip.objects.filter(campaign__study=study).exclude(
        item__answer__sitting__standing=Sitting.Standing.WITHDRAWN
    )


def skip_rows(study: Study) -> Rows:
    rows = (
        skips_of(study)
        .order_by("pk")
        .values_list(
            "item__answer__blind_id",
            "item__answer__stimulus__position",
            "campaign_id",
            "rater__pseudonym",
            "reason",
            "made_at",
            "undone_at",
        )
    )
    for row in rows.iterator(chunk_size=CHUNK):
        yield [study.slug, study.simulated, *row]

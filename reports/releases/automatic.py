"""Who judged, and of classifiers all that is known of them but their weights."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import PurePosixPath
from typing import Any

from django.db.models import Max, Min

from corpus.models import Stimulus
from reports.models import ReleaseImport
from reports.releases.facts import Facts
from reports.releases.layout import TABLES
from scoring.bases import AUTOMATIC
from scoring.models import Classifier, Judgement, SplitSide

Row = Sequence[Any]
OF_CLASSIFIER = tuple(column.name for column in TABLES["judges"].columns if column.since > 1)


def judge_rows(facts: Facts) -> Iterator[Row]:
    days = _days(facts)
    held_out = _held_out(facts)
    for one in facts.judging:
        asked = facts.model_judges.get(one.pk)
        trained = facts.classifiers.get(one.pk)
        told = _classifier(facts, trained, held_out) if trained else {}
        first, last = days.get(one.pk, (None, None))
        told |= {"judged_from": first, "judged_until": last}
        yield [
            facts.judges[one.pk],
            one.kind,
            asked and asked.config.label,
            asked and asked.prompt.slug,
            asked and asked.prompt.version,
            *(told.get(name) for name in OF_CLASSIFIER),
        ]


def _classifier(facts: Facts, one: Classifier, held_out: dict[int, list[Any]]) -> dict[str, Any]:
    base = _without_folder(one.base_model)
    return {
        "title": title_of(one),
        "recipe": one.recipe,
        "base_model": base or None,
        "criteria": codes_of(one),
        "parameters": {name: value for name, value in one.parameters.items() if name != "held_out"},
        "held_out": [held_out[pk] for pk in one.parameters.get("held_out", ()) if pk in held_out],
        "split": facts.splits[one.split_id],
        "n_train": one.n_train,
        "data_sha256": one.data_hash or None,
        "weights_sha256": one.weights_hash,
        "trained_on": one.finished_at and one.finished_at.date(),
    }


def codes_of(one: Classifier) -> list[str]:
    """Of the criteria that it judges, in the rubric's order. No query where they were fetched."""
    return [criterion.code for criterion in sorted(one.criteria.all(), key=lambda its: its.position)]


def title_of(one: Classifier) -> str:
    """As everybody may read it; the default title names the base model."""
    return one.title.replace(one.base_model, _without_folder(one.base_model)) if one.base_model else one.title


def _without_folder(base_model: str) -> str:
    """A base model in a folder of this machine by its last name alone: where it lies is nobody's business."""
    return PurePosixPath(base_model).name if base_model.startswith(("/", "~")) else base_model


def _held_out(facts: Facts) -> dict[int, list[Any]]:
    """The stimuli that some classifier was kept from, as they are named in a release. One query."""
    wanted = {pk for one in facts.classifiers.values() for pk in one.parameters.get("held_out", ())}
    rows = Stimulus.objects.filter(pk__in=wanted, instrument__in=facts.instruments)
    named = rows.values_list("pk", "instrument__slug", "instrument__version", "position")
    return {pk: [slug, version, position] for pk, slug, version, position in named}


def _days(facts: Facts) -> dict[int, tuple[date, date]]:
    """The first and the last day on which each automatic judge judged, all answers together. Two queries.

    Not of each judgement: a classifier that judges what comes in would tell on which day who took part. What came with
    an import has the import's time, which says nothing.
    """
    judged = Judgement.objects.filter(round__in=facts.rounds, judge__kind__in=AUTOMATIC, retracted_at__isnull=True)
    made = ReleaseImport.objects.filter(study=facts.study).first()
    if made is not None:
        judged = judged.filter(made_at__gt=made.made_at)
    rows = judged.order_by().values_list("judge").annotate(first=Min("made_at"), last=Max("made_at"))
    return {judge: (first.date(), last.date()) for judge, first, last in rows}


def split_rows(facts: Facts) -> Iterator[Row]:
    splits = {one.split_id: one.split for one in facts.classifiers.values()}
    for pk, number in facts.splits.items():
        trains = list(SplitSide.objects.filter(split=pk).values_list("trains", flat=True))
        yield [number, splits[pk].seed, splits[pk].fraction, sum(trains), len(trains) - sum(trains)]


def side_rows(facts: Facts) -> Iterator[Row]:
    """In the order of the numbers that stand in the files."""
    for pk, number in facts.splits.items():
        rows = SplitSide.objects.filter(split=pk, respondent__in=facts.people)
        named = rows.values_list("respondent__public_id", "trains")
        for respondent, trains in sorted((facts.alias.of(public_id), trains) for public_id, trains in named):
            yield [number, respondent, "train" if trains else "test"]

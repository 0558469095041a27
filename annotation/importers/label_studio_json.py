"""Label Studio's JSON: a list of tasks, each with its annotations, and each of those with a result per control."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from annotation.importers.documents import elements, text_of
from annotation.importers.plan import Chosen, Raw, Reading, Source
from annotation.importers.settings import Settings
from annotation.importers.values import chosen_in, person, plain, seconds_in
from corpus.tables.faults import FaultError

NAME = "label_studio_json"


def recognises(first: Any) -> bool:
    """By the first element of the file's list."""
    return isinstance(first, dict) and "annotations" in first and "data" in first


def read(source: Source, settings: Settings) -> Reading:
    """Drafts and predictions are no judgements: they are counted and left alone."""
    text, encoding = text_of(source.data, settings.encoding)
    counts: Counter[str] = Counter()
    escaped: set[int] = set()
    return Reading(NAME, encoding, None, _annotations(text, settings, counts, escaped), counts=counts, escaped=escaped)


def _annotations(text: str, settings: Settings, counts: Counter[str], escaped: set[int]) -> Iterator[Raw]:
    for number, task in elements(text, escaped):
        if not isinstance(task, dict) or not isinstance(task.get("annotations"), list):
            raise FaultError("not_an_export", detail=str(number))
        counts["tasks"] += 1
        for name in ("drafts", "predictions"):
            if isinstance(task.get(name), list):
                counts[name] += len(task[name])
        data = task.get("data")
        data = data if isinstance(data, dict) else {}
        if not task["annotations"]:
            counts["tasks_without_annotation"] += 1
        for annotation in task["annotations"]:
            counts["annotations"] += 1
            yield _annotation(number, data, annotation, settings)


def _annotation(number: int, data: dict[str, Any], annotation: Any, settings: Settings) -> Raw:
    if not isinstance(annotation, dict):
        return Raw(number, data, verdicts={}, state="unreadable")
    result = annotation.get("result")
    raw = Raw(
        number,
        data,
        annotator=person(annotation.get("completed_by")),
        annotation=plain(annotation.get("id")),
        verdicts=_verdicts(result) if isinstance(result, list) else {},
        time=plain(annotation.get("updated_at")) or plain(annotation.get("created_at")),
        seconds=seconds_in(annotation.get("lead_time")),
    )
    if annotation.get("was_cancelled"):
        raw.state = "cancelled"
    elif annotation.get("ground_truth") and not settings.ground_truth:
        raw.state = "ground_truth"
    elif not result:
        raw.state = "no_annotation"
    return raw


def _verdicts(result: list[Any]) -> dict[str, Chosen]:
    """By control. Two regions of one control are two choices."""
    verdicts: dict[str, Chosen] = {}
    for region in result:
        if isinstance(region, dict) and (name := plain(region.get("from_name"))):
            chosen = _chosen(region)
            before = verdicts.get(name, ())
            verdicts[name] = None if chosen is None or before is None else before + chosen
    return verdicts


def _chosen(region: dict[str, Any]) -> Chosen:
    value = region.get("value")
    if not isinstance(value, dict) or region.get("type") not in ("choices", "rating", "number"):
        return None
    return chosen_in(value)  # of a choice within a span or box it has its place too, and is none of the answer's

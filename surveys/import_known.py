"""What the study has already: a file that is to be imported, its people under another title, people by their names."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence

from corpus.tables.table import folded
from studies.models import Study
from surveys.import_report import ImportReport
from surveys.importers.plan import Notice
from surveys.models import ImportBatch, Participant, Survey

TITLES = 5  # named in a warning; more are counted


def same_files(study: Study, report: ImportReport) -> list[tuple[int, Notice]]:
    """A warning for each batch of the study that holds one of these very files. One query per file."""
    found = []
    for number, source in enumerate(report.files):
        digest = hashlib.sha256(source.data).hexdigest()
        batches = ImportBatch.objects.filter(survey__instrument__study=study, files__contains=[{"sha256": digest}])
        for batch in batches.select_related("survey").order_by("pk"):
            told = {"batch": batch.pk, "imported_at": batch.made_at.isoformat(), "survey": batch.survey.title}
            found.append((number, Notice("same_file", told)))
    return found


def known_people(study: Study, survey: Survey | None, external_ids: Sequence[str]) -> list[tuple[int, Notice]]:
    """How many of these people are in other surveys of the study. They would be respondents once more. One query."""
    if not external_ids:
        return []
    names = {folded(name) for name in external_ids}
    others = Participant.objects.filter(survey__instrument__study=study).exclude(external_id="")
    if survey is not None:
        others = others.exclude(survey=survey)
    people: set[str] = set()
    titles: set[str] = set()
    for external_id, title in others.values_list("external_id", "survey__title"):
        if folded(external_id) in names:
            people.add(folded(external_id))
            titles.add(title)
    if not people:
        return []
    told = {
        "people": len(people),
        "of": len(names),
        "surveys": sorted(titles)[:TITLES],
        "more": max(0, len(titles) - TITLES),
    }
    return [(0, Notice("known_people", told))]


def respondents_named(study: Study, names: Collection[str]) -> dict[str, set[int]]:
    """The respondents of these folded names, as platforms call them; one name may be in several surveys. One query."""
    found: dict[str, set[int]] = defaultdict(set)
    people = Participant.objects.filter(survey__instrument__study=study).exclude(external_id="")
    for external_id, respondent_id in people.values_list("external_id", "respondent_id"):
        if (name := folded(external_id)) in names:
            found[name].add(respondent_id)
    return dict(found)

"""What stands in a release's archive, and how it comes there."""

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, BinaryIO

from django.db import connection, transaction

from corpus.models import Respondent
from reports.models import Release
from reports.releases import card
from reports.releases.archive import LINE_END, ArchiveWriter, Written, sums_text
from reports.releases.beside import codebook_sidecar, sidecar, tests_text
from reports.releases.facts import Facts
from reports.releases.layout import (
    CHANGES,
    CODEBOOK,
    DESCRIPTION,
    FORMAT,
    MANIFEST,
    README,
    SUMS,
    TABLES,
    TESTS,
    Table,
    sidecar_of,
)
from reports.releases.policy import Policy
from reports.releases.selection import left_out
from reports.releases.tables import WRITERS, Json, Row


@dataclass(frozen=True)
class Built:
    counts: dict[str, Any]
    files: list[Written]
    content_sha256: str
    people: set[int]  # respondents whose answers are in it


def release_write(release: Release, target: BinaryIO) -> Built:
    """Write the archive. Every table is of one moment; the same facts and the same release give the same bytes."""
    with snapshot():
        study = release.study
        facts = Facts(study, Policy.from_json(release.policy), release.salt)
        counts = counts_of(facts)
        about = card.About(release, facts, counts)
        writer = ArchiveWriter(target)
        writer.text(DESCRIPTION, as_json(card.description(about)))
        writer.text(README, card.readme(about))
        writer.text(CHANGES, card.changes(about))
        writer.text(CODEBOOK, codebook())
        for name, table in TABLES.items():
            writer.table(table.path, table.header, _rows(facts, table, WRITERS[name](facts)))
        writer.text(sidecar_of(CODEBOOK), as_json(codebook_sidecar()))
        for table in TABLES.values():
            writer.text(table.sidecar, as_json(sidecar(table)))
        writer.text(TESTS, tests_text(facts))
        writer.text(MANIFEST, as_json(manifest(about)))
        sums = sums_text(writer.written)
        writer.text(SUMS, sums)
        writer.close()
    return Built(counts, writer.written, hashlib.sha256(sums.encode()).hexdigest(), facts.people)


@contextmanager
def snapshot() -> Iterator[None]:
    """All queries inside see the database of one moment. Within somebody's transaction, that is theirs to see to."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def _rows(facts: Facts, table: Table, rows: Any) -> Iterator[Row]:
    head = (facts.study.slug, facts.study.simulated)
    kinds = [column.kind for column in table.columns[len(head) :]]
    for row in rows:
        yield [*head, *(_cell(value, kind) for value, kind in zip(row, kinds, strict=True))]


def _cell(value: Any, kind: str) -> Any:
    if isinstance(value, Json):
        return json.dumps(value.value, ensure_ascii=False, sort_keys=True)
    if kind == "json" and value is not None:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    return format(value, "f") if isinstance(value, Decimal) else value


def counts_of(facts: Facts) -> dict[str, Any]:
    """What is in, and how many sittings of people are not, by reason. A few queries."""
    people = [one for one in facts.sittings if one.kind == Respondent.Kind.HUMAN]
    return {
        "people": len(facts.people),
        "sittings": len(people),
        "runs": len(facts.sittings) - len(people),
        "models": len(facts.configs),
        "answers": facts.answers.count(),
        "rounds": len(facts.rounds),
        "open_campaigns": sorted(
            facts.round_numbers[pk]
            for pk, campaign in facts.campaigns.items()
            if pk == campaign.round_id and pk in facts.rounds and campaign.state == campaign.State.OPEN
        ),
        "left_out": left_out(facts.study),
    }


def codebook() -> str:
    """Every column of every file, as docs/releases.md has it."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=LINE_END)
    writer.writerow(card.CODEBOOK_HEADER)
    for table in TABLES.values():
        for column in table.columns:
            writer.writerow(
                [table.path, column.name, column.kind, "yes" if column.may_be_empty else "no", column.meaning]
            )
    return buffer.getvalue()


def manifest(about: card.About) -> dict[str, Any]:
    """What a reading installation needs to know beside the tables."""
    release, study = about.release, about.release.study
    return {
        "format": FORMAT,
        "study": {"slug": study.slug, "title": study.title, "simulated": study.simulated},
        "version": release.number,
        "made_on": release.made_at.date().isoformat(),
        "policy": Policy.from_json(release.policy).as_json(),
        "counts": about.counts,
    }


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"

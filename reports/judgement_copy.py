"""The file of judgements, written by PostgreSQL itself: a million rows, of which Python only passes the bytes on.

Byte for byte what `csvfile.stream` makes of `judgement_rows_of`, and a test compares the two.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Case, F, Func, QuerySet, TextField, Value, When
from django.db.models.functions import Cast, Coalesce, Concat, NullIf

from reports.csvfile import FLUSH_CHARACTERS, stream
from scoring.models import Judgement
from studies.models import Study

ISO = 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'


class _InUtc(Func):
    template = "(%(expressions)s AT TIME ZONE 'UTC')"


def judgement_pieces(
    study: Study,
    judgements: QuerySet[Judgement],
    names: Mapping[int, str],
    header: Sequence[str],
    *,
    history: bool = False,
) -> Iterator[bytes]:
    """The file in pieces of some 64 KB. One query; memory does not grow with the rows."""
    cells = [
        _text(Value(study.slug)),
        _truth(Value(study.simulated)),
        *_cells(names),
        *([_time("retracted_at")] * history),
    ]
    columns = [f"c{place}" for place in range(len(cells))]
    rows = judgements.order_by("pk").annotate(**dict(zip(columns, cells, strict=True))).values_list(*columns)
    sql, params = rows.query.sql_with_params()
    yield from (piece.encode() for piece in stream(header, []))
    with connection.cursor() as cursor:
        # The rows are put in their order; on disk, as little memory would have it, that takes twice as long.
        cursor.execute("SET work_mem = '64MB'")
        bare: Any = cursor.cursor
        try:
            with bare.copy(f"COPY ({sql}) TO STDOUT WITH (FORMAT csv)", params) as copy:
                yield from _pieces(copy)
        finally:
            cursor.execute("RESET work_mem")


def _pieces(rows: Iterator[Any]) -> Iterator[bytes]:
    """Each message is one row that ends in a line feed of its own."""
    buffer, size = [], 0
    for row in rows:
        buffer.append(bytes(row)[:-1])
        size += len(row)
        if size > FLUSH_CHARACTERS:
            yield b"\r\n".join(buffer) + b"\r\n"
            buffer, size = [], 0
    if buffer:
        yield b"\r\n".join(buffer) + b"\r\n"


def _cells(names: Mapping[int, str]) -> list[Any]:
    """In the order of exports.JUDGEMENTS, after the study's own two."""
    kind, number = Cast("judge__kind", TextField()), Cast("judge_id", TextField())
    named = Case(*(When(judge=judge, then=Value(name)) for judge, name in names.items()), output_field=TextField())
    judge = Coalesce(
        _text(named), _text(F("judge__rule__code")), Concat(kind, Value("-"), number, output_field=TextField())
    )
    return [
        F("answer__blind_id"),
        F("answer__stimulus__position"),
        _text(F("answer__sitting__standing")),
        F("round_id"),
        _text(F("round__purpose")),
        judge,
        kind,
        _text(F("criterion__code")),
        F("value"),
        _truth(F("not_attempt")),
        F("confidence"),
        _text(F("reason")),
        _time("made_at"),
        F("shared_from__answer__blind_id"),
    ]


def _text(expression: Any) -> Any:
    """COPY would write an empty text as two quotation marks, to tell it from none."""
    return NullIf(Cast(expression, TextField()), Value(""), output_field=TextField())


def _truth(expression: Any) -> Any:
    return Func(expression, template="(%(expressions)s)::bool::text", output_field=TextField())


def _time(field: str) -> Any:
    return Func(_InUtc(F(field)), Value(ISO), function="to_char", output_field=TextField())

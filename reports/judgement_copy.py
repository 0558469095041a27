"""The file of judgements, written by PostgreSQL itself: a million rows, of which Python only passes the bytes on.

Byte for byte what `csvfile.stream` makes of `judgement_rows_of`, and a test compares the two.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Case, F, Func, OuterRef, QuerySet, Subquery, TextField, Value, When
from django.db.models.functions import Cast, Coalesce, Concat

from reports.csvfile import cell, stream
from scoring.models import Judgement
from studies.models import Study

ISO = 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'


# Lines come from the server some hundred at a time: Python would take a second of its processor's for a million rows,
# and a format with columns of its own three quarters of one on the server. In binary nothing is escaped.
TOGETHER = """
COPY (
    SELECT string_agg(line, E'\\r\\n' ORDER BY id) FROM ({}) AS found(id, line) GROUP BY id / 500 ORDER BY id / 500
) TO STDOUT (FORMAT binary)
"""
# Looked up where a judgement is a copy: joined, the whole table would be read a second time.
SHARED = (
    Judgement.objects.filter(pk=OuterRef("shared_from"))
    .order_by()
    .annotate(whose=Cast("answer__blind_id", TextField()))
    .values("whose")
)


class _Quoted(Func):
    """A text as a cell of a CSV file."""

    function = ""
    template = (
        """CASE WHEN %(expressions)s ~ '[",\\r\\n]' """
        """THEN '"' || replace(%(expressions)s, '"', '""') || '"' ELSE %(expressions)s END"""
    )


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
        Value(f"{_quoted_here(study.slug)},{cell(study.simulated)}"),
        *_cells(names),
        *([_time("retracted_at")] * history),
    ]
    separated = [part for one in cells for part in (Value(","), one)][1:]
    line = Func(*separated, function="concat", output_field=TextField())
    sql, params = judgements.order_by().annotate(line=line).values_list("pk", "line").query.sql_with_params()
    yield from (piece.encode() for piece in stream(header, []))
    with connection.cursor() as cursor:
        # The rows are put in their order; on disk, as little memory would have it, that takes twice as long.
        cursor.execute("SET work_mem = '64MB'")
        bare: Any = cursor.cursor
        try:
            with bare.copy(TOGETHER.format(sql), params) as copy:
                for (lines,) in copy.rows():
                    yield bytes(lines) + b"\r\n"
        finally:
            cursor.execute("RESET work_mem")


def _quoted_here(text: str) -> str:
    """As a cell of a CSV file."""
    return '"{}"'.format(text.replace('"', '""')) if any(sign in text for sign in ',"\r\n') else text


def _cells(names: Mapping[int, str]) -> list[Any]:
    """In the order of exports.JUDGEMENTS, after the study's own two. Codes of our own need no quotation marks."""
    kind, number = Cast("judge__kind", TextField()), Cast("judge_id", TextField())
    known = [When(judge=judge, then=Value(_quoted_here(name))) for judge, name in names.items() if name]
    named = Case(*known, output_field=TextField())
    judge = Coalesce(
        named,
        F("judge__rule__code"),
        Concat(kind, Value("-"), number, output_field=TextField()),
        output_field=TextField(),
    )
    return [
        F("answer__blind_id"),
        F("answer__stimulus__position"),
        F("answer__sitting__standing"),
        F("round_id"),
        F("round__purpose"),
        judge,
        F("judge__kind"),
        F("criterion__code"),
        F("value"),
        Cast("not_attempt", TextField()),
        F("confidence"),
        _Quoted(F("reason"), output_field=TextField()),
        _time("made_at"),
        Case(When(shared_from__isnull=False, then=Subquery(SHARED)), output_field=TextField()),
    ]


def _time(field: str) -> Any:
    return Func(_InUtc(F(field)), Value(ISO), function="to_char", output_field=TextField())

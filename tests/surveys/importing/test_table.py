"""Encodings, separators, containers, and what is no table at all. Each file here is the project's own."""

import io
import zipfile
from datetime import UTC, datetime, timedelta, timezone

import pytest

from corpus.services import MAX_ANSWER_CHARACTERS
from corpus.tables.faults import FaultError
from corpus.tables.table import MAX_BYTES, open_table
from corpus.tables.times import iso, time_read
from corpus.tables.workbook import MAX_ROWS
from surveys.importers.plan import MAX_TEXT
from tests.surveys.importing.conftest import workbook

TEXT = 'кто;ответ\nа;«ёлка», да\nб;"две\nстроки"\n'


def cells(data: bytes, **how: str) -> list[list[str]]:
    table = open_table(data, **how)
    return [table.header, *(record.cells for record in table.records)]


def fault(data: bytes, **how: str) -> tuple[str, int | None]:
    with pytest.raises(FaultError) as error:
        cells(data, **how)
    return error.value.fault.code, error.value.fault.line


def test_the_longest_text_is_the_one_an_answer_may_have() -> None:
    assert MAX_TEXT == MAX_ANSWER_CHARACTERS


@pytest.mark.parametrize(
    ("codec", "named"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("cp1251", "cp1251"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
@pytest.mark.parametrize("with_mark", [False, True])
def test_encodings_are_recognised(codec: str, named: str, with_mark: bool) -> None:
    mark = "\ufeff".encode(codec) if with_mark and codec.startswith("utf-16") else b""
    data = mark + TEXT.encode(codec)
    assert open_table(data).encoding == named
    assert cells(data) == [["кто", "ответ"], ["а", "«ёлка», да"], ["б", "две\nстроки"]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_separators_are_recognised_by_how_the_records_fit(delimiter: str) -> None:
    header = delimiter.join(["время", "то ни ни . другой", "ещё"])
    row = delimiter.join(["1", "раз" if delimiter == "," else "раз, два, три; четыре"[:14], "х"])
    table = open_table(f"{header}\n{row}\n{row}\n".encode())
    assert table.delimiter == delimiter and len(table.header) == 3


def test_a_header_with_commas_in_a_semicolon_file() -> None:
    """Excel in Russian quotes only where there is a semicolon."""
    text = "время;но часто сгладить , что , время\n1;просто ответ\n2;ответ, с запятой\n"
    assert open_table(text.encode("cp1251")).delimiter == ";"


def test_excels_own_line_about_the_separator_is_no_header() -> None:
    table = open_table("sep=;\r\nа;б\r\n1;2\r\n".encode())
    assert table.header == ["а", "б"]
    assert [(record.number, record.line) for record in table.records] == [(1, 3)]


def test_records_are_counted_with_the_blank_ones_and_know_their_line() -> None:
    table = open_table('а,б\n"1\n1",2\n,\n\n3,4\n'.encode())
    assert [(r.number, r.line, r.is_blank) for r in table.records] == [
        (1, 2, False),
        (2, 4, True),
        (3, 5, True),
        (4, 6, False),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ("empty", None)),
        (b"  \r\n\t\n", ("empty", None)),
        ("\ufeff".encode() + b"\n\n", ("no_header", 1)),
        (b"<!DOCTYPE html>\n<html></html>", ("not_a_table", 1)),
        ("\ufeff\n <HTML lang='ru'>".encode(), ("not_a_table", 1)),
        ("<!doctype html>".encode("utf-16"), ("not_a_table", 1)),
        (b'<?xml version="1.0"?><x/>', ("not_a_table", 1)),
        (b'{"answers": []}', ("not_a_table", 1)),
        (b'[{"a": 1}]', ("not_a_table", 1)),
        (b"%PDF-1.7 ...", ("not_a_table", None)),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old excel", ("not_a_table", None)),
        (b"PK\x03\x04 not really", ("not_a_table", None)),
        (bytes(range(1, 32)) * 40, ("not_a_table", None)),
        ("а,б\n1,да\x00нет\n".encode(), ("nul", 2)),
        ('а,б\n1,да\n2,"нет'.encode(), ("truncated", 3)),
        ("а,б,в\n1,да,х\n2,не".encode(), ("truncated", 3)),
        ("а,б\n1,да\n2,нет".encode()[:-1], ("truncated", 3)),  # in the middle of a character
        ('а,б\n1,"да" нет\n'.encode(), ("bad_csv", 2)),
        ("а,б\n1,да\n2,нет, но\n".encode(), ("too_many_fields", 3)),
        ("а,б\nжёлтый,день\nслово,".encode() + b"\xff\xfe" + " ещё одно слово\n".encode(), ("undecodable", 3)),
        ("name,answer\nJürgen,schöne Grüße\n".encode("latin-1"), ("undecodable", 2)),
        (("а,б\n" + "1,2\n" * (MAX_ROWS + 1)).encode(), ("too_many_rows", MAX_ROWS + 2)),
    ],
)
def test_what_is_no_table_says_where_and_why(data: bytes, expected: tuple[str, int | None]) -> None:
    assert fault(data) == expected


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    assert fault(b"a" * (MAX_BYTES + 1)) == ("too_large", None)


def test_the_encoding_can_be_said() -> None:
    data = "name,answer\nJürgen,schöne Grüße\n".encode("latin-1")
    assert cells(data, encoding="cp1252")[1] == ["Jürgen", "schöne Grüße"]
    assert fault(data, encoding="utf-8")[0] == "undecodable"


def test_columns_of_one_name_are_told_apart_by_position() -> None:
    table = open_table("время,ответ,ответ\n1,2,3\n".encode())
    assert table.column(2) == 2 and table.column("1") == 1 and table.column(" ВРЕМЯ ") == 0
    for name, code in (("ответ", "doubled_column"), ("нет", "missing_column"), (3, "missing_column")):
        with pytest.raises(FaultError) as error:
            table.column(name)
        assert error.value.fault.code == code


# Workbooks.


def test_a_workbook() -> None:
    when = datetime(2024, 3, 5, 19, 41, 9)  # noqa: DTZ001 (a cell has no zone)
    table = open_table(workbook(["Отметка времени", "ответ", None], [when, "=как есть"[1:]], [], [when, 7.0], [], []))
    records = list(table.records)
    assert table.kind == "xlsx" and table.encoding is None and table.header == ["Отметка времени", "ответ"]
    assert [(r.number, r.is_blank, r.cells[1]) for r in records] == [
        (1, False, "как есть"),
        (2, True, ""),
        (3, False, "7"),
    ]
    assert records[0].dates == {0: when} and records[0].cells[0] == "2024-03-05 19:41:09"


def test_a_sheet_must_be_chosen_where_several_hold_something() -> None:
    data = workbook(["а", "б"], [1, 2], sheets={"Второй": [["в", "г"], [3, 4]], "Пустой": []})
    assert fault(data) == ("choose_sheet", None)
    assert cells(data, sheet="Второй") == [["в", "г"], ["3", "4"]]
    assert fault(data, sheet="Третий") == ("no_sheet", None)
    assert cells(workbook(["а", "б"], [1, 2], sheets={"Пустой": []})) == [["а", "б"], ["1", "2"]]


def test_merged_cells_are_refused_with_their_place() -> None:
    data = workbook(["а", "б"], [1, 2], [None, 3], edit=lambda book: book.active.merge_cells("A2:A3"))
    assert fault(data) == ("merged_cells", 2)


def sheet_xml(data: bytes, change) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, change(part) if name == "xl/worksheets/sheet1.xml" else part)
    return out.getvalue()


def test_formulas_give_what_they_last_came_to_and_none_is_calculated() -> None:
    data = workbook(["а", "б"], [1, "=1+1"])
    assert fault(data) == ("formula_without_value", 2)
    cached = sheet_xml(
        data, lambda part: part.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>").replace(b"<v />", b"<v>2</v>")
    )
    assert cells(cached)[1] == ["1", "2"]


def test_what_a_spreadsheet_has_spoilt_is_marked() -> None:
    day = datetime(2024, 3, 1)  # noqa: DTZ001
    (record,) = open_table(workbook(["а", "б", "в"], [day, "#REF!", "слово"])).records
    assert record.damaged == {0: "turned_into_date", 1: "spreadsheet_error"}


def test_a_sheet_that_claims_to_be_vast_is_read_by_its_rows() -> None:
    data = sheet_xml(workbook(["а", "б"], [1, 2]), lambda part: part.replace(b'ref="A1:B2"', b'ref="A1:XFD1048576"'))
    assert cells(data) == [["а", "б"], ["1", "2"]]


def test_a_row_numbered_far_below_is_refused() -> None:
    data = sheet_xml(workbook(["а", "б"], [1, 2]), lambda part: part.replace(b'<row r="2"', b'<row r="999999999"'))
    assert fault(data) == ("too_many_rows", MAX_ROWS + 1)


def bomb(size: int) -> bytes:
    return sheet_xml(workbook(["а"], [1]), lambda part: part.replace(b"</worksheet>", b" " * size + b"</worksheet>"))


def test_a_zip_bomb_is_refused_by_what_it_declares() -> None:
    data = bomb(64 * 1024 * 1024)
    assert len(data) < 200_000
    assert fault(data) == ("zip_bomb", None)


def test_a_zip_bomb_that_lies_about_its_size_is_no_workbook() -> None:
    data = bytearray(bomb(16 * 1024 * 1024))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    at = -1
    while (at := data.find(size.to_bytes(4, "little"), at + 1)) >= 0:  # in both headers
        data[at : at + 4] = (1_000).to_bytes(4, "little")
    assert fault(bytes(data)) == ("not_a_table", None)


def test_entities_in_a_workbook_are_not_expanded() -> None:
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>'
    data = sheet_xml(workbook(["а", "б"], [1, 2]), lambda part: laughs + part.replace(b"<v>1</v>", b"<v>&b;</v>"))
    assert fault(data) == ("not_a_table", None)


def test_another_archive_and_a_cut_workbook_are_no_table() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("answers.csv", "а,б\n1,2\n")
    assert fault(out.getvalue()) == ("not_a_table", None)
    assert fault(workbook(["а", "б"], [1, 2])[:-400]) == ("not_a_table", None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024/03/05 7:41:09 PM GMT+3", "2024-03-05T19:41:09+03:00"),
        ("2024/03/06 12:00:01 AM GMT+3", "2024-03-06T00:00:01+03:00"),
        ("2024/03/06 12:00:01 PM GMT-3:30", "2024-03-06T12:00:01-03:30"),
        ("2024/03/05 7:41:09 ПП GMT+3", "2024-03-05T19:41:09+03:00"),
        ("2024/03/05 7:41:09\u202fPM MSK", "2024-03-05T19:41:09+03:00"),
        ("2024/03/05 7:41:09 PM EST", "2024-03-05T19:41:09"),  # two zones have that name
        ("05.03.2024 19:41:09", "2024-03-05T19:41:09"),
        ("06.03.2024 8:05:41", "2024-03-06T08:05:41"),
        ("11.04.2024 10:00", "2024-04-11T10:00:00"),
        ("2024-03-12T09:00:04.118", "2024-03-12T09:00:04.118"),
        ("2024-06-01T10:00:00.179000Z", "2024-06-01T10:00:00.179+00:00"),
        ("2024-03-12 09:00", "2024-03-12T09:00:00"),
        ("25/03/2024 10:00:00", "2024-03-25T10:00:00"),
        ("3/25/2024 10:00:00", "2024-03-25T10:00:00"),
        ("05/03/2024 10:00:00", None),  # March or May
        ("05.13.2024 10:00:00", None),
        ("2024/03/05 13:00:00 PM", None),
        ("31.02.2024", None),
        ("вчера", None),
        ("05.03.24 10:00", None),
        ("", None),
    ],
)
def test_times(text: str, expected: str | None) -> None:
    moment = time_read(text)
    assert (iso(moment) if moment else None) == expected


def test_the_order_of_day_and_month_can_be_said() -> None:
    assert time_read("05/03/2024", "day_first").month == 3
    assert time_read("05/03/2024", "month_first").month == 5
    assert time_read("2024/03/05 7:41:09 PM GMT+3").astimezone(UTC) == datetime(
        2024, 3, 5, 19, 41, 9, tzinfo=timezone(timedelta(hours=3))
    )

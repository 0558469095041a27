"""What is wrong with a file of rows, in sentences. The codes are those of the importers' `--json`."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

# %(detail)s is plain text from the file.
FAULTS = {
    "too_large": gettext_lazy("the file is larger than %(detail)s bytes; split it"),
    "empty": gettext_lazy("the file is empty"),
    "not_a_table": gettext_lazy("this is not a table (it looks like: %(detail)s); download the export again"),
    "undecodable": gettext_lazy("these are no characters of the encoding (%(detail)s); choose the right one"),
    "truncated": gettext_lazy("the file ends in the middle of a record; download it again"),
    "nul": gettext_lazy("there is a NUL character, which no text has"),
    "bad_csv": gettext_lazy("the quotation marks do not fit: %(detail)s"),
    "no_header": gettext_lazy("the first line should name the columns, and is blank"),
    "no_records": gettext_lazy("there is a header and not a single record"),
    "too_many_fields": gettext_lazy("the record has more fields than the header (%(detail)s)"),
    "short_record": gettext_lazy("record %(detail)s ends before a column that is needed"),
    "too_many_rows": gettext_lazy("there are more than %(detail)s records; split the file"),
    "too_many_columns": gettext_lazy("there are more than %(detail)s columns; take out those that are not needed"),
    "zip_bomb": gettext_lazy("unpacked, the workbook would be far too large (%(detail)s)"),
    "merged_cells": gettext_lazy("the cells %(detail)s are merged: whose value it is cannot be said; unmerge them"),
    "choose_sheet": gettext_lazy("several sheets hold something: say which (%(detail)s)"),
    "no_sheet": gettext_lazy("there is no such sheet; there are: %(detail)s"),
    "formula_without_value": gettext_lazy(
        "the formula in %(detail)s has no calculated value; open the file in a spreadsheet and save it"
    ),
    "missing_column": gettext_lazy("there is no column “%(detail)s”"),
    "doubled_column": gettext_lazy("several columns are called “%(detail)s”: name the one by its position"),
    "missing_setting": gettext_lazy("it is not said yet which this is: %(detail)s"),
    "bad_setting": gettext_lazy("this setting cannot be: %(detail)s"),
}


def with_line(text: str, line: int | None) -> str:
    """`line 3: …`, or without a line where none is to blame."""
    return text if line is None else _("line %(line)s: %(text)s") % {"line": line, "text": text}

"""What an import of judgements says, in sentences. The codes are those of `--json` and docs/importing-judgements.md."""

from django.utils.translation import gettext_lazy, pgettext_lazy

from corpus.table_words import FAULTS as TABLE_FAULTS
from corpus.table_words import with_line
from corpus.tables.faults import Fault

# Why nothing at all can be stored; %(detail)s is plain text.
FAULTS = TABLE_FAULTS | {
    "bad_json": gettext_lazy("this is no JSON as it should be: %(detail)s"),
    "doubled_key": gettext_lazy("“%(detail)s” stands twice in one object: which of the two counts cannot be said"),
    "endless_number": gettext_lazy("a number of thousands of digits stands there, which is no judgement"),
    "archive_too_large": gettext_lazy("unpacked, the archive has more than %(detail)s MB; send its files in parts"),
    "archive_too_many": gettext_lazy("the archive holds more than %(detail)s files; send them in parts"),
    "archive_within": gettext_lazy("the archive holds an archive (%(detail)s); unpack that one and send its files"),
    "archive_empty": gettext_lazy("the archive holds no file"),
    "archive_unreadable": gettext_lazy(
        "the archive or workbook is broken, or locked with a password; unpack or unlock it yourself and send that"
    ),
    "too_deep": gettext_lazy("the values are nested too deeply"),
    "not_an_export": gettext_lazy("this is JSON, but no export of Label Studio or doccano (%(detail)s)"),
    "annotator_unknown": gettext_lazy(
        "the file does not say who annotated (%(detail)s). doccano merges the labels of all members of a project with "
        "shared annotation; nobody can tell them apart any more, so no agreement can be computed. Export a project "
        "without shared annotation: one file per member, named after them"
    ),
    "too_many_annotators": gettext_lazy(
        "the files name %(detail)s annotators: is the column that says who annotated the right one?"
    ),
    "unknown_criteria": gettext_lazy(
        "the rubric has no such criterion: %(detail)s. Say which of its criteria is meant"
    ),
    "rule_criterion": gettext_lazy("the criterion “%(detail)s” is counted by rule, not judged"),
    "doubled_criterion": gettext_lazy("several fields are the same criterion: %(detail)s"),
    "unknown_rater": gettext_lazy("the study has no such rater, or the files no such annotator: %(detail)s"),
}

# Why a record is not stored.
SKIPPED = {
    "no_annotation": gettext_lazy("nobody has judged it: nothing is chosen on any criterion"),
    "cancelled": gettext_lazy("the annotator skipped it"),
    "ground_truth": gettext_lazy("marked as ground truth: a reference, not one rater's vote"),
    "unreadable": gettext_lazy("the annotation is no object"),
    "no_annotator": gettext_lazy("the record names no annotator"),
    "unusable_annotator": gettext_lazy("the annotator's name is longer than 200 characters or cannot be stored"),
    "no_key": gettext_lazy("the record does not say which answer it judges"),
    "nothing_usable": gettext_lazy("on no criterion is there a value that can be taken"),
    "unknown_answer": gettext_lazy("no such answer in this study"),
    "ambiguous_answer": gettext_lazy("several answers of the study fit"),
    "withdrawn": gettext_lazy("the person has withdrawn their answers"),
    "practice_task": gettext_lazy("an answer to a practice task"),
    "open_sitting": gettext_lazy("the person is still answering: the text may change"),
    "no_text": gettext_lazy("there is no text: the task was declined, or there was no valid reply"),
    "other_stimulus": gettext_lazy("the answer belongs to another stimulus than the record says"),
    "other_text": gettext_lazy("the text that was judged is not the answer's text"),
    "duplicate": gettext_lazy(
        "the same person judged the same answer again: the later judgement counts, this one is kept as history"
    ),
}

# Why one criterion of a record is missing, while the rest is kept.
CONFLICTS = {
    "several_choices": gettext_lazy("several values are chosen on one criterion"),
    "unknown_value": gettext_lazy("a value that has no meaning here"),
    "outside_scale": gettext_lazy("a value that the criterion's scale has not"),
    "not_a_choice": gettext_lazy("a span, a box or another mark, and no choice"),
    "unknown_criterion": gettext_lazy("a criterion that has no counterpart here"),
    "turned_into_date": gettext_lazy("a spreadsheet has turned it into a date; what was written is lost"),
    "spreadsheet_error": gettext_lazy("a spreadsheet has replaced it by an error"),
}

WARNINGS = {
    "escaped": gettext_lazy(
        "the record holds half a character or a NUL, which cannot be stored: such are written as \\ud800 or \\u0000"
    ),
    "unknown_label": gettext_lazy("a label that has no counterpart here is left aside"),
    "time_unreadable": gettext_lazy(
        "imported, but its time could not be read or names no time zone; the time of the import stands in"
    ),
}
REASONS = SKIPPED | CONFLICTS | WARNINGS

FORMATS = {
    "label_studio_json": gettext_lazy("Label Studio: JSON"),
    "label_studio_json_min": gettext_lazy("Label Studio: JSON-MIN"),
    "label_studio_csv": gettext_lazy("Label Studio: CSV or TSV"),
    "doccano_jsonl": gettext_lazy("doccano: JSONL or JSON, a file per annotator"),
    "doccano_csv": gettext_lazy("doccano: CSV, a file per annotator"),
    "columns": pgettext_lazy("a kind of file", "Any other table: I say which column is what"),
}
SETTINGS = {
    "key": gettext_lazy("which answer a record judges"),
    "annotator": gettext_lazy("who annotated"),
    "criteria": gettext_lazy("which criteria the choices belong to"),
    "value_column": gettext_lazy("the criterion and its value, of a record per criterion"),
}


def fault_text(fault: Fault) -> str:
    detail = SETTINGS.get(fault.detail, fault.detail) if fault.code == "missing_setting" else fault.detail
    return with_line(FAULTS[fault.code] % {"detail": detail}, fault.line)


def reason_text(code: str) -> str:
    return str(REASONS.get(code, code))


def format_title(name: str) -> str:
    return str(FORMATS["columns" if name.startswith("columns") else name])

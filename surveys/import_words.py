"""What importers say, in sentences. The codes are those of `--json` and of docs/importing.md."""

from datetime import datetime

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy, pgettext_lazy

from corpus.table_words import FAULTS as TABLE_FAULTS
from corpus.table_words import with_line
from corpus.tables.faults import Fault
from surveys.importers.plan import Notice

# What is wrong with the whole file, beside what can be wrong with any; %(detail)s is plain text from it.
FAULTS = TABLE_FAULTS | {
    "instrument_incomplete": gettext_lazy("the instrument is not complete yet: %(detail)s"),
    "no_answer_columns": gettext_lazy("no column asks a stimulus of the instrument: say which column answers which"),
    "unknown_items": gettext_lazy("the instrument has no stimulus with this number: %(detail)s"),
    "doubled_item": gettext_lazy("several columns answer the same stimulus: %(detail)s"),
    "choose_instrument": gettext_lazy("the file holds several instruments: say which (%(detail)s)"),
    "choose_for_excel": gettext_lazy(
        "every text that begins with an apostrophe may be one of the file for Excel: say whether this is that file"
    ),
}

# Why a record (or one answer of it) is not stored.
REASONS = {
    "duplicate": gettext_lazy("a second answer of one person to one stimulus; the first one stays"),
    "duplicate_respondent": gettext_lazy("a second submission of one person; the first one stays"),
    "no_consent": gettext_lazy("no consent"),
    "unknown_item": gettext_lazy("the instrument has no such stimulus"),
    "practice_task": gettext_lazy("a practice task of the instrument"),
    "training_task": gettext_lazy("a training task of the platform (it shows a hint)"),
    "control_task": gettext_lazy("a control task of the platform (it has a known answer)"),
    "rejected": gettext_lazy("rejected"),
    "skipped_assignment": gettext_lazy("the person skipped the assignment"),
    "expired_assignment": gettext_lazy("the assignment expired"),
    "active_assignment": gettext_lazy("the assignment is still being done"),
    "unknown_status": gettext_lazy("a status that is not known"),
    "returned": gettext_lazy("returned by the person"),
    "timed_out": gettext_lazy("timed out"),
    "active": gettext_lazy("still under way"),
    "partially_approved": gettext_lazy("approved in part"),
    "screened_out": gettext_lazy("screened out"),
    "no_respondent": gettext_lazy("the record names nobody"),
    "unusable_respondent": gettext_lazy("the person's identifier is longer than 100 characters or holds a NUL"),
    "unknown_participant": gettext_lazy("nobody of that identifier is in the study's surveys"),
    "ambiguous_participant": gettext_lazy("the identifier is in several surveys, and the visit does not say in which"),
    "too_long": gettext_lazy("longer than 2,000 characters"),
    "unstorable_text": gettext_lazy("the text holds characters that no database can keep"),
    "turned_into_date": gettext_lazy("a spreadsheet has turned the answer into a date; what was written is lost"),
    "spreadsheet_error": gettext_lazy("a spreadsheet has replaced the answer by an error"),
    "model_answer": gettext_lazy("an answer of a model, not of a person"),
    "other_instrument": gettext_lazy("of another instrument"),
    "later_sitting": gettext_lazy("a later sitting of the same person"),
    "unknown_standing": gettext_lazy("a standing that is not known"),
    "unknown_outcome": gettext_lazy("an outcome that is not known, or text where none can be"),
    "withdrawn": gettext_lazy("the person has withdrawn; their answers do not come back"),
    "own_export": gettext_lazy("this person's answers are in this study already"),
    "conflict": gettext_lazy("another text is stored; it stays"),
    "nobody_known": gettext_lazy(
        "nobody of this file is known here, although the survey holds people from such files: if they are the same "
        "people, import nothing and choose the columns as the last time"
    ),
    "time_unreadable": gettext_lazy("stored, but its time could not be read"),
}

# What makes one doubt the whole file. It can be imported all the same.
NOTICES = {
    "other_words": gettext_lazy(
        "The words in the file are not the words of this test: %(wrong)s of %(of)s records in the column “%(column)s”. "
        "The file has, for example, “%(in_file)s”; the test has “%(in_test)s”. Is it the right instrument?"
    ),
    "other_questions": gettext_lazy(
        "The words in the file are not the words of this test: %(wrong)s of %(of)s questions. The file asks, for "
        "example, “%(in_file)s”; the test has “%(in_test)s”. Is it the right instrument, and does each column answer "
        "the stimulus that is chosen for it?"
    ),
    "consent_not_used": gettext_lazy(
        "The column “%(column)s” seems to ask for consent and is not used: everybody is imported, whatever they said "
        "(%(values)s). Say that it is the consent, and which values mean yes."
    ),
    "same_file": gettext_lazy("This very file was imported on %(date)s as “%(survey)s”."),
    "known_people": gettext_lazy(
        "%(people)s of %(of)s people are here already under another title: %(surveys)s. Imported again, each of them "
        "would be counted as a second respondent."
    ),
}

TARGETS = {
    "no_title": gettext_lazy("Say what the survey that is to hold the answers is called (at most 200 characters)."),
    "no_statement": gettext_lazy("Say how the people consented: a new survey needs that statement."),
    "other_statement": gettext_lazy(
        "The survey of this title was made with another statement of consent or another scope. People under another "
        "consent go into a survey of their own: choose another title. If these people consented as those did, leave "
        "the statement empty to add to it."
    ),
}

FORMATS = {
    "toloka": gettext_lazy("Toloka or Yandex Tasks: assignments of a pool"),
    "google_forms": gettext_lazy("Google Forms: responses"),
    "prolific": gettext_lazy("Prolific: participants of a study (no answers)"),
    "luria": gettext_lazy("Luria: answers.csv of another study"),
    "columns": pgettext_lazy("a kind of file", "Any other table: I say which column is what"),
}
SETTINGS = {
    "item_column": gettext_lazy("the number or the given words of the stimulus"),
    "answer_column": gettext_lazy("the answer"),
    "respondent_column": gettext_lazy("who answered"),
    "consent_yes": gettext_lazy("the values that mean that the person agreed"),
}


def fault_text(fault: Fault) -> str:
    """`line 3: …`, or without a line where none is to blame."""
    detail = SETTINGS.get(fault.detail, fault.detail) if fault.code == "missing_setting" else fault.detail
    return with_line(FAULTS[fault.code] % {"detail": detail}, fault.line)


def notice_text(notice: Notice) -> str:
    """A warning about the file as a whole, with its example."""
    told = dict(notice.told)
    if notice.reason == "known_people":
        told["surveys"] = "; ".join(told["surveys"]) + ("; …" if told["more"] else "")
    elif notice.reason == "consent_not_used":
        told["values"] = " / ".join(told["values"])
    elif notice.reason == "same_file":
        told["date"] = date_format(localtime(datetime.fromisoformat(told["imported_at"])), "SHORT_DATETIME_FORMAT")
    return NOTICES[notice.reason] % told


def reason_text(code: str) -> str:
    return str(REASONS.get(code, code))

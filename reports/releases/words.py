"""What people are told of releases and of archives that are refused."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from reports.releases.archive import ArchiveRefusedError

FAULTS = {
    "too_large": gettext_noop("The file is larger than a release may be (%(detail)s)."),
    "unreadable": gettext_noop("The file is no ZIP archive that can be read."),
    "bomb": gettext_noop("Unpacked, the archive is larger than a release may be (%(detail)s)."),
    "too_many": gettext_noop("The archive holds more files than a release has (%(detail)s)."),
    "no_plain_file": gettext_noop("The archive holds something that is no plain file, such as a link: %(detail)s."),
    "encrypted": gettext_noop("The archive is encrypted: %(detail)s."),
    "unexpected": gettext_noop("The archive holds a file that no release has: %(detail)s."),
    "doubled": gettext_noop("The archive holds a file twice: %(detail)s."),
    "compression": gettext_noop("The archive is packed in a way that releases are not: %(detail)s."),
    "absent": gettext_noop("The archive is no release: it lacks %(detail)s."),
    "no_sums": gettext_noop("The list of digests does not name every file of the archive once: %(detail)s."),
    "changed": gettext_noop("A file is not what the release's list of digests says: %(detail)s has been changed."),
    "no_manifest": gettext_noop("What the release says of itself cannot be read: %(detail)s."),
    "format": gettext_noop("The release is of another format (%(detail)s) than this version of Luria reads."),
    "mixed": gettext_noop("A row is of another study than the release: %(detail)s."),
    "no_utf8": gettext_noop("A file is no text in UTF-8: %(detail)s."),
    "columns": gettext_noop("A file has other columns than a release's: %(detail)s."),
    "cells": gettext_noop("A row has more or fewer cells than there are columns: %(detail)s."),
    "no_csv": gettext_noop("A file is no CSV: %(detail)s."),
    "empty": gettext_noop("A cell is empty that must not be: %(detail)s."),
    "value": gettext_noop("A value is none that can stand there: %(detail)s."),
    "reference": gettext_noop("A row names something that the release does not hold: %(detail)s."),
    "twice": gettext_noop("Two rows are about the same thing: %(detail)s."),
    "rubric": gettext_noop("The release was judged by criteria that this version of Luria does not know: %(detail)s."),
    "instrument": gettext_noop("The instrument cannot be used as it stands: %(detail)s."),
    "sitting": gettext_noop("A sitting breaks a rule that every sitting keeps: %(detail)s."),
    "scale": gettext_noop("A judgement is not on its criterion's scale: %(detail)s."),
    "sharing": gettext_noop("A copy of a judgement names an original that is not there."),
    "labels": gettext_noop("The judgements do not come to the labels that the release states: %(detail)s."),
    "scores": gettext_noop("The labels do not come to the scores that the release states: %(detail)s."),
    "rule": gettext_noop("The rows break a rule of the database: %(detail)s."),
}
LEFT_OUT = {
    "no_consent": gettext_lazy("did not agree to publication"),
    "pilot": gettext_lazy("pilot"),
    "excluded": gettext_lazy("excluded by a rule or by hand"),
    "open": gettext_lazy("still in progress"),
    "withdrawn": gettext_lazy("withdrawn"),
}


def fault_text(error: ArchiveRefusedError) -> str:
    return _(FAULTS[error.code]) % {"detail": error.detail}

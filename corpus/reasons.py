"""Why a sentence of a treebank is left out of the proposals: codes, and what they mean to a person."""

from collections.abc import Iterable

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

REASONS = {
    "length": _("the number of words lies in no band"),
    "lemma_count": _("not one lemma for each word"),
    "lemma_missing": _("a word without a lemma"),
    "lemma_doubtful": _("the dictionary knows another lemma"),
    "unknown_word": _("a word that the dictionary does not know, perhaps a typing error"),
    "direct_speech": _("direct speech or quotation marks"),
    "address": _("speaks to somebody (second person, imperative, form of address)"),
    "foreign": _("foreign word or script"),
    "rare": _("rare word"),
    "archaic": _("archaic or poetic word"),
    "name": _("name"),
    "numeral": _("numeral or digit"),
    "date": _("date, month or day of the week"),
    "sensitive": _("sensitive word"),
    "obscene": _("obscene or coarse word"),
    "colloquial": _("colloquial word or form"),
    "interjection": _("interjection, emoji or other sign"),
    "abbreviation": _("abbreviation"),
    "signs": _("brackets, colons, dashes or other signs beyond commas"),
    "spacing": _("spaces or the spelling differ between the text and its words"),
    "not_statement": _("a question or an exclamation"),
    "no_full_stop": _("does not end with a full stop: cut off, a headline or a line of verse"),
    "no_capital": _("does not begin with a capital: cut off, or carelessly written"),
    "verse": _("verse"),
    "no_predicate": _("no finite predicate: a fragment or a headline"),
    "no_subject": _("the subject is left out and only the context names it"),
    "no_object": _("the object is left out and only the context names it"),
    "elliptic": _("something is left out, broken off or listed"),
    "loose": _("clauses strung together without a conjunction, as in talk"),
    "set_phrase": _("a set phrase that falls apart when its words become lemmas"),
    "suppletive": _("a comparative that its lemma does not show (better, good)"),
    "enumeration": _("a list of four things or more, in any order"),
    "agreement": _("an attribute in another case than its noun: a fault in the sentence or its annotation"),
    "comma": _("no comma before or after a clause"),
    "begins_dependent": _("begins with a conjunction or an answer that needs what stands before"),
    "context": _("leans on the sentence before (this, there, such)"),
    "word_order": _("words of one phrase stand apart in an unusual order"),
    "repeated": _("too many of its given words are the same"),
    "duplicate": _("stands in the treebank more than once"),
    "unshufflable": _("no other order of its words is possible"),
}
"""In the order in which they are listed. The detail behind a code is the word concerned, where there is one."""


def reason_text(code: str, detail: str = "") -> str:
    text = str(REASONS[code])
    return gettext("%(reason)s: %(detail)s") % {"reason": text, "detail": detail} if detail else text


def reasons_text(reasons: Iterable[tuple[str, str]]) -> str:
    return "; ".join(reason_text(code, detail) for code, detail in reasons)

"""Why a figure is not defined, and other codes, in words."""

from django.utils.translation import gettext_lazy

REASONS = {
    "no_stimuli": gettext_lazy("there are no such stimuli"),
    "unfinished": gettext_lazy("the sitting is not finished"),
    "missing_answers": gettext_lazy("a stimulus has no answer"),
    "undecided": gettext_lazy("labels are undecided"),
    "no_sittings": gettext_lazy("nothing is finished yet"),
    "too_few": gettext_lazy("needs two or more"),
    "missing_runs": gettext_lazy("fewer runs than planned"),
    "too_many_runs": gettext_lazy("more runs than planned"),
    "incomplete_run": gettext_lazy("a run stopped for a technical reason"),
    "no_majority": gettext_lazy("no value is in most of the runs"),
    "no_votes": gettext_lazy("nobody has judged it"),
    "single_vote": gettext_lazy("only one vote"),
    "tie": gettext_lazy("votes are equal"),
    "no_rule_value": gettext_lazy("not counted yet"),
}

BASES = {
    "no_valid_reply": gettext_lazy("no reply in the required format"),
    "refusal": gettext_lazy("refusal"),
    "adjudication": gettext_lazy("adjudicated"),
    "not_attempt": gettext_lazy("not an attempt"),
    "majority": gettext_lazy("majority"),
    "rule": gettext_lazy("rule"),
    "judge": gettext_lazy("automatic judge"),
    "undecided": gettext_lazy("undecided"),
}

STATES = {
    "undecided": gettext_lazy("undecided"),
    "refusal": gettext_lazy("refusals"),
    "no_reply": gettext_lazy("no reply in the required format"),
}

CUTS = {
    ("all", ""): gettext_lazy("all stimuli"),
    ("shuffled", "no"): gettext_lazy("in order"),
    ("shuffled", "yes"): gettext_lazy("shuffled"),
    ("complexity", "easy"): gettext_lazy("easy"),
    ("complexity", "medium"): gettext_lazy("medium"),
    ("complexity", "hard"): gettext_lazy("hard"),
}

ERROR_WORDS = {
    "inserted": gettext_lazy("word inserted"),
    "missing": gettext_lazy("word left out"),
    "replaced": gettext_lazy("word replaced"),
    "left_as_given": gettext_lazy("left as given"),
    "pronoun": gettext_lazy("pronoun not changed"),
    "aspect": gettext_lazy("aspect not changed"),
    "number": gettext_lazy("number not changed"),
    "suppletion": gettext_lazy("other stem not found"),
}

FORM_FAULTS = {
    "not_given": gettext_lazy("Nothing was accepted: the stimulus does not give this word."),
    "not_a_word": gettext_lazy("Nothing was accepted: an accepted form is one word."),
    "known": gettext_lazy("This form is accepted already."),
}

CONTRAST_REASONS = {
    "no_people": gettext_lazy("no person has a score"),
    "no_band": gettext_lazy("a band has no mean"),
    "no_runs": gettext_lazy("no run has a score"),
}

EVALUATION_REASONS = {
    "no_answers": gettext_lazy("there are no such answers"),
    "one_class_true": gettext_lazy("the raters gave all answers one value"),
    "one_class_said": gettext_lazy("the judge gave all answers one value"),
    "no_confidence": gettext_lazy("the judge does not say how sure it is"),
    "no_variation": gettext_lazy("one of the two scores does not vary"),
    "too_few": gettext_lazy("fewer than three"),
}

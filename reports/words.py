"""Why a figure is not defined, in words; and the notes that travel with the results."""

from django.utils.translation import gettext as _
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


def differences(*, criteria: list[str], refusal_below: int) -> list[str]:
    """What is decided here and not in the paper; shown with every figure."""
    return [
        _("The labels are those of the raters; the paper scores models with classifiers trained on such labels."),
        _(
            "The score from 0 to 1 is S divided by the number of criteria. That the paper's 0.728 is this figure is "
            "inferred: it prints no score above 1."
        ),
        _("The criteria in the score: %(criteria)s.") % {"criteria": ", ".join(criteria)},
        _(
            "An answer of fewer than %(words)s words, or a declined one, is 0 on every criterion, and so is a model's "
            "missing reply. That is our rule: the paper keeps refusals in the data and does not say how they score."
        )
        % {"words": refusal_below},
        _("People are all counted participants; the paper's line is its 33 people of the test split (594 answers)."),
        _(
            "Bars are means over runs, comparable with single people; the paper takes each criterion by majority over "
            "the runs first, which lifts the score. That figure stands beside it in the table."
        ),
        _(
            "Whiskers are the standard deviation over a model's runs (n − 1). The band around the line is the 95 % "
            "bootstrap interval of the people's mean: the two are not the same thing and must not be compared."
        ),
        _(
            "A sitting with an undecided label has no score and is in no mean; the bounds say where the mean of all "
            "finished sittings lies."
        ),
    ]

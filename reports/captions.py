"""What is said under each figure: the basis, n, what a whisker is, and the differences from the paper."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reports.figure_contrasts import contrast_note
from reports.figures import number
from reports.panel import panel_words
from reports.selectors import Results
from scoring.formula import PeopleScore


def caption(results: Results, number: int) -> list[str]:
    """Sentences."""
    said = [_basis(results), _people(results), _models(results)]
    if number == 4:
        said += [
            _("Points: a model's mean over runs minus the people's mean; the broad lines: 95 % bootstrap intervals."),
            contrast_note(),
        ]
        return [sentence for sentence in said if sentence]
    if number == 1:
        said.append(_("Dashed line: the people's mean; the band around it: its 95 % bootstrap interval over people."))
    else:
        said.append(
            _("People are bars here; the broad bar at the end: the 95 % bootstrap interval of their mean over people.")
        )
    if results.chosen.choice.runs == "majority":
        said.append(
            _(
                "Models' bars: each criterion holds where it holds in more than half of the planned runs, as in the "
                "paper. The dot and its thin whisker with ends are the mean over runs and its standard deviation over "
                "runs (n − 1)."
            )
        )
    else:
        said.append(
            _("Models' bars: the mean over runs; the thin whisker with ends: the standard deviation over runs (n − 1).")
        )
    return [sentence for sentence in said if sentence]


def _basis(results: Results) -> str:
    text = _("Basis: %(basis)s.") % {"basis": results.chosen.basis_name}
    who = panel_words(results.chosen.panel)
    return f"{text} " + _("By criterion: %(judges)s.") % {"judges": who} if who else text


def _people(results: Results) -> str:
    score = results.people.scores[0]
    if not isinstance(score, PeopleScore):
        return ""
    text = _("People: %(people)s, n = %(n)s.") % {"people": results.chosen.people_name, "n": score.n_scored}
    without = score.n_undecided + score.n_missing
    if not without or score.bounds is None:
        return text
    more = ngettext(
        "%(n)s more has no score, and with it the mean lies between %(low)s and %(high)s.",
        "%(n)s more have no score, and with them the mean lies between %(low)s and %(high)s.",
        without,
    )
    scale = len(results.criteria)
    return f"{text} " + more % {
        "n": without,
        "low": number(score.bounds.low / scale),
        "high": number(score.bounds.high / scale),
    }


def _models(results: Results) -> str:
    counts = sorted({row.scores[0].n_scored for row in results.models})
    if not counts:
        return ""
    runs = str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    said = {"n": len(results.models), "runs": runs}
    if len(results.models) == 1:
        return _("Models: %(n)s; runs with a score: %(runs)s.") % said
    return _("Models: %(n)s; runs with a score: %(runs)s each.") % said


def differences(results: Results) -> list[str]:
    """What is decided here and not in the paper; shown with every figure."""
    criteria = [_("“%(question)s”") % {"question": results.questions[one.code]} for one in results.criteria]
    refusal_below = results.instrument.refusal_below
    choice = results.chosen.choice
    return [
        _("The labels are those of the raters; the paper scores models with classifiers trained on such labels.")
        if choice.basis.is_raters
        else _("The labels are those of %(basis)s; the paper's are of its own classifiers, one for each criterion.")
        % {"basis": results.chosen.basis_name},
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
        _("People: %(people)s; the paper's line is its 33 people of the test split (594 answers).")
        % {"people": results.chosen.people_name},
        _(
            "Bars are means over runs, comparable with single people; the paper takes each criterion by majority over "
            "the runs first, which lifts the score. That figure stands beside it in the table."
        )
        if choice.runs == "mean"
        else _(
            "Bars are the paper's majority over runs; a single person has no such second chance, so that models stand "
            "higher beside people than by their mean over runs. The paper draws its deviation over runs around the "
            "bar; here it is drawn around the mean that it belongs to."
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

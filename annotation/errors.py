"""What the services of rating refuse, each with its name. The views say it in the reader's language."""

from corpus.importing import Problem


class NotAMemberError(Exception):
    """Raters are members of the study: its raters, or researchers who rate too."""


class RaterInactiveError(Exception):
    """The rater's work in this study was ended by a researcher."""


class NothingToRateError(Exception):
    """No answer fits: none is counted, ended and more than a refusal."""


class SelectionChangedError(Exception):
    """What would be opened is no longer what the researcher was shown; `answers` says how many there are now."""

    def __init__(self, answers: int) -> None:
        super().__init__(answers)
        self.answers = answers


class JudgesSilentError(Exception):
    """What automatic judges have said cannot tell which answers are in doubt. `reason`: nobody (has judged), one_judge
    (nobody to differ from), no_confidence (nobody says how sure), neither."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TooManyPlacesError(Exception):
    """More judgements than one campaign may ask for; `places` says how many."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.places = places


class RepeatsTooFarError(Exception):
    """No rater could judge so many others before a repeat: there are only `items` in all."""

    def __init__(self, items: int) -> None:
        super().__init__(items)
        self.items = items


class CriterionUnknownError(Exception):
    """The rubric has no such criterion that raters judge; `codes` names them."""

    def __init__(self, codes: list[str]) -> None:
        super().__init__(", ".join(codes))
        self.codes = codes


class GuidelineUnknownError(Exception):
    """The study has no such version of the rules for what is judged by."""


class DeadlinePassedError(Exception):
    """A deadline lies ahead when it is set."""


class TitleTakenError(Exception):
    """An open campaign of the study has this title: perhaps the button was pressed twice."""


class CampaignClosedError(Exception):
    """The campaign takes no more judgements."""


class CampaignOpenError(Exception):
    """Adjudication begins when the campaign is closed: until then its adjudicator may be one of its raters."""


class PlaceNotYoursError(Exception):
    """The place does not exist, is another rater's, or went to another rater after lying idle."""


class AnswerRemovedError(Exception):
    """The answer is no longer in the campaign: its author has withdrawn it."""


class PlaceStaleError(Exception):
    """The page is older than what is stored, and says something else."""


class ValuesMissingError(Exception):
    """Criteria without a value; `codes` names them."""

    def __init__(self, codes: list[str]) -> None:
        super().__init__(", ".join(codes))
        self.codes = codes


class ReasonMissingError(Exception):
    """Whoever adjudicates, or passes an answer by, says why."""


class CommentTooLongError(Exception):
    """A comment or reason is longer than `annotation.places.MAX_COMMENT`."""


class NotUndecidedError(Exception):
    """The raters' majority decided this answer: there is nothing to adjudicate."""


class DecisionChangedError(Exception):
    """The answer was decided in another window after this page had been opened."""


class GuidelineUnchangedError(Exception):
    """The newest version has this very text."""


class GuidelineStaleError(Exception):
    """The rules are no longer those that the author had before them."""


class AnswerNotUsableError(Exception):
    """The answer is not one that raters could judge: withdrawn, not counted, not finished, or a refusal of a reply."""


class ReferenceExistsError(Exception):
    """The answer is a reference of this rubric already."""


class ReferenceUsedError(Exception):
    """A campaign has copied the reference: what it says is right stays as raters were told."""


class ReferenceStaleError(Exception):
    """The reference is no longer what the author of a change had before them."""


class ReferencesRefusedError(Exception):
    """Nothing of a file of references was taken. `problems` are `corpus.importing.Problem`s, all that were found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(", ".join(problem.code for problem in problems))
        self.problems = problems

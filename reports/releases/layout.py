"""The files of a release and their columns. What writes a release and what reads one both look here."""

from dataclasses import dataclass, replace
from typing import Literal

FORMAT = 3
"""Grows when a column or a file changes. What came with which format is said at each; older ones are read too."""

Kind = Literal["text", "integer", "number", "truth", "uuid", "json", "date"]


def sidecar_of(path: str) -> str:
    """As Psych-DS names the file with what is to be said of one table alone."""
    return f"{path.removesuffix('.csv')}.json"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind
    meaning: str
    may_be_empty: bool = False
    since: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    about: str
    columns: tuple[Column, ...]
    since: int = 1

    def of_format(self, number: int) -> "Table":
        """With the columns that it had in this format."""
        return replace(self, columns=tuple(column for column in self.columns if column.since <= number))

    @property
    def path(self) -> str:
        """As Psych-DS names data files: keyword-value pairs, then `_data.csv`. `description` is one of its keywords."""
        return f"data/description-{self.name}_data.csv"

    @property
    def sidecar(self) -> str:
        return sidecar_of(self.path)

    @property
    def header(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def _column(name: str, kind: Kind, meaning: str) -> Column:
    return Column(name, kind, meaning)


def _optional(name: str, kind: Kind, meaning: str, since: int = 1) -> Column:
    return Column(name, kind, meaning, may_be_empty=True, since=since)


STUDY = (
    _column("study", "text", "address of the study"),
    _column("simulated", "truth", "whether the study's data is simulated: nobody said any of it"),
)
INSTRUMENT = (
    _column("instrument", "text", "address of the instrument, the test"),
    _column("instrument_version", "integer", "its version"),
)
RESPONDENT = _column("respondent", "uuid", "a respondent's random number, made for the releases of this study alone")
SITTING = _column("sitting", "integer", "which sitting of this respondent with this instrument, from 1")
ANSWER = _column("answer", "uuid", "an answer's random number, made for the releases of this study alone")
EXPERIMENT = _optional("experiment", "integer", "number of the experiment in this release; empty for people")
RUN = _optional("run", "integer", "number of the run in the experiment; empty for people")
KIND = _column("kind", "text", "`human` or `model`")
RUBRIC = (
    _column("rubric", "text", "address of the rubric, the criteria that answers are judged by"),
    _column("rubric_version", "integer", "its version"),
)


def _table(name: str, about: str, *columns: Column, since: int = 1) -> Table:
    return Table(name, about, (*STUDY, *columns), since)


_SHA = "sha256 in hexadecimal digits"
_OF_CLASSIFIER = (
    _optional("title", "text", "of a classifier: its name in tables and figures", 2),
    _optional("recipe", "text", "of a classifier: `baseline`, `transformer`, `shared` or `acceptability`", 2),
    _optional("base_model", "text", "of a classifier: what it was made from, by its name on a hub or of its folder", 2),
    _optional("criteria", "json", "of a classifier: codes of the criteria that it judges", 2),
    _optional("parameters", "json", "of a classifier: how it was trained, with its seed", 2),
    _optional(
        "held_out", "json", "of a classifier: tasks kept from its training, as instrument, version and position", 2
    ),
    _optional("split", "integer", "of a classifier: the split by which it was trained, as in splits", 2),
    _optional(
        "n_train", "integer", "of a classifier: how many labelled answers it learned from; 0: it came trained", 2
    ),
    _optional("data_sha256", "text", f"of a classifier: of what it learned from, {_SHA}", 2),
    _optional("weights_sha256", "text", f"of a classifier: of its weights, which are not in the release, {_SHA}", 2),
    _optional("trained_on", "date", "of a classifier: the day on which its training ended", 2),
    _optional("judged_from", "date", "of a classifier or a model: the day of its first judgement, where known", 2),
    _optional("judged_until", "date", "of a classifier or a model: the day of its last judgement, where known", 2),
)


TABLES = {
    table.name: table
    for table in (
        _table(
            "instruments",
            "The tests, one row each.",
            *INSTRUMENT,
            _column("title", "text", "its title"),
            _column("language", "text", "language of the stimuli, BCP 47"),
            _column("instruction", "text", "what respondents read before they began, in Markdown"),
            _column("refusal_below", "integer", "an answer of fewer word tokens is a refusal: 0 on every criterion"),
            _column("lower_case", "truth", "whether judges were shown answers in lower case"),
            *RUBRIC,
        ),
        _table(
            "stimuli",
            "The tasks, with the sentences that they were made from.",
            *INSTRUMENT,
            _column("position", "integer", "number of the stimulus in the instrument"),
            _column("stimulus", "text", "the given words, as printed"),
            _column("original", "text", "the sentence that they come from"),
            _column("complexity", "text", "`easy`, `medium` or `hard`"),
            _column("shuffled", "truth", "whether the given words are out of order"),
            _column("is_practice", "truth", "a practice task: never rated, run or scored"),
            _optional("feedback", "text", "what a practice task says under the right answer"),
            _optional("source", "text", "treebank, sentence, licence"),
        ),
        _table(
            "forms",
            "What a given word may be beside its own forms, for the vocabulary match.",
            *INSTRUMENT,
            _column("position", "integer", "number of the stimulus in the instrument"),
            _column("given", "text", "the given word"),
            _column("form", "text", "the form that is accepted for it; a dictionary form stands for all its forms"),
            _column("retired", "truth", "whether it had been taken back when the release was made"),
        ),
        _table(
            "sittings",
            "One row for each pass of a respondent through an instrument: a person's, or one run of a model.",
            RESPONDENT,
            KIND,
            *INSTRUMENT,
            SITTING,
            _column("sitting_state", "text", "`finished`, `stopped` (ended early) or, of a model's run only, `open`"),
            _column("order", "json", "positions of the stimuli in the order in which they were presented"),
            _optional("survey", "integer", "number of the survey in this release; empty for models"),
            _optional("person", "uuid", "the same where one person, by their platform, took part in several surveys"),
            _optional("model", "text", "the model, as in models; empty for people"),
            EXPERIMENT,
            RUN,
            _optional("run_state", "text", "state of a model's run: `finished`, `incomplete`, `cancelled` and others"),
        ),
        _table(
            "answers",
            "Every released answer of people and models, as it was received.",
            ANSWER,
            RESPONDENT,
            KIND,
            *INSTRUMENT,
            SITTING,
            _column("position", "integer", "number of the stimulus in the instrument"),
            _column(
                "outcome",
                "text",
                "`given`, `declined` (the respondent said that they cannot) or `no_valid_reply` (no reply of the model "
                "had the required format)",
            ),
            _optional("text", "text", "the answer as received; empty unless `given`"),
            _optional("words", "integer", "word tokens in the text"),
            _column("refusal", "truth", "declined, or fewer words than the instrument's limit"),
            _optional(
                "duration_ms", "integer", "from the first showing to the first submission; if released, and so the next"
            ),
            _optional("first_key_ms", "integer", "from the first showing to the first key"),
            _optional("away_ms", "integer", "how long the page was hidden or another window in front"),
            _optional("pastes", "integer", "how often something was pasted"),
            _optional("pasted_characters", "integer", "how much"),
            _optional("translated", "truth", "whether the browser had translated the page"),
            _optional("device", "text", "phone, tablet or desktop, by pointer and screen"),
        ),
        _table(
            "models",
            "The configurations of models, with what was asked of them.",
            _column("model", "text", "the model's name in tables and figures"),
            _column("provider", "text", "kind of provider"),
            _column("model_requested", "text", "the model that was asked for, as the provider writes it"),
            _optional("temperature", "number", "the temperature asked for; empty: the provider's default"),
            _optional("top_p", "number", "likewise"),
            _optional("max_output_tokens", "integer", "likewise"),
            _column("extra_body", "json", "further parameters that were sent as they are"),
            _optional(
                "accepts", "json", "which parameters the model takes, where the catalogue knew; others were not sent"
            ),
        ),
        _table(
            "prices",
            "What a million tokens of these models cost, from which day on.",
            _column("provider", "text", "kind of provider"),
            _column("model_requested", "text", "as in models"),
            _column("currency", "text", "ISO 4217"),
            _column("input_million", "text", "a million input tokens, decimal"),
            _optional("cached_input_million", "text", "a million cached input tokens; empty: as other input"),
            _column("output_million", "text", "a million output tokens, reasoning among them"),
            _column("valid_from", "date", "from this day on"),
            _optional("source", "text", "where the price is from"),
        ),
        _table(
            "prompts",
            "The prompts that experiments and model judges asked with.",
            _column("prompt", "text", "name of the prompt"),
            _column("prompt_version", "integer", "its version"),
            _column("purpose", "text", "`answer`, or `judge`: of a model judge"),
            _column("text", "text", "its text; {words} was replaced by the given words, {answer} by the answer"),
        ),
        _table(
            "experiments",
            "What models were asked to do.",
            _column("experiment", "integer", "number in this release, from 1"),
            _column("title", "text", "its title"),
            *INSTRUMENT,
            _column("prompt", "text", "name of the prompt"),
            _column("prompt_version", "integer", "its version"),
            _column("runs_planned", "integer", "runs of each model; the majority is over these"),
            _column(
                "max_attempts", "integer", "replies that may miss the format before the outcome is `no_valid_reply`"
            ),
            _column("experiment_state", "text", "`running`, `paused`, `finished` or `cancelled`"),
            _column("imported", "truth", "whether its calls were made elsewhere and came in as a file"),
            _optional("launched_on", "date", "the day of its launch"),
        ),
        _table(
            "calls",
            "Requests to providers, counted: one row for each run.",
            _column("experiment", "integer", "number of the experiment in this release"),
            _column("model", "text", "the model, as in models"),
            _column("run", "integer", "number of the run"),
            _column("n_stimuli", "integer", "stimuli that were asked for"),
            _column("n_calls", "integer", "requests sent"),
            _column("n_attempts", "integer", "completed replies"),
            _column("n_first_valid", "integer", "stimuli whose first completed reply had the required format"),
            _column("n_bad_replies", "integer", "completed replies that had not"),
            _column("n_failed", "integer", "technical failures: they cost no attempt"),
            _column("n_lost", "integer", "lost, possibly billed"),
            _optional("input_tokens", "integer", "as the provider counts them; empty: not known"),
            _optional("output_tokens", "integer", "likewise"),
            _optional("cost", "text", "decimal; empty: not known of any call"),
            _optional("currency", "text", "of the cost"),
        ),
        _table(
            "criteria",
            "What answers are judged by.",
            *RUBRIC,
            _column("rubric_title", "text", "its title"),
            _column("criterion", "text", "code of the criterion"),
            _column("position", "integer", "its place"),
            _column("question_ru", "text", "what judges are asked, in Russian"),
            _column("question_en", "text", "the same in English"),
            _column("criterion_kind", "text", "`judged`, or `rule`: counted"),
            _column("scale", "json", "the allowed values, the best first"),
            _column("in_score", "truth", "whether it is part of the score"),
        ),
        _table(
            "rounds",
            "Rounds of judging: what belongs together.",
            _column("round", "integer", "number in this release, from 1"),
            _column("purpose", "text", "`rating`, `imported`, `adjudication`, `repeat` or `automatic`"),
            *RUBRIC,
            _optional("guideline_version", "integer", "version of the rules that raters read"),
            _optional("belongs_to", "integer", "of an adjudication or a repeat: the round that it decides or repeats"),
            _optional("criteria", "json", "codes of the criteria that raters were asked; empty: not a campaign"),
            _optional("raters_per_answer", "integer", "how many were asked for"),
            _optional(
                "identical", "text", "answers with one text judged `once` or `separately`; empty: not a campaign"
            ),
            _optional("judge", "text", "of an automatic round: whose judgements alone it holds; empty: the rules'"),
            _column("closed", "truth", "whether it was closed when the release was made"),
            _optional("labels_version", "integer", "version of the frozen labels; empty: not frozen"),
            _optional("labels_sha256", "text", "digest of the chain of frozen labels in the installation of origin"),
        ),
        _table(
            "judges",
            "Who and what judged.",
            _column("judge", "text", "a rater's pseudonym, or the name of what judged, as in judgements"),
            _column("judge_kind", "text", "`rater`, `rule`, `classifier` or `model`"),
            _optional("model", "text", "of a model judge: the model, as in models"),
            _optional("prompt", "text", "of a model judge: name of the prompt"),
            _optional("prompt_version", "integer", "of a model judge: version of the prompt"),
            *_OF_CLASSIFIER,
        ),
        _table(
            "splits",
            "How people were divided into those whom classifiers learned from and those they are measured on.",
            _column("split", "integer", "number in this release, from 1"),
            _column("seed", "integer", "what people were shuffled by"),
            _column("fraction", "number", "which share of them was to train"),
            _column("n_train", "integer", "people of the training side, released or not"),
            _column("n_test", "integer", "people of the test side, released or not"),
            since=2,
        ),
        _table(
            "sides",
            "The side of each released person; whoever came after the split is on neither.",
            _column("split", "integer", "number of the split"),
            RESPONDENT,
            _column("side", "text", "`train` or `test`"),
            since=2,
        ),
        _table(
            "judgements",
            "Every live judgement of a released answer.",
            _column("round", "integer", "number of the round in this release"),
            ANSWER,
            _column("criterion", "text", "code of the criterion"),
            _column("judge", "text", "a rater's pseudonym, or the name of what judged"),
            _column("judge_kind", "text", "`rater`, `rule`, `classifier` or `model`"),
            _column("value", "number", "the judgement, on the criterion's scale"),
            _column("not_attempt", "truth", "the rater saw no attempt at the task; the value is then 0"),
            _optional("confidence", "number", "how sure the judge was, 0 to 1, where it says so"),
            _optional(
                "shared_from", "uuid", "of a copy: the answer with the same text at which the judgement was given"
            ),
            _column(
                "order",
                "integer",
                "the judgements of one answer in the order in which they were made; the latest stands",
            ),
        ),
        _table(
            "labels",
            "What the raters' judgements come to: one row for each answer and criterion.",
            ANSWER,
            _column("criterion", "text", "code of the criterion"),
            _optional("label", "number", "the label; empty where undecided"),
            _column(
                "basis",
                "text",
                "`no_valid_reply`, `refusal`, `adjudication`, `not_attempt`, `majority`, `rule` or `undecided`",
            ),
            _optional(
                "votes",
                "integer",
                "how many raters judged it; empty where a rule counts, unless the mark *not an attempt* decided",
            ),
            _optional("votes_for", "integer", "how many of them gave the label; empty where votes is"),
            _optional("reason", "text", "why it is undecided"),
        ),
        _table(
            "scores",
            "One row for each released sitting: its score, or why it has none.",
            RESPONDENT,
            KIND,
            *INSTRUMENT,
            SITTING,
            EXPERIMENT,
            RUN,
            _column("sitting_state", "text", "as in sittings"),
            _column("n_stimuli", "integer", "stimuli of the instrument"),
            _column("n_answers", "integer", "answers of the sitting"),
            _optional("score", "number", "the mean of the points per stimulus; empty where there is none"),
            _optional("score_norm", "number", "the score over the number of criteria, 0 to 1"),
            _optional("score_low", "number", "the score if every undecided label came to 0"),
            _optional("score_high", "number", "the score if every undecided label came to the maximum"),
            _column("n_undecided", "integer", "answers with an undecided label"),
            _column("n_refusals", "integer", "answers that are refusals"),
            _column("n_no_valid_reply", "integer", "answers without a reply in the required format"),
            _optional("reason", "text", "why there is no score"),
        ),
        _table(
            "questions",
            "The questions of the questionnaires that are released.",
            _column("survey", "integer", "number of the survey in this release"),
            _column("question", "text", "code of the question"),
            _column("position", "integer", "its place"),
            _column("place", "text", "`before`, `between` or `after` the tasks"),
            _optional("after_task", "integer", "which task it follows"),
            _column("question_kind", "text", "`single`, `multiple`, `number`, `scale`, `short` or `long`"),
            _column("wording", "json", "the question by language"),
            _column("options", "json", "what could be chosen"),
            _optional("minimum", "integer", "of a number or a scale"),
            _optional("maximum", "integer", "likewise"),
            _column("end_labels", "json", "of a scale, by language"),
            _column("required", "truth", "whether it had to be answered"),
            _optional("expected", "text", "of an attention check: the right response"),
        ),
        _table(
            "responses",
            "What people answered to the released questions.",
            _column("survey", "integer", "number of the survey in this release"),
            _column("question", "text", "code of the question"),
            RESPONDENT,
            _column("response", "json", "a text, a number or several texts; null: left out"),
        ),
    )
}

DESCRIPTION = "dataset_description.json"
README = "README.md"
CHANGES = "CHANGES.md"
CODEBOOK = "data/description-codebook_data.csv"
MANIFEST = "documentation/release.json"
SUMS = "documentation/SHA256SUMS.txt"
TESTS = "materials/tests.md"
BESIDE = (sidecar_of(CODEBOOK), *(table.sidecar for table in TABLES.values()), TESTS)
"""For those who read a release elsewhere: Luria does not, and takes one that lacks them."""
TABLES_BY_FORMAT = {
    number: {name: table.of_format(number) for name, table in TABLES.items() if table.since <= number}
    for number in range(1, FORMAT + 1)
}
PATHS = (DESCRIPTION, README, CHANGES, CODEBOOK, *(table.path for table in TABLES.values()), *BESIDE, MANIFEST, SUMS)
"""Every file, in the order of the archive. The last one has the digests of all others."""
LATER_PATHS = tuple(table.path for table in TABLES.values() if table.since > 1)
"""Those that releases of an older format lack."""

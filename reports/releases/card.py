"""What a release says of itself: the data card, the list of changes, and the description that Psych-DS asks for.

In English, like the columns: a dataset leaves the installation and its reader's language is not known.
"""

from dataclasses import dataclass
from typing import Any

from reports.models import Release
from reports.releases.automatic import codes_of, title_of
from reports.releases.facts import Facts
from reports.releases.layout import CODEBOOK, MANIFEST, SUMS, TABLES, TESTS
from reports.releases.policy import Policy, Questionnaire

CODEBOOK_HEADER = ("file", "column", "type", "may_be_empty", "meaning")
CODEBOOK_COLUMNS = {
    "file": "path of the file in this dataset",
    "column": "name of the column",
    "type": "text, integer, number, truth (`true` or `false`), uuid, json or date (ISO 8601)",
    "may_be_empty": "`yes` where an empty cell is a missing value, else `no`",
    "meaning": "what stands in the column",
}
REASONS = {
    "no_consent": "did not agree to publication",
    "pilot": "only tried the survey out",
    "excluded": "left out by a written rule of the researchers",
    "open": "had not finished or left when the release was made",
    "withdrawn": "took their answers back",
}
SIMULATED = (
    "**Simulated data.** Nobody said, wrote or judged any of this: people, models and raters were made up by Luria."
)


@dataclass(frozen=True)
class About:
    release: Release
    facts: Facts
    counts: dict[str, Any]

    @property
    def policy(self) -> Policy:
        return self.facts.policy

    @property
    def title(self) -> str:
        study = self.release.study
        return f"{study.title} (simulated)" if study.simulated else study.title


def description(about: About) -> dict[str, Any]:
    """dataset_description.json: JSON-LD with the words of schema.org, every column among `variableMeasured`."""
    found: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": about.title,
        "description": _summary(about),
        "version": str(about.release.number),
        "dateCreated": about.release.made_at.date().isoformat(),
        "keywords": ["psycholinguistics", "sentence construction", "language models", "human judgement"],
        "variableMeasured": [
            {"@type": "PropertyValue", "name": name, "description": meaning}
            for name, meaning in columns_measured().items()
        ],
    }
    if about.policy.licence:
        found["license"] = about.policy.licence
    if about.policy.authors:
        authors = [name.strip() for name in about.policy.authors.split(";") if name.strip()]
        found["author"] = [{"@type": "Person", "name": name} for name in authors]
    return found


def columns_measured() -> dict[str, str]:
    """Every column of every file and what it means; where files differ, what it means in each."""
    meanings: dict[str, dict[str, list[str]]] = {}
    for table in TABLES.values():
        for column in table.columns:
            meanings.setdefault(column.name, {}).setdefault(column.meaning, []).append(table.name)
    found = {
        name: next(iter(told))
        if len(told) == 1
        else "; ".join(f"{', '.join(tables)}: {meaning}" for meaning, tables in told.items())
        for name, told in meanings.items()
    }
    return found | {name: meaning for name, meaning in CODEBOOK_COLUMNS.items() if name not in found}


def _summary(about: About) -> str:
    counts = about.counts
    begin = "Simulated data: nobody said any of it. " if about.release.study.simulated else ""
    return (
        f"{begin}Sentences that people and language models made from given words, the judgements of raters who did not "
        f"know whose they were, and the scores they come to: {counts['answers']} answers of {counts['people']} people "
        f"and of {counts['models']} models in {counts['runs']} runs."
    )


def readme(about: About) -> str:
    """The data card."""
    parts = [
        f"# {about.title}",
        SIMULATED if about.release.study.simulated else "",
        _summary(about),
        f"Version {about.release.number}, made on {about.release.made_at.date().isoformat()} by Luria. "
        + (f"Licence: {about.policy.licence}." if about.policy.licence else "No licence is given: ask the authors."),
        f"Authors: {about.policy.authors}." if about.policy.authors else "",
        "## What is in it",
        "\n".join(f"- `{table.path}`: {table.about}" for table in TABLES.values()),
        f"Every column is described in `{CODEBOOK}`. An empty cell is a missing value, never 0. Files join on "
        "`answer`, and on `respondent`, `instrument`, `instrument_version` and `sitting`. A file without "
        "rows has its header. Beside each table a `.json` of the same name says for programs what its columns mean. "
        f"`{TESTS}` has the tests as respondents read them.",
        "## Who is in it",
        _who(about),
        "## What is not in it",
        _what_not(about),
        "## How to read the figures",
        "Labels are those of the raters: the refusal rule, else the adjudicator's decision, else more than half of two "
        "or more votes, else undecided. A sitting with an undecided label has no score but bounds. With runs of a "
        "model, the published study's score is by majority over the planned runs; the mean over runs is the one to "
        "compare with single people. People stand in a random order that says nothing of when they took part.",
        _open(about),
        *_automatic(about),
        "## Checking and using it",
        f"`sha256sum -c {SUMS}` checks the files. `{MANIFEST}` says what this release holds, for programs. Luria makes "
        "a study of this archive again: `manage.py release_import FILE.zip`.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _who(about: About) -> str:
    counts = about.counts
    lines = [
        "People whose sitting counts and who agreed, apart from taking part, to the publication of their answers; of "
        "models, every run that counts. Sittings of people that are not in it:"
    ]
    out = {reason: n for reason, n in counts["left_out"].items() if n}
    lines += [f"- {n} {REASONS[reason]}" for reason, n in out.items()] or ["- none"]
    return "\n".join(lines)


def _what_not(about: About) -> str:
    lines = [
        "- names, addresses, numbers on platforms, receipt and completion codes: none of them;",
        "- when a person took part or a rater judged, and the names and notes of raters;",
        "- practice answers, earlier versions of answers, training and control answers of raters;",
        "- the text of the rules that raters read;",
        "- replies of models in full: their answers are here, and their requests are counted in "
        f"`{TABLES['calls'].path}`;",
    ]
    if not about.policy.timings:
        lines.append("- how long an answer took, pastes, time away, device: the columns are empty;")
    lines.append(
        {
            Questionnaire.NONE: "- the questionnaire;",
            Questionnaire.CLOSED: "- texts that people wrote into the questionnaire: what they chose is here;",
            Questionnaire.ALL: "- of the questionnaire nothing is left out: texts that people wrote are here.",
        }[Questionnaire(about.policy.questionnaire)]
    )
    return "\n".join(lines).removesuffix(";").removesuffix(".") + "."


def _automatic(about: About) -> list[str]:
    """The judges that are no people; nothing where there are none."""
    facts = about.facts
    lines = [
        f"- `{facts.judges[pk]}`: {title_of(one)}, a classifier ({', '.join(codes)}), trained by split "
        f"{facts.splits[one.split_id]} on {one.n_train} answers"
        for pk, one in facts.classifiers.items()
        if (codes := codes_of(one))
    ]
    lines += [
        f"- `{facts.judges[pk]}`: {one.config.label}, a language model asked by prompt {one.prompt.slug} "
        f"v{one.prompt.version}"
        for pk, one in facts.model_judges.items()
    ]
    if not lines:
        return []
    return [
        "## Automatic judges",
        "\n".join(lines),
        "Their judgements are among the others, with how sure they were; the labels and scores here are the raters'. "
        f"`{TABLES['splits'].path}` and `{TABLES['sides'].path}` say on whom a classifier was trained: on these people "
        "its figures mean little, so compare people by it on the test side alone. Weights of classifiers are not in "
        "the release, their digests are.",
    ]


def _open(about: About) -> str:
    rounds = about.counts["open_campaigns"]
    if not rounds:
        return ""
    named = ", ".join(map(str, rounds))
    return (
        f"**Rating was going on** when this release was made (round {named}): later votes may change labels and scores."
    )


def changes(about: About) -> str:
    """This version and those before it, the newest first."""
    lines = ["# Changes", ""]
    release: Release | None = about.release
    while release is not None:
        what = release.note or ("First version." if release.replaces is None else "No note.")
        lines += [f"## {release.number} ({release.made_at.date().isoformat()})", "", what, ""]
        release = release.replaces
    return "\n".join(lines)

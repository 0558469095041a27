"""What the Psych-DS validator has to say of releases that are not the easy one: see docs/releases.md.

Where LURIA_PSYCHDS_VALIDATOR names a copy of it, it is run on each; our own checks of its rules are run always.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from corpus.importing import read_stimuli
from corpus.models import Instrument
from corpus.services import instrument_create
from reports.releases import layout
from reports.releases.policy import Policy
from reports.releases.services import release_begin, release_build
from scoring.services import CHILDREN_RUBRIC
from studies.models import Study
from surveys.services import survey_create
from tests.annotation.factories import judge_all, make_campaign, make_rater
from tests.conftest import Cast
from tests.reports.releases.conftest import Released, archive_of, files_of
from tests.reports.releases.psychds import problems_of
from tests.surveys.people import make_person

VALIDATOR = os.environ.get("LURIA_PSYCHDS_VALIDATOR", "")
"""The command line program of psychds-validator, a script for node."""

TASKS = """id,task,original,complexity,shuffled
1,мальчик ловить рыба,мальчик ловит рыбу,easy,false
2,папа читать газета,папа читает газету,easy,false
"""
HOSTILE = (
    '\ufeff=HYPERLINK("x"), "@type": {"@value": 1}\r\n# */ ]]> <script>\u2028\u202e\u0301\x0b|@context\\u0000\n,,""\r'
)
"""What breaks quoting, lines, JSON, JSON-LD, Markdown and HTML where somebody has been careless."""


RECOMMENDED = {"MISSING_ANALYSIS_DIRECTORY", "MISSING_RESULTS_DIRECTORY", "MISSING_DIRECTORY_METADATA"}
"""What it misses and a release does not have: whoever analyses the data adds the first two; docs/releases.md."""


def files_made(cast: Cast, **policy: object) -> dict[str, bytes]:
    release = release_begin(study=cast.study, policy=Policy(**policy), actor=cast.alice, note=HOSTILE)  # type: ignore[arg-type]
    release_build(release_id=release.pk)
    release.refresh_from_db()
    return files_of(archive_of(release))


@pytest.fixture(params=["everything", "least", "children", "hostile"])
def files(request: pytest.FixtureRequest, cast: Cast) -> dict[str, bytes]:
    """The files of a release: with all that there is, of one sitting and nothing beside, of a children's test, of texts
    that mean harm."""
    kind = request.param
    if kind == "everything":
        released: Released = request.getfixturevalue("released")
        return files_of(archive_of(released.release(questionnaire="all", timings=True)))
    if kind == "least":
        add_person(request.getfixturevalue("instrument"), cast, [None])
        return files_made(cast)
    if kind == "children":
        tests = instrument_create(
            study=cast.study, slug="children", title="Детский", language="ru", instruction="Составь предложение.",
            stimuli=read_stimuli(TASKS.encode()), actor=cast.alice, refusal_below=1,
        )  # fmt: skip
        add_person(tests, cast, ["мальчик ловит рыбу", None])
        raters = [make_rater(cast.study, f"rater-{number}") for number in range(2)]
        judge_all(make_campaign(cast.study, cast.alice, k=2, rubric=CHILDREN_RUBRIC), raters, 0.5)
        return files_made(cast, questionnaire="closed")
    Study.objects.filter(pk=cast.study.pk).update(title=HOSTILE)
    instrument: Instrument = request.getfixturevalue("instrument")
    Instrument.objects.filter(pk=instrument.pk).update(title=HOSTILE, instruction=HOSTILE)
    instrument.stimuli.filter(position=1).update(text=HOSTILE)
    instrument.refresh_from_db()
    add_person(instrument, cast, [HOSTILE, '"', ","])
    cast.study.refresh_from_db()
    return files_made(cast, licence=HOSTILE, authors=f"{HOSTILE};;@id; ", timings=True)


def add_person(instrument: Instrument, cast: Cast, texts: list[str | None]) -> None:
    survey = survey_create(
        instrument=instrument, title="S", contact="c@example.org", consent_text="Yes.", publication_text="Publish.",
        actor=cast.alice,
    )  # fmt: skip
    make_person(survey, texts, agreed=[survey.publication_document])


@pytest.mark.django_db
def test_it_follows_psychds(files: dict[str, bytes]) -> None:
    assert problems_of(files) == []


@pytest.mark.django_db
def test_the_test_is_in_it_as_respondents_read_it(cast: Cast, instrument: Instrument) -> None:
    Instrument.objects.filter(pk=instrument.pk).update(title="A *star*", instruction="Read.\n\n- **One** sentence.")
    instrument.stimuli.filter(position=2).update(is_practice=True)
    instrument.stimuli.filter(position=3).update(text="<b>\n# x")
    instrument.refresh_from_db()
    add_person(instrument, cast, [None])
    assert files_made(cast)[layout.TESTS].decode() == (
        "# What respondents read\n\n## A \\*star\\* (small, version 1)\n\n> Read.\n>\n> - **One** sentence.\n\n"
        "### Practice\n\n- 2: . мышь бежать от кошка\n\n"
        "### Tasks\n\n- 1: кошка сидеть на стол .\n- 3: \\<b\\> \\# x\n"
    )


ABOUT = {"@context": "https://schema.org/", "@type": "Dataset", "name": "a", "description": "b"}
ABOUT |= {"variableMeasured": ["x", {"@type": "PropertyValue", "name": "row_id"}]}
TABLE, TOLD, BESIDE = "data/study-a_data.csv", "dataset_description.json", "data/study-a_data.json"
GOOD = {
    TOLD: json.dumps(ABOUT).encode(),
    TABLE: b"x,row_id\n1,1\n",
    BESIDE: b"{}",
    "README.md": b"a",
    "CHANGES.md": b"a",
}
GOOD |= {"documentation/a.txt": b"a", "materials/a.txt": b"a"}


def told(**changed: object) -> dict[str, bytes | None]:
    return {TOLD: json.dumps({**ABOUT, **changed}).encode()}


BROKEN: list[tuple[str, dict[str, bytes | None]]] = [
    ("JSON_KEY_REQUIRED", told(name=None)),
    ("INCORRECT_DATASET_TYPE", told(**{"@type": "Thing"})),
    ("MISSING_DATASET_TYPE", {TOLD: json.dumps({key: ABOUT[key] for key in ABOUT if key != "@type"}).encode()}),
    ("INVALID_JSONLD_FORMATTING", told(**{"@context": ""})),
    ("INVALID_JSON_FORMATTING", {TOLD: b"{"}),
    ("UNKNOWN_NAMESPACE", told(**{"https://linkml/minValue": 2})),
    ("INVALID_SCHEMAORG_PROPERTY", told(favourite="x")),
    ("INVALID_SCHEMAORG_PROPERTY", told(author={"@type": "Person", "favourite": "x"})),
    ("OBJECT_TYPE_MISSING", told(author=[{"name": "A"}])),
    ("INVALID_OBJECT_TYPE", told(author=[{"@type": "PropertyValue", "name": "A"}])),
    ("CSV_COLUMN_MISSING_FROM_METADATA", {TABLE: b"x,row_id,y\n1,1,1\n"}),
    ("CSV_COLUMN_MISSING_FROM_METADATA", {BESIDE: b'{"variableMeasured": ["x"]}'}),
    ("CSV_COLUMN_MISSING_FROM_METADATA", {TABLE: "\ufeffx,row_id\n1,1\n".encode()}),
    ("VARIABLE_MISSING_FROM_CSV_COLUMNS", {TABLE: b"x\n1\n"}),
    ("CSV_HEADER_REPEATED", {TABLE: b"x,row_id,x\n1,1,2\n"}),
    ("CSV_HEADER_LENGTH_MISMATCH", {TABLE: b"x,row_id\n1\n"}),
    ("CSV_HEADER_MISSING", {"data/study-b_data.csv": b""}),
    ("CSV_FORMATTING_ERROR", {TABLE: b'x,row_id\n1,a"b\n'}),
    ("CSV_FORMATTING_ERROR", {TABLE: b"x,row_id,size\n1,1,1\n"}),
    ("ROWID_VALUES_NOT_UNIQUE", {TABLE: b"x,row_id\n1,1\n2,1\n"}),
    ("FILENAME_KEYWORD_FORMATTING_ERROR", {"data/study_b_data.csv": b"x\n"}),
    ("FILENAME_UNOFFICIAL_KEYWORD_WARNING", {"data/table-b_data.csv": b"x\n"}),
    ("FILE_NOT_CHECKED", {"other.txt": b"a"}),
    ("FILE_EMPTY", {"README.md": b""}),
    ("MISSING_DATASET_DESCRIPTION", {TOLD: None}),
    ("MISSING_DATAFILE", {TABLE: None}),
    ("MISSING_SIDECAR_METADATA", {BESIDE: None}),
    ("MISSING_README_DOC", {"README.md": None}),
    ("MISSING_CHANGES_DOC", {"CHANGES.md": None}),
    ("MISSING_MATERIALS_DIRECTORY", {"materials/a.txt": None}),
    ("MISSING_DOCUMENTATION_DIRECTORY", {"documentation/a.txt": None}),
]


def with_(change: dict[str, bytes | None]) -> dict[str, bytes]:
    return {path: data for path, data in {**GOOD, **change}.items() if data is not None}


@pytest.mark.parametrize(("code", "change"), BROKEN)
def test_the_rules_find_what_breaks_them(code: str, change: dict[str, bytes | None]) -> None:
    assert problems_of(GOOD) == []
    assert code in {problem.partition(" ")[0] for problem in problems_of(with_(change))}


has_validator = pytest.mark.skipif(
    not (VALIDATOR and shutil.which("node")),
    reason="needs node, and LURIA_PSYCHDS_VALIDATOR to name a copy of it: docs/releases.md",
)


def validated(files: dict[str, bytes], folder: Path) -> tuple[bool, set[str]]:
    """Whether the validator takes the files for valid, and the codes of what it says."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    done = subprocess.run(["node", VALIDATOR, "--json", str(folder)], capture_output=True, text=True, timeout=300)
    # It may say before its JSON that it cannot reach the newest schema and takes its own.
    said = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0 and said, done.stdout + done.stderr
    found = json.loads(said[-1])
    return found["valid"], {issue["key"] for issue in found["issues"]}


@has_validator
@pytest.mark.parametrize(("code", "change"), BROKEN)
def test_the_validator_finds_the_same(code: str, change: dict[str, bytes | None], tmp_path: Path) -> None:
    assert code in validated(with_(change), tmp_path)[1]


@has_validator
@pytest.mark.django_db
def test_the_validator_passes_it(files: dict[str, bytes], tmp_path: Path) -> None:
    is_valid, said = validated(files, tmp_path / "dataset")
    assert is_valid and said <= RECOMMENDED

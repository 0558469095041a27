"""The field's own files, from ../shared/cases/imports: dry run, import, import again."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from corpus.models import Answer, Instrument, Respondent
from corpus.services import instrument_create
from surveys.models import ImportBatch, ImportedAnswer, Participant, PlatformRecord, Survey
from surveys.services import survey_create
from tests.conftest import Cast
from tests.shared_cases import ABSENT, SHARED
from tests.surveys.importing.conftest import STATEMENT

FOLDER = SHARED / "cases" / "imports"
JUDGEMENTS = ("ls_", "doccano_")  # imports of judgements are not imports of answers


def folders() -> list[Any]:
    found = [path for path in sorted(FOLDER.glob("*")) if not path.name.startswith(JUDGEMENTS)]
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=ABSENT), id="shared-cases-absent")]
    return [pytest.param(path, id=path.name) for path in found]


@pytest.fixture
def eighteen(cast: Cast, stimuli_18: Any) -> Instrument:
    return instrument_create(
        study=cast.study,
        slug="paper",
        title="Paper",
        language="ru",
        instruction="…",
        stimuli=stimuli_18,
        actor=cast.alice,
    )


def imported(files: list[Path], settings: dict[str, Any], capsys: Any, *more: str) -> dict[str, Any]:
    """What `answers_import --json` prints; of a faulty file it also exits with an error."""
    arguments = [*map(str, files), "--study=ours", "--instrument=paper:1", "--json", *more]
    target = ["--survey=Old data", f"--consent-statement={STATEMENT}", f"--mapping={json.dumps(settings)}"]
    try:
        call_command("answers_import", *arguments, *target)
    except CommandError as error:
        assert "Nothing was imported" in str(error)
    return json.loads(capsys.readouterr().out)


def expect(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """Everything the case says, and nothing stored beside it."""
    for name in ("format", "encoding", "delimiter", "error"):
        if name in expected:
            assert got.get(name) == expected[name], name
    for name, number in expected["counts"].items():
        assert got["counts"][name] == number, name
    for name in ("answers", "skipped", "conflicts", "respondents"):
        wanted = expected.get(name, [])
        found = got.get(name, [])
        assert len(found) == len(wanted), (name, found)
        for one, other in zip(found, wanted, strict=True):
            assert {key: one.get(key) for key in other} == other, name


def whole_database() -> str:
    """Every value of every row of ours, as text."""
    models = [
        model
        for app in ("studies", "corpus", "surveys", "scoring")
        for model in apps.get_app_config(app).models.values()
    ]
    return json.dumps([list(model._default_manager.values()) for model in models], default=str, ensure_ascii=False)


@pytest.mark.parametrize("folder", folders())
def test_case(folder: Path, cast: Cast, eighteen: Instrument, capsys: Any) -> None:
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    files = [path for path in sorted(folder.iterdir()) if path.name != "expected.json"]
    settings = expected.get("settings", {})
    for person in expected.get("respondents", []):
        add_participant(cast, eighteen, person["respondent"])
    people_before = Respondent.objects.count()

    dry = imported(files, settings, capsys, "--dry-run")
    expect(dry, expected)
    assert not ImportBatch.objects.exists() and not Answer.objects.exists()

    assert imported(files, settings, capsys) == dry
    stored = ImportedAnswer.objects.order_by("record", "answer__stimulus__position").values_list(
        "record", "answer__stimulus__position", "answer__text"
    )
    assert sorted(stored) == sorted((a["record"], a["item"], a["text"]) for a in expected["answers"])
    assert PlatformRecord.objects.count() == len(expected.get("respondents", []))
    if expected["answers"]:
        assert Respondent.objects.count() - people_before == expected["counts"]["respondents"]
        named = {a["respondent"] for a in expected["answers"] if not a["respondent"].startswith("row:")}
        assert named <= set(Participant.objects.values_list("external_id", flat=True)) or not named
    else:
        assert Respondent.objects.count() == people_before
        assert ImportBatch.objects.count() == (1 if expected.get("respondents") else 0)
    everything = whole_database()
    for text in expected.get("must_not_store", []):
        assert text not in everything

    again = imported(files, settings, capsys)
    assert again["counts"]["imported"] == 0 and again["counts"]["already"] == dry["counts"]["imported"]
    assert again["skipped"] == dry["skipped"] and not again["conflicts"]
    assert Answer.objects.count() == len(expected["answers"])


def add_participant(cast: Cast, instrument: Instrument, external_id: str) -> None:
    survey = Survey.objects.filter(title="Prolific").first() or survey_create(
        instrument=instrument, title="Prolific", contact="c@example.org", consent_text="Yes.", actor=cast.alice
    )
    respondent = Respondent.objects.create(study=cast.study, kind="human")
    Participant.objects.create(respondent=respondent, survey=survey, digest=external_id, external_id=external_id)

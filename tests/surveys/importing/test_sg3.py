"""Scenario SG3: export, spreadsheet, import without damage."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django import Settings

from corpus.importing import StimulusRow
from corpus.models import Answer, Instrument
from corpus.services import instrument_create
from reports import csvfile
from scoring.services import paper_rubric
from studies.services import study_create
from surveys.importers import luria
from surveys.models import Survey
from surveys.services import survey_create, survey_set_state
from tests.conftest import Cast
from tests.surveys.conftest import Visitor
from tests.surveys.importing.conftest import STATEMENT

TEXTS = [
    "- не знаю",
    "=СУММ(1;2)",
    "+7",
    "@мысль",
    "1-3",
    '«ёлка»; "да"',
    "первая строка\nвторая строка",
    "'апостроф",
    "''два апострофа",
    "'=1+1",
    " с пробелами ",
    "\tс табуляцией",
    "обычный ответ, с запятой",
]


@pytest.fixture(autouse=True)
def data_dir(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def instrument_in(study: Any, cast: Cast) -> Instrument:
    """As many stimuli as texts; their own words are of the dangerous kind too."""
    stimuli = [
        StimulusRow(number, f"{start}кошка сидеть на стол {number}", "кошка сидит на столе", "easy", False)
        for number, start in enumerate("-=+@1'«.;,№ж-", start=1)
    ]
    return instrument_create(
        study=study,
        slug="thirteen",
        title="T",
        language="ru",
        instruction="…",
        stimuli=stimuli,
        actor=cast.alice,
        refusal_below=3,
    )


@pytest.fixture
def answered(cast: Cast, db: None) -> Survey:
    """Somebody has typed the texts into the participant's pages."""
    paper_rubric()
    survey = survey_create(
        instrument=instrument_in(cast.study, cast), title="S", contact="c", consent_text="Да.", actor=cast.alice
    )
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    visitor = Visitor(survey).start()
    for number, text in enumerate(TEXTS, start=1):
        assert visitor.answer(number, text.replace("\n", "\r\n")).status_code == 302  # as forms send it
    return survey


def export(cast: Cast, query: str = "", language: str = "ru") -> bytes:
    client = cast.client(cast.alice)
    client.cookies["luria_language"] = language
    return b"".join(client.get(f"/studies/ours/exports/answers.csv{query}").streaming_content)


def import_into_an_empty_study(cast: Cast, data: bytes, **fields: str) -> list[str]:
    """Through the pages. Returns the texts as stored there, in the order of the stimuli."""
    empty = study_create(slug=f"empty{Answer.objects.count()}", title="Empty", actor=cast.alice)
    instrument = instrument_in(empty, cast)
    client = cast.client(cast.alice)
    sent = {"instrument": instrument.pk, "file": SimpleUploadedFile("answers.csv", data)}
    address = client.post(f"/studies/{empty.slug}/imports/new/", sent)["Location"]
    response = client.post(address, {"title": "From the other study", "statement": STATEMENT, **fields})
    assert response.status_code == 302
    page = client.get(address).content.decode()
    shown = re.search(r'name="shown" value="(\w+)"', page)
    assert shown, page
    assert "/imports/" in client.post(f"{address}import/", {"shown": shown[1]})["Location"]
    return list(
        Answer.objects.filter(sitting__instrument=instrument)
        .order_by("stimulus__position")
        .values_list("text", flat=True)
    )


def test_sg3_the_exact_export_comes_back_character_for_character(cast: Cast, answered: Survey) -> None:
    data = export(cast)
    assert data.startswith(b"\xef\xbb\xbf")  # Cyrillic is readable on a double click
    assert import_into_an_empty_study(cast, data) == TEXTS


@pytest.mark.parametrize("language", ["ru", "en"])
def test_sg3_the_file_for_excel_is_harmless_and_its_apostrophes_are_undone(
    cast: Cast, answered: Survey, language: str
) -> None:
    data = export(cast, "?for=excel", language)
    table = list(
        csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=";" if language == "ru" else ",")
    )
    for place, name in enumerate(table[0]):
        assert not name.startswith(("=", "+", "-", "@"))
        if name in ("text", "stimulus"):
            assert not any(row[place].startswith(tuple("=+-@0123456789")) for row in table[1:])
    fields = {} if language == "ru" else {"for_excel": "yes"}
    assert import_into_an_empty_study(cast, data, **fields) == TEXTS


def test_sg3_where_both_readings_are_possible_the_person_is_asked(cast: Cast, answered: Survey) -> None:
    data = export(cast, "?for=excel", "en")
    empty = study_create(slug="empty", title="Empty", actor=cast.alice)
    client = cast.client(cast.alice)
    sent = {"instrument": instrument_in(empty, cast).pk, "file": SimpleUploadedFile("answers.csv", data)}
    address = client.post("/studies/empty/imports/new/", sent)["Location"]
    page = client.get(address).content.decode()
    assert "say whether this is that file" in page and 'name="shown"' not in page


def test_sg3_what_was_declined_and_what_was_empty_stay_apart(cast: Cast, answered: Survey) -> None:
    other = Visitor(answered).start()
    other.client.post(f"{other.address}1/", {"declined": "1"})
    data = export(cast)
    import_into_an_empty_study(cast, data)
    assert Answer.objects.filter(sitting__instrument__study__slug__startswith="empty", outcome="declined").count() == 1


def test_sg3_an_imported_study_exports_the_same_again(cast: Cast, answered: Survey) -> None:
    first = export(cast)
    import_into_an_empty_study(cast, first)
    study = Survey.objects.get(platform="imported").instrument.study
    again = b"".join(cast.client(cast.alice).get(f"/studies/{study.slug}/exports/answers.csv").streaming_content)

    def told(data: bytes) -> list[tuple[str, ...]]:
        rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        return [(row["position"], row["text"], row["outcome"], row["given_at"], row["duration_ms"]) for row in rows]

    assert told(again) == told(first)


def test_the_importer_knows_the_exports_guard_and_columns() -> None:
    assert luria._DANGEROUS.pattern == csvfile._DANGEROUS.pattern

"""What is stored, what a repeat does, and what is refused. Real rows in a real database."""

import json
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.tables import table
from reports.withdrawal import participant_withdraw
from studies.models import AuditEntry
from surveys.import_report import SourceFile
from surveys.importing import ImportTargetError, Target, answers_import
from surveys.models import Consent, ImportBatch, ImportedAnswer, Participant, PlatformRecord, Survey
from surveys.services import Newcomer, SurveyNotOpenError, has_withdrawn, participant_start, survey_set_state
from tests.conftest import Cast
from tests.reports.test_withdrawal import columns_with
from tests.surveys.importing.conftest import STATEMENT, toloka
from tests.surveys.importing.test_rules import FORM, PROLIFIC

WHOLE = toloka(
    (1, "кошка сидит на столе", "w1", "APPROVED", "a1"),
    (2, "мышь бежит", "w1", "APPROVED", "a1"),
    (3, "", "w1", "SUBMITTED", "a1"),
    (1, "не знаю", "w2", "APPROVED", "a2"),
    (2, "ааа", "w3", "REJECTED", "a3"),
)
LATER = WHOLE + toloka((2, "мышь", "w2", "APPROVED", "a4"), (3, "дети", "w2", "APPROVED", "a4")).partition(b"\n")[2]


def stored() -> dict[tuple[str, int], str]:
    rows = Answer.objects.values_list("sitting__respondent__participant__external_id", "stimulus__position", "text")
    return {(person, item): text for person, item, text in rows}


def test_people_answers_consents_and_where_they_came_from(run: Any, cast: Cast, instrument: Instrument) -> None:
    report = run(WHOLE, covers={"publication": True})
    assert report.counts == {
        "records": 5,
        "blank_records": 0,
        "imported": 4,
        "skipped": 1,
        "respondents": 2,
        "already": 0,
        "conflicts": 0,
        "incomplete": 1,
    }
    survey = Survey.objects.get()
    assert (survey.platform, survey.state, survey.title) == ("imported", "closed", "Old data")
    assert survey.consent_document.text == STATEMENT and survey.consent_document.purpose == "participation"
    assert survey.publication_document.purpose == "publication" and survey.third_party_document is None
    assert Consent.objects.count() == 4  # two people, two documents
    whole, partial = Sitting.objects.order_by("respondent__participant__external_id")
    assert (whole.state, whole.source_label, whole.standing) == ("finished", "Old data", "counted")
    assert whole.finished_at.isoformat() == whole.started_at.isoformat() == "2024-03-12T09:00:04.118000+00:00"
    assert (partial.state, partial.finished_at) == ("stopped", None) and partial.standing_reason
    assert stored()["w1", 3] == ""
    assert Answer.objects.get(text="").outcome == "given"
    origin = ImportedAnswer.objects.get(record=1)
    assert (origin.assignment, origin.status, origin.submitted, origin.submitted_at) == ("a1", "APPROVED", "", None)
    batch = ImportBatch.objects.get()
    assert batch.made_by == cast.alice and batch.format == "toloka_tsv" and batch.counts == report.counts
    assert batch.skipped == [{"record": 5, "reason": "rejected"}]
    assert batch.files[0]["encoding"] == "utf-8" and len(batch.files[0]["sha256"]) == 64
    assert set(Respondent.objects.values_list("kind", flat=True)) == {"human"}
    instrument.refresh_from_db()
    assert instrument.state == "frozen"
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {"answers_import", "survey_create"}
    assert "w3" not in json.dumps(list(Participant.objects.values_list("external_id", flat=True)))


@pytest.mark.parametrize("covers", [{}, {"publication": True}, {"third_parties": True}])
def test_what_the_statement_says_of_third_parties_is_written_with_the_people(run: Any, covers: dict) -> None:
    run(WHOLE, covers=covers)
    assert set(Respondent.objects.values_list("third_parties", flat=True)) == {"third_parties" in covers}


def test_a_dry_run_says_the_same_and_stores_nothing(run: Any, instrument: Instrument) -> None:
    dry = run(WHOLE, dry_run=True).as_json()
    assert not Survey.objects.exists() and not Respondent.objects.exists() and not ImportBatch.objects.exists()
    instrument.refresh_from_db()
    assert instrument.state == "draft"
    assert run(WHOLE).as_json() == dry


def test_the_same_file_again_changes_nothing(run: Any) -> None:
    run(WHOLE)
    before = stored()
    report = run(WHOLE)
    assert (report.counts["imported"], report.counts["already"], report.batches) == (0, 4, [])
    assert stored() == before and ImportBatch.objects.count() == 1 and Respondent.objects.count() == 2


def test_a_later_export_brings_what_is_new_and_finishes_who_is_complete(run: Any) -> None:
    run(WHOLE)
    report = run(LATER)
    assert (report.counts["imported"], report.counts["already"], report.counts["incomplete"]) == (2, 4, 0)
    assert Respondent.objects.count() == 2 and len(stored()) == 6
    assert set(Sitting.objects.values_list("state", "standing_reason")) == {("finished", "")}
    assert ImportBatch.objects.count() == 2 and ImportedAnswer.objects.filter(batch__in=report.batches).count() == 2


def test_overlapping_files_in_one_go(run: Any) -> None:
    report = run(WHOLE, LATER)
    assert (report.counts["imported"], report.counts["already"], report.counts["skipped"]) == (6, 4, 2)
    assert [named["file"] for named in report.as_json()["skipped"]] == [0, 1]
    assert [entry["name"] for entry in ImportBatch.objects.get().files] == ["file1.csv", "file2.csv"]


def test_another_text_is_a_conflict_and_nothing_is_overwritten(run: Any) -> None:
    run(WHOLE)
    report = run(LATER.replace("не знаю".encode(), "передумал".encode()))
    assert report.as_json()["conflicts"] == [{"record": 4, "reason": "conflict", "item": 1, "respondent": "w2"}]
    assert stored()["w2", 1] == "не знаю" and stored()["w2", 2] == "мышь"
    assert {"record": 4, "reason": "conflict", "item": 1} in ImportBatch.objects.order_by("pk").last().skipped


def test_a_form_with_another_header_brings_nobody_twice_and_nobody_back(run: Any) -> None:
    rows = "05.03.2024 19:41:09,да,,кошка,дети\n05.03.2024 19:42:09,да,,мышь бежит,двор\n"
    run((FORM + rows).encode())
    withdraw(Participant.objects.filter(respondent__sittings__answers__text="кошка").distinct().get().external_id)
    report = run((FORM.replace("Согласны?", "Согласие") + rows).encode())
    assert (report.counts["imported"], report.counts["already"]) == (0, 2) and not report.warnings
    assert {named.reason for named in report.skipped} == {"withdrawn"} and Respondent.objects.count() == 2


def test_a_form_of_which_nobody_is_known_is_told(run: Any) -> None:
    row = "05.03.2024 19:41:09,да,,кошка,дети\n"
    assert not run((FORM + row).encode()).warnings
    report = run((FORM + row.replace("05.03", "06.03")).encode(), dry_run=True)
    assert [(named.record, named.reason) for named in report.warnings] == [(1, "nobody_known")]
    assert report.counts["imported"] == 2, "a note, no refusal: they may be other people"
    longer = run((FORM + row + row.replace("05.03", "06.03")).encode())
    assert not longer.warnings and longer.counts["imported"] == 2
    assert not run(WHOLE, dry_run=True).warnings, "named people are known by their names"


def test_an_instrument_that_is_not_complete_is_told_before_the_import(
    run: Any, cast: Cast, instrument: Instrument, tmp_path: Path, capsys: Any
) -> None:
    instrument.instruction = ""
    instrument.save(update_fields=["instruction"])
    for how in ({"dry_run": True}, {}):
        report = run(WHOLE, **how)
        assert report.fault and report.fault[1].code == report.as_json()["error"] == "instrument_incomplete"
        assert report.fault[1].detail and report.counts["imported"] == 0
    path = tmp_path / "pool.tsv"
    path.write_bytes(WHOLE)
    arguments = [str(path), f"--study={cast.study.slug}", f"--instrument={instrument.slug}", "--survey=Old data"]
    with pytest.raises(CommandError, match="instrument is not complete"):
        call_command("answers_import", *arguments, f"--consent-statement={STATEMENT}")
    assert not Survey.objects.exists() and not Respondent.objects.exists()


def test_who_has_withdrawn_does_not_come_back(run: Any) -> None:
    run(WHOLE)
    participant = Participant.objects.get(external_id="w2")
    sitting = Sitting.objects.get(respondent__participant=participant)
    participant_withdraw(participant_id=participant.pk, way="request", reason="письмо")
    assert columns_with("не знаю") == set()
    assert ImportedAnswer.objects.get(answer__sitting=sitting).started == ""
    report = run(LATER)
    assert report.counts["imported"] == 0 and report.counts["conflicts"] == 0
    assert [named.reason for named in report.skipped] == ["rejected", "withdrawn", "withdrawn", "withdrawn"]
    assert Answer.objects.filter(sitting=sitting).count() == 1


def withdraw(external_id: str) -> None:
    participant_withdraw(participant_id=Participant.objects.get(external_id=external_id).pk, way="request")


def test_who_has_withdrawn_stays_away_under_another_case_and_another_title(run: Any) -> None:
    run(WHOLE)
    withdraw("w2")
    shouted = WHOLE.replace(b"w2", b" W2 ")
    for how in ({}, {"title": "Another source"}):
        report = run(shouted, **how)
        assert [named.reason for named in report.skipped] == ["rejected", "withdrawn"]
        assert "не знаю" not in stored().values()
    assert Participant.objects.filter(survey__title="Another source").count() == 1, "the others are taken"


def test_a_withdrawn_id_does_not_begin_again_however_it_is_written(survey: Survey) -> None:
    participant(survey, "Worker9")
    withdraw("Worker9")
    assert has_withdrawn(survey_id=survey.pk, external_id="worker9")
    assert not has_withdrawn(survey_id=survey.pk, external_id="worker8")


def test_the_studys_own_export_is_here_already(run: Any, cast: Cast, instrument: Instrument) -> None:
    run(WHOLE)
    exported = b"".join(cast.client(cast.alice).get("/studies/ours/exports/answers.csv").streaming_content)
    report = run(exported, title="Back again")
    assert (report.counts["imported"], report.counts["skipped"], report.counts["respondents"]) == (0, 4, 0)
    assert {named.reason for named in report.skipped} == {"own_export"} and Respondent.objects.count() == 2
    withdraw("w2")
    assert run(exported, title="Back again").counts["imported"] == 0
    assert "не знаю" not in stored().values()


def test_one_person_in_two_surveys_keeps_the_external_id(run: Any) -> None:
    run(WHOLE)
    run(WHOLE, title="Another source")
    ids = list(Participant.objects.filter(external_id="w1").values_list("survey__title", flat=True))
    assert sorted(ids) == ["Another source", "Old data"]


@pytest.mark.parametrize("good_first", [True, False])
def test_one_faulty_file_stores_nothing_of_any(run: Any, good_first: bool) -> None:
    files = [WHOLE, b"<html>log in</html>"]
    report = run(*(files if good_first else reversed(files)))
    assert report.as_json()["error"] == "not_a_table"
    assert report.as_json()["error_file"] == ("file2.csv" if good_first else "file1.csv")
    assert report.counts["imported"] == 0 and not Survey.objects.exists() and not Respondent.objects.exists()


def test_a_fault_in_the_last_line_stores_nothing(run: Any) -> None:
    report = run(WHOLE + b'1\t"unclosed')
    assert (report.fault[1].code, report.fault[1].line) == ("truncated", 7)
    assert not Answer.objects.exists()


def test_the_survey_needs_a_title_and_a_statement_of_its_own(run: Any) -> None:
    for how, code in (
        ({"title": " "}, "no_title"),
        ({"statement": " "}, "no_statement"),
        ({"title": "я" * 201}, "no_title"),
    ):
        with pytest.raises(ImportTargetError) as error:
            run(WHOLE, **how)
        assert error.value.code == code
    run(WHOLE)
    with pytest.raises(ImportTargetError) as error:
        run(LATER, statement="Другое согласие.")
    assert error.value.code == "other_statement" and len(stored()) == 4
    assert run(LATER, statement="").counts["imported"] == 2  # the survey has its statement


def test_an_imported_survey_is_never_open(run: Any, cast: Cast) -> None:
    run(WHOLE)
    survey = Survey.objects.get()
    assert survey_set_state(survey=survey, state="open", actor=cast.alice) is False
    with pytest.raises(IntegrityError, match="survey_imported_is_closed"), transaction.atomic():
        Survey.objects.update(state="open")
    with pytest.raises(SurveyNotOpenError):
        participant_start(survey_id=survey.pk, newcomer=Newcomer(start_key=uuid4()))


def test_it_costs_few_queries_however_many_people(run: Any) -> None:
    def people(number: int) -> bytes:
        return toloka(*((item, "слово", f"w{n}", "APPROVED", f"a{n}") for n in range(number) for item in (1, 2, 3)))

    run(people(1))  # freezes the instrument
    counts = []
    for number in (3, 300):
        with CaptureQueriesContext(connection) as queries:
            run(people(number), title=f"{number} people")
        counts.append(len(queries))
    assert counts[0] == counts[1] < 40


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_one_file_at_once_store_it_once(cast: Cast, instrument: Instrument) -> None:
    reports: list[Any] = []

    def work() -> None:
        try:
            reports.append(
                answers_import(
                    instrument=Instrument.objects.get(pk=instrument.pk),
                    files=[SourceFile("a.tsv", WHOLE)],
                    format_name=None,
                    settings={},
                    target=Target("Old data", STATEMENT),
                    actor=None,
                )
            )
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(report.counts["imported"] for report in reports) == [0, 0, 4]
    assert Survey.objects.count() == 1 and Answer.objects.count() == 4


# Prolific's participants.


def participant(survey: Survey, external_id: str, visit: str = "") -> Participant:
    respondent = Respondent.objects.create(study=survey.instrument.study, kind="human")
    return Participant.objects.create(
        respondent=respondent,
        survey=survey,
        digest=f"{survey.pk}{external_id}",
        external_id=external_id,
        visit_id=visit,
    )


def test_prolific_marks_who_is_there_and_names_who_is_not(run: Any, survey: Survey) -> None:
    known = participant(survey, "5AF1")
    report = run((PROLIFIC + "s1,5af1,APPROVED,,1148,25,Female,Russian\ns2,5af2,APPROVED,,9,30,Male,Czech\n").encode())
    assert report.as_json()["skipped"] == [{"record": 2, "reason": "unknown_participant", "respondent": "5af2"}]
    row = PlatformRecord.objects.get()
    assert (row.participant, row.status, row.seconds) == (known, "APPROVED", 1148)
    assert row.data == {"age": 25, "sex": "Female"}  # the languages were not asked for
    assert Participant.objects.count() == 1 and "5af2" not in json.dumps(ImportBatch.objects.get().skipped)


def test_prolific_again_with_a_new_status(run: Any, survey: Survey) -> None:
    participant(survey, "p1")
    run((PROLIFIC + "s1,p1,AWAITING REVIEW,,1148,25,Female,\n").encode())
    assert run((PROLIFIC + "s1,p1,AWAITING REVIEW,,1148,25,Female,\n").encode()).counts["already"] == 1
    assert run((PROLIFIC + "s1,p1,APPROVED,,1148,25,Female,\n").encode()).counts["imported"] == 1
    assert list(PlatformRecord.objects.order_by("pk").values_list("status", flat=True)) == [
        "AWAITING REVIEW",
        "APPROVED",
    ]


def test_prolific_finds_the_visit_where_a_person_came_twice(run: Any, survey: Survey, instrument: Instrument) -> None:
    second = Survey.objects.create(
        instrument=instrument, consent_document=survey.consent_document, slug="second", title="Second"
    )
    participant(survey, "p1", "s1")
    right = participant(second, "p1", "s2")
    participant(survey, "p2")
    participant(second, "p2")
    report = run((PROLIFIC + "s2,p1,APPROVED,,1,,,\ns3,p2,APPROVED,,2,,,\n").encode())
    assert [named.reason for named in report.skipped] == ["ambiguous_participant"]
    assert PlatformRecord.objects.get().participant == right and ImportBatch.objects.get().survey == second


# The command.


def command(*files: Path, **how: Any) -> None:
    how = {"study": "ours", "instrument": "small", "survey": "Old data", "consent_statement": STATEMENT} | how
    call_command("answers_import", *map(str, files), **how)


def test_the_command_says_what_it_did(cast: Cast, instrument: Instrument, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "pool.tsv").write_bytes(WHOLE)
    (tmp_path / "consent.txt").write_text("Согласие в файле.", encoding="utf-8")
    command(tmp_path / "pool.tsv", consent_statement=f"@{tmp_path / 'consent.txt'}", dry_run=True)
    out = capsys.readouterr().out
    assert "skipped: record 5: rejected" in out and "imported 4" in out and "dry run" in out
    assert not Answer.objects.exists()
    command(tmp_path / "pool.tsv", consent_statement=f"@{tmp_path / 'consent.txt'}")
    assert Survey.objects.get().consent_document.text == "Согласие в файле." and Answer.objects.count() == 4
    capsys.readouterr()
    command(tmp_path / "pool.tsv", consent_statement="")
    assert "nothing new" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"study": "none"}, "There is no instrument"),
        ({"instrument": "small:7"}, "There is no instrument"),
        ({"instrument": "small:x"}, "There is no instrument"),
        ({"consent_statement": ""}, "Say how the people consented"),
        ({"survey": ""}, "Say what the survey"),
        ({"mapping": "{"}, "no JSON"),
        ({"mapping": "[1]"}, "Cannot read"),
        ({"mapping": '{"a": 1}'}, "this setting cannot be: a"),
        ({"item_column": "нет"}, "line 1: there is no column"),
        ({"consent_statement": "@/nowhere/consent"}, "Cannot read"),
    ],
)
def test_the_command_refuses(
    cast: Cast, instrument: Instrument, tmp_path: Path, how: dict[str, str], message: str
) -> None:
    (tmp_path / "pool.tsv").write_bytes(WHOLE)
    with pytest.raises(CommandError, match=message):
        command(tmp_path / "pool.tsv", **how)
    with pytest.raises(CommandError, match="Cannot read"):
        command(tmp_path / "missing.tsv")
    assert not Answer.objects.exists() and not Survey.objects.exists()


def test_the_command_refuses_a_large_file_unread(
    cast: Cast, instrument: Instrument, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.csv"
    with path.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    assert path.stat().st_size > table.MAX_BYTES
    with pytest.raises(CommandError, match="larger than"):
        command(path)

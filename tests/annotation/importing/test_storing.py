"""What an import stores: a closed campaign, its raters and their votes; and what it never stores."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from annotation.import_report import ImportReport
from annotation.importers.plan import Source
from annotation.importing import ImportStaleError, NoTitleError
from annotation.models import Campaign, Item, JudgementImport, Place, Rater, Seat
from annotation.places import label_withdraw
from annotation.selectors import criteria_asked, raters_expected
from annotation.votes import campaign_agreement, labels_of_round
from corpus.models import Answer, Instrument, Respondent, Sitting, Stimulus
from corpus.services import answer_record, sitting_start
from reports.withdrawal import Way, participant_withdraw
from scoring.bulk import GivenJudgement, round_import
from scoring.models import Judgement, Round
from scoring.selectors import labels_of
from scoring.services import ValueOutsideScaleError, paper_rubric
from studies.models import AuditEntry
from surveys.import_known import respondents_named
from surveys.models import Survey
from surveys.services import survey_create
from tests.annotation.factories import NO, judge, make_campaign, make_rater, make_sitting
from tests.annotation.importing.conftest import CRITERIA, WIDE, YES_NO, ls, ls_annotation, ls_task, table
from tests.conftest import Cast
from tests.surveys.people import make_person

Run = Callable[..., ImportReport]


def row(answer: Answer | str, who: str, *values: str) -> tuple[str, ...]:
    key = answer if isinstance(answer, str) else str(answer.blind_id)
    return (key, who, *(values or ("да", "да", "да")))


def reasons(report: ImportReport) -> list[str]:
    return [one.reason for one in report.skipped]


# --- the campaign ---------------------------------------------------------------------------------------------------


def test_it_makes_a_closed_campaign(cast: Cast, answers: list[Answer], run: Run) -> None:
    report = run(
        table(
            row(answers[0], "лена"),
            row(answers[0], "миша", "да", "да", "нет"),
            row(answers[0], "нина", "да", "нет", "нет"),
            row(answers[4], "лена", "нет", "", "да"),
        )
    )
    assert report.fault is None and report.imported
    campaign = Campaign.objects.get()
    assert (campaign.state, campaign.raters_per_answer, campaign.n_items, campaign.n_places) == ("closed", 3, 2, 4)
    assert campaign.round.purpose == Round.Purpose.IMPORTED and campaign.round.closed_at == campaign.closed_at
    assert [one.code for one in criteria_asked(campaign)] == ["grammatical", "logical", "order"]
    assert [(i.answer_id, i.display_text) for i in campaign.items.order_by("position")] == [
        (answers[0].pk, "кошка сидит на столе"),
        (answers[4].pk, "мышь бежал от кошки"),
    ]
    assert sorted(Place.objects.values_list("item__answer", "number", "rater__pseudonym", "state")) == [
        (answers[0].pk, 1, "R1", "done"),
        (answers[0].pk, 2, "R2", "done"),
        (answers[0].pk, 3, "R3", "done"),
        (answers[4].pk, 1, "R1", "done"),
    ]
    assert sorted(Seat.objects.values_list("rater__imported_name", "done", "revision")) == [
        ("лена", 2, 1),
        ("миша", 1, 1),
        ("нина", 1, 1),
    ]
    labels = {Item.objects.get(pk=pk).answer_id: by_code for pk, by_code in labels_of_round(campaign).items()}
    assert {code: one.value for code, one in labels[answers[0].pk].items()} == {
        "grammatical": 1,
        "logical": 1,
        "order": 0,
    }
    assert labels[answers[4].pk]["logical"].votes == 0, "a gap is not a class"
    agreement = campaign_agreement(campaign)
    assert agreement.n_items == 2 and agreement.attempts[0].agreement.n_pairable == 3


def test_the_audit_and_the_import_name_nobody(cast: Cast, answers: list[Answer], run: Run) -> None:
    data = table(row(answers[0], "lena@example.org"), row(answers[1], "тайное имя"))
    source = Source("lena@example.org.csv", data)
    report = run(
        source, settings=WIDE | {"raters": {"lena@example.org": "new"}, "keys": {"k": str(answers[2].blind_id)}}
    )
    assert report.imported
    found = JudgementImport.objects.get()
    entry = AuditEntry.objects.get(action="judgements_import")
    told = json.dumps(
        [found.settings, found.files, found.counts, entry.detail, entry.target, Campaign.objects.get().selection],
        ensure_ascii=False,
    )
    for secret in ("example.org", "тайное", answers[0].text, str(answers[2].blind_id)):
        assert secret not in told
    assert entry.actor == cast.alice and entry.detail["raters"] == ["R1", "R2"]
    assert found.counts["imported"] == 2 and found.files[0]["sha256"] and found.settings["rubric"] == "paper"


def test_times_and_seconds_are_the_files(cast: Cast, answers: list[Answer], run: Run) -> None:
    yes = {"grammatical": ["да"]}
    data = ls(
        ls_task({"answer": str(answers[0].blind_id)}, ls_annotation(1, 7, yes, lead_time=400)),
        ls_task({"answer": str(answers[1].blind_id)}, ls_annotation(2, 7, yes, updated_at="2024-05-01T09:00:00Z")),
        ls_task({"answer": str(answers[2].blind_id)}, ls_annotation(3, 7, yes, updated_at="вчера", lead_time="?")),
    )
    report = run(data, settings={"key": "answer", "criteria": {"grammatical": YES_NO}})
    made = dict(Judgement.objects.values_list("answer", "made_at"))
    assert made[answers[0].pk] == datetime(2024, 5, 1, 10, 5, tzinfo=UTC)
    assert made[answers[1].pk] == datetime(2024, 5, 1, 9, 0, tzinfo=UTC)
    assert made[answers[2].pk].year > 2024 and [one.reason for one in report.warnings] == ["time_unreadable"]
    seat = Seat.objects.get()
    assert (seat.seconds, seat.timed, seat.done) == (307.5, 2, 3), "one answer counts for five minutes at most"
    ordinals = dict(Place.objects.values_list("item__answer", "ordinal"))
    assert [ordinals[answers[n].pk] for n in (1, 0, 2)] == [1, 2, 3], "in the order in which they were judged"


def test_what_raters_wrote_stays_with_the_place(cast: Cast, answers: list[Answer], run: Run) -> None:
    record = {"answer": str(answers[0].blind_id), "label": ["да"], "Comments": ["так говорят"]}
    source = Source("лена.jsonl", json.dumps(record).encode())
    run(source, settings={"key": "answer", "labels": {"да": ["grammatical", 1]}})
    assert Place.objects.get().comment == "так говорят"


def test_a_graded_rubric(cast: Cast, answers: list[Answer], run: Run) -> None:
    data = table(
        (str(answers[0].blind_id), "лена", "0,5"),
        (str(answers[1].blind_id), "лена", "0.3"),
        header=("answer", "who", "оценка"),
    )
    chosen = {"key": "answer", "annotator": "who", "criteria": {"оценка": {}}, "codes": {"оценка": "sentence"}}
    report = run(data, settings=chosen, rubric="children")
    assert Judgement.objects.get().value == 0.5 and reasons(report) == ["nothing_usable"]
    assert [(one.reason, one.value) for one in report.conflicts] == [("outside_scale", "0.3")]


def test_refusals_are_marked(cast: Cast, instrument: Instrument, run: Run) -> None:
    sitting = make_sitting(instrument, ("не знаю", "мышь бежит от кошки", "дети играли во дворе"))
    answer = sitting.answers.get(text="не знаю")
    run(table(row(answer, "лена")))
    assert Item.objects.get().is_refusal and Campaign.objects.get().with_refusals


# --- which answer ---------------------------------------------------------------------------------------------------


def test_by_the_answers_own_id_in_any_spelling(answers: list[Answer], run: Run) -> None:
    report = run(table(row(f" {str(answers[0].blind_id).upper()} ", "лена")))
    assert [vote.answer.pk for vote in report.votes] == [answers[0].pk]


def test_unknown_answers_are_named_and_never_guessed(cast: Cast, answers: list[Answer], run: Run) -> None:
    keys = [str(uuid4()), "a-001", str(answers[0].pk), answers[0].text, "' OR 1=1", "0" * 32]
    report = run(table(*(row(key, "лена") for key in keys)))
    assert reasons(report) == ["unknown_answer"] * 6
    assert report.imported is None and not Campaign.objects.exists() and not Rater.objects.exists()


def test_another_studys_answers_are_unknown(cast: Cast, answers: list[Answer], run: Run) -> None:
    assert reasons(run(table(row(answers[0], "лена")), study=cast.other_study)) == ["unknown_answer"]


def test_by_a_table_of_keys(answers: list[Answer], run: Run) -> None:
    chosen = WIDE | {"keys": {"a-001": str(answers[1].blind_id), "a-002": "nonsense"}}
    report = run(table(row("A-001", "лена"), row("a-002", "лена"), row("a-003", "лена")), settings=chosen)
    assert [vote.answer.pk for vote in report.votes] == [answers[1].pk]
    assert reasons(report) == ["unknown_answer", "unknown_answer"]


HEADER = ("respondent", "item", "text", "who", "grammatical")
BY_PERSON = {"respondent": "respondent", "stimulus": "item", "annotator": "who", "criteria": {"grammatical": YES_NO}}


def test_by_respondent_and_stimulus(answers: list[Answer], run: Run) -> None:
    public_id = answers[0].sitting.respondent.public_id
    rows = [
        (public_id, "2", "", "лена", "да"),
        (public_id, "Кошка  сидеть на стол .", "", "лена", "нет"),
        (public_id, "9", "", "лена", "да"),
        (uuid4(), "1", "", "лена", "да"),
        (public_id, "", "", "лена", "да"),
    ]
    report = run(table(*rows, header=HEADER), settings=BY_PERSON)
    assert {vote.answer.pk: vote.planned.values["grammatical"] for vote in report.votes} == {
        answers[0].pk: 0,
        answers[1].pk: 1,
    }
    assert sorted(reasons(report)) == ["no_key", "unknown_answer", "unknown_answer"]


def test_a_model_with_several_runs_is_ambiguous(cast: Cast, instrument: Instrument, run: Run) -> None:
    first = make_sitting(instrument, kind=Respondent.Kind.MODEL)
    again = sitting_start(respondent=first.respondent, instrument=instrument, source_label="model")
    for stimulus_id in again.order:
        answer_record(sitting_id=again.pk, stimulus_id=stimulus_id, outcome="given", text="кошка сидит на столе")
    report = run(table((first.respondent.public_id, "1", "", "лена", "да"), header=HEADER), settings=BY_PERSON)
    assert reasons(report) == ["ambiguous_answer"]


@pytest.fixture
def survey(cast: Cast, instrument: Instrument) -> Survey:
    return survey_create(
        instrument=instrument, title="S", contact="c@example.org", consent_text="Yes.", actor=cast.alice
    )


def test_by_the_name_that_a_platform_gave(cast: Cast, survey: Survey, run: Run) -> None:
    person = make_person(survey, external_id="Worker-7")
    rows = table(("worker-7", "1", "", "лена", "да"), ("worker-8", "1", "", "лена", "да"), header=HEADER)
    report = run(rows, settings=BY_PERSON, named=respondents_named)
    assert [vote.answer.respondent_id for vote in report.votes] == [person.respondent_id]
    assert reasons(report) == ["unknown_answer"]


def test_by_the_text_where_one_answer_has_it(answers: list[Answer], instrument: Instrument, run: Run) -> None:
    make_sitting(instrument, ("кошка на столе сидит.", "мышь бежит от кошки!", "дети играли"))
    chosen = BY_PERSON | {"respondent": None, "text": "text"}
    rows = [
        ("", "1", "  Кошка сидит на столе. ", "лена", "да"),  # shown without capitals and full stop
        ("", "1", "кошка на столе сидит", "лена", "да"),  # two people gave it
        ("", "2", "кошка сидит на столе", "лена", "да"),  # not of this stimulus
        ("", "", "мышь бежал от кошки", "лена", "нет"),
    ]
    report = run(table(*rows, header=HEADER), settings=chosen)
    assert {vote.answer.text for vote in report.votes} == {"кошка сидит на столе", "мышь бежал от кошки"}
    assert reasons(report) == ["ambiguous_answer", "unknown_answer"]


def test_what_else_the_record_says_has_to_agree(answers: list[Answer], run: Run) -> None:
    header = ("answer", "item", "text", "who", "grammatical")
    rows = [
        (answers[0].blind_id, "1", "Кошка сидит на столе.", "лена", "да"),
        (answers[1].blind_id, "2", "мышь бежала от кошки", "лена", "да"),
        (answers[2].blind_id, "1", "", "лена", "да"),
    ]
    chosen = {
        "key": "answer",
        "stimulus": "item",
        "text": "text",
        "annotator": "who",
        "criteria": {"grammatical": YES_NO},
    }
    report = run(table(*rows, header=header), settings=chosen)
    assert [vote.answer.pk for vote in report.votes] == [answers[0].pk]
    assert reasons(report) == ["other_text", "other_stimulus"]


def test_answers_that_nobody_may_judge(cast: Cast, survey: Survey, instrument: Instrument, run: Run) -> None:
    stimulus = Stimulus.objects.create(
        instrument=instrument,
        position=4,
        text="пример",
        original="пример",
        complexity="easy",
        shuffled=False,
        is_practice=True,
    )
    gone, stays = make_person(survey), make_person(survey, ("кошка сидит", "мышь бежит", "дети играли"))
    declined = make_sitting(instrument, (None, "мышь бежит от кошки", "дети играли во дворе"))
    still = make_sitting(instrument, ("кошка сидит на столе",), finish=False)
    practice = Answer.objects.create(sitting=still, stimulus=stimulus, outcome="given", text="пробный ответ")
    withdrawn = Answer.objects.filter(sitting__respondent=gone.respondent).first()
    assert withdrawn and participant_withdraw(participant_id=gone.pk, way=Way.RECEIPT)
    rows = [
        withdrawn,
        declined.answers.get(outcome="declined"),
        still.answers.get(stimulus__position=1),
        practice,
        Answer.objects.filter(sitting__respondent=stays.respondent, stimulus__position=1).get(),
    ]
    report = run(table(*(row(answer, "лена") for answer in rows)))
    assert reasons(report) == ["withdrawn", "no_text", "open_sitting", "practice_task"]
    assert [vote.answer.text for vote in report.votes] == ["кошка сидит"]


def test_answers_that_do_not_count_stay_out_of_labels(cast: Cast, answers: list[Answer], run: Run) -> None:
    Sitting.objects.filter(pk=answers[0].sitting_id).update(standing="excluded", standing_reason="x")
    report = run(table(row(answers[0], "лена"), row(answers[3], "лена")))
    assert report.counts["imported"] == 2
    assert len(labels_of_round(Campaign.objects.get())) == 1


def test_results_are_made_of_imported_judgements_too(cast: Cast, answers: list[Answer], run: Run) -> None:
    """Beside those that are made here; a person of the study has one vote, the one stored last."""
    lena = make_rater(cast.study, "lena")
    judge(make_campaign(cast.study, cast.alice, k=1), lena, NO)
    judged = Judgement.objects.select_related("answer").first()
    assert judged
    rows = [row(judged.answer, who) for who in ("lena", "миша", "нина")]
    assert run(table(*rows), settings=WIDE | {"raters": {"lena": lena.pseudonym}}).imported
    labels = labels_of(
        instrument=judged.answer.sitting.instrument, rubric=paper_rubric(), answer_ids=[judged.answer_id]
    )
    (found,) = labels.answers
    said = {criterion.code: label for criterion, label in zip(labels.criteria, found.labels, strict=True)}
    assert (said["order"].value, said["order"].votes) == (1, 3)


# --- who ------------------------------------------------------------------------------------------------------------


def test_a_person_of_the_study_keeps_their_judge(cast: Cast, answers: list[Answer], run: Run) -> None:
    lena = make_rater(cast.study, "lena")
    chosen = WIDE | {"raters": {"11": "r1", "ling1@example.org": "=11", "12": "new"}}
    run(
        table(
            row(answers[0], "11"), row(answers[1], "ling1@example.org"), row(answers[0], "12"), row(answers[0], "13")
        ),
        settings=chosen,
    )
    assert sorted(Rater.objects.values_list("pseudonym", "imported_name")) == [("R1", ""), ("R2", "12"), ("R3", "13")]
    assert Seat.objects.get(rater=lena).done == 2
    assert Judgement.objects.filter(judge=lena.judge).count() == 6


def test_nobody_is_joined_by_a_guess(cast: Cast, answers: list[Answer], run: Run) -> None:
    make_rater(cast.study, "lena")
    run(table(row(answers[0], "lena"), row(answers[0], "Lena"), row(answers[0], "lena@example.org")))
    assert Rater.objects.count() == 4


def test_the_same_name_again_is_the_same_rater_unless_said(cast: Cast, answers: list[Answer], run: Run) -> None:
    run(table(row(answers[0], "11")))
    run(table(row(answers[1], "11")), title="Second")
    assert Rater.objects.count() == 1
    run(table(row(answers[2], "11")), title="Third", settings=WIDE | {"raters": {"11": "new"}})
    assert sorted(Rater.objects.values_list("imported_name", flat=True)) == ["11", "11 (2)"]


@pytest.mark.parametrize("said", ["R9", "=nobody", "=лена", "lena"])
def test_a_rater_who_is_not_there(cast: Cast, answers: list[Answer], run: Run, said: str) -> None:
    report = run(table(row(answers[0], "лена")), settings=WIDE | {"raters": {"лена": said}})
    assert report.fault and report.fault[1].code == "unknown_rater" and not Campaign.objects.exists()


def test_another_studys_rater_is_not_there(cast: Cast, answers: list[Answer], run: Run) -> None:
    run(table(row(answers[0], "лена")))
    report = run(table(row(answers[0], "миша")), study=cast.other_study, settings=WIDE | {"raters": {"миша": "R1"}})
    assert report.fault and report.fault[1].code == "unknown_rater"


def test_hostile_names_are_kept_as_they_are(cast: Cast, answers: list[Answer], run: Run) -> None:
    names = ["<script>alert(1)</script>", "=cmd|' /C calc'!A0", "'; DROP TABLE", "я" * 200]
    run(table(*(row(answers[0], name) for name in names)))
    assert set(Rater.objects.values_list("imported_name", flat=True)) == set(names)
    assert sorted(Rater.objects.values_list("pseudonym", flat=True)) == ["R1", "R2", "R3", "R4"]


def test_imported_raters_do_not_hide_members_who_wait(cast: Cast, answers: list[Answer], run: Run) -> None:
    before = raters_expected(cast.study)
    run(table(row(answers[0], "лена")))
    assert raters_expected(cast.study) == before == 1, "rita has not begun; an imported name rates nothing here"


# --- criteria -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ({"criteria": {"grammatical": YES_NO}, "codes": {"grammatical": "style"}}, "unknown_criteria"),
        ({"criteria": {"grammatical": YES_NO}, "codes": {"grammatical": "sequence"}}, "rule_criterion"),
        (
            {"criteria": {"grammatical": YES_NO, "order": YES_NO}, "codes": {"grammatical": "order"}},
            "doubled_criterion",
        ),
    ],
)
def test_criteria_that_are_none(answers: list[Answer], run: Run, chosen: dict[str, Any], code: str) -> None:
    report = run(table(row(answers[0], "лена")), settings=WIDE | chosen)
    assert report.fault and report.fault[1].code == code and not Round.objects.exists()
    assert report.as_json()["error"] == code


def test_a_value_outside_the_scale_is_a_gap(answers: list[Answer], run: Run) -> None:
    chosen = WIDE | {"criteria": CRITERIA | {"order": {"да": 2}}}
    report = run(table(row(answers[0], "лена")), settings=chosen)
    assert [(one.criterion, one.reason, one.value) for one in report.conflicts] == [("order", "outside_scale", "2")]
    assert Judgement.objects.count() == 2
    assert [one.code for one in criteria_asked(Campaign.objects.get())] == ["grammatical", "logical"]


def test_the_bulk_writer_holds_the_scale_too(cast: Cast, answers: list[Answer]) -> None:
    rater = make_rater(cast.study, "lena")
    rubric = paper_rubric()
    given = GivenJudgement(answers[0].pk, rubric.criteria.get(code="order"), rater.judge_id, 0.5)
    with pytest.raises(ValueOutsideScaleError):
        round_import(study=cast.study, rubric=rubric, judgements=[given])


# --- again ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_stores_nothing(cast: Cast, answers: list[Answer], run: Run) -> None:
    report = run(table(row(answers[0], "лена")), dry_run=True)
    assert report.counts["imported"] == 1 and report.imported is None
    for model in (Campaign, Round, Rater, Judgement, JudgementImport, Place):
        assert not model.objects.exists()
    assert not AuditEntry.objects.filter(action="judgements_import").exists()


def test_the_same_import_again_changes_nothing(cast: Cast, answers: list[Answer], run: Run) -> None:
    """Whatever the file is called, whatever format it has."""
    data = table(row(answers[0], "лена"), row(answers[1], "лена", "нет", "нет", "да"))
    first = run(data).imported
    semicolons = data.decode().replace(",", ";").encode("cp1251")
    for again in (run(data, title="Again"), run(Source("other.csv", semicolons), title="Again")):
        assert again.imported is None and again.already == first
        assert [(one.same, one.changed, one.new, one.gone) for one in again.compared] == [(6, 0, 0, 0)]
    assert Campaign.objects.count() == 1 and Judgement.objects.count() == 6


def test_a_part_of_it_again_changes_nothing(cast: Cast, answers: list[Answer], run: Run) -> None:
    first = run(table(row(answers[0], "лена"), row(answers[1], "лена"))).imported
    again = run(table(row(answers[1], "лена")))
    assert again.already == first and [one.gone for one in again.compared] == [3]


def test_a_label_that_was_taken_out_does_not_come_back(cast: Cast, answers: list[Answer], run: Run) -> None:
    data = table(row(answers[0], "лена"), row(answers[1], "лена"))
    first = run(data).imported
    place = Place.objects.filter(item__answer=answers[0]).get()
    label_withdraw(place_id=place.pk, actor=cast.alice, reason="по ошибке")
    again = run(data)
    assert again.already == first and Judgement.objects.filter(retracted_at__isnull=True).count() == 3


def test_a_changed_file_says_what_differs(cast: Cast, answers: list[Answer], run: Run) -> None:
    run(table(row(answers[0], "лена"), row(answers[1], "лена")))
    changed = table(row(answers[0], "лена", "нет", "да", "да"), row(answers[2], "лена"))
    report = run(changed, dry_run=True)
    assert [(one.same, one.changed, one.new, one.gone) for one in report.compared] == [(2, 1, 3, 3)]
    assert report.already is None
    assert run(changed, title="Second").imported and Campaign.objects.count() == 2


def test_what_was_seen_is_what_is_imported(cast: Cast, answers: list[Answer], run: Run) -> None:
    data = table(row(answers[0], "лена"))
    shown = run(data, dry_run=True).digest
    make_rater(cast.study, "lena")  # changes nothing of it
    assert run(data, dry_run=True).digest == shown
    Sitting.objects.filter(pk=answers[0].sitting_id).update(standing="withdrawn")
    with pytest.raises(ImportStaleError):
        run(data, shown=shown)
    assert not Campaign.objects.exists()


@pytest.mark.parametrize("title", ["", "  ", "x" * 201, "a\0b"])
def test_a_campaign_has_a_title(cast: Cast, answers: list[Answer], run: Run, title: str) -> None:
    with pytest.raises(NoTitleError):
        run(table(row(answers[0], "лена")), title=title)
    assert not Rater.objects.exists() and not Round.objects.exists()


def test_a_withdrawal_blanks_what_was_imported(cast: Cast, survey: Survey, run: Run) -> None:
    person = make_person(survey)
    found = list(Answer.objects.filter(sitting__respondent=person.respondent))
    run(table(*(row(answer, "лена") for answer in found)))
    participant_withdraw(participant_id=person.pk, way=Way.RECEIPT)
    assert set(Item.objects.values_list("display_text", flat=True)) == {""}
    assert labels_of_round(Campaign.objects.get()) == {}


def test_files_of_two_formats_are_one_import(cast: Cast, answers: list[Answer], run: Run) -> None:
    """One person is a number in one file and an address in the other: whoever imports says so."""
    key = str(answers[0].blind_id)
    one = ls(ls_task({"answer": key}, ls_annotation(1, 11, {"order": ["да"]})))
    rows = table(
        (str(answers[1].blind_id), "l@example.org", 5, "нет"), header=("answer", "annotator", "annotation_id", "order")
    )
    chosen = {"key": "answer", "criteria": {"order": YES_NO}, "raters": {"l@example.org": "=11"}}
    report = run(Source("a.json", one), Source("b.csv", rows), settings=chosen)
    assert report.plan.formats == ["label_studio_json", "label_studio_csv"] and Rater.objects.count() == 1
    assert JudgementImport.objects.get().format == "label_studio_json, label_studio_csv"


@pytest.mark.django_db(transaction=True)
def test_two_at_once_import_once(cast: Cast, answers: list[Answer], run: Run) -> None:
    data = table(row(answers[0], "лена"))
    ready = threading.Barrier(2)

    def go() -> None:
        ready.wait(10)
        run(data)
        connection.close()

    threads = [threading.Thread(target=go) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Campaign.objects.count() == 1 and Rater.objects.count() == 1

import csv
import io

import pytest
from django.urls import reverse
from django.utils import timezone

from annotation.models import Rater
from annotation.places import Remark, place_skip
from corpus.models import Answer
from llmruns.models import Call
from reports.exports import EXPORTS
from scoring.models import Judgement
from scoring.services import judgements_retract
from studies.models import Study
from studies.services import blinding_impose
from surveys.models import Participant, Question, QuestionResponse
from tests.annotation.factories import make_campaign, post, take
from tests.api.conftest import add_survey
from tests.reports.conftest import ALL, Built
from tests.reports.test_csvfile import TEXTS


def download(built: Built, name: str, query: str = "", language: str = "en"):
    client = built.cast.client(built.cast.alice)
    client.cookies["luria_language"] = language
    return client.get(reverse("export_file", args=["ours", name]) + query)


def rows(built: Built, name: str) -> list[dict[str, str]]:
    text = b"".join(download(built, name).streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def by_answer(built: Built, found: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    names = {str(answer.blind_id): name for name, answer in built.answers.items()}
    grouped: dict[str, list[dict[str, str]]] = {}
    for row in found:
        grouped.setdefault(names[row["answer"]], []).append(row)
    return grouped


def test_answers(built):
    found = by_answer(built, rows(built, "answers"))
    assert len(found) == 15
    (row,) = found["P1/1"]
    assert row["text"] == "Кошка сидит на столе."
    assert (row["kind"], row["source"], row["words"], row["refusal"]) == ("human", "survey one", "4", "false")
    (declined,) = found["P1/3"]
    assert (declined["outcome"], declined["text"], declined["words"], declined["refusal"]) == (
        "declined",
        "",
        "",
        "true",
    )
    (missing,) = found["M1/3"]
    assert (missing["outcome"], missing["refusal"]) == ("no_valid_reply", "false")


def test_answers_of_withdrawn_sittings_stay_in_the_house(built):
    answer = built.answers["P1/1"]
    answer.sitting.standing = "withdrawn"
    answer.sitting.save(update_fields=["standing"])
    names = [name for name in EXPORTS if name != "calls"]
    for name in names:
        text = b"".join(download(built, name).streaming_content).decode()
        assert str(answer.blind_id) not in text
        assert str(answer.sitting.respondent.public_id) not in text


def test_sg4_who_said_what(bare):
    """Three linguists; 1 and 2 annotate A and B, 3 only A: five rows; the majority for B comes from two votes."""
    bare.sitting("P", {1: "кошка сидит на столе", 2: "мышь бежит от кошки"})
    bare.judge("P/1", ALL)
    bare.judge("P/2", {"grammatical": "11-", "logical": "10-", "order": "00-"})
    found = by_answer(bare, rows(bare, "annotations"))
    assert [row["rater"] for row in found["P/1"]] == ["R1", "R2", "R3"]
    assert [row["rater"] for row in found["P/2"]] == ["R1", "R2"]
    second = found["P/2"][1]
    assert (second["grammatical"], second["logical"], second["order"]) == ("1", "0", "0")
    assert second["judged_at"].endswith("+00:00")
    assert second["not_attempt"] == "false"
    labels = {row["criterion"]: row for row in by_answer(bare, rows(bare, "labels"))["P/2"]}
    assert (labels["grammatical"]["label"], labels["grammatical"]["votes"]) == ("1", "2")
    # one against one is no class
    assert (labels["logical"]["label"], labels["logical"]["basis"], labels["logical"]["reason"]) == (
        "",
        "undecided",
        "tie",
    )


def test_sg6_a_dash_is_empty_and_never_zero(bare):
    bare.sitting("P", {1: "кошка сидит на столе"})
    bare.judge("P/1", {"grammatical": "1--", "order": "01-"})
    first, second = rows(bare, "annotations")
    assert (first["grammatical"], first["logical"], first["order"]) == ("1", "", "0")
    assert (second["grammatical"], second["logical"], second["order"]) == ("", "", "1")


def test_withdrawn_judgements_are_left_out(built):
    before = len(rows(built, "judgements"))
    judgements_retract(round_id=built.rating.pk, answer_id=built.answers["P1/1"].pk, judge_id=built.raters[0].judge_id)
    after = rows(built, "judgements")
    assert len(after) == before - 3
    assert len(after) == Judgement.objects.filter(retracted_at=None).count()
    assert {row["judge"] for row in after} == {"R1", "R2", "R3", "sequence_equal", "vocabulary_match"}
    assert {row["purpose"] for row in after} == {"rating", "adjudication", "automatic"}


def test_history_has_what_was_withdrawn(built):
    before = len(rows(built, "judgement_history"))
    judgements_retract(round_id=built.rating.pk, answer_id=built.answers["P1/1"].pk, judge_id=built.raters[0].judge_id)
    after = rows(built, "judgement_history")
    assert len(after) == before
    gone = [row for row in after if row["retracted_at"]]
    assert [(row["judge"], row["criterion"]) for row in gone] == [
        ("R1", "grammatical"),
        ("R1", "logical"),
        ("R1", "order"),
    ]


def test_scores(built):
    found = rows(built, "scores")
    first, second, *runs = found
    # see conftest: P1 has 7/3, P2 lies between 3 and 10/3, the runs have 8/3, 11/3 and 7/3
    assert float(first["score"]) == pytest.approx(7 / 3)
    assert float(first["score_norm"]) == pytest.approx(7 / 12)
    assert (second["score"], second["score_norm"], second["reason"], second["n_undecided"]) == (
        "",
        "",
        "undecided",
        "1",
    )
    assert float(second["score_low"]) == 3
    assert float(second["score_high"]) == pytest.approx(10 / 3)
    assert [float(row["score"]) for row in runs] == [pytest.approx(value / 3) for value in (8, 11, 7)]
    assert [(row["experiment"], row["run"], row["n_no_valid_reply"]) for row in runs] == [
        ("First", "1", "1"),
        ("First", "2", "0"),
        ("First", "3", "0"),
    ]


def test_calls_carry_no_key(built):
    (row,) = rows(built, "calls")
    assert (row["model"], row["attempt"], row["state"], row["detail"]) == ("Model M", "1", "ok", "")
    assert row["raw_reply"] == '{"results": "Кошка сидит на столе."}'
    assert row["request"] == '{"model": "m-1", "temperature": 1}'
    assert "sk-secret" in str(Call.objects.get().request)  # it would have been there


def test_trials_are_told_from_answers(built):
    Call.objects.create(config=built.config, purpose="trial", state="ok", request={}, raw_reply="да")
    answer, trial = rows(built, "calls")
    assert (answer["purpose"], answer["experiment"], answer["run"]) == ("answer", "First", "1")
    assert (trial["purpose"], trial["experiment"], trial["run"], trial["raw_reply"]) == ("trial", "", "", "да")


def test_sg3_texts_survive_the_exact_file_and_harm_nobody_in_the_other(bare, instrument):
    for number, text in enumerate(TEXTS):
        bare.sitting(f"P{number}", {1: text})
    assert [row["text"] for row in rows(bare, "answers")] == TEXTS
    response = download(bare, "answers", "?for=excel", "ru")
    assert "ours-answers-for-excel.csv" in response["Content-Disposition"]
    text = b"".join(response.streaming_content).decode("utf-8-sig")
    found = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=";", strict=True))
    shown = [row["text"] for row in found]
    for original, text in zip(TEXTS, shown, strict=True):
        assert text in (original, f"'{original}")
    assert not [text for text in shown if text[0] in "=+-@1"]


def take_part(built: Built) -> None:
    """The first person came by a survey."""
    survey = add_survey(built.cast.study, built.instrument)
    person = Participant.objects.create(respondent=built.answers["P1/1"].sitting.respondent, survey=survey, digest="p1")
    question = Question.objects.create(
        survey=survey, position=1, place="between", after_task=1, code="check", kind="multiple",
        text={"ru": "Что видно?"}, options=[{"value": v, "text": {"ru": v}} for v in "ab"], expected="a, b",
    )  # fmt: skip
    QuestionResponse.objects.create(participant=person, question=question, value=["b", "a"])


def rate(built: Built) -> None:
    """A rater judges one answer in a campaign and passes another one by."""
    campaign = make_campaign(built.cast.study, built.cast.alice)
    place = take(campaign, built.raters[0])
    post(place, built.raters[0], remark=Remark(seconds=3.5, is_flagged=True, comment="спорно"))
    place_skip(place_uuid=take(campaign, built.raters[0]).uuid, user_id=built.raters[0].user_id, reason="не понимаю")


def test_what_raters_did_beside_judging_is_in_files(built):
    rate(built)
    (place,) = rows(built, "places")
    assert (place["rater"], place["seconds"], place["flagged"], place["comment"]) == ("R1", "3.5", "true", "спорно")
    (skip,) = rows(built, "skips")
    assert (skip["rater"], skip["reason"], skip["undone_at"]) == ("R1", "не понимаю", "")


def test_simulated_data_says_so_in_every_file(built):
    Study.objects.filter(pk=built.cast.study.pk).update(simulated=True)
    take_part(built)
    rate(built)
    for name in EXPORTS:
        response = download(built, name)
        assert f'filename="ours-simulated-{name}.csv"' in response["Content-Disposition"]
        assert {row["simulated"] for row in rows(built, name)} == {"true"}
    figure = built.cast.client(built.cast.alice).get(reverse("figure_csv", args=["ours"]))
    assert "ours-simulated-figure1.csv" in figure["Content-Disposition"]


def test_the_page_counts_the_rows_of_each_file(built):
    take_part(built)
    rate(built)
    page = built.cast.client(built.cast.alice).get(reverse("exports", args=["ours"]))
    counted = {file["export"].name: file["count"] for file in page.context["files"]}
    assert counted == {name: len(rows(built, name)) for name in EXPORTS}
    assert all(counted.values())


def test_the_questionnaire_is_a_file(built):
    take_part(built)
    (row,) = rows(built, "responses")
    assert (row["question"], row["text"], row["value"]) == ("check", "Что видно?", "b; a")
    assert (row["place"], row["after_task"], row["attention_passed"]) == ("between", "1", "true")
    assert row["respondent"] == str(built.answers["P1/1"].sitting.respondent.public_id)
    Participant.objects.update(withdrawn_at=timezone.now())
    assert rows(built, "responses") == []


def test_nobody_appears_by_name(built):
    for name in EXPORTS:
        text = b"".join(download(built, name).streaming_content).decode()
        for rater in Rater.objects.select_related("user"):
            assert rater.user.username not in text


def test_header_and_first_rows_do_not_wait_for_the_last(bare, monkeypatch):
    """The file is streamed: its rows are asked for while it is read."""
    bare.sitting("P", {1: "кошка сидит на столе"})
    response = download(bare, "answers")
    assert response.streaming
    Answer.objects.update(text="мышь сидит на столе")
    assert "мышь" in b"".join(response.streaming_content).decode()


@pytest.mark.parametrize("name", EXPORTS)
def test_only_the_studys_researchers_may_download(built, client, name):
    address = reverse("export_file", args=["ours", name])
    cast = built.cast
    assert cast.client(cast.bob).get(address).status_code == 404
    assert cast.client(cast.rita).get(address).status_code == 404
    assert client.get(address).url.startswith(reverse("login"))
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    response = cast.client(cast.alice).get(address)
    assert response.status_code == 403
    assert "You are rating answers of this study" in response.content.decode()


def test_a_file_that_does_not_exist_is_not_found(built):
    assert download(built, "passwords").status_code == 404

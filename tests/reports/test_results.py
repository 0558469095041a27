"""Every number of the hand-computed study (see conftest), from the selector and on its page."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

from corpus.instruments import instrument_copy
from corpus.models import Answer, Respondent, Sitting
from corpus.services import instrument_freeze
from reports.captions import caption, differences
from reports.contrast_tables import by_criterion
from reports.selectors import PEOPLE, results_of, row_labels
from reports.tables import overview
from scoring.models import Judgement
from scoring.services import judgements_retract, rules_apply
from studies.services import blinding_impose
from tests.reports.conftest import ALL, RIGHT, SECOND, Built, add_model, add_run

PAGES = ["results", "result_answers", "figures_vega", "figure_vega", "figure_csv", "exports", "study_dashboard"]


def results(built: Built):
    rules_apply(study=built.cast.study, rubric=built.rubric)
    return results_of(study=built.cast.study, instrument=built.instrument, rubric=built.rubric)


def cut(row, found, factor, value):
    (place,) = [place for place, group in enumerate(found.groups) if (group.factor, group.value) == (factor, value)]
    return row.scores[place]


def test_people(built):
    people = results(built).people
    score = people.scores[0]
    # P1 alone has a score: S = (4 + 3 + 0) / 3 = 7/3, over four criteria 7/12.
    assert score.mean.value == pytest.approx(7 / 3)
    assert score.mean.norm == pytest.approx(7 / 12)
    assert (people.n_sittings, score.n_scored, score.n_undecided) == (2, 1, 1)
    assert score.interval is None  # one person has no interval
    # P2 lies between (2 + 4 + 3) / 3 = 3 and (2 + 4 + 4) / 3 = 10/3; with P1's 7/3 the mean between 8/3 and 17/6.
    assert score.bounds.low == pytest.approx(8 / 3)
    assert score.bounds.high == pytest.approx(17 / 6)
    tally = people.tally
    assert (tally.n_answers, tally.n_undecided, tally.n_refusals, tally.n_no_reply) == (6, 1, 1, 0)


def test_model_over_runs(built):
    (model,) = results(built).models
    score = model.scores[0]
    # Runs: 8/3, 11/3, 7/3; their mean 26/9, over four criteria 13/18.
    assert score.mean.norm == pytest.approx(13 / 18)
    # In twelfths 8, 11, 7 around 26/3: squares 4/9 + 49/9 + 25/9 = 78/9, over 2 = 13/3; the root over 12.
    assert score.sd.norm == pytest.approx((13 / 3) ** 0.5 / 12)
    # Majority of three runs. 1: g 110, l 110, o 100, s 110 = 3. 2: all but l 110 are 111 = 4. 3: 011 each = 4.
    assert score.majority.value == pytest.approx(11 / 3)
    assert score.majority.norm == pytest.approx(11 / 12)
    assert (model.n_sittings, model.tally.n_answers, model.tally.n_no_reply, model.tally.n_refusals) == (3, 9, 1, 0)


def test_by_order_and_complexity(built):
    found = results(built)
    (model,) = found.models
    # In order (1, 3): P1 (4 + 0) / 2 = 2 of 4; P2 is undecided on 3. Shuffled (2): 3 and 4.
    assert cut(found.people, found, "shuffled", "no").mean.norm == pytest.approx(1 / 2)
    assert cut(found.people, found, "shuffled", "yes").mean.norm == pytest.approx(3.5 / 4)
    # Easy (1, 2): P1 7/2, P2 (2 + 4) / 2 = 3. Medium (3): P1 0, P2 undecided.
    assert cut(found.people, found, "complexity", "easy").mean.norm == pytest.approx(3.25 / 4)
    assert cut(found.people, found, "complexity", "medium").mean.norm == 0
    # The model on 2: 4, 4, 3; on 1 and 3: 4/2, 7/2, 4/2.
    assert cut(model, found, "shuffled", "yes").mean.norm == pytest.approx(11 / 12)
    assert cut(model, found, "shuffled", "no").mean.norm == pytest.approx((2 + 3.5 + 2) / 3 / 4)


def test_by_stimulus(built):
    found = results(built)
    keys = {stimulus.position: stimulus.pk for stimulus in found.stimuli}
    people = {position: found.people.stimuli[key] for position, key in keys.items()}
    assert (people[1].score.norm, people[1].n) == (pytest.approx(3 / 4), 2)  # 4 and 2
    assert (people[3].score.norm, people[3].n, people[3].n_undecided) == (0, 1, 1)
    model = {position: found.models[0].stimuli[key].score.norm for position, key in keys.items()}
    assert model == {1: pytest.approx(7 / 12), 2: pytest.approx(11 / 12), 3: pytest.approx(8 / 12)}


def test_an_incomplete_run_leaves_the_majority_undefined_until_it_is_repeated(bare):
    add_model(bare, runs=2)
    add_run(bare, 1, RIGHT)
    add_run(bare, 2, {1: RIGHT[1]}, state="incomplete")
    for name in ("M1/1", "M1/2", "M1/3"):
        bare.judge(name, ALL)
    (model,) = results(bare).models
    assert model.scores[0].majority.value is None
    assert model.scores[0].majority.reason == "incomplete_run"
    assert model.scores[0].mean.norm == 1  # of the one complete run
    assert model.scores[0].sd.reason == "too_few"
    add_run(bare, 3, RIGHT)
    for name in ("M3/1", "M3/2", "M3/3"):
        bare.judge(name, ALL)
    (model,) = results(bare).models
    assert model.scores[0].majority.norm == 1
    assert (model.n_sittings, model.n_unfinished) == (2, 1)


@pytest.mark.parametrize("state", ["pending", "running", "paused", "cancelled"])
def test_a_run_that_is_not_over_is_missing_and_no_failure(bare, state):
    add_model(bare, runs=2)
    add_run(bare, 1, RIGHT)
    add_run(bare, 2, {}, state=state)
    for name in ("M1/1", "M1/2", "M1/3"):
        bare.judge(name, ALL)
    (model,) = results(bare).models
    assert model.scores[0].majority.reason == "missing_runs"
    assert (model.scores[0].mean.norm, model.n_unfinished) == (1, 1)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Second", ["Model M · First", "Model M · Second"]),
        ("First", ["Model M · First", "Model M · First (2)"]),  # else the figure would add the two up
    ],
)
def test_two_experiments_of_a_model_are_two_rows(built, title, expected):
    built.experiment.pk = None
    built.experiment.title = title
    built.experiment.save()
    respondent = built.config.respondent
    sitting = built.sitting("N1", RIGHT, respondent=respondent, ordinal=4, source_label="Model M")
    built.config.runs.create(experiment=built.experiment, sitting=sitting, ordinal=1, state="finished")
    labels = [row.label for row in results(built).models]
    assert labels == expected
    assert [label for key, label in row_labels(built.instrument).items() if key != PEOPLE] == expected


def test_the_page_shows_the_numbers(built):
    page = built.cast.client(built.cast.alice).get(reverse("results", args=["ours"])).content.decode()
    for shown in ("0.583", "2.333", "0.667 – 0.708", "0.722", "0.173", "0.917"):
        assert shown in page
    assert "needs two or more" in page  # the interval over one person
    assert "nan" not in page.lower().split()
    assert "Differences from the paper" in page


def test_an_empty_study_teaches(cast, instrument):
    page = cast.client(cast.alice).get(reverse("results", args=["ours"]))
    assert page.status_code == 200
    assert "Nobody has finished a sitting yet" in page.content.decode()
    assert "nothing is finished yet" in page.content.decode()


def test_a_study_without_an_instrument_has_a_page(cast):
    page = cast.client(cast.bob).get(reverse("results", args=["theirs"]))
    assert "no instrument yet" in page.content.decode()
    assert cast.client(cast.bob).get(reverse("result_answers", args=["theirs"])).status_code == 404
    assert cast.client(cast.bob).get(reverse("figure_vega", args=["theirs"])).status_code == 404


def answers_page(built: Built, query: str = "") -> str:
    address = reverse("result_answers", args=["ours"])
    response = built.cast.client(built.cast.alice).get(f"{address}?{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_every_number_opens_its_rows(built):
    assert "15 answers" in answers_page(built)
    assert "6 answers" in answers_page(built, "group=people")
    model = f"model-{built.config.pk}-{built.experiment.pk}"
    assert "9 answers" in answers_page(built, f"group={model}")
    assert "1 answer of" in answers_page(built, f"group={model}&state=no_reply")
    assert "2 answers" in answers_page(built, "group=people&stimulus=2")
    assert "1 answer of" in answers_page(built, "group=people&state=refusal")
    assert "5 answers" in answers_page(built, "shuffled=yes")
    assert "5 answers" in answers_page(built, "complexity=medium")
    page = answers_page(built, "group=people&state=undecided")
    assert "1 answer of" in page
    assert "only one vote" in page


def test_links_on_the_page_lead_to_rows(built):
    client = built.cast.client(built.cast.alice)
    page = client.get(reverse("results", args=["ours"]))
    for row in page.context["overview"]:
        for cell in (row.norm, row.undecided, row.refusals, row.no_reply):
            if cell.href:
                assert client.get(cell.href).context["rows"]
    for table in (page.context["breakdown"], page.context["per_stimulus"]):
        for line in table.rows:
            for cell in line.cells:
                assert client.get(cell.href).context["rows"]


@pytest.mark.parametrize(
    "query", ["group=nobody", "stimulus=x", "shuffled=2", "complexity=odd", "state=any", "instrument=999999"]
)
def test_a_choice_that_does_not_exist_is_not_found(built, query):
    address = reverse("result_answers", args=["ours"])
    assert built.cast.client(built.cast.alice).get(f"{address}?{query}").status_code == 404


def test_a_new_version_that_somebody_has_just_opened_does_not_empty_the_results(built):
    newer = instrument_copy(instrument=built.instrument, study=built.cast.study, slug="t2", title="T2", actor=None)
    instrument_freeze(instrument=newer, actor=None)
    client = built.cast.client(built.cast.alice)
    shown = client.get(reverse("results", args=["ours"])).context["instrument"]
    assert shown == built.instrument, "nobody has sat the newer one"
    person = Respondent.objects.create(study=built.cast.study, kind="human")
    sitting = Sitting.objects.create(
        respondent=person, instrument=newer, ordinal=1, order=[], source_label="a survey", started_at=timezone.now()
    )
    assert client.get(reverse("results", args=["ours"])).context["instrument"] == built.instrument
    Sitting.objects.filter(pk=sitting.pk).update(state=Sitting.State.FINISHED, finished_at=timezone.now())
    assert client.get(reverse("results", args=["ours"])).context["instrument"] == newer


def test_another_studys_instrument_is_not_found(built):
    client = built.cast.client(built.cast.bob)
    address = reverse("results", args=["theirs"])
    assert client.get(f"{address}?instrument={built.instrument.pk}").status_code == 404


def test_markup_in_answers_is_text(bare):
    bare.sitting("P1", {1: "<script>alert(1)</script> раз два три", 2: SECOND, 3: '=HYPERLINK("http://evil")&<b>x'})
    page = answers_page(bare)
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<b>x" not in page


@pytest.mark.parametrize("name", PAGES)
def test_only_the_studys_researchers_may_look(built, name):
    address = reverse(name, args=["ours"])
    cast = built.cast
    assert cast.client(cast.alice).get(address).status_code == 200
    assert cast.client(cast.bob).get(address).status_code == 404
    assert cast.client(cast.rita).get(address).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_a_stranger_is_sent_to_log_in(built, client, name):
    response = client.get(reverse(name, args=["ours"]))
    assert response.status_code == 302
    assert response.url.startswith(reverse("login"))


@pytest.mark.parametrize("name", PAGES[:-1])
def test_a_researcher_who_rates_is_told_why_it_is_closed(built, name):
    blinding_impose(user=built.cast.alice, study=built.cast.study, cause="campaign 1")
    response = built.cast.client(built.cast.alice).get(reverse(name, args=["ours"]))
    assert response.status_code == 403
    assert "open when the campaign closes" in response.content.decode()


def test_sg6_a_gap_is_not_a_class(bare):
    """L1 1 1 0, L2 1 1 -, L3 - 1 0 on grammar: majority 1, 1, 0; without L1's first, answer 1 is undecided."""
    bare.sitting("P", RIGHT)
    votes = {1: "11-", 2: "111", 3: "0-0"}
    for position, given in votes.items():
        bare.judge(f"P/{position}", {"grammatical": given})
    rows = {row.answer.stimulus.position: row.labels[0] for row in rows_of(bare)}
    assert {position: label.value for position, label in rows.items()} == {1: 1, 2: 1, 3: 0}
    assert (rows[1].votes, rows[2].votes, rows[3].votes) == (2, 3, 2)

    judgements_retract(round_id=bare.rating.pk, answer_id=bare.answers["P/1"].pk, judge_id=bare.raters[0].judge_id)
    rows = {row.answer.stimulus.position: row.labels[0] for row in rows_of(bare)}
    assert (rows[1].value, rows[1].votes, str(rows[1].reason)) == (None, 1, "only one vote")
    page = answers_page(bare, "stimulus=1")
    assert "undecided" in page
    assert "1 vote<" in page


def rows_of(built: Built):
    address = reverse("result_answers", args=["ours"])
    return built.cast.client(built.cast.alice).get(address).context["rows"]


@pytest.mark.parametrize(
    "name", ["home", "study_dashboard", "results", "result_answers", "exports", "figures_vega", "errors"]
)
def test_queries_do_not_grow_with_the_answers(bare, name):
    add_model(bare)
    add_run(bare, 1, {1: RIGHT[1]})
    bare.judge("M1/1", ALL)
    client = bare.cast.client(bare.cast.alice)
    address = reverse(name) if name == "home" else reverse(name, args=["ours"])
    client.get(address)  # what is made once (the automatic round, the rule's judge) is made
    few = count_queries(client, address, bare, 5)
    many = count_queries(client, address, bare, 50)
    assert few == many


def count_queries(client, address, built: Built, number: int) -> int:
    """How many queries the page takes with `number` answers of people, all of them seen by the rules."""
    while Answer.objects.filter(sitting__respondent__kind="human").count() < number:
        name = f"P{Answer.objects.count()}"
        built.sitting(name, {1: RIGHT[1]})
        built.judge(f"{name}/1", ALL)
    rules_apply(study=built.cast.study, rubric=built.rubric)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_criteria_are_called_as_the_raters_are_asked_in_the_language_of_the_page(built):
    add_model(built, label="Other", runs=1)
    add_run(built, 9, RIGHT)
    with translation.override("ru"):
        found = results(built)
        assert [name for name, _in_score in by_criterion(found).columns] == [
            "Грамматически правильно?",
            "Логично?",
            "Естественный порядок слов?",
            "Столько же слов?",
            "Те же слова?",
        ]
        assert any("«Логично?»" in note and "logical" not in note for note in differences(found))
        assert any("Моделей: 2; прогонов с баллом: по 0–3 у каждой." in note for note in caption(found, 1))


def test_bounds_stand_beside_what_they_bound(built):
    # Two of three votes on M1/2 logical are taken back. Over the runs that criterion is then undecided, 1, 0: majority
    # of stimulus 2 is 3 or 4, and the model's (3 + 3 + 4) / 3 or (3 + 4 + 4) / 3.
    logical = Judgement.objects.filter(answer=built.answers["M1/2"], criterion__code="logical", round=built.rating)
    logical.exclude(judge=built.raters[0].judge).update(retracted_at=timezone.now())
    people, model = overview(results(built))
    assert (model.majority_bounds.low, model.majority_bounds.high) == pytest.approx((10 / 12, 11 / 12))
    assert (people.bounds.low, people.bounds.high) == pytest.approx((8 / 12, 17 / 24))
    assert model.bounds.low is None and people.majority_bounds.low is None

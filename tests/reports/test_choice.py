"""What a researcher chooses of the results: basis, people, runs."""

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from corpus.models import Sitting
from reports.choice import Choice, chosen_of
from reports.selectors import results_of
from scoring.models import Classifier, Split
from scoring.services import rules_apply
from tests.reports.conftest import ALL, RIGHT, Built, add_model, add_run
from tests.scoring.test_bases import automatic

LIKED = {"grammatical": 1, "logical": 1, "order": 1}


def page(built: Built, query: str = "", name: str = "results"):
    return built.cast.client(built.cast.alice).get(reverse(name, args=["ours"]) + f"?{query}")


def found(built: Built, **given):
    rules_apply(study=built.cast.study, rubric=built.rubric)
    chosen = chosen_of(given=given, study=built.cast.study, instrument=built.instrument, rubric=built.rubric)
    return results_of(study=built.cast.study, instrument=built.instrument, rubric=built.rubric, chosen=chosen)


def test_a_judge_as_basis(bare):
    bare.sitting("P", RIGHT)
    for number in (1, 2, 3):
        bare.judge(f"P/{number}", ALL)
    judge = automatic(bare, {f"P/{number}": LIKED | {"order": 0} for number in (1, 2, 3)})
    assert found(bare).people.scores[0].mean.value == 4
    other = found(bare, basis=f"judges-{judge}")
    assert other.people.scores[0].mean.value == 3
    text = page(bare, f"basis=judges-{judge}").content.decode()
    assert f"classifier {judge}" in text
    # Every link keeps the choice, so that a number opens the rows that it comes from.
    link = page(bare, f"basis=judges-{judge}").context["overview"][0].norm.href
    assert f"basis=judges-{judge}" in link
    assert "automatic judge" in bare.cast.client(bare.cast.alice).get(link).content.decode()


def test_people_of_one_survey(bare):
    bare.sitting("P1", RIGHT)
    bare.sitting("P2", RIGHT, source_label="survey & two")
    add_model(bare, runs=1)
    add_run(bare, 1, RIGHT)
    assert (found(bare).people.n_sittings, found(bare).models[0].n_sittings) == (2, 1)
    one = found(bare, people="from:survey & two")
    assert (one.people.n_sittings, one.models[0].n_sittings) == (1, 1)
    assert one.chosen.people_name == "survey & two"
    text = page(bare, "people=from:survey+%26+two")
    assert text.context["overview"][0].sittings.value == 1
    rows = bare.cast.client(bare.cast.alice).get(text.context["overview"][0].sittings.href).context["rows"]
    assert {row.answer.sitting.source_label for row in rows} == {"survey & two"}


def test_with_a_classifier_people_are_those_of_its_test_side(bare):
    trained = bare.sitting("P1", RIGHT)
    tested = bare.sitting("P2", RIGHT)
    bare.sitting("P3", RIGHT)  # came after the split: on neither side
    add_model(bare, runs=1)
    add_run(bare, 1, RIGHT)
    judge = automatic(bare, {f"P{one}/{number}": LIKED for one in (1, 2, 3) for number in (1, 2, 3)})
    study = bare.cast.study
    split = Split.objects.create(study=study, seed=1, people_hash="x")
    split.sides.create(respondent=trained.respondent, trains=True)
    split.sides.create(respondent=tested.respondent, trains=False)
    Classifier.objects.create(
        judge_id=judge, study=study, rubric=bare.rubric, split=split, title="Baseline one", recipe="baseline"
    )
    other = found(bare, basis=f"judges-{judge}")
    assert [row.sitting.pk for row in other.sittings if row.key == "people"] == [tested.pk]
    assert other.models[0].n_sittings == 1  # models are never narrowed
    assert other.chosen.choice == Choice(other.chosen.choice.basis, "test", "mean")
    assert other.chosen.basis_name == "Baseline one"
    assert found(bare).people.n_sittings == 3
    assert page(bare, f"basis=judges-{judge}&people=all").status_code == 404


def test_majority_is_drawn_when_chosen(built):
    query = f"instrument={built.instrument.pk}&runs=majority"
    text = page(built, query).content.decode()
    assert "more than half of the planned runs, as in the paper" in text
    assert found(built, runs="majority").chosen.choice.runs == "majority"


@pytest.mark.parametrize(
    "query", ["basis=judges-1", "basis=odd", "people=from:nowhere", "people=test", "people=odd", "runs=best"]
)
@pytest.mark.parametrize("name", ["results", "figures_vega", "figure_csv", "result_answers"])
def test_what_does_not_exist_is_not_found(built, query, name):
    assert page(built, query, name).status_code == 404


def test_a_rater_is_no_automatic_judge(built):
    """Judgements of an open campaign's rater cannot be picked out as a basis of their own."""
    rater = built.raters[0].judge_id
    assert page(built, f"basis=judges-{rater}").status_code == 404


def test_withdrawn_and_excluded_people_are_in_no_subset(bare):
    bare.sitting("P1", RIGHT)
    bare.sitting("P2", RIGHT, source_label="second", standing=Sitting.Standing.EXCLUDED)
    options = [option.key for option in found(bare).chosen.people]
    assert options == ["all"]
    assert page(bare, "people=from:second").status_code == 404


def test_the_api_takes_the_same_choice(bare):
    bare.sitting("P", RIGHT)
    for number in (1, 2, 3):
        bare.judge(f"P/{number}", ALL)
    judge = automatic(bare, {f"P/{number}": LIKED | {"order": 0} for number in (1, 2, 3)})
    client = APIClient()
    client.force_authenticate(bare.cast.alice)

    def asked(query: str) -> dict:
        return client.get(f"/api/v1/studies/ours/results/?{query}").json()

    assert (asked("")["basis"], asked("")["people"]) == ("rater_labels", "all")
    other = asked(f"basis=judges-{judge}")
    assert other["basis"] == f"judges-{judge}"
    assert other["rows"][0]["cuts"][0]["mean"]["score"] == 3
    assert client.get("/api/v1/studies/ours/results/?basis=judges-77").status_code == 404


# --- sets of judges ----------------------------------------------------------------------------------------------


@pytest.fixture
def three(bare):
    """One person; a judge of each criterion, of which the last says no, and a fourth that judges all of them."""
    bare.sitting("P", RIGHT)
    bare.sitting("Q", RIGHT, source_label="second")
    rules_apply(study=bare.cast.study, rubric=bare.rubric)
    keys = [f"{who}/{number}" for who in "PQ" for number in (1, 2, 3)]
    judges = [
        automatic(bare, {key: {code: value} for key in keys})
        for code, value in [("grammatical", 1), ("logical", 1), ("order", 0)]
    ]
    return bare, [*judges, automatic(bare, dict.fromkeys(keys, LIKED), kind="model")]


def sent(built: Built, query: str):
    return built.cast.client(built.cast.alice).get(reverse("results", args=["ours"]) + f"?form=1&{query}", follow=True)


def test_the_form_makes_a_set_of_one_judge_for_each_criterion(three):
    built, judges = three
    response = sent(built, "&".join(f"judge={judge}" for judge in judges[2::-1]))
    key = "judges-" + "-".join(map(str, judges[:3]))
    (address, status) = response.redirect_chain[-1]
    assert status == 302 and f"basis={key}" in address and "form=" not in address
    assert response.context["results"].people.scores[0].mean.value == 3
    boxes = [(one.pk, one.is_chosen, [c.code for c in one.criteria]) for one in response.context["chosen"].judges]
    assert boxes == [
        (judges[0], True, ["grammatical"]),
        (judges[1], True, ["logical"]),
        (judges[2], True, ["order"]),
        (judges[3], False, ["grammatical", "logical", "order"]),
    ]
    caption = response.context["figures"]["figure1"]["caption"][0]
    assert caption == (
        f"Basis: classifier {judges[0]} + classifier {judges[1]} + classifier {judges[2]}. By criterion: "
        f"Grammatically correct? classifier {judges[0]}; Logical? classifier {judges[1]}; "
        f"Natural word order? classifier {judges[2]}."
    )


def test_of_two_judges_who_differ_the_answer_is_undecided_and_that_is_said(three):
    built, judges = three
    response = sent(built, f"judge={judges[2]}&judge={judges[3]}")
    panel = {bench.criterion.code: (len(bench.names), bench.words) for bench in response.context["chosen"].panel}
    assert panel["grammatical"] == (1, "") and panel["order"][0] == 2
    assert "split in halves the answer is undecided" in response.content.decode()
    assert response.context["results"].people.scores[0].mean.value is None


def test_a_set_that_leaves_a_criterion_out_says_so(three):
    built, judges = three
    text = sent(built, f"judge={judges[0]}&judge={judges[1]}").content.decode()
    assert "no judge of this set has judged it, so no answer has a score" in text


def test_narrowing_the_answers_behind_a_number_keeps_the_set(three):
    built, judges = three
    key = f"judges-{judges[0]}-{judges[1]}"
    text = page(built, f"basis={key}&runs=majority", "result_answers").content.decode()
    assert f'<input type="hidden" name="basis" value="{key}">' in text
    assert '<input type="hidden" name="runs" value="majority">' in text


def test_none_ticked_is_the_raters(three):
    built, _judges = three
    response = sent(built, "people=from:second&runs=majority")
    assert response.context["chosen"].choice == Choice(people="from:second", runs="majority")
    assert response.context["chosen"].panel == ()


@pytest.mark.parametrize("wrong", ["999", "x", "-1", "²", "99999999999"])
def test_a_judge_that_has_judged_nothing_is_left_out_in_words(three, wrong):
    built, judges = three
    response = sent(built, f"judge={judges[0]}&judge={wrong}")
    assert response.context["chosen"].choice.basis.judges == (judges[0],)
    assert "has judged no answer of this study by this rubric" in response.content.decode()


def test_a_classifier_chosen_in_the_form_changes_the_people(three):
    built, judges = three
    study = built.cast.study
    split = Split.objects.create(study=study, seed=1, people_hash="x")
    split.sides.create(respondent=Sitting.objects.first().respondent, trains=False)
    Classifier.objects.create(
        judge_id=judges[0], study=study, rubric=built.rubric, split=split, title="Baseline", recipe="baseline"
    )
    response = sent(built, f"judge={judges[0]}&people=from:second")
    assert response.context["chosen"].choice.people == "test"
    assert "People are now: test side of the split." in response.content.decode()
    # And back: the raters know no test side.
    assert sent(built, "people=test").context["chosen"].choice == Choice()


def test_the_form_of_what_is_no_run_is_not_found(three):
    assert sent(three[0], "runs=best").status_code == 404


def test_the_form_is_closed_to_strangers_and_to_who_rates(three):
    built, judges = three
    address = reverse("results", args=["ours"]) + f"?form=1&judge={judges[0]}"
    assert built.cast.client(built.cast.bob).get(address).status_code == 404
    assert built.cast.client(built.cast.rita).get(address).status_code == 404


def test_the_api_names_the_judges_of_a_set(three):
    built, judges = three
    client = APIClient()
    client.force_authenticate(built.cast.alice)
    key = "judges-" + "-".join(map(str, judges[:3]))
    found = client.get(f"/api/v1/studies/ours/results/?basis={key}").json()
    assert found["basis"] == key
    assert found["judges"][0] == {"id": judges[0], "name": f"classifier {judges[0]}", "criteria": ["grammatical"]}
    assert len(found["judges"]) == 4

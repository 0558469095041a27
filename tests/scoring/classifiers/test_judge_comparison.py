"""Every judge on the same test answers: figures counted again by scikit-learn and SciPy, and who may see them."""

import csv
import io
import random
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import mean

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from corpus.models import Answer, Respondent, Sitting
from llmruns.models import ModelConfig, ModelJudge, Prompt
from reports.choice import judge_names
from reports.judge_choice import default_set
from reports.judge_comparison import Asked, Comparison, Line, judges_compared
from reports.judge_rows import rubrics_of, sheet_of
from reports.test_side import classifier_titles
from scoring.classifiers import recipes
from scoring.classifiers.services import classifier_create
from scoring.classifiers.study_data import tests_of as respondents_tested
from scoring.evaluation import evaluate
from scoring.models import Classifier, Criterion, Evaluation, Judge, Judgement, Round, Rubric, Split
from scoring.services import RUBRICS, round_close, rules_apply
from studies.models import AuditEntry
from studies.services import blinding_impose
from tests.api.conftest import client_of
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import make_split, people_answer
from tests.scoring.classifiers.test_commands import run

pytestmark = pytest.mark.django_db
CODES = ("grammatical", "logical", "order")
Values = dict[int, dict[str, float]]  # by answer and code


@pytest.fixture
def tested(divided: Split, rated: list[Answer]) -> list[Answer]:
    """The 36 answers of the nine people who are not learned from."""
    sides = respondents_tested(divided)
    return [answer for answer in rated if answer.sitting.respondent_id in sides]


def labels(answers: Collection[Answer]) -> Values:
    """What both raters say."""
    found: Values = {answer.pk: {} for answer in answers}
    for row in Judgement.objects.filter(answer__in=answers, judge__kind="rater").select_related("criterion"):
        found[row.answer_id][row.criterion.code] = row.value
    return found


def noisy(answers: Collection[Answer], seed: int, right: float = 0.75, codes: Collection[str] = CODES) -> Values:
    rng = random.Random(seed)
    return {
        pk: {code: value if rng.random() < right else 1 - value for code, value in values.items() if code in codes}
        for pk, values in labels(answers).items()
    }


def say(judge: Judge, rubric: Rubric, split: Split, values: Mapping[int, Mapping[str, float]]) -> None:
    criteria = {criterion.code: criterion for criterion in rubric.criteria.all()}
    round_ = Round.objects.create(study=split.study, rubric=rubric, purpose="automatic", judge=judge)
    Judgement.objects.bulk_create(
        Judgement(round=round_, answer_id=pk, criterion=criteria[code], judge=judge, value=value, confidence=0.9)
        for pk, given in values.items()
        for code, value in given.items()
    )


def make_classifier(split: Split, criteria: list[Criterion], **more: object) -> Classifier:
    """As if it had been trained."""
    made = classifier_create(split=split, criteria=criteria, actor=None, enqueue=False, **more)
    made.state, made.weights_hash, made.finished_at, made.n_train = "finished", "x" * 64, timezone.now(), 84
    made.save(update_fields=["state", "weights_hash", "finished_at", "n_train"])
    return made


@pytest.fixture
def judged(rubric: Rubric) -> list[Criterion]:
    return list(rubric.criteria.filter(kind="judged"))


@pytest.fixture
def first(divided: Split, judged: list[Criterion], rubric: Rubric, tested: list[Answer]) -> Classifier:
    """It has judged all of them."""
    made = make_classifier(divided, judged, recipe=recipes.BASELINE, title="<b>First</b>")
    say(made.judge, rubric, divided, noisy(tested, 1))
    return made


@pytest.fixture
def model(divided: Split, rubric: Rubric, tested: list[Answer]) -> Judge:
    """A model judge that has judged every second one."""
    judge = Judge.objects.create(kind=Judge.Kind.MODEL)
    say(judge, rubric, divided, noisy(tested[::2], 2))
    return judge


def said_by(judge: Judge | int, answers: Collection[Answer]) -> Values:
    found: Values = {}
    for row in Judgement.objects.filter(answer__in=answers, judge=judge).select_related("criterion"):
        found.setdefault(row.answer_id, {})[row.criterion.code] = row.value
    return found


def line_of(found: Comparison, judge: int) -> Line:
    return next(line for line in found.lines if line.judge == judge)


def macro(truth: Values, said: Values, code: str, answers: Collection[Answer]) -> float:
    pairs = [(str(truth[one.pk][code]), str(said[one.pk][code])) for one in answers]
    return f1_score([a for a, _ in pairs], [b for _, b in pairs], average="macro")


# --- figures ------------------------------------------------------------------------------------------------------


def test_all_rows_are_measured_on_the_answers_that_all_have_judged(
    divided: Split, rubric: Rubric, first: Classifier, model: Judge, tested: list[Answer]
) -> None:
    found = judges_compared(split=divided, rubric=rubric)
    truth = labels(tested)
    assert [line.judge for line in found.lines] == [first.judge_id, model.pk] and found.n_subset == 36
    assert [line.n_own for line in found.lines] == [36, 18]
    for line in found.lines:
        said = said_by(line.judge, tested)
        for code, report in zip(CODES, line.cells, strict=True):
            assert report.n == 18
            assert report.estimates["f1_macro"].value == pytest.approx(macro(truth, said, code, tested[::2]))
        assert line.mean.value == pytest.approx(mean(macro(truth, said, code, tested[::2]) for code in CODES))
        assert line.mean.low < line.mean.value < line.mean.high
    said = said_by(first.judge, tested)
    again = evaluate(
        truth=[truth[one.pk]["logical"] for one in tested[::2]],
        said=[said[one.pk]["logical"] for one in tested[::2]],
        groups=[one.sitting.respondent_id for one in tested[::2]],
        classes=[0.0, 1.0],
        seed=divided.seed,
    )
    assert line_of(found, first.judge_id).cells[1].estimates == again.estimates, "intervals too"


def test_each_on_its_own_answers(
    divided: Split, rubric: Rubric, first: Classifier, model: Judge, tested: list[Answer]
) -> None:
    found = judges_compared(split=divided, rubric=rubric, asked=Asked(on="own", figure="mcc"))
    one, other = line_of(found, first.judge_id), line_of(found, model.pk)
    assert [report.n for report in one.cells] == [36] * 3 and [report.n for report in other.cells] == [18] * 3
    truth, said = labels(tested), said_by(first.judge, tested)
    pairs = [(truth[answer.pk]["logical"], said[answer.pk]["logical"]) for answer in tested]
    assert one.cells[1].estimates["mcc"].value == pytest.approx(
        matthews_corrcoef([a for a, _ in pairs], [b for _, b in pairs])
    )
    # Raters found every order natural: a mean of MCCs with one that is undefined is none.
    assert (one.mean.value, one.mean.reason) == (None, "one_class_true")
    without = judges_compared(split=divided, rubric=rubric, asked=Asked(judges=frozenset({first.judge_id})))
    assert [line.judge for line in without.lines] == [first.judge_id]
    assert without.lines[0].cells[0].n == 36, "the one that is left out narrows nothing"


def test_differences_from_the_highest(
    divided: Split, rubric: Rubric, first: Classifier, model: Judge, tested: list[Answer]
) -> None:
    found = judges_compared(split=divided, rubric=rubric)
    highest, lower = sorted(found.lines, key=lambda line: -line.mean.value)
    assert highest.from_highest is None
    for line in (lower, found.constant):
        assert line.from_highest.value == pytest.approx(line.mean.value - highest.mean.value)
        assert line.from_highest.low < line.from_highest.value < line.from_highest.high
    own = judges_compared(split=divided, rubric=rubric, asked=Asked(on="own"))
    assert {line.from_highest for line in (*own.lines, own.constant)} == {None}, "not of the same answers"


def test_the_constant_judge_is_a_row(divided: Split, rubric: Rubric, first: Classifier, tested: list[Answer]) -> None:
    constant = judges_compared(split=divided, rubric=rubric).constant
    truth = [values["logical"] for values in labels(tested).values()]
    commonest = max(set(truth), key=truth.count)
    expected = f1_score([str(v) for v in truth], [str(commonest)] * len(truth), average="macro")
    assert constant.cells[1].estimates["f1_macro"].value == pytest.approx(expected)
    assert constant.cells[1].estimates["mcc"].reason == "one_class_said" and not constant.correlations
    assert constant.mean.value is not None


def test_a_judge_of_one_criterion_narrows_that_one_alone(
    cast: Cast, divided: Split, rubric: Rubric, first: Classifier, judged: list[Criterion], tested: list[Answer]
) -> None:
    rules_apply(study=cast.study, rubric=rubric)
    partial = make_classifier(divided, judged[:1], recipe=recipes.BASELINE)
    say(partial.judge, rubric, divided, noisy(tested[:10], 3, codes=["grammatical"]))
    found = judges_compared(split=divided, rubric=rubric)
    assert [report.n for report in line_of(found, first.judge_id).cells] == [10, 36, 36]
    line = line_of(found, partial.judge_id)
    assert line.cells[0].n == 10 and line.cells[1:] == [None, None]
    assert line.mean is None and not line.correlations
    assert line_of(found, first.judge_id).correlations["answer", "all"].n == 36


def test_subsets(
    divided: Split, rubric: Rubric, judged: list[Criterion], tested: list[Answer], rated: list[Answer]
) -> None:
    """A refusal, a text that nobody in training wrote, a task held out of one classifier and two of another."""
    Answer.objects.filter(pk=tested[0].pk).update(text="знаю")
    Answer.objects.filter(pk=tested[1].pk).update(text="Кошка спала в глубоком тёмном саду.")
    tasks = sorted({answer.stimulus_id for answer in tested})
    one = make_classifier(divided, judged, recipe=recipes.BASELINE, held_out=tasks[:2])
    other = make_classifier(divided, judged, recipe=recipes.BASELINE, held_out=tasks[1:2])
    for seed, classifier in enumerate((one, other)):
        say(classifier.judge, rubric, divided, noisy(tested, seed))
    untaught = Judge.objects.create(kind=Judge.Kind.MODEL)
    say(untaught, rubric, divided, noisy(tested, 5))

    def n(subset: str, on: str = "common") -> list[int]:
        found = judges_compared(split=divided, rubric=rubric, asked=Asked(subset=subset, on=on))
        return [line.cells[0].n if line.cells[0] else 0 for line in (*found.lines, found.constant)]

    assert n("all") == [35] * 4 and n("with_refusals") == [36] * 4
    assert n("held_out") == [9] * 4, "held out of both"
    refusal = int(tested[0].stimulus_id in tasks[:2])
    assert n("held_out", "own") == [18 - refusal, 9, 18 - refusal, 18 - refusal]
    seen = {answer.text for answer in rated if answer not in tested}
    fresh = [answer for answer in tested[2:] if answer.text not in seen]
    assert n("unseen") == [len(fresh) + 1] * 4
    found = judges_compared(split=divided, rubric=rubric, asked=Asked(subset="with_refusals"))
    usual = judges_compared(split=divided, rubric=rubric)
    for more, less in zip(found.lines, usual.lines, strict=True):
        assert more.cells[0].confusion[0][0] == less.cells[0].confusion[0][0] + 1, "0 by rule, on both sides"


def test_scores_are_correlated(
    cast: Cast, divided: Split, rubric: Rubric, first: Classifier, tested: list[Answer]
) -> None:
    Answer.objects.filter(pk=tested[5].pk).update(text="знаю")  # a refusal: 0 for raters and judge
    rules_apply(study=cast.study, rubric=rubric)
    found = line_of(judges_compared(split=divided, rubric=rubric), first.judge_id).correlations
    truth, said = labels(tested), said_by(first.judge, tested)
    points = dict(
        Judgement.objects.filter(answer__in=tested, judge__kind="rule", criterion__code="sequence").values_list(
            "answer", "value"
        )
    )
    assert set(points.values()) == {0, 1}

    def scores(values: Values, answers: list[Answer], sequence: bool) -> list[float]:
        return [
            0.0 if one is tested[5] else sum(values[one.pk].values()) + (points[one.pk] if sequence else 0)
            for one in answers
        ]

    for variant, refusals, sequence in (
        ("all", True, True),
        ("no_refusals", False, True),
        ("judged", True, False),
        ("judged_no_refusals", False, False),
    ):
        answers = [one for one in tested if refusals or one is not tested[5]]
        automatic, raters = scores(said, answers, sequence), scores(truth, answers, sequence)
        shown = found["answer", variant]
        assert (shown.n, shown.n_respondents) == (len(answers), 9)
        assert shown.pearson.value == pytest.approx(stats.pearsonr(automatic, raters).statistic)
        assert shown.spearman.value == pytest.approx(stats.spearmanr(automatic, raters).statistic)
        people = sorted({one.sitting.respondent_id for one in answers})
        means = [
            [
                mean(v for v, one in zip(values, answers, strict=True) if one.sitting.respondent_id == who)
                for who in people
            ]
            for values in (automatic, raters)
        ]
        by_person = found["respondent", variant]
        assert by_person.n == 9
        assert by_person.pearson.value == pytest.approx(stats.pearsonr(*means).statistic)
        assert by_person.spearman.value == pytest.approx(stats.spearmanr(*means).statistic)


def test_an_undecided_answer_has_no_score(
    divided: Split, rubric: Rubric, cast: Cast, first: Classifier, tested: list[Answer]
) -> None:
    rules_apply(study=cast.study, rubric=rubric)
    votes = Judgement.objects.filter(answer=tested[0], criterion__code="logical", judge__kind="rater")
    one = votes.order_by("pk")[0]
    Judgement.objects.filter(pk=one.pk).update(retracted_at=timezone.now())  # one vote alone decides nothing
    found = judges_compared(split=divided, rubric=rubric)
    assert [report.n for report in found.lines[0].cells] == [36, 35, 36] and found.n_scored == 35


def test_one_judge_for_each_criterion(
    cast: Cast, divided: Split, rubric: Rubric, judged: list[Criterion], tested: list[Answer]
) -> None:
    """The paper's three classifiers; the row's values are each one's on its own criterion."""
    rules_apply(study=cast.study, rubric=rubric)
    made = []
    for place, criterion in enumerate(judged):
        made.append(make_classifier(divided, [criterion], recipe=recipes.BASELINE, title=f"{criterion.code} alone"))
        say(made[-1].judge, rubric, divided, noisy(tested, 7 + place, codes=[criterion.code]))
    chosen = {criterion.code: one.judge_id for criterion, one in zip(judged, made, strict=True)}
    assert default_set(sheet_of(split=divided, rubric=rubric)) == chosen
    found = judges_compared(split=divided, rubric=rubric, asked=Asked(chosen_set=chosen))
    *singles, together = found.lines
    assert together.row.judges == tuple(chosen.values()) and together.judge is None
    for place, single in enumerate(singles):
        assert together.cells[place] == single.cells[place] and not single.correlations
    truth = labels(tested)
    said = {one.pk: {c: said_by(chosen[c], [one])[one.pk][c] for c in CODES} for one in tested}
    expected = stats.pearsonr(
        [sum(said[one.pk].values()) for one in tested], [sum(truth[one.pk].values()) for one in tested]
    ).statistic
    assert together.correlations["answer", "judged"].pearson.value == pytest.approx(expected)


# --- who is a row -------------------------------------------------------------------------------------------------


def test_who_may_have_learned_from_these_people_is_no_row(
    cast: Cast, divided: Split, rubric: Rubric, judged: list[Criterion], first: Classifier, tested: list[Answer]
) -> None:
    other_split = make_split(cast.study, rubric, seed=2)
    stranger = make_classifier(other_split, judged, recipe=recipes.BASELINE)
    say(stranger.judge, rubric, divided, noisy(tested, 3))
    ready = make_classifier(other_split, judged, recipe=recipes.ACCEPTABILITY)
    Classifier.objects.filter(pk=ready.pk).update(n_train=0)
    say(ready.judge, rubric, divided, noisy(tested, 4))
    silent = make_classifier(divided, judged, recipe=recipes.BASELINE)
    found = judges_compared(split=divided, rubric=rubric)
    assert [line.judge for line in found.lines] == [first.judge_id, ready.judge_id]
    assert found.sheet.trained_elsewhere == [stranger] and found.sheet.silent == [silent]
    assert found.lines[1].row.held_out is None
    by_other = judges_compared(split=other_split, rubric=rubric)
    assert first in by_other.sheet.trained_elsewhere


def test_a_campaign_by_another_rubric_that_is_open_hides_nothing(
    cast: Cast, divided: Split, rubric: Rubric, first: Classifier
) -> None:
    Round.objects.create(study=cast.study, rubric=RUBRICS["children"](), purpose=Round.Purpose.RATING)
    assert rubrics_of(cast.study)[0] == rubric
    response = cast.client(cast.alice).get(reverse("judge_comparison", args=[cast.study.slug]))
    assert "problem" not in response.context
    assert response.context["sheet"].rubric == rubric


def test_who_withdraws_is_gone(divided: Split, rubric: Rubric, first: Classifier, tested: list[Answer]) -> None:
    Sitting.objects.filter(pk=tested[0].sitting_id).update(standing="withdrawn")
    found = judges_compared(split=divided, rubric=rubric)
    assert found.n_subset == 32 and found.lines[0].cells[0].n == 32
    assert found.lines[0].cells[0].n_respondents == 8
    assert found.lines[0].n_own == 32


def test_labels_decided_anew_count_at_once_and_open_rounds_do_not(
    cast: Cast, divided: Split, rubric: Rubric, rating: Round, first: Classifier, tested: list[Answer]
) -> None:
    said = said_by(first.judge, tested)
    wrong = next(one for one in tested if said[one.pk]["logical"] != labels([one])[one.pk]["logical"])
    before = judges_compared(split=divided, rubric=rubric).lines[0].cells[1]
    adjudication = Round.objects.create(
        study=cast.study, rubric=rubric, purpose=Round.Purpose.ADJUDICATION, adjudicates=rating
    )
    decider = Judge.objects.create(kind=Judge.Kind.RATER)
    Judgement.objects.create(
        round=adjudication,
        answer=wrong,
        criterion=rubric.criteria.get(code="logical"),
        judge=decider,
        value=said[wrong.pk]["logical"],
    )
    after = judges_compared(split=divided, rubric=rubric).lines[0].cells[1]
    assert after.estimates["f1_micro"].value == pytest.approx(before.estimates["f1_micro"].value + 1 / 36)
    Round.objects.filter(pk=rating.pk).update(closed_at=None)
    with pytest.raises(Exception, match="labels"):
        judges_compared(split=divided, rubric=rubric)


def test_queries_do_not_grow_with_the_answers(
    divided: Split,
    rubric: Rubric,
    first: Classifier,
    model: Judge,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_max_num_queries(40):
        judges_compared(split=divided, rubric=rubric)


# --- the page -----------------------------------------------------------------------------------------------------

PAGE = reverse("judge_comparison", args=["ours"])
FILE = reverse("judge_comparison_csv", args=["ours"])


def rows_of(client: Client, **given: object) -> list[dict[str, str]]:
    response = client.get(FILE, given)
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode("utf-8-sig"))))


def test_the_page_and_its_file_say_the_same(
    cast: Cast, divided: Split, first: Classifier, model: Judge, tested: list[Answer]
) -> None:
    client = cast.client(cast.alice)
    page = client.get(PAGE)
    shown = page.content.decode()
    assert page.status_code == 200
    assert "&lt;b&gt;First&lt;/b&gt;" in shown and "<b>First" not in shown
    rows = rows_of(client)
    mine = [row for row in rows if row["judge_id"] == str(first.judge_id)]
    assert {row["judge"] for row in mine} == {"<b>First</b>"}
    cell = next(row for row in mine if (row["figure"], row["criterion"]) == ("f1_macro", "logical"))
    assert (cell["n"], cell["subset"], cell["answers_chosen"]) == ("18", "all", "common")
    assert f"{float(cell['value']):.2f}" in shown
    assert f"{float(cell['low']):.2f} … {float(cell['high']):.2f}" in shown
    pearson = next(
        row for row in mine if (row["figure"], row["unit"], row["variant"]) == ("pearson", "answer", "judged")
    )
    assert f"{float(pearson['value']):.2f}" in shown and pearson["n"] == "18"
    assert {row["judge"] for row in rows} == {"<b>First</b>", f"model judge {model.pk}", "majority class"}
    from_highest = [row for row in rows if row["variant"] == "from_highest"]
    assert len(from_highest) == 2 and {row["criterion"] for row in from_highest} == {"mean"}
    own = rows_of(client, on="own", judge=first.judge_id, figure="f1_micro")
    assert {row["n"] for row in own if row["criterion"] in CODES} == {"36"}
    assert [row["figure"] for row in own if row["criterion"] == "mean"] == ["f1_micro", "f1_micro"]


def test_classifiers_of_one_title_are_told_apart_wherever_they_are_named(
    cast: Cast, divided: Split, rubric: Rubric, first: Classifier, tested: list[Answer]
) -> None:
    client = cast.client(cast.alice)
    assert classifier_titles([first.judge_id]) == {first.judge_id: "<b>First</b>"}
    other = Classifier.objects.create(
        judge=Judge.objects.create(kind="classifier"),
        study=cast.study,
        rubric=rubric,
        split=divided,
        title=first.title,
        recipe="baseline",
        state="finished",
        weights_hash="0" * 64,
        finished_at=timezone.now(),
    )
    numbered = f"<b>First</b> (#{first.pk})"
    assert judge_names(cast.study, rubric)[first.judge_id] == numbered
    assert numbered in {row["judge"] for row in rows_of(client)}
    shown = client.get(PAGE).content.decode()  # the other one has judged nothing, and is named below the table
    for one in (first, other):
        assert f"&lt;b&gt;First&lt;/b&gt; (#{one.pk})" in shown
    assert f"<b>First</b> (#{other.pk}): has judged none" in run("judges_compare", study="ours")


@pytest.mark.parametrize(
    "given",
    ["split=0", "split=x", "rubric=77", "figure=accuracy", "subset=train", "on=mine", "judge=0", "set_logical=0"],
)
def test_what_is_not_there_is_a_404(cast: Cast, first: Classifier, given: str) -> None:
    client = cast.client(cast.alice)
    assert {client.get(f"{address}?{given}").status_code for address in (PAGE, FILE)} == {404}


def test_every_choice_opens(cast: Cast, divided: Split, rubric: Rubric, first: Classifier, model: Judge) -> None:
    client = cast.client(cast.alice)
    for subset in ("all", "unseen", "held_out", "with_refusals"):
        for on in ("common", "own"):
            given = {"split": divided.pk, "rubric": rubric.pk, "figure": "mcc", "subset": subset, "on": on}
            assert client.get(PAGE, given).status_code == 200
    chosen = QueryDict(mutable=True)
    chosen.update(
        {f"set_{code}": str(judge) for code, judge in zip(CODES, (first.judge_id, model.pk, model.pk), strict=True)}
    )
    shown = client.get(f"{PAGE}?{chosen.urlencode()}").content.decode()
    assert "One judge for each criterion" in shown
    chosen["set_order"] = ""
    assert client.get(f"{PAGE}?{chosen.urlencode()}").status_code == 200


def test_others_are_refused(cast: Cast, divided: Split, first: Classifier) -> None:
    split = reverse("judge_split", args=["ours"])
    for user in (cast.bob, cast.rita):
        client = cast.client(user)
        assert {client.get(PAGE).status_code, client.get(FILE).status_code, client.post(split).status_code} == {404}
    assert {Client().get(PAGE).status_code, Client().post(split).status_code} == {302}
    theirs = cast.client(cast.bob).get(reverse("judge_comparison", args=["theirs"]), {"split": divided.pk})
    assert theirs.status_code == 200 and b"First" not in theirs.content, "it has no split of its own"
    # Who decides answers of a closed campaign is closed out of results, and so is who rates.
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 1")
    client = cast.client(cast.alice)
    assert {client.get(PAGE).status_code, client.get(FILE).status_code, client.post(split).status_code} == {403}
    assert Split.objects.count() == 1


def test_looking_keeps_nothing(cast: Cast, first: Classifier) -> None:
    client = cast.client(cast.alice)
    before = Evaluation.objects.count(), AuditEntry.objects.count(), Split.objects.count()
    assert client.get(PAGE).status_code == 200
    assert (Evaluation.objects.count(), AuditEntry.objects.count(), Split.objects.count()) == before
    assert client.get(reverse("judge_split", args=["ours"])).status_code == 405


def test_empty_states(cast: Cast, test_of_four, rating: Round, rubric: Rubric) -> None:
    client = cast.client(cast.alice)
    assert "have to be divided" in client.get(PAGE).content.decode()
    assert client.get(FILE).status_code == 404
    refused = client.post(reverse("judge_split", args=["ours"]), follow=True).content.decode()
    assert not Split.objects.exists() and "alert-danger" in refused
    answers = people_answer(test_of_four, 10, round_=rating)
    round_close(round_id=rating.pk)
    after = client.post(reverse("judge_split", args=["ours"]), follow=True).content.decode()
    made = Split.objects.get()
    assert made.sides.filter(trains=True).count() == 7
    assert AuditEntry.objects.filter(action="split_make", actor=cast.alice).count() == 1
    assert "No judge has judged these answers yet" in after
    Sitting.objects.filter(answers__in=answers).update(standing="withdrawn")
    gone = client.get(PAGE)
    assert gone.status_code == 200 and "alert-warning" in gone.content.decode()


def test_the_page_in_russian(cast: Cast, first: Classifier, model: Judge) -> None:
    client = cast.client(cast.alice)
    shown = client.get(PAGE, headers={"accept-language": "ru"}).content.decode()
    assert "Сравнение судей" in shown and "По одному судье" not in shown


# --- by program ---------------------------------------------------------------------------------------------------


def test_the_api_has_the_rows_of_the_file(cast: Cast, divided: Split, first: Classifier, model: Judge) -> None:
    client = client_of(cast.alice)
    found = client.get("/api/v1/studies/ours/judges/?subset=with_refusals&on=own").json()
    assert (found["study"], found["split"], found["reason"]) == ("ours", divided.pk, None)
    rows = rows_of(cast.client(cast.alice), subset="with_refusals", on="own")
    assert len(found["rows"]) == len(rows)
    for row, line in zip(found["rows"], rows, strict=True):
        assert row["judge"] == line["judge"] and row["figure"] == line["figure"]
        assert row["value"] == (float(line["value"]) if line["value"] else None)
        assert row["n"] == (int(line["n"]) if line["n"] else None)
    assert client.get("/api/v1/studies/ours/judges/?split=1000000").status_code == 404
    assert client.get("/api/v1/studies/ours/judges/?figure=accuracy").status_code == 400


def test_the_api_without_anything(cast: Cast, divided: Split, tested: list[Answer]) -> None:
    address = "/api/v1/studies/theirs/judges/"
    found = client_of(cast.bob).get(address).json()
    assert (found["split"], found["reason"], found["rows"]) == (None, "no_split", [])
    assert client_of(cast.bob).get(f"{address}?split={divided.pk}").status_code == 404
    Sitting.objects.all().update(standing="withdrawn")
    assert client_of(cast.alice).get("/api/v1/studies/ours/judges/").json()["reason"] == "no_labels"


def test_simulated_is_said_by_the_files_and_the_command(
    cast: Cast, divided: Split, rubric: Rubric, first: Classifier, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("judges_compare", "--study", "ours")
    assert capsys.readouterr().err == ""
    cast.study.simulated = True
    cast.study.save(update_fields=["simulated"])
    client = cast.client(cast.alice)
    assert '"ours-simulated-judges.csv"' in client.get(FILE)["Content-Disposition"]
    assert '"ours-simulated-judges-for-excel.csv"' in client.get(FILE, {"for": "excel"})["Content-Disposition"]
    call_command("judges_compare", "--study", "ours")
    assert capsys.readouterr().err == "ours: simulated data\n"


def test_by_command(
    cast: Cast, divided: Split, rubric: Rubric, first: Classifier, model: Judge, tmp_path: Path
) -> None:
    out = run("judges_compare", study="ours", on="own", csv=tmp_path / "judges.csv")
    assert f"{first.judge_id} <b>First</b>, has judged 36" in out and "majority class" in out
    lines = list(csv.DictReader(io.StringIO((tmp_path / "judges.csv").read_text(encoding="utf-8-sig"))))
    assert lines == rows_of(cast.client(cast.alice), on="own")
    assert "ours-judges.csv" in cast.client(cast.alice).get(FILE)["Content-Disposition"]
    only = run("judges_compare", study="ours", judge=[model.pk], split=str(divided.pk))
    assert f"{model.pk} model judge {model.pk}, has judged 18" in only and "First" not in only
    for options, words in (
        ({"study": "nowhere"}, "no study nowhere"),
        ({"study": "theirs"}, "rated by that rubric"),
        ({"study": "ours", "split": "99"}, "no such split"),
        ({"study": "ours", "judge": [1_000_000]}, "judged none"),
    ):
        with pytest.raises(CommandError, match=words):
            run("judges_compare", **options)
    made = run("judges_compare", study="ours", split_seed=5)
    assert Split.objects.filter(seed=5).count() == 1 and "trained by another split" in made


def test_model_judges_are_measured_with_the_classifiers(
    cast: Cast, divided: Split, rubric: Rubric, tested: list[Answer], model: Judge, tmp_path: Path
) -> None:
    """Without a finished classifier: on the newest split."""
    config = ModelConfig.objects.create(
        respondent=Respondent.objects.create(study=cast.study, kind="model"),
        study=cast.study,
        label="Judge J",
        base_url="http://127.0.0.1:9",
        model="j",
    )
    prompt = Prompt.objects.create(study=cast.study, slug="judge", text="{words} {answer}")
    ModelJudge.objects.create(judge=model, config=config, prompt=prompt, rubric=rubric)
    out = run("classifier_evaluate", "all", study="ours", json=tmp_path / "found.json")
    assert "Judge J · judge v1" in out
    kept = Evaluation.objects.filter(judge=model, split=divided, subset="all")
    assert {one.criterion.code: one.n_answers for one in kept} == dict.fromkeys(CODES, 18)
    line = line_of(judges_compared(split=divided, rubric=rubric), model.pk)
    for one in kept.select_related("criterion"):
        shown = line.cells[CODES.index(one.criterion.code)].estimates["f1_macro"]
        assert one.metrics["estimates"]["f1_macro"]["value"] == shown.value
        assert one.metrics["estimates"]["f1_macro"]["low"] == shown.low

"""Judges on the test side of a split: the figures are those of a computation by hand, the subsets what they say."""

import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from corpus.models import Answer, Sitting
from scoring.classifiers import recipes
from scoring.classifiers.evaluating import (
    Saying,
    classifier_evaluate,
    compared_answers,
    evaluation_record,
    judge_says,
    reports_of,
)
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.services import classifier_create
from scoring.classifiers.study_data import tests_of as respondents_tested
from scoring.classifiers.training import classifier_work
from scoring.models import Criterion, Evaluation, Judge, Judgement, Round, Split
from studies.models import AuditEntry

pytestmark = pytest.mark.django_db


def test_the_paper_row_of_a_classifier(folder, divided: Split, learned: list[Criterion], rated: list[Answer]) -> None:
    """Figures computed once more, from the database and the classifier's own words."""
    classifier = classifier_create(split=divided, criteria=learned, recipe=recipes.BASELINE, actor=None, enqueue=False)
    assert classifier_work(classifier.pk)
    classifier.refresh_from_db()
    found = classifier_evaluate(classifier=classifier, actor=None)
    tested = respondents_tested(divided)
    for criterion in learned:
        truth, said = [], []
        for answer in rated:
            if answer.sitting.respondent_id in tested:
                votes = Judgement.objects.filter(answer=answer, criterion=criterion, judge__kind="rater")
                truth.append(votes[0].value)
                said.append(float(not any(w in answer.text for w in ("спать", "есть", "бежать")))
                            if criterion.code == "grammatical"
                            else float(not any(w in answer.text for w in ("супе", "луне"))))  # fmt: skip
        row = next(one for one in found if one.criterion == criterion and one.subset == "all")
        assert row.n_answers == len(truth) == 36 and row.n_respondents == 9
        assert row.metrics["estimates"]["f1_macro"]["value"] == pytest.approx(f1_score(truth, said, average="macro"))
        assert row.metrics["estimates"]["mcc"]["value"] == pytest.approx(matthews_corrcoef(truth, said))
        assert row.metrics["majority"]["f1_micro"] == pytest.approx(max(sum(truth), 36 - sum(truth)) / 36)
        assert row.metrics["estimates"]["ece"]["value"] is not None
    again = classifier_evaluate(classifier=classifier, actor=None)
    assert again == found and Evaluation.objects.count() == len(found)
    assert AuditEntry.objects.filter(action="evaluation_record").count() == 1


def test_subsets(divided: Split, learned: list[Criterion], rated: list[Answer]) -> None:
    tested = respondents_tested(divided)
    mine = [answer for answer in rated if answer.sitting.respondent_id in tested]
    Answer.objects.filter(pk=mine[0].pk).update(text="знаю")
    Answer.objects.filter(pk=mine[1].pk).update(text="Кошка спала в глубоком тёмном саду.")
    answers = compared_answers(divided, learned)
    said = {(a.answer_id, c.pk): Saying(1.0, (0.2, 0.8)) for a in answers.answers for c in learned}
    reports = reports_of(answers, said, held_out=[mine[2].stimulus_id])
    n = {subset: report.n for (code, subset), report in reports.items() if code == "grammatical"}
    assert n["all"] == 35 and n["with_refusals"] == 36 and n["held_out"] == 9
    seen = {answer.text for answer in rated if answer.sitting.respondent_id not in tested}
    expected = [a for a in answers.answers if not a.is_refusal and a.text not in seen]
    assert n["unseen"] == len(expected) >= 1
    assert "кошка спала в глубоком тёмном саду" in {a.text for a in expected}
    assert "held_out" not in {subset for _, subset in reports_of(answers, said)}
    # The refusal is 0 by rule, on both sides.
    assert reports["grammatical", "with_refusals"].confusion[0][0] == reports["grammatical", "all"].confusion[0][0] + 1


def test_a_text_stays_seen_when_its_sitting_is_excluded_after_the_training(
    divided: Split, learned: list[Criterion], rated: list[Answer]
) -> None:
    tested = respondents_tested(divided)
    theirs = next(answer for answer in rated if answer.sitting.respondent_id not in tested)
    mine = next(answer for answer in rated if answer.sitting.respondent_id in tested)
    Answer.objects.filter(pk__in=[theirs.pk, mine.pk]).update(text="Кошка спала в глубоком тёмном саду.")
    said = "кошка спала в глубоком тёмном саду"
    assert said in compared_answers(divided, learned).trained_texts
    Sitting.objects.filter(pk=theirs.sitting_id).update(standing="excluded", standing_reason="too quick")
    assert said in compared_answers(divided, learned).trained_texts


def test_any_judge_is_measured_on_the_same_answers(
    divided: Split, learned: list[Criterion], rated: list[Answer], cast
) -> None:
    """A model judge whose judgements are stored; half of them: what it did not judge is left out."""
    judge = Judge.objects.create(kind=Judge.Kind.MODEL)
    round_ = Round.objects.create(study=cast.study, rubric=divided.study.rounds.get().rubric, purpose="automatic")
    answers = compared_answers(divided, learned)
    for answer in answers.answers[::2]:
        for criterion, value in zip(learned, answer.values, strict=True):
            Judgement.objects.create(
                round=round_, answer_id=answer.answer_id, criterion=criterion, judge=judge, value=value, confidence=0.9
            )
    found = evaluation_record(judge=judge, answers=answers, said=judge_says(judge, answers), actor=None)
    every = [one for one in found if one.subset == "all"]
    assert len(every) == 2 and {one.n_answers for one in every} == {18}
    for one in every:
        assert one.metrics["estimates"]["f1_macro"]["value"] == 1.0
        assert one.metrics["estimates"]["brier"]["value"] == pytest.approx(0.01)


def test_labels_that_change_make_a_new_row(divided: Split, learned: list[Criterion], rated: list[Answer]) -> None:
    answers = compared_answers(divided, learned[:1])
    judge = Judge.objects.create(kind=Judge.Kind.MODEL)
    said = {(a.answer_id, learned[0].pk): Saying(1.0, None) for a in answers.answers}
    first = evaluation_record(judge=judge, answers=answers, said=said, actor=None)
    said[answers.answers[0].answer_id, learned[0].pk] = Saying(0.0, None)
    second = evaluation_record(judge=judge, answers=answers, said=said, actor=None)
    assert {one.pk for one in first}.isdisjoint(one.pk for one in second)
    assert first[0].metrics["estimates"]["ece"]["reason"] == "no_confidence"


def test_nothing_to_compare_with(divided: Split, learned: list[Criterion], rated: list[Answer]) -> None:
    Judgement.objects.filter(retracted_at__isnull=True).update(retracted_at="2026-01-01T00:00Z")
    with pytest.raises(ClassifierError) as caught:
        compared_answers(divided, learned)
    assert caught.value.code == "no_labels"

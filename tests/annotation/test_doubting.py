"""A campaign of answers about which automatic judges are in doubt: which these are, and what is refused."""

from collections import Counter
from typing import Any

import pytest

from annotation.choosing import Selection, chosen
from annotation.doubting import DIFFER, EITHER, LEAST, UNSURE, Doubting
from annotation.errors import JudgesSilentError, NothingToRateError
from annotation.models import Campaign, Reference
from annotation.preview import campaign_preview
from annotation.services import campaign_close
from corpus.models import Answer, Instrument, Respondent, Sitting
from scoring.doubt import criteria_judged, doubts_of
from scoring.models import Criterion, Judge, Judgement, Round, Rubric
from scoring.services import CHILDREN_RUBRIC, children_rubric, paper_rubric
from studies.models import Study
from tests.annotation.factories import CODES, YES, make_campaign, make_sitting, many_answers
from tests.conftest import Cast

SURE = dict.fromkeys(CODES, (1.0, 0.95))


def make_judge(study: Study, kind: str = Judge.Kind.CLASSIFIER) -> Judge:
    return Judge.objects.create(kind=kind)


def say(
    judge: Judge,
    answer: Answer,
    said: dict[str, tuple[float, float | None]],
    *,
    rubric: Rubric | None = None,
    round_: Round | None = None,
    **more: Any,
) -> Round:
    """What a judge says of an answer in its automatic round: by criterion, the value and how sure it is."""
    study = answer.sitting.instrument.study
    by = rubric or paper_rubric()
    if round_ is None:
        round_, _ = Round.objects.get_or_create(study=study, rubric=by, purpose=Round.Purpose.AUTOMATIC, judge=judge)
    criteria = {one.code: one for one in Criterion.objects.filter(rubric=by)}
    for code, (value, confidence) in said.items():
        Judgement.objects.create(
            round=round_,
            answer=answer,
            criterion=criteria[code],
            judge=judge,
            value=value,
            confidence=confidence,
            **more,
        )
    return round_


@pytest.fixture
def answers(cast: Cast, instrument: Instrument) -> list[Answer]:
    """Two people and one run of a model, three answers each."""
    for kind, label in ((Respondent.Kind.HUMAN, "survey"), (Respondent.Kind.HUMAN, "survey"), ("model", "gpt")):
        make_sitting(instrument, kind=kind, label=label)
    return list(Answer.objects.select_related("sitting__instrument__study").order_by("pk"))


def found(study: Study, doubt: Doubting, *, seed: int = 1, codes: tuple[str, ...] = (), **kwargs: Any) -> set[int]:
    selection = Selection(doubt=doubt, **kwargs)
    return {one.answer_id for one in chosen(study, selection, seed=seed, codes=codes).answers}


# --- which answers -----------------------------------------------------------------------------------------------


def test_judges_differ_where_two_give_other_values_on_one_criterion(cast: Cast, answers: list[Answer]) -> None:
    one, other = make_judge(cast.study), make_judge(cast.study, Judge.Kind.MODEL)
    for number, answer in enumerate(answers):
        say(one, answer, SURE)
        say(other, answer, SURE | ({"logical": (0.0, None)} if number in (2, 7) else {}))
    assert found(cast.study, Doubting(kind=DIFFER)) == {answers[2].pk, answers[7].pk}
    assert found(cast.study, Doubting(kind=DIFFER), kind="human") == {answers[2].pk}
    # What raters are not asked about is nobody's doubt.
    assert found(cast.study, Doubting(kind=DIFFER), codes=("grammatical", "order")) == set()


def test_two_judges_of_different_criteria_cannot_differ(cast: Cast, answers: list[Answer]) -> None:
    one, other = make_judge(cast.study), make_judge(cast.study)
    say(one, answers[0], {"logical": (1.0, 0.6)})
    say(other, answers[0], {"order": (0.0, 0.9)})
    with pytest.raises(JudgesSilentError) as told:
        found(cast.study, Doubting(kind=DIFFER))
    assert told.value.reason == "one_judge"
    assert found(cast.study, Doubting(kind=EITHER)) == {answers[0].pk}


def test_unsure_is_below_the_bound_on_any_criterion(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study)
    for answer, sure in zip(answers, (0.5, 0.69, 0.7, 0.71, 0.99), strict=False):
        say(judge, answer, SURE | {"order": (0.0, sure)})
    pks = [answer.pk for answer in answers]
    assert found(cast.study, Doubting(kind=UNSURE)) == {*pks[:2]}
    assert found(cast.study, Doubting(kind=UNSURE, below=0.6)) == {pks[0]}
    assert found(cast.study, Doubting(kind=UNSURE), codes=("logical",)) == set()


def test_differ_or_unsure_takes_both(cast: Cast, answers: list[Answer]) -> None:
    one, other = make_judge(cast.study), make_judge(cast.study)
    say(one, answers[0], SURE)
    say(other, answers[0], SURE | {"logical": (0.0, 0.9)})
    say(one, answers[1], SURE | {"logical": (1.0, 0.6)})
    say(one, answers[2], SURE)
    selection = Selection(doubt=Doubting(kind=EITHER))
    doubt = chosen(cast.study, selection, seed=1).doubt
    assert doubt is not None and doubt.answers == {answers[0].pk, answers[1].pk}
    assert (doubt.differ, doubt.unsure, doubt.certain, doubt.unjudged) == (1, 1, 1, 6)


def test_only_the_chosen_judges_are_heard(cast: Cast, answers: list[Answer]) -> None:
    one, other, third = (make_judge(cast.study) for _ in range(3))
    say(one, answers[0], SURE)
    say(other, answers[0], SURE)
    say(third, answers[0], SURE | {"logical": (0.0, 0.55)})
    assert found(cast.study, Doubting(kind=DIFFER, judges=[one.pk, other.pk])) == set()
    assert found(cast.study, Doubting(kind=DIFFER, judges=[one.pk, third.pk])) == {answers[0].pk}
    assert found(cast.study, Doubting(kind=UNSURE, judges=[one.pk])) == set()
    assert found(cast.study, Doubting(kind=UNSURE, judges=[third.pk])) == {answers[0].pk}


def test_raters_rules_and_what_was_taken_back_are_not_heard(cast: Cast, answers: list[Answer]) -> None:
    one = make_judge(cast.study)
    round_ = say(one, answers[0], SURE)
    rating = Round.objects.create(study=cast.study, rubric=paper_rubric(), purpose=Round.Purpose.RATING)
    say(make_judge(cast.study, Judge.Kind.RATER), answers[0], dict.fromkeys(CODES, (0.0, 0.5)), round_=rating)
    say(make_judge(cast.study), answers[0], dict.fromkeys(CODES, (0.0, 0.5)), round_=rating)
    rules = Round.objects.create(study=cast.study, rubric=paper_rubric(), purpose=Round.Purpose.AUTOMATIC)
    say(make_judge(cast.study, Judge.Kind.RULE), answers[0], dict.fromkeys(CODES, (0.0, 0.5)), round_=rules)
    say(make_judge(cast.study), answers[0], {"order": (0.0, 0.5)}, retracted_at=round_.created_at)
    said = doubts_of(study_id=cast.study.pk, criteria=criteria_judged("paper"))
    assert {pk: (one.differ, one.sure, one.judges) for pk, one in said.items()} == {answers[0].pk: (False, 0.95, 1)}


def test_of_a_judge_who_judged_twice_the_latest_stands(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study, Judge.Kind.MODEL)
    say(judge, answers[0], dict.fromkeys(CODES, (0.0, 0.5)))
    again = Round.objects.create(study=cast.study, rubric=paper_rubric(), purpose=Round.Purpose.AUTOMATIC, judge=judge)
    say(judge, answers[0], SURE, round_=again)
    said = doubts_of(study_id=cast.study.pk, criteria=criteria_judged("paper"))
    assert (said[answers[0].pk].differ, said[answers[0].pk].sure) == (False, 0.95)


def test_judgements_of_another_study_are_not_heard(cast: Cast, answers: list[Answer]) -> None:
    say(make_judge(cast.study), answers[0], SURE | {"logical": (0.0, 0.5)})
    assert doubts_of(study_id=cast.other_study.pk, criteria=criteria_judged("paper")) == {}
    with pytest.raises(JudgesSilentError):
        found(cast.other_study, Doubting(kind=UNSURE))


def test_judgements_by_another_rubric_are_not_heard(cast: Cast, answers: list[Answer]) -> None:
    say(make_judge(cast.study), answers[0], {"sentence": (0.5, 0.4)}, rubric=children_rubric())
    with pytest.raises(JudgesSilentError) as told:
        found(cast.study, Doubting(kind=UNSURE))
    assert told.value.reason == "nobody"
    selection = Selection(doubt=Doubting(kind=UNSURE))
    assert len(chosen(cast.study, selection, seed=1, rubric=CHILDREN_RUBRIC).answers) == 1


# --- the least sure ----------------------------------------------------------------------------------------------


def test_the_least_sure_come_first_and_the_seed_decides_between_equals(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study)
    for answer, sure in zip(answers, (0.9, 0.5, 0.6, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8), strict=True):
        say(judge, answer, SURE | {"order": (0.0, sure)})
    assert found(cast.study, Doubting(kind=LEAST, least=2)) == {answers[1].pk, answers[2].pk}
    taken = [found(cast.study, Doubting(kind=LEAST, least=5), seed=seed) for seed in range(10)]
    assert all({answers[1].pk, answers[2].pk} < one and len(one) == 5 for one in taken)
    assert len({frozenset(one) for one in taken}) > 1
    assert found(cast.study, Doubting(kind=LEAST, least=5), seed=3) == taken[3]
    assert len(found(cast.study, Doubting(kind=LEAST, least=500))) == 9


def test_the_balanced_sample_is_drawn_from_what_is_in_doubt(cast: Cast, instrument: Instrument) -> None:
    many_answers(instrument, sittings=10)
    judge = make_judge(cast.study)
    doubted = list(Answer.objects.select_related("sitting__instrument__study").order_by("pk")[:24])
    for answer in doubted:
        say(judge, answer, SURE | {"order": (1.0, 0.55)})
    selection = Selection(doubt=Doubting(kind=UNSURE), sample=12)
    kept = chosen(cast.study, selection, seed=5)
    assert kept.found == 24 and {one.answer_id for one in kept.answers} <= {one.pk for one in doubted}
    assert set(Counter(one.stimulus_id for one in kept.answers).values()) == {4}


# --- what never gets in ------------------------------------------------------------------------------------------


def test_refusals_and_withdrawn_answers_never_get_in(cast: Cast, instrument: Instrument) -> None:
    judge = make_judge(cast.study)
    make_sitting(instrument, ("нет", "мышь бежит от кошки", None))
    gone = make_sitting(instrument)
    unfinished = make_sitting(instrument, finish=False)
    for answer in Answer.objects.select_related("sitting__instrument__study"):
        say(judge, answer, SURE | {"order": (1.0, 0.5)})
    Sitting.objects.filter(pk=gone.pk).update(standing=Sitting.Standing.WITHDRAWN)
    kept = Answer.objects.get(
        text="мышь бежит от кошки", sitting__in=Sitting.objects.exclude(pk__in=[gone.pk, unfinished.pk])
    )
    for kind in (UNSURE, EITHER, LEAST):
        doubt = Doubting(kind=kind, least=100 if kind == LEAST else None)
        assert found(cast.study, doubt) == found(cast.study, doubt, with_refusals=True) == {kept.pk}


def test_what_a_campaign_holds_is_left_out_where_it_is_asked(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study)
    for answer in answers[:4]:
        say(judge, answer, SURE | {"order": (1.0, 0.5)})
    people = make_campaign(cast.study, cast.alice, title="people", kind="human", stimuli=[answers[0].stimulus_id])
    campaign_close(campaign=people, actor=cast.alice)
    held = set(people.items.values_list("answer_id", flat=True))
    doubt = Doubting(kind=UNSURE)
    assert found(cast.study, doubt) == {one.pk for one in answers[:4]}
    assert found(cast.study, doubt, only_new=True) == {one.pk for one in answers[:4]} - held


def test_references_in_doubt_are_left_out_and_counted(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study)
    for answer in answers[:3]:
        say(judge, answer, SURE | {"order": (1.0, 0.5)})
    for answer in (answers[0], answers[8]):  # one that judges doubt, one that they do not
        Reference.objects.create(
            study=cast.study, rubric=paper_rubric(), answer=answer, purpose="gold", expected=YES, explanation=""
        )
    selection = Selection(doubt=Doubting(kind=UNSURE))
    kept = chosen(cast.study, selection, seed=1, references=[answers[0].pk, answers[8].pk])
    assert {one.answer_id for one in kept.answers} == {answers[1].pk, answers[2].pk}
    assert kept.references == [answers[0].pk]


# --- what is refused, and what is kept ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "confidence", "reason"),
    [
        (DIFFER, 0.6, "one_judge"),
        (UNSURE, None, "no_confidence"),
        (LEAST, None, "no_confidence"),
        (EITHER, None, "neither"),
    ],
)
def test_what_the_judges_cannot_tell_is_refused(
    cast: Cast, answers: list[Answer], kind: str, confidence: float | None, reason: str
) -> None:
    doubt = Doubting(kind=kind, least=3)
    with pytest.raises(JudgesSilentError) as nobody:
        make_campaign(cast.study, cast.alice, doubt=doubt)
    assert nobody.value.reason == "nobody"
    say(make_judge(cast.study), answers[0], dict.fromkeys(CODES, (1.0, confidence)))
    with pytest.raises(JudgesSilentError) as told:
        make_campaign(cast.study, cast.alice, doubt=doubt)
    assert told.value.reason == reason
    assert not Campaign.objects.exists()


def test_where_no_answer_is_in_doubt_nothing_opens(cast: Cast, answers: list[Answer]) -> None:
    say(make_judge(cast.study), answers[0], SURE)
    with pytest.raises(NothingToRateError):
        make_campaign(cast.study, cast.alice, doubt=Doubting(kind=UNSURE))


def test_the_campaign_keeps_what_was_asked(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study)
    for answer in answers[:3]:
        say(judge, answer, SURE | {"order": (1.0, 0.5)})
    doubt = Doubting(kind=UNSURE, judges=[judge.pk], names=["Baseline"], below=0.6)
    campaign = make_campaign(cast.study, cast.alice, doubt=doubt)
    asked = {"kind": "unsure", "judges": [judge.pk], "names": ["Baseline"], "below": 0.6}
    assert campaign.selection["asked"] == {"doubt": asked}
    assert set(campaign.items.values_list("answer_id", flat=True)) == {one.pk for one in answers[:3]}
    same = campaign_preview(
        cast.study, Selection(doubt=doubt), seed=campaign.seed, raters_per_answer=campaign.raters_per_answer
    )
    assert same.answers == 3


def test_how_many_queries_it_takes(cast: Cast, answers: list[Answer], django_assert_num_queries: Any) -> None:
    one, other = make_judge(cast.study), make_judge(cast.study)
    for answer in answers:
        say(one, answer, SURE)
        say(other, answer, SURE | {"order": (0.0, 0.5)})
    with django_assert_num_queries(4):
        assert len(chosen(cast.study, Selection(doubt=Doubting(kind=EITHER)), seed=1).answers) == 9

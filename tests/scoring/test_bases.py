import pytest

from scoring.bases import RATERS, Basis, automatic_judges, basis_from
from scoring.consensus import label_automatic
from scoring.models import Judge, Judgement, Round
from scoring.selectors import labels_of
from scoring.services import rules_apply
from tests.reports.conftest import ALL, RIGHT, Built


def test_keys():
    assert basis_from("raters") == RATERS and RATERS.key == "raters"
    assert basis_from("judges-9-3-9") == Basis((3, 9)) and Basis((3, 9)).key == "judges-3-9"
    for wrong in ("", "judges", "judges-", "judges-x", "judges-²", "people-1", "judges-99999999999"):
        with pytest.raises(ValueError):
            basis_from(wrong)


@pytest.mark.parametrize(
    ("values", "judges", "value", "basis", "reason"),
    [
        ([1], 1, 1, "judge", ""),
        ([], 1, None, "undecided", "no_votes"),
        ([1, 1, 0], 3, 1, "majority", ""),
        ([1, 0], 2, None, "undecided", "tie"),
        ([1], 3, None, "undecided", "single_vote"),  # two of the jury are silent
    ],
)
def test_one_judge_decides_and_several_vote(values, judges, value, basis, reason):
    found = label_automatic(values, judges=judges)
    assert (found.value, found.basis, found.reason) == (value, basis, reason)


def test_refusals_are_zero_whatever_the_judge_says():
    assert label_automatic([1], judges=1, is_refusal=True).value == 0
    assert label_automatic([1], judges=1, no_valid_reply=True).basis == "no_valid_reply"
    with pytest.raises(ValueError):
        label_automatic([float("nan")], judges=1)


def automatic(built: Built, votes: dict[str, dict[str, float]], kind: str = "classifier") -> int:
    """A judge with judgements in an automatic round: by answer and criterion."""
    judge = Judge.objects.create(kind=kind)
    round_, _ = Round.objects.get_or_create(study=built.cast.study, rubric=built.rubric, purpose="automatic")
    criteria = {criterion.code: criterion for criterion in built.rubric.criteria.all()}
    Judgement.objects.bulk_create(
        Judgement(round=round_, answer=built.answers[name], criterion=criteria[code], judge=judge, value=value)
        for name, said in votes.items()
        for code, value in said.items()
    )
    return judge.pk


def values(built: Built, basis: Basis) -> dict[str, list]:
    found = labels_of(instrument=built.instrument, rubric=built.rubric, basis=basis)
    names = {answer.pk: name for name, answer in built.answers.items()}
    return {names[one.pk]: [label.value for label in one.labels] for one in found.answers}


def test_labels_on_another_basis(bare):
    bare.sitting("P", RIGHT)
    bare.judge("P/1", ALL)
    rules_apply(study=bare.cast.study, rubric=bare.rubric)
    g, lo, o = "grammatical", "logical", "order"
    one = automatic(bare, {"P/1": {g: 0, lo: 1, o: 1}, "P/2": {g: 1}})
    rest = automatic(bare, {"P/2": {lo: 0, o: 1}}, kind="model")
    assert values(bare, RATERS)["P/1"] == [1, 1, 1, 1, 1]
    assert values(bare, Basis((one,)))["P/1"] == [0, 1, 1, 1, 1]
    assert values(bare, Basis((one,)))["P/2"] == [1, None, None, 1, 1]
    # A set in which each judges other criteria of an answer: where two judge a criterion at all, one voice is too few.
    assert values(bare, Basis.of([one, rest]))["P/2"] == [1, None, None, 1, 1]
    assert automatic_judges(bare.cast.study.pk, bare.rubric.pk) == {one: "classifier", rest: "model"}
    assert automatic_judges(bare.cast.other_study.pk, bare.rubric.pk) == {}


def test_a_list_of_some_answers_has_the_labels_that_the_results_have(bare):
    """Of a set of two one judged a part: on a page without that part the other one does not decide alone."""
    bare.sitting("P", RIGHT)
    rules_apply(study=bare.cast.study, rubric=bare.rubric)
    every = automatic(bare, {name: {"grammatical": 1, "logical": 1, "order": 1} for name in ("P/1", "P/2")})
    sample = automatic(bare, {"P/1": {"grammatical": 0, "logical": 1, "order": 1}}, kind="model")
    basis = Basis.of([every, sample])
    known = {"instrument": bare.instrument, "rubric": bare.rubric, "basis": basis}
    whole = {one.pk: one.labels for one in labels_of(**known).answers}
    for name in ("P/1", "P/2", "P/3"):
        (alone,) = labels_of(**known, answer_ids=[bare.answers[name].pk]).answers
        assert alone.labels == whole[alone.pk]
    assert values(bare, basis)["P/2"][:3] == [None, None, None]


def test_a_set_of_one_judge_for_each_criterion(bare):
    bare.sitting("P", RIGHT)
    rules_apply(study=bare.cast.study, rubric=bare.rubric)
    judges = [
        automatic(bare, {"P/3": {code: value}}) for code, value in [("grammatical", 1), ("logical", 0), ("order", 1)]
    ]
    assert values(bare, Basis.of(judges))["P/3"] == [1, 0, 1, 1, 1]

import pytest

from scoring.accepted import AcceptedFormError, accepted_form_add, accepted_form_retire
from scoring.models import AcceptedForm, Judgement
from scoring.services import rules_apply
from studies.models import AuditEntry
from tests.reports.conftest import RIGHT, Built

TEXT = "Кошка восседает на столе."


def apply(built: Built) -> int:
    return rules_apply(study=built.cast.study, rubric=built.rubric)


def value(built: Built, name: str, code: str = "vocabulary") -> float:
    return Judgement.objects.get(answer=built.answers[name], criterion__code=code, retracted_at=None).value


def test_rules_judge_once_and_anew_when_the_list_changes(bare):
    bare.sitting("P", {1: TEXT, 2: RIGHT[2], 3: RIGHT[3]})
    assert apply(bare) == 6  # three answers, two rules
    assert apply(bare) == 0
    assert (value(bare, "P/1"), value(bare, "P/1", "sequence"), value(bare, "P/2")) == (0, 1, 1)
    stimulus = bare.instrument.stimuli.get(position=1)
    form = accepted_form_add(stimulus=stimulus, lemma="сидеть", form="восседать", actor=bare.cast.alice)
    assert (apply(bare), apply(bare)) == (1, 0)
    assert value(bare, "P/1") == 1
    accepted_form_retire(accepted=form, actor=bare.cast.alice)
    assert (apply(bare), apply(bare)) == (1, 0)
    assert value(bare, "P/1") == 0
    # Nothing was rewritten: the earlier judgements are history.
    assert Judgement.objects.filter(answer=bare.answers["P/1"], criterion__code="vocabulary").count() == 3
    actions = AuditEntry.objects.filter(action__startswith="accepted_form").values_list("action", flat=True)
    assert sorted(actions) == ["accepted_form.add", "accepted_form.retire"]


def test_vocabulary_is_no_part_of_the_score(bare):
    criterion = bare.rubric.criteria.get(code="vocabulary")
    assert (criterion.kind, criterion.in_score) == ("rule", False)


@pytest.mark.parametrize(
    ("lemma", "form", "why"),
    [
        ("собака", "пёс", "not_given"),
        ("сидеть", "", "not_a_word"),
        ("сидеть", "два слова", "not_a_word"),
        ("сидеть", "а" * 101, "not_a_word"),
    ],
)
def test_what_cannot_be_accepted(bare, lemma, form, why):
    stimulus = bare.instrument.stimuli.get(position=1)
    with pytest.raises(AcceptedFormError, match=why):
        accepted_form_add(stimulus=stimulus, lemma=lemma, form=form, actor=None)
    assert not AcceptedForm.objects.exists()


def test_a_form_is_accepted_once_and_can_come_back(bare):
    stimulus = bare.instrument.stimuli.get(position=1)
    form = accepted_form_add(stimulus=stimulus, lemma="СИДЕТЬ", form="восседать", actor=None)
    assert (form.lemma, form.version) == ("сидеть", 1)
    with pytest.raises(AcceptedFormError, match="known"):
        accepted_form_add(stimulus=stimulus, lemma="сидеть", form="восседать", actor=None)
    accepted_form_retire(accepted=form, actor=None)
    accepted_form_retire(accepted=form, actor=None)  # twice changes nothing
    again = accepted_form_add(stimulus=stimulus, lemma="сидеть", form="восседать", actor=None)
    assert again.version == 2
    assert AuditEntry.objects.filter(action="accepted_form.retire").count() == 1

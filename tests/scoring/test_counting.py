"""The rules follow what comes in: the workers' look, and the part that a page does itself."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from corpus.models import Answer, Sitting
from scoring import counting, services
from scoring.accepted import accepted_form_add
from scoring.counting import rules_look
from scoring.models import Judgement
from scoring.services import rules_apply, rules_keep_up
from studies.models import Study
from tests.reports.conftest import RIGHT

AGO = timedelta(hours=1)


def age() -> None:
    """What is there came an hour ago."""
    Answer.objects.update(changed_at=timezone.now() - AGO)
    Sitting.objects.update(finished_at=timezone.now() - AGO)


def test_the_first_look_sees_everything_and_later_ones_what_came_since(bare):
    bare.sitting("P", {1: RIGHT[1], 2: RIGHT[2], 3: RIGHT[3]})
    age()
    since = rules_look(None)
    assert Judgement.objects.count() == 6  # three answers, two rules
    bare.sitting("Q", {1: RIGHT[1], 2: RIGHT[2], 3: RIGHT[3]})
    age()
    assert rules_look(since) > since
    assert Judgement.objects.count() == 6, "nothing came since: nothing was looked at"
    Answer.objects.filter(pk=bare.answers["Q/1"].pk).update(changed_at=timezone.now())
    rules_look(since)
    assert Judgement.objects.count() == 12


def test_a_sitting_that_goes_on_waits_for_its_end(bare):
    bare.sitting("P", {1: RIGHT[1]})
    age()
    Sitting.objects.update(state=Sitting.State.OPEN, finished_at=None)
    rules_look(None)
    assert not Judgement.objects.exists()
    Sitting.objects.update(state=Sitting.State.FINISHED, finished_at=timezone.now())
    rules_look(timezone.now() - AGO / 2)
    assert Judgement.objects.count() == 2


def test_an_accepted_form_is_something_new(bare):
    bare.sitting("P", {1: "Кошка восседает на столе."})
    age()
    rules_look(None)
    accepted_form_add(
        stimulus=bare.instrument.stimuli.get(position=1), lemma="сидеть", form="восседать", actor=bare.cast.alice
    )
    rules_look(timezone.now() - AGO / 2)
    live = Judgement.objects.get(criterion__code="vocabulary", retracted_at=None)
    assert live.value == 1


def test_a_page_does_a_part_and_says_how_much_is_left(bare, client, monkeypatch):
    monkeypatch.setattr(services, "AT_ONCE", 4)
    bare.sitting("P", {1: RIGHT[1], 2: RIGHT[2], 3: RIGHT[3]})
    client.force_login(bare.cast.alice)
    address = reverse("results", args=[bare.cast.study.slug])
    assert "2 labels that are counted are not there yet" in client.get(address).content.decode()
    assert Judgement.objects.count() == 4
    assert "that are counted are not there yet" not in client.get(address).content.decode()
    assert Judgement.objects.count() == 6
    assert rules_keep_up(study=bare.cast.study, rubric=bare.rubric) == 0


@pytest.mark.parametrize("name", ["figure_csv", "export_file"])
def test_a_file_is_whole(bare, client, monkeypatch, name):
    monkeypatch.setattr(services, "AT_ONCE", 1)
    bare.sitting("P", {1: RIGHT[1], 2: RIGHT[2], 3: RIGHT[3]})
    client.force_login(bare.cast.alice)
    arguments = [bare.cast.study.slug, *(["judgements"] if name == "export_file" else [1])]
    response = client.get(reverse(name, args=arguments))
    assert response.status_code == 200
    assert b"".join(response.streaming_content)
    assert Judgement.objects.count() == 6


def test_a_text_that_several_gave_is_judged_as_each_of_them_alone(bare):
    for name in "PQR":
        bare.sitting(name, {1: RIGHT[1], 2: RIGHT[2], 3: "Совсем другие слова."})
    assert rules_apply(study=bare.cast.study, rubric=bare.rubric) == 18
    told = Judgement.objects.order_by().values_list("answer__stimulus__position", "criterion__code", "value").distinct()
    assert len(told) == 6, "one value for each text and rule"
    assert {value for position, code, value in told if position == 3 and code == "vocabulary"} == {0}


def test_a_study_that_cannot_be_counted_keeps_no_other_from_it(bare, monkeypatch):
    first = bare.instrument.study_id
    other = Study.objects.create(slug="other", title="Other")
    counted: list[int] = []

    def apply(*, study: Study, rubric: object) -> None:
        counted.append(study.pk)
        if study.pk == first:
            raise RuntimeError("no such word")

    monkeypatch.setattr(counting, "rules_apply", apply)
    monkeypatch.setattr(counting, "_studies", lambda _since: {first, other.pk})
    counting.rules_look(None)
    assert counted == [first, other.pk]

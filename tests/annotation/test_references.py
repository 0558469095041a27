"""References: made from an answer nobody is named with, changed until a campaign has them, put aside and back."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.errors import (
    AnswerNotUsableError,
    ReferenceExistsError,
    ReferenceStaleError,
    ReferenceUsedError,
    ValuesMissingError,
)
from annotation.models import Campaign, Item, Purpose, Reference
from annotation.places import place_judge
from annotation.queue import places_hold
from annotation.reference_selectors import answers_usable, counts_by_stimulus, references_of, texts_of
from annotation.reference_services import (
    Right,
    reference_add,
    reference_change,
    reference_restore,
    reference_retire,
    state_of,
)
from annotation.removal import answers_remove, remarks_blank
from annotation.services import campaign_close, rater_ensure
from corpus.instruments import instrument_copy
from corpus.models import Answer, Instrument, Respondent, Sitting
from corpus.services import sitting_withdraw
from scoring.models import Round, Rubric
from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC, ValueOutsideScaleError, children_rubric, paper_rubric
from studies.models import AuditEntry
from tests.annotation.factories import CODES, GOOD, NO, YES, give, make_campaign, make_rater, make_sitting, post
from tests.annotation.test_guidelines import english, shown
from tests.conftest import Cast

LIST = reverse("reference_list", args=["ours"])
SEARCH = reverse("reference_answers", args=["ours"])


@pytest.fixture
def answers(cast: Cast, instrument: Instrument) -> list[Answer]:
    """Of one person, in the order of the tasks."""
    sitting = make_sitting(instrument)
    return list(Answer.objects.filter(sitting=sitting).order_by("stimulus__position"))


def right(purpose: str = "gold", **kwargs: Any) -> Right:
    return Right(purpose=purpose, values=kwargs.pop("values", YES), **kwargs)


def add(cast: Cast, answer: Answer, rubric: str = PAPER_RUBRIC, **kwargs: Any) -> Reference:
    return reference_add(study=cast.study, answer=answer, rubric=rubric, right=right(**kwargs), actor=cast.alice)


def sent(purpose: str = "training", values: dict[str, float] | None = None, **kwargs: str) -> dict[str, str]:
    chosen = YES if values is None else values
    return {"purpose": purpose, "explanation": ""} | {f"c-{code}": f"{v:g}" for code, v in chosen.items()} | kwargs


def new_address(answer: Answer, rubric: str = PAPER_RUBRIC) -> str:
    return reverse("reference_new", args=["ours", answer.blind_id]) + f"?rubric={rubric}"


def used(cast: Cast, reference: Reference, title: str = "Round") -> Campaign:
    """A campaign that has copied the reference as opening does."""
    campaign = make_campaign(cast.study, cast.alice, k=1, title=title)
    item = campaign.items.get(answer=reference.answer)
    item.places.all().delete()
    item.purpose, item.expected = reference.purpose, reference.expected
    item.expected_not_attempt, item.explanation = reference.not_attempt, reference.explanation
    item.save(update_fields=["purpose", "expected", "expected_not_attempt", "explanation"])
    field = f"{reference.purpose}_round"
    made = Round.objects.create(study=cast.study, rubric=campaign.round.rubric, purpose=reference.purpose)
    setattr(campaign, field, made)
    campaign.save(update_fields=[field])
    return campaign


# --- made --------------------------------------------------------------------------------------------------------


def test_a_reference_is_made_from_the_search_to_the_list(cast: Cast, answers: list[Answer]) -> None:
    client = english(cast.alice)
    page = shown(client.get(SEARCH, {"stimulus": answers[0].stimulus_id, "text": "СТОЛЕ"}))
    address = reverse("reference_new", args=["ours", answers[0].blind_id])
    assert GOOD[0] in page and address in page
    assert GOOD[0] in shown(client.get(new_address(answers[0])))
    response = client.post(
        new_address(answers[0]), sent(values=YES | {"order": 0.0}, explanation=" Порядок\r\nредкий. ")
    )
    assert response.status_code == 302
    made = Reference.objects.get()
    assert (made.answer, made.purpose, made.rubric.slug, made.not_attempt) == (answers[0], "training", "paper", False)
    assert made.expected == {"grammatical": 1, "logical": 1, "order": 0}
    assert made.explanation == "Порядок\nредкий."
    listed = shown(client.get(response.url))
    assert GOOD[0] in listed and "Natural word order? <strong>No</strong>" in listed and "редкий" in listed
    assert "is a reference" in shown(client.get(SEARCH, {"stimulus": answers[0].stimulus_id}))
    entry = AuditEntry.objects.get(action="reference_add")
    assert entry.actor == cast.alice
    assert entry.detail == {"rubric": "paper", "purpose": "training", "expected": made.expected, "not_attempt": False}


def test_the_search_begins_with_a_task_that_has_answers(cast: Cast, answers: list[Answer]) -> None:
    """A newer version, to which nobody has answered yet, stands first in the lists."""
    made_for = answers[0].stimulus.instrument
    instrument_copy(instrument=made_for, study=cast.study, slug=made_for.slug, title=made_for.title, actor=cast.alice)
    assert GOOD[0] in shown(english(cast.alice).get(SEARCH))


def test_nothing_is_chosen_in_advance(cast: Cast, answers: list[Answer]) -> None:
    form = english(cast.alice).get(new_address(answers[0])).context["form"]
    assert not any(form[name].value() for name in form.fields)


def test_not_an_attempt_is_0_on_every_criterion(cast: Cast, answers: list[Answer]) -> None:
    english(cast.alice).post(new_address(answers[0]), sent("gold", YES, not_attempt="on"))
    made = Reference.objects.get()
    assert made.not_attempt and made.expected == dict.fromkeys(CODES, 0)
    form = english(cast.alice).get(reverse("reference", args=["ours", made.pk])).context["form"]
    assert form["not_attempt"].value() is True and not any(form[f"c-{code}"].value() for code in CODES)


def test_a_grade_of_the_childrens_test(cast: Cast, answers: list[Answer]) -> None:
    address = new_address(answers[0], CHILDREN_RUBRIC)
    assert english(cast.alice).post(address, sent("gold", {"sentence": 0.25})).status_code == 302
    assert Reference.objects.get().expected == {"sentence": 0.25}
    assert english(cast.alice).post(new_address(answers[0]), sent("gold")).status_code == 302, "another rubric"
    assert "0.25" in shown(english(cast.alice).get(LIST, {"rubric": CHILDREN_RUBRIC}))
    assert english(cast.alice).get(LIST, {"rubric": "other"}).status_code == 404


@pytest.mark.parametrize(
    "bad",
    [
        {"purpose": ""},
        {"purpose": "rating"},
        {"c-order": ""},
        {"c-order": "0.5"},
        {"c-order": "nan"},
        {"explanation": "я" * 2_001},
        {"explanation": "\x00"},
    ],
)
def test_bad_forms_write_nothing_and_say_why(cast: Cast, answers: list[Answer], bad: dict[str, str]) -> None:
    response = english(cast.alice).post(new_address(answers[0]), sent() | bad)
    assert response.status_code == 400 and "errorlist" in response.content.decode()
    assert not Reference.objects.exists()


def test_the_service_holds_what_the_form_holds(cast: Cast, answers: list[Answer]) -> None:
    with pytest.raises(ValuesMissingError):
        add(cast, answers[0], values={"order": 1.0})
    with pytest.raises(ValueOutsideScaleError):
        add(cast, answers[0], values=YES | {"order": 0.5})
    assert not Reference.objects.exists() and not AuditEntry.objects.filter(action="reference_add").exists()


def test_an_answer_is_a_reference_once(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0])
    with pytest.raises(ReferenceExistsError):
        add(cast, answers[0], purpose="training", values=NO)
    response = english(cast.alice).post(new_address(answers[0]), sent("training", NO))
    assert response.status_code == 302 and response.url == reverse("reference", args=["ours", made.pk])
    made.refresh_from_db()
    assert (Reference.objects.count(), made.purpose) == (1, "gold")


def test_html_in_an_explanation_and_in_an_answer_is_text(cast: Cast, instrument: Instrument) -> None:
    sitting = make_sitting(instrument, ["<script>alert(1)</script> кошка сидит на столе", *GOOD[1:]])
    answer = sitting.answers.get(stimulus__position=1)
    made = add(cast, answer, explanation="<img src=x onerror=alert(2)>")
    client = english(cast.alice)
    pages = [LIST, f"{SEARCH}?stimulus={answer.stimulus_id}", reverse("reference", args=["ours", made.pk])]
    for page in (shown(client.get(address)) for address in pages):
        assert "&lt;script&gt;alert(1)" in page and "<script>alert" not in page and "<img" not in page


def test_an_answer_that_divides_raters_is_one_step_away(cast: Cast, answers: list[Answer]) -> None:
    rater = make_rater(cast.study, "lena")
    campaign = make_campaign(cast.study, cast.alice, k=1)
    post(give(campaign.items.get(answer=answers[0]), rater), rater)
    page = shown(english(cast.alice).get(reverse("campaign_answers", args=["ours", campaign.pk])))
    assert f'href="{new_address(answers[0])}"' in page
    assert english(cast.alice).get(new_address(answers[0])).status_code == 200


# --- which answers -----------------------------------------------------------------------------------------------


def test_only_given_answers_of_counted_sittings_that_ended(cast: Cast, instrument: Instrument) -> None:
    usable = make_sitting(instrument, [GOOD[0], None, GOOD[2]])
    make_sitting(instrument, finish=False)
    piloted = make_sitting(instrument)
    Sitting.objects.filter(pk=piloted.pk).update(standing="pilot")
    assert set(answers_usable(cast.study)) == set(usable.answers.filter(outcome="given"))
    client = english(cast.alice)
    for answer in Answer.objects.exclude(pk__in=answers_usable(cast.study)):
        assert (
            client.get(new_address(answer)).status_code == client.post(new_address(answer), sent()).status_code == 404
        )
        with pytest.raises(AnswerNotUsableError):
            add(cast, answer)
    assert client.get(reverse("reference_new", args=["ours", uuid4()])).status_code == 404
    assert not Reference.objects.exists()


def test_equal_texts_stand_in_one_row_and_a_person_and_a_model_look_alike(cast: Cast, instrument: Instrument) -> None:
    person = make_sitting(instrument, ["Кошка сидит на столе.", *GOOD[1:]], label="survey-7")
    model = make_sitting(instrument, ["**кошка сидит на столе**", *GOOD[1:]], kind=Respondent.Kind.MODEL, label="gpt-7")
    stimulus = instrument.stimuli.get(position=1)
    (row,) = texts_of(cast.study, paper_rubric(), stimulus=stimulus)
    same = [sitting.answers.get(stimulus=stimulus) for sitting in (person, model)]
    assert (row.display, row.n) == ("кошка сидит на столе", 2)
    assert row.blind_id == min(answer.blind_id for answer in same)
    client = english(cast.alice)
    pages = [shown(client.get(new_address(answer))) for answer in same]
    for page, answer in zip(pages, same, strict=True):
        assert "1 other answer has the same text" in page
        for telling in ("survey-7", "gpt-7", str(answer.sitting.respondent.public_id)):
            assert telling not in page
    blank = [page.replace(str(answer.blind_id), "") for page, answer in zip(pages, same, strict=True)]
    assert blank[0] == blank[1]


def test_of_equal_texts_a_labelled_answer_stands_for_all_and_then_the_reference(
    cast: Cast, instrument: Instrument, answers: list[Answer]
) -> None:
    rater = make_rater(cast.study, "lena")
    for _ in range(3):
        make_sitting(instrument)
    stimulus = instrument.stimuli.get(position=1)
    same = list(Answer.objects.filter(stimulus=stimulus).order_by("-blind_id"))
    campaign = make_campaign(cast.study, cast.alice, k=1)
    post(give(campaign.items.get(answer=same[0]), rater), rater)
    rubric = paper_rubric()
    (row,) = texts_of(cast.study, rubric, stimulus=stimulus)
    assert (row.answer_id, row.is_judged, row.reference_id) == (same[0].pk, True, None)
    assert "its label stays" in shown(english(cast.alice).get(new_address(same[0])))
    assert "No rater has judged it yet" in shown(english(cast.alice).get(new_address(same[1])))
    made = add(cast, same[1])
    (row,) = texts_of(cast.study, rubric, stimulus=stimulus)
    assert (row.answer_id, row.is_judged, row.reference_id) == (same[1].pk, False, made.pk)


def test_the_search_looks_in_the_shown_text_of_one_task(cast: Cast, instrument: Instrument) -> None:
    make_sitting(instrument, ["да", "мышь бежит от кошки", GOOD[2]])
    client = english(cast.alice)
    first, second = instrument.stimuli.filter(position__in=(1, 2)).order_by("position")
    assert "too few words" in shown(client.get(SEARCH)), "the first task, if none is named"
    assert "мышь бежит от кошки" in shown(client.get(SEARCH, {"stimulus": second.pk, "text": "БЕЖИТ"}))
    assert "No answer to this task has these words" in shown(
        client.get(SEARCH, {"stimulus": first.pk, "text": "бежит"})
    )
    for wrong in ("x", "0", str(2**63), "\x00"):
        assert client.get(SEARCH, {"stimulus": wrong}).status_code == 400
    assert client.get(SEARCH, {"text": "\x00"}).status_code == 400


def test_a_study_without_instruments_says_so(cast: Cast) -> None:
    client = english(cast.alice)
    assert "no instrument yet" in shown(client.get(SEARCH))
    assert "There are none yet" in shown(client.get(LIST))


# --- the list ----------------------------------------------------------------------------------------------------


def test_the_list_has_filters_and_counts_by_task(cast: Cast, instrument: Instrument, answers: list[Answer]) -> None:
    gold = add(cast, answers[0])
    training = add(cast, answers[1], purpose="training")
    aside = add(cast, answers[2])
    reference_retire(reference=aside, actor=cast.alice)
    client = english(cast.alice)

    def found(**query: object) -> list[int]:
        return [row["reference"].pk for row in client.get(LIST, query).context["rows"]]

    assert found() == [gold.pk, training.pk]
    assert (found(show="gold"), found(show="training"), found(show="retired")) == ([gold.pk], [training.pk], [aside.pk])
    assert found(stimulus=answers[1].stimulus_id) == [training.pk]
    assert found(show="gold", stimulus=answers[1].stimulus_id) == []
    assert found(rubric=CHILDREN_RUBRIC) == []
    counts = counts_by_stimulus(cast.study, paper_rubric())
    assert [(one.stimulus.position, one.answers, one.training, one.gold, one.retired) for one in counts] == [
        (1, 1, 0, 1, 0),
        (2, 1, 1, 0, 0),
        (3, 1, 0, 0, 1),
    ]


def test_the_list_runs_as_many_queries_for_many_references(cast: Cast, instrument: Instrument) -> None:
    client = cast.client(cast.alice)
    counts = []
    for _ in range(2):
        for answer in make_sitting(instrument).answers.all():
            add(cast, answer)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(LIST).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 13


def test_selectors_keep_their_query_counts(
    cast: Cast, instrument: Instrument, answers: list[Answer], django_assert_num_queries: Any
) -> None:
    add(cast, answers[0])
    rubric = paper_rubric()
    stimulus = instrument.stimuli.select_related("instrument").get(position=1)
    with django_assert_num_queries(2):
        texts_of(cast.study, rubric, stimulus=stimulus)
    with django_assert_num_queries(3):
        counts_by_stimulus(cast.study, rubric)
    with django_assert_num_queries(1):
        assert [one.n_campaigns for one in references_of(cast.study, rubric)] == [0]


# --- changed, put aside ------------------------------------------------------------------------------------------


def test_a_reference_is_changed_while_no_campaign_has_it(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0])
    address = reverse("reference", args=["ours", made.pk])
    client = english(cast.alice)
    form = client.get(address).context["form"]
    assert (form["purpose"].value(), form["c-order"].value()) == ("gold", "1")
    data = sent("training", NO, explanation="потому что", seen=form["seen"].value())
    assert client.post(address, data).status_code == 302
    assert client.post(address, data).status_code == 302  # the same twice is once
    made.refresh_from_db()
    assert (made.purpose, made.expected, made.explanation) == ("training", NO, "потому что")
    entry = AuditEntry.objects.get(action="reference_change")
    assert entry.detail["before"]["purpose"] == "gold" and entry.detail["after"]["expected"] == NO
    assert "потому" not in str(entry.detail)


def test_a_change_over_an_unseen_one_is_refused_once(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0])
    address, seen = reverse("reference", args=["ours", made.pk]), state_of(made)
    reference_change(reference=made, right=right(explanation="чужое"), seen=seen, actor=cast.alice)
    client = english(cast.alice)
    response = client.post(address, sent("gold", NO, explanation="моё", seen=seen))
    assert response.status_code == 409 and "somebody has changed the reference" in shown(response)
    made.refresh_from_db()
    assert made.explanation == "чужое"
    form = response.context["form"]
    assert form["explanation"].value() == "моё"
    assert client.post(address, sent("gold", NO, explanation="моё", seen=form["seen"].value())).status_code == 302
    made.refresh_from_db()
    assert (made.explanation, made.expected) == ("моё", NO)
    with pytest.raises(ReferenceStaleError):
        reference_change(reference=made, right=right(), seen="", actor=cast.alice)


def test_what_a_campaign_has_copied_stays_and_can_be_put_aside(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0], explanation="потому что")
    seen = state_of(made)
    campaign = used(cast, made)
    with pytest.raises(ReferenceUsedError):
        reference_change(reference=made, right=right(values=NO), seen=seen, actor=cast.alice)
    client, address = english(cast.alice), reverse("reference", args=["ours", made.pk])
    page = shown(client.get(address))
    assert (
        "can no longer be changed" in page and "1 campaign has copied it" in page and 'name="explanation"' not in page
    )
    assert client.post(address, sent("gold", NO, seen=seen)).status_code == 409
    state = reverse("reference_state", args=["ours", made.pk])
    client.post(state, {"active": "0"})
    client.post(state, {"active": "0"})
    made.refresh_from_db()
    assert (made.is_active, made.expected) == (False, YES)
    assert Item.objects.get(campaign=campaign, purpose="gold").explanation == "потому что"
    client.post(state, {"active": "1"})
    client.post(state, {"active": "2"})
    made.refresh_from_db()
    assert made.is_active
    actions = (
        AuditEntry.objects.filter(action__startswith="reference_re").order_by("pk").values_list("action", flat=True)
    )
    assert list(actions) == ["reference_retire", "reference_restore"]


def test_an_ordinary_item_of_the_same_answer_is_no_use_of_the_reference(cast: Cast, answers: list[Answer]) -> None:
    campaign = make_campaign(cast.study, cast.alice, k=1)
    made = add(cast, answers[0])
    assert [one.n_campaigns for one in references_of(cast.study, made.rubric)] == [0]
    reference_change(reference=made, right=right(values=NO), seen=state_of(made), actor=cast.alice)
    assert campaign.items.get(answer=answers[0]).purpose == Purpose.RATING


def test_a_use_under_another_rubric_is_no_use(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0], CHILDREN_RUBRIC, values={"sentence": 0.5})
    used(cast, add(cast, answers[0]))
    assert [one.n_campaigns for one in references_of(cast.study, children_rubric())] == [0]
    reference_change(reference=made, right=right(values={"sentence": 1.0}), seen=state_of(made), actor=cast.alice)
    with pytest.raises(ReferenceUsedError):
        gold = Reference.objects.get(rubric__slug=PAPER_RUBRIC)
        reference_change(reference=gold, right=right(values=NO), seen=state_of(gold), actor=cast.alice)


def test_the_explanation_is_what_a_rater_reads_after_a_training_answer(cast: Cast, answers: list[Answer]) -> None:
    rater = make_rater(cast.study, "lena")
    campaign = used(cast, add(cast, answers[0], purpose="training", not_attempt=True, explanation="это отказ"))
    (card,) = places_hold(campaign_id=campaign.pk, rater_id=rater.pk, ahead=1).cards
    saved = place_judge(place_uuid=card.place, user_id=rater.user_id, values=YES, version=card.version, ahead=0)
    assert saved.feedback is not None and not saved.feedback.is_right
    assert (saved.feedback.explanation, saved.feedback.not_attempt) == ("это отказ", True)
    assert saved.feedback.expected == NO


# --- withdrawal --------------------------------------------------------------------------------------------------


def test_a_withdrawn_answer_leaves_its_reference_and_does_not_come_back(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0], explanation=f"«{GOOD[0]}» верно")
    seen = state_of(made)
    sitting_withdraw(sitting_id=answers[0].sitting_id, reason="receipt", actor=None)
    answers_remove(answer_ids=[answer.pk for answer in answers])
    made.refresh_from_db()
    assert (made.is_active, made.explanation) == (False, "")
    client = english(cast.alice)
    address = reverse("reference", args=["ours", made.pk])
    for page in (address, f"{LIST}?show=retired"):
        text = shown(client.get(page))
        assert "has withdrawn the answer" in text and GOOD[0] not in text
    late = sent("gold", YES, explanation=GOOD[0], seen=seen)
    assert client.post(address, late).status_code == 409
    client.post(reverse("reference_state", args=["ours", made.pk]), {"active": "1"})
    made.refresh_from_db()
    assert (made.is_active, made.explanation) == (False, "")
    with pytest.raises(AnswerNotUsableError):
        reference_restore(reference=made, actor=cast.alice)


def test_words_that_another_explanation_quotes_are_taken_out(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[1], explanation="не то что «кошка сидит на столе»")
    seen = state_of(made)
    assert remarks_blank(study=cast.study, blank=lambda text: text.replace(GOOD[0], "[…]")) == 1
    made.refresh_from_db()
    assert made.explanation == "не то что «[…]»"
    with pytest.raises(ReferenceStaleError):  # a page that was open still has them
        late = right(values=NO, explanation="не то что «кошка сидит на столе»")
        reference_change(reference=made, right=late, seen=seen, actor=cast.alice)


# --- who ---------------------------------------------------------------------------------------------------------


def test_pages_and_writes_are_for_the_studys_researchers_who_do_not_rate(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0])
    own, state = reverse("reference", args=["ours", made.pk]), reverse("reference_state", args=["ours", made.pk])
    writes = [(new_address(answers[1]), sent()), (own, sent("gold", NO, seen=state_of(made))), (state, {"active": "0"})]
    reads = [LIST, SEARCH, own, new_address(answers[1])]

    def refused(client: Client, status: int) -> None:
        assert [client.get(address).status_code for address in reads] == [status] * 4
        assert [client.post(address, data).status_code for address, data in writes] == [status] * 3

    for user in (cast.bob, cast.rita):
        refused(cast.client(user), 404)
    refused(Client(), 302)
    campaign = make_campaign(cast.study, cast.alice, k=1)
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    refused(cast.client(cast.alice), 403)
    assert Reference.objects.get().is_active and Reference.objects.get().expected == YES
    campaign_close(campaign=campaign, actor=cast.alice)
    client = cast.client(cast.alice)
    assert [client.post(address, data).status_code for address, data in writes] == [302] * 3
    assert cast.client(cast.alice).get(state).status_code == 405


def test_another_studys_reference_and_answer_are_not_there(cast: Cast, answers: list[Answer]) -> None:
    made = add(cast, answers[0])
    client = cast.client(cast.bob)
    for name, args in (("reference", [made.pk]), ("reference_new", [answers[1].blind_id])):
        address = reverse(name, args=["theirs", *args])
        assert client.get(address).status_code == client.post(address, sent()).status_code == 404
    assert client.post(reverse("reference_state", args=["theirs", made.pk]), {"active": "0"}).status_code == 404
    for pk in (0, 2**31, 2**63):
        assert cast.client(cast.alice).get(reverse("reference", args=["ours", pk])).status_code == 404
    made.refresh_from_db()
    assert made.is_active and Reference.objects.count() == 1 and Rubric.objects.count() == 1


# --- opening -----------------------------------------------------------------------------------------------------


def test_opening_copies_what_is_in_use_and_rates_the_rest(cast: Cast, instrument: Instrument) -> None:
    rows = [list(make_sitting(instrument).answers.order_by("stimulus__position")) for _ in range(3)]
    training = add(cast, rows[0][0], purpose="training", values=YES | {"order": 0.0}, explanation="редкий порядок")
    gold = add(cast, rows[0][1], not_attempt=True)
    aside = add(cast, rows[0][2])
    reference_retire(reference=aside, actor=cast.alice)
    campaign = make_campaign(cast.study, cast.alice, k=1, training=True, gold_every=2)
    items = {item.answer_id: item for item in campaign.items.all()}
    assert items[training.answer_id].expected == training.expected
    assert items[training.answer_id].explanation == "редкий порядок"
    assert (items[gold.answer_id].purpose, items[gold.answer_id].expected_not_attempt) == ("gold", True)
    assert items[aside.answer_id].purpose == Purpose.RATING
    assert sorted(item.purpose for item in items.values()) == ["gold", *["rating"] * 7, "training"]
    assert {one.pk: one.n_campaigns for one in references_of(cast.study, training.rubric)} == {
        training.pk: 1,
        gold.pk: 1,
        aside.pk: 0,
    }
    with pytest.raises(ReferenceUsedError):
        reference_change(reference=gold, right=right(), seen=state_of(gold), actor=cast.alice)

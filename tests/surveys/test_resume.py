"""Whatever a participant does, in whatever order and in how many tabs: one sitting, nothing emptied, nothing lost."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.models import Answer, Sitting
from surveys.models import Survey
from tests.surveys.conftest import Visitor

numbers = st.integers(1, 3)
texts = st.sampled_from(["", " ", "кошка сидит", "мышь бежит", "a\x00", "я" * 3_000])
actions = st.one_of(
    st.tuples(st.just("look"), numbers),
    st.tuples(st.just("write"), numbers, texts),
    st.tuples(st.just("decline"), numbers),
    st.tuples(st.just("resend"), numbers),  # an old tab: the page as it was first shown, sent untouched
    st.tuples(st.just("link")),
)


# The survey is shared by the examples on purpose; each starts a participant of its own.
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(actions, max_size=14))
@pytest.mark.django_db
def test_any_order_of_steps(survey: Survey, steps: list[tuple]) -> None:
    visitor = Visitor(survey).start()
    believed: dict[int, tuple[str, str]] = {}  # what the participant has last told us, by task
    revisions: dict[int, int] = {}
    first_shown: dict[int, str] = {}
    for step in steps:
        finished = len(believed) == 3
        match step:
            case ("look", number):
                visitor.get(number)
            case ("write", number, text):
                reachable = not finished and number <= len(believed) + 1
                visitor.answer(number, text, seen=str(revisions.get(number, 0)))
                if reachable and text.strip() and "\x00" not in text and len(text) < 3_000:
                    if believed.get(number) != ("given", text):
                        revisions[number] = revisions.get(number, 0) + 1
                    believed[number] = ("given", text)
                    first_shown.setdefault(number, text)
            case ("decline", number):
                visitor.answer(number, declined="1", seen=str(revisions.get(number, 0)))
                if not finished and number <= len(believed) + 1:
                    if believed.get(number) != ("declined", ""):
                        revisions[number] = revisions.get(number, 0) + 1
                    believed[number] = ("declined", "")
            case ("resend", number):
                if number in first_shown and revisions[number] > 1:
                    told_first = visitor.sitting.answers.get(stimulus__position=number).revisions.get(number=1)
                    if told_first.outcome == "given":
                        visitor.answer(number, told_first.text, seen="1")
            case ("link",):
                visitor.client.get(f"/s/{survey.slug}/")

    stored = {a.stimulus.position: (a.outcome, a.text) for a in visitor.sitting.answers.select_related("stimulus")}
    assert stored == believed
    assert Sitting.objects.filter(respondent=visitor.sitting.respondent).count() == 1
    assert (visitor.sitting.state == "finished") == (len(believed) == 3)
    if len(believed) < 3 and believed:
        assert visitor.get()["Location"] == f"{visitor.address}{len(believed) + 1}/"
    for answer in Answer.objects.filter(sitting=visitor.sitting):
        assert answer.revisions.count() == answer.revision - 1

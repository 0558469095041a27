"""By which rubric an instrument's results are shown."""

import pytest
from django.urls import reverse

from annotation.importers.plan import Source
from annotation.importing import Target, judgements_import
from corpus.models import Answer, Instrument
from reports.selectors import rubric_of
from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC
from tests.annotation.factories import make_campaign, make_sitting
from tests.annotation.importing.conftest import table
from tests.conftest import Cast


@pytest.fixture
def graded(cast: Cast, instrument: Instrument) -> Instrument:
    """One person's answers, graded by two people in another tool; nobody has rated them here."""
    make_sitting(instrument)
    rows = [
        (answer.blind_id, who, grade)
        for answer, grade in zip(Answer.objects.order_by("pk"), ("1", "0.5", "0.5"), strict=True)
        for who in ("A", "B")
    ]
    report = judgements_import(
        study=cast.study,
        files=[Source("grades.csv", table(*rows, header=("answer", "who", "grade")))],
        format_name=None,
        settings={"key": "answer", "annotator": "who", "criteria": {"grade": {}}, "codes": {"grade": "sentence"}},
        target=Target("Elsewhere", CHILDREN_RUBRIC),
        actor=cast.alice,
    )
    assert len(report.votes) == 6, report.conflicts
    return instrument


def test_imported_grades_alone_are_shown_as_grades(cast: Cast, graded: Instrument) -> None:
    assert rubric_of(graded).slug == CHILDREN_RUBRIC
    response = cast.client(cast.alice).get(reverse("results", args=["ours"]))
    assert response.context["results"].people.scores[0].mean.value == pytest.approx((1 + 0.5 + 0.5) / 3)


def test_the_newest_campaign_still_decides(cast: Cast, graded: Instrument) -> None:
    make_campaign(cast.study, cast.alice, title="here")
    assert rubric_of(graded).slug == PAPER_RUBRIC


def test_without_any_it_is_the_paper_s(cast: Cast, instrument: Instrument) -> None:
    assert rubric_of(instrument).slug == PAPER_RUBRIC

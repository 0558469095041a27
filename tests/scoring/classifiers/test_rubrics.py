"""A study judged by another rubric than the paper's, or by both: its classifiers are trained and shown by page."""

from pathlib import Path

import pytest
from django.urls import reverse

from corpus.models import Answer, Instrument
from scoring import tasks
from scoring.classifiers import services
from scoring.models import Classifier, Judge, Judgement, Round
from scoring.services import children_rubric, paper_rubric, round_close
from tests.conftest import Cast
from tests.scoring.classifiers.conftest import people_answer
from tests.scoring.classifiers.test_pages import form

pytestmark = pytest.mark.django_db
NEW = reverse("classifier_new", args=["ours"])


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "classifier_enqueue", lambda _: None)


@pytest.fixture
def graded(cast: Cast, test_of_four: Instrument) -> list[Answer]:
    """Thirty people's answers, one grade each by two raters: half a point where a word is left as given."""
    answers = people_answer(test_of_four, 30, seed=1)
    rubric = children_rubric()
    (criterion,) = rubric.criteria.all()
    round_ = Round.objects.create(study=cast.study, rubric=rubric, purpose=Round.Purpose.RATING)
    judges = [Judge.objects.create(kind=Judge.Kind.RATER) for _ in range(2)]
    Judgement.objects.bulk_create(
        Judgement(
            round=round_,
            answer=answer,
            criterion=criterion,
            judge=judge,
            value=0.5 if any(word in answer.text for word in ("спать", "бежать", "есть")) else 1.0,
        )
        for answer in answers
        for judge in judges
    )
    round_close(round_id=round_.pk)
    return answers


def test_the_rubric_follows_from_the_closed_campaigns(cast: Cast, folder: Path, graded: list[Answer]) -> None:
    client = cast.client(cast.alice)
    shown = client.get(NEW)
    assert [str(one.question) for one in shown.context["form"].fields["criteria"].queryset] == [
        "How correct is the sentence?"
    ]
    assert shown.context["others"] == [], "there is nothing to choose"
    criteria = list(children_rubric().criteria.all())
    response = client.post(NEW, form(criteria))
    made = Classifier.objects.get()
    assert response.headers["Location"] == reverse("classifier", args=["ours", made.pk])
    assert (made.rubric.slug, [one.code for one in made.criteria.all()]) == ("children", ["sentence"])
    tasks.classifier_train(made.pk)
    made.refresh_from_db()
    assert made.state == "finished", made.problem
    shown_page = client.get(reverse("classifier", args=["ours", made.pk])).content.decode()
    assert "How correct is the sentence?" in shown_page and "F1 macro" in shown_page
    assert "Grammatically correct?" not in shown_page
    client.cookies["luria_language"] = "ru"
    assert "Насколько правильно предложение?" in client.get(reverse("classifier_list", args=["ours"])).content.decode()


def test_with_labels_in_two_the_page_lets_choose(
    cast: Cast, folder: Path, rated: list[Answer], graded: list[Answer]
) -> None:
    client = cast.client(cast.alice)
    first = client.get(NEW)
    labels = {slug for slug, _name in first.context["others"]}
    here = {criterion.rubric.slug for criterion in first.context["form"].fields["criteria"].queryset}
    assert labels | here == {"paper", "children"} and labels.isdisjoint(here)
    for slug, rubric in (("children", children_rubric()), ("paper", paper_rubric())):
        shown = client.get(f"{NEW}?rubric={slug}")
        codes = [one.code for one in shown.context["form"].fields["criteria"].queryset]
        assert codes == [one.code for one in rubric.criteria.filter(kind="judged")]
        criteria = list(rubric.criteria.exclude(code="order").filter(kind="judged"))
        response = client.post(f"{NEW}?rubric={slug}", form(criteria))
        made = Classifier.objects.get(rubric=rubric)
        assert response.headers["Location"] == reverse("classifier", args=["ours", made.pk])
        tasks.classifier_train(made.pk)
    page = client.get(reverse("classifier_list", args=["ours"]))
    by_rubric = {
        tuple(criterion.code for criterion in criteria): [line.classifier.rubric.slug for line in lines]
        for _name, criteria, lines in page.context["comparisons"]
    }
    assert by_rubric == {("sentence",): ["children"], ("grammatical", "logical", "order"): ["paper"]}


def test_criteria_of_two_rubrics_do_not_mix(cast: Cast, rated: list[Answer], graded: list[Answer]) -> None:
    mixed = [*children_rubric().criteria.all(), *paper_rubric().criteria.filter(code="logical")]
    response = cast.client(cast.alice).post(f"{NEW}?rubric=paper", form(mixed))
    assert response.status_code == 200 and response.context["form"].errors["criteria"]
    assert not Classifier.objects.exists()


@pytest.mark.parametrize("slug", ["children", "nonsense", "", "../x"])
def test_a_rubric_without_labels_says_so(slug: str, cast: Cast, test_of_four: Instrument) -> None:
    client = cast.client(cast.alice)
    address = reverse("classifier_new", args=["ours"]) + f"?rubric={slug}"
    criteria = list(client.get(address).context["form"].fields["criteria"].queryset)
    assert criteria[0].rubric.slug == ("children" if slug == "children" else "paper")
    assert "no labels of closed campaigns" in client.post(address, form(criteria)).content.decode()

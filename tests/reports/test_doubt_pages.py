"""Planning a campaign of what automatic judges doubt, in the browser; whoever rates is not offered it."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.models import Campaign
from annotation.services import campaign_close, rater_ensure
from corpus.models import Answer, Instrument, Respondent
from scoring.models import Application, Classifier, Judge, Round, Split
from scoring.services import paper_rubric
from tests.annotation.factories import CODES, make_campaign, make_sitting
from tests.annotation.test_campaign_pages import OPENING, english
from tests.annotation.test_doubting import SURE, make_judge, say
from tests.annotation.test_opening_pages import NEW, hidden_fields
from tests.conftest import Cast

NAMES = ("doubt", "doubt_judges", "sure_below", "least_sure")


@pytest.fixture
def answers(cast: Cast, instrument: Instrument) -> list[Answer]:
    """A person and a run of a model, three answers each."""
    make_sitting(instrument)
    make_sitting(instrument, kind=Respondent.Kind.MODEL, label="gpt")
    return list(Answer.objects.select_related("sitting__instrument__study").order_by("pk"))


@pytest.fixture
def judges(cast: Cast, answers: list[Answer]) -> tuple[Judge, Judge]:
    """Two classifiers: they differ on the first answer, the second one is unsure of the first and the second."""
    one, other = make_judge(cast.study), make_judge(cast.study)
    split = Split.objects.create(study=cast.study, seed=1, people_hash="x")
    for judge, title in ((one, "Baseline"), (other, "Encoder")):
        Classifier.objects.create(
            judge=judge, study=cast.study, rubric=paper_rubric(), split=split, title=title, recipe="baseline"
        )
    for answer in answers[:5]:
        say(one, answer, SURE)
    for answer, said in zip(answers, ((0.0, 0.6), (1.0, 0.65), (1.0, 0.8), (1.0, 0.9)), strict=False):
        say(other, answer, SURE | {"logical": said})
    return one, other


def client_of(cast: Cast) -> Client:
    return english(cast, cast.alice)


def asked(**more: Any) -> dict[str, Any]:
    return OPENING | {"raters_per_answer": "1"} | more


def test_what_is_counted_is_what_opens(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    client = client_of(cast)
    data = asked(doubt="either", doubt_judges=[str(one.pk) for one in judges], sure_below="0.7")
    text = client.get(NEW, data).content.decode()
    assert "Opening fixes these 2 answers" in text
    assert "Automatic judges are in doubt about 2 answers. They differ on 1. One of them is unsure of 2." in text
    assert '<th scope="row" class="fw-normal">Judged, and not in doubt</th><td class="n">3</td>' in text
    assert '<th scope="row" class="fw-normal">Not judged by these automatic judges</th><td class="n">1</td>' in text
    assert "They are no random sample" in text
    assert not Campaign.objects.exists()
    posted = hidden_fields(text)
    assert posted["doubt_judges"] == [str(one.pk) for one in judges]
    assert client.post(NEW, posted).status_code == 302
    campaign = Campaign.objects.get()
    assert campaign.selection["asked"]["doubt"] == {
        "kind": "either", "judges": [one.pk for one in judges], "names": ["Baseline", "Encoder"], "below": 0.7,
    }  # fmt: skip
    assert campaign.selection["sha256"] == posted["seen"][0]
    campaign_close(campaign=campaign, actor=cast.alice)
    for name in ("campaign", "campaign_agreement"):
        assert "They are no random sample" in client.get(reverse(name, args=["ours", campaign.pk])).content.decode()
    shown = client.get(reverse("campaign", args=["ours", campaign.pk])).content.decode()
    assert "(a confidence below 0.7) · judges: Baseline, Encoder" in shown


def test_an_ordinary_campaign_has_no_such_warning(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    campaign = make_campaign(cast.study, cast.alice)
    campaign_close(campaign=campaign, actor=cast.alice)
    for name in ("campaign", "campaign_agreement"):
        text = client_of(cast).get(reverse(name, args=["ours", campaign.pk])).content.decode()
        assert "They are no random sample" not in text


@pytest.mark.parametrize(
    ("given", "n"),
    [
        ({"doubt": "differ"}, 1),
        ({"doubt": "unsure"}, 2),
        ({"doubt": "unsure", "sure_below": "0.85"}, 3),
        ({"doubt": "unsure", "kind": "model", "sure_below": "1"}, 2),
        ({"doubt": "least", "least_sure": "4"}, 4),
        ({"doubt": "least", "least_sure": "4", "sample": "2"}, 2),
        ({"doubt": "unsure", "criteria": ["logical"]}, 2),
    ],
    ids=str,
)
def test_each_choice(cast: Cast, judges: tuple[Judge, Judge], given: dict[str, Any], n: int) -> None:
    assert f"Opening fixes these {n} answers" in client_of(cast).get(NEW, asked(**given)).content.decode().replace(
        "this 1 answer", "these 1 answers"
    )
    client_of(cast).post(NEW, asked(**given))
    assert Campaign.objects.get().items.count() == n


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"doubt": "least"}, "Say how many."),
        ({"doubt": "unsure", "least_sure": "5"}, "You said how many of the least sure"),
        ({"least_sure": "5"}, "You said how many of the least sure"),
        ({"doubt": "unsure", "with_refusals": "on"}, "Automatic judges do not judge refusals"),
        ({"doubt": "unsure", "sure_below": "7"}, "less than or equal to 1"),
        ({"doubt": "unsure", "sure_below": "nan"}, "Enter a number"),
        ({"doubt": "odd"}, "Select a valid choice"),
        ({"doubt": "differ", "doubt_judges": ["99999"]}, "Select a valid choice"),
        ({"doubt": "differ", "doubt_judges": ["x"]}, "Select a valid choice"),
        ({"doubt": "differ", "criteria": ["order"], "doubt_judges": "ONE"}, "To differ takes two"),
        ({"doubt": "unsure", "rubric": "children"}, "None of these automatic judges has judged"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said_and_nothing_opens(
    cast: Cast, judges: tuple[Judge, Judge], given: dict[str, Any], told: str
) -> None:
    data = asked(**{name: [str(judges[0].pk)] if value == "ONE" else value for name, value in given.items()})
    assert told in client_of(cast).get(NEW, data).content.decode()
    response = client_of(cast).post(NEW, data)
    assert response.status_code == 400
    assert told in response.content.decode()
    assert not Campaign.objects.exists()


def test_where_no_automatic_judge_has_judged_it_is_refused_in_words(cast: Cast, answers: list[Answer]) -> None:
    text = client_of(cast).get(NEW).content.decode()
    assert "No classifier or model judge has judged answers of this study yet." in text
    assert 'name="sure_below"' not in text
    response = client_of(cast).post(NEW, asked(doubt="unsure"))
    assert response.status_code == 400
    assert "No classifier or model judge has judged answers of this study yet. Nothing was opened." in (
        response.content.decode()
    )
    assert not Campaign.objects.exists()


def test_model_judges_do_not_say_how_sure_they_are(cast: Cast, answers: list[Answer]) -> None:
    say(make_judge(cast.study, Judge.Kind.MODEL), answers[0], dict.fromkeys(CODES, (1.0, None)))
    assert "None of these automatic judges says how sure it is" in (
        client_of(cast).get(NEW, asked(doubt="unsure")).content.decode()
    )


# --- who rates ---------------------------------------------------------------------------------------------------


def test_who_rates_is_not_offered_it(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    make_campaign(cast.study, cast.alice, title="open")
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    client = client_of(cast)
    for address in (NEW, f"{NEW}?doubt=unsure&doubt_judges={judges[0].pk}"):
        text = client.get(address).content.decode()
        assert not any(f'name="{name}"' in text for name in NAMES)
        assert "Baseline" not in text
    data = asked(title="mine", doubt="unsure", doubt_judges=[str(judges[1].pk)])
    assert "Opening fixes these 6 answers" in client.get(NEW, data).content.decode()
    client.post(NEW, data)
    campaign = Campaign.objects.get(title="mine")
    assert campaign.items.count() == 6 and "doubt" not in campaign.selection["asked"]


def test_who_rates_reads_nothing_of_it_on_the_campaign_s_page(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    client = client_of(cast)
    client.post(NEW, asked(doubt="unsure"))
    campaign = Campaign.objects.get()
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    page = client.get(reverse("campaign", args=["ours", campaign.pk])).content.decode()
    like = client.get(f"{NEW}?like={campaign.pk}").content.decode()
    for text in (page, like):
        assert "in doubt" not in text and "Baseline" not in text and "no random sample" not in text
    assert client.get(reverse("campaign_agreement", args=["ours", campaign.pk])).status_code == 403


def test_a_rater_s_pages_say_nothing_of_why(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    """The same answers opened for doubt and chosen otherwise: the pages differ in nothing but keys and numbers."""
    instrument = str(Instrument.objects.get().pk)
    seen = []
    for given in ({"doubt": "unsure"}, {"kind": "human", "instrument": instrument, "stimuli": "1, 2"}):
        assert client_of(cast).post(NEW, asked(title="Round", **given)).status_code == 302
        campaign = Campaign.objects.latest("pk")
        assert set(campaign.items.values_list("answer__stimulus__position", flat=True)) == {1, 2}
        rita = english(cast, cast.rita)
        home = rita.get(reverse("rate_home")).content.decode()
        page = rita.post(reverse("rate_next", args=[campaign.pk]), follow=True).content.decode()
        assert campaign.items.get(position=1).display_text in page
        seen.append(without_keys(home + page))
        campaign_close(campaign=campaign, actor=cast.alice)
    assert seen[0] == seen[1]


def without_keys(text: str) -> str:
    """A page without its tokens, the keys of its places, and the campaign's number."""
    text = re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "KEY", text)
    return re.sub(r'(?<=/c/)[0-9]+|(?<=data-outbox=")[0-9]+:[0-9]+|(?<="id": )[0-9]+', "N", text)


def test_a_rater_who_is_not_blinded_yet_is_told_what_it_costs(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    text = client_of(cast).get(NEW, asked(doubt="unsure")).content.decode()
    assert "know that automatic judges doubt these answers" in text


def test_strangers_and_raters_are_refused(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    for user in (cast.bob, cast.rita):
        client = english(cast, user)
        assert client.get(NEW, asked(doubt="unsure")).status_code == 404
        assert client.post(NEW, asked(doubt="unsure")).status_code == 404
    assert not Campaign.objects.exists()


def test_another_study_s_judges_cannot_be_chosen(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    data = asked(doubt="unsure", doubt_judges=[str(judges[0].pk)])
    text = english(cast, cast.bob).get("/studies/theirs/campaigns/new/", data).content.decode()
    assert "Baseline" not in text
    assert "No classifier or model judge has judged answers of this study yet." in text


# --- the way there -----------------------------------------------------------------------------------------------


def test_the_address_fills_the_form(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    _one, other = judges
    text = client_of(cast).get(f"{NEW}?doubt=unsure&doubt_judges={other.pk}").content.decode()
    assert '<option value="unsure" selected>' in text
    ticked = [line for line in text.splitlines() if 'name="doubt_judges"' in line and "checked" in line]
    assert len(ticked) == 1 and f'value="{other.pk}"' in ticked[0]
    assert "This field is required" not in text
    assert '<option value="unsure" selected>' not in client_of(cast).get(f"{NEW}?doubt=odd").content.decode()


def test_another_one_like_this(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    client = client_of(cast)
    client.post(NEW, asked(doubt="unsure", sure_below="0.64", doubt_judges=[str(judges[1].pk)]))
    form = client.get(f"{NEW}?like={Campaign.objects.get().pk}").context["form"]
    assert (form["doubt"].value(), form["sure_below"].value()) == ("unsure", 0.64)
    assert form["doubt_judges"].value() == [judges[1].pk]


def test_a_classifier_s_page_leads_there(cast: Cast, judges: tuple[Judge, Judge]) -> None:
    client = client_of(cast)
    one = Classifier.objects.get(judge=judges[1])
    Classifier.objects.filter(pk=one.pk).update(state="finished", weights_hash="0" * 64, finished_at=timezone.now())
    page = reverse("classifier", args=["ours", one.pk])
    words = "Plan a campaign of the answers that it is unsure of"
    assert words not in client.get(page).content.decode()  # it has judged nothing
    round_ = Round.objects.get(judge=judges[1])
    Application.objects.create(classifier=one, round=round_, state="finished", finished_at=timezone.now())
    text = client.get(page).content.decode()
    address = re.search(r'href="([^"]*)">' + words, text)
    assert address is not None
    form = client.get(unescape(address[1])).context["form"]
    assert (form["doubt"].value(), form["doubt_judges"].value()) == ("unsure", [str(judges[1].pk)])


def test_one_judge_alone_is_not_asked_about(cast: Cast, answers: list[Answer]) -> None:
    judge = make_judge(cast.study)
    say(judge, answers[0], SURE | {"order": (0.0, 0.6)})
    text = client_of(cast).get(f"{NEW}?doubt=unsure&doubt_judges={judge.pk}").content.decode()
    assert '<option value="unsure" selected>' in text and 'name="doubt_judges"' not in text
    assert "Opening fixes these 1 answers" in client_of(cast).get(NEW, asked(doubt="unsure")).content.decode()

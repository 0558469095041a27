"""Versions of the rules: who writes them, what is refused, what an open campaign keeps."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.guideline import CHILDREN_GUIDELINE, DEFAULT_GUIDELINE
from annotation.guideline_selectors import guideline_newest, state_of
from annotation.models import Campaign, Guideline, Rater
from annotation.services import campaign_close, rater_ensure
from corpus.models import Instrument
from scoring.services import CHILDREN_RUBRIC, PAPER_RUBRIC
from studies.models import AuditEntry, Study
from tests.annotation.factories import make_campaign, take
from tests.conftest import Cast

NEW = reverse("guideline_new", args=["ours"])
LIST = reverse("guideline_list", args=["ours"])


def english(user: Any) -> Client:
    client = Client(headers={"accept-language": "en"})
    client.force_login(user)
    return client


def typed(study: Study, text: str, *, note: str = "", rubric: str = PAPER_RUBRIC) -> dict[str, str]:
    """The form as it is sent from a page that was opened now."""
    seen = state_of(guideline_newest(study, rubric))
    return {"rubric": rubric, "text": text, "note": note, "seen": seen}


def write(cast: Cast, text: str, **kwargs: str) -> Guideline:
    response = english(cast.alice).post(NEW, typed(cast.study, text, **kwargs))
    assert response.status_code == 302, response.content.decode()
    return Guideline.objects.latest("version")


def shown(response: Any) -> str:
    """The page's text without its form's token, spaces evened out."""
    text = re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", response.content.decode())
    return re.sub(r"\s+", " ", text)


def test_empty_list_teaches(cast: Cast) -> None:
    assert "a campaign opens with the rules that come with Luria" in shown(english(cast.alice).get(LIST))


@pytest.mark.parametrize(("rubric", "text"), [(PAPER_RUBRIC, DEFAULT_GUIDELINE), (CHILDREN_RUBRIC, CHILDREN_GUIDELINE)])
def test_the_first_text_is_what_raters_would_read_without_it(cast: Cast, rubric: str, text: str) -> None:
    form = english(cast.alice).get(NEW, {"rubric": rubric}).context["form"]
    assert form["text"].value() == text.strip()


def test_a_version_is_written_read_and_stands_in_the_list(cast: Cast) -> None:
    made = write(cast, "Судите **строго**.\r\n\r\n- раз", note="стало строже")
    assert (made.version, made.text, made.note, made.author) == (
        1,
        "Судите **строго**.\n\n- раз",
        "стало строже",
        cast.alice,
    )
    page = shown(english(cast.alice).get(reverse("guideline", args=["ours", 1])))
    assert "<strong>строго</strong>" in page and "<li>раз</li>" in page
    assert "No campaign has this version. Campaigns that open now take it unless" in page
    table = shown(english(cast.alice).get(LIST))
    assert "стало строже" in table and "alice" in table and "version 1" in table
    entry = AuditEntry.objects.get(action="guideline_write")
    assert (entry.actor, entry.detail) == (cast.alice, {"version": 1, "rubric": PAPER_RUBRIC})


def test_the_next_version_begins_with_the_newest_of_its_rubric(cast: Cast) -> None:
    write(cast, "для трёх критериев")
    write(cast, "для одной оценки", rubric=CHILDREN_RUBRIC)
    client = english(cast.alice)
    texts = [client.get(NEW, {"rubric": one}).context["form"]["text"].value() for one in (PAPER_RUBRIC, "")]
    assert texts == ["для трёх критериев"] * 2
    assert client.get(NEW, {"rubric": CHILDREN_RUBRIC}).context["form"]["text"].value() == "для одной оценки"
    assert client.get(NEW, {"rubric": "nothing"}).status_code == 404


def test_html_is_shown_as_text(cast: Cast) -> None:
    hostile = "<script>alert(1)</script> <b onclick=x>нет</b> ![](http://evil.example/x.png) [a](javascript:alert(1))"
    client = english(cast.alice)
    preview = shown(client.post(NEW, typed(cast.study, hostile) | {"preview": "1"}))
    write(cast, hostile, note="<i>note</i>")
    write(cast, "Судите строго.")
    pages = [
        preview,
        shown(client.get(reverse("guideline", args=["ours", 1]))),
        shown(client.get(reverse("guideline_compare", args=["ours", 2]))),
        shown(client.get(LIST)),
    ]
    for page in pages:
        assert "<script>alert" not in page and "<b onclick" not in page and "<i>note" not in page
        assert 'src="http://evil' not in page and 'href="javascript' not in page
    assert all("&lt;script&gt;alert(1)" in page for page in pages[:3])


def test_preview_saves_nothing_and_says_what_differs(cast: Cast) -> None:
    write(cast, "Судите строго и быстро.")
    response = english(cast.alice).post(NEW, typed(cast.study, "Судите **мягко** и быстро.") | {"preview": "1"})
    page = shown(response)
    assert "Nothing is saved yet" in page and "<strong>мягко</strong>" in page
    assert "<del>строго </del><ins>**мягко** </ins>" in page
    assert response.context["form"]["text"].value() == "Судите **мягко** и быстро."
    assert Guideline.objects.count() == 1
    assert AuditEntry.objects.filter(action="guideline_write").count() == 1


def test_a_newer_version_that_appeared_meanwhile_refuses(cast: Cast) -> None:
    write(cast, "первая")
    late = typed(cast.study, "моя правка", note="моё")
    write(cast, "чужая правка")
    client = english(cast.alice)
    response = client.post(NEW, late)
    page = shown(response)
    assert response.status_code == 409
    assert "no longer the one that you began with" in page and "<del>чужая </del><ins>моя </ins>" in page
    assert Guideline.objects.count() == 2
    form = response.context["form"]
    again = {name: form[name].value() for name in ("rubric", "seen", "text", "note")}
    assert (again["text"], again["note"]) == ("моя правка", "моё")
    assert client.post(NEW, again).status_code == 302
    assert list(Guideline.objects.order_by("version").values_list("text", flat=True)) == [
        "первая",
        "чужая правка",
        "моя правка",
    ]


def test_a_version_of_the_other_rubric_is_no_conflict(cast: Cast) -> None:
    mine = typed(cast.study, "для трёх")
    write(cast, "для одной", rubric=CHILDREN_RUBRIC)
    assert english(cast.alice).post(NEW, mine).status_code == 302
    assert list(Guideline.objects.order_by("version").values_list("version", "rubric_slug")) == [
        (1, CHILDREN_RUBRIC),
        (2, PAPER_RUBRIC),
    ]


def test_words_taken_out_of_a_version_refuse_the_form_that_still_has_them(cast: Cast) -> None:
    """As a withdrawal does: the version's number stays."""
    write(cast, "Пример: кошка сидит.")
    late = typed(cast.study, "Пример: кошка сидит. Судите строго.")
    Guideline.objects.update(text="Пример: […].")
    assert english(cast.alice).post(NEW, late).status_code == 409
    assert Guideline.objects.count() == 1


def test_the_same_text_twice_is_one_version(cast: Cast) -> None:
    sent = typed(cast.study, "первая")
    client = english(cast.alice)
    assert client.post(NEW, sent).status_code == 302
    response = client.post(NEW, sent)  # a double click
    assert response.status_code == 409
    assert "has this very text" in shown(response)
    assert Guideline.objects.count() == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"text": ""},
        {"text": " \r\n "},
        {"text": "x\x00"},
        {"text": "x" * 20_001},
        {"note": "x" * 301},
        {"rubric": "other"},
        {"rubric": ""},
        {"seen": ""},
        {"seen": "\x00"},
    ],
)
def test_bad_forms_write_nothing(cast: Cast, bad: dict[str, str]) -> None:
    response = english(cast.alice).post(NEW, typed(cast.study, "правила") | bad)
    assert response.status_code == 400
    assert not Guideline.objects.exists()


def test_an_open_campaign_keeps_its_version_and_the_page_says_so(
    cast: Cast, campaign: Campaign, raters: list[Rater]
) -> None:
    write(cast, "совсем другие правила")
    client = english(cast.alice)
    page = shown(client.get(reverse("guideline", args=["ours", 1])))
    assert "They keep it, whatever is written later." in page and campaign.title in page
    assert "There is a newer version" in page
    rows = client.get(LIST).context["rows"]
    assert [(row.guideline.version, row.is_newest, row.campaigns) for row in rows] == [
        (2, True, []),
        (1, False, [campaign]),
    ]
    judging = cast.client(raters[0].user).get(reverse("rate_place", args=[take(campaign, raters[0]).uuid]))
    assert "Грамматически правильно? Да, если" in judging.content.decode()
    assert "совсем другие правила" not in judging.content.decode()
    campaign_close(campaign=campaign, actor=cast.alice)
    later = make_campaign(cast.study, cast.alice, title="later")
    assert later.round.guideline_version == 2


def test_the_campaigns_pages_lead_to_the_rules(cast: Cast, campaign: Campaign) -> None:
    client = english(cast.alice)
    assert f'href="{LIST}"' in shown(client.get(reverse("campaign_list", args=["ours"])))
    its_own = reverse("guideline", args=["ours", campaign.round.guideline_version])
    assert f'href="{its_own}"' in shown(client.get(reverse("campaign", args=["ours", campaign.pk])))


def test_two_versions_are_compared_word_by_word(cast: Cast) -> None:
    write(cast, "Судите строго.\n\nОпечатки не в счёт.")
    write(cast, "Одна оценка.", rubric=CHILDREN_RUBRIC)
    write(cast, "Судите мягко.\n\nОпечатки не в счёт.")
    client = english(cast.alice)
    address = reverse("guideline_compare", args=["ours", 3])
    page = shown(client.get(address))
    assert "From version 1 to version 3:" in page, "the one before it of the same rubric"
    assert "Судите <del>строго. </del><ins>мягко. </ins>" in page
    assert "different criteria" in shown(client.get(address, {"with": "2"}))
    assert [client.get(address, {"with": wrong}).status_code for wrong in ("3", "9", "x", "\x00")] == [404] * 4


def test_a_single_version_has_nothing_to_compare_with(cast: Cast) -> None:
    write(cast, "первая")
    assert "no other version" in shown(english(cast.alice).get(reverse("guideline_compare", args=["ours", 1])))


@pytest.mark.parametrize("name", ["guideline", "guideline_compare"])
def test_a_version_that_is_not_there(cast: Cast, name: str) -> None:
    write(cast, "первая")
    for number in (0, 2, 2**31, 2**63):
        assert english(cast.alice).get(reverse(name, args=["ours", number])).status_code == 404


PAGES = [("guideline_list", []), ("guideline_new", []), ("guideline", [1]), ("guideline_compare", [1])]


@pytest.mark.parametrize(("name", "numbers"), PAGES, ids=[name for name, _ in PAGES])
def test_pages_are_for_the_studys_researchers_who_may_rate_too(
    cast: Cast, campaign: Campaign, name: str, numbers: list[int]
) -> None:
    address = reverse(name, args=["ours", *numbers])
    assert [cast.client(user).get(address).status_code for user in (cast.alice, cast.bob, cast.rita)] == [200, 404, 404]
    assert Client().get(address).url.startswith("/login/")
    through_theirs = cast.client(cast.bob).get(reverse(name, args=["theirs", *numbers]))
    assert through_theirs.status_code == (404 if numbers else 200)
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)  # the rules tell nothing of who answered
    assert cast.client(cast.alice).get(address).status_code == 200


def test_writing_refuses_everybody_else(cast: Cast, campaign: Campaign) -> None:
    data = typed(cast.study, "чужие правила")
    for user in (cast.bob, cast.rita):
        assert cast.client(user).post(NEW, data).status_code == 404
    assert Client().post(NEW, data).url.startswith("/login/")
    assert Guideline.objects.count() == 1
    assert cast.client(cast.alice).post(NEW, data).status_code == 302
    assert Guideline.objects.count() == 2


def test_the_list_runs_as_many_queries_for_many_versions(cast: Cast, instrument: Instrument) -> None:
    client = cast.client(cast.alice)
    counts = []
    for texts in ("аб", "вгдежз"):
        for text in texts:
            write(cast, text)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(LIST).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 7

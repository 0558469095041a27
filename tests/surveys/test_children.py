"""The original children's test from end to end, through HTTP: made, taken, judged by one grade, scored.

Two people take three tasks of three to five lemmas; three raters give 1, 0.5, 0.25 or 0.

    P1  1  1    1    0.5    two of three: 1
        2  0.5  0.5  0.5    0.5
        3  0.25 0.25 1      0.25
           S = (1 + 0.5 + 0.25) / 3 = 1.75 / 3 = 0.58333…; one criterion, so the score from 0 to 1 is the same
    P2  1  1    1    1      1
        2  declined         0 by the refusal rule, and in no campaign
        3  1    0.5  0.25   no value has more than half: undecided, then 0.5 by the adjudicator
           before: no score, bounds (1 + 0 + 0) / 3 = 1/3 and (1 + 0 + 1) / 3 = 2/3; after: (1 + 0 + 0.5) / 3 = 0.5
    people: before, P1 alone, 1.75/3 = 0.583; after, (1.75/3 + 1.5/3) / 2 = 3.25/6 = 0.54166…
"""

import csv
import io
import re

import pytest
from django.test import Client

from annotation.models import Campaign, Item
from corpus.models import Instrument
from scoring.models import Judgement
from studies.models import Role, User
from studies.services import api_token_create, membership_set
from surveys.models import Survey
from tests.conftest import Cast
from tests.surveys.conftest import Visitor
from tests.surveys.test_survey_pages import FIELDS

TASKS = [
    ("мальчик ловить рыба", "мальчик ловит рыбу"),
    ("собака бежать за кошка", "собака бежит за кошкой"),
    ("папа читать сын интересный книга", "папа читает сыну интересную книгу"),
]
P1 = ["мальчик ловит рыбу", "за кошкой собака бежит", "папа читает сын книга"]
P2 = ["мальчик ловил рыбу", None, "папа читал сыну интересную книжку"]
VOTES = {
    P1[0]: ("1", "1", "0.5"), P1[1]: ("0.5", "0.5", "0.5"), P1[2]: ("0.25", "0.25", "1"),
    P2[0]: ("1", "1", "1"), P2[2]: ("1", "0.5", "0.25"),
}  # fmt: skip


def made_in_the_browser(alice: Client) -> Instrument:
    root = "/studies/ours/instruments/"
    names = {"empty-title": "Детский", "empty-slug": "children", "empty-language": "ru"}
    home = alice.post(root + "new/", {"begin": "empty", **names})["Location"]
    settings = {"title": "Детский", "language": "ru", "refusal_below": 1, "instruction": "Составь предложение."}
    alice.post(home + "edit/", {"seen": 1, **settings, "lower_case": "on"})
    for seen, (text, original) in enumerate(TASKS, start=2):
        row = {"text": text, "original": original, "complexity": "easy"}
        assert alice.post(home + "stimuli/new/", {"seen": seen, **row}).status_code == 302
    return Instrument.objects.get(slug="children")


def fielded(alice: Client, instrument: Instrument) -> None:
    address = alice.post("/studies/ours/surveys/new/", {**FIELDS, "instrument": instrument.pk})["Location"]
    alice.post(address + "state/", {"state": "open"})
    survey = Survey.objects.get()
    for texts in (P1, P2):
        visitor = Visitor(survey).start()
        for number, text in enumerate(texts, start=1):
            visitor.answer(number, text or "", **({} if text else {"declined": "1"}))
        assert visitor.sitting.state == "finished"


def judged(cast: Cast, alice: Client, instrument: Instrument) -> Campaign:
    raters = []
    for name in ("lena", "misha", "nina"):
        user = User.objects.create_user(name)
        membership_set(user=user, study=cast.study, role=Role.RATER, actor=cast.alice)
        raters.append(user)
    adjudicator = cast.study.memberships.get(user=cast.rita)
    fields = {
        "title": "Grades", "instrument": instrument.pk, "rubric": "children", "raters_per_answer": 3, "seed": 1,
        "adjudicator": adjudicator.pk,
    }  # fmt: skip
    assert alice.post("/studies/ours/campaigns/new/", fields).status_code == 302
    campaign = Campaign.objects.get()
    for place, user in enumerate(raters):
        client = cast.client(user)
        address = client.post(f"/rate/c/{campaign.pk}/next/")["Location"]
        while re.fullmatch(r"/rate/[0-9a-f-]{36}/", address):
            page = client.get(address).content.decode()
            # four grades, best first, on the first row of keys, bound by position
            found = re.findall(r'name="c-sentence" value="([^"]+)"[^>]* data-code="([^"]+)"', page)
            assert found == [("1", "Digit1"), ("0.5", "Digit2"), ("0.25", "Digit3"), ("0", "Digit4")]
            assert page.count("data-criterion") == 1 and "How correct is the sentence?" in page
            text = next(text for text in VOTES if text in page)
            wrong = client.post(address, {"version": 0, "c-sentence": "0.75"})
            assert wrong.status_code == 400 and "not on the scale" in wrong.content.decode()
            address = client.post(address, {"version": 0, "c-sentence": VOTES[text][place]})["Location"]
    assert Judgement.objects.filter(round=campaign.round).count() == 5 * 3
    return campaign


def rows(client: Client, name: str) -> list[dict[str, str]]:
    content = b"".join(client.get(f"/studies/ours/exports/{name}.csv").streaming_content).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content)))


def people(api: Client) -> dict:
    document = api.get("/api/v1/studies/ours/results/").json()
    assert document["criteria"] == ["sentence"]
    return document["rows"][0]["cuts"][0]


@pytest.mark.django_db
def test_the_childrens_test_is_made_taken_judged_and_scored(cast: Cast) -> None:
    alice = cast.client(cast.alice)
    api = Client(headers={"authorization": f"Token {api_token_create(user=cast.alice)}"})
    instrument = made_in_the_browser(alice)
    fielded(alice, instrument)
    campaign = judged(cast, alice, instrument)
    alice.post(f"/studies/ours/campaigns/{campaign.pk}/close/")

    labels = {(row["answer"], row["criterion"]): row for row in rows(alice, "labels")}
    texts = {row["answer"]: row["text"] for row in rows(alice, "answers")}
    by_text = {texts[answer]: (row["label"], row["basis"], row["reason"]) for (answer, _), row in labels.items()}
    assert by_text == {
        P1[0]: ("1", "majority", ""),
        P1[1]: ("0.5", "majority", ""),
        P1[2]: ("0.25", "majority", ""),
        P2[0]: ("1", "majority", ""),
        "": ("0", "refusal", ""),
        P2[2]: ("", "undecided", "no_majority"),
    }
    before = people(api)
    assert before["n_scored"] == 1 and before["mean"]["score_norm"] == pytest.approx(1.75 / 3)
    # over both people: (1.75/3 + 1/3) / 2 and (1.75/3 + 2/3) / 2
    assert before["bounds"]["low_norm"] == pytest.approx(2.75 / 6)
    assert before["bounds"]["high_norm"] == pytest.approx(3.75 / 6)

    item = Item.objects.get(display_text=P2[2])
    decided = cast.client(cast.rita).post(f"/rate/decide/{item.uuid}/", {"c-sentence": "0.5", "reason": "замена"})
    assert decided.status_code == 302
    after = people(api)
    assert after["n_scored"] == 2 and after["mean"]["score_norm"] == pytest.approx(3.25 / 6)
    scores = sorted(float(row["score_norm"]) for row in rows(alice, "scores"))
    assert scores == [pytest.approx(0.5), pytest.approx(1.75 / 3)]

    page = alice.get("/studies/ours/results/").content.decode()
    assert "0.542" in page and "0 to 1" in page
    answers = alice.get("/studies/ours/results/answers/", {"instrument": instrument.pk}).content.decode()
    assert "How correct is the sentence?" in answers and "0.25" in answers
    # wide annotations have a column for the grade beside those of the paper's rubric
    (one, *_rest) = rows(alice, "annotations")
    assert one["sentence"] in ("1", "0.5", "0.25") and one["grammatical"] == ""
    assert alice.get("/studies/ours/results/figure1.json").status_code == 200

"""References as a CSV file: what is given out comes back as it was; what is wrong is named, and nothing is taken."""

import csv
import io
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotation.models import Reference
from annotation.reference_file import MAX_BYTES, MAX_ROWS
from annotation.reference_services import reference_retire
from annotation.services import rater_ensure
from corpus.models import Answer, Instrument
from corpus.services import sitting_withdraw
from scoring.services import CHILDREN_RUBRIC
from studies.models import AuditEntry
from tests.annotation.factories import GOOD, NO, YES, make_campaign, make_sitting
from tests.annotation.test_guidelines import english, shown
from tests.annotation.test_references import add, used
from tests.conftest import Cast

FILE = reverse("references_file", args=["ours"])
CSV = reverse("references_csv", args=["ours"])
HEADER = "answer,purpose,grammatical,logical,order,not_attempt,explanation"


@pytest.fixture
def answers(instrument: Instrument) -> list[Answer]:
    return list(Answer.objects.filter(sitting=make_sitting(instrument)).order_by("stimulus__position"))


def send(client: Client, text: str | bytes, **data: str) -> Any:
    content = text.encode() if isinstance(text, str) else text
    return client.post(FILE, {"file": SimpleUploadedFile("r.csv", content), **data})


def downloaded(client: Client, **query: str) -> bytes:
    response = client.get(CSV, query)
    assert response.status_code == 200
    return b"".join(response.streaming_content)


def stored() -> list[tuple[Any, ...]]:
    fields = ("answer", "purpose", "expected", "not_attempt", "explanation", "is_active")
    return list(Reference.objects.order_by("pk").values_list(*fields))


def test_a_file_makes_references_and_says_how_many(cast: Cast, answers: list[Answer]) -> None:
    known = add(cast, answers[2])
    text = (
        f"{HEADER}\n{answers[0].blind_id},training,1,1,0,,Порядок редкий\n"
        f"{answers[1].blind_id},gold,,,,true,\n{answers[2].blind_id},gold,1,1.0,1,false,\n"
    )
    client = english(cast.alice)
    checked = send(client, text, check="1")
    assert "New: 2, changed: 0, as they were: 1." in shown(checked)
    assert Reference.objects.get() == known and not AuditEntry.objects.filter(action="references_import").exists()
    assert send(client, text).status_code == 302
    assert stored() == [
        (answers[2].pk, "gold", YES, False, "", True),
        (answers[0].pk, "training", {"grammatical": 1, "logical": 1, "order": 0}, False, "Порядок редкий", True),
        (answers[1].pk, "gold", NO, True, "", True),
    ]
    entry = AuditEntry.objects.get(action="references_import")
    assert entry.detail == {"rubric": "paper", "new": 2, "changed": 0, "same": 1}
    assert AuditEntry.objects.filter(action="reference_add").count() == 3
    before = stored()
    send(client, text)
    assert stored() == before and AuditEntry.objects.filter(action="reference_change").count() == 0


def test_what_is_given_out_comes_back_the_same(cast: Cast, answers: list[Answer]) -> None:
    add(cast, answers[0], purpose="training", explanation='=1+1, "так"\nи так')
    add(cast, answers[1], not_attempt=True)
    reference_retire(reference=add(cast, answers[2], values=NO), actor=cast.alice)
    used(cast, Reference.objects.get(answer=answers[1]))
    client = english(cast.alice)
    content, before = downloaded(client), stored()
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert [row["text"] for row in rows] == [answer.text for answer in answers]
    assert set(rows[0]) == {"task", "text", "in_use", *HEADER.split(",")}
    assert "as they were: 3." in shown(send(client, content, check="1"))
    assert send(client, content).status_code == 302
    assert stored() == before
    assert "'=1+1" in downloaded(client, **{"for": "excel"}).decode()


def test_a_grade_of_the_childrens_test_in_a_file(cast: Cast, answers: list[Answer]) -> None:
    client = english(cast.alice)
    file = SimpleUploadedFile("r.csv", f'answer,purpose,sentence\n{answers[0].blind_id},gold,"0,25"\n'.encode())
    assert client.post(f"{FILE}?rubric={CHILDREN_RUBRIC}", {"file": file}).status_code == 302
    assert Reference.objects.get().expected == {"sentence": 0.25}
    assert b"0.25" in downloaded(client, rubric=CHILDREN_RUBRIC)
    assert client.get(CSV, {"rubric": "other"}).status_code == client.get(FILE, {"rubric": "other"}).status_code == 404


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("answer;purpose\n", "separated by commas"),
        ("answer,purpose,grammatical,logical\n", "columns are missing: order"),
        (f"{HEADER}\n", "no rows"),
        (b"\xff\xfe", "not UTF-8"),
        (f"{HEADER}\nx,gold,1,1,1,,\n", "line 2: “x” is not the number"),
        (f"{HEADER}\n{uuid4()},gold,1,1,1,,\n", "line 2: the study has no such answer"),
        (f"{HEADER}\nFIRST,silver,1,1,1,,\n", "not “silver”"),
        (f"{HEADER}\nFIRST,gold,1,1,0.5,,\n", "line 2: order is empty or not a value"),
        (f"{HEADER}\nFIRST,gold,nan,1,,,\n", "line 2: grammatical is empty or not a value"),
        (f"{HEADER}\nFIRST,gold,1,1,1,perhaps,\n", "not_attempt is true, false or empty"),
        (f"{HEADER}\nFIRST,gold,1,1,1,,{'я' * 2001}\n", "longer than 2000"),
        (f"{HEADER}\nFIRST,gold,1,1,1,,,,\n", "more fields than columns"),
        (f"{HEADER}\nFIRST,gold,1,1,1,,a\x00b\n", "NUL"),
        (f"{HEADER}\nFIRST,gold,1,1,1,,\nFIRST,gold,1,1,1,,\n", "line 3: the answer stands in the file twice"),
        (f'{HEADER}\nFIRST,gold,1,1,1,,"a\n', "not CSV"),
        (f"{HEADER}\n" + "x,gold,1,1,1,,\n" * (MAX_ROWS + 1), "more than 500 rows"),
        ("x" * (MAX_BYTES + 1), "larger than"),
        ("<script>alert(1)</script>\n", "columns are missing"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_wrong_is_named_and_nothing_is_taken(
    cast: Cast, answers: list[Answer], text: str | bytes, said: str
) -> None:
    if isinstance(text, str):
        text = text.replace("FIRST", str(answers[0].blind_id)) + f"{answers[1].blind_id},gold,1,1,1,,\n" * (
            text.startswith(HEADER) and "no rows" not in said and "not CSV" not in said and "than 500 rows" not in said
        )
    response = send(english(cast.alice), text)
    assert response.status_code == 400 and said in shown(response)
    assert not Reference.objects.exists()


def test_all_rows_or_none(cast: Cast, answers: list[Answer], instrument: Instrument) -> None:
    taken = add(cast, answers[0])
    used(cast, taken)
    gone = make_sitting(instrument)
    withdrawn = gone.answers.order_by("stimulus__position").first()
    assert withdrawn is not None
    sitting_withdraw(sitting_id=gone.pk, reason="receipt", actor=None)
    text = (
        f"{HEADER}\n{answers[1].blind_id},gold,1,1,1,,\n{answers[0].blind_id},gold,0,0,0,,\n"
        f"{withdrawn.blind_id},gold,1,1,1,,\n"
    )
    response = send(english(cast.alice), text)
    page = shown(response)
    assert response.status_code == 400 and "line 3: a campaign has copied" in page and "line 4: the answer is" in page
    assert Reference.objects.get() == taken
    assert AuditEntry.objects.filter(action="reference_add").count() == 1


def test_no_file_is_said(cast: Cast) -> None:
    assert english(cast.alice).post(FILE).status_code == 400


def test_the_wrong_person_is_refused(cast: Cast, answers: list[Answer]) -> None:
    text = f"{HEADER}\n{answers[0].blind_id},gold,1,1,1,,\n"
    for user, status in ((cast.bob, 404), (cast.rita, 404)):
        client = cast.client(user)
        assert [client.get(FILE).status_code, client.get(CSV).status_code, send(client, text).status_code] == [
            status
        ] * 3
    assert send(Client(), text).url.startswith("/login/")
    theirs = reverse("references_file", args=["theirs"])
    file = SimpleUploadedFile("r.csv", text.encode())
    response = english(cast.bob).post(theirs, {"file": file})
    assert response.status_code == 400 and "the study has no such answer" in shown(response)
    make_campaign(cast.study, cast.alice, k=1)
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    client = cast.client(cast.alice)
    assert [client.get(FILE).status_code, client.get(CSV).status_code, send(client, text).status_code] == [403] * 3
    assert not Reference.objects.exists()


def test_a_withdrawn_answer_is_in_no_file(cast: Cast, answers: list[Answer]) -> None:
    add(cast, answers[0], explanation=GOOD[0])
    client = english(cast.alice)
    assert GOOD[0].encode() in downloaded(client)
    sitting_withdraw(sitting_id=answers[0].sitting_id, reason="receipt", actor=None)
    assert str(answers[0].blind_id).encode() not in downloaded(client)

"""Whatever is sent, the answer is JSON with a code and a sentence, and never a 500."""

import base64
from typing import Any

import pytest
from django.test import Client
from rest_framework.throttling import UserRateThrottle

from tests.api.conftest import ROOT, Ready, launch_body


def refused(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, (response.status_code, response.content[:300])
    assert response.headers["Content-Type"] == "application/json"
    body = response.json()
    assert body["code"] and body["detail"]
    return body


def test_a_wrong_parameter_is_named(ready: Ready) -> None:
    for query, name in [
        ("kind=robot", "kind"),
        ("kind=", "kind"),
        ("standing=withdrawn", "standing"),
        ("position=first", "position"),
        ("position=-1", "position"),
        ("position=1.0", "position"),
        ("position=1_0", "position"),
        ("position=%D9%A1", "position"),  # an Arabic digit
        ("position=32768", "position"),
        ("run_id=99999999999999999999999", "run_id"),
        ("run_id=9223372036854775808", "run_id"),
        ("instrument=a%00b", "instrument"),
        ("instrument=" + "a" * 5000, "instrument"),
        ("survey=%F0%9F%98%80", "survey"),
        ("respondent=1", "respondent"),
        ("respondent=urn:uuid:12345678-1234-5678-1234-567812345678", "respondent"),
        ("page_size=0", "page_size"),
        ("page_size=501", "page_size"),
        ("page_size=many", "page_size"),
        ("page_size=" + "9" * 5000, "page_size"),
        ("kinds=human", "kinds"),
        ("format=xml", "format"),
        ("format=json", "format"),
        ("kind=human&kind=model", "kind"),
        ("a%00b=1", "a\x00b"),
        ("cursor=garbage", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=%D1%8F", "cursor"),
        *(
            (f"cursor={base64.b64encode(text).decode()}", "cursor")
            for text in (b"p=abc", b"p=-1", b"p=9223372036854775808", b"p=%00", b"o=x", b"r=x&p=1", b"p=", b"\xff")
        ),
    ]:
        body = refused(ready.client.get(f"{ROOT}answers/?{query}"), 400)
        assert body["code"] == "invalid", query
        assert name in body["fields"], (query, body)
        assert name in body["detail"]


def test_a_cursor_that_names_no_place_is_a_page_like_others(ready: Ready) -> None:
    for text in (b"p=9223372036854775807", b"o=1000", b"r=1", b"p=0&r=1", b""):
        page = ready.get(f"answers/?cursor={base64.b64encode(text).decode()}")
        assert set(page) == {"next", "previous", "results"}


def test_what_takes_no_parameters_says_so(ready: Ready) -> None:
    for path in ("results/?page_size=5", "results/?position=1", "scores/?standing=pilot", "models/?kind=human"):
        refused(ready.client.get(ROOT + path), 400)
    refused(ready.client.get("/api/v1/schema/?format=yaml"), 400)


WRONG_ADDRESSES = [
    "/api/v1/",
    "/api/v2/studies/",
    "/api/v1/nothing/",
    "/api/v1/studies",
    "/api/v1/studies/a%00b/",
    "/api/v1/studies/ours/answers/1/",
    "/api/v1/studies/ours/answers/12345678-1234-5678-1234-567812345678/",
    "/api/v1/studies/ours/calls/99999999999999999999999999/",
    "/api/v1/studies/ours/calls/9223372036854775808/",
    "/api/v1/studies/ours/calls/0/",
    "/api/v1/studies/ours/calls/-1/",
    "/api/v1/studies/ours/surveys/never-was/",
    "/api/v1/studies/ours/calls.json",
    "/api/v1/studies/" + "a" * 3000 + "/",
    "/api/v1/%FF%FE/",
    "/api/v1/studies/a%0Ab/answers/",
    "/api/v1/studies/ours/%0A",
]


def test_wrong_addresses(ready: Ready) -> None:
    for address in WRONG_ADDRESSES:
        assert refused(ready.client.get(address), 404)["code"] == "not_found", address
        refused(Client().get(address), 401)


def test_wrong_methods(ready: Ready) -> None:
    for method in ("put", "patch", "delete", "options", "trace"):
        for path in ("", "answers/", "experiments/", "results/"):
            response = getattr(ready.client, method)(ROOT + path)
            assert refused(response, 405)["code"] == "method_not_allowed"
            assert "GET" in response.headers["Allow"]
    refused(ready.client.post(ROOT + "answers/"), 405)
    refused(ready.client.get(f"{ROOT}experiments/{ready.built.experiment.pk}/cancel/"), 405)


def test_other_forms_than_json(ready: Ready) -> None:
    assert refused(ready.client.get(ROOT + "answers/", headers={"accept": "text/csv"}), 406)["code"] == "not_acceptable"
    assert ready.client.get(ROOT + "answers/", headers={"accept": "text/html, */*"}).status_code == 200
    for media_type in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "nonsense",
        "",
    ):
        refused(ready.client.generic("POST", ROOT + "experiments/", b"a=1", content_type=media_type or " "), 415)


NO_LAUNCHES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"1",
    b"NaN",
    b"\xff\xfe",
    b"[" * 200_000,
    b'{"a":' * 100_000,
    b"1" * 10_000,
    '{"runs": 1}'.encode("utf-16"),
]


def test_bodies_that_are_no_launch(ready: Ready) -> None:
    for body in NO_LAUNCHES:
        refused(ready.client.generic("POST", ROOT + "experiments/", body, content_type="application/json"), 400)


def test_a_body_that_is_too_large(ready: Ready) -> None:
    for size in (2, 6):  # the larger one is more than any form may send
        body = b'"' + b"a" * (size * 1024 * 1024) + b'"'
        response = ready.client.generic("POST", ROOT + "experiments/", body, content_type="application/json")
        assert refused(response, 413)["code"] == "too_large"


def test_an_unknown_character_set_harms_nothing(ready: Ready) -> None:
    address = ROOT + "experiments/"
    refused(ready.client.generic("POST", address, b"{}", content_type="application/json; charset=klingon"), 400)


WRONG_FIELDS = [
    ({"launch_key": 5}, "launch_key"),
    ({"launch_key": "5"}, "launch_key"),
    ({"launch_key": None}, "launch_key"),
    ({"runs": "5"}, "runs"),
    ({"runs": 5.0}, "runs"),
    ({"runs": True}, "runs"),
    ({"runs": 0}, "runs"),
    ({"runs": 101}, "runs"),
    ({"runs": 10**400}, "runs"),
    ({"max_attempts": 51}, "max_attempts"),
    ({"models": []}, "models"),
    ({"models": "Model M"}, "models"),
    ({"models": [["Model M"]]}, "models"),
    ({"models": ["never was"]}, "models"),
    ({"models": ["a\x00"]}, "models"),
    ({"instrument": 1}, "instrument"),
    ({"instrument": "never-was"}, "instrument"),
    ({"instrument_version": 2}, "instrument"),
    ({"prompt": "never-was"}, "prompt"),
    ({"prompt_version": 1}, "prompt_version"),
    ({"experiment": "a\x00b"}, "experiment"),
    ({"experiment": "\ud800"}, "experiment"),
    ({"experiment": "a" * 201}, "experiment"),
    ({"temperature": 1}, "temperature"),
]


def test_a_wrong_field_is_named(ready: Ready) -> None:
    for changes, name in WRONG_FIELDS:
        response = ready.client.post(ROOT + "experiments/", launch_body(**changes), content_type="application/json")
        assert name in refused(response, 400)["fields"], changes
    assert ready.built.cast.study.experiments.count() == 1


def test_sentences_are_in_the_readers_language(ready: Ready) -> None:
    for query in ("kinds=human", "kind=robot", "page_size=0", "cursor=x"):
        english = ready.get(f"answers/?{query}", 400)
        russian = ready.get(f"answers/?{query}", 400, **{"accept-language": "ru"})
        assert english["code"] == russian["code"]
        assert english["detail"] != russian["detail"]
        assert any("а" <= letter <= "я" for letter in russian["detail"])


def test_too_many_requests(ready: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UserRateThrottle, "THROTTLE_RATES", {"user": "2/min"})
    assert ready.get("models/") and ready.get("surveys/")
    response = ready.client.get(ROOT + "models/")
    assert refused(response, 429)["code"] == "throttled"
    assert int(response.headers["Retry-After"]) > 0

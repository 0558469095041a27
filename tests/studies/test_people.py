import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from studies.models import ApiToken, AuditEntry, Invitation, Membership, Role, User
from studies.services import invitation_create, membership_set
from tests.conftest import Cast


def test_a_researcher_invites_and_the_link_works(cast: Cast) -> None:
    page = cast.client(cast.alice).post("/studies/ours/people/invite/", {"role": "rater", "note": "<b>Nina</b>"})
    link = re.search(r"http://\S+/join/[\w-]+/", page.content.decode())
    assert link and "&lt;b&gt;Nina" in page.content.decode()
    address = link[0].removeprefix("http://127.0.0.1:8000")
    assert Client().get(address).status_code == 200
    assert AuditEntry.objects.filter(action="invitation_create", actor=cast.alice).exists()


def test_ending_access(cast: Cast) -> None:
    client = cast.client(cast.alice)
    rita = Membership.objects.get(user=cast.rita)
    client.post(f"/studies/ours/people/{rita.pk}/deactivate/")
    rita.refresh_from_db()
    assert not rita.is_active


def test_the_last_researcher_stays(cast: Cast) -> None:
    alice = Membership.objects.get(user=cast.alice)
    cast.client(cast.alice).post(f"/studies/ours/people/{alice.pk}/deactivate/")
    alice.refresh_from_db()
    assert alice.is_active


@pytest.mark.parametrize(
    ("method", "tail"),
    [("get", ""), ("post", "invite/"), ("post", "invitations/{invitation}/revoke/"), ("post", "{member}/deactivate/")],
)
def test_it_refuses_others(cast: Cast, method: str, tail: str) -> None:
    invitation, _ = invitation_create(study=cast.study, role=Role.RATER, actor=cast.alice)
    member = Membership.objects.get(user=cast.rita)
    address = "/studies/ours/people/" + tail.format(invitation=invitation.pk, member=member.pk)
    for user in (cast.bob, cast.rita):
        assert getattr(cast.client(user), method)(address, {"role": "researcher"}).status_code == 404
    assert getattr(Client(), method)(address)["Location"].startswith("/login/")
    invitation.refresh_from_db()
    member.refresh_from_db()
    assert invitation.revoked_at is None and member.is_active and Invitation.objects.count() == 1


def test_another_studys_member_is_not_reached_through_ones_own(cast: Cast) -> None:
    member = Membership.objects.get(user=cast.rita)
    assert cast.client(cast.bob).post(f"/studies/theirs/people/{member.pk}/deactivate/").status_code == 404
    member.refresh_from_db()
    assert member.is_active


def test_ended_access_ends_at_once(cast: Cast) -> None:
    client = cast.client(cast.alice)
    Membership.objects.filter(user=cast.alice).update(is_active=False)
    assert client.get("/studies/ours/people/").status_code == 404


def test_a_token_is_shown_once_and_replaces_the_earlier(cast: Cast) -> None:
    client = cast.client(cast.alice)
    client.post("/account/token/")
    page = client.post("/account/token/").content.decode()
    live = ApiToken.objects.get(revoked_at__isnull=True)
    assert ApiToken.objects.count() == 2 and live.digest not in page
    assert Client().post("/account/token/")["Location"].startswith("/login/")


def test_the_interface_speaks_both_languages(cast: Cast) -> None:
    client = cast.client(cast.alice)
    assert (
        "Researchers and raters"
        in client.get("/studies/ours/people/", headers={"accept-language": "en"}).content.decode()
    )
    client.post("/i18n/setlang/", {"language": "ru", "next": "/"})
    assert 'lang="ru"' in client.get("/studies/ours/people/").content.decode()


def test_security_headers(cast: Cast) -> None:
    response = Client().get("/login/")
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert response["X-Frame-Options"] == "DENY" and response["X-Content-Type-Options"] == "nosniff"


def test_the_page_costs_the_same_however_many_people(cast: Cast) -> None:
    client = cast.client(cast.alice)
    counts = []
    for more in (1, 20):
        for _ in range(more):
            user = User.objects.create_user(f"user{User.objects.count()}")
            membership_set(user=user, study=cast.study, role=Role.RATER, actor=cast.alice)
            invitation_create(study=cast.study, role=Role.RATER, actor=cast.alice)
        with CaptureQueriesContext(connection) as queries:
            client.get("/studies/ours/people/")
        counts.append(len(queries))
    assert counts[0] == counts[1]

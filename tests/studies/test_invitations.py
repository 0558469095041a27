from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from studies.models import Invitation, Membership, Role, User
from studies.services import invitation_create, invitation_revoke
from tests.conftest import Cast

NEW = {"username": "nina", "password": "correct horse battery"}


@pytest.fixture
def secret(cast: Cast) -> str:
    return invitation_create(study=cast.study, role=Role.RATER, actor=cast.alice)[1]


def test_a_link_makes_an_account_once(cast: Cast, secret: str) -> None:
    client = Client()
    assert client.get(f"/join/{secret}/").status_code == 200
    assert client.get(f"/join/{secret}/").status_code == 200  # a preview uses nothing up
    assert client.post(f"/join/{secret}/", NEW)["Location"] == "/"
    nina = User.objects.get(username="nina")
    assert Membership.objects.get(user=nina).role == Role.RATER
    assert client.session["_auth_user_id"] == str(nina.pk)
    again = Client().post(f"/join/{secret}/", {**NEW, "username": "other"})
    assert again.status_code == 404 and not User.objects.filter(username="other").exists()
    assert Client().login(username="nina", password=NEW["password"])


def test_the_secret_is_not_kept(secret: str) -> None:
    assert not Invitation.objects.filter(digest__contains=secret).exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"username": "rita"}, "taken"),
        ({"username": "RITA"}, "taken"),
        ({"username": "a b"}, "valid username"),
        ({"username": "n\x00n"}, "Null characters"),
        ({"password": "12345678"}, "too common"),
        ({"password": "short"}, "too short"),
    ],
)
def test_a_faulty_form_uses_nothing_up(cast: Cast, secret: str, change: dict, error: str) -> None:
    response = Client().post(f"/join/{secret}/", {**NEW, **change}, headers={"accept-language": "en"})
    assert response.status_code == 200 and error in response.content.decode()
    assert Invitation.objects.get().used_at is None


def test_expired_revoked_and_unknown_links_say_so(cast: Cast, secret: str) -> None:
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    revoked, other_secret = invitation_create(study=cast.study, role=Role.RATER, actor=cast.alice)
    invitation_revoke(invitation=revoked, actor=cast.alice)
    for link in (secret, other_secret, "nonsense"):
        for response in (Client().get(f"/join/{link}/"), Client().post(f"/join/{link}/", NEW)):
            assert response.status_code == 404 and "<h1" in response.content.decode()
    assert not User.objects.filter(username="nina").exists()


def test_somebody_with_an_account_joins_under_it(cast: Cast, secret: str) -> None:
    client = cast.client(cast.bob)
    assert "bob" in client.get(f"/join/{secret}/").content.decode()
    client.post(f"/join/{secret}/")
    assert Membership.objects.get(user=cast.bob, study=cast.study).role == Role.RATER
    assert Invitation.objects.get().used_by == cast.bob


def test_a_link_for_a_known_user_sets_their_password(cast: Cast) -> None:
    _, secret = invitation_create(study=cast.study, role=Role.RESEARCHER, actor=None, user=cast.alice)
    assert cast.client(cast.bob).get(f"/join/{secret}/").status_code == 200
    Client().post(f"/join/{secret}/", {"password": "entirely new words"})
    assert Client().login(username="alice", password="entirely new words")
    assert not Client().login(username="alice", password="correct horse")


def test_a_rater_link_does_not_demote_a_researcher(cast: Cast, secret: str) -> None:
    cast.client(cast.alice).post(f"/join/{secret}/")
    assert Membership.objects.get(user=cast.alice, study=cast.study).role == Role.RESEARCHER

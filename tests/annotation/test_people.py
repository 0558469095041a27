"""Raters come by a link, leave, and come back; what they judged stays, and exports name nobody."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from annotation.errors import PlaceNotYoursError
from annotation.models import Campaign, Place, Rater
from annotation.selectors import raters_expected, raters_progress
from annotation.services import rater_deactivate, rater_reactivate
from scoring.models import Judge, Judgement
from studies.models import Membership, Role, User
from studies.services import membership_deactivate, membership_set
from tests.annotation.factories import NO, form, hand_of, idle, judge, judge_all, live, make_rater, post, take
from tests.conftest import Cast


def leave(cast: Cast, rater: Rater) -> None:
    membership_deactivate(membership=Membership.objects.get(user=rater.user, study=cast.study), actor=cast.alice)


def page_of(cast: Cast, campaign: Campaign) -> str:
    client = Client(headers={"accept-language": "en"})
    client.force_login(cast.alice)
    return client.get(reverse("campaign", args=["ours", campaign.pk])).content.decode()


def test_from_a_link_to_a_judgement(cast: Cast, campaign: Campaign) -> None:
    """Somebody without an account: the link makes one, and the first answer is a click away."""
    page = cast.client(cast.alice).post(reverse("invitation_new", args=["ours"]), {"role": "rater", "note": "Нина"})
    link = re.search(r"/join/[\w-]+/", page.content.decode())
    assert link is not None
    client = Client()
    client.post(link[0], {"username": "newcomer", "password": "correct horse battery"})
    response = client.post(reverse("rate_next", args=[campaign.pk]))
    assert response.status_code == 302
    assert client.post(response["Location"], form()).status_code == 302
    rater = Rater.objects.get(user__username="newcomer")
    assert Judgement.objects.filter(judge=rater.judge).count() == 3
    assert rater.name not in rater.pseudonym
    # The link opens nothing else: whoever has it from now on is told so, and the newcomer is no researcher.
    assert Client().get(link[0]).status_code == 404
    assert client.get(reverse("campaign", args=["ours", campaign.pk])).status_code == 404


def test_who_left_judges_no_more_and_the_others_get_the_rest(
    cast: Cast, campaign: Campaign, raters: list[Rater]
) -> None:
    judged, open_ = judge(campaign, raters[0]), take(campaign, raters[0])
    client = cast.client(raters[0].user)
    leave(cast, raters[0])
    for response in (
        client.get(reverse("rate_place", args=[open_.uuid])),
        client.post(reverse("rate_place", args=[open_.uuid]), form()),
        client.post(reverse("rate_skip", args=[open_.uuid]), {"reason": "x"}),
        client.post(reverse("rate_withdraw", args=[judged.uuid])),
        client.post(reverse("rate_next", args=[campaign.pk])),
        client.get(reverse("rate_mine", args=[campaign.pk])),
    ):
        assert response.status_code == 404
    with pytest.raises(PlaceNotYoursError):
        post(open_, raters[0])
    assert live(campaign) == 3
    idle(open_)
    for rater in [*raters[1:], make_rater(cast.study, "newcomer")]:
        while hand_of(campaign, rater).cards:
            judge(campaign, rater)
    assert Place.objects.filter(campaign=campaign, state=Place.State.DONE).count() == campaign.n_places == 18
    assert not Place.objects.filter(rater=raters[0], state=Place.State.HELD).exists()


def test_who_left_stands_on_the_campaigns_page_with_their_work(
    cast: Cast, campaign: Campaign, raters: list[Rater]
) -> None:
    judge_all(campaign, raters)
    leave(cast, raters[0])
    rater_deactivate(rater=raters[1], actor=cast.alice)
    found = {row.rater.pk: row for row in raters_progress(campaign) if row.rater}
    assert [found[rater.pk].standing for rater in raters] == ["access_ended", "work_ended", "working"]
    assert [found[rater.pk].done for rater in raters] == [6, 6, 6]
    text = page_of(cast, campaign)
    for rater, standing in zip(raters, ("access ended", "work ended"), strict=False):
        assert f'<td>{rater.name}</td><td>{rater.pseudonym} · {standing}</td><td class="n">6</td>' in text


def test_who_is_known_from_a_file_only_has_nothing_to_end(cast: Cast, campaign: Campaign) -> None:
    rater = Rater.objects.create(
        judge=Judge.objects.create(kind="rater"), study=cast.study, pseudonym="R77", imported_name="old file"
    )
    text = page_of(cast, campaign)
    assert "<td>old file</td><td>R77 · from an imported file</td>" in text
    assert reverse("rater_state", args=["ours", rater.pk]) not in text


def test_who_comes_back_goes_on_as_the_same_rater(cast: Cast, campaign: Campaign, raters: list[Rater]) -> None:
    place = judge(campaign, raters[0])
    expected = raters_expected(cast.study)
    leave(cast, raters[0])
    assert raters_expected(cast.study) == expected - 1
    membership_set(user=raters[0].user, study=cast.study, role=Role.RATER, actor=cast.alice)
    post(place, raters[0], NO, version=1)
    assert judge(campaign, raters[0]).rater == raters[0]
    rater_deactivate(rater=raters[0], actor=cast.alice)
    leave(cast, raters[0])
    # A new link alone does not undo that a researcher ended the work.
    membership_set(user=raters[0].user, study=cast.study, role=Role.RATER, actor=cast.alice)
    client = cast.client(raters[0].user)
    assert client.post(reverse("rate_next", args=[campaign.pk])).status_code == 403
    rater_reactivate(rater=raters[0], actor=cast.alice)
    assert client.post(reverse("rate_next", args=[campaign.pk])).status_code == 302
    assert Rater.objects.filter(user=raters[0].user).count() == 1


@pytest.mark.parametrize("name", ["judgements", "annotations", "labels"])
def test_exports_know_raters_by_pseudonym_also_those_who_left(
    cast: Cast, campaign: Campaign, raters: list[Rater], name: str
) -> None:
    for rater, username in zip(raters, ("елена.иванова", "misha@example.org", "нина-петрова"), strict=True):
        User.objects.filter(pk=rater.user_id).update(username=username)
    judge_all(campaign, raters)

    def file() -> str:
        response = cast.client(cast.alice).get(reverse("export_file", args=["ours", name]))
        return b"".join(response.streaming_content).decode()

    before = file()
    leave(cast, raters[0])
    rater_deactivate(rater=raters[1], actor=cast.alice)
    assert file() == before
    for username in ("елена.иванова", "misha@example.org", "нина-петрова"):
        assert username not in before
    if name != "labels":
        lines = [re.split(",", line) for line in before.splitlines()]
        assert {rater.pseudonym for rater in raters} <= {cell for line in lines for cell in line}

"""The pages: who may see and make what, what they say before, and what a withdrawal does to a release."""

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from reports.models import Release
from reports.releases import layout, services
from reports.releases.files import files_sweep, release_path, releases_folder
from reports.releases.policy import Policy
from reports.releases.services import ReleaseOvertakenError, release_begin, release_build
from reports.tasks import release_make
from reports.withdrawal import Way, participant_withdraw
from studies.models import Study
from studies.services import blinding_impose
from surveys.rights import receipt_issue
from tests.conftest import Cast
from tests.reports.releases.conftest import Released, archive_of, files_of

FORM = {"questionnaire": "none", "licence": "CC-BY-4.0", "authors": "A. B.; C. D.", "note": "первый"}


def address(name: str, *args: object) -> str:
    return reverse(name, args=["ours", *args])


@pytest.mark.django_db
def test_a_researcher_sees_what_would_go_out_makes_it_and_downloads_it(released: Released) -> None:
    alice = released.cast.client(released.cast.alice)
    page = alice.get(address("release_new")).content.decode()
    assert "did not agree to publication: 1" in page and not Release.objects.exists()
    response = alice.post(address("release_new"), FORM)
    release = Release.objects.get()
    assert response["Location"] == address("release", 1)
    page = alice.get(response["Location"]).content.decode()
    assert release.sha256 in page and "CC-BY-4.0" in page
    response = alice.get(address("release_file", 1))
    data = b"".join(response.streaming_content)
    assert data == archive_of(release) and "ours-release-1.zip" in response["Content-Disposition"]
    assert '"A. B."' in files_of(data)[layout.DESCRIPTION].decode()
    assert "1" in alice.get(address("release_list")).content.decode()


@pytest.mark.django_db
def test_nobody_else_does(released: Released) -> None:
    """A rater, somebody else's researcher, and a researcher who rates in an open campaign."""
    cast = released.cast
    released.release()
    blinding_impose(user=cast.alice, study=cast.study, cause="campaign 99")
    pages = [
        address("release_list"),
        address("release_new"),
        address("release", 1),
        address("release_file", 1),
    ]
    for user, code in ((cast.rita, 404), (cast.bob, 404), (cast.alice, 403)):
        client = cast.client(user)
        assert [client.get(page).status_code for page in pages] == [code] * len(pages)
        assert client.post(address("release_new"), FORM).status_code == code
        assert client.post(address("release_restart", 1)).status_code == code
    assert Release.objects.count() == 1
    assert cast.client(cast.rita).post(reverse("release_import"), {}).status_code == 403


@pytest.mark.django_db
def test_a_large_one_is_made_by_a_worker(released: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(services, "AT_ONCE", 1)
    monkeypatch.setattr("reports.release_views.release_enqueue", sent.append)
    alice = released.cast.client(released.cast.alice)
    alice.post(address("release_new"), FORM)
    release = Release.objects.get()
    assert (release.state, sent) == ("waiting", [release.pk])
    assert "is being made" in alice.get(address("release", 1)).content.decode()
    assert "Another release" in alice.post(address("release_new"), FORM).content.decode()
    assert alice.post(address("release_restart", 1)).status_code == 302 and len(sent) == 2
    release_make(release.pk)
    release_make(release.pk)
    release.refresh_from_db()
    assert (release.state, release.attempt) == ("ready", 1)
    assert [path.name for path in releases_folder().iterdir()] == [release_path(release).name]


@pytest.mark.django_db
def test_a_dead_worker_leaves_one_that_can_be_made(released: Released) -> None:
    release = release_begin(study=released.study, policy=Policy(), actor=None)
    Release.objects.filter(pk=release.pk).update(state="building", attempt=1)  # and then kill -9
    assert release_build(release_id=release.pk)
    release.refresh_from_db()
    assert (release.state, release.attempt) == ("ready", 2)


@pytest.mark.django_db
def test_what_a_crash_leaves_is_swept(released: Released) -> None:
    release, waiting = released.release(), release_begin(study=released.study, policy=Policy(), actor=None)
    kept = [release_path(release), releases_folder() / f"{waiting.pk}-coming-x"]
    left = [releases_folder() / name for name in (f"{release.pk}-coming-x", f"{release.pk}-old.zip", "99-x.zip", "x")]
    for path in (kept[1], *left):
        path.write_bytes(b"somebody's answers")
    assert files_sweep() == len(left)
    assert sorted(releases_folder().iterdir()) == sorted(kept)


@pytest.mark.django_db
def test_a_full_disk_leaves_nothing_half(released: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(services, "file_keep", full)
    release = release_begin(study=released.study, policy=Policy(), actor=None)
    with pytest.raises(OSError, match="No space"):
        release_build(release_id=release.pk)
    release.refresh_from_db()
    assert (release.state, release.problem) == ("failed", "OSError") and not list(releases_folder().iterdir())
    monkeypatch.undo()
    assert released.release().number == 2


@pytest.mark.django_db
def test_who_takes_back_meanwhile_is_in_no_release(released: Released, monkeypatch: pytest.MonkeyPatch) -> None:
    write = services.release_write

    def slow(release: Release, target: object) -> object:
        built = write(release, target)
        participant_withdraw(participant_id=released.people["ann"].pk, way=Way.RECEIPT)
        return built

    monkeypatch.setattr(services, "release_write", slow)
    with pytest.raises(ReleaseOvertakenError):
        released.release()
    release = Release.objects.get()
    assert (release.state, release.problem) == ("failed", "overtaken") and not list(releases_folder().iterdir())
    assert (
        "took their answers back"
        in released.cast.client(released.cast.alice).get(address("release", 1)).content.decode()
    )


@pytest.mark.django_db(transaction=True)
def test_a_withdrawal_recalls_the_release_and_the_next_one_is_without_them(released: Released) -> None:
    release = released.release(note="среди прочего «мышь бежит от кошки», смотрите")
    path = release_path(release)
    assert path.exists()
    said = "The published dataset that holds these answers"
    asked = {
        name: Client().post(reverse("withdraw"), {"code": receipt_issue(participant=released.people[name])})
        for name in ("ann", "no consent")
    }
    assert said in asked["ann"].content.decode() and said not in asked["no consent"].content.decode()
    assert participant_withdraw(participant_id=released.people["ann"].pk, way=Way.RECEIPT)
    release.refresh_from_db()
    assert release.state == "recalled" and release.recalled_at and not path.exists()
    assert "кошки" not in release.note and release.sha256
    alice = released.cast.client(released.cast.alice)
    assert alice.get(address("release_file", 1)).status_code == 404
    assert "without them" in alice.get(address("release", 1)).content.decode()
    following = released.release()
    assert following.replaces == release and following.counts["people"] == 1
    assert following.counts["left_out"]["withdrawn"] == 1
    text = b"".join(files_of(archive_of(following)).values()).decode()
    assert "мышь бежит от кошки" not in text.replace("мышь бежит от кошки.", "")  # the original of the stimulus
    assert "version 2" in alice.get(address("release", 1)).content.decode()


@pytest.mark.django_db
def test_somebody_who_is_in_none_recalls_none(released: Released) -> None:
    release = released.release()
    assert participant_withdraw(participant_id=released.people["no consent"].pk, way=Way.RECEIPT)
    release.refresh_from_db()
    assert release.state == "ready"


@pytest.mark.django_db
def test_a_study_is_made_of_a_release_on_a_page(released: Released) -> None:
    data = archive_of(released.release())
    cast = released.cast
    bob = cast.client(cast.bob)

    def send(**more: object) -> object:
        return bob.post(reverse("release_import"), {"file": SimpleUploadedFile("r.zip", data), **more})

    assert "address is here already" in send().content.decode()
    assert "This would come" in send(slug="copy", dry_run="on").content.decode()
    assert not Study.objects.filter(slug="copy").exists()
    response = send(slug="copy")
    assert response["Location"] == reverse("study_dashboard", args=["copy"])
    assert bob.get(reverse("results", args=["copy"])).status_code == 200
    page = send(slug="again").content.decode()
    assert "in this installation already" in page and "copy" in page
    alice = cast.client(cast.alice)
    page = alice.post(reverse("release_import"), {"file": SimpleUploadedFile("r.zip", data), "slug": "mine"})
    assert "in this installation already" in page.content.decode() and "/copy/" not in page.content.decode()
    page = alice.post(reverse("release_import"), {"file": SimpleUploadedFile("r.zip", b"PK"), "slug": "mine"})
    assert "no ZIP archive" in page.content.decode()
    assert not Study.objects.filter(slug="mine").exists()


@pytest.mark.django_db
def test_a_visitor_makes_nothing(cast: Cast, client) -> None:
    response = client.post(reverse("release_import"), {"file": io.BytesIO(b"x")})
    assert response.status_code == 302 and response["Location"].startswith(reverse("login"))

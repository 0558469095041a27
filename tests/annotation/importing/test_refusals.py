"""Every page of an import, and everybody who may not read it or post to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from annotation.import_drafts import draft_folder
from annotation.models import Campaign, JudgementDraft, JudgementImport, Rater
from annotation.services import campaign_close, rater_ensure
from corpus.models import Answer
from scoring.models import Judgement
from studies.models import AuditEntry, Membership, Role, User
from studies.services import membership_set
from surveys.services import survey_create, survey_set_state
from tests.annotation.factories import make_campaign, make_rater, take
from tests.annotation.importing.conftest import table
from tests.annotation.importing.test_pages import BASE, choose, confirm, send
from tests.architecture.test_write_routes import PAGES
from tests.conftest import Cast
from tests.surveys.conftest import Visitor

# Route, and the methods that its page takes.
ROUTES = {
    "judgement_imports": ("get",),
    "judgement_upload": ("get", "post"),
    "judgement_import": ("get",),
    "judgement_draft": ("get", "post"),
    "judgement_confirm": ("post",),
    "judgement_discard": ("post",),
}
METHODS = ("get", "post")


@pytest.fixture(autouse=True)
def files_of_its_own(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def addresses(cast: Cast, answers: list[Answer]) -> dict[str, str]:
    """One import that is done and one draft that waits, both alice's."""
    alice = cast.client(cast.alice)
    done = send(alice, ("done.csv", _rows(answers[0])))
    confirm(alice, done, choose(alice, done, title="Elsewhere"))
    waiting = send(alice, ("waiting.csv", _rows(answers[1])))
    choose(alice, waiting, title="Waits")
    return {
        "judgement_imports": BASE,
        "judgement_upload": BASE + "new/",
        "judgement_import": f"{BASE}{JudgementImport.objects.get().pk}/",
        "judgement_draft": waiting,
        "judgement_confirm": waiting + "confirm/",
        "judgement_discard": waiting + "discard/",
    }


def _rows(answer: Answer) -> bytes:
    header = ("answer", "annotator", "grammatical", "logical", "order")
    return table((answer.blind_id, "lena", "да", "нет", "да"), header=header)


def everything() -> list[object]:
    """What a request could have changed."""
    tables = (Campaign, Rater, Judgement, JudgementImport, AuditEntry)
    drafts = list(JudgementDraft.objects.values("key", "format", "settings"))
    folders = [sorted(path.name for path in draft_folder(one["key"]).iterdir()) for one in drafts]
    return [[one.objects.count() for one in tables], drafts, folders]


# --- who --------------------------------------------------------------------------------------------------------------


def nobody(cast: Cast) -> Client:
    return Client()


def participant(cast: Cast) -> Client:
    """Has agreed to take part in a survey of this very study."""
    instrument = cast.study.instruments.get()
    survey = survey_create(
        instrument=instrument, title="S", contact="c@example.org", consent_text="Yes.", actor=cast.alice
    )
    survey_set_state(survey=survey, state="open", actor=cast.alice)
    survey.refresh_from_db()
    return Visitor(survey).start().client


def stranger(cast: Cast) -> Client:
    return cast.client(User.objects.create_user("stranger"))


def researcher_of_another_study(cast: Cast) -> Client:
    return cast.client(cast.bob)


def rater(cast: Cast) -> Client:
    return cast.client(cast.rita)


def rater_at_work(cast: Cast) -> Client:
    """Holds an answer of an open campaign of the study."""
    lena = make_rater(cast.study, "lena")
    take(make_campaign(cast.study, cast.alice, k=1), lena)
    assert lena.user
    return cast.client(lena.user)


def former_researcher(cast: Cast) -> Client:
    vera = User.objects.create_user("vera")
    membership_set(user=vera, study=cast.study, role=Role.RESEARCHER, actor=cast.alice)
    Membership.objects.filter(user=vera).update(is_active=False)
    return cast.client(vera)


def researcher_who_rates(cast: Cast) -> Client:
    """Alice herself: she has sent the files, and now judges in an open campaign."""
    rater_ensure(user=cast.alice, study=cast.study, actor=cast.alice)
    make_campaign(cast.study, cast.alice, k=1)
    return cast.client(cast.alice)


WITHOUT_ACCOUNT = (nobody, participant)
NOT_HERE = (stranger, researcher_of_another_study, rater, rater_at_work, former_researcher)


def test_every_route_of_an_import_is_here() -> None:
    assert {one.name for _route, one in PAGES if one.name.startswith("judgement_")} == set(ROUTES)


@pytest.mark.parametrize("who", WITHOUT_ACCOUNT, ids=lambda who: who.__name__)
def test_without_an_account_one_is_sent_to_log_in(
    cast: Cast, addresses: dict[str, str], who: Callable[[Cast], Client]
) -> None:
    client = who(cast)
    before = everything()
    for address in addresses.values():
        for method in METHODS:
            response = getattr(client, method)(address)
            assert response.status_code == 302 and response["Location"].startswith("/login/"), (method, address)
    assert everything() == before


@pytest.mark.parametrize("who", NOT_HERE, ids=lambda who: who.__name__)
def test_to_others_it_does_not_exist(cast: Cast, addresses: dict[str, str], who: Callable[[Cast], Client]) -> None:
    refused_everywhere(who(cast), addresses, 404)


def test_who_judges_in_an_open_campaign_is_refused_until_it_closes(cast: Cast, addresses: dict[str, str]) -> None:
    client = researcher_who_rates(cast)
    refused_everywhere(client, addresses, 403)
    campaign_close(campaign=Campaign.objects.get(state="open"), actor=cast.alice)
    assert client.get(addresses["judgement_draft"]).status_code == 200


def refused_everywhere(client: Client, addresses: dict[str, str], status: int) -> None:
    """With what a page would post, so that nothing but the person is wrong with it."""
    before = everything()
    for name, address in addresses.items():
        for method in METHODS:
            response = getattr(client, method)(address, {"title": "Mine", "rubric": "paper", "shown": "0" * 64})
            assert response.status_code == (status if method in ROUTES[name] else 405), (method, name)
    assert everything() == before


def test_another_studys_address_opens_nothing_of_this_one(cast: Cast, addresses: dict[str, str]) -> None:
    """Bob is at home there, and the ids are of an import and a draft that are not."""
    client = cast.client(cast.bob)
    before = everything()
    for name in ("judgement_import", "judgement_draft", "judgement_confirm", "judgement_discard"):
        theirs = addresses[name].replace("/ours/", "/theirs/")
        for method in ROUTES[name]:
            assert getattr(client, method)(theirs).status_code == 404, (method, name)
    assert everything() == before


def test_a_colleague_reads_imports_and_no_drafts_of_others(cast: Cast, addresses: dict[str, str]) -> None:
    membership_set(user=cast.bob, study=cast.study, role=Role.RESEARCHER, actor=cast.alice)
    client = cast.client(cast.bob)
    before = everything()
    for name in ("judgement_draft", "judgement_confirm", "judgement_discard"):
        for method in ROUTES[name]:
            assert getattr(client, method)(addresses[name]).status_code == 404, (method, name)
    for name in ("judgement_imports", "judgement_upload", "judgement_import"):
        assert client.get(addresses[name]).status_code == 200, name
    assert "waiting.csv" not in client.get(BASE).content.decode()
    assert everything() == before


def test_whose_it_is_may_all_of_it(cast: Cast, addresses: dict[str, str]) -> None:
    """The same addresses: what was refused above is refused for the person's sake alone."""
    client = cast.client(cast.alice)
    for name in ("judgement_imports", "judgement_upload", "judgement_import", "judgement_draft"):
        assert client.get(addresses[name]).status_code == 200, name
    done = confirm(client, addresses["judgement_draft"], client.get(addresses["judgement_draft"]).content.decode())
    assert done.status_code == 302 and JudgementImport.objects.count() == 2

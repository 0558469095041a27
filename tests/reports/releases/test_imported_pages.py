"""The pages of a study that was made of a release: each of them opens, and no link on them leads nowhere."""

import io
import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from llmruns.models import Experiment
from reports.releases.importing import release_import
from studies.models import Study
from studies.services import api_token_create
from tests.conftest import Cast
from tests.reports.releases.conftest import Released, archive_of

LINK = re.compile(r'(?:href|hx-get)="([^"#]*)')


@pytest.fixture
def copy(cast: Cast, released: Released) -> Study:
    data = archive_of(released.release(questionnaire="all"))
    study = release_import(stream=io.BytesIO(data), name="r.zip", slug="copy", actor=cast.alice).study
    assert study is not None
    return study


def pages_reached(client: Client, start: str, inside: str) -> dict[str, int]:
    """The status of each page that links lead to from `start` on, without the pages outside."""
    codes: dict[str, int] = {}
    waiting = [start]
    while waiting:
        page = waiting.pop()
        if page in codes:
            continue
        response = client.get(page)
        codes[page] = response.status_code
        if response.status_code != 200 or not response["Content-Type"].startswith("text/html"):
            continue
        for link in map(unescape, LINK.findall(response.content.decode())):
            to = page.partition("?")[0] + link if link.startswith("?") else link
            if to.startswith(inside) and "sort=" not in to:
                waiting.append(to)
    return codes


@pytest.mark.django_db
def test_each_page_opens_and_each_link_leads_somewhere(cast: Cast, copy: Study) -> None:
    start = reverse("study_dashboard", args=[copy.slug])
    client = cast.client(cast.alice)
    client.raise_request_exception = False
    codes = pages_reached(client, start, start)
    experiment = Experiment.objects.get(study=copy)
    runs = experiment.runs.all()
    wanted = [
        reverse("experiment_detail", args=[copy.slug, experiment.pk]),
        *(reverse("run_detail", args=[copy.slug, experiment.pk, run.pk]) for run in runs),
        reverse("call_list", args=[copy.slug, experiment.pk]),
        reverse("campaign", args=[copy.slug, copy.campaigns.get().pk]),
        reverse("judging_list", args=[copy.slug]),
        reverse("judge_comparison", args=[copy.slug]),
        reverse("reply_imports", args=[copy.slug]),
    ]
    assert [page for page in wanted if page not in codes] == []
    assert {page: code for page, code in codes.items() if code >= 400} == {}


@pytest.mark.django_db
def test_the_pages_say_that_it_came_with_a_release(cast: Cast, copy: Study) -> None:
    client = cast.client(cast.alice)

    def page(name: str, *args: object) -> str:
        return client.get(reverse(name, args=[copy.slug, *args])).content.decode()

    experiment = Experiment.objects.get(study=copy)
    shown = page("experiment_detail", experiment.pk)
    assert "These runs came with a release" in shown and "Model M" in shown
    assert all(reverse("run_detail", args=[copy.slug, experiment.pk, run.pk]) in shown for run in experiment.runs.all())
    assert reverse("reply_set_aside", args=[copy.slug, 1]).rpartition("/imports/")[0] + "/imports/" not in shown
    assert "A release brings the answers of runs" in page("call_list", experiment.pk)
    judges = page("judging_list")
    assert "Judgements of 1 model judge came with a release" in judges and "No model has judged yet" not in judges
    campaign = copy.campaigns.get()
    shown = page("campaign", campaign.pk)
    assert "came with a release" in shown and "rules version 1: its text is not in the release" in shown
    assert "from a release" in shown and "made in another tool" not in shown and "from an imported file" not in shown
    assert "from a release" in page("campaign_quality", campaign.pk)


@pytest.mark.django_db
def test_files_and_the_api_of_its_runs(cast: Cast, copy: Study) -> None:
    """What pages link to only where there are calls, and what programs ask for."""
    assert cast.client(cast.alice).get(reverse("call_file", args=[copy.slug])).status_code == 200
    client = Client(headers={"authorization": f"Token {api_token_create(user=cast.alice)}"})
    for address in (
        f"/api/v1/studies/{copy.slug}/experiments/",
        f"/api/v1/studies/{copy.slug}/runs/",
        f"/api/v1/studies/{copy.slug}/calls/",
        f"/api/v1/studies/{copy.slug}/labels/",
    ):
        assert client.get(address).status_code == 200, address

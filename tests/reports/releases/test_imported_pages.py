"""The pages of a study that was made of a release: each of them opens, and no link on them leads nowhere."""

import io
import re
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse

from llmruns.models import Experiment, Run
from reports.releases.importing import release_import
from studies.models import Study
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
    wanted = [
        reverse("experiment_detail", args=[copy.slug, experiment.pk]),
        *(reverse("run_detail", args=[copy.slug, experiment.pk, run.pk]) for run in Run.objects.filter(experiment=experiment)),
        reverse("call_list", args=[copy.slug, experiment.pk]),
        reverse("campaign", args=[copy.slug, copy.campaigns.get().pk]),
        reverse("judging_list", args=[copy.slug]),
        reverse("judge_comparison", args=[copy.slug]),
        reverse("reply_imports", args=[copy.slug]),
    ]
    print(len(codes))
    assert [page for page in wanted if page not in codes] == []
    assert {page: code for page, code in codes.items() if code >= 400} == {}

"""The addresses of the API. Each layer has its own endpoints; this is the only place that knows all of them."""

from functools import lru_cache
from typing import Any

from django.http import Http404
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.utils.translation import override
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView

from annotation.api import CampaignsViewSet
from corpus.api import InstrumentsViewSet
from llmruns.api import CallsViewSet, ExperimentsViewSet, ModelsViewSet, PromptsViewSet, RunsViewSet
from reports.api import (
    AnswersViewSet,
    JudgementsViewSet,
    LabelsViewSet,
    ResultsViewSet,
    ScoresViewSet,
    SittingsViewSet,
)
from reports.judge_api import JudgesViewSet
from reports.judging_api import JudgingsViewSet
from scoring.api import RoundsViewSet
from studies.api import Filters, StudiesViewSet, query_read
from surveys.api import SurveysViewSet


@lru_cache(maxsize=1)
def openapi_document() -> dict[str, Any]:
    """The same as docs/openapi.yaml, in English whoever asks first."""
    with override("en"):
        generator = SchemaGenerator()  # type: ignore[no-untyped-call]
        return generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]


class SchemaView(APIView):
    """The OpenAPI document as JSON."""

    http_method_names = ["get", "head"]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        query_read(request, Filters)
        return Response(openapi_document())


class NothingHereView(APIView):
    """What no route matches is refused in the API's own form, and says no more to strangers than a real address."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        raise Http404

    post = put = patch = delete = get


router = SimpleRouter(use_regex_path=False)
router.register("studies", StudiesViewSet, basename="api-study")
for name, viewset in (
    ("instruments", InstrumentsViewSet),
    ("surveys", SurveysViewSet),
    ("sittings", SittingsViewSet),
    ("answers", AnswersViewSet),
    ("rounds", RoundsViewSet),
    ("campaigns", CampaignsViewSet),
    ("judgements", JudgementsViewSet),
    ("labels", LabelsViewSet),
    ("scores", ScoresViewSet),
    ("models", ModelsViewSet),
    ("prompts", PromptsViewSet),
    ("experiments", ExperimentsViewSet),
    ("runs", RunsViewSet),
    ("calls", CallsViewSet),
    ("judgings", JudgingsViewSet),
):
    router.register(f"studies/<slug:study>/{name}", viewset, basename=f"api-{name}")

endpoints: list[URLPattern | URLResolver] = [
    *router.urls,
    path("studies/<slug:study>/results/", ResultsViewSet.as_view({"get": "results"}), name="api-results"),
    path("studies/<slug:study>/judges/", JudgesViewSet.as_view({"get": "judges"}), name="api-judges"),
    path("schema/", SchemaView.as_view(), name="api-schema"),
]
urlpatterns = [
    path("api/v1/", include(endpoints)),
    # Not `<path:…>`, which would leave addresses with a line break to the pages' own 404.
    re_path(r"^api/", NothingHereView.as_view(), name="api-nothing"),
]

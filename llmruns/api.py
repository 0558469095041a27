import uuid
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from corpus.api import PositionFilter
from corpus.models import Instrument
from corpus.services import InstrumentIncompleteError
from llmruns.addresses import AddressRefusedError
from llmruns.forms import ADDRESS_ERRORS
from llmruns.keys import KeyMissingError, without_secrets
from llmruns.models import Call, Currency, Experiment, ModelConfig, Prompt, Run
from llmruns.money_forms import CAP_PROBLEMS
from llmruns.parameters import parameter_columns
from llmruns.pricing import call_cost
from llmruns.selectors import experiment_progress, experiments_of
from llmruns.services import (
    MAX_ATTEMPTS,
    MAX_RUNS,
    ExperimentRefusedError,
    experiment_cancel,
    experiment_launch,
    prompt_ensure,
)
from llmruns.wording import kind_words
from studies.api import (
    READING,
    Filters,
    StrictSerializer,
    StudyReadViewSet,
    StudyRowSerializer,
    TextField,
    UuidField,
    WholeNumberField,
)
from studies.api_defaults import LARGEST_ID, ApiError
from studies.models import User

# --- models and prompts ------------------------------------------------------------------------------------------


class ModelSerializer(StudyRowSerializer):
    id = serializers.IntegerField()
    model = serializers.CharField(source="label", help_text="the name in tables and figures")
    respondent = serializers.UUIDField(source="respondent.public_id")
    provider = serializers.ChoiceField(ModelConfig.Provider.choices)
    base_url = serializers.CharField()
    model_requested = serializers.CharField(source="model", help_text="as the provider writes it")
    key_variable = serializers.CharField(help_text="name of the environment variable with the key; never the key")
    credential = serializers.CharField(
        source="credential.name", default="", help_text="name of the stored key; never the key"
    )
    temperature = serializers.FloatField(allow_null=True, help_text="null: the provider's default")
    top_p = serializers.FloatField(allow_null=True, help_text="null: the provider's default")
    max_output_tokens = serializers.IntegerField(allow_null=True, help_text="null: the provider's default")
    extra_body = serializers.DictField(help_text="sent as it is with every request")
    accepts = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="the parameters that the model takes; the others are not sent; null: not known, all are sent",
    )
    folder = serializers.CharField(help_text="Yandex: the folder that is billed; GigaChat: the scope")
    timeout = serializers.IntegerField(help_text="seconds")
    created_at = serializers.DateTimeField()


class ModelsViewSet(StudyReadViewSet):
    """The study's model configurations. They are never edited, so results belong to exactly these parameters."""

    queryset = ModelConfig.objects.all()
    serializer_class = ModelSerializer
    open_to_blinded = READING

    def rows(self) -> QuerySet[ModelConfig]:
        """One query."""
        return ModelConfig.objects.filter(study=self.study).select_related("respondent", "credential")


class PromptSerializer(StudyRowSerializer):
    id = serializers.IntegerField()
    prompt = serializers.SlugField(source="slug")
    prompt_version = serializers.IntegerField(source="version")
    text = serializers.CharField(help_text="{words} is replaced by the stimulus")
    created_at = serializers.DateTimeField()


class PromptsViewSet(StudyReadViewSet):
    """The study's prompts."""

    queryset = Prompt.objects.all()
    serializer_class = PromptSerializer
    open_to_blinded = READING

    def rows(self) -> QuerySet[Prompt]:
        """One query."""
        return Prompt.objects.filter(study=self.study)


# --- experiments -------------------------------------------------------------------------------------------------


class ExperimentFilters(Filters):
    state = serializers.ChoiceField(Experiment.State.choices, required=False)


class ExperimentSerializer(StudyRowSerializer):
    id = serializers.IntegerField(help_text="`experiment_id` elsewhere")
    experiment = serializers.CharField(source="title")
    state = serializers.ChoiceField(Experiment.State.choices)
    imported = serializers.BooleanField(help_text="its replies were recorded elsewhere; nothing is sent for it")
    instrument = serializers.SlugField(source="instrument.slug")
    instrument_version = serializers.IntegerField(source="instrument.version")
    prompt = serializers.SlugField(source="prompt.slug")
    prompt_version = serializers.IntegerField(source="prompt.version")
    runs = serializers.IntegerField(source="runs_planned", help_text="planned for each model")
    max_attempts = serializers.IntegerField()
    problem = serializers.CharField(help_text="why it is paused; may be empty")
    cap = serializers.DecimalField(max_digits=16, decimal_places=8, allow_null=True)
    currency = serializers.CharField(help_text="of the cap; may be empty")
    spent = serializers.DecimalField(
        max_digits=16, decimal_places=8, help_text="of the cap, with what may have been billed; 0 without a cap"
    )
    launch_key = serializers.UUIDField(allow_null=True)
    n_runs = serializers.IntegerField(source="runs_count")
    n_finished = serializers.IntegerField(source="runs_finished")
    n_stuck = serializers.IntegerField(source="runs_stuck", help_text="paused or incomplete: they can be resumed")
    launched_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class LaunchSerializer(StrictSerializer):
    launch_key = UuidField(help_text="made by you, once for each launch; the same key launches once")
    instrument = TextField(max_length=60)
    instrument_version = WholeNumberField(
        required=False, min_value=1, max_value=2_147_483_647, help_text="or the newest"
    )
    models = serializers.ListField(
        child=TextField(max_length=100), min_length=1, max_length=100, help_text="by `model`"
    )
    prompt = TextField(required=False, max_length=60, help_text="or the paper's")
    prompt_version = WholeNumberField(required=False, min_value=1, max_value=2_147_483_647, help_text="or the newest")
    experiment = TextField(required=False, max_length=200, help_text="its title; the instrument's if left out")
    runs = WholeNumberField(required=False, default=5, min_value=1, max_value=MAX_RUNS)
    max_attempts = WholeNumberField(required=False, default=10, min_value=1, max_value=MAX_ATTEMPTS)
    cap = serializers.DecimalField(
        max_digits=16, decimal_places=8, min_value=Decimal("0.00000001"), required=False, help_text="or none"
    )
    currency = serializers.ChoiceField(Currency.choices, required=False, help_text="of the cap")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The rows that the names mean in this study. Three queries."""
        wrong: dict[str, list[str]] = {}
        study = self.context["study"]
        instruments = Instrument.objects.filter(study=study, slug=attrs["instrument"])
        if "instrument_version" in attrs:
            instruments = instruments.filter(version=attrs["instrument_version"])
        instrument = instruments.order_by("-version").first()
        if instrument is None:
            wrong["instrument"] = [_("The study has no such instrument.")]
        configs = list(ModelConfig.objects.filter(study=study, label__in=attrs["models"]).select_related("respondent"))
        missing = sorted(set(attrs["models"]) - {config.label for config in configs})
        if missing:
            wrong["models"] = [_("The study has no model “%(model)s”.") % {"model": name} for name in missing]
        prompt = self._prompt(attrs, wrong)
        if ("cap" in attrs) != ("currency" in attrs):
            wrong["cap"] = [_("A cap is an amount and a currency.")]
        if wrong:
            raise serializers.ValidationError(wrong)
        return {
            "launch_key": attrs["launch_key"],
            "instrument": instrument,
            "configs": configs,
            "prompt": prompt,
            "title": attrs.get("experiment", ""),
            "runs": attrs["runs"],
            "max_attempts": attrs["max_attempts"],
            "cap": attrs.get("cap"),
            "currency": attrs.get("currency", ""),
        }

    def _prompt(self, attrs: dict[str, Any], wrong: dict[str, list[str]]) -> Prompt | None:
        if "prompt" not in attrs:
            if "prompt_version" in attrs:
                wrong["prompt_version"] = [_("Say which prompt.")]
            return None
        prompts = Prompt.objects.filter(study=self.context["study"], slug=attrs["prompt"])
        if "prompt_version" in attrs:
            prompts = prompts.filter(version=attrs["prompt_version"])
        prompt = prompts.order_by("-version").first()
        if prompt is None:
            wrong["prompt"] = [_("The study has no such prompt.")]
        return prompt


class RunProgressSerializer(serializers.Serializer):
    run_id = serializers.IntegerField(source="run.pk")
    model = serializers.CharField(source="run.config.label")
    run = serializers.IntegerField(source="run.ordinal", help_text="number of the run")
    state = serializers.ChoiceField(Run.State.choices, source="run.state")
    problem = serializers.CharField(source="run.problem", help_text="why it is paused or incomplete; may be empty")
    n_stimuli = serializers.IntegerField(source="stimuli")
    n_answers = serializers.IntegerField(source="answered")
    n_no_valid_reply = serializers.IntegerField(source="no_valid_reply")
    n_given_up = serializers.IntegerField(source="given_up")
    n_attempts = serializers.IntegerField(source="attempts")
    n_failed = serializers.IntegerField(source="failures")
    n_lost = serializers.IntegerField(source="lost")
    n_in_flight = serializers.IntegerField(source="in_flight")


class ExperimentProgressSerializer(ExperimentSerializer):
    n_stimuli = serializers.IntegerField(source="progress.stimuli", help_text="over all runs")
    n_settled = serializers.IntegerField(source="progress.settled", help_text="have an answer or no valid reply")
    n_attempts = serializers.IntegerField(source="progress.attempts")
    n_failed = serializers.IntegerField(source="progress.failures")
    n_lost = serializers.IntegerField(source="progress.lost", help_text="calls possibly billed and lost")
    n_in_flight = serializers.IntegerField(source="progress.in_flight")
    progress = RunProgressSerializer(many=True, source="progress.runs")


class ExperimentsViewSet(StudyReadViewSet):
    """The study's experiments in counts only: one who is rating still sees that money is spent, and can stop it."""

    queryset = Experiment.objects.all()
    serializer_class = ExperimentSerializer
    filters = ExperimentFilters
    open_to_blinded = READING | {"create", "progress", "cancel"}

    def rows(self) -> QuerySet[Experiment]:
        """One query."""
        return experiments_of(self.study).filter(**self.chosen)

    def _shown(self, pk: int, status: int = 200) -> Response:
        row = experiments_of(self.study).get(pk=pk)
        return Response(ExperimentSerializer(row, context=self.get_serializer_context()).data, status=status)

    @extend_schema(
        request=LaunchSerializer,
        responses={
            201: ExperimentSerializer,
            200: OpenApiResponse(ExperimentSerializer, description="launched before with this launch_key"),
        },
    )
    def create(self, request: Request, **kwargs: Any) -> Response:
        """Launch an experiment: each model takes the instrument so many times. Work begins at once and costs money."""
        form = LaunchSerializer(data=request.data, context=self.get_serializer_context())
        form.is_valid(raise_exception=True)
        asked = form.validated_data
        before = self._launched(asked["launch_key"])
        experiment = before or self._launch(request.user, asked)  # type: ignore[arg-type]
        if not _is_same(experiment, asked):
            raise ApiError(409, "launch_key_used", _("This launch_key has launched another experiment."))
        return self._shown(experiment.pk, 201 if before is None else 200)

    def _launched(self, launch_key: uuid.UUID) -> Experiment | None:
        return Experiment.objects.filter(study=self.study, launch_key=launch_key).first()

    def _launch(self, person: User, asked: dict[str, Any]) -> Experiment:
        prompt = asked["prompt"] or prompt_ensure(study=self.study, actor=person)
        try:
            return experiment_launch(study=self.study, actor=person, **{**asked, "prompt": prompt})
        except KeyMissingError as error:
            sentence = _(
                "The environment variable %(name)s is not set, or holds what cannot be a key. Nothing was sent."
            ) % {"name": error.name}
            raise ApiError(409, "key_missing", sentence) from error
        except AddressRefusedError as error:
            raise ApiError(409, "address_refused", str(ADDRESS_ERRORS[error.reason])) from error
        except InstrumentIncompleteError as error:
            raise ApiError(409, "instrument_incomplete", str(error)) from error
        except ExperimentRefusedError as error:
            if error.reason == "uncappable":
                found = [f"{config.label}: {CAP_PROBLEMS[reason]}" for config, reason in error.uncappable]
                sentence = _("A cap is not possible with these models.") + " " + "; ".join(found)
                raise ApiError(409, "cap_impossible", sentence) from error
            raise ApiError(400, "invalid", _("This cannot be launched.")) from error

    @extend_schema(responses=ExperimentProgressSerializer)
    @action(detail=True)
    def progress(self, request: Request, **kwargs: Any) -> Response:
        """How far each run is."""
        experiment = self.get_object()
        experiment.progress = experiment_progress(experiment)
        return Response(ExperimentProgressSerializer(experiment, context=self.get_serializer_context()).data)

    @extend_schema(request=None, responses={200: ExperimentSerializer})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, **kwargs: Any) -> Response:
        """Stop sending. Calls in flight end and are kept; runs that are not finished have no score."""
        experiment = self.get_object()
        experiment_cancel(experiment=experiment, actor=request.user)  # type: ignore[arg-type]
        experiment.refresh_from_db(fields=["state"])
        if experiment.state != Experiment.State.CANCELLED:
            raise ApiError(409, "not_running", _("The experiment has ended: there is nothing left to cancel."))
        return self._shown(experiment.pk)


def _is_same(experiment: Experiment, asked: dict[str, Any]) -> bool:
    """Whether the launch that a key stands for is the one asked for now. One query."""
    configs = set(experiment.runs.values_list("config_id", flat=True))
    return (
        experiment.instrument_id == asked["instrument"].pk
        and (asked["prompt"] is None or experiment.prompt_id == asked["prompt"].pk)
        and (experiment.runs_planned, experiment.max_attempts) == (asked["runs"], asked["max_attempts"])
        and experiment.currency == asked["currency"]  # the cap itself may have been changed since
        and configs == {config.pk for config in asked["configs"]}
        and experiment.title == (asked["title"] or asked["instrument"].title)
    )


# --- runs and calls ----------------------------------------------------------------------------------------------


class OfExperimentFilters(Filters):
    experiment_id = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False)
    model = TextField(max_length=100, required=False, help_text="the name in tables and figures")


class RunFilters(OfExperimentFilters):
    state = serializers.ChoiceField(Run.State.choices, required=False)


class RunSerializer(StudyRowSerializer):
    id = serializers.IntegerField(help_text="`run_id` elsewhere")
    experiment_id = serializers.IntegerField()
    experiment = serializers.CharField(source="experiment.title")
    imported = serializers.BooleanField(source="experiment.imported", help_text="its replies were recorded elsewhere")
    model = serializers.CharField(source="config.label")
    run = serializers.IntegerField(source="ordinal", help_text="number of the run in the experiment")
    state = serializers.ChoiceField(Run.State.choices)
    problem = serializers.CharField(help_text="why it is paused or incomplete; may be empty")
    problem_words = serializers.SerializerMethodField(help_text="the same in the language of Accept-Language")
    reason = serializers.CharField(help_text="what the provider said; may be empty")
    instrument = serializers.SlugField(source="experiment.instrument.slug")
    instrument_version = serializers.IntegerField(source="experiment.instrument.version")
    respondent = serializers.UUIDField(source="sitting.respondent.public_id")
    sitting = serializers.IntegerField(source="sitting.ordinal", help_text="which sitting of this respondent, from 1")

    def get_problem_words(self, row: Run) -> str:
        return kind_words(row.problem)


class RunsViewSet(StudyReadViewSet):
    """The runs of the study's experiments."""

    queryset = Run.objects.all()
    serializer_class = RunSerializer
    filters = RunFilters

    def rows(self) -> QuerySet[Run]:
        """One query."""
        names = {"model": "config__label"}
        chosen = {names.get(name, name): value for name, value in self.chosen.items()}
        return Run.objects.filter(experiment__study=self.study, **chosen).select_related(
            "experiment__instrument", "config", "sitting__respondent"
        )


class CallFilters(OfExperimentFilters, PositionFilter):
    run_id = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False)
    judging_id = WholeNumberField(min_value=1, max_value=LARGEST_ID, required=False)
    purpose = serializers.ChoiceField(Call.Purpose.choices, required=False)
    state = serializers.ChoiceField(Call.State.choices, required=False)


ASKED = "asked for; null: the provider's default, or unknown"
SENT = "what was sent; null: nothing, the provider's default held"
USED = "what the provider says it used; null: it does not say"


@extend_schema_field(
    {
        "oneOf": [{"type": name} for name in ("number", "string", "boolean", "object")]
        + [{"type": "array", "items": {}}],
        "nullable": True,
    }
)
class AsSaidField(serializers.JSONField):
    """What was said, by whoever said it: mostly a number, but a server may say anything."""


class CallSerializer(StudyRowSerializer):
    id = serializers.IntegerField()
    purpose = serializers.ChoiceField(Call.Purpose.choices, help_text="a trial is no part of any run")
    experiment_id = serializers.IntegerField(source="run.experiment_id", allow_null=True, help_text="null for a trial")
    experiment = serializers.CharField(source="run.experiment.title", allow_null=True)
    imported = serializers.SerializerMethodField(help_text="recorded elsewhere, it came in as a file")
    model = serializers.CharField(source="config.label")
    provider = serializers.ChoiceField(ModelConfig.Provider.choices, source="config.provider")
    model_requested = serializers.CharField(source="config.model")
    temperature_asked = AsSaidField(source="asked.temperature", default=None, help_text=ASKED)
    temperature_used = AsSaidField(source="used.temperature", default=None, help_text=USED)
    top_p_asked = AsSaidField(source="asked.top_p", default=None, help_text=ASKED)
    top_p_used = AsSaidField(source="used.top_p", default=None, help_text=USED)
    max_output_tokens_asked = AsSaidField(source="asked.max_output_tokens", default=None, help_text=ASKED)
    run_id = serializers.IntegerField(allow_null=True)
    run = serializers.IntegerField(source="run.ordinal", allow_null=True, help_text="number of the run")
    position = serializers.IntegerField(source="stimulus.position", allow_null=True, help_text="number of the stimulus")
    judging_id = serializers.IntegerField(allow_null=True, help_text="of a model judge's call: its judging")
    answer = serializers.UUIDField(
        source="answer.blind_id", allow_null=True, help_text="of a model judge's call: the answer that it is about"
    )
    attempt = serializers.IntegerField(allow_null=True, help_text="null where the call cost none")
    state = serializers.ChoiceField(Call.State.choices)
    kind = serializers.CharField(help_text="what was wrong with a bad or failed one; may be empty")
    kind_words = serializers.SerializerMethodField(help_text="the same in the language of Accept-Language")
    detail = serializers.CharField()
    http_status = serializers.IntegerField(allow_null=True)
    model_reported = serializers.CharField(help_text="the model that the provider says has answered")
    finish_reason = serializers.CharField()
    input_tokens = serializers.IntegerField(allow_null=True)
    cached_tokens = serializers.IntegerField(allow_null=True, help_text="of the input")
    output_tokens = serializers.IntegerField(allow_null=True)
    reasoning_tokens = serializers.IntegerField(allow_null=True, help_text="of the output")
    cost = serializers.SerializerMethodField(help_text="null: not known, or possibly billed")
    currency = serializers.CharField(help_text="of the cost; empty where no price is known")
    cost_unknown_because = serializers.SerializerMethodField(help_text="why there is no cost: see docs/data.md")
    cost_at_most = serializers.SerializerMethodField(help_text="of a call that was possibly billed")
    sent_at = serializers.DateTimeField(allow_null=True, help_text="null: imported from a file that does not say")
    ended_at = serializers.DateTimeField(allow_null=True)

    def get_kind_words(self, row: Call) -> str:
        return kind_words(row.kind)

    def get_imported(self, row: Call) -> bool:
        return row.run is not None and row.run.experiment.imported

    def get_cost(self, row: Call) -> Decimal | None:
        return call_cost(row).value

    def get_cost_unknown_because(self, row: Call) -> str:
        cost = call_cost(row)
        return cost.reason if cost.value is None else ""

    def get_cost_at_most(self, row: Call) -> Decimal | None:
        return row.reserved if call_cost(row).value is None else None


class WholeCallSerializer(CallSerializer):
    temperature_sent = AsSaidField(read_only=True, default=None, help_text=SENT)
    top_p_sent = AsSaidField(read_only=True, default=None, help_text=SENT)
    max_output_tokens_sent = AsSaidField(read_only=True, default=None, help_text=SENT)
    max_output_tokens_used = AsSaidField(read_only=True, default=None, help_text=USED)
    request = serializers.JSONField(help_text="what was sent")
    response = serializers.JSONField(allow_null=True, help_text="what came back, where it is JSON")
    raw_reply = serializers.CharField(help_text="the text of the message, as received")
    raw_body = serializers.CharField(help_text="what came back, where it is no JSON that can be kept")
    escaped = serializers.BooleanField(help_text="whether NUL and the like are written as \\u or \\x in it")

    def to_representation(self, instance: Call) -> dict[str, Any]:
        shown = super().to_representation(instance)
        shown |= parameter_columns(instance.asked, instance.request, instance.used)
        return shown | {"request": without_secrets(shown["request"])}


class CallsViewSet(StudyReadViewSet):
    """Every request to a model's provider. A list leaves the bodies out, which may be megabytes; one call has all."""

    queryset = Call.objects.all()
    filters = CallFilters

    def get_serializer_class(self) -> type[CallSerializer]:
        return WholeCallSerializer if self.action == "retrieve" else CallSerializer

    def rows(self) -> QuerySet[Call]:
        """One query. Trials belong to no run, so the study is the configuration's."""
        names = {
            "experiment_id": "run__experiment",
            "model": "config__label",
            "position": "stimulus__position",
        }
        chosen = {names.get(name, name): value for name, value in self.chosen.items()}
        calls = Call.objects.filter(config__study=self.study, **chosen).select_related(
            "run__experiment", "config", "stimulus", "answer", "price"
        )
        return calls if self.action == "retrieve" else calls.defer("request", "response", "raw_body", "raw_reply")

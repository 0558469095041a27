"""What every endpoint of the API shares: tokens, errors, pages, filters, and the way to a study."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import exceptions, mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from studies.access import BlindedError, research_study, studies_of, unblinded_study
from studies.api_defaults import NUMBER, ApiError, body_too_large
from studies.models import Blinding, Study

# --- who asks ----------------------------------------------------------------------------------------------------


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "studies.api_defaults.TokenAuthentication"
    name = "token"
    priority = 1  # before the library's own for the class that ours derives from

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        about = "`Token` and the token that your account page gives: `Authorization: Token 9fQ…`"
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": about}


# --- errors ------------------------------------------------------------------------------------------------------


class ErrorSerializer(serializers.Serializer):
    code = serializers.CharField(help_text="for programs: one of those that docs/api.md lists")
    detail = serializers.CharField(help_text="for people, in the language of Accept-Language")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="of a 400: what is wrong with which parameter or field",
    )


def api_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """Every refusal in one form: `code`, `detail`, and for a 400 `fields`."""
    if isinstance(error, BlindedError):
        set_rollback()
        return Response({"code": "blinded", "detail": str(error)}, status=403)
    if isinstance(error, Http404):
        error = exceptions.NotFound(_("There is nothing at this address, or it is not yours to see."))
    elif isinstance(error, RequestDataTooBig):
        error = body_too_large()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    response = exception_handler(error, context)
    if response is None or not isinstance(error, exceptions.APIException):
        return response
    if isinstance(error, exceptions.ValidationError):
        response.data = _invalid(error)
    else:
        response.data = {"code": str(error.get_codes()), "detail": str(error.detail)}
        if isinstance(error, ApiError) and error.fields:
            response.data["fields"] = error.fields
    return response


def _invalid(error: exceptions.ValidationError) -> dict[str, Any]:
    detail: Any = error.detail
    if not isinstance(detail, dict):
        detail = {"non_field_errors": detail}
    fields = {str(name): _sentences(own) for name, own in detail.items()}
    name, sentences = next(iter(fields.items()))
    sentence = sentences[0] if name == "non_field_errors" else f"{name}: {sentences[0]}"
    return {"code": "invalid", "detail": sentence, "fields": fields}


def _sentences(detail: Any) -> list[str]:
    """The sentences of a list field's errors too, which lie one level deeper, by place."""
    if isinstance(detail, dict):
        return [sentence for own in detail.values() for sentence in _sentences(own)]
    if isinstance(detail, list | tuple):
        return [sentence for own in detail for sentence in _sentences(own)]
    return [str(detail)]


class ApiSchema(AutoSchema):
    """Adds to every operation the refusals that it may answer with, and the filters of a list."""

    def get_override_parameters(self) -> list[Any]:
        view: Any = self.view
        takes = isinstance(view, ApiViewSet) and view.action in view.filtered and view.filters is not Filters
        return [view.filters] if takes else []

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        refusals = [("400", "a parameter or the body is wrong"), ("401", "no token, or one that does not work")]
        if "{" in self.path:
            refusals += [("403", "you are rating answers of this study"), ("404", "no such thing among your studies")]
        if self.method == "POST":
            refusals += [("409", "it cannot be done as things stand"), ("413", "larger than 1 MB")]
            refusals += [("415", "not JSON")]
        refusals += [("406", "the API answers in JSON only"), ("429", "too many requests: see Retry-After")]
        for code, about in refusals:
            if code not in bodies:
                body = self._get_response_for_code(ErrorSerializer, code, media_types=["application/json"])  # type: ignore[no-untyped-call]
                bodies[code] = body | {"description": about}
        return dict(sorted(bodies.items()))


# --- what is sent to us ------------------------------------------------------------------------------------------


class WholeNumberField(serializers.IntegerField):
    """In a body a JSON number, in a query plain digits: not `1.0`, `1_0` or `true`."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, str) and not (self.is_in_query and NUMBER.fullmatch(data)):
            self.fail("invalid")
        if not isinstance(data, int | str) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)

    @property
    def is_in_query(self) -> bool:
        return isinstance(self.parent, Filters)


class TextField(serializers.CharField):
    """In a body a JSON string; a number is not silently made one."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class UuidField(serializers.UUIDField):
    """The usual form with hyphens; not a number, not a URN."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or len(data) != 36:
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class StrictSerializer(serializers.Serializer):
    """Refuses what it does not know: a filter with a slip in its name would show everything."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            raise serializers.ValidationError({name: [_("There is no such parameter here.")] for name in unknown})
        return super().to_internal_value(data)


class Filters(StrictSerializer):
    """The query parameters of a list beside `cursor` and `page_size`. A subclass adds its own."""


def query_read(request: Request, filters: type[Filters], paging: Sequence[str] = ()) -> dict[str, Any]:
    """The query's parameters, each known, given once and valid. Raises ValidationError, which names the wrong one."""
    query = request.query_params
    twice = [name for name in query if len(query.getlist(name)) > 1]
    if twice:
        raise serializers.ValidationError({name: [_("Given more than once.")] for name in twice})
    form = filters(data={name: value for name, value in query.items() if name not in paging})
    form.is_valid(raise_exception=True)
    return dict(form.validated_data)


# --- the way to a study ------------------------------------------------------------------------------------------


class ApiViewSet(viewsets.GenericViewSet):
    """An endpoint whose query is checked before anything is read."""

    schema = ApiSchema()
    http_method_names = ["get", "head", "post"]
    filters: type[Filters] = Filters
    filtered: frozenset[str] = frozenset({"list"})  # the actions that take the filters
    chosen: dict[str, Any]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is None:
            return  # the method is not allowed, which is said next
        takes = self.filters if self.action in self.filtered else Filters
        paging = ["cursor", "page_size"] if self.action == "list" and self.paginator else []
        self.chosen = query_read(request, takes, paging)

    def get_queryset(self) -> QuerySet[Any]:
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset().none()
        return self.rows()

    def rows(self) -> QuerySet[Any]:
        raise NotImplementedError


class StudyViewSet(ApiViewSet):
    """An endpoint under `/studies/<study>/`. Closed to researchers who are rating, but for the actions named.

    `rows` begins with the study: nothing of another one can be reached.
    """

    open_to_blinded: frozenset[str] = frozenset()
    study: Study

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.perform_authentication(request)
        self.check_permissions(request)
        find = research_study if self.action in self.open_to_blinded else unblinded_study
        self.study = find(request.user, kwargs["study"])
        super().initial(request, *args, **kwargs)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "study": getattr(self, "study", None)}


class StudyListViewSet(mixins.ListModelMixin, StudyViewSet):
    """A list."""


class StudyReadViewSet(mixins.RetrieveModelMixin, StudyListViewSet):
    """A list, and each of its rows by itself."""

    lookup_value_converter = "int"


READING = frozenset({"list", "retrieve"})


class StudyRowSerializer(serializers.Serializer):
    """Begins with the two columns of every CSV file."""

    study = serializers.SerializerMethodField(help_text="address of the study")
    simulated = serializers.SerializerMethodField(help_text="whether the study's data is simulated")

    def get_study(self, row: Any) -> str:
        return self.context["study"].slug

    def get_simulated(self, row: Any) -> bool:
        return self.context["study"].simulated


# --- studies -----------------------------------------------------------------------------------------------------


class StudySerializer(serializers.Serializer):
    study = serializers.SlugField(source="slug", help_text="address of the study")
    simulated = serializers.BooleanField(help_text="whether the study's data is simulated")
    title = serializers.CharField()
    blinded = serializers.SerializerMethodField(
        help_text="whether you are rating its answers: until the campaign closes, sources and results are closed to you"
    )
    created_at = serializers.DateTimeField()

    def get_blinded(self, row: Study) -> bool:
        return row.pk in self.context["blinded"]


class StudiesViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, ApiViewSet):
    """The studies that you are a researcher of."""

    queryset = Study.objects.all()
    serializer_class = StudySerializer
    lookup_field = "slug"
    lookup_url_kwarg = "study"
    lookup_value_converter = "slug"

    def rows(self) -> QuerySet[Study]:
        return studies_of(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        """One query: the studies in which the reader is blinded."""
        context = dict(super().get_serializer_context())
        if getattr(self, "swagger_fake_view", False):
            return context
        live = Blinding.objects.filter(user=self.request.user.pk, lifted_at__isnull=True)
        return {**context, "blinded": set(live.values_list("study", flat=True))}

"""The classes that `config.settings` names for the whole API: tokens, JSON bodies, pages.

A module of its own because the framework's views load them: it must not import those views.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import authentication, exceptions, pagination, parsers
from rest_framework.request import Request

from studies.models import ApiToken, User
from studies.services import secret_digest

BODY_LIMIT = 1024 * 1024
LARGEST_ID = 2**63 - 1
NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)


class TokenAuthentication(authentication.TokenAuthentication):
    """`Authorization: Token …`; the database keeps only the token's digest."""

    model = ApiToken

    def authenticate_credentials(self, key: str) -> tuple[User, ApiToken]:
        token = (
            ApiToken.objects.select_related("user")
            .filter(digest=secret_digest(key), revoked_at__isnull=True, user__is_active=True)
            .first()
        )
        if token is None:
            raise exceptions.AuthenticationFailed
        return token.user, token

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        return super().authenticate(request)


class ApiError(exceptions.APIException):
    """A refusal with its own code and a sentence in the reader's language."""

    def __init__(self, status: int, code: str, sentence: str, fields: Mapping[str, Sequence[str]] | None = None):
        super().__init__(sentence, code)
        self.status_code = status
        self.fields = dict(fields or {})


def body_too_large() -> ApiError:
    return ApiError(413, "too_large", _("The body is larger than 1 MB."))


class BoundedJSONParser(parsers.JSONParser):
    """JSON of a size and depth that we are ready to read."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        length = str(parser_context["request"].META.get("CONTENT_LENGTH") or "0")
        if not NUMBER.fullmatch(length) or int(length) > BODY_LIMIT:
            raise body_too_large()
        try:
            # Nobody launches anything in another encoding, and an unknown one must not be an error of ours.
            return super().parse(stream, media_type, {**parser_context, "encoding": "utf-8"})
        except RecursionError as error:
            raise exceptions.ParseError(_("The JSON is nested too deeply.")) from error


class StudyCursor(pagination.CursorPagination):
    """Pages in the order in which rows were made. Rows that come while somebody reads shift nothing."""

    ordering = "pk"
    page_size = 100
    max_page_size = 500
    page_size_query_param = "page_size"
    page_size_query_description = "rows on a page: 1 to 500"

    def get_page_size(self, request: Request) -> int:
        given = request.query_params.get(self.page_size_query_param)
        if given is None:
            return self.page_size
        if not NUMBER.fullmatch(given) or not 1 <= int(given) <= self.max_page_size:
            raise exceptions.ValidationError({"page_size": [_("A whole number from 1 to 500.")]})
        return int(given)

    def decode_cursor(self, request: Request) -> Any:
        wrong = exceptions.ValidationError({"cursor": [_("Take the cursor from “next” or “previous” of a page.")]})
        if not BASE64.fullmatch(request.query_params.get(self.cursor_query_param, "")):
            raise wrong
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound as error:
            raise wrong from error
        if cursor is None:
            return None
        position = None if cursor.position is None else str(cursor.position)
        if position is not None and not (NUMBER.fullmatch(position) and int(position) <= LARGEST_ID):
            raise wrong
        return cursor

    def get_paginated_response_schema(self, schema: Any) -> Any:
        document = super().get_paginated_response_schema(schema)
        for name in ("next", "previous"):
            document["properties"][name].pop("example")
        return document | {"required": ["next", "previous", "results"]}

    def get_schema_operation_parameters(self, view: Any) -> Any:
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] |= {"minimum": 1, "maximum": self.max_page_size, "default": self.page_size}
        return parameters

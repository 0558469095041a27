from rest_framework import authentication, exceptions
from rest_framework.request import Request

from studies.models import ApiToken, User
from studies.services import secret_digest


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

"""What every vendor looks like from inside, and what may go wrong at one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Endpoint:
    base_url: str
    key: str = field(repr=False)  # "" where the server wants none
    timeout: float  # seconds, for the whole call
    folder: str = ""  # Yandex: the folder that is billed; GigaChat: the scope of the token


@dataclass(frozen=True, slots=True)
class Question:
    """One message to one model. A parameter of None, or one that is not among `accepts`, is not sent."""

    model: str
    prompt: str
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    accepts: frozenset[str] | None = None  # of temperature, top_p, max_output_tokens; None: not known, all are sent
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""

    def sent(self, name: str) -> Any:
        """The value of a parameter as it goes out; None where it does not."""
        return getattr(self, name) if self.accepts is None or name in self.accepts else None


@dataclass(slots=True)
class Exchange:
    """What came back over the wire, as far as it came. The key is blanked out of the body.

    `sent`: whether the model may have been asked. The transport sets it once the request goes out over a connection.
    """

    http_status: int | None = None
    body: bytes = b""
    sent: bool = False


@dataclass(frozen=True, slots=True)
class ProviderReply:
    text: str | None
    refusal: str | None
    finish_reason: str | None
    model: str  # as reported; "" where the server says nothing
    input_tokens: int | None
    output_tokens: int | None  # reasoning among them
    exchange: Exchange
    document: Any  # the body as parsed JSON
    cached_tokens: int | None = None  # of the input
    reasoning_tokens: int | None = None  # of the output
    used: Mapping[str, Any] = field(default_factory=dict)  # the parameters that the provider says it used


class ProviderError(Exception):
    """No reply of a model. Costs no attempt.

    `transient`: asking again later may help. `tries`: how often in a row it is believed to be transient (None: until
    the deadline). `retry_after`: seconds that the server asks to wait.
    """

    kind: ClassVar[str]
    transient: ClassVar[bool] = False
    tries: ClassVar[int | None] = None

    def __init__(
        self, message: str = "", *, exchange: Exchange | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.exchange = exchange or Exchange()
        self.retry_after = retry_after


class RateLimited(ProviderError):  # noqa: N818 - the states have names of their own, as the pages show them
    kind, transient = "rate_limited", True


class Timeout(ProviderError):  # noqa: N818
    kind, transient = "timeout", True


class ServerError(ProviderError):
    kind, transient = "server_error", True


class ConnectionFailed(ProviderError):  # noqa: N818
    kind, transient = "connection", True


class NotAModel(ProviderError):  # noqa: N818
    """HTML, no JSON, JSON of another shape. A proxy may do it once; three times in a row it is the wrong address."""

    kind, transient, tries = "not_a_model", True, 3


class BodyTooLarge(NotAModel):
    kind = "too_large"


class QuotaExhausted(ProviderError):  # noqa: N818
    kind = "quota"


class AuthenticationFailed(ProviderError):  # noqa: N818
    kind = "authentication"


class BadRequest(ProviderError):  # noqa: N818
    kind = "bad_request"


class UnknownModel(BadRequest):
    kind = "unknown_model"


class Redirected(ProviderError):  # noqa: N818
    """The server points elsewhere. Nothing is sent to a host that nobody configured."""

    kind = "redirect"


class PrivateAddress(ProviderError):  # noqa: N818
    kind = "private_address"


class KeyUnavailable(ProviderError):  # noqa: N818
    kind = "key_missing"


class Unexpected(ProviderError):  # noqa: N818
    """Something that no provider here foresees: a fault of ours, or a setting that cannot be sent."""

    kind = "unexpected"


class Provider(Protocol):
    def request_body(self, question: Question) -> dict[str, Any]:
        """Exactly the JSON that `ask` will send, so that it can be stored before."""

    def ask(self, endpoint: Endpoint, body: dict[str, Any]) -> ProviderReply:
        """Send one request, once. Raises ProviderError. Safe to call from many threads."""

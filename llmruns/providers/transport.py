"""The connection under a vendor's SDK: it sends what we decided and nothing that the environment adds.

The OpenAI SDK reads OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS from the environment and would send them
to every server configured here; it also reads bodies of any size. This transport passes a fixed list of headers, puts
the key in itself, and keeps the body, bounded, even when nothing can parse it.
"""

import time
from collections.abc import Iterator

import httpx2
from django.conf import settings

from llmruns.addresses import host_is_private
from llmruns.providers.base import BodyTooLarge, Exchange, NotAModel, PrivateAddress, ProviderError, Timeout

MAX_BODY = 5 * 1024 * 1024
BLANK = b"[key]"
# Shorter "keys" are words such as "ollama" or "EMPTY" that local servers ask for: blanking them would change replies.
SECRET_LENGTH = 12
EXCHANGE = "luria.exchange"


def key_blank(body: bytes, key: str) -> bytes:
    """The body without the key, should a server send it back."""
    return body.replace(key.encode(), BLANK) if len(key) >= SECRET_LENGTH else body


class GuardedTransport(httpx2.BaseTransport):
    def __init__(self, *, key: str, timeout: float) -> None:
        self._key = key
        self._timeout = timeout
        self._inner = httpx2.HTTPTransport(
            trust_env=False, limits=httpx2.Limits(max_connections=100, max_keepalive_connections=100)
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = request.extensions[EXCHANGE] = Exchange()
        if not settings.ALLOW_PRIVATE_ENDPOINTS and host_is_private(request.url.host):
            raise PrivateAddress(request.url.host, exchange=exchange)
        deadline = time.monotonic() + self._timeout
        response = self._inner.handle_request(self._plain(request))
        exchange.http_status = response.status_code
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", ""):
            response.close()
            raise NotAModel(f"content-encoding {encoding[:40]}, which was not asked for", exchange=exchange)
        assert isinstance(response.stream, httpx2.SyncByteStream)  # noqa: S101 - of a synchronous transport
        stream = _BoundedStream(response.stream, exchange, self._key, deadline)
        return httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=stream,
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._inner.close()

    def _plain(self, request: httpx2.Request) -> httpx2.Request:
        headers = {
            "Host": request.headers["Host"],
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "Luria",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return httpx2.Request(
            request.method, request.url, headers=headers, content=request.read(), extensions=request.extensions
        )


class _BoundedStream(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, exchange: Exchange, key: str, deadline: float) -> None:
        self._inner = inner
        self._exchange = exchange
        self._key = key
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        received = bytearray()
        try:
            for chunk in self._inner:
                received += chunk
                self._check(len(received))
                yield chunk
        finally:
            self._exchange.body = key_blank(bytes(received[:MAX_BODY]), self._key)

    def _check(self, length: int) -> None:
        problem: ProviderError | None = None
        if length > MAX_BODY:
            problem = BodyTooLarge(f"more than {MAX_BODY} bytes", exchange=self._exchange)
        elif time.monotonic() > self._deadline:
            problem = Timeout("the body came too slowly", exchange=self._exchange)
        if problem is not None:
            raise problem

    def close(self) -> None:
        self._inner.close()

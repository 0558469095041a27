"""The connection under a vendor's SDK: it sends what we decided and nothing that the environment adds.

The OpenAI SDK reads OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS from the environment and would send them
to every server configured here; it also reads bodies of any size. This transport passes a fixed list of headers, puts
the key in itself, and keeps the body, bounded, even when nothing can parse it.
"""

import time

import httpx2
from django.conf import settings

from llmruns.addresses import host_is_private
from llmruns.providers.base import BodyTooLarge, Exchange, NotAModel, PrivateAddress, Timeout

MAX_BODY = 5 * 1024 * 1024
BLANK = b"[key]"
# Shorter "keys" are words such as "ollama" or "EMPTY" that local servers ask for: blanking them would change replies.
SECRET_LENGTH = 12
# Not the content type: the SDK would decode an error with whatever charset it names, and fail.
HEADERS_READ = ("retry-after", "location")
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
        try:
            body = self._read(response, exchange, deadline)
        finally:
            response.close()
        # Nothing that the server sent reaches the SDK, its exceptions or a traceback with the key in it.
        headers = {
            name.encode(): key_blank(response.headers[name].encode(), self._key)
            for name in HEADERS_READ
            if name in response.headers
        }
        return httpx2.Response(status_code=response.status_code, headers=headers, content=body)

    def _read(self, response: httpx2.Response, exchange: Exchange, deadline: float) -> bytes:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("identity", ""):
            raise NotAModel(f"content-encoding {encoding[:40]}, which was not asked for", exchange=exchange)
        assert isinstance(response.stream, httpx2.SyncByteStream)  # noqa: S101 - of a synchronous transport
        received = bytearray()
        try:
            for chunk in response.stream:
                received += chunk
                if len(received) > MAX_BODY:
                    raise BodyTooLarge(f"more than {MAX_BODY} bytes", exchange=exchange)
                if time.monotonic() > deadline:
                    raise Timeout("the body came too slowly", exchange=exchange)
        finally:
            exchange.body = key_blank(bytes(received[:MAX_BODY]), self._key)
        return exchange.body

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

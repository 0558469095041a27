"""The connection under a vendor's SDK: it sends what we decided and nothing that the environment adds.

The SDKs read variables such as OPENAI_ORG_ID, OPENAI_CUSTOM_HEADERS or ANTHROPIC_AUTH_TOKEN from the environment and
would send them to every server configured here; they also read bodies of any size. This transport passes a fixed list
of headers, puts the key in itself, and keeps the body, bounded, even when nothing can parse it.

`Guard` does this for either of the two HTTP libraries that the SDKs are built on: they have the same interface and
share no class. `GuardedTransport` is the one for httpx2; the one for httpx stands beside the SDK that needs it.
"""

import atexit
import re
import ssl
import time
import weakref
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

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

# Clients are kept for as long as the process lives: a connection is opened once, and closed when the process ends.
_open: "weakref.WeakSet[Guard]" = weakref.WeakSet()


@atexit.register
def transports_close() -> None:
    """Close the connections of all clients of this process; one that is used afterwards opens them anew."""
    for transport in list(_open):
        transport.close()


def key_blank(body: bytes, key: str) -> bytes:
    """The body without the key, should a server send it back as it is, or escaped as JSON and addresses may be."""
    if len(key) < SECRET_LENGTH:
        return body
    body = body.replace(key.encode(), BLANK)
    return _escaped(key).sub(BLANK, body) if b"\\" in body or b"%" in body else body


@lru_cache(maxsize=256)
def _escaped(key: str) -> re.Pattern[bytes]:
    """The key with any of its characters written as \\u002f, \\/, \\" or %2f. No repetition: it takes linear time."""
    forms = []
    for byte in key.encode():
        own = [re.escape(bytes([byte])), b"(?i:\\\\u00%02x)" % byte, b"(?i:%%%02x)" % byte]
        also = [re.escape(b"\\" + bytes([byte]))] if byte in b'/"\\' else []
        # The longer one first: of a backslash that is escaped the first half would do for the whole.
        forms.append(b"(?:" + b"|".join([*also, *own]) + b")")
    return re.compile(b"".join(forms))


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


class Guard:
    """Mixed into a library's BaseTransport. `headers` go with every request, `secrets` are blanked out of replies."""

    library: Any  # of the class: httpx2 or httpx

    def __init__(
        self,
        *,
        headers: Mapping[str, str],
        secrets: tuple[str, ...],
        timeout: float,
        tls: ssl.SSLContext | bool = True,
    ) -> None:
        self._headers = dict(headers)
        self._secrets = secrets
        self._timeout = timeout
        limits = self.library.Limits(max_connections=100, max_keepalive_connections=100)
        self._inner = self.library.HTTPTransport(trust_env=False, limits=limits, verify=tls)
        names = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "LocalProtocolError")
        self._unsent = tuple(getattr(self.library, name) for name in names)
        _open.add(self)

    def own_headers(self) -> Mapping[str, str]:
        return self._headers

    def own_secrets(self) -> tuple[str, ...]:
        return self._secrets

    def new_exchange(self) -> Exchange:
        return Exchange()

    def handle_request(self, request: Any) -> Any:
        exchange = request.extensions[EXCHANGE] = self.new_exchange()
        if not settings.ALLOW_PRIVATE_ENDPOINTS and host_is_private(request.url.host):
            raise PrivateAddress(request.url.host, exchange=exchange)
        deadline = time.monotonic() + self._timeout
        try:
            response = self._send(self._plain(request), exchange)
            exchange.http_status = response.status_code
            try:
                body = self._read(response, exchange, deadline)
            finally:
                response.close()
        except self.library.TransportError as error:
            # It quotes what it could not read: a header, say, that sends ours back.
            raise type(error)(self._blank(str(error).encode()).decode(), request=request) from None
        # Nothing that the server sent reaches the SDK, its exceptions or a traceback with the key in it.
        headers = {
            name.encode(): self._blank(response.headers[name].encode())
            for name in HEADERS_READ
            if name in response.headers
        }
        # The request goes with it: httpx wants to know it, httpx2 adds it itself.
        return self.library.Response(status_code=response.status_code, headers=headers, content=body, request=request)

    def _send(self, request: Any, exchange: Exchange) -> Any:
        """Say in the exchange whether anything went out: without a connection, or of a header that cannot be, nothing.

        It says yes beforehand: whatever interrupts this thread may have been billed.
        """
        exchange.sent = True
        try:
            return self._inner.handle_request(request)
        except self._unsent:
            exchange.sent = False
            raise

    def _blank(self, body: bytes) -> bytes:
        for secret in self.own_secrets():
            body = key_blank(body, secret)
        return body

    def _read(self, response: Any, exchange: Exchange, deadline: float) -> bytes:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("identity", ""):
            raise NotAModel("the body is encoded in a way that was not asked for", exchange=exchange)
        received = bytearray()
        try:
            for chunk in response.stream:
                received += chunk
                if len(received) > MAX_BODY:
                    raise BodyTooLarge(f"more than {MAX_BODY} bytes", exchange=exchange)
                if time.monotonic() > deadline:
                    raise Timeout("the body came too slowly", exchange=exchange)
        finally:
            exchange.body = self._blank(bytes(received[:MAX_BODY]))
        return exchange.body

    def close(self) -> None:
        self._inner.close()

    def _plain(self, request: Any) -> Any:
        headers = {
            "Host": request.headers["Host"],
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "Luria",
            **self.own_headers(),
        }
        return self.library.Request(
            request.method, request.url, headers=headers, content=request.read(), extensions=request.extensions
        )


class GuardedTransport(Guard, httpx2.BaseTransport):
    library = httpx2


def guarded_client(*, headers: Mapping[str, str], secrets: tuple[str, ...], timeout: float) -> httpx2.Client:
    """For an SDK on httpx2: no redirects, no proxies and no keys of the environment, one time for the whole call."""
    return httpx2.Client(
        transport=GuardedTransport(headers=headers, secrets=secrets, timeout=timeout),
        timeout=httpx2.Timeout(timeout, connect=min(timeout, 10.0)),
        follow_redirects=False,
        trust_env=False,
    )

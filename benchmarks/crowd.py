"""People with browsers of the leanest kind, in one asyncio loop, so that the driver takes little of the machine."""

import asyncio
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from benchmarks.server import HOST

SENT_ALWAYS = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: ru,en;q=0.8\r\n"
)
FORM = "application/x-www-form-urlencoded"


@dataclass
class Visitor:
    """One person's browser: a kept-alive connection, cookies, redirects followed."""

    port: int
    path: str = ""  # of the page that is shown
    status: int = 0
    page: str = ""
    cookies: dict[str, str] = field(default_factory=dict)
    headers: str = SENT_ALWAYS
    content: str = FORM

    def __post_init__(self) -> None:
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self, path: str) -> None:
        await self._go("GET", path, "")

    async def send(self, path: str, form: str) -> None:
        await self._go("POST", path, form)

    async def _go(self, method: str, path: str, body: str) -> None:
        """Send, and open the pages that the answers lead to, as far as one that is shown."""
        location = await self._exchange(method, path, body)
        while location:
            split = urlsplit(location)
            path = split.path + (f"?{split.query}" if split.query else "")
            location = await self._exchange("GET", path, "")
        self.path = path

    async def _exchange(self, method: str, path: str, body: str) -> str:
        """One request; where its answer leads to."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}:{self.port}\r\n{self.headers}"
        head += f"Cookie: {cookies}\r\n" if cookies else ""
        head += f"Content-Type: {self.content}\r\nContent-Length: {len(body.encode())}\r\n" if method == "POST" else ""
        request = f"{head}\r\n{body}".encode()
        if self._streams is not None:
            try:
                return await self._sent(*self._streams, request)
            except (ConnectionError, asyncio.IncompleteReadError):
                await self.close()  # the server had closed the idle connection; a browser opens a new one too
        self._streams = await asyncio.open_connection(HOST, self.port)
        return await self._sent(*self._streams, request)

    async def _sent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> str:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        self.status = int(lines[0].split(" ", 2)[1])
        length, location, closes = 0, "", False
        for line in lines[1:]:
            name, _, value = line.partition(":")
            match name.lower():
                case "content-length":
                    length = int(value)
                case "location":
                    location = value.strip()
                case "set-cookie":
                    key, _, rest = value.strip().partition("=")
                    self.cookies[key] = rest.partition(";")[0]
                case "connection":
                    closes = value.strip().lower() == "close"
                case "transfer-encoding":
                    length = -1
        body = await _chunks(reader) if length < 0 else await reader.readexactly(length)
        self.page = body.decode()
        if closes:
            await self.close()
        return location if 300 <= self.status < 400 else ""

    async def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
    return body


@dataclass
class Clock:
    """Seconds of what people waited for, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def note(self, begun: float, visitor: Visitor, expected: str) -> None:
        self.seconds.append(time.monotonic() - begun)
        if visitor.status != 200 or expected not in visitor.page:
            self.errors.append(f"{visitor.path}: {visitor.status}")

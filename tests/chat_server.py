"""A local server that speaks chat completions and misbehaves on request.

In a test: `with ChatServer() as server: server.script("кошка", rate_limited(1), answer("кошка сидит"))`: each request
whose message contains the words takes the next behaviour, the last one for ever after; all others get a valid answer.
By itself: `python -m tests.chat_server --port 0 --latency 0.5` prints its address; GET /count counts.
"""

import argparse
import json
import socket
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_REQUEST = 1_000_000
LONGEST_HANG = 20.0
LONGEST_GATHERING = 60.0


@dataclass(frozen=True)
class Behaviour:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    hang: bool = False  # says nothing until the test is over or the client leaves
    close_early: bool = False  # promises the whole body and sends half of it
    hang_half_way: bool = False  # sends half of the body and then nothing
    drips: bool = False  # a byte every 50 ms: each comes in time, the whole never
    echo_headers: bool = False  # sends the request's headers back: what a careless server does to a key


@dataclass(frozen=True)
class Seen:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def completion(
    content: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    model: str = "test-model",
) -> Behaviour:
    document = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": refusal},
                "finish_reason": finish_reason,
            }
        ],
        "usage": {"prompt_tokens": 300, "completion_tokens": 12, "total_tokens": 312},
    }
    return Behaviour(body=json.dumps(document).encode())


def answer(text: str, *, model: str = "test-model") -> Behaviour:
    return completion(json.dumps({"results": text}, ensure_ascii=False), model=model)


def failure(status: int, message: str = "no", *, code: str | None = None, **headers: str) -> Behaviour:
    body = json.dumps({"error": {"message": message, "type": code, "code": code}}).encode()
    return Behaviour(
        status=status,
        body=body,
        headers={"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()},
    )


def rate_limited(seconds: float) -> Behaviour:
    return failure(429, "slow down", code="rate_limit_exceeded", Retry_After=str(seconds))


def rate_limited_until(seconds_from_now: float) -> Behaviour:
    date = formatdate(time.time() + seconds_from_now, usegmt=True)
    return failure(429, "slow down", code="rate_limit_exceeded", Retry_After=date)


BAD_FORMAT = completion("Вот ответ: кошка сидит на столе.")
BROKEN = failure(500, "internal error")
HANG = Behaviour(hang=True)
HANG_HALF_WAY = Behaviour(body=b'{"choices": [' + b" " * 1000, hang_half_way=True)
DRIPS = Behaviour(body=b'{"choices": [' + b" " * 1000, drips=True)
OUT_OF_QUOTA = failure(429, "You exceeded your current quota", code="insufficient_quota")
WRONG_KEY = failure(401, "Incorrect API key provided", code="invalid_api_key")
UNKNOWN_MODEL = failure(404, "The model does not exist", code="model_not_found")
HTML = Behaviour(body=b"<html><body>Welcome to nginx!</body></html>", headers={"Content-Type": "text/html"})
HUGE = Behaviour(body=b'{"choices": "' + b"x" * 10_000_000 + b'"}')
NOT_UTF8 = Behaviour(body=b'{"choices": [{"message": {"content": "\xff\xfe"}}]}')
NUL_BODY = Behaviour(body=b'{"choices": \x00}')
NUL_CONTENT = completion('{"results": "кошка\x00"}')
SURROGATE = Behaviour(body=b'{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}')
STREAM = Behaviour(body=b'data: {"choices": []}\n\ndata: [DONE]\n\n', headers={"Content-Type": "text/event-stream"})
CLOSES_EARLY = Behaviour(body=b'{"choices": [' + b" " * 1000, close_early=True)
TRUNCATED = completion('{"results": "кош', finish_reason="length")
REFUSED = completion(None, refusal="I cannot help with that")
FILTERED = completion("", finish_reason="content_filter")
FILTERED_PROMPT = failure(400, "filtered", code="content_filter")
EMPTY = completion("")


def redirect(to: str) -> Behaviour:
    return Behaviour(status=307, headers={"Location": to})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left is no event."""


class ChatServer:
    def __init__(self, *, port: int = 0, latency: float = 0.0, default: Behaviour | None = None) -> None:
        self.latency = latency
        self.default = default or answer("кошка сидит на столе")
        self.seen: list[Seen] = []
        self._scripts: dict[str, list[Behaviour]] = {}
        self._lock = threading.Lock()
        self._gathered: threading.Barrier | None = None
        self.over = threading.Event()
        self.httpd = _Server(("127.0.0.1", port), _handler(self))
        self.base_url = f"http://127.0.0.1:{self.httpd.server_address[1]}/v1"

    def __enter__(self) -> "ChatServer":
        threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.httpd.shutdown()
        self.httpd.server_close()

    def script(self, words: str, *behaviours: Behaviour) -> None:
        self._scripts[words] = list(behaviours)

    def gather(self, n: int) -> None:
        """The first n requests are answered when all n are there: more than one worker has threads for, so two work."""
        self._gathered = threading.Barrier(n)

    def asked(self, words: str) -> int:
        """How many requests had these words in their message."""
        with self._lock:
            return sum(words in _message(seen.json) for seen in self.seen)

    def take(self, seen: Seen) -> Behaviour:
        with self._lock:
            self.seen.append(seen)
            behaviour = self._scripted(_message(seen.json))
            gathered = self._gathered if self._gathered and len(self.seen) <= self._gathered.parties else None
        if gathered is not None:
            gathered.wait(LONGEST_GATHERING)
        return behaviour

    def _scripted(self, message: str) -> Behaviour:
        for words, behaviours in self._scripts.items():
            if words in message:
                return behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        return self.default


def _message(body: Any) -> str:
    return str(body["messages"][0]["content"])


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._send(Behaviour(body=json.dumps({"count": len(server.seen)}).encode()))

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            if length > MAX_REQUEST:
                self.close_connection = True
                return
            body = self.rfile.read(length)
            behaviour = server.take(Seen(self.path, dict(self.headers.items()), body))
            if behaviour.hang:
                server.over.wait(LONGEST_HANG)
                self.close_connection = True
                return
            if server.latency:
                time.sleep(server.latency)
            self._send(behaviour)

        def _send(self, behaviour: Behaviour) -> None:
            body = behaviour.body
            if behaviour.echo_headers:
                body = json.dumps({"error": {"message": str(self.headers)}}).encode()
            head = [f"HTTP/1.1 {behaviour.status} -", f"Content-Length: {len(body)}"]
            head += [f"{name}: {value}" for name, value in behaviour.headers.items()]
            try:
                half = behaviour.close_early or behaviour.hang_half_way
                sent = b"" if behaviour.drips else body[: len(body) // 2] if half else body
                self.wfile.write("\r\n".join([*head, "", ""]).encode() + sent)
                if behaviour.hang_half_way:
                    server.over.wait(LONGEST_HANG)
                    self.close_connection = True
                elif behaviour.drips:
                    self._drip(body)
                elif behaviour.close_early:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                self.close_connection = True

        def _drip(self, body: bytes) -> None:
            for position in range(len(body)):
                self.wfile.write(body[position : position + 1])
                if server.over.wait(0.05):
                    return

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    arguments = parser.parse_args()
    server = ChatServer(port=arguments.port, latency=arguments.latency)
    print(server.base_url, flush=True)  # noqa: T201
    server.httpd.serve_forever()


if __name__ == "__main__":
    main()

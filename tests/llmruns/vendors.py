"""Local servers that speak the vendors' own protocols, on the server that speaks chat completions."""

import json
import threading
import time
from typing import Any

from tests.chat_server import Behaviour, ChatServer, Seen, answer


def message(
    text: str | None, *, stop_reason: str = "end_turn", usage: dict[str, Any] | None = None, **extra: Any
) -> Behaviour:
    """Anthropic's reply; `text` None: no content at all."""
    document = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [] if text is None else [{"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 300, "output_tokens": 12, "service_tier": "standard"},
        **extra,
    }
    return Behaviour(body=json.dumps(document).encode())


def said(text: str) -> Behaviour:
    return message(json.dumps({"results": text}, ensure_ascii=False))


def claude_error(status: int, kind: str, words: str = "no", **headers: str) -> Behaviour:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}).encode()
    return Behaviour(
        status=status,
        body=body,
        headers={"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()},
    )


def giga_error(status: int, words: str, **headers: str) -> Behaviour:
    """Sber's errors lie at the top of the document."""
    return Behaviour(
        status=status,
        body=json.dumps({"status": status, "message": words}).encode(),
        headers={"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()},
    )


class GigaServer(ChatServer):
    """Gives out tokens at /oauth and asks for them elsewhere. `token_behaviours` come before tokens do."""

    def __init__(self, *, life: float = 1800.0, token_latency: float = 0.0) -> None:
        super().__init__(default=answer("кошка сидит на столе"))
        self.life = life
        self.token_latency = token_latency
        self.token_requests: list[Seen] = []
        self.token_behaviours: list[Behaviour] = []
        self.refused: set[str] = set()
        self._counter = threading.Lock()
        self.auth_url = self.base_url.removesuffix("/v1") + "/oauth"

    def take(self, seen: Seen) -> Behaviour:
        if seen.path == "/oauth":
            return self._token(seen)
        if seen.headers.get("Authorization") in self.refused or "Bearer token-" not in str(seen.headers):
            with self._counter:
                self.seen.append(seen)
            return giga_error(401, "Token has expired")
        return super().take(seen)

    def _token(self, seen: Seen) -> Behaviour:
        with self._counter:
            self.token_requests.append(seen)
            number = len(self.token_requests)
            if self.token_behaviours:
                return self.token_behaviours.pop(0)
        if self.token_latency:
            time.sleep(self.token_latency)
        document = {
            "access_token": f"token-{number}-of-many-secret-letters",
            "expires_at": int((time.time() + self.life) * 1000),
        }
        return Behaviour(body=json.dumps(document).encode())

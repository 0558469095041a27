"""A model for the benchmarks of runs: it thinks for a while, and refuses every so manieth request at once with 429.

`python -m benchmarks.model --latency 0.5 --refuse 10` prints its address. GET /seen: how many requests, and the seconds
from the first one to the last reply; GET /forget: count anew.
"""

import argparse
import json
import time
from typing import Any

from tests.chat_server import Behaviour, ChatServer, Seen, rate_limited


class Model(ChatServer):
    def __init__(self, *, latency: float, refuse: int, retry_after: float) -> None:
        super().__init__()
        self._thinks, self._refuse, self._refusal = latency, refuse, rate_limited(retry_after)
        self.forget()

    def forget(self) -> None:
        self.seen.clear()
        self.first = self.last = 0.0

    def take(self, seen: Seen) -> Behaviour:
        with self._lock:
            self.first = self.first or time.monotonic()
            self.seen.append(seen)
            number = len(self.seen)
        refused = self._refuse and number % self._refuse == 0
        if not refused:
            time.sleep(self._thinks)
        self.last = time.monotonic()
        return self._refusal if refused else self.default


def _handler(model: Model, inner: Any) -> Any:
    class Handler(inner):  # type: ignore[misc]
        def do_GET(self) -> None:  # noqa: N802 - the library's name
            found = {"requests": len(model.seen), "seconds": model.last - model.first}
            if self.path.endswith("/forget"):
                model.forget()
            self._send(Behaviour(body=json.dumps(found).encode()))

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--refuse", type=int, default=0, help="every so manieth request; 0: none")
    parser.add_argument("--retry-after", type=float, default=1.0)
    arguments = parser.parse_args()
    model = Model(latency=arguments.latency, refuse=arguments.refuse, retry_after=arguments.retry_after)
    model.httpd.RequestHandlerClass = _handler(model, model.httpd.RequestHandlerClass)
    print(model.base_url, flush=True)
    model.httpd.serve_forever()


if __name__ == "__main__":
    main()

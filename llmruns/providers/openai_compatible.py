"""Any server that speaks chat completions: OpenRouter, vLLM, llama.cpp, Ollama. OpenAI and Yandex build on it."""

import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2
import openai

from llmruns.providers.base import ConnectionFailed, Endpoint, Exchange, ProviderReply, Question, Timeout
from llmruns.providers.transport import EXCHANGE, bearer, guarded_client
from llmruns.providers.wire import (
    cause_text,
    filtered_reply,
    is_filtered,
    read_chat_completion,
    retry_after,
    status_error,
)

# The rest is not the SDK's to know.
NAMED = {"model", "messages", "temperature", "top_p", "max_tokens", "max_completion_tokens"}


class OpenAICompatible:
    SENT_AS: ClassVar[Mapping[str, str]] = {
        "temperature": "temperature",
        "top_p": "top_p",
        "max_output_tokens": "max_tokens",
    }

    def __init__(self) -> None:
        self._clients: dict[Endpoint, openai.OpenAI] = {}
        self._lock = threading.Lock()

    def model_name(self, question: Question) -> str:
        return question.model

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        return bearer(endpoint.key)

    def request_body(self, question: Question) -> dict[str, Any]:
        sent = {name: question.sent(own) for own, name in self.SENT_AS.items()}
        return {
            "model": self.model_name(question),
            "messages": [{"role": "user", "content": question.prompt}],
            **{name: value for name, value in sent.items() if value is not None},
            **question.extra_body,
        }

    def ask(self, endpoint: Endpoint, body: dict[str, Any]) -> ProviderReply:
        client = self._client(endpoint)
        named = {name: value for name, value in body.items() if name in NAMED}
        rest = {name: value for name, value in body.items() if name not in NAMED}
        try:
            raw = client.chat.completions.with_raw_response.create(**named, extra_body=rest or None)
        except openai.APITimeoutError as error:
            raise Timeout("no reply in time", exchange=_exchange(error)) from error
        except openai.APIConnectionError as error:
            message = cause_text(error, httpx2.LocalProtocolError)
            raise ConnectionFailed(message, exchange=_exchange(error)) from error
        except openai.APIStatusError as error:
            exchange = _exchange(error)
            if is_filtered(exchange):
                return filtered_reply(exchange)
            headers = error.response.headers
            raise status_error(
                error.status_code, exchange, retry_after(headers), headers.get("location", "")
            ) from error
        return read_chat_completion(raw.http_request.extensions[EXCHANGE], retry_after(raw.headers))

    def _client(self, endpoint: Endpoint) -> openai.OpenAI:
        with self._lock:
            client = self._clients.get(endpoint)
            if client is None:
                client = self._clients[endpoint] = self._new_client(endpoint)
            return client

    def _new_client(self, endpoint: Endpoint) -> openai.OpenAI:
        http_client = guarded_client(headers=self.headers(endpoint), secrets=(endpoint.key,), timeout=endpoint.timeout)
        return openai.OpenAI(
            # The transport puts the key in. None here would make the SDK look for keys in the environment.
            api_key="set-by-the-transport",
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=http_client.timeout,
            http_client=http_client,
        )


def _exchange(error: openai.APIError) -> Exchange:
    found: Exchange = error.request.extensions.get(EXCHANGE) or Exchange()
    return found


PROVIDER = OpenAICompatible()

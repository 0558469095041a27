"""Yandex AI Studio, which speaks chat completions: through the OpenAI SDK.

The model is `gpt://folder/model/version`; a configuration names `model/version` and the folder apart, or the whole.
By default Yandex keeps what it is sent: the header that forbids it goes with every request. Sources:
https://yandex.cloud/en/docs/ai-studio/concepts/api, https://yandex.cloud/ru/docs/ai-studio/operations/disable-logging
"""

from llmruns.providers.base import Endpoint, Question
from llmruns.providers.openai_compatible import OpenAICompatible


class Yandex(OpenAICompatible):
    def model_name(self, question: Question) -> str:
        if "://" in question.model or not question.folder:
            return question.model
        return f"gpt://{question.folder}/{question.model}"

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        headers = {"x-data-logging-enabled": "false"}
        if endpoint.key:
            headers["Authorization"] = f"Api-Key {endpoint.key}"
        if endpoint.folder:
            headers["OpenAI-Project"] = endpoint.folder
        return headers


PROVIDER = Yandex()

"""A model that nobody runs, for the demonstration study: answers of known kinds, no network.

Only studies marked as simulated may have it. The model's name carries its skill: `simulated-0.8`.
"""

import json
import random
from typing import Any

from corpus.builtin import FOLDER
from corpus.importing import read_stimuli
from corpus.simulation import simulated_kind, variants
from llmruns.providers.base import Endpoint, Exchange, ProviderReply, Question, ServerError
from llmruns.providers.simulated_judge import simulated_judgement

BAD_FORMAT = 0.06  # how often the reply is not in the required format, so that attempts are seen to be counted
SERVER_ERROR = 0.01


class Simulated:
    def __init__(self) -> None:
        self._stimuli = read_stimuli((FOLDER / "stimuli.csv").read_bytes())
        self._random = random.Random()  # noqa: S311  # not for secrets; a model repeats itself as little

    def request_body(self, question: Question) -> dict[str, Any]:
        return {
            "model": question.model,
            "messages": [{"role": "user", "content": question.prompt}],
            **({"temperature": question.temperature} if question.temperature is not None else {}),
        }

    def ask(self, endpoint: Endpoint, body: dict[str, Any]) -> ProviderReply:
        if self._random.random() < SERVER_ERROR:
            raise ServerError("simulated", exchange=Exchange(503, b"simulated", sent=True))
        prompt: str = body["messages"][0]["content"]
        skill = float(body["model"].rpartition("-")[2])
        judgement = simulated_judgement(prompt, self._stimuli, skill=skill, rng=self._random)
        reply = json.dumps(judgement or {"results": self._answer(prompt, skill=skill)}, ensure_ascii=False)
        if self._random.random() < BAD_FORMAT:
            reply = f"Вот исправленное предложение: {reply}"
        document = {
            "model": body["model"],
            "choices": [{"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(reply) // 4},
        }
        return ProviderReply(
            text=reply,
            refusal=None,
            finish_reason="stop",
            model=body["model"],
            input_tokens=len(prompt) // 4,
            output_tokens=len(reply) // 4,
            exchange=Exchange(200, json.dumps(document, ensure_ascii=False).encode(), sent=True),
            document=document,
        )

    def _answer(self, prompt: str, *, skill: float) -> str:
        stimulus = next((row for row in self._stimuli if prompt.rstrip().endswith(row.text)), None)
        if stimulus is None:
            return "не знаю"
        kind = simulated_kind(skill=skill, complexity=stimulus.complexity, shuffled=stimulus.shuffled, rng=self._random)
        return variants(stimulus.text, stimulus.original)[kind]


PROVIDER = Simulated()

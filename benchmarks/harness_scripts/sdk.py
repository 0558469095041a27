"""The vendor's SDK on 32 threads and nothing else: what a loop in a notebook does."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai

address, prompts, threads = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")), int(sys.argv[3])
client = openai.OpenAI(base_url=address, api_key="none", max_retries=20)


def ask(prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    return (
        client.chat.completions.create(model="test-model", temperature=1.0, messages=messages)
        .choices[0]
        .message.content
    )


with ThreadPoolExecutor(threads) as pool:
    print(sum(bool(text) for text in pool.map(ask, prompts)))

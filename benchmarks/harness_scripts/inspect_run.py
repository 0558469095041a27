"""Inspect on the same prompts: one sample each, no scorer, its log written as it is by default."""

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.solver import generate

address, prompts, connections = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")), int(sys.argv[3])
model = get_model(
    "openai-api/bench/test-model",
    base_url=address,
    api_key="none",
    config=GenerateConfig(max_connections=connections, temperature=1.0),
)
task = Task(dataset=[Sample(input=prompt) for prompt in prompts], solver=generate())
log = eval(task, model=model, display="none", log_dir=sys.argv[4], max_samples=connections)[0]
print(sum(bool(sample.output.completion) for sample in log.samples or []))

"""lm-eval on the same prompts through local-chat-completions; its samples are logged, its metric is exact match."""

import json
import sys
from pathlib import Path

import lm_eval

address, prompts, connections = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")), int(sys.argv[3])
folder = Path(sys.argv[4])
folder.mkdir(parents=True, exist_ok=True)
data = folder / "data.jsonl"
data.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts), encoding="utf-8")
task = {
    "task": "sentences",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": str(data)}},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{prompt}}",
    "doc_to_target": "x",
    "generation_kwargs": {"until": [], "max_gen_toks": 256, "temperature": 1.0, "do_sample": True},
    "metric_list": [{"metric": "exact_match"}],
}
found = lm_eval.simple_evaluate(
    model="local-chat-completions",
    model_args=f"base_url={address}/chat/completions,model=test-model,num_concurrent={connections},max_retries=20",
    tasks=[task],
    apply_chat_template=True,
    log_samples=True,
    bootstrap_iters=0,
)
samples = found["samples"]["sentences"]
(folder / "samples.jsonl").write_text("".join(json.dumps(one, default=str) + "\n" for one in samples), encoding="utf-8")
print(sum(bool(sample["resps"][0][0]) for sample in samples))

"""How fast classifiers judge on a processor: our sorted batches beside the transformers pipeline.

A BERT of base size with random weights (speed does not ask what they say) over 500 sentences of RuCoLA, threads equal.
Wall time and processor time are both given: the second hardly feels what else the machine does. docs/benchmarks.md says
how to read the figures. `SENTENCES` and `THREADS` in the environment change the defaults.
"""

import csv
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import django
import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    pipeline,
)

from scoring.classifiers import recipes
from scoring.classifiers.data import Task, dataset_of, read_csv
from scoring.classifiers.packing import packed
from scoring.classifiers.transformer import BUDGET, Net, Transformer, columns_of

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

RUCOLA = Path(__file__).resolve().parents[2] / "shared" / "data" / "rucola"
SENTENCES = int(os.environ.get("SENTENCES", "500"))
THREADS = int(os.environ.get("THREADS", "1"))
CRITERIA = ("grammatical", "logical", "order")


def sentences(name: str = "in_domain_dev.csv", n: int = SENTENCES) -> list[str]:
    with (RUCOLA / name).open(encoding="utf-8", newline="") as stream:
        found = [row["sentence"] for row in csv.DictReader(stream)]
    return random.Random(1).sample(found, n)


def tokenizer_make(texts: Sequence[str], size: int = 30_000) -> Any:
    """WordPiece of the data's own, so that tokens are as long as those of a Russian BERT."""

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
    )


def net_make(tokenizer: Any, labels: int, seed: int) -> Any:

    torch.manual_seed(seed)
    return BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), num_labels=labels)).eval()


def classifier_make(tokenizer: Any, nets: list[Any]) -> Any:

    tasks = tuple(Task(code, (0.0, 1.0)) for code in CRITERIA)
    columns = columns_of(tasks, len(nets), nets[0].config.num_labels)
    return Transformer(tasks, list(map(Net, nets, columns)), tokenizer, {}, 256)


def piped(nets: list[Any], tokenizer: Any, texts: list[str], size: int) -> np.ndarray:
    """texts × outputs of all networks, one pipeline after the other; raw scores, as `logits` below."""

    found = []
    for net in nets:
        classify = pipeline("text-classification", model=net, tokenizer=tokenizer, device=-1, batch_size=size)
        rows = classify(texts, top_k=None, function_to_apply="none", truncation=True, max_length=256)
        names = [f"LABEL_{place}" for place in range(net.config.num_labels)]
        found.append([[{one["label"]: one["score"] for one in row}[name] for name in names] for row in rows])
    return np.concatenate([np.array(one) for one in found], axis=1)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def softmax_pairs(logits: np.ndarray) -> list[np.ndarray]:
    """The probabilities of each criterion, two outputs each."""
    found = []
    for start in range(0, logits.shape[1], 2):
        raised = np.exp(logits[:, start : start + 2] - logits[:, start : start + 2].max(axis=1, keepdims=True))
        found.append(raised / raised.sum(axis=1, keepdims=True))
    return found


def rows_of(name: str, nets: list[Any], tokenizer: Any, texts: list[str]) -> dict[str, dict[str, float]]:

    found: dict[str, dict[str, float]] = {}
    expected: list[np.ndarray] = []

    def row(label: str, work: Callable[[], list[np.ndarray]]) -> None:
        result, wall, cpu = timed(work)
        if not expected:
            expected.extend(result)
        furthest = max(float(np.abs(one - other).max()) for one, other in zip(result, expected, strict=True))
        found[label] = {
            "sentences/s": round(len(texts) / wall, 2),
            "sentences/cpu-s": round(len(texts) / cpu, 2),
            "furthest": furthest,
        }
        print(f"  {name}, {label}: {found[label]}", flush=True)

    row("pipeline", lambda: softmax_pairs(piped(nets, tokenizer, texts, 1)))
    row("pipeline, batches of 32", lambda: softmax_pairs(piped(nets, tokenizer, texts, 32)))
    classifier = classifier_make(tokenizer, [packed(net, BUDGET) for net in nets])  # as it is loaded to judge
    row("sorted batches", lambda: classifier.predict(texts)[0])
    assert found["sorted batches"]["furthest"] < 1e-4, "the outputs differ"
    half = classifier_make(tokenizer, [packed(net.to(torch.bfloat16), BUDGET) for net in nets])
    row("sorted batches, bf16", lambda: half.predict(texts)[0])
    return found


def small_base(folder: Path, tokenizer: Any = None) -> Path:
    """A small BERT that has learned nothing yet, as a base model for where no other is at hand."""
    tokenizer = tokenizer or tokenizer_make(sentences("in_domain_train.csv", 7_869))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512
    )
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def trained_difference(tokenizer: Any) -> dict[str, float]:
    """bf16 beside float32 on a model that has learned something: a small BERT, two epochs of RuCoLA, from nothing."""

    columns = read_csv(RUCOLA / "in_domain_train.csv", text_column="sentence", label_column="acceptable")
    dataset = dataset_of(columns, code="acceptable", language="ru")
    with tempfile.TemporaryDirectory() as folder:
        base = small_base(Path(folder) / "base", tokenizer)
        parameters = recipes.parameters_of(recipes.TRANSFORMER, {"epochs": 2, "learning_rate": 5e-4})
        model = recipes.train(
            recipes.TRANSFORMER,
            dataset,
            parameters,
            base=str(base),
            seed=1,
            progress=lambda done, total: None,
            threads=THREADS,
        )
    texts = sentences(n=983)
    full = model.predict(texts)[0][0]
    for net in model.nets:
        net.model = packed(net.model.to(torch.bfloat16), BUDGET)
    half = model.predict(texts)[0][0]
    return {
        "spread of the probabilities": float(full[:, 1].std()),
        "furthest": float(np.abs(full - half).max()),
        "decisions that change, of 983": int(((full[:, 1] >= 0.5) != (half[:, 1] >= 0.5)).sum()),
    }


def ceiling(mean_tokens: float) -> dict[str, float]:
    """Sentences per second if nothing but a base-sized encoder's matrix products had to be done, 384 tokens at a time.

    What the processor gives at this moment: a busy neighbour on the same core halves it, and everything else with it.
    """
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        square, up = torch.nn.Linear(768, 768).to(dtype), torch.nn.Linear(768, 3_072).to(dtype)
        down, tokens = torch.nn.Linear(3_072, 768).to(dtype), torch.randn(384, 768).to(dtype)

        def encoder(square: Any = square, up: Any = up, down: Any = down, tokens: Any = tokens) -> None:
            for _ in range(12):
                for _ in range(4):
                    square(tokens)
                down(up(tokens))

        encoder()
        _, wall, cpu = timed(lambda encoder=encoder: [encoder() for _ in range(10)])
        name = str(dtype).removeprefix("torch.")
        found |= {name: round(3_840 / mean_tokens / wall, 2), f"{name}, cpu-s": round(3_840 / mean_tokens / cpu, 2)}
    return found


def measure() -> str:
    if not RUCOLA.exists():
        return "RuCoLA is not in ../shared/data: nothing measured"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads equal
    os.environ.setdefault("SECRET_KEY", "benchmarks-read-no-session-and-sign-nothing")
    os.environ.setdefault("PUBLIC_URL", "http://127.0.0.1")
    os.environ.setdefault("DATABASE_URL", "postgres://nobody@/nothing")
    os.environ.setdefault("BROKER_URL", "redis://127.0.0.1/0")
    django.setup()

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    texts = sentences()
    tokenizer = tokenizer_make(sentences("in_domain_train.csv", 7_869))
    lengths = [len(ids) for ids in tokenizer(texts)["input_ids"]]
    print(
        f"  {len(texts)} sentences of {min(lengths)} to {max(lengths)} tokens, mean {sum(lengths) / len(lengths):.1f}"
    )
    with torch.inference_mode():
        highest = ceiling(sum(lengths) / len(lengths))
        print(f"  matrix products alone, one encoder: {highest}", flush=True)
        three = rows_of("three models", [net_make(tokenizer, 2, seed) for seed in (1, 2, 3)], tokenizer, texts)
        shared = rows_of("one encoder, three heads", [net_make(tokenizer, 6, 1)], tokenizer, texts)
        again = ceiling(sum(lengths) / len(lengths))
    differs = trained_difference(tokenizer)
    return json.dumps(
        {
            "threads": THREADS,
            "ceiling": [highest, again],
            "three": three,
            "shared": shared,
            "bf16 on a trained model": differs,
        }
    )

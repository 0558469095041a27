"""Encoders with a head: one network for each criterion, or one for several. Imported by `recipes`, when needed."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from scoring.classifiers import finetuning
from scoring.classifiers.data import Dataset, Progress, Task
from scoring.classifiers.packing import packed
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.storing import disk_errors
from scoring.classifiers.tokens import Encoded, batches_of, encode, padded
from scoring.classifiers.weights import LOCAL, base_load, tokenizer_load

BUDGET = 384  # tokens of one batch, padding included: measured, fewer and more are slower on a processor


@dataclass
class Net:
    """One network. `columns`: of each of its tasks (by place in the classifier's), outputs in the order of classes."""

    model: Any
    columns: dict[int, list[int]]


class Transformer:
    def __init__(
        self,
        tasks: tuple[Task, ...],
        nets: Sequence[Net],
        tokenizer: Any,
        thresholds: dict[str, float],
        max_tokens: int,
    ) -> None:
        self.tasks = tasks
        self.nets = list(nets)
        self.tokenizer = tokenizer
        self.thresholds = thresholds
        self.max_tokens = max_tokens

    def predict(self, texts: Sequence[str], progress: Progress | None = None) -> tuple[list[NDArray[Any]], list[bool]]:
        """For each task texts × classes probabilities; for each text whether only its beginning was read."""
        encoded = encode(self.tokenizer, texts, self.max_tokens)
        found = [torch.empty(len(texts), len(task.classes)) for task in self.tasks]
        batches = batches_of([len(ids) for ids in encoded.ids], BUDGET)
        total, done = len(texts) * len(self.nets), 0
        for net in self.nets:
            for batch in batches:
                logits = self._logits(net, encoded, batch)
                for task, columns in net.columns.items():
                    found[task][batch] = torch.softmax(logits[:, columns], dim=1)
                done += len(batch)
                if progress:
                    progress(done, total)
        return [one.numpy() for one in found], encoded.cut

    def _logits(self, net: Net, encoded: Encoded, batch: list[int]) -> torch.Tensor:
        net.model.eval()
        with torch.inference_mode():
            ids, mask = padded([encoded.ids[row] for row in batch], self.tokenizer.pad_token_id)
            logits: torch.Tensor = net.model(input_ids=ids, attention_mask=mask).logits
        return logits.float()

    def save(self, folder: Path) -> None:
        with disk_errors(folder):
            self.tokenizer.save_pretrained(folder / "tokenizer")
            for number, net in enumerate(self.nets):
                net.model.save_pretrained(folder / f"net-{number}")

    @classmethod
    def load(
        cls,
        folder: Path,
        tasks: tuple[Task, ...],
        thresholds: dict[str, float],
        parameters: dict[str, Any],
        *,
        bf16: bool = False,
        threads: int | None = None,
    ) -> "Transformer":
        """To judge by (see `packing`). Raises ClassifierError weights_corrupt."""
        if threads:
            torch.set_num_threads(threads)
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder / "tokenizer"), **LOCAL)
            nets = []
            for path in sorted(folder.glob("net-*"), key=lambda path: int(path.name.removeprefix("net-"))):
                model, info = AutoModelForSequenceClassification.from_pretrained(
                    str(path),
                    output_loading_info=True,
                    use_safetensors=True,
                    dtype=torch.bfloat16 if bf16 else torch.float32,
                    **LOCAL,
                )
                if info["missing_keys"]:
                    raise ValueError(f"{path.name} has no {min(info['missing_keys'])}")
                nets.append(packed(model, BUDGET))
        except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
            raise ClassifierError("weights_corrupt", error=str(error)[:200]) from error
        columns = columns_of(tasks, len(nets), nets[0].config.num_labels if nets else 0)
        return cls(tasks, list(map(Net, nets, columns)), tokenizer, thresholds, int(parameters["max_tokens"]))


def columns_of(tasks: tuple[Task, ...], n_nets: int, n_outputs: int) -> list[dict[int, list[int]]]:
    """Which outputs of which network are whose: a network for each task, one with a head each, or one head for all.

    Raises ClassifierError weights_corrupt where the numbers fit none of them.
    """
    sizes = [len(task.classes) for task in tasks]
    if n_nets == len(tasks) and (n_nets > 1 or n_outputs == sum(sizes)):
        return [{place: list(range(size))} for place, size in enumerate(sizes)]
    if n_nets == 1 and n_outputs == sum(sizes):
        starts = [sum(sizes[:place]) for place in range(len(sizes))]
        places = enumerate(zip(starts, sizes, strict=True))
        return [{place: list(range(start, start + size)) for place, (start, size) in places}]
    if n_nets == 1 and set(sizes) == {n_outputs}:
        return [{place: list(range(n_outputs)) for place in range(len(sizes))}]
    raise ClassifierError("weights_corrupt", error=f"{n_nets} networks do not fit {len(tasks)} criteria")


def adopt(base: Path, tasks: tuple[Task, ...], parameters: dict[str, Any]) -> Transformer:
    """A classifier as it is, for criteria of two values: its second label is the upper value of each.

    Raises ClassifierError base_wrong_kind, base_corrupt.
    """
    name = base.name.replace("--", "/")
    model = base_load(base, labels=None)
    if model.config.num_labels != 2 or any(len(task.classes) != 2 for task in tasks):
        what = f"it has {model.config.num_labels} labels, and two are needed, of criteria of two values"
        raise ClassifierError("base_wrong_kind", base=name, error=what)
    net = Net(model, {place: [0, 1] for place in range(len(tasks))})
    return Transformer(tasks, [net], tokenizer_load(base, name), {}, int(parameters["max_tokens"]))


def train(
    dataset: Dataset,
    parameters: dict[str, Any],
    *,
    base: Path,
    shared: bool,
    seed: int,
    progress: Progress,
    checkpoint: Path | None = None,
    threads: int | None = None,
) -> Transformer:
    """Fine-tune a network for each task, or one for all. See `finetuning.finetune`."""
    dataset.check()
    if threads:
        torch.set_num_threads(threads)
    tokenizer = tokenizer_load(base, base.name.replace("--", "/"))
    places = list(range(len(dataset.tasks)))
    plan = [places] if shared else [[place] for place in places]
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # of torch about its own schedules and of tokenizers about forks
        trained = finetuning.finetune(
            dataset,
            plan,
            parameters,
            base=base,
            tokenizer=tokenizer,
            seed=seed,
            progress=progress,
            checkpoint=checkpoint,
        )
    columns = columns_of(dataset.tasks, len(plan), sum(len(task.classes) for task in dataset.tasks))
    nets = list(map(Net, trained.models, columns))
    return Transformer(dataset.tasks, nets, tokenizer, trained.thresholds, int(parameters["max_tokens"]))

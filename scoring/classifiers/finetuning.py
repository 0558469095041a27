"""Training of encoders: plain epochs of AdamW, deterministic, taken up again after the last whole epoch.

Every epoch draws its order and its dropout from a seed of its own, so that a training that was killed and taken up
again ends with the very weights of one that was not.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch.nn import functional

from scoring.classifiers.data import Dataset, Progress
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.storing import folder_write
from scoring.classifiers.thresholds import best_threshold
from scoring.classifiers.tokens import batches_of, encode, padded
from scoring.classifiers.weights import base_load
from scoring.evaluation import confusion, f1_macro
from scoring.splitting import cut

NO_LABEL = -100
CLIP = 1.0
SORTED_TOGETHER = 16  # batches within which texts of like length come together
DEV_BUDGET = 512


@dataclass
class Trained:
    models: list[Any] = field(default_factory=list)
    thresholds: dict[str, float] = field(default_factory=dict)


@dataclass
class _Epoch:
    """How far the network that is being trained has come: `number` epochs are done."""

    number: int = 0
    best: float | None = None  # macro F1 on the cut, where there is one
    best_number: int = 0


def finetune(
    dataset: Dataset,
    plan: list[list[int]],
    parameters: dict[str, Any],
    *,
    base: Path,
    tokenizer: Any,
    seed: int,
    progress: Progress,
    checkpoint: Path | None,
) -> Trained:
    """A network for each list of tasks in `plan`. Raises ClassifierError, and whatever `progress` raises."""
    keeper = _Keeper(checkpoint, _fingerprint(dataset, plan, parameters, base, seed))
    encoded = encode(tokenizer, [example.text for example in dataset.examples], int(parameters["max_tokens"])).ids
    tuning = cut([e.group for e in dataset.examples], seed=seed, fraction=float(parameters["cut"]))
    jobs = [
        _Job(dataset, tasks, parameters, encoded, tuning, tokenizer.pad_token_id, seed, number)
        for number, tasks in enumerate(plan)
    ]
    total = sum(job.steps for job in jobs)
    trained, before = Trained(), 0
    for job in jobs:
        model = keeper.finished(job, base)
        if model is None:
            model = job.run(base, keeper, lambda done, before=before: progress(before + done, total))
            keeper.finish(job, model)
        before += job.steps
        progress(before, total)
        trained.thresholds |= job.thresholds(model)
        trained.models.append(model)
    return trained


class _Job:
    """The training of one network."""

    def __init__(
        self,
        dataset: Dataset,
        tasks: list[int],
        parameters: dict[str, Any],
        encoded: list[list[int]],
        tuning: frozenset[str],
        pad: int,
        seed: int,
        number: int,
    ) -> None:
        self.tasks = [dataset.tasks[place] for place in tasks]
        self.number = number
        self.seed = seed
        self.pad = pad
        self.encoded = encoded
        self.parameters = parameters
        self.epochs = int(parameters["epochs"])
        self.batch_size = int(parameters["batch_size"])
        targets = [[example.targets[place] for place in tasks] for example in dataset.examples]
        self.targets = torch.tensor([[NO_LABEL if t is None else t for t in row] for row in targets])
        labelled = [row for row, values in enumerate(targets) if any(value is not None for value in values)]
        self.rows = [row for row in labelled if dataset.examples[row].group not in tuning]
        self.tuning_rows = [row for row in labelled if dataset.examples[row].group in tuning]
        self.steps_in_epoch = -(-len(self.rows) // self.batch_size)
        self.steps = self.steps_in_epoch * self.epochs
        ends = np.cumsum([len(task.classes) for task in self.tasks])
        self.slices = [
            slice(int(end) - len(task.classes), int(end)) for end, task in zip(ends, self.tasks, strict=True)
        ]

    @property
    def outputs(self) -> int:
        return self.slices[-1].stop

    def seed_of(self, epoch: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{self.number}/{epoch}".encode()).digest()[:6], "big")

    def run(self, base: Path, keeper: "_Keeper", report: Any) -> Any:
        torch.manual_seed(self.seed_of(-1))
        model = base_load(base, labels=self.outputs)
        optimizer = _optimizer(model, self.parameters)
        at = keeper.resume(self, model, optimizer)
        best = keeper.best(self) if at.best is not None else None
        report(at.number * self.steps_in_epoch)
        while at.number < self.epochs:
            self._epoch(model, optimizer, at.number, report)
            at.number += 1
            if self.tuning_rows:
                found = self.measure(model)
                if at.best is None or found > at.best:
                    at.best, at.best_number = found, at.number
                    best = {name: value.clone() for name, value in model.state_dict().items()}
            if at.number < self.epochs:
                keeper.keep(self, model, optimizer, at, best)
        if best is not None:
            model.load_state_dict(best)
        return model

    def _epoch(self, model: Any, optimizer: Any, number: int, report: Any) -> None:
        torch.manual_seed(self.seed_of(number))
        model.train()
        for step, batch in enumerate(self._batches(number), start=number * self.steps_in_epoch):
            for group in optimizer.param_groups:
                group["lr"] = self.rate(step)
            ids, mask = padded([self.encoded[row] for row in batch], self.pad)
            loss = self._loss(model(input_ids=ids, attention_mask=mask).logits, self.targets[batch])
            if not torch.isfinite(loss):
                raise ClassifierError("diverged")
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            report(step + 1)

    def _batches(self, epoch: int) -> Iterator[list[int]]:
        """A shuffle in which texts of like length come together, so that little is padded."""
        drawn = torch.Generator().manual_seed(self.seed_of(epoch))
        order = [self.rows[place] for place in torch.randperm(len(self.rows), generator=drawn).tolist()]
        batches = []
        size = self.batch_size * SORTED_TOGETHER
        for start in range(0, len(order), size):
            alike = sorted(order[start : start + size], key=lambda row: len(self.encoded[row]))
            batches += [alike[place : place + self.batch_size] for place in range(0, len(alike), self.batch_size)]
        for place in torch.randperm(len(batches), generator=drawn).tolist():
            yield batches[place]

    def rate(self, step: int) -> float:
        """Rises over the first `warmup` share of the steps, then falls to 0 at the end, both in a straight line."""
        rising = int(self.steps * float(self.parameters["warmup"]))
        top = float(self.parameters["learning_rate"])
        if step < rising:
            return top * (step + 1) / (rising + 1)
        return top * (self.steps - step) / max(1, self.steps - rising)

    def _loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy, the mean over the texts with a label of each criterion, then over the criteria."""
        losses = []
        for place, columns in enumerate(self.slices):
            wanted = targets[:, place]
            if bool((wanted != NO_LABEL).any()):
                losses.append(functional.cross_entropy(logits[:, columns], wanted, ignore_index=NO_LABEL))
        return torch.stack(losses).mean()

    def _probabilities(self, model: Any) -> torch.Tensor:
        """Of the respondents held back: their texts × outputs, softmax within each criterion."""
        model.eval()
        found = torch.empty(len(self.tuning_rows), self.outputs)
        with torch.inference_mode():
            for batch in batches_of([len(self.encoded[row]) for row in self.tuning_rows], DEV_BUDGET):
                ids, mask = padded([self.encoded[self.tuning_rows[place]] for place in batch], self.pad)
                logits = model(input_ids=ids, attention_mask=mask).logits
                for columns in self.slices:
                    found[batch, columns] = torch.softmax(logits[:, columns], dim=1)
        return found

    def measure(self, model: Any) -> float:
        """Macro F1 on the respondents held back, the mean over the criteria."""
        probabilities = self._probabilities(model)
        scores = []
        for place, (columns, task) in enumerate(zip(self.slices, self.tasks, strict=True)):
            truth = self.targets[self.tuning_rows][:, place]
            known = truth != NO_LABEL
            if bool(known.any()):
                said = probabilities[known][:, columns].argmax(dim=1)
                table = confusion(truth[known].tolist(), said.tolist(), list(range(len(task.classes))))
                scores.append(float(f1_macro(np.array(table, dtype=float))))
        return sum(scores) / len(scores) if scores else 0.0

    def thresholds(self, model: Any) -> dict[str, float]:
        """Of the criteria of two values, where respondents are held back."""
        if not self.tuning_rows:
            return {}
        probabilities, found = self._probabilities(model).numpy(), {}
        for place, (columns, task) in enumerate(zip(self.slices, self.tasks, strict=True)):
            truth = self.targets[self.tuning_rows][:, place].numpy()
            if len(task.classes) == 2 and (truth != NO_LABEL).any():
                known = truth != NO_LABEL
                best = best_threshold(probabilities[known][:, columns][:, 1], truth[known])
                if best is not None:
                    found[task.code] = best
        return found


def _optimizer(model: Any, parameters: dict[str, Any]) -> torch.optim.AdamW:
    """Biases and norms do not decay, as usual."""
    named = list(model.named_parameters())
    groups = [
        {"params": [p for _, p in named if p.ndim >= 2], "weight_decay": float(parameters["weight_decay"])},
        {"params": [p for _, p in named if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=float(parameters["learning_rate"]))


def _fingerprint(dataset: Dataset, plan: list[list[int]], parameters: dict[str, Any], base: Path, seed: int) -> str:
    parts = [dataset.hash(), plan, parameters, str(base), seed, torch.__version__]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Keeper:
    """The folder of what is done so far, worth something only to a training with the same fingerprint."""

    def __init__(self, folder: Path | None, fingerprint: str) -> None:
        self.folder = folder
        if folder is None:
            return
        note = folder / "fingerprint"
        if not note.is_file() or note.read_text() != fingerprint:
            shutil.rmtree(folder, ignore_errors=True)

            def write(into: Path) -> None:
                (into / "fingerprint").write_text(fingerprint)

            folder_write(folder, write)

    def finish(self, job: _Job, model: Any) -> None:
        if self.folder is not None:
            folder_write(self.folder / f"net-{job.number}", lambda into: save_file(_state(model), into / "model"))
            shutil.rmtree(self.folder / f"epoch-{job.number}", ignore_errors=True)

    def finished(self, job: _Job, base: Path) -> Any:
        if self.folder is None or not (self.folder / f"net-{job.number}").is_dir():
            return None
        torch.manual_seed(job.seed_of(-1))
        model = base_load(base, labels=job.outputs)
        model.load_state_dict(load_file(self.folder / f"net-{job.number}" / "model"))
        return model

    def keep(self, job: _Job, model: Any, optimizer: Any, at: _Epoch, best: dict[str, torch.Tensor] | None) -> None:
        if self.folder is None:
            return

        def write(into: Path) -> None:
            save_file(_state(model), into / "model")
            state = optimizer.state_dict()["state"]
            save_file(
                {f"{place}.{key}": value for place, kept in state.items() for key, value in kept.items()},
                into / "optimizer",
            )
            if best is not None:
                save_file({name: value.clone().contiguous() for name, value in best.items()}, into / "best")
            (into / "at.json").write_text(json.dumps(vars(at)))

        folder_write(self.folder / f"epoch-{job.number}", write)

    def resume(self, job: _Job, model: Any, optimizer: Any) -> _Epoch:
        """Where to go on. What cannot be read is begun anew."""
        if self.folder is None or not (self.folder / f"epoch-{job.number}").is_dir():
            return _Epoch()
        kept = self.folder / f"epoch-{job.number}"
        try:
            at = _Epoch(**json.loads((kept / "at.json").read_text()))
            weights, moments = load_file(kept / "model"), load_file(kept / "optimizer")
        except (OSError, ValueError, TypeError, SafetensorError):
            return _Epoch()
        model.load_state_dict(weights)
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in moments.items():
            place, _, key = name.partition(".")
            state.setdefault(int(place), {})[key] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return at

    def best(self, job: _Job) -> dict[str, torch.Tensor] | None:
        if self.folder is None:
            return None
        path = self.folder / f"epoch-{job.number}" / "best"
        return dict(load_file(path)) if path.is_file() else None


def _state(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone().contiguous() for name, value in model.state_dict().items()}

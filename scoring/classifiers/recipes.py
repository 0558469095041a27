"""What can be trained, and how a trained one is loaded. Engines are imported when they are needed: torch takes seconds
and gigabytes, and may not be there."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from django.utils.translation import gettext_lazy as _
from numpy.typing import NDArray

from scoring.classifiers.bases import base_find
from scoring.classifiers.data import Dataset, Progress, Said, Task, decide
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.storing import description_read, description_write, folder_hash

BASELINE, TRANSFORMER, SHARED, ACCEPTABILITY = "baseline", "transformer", "shared", "acceptability"
RECIPES = (BASELINE, TRANSFORMER, SHARED, ACCEPTABILITY)
NEEDS_LABELS = (BASELINE, TRANSFORMER, SHARED)

RUBERT = "ai-forever/ruBert-base"
BASES = {BASELINE: "", TRANSFORMER: RUBERT, SHARED: RUBERT, ACCEPTABILITY: "RussianNLP/ruRoBERTa-large-rucola"}
# The study's own: five epochs, 2e-5. `cut` is the share of training respondents held back to choose the best epoch and
# a threshold by; 0 trains on all, as the study did.
_LEARNING = {
    "epochs": 5,
    "learning_rate": 2e-5,
    "batch_size": 16,
    "max_tokens": 256,
    "warmup": 0.1,
    "weight_decay": 0.01,
    "cut": 0.0,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    BASELINE: {"C": 0.3, "folds": 5, "min_texts": 2},
    TRANSFORMER: _LEARNING,
    SHARED: _LEARNING,
    ACCEPTABILITY: {"max_tokens": 256},
}
_READS_ANSWERS = _("Reads the answer alone, not the task: it cannot see that words were inserted or left out.")
# What whoever reads its figures should know.
LIMITS = {
    BASELINE: _(
        "Knows word forms and letters, not meaning: weak where answers resemble those it learned from, near chance "
        "where they do not."
    ),
    TRANSFORMER: _READS_ANSWERS,
    SHARED: _READS_ANSWERS,
    ACCEPTABILITY: _("Trained by others to tell acceptable sentences; says the same of an answer on every criterion."),
}


class Model(Protocol):
    """What every recipe makes."""

    tasks: tuple[Task, ...]
    thresholds: dict[str, float]

    def predict(self, texts: Sequence[str], progress: Progress | None = None) -> tuple[list[NDArray[Any]], list[bool]]:
        """For each task texts × classes probabilities; for each text whether only its beginning was read."""
        ...

    def save(self, folder: Path) -> None: ...


def parameters_of(recipe: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's parameters with those given instead of the defaults. Raises KeyError for one it does not have."""
    unknown = set(given) - set(DEFAULTS[recipe])
    if unknown:
        raise KeyError(", ".join(sorted(unknown)))
    return {**DEFAULTS[recipe], **given}


def _transformers() -> Any:
    """The engine of all recipes but the baseline. Raises ClassifierError torch_missing."""
    try:
        return importlib.import_module("scoring.classifiers.transformer")
    except ModuleNotFoundError as error:
        raise ClassifierError("torch_missing") from error


def train(
    recipe: str,
    dataset: Dataset,
    parameters: dict[str, Any],
    *,
    base: str = "",
    seed: int,
    progress: Progress,
    checkpoint: Path | None = None,
    threads: int | None = None,
) -> Model:
    """Deterministic under its seed, on one kind of machine. `checkpoint`: where a killed training is taken up again.

    Raises ClassifierError, and whatever `progress` raises.
    """
    model: Model
    if recipe == BASELINE:
        engine = importlib.import_module("scoring.classifiers.baseline")
        model = engine.train(dataset, parameters, seed=seed, progress=progress)
        return model
    engine = _transformers()
    folder = base_find(base or BASES[recipe])
    if recipe == ACCEPTABILITY:
        model = engine.adopt(folder, dataset.tasks, parameters)
        progress(1, 1)
        return model
    model = engine.train(
        dataset,
        parameters,
        base=folder,
        shared=recipe == SHARED,
        seed=seed,
        progress=progress,
        checkpoint=checkpoint,
        threads=threads,
    )
    return model


def save(model: Model, recipe: str, parameters: dict[str, Any], folder: Path) -> None:
    """Everything but the model card, into a folder that is there."""
    model.save(folder)
    description_write(folder, recipe=recipe, tasks=model.tasks, thresholds=model.thresholds, parameters=parameters)


def load(folder: Path, *, weights_hash: str = "", bf16: bool = False, threads: int | None = None) -> Model:
    """Raises ClassifierError weights_missing, weights_corrupt, torch_missing."""
    described = description_read(folder)
    if weights_hash and folder_hash(folder) != weights_hash:
        raise ClassifierError("weights_corrupt", error="the files are not those that were stored")
    tasks, thresholds = described["tasks"], described["thresholds"]
    model: Model
    if described["recipe"] == BASELINE:
        model = importlib.import_module("scoring.classifiers.baseline").Baseline.load(folder, tasks, thresholds)
    else:
        model = _transformers().Transformer.load(
            folder, tasks, thresholds, described["parameters"], bf16=bf16, threads=threads
        )
    return model


def say(model: Model, texts: Sequence[str], progress: Progress | None = None) -> tuple[list[list[Said]], list[bool]]:
    """For each task what is said of each text; for each text whether only its beginning was read.

    Equal texts are read once.
    """
    unique = list(dict.fromkeys(texts))
    probabilities, cut = model.predict(unique, progress)
    place = {text: index for index, text in enumerate(unique)}
    said = [
        [decide(row, task, model.thresholds) for row in rows.tolist()]
        for task, rows in zip(model.tasks, probabilities, strict=True)
    ]
    return [[column[place[text]] for text in texts] for column in said], [cut[place[text]] for text in texts]

"""The recipe that downloads nothing: logistic regression on tags and letters (scikit-learn).

Weak, and known to be: docs/classifiers.md has its figures. Stored as JSON and as arrays without objects, so that
reading a stored one runs no code of whoever wrote it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold

from scoring.classifiers.data import Dataset, Progress, Task
from scoring.classifiers.features import LONGEST, letter_terms, tag_terms
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.thresholds import best_threshold


class Vocabulary:
    """The terms that occur in at least `least` texts, with tf-idf weights, rows of length 1."""

    def __init__(self, terms: Sequence[str], idf: NDArray[np.float64]) -> None:
        self.terms = list(terms)
        self.idf = idf
        self.places = {term: place for place, term in enumerate(self.terms)}

    @classmethod
    def of(cls, texts: Sequence[Counter[str]], least: int) -> "Vocabulary":
        """idf = ln((1 + n) / (1 + texts with the term)) + 1, as scikit-learn smooths it."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text.keys())
        terms = sorted(term for term, count in counts.items() if count >= least)
        holding = np.array([counts[term] for term in terms], dtype=float)
        return cls(terms, np.log((1 + len(texts)) / (1 + holding)) + 1)

    def weigh(self, texts: Sequence[Counter[str]]) -> sparse.csr_matrix:
        """texts × terms: (1 + ln count) · idf, each row divided by its length."""
        columns: list[int] = []
        values: list[float] = []
        ends = [0]
        for text in texts:
            found = sorted((self.places[term], count) for term, count in text.items() if term in self.places)
            places = [place for place, _ in found]
            row = (1 + np.log([count for _, count in found])) * self.idf[places] if places else np.zeros(0)
            length = float(np.sqrt((row**2).sum())) or 1.0
            columns += places
            values += (row / length).tolist()
            ends.append(len(columns))
        return sparse.csr_matrix((values, columns, ends), shape=(len(texts), len(self.terms)))


def _counts(texts: Sequence[str], language: str) -> tuple[list[Counter[str]], list[Counter[str]]]:
    """Of each text its tag terms and its letter terms."""
    return [Counter(tag_terms(text, language=language)) for text in texts], [Counter(letter_terms(t)) for t in texts]


class Baseline:
    def __init__(
        self,
        tasks: tuple[Task, ...],
        language: str,
        vocabularies: tuple[Vocabulary, Vocabulary],
        weights: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
        thresholds: dict[str, float],
    ) -> None:
        self.tasks = tasks
        self.language = language
        self.vocabularies = vocabularies
        self.weights = list(weights)  # of each task: classes × terms (one row for two classes), and intercepts
        self.thresholds = thresholds

    def predict(
        self, texts: Sequence[str], progress: Progress | None = None
    ) -> tuple[list[NDArray[np.float64]], list[bool]]:
        """For each task texts × classes probabilities, and whether only a text's beginning was read."""
        features = self._features(texts)
        if progress:
            progress(len(texts), len(texts))
        return [_probabilities(features, *weights) for weights in self.weights], [len(text) > LONGEST for text in texts]

    def _features(self, texts: Sequence[str]) -> sparse.csr_matrix:
        return self.weigh(*_counts(texts, self.language))

    def weigh(self, tags: Sequence[Counter[str]], letters: Sequence[Counter[str]]) -> sparse.csr_matrix:
        """texts × (tag terms, then letter terms)."""
        return sparse.hstack([self.vocabularies[0].weigh(tags), self.vocabularies[1].weigh(letters)], format="csr")

    def save(self, folder: Path) -> None:
        words = {"language": self.language, "tags": self.vocabularies[0].terms, "letters": self.vocabularies[1].terms}
        (folder / "vocabulary.json").write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
        arrays = {"tags": self.vocabularies[0].idf, "letters": self.vocabularies[1].idf}
        for index, (rows, intercepts) in enumerate(self.weights):
            arrays |= {f"rows_{index}": rows, f"intercepts_{index}": intercepts}
        with (folder / "weights.npz").open("wb") as stream:
            np.savez(stream, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, folder: Path, tasks: tuple[Task, ...], thresholds: dict[str, float]) -> "Baseline":
        """Raises ClassifierError weights_corrupt."""
        try:
            words = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
            with (folder / "weights.npz").open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                vocabularies = (
                    Vocabulary(words["tags"], arrays["tags"]),
                    Vocabulary(words["letters"], arrays["letters"]),
                )
                weights = [(arrays[f"rows_{i}"], arrays[f"intercepts_{i}"]) for i in range(len(tasks))]
        except Exception as error:  # whatever zipfile, numpy and json make of damaged bytes
            raise ClassifierError("weights_corrupt", error=f"{type(error).__name__}: {error}"[:200]) from error
        return cls(tasks, str(words["language"]), vocabularies, weights, thresholds)


def _probabilities(
    features: sparse.csr_matrix, rows: NDArray[np.float64], intercepts: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores = np.asarray(features @ rows.T) + intercepts
    if scores.shape[1] == 1:
        upper = 1 / (1 + np.exp(-scores[:, 0]))
        return np.stack([1 - upper, upper], axis=1)
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def train(dataset: Dataset, parameters: dict[str, Any], *, seed: int, progress: Progress) -> Baseline:
    """Fit one regression for each task; of two classes, the threshold by predictions on respondents left out.

    Deterministic. Raises ClassifierError too_few_labels, one_class.
    """
    dataset.check()
    total = 2 * len(dataset.tasks)
    progress(0, total)
    counts = _counts([example.text for example in dataset.examples], dataset.language)
    least = int(parameters["min_texts"])
    vocabularies = (Vocabulary.of(counts[0], least), Vocabulary.of(counts[1], least))
    model = Baseline(dataset.tasks, dataset.language, vocabularies, [], {})
    features = model.weigh(*counts)
    for index, task in enumerate(dataset.tasks):
        kept = [place for place, example in enumerate(dataset.examples) if example.targets[index] is not None]
        rows, targets = features[kept], np.array([dataset.examples[place].targets[index] for place in kept])
        tuned = None
        if len(task.classes) == 2:
            groups = [dataset.examples[place].group for place in kept]
            tuned = _tuned(rows, targets, groups, parameters, seed)
        progress(2 * index + 1, total)
        weights = _expanded(_regression(parameters).fit(rows, targets), len(task.classes))
        if tuned is not None:
            weights = weights[0] * tuned.slope, weights[1] * tuned.slope + tuned.shift
            model.thresholds[task.code] = tuned.threshold
        model.weights.append(weights)
        progress(2 * index + 2, total)
    return model


def _regression(parameters: dict[str, Any]) -> LogisticRegression:
    return LogisticRegression(C=float(parameters["C"]), class_weight="balanced", max_iter=1_000)


def _expanded(fitted: Any, n_classes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows for every class of the scale; one that no text was labelled with is never said."""
    if n_classes == 2 or len(fitted.classes_) == n_classes:
        return fitted.coef_, fitted.intercept_
    coefficients, intercepts = fitted.coef_, fitted.intercept_
    if len(fitted.classes_) == 2:  # one row stands for two: the other's is zero
        coefficients = np.concatenate([np.zeros_like(coefficients), coefficients])
        intercepts = np.concatenate([[0.0], intercepts])
    rows = np.zeros((n_classes, coefficients.shape[1]))
    constants = np.full(n_classes, -1e9)
    rows[fitted.classes_], constants[fitted.classes_] = coefficients, intercepts
    return rows, constants


@dataclass(frozen=True)
class _Tuned:
    """How scores become probabilities (Platt 1999), and from which one on the upper class is said."""

    slope: float
    shift: float
    threshold: float


def _tuned(
    rows: sparse.csr_matrix, targets: NDArray[Any], groups: list[str], parameters: dict[str, Any], seed: int
) -> _Tuned | None:
    """Both by scores of respondents that the fit did not see; None where there are too few of them to tell.

    The threshold is where MCC is highest. The regression itself weighs the classes alike, so that its own probabilities
    are not those of the data.
    """
    folds = min(int(parameters["folds"]), len(set(groups)))
    if folds < 2:
        return None
    scores = np.full(len(targets), np.nan)
    for train_rows, held in StratifiedGroupKFold(folds, shuffle=True, random_state=seed).split(rows, targets, groups):
        if len(set(targets[train_rows])) == 2:
            fitted = _regression(parameters).fit(rows[train_rows], targets[train_rows])
            scores[held] = fitted.decision_function(rows[held])
    known = ~np.isnan(scores)
    if len(set(targets[known])) < 2:
        return None
    scale = LogisticRegression(C=1e6, max_iter=1_000).fit(scores[known][:, None], targets[known])
    slope, shift = float(scale.coef_[0, 0]), float(scale.intercept_[0])
    if slope <= 0:  # no better than chance: a scale turned round would only hide it
        return None
    threshold = best_threshold(1 / (1 + np.exp(-(slope * scores[known] + shift))), targets[known])
    return None if threshold is None else _Tuned(slope, shift, threshold)

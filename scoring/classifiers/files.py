"""Classifiers on files: trained, measured and applied without a study. Nothing here touches the database."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corpus.display import display_text
from scoring.classifiers import recipes, storing
from scoring.classifiers.data import Progress, Said, Texts, dataset_of, read_csv
from scoring.classifiers.problems import ClassifierError
from scoring.evaluation import Report, evaluate


def displayed(columns: Texts, *, lower_case: bool) -> Texts:
    """The texts in the form in which answers are judged (DESIGN, "Display text")."""
    return Texts([display_text(text, lower_case=lower_case) for text in columns.texts], columns.labels, columns.groups)


def train_on(
    columns: Texts,
    *,
    recipe: str,
    base: str,
    parameters: dict[str, Any],
    seed: int,
    language: str,
    criterion: str,
    source: str,
    out: Path,
    progress: Progress,
) -> dict[str, Any]:
    """Train one criterion and store the classifier in the folder `out`, complete or not at all. Returns its card.

    Raises ClassifierError.
    """
    dataset = dataset_of(columns, code=criterion, language=language)
    parameters = recipes.parameters_of(recipe, parameters)
    base = base or recipes.BASES[recipe]
    model = recipes.train(recipe, dataset, parameters, base=base, seed=seed, progress=progress)
    card: dict[str, Any] = {}

    def write(folder: Path) -> None:
        recipes.save(model, recipe, parameters, folder)
        card.update(
            title=out.name,
            recipe=recipe,
            base_model=base,
            parameters=parameters,
            seed=seed,
            language=language,
            criteria=[criterion],
            learned_from={"file": source, "texts": len(columns.texts), "sha256": dataset.hash()},
            thresholds=model.thresholds,
            weights_hash=storing.folder_hash(folder),
            limits=[str(recipes.LIMITS[recipe])],
        )
        storing.card_write(folder, card)

    storing.folder_write(out, write)
    return card


def measure_on(
    model: recipes.Model, columns: Texts, *, seen: Sequence[str] = (), progress: Progress | None = None
) -> dict[str, Report]:
    """Reports on all rows (`all`), and on those whose text is not among `seen` (`unseen`), where it is not empty.

    Raises ClassifierError file_unreadable for a label that the classifier does not know.
    """
    (task,) = model.tasks[:1]
    strange = sorted(set(columns.labels) - set(task.classes))
    if strange:
        raise ClassifierError(
            "file_unreadable", file="", error=f"the classifier does not know the label {strange[0]:g}"
        )
    said, _cut = recipes.say(model, columns.texts, progress)
    known = set(seen)
    everything = list(range(len(columns.texts)))
    rows = {"all": everything}
    if known:
        rows["unseen"] = [row for row in everything if columns.texts[row] not in known]
    return {name: _report(said[0], columns, chosen, task.classes) for name, chosen in rows.items()}


def _report(said: list[Said], columns: Texts, rows: list[int], classes: tuple[float, ...]) -> Report:
    return evaluate(
        truth=[columns.labels[row] for row in rows],
        said=[said[row].value for row in rows],
        groups=[columns.groups[row] for row in rows],
        classes=classes,
        probabilities=[said[row].probabilities for row in rows],
    )


def read_texts(
    path: Path, *, text_column: str, label_column: str | None, group_column: str | None, display: str
) -> Texts:
    """`display`: "as-is", "display" or "lower" (display text in small letters)."""
    columns = read_csv(path, text_column=text_column, label_column=label_column, group_column=group_column)
    return columns if display == "as-is" else displayed(columns, lower_case=display == "lower")

"""Where classifiers lie: a folder each, complete or not there at all.

A folder holds `classifier.json` (recipe, tasks, thresholds), the recipe's own files, and a model card in words
(`model_card.md`) and in data (`model_card.json`). It is written under a temporary name and renamed when it is whole.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from scoring.classifiers.data import Task
from scoring.classifiers.problems import ClassifierError

FORMAT = 1
ABOUT = ("model_card.md", "model_card.json")  # say when and by whom: not in the hash


def classifiers_folder() -> Path:
    return Path(settings.CLASSIFIERS_DIR)


def folder_of(classifier_id: int, weights_hash: str) -> Path:
    """Of a finished classifier. Its name is that of its contents, so it never changes."""
    return classifiers_folder() / f"{classifier_id}-{weights_hash[:16]}"


def checkpoint_of(classifier_id: int) -> Path:
    """What a training keeps between epochs; gone when it has finished."""
    return classifiers_folder() / f"{classifier_id}-training"


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """A full disk and a closed folder in words. Libraries hide them in errors of their own, so causes are looked at."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ClassifierError("disk_full", folder=str(folder)) from error
            if isinstance(cause, PermissionError) or (isinstance(cause, OSError) and cause.errno == errno.EROFS):
                raise ClassifierError("folder_unwritable", folder=str(folder), error=cause.strerror) from error
            cause = cause.__cause__ or cause.__context__
        if "No space left on device" in str(error):  # safetensors' own error carries no number
            raise ClassifierError("disk_full", folder=str(folder)) from error
        raise


def folder_write(target: Path, write: Callable[[Path], None]) -> None:
    """Fill a folder by `write`, force it to the disk, and give it its name. An older one of that name gives way.

    Raises ClassifierError disk_full, folder_unwritable; then nothing of it is left.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    with disk_errors(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir()
            write(temporary)
            for path in sorted(temporary.rglob("*")):
                if path.is_file():
                    with path.open("rb") as stream:
                        os.fsync(stream.fileno())
            folder_rename(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def folder_rename(source: Path, target: Path) -> None:
    """Give a whole folder its name. An older one of that name gives way."""
    old = target.with_name(f".{target.name}.old.{os.getpid()}")
    if target.exists():
        target.rename(old)
    source.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def folder_hash(folder: Path) -> str:
    """sha256, hex, over the names and contents of a classifier's files, its model card aside. Reads all of them."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in ABOUT:
            with path.open("rb") as stream:
                digest.update(f"{name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def description_write(
    folder: Path, *, recipe: str, tasks: tuple[Task, ...], thresholds: dict[str, float], parameters: dict[str, Any]
) -> None:
    described = {
        "format": FORMAT,
        "recipe": recipe,
        "tasks": [{"code": task.code, "classes": list(task.classes)} for task in tasks],
        "thresholds": thresholds,
        "parameters": parameters,
    }
    (folder / "classifier.json").write_text(_json(described), encoding="utf-8")


def description_read(folder: Path) -> dict[str, Any]:
    """Raises ClassifierError weights_missing, weights_corrupt."""
    path = folder / "classifier.json"
    if not path.is_file():
        raise ClassifierError("weights_missing", folder=str(folder))
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        if described["format"] != FORMAT:
            raise ValueError(f"format {described['format']} is not known")
        described["tasks"] = tuple(Task(task["code"], tuple(task["classes"])) for task in described["tasks"])
        described["thresholds"] = {str(code): float(value) for code, value in described["thresholds"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClassifierError("weights_corrupt", error=f"classifier.json: {error}") from error
    return dict(described)


def card_write(folder: Path, card: dict[str, Any]) -> None:
    """The model card, for people and for programs."""
    (folder / "model_card.json").write_text(_json(card), encoding="utf-8")
    lines = [f"# {card.get('title') or card['recipe']}", ""]
    for name, value in card.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if name != "limits":
            lines.append(f"- **{name.replace('_', ' ')}**: {shown}")
    lines += ["", "## Limits", "", *(f"- {limit}" for limit in card.get("limits", []))]
    (folder / "model_card.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def others_remove(classifier_id: int, keep: Path | None = None) -> None:
    """All that a training left behind but the folder to be kept."""
    with contextlib.suppress(OSError):
        for path in classifiers_folder().iterdir():
            own = path.name.lstrip(".").startswith(f"{classifier_id}-")
            if own and path != keep:
                shutil.rmtree(path, ignore_errors=True)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"

"""Base models: a folder here, or a name on a hub that the installation has named. No other host is ever called."""

import importlib
import re
from pathlib import Path

from django.conf import settings

from scoring.classifiers.problems import ClassifierError

NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def bases_folder() -> Path:
    return Path(settings.CLASSIFIERS_DIR) / "bases"


def base_find(name: str) -> Path:
    """The folder of a base model: a path, a folder in `bases_folder()` (with / as --), or fetched from the hub.

    Raises ClassifierError base_name, base_missing, base_unreachable.
    """
    path = Path(name).expanduser()
    if path.is_absolute():
        return _whole(path, name)
    if not NAME.fullmatch(name):
        raise ClassifierError("base_name", base=name)
    kept = bases_folder() / name.replace("/", "--")
    if not kept.is_dir():
        if not settings.HF_ENDPOINT:
            raise ClassifierError("base_missing", base=name, folder=str(kept))
        importlib.import_module("scoring.classifiers.hub").fetch(name, kept, endpoint=settings.HF_ENDPOINT)
    return _whole(kept, name)


def _whole(folder: Path, name: str) -> Path:
    has_weights = any(any(folder.glob(pattern)) for pattern in WEIGHTS)
    if not (folder / "config.json").is_file() or not has_weights:
        raise ClassifierError("base_missing", base=name, folder=str(folder))
    return folder

"""Fetching a base model from a hub that speaks as Hugging Face's does. Imported only where one is configured."""

import os
from pathlib import Path

from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.storing import disk_errors

# Read by huggingface_hub when it is imported: nothing but the endpoint is spoken to, and nothing is reported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
os.environ.setdefault("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
from huggingface_hub import snapshot_download

FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "pytorch_model*.bin"]  # configuration, tokenizer, weights


def fetch(name: str, kept: Path, *, endpoint: str) -> None:
    """Fetch into a folder beside `kept` and rename it when it is whole; a part that has arrived is not fetched again.

    Raises ClassifierError base_unreachable, disk_full, folder_unwritable.
    """
    half = kept.with_name(f".{kept.name}.fetching")
    try:
        with disk_errors(kept.parent):
            kept.parent.mkdir(parents=True, exist_ok=True)
            snapshot_download(name, endpoint=endpoint, local_dir=half, allow_patterns=FILES, max_workers=2)
            half.rename(kept)
    except ClassifierError:
        raise
    except Exception as error:  # the hub's, httpx's and the system's own
        first = (str(error).strip().splitlines() or [""])[0] or type(error).__name__
        raise ClassifierError(
            "base_unreachable", base=name, endpoint=endpoint, error=first[:300], folder=str(kept)
        ) from error

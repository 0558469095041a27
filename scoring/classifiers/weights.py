"""Reading models of others: nothing in their files is run, and what is no encoder with its weights is refused."""

import hashlib
import logging
import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

from scoring.classifiers.bases import bases_folder
from scoring.classifiers.problems import ClassifierError
from scoring.classifiers.storing import folder_write

transformers.utils.logging.disable_progress_bar()
logging.getLogger("transformers").setLevel(logging.ERROR)  # its reports on missing keys are read here, and judged

LOCAL = {"local_files_only": True, "trust_remote_code": False}


def tokenizer_load(folder: Path, name: str = "") -> Any:
    """Raises ClassifierError base_wrong_kind."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), **LOCAL)
    except Exception as error:  # a missing, damaged or foreign tokenizer: transformers raises many kinds
        raise ClassifierError("base_wrong_kind", base=name or folder.name, error=_first(error)) from error
    if tokenizer.pad_token_id is None:
        raise ClassifierError("base_wrong_kind", base=name or folder.name, error="its tokenizer does not pad")
    return tokenizer


def base_load(folder: Path, *, labels: int | None) -> Any:
    """A base model with a fresh head for so many labels; None: with the head that it has.

    The fresh head is drawn from torch's generator. Raises ClassifierError base_wrong_kind, base_corrupt.
    """
    name = folder.name.replace("--", "/")
    config = _config(folder, name)
    if labels is not None:
        config.num_labels = labels
    try:
        model, info = AutoModelForSequenceClassification.from_pretrained(
            str(_safe(folder, name)),
            config=config,
            output_loading_info=True,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
            **LOCAL,
        )
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise ClassifierError("base_corrupt", base=name, error=_first(error)) from error
    gaps = set(info["missing_keys"]) | {entry[0] for entry in info["mismatched_keys"]}
    encoder = {key for key in gaps if key.startswith(f"{model.base_model_prefix}.") and ".pooler." not in key}
    if encoder or (labels is None and gaps):
        what = f"it has no weights for {sorted(encoder or gaps)[0]}"
        raise ClassifierError("base_wrong_kind", base=name, error=what)
    return model


def _config(folder: Path, name: str) -> Any:
    try:
        config = AutoConfig.from_pretrained(str(folder), **LOCAL)
    except (OSError, ValueError, KeyError, TypeError) as error:  # unknown kinds, code of others, damaged JSON
        raise ClassifierError("base_wrong_kind", base=name, error=_first(error)) from error
    if config.is_encoder_decoder or type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise ClassifierError("base_wrong_kind", base=name, error=f"it is a {config.model_type}")
    return config


def _safe(folder: Path, name: str) -> Path:
    """The folder itself if its weights are safetensors; else one with pickled weights converted, made once."""
    if any(folder.glob("*.safetensors")):
        return folder
    pickled = sorted(folder.glob("pytorch_model*.bin"))
    digest = hashlib.sha256()
    for path in pickled:
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    target = bases_folder() / f".converted-{digest.hexdigest()[:32]}"
    if not target.is_dir():
        folder_write(target, lambda into: _convert(folder, pickled, into, name))
    return target


def _convert(folder: Path, pickled: list[Path], into: Path, name: str) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for path in pickled:
        try:
            with warnings.catch_warnings(action="ignore"):  # of old protocols
                found = torch.load(path, map_location="cpu", weights_only=True)  # refuses all but tensors
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError) as error:
            raise ClassifierError("base_corrupt", base=name, error=_first(error)) from error
        if not isinstance(found, dict):
            raise ClassifierError("base_corrupt", base=name, error=f"{path.name} holds no weights by name")
        # Copies: tied weights share their memory, which safetensors refuses.
        tensors |= {key: value.clone().contiguous() for key, value in found.items() if isinstance(value, torch.Tensor)}
    save_file(tensors, into / "model.safetensors", metadata={"format": "pt"})
    for path in folder.iterdir():
        if path.suffix in (".json", ".txt", ".model"):
            shutil.copy(path, into / path.name)


def _first(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]

"""A small transformer made on the spot, and sentences that it can learn to tell apart."""

import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, PreTrainedTokenizerFast

from scoring.classifiers.data import Dataset, Example, Task

NOUNS = ["кошка", "мышь", "собака", "девочка"]
VERBS = {"спала": 1, "бежала": 1, "ела": 1, "спать": 0, "бежать": 0, "есть": 0}  # left as given: not grammatical
PLACES = {"дома": 1, "в саду": 1, "в супе": 0, "на луне": 0}  # where nobody sleeps or eats: not logical
WORDS = [*NOUNS, *VERBS, *(word for place in PLACES for word in place.split()), "не", "знаю"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Enough for the tiny model to learn it within seconds.
QUICK = {"epochs": 6, "learning_rate": 2e-3, "batch_size": 16, "max_tokens": 32}


def tokenizer_make(words: list[str] = WORDS) -> PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *dict.fromkeys(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def config_make(**more: float) -> BertConfig:
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    sizes |= {"initializer_range": 0.1}  # so small a model learns two things at once only from a livelier start
    return BertConfig(
        vocab_size=len(SPECIAL) + len(dict.fromkeys(WORDS)), max_position_embeddings=64, **{**sizes, **more}
    )


def base_make(folder: Path, *, seed: int = 1, pickled: bool = False) -> Path:
    """A base model such as one fetches: a masked language model with its tokenizer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertForMaskedLM(config_make())
    tokenizer_make().save_pretrained(folder)
    model.save_pretrained(folder)
    if pickled:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    return folder


def trained_make(folder: Path, *, labels: int = 2) -> Path:
    """A classifier as one fetches it."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = BertForSequenceClassification(config_make(num_labels=labels))
    tokenizer_make().save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def sentences(n: int, *, seed: int) -> list[tuple[str, int, int]]:
    """Text, whether it is grammatical, whether it is logical."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        noun, verb, place = rng.choice(NOUNS), rng.choice(list(VERBS)), rng.choice(list(PLACES))
        last = rng.random() < 0.5
        text = f"{noun} {verb} {place}" if last else f"{place} {noun} {verb}"
        found.append((text, VERBS[verb], PLACES[place]))
    return found


def dataset_make(n: int = 200, *, seed: int = 1, per_group: int = 5) -> Dataset:
    """Two criteria; the second has no label for each seventh text."""
    examples = tuple(
        Example(text, f"r{row // per_group}", (grammatical, None if row % 7 == 0 else logical))
        for row, (text, grammatical, logical) in enumerate(sentences(n, seed=seed))
    )
    return Dataset((Task("grammatical", (0.0, 1.0)), Task("logical", (0.0, 1.0))), examples)

"""What judges is the model that was stored: the same probabilities, whatever the layout of its weights."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    RobertaConfig,
    RobertaForSequenceClassification,
)

from scoring.classifiers import packing
from scoring.classifiers.packing import Packed, can_pack, packed

SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}


def model_make(kind: str, **more: str):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        if kind == "bert":
            config = BertConfig(vocab_size=50, num_labels=3, initializer_range=0.2, **SIZES, **more)
            return BertForSequenceClassification(config).eval()
        if kind == "roberta":
            config = RobertaConfig(vocab_size=50, num_labels=3, initializer_range=0.2, **SIZES)
            return RobertaForSequenceClassification(config).eval()
        config = DistilBertConfig(vocab_size=50, num_labels=3, dim=64, n_layers=2, n_heads=2, hidden_dim=128)
        return DistilBertForSequenceClassification(config).eval()


def logits(model) -> torch.Tensor:
    ids = torch.tensor([[2, 7, 9, 11, 3], [2, 8, 3, 0, 0]])
    with torch.inference_mode():
        return model(input_ids=ids, attention_mask=(ids != 0).long()).logits


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
def test_it_says_the_same_and_leaves_the_model_as_it_is(kind: str) -> None:
    model = model_make(kind)
    before, state = logits(model), {name: one.clone() for name, one in model.state_dict().items()}
    found = packed(model, 16)
    torch.testing.assert_close(logits(found), before, atol=1e-5, rtol=1e-5)
    assert any(isinstance(one, Packed) for one in found.modules()) == can_pack()
    torch.testing.assert_close(logits(model), before, atol=0, rtol=0)
    assert model.state_dict().keys() == state.keys()
    assert not any(isinstance(one, Packed) for one in model.modules())


@pytest.mark.parametrize("act", ["gelu_new", "relu"])
def test_another_activation_stays_what_it_is(act: str) -> None:
    model = model_make("bert", hidden_act=act)
    torch.testing.assert_close(logits(packed(model, 16)), logits(model), atol=1e-5, rtol=1e-5)


def test_half_precision_stays_so() -> None:
    model = model_make("bert").to(torch.bfloat16)
    found = logits(packed(model, 16))
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, logits(model), atol=0.1, rtol=0.1)


def test_where_torch_cannot_the_model_itself_judges(monkeypatch) -> None:
    monkeypatch.setattr(packing, "can_pack", lambda: False)
    model = model_make("bert")
    assert packed(model, 16) is model

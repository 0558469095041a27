"""Encoders as they judge: the same weights, laid out for this processor's matrix products, and nothing computed twice.

torch multiplies float32 by MKL, which does not use all that some processors have; oneDNN does, with the weights
reordered once. Probabilities differ by what float32 rounds (3e-7). docs/benchmarks.md has what it brings.
"""

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any

import torch
from torch import nn
from transformers.activations import GELUActivation

SMALLEST = 64  # outputs; a head of a few is not worth it
FIRST_ONLY = frozenset({"bert", "roberta"})  # their heads read the first token of the last layer and no other


class Packed(nn.Module):
    """A linear layer, with the exact GELU after it where `post` is gelu."""

    def __init__(self, linear: nn.Linear, rows: int, post: str = "none") -> None:
        super().__init__()
        weight = linear.weight.detach()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
        self.bias = None if linear.bias is None else linear.bias.detach()
        self.post = post

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        algorithm = "none" if self.post == "gelu" else ""
        found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            given, self.weight, self.bias, self.post, [], algorithm
        )
        return found


@cache
def can_pack() -> bool:
    """The two operations are torch's own for compiled models, and no promise: without them all goes as before."""
    linear, given = nn.Linear(SMALLEST, SMALLEST), torch.ones(2, SMALLEST)
    try:
        with torch.no_grad():
            return torch.allclose(Packed(linear, 2)(given), linear(given), atol=1e-5)
    except (AttributeError, RuntimeError):  # NotImplementedError is one of the latter
        return False


def packed(model: Any, rows: int) -> Any:
    """A model to judge by, not to save: it shares all but its large linear layers with this one, which stays as it is.

    `rows`: how many tokens a batch usually has. The model itself, where torch cannot do it.
    """
    if not can_pack():
        return model
    found = _with_packed(model, rows)
    if getattr(model.config, "model_type", "") in FIRST_ONLY:
        _last_layer_shorten(found)
    return found


def _with_packed(module: nn.Module, rows: int) -> nn.Module:
    made = copy(module)
    made._modules = {name: _child(child, rows) for name, child in module._modules.items()}
    if _is_gelu(module):
        made._modules["dense"] = Packed(module.dense, rows, "gelu")
        made.intermediate_act_fn = nn.Identity()
    return made


def _child(child: nn.Module | None, rows: int) -> nn.Module | None:
    if child is None:
        return None
    if type(child) is nn.Linear and child.out_features >= SMALLEST:
        return Packed(child, rows)
    return _with_packed(child, rows) if child._modules else child


def _is_gelu(module: nn.Module) -> bool:
    """Whether it is the first half of a feed-forward block: a linear layer and the exact GELU."""
    act = getattr(module, "intermediate_act_fn", None)
    return (
        type(getattr(module, "dense", None)) is nn.Linear
        and isinstance(act, GELUActivation)
        and act.act is nn.functional.gelu
    )


def _last_layer_shorten(model: Any) -> None:
    """The last feed-forward block sees the first token alone: of the others nothing is read afterwards."""
    last = model.base_model.encoder.layer[-1]
    block: Callable[[torch.Tensor], torch.Tensor] = last.feed_forward_chunk
    last.feed_forward_chunk = lambda attended: block(attended[:, :1])

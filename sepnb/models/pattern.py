"""The attention pattern of a model, seen or replaced by a hook, or held constant, which is built on hooks.

A hook is called in every layer, once for each span of heads, and returns the weights that are used:

    def without_head_1(layer, heads, compute):
        weights = compute()                                   # [B, H, N, M], those of the model
        return weights * torch.tensor([head != 1 for head in heads])[:, None, None]

    with attention_hook(model, without_head_1):
        logits = model(tokens)

Shape letters: B batch, H heads, N query length, M key length.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from .. import validation
from .weights import own_modules

PatternHook = Callable[[int, tuple[int, ...], Callable[[], Tensor]], Tensor]
"""`hook(layer, heads, compute)` gives the weights to be used by these heads of a layer, counted from 0:
`[B, H, N, M]` or what broadcasts to it. What does not call `compute` saves the cost of the model's own."""


class RecordedPattern:
    """The attention weights of one layer, recorded once and then held constant."""

    def __init__(self) -> None:
        self._spans: dict[tuple[int, ...], Tensor] = {}

    def of(self, heads: tuple[int, ...], compute: Callable[[], Tensor]) -> Tensor:
        """What was recorded of these heads; where nothing was, what `compute` gives, without gradient."""
        if heads not in self._spans:
            self._spans[heads] = compute().detach()
        return self._spans[heads]

    @property
    def weights(self) -> Tensor | None:
        """All heads that were built, `[B, H, N, M]`; None before the first forward pass."""
        if not self._spans:
            return None
        spans = [self._spans[heads] for heads in sorted(self._spans)]
        batch = max(len(weights) for weights in spans)
        return torch.cat([weights.expand(batch, -1, -1, -1) for weights in spans], dim=1)


@contextmanager
def attention_hook(model: nn.Module, hook: PatternHook) -> Iterator[int]:
    """Inside this context every layer takes its weights from the hook and computes by the explicit softmax.

    Yields the number of layers. The hook is not called for standalone networks, such as an encoder of
    positions, nor for the position heads of a strict model that is given `tables=`.
    """
    validation.instance("model", model, nn.Module)
    validation.function("hook", hook)
    layers = [module for module in own_modules(model) if hasattr(module, "pattern_hook")]
    with validation.restored(layers, "pattern_hook"):
        for number, layer in enumerate(layers):
            layer.pattern_hook = partial(hook, number)
        yield len(layers)


@contextmanager
def frozen_attention(model: nn.Module) -> Iterator[list[RecordedPattern]]:
    """Hold the attention weights constant: the first forward pass inside records them, later ones reuse them.

    What then passes from one stream to another passes through values, outputs, MLPs and norms; with live
    weights content also decides where a position is read. What is yielded has `weights` `[B, H, N, M]` for
    each layer, in their order.
    """
    patterns: list[RecordedPattern] = []
    with attention_hook(model, lambda layer, *asked: patterns[layer].of(*asked)) as n_layers:
        patterns.extend(RecordedPattern() for _ in range(n_layers))
        yield patterns

"""Train one part of a model on longer texts, while the other stays as it is, bit for bit.

In a separated model the weights that belong to position are known (`model.parts()`). A model that is read
under a context extension meets slower positions than it was trained with; here its position part gets used to
them. The content part is not touched: with the tuned part taken off, the model is what it was.

One extension has one factor, and a model that is tuned at one factor knows no other. With `DrawnFactors` each
step has another factor, and begins its texts at another position: one adapter then serves every length.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .. import validation
from ..data.text import drawn_windows
from ..models import Attention, LanguageModel
from ..models.extension import extension_of, stretch
from ..models.parts import PARTS, Masks, counted, parts
from .batch import Batch
from .config import TrainingConfig
from .loop import train
from .positions import DrawnFactors


def adapt(
    model: LanguageModel,
    text: np.ndarray | Tensor,
    *,
    part: str = "position",
    length: int,
    steps: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
    device: str = "cpu",
    factors: tuple[int, ...] = (),
) -> LanguageModel:
    """A copy of a trained model in which one part is tuned on windows of a text, ready to be read (`eval`).

    Args:
        model: a language model, as `extended` gave it: it is tuned as it reads.
        text: its tokens, 1-D, integers; at least `length` + 1 of them.
        part: "position", "content" or "all". Every number that is not in it comes out bit for bit as it was.
        length: tokens predicted in a window, at positions from 0 on.
        steps, learning_rate, batch_size: as in `TrainingConfig`, without weight decay.
        seed: of the windows and, where they are drawn, of factors and positions.
        device: where it is trained; the copy stays there.
        factors: for one adapter that serves several lengths, factors of the model's extension. Each step
            draws one of them, f, and the position, up to f L - `length`, at which its windows begin. The copy
            has the factor that `model` has.

    Raises:
        ValueError: a part without a number, such as "position" of a dense model; a text that is too short or
            holds a token that the model does not know; a factor f with f L below `length`; factors for a
            model without an extension that has one.
        TypeError: another type of model or text.
        Diverged: a loss is not finite.
    """
    validation.instance("model", model, LanguageModel)
    masks = mask_of(model, part)
    validation.whole("seed", seed, 0, needs="give 0 or more")
    device = validation.device("device", device)
    if isinstance(text, Tensor):
        text = validation.readable("text", validation.tensor("text", text)).cpu()
    tokens = np.asarray(text)
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
        raise TypeError(
            f"text must be 1-D and hold integers, got shape {tokens.shape} of {tokens.dtype}; give the "
            f"tokens one after another, such as np.frombuffer(data, np.uint8)"
        )
    if validation.whole("length", length) >= len(tokens):
        raise ValueError(
            f"the text has {len(tokens)} tokens, and a window of length {validation.shown(length)} needs one "
            f"more than its length; give a longer text, or a smaller length"
        )
    for token in (tokens.min(), tokens.max()):
        if not 0 <= token < model.vocab_size:
            known = f"the vocabulary 0 to {model.vocab_size - 1}"
            raise ValueError(f"the text holds token {token}, which is outside {known}; give tokens of it")
    validation.instance("factors", factors, tuple, "(8, 16)")
    drawn = DrawnFactors(factors, model.config.max_length) if factors else None
    config = TrainingConfig(steps, batch_size, length, learning_rate, weight_decay=0.0, positions=drawn)
    sizes = {"batch_size": batch_size, "length": length, "seed": seed, "steps": steps}
    batches = drawn_windows([tokens], "the text", **sizes)
    if drawn is not None:
        pairs = zip(batches, drawn.positions(**sizes), strict=True)
        batches = (Batch(window[:, :-1], window[:, 1:], at) for window, at in pairs)
    tuned = copy.deepcopy(model)
    tune(tuned, batches, config, masks, seed=seed, device=device)
    return tuned.eval()


def mask_of(model: LanguageModel, part: str) -> Masks | None:
    """The masks of a part; None of "all". ValueError where the part is unknown or has no number."""
    if validation.one_of("part", part, (*PARTS, "all")) == "all":
        return None
    masks = parts(model)[part]
    if not counted(masks):
        raise ValueError(
            f"the {part} part of this model is empty, because it has one stream ({model.config.streams!r}); "
            f"give a separated model, Streams(pos=..., sem=...), or part='all'"
        )
    return masks


def tune(
    model: LanguageModel,
    batches: Iterator[Any],
    config: TrainingConfig,
    masks: Masks | None = None,
    *,
    seed: int = 0,
    **how: Any,
) -> list[float]:
    """Train, in place, only the entries that the masks select; all entries if there are no masks. Returns the
    mean loss of every step, in nats per token.

    A parameter without a selected entry gets no gradient. In one that is selected in part, the gradient of
    the rest is 0, so that AdamW without weight decay leaves the rest bit for bit as it is.

    Args:
        batches, how: as in `sepnb.training.train`.
        config: without weight decay if there are masks. With `DrawnFactors` as positions the model's
            extension takes the factor of each step, and gets its own back in the end.
        seed: of the draws of these factors, that of the batches.

    Raises:
        ValueError: weight decay, which would change what is to stay; a model without a factor to draw.
    """
    if masks is not None and config.weight_decay:
        raise ValueError(
            f"weight_decay is {config.weight_decay}, and it would change what the masks leave out; give 0"
        )
    extension = extension_of(model)
    if isinstance(config.positions, DrawnFactors):
        if not hasattr(extension, "factor"):
            raise ValueError(
                f"factors are drawn for a context extension that has one, and this model is read with "
                f"{extension}; give model.extended(extension=NTKByParts(8.0, L)) or another"
            )
        batches = _stretched(model, batches, config, seed)
    try:
        with only(model, masks):
            return train(model, batches, config, **how)
    finally:
        if isinstance(config.positions, DrawnFactors):
            stretch(model, extension)


def _stretched(
    model: LanguageModel, batches: Iterator[Any], config: TrainingConfig, seed: int
) -> Iterator[Any]:
    """The same batches; before each is given out, the model takes the factor of its step."""
    extension = extension_of(model)
    sizes = {"length": config.length, "seed": seed, "steps": config.steps}
    for (factor, _), batch in zip(config.positions.draws(**sizes), batches, strict=True):
        stretch(model, replace(extension, factor=factor))
        yield batch


@contextmanager
def only(model: nn.Module, masks: Masks | None) -> Iterator[None]:
    """Inside, what the masks do not hold has no gradient, or one of 0; None: all is as it was."""
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    hooks = []
    for name, parameter in trained.items() if masks is not None else ():
        frozen = ~masks[name].to(parameter.device)
        parameter.requires_grad_(not frozen.all())
        if frozen.any() and parameter.requires_grad:
            hooks.append(parameter.register_hook(lambda gradient, out=frozen: gradient.masked_fill(out, 0)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for parameter in trained.values():
            parameter.requires_grad_(True)


class LowRank(nn.Module):
    """A change of W_Q and W_K of one group of heads of low rank (LoRA; Hu et al. 2022): B A is added to each
    of the two, with A `[rank, columns]` drawn and B `[rows, rank]` 0 at the start."""

    def __init__(self, weight: Tensor, rows: tuple[int, int], rank: int, generator: torch.Generator) -> None:
        super().__init__()
        columns = weight.shape[1]
        drawn = [torch.randn(rank, columns, generator=generator) * columns**-0.5 for _ in rows]
        self.down = nn.ParameterList(nn.Parameter(a.to(weight)) for a in drawn)
        self.up = nn.ParameterList(nn.Parameter(weight.new_zeros(count, rank)) for count in rows)

    def forward(self, weight: Tensor) -> Tensor:
        return weight + torch.cat([up @ down for up, down in zip(self.up, self.down, strict=True)])


def rank_for(model: LanguageModel, numbers: int) -> int:
    """The rank, at least 1, at which `low_rank` trains about so many numbers."""
    each = sum(
        2 * projection.in_features + projection.out_features
        for module in model.modules()
        if isinstance(module, Attention)
        for projection in module.query_key
    )
    return max(1, round(numbers / each))


@contextmanager
def low_rank(model: LanguageModel, rank: int, seed: int) -> Iterator[None]:
    """Inside, a model trains low-rank changes of its W_Q and W_K and nothing else; at the end they are added
    to these maps, so that it is a model like any other."""
    validation.whole("rank", rank)
    generator, frozen = torch.Generator().manual_seed(seed), list(model.parameters())
    for parameter in frozen:
        parameter.requires_grad_(False)
    changed = [
        (group, projection)
        for module in model.modules()
        if isinstance(module, Attention)
        for group, projection in zip(module.groups, module.query_key, strict=True)
    ]
    for group, projection in changed:
        queries = group.n_heads * model.config.head_width
        rows = queries, projection.out_features - queries
        change = LowRank(projection.weight, rows, rank, generator)
        parametrize.register_parametrization(projection, "weight", change)
    try:
        yield
    finally:
        for _, projection in changed:
            parametrize.remove_parametrizations(projection, "weight")
        for parameter in model.parameters():
            parameter.requires_grad_(True)

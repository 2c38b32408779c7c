"""What every encoding is and costs, as a table that is measured on small models and nowhere typed.

Each row builds the same dense model twice, with the encoding and without any, draws every parameter anew, and
looks: what there is more of, and what the logits answer to.
"""

import copy
from collections.abc import Sequence
from math import log2

import pandas as pd
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from .. import encodings
from ..encodings import Encoding, PositionInterpolation, Site, fire
from ..models import KVCache, LanguageModel, Transformer, TransformerConfig, frozen_attention
from ..models.fast import kernels
from ..streams import Streams
from ..validation import whole
from .flops import products_of
from .memory import MemoryWatch

COLUMNS = {
    "encoding": "encoding",
    "sites": "where it acts",
    "parameters": "more parameters",
    "products": "more multiply-adds of products per token",
    "elementwise": "more operations on single numbers per token",
    "memory": "more bytes at the peak",
    "growth": "growth of the whole peak in a text twice as long, as a power of N",
    "cache": "fits a KV cache",
    "kernel": "kernel of a training on CUDA",
    "depends_on": "what it depends on",
    "learned": "learned",
    "dimensions": "tells rows and columns apart",
    "slows": "can be slowed down",
}
"""Column to heading."""

VOCABULARY = 11
TIGHT = 1e-9
"""Logits in float64 that are nearer than this are the same."""


def _model(
    encoding: Encoding, length: int, width: int, n_heads: int, n_layers: int, axes: int = 1
) -> LanguageModel:
    """A dense model in float64 whose every parameter was drawn anew: none is 0 or 1 and without effect.

    An encoding of other positions than indices has the axes that it needs.
    """
    if encoding.axes is not None and axes not in encoding.axes:
        axes = encoding.axes[0]
    config = TransformerConfig(
        Streams.dense(width), n_layers, n_heads, encoding, max_length=8 * length, axes=axes
    )
    torch.manual_seed(0)
    model = LanguageModel(config, VOCABULARY).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def _read(
    model: LanguageModel, tokens: Tensor, at: Tensor | None = None, cache: KVCache | None = None
) -> Tensor:
    """Logits of tokens at these indices, by default from 0 on; on several axes, along the diagonal."""
    axes = model.config.axes
    if axes > 1:
        at = torch.arange(tokens.shape[1]) if at is None else at
        at = at[:, None].expand(-1, axes)
    return model(tokens, at, cache)


def _peak(model: LanguageModel, length: int, at_once: int) -> int:
    """Peak bytes of an evaluation that holds `at_once` scores (FIRE: hidden units) at a time: a small text is
    then cut as a long one is."""
    model = copy.deepcopy(model).eval()
    for module in model.modules():
        if isinstance(module, Transformer | fire.FireScore):
            module.at_once = at_once
    with torch.no_grad(), MemoryWatch() as watch:
        _read(model, torch.zeros(1, length, dtype=torch.int64))
    return watch.peak


class _Elementwise(TorchDispatchMode):
    """Counts the real numbers that operations on single numbers make: sums, products, exponentials, sines.
    Copies are none, and neither is what is done to whole numbers, positions and distances."""

    made = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if torch.Tag.pointwise in func.tags and func.overloadpacket not in _COPIES:
            self.made += out.numel() if isinstance(out, Tensor) and out.is_floating_point() else 0
        return out


_COPIES = {torch.ops.aten.clone, torch.ops.aten.copy_, torch.ops.aten._to_copy, torch.ops.aten.fill_}


def _work(model: LanguageModel, tokens: Tensor) -> dict[str, float]:
    """What a forward pass computes per token, by the explicit softmax: no kernel hides or skips a part."""

    def step() -> None:
        with torch.no_grad(), frozen_attention(model):
            _read(model.eval(), tokens)

    products = products_of(step)
    with _Elementwise() as counter:
        step()
    return {"products": products / tokens.numel(), "elementwise": counter.made / tokens.numel()}


def _apart(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def _counts(model: LanguageModel) -> bool:
    return any(encoding.counts_tokens for encoding in model.config.encodings)


def _depends_on(model: LanguageModel, tokens: Tensor) -> str:
    """ "index", "distance" or "order": what of the positions changes the logits."""
    at, plain = torch.arange(tokens.shape[1]), _read(model, tokens)
    # A gap in the middle, but for what counts tokens: its model refuses one.
    stretched = at if _counts(model) else torch.where(at < len(at) // 2, at, at + 5)
    if _apart(_read(model, tokens, at + 37), plain) > TIGHT:
        return "index"
    return "distance" if _apart(_read(model, tokens, stretched), plain) > TIGHT else "order"


def _fits_a_cache(model: LanguageModel, tokens: Tensor) -> bool:
    """Whether a text read piece by piece, the last token alone, gives the logits of one pass."""
    cache, n = model.make_cache(len(tokens)), tokens.shape[1]
    cuts = ((0, n // 2), (n // 2, n - 1), (n - 1, n))
    read = [_read(model, tokens[:, a:b], torch.arange(a, b), cache) for a, b in cuts]
    return _apart(torch.cat(read, dim=1), _read(model, tokens)) < TIGHT


def _slows_down(model: LanguageModel, tokens: Tensor) -> bool:
    """Whether, under a context extension, a text at every second index has its logits at all indices; where
    tokens are counted, which allows no gaps, whether the extension is taken."""
    try:
        slow = model.extended(extension=PositionInterpolation(2))
    except ValueError:
        return False
    if _counts(model):
        return True
    return _apart(_read(slow, tokens, 2 * torch.arange(tokens.shape[1])), _read(model, tokens)) < TIGHT


def _kernel(encoding: Encoding, n_heads: int) -> str:
    """What makes the averages of a training on CUDA, in heads that FlexAttention takes."""
    model = _model(encoding, 4, kernels.NARROWEST * n_heads, n_heads, n_layers=1)
    if kernels.flexible(model):
        return "FlexAttention"
    openly = any(block.attention.core.explicit for block in model.transformer.blocks)
    return "explicit softmax" if openly else "fused"


def tells_points_apart(
    name: str, *, width: int = 32, n_heads: int = 4, n_layers: int = 2, side: int = 4
) -> bool:
    """Whether a model of two coordinates tells any two points of a grid apart that differ in one coordinate.

    A token stands at each point of the grid in turn, and a later one at the corner (1, 1) looks back at it:
    do its logits differ? False as well where the encoding cannot be built for two coordinates; it is built
    with the option that it may need, see `encodings.on_axes`.

    Args:
        name: of the encoding.
        width, n_heads, n_layers: of the model.
        side: rows and columns of the grid, at least 2.

    Raises:
        ValueError: an unknown name, a grid of one point, or a size that the encoding refuses.
    """
    whole("side", side, 2, needs="points that differ in one coordinate take at least 2")
    encoding = encodings.on_axes(name, 2, side=side)
    if encoding is None:
        return False
    size = {"width": width, "n_heads": n_heads, "n_layers": n_layers}
    model = _model(encoding, side, **size, axes=2)
    along = torch.arange(1, side + 1)  # (0, 0) is for tokens without a place
    points = torch.cartesian_prod(along, along)  # [P, 2]
    places = torch.stack([points, torch.ones_like(points)], dim=1)  # of two tokens each
    with torch.no_grad():
        answers = model(torch.tensor([[0, 1]]).expand(len(points), -1), places)[:, -1]
    apart = (answers[:, None] - answers).abs().amax(dim=-1) > TIGHT
    in_one = (points[:, None] != points).sum(dim=-1) == 1
    return bool(apart[in_one].all())


def inventory(
    names: Sequence[str] | None = None,
    *,
    length: int = 32,
    width: int = 32,
    n_heads: int = 4,
    n_layers: int = 2,
) -> pd.DataFrame:
    """One row per encoding, with the columns of `COLUMNS`.

    Parameters, multiply-adds of matrix products, operations on single numbers (both forward, per token) and
    bytes held at the peak of an evaluation of one text of 4 N tokens in float64 are those beyond a model
    without encoding. `growth` is that of the whole peak, from this text to one twice as long; evaluation
    holds no more scores at once here than a text of 2 N has, so that both are cut. FIRE has the threshold
    N/2, so that texts exceed it. An encoding depends on the "index" if the logits change with the start of a
    text, on the "distance" if they change with gaps in it, and else on the "order" alone; one of points gets
    points on the diagonal. `slows` says whether a context extension slows its positions down: a text at every
    second index then has its logits at all indices (an encoding that counts tokens allows no gaps, and only
    has to accept the extension). `dimensions` is the verdict of `tells_points_apart`. `kernel` is what
    computes the averages in training on CUDA: torch's fused attention, FlexAttention, or the explicit
    softmax, which holds every score.

    Args:
        names: encodings, in this order; None takes all.
        length: N, of the texts looked at; at least 4.
        width, n_heads, n_layers: of the models.

    Raises:
        ValueError: a length below 4, an unknown name, or a size that an encoding refuses.
    """
    whole("length", length, 4, needs="give at least 4 tokens, so that a text has a middle and an end")
    size = {"width": width, "n_heads": n_heads, "n_layers": n_layers}
    tokens = torch.randint(VOCABULARY, (2, length), generator=torch.Generator().manual_seed(0))

    def costs(model: LanguageModel) -> dict[str, int | float]:
        memory, long = (_peak(model, n, n_heads * (2 * length) ** 2) for n in (4 * length, 8 * length))
        parameters = model.parameter_counts()["total"]
        return {"parameters": parameters, **_work(model, tokens), "memory": memory, "long": long}

    bare = costs(_model(encodings.build("none"), length, **size))
    rows = []
    for name in encodings.names() if names is None else names:
        encoding = encodings.build(name).for_length(length / 2)
        model = _model(encoding, length, **size)
        own = costs(model)
        more = {what: round(own[what] - bare[what]) for what in ("parameters", "products", "elementwise")}
        with torch.no_grad():
            rows.append(
                {
                    "encoding": name,
                    "sites": ", ".join(site.value for site in Site if site in encoding.sites) or "none",
                    **more,
                    "memory": max(own["memory"] - bare["memory"], 0),
                    "growth": round(log2(own["long"] / own["memory"]), 1),
                    "cache": _fits_a_cache(model, tokens),
                    "kernel": _kernel(encoding, n_heads),
                    "depends_on": _depends_on(model, tokens),
                    "learned": more["parameters"] > 0,
                    "dimensions": tells_points_apart(name, **size),
                    "slows": _slows_down(model, tokens),
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))

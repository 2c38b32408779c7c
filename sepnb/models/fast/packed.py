"""A small separated model as plain JSON types, for a program that knows nothing of torch.

What a page of the book carries, and what `book/_static/model.js` reads: how the streams, heads and layers are
laid out, the names and shapes of the weights as torch has them, and all weights in one base64 string of
float16, little-endian. A model whose weights are `rounded` first says the same in both places.

It holds what that script computes and refuses the rest: position streams that read the text or not, whole
heads, a sinusoid, as trained or slowed down by parts, split LayerNorms, GELU, no biases.
"""

import base64
import copy
from dataclasses import fields
from typing import Any

import numpy as np
import torch

from ... import validation
from ...encodings.context import NTKByParts
from ...encodings.sinusoidal import Sinusoidal
from ..extension import ExtrapolatedInput, extension_of
from ..language import LanguageModel
from ..layout import BlockLayout

FREE = ("streams", "n_layers", "n_heads", "encoding", "mode", "max_length", "embedding_std", "dropout")
"""Fields of a config that a packed model may have as it likes; of the others it has the defaults."""

LARGEST = 2**20
"""Weights of a packed model at most: 2 MiB of them, and a third more as text."""


def packed(model: LanguageModel) -> dict[str, Any]:
    """The model, as JSON has it.

    Returns:
        `streams` (name to width), `head_width`, `length` (L), `base` of the sinusoid, `slowed` (`factor`,
        `length`, `alpha` and `beta` of an `NTKByParts` that the model is read with, else None), `log_scale`,
        `layers`, of each the streams that it reads (`normalised`) and computes (`outputs`) and its `groups`
        of heads; `tensors`, pairs of a name and a shape in their order, and `weights`, their values.

    Raises:
        TypeError, ValueError: no language model, or one with something that the script does not compute.
    """
    config = validation.instance("model", model, LanguageModel).config
    _check(model)
    named = {name: parameter.detach() for name, parameter in model.named_parameters()}
    values = np.concatenate([one.to("cpu", torch.float32).numpy().ravel() for one in named.values()])
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    if not np.isfinite(halves).all():
        largest = float(np.abs(values).max())
        raise ValueError(f"a weight is {largest:.3g}; float16 ends at 65504, and every weight must be finite")
    (encoding,) = config.encodings
    return {
        "streams": config.streams.widths,
        "head_width": config.head_width,
        "length": config.max_length,
        "base": encoding.base,
        "slowed": _slowed(extension_of(model)),
        "log_scale": model.transformer.log_scale,
        "layers": [_layer(block) for block in model.transformer.layout.blocks],
        "tensors": [[name, list(one.shape)] for name, one in named.items()],
        "weights": base64.b64encode(halves.tobytes()).decode("ascii"),
    }


def rounded(model: LanguageModel) -> LanguageModel:
    """A copy in evaluation mode whose weights are those that `packed` writes."""
    clone = copy.deepcopy(validation.instance("model", model, LanguageModel)).eval()
    with torch.no_grad():
        for parameter in clone.parameters():
            parameter.copy_(parameter.to(torch.float16))
    return clone


def _slowed(extension: NTKByParts | None) -> dict[str, Any] | None:
    if extension is None:
        return None
    bands = {"alpha": extension.alpha, "beta": extension.beta}
    return {"factor": extension.factor, "length": extension.original_length, **bands}


def _layer(block: BlockLayout) -> dict[str, Any]:
    groups = [{"reads": list(group.reads), "heads": _heads(group.spans)} for group in block.groups]
    return {"normalised": list(block.normalised), "outputs": list(block.outputs), "groups": groups}


def _heads(spans: tuple) -> list[dict[str, Any]]:
    """The heads of a group by their number in the model, and the stream that each writes to."""
    return [{"head": head, "writes": next(iter(span.columns))} for span in spans for head in span.heads]


def _check(model: LanguageModel) -> None:
    config, transformer = model.config, model.transformer
    if not config.separated:
        raise ValueError(f"{config.streams!r} has one stream; give a separated model, Streams(pos=8, sem=16)")
    if set(config.streams.names) != {"pos", "sem"}:
        raise ValueError(f"{config.streams!r}; the streams of a packed model are pos and sem")
    for field in fields(config):
        if field.name not in FREE and getattr(config, field.name) != field.default:
            given = getattr(config, field.name)
            raise ValueError(f"{field.name} is {given!r}; a packed model has {field.default!r}")
    (encoding,) = config.encodings if len(config.encodings) == 1 else (None,)
    if type(encoding) is not Sinusoidal or encoding.layout != "interleaved" or encoding.dims > 1:
        raise ValueError(f"encoding is {config.encoding!r}; a packed model has a sinusoid, interleaved")
    if type(extension := extension_of(model)) not in (type(None), NTKByParts):
        raise ValueError(
            f"the frequencies are those of {extension!r}; a packed model has NTKByParts, or none"
        )
    if transformer.window is not None:
        raise ValueError("the model follows a rule such as window=...; pack the model that was extended")
    if any(isinstance(one, ExtrapolatedInput) for one in transformer.input_encodings):
        raise ValueError("the model follows an extrapolator; pack the model that was extended")
    spans = [span for block in transformer.layout.blocks for group in block.groups for span in group.spans]
    if any(len(span.columns) > 1 for span in spans):
        raise ValueError(
            f"a head of width {config.head_width} straddles the border of {config.streams!r}; give widths "
            f"that are multiples of it"
        )
    if (count := sum(one.numel() for one in model.parameters())) > LARGEST:
        raise ValueError(f"the model has {count} weights; a page carries at most {LARGEST}")

"""A model of transformers under a context extension: its own classes build its rotary modules again, from its
own config with the settings of the extension in `rope_parameters`. No frequency is written from outside.
"""

from typing import Any

import torch
from torch import Tensor, nn

from .. import validation
from ..encodings.context import (
    DynamicNTK,
    Extension,
    Llama3,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    YaRN,
)
from ..models.weights import sharing_copy

WITHOUT = "read it without an extension"

NEAR = 1e-4
"""Tolerance within which the frequencies of transformers, in float32, count as the same as ours."""


def stretched(model: nn.Module, extension: Extension) -> nn.Module:
    """A copy with slower rotations, and the same weights; the model that is given stays as it is.

    What its classes make of the settings is compared with what the extension says: a class may take them
    and go on with other frequencies.

    Raises:
        TypeError: no extension of `sepnb.encodings`.
        ValueError: a model without RoPE, whose frequencies differ by layer or are scaled already, or whose
            class takes no scaling or none of this kind.
    """
    such = "YaRN(8.0, original_length=1024)"
    extension = validation.instance("extension", extension, Extension, such)
    before = plain(model.config.get_text_config())
    name, copied = type(model).__name__, sharing_copy(model)
    rotary = {
        path: module
        for path, module in copied.named_modules()
        if any("inv_freq" in key for key, _ in module.named_buffers(recurse=False))
    }
    if not rotary:
        raise ValueError(f"{name} has no rotary frequencies that could be slowed down; {WITHOUT}")
    for path, module in rotary.items():
        if getattr(module, "rope_type", None) != "default" or not hasattr(module, "config"):
            raise ValueError(f"{type(module).__name__} of {name} takes no scaling of RoPE; {WITHOUT}")
        kind, config = type(module), module.config
        config.rope_parameters = dict(before)
        trained = kind(config).inv_freq.double()  # not those of the module, which a cast may have rounded
        waves = {"dim": 2 * len(trained), "base": before["rope_theta"]}
        length = 2 * extension.original_length if extension.by_length else None
        expected, factor = extension(trained, **waves, length=length)
        config.rope_parameters = before | settings(extension, **waves)
        if (original := getattr(extension, "original_length", None)) is not None:
            # Dynamic NTK has the trained length from the first, Phi-3 from the second.
            for field in ("max_position_embeddings", "original_max_position_embeddings"):
                if hasattr(config, field):
                    setattr(config, field, original)
        slower, tried = kind(config), kind(config)
        if length is not None:  # it is slower only while it reads a text that long
            tried(torch.zeros(1), torch.tensor([[length - 1]]))
        if not _same(tried.inv_freq, expected) or abs(tried.attention_scaling - factor) > NEAR:
            raise ValueError(
                f"{kind.__name__} of {name} took the settings of {extension.name} and has other frequencies "
                f"than these; {WITHOUT}"
            )
        copied.set_submodule(path, slower.to(next(iter(module.buffers())).device))
    return copied


def plain(config: Any) -> dict[str, Any]:
    """What the config of a text model says of RoPE, if an extension can start from it.

    Raises:
        ValueError: there is none; it differs by layer; it is scaled already.
    """
    kind, given = config.model_type, getattr(config, "rope_parameters", None)
    if not given or getattr(config, "alibi", False):  # Falcon has frequencies then, too, and leaves them
        why = "it has ALiBi" if given else "its config has no rope_parameters"
        raise ValueError(
            f"a context extension slows down the rotations of RoPE, and this {kind} model has none that "
            f"could be scaled: {why}; {WITHOUT}"
        )
    if layers := [layer for layer, own in given.items() if isinstance(own, dict)]:
        raise ValueError(
            f"the rotations of this {kind} model differ by layer ({', '.join(layers)}), and an extension is "
            f"for one set of frequencies; {WITHOUT}"
        )
    if (scaled := given.get("rope_type", "default")) != "default":
        by = f", factor {given['factor']}" if "factor" in given else ""
        raise ValueError(
            f"the rotations of this {kind} model are scaled already (rope_type {scaled}{by}), and it was "
            f"trained or is meant to be read with that; {WITHOUT}"
        )
    return dict(given)


def settings(extension: Extension, *, dim: int, base: int | float) -> dict[str, Any]:
    """An extension in the words of `rope_parameters`.

    By parts is what they call llama3, with other turns. A raised base needs no name."""
    match extension:
        case PositionInterpolation(factor):
            return {"rope_type": "linear", "factor": factor}
        case NTKAware(factor):
            return {"rope_type": "default", "rope_theta": base * factor ** (dim / (dim - 2))}
        case RaisedBase(raised):
            return {"rope_type": "default", "rope_theta": raised}
        case DynamicNTK(factor):
            return {"rope_type": "dynamic", "factor": factor}
        case YaRN(factor, length, fast, slow, "dimension"):
            by_parts = {"rope_type": "yarn", "beta_fast": fast, "beta_slow": slow}
        case NTKByParts(factor, length, low, high) | Llama3(factor, length, low, high) if low > 0:
            by_parts = {"rope_type": "llama3", "low_freq_factor": low, "high_freq_factor": high}
        case _:
            raise ValueError(
                f"rope_parameters of transformers cannot say {extension!r}; take another extension, such as "
                f"YaRN with its default ramp"
            )
    return by_parts | {"factor": factor, "original_max_position_embeddings": length}


def _same(theirs: Tensor, ours: Tensor) -> bool:
    return theirs.shape == ours.shape and torch.allclose(theirs.double(), ours, rtol=NEAR, atol=0)

"""Which weights of a model belong to position, and which to content.

In a separated model the two are known to the number. The position part is what a position stream has for
itself (its encoding, its norms, values, outputs and MLPs) and the columns of W_Q and W_K that read it. All
else is the content part. So one part can be trained, kept in a file or taken off while the other stays as it
is, bit for bit: see `sepnb.training.adapt` and `adapters`.

A map that reads or writes several streams at once, such as a joint MLP, belongs to the content part, whatever
columns it has. A dense model has no position part.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..streams import BlockDiagonalLinear, StreamNorm
from .attention import Attention
from .weights import Model

PARTS = ("position", "content")

Masks = dict[str, Tensor]
"""For every parameter by name, a bool tensor of its shape."""


def parts(model: Model) -> dict[str, Masks]:
    """The parts of a model, as masks of its parameters by the names of `named_parameters`.

    Returns:
        Under the keys "position" and "content" a mask for the name of every parameter: bool, of its shape and
        on its device. No entry is in both parts, and each is in one. Without a position stream the masks of
        "position" are False throughout.
    """
    streams = model.config.position_streams
    position = _named(model, [*_own(model, streams), *_readers(model, streams)])
    return {"position": position, "content": {name: ~mask for name, mask in position.items()}}


def reading_maps(model: Model, streams: tuple[str, ...] | None = None) -> Masks:
    """The columns of W_Q and W_K that read some of the streams; None: all of W_Q and W_K, without biases."""
    return _named(model, _readers(model, streams))


def counted(masks: Masks) -> int:
    """How many numbers the masks hold."""
    return sum(int(mask.sum()) for mask in masks.values())


Marked = tuple[nn.Parameter, Tensor]


def _named(model: Model, marked: list[Marked]) -> Masks:
    """Masks of all parameters: those given, and False where there is none."""
    known = {id(parameter): mask for parameter, mask in marked}
    return {
        name: known.get(id(parameter), torch.zeros_like(parameter, dtype=torch.bool))
        for name, parameter in model.named_parameters()
    }


def _own(model: Model, streams: tuple[str, ...]) -> Iterator[Marked]:
    """The parameters that belong to these streams alone."""
    transformer = model.transformer
    filled = [*zip(transformer.input_streams, transformer.input_encodings, strict=True)]
    for modules in transformer.later_encodings:
        filled += zip(transformer.later_streams, modules, strict=True)
    owners: list[nn.Module] = [module for name, module in filled if name in streams]
    gains: list[nn.Parameter] = []
    for module in model.modules():
        if isinstance(module, BlockDiagonalLinear):
            owners += [block for name, block in module.blocks.items() if name in streams]
        elif isinstance(module, StreamNorm):
            gains += [one[name] for one in (module.gain, module.bias) for name in one if name in streams]
        elif isinstance(module, Attention):  # the bias of heads that read nothing else
            pairs = zip(module.groups, module.query_key, strict=True)
            gains += [m.bias for group, m in pairs if m.bias is not None and set(group.reads) <= set(streams)]
    for parameter in (*gains, *(one for owner in owners for one in owner.parameters())):
        yield parameter, torch.ones_like(parameter, dtype=torch.bool)


def _readers(model: Model, streams: tuple[str, ...] | None) -> list[Marked]:
    """W_Q and W_K of every group of heads, with the columns that read these streams, or all."""
    marked = []
    for module in model.modules():
        if isinstance(module, Attention):
            for group, projection in zip(module.groups, module.query_key, strict=True):
                mask = torch.zeros_like(projection.weight, dtype=torch.bool)
                for name, columns in group.reads.items():
                    mask[:, columns] = streams is None or name in streams
                marked.append((projection.weight, mask))
    return marked

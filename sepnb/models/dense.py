"""Adding can do what concatenation does: the dense model that computes a given separated one.

A dense model adds its position vectors to its content vectors. Where the content vectors are zero in some
columns and the position vectors are zero in all others, the sum is the concatenation. A block-diagonal matrix
is a full one with zeros beside its blocks. So a dense model of the same width and depth can compute what a
separated one does, and differs from it only in what training may do with those zeros.

One thing has no dense counterpart: a norm that is split, one for each stream. A dense norm divides all
columns by one number, so the separated model must have a joint norm.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from ..encodings import build
from ..streams import GATED, BlockDiagonalLinear, StreamNorm, Streams
from .language import LanguageModel


def as_dense(model: LanguageModel) -> LanguageModel:
    """The dense model with learned positions that computes the same logits, up to the trained length.

    It has the width, depth and heads of `model`. Its table of positions holds the rows of the position
    stream, and zeros in the columns of the content. Its token embedding and its output layer have zeros in
    the columns of position. Weights that the blocks of `model` leave out are zero.

    Args:
        model: separated, with norm="joint", one position stream that evolves, and queries and keys that read
            both streams.

    Returns:
        A new model of the same dtype and device, in training or evaluation as `model` is. Its rows end at
        `max_length`: further positions are refused, as by every learned table.

    Raises:
        ValueError: a model that is dense already, or another than `model` says.
    """
    config = model.config
    streams, own = config.streams, config.position_streams
    if not config.separated:
        raise ValueError("as_dense takes a separated model, and this one has a single stream")
    for field, value, needed in (
        ("norm", "split" if "norm" in config.splits else "joint", "joint"),
        ("query_key", config.reading, "joint"),
        ("pos_stream", config.pos_stream, "evolving"),
        ("readout", config.readout, "sem"),
        ("position streams", len(own), 1),
        ("encodings", len(config.encodings), 1),
    ):
        if value != needed:
            raise ValueError(f"as_dense needs {field} to be {needed!r}, got {value!r}")
    dense = LanguageModel(
        replace(
            config,
            streams=Streams.dense(streams.d_model),
            encoding=build("learned"),
            norm="split",
            split=None,
        ),
        model.vocab_size,
    ).to(model.embedding.weight)
    content = streams.slices["sem"]
    (table,) = dense.transformer.input_encodings
    (rows,) = model.transformer.embeddings(
        torch.arange(config.max_length, device=model.embedding.weight.device), model.embedding.weight.dtype
    ).values()
    modules = dict(dense.named_modules())
    with torch.no_grad():
        table.table.zero_()[:, streams.slices[own[0]]] = rows
        for weight, given in ((dense.embedding.weight, model.embedding), (dense.head.weight, model.head)):
            weight.zero_()[:, content] = given.weight
        for name, module in model.named_modules():
            if isinstance(module, BlockDiagonalLinear):
                gated = name.endswith(".mlp.up") and config.activation in GATED
                _fill(modules[name].blocks["sem"], module, 1 + gated)
            elif isinstance(module, StreamNorm):
                for kind, whole in ((module.gain, modules[name].gain), (module.bias, modules[name].bias)):
                    for stream, part in kind.items():
                        whole["sem"][streams.slices[stream]] = part
        for mine, theirs in zip(dense.transformer.blocks, model.transformer.blocks, strict=True):
            mine.attention.query_key.load_state_dict(theirs.attention.query_key.state_dict())
    return dense.train(model.training)


def _fill(whole: nn.Linear, blocks: BlockDiagonalLinear, pieces: int) -> None:
    """Put the blocks on the diagonal of a full matrix, and zeros beside them. The rows of each block are in
    so many pieces, such as the gates and the values of a gated MLP, and so are those of the whole."""
    parts: list[nn.Linear] = list(blocks.blocks.values())
    weights = zip(*(part.weight.chunk(pieces) for part in parts), strict=True)
    whole.weight.copy_(torch.cat([torch.block_diag(*piece) for piece in weights]))
    if whole.bias is not None:
        biases = zip(*(part.bias.chunk(pieces) for part in parts), strict=True)
        whole.bias.copy_(torch.cat([torch.cat(piece) for piece in biases]))


def off_diagonal(weight: Tensor, streams: Streams) -> float:
    """The share of a full matrix's squared entries that lies beside the blocks of `streams`, in [0, 1].

    Args:
        weight: `[rows, columns]`, both divided in the proportions of the streams (not the rows of a gated
            MLP, which hold these blocks twice).

    Raises:
        ValueError: a size that is not a multiple of the width of the streams.
    """
    if any(size % streams.d_model for size in weight.shape):
        raise ValueError(f"a matrix of {tuple(weight.shape)} has no blocks of {streams!r}")
    tall, wide = (size // streams.d_model for size in weight.shape)
    squares = weight.detach().square()
    beside = squares.clone()
    for at in streams.slices.values():
        beside[at.start * tall : at.stop * tall, at.start * wide : at.stop * wide] = 0
    return float(beside.sum() / squares.sum())

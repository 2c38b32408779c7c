"""Which positions a model takes: their shape, their type, how far its tables reach, which stream hears which
coordinate, and where documents begin."""

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..encodings import Encoding, InputModule, QueryKeyModule
from ..encodings.coordinates import OneCoordinate, highest, shapes
from ..encodings.relative import widened
from .cache import KVCache
from .config import TransformerConfig


def input_module(config: TransformerConfig, stream: str, encoding: Encoding) -> InputModule:
    """The module by which an encoding fills a stream, or adds to the content."""
    module = encoding.at_input(config.streams.widths[stream], config.max_length)
    if config.by_coordinate(encoding):
        return OneCoordinate(module, config.position_streams.index(stream))
    return module


def check_shape(positions: Tensor, batch: int, n: int, axes: int) -> None:
    """Refuse positions that are not those of `batch` sequences of `n` tokens.

    Raises:
        ValueError: with the shapes that would do.
    """
    shared, own = shapes(batch, n, axes)
    if positions.shape not in (shared, own):
        raise ValueError(
            f"positions of shape {list(positions.shape)} do not fit {batch} sequences of {n} "
            f"tokens; give {list(shared)} or {list(own)}"
        )


def check(positions: Tensor, config: TransformerConfig, limited: Sequence[InputModule]) -> None:
    """Refuse, on the host, positions that some encoding could only answer with silent nonsense.

    Raises:
        TypeError: positions are not integers, nor real where the config says that they may be.
        ValueError: a position is negative, not finite, or past the last row of a table.
    """
    real = positions.is_floating_point() and config.real_positions
    if not real and (
        positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool
    ):
        raise TypeError(f"positions must be integers, got {positions.dtype}{_why(config)}")
    if not positions.numel():
        return
    if real and not bool(positions.isfinite().all()):
        raise ValueError("a position is not finite; give the place of every token, or (0, ..., 0)")
    if (lowest := positions.min().item()) < 0:
        raise ValueError(f"position {lowest} is negative; positions start at 0")
    if limited:
        check_highest(highest(positions, config.axes), limited)


def check_counted(positions: Tensor, config: TransformerConfig, documents: Tensor | None = None) -> None:
    """Refuse positions of all keys, `[M]` or `[B, M]`, that an encoding which counts tokens could not hear.

    Raises:
        ValueError: two neighbours of a document are not one apart, and some encoding `counts_tokens`.
    """
    counting = [encoding.name for encoding in config.encodings if encoding.counts_tokens]
    if not counting:
        return
    jumping = positions.diff(dim=-1) != 1
    if documents is not None:
        jumping = jumping & (documents.diff(dim=-1) == 0)
        positions = positions.expand(documents.shape)
    if len(jumps := jumping.nonzero()):
        *row, place = jumps[0].tolist()
        one, other = positions[(*row, slice(place, place + 2))].tolist()
        raise ValueError(
            f"position {other} comes after position {one}, and {counting[0]} counts tokens: it would hear no "
            f"such step; give consecutive positions, from any start, or use an encoding that hears gaps"
        )


def check_span(
    positions: Tensor, bounded: Iterable[QueryKeyModule], dtype: torch.dtype, consecutive: bool | None
) -> None:
    """Refuse positions of all keys, `[M]` or `[B, M]`, too far apart for some encoding in this dtype.

    `consecutive`: it is known that they follow one another, and none is read.

    Raises:
        ValueError: see `QueryKeyModule.check_span`.
    """
    if not positions.numel() or (torch.compiler.is_compiling() and not consecutive):
        return
    if consecutive:
        span = positions.shape[-1] - 1
    else:
        span = int((positions.amax(dim=-1) - positions.amin(dim=-1)).max())
    for module in bounded:
        module.check_span(span, dtype)


def checked_documents(
    documents: Tensor, batch: int, n: int, model: nn.Module, cache: KVCache | None
) -> Tensor:
    """The documents as int64 `[B, N]`; refused is what does not say of every token which document it is of,
    and what a `Transformer` does that cannot be kept to documents.

    Raises:
        TypeError: numbers that are not integers.
        ValueError: another shape than `[B, N]`; a document that is not in one piece; a cache, sinks,
            `log_scale` or frequencies that follow the length, which count tokens over the borders.
    """
    if documents.is_floating_point() or documents.is_complex() or documents.dtype == torch.bool:
        raise TypeError(f"documents must be integers, got {documents.dtype}")
    if documents.shape != (batch, n):
        raise ValueError(f"documents have shape {list(documents.shape)}; give [{batch}, {n}], one per token")
    documents = widened(documents)  # no difference of unsigned numbers is below zero
    falls = (documents.diff(dim=-1) < 0).nonzero()
    if len(falls):
        row, place = falls[0].tolist()
        one, other = documents[row, place : place + 2].tolist()
        raise ValueError(
            f"document {other} comes after document {one} in sequence {row}; number the documents of a "
            f"sequence in its order, each in one piece"
        )
    over_borders = {
        "a cache or a memory": cache is not None,
        "sinks, the first tokens of a sequence": model.sinks > 0,
        "log_scale": model.log_scale,
        "frequencies that follow the length": any(module.by_length for module in model.query_key_encodings),
    }
    for what, asked in over_borders.items():
        if asked:
            raise ValueError(
                f"{what} cannot be had with documents: it counts tokens over their borders; read each "
                f"document by itself"
            )
    return documents


def restarting(documents: Tensor) -> Tensor:
    """Positions from 0 on in every document, `[B, N]`."""
    places = torch.arange(documents.shape[-1], device=documents.device)
    begins = F.pad(documents.diff(dim=-1) != 0, (1, 0))
    return places - (places * begins).cummax(dim=-1).values


def _why(config: TransformerConfig) -> str:
    """On several axes, the encodings that take no place between two integers."""
    if config.axes == 1:
        return ""
    refusing = [encoding.name for encoding in config.encodings if not encoding.real_positions]
    return f": {', '.join(refusing)} takes no place between two patches" if refusing else ""


def check_highest(ends: Sequence[int | float], modules: Iterable[InputModule]) -> None:
    """Refuse positions past a table; `ends` are their largest values, one for each coordinate.

    Raises:
        ValueError: with the value, the table and what would do.
    """
    for module in modules:
        limits = module.limit if isinstance(module.limit, tuple) else (module.limit,) * len(ends)
        for end, limit in zip(ends, limits, strict=False):
            if limit is not None and end > limit - 1:
                raise ValueError(module.refusal(end))

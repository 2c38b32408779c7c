"""What a call of a model is given is checked here, once, before anything is computed.

Every check raises a TypeError for another type and a ValueError for another value, with the value, the bound
and what would do. Values are read on the host. Under torch.compile, where a read would break the graph,
shapes and types are checked and values are not: positions of a compiled training are checked where they
are drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import validation
from ..encodings import InputModule, coordinates
from ..encodings.relative import widened
from ..validation import FARTHEST
from .cache import KVCache
from .config import TransformerConfig
from .position_tables import PositionTables, check_isolated


@dataclass(frozen=True)
class Call:
    """What a transformer computes, checked.

    Attributes:
        positions, keys: of the queries, `[N]` or `[B, N]`, and of all keys, those of the cache first.
        consecutive: whether the keys are known to be at p, p + 1, ...; None: not known.
        length: of the whole text, where frequencies follow it and a cache says it.
        documents: `[B, N]`, or None.
        counted: whether all positions so far are those from 0 on, by default.
        tables: those rows of the caller's tables that are of these positions.
    """

    positions: Tensor
    keys: Tensor
    consecutive: bool | None
    length: int | None
    documents: Tensor | None
    counted: bool
    tables: PositionTables | None


def checked(
    model: nn.Module,
    content: Tensor,
    positions: Tensor | None,
    cache: KVCache | None,
    documents: Tensor | None,
    tables: PositionTables | None,
) -> Call:
    """The arguments of a forward pass of a `Transformer`; positions that are not given are made."""
    config, axes = model.config, model.config.axes
    check_content(content, config)
    batch, n = content.shape[:2]
    if cache is not None:
        validation.instance("cache", cache, KVCache).check(batch, config, model.window, model.sinks)
    if documents is not None:
        documents = checked_documents(documents, batch, n, model, cache, tables)
        positions = restarting(documents) if positions is None and axes == 1 else positions
    counted = positions is None and axes == 1 and (cache is None or cache.counted)
    if counted:  # known on the host: no need to read the device
        start = 0 if cache is None else cache.read
        positions = torch.arange(start, start + n, device=content.device)
        check_highest([start + n - 1], limited(model))
    else:
        if positions is None and cache is None:
            positions = coordinates.following(None, n, content.device, axes)
        elif positions is None:
            positions = cache.next_positions(n, content.device)
        check_shape(positions, batch, n, axes)
        validation.on_device("positions", positions, content.device)
        check_positions(positions, model)
        positions = widened(positions)
    keys = positions if cache is None else cache.positions_with(positions)
    if not counted:
        check_counted(keys, model, documents)
    consecutive = n > 0 if counted else None
    if bounded(model):
        kind = content.device.type  # maps are computed in its dtype under autocast
        lower = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
        dtype = torch.get_autocast_dtype(kind) if lower else content.dtype
        check_span(keys, model, dtype, consecutive)
    length = cache.whole_length(keys) if cache is not None and model.by_length else None
    if tables is not None:
        tables = checked_tables(tables, model, positions, cache, counted, length)
    elif cache is not None and cache.with_tables:
        raise ValueError(
            "this cache was read with position tables and holds nothing of the position heads; go on with "
            "tables=, of as many positions as the text will have"
        )
    return Call(positions, keys, consecutive, length, documents, counted, tables)


def check_tokens(tokens: Tensor, vocab_size: int, device: torch.device) -> Tensor:
    """Tokens `[B, N]` as an embedding takes them: of any integer type, below the vocabulary size."""
    validation.integers("tokens", tokens)
    if tokens.dim() != 2:
        raise ValueError(f"tokens have shape {list(tokens.shape)}; give [batch, length]")
    validation.on_device("tokens", tokens, device)
    tokens = tokens if tokens.dtype in (torch.int32, torch.int64) else tokens.long()
    if tokens.device.type == "cpu" and tokens.numel() and not torch.compiler.is_compiling():
        lowest, highest = int(tokens.min()), int(tokens.max())
        if lowest < 0 or highest >= vocab_size:
            wrong = lowest if lowest < 0 else highest
            raise ValueError(f"token {wrong} is outside the vocabulary 0 to {vocab_size - 1}")
    return tokens


def check_content(content: Tensor, config: TransformerConfig) -> None:
    """Raise unless `content` is floating and `[B, N, d_sem]`."""
    width = config.streams.widths["sem"]
    if validation.floating("content", content).dim() != 3 or content.shape[-1] != width:
        raise ValueError(f"content has shape {list(content.shape)}; give [batch, length, {width}]")


def check_shape(positions: Tensor, batch: int, n: int, axes: int) -> None:
    """Refuse positions that are not those of `batch` sequences of `n` tokens."""
    shared, own = coordinates.shapes(batch, n, axes)
    if validation.tensor("positions", positions).shape not in (shared, own):
        raise ValueError(
            f"positions of shape {list(positions.shape)} do not fit {batch} sequences of {n} "
            f"tokens; give {list(shared)} or {list(own)}"
        )


def check_positions(positions: Tensor, model: nn.Module) -> None:
    """Refuse, on the host, positions that some encoding could only answer with silent nonsense."""
    config = model.config
    real = validation.tensor("positions", positions).is_floating_point() and config.real_positions
    if not real and (
        positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool
    ):
        refusing = [one.name for one in config.encodings if config.axes > 1 and not one.real_positions]
        why = f": {', '.join(refusing)} takes no place between two patches" if refusing else ""
        raise TypeError(f"positions must be integers, got {positions.dtype}{why}")
    if not positions.numel() or validation.unread(positions, model.vouched):
        return
    if real and not bool(positions.isfinite().all()):
        raise ValueError("a position is not finite; give the place of every token, or (0, ..., 0)")
    lowest, highest = (end.item() for end in widened(positions).aminmax())
    if lowest < 0:
        raise ValueError(f"position {lowest} is negative; positions start at 0")
    if highest >= FARTHEST:
        raise ValueError(f"position {highest} is beyond {FARTHEST - 1}, the largest that is taken")
    if limited(model):
        check_highest(coordinates.highest(positions, config.axes), limited(model))


def limited(model: nn.Module) -> list[InputModule]:
    """The encodings of a transformer that have no answer from some position on."""
    return [one for one in (*model.input_encodings, *model.projection_encodings) if one.limit is not None]


def bounded(model: nn.Module) -> list[nn.Module]:
    """The encodings of a transformer that have no answer for keys too far apart."""
    return [module for module in model.query_key_encodings if module.bounds_span]


def check_highest(ends: Sequence[int | float], modules: Sequence[InputModule]) -> None:
    """Refuse positions past a table; `ends` are their largest values, one for each coordinate."""
    for module in modules:
        limits = module.limit if isinstance(module.limit, tuple) else (module.limit,) * len(ends)
        for end, limit in zip(ends, limits, strict=False):
            if limit is not None and end > limit - 1:
                raise ValueError(module.refusal(end))


def check_drawn(model: nn.Module, positions: Tensor) -> None:
    """Refuse positions of a training step, `[N]` or `[B, N]`, that a `Transformer` in the model would refuse:
    asked before they go to a device, because a compiled step reads none."""
    for module in model.modules():
        if hasattr(module, "check_drawn"):  # what has bounds of its own
            module.check_drawn(positions)
        if hasattr(module, "query_key_encodings"):
            check_positions(positions, module)
            check_counted(positions, module)
            check_span(positions, module, next(module.parameters()).dtype)


def check_counted(positions: Tensor, model: nn.Module, documents: Tensor | None = None) -> None:
    """Refuse positions of all keys, `[M]` or `[B, M]`, with jumps that an encoding which counts tokens would
    not see."""
    if not model.counting or validation.unread(positions, model.vouched):
        return
    jumping = positions.diff(dim=-1) != 1
    if documents is not None:
        jumping = jumping & (documents.diff(dim=-1) == 0)
        positions = positions.expand(documents.shape)
    if len(jumps := jumping.nonzero()):
        *row, place = jumps[0].tolist()
        one, other = positions[(*row, slice(place, place + 2))].tolist()
        raise ValueError(
            f"position {other} comes after position {one}, and {model.counting[0]} counts tokens: it would "
            f"miss that step; give consecutive positions, from any start, or use an encoding that reads gaps"
        )


def check_span(
    positions: Tensor, model: nn.Module, dtype: torch.dtype, consecutive: bool | None = None
) -> None:
    """Refuse positions of all keys, `[M]` or `[B, M]`, too far apart for some encoding in this dtype. Where
    they are known to be consecutive, none is read."""
    unread = not consecutive and validation.unread(positions, model.vouched)
    if unread or not positions.numel() or not bounded(model):
        return
    if consecutive:
        span = positions.shape[-1] - 1
    else:
        span = int((positions.amax(dim=-1) - positions.amin(dim=-1)).max())
    for module in bounded(model):
        module.check_span(span, dtype)


def checked_documents(
    documents: Tensor,
    batch: int,
    n: int,
    model: nn.Module,
    cache: KVCache | None,
    tables: PositionTables | None,
) -> Tensor:
    """The documents as int64 `[B, N]`; whatever counts tokens over the borders of documents is refused."""
    if validation.integers("documents", documents).shape != (batch, n):
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
        "a cache": cache is not None,
        "position tables": tables is not None,
        "sinks, the first tokens of a sequence": model.sinks > 0,
        "log_scale": model.log_scale,
        "frequencies that follow the length": model.by_length,
    }
    if asked := [what for what, there in over_borders.items() if there]:
        raise ValueError(
            f"{asked[0]} cannot be had with documents: it counts tokens over their borders; read each "
            f"document by itself"
        )
    return documents


def restarting(documents: Tensor) -> Tensor:
    """Positions from 0 on in every document, `[B, N]`."""
    index = torch.arange(documents.shape[-1], device=documents.device)
    begins = F.pad(documents.diff(dim=-1) != 0, (1, 0))
    return index - (index * begins).cummax(dim=-1).values


def checked_tables(
    tables: PositionTables,
    model: nn.Module,
    positions: Tensor,
    cache: KVCache | None,
    counted: bool,
    length: int | None,
) -> PositionTables:
    """The rows of a caller's tables that are of these positions."""
    if not isinstance(tables, PositionTables):
        raise TypeError(f"tables must be of model.position_tables(), got {type(tables).__name__}")
    check_isolated(model.config)
    axes = model.config.axes
    if coordinates.differ(positions, axes):
        raise ValueError(
            f"positions of shape {list(positions.shape)} differ by sequence, and position tables serve those "
            f"that all sequences share; give [N], or leave tables out"
        )
    validation.on_device("the position tables", tables.positions, positions.device)
    n, start = coordinates.tokens_of(positions, axes), 0 if cache is None else cache.read
    if model.by_length and length is None:
        length = int(positions.max()) + 1 if n else tables.length
    tables.check_model(model.table_widths, model.rules, length)
    tables.check_positions(positions, start, counted)
    if cache is not None and len(cache) and not (counted and tables.counted):
        tables.check_positions(cache.positions, start - len(cache), False)
    return tables.between(start, start + n)


def table_positions(model: nn.Module, positions: Tensor | int, length: int | None) -> tuple[Tensor, bool]:
    """The positions of tables, on the device of the model, and whether they are known to be 0 to N-1."""
    check_isolated(model.config)
    axes, device = model.config.axes, next(model.parameters()).device
    if length is not None:
        validation.whole("length", length)
    if not isinstance(positions, Tensor):
        validation.whole("positions", positions, 0, 2**26)
        positions = coordinates.following(None, positions, device, axes)
        check_positions(positions, model)
        return positions, True
    validation.readable("positions", positions)
    if positions.dim() != (1 if axes == 1 else 2):
        raise ValueError(
            f"positions of shape {list(positions.shape)}; tables are of positions that all sequences share, "
            f"[N{'' if axes == 1 else f', {axes}'}]"
        )
    check_positions(positions, model)
    check_counted(positions, model)
    check_span(positions, model, next(model.parameters()).dtype)
    return widened(positions).to(device), False

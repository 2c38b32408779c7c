"""The position tables of an isolated model: its position streams, run once for many sequences and texts.

Where the position streams read nothing of the content, a model is a transformer of the width of its sem
stream, with a table of positions added to the queries and keys of each layer. A forward pass without tables
runs the *position branch* first, once for its batch. Whoever reads many texts with the same weights makes
them once, as a KV cache is made, and gives them to every call:

    tables = model.position_tables(256)             # positions 0 to 255
    with torch.no_grad():
        for text in texts:
            logits = model(text, tables=tables)     # of any length up to 256

They belong to the weights, dtype and device of the model at that time: make them anew after a step of an
optimiser. With gradients enabled they carry gradients, and in training one draw of the dropout.

Shape letters: H heads of the sem stream, N positions, d head width, w width of one stream.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from .cache import KVCache
from .config import SPLIT, TransformerConfig
from .context import AttentionContext


@dataclass(frozen=True)
class PositionTables:
    """What the position streams of an isolated model give to the content.

    Under a causal mask the tables of a text are the first rows of those of any longer one, and with a cache a
    call takes the rows after those that the cache has read.

    Attributes:
        positions, counted: `[N]`, or `[N, n]` on n > 1 axes, and whether they are known to be 0 to N-1.
        tables: for each layer what they add to the queries and keys of the sem heads, `[1, N, 2*H*d]`.
        streams: the final state of the position streams, `[1, N, w]` each.
        rules, length: of evaluation, and of the whole text where frequencies follow it, when they were made.
        whole: whether they serve all N positions at once only, because a row depends on those after it.
    """

    positions: Tensor
    tables: tuple[Tensor | None, ...]
    streams: dict[str, Tensor]
    rules: Hashable = None
    counted: bool = False
    length: int | None = None
    whole: bool = False

    def __len__(self) -> int:
        return len(self.positions)

    def between(self, start: int, stop: int) -> "PositionTables":
        """The rows from `start` to `stop` - 1."""
        if (start, stop) == (0, len(self)):
            return self
        tables = tuple(None if table is None else table[:, start:stop] for table in self.tables)
        streams = {name: x[:, start:stop] for name, x in self.streams.items()}
        return replace(self, positions=self.positions[start:stop], tables=tables, streams=streams)

    def check_model(self, widths: tuple[int | None, ...], rules: Hashable, length: int | None) -> None:
        """Refuse tables of another model or another rule of evaluation than the one with these columns and
        rules, and this length of the whole text, where frequencies follow it."""
        own = tuple(None if table is None else table.shape[-1] for table in self.tables)
        for what, held, needed in (
            ("columns by layer", own, widths),
            ("rules of evaluation (window, sinks, log_scale, frequencies)", self.rules, rules),
            ("a length of the whole text, which the frequencies follow:", self.length, length),
        ):
            if held != needed:
                raise ValueError(
                    f"the position tables have {what} {held}, this call needs {needed}; make them with this "
                    f"model" + f", length={length}" * (what.startswith("a length"))
                )

    def check_positions(self, positions: Tensor, start: int, counted: bool) -> None:
        """Refuse positions `[N]` of a call after `start` tokens that are not those of the rows from `start`
        on. `counted`: they are known to be `start`, `start` + 1, ..."""
        stop = start + len(positions)
        if stop > len(self) or (self.whole and (start, stop) != (0, len(self))):
            only = " at once, because each row depends on all of them" if self.whole else ""
            raise ValueError(
                f"tokens {start} to {stop - 1} are asked for, and the position tables serve {len(self)} "
                f"positions{only}; make position_tables({stop})"
            )
        if not (counted and self.counted) and not torch.equal(positions, self.positions[start:stop]):
            raise ValueError(
                f"the position tables are of other positions than those of tokens {start} to {stop - 1}; "
                f"make them of the positions of the whole text, position_tables(positions)"
            )


def position_branch(
    model: nn.Module,
    embeddings: Mapping[str, Tensor],
    context: AttentionContext,
    cache: KVCache | None = None,
) -> PositionTables:
    """The position streams of an isolated `Transformer` alone, for the positions of the context.

    `embeddings` is what its input encodings give at these positions, `[N, w]` for each position stream; a
    cache is extended in place by keys and values of the position heads.
    """
    check_isolated(model.config)
    embeddings = {name: embedding[None] for name, embedding in embeddings.items()}
    tables, positions = [], context.query_positions

    def step(layer: int, block: nn.Module, x: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        tables.append(block.attention.position_table(block.attention_norm.parts(x)))
        return block(x, context, cache) if x.keys() & set(block.outputs) else {}

    x = model.run_blocks(model.dropped(embeddings), embeddings, positions, step)
    return PositionTables(positions, tuple(tables), x, model.rules)


def check_isolated(config: TransformerConfig) -> None:
    """Refuse a model whose position streams read the content."""
    if config.isolated:
        return
    missing = [name for name in SPLIT if name not in config.splits]
    if not config.separated:
        why = "it has one stream; give Streams(pos=..., sem=...)"
    elif missing:
        why = f"{', '.join(missing)} not split; leave out split= and norm=, which split everything"
    else:
        why = (
            f"with query_key={config.reading!r} the position streams read the content; use "
            f"query_key='strict' or 'untied', or pos_stream='constant'"
        )
    raise ValueError(f"the model has no position tables: {why}")

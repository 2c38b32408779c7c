"""Exact multiply-adds of a transformer, block by block, from its config alone.

Counted are the maps and the attention of the blocks, per token, forward; backward, the maps cost twice as
much. A term of the score that comes as more columns of queries and keys counts with the map that makes them.
If nothing else took time and every product were equally fast, the ratio of two counts would be the ratio of
the times: this limit is printed beside each measured ratio. Not counted are norms, activations, softmax,
rotations, biases, residual sums, embeddings and read-out, what encodings compute from positions once for all
layers, and the zeros that pad values where queries and keys are wider.

With D the width, r the pos share, N the length and B the batch, a block with every stream comes to

    dense       12 D^2 + N D
    separated    2 D^2 + 10 (d_pos^2 + d_sem^2) + N D
    strict      12 d_sem^2 + (1-r) N D + [12 d_pos^2 + 2 d_pos d_sem + r N D] / B

where causal attention counts N D: scores and values, half of the square of queries and keys. Kernels that
compute blocks of the square do more than that. With a window of W tokens it is a band, (2 W - W^2 / N) D.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from ..encodings import Encoding, Fire, Heads, PairModule, QueryKeyModule, Site
from ..models import TransformerConfig
from ..models.layout import BlockLayout, Layout, heads_for
from ..streams import GATED
from ..validation import whole

KINDS = ("query_key", "attention", "value", "output", "mlp")
"""What is counted apart: the maps to queries and keys, scores and averaged values, and the other maps."""


@dataclass(frozen=True)
class MultiplyAdds:
    """The count of one block, for one token.

    Attributes:
        each: per kind of map, what every token of every sequence costs.
        once: what only the position streams of an isolated model cost: once per position for a whole batch
            that shares its positions.
    """

    each: dict[str, float]
    once: dict[str, float]

    def per_token(self, batch: int = 1) -> float:
        """Multiply-adds of one token where `batch` sequences share their positions."""
        return sum(self.by_kind(batch).values())

    def by_kind(self, batch: int = 1) -> dict[str, float]:
        """The same, for each of `KINDS`; ValueError for a batch below 1."""
        whole("batch", batch, needs="at least 1 sequence is computed")
        return {kind: self.each[kind] + self.once[kind] / batch for kind in KINDS}


def block(config: TransformerConfig, layout: BlockLayout, length: int, layer: int = 0) -> MultiplyAdds:
    """A block of `config` of this layout, the one of this layer, on sequences of `length` tokens.

    Raises:
        ValueError: a length below 1; an encoding that makes scores or values of its own in every layer, which
            are not counted.
    """
    whole("length", length, needs="a sequence has at least 1 token")
    heads, at, encodings = heads_for(config, layout), Site.QUERY_KEY, config.encodings_of(layer)
    for encoding in encodings:
        if _adds_terms(encoding, config):
            raise ValueError(
                f"the terms that {encoding.name!r} adds in every layer are not counted; leave it out"
            )
    at_queries = [e.at_query_key(Heads(width=heads.width)) for e in encodings if not e.each_layer(at)]
    more = sum(module.more for module in at_queries if isinstance(module, QueryKeyModule))
    each, once = dict.fromkeys(KINDS, 0.0), dict.fromkeys(KINDS, 0.0)

    def add(kind: str, streams: Iterable[str], count: int | float) -> None:
        """`streams` says whose work it is."""
        (once if config.isolated and "sem" not in streams else each)[kind] += count

    widths, total = config.streams.widths, config.streams.d_model
    d, shared = config.head_width, config.heads_per_kv
    common = max((one.common_key(d) for one in encodings), default=0)
    with torch.device("meta"):  # only to be asked: nothing is allocated, and no random number is drawn
        terms = [e.at_query_key(heads) for e in encodings if e.each_layer(at)]
    terms = [term for term in terms if term is not None]
    if heads.reading:
        add("query_key", ("sem",), sum(term.products for term in terms))

    for reads, group in groupby(layout.heads, key=config.reads):
        alike = list(group)
        for name in reads:
            keys = len(alike) // shared * (d - common) + common
            add("query_key", (name,), widths[name] * (len(alike) * d + keys))
        two_parts = config.reading == "untied" and "sem" in reads and len(reads) > 1
        columns = (3 if two_parts else 2) * d + more  # of a query, and of a value
        columns += sum(term.more for term in terms) if "sem" in reads else 0
        add("attention", _written(config, alike), len(alike) * columns * _seen(config, length))

    if "value_output" in config.splits:
        for name in layout.attended:
            add("value", (name,), widths[name] ** 2 // shared)
            add("output", (name,), widths[name] ** 2)
    else:
        add("value", widths, total * total // shared)
        add("output", widths, total * sum(widths[name] for name in layout.attended))

    up = (1 + (config.activation in GATED)) * config.expansion
    if "mlp" in config.splits:
        for name in layout.outputs:
            add("mlp", (name,), (up + config.expansion) * widths[name] ** 2)
    else:
        written = sum(widths[name] for name in layout.outputs)
        add("mlp", widths, up * total * total + config.expansion * total * written)
    return MultiplyAdds(each, once)


def _adds_terms(encoding: Encoding, config: TransformerConfig) -> bool:
    """Whether it makes scores or values of its own in every layer."""
    makes_scores = isinstance(encoding.at_score(Heads(causal=config.causal)), PairModule)
    return makes_scores or Site.VALUE in encoding.sites or isinstance(encoding, Fire)


def counted(config: TransformerConfig) -> TransformerConfig:
    """The same model without the encodings that `block` refuses to count."""
    kept = tuple(encoding for encoding in config.encodings if not _adds_terms(encoding, config))
    return config if len(kept) == len(config.encodings) else replace(config, encoding=kept or "none")


def _seen(config: TransformerConfig, length: int) -> int | float:
    """Keys that a query sees in the mean; with a window of W tokens the first W queries see fewer."""
    if not config.causal:
        return length
    window = length if config.window is None else min(config.window, length)
    return window - window * window / (2 * length)


def _written(config: TransformerConfig, heads: list[int]) -> list[str]:
    """The streams in which the columns of these heads lie."""
    start, stop = heads[0] * config.head_width, (heads[-1] + 1) * config.head_width
    return [name for name, at in config.streams.slices.items() if at.start < stop and start < at.stop]


def blocks(config: TransformerConfig, length: int) -> tuple[MultiplyAdds, ...]:
    """Every block of the model, in order. With readout="sem" the last one computes less."""
    layouts = enumerate(Layout.of(config).blocks)
    return tuple(block(config, layout, length, layer) for layer, layout in layouts)


def per_token(config: TransformerConfig, length: int, batch: int = 1) -> float:
    """Forward multiply-adds of all blocks for one token, as `MultiplyAdds.per_token`."""
    return sum(one.per_token(batch) for one in blocks(config, length))


def speedup(
    baseline: TransformerConfig,
    config: TransformerConfig,
    length: int,
    batch: int = 1,
    kinds: Sequence[str] = KINDS,
) -> float:
    """The multiply-adds of `baseline` divided by those of `config`, for some `KINDS` or all: the limit of the
    speed-up of `config`."""
    needed = [
        sum(one.by_kind(batch)[kind] for one in blocks(model, length) for kind in kinds)
        for model in (baseline, config)
    ]
    return needed[0] / needed[1]


def _fused(query, key, value, dropout: float = 0.0, is_causal: bool = False, *_, out_shape=None, **__) -> int:
    return sdpa_flop_count(query, key, value) // (1 + is_causal)


def _fused_backward(
    gradient, query, key, value, out, lse, dropout: float, is_causal: bool, *_, out_shape=None, **__
) -> int:
    return sdpa_backward_flop_count(gradient, query, key, value) // (1 + is_causal)


_aten = torch.ops.aten
_OF_THE_CPU = {
    _aten._scaled_dot_product_flash_attention_for_cpu: _fused,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _fused_backward,
}
"""The fused kernels of a CPU, which torch does not count. A causal one may leave out half of the square."""


def products_of(step: Callable[[], object]) -> float:
    """Multiply-adds of the matrix products in one call of an eager step, its backward pass included.

    Of a fused causal kernel half of the square of queries and keys is counted, the least it can do; its
    backward pass forms the scores once more, five products in place of four. Sums, gathers, exponentials and
    masks are not counted.
    """
    with FlopCounterMode(display=False, custom_mapping=_OF_THE_CPU) as counter:
        step()
    return counter.get_total_flops() / 2

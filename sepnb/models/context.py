"""What all layers of one forward pass share: positions, who sees whom, and what encodings made of these.

Shape letters: B batch, H heads, N query length, M key length.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..encodings import coordinates
from ..encodings.base import PairModule, Place, QueryKeyModule, ScoreModule, ValueModule
from .fast import kernels
from .windows import visible


@dataclass
class AttentionContext:
    """Positions of one forward pass, and what follows of them. Masks are made when first asked for.

    Attributes:
        query_positions, key_positions: `[N]` and `[M]`, or `[B, N]` and `[B, M]`; the queries are the last N
            of the M keys. On n > 1 axes each has one more dimension, of the coordinates.
        dtype: of a mask without biases.
        causal, window, sinks: which keys a query sees, as in `windows.visible`.
        consecutive: as in `sepnb.encodings.relative.by_distance`.
        biases, own_biases: the score modules that all layers share; whether layers have biases of their own.
        rotations: per query/key encoding its module and what it prepared for the queries and for the keys.
        terms: what the terms of a layer prepared of the positions, in their order.
        sharpening: factor of the logits of each query, `[N, 1]`; None is 1.
        compiler: of the formulas, see `kernels`; None is eager.
        at_once: scores that are held at once, see `pieces`; None: as many as the device has room for.
        embedding: `[N, w]` or `[B, N, w]`, added to the sem stream where it makes queries and keys.
        axes: coordinates of a position.
        query_documents, key_documents: `[B, N]` and `[B, M]`; a query sees keys of its own document only.
    """

    query_positions: Tensor
    key_positions: Tensor
    dtype: torch.dtype
    causal: bool
    consecutive: bool = False
    window: int | None = None
    sinks: int = 0
    biases: Sequence[ScoreModule] = ()
    own_biases: bool = False
    rotations: Sequence[tuple[QueryKeyModule, Any, Any]] = ()
    terms: Sequence[Any] = ()
    sharpening: Tensor | None = None
    embedding: Tensor | None = None
    compiler: kernels.Compiler | None = None
    at_once: int | None = None
    axes: int = 1
    query_documents: Tensor | None = None
    key_documents: Tensor | None = None
    _mask: Tensor | None = field(default=None, init=False)
    _bare: "AttentionContext | None" = field(default=None, init=False)
    _own: tuple[nn.ModuleList, Tensor] | None = field(default=None, init=False)
    _prepared: dict[str, Any] = field(default_factory=dict, init=False)
    _parts: dict[tuple[int, int], "AttentionContext"] = field(default_factory=dict, init=False)

    @property
    def n_queries(self) -> int:
        return coordinates.tokens_of(self.query_positions, self.axes)

    @property
    def n_keys(self) -> int:
        return coordinates.tokens_of(self.key_positions, self.axes)

    @property
    def by_sequence(self) -> bool:
        """Whether every sequence has a mask of its own: other positions, or other documents."""
        return self.key_documents is not None or coordinates.differ(self.key_positions, self.axes)

    @property
    def bare(self) -> "AttentionContext":
        """That of the layers in which no encoding acts."""
        if self._bare is None:
            nothing = {"biases": (), "own_biases": False, "rotations": (), "terms": (), "embedding": None}
            self._bare = replace(self, **nothing)
        return self._bare

    @property
    def masked(self) -> bool:
        """Whether there is a `mask`. The kernel's own causal one aligns queries with the first keys, not with
        the last, and cannot be joined with a bias."""
        n, m = self.n_queries, self.n_keys
        windowed = self.window is not None and self.window < m
        ours = self.causal and (self.own_biases or windowed or n != m)
        return self.key_documents is not None or bool(self.biases) or ours

    @property
    def mask(self) -> Tensor | None:
        """Additive, with the shared biases: `[N, M]` or `[H, N, M]`, or where sequences differ `[B, 1, N, M]`
        or `[B, H, N, M]`; None if not `masked`."""
        if self._mask is None and self.masked:
            mask, seen = self._sum(self.biases) if self.biases else None, self._seen()
            if seen is not None and mask is None:
                mask = torch.zeros(seen.shape, dtype=self.dtype, device=seen.device)
            if seen is not None and seen.dim() > mask.dim():
                mask = mask.expand(torch.broadcast_shapes(mask.shape, seen.shape))
            self._mask = mask if seen is None else mask.masked_fill(~seen, -torch.inf)
        return self._mask

    def _seen(self) -> Tensor | None:
        """Which keys a query may see, bool `[N, M]`, or `[B, 1, N, M]` with documents; None: all."""
        seen = None
        if self.causal:
            ends = {"window": self.window, "sinks": self.sinks}
            seen = visible(self.n_queries, self.n_keys, self.query_positions.device, **ends)
        if self.key_documents is not None:
            same = self.query_documents[:, None, :, None] == self.key_documents[:, None, None, :]
            seen = same if seen is None else same & seen
        return seen

    def own_bias(self, modules: nn.ModuleList) -> Tensor:
        """The sum of the biases of one layer; that of the layer asked last is kept for its other heads."""
        if self._own is None or self._own[0] is not modules:
            self._own = modules, self._sum(modules)
        return self._own[1]

    def _sum(self, modules: Iterable[ScoreModule]) -> Tensor:
        at = self.query_positions, self.key_positions, self.consecutive
        first, *others = (module(*at) for module in modules)
        return sum(others, start=first)

    def prepared(self, site: str, module: PairModule | ValueModule) -> Any:
        """What a module needs of the positions: from the first layer that asks, for all."""
        if site not in self._prepared:
            self._prepared[site] = module.prepare(self.query_positions, self.key_positions, self.consecutive)
        return self._prepared[site]

    def embedded(self, parts: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The normalised streams as they make queries and keys."""
        if self.embedding is None or "sem" not in parts:
            return parts
        return {**parts, "sem": parts["sem"] + self.embedding}

    def rotated(
        self, q: Tensor, k: Tensor, reads: Collection[str], place: Place | None = None, first: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys made from the streams `reads`, changed by the encodings. Modules with `once` act
        on the `first` part of a head only; `place` is that of `QueryKeyModule.forward`."""
        both = kernels.chosen(_both, self.compiler)
        for module, for_queries, for_keys in self.rotations:
            acts = module.streams is None or set(reads) <= set(module.streams)
            if acts and (first or not module.once):
                q, k = both(module, q, k, for_queries, for_keys, place)
        return q, k

    @property
    def banded(self) -> bool:
        """Whether every query sees a band of the keys: the last `window` of more, and no sinks."""
        return self.causal and self.window is not None and self.window < self.n_keys and not self.sinks

    def keys_of(self, start: int, stop: int) -> tuple[int, int]:
        """From where to where the keys go that one of the queries `start` to `stop` - 1 may see."""
        m = self.n_keys
        before = m - self.n_queries
        first = max(0, before + start - self.window + 1) if self.banded else 0
        return first, before + stop if self.causal else m

    def rows(self, start: int, stop: int, *, keep: bool = False) -> "AttentionContext":
        """The context of the queries `start` to `stop` - 1 and of the keys in their `keys_of`, for use after
        rotations and terms. With `keep` all layers get the same one."""
        if keep:
            if (start, stop) not in self._parts:
                self._parts[start, stop] = self.rows(start, stop)
            return self._parts[start, stop]
        before, (first, end) = self.n_keys - self.n_queries, self.keys_of(start, stop)
        return replace(
            self,
            query_positions=coordinates.cut(self.query_positions, start, stop, self.axes),
            key_positions=coordinates.cut(self.key_positions, first, end, self.axes),
            consecutive=self.consecutive and end == before + stop,  # else more keys follow the queries
            rotations=(),
            terms=(),
            embedding=None,
            sharpening=None if self.sharpening is None else self.sharpening[start:stop],
            query_documents=None if self.query_documents is None else self.query_documents[:, start:stop],
            key_documents=None if self.key_documents is None else self.key_documents[:, first:end],
        )


def _both(
    module: QueryKeyModule, q: Tensor, k: Tensor, for_queries: Any, for_keys: Any, place: Place | None
) -> tuple[Tensor, Tensor]:
    return module(q, for_queries, place), module(k, for_keys, place)

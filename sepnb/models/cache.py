"""What earlier tokens leave behind, so that one more token costs one more row."""

from collections.abc import Hashable, Iterable

import torch
from torch import Tensor

from .. import validation
from ..encodings import coordinates
from . import windows
from .config import TransformerConfig


class KVCache:
    """Keys and values of every layer, and the positions of the tokens they belong to.

    Keys are kept as projected, before any rotation, so that they stay valid where frequencies change with the
    length. What all sequences share, such as the position heads of a strict model, is kept once. For a model
    with a window the cache rolls: a call gets everything that it may see, and only the last W - 1 tokens,
    with their positions, are kept after it.

    Args:
        batch_size, n_layers: sequences, and layers of the model.
        length: positions of the whole text, for encodings that depend on it: what a layer leaves behind was
            computed with one length and holds for no other.
        axes: coordinates of a position. On several, positions have one more dimension than is said below.
        window: W, tokens that a query of the model sees, itself included; None keeps every token.

    Attributes:
        positions: of the tokens held, `[M]` or `[B, M]`.
        counted: whether no call has given other positions than those from 0 on.
        with_tables: whether a call was given position tables; the position heads were then not computed, and
            are not held.
        read: tokens read so far, per sequence, those held no more included.
        room: how many tokens are held at most; None: all.
    """

    def __init__(
        self,
        batch_size: int,
        n_layers: int,
        length: int | None = None,
        axes: int = 1,
        window: int | None = None,
    ) -> None:
        windows.check(window, causal=True)
        validation.whole("batch_size", batch_size, needs="a cache needs at least 1 sequence")
        validation.whole("n_layers", n_layers)
        validation.whole("axes", axes, needs="a position has at least 1 coordinate")
        if length is not None:
            validation.whole("length", length, needs="a text has at least 1 position")
        self.batch_size, self.n_layers, self.length, self.axes = batch_size, n_layers, length, axes
        self.window, self.room = window, None if window is None else window - 1
        self.positions: Tensor | None = None
        self.counted, self.with_tables, self.read = True, False, 0
        self._latest: Tensor | None = None  # on one axis, the largest position read: [1] or [B, 1]
        self._held: dict[Hashable, tuple[Tensor, Tensor]] = {}

    def __len__(self) -> int:
        """Tokens held, per sequence."""
        return 0 if self.positions is None else coordinates.tokens_of(self.positions, self.axes)

    def numel(self) -> int:
        """Numbers held, keys and values of all layers."""
        return sum(keys.numel() + values.numel() for keys, values in self._held.values())

    def check(self, batch: int, config: TransformerConfig, window: int | None, sinks: int) -> None:
        """Refuse a batch or a model that this cache is not for, or a rule by which a query sees tokens that
        are held no more."""
        if self.batch_size != batch:
            raise ValueError(
                f"the cache holds {self.batch_size} sequences, the input has {batch}; make a new cache"
            )
        sizes = (("layers", self.n_layers, config.n_layers), ("axes", self.axes, config.axes))
        for what, own, needed in sizes:
            if own != needed:
                raise ValueError(
                    f"the cache is of a model of {own} {what}, this one has {needed}; make a cache with this "
                    f"model"
                )
        if not config.causal:
            raise ValueError(
                "a cache needs a causal model: without a mask, earlier tokens would have to change"
            )
        if self.window is not None and (window is None or window > self.window or sinks):
            sees = "all tokens" if window is None else f"{window} tokens and {sinks} sinks"
            raise ValueError(
                f"the cache keeps what a window of {self.window} tokens needs, and this model "
                f"sees {sees}; make a cache with this model"
            )

    def whole_length(self, key_positions: Tensor) -> int:
        """The length of the text that it is for; ValueError where it was not given or a position is past."""
        if self.length is None:
            raise ValueError(
                "the frequencies of this model follow the length of the text, and what a cache holds was "
                "computed with one length; say it beforehand: make_cache(batch_size, length=...)"
            )
        if key_positions.numel() and (highest := int(key_positions.max())) >= self.length:
            raise ValueError(
                f"position {highest} is past the {self.length} positions that this cache is for; make one "
                f"with a length of at least {highest + 1}"
            )
        return self.length

    def next_positions(self, count: int, device: torch.device) -> Tensor:
        """The `count` positions after what was read: `[count]`, or `[B, count]` where sequences differ;
        ValueError on several axes, where no point comes after another."""
        return coordinates.following(self._latest, count, device, self.axes)

    def positions_with(self, positions: Tensor) -> Tensor:
        """The positions that all keys would have, `[M]` or `[B, M]`, after appending `[N]` or `[B, N]`."""
        if self.positions is None:
            return positions
        return coordinates.joined(self.positions, positions, self.batch_size, self.axes)

    def extend_positions(self, positions: Tensor, counted: bool = False, with_tables: bool = False) -> Tensor:
        """Append `[N]` or `[B, N]`; returns the positions of all keys, `[M]` or `[B, M]`. `counted` says that
        they were made by default, `with_tables` that the call has tables."""
        whole, n = self.positions_with(positions), coordinates.tokens_of(positions, self.axes)
        m = coordinates.tokens_of(whole, self.axes)
        first = 0 if self.room is None else max(0, m - self.room)
        self.positions = whole if first == 0 else coordinates.cut(whole, first, m, self.axes).clone()
        self.read += n
        self.counted = self.counted and counted
        self.with_tables = self.with_tables or with_tables
        if self.axes == 1 and n:
            latest = positions.amax(dim=-1, keepdim=True)
            self._latest = latest if self._latest is None else torch.maximum(self._latest, latest)
        return whole

    def items(self) -> Iterable[tuple[Hashable, tuple[Tensor, Tensor]]]:
        """Keys and values by place."""
        return self._held.items()

    def extend(self, place: Hashable, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append `[B, H, N, d]` to what is held at `place`, a layer's group of heads; returns all of it,
        `[B, H, M, d]`, and holds as much as there is room for. A batch of 1 stands for every sequence."""
        if place in self._held:
            keys, values = map(_append, self._held[place], (keys, values))
        self._held[place] = self._last(keys), self._last(values)
        return keys, values

    def _last(self, x: Tensor) -> Tensor:
        first = 0 if self.room is None else max(0, x.shape[2] - self.room)
        return x if first == 0 else x[:, :, first:].clone()  # a view would keep the whole


def _append(held: Tensor, new: Tensor) -> Tensor:
    batch = max(len(held), len(new))
    return torch.cat([held.expand(batch, -1, -1, -1), new.expand(batch, -1, -1, -1)], dim=2)

"""What earlier tokens leave behind, so that one more token costs one more row."""

from collections.abc import Hashable, Iterable

import torch
from torch import Tensor

from ..encodings import coordinates
from .config import TransformerConfig


class KVCache:
    """Keys and values of every layer, and the positions of the tokens they belong to.

    Keys are kept as projected, before any rotation: an encoding whose frequencies depend on the current
    length may then change them without leaving stale keys behind. What is the same for every sequence, such
    as the position heads of a strict model, is kept once.

    Args:
        batch_size: sequences.
        n_layers: of the model.
        length: positions of the whole text, for encodings that depend on it. What a layer leaves behind was
            computed with one length and holds for no other, so it is said beforehand.
        axes: coordinates of a position. On several, positions have one more dimension than is said below.

    Attributes:
        positions: of the tokens held, `[M]` or `[B, M]`.
        counted: whether these are 0 to M - 1 by default: no call has given others.
    """

    def __init__(self, batch_size: int, n_layers: int, length: int | None = None, axes: int = 1) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; a cache needs at least 1 sequence")
        if length is not None and length < 1:
            raise ValueError(f"length is {length}; a text has at least 1 position")
        self.batch_size, self.n_layers, self.length, self.axes = batch_size, n_layers, length, axes
        self.positions: Tensor | None = None
        self.counted = True
        self._held: dict[Hashable, tuple[Tensor, Tensor]] = {}

    def __len__(self) -> int:
        """Tokens held, per sequence."""
        return 0 if self.positions is None else coordinates.tokens_of(self.positions, self.axes)

    def numel(self) -> int:
        """Numbers held, keys and values of all layers."""
        return sum(keys.numel() + values.numel() for keys, values in self._held.values())

    def check(self, batch: int, config: TransformerConfig) -> None:
        """Refuse a batch or a model that this cache is not for.

        Raises:
            ValueError: other sequences, layers or axes, or a model without a mask.
        """
        if self.batch_size != batch:
            raise ValueError(
                f"the cache holds {self.batch_size} sequences, the input has {batch}; make a new cache"
            )
        if self.n_layers != config.n_layers:
            raise ValueError(
                f"the cache is of a model of {self.n_layers} layers, this one has {config.n_layers}; "
                f"make a cache with this model"
            )
        if self.axes != config.axes:
            raise ValueError(
                f"the cache holds positions of {self.axes} axes, the model has {config.axes}; make a cache "
                f"with this model"
            )
        if not config.causal:
            raise ValueError(
                "a cache needs a causal model: without a mask, earlier tokens would have to change"
            )

    def whole_length(self, key_positions: Tensor) -> int:
        """The length of the text that it is for, of which these are the positions so far.

        Raises:
            ValueError: it was not told, or a position is past it.
        """
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
        """The `count` positions after what is held: `[count]`, or `[B, count]` where sequences differ.

        Raises:
            ValueError: several axes: no point comes after another.
        """
        return coordinates.following(self.positions, count, device, self.axes)

    def positions_with(self, positions: Tensor) -> Tensor:
        """The positions of all keys, `[M]` or `[B, M]`, were `[N]` or `[B, N]` appended; nothing is."""
        if self.positions is None:
            return positions
        return coordinates.joined(self.positions, positions, self.batch_size, self.axes)

    def extend_positions(self, positions: Tensor) -> Tensor:
        """Append `[N]` or `[B, N]`; returns the positions of all keys, `[M]` or `[B, M]`."""
        self.positions = self.positions_with(positions)
        return self.positions

    def items(self) -> Iterable[tuple[Hashable, tuple[Tensor, Tensor]]]:
        """Keys and values by place."""
        return self._held.items()

    def extend(self, place: Hashable, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append `[B, H, N, d]` to what is held at `place`, a layer's group of heads; returns all of it,
        `[B, H, M, d]`. A batch of 1 stands for every sequence until one that differs is appended."""
        if place in self._held:
            keys = _append(self._held[place][0], keys)
            values = _append(self._held[place][1], values)
        self._held[place] = keys, values
        return keys, values


def _append(held: Tensor, new: Tensor) -> Tensor:
    batch = max(len(held), len(new))
    return torch.cat([held.expand(batch, -1, -1, -1), new.expand(batch, -1, -1, -1)], dim=2)

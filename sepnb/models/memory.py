"""Segment memory (Dai et al. 2019, section 3.2): the states of earlier segments as more keys and values.

    h~ = [SG(m) || h]          per layer: m the inputs of this layer at earlier tokens, SG no gradient
    q = h W_Q    k = h~ W_K    v = h~ W_V

A text is read segment by segment. A query sees its own segment and what the memory holds, the last M tokens;
what these hold heard of others before them. So a layer carries what stands at p to the end of the last
segment that begins at p + M or before: with a memory of one segment, M = N, a byte is heard n_layers segments
on, and with a shorter one the first bytes of a segment are not heard in the next.

A cousin of the KV cache: this one holds states, and makes keys and values of them by the weights of today, so
that it serves training too. With the same weights and room for the whole text the two are the same.

Positions continue over the segments, and an encoding hears them as in one long text. One that has no row for
a position refuses it; re-using those of the first segment would give two tokens one position.

Shape letters: B batch, N tokens of a segment, M tokens remembered, w width of one stream.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..encodings import Encoding, Site
from .cache import KVCache
from .config import TransformerConfig


class SegmentMemory(KVCache):
    """The last states of every layer's input, without gradient, and the positions of their tokens.

    A call that is given it as its cache reads on after what it holds, and extends it in place.

    Args:
        batch_size: sequences.
        n_layers: of the model.
        size: tokens remembered, at most.

    Raises:
        ValueError: fewer than 1 sequence or 1 token.
    """

    def __init__(self, batch_size: int, n_layers: int, size: int) -> None:
        super().__init__(batch_size, n_layers)
        if size < 1:
            raise ValueError(f"size is {size}; a memory holds at least 1 token, or leave it out")
        self.size = self.room = size
        self._states: dict[int, dict[str, Tensor]] = {}

    def numel(self) -> int:
        """Numbers held, the states of all layers."""
        return sum(x.numel() for state in self._states.values() for x in state.values())

    def check(self, batch: int, config: TransformerConfig) -> None:
        """As of a cache.

        Raises:
            ValueError: also positions of several coordinates, of which none says what comes after; and an
                encoding that adds its codes where queries and keys are made: it is given the positions of the
                queries, and has none for the tokens of the memory.
        """
        if config.axes > 1:
            raise ValueError(
                f"a memory holds what came before, and positions of {config.axes} coordinates have no "
                f"before; read such a model at once, or with a cache"
            )
        super().check(batch, config)
        for encoding in config.encodings:
            if _at_projection(encoding):
                raise ValueError(
                    f"{encoding.name} adds its codes where queries and keys are made, and has none there for "
                    f"the tokens of a memory; use it at the input, or another encoding"
                )

    def whole_length(self, key_positions: Tensor) -> int:
        """None can be told: a memory is for texts that go on.

        Raises:
            ValueError: always; it is asked for by frequencies that follow the length of the text.
        """
        raise ValueError(
            "the frequencies of this model follow the length of the text, and what a memory holds of one "
            "length serves no other; read it with a cache, make_cache(batch_size, length=...), or give RoPE "
            "an extension of fixed frequencies"
        )

    def extend(self, place: object, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values as they are: they were made of the states, remembered ones among them."""
        return keys, values

    def recall(self, layer: int, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The streams remembered of this layer's input, `[B, M, w]` each, none at the first call; `state`,
        those of the new tokens, `[B, N, w]` each, is remembered for the next."""
        held = self._states.get(layer, {})
        self._states[layer] = {name: self._last(held.get(name), x.detach()) for name, x in state.items()}
        return held

    def _last(self, held: Tensor | None, new: Tensor) -> Tensor:
        room = self.size - new.shape[1]
        if held is None or room <= 0:
            return new[:, -self.size :].clone()  # a view would keep the whole segment
        return torch.cat([held[:, -room:], new], dim=1)


def _at_projection(encoding: Encoding) -> bool:
    overridden = type(encoding).at_projection is not Encoding.at_projection
    return overridden and Site.QUERY_KEY in encoding.sites


def in_segments(model: nn.Module, tokens: Tensor, *, length: int, size: int) -> Tensor:
    """Logits `[B, N, V]` of tokens `[B, N]` that are read `length` at a time, with a memory of `size` tokens.

    Args:
        model: a `LanguageModel`.
        tokens: of any length; the last segment may be shorter.
        length: tokens of a segment.
        size: tokens remembered.

    Raises:
        ValueError: a segment without tokens, and what `SegmentMemory` and the model refuse.
    """
    if length < 1:
        raise ValueError(f"length is {length}; a segment has at least 1 token")
    memory = model.make_memory(len(tokens), size)
    return torch.cat([model(piece, cache=memory) for piece in tokens.split(length, dim=1)], dim=1)

"""Segment memory (Dai et al. 2019, section 3.2): the states of earlier segments as more keys and values.

    h~ = [SG(m) || h]          per layer: m the inputs of this layer at earlier tokens, SG no gradient
    q = h W_Q    k = h~ W_K    v = h~ W_V

A text is read segment by segment. A query sees its own segment and what the memory holds, the last M tokens,
and these depend on others before them. So a layer carries what stands at p to the end of the last segment
that begins at p + M or before: with a memory of one segment, M = N, a byte reaches n_layers segments on.

Unlike a KV cache it holds states, and makes keys and values of them by the weights of today. With the same
weights and room for the whole text the two are the same. The layers are run by the model's own loop, with a
step that adds the memory. Positions continue over the segments, as in one long text.

Shape letters: B batch, N tokens of a segment, M tokens remembered, w width of one stream, V vocabulary.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from .. import validation
from ..models import Block, KVCache, door


class SegmentMemory:
    """Reads a text with a `LanguageModel` segment by segment, `batch_size` sequences at once: a call returns
    the logits of the next segment, after the last `size` tokens before it.

    Raises:
        TypeError, ValueError: a count that is no int or below 1; a model without a mask, with positions of
            several coordinates, or with an encoding that serves no memory.
    """

    def __init__(self, model: nn.Module, batch_size: int, size: int) -> None:
        validation.whole("size", size, needs="a memory holds at least 1 token, or leave it out")
        config = model.config
        if config.axes > 1:
            raise ValueError(
                f"a memory holds what came before, and positions of {config.axes} coordinates have no "
                f"before; read such a model at once, or with a cache"
            )
        if not config.causal:
            raise ValueError(
                "a memory needs a causal model: without a mask, earlier tokens would have to change"
            )
        if len(model.transformer.projection_encodings):
            raise ValueError(
                "an encoding of this model adds its embeddings where queries and keys are made, and has none "
                "there for the tokens of a memory; use it at the input, or another encoding"
            )
        if model.transformer.by_length:
            raise ValueError(
                "the frequencies of this model follow the length of the text, and what a memory holds of one "
                "length serves no other; read it with a cache, make_cache(batch_size, length=...), or give "
                "RoPE an extension of fixed frequencies"
            )
        self.model, self.size = model, size
        self._read = KVCache(batch_size, config.n_layers)  # of the positions alone
        self._read.room = size
        self._states: list[dict[str, Tensor]] = [{} for _ in model.transformer.blocks]

    @property
    def positions(self) -> Tensor | None:
        """Of the tokens remembered, `[M]` or `[B, M]`; None at first."""
        return self._read.positions

    def __len__(self) -> int:
        """Tokens remembered, per sequence."""
        return len(self._read)

    def numel(self) -> int:
        """Numbers held, the states of all layers."""
        return sum(x.numel() for state in self._states for x in state.values())

    def __call__(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Logits `[B, N, V]` of the next segment, tokens `[B, N]`; the segment is then remembered. Positions
        `[N]` or `[B, N]` are by default those after what was read. Where the model refuses them, the memory
        is left as it was."""
        stack, content = self.model.transformer, self.model.embedded(tokens)
        call = door.checked(stack, content, positions, self._read, None, None)
        context = stack.attention_context(call.positions, call.keys, content.dtype, call.consecutive)
        embeddings = stack.embeddings(call.positions, content.dtype)
        self._read.extend_positions(call.positions, call.counted)

        def step(layer: int, block: Block, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
            held, u = self._states[layer], block.attention_norm.parts(x)
            if held:
                earlier = block.attention_norm.parts(held)
                u = {name: torch.cat([earlier[name], y], dim=1) for name, y in u.items()}
            self._states[layer] = {name: self._last(held.get(name), y.detach()) for name, y in x.items()}
            return block.completed(x, block.attention(u, context))

        x = stack.dropped(stack.input_state(content, call.positions, embeddings))
        x = stack.run_blocks(x, embeddings, call.positions, step)
        return self.model.logits({name: x[name] for name in stack.layout.last})

    def _last(self, held: Tensor | None, new: Tensor) -> Tensor:
        room = self.size - new.shape[1]
        if held is None or room <= 0:
            return new[:, -self.size :].clone()  # a view would keep the whole segment
        return torch.cat([held[:, -room:], new], dim=1)


def in_segments(model: nn.Module, tokens: Tensor, *, length: int, size: int) -> Tensor:
    """Logits `[B, N, V]` of tokens `[B, N]` that are read `length` at a time, the last segment perhaps
    shorter, with a memory of `size` tokens."""
    validation.whole("length", length, needs="a segment has at least 1 token")
    memory = SegmentMemory(model, len(tokens), size)
    return torch.cat([memory(piece) for piece in tokens.split(length, dim=1)], dim=1)

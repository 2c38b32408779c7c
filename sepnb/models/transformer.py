"""Blocks and the stack: a residual state of one tensor per stream, from content and positions to streams.

The streams are kept as separate tensors from end to end; the only map that reads more than one of them is
the projection to queries and keys.
"""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..streams import StreamMLP, StreamNorm
from .attention import Attention, AttentionContext, causal_mask
from .cache import KVCache
from .config import TransformerConfig


class Block(nn.Module):
    """Pre-norm and residual: x + attention(norm(x)), then x + mlp(norm(x)), stream by stream."""

    def __init__(self, config: TransformerConfig, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.outputs = outputs
        split, kind = config.norm == "split", config.norm_kind
        self.attention_norm = StreamNorm(config.streams, kind, split)
        self.attention = Attention(config, outputs)
        self.mlp_norm = StreamNorm(config.streams, kind, split, outputs=outputs)
        self.mlp = StreamMLP(
            config.streams, config.expansion, config.activation, bias=config.bias, outputs=outputs
        )

    def forward(
        self,
        state: Mapping[str, Tensor],
        context: AttentionContext,
        cache: KVCache | None = None,
        layer: int = 0,
    ) -> dict[str, Tensor]:
        attended = self.attention(self.attention_norm.parts(state), context, cache, layer)
        state = {name: state[name] + attended[name] for name in self.outputs}
        transformed = self.mlp.parts(self.mlp_norm.parts(state))
        return {name: state[name] + transformed[name] for name in self.outputs}


class Transformer(nn.Module):
    """Content `[B, N, d_sem]` and positions to one `[B, N, w]` per stream that the last block computes.

    With one stream the code of the input encoding is added to the content; with two it is the pos stream.
    Encodings are shared by all layers.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        width = config.streams.widths["pos" if config.separated else "sem"]
        encodings = config.encodings
        self.input_encodings = _modules(e.at_input(width, config.max_length) for e in encodings)
        self.query_key_encodings = _modules(e.at_query_key(config.head_width) for e in encodings)
        self.score_encodings = _modules(e.at_score(config.n_heads) for e in encodings)
        last = config.n_layers - 1
        self.blocks = nn.ModuleList(
            Block(config, config.last_streams if layer == last else config.streams.names)
            for layer in range(config.n_layers)
        )

    def check_positions(self, positions: Tensor) -> None:
        """Refuse, on the host, positions that some encoding could only answer with silent nonsense.

        Raises:
            TypeError: positions are not integers.
            ValueError: a position is negative, or past the last row of a table.
        """
        if positions.is_floating_point() or positions.is_complex() or positions.dtype == torch.bool:
            raise TypeError(f"positions must be integers, got {positions.dtype}")
        if positions.numel() and (lowest := int(positions.min())) < 0:
            raise ValueError(f"position {lowest} is negative; positions start at 0")
        if positions.numel() and self._limits:
            self._check_highest(int(positions.max()))

    @property
    def _limits(self) -> list[int]:
        return [module.limit for module in self.input_encodings if module.limit is not None]

    def _check_highest(self, highest: int) -> None:
        for limit in self._limits:
            if highest >= limit:
                raise ValueError(
                    f"position {highest} has no row in the learned table of {limit} positions "
                    f"(0 to {limit - 1}); train with max_length of at least {highest + 1}, or use an "
                    f"encoding without a table"
                )

    def input_state(self, content: Tensor, positions: Tensor) -> dict[str, Tensor]:
        """The residual state before the first block."""
        state = {"sem": content}
        for module in self.input_encodings:
            code = module(positions).to(content.dtype)
            if self.config.separated:
                state = {"pos": code.expand(*content.shape[:-1], -1), "sem": content}
            else:
                state["sem"] = state["sem"] + code
        return state

    def attention_context(
        self, query_positions: Tensor, key_positions: Tensor, dtype: torch.dtype
    ) -> AttentionContext:
        """What the layers share; `key_positions` ends with `query_positions`."""
        rotations = [
            (module, module.prepare(query_positions), module.prepare(key_positions))
            for module in self.query_key_encodings
        ]
        n, m = query_positions.shape[-1], key_positions.shape[-1]
        mask = None
        for module in self.score_encodings:
            bias = module(query_positions, key_positions)
            mask = bias if mask is None else mask + bias
        causal = self.config.causal
        if causal and mask is not None:
            mask = mask.masked_fill(~causal_mask(n, m, mask.device), -torch.inf)
        elif causal and n != m:  # the kernel's own mask aligns queries with the first keys, not the last
            mask = torch.zeros(n, m, dtype=dtype, device=query_positions.device)
            mask = mask.masked_fill(~causal_mask(n, m, mask.device), -torch.inf)
        return AttentionContext(rotations, mask, causal)

    def forward(
        self,
        content: Float[Tensor, "B N d_sem"],
        positions: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> dict[str, Tensor]:
        """Run the stack. Positions are int `[N]` or `[B, N]`; by default those after what the cache holds.

        Raises:
            ValueError, TypeError: see `check_positions`; also for shapes that do not fit.
        """
        batch, n = content.shape[:2]
        if cache is not None and cache.batch_size != batch:
            raise ValueError(
                f"the cache holds {cache.batch_size} sequences, the input has {batch}; make a new cache"
            )
        if cache is not None and cache.n_layers != self.config.n_layers:
            raise ValueError(
                f"the cache is of a model of {cache.n_layers} layers, this one has {self.config.n_layers}; "
                f"make a cache with this model"
            )
        if cache is not None and not self.config.causal:
            raise ValueError(
                "a cache needs a causal model: without a mask, earlier tokens would have to change"
            )
        if positions is None and (cache is None or not len(cache)):
            positions = torch.arange(n, device=content.device)
            self._check_highest(n - 1)  # known on the host: no need to read the device
        else:
            if positions is None:
                positions = cache.next_positions(n, content.device)
            if positions.shape not in ((n,), (batch, n)):
                raise ValueError(
                    f"positions of shape {list(positions.shape)} do not fit {batch} sequences of {n} "
                    f"tokens; give [{n}] or [{batch}, {n}]"
                )
            self.check_positions(positions)
        key_positions = positions if cache is None else cache.extend_positions(positions)
        context = self.attention_context(positions, key_positions, content.dtype)
        state = self.input_state(content, positions)
        for layer, block in enumerate(self.blocks):
            state = block(state, context, cache, layer)
        return state


def _modules(candidates) -> nn.ModuleList:
    return nn.ModuleList(module for module in candidates if module is not None)

"""One block of the stack: attention and perceptron on a residual state of one tensor per stream."""

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn

from ..streams import StreamMLP, StreamNorm
from .attention import Attention
from .cache import KVCache
from .config import TransformerConfig
from .context import AttentionContext
from .memory import SegmentMemory


class Block(nn.Module):
    """Pre-norm and residual: x + attention(norm(x)), then x + mlp(norm(x)), stream by stream."""

    def __init__(self, config: TransformerConfig, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.outputs, self.attended = outputs, config.attended(outputs)
        self.dropout = config.dropout
        split, kind, streams = "norm" in config.splits, config.norm_kind, config.streams
        joint_mlp = "mlp" not in config.splits
        self.attention_norm = StreamNorm(streams, kind, split, outputs=config.normalised(outputs))
        self.attention = Attention(config, self.attended)
        self.mlp_norm = StreamNorm(streams, kind, split, outputs=streams.names if joint_mlp else outputs)
        self.mlp = StreamMLP(
            streams,
            config.expansion,
            config.activation,
            bias=config.bias,
            split=not joint_mlp,
            outputs=outputs,
        )

    def forward(
        self,
        state: Mapping[str, Tensor],
        context: AttentionContext,
        cache: KVCache | None = None,
        layer: int = 0,
        table: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The streams in `outputs`, of those in `state`; `table` as in `Attention`."""
        norm, earlier = self.attention_norm, None
        if isinstance(cache, SegmentMemory) and (held := cache.recall(layer, state)):
            earlier = norm.parts(held)
        attended = self.attention(norm.parts(state), context, cache, layer, table, earlier)
        state = {**state, **self._added(state, attended)}
        return self._added(state, self.mlp.parts(self.mlp_norm.parts(state)))

    def _added(self, state: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: state[name] + F.dropout(x, self.dropout, self.training) for name, x in change.items()}

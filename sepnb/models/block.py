"""One block of the stack: attention and perceptron on a residual state of one tensor per stream."""

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn

from ..streams import StreamMLP, StreamNorm
from .attention import Attention
from .cache import KVCache
from .config import TransformerConfig
from .context import AttentionContext
from .layout import BlockLayout


class Block(nn.Module):
    """Pre-norm and residual: x + attention(norm(x)), then x + mlp(norm(x)), stream by stream."""

    def __init__(self, config: TransformerConfig, layout: BlockLayout, layer: int) -> None:
        super().__init__()
        self.outputs, self.dropout = layout.outputs, config.dropout
        split, kind, streams = "norm" in config.splits, config.norm_kind, config.streams
        joint_mlp = "mlp" not in config.splits
        self.attention_norm = StreamNorm(streams, kind, split, outputs=layout.normalised)
        self.attention = Attention(config, layout, layer)
        read = streams.names if joint_mlp else layout.outputs
        self.mlp_norm = StreamNorm(streams, kind, split, outputs=read)
        self.mlp = StreamMLP(
            streams,
            config.expansion,
            config.activation,
            bias=config.bias,
            split=not joint_mlp,
            outputs=layout.outputs,
        )

    def forward(
        self,
        x: Mapping[str, Tensor],
        context: AttentionContext,
        cache: KVCache | None = None,
        table: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Of the residual state `[B, N, w]` the streams in `outputs`; the arguments are those of
        `Attention`."""
        u = self.attention_norm.parts(x)
        return self.completed(x, self.attention(u, context, cache, table))

    def completed(self, x: Mapping[str, Tensor], attended: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The block after its attention: what that gives is added, then the perceptron."""
        x = {**x, **self._added(x, attended)}
        return self._added(x, self.mlp.parts(self.mlp_norm.parts(x)))

    def _added(self, x: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: x[name] + F.dropout(y, self.dropout, self.training) for name, y in change.items()}

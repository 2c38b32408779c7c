"""A block, and the stack of them: a residual state of one tensor per stream, from content and positions to
streams.

    x_sem = content + position embeddings (one stream), or x_pos = position embeddings beside x_sem = content
    x = x + attention(norm(x)),  x = x + mlp(norm(x))        block by block, stream by stream

The streams are separate tensors from end to end; the only map that reads more than one of them is the
projection to queries and keys. Shape letters: B batch, N tokens, w width of one stream.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from math import log

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..encodings import Encoding, InputModule, QueryKeyModule, Site, coordinates
from ..encodings.base import Extendable
from ..encodings.relative import are_consecutive
from ..streams import StreamMLP, StreamNorm
from . import door
from .attention import Attention
from .cache import KVCache
from .config import TransformerConfig
from .context import AttentionContext
from .fast.kernels import Compiler
from .layout import BlockLayout, Layout, heads_for
from .position_tables import PositionTables, position_branch


class Block(nn.Module):
    """Pre-norm and residual: x + attention(norm(x)), then x + mlp(norm(x)), stream by stream."""

    def __init__(self, config: TransformerConfig, layout: BlockLayout, layer: int) -> None:
        super().__init__()
        self.outputs, self.dropout = layout.outputs, config.dropout
        split, kind, streams = "norm" in config.splits, config.norm_kind, config.streams
        joint_mlp = "mlp" not in config.splits
        self.attention_norm = StreamNorm(streams, kind, split, outputs=layout.normalised, plain=config.plain)
        self.attention = Attention(config, layout, layer)
        read = streams.names if joint_mlp else layout.outputs
        self.mlp_norm = StreamNorm(streams, kind, split, outputs=read, plain=config.plain)
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
        """The streams in `outputs` of the residual state, `[B, N, w]`; arguments as of `Attention`."""
        u = self.attention_norm.parts(x)
        return self.completed(x, self.attention(u, context, cache, table))

    def completed(self, x: Mapping[str, Tensor], attended: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The block after its attention: what that gives is added, then the perceptron."""
        x = {**x, **self._added(x, attended)}
        return self._added(x, self.mlp.parts(self.mlp_norm.parts(x)))

    def _added(self, x: Mapping[str, Tensor], change: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: x[name] + F.dropout(y, self.dropout, self.training) for name, y in change.items()}


Step = Callable[[int, Block, Mapping[str, Tensor]], Mapping[str, Tensor]]


class Transformer(nn.Module):
    """Content `[B, N, d_sem]` and positions to one `[B, N, w]` per stream that the output is read from.

    `window`, which begins as that of the config, `sinks` and `log_scale` are as in `LanguageModel.extended`,
    which also sets the `temperature`, a factor of all logits.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config, self.layout = config, Layout.of(config)
        self.window, self.sinks, self.log_scale, self.temperature = config.window, 0, False, 1.0
        self.compiler: Compiler | None = None  # what compiles its formulas in training, see `fast.kernels`
        self.vouched = False  # see `validation.vouched`
        self.at_once: int | None = None  # see `fast.pieces`
        filled = config.position_streams if config.separated else ("sem",)
        inputs = [(name, e) for e in config.input_encodings for name in filled if name in self.layout.live]
        self.input_streams = [name for name, _ in inputs]
        self.input_encodings = _modules(_input_module(config, *one) for one in inputs)
        # Encodings with a module for each layer: the first is in `input_encodings`, the later ones are here.
        own = [(name, encoding) for name, encoding in inputs if encoding.each_layer(Site.INPUT)]
        self.later_streams = [name for name, _ in own]
        self.later_encodings = nn.ModuleList(
            _modules(_input_module(config, *one) for one in own) for _ in range(1, config.n_layers) if own
        )
        heads, encodings = heads_for(config, self.layout), config.encodings
        at_query_key = [e.at_query_key(heads) for e in encodings if not e.each_layer(Site.QUERY_KEY)]
        self.projection_encodings = _modules(one for one in at_query_key if isinstance(one, InputModule))
        self.query_key_encodings = _modules(one for one in at_query_key if isinstance(one, QueryKeyModule))
        self.score_encodings = _modules(e.at_score(heads) for e in encodings if not e.each_layer(Site.SCORE))
        self.blocks = nn.ModuleList(
            Block(config, block, layer) for layer, block in enumerate(self.layout.blocks)
        )
        self.counting = tuple(encoding.name for encoding in config.encodings if encoding.counts_tokens)

    def forward(
        self,
        content: Float[Tensor, "B N d_sem"],
        positions: Tensor | None = None,
        cache: KVCache | None = None,
        documents: Tensor | None = None,
        tables: PositionTables | None = None,
    ) -> dict[str, Tensor]:
        """Run the stack.

        Args:
            content: of the tokens.
            positions, cache, documents, tables: as in `LanguageModel.forward`; on several axes positions may
                be real where the encodings allow. Without tables the position streams of an isolated model
                are run here: once for the batch, or, where positions or documents differ by sequence, once
                for each.

        Raises:
            TypeError, ValueError: of `door.checked`. A cache is then left as it was.
        """
        call = door.checked(self, content, positions, cache, documents, tables)
        context = self.attention_context(
            call.positions, call.keys, content.dtype, call.consecutive, call.length, call.documents
        )
        tables, embeddings = call.tables, {}
        if tables is None:  # before the cache is written: an encoding may refuse a position
            embeddings = self.embeddings(call.positions, content.dtype)
        if cache is not None:
            cache.extend_positions(call.positions, call.counted, tables is not None)
        if tables is None and self.config.isolated and not context.by_sequence:
            tables = position_branch(self, embeddings, context, cache)
        if tables is None:  # all streams together
            x, shared = self.input_state(content, call.positions, embeddings), {}
        else:  # the content alone: what the isolated position streams add to it is in the tables
            x, embeddings = {"sem": content}, {}
            shared = {name: y.repeat(len(content), 1, 1) for name, y in tables.streams.items()}

        def step(layer: int, block: Block, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return block(x, context, cache, None if tables is None else tables.tables[layer])

        x = self.run_blocks(self.dropped(x), embeddings, call.positions, step)
        return {name: (shared | x)[name] for name in self.layout.last}

    def run_blocks(
        self, x: Mapping[str, Tensor], embeddings: Mapping[str, Tensor], positions: Tensor, step: Step
    ) -> dict[str, Tensor]:
        """The residual state after all layers. `step(layer, block, x)` says what a layer makes anew of the
        state that enters it; streams that are absent from the state are not computed, see `Attention`."""
        for layer, block in enumerate(self.blocks):
            x = self.entering(layer, x, embeddings, positions)
            x = {**x, **step(layer, block, x)}
        return dict(x)

    def embeddings(self, positions: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """What the encodings at the input give to each stream, `[*B, N, w]`."""
        found: dict[str, Tensor] = {}
        for name, module in zip(self.input_streams, self.input_encodings, strict=True):
            embedding = module(positions).to(dtype)
            found[name] = found[name] + embedding if name in found else embedding
        return found

    def input_state(
        self, content: Tensor, positions: Tensor, embeddings: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """The residual state before the first block, every stream with the batch of the content; embeddings
        of these positions that were made already can be given."""
        if embeddings is None or self.config.pos_stream == "reinjected":
            # What is added again is made anew: a gradient is the same sum in the same order as ever.
            embeddings = self.embeddings(positions, content.dtype)
        x = {name: one.expand(*content.shape[:-1], -1) for name, one in embeddings.items()}
        x["sem"] = content + embeddings["sem"] if "sem" in embeddings else content
        return {name: x[name] for name in self.layout.live}

    def entering(
        self, layer: int, x: Mapping[str, Tensor], embeddings: Mapping[str, Tensor], positions: Tensor
    ) -> Mapping[str, Tensor]:
        """The state that enters a layer: from the second on with position embeddings added, where the stream
        is reinjected (the first ones again) or this layer has its own."""
        if layer == 0 or not (embeddings or self.later_streams):
            return x
        if self.config.pos_stream == "reinjected":
            return {name: y + embeddings[name] if name in embeddings else y for name, y in x.items()}
        later = self.later_encodings[layer - 1] if self.later_streams else ()
        for name, module in zip(self.later_streams, later, strict=True):
            if name in x:
                x = {**x, name: x[name] + module(positions).to(x[name].dtype)}
        return x

    def dropped(self, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A residual state as it enters the stack: in training a share of it is zeroed."""
        return {name: F.dropout(y, self.config.dropout, self.training) for name, y in x.items()}

    def attention_context(
        self,
        query_positions: Tensor,
        key_positions: Tensor,
        dtype: torch.dtype,
        consecutive: bool | None = None,
        length: int | None = None,
        documents: Tensor | None = None,
    ) -> AttentionContext:
        """What the layers share; `key_positions` ends with `query_positions`. `consecutive` is that of
        `AttentionContext`; None determines it where it matters. `length` is that of `QueryKeyModule.prepare`.
        With documents `[B, N]` the queries are all of the keys."""
        at = query_positions, key_positions
        first = [block.attention for block in self.blocks[:1]]  # a stack may be left without blocks
        if consecutive is None:
            read = len(self.score_encodings) > 0 or any(layer.core.reads_positions for layer in first)
            may = read and not torch.compiler.is_compiling()
            consecutive = may and are_consecutive(*at)
        return AttentionContext(
            *at,
            dtype,
            self.config.causal,
            consecutive=consecutive,
            window=self.window,
            sinks=self.sinks,
            biases=tuple(self.score_encodings),
            own_biases=any(len(layer.core.biases) > 0 for layer in first),
            rotations=[(module, *module.prepare(*at, length)) for module in self.query_key_encodings],
            terms=[term.prepare(*at) for layer in first for term in layer.terms],
            sharpening=self._sharpening(*at, dtype),
            embedding=_sum(module(query_positions).to(dtype) for module in self.projection_encodings),
            compiler=self.compiler,
            at_once=self.at_once,
            axes=self.config.axes,
            query_documents=documents,
            key_documents=documents,
        )

    def _sharpening(self, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor | None:
        """The factor of the logits of each query, `[N, 1]`: the temperature, and with `log_scale`
        max(1, ln n_i / ln L) for the n_i keys that it sees. None where both are 1."""
        n, m = (coordinates.tokens_of(positions, self.config.axes) for positions in (queries, keys))
        if not self.log_scale:
            alike = torch.full((n, 1), self.temperature, dtype=dtype, device=queries.device)
            return None if self.temperature == 1 else alike
        seen = torch.arange(m - n + 1, m + 1, device=queries.device)
        if not self.config.causal:
            seen = torch.full_like(seen, m)
        if self.window is not None:
            seen = seen.clamp(max=self.window + self.sinks)
        factor = seen.to(torch.float64).log() / log(self.config.max_length)
        return (self.temperature * factor.clamp(min=1.0))[:, None].to(dtype)

    def position_tables(
        self, positions: Tensor | int, dtype: torch.dtype | None = None, length: int | None = None
    ) -> PositionTables:
        """The tables of an isolated model, for calls with `tables=`; they serve shorter texts too.

        Args:
            positions: int `[N]`, or N for 0 to N-1; on n > 1 axes `[N, n]`.
            dtype: of the content; by default that of the parameters.
            length: of the whole text, where frequencies follow it; by default the largest position + 1.

        Raises:
            TypeError, ValueError: positions that `forward` refuses; a model whose position streams read the
                content.
        """
        positions, counted = door.table_positions(self, positions, length)
        dtype = next(self.parameters()).dtype if dtype is None else dtype
        if self.by_length and length is None:
            length = int(positions.max()) + 1 if positions.numel() else 1
        context = self.attention_context(positions, positions, dtype, counted or None, length)
        made = position_branch(self, self.embeddings(positions, dtype), context)
        length = length if self.by_length else None
        return replace(made, counted=counted, length=length, whole=not self.config.causal)

    @property
    def by_length(self) -> bool:
        """Whether frequencies follow the length of the text."""
        return any(module.by_length for module in self.query_key_encodings)

    @property
    def extendable(self) -> list[Extendable]:
        """The modules whose frequencies a context extension may change."""
        return [module for module in self.modules() if isinstance(module, Extendable)]

    @property
    def rules(self) -> Hashable:
        """The rules of evaluation, which may be set at any time."""
        settings = tuple(module.settings for module in self.query_key_encodings)
        waves = tuple(module.extension for module in self.extendable)
        return self.window, self.sinks, self.log_scale, self.temperature, settings, waves

    @property
    def table_widths(self) -> tuple[int | None, ...]:
        """Columns of the position tables of every layer."""
        return tuple(block.attention.table_width for block in self.blocks)


def _input_module(config: TransformerConfig, stream: str, encoding: Encoding) -> InputModule:
    """The module by which an encoding fills a stream, or adds to the content."""
    module = encoding.at_input(config.streams.widths[stream], config.max_length)
    if config.by_coordinate(encoding):
        return coordinates.OneCoordinate(module, config.position_streams.index(stream))
    return module


def _sum(tensors: Iterable[Tensor]) -> Tensor | None:
    first, *others = [*tensors] or [None]
    return sum(others, start=first)


def _modules(candidates: Iterable[nn.Module | None]) -> nn.ModuleList:
    return nn.ModuleList(module for module in candidates if module is not None)

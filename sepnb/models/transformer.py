"""The stack of blocks: a residual state of one tensor per stream, from content and positions to streams.

The streams are kept as separate tensors from end to end; the only map that reads more than one of them is
the projection to queries and keys.
"""

from collections.abc import Iterable, Mapping
from math import inf, log

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..encodings import Encoding, InputModule, coordinates
from ..encodings.base import Heads
from ..encodings.relative import are_consecutive, widened
from . import places
from .averaging import share
from .block import Block
from .cache import KVCache
from .config import TransformerConfig
from .context import AttentionContext
from .fit import what_opens
from .memory import SegmentMemory
from .tower import PassMemory, PositionPass, PrefixPass, arithmetic, may_remember


class Transformer(nn.Module):
    """Content `[B, N, d_sem]` and positions to one `[B, N, w]` per stream that the output is read from.

    With one stream the code of the input encoding is added to the content; otherwise it fills the position
    streams. Encodings are shared by all layers. By `window`, which begins as that of the config, each query
    sees the last so many tokens, itself included, in the order of the sequence. `sinks` and `log_scale` are
    rules of evaluation: it sees the first `sinks` too; its logits, biases excepted, are multiplied by
    max(1, ln n / ln L), n the tokens that it sees.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.window = config.window
        self.sinks = 0
        self.log_scale = False
        self.compiler: str | None = None
        filled = config.position_streams if config.separated else ("sem",)
        inputs = [
            (name, encoding)
            for encoding in config.input_encodings
            for name in filled
            if name in config.live_streams
        ]

        def built(chosen: list[tuple[str, Encoding]]) -> nn.ModuleList:
            return _modules(places.input_module(config, name, encoding) for name, encoding in chosen)

        self.input_streams, self.input_encodings = [name for name, _ in inputs], built(inputs)
        # Of what every layer has for itself, the first layer's is among those above; here are the others'.
        own = [(name, encoding) for name, encoding in inputs if encoding.per_layer]
        self.later_streams = [name for name, _ in own]
        self.later_encodings = nn.ModuleList(built(own) for _ in range(1, config.n_layers) if own)
        self.projection_encodings = _modules(
            encoding.at_projection(config.streams.widths["sem"], config.max_length)
            for encoding in config.encodings
        )
        heads = Heads(
            tuple(tuple(config.heads_of(config.attended(outputs))) for outputs in config.block_outputs),
            config.heads_per_kv,
        )
        self.query_key_encodings = _modules(
            encoding.at_query_key(config.head_width, heads) for encoding in config.encodings
        )
        self.score_encodings = _modules(
            encoding.at_score(config.n_heads) for encoding in config.encodings if not encoding.per_layer
        )
        self.blocks = nn.ModuleList(Block(config, outputs) for outputs in config.block_outputs)
        share(block.attention.averaging for block in self.blocks)
        self._memory = PassMemory()

    def check_positions(self, positions: Tensor) -> None:
        """Refuse, on the host, positions that this model cannot encode; see `places.check`."""
        places.check(positions, self.config, self._limited)

    @property
    def _limited(self) -> list[InputModule]:
        tables = [*self.input_encodings, *self.projection_encodings]
        return [module for module in tables if module.limit is not None]

    def codes(self, positions: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
        """What the encodings at the input give to each stream, `[*B, N, w]`."""
        codes: dict[str, Tensor] = {}
        for name, module in zip(self.input_streams, self.input_encodings, strict=True):
            code = module(positions).to(dtype)
            codes[name] = codes[name] + code if name in codes else code
        return codes

    def input_state(
        self, content: Tensor, positions: Tensor, codes: Mapping[str, Tensor] | None = None
    ) -> dict[str, Tensor]:
        """The residual state before the first block, every stream with the batch of the content.

        `codes`: of these positions, where they were made already.
        """
        codes = self.codes(positions, content.dtype) if codes is None else codes
        state = {name: code.expand(*content.shape[:-1], -1) for name, code in codes.items()}
        sem = content + codes["sem"] if "sem" in codes else content
        return {name: sem if name == "sem" else state[name] for name in self.config.live_streams}

    def attention_context(
        self,
        query_positions: Tensor,
        key_positions: Tensor,
        dtype: torch.dtype,
        consecutive: bool | None = None,
        length: int | None = None,
        documents: Tensor | None = None,
    ) -> AttentionContext:
        """What the layers share; `key_positions` ends with `query_positions`.

        `consecutive`: as in `sepnb.encodings.relative.by_distance`; None looks for itself where it matters.
        `length`: as in `QueryKeyModule.prepare`. `documents`: `[B, N]`, of queries that are all of the keys.
        """
        bounded = [module for module in self.query_key_encodings if module.bounds_span]
        if bounded:
            places.check_span(key_positions, bounded, arithmetic(key_positions.device) or dtype, consecutive)
        rotations = [
            (module, *module.prepare(query_positions, key_positions, length))
            for module in self.query_key_encodings
        ]
        first = self.blocks[0].attention if len(self.blocks) else None
        own = [] if first is None else first.terms
        own_biases = first is not None and len(first.averaging.biases) > 0
        axes = self.config.axes
        n, m = coordinates.tokens_of(query_positions, axes), coordinates.tokens_of(key_positions, axes)
        if consecutive is None:
            read = len(self.score_encodings) > 0 or (first is not None and first.averaging.reads_positions)
            may = read and not torch.compiler.is_compiling()
            consecutive = may and are_consecutive(query_positions, key_positions)
        return AttentionContext(
            query_positions,
            key_positions,
            dtype,
            self.config.causal,
            consecutive=consecutive,
            window=self.window,
            sinks=self.sinks,
            biases=tuple(self.score_encodings),
            own_biases=own_biases,
            rotations=rotations,
            terms=[term.prepare(query_positions, key_positions) for term in own],
            sharpening=self._sharpening(n, m, dtype, query_positions.device) if self.log_scale else None,
            places=_sum(module(query_positions).to(dtype) for module in self.projection_encodings),
            compiler=self.compiler,
            axes=axes,
            query_documents=documents,
            key_documents=documents,
        )

    def _sharpening(self, n: int, m: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """max(1, ln n_i / ln L) for the n_i keys that each of the last `n` of `m` tokens sees, `[n, 1]`."""
        seen = torch.arange(m - n + 1, m + 1, device=device)
        if not self.config.causal:
            seen = torch.full_like(seen, m)
        if self.window is not None:
            seen = seen.clamp(max=self.window + self.sinks)
        factor = seen.to(torch.float64).log() / log(self.config.max_length)
        return factor.clamp(min=1.0)[:, None].to(dtype)

    def run_blocks(
        self,
        state: Mapping[str, Tensor],
        context: AttentionContext,
        codes: Mapping[str, Tensor],
        cache: KVCache | None = None,
        tables: tuple[Tensor | None, ...] | None = None,
    ) -> dict[str, Tensor]:
        """The stack on a residual state. Streams absent from it are not computed; see `Attention`."""
        for layer, block in enumerate(self.blocks):
            state = self._injected(state, codes, layer, context.query_positions)
            table = None if tables is None else tables[layer]
            state = {**state, **block(state, context, cache, layer, table)}
        return {name: state[name] for name in self.config.last_streams if name in state}

    def _injected(
        self, state: Mapping[str, Tensor], codes: Mapping[str, Tensor], layer: int, positions: Tensor
    ) -> Mapping[str, Tensor]:
        """The state with what is added before this layer: the same codes again, or the layer's own."""
        if layer == 0:
            return state
        if self.config.pos_stream == "reinjected":
            return {name: x + codes[name] if name in codes else x for name, x in state.items()}
        state = dict(state)
        if self.later_streams:
            for name, module in zip(self.later_streams, self.later_encodings[layer - 1], strict=True):
                if name in state:
                    state[name] = state[name] + module(positions).to(state[name].dtype)
        return state

    def position_pass(
        self, codes: Mapping[str, Tensor], context: AttentionContext, cache: KVCache | None = None
    ) -> PositionPass:
        """The position streams of an isolated model alone, for one set of positions `[N]`.

        Raises:
            ValueError: the model's position streams hear the content.
        """
        if not self.config.isolated:
            raise ValueError(f"the model has no position pass of its own: {what_opens(self.config)}")
        codes = {name: code[None] for name, code in codes.items()}
        state = {name: self._dropped(code) for name, code in codes.items()}
        tables = []
        for layer, block in enumerate(self.blocks):
            state = self._injected(state, codes, layer, context.query_positions)
            tables.append(block.attention.position_table(block.attention_norm.parts(state)))
            if any(name in state for name in block.outputs):
                state = {**state, **block(state, context, cache, layer)}
        return PositionPass(tuple(tables), dict(state))

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, self.training)

    def forward(
        self,
        content: Float[Tensor, "B N d_sem"],
        positions: Tensor | None = None,
        cache: KVCache | None = None,
        documents: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Run the stack. Positions are int `[N]` or `[B, N]`; by default those after what the cache holds.
        On n > 1 axes they are `[N, n]` or `[B, N, n]`, real where the encodings allow, and always given.
        With documents `[B, N]` a query sees keys of its own only, and by default each begins at 0.

        Where the position streams are isolated and the sequences share their positions, those streams are
        run once for the whole batch; at inference, at the positions from 0 on, once for all texts; with
        documents, which differ, once for every sequence.

        Raises:
            ValueError, TypeError: see `check_positions`; also for shapes that do not fit, and documents with
                what counts tokens over their borders, see `places.checked_documents`. A cache is then left as
                it was.
        """
        (batch, n), axes = content.shape[:2], self.config.axes
        if cache is not None:
            cache.check(batch, self.config)
            cache.check_window(self.window, self.sinks)
        if documents is not None:
            documents = places.checked_documents(documents, batch, n, self, cache)
            positions = places.restarting(documents) if positions is None and axes == 1 else positions
        counted = positions is None and axes == 1 and (cache is None or cache.counted)
        by_default = counted and (cache is None or not cache.read)
        if by_default:
            positions = torch.arange(n, device=content.device)
            places.check_highest([n - 1], self._limited)  # known on the host: no need to read the device
        else:
            if positions is None:
                after = None if cache is None else cache.next_positions(n, content.device)
                positions = coordinates.following(None, n, content.device, axes) if after is None else after
            places.check_shape(positions, batch, n, axes)
            self.check_positions(positions)
            positions = widened(positions)
        key_positions = positions if cache is None else cache.positions_with(positions)
        if not by_default:
            places.check_counted(key_positions, self.config, documents)
        known_steps = n > 0 if counted else None
        by_length = cache is not None and any(module.by_length for module in self.query_key_encodings)
        length = cache.whole_length(key_positions) if by_length else None
        context = self.attention_context(
            positions, key_positions, content.dtype, known_steps, length, documents
        )
        remembers = isinstance(cache, SegmentMemory)
        shared = self.config.isolated and not remembers and not context.by_sequence
        start = 0 if cache is None else cache.read
        known = shared and n > 0 and counted and may_remember(self) and (cache is None or self._prefix_stable)
        if known:
            held = self._prefix_pass(start, start + n, context)
        codes = {} if known else self.codes(positions, content.dtype)
        if cache is not None:  # written only now: the encodings above may refuse a position
            cache.extend_positions(positions)
            cache.counted = counted
        if not shared:
            # What is injected again is made anew: a gradient is the same sum in the same order as ever.
            made = None if self.config.pos_stream == "reinjected" else codes
            begun = self.input_state(content, positions, made)
            state = {name: self._dropped(x) for name, x in begun.items()}
            return self.run_blocks(state, context, codes, cache)

        if known:
            positional = held.between(start, start + n)
            if cache is not None:
                held.extend(cache, start, start + n)
        else:
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                self._memory.forget()
            positional = self.position_pass(codes, context, cache)
        state = self.run_blocks({"sem": self._dropped(content)}, context, {}, cache, positional.tables)
        # Copied, because what is remembered must not change with what a caller writes to his output.
        ends = {
            n: x.repeat(batch, 1, 1) for n, x in positional.streams.items() if n in self.config.last_streams
        }
        return {name: (ends | state)[name] for name in self.config.last_streams}

    def _prefix_pass(self, start: int, stop: int, context: AttentionContext) -> PrefixPass:
        """What the memory holds of the position streams, up to `stop` at least.

        Args:
            start, stop: the positions asked for, from 0 or after those of a cache.
            context: of these positions, after all before them.
        """
        dtype, device = context.dtype, context.query_positions.device
        alone = None if self._prefix_stable else stop
        key = (alone, dtype, device, arithmetic(device), self._rules())
        # What only the content goes through is under the name of its stream, and nothing else is.
        read = [x for name, x in self.named_parameters() if "sem" not in name.split(".")]

        def compute(first: int, end: int, cache: KVCache) -> PositionPass:
            of = context
            if (first, end) != (start, stop) or context.n_keys != end:  # a cache that rolls has fewer keys
                keys = torch.arange(end, device=device)
                of = self.attention_context(keys[first:], keys, dtype, True)
            return self.position_pass(self.codes(of.query_positions, dtype), of, cache)

        held = self._memory.recall(read, key, PrefixPass)
        held.reach(start, stop, min((module.limit for module in self._limited), default=inf), compute)
        return held

    @property
    def _prefix_stable(self) -> bool:
        """Whether what the position streams are at a position depends on no position after it."""
        return self.config.causal and not any(module.by_length for module in self.query_key_encodings)

    def _rules(self) -> tuple:
        """The rules of evaluation that a position pass follows; they may be set at any time."""
        settings = tuple(module.settings for module in self.query_key_encodings)
        return self.window, self.sinks, self.log_scale, settings

    def train(self, mode: bool = True) -> "Transformer":
        self._memory.forget()
        return super().train(mode)


def _sum(tensors: Iterable[Tensor]) -> Tensor | None:
    first, *others = [*tensors] or [None]
    return sum(others, start=first)


def _modules(candidates) -> nn.ModuleList:
    return nn.ModuleList(module for module in candidates if module is not None)

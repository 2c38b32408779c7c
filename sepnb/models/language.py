"""The language model: tokens in, logits of the next token out."""

from collections.abc import Mapping

from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from .. import validation
from ..streams import StreamNorm
from .cache import KVCache
from .config import TransformerConfig
from .door import check_tokens
from .extension import extended
from .generation import generate
from .layout import readout
from .parts import parts
from .position_tables import PositionTables
from .transformer import Transformer
from .weights import initialise_maps, parameter_counts

LARGEST_VOCABULARY = 2**24


class LanguageModel(nn.Module):
    """Token embedding, transformer, norm, output layer. Dense and separated are the same class.

    Padding on the right of a causal model reaches no token before it. Padding on the left, and texts
    packed into one sequence, are kept apart by `documents=`; positions that restart do not do that alone. In
    a strict model documents, and positions `[B, N]`, are computed for every sequence: the same answer,
    without the saving.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int = 256) -> None:
        super().__init__()
        self.config = validation.instance("config", config, TransformerConfig)
        self.vocab_size = validation.whole("vocab_size", vocab_size, 1, LARGEST_VOCABULARY)
        streams, read = config.streams, readout(config)
        self.embedding = nn.Embedding(vocab_size, streams.widths["sem"])
        self.transformer = Transformer(config)
        self.norm = StreamNorm(
            streams, config.norm_kind, "norm" in config.splits, outputs=read, plain=config.plain
        )
        self.head = nn.Linear(sum(streams.widths[name] for name in read), vocab_size, bias=False)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        initialise_maps(self, config)
        if config.tie_embeddings:
            self.head.weight = self.embedding.weight

    def make_cache(self, batch_size: int, length: int | None = None) -> KVCache:
        """An empty cache for so many sequences; every call that is given it extends it in place.

        `length`, positions of the whole text, must be given where the frequencies of RoPE follow it, as with
        `DynamicNTK`. With a window and no sinks the cache rolls."""
        window = None if self.transformer.sinks else self.transformer.window
        return KVCache(batch_size, self.config.n_layers, length, self.config.axes, window)

    def position_tables(self, positions: Tensor | int, length: int | None = None) -> PositionTables:
        """The position tables of a strict model, for calls with `tables=`; see `PositionTables` and
        `Transformer.position_tables`."""
        return self.transformer.position_tables(positions, self.embedding.weight.dtype, length)

    def forward(
        self,
        tokens: Int[Tensor, "B N"],
        positions: Shaped[Tensor, "..."] | None = None,
        cache: KVCache | None = None,
        documents: Int[Tensor, "B N"] | None = None,
        tables: PositionTables | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next token at every place.

        Args:
            tokens: `[B, N]`, integers of any type below the vocabulary size.
            positions: `[N]` or `[B, N]`; by default those after what the cache holds. On n > 1 axes
                `[N, n]` or `[B, N, n]`, and always given.
            cache: of `make_cache`; extended in place.
            documents: which document every token is of, numbered in the order of the sequence. A query sees
                its own document only, and by default the positions of each begin at 0, so that several short
                texts can be packed into one sequence, and padding be a document of its own. Not together
                with a cache, tables, sinks, `log_scale` or frequencies that follow the length.
            tables: of `position_tables`; a cache that was given them goes on with them.

        Raises:
            TypeError, ValueError: an argument of another type, shape or device, or out of range; a cache or
                tables of something else; documents that are not in one piece each.
        """
        return self.logits(self.transformer(self.embedded(tokens), positions, cache, documents, tables))

    def embedded(self, tokens: Tensor) -> Tensor:
        """The content of tokens, `[B, N]` to `[B, N, d_sem]`."""
        return self.embedding(check_tokens(tokens, self.vocab_size, self.embedding.weight.device))

    def logits(self, x: Mapping[str, Tensor]) -> Tensor:
        """The streams of the final state that are read, `[B, N, w]`, to logits `[B, N, V]`."""
        return self.head(self.config.streams.join(self.norm.parts(x)))

    extended = extended
    generate = generate
    parameter_counts = parameter_counts
    parts = parts

"""The language model: tokens in, logits of the next token out."""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from ..encodings.rope import ContextExtension
from ..streams import StreamNorm
from .cache import KVCache
from .config import TransformerConfig
from .extension import extended
from .memory import SegmentMemory
from .transformer import Transformer
from .weights import initialise_maps, parameter_counts


class LanguageModel(nn.Module):
    """Token embedding, transformer, norm, output layer. Dense and separated are the same class.

    Padding on the right of a causal model is heard by no token before it. Padding on the left, and texts
    packed into one sequence, are told apart by `documents=`; positions that restart do not do that alone. In
    a strict model documents, and positions `[B, N]`, are computed for every sequence: the same answer,
    without the saving.

    Args:
        config: the transformer.
        vocab_size: tokens; 256 for bytes.
    """

    def __init__(self, config: TransformerConfig, vocab_size: int = 256) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = vocab_size
        streams, readout = config.streams, config.readout_streams
        self.embedding = nn.Embedding(vocab_size, streams.widths["sem"])
        self.transformer = Transformer(config)
        self.norm = StreamNorm(streams, config.norm_kind, "norm" in config.splits, outputs=readout)
        self.head = nn.Linear(sum(streams.widths[name] for name in readout), vocab_size, bias=False)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        initialise_maps(self, config)
        if config.tie_embeddings:
            self.head.weight = self.embedding.weight

    def make_cache(self, batch_size: int, length: int | None = None) -> KVCache:
        """An empty cache; every call that is given it extends it in place.

        Where the frequencies of RoPE follow the length of the text, as with `DynamicNTK`, it must be given.
        Behind a window of W tokens it rolls: what it holds are the last W - 1, which is all that a later
        query sees, by any encoding. With sinks it holds everything.

        Args:
            batch_size: sequences.
            length: positions of the whole text.
        """
        window = None if self.transformer.sinks else self.transformer.window
        return KVCache(batch_size, self.config.n_layers, length, self.config.axes, window)

    def make_memory(self, batch_size: int, size: int) -> SegmentMemory:
        """An empty memory of the last `size` tokens; every call that is given it as its cache extends it."""
        return SegmentMemory(batch_size, self.config.n_layers, size)

    def forward(
        self,
        tokens: Int[Tensor, "B N"],
        positions: Shaped[Tensor, "..."] | None = None,
        cache: KVCache | None = None,
        documents: Int[Tensor, "B N"] | None = None,
    ) -> Float[Tensor, "B N V"]:
        """Logits of the next token at every place.

        Args:
            tokens: `[B, N]`, integers below the vocabulary size.
            positions: `[N]` or `[B, N]`; by default those after what the cache holds. On n > 1 axes
                `[N, n]` or `[B, N, n]`, and always given.
            cache: of `make_cache`; extended in place.
            documents: which document every token is of, numbered in the order of the sequence. A query sees
                its own document only, and by default the positions of each begin at 0, so that several short
                texts can be packed into one sequence, and padding be a document of its own. Not together
                with a cache, sinks, `log_scale` or frequencies that follow the length.

        Raises:
            TypeError: tokens, positions or documents that are not integers.
            ValueError: tokens of another shape or outside the vocabulary; positions that are negative or past
                a learned table; a cache of other sequences; documents that are not in one piece, or with what
                they cannot be together with.
        """
        if tokens.dim() != 2:
            raise ValueError(f"tokens have shape {list(tokens.shape)}; give [batch, length]")
        if tokens.is_floating_point() or tokens.dtype == torch.bool:
            raise TypeError(f"tokens must be integers, got {tokens.dtype}")
        if tokens.device.type == "cpu" and tokens.numel() and not torch.compiler.is_compiling():
            lowest, highest = int(tokens.min()), int(tokens.max())
            if lowest < 0 or highest >= self.vocab_size:
                wrong = lowest if lowest < 0 else highest
                raise ValueError(f"token {wrong} is outside the vocabulary 0 to {self.vocab_size - 1}")
        state = self.transformer(self.embedding(tokens), positions, cache, documents)
        return self.head(self.config.streams.join(self.norm.parts(state)))

    def extended(
        self,
        extrapolator: str | None = None,
        form: str = "corrected",
        extension: ContextExtension | None = None,
        window: int | None = None,
        sinks: int = 0,
        log_scale: bool = False,
        **options: object,
    ) -> "LanguageModel":
        """The same weights under another rule of evaluation; never retrains, never changes the original.

        Rules add up: of a model that follows some already, what is not given here stays. Window and sinks are
        one rule and given together: a new window without sinks has none. The window of a config can be
        narrowed, and neither widened nor given sinks.

        Args:
            extrapolator: one of `sepnb.extrapolators.METHODS`. The codes of the encoding at the input, at
                positions below `max_length`, are its table; it gives those from there on.
            form: "corrected" or "literal", of the extrapolator.
            extension: other frequencies for RoPE. One that follows the length of the text takes that of a
                call, its largest position + 1, or that of the cache.
            window: tokens that a query sees, itself included; positions keep their indices.
            sinks: tokens at the beginning that it sees besides (Xiao et al. 2024); with a window only.
            log_scale: multiply a query's logits by max(1, ln n / ln L), n the keys that it sees: the entropy
                of attention grows with their number, and this sharpens it again (Chiang and Cholak 2022).
                Biases of the score, such as ALiBi's, are added afterwards and not multiplied.
            options: of the extrapolator, such as `length` for "interpolate".

        Raises:
            ValueError: a rule that this model cannot follow, or a window or sinks out of range; and
                whatever the extrapolator refuses.
        """
        return extended(
            self,
            extrapolator=extrapolator,
            form=form,
            extension=extension,
            window=window,
            sinks=sinks,
            log_scale=log_scale,
            options=options,
        )

    def parameter_counts(self) -> dict[str, int]:
        """Trained numbers: `blocks`, `tables` and `total`; see `weights.parameter_counts`."""
        return parameter_counts(self)

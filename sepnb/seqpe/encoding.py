"""SeqPE (Li et al. 2025): positions as digit strings, read by a small sequential encoder.

The encoder is a transformer itself, and stands above the models: the registry of `sepnb.encodings` imports
this when it is asked for it. `injection` says what each site computes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from ..encodings.base import Encoding, Heads, InputModule, QueryKeyModule, Site
from ..validation import one_of
from .encoder import SequentialPositionEncoder, check_settings
from .injection import EmbeddedInput, EmbeddedQueryKey

SITES = ("score", "add", "multiply", "input")
SETTINGS = ("width", "dims", "base", "digits", "layers", "heads", "dropout", "std")
"""Those of the encoder; see `SequentialPositionEncoder`."""


@dataclass(frozen=True)
class SeqPE(Encoding):
    """Embeddings of digit strings, at the input or where queries meet keys.

    A model trains the encoder through its own loss; `sepnb.training.seqpe_losses` adds those of SeqPE.

    Args:
        site: "score", a term P_q P_k^T of every head's score, as in the released language model; "add" or
            "multiply", on queries and keys, the latter as in its image model; "input", added to the content
            of a one-stream model, or the position stream of a separated one.
        width, layers, heads, base, digits, dims, std, dropout: of the encoder. Released are a width of 768,
            that of the model (a narrow one costs little), std 0.02 and dropout 0.1. Sequences that share
            their positions share what was dropped.
        per_layer: a map to P_q and P_k for every layer, as in the released image model; else one for all.
        factor: a, of the term of the score.
        class_token: the origin, where the class token of an image stands, has a learned vector in the place
            of an embedding, as in the released image model; it goes through the same maps.
    """

    name: ClassVar[str] = "seqpe"
    order: ClassVar[float] = 16
    reads_index: ClassVar[bool] = True
    later: ClassVar[tuple[str, ...]] = ("dropout", "class_token")

    site: str = "score"
    width: int = 32
    layers: int = 2
    heads: int | None = None
    base: int = 10
    digits: int | tuple[int, ...] = 5
    dims: int = 1
    per_layer: bool = False
    factor: float = 1.0
    std: float | None = None
    dropout: float = 0.0
    class_token: bool = False

    def __post_init__(self) -> None:
        one_of("site", self.site, SITES)
        check_settings(**self._settings)
        if self.per_layer and self.site == "input":
            raise ValueError("per_layer is for the maps to queries and keys, and site is 'input'; give one")
        if self.class_token and self.dims == 1:
            raise ValueError(
                "class_token is for images, whose patches are counted from 1, and with dims=1 position 0 is "
                "the first token of a text; give dims=2"
            )
        if self.factor != 1 and self.site != "score":
            raise ValueError(
                f"factor={self.factor} is for the term of the score, and site is {self.site!r}; give one"
            )

    @property
    def sites(self) -> frozenset[Site]:
        """Where the embeddings act: the term of the score is a part of queries and keys."""
        return frozenset({Site.INPUT if self.site == "input" else Site.QUERY_KEY})

    @property
    def axes(self) -> tuple[int, ...]:
        """The numbers of coordinates that it takes."""
        return (self.dims,)

    def at_input(self, width: int, max_length: int) -> InputModule | None:
        if self.site != "input":
            return None
        return EmbeddedInput(self._encoder(width), class_token=self.class_token)

    def at_query_key(self, heads: Heads) -> QueryKeyModule | None:
        if self.site == "input":
            return None
        encoder, token = self._encoder(self.width), self.class_token
        return EmbeddedQueryKey(encoder, heads, self.site, self.factor, self.per_layer, class_token=token)

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]]:
        """The embedding, whatever the site."""
        return "position: the embedding of its digits", self._encoder(width)

    @property
    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SETTINGS}

    def _encoder(self, out_features: int) -> SequentialPositionEncoder:
        return SequentialPositionEncoder(**self._settings, out_features=out_features)

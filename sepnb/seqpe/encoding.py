"""SeqPE (Li et al. 2025): positions as digit strings, read by a small sequential encoder.

The encoder is a transformer itself, and so stands above the models that this description is for: the registry
of `sepnb.encodings` knows where it is and imports it when it is asked for. `injection` says what each site
computes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from .. import validation
from ..encodings.base import Encoding, Heads, InputModule, QueryKeyModule, Site
from ..records.settings import without_defaults
from .digits import checked_places
from .encoder import SequentialPositionEncoder
from .injection import EmbeddedInput, EmbeddedQueryKey

SITES = ("score", "add", "multiply", "input")
LARGEST = 2**16
"""Of a count."""


@dataclass(frozen=True)
class SeqPE(Encoding):
    """Embeddings of digit strings, at the input or where queries meet keys.

    A model trains the encoder through its own loss; `sepnb.training.seqpe_losses` adds those of SeqPE.

    Args:
        site: "score", a term P_q P_k^T of every head's score, as in the released language model; "add" or
            "multiply", on queries and keys, the latter as in its image model; "input", added to the content
            of a one-stream model, or the position stream of a separated one.
        width, layers, heads: of the encoder; `heads` None takes one for every 64 columns, as released,
            and at least one. Its released width is that of the model, 768; a narrow one costs little.
        base, digits: of the strings, `digits` for a coordinate or one number for each: a position is below
            base^digits.
        dims: coordinates of a position.
        per_layer: a map to P_q and P_k for every layer, as in the released image model; else one for all.
        factor: a, of the term of the score.
        std: of the encoder's first maps and embeddings: 0.02 as released, at a width of 768. None gives any
            width the gain that the released one has at its own.
        dropout: in the encoder, in training: 0.1 as released. Sequences that share their positions share what
            was dropped.
        class_token: the origin, where the class token of an image stands, has a learned vector in the place
            of an embedding, as in the released image model; it goes through the same maps.

    Raises:
        TypeError: a count that is no int.
        ValueError: an unknown site, what the encoder refuses, a dropout outside [0, 1), a map or a factor
            where there is none, a deviation that is not above 0, or a class token on one axis.
    """

    name: ClassVar[str] = "seqpe"
    order: ClassVar[float] = 16
    reads_index: ClassVar[bool] = True

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
        if self.site not in SITES:
            raise ValueError(f"unknown site {self.site!r}; use one of {', '.join(SITES)}")
        for field in ("width", "layers", "heads", "dims"):
            if field != "heads" or self.heads is not None:
                validation.whole(field, getattr(self, field), 1, LARGEST)
        if self.heads is not None and self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the encoder's width {self.width}")
        if self.std is not None:
            validation.above_zero("std", self.std)
        validation.share("dropout", self.dropout)
        places = checked_places(self.base, self.digits)
        if not isinstance(self.digits, int) and len(places) != self.dims:
            raise ValueError(
                f"digits={self.digits} for {self.dims} coordinates; give one number, or one for each"
            )
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
        return EmbeddedQueryKey(
            self._encoder(self.width),
            heads,
            self.site,
            self.factor,
            self.per_layer,
            class_token=self.class_token,
        )

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]]:
        """The embedding, whatever the site."""
        return "position: the embedding of its digits", self._encoder(width)

    def _encoder(self, out_features: int) -> SequentialPositionEncoder:
        return SequentialPositionEncoder(
            width=self.width,
            dims=self.dims,
            base=self.base,
            digits=self.digits,
            layers=self.layers,
            heads=self.heads,
            out_features=out_features,
            dropout=self.dropout,
            std=self.std,
        )

    def resolved(self) -> dict[str, Any]:
        """As of every encoding; `dropout` and `class_token` where there are some."""
        return without_defaults(super().resolved(), dropout=0.0, class_token=False)

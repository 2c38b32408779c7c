"""What an encoding is: a frozen description that says at which sites it acts, and builds a module for each.

There are four sites and as many builders: `at_input`, `at_query_key`, `at_score`, `at_value`. The description
is what a record stores and what two models can share; the modules hold the parameters and belong to one
model. Positions are always arguments, never read off a shape, so that caches, offsets, gaps and packed
documents need no special case.

Shape letters: B batch, H heads, N query length, M key length, d head width. Positions are `[N]`, or `[B, N]`
when the rows of a batch differ; in a model of n > 1 axes `[N, n]` or `[B, N, n]`, see `coordinates`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ..records.settings import without_defaults
from ..validation import number

if TYPE_CHECKING:
    from .reference import Reference


class Site(StrEnum):
    """A place where position enters a transformer."""

    INPUT = "input"
    QUERY_KEY = "query/key"
    SCORE = "score"
    VALUE = "value"


@dataclass(frozen=True)
class Heads:
    """The heads that a module is built for, and the model that they are of.

    Attributes:
        count: how many they are: of the model, or where an encoding says `each_layer` of one layer.
        width: d, columns of a head.
        model_width: D, columns of the model.
        content_width: columns of the sem stream.
        reading: of a layer, how many heads make their queries and keys from the sem stream.
        max_length: positions below this are trained on.
        causal: a key after the query is hidden.
        layers: for each layer the heads that it has, by their numbers among those of the model.
        shared: how many neighbouring heads share one key: head h has the key h // shared.
    """

    count: int = 1
    width: int = 2
    model_width: int = 2
    content_width: int = 2
    reading: int = 1
    max_length: int = 128
    causal: bool = True
    layers: tuple[tuple[int, ...], ...] = ((0,),)
    shared: int = 1


class Place(NamedTuple):
    """Whose queries or keys these are: the layer, counted from 0, and the numbers of the heads that ask."""

    layer: int
    heads: tuple[int, ...]


class Extendable(ABC):
    """A module whose positions a context extension can slow down: one with angular frequencies, and forget
    gates, which count. See `encodings.context`."""

    extension: Any = None
    """The context extension whose frequencies it has; None: those that it was built with."""
    attention_factor: float = 1.0
    """The factor by which that extension multiplies queries and keys."""

    @abstractmethod
    def extend(self, extension: Any) -> None:
        """Take the frequencies of a context extension from now on, in the place of those of an earlier one;
        None: those that it was built with. ValueError where it cannot follow the extension."""


class InputModule(nn.Module, ABC):
    """Positions `[N]` or `[B, N]` to vectors `[..., N, width]` for the input of the model. For an encoding at
    the query/key site they are added, in every layer, to the normalised sem stream that queries and keys are
    made from, but not to the one for values."""

    limit: int | tuple[int | None, ...] | None = None
    """The first position it cannot encode, or one for each coordinate; None if there is none."""

    def refusal(self, position: int | float) -> str:
        """The error message for a position that this module cannot encode."""
        return (
            f"position {position} has no row in the learned table of {self.limit} positions (0 to "
            f"{self.limit - 1}); train with max_length of at least {position + 1}, use an encoding without a "
            f"table, or name one of sepnb.extrapolators.METHODS: model.extended(extrapolator=...)"
        )

    @abstractmethod
    def forward(self, positions: Tensor) -> Tensor:
        """The vectors of these positions."""


class QueryKeyModule(nn.Module, ABC):
    """Changes queries and keys. `prepare` runs once per forward pass, `forward` once per layer."""

    streams: tuple[str, ...] | None = None
    """It acts on what is made from these streams alone; None: on everything."""
    bounds_span: bool = False
    """Whether keys too far apart have no answer; `check_span` then refuses them."""
    by_length: bool = False
    """Whether its answers depend on the length of the whole text."""
    more: int = 0
    """How many columns it puts beside those of a head: a term of the score."""
    once: bool = False
    """Whether it acts on the first part only of a head whose queries and keys have a content and a position
    part, because what it adds must be added once for each head."""

    @property
    def settings(self) -> Hashable:
        """What its answers depend on beside positions and parameters, and what may be set anew."""
        return None

    def check_span(self, span: int, dtype: torch.dtype) -> None:
        """Refuse keys of which the last is `span` positions after the first, in heads of this dtype."""
        return None

    @abstractmethod
    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[Any, Any]:
        """What `forward` needs of the queries and what it needs of the keys, computed once for all layers.
        `length` is that of the whole text, where more of it may follow; None: it ends with these keys."""

    @abstractmethod
    def forward(self, x: Tensor, prepared: Any, place: Place | None = None) -> Tensor:
        """x, queries or keys `[B, H, N, d]`, to the same shape, or with `more` columns. `place`: whose they
        are; None: of all heads of the first layer."""


class TermModule(nn.Module, ABC):
    """A term of the score with parameters of its own in every layer, as more columns of queries and keys.

    The score of a head becomes (q k^T + q' k'^T) d^-1/2, q' and k' being the columns that `forward` gives.
    Where those of a key are made of content too, `kept` is what they are made of.
    """

    more: int
    """How many columns it puts beside those of a head."""
    products: int
    """Multiply-adds of its maps for one token: what a count of the model adds for them."""

    @abstractmethod
    def prepare(self, query_positions: Tensor, key_positions: Tensor) -> Any:
        """What `forward` needs of the positions, computed once and shared by the modules of all layers."""

    def kept(self, content: Tensor) -> Tensor | None:
        """What the key columns of these tokens need in later calls, `[B, H, N, *]`, from their normalised sem
        stream `[B, N, d_sem]`: a cache keeps it with the keys. None: keys give positions alone."""
        return None

    @abstractmethod
    def forward(self, content: Tensor, prepared: Any, kept: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The columns of the queries, `[B, H, N, e]`, from their normalised sem stream `[B, N, d_sem]`, and
        those of the keys, `[1, 1, M, e]` (`[B, 1, M, e]` if positions differ by sequence; with a dimension of
        H if they differ by head). `kept`: what `kept` gave for all keys, `[B, H, M, *]`; None: the keys are
        those of the queries, or nothing is kept."""


class ScoreModule(nn.Module, ABC):
    """A bias on the scaled scores: positions to `[H, N, M]`, or `[B, H, N, M]` where sequences differ."""

    toeplitz: bool = False
    """Whether the bias of a pair is a function of its distance alone."""

    @abstractmethod
    def forward(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        """The bias of every pair. `consecutive`: as in `sepnb.encodings.relative.by_distance`."""


class PairModule(nn.Module, ABC):
    """The scores of one layer, where they are more than q k^T d^-1/2 and a bias of positions; a model has at
    most one such encoding. Attention then computes the softmax explicitly. The exception is FlexAttention on
    CUDA, for scores made of their own product and one number of the distance; see `combine`."""

    combine: Callable[[Tensor, Tensor], Tensor] | None = None
    """A score from its scaled product and what `of_distance` gives for the pair, element by element; None if
    it takes more than that."""

    def of_distance(self, relative: Tensor, heads: slice) -> Tensor:
        """The second argument of `combine`: relative positions int `[T]`, key minus query, to `[H, T]`."""
        raise NotImplementedError(f"{type(self).__name__} makes no score of its product and a number")

    @abstractmethod
    def prepare(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Any:
        """What `forward` needs of the positions, computed once and shared by the modules of all layers.
        `consecutive`: as in `sepnb.encodings.relative.by_distance`."""

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, prepared: Any, heads: slice) -> Tensor:
        """Scaled scores `[B, H, N, M]` without a mask; what the mask will hide may be any finite number.

        q and k are `[B, H, N, e]` and `[B, H, M, e]`. Their first d columns are those of the head; the
        product of the other columns is added to the head's own, under the same scale d^-1/2. `heads` selects
        among the heads that the module was built for.
        """


class ValueModule(nn.Module, ABC):
    """What one layer adds to the averaged values, from the attention weights and the positions; in a model of
    several streams to the position streams only: the content stays free of positions."""

    @abstractmethod
    def prepare(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Any:
        """As in `PairModule`."""

    @abstractmethod
    def forward(self, weights: Tensor, prepared: Any, heads: slice) -> Tensor:
        """Weights `[B, H, N, M]` to `[B, H, N, d]`; `heads` as in `PairModule`."""


_REGISTRY: dict[str, type["Encoding"]] = {}


@dataclass(frozen=True)
class Encoding:
    """Base of all encodings. A subclass sets `name` and `sites` and overrides the builders of its sites.

    A subclass with a `name` of its own is registered when it is defined. One that inherits its name is a
    variant, built from its class alone. Options are the fields; other attributes of this base are set without
    an annotation. An option of a wrong type is a TypeError and one out of bounds a ValueError when the
    description is made; an option that does not fit a model, when its module is built.
    """

    name: ClassVar[str]
    order: ClassVar[float] = inf
    """Its place in tables; those that say none come last, by their names."""
    reference: ClassVar["Reference | None"] = None
    """Its equation, by the pair and in float64, for the tests that all encodings share; None: it is kept
    outside of this package, in `tests/encodings/references.py`."""
    tried: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Options with which these tests build it beside its defaults."""
    left_out: ClassVar[str | None] = None
    """Why no method of `sepnb.experiments.encoding_methods` has it; None: one has."""
    later: ClassVar[tuple[str, ...]] = ()
    """Options that came when records existed: at their default these are left out of `resolved`."""
    sites: ClassVar[frozenset[Site]] = frozenset()
    causal_only: ClassVar[bool] = False
    """Whether it makes sense only where no query sees a later key."""
    reads_index: ClassVar[bool] = False
    """Whether it matters where a text starts: positions are encoded, and not their differences alone."""
    counts_tokens: ClassVar[bool] = False
    """Whether it counts the tokens itself and reads nothing of their positions but the order: a model takes
    consecutive ones only, from any start."""
    axes: ClassVar[tuple[int, ...] | None] = (1,)
    """How many coordinates its positions may have; None: any number."""
    real_positions: ClassVar[bool] = False
    """Whether it takes points between the integers, where positions have several coordinates."""
    saturates_at: ClassVar[int | float] = inf
    """The distance from which on all are encoded alike: inf if none are, 0 if all are."""
    streams = None  # without annotation, as `per_layer`: a subclass may make it a field, in its own place
    """The streams from which queries and keys must be made for it to act on them; None: any."""
    per_layer = False
    """Whether every layer has parameters of its own; else all share them."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Enter an encoding that has a name of its own into the registry, in the place of its first
        definition if it is defined again; refuse a name that another class has."""
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            return
        known = _REGISTRY.get(cls.name, cls)
        first, second = (f"{kind.__module__}.{kind.__qualname__}" for kind in (known, cls))
        if first != second:
            raise ValueError(
                f"{first} and {second} are both named {cls.name!r}; give the second a name of its own, or "
                f"none, if it is a variant of the first"
            )
        _REGISTRY[cls.name] = cls

    def for_length(self, length: int | float) -> "Encoding":
        """The same encoding, where it measures positions against a length with this one in its place."""
        return self

    def each_layer(self, site: Site) -> bool:
        """Whether every layer has a module of its own at this site; otherwise all layers share one. Modules
        that change queries and keys are shared unless an encoding overrides this."""
        return self.per_layer and site is not Site.QUERY_KEY

    def common_key(self, head_width: int) -> int:
        """How many of the first columns of a key, of `head_width`, are one for all heads that read the same
        streams."""
        return 0

    def at_input(self, width: int, max_length: int) -> InputModule | None:
        """A module for vectors of this width, for positions below `max_length` if it holds a table."""
        return None

    def at_query_key(self, heads: Heads) -> QueryKeyModule | InputModule | TermModule | None:
        """A module for these heads: one that changes queries and keys, such as a rotation; one whose vectors
        are added before W_Q and W_K; or, for one layer, a score term that depends on content."""
        return None

    def at_score(self, heads: Heads) -> ScoreModule | PairModule | None:
        """A module for these heads: a bias of positions, or, of one layer, what makes the scores."""
        return None

    def at_value(self, heads: Heads) -> ValueModule | None:
        """A module for these heads, those of one layer."""
        return None

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]] | None:
        """What the encoding makes of a position or distance before it meets content; for the table of
        properties, where no rotation, column or bias shows it. Returns a few words, such as "distance: the
        factor of each head", and a function of int positions or distances `[N]` to `[N, width]`."""
        return None

    def resolved(self) -> dict[str, Any]:
        """Name and options in plain JSON types. An option that is None, or of `later`, is left out."""
        unset = {field.name: field.default if field.name in self.later else None for field in fields(self)}
        return {"name": self.name} | to_json(without_defaults(asdict(self), **unset))


def check_base(base: int | float) -> None:
    """Raise unless `base`, of the frequencies base^(-2m/d), is above 1."""
    number("base", base, above=1, needs="it must be above 1, or no wave is longer than the first")


def to_json(options: dict[str, Any]) -> dict[str, Any]:
    """Settings as a record holds them: a tuple is a list."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}


def from_json(value: object) -> object:
    """A setting as a field holds it: what a record tells as a list was a tuple."""
    return tuple(value) if isinstance(value, list) else value

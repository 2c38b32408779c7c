"""What an encoding is: a frozen description that says at which sites it acts, and builds a module for each.

The description is what a record stores and what two models can share; the modules hold the parameters and
belong to one model. Positions are always arguments, never read off a shape, so that caches, offsets, gaps
and packed documents need no special case.

Shape letters: B batch, H heads, N query length, M key length, d head width. Positions are `[N]`, or `[B, N]`
when the rows of a batch differ; in a model of n > 1 axes `[N, n]` or `[B, N, n]`, see `coordinates`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from ..settings import without_defaults

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
    """The heads whose queries and keys a module changes.

    Attributes:
        layers: for each layer the heads that it has, by their numbers among those of the model.
        shared: how many neighbouring heads share one key: head h has the key h // shared.
    """

    layers: tuple[tuple[int, ...], ...] = ((0,),)
    shared: int = 1


class Place(NamedTuple):
    """Whose queries or keys these are: the layer, counted from 0, and the numbers of the heads that ask."""

    layer: int
    heads: tuple[int, ...]


class InputModule(nn.Module, ABC):
    """Positions `[N]` or `[B, N]` to vectors `[..., N, width]` for the input of the model."""

    limit: int | tuple[int | None, ...] | None = None
    """The first position it cannot encode, or one for each coordinate; None if there is none."""

    def refusal(self, position: int | float) -> str:
        """What there is to say of a position that it cannot encode."""
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

    @property
    def settings(self) -> Hashable:
        """What its answers depend on beside positions and parameters, and what may be set anew."""
        return None

    bounds_span: ClassVar[bool] = False
    """Whether keys too far apart have no answer; `check_span` then refuses them."""

    by_length: bool = False
    """Whether its answers depend on the length of the whole text."""

    more: int = 0
    """How many columns it puts beside those of a head: a term of the score."""

    once: bool = False
    """Where queries and keys of a head are made in parts, content and positions apart: whether it acts on the
    first of them alone, because every head has once what it adds."""

    def check_span(self, span: int, dtype: torch.dtype) -> None:
        """Refuse keys of which the last is `span` positions after the first, in heads of this dtype."""
        return None

    @abstractmethod
    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[Any, Any]:
        """What `forward` needs of the queries and what it needs of the keys, computed once for all layers.

        `length` is that of the whole text, where more of it may follow; None: it ends with these keys.
        """

    @abstractmethod
    def forward(self, x: Tensor, prepared: Any, place: Place | None = None) -> Tensor:
        """x, queries or keys `[B, H, N, d]`, to the same shape, or with `more` columns.

        place: whose they are; None: of all heads of the first layer.
        """


class TermModule(nn.Module, ABC):
    """A term of the score with parameters of its own in every layer, as more columns of queries and keys.

    The score of a head becomes (q k^T + q' k'^T) d^-1/2, q' and k' being the columns that `forward` gives.
    """

    more: int
    """How many columns it puts beside those of a head."""

    products: int
    """Multiply-adds of its maps for one token: what a count of the model adds for them."""

    @abstractmethod
    def prepare(self, query_positions: Tensor, key_positions: Tensor) -> Any:
        """What `forward` needs of the positions, computed once and shared by the modules of all layers."""

    @abstractmethod
    def forward(self, content: Tensor, prepared: Any) -> tuple[Tensor, Tensor]:
        """The normalised sem stream of the queries `[B, N, d_sem]` to the columns `[B, H, N, e]` of these and
        `[1, 1, M, e]` of the keys (`[B, 1, M, e]` where sequences have positions of their own)."""


class ScoreModule(nn.Module, ABC):
    """A bias on the scaled scores: positions to `[H, N, M]`, or `[B, H, N, M]` where sequences differ."""

    toeplitz: ClassVar[bool] = False
    """Whether the bias of a pair is a function of its distance alone."""

    @abstractmethod
    def forward(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        """The bias of every pair. `consecutive`: as in `sepnb.encodings.relative.by_distance`."""


class PairModule(nn.Module, ABC):
    """The scores of one layer, where they are more than q k^T d^-1/2 and a bias of positions.

    Attention then computes the softmax in the open, but for FlexAttention on CUDA, which takes a score that
    is made of its own product and one number of the distance; see `combine`. A model has at most one encoding
    with such a module.
    """

    combine: Callable[[Tensor, Tensor], Tensor] | None = None
    """A score from its scaled product and what `of_distance` gives for the pair, element by element; None if
    it takes more than that."""

    def of_distance(self, relative: Tensor, heads: slice) -> Tensor:
        """The second argument of `combine`: relative positions int `[T]`, key minus query, to `[H, T]`."""
        raise NotImplementedError(f"{type(self).__name__} makes no score of its product and a number")

    @abstractmethod
    def prepare(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Any:
        """What `forward` needs of the positions, computed once and shared by the modules of all layers.

        `consecutive`: as in `sepnb.encodings.relative.by_distance`.
        """

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, prepared: Any, heads: slice) -> Tensor:
        """Scaled scores `[B, H, N, M]`, without a mask: what it will hide may be anything finite.

        Args:
            q, k: `[B, H, N, e]` and `[B, H, M, e]`. The first d columns are those of the head; what stands
                beside them adds its product to that of the head's own, under the same scale d^-1/2.
            prepared: of `prepare`.
            heads: which of the heads that the module was built for.
        """

    def share(self, first: "PairModule") -> None:
        """Take over from the module of the first layer what all layers have in common: nothing, unless the
        encoding says so."""


class ValueModule(nn.Module, ABC):
    """What one layer adds to the averaged values, from the attention weights and the positions.

    In a model of several streams it adds to the position streams only: the content stays free of positions.
    """

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

    With a `name` of its own it is in the registry from its definition on. One that inherits its name is a
    variant, which is built from its class alone.
    """

    name: ClassVar[str]
    order: ClassVar[float] = inf
    """Its place in tables; those that say none come last, by their names."""
    reference: ClassVar["Reference | None"] = None
    """Its equation, by the pair and in float64, for the tests that all encodings share; None: it stands apart
    from this package, in `tests/encodings/references.py`."""
    tried: ClassVar[tuple[dict[str, Any], ...]] = ()
    """Options with which these tests build it beside its defaults."""
    left_out: ClassVar[str | None] = None
    """Why no method of `sepnb.experiments.encoding_methods` has it; None: one has."""
    sites: ClassVar[frozenset[Site]] = frozenset()
    causal_only: ClassVar[bool] = False
    """Whether it makes sense only where no query sees a later key."""
    reads_index: ClassVar[bool] = False
    """Whether it can be heard where a text starts: positions are encoded, and not their differences alone."""
    counts_tokens: ClassVar[bool] = False
    """Whether it counts the tokens itself and hears nothing of their positions but the order: a model takes
    consecutive ones only, from any start."""
    axes: ClassVar[tuple[int, ...] | None] = (1,)
    """How many coordinates its positions may have; None: any number."""
    real_positions: ClassVar[bool] = False
    """Whether it takes points between the integers, where positions have several coordinates."""
    per_layer = False  # without annotation: a subclass may make it a field, in its own place
    """Whether every layer has a module of its own, of `at_input` or `at_score`, or in the one module of
    `at_query_key` maps of its own; else all share one."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Enter an encoding that has a name of its own into the registry.

        Raises:
            ValueError: another class has this name. The same one defined again takes the place of the first.
        """
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

    @property
    def saturates_at(self) -> int | float:
        """The distance from which on all are encoded alike: inf if none are, 0 if all are."""
        return inf

    def at_input(self, width: int, max_length: int) -> InputModule | None:
        """A module for vectors of this width, for positions below `max_length` if it holds a table."""
        return None

    def at_projection(self, width: int, max_length: int) -> InputModule | None:
        """A module for vectors of this width that are added to the normalised sem stream of every layer where
        it makes queries and keys, and not where it makes values; `max_length` as in `at_input`."""
        return None

    def at_query_key(self, head_width: int, heads: Heads | None = None) -> QueryKeyModule | None:
        """A module for heads of this width; `heads`: which there are, None: one head of one layer."""
        return None

    def at_layer(self, content_width: int, n_heads: int, max_length: int) -> TermModule | None:
        """A module for one layer, of which `n_heads` heads read the sem stream of this width."""
        return None

    def at_score(self, n_heads: int) -> ScoreModule | None:
        """A module for this many heads: all of the model's, or where `per_layer` those of one layer."""
        return None

    def at_pairs(self, n_heads: int, head_width: int, width: int, causal: bool) -> PairModule | None:
        """A module for one layer of this many heads, of a model of this width; `causal`: what it gives for a
        key after the query is hidden."""
        return None

    def at_values(self, n_heads: int, head_width: int, causal: bool) -> ValueModule | None:
        """A module for one layer of this many heads; `causal`: no key after the query has a weight."""
        return None

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]] | None:
        """For the table of properties, where no rotation, columns or bias shows it: what it makes of a
        position, or of a distance, before that meets content. In a few words, such as "distance: the factor
        of each head", and as a function of positions int `[N]`, or distances, to `[N, width]`. None: nothing.

        width, length: of the code and of the trained window.
        """
        return None

    def resolved(self) -> dict[str, Any]:
        """Name and options in plain JSON types. An option that is None is left out."""
        options = asdict(self)
        options = without_defaults(options, **dict.fromkeys(options))
        return {
            "name": self.name,
            **{k: list(v) if isinstance(v, tuple) else v for k, v in options.items()},
        }


def from_json(value: object) -> object:
    """A setting as a field holds it: what `resolved` tells as a list was a tuple."""
    return tuple(value) if isinstance(value, list) else value

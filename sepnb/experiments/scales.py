"""Scales: how large positions are beside content when training begins.

Where a position vector is added to a token's, the one is noise to the other, and a model may learn with
content twice as large what it never learns otherwise. A baseline drawn at somebody else's scale is no
baseline. So such a method is tried at several scales, each at every rate, and takes the best pair.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..encodings import Learned, Sinusoidal
from ..models import TransformerConfig
from .methods import model_config, series


class Scale(NamedTuple):
    """What is drawn larger or smaller.

    Fields: `stds`, standard deviations to try; `drawn`, the model with a given one; `of`, that of a record's
    model; `further`, the factors to the next one below and above.
    """

    stds: tuple[float, ...]
    drawn: Callable[[TransformerConfig, float], TransformerConfig]
    of: Callable[[Mapping[str, Any]], float]
    further: tuple[float, float]


def _table_drawn(model: TransformerConfig, std: float) -> TransformerConfig:
    encodings = tuple(replace(one, std=std) if isinstance(one, Learned) else one for one in model.encodings)
    return replace(model, encoding=encodings)


def _table_of(model: Mapping[str, Any]) -> float:
    (table,) = (one for one in model["encoding"] if one["name"] == Learned.name)
    return table["std"]


TABLES = Scale((0.02, 0.1, 0.5), _table_drawn, _table_of, (0.25, 2.0))
"""The rows of a learned table: what `Learned` has where nothing is said, what token embeddings have, and
about half way, in logarithms."""

CONTENT = Scale(
    (0.5, 1.0, 2.0),
    lambda model, std: replace(model, embedding_std=std),
    lambda model: model["embedding_std"],
    (0.5, 2.0),
)
"""The token embeddings, beside a sinusoid with entries of about 0.7: from smaller to three times as large."""


def scale_of(model: TransformerConfig) -> Scale | None:
    """What is to be scaled in a model: its learned table, or the content to which it adds a sinusoid. None
    where there is neither: a stream of its own for position has its own norms, and a score adds nothing."""
    if any(isinstance(one, Learned) for one in model.encodings):
        return TABLES
    added = any(isinstance(one, Sinusoidal) for one in model.encodings)
    return CONTENT if added and len(model.streams.names) == 1 else None


class Scales:
    """The scale of positions, or of the content to which they are added, chosen by sweeps at this size: of
    the method itself or of its nearest base that scales the same; the first such sweep counts."""

    def __init__(self, *sweeps: Any) -> None:
        self.sweeps = sweeps

    def of(self, method: str) -> tuple[Any, str] | None:
        """The sweep and its method whose scale a method takes; None of one that has nothing to scale."""
        scale = scale_of(model_config(method))
        pairs = ((sweep, base.name) for base in series(method) for sweep in self.sweeps)
        tried = ((sweep, base) for sweep, base in pairs if base in sweep.methods)
        return next(((sweep, base) for sweep, base in tried if scale and sweep.scale(base) is scale), None)

    def settled(self, profile: str, method: str, config: Any) -> Any:
        """The config with its tables drawn so."""
        if (nearest := self.of(method)) is None:
            return config
        sweep, base = nearest
        return sweep.settled(profile, base, config)

    def require(self, profile: str, method: str) -> None:
        """Refuse, as a sweep does, where the scale is not chosen yet."""
        if (nearest := self.of(method)) is not None:
            sweep, base = nearest
            sweep.require(profile, base)

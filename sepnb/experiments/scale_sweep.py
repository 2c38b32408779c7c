"""Sweeps over a learning rate and a scale: how large positions are beside content when training begins.

Where a position vector is added to a token's, the one is noise to the other, and a model may learn with
content twice as large what it never learns otherwise. A baseline drawn at somebody else's scale is no
baseline. So such a method is tried at several scales, each at every rate, and takes the best pair.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

from ..encodings import Learned, Sinusoidal
from ..models import TransformerConfig
from .sweep import Sweep


class Scale(NamedTuple):
    """What is drawn larger or smaller.

    Fields: standard deviations to try; the model that is drawn with one; that of a record's model.
    """

    stds: tuple[float, ...]
    drawn: Callable[[TransformerConfig, float], TransformerConfig]
    of: Callable[[Mapping[str, Any]], float]


def _table_drawn(model: TransformerConfig, std: float) -> TransformerConfig:
    encodings = tuple(replace(one, std=std) if isinstance(one, Learned) else one for one in model.encodings)
    return replace(model, encoding=encodings)


def _table_of(model: Mapping[str, Any]) -> float:
    (table,) = (one for one in model["encoding"] if one["name"] == Learned.name)
    return table["std"]


TABLES = Scale((0.02, 0.1, 0.5), _table_drawn, _table_of)
"""The rows of a learned table: what `Learned` has where nothing is said, what token embeddings have, and
about half way, in logarithms."""

CONTENT = Scale(
    (0.5, 1.0, 2.0),
    lambda model, std: replace(model, embedding_std=std),
    lambda model: model["embedding_std"],
)
"""The token embeddings, beside a sinusoid with entries of about 0.7: from smaller to three times as large."""


def scale_of(model: TransformerConfig) -> Scale | None:
    """What is to be scaled in a model: its learned table, or the content to which it adds a sinusoid. None
    where there is neither: a stream of its own for position has its own norms, and a score adds nothing."""
    if any(isinstance(one, Learned) for one in model.encodings):
        return TABLES
    added = any(isinstance(one, Sinusoidal) for one in model.encodings)
    return CONTENT if added and len(model.streams.names) == 1 else None


@dataclass(eq=False, kw_only=True)
class ScaleSweep(Sweep):
    """Which learning rate and which scale suit each method? The test data are not read.

    Scores that count as alike, see `Sweep`, stand in the order of scales, and at each scale of rates.

    Args:
        further: for some methods single pairs of a rate and a scale, past an end of the scales at which their
            best stood at the laptop profile. They count once they are published, as rates of `beyond` do.
    """

    further: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)

    @cache  # noqa: B019 - sweeps live as long as the program
    def scale(self, method: str) -> Scale | None:
        """What is tried of a method beside its rate."""
        return scale_of(self.config_of(self.name, "laptop", method, 0, self.rates[0]).model)

    def trials(self, profile: str, method: str) -> list[tuple]:
        """At every scale every rate; smoke tries one, it chooses nothing."""
        scale, trials = self.scale(method), super().trials(profile, method)
        if scale is None:
            return trials
        trials = trials[: 1 if profile == "smoke" else None]
        pairs = self.further.get(method, ()) if profile == "laptop" else ()
        every = [(*trial, std) for std in scale.stds for trial in trials]
        return sorted([*every, *((method, *pair) for pair in pairs)], key=lambda trial: trial[:0:-1])

    def trial_of(self, config: Mapping[str, Any]) -> tuple:
        scale = self.scale(config["method"])
        return super().trial_of(config) + (() if scale is None else (scale.of(config["model"]),))

    def config(self, profile: str, cell: tuple, seed: int) -> Any:
        method, rate, *std = cell
        return self._drawn(method, super().config(profile, (method, rate), seed), std)

    def std(self, profile: str, method: str) -> float | None:
        """The scale of a method in the runs of a profile, of the records that `rate` reads; None without."""
        own = {} if profile == "smoke" else self.chosen(profile)
        trial = own.get(method) or self.chosen("laptop").get(method)
        return trial[2] if trial and len(trial) > 2 else None

    def settled(self, profile: str, method: str, config: Any) -> Any:
        std = self.std(profile, method)
        return self._drawn(method, config, [] if std is None else [std])

    def _drawn(self, method: str, config: Any, std: list[float]) -> Any:
        scale = self.scale(method)
        return replace(config, model=scale.drawn(config.model, *std)) if scale and std else config

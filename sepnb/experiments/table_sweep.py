"""At which scale are the rows of a learned table drawn? Chosen with the learning rate, for all methods alike.

Token embeddings are drawn with standard deviation 0.5, and `Learned` draws a row with 0.02, as large models
do with both: beside such tokens a table is all but silent when training begins, and no sinusoid is. So every
method with a table is tried at three scales and at the rates of `RATES`, over the whole schedule, and what
is published has the pair with the least validation loss.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..encodings import Learned
from .methods import run_of
from .sweep import Sweep

STDS = (0.02, 0.1, 0.5)
"""What `Learned` has where nothing is said, what token embeddings have, and about half way, in logarithms."""


def drawn(config: Any, std: float) -> Any:
    """The config of a run whose learned tables are drawn with this standard deviation."""
    encodings = tuple(
        replace(one, std=std) if isinstance(one, Learned) else one for one in config.model.encodings
    )
    return replace(config, model=replace(config.model, encoding=encodings))


@dataclass(eq=False, kw_only=True)
class TableSweep(Sweep):
    """Which learning rate and which scale of its table suit each method? The test data are not read.

    Args:
        stds: standard deviations of the rows, at each of which a method is tried at every rate.
    """

    stds: tuple[float, ...] = STDS

    def trials(self, profile: str, method: str) -> list[tuple]:
        """Smoke tries one rate: it chooses nothing."""
        rates = self.tried(profile, method)[: 1 if profile == "smoke" else None]
        return [(method, rate, std) for std in self.stds for rate in rates]

    def trial_of(self, config: Mapping[str, Any]) -> tuple:
        (table,) = (one for one in config["model"]["encoding"] if one["name"] == Learned.name)
        return (*super().trial_of(config), table["std"])

    def config(self, profile: str, cell: tuple, seed: int) -> Any:
        *trial, std = cell
        return drawn(super().config(profile, tuple(trial), seed), std)

    def std(self, profile: str, method: str) -> float:
        """The scale of the tables of a method in the runs of a profile, from the records that `rate` reads;
        without any, that of `Learned`."""
        own = {} if profile == "smoke" else self.chosen(profile)
        trial = own.get(method) or self.chosen("laptop").get(method)
        return trial[2] if trial else Learned.std

    def settled(self, profile: str, method: str, config: Any) -> Any:
        return drawn(config, self.std(profile, method))


SWEEP = TableSweep(
    "table_sweep",
    title="Scales of learned tables",
    order=0,
    methods=(
        *("learned", "separated-learned", "separated-learned-wide", "strict-learned"),
        *("learned-per-layer", "learned-query-key"),
    ),
    smoke=("separated-learned",),
    config_of=run_of,
    costs={"smoke": 2.0, "laptop": 110.0, "gpu": 60.0},
)

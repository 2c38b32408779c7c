"""How a screening of learning rates becomes the rates that a published grid is trained with.

A screening trains every method at a few rates with a seed that no published run has, and reads the
validation data only. In those of images and of SeqPE's streams, where the best of these stands at an end, one
more beyond it is tried for that method, until it does not: so all are compared at a rate with a worse one on
either side. The best rate of each method is written down beside the grid that uses it, and a test holds what
is written against the screening's records. So a grid can be resumed where they are not at hand, and a
record's key says which rate it had.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

Rates = Mapping[str, Mapping[str, float]]
"""By profile, the screened rate of each method."""


def best_rates(table: pd.DataFrame, score: str = "val_bits_per_byte") -> dict[str, float]:
    """For each method the rate with the least validation loss, from the table of a complete screening.

    A run that diverged has no loss and is never the best.

    Args:
        table: `Experiment.table` of the screening; one row for each run.
        score: the column of the loss.

    Raises:
        ValueError: a run is missing or stale, or a method diverged at every rate.
    """
    if unusable := int((table["status"] != "ok").sum()):
        screening = table.attrs.get("experiment", "the screening")
        raise ValueError(
            f"{unusable} of {len(table)} runs of the screening are missing or stale; run {screening}"
        )
    scored = table.dropna(subset=[score])
    if lost := [name for name in dict.fromkeys(table["method"]) if name not in set(scored["method"])]:
        raise ValueError(f"{', '.join(lost)} diverged at every rate; add a lower one to the screening")
    best = scored.loc[scored.groupby("method", sort=False)[score].idxmin()]
    return dict(zip(best["method"], best["learning_rate"].astype(float), strict=True))


def rates_of(method: str, rates: Sequence[float], beyond: Mapping[str, Sequence[float]]) -> list[float]:
    """The rates at which a method is tried: those of all, and those `beyond` an end where its best stood."""
    return sorted({*rates, *beyond.get(method, ())})


def at_an_end(table: pd.DataFrame, score: str = "val_bits_per_byte") -> dict[str, float]:
    """The methods whose best rate is the lowest or the highest of those at which they were tried, and that
    rate: a screening that is published has none.

    Args, Raises: of `best_rates`.
    """
    tried = table.groupby("method")["learning_rate"].agg(["min", "max"])
    best = best_rates(table, score)
    return {name: rate for name, rate in best.items() if rate in tuple(tried.loc[name])}


def screened_rate(rates: Rates, profile: str, method: str, unscreened: float) -> float:
    """The rate of a method in the runs of a profile.

    A profile that was not screened takes the laptop's rates; a method that was not has the rate `unscreened`.
    """
    return _of(rates, profile).get(method, unscreened)


def require_rate(rates: Rates, profile: str, method: str, screening: str) -> None:
    """Refuse to train for a record what was not screened yet: its rate is a part of the record's key, so that
    all would have to be trained again. Of smoke runs nothing is published.

    Raises:
        ValueError: no rate of the method is written down; the message says how one comes about.
    """
    if profile != "smoke" and method not in _of(rates, profile):
        raise ValueError(
            f"no learning rate of {method!r} is written down for {profile!r}; run "
            f"`sepnb run {screening} --profile {profile}` and give LEARNING_RATES what best_rates finds in it"
        )


def _of(rates: Rates, profile: str) -> Mapping[str, float]:
    return rates.get(profile) or rates.get("laptop") or {}

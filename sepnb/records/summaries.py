"""From seeds to a mean with an interval, alone and in pairs: what a table says of several runs."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit


class Summary(NamedTuple):
    """A mean over seeds and half the width of its interval, NaN with a single seed."""

    mean: float
    half: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if np.isnan(self.half) else f"{self.mean:.3f} ± {self.half:.3f}"


def summarise(values: ArrayLike, confidence: float = 0.95) -> Summary:
    """The mean of one value a seed, with Student's t interval: it describes seeds, not bytes or documents.

    Raises:
        ValueError: no values, or a confidence outside (0, 1).
    """
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        raise ValueError("there is nothing to summarise; are the runs there?")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it lies between 0 and 1, such as 0.95")
    if array.size == 1:
        return Summary(float(array[0]), float("nan"), 1)
    spread = array.std(ddof=1) / np.sqrt(array.size)
    return Summary(
        float(array.mean()), float(spread * stdtrit(array.size - 1, (1 + confidence) / 2)), array.size
    )


def told(values: ArrayLike, form: str = "+.3f") -> str:
    """The mean of one value a seed and half its interval, for a sentence or a table; "not run" of none.

    `form` is the format of the mean; the interval has as many decimals. NaN counts as a value.
    """
    if not np.size(values):
        return "not run"
    found = summarise(values)
    half = "" if np.isnan(found.half) else f" ± {found.half:{form.removeprefix('+')}}"
    return f"{found.mean:{form}}{half}".replace("-", "\N{MINUS SIGN}")


def by_seed(table: pd.DataFrame, method: str, column: str) -> pd.Series:
    """`column` of each run of a method that has it, indexed by seed; empty where nothing was run."""
    present = table[(table["status"] != "not run") & (table["method"] == method)].set_index("seed")
    return present[column].astype(float).dropna() if column in present else pd.Series(dtype=float)


def by_method(table: pd.DataFrame, column: str) -> dict[str, Summary]:
    """The summary of each method, in the order of the table; methods without a run are left out."""
    present = table[table["status"] != "not run"]
    return {
        method: summarise(present.loc[present["method"] == method, column])
        for method in dict.fromkeys(present["method"])
    }


def paired(table: pd.DataFrame, a: str, b: str, column: str) -> pd.Series:
    """`column` of method `a` minus that of `b`, one value a seed that both have, indexed by seed.

    Empty where there is none; a table of which no run is there need not have the column.
    """
    present = table[table["status"] != "not run"]
    if present.empty:
        return pd.Series(dtype=float)
    present = present[["method", "seed", column]]
    scores = {method: present[present["method"] == method].set_index("seed")[column] for method in (a, b)}
    return (scores[a] - scores[b]).dropna()

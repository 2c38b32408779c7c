"""The runs of an experiment, asked by method and metric: what prose, plots and claims share."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .numbers import NOT_RUN


class Summary(NamedTuple):
    """A mean over seeds and half the width of its interval, NaN with a single seed."""

    mean: float
    half: float
    seeds: int

    def __str__(self) -> str:
        return self.text(".3f")

    def text(self, form: str = "+.3f") -> str:
        """Mean and half the interval, such as "+0.120 ± 0.030". `form` is the format of the mean; the
        interval has as many decimals."""
        half = "" if np.isnan(self.half) else f" ± {self.half:{form.removeprefix('+')}}"
        return f"{self.mean:{form}}{half}".replace("-", "\N{MINUS SIGN}")


def summarise(values: ArrayLike, confidence: float = 0.95) -> Summary:
    """The mean of one value a seed, with Student's t interval: it describes seeds, not bytes or documents.
    ValueError for no values, or a confidence outside (0, 1)."""
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        raise ValueError("there is nothing to summarise; are the runs there?")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; it lies between 0 and 1, such as 0.95")
    if array.size == 1:
        return Summary(float(array[0]), float("nan"), 1)
    spread = array.std(ddof=1) / np.sqrt(array.size)
    half = spread * stdtrit(array.size - 1, (1 + confidence) / 2)
    return Summary(float(array.mean()), float(half), array.size)


def text_of(values: ArrayLike, form: str = "+.3f") -> str:
    """The mean of one value a seed and half its interval, as `Summary.text`; "not run" of none. NaN counts as
    a value."""
    return summarise(values).text(form) if np.size(values) else NOT_RUN


@dataclass(frozen=True)
class RunTable:
    """A table of runs, as `Experiment.table` loads it: `method`, `seed`, `status` and a column a metric.

    A quantity of a method is one value a seed, as a series indexed by seed. Runs that were not made are left
    out, stale runs are included. `metric` is the default column.
    """

    frame: pd.DataFrame
    metric: str = "bits_per_byte"

    @property
    def made(self) -> pd.DataFrame:
        """The rows of runs that were made."""
        return self.frame[self.frame["status"] != NOT_RUN]

    @cached_property
    def _rows(self) -> dict[str, list[tuple[Any, int]]]:
        """The seeds of each method in their order, with the rows of their runs. Lists, because pandas would
        copy the table for each of hundreds of questions."""
        rows: dict[str, list[tuple[Any, int]]] = {}
        columns = (self.frame[name] for name in ("method", "seed", "status"))
        for row, (method, seed, status) in enumerate(zip(*columns, strict=True)):
            if status != NOT_RUN:
                rows.setdefault(method, []).append((seed, row))
        return {method: sorted(own) for method, own in rows.items()}

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        return {}

    def _column(self, name: str) -> np.ndarray:
        if name not in self._columns:
            there = name in self.frame
            values = self.frame[name].to_numpy(dtype=float) if there else np.full(len(self.frame), np.nan)
            self._columns[name] = values
        return self._columns[name]

    def seeds(self, quantity: str) -> list[Any]:
        """The seeds of the runs that were made, in the order of `each`."""
        return [seed for seed, _ in self._rows.get(quantity.split(":")[0].split("+")[0], ())]

    def each(self, quantity: str) -> np.ndarray:
        """One value a run, ordered by seed: float64 [seeds], NaN where a run lacks the column. The quantity
        is `method` or `method:column`; methods or columns joined by `+` are averaged.

        Raises:
            ValueError: two runs of one method and seed, which cannot be paired.
        """
        of, _, columns = quantity.partition(":")
        parts = []
        for method in of.split("+"):
            own = self._rows.get(method, [])
            for (seed, _), (other, _) in pairwise(own):
                if seed == other:
                    raise ValueError(f"{method} has two runs of seed {seed}, so that they cannot be paired")
            at = [row for _, row in own]
            parts += [self._column(name)[at] for name in (columns or self.metric).split("+")]
        return sum(parts) / len(parts)

    def values(self, method: str, metric: str) -> pd.Series:
        """The metric of each run of a method that has it; empty where nothing was run."""
        own = self._rows.get(method, [])
        values = self._column(metric)[[row for _, row in own]]
        return pd.Series(values, [seed for seed, _ in own], dtype=float, name=metric).dropna()

    def lacks(self, quantity: str) -> bool:
        """Whether a `method:metric` is one that other methods have, and this method was run without."""
        method, _, metric = quantity.partition(":")
        return metric in self.frame and bool(self.seeds(method)) and self.values(method, metric).empty

    def guess(self, times: int) -> pd.Series:
        """In a table of a task: the chance level of the best guess in texts of `times` L, one value a run."""
        names = [name for name in self.frame if name.startswith("chance/") and name.endswith(f"/{times}x")]
        return self.made[names].max(axis=1).dropna() if names else pd.Series(dtype=float)

    def mean(self, method: str, metric: str) -> float:
        """The mean over seeds; NaN where nothing was run."""
        return float(self.values(method, metric).mean())

    def intervals(self, metric: str) -> dict[str, Summary]:
        """The mean over seeds with its interval of every method that was run, in the order of the table;
        ValueError where no run of one of them has this metric."""
        ran = dict.fromkeys(self.made["method"])
        return {method: summarise(self.values(method, metric)) for method in ran}

    def difference(self, a: str, b: str, metric: str) -> pd.Series:
        """The metric of method `a` minus that of `b`, for every seed that both have; KeyError where runs were
        made, and none has a metric of this name."""
        if metric not in self.frame and len(self.made):
            raise KeyError(f"no run has {metric!r}; there are {', '.join(map(str, self.frame.columns))}")
        return self.minus(f"{a}:{metric}", f"{b}:{metric}")

    def minus(self, a: str, b: str) -> pd.Series:
        """One `method:metric` minus another, for every seed that both have; empty where either is missing."""
        return (self.values(*a.split(":")) - self.values(*b.split(":"))).dropna()

    def times(self, a: str, b: str, metric: str) -> str:
        """The metric of method `a` as a multiple of that of `b`: the median over seeds, as text."""
        ratios = (self.values(a, metric) / self.values(b, metric)).dropna()
        return f"{ratios.median():.2f}" if len(ratios) else NOT_RUN

    def text(self, method: str, metric: str, form: str = ".3f") -> str:
        """Mean and interval for a sentence or a table, "not run" where nothing was run."""
        return text_of(self.values(method, metric), form)

    def grid(
        self, rows: Mapping[str, str], columns: Mapping[str, str], form: str = ".3f", head: str = "method"
    ) -> pd.DataFrame:
        """Means with intervals as a table: a row for each label and its name, a column for each title and its
        quantity.

        Args:
            columns: a quantity is `method:metric`, or `method:metric - method:metric`, paired by seed; `{}`
                in it is the name of the row. After another `:` it may have a format as `{num}` takes it, such
                as `:,.0f`, or `:.2f±` with the interval. A method that `lacks` one has a dash.
            form: the format of every other mean, with its interval.
            head: the title of the labels.
        """

        def cell(quantity: str) -> str:
            *asked, last = quantity.split(" - ")
            method, metric, *own = last.split(":", 2)
            asked.append(f"{method}:{metric}")
            if any(map(self.lacks, asked)):
                return "\N{EN DASH}"
            values = self.minus(*asked) if len(asked) > 1 else self.values(method, metric)
            if own and not own[0].endswith("±"):
                values = values[:0] if values.empty else [values.mean()]
            return text_of(values, own[0].removesuffix("±") if own else form)

        return pd.DataFrame(
            {head: label} | {title: cell(of.replace("{}", name)) for title, of in columns.items()}
            for label, name in rows.items()
        )

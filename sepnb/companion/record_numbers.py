"""A number of published records, for prose: the mean of a method over seeds, or of a difference of two.

    experiment/method/metric:format               in_window/rope/bits_per_byte:.3f
    experiment/a minus b/metric:format            in_window/rope minus none/bits_per_byte:+.3f
    experiment/a/metric minus other:format        recipes/rope/native-at-1m minus native/1x:+.3f
    experiment/a minus b/metric minus other:format, a metric of a minus another of b

A metric is a column of the experiment's table; it may hold slashes, as a method may. A `±` at the end of the
format adds half the 95 % interval over seeds. Where no run is there, the text is "not run".
"""

import re
from functools import lru_cache
from pathlib import Path

import pandas as pd

from sepnb.companion.runs import store_for
from sepnb.records import numbers
from sepnb.records.run_table import RunTable, text_of

NAME = re.compile(r"(?P<experiment>[a-z]\w*)/(?P<asked>[^/:]+/[^:]+)(?::(?P<format>.+))?")
"""Names of chapters begin with a digit, those of experiments with a letter."""


def text(name: str, profile: str) -> str:
    """The formatted number that `name` means, at the profile of the book.

    Raises:
        ValueError: an experiment, a method or a metric that is not there, with what is; a format that a
            number does not take.
    """
    parts = NAME.fullmatch(name.strip())
    if parts is None:
        raise ValueError(
            f"{name!r} is not a number of records: write experiment/method/metric:format, or "
            f"experiment/a minus b/metric:format"
        )
    form = parts["format"] or "g"
    try:
        format(0.5, form.removesuffix("±"))
    except ValueError as problem:
        raise ValueError(f"{name!r}: a number does not take the format {form!r} ({problem})") from None
    table = _table(parts["experiment"], profile)
    known = sorted(set(table["method"]) | _declared(parts["experiment"]))
    longer_first = map(re.escape, reversed(known))  # of two that begin alike
    method = "|".join(longer_first)
    asked = re.fullmatch(rf"(?P<a>{method})(?: minus (?P<b>{method}))?/(?P<metric>.+)", parts["asked"])
    if asked is None:
        said = parts["asked"].partition("/")[0].split(" minus ")
        unknown = next((name for name in said if name not in known), parts["asked"])
        raise ValueError(f"{parts['experiment']} has no method {unknown!r}; it has {', '.join(known)}")
    metric, _, other = asked["metric"].partition(" minus ")
    for column in (metric, other or metric):
        made = profile != "smoke" and not (table["status"] == "not run").all()
        if column not in table and made:  # what is read at smoke is smaller: some columns are not run there
            columns = ", ".join(map(str, table.columns))
            raise ValueError(f"{parts['experiment']} has no column {column!r}; it has {columns}")
    values = RunTable(table).values(asked["a"], metric)
    if asked["b"] or other:
        values = (values - RunTable(table).values(asked["b"] or asked["a"], other or metric)).dropna()
    if not len(values):
        return numbers.NOT_RUN
    if form.endswith("±"):
        return text_of(values, form.removesuffix("±"))
    return format(float(values.mean()), form)


def files(name: str, profile: str) -> list[Path]:
    """The records that a number of this name is made from."""
    parts = NAME.fullmatch(name.strip())
    return _files(parts["experiment"], profile) if parts else []


def _files(experiment: str, profile: str) -> list[Path]:
    return sorted((store_for(profile).root / profile / experiment).glob("*.json"))


def _table(experiment: str, profile: str) -> pd.DataFrame:
    stamps = tuple(path.stat().st_mtime_ns for path in _files(experiment, profile))
    return _loaded(experiment, profile, store_for(profile).root, stamps)


@lru_cache(maxsize=32)
def _declared(experiment: str) -> set[str]:
    """The methods of the published grid: a smaller profile has some of them, and the others were not run."""
    from sepnb import experiments

    return {config.method for config in experiments.get(experiment).grid("laptop")}


@lru_cache(maxsize=32)
def _loaded(experiment: str, profile: str, root: Path, stamps: tuple[int, ...]) -> pd.DataFrame:
    from sepnb import experiments  # brings torch, which a page without such a number does not need
    from sepnb.records.store import Store

    return experiments.get(experiment).table(profile, Store(root))

"""The tables of records that the pages of a build share: each is loaded once.

To lay out a grid and to read its records takes seconds for all experiments together, and five pages show them
all. The processes that read pages are forks of the one that judged the claims, and have its tables.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from sepnb.companion.run.runs import store_for
from sepnb.records.run_table import RunTable
from sepnb.records.store import Store


def frame(experiment: str, profile: str) -> pd.DataFrame:
    """What `Experiment.table` loads. It is shared: whoever changes it takes a copy."""
    return runs(experiment, profile).frame


def runs(experiment: str, profile: str) -> RunTable:
    """The runs of an experiment, from the store of a profile."""
    return _runs(experiment, profile, store_for(profile).root)


@cache
def _runs(experiment: str, profile: str, root: Path) -> RunTable:
    from sepnb import experiments  # brings torch, which a page without records does not need

    return RunTable(experiments.get(experiment).table(profile, Store(root)))


def forget() -> None:
    """Before a build: records may have changed since the last one of this process."""
    _runs.cache_clear()

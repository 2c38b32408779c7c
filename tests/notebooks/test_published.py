"""Published records are still what this code computes: a sample is replayed."""

import pytest

from sepnb import experiments, paths
from sepnb.companion.book import not_run
from sepnb.companion.check import published
from sepnb.experiments.sweep import Sweep

AWAITED: tuple[str, ...] = ("adapted_mqar", "adapted_needle")
"""Experiments whose laptop grids nobody has run yet. Their chapters and claims say *not run*."""

WHERE = [
    (profile, name)
    for profile in published.PROFILES
    for name in experiments.names()
    if not isinstance(experiments.get(name), Sweep)  # its runs are those of an experiment at other rates
    if (profile == "laptop" and name not in AWAITED) or (paths.results() / profile / name).exists()
]


@pytest.mark.parametrize(("profile", "name"), WHERE)
def test_a_sample_of_published_records_replays(profile: str, name: str, data_set) -> None:
    experiment = experiments.get(name)
    for needed in experiment.data_sets(profile):
        data_set(needed)
    replays = published.check([experiment], profiles=[profile], sample=1, mark=False)
    assert replays, f"no published records of {name}: `sepnb run {name} --profile {profile}`"
    told = [f"{one.key}: {one.status}: {one.detail}" for one in replays if one.status != "equal"]
    assert told == []


def test_an_experiment_is_awaited_only_as_long_as_it_has_no_records() -> None:
    assert set(AWAITED) <= set(experiments.names())
    come = [name for name in AWAITED if (paths.results() / "laptop" / name).exists()]
    assert not come, f"{', '.join(come)}: there are records, take it off the list"


def test_whatever_was_not_run_has_a_reason_and_nothing_else_has_one() -> None:
    assert set(not_run.left()) == set(not_run.REASONS)

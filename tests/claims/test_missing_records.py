"""A record that is missing takes verdicts away and turns none."""

import re
from collections import defaultdict
from collections.abc import Mapping

import pandas as pd
import pytest

from sepnb import claims, experiments
from sepnb.claims.ledger import load
from sepnb.records.store import Record, Store

TRIED = 3
"""Records that are taken away of every experiment, one after the other."""


class Without(Store):
    """The published records but for one; each folder is read once for all of these stores."""

    found: Mapping[tuple[str, str], dict[str, Record]] = {}

    def __init__(self, missing: str = ""):
        super().__init__()
        self.missing = missing

    def load(self, profile: str, experiment: str) -> dict[str, Record]:
        if (profile, experiment) not in self.found:
            self.found[profile, experiment] = super().load(profile, experiment)
        return {key: one for key, one in self.found[profile, experiment].items() if key != self.missing}


@pytest.fixture(scope="module")
def published() -> dict[str, pd.DataFrame]:
    """What every claim is judged by, but for the numbers of chapters."""
    Without.found = {}
    needs = {need for claim in claims.CLAIMS for need in claim.needs if need.startswith("experiment/")}
    return {need: load(need, None, Without()) for need in sorted(needs)}


def as_data(verdict: claims.Verdict) -> tuple:
    return verdict.word, verdict.why, tuple(map(str, verdict.answers)), verdict.dropped


def test_without_a_record_a_verdict_is_the_same_or_not_run_with_its_count(published):
    asking = defaultdict(list)
    for claim in claims.CLAIMS:
        for need in claim.needs:
            asking[need].append(claim)
    tables = {need: source.content for need, source in published.items()}
    lost = 0
    for need, source in published.items():
        profile, name = source.profile, need.partition("/")[2]
        grid = {config.key for config in experiments.get(name).grid(profile)}
        keys = [key for key in Without.found.get((profile, name), ()) if key in grid]
        before = {claim.id: as_data(claim.judge(tables)) for claim in asking[need]}
        for key in keys[:: max(1, len(keys) // TRIED)]:
            less = tables | {need: experiments.get(name).table(profile, Without(key))}
            for claim in asking[need]:
                found = claim.judge(less)
                if as_data(found) == before[claim.id]:
                    continue
                lost += 1
                assert found.word == "not run", f"{claim.id} without {key}: {found.detail}"
                assert re.search(r"\b\d+ of \d+ runs are (missing|stale)", found.why), found.why
    assert lost > 100, "most of the records that are taken away are asked for"


def test_a_cell_that_was_not_timed_is_missing_and_none_of_another_length(published):
    """Without a length for the missing one all lengths became floats, and nobody asks for "rope at 512.0"."""
    need = "experiment/encoding_speed"
    keys = Without.found["laptop", "encoding_speed"]
    claim = claims.get("compiled-rope-is-nearly-free")
    table = {
        of: experiments.get("encoding_speed").table("laptop", Without(next(k for k in keys if of in k)))
        for of in ("fire", "rope-n512")
    }
    before = claim.judge({need: published[need].content})
    assert as_data(claim.judge({need: table["fire"]})) == as_data(before)
    missing = claim.judge({need: table["rope-n512"]})
    assert (missing.word, missing.why) == ("not run", "1 of 2 runs are missing")

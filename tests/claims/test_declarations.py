"""The declarations: each asks what its words say, of methods that run with the seeds that verdicts need."""

import math
import re
from collections import defaultdict
from functools import cache

import pytest

from sepnb import experiments, extrapolators
from sepnb.claims import CLAIMS, Claim, context_extension, extrapolation, get, images
from sepnb.claims.evidence import by_seeds, methods_of
from sepnb.claims.rule import lines
from sepnb.claims.uses import by_uses
from sepnb.experiments import task_grid
from sepnb.experiments.budget import budget_of

OF_EXPERIMENTS = [claim for claim in CLAIMS if claim.asks and claim.experiment.startswith("experiment/")]


def test_ids_and_titles_are_unique_and_needs_exist():
    assert len({claim.id for claim in CLAIMS}) == len({claim.title for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", claim.id)
        assert claim.title[0].isupper() and not claim.title.endswith(".")
        for need in claim.needs:
            kind, _, name = need.partition("/")
            assert kind == "chapter" or experiments.get(name)


IN_WORDS = {"position-is-readable-without-an-encoding": {0.5}}
"""A bound that the rule calls half."""


def test_every_bound_stands_in_the_words_of_a_rule_that_was_written_by_hand():
    for claim in OF_EXPERIMENTS:
        if not claim.rule:
            continue
        asks = [*claim.asks, *(ask for one in claim.unless for ask in one.asks)]
        bounds = {abs(bound) for ask in asks for bound in (ask.low, ask.high) if 0 < abs(bound) < math.inf}
        for bound in bounds - IN_WORDS.get(claim.id, set()):
            told = rf"{bound:g}|{100 * bound:g} %"
            assert re.search(rf"(?<![\d.])({told})(?![\d])", claim.rule), f"{claim.id}: {bound}"


@cache
def grid(name: str) -> dict[str, set[int]]:
    """The seeds of every method, as the claims call it."""
    seeds = defaultdict(set)
    for config in experiments.get(name).grid("laptop"):
        at = {
            "budget": lambda run: f" at {budget_of(run)}x",
            "encoding_speed": lambda run: f" at {run.length}",
        }
        method = config.method + (at[name](config) if name in at else "")
        seeds[method].add(getattr(config, "seed", 0))
    return seeds


def test_what_is_compared_is_run_with_the_seeds_that_a_verdict_needs():
    grids = {need: grid(need.partition("/")[2]) for claim in OF_EXPERIMENTS for need in claim.needs}
    for claim in OF_EXPERIMENTS:
        lent = {method: need for need, methods in claim.beside.items() for method in methods}
        compared = set(methods_of(claim.asks))
        for method in claim.methods:
            seeds = grids[lent.get(method, claim.experiment)].get(method, set())
            assert seeds, f"{claim.id}: {method} is not run"
            if method in compared and claim.how is by_seeds:
                assert len(seeds) >= 6, f"{claim.id}: {method}"


MEANT = {
    "the-five-extrapolate": [
        "`separated-learned` | | gap to its own sliding window (sinusoidal, fourier, cyclic, learned and "
        "alibi, at 2x, 4x and 8x) | below 0.03"
    ],
    "the-contrast-aligns-distances": [
        "`contrastive` | `distillation` | distance (misaligned) | above 0.1",
        "`contrastive` | | distance (misaligned, minus drawn) | above 0.1",
    ],
    "frozen-extension-beats-the-window": [
        "`yarn` and `ntk-aware` | `rope` | frozen minus frozen window (at 4x) | below 0"
    ],
}


@pytest.mark.parametrize("claim_id", MEANT)
def test_a_table_says_what_the_declaration_asks(claim_id):
    claim = get(claim_id)
    told = [" | ".join(line.cells).replace("|  |", "| |") for line in lines(claim.asks, claim.metric)]
    assert [line.replace("\N{MINUS SIGN}", "-") for line in told] == MEANT[claim_id]


WITHOUT_A_FLOOR = {"encoding_speed", "reading_cost", "seqpe_cost", "seqpe_geometry", "seqpe_distances"}
OTHER_BARS = {
    "precise-position-helps-nearby": (4.0, "bits_per_byte"),
    "trained-directions-all-waves-lose-less-within": (3.35, "oracle/8x"),  # reads no short text
}


def floors_wanted(claim: Claim) -> set[tuple[float, str]]:
    """All but geometry and what is timed has a floor; images must be answered half rightly, tasks be learned
    where far answers are compared, and fits find rows again."""
    name = claim.experiment.partition("/")[2]
    if name in WITHOUT_A_FLOOR:
        return set()
    if name == "images":
        return {(0.5, "accuracy"), (0.86, "accuracy")}
    if name.startswith(("every_reading", "each_pair")) or name.endswith(tuple(task_grid.TASKS)):
        inside = all(ask.a.endswith(("/1x", "steps")) for ask in claim.asks) and "each_pair" not in name
        return set() if inside or claim.how is by_uses else {(0.95, "accuracy/native/1x")}
    fitted = any("fitted" in ask.a for ask in claim.asks)
    return {OTHER_BARS.get(claim.id, (3.35, "bits_per_byte")), *([(0.03, "recovered")] if fitted else [])}


def test_what_did_not_learn_is_not_compared():
    for claim in OF_EXPERIMENTS:
        wanted = floors_wanted(claim)
        assert {(floor.bound, floor.column) for floor in claim.floors} == wanted, claim.id
        higher = any(column.startswith("accuracy") for _, column in wanted)
        assert not wanted or claim.higher_is_better == higher, claim.id
        assert all(floor.seeds for floor in claim.floors if floor.column == "accuracy/native/1x"), claim.id


def test_the_floor_lies_a_tenth_of_a_bit_below_byte_pairs(data_set):
    from sepnb.claims.language_model import BAR
    from sepnb.data import text

    data_set("eltec-eng")
    novels = text.load("eltec-eng")
    assert text.entropies(novels.train, novels.test).bigram - 0.1 > BAR.bound == 3.35


def test_the_floors_of_images_are_above_what_the_place_of_one_thing_tells():
    from sepnb.experiments.images import SIZES

    direction = SIZES["laptop"].direction
    for view, side in (("upscaled-14", 7), ("spread-14", 14)):
        assert images.guessed("direction", view) == round(direction.by_one_place(side), 3)
    assert images.guessed("direction", "canvas-14") == 0.25 and images.guessed("class", "spread-14") == 0.1
    assert images.PLACES.bound == round((1 + direction.by_one_place(7)) / 2, 2)


def test_names_are_those_of_the_experiments():
    from sepnb.experiments import context_extension as extended

    assert extrapolators.SOURCE_METHODS == extrapolation.FIVE
    assert extrapolators.CONTROLS == extrapolation.CONTROLS
    assert {*context_extension.EXTENSIONS, "rope"} == set(extended.METHODS)

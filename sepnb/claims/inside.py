"""Rules on the experiment `inside` (chapter 22): what the layers hold, and what a new index does to them.

Written before its records. The *content* is the sem stream of a separated model and the whole state of a
dense one. Its *drift* is how far the final state of a text moves when the text starts elsewhere, in units of
the norm of that state; past the trained length it is the mean over three starts. All bounds stand in the
rules.
"""

import math
from typing import NamedTuple

import pandas as pd

from sepnb.claims.evidence import (
    RULES_OF_EVIDENCE,
    Comparison,
    _below_the_bar,
    _not_complete,
    _p_value,
    _word,
    holm,
    judge,
)
from sepnb.claims.verdict import (
    NOT_REPRODUCED,
    NOT_TESTABLE,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Tables,
    Verdict,
)

OURS = "ours, written before the records"
TABLE = "experiment/inside"


def five() -> tuple[str, ...]:
    """The slides' equations (2) to (6), by the names of `sepnb.extrapolators`. A function and no constant, so
    that git sees a change of it as one of the rules."""
    return ("sinusoidal", "fourier", "cyclic", "learned", "alibi")


class Level(NamedTuple):
    """A quantity of one method and the bounds within which a claim wants its mean over seeds."""

    method: str
    quantity: str
    low: float = -math.inf
    high: float = math.inf


def hold(tables: Tables, levels: list[Level]) -> Verdict:
    """Judge levels as `evidence.judge` does differences: a two-sided t-test of each against its bounds, at 5
    % after Holm's correction over the family, with at least six seeds; the in-window mean of every method
    must be below 3.35 bits per byte."""
    table = tables.get(TABLE)
    obstacle = _unusable(table, [level.method for level in levels])
    if obstacle:
        return obstacle
    values = [
        table.loc[table.method == level.method, level.quantity].to_numpy(dtype=float) for level in levels
    ]
    numbers = {
        f"{level.method} {level.quantity}": float(value.mean())
        for level, value in zip(levels, values, strict=True)
    }
    listed = [f"{name} {mean:+.3g}" for name, mean in numbers.items()]
    if min(map(len, values)) < 6:
        few = f"{min(map(len, values))} seeds, a verdict needs at least 6"
        return Verdict(UNDECIDED, "; ".join([few, *listed]), numbers)
    bounds = [Comparison(level.method, level.quantity, level.low, level.high) for level in levels]
    p_values = [_p_value(value, bound) for value, bound in zip(values, bounds, strict=True)]
    decided = holm(p_values, 0.05)
    answers = [
        ("holds" if bound.low < value.mean() < bound.high else "fails") if sure else "open"
        for value, bound, sure in zip(values, bounds, decided, strict=True)
    ]
    answered = [f"{text} ({answer})" for text, answer in zip(listed, answers, strict=True)]
    return Verdict(_word(answers), "; ".join([f"{min(map(len, values))} seeds", *answered]), numbers)


def _unusable(table: pd.DataFrame | None, methods: list[str]) -> Verdict | None:
    """Runs are missing or stale, or a method has not learned."""
    methods = list(dict.fromkeys(methods))
    return _not_complete(table, methods) or _below_the_bar(table, methods, 3.35)


def _means(tables: Tables, method: str, *quantities: str) -> dict[str, float]:
    rows = tables[TABLE][tables[TABLE].method == method]
    return {f"{method} {name}": float(rows[name].mean()) for name in quantities}


def _blind(numbers: dict[str, float], why: str) -> Verdict:
    shown = "; ".join(f"{name} {value:+.3g}" for name, value in numbers.items())
    return Verdict(NOT_TESTABLE, f"{why}: {shown}", numbers)


def added(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `added drift/<rule>`: the drift under a rule past the trained length less that of a text
    that starts half-way inside it, where every index was trained."""
    return table.assign(
        **{f"added drift/{name}": table[f"drift/{name}"] - table["drift/trained"] for name in five()}
    )


def rule_semantic_integrity_is_preserved(tables: Tables) -> Verdict:
    """In separated learned under each of equations (2) to (6), corrected, the content of a text that starts
    past the trained length drifts by less than 0.1 more than that of a text that starts half-way inside
    it, where every index was trained; with some of the five, *partly*. Not testable unless different texts
    are more than 0.5 apart in the same unit."""
    table = tables.get(TABLE)
    obstacle = _unusable(table, ["separated-learned"])
    if obstacle:
        return obstacle
    control = _means(tables, "separated-learned", "another_text")
    if min(control.values()) <= 0.5:
        return _blind(control, "the content hardly differs between texts")
    levels = [Level("separated-learned", f"added drift/{name}", high=0.1) for name in five()]
    return hold({TABLE: added(table)}, levels)


def rule_separation_steadies_the_content(tables: Tables) -> Verdict:
    """Under each of equations (2) to (6), corrected, the content of a text that starts past the trained
    length drifts less in separated learned than in dense learned (difference below 0), in each less the
    drift of a text that starts half-way inside it, where every index was trained; with some of the five,
    *partly*."""
    table = tables.get(TABLE)
    methods = ["separated-learned", "learned"]
    obstacle = _unusable(table, methods)
    if obstacle:
        return obstacle
    beyond = added(table)
    drifts = [
        beyond[beyond.method == method][["seed", "status"]].assign(
            method=f"{method}:{name}", bits_per_byte=beyond[f"added drift/{name}"]
        )
        for method in methods
        for name in five()
    ]
    pairs = [Comparison(f"separated-learned:{name}", f"learned:{name}", high=0.0) for name in five()]
    return judge(pd.concat(drifts), pairs, bar=math.inf)


def rule_only_the_routing_hears_a_new_index(tables: Tables) -> Verdict:
    """With every head attending as it does at index 0, the content of a text read past the trained length
    does not move at all (drift exactly 0, in every run, rule and layer) in separated learned, separated
    sinusoidal and strict learned; in some of the three, *partly*. Not testable unless it moves by more
    than 0.001 in every run of dense learned."""
    separated = ["separated-learned", "separated-sinusoidal", "strict-learned"]
    table = tables.get(TABLE)
    for methods in (["learned"], *([name] for name in separated)):  # they have different seeds
        if obstacle := _unusable(table, methods):
            return obstacle
    least = float(table.loc[table.method == "learned", "held"].min())
    if least <= 1e-3:
        return _blind({"learned held, least": least}, "nothing moves in the dense model either")
    most = {f"{name} held, most": float(table.loc[table.method == name, "held"].max()) for name in separated}
    still = [value == 0.0 for value in most.values()]
    word = REPRODUCED if all(still) else PARTLY if any(still) else NOT_REPRODUCED
    numbers = most | {"learned held, least": least}
    return Verdict(word, "; ".join(f"{name} {value:.3g}" for name, value in numbers.items()), numbers)


def rule_position_is_readable_without_an_encoding(tables: Tables) -> Verdict:
    """In the dense model without an encoding a linear probe, at its best layer, explains more than half of
    the variance of the index, at positions and in documents that it was not fitted on; if it explains that
    much of the logarithm of the index only, *partly*. Not testable unless the same probe on the embedding
    explains less than 0.05."""
    obstacle = _unusable(tables.get(TABLE), ["none"])
    if obstacle:
        return obstacle
    control = _means(tables, "none", "input/joint")
    if max(control.values()) >= 0.05:
        return _blind(control, "the embedding tells the index already")
    index = hold(tables, [Level("none", "index/joint", low=0.5)])
    if index.word != NOT_REPRODUCED:
        return index
    logarithm = hold(tables, [Level("none", "log_index/joint", low=0.5)])
    word = {REPRODUCED: PARTLY, NOT_REPRODUCED: NOT_REPRODUCED}.get(logarithm.word, UNDECIDED)
    return Verdict(word, f"{index.detail}; {logarithm.detail}", index.numbers | logarithm.numbers)


def rule_pos_stream_carries_almost_no_text(tables: Tables) -> Verdict:
    """In separated learned, at every layer, less than 1 % of the variance of the pos stream is between texts,
    and a linear probe on it names the current or the previous byte less than 0.02 more often than the most
    frequent byte is right; so also after the mean of each position is taken away. With some of the three,
    *partly*. Not testable unless the probe on the sem stream gains 0.2."""
    obstacle = _unusable(tables.get(TABLE), ["separated-learned"])
    if obstacle:
        return obstacle
    control = _means(tables, "separated-learned", "byte/sem")
    if min(control.values()) <= 0.2:
        return _blind(control, "the probe finds no bytes where they are")
    bounds = {"text/pos": 0.01, "byte/pos": 0.02, "byte/pos_less_position": 0.02}
    return hold(tables, [Level("separated-learned", name, high=bound) for name, bound in bounds.items()])


def rule_content_hides_the_position(tables: Tables) -> Verdict:
    """In separated learned a linear probe on the sem stream, at its best layer, explains less than 0.1 of the
    variance of the index, even at positions that it was fitted on, in unseen documents. Not testable
    unless it explains more than 0.5 on the pos stream."""
    obstacle = _unusable(tables.get(TABLE), ["separated-learned"])
    if obstacle:
        return obstacle
    control = _means(tables, "separated-learned", "known/pos")
    if min(control.values()) <= 0.5:
        return _blind(control, "the probe finds no index where it is")
    return hold(tables, [Level("separated-learned", "known/sem", high=0.1)])


_FROM_THE_TABLE = {
    "needs": (TABLE,),
    "stands_on": (five, added, hold, _unusable, _means, _blind, *RULES_OF_EVIDENCE),
}

CLAIMS = (
    Claim(
        id="semantic-integrity-is-preserved",
        source="slides-separation",
        statement="Because only the positional dimensions are extrapolated, the integrity of the learned "
        "semantic representations is preserved.",
        rule=rule_semantic_integrity_is_preserved,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="separation-steadies-the-content",
        source=OURS,
        statement="Past the trained length the same extrapolation disturbs the content less when position "
        "has dimensions of its own than when it was added.",
        rule=rule_separation_steadies_the_content,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="only-the-routing-hears-a-new-index",
        source=OURS,
        statement="In a separated model a new index reaches the content through the attention weights alone.",
        rule=rule_only_the_routing_hears_a_new_index,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="position-is-readable-without-an-encoding",
        source="ours, after Haviv et al. (2022)",
        statement="A causal model without any position encoding still learns where its tokens are.",
        rule=rule_position_is_readable_without_an_encoding,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="pos-stream-carries-almost-no-text",
        source=OURS,
        statement="Content could leak into the position stream through the attention weights; in a trained "
        "model it hardly does.",
        rule=rule_pos_stream_carries_almost_no_text,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="content-hides-the-position",
        source=OURS,
        statement="The semantic stream of a trained separated model hardly tells where a token stands.",
        rule=rule_content_hides_the_position,
        **_FROM_THE_TABLE,
    ),
)

"""Who uses an answer far back in a task?

The rule of *uses*, for a method and a way in which it reads: trained models find at least 95 % of the answers
inside the trained length L, else the task was not learned and says nothing about longer texts. In texts of
8 L they find at least 90 % of the answers that stand 4 L to 8 L back, and 90 % of all answers: a model that
finds the far ones and loses the near does not use its text. Behind a window of L keys they find no more of
the far answers than the best guess does, by 3 points. All in the mean of six seeds or more, and in five of
six of them. What misses this is *refuted* where a one-sided t-test over the seeds puts either share below
90 %, at 5 % after Holm's correction over the two; else it is *undecided*.

The first rule, written before the records, asked for the far answers alone and called every mean below 90 %
*refuted*. This one was written when those records had been read, and before any of twelve seeds.
"""

from typing import Any

import pandas as pd

from sepnb.claims.evidence import SEEDS, family, incomplete, methods_of
from sepnb.claims.verdict import Answer, Cause, Dropped, Tables, Verdict
from sepnb.records.run_table import RunTable
from sepnb.records.verdicts import (
    FAILS,
    HELD,
    HOLDS,
    NOT_JUDGED,
    NOT_TESTABLE,
    OPEN,
    REFUTED,
    UNDECIDED,
    holm,
    in_mean_and_seeds,
    p_below,
    sign_flip,
)

LEARNED, FOUND, ABOVE_CHANCE = 0.95, 0.9, 0.03
INSIDE, FAR, CONTROL = "accuracy/native/1x", "far/", "far/window"


def uses(table: pd.DataFrame | None, method: str, reader: str = "native") -> Verdict:
    """Whether a method uses an answer far back, by the rule above.

    Args:
        table: the runs of a task.
        method, reader: in a way that `sepnb.experiments.task_methods.readers` names, or one of `stretched`
            and `adapted`; "adapted/16x" in texts of 16 L, far answers then standing 8 L to 16 L back. The
            window is read in texts of 8 L.
    """
    if missing := incomplete(table, [method]):
        return missing
    runs = RunTable(table[table["method"] == method])
    if len(runs.frame) < SEEDS:
        return Verdict(NOT_JUDGED, f"{len(runs.frame)} seeds, a verdict needs at least {SEEDS}")
    way, _, times = reader.partition("/")
    columns = (INSIDE, f"{FAR}{reader}", f"accuracy/{way}/{times or '8x'}", CONTROL)
    inside, far, every, control = (runs.values(method, name) for name in columns)
    if min(map(len, (inside, far, every, control))) < len(runs.frame):
        unread = f"a run of {method} diverged, or is not read as {reader}"
        return Verdict(NOT_TESTABLE, unread)
    chance = runs.guess(8)
    means = {"far": far, "inside": inside, "all": every, "window": control, "chance": chance}
    numbers = {name: float(values.mean()) for name, values in means.items()}
    seen = ", ".join(f"{name} {numbers[name]:.2f}" for name in ("inside", "far", "all", "window", "chance"))
    common = {"seen": (seen,), "numbers": numbers}
    if not in_mean_and_seeds(inside - LEARNED):
        return Verdict(NOT_TESTABLE, "not learned", cause=Cause.NOT_LEARNED, **common)
    if not in_mean_and_seeds(chance.to_numpy() + ABOVE_CHANCE - control):
        return Verdict(NOT_TESTABLE, "its window finds more than a guess", **common)
    if all(in_mean_and_seeds(found - FOUND) for found in (far, every)):
        return Verdict(HELD, seen, numbers=numbers)
    p = [p_below(found.to_numpy(), FOUND) for found in (far, every)]
    exact = [sign_flip(found, FOUND, below=True) for found in (far, every)]
    tests = [f"{name} {a:.3f} and {b:.3f}" for name, (a, b) in (("p", p), ("exact p", exact))]
    why = f"{seen}; far and all below {FOUND}: {', '.join(tests)}"
    return Verdict(REFUTED if holm(p, 0.05).any() else UNDECIDED, why, numbers=numbers)


def by_uses(claim: Any, tables: Tables) -> Verdict:
    """*Uses* of every method that a claim asks for, and in every way, as one verdict: *not judged* if any is;
    what is not testable is dropped by name, unless nothing is left."""
    table = claim.table(tables)
    if missing := incomplete(table, methods_of(claim.asks), paired=False):
        return missing
    found = {}
    for ask in claim.asks:
        method, _, column = ask.a.partition(":")
        found[ask.a] = uses(table, method, column.removeprefix(FAR))
    says = {HELD: HOLDS, REFUTED: FAILS, UNDECIDED: OPEN}
    judged = {name: one for name, one in found.items() if one.word in says}
    for word in (NOT_JUDGED, NOT_TESTABLE):
        stopped = {name: one for name, one in found.items() if one.word == word}
        if stopped and (word == NOT_JUDGED or not judged):
            why, *others = [f"{name}: {one.detail}" for name, one in stopped.items()]
            return Verdict(word, why, seen=tuple(others), cause=next(iter(stopped.values())).cause)
    answers = [
        Answer(name, next(iter(one.numbers.values())), says[one.word], one.why)
        for name, one in judged.items()
    ]
    dropped = [Dropped(name, one.detail) for name, one in found.items() if name not in judged]
    seeds = min(len(RunTable(table).seeds(name)) for name in claim.methods)
    return family(answers, claim.parts, f"{seeds} seeds", dropped)

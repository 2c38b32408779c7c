"""The runs of a task as tables for a chapter: who learned it, and who uses an answer far back.

What was not run is called so; what was not learned is called so before any number past the trained length.
"""

from collections.abc import Iterable, Sequence

import pandas as pd

from sepnb.claims.recall import AT_8X
from sepnb.claims.uses import FAR, INSIDE, LEARNED, SEEDS, uses
from sepnb.plots.looks import title
from sepnb.records.run_table import RunTable, text_of
from sepnb.records.verdicts import HELD, NOT_JUDGED, NOT_RUN, in_mean_and_seeds

AS_TRAINED = "as trained"
READINGS = {
    "native": AS_TRAINED,
    "lower": "at the lower three quarters of positions",
    "log-scale": "scores times log n",
    "window": "only the last L tokens",
    "window-sinks": "the last L tokens and four sinks",
    "interpolation": "position interpolation",
    "ntk": "NTK-aware",
    "ntk-by-parts": "NTK by parts",
    "yarn": "YaRN",
    "llama3": "llama3",
}
"""What a table calls a way to read; the rules of a learned table keep their names."""


def learned_by(table: pd.DataFrame, methods: Iterable[str], step: float) -> str:
    """How many runs of these methods had found 95 % of the answers by a step, such as "3 of 6"."""
    of = RunTable(table)
    made, reached = (
        pd.concat([of.values(name, column) for name in methods])
        for column in ("steps", f"steps_to_{LEARNED:g}")
    )
    return f"{(reached <= step).sum()} of {len(made)}" if len(made) else NOT_RUN


def is_learned(table: pd.DataFrame, method: str) -> str:
    """ "yes" or "no" by the rule of *uses*; *not judged* with fewer than six runs, *not run* without any."""
    inside = RunTable(table).values(method, INSIDE)
    if len(inside) < SEEDS:
        return NOT_JUDGED if len(inside) else NOT_RUN
    return "yes" if in_mean_and_seeds(inside - LEARNED) else "no"


def readings(table: pd.DataFrame, method: str) -> list[str]:
    """The ways in which the runs of a method were read far back, in the order of `READINGS`, but for the
    window, which is a control."""
    of = RunTable(table)
    there = [name.removeprefix(FAR) for name in table if name.startswith(FAR)]
    found = [name for name in dict.fromkeys([*READINGS, *there]) if name in there]
    return [one for one in found if one != "window" and len(of.values(method, f"{FAR}{one}"))]


def listed(table: pd.DataFrame, methods: Iterable[str]) -> list[str]:
    """The methods that have runs, then the one that has none, or one line for several."""
    methods, made = list(methods), set(RunTable(table).made["method"])
    rest = [name for name in methods if name not in made]
    others = [f"{len(rest)} {'others' if len(rest) < len(methods) else 'methods'}"] if len(rest) > 1 else rest
    return [name for name in methods if name in made] + others


def learned_table(table: pd.DataFrame, methods: Iterable[str]) -> pd.DataFrame:
    """Whether each method learned the task inside the trained length, with the best guess beside it."""
    of = RunTable(table)
    chance = text_of(of.guess(1).iloc[:1], ".2f")
    lines = []
    for name in listed(table, methods):
        inside = of.values(name, INSIDE)
        reached = of.values(name, f"steps_to_{LEARNED:g}")
        lines.append(
            {
                "method": title(name),
                "learned": is_learned(table, name),
                "answers found, inside": text_of(inside, ".2f"),
                "worst seed": f"{inside.min():.2f}" if len(inside) else NOT_RUN,
                "best guess": chance,
                "seeds that got to 95 %": f"{len(reached)} of {len(inside)}" if len(inside) else NOT_RUN,
                "their median step": f"{reached.median():.0f}" if len(reached) else None,
            }
        )
    return pd.DataFrame(lines)


def uses_table(table: pd.DataFrame, methods: Iterable[str]) -> pd.DataFrame:
    """The verdict *uses* of each method in each way in which it was read, with what it stands on."""
    of, lines = RunTable(table), []
    for name in listed(table, methods):
        for reader in readings(table, name) or ["native"]:
            verdict = uses(table, name, reader)
            lines.append(
                {
                    "method": title(name),
                    "read": READINGS.get(reader, reader),
                    "learned": is_learned(table, name),
                    "uses": verdict.word,
                    "4L to 8L back": of.text(name, f"{FAR}{reader}", ".2f"),
                    "last L": of.text(name, f"near/{reader}", ".2f"),
                    "all of 8L": of.text(name, AT_8X.format(reader), ".2f"),
                    "there, last L tokens only": of.text(name, f"{FAR}window", ".2f"),
                    "best guess": text_of(of.guess(8).iloc[:1], ".2f"),
                }
            )
    return pd.DataFrame(lines)


def counted(table: pd.DataFrame, methods: Sequence[str]) -> dict[str, str]:
    """How many methods with six runs learned the task, and how many use an answer far back as trained."""
    states = {name: is_learned(table, name) for name in methods}
    judged = [name for name, state in states.items() if state not in (NOT_RUN, NOT_JUDGED)]
    if not judged:
        word = NOT_JUDGED if NOT_JUDGED in states.values() else NOT_RUN
        return {"learned": word, "uses": word}
    learned = [name for name in judged if states[name] == "yes"]
    held = [name for name in learned if uses(table, name).word == HELD]
    return {
        "learned": f"{len(learned)} of {len(judged)} methods",
        "uses": f"{len(held)} of {len(judged)}",
    }

"""Tasks of recall and of order (chapters 18 and 19): what is learned, and what uses an answer far back?

The rule of *uses*, for a method and a way in which it reads: trained models find at least 95 % of the answers
inside the trained length L, else the task was not learned and says nothing about longer texts. In texts of
8 L they find at least 90 % of the answers that stand 4 L to 8 L back. Behind a window of L keys they find no
more of these than the best guess does, by 3 points. All in the mean of six seeds, and in five of them.

Written before the records. Trials had been seen: one or two seeds of some methods, at other settings.
"""

import numpy as np
import pandas as pd

from sepnb.claims.asks import Unless, against, changes, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.evidence import incomplete
from sepnb.claims.verdict import (
    FAILS,
    HELD,
    HOLDS,
    NOT_JUDGED,
    NOT_REPRODUCED,
    NOT_RUN,
    NOT_TESTABLE,
    OPEN,
    PARTLY,
    REFUTED,
    REPRODUCED,
    UNDECIDED,
    Answer,
    Tables,
    Verdict,
)

LEARNED, FOUND, ABOVE_CHANCE = 0.95, 0.9, 0.03
SEEDS, OF_THEM = 6, 5
INSIDE, FAR, CONTROL, CHANCE = "accuracy/native/1x", "far/", "far/window", "chance/"


def uses(table: pd.DataFrame | None, method: str, reader: str = "native") -> Verdict:
    """Whether a method uses an answer far back, by the rule above.

    Args:
        table: the runs of a task.
        method, reader: in a way that `sepnb.experiments.task_methods.readers` names.
    """
    if missing := incomplete(table, [method]):
        return missing
    runs = table[table["method"] == method]
    if len(runs) < SEEDS:
        return Verdict(NOT_JUDGED, f"{len(runs)} seeds, a verdict needs at least {SEEDS}")
    if f"{FAR}{reader}" not in runs or runs[[INSIDE, f"{FAR}{reader}", CONTROL]].isna().any(axis=None):
        return Verdict(NOT_TESTABLE, f"a run of {method} diverged, or is not read as {reader}")
    guesses = [name for name in runs if name.startswith(CHANCE) and name.endswith("/8x")]
    chance = runs[guesses].max(axis=1)
    inside, far, control = runs[INSIDE], runs[f"{FAR}{reader}"], runs[CONTROL]
    numbers = {"inside": inside.mean(), "far": far.mean(), "window": control.mean(), "chance": chance.mean()}
    told = ", ".join(f"{name} {value:.2f}" for name, value in numbers.items())
    if not holds_in_seeds(inside - LEARNED):
        return Verdict(NOT_TESTABLE, f"not learned: {told}", numbers=numbers)
    if not holds_in_seeds(chance + ABOVE_CHANCE - control):
        return Verdict(NOT_TESTABLE, f"its window finds more than a guess: {told}", numbers=numbers)
    if holds_in_seeds(far - FOUND):
        return Verdict(HELD, told, numbers=numbers)
    return Verdict(REFUTED if far.mean() < FOUND else UNDECIDED, told, numbers=numbers)


def holds_in_seeds(margins: pd.Series) -> bool:
    """Whether margins are at least 0 in the mean of the seeds and in five of them."""
    return bool(margins.mean() >= 0 and (margins >= 0).sum() >= OF_THEM)


def used(claim: Claim, tables: Tables) -> Verdict:
    """*Uses* of every method that a claim asks for, as one verdict."""
    found = {}
    for ask in claim.asks:
        method, _, column = ask.a.partition(":")
        found[ask.a] = uses(claim.table(tables), method, column.removeprefix(FAR))
    for word in (NOT_RUN, NOT_JUDGED, NOT_TESTABLE):
        if stopped := [f"{name}: {one.why}" for name, one in found.items() if one.word == word]:
            return Verdict(word, "; ".join(stopped))
    says = {HELD: HOLDS, REFUTED: FAILS, UNDECIDED: OPEN}
    answers = [Answer(name, one.numbers["far"], says[one.word], one.why) for name, one in found.items()]
    words = {one.answer for one in answers}
    if words == {HOLDS}:
        word = REPRODUCED
    elif OPEN in words:
        word = UNDECIDED
    else:
        word = PARTLY if HOLDS in words and claim.parts else NOT_REPRODUCED
    return Verdict(word, f"{SEEDS} seeds", tuple(answers))


def steps(table: pd.DataFrame) -> pd.DataFrame:
    """`log2_steps`: to 95 % of the answers; of a run that never got there, to its end. And `near gain` and
    `far gain`: what a window adds to the share of answers found."""
    read = table.reindex(
        columns=[
            "steps_to_0.95",
            "steps",
            *(f"{p}/{r}" for p in ("near", "far") for r in ("window", "native")),
        ]
    )
    read = read.astype(float)
    return pd.DataFrame(
        {
            "log2_steps": np.log2(read["steps_to_0.95"].fillna(read["steps"])),
            "near gain": read["near/window"] - read["near/native"],
            "far gain": read["far/window"] - read["far/native"],
        }
    )


def index_gain(table: pd.DataFrame) -> pd.DataFrame:
    """What reading at the lower positions adds to the share of near answers that are found."""
    read = table.reindex(columns=["near/lower", "near/native"]).astype(float)
    return pd.DataFrame({"index gain": read["near/lower"] - read["near/native"]})


USES = (
    "By the rule of *uses*: at least 95 % of the answers found inside the trained length L, in texts of 8 L "
    "at least 90 % of those that stand 4 L to 8 L back, and behind a window of L keys at most 3 points more "
    "of these than the best guess finds; in the mean of six seeds and in five of them. Judged: {}."
)


def uses_claim(task: str, title: str, methods: str, *columns: str, **fields) -> Claim:
    """A claim that methods use answers far back."""
    asks = levels(methods, *(columns or (f"{FAR}native",)), low=FOUND)
    judged = ", ".join(f"`{ask.a.replace(f':{FAR}native', '')}`" for ask in asks)
    return Claim(
        title, asks, rule=USES.format(judged), experiments=(f"experiment/{task}",), how=used, **fields
    )


def learned(methods: str) -> Unless:
    return Unless(levels(methods, INSIDE, low=LEARNED), "a method has not learned the task")


TWINS = (
    "separated-randomised - sinusoidal-randomised, separated-gap - sinusoidal-gap, "
    "separated-content-gap - sinusoidal-content-gap"
)
"""Every separated model that was changed, and its dense twin."""

TITLES = {"mqar": "recalls values", "latest_value": "finds latest values", "needle": "finds needles"}
BEST = {
    "mqar": "separated-content-gap",
    "latest_value": "separated-randomised",
    "needle": "separated-content-gap",
}
"""The separated model that trials put first."""

BASELINES = "sinusoidal, rope"
SCALED = ("interpolation", "ntk", "ntk-by-parts", "yarn", "llama3")
AT_8X = "accuracy/{}/8x"


def of_task(task: str, does: str, best: str, twins: str = TWINS) -> dict[str, Claim]:
    """What is asked of every task.

    Args:
        task: its experiment.
        does: what a model does there, in words.
        best: the separated model that trials put first.
        twins: every separated model that was changed, and its dense twin.
    """
    name, of = task.replace("_", "-"), {"experiments": (f"experiment/{task}",)}
    twin = best.replace("separated", "sinusoidal")
    rope = "rope-randomised" if best.endswith("randomised") else "rope-gap"
    return {
        f"{name}-a-separated-model-uses": uses_claim(
            task, f"A separated model {does} at eight trained lengths", best
        ),
        f"{name}-rope-uses": uses_claim(
            task, f"RoPE {does} at eight trained lengths as it was trained", "rope"
        ),
        f"{name}-separation-finds-more": Claim(
            f"A separated model {does} further back than its dense twin",
            pairs(twins, "far/native", low=0.0),
            unless=learned(twins.replace(" - ", ", ")),
            parts=True,
            **of,
        ),
        f"{name}-dense-twins-do-as-well": Claim(
            f"A dense model trained at the same positions {does} as well as the separated one",
            pairs(f"{twin} - {best}, {rope} - {best}", "far/native", low=-0.03),
            unless=learned(f"{best}, {twin}, {rope}"),
            parts=True,
            **of,
        ),
    }


EQUALS = "sinusoidal-content-gap - separated-content-gap-wide"
NEEDLE = {
    "needle-dense-twin-does-as-well-at-equal-parameters": Claim(
        "A dense model trained at the same positions finds needles as well as a separated one of equal size",
        pairs(EQUALS, "far/native", low=-0.03),
        unless=learned(EQUALS.replace(" - ", ", ")),
        experiments=("experiment/needle",),
        remark="Asked after the dense twin, with half again as many parameters in its blocks, found more; "
        "here both have as many, within 3 %.",
    ),
    "needle-baselines-struggle": Claim(
        "Baseline models struggle beyond their trained length in the needle test",
        changes(BASELINES, [(AT_8X.format("native"), INSIDE)], high=-0.1),
        unless=learned(BASELINES),
        source="article-positional-encoding",
        experiments=("experiment/needle",),
    ),
    "needle-window-better-near-the-end": Claim(
        "A sliding window does slightly better, most of all near the end of the document",
        changes("rope", [("near/window", "near/native"), ("near gain", "far gain")], low=0.0),
        unless=learned("rope"),
        derive=steps,
        source="article-positional-encoding",
        experiments=("experiment/needle",),
        remark="`near` are needles at most a trained length back, `far` those 4 to 8 back, in texts of 8 L.",
    ),
    "needle-scaled-rope-improves": Claim(
        "RoPE with scaled frequencies finds many more needles",
        changes("rope", [(AT_8X.format(one), AT_8X.format("native")) for one in SCALED], low=0.05),
        unless=learned("rope"),
        parts=True,
        source="article-positional-encoding",
        experiments=("experiment/needle",),
    ),
    "needle-ntk-generalises": uses_claim(
        "needle",
        "NTK-based methods generalise to longer texts in the needle test",
        "rope",
        *(f"{FAR}{one}" for one in ("ntk", "ntk-by-parts", "yarn")),
        source="article-positional-encoding",
        parts=True,
    ),
}

STREAMS = "separated-randomised, strict-randomised"
SOONER = "separated-randomised - sinusoidal-randomised, separated-randomised - rope-randomised"
ORDER = {
    "separation-learns-order-sooner": Claim(
        "A stream of its own for position learns order in fewer steps",
        pairs(SOONER, "log2_steps", high=0.0),
        derive=steps,
        parts=True,
        experiments=("experiment/latest_value",),
        remark="Steps to 95 % of the answers, told every 50; one that never got there counts with all. "
        "For two thirds of the steps all are trained on texts of half the length, and asked such.",
    ),
    "recall-needs-no-position": Claim(
        "No encoding at all recalls values as well as the strict model",
        pairs("none - strict-randomised", INSIDE, "far/native", low=-0.05),
        unless=learned("strict-randomised"),
        experiments=("experiment/mqar",),
    ),
    "near-answers-are-lost-by-index": Claim(
        "What a position stream at random positions loses near the question, it loses by index",
        [
            *levels(STREAMS, "index gain", low=0.0),
            *against(STREAMS, "rope-randomised", "index gain", low=0.0),
        ],
        unless=learned(f"{STREAMS}, rope-randomised"),
        derive=index_gain,
        experiments=("experiment/mqar",),
        remark="Gained by reading texts of 8 L at the lower three quarters of the positions: in training the "
        "highest eighth had only questions. RoPE, which tells no index, is the control. One model, of a "
        "seed that is not judged, suggested the rule.",
    ),
}

WITH_BOTH = "separated-content-randomised"
TWIN_WITH_BOTH = f"{WITH_BOTH.replace('separated', 'sinusoidal')} - {WITH_BOTH}"


def _with_both(task: str, does: str) -> dict[str, Claim]:
    """Whether one model can do what its two changes do one at a time: a term with gaps finds content, random
    positions teach order."""
    model = f"A separated model with a content-to-position term, trained at random positions, {does}"
    return {
        f"{task.replace('_', '-')}-one-model-with-both-uses": uses_claim(
            task, f"{model} at eight trained lengths", WITH_BOTH
        ),
        f"{task.replace('_', '-')}-dense-with-both-too": Claim(
            f"With the same term, at the same positions, a dense model {does} as well as a separated one",
            pairs(TWIN_WITH_BOTH, "far/native", low=-0.03),
            unless=learned(TWIN_WITH_BOTH.replace(" - ", ", ")),
            experiments=(f"experiment/{task}",),
        ),
    }


BOTH = _with_both("mqar", TITLES["mqar"]) | _with_both("latest_value", TITLES["latest_value"])

OURS, WITH_JOINT_MLP = "separated-sinusoidal", "separated-sinusoidal-joint-mlp"


def _places(title: str, of: str, remark: str = "", **bounds: float) -> Claim:
    """A claim on the answers found inside the trained length: a plateau is long there, and far answers say
    nothing of a model that has not left it."""
    return Claim(
        title, pairs(of, INSIDE, **bounds), experiments=("experiment/indirect_index",), remark=remark
    )


PLACES = {
    "a-separated-model-adds-shifts": _places(
        "A separated model finds what stands some places from a name as well as a dense one",
        f"{OURS} - sinusoidal",
        "The place is that of a word plus a shift that another word tells: position depends on content. "
        "Trials of one seed had been seen, in which the separated model found half as many.",
        low=-0.05,
    ),
    "adding-shifts-needs-a-joint-mlp": _places(
        "An MLP over both streams is what a separated model lacks to go some places from a name",
        f"{WITH_JOINT_MLP} - {OURS}",
        "Only the MLP is changed. A trial of one seed had been seen.",
        low=0.0,
    ),
    "a-joint-mlp-is-more-than-size": _places(
        "The joint MLP does more than as many parameters in a wider separated model",
        f"{WITH_JOINT_MLP} - {OURS}-wide",
        "The wider model has about as many block parameters as the dense one, more than the joint MLP's.",
        low=0.0,
    ),
    "a-separated-model-adds-shifts-before-rope": _places(
        "A separated model finds what stands some places from a name more often than RoPE",
        f"{OURS} - rope",
        low=0.0,
    ),
    "random-positions-leave-no-distance": _places(
        "Trained at random positions a model does not learn to go some places from a name",
        "sinusoidal-randomised - sinusoidal, separated-randomised - separated-sinusoidal, "
        "rope-randomised - rope",
        high=0.0,
    ),
}

_OF_ALL = (of_task(task, does, BEST[task]).items() for task, does in TITLES.items())
CLAIMS = {**{key: claim for claims in _OF_ALL for key, claim in claims}, **NEEDLE, **ORDER, **BOTH, **PLACES}

"""Tasks of recall, of order and of questions (chapter 19): what is learned, and what uses an answer far back.

In `questions`, stories stretched by sentences of others, an answer is one word, so that the share of answers
found is the share of exact matches. Its rules were written before the records. Five trials of seed 0 had been
seen, of 600 to 1,500 steps: RoPE, SeqPE and the separated model at random positions learned the task, the
dense sinusoid at random positions did not in 900, and the separated model with gaps was on its way. At eight
trained lengths, on validation stories, the separated model at random positions found a quarter of the answers
and SeqPE half of them.
"""

from functools import partial

import numpy as np
import pandas as pd

from sepnb.claims.asks import Floor, against, changes, each, levels, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.uses import FAR, FOUND, INSIDE, LEARNED, by_uses


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
    "By the rule of *uses*: at least 95 % of the answers found inside the trained length L; in texts of 8 L "
    "at least 90 % of those that stand 4 L to 8 L back, and of all answers; and behind a window of L keys at "
    "most 3 points more of the far ones than the best guess finds. All in the mean of the seeds and in five "
    "of six of them. *Refuted* where a one-sided t-test puts either share below 90 %, else *undecided*. "
    "Judged: {}."
)


def uses_claim(task: str, title: str, methods: str, *columns: str, **fields) -> Claim:
    """A claim that methods use answers far back."""
    asks = levels(methods, *(columns or (f"{FAR}native",)), low=FOUND)
    judged = ", ".join(f"`{ask.a.replace(f':{FAR}native', '')}`" for ask in asks)
    return Claim(
        title, asks, rule=USES.format(judged), experiment=f"experiment/{task}", how=by_uses, **fields
    )


LEARNT = Floor(
    LEARNED, INSIDE, seeds=True, one_sided=True, why="a method has not learned the task in five of six seeds"
)
"""A model that has not learned to find answers near by finds fewer of those far back too: to miss this floor
only makes it worse there."""

_of = partial(Claim, higher_is_better=True, floors=(LEARNT,))
_needle = partial(_of, experiment="experiment/needle")
_article = partial(_needle, source="article-positional-encoding")

TWINS = (
    "separated-randomised - sinusoidal-randomised, separated-gap - sinusoidal-gap, "
    "separated-content-gap - sinusoidal-content-gap"
)
"""Every separated model that was changed, and its dense twin."""

DOES = {
    "mqar": "recalls values",
    "latest_value": "finds latest values",
    "needle": "finds needles",
    "questions": "answers questions",
}
CONTENT_GAP = ("separated-content-gap", "sinusoidal-content-gap", "rope-gap")
RANDOMISED = ("separated-randomised", "sinusoidal-randomised", "rope-randomised")
BEST = {"mqar": CONTENT_GAP, "latest_value": RANDOMISED, "needle": CONTENT_GAP, "questions": RANDOMISED}
"""The separated model that trials put first, its dense twin, and RoPE at the same positions."""

SCALED = ("interpolation", "ntk", "ntk-by-parts", "yarn", "llama3")
AT_8X = "accuracy/{}/8x"
BY_NTK = each(f"{FAR}{{}}", "ntk, ntk-by-parts, yarn")


def separated_uses(task: str) -> Claim:
    """The separated model that trials put first uses answers far back."""
    return uses_claim(task, f"A separated model {DOES[task]} at eight trained lengths", BEST[task][0])


def finds_more(task: str) -> Claim:
    """Every separated model that was changed finds more answers far back than its dense twin."""
    return _of(
        f"A separated model {DOES[task]} further back than its dense twin",
        pairs(TWINS, "far/native", low=0.0),
        parts=True,
        experiment=f"experiment/{task}",
    )


EQUALS = "sinusoidal-content-gap - separated-content-gap-wide"
STREAMS = "separated-randomised, strict-randomised"

CLAIMS = {
    "mqar-a-separated-model-uses": separated_uses("mqar"),
    "mqar-separation-finds-more": finds_more("mqar"),
    "latest-value-a-separated-model-uses": separated_uses("latest_value"),
    "needle-a-separated-model-uses": separated_uses("needle"),
    "needle-dense-twins-do-as-well": _needle(
        "A dense model trained at the same positions finds needles as well as the separated one",
        against("sinusoidal-content-gap, rope-gap", "separated-content-gap", "far/native", low=-0.03),
        parts=True,
    ),
    "needle-separation-finds-more": finds_more("needle"),
    "needle-dense-twin-does-as-well-at-equal-parameters": _needle(
        "A dense model trained at the same positions finds needles as well as a separated one of equal size",
        pairs(EQUALS, "far/native", low=-0.03),
        remark="Asked after the dense twin, with half again as many parameters in its blocks, found more; "
        "here both have as many, within 3 %.",
    ),
    "needle-baselines-struggle": _article(
        "Baseline models struggle beyond their trained length in the needle test",
        changes("sinusoidal, rope", [(AT_8X.format("native"), INSIDE)], high=-0.1),
    ),
    "needle-window-better-near-the-end": _article(
        "A sliding window does slightly better, most of all near the end of the document",
        changes("rope", [("near/window", "near/native"), ("near gain", "far gain")], low=0.0),
        derive=steps,
        remark="`near` are needles at most a trained length back, `far` those 4 to 8 back, in texts of 8 L.",
    ),
    "needle-scaled-rope-improves": _article(
        "RoPE with scaled frequencies finds many more needles",
        changes("rope", [(AT_8X.format(one), AT_8X.format("native")) for one in SCALED], low=0.05),
        parts=True,
    ),
    "needle-ntk-generalises": uses_claim(
        "needle",
        "NTK-based methods generalise to longer texts in the needle test",
        "rope",
        *BY_NTK,
        source="article-positional-encoding",
        parts=True,
    ),
    "separation-learns-order-sooner": Claim(
        "A stream of its own for position learns order in fewer steps",
        against("separated-randomised", "sinusoidal-randomised, rope-randomised", "log2_steps", high=0.0),
        derive=steps,
        parts=True,
        experiment="experiment/latest_value",
        remark="Steps to 95 % of the answers, told every 50; one that never got there counts with all. "
        "For two thirds of the steps all are trained on texts of half the length, and asked such.",
    ),
    "recall-needs-no-position": _of(
        "No encoding at all recalls values as well as the strict model",
        pairs("none - strict-randomised", INSIDE, "far/native", low=-0.05),
        floors=(LEARNT._replace(but="none"),),
        experiment="experiment/mqar",
    ),
    "near-answers-are-lost-by-index": _of(
        "What a position stream at random positions loses near the question, it loses by index",
        levels(STREAMS, "index gain", low=0.0) + against(STREAMS, "rope-randomised", "index gain", low=0.0),
        floors=(LEARNT._replace(one_sided=False),),
        derive=index_gain,
        experiment="experiment/mqar",
        remark="Gained by reading texts of 8 L at the lower three quarters of the positions: in training the "
        "highest eighth had only questions. RoPE, which tells no index, is the control. One model, of a "
        "seed that is not judged, suggested the rule.",
    ),
    "questions-a-separated-model-uses": separated_uses("questions"),
    "questions-rope-uses": uses_claim(
        "questions", "RoPE answers questions at eight trained lengths as it was trained", "rope"
    ),
    "questions-seqpe-surpasses-strong-baselines": _of(
        "In long-context question answering SeqPE surpasses strong baselines in exact match",
        against("seqpe", "rope, alibi", *each("exact_match/native/{}", "2x, 4x, 8x"), low=0.0),
        source="seqpe-abstract",
        experiment="experiment/questions",
        remark="SeqPE is a term of the score, trained with shift steps and both losses. The window that "
        "teaches is as long as the texts of the last steps; the first ones read half of it.",
    ),
    "questions-seqpe-uses": uses_claim(
        "questions", "SeqPE answers questions at eight trained lengths", "seqpe"
    ),
    "questions-scaled-rope-uses": uses_claim(
        "questions",
        "With scaled frequencies RoPE answers questions over texts longer than those of training",
        "rope",
        *BY_NTK,
        source="article-positional-encoding",
        parts=True,
    ),
}

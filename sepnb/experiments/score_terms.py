"""Chapter 13: which part of a score fails past the trained length, and which must be slowed down to mend it?

A run takes the trained model of `stretched_mqar`. It asks the model in texts of 8 L with some terms of every
score from slowed positions and the others as trained: content with content, position with position, and the
two that cross (`sepnb.analysis.scores`). It also tells how far each term of each head moves the attention
past L, and the terms of the head that is moved most, by distance.
"""

from dataclasses import dataclass, replace
from functools import partial

import pandas as pd
import torch

from ..analysis.score_table import score_table
from ..analysis.scores import TERMS, exchanged
from ..evaluation.tasks.grid import found
from ..models import LanguageModel
from . import stretched, tasks
from .readings import CHOSEN_AT, WAYS, read_by
from .run import HERE, At, Found, Rows, Run
from .stretched import MAIN, READ, TIMES, SlowedAnswers, about_the_training, chosen

CROSS = ("content-position", "position-content")
SLOWED = {
    "none": (),
    "position": ("position-position",),
    "cross": CROSS,
    "position-and-cross": ("position-position", *CROSS),
    "all": TERMS,
}
"""Which terms are read at slowed positions. With all of them the model attends as that of `stretched_mqar`.
Its values are as trained, and without position in a separated model, which then reads as that one."""

SAMPLES = {"smoke": 2, "laptop": 16, "gpu": 32}
TEXTS = {"smoke": 1, "laptop": 4, "gpu": 8}
"""Test samples that are asked, and those of which the terms are told by distance."""


@dataclass(frozen=True)
class Terms(SlowedAnswers):
    """The answers that are found with some terms slowed; in the rows, how far each term moves attention past
    L."""

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        reading, rows = chosen(config, self.readings, model, at.device)
        slow, length = read_by(model, reading, CHOSEN_AT), CHOSEN_AT * config.training.length
        samples = config.data.generator("test")(SAMPLES[config.profile], length, seed=tasks.TEST_SEED)
        metrics = about_the_training(config, model, at.start)
        for name, terms in SLOWED.items():
            answers = found(partial(exchanged, model, slow, terms), samples, device=at.device)
            back = answers["distance"] / config.training.length
            places = {"accuracy": back >= 0, "near": back < tasks.NEAR[1], "far": back >= tasks.FAR[0]}
            there = {at: answers.loc[of, "accuracy"] for at, of in places.items()}
            metrics |= {f"{at}/{name}": float(of.mean()) for at, of in there.items() if len(of)}
        texts = torch.from_numpy(samples.tokens[: TEXTS[config.profile]]).to(at.device)
        (extension, log_scale), trained = WAYS[reading], config.training.length
        slowed = {"extension": extension(CHOSEN_AT, trained), "log_scale": log_scale}
        tables = (score_table(model, texts, length=trained, **how) for how in ({}, slowed))
        return metrics, rows + rows_of(*tables)


def rows_of(trained: pd.DataFrame, slowed: pd.DataFrame) -> Rows:
    """Rows of the kind "moved": the attention that each term of a head moves past L, 0 to 1, as trained and
    slowed; and of the kind "term": the two tables of the head that one term moves most as trained."""
    by = ["layer", "head", "term"]
    moved = trained.groupby(by)["moved"].sum().to_frame("trained")
    moved["slowed"] = slowed.groupby(by)["moved"].sum()
    layer, head, _ = moved["trained"].idxmax()
    rows: Rows = [{"kind": "moved", **row} for row in moved.round(4).reset_index().to_dict("records")]
    for read, table in (("trained", trained), ("slowed", slowed)):
        of = table[(table["layer"] == layer) & (table["head"] == head)].drop(columns="moved")
        rows += [{"kind": "term", "read": read, **row} for row in of.round(4).to_dict("records")]
    return rows


EXPERIMENT = replace(
    READ,
    name="score_terms",
    title="Scores split into content and position: recall",
    question="""Which part of a score fails past the trained length, and which must be slowed down to mend
        it?""",
    methods=tuple(name for name in MAIN if name != "rope"),
    seeds=READ.seeds[:6],
    costs={"smoke": 4.0, "laptop": 110.0},
    plan=partial(stretched.plan, READ.sweep, Terms, TIMES),
)

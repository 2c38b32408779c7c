"""Chapter 12: which part of a score fails past the trained length, and which must be slowed down to mend it?

A run takes the trained model of `stretched_mqar`. It asks the model in texts of 8 L with some terms of every
score from slowed positions and the others as trained: content with content, position with position, and the
two that cross (`sepnb.analysis.scores`). It also tells how far each term of each head moves the attention
past L, and the terms of the head that is moved most, by distance.
"""

from functools import partial
from typing import Any

import pandas as pd
import torch

from ..analysis.score_table import score_table
from ..analysis.scores import TERMS, exchanged
from ..evaluation.tasks.grid import found
from ..models import LanguageModel
from ..records.store import Record
from ..training.checkpoints import Checkpoint
from . import language_modelling as lm
from . import tasks
from .base import Progress
from .readings import CHOSEN_AT, EXTENSIONS, LOG, read_by
from .stretched import EXPERIMENTS as STRETCHED
from .stretched import MAIN, Stretched, StretchedRun, chosen, measured

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


def look(
    config: StretchedRun, model: LanguageModel, start: Checkpoint, device: str
) -> tuple[lm.Metrics, lm.Rows]:
    """Answers found with some terms slowed; in the rows, how far each term moves attention past L."""
    reading, rows = chosen(config, model, device)
    slow, length = read_by(model, reading, CHOSEN_AT), CHOSEN_AT * config.training.length
    samples = config.generator("test")(SAMPLES[config.profile], length, seed=tasks.TEST_SEED)
    metrics: lm.Metrics = {}
    for name, terms in SLOWED.items():
        answers = found(partial(exchanged, model, slow, terms), samples, device=device)
        back = answers["distance"] / config.training.length
        places = {"accuracy": back >= 0, "near": back < tasks.NEAR[1], "far": back >= tasks.FAR[0]}
        there = {at: answers.loc[of, "accuracy"] for at, of in places.items()}
        metrics |= {f"{at}/{name}": float(of.mean()) for at, of in there.items() if len(of)}
    texts = torch.from_numpy(samples.tokens[: TEXTS[config.profile]]).to(device)
    extension = EXTENSIONS[reading.removesuffix(LOG)](CHOSEN_AT, config.training.length)
    how = {"length": config.training.length, "log_scale": reading.endswith(LOG)}
    tables = [score_table(model, texts, length=config.training.length)]
    tables.append(score_table(model, texts, extension=extension, **how))
    return metrics, rows + told(*tables)


def told(trained: pd.DataFrame, slowed: pd.DataFrame) -> lm.Rows:
    """Rows of the kind "moved": the attention that each term of a head moves past L, 0 to 1, as trained and
    slowed; and of the kind "term": the two tables of the head that one term moves most as trained."""
    by = ["layer", "head", "term"]
    moved = trained.groupby(by)["moved"].sum().to_frame("trained")
    moved["slowed"] = slowed.groupby(by)["moved"].sum()
    layer, head, _ = moved["trained"].idxmax()
    rows: lm.Rows = [{"kind": "moved", **row} for row in moved.round(4).reset_index().to_dict("records")]
    for read, table in (("trained", trained), ("slowed", slowed)):
        of = table[(table["layer"] == layer) & (table["head"] == head)].drop(columns="moved")
        rows += [{"kind": "term", "read": read, **row} for row in of.round(4).to_dict("records")]
    return rows


class ScoreTerms(Stretched):
    """Which part of a score fails past the trained length, and which must be slowed down to mend it?"""

    def __init__(self) -> None:
        super().__init__("mqar")
        self.sweep = next(one.sweep for one in STRETCHED if one.task == "mqar")
        self.name, self.title = "score_terms", "Scores split into content and position: recall"
        self.methods = tuple(name for name in MAIN if name != "rope")
        self.costs = {"smoke": 4.0, "laptop": 110.0}

    def seeds_of(self, profile: str, cell: Any) -> tuple[int, ...]:
        return super().seeds_of(profile, cell)[:6]

    def run(self, config: StretchedRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.refuse(config)
        return measured(config, self.fingerprint(config, device=device), look, device, progress)

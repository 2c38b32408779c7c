"""Chapter 22: what the layers of a trained model hold of position and of text, and what a new index does.

The runs are those of `in_window`, trained in the same way on the same batches, with less text scored.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch

from ..analysis.probes import RIDGE
from ..models import LanguageModel
from ..records.store import Record
from . import inspection_rows as look
from . import language_modelling as lm
from .base import Progress
from .in_window import LR_SCREEN
from .inspection import FAR, NATIVE, RULES, SHOWN, Inspection, sample
from .methods import run_of

METHODS = (
    "none",
    "learned",
    "separated-learned",
    "strict-learned",
    "sinusoidal",
    "separated-sinusoidal",
    "rope",
)

JUDGED = ("none", "learned", "separated-learned")
"""Of these the claims want six seeds; the others are described, with three."""

TEST_BYTES = {"smoke": 512, "laptop": 8_192, "gpu": 65_536}
"""Scored of each test document, which is enough to tell that a model has learned."""

INSPECTIONS = {
    "smoke": Inspection(
        64, documents=6, windows=3, texts=1, leak_texts=1, leak_tokens=4, path_points=16, fit_steps=100
    ),
    "laptop": Inspection(
        128, documents=20, windows=16, texts=2, leak_texts=2, leak_tokens=8, path_points=32, fit_steps=1000
    ),
    "gpu": Inspection(
        256, documents=20, windows=32, texts=4, leak_texts=4, leak_tokens=8, path_points=32, fit_steps=1000
    ),
}


@dataclass(frozen=True)
class InsideRun(lm.LanguageModelRun):
    """A language-model run and how much of the trained model is looked at."""

    inspection: Inspection

    @classmethod
    def of_method(cls, profile: str, method: str, seed: int) -> "InsideRun":
        run = run_of(Inside.name, profile, method, seed, LR_SCREEN.rate(profile, method))
        run = replace(run, text=replace(run.text, test_bytes=TEST_BYTES[profile]))
        return cls(**vars(run), inspection=INSPECTIONS[profile])

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types; with what all runs share: rules, far starts, probes."""
        (encoding,) = self.model.encodings
        shared = {
            "rules": list(RULES.get(encoding.name, (NATIVE,))),
            "far": list(FAR),
            "shown": SHOWN,
            "held_out": look.HELD_OUT,
            "ridge": RIDGE,
        }
        return super().resolved() | {"inspection": asdict(self.inspection) | shared}


def inspect(config: InsideRun, model: LanguageModel, *, device: str = "cpu") -> tuple[lm.Metrics, lm.Rows]:
    """Everything that is asked of the trained model, and of the same model before training."""
    read = sample(lm.splits_of(config.text.name).test, config.inspection)
    torch.manual_seed(config.seed)
    untrained = LanguageModel(config.model).to(device)
    rows: lm.Rows = []
    for state, one in zip(look.STATES, (model, untrained), strict=True):
        rows += look.position_rows(one, read, state)
        rows += look.leak_rows(one, read, config.inspection, state)
    rows += look.byte_rows(model, read)
    rows += look.beyond_rows(model, read, config.inspection)
    rows += look.geometry_rows(model, read, config.inspection.path_points)
    rows += look.drift_rows(
        model, read, config.inspection, device=device, precision=config.training.precision
    )
    rows = [{name: _short(value) for name, value in row.items()} for row in rows]
    return metrics_of(rows, config.inspection), rows


def _short(value: Any) -> Any:
    """Six significant digits keep a record readable; a zero stays exact."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def metrics_of(rows: lm.Rows, inspection: Inspection) -> lm.Metrics:
    """The numbers of a run that claims and tables compare, from its rows.

    - `index/<stream>`, `log_index/<stream>`: R squared of the probe at unseen positions of unseen documents,
      at its best depth; `input/<stream>`: that of the index at depth 0; `known/<stream>`: that of the index
      at positions the probe was fitted on.
    - `byte/<stream>`: accuracy less the majority rate, at its best depth and target.
    - `text/<stream>`: the largest share of variance that differs between texts, over depths.
    - `leak/<weights>`: the largest relative derivative of pos by sem, over depths; `leak_entry/<weights>`:
      the largest entry in either direction.
    - `drift/<rule>`, `excess/<rule>`: the mean over far starts of the final drift of the content, and of the
      bits per byte less those at index 0; `drift/trained`, `excess/trained` at the last trained start.
    - `held`: the largest drift with attention held; `another_text`: how far apart two texts are at the end.
    """
    metrics: lm.Metrics = {}

    def largest(name: str, value: float) -> None:
        metrics[name] = max(value, metrics.get(name, -torch.inf))

    def of(kind: str) -> list[dict[str, Any]]:
        return [row for row in rows if row["kind"] == kind]

    for row in of("position probe"):
        if row["state"] == "trained":
            name = row["target"].replace(" ", "_")
            largest(f"{name}/{row['stream']}", row["unseen"])
            if name == "index":
                largest(f"known/{row['stream']}", row["r_squared"])
                if row["depth"] == 0:
                    metrics[f"input/{row['stream']}"] = row["unseen"]
    floor = {row["target"]: row["accuracy"] for row in of("byte probe") if row["stream"] == "majority"}
    for row in of("byte probe"):
        if row["stream"] != "majority":
            largest(f"byte/{row['stream'].replace(' ', '_')}", row["accuracy"] - floor[row["target"]])
    for row in of("variance"):
        if row["state"] == "trained":
            largest(f"text/{row['stream']}", row["text"])
    for row in of("leak"):
        if row["state"] == "trained":
            largest(f"leak_entry/{row['weights']}", row["largest"])
            if row["target"] == "pos":
                largest(f"leak/{row['weights']}", row["relative"])
    metrics |= _of_starts(of("start"), inspection)
    metrics["held"] = max(row["held"] for row in of("drift") if "held" in row)
    metrics["another_text"] = [row["drift"] for row in of("drift") if row["rule"] == "another text"][-1]
    return metrics


def _of_starts(starts: lm.Rows, inspection: Inspection) -> lm.Metrics:
    (at_zero,) = (row["bits_per_byte"] for row in starts if row["start"] == 0)
    metrics: lm.Metrics = {}
    for rule in dict.fromkeys(row["rule"] for row in starts):
        wanted = inspection.starts[-1:] if rule == "trained" else inspection.far_starts
        chosen = [row for row in starts if row["rule"] == rule and row["start"] in wanted]
        metrics[f"drift/{rule}"] = sum(row["drift"] for row in chosen) / len(chosen)
        metrics[f"excess/{rule}"] = sum(row["bits_per_byte"] for row in chosen) / len(chosen) - at_zero
    return metrics


class Inside(lm.TextExperiment):
    """What do the layers hold, hear, and do at an index that was never trained?"""

    name: ClassVar[str] = "inside"
    title: ClassVar[str] = "Inside the model"
    question: ClassVar[str] = (
        "What do the layers of a trained model hold of position and of text, and how far does a text's "
        "representation move when it starts at an index that was never trained?"
    )
    order: ClassVar[int] = 5

    methods: ClassVar = METHODS
    smoke: ClassVar = ("none", "separated-learned")
    shown: ClassVar = tuple(name for name in METHODS if name not in JUDGED)
    costs: ClassVar = {"smoke": 3.0, "laptop": 130.0, "gpu": 90.0}

    def config(self, profile: str, cell: str, seed: int) -> InsideRun:
        return InsideRun.of_method(profile, cell, seed)

    def run(self, config: InsideRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        return lm.run(
            config,
            device=device,
            progress=progress,
            after=lambda model: inspect(config, model, device=device),
        )

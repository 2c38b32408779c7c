"""Chapter 21: what the layers of a trained model hold of position and of text, and what a new index does.

The runs are those of `in_window`, trained in the same way on the same batches, with less text scored.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from ..analysis.probes import RIDGE
from ..models import LanguageModel
from . import inspection
from . import language_modelling as lm
from .base import SHOWN
from .in_window import SWEEPS
from .inspection import FAR, Inspection, rules_of
from .inspection import SHOWN as SHOWN_AT
from .run import HERE, At, Found, Measure, Metrics, Rows, Run
from .texts import TextExperiment

METHODS = (
    *("none", "learned", "separated-learned", "strict-learned"),
    *("sinusoidal", "separated-sinusoidal", "rope"),
)

JUDGED = ("none", "learned", "separated-learned")
"""Of these the claims want six seeds; the others are described, with three."""

TEST_BYTES = {"smoke": 512, "laptop": 8_192, "gpu": 65_536}
"""Scored of each test document, which is enough to tell that a model has learned."""

INSPECTIONS = {
    "smoke": Inspection(64, 6, 3, texts=1, leak_texts=1, leak_tokens=4, path_points=16, fit_steps=100),
    "laptop": Inspection(128, 20, 16, texts=2, leak_texts=2, leak_tokens=8, path_points=32, fit_steps=1000),
    "gpu": Inspection(256, 20, 32, texts=4, leak_texts=4, leak_tokens=8, path_points=32, fit_steps=1000),
}


@dataclass(frozen=True)
class Inspected(Measure):
    """Everything that is asked of the trained model, and of the same model before training.

    Args:
        inspection: how much of it is looked at.
        rules: what stands for positions from the trained length on.
    """

    inspection: Inspection
    rules: tuple[str, ...]

    def resolved(self) -> dict[str, Any]:
        """With what all runs share: far starts, probes."""
        shared = {"far": list(FAR), "shown": SHOWN_AT, "held_out": inspection.HELD_OUT, "ridge": RIDGE}
        return {"inspection": asdict(self.inspection) | {"rules": list(self.rules)} | shared}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        asked = self.inspection
        read = inspection.sample(config.data.splits.test, asked)
        rows: Rows = []
        for state, one in zip(inspection.STATES, (model, config.build().to(at.device)), strict=True):
            rows += inspection.position_rows(one, read, state) + inspection.leak_rows(one, read, asked, state)
        rows += inspection.byte_rows(model, read) + inspection.beyond_rows(model, read, asked)
        rows += inspection.geometry_rows(model, read, asked.path_points)
        how = {"device": at.device, "precision": config.training.precision}
        rows += inspection.drift_rows(model, read, asked, **how)
        rows = [{name: _short(value) for name, value in row.items()} for row in rows]
        return metrics_of(rows, asked), rows


def _short(value: Any) -> Any:
    """Six significant digits keep a record readable; a zero stays exact."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def metrics_of(rows: Rows, asked: Inspection) -> Metrics:
    """The numbers of a run that claims and tables compare, from its rows.

    - `index/<stream>`, `log_index/<stream>`: R squared of the probe at unseen positions of unseen documents,
      at its best depth; `input/<stream>`: that of the index at depth 0; `known/<stream>`: that of the index
      at positions the probe was fitted on.
    - `byte/<stream>`: accuracy minus the majority rate, at its best depth and target.
    - `text/<stream>`: the largest share of variance that differs between texts, over depths.
    - `leak/<weights>`: the largest relative derivative of pos by sem, over depths; `leak_entry/<weights>`:
      the largest entry in either direction.
    - `drift/<rule>`, `excess/<rule>`: the mean over far starts of the final drift of the content, and of the
      bits per byte minus those at index 0; `drift/trained`, `excess/trained` at the last trained start.
    - `held`: the largest drift with attention held; `another_text`: how far apart two texts are at the end.
    """
    metrics: Metrics = {}

    def largest(name: str, value: float) -> None:
        metrics[name] = max(value, metrics.get(name, -torch.inf))

    def of(kind: str, **values: str) -> list[dict[str, Any]]:
        return [r for r in rows if r["kind"] == kind and all(r[name] == v for name, v in values.items())]

    for row in of("position probe", state="trained"):
        largest(f"{row['target'].replace(' ', '_')}/{row['stream']}", row["unseen"])
        if row["target"] == "index":
            largest(f"known/{row['stream']}", row["r_squared"])
            if row["depth"] == 0:
                metrics[f"input/{row['stream']}"] = row["unseen"]
    floor = {row["target"]: row["accuracy"] for row in of("byte probe", stream="majority")}
    for row in of("byte probe"):
        if row["stream"] != "majority":
            largest(f"byte/{row['stream'].replace(' ', '_')}", row["accuracy"] - floor[row["target"]])
    for row in of("variance", state="trained"):
        largest(f"text/{row['stream']}", row["text"])
    for row in of("leak", state="trained"):
        largest(f"leak_entry/{row['weights']}", row["largest"])
        if row["target"] == "pos":
            largest(f"leak/{row['weights']}", row["relative"])
    starts = of("start")
    (at_zero,) = (row["bits_per_byte"] for row in starts if row["start"] == 0)
    for rule in dict.fromkeys(row["rule"] for row in starts):
        wanted = asked.starts[-1:] if rule == "trained" else asked.far_starts
        chosen = [row for row in starts if row["rule"] == rule and row["start"] in wanted]
        metrics[f"drift/{rule}"] = sum(row["drift"] for row in chosen) / len(chosen)
        metrics[f"excess/{rule}"] = sum(row["bits_per_byte"] for row in chosen) / len(chosen) - at_zero
    metrics["held"] = max(row["held"] for row in of("drift") if "held" in row)
    metrics["another_text"] = of("drift", rule="another text")[-1]["drift"]
    return metrics


def measures(run: Run) -> tuple[Measure, ...]:
    return lm.INSIDE, Inspected(INSPECTIONS[run.profile], rules_of(run.model))


EXPERIMENT = TextExperiment(
    name="inside",
    title="Inside the model",
    question="""What do the layers of a trained model hold of position and of text, and how far does a
        text's representation move when it starts at an index that was never trained?""",
    order=5,
    sizes={
        profile: replace(size, text=replace(size.text, test_bytes=TEST_BYTES[profile]))
        for profile, size in lm.SIZES.items()
    },
    sweeps=SWEEPS,
    methods=METHODS,
    smoke=("none", "separated-learned"),
    other_seeds={name: SHOWN for name in METHODS if name not in JUDGED},
    costs={"smoke": 3.0, "laptop": 130.0},
    measures=measures,
)

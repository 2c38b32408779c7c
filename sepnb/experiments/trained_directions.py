"""Chapter 13: do slowed positions do harm where they leave the directions that positions had in training?

A run trains a dense model as `stretched_text` does and reads the same windows at positions slowed down by
YaRN: once as they are, and once with every position embedding projected onto the directions in which those of
a trained text vary (`sepnb.analysis.directions`). Nothing is tuned. Its metrics say how many directions those
are, and which share of the slowed embeddings is outside of them.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from ..analysis.directions import LEAST, kept_within, trained_directions
from ..evaluation.long_windows import blocks_of
from ..models import LanguageModel
from ..training.checkpoints import Checkpoint
from .long_texts import BEYOND, SLOWED, STRETCHED, metrics_of, slowed_rows, untuned, validated
from .long_windows import LongTexts, read
from .readings import CHOSEN_AT, read_by
from .run import HERE, At, Fingerprint, Found, Run, restored
from .stretched import QUARTER, WAVES

YARN = "yarn"


@dataclass(frozen=True)
class Within(LongTexts):
    """The readings of a model at slowed positions, as they are and within the directions of training."""

    def resolved(self) -> dict[str, Any]:
        return super().resolved() | {"slowed": [YARN], "least": LEAST}

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        """The score of the model that stays within."""
        model = restored(config, start, device)
        kept = kept_within(read_by(model, YARN, CHOSEN_AT), model)
        return {"within_bits_per_byte": [validated(config, self, kept, device, at_most=1)]}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        length = self.beyond.length
        tight, *_ = untuned(length)
        window = read(config, self, model, asked=(tight,), device=at.device)

        def slow(factor: int) -> LanguageModel:
            return read_by(model, YARN, factor)

        left = slowed_rows(config, self, slow, at.device)
        kept = slowed_rows(config, self, lambda factor: kept_within(slow(factor), model), at.device)
        metrics = metrics_of(window + left, length)
        for name, value in metrics_of(window + kept, length).items():
            metrics[name.replace("slowed", "within")] = value
        metrics |= geometry(model, slow(CHOSEN_AT), CHOSEN_AT * length)
        kept = [row | {"reading": row["reading"].replace("slowed", "within")} for row in kept]
        return metrics, window + left + kept


def geometry(model: LanguageModel, slow: LanguageModel, length: int) -> dict[str, float]:
    """How many directions the embeddings of a trained text have, and which share of those of a longer one at
    slowed positions is outside of them."""
    (trained,), (slowed,) = (one.transformer.input_encodings for one in (model, slow))
    shown = trained_directions(trained, model.config.max_length)
    outside = shown.share_outside(slowed(torch.arange(length)))
    return {"directions": float(shown.axes.shape[1]), "outside": outside}


def measures(run: Run) -> tuple[Within, ...]:
    beyond = BEYOND[run.profile]
    tight, *_ = untuned(beyond.length)
    return (Within(beyond, blocks_of(run.seed), (tight, *SLOWED)),)


EXPERIMENT = replace(
    STRETCHED,
    name="trained_directions",
    title="Slowed positions within the directions of training: novels",
    question="""Does a dense model lose less in longer novels if its slowed positions are kept within the
        directions that positions had in training?""",
    methods=(WAVES[1], QUARTER),
    smoke=(QUARTER,),
    costs={"smoke": 4.0, "laptop": 150.0},
    measures=measures,
)

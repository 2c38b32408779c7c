"""Adding can do what concatenation does: does a dense model stay with it?

A dense model of the same width can compute what a separated one computes: its full matrices are zero beside
the blocks, and its position vectors are zero in the columns of content (`sepnb.models.dense.as_dense`). Here
a trained separated model is written out in that way and trained on, with every number free. Beside it the
separated model itself is trained on as long, on the same texts. How much better does the dense model become,
and how much of its matrices lies beside the blocks by then?

The separated model has one norm over both streams, because a split norm has no dense counterpart.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Any

import numpy as np

from ..models import LanguageModel
from ..models.dense import as_dense, off_diagonal
from ..streams import BlockDiagonalLinear
from ..training.checkpoints import Checkpoint
from ..training.config import TrainingConfig
from ..training.loop import train
from . import ablation
from . import language_modelling as lm
from .run import HERE, At, Fingerprint, Found, Measure, Metrics, Run, counts_of, restored
from .texts import TextExperiment
from .tuning import SLOW, TUNING_SEED, TunedModel, at_rates, best_of, cells, first_losses

METHOD = f"{ablation.FULL}-joint-norm"
CELLS = cells(METHOD, "kept", "opened")
SHARE = 0.5
"""Of the steps of the training, how many follow."""


def beside(model: LanguageModel, like: LanguageModel) -> Metrics:
    """The share of squared weights that lies beside the blocks of the separated model `like`, in the mean
    over layers: of values, outputs and the two maps of the MLP."""
    shares: dict[str, list[float]] = {}
    for name, module in model.named_modules():
        if isinstance(module, BlockDiagonalLinear):
            kind, weight = name.rpartition(".")[2], module.blocks["sem"].weight
            shares.setdefault(kind, []).append(off_diagonal(weight, like.config.streams))
    return {f"beside/{kind}": float(np.mean(each)) for kind, each in shares.items()}


@dataclass(frozen=True)
class TrainedOn(Measure):
    """A trained separated model that is trained on, as it is or written out as a dense one.

    Args:
        opened: whether it is written out.
        tunings: the trainings, which differ in their rate; the validation text chooses.
    """

    opened: bool
    tunings: tuple[TrainingConfig, ...]

    def resolved(self) -> dict[str, Any]:
        return {"opened": self.opened, "tunings": [one.resolved() for one in self.tunings]}

    def trained(self, config: Run, start: Checkpoint, training: TrainingConfig, **how: Any) -> TunedModel:
        """The model of a checkpoint after one of the trainings, and its losses, in nats.

        Args:
            how: device and the like, as of `sepnb.training.train`.

        Raises:
            Diverged: a loss is not finite.
        """
        model = restored(config, start, how["device"])
        model = as_dense(model) if self.opened else model
        batches = lm.windows_of(config.data.splits.train, training, TUNING_SEED + config.seed)
        losses = train(model, batches, training, **how)
        return model.eval(), losses

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        """The scores are those of the model that the validation text prefers."""

        def scored(on: LanguageModel) -> dict[str, float]:
            return {"val_bits_per_byte": lm.score(config, on, "validation", at.device).bits_per_byte}

        trained = partial(self.trained, config, at.start, device=at.device)
        how = {"unit": "bits_per_byte", "nats": log(2)}
        best, metrics, rows = best_of(lambda _: self.tunings, trained, scored, **how)
        metrics |= {"before_bits_per_byte": lm.score(config, model, "test", at.device).bits_per_byte}
        if best is None:
            return metrics | counts_of(model), rows
        inside, read = lm.INSIDE(config, best, at)
        metrics |= inside | counts_of(best)
        return metrics | (beside(best, model) if self.opened else {}), rows + read

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        return first_losses(partial(self.trained, config, start), self.tunings[0], steps, device=device)


def measures(run: Run, arm: str) -> tuple[Measure, ...]:
    training = replace(run.training, steps=round(SHARE * run.training.steps))
    return (TrainedOn(arm == "opened", at_rates(run, training, SLOW)),)


EXPERIMENT = TextExperiment(
    name="opened_text",
    title="A separated model trained on as a dense one",
    question="""Can a dense model become better than the separated model that it computes, and does training
        take it out of the blocks?""",
    order=5,
    sizes=ablation.SIZES,
    sweeps=(ablation.SWEEP,),
    methods=tuple(CELLS),
    smoke=(f"{METHOD}/opened",),
    costs={"smoke": 2.0, "laptop": 130.0},
    parts=CELLS,
    measures=measures,
    shared=True,
)

"""Adding can do what concatenation does: does a dense model stay with it?

A dense model of the same width can compute what a separated one computes: its full matrices are zero beside
the blocks, and its position vectors are zero in the columns of content (`sepnb.models.dense.as_dense`). Here
a trained separated model is written out in that way and trained on, with every number free. Beside it the
separated model itself is trained on as long, on the same texts. How much better does the dense model become,
and how much of its matrices lies beside the blocks by then?

The separated model has one norm over both streams, because a split norm has no dense counterpart.
"""

from collections.abc import Iterator
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
from .run import HERE, At, Fingerprint, Found, Measure, Metrics, Run, restored
from .texts import TextExperiment
from .tuning import SLOW, TUNING_SEED, TunedModel, best_of, cells, first_losses

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
        each: the trainings, which differ in their rate; the validation text chooses.
    """

    opened: bool
    each: tuple[TrainingConfig, ...]

    @property
    def tunings(self) -> tuple[TrainingConfig, ...]:
        return self.each

    def resolved(self) -> dict[str, Any]:
        return {"opened": self.opened, "tunings": [one.resolved() for one in self.each]}

    def trained(
        self,
        config: Run,
        start: Checkpoint,
        training: TrainingConfig,
        *,
        device: str,
        stop_after: int | None = None,
    ) -> TunedModel:
        """The model of a checkpoint after one of the trainings, and its losses, in nats.

        Raises:
            Diverged: a loss is not finite.
        """
        model = restored(config, start, device)
        model = as_dense(model) if self.opened else model
        batches = lm.windows_of(config.data.splits.train, training, TUNING_SEED + config.seed)
        losses = train(model, batches, training, device=device, stop_after=stop_after)
        return model.eval(), losses

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        """The scores are those of the model that the validation text prefers."""

        def tried(_: Metrics) -> Iterator[TrainingConfig]:
            yield from self.each

        def scored(on: LanguageModel) -> dict[str, float]:
            return {"val_bits_per_byte": lm.score(config, on, "validation", at.device).bits_per_byte}

        trained = partial(self.trained, config, at.start, device=at.device)
        best, metrics, rows = best_of(tried, trained, scored, unit="bits_per_byte", nats=log(2))
        counts, before = model.parameter_counts(), lm.score(config, model, "test", at.device)
        metrics |= {"before_bits_per_byte": before.bits_per_byte}
        if best is None:
            return metrics | {"parameters": counts["total"]}, rows
        inside, read = lm.INSIDE(config, best, at)
        counts = best.parameter_counts()
        about = {"parameters": counts["total"], "block_parameters": counts["blocks"]}
        return metrics | inside | about | (beside(best, model) if self.opened else {}), rows + read

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        return first_losses(partial(self.trained, config, start), self.each[0], steps, device=device)


def measures(run: Run, arm: str) -> tuple[Measure, ...]:
    """A smoke run has two steps, at two rates."""
    smoke = run.profile == "smoke"
    training = replace(run.training, steps=2 if smoke else round(SHARE * run.training.steps))
    rates = SLOW[-2 if smoke else 0 :]
    each = tuple(replace(training, learning_rate=rate) for rate in rates)
    return (TrainedOn(arm == "opened", each),)


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

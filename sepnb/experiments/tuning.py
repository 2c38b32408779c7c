"""Tunings of a trained model: choose the best of several on validation data."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from ..models import LanguageModel
from ..training.config import TrainingConfig
from ..training.loop import Diverged
from .run import Fingerprint, Metrics, Rows

TunedModel = tuple[LanguageModel, list[float]]
"""A tuned model, and the losses of the tuning, in nats."""


def best_of(
    tried: Callable[[Metrics], Iterable[TrainingConfig]],
    tuned: Callable[[TrainingConfig], TunedModel],
    scored: Callable[[LanguageModel], dict[str, float]],
    *,
    unit: str,
    nats: float = 1.0,
) -> tuple[LanguageModel | None, Metrics, Rows]:
    """The model of the best tuning on validation data, its metrics, and a row of the kind "tuning" for each;
    a tuning that diverged has a row without a score, and if all did, the model is None.

    Args:
        tried: yields the tunings; called with the metrics, which hold the rate of the best one so far.
        tuned: returns a tuned model and its losses; may raise `Diverged`.
        scored: returns the scores of a tuned model; the least first score is best.
        unit, nats: the unit of the losses in the rows, and how many nats it is.
    """
    least, best, metrics, rows = inf, None, {}, []
    for tuning in tried(metrics):
        row: dict[str, Any] = {"kind": "tuning", "learning_rate": tuning.learning_rate}
        try:
            model, losses = tuned(tuning)
        except Diverged as error:
            rows.append(row | {"diverged_at_step": error.step})
            continue
        scores = scored(model)
        ends = {f"first_{unit}": losses[0] / nats, f"last_{unit}": losses[-1] / nats}
        rows.append(row | ends | scores)
        if (score := next(iter(scores.values()))) < least:
            least, best = score, model
            metrics |= {"tuning_rate": tuning.learning_rate, f"val_{unit}": score}
    return best, metrics, rows


def first_losses(
    tuned: Callable[..., TunedModel], tuning: TrainingConfig, steps: int, **how: Any
) -> Fingerprint:
    """The losses of the first `steps` of a tuning, as a part of a fingerprint; `tuned` is called with it and
    `how`."""
    return {"tuning_losses": tuned(tuning, stop_after=steps, **how)[1]}

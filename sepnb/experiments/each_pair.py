"""Chapter 14: which pair of RoPE does which work? One pair of a model is stopped, or slowed down alone.

A run takes a trained model of `stretched_mqar` or `stretched_latest_value` whose heads have two, four or
eight pairs, and leaves the weights alone. Inside the trained length L it stops one pair at a time in every
head: the pair then compares content, and no position. In texts of 16 L it divides the frequencies of one pair
by 16, of a pair and all slower ones, and of all pairs, with logits scaled by log n in every reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..encodings import LongRoPE
from ..encodings.context import LONGEST
from ..encodings.rope import RotaryQueryKey
from ..models import LanguageModel
from ..training.checkpoints import Checkpoint
from . import stretched, tasks
from .ladder_methods import waves_of
from .readings import LOG_ONLY
from .run import HERE, At, Fingerprint, Found, Measure, Run, restored
from .stretched import about_the_training, on_a_shared_training
from .task_grid import TaskExperiment

FURTHER = 16
"""Trained lengths of the longer texts, and by how much pairs are slowed down in them."""
STOPPED, SLOWED, ALL = "stopped", "slowed", "slowed-all"


def divided(model: LanguageModel, *divisors: float, **more: Any) -> LanguageModel:
    """The same weights, with the frequency of each pair divided by its divisor.

    Raises:
        ValueError: a model without RoPE, or another number of divisors than it has pairs.
    """
    alone = LongRoPE(divisors, divisors, factor=1, original_length=model.config.max_length)
    return model.extended(extension=alone, **more)


def pairs_of(model: LanguageModel) -> int:
    """The pairs of a head that turn.

    Raises:
        ValueError: a model without RoPE.
    """
    turning = [wave for wave in waves_of(model.config) if isinstance(wave, RotaryQueryKey)]
    if not turning:
        raise ValueError("the model has no RoPE, so no pair of its heads turns; give one that has")
    return len(turning[0].inv_freq)


@dataclass(frozen=True)
class EachPair(Measure):
    """The answers that a trained model finds with one pair stopped, and in longer texts with one pair slowed
    down. Pairs are counted from the fastest, 1."""

    def resolved(self) -> dict[str, Any]:
        return {"each_pair": {"times": FURTHER}}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        pairs = pairs_of(model)

        def one(divisor: float, pair: int) -> list[float]:
            return [divisor if each == pair else 1.0 for each in range(1, pairs + 1)]

        def ways(times: int) -> Iterator[tuple[str, LanguageModel]]:
            yield "native", model
            if times == 1:
                for pair in range(1, pairs + 1):
                    yield f"{STOPPED}-{pair}", divided(model, *one(LONGEST, pair))
                return
            yield LOG_ONLY, model.extended(log_scale=True)
            for pair in range(1, pairs + 1):
                yield f"{SLOWED}-{pair}", divided(model, *one(times, pair), log_scale=True)
            for first in range(2, pairs):  # of two pairs, the slow one has been read already
                divisors = [1.0 if each < first else times for each in range(1, pairs + 1)]
                yield f"{SLOWED}-from-{first}", divided(model, *divisors, log_scale=True)
            yield ALL, divided(model, *[float(times)] * pairs, log_scale=True)

        metrics, rows = tasks.asked(config, model, at.device, ways, (FURTHER,))
        return metrics | about_the_training(config, model, at.start), rows

    def begins(self, config: Run, start: Checkpoint, device: str, steps: int) -> Fingerprint:
        """The nats of the model whose pairs are all stopped."""
        model, samples = restored(config, start, device), config.data.held_out(config.training.length)
        still = divided(model, *[LONGEST] * pairs_of(model))
        return {"stopped_nats": [tasks.score(config, still, samples, device)["nats"]]}


def _planned(of: TaskExperiment, experiment: str, profile: str, method: str, seed: int) -> Run:
    return on_a_shared_training(
        of.sweep.best_run(experiment, profile, method, seed), EachPair(), (1, FURTHER)
    )


EXPERIMENTS = tuple(
    replace(
        of,
        name=f"each_pair_{of.task}",
        title=f"One pair of RoPE at a time: {of.title.partition(': ')[2]}",
        question="""Which pair of RoPE does a trained model need to find answers, and which pair has to be
            slowed down in a longer text?""",
        methods=("rope-partial", "rope-half", "rope"),
        smoke=("rope-partial",),
        other_seeds={},
        costs={"smoke": 3.0, "laptop": 110.0},
        plan=partial(_planned, of),
    )
    for of in stretched.EXPERIMENTS
    if of.task in ("mqar", "latest_value")
)

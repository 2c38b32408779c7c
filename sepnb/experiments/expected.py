"""Estimate, before runs start, how long they take on a GPU: from their operations, not from a table.

The multiply-adds of the training are counted, see `sepnb.analysis.flops`, without what some encodings add in
every layer. A GPU is assumed to reach a `SHARE` of its peak. A step of a small model does not fill it: it
takes at least `LEAST_STEP`, in which the processor launches its kernels. Other runs can use the GPU meanwhile
except for `LEAST_OF_GPU`: kernels of several processes take turns. Scoring is not counted.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from ..analysis import flops
from ..models import TransformerConfig
from .base import Experiment
from .run import Run

BYTES = 256
"""Answers of the read-out, the most that a model has."""
SHARE = 0.25
LEAST_STEP, LEAST_OF_GPU = 0.01, 0.003
"""Seconds; the second measured on an H100 with 8 to 15 runs of `needle` and `mqar` side by side."""
PEAK = 1.56e14
"""Multiply-adds a second of a GPU that is not at hand: 312 TFLOPS, an A100 in bfloat16."""


class Expected(NamedTuple):
    """The seconds in which a run occupies the whole GPU, and those that it takes by itself."""

    gpu: float
    alone: float


def multiply_adds(config: Run) -> float:
    """Multiply-adds of the whole training, forward and backward."""
    training = config.training
    each = _per_token(config.model, config.tokens, training.batch_size)
    return 3 * each * training.steps * training.batch_size * config.tokens


@cache
def _per_token(model: TransformerConfig, tokens: int, batch: int) -> float:
    read_out = model.streams.widths["sem"] * BYTES
    return flops.per_token(flops.counted(model), tokens, batch) + read_out


def of_run(experiment: Experiment, config: Any, peak: float = PEAK) -> Expected:
    """What one run is expected to take, on a GPU of this peak where it is one of the gpu profile. A run that
    trains no `TransformerConfig` takes what its experiment says."""
    if config.profile != "gpu" or not isinstance(config, Run):
        seconds = float(experiment.seconds(config.profile))
        return Expected(0.0, seconds)
    steps = config.training.steps
    gpu = max(multiply_adds(config) / (SHARE * peak), LEAST_OF_GPU * steps)
    return Expected(gpu, max(gpu, LEAST_STEP * steps))


def together(runs: Iterable[Expected], side_by_side: int, gpus: int = 1) -> float:
    """Seconds of all runs, so many at a time on each of the GPUs."""
    runs = list(runs)
    gpu, alone = (sum(one) for one in zip(*runs, strict=True)) if runs else (0.0, 0.0)
    return max(gpu, alone / side_by_side) / gpus

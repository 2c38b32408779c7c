"""Chapter 13: does the result of `stretched_mqar` hang on the reading that was chosen, or on log n alone?

A run takes the trained model of `stretched_mqar` and asks it in texts of 16 L by each of `READINGS`, as it
was trained, and with its logits scaled by log n while positions stay as they were trained.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from ..models import LanguageModel
from . import tasks
from .readings import LOG_ONLY, read_by
from .run import HERE, At, Found, Run
from .score_terms import READ
from .stretched import MAIN, Slowed, about_the_training, plan

TIMES = (1, 16)


@dataclass(frozen=True)
class EveryReading(Slowed):
    """The answers that a trained model finds by every reading, and by log n alone."""

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        def ways(times: int) -> Iterator[tuple[str, nn.Module]]:
            yield "native", model
            if times > 1:
                yield LOG_ONLY, model.extended(log_scale=True)
                yield from ((name, read_by(model, name, times)) for name in self.readings)

        metrics, rows = tasks.asked(config, model, at.device, ways, TIMES[1:])
        return metrics | about_the_training(config, model, at.start), rows


EXPERIMENT = replace(
    READ,
    name="every_reading",
    title="Every way to slow positions down: recall",
    question="""Does it hang on the way in which positions are slowed down which models recall further, and
        does it take slower positions at all, or log n alone?""",
    methods=MAIN,
    costs={"smoke": 4.0, "laptop": 100.0},
    plan=partial(plan, READ.sweep, EveryReading(), TIMES),
)

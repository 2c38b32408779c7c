"""Experiments on texts: every method is trained at its size and at the rate of its sweep, then looked at."""

from collections.abc import Mapping
from typing import Any, ClassVar

from ..models import LanguageModel
from ..records.store import Record
from . import language_modelling as lm
from .base import Progress
from .methods import run_of, series
from .sweep import Sweep, Swept


class TextExperiment(Swept):
    """An experiment whose runs are language models. A subclass declares its methods, sizes and sweeps; what a
    run holds beside a training, it adds in `config`; what it asks of the trained model, in `look`."""

    sizes: ClassVar[Mapping[str, lm.Size]] = lm.SIZES
    sweeps: ClassVar[tuple[Sweep, ...]]
    reads_test: ClassVar[bool] = True
    """Whether a run scores the test text; what chooses a method must not."""
    every: ClassVar[int | None] = None
    """Steps after which a long training is kept, see `resuming`; None: it is short, and kept nowhere."""

    def swept(self, method: str) -> tuple[Sweep, str]:
        """The sweep that a rate is read from, and its method there: the method itself, or the nearest of its
        bases that was swept.

        Raises:
            ValueError: an unknown method, or one of which nothing was swept.
        """
        for one in series(method):
            for sweep in self.sweeps:
                if one.name in sweep.methods:
                    return sweep, one.name
        raise ValueError(
            f"{method!r} has no learning rate in {self.name}: neither it nor a base of it was swept; its "
            f"methods are {', '.join(self.methods)}"
        )

    def training_of(
        self, profile: str, method: str, seed: int, steps: int | None = None
    ) -> lm.LanguageModelRun:
        """The training of a method and seed, over the whole schedule or over `steps`."""
        sweep, swept = self.swept(method)
        rate = sweep.rate(profile, swept)
        run = run_of(self.name, profile, method, seed, rate, steps, sizes=self.sizes)
        return sweep.settled(profile, swept, run)

    def config(self, profile: str, cell: Any, seed: int) -> lm.LanguageModelRun:
        return self.training_of(profile, cell, seed)

    def looks(self, config: Any) -> int:
        """How many steps of progress `look` reports."""
        return 0

    def look(
        self, config: Any, model: LanguageModel, *, device: str, progress: Progress | None
    ) -> tuple[lm.Metrics, lm.Rows]:
        """What else is asked of the trained model, in metrics and rows; of one that diverged, nothing."""
        return {}, []

    def sweep_of(self, config: Any) -> tuple[Sweep, str]:
        return self.swept(config.method)

    def run(self, config: Any, *, device: str = "cpu", progress: Progress | None = None) -> Record:
        self.refuse(config)
        steps = config.training.steps
        total = steps + self.looks(config)

        def report(before: int) -> Progress | None:
            return None if progress is None else lambda done, _: progress(before + done, total)

        return lm.run(
            config,
            device=device,
            progress=report(0),
            test=self.reads_test,
            every=self.every,
            after=lambda model: self.look(config, model, device=device, progress=report(steps)),
        )

    def fingerprint(self, config: Any, *, device: str = "cpu") -> dict[str, list[float]]:
        return lm.fingerprint(config, device=device)

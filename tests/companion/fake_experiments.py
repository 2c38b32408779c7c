"""Experiments that take no time, in a module of their own so that worker processes can import them."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sepnb.data import registry
from sepnb.records.store import Record

MADE = {"started": "2026-11-21T10:00:00+00:00", "torch": "2.13.0", "device_name": "a processor"}
"""What every record must tell of its making."""


@dataclass(frozen=True)
class FakeRun:
    method: str
    seed: int
    profile: str = "laptop"

    @property
    def key(self) -> str:
        return f"{self.method}-seed{self.seed}"

    @property
    def label(self) -> str:
        return self.method

    def resolved(self) -> dict[str, Any]:
        return {"method": self.method}


@dataclass(frozen=True)
class Fake:
    """`slow` seconds per run; a method called `broken` fails; `drift` moves the fingerprint.

    `needs` are its data sets. With `log`, each run that starts adds its key to that file.
    """

    name: str = "fake"
    methods: tuple[str, ...] = ("a", "b")
    slow: float = 0.0
    drift: float = 0.0
    dirty: bool = False
    needs: tuple[str, ...] = ()
    log: Path | None = None
    order: int = 0
    chooses: bool = False
    alone: bool = False

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[FakeRun]:
        return [FakeRun(method, seed) for seed in (seeds or (1, 2)) for method in self.methods]

    def seconds(self, profile: str) -> float:
        return self.slow

    def data_sets(self, profile: str) -> tuple[str, ...]:
        return self.needs

    def fingerprint(self, config: FakeRun, *, device: str = "cpu") -> dict[str, list[float]]:
        if config.method == "broken":
            raise RuntimeError("no such layer")
        return {"first_losses": [5.5 + config.seed, (5.4 + config.seed) * (1 + self.drift)]}

    def runs_here(self, profile: str) -> bool:
        return True

    def refuse(self, config: FakeRun) -> None:
        """There is nothing to wait for."""

    def run(self, config: FakeRun, *, device: str = "cpu", progress: Any = None) -> Record:
        if self.log:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(config.key + "\n")
        steps = 10
        for step in range(steps):
            time.sleep(self.slow / steps)
            if progress:
                progress(step + 1, steps)
        facts = {"seed": config.seed, "dirty": self.dirty, "device": device, "cpu_s": self.slow, **MADE}
        facts["data"] = {name: registry.get(name).sha256 for name in self.needs}
        metrics = {"loss": 1.0 + config.seed}
        first = self.fingerprint(config, device=device)
        return Record(self.name, "laptop", config.key, config.resolved(), metrics, [], first, facts)

    @staticmethod
    def poisoned_if_odd(job: int, report: Any) -> int:
        """A job that ends the use of a GPU to its process where its number is odd: what comes later in the
        same process fails too. It tells its process."""
        import torch

        if job % 2:
            os.environ["POISONED"] = "1"
        if "POISONED" in os.environ:
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")
        return os.getpid()

    @staticmethod
    def met_by_four(folder: Path, report: Any) -> str:
        """A job that waits until four processes are at work, and tells the GPU that its own sees."""
        (folder / str(os.getpid())).touch()
        end = time.monotonic() + 120
        while len(list(folder.iterdir())) < 4:
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.05)
        return os.environ["CUDA_VISIBLE_DEVICES"]

    @staticmethod
    def killed_if_odd(job: int, report: Any) -> int:
        """A job whose process dies under it where its number is odd."""
        if job % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return job


@dataclass(frozen=True)
class Large(FakeRun):
    batch_size: int = 64


@dataclass(frozen=True)
class OnGpu(Fake):
    """Its first steps take a CPU too long, and a GPU rounds them otherwise."""

    rounding: float = 0.0

    def grid(self, profile, seeds=None):
        return [Large("a", seed, "gpu") for seed in (seeds or (1, 2))] if profile == "gpu" else []

    def fingerprint(self, config, *, device="cpu", steps=5):
        assert device == "cuda" or config.batch_size <= 4, "this would take minutes"
        rounded = (config.seed + config.batch_size) * (1 + self.rounding + self.drift)
        return {"first_losses": [rounded] * steps}

    def run(self, config, **how):
        return replace(super().run(config, **how), profile="gpu")

"""Chapter 20: what it costs to read a long text, up to 32,768 tokens in one piece.

A run is one reader at one length: a model of the size of its profile that reads one text without gradients.
It is timed in turns with the dense sinusoidal model, and with itself on the same tokens as four texts of a
quarter of the length. What a token costs is the same in both where a reader sees a fixed number of keys; were
attention all that takes time, the one text would take four times as long.

Weights are drawn: what a reading costs does not depend on them. Memory is counted and not timed: the most
bytes of tensors that live at once in one reading, weights and position tables made before it aside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..analysis.flops import per_token
from ..analysis.memory import MemoryWatch
from ..models import LanguageModel, TransformerConfig
from ..training.device import autocast
from ..validation import one_of
from . import language_modelling as lm
from .methods import model_config
from .run import Metrics
from .timed import Ratios, Steps, TimedRun, Times, built, timed

REFERENCE = "sinusoidal"


class Reader(NamedTuple):
    """What a reader is, its method, and whether it has a window or its position tables made beforehand."""

    says: str
    method: str
    window: bool = False
    tables: bool = False


_READERS = {
    REFERENCE: Reader("dense, sinusoidal", REFERENCE),
    "rope": Reader("dense, RoPE", "rope"),
    "rope-window": Reader("dense, RoPE behind a window of the trained length", "rope", window=True),
    "alibi": Reader("dense, ALiBi", "alibi"),
    "separated": Reader("separated, sinusoidal", "separated-sinusoidal"),
    "strict": Reader("strict, sinusoidal", "strict-sinusoidal"),
    "strict-tables": Reader("strict, position tables made beforehand", "strict-sinusoidal", tables=True),
}
READERS = {name: one.says for name, one in _READERS.items()}
"""What each is, by name."""

PARTS = 4
LENGTHS = {"smoke": (128,), "laptop": (2048, 8192, 32_768), "gpu": (2048, 8192, 32_768)}
REPEATS = {"smoke": 9, "laptop": 9, "gpu": 15}
SHARED = 10**9
"""A batch so large that what is made once for all of it costs a sequence nothing."""


@dataclass(frozen=True, kw_only=True)
class ReadingCostRun(TimedRun):
    """One cell.

    Args:
        reader: one of `READERS`.

    Raises:
        ValueError: an unknown reader, a length that is no multiple of `PARTS`, and what `TimedRun` refuses.
    """

    reader: str

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("reader", self.reader, READERS)
        if self.length % PARTS:
            raise ValueError(f"length is {self.length}; it is cut into {PARTS}, give a multiple of that")

    @property
    def method(self) -> str:
        return f"{self.reader}-at-{self.length}"

    @property
    def label(self) -> str:
        return f"{READERS[self.reader]}, N={self.length:,}"

    @property
    def cell(self) -> str:
        return f"b{self.batch_size}"

    def model(self, reader: str) -> TransformerConfig:
        """The model of a reader, at the size of the profile."""
        size, of = lm.SIZES[self.profile], _READERS[reader]
        config = model_config(of.method, size)
        return replace(config, window=size.length) if of.window else config

    @property
    def made_before(self) -> bool:
        """Whether the position tables are there before the text is read."""
        return _READERS[self.reader].tables

    def resolved(self) -> dict[str, Any]:
        return super().resolved() | {"model": self.model(self.reader).resolved()}

    def steps(self, device: str = "cpu") -> Steps:
        """The reader on the text, and on its quarters side by side; the reference on the text, unless the
        reader is it."""
        text = self.tokens(self.length, device)
        steps = {
            "whole": self.reading(self.reader, text),
            "quarters": self.reading(self.reader, text.reshape(-1, self.length // PARTS)),
        }
        if self.reader != REFERENCE:
            steps["reference"] = self.reading(REFERENCE, text)
        return steps

    def reading(self, reader: str, tokens: Tensor) -> Callable[[], Tensor]:
        """One pass over tokens `[B, N]` without gradients, to logits `[B, N, V]`."""
        device = tokens.device.type
        model = built(LanguageModel, self.model(reader), self.seed, device).eval()
        with torch.no_grad(), autocast(device, self.precision):
            made = reader == self.reader and self.made_before
            tables = model.position_tables(tokens.shape[-1]) if made else None

        def read() -> Tensor:
            with torch.no_grad(), autocast(device, self.precision):
                return model(tokens, tables=tables)

        return read

    def products(self, reader: str, length: int) -> float:
        """Multiply-adds of the blocks for one token of a text of this length, read alone."""
        made = reader == self.reader and self.made_before
        return per_token(self.model(reader), length, SHARED if made else 1)

    def ratios(self, times: Times) -> Ratios:
        speed = {"speed": ("reference", "whole")} if "reference" in times else {}
        return {"growth": ("whole", "quarters"), **speed}

    def counted(self, times: Times, steps: Steps) -> Metrics:
        with MemoryWatch() as watch:
            steps["whole"]()
        ours, quarter = self.products(self.reader, self.length), self.length // PARTS
        metrics: Metrics = {
            "length": self.length,
            "reading_s": median(times["whole"]),
            "growth_limit": ours / self.products(self.reader, quarter),
            "peak_mb": watch.peak / 1e6,
        }
        if "reference" in times:
            metrics["speed_limit"] = self.products(REFERENCE, self.length) / ours
        return metrics

    def fingerprint(self, device: str) -> dict[str, list[float]]:
        """The mean square of the logits of the first tokens, for each of eight stretches."""
        begin = self.tokens(self.length, device)[:1, : min(self.length, 512)]
        logits = self.reading(self.reader, begin)().float()
        return {"logits": logits.square().mean(dim=(0, 2)).unflatten(0, (8, -1)).mean(dim=1).tolist()}


def cells(profile: str, _: Sequence[str]) -> list[dict[str, Any]]:
    settings = {"repeats": REPEATS[profile], "precision": lm.SIZES[profile].precision, "batch_size": 1}
    return [
        {"reader": reader, "length": length, **settings} for length in LENGTHS[profile] for reader in READERS
    ]


EXPERIMENT = timed(
    ReadingCostRun,
    cells,
    name="reading_cost",
    title="The cost of reading a long text",
    question="What does it cost to read a text of 32,768 tokens in one piece, in time and in memory?",
    costs={"smoke": 0.5, "laptop": 240.0, "gpu": 15.0},
)

"""Chapter 17: which bytes of the test novels profit from far context? A model that nothing else is compared
with chooses them once, and every model is then scored on them.

The selector has T5's biases, which no compared model has, and is trained on long windows of the training
novels. Of the test novels it reads all six blocks, once with all that a window holds before a byte and once
with one trained length of it; see `sepnb.evaluation.key_tokens`. Its rate is that of T5 in `encoding_screen`,
which was swept on shorter texts and for fewer steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .. import paths
from ..evaluation import evaluate, sliding
from ..evaluation.context import with_replaced_context, with_shuffled_context
from ..evaluation.key_tokens import apart, drawn_bytes, found, key_bytes, listed
from ..evaluation.long_windows import BLOCKS, LongWindows
from ..evaluation.losses import Losses
from ..evaluation.protocols import Protocol, sliding_windows
from ..models import LanguageModel
from ..records.store import Store, digest
from . import encoding_methods, methods
from . import language_modelling as lm
from .base import Progress
from .extrapolation import Extrapolation, ExtrapolationRun, trained_long
from .scale_sweep import ScaleSweep, scale_of

SHARE = 0.02
"""Of the bytes that stand a trained length or more into a window, those chosen."""

NEAR = 8
"""Bytes of context: whoever gains little from more than these knows little of a text that is far."""

SELECTOR = "t5-long"
METHODS = methods.listed(trained_long("t5"))

DRAWN = "drawn"
"""In the place of the digest of a list: bytes drawn at random, in smoke runs, which publish nothing."""


def windows_of(config: ExtrapolationRun) -> LongWindows:
    """The windows of a run's blocks on which key bytes are read: the scope "part"."""
    held = config.passages()
    at = held.scopes["part"]
    return LongWindows(held.tokens[at], held.documents[at], {}, starts=held.starts[at])


def names_of(config: ExtrapolationRun) -> list[str]:
    return [document.name for document in config.held_out.documents]


@dataclass(frozen=True)
class SelectorRun(ExtrapolationRun):
    """The training of the selector, and the share of the bytes that it chooses."""

    share: float

    @property
    def readings(self) -> tuple[Protocol, ...]:
        """A long and a short context."""
        _, coarse, _ = sliding_windows(self.beyond.length)
        return Protocol("native"), replace(coarse, scope="part")


class KeyBytes(Extrapolation):
    """Which bytes of the test text does a model trained on long windows predict better from eight trained
    lengths than from one?"""

    name = "key_bytes"
    chooses = True
    title = "Bytes that profit from far context"
    order = 9
    sweeps = (encoding_methods.SCREEN,)
    methods = tuple(METHODS)
    smoke = methods
    seeds = (7,)
    shown = ()
    runs = SelectorRun

    def config(self, profile: str, cell: str, seed: int) -> SelectorRun:
        run = self.training_of(profile, cell, seed)
        return SelectorRun(**vars(run), beyond=self.beyond(profile), blocks=tuple(range(BLOCKS)), share=SHARE)

    def look(
        self, config: SelectorRun, model: LanguageModel, *, device: str, progress: Progress | None
    ) -> tuple[lm.Metrics, lm.Rows]:
        held, length = windows_of(config), config.beyond.length
        texts = held.tokens, held.documents
        native, coarse = config.readings
        long = native.losses(model, *texts, **config.how(device, config.beyond.longest))
        short = coarse.losses(model, *texts, **config.how(device, length))
        marked = key_bytes(short.bits, long.bits, share=config.share, first=length)
        metrics: lm.Metrics = {"key_bytes": int(marked.sum())}
        for name, one in (("long", long), ("window", short)):
            metrics[f"key/{name}"], metrics[f"rest/{name}"] = apart(one, marked, length)
        return metrics, listed(marked, held, names_of(config))

    def published(self, profile: str) -> Mapping[str, list[int]] | None:
        """The list of a profile by document, from the records published with the code; None where there is
        none, as of smoke."""
        (config,) = self.grid(profile)
        path = Store(paths.root() / "results").path(profile, self.name, config.key)
        there = profile != "smoke" and path.exists()
        return _listed(path, path.stat().st_mtime_ns) if there else None

    def digest(self, profile: str) -> str:
        """Which list the runs of a profile are scored on: a part of their keys."""
        keys = self.published(profile)
        return DRAWN if keys is None else digest(keys)[:12]

    def require(self, profile: str) -> None:
        """Refuse to train for a record what has no list to be scored on. Of smoke runs nothing is published.

        Raises:
            ValueError: no list is published; the message says how it comes about.
        """
        if profile != "smoke" and self.published(profile) is None:
            raise ValueError(
                f"no published record says which bytes are key bytes for {profile!r}; run "
                f"`sepnb run {self.name} --profile {profile}` and commit what it writes"
            )


@lru_cache(maxsize=8)
def _listed(path: Path, stamp: int) -> Mapping[str, list[int]]:
    """The list in a record, read again once the file has changed."""
    rows = Store(path.parents[2]).read(path).rows
    return {row["document"]: row["offsets"] for row in rows if row["kind"] == "key"}


class Scales:
    """At which scale positions are drawn, or the content to which they are added: by sweeps at this size, of
    the method itself or of the nearest of its bases that scales the same; of two sweeps, by the first."""

    def __init__(self, *sweeps: ScaleSweep) -> None:
        self.sweeps = sweeps

    def of(self, method: str) -> tuple[ScaleSweep, str] | None:
        """The sweep and its method whose scale a method takes; None of one that has nothing to scale."""
        scale = scale_of(methods.model_config(method, lm.SIZES["smoke"]))
        pairs = ((sweep, base.name) for base in methods.series(method) for sweep in self.sweeps)
        tried = ((sweep, base) for sweep, base in pairs if base in sweep.methods)
        return next(((sweep, base) for sweep, base in tried if scale and sweep.scale(base) is scale), None)

    def settled(self, profile: str, method: str, config: lm.LanguageModelRun) -> lm.LanguageModelRun:
        """The config with its tables drawn so."""
        if (nearest := self.of(method)) is None:
            return config
        sweep, base = nearest
        return sweep.settled(profile, base, config)

    def require(self, profile: str, method: str) -> None:
        """Refuse, as a sweep does, where the scale is not chosen yet."""
        if (nearest := self.of(method)) is not None:
            sweep, base = nearest
            sweep.require(profile, base)


@dataclass(frozen=True)
class KeyedRun(ExtrapolationRun):
    """A run that is also scored on key bytes; `keys` says by which list."""

    keys: str

    @property
    def rule(self) -> str | None:
        """What is read of a table past its rows: the last one. Any other encoding has its own rule."""
        return "clamp" if self.encoding == "learned" else None


class Keyed(Extrapolation):
    """What a subclass asks of each model, and what it loses at the key bytes where far context is replaced,
    shuffled or not seen."""

    selector: ClassVar[KeyBytes]
    tables: ClassVar["Scales"]
    runs: ClassVar[type[KeyedRun]] = KeyedRun
    describes_tables = False
    shown = ()

    def training_of(
        self, profile: str, method: str, seed: int, steps: int | None = None
    ) -> lm.LanguageModelRun:
        """As in every experiment, with learned tables drawn at the scale that was chosen for them."""
        return self.tables.settled(profile, method, super().training_of(profile, method, seed, steps))

    def blocks(self, profile: str, seed: int) -> tuple[int, ...]:
        """The blocks of text that a seed reads."""
        raise NotImplementedError

    def config(self, profile: str, cell: str, seed: int) -> KeyedRun:
        return self.runs(
            **vars(self.training_of(profile, cell, seed)),
            beyond=self.beyond(profile),
            blocks=self.blocks(profile, seed),
            keys=self.selector.digest(profile),
        )

    def refuse(self, config: KeyedRun) -> None:
        super().refuse(config)
        self.tables.require(config.profile, config.method)
        self.selector.require(config.profile)

    def looks(self, config: KeyedRun) -> int:
        return len(config.readings) + 1

    def look(
        self, config: KeyedRun, model: LanguageModel, *, device: str, progress: Progress | None
    ) -> tuple[lm.Metrics, lm.Rows]:
        metrics, rows = super().look(config, model, device=device, progress=progress)
        more, gained = at_key_bytes(config, model, self.selector.published(config.profile), device=device)
        if progress is not None:
            progress(self.looks(config), self.looks(config))
        return metrics | more, rows + gained


def at_key_bytes(
    config: KeyedRun, model: LanguageModel, keys: Mapping[str, list[int]] | None, *, device: str = "cpu"
) -> tuple[lm.Metrics, lm.Rows]:
    """What a model pays at the key bytes and at all others, and what far context gives it.

    Metrics, in bits per byte:

    - `key/<how>` and `rest/<how>`, of bytes a trained length or more into a window, with how = `long` (all of
      the window before a byte), `window` (a sliding window), `replaced` and `shuffled` (far context of
      another novel, and its own words in another order);
    - `gain/<k>x` and `shuffled/<k>x`, what replacing and shuffling cost in the bin that ends at k trained
      lengths: rows of the kinds "gain" and "shuffled";
    - `beyond/8`, what more than 8 bytes of context give within the trained length.
    """
    held, length = windows_of(config), config.beyond.length
    texts = held.tokens, held.documents
    reader = model if config.rule is None else model.extended(config.rule)
    _, coarse, _ = sliding_windows(length)
    how = config.how(device, config.beyond.longest)
    recent = {"recent": length, "stride": length // 2}
    native = Protocol("native", extrapolator=config.rule).losses(model, *texts, **how)
    read = {
        "long": native,
        "window": coarse.losses(model, *texts, **config.how(device, length)),
        "replaced": with_replaced_context(reader, *texts, **recent, **how),
        "shuffled": with_shuffled_context(reader, *texts, **recent, **how),
    }
    if keys is None:
        marked = drawn_bytes(native.bits.shape, share=SHARE, first=length)
    else:
        marked = found(keys, held, names_of(config))
    metrics: lm.Metrics = {}
    for name, losses in read.items():
        metrics[f"key/{name}"], metrics[f"rest/{name}"] = apart(losses, marked, length)
    rows: lm.Rows = []
    for kind, name in (("gain", "replaced"), ("shuffled", "shuffled")):
        cost = Losses(read[name].bits - native.bits, native.documents)
        bins = cost.by_position(config.beyond.edges[1:])
        rows += [{"kind": kind, **row} for row in bins]
        metrics |= {f"{kind}/{row['stop'] // length}x": row["bits_per_byte"] for row in bins}
    metrics[f"beyond/{NEAR}"] = beyond_near(model, held.tokens[:, : length + 1], config.how(device, length))
    return metrics, rows


def beyond_near(model: LanguageModel, windows: np.ndarray, how: Mapping[str, Any]) -> float:
    """What more than `NEAR` bytes of context give a model, in bits per byte of windows `[n, L+1]`."""
    near = sliding(model, windows, window=NEAR, stride=1, **how).bits
    return float((near - evaluate(model, windows, **how).bits)[:, NEAR:].mean())

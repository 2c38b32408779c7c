"""Chapter 12: which bytes of the test novels profit from far context? A model that nothing else is compared
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
from typing import Any

import numpy as np

from .. import paths
from ..evaluation import evaluate, sliding
from ..evaluation.context import with_replaced_context, with_shuffled_context
from ..evaluation.key_tokens import apart, drawn_bytes, found, key_bytes, listed
from ..evaluation.long_windows import BLOCKS, Beyond
from ..evaluation.protocols import Protocol, sliding_windows
from ..models import LanguageModel
from ..records.store import Store, digest
from . import ablation, encoding_methods, methods
from . import language_modelling as lm
from .budget import BUDGETS, sizes_of
from .extrapolation import BEYOND as OF_NOVELS
from .extrapolation import TIMES, trained_long
from .long_windows import LongTexts, costs
from .run import HERE, At, Found, Measure, Metrics, Run
from .texts import TextExperiment

SHARE = 0.02
"""Of the bytes that stand a trained length or more into a window, those chosen."""

NEAR = 8
"""Bytes of context: a model that gains little from more than these hardly uses far text."""

METHODS = methods.listed(trained_long("t5"))

SIZES = sizes_of(BUDGETS[-1]) | {"smoke": ablation.SIZES["smoke"]}
BEYOND = OF_NOVELS | {
    "laptop": Beyond(64, TIMES, documents=20, windows=9, part=9, tight=20, batch_bytes=2048),
}
"""Of the models that are compared. Every novel is read byte by byte: 20 windows a seed."""

DRAWN = "drawn"
"""In the place of the digest of a list: bytes drawn at random, in smoke runs, which publish nothing."""


def names_of(texts: LongTexts, config: Run) -> list[str]:
    return [document.name for document in texts.held_out(config).documents]


@dataclass(frozen=True)
class Chosen(Measure):
    """The bytes that the selector chooses.

    Args:
        texts: what it reads, with a long and with a short context.
    """

    texts: LongTexts

    def resolved(self) -> dict[str, Any]:
        return self.texts.resolved() | {"share": SHARE}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        texts, length = self.texts, self.texts.beyond.length
        held = texts.part(config)
        native, coarse = texts.readings
        read = held.tokens, held.documents
        long = native.losses(model, *read, **texts.how(config, at.device, texts.beyond.longest))
        short = coarse.losses(model, *read, **texts.how(config, at.device, length))
        marked = key_bytes(short.bits, long.bits, share=SHARE, first=length)
        metrics: Metrics = {"key_bytes": int(marked.sum())}
        for name, one in (("long", long), ("window", short)):
            metrics[f"key/{name}"], metrics[f"rest/{name}"] = apart(one, marked, length)
        return metrics, listed(marked, held, names_of(texts, config))


def choosing(run: Run) -> tuple[Measure, ...]:
    """The selector reads all blocks, with a long and a short context."""
    beyond = BEYOND[run.profile]
    _, coarse, _ = sliding_windows(beyond.length)
    readings = Protocol("native"), replace(coarse, scope="part")
    return lm.INSIDE, Chosen(LongTexts(beyond, tuple(range(BLOCKS)), readings))


EXPERIMENT = TextExperiment(
    name="key_bytes_small",
    title="Bytes that profit from far context, for shorter windows",
    question="""Which bytes of the test text does a model trained on long windows predict better from eight
        trained lengths than from one?""",
    chooses=True,
    order=9,
    sizes=SIZES,
    sweeps=(encoding_methods.SCREEN,),
    methods=tuple(METHODS),
    smoke=tuple(METHODS),
    seeds=(7,),
    costs={"smoke": 4.0, "laptop": 600.0},
    measures=choosing,
)


def published(profile: str) -> Mapping[str, list[int]] | None:
    """The list of a profile by document, from the records published with the code; None where there is none,
    as of smoke."""
    (config,) = EXPERIMENT.grid(profile)
    path = Store(paths.root() / "results").path(profile, EXPERIMENT.name, config.key)
    there = profile != "smoke" and path.exists()
    return _listed(path, path.stat().st_mtime_ns) if there else None


def digest_of(profile: str) -> str:
    """Which list the runs of a profile are scored on: a part of their keys."""
    keys = published(profile)
    return DRAWN if keys is None else digest(keys)[:12]


def require(config: Run) -> None:
    """Refuse to train for a record what has no list to be scored on. Of smoke runs nothing is published.

    Raises:
        ValueError: no list is published; the message says how it comes about.
    """
    if config.profile != "smoke" and published(config.profile) is None:
        raise ValueError(
            f"no published record says which bytes are key bytes for {config.profile!r}; run "
            f"`sepnb run {EXPERIMENT.name} --profile {config.profile}` and commit what it writes"
        )


@lru_cache(maxsize=8)
def _listed(path: Path, stamp: int) -> Mapping[str, list[int]]:
    """The list in a record, read again once the file has changed."""
    rows = Store(path.parents[2]).read(path).rows
    return {row["document"]: row["offsets"] for row in rows if row["kind"] == "key"}


@dataclass(frozen=True)
class AtKeyBytes(Measure):
    """What a model pays at the key bytes and at all others, and what far context gives it.

    Metrics, in bits per byte:

    - `key/<how>` and `rest/<how>`, of bytes a trained length or more into a window, with how = `long` (all of
      the window before a byte), `window` (a sliding window), `replaced` and `shuffled` (far context of
      another novel, and its own words in another order);
    - `gain/<k>x` and `shuffled/<k>x`, what replacing and shuffling cost in the bin that ends at k trained
      lengths: rows of the kinds "gain" and "shuffled";
    - `beyond/8`, what more than 8 bytes of context give within the trained length.

    Args:
        texts: what is read.
        keys: the list of the bytes, by its digest.
        rule: what is read of a table past its rows; None: the encoding's own rule.
    """

    texts: LongTexts
    keys: str
    rule: str | None = None

    looks = 1

    def resolved(self) -> dict[str, Any]:
        return {"keys": self.keys}

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        held, of, length = self.texts.part(config), self.texts, self.texts.beyond.length
        texts = held.tokens, held.documents
        reader = model if self.rule is None else model.extended(self.rule)
        _, coarse, _ = sliding_windows(length)
        short, how = of.how(config, at.device, length), of.how(config, at.device, of.beyond.longest)
        recent = {"recent": length, "stride": length // 2}
        native = Protocol("native", extrapolator=self.rule).losses(model, *texts, **how)
        read = {
            "long": native,
            "window": coarse.losses(model, *texts, **short),
            "replaced": with_replaced_context(reader, *texts, **recent, **how),
            "shuffled": with_shuffled_context(reader, *texts, **recent, **how),
        }
        if (keys := published(config.profile)) is None:
            marked = drawn_bytes(native.bits.shape, share=SHARE, first=length)
        else:
            marked = found(keys, held, names_of(of, config))
        metrics: Metrics = {}
        for name, losses in read.items():
            metrics[f"key/{name}"], metrics[f"rest/{name}"] = apart(losses, marked, length)
        rows = costs("gain", read["replaced"], native, of.beyond.edges[1:])
        rows += costs("shuffled", read["shuffled"], native, of.beyond.edges[1:])
        metrics |= {f"{row['kind']}/{row['stop'] // length}x": row["bits_per_byte"] for row in rows}
        metrics[f"beyond/{NEAR}"] = beyond_near(model, held.tokens[:, : length + 1], short)
        at.done(1)
        return metrics, rows


def keyed(run: Run, texts: LongTexts) -> tuple[Measure, ...]:
    """What is read of long texts, and what of it at the key bytes: of a table by its last row."""
    rule = "clamp" if run.model.encodings[0].name == "learned" else None
    return lm.INSIDE, texts, AtKeyBytes(texts, digest_of(run.profile), rule)


def beyond_near(model: LanguageModel, windows: np.ndarray, how: Mapping[str, Any]) -> float:
    """What more than `NEAR` bytes of context give a model, in bits per byte of windows `[n, L+1]`."""
    near = sliding(model, windows, window=NEAR, stride=1, **how).bits
    return float((near - evaluate(model, windows, **how).bits)[:, NEAR:].mean())

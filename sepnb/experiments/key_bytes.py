"""Chapter 12: which bytes of the test novels profit from far context? A model that nothing else is compared
with chooses them once, and every model is then scored on them.

The selector has T5's biases, which no compared model has, and is trained on long windows of the training
novels. Of the test novels it reads all six blocks, once with all that a window holds before a byte and once
with one trained length of it; see `sepnb.evaluation.key_tokens`. Its rate is that of T5 in `encoding_screen`,
which was swept on shorter texts and for fewer steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import paths
from ..evaluation import evaluate, sliding
from ..evaluation.context import with_replaced_context, with_shuffled_context
from ..evaluation.key_tokens import apart, drawn_bytes, found, key_bytes, listed
from ..evaluation.long_windows import BLOCKS, Beyond
from ..evaluation.losses import Losses
from ..evaluation.protocols import Protocol, sliding_windows
from ..models import LanguageModel
from ..records.store import Store, digest
from . import encoding_methods, methods
from . import language_modelling as lm
from .extrapolation import trained_long
from .long_windows import LongTexts
from .run import HERE, At, Found, Measure, Metrics, Rows, Run
from .texts import TextExperiment

SHARE = 0.02
"""Of the bytes that stand a trained length or more into a window, those chosen."""

NEAR = 8
"""Bytes of context: whoever gains little from more than these knows little of a text that is far."""

SELECTOR = "t5-long"
METHODS = methods.listed(trained_long("t5"))

DRAWN = "drawn"
"""In the place of the digest of a list: bytes drawn at random, in smoke runs, which publish nothing."""


def names_of(texts: LongTexts, config: Run) -> list[str]:
    return [document.name for document in texts.held_out(config).documents]


@dataclass(frozen=True)
class Chosen(Measure):
    """The bytes that the selector chooses.

    Args:
        texts: what it reads, with a long and with a short context.
        share: how many of the bytes.
    """

    texts: LongTexts
    share: float = SHARE

    def resolved(self) -> dict[str, Any]:
        return self.texts.resolved() | {"share": self.share}

    @property
    def looks(self) -> int:
        return self.texts.looks

    def __call__(self, config: Run, model: LanguageModel, at: At = HERE) -> Found:
        texts, length = self.texts, self.texts.beyond.length
        held = texts.part(config)
        native, coarse = texts.readings
        read = held.tokens, held.documents
        long = native.losses(model, *read, **texts.how(config, at.device, texts.beyond.longest))
        short = coarse.losses(model, *read, **texts.how(config, at.device, length))
        marked = key_bytes(short.bits, long.bits, share=self.share, first=length)
        metrics: Metrics = {"key_bytes": int(marked.sum())}
        for name, one in (("long", long), ("window", short)):
            metrics[f"key/{name}"], metrics[f"rest/{name}"] = apart(one, marked, length)
        return metrics, listed(marked, held, names_of(texts, config))


def choosing(beyond: Mapping[str, Beyond], run: Run) -> tuple[Measure, ...]:
    """The selector reads all blocks, with a long and a short context."""
    read = beyond[run.profile]
    _, coarse, _ = sliding_windows(read.length)
    readings = Protocol("native"), replace(coarse, scope="part")
    return lm.INSIDE, Chosen(LongTexts(read, tuple(range(BLOCKS)), readings))


def selector(beyond: Mapping[str, Beyond], **about: Any) -> TextExperiment:
    """The experiment that chooses the key bytes of one size of model.

    Args:
        beyond: what is read, by profile.
        about: name, title, costs, and the sizes.
    """
    return TextExperiment(
        **about,
        question="""Which bytes of the test text does a model trained on long windows predict better from
            eight trained lengths than from one?""",
        chooses=True,
        order=9,
        sweeps=(encoding_methods.SCREEN,),
        methods=tuple(METHODS),
        smoke=tuple(METHODS),
        seeds=(7,),
        measures=partial(choosing, beyond),
    )


def published(selector: TextExperiment, profile: str) -> Mapping[str, list[int]] | None:
    """The list of a profile by document, from the records published with the code; None where there is none,
    as of smoke."""
    (config,) = selector.grid(profile)
    path = Store(paths.root() / "results").path(profile, selector.name, config.key)
    there = profile != "smoke" and path.exists()
    return _listed(path, path.stat().st_mtime_ns) if there else None


def digest_of(selector: TextExperiment, profile: str) -> str:
    """Which list the runs of a profile are scored on: a part of their keys."""
    keys = published(selector, profile)
    return DRAWN if keys is None else digest(keys)[:12]


def require(selector: TextExperiment, config: Run) -> None:
    """Refuse to train for a record what has no list to be scored on. Of smoke runs nothing is published.

    Raises:
        ValueError: no list is published; the message says how it comes about.
    """
    if config.profile != "smoke" and published(selector, config.profile) is None:
        raise ValueError(
            f"no published record says which bytes are key bytes for {config.profile!r}; run "
            f"`sepnb run {selector.name} --profile {config.profile}` and commit what it writes"
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
        selector: the experiment that chose the bytes.
        keys: by which list of it.
        rule: what is read of a table past its rows; None: the encoding's own rule.
    """

    texts: LongTexts
    selector: TextExperiment
    keys: str
    rule: str | None = None

    def resolved(self) -> dict[str, Any]:
        return {"keys": self.keys}

    @property
    def looks(self) -> int:
        return 1

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
        if (keys := published(self.selector, config.profile)) is None:
            marked = drawn_bytes(native.bits.shape, share=SHARE, first=length)
        else:
            marked = found(keys, held, names_of(of, config))
        metrics: Metrics = {}
        for name, losses in read.items():
            metrics[f"key/{name}"], metrics[f"rest/{name}"] = apart(losses, marked, length)
        rows: Rows = []
        for kind, name in (("gain", "replaced"), ("shuffled", "shuffled")):
            cost = Losses(read[name].bits - native.bits, native.documents)
            bins = cost.by_position(of.beyond.edges[1:])
            rows += [{"kind": kind, **row} for row in bins]
            metrics |= {f"{kind}/{row['stop'] // length}x": row["bits_per_byte"] for row in bins}
        metrics[f"beyond/{NEAR}"] = beyond_near(model, held.tokens[:, : length + 1], short)
        at.done(1, 1)
        return metrics, rows


def keyed(run: Run, texts: LongTexts, selector: TextExperiment) -> tuple[Measure, ...]:
    """What is read of long texts, and what of it at the key bytes: of a table by its last row."""
    rule = "clamp" if run.model.encodings[0].name == "learned" else None
    return lm.INSIDE, texts, AtKeyBytes(texts, selector, digest_of(selector, run.profile), rule)


def beyond_near(model: LanguageModel, windows: np.ndarray, how: Mapping[str, Any]) -> float:
    """What more than `NEAR` bytes of context give a model, in bits per byte of windows `[n, L+1]`."""
    near = sliding(model, windows, window=NEAR, stride=1, **how).bits
    return float((near - evaluate(model, windows, **how).bits)[:, NEAR:].mean())

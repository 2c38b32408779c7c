"""Every encoding with its default options and with others, and a small model of each for the shared tests."""

from collections.abc import Callable

import torch
from torch import Tensor

from sepnb import encodings
from sepnb.analysis.memory import MemoryWatch
from sepnb.encodings import Encoding, Site, coordinates
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.streams import Streams

from .drawn import F64, TIGHT, loud

N, HEADS, WIDTH, LENGTH, VOCABULARY = 9, 4, 32, 128, 11
STREAMS = {
    "dense": (Streams.dense(WIDTH), {}),
    "straddling": (Streams(pos=12, sem=20), {"readout": "both"}),
    "strict": (Streams(pos=8, sem=24), {"mode": "strict"}),
    "untied": (Streams(pos=8, sem=24), {"query_key": "untied"}),
}
TWELVE = Streams.dense(48)
"""Of twelve heads: no power of two, of which ALiBi makes an exception, with slopes that have no float32."""
OPTIONS: dict[str, tuple[dict, ...]] = {
    "sinusoidal": (
        {"layout": "halves"},
        {"layout": "halves-endpoint", "base": 100.0},
        {"columns": 6},
        {"columns": 3, "copies": 2},
        {"directions": 3},
        {"period": 5},
    ),
    "learned": ({"per_layer": True}, {"site": "query_key"}),
    "rope": (
        {"layout": "interleaved", "base": 100.0},
        {"partial": 0.5},
        {"p": 0.5},
        {"extension": encodings.PositionInterpolation(4.0)},
        {"partial": 0.5, "shared": True},
    ),
    "xpos": ({"layout": "interleaved", "base": 100.0, "scale_base": 64.0, "gamma": 0.2},),
    "phase": ({"longest": 20.0, "waves": 3},),
    "tupe": ({"columns": 6},),
    "axial-rope": ({"layout": "interleaved", "base": 100.0},),
    "t5": ({"per_layer": True}, {"n_buckets": 8, "max_distance": 20, "bidirectional": True}, {"scale": 1.0}),
    "kerple": ({"form": "power"}, {"per_layer": False}),
    "sandwich": ({"width": 10, "base": 100.0},),
    "fire": ({"threshold": 60.0, "hidden": 5}, {"per_layer": False}),
    "shaw": ({"clip": 2, "per_head": True}, {"values": False}),
    "transformer-xl": ({"base": 100.0},),
    "distance-aware": ({"gate": "added"}, {"relu": False}),
    "cope": ({"gate": "scaled", "n_positions": 3},),
    "seqpe": (
        {"site": "input", "width": 12, "layers": 1, "heads": 2, "base": 3, "digits": 9},
        {"site": "add"},
        {"site": "multiply", "per_layer": True},
        {"factor": 0.5, "per_layer": True},
    ),
}
"""Beside its defaults, what else an encoding of this book is tested with; others say it as `tried`."""


def _cases(axes: int | None) -> dict[str, Encoding]:
    found = {}
    for name in encodings.names(axes):
        for options in ({}, *OPTIONS.get(name, ()), *encodings.build(name).tried):
            told = ", ".join(
                f"{key}={value if isinstance(value, bool | int | float | str) else type(value).__name__}"
                for key, value in options.items()
            )
            found[f"{name} ({told})" if options else name] = encodings.build(name, **options)
    return found


CASES = _cases(None)
ON_TEXTS = _cases(1)
"""Those whose positions are indices."""

NAMES = encodings.names(axes=1)
KINDS = ("none", "learned", "rope", "alibi", "shaw", "cope")
"""One of each way to act: not at all, at the input, a rotation, a bias, scores and values, a count."""
IN_SHAPES = [(name, "dense") for name in NAMES]
IN_SHAPES += [(name, shape) for shape in list(STREAMS)[1:] for name in KINDS]
"""What meets every encoding in one shape, and every shape in one encoding of each kind."""


def model(encoding: str | Encoding, shape: str = "dense", **fields) -> LanguageModel:
    """Two layers in float64, every parameter drawn large enough to matter."""
    streams, more = (TWELVE, {"n_heads": 12}) if shape == "twelve heads" else STREAMS[shape]
    encoding = encodings.build(encoding) if isinstance(encoding, str) else encoding
    alone = Site.INPUT in encoding.sites or shape in ("dense", "twelve heads")
    axes = 1 if encoding.axes is None or 1 in encoding.axes else encoding.axes[0]
    settings = {"max_length": LENGTH, "axes": axes, **more, **fields}
    torch.manual_seed(0)
    heads = settings.pop("n_heads", HEADS)
    config = TransformerConfig(streams, 2, heads, encoding if alone else ("sinusoidal", encoding), **settings)
    return loud(LanguageModel(config, VOCABULARY).to(F64))


def one_full_pass(reader: LanguageModel, at: Tensor, positions: Tensor | None, monkeypatch) -> None:
    """Through a cache, with the weights recorded, and by few rows of queries at a time: the same answer."""
    full, cache, axes = reader(at, positions), reader.make_cache(2), reader.config.axes
    pieces = [
        reader(at[:, a:b], None if positions is None else coordinates.cut(positions, a, b, axes), cache)
        for a, b in ((0, 5), (5, 6), (6, N))
    ]
    torch.testing.assert_close(torch.cat(pieces, dim=1), full, **TIGHT)
    with frozen_attention(reader):
        torch.testing.assert_close(reader(at, positions), full, **TIGHT)
    with monkeypatch.context() as patch:
        patch.setattr("sepnb.models.fast.pieces.AT_ONCE", 100)
        torch.testing.assert_close(reader(at, positions), full, **TIGHT)


def same_gradients(make: Callable[[], LanguageModel], shared: Tensor) -> None:
    """They reach every parameter, and are the same where each sequence has these positions for itself."""
    outcomes = []
    for positions in (shared, shared.expand(2, *shared.shape)):
        made = make()
        made(tokens(), positions).square().mean().backward()
        outcomes.append({key: parameter.grad for key, parameter in made.named_parameters()})
    for key, gradient in outcomes[0].items():
        assert gradient is not None and gradient.isfinite().all() and gradient.abs().max() > 0, key
        torch.testing.assert_close(outcomes[1][key], gradient, **TIGHT)


def peak_of(made: LanguageModel, length: int, positions: Tensor | None, monkeypatch) -> int:
    """Bytes that a pass without gradients holds at once, at the most."""
    monkeypatch.setattr("sepnb.models.fast.pieces.AT_ONCE", 2**14)
    monkeypatch.setattr(encodings.fire.FireScore, "at_once", 2**14)
    with torch.no_grad(), MemoryWatch() as watch:
        made(torch.zeros(1, length, dtype=torch.int64), positions)
    return watch.peak


def heard(encoding: Encoding, at: Tensor) -> Tensor:
    """Positions `[N]` or `[B, N]` as the encoding takes them: on several axes points of no line, and where it
    counts tokens consecutive ones from the same start."""
    if encoding.axes is not None and 1 not in encoding.axes:
        return torch.stack([at, (at * 5) % 7], dim=-1)
    return at[..., :1] + torch.arange(at.shape[-1]) if encoding.counts_tokens else at


def tokens(batch: int = 2, length: int = N) -> Tensor:
    return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))

"""Every public function refuses bad arguments itself: a ValueError or TypeError of its own, within a second.

A door is a function with arguments that it takes. Each argument in turn is replaced by everything that
`spoiled` makes of it; what the function takes all the same stands in `TAKEN`. A new public name is one row of
`DOORS`.
"""

import contextlib
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sepnb
from sepnb import encodings, seqpe
from sepnb.encodings import distance_aware_scores, shaw_output, shaw_scores, transformer_xl_scores
from sepnb.evaluation import tasks
from sepnb.extrapolators import extrapolate
from sepnb.models import LanguageModel, TransformerConfig, load, save
from sepnb.protocol import probe
from sepnb.seqpe.losses import nearest
from sepnb.streams import BlockDiagonalLinear, StreamMLP, StreamNorm, Streams

SECONDS = 1.0
torch.zeros(1, device="meta").double().sin()  # the first such call loads what it needs
B, H, N, M, D = 2, 3, 4, 5, 6
QUERIES, KEYS = torch.arange(1, M), torch.arange(M)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def through(module: type) -> Callable:
    """The module built, and called."""
    return lambda x, **options: module(**options)(x)


def rotated(extension: type) -> Callable:
    return lambda length, **options: encodings.rope_frequencies(
        8, extension=extension(**options), length=length
    )


def seqpe_encoder(positions: object, **options: object) -> Tensor:
    return seqpe.SequentialPositionEncoder(**options)(positions)


WRITER = LanguageModel(TransformerConfig(Streams(pos=2, sem=6), 1, 2, "sinusoidal"), 5)
FOLDER = tempfile.TemporaryDirectory()
"""Where models are kept, the file `7` among them, whose name a path may be."""


def in_folder(call: Callable) -> Callable:
    """The function, run where it may write."""

    def run(**arguments: object) -> object:
        with contextlib.chdir(FOLDER.name):
            return call(**arguments)

    return run


save(WRITER, Path(FOLDER.name, "7"))


Q, K, V = noise(B, H, N, D), noise(B, H, M, D), noise(B, H, M, D)
BLOCKS = {
    "streams": Streams(pos=2, sem=4),
    "x": noise(2, 6),
    "expansion": 2,
    "split": True,
    "outputs": ("sem",),
}
AT = {"query_positions": QUERIES, "key_positions": KEYS}
STRETCHED = {"factor": 4.0, "original_length": 128, "length": 200}
TABLE = {"table": noise(6, 4), "positions": torch.arange(4, 9), "form": "corrected"}
LEARNED = {"hidden": 4, "steps": 1, "seed": 1, "protocol": "masked", "activation": "relu"}
EXTRAPOLATED: dict[str, dict[str, Any]] = {
    "fourier": {"n_components": 2, "pick": "lowest", "per_dimension": True},
    "learned": LEARNED,
    "sinusoidal": {"align": "procrustes", "per_dimension": False},
    "alibi": {"tau": 2.0},
    "zero": {"everywhere": True},
    "interpolate": {"length": 9},
}

SAMPLES = {"n": 2, "length": 60, "seed": 3}

DOORS: dict[str, tuple[Callable, dict[str, Any]]] = {
    "Streams": (lambda pos, sem: Streams(pos=pos, sem=sem), {"pos": 2, "sem": 4}),
    "Streams.dense": (Streams.dense, {"d_model": 4}),
    "Streams.split": (Streams(pos=2, sem=4).split, {"x": noise(2, 6)}),
    "Streams.select": (Streams(pos=2, sem=4).select, {"names": ("sem",)}),
    "BlockDiagonalLinear": (
        through(BlockDiagonalLinear),
        BLOCKS | {"bias": True, "contraction": 1, "reduction": 1},
    ),
    "StreamNorm": (
        through(StreamNorm),
        {"streams": BLOCKS["streams"], "x": BLOCKS["x"], "kind": "rms", "split": True, "eps": 1e-5},
    ),
    "StreamMLP": (through(StreamMLP), BLOCKS | {"activation": "swiglu", "bias": False}),
    "sinusoidal": (
        encodings.sinusoidal,
        {"positions": KEYS, "dim": 6, "base": 100.0, "layout": "halves", "dtype": torch.float64},
    ),
    "rope_frequencies": (
        encodings.rope_frequencies,
        {"dim": 8, "base": 100.0, "extension": encodings.NTKAware(2.0), "length": 10, "p": 0.5},
    ),
    "apply_rope": (
        encodings.apply_rope,
        {
            "x": noise(2, M, 6),
            "positions": KEYS,
            "inv_freq": torch.tensor([1.0, 0.1, 0.01], dtype=torch.float64),
            "layout": "half",
            "attention_factor": 1.5,
        },
    ),
    "PositionInterpolation": (encodings.PositionInterpolation, {"factor": 4.0}),
    "NTKAware": (encodings.NTKAware, {"factor": 4.0}),
    "DynamicNTK": (rotated(encodings.DynamicNTK), STRETCHED),
    "NTKByParts": (rotated(encodings.NTKByParts), STRETCHED | {"alpha": 1, "beta": 32}),
    "YaRN": (
        rotated(encodings.YaRN),
        STRETCHED | {"beta_fast": 32, "beta_slow": 1, "ramp": "dimension"},
    ),
    "Llama3": (rotated(encodings.Llama3), STRETCHED | {"low_freq_factor": 1, "high_freq_factor": 4}),
    "alibi_slopes": (encodings.alibi_slopes, {"n_heads": 6, "dtype": torch.float64}),
    "alibi_bias": (encodings.alibi_bias, {"slopes": noise(H)} | AT),
    "t5_buckets": (
        encodings.t5_buckets,
        {"relative": -KEYS, "n_buckets": 8, "max_distance": 20, "bidirectional": True},
    ),
    "shaw_scores": (shaw_scores, {"q": Q, "k": K, "key_table": noise(5, D), "clip": 2}),
    "shaw_output": (
        shaw_output,
        {"weights": noise(B, H, N, M), "v": V, "value_table": noise(5, D), "clip": 2},
    ),
    "transformer_xl_scores": (
        transformer_xl_scores,
        {"q": Q, "k": K, "r": noise(H, M, D), "u": noise(H, D), "v": noise(H, D)},
    ),
    "distance_aware_gate": (
        encodings.distance_aware_gate,
        {"distance": KEYS.float(), "w": noise(H), "v": noise(H)},
    ),
    "distance_aware_gate, numbers": (
        encodings.distance_aware_gate,
        {"distance": 2.0, "w": -0.5, "v": 0.5},
    ),
    "distance_aware_scores": (
        distance_aware_scores,
        {"q": Q, "k": K, "w": noise(H), "v": 0.5, "gate": "added", "relu": False} | AT,
    ),
    "names": (encodings.names, {"axes": 2}),
    "build": (encodings.build, {"name": "rope", "base": 100.0, "layout": "half", "partial": 0.5}),
    "build, t5": (
        encodings.build,
        {"name": "t5", "n_buckets": 8, "max_distance": 20, "bidirectional": True, "std": 0.1, "scale": 1.0},
    ),
    **{
        f"extrapolate, {method}": (extrapolate, TABLE | {"method": method} | options)
        for method, options in EXTRAPOLATED.items()
    },
    "digits, one": (seqpe.digits, {"positions": KEYS, "base": 3, "width": 4}),
    "digits, points": (seqpe.digits, {"positions": torch.ones(3, 2).long(), "base": 3, "width": (4, 2)}),
    "SequentialPositionEncoder": (
        seqpe_encoder,
        {"positions": torch.ones(3, 2).long(), "width": 8, "dims": 2, "base": 3, "digits": 2}
        | {"layers": 1, "heads": 2, "out_features": 3, "dropout": 0.0, "std": 0.5},
    ),
    "contrastive_loss": (
        seqpe.contrastive_loss,
        {"anchors": noise(N, D), "candidates": noise(N, M, D), "scale": 0.5}
        | {"anchor_positions": torch.ones(N, 2).long(), "candidate_positions": torch.ones(N, M, 2).long()},
    ),
    "distillation_loss": (
        seqpe.distillation_loss,
        {"teacher": noise(B, N, D), "student": noise(B, N, D), "n_heads": 2}
        | {"reduction": "row", "beta": 0.5, "scale": 1.0},
    ),
    "nearest": (nearest, {"anchors": torch.ones(N).long(), "candidates": torch.ones(N, M).long()}),
    "TransformerConfig.from_resolved": (
        TransformerConfig.from_resolved,
        {"resolved": WRITER.config.resolved()},
    ),
    "LanguageModel.generate": (
        WRITER.generate,
        {"tokens": torch.ones(2, 3).long(), "n": 2, "temperature": 0.7, "top_k": 3, "seed": 1, "cache": None},
    ),
    "save": (in_folder(save), {"model": WRITER, "path": Path("model.safetensors")}),
    "load": (in_folder(load), {"path": Path("7")}),
    "mqar": (tasks.mqar, SAMPLES | {"keys": 4, "values": 4, "noise": 3, "pairs": 2}),
    "latest_value": (tasks.latest_value, SAMPLES | {"keys": 3, "writes": 4}),
    "needle": (
        tasks.needle,
        SAMPLES | {"text": np.zeros(200, np.uint8), "depth": 0.25, "needles": 2, "queries": 2},
    ),
    "indirect_index": (tasks.indirect_index, SAMPLES),
    "occurrence": (tasks.occurrence, SAMPLES),
    "ordered_copy": (tasks.ordered_copy, SAMPLES),
    "questions": (
        tasks.questions,
        SAMPLES
        | {"task": 1, "length": 80, "split": "test", "statements": 4, "data_set": "simulated-stories"},
    ),
}


def follower(tokens: Tensor) -> Tensor:
    """A model that expects the next number of eight."""
    return torch.nn.functional.one_hot((tokens + 1) % 8, 8).float()


DOORS["probe"] = (
    probe,
    {"model": follower, "text": np.arange(30 * 32 + 1) % 8, "trained_length": 16, "times": (1, 2)}
    | {"reference": follower, "device": "cpu"},
)

NOTHING = object()
SPOILT = {
    "None": None,
    "str": "7",
    "list": [1.5],
    "dict": {},
    "object": NOTHING,
    "True": True,
    "False": False,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "-1": -1,
    "0": 0,
    "0.5": 0.5,
    "1.5": 1.5,
    "2**62": 2**62,
    "-2**62": -(2**62),
    "10**5000": 10**5000,
    "1e300": 1e300,
    "1j": 1j,
    "array": np.array([1, 2]),
    "tensor": torch.tensor([1, 2]),
    "type": int,
}


def spoiled(valid: object) -> Iterator[tuple[str, object]]:
    """What is put in the place of a valid argument, with a name for it."""
    yield from ((name, value) for name, value in SPOILT.items() if value is not valid)
    if not isinstance(valid, Tensor):
        return
    yield "complex", valid.to(torch.complex64)
    yield "bool", valid > 0
    yield "sparse", valid.to_sparse()
    yield "meta", valid.to("meta")
    yield "one dimension more", valid[None]
    yield "one dimension less", valid[0]
    yield "no dimension", valid.flatten()[0]
    for axis in range(valid.dim()):
        yield f"axis {axis} longer", torch.cat([valid, valid.narrow(axis, 0, 1)], dim=axis)
        yield f"axis {axis} empty", valid.narrow(axis, 0, 0)
    if valid.is_floating_point():
        yield "another dtype", valid.to(torch.float16)
        yield "integers", valid.long()
    else:
        yield "floats", valid.double()
        yield "nan", valid.double().fill_(torch.nan)
        yield "negative", -1 - valid
        yield "huge", valid + 2**62


NUMBERS = {"0.5", "1.5", "2**62", "1e300"}
SIGNED = NUMBERS | {"-1", "0", "-2**62"}
BATCHES = {"one dimension more", "one dimension less", "axis 0 longer", "axis 0 empty"}
INDICES = BATCHES | {"no dimension", "tensor"}
ROWS = {"one dimension more", "axis 0 longer", "axis 0 empty", "negative", "tensor"}

TASKS = ("mqar", "latest_value", "indirect_index", "occurrence", "ordered_copy")

TAKEN: dict[str, dict[str, set[str]]] = {
    "Streams": {"pos": {"0"}, "sem": {"0"}},
    "Streams.split": {"x": BATCHES | {"another dtype", "meta"}},
    "Streams.select": {"names": {"None", "dict"}},
    "BlockDiagonalLinear": {"x": BATCHES, "split": {"False"}, "bias": {"False"}, "outputs": {"None"}},
    "StreamNorm": {"x": BATCHES, "split": {"False"}, "eps": NUMBERS | {"0"}},
    "StreamMLP": {"x": BATCHES, "split": {"False"}, "bias": {"True"}, "outputs": {"None"}},
    "sinusoidal": {
        "positions": INDICES | {"floats", "negative", "meta"},
        "base": NUMBERS - {"0.5"},
        "dtype": {"None"},
    },
    "rope_frequencies": {
        "base": NUMBERS - {"0.5"},
        "extension": {"None"},
        "length": {"None"},
        "p": {"None"},
    },
    "apply_rope": {
        "x": BATCHES | {"another dtype"},
        "positions": {"floats", "negative"},
        "inv_freq": {"another dtype"},
        "attention_factor": NUMBERS,
    },
    "PositionInterpolation": {"factor": {"1.5"}},
    "NTKAware": {"factor": {"1.5"}},
    "DynamicNTK": {"factor": {"1.5"}},
    "NTKByParts": {
        "factor": {"1.5"},
        "length": {"None"},
        "alpha": {"0", "0.5", "1.5"},
        "beta": {"1.5"},
    },
    "YaRN": {
        "factor": {"1.5"},
        "length": {"None"},
        "beta_slow": {"0.5", "1.5"},
        "beta_fast": {"1.5"},
    },
    "Llama3": {
        "factor": {"1.5"},
        "length": {"None"},
        "low_freq_factor": {"0", "0.5", "1.5"},
        "high_freq_factor": {"1.5"},
    },
    "alibi_bias": {
        "slopes": {"axis 0 longer", "axis 0 empty", "another dtype"},
        "query_positions": ROWS,
        "key_positions": ROWS,
    },
    "t5_buckets": {"relative": INDICES | {"negative", "huge", "meta"}, "bidirectional": {"False"}},
    "shaw_scores": {"q": {"axis 2 longer", "axis 2 empty"}, "k": {"axis 2 longer"}},
    "shaw_output": {"weights": {"axis 2 longer", "axis 2 empty"}},
    "transformer_xl_scores": {"q": {"axis 2 longer", "axis 2 empty"}},
    "distance_aware_gate": {
        "distance": SIGNED | INDICES | {"another dtype", "integers"},
        "w": SIGNED | {"one dimension less", "no dimension", "another dtype", "integers"},
        "v": SIGNED | {"one dimension less", "no dimension", "another dtype", "integers"},
    },
    "distance_aware_scores": {
        "w": SIGNED | {"one dimension less", "no dimension", "another dtype", "integers"},
        "v": SIGNED,
        "relu": {"True"},
        "query_positions": {"negative"},
        "key_positions": {"negative"},
    },
    "distance_aware_gate, numbers": {"w": {"tensor"}, "v": {"tensor"}},
    "names": {"axes": {"None"}},
    "build": {"base": NUMBERS - {"0.5"}, "partial": {"None"}},
    "build, t5": {"bidirectional": {"False"}, "std": NUMBERS | {"0"}, "scale": NUMBERS | {"None"}},
    "extrapolate": {
        "table": {"axis 0 longer", "axis 1 longer", "another dtype"},
        "positions": INDICES,
        "n_components": {"None"},
        "pick": {"None"},
        "steps": {"0"},
        "seed": {"0", "2**62"},
        "tau": NUMBERS,
        "everywhere": {"False"},
        "per_dimension": {"False"},
    },
    **{
        f"extrapolate, {method}": {"positions": {"huge"}}
        for method in EXTRAPOLATED
        if method != "interpolate"
    },
    "digits": {"positions": {"axis 0 longer", "axis 0 empty"}},
    "digits, one": {"positions": {"array", "tensor", "one dimension more"}},
    "SequentialPositionEncoder": {
        "positions": {"axis 0 longer", "axis 0 empty"},
        "heads": {"None"},
        "out_features": {"None"},
        "dropout": {"0", "0.5"},
        "std": NUMBERS | {"None"},
    },
    "contrastive_loss": {"scale": NUMBERS | {"None"}},
    "distillation_loss": {"beta": {"0"}, "scale": NUMBERS | {"None"}},
    "probe": {"reference": {"None"}, "device": {"None"}},
    "nearest": {"anchors": {"huge"}, "candidates": {"huge", "axis 1 longer"}},
    "LanguageModel.generate": {
        "tokens": {"axis 0 longer", "axis 1 longer"},
        "n": {"0"},
        "temperature": NUMBERS | {"0"},
        "top_k": {"None"},
        "seed": {"None", "0", "2**62"},
    },
    "save": {"path": {"str"}},
    "load": {"path": {"str"}},
    **{task: {"seed": {"0", "2**62", "10**5000"}} for task in TASKS},
    "needle": {"seed": {"0", "2**62", "10**5000"}, "depth": {"None", "0", "0.5"}},
    "questions": {"seed": {"0", "2**62", "10**5000"}, "statements": {"None"}},
}


def taken(door: str, argument: str) -> set[str]:
    """What a function takes in this place: for the part of its name before the comma, and for all of it."""
    return set().union(*(TAKEN.get(key, {}).get(argument, set()) for key in (door.split(",")[0], door)))


def outcome(call: Callable, arguments: dict[str, Any]) -> str:
    """How a call ends: "taken", "refused", or what is wrong about it."""
    start = time.process_time()
    try:
        call(**arguments)
        how = "taken"
    except (ValueError, TypeError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        own = Path(last.filename).is_relative_to(Path(sepnb.__file__).parent)
        how = "refused" if own and last.line.startswith("raise ") else f"{error!r} at {last.line}"
    except Exception as error:
        how = repr(error)
    return how if time.process_time() - start < SECONDS else f"{how}, after more than a second"


@pytest.mark.attack("every argument of every public function, one at a time")
@pytest.mark.parametrize("door", DOORS)
def test_bad_arguments_are_refused_in_words_of_our_own(door, unhooked):
    call, valid = DOORS[door]
    assert outcome(call, valid) == "taken"
    wrong = []
    for argument in valid:
        for name, value in spoiled(valid[argument]):
            expected = "taken" if name in taken(door, argument) else "refused"
            if (found := outcome(call, valid | {argument: value})) != expected:
                wrong.append(f"{argument}: {name}: {found}")
    assert not wrong, "\n".join([door, *wrong])


def test_the_checks_break_no_graph_and_no_vmap(unhooked):
    x, at, (w, _) = noise(3, M, 6), torch.arange(3 * M).reshape(3, M), encodings.rope_frequencies(6)
    turned = encodings.apply_rope(x, at, w)
    compiled = torch.compile(encodings.apply_rope, backend="eager", fullgraph=True)
    assert torch.equal(compiled(x, at, w), turned)
    assert torch.equal(torch.vmap(lambda *one: encodings.apply_rope(*one, w))(x, at), turned)
    compiled = torch.compile(transformer_xl_scores, backend="eager", fullgraph=True)
    scores = DOORS["transformer_xl_scores"][1]
    assert torch.equal(compiled(**scores), transformer_xl_scores(**scores))

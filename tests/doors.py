"""The public functions with good arguments, and what else they take in the place of each.

A door is a function with arguments that it takes. `test_public_doors.py` replaces them. A new public name is
one row of `DOORS`; where its function takes a bad value, by the name it has there, stands in `TAKEN`.
"""

import contextlib
import tempfile
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sepnb import encodings, extrapolators, models, seqpe
from sepnb.data import text
from sepnb.data.text import Document, Text
from sepnb.encodings import distance_aware_scores, shaw_output, shaw_scores, transformer_xl_scores
from sepnb.evaluation import evaluate, sliding, tasks
from sepnb.extrapolators import extrapolate
from sepnb.models import (
    ImageClassifier,
    LanguageModel,
    TransformerConfig,
    load,
    load_adapter,
    save,
    save_adapter,
)
from sepnb.models.fast.packed import packed, rounded
from sepnb.protocol import probe
from sepnb.records.store import Record, Store
from sepnb.streams import BlockDiagonalLinear, StreamMLP, StreamNorm, Streams
from sepnb.training import Batch, TrainingConfig, adapt, train

from .shared import MADE

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


def in_folder(call: Callable, name: str = "") -> Callable:
    """The function, run where it may write."""

    def run(**arguments: object) -> object:
        with contextlib.chdir(Path(FOLDER.name, name)):
            return call(**arguments)

    return run


save(WRITER, Path(FOLDER.name, "7"))
TUNED = LanguageModel(WRITER.config, 5)
TUNED.load_state_dict(WRITER.state_dict())
torch.nn.init.ones_(TUNED.transformer.blocks[0].attention_norm.bias["pos"])
save_adapter(TUNED, WRITER, Path(FOLDER.name, "adapters", "7"))


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
LEARNED = {"hidden": 4, "steps": 1, "seed": 1, "protocol": "masked"}
EXTRAPOLATED: dict[str, dict[str, Any]] = {
    "fourier": {"n_components": 2, "pick": "lowest"},
    "learned": LEARNED,
    "sinusoidal": {"align": "procrustes"},
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
    "YaRN": (rotated(encodings.YaRN), STRETCHED | {"beta_fast": 32, "beta_slow": 1, "ramp": "dimension"}),
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
    "distance_aware_gate, numbers": (encodings.distance_aware_gate, {"distance": 2.0, "w": -0.5, "v": 0.5}),
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

CONFIG = TransformerConfig(Streams(pos=2, sem=6), 1, 2, "sinusoidal")
STRICT = LanguageModel(TransformerConfig(Streams(pos=4, sem=8), 1, 3, "sinusoidal", mode="strict"), 8).eval()
IMAGES = TransformerConfig(Streams(pos=4, sem=8), 1, 2, "sinusoidal", causal=False)
CLASSIFIER = ImageClassifier(IMAGES, 3, 2).eval()
PACKABLE = LanguageModel(TransformerConfig(Streams(pos=4, sem=8), 1, 3, "sinusoidal"))


def built(make: Callable, **fixed: object) -> Callable:
    """A constructor that is asked for some of its arguments only."""
    return lambda **options: make(**fixed | options)


def own_pattern(layer: int, heads: tuple[int, ...], pattern: Callable) -> Tensor:
    """A hook that changes nothing."""
    return pattern()


def inside(context: Callable) -> Callable:
    """A context for the length of one pass."""

    def once(**arguments: object) -> None:
        with context(**arguments):
            WRITER(torch.ones(2, 3).long())

    return once


def counting(n: int, length: int, *, seed: int) -> tasks.Samples:
    return tasks.mqar(n, length, seed=seed)


DOORS |= {
    "TransformerConfig": (
        TransformerConfig,
        {"streams": CONFIG.streams, "n_layers": 1, "n_heads": 2, "encoding": "sinusoidal"}
        | {"mode": "separated", "norm": "split", "readout": "sem", "max_length": 16}
        | {"causal": True, "expansion": 2, "activation": "gelu", "norm_kind": "rms", "bias": False}
        | {"embedding_std": 0.4, "tie_embeddings": False, "query_key": "joint", "split": ("norm", "mlp")}
        | {"pos_stream": "evolving", "n_kv_heads": 2, "dropout": 0.25, "axes": 1, "window": None},
    ),
    "LanguageModel": (LanguageModel, {"config": CONFIG, "vocab_size": 5}),
    "LanguageModel, a call": (
        WRITER,
        {"tokens": torch.ones(2, 3).long(), "positions": torch.arange(3), "cache": None},
    ),
    "LanguageModel.make_cache": (WRITER.make_cache, {"batch_size": 2, "length": 9}),
    "LanguageModel.extended": (
        WRITER.extended,
        {"extrapolator": "fourier", "form": "literal", "window": 3, "sinks": 1, "n_components": 2},
    ),
    "LanguageModel.extended, waves": (
        WRITER.extended,
        {"extension": encodings.NTKByParts(4.0, 128), "log_scale": True},
    ),
    "adapt": (
        built(adapt, steps=1, batch_size=2, learning_rate=0.1),  # see training/test_training.py
        {"model": WRITER.extended(extension=encodings.PositionInterpolation(2.0)), "part": "content"}
        | {"text": torch.arange(40) % 5, "length": 8, "seed": 3}
        | {"device": "cpu", "factors": (2, 3)},
    ),
    "save_adapter": (
        in_folder(save_adapter, "adapters"),
        {"model": TUNED, "base": WRITER, "path": Path("tuned")},
    ),
    "load_adapter": (in_folder(load_adapter, "adapters"), {"base": WRITER, "path": Path("7")}),
    "LanguageModel.position_tables": (STRICT.position_tables, {"positions": torch.arange(4)}),
    "ImageClassifier": (ImageClassifier, {"config": IMAGES, "n_classes": 3, "patch": 2, "channels": 1}),
    "ImageClassifier, a call": (CLASSIFIER, {"images": noise(2, 1, 4, 6), "positions": torch.arange(1, 7)}),
    "KVCache": (models.KVCache, {"batch_size": 2, "n_layers": 1, "length": 9, "axes": 1, "window": 3}),
    "packed": (packed, {"model": PACKABLE}),
    "rounded": (rounded, {"model": PACKABLE}),
    "answers": (tasks.answers, {"model": follower, "samples": tasks.mqar(2, 60, seed=3), "device": "cpu"}),
    "grid": (
        tasks.grid,
        {"model": follower, "task": counting, "lengths": (60, 70), "depths": (0.25, 0.75), "n": 2, "seed": 3}
        | {"device": "cpu"},
    ),
    **{
        f"extrapolate, {method}": (extrapolate, TABLE | {"method": method})
        for method in extrapolators.METHODS
        if method not in EXTRAPOLATED
    },
    "seam": (extrapolators.seam, {"table": noise(6, 4), "method": "clamp", "form": "corrected"}),
    "extrapolators.describe": (extrapolators.describe, {"table": noise(6, 4)}),
    "as_grid": (seqpe.as_grid, {"positions": torch.ones(3, 2).long()}),
    "base_of_longest_wave": (encodings.base_of_longest_wave, {"dim": 6, "length": 100}),
    "grid_sinusoidal": (
        encodings.grid_sinusoidal,
        {"positions": torch.ones(4, 2).long(), "dim": 8, "base": 100.0, "layout": "halves"},
    ),
    "axial_rope_frequencies": (encodings.axial_rope_frequencies, {"dim": 8, "base": 100.0, "dims": 2}),
    "apply_axial_rope": (
        encodings.apply_axial_rope,
        {"x": noise(2, M, 8), "positions": torch.ones(M, 2).long(), "dims": 2, "layout": "half"}
        | {"inv_freq": torch.tensor([1.0, 0.1], dtype=torch.float64)},
    ),
    "grid_positions": (
        lambda side, fit: encodings.grid_positions(side, 3, fit=fit),
        {"side": 2, "fit": (4, 6)},
    ),
    "apply_xpos": (
        encodings.apply_xpos,
        {"q": Q, "k": K, "base": 100.0, "layout": "half", "scale_base": 64.0, "gamma": 0.4} | AT,
    ),
    "xpos_scales": (
        encodings.xpos_scales,
        {"positions": KEYS, "dim": 6, "scale_base": 64.0, "gamma": 0.4, "centre": 2},
    ),
    "cope_positions": (encodings.cope_positions, {"logits": noise(B, H, N, M), "n_positions": 4}),
    "cope_scores": (encodings.cope_scores, {"q": Q, "k": K, "table": noise(4, D), "gate": "raw"}),
    "forgetting_bias": (encodings.forgetting_bias, {"logits": noise(B, H, M)}),
    "fire_ratio": (encodings.fire_ratio, {"c": torch.tensor(0.5), "threshold": torch.tensor(4.0)} | AT),
    "fire_bias": (
        encodings.fire_bias,
        {"c": torch.tensor(0.5), "threshold": torch.tensor(4.0), "hidden": noise(2, 4), "out": noise(H, 5)}
        | AT,
    ),
    "kerple_bias": (
        encodings.kerple_bias,
        {"r1": noise(H).abs(), "r2": noise(H).abs(), "form": "logarithmic"} | AT,
    ),
    "sandwich_bias": (encodings.sandwich_bias, {"n_heads": 3, "width": 8, "base": 100.0} | AT),
    "t5_bias": (encodings.t5_bias, {"table": noise(8, H), "max_distance": 20, "bidirectional": False} | AT),
    "phase_frequencies": (encodings.phase_frequencies, {"waves": 3, "longest": 64}),
    "phase_scores": (
        encodings.phase_scores,
        {"coefficients": noise(B, H, N, 3).to(torch.complex64), "frequencies": noise(3).abs()} | AT,
    ),
    "build_extension": (encodings.build_extension, {"name": "yarn", "factor": 4.0, "original_length": 128}),
    "RaisedBase": (encodings.RaisedBase, {"base": 100.0}),
    "LongRoPE": (
        rotated(encodings.LongRoPE),
        {"short": (1.0,) * 4, "long": (2.0,) * 4, "factor": 4.0, "original_length": 128, "length": 200},
    ),
    "how_on_axes": (encodings.how_on_axes, {"name": "rope", "axes": 2}),
    "on_axes": (encodings.on_axes, {"name": "learned", "axes": 2, "side": 4}),
    "attention_hook": (inside(models.attention_hook), {"model": WRITER, "hook": own_pattern}),
    "frozen_attention": (inside(models.frozen_attention), {"model": WRITER}),
    "compile_formulas": (models.compile_formulas, {"model": PACKABLE, "backend": "eager"}),
    "attention_weights": (
        models.attention_weights,
        {"q": Q, "k": K, "mask": None, "causal": True, "scale": 0.5},
    ),
}

NOVEL = Text("a novel", (Document("one", "somebody", np.arange(60, dtype=np.uint8) % 5),))
READ = np.arange(3 * 9).reshape(3, 9) % 5
SCORED = {"model": WRITER, "windows": READ, "device": "cpu", "precision": "float32", "batch_size": 2}
SCHEDULE = {"steps": 2, "batch_size": 2, "length": 8, "learning_rate": 1e-3}


def written(**fields: object) -> Path:
    """A record of these fields in a store."""
    return Store(Path(FOLDER.name, "store")).write(Record(**fields))


DOORS |= {
    "evaluate": (evaluate, SCORED | {"documents": np.zeros(3, int), "positions": np.arange(8)}),
    "sliding": (sliding, SCORED | {"window": 4, "stride": 2, "sinks": 1}),
    "windows": (text.windows, {"text": NOVEL, "length": 8, "limit_bytes": 32, "per_document": 24}),
    "sample_batches": (
        text.sample_batches,
        {"text": NOVEL, "batch_size": 2, "length": 8, "seed": 3, "steps": 2},
    ),
    "Batch": (
        Batch,
        {"inputs": np.eye(2, 3, dtype=int), "targets": np.ones((2, 3), int)}
        | {"positions": np.arange(3), "weights": np.eye(2, 3)},
    ),
    "TrainingConfig": (
        TrainingConfig,
        {
            **SCHEDULE,
            **{"warmup": 0.2, "weight_decay": 0.0, "clip": 2.0, "precision": "bfloat16"},
            **{"betas": (0.8, 0.9), "positions": None, "auxiliary": None},
        },
    ),
    "train": (
        train,
        {
            **{"model": LanguageModel(CONFIG, 5), "batches": repeat(READ[:2])},
            **{"config": TrainingConfig(**SCHEDULE), "device": "cpu", "start": 0, "stop_after": 1},
            **{"adamw": None, "auxiliary": None},
        },
    ),
    "Document": (Document, {"name": "one", "author": "somebody", "data": np.zeros(3, np.uint8)}),
    "Text": (Text, {"name": "a novel", "documents": NOVEL.documents}),
    "Store.write": (
        written,
        {
            **{"experiment": "mine", "profile": "laptop", "key": "one", "config": {}, "metrics": {}},
            **{"rows": [], "fingerprint": {}, "provenance": {"seed": 1, "commit": None, **MADE}},
        },
    ),
}

SIGNED = "attention_weights.scale centre distance distance_aware_gate.v distance_aware_scores.v w"
NUMBERS = f"""attention_factor TrainingConfig.clip embedding_std eps gamma learning_rate scale scale_base
    std tau temperature weight_decay {SIGNED}"""
COUNTS = """KVCache.axes KVCache.length LanguageModel.make_cache.length TrainingConfig.length batch_size
    limit_bytes n_layers per_document seed sinks steps stop_after window"""
ROWS = """apply_xpos.q apply_xpos.k coefficients distance images logits out positions key_positions
    query_positions relative slopes x"""
ANGLES = """sinusoidal.positions grid_sinusoidal.positions xpos_scales.positions apply_rope.positions
    apply_axial_rope.positions apply_xpos.key_positions apply_xpos.query_positions"""

TAKEN: dict[str, str] = {
    "None": """LanguageModel.positions LanguageModel.generate.seed ImageClassifier.positions
        KVCache.length KVCache.window LanguageModel.make_cache.length NTKByParts.length YaRN.length
        Llama3.length names.axes rope_frequencies.length TransformerConfig.split
        TransformerConfig.query_key StreamMLP.outputs BlockDiagonalLinear.outputs probe.device
        probe.reference attention_weights.scale build.scale contrastive_loss.scale distillation_loss.scale
        evaluate.positions Batch.positions backend depth depths documents dtype extension fit heads
        limit_bytes n_components n_kv_heads Streams.select.names out_features p partial per_document pick
        statements SequentialPositionEncoder.std stop_after top_k weights window""",
    "0": f"""LanguageModel.generate.n LanguageModel.position_tables.positions extrapolate.steps
        NTKByParts.alpha distillation_loss.beta depth dropout eps low_freq_factor pos seed sem sinks std
        temperature warmup weight_decay {SIGNED}""",
    "0.5": f"depth dropout warmup alpha beta_slow low_freq_factor {NUMBERS}",
    "1.5": f"""base factor alpha NTKByParts.beta beta_fast beta_slow low_freq_factor high_freq_factor
        {NUMBERS}""",
    "1e300": f"base longest {NUMBERS}",
    "2**62": f"base longest {NUMBERS} {COUNTS}",
    "10**5000": COUNTS,
    "-1": SIGNED,
    "-2**62": SIGNED,
    "inf": "scale_base",
    "str": "Document.name Text.name author backend experiment key path profile",
    "dict": "Streams.select.names Store.write.config fingerprint metrics",
    "array": "as_grid.positions digits.positions",
    "tensor": "distance distance_aware_gate.v w key_positions positions query_positions relative",
    "meta": """Streams.split.x sinusoidal.positions grid_sinusoidal.positions xpos_scales.positions logits
        relative""",
    "another dtype": """Streams.split.x apply_rope.x apply_axial_rope.x apply_xpos.q apply_xpos.k distance
        distance_aware_gate.v frequencies inv_freq logits slopes table w""",
    "integers": "distance distance_aware_gate.v w",
    "floats": ANGLES,
    "nans": "xpos_scales.positions",
    "negative": f"as_grid.positions key_positions query_positions relative {ANGLES}",
    "huge": "as_grid.positions extrapolate.positions relative xpos_scales.positions",
    "one dimension more": """apply_xpos.q apply_xpos.k distance positions key_positions query_positions
        relative x""",
    "one dimension less": "apply_xpos.q apply_xpos.k distance distance_aware_gate.v positions relative w x",
    "no dimension": "distance distance_aware_gate.v positions relative w",
    "axis 0 longer": f"{ROWS} table text tokens",
    "axis 0 empty": f"{ROWS} tokens",
    "axis 1 longer": """apply_xpos.q apply_xpos.k as_grid.positions grid_sinusoidal.positions coefficients
        logits table tokens""",
    "axis 1 empty": "apply_xpos.q apply_xpos.k coefficients logits t5_bias.table",
    "axis 2 longer": "q k logits weights",
    "axis 2 empty": "q attention_weights.k logits weights",
    "axis 3 longer": "logits",
}
"""In the place of which arguments a bad value may be taken: of one function, or of all that have such an
argument. In every other place it must be refused."""


def may_be_taken(door: str, argument: str, value: str) -> bool:
    """Whether a function need not refuse a value of this name; in the place of a bool, the other bool."""
    if isinstance(DOORS[door][1][argument], bool) and value in ("True", "False"):
        return True
    return not {argument, f"{door.partition(',')[0]}.{argument}"}.isdisjoint(TAKEN.get(value, "").split())

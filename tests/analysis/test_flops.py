"""Counts of multiply-adds: the printed formulas, and what the modules' own matrix products add up to."""

import dataclasses

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from sepnb.analysis import flops
from sepnb.encodings import Phase
from sepnb.models import Transformer, TransformerConfig
from sepnb.streams import Streams

from ..shared import refused

D, LAYERS, HEADS = 256, 4, 8
PARTS = {8: "1/8", 4: "1/4", 2: "1/2"}


def dense(width: int = D, **fields) -> TransformerConfig:
    return TransformerConfig(Streams.dense(width), LAYERS, HEADS, "learned", **{"readout": "both", **fields})


def split(mode: str, parts: int, width: int = D, **fields) -> TransformerConfig:
    streams = Streams(pos=width // parts, sem=width - width // parts)
    return dataclasses.replace(dense(width, **fields), streams=streams, mode=mode)


# --- the formulas and the printed table


@pytest.mark.parametrize("width", [256, 512])
@pytest.mark.parametrize(("length", "batch"), [(256, 8), (1024, 4), (256, 1), (7, 3)])
@pytest.mark.parametrize("parts", PARTS)
def test_a_block_counts_what_the_formulas_say(width, length, batch, parts):
    p = width // parts
    s, attention = width - p, length * width
    formulas = {
        "dense": 12 * width**2 + attention,
        "separated": 2 * width**2 + 10 * (p**2 + s**2) + attention,
        "strict": 12 * s**2
        + (1 - 1 / parts) * attention
        + (12 * p**2 + 2 * p * s + attention / parts) / batch,
    }
    configs = {"dense": dense(width), **{m: split(m, parts, width) for m in ("separated", "strict")}}
    for name, expected in formulas.items():
        counted = [one.per_token(batch) for one in flops.blocks(configs[name], length)]
        assert counted == [pytest.approx(expected, rel=1e-12)] * LAYERS
        assert flops.per_token(configs[name], length, batch) == pytest.approx(LAYERS * expected)


TABLE = [
    # mode, parts, length, batch, ratio to dense at D = 256
    ("separated", 8, 256, 8, 1.202),
    ("separated", 2, 256, 8, 1.625),
    ("separated", 4, 1024, 8, 1.306),
    ("strict", 8, 256, 8, 1.283),
    ("strict", 2, 256, 8, 3.250),
    ("strict", 4, 1024, 4, 1.556),
]


@pytest.mark.parametrize(("mode", "parts", "length", "batch", "ratio"), TABLE)
def test_the_limit_is_the_table_s_to_four_digits(mode, parts, length, batch, ratio):
    pair = dense(), split(mode, parts)
    assert flops.speedup(*pair, length, batch) == pytest.approx(ratio, abs=5e-4)
    by_kind = {kind: flops.speedup(*pair, length, batch, [kind]) for kind in flops.KINDS}
    assert min(by_kind.values()) <= flops.speedup(*pair, length, batch) <= max(by_kind.values())
    squares = (1 / parts) ** 2 + (1 - 1 / parts) ** 2
    if mode == "separated":
        shared = dict.fromkeys(("query_key", "attention"), 1)
        assert by_kind == pytest.approx(dict.fromkeys(("value", "output", "mlp"), 1 / squares) | shared)


# --- what the modules compute


def counted(config: TransformerConfig, length: int, batch: int, *, attention: bool, backward: bool) -> int:
    """Floating-point operations of the matrix products of one pass; of attention only the forward ones."""

    def kernel(query, key, value, *_, **__) -> int:
        (b, h, n, d), m = query, key[-2]
        columns = d + config.head_width  # wider queries come with values padded to their width
        return 2 * b * h * n * m * columns if attention else 0

    torch.manual_seed(0)
    model = Transformer(config)
    content = torch.randn(batch, length, config.streams.widths["sem"], requires_grad=True)
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with FlopCounterMode(display=False, custom_mapping={forward: kernel}) as counter:
        outputs = model(content)
        if backward:
            sum(x.square().sum() for x in outputs.values()).backward()
    return counter.get_total_flops()


SPLIT = Streams(pos=8, sem=24)
PHASE = {"encoding": ("learned", Phase(waves=3))}
EVERY_SHAPE = {
    "dense": (Streams.dense(32), {}),
    "separated": (SPLIT, {}),
    "strict": (SPLIT, {"mode": "strict"}),
    "strict, both read out": (SPLIT, {"mode": "strict", "readout": "both"}),
    "straddling head": (Streams(pos=5, sem=27), {}),
    "straddling head, both read out": (Streams(pos=13, sem=19), {"readout": "both"}),
    "joint norm": (SPLIT, {"norm": "joint"}),
    "joint values and outputs": (SPLIT, {"split": frozenset({"norm", "mlp"})}),
    "joint perceptron": (SPLIT, {"split": frozenset({"norm", "value_output"})}),
    "nothing split": (SPLIT, {"split": frozenset()}),
    "content alone routes": (SPLIT, {"query_key": "content", "readout": "both"}),
    "untied": (SPLIT, {"query_key": "untied"}),
    "untied, both read out": (SPLIT, {"query_key": "untied", "readout": "both"}),
    "constant embedding": (SPLIT, {"pos_stream": "constant"}),
    "constant embedding, straddling head": (Streams(pos=5, sem=27), {"pos_stream": "constant"}),
    "embedding added again, strict": (SPLIT, {"pos_stream": "reinjected", "mode": "strict"}),
    "shared key heads": (Streams(pos=16, sem=16), {"n_kv_heads": 2}),
    "shared key heads, strict": (Streams(pos=16, sem=16), {"n_kv_heads": 2, "mode": "strict"}),
    "gated perceptron": (SPLIT, {"activation": "swiglu", "expansion": 3}),
    "two position streams": (Streams(row=8, col=8, sem=16), {"mode": "strict"}),
    "content-position, dense": (Streams.dense(32), PHASE),
    "content-position": (SPLIT, PHASE),
    "content-position, strict, both read out": (SPLIT, PHASE | {"mode": "strict", "readout": "both"}),
    "content-position, straddling head": (Streams(pos=5, sem=27), PHASE | {"readout": "both"}),
    "content-position, untied": (SPLIT, PHASE | {"query_key": "untied"}),
    "content-position, shared key heads": (
        Streams(pos=16, sem=16),
        PHASE | {"n_kv_heads": 2, "mode": "strict"},
    ),
}


@pytest.mark.parametrize(("streams", "fields"), EVERY_SHAPE.values(), ids=EVERY_SHAPE)
def test_the_count_is_that_of_the_matrix_products_of_the_model(streams, fields):
    length, batch = 6, 3
    config = TransformerConfig(streams, 3, 4, **{"encoding": "learned", "max_length": length, **fields})
    full = dataclasses.replace(config, causal=False)
    ours = flops.per_token(full, length, batch) * batch * length
    found = counted(full, length, batch, attention=True, backward=False)
    assert found == pytest.approx(2 * ours, rel=1e-12)
    # Maps cost twice as much backward, so that a ratio of forward counts is also that of a training step's.
    forward = counted(config, length, batch, attention=False, backward=False)
    assert counted(config, length, batch, attention=False, backward=True) == 3 * forward > 0


def test_what_cannot_be_counted_is_refused():
    refused("length is 0; a sequence has at least 1 token", flops.per_token, dense(), 0)
    refused("batch is 0; at least 1 sequence", flops.per_token, dense(), 8, 0)
    for name in ("shaw", "cope", "fire"):
        with pytest.raises(ValueError, match=f"the terms that '{name}' adds in every layer are not counted"):
            flops.per_token(dataclasses.replace(dense(), encoding=("learned", name)), 8)
    assert flops.per_token(dataclasses.replace(dense(), encoding=("learned", "t5")), 8) == flops.per_token(
        dataclasses.replace(dense(), encoding="learned"), 8
    )


def test_counting_draws_no_random_number():
    state = torch.get_rng_state()
    flops.per_token(dataclasses.replace(dense(), encoding=("learned", "phase")), 8)
    assert torch.equal(torch.get_rng_state(), state)

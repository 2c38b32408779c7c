"""The public functions of scores and biases are what the modules compute, in value and in every gradient.
That these compute their equations, `test_every_encoding` says."""

import pytest
import torch
from torch import Tensor

from sepnb import encodings
from sepnb.encodings import Heads, build
from sepnb.encodings.relative import are_consecutive

from .drawn import F64, POSITIONS, agree, drawn, random

SIZES = [(1, 1), (1, 6), (4, 4), (3, 6)]
BIASES = {
    "alibi": ({}, lambda m, i, j: encodings.alibi_bias(encodings.alibi_slopes(3, dtype=F64), i, j)),
    "t5": (
        {"n_buckets": 8, "max_distance": 20},
        lambda m, i, j: encodings.t5_bias(m.table, i, j, max_distance=20),
    ),
    "kerple": ({}, lambda m, i, j: encodings.kerple_bias(m.r1, m.r2, i, j)),
    "sandwich": ({"width": 10}, lambda m, i, j: encodings.sandwich_bias(3, i, j, width=10)),
    "fire": (
        {"threshold": 6.0},
        lambda m, i, j: encodings.fire_bias(m.c, (6 * m.multiplier).abs(), m.hidden, m.out, i, j),
    ),
}


@pytest.mark.parametrize("keys", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("name", BIASES)
def test_a_bias_is_that_of_its_module_at_any_positions(name, keys):
    options, function = BIASES[name]
    module, queries, size = drawn(build(name, **options).at_score(Heads(3))), keys[..., -3:], random(1)
    known = are_consecutive(queries, keys)
    agree(
        lambda: size * module(queries, keys, known),
        lambda: size * function(module, queries, keys),
        [size, *module.parameters()],
    )


def projected(module, m: int) -> Tensor:
    """r `[H, M, d]` of Transformer-XL: row t is W_r R_t, with sines first, then cosines."""
    waves = encodings.sinusoidal(torch.arange(m), module.width, layout="halves", dtype=F64)
    return (waves @ module.distances.weight.T).unflatten(-1, (3, -1)).transpose(0, 1)


def transformer_xl(m, q: Tensor, k: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return encodings.transformer_xl_scores(q, k, projected(m, len(j)), m.u, m.v)


SCORES = [
    *(("transformer-xl", {}, width, transformer_xl) for width in (12, 11, 1)),
    *(
        (
            "distance-aware",
            how,
            12,
            lambda m, q, k, i, j, how=how: encodings.distance_aware_scores(q, k, m.w, m.v, i, j, **how),
        )
        for how in ({}, {"gate": "added"}, {"relu": False}, {"gate": "added", "relu": False})
    ),
    *(
        (
            "cope",
            {"n_positions": rows, "gate": gate},
            12,
            lambda m, q, k, i, j, gate=gate: encodings.cope_scores(q, k, m.table, gate=gate),
        )
        for rows in (2, 3, 20)
        for gate in ("raw", "scaled")
    ),
    *(
        (
            "shaw",
            {"clip": clip},
            12,
            lambda m, q, k, i, j, clip=clip: encodings.shaw_scores(q, k, m.table[0], clip=clip),
        )
        for clip in (0, 1, 3, 40)
    ),
]


@pytest.mark.parametrize(("n", "m"), SIZES)
@pytest.mark.parametrize(
    ("name", "options", "width", "function"), [pytest.param(*x, id=f"{x[:3]}") for x in SCORES]
)
def test_scores_are_those_of_the_module_where_a_query_looks(name, options, width, function, n, m):
    """Queries are the last of the keys, and it does not matter where these start; read along shifted rows
    where they are known to be consecutive, and pair by pair where not."""
    module, keys = drawn(build(name, **options).at_score(Heads(3, 4, width)), std=0.3), torch.arange(m) + 40
    q, k, queries = random(2, 3, n, 4), random(2, 3, m, 4, seed=1), keys[m - n :]
    seen = torch.ones(n, m, dtype=torch.bool).tril(m - n)
    for known in (True, False):
        prepared = module.prepare(queries, keys, known)
        agree(
            lambda prepared=prepared: module(q, k, prepared, slice(0, 3)),
            lambda: function(module, q, k, queries, keys),
            [q, k, *module.parameters()],
            seen,
        )


@pytest.mark.parametrize("clip", [0, 1, 3, 40])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_output_of_shaw_is_the_average_and_what_its_module_adds(n, m, clip):
    module, keys = drawn(build("shaw", clip=clip).at_value(Heads(3, 4, 12))), torch.arange(m)
    weights, v = random(2, 3, n, m).softmax(-1), random(2, 3, m, 4, seed=1)
    agree(
        lambda: weights @ v + module(weights, module.prepare(keys[m - n :], keys), slice(0, 3)),
        lambda: encodings.shaw_output(weights, v, module.table[0], clip=clip),
        [weights, v, module.table],
    )

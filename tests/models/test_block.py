"""A block against the equations, written with loops in numpy; the kernel against the formula."""

import math

import numpy as np
import pytest
import torch
from scipy.special import erf

from sepnb import encodings
from sepnb.models import attention, attention_weights
from sepnb.streams import Streams

from ..encodings.cases import heard

N = 5
POSITIONS = np.array([3, 0, 4, 9, 5])
"""Not sorted and with gaps: an encoding must read positions, not places."""


def array(parameter) -> np.ndarray | float:
    return 0.0 if parameter is None else parameter.detach().numpy()


def normalise(x: dict[str, np.ndarray], norm, kind: str, split: bool) -> dict[str, np.ndarray]:
    whole = np.concatenate(list(x.values()), axis=-1)
    result = {}
    for name, part in x.items():
        over = part if split else whole
        mean = over.mean(-1, keepdims=True) if kind == "layer" else 0.0
        scale = np.sqrt(((over - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
        if name in norm.gain:
            bias = array(norm.bias[name]) if name in norm.bias else 0.0
            result[name] = (part - mean) / scale * array(norm.gain[name]) + bias
    return result


def rotate(vector: np.ndarray, position: int) -> np.ndarray:
    d, out = len(vector), vector.copy()
    for m in range(d // 2):
        angle = position * 10_000.0 ** (-2 * m / d)
        a, b = vector[m], vector[m + d // 2]
        out[m] = a * math.cos(angle) - b * math.sin(angle)
        out[m + d // 2] = a * math.sin(angle) + b * math.cos(angle)
    return out


def reference_block(block, config, x: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One pre-norm block for one sequence: every sum over keys is a loop."""
    d, n_heads, layer = config.head_width, config.n_heads, block.attention
    split = config.norm == "split"
    names = [encoding.name for encoding in config.encodings]
    u = normalise(x, block.attention_norm, config.norm_kind, split)
    queries, keys = np.zeros((n_heads, N, d)), np.zeros((n_heads, N, d))
    head = 0
    for group, projection in zip(layer.groups, layer.query_key, strict=True):
        reads, count = group.reads, group.n_heads
        made = np.concatenate([u[name] for name in reads], axis=-1) @ array(projection.weight).T
        made = made + array(projection.bias)
        for n in range(count):
            queries[head] = made[:, n * d : (n + 1) * d]
            keys[head] = made[:, (count + n) * d : (count + n + 1) * d]
            head += 1
    values = np.concatenate(
        [u[name] @ array(b.weight).T + array(b.bias) for name, b in layer.value.blocks.items()], axis=-1
    )
    z = np.zeros((N, n_heads * d))
    for h in range(n_heads):
        slope = 2.0 ** (-8 * (h + 1) / n_heads)  # n_heads is a power of two here
        for i in range(N):
            seen = range(i + 1) if config.causal else range(N)
            scores = []
            for j in seen:
                q, k = queries[h, i], keys[h, j]
                if "rope" in names:
                    q, k = rotate(q, POSITIONS[i]), rotate(k, POSITIONS[j])
                score = sum(q[c] * k[c] for c in range(d)) / math.sqrt(d)
                if "alibi" in names:
                    score -= slope * abs(int(POSITIONS[i]) - int(POSITIONS[j]))
                scores.append(score)
            weights = np.exp(np.array(scores) - max(scores))
            weights /= weights.sum()
            for c in range(h * d, (h + 1) * d):
                z[i, c] = sum(a * values[j, c] for a, j in zip(weights, seen, strict=True))
    y = {}
    for name, columns in config.streams.slices.items():
        out = layer.output.blocks[name]
        y[name] = x[name] + z[:, columns] @ array(out.weight).T + array(out.bias)
    w = normalise(y, block.mlp_norm, config.norm_kind, split)
    result = {}
    for name, part in w.items():
        up, down = block.mlp.up.blocks[name], block.mlp.down.blocks[name]
        hidden = part @ array(up.weight).T + array(up.bias)
        hidden = hidden * 0.5 * (1 + erf(hidden / math.sqrt(2)))
        result[name] = y[name] + hidden @ array(down.weight).T + array(down.bias)
    return result


CASES = [
    (Streams.dense(32), {"encoding": "none"}),
    (Streams.dense(32), {"encoding": "alibi", "bias": True}),
    (Streams.dense(32), {"encoding": "rope", "causal": False}),
    (Streams(pos=8, sem=24), {}),
    (Streams(pos=5, sem=27), {"bias": True}),
    (Streams(pos=12, sem=20), {"norm_kind": "rms", "encoding": ("sinusoidal", "rope")}),
    (Streams(pos=12, sem=20), {"norm": "joint"}),
    (Streams(pos=8, sem=24), {"norm": "joint", "norm_kind": "rms", "causal": False}),
    (Streams(pos=8, sem=24), {"mode": "strict", "bias": True, "encoding": ("sinusoidal", "alibi")}),
    (Streams(sem=16, pos=16), {"mode": "strict", "encoding": ("sinusoidal", "rope")}),
]


@pytest.mark.parametrize(("streams", "fields"), CASES, ids=str)
def test_a_block_is_its_equations(built, streams, fields):
    model = built(streams, readout="both", **fields).transformer
    generator = torch.Generator().manual_seed(3)
    x = {name: torch.randn(1, N, w, generator=generator, dtype=torch.float64) for name, w in streams.items}
    positions = torch.from_numpy(POSITIONS)
    context = model.attention_context(positions, positions, torch.float64)
    ours = model.blocks[0](x, context)
    expected = reference_block(
        model.blocks[0], model.config, {name: part[0].numpy() for name, part in x.items()}
    )
    assert list(ours) == list(streams.names)
    for name, part in ours.items():
        torch.testing.assert_close(part[0], torch.from_numpy(expected[name]), rtol=0, atol=1e-10)


def test_the_input_of_a_dense_model_is_added_and_of_a_separated_one_put_beside(built):
    positions, content = torch.tensor([4, 0, 9]), torch.randn(2, 3, 24, dtype=torch.float64)
    code = encodings.sinusoidal(positions, 24, dtype=torch.float64)
    dense = built(Streams.dense(24)).transformer.input_state(content, positions)
    torch.testing.assert_close(dense["sem"], content + code, rtol=0, atol=1e-12)
    state = built(Streams(pos=8, sem=24)).transformer.input_state(content, positions)
    assert torch.equal(state["sem"], content)
    pos = encodings.sinusoidal(positions, 8, dtype=torch.float64)
    assert torch.equal(state["pos"], pos.expand(2, 3, 8))


def with_input(name: str) -> tuple[str, ...]:
    at_input = encodings.Site.INPUT in encodings.build(name).sites
    return (name,) if at_input else ("sinusoidal", name)


def reached(encoding: str | tuple[str, ...]) -> tuple[bool, bool]:
    """Whether a model of these encodings adds a bias to its scores, and whether it makes them otherwise."""
    built = [encodings.build(name) for name in ([encoding] if isinstance(encoding, str) else encoding)]
    scores = [one.at_score(encodings.Heads(4, 8, 32)) for one in built]
    kinds = encodings.ScoreModule, encodings.PairModule
    biased, explicit = (any(isinstance(score, kind) for score in scores) for kind in kinds)
    return biased, explicit


@pytest.mark.parametrize(
    ("name", "causal"),
    [
        (name, causal)
        for name in encodings.names(axes=1)
        for causal in (True, False)
        if causal or not encodings.build(name).causal_only
    ],
)
@pytest.mark.parametrize("streams", [Streams.dense(32), Streams(pos=12, sem=20)], ids=repr)
def test_the_fused_kernel_is_the_plain_formula_in_output_and_every_gradient(
    built, text, monkeypatch, name, streams, causal
):
    encoding = name if len(streams.names) == 1 else with_input(name)
    tokens, positions = text(2, 6), torch.tensor([[0, 1, 2, 3, 4, 5], [7, 3, 9, 1, 30, 2]])
    positions = heard(encodings.build(name), positions)

    def outcome() -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        model = built(streams, encoding=encoding, causal=causal)
        logits = model(tokens, positions)
        logits.square().mean().backward()
        return logits.detach(), {key: p.grad for key, p in model.named_parameters()}

    def plain(q, k, v, attn_mask=None, is_causal=False, scale=None):
        calls.append(is_causal)
        return attention_weights(q, k, attn_mask, causal=is_causal, scale=scale) @ v

    fused, fused_gradients = outcome()
    calls: list[bool] = []
    monkeypatch.setattr(attention.F, "scaled_dot_product_attention", plain)
    written, gradients = outcome()
    biased, in_the_open = reached(encoding)
    assert calls == ([] if in_the_open else 2 * [causal and not biased])
    torch.testing.assert_close(fused, written, rtol=0, atol=1e-10)
    assert fused_gradients.keys() == gradients.keys()
    for key, gradient in gradients.items():
        torch.testing.assert_close(fused_gradients[key], gradient, rtol=0, atol=1e-10)


def test_attention_weights_are_the_softmax_over_the_keys_a_query_may_see():
    q, k = (
        torch.randn(1, 2, n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
        for n in (2, 5)
    )
    weights = attention_weights(q, k, None, causal=True)
    for h in range(2):
        for row in range(2):  # queries are the last 2 of the 5 keys
            seen = 5 - 2 + row + 1
            scores = torch.stack([q[0, h, row] @ k[0, h, j] / 2 for j in range(seen)])
            expected = torch.cat(
                [scores.exp() / scores.exp().sum(), torch.zeros(5 - seen, dtype=torch.float64)]
            )
            torch.testing.assert_close(weights[0, h, row], expected, rtol=0, atol=1e-12)


def test_a_stack_whose_blocks_are_taken_away_gives_its_input(built):
    made = built(Streams(pos=8, sem=24), encoding=("sinusoidal", "kerple"), readout="both")
    stack, at = made.transformer, torch.arange(4)
    stack.blocks = torch.nn.ModuleList()
    state = stack.input_state(torch.ones(1, 4, 24, dtype=torch.float64), at)
    ends = stack.run_blocks(state, stack.attention_context(at, at, torch.float64), {})
    assert all(torch.equal(ends[name], x) for name, x in state.items())

"""The path of FlexAttention: what a score is given, that the biases of a model go there, and only where they
may.

On a CPU FlexAttention has no backward pass, so that here a stand-in of its definition takes its place inside
models; the real one is held against the stand-in in its forward pass, in a process of its own, because the
hook that checks shapes in tests cannot be compiled. The test marked gpu drives the compiled kernel.
"""

import json
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sepnb import encodings, training
from sepnb.models import LanguageModel, TransformerConfig, compile_formulas
from sepnb.models.fast import flex, kernels
from sepnb.streams import Streams
from sepnb.training.compiled import CompiledSteps
from sepnb.training.positions import RandomOffset

GATED = "distance-aware"
BIASES = [
    name
    for name in encodings.names(axes=1)
    if isinstance(encodings.build(name).at_score(encodings.Heads(2)), encodings.ScoreModule)
]
WIDE, N, VOCABULARY = 32, 12, 7  # heads of 16 columns


def stand_in(q, k, v, score_mod, block_mask, scale) -> Tensor:
    """What FlexAttention is defined to compute, for all pairs at once."""
    heads, queries, keys = (torch.arange(n) for n in (q.shape[1], q.shape[2], k.shape[2]))
    scores = q @ k.transpose(-1, -2) * scale
    scores = score_mod(scores, torch.tensor(0), heads[:, None, None], queries[:, None], keys)
    seen = block_mask.mask_mod(torch.tensor(0), heads[:, None, None], queries[:, None], keys)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def drawn(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def model(encoding, streams: Streams = Streams.dense(WIDE), **fields) -> LanguageModel:  # noqa: B008 (frozen)
    config = TransformerConfig(streams, 2, streams.d_model // 16, encoding, max_length=N, **fields)
    torch.manual_seed(0)
    made = LanguageModel(config, VOCABULARY).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def outcome(made: LanguageModel, n: int = N) -> list[Tensor]:
    """The logits and the gradient of every parameter."""
    made.zero_grad()
    logits = made(torch.arange(2 * n, device=made.head.weight.device).reshape(2, n) % VOCABULARY)
    logits.square().mean().backward()
    return [logits.detach(), *(parameter.grad.clone() for parameter in made.parameters())]


@pytest.fixture
def calls(monkeypatch) -> list[Tensor]:
    """A CPU that is taken for a GPU; the tables that were given to FlexAttention."""
    given = []

    def counted(q, k, v, score_mod, block_mask, scale):
        given.append(q)
        return stand_in(q, k, v, score_mod, block_mask, scale)

    monkeypatch.setattr(kernels, "on_cuda", lambda x: True)
    monkeypatch.setattr(kernels.Compiler, "compiled", lambda self, formula: formula)
    monkeypatch.setattr(flex, "flex_attention", counted)
    return given


def test_a_score_is_given_the_bias_of_its_pair_with_its_gradient():
    table, (q, k, v) = drawn(2, N).requires_grad_(), (drawn(3, 2, N, 4, seed=s) for s in (1, 2, 3))
    at = torch.arange(N)
    distance = (at[:, None] - at).clamp(min=0)
    bias = table[:, N - 1 - distance].masked_fill(at > at[:, None], -torch.inf)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None], scale=0.5)
    given = stand_in(q, k, v, flex.joined(table), flex._causal(N, torch.device("cpu")), 0.5)
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)
    one, two = (torch.autograd.grad(x.square().sum(), table)[0] for x in (given, expected))
    assert two.abs().max() > 1e-3
    torch.testing.assert_close(one, two, rtol=0, atol=1e-12)
    by_pair = table[:, N - 1 - distance]
    again = stand_in(q, k, v, flex.joined(by_pair), flex._causal(N, torch.device("cpu")), 0.5)
    torch.testing.assert_close(again, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("encoding", "fields"),
    [
        *((name, {}) for name in BIASES),
        ("distance-aware", {}),
        (encodings.DistanceAware(gate="added"), {}),
        (encodings.DistanceAware(relu=False), {}),
        (("sinusoidal", "distance-aware"), {"streams": Streams(pos=16, sem=32)}),
        (encodings.T5(per_layer=True), {}),
        (("alibi", "t5"), {}),
        (("alibi", "fire"), {}),
        (encodings.Fire(per_layer=False), {}),
        (("rope", "kerple"), {}),
        (("sinusoidal", "t5"), {"streams": Streams(pos=16, sem=32)}),
        (("sinusoidal", "kerple"), {"streams": Streams(pos=16, sem=32), "query_key": "untied"}),
        ("t5", {"streams": Streams.dense(64), "n_kv_heads": 2}),
    ],
    ids=str,
)
def test_logits_and_gradients_are_those_of_the_bias_in_the_mask(calls, encoding, fields):
    made = model(encoding, **fields)
    expected = outcome(made)
    assert calls == []  # unless asked for
    assert compile_formulas(made, "eager")
    for one, other in zip(outcome(made), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)
    assert len(calls) >= 2


def test_what_it_cannot_take_stays_where_it_was(calls):
    for name in ("shaw", "transformer-xl", ("alibi", "distance-aware"), "cope", "rope", "none"):
        made = model(name)
        compile_formulas(made, "eager")
        outcome(made)
    narrow = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "alibi", max_length=N), VOCABULARY)
    bidirectional, windowed = model("alibi", causal=False), model("alibi").extended(window=4)
    sharpened = model("distance-aware").extended(log_scale=True)  # it would be sharpened before the gate
    for made in (narrow.double(), bidirectional, windowed, sharpened):
        compile_formulas(made, "eager")
        outcome(made)
    made = model("alibi")
    compile_formulas(made, "eager")
    tokens = torch.zeros(1, N, dtype=torch.int64)
    made(tokens, torch.arange(N) * 2)  # gaps
    cache = made.make_cache(1)
    made(tokens[:, :4], torch.arange(4) * 2, cache=cache)
    made(tokens[:, 4:], cache=cache)  # fewer queries than keys
    with torch.no_grad():
        made(tokens)  # no gradients: some queries at a time, behind a mask
    assert calls == []
    made(tokens)
    assert len(calls) == 2


def uncompiled() -> dict[str, float]:
    """How far FlexAttention itself is from the stand-in, forward and not compiled: what a CPU can do."""
    table, (q, k) = drawn(2, N), (drawn(3, 2, N, 20, seed=seed) for seed in (1, 2))
    v, mask = drawn(3, 2, N, 16, seed=3), flex._causal(N, torch.device("cpu"))
    apart = []
    gate = encodings.build("distance-aware").at_score(encodings.Heads(2, 16, WIDE)).combine
    for numbers, combine in ((table, torch.add), (drawn(2, N, N), torch.add), (table, gate)):
        real = flex._attention(q, k, v, numbers, mask, 0.25, combine)
        expected = stand_in(q, k, v, flex.joined(numbers, combine), mask, 0.25)
        apart.append(float((real - expected).abs().max()))
    return {"apart": max(apart)}


def compiled() -> dict[str, float]:
    """Per encoding how far logits and gradients are from those of the bias in the mask, on a GPU."""
    found = {}
    for name in (*BIASES, GATED):
        made = model(name).float().cuda()
        expected = outcome(made, 200)
        compile_formulas(made)
        pairs = zip(outcome(made, 200), expected, strict=True)
        found[name] = max(float((one - other).abs().max() / other.abs().max()) for one, other in pairs)
    return found


def driven(what: str) -> dict[str, float]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "JAXTYPING_DISABLE": "1"}
    command = [sys.executable, "-W", "ignore", __file__, what]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_flex_attention_itself_computes_what_the_stand_in_does():
    assert driven("uncompiled")["apart"] < 1e-12


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_compiled_kernel_gives_the_logits_and_gradients_of_the_mask():
    apart = driven("compiled")
    assert apart.keys() == {*BIASES, GATED} and max(apart.values()) < 2e-3


if __name__ == "__main__":
    print(json.dumps({"uncompiled": uncompiled, "compiled": compiled}[sys.argv[1]]()))


# --- where a training asks for it


@pytest.fixture
def asked(monkeypatch) -> list[tuple[str, str]]:
    """What was compiled as a whole, and what formula by formula."""
    told = []
    monkeypatch.setattr(kernels, "check_compiler", lambda backend, device: None)
    monkeypatch.setattr(
        torch,
        "compile",
        lambda made, backend, dynamic: told.append(("whole", backend.backend)) or torch.nn.Identity(),
    )
    given = kernels._given
    monkeypatch.setattr(
        kernels, "_given", lambda made, by: told.append(("formulas", by.backend)) or given(made, by)
    )
    return told


def config(**fields) -> training.TrainingConfig:
    return training.TrainingConfig(steps=1, batch_size=2, length=N, learning_rate=1e-3, **fields)


WHOLE = ("whole", "inductor")


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_a_training_on_cuda_compiles_formulas_where_flex_attention_takes_the_biases(name, asked):
    made, compiled = model(name), config(compiler="inductor")
    taken = name in (*BIASES, GATED)
    with CompiledSteps().forward(made, compiled, "cuda") as forward:
        assert asked == [("formulas", "inductor") if taken else WHOLE]
        assert (forward is made) == taken == (made.transformer.compiler is not None)
    assert made.transformer.compiler is None
    asked.clear()
    drawn = config(compiler="inductor", positions=RandomOffset(4 * N))  # a GPU would be asked
    for how, device in ((compiled, "cpu"), (config(), "cuda"), (drawn, "cuda")):
        with CompiledSteps().forward(made, how, device) as forward:
            assert (forward is made) == (how.compiler is None)
    assert asked == [WHOLE, WHOLE]


def test_what_flex_attention_does_not_take_is_compiled_as_a_whole():
    assert kernels.flexible(model("t5")) and kernels.flexible(model(("rope", "alibi")))
    assert not kernels.flexible(model(("shaw", "alibi")))
    assert not kernels.flexible(model("alibi", causal=False))
    narrow = TransformerConfig(Streams.dense(32), 2, 4, "alibi", max_length=N)
    assert not kernels.flexible(LanguageModel(narrow, VOCABULARY))
    assert not kernels.flexible(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("before", [None, "eager"])
def test_a_training_reaches_the_kernel_and_leaves_the_model_as_it_was(calls, asked, monkeypatch, before):
    """The stand-in takes the place of the kernel, and a CPU that of the GPU."""
    chosen = CompiledSteps.forward
    monkeypatch.setattr(CompiledSteps, "forward", lambda self, made, how, _: chosen(self, made, how, "cuda"))
    batch = (torch.arange(2 * (N + 1)).reshape(2, -1) % VOCABULARY).numpy()
    expected = training.train(model("t5"), iter([batch]), config())
    calls.clear()
    made = model("t5")
    made.transformer.compiler = earlier = before and kernels.compiler_of(before)
    losses = training.train(made, iter([batch]), config(compiler="inductor"))
    assert losses == pytest.approx(expected, rel=1e-12)
    assert len(calls) == 2  # a layer each
    assert asked == [("formulas", "inductor")] and made.transformer.compiler is earlier

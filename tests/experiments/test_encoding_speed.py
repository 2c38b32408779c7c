"""The benchmark of encodings: what is timed is the model's own path, and what is told is what was timed."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from sepnb import encodings
from sepnb.analysis.flops import products_of
from sepnb.experiments import encoding_speed as es
from sepnb.experiments import peer, timed

SPEED = es.EXPERIMENT
B, H, N, D = 2, 2, 16, 8
TINY = es.EncodingSpeedRun(
    experiment="encoding_speed",
    profile="smoke",
    method="rope",
    length=N,
    batch_size=B,
    n_heads=H,
    head_width=D,
    repeats=9,
)


FUSED = 7 / 2
"""Products of a fused causal kernel in squares N x N x d: two forward and five backward, half of each."""


# --- what is timed


def test_a_compiled_step_that_computes_something_else_is_not_timed(monkeypatch):
    """Once it answers a thousandth too much."""
    cell, own = replace(TINY, method="alibi", compiler="eager"), es.own
    SPEED.run(cell)

    def lies(model):
        core = own(model)
        return core if model.compiler is None else lambda *given: 1.001 * core(*given)

    monkeypatch.setattr(es, "own", lies)
    with pytest.raises(RuntimeError, match=r"the outputs of two steps differ by .* and are not timed"):
        SPEED.run(cell)


def test_the_timed_path_is_the_published_formula_of_the_encoding():
    """None is the fused kernel itself; for a rotation and a bias by the reference functions."""
    q, k, v, _ = TINY.inputs("cpu")
    at, frequencies = torch.arange(N), encodings.rope_frequencies(D)[0]
    bias = encodings.alibi_bias(encodings.alibi_slopes(H), at, at).float()
    hidden = torch.ones(N, N, dtype=torch.bool).triu(1)
    expected = {
        "none": es.fused(q, k, v),
        "rope": es.fused(*(encodings.apply_rope(x, at, frequencies) for x in (q, k)), v),
        "alibi": F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(hidden, -torch.inf)),
    }
    expected["rope-partial"] = es.fused(
        *(torch.cat([encodings.apply_rope(x[..., :2], at, frequencies[:1]), x[..., 2:]], -1) for x in (q, k)),
        v,
    )
    gated = replace(TINY, method="forgetting").layer("cpu")
    gates = gated.blocks[0].attention.terms[0].gates(q.transpose(1, 2).flatten(-2)).transpose(1, 2)
    mask = encodings.forgetting_bias(gates).masked_fill(hidden, -torch.inf)
    expected["forgetting"] = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    for method, wanted in expected.items():
        core = es.own(replace(TINY, method=method).layer("cpu"))
        torch.testing.assert_close(core(q, k, v), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", es.timed_methods())
def test_every_timed_step_is_the_same_and_reaches_every_parameter_of_the_encoding(method, monkeypatch):
    models = []
    built = es.built
    monkeypatch.setattr(es, "built", lambda *given: models.append(built(*given)) or models[-1])
    step = replace(TINY, method=method).steps()["eager"]
    step()
    attention = models[0].blocks[0].attention
    encoded = (models[0].score_encodings, attention.averaging, attention.terms)
    own = [parameter for module in encoded for parameter in module.parameters()]
    first = [parameter.grad.clone() for parameter in own]
    assert all(gradient.abs().sum() > 0 for gradient in first)
    step()
    assert all(torch.equal(one, p.grad) for one, p in zip(first, own, strict=True))  # and not twice as much


ROUTES = {
    **dict.fromkeys(("none", "rope", "rope-partial", "xpos", "seqpe", "forgetting"), None),
    **dict.fromkeys(("alibi", "sandwich"), 2 * FUSED),
    **dict.fromkeys(("t5", "kerple", "fire", "shaw", "transformer-xl", "distance-aware", "cope"), 6),
}
"""Products of the route in squares: 6 by the explicit softmax, or those of the fused kernel with a mask, that
hides nothing; None where it is that kernel as it is."""


@pytest.mark.parametrize("method", ROUTES)
def test_the_route_is_attention_without_positions_by_the_kernel_of_the_encoding(method):
    cell = replace(TINY, method=method)
    found = es.route(cell.layer("cpu"), cell, "cpu")
    steps = cell.steps()
    expected = ROUTES[method]
    assert list(steps)[:2] == ["fused", "eager"] and ("route" in steps) == (expected is not None)
    if expected is None:
        assert found is None
        return
    q, k, v, _ = cell.inputs("cpu")
    torch.testing.assert_close(found(q, k, v), es.fused(q, k, v), rtol=0, atol=1e-6)
    squares = products_of(steps["route"]) / (B * H * N * N * D)
    assert squares == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("method", "squares"), [("alibi", 2 * FUSED), ("t5", 6), ("shaw", 6)])
def test_compiled_and_its_route_go_in_pieces_on_a_cpu_and_are_counted_so(method, squares, monkeypatch):
    """Four pieces of N/4 queries, with the keys up to their last: (1 + 2 + 3 + 4) / 16 of the square."""
    monkeypatch.setattr(es.kernels, "LEAST_ROWS", N // 4)
    monkeypatch.setattr(es.kernels.Compiler, "compiled", lambda self, formula: formula)
    cell = replace(TINY, method=method, compiler="eager")
    q, k, v, _ = cell.inputs("cpu")
    route = es.route(cell.layer("cpu"), cell, "cpu")
    torch.testing.assert_close(route(q, k, v), es.fused(q, k, v), rtol=0, atol=1e-6)
    steps, square = cell.steps(), B * H * N * N * D
    assert products_of(steps["route"]) == 5 / 8 * squares * square
    assert products_of(steps["eager"]) > products_of(steps["compiled"]) >= 5 / 8 * squares * square
    assert SPEED.run(cell).metrics["products"] == FUSED * square / products_of(steps["compiled"])
    for changed, device in ((replace(cell, compiler=None), "cpu"), (cell, "cuda")):
        whole = es.route(changed.layer("cpu"), changed, device)
        if whole is None:  # a bias, which may go to FlexAttention there
            continue
        for x in (leaves := [q.clone(), k.clone(), v.clone()]):
            x.requires_grad_()
        assert (
            products_of(lambda whole=whole, leaves=leaves: whole(*leaves).sum().backward())
            >= squares * square
        )


SQUARES = {"rope": FUSED, "t5": 6, "distance-aware": 6, "transformer-xl": 9, "cope": 6}
"""The explicit softmax has two products, and twice as many backward; Transformer-XL one more with every
distance. What follows a table of few rows comes on top."""


@pytest.mark.parametrize("method", SQUARES)
def test_the_counted_products_are_those_of_the_formula(method):
    step = replace(TINY, method=method).steps()["eager"]
    # W_r R once for the batch, and by W_r alone a gradient; the queries with the 64 rows of a table.
    more = {"transformer-xl": 2 * H * D / (B * N), "cope": 3 * 64 / N}.get(method, 0)
    assert products_of(step) / (B * H * N * N * D) == pytest.approx(SQUARES[method] + more, rel=1e-12)


# --- what is told


def test_a_record_holds_the_products_the_target_and_the_other_package(monkeypatch):
    monkeypatch.setattr(es, "TARGETS", {("t5", N): 0.6})
    cell = replace(TINY, method="t5")
    record = SPEED.run(cell)
    assert record.metrics["products"] == pytest.approx(FUSED / SQUARES["t5"])
    assert record.metrics["target"] == 0.6 and "compiled" not in record.metrics
    assert record.rows[-1]["name"] == "x-transformers"
    for changed in (replace(cell, method="kerple"), replace(cell, length=N + 1)):
        assert SPEED.fingerprint(changed) != record.fingerprint and changed.key != cell.key


def test_ahead_is_held_against_the_faster_of_their_steps(monkeypatch):
    taken = {"eager": 3.0, "compiled": 2.0, peer.NAME: 4.0, peer.COMPILED: 3.0}
    monkeypatch.setattr(peer, "attention", lambda *size: (es.fused, []))
    monkeypatch.setattr(peer.importlib.metadata, "version", lambda name: "2.0")
    monkeypatch.setattr(
        timed, "interleaved", lambda steps, *, repeats, **_: {s: [taken.get(s, 1.0)] * repeats for s in steps}
    )
    cell = replace(TINY, method="alibi", compiler="eager")
    steps = cell.steps()
    assert steps.keys() >= taken.keys()
    es.check_alike(steps[peer.COMPILED](), steps[peer.NAME](), 1e-6)
    metrics = SPEED.run(cell).metrics
    assert metrics["ahead"] == pytest.approx(3 / 2)
    assert metrics["x_transformers"] == 1 / 4 and metrics["x_transformers_compiled"] == pytest.approx(1 / 3)
    taken[peer.NAME] = 2.5
    assert SPEED.run(cell).metrics["ahead"] == pytest.approx(2.5 / 2)


def test_a_missing_package_is_no_column_in_smoke_and_refused_where_records_are_published(monkeypatch):
    monkeypatch.setattr(peer.importlib.util, "find_spec", lambda name: None)
    assert peer.attention("rope", H, D) is None
    assert list(TINY.steps()) == ["fused", "eager"]
    SPEED.run(TINY)
    for profile in ("laptop", "gpu"):
        with pytest.raises(
            peer.PackageMissing, match=f"x-transformers is not .* `make bench KEEP={profile}`"
        ):
            SPEED.run(replace(TINY, profile=profile, method="shaw"))


# --- beside another package


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # what it warns of when it is imported is no concern of this project
@pytest.mark.parametrize("method", peer.METHODS)
def test_what_is_timed_beside_us_is_the_same_function(method):
    """x-transformers rotates neighbouring columns, scales the bias of T5 and what opens gates."""
    config = replace(TINY, method=method)
    q, k, v, _ = config.inputs("cpu")
    model = config.layer("cpu")
    core, parameters = peer.attention(method, H, D)
    inner = model.blocks[0].attention.averaging
    if method == "cope":
        inner.pairs.gate = "scaled"
    with torch.no_grad():
        own = [*model.score_encodings.parameters(), *inner.parameters()]
        for ours, theirs in zip(own, parameters, strict=True):
            ours.normal_()
            theirs.copy_(ours / D**0.5 if method == "t5" else ours)
    halves = [*range(0, D, 2), *range(1, D, 2)] if method in ("rope", "xpos") else list(range(D))
    ours = es.own(model)(q[..., halves], k[..., halves], v)
    torch.testing.assert_close(core(q, k, v), ours, rtol=0, atol=1e-5)

"""Leakage in a model's own first blocks: exact zeros where nothing passes, and the Jacobian where it does."""

import pytest
import torch

from sepnb.analysis import first_blocks, leakage, residual_states
from sepnb.analysis.isolation import jacobian
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams


def built(streams: Streams | None = None, **changes) -> LanguageModel:
    torch.manual_seed(0)
    settings = {"n_layers": 3, "n_heads": 4, "encoding": "learned", "max_length": 8} | changes
    config = TransformerConfig(streams or Streams(pos=8, sem=24), **settings)
    return LanguageModel(config, vocab_size=11).double()


TEXT = torch.tensor([[3, 1, 4, 1, 5]])


@pytest.mark.parametrize("changes", [{}, {"mode": "strict"}, {"encoding": "sinusoidal", "readout": "both"}])
def test_the_first_blocks_compute_what_the_model_does(changes):
    model = built(**changes)
    expected = residual_states(model, TEXT)
    for depth in (1, 2):
        part = first_blocks(model.transformer, depth)
        with torch.no_grad():
            out = part(model.embedding(TEXT))
        for name in ("pos", "sem"):
            torch.testing.assert_close(out[name], expected[depth][name], rtol=1e-12, atol=1e-12)
    trained = [p.requires_grad for p in model.parameters()]
    assert all(trained), "the original is left as it was"


@pytest.mark.parametrize("depth", [1, 2])
def test_frozen_nothing_passes_and_live_something_does(depth):
    frozen, live = (leakage(built(), TEXT, depth, frozen=flag) for flag in (True, False))
    assert [(one.source, one.target, one.depth) for one in live] == [
        ("sem", "pos", depth),
        ("pos", "sem", depth),
    ]
    assert all(one.largest == 0.0 and one.relative == 0.0 for one in frozen)
    assert all(one.largest > 1e-3 and one.relative > 1e-3 for one in live)


def test_strict_lets_no_text_into_position_and_a_joint_norm_something_even_when_frozen():
    to_pos, to_sem = leakage(built(mode="strict"), TEXT, 2, frozen=False)
    assert to_pos.largest == 0.0 and to_sem.largest > 1e-3
    assert leakage(built(norm="joint"), TEXT, 2, frozen=True)[0].largest > 1e-3


def test_the_relative_leak_is_the_ratio_of_two_norms_in_units_of_the_streams():
    model = built()
    part = first_blocks(model.transformer, 2)
    state = part.input_state(model.embedding(TEXT).detach(), torch.arange(5))
    jac = jacobian(part, state, frozen=False)
    by_sem, by_pos = jac[:, :8, :, 8:].norm(), jac[:, :8, :, :8].norm()
    ratio = by_sem * state["sem"].square().mean().sqrt() / (by_pos * state["pos"].square().mean().sqrt())
    found = leakage(model, TEXT, 2, frozen=False)[0]
    assert found.relative == pytest.approx(float(ratio), rel=1e-12)
    assert found.largest == float(jac[:, :8, :, 8:].abs().max())


def test_refusals_say_what_there_is():
    with pytest.raises(ValueError, match="this model has sem"):
        leakage(built(Streams.dense(32)), TEXT, 1, frozen=True)
    with pytest.raises(ValueError, match="depth is 3; every stream is computed after 1 to 2 blocks"):
        leakage(built(), TEXT, 3, frozen=True)
    with pytest.raises(ValueError, match="depth is 0"):
        first_blocks(built().transformer, 0)
    assert first_blocks(built(readout="both").transformer, 3).config.n_layers == 3

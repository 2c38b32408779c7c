"""The instrument that measures leaks: it agrees with autograd's own Jacobian and finds every planted leak."""

import pytest
import torch

from sepnb.analysis import first_blocks, leakage, residual_states
from sepnb.analysis.isolation import CONTROLS, jacobian, join_streams, leak, through_blocks
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from ..shared import refused


def built(d_pos: int = 8, **changes):
    torch.manual_seed(0)
    streams = Streams(pos=d_pos, sem=32 - d_pos)
    config = TransformerConfig(
        streams, n_layers=2, n_heads=4, encoding="sinusoidal", readout="both", **changes
    )
    model = LanguageModel(config, vocab_size=11).double().transformer
    content = torch.randn(1, 4, streams.widths["sem"], dtype=torch.float64)
    return model, model.input_state(content, torch.arange(4)), content


def test_through_blocks_is_what_the_model_computes():
    model, state, content = built()
    expected = model(content)
    for name, part in through_blocks(model, state).items():
        torch.testing.assert_close(part, expected[name], rtol=0, atol=0)


def test_live_jacobian_is_the_one_of_autograd():
    model, state, _ = built()
    streams = model.config.streams

    def stack(x):
        return streams.join(through_blocks(model, streams.split(x[None])))[0]

    expected = torch.autograd.functional.jacobian(stack, streams.join(state)[0])
    torch.testing.assert_close(jacobian(model, state, frozen=False), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("where", CONTROLS)
def test_every_control_leaks_in_both_directions(where):
    model, state, _ = built()
    frozen = jacobian(join_streams(model, where), state, frozen=True)
    assert leak(frozen, model.config.streams) > 1e-3
    assert leak(frozen, model.config.streams, "pos", "sem") > 1e-3


def test_refusals_say_what_to_do():
    model, state, _ = built()
    two = {name: part.repeat(2, 1, 1) for name, part in state.items()}
    refused("2 sequences", jacobian, model, two, frozen=True)
    refused("'attention'; use one of value, output, mlp", join_streams, model, "attention")
    config = TransformerConfig(Streams(pos=8, sem=24), n_layers=1, n_heads=4, encoding="sinusoidal")
    refused("readout='both'", join_streams, LanguageModel(config, vocab_size=11).transformer, "mlp")
    for where, rest in (("mlp", "'norm', 'value_output'"), ("value", "'norm', 'mlp'")):
        lacks = f"lacks the content; build it with split={{{rest}}} instead"
        refused(lacks, join_streams, built(mode="strict")[0], where)
    refused("24 of 32 columns", leak, torch.zeros(4, 24, 4, 32), config.streams)


# --- in a model's own first blocks


def language_model(streams: Streams | None = None, **changes) -> LanguageModel:
    torch.manual_seed(0)
    settings = {"n_layers": 3, "n_heads": 4, "encoding": "learned", "max_length": 8} | changes
    config = TransformerConfig(streams or Streams(pos=8, sem=24), **settings)
    return LanguageModel(config, vocab_size=11).double()


TEXT = torch.tensor([[3, 1, 4, 1, 5]])


@pytest.mark.parametrize("changes", [{}, {"mode": "strict"}, {"encoding": "sinusoidal", "readout": "both"}])
def test_the_first_blocks_compute_what_the_model_does(changes):
    model = language_model(**changes)
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
    frozen, live = (leakage(language_model(), TEXT, depth, frozen=flag) for flag in (True, False))
    assert [(one.source, one.target, one.depth) for one in live] == [
        ("sem", "pos", depth),
        ("pos", "sem", depth),
    ]
    assert all(one.largest == 0.0 and one.relative == 0.0 for one in frozen)
    assert all(one.largest > 1e-3 and one.relative > 1e-3 for one in live)


def test_strict_lets_no_text_into_position_and_a_joint_norm_something_even_when_frozen():
    to_pos, to_sem = leakage(language_model(mode="strict"), TEXT, 2, frozen=False)
    assert to_pos.largest == 0.0 and to_sem.largest > 1e-3
    assert leakage(language_model(norm="joint"), TEXT, 2, frozen=True)[0].largest > 1e-3


def test_the_relative_leak_is_the_ratio_of_two_norms_in_units_of_the_streams():
    model = language_model()
    part = first_blocks(model.transformer, 2)
    state = part.input_state(model.embedding(TEXT).detach(), torch.arange(5))
    jac = jacobian(part, state, frozen=False)
    by_sem, by_pos = jac[:, :8, :, 8:].norm(), jac[:, :8, :, :8].norm()
    ratio = by_sem * state["sem"].square().mean().sqrt() / (by_pos * state["pos"].square().mean().sqrt())
    found = leakage(model, TEXT, 2, frozen=False)[0]
    assert found.relative == pytest.approx(float(ratio), rel=1e-12)
    assert found.largest == float(jac[:, :8, :, 8:].abs().max())


def test_refusals_of_depths_say_what_there_is():
    refused("this model has sem", leakage, language_model(Streams.dense(32)), TEXT, 1, frozen=True)
    with pytest.raises(ValueError, match="depth is 3; every stream is computed after 1 to 2 blocks"):
        leakage(language_model(), TEXT, 3, frozen=True)
    refused("depth is 0", first_blocks, language_model().transformer, 0)
    assert first_blocks(language_model(readout="both").transformer, 3).config.n_layers == 3

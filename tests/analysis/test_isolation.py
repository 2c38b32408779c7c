"""The instrument that measures leaks: it agrees with autograd's own Jacobian and finds every planted leak."""

import pytest
import torch

from sepnb.analysis.isolation import CONTROLS, jacobian, join_streams, leak, through_blocks
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams


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


@pytest.mark.parametrize("d_pos", [8, 5, 12])
@pytest.mark.parametrize("changes", [{}, {"bias": True}, {"norm_kind": "rms"}, {"causal": False}])
def test_a_separated_stack_is_isolated_when_frozen_and_leaks_by_routing_when_live(d_pos, changes):
    model, state, _ = built(d_pos, **changes)
    streams = model.config.streams
    frozen, live = (jacobian(model, state, frozen=flag) for flag in (True, False))
    assert leak(frozen, streams) == 0.0 and leak(frozen, streams, "pos", "sem") == 0.0
    assert leak(live, streams) > 1e-3
    assert leak(frozen, streams, "sem", "sem") > 0.1  # not vacuous: the sem stream hears itself


@pytest.mark.parametrize("where", CONTROLS)
def test_every_control_leaks_in_both_directions(where):
    model, state, _ = built()
    frozen = jacobian(join_streams(model, where), state, frozen=True)
    assert leak(frozen, model.config.streams) > 1e-3
    assert leak(frozen, model.config.streams, "pos", "sem") > 1e-3


@pytest.mark.parametrize("split", [{"norm", "value_output"}, {"norm", "mlp"}], ids=sorted)
def test_strict_built_without_a_split_leaks_as_the_refusal_of_a_control_promises(split):
    model, state, _ = built(mode="strict", split=split)
    assert leak(jacobian(model, state, frozen=True), model.config.streams) > 1e-3


def test_refusals_say_what_to_do():
    model, state, _ = built()
    with pytest.raises(ValueError, match="2 sequences"):
        jacobian(model, {name: part.repeat(2, 1, 1) for name, part in state.items()}, frozen=True)
    with pytest.raises(ValueError, match="'attention'; use one of value, output, mlp"):
        join_streams(model, "attention")
    config = TransformerConfig(Streams(pos=8, sem=24), n_layers=1, n_heads=4, encoding="sinusoidal")
    narrow = LanguageModel(config, vocab_size=11).transformer
    with pytest.raises(ValueError, match="readout='both'"):
        join_streams(narrow, "mlp")
    for where, rest in (("mlp", "'norm', 'value_output'"), ("value", "'norm', 'mlp'")):
        with pytest.raises(ValueError, match=f"lacks the content; build it with split={{{rest}}} instead"):
            join_streams(built(mode="strict")[0], where)
    with pytest.raises(ValueError, match="24 of 32 columns"):
        leak(torch.zeros(4, 24, 4, 32), config.streams)

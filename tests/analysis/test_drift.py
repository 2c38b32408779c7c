"""Drift: none without an encoding, none of a model that sees differences only, and the right unit."""

import math

import pytest
import torch

from sepnb.analysis import attention_distance, attention_entropy, attention_maps, drift, residual_states
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from ..shared import refused


def built(encoding: str, streams: Streams | None = None) -> LanguageModel:
    torch.manual_seed(0)
    config = TransformerConfig(streams or Streams.dense(32), 2, 4, encoding, max_length=64)
    return LanguageModel(config, vocab_size=11).double()


TEXT = torch.randint(11, (4, 8), generator=torch.Generator().manual_seed(1))
HERE, THERE = torch.arange(8), torch.arange(8) + 40


def moved(model: LanguageModel) -> float:
    here, there = (residual_states(model, TEXT, at)[-1]["sem"] for at in (HERE, THERE))
    return drift(there, here)


@pytest.mark.parametrize(
    ("encoding", "least", "most"),
    [("none", 0, 0), ("rope", 0, 1e-12), ("alibi", 0, 1e-12), ("learned", 1e-3, 2), ("sinusoidal", 1e-3, 2)],
)
def test_only_an_absolute_encoding_moves_the_sem_stream_added_or_separated(encoding, least, most):
    assert least <= moved(built(encoding)) <= most
    if least:
        assert moved(built(encoding, Streams(pos=8, sem=24))) > least


def test_drift_is_in_units_of_the_norm_of_the_reference():
    reference = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))
    assert drift(reference, reference) == 0.0
    assert drift(1.25 * reference, reference) == pytest.approx(0.25)
    assert drift(torch.zeros_like(reference), reference) == pytest.approx(1.0)
    wide = torch.randn(50, 40, 30, generator=torch.Generator().manual_seed(1))
    other = torch.randn(50, 40, 30, generator=torch.Generator().manual_seed(2))
    assert drift(other, wide) == pytest.approx(math.sqrt(2), abs=0.02)
    refused("0 throughout", drift, reference, torch.zeros_like(reference))


def test_attention_that_goes_wholly_elsewhere_is_at_distance_one():
    first, last = torch.zeros(1, 2, 5, 5), torch.eye(5).expand(1, 2, 5, 5)
    first[..., 0] = 1
    assert attention_distance(first, last) == 1.0
    assert attention_distance(first, first) == 0.0
    assert attention_distance((first + last) / 2, last) == pytest.approx(0.5)


def test_entropy_is_one_where_nothing_is_chosen_and_zero_where_one_token_is():
    alike = torch.ones(1, 1, 9, 9).tril() / torch.arange(1, 10)[:, None]
    assert attention_entropy(alike) == pytest.approx(1.0)
    assert attention_entropy(torch.eye(9).expand(1, 1, 9, 9)) == 0.0


def test_the_attention_of_a_model_without_an_encoding_stays_where_it_is():
    still, turning = built("none"), built("sinusoidal")
    for model, goes in ((still, False), (turning, True)):
        here, there = (attention_maps(model, TEXT, at)[0]["sem"] for at in (HERE, THERE))
        assert (attention_distance(there, here) > 1e-3) is goes
        assert 0 < attention_entropy(here) < 1


def test_a_single_token_is_refused():
    one = torch.ones(1, 1, 1, 1)
    refused("give two or more", attention_distance, one, one)
    refused("give two or more", attention_entropy, one)

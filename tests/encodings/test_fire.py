"""FIRE against a loop, its quotient, and where it stops to be a function of the distance."""

import math

import pytest
import torch

from sepnb.encodings import Fire, Heads, fire, fire_bias, fire_ratio
from sepnb.models import TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, POSITIONS, UNSORTED, agree, drawn, random

C, L = torch.tensor(0.3, dtype=F64), torch.tensor(6.0, dtype=F64)


def printed(i: int, j: int, c: float, threshold: float) -> float:
    def psi(x: float) -> float:
        return math.log(abs(c) * x + 1)

    return psi(i - j) / (psi(max(threshold, i)) + 1e-6)


@pytest.mark.parametrize("c", [0.3, -0.3])
def test_the_quotient_is_the_printed_one_with_the_size_of_c(c):
    ratio = fire_ratio(torch.tensor(c, dtype=F64), L, UNSORTED, UNSORTED)
    for n, i in enumerate(UNSORTED.tolist()):
        for m, j in enumerate(UNSORTED.tolist()):
            expected = printed(i, j, c, 6.0) if j <= i else 0.0
            assert ratio[n, m].item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("keys", POSITIONS.values(), ids=POSITIONS)
def test_the_quotient_lies_between_0_and_1_at_every_length(keys):
    for c, threshold in ((0.3, 6.0), (0.3, 0.0), (1e-9, 1.0), (50.0, 512.0), (0.0, 0.0)):
        ratio = fire_ratio(torch.tensor(c, dtype=F64), torch.tensor(threshold, dtype=F64), keys, keys)
        assert ratio.isfinite().all() and ratio.min() >= 0 and ratio.max() <= 1


def test_up_to_the_threshold_it_is_a_function_of_the_distance_and_beyond_it_is_not():
    module, at = drawn(Fire(threshold=20.0).at_score(Heads(2))), torch.arange(40)
    with torch.no_grad():
        module.multiplier.fill_(1.0)
        bias = module(at, at)
    inside, outside = bias[:, :20, :20], bias[:, 20:, :20]
    seen = torch.ones(19, 19, dtype=torch.bool).tril()
    difference = (inside[:, 1:, 1:] - inside[:, :-1, :-1])[:, seen]
    assert difference.abs().max() < 1e-12
    assert (outside[:, 1:, 1:] - outside[:, :-1, :-1]).abs().amax((1, 2)).min() > 1e-4


def test_where_a_text_starts_is_heard():
    module, at = drawn(Fire(threshold=4.0).at_score(Heads(2))), torch.arange(9)
    moved = (module(at + 100, at + 100) - module(at, at)).abs()
    assert moved[:, torch.ones(9, 9, dtype=torch.bool).tril(-1)].max() > 1e-3


def test_gradients_are_finite_at_the_first_token_and_at_distance_0_even_without_a_threshold():
    module = drawn(Fire().at_score(Heads(2)))
    with torch.no_grad():
        module.multiplier.zero_()
    at = torch.tensor([0])
    module(at, at).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())
    module.zero_grad()
    with torch.no_grad():
        module.c.zero_()
    module(torch.arange(3), torch.arange(3)).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


@pytest.mark.parametrize("at_once", [1, 200, 2**19])
def test_by_rows_it_is_the_function_of_all_pairs_in_value_and_every_gradient(monkeypatch, at_once):
    module, at, made_of = drawn(Fire(threshold=6.0, hidden=5).at_score(Heads(2))), torch.arange(11), []
    monkeypatch.setattr(fire, "_AT_ONCE", at_once)
    called = fire.fire_bias
    monkeypatch.setattr(
        fire, "fire_bias", lambda *given: made_of.append(given[4].shape[-1]) or called(*given)
    )
    for keys in (at, at.expand(2, -1)):
        agree(
            lambda keys=keys: module(keys, keys),
            lambda keys=keys: called(
                module.c, (module.multiplier * 6.0).abs(), module.hidden, module.out, keys, keys
            ),
            list(module.parameters()),
        )
    rows = {1: [1] * 11, 200: [3, 3, 3, 2], 2**19: [11]}[at_once]
    assert made_of[: len(rows)] == rows


def test_parameters_start_where_the_ports_start_them():
    torch.manual_seed(0)
    module = Fire().at_score(Heads(40))
    assert module.c.item() == pytest.approx(0.1) and module.multiplier.item() == 1 and module.length == 512
    assert module.hidden.shape == (2, 32) and module.out.shape == (40, 33)
    assert module.hidden.abs().max() <= 1 and module.out.abs().max() <= 32**-0.5


def test_the_function_takes_the_layers_as_rows_and_a_last_column():
    hidden, out = random(2, 4), random(3, 5, seed=1)
    bias = fire_bias(C, L, hidden, out, torch.arange(4), torch.arange(4))
    x = fire_ratio(C, L, torch.arange(4), torch.arange(4))[2, 1]
    units = [max(0.0, (hidden[0, k] * x + hidden[1, k]).item()) for k in range(4)]
    expected = sum(out[2, k].item() * units[k] for k in range(4)) + out[2, 4].item()
    assert bias.shape == (3, 4, 4) and bias[2, 2, 1].item() == pytest.approx(expected, abs=1e-12)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"threshold is 0\.0; it must be above 0"):
        Fire(threshold=0.0)
    with pytest.raises(ValueError, match="hidden is 0; the perceptron needs at least 1 unit"):
        Fire(hidden=0)
    with pytest.raises(ValueError, match="fire is for causal models only"):
        TransformerConfig(Streams.dense(8), 1, 2, "fire", causal=False)

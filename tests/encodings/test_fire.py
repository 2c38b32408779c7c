"""FIRE: its quotient, its gradients, and its bias by rows."""

import pytest
import torch

from sepnb.encodings import Fire, Heads, fire, fire_ratio

from .drawn import F64, POSITIONS, agree, drawn


@pytest.mark.parametrize("keys", POSITIONS.values(), ids=POSITIONS)
def test_the_quotient_lies_between_0_and_1_at_every_length(keys):
    for c, threshold in ((0.3, 6.0), (0.3, 0.0), (1e-9, 1.0), (50.0, 512.0), (0.0, 0.0)):
        ratio = fire_ratio(torch.tensor(c, dtype=F64), torch.tensor(threshold, dtype=F64), keys, keys)
        assert ratio.isfinite().all() and ratio.min() >= 0 and ratio.max() <= 1


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
    monkeypatch.setattr(fire.FireScore, "at_once", at_once)
    called = fire._bias
    monkeypatch.setattr(fire, "_bias", lambda *given: made_of.append(given[4].shape[-1]) or called(*given))
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

"""Sandwich against a sum of cosines, the inner product it stands for, and its neighbours' index sets."""

import math

import pytest
import torch

from sepnb.encodings import Heads, Sandwich, sandwich_bias

from .drawn import F64, UNSORTED


def wave_sum(distance: int, indices: range, width: int = 128) -> float:
    return sum(math.cos(distance * 10_000.0 ** (-2 * m / width)) for m in indices)


def test_the_bias_is_the_printed_sum_for_every_pair_and_head():
    bias = sandwich_bias(6, UNSORTED, UNSORTED + 5, width=10)
    assert bias.shape == (6, 7, 7) and bias.dtype == F64
    for h in range(6):
        for n, i in enumerate(UNSORTED.tolist()):
            for m, j in enumerate((UNSORTED + 5).tolist()):
                expected = (wave_sum(abs(i - j), range(1, 6), 10) - 5) * 6 / (8 * (h + 1))
                assert bias[h, n, m].item() == pytest.approx(expected, abs=1e-10)


def test_waves_are_counted_from_1_as_others_may_not():
    """Distance 8 less distance 0, head 1 of 8: from 1 to 64, from 1 to 63, from 0 to 63."""
    bias = sandwich_bias(8, torch.tensor([0]), torch.tensor([0, 8]))[0, 0]
    assert bias[0].item() == 0
    found = (bias[1] - bias[0]).item()
    assert found == pytest.approx(-17.13, abs=5e-3)
    assert found == pytest.approx(wave_sum(8, range(1, 64)) - 63, abs=1e-6)
    assert wave_sum(8, range(64)) - 64 == pytest.approx(-18.28, abs=5e-3)


def test_it_is_the_inner_product_of_two_codes_up_to_a_constant():
    at = torch.tensor([3, 17, 40])
    angles = at[:, None] * 10_000.0 ** (-2 * torch.arange(1, 65, dtype=F64) / 128)
    codes = torch.cat([angles.sin(), angles.cos()], dim=-1)
    bias = sandwich_bias(1, at, at) * 8
    torch.testing.assert_close(bias[0], codes @ codes.T - 64, rtol=0, atol=1e-10)


def test_casting_the_module_leaves_the_bias_bitwise():
    module, keys = Sandwich().at_score(Heads(3)), torch.arange(3000, 3009)
    before = module(keys, keys)
    module.to(torch.bfloat16).half()
    assert torch.equal(module(keys, keys), before)


def test_it_falls_on_average_and_oscillates_on_the_way():
    bias = sandwich_bias(1, torch.tensor([0]), torch.arange(2048))[0, 0]
    means = bias.unflatten(0, (8, 256)).mean(-1)
    assert (means.diff() < 0).all()
    assert (bias.diff() > 0).any()


def test_a_code_that_does_not_exist_is_refused():
    for make, message in (
        (lambda: Sandwich(width=7), "width is 7; the embedding has pairs of columns, so give an even number"),
        (lambda: Sandwich(base=1.0), r"base is 1\.0; it must be above 1"),
        (lambda: sandwich_bias(0, UNSORTED, UNSORTED), "n_heads is 0; give at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            make()

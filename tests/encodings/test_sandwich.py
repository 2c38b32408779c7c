"""Sandwich against a sum of cosines: which waves are counted."""

import math

import pytest
import torch

from sepnb.encodings import sandwich_bias


def wave_sum(distance: int, indices: range, width: int = 128) -> float:
    return sum(math.cos(distance * 10_000.0 ** (-2 * m / width)) for m in indices)


def test_waves_are_counted_from_1_as_others_may_not():
    """Distance 8 less distance 0, head 1 of 8: from 1 to 64, from 1 to 63, from 0 to 63."""
    bias = sandwich_bias(8, torch.tensor([0]), torch.tensor([0, 8]))[0, 0]
    assert bias[0].item() == 0
    found = (bias[1] - bias[0]).item()
    assert found == pytest.approx(-17.13, abs=5e-3)
    assert found == pytest.approx(wave_sum(8, range(1, 64)) - 63, abs=1e-6)
    assert wave_sum(8, range(64)) - 64 == pytest.approx(-18.28, abs=5e-3)

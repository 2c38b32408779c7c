"""T5: buckets against the printed formula, and a scale of its own."""

import math

import pytest
import torch

from sepnb.encodings import t5_buckets

from .references import t5_bucket

SETTINGS = [(32, 128), (32, 64), (64, 256), (16, 50), (8, 2048), (2, 2)]


@pytest.mark.parametrize(
    ("n_buckets", "max_distance", "bidirectional"),
    [(*one, both) for one in SETTINGS for both in (False, True) if one[0] >= 4 or not both],
)
def test_buckets_are_the_printed_formula_at_every_distance_up_to_2048(n_buckets, max_distance, bidirectional):
    relative = torch.arange(-2048, 2049)
    found = t5_buckets(relative, n_buckets=n_buckets, max_distance=max_distance, bidirectional=bidirectional)
    assert found.tolist() == [
        t5_bucket(r, n_buckets, max_distance, bidirectional) for r in range(-2048, 2049)
    ]


def test_the_released_single_precision_formula_agrees_at_the_default():
    n = torch.arange(1, 5000)
    large = 16 + (torch.log(n.float() / 16) / math.log(128 / 16) * 16).to(torch.long)
    expected = torch.where(n < 16, n, large.clamp(max=31))
    assert torch.equal(t5_buckets(-n), expected)

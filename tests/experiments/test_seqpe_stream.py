"""SeqPE as the position stream: where windows begin, by their digits."""

import pytest
import torch

from sepnb import experiments
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import seqpe_stream as stream
from sepnb.seqpe.digits import digits

STREAM = experiments.get("seqpe_stream")


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_starts_are_covered_or_never_seen_and_share_their_low_digits_or_not(profile):
    length = lm.SIZES[profile].length
    found, low = stream.starts(length), len(str(length - 1))
    own = digits(torch.arange(length), width=5)[:, -low:]
    sampler = STREAM.config(profile, "separated-seqpe", 1).training.positions
    for name, start in found.items():
        window = digits(start + torch.arange(length), width=5)
        assert torch.equal(window[:, -low:], own) == ("misaligned" not in name), name
        assert (start + length <= sampler.maximum) == name.startswith("covered"), name
        assert start >= length and start + length <= 10**5
    assert len(set(found.values())) == len(found) == 8

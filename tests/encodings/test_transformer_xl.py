"""Transformer-XL: where its parameters start."""

import pytest
import torch

from sepnb.encodings import Heads, TransformerXL


def test_biases_start_small_and_the_map_has_none_of_its_own():
    torch.manual_seed(0)
    module = TransformerXL().at_score(Heads(50, 40, 8))
    for bias in (module.u, module.v):
        assert bias.std().item() == pytest.approx(0.02, rel=0.1)
    assert module.distances.bias is None

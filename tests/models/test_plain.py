"""Every legal shape against the model written out: its output, every gradient, and what it leaves out."""

import pytest
import torch

from . import shapes
from .plain import Plain

LENGTH = 6
SHARED = torch.arange(LENGTH)
ROWS = torch.tensor([[0, 1, 2, 3, 4, 5], [7, 3, 9, 1, 11, 2]])


@pytest.mark.parametrize("shape", shapes.covering(), ids=shapes.name)
def test_every_shape_is_its_masked_dense_form_in_output_and_every_gradient(text, shape):
    """With positions that the batch shares, isolated position streams run once; with those of a row, not.

    Noise in every entry that the config allows and the model did not build is heard by nobody.
    """
    model, tokens = shapes.model(shape), text(2, LENGTH)
    for positions in (SHARED, ROWS):
        model.zero_grad()
        Plain(model).check(model, tokens, positions)
    with torch.no_grad():
        noisy = Plain(model, unbuilt=1.0)(tokens, ROWS)
        torch.testing.assert_close(noisy, model(tokens, ROWS), rtol=0, atol=1e-10)

"""The released schedule of images, on one axis, two and three."""

import pytest
import torch

from sepnb.seqpe import SequentialPositionEncoder
from sepnb.training.seqpe_losses import grid_losses
from sepnb.training.shifts import GridShiftSteps


@pytest.mark.parametrize(
    ("grid", "box", "places"),
    [
        ((40,), (320,), 13),
        ((4,), (320,), 2),
        ((14, 14), (17, 17), 64),
        ((7, 7), (17, 17), 16),
        ((20, 4), (20, 17), 26),
        ((6, 6, 6), (6, 6, 6), 64),
    ],
)
def test_boxes_and_windows_are_those_of_the_release_on_any_number_of_axes(grid, box, places):
    """Of the release are boxes of 17 x 17 and 64 of 14 x 14 places."""
    ranges = (400,) * len(grid)
    losses = grid_losses(grid, ranges, columns=384)
    assert losses.candidates.window == box and losses.candidates.ranges == losses.windows.ranges == ranges
    assert (losses.windows.trained, losses.windows.away, losses.windows.first) == (grid, grid, 1)
    assert losses.windows.places == places and losses.n_heads == 6
    assert losses.distillation == 0.1 / places, "the released weight, of a loss that is divided by them"
    assert losses.shifts == GridShiftSteps(grid, ranges) and losses.shifts.first == 1


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_both_losses_reach_an_encoder_of_so_many_coordinates(axes):
    torch.manual_seed(0)
    encoder = SequentialPositionEncoder(width=16, dims=axes, digits=2)
    losses = grid_losses((4,) * axes, (100,) * axes, columns=16)
    alone = {}
    for part in ("contrastive", "distillation"):
        encoder.zero_grad()
        one = losses.__class__(**{**vars(losses), "contrastive": 0.0, "distillation": 0.0, part: 1.0})
        value = one.bind(3)(encoder)
        value.backward()
        alone[part] = value.item()
        assert value > 0 and encoder.digit.weight.grad.abs().max() > 0
    both = losses.bind(3)(encoder).item()
    assert both == pytest.approx(0.1 * alone["contrastive"] + losses.distillation * alone["distillation"])

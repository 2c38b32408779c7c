"""Shares of variance, waves and directions of states whose answer is known."""

import pytest
import torch

from sepnb.analysis import frequency_shares, position_mean, principal_trajectory, variance_shares
from sepnb.encodings import sinusoidal

from ..shared import refused


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_shares_sum_to_one_and_are_those_of_the_construction():
    p, s = normal(1, 200, 8), normal(300, 200, 8, seed=1)
    for weight in (0.1, 1.0, 3.0):
        shares = variance_shares(weight * p + s)
        assert shares.position + shares.text == 1.0
        assert shares.text == pytest.approx(1 / (1 + weight**2), abs=0.02)


def test_what_is_the_same_for_every_text_is_all_position_and_at_every_position_all_text():
    assert variance_shares(normal(1, 9, 4).expand(5, -1, -1).float()) == (1.0, 0.0)
    assert variance_shares(normal(5, 1, 4).expand(-1, 9, -1)).text == pytest.approx(1.0, abs=1e-12)


def test_noise_counts_one_over_the_number_of_texts_to_position():
    assert variance_shares(normal(20, 400, 8)).position == pytest.approx(1 / 20, abs=0.005)


def test_a_constant_and_a_shift_change_nothing():
    x = normal(6, 10, 4)
    one, moved = variance_shares(x), variance_shares(-3 * x + 5)
    assert one.text == pytest.approx(moved.text, abs=1e-12)


def test_the_mean_over_texts_takes_the_text_away():
    p = normal(1, 12, 4)
    torch.testing.assert_close(position_mean(torch.cat([p + 1, p - 1])), p[0])


@pytest.mark.parametrize("length", [32, 33])
def test_one_wave_is_one_frequency(length):
    angle = 2 * torch.pi * 5 * torch.arange(length) / length
    shares = frequency_shares(torch.stack([angle.sin() + 4, angle.cos()], dim=1))
    assert len(shares) == length // 2
    assert shares[4] == pytest.approx(1.0, abs=1e-10) and shares.sum() == pytest.approx(1.0)


def test_a_circle_has_two_equal_components_and_its_path_is_the_circle():
    angle = 2 * torch.pi * torch.arange(40) / 40
    frame = torch.linalg.qr(normal(6, 2)).Q.T
    table = torch.stack([angle.cos(), angle.sin()], dim=1).double() @ frame + 3
    paths, shares = principal_trajectory(table, 2)
    assert shares.tolist() == pytest.approx([0.5, 0.5])
    torch.testing.assert_close(paths.norm(dim=1), torch.ones(40, dtype=torch.float64))


def test_the_trajectory_keeps_distances_and_does_not_depend_on_the_sign_of_the_axes():
    table = sinusoidal(torch.arange(20), 8).double()
    paths, shares = principal_trajectory(table, 8)
    torch.testing.assert_close(torch.cdist(paths, paths), torch.cdist(table, table), rtol=0, atol=1e-7)
    assert shares.sum() == pytest.approx(1.0) and (shares.diff() <= 1e-12).all()
    mirrored, _ = principal_trajectory(-table, 3)
    largest = mirrored.gather(0, mirrored.abs().argmax(0, keepdim=True))
    assert (largest > 0).all()


def test_refusals_name_the_value():
    refused("1 text: give two or more", variance_shares, torch.zeros(1, 3, 2))
    refused("no variance", variance_shares, torch.ones(2, 3, 2))
    refused(r"components is 5; a table of \[9, 4\] has 1 to 4", principal_trajectory, torch.ones(9, 4), 5)

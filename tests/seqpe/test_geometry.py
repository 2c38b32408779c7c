"""Measures of a window's geometry: what is perfect, what is noise, and what they do not see."""

import numpy as np
import pytest
import torch

from sepnb.encodings import sinusoidal
from sepnb.seqpe.geometry import geometry, likeness

F64 = torch.float64
LINE = torch.arange(40)
GRID = torch.cartesian_prod(torch.arange(6), torch.arange(7))


def bumps(at: torch.Tensor, width: float) -> torch.Tensor:
    """Embeddings whose inner products fall steadily with the distance: one Gaussian for every centre."""
    at = at.reshape(len(at), -1).double()
    axes = (
        [torch.linspace(-60, 100, 641, dtype=F64)]
        if at.shape[1] == 1
        else [torch.linspace(-50, 56, 213, dtype=F64)] * 2
    )
    centres = torch.cartesian_prod(*axes).reshape(-1, at.shape[1])
    return torch.exp(-torch.cdist(at, centres).square() / (2 * width**2))


@pytest.mark.parametrize("at", [LINE, GRID], ids=["line", "grid"])
def test_embeddings_that_fall_with_the_distance_are_in_perfect_order(at):
    found = geometry(bumps(at, 8.0), at)
    assert found.order == pytest.approx(1.0, abs=1e-9) and found.adjacency == 1.0
    assert found.distance == pytest.approx(1.0, abs=1e-9)


def test_noise_has_no_order_and_finds_neighbours_by_chance():
    drawn = torch.randn(2000, 64, generator=torch.Generator().manual_seed(0))
    found = geometry(drawn[:500], torch.arange(500))
    assert abs(found.order) < 0.02 and abs(found.distance) < 0.02 and found.adjacency < 0.03
    assert found.norm == pytest.approx(8.0, rel=0.05)


def test_products_that_grow_with_the_distance_are_the_opposite_order():
    apart = torch.cdist(LINE.double()[:, None], LINE.double()[:, None])
    values, vectors = torch.linalg.eigh(apart + 2000 * torch.eye(40, dtype=F64))  # a matrix of products
    assert geometry(vectors * values.sqrt(), LINE).order == pytest.approx(-1.0, abs=1e-9)


def test_distances_of_embeddings_of_unequal_lengths_are_not_told_by_their_products():
    """Positions on a ray: what is farther apart has the larger product all the same."""
    ray = (1 + LINE.double())[:, None] * torch.ones(1, 3, dtype=F64)
    found = geometry(ray, LINE)
    assert found.distance == pytest.approx(1.0) and found.order < 0.5
    wave = geometry(sinusoidal(LINE, 32, dtype=F64), LINE)
    assert wave.distance == pytest.approx(wave.order, abs=1e-3), "of one length"


def test_a_window_is_like_itself_moved_stretched_or_turned_and_unlike_noise():
    generator = torch.Generator().manual_seed(1)
    one, other = (torch.randn(30, 16, dtype=F64, generator=generator) for _ in range(2))
    turn = torch.linalg.qr(torch.randn(16, 16, dtype=F64, generator=generator))[0]
    assert likeness(one, one @ turn) == pytest.approx(1.0)
    assert likeness(one, 3 * one) == pytest.approx(1.0)
    assert abs(likeness(one, other)) < 0.2
    assert likeness(sinusoidal(LINE, 16, dtype=F64), sinusoidal(LINE + 999, 16, dtype=F64)) == pytest.approx(
        1.0
    )


@pytest.mark.parametrize(("count", "positions"), [(2, 2), (5, 4)])
def test_what_cannot_be_ranked_is_refused(count, positions, unhooked):
    with pytest.raises(ValueError, match=f"{count} embeddings of {positions} positions"):
        geometry(torch.zeros(count, 4), np.arange(positions))

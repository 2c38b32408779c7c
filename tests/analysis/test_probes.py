"""Probes find what was planted, find nothing in noise, and are what a solver of least squares would give."""

import numpy as np
import pytest
import torch

from sepnb.analysis import accuracy, fit_classifier, fit_probe, majority_rate, r_squared

from ..shared import refused


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def normal(*shape: int, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_a_planted_linear_code_is_recovered_on_unseen_examples(generator):
    positions = torch.arange(64).double().repeat(10)
    direction = normal(1, 16, generator=generator)
    states = positions[:, None] * direction + normal(640, 16, generator=generator)
    probe = fit_probe(states[:320], positions[:320, None])
    assert r_squared(probe(states[320:])[:, 0], positions[320:]) > 0.99
    shuffled = positions[320:][torch.randperm(320, generator=generator)]
    assert r_squared(probe(states[320:])[:, 0], shuffled) < 0.0


def test_the_probe_is_the_solution_of_the_penalised_least_squares_problem(generator):
    x, y = normal(50, 5, generator=generator) * 3 + 1, normal(50, 2, generator=generator)
    ridge = 0.1
    probe = fit_probe(x, y, ridge=ridge)
    z = (x.numpy() - x.numpy().mean(0)) / x.numpy().std(0)
    centred = y.numpy() - y.numpy().mean(0)
    stacked = np.vstack([z / np.sqrt(50), np.sqrt(ridge) * np.eye(5)])  # ridge as more equations
    wanted = np.linalg.lstsq(stacked, np.vstack([centred / np.sqrt(50), np.zeros((5, 2))]), rcond=None)[0]
    np.testing.assert_allclose(probe.weights.numpy(), wanted, atol=1e-10)
    np.testing.assert_allclose(probe(x).numpy(), z @ wanted + y.numpy().mean(0), atol=1e-10)


def test_neither_the_unit_of_a_feature_matters_nor_one_that_never_moves(generator):
    x, y = normal(80, 4, generator=generator), normal(80, 1, generator=generator)
    scaled = x * torch.tensor([1e-6, 1.0, 30.0, 1e5], dtype=torch.float64) + 7
    constant = torch.cat([x, torch.full((80, 1), 4.0, dtype=torch.float64)], dim=1)
    for same in (scaled, constant):
        torch.testing.assert_close(fit_probe(x, y)(x), fit_probe(same, y)(same))


def test_a_planted_byte_is_read_and_noise_stays_at_the_majority_rate(generator):
    labels = torch.multinomial(torch.tensor([0.5, 0.3, 0.2]), 4000, replacement=True, generator=generator)
    code = normal(3, 8, generator=generator)
    states = code[labels] + 0.1 * normal(4000, 8, generator=generator)
    probe = fit_classifier(states[:2000], labels[:2000], 3)
    assert accuracy(probe, states[2000:], labels[2000:]) > 0.99
    noise = normal(4000, 8, generator=generator)
    blind = fit_classifier(noise[:2000], labels[:2000], 3)
    floor = majority_rate(labels[:2000], labels[2000:])
    assert 0.45 < floor < 0.55
    assert accuracy(blind, noise[2000:], labels[2000:]) == pytest.approx(floor, abs=0.02)


def test_features_that_say_nothing_give_exactly_the_majority_rate(generator):
    labels = torch.multinomial(torch.tensor([0.2, 0.5, 0.3]), 300, replacement=True, generator=generator)
    zeros = torch.zeros(300, 5)
    probe = fit_classifier(zeros[:200], labels[:200], 3)
    assert accuracy(probe, zeros[200:], labels[200:]) == majority_rate(labels[:200], labels[200:])


def test_r_squared_is_one_for_the_truth_and_zero_for_its_mean():
    target = torch.arange(10.0)
    assert r_squared(target, target) == 1.0
    assert r_squared(torch.full((10,), 4.5), target) == 0.0
    assert r_squared(-target, target) < -1


def test_refusals_name_the_value(unhooked):
    refused("3 examples and 2 targets", fit_probe, torch.zeros(3, 2), torch.zeros(2, 1))
    refused("0 examples", fit_probe, torch.zeros(0, 2), torch.zeros(0, 1))
    refused("ridge is 0; it must be above 0", fit_probe, torch.zeros(3, 2), torch.zeros(3, 1), ridge=0)
    refused("never moves", r_squared, torch.zeros(3), torch.ones(3))

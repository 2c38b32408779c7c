"""KERPLE at distance 0 and far away, and where its parameters start."""

import pytest
import torch

from sepnb.encodings import Heads, Kerple, kerple_bias

from .drawn import F64

FORMS = ("logarithmic", "power")
R1, R2 = torch.tensor([0.3, 1.7], dtype=F64), torch.tensor([0.4, 1.2], dtype=F64)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_0_at_distance_0_falls_from_there_and_has_finite_gradients_everywhere(form):
    r1, r2 = R1.clone().requires_grad_(), R2.clone().requires_grad_()
    far = torch.tensor([0, 1, 2, 10, 1000, 10**6])
    bias = kerple_bias(r1, r2, torch.tensor([0]), far, form=form)[:, 0]
    assert (bias[:, 0] == 0).all() and (bias.diff() < 0).all()
    bias.sum().backward()
    for r in (r1, r2):
        assert r.grad.isfinite().all() and (r.grad != 0).all()
    r1.grad = r2.grad = None
    kerple_bias(r1, r2, torch.tensor([5]), torch.tensor([5]), form=form).sum().backward()
    assert (r1.grad == 0).all() and (r2.grad == 0).all()  # 0 ln 0 would be no number


@pytest.mark.parametrize("form", FORMS)
def test_parameters_start_as_released_and_stay_positive_whatever_a_step_does(form):
    torch.manual_seed(0)
    module = Kerple(form).at_score(Heads(4000))
    r1, r2 = module.r1, module.r2
    assert r1.min() > 0 and r1.max() <= 2.001 and r1.mean().item() == pytest.approx(1.0, abs=0.05)
    assert r2.min() > 0 and r2.max() <= 1.001 and r2.mean().item() == pytest.approx(0.5, abs=0.05)
    optimiser = torch.optim.SGD(module.parameters(), lr=50.0)
    for sign in (1, -1):
        optimiser.zero_grad()
        (sign * module(torch.tensor([3]), torch.arange(4)).mean(0).sum() * 4000).backward()
        optimiser.step()
        assert module.r1.min() >= 0 and module.r2.min() >= 0
        assert form == "logarithmic" or module.r2.max() <= 2


def test_a_small_parameter_still_learns():
    """The clamp of the release has no gradient below 0.01."""
    module = Kerple().at_score(Heads(1))
    with torch.no_grad():
        module.raw_r1.fill_(-6.0), module.raw_r2.fill_(-6.0)
    assert module.r1.item() < 0.01 and module.r2.item() < 0.01
    module(torch.tensor([9]), torch.tensor([0])).sum().backward()
    assert module.raw_r1.grad.abs().item() > 0 and module.raw_r2.grad.abs().item() > 0

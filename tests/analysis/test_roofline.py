"""The roofline: what operations multiply and move, and which of the two bounds a ratio."""

import pytest
import torch
import torch.nn.functional as F

from sepnb.analysis.flops import products_of
from sepnb.analysis.roofline import Work, limit, roofline, work_of


def test_a_product_moves_its_inputs_and_its_output_and_a_view_nothing():
    a, b = torch.randn(6, 5), torch.randn(5, 4)
    (found,) = work_of(lambda: (a.t() @ a.new_empty(6, 4), a.view(3, 10))[:1])[:1]
    assert found == Work("aten::mm", 5 * 6 * 4, 4 * (30 + 24 + 20))
    assert found.intensity == 120 / 296
    (found,) = work_of(lambda: torch.mm(a, b).t())
    assert found.moved == 4 * (30 + 20 + 24)


def test_the_backward_pass_and_attention_are_in_it():
    q = torch.randn(1, 2, 8, 4, requires_grad=True)

    def step():
        F.gelu(F.scaled_dot_product_attention(q, q, q, is_causal=True)).sum().backward()

    work = work_of(step)
    assert sum(one.multiply_adds for one in work) == products_of(step) > 0
    names = [one.operation for one in work]
    assert "aten::gelu_backward" in names and any("attention" in n and "backward" in n for n in names)


def test_the_longer_of_the_two_counts():
    wide, narrow = Work("mm", 1000, 10), Work("mm", 250, 5)
    assert [roofline([wide, narrow], balance) for balance in (0, 60, 200)] == [1250, 1300, 3000]
    assert limit([wide], [narrow], 0) == 4 and limit([wide], [narrow], 1000) == 2
    with pytest.raises(ValueError, match="balance"):
        roofline([wide], -1.0)

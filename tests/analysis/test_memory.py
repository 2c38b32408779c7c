"""The watch over memory: what lives at the same time, views once, and nothing is left."""

import torch

from sepnb.analysis.memory import MemoryWatch, kept_for_backward


def test_the_watch_counts_what_is_held_at_the_same_time_and_views_once():
    with MemoryWatch() as watch:
        one = torch.zeros(1000)
        view = one[:10]
        assert (watch.held, watch.peak) == (4000, 4000)
        del one
        assert watch.held == 4000  # the view still holds it
        del view
        two = torch.zeros(1000) + 1
        assert (watch.held, watch.peak) == (4000, 8000)
        del two
    assert watch.held == 0


def test_what_is_kept_for_the_backward_pass_is_counted_once_and_without_the_weights():
    weight, x = torch.randn(3, 5, requires_grad=True), torch.randn(4, 3, requires_grad=True)

    def forward():
        hidden = x @ weight  # keeps x and the weight
        return hidden.exp() * hidden  # the product keeps both factors, exp its own result, which is one

    assert kept_for_backward(forward) == 4 * (12 + 15 + 20 + 20)
    assert kept_for_backward(forward, weights=[weight]) == 4 * (12 + 20 + 20)
    with torch.no_grad():
        assert kept_for_backward(forward) == 0

"""The watch over memory: what lives at the same time, views once, and nothing is left."""

import torch

from sepnb.analysis.memory import MemoryWatch


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

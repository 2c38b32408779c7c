"""Axes to draw on, without a screen."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from sepnb.plots import moving


@pytest.fixture
def ax():
    fig, ax = plt.subplots()
    yield ax
    plt.close(fig)


@pytest.fixture
def displayed(monkeypatch):
    """The HTML that was displayed."""
    got = []
    monkeypatch.setattr(moving, "display", lambda shown: got.append(shown.data))
    return got

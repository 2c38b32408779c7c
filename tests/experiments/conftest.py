"""What tests of several experiments share."""

import dataclasses

import pytest


@pytest.fixture
def few(monkeypatch, one_thread):
    """Twelve inputs of a classifier are read by the same code as a hundred."""
    from sepnb.experiments import images, volumes

    for sizes in (images.SIZES, volumes.SIZES):
        monkeypatch.setitem(sizes, "smoke", dataclasses.replace(sizes["smoke"], held_out=12))

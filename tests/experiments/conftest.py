"""What tests of several experiments share."""

import dataclasses

import pytest


@pytest.fixture
def few(monkeypatch, one_thread):
    """Twelve inputs of a classifier are read by the same code as a hundred."""
    from sepnb.experiments import images

    smoke = dataclasses.replace(images.SIZES["smoke"], held_out=12)
    monkeypatch.setitem(images.SIZES, "smoke", smoke)

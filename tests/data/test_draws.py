"""Draws that no version of numpy changes, and generators that do not share them."""

import numpy as np

from sepnb.data.draws import USES, generator_of, uniform

from ..shared import refused


def test_the_raw_output_of_a_seed_is_pinned():
    assert np.random.PCG64(0).random_raw(2).tolist() == [11749869230777074271, 4976686463289251617]
    assert uniform(np.random.PCG64(0), 2).tolist() == [0.6369616873214543, 0.2697867137638703]


def test_every_use_has_a_generator_of_its_own_and_keeps_it():
    """The numbers stand behind published records."""
    assert USES[:3] == ("", "positions", "toeplitz-clamp")
    for number, use in enumerate(USES[1:], 1):
        ours, theirs = generator_of(7, use), np.random.PCG64([7, number])
        assert ours.random_raw() == theirs.random_raw()
    first = [generator_of(7, use).random_raw() for use in USES[1:]] + [np.random.PCG64(7).random_raw()]
    assert len(set(first)) == len(first)
    for use in ("", "position"):
        refused("use one of positions, toeplitz-clamp", generator_of, 0, use)

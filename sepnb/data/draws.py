"""Random numbers that no version of numpy changes, and a generator for each use of them."""

import numpy as np

from ..validation import at_least, one_of


def uniform(generator: np.random.PCG64, count: int) -> np.ndarray:
    """`count` numbers in [0, 1), 53 random bits each, from the raw output, which numpy promises never to
    change; its `Generator` makes no such promise."""
    return (generator.random_raw(count) >> np.uint64(11)) * 2.0**-53


USES = (
    "",
    "positions",
    "toeplitz-clamp",  # of a loss that was removed: those after it keep their places
    "shift-steps",
    "seqpe-losses",
    "seqpe-fresh",
    "canvas",
    "pictures",
    "patches",
    "held-out pictures",
)
"""What a run draws for beside its bytes. The order is part of every record: new ones are added at the end."""


def generator_of(seed: int, use: str) -> np.random.PCG64:
    """The generator of one use in a run, apart from those of the bytes and of every other use.

    Raises:
        ValueError: an unknown use.
    """
    at_least(0, seed=seed)
    one_of("use", use, USES[1:])
    return np.random.PCG64([seed, USES.index(use)])

"""What the sequential encoder costs, in multiply-adds of its maps and of attention.

Norms, activations, softmax, embeddings and the choice of distinct prefixes are not counted.

Shape letters: P positions, S digits of a position, w width, D columns of the result.
"""

from typing import NamedTuple

from .digits import Positions
from .encoder import SequentialPositionEncoder
from .prefixes import PrefixTree


class Cost(NamedTuple):
    """Multiply-adds of one forward pass by the definition, and with shared prefixes."""

    plain: int
    shared: int


def multiply_adds(encoder: SequentialPositionEncoder, positions: Positions) -> Cost:
    """The cost of encoding these positions, repetitions included in `plain` and not in `shared`."""
    strings = encoder.strings(positions)
    sizes = PrefixTree.of(strings).sizes
    config = encoder.transformer.config
    w, layers = config.streams.d_model, config.n_layers
    ends = w * encoder.output.out_features
    p, slots = len(strings), strings.shape[1] + 1
    seen = slots * (slots + 1) // 2  # pairs of a slot and what it may look at
    plain = p * (layers * (12 * w * w * slots + 2 * w * seen) + ends)

    nodes, distinct = sum(sizes), sizes[-1]
    paths = sum((s + 1) * size for s, size in enumerate(sizes))
    shared = distinct * ends
    for layer in range(layers):
        slot = 1 if layer == 0 else distinct  # the last slot is the same for all until it has looked
        keys_and_values = 2 * w * w * (nodes + slot)
        # In the last layer nobody reads what a digit's slot would write.
        writing = 0 if layer == layers - 1 else nodes
        queries = w * w * (writing + slot)
        rest = 9 * w * w * (writing + distinct)
        looking = 2 * w * ((paths if writing else 0) + distinct * slots)
        shared += keys_and_values + queries + rest + looking
    return Cost(plain, shared)

"""The counted cost of the encoder is that of its maps, and shared prefixes save most of it."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from sepnb.seqpe import SequentialPositionEncoder
from sepnb.seqpe.cost import multiply_adds
from sepnb.seqpe.prefixes import PrefixTree

GRID = torch.cartesian_prod(torch.arange(14), torch.arange(14))


def maps(encoder: SequentialPositionEncoder, positions: torch.Tensor, plain: bool) -> int:
    """Multiply-adds of the linear maps of a pass, as torch counts them."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        (encoder.plain if plain else encoder)(positions)
    counts = counter.get_flop_counts()["Global"]
    return sum(count for op, count in counts.items() if str(op) in ("aten.addmm", "aten.mm")) // 2


def looks(encoder: SequentialPositionEncoder, positions: torch.Tensor) -> tuple[int, int]:
    """Multiply-adds of attention, slot by slot: a score and a weighted sum over the width for each pair."""
    w, layers = encoder.transformer.config.streams.d_model, encoder.transformer.config.n_layers
    strings = encoder.strings(positions)
    tree, slots = PrefixTree.of(strings), strings.shape[1] + 1
    plain = layers * len(strings) * sum(range(1, slots + 1))
    last = tree.sizes[-1] * slots
    shared = layers * last + (layers - 1) * sum((s + 1) * size for s, size in enumerate(tree.sizes))
    return 2 * w * plain, 2 * w * shared


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("settings", "positions"),
    [({"digits": 5}, torch.arange(300)), ({"digits": 2, "dims": 2}, GRID), ({"digits": 5}, torch.zeros(9))],
    ids=["window", "grid", "one"],
)
def test_the_count_is_that_of_the_maps_and_of_every_look(settings, positions, layers):
    encoder = SequentialPositionEncoder(width=16, heads=2, layers=layers, out_features=24, **settings)
    positions = positions.long()
    cost, attention = multiply_adds(encoder, positions), looks(encoder, positions)
    assert cost.plain == maps(encoder, positions, plain=True) + attention[0]
    assert cost.shared == maps(encoder, positions, plain=False) + attention[1]


@pytest.mark.parametrize("start", [0, 16_000, 7_003])
def test_neighbouring_positions_cost_less_than_a_third(start):
    encoder = SequentialPositionEncoder(width=64, heads=1, digits=5)
    cost = multiply_adds(encoder, torch.arange(start, start + 512))
    assert cost.plain > 3 * cost.shared

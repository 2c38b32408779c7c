"""A learned table: a row per position, no more rows than that, and only rows that were used learn."""

import pytest
import torch

from sepnb.encodings import Learned, grid_positions
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from ..shared import refused
from .drawn import random

LENGTH = 6


def test_rows_are_drawn_with_the_declared_spread():
    torch.manual_seed(0)
    for std in (0.02, 0.5):
        assert Learned(std=std).at_input(64, 512).table.std().item() == pytest.approx(std, rel=0.02)
    assert Learned().std == 0.02


# --- a table in every layer, and one that only queries and keys hear

SHAPES = {
    "dense": {"streams": Streams.dense(8)},
    "separated": {"streams": Streams(pos=4, sem=4)},
    "strict": {"streams": Streams(pos=4, sem=4), "mode": "strict", "readout": "both"},
}


def deep(shape: str, encoding: Learned, **fields) -> LanguageModel:
    """Three layers in float64; every parameter is drawn anew, a table at about 1."""
    torch.manual_seed(0)
    fields = {**SHAPES[shape], **fields}
    chosen = encoding if encoding.site == "input" or shape == "dense" else ("sinusoidal", encoding)
    config = TransformerConfig(n_layers=3, n_heads=2, encoding=chosen, max_length=LENGTH, **fields)
    model = LanguageModel(config, vocab_size=11).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return model


def tables(m: LanguageModel) -> list[torch.nn.Parameter]:
    return [parameter for name, parameter in m.named_parameters() if name.endswith(".table")]


TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
VARIANTS = [Learned(per_layer=True), Learned(site="query_key")]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_layer_may_have_a_table_of_its_own(shape):
    """All alike they are one table that is added again before every layer, and but for the first 0 they are
    one at the input."""
    own = deep(shape, Learned(per_layer=True))
    again, once = deep(shape, Learned(), pos_stream="reinjected"), deep(shape, Learned())
    assert len(tables(own)) == 3 and len(tables(again)) == len(tables(once)) == 1
    assert len({table.data_ptr() for table in tables(own)}) == 3
    assert not torch.equal(tables(own)[0], tables(own)[1])
    own_state = own.state_dict()
    for other in (again, once):
        other.load_state_dict({name: own_state[name] for name in other.state_dict()})
    with torch.no_grad():
        assert not torch.allclose(own(TOKENS), again(TOKENS))
        for later in tables(own)[1:]:
            later.copy_(tables(own)[0])
        torch.testing.assert_close(own(TOKENS), again(TOKENS), rtol=0, atol=1e-12)
        for later in tables(own)[1:]:
            later.zero_()
        torch.testing.assert_close(own(TOKENS), once(TOKENS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("encoding", VARIANTS, ids=str)
def test_every_table_ends_and_is_continued_by_an_extrapolator(shape, encoding):
    m, longer = deep(shape, encoding).eval(), torch.ones(2, LENGTH + 2, dtype=torch.long)
    with pytest.raises(ValueError, match="position 7 has no row in the learned table of 6 positions"):
        m(longer)
    clamped = m.extended("clamp")
    with torch.no_grad():
        assert torch.equal(clamped(TOKENS), m(TOKENS))
        expected = m(longer, torch.arange(LENGTH + 2).clamp(max=LENGTH - 1))
        torch.testing.assert_close(clamped(longer), expected, rtol=0, atol=1e-12)


# --- a table of the cells of a grid

GRID = (4, 3)


def grid(shape: tuple[int, int] = GRID) -> torch.nn.Module:
    torch.manual_seed(0)
    return Learned(std=1.0, grid=shape).at_input(5, LENGTH).double()


def test_a_patch_has_its_cell_and_the_token_without_a_place_a_row_of_its_own():
    module = grid()
    assert module.table.shape == (4, 3, 5) and module.limit == (5, 4)
    at = torch.tensor([[0, 0], [1, 1], [4, 3], [2, 3]])
    expected = torch.stack([module.without_place, module.table[0, 0], module.table[3, 2], module.table[1, 2]])
    assert torch.equal(module(at), expected)
    assert torch.equal(module(at.expand(2, -1, -1)), expected.expand(2, -1, -1))
    torch.testing.assert_close(module(at.double()), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [GRID, (1, 3), (4, 1)])
@pytest.mark.parametrize("sides", [(7, 5), (3, 2), (1, 1)])
def test_a_fitted_grid_is_what_torch_interpolates(sides, shape):
    """In values and in the gradient of the table, corners on corners."""
    module = grid(shape)
    at = grid_positions(*sides, fit=shape) + 1
    weights = random(sides[0] * sides[1], 5)
    outcomes = []
    for resize in (False, True):
        module.table.grad = None
        if resize:
            cells = module.table.movedim(-1, 0)[None]
            codes = torch.nn.functional.interpolate(cells, size=sides, mode="bicubic", align_corners=True)
            codes = codes[0].flatten(1).T
        else:
            codes = module(at)
        (codes * weights).sum().backward()
        outcomes.append((codes.detach(), module.table.grad.clone()))
    for ours, theirs in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_a_bfloat16_table_is_interpolated_at_points_that_are_not_rounded():
    """1 + 1/300 has no bfloat16; the nearest one is 1."""
    at = torch.tensor([[1 + 1 / 300, 1 + 1 / 300], [3.004, 2.003]], dtype=torch.float64)
    narrow = grid().to(torch.bfloat16)
    wide = grid()
    with torch.no_grad():
        wide.table.copy_(narrow.table.double())
        wide.table[0, 0] += 2000.0
        narrow.table.copy_(wide.table)
        wide.table.copy_(narrow.table.double())
        found, expected = narrow(at), wide(at)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), expected, rtol=2**-8, atol=1e-2)
    assert (expected[0] - wide(at.round())[0]).abs().min() > 5


def test_only_the_cells_that_were_used_learn():
    module = grid()
    module(torch.tensor([[2, 3], [0, 0]])).sum().backward()
    touched = module.table.grad.abs().sum(-1) > 0
    assert touched.nonzero().tolist() == [[1, 2]] and (module.without_place.grad == 1).all()


@pytest.mark.parametrize("encoding", [Learned(grid=GRID), Learned(grid=GRID, per_layer=True)], ids=str)
def test_a_grid_ends_and_a_model_says_where(encoding, unhooked):
    config = TransformerConfig(Streams.dense(8), 2, 2, encoding, axes=2)
    m, one = LanguageModel(config, vocab_size=11), torch.zeros(1, 1, dtype=torch.long)
    m(one, torch.tensor([[4, 3]]))
    m(one, torch.tensor([[3.5, 2.5]]))
    for at, message in (
        ([[5, 1]], r"a coordinate is 5, and the learned grid ends at \(4, 3\); fit the positions to it, or"),
        ([[1.0, 3.5]], r"a coordinate is 3\.5, and the learned grid ends"),
        ([[0, 2]], r"is no cell of the learned grid, which runs from \(1, 1\) to"),
        ([[0.5, 1.0]], r"is no cell of the learned grid, which runs from \(1, 1\) to"),
    ):
        refused(message, m, one, torch.tensor(at))

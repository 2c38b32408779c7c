"""The sequential encoder: a function of each position alone, the same with shared prefixes as without."""

import pytest
import torch

from sepnb.seqpe import SequentialPositionEncoder
from sepnb.seqpe import encoder as module
from sepnb.seqpe.encoder import PrefixTree

from ..shared import refused

SETTINGS = {
    "one dimension": {"digits": 3},
    "one layer": {"digits": 3, "layers": 1},
    "three layers": {"digits": 2, "layers": 3},
    "one digit": {"digits": 1, "base": 16},
    "two dimensions": {"digits": 2, "dims": 2},
    "unequal ranges": {"digits": (1, 2, 1), "dims": 3, "base": 5},
}


def drawn(**settings) -> SequentialPositionEncoder:
    """A small encoder in float64 with weights large enough for every part to matter."""
    torch.manual_seed(0)
    encoder = SequentialPositionEncoder(width=12, heads=3, out_features=7, **settings).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return encoder


def some(encoder: SequentialPositionEncoder, count: int = 40) -> torch.Tensor:
    """Positions with repetitions, anywhere in the range."""
    generator = torch.Generator().manual_seed(2)
    columns = [torch.randint(high + 1, (count,), generator=generator) for high in encoder.highest]
    positions = torch.stack(columns, dim=1)
    positions[-3:] = positions[:3]
    return positions[:, 0] if encoder.dims == 1 else positions


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_shared_prefixes_give_the_values_and_gradients_of_the_definition(settings):
    encoder = drawn(**settings)
    positions, weight = some(encoder), torch.randn(7, dtype=torch.float64)
    found = {}
    for way in (encoder.plain, encoder):
        encoder.zero_grad()
        embeddings = way(positions)
        (embeddings @ weight).square().sum().backward()
        found[way] = embeddings, {name: p.grad.clone() for name, p in encoder.named_parameters()}
    (plain, slow), (shared, fast) = found.values()
    torch.testing.assert_close(shared, plain, rtol=1e-10, atol=1e-10)
    assert slow.keys() == fast.keys() and all(grad.abs().max() > 0 for grad in slow.values())
    for name, grad in slow.items():
        torch.testing.assert_close(fast[name], grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"width": 768, "heads": 12, "digits": 5}, 14_780_160),
        ({"width": 384, "heads": 6, "digits": 2, "dims": 2}, 3_704_064),
    ],
    ids=["text", "image"],
)
def test_the_released_configurations_have_as_many_parameters(settings, count):
    with torch.device("meta"):
        encoder = SequentialPositionEncoder(**settings)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == count


@pytest.mark.parametrize(("width", "std"), [(768, 0.02), (48, 0.08)])
def test_first_weights_have_the_gain_of_the_released_encoder_at_any_width(width, std):
    torch.manual_seed(0)
    encoder = SequentialPositionEncoder(width=width, digits=3)
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all()
        elif parameter.dim() > 1:
            assert parameter.std().item() == pytest.approx(std, rel=0.25), name
    narrow = SequentialPositionEncoder(width=48, std=0.02).digit.weight
    assert narrow.std().item() == pytest.approx(0.02, rel=0.2)


def test_an_embedding_depends_on_its_position_alone():
    encoder = drawn(digits=3)
    positions = some(encoder)
    together = encoder(positions)
    order = torch.randperm(len(positions), generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(encoder(positions[order]), together[order])
    for at in (0, 7, 39):
        torch.testing.assert_close(encoder(positions[at : at + 1])[0], together[at])
    torch.testing.assert_close(together[-3:], together[:3], rtol=0, atol=0)


def test_many_positions_are_encoded_in_pieces_where_no_gradient_is_needed(monkeypatch):
    encoder, positions = drawn(digits=3), torch.arange(995, -1, -7)
    monkeypatch.setattr("sepnb.seqpe.encoder.AT_ONCE", 40)
    whole, sizes, of = encoder(positions).detach(), [], PrefixTree.of
    monkeypatch.setattr(PrefixTree, "of", lambda strings: sizes.append(len(strings)) or of(strings))
    with torch.no_grad():
        torch.testing.assert_close(encoder(positions), whole, rtol=0, atol=1e-12)
    assert sizes == [40, 40, 40, 23]


def test_places_of_unequal_coordinates_have_the_embedding_of_their_own_where_there_are_several():
    assert drawn(digits=3).dim is None
    encoder = drawn(digits=(1, 2, 1), dims=3, base=5)
    added = encoder._places() - encoder.place.weight
    torch.testing.assert_close(added, encoder.dim.weight[torch.tensor([0, 1, 1, 2])])


def test_evaluation_is_deterministic_and_dropout_is_of_training_only():
    torch.manual_seed(0)
    encoder = SequentialPositionEncoder(width=16, heads=2, digits=2, dropout=0.5)
    positions = torch.arange(20)
    assert not torch.equal(encoder(positions), encoder(positions))
    encoder.eval()
    assert torch.equal(encoder(positions), encoder(positions))
    torch.testing.assert_close(encoder(positions), encoder.plain(positions))


def test_two_passes_of_the_released_encoder_differ_as_much_by_dropout_as_those_of_the_release():
    """By 61 % of their norm, at the first weights of its text encoder: what enters is not dropped."""
    torch.manual_seed(0)
    encoder = SequentialPositionEncoder(width=768, heads=12, digits=5, dropout=0.1)
    with torch.no_grad():
        one, other = (encoder(torch.arange(64)) for _ in range(2))
    assert ((one - other).norm() / one.norm()).item() == pytest.approx(0.61, abs=0.02)


def test_a_drawn_encoder_has_lengths_and_angles_like_a_drawn_one_of_the_release():
    """What was seen of one draw of its text encoder, within what our own draws differ by; of the positions
    up to a thousand every ninth, and 1."""
    found, positions = [], torch.cat([torch.arange(0, 1000, 9), torch.tensor([1])])
    for seed in range(4):
        torch.manual_seed(seed)
        encoder = SequentialPositionEncoder(width=768, std=0.02).eval()
        with torch.no_grad():
            rows = encoder(positions)
        lengths, cosines = rows.norm(dim=1), torch.cosine_similarity(rows[:1], rows[[-1, -2]])
        found.append([lengths.min(), lengths.mean(), lengths.max(), *cosines])
    mean = torch.tensor(found).mean(dim=0)
    torch.testing.assert_close(mean[:3], torch.tensor((15.2, 15.8, 16.3)), rtol=0.08, atol=0)
    torch.testing.assert_close(mean[3:], torch.tensor([0.957, 0.713]), rtol=0, atol=0.08)


def test_shared_prefixes_give_the_values_of_the_definition_in_bfloat16_as_closely_as_it_is_read():
    torch.manual_seed(0)
    encoder = SequentialPositionEncoder(width=64).eval()
    positions = torch.arange(900, 1100)
    with torch.no_grad():
        exact = encoder.double().plain(positions)
        encoder.float()
        with torch.autocast("cpu", torch.bfloat16):
            shared, plain = encoder(positions), encoder.plain(positions)
    away = [(one.double() - exact).norm() / exact.norm() for one in (shared, plain)]
    assert away[0] < 2 * away[1] < 0.05


def test_the_tree_holds_each_prefix_once_and_knows_what_stands_above():
    strings = torch.tensor([[0, 1, 2], [0, 1, 3], [4, 1, 2], [0, 1, 2]])
    tree = PrefixTree.of(strings)
    assert tree.sizes == [2, 2, 3]
    for s in range(3):
        own = torch.arange(tree.sizes[s])
        path = [tree.digit[r][at] for r, at in enumerate((*tree.above[s], own))]
        prefixes = torch.stack(path, dim=1)
        assert len(prefixes.unique(dim=0)) == tree.sizes[s]
        assert torch.equal(prefixes[tree.leaf[s]], strings[:, : s + 1])


def test_sizes_that_do_not_fit_and_positions_beyond_the_digits_are_refused_at_once(monkeypatch):
    wrong = {"width": 12, "heads": 3, "digits": (2, 2, 2), "dims": 2}
    refused("one number, or one for each", SequentialPositionEncoder, **wrong)
    refused("n_heads=3|3 heads", SequentialPositionEncoder, width=10, heads=3, digits=3)
    monkeypatch.setattr(module, "_block", lambda *given: pytest.fail("a block ran"))
    refused("position 1000 .* give more digits", drawn(digits=3), [5, 1000])


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_another_number_of_coordinates_is_refused(dims, count, unhooked):
    """One coordinate too: one digit of each of two coordinates is a string like any other."""
    encoder, points = drawn(digits=1, dims=dims), torch.ones(2, count, dtype=torch.int64)
    for read in (encoder, encoder.plain, encoder.strings):
        if count == dims:
            assert len(read(points)) == 2
            continue
        with pytest.raises(ValueError, match=f"have {count} coordinates, {dims} widths were given"):
            read(points)

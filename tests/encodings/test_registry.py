"""The registry, and what every encoding in it owes: sites, no state between calls, any positions."""

import dataclasses
import importlib
from pkgutil import iter_modules

import pytest
import torch

from sepnb import encodings
from sepnb.encodings import PairModule, Site, TermModule, ValueModule, coordinates


def modules(encoding: encodings.Encoding) -> dict[Site, torch.nn.Module | None]:
    """What the encoding builds at each site, for width 8, heads of width 4 and 2 heads.

    Queries and keys may be changed by a module for all layers or by one of each layer, and scores by a bias
    or by a module that makes them.
    """
    rotation, term = encoding.at_query_key(4), encoding.at_layer(8, 2, 64)
    bias, pairs = encoding.at_score(2), encoding.at_pairs(2, 4, 8, True)
    assert rotation is None or term is None
    assert bias is None or pairs is None
    return {
        Site.INPUT: encoding.at_input(8, 64),
        Site.QUERY_KEY: term if rotation is None else rotation,
        Site.SCORE: pairs if bias is None else bias,
        Site.VALUE: encoding.at_values(2, 4, True),
    }


def described() -> set[type[encodings.Encoding]]:
    """The frozen encodings of every file of the package."""
    files = [
        importlib.import_module(f"sepnb.encodings.{file.name}") for file in iter_modules(encodings.__path__)
    ]
    kinds = {kind for file in files for kind in vars(file).values() if isinstance(kind, type)}
    return {kind for kind in kinds if issubclass(kind, encodings.Encoding)} - {encodings.Encoding}


def test_every_encoding_of_every_file_is_registered_once_by_its_name():
    assert {kind.name for kind in described()} == set(encodings.names())
    assert len(encodings.names()) == len(described()) >= 17
    for kind in described():
        assert type(encodings.build(kind.name)) is kind
        assert getattr(encodings, kind.__name__) is kind and kind.__name__ in encodings.__all__


@pytest.mark.parametrize("name", encodings.names())
def test_an_encoding_builds_a_module_exactly_at_its_sites(name):
    encoding = encodings.build(name)
    assert encoding.name == name
    built = {site for site, module in modules(encoding).items() if module is not None}
    assert built == encoding.sites


@pytest.mark.parametrize("name", encodings.names())
def test_a_description_is_frozen_hashable_and_equal_to_its_twin(name):
    encoding = encodings.build(name)
    assert encoding == encodings.build(name) and hash(encoding) == hash(encodings.build(name))
    for field in dataclasses.fields(encoding):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(encoding, field.name, 1)


@pytest.mark.parametrize("name", encodings.names())
def test_modules_keep_no_state_between_calls_and_take_any_positions(name):
    """The answer for given positions does not depend on what was asked before."""
    torch.manual_seed(0)
    built = modules(encodings.build(name))
    near, far, rows = torch.arange(5), torch.arange(40, 64), torch.tensor([[3, 1, 9], [0, 0, 63]])
    axes = 1 if name in encodings.names(axes=1) else encodings.build(name).axes[0]
    if axes > 1:  # points of the diagonal
        near, far, rows = (at[..., None].expand(*at.shape, axes) for at in (near, far, rows))

    def ask(site: Site, positions: torch.Tensor) -> torch.Tensor:
        module = built[site]
        if site is Site.INPUT:
            return module(positions)
        if isinstance(module, TermModule):
            content = torch.ones(*torch.broadcast_shapes(positions.shape, (2, 1)), 8)
            return torch.cat(
                [part.flatten() for part in module(content, module.prepare(positions, positions))]
            )
        if site is Site.QUERY_KEY:
            x = torch.ones(2, 3, coordinates.tokens_of(positions, axes), 4)
            return torch.stack([module(x, prepared) for prepared in module.prepare(positions, positions)])
        if isinstance(module, PairModule):
            x = torch.ones(2, 2, positions.shape[-1], 4)
            return module(x, x, module.prepare(positions, positions), slice(0, 2))
        if isinstance(module, ValueModule):
            weights = torch.ones(2, 2, positions.shape[-1], positions.shape[-1])
            return module(weights, module.prepare(positions, positions), slice(0, 2))
        return module(positions, positions)

    for site in encodings.build(name).sites:
        first = ask(site, near)
        ask(site, far), ask(site, rows)
        assert torch.equal(ask(site, near), first)


def test_names_can_be_asked_for_by_the_coordinates_that_they_take_as_they_are():
    for axes in (1, 2, 3):
        takes = {name: encodings.build(name).axes for name in encodings.names()}
        expected = [name for name, known in takes.items() if known is None or axes in known]
        assert encodings.names(axes=axes) == expected
    assert "rope" not in encodings.names(axes=2) and "axial-rope" not in encodings.names(axes=1)


def test_an_encoding_for_points_is_built_with_the_option_that_it_has():
    assert encodings.on_axes("sinusoidal", 3) == encodings.Sinusoidal(dims=3)
    assert encodings.on_axes("sinusoidal", 1) == encodings.Sinusoidal()
    assert encodings.on_axes("axial-rope", 1) == encodings.AxialRoPE(dims=1)
    assert encodings.on_axes("learned", 2, side=5) == encodings.Learned(grid=(5, 5))
    assert encodings.on_axes("none", 7) == encodings.NoEncoding()
    assert encodings.on_axes("learned", 3) is encodings.on_axes("rope", 2) is None
    assert encodings.how_on_axes("sinusoidal", 2) == "sinusoidal (dims=2)"
    assert encodings.how_on_axes("axial-rope", 2) == "axial-rope"
    assert encodings.how_on_axes("t5", 2) is None


def test_options_reach_the_encoding():
    assert encodings.build("rope", base=500.0, layout="interleaved") == encodings.RoPE(500.0, "interleaved")
    assert encodings.build("learned", std=0.1).std == 0.1


def test_unknown_names_and_options_are_answered_with_what_there_is(unhooked):
    with pytest.raises(ValueError, match=r"unknown encoding 'rop'; did you mean rope\?"):
        encodings.build("rop")
    with pytest.raises(ValueError, match="did you mean sinusoidal"):
        encodings.build("sinusoid")
    with pytest.raises(
        ValueError, match="'quaternions'; did you mean none, sinusoidal, learned, rope, xpos, alibi, phase"
    ):
        encodings.build("quaternions")
    with pytest.raises(
        ValueError, match="rope has no option 'bass'; it has base, layout, streams, partial, p"
    ):
        encodings.build("rope", bass=3)
    with pytest.raises(ValueError, match="none has no option 'base'; it has none"):
        encodings.build("none", base=3)
    with pytest.raises(TypeError, match=r"an encoding's name is a string, got \['rope'\]"):
        encodings.build(["rope"])

"""What every encoding of points owes inside a model of several axes: one answer, however it is computed.

Every encoding of the registry that can be built for as many coordinates is asked, on two axes and on three.
"""

import pytest
import torch
from torch import Tensor

from sepnb import encodings
from sepnb.encodings import Site
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.position_tables import position_branch
from sepnb.streams import Streams

from ..shared import refused
from .cases import HEADS, TIGHT, VOCABULARY, N, one_full_pass, peak_of, same_gradients, tokens
from .drawn import F64, loud

WIDTH, SIDE = 48, 12
STREAMS = {
    "dense": (Streams.dense(WIDTH), {}),
    "straddling": (Streams(pos=18, sem=30), {"readout": "both"}),
    "strict": (Streams(pos=12, sem=36), {"mode": "strict"}),
}
ON_AXES = {
    (name, axes): encoding
    for axes in (2, 3)
    for name in encodings.names()
    if (encoding := encodings.on_axes(name, axes, side=SIDE)) is not None
}
CASES = [pytest.param(*case, id=f"{case[0]}-{case[1]}") for case in ON_AXES]


def points(axes: int, *rows: int, seed: int = 0) -> Tensor:
    """Scattered points of a grid of sides SIDE, the first token at the origin."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(1, SIDE + 1, (*rows, N, axes), generator=generator)
    drawn[..., 0, :] = 0
    return drawn


def model(name: str, axes: int, shape: str = "dense", **fields) -> LanguageModel:
    """Two layers in float64, every parameter drawn large enough to matter."""
    (streams, more), encoding = STREAMS[shape], ON_AXES[name, axes]
    if shape != "dense" and Site.INPUT not in encoding.sites:
        encoding = (encodings.Sinusoidal(dims=axes), encoding)
    torch.manual_seed(0)
    config = TransformerConfig(streams, 2, HEADS, encoding, axes=axes, **more, **fields)
    return loud(LanguageModel(config, VOCABULARY).to(F64))


def test_those_that_are_known_to_take_points_are_asked():
    assert {("none", 2), ("sinusoidal", 2), ("axial-rope", 2), ("learned", 2)} <= ON_AXES.keys()
    assert {("none", 3), ("sinusoidal", 3), ("axial-rope", 3)} <= ON_AXES.keys()
    assert not {("learned", 3), ("rope", 2), ("t5", 2), ("xpos", 2)} & ON_AXES.keys()


@pytest.mark.parametrize("shape", STREAMS)
@pytest.mark.parametrize(("name", "axes"), CASES)
def test_token_by_token_by_rows_and_behind_a_tape_is_one_full_pass(name, axes, shape, monkeypatch):
    made, at = model(name, axes, shape), tokens()
    windowed = made.extended(window=4, sinks=1, log_scale=True)
    with torch.no_grad():
        for reader, places in ((made, points(axes)), (made, points(axes, 2)), (windowed, points(axes))):
            one_full_pass(reader, at, places, monkeypatch)


@pytest.mark.parametrize(("name", "axes"), CASES)
def test_each_sequence_may_have_its_points_and_a_shared_prefix_may_come_before(name, axes):
    made, at, own = model(name, axes, "strict"), tokens(), points(axes, 2)
    own[1, :3] = own[0, :3]
    with torch.no_grad():
        full = made(at, own)
        alone = torch.cat([made(at[b : b + 1], own[b]) for b in range(2)])
        torch.testing.assert_close(full, alone, **TIGHT)
        cache = made.make_cache(2)
        mixed = [made(at[:, :3], own[0, :3], cache), made(at[:, 3:], own[:, 3:], cache)]
        torch.testing.assert_close(torch.cat(mixed, 1), full, **TIGHT)


@pytest.mark.parametrize(("name", "axes"), CASES)
def test_gradients_reach_every_parameter_and_are_the_same_by_shared_points_and_by_rows(name, axes):
    shape = "dense" if name == "none" else "straddling"
    same_gradients(lambda: model(name, axes, shape), points(axes))


@pytest.mark.parametrize(("name", "axes"), CASES)
def test_without_a_mask_tokens_and_points_permuted_together_permute_the_outputs(name, axes):
    made, places, order = model(name, axes, causal=False), points(axes), torch.randperm(N)
    with torch.no_grad():
        straight = made(tokens(), places)
        torch.testing.assert_close(made(tokens()[:, order], places[order]), straight[:, order], **TIGHT)
        alone = made(tokens()[:, order], places) - straight[:, order]
    assert (alone.abs().max() > 1e-3) == (name != "none")


@pytest.mark.parametrize(("name", "axes"), [case for case in CASES if case.values[0] != "none"])
def test_every_coordinate_is_heard(name, axes):
    made, still = model(name, axes), torch.ones(N, axes, dtype=torch.int64)
    with torch.no_grad():
        heard = [made(tokens(), still)]
        for axis in range(axes):
            moved = still.clone()
            moved[:, axis] = torch.arange(1, N + 1)
            heard.append(made(tokens(), moved))
    for one in range(axes + 1):
        for other in range(one):
            assert (heard[one] - heard[other]).abs().max() > 1e-3


@pytest.mark.parametrize(("name", "axes"), [case for case in CASES if case.values[1] == 2])
def test_without_gradients_memory_grows_with_the_length_and_not_with_its_square(name, axes, monkeypatch):
    places = torch.arange(256)[:, None].expand(-1, axes) % SIDE + 1
    short, long = (peak_of(model(name, axes), n, places[:n], monkeypatch) for n in (128, 256))
    assert long <= 2.1 * short


# --- a stream for each coordinate


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_a_stream_for_each_coordinate_is_filled_by_it_alone(name):
    config = TransformerConfig(
        Streams(row=12, col=12, sem=24), 2, HEADS, name, "strict", readout="both", max_length=SIDE + 1, axes=2
    )
    torch.manual_seed(0)
    transformer = LanguageModel(config, VOCABULARY).to(F64).transformer
    at = points(2)
    codes = transformer.embeddings(at, F64)
    rows, columns = transformer.input_encodings
    assert transformer.input_streams == ["row", "col"]
    assert torch.equal(codes["row"], rows.module(at[:, 0]).to(F64))
    assert torch.equal(codes["col"], columns.module(at[:, 1]).to(F64))

    def streams(places: Tensor) -> dict[str, Tensor]:
        context = transformer.attention_context(places, places, F64)
        return position_branch(transformer, transformer.embeddings(places, F64), context).streams

    with torch.no_grad():
        before, after = streams(at), streams(torch.stack([at[:, 0], at[:, 1].flip(0)], -1))
    assert torch.equal(before["row"], after["row"])
    assert (before["col"] - after["col"]).abs().max() > 1e-3


# --- what is refused


def test_positions_that_do_not_fit_the_axes_are_refused_with_what_would(unhooked):
    made = model("axial-rope", 2)
    refused(r"on 2 axes no position comes after another; give positions, \[9, 2\]", made, tokens())
    refused(r"shape \[9\] do not fit 2 .* give \[9, 2\] or \[2, 9, 2\]", made, tokens(), torch.arange(N))
    refused(r"shape \[9, 3\] do not fit", made, tokens(), torch.zeros(N, 3, dtype=torch.int64))
    refused("a position is not finite", made, tokens(), torch.full((N, 2), float("nan")))
    text = LanguageModel(TransformerConfig(Streams.dense(48), 2, 4), VOCABULARY)
    refused(r"shape \[9, 2\] do not fit 2 sequences of 9 tokens; give \[9\]", text, tokens(), points(2))
    cache = text.make_cache(2)
    refused("the cache is of a model of 1 axes, this one has 2", made, tokens(), points(2), cache)
    refused("positions here have 2 coordinates; fit them to", model("sinusoidal", 2).extended, "clamp")


def test_places_between_patches_are_for_those_that_take_them(unhooked):
    between = points(2) + 0.5
    with torch.no_grad():
        for name in ("axial-rope", "sinusoidal", "none"):
            assert model(name, 2)(tokens(), between).isfinite().all()
            whole = model(name, 2)(tokens(), points(2).to(F64))
            torch.testing.assert_close(whole, model(name, 2)(tokens(), points(2)), **TIGHT)
    config = TransformerConfig(Streams(row=12, col=12, sem=24), 1, 4, "learned", axes=2)
    with pytest.raises(TypeError, match="learned takes no place between two patches"):
        LanguageModel(config, VOCABULARY)(tokens(), between)
    plain = LanguageModel(TransformerConfig(Streams.dense(48), 1, 4, "sinusoidal"), VOCABULARY)
    with pytest.raises(TypeError, match=r"positions must be integers, got torch\.float32$"):
        plain(tokens(), torch.arange(9.0))


DENSE, ROWS = Streams.dense(48), Streams(row=12, col=12, sem=24)


@pytest.mark.parametrize(
    ("streams", "encoding", "axes", "message"),
    [
        (DENSE, "rope", 2, r"none, sinusoidal \(dims=2\), learned \(grid=...\), axial-rope"),
        (DENSE, "axial-rope", 1, "axial-rope takes positions of 2 coordinates, and axes is 1; use one of"),
        (DENSE, "axial-rope", 3, r"use one of none, sinusoidal \(dims=3\), axial-rope \(dims=3\)"),
        (Streams(pos=12, sem=36), "sinusoidal", 2, "sinusoidal takes positions of 1 coordinate, and axes"),
        (ROWS, ("sinusoidal", "rope"), 2, "rope takes positions of 1 coordinate"),
    ],
)
def test_a_config_whose_encodings_take_other_positions_is_refused(streams, encoding, axes, message):
    refused(message, TransformerConfig, streams, 1, 4, encoding, axes=axes)

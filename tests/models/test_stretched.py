"""Slower waves in every model that has waves: against their equations, and what holds of all of them."""

import math

import pytest
import torch
import torch.nn.functional as F

from sepnb.encodings import (
    DynamicNTK,
    Llama3,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    Sinusoidal,
    YaRN,
)
from sepnb.models import LanguageModel
from sepnb.models.extension import extension_of
from sepnb.streams import Streams

from ..encodings.drawn import TIGHT
from ..encodings.waves import attention_factor, slowed
from .plain import F64, Plain
from .trained import in_pieces

L, S = 64, 4.0
"""The trained length, and a factor."""

EXTENSIONS = [
    PositionInterpolation(S),
    RaisedBase(50_000.0),
    NTKAware(S),
    NTKByParts(S, L, 0.5, 4),
    YaRN(S, L, 4, 0.5),
    YaRN(S, L, 4, 0.5, ramp="rotations"),
    Llama3(S, L),
]


def columns(extension, width: int, layout: str = "interleaved", base: float = 10_000.0):
    """`columns(...)(positions)`: the sinusoid of this width under an extension, `[N, width]`."""
    sines, dim = (width + 1) // 2, width - 2 if layout == "halves-endpoint" else width
    waves = slowed(extension, [base ** (-2 * m / dim) for m in range(sines)], dim, base)

    def of(positions: torch.Tensor) -> torch.Tensor:
        angles = [[float(p) * w for w in waves] for p in positions]
        rows = []
        for row in angles:
            sin, cos = [math.sin(a) for a in row], [math.cos(a) for a in row][: width // 2]
            paired = [x for pair in zip(sin, [*cos, 0.0], strict=False) for x in pair][:width]
            rows.append(paired if layout == "interleaved" else sin + cos)
        return torch.tensor(rows, dtype=F64)

    return of


class Slowed(Plain):
    """The model written out, its sinusoid under an extension, its logits times what that asks for."""

    def __init__(self, model: LanguageModel, extension, log_scale: bool = False) -> None:
        super().__init__(model)
        self.extension, self.log_scale = extension, log_scale
        self.heat = attention_factor(extension)

    def codes(self, positions: torch.Tensor) -> torch.Tensor:
        streams, total = self.config.streams, torch.zeros(len(positions), self.full.stop, dtype=F64)
        for name in [name for name in streams.names if name != "sem"] or ["sem"]:
            at, code = streams.slices[name], columns(self.extension, streams.widths[name])(positions)
            total = total + F.pad(code, (at.start, self.full.stop - at.stop))
        return total

    def scores(self, layer: int, u: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        scores = self.heat**2 * super().scores(layer, u, positions)
        if not self.log_scale:
            return scores
        rows = [
            max(1.0, math.log(n) / math.log(self.config.max_length)) for n in range(1, len(positions) + 1)
        ]
        return scores * torch.tensor(rows, dtype=F64)[:, None]


SEPARATED = Streams(pos=8, sem=24)
AT_INPUT = {
    "dense": {"streams": Streams.dense(32)},
    "separated": {"streams": SEPARATED},
    "strict": {"streams": SEPARATED, "mode": "strict", "readout": "both"},
    "constant": {"streams": SEPARATED, "pos_stream": "constant"},
    "three": {"streams": Streams(row=8, col=8, sem=16), "pos_stream": "reinjected"},
}
POINTS = torch.tensor([[0, 0], [0, 1], [2, 0], [5, 3], [4, 9]])
ON_POINTS = {
    "grid": {"streams": Streams.dense(32), "encoding": Sinusoidal(dims=2), "axes": 2},
    "rows and columns": {"streams": Streams(row=8, col=8, sem=16), "axes": 2},
    "axial": {"streams": Streams.dense(32), "encoding": "axial-rope", "axes": 2},
}
ON_TEXTS = AT_INPUT | {
    "untied": {"streams": SEPARATED, "query_key": "untied"},
    "rope too": {"streams": SEPARATED, "encoding": ("sinusoidal", "rope")},
    "phase": {"streams": Streams.dense(32), "encoding": "phase"},
    "phase beside a table": {"streams": SEPARATED, "encoding": ("learned", "phase")},
    "tupe": {"streams": Streams.dense(32), "encoding": "tupe"},
    "transformer-xl": {"streams": Streams.dense(32), "encoding": "transformer-xl"},
    "sandwich": {"streams": Streams.dense(32), "encoding": "sandwich"},
}
EVERY = ON_TEXTS | ON_POINTS


@pytest.fixture
def made(built):
    """`made(kind, **fields)`: a model of `EVERY`, ready to be read."""

    def make(kind: str, **fields) -> LanguageModel:
        told = EVERY[kind] | fields
        return built(told.pop("streams"), **{"max_length": L} | told).eval()

    return make


def at(kind: str, n: int = 5) -> torch.Tensor:
    return POINTS if kind in ON_POINTS else torch.arange(n)


# --- against the equations


@pytest.mark.parametrize("kind", AT_INPUT)
@pytest.mark.parametrize("extension", EXTENSIONS, ids=str)
def test_a_model_with_a_slowed_sinusoid_is_the_one_written_out(made, text, kind, extension):
    model, tokens = made(kind), text(2, 9)
    other = model.extended(extension=extension)
    torch.testing.assert_close(other(tokens), Slowed(model, extension)(tokens), **TIGHT)
    far = torch.tensor([0, 3, 64, 65, 100, 255, 256, 999, 1000])
    torch.testing.assert_close(other(tokens, far), Slowed(model, extension)(tokens, far), **TIGHT)
    assert (other(tokens, far) - model(tokens, far)).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["dense", "separated", "strict"])
@pytest.mark.parametrize("extension", [YaRN(S, L, 4, 0.5), NTKAware(S)], ids=str)
def test_the_temperature_and_the_logarithm_multiply_each_other(made, text, kind, extension):
    model, tokens = made(kind, max_length=4), text(2, 9)
    expected = Slowed(model, extension, log_scale=True)(tokens)
    torch.testing.assert_close(model.extended(extension=extension, log_scale=True)(tokens), expected, **TIGHT)
    in_turn = model.extended(log_scale=True).extended(extension=extension)
    torch.testing.assert_close(in_turn(tokens), expected, **TIGHT)


@pytest.mark.parametrize(
    ("width", "layout"),
    [
        *((12, layout) for layout in ("interleaved", "halves", "halves-endpoint")),
        *((13, layout) for layout in ("interleaved", "halves")),
    ],
)
@pytest.mark.parametrize("extension", EXTENSIONS, ids=str)
def test_every_layout_and_width_has_the_frequencies_of_its_equation(built, extension, width, layout):
    positions, encoding = torch.tensor([0, 1, 2, 63, 64, 500]), Sinusoidal(20_000.0, layout)
    for streams in (Streams.dense(width), Streams(pos=width, sem=width)):
        model = built(streams, encoding=encoding, n_heads=1).extended(extension=extension)
        (found,) = model.transformer.embeddings(positions, F64).values()
        expected = columns(extension, width, layout, 20_000.0)(positions)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("extension", EXTENSIONS, ids=str)
def test_each_coordinate_has_the_frequencies_of_its_columns(built, extension):
    row, col = POINTS.unbind(-1)
    model = built(Streams.dense(26), encoding=Sinusoidal(dims=2), axes=2, n_heads=1)
    (found,) = model.extended(extension=extension).transformer.embeddings(POINTS, F64).values()
    expected = torch.cat([columns(extension, 13)(row), columns(extension, 13)(col)], dim=-1)
    torch.testing.assert_close(found, expected, **TIGHT)
    model = built(Streams(row=12, col=6, sem=14), axes=2, n_heads=1)
    found = model.extended(extension=extension).transformer.embeddings(POINTS, F64)
    torch.testing.assert_close(found["row"], columns(extension, 12)(row), **TIGHT)
    torch.testing.assert_close(found["col"], columns(extension, 6)(col), **TIGHT)


def waves_of(model: LanguageModel) -> list[list[float]]:
    """The frequencies of every module that has any."""
    found = []
    for module in model.transformer.extendable:
        waves = getattr(module, "frequencies", getattr(module, "inv_freq", None))
        lists = waves if isinstance(waves, list) else [waves]
        found += [one.tolist() for one in lists if one is not None]
    return found


def wave(w_0: float, base: float, dim: int, n: int) -> tuple[list[float], int, float]:
    return [w_0 * base ** (-2 * m / dim) for m in range(n)], dim, base


OWN = {
    "dense": wave(1, 1e4, 32, 16),
    "strict": wave(1, 1e4, 8, 4),
    "phase": wave(math.pi / 2, L / 4, 30, 16),
    "tupe": wave(1, 1e4, 8, 4),
    "transformer-xl": wave(1, 1e4, 32, 16),
    "sandwich": wave(1e4 ** (-2 / 128), 1e4, 128, 64),
    "axial": wave(1, 1e4, 4, 2),
    "grid": wave(1, 1e4, 16, 8),
    "rows and columns": wave(1, 1e4, 8, 4),
}
"""w_0 base^(-2m/dim). Of the content-to-position term the shortest wave has 4 positions, the longest L."""


@pytest.mark.parametrize("kind", OWN)
def test_other_waves_are_slowed_by_the_same_equations_from_where_they_begin(made, kind):
    plain, dim, base = OWN[kind]
    model = made(kind)
    for one in waves_of(model):
        assert one == pytest.approx(plain, rel=1e-12)
    for extension in EXTENSIONS:
        found = waves_of(model.extended(extension=extension))
        assert len(found) == len(waves_of(model))
        for one in found:
            assert one == pytest.approx(slowed(extension, plain, dim, base), rel=1e-12), extension
    for one in waves_of(model.extended(extension=NTKAware(S))):
        assert one[0] == plain[0] and plain[-1] / one[-1] == pytest.approx(S, rel=1e-14)


# --- what holds of all


@pytest.mark.parametrize("kind", [kind for kind in EVERY if kind != "phase beside a table"])
def test_a_model_that_is_slowed_by_s_says_at_s_times_i_what_it_said_at_i(made, text, kind):
    model, tokens, positions = made(kind), text(2, 5), at(kind)
    before = model(tokens, positions)
    other = model.extended(extension=PositionInterpolation(S))
    torch.testing.assert_close(other(tokens, int(S) * positions), before, **TIGHT)
    assert (other(tokens, positions) - before).abs().max() > 1e-3
    assert torch.equal(model(tokens, positions), before)


@pytest.mark.parametrize("kind", EVERY)
def test_a_factor_of_one_is_the_plain_model_and_a_later_extension_forgets_the_first(made, text, kind):
    model, tokens, positions = made(kind), text(2, 5), at(kind)
    plain = model(tokens, positions)
    assert torch.equal(model.extended(extension=PositionInterpolation(1))(tokens, positions), plain)
    for one, other in ((YaRN(S, L), NTKAware(2.0)), (NTKAware(2.0), YaRN(S, L))):
        expected = model.extended(extension=other)
        again = model.extended(extension=one).extended(extension=other)
        assert again.transformer.rules == expected.transformer.rules
        assert torch.equal(again(tokens, positions), expected(tokens, positions))


@pytest.mark.parametrize("kind", ON_TEXTS)
@pytest.mark.parametrize("extension", [YaRN(S, L, 4, 0.5), NTKByParts(S, L, 0.5, 4)], ids=str)
def test_prefill_and_token_by_token_is_one_full_pass(made, text, kind, extension):
    model, tokens = made(kind).extended(extension=extension, log_scale=True), text(2, 20)
    with torch.no_grad():
        full = model(tokens)
        for chunks in (1, 7, 20):
            torch.testing.assert_close(in_pieces(model, tokens, chunks), full, **TIGHT)


@pytest.mark.parametrize("kind", ["strict", "constant", "untied"])
def test_position_tables_are_those_of_the_extension_and_no_other(made, text, kind):
    plain, tokens = made(kind), text(2, 9)
    model = plain.extended(extension=YaRN(S, L, 4, 0.5))
    tables = model.position_tables(9)
    torch.testing.assert_close(model(tokens, tables=tables), model(tokens), rtol=0, atol=1e-12)
    for other in (plain, plain.extended(extension=YaRN(2 * S, L, 4, 0.5))):
        for one, given in ((model, other.position_tables(9)), (other, tables)):
            with pytest.raises(ValueError, match=r"rules of evaluation .*frequencies.*make them with this"):
                one(tokens, tables=given)


@pytest.mark.parametrize("kind", EVERY)
def test_bfloat16_rounds_no_frequency(made, kind):
    model = made(kind).extended(extension=NTKByParts(S, L, 0.5, 4))
    before = waves_of(model)
    assert waves_of(model.to(torch.bfloat16)) == before


class Warm:
    """Position interpolation that asks queries and keys to be multiplied."""

    name = "warm"

    def __call__(self, inv_freq, *, dim, base, length):
        return inv_freq / S, 1.5


class Heated(Plain):
    """The model written out, every score before the mask times 1.5 squared."""

    def scores(self, layer, u, positions):
        return 2.25 * super().scores(layer, u, positions)


@pytest.mark.parametrize("encoding", ["sinusoidal", ("sinusoidal", "rope"), "rope"], ids=str)
@pytest.mark.parametrize("mode", ["dense", "separated", "strict"])
def test_what_an_extension_asks_for_multiplies_queries_and_keys_once(built, text, mode, encoding):
    if mode != "dense" and encoding == "rope":
        encoding = ("sinusoidal", "rope")
    fields = {"streams": Streams.dense(32)} if mode == "dense" else {"streams": SEPARATED, "mode": mode}
    model, tokens = built(**fields, encoding=encoding), text(2, 9)
    found = model.extended(extension=Warm())(tokens, int(S) * torch.arange(9))
    torch.testing.assert_close(found, Heated(model)(tokens), **TIGHT)


@pytest.mark.parametrize("kind", ["dense", "separated", "strict", "rope too"])
@pytest.mark.parametrize("method", ["clamp", "fourier", "sinusoidal"])
def test_an_extrapolator_continues_the_slowed_waves_in_whatever_order_they_come(made, text, kind, method):
    model, tokens = made(kind, max_length=8), text(2, 14)
    slow = {"extension": NTKByParts(S, 8, 0.1, 1)}
    together = model.extended(method, **slow)(tokens)
    assert torch.equal(model.extended(method).extended(**slow)(tokens), together)
    assert torch.equal(model.extended(**slow).extended(method)(tokens), together)
    begun = tokens[:, :8]
    torch.testing.assert_close(together[:, :8], model.extended(**slow)(begun), **TIGHT)
    assert (together - model.extended(method)(tokens)).abs().max() > 1e-3


# --- what is refused


@pytest.mark.parametrize(
    ("fields", "extension", "message"),
    [
        ({"encoding": "learned"}, PositionInterpolation(S), r"this model has none \(learned\); a learned"),
        ({}, DynamicNTK(S, L), r"dynamic-ntk follow the length .* fixed factor, such as PositionInterpolat"),
        ({"encoding": ("rope", "sandwich")}, DynamicNTK(S, L), "dynamic-ntk follow the length"),
        ({}, RaisedBase(100.0), r"base is 100\.0, below 10000\.0"),
        ({"streams": Streams(pos=2, sem=30), "n_heads": 1}, NTKAware(S), r"the width is 2; ntk-aware needs"),
        ({"encoding": "phase"}, PositionInterpolation, "extension must be a context extension such as"),
    ],
)
def test_an_extension_that_a_model_cannot_follow_is_refused_and_leaves_it_as_it_was(
    unhooked, built, text, fields, extension, message
):
    fields = {"streams": Streams.dense(32)} | fields
    model, tokens = built(fields.pop("streams"), **fields).eval(), text(2, 5)
    positions = POINTS if model.config.axes == 2 else None
    before, rules = model(tokens, positions), model.transformer.rules
    with pytest.raises((ValueError, TypeError), match=message):
        model.extended(extension=extension)
    assert model.transformer.rules == rules and extension_of(model) is None
    assert torch.equal(model(tokens, positions), before)

"""The desirable properties: a probe says yes to a code that has the property and no to one that lacks it."""

import pandas as pd
import pytest
import torch

from sepnb import encodings, extrapolators
from sepnb.analysis.inventory import tells_points_apart
from sepnb.analysis.properties import (
    BEYOND,
    OF_CODES,
    affine_residual,
    code_of,
    continues_grids,
    nearest,
    probe,
    properties,
)
from sepnb.encodings import base_of_longest_wave, sinusoidal
from sepnb.encodings.sinusoidal import SinusoidalInput

from ..encodings.references import REFERENCES
from ..shared import refused

L, WIDTH = 32, 16
F64 = torch.float64
TABLE = sinusoidal(torch.arange(L), WIDTH, base=base_of_longest_wave(WIDTH, 2 * L), dtype=F64)

OF_THIS_BOOK = set(REFERENCES)

METHODS = ("sinusoidal", "fourier", "cyclic", "alibi")
"""Of the slides' five those that need no training."""


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return properties(TABLE, METHODS).set_index("name")


def has(table: pd.DataFrame, quality: str, kind: str = "encoding") -> set[str]:
    rows = table[table["kind"] == kind]
    return set(rows.index[rows[quality]])


# --- the measures


def test_the_nearest_pair_is_found_wherever_it_is_in_units_of_a_step():
    line = torch.arange(10, dtype=F64)[:, None] * 3
    assert nearest(line) == pytest.approx(1.0)
    line[7] = line[2] + 0.3
    assert nearest(line) == pytest.approx(0.1)
    assert nearest(torch.ones(10, 2, dtype=F64)) == 0


def test_a_rotation_and_a_line_are_affine_and_a_parabola_alone_is_not():
    at = torch.arange(40, dtype=F64)
    assert affine_residual(torch.stack([(0.3 * at).sin(), (0.3 * at).cos()], -1)) < 1e-12
    assert affine_residual(-0.25 * at[:, None]) < 1e-12
    assert affine_residual(at[:, None] ** 2) > 1e-3
    assert affine_residual(torch.stack([at**2, at], -1)) < 1e-10  # with its slope beside it, it is


def test_each_probe_says_no_to_a_code_that_lacks_its_property():
    wave = sinusoidal
    good = probe(lambda: lambda at: wave(at, 4, dtype=F64), L)
    assert all(good[quality] for quality in OF_CODES)
    lacking = {
        "unique": lambda: lambda at: wave(at % (L // 2), 4, dtype=F64),
        "linear": lambda: lambda at: torch.stack([at, at], -1).to(F64) ** 1.5,
        "distinct beyond": lambda: lambda at: wave(at.clamp(max=L - 1), 4, dtype=F64),
        "deterministic": lambda: torch.randn(BEYOND * L, 4, dtype=F64).__getitem__,
    }
    for quality, build in lacking.items():
        assert not probe(build, L)[quality], quality
    refusing = probe(lambda: code_of("learned", 4, L).code, L)
    assert refusing["unique"] and not refusing["distinct beyond"]


def test_a_window_that_shows_nothing_and_a_code_without_one_are_refused():
    refused("length is 7; a window of at least 8", probe, lambda: lambda at: at[:, None], 7)
    refused("not defined at the 32 positions of its window", probe, lambda: lambda at: at[:, None] / 0, L)


def test_probing_leaves_the_random_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    properties(TABLE, ())
    assert torch.equal(torch.rand(1), expected)


# --- the verdicts


def test_every_encoding_with_codes_and_every_method_that_is_asked_for_has_a_row(table):
    assert OF_THIS_BOOK - set(table.index) == {"none", "cope", "forgetting"}
    for encoding in map(encodings.build, set(encodings.names()) - set(table.index)):
        assert encoding.counts_tokens or not encoding.sites, (
            f"{encoding.name} hears positions, and the table of properties has no code of it: let "
            f"{type(encoding).__module__}.{type(encoding).__name__} override `code`"
        )
    assert tuple(table.index[table["kind"] == "extrapolator"]) == METHODS
    assert set(extrapolators.SOURCE_METHODS) - set(METHODS) == {"learned"}
    assert not table.isna().any().any()


def test_the_verdicts_on_encodings_are_those_that_follow_from_their_formulas(table):
    coded = OF_THIS_BOOK & set(table.index[table["kind"] == "encoding"])
    # Buckets and clips give the same code to several distances; a table has none beyond its rows.
    shared = {"t5", "shaw"}
    assert coded - has(table, "unique") == shared
    assert coded - has(table, "distinct beyond") >= shared | {"learned"}
    relative = {"rope", "axial-rope", "alibi", "kerple", "transformer-xl"}
    # FIRE divides by the query from its threshold on, where keys are still told apart.
    assert has(table, "distinct beyond") >= relative | {"sinusoidal", "seqpe", "fire"}
    assert has(table, "linear") >= relative - {"kerple"} | {"sinusoidal", "xpos", "phase"}
    assert not has(table, "linear") & {"learned", "t5", "shaw", "kerple", "distance-aware", "seqpe"}
    drawn = {"learned", "t5", "kerple", "fire", "shaw", "seqpe", "transformer-xl"}
    assert coded - has(table, "deterministic") == drawn


def test_the_code_of_transformer_xl_is_what_its_score_multiplies_queries_with():
    """W_r R_t of a layer drawn from the same seed, for distances t."""
    at = torch.arange(12)
    torch.manual_seed(3)
    coded = code_of("transformer-xl", 6, L)
    torch.manual_seed(3)
    weight = encodings.build("transformer-xl").at_score(encodings.Heads(1, 6, 6)).distances.weight.double()
    expected = sinusoidal(at, 6, layout="halves", dtype=F64) @ weight.T
    torch.testing.assert_close(coded.code(at), expected, rtol=0, atol=1e-12)


def test_every_code_says_whether_it_is_of_positions_or_of_distances(table):
    says = table.loc[table["kind"] == "encoding", "embedding"]
    assert says.str.match("(position|distance): .").all()
    of_positions = set(says.index[says.str.startswith("position")])
    known = {"learned", "sinusoidal", "rope", "axial-rope", "xpos", "seqpe", "phase", "tupe"}
    assert of_positions & OF_THIS_BOOK == known


def test_dimensions_are_those_that_a_model_of_two_coordinates_tells_apart(table):
    heard = has(table, "dimensions")
    assert {"sinusoidal", "learned", "axial-rope", "seqpe"} <= heard
    assert not heard & {"rope", "xpos", "alibi", "t5", "shaw", "transformer-xl", "distance-aware", "kerple"}
    assert heard == {name for name in table.index[table["kind"] == "encoding"] if tells_points_apart(name)}
    assert not has(table, "dimensions", "extrapolator") and not continues_grids("fourier")


def test_an_encoding_that_is_deaf_to_columns_does_not_tell_points_apart(monkeypatch):
    """A sinusoid of the rows alone, in the place of one of rows and columns."""
    assert tells_points_apart("sinusoidal") and not tells_points_apart("none")
    heard = SinusoidalInput.forward
    monkeypatch.setattr(SinusoidalInput, "forward", lambda self, at: heard(self, at * torch.tensor([1, 0])))
    assert not tells_points_apart("sinusoidal")
    refused("side is 1; points that differ", tells_points_apart, "sinusoidal", side=1)


def test_the_verdicts_on_the_slides_methods_are_measured_on_the_table_that_is_given(table):
    assert has(table, "deterministic", "extrapolator") == has(table, "unique", "extrapolator") == set(METHODS)
    assert "fourier" not in has(table, "distinct beyond", "extrapolator")  # it repeats with the period L
    repeated = torch.cat([TABLE[: L // 2], TABLE[: L // 2]])
    assert not properties(repeated, ("fourier",)).query("kind == 'extrapolator'")["unique"].any()
    controls = properties(TABLE, ("clamp", "wrap", "zero")).query("kind == 'extrapolator'")
    assert controls["unique"].all() and not controls["distinct beyond"].any()

"""The table of encodings: what it measures is what counting by hand and knowing the formula give."""

import pandas as pd
import pytest

from sepnb import encodings
from sepnb.inventory import COLUMNS, inventory

N, WIDTH, HEADS, LAYERS = 16, 16, 2, 2
D = WIDTH // HEADS


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return inventory(length=N, width=WIDTH, n_heads=HEADS, n_layers=LAYERS).set_index("encoding")


def test_every_encoding_has_a_row_and_every_column_a_heading(table):
    assert list(table.index) == encodings.names()
    assert ["encoding", *table.columns] == list(COLUMNS)
    assert not table.isna().any().any()


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("none", 0),
        ("sinusoidal", 0),
        ("rope", 0),
        ("axial-rope", 0),
        ("alibi", 0),
        ("learned", 8 * N * WIDTH),
        ("t5", 32 * HEADS),
        ("kerple", LAYERS * 2 * HEADS),
        ("transformer-xl", LAYERS * (2 * WIDTH + WIDTH * WIDTH)),
        ("shaw", LAYERS * 2 * 33 * D),
        ("distance-aware", LAYERS * 2 * HEADS),
        ("cope", LAYERS * 64 * D),
    ],
)
def test_more_parameters_are_those_of_the_formula(table, name, more):
    assert table.loc[name, "parameters"] == more
    assert table.loc[name, "learned"] == (more > 0)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("none", 0),
        ("rope", 0),
        ("alibi", 0),
        ("t5", 0),
        ("distance-aware", 0),
        # A product of the queries with every distance, and W_r R once for the two texts.
        ("transformer-xl", LAYERS * (N * WIDTH + WIDTH * WIDTH / 2)),
        ("cope", LAYERS * 64 * WIDTH),
    ],
)
def test_more_products_are_those_of_the_formula(table, name, more):
    assert table.loc[name, "products"] == more


def test_what_is_heard_is_what_is_known_of_each_encoding(table):
    heard = {hears: set(rows.index) for hears, rows in table.groupby("hears")}
    assert heard["index"] == {"sinusoidal", "learned", "seqpe"}  # FIRE hears it only beyond its threshold
    assert heard["order"] == {"none", "cope"}
    assert heard["distance"] == set(encodings.names()) - heard["index"] - heard["order"]


def test_every_encoding_fits_a_cache_and_biases_take_memory_for_pairs(table):
    assert table["cache"].all()
    assert {"sinusoidal", "learned", "axial-rope"} <= set(table.index[table["dimensions"]])
    assert not table.loc[["none", "rope", "xpos", "alibi", "t5", "shaw", "cope"], "dimensions"].any()
    for name in ("alibi", "t5", "kerple", "shaw", "cope"):
        assert table.loc[name, "memory"] > 0 and table.loc[name, "growth"] > 1.3, name
    for name in ("none", "sinusoidal", "learned"):
        assert table.loc[name, "growth"] <= 1.0, name
    assert table.loc["none", "memory"] == 0


def test_a_row_can_be_asked_for_alone_and_a_text_without_a_middle_is_refused():
    alone = inventory(["t5"], length=N, width=WIDTH, n_heads=HEADS, n_layers=1)
    assert list(alone["encoding"]) == ["t5"] and list(alone["sites"]) == ["score"]
    with pytest.raises(ValueError, match="length is 3; give at least 4 tokens"):
        inventory(length=3)

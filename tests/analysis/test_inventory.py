"""The table of encodings: what it measures is what counting by hand and knowing the formula give."""

import pandas as pd
import pytest

from sepnb import encodings
from sepnb.analysis.inventory import COLUMNS, inventory
from sepnb.analysis.seqpe_cost import step_cost
from sepnb.models import TransformerConfig
from sepnb.streams import Streams

N, WIDTH, HEADS, LAYERS = 16, 16, 2, 2
D = WIDTH // HEADS


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return inventory(length=N, width=WIDTH, n_heads=HEADS, n_layers=LAYERS).set_index("encoding")


def test_every_encoding_has_a_row_and_every_column_a_heading(table):
    assert list(table.index) == encodings.names()
    assert ["encoding", *table.columns] == list(COLUMNS)
    assert not table.isna().any().any()


def test_more_parameters_are_those_of_the_formula(table):
    expected = dict.fromkeys(("none", "sinusoidal", "rope", "axial-rope", "alibi"), 0)
    expected |= {"learned": 8 * N * WIDTH, "t5": 32 * HEADS, "cope": LAYERS * 64 * D}
    expected |= {"kerple": LAYERS * 2 * HEADS, "distance-aware": LAYERS * 2 * HEADS}
    expected |= {"transformer-xl": LAYERS * (2 * WIDTH + WIDTH * WIDTH), "shaw": LAYERS * 2 * 33 * D}
    assert table["parameters"][list(expected)].to_dict() == expected
    assert (table["learned"] == (table["parameters"] > 0)).all()


def test_more_products_are_those_of_the_formula(table):
    expected = dict.fromkeys(("none", "rope", "alibi", "t5", "distance-aware"), 0)
    # A product of the queries with every distance, and W_r R once for the two texts.
    expected |= {"transformer-xl": LAYERS * (N * WIDTH + WIDTH * WIDTH / 2), "cope": LAYERS * 64 * WIDTH}
    assert table["products"][list(expected)].to_dict() == expected


def test_operations_on_single_numbers_are_those_of_the_formula(table):
    rope = LAYERS * 2 * 6 * WIDTH / 2  # four products and two sums for each pair of queries and of keys
    alibi = HEADS * N  # for every pair a product and a masked entry, once for the two texts and all layers
    found = table["elementwise"]
    assert found["none"] == 0 and rope <= found["rope"] <= 3 * rope and alibi <= found["alibi"] <= 3 * alibi


def test_no_encoding_that_acts_in_attention_is_free_of_operations_on_single_numbers(table):
    for name in encodings.names():
        assert (table.loc[name, "elementwise"] > 0) == bool(encodings.build(name).sites), name


def test_the_encoder_of_seqpe_is_counted_though_the_model_has_read_such_positions_before(table):
    config = TransformerConfig(Streams.dense(WIDTH), LAYERS, HEADS, "seqpe", max_length=N)
    step = step_cost(config, batch_size=2, length=N)  # forward and backward: three times what is asked here
    # 00000 to 00015: 1, 1, 1, 2 and 16 beginnings look at themselves and those before, in the first of two
    # layers; the last slot at six, in both. Looks are sums of a few terms in the encoder, no matrix products.
    looks = 2 * 32 * (1 * 1 + 2 * 1 + 3 * 1 + 4 * 2 + 5 * 16 + 2 * 16 * 6)
    columns = LAYERS * N * WIDTH  # of the scores, twice as wide, all pairs
    expected = (step.text / 3 - looks + step.maps / 3) / (2 * N) + columns
    assert table.loc["seqpe", "products"] == round(expected)
    assert table.loc["seqpe", "products"] > 10 * columns


def test_the_memory_of_seqpe_is_that_of_positions_read_for_the_first_time(table):
    assert 0.5 < table.loc["seqpe", "growth"] <= 1.0
    assert table.loc["seqpe", "memory"] > table.loc["sinusoidal", "memory"]


def test_what_each_encoding_depends_on_is_what_is_known_of_each_encoding(table):
    for name, depends_on in table["depends_on"].items():
        encoding = encodings.build(name)
        if not encoding.sites or encoding.counts_tokens:
            assert depends_on == "order", name
        else:
            assert depends_on == ("index" if encoding.reads_index else "distance"), name
    known = table.loc[["sinusoidal", "rope", "none"], "depends_on"]
    assert known.tolist() == ["index", "distance", "order"]


def test_every_encoding_fits_a_cache_and_none_takes_memory_for_every_pair(table):
    """Of long texts, which evaluation cuts; a bias or a score held for every pair would grow as N^2."""
    assert table["cache"].all()
    for name in encodings.names():
        encoding = encodings.build(name)
        of_points = bool(encoding.sites) and encodings.on_axes(name, 2) is not None
        assert table.loc[name, "dimensions"] == of_points, name
        assert 0 < table.loc[name, "growth"] <= 1.1, name
    assert table.loc["axial-rope", "dimensions"] and not table.loc["rope", "dimensions"]
    assert table.loc["none", "memory"] == 0


def test_the_open_formula_is_left_to_scores_of_more_than_a_number_and_to_what_joins_the_averages(table):
    openly = {"shaw", "transformer-xl", "cope"}
    biased = {"alibi", "t5", "kerple", "sandwich", "fire", "distance-aware"}
    for name, kernel in table["kernel"].items():
        expected = "explicit softmax" if name in openly else "FlexAttention" if name in biased else "fused"
        assert kernel == expected, name


def test_fixed_waves_and_forget_gates_can_be_slowed_down(table):
    waves = {"sinusoidal", "rope", "phase", "tupe", "axial-rope", "sandwich", "transformer-xl"}
    assert set(table.index[table["slows"]]) == waves | {"forgetting"}


def test_a_row_can_be_asked_for_alone_and_a_text_without_a_middle_is_refused():
    alone = inventory(["t5"], length=N, width=WIDTH, n_heads=HEADS, n_layers=1)
    assert list(alone["encoding"]) == ["t5"] and list(alone["sites"]) == ["score"]
    with pytest.raises(ValueError, match="length is 3; give at least 4 tokens"):
        inventory(length=3)

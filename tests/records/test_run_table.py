"""A mean over seeds, its interval, and differences taken seed by seed."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from sepnb.records.run_table import RunTable, summarise, text_of

from ..shared import refused


def runs(**scores: dict[int, float]) -> pd.DataFrame:
    rows = [
        {"method": method, "seed": seed, "status": "ok", "score": value}
        for method, values in scores.items()
        for seed, value in values.items()
    ]
    return pd.DataFrame(rows)


def test_the_interval_ends_where_a_t_test_stops_rejecting():
    values = np.array([1.0, 1.4, 0.9, 1.1, 1.3])
    summary = summarise(values)
    assert summary.mean == pytest.approx(values.mean())
    assert ttest_1samp(values, summary.mean + summary.half).pvalue == pytest.approx(0.05)
    assert ttest_1samp(values, summary.mean - summary.half).pvalue == pytest.approx(0.05)


def test_one_value_a_seed_of_a_method_and_none_where_nothing_was_run():
    table = runs(a={2: 1.0, 1: 3.0}, b={1: 2.0})
    table.loc[len(table)] = {"method": "a", "seed": 3, "status": "not run", "score": np.nan}
    assert RunTable(table).values("a", "score").to_dict() == {2: 1.0, 1: 3.0}
    for method, column in (("c", "score"), ("a", "other")):
        assert RunTable(table).values(method, column).empty
    assert RunTable(table[:0]).values("a", "score").empty


def test_more_confidence_is_a_wider_interval_and_one_seed_has_none():
    assert summarise([1, 2, 4], 0.99).half > summarise([1, 2, 4], 0.9).half
    summary = summarise([2.5])
    assert summary.mean == 2.5 and np.isnan(summary.half) and summary.seeds == 1
    assert str(summary) == "2.500"
    for confidence in (0.0, 1.0, 95.0):
        refused("between 0 and 1", summarise, [1, 2], confidence)
    refused("nothing to summarise", summarise, [])


def test_differences_are_taken_within_a_seed_that_both_have_whatever_the_order_of_the_rows():
    table = runs(a={1: 1.0, 2: 5.0, 3: 9.0}, b={3: 8.0, 1: 0.5, 4: 3.0}).sample(frac=1, random_state=0)
    assert RunTable(table).difference("a", "b", "score").sort_index().to_dict() == {1: 0.5, 3: 1.0}


def test_runs_that_were_not_made_count_for_nothing():
    table = runs(a={1: 1.0, 2: 3.0}, b={1: 2.0})
    table.loc[len(table)] = ["c", 1, "not run", np.nan]
    table.loc[table.query("method == 'a' and seed == 2").index, "status"] = "not run"
    assert {method: summary.mean for method, summary in RunTable(table).intervals("score").items()} == {
        "a": 1.0,
        "b": 2.0,
    }


def test_a_sentence_gets_mean_and_interval_with_a_sign_and_as_many_decimals():
    assert text_of([-0.5]) == "\N{MINUS SIGN}0.500"
    half = summarise([-0.3, -0.1, -0.2]).half
    assert text_of([-0.3, -0.1, -0.2], "+.2f") == f"\N{MINUS SIGN}0.20 ± {half:.2f}"
    assert text_of(pd.Series([2.0, 2.0]), ".1f") == "2.0 ± 0.0"
    assert text_of([]) == text_of(pd.Series(dtype=float)) == "not run"


def test_where_nothing_has_run_there_are_no_differences_and_it_says_so():
    bare = runs(a={1: 1.0}, b={1: 2.0}).drop(columns="score").assign(status="not run")
    assert (
        RunTable(bare).difference("a", "b", "score").empty
        and text_of(RunTable(bare).difference("a", "b", "score")) == "not run"
    )
    some = runs(a={1: 1.0}, b={1: 2.0})
    assert RunTable(some).difference("a", "c", "score").empty
    refused("scores", RunTable(some).difference, "a", "b", "scores", error=KeyError)


def test_a_table_tells_mean_interval_and_text_of_a_method():
    table = RunTable(runs(a={1: 1.0, 2: 3.0}))
    assert table.mean("a", "score") == 2.0 and np.isnan(table.mean("b", "score"))
    assert table.intervals("score") == {"a": summarise([1.0, 3.0])}
    assert (
        table.text("a", "score", ".1f") == text_of([1.0, 3.0], ".1f")
        and table.text("b", "score") == "not run"
    )
    refused("nothing to summarise", table.intervals, "other")


def test_a_metric_of_one_method_minus_another_of_another_and_how_many_times_it_is():
    of = RunTable(runs(a={1: 3.0, 2: 4.0, 3: 9.0}, b={1: 1.0, 2: 2.0}).assign(far=lambda one: one.score + 1))
    assert of.minus("a:far", "b:score").to_dict() == {1: 3.0, 2: 3.0}
    assert of.minus("a:far", "c:score").empty and of.minus("a:none", "b:score").empty
    assert of.times("a", "b", "score") == "2.50" and of.times("a", "c", "score") == "not run"


def test_a_grid_asks_the_same_of_every_row():
    of = RunTable(runs(a={1: 3.0, 2: 4.0}, b={1: 1.0, 2: 2.0}))
    asked = {"level": "{}:score", "minus b": "{}:score - b:score"}
    grid = of.grid({"A": "a", "C": "c"}, asked, "+.1f", head="which")
    assert list(grid) == ["which", "level", "minus b"]
    assert grid.to_numpy().tolist() == [
        ["A", text_of([3.0, 4.0], "+.1f"), text_of([2.0, 2.0], "+.1f")],
        ["C", "not run", "not run"],
    ]


def test_a_column_of_a_grid_may_have_its_own_format_without_an_interval_or_with_one():
    of = RunTable(runs(a={1: 3.0, 2: 4.0}, b={1: 1.0, 2: 2.0}))
    asked = {"mean": "{}:score:.0%", "both": "{}:score - b:score:.2f±"}
    assert of.grid({"A": "a", "C": "c"}, asked).to_numpy().tolist() == [
        ["A", "350%", text_of([2.0, 2.0], ".2f")],
        ["C", "not run", "not run"],
    ]


def test_a_grid_has_a_dash_where_a_method_was_run_without_what_others_measure():
    table = runs(a={1: 3.0}, b={1: 1.0}).assign(slowed=[2.0, np.nan])
    grid = RunTable(table).grid(
        {"A": "a", "B": "b", "C": "c"}, {"slowed": "{}:slowed", "none": "{}:none"}, ".1f"
    )
    assert grid["slowed"].tolist() == [text_of([2.0], ".1f"), "\N{EN DASH}", "not run"]
    assert grid["none"].tolist() == ["not run"] * 3

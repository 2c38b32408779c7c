"""Maps and curves of answers: what is drawn is the mean over seeds, what was not run says so."""

import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from sepnb.plots import answers, chooser

CHANCE = {1: 0.1, 2: 0.12}


def rows():
    """Two seeds of RoPE at L and 2 L, at two depths; native and behind a window."""
    found = [
        ("native", 1, 0.2, (1.0, 0.8)),
        ("native", 1, 0.8, (1.0, 1.0)),
        ("native", 2, 0.2, (0.1, 0.14)),
        ("native", 2, 0.8, (0.5, 0.7)),
        ("window", 2, 0.2, (0.0, 0.0)),
        ("window", 2, 0.8, (1.0, 1.0)),
    ]
    return pd.DataFrame(
        {"method": "rope", "seed": seed, "reader": reader, "times": times, "depth": depth, "accuracy": each}
        for reader, times, depth, values in found
        for seed, each in enumerate(values, 1)
    )


def table(**columns):
    lengths = {f"accuracy/native/{times}x": [1 / times, 0.8 / times] for times in answers.TIMES}
    chance = {f"chance/{name}/{times}x": level for times in answers.TIMES for name, level in GUESSES.items()}
    fixed = {"method": "rope", "seed": [1, 2], "status": "ok", "steps": 100}
    return pd.DataFrame({**fixed, **lengths, **chance, **columns})


GUESSES = {"uniform": 0.1, "mode in context": 0.3}


def test_cells_are_means_over_seeds_and_at_the_trained_length_those_of_every_reading():
    native, window = (answers.cells(rows(), "rope", reader) for reader in ("native", "window"))
    assert native.to_numpy() == pytest.approx(np.array([[0.9, 0.12], [1.0, 0.6]]))
    assert window.to_numpy() == pytest.approx(np.array([[0.9, 0.0], [1.0, 1.0]]))
    assert list(native.index) == [0.2, 0.8] and list(native.columns) == [1, 2]
    assert answers.cells(rows(), "alibi").empty and answers.cells(pd.DataFrame(), "rope").empty


def test_a_seed_with_more_rows_does_not_weigh_more():
    twice = pd.concat([rows(), rows().query("seed == 1")])
    assert answers.cells(twice, "rope").equals(answers.cells(rows(), "rope"))


def test_the_best_guess_is_the_highest_and_of_this_length():
    wider = table(**{"chance/uniform/8x": 0.9})
    assert answers.best_guess(wider, 8) == pytest.approx(0.9)
    assert answers.best_guess(wider, 4) == pytest.approx(0.3)
    assert np.isnan(answers.best_guess(pd.DataFrame(), 8))


def test_a_map_has_its_shares_written_its_guesses_hatched_and_the_bar_a_line_at_them():
    panels = {"RoPE": ("rope", "native"), "ALiBi": ("alibi", "native")}
    fig = answers.maps(rows(), panels, chance=CHANCE)
    rope, alibi, *_, bar = fig.axes
    assert [text.get_text() for text in rope.texts] == ["90", "12", "100", "60"]
    (hatched,) = rope.patches
    assert hatched.get_xy() == (0.5, -0.5) and hatched.get_hatch()
    assert [text.get_text() for text in alibi.texts] == ["not run"]
    assert [line.get_ydata()[0] for line in bar.lines] == [0.12]
    plt.close(fig)


def test_curves_have_a_line_for_each_seed_their_mean_and_the_best_guess(ax):
    answers.by_length(ax, table(), ["rope", "alibi"])
    levels = [line.get_ydata()[-1] for line in ax.lines]
    assert levels == pytest.approx([1 / 16, 0.8 / 16, 0.9 / 16, 0.3])
    assert [line.get_label() for line in ax.lines if not line.get_label().startswith("_")] == ["RoPE"]


def test_a_way_to_read_has_a_line_of_its_own_that_begins_with_the_native_one(ax):
    read = {f"accuracy/yarn/{times}x": [0.9, 0.7] for times in answers.TIMES[1:]}
    answers.by_length(ax, table(**read), ["rope", "rope:yarn"], {"rope:yarn": {"label": "YaRN"}})
    means = {line.get_label(): line.get_ydata() for line in ax.lines if line.get_label()[0] != "_"}
    assert list(means) == ["RoPE", "YaRN"] and means["YaRN"] == pytest.approx([0.9, *[0.8] * 4])


def test_learning_has_a_line_for_each_seed_and_one_for_their_mean(ax):
    told = {"step": [50, 100, 150], "length": [32, 32, 64]}
    found = {("rope", 1): [0.1, 0.2, 0.3], ("rope", 2): [0.1, 0.6, 0.9], ("alibi", 1): [0.1, 0.1, 0.1]}
    rows = pd.concat(
        pd.DataFrame(told | {"method": method, "seed": seed, "accuracy": accuracy})
        for (method, seed), accuracy in found.items()
    )
    answers.learning(ax, rows, ["rope", "alibi", "none"])
    mean = next(line for line in ax.get_lines() if line.get_label() == "RoPE")
    assert mean.get_ydata().tolist() == pytest.approx([0.1, 0.4, 0.6])
    thin = [line for line in ax.get_lines() if line.get_linewidth() == 0.7]
    assert len(thin) == len(found)
    assert [text.get_text() for text in ax.texts if text.get_text() == "longer texts"]


NO_RUN = pd.DataFrame({"method": ["rope"], "seed": [1], "status": ["not run"]})


@pytest.mark.parametrize(
    ("draw", "nothing"), [(answers.by_length, NO_RUN), (answers.learning, pd.DataFrame())]
)
def test_curves_of_nothing_say_not_run(ax, draw, nothing):
    draw(ax, nothing, ["rope"])
    assert [text.get_text() for text in ax.texts] == ["not run"]


WORDS = {"chance": CHANCE, "name": "map-a", "alt": "A map.", "instead": "the figure above"}


def test_the_reader_compares_two_methods_from_lists_that_hold_all_that_was_run(displayed):
    readers = {"as trained": "native", "behind a window": "window"}
    found = {"R<PE": {said: answers.cells(rows(), "rope", reader) for said, reader in readers.items()}}
    chooser.show(found | {"ALiBi": {"as trained": answers.cells(rows(), "alibi")}}, **WORDS)
    (html,) = displayed
    assert "data-interactive" in html and "<noscript>" in html and "src=" not in html
    native, window = "R&lt;PE: as trained", "R&lt;PE: behind a window"
    assert re.findall("<option(.*?)>(.*?)</option>", html) == [
        *[(" selected", native), ("", window)],
        *[("", native), (" selected", window)],
    ]
    held = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html)[1])
    assert held["values"] == {
        "R<PE: as trained": [90, 12, 100, 60],
        "R<PE: behind a window": [90, 0, 100, 100],
    }
    shown = re.findall(r"<td([^>]*)>(\d+)</td>", html)
    assert [int(value) for _, value in shown] == [90, 12, 100, 60, 90, 0, 100, 100]
    assert ["sepnb-guess" in look for look, _ in shown] == 2 * [False, True, False, False]
    chooser.show(found, **WORDS, chosen=("R<PE: behind a window", "R<PE: as trained"))
    assert re.findall("<td[^>]*>(\\d+)</td>", displayed[1])[:4] == ["90", "0", "100", "100"]
    chooser.show(found, **WORDS, chosen=("R<PE: as trained", "R<PE: never read so"))
    assert displayed[2] == html


def test_nothing_is_shown_of_nothing(displayed):
    chooser.show({"RoPE": {"as trained": pd.DataFrame()}}, **WORDS)
    assert displayed == []

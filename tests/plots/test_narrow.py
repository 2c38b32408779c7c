"""The form of a figure for a phone: what it must keep, and when there is none."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sepnb.plots import figures, narrow


@pytest.fixture
def panels():
    figures.use_style()
    fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.0), sharey=True)
    for ax, title in zip(axes, ("first", "second", "third"), strict=True):
        ax.plot(np.arange(9) ** 2)
        ax.set(title=title, xlabel="position")
    axes[0].set_ylabel("loss")
    yield fig, axes
    plt.close(fig)


def box(fig, ax):
    fig.draw_without_rendering()
    return ax.get_position()


def test_panels_of_a_row_stand_under_each_other_and_each_has_its_scale(panels) -> None:
    fig, axes = panels
    assert narrow.lay_out(fig)
    assert fig.get_figwidth() == narrow.WIDTH
    places = [box(fig, ax) for ax in axes]
    assert all(above.y0 > below.y1 for above, below in pairwise(places))
    assert len({round(place.x0, 3) for place in places}) == 1
    assert all(place.width * narrow.WIDTH > 8.4 / 3 for place in places), "no panel became smaller"
    for ax in axes:
        assert ax.get_ylabel() == "loss" and any(label.get_visible() for label in ax.get_yticklabels())


def test_small_panels_stand_two_beside_each_other() -> None:
    fig, axes = plt.subplots(1, 4, figsize=(8.4, 2.2), layout="constrained")
    assert narrow.lay_out(fig)
    first, second, third, _ = (box(fig, ax) for ax in axes)
    assert first.y0 == pytest.approx(second.y0) and second.x0 > first.x1 and third.y1 < first.y0
    plt.close(fig)


def test_a_legend_of_many_names_takes_as_many_columns_as_fit(panels) -> None:
    fig, axes = panels
    lines = [axes[0].plot([0, n], label=f"a method with a long name {n}")[0] for n in range(5)]
    fig.legend(handles=lines, loc="outside upper center", ncols=5)
    assert narrow.lay_out(fig)
    (legend,) = fig.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= narrow.WIDTH * fig.dpi
    assert [text.get_text()[-1] for text in legend.get_texts()] == list("01234")
    drawn = [line.get_color() for line in legend.get_lines()]
    assert drawn == [line.get_color() for line in lines] and box.y0 > axes[0].get_window_extent().y1


def test_a_title_that_the_middle_panel_had_for_all_stands_under_the_lowest(panels) -> None:
    fig, axes = panels
    for ax in axes[::2]:
        ax.set_xlabel("")
    assert narrow.lay_out(fig)
    assert [ax.get_xlabel() for ax in axes] == ["", "", "position"]


def test_long_names_of_rows_stand_above_their_rows_and_leave_the_width_to_the_data() -> None:
    figures.use_style()
    fig, ax = plt.subplots(figsize=(6.8, 2.4))
    names = [f"the {which} of rows with a name of many words" for which in ("first", "second", "third")]
    rows = {name: [([0.1, 0.3], figures.METHODS["rope"])] for name in names}
    figures.seed_rows(ax, rows)
    assert narrow.lay_out(fig)
    assert box(fig, ax).width > 0.8 and not any(one.get_visible() for one in ax.get_yticklabels())
    places = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert list(places) == names[::-1] and all(0.3 < place % 1 < 0.6 for place in places.values())
    plt.close(fig)


def test_a_word_that_an_axis_strikes_has_no_such_form() -> None:
    fig, ax = plt.subplots(figsize=(8.4, 3.0), layout="constrained")
    ax.set_xlim(0, 1)
    ax.annotate("a word left of its point", (0.4, 0.5), (-8, 0), textcoords="offset points", ha="right")
    assert not narrow.lay_out(fig)
    plt.close(fig)


@pytest.mark.parametrize("why", ["a table", "words that touch", "a word that sticks out", "narrow already"])
def test_a_figure_that_cannot_be_laid_out_so_has_no_such_form(why) -> None:
    shape, size = ((2, 3), (8.4, 5.0)) if why == "a table" else ((1, 1), (6.8, 3.0))
    fig, axes = plt.subplots(*shape, figsize=(4.0, 3.0) if why == "narrow already" else size, squeeze=False)
    if why == "words that touch":
        axes[0, 0].set_xticks(
            range(3), ["a name of many letters", "another name as long", "the longest name of all"]
        )
    if why == "a word that sticks out":
        fig.text(0.02, 0.02, "a line that is as long as the whole figure is, and a little longer than that")
    assert not narrow.lay_out(fig)
    plt.close(fig)


def test_show_keeps_the_drawing_for_a_phone_beside_the_other(panels, monkeypatch) -> None:
    shown = []
    monkeypatch.setattr(figures, "display", lambda data, **told: shown.append((data, told["metadata"])))
    figures.show(panels[0], alt="Three curves.")
    ((data, metadata),) = shown
    wide, tall = (ET.fromstring(text) for text in (data["image/svg+xml"], metadata["sepnb"]["narrow"]))
    of = [float(one.get("width").removesuffix("pt")) for one in (wide, tall)]
    assert of == pytest.approx([72 * 8.4, 72 * narrow.WIDTH])

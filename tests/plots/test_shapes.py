"""Shapes that several figures share are drawn from what they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sepnb.companion.book.dark import both_modes
from sepnb.plots import shapes


def test_every_curve_has_its_name_its_values_and_its_look(ax):
    looks = ("#0072b2", "o", "-"), ("#d55e00", "", shapes.DASHED)
    shapes.curves(ax, [1, 2], {"one": [3, 4], "two": [5, 6]}, looks, linewidth=0.5)
    one, two = ax.get_lines()
    assert [line.get_label() for line in (one, two)] == ["one", "two"]
    assert list(two.get_ydata()) == [5, 6] and two.get_color() == "#d55e00" and one.get_marker() == "o"
    assert one.get_linewidth() == two.get_linewidth() == 0.5
    with pytest.raises(ValueError, match="zip"):  # a curve without a look
        shapes.curves(ax, [1], {"one": [3], "two": [5]}, looks[:1])


def test_powers_of_two_have_the_given_ticks_alone(ax):
    ax.set_yscale("log")
    shapes.powers_of_two(ax, [64, 128])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["64", "128"] and ax.get_xscale() == "log"
    assert not len(ax.get_xticks(minor=True)) and not len(ax.get_yticks(minor=True))
    shapes.powers_of_two(ax, [1, 2], ["L", "2L"])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["L", "2L"]


def test_a_heat_map_is_white_at_zero_unless_told_otherwise(ax):
    image = shapes.heat_map(ax, [[-3.0, 1.0], [np.nan, 2.0]])
    assert image.get_clim() == (-3, 3) and not any(spine.get_visible() for spine in ax.spines.values())
    assert shapes.heat_map(ax, [[-3.0, 1.0]], reach=5).get_clim() == (-5, 5)
    assert shapes.heat_map(ax, [[0.0, 1.0]], cmap="Blues", vmin=0, vmax=2).get_clim() == (0, 2)


def test_words_stand_in_their_cells_and_are_white_where_asked(ax):
    shapes.write_cells(ax, [["a", "b"], ["c", "d"]], white=[[False, True], [False, False]])
    assert {text.get_text(): text.get_position() for text in ax.texts}["b"] == (1, 0)
    assert [text.get_text() for text in ax.texts if text.get_color() == "white"] == ["b"]


def test_words_in_cells_stay_as_they_are_on_a_dark_page_as_the_cells_do(ax):
    shapes.write_cells(ax, [["a", "b"]], white=[[False, True]])
    changed = both_modes("<svg></svg>")
    assert "fill: #26282b" in changed  # the ink of everything else
    assert all(str(text.get_color()) not in changed for text in ax.texts)


@pytest.mark.parametrize(("aside", "end"), [(4, "left"), (-4, "right")])
def test_words_beside_a_point_end_there_if_they_are_on_its_left(ax, aside, end):
    shapes.beside(ax, "a name", (2, 3), (aside, 1), va="top")
    (name,) = ax.texts
    assert name.xy == (2, 3) and name.get_position() == (aside, 1)
    assert (name.get_ha(), name.get_va()) == (end, "top")


def test_a_mark_stands_at_its_place_with_its_words_above(ax):
    shapes.mark(ax, 8, "as is")
    assert ax.get_lines()[0].get_xdata()[0] == 8
    assert ax.texts[0].get_text() == "as is" and ax.texts[0].get_position() == (8, 1.02)


def test_blocks_between_streams_that_nothing_passes_say_zero():
    joined = np.ones((2, 4, 2, 4))
    separated = joined.copy()
    separated[:, :1, :, 1:] = 0
    fig = shapes.jacobians({"joined": joined, "separated": separated}, pos=1)
    words = [[(text.get_text(), text.get_position()) for text in ax.texts] for ax in fig.axes[:2]]
    assert words == [[], [("exactly 0", (2.0, 0.0))]]
    plt.close(fig)

"""Boxes and arrows stand where they are put."""

import matplotlib.pyplot as plt
import pytest

from sepnb.plots import diagrams


def test_a_canvas_shows_its_range_and_no_axes():
    fig, ax = diagrams.canvas((4, 3), x=(0, 8), y=(-1, 5))
    assert (ax.get_xlim(), ax.get_ylim(), ax.axison) == ((0, 8), (-1, 5), False)
    plt.close(fig)


def test_a_box_fills_its_place_and_has_its_label_in_the_middle(ax):
    diagrams.box(ax, (1, 2), (3, 0.5), "norm")
    (patch,), (text,) = ax.patches, ax.texts
    outline = patch.get_path().vertices
    assert outline.min(axis=0) == pytest.approx([1, 2]) and outline.max(axis=0) == pytest.approx([4, 2.5])
    assert (text.get_text(), text.get_position()) == ("norm", (2.5, 2.25))


def test_an_arrow_ends_where_it_is_told_to(ax):
    diagrams.arrow(ax, (1, 1), (3, 2), colour="#123456", width=2)
    (drawn,) = ax.texts
    assert (drawn.xy, drawn.xyann) == ((3, 2), (1, 1))
    assert (drawn.arrowprops["shrinkA"], drawn.arrowprops["shrinkB"]) == (0, 0)

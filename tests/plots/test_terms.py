"""What is drawn of a head are the numbers of its table."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from sepnb.plots import figures, terms

L = 4
BINS = [(0, 1), (1, 2), (2, 4), (4, 8)]


def table(shift: float, names=tuple(terms.NAMES)[:4]) -> pd.DataFrame:
    return pd.DataFrame(
        {"layer": 1, "head": head, "term": name, "start": start, "stop": stop}
        | {"mean": shift + number - head, "std": 0.5, "inside_mean": -number - head, "inside_std": 0.25}
        | {"share": 0.1 + shift, "inside_share": 0.25 * (start < L), "moved": 0.0}
        for head in (2, 3)
        for number, name in enumerate(names)
        for start, stop in BINS
    )


def test_each_term_has_a_panel_with_its_means_and_inside_ends_at_the_trained_length():
    figures.use_style()
    fig = terms.score_terms(table(0.0), table(0.1), layer=1, head=3, length=L, near=2)
    *panels, near = sorted(fig.axes, key=lambda ax: ax.get_title("left").startswith("attention"))
    assert [ax.get_title("left") for ax in panels] == list(terms.NAMES.values())[:4]
    for number, ax in enumerate(panels):
        inside, trained, slowed = (line.get_ydata() for line in ax.lines[:3])
        assert list(inside) == [-number - 3] * 3
        assert list(trained) == [number - 3] * 4
        assert list(slowed) == pytest.approx([0.1 + number - 3] * 4)
        assert len(ax.collections) == 3  # a band for each
    assert len({ax.get_ylim() for ax in panels}) == 1
    assert [bar.get_height() for bar in near.patches] == pytest.approx([0.5, 0.2, 0.4])
    assert [text.get_text() for text in near.texts] == ["50%", "20%", "40%"]
    plt.close(fig)


def test_a_head_with_other_terms_has_as_many_panels():
    for names in (("content-content",), ("content-content", "position-position", "encoding")):
        how = {"layer": 1, "head": 2, "length": L, "near": 1}
        fig = terms.score_terms(table(0.0, names), table(0.1, names), **how)
        assert len(fig.axes) == len(names) + 1
        plt.close(fig)


def test_a_head_that_is_not_there_and_an_edge_that_is_none_are_refused():
    one = table(0.0)
    with pytest.raises(ValueError, match="no head 7 of layer 1"):
        terms.score_terms(one, one, layer=1, head=7, length=L, near=2)
    with pytest.raises(ValueError, match=r"ends at 3; use one of \[1, 2, 4, 8\]"):
        terms.score_terms(one, one, layer=1, head=2, length=L, near=3)

"""Interactive figures: every state can be reached, nothing comes from the network, nothing is random."""

import numpy as np
import pytest

from sepnb.plots import interactive

STATES = {0: np.zeros((3, 2)), 5: np.array([[1.0, 2.0], [3.0, -4.0], [0.0, 0.5]])}


def drawn(states=STATES):
    return interactive.paths_with_slider(
        states, values=[7, 8, 9], labels=["a", "b", "c"], prefix="step ", axis="component"
    )


def test_the_slider_reaches_every_state_and_begins_at_the_last():
    figure = drawn()
    assert [trace.visible for trace in figure.data] == [False, True]
    (slider,) = figure.layout.sliders
    assert slider.active == 1 and [step.label for step in slider.steps] == ["0", "5"]
    assert [step.args[0]["visible"] for step in slider.steps] == [[True, False], [False, True]]
    for trace, places in zip(figure.data, STATES.values(), strict=True):
        assert np.array_equal(np.stack([trace.x, trace.y], axis=1), places)
        assert tuple(trace.text) == ("a", "b", "c") and tuple(trace.marker.color) == (7, 8, 9)


def test_all_states_have_the_same_axes_and_none_is_cut():
    low, high = drawn().layout.xaxis.range
    assert (low, high) == tuple(drawn().layout.yaxis.range) and high == -low > 4


@pytest.mark.parametrize("states", [{}, {0: np.zeros((2, 2))}, {0: np.zeros((3, 3))}])
def test_states_of_other_points_are_refused(states):
    with pytest.raises(ValueError, match=r"give \[3, 2\] each"):
        drawn(states)


def test_the_page_gets_the_same_bytes_every_time_and_nothing_from_the_network(displayed):
    for _ in range(2):
        interactive.show(drawn(), name="plot-a", alt='Points "move".', instead="the figure above")
    first, second = displayed
    assert first == second and 'id="plot-a"' in first
    assert 'aria-label="Points &quot;move&quot;."' in first and "see the figure above" in first
    assert "cdn" not in first and "<script src" not in first


@pytest.mark.parametrize("missing", ["alt", "instead"])
def test_an_interactive_figure_never_stands_alone(missing, displayed):
    told = {"alt": "Points.", "instead": "the figure above"} | {missing: " "}
    with pytest.raises(ValueError, match=f"needs {missing}="):
        interactive.show(drawn(), name="plot-a", **told)
    assert not displayed

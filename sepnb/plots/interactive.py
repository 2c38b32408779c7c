"""Figures that move: plotly, from the book's own pages, beside a picture that says the same standing still.

It never stands alone: a figure of `figures` carries the finding, also for who prints the page, reads it
without scripts or by ear, and this one lets a reader look around in it.

Shape letters: P points.
"""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
import plotly.io
from IPython.display import HTML, display

from .figures import FAINT, GROUND, INK


def paths_with_slider(
    frames: Mapping[object, np.ndarray],
    *,
    values: Sequence[float | int],
    labels: Sequence[str],
    prefix: str,
    axis: str,
) -> go.Figure:
    """The same points in several states, joined in their order; a slider goes through the states.

    Args:
        frames: the places of the points by state, `[P, 2]` each, in the order of the slider, which begins at
            the last.
        values: of each point, for its colour.
        labels: of each point, shown where the pointer is.
        prefix: what the slider says before the state.
        axis: the title of both axes, which are the same in every state.

    Raises:
        ValueError: no state, or states of other points.
    """
    if not frames or any(places.shape != (len(values), 2) for places in frames.values()):
        raise ValueError(
            f"states of shape {[f.shape for f in frames.values()]}; give [{len(values)}, 2] each"
        )
    last = list(frames)[-1]
    figure = go.Figure(
        [
            go.Scatter(
                x=places[:, 0].round(4).tolist(),
                y=places[:, 1].round(4).tolist(),
                mode="lines+markers",
                line={"color": FAINT, "width": 1},
                marker={"color": list(values), "colorscale": "Viridis", "size": 8},
                text=list(labels),
                hoverinfo="text",
                visible=state == last,
                showlegend=False,
            )
            for state, places in frames.items()
        ]
    )
    steps = [
        {"label": str(state), "method": "update", "args": [{"visible": [other == state for other in frames]}]}
        for state in frames
    ]
    slider = {"active": len(steps) - 1, "steps": steps, "currentvalue": {"prefix": prefix}, "pad": {"t": 60}}
    reach = 1.05 * max(float(np.abs(places).max()) for places in frames.values())
    for along in (figure.update_xaxes, figure.update_yaxes):
        along(range=[-reach, reach], zeroline=False, title=axis)
    figure.update_layout(
        sliders=[slider],
        height=490,
        paper_bgcolor=GROUND,
        plot_bgcolor=GROUND,
        font={"color": INK, "size": 14},
        margin={"l": 10, "r": 10, "t": 20, "b": 10},
    )
    return figure


def show(figure: go.Figure, *, name: str, alt: str, instead: str) -> None:
    """Display a plotly figure. The bytes depend on the data alone: no random ids.

    Args:
        name: of the element on the page, unique there.
        alt: what it shows, for readers who do not see it.
        instead: what shows the same without scripts, such as "the figure above".

    Raises:
        ValueError: no alternative text, or nothing to stand in.
    """
    html = plotly.io.to_html(
        figure,
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True},
    )
    display_framed(html, alt=alt, instead=instead)


def display_framed(html: str, *, alt: str, instead: str) -> None:
    """Display what a reader can move, with its words; `alt` and `instead` as of `show`.

    Raises:
        ValueError: no alternative text, or nothing to stand in.
    """
    for what, text in (("alt", alt), ("instead", instead)):
        if not text.strip():
            raise ValueError(f"an interactive figure needs {what}=; without scripts it shows nothing")
    label = escape(" ".join(alt.split()), quote=True)
    note = (
        f"<noscript><p>Without scripts there is nothing to turn here; see {escape(instead)}.</p></noscript>"
    )
    frame = f'class="sepnb-interactive" data-interactive role="figure" aria-label="{label}"'
    display(HTML(f"<div {frame}>{html}{note}</div>"))

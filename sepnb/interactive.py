"""Figures that move: plotly, from the book's own pages, beside a picture that says the same standing still.

An interactive figure shows nothing to who prints the page or reads it without scripts, and tells a screen
reader little. So it never stands alone: a figure of `sepnb.figures` carries the finding, and this one lets a
reader look around in it.
"""

import plotly.graph_objects as go
import plotly.io
from IPython.display import HTML, display

from .figures import GROUND, INK


def style(figure: go.Figure, *, height: int = 460) -> go.Figure:
    """The house style on a plotly figure, in place; `height` in pixels, the width is that of the page."""
    figure.update_layout(
        height=height,
        paper_bgcolor=GROUND,
        plot_bgcolor=GROUND,
        font={"color": INK, "size": 14},
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
    )
    return figure


def show(figure: go.Figure, *, name: str, alt: str, instead: str) -> None:
    """Display a plotly figure. The bytes depend on the data alone: no random ids.

    Args:
        figure: the figure, styled.
        name: of the element on the page, unique there.
        alt: what it shows, for readers who do not see it.
        instead: the name of the standing figure that says the same, such as `fig-losses-live`.

    Raises:
        ValueError: no alternative text, or no figure to stand in.
    """
    for what, text in (("alt", alt), ("instead", instead)):
        if not text.strip():
            raise ValueError(f"an interactive figure needs {what}=; without scripts it shows nothing")
    html = plotly.io.to_html(
        figure,
        full_html=False,
        include_plotlyjs=False,
        div_id=name,
        config={"displaylogo": False, "responsive": True},
    )
    label = " ".join(alt.split()).replace('"', "&quot;")
    note = f"<noscript><p>This figure needs scripts; {instead} shows the same.</p></noscript>"
    display(HTML(f'<div class="sepnb-interactive" role="figure" aria-label="{label}">{html}{note}</div>'))

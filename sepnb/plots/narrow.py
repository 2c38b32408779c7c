"""The same figure for a phone: panels that stand side by side come to stand under each other.

Letters keep their size, so that what is read on a wide page is read on a narrow one. Where the figure cannot
be laid out so without words that touch or stick out, there is no such form, and a phone scrolls the figure.
"""

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

WIDTH = 4.2  # inches: 400 pixels of a page, which a phone shows at nine tenths
TALLEST = 16.0


def lay_out(fig: Figure) -> bool:
    """Lay `fig` out for a phone, in place; False where it does not fit so, and `fig` is not to be shown then.

    Panels of one row are dealt to as many columns as have room at the width that they had, in their order; a
    panel that took its scale from its neighbour on the left gets its words. A figure of one panel, or of
    one above the other, becomes narrower. In a table of panels their places say something, and they stay.
    """
    wide, height = fig.get_size_inches()
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None and not hasattr(ax, "_colorbar")]
    grids = {id(ax.get_gridspec()) for ax in panels}
    if wide <= WIDTH or not panels or len(grids) != 1:
        return False
    rows, columns = panels[0].get_gridspec().get_geometry()
    if columns > 1 and (rows > 1 or columns != len(panels)):
        return False
    touched = _touching(fig)
    across = max(1, int(WIDTH * columns / wide + 0.15))
    down = -(-columns // across)
    if height * down > TALLEST:
        return False
    if columns > 1:
        _deal(fig, panels, down, across)
    fig.set_size_inches(WIDTH, height * down)
    return bool(_inside(fig) and _touching(fig) <= touched)


def _deal(fig: Figure, panels: list[Axes], down: int, across: int) -> None:
    first, grid = panels[0], fig.add_gridspec(down, across)
    for place, ax in enumerate(panels):
        ax.set_subplotspec(grid[divmod(place, across)])
        if place % across == 0 and ax is not first and ax.get_shared_y_axes().joined(first, ax):
            ax.tick_params(axis="y", labelleft=True)
            ax.set_ylabel(ax.get_ylabel() or first.get_ylabel())


def _boxes(fig: Figure) -> np.ndarray:
    """Of each text that is seen left, bottom, right and top in pixels, `[T, 4]`."""
    fig.draw_without_rendering()  # settles the layout
    unseen: set[int] = set()
    for ax in fig.axes:
        for axis, along in ((ax.xaxis, 0), (ax.yaxis, 1)):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for label in (*axis.get_majorticklabels(), *axis.get_minorticklabels()):
                if not ax.axison or not low - slack <= label.get_position()[along] <= high + slack:
                    unseen.add(id(label))
            if not ax.axison:
                unseen.add(id(axis.label))
    texts = [text for text in fig.findobj(Text) if text.get_visible() and text.get_text().strip()]
    found = [Text.get_window_extent(text).extents for text in texts if id(text) not in unseen]
    return np.array(found).reshape(-1, 4)


def _touching(fig: Figure) -> int:
    """How many pairs of texts lie on each other, by more than a pixel."""
    boxes = _boxes(fig)
    return sum(
        min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1
        for a, b in combinations(boxes, 2)
    )


def _inside(fig: Figure) -> bool:
    boxes, (right, top) = _boxes(fig), fig.get_size_inches() * fig.dpi
    return bool(
        len(boxes) == 0
        or (boxes[:, :2].min() >= -1 and boxes[:, 2].max() <= right + 1 and boxes[:, 3].max() <= top + 1)
    )

"""The same figure for a phone: panels that stand side by side come to stand under each other.

Letters keep their size, so that what is read on a wide page is read on a narrow one. Where the figure cannot
be laid out so without words that touch or stick out, there is no such form, and a phone scrolls the figure.
"""

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from .looks import GROUND

WIDTH = 4.2  # inches: 400 pixels of a page, which a phone shows at nine tenths
TALLEST = 16.0
NAMES = 0.4  # of the width, at most, for names of rows
ROW = 0.15  # inches that a row becomes higher where its name stands above it
NEAR = 3  # pixels between two words of one line, at least


def lay_out(fig: Figure) -> bool:
    """Lay out `fig` for a phone, in place; return False if it does not fit, and `fig` must not be shown then.

    The panels of a row are distributed, in order, over as many columns as fit at their old width. A panel
    that then begins a row and shares the y axis of the first gets tick labels and a title of its own; an x
    title that the middle panel had for all moves to the lowest. A single panel or a column becomes narrower.
    A grid of panels is refused: places in it have a meaning. Names of rows that would take much of the width
    are written above their rows.
    """
    wide, height = fig.get_size_inches()
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None and not hasattr(ax, "_colorbar")]
    grids = {id(ax.get_gridspec()) for ax in panels}
    if wide <= WIDTH or not panels or len(grids) != 1:
        return False
    rows, columns = panels[0].get_gridspec().get_geometry()
    if columns > 1 and (rows > 1 or columns != len(panels)):
        return False
    touched = _touching(fig, _boxes(fig))
    across = max(1, int(WIDTH * columns / wide + 0.15))
    down = -(-columns // across)
    long = [ax for ax in panels if _names_are_long(ax, WIDTH / across)]
    named = [ax for ax in panels if any(ax is one or _same_rows(ax, one) for one in long)]
    if named:
        tall = height + ROW * max(len(ax.get_yticks()) for ax in named)
        if tall * columns <= TALLEST:
            height, across, down = tall, 1, columns
        else:
            named = []
    if height * down > TALLEST:
        return False
    if columns > 1:
        _deal(fig, panels, down, across)
    for ax in named:
        _name_above(ax)
    fig.set_size_inches(WIDTH, height * down + _fold_legends(fig))
    fig.draw_without_rendering()  # the layout may need two passes to settle: the other is in `_boxes`
    for ax in panels:
        if across == 1 and ax.xaxis.label.get_window_extent().x1 > WIDTH * fig.dpi:
            ax.xaxis.label.set(x=1, ha="right")
    boxes = _boxes(fig)
    return bool(_inside(fig, boxes) and _touching(fig, boxes) <= touched)


def _fold_legends(fig: Figure) -> float:
    """Give legends above or below all panels as many columns as fit; return by how many inches they grow."""
    higher = 0.0
    for legend in list(fig.legends):
        box = legend.get_window_extent()
        if box.width <= WIDTH * fig.dpi:
            continue
        place = "upper" if box.y0 > fig.bbox.height / 2 else "lower"
        names, handles = [text.get_text() for text in legend.get_texts()], legend.legend_handles
        how = {"fontsize": legend.get_texts()[0].get_fontsize(), "frameon": legend.get_frame_on()}
        how["handlelength"] = legend.handlelength
        legend.remove()
        for columns in range(len(names) - 1, 0, -1):
            folded = fig.legend(handles, names, loc=f"outside {place} center", ncols=columns, **how)
            if columns == 1 or folded.get_window_extent().width <= WIDTH * fig.dpi:
                break
            folded.remove()
        higher += (folded.get_window_extent().height - box.height) / fig.dpi
    return higher


def _deal(fig: Figure, panels: list[Axes], down: int, across: int) -> None:
    first, grid = panels[0], fig.add_gridspec(down, across)
    for place, ax in enumerate(panels):
        ax.set_subplotspec(grid[divmod(place, across)])
        if place % across == 0 and ax is not first and _same_rows(first, ax):
            ax.tick_params(axis="y", labelleft=True)
            ax.set_ylabel(ax.get_ylabel() or first.get_ylabel())
    titles = [ax.get_xlabel() for ax in panels]
    if len(panels) % 2 and (title := titles[len(panels) // 2]) and sum(map(bool, titles)) == 1:
        for place, ax in enumerate(panels):
            ax.set_xlabel(title if place + across >= len(panels) else "")


def _same_rows(one: Axes, other: Axes) -> bool:
    return bool(one.get_shared_y_axes().joined(one, other))


def _names_are_long(ax: Axes, room: float) -> bool:
    """Whether the names of rows, as last drawn, take more of the `room`, in inches, than they may."""
    shown = [label for label in ax.get_yticklabels() if label.get_visible() and label.get_text()]
    widest = max((label.get_window_extent().width for label in shown), default=0)
    return not ax.images and widest > NAMES * room * ax.figure.dpi


def _name_above(ax: Axes) -> None:
    """Write the names of rows into the axes, each above its row, on a ground that covers upright lines."""
    ticks = ax.get_yticks()
    names = ax.yaxis.get_major_formatter().format_ticks(ticks)
    first, last = ax.get_ylim()
    row = min(np.diff(np.sort(ticks)), default=1)
    up = row if last > first else -row
    top = max(ticks) if up > 0 else min(ticks)
    ax.set_ylim(first, top + 0.75 * up)
    for line in ax.get_lines():
        if _upright(line):
            line.set_zorder(0.5)
    cover = {"boxstyle": "square,pad=0.06", "facecolor": GROUND, "edgecolor": GROUND, "linewidth": 0.1}
    within = ax.get_yaxis_transform()
    for tick, name in zip(ticks, names, strict=True):
        words = " ".join(name.split("\n"))
        place = {"transform": within, "ha": "left", "va": "center", "fontsize": 9, "zorder": 1.5}
        ax.text(0.01, tick + 0.48 * up, words, bbox=cover, **place)
    ax.tick_params(axis="y", length=0, labelleft=False)


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


def _touching(fig: Figure, boxes: np.ndarray) -> int:
    """The number of pairs of texts, in these boxes, that overlap by more than a pixel or have no space
    between them, and of texts that a y axis or a vertical line crosses."""
    pairs = sum(
        min(a[2], b[2]) - max(a[0], b[0]) > -NEAR and min(a[3], b[3]) - max(a[1], b[1]) > 1
        for a, b in combinations(boxes, 2)
    )
    return pairs + sum(map(_struck, fig.axes))


def _struck(ax: Axes) -> int:
    """How many words in a panel its y axis or an upright line strikes, with no ground of theirs between."""
    lines = [_pixels(line) for line in ax.get_lines() if line.get_visible() and _upright(line)]
    if ax.axison and ax.spines["left"].get_visible():
        lines.append(ax.spines["left"].get_window_extent().get_points())
    words = [text for text in ax.texts if text.get_visible() and text.get_bbox_patch() is None]
    boxes = [Text.get_window_extent(text).extents for text in words if text.get_text().strip()]
    return sum(
        any(
            left + 1 < line[:, 0].mean() < right - 1
            and min(top, line[:, 1].max()) - max(bottom, line[:, 1].min()) > 1
            for line in lines
        )
        for left, bottom, right, top in boxes
    )


def _upright(line: Line2D) -> bool:
    """Whether a line has two points, one above the other."""
    x = np.asarray(line.get_xdata(), float)
    return x.shape == (2,) and x[0] == x[1]


def _pixels(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_transform().transform(line.get_xydata()))


def _inside(fig: Figure, boxes: np.ndarray) -> bool:
    right, top = fig.get_size_inches() * fig.dpi
    return bool(
        len(boxes) == 0
        or (boxes[:, :2].min() >= -1 and boxes[:, 2].max() <= right + 1 and boxes[:, 3].max() <= top + 1)
    )

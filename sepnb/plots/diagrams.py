"""Boxes and arrows: drawings that explain how parts hang together, in the look of `figures`.

Lengths and places are in the units of the axes, (x, y) from the lower left.
"""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from .looks import GROUND, INK

Point = tuple[float | int, float | int]


def canvas(size: Point, *, x: Point, y: Point) -> tuple[Figure, Axes]:
    """A figure of a size in inches, its axes hidden, which range over `x` and `y`."""
    fig, ax = plt.subplots(figsize=size)
    ax.set(xlim=x, ylim=y)
    ax.axis("off")
    return fig, ax


def box(ax: Axes, corner: Point, size: Point, label: str, *, colour: str = INK, fill: str = GROUND) -> None:
    """A rounded box with its lower left corner at `corner` and a label in its middle."""
    (x, y), (width, height) = corner, size
    style = f"round,pad=0,rounding_size={0.2 * min(size)}"
    ax.add_patch(
        FancyBboxPatch(corner, *size, boxstyle=style, facecolor=fill, edgecolor=colour, linewidth=1.2)
    )
    ax.text(x + width / 2, y + height / 2, label, ha="center", va="center", fontsize=9.5)


def arrow(ax: Axes, start: Point, end: Point, *, colour: str = INK, width: float | int = 1.3) -> None:
    """A straight arrow that begins and ends exactly where it is told to."""
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", xy=end, xytext=start, arrowprops=look)

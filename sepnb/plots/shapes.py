"""Shapes that several figures share: families of lines, maps of signed values, words in cells, marks on an
axis."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

from .looks import FAINT, GROUND, INK

DASHED, DOTTED = (0, (5, 2)), (0, (1, 1.2))
ON_CELLS = "#1f2123"
"""Ink on the cells of an image. They keep their colours on a dark page, so that it stays dark, unlike INK."""


def curves(
    ax: Axes, x: ArrayLike, named: Mapping[Any, ArrayLike], looks: Iterable[tuple[str, str, Any]], **line: Any
) -> None:
    """One labelled line over `x` for each entry of `named`.

    Args:
        looks: colour, marker (empty: none) and dash of each.
        line: what else `Axes.plot` takes, for all of them.

    Raises:
        ValueError: as many looks as lines are needed.
    """
    for (name, y), (colour, marker, dash) in zip(named.items(), looks, strict=True):
        ax.plot(x, y, marker=marker, color=colour, linestyle=dash, label=str(name), **line)


def powers_of_two(ax: Axes, ticks: Sequence[int | float], labels: Sequence[str] | None = None) -> None:
    """A logarithmic x axis with these ticks alone, written as numbers unless `labels` says how.

    Called after the y axis has its scale: the small ticks of both are removed.
    """
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks] if labels is None else labels)
    ax.minorticks_off()


def heat_map(ax: Axes, values: ArrayLike, reach: float | int | None = None, **image: Any) -> AxesImage:
    """A table of values in colours, by default signed ones, white at 0; without a frame.

    Args:
        values: `[rows, columns]`.
        reach: the value of the darkest colours; the largest in size where it is not given.
        image: what else `Axes.imshow` takes.
    """
    values = np.asarray(values)
    reach = float(np.nanmax(np.abs(values))) if reach is None else reach
    look = {"cmap": "PuOr", "vmin": -reach, "vmax": reach, "interpolation": "nearest"}
    ax.spines[:].set_visible(False)
    return ax.imshow(values, **look | image)


def jacobians(pictures: Mapping[str, ArrayLike], pos: int) -> Figure:
    """A map for each Jacobian `[N, D, N, D]` of a model of two streams, the first `pos` columns wide: the
    largest derivative of an output column by an input column. A block between streams that is 0 says so."""
    fig, axes = plt.subplots(1, len(pictures), figsize=(8.0, 3.0), sharey=True)
    for ax, (title, jacobian) in zip(axes, pictures.items(), strict=True):
        size = np.abs(np.asarray(jacobian)).max(axis=(0, 2))
        drawn = np.ma.masked_equal(size, 0.0)
        colours = plt.get_cmap("Blues").with_extremes(bad=GROUND)
        image = ax.imshow(drawn, cmap=colours, norm=LogNorm(1e-2, 10))
        ax.axhline(pos - 0.5, color=INK, linewidth=1)
        ax.axvline(pos - 0.5, color=INK, linewidth=1)
        middles = (pos - 1) / 2, (pos + len(size) - 1) / 2
        ax.set(title=title, xlabel="input column", xticks=middles, yticks=middles)
        ax.set(xticklabels=["pos", "sem"], yticklabels=["pos", "sem"])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(True)
        for x, y, block, word in (
            (1, 0, size[:pos, pos:], "exactly 0"),
            (0, 1, size[pos:, :pos], "0"),
        ):
            if not block.any():
                ax.text(middles[x], middles[y], word, ha="center", va="center", color=ON_CELLS)
    axes[0].set_ylabel("output column")
    fig.colorbar(image, ax=axes, shrink=0.75, label="largest derivative", extend="min")
    return fig


def write_cells(
    ax: Axes, words: Sequence[Sequence[str]], *, white: ArrayLike | None = None, fontsize: float | int = 10
) -> None:
    """Words in the middle of the cells of an image `[rows, columns]`, white where `white` says so."""
    for row, line in enumerate(words):
        for column, word in enumerate(line):
            ink = "white" if white is not None and np.asarray(white)[row, column] else ON_CELLS
            ax.text(column, row, word, ha="center", va="center", fontsize=fontsize, color=ink)


def beside(ax: Axes, words: str, point: ArrayLike, offset: Sequence[int | float], **about: Any) -> None:
    """Words at an offset in points from a point, which end there if the offset leads to the left. `about` is
    what else `Axes.annotate` takes."""
    look = {"textcoords": "offset points", "va": "center", "ha": "left" if offset[0] > 0 else "right"}
    ax.annotate(words, point, offset, **look | about)


def mark(ax: Axes, x: float | int, words: str, height: float = 1.02) -> None:
    """A dashed vertical line with words above it. `height` is in units of the axes."""
    ax.axvline(x, color=FAINT, linewidth=1.2, linestyle=(0, (2, 2)), zorder=0.5)
    where = ax.get_xaxis_transform()
    ax.text(x, height, words, transform=where, ha="center", va="bottom", fontsize=9, color=INK)

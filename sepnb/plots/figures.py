"""One look for every figure, and what stands under it.

How a method is drawn stands in `looks`. Figures have an opaque, almost white ground: they read the same on a
dark page.

`show` displays a figure as SVG (as PNG at twice the size where the SVG would be heavy) with its alternative
text, caption, name and form for a phone in the output's metadata; the build of the book moves these to where
MyST-NB and the pages look for them.
The bytes depend on the data alone: no date, no random ids.
"""

import base64
import io
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML, Markdown, display
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from ..records.markup import numeric_columns
from ..records.run_table import summarise
from . import narrow
from .looks import FAINT, GROUND, INK, PALETTE, Method, legible
from .looks import METHODS as METHODS
from .looks import MIXED as MIXED
from .looks import POS as POS
from .looks import RULES as RULES
from .looks import SEM as SEM
from .looks import title as title
from .shapes import mark

HEAVY_SVG = 400_000  # bytes; above this a figure is a PNG
PIXELS_PER_INCH = 96  # of a web page


def use_style() -> None:
    """The house style, for every figure drawn after the call."""
    sns.set_theme(
        context="notebook",
        style="ticks",
        palette=PALETTE,
        rc={
            "figure.figsize": (6.8, 3.4),
            "figure.facecolor": GROUND,
            "figure.constrained_layout.use": True,
            "axes.facecolor": GROUND,
            "axes.edgecolor": FAINT,
            "axes.labelcolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titlesize": 11,
            "axes.labelsize": 10.5,
            "text.color": INK,
            "font.size": 10.5,
            "xtick.labelsize": 9.5,
            "ytick.labelsize": 9.5,
            "xtick.color": INK,
            "ytick.color": INK,
            "lines.linewidth": 1.8,
            "lines.markersize": 5.5,
            "legend.frameon": False,
            "legend.fontsize": 9.5,
            "svg.hashsalt": "sepnb",
        },
    )


NOT_RUN = "Not run yet: the records of the experiment are missing at this profile."
"""The caption of a figure that nothing could be drawn in."""


def show(fig: Figure, *, alt: str, name: str | None = None, caption: str | None = None) -> None:
    """Display `fig`, then close it.

    Args:
        alt: what the picture shows, for readers who do not see it.
        name: target for `{numref}`, such as `fig-shuffled-sentence`. Needs a caption to be numbered.
        caption: MyST text that states the finding. Where no panel has data it is replaced by `NOT_RUN`, and
            every panel says so.

    Raises:
        ValueError: the alternative text is empty, the name is no valid target, or it lacks a caption.
    """
    if not alt.strip():
        raise ValueError(
            "a figure needs alternative text: pass alt= with one or two sentences on what it shows"
        )
    if name is not None and not re.fullmatch(r"fig-[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(
            f"the figure name {name!r} must look like 'fig-two-words': lower case, digits, hyphens"
        )
    if name is not None and not (caption or "").strip():
        raise ValueError(
            f"the figure {name!r} has a name but no caption, so it would get no number; pass caption="
        )
    if caption == NOT_RUN or (fig.axes and not any(map(_holds_data, fig.axes))):
        caption = caption and NOT_RUN
        for ax in fig.axes:
            not_run(ax)
    data, metadata = picture(fig)
    about = {"alt": " ".join(alt.split()), "name": name, "caption": " ".join((caption or "").split()) or None}
    if "image/svg+xml" in data and narrow.lay_out(fig):
        about["narrow"] = picture(fig)[0].get("image/svg+xml")
    display(data, metadata=metadata | {"sepnb": about}, raw=True)
    plt.close(fig)


def _holds_data(ax: Axes) -> bool:
    """Whether something stands in axes besides words and lines that mark a level, or they hold a drawing."""
    drawing = not ax.axison and (ax.texts or ax.patches)
    shapes = [one for one in ax.patches if _stands_at_values(one, ax)]
    lines = [one.get_xydata() for one in ax.lines if _stands_at_values(one, ax)]
    curves = [points for points in lines if np.isfinite(points).all(axis=1).any()]
    return bool(drawing or ax.images or ax.collections or shapes or curves)


def _stands_at_values(artist: Artist, ax: Axes) -> bool:
    """Whether both coordinates are values of the axes; a marked level has one."""
    return all(artist.get_transform().contains_branch_seperately(ax.transData))


def picture(fig: Figure) -> tuple[dict[str, str], dict[str, Any]]:
    """`fig` as a display bundle (mime type to content) with its metadata."""
    svg = io.StringIO()
    fig.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    if len(svg.getvalue()) <= HEAVY_SVG:
        return {"image/svg+xml": svg.getvalue(), "text/plain": "<figure>"}, {}
    png = io.BytesIO()
    fig.savefig(png, format="png", dpi=2 * PIXELS_PER_INCH, metadata={"Software": None})
    content = {"image/png": base64.b64encode(png.getvalue()).decode(), "text/plain": "<figure>"}
    return content, {"image/png": {"width": round(fig.get_figwidth() * PIXELS_PER_INCH)}}


def trained_length(ax: Axes, length: int, label: str = "trained length") -> None:
    """A vertical line where training stopped. `length` is in units of the x axis."""
    mark(ax, length, f"{label} {length}", height=1.01)


def entropy_lines(ax: Axes, table: pd.DataFrame, at: float) -> None:
    """Dotted lines at the loss of counting bytes, and pairs of bytes, on the text of a table.

    Their names begin at `at` on the x axis. Nothing is drawn where no run has them.
    """
    for name, counted in {"unigram": "bytes", "bigram": "pairs"}.items():
        values = pd.to_numeric(table.get(f"{name}_bits_per_byte", pd.Series(dtype=float))).dropna()
        if len(values):
            ax.axhline(values.mean(), color=FAINT, linestyle=":", zorder=0.5)
            ax.text(at, values.mean(), f"counting {counted}", fontsize=9, va="bottom", color=INK)


def say(text: str) -> None:
    """Display a sentence (MyST) in the place of a table or a figure."""
    display(Markdown(text))


def seed_row(
    ax: Axes,
    height: float | int,
    values: ArrayLike,
    look: Method,
    *,
    interval: bool = True,
    size: float | int = 7,
    labelled: bool = False,
    missing: str | None = None,
) -> None:
    """One value a seed at a height: every seed a tick, the mean a marker, its 95 % t interval a bar.

    Of no values nothing is drawn, or at 0 the words of `missing`. `size` is the marker's in points;
    `labelled` enters the look in the legend.
    """
    if not np.size(values):
        if missing is not None:
            ax.text(0, height, missing, ha="center", va="center", color=INK)
        return
    seeds, found = np.asarray(values, dtype=float), summarise(values)
    ax.plot(seeds, np.full_like(seeds, height), "|", color=look.colour, markersize=1.5 * size, alpha=0.6)
    half = found.half if interval and np.isfinite(found.half) else None
    line = look.line(linestyle="", label=look.label if labelled else "_", markersize=size)
    ax.errorbar(found.mean, height, xerr=half, elinewidth=0.4 * size, **line)


def seed_rows(
    ax: Axes,
    rows: Mapping[str, Iterable[tuple[ArrayLike, Method]]],
    *,
    level: float | int = 0,
    margin: float | int | None = None,
    labelled: bool = False,
    **row: Any,
) -> None:
    """Values by name from top to bottom, a line at a `level`, such as that of chance, and a dashed one at the
    `margin` of a rule.

    In the row of a name stand the values and the look of each of its series, as `seed_row` draws them; `row`
    is what that function takes besides. `labelled` enters each look in the legend, once.
    """
    named: set[str] = set()
    ax.axvline(level, color=FAINT, linewidth=1.2)
    if margin is not None:
        ax.axvline(margin, color=MIXED, linewidth=1.2, linestyle=(0, (2, 2)))
    for height, name in enumerate(reversed(rows)):
        series = list(rows[name])
        apart = min(0.32, 0.64 / max(1, len(series) - 1))  # rows of one name stay nearer than those of two
        for place, (values, look) in enumerate(series):
            where = height + apart * ((len(series) - 1) / 2 - place)
            seed_row(ax, where, values, look, labelled=labelled and look.label not in named, **row)
            if np.size(values):
                named.add(look.label)
    ax.set_yticks(range(len(rows)), list(reversed(rows)))
    ax.set_ylim(-0.6, len(rows) - 0.4)


def not_run(ax: Axes) -> None:
    """Say in the middle of empty axes that there is nothing to draw yet."""
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, "not run", ha="center", va="center", color=INK, transform=ax.transAxes)


def label_lines(ax: Axes, *, fontsize: float = 9.5) -> None:
    """Write each labelled line's name at its right end, in its colour, as dark as words need.

    Names are moved apart where they would touch and kept off the x axis; their background covers lines that
    mark a level. A thin line connects a name to the end of its line if the two are far apart.
    """
    ends = []
    for line in ax.get_lines():
        x, y = (np.ma.filled(np.ma.asarray(values, float), np.nan) for values in line.get_data())
        seen = np.isfinite(x) & np.isfinite(y)
        if not str(line.get_label()).startswith("_") and seen.any():
            last = np.flatnonzero(seen)[np.argmax(x[seen])]
            ends.append((x[last], y[last], line))
    if not ends:
        return
    ax.figure.draw_without_rendering()  # settles the axes limits and the layout
    pixels = ax.transData.transform
    ends.sort(key=lambda end: pixels(end[:2])[1])
    wanted = np.array([pixels(end[:2])[1] for end in ends])
    height = 1.25 * fontsize * ax.figure.dpi / 72  # of a name, with the space between two
    levels = spread(wanted, height, low=ax.bbox.y0 + 0.6 * height, high=ax.bbox.y1)
    right = max(pixels(end[:2])[0] for end in ends)
    beside = offset_copy(ax.transData, ax.figure, x=8, units="points")
    for (x, y, line), end, level in zip(ends, wanted, levels, strict=True):
        thin = {"arrowstyle": "-", "linewidth": 0.6, "color": line.get_color(), "relpos": (0, 0.5)}
        ax.annotate(
            str(line.get_label()),
            xy=(x, y),
            xytext=ax.transData.inverted().transform((right, level)),
            textcoords=beside,
            va="center",
            fontsize=fontsize,
            color=legible(to_hex(line.get_color())),
            bbox={"boxstyle": "square,pad=0.06", "facecolor": GROUND, "edgecolor": GROUND, "linewidth": 0.1},
            arrowprops=thin | {"shrinkA": 0, "shrinkB": 2} if abs(level - end) > height / 2 else None,
            annotation_clip=False,
        )


def spread(wanted: np.ndarray, gap: float, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
    """The levels nearest to `wanted` (sorted, least squares) with at least `gap` between neighbours, none of
    them below `low` and, where so many have room, none above `high`."""
    steps = gap * np.arange(len(wanted))
    top = max(low, high - steps[-1])
    return np.clip(isotonic_regression(wanted - steps).x, low, top) + steps


def provenance(*tables: pd.DataFrame) -> HTML:
    """The records that a page was made from, folded: of each table what was run, seeds, device, versions,
    commit, date.

    A table is what an experiment's `table()` returns: a `status` column, and records in `attrs["records"]`.
    """
    lines = "".join(map(_origin, tables))
    return HTML(f'<details class="sepnb-records"><summary>Records of this page</summary>{lines}</details>')


def _origin(table: pd.DataFrame) -> str:
    records = list(table.attrs.get("records", ()))
    status = list(table["status"]) if "status" in table else ["ok"] * len(records)
    badges = [
        f'<span class="sepnb-badge {look}">{count} {kind}</span>'
        for kind, look in (("not run", "missing"), ("stale", "stale"))
        if (count := status.count(kind))
    ]

    def words(*keys: str, letters: int | None = None) -> str:
        """The values of these facts, each once, or their first letters."""
        texts = {" ".join(str(one.get(key) or "unknown") for key in keys)[:letters] for one in origins}
        return ", ".join(sorted(texts))

    origins = [record.provenance for record in records]
    facts = [f"{len(records)} of {len(status)} runs"]
    if records:
        days = sorted({str(origin.get("started") or "unknown")[:10] for origin in origins})
        seeds = sorted({origin.get("seed") for origin in origins}, key=lambda seed: (str(type(seed)), seed))
        facts = [
            ", ".join(sorted({record.experiment for record in records})),
            f"profile {', '.join(sorted({record.profile for record in records}))}",
            *facts,
            f"seeds {', '.join(map(str, seeds))}",
            words("device", "device_name"),
            f"torch {words('torch')}, Python {words('python')}",
            f"commit {words('commit', letters=7)}",
            days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}",
        ]
    return f'<p class="sepnb-provenance">{" · ".join([escape(fact) for fact in facts] + badges)}</p>'


def show_table(
    df: pd.DataFrame, *, caption: str, formats: Mapping[str, str] | None = None, highlight: Iterable[int] = ()
) -> None:
    """Display `df` as an HTML table with a caption; its index is not shown. One without rows says "not run".

    Args:
        formats: format by column, such as `{"bits per byte": ".3f"}`. Missing values print as a dash.
        highlight: row numbers, from 0, set in bold.

    Raises:
        ValueError: the caption is empty, or a format names no column.
    """
    if df.empty:
        df, formats = pd.DataFrame({"": ["not run"]}), None
    formats, bold = dict(formats or {}), set(highlight)
    if not caption.strip():
        raise ValueError("a table needs a caption: one sentence that says what to see in it")
    if unknown := [name for name in formats if name not in df.columns]:
        raise ValueError(
            f"a format for {unknown[0]!r}, but the columns are {', '.join(map(str, df.columns))}"
        )

    def told(value: Any, column: str) -> str:
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if value is None or (number and np.isnan(value)):
            return "–"  # noqa: RUF001, an en dash is what stands for nothing in a table
        return escape(format(value, formats.get(column, ""))).replace("± ", "±\u00a0")  # one line, or two

    columns = [str(column) for column in df.columns]
    rows = [
        [told(*pair) for pair in zip(row, columns, strict=True)]
        for row in df.itertuples(index=False, name=None)
    ]
    numeric = numeric_columns(rows)
    right = [' class="sepnb-number"' if number else "" for number in numeric]
    first = '<th scope="row">{}</th>' if not numeric[0] else f"<td{right[0]}>{{}}</td>"
    cells = [first, *(f"<td{how}>{{}}</td>" for how in right[1:])]
    head = "".join(
        f'<th scope="col"{how}>{escape(name)}</th>' for name, how in zip(columns, right, strict=True)
    )
    strong = ' class="sepnb-strong"'
    body = "".join(
        f"<tr{strong if n in bold else ''}>"
        + "".join(cell.format(text) for cell, text in zip(cells, row, strict=True))
        + "</tr>"
        for n, row in enumerate(rows)
    )
    display(
        HTML(
            f'<div class="sepnb-table"><table class="table dataframe"><caption>{escape(caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )
    )

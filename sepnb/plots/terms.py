"""What content and position give to the score of one head, by distance: inside the trained length, past it as
trained, and past it at slowed positions."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import shapes
from .looks import FAINT, GROUND, INK, MIXED, POS

NAMES = {
    "content-content": "content asks, content answers",
    "content-position": "content asks, position answers",
    "position-content": "position asks, content answers",
    "position-position": "position asks, position answers",
    "encoding": "added by the encoding",
}
INSIDE, TRAINED, SLOWED = (
    {"label": "inside the trained length", "color": INK, "marker": "o", "linestyle": "-"},
    {"label": "past it, as trained", "color": MIXED, "marker": "s", "linestyle": shapes.DASHED},
    {"label": "past it, positions slowed", "color": POS, "marker": "^", "linestyle": "-"},
)


def score_terms(
    trained: pd.DataFrame, slowed: pd.DataFrame, *, layer: int, head: int, length: int, near: int
) -> Figure:
    """A panel for each term of a head, all on one scale: its mean over the pairs at a distance, in a band of
    one standard deviation. Beside them the attention that the head gives to its nearest keys.

    Args:
        trained, slowed: of `sepnb.analysis.score_table`, of the same texts and model.
        length: L.
        near: how many keys count as the nearest; a bin must end there.

    Raises:
        ValueError: a head that the tables do not hold, or a number of keys at which no bin ends.
    """
    of = [table[(table["layer"] == layer) & (table["head"] == head)] for table in (trained, slowed)]
    if any(table.empty for table in of):
        raise ValueError(f"the tables hold no head {head} of layer {layer}")
    if near not in set(of[0]["stop"]):
        raise ValueError(f"no bin of distances ends at {near}; use one of {sorted(set(of[0]['stop']))}")
    terms = [name for name in NAMES if (of[0]["term"] == name).any()]
    rows = [[*terms[at : at + 2], *["."] * (len(terms) - at < 2), "near"] for at in range(0, len(terms), 2)]
    size = 9.2, 0.6 + 2.3 * len(rows)
    fig, axes = plt.subplot_mosaic(rows, figsize=size, width_ratios=(1, 1, 0.62))
    panels = [axes[name] for name in terms]
    for ax, name in zip(panels, terms, strict=True):
        as_trained, at_slowed = (table[table["term"] == name] for table in of)
        inside = as_trained[as_trained["start"] < length]
        _band(ax, inside, "inside_mean", "inside_std", INSIDE)
        _band(ax, as_trained, "mean", "std", TRAINED)
        _band(ax, at_slowed, "mean", "std", SLOWED)
        ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0.5)
        ax.axvline(length, color=FAINT, linewidth=1.2, linestyle=(0, (2, 2)), zorder=0.5)
        ax.set_title(NAMES[name], fontsize=10.5)
        if name == terms[0]:
            below = ax.get_xaxis_transform()
            ax.text(1.15 * length, 0.03, "trained\nlength", transform=below, fontsize=9, color=INK)
    low, high = zip(*(ax.get_ylim() for ax in panels), strict=True)
    ticks = [
        0.5,
        *(stop for stop in sorted(set(of[0]["stop"])) if stop in (1, 8, length) or stop == 8 * length),
    ]
    for place, ax in enumerate(panels):
        ax.set_ylim(min(low), max(high))
        shapes.powers_of_two(ax, ticks, ["0", *(f"{tick:g}" for tick in ticks[1:])])
        ax.set_xlabel("distance of the key" if place >= len(panels) - 2 else "")
        ax.set_ylabel("part of the score" if place % 2 == 0 else "")
    _nearest(axes["near"], *of, near)
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return fig


def _band(ax: Axes, rows: pd.DataFrame, mean: str, std: str, look: Mapping[str, Any]) -> None:
    """A line of means at the middle of each bin, and a band around it."""
    start, stop = rows["start"].to_numpy(), rows["stop"].to_numpy()
    x = np.sqrt(np.maximum(start, 0.5) * np.maximum(stop - 1, 0.5))
    ax.plot(x, rows[mean], **{"markersize": 4.5, "linewidth": 1.6} | dict(look))
    around = rows[mean] - rows[std], rows[mean] + rows[std]
    ax.fill_between(x, *around, color=look["color"], alpha=0.13, linewidth=0)


def _nearest(ax: Axes, trained: pd.DataFrame, slowed: pd.DataFrame, near: int) -> None:
    """Three bars: attention on the nearest keys."""
    shares = [
        table[(table["term"] == table["term"].iloc[0]) & (table["stop"] <= near)][column].sum()
        for table, column in ((trained, "inside_share"), (trained, "share"), (slowed, "share"))
    ]
    looks = INSIDE, TRAINED, SLOWED
    for place, (share, look) in enumerate(zip(shares, looks, strict=True)):
        hatch = "///" if look is TRAINED else None
        ax.bar(place, share, width=0.62, color=look["color"], edgecolor=GROUND, hatch=hatch)
        ax.text(place, share + 0.01, f"{share:.0%}", ha="center", va="bottom", fontsize=10)
    ax.set_title(f"attention on the\n{near} nearest keys", fontsize=10.5)
    ax.set_ylim(0, 1.08 * max(shares))
    ax.set_xticks(range(3), ["inside", "as\ntrained", "slowed"])
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.tick_params(length=0)

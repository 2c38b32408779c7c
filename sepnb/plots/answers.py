"""What models find in texts longer than those of training: maps of length by depth, accuracy by length and
while a model learns.

The runs are those of a task experiment (`sepnb.experiments.task_grid`): its table, or its rows of the kinds
"depth" and "learning". Lengths are multiples of the trained length L, the columns `times`.
"""

from collections.abc import Mapping, Sequence
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ..records.run_table import RunTable
from . import figures, shapes
from .looks import FAINT, INK

COLOURS = "cividis"
"""Rises in lightness alone as it rises, for every kind of colour vision and in grey."""
LIGHT_FROM = 0.55
"""From this value on a cell is light enough for dark words."""
ABOVE_CHANCE = 0.03
"""A cell within this of the best guess is marked as one."""
TIMES = (1, 2, 4, 8, 16)
ACROSS = 4
"""Maps side by side."""


def cells(rows: pd.DataFrame, method: str, reader: str = "native") -> pd.DataFrame:
    """The share of answers found, a mean over seeds, by depth (the rows) and times L (the columns).

    Args:
        rows: columns method, seed, reader, times, depth and accuracy.
        method, reader: of a way to read; at L all ways are the native one. Without runs the table is empty.
    """
    if rows.empty:
        return pd.DataFrame()
    which = (rows["method"] == method) & ((rows["reader"] == reader) | (rows["times"] <= 1))
    by_seed = rows[which].groupby(["depth", "times", "seed"])["accuracy"].mean()
    return by_seed.groupby(["depth", "times"]).mean().unstack()


def best_guess(table: pd.DataFrame, times: int) -> float:
    """The highest chance level of texts of `times` L, a mean over runs; NaN where there is none."""
    return float(RunTable(table).guess(times).mean())


def maps(rows: pd.DataFrame, panels: Mapping[str, tuple[str, str]], *, chance: Mapping[int, float]) -> Figure:
    """A map of length by depth for each panel, the share found written in every cell, in per cent.

    The start of the text is above. A cell that is no better than the best guess is hatched, and the bar of
    colours has a line there.

    Args:
        rows: as of `cells`.
        panels: title to method and reader. One that was not run says so.
        chance: the best guess by times L.
    """
    down = -(-len(panels) // ACROSS)
    fig, axes = plt.subplots(down, ACROSS, figsize=(8.6, 0.4 + 2.15 * down), squeeze=False)
    image = None
    for place, (ax, title) in enumerate(zip(axes.flat, panels, strict=False)):
        found = cells(rows, *panels[title])
        ax.set_title(fill(title, 20), fontsize=9.5)
        if found.empty or found.shape[1] < 2:
            figures.not_run(ax)
            continue
        image = _map(ax, found, chance)
        ax.set_xlabel("length / L" if place >= len(panels) - ACROSS else "")
        ax.set_ylabel("depth" if place % ACROSS == 0 else "")
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    if image is not None:
        bar = fig.colorbar(image, ax=axes, shrink=0.8, aspect=30, pad=0.01)
        bar.outline.set_visible(False)
        bar.set_ticks([0, 0.5, 1], labels=["0 %", "50 %", "100 %"])
        level = max(chance.values())
        bar.ax.axhline(level, color="white", linewidth=2)
        bar.ax.text(1.3, level, "guess", transform=bar.ax.get_yaxis_transform(), va="center", fontsize=9)
    return fig


def _map(ax: Axes, found: pd.DataFrame, chance: Mapping[int, float]):
    values = found.to_numpy()
    image = shapes.heat_map(ax, values, cmap=colormaps[COLOURS], vmin=0, vmax=1, aspect="auto")
    words = [["" if np.isnan(value) else f"{100 * value:.0f}" for value in line] for line in values]
    shapes.write_cells(ax, words, white=values < LIGHT_FROM, fontsize=8.5)
    for column, times in enumerate(found.columns):
        for row in np.flatnonzero(values[:, column] <= chance.get(times, np.nan) + ABOVE_CHANCE):
            look = {"hatch": "////", "fill": False, "edgecolor": FAINT, "linewidth": 0, "zorder": 1.5}
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))
    ax.set_xticks(range(found.shape[1]), [f"{times:g}" for times in found.columns])
    ax.set_yticks(range(found.shape[0]), [f"{depth:.0%}" for depth in found.index])
    ax.tick_params(length=0, labelsize=8.5)
    return image


def by_length(
    ax: Axes,
    table: pd.DataFrame,
    lines: Sequence[str],
    looks: Mapping[str, Mapping[str, object]] = {},
    times: Sequence[int] = TIMES,
) -> None:
    """Accuracy over the length of the text, a thin line for each seed and a thick one for their mean, named
    at its end; the best guess is dotted. Without runs the axes say so.

    Args:
        lines: a method, as it was trained, or `method:reading`.
        looks: how a line differs from the others of its method.
        times: the lengths, in trained lengths.
    """
    of = RunTable(table)
    runs = {name: _lengths(of, *name.partition(":")[::2], times) for name in lines}
    made = {name: found for name, found in runs.items() if len(found)}
    if not made:
        figures.not_run(ax)
        return
    for name, found in made.items():
        look = figures.METHODS[name.partition(":")[0]].line(**looks.get(name, {}))
        for _, seed in found.iterrows():
            ax.plot(times, seed, color=look["color"], linewidth=0.7, alpha=0.45, label="_")
        ax.plot(times, found.mean(), **look)
    guess = [best_guess(of.made, k) for k in times]
    ax.plot(times, guess, color=FAINT, linestyle=":", label="_")
    ax.text(1, guess[0] + 0.015, "best guess", fontsize=9, color=INK)
    ax.set(ylim=(0, 1.03), xlabel="length of the text / L", ylabel="answers found")
    shapes.powers_of_two(ax, times)
    figures.label_lines(ax, fontsize=8.5)


def _lengths(of: RunTable, method: str, reader: str, times: Sequence[int]) -> pd.DataFrame:
    """Accuracy `[seeds, lengths]` of a way to read, by default and at L the native; empty without runs."""
    ways = {k: reader if reader and k > 1 else "native" for k in times}
    found = {k: of.values(method, f"accuracy/{way}/{k}x") for k, way in ways.items()}
    return pd.DataFrame(found).dropna(how="all") if len(found[times[-1]]) else pd.DataFrame()


def learning(ax: Axes, rows: pd.DataFrame, methods: Sequence[str]) -> None:
    """The share of answers found while a model is trained, on held-out texts as long as those that it is
    trained on then: a thin line for each seed and a thick one for their mean. Without runs the axes say so.

    Args:
        rows: columns method, seed, step, length and accuracy, of the kind "learning".
    """
    made = [] if rows.empty else [name for name in methods if (rows["method"] == name).any()]
    if not made:
        figures.not_run(ax)
        return
    for name in made:
        look = figures.METHODS[name].line(marker="")
        seeds = rows[rows["method"] == name].pivot(index="step", columns="seed", values="accuracy")
        ax.plot(seeds, color=look["color"], linewidth=0.7, alpha=0.4, label="_")
        ax.plot(seeds.mean(axis=1), **look)
    if len(first := rows[rows["length"] < rows["length"].max()]):
        ax.axvline(first["step"].max(), color=FAINT, linewidth=1, zorder=0.5)
        at = {"xytext": (4, 0), "textcoords": "offset points"}
        ax.annotate("longer texts", (first["step"].max(), 0.02), fontsize=9, color=INK, **at)
    ax.set(ylim=(0, 1.03), xlim=(0, rows["step"].max()), xlabel="step of training", ylabel="answers found")
    figures.label_lines(ax, fontsize=8.5)

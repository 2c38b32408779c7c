"""Two maps of length by depth side by side, each of a method that the reader chooses: lists and tables of the
page itself.

A list is one of the browser's own, so that keys and screen readers know it; a script of a few lines fills
the tables, from numbers that the page holds. Without scripts they show the first two choices.
"""

import json
from collections.abc import Mapping
from html import escape

import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex

from .answers import ABOVE_CHANCE, COLOURS, LIGHT_FROM
from .looks import GROUND, INK
from .moving import display_framed

SCRIPT = """
(() => {
  const box = document.getElementById("NAME");
  const all = JSON.parse(box.querySelector("script[type='application/json']").textContent);
  const fill = side => {
    const list = side.querySelector("select"), found = all.values[list.value];
    side.querySelectorAll("td").forEach((cell, at) => {
      const value = found[at];
      cell.textContent = value === null ? "\\u2013" : value;
      cell.style.backgroundColor = value === null ? "transparent" : all.colours[value];
      cell.style.color = value === null ? "inherit" : value < all.light ? all.ground : all.ink;
      cell.classList.toggle("sepnb-guess", value !== null && value <= all.guess[at]);
    });
    side.querySelector("output").textContent = list.selectedOptions[0].textContent;
  };
  for (const side of box.querySelectorAll(".sepnb-side")) {
    side.addEventListener("change", () => fill(side));
    fill(side);
  }
})();
"""

SAYS = (
    "Answers found (%) by the length of the text, in trained lengths L, and by their depth in it. Hatched: "
    "no better than the best guess."
)


def show(
    found: Mapping[str, Mapping[str, pd.DataFrame]],
    *,
    chance: Mapping[int, float],
    name: str,
    alt: str,
    instead: str,
    chosen: tuple[str, str] | None = None,
) -> None:
    """Display two lists of methods and a table under each; nothing where nothing was run.

    Args:
        found: by method and by way to read, tables as `answers.cells` gives them, of equal depths and
            lengths; an empty one is left out.
        chance: the best guess by times L.
        name: of the element on the page, unique there.
        alt: what it shows, for readers who do not see it.
        instead: what shows the same without scripts, such as "the figure above".
        chosen: what is shown first, each "method: way to read"; by default, or where one was not run, the
            first and the last.
    """
    made = {
        method: {reader: table for reader, table in readers.items() if not table.empty}
        for method, readers in found.items()
    }
    made = {method: readers for method, readers in made.items() if readers}
    if not made:
        return
    first = next(iter(next(iter(made.values())).values()))
    values = {
        f"{method}: {reader}": _per_cent(table.reindex(index=first.index, columns=first.columns))
        for method, readers in made.items()
        for reader, table in readers.items()
    }
    guess = [int(100 * (chance[times] + ABOVE_CHANCE)) for _ in first.index for times in first.columns]
    data = {
        "values": values,
        "guess": guess,
        "colours": [to_hex(colormaps[COLOURS](step / 100)) for step in range(101)],
        "light": 100 * LIGHT_FROM,
        "ground": GROUND,
        "ink": INK,
    }
    held = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    first_two = [*values][:: max(1, len(values) - 1)][:2]
    if chosen and set(chosen) <= values.keys():
        first_two = chosen
    sides = "".join(
        f'<div class="sepnb-side"><p><label>{word} <select>{_options(made, shown)}</select></label></p>'
        f"{_table(first, values[shown], data, shown)}</div>"
        for word, shown in zip(("Compare", "with"), first_two, strict=False)
    )
    display_framed(
        f'<div id="{name}" class="sepnb-chooser">{sides}<p>{SAYS}</p>'
        f'<script type="application/json">{held}</script>'
        f"<script>{SCRIPT.replace('NAME', name)}</script></div>",
        alt=alt,
        instead=instead,
    )


def _options(made: Mapping[str, Mapping[str, pd.DataFrame]], chosen: str) -> str:
    """The list of methods, with the ways to read each; `chosen` is selected."""

    def option(name: str) -> str:
        return f"<option{' selected' * (name == chosen)}>{escape(name)}</option>"

    return "".join(
        f'<optgroup label="{escape(method)}">'
        + "".join(option(f"{method}: {reader}") for reader in readers)
        + "</optgroup>"
        for method, readers in made.items()
    )


def _per_cent(table: pd.DataFrame) -> list[int | None]:
    """The cells of a table in whole per cent, row after row."""
    return [None if pd.isna(value) else round(100 * value) for value in table.to_numpy().ravel()]


def _table(like: pd.DataFrame, values: list[int | None], data: Mapping, chosen: str) -> str:
    """The table of a first choice; `like` has its depths and lengths."""
    head = "".join(f'<th scope="col">{times:g} L</th>' for times in like.columns)
    lines, at = [], 0
    for depth in like.index:
        line = f'<th scope="row">{depth:.0%}</th>'
        for _ in like.columns:
            line += _cell(values[at], data["guess"][at], data)
            at += 1
        lines.append(f"<tr>{line}</tr>")
    return (
        '<div class="sepnb-table"><table class="table"><caption>'
        f'<output aria-live="polite">{escape(chosen)}</output></caption>'
        f'<thead><tr><th scope="col">depth</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(value: int | None, guess: int, data: Mapping) -> str:
    if value is None:
        return "<td>\N{EN DASH}</td>"
    ink = data["ground"] if value < data["light"] else data["ink"]
    mark = ' class="sepnb-guess"' if value <= guess else ""
    return f'<td{mark} style="background-color:{data["colours"][value]};color:{ink}">{value}</td>'

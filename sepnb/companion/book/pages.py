"""What the book's extension puts on its pages, as MyST text: the table of records, and what every encoding
is, costs and can."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd

from sepnb import paths
from sepnb.companion.book import once
from sepnb.records.markup import code, said, table

PUBLISHED = ("gpu", "laptop")  # smoke records are made afresh by every test session and never published


def provenance() -> str:
    """What is published, missing and stale per experiment, then every record in a fold.

    All published profiles are shown, whatever the profile of the build.
    """
    from sepnb import experiments  # brings torch, which no other page needs

    summary, folds, none = [], [], []
    for experiment in map(experiments.get, experiments.names()):
        for profile in PUBLISHED:
            runs = once.frame(experiment.name, profile)
            records = runs.attrs["records"]
            if not records and profile != "laptop":
                none.append(f"`{experiment.name}`")
                continue
            count, facts = Counter(runs["status"]), [record.provenance for record in records]
            summary.append(
                (
                    *(f"`{experiment.name}`", profile),
                    *(count["ok"] + count["stale"], count["not run"], count["stale"]),
                    *(_list(said(fact[name]) for fact in facts) for name in ("device_name", "torch")),
                    *(_list(map(_commit, facts)), _list(map(_day, facts))),
                )
            )
            if records:
                folds += _fold(f"{experiment.title}, profile {profile}", records)
    heads = ("experiment", "profile", "published", "not run", "stale", "device", "torch", "commit", "made")
    missing = f"No record of profile gpu is published of {', '.join(none)}." if none else ""
    if len(none) == len(experiments.names()):
        missing = "No record of profile gpu is published."
    return "\n".join([*table(heads, summary), missing, "", *folds])


def _fold(title: str, records: Iterable) -> list[str]:
    """In HTML, because to parse thousands of rows as MyST takes longer than the rest of the page. Each cell
    is on one line, so that no record can end the HTML."""
    rows = []
    for record in sorted(records, key=lambda record: record.key):
        fact = record.provenance
        place = f"results/{record.profile}/{record.experiment}/{record.key}.json"
        state = f"stale: {record.stale}" if record.stale else "published"
        commit = (fact.get("commit") or "unknown")[:9]
        cells = place, fact["seed"], state, commit, fact["started"][:10], f"{fact['cpu_s']:.0f} s"
        rows.append([" ".join(str(cell).split()) for cell in cells])
    heads = ("record", "seed", "state", "commit", "made", "CPU time")
    table = pd.DataFrame(rows, columns=heads).to_html(index=False, border=0, justify="left", classes="table")
    lines = ['<div class="pst-scrollable-table-container">', *table.splitlines(), "</div>"]
    return [f"````{{dropdown}} {title}: every record", "```{raw} html", *lines, "```", "````", ""]


def reproduction() -> str:
    """A table with a row for each experiment or chapter by which claims are judged first: the command that
    repeats all that they need, its declared and its measured time, and the size of its records on disk."""
    from sepnb import claims, experiments

    families: dict[str, list] = {}
    for claim in claims.CLAIMS:
        families.setdefault(claim.experiment, []).append(claim)
    rows = []
    for first, group in families.items():
        needs = dict.fromkeys(need.partition("/")[2] for claim in group for need in claim.needs)
        grids = [experiments.get(name) for name in needs if name in experiments.names()]
        tables = [once.frame(one.name, "laptop") for one in grids]
        made, runs = [table.attrs["records"] for table in tables], [*map(len, tables)]
        declared = sum(count * one.seconds("laptop") for count, one in zip(runs, grids, strict=True))
        measured = sum(record.provenance["cpu_s"] for records in made for record in records)
        size = sum(map(_size, (record for records in made for record in records)))
        title = next(
            (one.title for one in grids if first == f"experiment/{one.name}"), f"chapter `{first[8:]}`"
        )
        data = dict.fromkeys(name for one in grids for name in one.data_sets("laptop"))
        rows.append(
            (
                *(title, len(group), code(f"sepnb run {' '.join(needs)} --store build/again")),
                *(_list(data), f"{sum(map(len, made))} of {sum(runs)}" if grids else "live"),
                *((_hours(declared), _hours(measured) if measured else "not run") if grids else ("", "")),
                f"{size / 2**20:.1f} MiB" if size else "",
            )
        )
    heads = ("judged on", "claims", "command", "data", "runs published", "declared", "measured", "records")
    return "\n".join(table(heads, rows, right=(*heads[1:2], *heads[4:])))


def _size(record: Any) -> int:
    return (paths.results() / record.profile / record.experiment / f"{record.key}.json").stat().st_size


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h"


def _commit(fact: dict) -> str:
    return code(fact["commit"][:9]) if fact.get("commit") else "unknown"


def _day(fact: dict) -> str:
    return said(fact["started"][:10])


def _list(values: Iterable) -> str:
    return ", ".join(dict.fromkeys(map(str, values))) or "none"


_WORDS = {True: "yes", False: "no"}
_SHOWN: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("sites", "depends_on", "kernel"), str),
    **dict.fromkeys(("learned", "dimensions", "slows", "cache"), _WORDS.__getitem__),
    **dict.fromkeys(("parameters", "products", "elementwise"), "{:,}".format),
    "memory": lambda held: f"{held / 1024:,.0f}",
    "growth": "{:g}".format,
}
_COSTS = ("parameters", "products", "elementwise", "memory", "growth")


def inventory() -> str:
    """Two tables of every encoding of the registry, what it is and what it costs, measured now."""
    from sepnb.analysis.inventory import COLUMNS, inventory
    from sepnb.models.fast.pieces import AT_ONCE

    size = {"length": 32, "width": 32, "n_heads": 4, "n_layers": 2}
    measured = inventory(**size).to_dict("records")
    headings = COLUMNS | {"memory": "more KiB at the peak"}

    def columns(*names: str) -> list[str]:
        rows = [(f"`{row['encoding']}`", *(_SHOWN[name](row[name]) for name in names)) for row in measured]
        return table(("encoding", *map(headings.__getitem__, names)), rows, right=map(headings.get, _COSTS))

    return "\n".join(
        [
            f"Measured on {size['n_layers']} layers of width {size['width']} with {size['n_heads']} heads, "
            f"in float64, on texts of {size['length']} tokens.",
            "",
            *columns("sites", "depends_on", "learned", "dimensions", "slows", "kernel"),
            f"The peak is that of an evaluation of {4 * size['length']} tokens, and how all of it grows is "
            f"seen at twice as many. From {AT_ONCE:,} scores or biases on, a model evaluates some queries at "
            f"a time. Here that is {size['n_heads'] * (2 * size['length']) ** 2:,}, so that both texts are "
            f"cut, as long ones are.",
            "",
            *columns(*_COSTS, "cache"),
        ]
    )


WINDOW, WIDTH = 64, 16
"""Of the table that the extrapolators continue in chapter 7."""


def properties() -> str:
    """The desirable properties, of encodings and of the slides' extrapolators, measured now."""
    import torch

    from sepnb import encodings
    from sepnb.analysis.properties import PROPERTIES, properties
    from sepnb.encodings import base_of_longest_wave, sinusoidal

    base = base_of_longest_wave(WIDTH, 2 * WINDOW)
    found = properties(sinusoidal(torch.arange(WINDOW), WIDTH, base=base, dtype=torch.float64))
    tables = []
    for kind in ("encoding", "extrapolator"):
        rows = [
            (f"`{row['name']}`", row["embedding"], *(_badge(row[quality]) for quality in PROPERTIES))
            for row in found[found["kind"] == kind].to_dict("records")
        ]
        tables += table((kind, "its embedding", *PROPERTIES), rows)
    coded = set(found["name"][found["kind"] == "encoding"])
    without = ", ".join(f"`{name}`" for name in encodings.names() if name not in coded)
    note = f" No embedding of positions or distances to put to the probes: {without}." if without else ""
    return "\n".join(
        [
            *tables,
            f"The window has {WINDOW} positions. What the extrapolators continue is a sinusoid of {WIDTH} "
            f"columns whose slowest wave has {2 * WINDOW} positions.{note}",
            "",
        ]
    )


def _badge(has: bool) -> str:
    return f"[{_WORDS[bool(has)]}]{{.sepnb-badge .sepnb-{'reproduced' if has else 'not-reproduced'}}}"

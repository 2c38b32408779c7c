"""What the book's extension puts on its pages, as text: a chapter's number, the table of records, and what
every encoding is, costs and can."""

import re
from collections import Counter
from collections.abc import Iterable
from math import isnan

import pandas as pd

from sepnb.companion import record_numbers
from sepnb.records import numbers
from sepnb.records.markup import code, said
from sepnb.records.markup import row as _row

_NUMBER = re.compile(r"(?P<chapter>\d[\w-]*)/(?P<key>\w+)(?::(?P<format>.+))?")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
PUBLISHED = (
    "gpu",
    "laptop",
)  # smoke records are made afresh by every test session and never published


def number(text: str, profile: str) -> str:
    """The value that `chapter/key:format` names, or a number of records (see `record_numbers`), formatted
    (without a format: `g` for a float).

    Raises:
        ValueError: what is wrong with the name, the chapter's file, the key or the format.
    """
    parts = _NUMBER.fullmatch(text.strip())
    if parts is None and record_numbers.NAME.fullmatch(text.strip()):
        return _typeset(record_numbers.text(text, profile))
    if parts is None:
        raise ValueError(
            f"{text!r} is not a number's name: write chapter/key:format or experiment/method/metric:format"
        )
    chapter, key = parts["chapter"], parts["key"]
    have = numbers.load(chapter, profile)
    if key not in have:
        raise ValueError(
            f"{chapter} published no {key!r} at {profile}; it has {', '.join(sorted(have)) or 'none'}"
        )
    value = have[key]
    if value == numbers.NOT_RUN:
        return value
    form = parts["format"] or ("g" if isinstance(value, float) else "")
    try:
        shown = format(value, form)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{text!r}: {value!r} does not take the format {form!r} ({problem})") from None
    return shown if isinstance(value, str) else _typeset(shown)


def _typeset(shown: str) -> str:
    """A formatted number as print has it: a real minus sign, and powers of ten instead of `e-15`."""

    def power(found: re.Match) -> str:
        sign = "\N{SUPERSCRIPT MINUS}" if found[1] == "-" else ""
        return "\N{MULTIPLICATION SIGN}10" + sign + found[2].translate(_RAISED)

    shown = re.sub(r"e([+-])0*(\d+)", power, shown)
    return "\N{MINUS SIGN}" + shown[1:] if shown.startswith("-") else shown


def provenance(profile: str = "laptop") -> str:
    """MyST text: what is published, missing and stale per experiment, then every record in a fold.

    All published profiles are shown, whatever the profile of the build.
    """
    from sepnb import experiments  # brings torch, which no other page needs

    summary = [
        _row(
            "experiment",
            "profile",
            "published",
            "not run",
            "stale",
            "device",
            "torch",
            "commit",
            "made",
        )
    ]
    summary.append(_row(*["---"] * 9))
    folds: list[str] = []
    for name in experiments.names():
        experiment = experiments.get(name)
        for size in PUBLISHED:
            table = experiment.table(size)
            records = table.attrs["records"]
            status = Counter(table["status"])
            facts = [record.provenance for record in records]
            summary.append(
                _row(
                    f"`{name}`",
                    size,
                    status["ok"] + status["stale"],
                    status["not run"],
                    status["stale"],
                    _list(said(fact["device_name"]) for fact in facts),
                    _list(said(fact["torch"]) for fact in facts),
                    _list(_commit(fact) for fact in facts),
                    _list(said(fact["started"][:10]) for fact in facts),
                )
            )
            if records:
                folds += _fold(f"{experiment.title}, profile {size}", records)
    return "\n".join([*summary, "", *folds])


WINDOW, WIDTH = 64, 16
"""Of the table that the extrapolators continue on the page of encodings."""
_WORDS = {True: "yes", False: "no"}


def inventory() -> str:
    """MyST text: two tables of every encoding of the registry, what it is and what it costs, measured now."""
    from sepnb.analysis.inventory import COLUMNS, inventory
    from sepnb.models.pieces import AT_ONCE

    size = {"length": 32, "width": 32, "n_heads": 4, "n_layers": 2}
    rows = inventory(**size).to_dict("records")
    shown = {
        "sites": str,
        "hears": str,
        "learned": _WORDS.__getitem__,
        "dimensions": _WORDS.__getitem__,
        "cache": _WORDS.__getitem__,
        "kernel": str,
        "parameters": "{:,}".format,
        "products": "{:,}".format,
        "elementwise": "{:,}".format,
        "memory": lambda held: f"{held / 1024:,.0f}",
        "growth": "{:g}".format,
    }
    headings = COLUMNS | {"memory": "more KiB at the peak"}

    def table(*columns: str) -> list[str]:
        head = [_row("encoding", *(headings[column] for column in columns))]
        head.append(_row("---", *["---:" if column in _COSTS else "---" for column in columns]))
        return [
            *head,
            *(_row(f"`{row['encoding']}`", *(shown[c](row[c]) for c in columns)) for row in rows),
            "",
        ]

    return "\n".join(
        [
            f"Measured on {size['n_layers']} layers of width {size['width']} with {size['n_heads']} heads, "
            f"in float64, on texts of {size['length']} tokens.",
            "",
            *table("sites", "hears", "learned", "dimensions", "kernel"),
            f"The peak is that of an evaluation of {4 * size['length']} tokens, and how all of it grows is "
            f"seen at twice as many. From {AT_ONCE:,} scores or biases on, a model evaluates some queries at "
            f"a time. Here that is {size['n_heads'] * (2 * size['length']) ** 2:,}, so that both texts are "
            f"cut, as long ones are.",
            "",
            *table(*_COSTS, "cache"),
        ]
    )


_COSTS = ("parameters", "products", "elementwise", "memory", "growth")

_TIMED = {
    "eager": "eager",
    "compiled": "compiled",
    "x_transformers": "x-transformers",
    "route": "route",
}


def encoding_speed() -> str:
    """MyST text: the measured speed of every encoding, a table for each length of the published records of
    each profile, and what the rules on a CPU say of them."""
    from sepnb import claims, experiments
    from sepnb.claims import encoding_speed as rules

    experiment, parts = experiments.get("encoding_speed"), []
    for profile in PUBLISHED:
        table = experiment.table(profile)
        ran = table[table["status"] != "not run"]
        if ran.empty:
            continue
        facts = [record.provenance for record in table.attrs["records"]]
        device, torch = (_list(said(fact[name]) for fact in facts) for name in ("device_name", "torch"))
        stale = sum(table["status"] == "stale")
        parts += [
            f"Profile {profile}: {len(ran)} of {len(table)} cells, on {device}, torch {torch}, commit "
            f"{_list(_commit(fact) for fact in facts)}" + (f"; {stale} are stale." if stale else "."),
            "",
        ]
        for length, cells in ran.groupby("length"):
            parts += [f"N = {int(length):,}:", "", *_speeds(cells), ""]
    if not parts:
        parts = ["Not run yet: the records of `sepnb run encoding_speed --profile laptop` are missing.", ""]
    asked = [claim.id for claim in rules.CLAIMS]
    judged = claims.judge(asked, {rules.TABLE: experiment.table("laptop")})
    parts += [_row("claim on a CPU", "rule, written before the records", "verdict"), _row(*["---"] * 3)]
    for name, verdict in judged.items():
        parts.append(_row(f"`{name}`", claims.get(name).rule, f"*{verdict.word}*"))
    return "\n".join([*parts, ""])


def _speeds(cells: pd.DataFrame) -> list[str]:
    """One row a method: the medians over the rounds, of the compiled step with the quartiles."""

    def share(cell: dict, name: str) -> str:
        value = cell.get(name)
        if value is None or isnan(value):
            return "1" if name == "route" else ""
        middle = f"{value:.2f}"
        if name == "compiled":
            return f"{middle} ({cell['compiled_lower']:.2f} to {cell['compiled_upper']:.2f})"
        also = cell.get(f"{name}_compiled")
        return middle if also is None or isnan(also) else f"{middle} / {also:.2f}"

    heads = ("encoding", *_TIMED.values(), "products", "aim")
    lines = [_row(*heads), _row("---", *["---:"] * (len(heads) - 1))]
    for cell in cells.to_dict("records"):
        aim = cell.get("target")
        lines.append(
            _row(
                code(cell["method"]),
                *(share(cell, name) for name in _TIMED),
                f"{cell['products']:.2f}",
                "" if aim is None or isnan(aim) else f"{aim:.2f}",
            )
        )
    return lines


def properties() -> str:
    """MyST text: the desirable properties, of encodings and of the slides' extrapolators, measured now."""
    import torch

    from sepnb import encodings
    from sepnb.analysis.properties import PROPERTIES, properties
    from sepnb.encodings import base_of_longest_wave, sinusoidal

    base = base_of_longest_wave(WIDTH, 2 * WINDOW)
    found = properties(sinusoidal(torch.arange(WINDOW), WIDTH, base=base, dtype=torch.float64))
    tables = []
    for kind in ("encoding", "extrapolator"):
        tables += [_row(kind, "its code", *PROPERTIES), _row(*["---"] * (2 + len(PROPERTIES)))]
        for row in found[found["kind"] == kind].to_dict("records"):
            verdicts = (_badge(row[quality]) for quality in PROPERTIES)
            tables.append(_row(f"`{row['name']}`", row["code"], *verdicts))
        tables.append("")
    coded = set(found["name"][found["kind"] == "encoding"])
    without = ", ".join(f"`{name}`" for name in encodings.names() if name not in coded)
    return "\n".join(
        [
            *tables,
            f"The window has {WINDOW} positions. What the extrapolators continue is a sinusoid of {WIDTH} "
            f"columns whose slowest wave has {2 * WINDOW} positions."
            + (f" No code of positions or distances to put to the probes: {without}." if without else ""),
            "",
        ]
    )


def _badge(has: bool) -> str:
    return f"[{_WORDS[bool(has)]}]{{.sepnb-badge .sepnb-{'reproduced' if has else 'not-reproduced'}}}"


def _fold(title: str, records: Iterable) -> list[str]:
    lines = [
        f"````{{dropdown}} {title}: every record",
        "",
        _row("record", "seed", "state", "commit", "made", "CPU time"),
    ]
    lines.append(_row(*["---"] * 6))
    for record in sorted(records, key=lambda record: record.key):
        fact = record.provenance
        state = f"stale: {said(record.stale)}" if record.stale else "published"
        place = code(f"results/{record.profile}/{record.experiment}/{record.key}.json")
        lines.append(
            _row(
                place,
                said(fact["seed"]),
                state,
                _commit(fact),
                said(fact["started"][:10]),
                f"{fact['cpu_s']:.0f} s",
            )
        )
    return [*lines, "````", ""]


def _commit(fact: dict) -> str:
    return code(fact["commit"][:9]) if fact.get("commit") else "unknown"


def _list(values: Iterable) -> str:
    return ", ".join(dict.fromkeys(str(value) for value in values)) or "none"

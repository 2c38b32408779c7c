"""How far a number may move: chapters recomputed with other thread counts and narrower instructions.

A tolerance is not an opinion. Narrower instructions stand for another processor, and ten times the widest
spread is allowed, with a floor for float32 rounding. The spread over seeds is stored beside it but never
widens it: another seed is another experiment.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sepnb.companion.check import regression
from sepnb.records.numbers import Number, write_json

FACTOR = 10.0
FLOOR_RTOL = 1e-6  # eight units in the last place of float32
FLOOR_ATOL = 1e-7  # float32 rounding of quantities of order one
ZERO = 1e-12  # what is below this under every variant is zero in float64, and has to stay so
# Measured time and memory cannot be pinned; a chapter says so by the name.
UNPINNED = ("_seconds", "_s", "_ms", "_mb")
NARROW = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
VARIANTS: Mapping[str, dict[str, Any]] = {
    "1 thread": {"threads": 1},
    "2 threads": {"threads": 2},
    "1 thread, AVX2 only": {"threads": 1, "environment": NARROW},
}
SEEDS = (0, 1, 2)


def measure(
    work: Path, *, chapters: Sequence[str] = (), profile: str = "smoke", say: Callable[[str], None] = print
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Number]]]:
    """Recompute chapters, all where none is named, under `VARIANTS` and `SEEDS`: the tolerances that follow,
    chapter to metric to entry, and the numbers of the first variant."""

    def numbers(what: str, **options: Any) -> dict[str, dict[str, Number]]:
        say(f"recomputing with {what}")
        place = work / what.replace(" ", "-").replace(",", "")
        return regression.recompute(place, chapters=chapters, profile=profile, **options)

    first, *others = VARIANTS
    base = numbers(first, **VARIANTS[first])
    variants, seeds = {first: base}, {SEEDS[0]: base}
    for seed in SEEDS[1:]:  # before the other variants: a check that holds for one seed only ends it early
        seeds[seed] = numbers(f"seed {seed}", seed=seed, records=work / first.replace(" ", "-"))
    for name in others:
        variants[name] = numbers(name, **VARIANTS[name])
    return tolerances_from(variants, seeds), base


def tolerances_from(
    variants: Mapping[str, Mapping[str, Mapping[str, Number]]],
    seeds: Mapping[int, Mapping[str, Mapping[str, Number]]],
) -> dict[str, dict[str, Any]]:
    """Tolerances from numbers that should be equal (`variants`) and numbers that need not be (`seeds`).

    Raises:
        ValueError: a whole number or a text differs between variants, so that nothing can pin it; or a metric
            is published under some of them only.
    """
    base = next(iter(variants.values()))
    for name, numbers in [*variants.items(), *seeds.items()]:
        for chapter in base.keys() | numbers.keys():
            if odd := base.get(chapter, {}).keys() ^ numbers.get(chapter, {}).keys():
                raise ValueError(
                    f"{chapter} publishes {', '.join(sorted(odd))} only sometimes (not with {name})"
                )
    how = (
        f"atol is {FACTOR:g} times the widest spread between {', '.join(variants)}, at least {FLOOR_ATOL:g} "
        f"({ZERO:g} for what is zero in float64); "
        f"rtol is {FLOOR_RTOL:g}, for float32 rounding; torch {version('torch')}, numpy {version('numpy')}"
    )
    threads = sorted({VARIANTS[name]["threads"] for name in variants if name in VARIANTS})
    found: dict[str, dict[str, Any]] = {}
    for chapter, metrics in base.items():
        found[chapter] = {}
        for key, value in metrics.items():
            same = [numbers[chapter][key] for numbers in variants.values()]
            if key.endswith(UNPINNED):
                found[chapter][key] = {"unpinned": "a measured time or memory differs from run to run"}
            elif isinstance(value, float):
                spread, other = float(max(same) - min(same)), [one[chapter][key] for one in seeds.values()]
                measured = {"how": how, "spread": spread, "variants": list(variants)}
                measured |= {"seeds": list(seeds), "spread_over_seeds": float(max(other) - min(other))}
                measured["threads"] = threads
                floor = ZERO if all(abs(number) < ZERO for number in same) else FLOOR_ATOL
                atol = max(floor, float(f"{FACTOR * spread:.2g}"))
                found[chapter][key] = {"rtol": FLOOR_RTOL, "atol": atol, "measured": measured}
            elif any(other != value for other in same):
                raise ValueError(f"{chapter}/{key} is {same} under {list(variants)}: nothing can pin it")
    return found


def loose(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Metrics whose tolerance is wider than their spread over seeds, where the seed makes a difference: it
    would hardly notice a change."""
    wide = []
    for chapter, metrics in found.items():
        for key, entry in metrics.items():
            between = entry.get("measured", {}).get("spread_over_seeds", math.inf)
            if 0 < between < entry.get("atol", 0.0) and entry["atol"] > FLOOR_ATOL:
                wide.append(f"{chapter}/{key}: atol {entry['atol']:g}, spread over seeds {between:.3g}")
    return wide


def write_tolerances(found: Mapping[str, Mapping[str, Any]], profile: str, known: Iterable[str]) -> Path:
    """Store measured tolerances beside the references. Those of the other `known` chapters stay."""
    target = regression.folder(profile) / "tolerances.json"
    every = regression.tolerances(profile) | dict(found)
    write_json(target, {chapter: every[chapter] for chapter in sorted(every.keys() & set(known))})
    return target

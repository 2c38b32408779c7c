"""The names that commands take, from a table beside this file: a misspelt one is answered before torch is
imported. `python -m sepnb.companion.names` writes the table anew; a test holds it against what there is."""

import json
import sys
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from typer.core import TyperCommand

from sepnb import paths
from sepnb.companion.chapters import Chapter, discover, nearest

GROUPS = ("experiments", "chapters")
_TABLE = Path(__file__).with_suffix(".json")
_WRITTEN = Path(__file__).resolve().parents[1] / "experiments"


class Asked(NamedTuple):
    """What the names of `sepnb run` mean: names of experiments, which of these were written out, chapters."""

    experiments: list[str]
    written: set[str]
    chapters: list[Chapter]


@cache
def _table() -> dict[str, Any]:
    return json.loads(_TABLE.read_text(encoding="utf-8"))


def experiments() -> list[str]:
    """In the order in which they should run; with those that somebody registered in this process."""
    loaded = sys.modules.get("sepnb.experiments")
    return loaded.names() if loaded else list(_table()["experiments"])


def sort_out(names: Sequence[str], profile: str, methods: Sequence[str] | None = None) -> Asked:
    """The experiments and chapters that `names` mean: the words `experiments` and `chapters` all of them, and
    a pattern such as `seqpe_*` those that it fits.

    Raises:
        ValueError: a name or pattern that fits nothing, or a method that none of the experiments has, with
            the nearest.
    """
    known, every = {chapter.name: chapter for chapter in discover()}, experiments()
    groups = {"experiments": every, "chapters": [*known]}
    found: dict[str, None] = {}
    for name in names:
        if name in groups:
            fits = groups[name]
        elif "*" in name:
            fits = [one for one in (*every, *known) if fnmatchcase(one, name)]
        else:
            fits = [name] if name in known or name in every or _is_new(name) else []
        if not fits and name not in groups:
            raise unknown("chapter and no experiment", name, [*GROUPS, *every, *known])
        found |= dict.fromkeys(fits)
    asked = [name for name in found if name not in known]
    grids = [_table()["experiments"].get(name) for name in asked]
    if methods and grids and all(grids):
        which = "smoke" if profile == "smoke" else "methods"
        there = dict.fromkeys(chain.from_iterable(grid[which] for grid in grids))
        for method in methods:
            if method not in there and not _is_new(method):
                raise unknown(f"method of {', '.join(asked)} at {profile}", method, [*there])
    return Asked(asked, set(names), [known[name] for name in found if name in known])


def load(asked: Asked, profile: str) -> list[Any]:
    """The experiments themselves; of a group or pattern without those that need a package of their own at
    this profile, where it is not installed."""
    if not asked.experiments:
        return []
    from sepnb import experiments

    found = [(name, experiments.get(name)) for name in asked.experiments]
    return [one for name, one in found if name in asked.written or one.runs_here(profile)]


def named(parts: Sequence[str] | None, names: Sequence[str]) -> list[str]:
    """The names that hold one of the parts, all where none is asked for; ValueError where one holds none."""
    for part in parts or ():
        if not any(part in name for name in names):
            raise ValueError(f"no name holds {part!r}; {nearest(part, names)}")
    return [name for name in names if not parts or any(part in name for part in parts)]


def one_of(what: str, names: Iterable[str], kind: str) -> None:
    """ValueError where one of the names is no `kind` of the table: `data sets` or `variants`."""
    for name in names:
        if name not in _table()[kind]:
            raise unknown(what, name, _table()[kind])


def unknown(what: str, name: str, names: Sequence[str]) -> ValueError:
    """The error for a name that nothing has."""
    return ValueError(f"{name!r} is no {what}; {nearest(name, names)}")


def _is_new(name: str) -> bool:
    """Whether the sources of the experiments write this name, which the table does not have yet."""
    grids = _table()["experiments"]
    if not name or name in grids or any(name in grid["methods"] for grid in grids.values()):
        return False
    return any(f'"{name}"' in file.read_text(encoding="utf-8") for file in _WRITTEN.glob("*.py"))


class Lists(TyperCommand):
    """A command whose help ends with the names that it takes."""

    lists: Sequence[str] = ()

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        for kind in self.lists:
            names = {"experiments": experiments, "chapters": lambda: [one.name for one in discover()]}
            with formatter.section(kind.capitalize()):
                formatter.write_text(", ".join(names[kind]() if kind in names else _table()[kind]))


def listing(*kinds: str) -> type[Lists]:
    """The class of a command that takes names of these kinds."""
    return type("Lists", (Lists,), {"lists": kinds})


def made() -> str:
    """The table as it has to be."""
    from sepnb import experiments
    from sepnb.data import registry
    from sepnb.experiments import speed

    def methods(name: str, profile: str) -> list[str]:
        return list(dict.fromkeys(config.method for config in experiments.get(name).grid(profile)))

    grids = ",\n".join(
        f'  "{name}": {json.dumps({"methods": methods(name, "laptop"), "smoke": methods(name, "smoke")})}'
        for name in experiments.names()
    )
    others = {"data sets": registry.names(), "variants": list(speed.VARIANTS)}
    return f'{{\n "experiments": {{\n{grids}\n }},\n{json.dumps(others)[1:-1]}\n}}\n'


if __name__ == "__main__":
    paths.write_atomically(_TABLE, made())

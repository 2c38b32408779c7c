"""The names that commands take, computed from what there is when they are asked for."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from typer.core import TyperCommand

from sepnb.companion.run.chapters import Chapter, discover, nearest

GROUPS = ("experiments", "chapters")


class Asked(NamedTuple):
    """What the names of `sepnb run` mean: names of experiments, which of these were written out, chapters."""

    experiments: list[str]
    written: set[str]
    chapters: list[Chapter]


def every(kind: str) -> list[str]:
    """The names of all `experiments`, in the order in which they should run, `chapters` or `data sets`."""
    if kind == "chapters":
        return [chapter.name for chapter in discover()]
    if kind == "experiments":
        from sepnb import experiments

        return experiments.names()
    from sepnb.data import registry

    return registry.names()


def sort_out(names: Sequence[str]) -> Asked:
    """The experiments and chapters that `names` mean: the words `experiments` and `chapters` all of them, and
    a pattern such as `seqpe_*` those that it fits.

    Raises:
        ValueError: a name or pattern that fits nothing, with the nearest.
    """
    known = {chapter.name: chapter for chapter in discover()}
    groups = {"chapters": [*known]}
    if not set(names) <= {"chapters", *known}:
        groups["experiments"] = every("experiments")
    there = [name for group in groups.values() for name in group]
    found: dict[str, None] = {}
    for name in names:
        fits = groups.get(name, [one for one in there if fnmatchcase(one, name)])
        if not fits and name not in groups:
            raise ValueError(f"{name!r} is no chapter and no experiment; {nearest(name, [*GROUPS, *there])}")
        found |= dict.fromkeys(fits)
    asked = [name for name in found if name not in known]
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
    """The names that contain one of the parts, or all without parts; ValueError for a part that none has."""
    for part in parts or ():
        if not any(part in name for name in names):
            raise ValueError(f"no name holds {part!r}; {nearest(part, names)}")
    return [name for name in names if not parts or any(part in name for part in parts)]


def listing(*kinds: str) -> type[TyperCommand]:
    """The class of a command whose help ends with the names of these kinds, which it takes."""

    class Lists(TyperCommand):
        def format_epilog(self, ctx: Any, formatter: Any) -> None:
            for kind in kinds:
                with formatter.section(kind.capitalize()):
                    formatter.write_text(", ".join(every(kind)))

    return Lists

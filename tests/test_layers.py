"""The house: lower floors know nothing of higher ones, and no import runs in a circle, lazy ones included."""

import ast
from collections import defaultdict
from itertools import chain
from pathlib import Path

import networkx as nx

from sepnb import paths

FLOORS = (
    {"paths", "validation"},
    {"streams", "data", "records"},
    {"encodings"},
    {"extrapolators"},
    {"models"},
    {"seqpe"},
    {"training"},
    {"evaluation"},
    {"analysis", "plots"},
    {"protocol"},
    {"experiments"},
    {"claims"},
    {"companion"},
    {"cli"},
    {"__main__"},  # the door to it
)
"""From the ground up. A room imports from its own floor's rooms only itself."""
COMPANION = ({"evidence", "run"}, {"check"}, {"book"})
"""The rooms of the companion, from the ground up, by the same rule."""

MOST_LOOSE = 6


def name_of(path: Path) -> str:
    parts = path.relative_to(paths.root()).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted((paths.root() / "sepnb").rglob("*.py"))}


def imported(name: str) -> set[str]:
    """The modules of sepnb that a module imports, anywhere in it; a name in a package is the package."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            found |= {
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names
            }
    return {module for module in found if module in MODULES} - {name}


IMPORTS = {name: imported(name) for name in MODULES}


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_room_stands_on_one_floor() -> None:
    rooms = {room(module) for module in MODULES if module != "sepnb"}
    assert rooms == set(chain(*FLOORS)), "name a new room in FLOORS, and say in the book what it may touch"


def test_no_module_imports_from_a_higher_floor() -> None:
    floor = {name: height for height, rooms in enumerate(FLOORS) for name in rooms}
    upward = defaultdict(set)
    for module, targets in IMPORTS.items():
        for target in targets - {"sepnb"} if module != "sepnb" else ():
            here, there = room(module), room(target)
            if here != there and floor[there] >= floor[here]:
                upward[module].add(target)
    assert not upward, dict(upward)


def test_the_rooms_of_the_companion_stand_on_each_other_alike() -> None:
    floor = {name: height for height, rooms in enumerate(COMPANION) for name in rooms}
    held = {module: module.split(".")[2] for module in MODULES if module.startswith("sepnb.companion.")}
    assert set(held.values()) == set(floor)
    upward = {
        (module, target)
        for module, here in held.items()
        for target in IMPORTS[module] & held.keys()
        if held[target] != here and floor[held[target]] >= floor[here]
    }
    assert not upward


def test_no_import_runs_in_a_circle() -> None:
    graph = nx.DiGraph([(module, target) for module, targets in IMPORTS.items() for target in targets])
    circles = [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]
    assert not circles, circles


def test_few_modules_lie_loose() -> None:
    loose = sorted(path.name for path in (paths.root() / "sepnb").glob("*.py"))
    assert len(loose) <= MOST_LOOSE, loose

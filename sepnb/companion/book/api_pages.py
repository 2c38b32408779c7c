"""The reference: one page for each module, written from the sources before Sphinx looks for pages.

A name that a package exports is described under the package, on the page of the module that defines it; the
other modules of `ROOMS` show all that they define in public. What a line of a list says is the first
paragraph of a docstring. The sources are parsed and not imported. The pages lie in `book/api`, and neither
the book's contents nor the texts that are searched hold them.
"""

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path

from docutils import nodes

from sepnb import paths

ROOMS = ("streams", "data", "records", "encodings", "extrapolators", "models", "seqpe", "training")
ROOMS += ("evaluation", "analysis", "plots", "protocol")
"""Rooms whose modules have pages, from the ground up."""
DOORS_ONLY = ("experiments", "claims")
"""Rooms above them: of these, what the package exports."""
FOLDER = "book/api"
LONGEST_VALUE = 60  # letters of a constant's value that is shown
DIRECTIVES = {
    "function": ("autofunction",),
    "class": ("autoclass", "members"),
    "value": ("autodata",),
    "long value": ("autodata", "no-value"),
}


@dataclass
class Module:
    """A module with a page: its first paragraph; what it shows, by public name one of `DIRECTIVES` and a
    first paragraph; and that of what it exports from other modules."""

    name: str
    says: str
    shown: dict[str, tuple[str, str]] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)

    @property
    def room(self) -> str:
        return self.name.split(".")[1]

    def page(self, back: str = "") -> str:
        """The text of its page, in MyST and, for autodoc, in reStructuredText; `back` is its first line."""
        lines = ["---", "orphan: true", "nosearch: true", "---", f"# {self.name}", "", back, ""]
        lines += ["```{eval-rst}", f".. automodule:: {self.name}"]
        # A module named as what it defines is no target of its own.
        lines += ["   :no-index:", ""] if self.name in self.shown else [""]
        for name, (kind, _) in self.shown.items():
            directive, *options = DIRECTIVES[kind]
            lines += [f".. {directive}:: {name}", *(f"   :{option}:" for option in options), ""]
        lines += ["```", ""]
        lines += [f"- {{py:obj}}`~{name}`: {says}" for name, says in sorted(self.exports.items())]
        return "\n".join([*lines, ""])


def modules() -> dict[str, Module]:
    """The modules that have a page, by name, room by room, a package before what it holds."""
    trees = dict(_sources())
    public = {origin: name for package, tree in trees.items() for origin, name in _exports(package, tree)}
    doors = {origin.rpartition(".")[0] for origin in public}
    found = {}
    for name, tree in trees.items():
        found[name] = module = Module(name, _first(tree))
        for own, kind, says in _definitions(tree):
            shown = public.get(f"{name}.{own}")
            if not shown and (name in doors or module.room in DOORS_ONLY) and own not in _every(tree):
                continue
            module.shown[shown or f"{name}.{own}"] = (kind, says)
    for module in found.values():
        for name, (_, says) in module.shown.items():
            package = found[name.rpartition(".")[0]]
            if package is not module:
                package.exports[name] = says
    return {name: module for name, module in found.items() if module.shown or module.exports}


def index() -> str:
    """The rooms from the ground up with their modules, a line each (MyST)."""
    lines = []
    for room, held in groupby(modules().values(), key=lambda module: module.room):
        lines += [f"## {room}", ""]
        names = {module.name.removeprefix("sepnb."): module for module in held}
        lines += [f"- [`{short}`](api/{one.name}.md): {one.says}" for short, one in names.items()]
        lines += [""]
    return "\n".join(lines)


def write_pages(app, config) -> None:
    """Write the pages that are new or changed, and take away those of modules that are gone; none where the
    book has no list of them, as a translation has not."""
    folder = Path(app.srcdir, FOLDER)
    if config.sepnb_original or not folder.with_name(f"{folder.name}.md").exists():
        return
    back = "{doc}`The package <../api>`, {}"
    wanted = {folder / f"{one.name}.md": one.page(back.replace("{}", one.room)) for one in modules().values()}
    paths.keep_only(folder, "*.md", wanted)
    # Jupyter Book leaves out what the contents do not name; these pages are reached from their own list.
    config.exclude_patterns = [
        pattern for pattern in config.exclude_patterns if not pattern.startswith(f"{FOLDER}/")
    ]


def _sources() -> Iterator[tuple[str, ast.Module]]:
    root = paths.root()
    for room in (*ROOMS, *DOORS_ONLY):
        for path in sorted([*root.glob(f"sepnb/{room}.py"), *root.glob(f"sepnb/{room}/**/*.py")]):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _exports(package: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Where each name that a package exports is defined, and the name that it has there."""
    inner = (node.body if isinstance(node, ast.With) else [node] for node in tree.body)
    for node in chain.from_iterable(inner):
        if isinstance(node, ast.ImportFrom):
            inside = f"{package}.{node.module}" if node.level else node.module
            for alias in node.names:
                if (public := alias.asname or alias.name) in _every(tree):
                    yield f"{inside}.{alias.name}", f"{package}.{public}"


def _every(tree: ast.Module) -> list[str]:
    values = dict(found for node in tree.body for found in _constant(node))
    return ast.literal_eval(values.get("__all__", ast.List([])))


def _definitions(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Name, one of `DIRECTIVES` and first paragraph of what a module defines in public and describes."""
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            found = [(node.name, kind, _first(node))]
        else:
            lengths = {name: len(ast.unparse(value)) for name, value in _constant(node)}
            kinds = {
                name: "long value" if much > LONGEST_VALUE else "value" for name, much in lengths.items()
            }
            found = [(name, kind, _described(after)) for name, kind in kinds.items()]
        yield from (one for one in found if one[2] and not one[0].startswith("_"))


def _constant(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and isinstance(targets[0], ast.Name):
        yield targets[0].id, node.value


def _described(after: ast.stmt | None) -> str:
    value = getattr(after, "value", None) if isinstance(after, ast.Expr) else None
    return _paragraph(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _first(node: ast.Module | ast.FunctionDef | ast.ClassDef) -> str:
    return _paragraph(ast.get_docstring(node) or "")


def _paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


# --- how autodoc shows them ---------------------------------------------------------------------------------


def prepare(app, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """What would be misread: napoleon takes the words before the first colon of a constant's description for
    its type, and lists the fields of a description, which are its parameters, a second time; and formulas of
    a module are set in by four spaces, without a mark."""
    if what in ("data", "attribute"):
        lines[:0] = ["..", ""]  # an empty comment
    elif what == "module":
        starts = [
            at
            for at in range(2, len(lines))
            if lines[at][:1] == " " and not lines[at - 1] and not lines[at - 2].endswith("::")
        ]
        for at in reversed(starts):
            lines[at:at] = ["::", ""]
    elif dataclasses.is_dataclass(obj) or (isinstance(obj, type) and issubclass(obj, tuple)):
        lines[:] = ["Args:" if line.strip() == "Attributes:" else line for line in lines]


def skip_fields(app, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out the fields of a named tuple, which stand among its parameters."""
    return True if type(obj).__name__ == "_tuplegetter" else None


def plain_shapes(app, domain: str, objtype: str, content: nodes.Element) -> None:
    """Set the type of a tensor as it is written, `Float[Tensor, "B N D"]`, and not in pieces."""
    for entry in content.findall(nodes.field):
        name, body = entry.children
        text = body.astext()
        if "jaxtyping." in text and name.astext().split()[0] in ("type", "rtype"):
            text = re.sub(r"~?\b(?:\w+\.)+(?=\w)", "", text)
            text = re.sub(r"'\s*([^']*)'", r'"\1"', text)
            body[:] = [nodes.paragraph("", "", nodes.literal("", text))]


def setup(app) -> None:
    """Write the pages before Jupyter Book decides which there are; read docstrings before napoleon does, and
    types after autodoc has put them there."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("config-inited", write_pages, priority=950)
    app.connect("autodoc-process-docstring", prepare, priority=400)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("object-description-transform", plain_shapes, priority=600)

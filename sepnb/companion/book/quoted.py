"""Where a quoted number leads: to the runs it is a mean of, or to the cell of a chapter that made it.

The page `book/numbers` has a row for every number of records that a page quotes, with what was computed and
the value of each seed. The cells of a chapter are marked with the numbers that they put into `numbers`.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.util.nodes import make_refnode

from sepnb import paths
from sepnb.companion.book import number_role
from sepnb.records import numbers
from sepnb.records.markup import code, said, table

SOURCES = ("notebooks/*.py", "book/*.md")
ROLE = re.compile(r"\{num\}`([^`]+)`")


@cache
def names(root: Path) -> dict[str, dict[str, str]]:
    """By experiment, the numbers of records that pages and chapters quote, without a format, each with the
    first format that it is quoted in."""
    found: dict[str, dict[str, str]] = {}
    for source in (file for pattern in SOURCES for file in sorted(root.glob(pattern))):
        text = re.sub(r"\n(?:# ?)?\s*", " ", source.read_text(encoding="utf-8"))
        for name in ROLE.findall(text):
            if parts := number_role.OF_RECORDS.fullmatch(name.strip()):
                group = found.setdefault(parts["experiment"], {})
                group.setdefault(f"{parts['experiment']}/{parts['asked']}", parts["form"] or "g")
    return dict(sorted(found.items()))


def page(profile: str) -> str:
    """Every quoted number of records (MyST): a section for each experiment."""
    from sepnb import experiments

    lines = []
    for experiment, group in names(paths.root()).items():
        rows = []
        for name, form in sorted(group.items()):
            asked = number_role.asked_of(name, profile)
            shown = said(number_role.number(f"{name}:{form}", profile))
            rows.append((f"[{shown}]{{#{number_role.anchor(name)}}}", *_cells(asked, form.removesuffix("±"))))
        title = experiments.get(experiment).title
        lines += [f"### {title}", "", f"Records: {code(f'results/{profile}/{experiment}/')}.", ""]
        lines += table(
            ("number", "mean over seeds of", "seeds", "value of each seed"), rows, right=("seeds",)
        )
    return "\n".join(lines)


def _cells(asked: number_role.Asked, form: str) -> tuple[str, int, str]:
    """What is averaged, of how many seeds, and each seed's value."""
    metric, method, other, beside = map(code, (asked.metric, asked.method, asked.other, asked.beside))
    if not asked.beside:
        what = f"{metric} of {method}"
    elif metric == other:
        what = f"{metric} of {method} minus {beside}"
    else:
        what = f"{metric} of {method} minus {other} of {beside}"
    values = sorted(asked.values.items())
    each = (f"{seed}: {number_role.typeset(format(float(value), form))}" for seed, value in values)
    return what, len(asked.values), said(", ".join(each))


# --- cells --------------------------------------------------------------------------------------------------


def made_in(sources: list[str], keys: list[str]) -> dict[str, int]:
    """The index of the first cell that writes each key into `numbers`, or else of the one that publishes.

    A key may be composed, `numbers[f"share_{name}"]`, or stand in a dictionary that is added.
    """
    written = [(index, pattern) for index, source in enumerate(sources) for pattern in _written(source)]
    last = max((index for index, source in enumerate(sources) if "publish(" in source), default=None)
    found = {}
    for key in keys:
        index = next((index for index, pattern in written if re.fullmatch(pattern, key)), last)
        if index is not None:
            found[key] = index
    return found


def _written(source: str) -> list[str]:
    """Patterns of the keys that a cell writes into `numbers`."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with a magic
        return []
    keys: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_numbers(node.value):
            keys.append(node.slice)
        elif isinstance(node, ast.AugAssign) and _is_numbers(node.target):
            keys += [one for part in ast.walk(node.value) for one in _keys(part)]
    return [_pattern(key) for key in keys if isinstance(key, ast.Constant | ast.JoinedStr)]


def _is_numbers(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "numbers"


def _keys(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    return [node.key] if isinstance(node, ast.DictComp) else []


def _pattern(key: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(key, ast.Constant):
        return re.escape(str(key.value))
    return "".join(
        re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+" for part in key.values
    )


def mark_cells(app, doctree: nodes.document) -> None:
    """Give the cells of an executed chapter the ids of the numbers that they make."""
    folder, _, chapter = app.env.docname.rpartition("/")
    if folder != "notebooks/executed":
        return
    try:
        keys = [*numbers.load(chapter, app.config.sepnb_profile)]
    except numbers.NumbersError:  # whoever quotes them has said so
        return
    cells = json.loads(Path(app.env.doc2path(app.env.docname)).read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) if cell["cell_type"] == "code" else "" for cell in cells]
    shown = {
        cell["cell_index"]: cell
        for cell in doctree.findall(nodes.container)
        if "cell_index" in cell.attributes
    }
    publishes = max(shown, default=None)
    for key, index in made_in(sources, keys).items():
        home = shown.get(index, shown.get(publishes))
        if home is not None:
            home["ids"].append(number_role.anchor(f"{chapter}/{key}"))


def resolve(app, env, node: addnodes.pending_xref, words: nodes.Node) -> nodes.Node | None:
    """The link of a number that is explained in this book; in a translation `translated.elsewhere` links."""
    if node["reftype"] != "number" or node["reftarget"] not in env.found_docs:
        return None
    return make_refnode(app.builder, node["refdoc"], node["reftarget"], node["anchor"], words)


def setup(app) -> None:
    app.connect("missing-reference", resolve)
    app.connect("doctree-read", mark_cells)

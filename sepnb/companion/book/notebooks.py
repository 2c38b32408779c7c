"""Chapters as notebooks that people take away: one that opens anywhere, and copies whose edits are kept.

`python -m sepnb.companion.book.notebooks write` is `make notebooks`,
with `clean` a part of `make clean`.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from sepnb import paths
from sepnb.companion.run.chapters import Chapter, discover
from sepnb.companion.run.execute import KERNEL

CLONE = "sepnb-book"
_SETUP = """\
# Where the package of this book is missing, as in Colab, it is fetched and installed.
import importlib.util
import subprocess
import sys
from pathlib import Path

if importlib.util.find_spec("sepnb") is None:
    {remedy}
"""
_FETCH = """\
fetch = ["git", "clone", "--quiet", "--depth=1", "--branch={branch}"]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--editable"]
    if not Path("{clone}").exists():
        subprocess.check_call([*fetch, "{url}", "{clone}"])
    subprocess.check_call([*install, "./{clone}[run]"])
    sys.path.insert(0, "{clone}")
    importlib.invalidate_caches()"""
_ASK = """\
remedy = "in a checkout of its book, pip install -e '.[run]'"
    raise ModuleNotFoundError(f"this notebook needs the package sepnb: {{remedy}}")"""


def setup_source(url: str, branch: str) -> str:
    """The first cell: nothing where the package is at hand. Without an address it says what to do."""
    remedy = _FETCH.format(clone=CLONE, branch=branch, url=url) if url else _ASK.format()
    return _SETUP.format(remedy=remedy)


def with_setup(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with that cell before the others; no page shows it, and no build executes it."""
    file = paths.root() / "_config.yml"
    config = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    repository = (config or {}).get("repository", {})
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "setup",
        "metadata": {"tags": ["remove-cell"]},
        "outputs": [],
        "source": setup_source(repository.get("url", ""), repository.get("branch", "main")),
    }
    notebook["cells"] = [cell, *notebook["cells"]]
    return notebook


def _content(notebook: dict[str, Any]) -> str:
    """A digest of what people edit: kinds and sources of the cells."""
    cells = [[cell["cell_type"], "".join(cell["source"])] for cell in notebook["cells"]]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def edited(copy: Path) -> bool:
    """Whether cells of a copy have changed since it was written; True for a file that is not ours."""
    try:
        notebook = json.loads(copy.read_text(encoding="utf-8"))
        return notebook["metadata"]["sepnb"]["content"] != _content(notebook)
    except (ValueError, LookupError, TypeError):
        return True


def write(chapters: Iterable[Chapter], say: Callable[[str], None] = print) -> bool:
    """Write an `.ipynb` copy of each chapter beside it; False where one has edits, which are kept.

    Outputs of cells that are as before stay in an unedited copy.
    """
    import jupytext.combine
    import nbformat

    good = True
    for chapter in chapters:
        copy = chapter.path.with_suffix(".ipynb")
        if copy.exists() and edited(copy):
            good = False
            name = copy.name
            say(
                f"{name} has edits and is left as it is; `jupytext --to py:percent notebooks/{name}` makes "
                "them the chapter (leave out the first cell), deleting the copy gives them up"
            )
            continue
        notebook = nbformat.from_dict(with_setup(jupytext.read(chapter.path, fmt="py:percent")))
        notebook.metadata.setdefault("kernelspec", KERNEL)
        about = {"content": _content(notebook)}
        if copy.exists():
            old = nbformat.read(copy, as_version=4)
            notebook = jupytext.combine.combine_inputs_with_outputs(notebook, old)
        notebook.metadata["sepnb"] = about
        paths.write_atomically(copy, nbformat.writes(notebook))
    return good


def clean(folder: Path, say: Callable[[str], None] = print) -> None:
    """Delete the copies in a folder; those with edits stay, and it says so."""
    for copy in sorted(folder.glob("*.ipynb")):
        if edited(copy):
            say(f"{copy.name} has edits and stays; delete it by hand to give them up")
        else:
            copy.unlink()


if __name__ == "__main__":
    if sys.argv[1:] == ["clean"]:
        clean(paths.root() / "notebooks")
    else:
        sys.exit(0 if write(discover()) else 1)

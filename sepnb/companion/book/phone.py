"""Figures on a phone: where a chapter drew a form for a narrow page, a browser there shows it.

`sepnb.plots.narrow` lays the panels out anew, and an output's metadata carries the drawing. It becomes a file
beside the staged notebooks, named by its content; the picture on the page has a class of that name, and a
page that is written offers both.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

from sepnb import paths
from sepnb.companion.book.dark import both_modes

NARROW = 600  # pixels of a window, at most; as in sepnb.css
CLASS = "sepnb-narrow-"
_IMAGE = re.compile(rf'<img\b[^>]*\bclass="[^"]*{CLASS}([0-9a-f]+)[^>]*>')


def folder() -> Path:
    """Where the drawings for phones lie."""
    return paths.root() / "notebooks" / "executed" / "narrow"


def own(name: str, app) -> Path:
    """Where an edition in another language keeps the drawing of this file name, with its own words."""
    return Path(app.doctreedir, "figures", name)


def narrow(classes: list[str]) -> list[Path]:
    """The drawings for phones of an image with these classes."""
    names = [name.removeprefix(CLASS) for name in classes if name.startswith(CLASS)]
    return [folder() / f"{name}.svg" for name in names]


def take(about: dict[str, Any], held: dict[str, str]) -> str:
    """The class of a figure's image, or nothing; its drawing moves from what is said `about` it to `held`."""
    if not (drawing := about.get("narrow")):
        return ""
    drawing = both_modes(drawing)
    about["narrow"] = name = hashlib.sha256(drawing.encode()).hexdigest()[:20]
    held[name] = drawing
    return f" {CLASS}{name}"


def keep(held: dict[str, str]) -> None:
    """Write the drawings of all chapters, by name; files of others go."""
    drawings = {folder() / f"{name}.svg": drawing for name, drawing in held.items()}
    paths.keep_only(folder(), "*.svg", drawings)


def offer(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Beside each picture that has a narrow form, on the page and among its images, put that form."""
    from sphinx.util.fileutil import copy_asset_file  # `sepnb build` reads this module before it needs Sphinx

    def both(found: re.Match) -> str:
        name = f"{found[1]}.svg"
        file = own(name, app) if own(name, app).exists() else folder() / name
        if not file.exists():
            return found[0]
        images = Path(app.outdir, app.builder.imagedir)
        images.mkdir(parents=True, exist_ok=True)
        copy_asset_file(file, images)
        where = context["pathto"](f"{app.builder.imagedir}/{file.name}", 1)
        return f'<picture><source media="(max-width: {NARROW}px)" srcset="{where}">{found[0]}</picture>'

    if CLASS in (context.get("body") or ""):
        context["body"] = _IMAGE.sub(both, context["body"])


def setup(app) -> None:
    """Pages are changed as they are written."""
    app.connect("html-page-context", offer)

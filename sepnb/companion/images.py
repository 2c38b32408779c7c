"""The words of a figure: from the output that `sepnb.plots.figures.show` left to where MyST-NB reads them.

MyST-NB takes alternative text, caption and name from the metadata of a *cell*; a notebook that runs can write
the metadata of an *output* only. Nothing here imports matplotlib: staging a book must cost nothing.
"""

from collections.abc import Mapping
from typing import Any


def lift(notebook: Mapping[str, Any]) -> None:
    """Move what `show` said about a figure from the output to its cell, where MyST-NB reads it. In place.

    Raises:
        ValueError: an image has no alternative text, or a cell shows more than one named figure.
    """
    for number, cell in enumerate(notebook["cells"], start=1):
        images = [
            out for out in cell.get("outputs", []) if any(m.startswith("image/") for m in out.get("data", {}))
        ]
        abouts = [out["metadata"].get("sepnb") for out in images]
        if any(not about or not about["alt"] for about in abouts):
            raise ValueError(
                f"cell {number} shows an image without alternative text; show it with figures.show"
            )
        if len(abouts) > 1:
            raise ValueError(f"cell {number} shows {len(abouts)} figures; give each a cell of its own")
        for about in abouts:
            figure = {key: about[key] for key in ("name", "caption") if about.get(key)}
            # `dark-light` tells the theme that the image suits both modes, so that it is not dimmed.
            options = {"image": {"alt": about["alt"], "classes": "dark-light"}} | (
                {"figure": figure} if figure else {}
            )
            cell["metadata"]["mystnb"] = cell["metadata"].get("mystnb", {}) | options

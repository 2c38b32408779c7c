"""How each method is drawn, on every page alike.

A method has one colour, one dash and one marker on every page. Encodings have their own hue (the colours of
Okabe and Ito, 2008, chosen to stay apart for colour-blind readers), which they share with their kind: tables,
rotations, biases, vectors of distances; the separated variant of an encoding is its darker shade; the strict
one is dotted and has a marker of its own. Open markers are for a second form: widened to equal parameters,
trained at the long length or at random positions, without a part. In grey print the dash and the marker tell
them apart.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

GROUND, INK, FAINT = "#fbfbf9", "#26282b", "#8b8f94"
POS, SEM, MIXED = "#0072b2", "#e69f00", "#b3364f"  # the streams, and what belongs to neither alone
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#7b5ea7", "#e69f00", "#56b4e9", "#6b6f74")
"""Of lines that are no methods, in this order."""
WORDS = 4.5  # contrast with their ground that words need (Web Content Accessibility Guidelines 2.1)


@dataclass(frozen=True)
class Method:
    """How one method is drawn. `line()` gives keyword arguments for `Axes.plot`."""

    label: str
    colour: str
    dash: Any = "-"
    marker: str = "o"
    filled: bool = True

    def line(self, **changes: Any) -> dict[str, Any]:
        face = self.colour if self.filled else GROUND
        own = {"label": self.label, "color": self.colour, "linestyle": self.dash, "marker": self.marker}
        return own | {"markerfacecolor": face, "markeredgecolor": self.colour} | changes


class Methods(dict[str, Method]):
    """The methods by name; an unknown one is answered with those that look like it."""

    def __missing__(self, name: str) -> Method:
        near = difflib.get_close_matches(str(name), self, n=3) or sorted(self)
        raise ValueError(
            f"no look for the method {name!r}; did you mean {', '.join(near)}? Add it to figures.METHODS"
        )


METHODS = Methods(
    {
        "none": Method("none", "#6b6f74", (0, (1, 1.2)), "X"),
        "sinusoidal": Method("sinusoidal", "#e69f00", (0, (5, 2)), "o"),
        "learned": Method("learned", "#56b4e9", (0, (5, 1.5, 1, 1.5)), "s"),
        "rope": Method("RoPE", "#d55e00", "-", "^"),
        "alibi": Method("ALiBi", "#009e73", (0, (7, 1.5, 1, 1.5, 1, 1.5)), "D"),
        "separated-sinusoidal": Method("separated sinusoidal", "#6b4500", "-", "o"),
        "separated-learned": Method("separated learned", "#00558a", "-", "s"),
        "separated-sinusoidal-wide": Method("separated sinusoidal, wide", "#6b4500", (0, (3, 1)), "o", False),
        "separated-sinusoidal-38-114": Method(
            "separated sinusoidal, 38 + 114", "#6b4500", (0, (2, 1)), "p", False
        ),
        "separated-learned-wide": Method("separated learned, wide", "#00558a", (0, (3, 1)), "s", False),
        "separated-learned-plain": Method("separated learned, no norm", "#00558a", (0, (2, 2)), "X", False),
        "strict-sinusoidal": Method("strict sinusoidal", "#6b4500", (0, (1, 1.2)), "v"),
        "strict-learned": Method("strict learned", "#00558a", (0, (1, 1.2)), "P"),
        "untied": Method("untied", "#6b4500", (0, (1, 1.2)), "8"),
        "untied-constant": Method("untied, constant", "#6b4500", (0, (3, 1)), "*"),
        "untied-constant-wide": Method("untied, constant, wide", "#6b4500", "-", "*", False),
        "tupe": Method("TUPE", "#cc79a7", (0, (3, 1, 1, 1)), "D", False),
        "separated-sinusoidal-joint-mlp": Method("separated, joint MLP", "#6b4500", (0, (1, 3)), "<"),
        "concatenated-sinusoidal": Method("concatenated sinusoidal", "#7048d8", "-", ">", False),
        "concatenated-learned": Method("concatenated learned", "#56b4e9", "-", ">"),
        "rope-long": Method("RoPE, trained long", "#d55e00", (0, (4, 1, 1, 1)), "^", False),
        "separated-sinusoidal-long": Method(
            "separated sinusoidal, trained long", "#6b4500", (0, (4, 1, 1, 1)), "d", False
        ),
        "learned-per-layer": Method("learned, a table a layer", "#56b4e9", (0, (2, 1)), "p"),
        "learned-query-key": Method("learned, queries and keys", "#56b4e9", (0, (2, 1, 1, 1)), "h"),
        "rope-partial": Method("RoPE, partial", "#d55e00", (0, (5, 1)), "<"),
        "p-rope": Method("p-RoPE", "#d55e00", (0, (3, 1, 1, 1)), ">"),
        "xpos": Method("xPos", "#d55e00", (0, (1, 1)), "*"),
        "axial-rope": Method("axial RoPE", "#d55e00", (0, (6, 1, 1, 1)), "d"),
        "sinusoidal-shifts": Method("sinusoidal, shifts", "#e69f00", (0, (2, 1)), "s"),
        "axial-rope-shifts": Method("axial RoPE, shifts", "#d55e00", (0, (6, 1, 2, 1)), "d", False),
        "seqpe-multiply": Method("SeqPE, multiplied", "#6b6f74", (0, (5, 2)), "^"),
        "seqpe-plain": Method("SeqPE, digits alone", "#6b6f74", (0, (3, 1)), "D", False),
        "t5": Method("T5", "#009e73", "-", "p"),
        "kerple-log": Method("KERPLE, logarithmic", "#009e73", (0, (3, 1)), "h"),
        "kerple-power": Method("KERPLE, power", "#009e73", (0, (3, 1)), "h", False),
        "fire": Method("FIRE", "#009e73", "-", "*"),
        "sandwich": Method("Sandwich", "#009e73", (0, (1, 1.2)), "s"),
        "shaw": Method("Shaw", "#cc79a7", "-", "<"),
        "shaw-keys": Method("Shaw, keys only", "#cc79a7", "-", "<", False),
        "transformer-xl": Method("Transformer-XL", "#cc79a7", (0, (5, 2)), "D"),
        "distance-aware": Method("DA-Transformer", "#009e73", (0, (5, 2)), "8"),
        "distance-aware-added": Method("DA, added", "#009e73", (0, (5, 2)), "8", False),
        "distance-aware-signed": Method("DA, no ReLU", "#009e73", (0, (5, 2)), "H"),
        "distance-aware-added-signed": Method("DA, added, no ReLU", "#009e73", (0, (5, 2)), "H", False),
        "cope": Method("CoPE", "#009e73", (0, (5, 1.5, 1, 1.5)), "P"),
        "forgetting": Method("FoX", "#009e73", (0, (2, 1)), "X"),
        "phase": Method("content to position", "#cc79a7", (0, (1, 1)), "s", False),
        "seqpe": Method("SeqPE, score", "#6b6f74", "-", "D"),
        "seqpe-input": Method("SeqPE, input", "#6b6f74", "-", "o", False),
        "sinusoidal-randomised": Method("sinusoidal, random", "#e69f00", (0, (4, 1, 1, 1)), "o", False),
        "rope-randomised": Method("RoPE, random", "#d55e00", (0, (2, 2)), "v", False),
        "rope-gap": Method("RoPE, gaps", "#d55e00", (0, (6, 2)), "P"),
        "rope-gaps": Method("RoPE, distant chunks", "#d55e00", (0, (1, 1.2)), "8", False),
        "sinusoidal-gap": Method("sinusoidal, gaps", "#e69f00", (0, (4, 2)), "P"),
        "sinusoidal-content-gap": Method("sinusoidal, content and gaps", "#e69f00", (0, (3, 1)), "D"),
        "separated-randomised": Method("separated, random", "#6b4500", (0, (4, 1, 1, 1)), "^"),
        "strict-randomised": Method("strict, random", "#6b4500", (0, (1, 1.2)), "^", False),
        "separated-gap": Method("separated, gaps", "#6b4500", (0, (6, 2)), "P", False),
        "separated-content-gap": Method("separated, content and gaps", "#6b4500", (0, (8, 1)), "D"),
        "sinusoidal-content-randomised": Method(
            "sinusoidal, content and random", "#e69f00", (0, (8, 1, 1, 1)), "X", False
        ),
        "separated-content-randomised": Method(
            "separated, content and random", "#6b4500", (0, (8, 1, 1, 1)), "X"
        ),
        "separated-content-gap-wide": Method(
            "separated, content and gaps, equal parameters", "#6b4500", (0, (8, 1)), "d"
        ),
        "strict-content-gap": Method("strict, content and gaps", "#6b4500", (0, (1, 1.2)), "D", False),
    }
)

RULES = {
    "sinusoidal": Method("(2) sinusoid", "#b07500", (0, (5, 2)), "o"),
    "fourier": Method("(3) Fourier", "#0072b2", "-", "s"),
    "cyclic": Method("(4) cyclic", "#7b5ea7", (0, (3, 1.2)), "P"),
    "learned": Method("(5) network", MIXED, "-", "D"),
    "alibi": Method("(6) fading", "#009e73", (0, (7, 1.5, 1, 1.5)), "^"),
    "clamp": Method("last row held", "#6b6f74", (0, (1, 1.2)), "v", False),
}
"""The rules that continue a table, by the numbers that the slides give them, and the row that is repeated."""


def title(name: str) -> str:
    """What a page calls a method: its label, or its name in words where no figure draws it."""
    return METHODS[name].label if name in METHODS else name.replace("-", " ")


def legible(colour: str) -> str:
    """The colour, with as much black as words of it need on the ground."""
    return mixed(colour, 0, lambda one: contrast(one, GROUND) >= WORDS)


def mixed(colour: str, end: int, enough: Callable[[str], bool]) -> str:
    """The colour `#rrggbb` with as little of black (an `end` of 0) or white (255) as is enough.

    Raises:
        ValueError: nothing is enough.
    """
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    for share in range(101):
        made = "#" + "".join(f"{round(part + (end - part) * share / 100):02x}" for part in parts)
        if enough(made):
            return made
    raise ValueError(f"{colour!r} is never seen well enough on its ground")


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (by the same guidelines)."""
    lighter, darker = sorted(map(_luminance, (one, other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

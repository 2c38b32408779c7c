"""The card of a probe: verdicts, axes and a curve on a page, as JSON, Markdown, HTML or a figure."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ..plots import figures, shapes
from ..plots.looks import FAINT, INK
from .adapters import Reader
from .readings import Plan, Readings
from .verdicts import Verdict, judged

QUESTIONS = {
    "survives": "Is it as good as its own sliding window in long texts?",
    "uses": "Does it gain from what is older than its trained length?",
    "quality": "Is it as good as the reference in long texts?",
    "price": "Is it as good as the reference inside its trained length?",
}
AXES = {
    "index": "unseen positions, nothing else new",
    "length": "more keys than in training, at trained positions",
    "distance": "unseen differences of positions, at the same indices",
}
COLOURS = {"held": "#009e73", "refuted": "#d55e00"}
"""Of the two words that decide; any other is ink."""


@dataclass(frozen=True)
class Card:
    """What a probe found.

    Attributes:
        survives, uses, quality, price: the verdicts; each has `.verdict`, a bare word, and its numbers.
        axes: by name, what an unseen index, length or distance does by itself.
        curve: the loss by position of the model and of its sliding window, in bits per token.
        meta: what was read and how, and `limits`, what the card cannot say. `under` has the context extension
            and the adapter that the model was read under; its name says them, too.
    """

    survives: Verdict
    uses: Verdict
    quality: Verdict
    price: Verdict
    axes: Mapping[str, Verdict]
    curve: Sequence[Mapping[str, float]]
    meta: Mapping[str, Any]

    @property
    def four(self) -> dict[str, Verdict]:
        """The verdicts by name."""
        return {name: getattr(self, name) for name in QUESTIONS}

    def to_json(self) -> str:
        """The whole card: `survives`, `uses`, `quality` and `price`, each an object with its `verdict`, and
        `axes`, `curve` and `meta`."""
        content = {name: asdict(one) for name, one in self.four.items()}
        content["axes"] = {name: asdict(one) for name, one in self.axes.items()}
        content |= {"curve": list(self.curve), "meta": dict(self.meta)}
        return json.dumps(content, indent=1, allow_nan=False)

    def to_markdown(self) -> str:
        """One page: what was read, two tables, and what the card cannot say."""
        blocks = [[f"# {_plain(self.title)}", self.subtitle]]
        for head, rows in self.tables():
            lines = [head, ["---"] * len(head), *rows]
            blocks.append(["| " + " | ".join(map(_plain, line)) + " |" for line in lines])
        blocks.append([f"- {_plain(one)}" for one in self.meta["limits"]])
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"

    def to_html(self) -> str:
        """The same page with the figure, in one file that asks for nothing else."""
        figure = self.figure()
        svg = figures.picture(figure)[0].get("image/svg+xml", "")
        plt.close(figure)
        body = [f"<h1>{escape(self.title)}</h1>", f"<p>{escape(self.subtitle)}</p>", svg[svg.find("<svg") :]]
        for head, rows in self.tables():
            cells = "".join(f"<th>{escape(one)}</th>" for one in head)
            lines = "".join(
                "<tr>" + "".join(f"<td>{escape(one)}</td>" for one in row) + "</tr>" for row in rows
            )
            body.append(f"<table><tr>{cells}</tr>{lines}</table>")
        limits = "".join(f"<li>{escape(one)}</li>" for one in self.meta["limits"])
        return PAGE.format(title=escape(self.title), body="\n".join([*body, f"<ul>{limits}</ul>"]))

    def tables(self) -> list[tuple[list[str], list[list[str]]]]:
        """Head and rows of both tables, in plain words."""
        four = [[QUESTIONS[name], name, one.verdict, one.why] for name, one in self.four.items()]
        apart = [[AXES[name], name, one.verdict, one.why] for name, one in self.axes.items()]
        return [
            (["question", "", "verdict", "bits per token, mean and 95 % interval"], four),
            (["each side alone", "", "verdict", "bits per token, mean and 95 % interval"], apart),
        ]

    @property
    def title(self) -> str:
        return f"Past the trained length: {self.meta['model']}"

    @property
    def subtitle(self) -> str:
        meta = self.meta
        beside = f", beside {meta['reference']}" if meta["reference"] else ""
        return (
            f"Trained length {meta['trained_length']}; {meta['windows']} windows of {meta['longest']} "
            f"tokens{beside}; on {meta['device']}."
        )

    def figure(self) -> Figure:
        """Loss by position beside the sliding window, the trained length drawn, and the verdicts."""
        with plt.rc_context():
            figures.use_style()
            fig, (ax, words) = plt.subplots(1, 2, figsize=(9.2, 3.6), width_ratios=(3, 2))
            middle = [(row["start"] + row["stop"]) / 2 for row in self.curve]
            model = [row["model"] for row in self.curve]
            slid = [row["sliding"] for row in self.curve]
            ax.plot(middle, slid, color=FAINT, linestyle=shapes.DASHED)
            ax.plot(middle, model, color=figures.POS, marker="o", markersize=3.5)
            length, reach = self.meta["trained_length"], self.curve[-1]["stop"]
            ticks = [length * k for k in self.meta["times"] if length * k <= reach]
            shapes.powers_of_two(ax, ticks)
            figures.trained_length(ax, length)
            ax.set(xlabel="position in the text", ylabel="bits per token")
            named = textwrap.wrap(str(self.meta["model"]), 44, max_lines=3, placeholder="…")
            ax.set_title("\n".join(named), pad=18, parse_math=False)  # a path may hold a $
            low = min(*model, *slid)
            ax.set_ylim(bottom=low - 0.12 * max(0.1, max(*model, *slid) - low))
            ax.text(0.02, 0.03, "line: all keys visible; dashed: own sliding window", fontsize=8.5,
                    transform=ax.transAxes, color=INK)  # fmt: skip
            words.axis("off")
            height = 1.0
            for name, one in [*self.four.items(), *self.axes.items()]:
                if name == "index":
                    height -= 0.05
                look = {"transform": words.transAxes, "va": "top", "fontsize": 10.5}
                words.text(0.0, height, name, color=INK, **look)
                colour = COLOURS.get(one.verdict, INK)
                words.text(0.42, height, one.verdict, color=colour, weight="bold", **look)
                height -= 0.13
        return fig


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; }}
tr {{ border-bottom: 1px solid #ccc; }}
td:nth-child(3) {{ font-weight: 600; white-space: nowrap; }}
svg {{ max-width: 100%; height: auto; }}
</style></head><body>
{body}
</body></html>
"""


def card(plan: Plan, found: Readings, readers: Sequence[Reader], device: str) -> Card:
    """The card of these readings of a model and, where there is one, of a reference."""
    four, apart = judged(plan, found)
    length, stride = plan.length, plan.stride
    meta = {
        "model": readers[0].label,
        "under": readers[0].under,
        "reference": readers[1].label if len(readers) > 1 else None,
        "trained_length": length,
        "times": list(plan.times),
        "windows": len(plan.tokens),
        "longest": plan.longest,
        "read_up_to": plan.reach,
        "stride": stride,
        "unit": "bits per token",
        "inside": float(found.native[:, :length].mean()),
        "frequencies_alone": found.text,
        "follows_length": found.follows_length,
        "device": device,
        "versions": {name: version(name) for name in ("sepnb", "torch")},
        "limits": _limits(plan, found),
    }
    return Card(**four, axes=apart, curve=_curve(plan, found), meta=meta)


def _limits(plan: Plan, found: Readings) -> list[str]:
    """What this card cannot say, and why."""
    length, stride = plan.length, plan.stride
    lines = [
        f"This is one checkpoint. Intervals and tests are over {len(plan.tokens)} windows of one text, taken "
        f"as independent: they describe evaluation noise, not what another training would give.",
        f"The sliding window moves on by {stride}: each token has the last {length - stride + 1} to {length} "
        f"as context. The book's bar moves on by one, and is harder by what the oldest of these are worth.",
        "Replaced context is the passage half the text away. Text of one topic throughout makes it milder.",
    ]
    if found.replaced is None or plan.reach < plan.longest:
        lines.append(f"Its table of positions ends: it was read up to {plan.reach} tokens.")
    if found.unread:
        lines.append(f"Index, length and distance are not told apart: {found.unread['index']}.")
    else:
        lines.append(
            "More keys at trained positions means that old tokens share a position, which training did not "
            "show either: a length that is refuted may be refuted for that."
        )
    if found.follows_length:
        lines.append(
            "What it says depends on how long the text will be, so that each length was read by itself."
        )
    if found.reference is None:
        lines.append("Quality and price need a reference on the same tokens, and none was given.")
    return lines


def _curve(plan: Plan, found: Readings) -> list[dict[str, float]]:
    """Means over stretches that grow with the position, eight of them a doubling at most."""
    inside = plan.length * np.arange(1, 9) // 8
    edges = np.union1d(inside, np.geomspace(plan.length, plan.reach, 25).astype(int))
    return [
        {
            "start": int(start),
            "stop": int(stop),
            "model": float(found.native[:, start:stop].mean()),
            "sliding": float(found.slid[:, start:stop].mean()),
        }
        for start, stop in pairwise([0, *edges.tolist()])
    ]


def _plain(text: str) -> str:
    """Text that stays text in a table of Markdown."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")

"""The look of figures: told apart by the colour-blind and in grey, described in words, the same bytes."""

import base64
import itertools
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from sepnb.companion.book.build import clean
from sepnb.companion.book.dark import both_modes, seen
from sepnb.experiments.encoding_methods import METHODS
from sepnb.plots import figures
from sepnb.plots.looks import GROUND, WORDS, contrast
from sepnb.records.run_table import summarise

from ..shared import refused

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
DEFICIENCIES = {
    "protanopia": "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
    "deuteranopia": "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881",
    "none": "1 0 0 0 1 0 0 0 1",
}


def lab(colour: str, deficiency: str) -> np.ndarray:
    """CIELAB (D65) of a colour as seen with a colour deficiency."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.array(DEFICIENCIES[deficiency].split(), float).reshape(3, 3)
    linear = np.clip(seen @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ratio = np.array(to_xyz) @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.fixture
def shown(monkeypatch):
    """What was displayed, as (data, metadata)."""
    bundles = []
    monkeypatch.setattr(
        figures, "display", lambda data, metadata=None, raw=False: bundles.append((data, metadata))
    )
    return bundles


def drawing(points: int = 5):
    figures.use_style()
    fig, ax = plt.subplots()
    ax.plot(range(points), np.sin(range(points)), "o")
    return fig


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colours_of_methods_stay_apart(deficiency):
    colours = sorted({method.colour for method in figures.METHODS.values()})
    assert len(colours) == 9
    for one, other in itertools.combinations(colours, 2):
        distance = np.linalg.norm(lab(one, deficiency) - lab(other, deficiency))
        assert distance > 15, f"{one} and {other} are {distance:.1f} apart with {deficiency}"


def test_methods_are_told_apart_without_colour_and_without_lines():
    """In grey, and as points alone, which have no dash."""
    for parts in (("dash", "marker", "filled"), ("marker", "filled", "colour")):
        looks = [tuple(str(getattr(one, part)) for part in parts) for one in figures.METHODS.values()]
        assert len(set(looks)) == len(looks)


def test_every_method_of_the_comparison_has_a_look_and_others_are_refused():
    assert set(METHODS) <= set(figures.METHODS)
    with pytest.raises(ValueError, match="'ropes'; did you mean rope"):
        figures.METHODS["ropes"]


def test_show_writes_a_picture_with_its_words_and_closes_it(shown):
    fig = drawing()
    figures.show(fig, alt="A sine,\n  five points.", name="fig-sine", caption="It waves.")
    ((data, metadata),) = shown
    assert ET.fromstring(data["image/svg+xml"]).tag.endswith("svg")
    about = {"alt": "A sine, five points.", "name": "fig-sine", "caption": "It waves."}
    assert metadata["sepnb"] | about == metadata["sepnb"]
    assert not plt.fignum_exists(fig.number)


def test_a_figure_without_runs_says_so_in_every_panel(shown):
    fig, axes = plt.subplots(1, 2)
    for ax in axes:  # what a chapter draws before it looks for runs
        ax.axvline(0)
        ax.axhspan(-1, 1)
        ax.plot(range(3), [np.nan] * 3)
    figures.show(fig, alt="Two panels.", name="fig-two", caption="nan bits per byte.")
    assert [[text.get_text() for text in ax.texts] for ax in axes] == [["not run"]] * 2
    assert shown[0][1]["sepnb"]["caption"] == figures.NOT_RUN


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: ax.plot(0, 1, "x"),
        lambda ax: ax.bar(0, 1),
        lambda ax: ax.imshow([[np.nan]]),
        lambda ax: ax.axis("off") and ax.text(0, 0, "a drawing"),
    ],
)
def test_a_figure_with_anything_in_one_panel_keeps_its_caption(shown, draw):
    fig, axes = plt.subplots(1, 2)
    draw(axes[0])
    figures.show(fig, alt="Two panels.", name="fig-two", caption="As drawn.")
    assert shown[0][1]["sepnb"]["caption"] == "As drawn."
    assert not axes[1].texts


def test_rows_of_seeds_name_each_look_that_has_values_once():
    fig, ax = plt.subplots()
    one, other = figures.METHODS["rope"], figures.METHODS["alibi"]
    rows = {"first": [((), one), ((0.2, 0.3), other)], "second": [((0.1,), one), ((0.4,), other)]}
    figures.seed_rows(ax, rows, level=0.25, labelled=True)
    assert sorted(ax.get_legend_handles_labels()[1]) == ["ALiBi", "RoPE"]
    assert ax.lines[0].get_xdata() == [0.25, 0.25]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["second", "first"]
    plt.close(fig)


def test_heavy_figures_become_sharp_png(shown):
    figures.show(drawing(points=30_000), alt="Many points.")
    data, metadata = shown[0]
    assert "image/svg+xml" not in data
    width = int.from_bytes(base64.b64decode(data["image/png"])[16:20], "big")
    assert width == pytest.approx(2 * metadata["image/png"]["width"], abs=2)


def test_the_same_figure_has_the_same_bytes():
    first, second = figures.picture(drawing())[0], figures.picture(drawing())[0]
    assert first == second
    assert "<dc:date>" not in first["image/svg+xml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alt": " "}, "alternative text"),
        ({"alt": "x", "name": "Sine", "caption": "c"}, "fig-two-words"),
        ({"alt": "x", "name": "fig-sine"}, "no caption"),
    ],
)
def test_show_refuses_what_the_book_could_not_use(arguments, message, shown):
    fig = drawing()
    refused(message, figures.show, fig, **arguments)
    assert not shown
    plt.close(fig)


def executed(*metadata):
    outputs = [
        nbformat.v4.new_output("display_data", data={"image/svg+xml": "<svg/>"}, metadata=about)
        for about in metadata
    ]
    cell = nbformat.v4.new_code_cell("figures.show(fig)", outputs=outputs)
    cell.metadata["tags"] = ["hide-input"]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("text"), cell])


def test_staging_puts_the_words_where_myst_nb_reads_them():
    notebook = executed({"sepnb": {"alt": "A sine.", "name": "fig-sine", "caption": "It waves."}})
    clean(notebook)
    about = notebook.cells[1].metadata
    assert about["mystnb"]["image"]["alt"] == "A sine."
    assert about["mystnb"]["figure"] == {"name": "fig-sine", "caption": "It waves."}
    assert about["tags"] == ["hide-input"]


def test_what_stands_under_a_figure_gets_a_cell_without_the_caption():
    notebook = executed({"sepnb": {"alt": "A sine.", "name": "fig-sine", "caption": "It waves."}})
    line = nbformat.v4.new_output("execute_result", data={"text/html": "<p>7 runs</p>"}, execution_count=1)
    notebook.cells[1].outputs.append(line)
    notebook.cells[1].source += "\nfigures.provenance(runs)"
    clean(notebook)
    _, figure, under = notebook.cells
    assert "figure" in figure.metadata["mystnb"] and len(figure.outputs) == 1
    assert under["outputs"] == [line] and under["metadata"] == {"tags": ["remove-input"]}
    assert under["source"] == "figures.provenance(runs)" and under["id"] == "cell-2"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([{}], "cell 2 shows an image without alternative text"),
        ([{"sepnb": {"alt": "a"}}, {"sepnb": {"alt": "b"}}], "cell 2 shows 2 figures"),
    ],
)
def test_staging_refuses_images_that_would_be_mute(metadata, message):
    refused(message, clean, executed(*metadata))


def test_labels_do_not_touch_and_keep_the_order_of_the_lines(ax):
    for level, name in ((0.0, "low"), (0.001, "middle"), (0.002, "high")):
        ax.plot([0, 1], [level, level], label=name)
    ax.plot([0, 1], [0.5, 1], label="_unnamed")
    figures.label_lines(ax)
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without the line that leads to it
    assert [text.get_text() for text in ax.texts] == ["low", "middle", "high"]
    assert all(below.y1 <= above.y0 for below, above in itertools.pairwise(boxes))
    assert all(box.x0 > ax.transData.transform((1, 0))[0] for box in boxes)


def test_labels_stay_above_the_axis_and_are_led_to_lines_that_are_far(ax):
    for level, name in ((0.0, "low"), (0.001, "middle"), (1.0, "high")):
        ax.plot([0, 1], [level, level], label=name)
    ax.set_ylim(0, 1)
    figures.label_lines(ax)
    ax.figure.draw_without_rendering()
    low, _, high = (Text.get_window_extent(text) for text in ax.texts)
    assert low.y0 >= ax.bbox.y0 and high.y1 < ax.bbox.y1 + high.height
    assert [text.arrow_patch is not None for text in ax.texts] == [True, True, False]  # the last is near


def test_labels_are_dark_enough_to_be_read_and_follow_their_lines_on_a_dark_page(ax):
    for name in ("sinusoidal", "learned", "separated-learned"):
        ax.plot([0, 1], [0, 1], **figures.METHODS[name].line())
    figures.label_lines(ax)
    words = {text.get_text(): str(text.get_color()) for text in ax.texts}
    assert all(contrast(colour, GROUND) >= WORDS for colour in words.values())
    assert words["separated learned"] == figures.METHODS["separated-learned"].colour, "it is dark already"
    lighter = f'[style*="fill: {words["sinusoidal"]}"]{{fill:{seen(figures.METHODS["sinusoidal"].colour)}'
    assert lighter in both_modes("<svg></svg>")


def loaded(status, seeds):
    about = {"device": "cpu", "device_name": "<A & B>", "torch": "2.13.0", "python": "3.11.2"}
    about |= {"commit": "0123456789"}
    facts = [about | {"seed": seed, "started": f"2026-11-2{seed}T10:00:00"} for seed in seeds]
    table = pd.DataFrame({"status": status})
    named = {"experiment": "recipes", "profile": "laptop"}
    table.attrs["records"] = [SimpleNamespace(**named, provenance=fact) for fact in facts]
    return figures.provenance(table).data


def test_a_row_of_seeds_has_a_tick_for_each_their_mean_and_its_interval(ax):
    look = figures.METHODS["rope"]
    figures.seed_row(ax, 2, [1.0, 2.0, 6.0], look, labelled=True)
    ticks, marker = ax.lines[:2]
    assert list(ticks.get_xdata()) == [1.0, 2.0, 6.0] and set(ticks.get_ydata()) == {2.0}
    assert list(marker.get_xdata()) == [3.0] and marker.get_marker() == look.marker
    low, high = ax.collections[0].get_segments()[0][:, 0]
    assert (high - low) / 2 == pytest.approx(summarise([1.0, 2.0, 6.0]).half)
    assert ax.get_legend_handles_labels()[1] == ["RoPE"]


@pytest.mark.parametrize(("values", "lines"), [([], 0), ([0.5], 2)])
def test_a_row_of_one_seed_has_no_interval_and_one_of_none_is_empty(ax, values, lines):
    figures.seed_row(ax, 0, values, figures.METHODS["none"])
    assert (len(ax.lines), len(ax.collections), len(ax.texts)) == (lines, 0, 0)
    figures.seed_row(ax, 0, values, figures.METHODS["none"], missing="not run")
    assert [text.get_text() for text in ax.texts] == ([] if values else ["not run"])


def test_lines_of_counting_are_drawn_at_the_entropies_of_the_table_and_nowhere_without_runs(ax):
    figures.entropy_lines(ax, pd.DataFrame({"method": ["rope"]}), at=0.0)
    assert not ax.lines and not ax.texts
    runs = pd.DataFrame({"unigram_bits_per_byte": [4.5, None, 4.5], "bigram_bits_per_byte": [3.4, None, 3.4]})
    figures.entropy_lines(ax, runs, at=2.0)
    assert [line.get_ydata()[0] for line in ax.lines] == [4.5, 3.4]
    assert [text.get_position() for text in ax.texts] == [(2.0, 4.5), (2.0, 3.4)]


def test_provenance_says_what_was_run_where_and_what_is_missing_and_of_nothing_claims_nothing():
    line = loaded(["ok", "stale", "not run"], seeds=[1, 0])
    facts = "recipes", "laptop", "2 of 3 runs", "seeds 0, 1", "cpu &lt;A &amp; B&gt;", "torch 2.13.0"
    facts += ("commit 0123456",)
    days, badges = "2026-11-20 to 2026-11-21", ("1 not run</span>", "1 stale</span>")
    assert [fact for fact in (*facts, days, *badges) if fact not in line] == []
    line = loaded(["not run", "not run"], seeds=[])
    assert "0 of 2 runs" in line and "2 not run" in line and "torch" not in line


def test_show_table_formats_escapes_and_marks(monkeypatch):
    shown = []
    monkeypatch.setattr(figures, "display", shown.append)
    df = pd.DataFrame({"method": ["<a>", "b"], "loss": [1.23456, np.nan]})
    figures.show_table(df, caption="Loss & more.", formats={"loss": ".2f"}, highlight=[1])
    html = shown[0].data
    assert '<th scope="col">method</th><th scope="col" class="sepnb-number">loss</th>' in html
    assert '<tr><th scope="row">&lt;a&gt;</th><td class="sepnb-number">1.23</td></tr>' in html
    assert '<tr class="sepnb-strong"><th scope="row">b</th><td class="sepnb-number">\N{EN DASH}</td>' in html
    assert "<caption>Loss &amp; more.</caption>" in html
    figures.show_table(df[:0].drop(columns="loss"), caption="None.", formats={"loss": ".2f"})
    assert "not run" in shown[1].data
    mixed = pd.DataFrame(
        {
            "steps": [1, 2],
            "why": ["+0.83 ± 0.02", "level"],
            "loss": ["0.8 ± 0.1", "not run"],
            "error": [1e-05, 2.5],
        }
    )
    figures.show_table(mixed, caption="A column with words is one of words.")
    cells = (
        '<td class="sepnb-number">1</td><td>+0.83 ±\xa00.02</td><td class="sepnb-number">0.8 ±\xa00.1</td>'
    )
    assert cells + '<td class="sepnb-number">1e-05</td>' in shown[2].data
    with pytest.raises(ValueError, match="'los', but the columns are method, loss"):
        figures.show_table(df, caption="x", formats={"los": ".2f"})
    refused("needs a caption", figures.show_table, df, caption="")

"""Figures that move, on a page that the book's own extension built, read from a folder in Chromium."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page

from sepnb import paths
from sepnb.encodings import alibi_slopes, apply_rope, grid_positions, grid_sinusoidal, rope_frequencies
from sepnb.encodings.context import NTKAware, NTKByParts, PositionInterpolation, YaRN
from sepnb.evaluation.losses import sliding
from sepnb.evaluation.tasks import mqar
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.fast.packed import packed, rounded
from sepnb.plots import moving
from sepnb.seqpe.digits import digits
from sepnb.streams import Streams

from . import browser as reading
from .conftest import book_of, notebook, shows

LENGTH = 16
Built = Callable[[str, dict], Path]


PAGES: dict[str, str] = {}
"""Addresses by what the page shows: tests that look at one figure build its page once."""


@pytest.fixture
def built(project, monkeypatch) -> Built:
    """`built(kind, data)`: the address of a page with this figure and a picture, as a notebook made it."""

    def build(kind: str, data: dict) -> str:
        shown: list[str] = []
        monkeypatch.setattr(moving, "display", lambda html: shown.append(html.data))
        moving.show(kind, data, name="moving-one", alt="A figure.", instead="the figure above")
        if (address := PAGES.get(shown[0])) is not None:
            return address
        drawn = notebook(
            "# Drawn\n\n![what stands still](picture.svg)",
            shows("moving.show(...)", {"data": {"text/html": shown[0]}}),
        )
        static = {
            "html_static_path": [str(paths.root() / "book" / "_static")],
            "html_css_files": ["sepnb.css"],
        }
        made = project(book_of({"drawn": drawn}), **static)
        assert made.warnings == []
        assert "moving.js" in made.page("drawn") and "moving.js" not in made.page("index")
        PAGES[shown[0]] = (made.html / "drawn.html").as_uri()
        return PAGES[shown[0]]

    return build


@contextmanager
def opened(chromium: Browser, address: str, **options: object) -> Iterator[Page]:
    """The page; that it asked for nothing outside its folder and said no error is checked at the end."""
    with reading.opened(chromium, address.rpartition("/")[0], **options) as (page, traffic):
        page.goto(address)
        yield page
        assert traffic == []


def fits_a_phone(page: Page) -> bool:
    """Whether nothing of the figure sticks out of the screen."""
    right = "all => all.map(one => one.getBoundingClientRect().right)"
    return max(page.locator("#moving-one *").evaluate_all(right)) <= reading.PHONE["width"] + 1


def tiny(mode: str, seed: int = 0) -> LanguageModel:
    """A model whose every weight matters: gains, biases and all."""
    torch.manual_seed(seed)
    streams = Streams(pos=8, sem=16)
    model = LanguageModel(TransformerConfig(streams, 2, 3, "sinusoidal", mode=mode, max_length=LENGTH))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def panel_of(*models: LanguageModel, text: str = "for i in range(9):\n    f(i)\n" * 2) -> dict:
    carried = [
        {"says": f"model {at}", "packed": packed(one), "trained": LENGTH} for at, one in enumerate(models)
    ]
    texts = [[text, "code"], ["caf\N{LATIN SMALL LETTER E WITH ACUTE} " * 5, "above 127"]]
    return {"models": carried, "texts": texts, "length": LENGTH, "bands": BANDS}


BANDS = {"alpha": 0.5, "beta": 4}
COMPUTED = """([which, rule, tokens, start, factor]) => {
  const { models } = document.querySelector("#moving-one").sepnb, M = sepnb.model;
  const model = factor ? M.slowedDown(models[which], factor, BANDS) : models[which];
  return [...M.RULES[rule](model, tokens, start).data];
}""".replace("BANDS", json.dumps(BANDS))


def slowed_down(model: LanguageModel, factor: int) -> LanguageModel:
    """What the slider of the page reads a model with; factor 1 is the model as it was trained."""
    if factor == 1:
        return model
    return model.extended(extension=NTKByParts(factor, LENGTH, **BANDS), log_scale=True)


def apart(page: Page, which: int, model: LanguageModel, rule: str, start: int, factor: int) -> float:
    """How far at most the logits of a model on the page are from those of torch, on random bytes."""
    tokens = np.random.default_rng(start).integers(0, 256, 3 * LENGTH)
    assert (tokens > 127).any()
    got = page.evaluate(COMPUTED, [which, rule, tokens.tolist(), start, factor])
    read = model if rule == "plain" else model.extended(window=LENGTH)
    with torch.no_grad():
        wanted = read(torch.from_numpy(tokens)[None], torch.arange(len(tokens)) + start)[0]
    return np.abs(np.reshape(got, (-1, 256)) - wanted.numpy()).max()


def test_the_page_computes_the_logits_of_torch_also_slowed_down(chromium, built) -> None:
    """Of the same rounded weights, for every rule and factor, at start indices on both sides of L."""
    models = tiny("strict"), tiny("separated", 1)
    with opened(chromium, built("model", panel_of(*models))) as page:
        for which, factor in itertools.product((0, 1), (1, 2, 3, 8, 16)):
            model = slowed_down(rounded(models[which]), factor)
            for rule, start in itertools.product(("plain", "masked"), (0, 5, LENGTH, 8 * LENGTH)):
                assert apart(page, which, model, rule, start, factor) < 1e-4, (which, factor, rule, start)


def test_the_page_slows_waves_down_by_parts_as_the_package_does(chromium, built) -> None:
    with opened(chromium, built("model", panel_of(tiny("strict")))) as page:
        for factor, (alpha, beta) in itertools.product((1.5, 16), ((1, 32), (0.5, 4))):
            told = {"factor": factor, "length": LENGTH, "alpha": alpha, "beta": beta}
            got = page.evaluate("told => [...sepnb.model.frequencies(32, 10000, told)]", told)
            by_parts = NTKByParts(factor, LENGTH, alpha, beta)
            wanted = rope_frequencies(32, base=10_000, extension=by_parts)[0]
            np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_a_model_that_was_packed_slowed_down_is_read_so(chromium, built) -> None:
    model = slowed_down(rounded(tiny("strict")), 4)
    with opened(chromium, built("model", panel_of(model))) as page:
        assert apart(page, 0, model, "plain", start=0, factor=0) < 1e-4


def test_the_sliding_window_of_the_page_is_that_of_the_package(chromium, built) -> None:
    model = tiny("strict")
    tokens = np.random.default_rng(1).integers(0, 256, 45)
    address = built("model", panel_of(model))
    with opened(chromium, address) as page:
        got = page.evaluate(
            "tokens => { const M = sepnb.model, m = document.querySelector('#moving-one').sepnb.models[0];"
            " return M.bits(M.RULES.reread(m, tokens, 7), tokens); }",
            tokens.tolist(),
        )
    # The last pass of the page holds one byte more than that of the package, whose last byte is not read.
    wanted = sliding(rounded(model), tokens[None], window=LENGTH, stride=8).bits[0]
    whole = LENGTH + (len(wanted) - LENGTH) // 8 * 8
    np.testing.assert_allclose(got[:whole], wanted[:whole], atol=1e-4)


def test_the_parts_of_a_score_add_up_to_the_attention_weights(chromium, built) -> None:
    address = built("model", panel_of(tiny("strict")))
    with opened(chromium, address) as page:
        found = page.evaluate(
            """() => {
              const { heads } = document.querySelector("#moving-one").sepnb.held();
              return Object.entries(heads).map(([key, [one]]) => {
                const terms = one.terms(), n = one.weights.rows, row = n - 1;
                const scores = [...Array(n).keys()].map((j) =>
                  Object.values(terms).reduce((sum, term) => sum + term.data[row * n + j], 0));
                return [key, Object.keys(terms).length, scores, [...one.weights.data.slice(row * n)]];
              });
            }"""
        )
    assert [key for key, *_ in found] == ["0.0", "0.1", "0.2", "1.1", "1.2"]
    for key, parts, scores, weights in found:
        assert parts == (1 if key == "0.0" else 4)  # a position head reads one stream
        np.testing.assert_allclose(torch.tensor(scores).softmax(0), weights, atol=1e-6)


def test_keys_move_the_start_and_the_text_and_what_is_seen_follows(chromium, built) -> None:
    address = built("model", panel_of(tiny("strict")))
    with opened(chromium, address) as page:
        said, start = page.locator(".moving-said"), page.get_by_label("Start index")
        first = said.text_content()
        start.focus()
        page.keyboard.press("ArrowRight")
        assert start.input_value() == "1" and start.get_attribute("aria-valuetext") == "1 (0.0625 L)"
        page.keyboard.press("End")
        page.wait_for_function(
            "before => document.querySelector('.moving-said').textContent !== before", arg=first
        )
        assert f"at indices from {8 * LENGTH} on" in said.text_content()
        page.get_by_label("Change it").fill("caf\N{LATIN SMALL LETTER E WITH ACUTE}!")
        page.locator(".moving-guesses caption", has_text=r"caf\xc3\xa9").wait_for()
        page.get_by_label("Rule").select_option("reread")
        page.locator(".moving-said", has_text="The first 5 bytes cost").wait_for()
        page.get_by_label("Head").select_option("0.0")
        page.locator(".moving-maps > *").nth(2).wait_for(state="detached")
        page.get_by_label("Change it").fill("a")
        page.locator(".moving-said", has_text="Type at least two bytes").wait_for()


def test_a_text_is_cut_to_the_length_of_the_slider_and_another_text_is_read_whole(chromium, built) -> None:
    with opened(chromium, built("model", panel_of(tiny("strict")))) as page:
        said, slider = page.locator(".moving-said"), page.get_by_label("Length")
        held, whole = "() => document.querySelector('#moving-one').sepnb.held().bits.length + 1", 56
        assert (
            page.evaluate(held) == int(slider.input_value()) == whole
            and "those after them" in said.text_content()
        )
        slider.fill(str(LENGTH))
        page.locator(".moving-said", has_text=f"The first {LENGTH - 1} bytes cost").wait_for()
        assert page.evaluate(held) == LENGTH and "those after them" not in said.text_content()
        assert slider.get_attribute("aria-valuetext") == f"{LENGTH} (1 L)"
        page.get_by_label("Text").select_option("1")
        page.locator(".moving-guesses caption", has_text=r"caf\xc3\xa9").wait_for()
        assert page.evaluate(held) == int(slider.input_value()) == 30
        page.get_by_label("Change it").fill("abcdef")
        page.wait_for_function(f"{held[6:]} === 6")
        assert slider.get_attribute("max") == slider.input_value() == "6"


def test_a_slider_slows_positions_down_and_the_level_of_the_text_stays(chromium, built) -> None:
    with opened(chromium, built("model", panel_of(tiny("strict"))), viewport=reading.PHONE) as page:
        said, slower = page.locator(".moving-said"), page.get_by_label("Slow positions down")
        level = "() => document.querySelector('#moving-one').sepnb.held().level"
        before = page.evaluate(level)
        assert slower.get_attribute("aria-valuetext") == "as trained"
        slower.focus()
        page.keyboard.press("ArrowRight")
        page.locator(".moving-said", has_text="With positions 2 times slower, the first").wait_for()
        page.keyboard.press("End")
        page.locator(".moving-said", has_text="With positions 16 times slower, the first").wait_for()
        assert slower.get_attribute("aria-valuetext") == "16 times slower"
        page.keyboard.press("Home")
        page.wait_for_function("said => document.querySelector('.moving-said').textContent.startsWith('The')")
        assert page.evaluate(level) == before and "slower" not in said.text_content()


def test_controls_have_labels_and_drawings_say_what_they_show(chromium, built) -> None:
    address = built("model", panel_of(tiny("strict")))
    with opened(chromium, address) as page:
        for box in page.locator("#moving-one :is(input, select, textarea)").all():
            assert page.locator(f"label[for={box.get_attribute('id')}]").text_content()
        assert page.locator("#moving-one svg[role=img] > title").count() == 1
        labels = page.locator("#moving-one canvas[role=img]").evaluate_all(
            "all => all.map(one => one.ariaLabel)"
        )
        assert len(labels) == 5 and all(labels)
        assert page.locator("#moving-one .moving-said[aria-live=polite]").count() == 1
        assert page.locator("[data-interactive][role=figure]").get_attribute("aria-label") == "A figure."


def test_nothing_sticks_out_of_a_phone_and_colours_follow_the_mode(chromium, built) -> None:
    address = built("model", panel_of(tiny("strict")))
    with opened(chromium, address, viewport=reading.PHONE) as page:
        page.add_style_tag(content="body { margin: 0 }")
        page.evaluate(reading.SETTLED)
        assert fits_a_phone(page)
        colour = "() => getComputedStyle(document.querySelector('.moving-chart .line')).stroke"
        light = page.evaluate(colour)
        page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
        page.wait_for_function(f"light => ({colour})() !== light", arg=light)


def test_without_scripts_and_on_paper_the_picture_stands_alone(chromium, built) -> None:
    address = built("model", panel_of(tiny("strict")))
    with opened(chromium, address, java_script_enabled=False) as page:
        assert page.locator("img[alt='what stands still']").is_visible()
        note = page.locator("noscript p")  # which text locators leave out
        assert note.is_visible() and "see the figure above" in note.text_content()
        assert page.locator(".moving-controls").count() == 0
    with opened(chromium, address) as page:
        page.emulate_media(media="print")
        assert page.locator("img[alt='what stands still']").is_visible()
        assert not page.locator("#moving-one").is_visible()


# --- a text that is asked for its values

RECALL = {"keys": 4, "values": 4, "noise": 2, "pairs": 3}
TIMES = (1, 2)


def recall() -> tuple[LanguageModel, dict, list]:
    """A model of a vocabulary that is no bytes, what the page carries of it and of texts of 16 and 32
    symbols; and the texts."""
    torch.manual_seed(4)
    streams = Streams(pos=8, sem=16)
    model = LanguageModel(TransformerConfig(streams, 2, 3, "sinusoidal", max_length=LENGTH), vocab_size=10)
    drawn = [mqar(2, times * LENGTH, seed=times, **RECALL) for times in TIMES]
    texts = [
        [
            {
                "tokens": samples.tokens[n].tolist(),
                "targets": samples.targets[n].tolist(),
                "questions": np.flatnonzero(samples.scored[n]).tolist(),
            }
            for n in range(2)
        ]
        for samples in drawn
    ]
    kinds = ["key"] * 4 + ["value"] * 4 + ["noise"] * 2
    asked = {"times": TIMES, "factors": (1, 8), "kinds": kinds, "names": list("ABCD0123-."), "bands": BANDS}
    shares = {1: [0.9, 0.25], 8: [0.8, 0.75]}
    return model, {"packed": packed(model), "texts": texts, **asked, "shares": shares, "many": 9}, drawn


def test_the_page_recalls_the_values_that_the_model_recalls(chromium, built) -> None:
    """Its likeliest value at every question, as trained and slowed down."""
    model, data, drawn = recall()
    with opened(chromium, built("recall", data)) as page:
        for chosen, samples in enumerate(drawn):
            for factor, n in itertools.product((1, 8), (0, 1)):
                with torch.no_grad():
                    logits = slowed_down(rounded(model), factor)(torch.from_numpy(samples.tokens[n])[None])[0]
                wanted = 4 + logits[samples.scored[n], 4:8].argmax(-1)
                read = "given => document.querySelector('#moving-one').sepnb.read(...given)"
                assert page.evaluate(read, [chosen, n, factor]) == wanted.tolist()


def test_a_longer_text_and_slower_positions_change_what_is_said(chromium, built) -> None:
    with opened(chromium, built("recall", recall()[1]), viewport=reading.PHONE) as page:
        assert page.locator(".recall-asked > *").count() == 3 and page.locator(".recall-key").count() == 3
        page.get_by_label("Make the text longer").focus()
        page.keyboard.press("ArrowRight")
        page.locator(".moving-said", has_text="in 9 texts of this length it finds 25 %").wait_for()
        page.get_by_label("Slow positions down").focus()
        page.keyboard.press("ArrowRight")
        page.locator(".moving-said", has_text="With positions 8 times slower").wait_for()
        page.locator(".moving-said", has_text="it finds 75 % of the values").wait_for()
        assert fits_a_phone(page)


# --- small figures


def grid_map(says: str, *, drawn: bool = False) -> dict:
    """What an embedding makes of a grid of 14 by 14 places, as a page carries it."""
    places = grid_positions(14, 14)
    vectors = grid_sinusoidal(places, 8)
    if not drawn:
        return {"says": says, "keys": vectors.tolist()}
    keys = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))
    return {"says": says, "queries": vectors.tolist(), "keys": keys.tolist()}


SMALL = {
    "phasors": {"d": 32, "base": 10_000, "most": 512},
    "extensions": {"d": 64, "base": 10_000, "length": 2048, "factor": 8, "alpha": 1, "beta": 32},
    "slopes": {"heads": 8, "length": 128},
    "odometer": {"most": 100_000, "start": 999},
    "training": {
        "steps": [0, 250],
        "positions": [0, 5, 9],
        "places": [[[0, 0], [1, 1], [2, 0]]] * 2,
        "start": 0,
    },
    "grid": {"side": 14, "trained": 7, "maps": [grid_map("sinusoid"), grid_map("drawn", drawn=True)]},
}


def test_the_formulas_of_the_page_are_those_of_the_package(chromium, built) -> None:
    """Every formula behind a small figure, over the whole range of its controls, to 1e-6."""
    with opened(chromium, built("slopes", SMALL["slopes"])) as page:

        def js(name: str, *given: object) -> np.ndarray:
            return np.array(page.evaluate(f"given => sepnb.formulas.{name}(...given)", list(given)))

        for d, base in itertools.product((8, 64), (10, 10_000, 10**6.5)):
            w = rope_frequencies(d, base=base)[0]
            np.testing.assert_allclose(js("frequencies", d, base), w, rtol=1e-6)
            np.testing.assert_allclose(js("turns", w.tolist(), 2048), 2048 * w / (2 * np.pi), rtol=1e-6)
            equal = torch.zeros(1, d, dtype=torch.float64)
            equal[:, : d // 2] = 1  # (1, 0) in every pair of the layout "half"
            for distance in (0, 1, 37, 512):
                turned = apply_rope(equal, torch.tensor([distance]), w)
                np.testing.assert_allclose(
                    js("score", w.tolist(), distance), (turned * equal).sum(), atol=1e-6
                )
            for s, length, (alpha, beta) in itertools.product(
                (1, 8, 32), (128, 2048, 2**17), ((0.25, 9), (8, 64))
            ):
                told = {"d": d, "base": base, "w": w.tolist()}
                told |= {"s": s, "L": length, "alpha": alpha, "beta": beta}
                for name, extension in {
                    "pi": PositionInterpolation(s),
                    "ntk": NTKAware(s),
                    "parts": NTKByParts(s, length, alpha, beta),
                    "yarn": YaRN(s, length, beta, alpha),
                }.items():
                    wanted = rope_frequencies(d, base=base, extension=extension)[0]
                    np.testing.assert_allclose(
                        js(f"EXTENSIONS.{name}", told), wanted, rtol=1e-6, err_msg=name
                    )
        for heads in range(1, 33):
            np.testing.assert_allclose(
                js("slopes", heads), alibi_slopes(heads, dtype=torch.float64), rtol=1e-6
            )
        for base, width in ((2, 17), (3, 11), (10, 5), (16, 5)):
            for position in (0, 9, 999, 65_535, 99_999):
                assert (
                    js("digits", position, base, width).tolist()
                    == digits([position], base=base, width=width)[0].tolist()
                )


@pytest.mark.parametrize("kind", SMALL)
def test_every_slider_of_a_small_figure_moves_by_keys_and_changes_what_it_says(kind, chromium, built) -> None:
    with opened(chromium, built(kind, SMALL[kind]), viewport=reading.PHONE) as page:
        for slider in page.locator("#moving-one input[type=range]").all():
            before = page.locator("#moving-one").inner_html()
            slider.focus()
            page.keyboard.press("ArrowRight")
            page.wait_for_function(
                "before => document.querySelector('#moving-one').innerHTML !== before", arg=before
            )
            for key in ("Home", "End"):  # nothing breaks at an end; `opened` looks for errors
                page.keyboard.press(key)
                page.evaluate(reading.SETTLED)
                assert page.locator("#moving-one .moving-said").text_content()
                drawn = page.locator("#moving-one svg").evaluate_all(
                    "all => all.map(one => one.outerHTML).join()"
                )
                assert drawn and "NaN" not in drawn and "Infinity" not in drawn and "undefined" not in drawn
        assert fits_a_phone(page)


def test_the_grid_shows_products_and_counts_neighbours_among_the_most_similar(chromium, built) -> None:
    with opened(chromium, built("grid", SMALL["grid"])) as page:
        said = page.locator(".moving-said")
        for which, one in enumerate(SMALL["grid"]["maps"]):
            keys = np.array(one["keys"])
            queries = np.array(one.get("queries", keys))
            page.get_by_label("Embedding").select_option(str(which))
            for row, column in ((0, 0), (6, 13), (4, 4)):
                here = 14 * row + column
                got = page.evaluate(
                    "given => document.querySelector('#moving-one').sepnb.products(...given)", [which, here]
                )
                wanted = keys @ queries[here]
                np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
            page.get_by_role("slider", name="Row").fill("5")
            page.get_by_role("slider", name="Column").fill("5")
            others = np.delete(np.arange(196), here)
            nearest = others[np.argsort(-wanted[others], kind="stable")][:8]
            near = sum(max(abs(at // 14 - 4), abs(at % 14 - 4)) == 1 for at in nearest)
            page.wait_for_function(
                "told => document.querySelector('.moving-said').textContent.includes(told)",
                arg=f"Of its 8 neighbours {near} are among the 8 most similar",
            )
            assert said.text_content().startswith(f"{one['says']}: row 5, column 5")


def test_the_chapter_in_the_book_moves_from_a_folder_and_stands_still_without_scripts(chromium, site) -> None:
    address = (site / "notebooks" / "executed" / "21_inside.html").as_uri()
    with reading.opened(chromium, site.as_uri()) as (page, traffic):
        page.goto(address)
        said = page.locator("#moving-model .moving-said")
        before = said.text_content()
        page.get_by_role("slider", name="Start index").focus()
        page.keyboard.press("End")
        page.wait_for_function(
            "before => document.querySelector('.moving-said').textContent !== before", arg=before
        )
        assert "bits each" in said.text_content() and traffic == []
    with reading.opened(chromium, site.as_uri(), java_script_enabled=False) as (page, _):
        page.goto(address)
        for name in ("fig-page-rules", "fig-page-parts"):
            assert page.locator(f"#{name} img").is_visible()
        assert page.locator("[data-interactive] noscript p").is_visible()

"""Every page of the built book read in Chromium without a network, and the same checks on wrong pages."""

import json

import pytest

from sepnb.companion.book.dark import PAGE, both_modes, contrast, seen
from sepnb.plots.looks import GROUND, INK, METHODS, WORDS

from . import browser as reading
from .conftest import CONFIG


def test_every_page_reads_offline(chromium, site, address) -> None:
    """No request leaves or fails, no console error, math typeset, alt texts, no line of code and no formula
    cut off on a desktop, nothing wider than a phone."""
    names = reading.pages(site)
    assert "book/index.html" in names and "search.html" in names
    found = {}
    with reading.opened(chromium, address) as (page, traffic):
        for name in names:
            if problems := reading.inspect(page, traffic, f"{address}/{name}"):
                found[name] = problems
    assert not found, json.dumps(found, indent=1)


def test_the_root_leads_to_the_landing_page(chromium, address) -> None:
    with reading.opened(chromium, address) as (page, traffic):
        page.goto(f"{address}/")
        page.wait_for_url("**/book/index.html")
        assert traffic == []


def test_math_is_typeset_from_a_folder_too(chromium, site) -> None:
    """A saved copy is read without any server."""
    base = site.as_uri()
    with reading.opened(chromium, base) as (page, traffic):
        assert reading.inspect(page, traffic, f"{base}/book/notation.html") == []
        assert page.locator("mjx-container").count() > 20


def test_search_works_without_a_network_and_says_what_it_does_not_find(chromium, address) -> None:
    with reading.opened(chromium, address) as (page, traffic):
        for word in ("stream", "attention"):
            page.goto(f"{address}/search.html?q={word}")
            page.locator("#search-results ul.search li a").first.wait_for()
            page.locator("#search-results p.search-summary", has_text="found").wait_for()
            links = page.locator("#search-results ul.search li a").evaluate_all("all => all.map(a => a.href)")
            assert any("/book/glossary.html" in link for link in links)
        page.goto(f"{address}/search.html?q=zzyzxq")
        page.locator("#search-results", has_text="did not match any documents").wait_for()
        assert traffic == []


def test_the_mode_follows_the_system_and_its_switch_changes_what_is_seen(chromium, address) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    mode = "() => document.documentElement.dataset.theme"
    with reading.opened(chromium, address, color_scheme="dark") as (page, _):
        page.goto(f"{address}/book/index.html")
        assert page.evaluate(mode) == "dark"
    with reading.opened(chromium, address, color_scheme="light") as (page, traffic):
        page.goto(f"{address}/book/index.html")
        assert page.evaluate(mode) == "light"
        light = page.evaluate(ground)
        for _ in range(3):  # the switch goes through auto, light and dark
            page.locator(".theme-switch-button:visible").first.click()
            if page.evaluate(mode) == "dark":
                break
        assert page.evaluate(mode) == "dark"
        page.wait_for_function(f"light => ({ground})() !== light", arg=light)
        assert traffic == []


def test_claims_are_chosen_by_word_verdict_and_timing_and_a_link_opens_one(chromium, site) -> None:
    page_of = f"{site.as_uri()}/book/claims.html"  # from a folder, too
    with reading.opened(chromium, site.as_uri()) as (page, traffic):
        page.goto(page_of)
        form, every = page.locator("form.sepnb-filter"), page.locator("details.sepnb-claim")
        shown = page.locator("details.sepnb-claim:visible")
        assert shown.count() == every.count() > 100
        form.locator("[name=words]").fill("ALiBi window")
        assert 0 < shown.count() < every.count()
        assert all("alibi" in text.lower() for text in shown.all_text_contents())
        form.locator("[name=words]").fill("")
        form.locator("[name=verdict]").select_option("refuted")
        words = shown.locator("summary .sepnb-badge").all_text_contents()
        assert {word.partition(",")[0] for word in words} == {"refuted"}
        assert form.locator("output").text_content() == f"{len(words)} of {every.count()}"
        form.locator("[name=verdict]").select_option("")
        form.locator("[name=late]").check()
        late = [text for text in every.all_text_contents() if "after records were made" in text]
        assert shown.all_text_contents() == late != []
        page.goto(f"{page_of}#claim-seqpe-survives")
        page.locator("#claim-seqpe-survives[open]").wait_for()
        assert traffic == []


BROKEN = {
    "undefined_macro": r"$\undefinedmacro{x}$",
    "open_brace": r"$\frac{a}{b$",
    "open_brace_display": "$$\n\\frac{a}{b\n$$",
    "extra_brace": r"$a}$",
    "unknown_environment": "$$\n\\begin{nosuchenvironment} a \\end{nosuchenvironment}\n$$",
    "unfinished_environment": "$$\n\\begin{aligned} a\n$$",
    "lonely_left": r"$\left( a$",
    "double_superscript": r"$a^b^c$",
    "missing_argument": r"$\frac{a}$",
    "unclosed_dollar": r"$\frac{a}{b} and more",
}


def test_every_kind_of_broken_latex_is_found(chromium, project) -> None:
    """With the math settings of the book, and by the function that judges its pages."""
    pages = {f"{name}.md": f"# Title\n\nBefore {tex} after.\n" for name, tex in BROKEN.items()}
    pages |= {f"{name}.md": f"# Title\n\n{tex}\n" for name, tex in BROKEN.items() if tex.startswith("$$")}
    sound = "# Title\n\n$\\frac{a}{b}$, and\n\n$$\n\\begin{aligned} a &= b \\end{aligned}\n$$\n"
    index = "# Book\n\n```{toctree}\nsound\n" + "\n".join(BROKEN) + "\n```\n"
    built = project({"index.md": index, "sound.md": sound, **pages})
    assert CONFIG["sphinx"]["config"]["mathjax3_config"]["tex"]["packages"]["[-]"], "errors would be hidden"
    with reading.served(built.html) as base, reading.opened(chromium, base) as (page, traffic):
        assert reading.inspect(page, traffic, f"{base}/sound.html") == []
        assert page.locator("mjx-container").count() == 2
        missed = [name for name in BROKEN if not _math(reading.inspect(page, traffic, f"{base}/{name}.html"))]
    assert missed == []


def _math(problems: list[str]) -> list[str]:
    return [problem for problem in problems if "LaTeX" in problem or "math" in problem]


LONG = f'style="overflow-x: auto; width: 600px">{"x" * 120}</pre>'
WRONG = {
    "external_script": ('<script src="https://example.org/x.js"></script>', "external request"),
    "external_image": ('<img src="https://example.org/x.png" alt="a picture">', "external request"),
    "external_font": ("<style>@import url(https://example.org/x.css)</style>", "external request"),
    "missing_script": ('<script src="nowhere.js"></script>', "failed request: 404"),
    "console": ("<script>console.error('an error')</script>", "console error: an error"),
    "exception": ("<script>undefinedFunction()</script>", "undefinedFunction"),
    "no_alt": ('<img src="dot.svg">', "without alt text"),
    "address_as_alt": ('<img src="dot.svg" alt="dot.svg">', "without alt text"),
    "empty_alt": ('<img src="dot.svg" alt=" ">', "without alt text"),
    "broken_image": ('<img src="broken.svg" alt="a picture">', "does not load"),
    "drawing": ('<svg role="img"><title>A</title></svg>', "without title and description"),
    "wide": ('<div style="width: 900px; height: 9px">x</div>', "sticks out"),
    "clipped": ('<div style="overflow: hidden"><pre style="width: 900px">x</pre></div>', "sticks out"),
    "long_line": (f'<div class="cell_input"><pre {LONG}</div>', "cut off at the right"),
    "endless": ('<div class="cell_output"><pre>' + "0.0,\n" * 99 + "</pre></div>", "prints 99 lines"),
    "folded": (f'<details><div class="cell_output"><pre {LONG}</div></details>', "cut off at the right"),
    "missing_number": ('<span class="sepnb-missing">??</span>', "something is missing"),
}


def test_everything_else_that_may_be_wrong_is_found(chromium, tmp_path) -> None:
    page_of = (
        '<!DOCTYPE html><meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
    )
    fine = '<img src="dot.svg" alt="a dot"><div style="overflow-x: auto"><p style="width: 900px">x</p></div>'
    (tmp_path / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    (tmp_path / "broken.svg").write_text("this is no picture")
    for name, (html, _) in {**WRONG, "fine": (fine, "")}.items():
        (tmp_path / f"{name}.html").write_text(f"{page_of}<body><article>{html}</article>")
    with reading.served(tmp_path) as base, reading.opened(chromium, base) as (page, traffic):
        assert reading.inspect(page, traffic, f"{base}/fine.html") == []
        found = {name: reading.inspect(page, traffic, f"{base}/{name}.html") for name in WRONG}
    assert [name for name, (_, said) in WRONG.items() if said not in " ".join(found[name])] == [], found


def test_what_scrolls_sideways_on_a_phone_takes_the_focus_has_a_name_and_shows_an_edge(
    chromium, address
) -> None:
    with reading.opened(chromium, address, viewport=reading.PHONE) as (page, traffic):
        page.goto(f"{address}/notebooks/executed/09_split_mlp_norm.html")
        page.evaluate(reading.MATH)
        page.evaluate(reading.SETTLED)
        boxes = page.locator("article [data-scrolls]")
        kinds = set(boxes.evaluate_all("all => all.map(one => one.dataset.scrolls)"))
        assert {"equation", "table"} <= kinds
        for kind in ("equation", "table"):
            box = page.locator(f"article [data-scrolls={kind}]:visible").first
            assert "scrolls sideways" in box.get_attribute("aria-label")
            assert "inset" in box.evaluate("one => getComputedStyle(one).boxShadow")
            box.focus()
            before = box.evaluate("one => one.scrollLeft")
            page.keyboard.press("ArrowRight")
            page.wait_for_function("([one, at]) => one.scrollLeft > at", arg=[box.element_handle(), before])
        assert traffic == []


def test_a_drawing_has_the_ground_of_a_dark_page_and_ink_to_be_seen_on_it(chromium, tmp_path) -> None:
    square = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
    square += (
        f'<path style="fill: {GROUND}" d="M0 0h9v9H0z"/><path style="fill: {INK}" d="M3 3h3v3h-3z"/></svg>'
    )
    (tmp_path / "square.svg").write_text(both_modes(square))
    assert both_modes(both_modes(square)) == both_modes(square)
    colours = """
    async () => {
      const image = document.querySelector("img"), canvas = document.createElement("canvas");
      canvas.width = canvas.height = 90;
      canvas.getContext("2d").drawImage(image, 0, 0, 90, 90);
      return [5, 45].map(at => [...canvas.getContext("2d").getImageData(at, at, 1, 1).data]);
    }"""
    with reading.served(tmp_path) as base, reading.opened(chromium, base) as (page, traffic):
        found = {}
        for mode in ("light", "dark"):
            (tmp_path / f"{mode}.html").write_text(
                f'<!DOCTYPE html><html style="color-scheme: {mode}"><link rel="icon" href="data:,">'
                '<img src="square.svg" width="90" height="90" alt="a square">'
            )
            page.goto(f"{base}/{mode}.html")
            found[mode] = page.evaluate(colours)
        assert traffic == []
    (ground, ink), (dark_ground, dark_ink) = found["light"], found["dark"]
    assert ground == [251, 251, 249, 255] and ink == [38, 40, 43, 255]
    assert dark_ground[3] == 0 and min(dark_ink[:3]) > 200 and dark_ink[3] == 255


def test_every_colour_of_a_method_can_be_seen_on_a_dark_page() -> None:
    assert all(contrast(seen(method.colour), PAGE) >= WORDS for method in METHODS.values())
    assert seen("#ffffff") == "#ffffff" and contrast("#000000", "#ffffff") == pytest.approx(21)


def test_separated_models_of_two_encodings_differ_on_a_dark_page_in_lightness_too() -> None:
    one, other = (seen(METHODS[f"separated-{kind}"].colour) for kind in ("sinusoidal", "learned"))
    assert contrast(one, other) > 1.5 and one != seen(METHODS["sinusoidal"].colour)


def test_a_figure_that_moves_has_a_slider_for_keys_in_sight_and_sends_nothing_away(chromium, address) -> None:
    with reading.opened(chromium, address) as (page, traffic):
        page.goto(f"{address}/notebooks/executed/16_two_losses.html")
        figure = page.locator("#moving-losses")
        figure.scroll_into_view_if_needed()
        slider, said = figure.get_by_label("Steps of training"), figure.locator(".moving-said")
        before = said.text_content()
        slider.focus()
        page.keyboard.press("ArrowLeft")
        page.wait_for_function(
            "was => document.querySelector('#moving-losses .moving-said').textContent !== was", arg=before
        )
        assert slider.is_visible() and figure.locator("circle").count() == 64
        assert traffic == []

"""What a reader's browser must find on a page, checked in a real Chromium with the network cut off.

The same functions judge the built book and the deliberately broken pages, so that a check which finds nothing
in the book is known to find something where something is wrong.
"""

import functools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from sepnb.companion.run.doctor import CHROMIUM

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 812}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # there is no network
]

MATH = r"""
async () => {
  if (window.MathJax && MathJax.startup && MathJax.startup.promise) await MathJax.startup.promise;
  const problems = [], short = text => text.trim().replace(/\s+/g, " ").slice(0, 80);
  for (const node of document.querySelectorAll(".math"))
    if (!node.querySelector("mjx-container")) problems.push("math not typeset: " + short(node.textContent));
  for (const node of document.querySelectorAll("mjx-merror, [data-mjx-error]")) {
    const why = node.getAttribute("data-mjx-error") || node.textContent;
    problems.push("bad LaTeX: " + short(why));
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const skipped = "code, pre, script, style, template, textarea, mjx-container, .math, title, desc";
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const latex = /\\[()\[\]]|\$\$|\\begin\{|\\(frac|text|mathbb)\b/.test(text.data);
    if (latex && !text.parentElement.closest(skipped))
      problems.push("LaTeX left as text: " + short(text.data));
  }
  return problems;
}
"""

CONTENT = r"""
() => {
  const problems = [];
  for (const image of document.querySelectorAll("img")) {
    const alt = (image.getAttribute("alt") || "").trim(), source = image.getAttribute("src") || "";
    if (!alt || alt === source)  // Sphinx fills in the address where nobody wrote anything
      problems.push("image without alt text: " + source.slice(0, 80));
  }
  for (const image of document.querySelectorAll("img"))
    if (image.complete && image.naturalWidth === 0)
      problems.push("image does not load: " + image.src.slice(0, 80));
  for (const drawing of document.querySelectorAll("article svg[role=img]"))
    if (!drawing.querySelector("title") || !drawing.querySelector("desc"))
      problems.push("drawing without title and description");
  for (const node of document.querySelectorAll(".sepnb-missing, .problematic, .system-message"))
    problems.push("something is missing: " + node.textContent.slice(0, 80));
  return problems;
}
"""

# A line of code or a formula that is wider than its box is read by scrolling, which a page of a book should
# not ask for on a desktop; and where sixty lines are printed somebody forgot to keep a value. Signatures and
# docstrings of the package are set as they stand in the source.
CUT = r"""
() => {
  const problems = [], short = text => text.trim().replace(/\s+/g, " ").slice(0, 80);
  for (const folded of document.querySelectorAll("article details")) folded.open = true;
  const boxes = "article :is(.cell_input, .cell_output) pre, article div.math mjx-container";
  for (const node of document.querySelectorAll(boxes)) {
    const cut = node.scrollWidth - node.clientWidth;
    if (node.clientWidth && cut > 1 && !node.closest("dl.py"))
      problems.push(`cut off at the right by ${cut} px: ` + short(node.textContent));
    const lines = node.textContent.trim().split("\n").length;
    if (node.closest(".cell_output") && lines > 60)
      problems.push(`prints ${lines} lines: ` + short(node.textContent));
  }
  return problems;
}
"""

# What sticks out of the viewport and cannot be reached by scrolling its own box. What the theme keeps
# off-screen on purpose (closed drawers, labels for screen readers) is not content of the page.
OVERFLOW = r"""
() => {
  const width = document.documentElement.clientWidth, problems = [];
  if (document.documentElement.scrollWidth > width + 1)
    problems.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width} px`);
  const scrolls = node => /auto|scroll/.test(getComputedStyle(node).overflowX);
  for (const node of document.querySelectorAll("article *")) {
    const box = node.getBoundingClientRect(), hidden = getComputedStyle(node).visibility === "hidden";
    if (!box.width || !box.height || box.right <= width + 1 || hidden) continue;
    if (node.closest("mjx-assistive-mml, .visually-hidden, .sr-only, dialog")) continue;
    let parent = node.parentElement;
    while (parent && !scrolls(parent)) parent = parent.parentElement;
    if (parent && parent !== document.documentElement && parent !== document.body
        && parent.getBoundingClientRect().right <= width + 1) continue;
    problems.push(`<${node.tagName.toLowerCase()} class="${node.getAttribute("class") || ""}"> sticks out to `
                  + `${Math.round(box.right)} px`);
    if (problems.length > 4) break;
  }
  return problems;
}
"""

# The theme and MathJax lay out anew with the next frame.
SETTLED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"


Traffic = list[str]
"""What a page asked for in vain or outside, and complained about, in words."""


def pages(site: Path) -> list[str]:
    """Every page of a built site, relative to it, but for those that nobody wrote: root pages, which only
    forward to a landing page, and of listings of source files and pages of the reference nine of ten."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    left_out = {path for path in found if 'http-equiv="Refresh"' in (site / path).read_text("utf-8")[:200]}
    for folder in ("_modules/", "book/api/"):
        alike = [path for path in found if path.startswith(folder)]
        left_out |= set(alike) - set(alike[::10])
    return [path for path in found if "_static/" not in path and path not in left_out]


def chromium() -> str:
    """Path of a Chromium; without one a test is skipped, which fails it in CI, and says how to get it."""
    if found := next(filter(None, map(shutil.which, CHROMIUM)), None):
        return found
    how = "e.g. `apt-get install chromium` or `brew install --cask chromium`"
    pytest.skip(f"no Chromium on PATH; install one, {how}")


@contextmanager
def launched() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class _Quiet(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/favicon.ico":
            return super().do_GET()
        self.send_response(204)  # a browser asks for it where no page does
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder over HTTP on loopback; yields the address without a final slash."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def opened(browser: Browser, base: str, **options: object) -> Iterator[tuple[Page, Traffic]]:
    """A fresh page without a network, where every attempt to reach more than `base` is recorded.

    Nothing is routed through Python: that would turn off the cache, and every page would load MathJax anew.
    """
    context = browser.new_context(**({"viewport": DESKTOP} | options))
    context.set_default_timeout(180_000)  # a busy machine is slow, not wrong
    traffic: Traffic = []

    def watch(request) -> None:
        if not request.url.startswith((f"{base}/", "data:", "blob:")):
            traffic.append(f"external request: {request.url}")

    def answered(answer) -> None:
        if answer.status >= 400:
            traffic.append(f"failed request: {answer.status} {answer.url}")

    def said(message) -> None:
        if message.type == "error":
            traffic.append(f"console error: {message.text}")

    def failed(request) -> None:
        if request.failure != "net::ERR_ABORTED":  # an icon still on its way as the page before was left
            traffic.append(f"failed request: {request.url}")

    page = context.new_page()
    page.on("request", watch)
    page.on("response", answered)
    page.on("console", said)
    page.on("pageerror", lambda error: traffic.append(f"console error: {error}"))
    page.on("requestfailed", failed)
    try:
        yield page, traffic
    finally:
        context.close()


def inspect(page: Page, traffic: Traffic, address: str) -> list[str]:
    """Every problem of one page, in words: requests, console, math, images, what is cut off on a
    desktop, and width on a phone."""
    traffic.clear()
    page.set_viewport_size(DESKTOP)
    page.goto(address, wait_until="load")
    found = page.evaluate(MATH) + page.evaluate(CONTENT) + page.evaluate(CUT)
    page.set_viewport_size(PHONE)
    page.evaluate(SETTLED)
    found += [f"at {PHONE['width']} px: {problem}" for problem in page.evaluate(OVERFLOW)]
    return traffic + found

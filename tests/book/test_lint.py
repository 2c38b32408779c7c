"""The prose lint: what it finds, what it leaves alone, and that the project's own prose passes."""

import ast

import pytest
from markdown_it import MarkdownIt

from .prose import _markdown_cells, lint, sources


@pytest.mark.parametrize(
    "text",
    [
        "The loss is 2.34 bits.",
        "A gain of 12%.",
        "It fell by .5 bits.",
        "| method | 2.31 |",
        "A loss of \N{MINUS SIGN}0.5.",
        "It costs \\$5.50 a run.",
        "```{note}\nA loss of 2.34.\n```",
        "```{figure} plot.svg\n:alt: a plot\nA caption with 2.34.\n```",
        "<p>A loss of 2.34</p>",
        "[a loss of 2.34](page.md)",
    ],
)
def test_a_typed_number_is_found_once(text: str) -> None:
    problems = lint(text)
    assert len(problems) == 1, problems
    assert problems[0].text in text


@pytest.mark.parametrize(
    "text",
    [
        "The loss is {num}`11_language_model/bpb_rope_mean:.3f`.",
        "In math $a = 0.5$ and $$b = 1.5$$.",
        "$$\nb = 1.5\n$$",
        "In code `x = 0.5` and ``y = `1.5` ``.",
        "```python\nx = 0.5\n```",
        "```{code-block} python\n:emphasize-lines: 1\nx = 0.5\n```",
        "```{math}\n:label: eq\nx = 0.5\n```",
        "```{figure} plot.svg\n---\nwidth: 12.5%\n---\nA caption.\n```",
        "As {cite:t}`press2022` say [@press2022, p. 1.5].",
        "See <https://example.org/v1.5> and [there](https://example.org/1.5).",
        "<!-- a comment: 0.5 -->",
        "<style>\n.a { opacity: 0.5; }\n</style>",
        "---\ntitle: 0.5\n---\n# Title",
        "Chapter 11, 3 seeds, 2026, h2o and 01_order.",
        "The rate is 0.5 <!-- given: a setting of the optimiser -->.",
        "<!-- given: sizes of the grid -->\n\n| rate |\n|---|\n| 0.5 |\n| 1.5 |",
    ],
)
def test_what_is_no_typed_result_is_left_alone(text: str) -> None:
    assert lint(text) == []


def test_a_mark_needs_a_reason_and_covers_only_its_line_or_table() -> None:
    (problem,) = lint("The rate is 0.5 <!-- given: -->.")
    assert "no reason" in problem.why
    assert [found.line for found in lint("0.5 <!-- given: a setting -->\n0.6\n")] == [2]
    table = "<!-- given: sizes -->\n| rate |\n|---|\n| 0.5 |\n\nThen 0.7.\n"
    assert [found.line for found in lint(table)] == [6]


CHAPTER = """\
# ---
# jupyter: {version: 1.16}
# ---

# %% [markdown]
# # Title
# The loss is 2.34.

# %%
rate = 0.5  # not prose: 0.5

# %% [markdown] tags=["a"]
# In code `0.5`; measured 12%.
# ```python
# x = 0.5
# ```
"""


def test_only_the_markdown_cells_of_a_chapter_are_prose_and_lines_are_those_of_the_file(tmp_path) -> None:
    script = tmp_path / "01_chapter.py"
    script.write_text(CHAPTER)
    problems = lint(script)
    assert [(found.path, found.line) for found in problems] == [(str(script), 7), (str(script), 13)]
    assert problems[0].text == "# The loss is 2.34."


def test_no_result_is_typed_into_the_book() -> None:
    prose = sources()
    assert {path.suffix for path in prose} == {".md", ".py"}, "the book or the chapters were not found"
    assert [str(problem) for path in prose for problem in lint(path)] == []


@pytest.mark.parametrize("page", sources(), ids=lambda page: page.stem)
def test_python_that_a_page_shows_and_does_not_run_is_python(page) -> None:
    """A reader copies it, and no build executes it."""
    text = page.read_text()
    for token in MarkdownIt().parse(_markdown_cells(text) if page.suffix == ".py" else text):
        if token.type == "fence" and token.info.split()[:1] == ["python"]:
            ast.parse(token.content)

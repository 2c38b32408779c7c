"""The paper: it says what the book says, types no result, and is set only if whole and short enough."""

import importlib.util
import json
import re
import sys
from html import unescape
from types import SimpleNamespace

import pytest

from sepnb import claims, paths
from sepnb.claims.ledger import Row
from sepnb.claims.verdict import Verdict
from sepnb.companion.book import paper
from sepnb.plots import looks
from sepnb.records import numbers

from . import prose

TEXT = (paths.root() / "book" / "paper" / "paper.typ").read_text(encoding="utf-8")
SHORT = paths.root() / "book" / "paper" / "paper.md"
NAMES = list(dict.fromkeys(paper.NUMBER.findall(TEXT)))
QUOTED = list(dict.fromkeys(paper.VERDICT.findall(TEXT)))
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="80pt" height="40pt">
<rect width="80" height="40" fill="#fbfbf9"/></svg>"""


def asked_of_chapters() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for chapter, key in re.findall(r"(?m)^(\d\w+)/(\w+)", "\n".join(NAMES)):
        found.setdefault(chapter, set()).add(key)
    return found


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A build folder in which the chapters that the paper names have run: their numbers are those of the
    reference, and of each figure there is a grey one."""
    build = tmp_path_factory.mktemp("paper") / "build"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEPNB_BUILD", str(build))
        for chapter, keys in asked_of_chapters().items():
            kept = paths.root() / "tests" / "reference" / "smoke" / f"{chapter}.json"
            have = json.loads(kept.read_text(encoding="utf-8"))["numbers"]
            code = (paths.root() / "notebooks" / f"{chapter}.py").read_text(encoding="utf-8")
            # What has no reference, because nothing ran at smoke, is at least made by the chapter.
            have |= {key: numbers.NOT_RUN for key in keys - have.keys() if f'numbers["{key}"]' in code}
            numbers.publish(chapter, have, profile="laptop")
        shown: dict[str, list] = {}
        for name in paper.FIGURE.findall(TEXT):
            chapter, _, figure = name.partition("/")
            about = {"sepnb": {"name": figure, "alt": "A picture.", "caption": "It is grey."}}
            shown.setdefault(chapter, []).append({"data": {"image/svg+xml": SVG}, "metadata": about})
        for chapter, outputs in shown.items():
            notebook = json.dumps({"cells": [{"outputs": outputs}]})
            (build / "laptop" / f"{chapter}.ipynb").write_text(notebook, encoding="utf-8")
        yield build


@pytest.fixture(scope="module")
def found(published) -> dict[str, dict]:
    """What the paper says, looked up once."""
    return paper.looked_up(TEXT)


@pytest.fixture(scope="module")
def staged(published, found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "looked_up", lambda text: dict(found))
        return paper.stage(published / "paper")


def test_every_name_in_the_paper_is_there_and_its_verdicts_are_those_of_the_ledger(found):
    assert list(found["numbers"]) == NAMES and list(found["verdicts"]) == QUOTED
    assert len(NAMES) > 80 and len(QUOTED) > 20
    assert [name for name in NAMES if found["numbers"][name] == numbers.NOT_RUN and name[0].isalpha()] == []


def test_a_dagger_is_on_rules_that_are_younger_than_their_records(found):
    late = {told.partition(":")[0] for told in QUOTED if found["verdicts"][told]["late"]}
    assert "stretched-mqar-it-is-not-the-number-of-waves" in late
    assert "stretched-mqar-the-split-adds-to-it" not in late


def test_the_paper_shows_what_the_role_of_the_book_shows(published, found, project, monkeypatch):
    names = [name for at, name in enumerate(NAMES) if name[0].isdigit() or at % 6 == 0]
    monkeypatch.setenv("SEPNB_BUILD", str(published))
    built = project({"index.md": "# Book\n" + "".join(f"\n- {{num}}`{name}`\n" for name in names)})
    assert built.warnings == []
    shown = re.findall(r"<li><p>(.*?)</p>", built.page("index"), re.S)
    plain = [unescape(re.sub(r"<[^>]+>", "", one)).replace("\N{NO-BREAK SPACE}", " ") for one in shown]
    assert plain == [found["numbers"][name] for name in names] and len(plain) > 20


def test_the_paper_and_its_short_form_type_no_result():
    assert prose.typed(TEXT) == []
    assert prose.lint(SHORT) == []


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("It recalls 95.9% of them.", True),
        ('It recalls #num("a/b/c:.1%") of 0.9 values.', True),
        ('It recalls #num("a/b/c:.1%") of 16 values, $0.03$ worse @chen2023.', False),
        ("At the 95% level. // given: the level", False),
        ("At the 95% level. // given:", True),
        ('#chapter-figure("a/b", share: 74%)[A caption.]', False),
        ('#chapter-figure("a/b", share: 74%)[It recalls 74%.]', True),
    ],
)
def test_a_typed_result_is_refused_wherever_prose_is(line, refused):
    assert prose.typed(f"Before.\n{line}\nAfter.") == ([line] if refused else [])


def test_all_that_does_not_resolve_is_said_at_once(monkeypatch):
    claim = claims.get("the-five-extrapolate")
    monkeypatch.setattr(claims, "evaluate", lambda: [Row(claim, Verdict("held", "why"), (), None, None)])
    text = 'num("stretched_mqar/rope/akkuracy") // num("in a comment")\n'
    text += 'verdict("the-five-extrapolate: refuted") verdict("none: held")'
    with pytest.raises(paper.PaperError) as raised:
        paper.looked_up(text)
    said = str(raised.value).splitlines()
    assert len(said) == 3 and "akkuracy" in said[0]
    assert "the ledger says 'held'; write the sentence anew" in said[1] and "no claim 'none'" in said[2]


def test_what_typst_reads_is_in_one_folder_and_figures_are_on_white(staged):
    data = json.loads((staged.parent / "numbers.json").read_text(encoding="utf-8"))
    assert data["authors"] == ["The sepnb authors"] and "commit" in data["state"]
    assert looks.GROUND in SVG
    assert list(data["figures"]) == paper.FIGURE.findall(TEXT)
    for shown in data["figures"].values():
        assert shown["alt"] == "A picture."
        assert looks.GROUND not in (staged.parent / shown["file"]).read_text(encoding="utf-8")
    text = TEXT + (staged.parent / "layout.typ").read_text(encoding="utf-8")
    read = re.findall(r'(?:json\(|bibliography\(|import )"([^"]+)"', text)
    assert sorted(read) == ["layout.typ", "numbers.json", "references.bib"]
    assert all((staged.parent / name).is_file() for name in read)


def test_every_work_that_is_cited_is_among_the_references():
    known = set(re.findall(r"(?m)^@\w+\{(\w+),", (paths.root() / "book/references.bib").read_text("utf-8")))
    labels, prose = set(re.findall(r"<([\w-]+)>", TEXT)), paper.COMMENT.sub("", TEXT)
    cited = set(re.findall(r"(?<![\w.])@([\w-]*\w)", prose)) | set(re.findall(r"#cite\(<(\w+)>", prose))
    assert len(cited & known) > 25 and cited <= known | labels
    assert set(re.findall(r"@(\w+)", SHORT.read_text(encoding="utf-8"))) <= known


@pytest.mark.parametrize(("pages", "said"), [(8, None), (9, "9 pages, more than 8")])
def test_a_paper_that_is_too_long_is_refused(tmp_path, monkeypatch, pages, said):
    def compile(file, output=None, *, format, root, ignore_system_fonts):
        return [b""] * pages if format == "svg" else None

    monkeypatch.setitem(sys.modules, "typst", SimpleNamespace(compile=compile))
    if said is None:
        assert paper.typeset(tmp_path / "paper.typ", tmp_path / "paper.pdf") == pages
        return
    with pytest.raises(paper.PaperError, match=said):
        paper.typeset(tmp_path / "paper.typ", tmp_path / "paper.pdf")


def test_typst_sets_it_or_the_remedy_is_named(staged, monkeypatch):
    """With the wheel that `make paper` brings the paper is set; without it, it says what to do."""
    monkeypatch.syspath_prepend(str(paths.root() / "build" / "typst"))
    target = staged.with_suffix(".pdf")
    if importlib.util.find_spec("typst") is None:
        with pytest.raises(paper.PaperError, match="make paper brings it"):
            paper.typeset(staged, target)
        return
    assert 3 < paper.typeset(staged, target) <= paper.MOST_PAGES
    assert target.read_bytes().startswith(b"%PDF-")

"""The role that pastes a chapter's number: where it works, and what it says when it cannot."""

import json
import re
from pathlib import Path

import pytest

from sepnb import experiments
from sepnb.companion.book import quoted
from sepnb.companion.book.number_role import anchor, asked_of, number, typeset
from sepnb.records import numbers
from sepnb.records.store import Record, Store

from ..shared import MADE
from .conftest import book_of, notebook, shows

VALUES = {"loss": 2.34567, "gain": -0.25, "error": 3.1e-15, "seeds": 3, "winner": "rope"}
VALUES["gap"] = numbers.NOT_RUN


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Numbers of chapter 1_order at laptop, as its last cell publishes them."""
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    numbers.publish("01_order", VALUES, profile="laptop")
    return numbers.path("01_order", "laptop")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("01_order/loss:.3f", "2.346"),
        ("01_order/loss:.0e", "2\N{MULTIPLICATION SIGN}10⁰"),
        ("01_order/error:.1e", "3.1\N{MULTIPLICATION SIGN}10⁻¹⁵"),
        ("01_order/gain:.1%", "\N{MINUS SIGN}25.0%"),
        ("01_order/seeds:02d", "03"),
        ("01_order/winner", "rope"),
        ("01_order/gap:+.2f", "not run"),
    ],
)
def test_a_number_is_formatted(published, name: str, shown: str) -> None:
    assert number(name, "laptop") == shown


PLACES = """\
# Loss {num}`01_order/loss:.1f`

In prose {num}`01_order/loss:.2f`.

```{figure} picture.svg
:alt: a picture
A caption with {num}`01_order/loss:.3f`.
```

| cell |
|---|
| {num}`01_order/loss:.4f` |

~~~{list-table} Title {num}`01_order/seeds:02d`
* - {num}`01_order/seeds:03d`
~~~

~~~{admonition} Title {num}`01_order/seeds:04d`
{num}`01_order/loss:.5f`
~~~
"""


def test_a_number_works_in_titles_captions_tables_and_admonitions(published, project) -> None:
    built = project({"index.md": PLACES})
    assert built.warnings == []
    for shown in ("2.3", "2.35", "2.346", "2.3457", "2.34567", "03", "003", "0003"):
        assert f'<span class="sepnb-num">{shown}</span>' in built.page("index"), shown
    assert "??" not in built.page("index")


def test_a_number_of_a_chapter_links_to_the_cell_that_made_it(published, project) -> None:
    cells = [shows('numbers = {"seeds": 3}'), shows('numbers["loss"] = 2.3', metadata={}), shows("publish()")]
    chapter = notebook("# Order\n\nHere it is {num}`01_order/loss:.2f`.", *cells)
    built = project(book_of({"notebooks/executed/01_order": chapter}, "{num}`01_order/loss:.2f`"))
    assert built.warnings == []
    here, there = built.page("notebooks/executed/01_order"), built.page("index")
    for page, to in ((here, ""), (there, "notebooks/executed/01_order.html")):
        link = page.split('<span class="sepnb-num">')[1].split("</a>")[0]
        assert f'href="{to}#made-loss"' in link and ">2.35<" in link
    cell = re.search(r'id="made-loss".*?</pre>', here, re.S)[0]
    assert "2.3" in cell and "publish" not in cell


def test_a_page_follows_its_numbers_and_the_profile(published, project) -> None:
    index = {"index.md": "# Book\n\n{num}`01_order/loss:.2f`\n"}
    assert ">2.35<" in project(index).page("index")
    numbers.publish("01_order", VALUES | {"loss": 9.0}, profile="laptop")
    assert ">9.00<" in project({}).page("index")
    numbers.publish("01_order", VALUES | {"loss": 7.0}, profile="smoke")
    assert ">7.00<" in project({}, sepnb_profile="smoke").page("index")


WRONG = {
    "02_missing/loss": "02_missing has not run at laptop",
    "01_order/absent": "published no 'absent'",
    "01_order/winner:.3f": "does not take the format '.3f'",
    "01_order/loss:.3q": "does not take the format '.3q'",
    "loss": "write chapter/key",
    "../secrets/key": "is not a plain name",
    "03_broken/loss": "not valid JSON",
    "04_list/loss": "holds no 'numbers'",
}


def test_a_number_that_cannot_be_shown_is_one_located_warning(published, project) -> None:
    published.with_name("03_broken.json").write_text('{"numbers": {"loss": 2.')
    published.with_name("04_list.json").write_text(json.dumps([1, 2]))
    text = "# Book\n" + "".join(f"\nThe loss is {{num}}`{role}`.\n" for role in WRONG)
    text += "\n| cell |\n|---|\n| {num}`01_order/absent` |\n\n"
    text += "```{figure} picture.svg\n:alt: picture\n\nCaption {num}`01_order/gone`.\n```\n"
    built = project({"index.md": text})
    for place, (warning, said) in enumerate(zip(built.warnings, WRONG.values(), strict=False)):
        assert f"index.md:{2 * place + 3}: WARNING" in warning and said in warning
    assert len(built.warnings) == len(WRONG) + 2, built.warnings
    assert all("index.md:" in line for line in built.warnings), "in a table and a caption, too"
    assert built.page("index").count('<span class="sepnb-missing">??</span>') == len(WRONG) + 2


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """A store with three runs of each of two methods of `in_window` at laptop, and none of the others; one
    run at smoke, without that metric."""
    root, build = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("build")
    store, levels = Store(root), {"rope": 2.0, "none": 3.0}
    for config in experiments.get("in_window").grid("laptop"):
        if config.method in levels and config.seed <= 3:
            level = levels[config.method] + 0.1 * config.seed * (config.method == "rope")
            metrics = {"bits_per_byte": level, "floor": 1.0}
            facts = {"dirty": False, "seed": config.seed, "commit": "a" * 40, **MADE}
            store.write(Record.of(config, metrics=metrics, rows=[], fingerprint={}, provenance=facts))
    first = experiments.get("in_window").grid("smoke")[0]
    made = Record.of(
        first, metrics={"parameters": 3}, rows=[], fingerprint={}, provenance=facts | {"seed": first.seed}
    )
    Store(build / "smoke" / "results").write(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEPNB_BUILD", str(build))
        patch.setenv("SEPNB_RESULTS", str(root))
        yield


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("in_window/rope/bits_per_byte:.3f", "2.200"),
        ("in_window/rope minus none/bits_per_byte:+.2f", "\N{MINUS SIGN}0.80"),
        ("in_window/rope minus none/bits_per_byte:+.2f±", "\N{MINUS SIGN}0.80 ± 0.25"),
        ("in_window/rope minus alibi/bits_per_byte:.3f±", "not run"),
        ("in_window/rope/bits_per_byte minus floor:.2f", "1.20"),
        ("in_window/rope minus none/bits_per_byte minus floor:+.2f±", "+1.20 ± 0.25"),
        ("images/seqpe/class minus none/class/accuracy:.1%", "not run"),
    ],
)
def test_a_number_of_records_is_a_mean_over_seeds(recorded, name: str, shown: str) -> None:
    assert number(name, "laptop") == shown


def test_a_column_that_no_run_of_this_profile_has_yet_was_not_run(recorded) -> None:
    assert number("in_window/rope/bits_per_byte:.3f", "smoke") == "not run"
    assert number("in_window/rope minus none/bits_per_byte:+.3f±", "smoke") == "not run"
    with pytest.raises(ValueError, match="no column 'bits_per_bite'; did you mean bits_per_byte"):
        number("in_window/rope/bits_per_bite:.3f", "smoke")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("in_window/ropes/bits_per_byte:.3f", "in_window has no method 'ropes'; did you mean rope"),
        ("in_window/rope/bits_per_bite:.3f", "no column 'bits_per_bite'; did you mean bits_per_byte"),
        ("in_window/rope/bits_per_byte minus q:.3f", "no column 'q'; there are bits_per_byte, floor, label"),
        ("in_windows/rope/bits_per_byte", "in_window"),
    ],
)
def test_a_number_of_records_that_is_not_there_says_what_is(recorded, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        number(name, "laptop")


def test_a_number_of_records_links_to_its_runs(recorded, project, monkeypatch) -> None:
    name = "in_window/rope minus none/bits_per_byte"
    quotes = {"in_window": {name: "+.2f±"}}
    monkeypatch.setattr(quoted, "names", lambda root: quotes)
    index = f"# Book\n\n{{num}}`{name}:+.2f±`\n\n```{{toctree}}\nbook/numbers\n```\n"
    built = project({"index.md": index, "book/numbers.md": "# Runs\n\n## Here\n\n```{quoted-numbers}\n```\n"})
    assert built.warnings == []
    link = built.page("index").split('<span class="sepnb-num">')[1].split("</a>")[0]
    assert f'href="book/numbers.html#{anchor(name)}"' in link
    row = built.page("book/numbers").split(f'id="{anchor(name)}"')[1].split("</tr>")[0]
    said = re.sub(r"<[^>]+>", "", row)
    assert "0.80" in said and "bits_per_byte of rope minus none" in said
    values = asked_of(name, "laptop").values
    assert len(values) > 2 and all(
        f"{seed}: {typeset(f'{value:+.2f}')}" in said for seed, value in values.items()
    )


def test_quotes_are_found_across_lines_in_chapters_and_pages(tmp_path) -> None:
    for place, text in (
        (
            "notebooks/a.py",
            "# {num}`in_window/rope minus\n#    none/bits_per_byte:+.2f±` and {num}`01_order/loss`",
        ),
        ("book/b.md", "{num}`in_window/rope minus none/bits_per_byte:.1f`, {num}`images/none/accuracy`"),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text, encoding="utf-8")
    assert quoted.names(tmp_path) == {
        "images": {"images/none/accuracy": "g"},
        "in_window": {"in_window/rope minus none/bits_per_byte": "+.2f±"},
    }

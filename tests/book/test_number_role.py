"""The role that pastes a chapter's number: where it works, and what it says when it cannot."""

import json
import re
from pathlib import Path

import pytest

from sepnb import experiments
from sepnb.companion.book.number_role import number
from sepnb.records import numbers
from sepnb.records.store import Record, Store

from ..shared import MADE
from .conftest import book_of, notebook

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
        ("01_order/loss", "2.34567"),
        ("01_order/loss:.0e", "2\N{MULTIPLICATION SIGN}10⁰"),
        ("01_order/error:.1e", "3.1\N{MULTIPLICATION SIGN}10⁻¹⁵"),
        ("01_order/gain:.1%", "\N{MINUS SIGN}25.0%"),
        ("01_order/seeds", "3"),
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
    (project.source / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    built = project({"index.md": PLACES})
    assert built.warnings == []
    for shown in ("2.3", "2.35", "2.346", "2.3457", "2.34567", "03", "003", "0003"):
        assert f'<span class="sepnb-num">{shown}</span>' in built.page("index"), shown
    assert "??" not in built.page("index")


def test_a_number_works_in_an_executed_notebook_and_links_to_the_chapter_elsewhere(
    published, project
) -> None:
    chapter = notebook("# Order\n\nHere it is {num}`01_order/loss:.2f`.")
    built = project(book_of({"notebooks/executed/01_order": chapter}, "{num}`01_order/loss:.2f`"))
    assert built.warnings == []
    assert '<span class="sepnb-num">2.35</span>' in built.page("notebooks/executed/01_order")
    link = built.page("index").split('<span class="sepnb-num">')[1].split("</a>")[0]
    assert 'href="notebooks/executed/01_order.html"' in link and ">2.35<" in link


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
    built = project({"index.md": "# Book\n" + "".join(f"\nThe loss is {{num}}`{role}`.\n" for role in WRONG)})
    assert len(built.warnings) == len(WRONG), built.warnings
    for place, (warning, said) in enumerate(zip(built.warnings, WRONG.values(), strict=True)):
        assert f"index.md:{2 * place + 3}: WARNING" in warning and said in warning
    assert built.page("index").count('<span class="sepnb-missing">??</span>') == len(WRONG)


def test_a_missing_number_in_a_table_and_a_caption_is_located_too(published, project) -> None:
    (project.source / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    text = "# Book\n\n| cell |\n|---|\n| {num}`01_order/absent` |\n\n"
    text += "```{figure} picture.svg\n:alt: picture\n\nCaption {num}`01_order/gone`.\n```\n"
    built = project({"index.md": text})
    assert len(built.warnings) == 2, built.warnings
    assert all("index.md:" in line for line in built.warnings)
    assert built.page("index").count("??") == 2


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
        ("in_window/alibi/bits_per_byte:.3f", "not run"),
        ("in_window/rope minus alibi/bits_per_byte:.3f±", "not run"),
        ("in_window/rope/bits_per_byte minus floor:.2f", "1.20"),
        ("in_window/rope minus none/bits_per_byte minus floor:+.2f±", "+1.20 ± 0.25"),
        ("images/seqpe/class/accuracy:.1%", "not run"),
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
        ("in_window/rope minus ropes/bits_per_byte:.3f", "in_window has no method 'ropes'; did you mean"),
        ("in_window/rope/bits_per_bite:.3f", "no column 'bits_per_bite'; did you mean bits_per_byte"),
        ("in_window/rope/bits_per_byte minus q:.3f", "no column 'q'; there are bits_per_byte, floor, label"),
        ("in_windows/rope/bits_per_byte", "in_window"),
        ("in_window/rope/bits_per_byte:.3q", "does not take the format"),
    ],
)
def test_a_number_of_records_that_is_not_there_says_what_is(recorded, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        number(name, "laptop")


def test_a_number_of_records_links_to_the_records_and_follows_them(recorded, project) -> None:
    index = "# Book\n\n{num}`in_window/rope/bits_per_byte:.1f`\n\n```{toctree}\nbook/provenance\n```\n"
    built = project({"index.md": index, "book/provenance.md": "# Records\n\nHere.\n"})
    assert built.warnings == []
    link = built.page("index").split('<span class="sepnb-num">')[1].split("</a>")[0]
    assert 'href="book/provenance.html"' in link and ">2.2<" in link

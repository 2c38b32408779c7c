"""The three texts: who is in which split, and that nothing is lost on the way."""

import hashlib
import importlib.metadata
import re

import numpy as np
import pytest

from sepnb.data import containers, corpora, registry
from sepnb.data.dataset import DataDamaged
from sepnb.data.text import Document, Splits, load

from ..shared import refused

SPLITS = ("train", "validation", "test")


def disjoint(groups: list[set]) -> bool:
    return len(set.union(*groups)) == sum(map(len, groups))


def documents(splits: Splits) -> list[set[str]]:
    return [{document.name for document in getattr(splits, split).documents} for split in SPLITS]


@pytest.mark.parametrize("name", registry.names("text"))
def test_splits_share_no_document_and_lose_none(name, data_set):
    registered = data_set(name)
    splits = load(name)
    assert disjoint(documents(splits))
    contents = [
        {hashlib.sha256(document.data).digest() for document in getattr(splits, split).documents}
        for split in SPLITS
    ]
    assert disjoint(contents)
    assert sum(getattr(splits, split).bytes for split in SPLITS) == sum(map(len, registered.read().values()))
    assert splits.sha256 == registered.sha256
    assert registered.licence and registered.source and registered.note
    document = splits.test.documents[0]
    assert document.data.dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        document.data[0] = 0


@pytest.mark.parametrize("name", ["eltec-eng", "wikitext-2", "fashion-mnist", "babi"])
def test_registered_sizes_and_hashes_fit_together(name, data_set):
    """The whole and its parts are registered apart; both must describe the text at hand."""
    read = data_set(name).read()
    registered = registry.get(name)
    assert [(part.name, part.bytes) for part in registered.parts] == [
        (key, len(of)) for key, of in read.items()
    ]
    assert [part.sha256 for part in registered.parts] == [
        hashlib.sha256(of).hexdigest() for of in read.values()
    ]


def test_a_split_is_hashed_with_its_borders():
    data = np.arange(10, dtype=np.uint8)
    one, other = (
        corpora.Text("t", (corpora.Document("a", "", data[:cut]), corpora.Document("b", "", data[cut:])))
        for cut in (4, 5)
    )
    assert one.sha256 != other.sha256
    content = b"a\t4\n" + data[:4].tobytes() + b"b\t6\n" + data[4:].tobytes()
    assert one.sha256 == hashlib.sha256(content).hexdigest()


# eltec-eng


def test_no_author_is_in_two_splits(data_set):
    data_set("eltec-eng")
    splits = load("eltec-eng")
    authors = [[document.author for document in getattr(splits, split).documents] for split in SPLITS]
    assert [len(of) for of in authors] == [69, 10, 20]
    assert disjoint([set(of) for of in authors])
    held_out = authors[1] + authors[2]
    assert len(set(held_out)) == len(held_out), "two held-out novels by one author are not independent"


def test_authors_are_told_apart_in_one_spelling():
    """Surname and first initial agree only where the whole name does, so no author is hidden by a variant."""
    names = {part.author for part in registry.get("eltec-eng").parts}
    short = [re.match(r"([^,]+),? ?(.?)", name).groups() for name in names]
    assert len(set(short)) == len(names)
    assert not any(re.search(r"\d|\[|\($", name) for name in names)


def test_the_split_is_the_one_that_the_hash_of_the_author_gives():
    parts = registry.get("eltec-eng").parts
    authors = [part.author for part in parts]
    lone = sorted(
        (a for a in authors if authors.count(a) == 1), key=lambda a: hashlib.sha256(a.encode()).hexdigest()
    )
    expected = dict.fromkeys(lone[:20], "test") | dict.fromkeys(lone[20:30], "validation")
    assert {part.name: part.split for part in parts} == {
        part.name: expected.get(part.author, "train") for part in parts
    }


# wikitext-2


def test_articles_are_whole_and_official(data_set):
    read = data_set("wikitext-2").read()
    splits = load("wikitext-2")
    for split, part, articles in (("train", "train", 600), ("validation", "valid", 60), ("test", "test", 60)):
        text = getattr(splits, split)
        assert len(text.documents) == articles
        assert (
            b"".join(document.data.tobytes() for document in text.documents)
            == read[f"wiki.{part}.tokens"].tobytes()
        )
        for document in text.documents:
            title = document.name.partition(" ")[2]
            assert document.data.tobytes().startswith(f" \n = {title} = \n \n".encode())


# sympy


def test_the_offline_text_needs_no_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SEPNB_DATA", str(tmp_path))
    splits = load("sympy")
    assert sum(getattr(splits, split).bytes for split in SPLITS) < 10_000_000
    assert min(getattr(splits, split).bytes for split in SPLITS) > 500_000
    assert not any("tests" in name.split("/") for names in documents(splits) for name in names)


def test_another_version_of_sympy_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.13.3")
    with pytest.raises(DataDamaged, match=r"sympy 1\.13\.3 is installed, and the text is .* sympy 1\.14\.0"):
        load("sympy")


def test_an_edited_sympy_is_refused(monkeypatch, tmp_path):
    package = tmp_path / "sympy"
    (package / "core").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "core" / "expr.py").write_text("print('edited')\n")
    monkeypatch.setattr(
        containers.importlib.util,
        "find_spec",
        lambda name: type("Spec", (), {"origin": str(package / "__init__.py")}),
    )
    refused(r"sympy: what lies in .* is not the registered text", load, "sympy", error=DataDamaged)


def test_an_unknown_name_is_answered_with_near_ones_and_words_with_how_to_give_their_bytes(unhooked):
    refused("unknown data set 'eltec'; did you mean eltec-eng", load, "eltec")
    for data in (b"words", np.zeros((2, 2), np.uint8)):
        refused(r"uint8, got .*; give np\.frombuffer", Document, "mine", "me", data, error=TypeError)

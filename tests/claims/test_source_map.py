"""The map of the sources is whole: no statement without a place, no place that does not exist."""

from collections import Counter

import pytest

from sepnb import claims, paths


@pytest.fixture(scope="module")
def source_map():
    return claims.source_map()


def test_the_four_documents_are_there(source_map):
    assert [document.source for document in source_map.documents] == [
        "slides-separation",
        "notes-positional-encoding",
        "article-positional-encoding",
        "seqpe-abstract",
    ]


def test_every_claim_of_a_source_is_mapped_from_that_source(source_map):
    """A claim that names a source must be found from at least one statement of it."""
    mapped = {(statement.source, statement.target) for statement in source_map.statements}
    sources = {document.source for document in source_map.documents}
    for claim in claims.CLAIMS:
        if claim.source in sources:
            assert (claim.source, claim.id) in mapped


def test_every_statement_points_to_what_exists(source_map):
    there = {
        "claim": {claim.id for claim in claims.CLAIMS},
        "chapter": {path.stem for path in (paths.root() / "notebooks").glob("*.py")},
        "page": {path.stem for path in (paths.root() / "book").glob("*.md")},
    }
    for one in source_map.statements:
        assert one.id.strip() and one.says.strip() and one.target.strip(), one
        assert one.kind in {*there, "not-empirical"}, one
        assert one.target in there.get(one.kind, {one.target}), one


def test_nothing_is_stated_twice(source_map):
    ids = Counter(one.id for one in source_map.statements)
    texts = Counter((one.source, one.says.lower()) for one in source_map.statements)
    assert [twice for twice, n in (ids + texts).items() if n > 1] == []


def test_an_unknown_or_a_missing_field_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    (tmp_path / "book").mkdir()
    for entry, fault in (("{id: a, kind: page, target: b}", "'says'"), ("{id: a, comment: b}", "'comment'")):
        text = f"documents: [{{source: s, title: t, statements: [{entry}]}}]"
        (tmp_path / "book" / "source_map.yml").write_text(text)
        with pytest.raises(TypeError, match=fault):
            claims.source_map()

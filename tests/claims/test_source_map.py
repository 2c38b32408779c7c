"""The map of the sources is whole: no statement without a place, no place that does not exist."""

import re

import pytest
import yaml

from sepnb import claims
from sepnb.claims import SourceMapError


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


VALID = {
    "documents": [
        {
            "source": "slides-separation",
            "title": "Slides",
            "statements": [
                {"id": "one", "says": "It is so.", "kind": "claim", "target": "seqpe-survives"},
                {"id": "two", "says": "It is made so.", "kind": "chapter", "target": "01_order"},
                {"id": "three", "says": "So?", "kind": "not-empirical", "target": "outlook", "note": "x"},
            ],
        }
    ],
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """`load(number, **changes)`: the valid map with one statement changed; None takes a field away."""
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "01_order.py").touch()

    def load(number=0, **changes):
        raw = yaml.safe_load(yaml.safe_dump(VALID))
        entry = raw["documents"][0]["statements"][number] | changes
        raw["documents"][0]["statements"][number] = {k: v for k, v in entry.items() if v is not None}
        path = tmp_path / "source_map.yml"
        path.write_text(yaml.safe_dump(raw))
        return claims.source_map(path)

    return load


def test_a_valid_map_is_read(load):
    assert [(one.id, one.note) for one in load().statements] == [("one", ""), ("two", ""), ("three", "x")]


@pytest.mark.parametrize(
    ("number", "changes", "fault"),
    [
        (0, {"target": "rope-wins"}, "one points to the claim 'rope-wins', which does not exist"),
        (1, {"target": "02_absolute"}, "two points to the chapter '02_absolute', which does not exist"),
        (1, {"kind": "page"}, "two points to the page '01_order', which does not exist"),
        (1, {"kind": "notebook"}, "two has kind 'notebook'; use one of claim, chapter, page"),
        (1, {"id": "one"}, "the id one is used 2 times"),
        (1, {"says": "It is SO."}, "slides-separation says 'it is so.' 2 times"),
        (0, {"says": "  "}, "one leaves says empty"),
        (2, {"target": ""}, "three leaves target empty"),
        (2, {"says": None}, "'says'"),
        (0, {"id": None}, "an entry of slides-separation"),
        (0, {"comment": "x"}, "'comment'"),
    ],
)
def test_each_fault_is_named(load, number, changes, fault):
    with pytest.raises(SourceMapError, match=re.escape(fault)):
        load(number, **changes)


def test_all_faults_are_named_at_once(load):
    with pytest.raises(SourceMapError, match=r"(?s)the id two.*the chapter 'nothing'"):
        load(0, target="nothing", kind="chapter", id="two")

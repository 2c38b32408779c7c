"""The experiment `extrapolation_wikitext`: the runs of `extrapolation` on another text, its marks apart."""

import itertools

import numpy as np
import pytest

from sepnb import experiments
from sepnb.data import text
from sepnb.evaluation.long_windows import BLOCKS, long_windows
from sepnb.experiments import long_windows as windows
from sepnb.experiments import second_text as second

from .smoke_runs import bits_of, smoke, texts_of, untrained

EXPERIMENT = experiments.get("extrapolation_wikitext")
PUBLISHED = ["laptop", "gpu"]


# --- what is read


@pytest.mark.parametrize("profile", PUBLISHED)
def test_three_seeds_read_every_byte_of_the_beginnings_of_the_articles_once(profile, data_set):
    data_set("wikitext-2")
    beyond = second.BEYOND[profile]
    runs = [EXPERIMENT.config(profile, "rope", seed) for seed in (1, 2, 3)]
    assert sorted(block for config in runs for block in texts_of(config).blocks) == list(range(BLOCKS))
    articles = text.load("wikitext-2").test
    pieces = [texts_of(config).passages(config) for config in runs]
    assert [piece.tokens[:, 1:].size for piece in pieces] == [
        {"laptop": 163_840, "gpu": 147_456}[profile]
    ] * 3
    size = BLOCKS * beyond.windows * beyond.longest
    long_enough = [k for k, article in enumerate(articles.documents) if len(article) > size]
    assert len(long_enough) == beyond.documents
    for k in long_enough:
        read = np.concatenate([piece.tokens[piece.documents == k, 1:].reshape(-1) for piece in pieces])
        data = articles.documents[k].data[1 : size + 1]
        assert np.array_equal(np.bincount(read, minlength=256), np.bincount(data, minlength=256))
    tight = [set(piece.documents[piece.scopes["tight"]].tolist()) for piece in pieces]
    assert all(len(articles_read) == 2 * beyond.tight for articles_read in tight)


def test_the_marks_of_the_articles_are_found_in_every_window(data_set):
    data_set("wikitext-2")
    config = EXPERIMENT.config("laptop", "rope", 1)
    assert texts_of(config).markers == ("<unk>", "@-@", "@,@", "@.@")
    held = texts_of(config).passages(config)
    assert held.marked.shape == held.tokens[:, 1:].shape and held.marked.dtype == bool
    told = held.tokens[:, 1:][held.marked].astype(np.uint8).tobytes()
    assert set(told) == set(b"<unk>@-@,.")
    for tokens, marked in zip(held.tokens[:, 1:], held.marked, strict=True):
        line = tokens.astype(np.uint8).tobytes()
        whole = sum(line.count(marker.encode()) * len(marker) for marker in texts_of(config).markers)
        assert 0 <= marked.sum() - whole <= 2 * (len("<unk>") - 1)  # more only by marks that a border cuts
    plain = long_windows(config.data.splits.test, texts_of(config).beyond, texts_of(config).blocks)
    assert np.array_equal(held.tokens, plain.tokens) and plain.marked is None


# --- a run


def test_each_row_tells_the_marks_from_the_rest_by_the_plain_formula():
    config = smoke(EXPERIMENT.name, "rope", steps=3)
    model = untrained(config)
    rows = windows.read(config, texts_of(config), model)
    held = texts_of(config).passages(config)
    bits = bits_of(model, held.tokens)
    for row in rows:
        if row["reading"] != "native":
            continue
        inside, place = held.scopes[row["scope"]], slice(row["start"], row["stop"])
        paid, marked = bits[inside][:, place], held.marked[inside][:, place]
        assert row["bits_per_byte"] == pytest.approx(paid.mean(), abs=1e-5)
        assert row["marked_share"] == marked.sum() / marked.size > 0
        assert row["marked"] == pytest.approx((paid * marked).sum() / marked.sum(), abs=1e-5)
        assert row["rest"] == pytest.approx((paid * ~marked).sum() / (~marked).sum(), abs=1e-5)


def test_a_record_holds_every_reading_in_every_bin_with_its_marks_apart():
    config = smoke(EXPERIMENT.name, "separated-learned", steps=3)
    record = EXPERIMENT.run(config)
    rows = [row for row in record.rows if row["kind"] == "reading"]
    length = texts_of(config).beyond.length
    bins = list(itertools.pairwise([0, length, 2 * length, 4 * length, 8 * length]))
    expected = {
        (reading.id, scope, *bounds)
        for reading in texts_of(config).readings
        for scope in (("tight",) if reading.id == "oracle" else ("part", "tight"))
        for bounds in bins
    }
    assert {(row["reading"], row["scope"], row["start"], row["stop"]) for row in rows} == expected
    assert len(rows) == len(expected)
    assert all({"marked_share", "marked", "rest"} <= row.keys() for row in rows)
    metrics = windows.metrics_of(rows, length)
    assert metrics.keys() <= record.metrics.keys()
    assert {name.split("/")[1] for name in metrics if name.startswith("gap/")} == {
        reading.id for reading in texts_of(config).readings if reading.id != "oracle"
    }

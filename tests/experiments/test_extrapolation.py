"""The experiment `extrapolation`: which bytes are read, under which rules, and what is written down of it."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.data import text
from sepnb.data.text import Document, Text
from sepnb.evaluation import sliding
from sepnb.evaluation.long_windows import BLOCKS, Beyond, long_windows
from sepnb.experiments import extrapolation as ex
from sepnb.experiments import long_windows as windows
from sepnb.experiments.run import Run
from sepnb.extrapolators import METHODS, build
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.records.store import Store
from sepnb.streams import Streams

from .smoke_runs import bits_of, made, smoke, texts_of, untrained

EXPERIMENT = experiments.get("extrapolation")
LENGTH = ex.BEYOND["smoke"].length


def book(name: str, data: np.ndarray) -> Document:
    return Document(name, "", data.astype(np.uint8))


# --- the readings


DEFAULTS = {
    "sinusoidal": {"align": "none"},
    "fourier": {"n_components": None, "pick": None},
    "cyclic": {},
    "learned": {"protocol": "window", "seed": 0, "hidden": 64, "steps": 1000},
    "alibi": {"tau": 1.0},
    "clamp": {},
    "wrap": {},
    "reflect": {},
    "zero": {"everywhere": False},
    "interpolate": {"length": 8},
}
"""What a reading without options stands for: records do not name it."""


def test_the_defaults_that_records_leave_unsaid_are_those_they_were_made_with():
    assert tuple(DEFAULTS) == METHODS
    for name, options in DEFAULTS.items():
        needed = {"length": 8} if name == "interpolate" else {}
        assert dataclasses.asdict(build(name, **needed)) == options, name


PINNED = {
    "learned": """
        oracle 10.4696459, oracle-coarse 10.4053073, oracle-coarse-sinks 10.4067139, sinusoidal 10.3034382,
        fourier 10.3714900, cyclic 10.2871582, learned 10.3126326, alibi 10.2412085, clamp 10.2392126,
        wrap 10.3714900, reflect 10.3252299, zero 10.3683454, interpolate 10.3470733,
        sinusoidal-literal 10.2362606, fourier-literal 10.4105171, cyclic-literal 10.3587899,
        learned-literal 10.3099023, alibi-literal 10.2412085, sinusoidal-aligned 10.2617211,
        fourier-full 10.3714900, learned-masked-fit 10.3130271, alibi-slow 10.2403902,
        zero-everywhere 10.3182104, sinusoidal-window 10.4062293, fourier-window 10.5742569,
        cyclic-window 10.4676042, learned-window 10.4609293, alibi-window 10.4238765,
        clamp-window 10.4251512, wrap-window 10.5742569, clamp-window-sinks 10.2971060,
        sinusoidal-at-3x 10.6427237, fourier-at-3x 10.5859771, cyclic-at-3x 10.7273147,
        learned-at-3x 10.7534239, alibi-at-3x 10.7827151, clamp-at-3x 10.7842808, wrap-at-3x 10.5859771
    """,
    "sinusoidal": """
        oracle 11.9956291, oracle-coarse 12.0257644, oracle-coarse-sinks 12.3067210, native 12.2161006,
        native-at-3x 12.8499665, native-window 12.2196042, native-window-sinks 12.3522833, clamp 12.1281365,
        clamp-at-3x 12.5664713, wrap 12.1282567, wrap-at-3x 12.6439135
    """,
    "rope": """
        oracle 14.2693751, oracle-coarse 14.3414437, oracle-coarse-sinks 14.1664607, native 14.0039383,
        native-at-3x 15.4346008, native-window 14.2960894, native-window-sinks 13.9589999
    """,
}
"""Bits per byte of every reading by a small fixed model; `learned` with 20 steps of fitting."""


def pinned_model(encoding: str) -> LanguageModel:
    """Weights by a formula, so that no generator of random numbers stands between a reading and its value."""
    at_input = encoding in ("learned", "sinusoidal")
    streams = Streams(pos=8, sem=24) if at_input else Streams.dense(32)
    config = TransformerConfig(streams, 2, 4, encoding, max_length=8)
    model = LanguageModel(config)
    with torch.no_grad():
        for number, weights in enumerate(model.parameters(), 1):
            at = torch.arange(weights.numel(), dtype=torch.float64)
            weights.copy_((0.8 * torch.sin(number + 1.7 * at + 0.01 * at**2)).reshape(weights.shape))
    return model.double().eval()


@pytest.mark.parametrize("encoding", PINNED)
def test_every_reading_computes_what_it_computed_for_the_records(encoding):
    """Records hold the names and options of readings, which cannot tell that their computation changed."""
    model = pinned_model(encoding)
    tokens = (np.arange(2 * 33).reshape(2, 33) * 37 + 11) % 256
    found = {}
    for reading in ex.readings(encoding, 8, 32):
        if reading.extrapolator == "learned":
            reading = dataclasses.replace(reading, options=(*reading.options, ("steps", 20)))
        read = tokens[:, :9] if reading.start else tokens
        found[reading.id] = reading.losses(model, read, np.array([0, 1])).bits_per_byte
    pinned = dict(pair.split() for pair in PINNED[encoding].split(","))
    assert found == pytest.approx({name: float(value) for name, value in pinned.items()}, rel=1e-5)


# --- what is read


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_six_seeds_read_different_bytes_of_the_same_novels_more_than_a_megabyte(profile, data_set):
    beyond = ex.BEYOND[profile]
    data_set("eltec-eng")
    novels = text.load("eltec-eng").test
    blocks = [long_windows(novels, beyond, [block]) for block in range(BLOCKS)]
    assert len({item.tokens.shape for item in blocks}) == 1
    scored = sum(item.tokens[:, 1:].size for item in blocks)
    assert scored > 1_000_000
    assert all(len(np.unique(item.documents)) == 20 for item in blocks)
    for document in range(20):
        pieces = [item.tokens[item.documents == document] for item in blocks]
        read = np.concatenate([piece[:, 1:].reshape(-1) for piece in pieces])
        data = novels.documents[document].data[1 : len(read) + 1]
        assert np.array_equal(read, data)  # block after block, each byte once


@pytest.mark.parametrize("blocks", [(0,), (5,), (1, 4)])
def test_scopes_lie_within_one_another_and_the_tight_one_changes_its_documents(blocks):
    beyond = Beyond(8, 4, documents=5, windows=3, part=2, tight=2, batch_bytes=64)
    rng = np.random.default_rng(0)
    whole = 6 * 3 * 32 + 1
    documents = [
        book(str(n), rng.integers(256, size=size))
        for n, size in enumerate([whole, 40, whole - 1, whole + 99, whole, 3 * whole, whole, whole])
    ]
    found = long_windows(Text("made up", tuple(documents)), beyond, blocks)
    assert sorted(set(found.documents)) == [0, 3, 4, 5, 6]  # the first five that are long enough
    assert found.tokens.shape == (5 * 3 * len(blocks), 33)
    counts = {scope: int(inside.sum()) for scope, inside in found.scopes.items()}
    each = len(blocks)
    assert counts == {"all": 15 * each, "part": 10 * each, "tight": 2 * each}
    assert not (found.scopes["part"] & ~found.scopes["all"]).any()
    assert not (found.scopes["tight"] & ~found.scopes["part"]).any()
    for document in (0, 3, 4, 5, 6):
        data = documents[document].data
        starts = [(3 * block + place) * 32 for block in blocks for place in range(3)]
        expected = np.stack([data[start : start + 33] for start in starts])
        assert np.array_equal(found.tokens[found.documents == document], expected)


def test_the_tight_scope_goes_round_all_documents_and_a_text_without_enough_long_ones_is_refused():
    beyond = Beyond(8, 2, documents=4, windows=1, part=1, tight=2, batch_bytes=64)
    long = tuple(book(str(n), np.zeros(97)) for n in range(4))
    seen = [
        set(found.documents[found.scopes["tight"]].tolist())
        for found in (long_windows(Text("zeros", long), beyond, [block]) for block in range(6))
    ]
    assert seen == [{0, 1}, {2, 3}] * 3
    books = Text("books", (*long[:3], book("short", np.zeros(96))))
    with pytest.raises(ValueError, match="3 documents of books hold 6 blocks of 1 windows of 16 bytes; 4"):
        long_windows(books, beyond, [0])


# --- a run


@pytest.fixture(scope="module")
def rows_of_a_table() -> tuple[Run, LanguageModel, list[dict]]:
    config = smoke("extrapolation", "separated-learned")
    model = untrained(config)
    return config, model, windows.read(config, texts_of(config), model)


def bins_of(rows: list[dict], reading: str, scope: str) -> list[float]:
    return [r["bits_per_byte"] for r in rows if (r["reading"], r["scope"]) == (reading, scope)]


def test_a_bin_holds_the_mean_of_its_bytes_by_the_plain_formula():
    config = smoke("extrapolation", "rope", beyond=dataclasses.replace(ex.BEYOND["smoke"], batch_bytes=1))
    model = untrained(config)
    rows = windows.read(config, texts_of(config), model)
    held = texts_of(config).passages(config)
    bits = bits_of(model, held.tokens)
    edges = [0, LENGTH, 2 * LENGTH, 4 * LENGTH, 8 * LENGTH]
    for scope in ("all", "part", "tight"):
        inside = bits[held.scopes[scope]]
        expected = [inside[:, start:stop].mean() for start, stop in itertools.pairwise(edges)]
        assert bins_of(rows, "native", scope) == pytest.approx(expected, abs=1e-5)
    mine = [row for row in rows if row["reading"] == "native" and row["scope"] == "all"]
    assert [(row["start"], row["stop"]) for row in mine] == list(itertools.pairwise(edges))
    tight = held.tokens[held.scopes["tight"]]
    oracle = sliding(model, tight, window=LENGTH, stride=1).by_position(edges)
    assert bins_of(rows, "oracle", "tight") == pytest.approx([r["bits_per_byte"] for r in oracle], abs=1e-5)


def test_inside_the_trained_length_all_corrected_readings_are_the_model_itself(rows_of_a_table):
    config, _, rows = rows_of_a_table
    plain = bins_of(rows, "oracle-coarse", "part")[0]
    rewritten = {"interpolate", "zero-everywhere"}
    for reading in texts_of(config).readings:
        if reading.start or reading.scope == "tight":
            continue
        first = bins_of(rows, reading.id, "part")[0]
        changes = reading.id in rewritten or reading.form == "literal"
        if not changes:
            assert first == pytest.approx(plain, abs=1e-6), reading.id
        elif reading.id not in ("cyclic-literal", "alibi-literal"):  # as printed, these leave it alone
            assert abs(first - plain) > 1e-4, reading.id


def test_metrics_are_the_rows_by_name(rows_of_a_table):
    config, _, rows = rows_of_a_table
    metrics = windows.metrics_of(rows, LENGTH)
    for reading in texts_of(config).readings:
        if reading.start:
            assert [metrics[reading.id]] == bins_of(rows, reading.id, "far")
            continue
        scope = "tight" if reading.id == "oracle" else "part"
        levels = [metrics[f"{reading.id}/{k}x"] for k in (1, 2, 4, 8)]
        assert levels == bins_of(rows, reading.id, scope)
        if reading.id != "oracle":
            gaps = [metrics[f"gap/{reading.id}/{k}x"] for k in (1, 2, 4, 8)]
            pairs = zip(bins_of(rows, reading.id, "tight"), bins_of(rows, "oracle", "tight"), strict=True)
            assert gaps == [one - bar for one, bar in pairs]
    named = {name.removeprefix("gap/").split("/")[0] for name in metrics}
    assert named == {reading.id for reading in texts_of(config).readings}


def test_a_record_holds_the_score_of_in_window_and_all_readings():
    config = smoke("extrapolation", "separated-learned")
    inside = experiments.get("in_window").config("smoke", config.method, 1)
    inside = dataclasses.replace(inside, training=config.training, data=config.data)
    done: list[tuple[int, int]] = []
    record = EXPERIMENT.run(config, progress=lambda *step: done.append(step))
    plain = experiments.get("in_window").run(inside)
    same = set(plain.metrics) - {"train_cpu_s"}
    assert {name: record.metrics[name] for name in same} == {name: plain.metrics[name] for name in same}
    assert EXPERIMENT.fingerprint(config) == record.fingerprint == plain.fingerprint
    own = [row for row in record.rows if row["kind"] not in ("reading", "table", "seam")]
    assert own == plain.rows

    total = 6 + len(texts_of(config).readings)
    assert done == [(step, total) for step in range(1, total + 1)]
    reading = [row for row in record.rows if row["kind"] == "reading"]
    assert {row["reading"] for row in reading} == {item.id for item in texts_of(config).readings}
    metrics = windows.metrics_of(reading, LENGTH)
    assert {k: v for k, v in record.metrics.items() if k in metrics} == metrics
    left_out = {name for name in record.metrics if "/" in name} - set(metrics)
    parts = {item.id for item in texts_of(config).readings if item.scope == "part"}
    assert left_out == {f"gap/{name}/{k}x" for name in parts for k in (1, 2, 4, 8)}
    seams = {row["reading"]: row["value"] for row in record.rows if row["kind"] == "seam"}
    assert seams["clamp"] == 0 < seams["wrap"] == pytest.approx(seams["fourier-full"], rel=1e-6)
    assert {row["quantity"] for row in record.rows if row["kind"] == "table"} >= {"median step"}
    assert record.config["beyond"]["blocks"] == [0]


def test_bins_are_loaded_by_scope(tmp_path):
    store = Store(tmp_path)
    assert EXPERIMENT.by_bin("smoke", store=store).empty
    config = EXPERIMENT.config("smoke", "rope", 1)
    about = {"kind": "reading", "unseen": "none", "start": 0, "stop": LENGTH}
    rows = [
        about | {"reading": "native", "scope": "all", "bits_per_byte": 2.0},
        about | {"reading": "native", "scope": "part", "bits_per_byte": 2.5},
        about | {"reading": "oracle", "scope": "tight", "bits_per_byte": 3.0},
    ]
    store.write(made(config, rows))
    (part,) = EXPERIMENT.by_bin("smoke", store=store).to_dict("records")
    told = {"method": "rope", "seed": 1, "reading": "native", "bits_per_byte": 2.5}
    assert told.items() <= part.items()
    assert list(EXPERIMENT.by_bin("smoke", "tight", store)["reading"]) == ["oracle"]
    with pytest.raises(ValueError, match="unknown scope 'whole'; use one of all, part, tight, far"):
        EXPERIMENT.by_bin("smoke", "whole", store)

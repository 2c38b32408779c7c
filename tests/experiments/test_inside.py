"""The experiment `inside`: the runs of `in_window` looked at from inside, rows with known answers."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.data.text import Document, Text
from sepnb.experiments import inside as ex
from sepnb.experiments import inspection as look
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.inspection import RULES, Inspection, Sample, sample
from sepnb.experiments.methods import model_config
from sepnb.experiments.run import Run
from sepnb.models import LanguageModel

from .smoke_runs import with_measure

INSIDE = experiments.get("inside")
TINY = Inspection(
    16, documents=4, windows=4, texts=2, leak_texts=1, leak_tokens=3, path_points=4, fit_steps=10
)
SIZE = dataclasses.replace(lm.SIZES["smoke"], width=32, length=16)


@pytest.fixture(scope="module")
def held_out() -> Text:
    rng = np.random.default_rng(0)
    documents = [
        Document(f"document {k}", f"author {k}", rng.integers(97, 107, size=n).astype(np.uint8))
        for k, n in enumerate((200, 40, 200, 200, 200, 200))
    ]
    return Text("invented", tuple(documents))


@pytest.fixture(scope="module")
def read(held_out) -> Sample:
    return sample(held_out, TINY)


def built(method: str, **changes) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(dataclasses.replace(model_config(method, SIZE), **changes))


def inspection_of(config: Run) -> Inspection:
    return config.of(ex.Inspected).inspection


def of(rows: list[dict], kind: str, **values) -> list[dict]:
    return [
        row for row in rows if row["kind"] == kind and all(row.get(name) == v for name, v in values.items())
    ]


# --- the grid


def test_a_run_looks_at_windows_of_the_trained_length():
    for config in (INSIDE.config(profile, "rope", 1) for profile in experiments.PROFILES):
        assert inspection_of(config).length == config.training.length
        assert dataclasses.asdict(inspection_of(config)).items() <= config.resolved()["inspection"].items()


# --- the sample


def test_no_document_is_on_both_sides_and_all_texts_come_from_those_that_are_long_enough(held_out, read):
    sizes = {name: tuple(x.shape) for name, x in read._asdict().items()}
    assert sizes == {"fit": (8, 16), "scored": (8, 16), "short": (8, 9), "long": (4, 32)}
    begins = [document.data for document in held_out.documents if len(document) > 100][:4]
    for windows, owners in ((read.fit, (0, 2)), (read.scored, (1, 3))):
        expected = np.concatenate([begins[k][:64].reshape(4, 16) for k in owners])
        assert np.array_equal(windows.numpy(), expected)
    assert np.array_equal(read.long[0].numpy(), begins[1][:32])
    assert np.array_equal(read.short[0].numpy(), begins[0][:9])


# --- rows with known answers


def test_a_strict_pos_stream_holds_no_text_to_the_last_bit(read):
    model = built("strict-learned")
    rows = look.position_rows(model, read, "trained") + look.byte_rows(model, read)
    assert [row["text"] for row in of(rows, "variance", stream="pos")] == [0.0, 0.0]
    floor = {row["target"]: row["accuracy"] for row in of(rows, "byte probe", stream="majority")}
    for row in of(rows, "byte probe", stream="pos less position"):
        assert row["accuracy"] == floor[row["target"]]
    (leak,) = of(look.leak_rows(model, read, TINY, "trained"), "leak", weights="live", target="pos")
    assert leak["largest"] == 0.0


def test_the_current_byte_is_read_where_it_enters_and_position_where_it_enters(read):
    model = built("separated-sinusoidal")
    rows = look.byte_rows(model, read) + look.position_rows(model, read, "trained")
    assert of(rows, "byte probe", stream="sem", depth=0, target="current")[0]["accuracy"] == 1.0
    assert of(rows, "byte probe", stream="pos", depth=0, target="current")[0]["accuracy"] < 0.5
    for stream, low, high in (("pos", 0.9, 1.0), ("sem", -1.5, 0.5)):
        (row,) = of(rows, "position probe", stream=stream, depth=0, target="index")
        assert low < row["r_squared"] <= high
    (entering,) = of(rows, "variance", stream="pos", depth=0)
    assert entering["text"] == 0.0 and entering["position"] == 1.0


@pytest.mark.parametrize("method", ["none", "rope"])
def test_what_sees_no_index_does_not_drift_and_its_attention_stays(method, read):
    rows = look.drift_rows(built(method), read, TINY)
    assert max(row["drift"] for row in of(rows, "start")) < 1e-5
    assert max(row["distance"] for row in of(rows, "routing")) < 1e-5
    assert len({round(row["bits_per_byte"], 4) for row in of(rows, "start")}) == 1
    assert of(rows, "drift", rule="another text")[-1]["drift"] > 0.1


@pytest.mark.parametrize("method", ["separated-learned", "strict-learned", "separated-sinusoidal"])
def test_with_attention_held_the_content_of_a_separated_model_does_not_drift(method, read):
    rows = look.drift_rows(built(method), read, TINY)
    moved = [row for row in of(rows, "drift") if "held" in row]
    assert moved and all(row["held"] == 0.0 for row in moved)
    assert max(row["drift"] for row in moved) > 1e-3
    encoding = "learned" if "learned" in method else "sinusoidal"
    assert {row["rule"] for row in of(rows, "start")} == {"trained", *RULES[encoding]}
    if method == "separated-learned":  # and that of a dense one does
        rows = look.drift_rows(built("learned"), read, TINY)
        assert max(row["held"] for row in of(rows, "drift") if "held" in row) > 1e-3


def test_beyond_the_window_a_clamped_code_is_read_as_one_position(read):
    rows = look.beyond_rows(built("separated-learned"), read, TINY)
    (clamped,) = of(rows, "position beyond", rule="clamp", stream="pos", depth=0)
    assert clamped["r_squared"] <= 0.0
    assert {row["rule"] for row in rows} == set(RULES["learned"])
    assert all(row["depth"] == 0 for row in rows if row["rule"] != "clamp")


def test_geometry_describes_the_input_code_first(read):
    model = built("separated-sinusoidal")
    rows = look.geometry_rows(model, read, points=4)
    (entering,) = of(rows, "geometry", depth=0)
    assert entering["components_8"] == pytest.approx(1.0, abs=0.01)
    (spectrum,) = of(rows, "spectrum", depth=0)
    assert len(spectrum["shares"]) == 8 and sum(spectrum["shares"]) == pytest.approx(1.0, abs=1e-3)
    assert of(rows, "path", depth=0, component=1)[0]["positions"] == [0, 5, 10, 15]
    assert [row["depth"] for row in of(rows, "geometry")] == [0, 1]


# --- a run


@pytest.fixture(scope="module")
def record():
    """A shortened smoke run; module-wide, since it trains."""
    config = next(c for c in INSIDE.grid("smoke") if c.method == "separated-learned")
    config = dataclasses.replace(config, training=dataclasses.replace(config.training, steps=6))
    config = with_measure(config, inspection=dataclasses.replace(inspection_of(config), fit_steps=5))
    return config, INSIDE.run(config)


def test_metrics_are_the_extremes_and_means_of_the_rows(record):
    config, one = record
    rows, metrics = one.rows, one.metrics
    plain = {"curve", "position", "document"}
    told = {"variance", "position probe", "position beyond", "byte probe", "geometry", "spectrum", "path"}
    assert {row["kind"] for row in rows} == plain | told | {"leak", "start", "drift", "routing"}
    probes = of(rows, "position probe", state="trained", target="index", stream="pos")
    assert metrics["index/pos"] == max(row["unseen"] for row in probes)
    assert metrics["known/pos"] == max(row["r_squared"] for row in probes)
    assert metrics["input/pos"] == probes[0]["unseen"] and probes[0]["depth"] == 0
    shares = of(rows, "variance", state="trained", stream="pos")
    assert metrics["text/pos"] == max(row["text"] for row in shares)
    floor = {row["target"]: row["accuracy"] for row in of(rows, "byte probe", stream="majority")}
    hits = of(rows, "byte probe", stream="pos less position")
    gains = [row["accuracy"] - floor[row["target"]] for row in hits]
    assert metrics["byte/pos_less_position"] == max(gains)
    far = of(rows, "start", rule="clamp")
    assert [row["start"] for row in far] == list(inspection_of(config).far_starts)
    assert metrics["drift/clamp"] == pytest.approx(np.mean([row["drift"] for row in far]))
    (at_zero,) = of(rows, "start", start=0)
    excess = np.mean([row["bits_per_byte"] for row in far]) - at_zero["bits_per_byte"]
    assert metrics["excess/clamp"] == pytest.approx(excess)
    assert metrics["held"] == 0.0 == metrics["leak/frozen"] and metrics["leak/live"] > 0


def test_initial_rows_are_those_of_the_model_before_training(record):
    config, one = record
    torch.manual_seed(config.seed)
    read = sample(config.data.splits.test, inspection_of(config))
    expected = look.position_rows(LanguageModel(config.model), read, "initial")
    found = [row for row in one.rows if row.get("state") == "initial" and row["kind"] != "leak"]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a == {k: pytest.approx(v, rel=1e-5) if isinstance(v, float) else v for k, v in b.items()}
    assert of(one.rows, "variance", state="trained") != found

"""The experiment `seqpe_stream_geometry`: models of `seqpe_stream` once more, and where their windows lie."""

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.evaluation import evaluate
from sepnb.experiments import seqpe_stream as stream
from sepnb.experiments import seqpe_stream_geometry as geo
from sepnb.seqpe.geometry import displacement, geometry, likeness, spread
from sepnb.training.seqpe_losses import encoder_of

from .smoke_runs import smoke, texts_of

EXPERIMENT, STREAM = experiments.get("seqpe_stream_geometry"), experiments.get("seqpe_stream")
SEPARATED, SCORE = EXPERIMENT.grid("smoke")


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_published_embeddings_are_to_the_bit_those_of_the_models_whose_costs_are_published(profile):
    """Where both were taken: the first losses, the end of the training, and what a longer text costs."""
    tables = EXPERIMENT.table(profile), STREAM.table(profile)
    ours, costs = (
        {(one.config["method"], one.config["seed"]): one for one in table.attrs["records"]}
        for table in tables
    )
    shared = ours.keys() & costs.keys()
    if all((table.status != "not run").all() for table in tables):
        assert len(shared) == 30
    for key in shared:
        assert ours[key].fingerprint == costs[key].fingerprint, key
        names = ["train_bits_per_byte", "val_bits_per_byte"]
        names += [f"native/{k}x" for k in (2, 4, 8) if "past" in ours[key].metrics]
        for name in names:
            assert ours[key].metrics[name] == pytest.approx(costs[key].metrics[name], rel=1e-9), key


def test_a_window_is_looked_at_as_its_embeddings_are():
    encoder, length = encoder_of(SEPARATED.build()), SEPARATED.training.length
    rows, within = geo.windows_of(encoder, length, "drawn"), torch.arange(length)
    assert [(row["name"], row["start"]) for row in rows] == [("trained", 0), *stream.starts(length).items()]
    with torch.no_grad():
        own = encoder.plain(within)
        for row in rows:
            window = encoder.plain(row["start"] + within)
            assert row["spread"] == pytest.approx(spread(window), rel=1e-3)
            assert row["norm"] == pytest.approx(geometry(window, within).norm, rel=1e-3)
            if row["start"]:
                assert row["moved"] == pytest.approx(displacement(own, window) / spread(own), rel=1e-3)
                assert row["narrowed"] == pytest.approx(spread(window) / spread(own), rel=1e-3)
                assert row["likeness"] == pytest.approx(likeness(own, window), abs=1e-3)
            else:
                assert not {"moved", "narrowed", "likeness"} & row.keys()


@pytest.fixture(scope="module")
def records():
    """Of both methods of the smoke test, after three steps."""
    configs = [smoke(one.experiment, one.method, steps=3) for one in (SEPARATED, SCORE)]
    return {one.method: (one, EXPERIMENT.run(one)) for one in configs}


def test_a_run_repeats_exactly_and_its_rows_are_its_metrics(records, one_thread):
    config, one = records[SEPARATED.method]
    again = EXPERIMENT.run(config)
    assert one.rows == again.rows and one.fingerprint == again.fingerprint == EXPERIMENT.fingerprint(config)
    for state, prefix in (("drawn", "drawn/"), ("trained", "")):
        rows = {row["name"]: row for row in one.rows if row["kind"] == "window" and row["state"] == state}
        trained = rows["trained"]
        assert one.metrics[f"{prefix}resolution"] == pytest.approx(trained["spread"] / trained["norm"])
        for name in stream.starts(config.training.length):
            assert one.metrics[f"{prefix}moved/{name}"] == rows[name]["moved"]
    assert one.metrics["moved/covered-aligned-1"] != one.metrics["drawn/moved/covered-aligned-1"]
    assert "bits_per_byte" not in one.metrics and np.isfinite(one.metrics["val_bits_per_byte"])


def test_what_indices_cost_is_what_the_stream_reads_of_the_long_text(records, one_thread):
    for name, (config, record) in records.items():
        whole = STREAM.run(smoke("seqpe_stream", name, steps=3))
        length = texts_of(config).beyond.length
        rows = [row for row in record.rows if row["kind"] == "index"]
        assert [row["start"] for row in rows] == list(
            range(0, texts_of(config).beyond.longest, length // geo.PIECES)
        )
        for k in (2, 4, 8):
            assert record.metrics[f"native/{k}x"] == pytest.approx(whole.metrics[f"native/{k}x"], rel=1e-6)
            inside = [row for row in rows if k * length // 2 <= row["start"] < k * length]
            mean = np.mean([row["bits_per_byte"] for row in inside])
            assert mean == pytest.approx(whole.metrics[f"native/{k}x"], rel=1e-6)
        assert (name == geo.SCORE) == (not [row for row in record.rows if row["kind"] == "window"])


def test_folds_are_counted_past_the_trained_length_and_their_bytes_are_read_three_times(records, monkeypatch):
    config, _ = records[SCORE.method]
    model, texts = config.build(), texts_of(config)
    length, longest = texts.beyond.length, texts.beyond.longest
    turned = torch.zeros(2 * longest, dtype=torch.bool)
    turned[length + 8 : length + 20] = turned[3 * length] = True
    monkeypatch.setattr(geo, "folded", lambda embeddings, slack: turned[: len(embeddings)])
    metrics, rows = geo.folds_of(config, texts_of(config), model)
    tokens = texts.part(config).tokens

    def read(positions, start=0) -> np.ndarray:
        cut = tokens[:, start : start + len(positions) + 1]
        return evaluate(model, cut, positions=np.array(positions)).bits.mean(axis=0)

    indices = np.arange(longest)
    plain, past, there = read(indices), indices >= length, turned[:longest].numpy()
    assert metrics["folded"] == 13
    assert metrics["past"] == pytest.approx(plain[past].mean(), rel=1e-6)
    assert metrics["bits/folded"] == pytest.approx(plain[there].mean(), rel=1e-6)
    assert metrics["bits/others"] == pytest.approx(plain[past & ~there].mean(), rel=1e-6)
    # Up to the fold nothing is moved, then all by 12, and from the last one by 13.
    straight = [*range(length + 8), *range(length + 20, 3 * length), *range(3 * length + 1, longest + 13)]
    mended = read(straight)
    assert metrics["mended/past"] == pytest.approx(mended[past].mean(), rel=1e-6)
    assert metrics["mended/folded"] == pytest.approx(mended[there].mean(), rel=1e-6)
    assert np.mean([row["mended"] for row in rows]) == pytest.approx(mended.mean(), rel=1e-6)
    assert sum(row["folded"] for row in rows) * (length // geo.PIECES) == pytest.approx(13)
    first = length + 8
    for name, start in (("alone/folded", first), ("alone/first", 0)):
        alone = read(start + np.arange(length), first)[:12].mean()
        assert metrics[name] == pytest.approx(alone, rel=1e-6), name
    assert metrics["alone/folded"] != metrics["alone/first"]


def test_without_a_fold_or_with_too_many_nothing_is_left_out(records, monkeypatch):
    config, _ = records[SCORE.method]
    model, longest = config.build(), texts_of(config).beyond.longest
    found = []
    for start in (2 * longest, longest - 1):
        turned = torch.arange(2 * longest) >= start
        monkeypatch.setattr(geo, "folded", lambda embeddings, slack, turned=turned: turned)
        found.append(geo.folds_of(config, texts_of(config), model))
    (none, _), (many, rows) = found
    assert none["folded"] == 0 and none["mended/past"] == none["past"]
    assert not {"bits/folded", "bits/others", "mended/folded", "alone/folded"} & none.keys()
    assert many["folded"] == 1 and "alone/folded" in many
    assert not any("mended" in name for name in many) and not any("mended" in row for row in rows)

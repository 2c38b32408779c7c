"""Fitted rows: which runs, what is read with which rows, and what a record says of it."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.evaluation.losses import evaluate
from sepnb.experiments import fitted_rows as fr
from sepnb.experiments.run import Run
from sepnb.extrapolators import SOURCE_METHODS
from sepnb.training.rows import lengthened

from .smoke_runs import assert_same, shortened, smoke, texts_of, untrained, with_measure

EXPERIMENT = experiments.get("fitted_rows")
SWEEP = experiments.get("fitted_rows_sweep")
pytestmark = pytest.mark.usefixtures("one_thread")


def run_of(method: str) -> Run:
    config = smoke("fitted_rows", method)
    return with_measure(config, fit=dataclasses.replace(fit_of(config), steps=2))


def fit_of(config: Run):
    return config.measures[-1].fit


def test_formula_two_continues_a_sinusoid_as_the_sinusoid_itself():
    config = run_of("separated-sinusoidal")
    model = untrained(config)
    windows = texts_of(config).passages(config).tokens[:1]
    own, formula = (evaluate(reader, windows).bits for reader in (model, model.extended("sinusoidal")))
    np.testing.assert_allclose(own, formula, atol=1e-4)
    assert np.abs(evaluate(model.extended("wrap"), windows).bits - own)[:, 64:].max() > 1e-3


@pytest.mark.parametrize("name", fr.FITS)
def test_a_fit_is_anew_from_the_same_windows_and_leaves_the_model_and_its_inside_alone(name):
    config = run_of("separated-learned")
    model = untrained(config)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    (one, losses), (other, again) = (config.of(fr.Fitted).fitted(config, model, name) for _ in range(2))
    assert losses == again and all(
        torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    windows = texts_of(config).passages(config).tokens[:, : fit_of(config).length + 1]
    length = texts_of(config).beyond.length
    inside = windows[:, : length + 1]
    np.testing.assert_array_equal(evaluate(one, inside).bits, evaluate(model, inside).bits)
    start = evaluate(lengthened(model, fit_of(config).length), windows).bits
    assert np.abs(evaluate(one, windows).bits - start)[:, length:].max() > 1e-3


def test_the_two_fits_are_of_different_rows():
    config = run_of("separated-learned")
    model = untrained(config)
    native, masked = (config.of(fr.Fitted).fitted(config, model, name)[0] for name in fr.FITS)
    tables = [m.transformer.input_encodings[0].table for m in (native, masked)]
    assert not torch.equal(*tables)


def test_a_record_holds_every_number_that_a_claim_reads_and_the_gaps_are_differences_on_the_same_bytes():
    config = run_of("separated-learned")
    record, again = EXPERIMENT.run(config), EXPERIMENT.run(config)
    spent = {"fit_cpu_s": 0.0}
    assert_same(*(dataclasses.replace(r, metrics=r.metrics | spent) for r in (record, again)))
    metrics = record.metrics
    for reading in texts_of(config).readings:
        if reading.start:
            assert np.isfinite(metrics[f"gap/{reading.id}"])
        elif reading.id != "sliding":
            far = reading.id.startswith("fitted")
            assert (f"{reading.id}/4x" in metrics) is not far, "as far as there are rows"
            for k in (1, 2) if far else (1, 2, 4, 8):
                gap = metrics[f"{reading.id}/{k}x"] - metrics[f"sliding/{k}x"]
                assert metrics[f"gap/{reading.id}/{k}x"] == pytest.approx(gap)
    inside = [metrics[f"gap/{name}/1x"] for name in (*SOURCE_METHODS, "fitted", "fitted-masked")]
    assert max(map(abs, inside)) < 1e-5, "inside the trained length all are the trained model"
    for name in (*SOURCE_METHODS, "clamp"):
        assert min(metrics[f"divergence/{name}/{k}x"] for k in (2, 4, 8)) > 0
    assert min(metrics[f"divergence/{name}/2x"] for name in fr.FITS) > 0
    assert {row.get("scope") for row in record.rows if row["kind"] == "reading"} == {"part", "far"}
    rows = {row["rows"]: row["bits_per_byte"] for row in record.rows if row["kind"] == "recovered"}
    assert metrics["recovered"] == pytest.approx(rows["fitted"] - rows["trained"])
    assert metrics["rows_learning_rate"] == fit_of(config).learning_rate


def test_the_sweep_chooses_by_what_follows_the_trained_length_on_validation_text_only():
    config = shortened(SWEEP.config("smoke", ("learned", SWEEP.rates[0]), 0), steps=6)
    (validated,) = config.measures
    less = dataclasses.replace(validated.fitting, fit=dataclasses.replace(validated.fit, steps=2))
    config = dataclasses.replace(config, measures=(fr.Validated(less),))
    record = SWEEP.run(config)
    assert "bits_per_byte" not in record.metrics
    told = [row["bits_per_byte"] for row in record.rows if row["kind"] == "validated"]
    assert record.metrics["fitted_val_bits_per_byte"] == pytest.approx(np.mean(told)) and len(told) == 2

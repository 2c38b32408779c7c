"""Terms of scores at slowed positions: with none the model reads as trained, with all it is slowed."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from sepnb import experiments
from sepnb.analysis.scores import exchanged, split_scores
from sepnb.evaluation.tasks.grid import found
from sepnb.experiments import score_terms, tasks
from sepnb.experiments.readings import CHOSEN_AT, read_by
from sepnb.experiments.run import At

from .smoke_runs import untaught

EXPERIMENT = experiments.get("score_terms")
READINGS = ("parts-1-32", "parts-1-32-log")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=["separated-sinusoidal", "sinusoidal"])
def looked(request):
    """A run whose model has large weights, so that its answers differ from reading to reading; the model, and
    what is told of it."""
    config = EXPERIMENT.config("smoke", request.param, 1)
    model = config.build().eval()
    for parameter in model.double().parameters():
        parameter.data.mul_(3)
    terms = dataclasses.replace(config.measures[0], readings=READINGS)
    return config, model, *terms(config, model, At(start=untaught(config, model)))


def slowed(config, model, rows):
    told = {row["reading"]: row["nats"] for row in rows if row["kind"] == "reading"}
    assert set(told) == set(READINGS)
    samples = config.data.generator("test")(
        score_terms.SAMPLES["smoke"], CHOSEN_AT * config.training.length, seed=tasks.TEST_SEED
    )
    return read_by(model, min(told, key=told.get), CHOSEN_AT), samples


def test_no_term_slowed_is_the_model_as_trained(looked):
    config, model, metrics, rows = looked
    other, samples = slowed(config, model, rows)
    tokens = torch.from_numpy(samples.tokens)
    torch.testing.assert_close(exchanged(model, other, (), tokens), model(tokens), rtol=0, atol=1e-9)
    assert metrics["accuracy/none"] == pytest.approx(found(model, samples)["accuracy"].mean())


def test_all_terms_slowed_are_the_slowed_model_where_no_value_has_position_in_it(looked):
    config, model, _, rows = looked
    other, samples = slowed(config, model, rows)
    tokens = torch.from_numpy(samples.tokens)
    apart = (exchanged(model, other, score_terms.SLOWED["all"], tokens) - other(tokens)).abs().max()
    assert (apart < 1e-9) == (config.method == "separated-sinusoidal")


def test_every_term_of_every_head_is_told_and_the_head_that_one_moves_most_by_distance(looked):
    _, model, _, rows = looked
    moved = pd.DataFrame([row for row in rows if row["kind"] == "moved"])
    assert ((moved[["trained", "slowed"]] >= 0) & (moved[["trained", "slowed"]] <= 1)).all(axis=None)
    told = {(row.layer, row.head, row.term) for row in moved.itertuples()}
    built = split_scores(model, torch.zeros(1, 4, dtype=torch.int64))
    assert told == {(one.layer, head, term) for one in built for head in one.heads for term in one.terms}
    most = moved.loc[moved["trained"].idxmax()]
    terms = pd.DataFrame([row for row in rows if row["kind"] == "term"])
    assert set(zip(terms["layer"], terms["head"], strict=True)) == {(most["layer"], most["head"])}
    shares = terms.groupby(["read", "term"])["share"].sum()
    np.testing.assert_allclose(shares, 1, atol=1e-2)

"""A card says of a checkpoint what the book's own experiment says of it, on the same bytes."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.claims.asks import gap, levels
from sepnb.claims.evidence import inside
from sepnb.data import text as texts
from sepnb.evaluation.long_windows import BLOCKS, Beyond
from sepnb.experiments import extrapolation
from sepnb.models import LanguageModel
from sepnb.protocol import probe
from sepnb.records.verdicts import SURVIVES
from sepnb.training import TrainingConfig, train

L, TIMES, DOCUMENTS = 32, 4, 5


@pytest.fixture(scope="module")
def run() -> tuple[extrapolation.ExtrapolationRun, LanguageModel]:
    """A run of the smoke profile, at a length that makes reading byte by byte cheap, trained for a moment."""
    beyond = Beyond(L, TIMES, DOCUMENTS, windows=1, part=1, tight=DOCUMENTS, batch_bytes=4096)
    found = experiments.get("extrapolation").config("smoke", "rope", 1)
    run = replace(
        found, beyond=beyond, blocks=tuple(range(BLOCKS)), training=TrainingConfig(150, 16, L, 8e-3)
    )
    torch.manual_seed(0)
    model = LanguageModel(run.model)
    library = texts.load(run.text.name)
    batches = texts.sample_batches(library.train, batch_size=16, length=L, seed=0, steps=150)
    train(model, batches, run.training)
    return run, model


@pytest.mark.parametrize(("window", "survives"), [(None, "refuted"), (L, "held")])
def test_survives_is_what_the_readings_and_the_rule_of_extrapolation_say(run, window, survives) -> None:
    config, model = run
    model = model if window is None else model.extended(window=window)
    asked = [one for one in config.readings if one.id in ("oracle", "native")]
    metrics = extrapolation.metrics_of(extrapolation.read(config, model, asked=asked), L)
    asks = levels("rope", *gap("native", ("2x", "4x")), high=SURVIVES)
    says = all(inside(metrics[ask.a.removeprefix("rope:")], ask) for ask in asks)

    cut = BLOCKS * TIMES * L  # the bytes that the experiment read, document after document
    held = islice((one.data for one in config.held_out.documents if len(one) > cut), DOCUMENTS)
    text = np.concatenate([data[:cut] for data in held] + [np.zeros(1, np.uint8)])
    card = probe(model, text, trained_length=L, times=(1, 2, 4))
    assert card.meta["windows"] == BLOCKS * DOCUMENTS
    assert card.survives.verdict == survives == ("held" if says else "refuted")
    for place in ("2x", "4x"):  # the sliding window of the card moves on by two bytes, and one byte differs
        mean = card.survives.numbers[f"gap/{place}"]["mean"]
        assert mean == pytest.approx(metrics[f"gap/native/{place}"], abs=0.015)

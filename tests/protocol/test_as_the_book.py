"""A card says of a checkpoint what the book's own experiment says of it, on the same bytes."""

from dataclasses import replace
from itertools import islice
from math import inf

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.claims.asks import gap, levels
from sepnb.claims.evidence import inside
from sepnb.data import text as texts
from sepnb.evaluation.long_windows import BLOCKS, Beyond
from sepnb.experiments.extrapolation import asked
from sepnb.experiments.long_windows import LongTexts, metrics_of, read
from sepnb.experiments.run import Run
from sepnb.models import LanguageModel
from sepnb.protocol import probe
from sepnb.records.verdicts import DEARER, SURVIVES, USES, WORSE
from sepnb.training import TrainingConfig, train

L, TIMES, DOCUMENTS = 32, 4, 5


def trained(method: str) -> tuple[Run, LanguageModel]:
    """A run of the smoke profile, at a length that makes reading byte by byte cheap, trained for a moment."""
    beyond = Beyond(L, TIMES, DOCUMENTS, windows=1, part=1, tight=DOCUMENTS, batch_bytes=4096)
    found = experiments.get("extrapolation").config("smoke", method, 1)
    run = replace(found, training=TrainingConfig(150, 16, L, 8e-3))
    run = replace(run, measures=(LongTexts(beyond, tuple(range(BLOCKS)), asked(run, beyond)),))
    torch.manual_seed(0)
    model = LanguageModel(run.model)
    library = run.data.splits
    batches = texts.sample_batches(library.train, batch_size=16, length=L, seed=0, steps=150)
    train(model, batches, run.training)
    return run, model


def measured(config: Run, model: LanguageModel) -> dict[str, float]:
    """What the experiment says of a checkpoint."""
    (read_of,) = config.measures
    chosen = [one for one in read_of.readings if one.id in ("oracle", "native")]
    return metrics_of(read(config, read_of, model, asked=chosen), L)


def bytes_read(config: Run) -> np.ndarray:
    """The bytes that the experiment read, document after document."""
    cut = BLOCKS * TIMES * L
    held = islice((one.data for one in config.data.splits.test.documents if len(one) > cut), DOCUMENTS)
    return np.concatenate([data[:cut] for data in held] + [np.zeros(1, np.uint8)])


@pytest.fixture(scope="module")
def run() -> tuple[Run, LanguageModel]:
    return trained("rope")


@pytest.mark.parametrize(("window", "survives"), [(None, "refuted"), (L, "held")])
def test_survives_is_what_the_readings_and_the_rule_of_extrapolation_say(run, window, survives) -> None:
    config, model = run
    model = model if window is None else model.extended(window=window)
    metrics = measured(config, model)
    asks = levels("rope", *gap("native", ("2x", "4x")), high=SURVIVES)
    says = all(inside(metrics[ask.a.removeprefix("rope:")], ask) for ask in asks)

    card = probe(model, bytes_read(config), trained_length=L, times=(1, 2, 4))
    assert card.meta["windows"] == BLOCKS * DOCUMENTS
    assert card.survives.verdict == survives == ("held" if says else "refuted")
    for place in ("2x", "4x"):  # the sliding window of the card moves on by two bytes, and one byte differs
        mean = card.survives.numbers[f"gap/{place}"]["mean"]
        assert mean == pytest.approx(metrics[f"gap/native/{place}"], abs=0.015)


@pytest.fixture(scope="module")
def alibi() -> tuple[Run, LanguageModel]:
    return trained("alibi")


def test_uses_quality_and_price_are_what_the_readings_and_the_bounds_of_the_book_say(run, alibi) -> None:
    base, own = measured(*run), measured(*alibi)
    said = {
        "uses": (own["oracle/4x"] - own["native/4x"], USES, inf),
        "quality": (own["native/4x"] - base["oracle/4x"], -inf, WORSE),
        "price": (own["native/1x"] - base["native/1x"], -inf, DEARER),
    }
    text = bytes_read(alibi[0])
    card = probe(alibi[1], text, trained_length=L, times=(1, 2, 4), reference=run[1])
    numbers = {"uses": "gain/removed", "quality": "difference", "price": "difference"}
    for name, (value, low, high) in said.items():
        found = getattr(card, name)
        assert found.numbers[numbers[name]]["mean"] == pytest.approx(value, abs=0.015), name
        assert found.verdict != ("refuted" if low < value < high else "held"), name

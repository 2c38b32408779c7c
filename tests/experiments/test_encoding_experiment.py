"""Every causal encoding in one table: methods differ in the encoding alone, and each is read as it is."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import encodings, experiments
from sepnb.evaluation import AtDrawnPositions, evaluate
from sepnb.evaluation.long_windows import Beyond
from sepnb.evaluation.protocols import Protocol
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.encoding_methods import METHODS
from sepnb.experiments.methods import run_of
from sepnb.experiments.run import trained
from sepnb.models import LanguageModel
from sepnb.training.positions import RandomPositions

from .smoke_runs import smoke, texts_of, untrained
from .smoke_runs import unseen as unseen_of

TABLE = experiments.get("encodings")
SAMPLERS = {
    name: method.training["positions"](lm.SIZES["smoke"])
    for name, method in METHODS.items()
    if "positions" in method.training
}
RANDOMISED = tuple(name for name, sampler in SAMPLERS.items() if sampler.at_evaluation)
SHIFTED = tuple(name for name in SAMPLERS if name not in RANDOMISED)
SHORT = Beyond(64, 2, documents=2, windows=1, part=1, tight=1, batch_bytes=2048)


# --- the table is complete


def test_every_encoding_of_the_registry_is_in_the_table_or_left_out_with_a_reason():
    compared = {e.name for name in METHODS for e in run_of("x", "smoke", name, 1, 1e-3).model.encodings}
    assert compared <= set(encodings.names()) and all(method.says for method in METHODS.values())
    for name in encodings.names():
        kind, reason = type(encodings.build(name)), encodings.build(name).left_out
        assert reason is None if name in compared else reason, (
            f"{name} is {'compared, and left out' if reason else 'neither compared nor left out'}: either a "
            f"method of sepnb/experiments/encoding_methods.py has it, or {kind.__module__}.{kind.__name__} "
            f"says why none has, a class attribute `left_out`"
        )


# --- what is read


@pytest.mark.parametrize(
    ("name", "unseen"),
    [
        (
            "sinusoidal",
            {"native": "index+length+distance", "native-window": "index", "native-at-7x": "index"},
        ),
        (
            "learned",
            {"clamp": "length", "clamp-window": "none", "clamp-window-sinks": "none", "clamp-at-7x": "none"},
        ),
        ("learned-per-layer", {"wrap": "length", "reflect": "length", "zero": "index+length"}),
        ("rope", {"native": "length+distance", "native-window": "none", "native-at-7x": "none"}),
        ("rope", {"native-window-sinks": "distance", "oracle-coarse-sinks": "none"}),
        ("t5", {"native": "length", "native-window": "none"}),
        ("fire", {"native": "index+length+distance", "native-window": "index", "native-at-7x": "index"}),
        ("seqpe", {"native": "length+distance", "native-window": "none", "native-at-7x": "none"}),
        ("rope-randomised", {"native": "length", "contiguous": "length", "native-window": "none"}),
    ],
)
def test_each_reading_says_what_training_never_showed(name, unseen):
    config = TABLE.config("laptop", name, 1)
    asked = {reading.id: unseen_of(config, reading) for reading in texts_of(config).readings}
    assert {id: asked[id] for id in unseen} == unseen
    assert asked["oracle"] == asked["oracle-coarse"] == "none"


def test_a_drawn_reading_is_the_mean_over_its_draws_under_its_rule():
    config = smoke("encodings", "sinusoidal-randomised", beyond=SHORT)
    model, held = untrained(config), texts_of(config).passages(config)
    sampler = config.training.positions
    read, documents = held.tokens[:2, :33], held.documents[:2]
    found = Protocol("r", drawn=sampler, draws=3, window=8).losses(model, read, documents).bits
    masked = model.extended(window=8)
    each = [evaluate(AtDrawnPositions(masked, sampler, draw), read).bits for draw in range(3)]
    assert np.array_equal(found, np.mean(each, axis=0))
    assert not np.allclose(each[0], each[1])
    oracle = Protocol("o", drawn=sampler, window=8, stride=4).losses(model, read, documents).bits
    assert np.array_equal(oracle[:, :8], evaluate(AtDrawnPositions(model, sampler), read[:, :9]).bits)
    with pytest.raises(ValueError, match="start is 8, and drawn positions have no start"):
        Protocol("r", drawn=sampler, start=8)


def test_random_positions_shift_steps_and_losses_cover_the_indices_that_are_read_and_no_others():
    """Without either an index past the trained length would be new."""
    assert SHIFTED == ("seqpe", "seqpe-input")
    for profile in experiments.PROFILES:
        for name in RANDOMISED:  # a longest text leaves gaps between its positions
            config = TABLE.config(profile, name, 1)
            assert isinstance(config.training.positions, RandomPositions)
            assert config.training.positions.maximum == 4 * texts_of(config).beyond.longest
        for name in SHIFTED:
            config = TABLE.config(profile, name, 1)
            training, longest = config.training, texts_of(config).beyond.longest
            sampler, losses = training.positions, training.auxiliary
            assert sampler.maximum == losses.trained_indices(training.length) == 4 * longest
            assert losses.shifts == sampler and losses.windows.trained == (training.length,)
            (encoding,) = config.model.encodings
            assert encoding.base**encoding.digits > sampler.maximum
            bare = dataclasses.replace(training, positions=None, auxiliary=None)
            (far,) = (reading for reading in texts_of(config).readings if reading.start)
            assert unseen_of(config, far) == "none"
            assert unseen_of(dataclasses.replace(config, training=bare), far) == "index"


def test_a_randomised_model_is_scored_at_drawn_positions_inside_the_trained_length_too():
    config = smoke("encodings", "rope-randomised", steps=2, beyond=SHORT)
    record = TABLE.run(config)
    torch.manual_seed(config.seed)
    model = LanguageModel(config.model)
    trained(config, model)
    of = config.data
    cut = lm.text.windows(of.splits.test, length=of.window, per_document=of.test_bytes)
    drawn = evaluate(AtDrawnPositions(model, config.training.positions), cut.tokens).bits_per_byte
    assert record.metrics["bits_per_byte"] == pytest.approx(drawn, abs=1e-6)
    assert drawn != pytest.approx(evaluate(model, cut.tokens).bits_per_byte, abs=1e-5)

"""One pair of RoPE at a time: a pair that is stopped compares content alone, and no other pair is touched."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.encodings import PositionInterpolation, RoPE, rope_frequencies
from sepnb.encodings.context import LONGEST
from sepnb.encodings.rope import RotaryQueryKey
from sepnb.evaluation.tasks.grid import found
from sepnb.experiments import each_pair, tasks
from sepnb.experiments.run import At

from .smoke_runs import untaught

EXPERIMENT = experiments.get("each_pair_mqar")
PAIRS = 2
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def config():
    return EXPERIMENT.config("smoke", "rope-half", 1)


@pytest.fixture(scope="module")
def model(config):
    """With large weights, so that its answers differ from reading to reading."""
    model = config.build().double().eval()
    for parameter in model.parameters():
        parameter.data.mul_(3)
    return model


def test_each_divisor_divides_the_frequency_of_its_own_pair_whatever_the_length(model):
    read = each_pair.divided(model, 1.0, 7.0)
    length, width = model.config.max_length, 2 * PAIRS
    (module,) = {one for one in read.modules() if isinstance(one, RotaryQueryKey)}
    assert module.width == width and each_pair.pairs_of(model) == PAIRS
    plain, _ = rope_frequencies(width)
    for n in (1, length, 16 * length):
        at = torch.arange(n)
        (cos, sin), _ = module.prepare(at, at, n)
        angles = np.arange(n)[:, None] * (plain / torch.tensor([1.0, 7.0])).numpy()
        np.testing.assert_allclose(cos.numpy(), np.cos(angles), rtol=0, atol=1e-12)
        np.testing.assert_allclose(sin.numpy(), np.sin(angles), rtol=0, atol=1e-12)


def test_all_pairs_divided_alike_are_position_interpolation_and_by_one_the_model_itself(model):
    tokens = torch.arange(8 * model.config.max_length).view(2, -1) % 8
    wanted = model.extended(extension=PositionInterpolation(5))(tokens)
    torch.testing.assert_close(each_pair.divided(model, 5.0, 5.0)(tokens), wanted, rtol=0, atol=1e-9)
    torch.testing.assert_close(each_pair.divided(model, 1.0, 1.0)(tokens), model(tokens), rtol=0, atol=1e-9)


def test_a_stopped_pair_hears_no_distance_and_the_others_do(model):
    """Of a model whose other pair is stopped too, the logits of a text do not change if a gap opens in it."""
    tokens = torch.arange(20)[None] % 8
    gapped = torch.cat([torch.arange(10), torch.arange(15, 25)])
    still, half = each_pair.divided(model, LONGEST, LONGEST), each_pair.divided(model, 1.0, LONGEST)
    assert (still(tokens, gapped) - still(tokens)).abs().max() < 1e-9
    assert (half(tokens, gapped) - half(tokens)).abs().max() > 1e-3


def test_what_is_told_is_what_the_divided_models_find(config, model):
    metrics, _ = config.measures[0](config, model, At(start=untaught(config, model)))
    length, times = config.training.length, each_pair.FURTHER
    generate = config.data.generator("test")
    inside, longer = (generate(config.data.samples, n * length, seed=tasks.TEST_SEED) for n in (1, times))
    for name, samples, read in (
        ("stopped-1/1x", inside, each_pair.divided(model, LONGEST, 1.0)),
        ("stopped-2/1x", inside, each_pair.divided(model, 1.0, LONGEST)),
        ("log/16x", longer, model.extended(log_scale=True)),
        ("slowed-1/16x", longer, each_pair.divided(model, 16.0, 1.0, log_scale=True)),
        ("slowed-2/16x", longer, each_pair.divided(model, 1.0, 16.0, log_scale=True)),
        ("slowed-all/16x", longer, each_pair.divided(model, 16.0, 16.0, log_scale=True)),
    ):
        assert metrics[f"accuracy/{name}"] == pytest.approx(found(read, samples)["accuracy"].mean()), name


def test_a_model_without_rotation_or_with_other_pairs_is_refused(config, model):
    without = dataclasses.replace(config, model=dataclasses.replace(config.model, encoding="none"))
    with pytest.raises(ValueError, match="no RoPE"):
        each_pair.pairs_of(without.build())
    with pytest.raises(ValueError, match="3 divisors for 2 pairs"):
        each_pair.divided(model, 1.0, 1.0, 1.0)


def test_of_four_pairs_the_slower_ones_are_slowed_down_together_too(config, monkeypatch):
    """Two pairs have no such reading: the slow one alone is one already."""
    asked = {}
    monkeypatch.setattr(each_pair.tasks, "asked", lambda *given: asked.update(dict(given[3](16))) or ({}, []))
    four = dataclasses.replace(config, model=dataclasses.replace(config.model, encoding=RoPE()))
    for run, expected in ((config, set()), (four, {"slowed-from-2", "slowed-from-3"})):
        asked.clear()
        model = run.build().eval()
        run.measures[0](run, model, At(start=untaught(run, model)))
        assert {name for name in asked if "from" in name} == expected
    module = next(one for one in asked["slowed-from-3"].modules() if isinstance(one, RotaryQueryKey))
    plain, _ = rope_frequencies(8)
    at = torch.tensor([200])
    (cos, _), _ = module.prepare(at, at, 300)
    slower = plain / torch.tensor([1.0, 1.0, 16.0, 16.0])
    torch.testing.assert_close(cos[0], (200 * slower).cos(), rtol=0, atol=1e-12)

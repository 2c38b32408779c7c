"""A training that is left and resumed gives what the uninterrupted one gives, to the last bit."""

import dataclasses
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice

import numpy as np
import pytest
import torch
from torch import Tensor

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, checkpoints, optimiser, train

from ..models.trained import weights
from ..shared import refused
from .test_training import Nothing

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = TrainingConfig(steps=12, batch_size=4, length=8, learning_rate=1e-2)


def model(seed: int = 0, width: int = 8) -> LanguageModel:
    torch.manual_seed(seed)
    config = TransformerConfig(Streams.dense(width), n_layers=1, n_heads=2, encoding="rope", max_length=8)
    return LanguageModel(config, vocab_size=7)


def batches() -> Iterator[np.ndarray]:
    generator = np.random.default_rng(0)
    while True:
        yield (generator.integers(7, size=(4, 1)) + np.arange(9)) % 7


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def halfway() -> checkpoints.Checkpoint:
    """After 5 of the 12 steps."""
    m = model()
    adamw = optimiser(m, CONFIG)
    losses = train(m, batches(), CONFIG, adamw=adamw, stop_after=5)
    return checkpoints.take(m, adamw, losses, {"what": "halfway", "seed": 0}, cpu_s=1.5)


def test_resumed_from_a_file_is_uninterrupted_bit_for_bit(halfway, tmp_path):
    whole = model()
    curve = train(whole, batches(), CONFIG)

    path = tmp_path / "deep" / "halfway.safetensors"
    checkpoints.save(path, halfway)
    found = checkpoints.kept(path, {"what": "halfway", "seed": 0})
    resumed = model(seed=9)
    adamw = checkpoints.restore(found, resumed, CONFIG)
    later = train(resumed, islice(batches(), found.steps, None), CONFIG, adamw=adamw, start=found.steps)
    assert found.losses + later == curve
    assert found.steps == 5 and found.cpu_s == 1.5
    assert same(weights(resumed), weights(whole))


def test_a_checkpoint_is_a_copy_that_later_steps_leave_alone(halfway):
    before = {name: value.clone() for name, value in halfway.weights.items()}
    step = float(halfway.averages["state"][0]["step"])
    average = halfway.averages["state"][0]["exp_avg"].clone()
    one, other = model(), model()
    for m in (one, other):
        adamw = checkpoints.restore(halfway, m, CONFIG)
        train(m, batches(), CONFIG, adamw=adamw, stop_after=3)
    assert same(weights(one), weights(other))
    assert same(halfway.weights, before)
    assert float(halfway.averages["state"][0]["step"]) == step == 5
    assert torch.equal(halfway.averages["state"][0]["exp_avg"], average)


def test_another_schedule_keeps_the_averages_and_sets_its_own_decay(halfway):
    m = model()
    tuning = TrainingConfig(steps=2, batch_size=4, length=8, learning_rate=1e-3, weight_decay=0.0)
    adamw = checkpoints.restore(halfway, m, tuning)
    assert [group["weight_decay"] for group in adamw.param_groups] == [0.0, 0.0]
    assert [group["lr"] for group in adamw.param_groups] == [1e-3, 1e-3]
    assert all(float(state["step"]) == 5 for state in adamw.state.values())
    assert {id(p) for group in adamw.param_groups for p in group["params"]} == {id(p) for p in m.parameters()}


def test_no_file_one_of_another_training_and_a_damaged_one_are_told_apart(halfway, tmp_path):
    path = tmp_path / "one.safetensors"
    assert checkpoints.kept(path, halfway.about) is None
    checkpoints.save(path, halfway)
    assert checkpoints.kept(path, halfway.about | {"seed": 1}) is None
    assert checkpoints.kept(path, halfway.about).steps == halfway.steps
    path.write_bytes(path.read_bytes()[:2000])
    refused(r"one\.safetensors .*; delete it", checkpoints.kept, path, halfway.about)


@pytest.mark.attack("a flipped bit in the weights and in the averages of a checkpoint")
@pytest.mark.parametrize("of", ["weights", "averages"])
def test_a_flipped_bit_of_a_checkpoint_never_becomes_another_weight(of, halfway, tmp_path):
    path = tmp_path / "one.safetensors"
    checkpoints.save(path, halfway)
    average = halfway.averages["state"][0]["exp_avg"]
    number = next(iter(halfway.weights.values())) if of == "weights" else average
    content = bytearray(path.read_bytes())
    content[content.index(number.numpy().tobytes()) + 5] ^= 1
    path.write_bytes(content)
    refused(r"one\.safetensors is damaged.*; delete it", checkpoints.kept, path, halfway.about | {"seed": 1})


@pytest.mark.attack("checkpoints that no training gives, under a good seal")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": "abc"}, "steps must be an int, got 'abc'"),
        ({"steps": 99}, "steps is 99; it must be at most 5"),
        ({"steps": 4}, "steps is 4; it has the losses of 5"),
        ({"losses": 5 * ["1.0"]}, "a loss must be a number"),
        ({"losses": None}, "None"),
        ({"cpu_s": -1.0}, "cpu_s is -1.0"),
        ({"weights": {"w": torch.tensor([1.0, torch.nan])}}, "weights.w holds numbers that are not finite"),
    ],
)
def test_what_no_training_gives_is_refused_under_a_seal_too(changes, message, halfway, tmp_path):
    path = tmp_path / "one.safetensors"
    checkpoints.save(path, dataclasses.replace(halfway, **changes))
    with pytest.raises(ValueError, match=rf"one\.safetensors is no checkpoint .*{message}.*; delete it"):
        checkpoints.kept(path, halfway.about)


def test_the_weights_of_another_model_are_refused(halfway):
    with pytest.raises(ValueError, match=r"is of another model; build the one that was kept"):
        checkpoints.restore(halfway, model(width=16), CONFIG)


@pytest.mark.parametrize("start", [-1, 12, 13])
def test_a_start_outside_the_schedule_is_refused(start):
    refused(f"start is {start}; of 12 steps give 0 to 11", train, model(), batches(), CONFIG, start=start)


def test_names_of_a_command_line_are_kept_as_the_text_they_are(tmp_path, halfway):
    """A profile arrives as a member of an enumeration, and is read back as text."""

    class Profile(StrEnum):
        smoke = "smoke"

    about = {"profile": Profile.smoke, "sizes": (1, 2)}
    taken = checkpoints.take(model(), optimiser(model(), CONFIG), [1.0], about)
    checkpoints.save(tmp_path / "one.safetensors", taken)
    for asked in (about, {"profile": "smoke", "sizes": [1, 2]}):
        assert checkpoints.kept(tmp_path / "one.safetensors", asked).steps == 1
    assert checkpoints.kept(tmp_path / "one.safetensors", {"profile": "laptop", "sizes": [1, 2]}) is None


def test_an_auxiliary_loss_that_draws_from_another_step_or_by_another_seed_is_refused():
    config = dataclasses.replace(CONFIG, auxiliary=Nothing())

    def go_on(auxiliary, **how):
        return train(model(), batches(), config, auxiliary=auxiliary, start=5, stop_after=6, **how)

    refused("start is 5, and an auxiliary loss draws from step 0 on", go_on, Nothing().bind(0), seed=0)
    for how in ({"seed": 1}, {}):
        with pytest.raises(ValueError, match=f"seed is {how.get('seed')}, and an auxiliary loss draws by se"):
            go_on(Nothing().bind(0, 5), **how)
    assert len(go_on(Nothing().bind(0, 5), seed=0)) == 1


def test_a_checkpoint_without_a_seed_is_not_resumed_and_comes_back_without_one(halfway, tmp_path):
    checkpoints.save(tmp_path / "one.safetensors", halfway)
    found = checkpoints.kept(tmp_path / "one.safetensors", halfway.about)
    assert found.seed is None and found.noise is None
    refused("the checkpoint has no seed", checkpoints.resumed, found, model(), CONFIG, lambda seed: batches())

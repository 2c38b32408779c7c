"""The schedule of SeqPE in a language model: losses, shift steps, evaluation, how a training is resumed."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from sepnb.data import text as texts
from sepnb.models import ImageClassifier, LanguageModel, TransformerConfig
from sepnb.seqpe import SeqPE
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.streams import Streams
from sepnb.training import Batch, TrainingConfig, checkpoints, optimiser, train
from sepnb.training.seqpe_losses import SeqPELosses, grid_losses
from sepnb.training.shifts import GridShiftSteps, ShiftSteps

LENGTH, STEPS, SEED = 8, 6, 3
SHIFTS = ShiftSteps(1000, probability=0.5)
LOSSES = SeqPELosses(
    CandidateSampler((1000,), anchors=4, candidates=5, window=(50,)),
    WindowSampler((1000,), (LENGTH,), windows=3, places=4),
    shifts=SHIFTS,
)
CONFIG = TrainingConfig(STEPS, 2, LENGTH, 1e-2, positions=SHIFTS, auxiliary=LOSSES)

pytestmark = pytest.mark.usefixtures("one_thread")


def model(dropout: float = 0.0, site: str = "input") -> LanguageModel:
    torch.manual_seed(0)
    encoding = SeqPE(site=site, width=8, heads=2, dropout=dropout)
    streams = Streams(pos=8, sem=8) if site == "input" else Streams.dense(16)
    shape = TransformerConfig(streams, 1, 2, encoding, max_length=LENGTH, dropout=dropout)
    return LanguageModel(shape)


def with_dropout() -> LanguageModel:
    return model(dropout=0.3)


def batches(config: TrainingConfig = CONFIG, seed: int = SEED):
    sizes = {"batch_size": 2, "length": LENGTH, "seed": seed, "steps": STEPS}
    return config.positions.batches(texts.load("sympy").train, **sizes)


def weights(made: LanguageModel) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in made.parameters()])


def left_and_resumed(config: TrainingConfig, left_at: int, path, made=model, seed: int = SEED):
    """The weights of a whole training, and of one that was left, written, read, and resumed."""
    how = {"auxiliary": config.bound_auxiliary(seed)}
    whole, left, later = made(), made(), made()
    torch.manual_seed(7)
    train(whole, batches(config, seed), config, **how)
    torch.manual_seed(7)
    how = {"adamw": optimiser(left, config), "auxiliary": config.bound_auxiliary(seed)}
    losses = train(left, batches(config, seed), config, stop_after=left_at, **how)
    checkpoints.save(path, checkpoints.take(left, how["adamw"], losses, {}, seed=seed))
    torch.rand(99)  # what else a process draws
    found = checkpoints.kept(path, {})
    checkpoints.resumed(found, later, config, lambda drawn: batches(config, drawn))
    return weights(whole), weights(later)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("left_at", [1, 3])
def test_a_training_that_is_resumed_goes_on_as_one_that_was_not_interrupted(every, left_at, tmp_path):
    """Batches, shift steps, their positions and those of the losses come from the seed it was left with."""
    config = dataclasses.replace(CONFIG, auxiliary=dataclasses.replace(LOSSES, every=every))
    whole, later = left_and_resumed(config, left_at, tmp_path / "one.safetensors")
    assert torch.equal(whole, later)


def test_what_was_resumed_can_be_left_again():
    whole, one, other, last = (with_dropout() for _ in range(4))
    torch.manual_seed(7)
    curve = train(whole, batches(), CONFIG, auxiliary=LOSSES.bind(SEED))
    torch.manual_seed(7)
    how = {"adamw": optimiser(one, CONFIG), "auxiliary": LOSSES.bind(SEED), "stop_after": 1}
    losses = train(one, batches(), CONFIG, **how)
    first = checkpoints.take(one, how["adamw"], losses, {}, seed=SEED)
    more, adamw = checkpoints.resumed(first, other, CONFIG, lambda s: batches(CONFIG, s), stop_after=4)
    second = checkpoints.take(other, adamw, losses + more, {}, seed=SEED)
    rest, _ = checkpoints.resumed(second, last, CONFIG, lambda s: batches(CONFIG, s))
    assert second.steps == 4 and losses + more + rest == curve
    assert torch.equal(weights(last), weights(whole))


GRID = (3, 3)
ON_A_GRID = ImageClassifier(
    TransformerConfig(
        Streams.dense(16),
        1,
        2,
        SeqPE(width=8, heads=2, digits=2, dims=2, class_token=True),
        max_length=10,
        causal=False,
        axes=2,
    ),
    4,
    2,
)


@pytest.mark.parametrize("starts", [None, 320])
def test_a_training_on_a_grid_is_resumed_as_one_that_was_not_interrupted(starts, tmp_path):
    """The same of images: places that moved, both losses of two coordinates, moves that are drawn once."""
    shifts = dataclasses.replace(GridShiftSteps(GRID, (30, 30)), probability=0.5, starts=starts)
    losses = dataclasses.replace(grid_losses(GRID, (30, 30), columns=8), shifts=shifts)
    config = TrainingConfig(STEPS, 2, 1, 1e-2, positions=shifts, auxiliary=losses)

    def drawn(seed: int):
        generator = np.random.default_rng(seed)
        for places in shifts.positions(seed=seed, steps=STEPS):
            images = generator.random((2, 1, 6, 6), dtype=np.float32)
            yield Batch(images, generator.integers(4, size=2), places)

    assert any(shifts.outside(places) for places in shifts.positions(seed=SEED, steps=STEPS))
    whole, left, later = (copy.deepcopy(ON_A_GRID) for _ in range(3))
    train(whole, drawn(SEED), config, auxiliary=config.bound_auxiliary(SEED))
    how = {"adamw": optimiser(left, config), "auxiliary": config.bound_auxiliary(SEED), "stop_after": 3}
    taken = checkpoints.take(left, how["adamw"], train(left, drawn(SEED), config, **how), {}, seed=SEED)
    checkpoints.save(tmp_path / "one.safetensors", taken)
    checkpoints.resumed(checkpoints.kept(tmp_path / "one.safetensors", {}), later, config, drawn)
    assert torch.equal(weights(whole), weights(later))


def test_a_step_that_moved_and_that_the_losses_would_teach_from_is_refused():
    """Batches and losses have a seed each; by two of them the decisions to shift part."""
    with pytest.raises(ValueError, match=f"step [0-5] is read outside .* by seed {SEED + 2}; draw"):
        train(model(), batches(), CONFIG, auxiliary=LOSSES.bind(SEED + 2))
    assert any(SHIFTS.outside(batch.positions) for batch in batches())
    assert not SHIFTS.outside(np.arange(LENGTH)) and SHIFTS.outside(np.arange(LENGTH) + 1)
    on_grid = GridShiftSteps(GRID, (30, 30))
    for some in (on_grid.home, on_grid.home[[3, 1]][None]):
        assert not on_grid.outside(some)
        assert all(on_grid.outside(some + np.array(move)) for move in ((0, 3), (-1, 0)))
    silent = dataclasses.replace(LOSSES, distillation=0.0)
    config = dataclasses.replace(CONFIG, auxiliary=silent)
    train(model(), batches(), config, auxiliary=silent.bind(SEED + 2))  # nothing teaches there

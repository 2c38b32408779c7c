"""The schedule of SeqPE in a language model: losses, shift steps, evaluation."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb.data import text as texts
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.seqpe import SeqPE
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train
from sepnb.training.seqpe_losses import SeqPELosses
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


def batches(config: TrainingConfig = CONFIG, seed: int = SEED):
    sizes = {"batch_size": 2, "length": LENGTH, "seed": seed, "steps": STEPS}
    return config.positions.batches(texts.load("sympy").train, **sizes)


GRID = (3, 3)


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

"""The schedule of SeqPE in a language model: losses, shift steps, evaluation, how a training is resumed."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from sepnb import checkpoints
from sepnb.data import text as texts
from sepnb.encodings import SeqPE
from sepnb.evaluation import as_trained, evaluate
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.positions import ShiftSteps
from sepnb.seqpe.objective import SeqPELosses
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, optimiser, train

LENGTH, STEPS, SEED = 8, 6, 3
SHIFTS = ShiftSteps(1000, probability=0.5)
LOSSES = SeqPELosses(
    CandidateSampler((1000,), anchors=4, candidates=5, window=(50,)),
    WindowSampler((1000,), (LENGTH,), windows=3, places=4),
    shifts=SHIFTS,
)
CONFIG = TrainingConfig(STEPS, 2, LENGTH, 1e-2, positions=SHIFTS, auxiliary=LOSSES)

pytestmark = pytest.mark.usefixtures("one_thread")


def model() -> LanguageModel:
    torch.manual_seed(0)
    encoding = SeqPE(site="input", width=8, heads=2)
    return LanguageModel(TransformerConfig(Streams(pos=8, sem=8), 1, 2, encoding, max_length=LENGTH))


def batches(start: int = 0, config: TrainingConfig = CONFIG):
    sizes = {"batch_size": 2, "length": LENGTH, "seed": SEED, "steps": STEPS}
    drawn = config.positions.batches(texts.load("sympy").train, **sizes)
    return itertools.islice(drawn, start, None)


def weights(made: LanguageModel) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in made.parameters()])


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("left_at", [1, 3])
def test_a_training_that_is_resumed_goes_on_as_one_that_was_not_interrupted(every, left_at):
    losses = dataclasses.replace(LOSSES, every=every)
    config = dataclasses.replace(CONFIG, auxiliary=losses)
    whole, left = model(), model()
    train(whole, batches(), config, auxiliary=losses.bind(SEED))
    adamw = optimiser(left, config)
    how = {"adamw": adamw, "auxiliary": losses.bind(SEED), "stop_after": left_at}
    taken = checkpoints.take(left, adamw, train(left, batches(), config, **how), {})
    resumed = model()
    adamw = checkpoints.restore(taken, resumed, config)
    how = {"adamw": adamw, "auxiliary": losses.bind(SEED, start=left_at), "start": left_at}
    train(resumed, batches(left_at), config, **how)
    assert torch.equal(weights(resumed), weights(whole))


def test_a_loss_bound_at_another_step_is_refused():
    for bound, start in ((LOSSES.bind(SEED), 2), (LOSSES.bind(SEED, start=3), 2), (LOSSES.bind(SEED, 3), 0)):
        with pytest.raises(
            ValueError, match=rf"start is {start}, and an auxiliary loss draws anew from step"
        ):
            train(model(), batches(start), CONFIG, auxiliary=bound, start=start)
    with pytest.raises(ValueError, match="start is -1"):
        LOSSES.bind(SEED, start=-1)


def test_losses_of_weight_zero_leave_a_training_as_it_is_without_them():
    none = dataclasses.replace(LOSSES, contrastive=0.0, distillation=0.0)
    with_none, without, with_both = model(), model(), model()
    train(with_none, batches(), dataclasses.replace(CONFIG, auxiliary=none), auxiliary=none.bind(SEED))
    train(without, batches(), dataclasses.replace(CONFIG, auxiliary=None))
    train(with_both, batches(), CONFIG, auxiliary=LOSSES.bind(SEED))
    assert torch.equal(weights(with_none), weights(without))
    assert not torch.equal(weights(with_both), weights(without))


def test_no_text_is_evaluated_at_shifted_positions_and_some_are_trained_there():
    read = [batch.positions for batch in batches()]
    assert any(at[0] for at in read) and any(not at[0] for at in read)
    made = model().eval()
    assert as_trained(made, SHIFTS) is made
    tokens = next(batches()).inputs
    whole, from_zero, elsewhere = (
        evaluate(made, tokens, positions=at).bits
        for at in (None, np.arange(LENGTH - 1), 500 + np.arange(LENGTH - 1))
    )
    assert np.array_equal(whole, from_zero) and not np.array_equal(whole, elsewhere)


def test_one_step_in_ten_is_shifted_unless_it_is_told_otherwise():
    decisions = list(itertools.islice(ShiftSteps(1000).decisions(SEED), 4000))
    assert abs(np.mean(decisions) - 0.1) < 4 * (0.1 * 0.9 / len(decisions)) ** 0.5


def test_a_longer_text_and_a_farther_index_need_no_new_parameter():
    made = model().eval()
    names = list(made.state_dict())
    tokens = torch.zeros(1, 4 * LENGTH, dtype=torch.int64)
    with torch.no_grad():
        for start in (0, 50_000, 10**5 - 4 * LENGTH):
            assert made(tokens, start + torch.arange(4 * LENGTH)).isfinite().all()
    assert list(made.state_dict()) == names

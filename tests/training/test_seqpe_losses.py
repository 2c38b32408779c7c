"""The objective of SeqPE: which losses are computed, on which positions, and who learns from them."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb.data.draws import generator_of
from sepnb.encodings import Heads
from sepnb.seqpe import SeqPE, SequentialPositionEncoder, contrastive_loss, distillation_loss
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.training import TrainingConfig
from sepnb.training.positions import RandomOffset, RandomPositions, TrueGap
from sepnb.training.seqpe_losses import RELEASED, SeqPELosses
from sepnb.training.shifts import GridShiftSteps, ShiftSteps

from ..shared import refused

CANDIDATES = CandidateSampler((1000,), anchors=6, candidates=5, window=(50,))
WINDOWS = WindowSampler((1000,), (16,), windows=3, places=8)
BOTH = SeqPELosses(CANDIDATES, WINDOWS, n_heads=2)


def encoder(**settings) -> SequentialPositionEncoder:
    torch.manual_seed(0)
    made = SequentialPositionEncoder(width=8, heads=2, digits=3, **settings).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def by_parts(made, losses, candidates, windows) -> torch.Tensor:
    """The sum in the open: each part encoded by the definition, on its own."""
    anchors, others = (torch.from_numpy(part) for part in candidates)
    embedded = made.plain(others.flatten(0, 1)).unflatten(0, others.shape[:2])
    first = contrastive_loss(made.plain(anchors), embedded, anchors, others, scale=losses.scale)
    teacher, student = (made.plain(part.reshape(-1, 1)).unflatten(0, part.shape[:2]) for part in windows)
    second = distillation_loss(
        teacher.detach(), student, losses.n_heads, reduction=losses.reduction, scale=losses.distillation_scale
    )
    return losses.contrastive * first + losses.distillation * second


@pytest.mark.parametrize(
    "options", [{}, RELEASED, {"distillation_scale": None}], ids=["ours", "released", "scale-free"]
)
def test_the_objective_is_the_weighted_sum_of_both_losses_in_value_and_gradient(options):
    losses, made = SeqPELosses(CANDIDATES, WINDOWS, n_heads=2, **options), encoder()
    drawn = losses.draw(np.random.PCG64(3))
    found = []
    for value in (losses.of(made, *drawn), by_parts(made, losses, *drawn)):
        made.zero_grad()
        value.backward()
        found.append((value, [parameter.grad.clone() for parameter in made.parameters()]))
    (ours, grads), (expected, others) = found
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)
    for grad, other in zip(grads, others, strict=True):
        torch.testing.assert_close(grad, other, rtol=1e-9, atol=1e-12)


def test_our_default_is_as_strong_as_the_released_distillation():
    windows = WindowSampler((1000,), (64,), windows=4, places=32)
    drawn, made = windows.draw(np.random.PCG64(0)), encoder()
    both = [SeqPELosses(windows=windows, **options).of(made, None, drawn) for options in ({}, RELEASED)]
    torch.testing.assert_close(*both)


def test_a_loss_of_weight_zero_is_not_computed_and_leaves_the_other_its_positions():
    made = encoder()
    whole = BOTH.bind(5)(made)
    parts = [
        SeqPELosses(CANDIDATES, WINDOWS, n_heads=2, **{off: 0.0}).bind(5)(made)
        for off in ("contrastive", "distillation")
    ]
    assert all(part.item() > 0 for part in parts)
    torch.testing.assert_close(sum(parts), whole)
    nothing = SeqPELosses(CANDIDATES, WINDOWS, contrastive=0.0, distillation=0.0).bind(5)(made)
    assert nothing.item() == 0.0 and not nothing.requires_grad


@pytest.mark.parametrize("every", [1, 3])
def test_nothing_is_distilled_on_shift_steps_and_losses_of_some_steps_have_as_many_times_their_weight(every):
    made, shifts = encoder(), ShiftSteps(1000, probability=0.5)
    whole = SeqPELosses(CANDIDATES, WINDOWS, n_heads=2, shifts=shifts)
    sparse = dataclasses.replace(whole, every=every)
    loss, generator, seen = sparse.bind(2), generator_of(2, "seqpe-losses"), set()
    for step, shifted in zip(range(12), shifts.decisions(2), strict=False):
        value = loss(made).item()
        if step % every:
            assert value == 0.0
            continue
        candidates, windows = whole.draw(generator)
        expected = every * whole.of(made, candidates, None if shifted else windows)
        assert value == pytest.approx(expected.item())
        seen.add(shifted)
    assert seen == {True, False}
    assert "every" not in whole.resolved() and sparse.resolved().get("every", 1) == every


def test_a_training_with_other_shift_steps_than_the_losses_know_is_refused(unhooked):
    def config(positions, **losses):
        auxiliary = SeqPELosses(CANDIDATES, WINDOWS, **losses)
        return TrainingConfig(5, 1, 16, 1e-3, positions=positions, auxiliary=auxiliary)

    shifts = ShiftSteps(1000)
    config(shifts, shifts=shifts), config(None)
    config(shifts, distillation=0.0)
    for positions, own in ((shifts, None), (None, shifts), (shifts, ShiftSteps(999))):
        refused("give both the same", config, positions, shifts=own)


@pytest.mark.parametrize("positions", [RandomOffset(1000), RandomPositions(1000), TrueGap(9)], ids=repr)
def test_a_training_that_reads_no_window_in_every_step_has_no_teacher(positions, unhooked):
    """Its texts stand anywhere: the window from 0 on is no more the trained one than any other."""
    for losses in ({}, {"shifts": ShiftSteps(1000)}):
        how = {"positions": positions, "auxiliary": SeqPELosses(CANDIDATES, WINDOWS, **losses)}
        refused("none can teach; leave out windows", TrainingConfig, 5, 1, 16, 1e-3, **how)
    for alone in (SeqPELosses(CANDIDATES), SeqPELosses(CANDIDATES, WINDOWS, distillation=0.0)):
        TrainingConfig(5, 1, 16, 1e-3, positions=positions, auxiliary=alone)


def test_a_teacher_larger_than_what_is_read_is_refused(unhooked):
    def text(length: int, first: int = 0, shifts=None):
        windows = WindowSampler((1000,), (16,), places=8, first=first)
        auxiliary = SeqPELosses(CANDIDATES, windows, shifts=shifts)
        return TrainingConfig(5, 1, length, 1e-3, positions=shifts, auxiliary=auxiliary)

    def image(grid: tuple[int, int], first: int = 1):
        shifts = GridShiftSteps((4, 3), (20, 20))
        windows = WindowSampler((20, 20), grid, places=4, away=grid, first=first)
        auxiliary = SeqPELosses(windows=windows, shifts=shifts)
        return TrainingConfig(5, 1, 1, 1e-3, positions=shifts, auxiliary=auxiliary)

    text(16), text(17, first=1), text(40), text(16, shifts=ShiftSteps(1000)), image((4, 3)), image((2, 2))
    text(1)  # positions alone: nothing is read
    outside = "is not inside what the training reads"
    for what in ((15,), (16, 1), (15, 0, ShiftSteps(1000))):
        refused(outside, text, *what)
    for what in (((4, 4),), ((4, 3), 0), ((4, 3), 2)):
        refused(outside, image, *what)


def test_a_seed_repeats_its_steps_and_another_differs():
    made = encoder()
    one, again, other = BOTH.bind(1), BOTH.bind(1), BOTH.bind(2)
    first = [one(made).item() for _ in range(3)]
    assert first == [again(made).item() for _ in range(3)]
    assert len(set(first)) == 3 and first != [other(made).item() for _ in range(3)]
    with pytest.raises(ValueError, match="start is -1"):
        BOTH.bind(1, start=-1)


def test_the_teacher_is_read_without_dropout():
    torch.manual_seed(0)
    made = encoder(dropout=0.5)
    only = SeqPELosses(windows=WINDOWS, n_heads=2)
    made.eval()
    quiet = only.bind(4)(made)
    torch.testing.assert_close(quiet, only.bind(4)(made))
    made.train()
    drawn = only.draw(np.random.PCG64(4))[1]
    with torch.no_grad():
        teachers = [made.eval()(drawn.teacher.reshape(-1, 1)) for _ in range(2)]
    assert torch.equal(*teachers)
    made.train()
    noisy = {round(only.of(made, None, drawn).item(), 12) for _ in range(4)}
    assert len(noisy) == 4 and made.training, "the student has dropout, and training goes on"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "neither candidates nor windows"),
        ({"candidates": CANDIDATES, "contrastive": -0.1}, "contrastive is -0.1"),
        ({"candidates": CANDIDATES, "reduction": "sum"}, "unknown reduction 'sum'"),
        ({"candidates": CANDIDATES, "every": 0}, "every is 0"),
        ({"candidates": CANDIDATES, "windows": WindowSampler((99,), (9,), places=4)}, "different ranges"),
    ],
)
def test_settings_that_do_not_fit_and_a_model_without_one_encoder_are_refused(settings, message, unhooked):
    refused(message, SeqPELosses, **settings)
    refused("0 sequential position encoders", BOTH.bind(0), torch.nn.Linear(2, 2))
    refused("2 sequential position encoders", BOTH.bind(0), torch.nn.ModuleList([encoder(), encoder()]))


def test_all_that_the_release_sets_is_set_by_options_of_one_of_three_descriptions():
    """Forms and weights of the losses, noise in the encoder, offsets that are drawn once."""
    shifts = ShiftSteps(1000, starts=320, per="sequence")
    losses = SeqPELosses(CANDIDATES, WINDOWS, shifts=shifts, **RELEASED)
    TrainingConfig(5, 1, 16, 1e-3, positions=shifts, auxiliary=losses)
    told = losses.resolved()
    assert (told["scale"], told["reduction"], told["distillation"]) == (1.0, "released", 0.1)
    assert "distillation_scale" not in told, "raw products are the default, and in no older record"
    free = dataclasses.replace(losses, distillation_scale=None)
    assert free.resolved() == told | {"distillation_scale": None}
    assert told["shifts"] == {"maximum": 1000, "per": "sequence", "probability": 0.1, "starts": 320}
    encoder = SeqPE(width=64, dropout=0.1, std=0.02).at_query_key(Heads(width=8)).embeddings.encoder
    noisy = [encoder(torch.arange(16)) for _ in range(2)]
    assert not torch.equal(*noisy)
    assert encoder.digit.weight.std().item() == pytest.approx(0.02, rel=0.15)

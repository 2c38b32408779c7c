"""The training loop: the schedule, what decays, what repeats exactly, and what stops it."""

import dataclasses
import math
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import Batch, Diverged, TrainingConfig, autocast, next_token_losses, optimiser, train
from sepnb.training.device import Lookout
from sepnb.training.losses import AuxiliaryLoss, BoundLoss
from sepnb.training.positions import RandomOffset

from ..shared import refused

CONFIG = TrainingConfig(steps=20, batch_size=4, length=8, learning_rate=1e-2)


def model(seed: int = 0, **fields) -> LanguageModel:
    torch.manual_seed(seed)
    fields = {"streams": Streams(pos=8, sem=8), "encoding": "learned", "max_length": 8, **fields}
    return LanguageModel(TransformerConfig(n_layers=1, n_heads=2, **fields), vocab_size=7)


def batches(seed: int = 0, steps: int = 20, rows: int = 4) -> Iterator[np.ndarray]:
    """Counting modulo 7 from a random start: the next token follows from the one before."""
    generator = np.random.default_rng(seed)
    for _ in range(steps):
        yield (generator.integers(7, size=(rows, 1)) + np.arange(9)) % 7


# --- the schedule


def test_the_rate_rises_in_a_line_peaks_after_the_warm_up_and_falls_to_a_tenth():
    config = TrainingConfig(steps=100, batch_size=1, length=1, learning_rate=2.0, warmup=0.1)
    rates = [config.rate(step) for step in range(101)]
    assert rates[:10] == pytest.approx([2.0 * (step + 1) / 11 for step in range(10)])
    assert rates[10] == 2.0 == max(rates)
    assert rates[55] == pytest.approx(1.1)  # half of the cosine: the mean of 2.0 and 0.2
    assert rates[100] == pytest.approx(0.2)
    assert rates[99] == pytest.approx(0.2, rel=0.01)
    assert all(later < earlier for earlier, later in pairwise(rates[10:]))


@pytest.mark.parametrize("warmup", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_every_rate_of_a_short_schedule_is_above_zero_and_at_most_the_highest(steps, warmup):
    config = TrainingConfig(steps=steps, batch_size=1, length=1, learning_rate=1e-3, warmup=warmup)
    assert all(0 < config.rate(step) <= 1e-3 for step in range(steps))


@pytest.fixture
def optimisers(monkeypatch) -> list[tuple[list[float], float]]:
    """Per step the learning rates of the groups, and the norm of the gradient that the optimiser is given."""
    seen, step = [], torch.optim.AdamW.step

    def noting(self, *arguments, **keywords):
        gradients = [p.grad.flatten() for group in self.param_groups for p in group["params"]]
        seen.append(([group["lr"] for group in self.param_groups], torch.cat(gradients).norm().item()))
        return step(self, *arguments, **keywords)

    monkeypatch.setattr(torch.optim.AdamW, "step", noting)
    return seen


def test_an_average_without_end_is_refused():
    refused(
        r"betas are \(0.9, 1.0\); give two, both at least 0", dataclasses.replace, CONFIG, betas=(0.9, 1.0)
    )


def test_the_loop_uses_the_schedule_and_shortens_a_gradient_longer_than_the_clip(optimisers):
    train(model(), batches(), dataclasses.replace(CONFIG, clip=1e-3))
    assert [rates for rates, _ in optimisers] == [[CONFIG.rate(step)] * 2 for step in range(20)]
    assert [norm for _, norm in optimisers] == pytest.approx([1e-3] * 20, rel=1e-3)


# --- what decays, what is clipped


@pytest.mark.parametrize("tied", [False, True])
def test_only_the_weights_of_maps_decay(tied):
    m = model(bias=True, tie_embeddings=tied)
    decaying, others = (group["params"] for group in optimiser(m, CONFIG).param_groups)
    assert [group["weight_decay"] for group in optimiser(m, CONFIG).param_groups] == [0.1, 0.0]
    names = {id(parameter): name for name, parameter in m.named_parameters()}
    assert len(decaying) + len(others) == len(names)
    assert not {id(p) for p in decaying} & {id(p) for p in others}
    for name in (names[id(p)] for p in others):
        assert name.endswith(("bias", "table", "embedding.weight")) or ".bias." in name or "gain." in name
    for name in (names[id(p)] for p in decaying):
        # Tied, the one weight is the output map's, and decays as that.
        assert name.endswith(".weight") and (tied or name != "embedding.weight")


# --- what a run is


def test_the_loss_of_a_step_is_the_mean_over_the_predicted_tokens_in_nats():
    m, batch = model(), next(batches())
    with torch.no_grad():
        logits = m(torch.from_numpy(batch[:, :-1]))
        losses = next_token_losses(m, torch.from_numpy(batch))
    assert losses.shape == (4, 8)
    for row in range(4):
        for place in range(8):
            p = logits[row, place].softmax(-1)[batch[row, place + 1]].item()
            assert losses[row, place].item() == pytest.approx(-math.log(p), abs=1e-5)
    first = train(m, batches(), CONFIG, stop_after=1)
    assert first == pytest.approx([losses.mean().item()], abs=1e-6)


def test_the_loss_of_a_float64_model_is_not_rounded_to_float32():
    m, batch = model().double(), torch.from_numpy(next(batches()))
    expected = -m(batch[:, :-1]).log_softmax(-1).gather(-1, batch[:, 1:, None])[..., 0]
    losses = next_token_losses(m, batch)
    assert losses.dtype == torch.float64
    torch.testing.assert_close(losses, expected, rtol=1e-12, atol=1e-12)
    weights = list(m.parameters())
    ours, theirs = (torch.autograd.grad(sums.sum(), weights) for sums in (losses, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    with autocast("cpu", "bfloat16"):
        assert next_token_losses(model(), batch).dtype == torch.float32


def test_it_learns_what_can_be_learned():
    config = dataclasses.replace(CONFIG, steps=80)
    curve = train(model(), batches(steps=80), config)
    assert len(curve) == 80
    assert curve[0] > 1.5 and np.mean(curve[-5:]) < 0.2


def test_a_run_repeats_exactly_and_another_seed_is_another_run():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one, again = (train(model(), batches(), CONFIG) for _ in range(2))
        other_weights, other_data = train(model(1), batches(), CONFIG), train(model(), batches(1), CONFIG)
    finally:
        torch.set_num_threads(threads)
    assert one == again
    assert one != other_weights and one != other_data


def test_stopping_early_gives_the_first_losses_of_the_whole_schedule():
    whole = train(model(), batches(), CONFIG)
    assert train(model(), batches(), CONFIG, stop_after=3) == whole[:3]
    assert train(model(), batches(), CONFIG, stop_after=50) == whole


def test_progress_is_told_after_every_step_and_the_model_is_left_in_training_mode():
    steps, m = [], model().eval()
    train(m, batches(), CONFIG, on_step=steps.append)
    assert steps == list(range(20)) and m.training


def test_batches_that_end_before_the_steps_are_reported_by_step():
    with pytest.raises(ValueError, match="the batches ended at step 3 of 20; give one batch per step"):
        train(model(), batches(steps=3), CONFIG)


@pytest.mark.attack("a training that diverges early")
def test_a_loss_that_is_not_finite_names_its_step_and_the_remedy():
    class Breaking(nn.Module):
        """Loses its weight, and so every later loss, after the third call."""

        def __init__(self):
            super().__init__()
            self.weight, self.calls = nn.Parameter(torch.zeros(7)), 0

        def forward(self, tokens):
            self.calls += 1
            return self.weight.expand(*tokens.shape, 7) * (math.nan if self.calls > 3 else 1)

    breaking, long = Breaking(), dataclasses.replace(CONFIG, steps=400)
    with pytest.raises(ValueError, match=r"the loss of step 3 is nan; lower learning_rate=0\.01"):
        train(breaking, batches(steps=400), long)
    assert breaking.calls < 10, "it trains on for nothing"


def test_the_host_reads_a_loss_of_a_gpu_once_it_has_come_and_waits_for_none(monkeypatch):
    losses, sent, come = [math.nan, 1.0, math.inf, 2.0], [], [False, False, True, True, True]

    class OnGpu(SimpleNamespace):
        is_cuda, device = True, torch.device("cuda")

        def to(self, device, non_blocking):
            assert (device, non_blocking) == ("cpu", True)
            sent.append(self.value)
            return torch.tensor(self.value)

    event = SimpleNamespace(query=lambda: come.pop(0))
    stream = SimpleNamespace(record_event=lambda: event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    lookout = Lookout()
    assert [lookout.lost(OnGpu(value=value)) for value in losses] == [False, False, False, True]
    assert sent == [math.nan, 2.0] and come == [True, True]


@pytest.mark.parametrize(
    ("at", "message"), [(2, r"the loss with its auxiliary part of step 2 is nan"), (9, None)]
)
def test_an_auxiliary_loss_that_is_not_finite_is_told_with_its_own_step(at, message):
    """Also in the last step, after which no loss of tokens would show it."""
    calls = []

    def breaking(m):
        calls.append(1)
        return m.embedding.weight.sum() * (math.nan if len(calls) > at else 0.0)

    config = dataclasses.replace(CONFIG, steps=at + 1 if message is None else 5, auxiliary=Nothing())
    with pytest.raises(
        Diverged, match=message or "the loss with its auxiliary part of step 9 is nan"
    ) as error:
        train(model(), batches(), config, auxiliary=BoundLoss(breaking, seed=0))
    assert error.value.step == at == len(error.value.losses)
    assert np.isfinite(error.value.losses).all()


@dataclasses.dataclass(frozen=True)
class Nothing(AuxiliaryLoss):
    """An auxiliary loss of a config; the bound one is given by hand."""

    name = "nothing"

    def bind(self, seed, start=0):
        return BoundLoss(lambda m: m.embedding.weight.sum() * 0.0, seed, start)


def test_what_no_config_names_is_not_trained_on():
    with pytest.raises(ValueError, match=r"the config names none, so that no record would; set"):
        train(model(), batches(), CONFIG, auxiliary=Nothing().bind(0))
    with pytest.raises(ValueError, match="give auxiliary=, the bound loss of the config's Nothing"):
        train(model(), batches(), dataclasses.replace(CONFIG, auxiliary=Nothing()))
    tokens = next(batches())
    placed = iter([Batch(tokens[:, :-1], tokens[:, 1:], np.arange(8))])
    refused(
        r"has positions and the config draws none.*TrainingConfig\.positions", train, model(), placed, CONFIG
    )


def test_an_auxiliary_loss_without_indices_of_its_own_trains_none_and_is_bound_by_its_config():
    assert Nothing().trained_indices(8) == 0
    assert CONFIG.bound_auxiliary(3) is None
    assert dataclasses.replace(CONFIG, auxiliary=Nothing()).bound_auxiliary(3).seed == 3


def test_bfloat16_autocast_keeps_float32_parameters_and_follows_the_float32_run():
    exact = train(model(), batches(), CONFIG)
    m = model()
    rounded = train(m, batches(), dataclasses.replace(CONFIG, precision="bfloat16"))
    assert {parameter.dtype for parameter in m.parameters()} == {torch.float32}
    assert rounded != exact
    assert rounded == pytest.approx(exact, abs=0.05)
    with autocast("cpu", "bfloat16"):
        assert m(torch.zeros(1, 2, dtype=torch.long)).dtype == torch.bfloat16
    with autocast("cpu", "float32"):
        assert m(torch.zeros(1, 2, dtype=torch.long)).dtype == torch.float32


# --- what a config says is what is trained


TEXTS, PICTURES, ONES = np.zeros((4, 8), np.int64), np.zeros((4, 3)), np.ones(4, np.int64)


@pytest.mark.attack("a batch that no step can read")
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((TEXTS * 1.0, TEXTS), TypeError, "inputs must hold integers, got float64"),
        ((TEXTS, TEXTS - 100), ValueError, "targets holds -100; a target is the number of an answer"),
        ((PICTURES, ONES - 2), ValueError, "targets holds -1"),
        ((PICTURES, ONES[:3]), ValueError, r"inputs of shape \(4, 3\) have 3 targets; give one each"),
        ((TEXTS, TEXTS[None]), ValueError, r"targets have the shape \(1, 4, 8\); give \[B, N\]"),
        ((TEXTS[:2], TEXTS), ValueError, r"inputs have the shape \(2, 8\); give \(4, 8\)"),
        ((TEXTS, TEXTS, TEXTS[0, :3]), ValueError, r"shape \(3,\); give \(4, 8\) or \(8,\)"),
        ((PICTURES, ONES, np.zeros(3)), TypeError, "positions must hold integers"),
        ((TEXTS, TEXTS, None, TEXTS[:, :4]), ValueError, r"weights have the shape \(4, 4\)"),
        ((TEXTS, TEXTS, None, TEXTS + np.inf), ValueError, "weights must all be finite"),
        ((TEXTS, TEXTS, None, TEXTS - 1), ValueError, "none below 0"),
        ((TEXTS, TEXTS, None, TEXTS), ValueError, "one above it at least"),
    ],
)
def test_a_batch_refuses_what_no_step_can_read(given, error, message, unhooked):
    refused(message, Batch, *given, error=error)


@pytest.mark.attack("batches that are not those of the config")
@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (np.zeros((2, 6), np.int64), ValueError, r"targets have the shape \(2, 5\), .* says \(4, 8\)"),
        (np.zeros(9, np.int64), ValueError, r"a batch has the shape \(9,\); give \[B, L\+1\]"),
        (np.eye(4, 9, 8, np.int64) * 256, ValueError, "targets holds 256; give .* at most 255"),
        (Batch(PICTURES[:3], ONES[:3]), ValueError, r"targets have the shape \(3,\), .* says \(4,\)"),
        (Batch(TEXTS[:, :4], TEXTS[:, :4], None, TEXTS[:, :4] + 1), ValueError, r"the config says \(8, 4\)"),
        (Batch(TEXTS, TEXTS, TEXTS, TEXTS + 1), ValueError, r"the config draws none, .*positions out"),
    ],
)
def test_a_batch_that_the_config_does_not_tell_is_refused(batch, error, message, unhooked):
    model = torch.nn.Embedding(256, 256)
    refused(message, train, model, iter([batch]), TrainingConfig(1, 4, 8, 1e-3), error=error)
    drawing = TrainingConfig(1, 4, 8, 1e-3, positions=RandomOffset(16))
    for unplaced in (Batch(TEXTS, TEXTS), Batch(PICTURES, ONES), Batch(TEXTS, TEXTS, None, TEXTS + 1)):
        with pytest.raises(ValueError, match=r"has no positions, and the config draws them by RandomOffset"):
            train(model, iter([unplaced]), drawing)


@pytest.mark.parametrize(("rows", "length"), [(4, 8), (8, 4)])
def test_the_loss_of_weighted_texts_is_their_weighted_mean_and_a_weight_of_zero_teaches_nothing(rows, length):
    generator = np.random.default_rng(0)
    tokens, targets = generator.integers(7, size=(2, rows, length))
    weights = generator.choice([0.0, 0.1, 1.0], size=(rows, length)).astype(np.float32)
    config = dataclasses.replace(CONFIG, steps=1)
    trained, other = model().double(), model().double()
    drawn = (targets, np.where(weights == 0, (targets + 1) % 7, targets))
    losses = [
        train(one, iter([Batch(tokens, answers, weights=weights)]), config)[0]
        for one, answers in zip((trained, other), drawn, strict=True)
    ]
    nats = -torch.log_softmax(model().double()(torch.from_numpy(tokens)), -1).detach().numpy()
    each = np.take_along_axis(nats, targets[..., None], -1)[..., 0]
    assert losses == pytest.approx([np.average(each, weights=weights)] * 2, rel=1e-12)
    assert all(map(torch.equal, trained.parameters(), other.parameters()))


def test_a_training_that_would_leave_the_model_as_it_is_is_refused():
    one, other = model(), model()
    batches = [np.zeros((4, 9), np.int64)] * 20
    with pytest.raises(ValueError, match="adamw is of another model, and this one would stay as it is"):
        train(one, iter(batches), CONFIG, adamw=optimiser(other, CONFIG))
    refused("adamw must be a Optimizer", train, one, iter(batches), CONFIG, error=TypeError, adamw=1e-3)
    with pytest.raises(ValueError, match="device is 'meta', on which nothing is computed"):
        train(one, iter(batches), CONFIG, device="meta")
    assert all(map(torch.equal, one.parameters(), other.parameters()))
    refused("unknown precision 'int8'", autocast, "cpu", "int8")

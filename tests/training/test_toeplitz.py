"""Toeplitz-clamp distillation: what the teacher keeps, what the student pays, and where gradients go."""

import numpy as np
import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.seqpe import SeqPE
from sepnb.streams import Streams
from sepnb.training.toeplitz import ToeplitzClamp, clamp_loss, position_logits, toeplitz_fit

from ..encodings.drawn import F64, random

LENGTH = 12
CLAMP = ToeplitzClamp(weight=0.5, reach=40, farthest=1000, samples=9)


def model(seed: int = 0, streams: Streams = Streams(pos=8, sem=24), **fields) -> LanguageModel:  # noqa: B008
    fields = {"encoding": "sinusoidal", "query_key": "untied", "max_length": LENGTH, **fields}
    torch.manual_seed(seed)
    return LanguageModel(TransformerConfig(streams, 2, 4, **fields), 11).to(F64)


# --- the teacher


def test_the_fit_is_the_least_squares_one_and_reads_nothing_above_the_diagonal():
    logits = random(LENGTH, LENGTH)
    design, values = [], []
    for i in range(LENGTH):
        for j in range(i + 1):
            row = torch.zeros(2 * LENGTH, dtype=F64)
            row[i - j], row[LENGTH + i] = 1, 1
            design.append(row), values.append(logits[i, j])
    solved = torch.linalg.lstsq(torch.stack(design), torch.stack(values)[:, None], driver="gelsd").solution
    found = toeplitz_fit(logits.masked_fill(torch.ones_like(logits).triu(1) > 0, 1e6)[None])[0]
    torch.testing.assert_close(found - found[0], solved[:LENGTH, 0] - solved[0, 0], rtol=0, atol=1e-9)


# --- the student


def test_the_loss_is_its_formula():
    logits, f, at = random(2, 5, 5), random(2, LENGTH, seed=1), [3, 3, 7, 20, 400]
    total = 0.0
    for h in range(2):
        for i in range(5):
            row = [logits[h, i, j] - f[h, min(at[i] - at[j], LENGTH - 1)] for j in range(i + 1)]
            total += sum((x - sum(row) / len(row)) ** 2 for x in row)
    expected = total / (2 * 15)
    torch.testing.assert_close(clamp_loss(logits, torch.tensor(at), f), expected, rtol=0, atol=1e-12)


def test_indices_begin_anywhere_on_a_logarithmic_scale_and_so_do_the_distances():
    generator = np.random.PCG64([1, 2])
    drawn = np.stack([CLAMP.indices(generator) for _ in range(3000)])
    assert drawn.dtype == np.int64 and (np.diff(drawn, axis=1) >= 0).all()
    starts, back = drawn[:, -1] - CLAMP.reach + 1, drawn[:, -1:] - drawn[:, :-1]
    assert starts.min() == 1 and 900 < starts.max() < 1000
    assert np.log(starts).mean() == pytest.approx(np.log(1000) / 2, rel=0.1)
    assert back.min() == 0 and back.max() == 39
    assert np.log1p(back).mean() == pytest.approx(np.log(41) / 2, rel=0.1)


# --- in a model


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pos_stream": "constant"},
        {"encoding": ("sinusoidal", "rope")},
        {"n_kv_heads": 2, "streams": Streams(pos=16, sem=16)},
    ],
    ids=repr,
)
def test_position_logits_are_the_scores_of_a_model_whose_content_is_silent(fields):
    made, at = model(**fields), torch.tensor([2, 3, 5, 40])
    for block in made.transformer.blocks:
        attention = block.attention
        for group, projection in zip(attention.groups, attention.query_key, strict=True):
            if "sem" in group.reads:
                projection.weight.data[:, group.reads["sem"]] = 0
    with frozen_attention(made) as patterns, torch.no_grad():
        made(torch.zeros(1, 4, dtype=torch.long), at)
        logits = position_logits(made.transformer, at)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    for layer, pattern in enumerate(patterns):
        heads = made.transformer.blocks[layer].attention.heads
        sem = [n for n, head in enumerate(heads) if "sem" in made.config.reads(head)]
        expected = logits[layer].masked_fill(future, -torch.inf).softmax(-1)
        torch.testing.assert_close(pattern.weights[0, sem], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pos_stream", ["evolving", "constant"])
def test_the_gradient_is_that_of_the_students_alone(pos_stream):
    """Against a loss whose teacher was written down beforehand."""
    made, indices = model(pos_stream=pos_stream), CLAMP.indices(np.random.PCG64([7, 2]))
    ours = CLAMP.bind(7)(made)
    ours.backward()
    gradients = {name: p.grad for name, p in made.named_parameters()}
    with torch.no_grad():
        inside = position_logits(made.transformer, torch.arange(LENGTH))
    made.zero_grad(set_to_none=True)
    far = torch.from_numpy(indices.copy())
    written = [
        clamp_loss(student, far, toeplitz_fit(teacher).clone())
        for student, teacher in zip(position_logits(made.transformer, far), inside, strict=True)
    ]
    expected = 0.5 * (written[0] + written[1]) / 2
    expected.backward()
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)
    for name, parameter in made.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=0, atol=1e-12)
    reached = {
        name for name, gradient in gradients.items() if gradient is not None and gradient.abs().max() > 0
    }
    assert reached and not any(".sem" in name or "embedding" in name or "head" in name for name in reached)


def test_a_seed_repeats_resumed_too_another_differs_and_the_global_generators_are_left_alone():
    np.random.seed(0), torch.manual_seed(0)
    made = model()
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    one, again, other = (CLAMP.bind(seed) for seed in (1, 1, 2))
    values = [[loss(made).item() for _ in range(3)] for loss in (one, again, other)]
    assert values[0] == values[1] != values[2] and len(set(values[0])) == 3
    later = CLAMP.bind(1, start=2)
    assert later(made).item() == values[0][2] and (later.seed, later.start) == (1, 2)
    assert before == (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    with pytest.raises(ValueError, match="start is -1"):
        CLAMP.bind(7, start=-1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ToeplitzClamp(0.0, 9), r"weight is 0.0; it must be above 0"),
        (
            lambda: position_logits(model(query_key="strict").transformer, torch.arange(3)),
            "position logits of their own need query_key='untied', got 'strict'",
        ),
        (
            lambda: position_logits(model(norm="joint").transformer, torch.arange(3)),
            "the model has no position tables: norm not split",
        ),
        (
            lambda: position_logits(model(encoding="learned").transformer, torch.arange(LENGTH + 1)),
            "position 12 has no row in the learned table of 12 positions",
        ),
        (
            lambda: CLAMP.bind(0)(model(encoding=SeqPE(site="input", dropout=0.2))),
            "dropout is 0.2: two passes in training",
        ),
        (
            lambda: CLAMP.bind(0)(model(dropout=0.1)),
            r"dropout is 0.1: two passes in training .*; train with dropout=0, or call model.eval\(\) first",
        ),
    ],
)
def test_what_has_no_position_logits_or_draws_nothing_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_with_dropout_pays_what_it_pays_without_once_it_rests():
    ours, without = (CLAMP.bind(3)(model(dropout=rate).eval()) for rate in (0.1, 0.0))
    assert torch.equal(ours, without)


def test_what_it_trains_is_said_and_occurs():
    clamp = ToeplitzClamp(weight=1.0, reach=6, farthest=9, samples=5)
    generator = np.random.PCG64([0, 2])
    drawn = np.stack([clamp.indices(generator) for _ in range(2000)])
    assert drawn.max() == clamp.trained_indices(LENGTH) - 1
    assert (drawn.max(1) - drawn.min(1)).max() == clamp.trained_distances(LENGTH) - 1


def test_autocast_changes_no_bit_of_the_loss_and_of_its_gradients():
    outcomes = []
    for enabled in (False, True):
        made = model().float()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            logits = position_logits(made.transformer, torch.arange(LENGTH))
            fitted = [toeplitz_fit(layer) for layer in logits]
            loss = CLAMP.bind(0)(made)
        loss.backward()
        gradients = [p.grad for p in made.parameters() if p.grad is not None]
        outcomes.append([*logits, *fitted, loss, *gradients])
    assert all(tensor.dtype == torch.float32 for tensor in outcomes[1])
    assert len(outcomes[0]) > 10 and all(map(torch.equal, *outcomes))


def test_scores_of_a_bfloat16_model_are_taken_in_float32():
    """Far larger than the loss: rounded to 8 bits, the differences would be lost."""
    made = model().bfloat16()
    logits = position_logits(made.transformer, torch.arange(LENGTH))
    assert {layer.dtype for layer in logits} == {torch.float32}
    f, at = 100 + random(2, LENGTH).float(), torch.tensor([3, 4, 7, 20])
    rounded = f.bfloat16()
    scores = rounded[:, (at[:, None] - at).clamp(0, LENGTH - 1)]
    assert clamp_loss(scores, at, rounded).dtype == torch.float32
    assert clamp_loss(scores, at, rounded) < 1e-8
    assert toeplitz_fit(random(2, LENGTH, LENGTH).bfloat16()).dtype == torch.float32

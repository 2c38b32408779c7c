"""The contrastive and the distillation loss against loops in float64, and what they promise of gradients."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.seqpe import contrastive_loss, distillation_loss
from sepnb.seqpe.losses import _nearest as nearest

from ..encodings.drawn import random
from ..shared import refused


def softmax(values: list[float]) -> list[float]:
    exps = [math.exp(value) for value in values]
    return [one / sum(exps) for one in exps]


def contrastive_by_hand(anchors, candidates, at, others, scale):
    total = 0.0
    for p in range(len(anchors)):
        away = [sum((int(a) - int(b)) ** 2 for a, b in zip(at[p], c, strict=True)) for c in others[p]]
        scores = [scale * float((anchors[p] * e).sum()) for e in candidates[p]]
        total -= math.log(softmax(scores)[away.index(min(away))])
    return total / len(anchors)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_the_contrastive_loss_is_that_of_the_loop(n, scale):
    for k in (1, 2, 3, 9):
        generator = torch.Generator().manual_seed(3)
        at = torch.randint(30, (5, n), generator=generator)
        others = torch.randint(30, (5, k, n), generator=generator)
        anchors, candidates = random(5, 8), random(5, k, 8, seed=1)
        expected = contrastive_by_hand(anchors, candidates, at, others, scale or 8**-0.5)
        positions = (at[:, 0], others[..., 0]) if n == 1 else (at, others)
        loss = contrastive_loss(anchors, candidates, *positions, scale=scale)
        assert float(loss) == pytest.approx(expected, abs=1e-12)


@given(anchor=st.integers(0, 50), candidates=st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_the_first_of_the_nearest_candidates_counts(anchor, candidates):
    away = [abs(anchor - candidate) for candidate in candidates]
    assert int(nearest(torch.tensor([anchor]), torch.tensor([candidates]))) == away.index(min(away))


@pytest.mark.attack("positions at both ends of an integer type")
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_no_distance_overflows(dtype, unhooked):
    """Squares would wrap around, and so would differences of bytes without a sign."""
    largest = torch.iinfo(dtype).max
    at, others = (
        torch.tensor([0], dtype=dtype),
        torch.tensor([[largest, largest // 2 + 1, 3, 2]], dtype=dtype),
    )
    assert nearest(at, others).tolist() == [3]
    assert nearest(at + largest, others).tolist() == [0]


def test_distances_of_several_coordinates_that_int64_cannot_hold_are_refused():
    far = 2**31 - 1
    assert nearest(torch.tensor([[0, 0]]), torch.tensor([[[far, 0], [0, far - 1]]])).tolist() == [1]
    at, others = torch.tensor([[0, 0]]), torch.tensor([[[2**32, 0], [1, 0]]])
    with pytest.raises(ValueError, match=f"candidate_positions holds {2**32}; give values of at least 0"):
        contrastive_loss(random(1, 4), random(1, 2, 4), at, others)


def test_anchors_and_candidates_both_learn():
    anchors, candidates = random(4, 6).requires_grad_(), random(4, 3, 6, seed=1).requires_grad_()
    contrastive_loss(anchors, candidates, torch.arange(4), torch.arange(12).reshape(4, 3)).backward()
    assert anchors.grad.abs().min() > 0 and candidates.grad.abs().min() > 0


def distillation_by_hand(teacher, student, n_heads):
    """The mean over windows, heads and rows of KL(T||S) + KL(S||T)."""
    d, total, rows = teacher.shape[-1] // n_heads, 0.0, 0
    for window in range(len(teacher)):
        for head in range(n_heads):
            t, s = (x[window, :, head * d : (head + 1) * d] for x in (teacher, student))
            for row in range(len(t)):
                p = softmax([float(t[row] @ other) for other in t])
                q = softmax([float(s[row] @ other) for other in s])
                total += sum(a * math.log(a / b) + b * math.log(b / a) for a, b in zip(p, q, strict=True))
                rows += 1
    return total / rows


@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_the_distillation_loss_is_that_of_the_loop(n_heads):
    teacher, student = random(3, 5, 8), random(3, 5, 8, seed=1)
    loss = distillation_loss(teacher, student, n_heads)
    assert float(loss) == pytest.approx(distillation_by_hand(teacher, student, n_heads), abs=1e-12)


def test_the_released_reduction_is_smaller_by_the_number_of_positions():
    teacher, student = random(3, 5, 8), random(3, 5, 8, seed=1)
    released = distillation_loss(teacher, student, 2, reduction="released")
    assert float(released) == pytest.approx(float(distillation_loss(teacher, student, 2)) / 5)


@given(seed=st.integers(0, 10**6), length=st.floats(0.3, 1.5), scale=st.sampled_from([1.0, 0.1, None]))
def test_a_student_like_its_teacher_pays_nothing_and_every_other_something(seed, length, scale):
    teacher, student = (length * random(2, 6, 8, seed=seed + number) for number in (0, 1))
    assert float(distillation_loss(teacher, teacher, 2, scale=scale)) == 0.0
    assert float(distillation_loss(teacher, student, 2, scale=scale)) > 0.0


@pytest.mark.parametrize("scale", [0.3, None])
def test_the_scaled_loss_is_that_of_the_loop_on_stretched_vectors(scale):
    """With heads of their own lengths: each is stretched by the root of its own scale."""
    teacher, student = random(3, 5, 8), random(3, 5, 8, seed=1)
    teacher[..., 4:] *= 2.5
    stretched = []
    for one in (teacher, student):
        heads = []
        for head in (slice(0, 4), slice(4, 8)):
            squared = sum(float(row @ row) for row in teacher[..., head].reshape(-1, 4)) / 15
            factor = 4**0.5 / squared if scale is None else scale
            heads.append(one[..., head] * factor**0.5)
        stretched.append(torch.cat(heads, dim=-1))
    loss = distillation_loss(teacher, student, 2, scale=scale)
    assert float(loss) == pytest.approx(distillation_by_hand(*stretched, 2), abs=1e-12)
    assert abs(float(loss) - float(distillation_loss(teacher, student, 2))) > 1e-3


def test_free_of_scale_is_what_is_stretched_as_a_whole_and_not_a_student_alone():
    teacher, student = random(2, 6, 8).requires_grad_(), random(2, 6, 8, seed=1).requires_grad_()
    loss = distillation_loss(teacher, student, 2, scale=None)
    loss.backward()
    assert teacher.grad is None and student.grad.abs().max() > 0
    teacher, student, loss = teacher.detach(), student.detach(), loss.detach()
    for factor in (0.01, 5.0):
        again = distillation_loss(factor * teacher, factor * student, 2, scale=None)
        torch.testing.assert_close(again, loss, rtol=1e-9, atol=0)
        assert abs(float(distillation_loss(factor * teacher, factor * student, 2) - loss)) > 1e-3
    assert abs(float(distillation_loss(teacher, 1.5 * student, 2, scale=None) - loss)) > 1e-3
    nothing = torch.zeros(1, 4, 8, dtype=torch.float64)
    assert distillation_loss(nothing, nothing, 2, scale=None) == 0


def test_beta_divides_what_is_learned_between_student_and_teacher():
    """Gradients are linear in beta, the student's nothing at 0 and the teacher's nothing at 1."""

    def gradients(beta):
        both = [random(2, 6, 8, seed=seed).requires_grad_() for seed in (0, 1)]
        distillation_loss(*both, 2, beta=beta).backward()
        return [torch.zeros_like(one) if one.grad is None else one.grad for one in both]

    both = random(2, 6, 8), random(2, 6, 8, seed=1)
    torch.testing.assert_close(distillation_loss(*both, 2, beta=0.8), distillation_loss(*both, 2))
    (teacher, none), (nothing, student) = gradients(0.0), gradients(1.0)
    assert not none.any() and not nothing.any()
    assert teacher.abs().max() > 1e-3 and student.abs().max() > 1e-3
    for beta in (0.3, 0.8):
        of_teacher, of_student = gradients(beta)
        torch.testing.assert_close(of_teacher, (1 - beta) * teacher)
        torch.testing.assert_close(of_student, beta * student)


def test_heads_that_do_not_divide_the_columns_are_refused():
    refused("n_heads=3 does not divide 8 columns", distillation_loss, random(1, 3, 8), random(1, 3, 8), 3)

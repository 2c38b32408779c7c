"""RoPE against complex numbers, and the identities by which it is derived."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sepnb.encodings import RoPE, apply_rope, rope_frequencies
from sepnb.encodings.rope import LAYOUTS

F64 = torch.float64


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def complex_reference(x: torch.Tensor, positions: torch.Tensor, layout: str, base: float = 10_000.0):
    """f(x, p) = x exp(J p w), one complex number per pair, with frequencies written out."""
    dim = x.shape[-1]
    w = torch.tensor([base ** (-2 * m / dim) for m in range(dim // 2)], dtype=F64)
    first, second = (
        (x[..., : dim // 2], x[..., dim // 2 :]) if layout == "half" else (x[..., 0::2], x[..., 1::2])
    )
    turned = torch.complex(first, second) * torch.exp(1j * positions[:, None] * w)
    out = torch.empty_like(x)
    if layout == "half":
        out[..., : dim // 2], out[..., dim // 2 :] = turned.real, turned.imag
    else:
        out[..., 0::2], out[..., 1::2] = turned.real, turned.imag
    return out


@pytest.mark.parametrize("dim", [2, 8, 10])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_frequencies_fall_from_one_and_nothing_else_is_scaled(dim, base):
    inv_freq, factor = rope_frequencies(dim, base=base)
    assert inv_freq.dtype == F64 and factor == 1.0
    expected = [base ** (-2 * m / dim) for m in range(dim // 2)]
    assert inv_freq.tolist() == pytest.approx(expected, rel=1e-14)
    assert inv_freq[0] == 1.0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotation_is_multiplication_by_a_complex_number(layout):
    x, positions = noise(2, 3, 6, 8), torch.tensor([0, 1, 5, 2, 1000, 4096])
    ours = apply_rope(x, positions, rope_frequencies(8)[0], layout=layout)
    torch.testing.assert_close(ours, complex_reference(x, positions, layout), rtol=0, atol=1e-11)


def test_the_layouts_are_the_same_function_of_permuted_columns():
    x, positions, w = noise(2, 5, 8), torch.arange(5), rope_frequencies(8)[0]
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    half = apply_rope(x[..., order], positions, w, layout="half")
    interleaved = apply_rope(x, positions, w, layout="interleaved")
    assert torch.equal(half, interleaved[..., order])
    assert (apply_rope(x, positions, w, layout="half") - interleaved).abs().max() > 1e-3


@given(
    a=st.integers(0, 5000), b=st.integers(0, 5000), half=st.integers(1, 8), layout=st.sampled_from(LAYOUTS)
)
def test_rotations_keep_the_norm_and_compose(a, b, half, layout):
    x, (w, _) = noise(3, 2 * half), rope_frequencies(2 * half)

    def turn(y: torch.Tensor, position: int) -> torch.Tensor:
        return apply_rope(y, torch.full((3,), position), w, layout=layout)

    torch.testing.assert_close(turn(x, a).norm(dim=-1), x.norm(dim=-1), rtol=1e-12, atol=0)
    torch.testing.assert_close(turn(turn(x, a), b), turn(x, a + b), rtol=0, atol=1e-10)
    assert torch.equal(turn(x, 0), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("start", [0, 37, 1000, 4096])
@pytest.mark.parametrize(("dtype", "bound"), [(F64, 1e-10), (torch.float32, 5e-4)])
def test_scores_depend_on_the_distance_only(layout, start, dtype, bound):
    q, k, (w, _) = noise(6, 16).to(dtype), noise(6, 16, seed=1).to(dtype), rope_frequencies(16)

    def scores(offset: int) -> torch.Tensor:
        positions = torch.arange(6) + offset
        return apply_rope(q, positions, w, layout=layout) @ apply_rope(k, positions, w, layout=layout).T

    torch.testing.assert_close(scores(start), scores(0), rtol=0, atol=bound)
    assert (scores(0) - q @ k.T).abs().max() > 0.1  # and on the distance they do depend


def test_positions_may_come_one_per_vector_and_in_any_order():
    x, (w, _) = noise(2, 4, 8), rope_frequencies(8)
    positions = torch.tensor([[7, 0, 300, 2], [1, 1, 0, 9]])
    expected = torch.stack([apply_rope(x[row], positions[row], w) for row in range(2)])
    assert torch.equal(apply_rope(x, positions, w), expected)


def test_the_attention_factor_scales_what_is_rotated():
    x, (w, _) = noise(5, 8), rope_frequencies(8)
    plain, scaled = (apply_rope(x, torch.arange(5), w, attention_factor=factor) for factor in (1.0, 1.5))
    torch.testing.assert_close(scaled, 1.5 * plain, rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_positions_are_not_rounded_to_the_dtype_of_the_model(dtype):
    """bfloat16 holds integers exactly only to 256: in it, 1001 is 1000, another position."""
    x, (w, _) = torch.ones(1, 8, dtype=dtype), rope_frequencies(8)
    ours = apply_rope(x, torch.tensor([1001]), w)
    assert ours.dtype == dtype
    expected = complex_reference(torch.ones(1, 8, dtype=F64), torch.tensor([1001]), "half")
    bound = 3 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours.double(), expected, rtol=0, atol=bound)


def test_a_call_in_another_dtype_leaves_nothing_behind():
    module = RoPE().at_query_key(8)
    x, positions = noise(1, 1, 4, 8).float(), torch.arange(1000, 1004)

    def turned(x: torch.Tensor) -> torch.Tensor:
        return module(x, module.prepare(positions, positions)[0])

    first = turned(x)
    turned(x.bfloat16())
    assert torch.equal(turned(x), first)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_module_is_the_function_also_when_rows_have_their_own_positions(layout):
    module, (w, _) = RoPE(layout=layout, base=100.0).at_query_key(8), rope_frequencies(8, base=100.0)
    x, positions = noise(2, 3, 4, 8), torch.tensor([[0, 1, 2, 3], [5, 4, 9, 100]])
    for query, key in ((positions[1], positions[0]), (positions[0], positions[1])):
        for prepared, at in zip(module.prepare(query, key), (query, key), strict=True):
            assert torch.equal(module(x, prepared), apply_rope(x, at, w, layout=layout))
    per_row = torch.stack([apply_rope(x[row], positions[row], w, layout=layout) for row in range(2)])
    assert torch.equal(module(x, module.prepare(positions, positions)[1]), per_row)


def test_casting_the_module_leaves_the_frequencies_bitwise():
    module = RoPE().at_query_key(8)
    before = module.inv_freq.clone()
    module.to(torch.bfloat16).half()
    assert module.inv_freq.dtype == F64 and torch.equal(module.inv_freq, before)


def test_an_extension_is_given_the_plain_frequencies_and_its_answer_is_used():
    seen = {}

    def halved(inv_freq, *, dim, base, length):
        seen.update(inv_freq=inv_freq.clone(), dim=dim, base=base, length=length)
        return inv_freq / 2, 1.25

    inv_freq, factor = rope_frequencies(8, base=500.0, extension=halved, length=77)
    plain, _ = rope_frequencies(8, base=500.0)
    assert torch.equal(seen.pop("inv_freq"), plain) and seen == {"dim": 8, "base": 500.0, "length": 77}
    assert torch.equal(inv_freq, plain / 2) and factor == 1.25
    x = noise(3, 8)
    torch.testing.assert_close(
        apply_rope(x, 2 * torch.arange(3), inv_freq),
        apply_rope(x, torch.arange(3), plain),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("position", [10**6, 2**24 + 1])
def test_far_positions_keep_float64_angles_in_float32(position):
    x, (w, _) = torch.ones(1, 4), rope_frequencies(4)
    turned = apply_rope(x, torch.tensor([position]), w)
    assert turned[0, 0].item() == pytest.approx(math.cos(position) - math.sin(position), abs=1e-6)


def test_what_cannot_be_rotated_is_refused(unhooked):
    for dim in (0, 7):
        with pytest.raises(ValueError, match=f"must be even and at least 2, got {dim}"):
            rope_frequencies(dim)
    with pytest.raises(ValueError, match="even and at least 2, got 5"):
        RoPE().at_query_key(5)
    with pytest.raises(ValueError, match="base is 1; it must be above 1"):
        rope_frequencies(8, base=1)
    with pytest.raises(ValueError, match="unknown layout 'halves'; use one of half, interleaved"):
        apply_rope(noise(3, 8), torch.arange(3), rope_frequencies(8)[0], layout="halves")
    with pytest.raises(ValueError, match="unknown layout 'neox'"):
        RoPE(layout="neox").at_query_key(8)
    with pytest.raises(ValueError, match="x has width 8, 3 frequencies need 6"):
        apply_rope(noise(3, 8), torch.arange(3), rope_frequencies(6)[0])


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3)])
def test_positions_that_would_be_broadcast_to_the_wrong_vectors_are_refused(shape):
    """[B, N] positions against [B, H, N, d] would silently rotate head h by the positions of row h."""
    x = noise(2, 2, 3, 8)
    with pytest.raises(ValueError, match=r"positions of shape .* do not fit x of shape .*; give \[3\]"):
        apply_rope(x, torch.zeros(shape, dtype=torch.long), rope_frequencies(8)[0])

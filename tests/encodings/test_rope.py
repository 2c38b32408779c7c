"""RoPE: its frequencies, its function, parts of a head, and a context extension."""

import pytest
import torch

from sepnb.encodings import DynamicNTK, Heads, NTKAware, RoPE, YaRN, apply_rope, rope_frequencies
from sepnb.encodings.rope import LAYOUTS

from .drawn import F64, random


@pytest.mark.parametrize("dim", [2, 8, 10])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_frequencies_fall_from_one_and_nothing_else_is_scaled(dim, base):
    inv_freq, factor = rope_frequencies(dim, base=base)
    assert inv_freq.dtype == F64 and factor == 1.0
    expected = [base ** (-2 * m / dim) for m in range(dim // 2)]
    assert inv_freq.tolist() == pytest.approx(expected, rel=1e-14)
    assert inv_freq[0] == 1.0


def test_the_attention_factor_scales_what_is_rotated():
    x, (w, _) = random(5, 8), rope_frequencies(8)
    plain, scaled = (apply_rope(x, torch.arange(5), w, attention_factor=factor) for factor in (1.0, 1.5))
    torch.testing.assert_close(scaled, 1.5 * plain, rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_positions_are_not_rounded_to_the_dtype_of_the_model(dtype):
    """bfloat16 holds integers exactly only to 256: in it, 1001 is 1000, another position."""
    x, (w, _) = torch.ones(1, 8, dtype=dtype), rope_frequencies(8)
    ours = apply_rope(x, torch.tensor([1001]), w)
    assert ours.dtype == dtype
    expected = apply_rope(torch.ones(1, 8, dtype=F64), torch.tensor([1001]), w)
    bound = 3 * torch.finfo(dtype).eps
    torch.testing.assert_close(ours.double(), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3)])
def test_positions_that_would_be_broadcast_to_the_wrong_vectors_are_refused(shape):
    """[B, N] positions against [B, H, N, d] would silently rotate head h by the positions of row h."""
    x = random(2, 2, 3, 8)
    with pytest.raises(ValueError, match=r"positions of shape .* do not fit x of shape .*; give \[3\]"):
        apply_rope(x, torch.zeros(shape, dtype=torch.long), rope_frequencies(8)[0])


# --- a part of a head


@pytest.mark.parametrize("layout", LAYOUTS)
def test_partial_turns_the_first_columns_as_a_head_of_their_own(layout):
    x, at = random(2, 3, 5, 16), torch.arange(5) * 100
    module = RoPE(partial=0.25, layout=layout).at_query_key(Heads(width=16))
    turned = module(x, module.prepare(at, at)[0])
    assert torch.equal(turned[..., :4], apply_rope(x[..., :4], at, rope_frequencies(4)[0], layout=layout))
    assert torch.equal(turned[..., 4:], x[..., 4:])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_p_keeps_the_fastest_pairs_of_the_whole_head(layout):
    x, at, w = random(2, 3, 5, 16), torch.arange(5) * 100, rope_frequencies(16)[0]
    module = RoPE(p=0.25, layout=layout).at_query_key(Heads(width=16))
    turned, whole = module(x, module.prepare(at, at)[0]), apply_rope(x, at, w, layout=layout)
    moving = [0, 1, 8, 9] if layout == "half" else [0, 1, 2, 3]
    still = [column for column in range(16) if column not in moving]
    assert torch.equal(turned[..., moving], whole[..., moving]) and not torch.equal(turned, whole)
    assert torch.equal(turned[..., still], x[..., still])
    assert rope_frequencies(16, p=0.25)[0].tolist() == [*w[:2].tolist(), *6 * [0.0]]


@pytest.mark.parametrize("option", ["partial", "p"])
def test_a_share_that_leaves_no_whole_pairs_is_answered_with_the_nearest_that_does(unhooked, option):
    message = (
        rf"{option}=0\.3 of a head of 16 columns are 4\.8; .* even number of them: give 0\.25, which are 4"
    )
    with pytest.raises(ValueError, match=message):
        RoPE(**{option: 0.3}).at_query_key(Heads(width=16))
    with pytest.raises(ValueError, match=rf"{option}=0\.01 of a head of 16 .* give 0\.125, which are 2"):
        RoPE(**{option: 0.01}).at_query_key(Heads(width=16))
    third = RoPE(**{option: 1 / 3}).at_query_key(Heads(width=12))  # a share that binary fractions do not hit
    assert (third.inv_freq > 0).sum() == 2


# --- a context extension that a model is trained with


@pytest.mark.parametrize("options", [{}, {"partial": 0.5}, {"p": 0.5}], ids=str)
def test_an_extension_acts_on_the_frequencies_of_what_turns(options):
    """Of a partly turned head the rotary width counts; a pair that stands still stays."""
    width, p = (8, None) if "partial" in options else (16, options.get("p"))
    for extension in (YaRN(4.0, 128), NTKAware(4.0)):
        module = RoPE(extension=extension, base=300.0, **options).at_query_key(Heads(width=16))
        expected = rope_frequencies(width, base=300.0, p=p)[0]
        expected, factor = extension(expected, dim=width, base=300.0, length=None)
        assert torch.equal(module.inv_freq, expected) and module.attention_factor == factor
        plain = RoPE(base=300.0, **options).at_query_key(Heads(width=16))
        plain.extend(extension)
        assert plain.settings == module.settings
        plain.extend(None)
        assert (
            plain.settings
            == RoPE(base=300.0, **options).at_query_key(Heads(width=16)).settings
            != module.settings
        )


def test_frequencies_that_follow_the_length_take_that_of_the_text_or_of_each_sequence():
    """A text that ends with its last key, unless it is said how long it will be."""
    extension, x = DynamicNTK(4.0, 8), random(2, 3, 4, 16)
    module = RoPE(extension=extension).at_query_key(Heads(width=16))
    keys = torch.tensor([[0, 1, 2, 3], [5, 6, 30, 7]])

    def expected(row: int, length: int) -> torch.Tensor:
        return apply_rope(x[row], keys[row], rope_frequencies(16, extension=extension, length=length)[0])

    each = module(x, module.prepare(keys, keys)[1])
    assert torch.equal(each, torch.stack([expected(0, 4), expected(1, 31)]))
    shared = module.prepare(keys[1], keys)[0]  # queries at the same places, in texts of two lengths
    assert torch.equal(module(x, shared)[1], expected(1, 31))
    whole = module(x, module.prepare(keys, keys, 64)[0])
    assert torch.equal(whole, torch.stack([expected(0, 64), expected(1, 64)]))


def test_an_extension_that_no_record_could_name_is_refused(unhooked):
    with pytest.raises(TypeError, match="one that a record can name, such as PositionInterpolation"):
        RoPE(extension=lambda inv_freq, **_: (inv_freq, 1.0))
    with pytest.raises(TypeError, match=r"must be a context extension such as .*, got 4\.0"):
        RoPE().at_query_key(Heads(width=8)).extend(4.0)

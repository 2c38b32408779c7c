"""The split itself: every map equals a plain reference, and no stream hears another through it."""

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from sepnb.streams import ACTIVATIONS, BlockDiagonalLinear, StreamMLP, StreamNorm, Streams

from .encodings.drawn import F64, drawn, random
from .shared import refused

SPLITS = [Streams.dense(7), Streams(pos=3, sem=5), Streams(row=2, col=3, sem=4)]

widths = st.dictionaries(
    st.sampled_from(["pos", "sem", "row", "col"]), st.integers(min_value=0, max_value=9), min_size=1
).filter(lambda widths: sum(widths.values()) > 0)


# --- Streams


def test_annotated_shapes_are_checked_in_every_test():
    with pytest.raises(jaxtyping.TypeCheckError):
        Streams(pos=3, sem=5).split("text")


def test_widths_slices_and_order_are_as_given():
    streams = Streams(pos=32, sem=96)
    assert streams.widths == {"pos": 32, "sem": 96}
    assert streams.names == ("pos", "sem")
    assert streams.d_model == 128
    assert streams.slices == {"pos": slice(0, 32), "sem": slice(32, 128)}
    assert Streams(sem=96, pos=32).slices["pos"] == slice(96, 128)
    assert repr(streams) == "Streams(pos=32, sem=96)"


def test_a_dense_model_is_one_stream_that_counts_as_sem():
    assert Streams.dense(64) == Streams(sem=64)
    assert hash(Streams.dense(64)) == hash(Streams(sem=64))
    assert Streams.dense(64) != Streams(pos=64)


def test_a_stream_of_width_zero_is_no_stream():
    assert Streams(pos=0, sem=64) == Streams.dense(64)
    assert Streams(pos=0, sem=64).names == ("sem",)


@given(widths)
def test_slices_tile_the_width_and_split_and_join_are_inverse(widths):
    streams = Streams(**widths)
    columns = [c for columns in streams.slices.values() for c in range(columns.start, columns.stop)]
    assert columns == list(range(streams.d_model))
    x = random(2, 3, streams.d_model)
    parts = streams.split(x)
    assert {name: part.shape[-1] for name, part in parts.items()} == streams.widths
    assert torch.equal(streams.join(parts), x)
    assert torch.equal(
        streams.join(dict(reversed(parts.items()))), x
    )  # the order of the mapping is no matter


def test_split_gives_views_so_that_it_costs_nothing():
    x = random(2, 8)
    for part in Streams(pos=3, sem=5).split(x).values():
        assert part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_join_leaves_out_what_is_absent_and_select_keeps_the_order():
    streams = Streams(pos=3, sem=5)
    x = random(2, 8)
    assert torch.equal(streams.join({"sem": x[:, 3:]}), x[:, 3:])
    assert streams.select(None) == ("pos", "sem")
    assert streams.select(["sem", "pos"]) == ("pos", "sem")
    assert streams.select(["sem"]) == ("sem",)


# --- BlockDiagonalLinear


def masked_dense(layer: BlockDiagonalLinear) -> tuple[torch.Tensor, torch.Tensor]:
    """The same map as one dense weight `[D_out, D_in]` with zeros off the blocks, and its bias `[D_out]`."""
    out = Streams(**layer.widths)
    weight = torch.zeros(out.d_model, layer.layout.d_model, dtype=F64)
    bias = torch.zeros(out.d_model, dtype=F64)
    for name, block in layer.blocks.items():
        weight[out.slices[name], layer.layout.slices[name]] = block.weight.detach()
        if block.bias is not None:
            bias[out.slices[name]] = block.bias.detach()
    return weight.requires_grad_(), bias.requires_grad_()


@pytest.mark.parametrize("streams", SPLITS, ids=repr)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("expansion", "contraction", "reduction"),
    [(1, 1, 1), (4, 1, 1), (1, 4, 1), (2, 3, 1), (2, 1, 2), (6, 2, 3)],
)
def test_block_diagonal_equals_a_masked_dense_map_in_output_and_every_gradient(
    streams, bias, expansion, contraction, reduction
):
    sizes = {"contraction": contraction, "reduction": reduction}
    layer = drawn(BlockDiagonalLinear(streams, expansion, bias, **sizes))
    weight, dense_bias = masked_dense(layer)
    mask = (weight != 0).to(F64)
    x = random(2, 3, contraction * streams.d_model).requires_grad_()
    y = x.detach().clone().requires_grad_()
    ours, reference = layer(x), F.linear(y, weight * mask, dense_bias)
    assert ours.shape == (2, 3, expansion * streams.d_model // reduction)
    torch.testing.assert_close(ours, reference, rtol=0, atol=1e-10)

    cotangent = random(*ours.shape, seed=2)
    ours.backward(cotangent)
    reference.backward(cotangent)
    torch.testing.assert_close(x.grad, y.grad, rtol=0, atol=1e-10)
    out = Streams(**layer.widths)
    for name, block in layer.blocks.items():
        expected = weight.grad[out.slices[name], layer.layout.slices[name]]
        torch.testing.assert_close(block.weight.grad, expected, rtol=0, atol=1e-10)
        if bias:
            torch.testing.assert_close(block.bias.grad, dense_bias.grad[out.slices[name]], rtol=0, atol=1e-10)


@pytest.mark.parametrize("streams", SPLITS, ids=repr)
@pytest.mark.parametrize("outputs", [None, ["sem"]])
@pytest.mark.parametrize(
    ("expansion", "contraction", "reduction"), [(1, 1, 1), (4, 1, 1), (1, 4, 1), (2, 1, 2)]
)
def test_the_map_that_is_not_split_is_one_plain_linear_map_cut_into_streams(
    streams, outputs, expansion, contraction, reduction
):
    sizes = {"contraction": contraction, "reduction": reduction}
    layer = drawn(BlockDiagonalLinear(streams, expansion, True, split=False, outputs=outputs, **sizes))
    (whole,) = layer.blocks.values()
    x = random(2, 3, contraction * streams.d_model)
    expected = F.linear(x, whole.weight, whole.bias)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-12)
    parts = layer.parts(layer.layout.split(x))
    assert list(parts) == list(outputs or streams.names)
    assert {name: part.shape[-1] for name, part in parts.items()} == {
        name: expansion * streams.widths[name] // reduction for name in parts
    }
    assert torch.equal(streams.join(parts), layer(x))


# --- StreamNorm


def reference_norm(x, gain, bias, kind, eps):
    """Written out, in float64, so that not even torch's own norm is trusted."""
    centred = x - x.mean(-1, keepdim=True) if kind == "layer" else x
    scaled = centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return scaled * gain + (bias if bias is not None else 0)


def joined(parameters: nn.ParameterDict, streams: Streams) -> torch.Tensor | None:
    return streams.join(dict(parameters.items())) if len(parameters) else None


@pytest.mark.parametrize("streams", SPLITS, ids=repr)
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_split_norm_is_one_norm_per_stream(streams, kind):
    norm = drawn(StreamNorm(streams, kind))
    x = random(2, 3, streams.d_model)
    expected = [
        reference_norm(part, norm.gain[name], norm.bias[name] if kind == "layer" else None, kind, 1e-5)
        for name, part in streams.split(x).items()
    ]
    torch.testing.assert_close(norm(x), torch.cat(expected, -1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("streams", SPLITS, ids=repr)
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_joint_norm_is_one_norm_over_the_width_also_when_only_some_streams_are_wanted(streams, kind):
    norm = drawn(StreamNorm(streams, kind, split=False))
    x = random(2, 3, streams.d_model)
    expected = reference_norm(x, joined(norm.gain, streams), joined(norm.bias, streams), kind, 1e-5)
    torch.testing.assert_close(norm(x), expected, rtol=0, atol=1e-12)

    only_sem = StreamNorm(streams, kind, split=False, outputs=["sem"]).double()
    only_sem.load_state_dict({key: norm.state_dict()[key] for key in only_sem.state_dict()})
    torch.testing.assert_close(only_sem(x), expected[..., streams.slices["sem"]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_plain_stream_passes_bit_for_bit_and_the_others_are_normalised_as_ever(kind):
    streams, x = Streams(pos=8, sem=8), random(4, 16)
    plain, split = StreamNorm(streams, kind, plain=["pos"]).double(), StreamNorm(streams, kind).double()
    assert list(plain.gain) == ["sem"]
    assert torch.equal(plain(x)[:, :8], x[:, :8]) and torch.equal(plain(x)[:, 8:], split(x)[:, 8:])
    with pytest.raises(ValueError, match="leaves none of them plain, and plain names 'pos'"):
        StreamNorm(streams, kind, split=False, plain=["pos"])


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_row_of_zeros_stays_finite_with_finite_gradients(kind, split):
    norm = StreamNorm(Streams(pos=3, sem=5), kind, split)
    x = torch.zeros(2, 8, requires_grad=True)
    y = norm(x)
    y.sum().backward()
    assert torch.equal(y, torch.zeros(2, 8)) and torch.isfinite(x.grad).all()


# --- StreamMLP


def silu(h):
    return h / (1 + (-h).exp())


@pytest.mark.parametrize("streams", SPLITS, ids=repr)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_the_mlp_is_one_perceptron_per_stream(streams, bias, activation):
    mlp = drawn(StreamMLP(streams, 3, activation, bias=bias))
    x = random(2, 5, streams.d_model)
    plain = {
        "relu": lambda h: h.clamp(min=0),
        "gelu": lambda h: h * 0.5 * (1 + torch.erf(h / 2**0.5)),
        "silu": silu,
        "swiglu": lambda h: silu(h[..., : h.shape[-1] // 2]) * h[..., h.shape[-1] // 2 :],
    }[activation]
    expected, wide = [], 6 if activation == "swiglu" else 3
    for name, columns in streams.slices.items():
        up, down = mlp.up.blocks[name], mlp.down.blocks[name]
        assert up.weight.shape == (wide * streams.widths[name], streams.widths[name])
        hidden = x[..., columns] @ up.weight.T + (up.bias if bias else 0)
        expected.append(plain(hidden) @ down.weight.T + (down.bias if bias else 0))
    torch.testing.assert_close(mlp(x), torch.cat(expected, -1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("streams", SPLITS, ids=repr)
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("outputs", [None, ["sem"]])
def test_the_mlp_that_is_not_split_is_one_perceptron_over_the_width(streams, activation, outputs):
    mlp = drawn(StreamMLP(streams, 3, activation, bias=True, split=False, outputs=outputs))
    (up,), (down,) = mlp.up.blocks.values(), mlp.down.blocks.values()
    x = random(2, 5, streams.d_model)
    hidden = F.linear(x, up.weight, up.bias)
    if activation == "swiglu":
        hidden = silu(hidden[..., : 3 * streams.d_model]) * hidden[..., 3 * streams.d_model :]
    else:
        hidden = ACTIVATIONS[activation](hidden)
    assert hidden.shape == (2, 5, 3 * streams.d_model)
    torch.testing.assert_close(mlp(x), F.linear(hidden, down.weight, down.bias), rtol=0, atol=1e-10)
    assert list(mlp.parts(streams.split(x))) == list(outputs or streams.names)


@pytest.mark.parametrize("build", [BlockDiagonalLinear, StreamNorm, StreamMLP])
def test_a_stream_that_is_absent_is_not_computed_and_not_missed(build):
    """What lets the position streams run without the content, and the content without them."""
    streams, x = Streams(row=2, col=3, sem=4), random(2, 9)
    layer = drawn(build(streams))
    parts = streams.split(x)
    whole = layer.parts(parts)
    for names in (["row", "col"], ["sem"], []):
        some = layer.parts({name: parts[name] for name in names})
        assert some.keys() == set(names)
        assert all(torch.equal(some[name], whole[name]) for name in names)


# --- what is refused


def test_widths_and_names_that_do_not_fit_are_refused_with_those_that_would(unhooked):
    two = Streams(pos=4, sem=5)
    refused("no stream has a width above 0; give at least one", Streams, pos=0)
    refused("by 2 does not divide stream sem of Streams.pos=4, sem", BlockDiagonalLinear, two, reduction=2)
    BlockDiagonalLinear(two, reduction=2, outputs=["pos"])  # what is not asked for need not be divisible
    refused(r"last dimension is 8, Streams\(pos=4, sem=5\) needs 9", two.split, random(2, 8))
    refused("unknown stream 'text'.* has pos, sem", two.select, ["text"])
    for name in ("__class__", "keys", "training", "forward", "a.b", ""):  # else a KeyError of torch
        refused("no stream can be called .*; give another, such as 'pos'", Streams, **{name: 2, "sem": 4})

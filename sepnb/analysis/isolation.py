"""How much one stream depends on another: Jacobians of blocks, with the attention live or frozen.

With frozen weights, what passes from stream to stream passes through values, outputs, MLPs and norms. With
live ones the routing leak is added: content decides where a position is read from. The controls put a full
map where the separated model has a block-diagonal one, and must leak.

Shape letters: N tokens, D model width.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..models import LanguageModel, Transformer, frozen_attention
from ..models.config import SPLIT
from ..models.layout import evolving
from ..streams import Streams
from ..validation import one_of


def through_blocks(transformer: Transformer, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Run the blocks on a given residual state, one `[B, N, w]` per stream, at positions 0 to N-1."""
    reference = next(iter(state.values()))
    positions = torch.arange(reference.shape[1], device=reference.device)
    context = transformer.attention_context(positions, positions, reference.dtype)
    embeddings = transformer.embeddings(positions, reference.dtype)
    ends = transformer.run_blocks(state, embeddings, positions, lambda _, block, x: block(x, context))
    return {name: ends[name] for name in transformer.layout.last if name in ends}


def jacobian(
    transformer: Transformer, state: Mapping[str, Tensor], *, frozen: bool
) -> Float[Tensor, "N D_out N D"]:
    """d(output state) / d(input state) of the whole stack, `[N, D_out, N, D]`, for one sequence.

    One backward pass: the sequence is copied once per output component, and each copy is asked for its own.

    Args:
        transformer: give it float64 weights for a sharp answer; zeros are exact in any dtype.
        state: one `[1, N, w]` per stream, such as `transformer.input_state` returns; ValueError for more than
            one sequence.
        frozen: record the attention weights at `state` and hold them constant.
    """
    streams = transformer.config.streams
    x = streams.join(state).detach()
    if x.shape[0] != 1:
        raise ValueError(f"the state holds {x.shape[0]} sequences; a Jacobian is taken at one")
    with frozen_attention(transformer) if frozen else nullcontext():
        with torch.no_grad():
            outputs = streams.join(through_blocks(transformer, streams.split(x)))  # records, when frozen
        n_outputs, width = outputs[0].numel(), outputs.shape[-1]
        copies = x.expand(n_outputs, -1, -1).clone().requires_grad_()
        out = streams.join(through_blocks(transformer, streams.split(copies)))
        (gradient,) = torch.autograd.grad(out.flatten(1).diagonal().sum(), copies)
    return gradient.unflatten(0, (-1, width))


def leak(
    jac: Float[Tensor, "N D_out N D"], streams: Streams, source: str = "sem", target: str = "pos"
) -> float:
    """The largest absolute derivative of the stream `target` by the stream `source`; exactly 0 if isolated.

    Raises:
        ValueError: an unknown stream, or a Jacobian whose output lacks one (`readout="both"` computes all).
    """
    streams.select((source, target))
    if jac.shape[1] != streams.d_model:
        raise ValueError(
            f"the last block computes {jac.shape[1]} of {streams.d_model} columns; build with readout='both'"
        )
    return jac[:, streams.slices[target], :, streams.slices[source]].abs().max().item()


@dataclass(frozen=True)
class Leakage:
    """The derivative of one stream after `depth` blocks by the other stream of the input state.

    Attributes:
        largest: the largest absolute entry, exactly 0 if nothing passes.
        relative: the Frobenius norm of that block of the Jacobian beside the one of `target` by itself, each
            times the root mean square of the stream that it differentiates by: equal relative disturbances of
            the two streams at the input arrive in this proportion. 1 means that `target` depends on `source`
            as much as on itself.
    """

    depth: int
    source: str
    target: str
    largest: float
    relative: float


def leakage(model: LanguageModel, tokens: Int[Tensor, "1 N"], depth: int, *, frozen: bool) -> list[Leakage]:
    """Both directions, after `depth` blocks, at the state of one text at positions 0 to N-1.

    Args:
        model: of the two streams pos and sem. Its last block may compute `sem` only, so that `depth` ends
            before it.
        frozen: hold the attention weights constant, as in `jacobian`.

    Raises:
        ValueError: a dense model, or a depth at which a stream is not computed.
    """
    streams = model.config.streams
    if streams.names != ("pos", "sem"):
        raise ValueError(f"leakage needs the streams pos and sem; this model has {', '.join(streams.names)}")
    stack = first_blocks(model.transformer, depth)
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    with torch.no_grad():
        state = stack.input_state(model.embedding(tokens), positions)
    jac = jacobian(stack, state, frozen=frozen)
    sizes = {name: float(x.square().mean().sqrt()) for name, x in state.items()}

    found = []
    for source, target in (("sem", "pos"), ("pos", "sem")):
        crossing, own = (jac[:, streams.slices[target], :, streams.slices[one]] for one in (source, target))
        relative = float(crossing.norm() * sizes[source]) / float(own.norm() * sizes[target])
        found.append(Leakage(depth, source, target, leak(jac, streams, source, target), relative))
    return found


def first_blocks(transformer: Transformer, depth: int) -> Transformer:
    """A copy of the first blocks, all of whose streams are read; ValueError for a depth below 1, or one whose
    blocks do not all compute every stream."""
    config = transformer.config
    whole = sum(set(block.outputs) == set(evolving(config)) for block in transformer.layout.blocks)
    if not 1 <= depth <= whole:
        raise ValueError(f"depth is {depth}; every stream is computed after 1 to {whole} blocks")
    part = Transformer(replace(config, n_layers=depth, readout="both", tie_embeddings=False))
    reference = next(transformer.parameters())
    part.to(reference.device, reference.dtype)
    part.load_state_dict({name: transformer.state_dict()[name] for name in part.state_dict()})
    return part.eval().requires_grad_(False)


class DenseMap(nn.Module):
    """A control: one full matrix, N(0, 1/D), where a `BlockDiagonalLinear` stands."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self.streams = streams
        self.map = nn.Linear(streams.d_model, streams.d_model, bias=False)
        nn.init.normal_(self.map.weight, std=streams.d_model**-0.5)

    def parts(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return self.streams.split(self.map(self.streams.join(parts)))


class DenseMLP(nn.Module):
    """A control: one MLP over the whole width where a `StreamMLP` stands, with as many hidden columns."""

    def __init__(self, streams: Streams, expansion: int = 4) -> None:
        super().__init__()
        width = streams.d_model
        self.streams = streams
        self.up = nn.Linear(width, expansion * width, bias=False)
        self.down = nn.Linear(expansion * width, width, bias=False)
        for layer in (self.up, self.down):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)

    def parts(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        hidden = nn.functional.gelu(self.up(self.streams.join(parts)))
        return self.streams.split(self.down(hidden))


CONTROLS = ("value", "output", "mlp")


def join_streams(transformer: Transformer, where: str) -> Transformer:
    """Replace the block-diagonal `value`, `output` or `mlp` of every block by a full one, in place.

    This plants a leak in an untrained model. To train such a model, build it with
    `TransformerConfig(split=...)`, which initialises it well.

    Raises:
        ValueError: an unknown place, a last block that does not compute every stream, or an isolated model.
    """
    one_of("place", where, CONTROLS)
    streams = transformer.config.streams
    if transformer.config.isolated:
        joined = "mlp" if where == "mlp" else "value_output"
        rest = ", ".join(repr(name) for name in SPLIT if name != joined)
        raise ValueError(
            f"the position streams of this model are run on their own, where a joint {where} lacks the "
            f"content; build it with split={{{rest}}} instead"
        )
    if transformer.layout.last != streams.names:
        raise ValueError("a control needs every stream in every block; build with readout='both'")
    dtype = next(transformer.parameters()).dtype
    for block in transformer.blocks:
        if where == "mlp":
            block.mlp = DenseMLP(streams, transformer.config.expansion).to(dtype)
        else:
            setattr(block.attention, where, DenseMap(streams).to(dtype))
    return transformer

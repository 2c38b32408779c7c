"""How far each stream of a trained model depends on the other, block by block: derivatives at a real text."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from ..models import LanguageModel, Transformer
from ..models.layout import evolving
from .isolation import jacobian


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
        frozen: hold the attention weights constant, as in `isolation.jacobian`.

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

    def block(source: str, target: str) -> Tensor:
        return jac[:, streams.slices[target], :, streams.slices[source]]

    found = []
    for source, target in (("sem", "pos"), ("pos", "sem")):
        crossing, own = block(source, target), block(target, target)
        relative = float(crossing.norm() * sizes[source]) / float(own.norm() * sizes[target])
        found.append(Leakage(depth, source, target, float(crossing.abs().max()), relative))
    return found


def first_blocks(transformer: Transformer, depth: int) -> Transformer:
    """A copy of the first blocks, all of whose streams are read.

    Raises:
        ValueError: a depth below 1, or one whose blocks do not all compute every stream.
    """
    config = transformer.config
    whole = sum(set(block.outputs) == set(evolving(config)) for block in transformer.layout.blocks)
    if not 1 <= depth <= whole:
        raise ValueError(f"depth is {depth}; every stream is computed after 1 to {whole} blocks")
    part = Transformer(replace(config, n_layers=depth, readout="both", tie_embeddings=False))
    reference = next(transformer.parameters())
    part.to(reference.device, reference.dtype)
    part.load_state_dict({name: transformer.state_dict()[name] for name in part.state_dict()})
    return part.eval().requires_grad_(False)

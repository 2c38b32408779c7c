"""The residual state at every depth, and the attention weights, of a trained model that reads a text; and how
far they move when the text starts at another index.

The model runs as it always does, so that a strict one shows the stream that it computes once for all texts.

Shape letters: B sequences, N tokens, w width of one stream, H heads.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..models import LanguageModel, frozen_attention

State = dict[str, Tensor]

BATCH = 64
"""Sequences in one pass; the states are put together on the CPU."""


@torch.no_grad()
def residual_states(
    model: LanguageModel, tokens: Int[Tensor, "B N"], positions: Int[Tensor, " N"] | None = None
) -> list[State]:
    """What every block reads and what the last one leaves, one `[B, N, w]` per stream.

    Args:
        model: it is put into evaluation mode.
        tokens: on the CPU or on the device of the model.
        positions: by default 0 to N-1.

    Returns:
        n_layers + 1 states on the CPU: entry l is the state after l blocks. A stream that no later block and
        no read-out needs is not computed, and is absent.
    """
    tokens, positions = _ready(model, tokens, positions)
    return _joined([_recorded(model, piece, positions) for piece in tokens.split(BATCH)])


@torch.no_grad()
def held_attention_states(
    model: LanguageModel, tokens: Int[Tensor, "B N"], positions: Int[Tensor, " N"]
) -> list[State]:
    """The states at `positions` if every head attended as it does at the positions 0 to N-1.

    Whatever still moves does not move because a head attends elsewhere.
    """
    tokens, indices = _ready(model, tokens, None)
    pieces = []
    for piece in tokens.split(BATCH):
        with frozen_attention(model):
            model(piece, indices)
            pieces.append(_recorded(model, piece, positions.to(tokens.device)))
    return _joined(pieces)


@torch.no_grad()
def attention_maps(
    model: LanguageModel, tokens: Int[Tensor, "B N"], positions: Int[Tensor, " N"] | None = None
) -> list[dict[str, Float[Tensor, "B H N N"]]]:
    """The attention weights of every layer, on the CPU, by what the heads write to.

    Returns:
        For each layer the weights of the heads whose columns lie in one stream, under its name, and of those
        that straddle a border, under "both". Heads that are not built are absent, and so are empty groups.
    """
    with frozen_attention(model) as tapes:
        model(*_ready(model, tokens, positions))
        weights = [tape.weights.cpu() for tape in tapes]
    maps = []
    for block, layer in zip(model.transformer.blocks, weights, strict=True):
        owners = [_owner(model, head) for head in block.attention.heads]
        of = {owner: [at for at, one in enumerate(owners) if one == owner] for owner in dict.fromkeys(owners)}
        maps.append({owner: layer[:, places] for owner, places in of.items()})
    return maps


def stream_state(model: LanguageModel, state: Mapping[str, Tensor], stream: str) -> Tensor | None:
    """One stream of a state, or with "joint" all of them side by side; None where one is not computed.

    The one stream of a dense model is its joint state, and it has no other. ValueError for an unknown one.
    """
    names = model.config.streams.names
    if stream not in (*names, "joint"):
        raise ValueError(f"unknown stream {stream!r}; this model has {', '.join(names)} and joint")
    if stream != "joint":
        return state.get(stream)
    return model.config.streams.join(state) if set(names) <= state.keys() else None


def drift(states: Float[Tensor, "B N w"], reference: Float[Tensor, "B N w"]) -> float:
    """How far the states have moved from the reference, `|x - r| / |r|` over all tokens.

    0 is no change; two unrelated states of the same norm are sqrt(2) apart. ValueError for a reference of 0.
    """
    size = reference.double().norm()
    if size == 0:
        raise ValueError("the reference is 0 throughout: it has no norm to measure a drift in")
    return float((states.double() - reference.double()).norm() / size)


def attention_distance(weights: Float[Tensor, "B H N M"], reference: Float[Tensor, "B H N M"]) -> float:
    """The share of attention that goes elsewhere: the mean total variation distance, from 0 to 1, from the
    second token on."""
    _has_choice(weights)
    return float((weights.double() - reference.double())[..., 1:, :].abs().sum(-1).mean() / 2)


def attention_entropy(weights: Float[Tensor, "B H N N"]) -> float:
    """The mean entropy of causal weights from the second token on, in units of that of looking at all visible
    tokens alike: 1 if nothing is chosen."""
    _has_choice(weights)
    entropy = torch.special.entr(weights.double()).sum(-1)[..., 1:]
    most = torch.arange(2, weights.shape[-2] + 1, dtype=torch.float64).log()
    return float((entropy / most).mean())


def _has_choice(weights: Tensor) -> None:
    """ValueError without a second token: the first can only attend to itself."""
    if weights.shape[-2] < 2:
        raise ValueError("one token attends to itself whatever the positions; give two or more")


def _ready(model: LanguageModel, tokens: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor]:
    """Tokens and positions, by default from 0 on, on the device of a model that evaluates."""
    device = next(model.eval().parameters()).device
    positions = torch.arange(tokens.shape[1]) if positions is None else positions
    return tokens.to(device), positions.to(device)


def _joined(pieces: list[list[State]]) -> list[State]:
    """The states of all sequences, from those of some at a time."""
    return [
        {name: torch.cat([piece[depth][name] for piece in pieces]) for name in state}
        for depth, state in enumerate(pieces[0])
    ]


def _owner(model: LanguageModel, head: int) -> str:
    """The stream whose columns a head holds, or "both" if it straddles a border."""
    d = model.config.head_width
    for name, columns in model.config.streams.slices.items():
        if columns.start <= head * d and (head + 1) * d <= columns.stop:
            return name
    return "both"


@contextmanager
def inputs_of(modules: Iterable[nn.Module]) -> Iterator[list[tuple]]:
    """Inside, every call of one of `modules` adds its positional arguments to the list that this yields."""
    found: list[tuple] = []
    with ExitStack() as hooks:
        for module in modules:
            hooks.enter_context(module.register_forward_pre_hook(lambda _, given: found.append(given)))
        yield found


def _recorded(model: LanguageModel, tokens: Tensor, positions: Tensor) -> list[State]:
    """The streams that every block that runs is given and returns, in whatever order the blocks run."""
    blocks = model.transformer.blocks
    states: list[State] = [{} for _ in range(len(blocks) + 1)]

    def record(layer: int, _, arguments: tuple, output: State) -> None:
        states[layer].update(arguments[0])
        states[layer + 1].update(output)

    with ExitStack() as hooks:
        for layer, block in enumerate(blocks):
            hooks.enter_context(block.register_forward_hook(partial(record, layer)))
        model(tokens, positions)
    # Streams of an isolated model were run once for all sequences.
    return [{name: x.expand(len(tokens), -1, -1).cpu() for name, x in state.items()} for state in states]

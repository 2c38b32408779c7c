"""The sequential encoder of SeqPE (Li et al. 2025): digits in, one embedding for each position out.

A small causal transformer reads the digits of a position; the state of a last slot, which sees them all, is
the position's embedding. Nothing is indexed by position, so any number with enough digits has one.

    x_s = Digit[digit_s] + Place[s] (+ Dim[coordinate of s])      s = 0 .. S-1
    x_S = cls
    E   = Linear(LayerNorm(transformer(x)_S))

`plain` is the definition. `forward` computes the same function with less: each distinct prefix once (what a
digit's state depends on), and in the last layer the last slot alone.

There is no mask of the padding, as in the release with its mask off: a leading zero is a digit like any
other. The released mask hides leading zeros, which a slot can tell from the digits before it anyway.

Shape letters: P positions, n coordinates, S digits of a position, w width, H heads, D columns of the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from ..models.config import TransformerConfig
from ..models.transformer import Block, Transformer
from ..streams import MOST_WEIGHTS, Streams
from ..validation import WIDEST, above_zero, share, whole
from .digits import Positions, as_grid, check_range, checked_places, written

RELEASED_WIDTH, RELEASED_STD = 768, 0.02
"""Width of the released text encoder, and the standard deviation of its first weights."""

AT_ONCE = 2**16
"""Positions that are encoded at once where no gradients are needed: a slot of all of them is held then."""


def check_settings(
    *,
    width: int,
    dims: int,
    base: int,
    digits: int | Sequence[int],
    layers: int,
    heads: int | None,
    dropout: float,
    std: float | None,
) -> tuple[int, ...]:
    """The digits of each coordinate, of settings of a `SequentialPositionEncoder` that fit together."""
    whole("width", width, 1, WIDEST)
    whole("dims", dims, 1, WIDEST)
    whole("layers", layers, 1, 2**10)
    if heads is not None and width % whole("heads", heads, 1, WIDEST):
        raise ValueError(f"{heads} heads do not divide the encoder's width {width}")
    share("dropout", dropout)
    if std is not None:
        above_zero("std", std)
    given = checked_places(base, digits, "digits")
    places = tuple(given * dims if isinstance(digits, int) else given)
    if len(places) != dims:
        raise ValueError(f"digits={digits} for {dims} coordinates; give one number, or one for each")
    whole("the weights of the embeddings", max(base, sum(places)) * width, 1, MOST_WEIGHTS)
    return places


@dataclass(frozen=True)
class PrefixTree:
    """The distinct prefixes of P strings of S digits, by length. Under a causal mask a digit's state depends
    on its prefix alone: strings 1230 and 1239 have the same states at their first three places. For
    neighbouring positions the tree has few more nodes than its last place has strings.

    Attributes:
        digit: for each place s, the last digit of each of its T_s prefixes, int64 `[T_s]`.
        above: for each place s, s index tensors `[T_s]`: where the shorter prefixes of each prefix are, at
            the places 0 to s - 1.
        leaf: for each place s, the index of the prefix that each string begins with, `[P]`.
    """

    digit: tuple[Tensor, ...]
    above: tuple[tuple[Tensor, ...], ...]
    leaf: tuple[Tensor, ...]

    @classmethod
    def of(cls, strings: Tensor) -> "PrefixTree":
        """The tree of int64 strings `[P, S]`, by place from the first."""
        digit, above, leaf = [], [], []
        base = int(strings.max()) + 1 if strings.numel() else 1
        prefix = torch.zeros(len(strings), dtype=torch.int64, device=strings.device)
        for place in strings.unbind(dim=1):
            # The number of a prefix among those of its place, and the next digit, name the next prefix.
            named, found = (prefix * base + place).unique(return_inverse=True)
            one = found.new_empty(len(named)).scatter_(
                0, found, torch.arange(len(found), device=found.device)
            )
            above.append(tuple(before[one] for before in leaf))
            digit.append(named % base)
            leaf.append(found)
            prefix = found
        return cls(tuple(digit), tuple(above), tuple(leaf))

    @property
    def sizes(self) -> list[int]:
        """T_s of each place."""
        return [len(digit) for digit in self.digit]


class _Layers(Transformer):
    """A stack without dropout at its input, as released; dropout acts on what its sublayers add."""

    def dropped(self, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(x)


class SequentialPositionEncoder(nn.Module):
    """Positions `[P]` or `[P, n]` to embeddings `[P, D]`, through their digits.

    Args:
        width, dims: w, width of the encoder, and n, coordinates of a position.
        base, digits: of the strings; digits per coordinate, or one number for each coordinate.
        layers, heads: of the transformer; `heads` None takes one for every 64 columns, as released.
        out_features: D; None takes w.
        dropout: of what the transformer's sublayers add. Above 0, training takes the plain path, because
            states with noise of their own cannot be shared.
        std: of the initial maps and embeddings; biases start at 0. None takes 0.02 sqrt(768 / w), the gain of
            the released width at any width: at 0.02 the embeddings of a narrow encoder are so alike that
            scores divided by sqrt(D) hardly differ.
    """

    standalone = True
    """Its layers are none of the model that holds it; see `sepnb.models.weights.own_modules`."""

    def __init__(
        self,
        *,
        width: int,
        dims: int = 1,
        base: int = 10,
        digits: int | Sequence[int] = 5,
        layers: int = 2,
        heads: int | None = None,
        out_features: int | None = None,
        dropout: float = 0.0,
        std: float | None = None,
    ) -> None:
        super().__init__()
        shape = {"width": width, "dims": dims, "base": base, "digits": digits, "layers": layers}
        self.digits = check_settings(**shape, heads=heads, dropout=dropout, std=std)
        if out_features is not None:
            whole("out_features", out_features, 1, WIDEST)
        self.base, self.dims, places = base, dims, sum(self.digits)
        self.vouched = False  # see `validation.vouched`
        heads = heads or max(1, width // 64)
        config = {"max_length": places + 1, "bias": True, "dropout": dropout}
        self.transformer = _Layers(TransformerConfig(Streams.dense(width), layers, heads, **config))
        self.digit = nn.Embedding(base, width)
        self.place = nn.Embedding(places, width)
        self.dim = nn.Embedding(dims, width) if dims > 1 else None
        self.cls = nn.Parameter(torch.empty(1, width))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, out_features or width)
        self.std = RELEASED_STD * (RELEASED_WIDTH / width) ** 0.5 if std is None else std
        nn.init.normal_(self.cls, std=self.std)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=self.std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    @property
    def highest(self) -> tuple[int, ...]:
        """The largest position of each coordinate."""
        return tuple(self.base**count - 1 for count in self.digits)

    def strings(self, positions: Positions) -> Int[Tensor, "P S"]:
        """The digits of positions `[P]` or `[P, n]`, on the encoder's device; errors as in `digits`."""
        grid = as_grid(positions)
        check_range(grid, self.base, self.digits, self.vouched)
        return written(grid, self.base, self.digits).to(self.cls.device)

    def forward(self, positions: Positions) -> Float[Tensor, "P D"]:
        """The embeddings of positions `[P]` or `[P, n]` that `digits` can write.

        Finding the distinct prefixes reads the device once per place. That would break a compiled pass into
        as many graphs and make training on a GPU wait, so both take the plain path."""
        own_noise, waits = self.transformer.config.dropout > 0, self.cls.device.type != "cpu"
        if torch.compiler.is_compiling() or (self.training and (own_noise or waits)):
            return self.plain(positions)
        strings = self.strings(positions)
        if torch.is_grad_enabled() or len(strings) <= AT_ONCE:
            return self._shared(strings)
        return torch.cat([self._shared(piece) for piece in strings.split(AT_ONCE)])

    def _shared(self, strings: Tensor) -> Tensor:
        """The embeddings of strings `[P, S]`, each distinct prefix computed once."""
        tree = PrefixTree.of(strings)
        return self._read(self._last_slot(tree))[tree.leaf[-1]]

    def plain(self, positions: Positions) -> Float[Tensor, "P D"]:
        """The same by the definition: every slot of every position through every layer."""
        strings = self.strings(positions)
        slots = self.digit(strings) + self._places()
        slots = torch.cat([slots, self.cls.expand(len(strings), 1, -1)], dim=1)
        return self._read(self.transformer(slots)["sem"][:, -1])

    def _places(self) -> Tensor:
        """What every place of the string adds to its digit, `[S, w]`."""
        if self.dim is None:
            return self.place.weight
        counts = torch.tensor(self.digits, device=self.cls.device)
        axes = self.dim.weight.repeat_interleave(counts, dim=0, output_size=sum(self.digits))
        return self.place.weight + axes

    def _read(self, state: Tensor) -> Tensor:
        return self.output(self.norm(state))

    def _last_slot(self, tree: PrefixTree) -> Tensor:
        """The state of the last slot after all layers, for each distinct string of the tree, `[T, w]`."""
        places = self._places()
        # One tensor for the prefixes of each place, and one for the last slot, the same for all at first.
        states = [self.digit(digit) + places[s] for s, digit in enumerate(tree.digit)]
        states.append(self.cls)
        all_places = (*tree.above[-1], torch.arange(tree.sizes[-1], device=self.cls.device))
        above = [*tree.above, all_places]
        for block in self.transformer.blocks[:-1]:
            states = _block(block, states, above, range(len(states)))
        (state,) = _block(self.transformer.blocks[-1], states, above, [len(states) - 1])
        return state


def _block(
    block: Block, states: list[Tensor], above: list[tuple[Tensor, ...]], wanted: Sequence[int]
) -> list[Tensor]:
    """One block on the prefixes of each place, for the places in `wanted`: a slot attends to itself and to
    the prefixes above it."""
    attention, sizes = block.attention, [len(state) for state in states]
    normed = block.attention_norm.parts({"sem": torch.cat(states)})["sem"]
    projection, heads = attention.query_key[0], (-1, attention.head_width)
    to_query, to_key = zip(projection.weight.chunk(2), projection.bias.chunk(2), strict=True)
    keys = F.linear(normed, *to_key).unflatten(-1, heads).split(sizes)
    values = attention.values({"sem": normed})["sem"].unflatten(-1, heads).split(sizes)
    inputs = normed.split(sizes)
    queries = F.linear(torch.cat([inputs[s] for s in wanted]), *to_query).unflatten(-1, heads)
    averaged = []
    for s, q in zip(wanted, queries.split([sizes[s] for s in wanted]), strict=True):
        # Chosen by `index_select`: the backward pass of indexing is slower.
        seen = [(keys[r].index_select(0, at), values[r].index_select(0, at)) for r, at in enumerate(above[s])]
        seen.append((keys[s], values[s]))
        scores = torch.stack(torch.broadcast_tensors(*((q * k).sum(dim=-1) for k, _ in seen)), dim=-1)
        weights = (scores * attention.head_width**-0.5).softmax(dim=-1)
        averaged.append(sum(weights[..., r, None] * v for r, (_, v) in enumerate(seen)).flatten(-2))
    sizes = [len(z) for z in averaged]
    added = attention.output.parts({"sem": torch.cat(averaged)})["sem"].split(sizes)
    states = torch.cat([states[s] + more for s, more in zip(wanted, added, strict=True)])
    states = states + block.mlp.parts(block.mlp_norm.parts({"sem": states}))["sem"]
    return list(states.split(sizes))

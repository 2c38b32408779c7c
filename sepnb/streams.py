"""The split itself: which slice of the width belongs to which stream, and maps that respect it.

A *stream* is a contiguous slice of the model width with its own meaning. A dense transformer is the
separated one with a single stream, so every map here takes any number of them. Each map has two doors:
`forward` takes and returns the joined width `[..., D]`; `parts` takes and returns one tensor per stream,
which is what the model uses, because streams that are never joined cost nothing to keep apart. A stream that
is absent from `parts` is not computed; a map that is not split needs all of them. What does not fit is a
TypeError or a ValueError that says what would.

Shape letters: D model width, w width of one stream.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from .validation import WIDEST, flag, floating, instance, number, one_of, shown, whole

ACTIVATIONS = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu, "swiglu": F.silu}
GATED = ("swiglu",)
"""Activations whose input is twice as wide: one half, activated, multiplies the other (Shazeer 2020)."""

JOINT = "joint"
"""The one block of a map that is not split."""

_EMPTY = nn.ModuleDict()
"""Streams cannot have a name that a module uses itself, because a module keeps parts by stream name."""

MOST_WEIGHTS = 2**36  # of one map: what asks for more is a slip


@dataclass(frozen=True, init=False, repr=False)
class Streams:
    """How the model width is divided, in order: `Streams(pos=32, sem=96)`.

    Widths are ints from 0 to `WIDEST`, and one is above 0. A stream of width 0 is no stream:
    `Streams(pos=0, sem=D)` equals `Streams.dense(D)`.
    """

    items: tuple[tuple[str, int], ...]

    def __init__(self, **widths: int) -> None:
        for name, width in widths.items():
            if not name or "." in name or hasattr(_EMPTY, name):
                raise ValueError(
                    f"no stream can be called {name!r}: a torch module uses that name itself, or does not "
                    f"allow it; give another, such as 'pos'"
                )
            whole(f"the width of stream {name!r}", width, 0, WIDEST, needs="give 0 or more")
        items = tuple((name, width) for name, width in widths.items() if width)
        if not items:
            raise ValueError("no stream has a width above 0; give at least one, e.g. Streams(pos=32, sem=96)")
        object.__setattr__(self, "items", items)

    @classmethod
    def dense(cls, d_model: int) -> "Streams":
        """One stream. It carries the semantics, with positions added, so it counts as `sem`."""
        return cls(sem=d_model)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)

    @property
    def widths(self) -> dict[str, int]:
        return dict(self.items)

    @property
    def d_model(self) -> int:
        return sum(width for _, width in self.items)

    @property
    def slices(self) -> dict[str, slice]:
        """Columns of each stream in the joined width."""
        slices, start = {}, 0
        for name, width in self.items:
            slices[name] = slice(start, start + width)
            start += width
        return slices

    def split(self, x: Float[Tensor, "... D"]) -> dict[str, Tensor]:
        """`[..., D]` to one view `[..., w]` per stream."""
        if not floating("x", x).dim():
            raise ValueError(f"x has no dimension, {self!r} needs {self.d_model} columns; give [..., D]")
        if x.shape[-1] != self.d_model:
            raise ValueError(f"the last dimension is {x.shape[-1]}, {self!r} needs {self.d_model}")
        return {name: x[..., columns] for name, columns in self.slices.items()}

    def join(self, parts: Mapping[str, Tensor]) -> Float[Tensor, "... D"]:
        """The inverse of `split`; streams absent from `parts` are left out, but not all of them."""
        present = [parts[name] for name in self.names if name in parts]
        if not present:
            raise ValueError(f"there is nothing to join: none of {', '.join(self.names)} was given")
        return present[0] if len(present) == 1 else torch.cat(present, dim=-1)

    def select(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """`names` in the order of the streams, all of them for None."""
        if names is None:
            return self.names
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise TypeError(f"names of streams are a tuple, such as {self.names!r}, got {shown(names)}")
        names = tuple(names)
        if unknown := [name for name in names if name not in self.names]:
            raise ValueError(f"unknown stream {shown(unknown[0])}; {self!r} has {', '.join(self.names)}")
        return tuple(name for name in self.names if name in names)

    def __repr__(self) -> str:
        return f"Streams({', '.join(f'{name}={width}' for name, width in self.items)})"


def _check_input(x: Tensor, weight: Tensor) -> None:
    """Refuse an input that is on another device or of another dtype than the weights."""
    floating("x", x)
    if x.device != weight.device:
        raise ValueError(f"x is on {x.device} and the weights on {weight.device}; move one of them")
    if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"x is {x.dtype} and the weights {weight.dtype}; give both in one dtype")


class BlockDiagonalLinear(nn.Module):
    """A linear map with one block per stream and zeros elsewhere: `[..., D] -> [..., expansion*D]`.

    The blocks are stored as blocks. A dense weight that is only masked at initialisation drifts off its
    zeros as soon as it is trained, and one masked in every forward pass pays for the zeros.

    Args:
        streams: the division of the input.
        expansion: each stream of width w goes to `expansion * w` columns of its own, contiguous.
        bias: add one bias per output column; a constant cannot carry anything from stream to stream.
        contraction: the input has `contraction * w` columns per stream (the way back from an expansion).
        reduction: the output has `expansion * w / reduction` columns per stream (values of shared heads).
        split: False gives the ablation, one full matrix over the joined width, which mixes the streams.
        outputs: build only the blocks of these streams; the rest of the input is ignored.
    """

    def __init__(
        self,
        streams: Streams,
        expansion: int = 1,
        bias: bool = False,
        *,
        contraction: int = 1,
        reduction: int = 1,
        split: bool = True,
        outputs: Iterable[str] | None = None,
    ) -> None:
        super().__init__()
        instance("streams", streams, Streams, "Streams(pos=32, sem=96)")
        factors = {"expansion": expansion, "contraction": contraction, "reduction": reduction}
        for name, value in factors.items():
            whole(name, value, 1, WIDEST)
        flag("bias", bias)
        flag("split", split)
        self.streams, self.split = streams, split
        self.layout = Streams(**{name: contraction * width for name, width in streams.items})
        self.widths = {}
        for name in streams.select(outputs):
            self.widths[name], rest = divmod(expansion * streams.widths[name], reduction)
            if rest:
                raise ValueError(f"a reduction by {reduction} does not divide stream {name} of {streams!r}")
        if split:
            shapes = {name: (self.layout.widths[name], width) for name, width in self.widths.items()}
        else:
            shapes = {JOINT: (self.layout.d_model, sum(self.widths.values()))}
        for columns in shapes.values():
            whole("the weights of a map", columns[0] * columns[1], 0, MOST_WEIGHTS)
        self.blocks = nn.ModuleDict({name: nn.Linear(*shape, bias=bias) for name, shape in shapes.items()})

    def parts(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One `[..., w]` per stream in, one `[..., expansion*w/reduction]` per output stream out."""
        if not self.split:
            return self.joint(self.layout.join(parts))
        return {name: block(parts[name]) for name, block in self.blocks.items() if name in parts}

    def joint(self, x: Float[Tensor, "... D_in"]) -> dict[str, Tensor]:
        """The map that is not split, on its joined input."""
        pieces = self.blocks[JOINT](x).split(list(self.widths.values()), dim=-1)
        return dict(zip(self.widths, pieces, strict=True))

    def forward(self, x: Float[Tensor, "... D_in"]) -> Float[Tensor, "... D_out"]:
        """The joined output. Refuses another dtype, device or last dimension than that of the weights."""
        for block in self.blocks.values():
            _check_input(x, block.weight)
        return self.streams.join(self.parts(self.layout.split(x)))


class StreamNorm(nn.Module):
    """LayerNorm or RMSNorm, one per stream (`split=True`) or one over the joined width (`split=False`).

    The joint norm is the ablation: its mean and its scale are computed over both streams, so it mixes
    them. The split norm is exact, and it erases the magnitude of each stream: norm(c p) = norm(p) up to
    `eps` for every c > 0. Gain and bias act column by column and cannot mix.

    Args:
        streams: the division of the input.
        kind: "layer" (Ba et al. 2016) or "rms" (Zhang and Sennrich 2019).
        split: one norm per stream, or one over the joined width.
        eps: added to the variance (layer) or to the mean square (rms).
        outputs: return only these streams, and build gains only for them.
        plain: streams that pass as they are, without gains; for a split norm only.
    """

    def __init__(
        self,
        streams: Streams,
        kind: str = "layer",
        split: bool = True,
        *,
        eps: float = 1e-5,
        outputs: Iterable[str] | None = None,
        plain: Iterable[str] = (),
    ) -> None:
        super().__init__()
        instance("streams", streams, Streams, "Streams(pos=32, sem=96)")
        one_of("norm kind", kind, ("layer", "rms"))
        flag("split", split)
        number("eps", eps, least=0)
        self.streams, self.kind, self.split, self.eps = streams, kind, split, eps
        self.outputs, self.plain = streams.select(outputs), streams.select(plain)
        if self.plain and not split:
            raise ValueError(
                f"one norm over all streams leaves none of them plain, and plain names {self.plain[0]!r}; "
                f"leave plain out, or give split=True"
            )
        widths = {name: streams.widths[name] for name in self.outputs if name not in self.plain}
        self.gain = nn.ParameterDict({name: nn.Parameter(torch.ones(w)) for name, w in widths.items()})
        self.bias = nn.ParameterDict(
            {name: nn.Parameter(torch.zeros(w)) for name, w in widths.items()} if kind == "layer" else {}
        )

    def _normalise(self, x: Tensor, gain: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        width = (x.shape[-1],)
        if self.kind == "rms":
            return F.rms_norm(x, width, gain, self.eps)
        return F.layer_norm(x, width, gain, bias, self.eps)

    def parts(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One `[..., w]` per stream in and out."""
        bias = dict(self.bias.items())
        if self.split:
            return {
                name: parts[name]
                if name in self.plain
                else self._normalise(parts[name], self.gain[name], bias.get(name))
                for name in self.outputs
                if name in parts
            }
        normalised = self.streams.split(self._normalise(self.streams.join(parts)))
        scaled = {name: normalised[name] * gain for name, gain in self.gain.items()}
        return {name: x + bias[name] if name in bias else x for name, x in scaled.items()}

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D_out"]:
        """The joined output. Refuses another dtype, device or last dimension than that of the gains."""
        for gain in self.gain.values():
            _check_input(x, gain)
        return self.streams.join(self.parts(self.streams.split(x)))


class StreamMLP(nn.Module):
    """One two-layer perceptron per stream, `[..., D] -> [..., D]`: w to expansion*w, activation, back to w.

    Each stream runs to its end before the next begins, and the wide hidden tensors are never joined: that
    is what makes the split MLP cheaper in time and not only in parameters.

    Args:
        streams: the division of the width.
        expansion: hidden columns per column of the stream.
        activation: one of `ACTIVATIONS`, acting column by column; a gated one (`GATED`) has a third matrix
            of the size of the first.
        bias: biases on all layers.
        split: False gives the ablation, one perceptron over the joined width, which mixes the streams.
        outputs: build only the perceptrons of these streams.
    """

    def __init__(
        self,
        streams: Streams,
        expansion: int = 4,
        activation: str = "gelu",
        *,
        bias: bool = False,
        split: bool = True,
        outputs: Iterable[str] | None = None,
    ) -> None:
        super().__init__()
        instance("streams", streams, Streams, "Streams(pos=32, sem=96)")
        one_of("activation", activation, ACTIVATIONS)
        whole("expansion", expansion, 1, WIDEST)
        flag("split", split)
        self.streams, self.split = streams, split
        self.activation, self.gated = ACTIVATIONS[activation], activation in GATED
        hidden = None if not split else outputs  # a joint perceptron reads every stream
        self.up = BlockDiagonalLinear(
            streams, (1 + self.gated) * expansion, bias, split=split, outputs=hidden
        )
        self.down = BlockDiagonalLinear(streams, 1, bias, contraction=expansion, split=split, outputs=outputs)

    def _hidden(self, x: Tensor) -> Tensor:
        if not self.gated:
            return self.activation(x)
        gate, value = x.chunk(2, dim=-1)
        return self.activation(gate) * value

    def parts(self, parts: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """One `[..., w]` per stream in, one per output stream out."""
        if not self.split:
            return self.down.joint(self._hidden(self.up.blocks[JOINT](self.streams.join(parts))))
        return {
            name: self.down.blocks[name](self._hidden(up(parts[name])))
            for name, up in self.up.blocks.items()
            if name in parts
        }

    def forward(self, x: Float[Tensor, "... D"]) -> Float[Tensor, "... D_out"]:
        """The joined output. Refuses another dtype, device or last dimension than that of the weights."""
        for block in self.up.blocks.values():
            _check_input(x, block.weight)
        return self.streams.join(self.parts(self.streams.split(x)))

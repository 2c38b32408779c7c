"""What a model is: one frozen description for dense and separated, so that two models differ in one field."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from ..encodings import Encoding, Site, build
from ..streams import ACTIVATIONS, Streams

MODES = {"separated": "joint", "strict": "strict"}
"""Each mode and what its heads read: `joint`, every head reads every stream; `strict`, the heads whose
columns lie in the pos stream read that stream only."""


@dataclass(frozen=True)
class TransformerConfig:
    """A pre-norm, residual transformer on one or more streams.

    Args:
        streams: how the width is divided; `Streams.dense(D)` gives the dense baseline.
        n_layers: blocks.
        n_heads: heads; must divide the model width.
        encoding: a name of `sepnb.encodings.names()`, a built encoding, or a tuple of them. One that acts at
            the input is added to the content of a one-stream model and fills the pos stream of a separated
            one, which needs exactly one such.
        mode: "separated" or "strict", see `MODES`; without effect on a single stream.
        norm: "split", one norm per stream, or "joint", one over the whole width.
        readout: "sem" or "both": the streams from which the output is computed.
        max_length: positions trained on; the number of rows of a learned table.
        causal: each query sees keys up to itself; False gives a bidirectional encoder.
        expansion, activation, norm_kind, bias: as in `StreamMLP`, `StreamNorm`, `BlockDiagonalLinear`.
        embedding_std: of the token embedding when it is drawn. Half puts a token beside a sinusoid, whose
            root mean square is 0.71; at 0.02, the value of large models, an added sinusoid drowns the token.
        tie_embeddings: the output layer shares the weights of the token embedding; needs readout="sem".

    Raises:
        TypeError: streams, an encoding or a count of another type.
        ValueError: whatever of this does not fit together, with the nearest that would.
    """

    streams: Streams
    n_layers: int
    n_heads: int
    encoding: str | Encoding | tuple[str | Encoding, ...] = "none"
    mode: str = "separated"
    norm: str = "split"
    readout: str = "sem"
    max_length: int = 128
    causal: bool = True
    expansion: int = 4
    activation: str = "gelu"
    norm_kind: str = "layer"
    bias: bool = False
    embedding_std: float = 0.5
    tie_embeddings: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.streams, Streams):
            raise TypeError(f"streams must be Streams, such as Streams.dense(128), got {self.streams!r}")
        for field, allowed in (
            ("mode", tuple(MODES)),
            ("norm", ("split", "joint")),
            ("readout", ("sem", "both")),
            ("activation", tuple(ACTIVATIONS)),
            ("norm_kind", ("layer", "rms")),
        ):
            if (value := getattr(self, field)) not in allowed:
                raise ValueError(f"{field}={value!r} is unknown; use one of {', '.join(allowed)}")
        for field in ("n_layers", "n_heads", "max_length", "expansion"):
            if isinstance(value := getattr(self, field), bool) or not isinstance(value, int):
                raise TypeError(f"{field} must be an int, got {value!r}")
            if value < 1:
                raise ValueError(f"{field} is {value}; it must be at least 1")
        if not self.embedding_std > 0:
            raise ValueError(f"embedding_std is {self.embedding_std}; it must be above 0")
        width, heads = self.streams.d_model, self.n_heads
        if width % heads:
            near = [n for n in range(1, width + 1) if width % n == 0]
            nearest = min(near, key=lambda n: abs(n - heads))
            raise ValueError(f"{heads} heads do not divide the model width {width}; {nearest} would")
        if set(self.streams.names) - {"pos", "sem"} or "sem" not in self.streams.names:
            raise ValueError(f"a transformer has a sem stream and at most a pos stream, got {self.streams!r}")
        if self.tie_embeddings and self.readout != "sem":
            raise ValueError(
                "tie_embeddings needs readout='sem': the embedding has no columns for the other streams"
            )
        at_input = [encoding.name for encoding in self.encodings if Site.INPUT in encoding.sites]
        if self.separated and len(at_input) != 1:
            remedy = "keep one of them" if at_input else "add e.g. 'sinusoidal' or 'learned'"
            raise ValueError(
                f"a separated model needs exactly one encoding at the input to fill its pos stream, got "
                f"{len(at_input)} ({', '.join(at_input) or 'none'}); {remedy}"
            )
        d_pos, d_head = self.streams.widths.get("pos", 0), self.head_width
        if self.mode == "strict" and d_pos % d_head:
            below = d_pos // d_head * d_head
            above = below + d_head  # at the whole width nothing is left for the sem stream
            nearest = f"that are: {below} and {above}" if above < width else f"that is: {below}"
            raise ValueError(
                f"strict needs whole position heads: d_pos={d_pos} is no multiple of the head width "
                f"{d_head}; the nearest {nearest}"
            )

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The encodings, built."""
        given = self.encoding if isinstance(self.encoding, tuple) else (self.encoding,)
        return tuple(item if isinstance(item, Encoding) else build(item) for item in given)

    @property
    def separated(self) -> bool:
        """Whether there is more than one stream."""
        return len(self.streams.names) > 1

    @property
    def head_width(self) -> int:
        return self.streams.d_model // self.n_heads

    @property
    def readout_streams(self) -> tuple[str, ...]:
        return ("sem",) if self.readout == "sem" else self.streams.names

    @property
    def last_streams(self) -> tuple[str, ...]:
        """The streams that the last block must compute. What only feeds the others is never built.

        A joint norm reads every stream, so under it nothing is dead.
        """
        return self.readout_streams if self.norm == "split" else self.streams.names

    def reads(self, head: int) -> tuple[str, ...]:
        """The streams from which head `head` makes its queries and keys."""
        pos = self.streams.slices.get("pos", slice(0, 0))
        inside = pos.start <= head * self.head_width and (head + 1) * self.head_width <= pos.stop
        return ("pos",) if MODES[self.mode] == "strict" and inside else self.streams.names

    def resolved(self) -> dict[str, Any]:
        """Every field in plain JSON types, for a record."""
        resolved = {field.name: getattr(self, field.name) for field in fields(self)}
        resolved["streams"] = self.streams.widths
        resolved["encoding"] = [{"name": item.name, **asdict(item)} for item in self.encodings]
        return resolved

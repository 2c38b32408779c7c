"""A content-to-position term with waves: what a query says decides at which distance a head looks.

With linear maps of position embeddings a score holds products of content with *absolute* positions and of
positions with positions, never of content with a *distance*. This term is that product, as term (b) of
Transformer-XL is (Dai et al. 2019), with fixed waves and coefficients of their own:

    S_ij += Re sum_m c_m(s_i) z_m(i) conj(z_m(j)) = Re sum_m c_m(s_i) exp(1j w_m (i - j))

The coefficients c_m are linear in the normalised content s_i of the query and differ from head to head and
from layer to layer; the phases z_m(i) = exp(1j w_m i) are fixed. The term depends on positions through i - j
alone, so it needs no position embedding and no offsets. RoPE has such waves too, but there the coefficients
are products of query and key: here the key gives its position and nothing else, and a cache holds no more.

Written as more columns of queries and keys it costs no N x M bias: the columns of the query are the real and
imaginary parts of c_m z_m(i), those of the key the real and imaginary parts of z_m(j).

Shape letters: B batch, H heads, N query length, M key length, W waves.
"""

from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..validation import WIDEST, floating, movable, number, shaped, tensor, together, whole
from .base import Encoding, Extendable, Heads, Site, TermModule
from .context import ContextExtension, stretched
from .relative import check_pairs
from .rope import angles_of

SHORTEST = 4.0
"""Wavelength of the fastest wave, in positions: a quarter of a turn from one to the next."""


def phase_frequencies(waves: int, longest: int | float) -> Float[Tensor, " W"]:
    """Angular frequencies of at least 2 waves in float64, fastest first: wavelengths geometric from
    `SHORTEST` to `longest`."""
    whole("waves", waves, 2, WIDEST, needs="give at least 2, the shortest and the longest")
    needs = f"it must be finite and above the shortest wavelength, {SHORTEST}"
    number("longest", longest, above=SHORTEST, needs=needs)
    steps = torch.arange(waves, dtype=torch.float64) / (waves - 1)
    return 2 * pi / (SHORTEST * (longest / SHORTEST) ** steps)


def phase_scores(
    coefficients: Tensor, frequencies: Float[Tensor, " W"], query_positions: Tensor, key_positions: Tensor
) -> Float[Tensor, "*B H N M"]:
    """The term from its definition, unscaled: complex coefficients `[B, H, N, W]`, and positions `[N]` and
    `[M]`, or `[B, N]` and `[B, M]`, to `[B, H, N, M]`."""
    sizes: dict[str, int] = {}
    if not tensor("coefficients", coefficients).is_complex():
        raise TypeError(f"coefficients must be complex, got {coefficients.dtype}; give torch.complex(a, b)")
    shaped(sizes, "coefficients", coefficients, "B H N W")
    shaped(sizes, "frequencies", floating("frequencies", frequencies), "W")
    check_pairs(query_positions, key_positions, sizes)
    together(coefficients=coefficients, key_positions=key_positions)
    movable("frequencies", frequencies, key_positions.device)
    distance = query_positions[..., :, None] - key_positions[..., None, :]
    turned = torch.exp(1j * frequencies.to(torch.float64) * distance[..., None])  # [N, M, W]
    turned = turned[:, None] if distance.dim() == 3 else turned  # make room for the heads
    return (coefficients[..., :, None, :] * turned).real.sum(-1)


class PhaseTerm(TermModule, Extendable):
    """The term of one layer. It shares the scale d^-1/2 of the score, which the coefficients can undo."""

    def __init__(self, heads: Heads, waves: int, longest: int | float) -> None:
        super().__init__()
        self.n_heads, self.waves, self.longest = heads.reading, waves, longest
        self.extend(None)
        self.coefficients = nn.Linear(heads.content_width, heads.reading * 2 * waves, bias=False)
        self.more, self.products = 2 * waves, self.coefficients.weight.numel()

    def extend(self, extension: ContextExtension | None) -> None:
        self.extension = extension
        # From the fastest to the slowest, `waves` - 1 steps later, frequencies fall by SHORTEST / longest.
        own = {"dim": 2 * (self.waves - 1), "base": self.longest / SHORTEST, "extension": extension}
        # A plain attribute, not a buffer: model.to(bfloat16) must not round the frequencies.
        plain = phase_frequencies(self.waves, self.longest)
        self.frequencies, self.attention_factor = stretched(plain, **own)

    def _phases(self, positions: Tensor) -> Tensor:
        """cos and sin of every angle, `[*B, 1, N, W, 2]`, from float64."""
        angles = angles_of(positions, self.frequencies)
        return torch.stack([angles.cos(), angles.sin()], dim=-1).unsqueeze(-4)

    def prepare(self, query_positions: Tensor, key_positions: Tensor) -> tuple[Tensor, Tensor]:
        return self._phases(query_positions), self._phases(key_positions)

    def forward(self, content: Tensor, prepared: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        coefficients = self.coefficients(content).unflatten(-1, (self.n_heads, self.waves, 2)).transpose(1, 2)
        at, keys = (phases.to(coefficients.dtype) for phases in prepared)
        real, imaginary = coefficients.unbind(-1)
        cos, sin = at.unbind(-1)
        turned = [real * cos - imaginary * sin, real * sin + imaginary * cos]
        given = torch.cat(keys.unbind(-1), dim=-1)
        return torch.cat(turned, dim=-1), given if given.dim() == 4 else given[None]


@dataclass(frozen=True)
class Phase(Encoding):
    """The content-to-position term with waves, in every head that reads the sem stream.

    Args:
        longest: wavelength of the slowest wave, above 4 positions; None takes the trained length. Within this
            distance every wave has turned once: further on, all together are at angles that are new.
        waves: how many, at least 2, with wavelengths geometric from 4 to `longest`.
    """

    name = "phase"
    order = 6
    sites = frozenset({Site.QUERY_KEY})
    left_out = "a variant of this book, compared as `dense-phase` in `recipes`"

    longest: int | float | None = None
    waves: int = 16

    def __post_init__(self) -> None:
        phase_frequencies(self.waves, 2 * SHORTEST if self.longest is None else self.longest)

    def each_layer(self, site: Site) -> bool:
        return True

    def at_query_key(self, heads: Heads) -> TermModule:
        longest = heads.max_length if self.longest is None else self.longest
        return PhaseTerm(heads, self.waves, longest)

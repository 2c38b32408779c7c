"""Equation (2) of the slides: beyond the window, sinusoids scaled to the table's deviation.

What is printed: p_i[2k] = sin(i / 10000^(2k/d_pos)), p_i[2k+1] = cos(the same), k = 0..floor(d_pos/2), times
sigma = std({p_j}, j < L). k runs one pair too far: an even d_pos gets d_pos + 2 columns, an odd one one more.
A sine times sigma does not have the deviation sigma, and one sigma stands for columns that differ. No scale
repairs the fault: it is another basis than the table's.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from ..encodings import sinusoidal
from ..validation import one_of
from .base import Extrapolator, Rule, keep_window, working_dtype

ALIGNMENTS = ("none", "procrustes")
BITS = 11
"""Of a digit of a position, see `waves`."""


@dataclass(frozen=True)
class Sinusoidal(Extrapolator):
    """Equation (2). Both deviations are population deviations, over the positions [0, L).

    Corrected: k ends at ceil(d_pos/2) - 1, an odd width drops the last cosine, and the waves are multiplied
    by sigma_table / sigma_waves. Literal: by sigma_table, and cut to d_pos columns to fit the model.

    Args:
        align: "procrustes" applies the orthogonal map that carries the waves on [0, L) best onto the table
            (Schoenemann 1966): a control, to tell a wrong basis from a wrong idea.
    """

    name = "sinusoidal"

    align: str = "none"

    def __post_init__(self) -> None:
        one_of("align", self.align, ALIGNMENTS)

    def corrected(self, table: Tensor) -> Rule:
        width, dtype = table.shape[1], working_dtype(table)
        window = table.to(torch.float64)
        code = sinusoidal(torch.arange(len(table), device=table.device), width, dtype=torch.float64)
        scale = window.std((0, 1), correction=0) / code.std(correction=0)
        if self.align == "none":
            scale = scale.to(dtype)
            return keep_window(table, lambda positions: waves(positions, width, dtype).mul_(scale))
        turn = (scale * procrustes(code, window)).to(dtype)
        return keep_window(table, lambda positions: waves(positions, width, dtype) @ turn)

    def literal(self, table: Tensor) -> Rule:
        if self != Sinusoidal():
            raise ValueError("align is no part of the printed (2); use form='corrected'")
        width, dtype = table.shape[1], working_dtype(table)
        sigma = table.to(torch.float64).std(correction=0).to(dtype)
        return lambda positions: waves(positions, width, dtype).mul_(sigma)


def procrustes(source: Tensor, target: Tensor) -> Tensor:
    """The orthogonal `[d, d]` that brings `source` `[L, d]` nearest to `target` `[L, d]` in least squares."""
    left, _, right = torch.linalg.svd(source.T @ target)
    return left @ right


def waves(positions: Integer[Tensor, " N"], width: int, dtype: torch.dtype) -> Float[Tensor, "N width"]:
    """`sepnb.encodings.sinusoidal(positions, width)`, interleaved, base 10,000, of float32 or float64, by the
    addition of angles: a million positions cost one gather and one complex product for each of their digits.

    With a position in base 2048, i = sum_n c_n 2048^n, exp(-1j i w) is the product over n of
    exp(-1j c_n 2048^n w), each a row of a table that is computed once, in float64. In float32 the error is
    below 1e-6 at positions up to 1e9. In float64 it is about i times 2e-16, what float64 resolves of an
    angle, as in `sinusoidal` itself. Positions are not negative.
    """
    rows = _digit_table(0, width, dtype, positions.device).index_select(0, positions & (2**BITS - 1))
    digit, rest = 1, positions >> BITS
    while rest.any():
        rows *= _digit_table(digit, width, dtype, positions.device).index_select(0, rest & (2**BITS - 1))
        digit, rest = digit + 1, rest >> BITS
    return torch.view_as_real(rows).flatten(-2)[:, :width]


@lru_cache(maxsize=64)
def _digit_table(digit: int, width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The factors of every value of one digit, complex `[2048, ceil(width/2)]`.

    A pair (sin, cos) read as one complex number is 1j exp(-1j angle). The lowest digit has the 1j.
    """
    positions = torch.arange(2**BITS, dtype=torch.float64, device=device) * 2.0 ** (BITS * digit)
    exponents = torch.arange((width + 1) // 2, dtype=torch.float64, device=device) * (2 / width)
    angles = positions[:, None] * 10_000.0**-exponents
    real, imaginary = (angles.cos(), -angles.sin()) if digit else (angles.sin(), angles.cos())
    return torch.complex(real.to(dtype), imaginary.to(dtype))

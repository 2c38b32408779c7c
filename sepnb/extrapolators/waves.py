"""The sinusoidal code at many positions, by the addition of angles instead of a sine for every entry.

Write a position in base 2048, i = sum_n c_n 2048^n. Then exp(-1j i w) is the product over its digits n of
exp(-1j c_n 2048^n w), and each factor is a row of a table of 2048 rows that is computed once, in float64.
A million positions then cost one gather and one complex product per digit, two digits up to four million.
"""

from functools import lru_cache

import torch
from jaxtyping import Float, Integer
from torch import Tensor

BITS = 11


def waves(positions: Integer[Tensor, " N"], width: int, dtype: torch.dtype) -> Float[Tensor, "N width"]:
    """`sepnb.encodings.sinusoidal(positions, width)`, interleaved, base 10,000, of float32 or float64.

    In float32 the error is below 1e-6 at positions up to 1e9. In float64 it is about i times 2e-16, what
    float64 resolves of an angle, as in `sinusoidal` itself. Positions are not negative.
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

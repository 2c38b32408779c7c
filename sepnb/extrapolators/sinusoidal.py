"""Equation (2) of the slides: beyond the window, the sinusoidal code scaled to the table's deviation.

What is printed: p_i[2k] = sin(i / 10000^(2k/d_pos)), p_i[2k+1] = cos(the same), k = 0..floor(d_pos/2), times
sigma = std({p_j}, j < L). Three slips and one fault. k runs one pair too far: an even d_pos gets d_pos + 2
columns, an odd one d_pos + 1. A sine times sigma does not have the deviation sigma. One sigma stands for
columns that differ. And no scale repairs the fault: it is another basis than the table's.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ..encodings import sinusoidal
from ..validation import flag, one_of
from .base import Extrapolator, Rule, keep_window, working_dtype
from .waves import waves

ALIGNMENTS = ("none", "procrustes")


def printed_columns(width: int) -> int:
    """How many columns the printed range of k gives: `width` + 2 for an even width, + 1 for an odd one."""
    return 2 * (width // 2 + 1)


@dataclass(frozen=True)
class Sinusoidal(Extrapolator):
    """Equation (2). Both deviations are population deviations, over the positions [0, L).

    Corrected: k ends at ceil(d_pos/2) - 1, an odd width drops the last cosine, and the code is multiplied by
    sigma_table / sigma_code. Literal: multiplied by sigma_table, and cut to d_pos columns to fit the model.

    Args:
        per_dimension: sigma_table column by column. sigma_code remains one number: over the window the slow
            waves are nearly constant, and divided by their own deviation they would drown the others.
        align: "procrustes" applies the orthogonal map that carries the code on [0, L) best onto the table
            (Schoenemann 1966). An oracle, to tell a wrong basis from a wrong idea.
    """

    name: ClassVar[str] = "sinusoidal"

    per_dimension: bool = False
    align: str = "none"

    def __post_init__(self) -> None:
        one_of("align", self.align, ALIGNMENTS)
        flag("per_dimension", self.per_dimension)
        if self.per_dimension and self.align != "none":
            raise ValueError(
                "per_dimension scales the columns that align='procrustes' mixes; choose one of them"
            )

    def corrected(self, table: Tensor) -> Rule:
        width, dtype = table.shape[1], working_dtype(table)
        window = table.to(torch.float64)
        code = sinusoidal(torch.arange(len(table), device=table.device), width, dtype=torch.float64)
        scale = window.std(0 if self.per_dimension else (0, 1), correction=0) / code.std(correction=0)
        if self.align == "none":
            scale = scale.to(dtype)
            return keep_window(table, lambda positions: waves(positions, width, dtype).mul_(scale))
        turn = (scale * procrustes(code, window)).to(dtype)
        return keep_window(table, lambda positions: waves(positions, width, dtype) @ turn)

    def literal(self, table: Tensor) -> Rule:
        if self != Sinusoidal():
            raise ValueError("per_dimension and align are no part of the printed (2); use form='corrected'")
        width, dtype = table.shape[1], working_dtype(table)
        sigma = table.to(torch.float64).std(correction=0).to(dtype)
        return lambda positions: waves(positions, width, dtype).mul_(sigma)


def procrustes(source: Tensor, target: Tensor) -> Tensor:
    """The orthogonal `[d, d]` that brings `source` `[L, d]` nearest to `target` `[L, d]` in least squares."""
    left, _, right = torch.linalg.svd(source.T @ target)
    return left @ right

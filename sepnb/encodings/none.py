"""No encoding (NoPE): only the causal mask carries order.

It must stand in every table as the control. Without a mask such a model is permutation equivariant; with a
causal mask it is not blind to order (Haviv et al. 2022; Kazemnejad et al. 2023).
"""

from dataclasses import dataclass
from typing import ClassVar

from .base import Encoding


@dataclass(frozen=True)
class NoEncoding(Encoding):
    """Acts nowhere and has no parameters."""

    name: ClassVar[str] = "none"
    order: ClassVar[float] = 0
    axes: ClassVar[tuple[int, ...] | None] = None
    real_positions: ClassVar[bool] = True

    @property
    def saturates_at(self) -> int | float:
        return 0

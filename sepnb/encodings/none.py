"""No encoding (NoPE): only the causal mask carries order.

It must stand in every table as the control. Without a mask such a model is permutation equivariant; with a
causal mask it is not blind to order (Haviv et al. 2022; Kazemnejad et al. 2023).
"""

from dataclasses import dataclass

from .base import Encoding


@dataclass(frozen=True)
class NoEncoding(Encoding):
    """Acts nowhere and has no parameters."""

    name = "none"
    order = 0
    axes = None
    real_positions = True
    saturates_at = 0

"""LongRoPE (Ding et al. 2024): a factor of its own for each frequency, found by search; see `context`."""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import torch

from ..validation import number, shown
from .extension import Extension, check_number, check_original_length, current_length


@dataclass(frozen=True)
class LongRoPE(Extension):
    """A divisor for every pair, from a search (Ding et al. 2024): `short` where the text has at most L
    positions, else `long`; queries and keys are multiplied by sqrt(1 + ln s / ln L) in both cases.

    The length is that of the whole text, as in `DynamicNTK`. There are no default lists: they belong to a
    checkpoint.

    Args:
        short, long: a divisor for each pair.
        factor, original_length: s and L.

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1; a trained length that is no
            int or below 2; divisors that are no tuple, not finite, not above 0, or not one for each pair; a
            current length that is not known.
    """

    name: ClassVar[str] = "longrope"
    by_length: ClassVar[bool] = True

    short: tuple[int | float, ...]
    long: tuple[int | float, ...]
    factor: int | float
    original_length: int

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)
        check_original_length(self)
        for field in ("short", "long"):
            divisors = getattr(self, field)
            if not isinstance(divisors, tuple):
                raise TypeError(
                    f"{field} must be a tuple of divisors, one for each pair, got {shown(divisors)}"
                )
            if wrong := [x for x in divisors if not number(f"a divisor of {field}", x) > 0]:
                raise ValueError(f"{field} holds {wrong[0]}; divisors must be finite and above 0")

    def __call__(self, inv_freq, *, dim, base, length):
        for field in ("short", "long"):
            if (given := len(getattr(self, field))) != len(inv_freq):
                raise ValueError(
                    f"{field} holds {given} divisors for {len(inv_freq)} pairs; give one for each, half the "
                    f"rotary width {dim}"
                )
        divisors = self.short if current_length(self, length) == self.original_length else self.long
        divided = inv_freq / torch.tensor(divisors, dtype=torch.float64, device=inv_freq.device)
        return divided, sqrt(1 + log(self.factor) / log(self.original_length))

"""What a context extension is: a frozen description that changes the frequencies of RoPE; see `context`."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor

from ..validation import number, whole

LONGEST = 2**53
"""No length and no factor is larger: beyond, not every position is a float64."""


@dataclass(frozen=True)
class Extension(ABC):
    """Base of all context extensions: a frozen description that is called with frequencies."""

    name: ClassVar[str]
    by_length: ClassVar[bool] = False
    """Whether the frequencies depend on the current length of the text."""

    @abstractmethod
    def __call__(
        self, inv_freq: Float[Tensor, " half"], *, dim: int, base: int | float, length: int | None
    ) -> tuple[Float[Tensor, " half"], float]:
        """Plain frequencies `[dim/2]` in; changed ones and the attention factor out."""

    def resolved(self) -> dict[str, Any]:
        """Name and options in plain JSON types."""
        return {
            "name": self.name,
            **{key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()},
        }


def check_number(extension: Extension, field: str, at_least: int | float) -> None:
    hint = "; a smaller one would shorten the context, for which RoPE needs nothing" * (field == "factor")
    needs = f"it must be finite and at least {at_least}{hint}"
    most = inf if field == "base" else LONGEST
    number(field, getattr(extension, field), least=at_least, most=most, needs=needs)


def check_original_length(extension: Extension) -> None:
    needs = "give the trained length, at least 2"
    whole("original_length", extension.original_length, 2, LONGEST, needs=needs)


def check_order(extension: Extension, low: str, high: str) -> None:
    """Both are numbers of turns, and there are some between them."""
    for field in (low, high):
        check_number(extension, field, 0)
    a, b = getattr(extension, low), getattr(extension, high)
    if not a < b:
        raise ValueError(f"{low} is {a} and {high} is {b}; {low} must be below {high}")


def current_length(extension: Extension, length: int | None) -> int:
    """The current length n, at least the original one."""
    if length is None:
        raise ValueError(
            f"length is None; the frequencies of {extension.name} follow the length of the text: give "
            f"rope_frequencies(..., length=n), or make_cache(batch_size, length=n) to a model"
        )
    whole("length", length, 1, LONGEST, needs="a text has at least 1 token")
    return max(length, extension.original_length)

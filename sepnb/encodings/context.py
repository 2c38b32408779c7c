"""Context extensions: other frequencies for RoPE, so that it reads texts longer than those it was trained on.

A pair of columns with the angular frequency w makes L w / 2 pi turns in the L positions of training. A pair
that makes many has shown every angle; one that makes less than a turn meets unseen angles past L, unless it
is slowed down. The extensions differ in which pairs they slow down, and by how much. s is the factor of the
context, d the rotary width, w_m = base^(-2m/d).

An extension is the `extension` argument of `rope_frequencies`, `RoPE` and `LanguageModel.extended`. It is
called with the plain frequencies and returns others and the attention factor, which multiplies queries and
keys and so enters a score squared.
"""

from dataclasses import MISSING, dataclass, fields
from math import ceil, floor, log, pi
from typing import ClassVar

import torch
from torch import Tensor

from ..validation import one_of
from .base import from_json
from .extension import Extension, check_number, check_order, check_original_length, current_length
from .longrope import LongRoPE

RAMPS = ("dimension", "rotations")


def _rebased(inv_freq: Tensor, dim: int, ratio: int | float) -> Tensor:
    """The frequencies of a base that is `ratio` times as large: w_m ratio^(-2m/d)."""
    exponents = torch.arange(len(inv_freq), dtype=torch.float64, device=inv_freq.device) * (2 / dim)
    return inv_freq * ratio**-exponents


def _ntk(inv_freq: Tensor, dim: int, factor: int | float, name: str) -> Tensor:
    """The base that leaves the first frequency and divides the last, m = d/2 - 1, by `factor`."""
    if dim <= 2:
        raise ValueError(f"the rotary width is {dim}; {name} needs more than one pair, at least 4 columns")
    return _rebased(inv_freq, dim, factor ** (dim / (dim - 2)))


def _by_parts(
    inv_freq: Tensor, factor: int | float, length: int, slow: int | float, fast: int | float
) -> Tensor:
    """Frequencies with `fast` turns in `length` or more are kept, those with `slow` or fewer are divided by
    `factor`; between, the share that is kept grows linearly with the turns."""
    turns = length * inv_freq / (2 * pi)
    kept = ((turns - slow) / (fast - slow)).clamp(0, 1)
    return torch.lerp(inv_freq / factor, inv_freq, kept)  # exact at both ends


@dataclass(frozen=True)
class PositionInterpolation(Extension):
    """Every frequency is divided by s, as if positions were (PI; Chen et al. 2023).

    No angle is larger than in training, but neighbours come closer at every frequency.

    Args:
        factor: s.

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1.
    """

    name: ClassVar[str] = "position-interpolation"

    factor: int | float

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)

    def __call__(self, inv_freq, *, dim, base, length):
        return inv_freq / self.factor, 1.0


@dataclass(frozen=True)
class RaisedBase(Extension):
    """The frequencies of a larger base (Xiong et al. 2023): weights that were trained with one are read with
    another. `RoPE(base=...)` trains with it.

    Args:
        base: the larger one.

    Raises:
        TypeError, ValueError: a base that is no number, not finite, or below that of the model.
    """

    name: ClassVar[str] = "raised-base"

    base: int | float

    def __post_init__(self) -> None:
        check_number(self, "base", 1)

    def __call__(self, inv_freq, *, dim, base, length):
        if self.base < base:
            raise ValueError(
                f"base is {self.base}, below {base}, with which the model was built; give a larger one"
            )
        return _rebased(inv_freq, dim, self.base / base), 1.0


@dataclass(frozen=True)
class NTKAware(Extension):
    """A larger base, base s^(d/(d-2)): the first frequency stays, the last is divided by s (bloc97 2023).

    Those between are divided by less than s, so some leave the trained range before s L.

    Args:
        factor: s.

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1; a rotary width of 2.
    """

    name: ClassVar[str] = "ntk-aware"

    factor: int | float

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)

    def __call__(self, inv_freq, *, dim, base, length):
        return _ntk(inv_freq, dim, self.factor, self.name), 1.0


@dataclass(frozen=True)
class DynamicNTK(Extension):
    """`NTKAware` with a factor that follows the current length n: s n/L - (s - 1) where n > L, else 1.

    The frequencies are those of one length for a whole text: with n the number of tokens so far, every token
    would be read under frequencies of its own, and what it left behind, keys rotated or not, would no longer
    be what a pass over the whole text computes. A cache must therefore be told the length of the text.

    Args:
        factor, original_length: s and L.

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1; a trained length that is no
            int or below 2; a current length that is not known; a rotary width of 2.
    """

    name: ClassVar[str] = "dynamic-ntk"
    by_length: ClassVar[bool] = True

    factor: int | float
    original_length: int

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)
        check_original_length(self)

    def __call__(self, inv_freq, *, dim, base, length):
        beyond = current_length(self, length) / self.original_length - 1  # 0 exactly up to L
        return _ntk(inv_freq, dim, 1 + self.factor * beyond, self.name), 1.0


@dataclass(frozen=True)
class NTKByParts(Extension):
    """Pairs with at least `beta` turns in training are kept, pairs with at most `alpha` are divided by s, and
    between the share that is kept grows linearly with the turns (Peng et al. 2024).

    Args:
        factor, original_length: s and L.
        alpha, beta: turns in training.

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1; a trained length that is no
            int or below 2; turns that are no numbers, or `alpha` not below `beta`.
    """

    name: ClassVar[str] = "ntk-by-parts"

    factor: int | float
    original_length: int
    alpha: int | float = 1
    beta: int | float = 32

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)
        check_original_length(self)
        check_order(self, "alpha", "beta")

    def __call__(self, inv_freq, *, dim, base, length):
        return _by_parts(inv_freq, self.factor, self.original_length, self.alpha, self.beta), 1.0


@dataclass(frozen=True)
class YaRN(Extension):
    """By parts, and queries and keys multiplied by 0.1 ln s + 1, which sharpens attention (Peng et al. 2024).

    Args:
        factor, original_length: s and L.
        beta_fast, beta_slow: turns in training from which on a pair is kept, and up to which it is divided.
        ramp: what stands between is linear in the index of the pair ("dimension": the authors' code, and what
            the name means in practice) or in its turns ("rotations": the text of the paper).

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1; a trained length that is no
            int or below 2; turns that are no numbers, `beta_slow` not below `beta_fast`, or where the ramp is
            of indices not below what the fastest pair makes; an unknown ramp.
    """

    name: ClassVar[str] = "yarn"

    factor: int | float
    original_length: int
    beta_fast: int | float = 32
    beta_slow: int | float = 1
    ramp: str = "dimension"

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)
        check_original_length(self)
        check_order(self, "beta_slow", "beta_fast")
        one_of("ramp", self.ramp, RAMPS)
        if self.ramp == "dimension" and not 0 < self.beta_slow < self.original_length / (2 * pi):
            raise ValueError(
                f"beta_slow is {self.beta_slow}; in {self.original_length} positions the fastest pair makes "
                f"{self.original_length / (2 * pi):.3g} turns, and the ramp must end between 0 and that: "
                f"change beta_slow, or use ramp='rotations'"
            )

    def __call__(self, inv_freq, *, dim, base, length):
        attention_factor = 0.1 * log(self.factor) + 1
        if self.ramp == "rotations":
            slow, fast = self.beta_slow, self.beta_fast
            return _by_parts(inv_freq, self.factor, self.original_length, slow, fast), attention_factor

        def pair(turns: int | float) -> float:
            """The index, not a whole number, at which a pair makes so many turns in training."""
            return dim * log(self.original_length / (2 * pi * turns)) / (2 * log(base))

        # Up to d - 1, although there are d/2 pairs: so does the authors' code.
        first = min(max(floor(pair(self.beta_fast)), 0), dim - 1)
        last = min(ceil(pair(self.beta_slow)), dim - 1)
        index = torch.arange(len(inv_freq), dtype=torch.float64, device=inv_freq.device)
        divided = ((index - first) / (last - first or 0.001)).clamp(0, 1)
        return torch.lerp(inv_freq, inv_freq / self.factor, divided), attention_factor


@dataclass(frozen=True)
class Llama3(Extension):
    """The rule of the later Llama 3 models: waves shorter than L/high are kept, those longer than L/low are
    divided by s; it is `NTKByParts` with `low` and `high` turns.

    It stands in the released code. The paper (Grattafiori et al. 2024) names the raised base alone.

    Args:
        factor, original_length: s and L.
        low_freq_factor, high_freq_factor: turns in training.

    Raises:
        TypeError, ValueError: a factor that is no number, not finite or below 1; a trained length that is no
            int or below 2; turns that are no numbers, or the low ones not below the high ones.
    """

    name: ClassVar[str] = "llama3"

    factor: int | float
    original_length: int
    low_freq_factor: int | float = 1
    high_freq_factor: int | float = 4

    def __post_init__(self) -> None:
        check_number(self, "factor", 1)
        check_original_length(self)
        check_order(self, "low_freq_factor", "high_freq_factor")

    def __call__(self, inv_freq, *, dim, base, length):
        low, high = self.low_freq_factor, self.high_freq_factor
        return _by_parts(inv_freq, self.factor, self.original_length, low, high), 1.0


EXTENSIONS: dict[str, type[Extension]] = {
    extension.name: extension
    for extension in (
        PositionInterpolation,
        RaisedBase,
        NTKAware,
        DynamicNTK,
        NTKByParts,
        YaRN,
        Llama3,
        LongRoPE,
    )
}


def extensions() -> list[str]:
    """The names of all context extensions, which `build_extension` and `RoPE(extension=...)` take."""
    return list(EXTENSIONS)


def build_extension(name: str, **options: object) -> Extension:
    """The extension that `Extension.resolved` describes, such as `name="yarn", factor=4.0, ...`.

    Raises:
        TypeError, ValueError: an unknown name or option, one that is missing, or what the extension refuses.
    """
    one_of("context extension", name, EXTENSIONS)
    known = {field.name: field.default is MISSING for field in fields(EXTENSIONS[name])}
    if unknown := [option for option in options if option not in known]:
        raise ValueError(f"{name} has no option {unknown[0]!r}; it has {', '.join(known)}")
    if missing := [option for option, needed in known.items() if needed and option not in options]:
        raise TypeError(f"{name} needs {missing[0]}; give it")
    return EXTENSIONS[name](**{key: from_json(value) for key, value in options.items()})

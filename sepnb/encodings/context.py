"""Context extensions: slower waves, so that a model reads texts longer than those it was trained on.

A wave with the angular frequency w makes L w / 2 pi turns in the L positions of training. A wave that makes
many turns has shown every angle. One that makes less than a turn meets unseen angles past L, unless it is
slowed down. The extensions differ in which waves they slow down, and by how much. They were published for
RoPE, whose pairs of columns are such waves, but nothing in them is particular to a rotation: here they change
the frequencies of RoPE, of a sinusoid at the input and of every other encoding that is made of waves.

s is the factor of the context, d the rotary width, w_m = w_0 base^(-2m/d), m = 0, 1, ...; w_0 is 1 in RoPE.

An extension is the `extension` argument of `rope_frequencies`, `RoPE` and `LanguageModel.extended`. The
attention factor that it returns beside the frequencies multiplies queries and keys, and so enters a score
squared.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, fields
from math import ceil, floor, log, pi, sqrt
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import known_options, number, one_of, shown, whole
from .base import from_json, to_json

LONGEST = 2**53
"""No length and no factor is larger: beyond, not every position is a float64."""

RAMPS = ("dimension", "rotations")

ContextExtension = Callable[..., tuple[Tensor, float]]
"""A change of frequencies, called as an `Extension` is. One whose frequencies depend on `length` says so by
an attribute `by_length`; its factor must not."""


@dataclass(frozen=True)
class Extension(ABC):
    """Base of all context extensions: a frozen description that is called with frequencies.

    Wherever they are fields, `factor` is s, finite and at least 1, and `original_length` L, at least 2.
    """

    name: ClassVar[str]
    by_length: ClassVar[bool] = False
    """Whether the frequencies depend on the current length of the text."""
    turns: ClassVar[tuple[str, ...]] = ()
    """Two fields that are numbers of turns in training, of at least 0, the first below the second."""

    def __post_init__(self) -> None:
        given = vars(self)
        if "factor" in given:
            shorter = "a smaller one would shorten the context, for which RoPE needs nothing"
            needs = f"it must be finite and at least 1 (and at most 2**53); {shorter}"
            number("factor", self.factor, 1, LONGEST, needs=needs)
        if "original_length" in given:
            needs = "give the trained length, at least 2"
            whole("original_length", self.original_length, 2, LONGEST, needs=needs)
        for field in self.turns:
            number(field, given[field], 0, LONGEST)
        if self.turns:
            (low, a), (high, b) = ((field, given[field]) for field in self.turns)
            if not a < b:
                raise ValueError(f"{low} is {a} and {high} is {b}; {low} must be below {high}")

    @abstractmethod
    def __call__(
        self, inv_freq: Float[Tensor, " half"], *, dim: int, base: int | float, length: int | None
    ) -> tuple[Float[Tensor, " half"], float]:
        """Plain frequencies in, w_0 base^(-2m/dim), highest first, for RoPE `[dim/2]`; changed ones and the
        attention factor out."""

    def current_length(self, length: int | None) -> int:
        """The current length n of the whole text, at least the original one. It must be known."""
        if length is None:
            raise ValueError(
                f"length is None; the frequencies of {self.name} follow the length of the text: give "
                f"rope_frequencies(..., length=n), or make_cache(batch_size, length=n) to a model"
            )
        whole("length", length, 1, LONGEST, needs="a text has at least 1 token")
        return max(length, self.original_length)

    def resolved(self) -> dict[str, Any]:
        """Name and options in plain JSON types."""
        return {"name": self.name} | to_json(asdict(self))


def _rebased(inv_freq: Tensor, dim: int, ratio: int | float) -> Tensor:
    """The frequencies of a base that is `ratio` times as large: w_m ratio^(-2m/d)."""
    exponents = torch.arange(len(inv_freq), dtype=torch.float64, device=inv_freq.device) * (2 / dim)
    return inv_freq * ratio**-exponents


def _ntk(inv_freq: Tensor, dim: int, factor: int | float, name: str) -> Tensor:
    """Frequencies of the base that keeps the first and divides the last (RoPE: m = d/2 - 1) by `factor`."""
    if (last := len(inv_freq) - 1) < 1:
        raise ValueError(f"the width is {dim}; {name} needs more than one pair, at least 4 columns")
    return _rebased(inv_freq, dim, factor ** (dim / (2 * last)))


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
    """Every frequency is divided by s, as if positions were (PI; Chen et al. 2023): no angle is larger than
    in training, but neighbours come closer at every frequency."""

    name = "position-interpolation"

    factor: int | float

    def __call__(self, inv_freq, *, dim, base, length):
        return inv_freq / self.factor, 1.0


@dataclass(frozen=True)
class RaisedBase(Extension):
    """The frequencies of a larger base (Xiong et al. 2023): weights that were trained with one are read with
    another, `base`, which is refused below that of the model. `RoPE(base=...)` trains with it."""

    name = "raised-base"

    base: int | float

    def __post_init__(self) -> None:
        number("base", self.base, 1)

    def __call__(self, inv_freq, *, dim, base, length):
        if self.base < base:
            raise ValueError(
                f"base is {self.base}, below {base}, with which the model was built; give a larger one"
            )
        return _rebased(inv_freq, dim, self.base / base), 1.0


@dataclass(frozen=True)
class NTKAware(Extension):
    """A larger base, base s^(d/(d-2)): the first frequency stays, the last is divided by s (bloc97 2023).
    Those between are divided by less than s, so some leave the trained range before s L."""

    name = "ntk-aware"

    factor: int | float

    def __call__(self, inv_freq, *, dim, base, length):
        return _ntk(inv_freq, dim, self.factor, self.name), 1.0


@dataclass(frozen=True)
class DynamicNTK(Extension):
    """`NTKAware` with a factor that follows the current length n: s n/L - (s - 1) where n > L, else 1.

    The frequencies are those of one length for a whole text: with n the number of tokens so far, what a cache
    holds would no longer be what a pass over the whole text computes. A cache must therefore know the length.
    """

    name = "dynamic-ntk"
    by_length = True

    factor: int | float
    original_length: int

    def __call__(self, inv_freq, *, dim, base, length):
        beyond = self.current_length(length) / self.original_length - 1  # 0 exactly up to L
        return _ntk(inv_freq, dim, 1 + self.factor * beyond, self.name), 1.0


@dataclass(frozen=True)
class NTKByParts(Extension):
    """Pairs with at least `beta` turns in training are kept, pairs with at most `alpha` are divided by s, and
    between the share that is kept grows linearly with the turns (Peng et al. 2024)."""

    name = "ntk-by-parts"
    turns = ("alpha", "beta")

    factor: int | float
    original_length: int
    alpha: int | float = 1
    beta: int | float = 32

    def __call__(self, inv_freq, *, dim, base, length):
        return _by_parts(inv_freq, self.factor, self.original_length, self.alpha, self.beta), 1.0


@dataclass(frozen=True)
class YaRN(Extension):
    """By parts, and queries and keys multiplied by 0.1 ln s + 1, which sharpens attention (Peng et al. 2024).

    Args:
        beta_fast, beta_slow: turns in training from which on a pair is kept, and up to which it is divided.
        ramp: the share kept in between is linear in the index of the pair ("dimension": the authors' code,
            and what the name means in practice) or in its turns ("rotations": the text of the paper). With
            "dimension", `beta_slow` must be below the turns of the fastest pair.
    """

    name = "yarn"
    turns = ("beta_slow", "beta_fast")

    factor: int | float
    original_length: int
    beta_fast: int | float = 32
    beta_slow: int | float = 1
    ramp: str = "dimension"

    def __post_init__(self) -> None:
        super().__post_init__()
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

        fastest = float(inv_freq[0])

        def pair(turns: int | float) -> float:
            """The index, not a whole number, at which a pair makes so many turns in training."""
            return dim * log(self.original_length * fastest / (2 * pi * turns)) / (2 * log(base))

        # Up to d - 1, although there are d/2 pairs: so does the authors' code.
        first = min(max(floor(pair(self.beta_fast)), 0), dim - 1)
        last = min(ceil(pair(self.beta_slow)), dim - 1)
        index = torch.arange(len(inv_freq), dtype=torch.float64, device=inv_freq.device)
        divided = ((index - first) / (last - first or 0.001)).clamp(0, 1)
        return torch.lerp(inv_freq, inv_freq / self.factor, divided), attention_factor


@dataclass(frozen=True)
class Llama3(Extension):
    """The rule of the later Llama 3 models: waves shorter than L/high are kept, those longer than L/low are
    divided by s; it is `NTKByParts` with `low` and `high` turns. It stands in the released code; the paper
    (Grattafiori et al. 2024) names the raised base alone."""

    name = "llama3"
    turns = ("low_freq_factor", "high_freq_factor")

    factor: int | float
    original_length: int
    low_freq_factor: int | float = 1
    high_freq_factor: int | float = 4

    def __call__(self, inv_freq, *, dim, base, length):
        low, high = self.low_freq_factor, self.high_freq_factor
        return _by_parts(inv_freq, self.factor, self.original_length, low, high), 1.0


@dataclass(frozen=True)
class LongRoPE(Extension):
    """A divisor above 0 for every pair, from a search (Ding et al. 2024): `short` where the text has at most
    L positions, else `long`; queries and keys are multiplied by sqrt(1 + ln s / ln L) in both cases. The
    length is that of the whole text, as in `DynamicNTK`."""

    name = "longrope"
    by_length = True

    short: tuple[int | float, ...]
    long: tuple[int | float, ...]
    factor: int | float
    original_length: int

    def __post_init__(self) -> None:
        super().__post_init__()
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
        divisors = self.short if self.current_length(length) == self.original_length else self.long
        divided = inv_freq / torch.tensor(divisors, dtype=torch.float64, device=inv_freq.device)
        return divided, sqrt(1 + log(self.factor) / log(self.original_length))


def check_extension(extension: object) -> None:
    """Raise unless `extension` is None or a context extension; a factor alone or a class is none."""
    if extension is not None and (isinstance(extension, type) or not callable(extension)):
        such = "a context extension such as PositionInterpolation(4.0)"
        raise TypeError(f"extension must be {such}, got {shown(extension)}")


def stretched(
    inv_freq: Float[Tensor, " n"],
    *,
    dim: int,
    base: int | float,
    extension: ContextExtension | None,
) -> tuple[Float[Tensor, " n"], float]:
    """Frequencies w_0 base^(-2m/dim) under a context extension (None leaves them), and the attention factor.

    For all waves but those of `RoPE`. These modules are not given the length of a text, so an extension that
    follows it is a ValueError.
    """
    check_extension(extension)
    if extension is None:
        return inv_freq, 1.0
    if getattr(extension, "by_length", False):
        name = getattr(extension, "name", type(extension).__name__)
        raise ValueError(
            f"the frequencies of {name} follow the length of each text, which works for RoPE only; give "
            f"the other waves of this model a fixed factor, such as PositionInterpolation(8.0)"
        )
    return extension(inv_freq, dim=dim, base=base, length=None)


EXTENSIONS: dict[str, type[Extension]] = {kind.name: kind for kind in Extension.__subclasses__()}


def build_extension(name: str, **options: object) -> Extension:
    """The extension that `Extension.resolved` describes, such as `name="yarn", factor=4.0, ...`. An unknown
    name or option and one that is missing are refused."""
    one_of("context extension", name, EXTENSIONS)
    known_options(name, EXTENSIONS[name], options)
    needed = [field.name for field in fields(EXTENSIONS[name]) if field.default is MISSING]
    if missing := [option for option in needed if option not in options]:
        raise TypeError(f"{name} needs {missing[0]}; give it")
    return EXTENSIONS[name](**{key: from_json(value) for key, value in options.items()})

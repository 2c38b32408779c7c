"""Context extensions by their equations, wave by wave, in Python's own floats."""

import math

from sepnb.encodings.context import Extension


def plain(dim: int, base: float) -> list[float]:
    """The frequencies of RoPE."""
    return [base ** (-2 * m / dim) for m in range(dim // 2)]


def slowed(extension: Extension, waves: list[float], dim: int, base: float, length: int = 1) -> list[float]:
    """Frequencies w_m = w_0 base^(-2m/dim) under an extension, in a text of this length."""
    name, given, last = extension.name, vars(extension), len(waves) - 1
    s, trained = given.get("factor"), given.get("original_length")

    def place(turns: float) -> float:
        """The m, not a whole number, at which a wave makes so many turns in the trained length."""
        return dim / 2 * math.log(trained * waves[0] / (2 * math.pi * turns), base)

    def by_parts(low: float, high: float) -> list[float]:
        turns = [trained * w / (2 * math.pi) for w in waves]
        kept = [min(max((t - low) / (high - low), 0), 1) for t in turns]
        return [(1 - share) * w / s + share * w for share, w in zip(kept, waves, strict=True)]

    if name == "position-interpolation":
        return [w / s for w in waves]
    if name == "raised-base":
        return [waves[0] * extension.base ** (-2 * m / dim) for m in range(len(waves))]
    if name == "ntk-aware":
        return [w * s ** (-m / last) for m, w in enumerate(waves)]
    if name == "dynamic-ntk":
        grown = s * max(length, trained) / trained - (s - 1)
        return [w * grown ** (-m / last) for m, w in enumerate(waves)]
    if name == "longrope":
        divisors = extension.short if length <= trained else extension.long
        return [w / divisor for w, divisor in zip(waves, divisors, strict=True)]
    if name == "ntk-by-parts":
        return by_parts(extension.alpha, extension.beta)
    if name == "llama3":
        return by_parts(extension.low_freq_factor, extension.high_freq_factor)
    if extension.ramp == "rotations":
        return by_parts(extension.beta_slow, extension.beta_fast)
    first = max(math.floor(place(extension.beta_fast)), 0)
    end = min(math.ceil(place(extension.beta_slow)), dim - 1)
    divided = [min(max((m - first) / (end - first or 0.001), 0), 1) for m in range(len(waves))]
    return [share * w / s + (1 - share) * w for share, w in zip(divided, waves, strict=True)]


def attention_factor(extension: Extension) -> float:
    """What multiplies queries and keys."""
    if extension.name == "yarn":
        return 0.1 * math.log(extension.factor) + 1
    if extension.name == "longrope":
        return math.sqrt(1 + math.log(extension.factor) / math.log(extension.original_length))
    return 1.0

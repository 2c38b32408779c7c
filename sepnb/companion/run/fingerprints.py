"""How a run begins, in numbers that can be computed again: whole where it ran, and small on any processor.

The first steps of a run of the gpu profile take a CPU minutes. Its record therefore holds a second, small
fingerprint: a few steps with small batches, not compiled, of the same model and schedule. On a device other
than its own, the record is replayed by the small fingerprint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

STEPS, BATCH = 2, 4
PREFIX = "small_"

Fingerprint = Mapping[str, Sequence[float]]


def small(config: Any) -> Any | None:
    """The config with batches of `BATCH` inputs at most in every training that it describes, and none of them
    compiled; None where it has no batches, so that its fingerprint is small already."""
    if not is_dataclass(config):
        return None
    less = _smaller(config)
    if hasattr(less, "batch_size"):  # of what is timed
        less = replace(less, batch_size=min(BATCH, less.batch_size))
    return None if less == config else less


def _smaller(value: Any) -> Any:
    from sepnb.training import TrainingConfig

    if isinstance(value, TrainingConfig):
        return replace(value, batch_size=min(BATCH, value.batch_size), compiler=None)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_smaller, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {field.name: _smaller(getattr(value, field.name)) for field in fields(value)}
    changed = {name: other for name, other in changed.items() if other != getattr(value, name)}
    return replace(value, **changed) if changed else value


def of_small(experiment: Any, config: Any, device: str) -> dict[str, list[float]]:
    """The small fingerprint of a run by the names that a record gives it; empty where none is needed."""
    if config.profile != "gpu" or (less := small(config)) is None:
        return {}
    found = experiment.fingerprint(less, device=device, steps=STEPS)
    return {f"{PREFIX}{name}": values for name, values in found.items()}


def part(fingerprint: Fingerprint, of_small: bool) -> dict[str, Sequence[float]]:
    """The small fingerprint of a record, or the whole one."""
    return {name: values for name, values in fingerprint.items() if name.startswith(PREFIX) == of_small}

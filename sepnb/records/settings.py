"""Settings of frozen descriptions in plain JSON types: what a record holds of its run, and what names it."""

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any


def without_defaults(settings: Mapping[str, Any], **later: Any) -> dict[str, Any]:
    """The settings, without those of `later` that have the value given there.

    A field that was added when records existed is left out at its default: the name of a record is a digest
    of its settings, and older records keep theirs.
    """
    return {key: value for key, value in settings.items() if key not in later or value != later[key]}


def plain(value: Any) -> Any:
    """The value in plain JSON types: as its own `resolved` says, else a dataclass field by field."""
    if hasattr(value, "resolved"):
        return value.resolved()
    if is_dataclass(value):
        return asdict(value)
    return [plain(part) for part in value] if isinstance(value, tuple | list) else value

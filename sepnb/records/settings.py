"""Settings of frozen descriptions in plain JSON types: what a record holds of its run, and what names it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any


def without_defaults(settings: Mapping[str, Any], **later: Any) -> dict[str, Any]:
    """The settings without those that equal their default in `later`.

    A field added after records existed is left out at its default: a record's name is a digest of its
    settings, and older records must keep their names.
    """
    return {key: value for key, value in settings.items() if key not in later or value != later[key]}


def plain(value: Any) -> Any:
    """The value in plain JSON types: as its own `resolved` says, else a dataclass field by field."""
    if hasattr(value, "resolved"):
        return value.resolved()
    if is_dataclass(value):
        return asdict(value)
    return [plain(part) for part in value] if isinstance(value, tuple | list) else value


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one dictionary, with dotted names."""
    items: dict[str, Any] = {}
    for key, value in settings.items():
        nested = isinstance(value, dict) and value
        items |= flattened(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return items


def other_settings(stored: Mapping[str, Any], declared: Mapping[str, Any]) -> str | None:
    """How a record's config differs from that of the grid's run of the same name, in words; None if equal.

    A fingerprint covers the first steps only, so it would not detect another number of steps.
    """
    declared = json.loads(json.dumps(declared))
    if stored == declared:
        return None
    there, own = flattened(stored), flattened(declared)
    names = [name for name in {**there, **own} if _value(there, name) != _value(own, name)]
    parted = [f"{name} is {_value(there, name)} there and {_value(own, name)} here" for name in names[:1]]
    more = f", and {len(names) - 1} more" if names[1:] else ""
    return f"its config is not that of the grid: {''.join(parted) or 'it is nested otherwise'}{more}"


def _value(settings: Mapping[str, Any], name: str) -> str:
    return repr(settings[name]) if name in settings else "absent"

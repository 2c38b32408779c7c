"""Settings of frozen descriptions in plain JSON types: what a record holds of its run, and what names it."""

import json
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


def flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one dictionary, with dotted names."""
    items: dict[str, Any] = {}
    for key, value in settings.items():
        nested = isinstance(value, dict) and value
        items |= flattened(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return items


def other_settings(stored: Mapping[str, Any], declared: Mapping[str, Any]) -> str | None:
    """Where the config of a record parts from that of the grid's run of its name, in words; None if nowhere.

    A fingerprint sees the first steps only: a record could name any number of steps.
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

"""Settings of frozen descriptions in plain JSON types: what a record holds of its run, and what names it."""

from collections.abc import Mapping
from typing import Any


def without_defaults(settings: Mapping[str, Any], **later: Any) -> dict[str, Any]:
    """The settings, without those of `later` that have the value given there.

    A field that was added when records existed is left out at its default: the name of a record is a digest
    of its settings, and older records keep theirs.
    """
    return {key: value for key, value in settings.items() if key not in later or value != later[key]}

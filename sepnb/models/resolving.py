"""A config as plain JSON types, and back, for records and for files of models.

An encoding is described by its name and options, not by its class, so one that inherits its name is read back
as its parent. Code that keeps a model compares what comes back with the original.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from .. import validation
from ..encodings import Encoding, build
from ..records.settings import without_defaults
from ..streams import Streams
from ..validation import shown


def resolved(config: Any) -> dict[str, Any]:
    """Every field of a `TransformerConfig`; those after `tie_embeddings` where they are not at their default.
    Streams are an object by name, or a list of pairs where their order is not that of their names, because a
    key is taken from objects with sorted names."""
    later = fields(config)[1 + [field.name for field in fields(config)].index("tie_embeddings") :]
    settings = without_defaults(vars(config), **{field.name: field.default for field in later})
    if "split" in settings:
        settings["split"] = sorted(config.splits)
    in_order = list(config.streams.names) == sorted(config.streams.names)
    settings["streams"] = config.streams.widths if in_order else [list(item) for item in config.streams.items]
    settings["encoding"] = [item.resolved() for item in config.encodings]
    return settings


def given(description: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `TransformerConfig`, which `description` is, from what `resolved` gave."""
    validation.instance("resolved", settings, Mapping, "config.resolved()")
    validation.known_options("a config", description, settings)
    for field in fields(description):
        if field.default is MISSING and field.name not in settings:
            raise ValueError(f"the config has no {field.name!r}; give all that config.resolved() tells")
    arguments = {**settings, "streams": _streams(settings["streams"])}
    if "encoding" in settings:
        arguments["encoding"] = _encodings(settings["encoding"])
    return arguments


def _streams(widths: Any) -> Streams:
    pairs = list(widths.items()) if isinstance(widths, Mapping) else widths
    if not isinstance(pairs, list) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise TypeError(f"streams are told as widths by name, or as pairs of both, got {shown(widths)}")
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"streams {shown(widths)} name one of them twice; give each name once")
    return Streams(**dict(pairs))


def _encodings(items: Any) -> Encoding | tuple[Encoding, ...]:
    if not isinstance(items, list) or not all(isinstance(one, Mapping) and "name" in one for one in items):
        raise TypeError(f"encodings are told as a list of names with their options, got {shown(items)}")
    built = tuple(build(**one) for one in items)
    return built[0] if len(built) == 1 else built

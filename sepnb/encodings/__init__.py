"""Position encodings: one file per family, one registry.

To add one: write a file of this folder with a reference function, a module and a frozen `Encoding` that has a
`name`. Every file here is imported, and a class enters the registry where it is defined: `names`, `build`,
every model, every table of encodings and the tests that all encodings share then know it. What is out of its
bounds is refused as `sepnb.validation` says.

Two methods often listed as encodings work with any encoding and have no file here. A *sliding window* is a
mask: `TransformerConfig(window=W)`. *Randomised positions* are a way to draw the positions of a training:
`sepnb.training.positions.RandomPositions`.
"""

from dataclasses import fields
from importlib import import_module
from pkgutil import iter_modules

from ..validation import WIDEST, known_options, named, option, shown, whole
from .alibi import ALiBi, alibi_bias, alibi_slopes
from .axial import AxialRoPE, apply_axial_rope, axial_rope_frequencies, grid_positions
from .base import (
    _REGISTRY,
    Encoding,
    Heads,
    InputModule,
    PairModule,
    QueryKeyModule,
    ScoreModule,
    Site,
    TermModule,
    ValueModule,
    from_json,
)
from .context import (
    DynamicNTK,
    Llama3,
    LongRoPE,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    YaRN,
    build_extension,
)
from .coordinates import MOST_AXES
from .cope import Cope, cope_positions, cope_scores
from .distance_aware import DistanceAware, distance_aware_gate, distance_aware_scores
from .fire import Fire, fire_bias, fire_ratio
from .forgetting import Forgetting, forgetting_bias
from .kerple import Kerple, kerple_bias
from .learned import Learned
from .none import NoEncoding
from .phase import Phase, phase_frequencies, phase_scores
from .rope import RoPE, apply_rope, rope_frequencies
from .sandwich import Sandwich, sandwich_bias
from .shaw import Shaw, shaw_output, shaw_scores
from .sinusoidal import Sinusoidal, base_of_longest_wave, grid_sinusoidal, sinusoidal
from .t5 import T5, t5_bias, t5_buckets
from .transformer_xl import TransformerXL, transformer_xl_scores
from .tupe import Tupe
from .xpos import XPos, apply_xpos, xpos_scales

_ELSEWHERE = {"seqpe": ("sepnb.seqpe.encoding", "SeqPE")}
"""Encodings that are made of models, and stand above them: the module and the class of each."""

for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")

__all__ = [
    "T5",
    "ALiBi",
    "AxialRoPE",
    "Cope",
    "DistanceAware",
    "DynamicNTK",
    "Encoding",
    "Fire",
    "Forgetting",
    "Heads",
    "InputModule",
    "Kerple",
    "Learned",
    "Llama3",
    "LongRoPE",
    "NTKAware",
    "NTKByParts",
    "NoEncoding",
    "PairModule",
    "Phase",
    "PositionInterpolation",
    "QueryKeyModule",
    "RaisedBase",
    "RoPE",
    "Sandwich",
    "ScoreModule",
    "Shaw",
    "Sinusoidal",
    "Site",
    "TermModule",
    "TransformerXL",
    "Tupe",
    "ValueModule",
    "XPos",
    "YaRN",
    "alibi_bias",
    "alibi_slopes",
    "apply_axial_rope",
    "apply_rope",
    "apply_xpos",
    "axial_rope_frequencies",
    "base_of_longest_wave",
    "build",
    "build_extension",
    "cope_positions",
    "cope_scores",
    "distance_aware_gate",
    "distance_aware_scores",
    "fire_bias",
    "fire_ratio",
    "forgetting_bias",
    "grid_positions",
    "grid_sinusoidal",
    "how_on_axes",
    "kerple_bias",
    "names",
    "on_axes",
    "phase_frequencies",
    "phase_scores",
    "rope_frequencies",
    "sandwich_bias",
    "shaw_output",
    "shaw_scores",
    "sinusoidal",
    "t5_bias",
    "t5_buckets",
    "transformer_xl_scores",
    "xpos_scales",
]


def names(axes: int | None = None) -> list[str]:
    """The names that `build` knows, sorted by `Encoding.order` and then by name, as in tables. With `axes`, 1
    to `MOST_AXES`, only those that take positions of so many coordinates when built without options. Context
    extensions have names of their own, see `build_extension`."""
    if axes is not None:
        whole("axes", axes, 1, MOST_AXES)
    for name in _ELSEWHERE:
        _of(name)
    known = sorted(_REGISTRY, key=lambda name: (_REGISTRY[name].order, name))
    return known if axes is None else [name for name in known if how_on_axes(name, axes) == name]


def build(name: str, **options: object) -> Encoding:
    """The encoding of this name, e.g. `build("rope", base=500_000.0)`. Options may be in the JSON form of
    `Encoding.resolved`: a list for a tuple, an extension by its settings."""
    encoding = _of(name) if isinstance(name, str) else None
    if encoding is None:  # only then all of them are asked, since that imports models
        named("encoding", name, dict.fromkeys(names()), "; give several as a tuple")
    known_options(name, encoding, options)
    if isinstance(extension := options.get("extension"), dict):
        if not isinstance(extension.get("name"), str):
            raise TypeError(f"an extension must be a dict with its name and options, got {shown(extension)}")
        options["extension"] = build_extension(**extension)
    options = {key: from_json(value) for key, value in options.items()}
    for field in fields(encoding):
        if field.name in options:
            option(field.name, options[field.name], field.type)
    return encoding(**options)


def _of(name: str) -> type[Encoding] | None:
    """The class of this name; one that stands elsewhere is imported now."""
    if name in _ELSEWHERE:
        module, kind = _ELSEWHERE[name]
        _REGISTRY.setdefault(name, getattr(import_module(module), kind))
    return _REGISTRY.get(name)


def on_axes(name: str, axes: int, side: int = 8) -> Encoding | None:
    """The encoding of this name for positions of so many coordinates, built with no more options than that
    takes; a table holds a grid of `side` rows and columns. None where there is no such encoding."""
    whole("axes", axes, 1, MOST_AXES)
    whole("side", side, 1, WIDEST)
    known = {field.name for field in fields(build(name))}
    for options in ({}, {"dims": axes}, {"grid": (side,) * axes}):
        if options.keys() <= known:
            try:
                encoding = build(name, **options)
            except ValueError:  # it has the option, and not for so many
                continue
            if encoding.axes is None or axes in encoding.axes:
                return encoding
    return None


def how_on_axes(name: str, axes: int) -> str | None:
    """The name of the encoding, with the option by which it takes positions of so many coordinates if it
    needs one, such as "sinusoidal (dims=2)"; None if it takes none."""
    encoding = on_axes(name, axes)
    if encoding is None or encoding == build(name):
        return None if encoding is None else name
    return f"{name} (grid=...)" if getattr(encoding, "grid", None) is not None else f"{name} (dims={axes})"

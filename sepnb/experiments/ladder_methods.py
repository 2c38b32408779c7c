"""Models whose position has from none to all of what a head compares, each one change from the one before."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..encodings import Forgetting, Heads, RoPE
from ..encodings.base import Extendable
from ..encodings.context import Extension
from ..models import TransformerConfig
from . import language_modelling as lm
from .ablation import FULL
from .encoding_methods import METHODS as ENCODED
from .methods import EQUAL, SPINE, Method, listed, model_config, part_for_position
from .readings import CHOSEN_AT, WAYS


def _turned(what: str, says: str, **options: Any) -> Method:
    return Method(f"rope-{what}", says, "rope", {"encoding": RoPE(**options)})


def _wide(what: str, parts: int, sixteenths: int) -> Method:
    """A separated model with one part in `parts` for position, so much wider than the dense one."""
    streams = part_for_position(parts, lambda size: size.width * sixteenths // 16)
    return Method(f"{FULL}-{what}-wide", EQUAL, f"{FULL}-{what}", {"streams": streams})


METHODS: dict[str, Method] = listed(
    SPINE["none"],
    _turned("16th", "a sixteenth of the columns rotated", partial=1 / 16),
    _turned("8th", "an eighth of the columns rotated", partial=1 / 8),
    ENCODED["rope-partial"],
    _turned("half", "half of the columns rotated", partial=1 / 2),
    SPINE["rope"],
    Method("p-rope-quarter", "the fastest quarter of the pairs rotated", "rope", {"encoding": RoPE(p=1 / 4)}),
    Method(
        "rope-shared-key",
        "the rotated columns have one key for all heads",
        "rope-partial",
        {"encoding": RoPE(partial=1 / 4, shared=True)},
    ),
    Method("rope-nope-2", "every second layer without position", "rope", {"nope_every": 2}),
    Method("rope-nope-4", "every fourth layer without position", "rope", {"nope_every": 4}),
    Method("forgetting", "forget gates, no position", "none", {"encoding": "forgetting"}),
    _wide("pos-16th", 16, 17),
    _wide("pos-8th", 8, 18),
    SPINE[f"{FULL}-wide"],
    _wide("pos-half", 2, 22),
)
"""In the order of tables. `-wide` has about as many block parameters as the dense model (within 5 %, but for
smoke); the model whose heads share a key has fewer, by what they share."""


def waves_of(config: TransformerConfig) -> list[Extendable]:
    """The rotations or forget gates of a model, and the sinusoid at its input, of the position stream if it
    has one.

    Raises:
        ValueError: a share of a head that is no whole pairs.
    """
    heads, kinds = Heads(width=config.head_width), (RoPE, Forgetting)
    made = [e.at_query_key(heads) for e in config.encodings if isinstance(e, kinds)]
    streams = [config.streams.widths[name] for name in config.position_streams or config.streams.names]
    return made + [e.at_input(width, config.max_length) for e in config.input_encodings for width in streams]


@cache
def fits(method: str, profile: str) -> bool:
    """Whether there is such a model at the size of a profile: its share of a head is whole pairs, and it has
    the layers that it leaves without position."""
    try:
        waves_of(model_config(method, lm.SIZES[profile]))
    except ValueError:
        return False
    return True


def fitting(profile: str, methods: Sequence[str]) -> list[str]:
    """The methods that there are at the size of a profile."""
    return [name for name in methods if fits(name, profile)]


@cache
def readings_of(config: TransformerConfig) -> tuple[str, ...]:
    """The ways in which the positions of a model can be slowed down: none without waves or gates, for gates
    those that slow all positions alike, and for a single pair those that do not leave the first pair
    unchanged."""
    waves = waves_of(config)

    def follow(make: Callable[[int, int], Extension]) -> bool:
        try:
            for module in waves:
                module.extend(make(CHOSEN_AT, config.max_length))
        except ValueError:
            return False
        return bool(waves)

    return tuple(name for name, (make, _) in WAYS.items() if follow(make))

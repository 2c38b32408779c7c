"""Methods: models and their trainings with names that are unique in the whole book, each a change of another.

A method differs from its base in the fields that it declares, so that a difference between the two is what
these fields do. To add one, write a `Method` into the list of its experiment (`listed` refuses a name that
another method has).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ..models import TransformerConfig
from ..streams import Streams
from ..training.config import TrainingConfig
from ..validation import named
from . import language_modelling as lm
from .run import Run

POS_SHARE = 4
"""d_pos is one part in this many of the width: a whole number of heads at every size."""


@dataclass(frozen=True)
class Method:
    """A base and what is changed.

    Args:
        name: unique among the methods of positions with as many axes.
        says: what is changed, in a few words; of a method without a base, what it is.
        base: the name of the method that is changed; None for a method that stands as it is.
        model, training: the fields of the two configs that are replaced, each by a value or, where it depends
            on the size, by a function of it.
    """

    name: str
    says: str
    base: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


_BOOK: defaultdict[int, dict[str, Method]] = defaultdict(dict)
"""By the number of axes, and by name."""


def listed(*methods: Method, axes: int = 1) -> dict[str, Method]:
    """These methods by name, in this order; they are in the book from now on.

    Args:
        methods: of positions of one kind.
        axes: coordinates of a position: 1 in texts, 2 in images; 0, those of an encoder without a model. A
            name that occurs with several is the form of one method for them.

    Raises:
        ValueError: two methods of one name, or a base that is in no list before.
    """
    book = _BOOK[axes]
    for one in methods:
        if book.setdefault(one.name, one) is not one:
            raise ValueError(
                f"two methods are called {one.name!r}; a name is unique, give one of them another"
            )
        if one.base is not None and one.base not in book:
            raise ValueError(f"the base {one.base!r} of {one.name!r} is no method; list it before")
    return {one.name: one for one in methods}


def get(name: str, axes: int = 1) -> Method:
    """The method of this name.

    Raises:
        ValueError: an unknown name, answered with near matches, here and in all functions below.
    """
    return named("method", name, _BOOK[axes])


def series(name: str, axes: int = 1) -> list[Method]:
    """The method, its base, the base of that, and so on."""
    method = get(name, axes)
    return [method] if method.base is None else [method, *series(method.base, axes)]


Model = TypeVar("Model", TransformerConfig, TrainingConfig)


def changed(config: Model, part: str, name: str, size: Any, axes: int = 1) -> Model:
    """The config of a bare model or training with what the series of a method declares, at a size.

    Args:
        part: "model" or "training".
    """
    for method in reversed(series(name, axes)):
        fields = getattr(method, part).items()
        values = {key: value(size) if callable(value) else value for key, value in fields}
        config = replace(config, **values)
    return config


@cache
def model_config(name: str, size: lm.ModelSize = lm.SIZES["smoke"]) -> TransformerConfig:
    """The model of a method at a size: a dense one without an encoding, with what its series declares."""
    dense = Streams.dense(size.width)
    bare = TransformerConfig(dense, size.n_layers, size.n_heads, "none", max_length=size.length)
    return changed(bare, "model", name, size)


def run_of(
    experiment: str,
    profile: str,
    name: str,
    seed: int,
    rate: float,
    steps: int | None = None,
    *,
    sizes: Mapping[str, lm.Size] = lm.SIZES,
) -> Run:
    """The run of a method on a text at the size of its profile, over the whole schedule or over `steps`; its
    text is scored in windows of that size, whatever it is trained on."""
    size = sizes[profile]
    training = TrainingConfig(
        steps or size.steps,
        size.batch_size,
        size.length,
        rate,
        precision=size.precision,
        compiler=size.compiler,
    )
    training = changed(training, "training", name, size)
    data = replace(size.text, window=size.length)
    return Run(experiment, profile, name, seed, model_config(name, size), training, data)


class Facets(NamedTuple):
    """What a method is, read off its model and its training and never off its name.

    Fields: `streams`, "dense", "concatenated" (columns for position, and nothing split), "separated" or
    "strict"; the names of the encodings; `positions`, "text" where training has those of the text, else the
    sampler; `score`, what is unusual in what heads read, in what becomes of the position embedding, in what
    is split, in how large content is drawn; `size`, "long" where it is trained on longer texts, "own" where
    its width or the share of position is, else ""; and the unusual options, but for those that follow from
    the width.
    """

    streams: str
    encoding: tuple[str, ...]
    positions: str
    score: tuple[str, ...]
    size: str
    options: tuple[str, ...]


OF_SCORE = ("query_key", "pos_stream", "norm", "split", "readout", "nope_every", "embedding_std")
"""The fields of a model that this facet tells."""


@cache
def facets(name: str) -> Facets:
    """The facets of a method of texts, at the size of a laptop."""
    size = lm.SIZES["laptop"]
    run = run_of("facets", "laptop", name, 0, 1e-3)
    model, training = run.model, run.training
    usual = model.streams in (Streams.dense(size.width), QUARTER(size))
    nothing_split = model.split is not None and not model.split
    known = {"split", "readout"} if nothing_split and model.readout == "both" else set()
    kinds = (*model.encodings, training.positions, training.auxiliary)
    return Facets(
        streams="dense" if not model.separated else "concatenated" if nothing_split else model.mode,
        encoding=tuple(one.name for one in model.encodings),
        positions="text" if training.positions is None else training.positions.name,
        score=tuple(_unusual(model, *(key for key in OF_SCORE if key not in known))),
        size="long" if training.length != size.length else "" if usual else "own",
        options=tuple(option for one in kinds if one is not None for option in _unusual(one)),
    )


def _unusual(one: Any, *names: str) -> list[str]:
    """What of a config is not its default, of these fields or of all. The heads of a loss, and a base that is
    no whole number, that of a short period, follow from the columns that position has."""
    changed = []
    for each in fields(one):
        value = getattr(one, each.name)
        if each.name != "n_heads" and (not names or each.name in names) and value != each.default:
            told = "short" if each.name == "base" and value % 1 else value
            changed.append(f"{type(one).__name__}.{each.name}={told}")
    return changed


def twin(name: str, streams: str = "dense") -> str:
    """The method that differs from this one only in its streams; widths may differ.

    Raises:
        ValueError: there is none.
    """
    of = facets(name)
    wanted = of._replace(streams=streams, size="")
    if of.size != "long":
        for one in _BOOK[1]:
            if one != name and facets(one) == wanted:
                return one
    raise ValueError(f"{name!r} has no twin that is {streams}: none differs from it in its streams alone")


def part_for_position(
    parts: int, width: Callable[[lm.ModelSize], int] = attrgetter("width")
) -> Callable[[lm.ModelSize], Streams]:
    """Streams in which position has one part in `parts` of a width, by default that of the size."""

    def streams(size: lm.ModelSize) -> Streams:
        whole = width(size)
        return Streams(pos=whole // parts, sem=whole - whole // parts)

    return streams


QUARTER, WIDE = part_for_position(POS_SHARE), part_for_position(POS_SHARE, attrgetter("wide"))
EQUAL = "as many parameters as dense"


SPINE = listed(
    Method("sinusoidal", "dense, sinusoid added", None, {"encoding": "sinusoidal"}),
    Method("none", "no encoding", "sinusoidal", {"encoding": "none"}),
    Method("learned", "dense, learned table added", None, {"encoding": "learned"}),
    Method("rope", "RoPE", "sinusoidal", {"encoding": "rope"}),
    Method("alibi", "ALiBi", "sinusoidal", {"encoding": "alibi"}),
    *(
        Method(f"separated-{name}", f"separated, {table}", None, {"streams": QUARTER, "encoding": name})
        for name, table in (("sinusoidal", "sinusoid"), ("learned", "learned table"))
    ),
    *(
        Method(f"separated-{name}-wide", EQUAL, f"separated-{name}", {"streams": WIDE})
        for name in ("sinusoidal", "learned")
    ),
    *(
        Method(f"strict-{name}", "position heads read position only", f"separated-{name}", {"mode": "strict"})
        for name in ("sinusoidal", "learned")
    ),
)
"""What every comparison of texts begins with. `separated-` gives a quarter of the width to position, and
`strict-` does the same with a pos stream that never reads the text; `-wide` is the separated model with about
as many parameters as the dense one (within 5 % in the blocks), without the suffix it has the same width."""

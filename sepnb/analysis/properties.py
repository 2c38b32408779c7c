"""The properties that a good position encoding is said to have, each put to a small numeric probe.

The lecture notes ask for a code that is unique for each position, in a linear relation with that of any other
position, defined for longer sequences, generated deterministically, and open to n dimensions. A code is what
an encoding itself computes from a position, or from a distance if it knows no position, without content and
with untrained parameters. How a trained model uses codes past its trained length, only records answer.

    unique           in the window of L positions no two codes coincide
    linear           one affine map takes the code of every position to that of the next, p + 1
    distinct beyond  up to 4 L there are codes, all of them finite, and none coincides with another
    deterministic    built twice, whatever the state of the random generator, it gives the same codes
    dimensions       a model of two coordinates tells points apart that differ in one of them

Of an extrapolator the last one asks whether it continues the table of such a model.
"""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from .. import encodings, extrapolators
from ..models import LanguageModel, TransformerConfig
from ..streams import Streams
from ..validation import whole
from .inventory import tells_points_apart

OF_CODES = ("unique", "linear", "distinct beyond", "deterministic")
PROPERTIES = (*OF_CODES, "dimensions")
COLUMNS = 4
"""Of the codes of encodings: few beside the positions of a window, or an affine map could fit anything."""
BEYOND = 4
"""Codes are looked at up to this many windows."""
SAME = 1e-6
"""Codes nearer than this, in units of the median step between neighbours, coincide; and an affine map that
misses by no more, in units of the spread of the codes, is exact."""

Code = Callable[[Tensor], Tensor]
"""Positions or distances int `[N]` to codes `[N, columns]` in float64."""


class Coded(NamedTuple):
    says: str
    """What the code is, in a few words."""
    code: Code


def code_of(name: str, width: int, length: int) -> Coded | None:
    """The codes of an encoding as a model of this width and trained length would have them: of absolute
    positions, or of distances into the past. None where there are none: no encoding, or positions that the
    text counts.

    Raises:
        ValueError: an unknown name, or a width that the encoding refuses.
    """
    encoding = encodings.build(name).for_length(length)

    def point(at: Tensor) -> Tensor:
        """A position as the encoding takes it: an index, or where it takes none a point of the diagonal."""
        indices = encoding.axes is None or 1 in encoding.axes
        return at if indices else at[:, None].expand(-1, encoding.axes[0])

    if (own := encoding.code(width, length)) is not None:
        return Coded(*own)
    if encoding.counts_tokens:
        return None
    if (module := encoding.at_input(width, length)) is not None:

        def vector(at: Tensor) -> Tensor:
            if module.limit is not None and (highest := int(at.max())) >= module.limit:
                raise ValueError(f"position {highest} has no row in a table of {module.limit}")
            return module(at)

        return Coded("position: the vector at the input", vector)
    heads = encodings.Heads(width=width, content_width=width, max_length=length)
    turned = encoding.at_query_key(heads)
    if isinstance(turned, encodings.QueryKeyModule):

        def rotation(at: Tensor) -> Tensor:
            pair = turned.prepare(point(at), point(at))[0]
            return torch.cat([part.flatten(1) for part in pair], dim=-1)

        return Coded("position: sines and cosines that turn queries and keys", rotation)
    if isinstance(turned, encodings.TermModule):
        said = "position: waves, which content gives phase and size"
        return Coded(said, lambda at: turned.prepare(at, at)[0][0].flatten(1))
    if not isinstance(encoding.at_score(encodings.Heads()), encodings.ScoreModule):
        return None
    # At the last query, for keys before it. A key at 0 and queries after it would divide the distance by
    # itself, where an encoding divides by the query.
    bias, query = encoding.at_score(encodings.Heads(count=width)), torch.tensor([BEYOND * length - 1])
    return Coded("distance: the bias of each head", lambda at: bias(query, query - at)[..., 0, :].T)


def nearest(codes: Tensor) -> float:
    """How near the two nearest codes are, in units of the median step between neighbours; 0 if most
    neighbours coincide."""
    step = float(codes.diff(dim=0).norm(dim=1).median())
    return float(torch.pdist(codes).min()) / step if step > 0 else 0.0


def affine_residual(codes: Tensor) -> float:
    """What the best affine map from each code to the next leaves, in units of the spread of the codes."""
    ones = torch.ones(len(codes) - 1, 1, dtype=codes.dtype)
    given, wanted = torch.cat([codes[:-1], ones], dim=1), codes[1:]
    found = torch.linalg.lstsq(given, wanted, driver="gelsd").solution
    return float((given @ found - wanted).norm() / (wanted - wanted.mean(0)).norm().clamp(min=1e-300))


def _codes(code: Code, positions: Tensor) -> Tensor | None:
    """In float64; None where the code refuses a position, or gives one that is not finite."""
    try:
        found = code(positions).detach().to(torch.float64)
    except ValueError:
        return None
    return found if bool(found.isfinite().all()) else None


def probe(build: Callable[[], Code], length: int) -> dict[str, float | bool]:
    """The verdicts of `OF_CODES` on a code and what was measured for them.

    Args:
        build: makes the code anew, with whatever is drawn at random.
        length: L, the positions of the window; at least 8.

    Raises:
        ValueError: a length below 8, or a code that is not defined in its window.
    """
    whole("length", length, 8, needs="a window of at least 8 positions is needed to see a relation")
    at = torch.arange(BEYOND * length)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        code = build()
        torch.manual_seed(1)
        again = _codes(build(), at[:length])
    window, beyond = _codes(code, at[:length]), _codes(code, at)
    if window is None:
        raise ValueError(f"the code is not defined at the {length} positions of its window")
    apart, apart_beyond = nearest(window), 0.0 if beyond is None else nearest(beyond)
    residual = affine_residual(window if beyond is None else beyond)
    return {
        "unique": apart > SAME,
        "linear": residual < SAME,
        "distinct beyond": apart_beyond > SAME,
        "deterministic": again is not None and torch.equal(window, again),
        "nearest": apart,
        "residual": residual,
        "nearest_beyond": apart_beyond,
    }


def continues_grids(method: str) -> bool:
    """Whether an extrapolator takes a model of two coordinates, with a table of a grid at the input."""
    encoding = encodings.on_axes("learned", 2, side=4)
    model = LanguageModel(TransformerConfig(Streams.dense(8), 1, 2, encoding, max_length=4, axes=2), 2)
    try:
        model.extended(extrapolator=method)
    except ValueError:  # it continues a table of indices, and says so
        return False
    return True


def properties(table: Tensor, methods: tuple[str, ...] = extrapolators.SOURCE_METHODS) -> pd.DataFrame:
    """Encodings and extrapolators against `PROPERTIES`: a row each, with what its code is in a few words,
    verdicts, and what was measured.

    Args:
        table: `[L, d_pos]`, the learned table that the extrapolators continue. Of encodings its length is the
            window, and `COLUMNS` their width.
        methods: of the extrapolators, some of `sepnb.extrapolators.METHODS`.

    Raises:
        ValueError, TypeError: of `probe`, and for a malformed table.
    """
    extrapolators.base.check_table(table)
    length = len(table)
    rows = []
    with torch.random.fork_rng(devices=[]):
        for name in encodings.names():
            if (coded := code_of(name, COLUMNS, length)) is None:
                continue
            found = probe(lambda name=name: code_of(name, COLUMNS, length).code, length)
            about = {"kind": "encoding", "name": name, "embedding": coded.says}
            rows.append(about | found | {"dimensions": tells_points_apart(name)})
        for name in methods:
            found = probe(
                lambda name=name: extrapolators.Continuation(table, extrapolators.build(name)), length
            )
            about = {"kind": "extrapolator", "name": name, "embedding": "position: the row that it gives"}
            rows.append(about | found | {"dimensions": continues_grids(name)})
    return pd.DataFrame(rows)

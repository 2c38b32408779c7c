"""How much of a trained model the experiment `inside` looks at, on which text, and under which rules.

Half of the test documents fit the probes, the other half score them, so that no document is on both sides. A
text that starts elsewhere is the same bytes at other indices: its length is not new, nor is any distance in
it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..data import text
from ..extrapolators import SOURCE_METHODS
from ..models import LanguageModel

NATIVE = "native"
"""The encoding's own rule for every position."""

RULES = {
    "learned": (*SOURCE_METHODS, "clamp", "wrap"),
    "sinusoidal": (NATIVE, "clamp"),
}
"""What stands for positions from the trained length on, by encoding; the native rule where none is named."""

FAR = (2, 4, 8)
"""Texts of L/2 bytes lie wholly past the trained length, their middle at these multiples of it: a rule that
repeats after L then jumps in the middle of the text."""

SHOWN = 4
"""Of these, the one at which every layer is looked at."""


@dataclass(frozen=True)
class Inspection:
    """How much a run looks at.

    Args:
        length: the trained length L.
        documents: of the test text, the first that are long enough.
        windows: windows of L bytes of each, for probes and variances.
        texts: texts of L/2 bytes of each, which start at several indices, and texts of 2L bytes.
        leak_texts, leak_tokens: texts at which a Jacobian is taken, and their length.
        path_points: positions at which trajectories are kept.
        fit_steps: of the perceptron of equation (5).
    """

    length: int
    documents: int
    windows: int
    texts: int
    leak_texts: int
    leak_tokens: int
    path_points: int
    fit_steps: int

    @property
    def starts(self) -> tuple[int, ...]:
        """Where a text of L/2 bytes may start with every index trained; it is compared with itself at 0."""
        return (self.length // 4, self.length // 2)

    @property
    def far_starts(self) -> tuple[int, ...]:
        return tuple(times * self.length - self.length // 4 for times in FAR)

    @property
    def shown_starts(self) -> tuple[int, int]:
        """A trained and a far start at which every layer is looked at."""
        return self.starts[-1], self.far_starts[FAR.index(SHOWN)]


class Sample(NamedTuple):
    """What a run reads: tokens `[n, .]` to fit on and to score on, short texts `[n, L/2 + 1]`, long ones."""

    fit: Tensor
    scored: Tensor
    short: Tensor
    long: Tensor


def sample(held_out: text.Text, inspection: Inspection) -> Sample:
    """Cut the sample out of a held-out text; even documents fit, odd ones are scored.

    Raises:
        ValueError: too few documents are long enough.
    """
    length, wanted = inspection.length, inspection.documents
    each = max(inspection.windows, 2 * inspection.texts)
    cut = text.windows(held_out, length=length, per_document=each * length)
    documents, counts = np.unique(cut.document, return_counts=True)
    documents = documents[counts == each][:wanted]
    if len(documents) < wanted:
        raise ValueError(
            f"{len(documents)} documents of {held_out.name} hold {each} windows of {length} bytes; "
            f"{wanted} are needed: lower documents, windows or texts"
        )
    place = cut.start // length
    rank = np.searchsorted(documents, cut.document)
    chosen = np.isin(cut.document, documents)
    near, odd = chosen & (place < inspection.windows), rank % 2 == 1
    few = chosen & (place < inspection.texts)
    pairs = text.windows(held_out, length=2 * length, per_document=inspection.texts * 2 * length)
    long = np.isin(pairs.document, documents[1::2])
    return Sample(
        torch.from_numpy(cut.tokens[near & ~odd][:, :length]),
        torch.from_numpy(cut.tokens[near & odd][:, :length]),
        torch.from_numpy(cut.tokens[few][:, : length // 2 + 1]),
        torch.from_numpy(pairs.tokens[long][:, : 2 * length]),
    )


def rules(model: LanguageModel, inspection: Inspection) -> dict[str, LanguageModel]:
    """The model under each rule past its trained length."""
    (encoding,) = model.config.encodings
    options = {"learned": {"steps": inspection.fit_steps}}
    return {
        name: model if name == NATIVE else model.extended(name, **options.get(name, {}))
        for name in RULES.get(encoding.name, (NATIVE,))
    }

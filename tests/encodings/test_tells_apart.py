"""What an encoding says of itself, whether it hears an index and from where distances are alike, is so."""

from math import inf

import pytest
import torch

from sepnb import encodings
from sepnb.experiments.encoding_methods import METHODS
from sepnb.experiments.methods import run_of
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.seqpe import SeqPE
from sepnb.streams import Streams

from .drawn import F64, loud

SAME = 1e-9

OF_METHODS = {
    name: run_of("x", "smoke", name, 1, 1e-3).model.encodings[0]
    for name, method in METHODS.items()
    if "positions" not in method.training
}
ENCODINGS = {name: encodings.build(name) for name in encodings.names(axes=1)} | OF_METHODS
ENCODINGS |= {
    "seqpe at the input": SeqPE(site="input"),
    "t5 of both directions": encodings.T5(n_buckets=8, max_distance=20, bidirectional=True),
    "shaw of itself": encodings.Shaw(clip=0),
}
FINITE = [
    name
    for name, encoding in ENCODINGS.items()
    if 0 < encoding.saturates_at < inf and not encoding.counts_tokens
]


def logits(encoding: encodings.Encoding, positions: list[int]) -> torch.Tensor:
    """Of the last of these positions, in a model with every parameter large enough to matter."""
    torch.manual_seed(0)
    config = TransformerConfig(Streams.dense(32), 2, 4, encoding, max_length=128)
    model = loud(LanguageModel(config, 11).to(F64), std=0.5)
    with torch.no_grad():
        return model(torch.arange(len(positions))[None] * 3 % 11, torch.tensor(positions))[0, -1]


def changes(encoding: encodings.Encoding, one: list[int], other: list[int]) -> bool:
    apart = (logits(encoding, one) - logits(encoding, other)).abs().max()
    assert apart < SAME or apart > 1e-6, "neither the same nor different"
    return bool(apart > 1e-6)


@pytest.mark.parametrize("name", ENCODINGS)
def test_an_encoding_that_reads_the_index_and_no_other_hears_where_a_text_starts(name):
    """FIRE hears it from its threshold on, which all of these positions have passed."""
    near, far = [40, 41, 43], [90, 91, 93]
    if ENCODINGS[name].counts_tokens:
        near, far = [40, 41, 42], [90, 91, 92]
    reads = ENCODINGS[name].reads_index
    found = "nothing" if reads else "what it gives"
    why = f"{name} has reads_index = {reads}, and where a text starts changes {found}"
    assert changes(ENCODINGS[name], near, far) is reads, why


@pytest.mark.parametrize("name", FINITE)
def test_distances_are_told_apart_up_to_where_they_saturate_and_not_beyond(name):
    at = ENCODINGS[name].saturates_at
    said = f"{name} has saturates_at = {at}, the distance from which on all are encoded alike, and"
    assert changes(ENCODINGS[name], [0, at - 1], [0, at]), f"{said} does not tell {at - 1} from {at}"
    for beyond in (at + 1, at + 7, 4 * at):
        assert not changes(ENCODINGS[name], [0, at], [0, beyond]), f"{said} tells {beyond} from {at}"


@pytest.mark.parametrize(
    "name", [name for name, e in ENCODINGS.items() if e.saturates_at == inf and not e.counts_tokens]
)
def test_distances_that_never_saturate_are_told_apart_further_out(name):
    """The key is not at 0: there FIRE measures every distance against itself."""
    why = f"{name} has saturates_at = inf, and does not tell distance 40 from 44: say from where on"
    assert changes(ENCODINGS[name], [50, 90], [50, 94]), why


@pytest.mark.parametrize(
    "name", [name for name, e in ENCODINGS.items() if e.saturates_at == 0 and not e.reads_index]
)
def test_an_encoding_without_distances_hears_none(name):
    why = f"{name} has saturates_at = 0, and tells distances apart: say from where on it does not, or inf"
    assert not changes(ENCODINGS[name], [0, 1, 2], [0, 30, 90]), why

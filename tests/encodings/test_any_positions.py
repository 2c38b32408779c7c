"""Positions drawn up to a million, gaps among them: what every encoding keeps, also in a bfloat16 model.

bfloat16 holds integers up to 256. An encoding whose positions were rounded to it answers for other positions:
the bound of the test is far below what that fault does, and another test says so for every encoding.
"""

from functools import cache
from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sepnb import encodings
from sepnb.encodings import Encoding
from sepnb.encodings.xpos import ROOM
from sepnb.models import LanguageModel

from .cases import LENGTH, NAMES, ON_TEXTS, model, tokens

N, HIGHEST, TABLE = 6, 10**6, 4096
BOUND = 0.05
"""Of the mean distance of logits, in units of their spread: other positions move them by more, and arithmetic
in bfloat16 by less than half of it."""
LARGER = {
    ".averaging.": 6,
    ".score_encodings.": 6,
    ".input_encodings.0.embeddings.encoder.output.": 8,
    ".encoder.output.": 2,
    ".encoder.digit.": 3,
}
"""Parameters of encodings that are drawn so many times larger, or the logits would hardly hear a position."""
EARLY = torch.tensor([0, 2, 3, 5, 6])
RELATIVE = [name for name in NAMES if not encodings.build(name).reads_index]


def highest(encoding: Encoding) -> int:
    """The last position that it takes, of those up to a million."""
    if encoding.name == "learned":
        return TABLE - 1
    return encoding.base**encoding.digits - 1 if encoding.name == "seqpe" else HIGHEST


def widest(encoding: Encoding) -> int:
    """The largest distance of two keys that it takes in a bfloat16 model."""
    if encoding.name != "xpos":
        return HIGHEST
    pairs = log(torch.finfo(torch.bfloat16).max / ROOM) / log((1 + encoding.gamma) / encoding.gamma)
    return int(2 * encoding.scale_base * pairs)


@pytest.mark.parametrize("name", NAMES)
def test_positions_of_any_integer_type_are_the_same_positions(name, unhooked):
    """In unsigned ones a key before its query would be far ahead of it."""
    made = model(ON_TEXTS[name], max_length=LENGTH)
    at = torch.arange(LENGTH) if made.config.encodings and made.config.encodings[0].counts_tokens else EARLY
    text = tokens(2, len(at))
    with torch.no_grad():
        expected = made(text, at)
        for kind in (torch.uint8, torch.int16, torch.int32):
            assert torch.equal(made(text, at.to(kind)), expected), kind


@cache
def pair(name: str) -> tuple[LanguageModel, LanguageModel]:
    """A bfloat16 model, and the same weights in float64."""
    encoding = ON_TEXTS[name]
    length = TABLE if encoding.name == "learned" else LENGTH
    narrow, wide = (model(encoding, max_length=length) for _ in range(2))
    for made in (narrow, wide):
        with torch.no_grad():
            for key, parameter in made.named_parameters():
                parameter.mul_(next((times for part, times in LARGER.items() if part in key), 1))
        made.to(torch.bfloat16)
    return narrow.eval(), wide.double().eval()


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.double() - other).abs().mean() / other.std())


def ascending(encoding: Encoding) -> st.SearchStrategy[torch.Tensor]:
    """`N` positions that the encoding takes, from anywhere, with gaps of every size."""
    top = highest(encoding)
    return _ascending(top, min(top, widest(encoding)), encoding.counts_tokens)


@st.composite
def _ascending(draw, top: int, room: int, consecutive: bool, n: int = N) -> torch.Tensor:
    size = draw(st.sampled_from([10, 1000, HIGHEST]))  # small gaps are as likely as large ones
    steps = draw(st.lists(st.integers(1, size), min_size=n - 1, max_size=n - 1))
    offsets = torch.tensor([0, *steps]).cumsum(0)
    if (span := int(offsets[-1])) > room:
        offsets = torch.unique((offsets * (room / span)).long())
        offsets = torch.cat([torch.arange(n - len(offsets)), offsets + n - len(offsets)])
        offsets = offsets.clamp(max=room)
    offsets = torch.arange(n) if consecutive else offsets
    return offsets + draw(st.integers(0, top - int(offsets[-1])))


@pytest.mark.parametrize("name", NAMES)
def test_a_bfloat16_model_keeps_positions_up_to_a_million_exact(name):
    narrow, wide = pair(name)

    @settings(max_examples=5)
    @given(at=ascending(ON_TEXTS[name]))
    def holds(at):
        with torch.no_grad():
            assert apart(narrow(tokens(2, N), at), wide(tokens(2, N), at)) < BOUND / 2

    holds()


@pytest.mark.parametrize("name", [name for name, encoding in ON_TEXTS.items() if highest(encoding) < HIGHEST])
def test_a_position_past_what_an_encoding_can_write_is_refused(name):
    encoding, (narrow, _) = ON_TEXTS[name], pair(name)
    last = highest(encoding)
    with torch.no_grad():
        narrow(tokens(1, 1), torch.tensor([last]))
        with pytest.raises(ValueError, match=str(last + 1)):
            narrow(tokens(1, 1), torch.tensor([last + 1]))


@pytest.mark.parametrize("name", RELATIVE)
def test_what_reads_no_index_does_not_hear_where_a_text_with_gaps_starts(name):
    _, wide = pair(name)

    @settings(max_examples=5)
    @given(at=ascending(ON_TEXTS[name]), data=st.data())
    def holds(at, data):
        moved = at - at[0] + data.draw(st.integers(0, HIGHEST - int(at[-1] - at[0])))
        with torch.no_grad():
            torch.testing.assert_close(wide(tokens(2, N), moved), wide(tokens(2, N), at), rtol=0, atol=1e-7)

    holds()

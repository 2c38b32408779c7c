"""Packed documents: each is answered as if it were read alone, by every encoding, and padding is one more."""

import pytest
import torch
from torch import Tensor

from sepnb import encodings
from sepnb.encodings import Encoding
from sepnb.models import LanguageModel, compile_formulas
from sepnb.models.fast import kernels

from ..shared import refused
from .cases import CASES, IN_SHAPES, NAMES, TIGHT, N, heard, model, tokens
from .references import EXACT

LENGTHS = ((4, 5), (2, 6, 1))
DOCUMENTS = torch.stack(
    [torch.repeat_interleave(torch.arange(len(row)) * 3, torch.tensor(row)) for row in LENGTHS]
)
"""Two sequences, of two and of three documents."""


def places(encoding: Encoding) -> Tensor:
    """Positions `[2, N]` or `[2, N, n]` that start anew in every document, with gaps where it hears them."""
    starts = iter((0, 11, 40, 3, 7))
    gaps = torch.tensor([0, 1, 4, 5, 9, 20])
    rows = [torch.cat([heard(encoding, next(starts) + gaps[:size]) for size in row]) for row in LENGTHS]
    return torch.stack(rows)


def apart(reader: LanguageModel, text: Tensor, at: Tensor | None) -> Tensor:
    """Every document read by itself."""
    rows = []
    for b, sizes in enumerate(LENGTHS):
        pieces = text[b].split(list(sizes))
        where = [None] * len(sizes) if at is None else at[b].split(list(sizes))
        rows.append(torch.cat([reader(p[None], w)[0] for p, w in zip(pieces, where, strict=True)]))
    return torch.stack(rows)


@pytest.mark.parametrize("name", CASES)
def test_packed_is_separate_in_output_and_every_gradient(name):
    made, at, outcomes = model(CASES[name]), places(CASES[name]), []
    for logits in (made(tokens(), at, documents=DOCUMENTS), apart(made, tokens(), at)):
        made.zero_grad()
        logits.square().mean().backward()
        outcomes.append([logits.detach(), *(parameter.grad.clone() for parameter in made.parameters())])
    for one, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=EXACT)
    together = made(tokens(), at) if not CASES[name].counts_tokens else made(tokens())
    assert (together - outcomes[0][0]).abs().max() > 1e-3  # without documents they hear each other


@pytest.mark.parametrize(("name", "shape"), IN_SHAPES)
def test_it_is_so_for_every_split_by_default_positions_by_rows_and_behind_a_window(name, shape, monkeypatch):
    made = model(CASES[name], shape)
    near = {"rtol": 0, "atol": EXACT}
    with torch.no_grad():
        for reader in (made, made.extended(window=3)):
            expected = apart(reader, tokens(), None)
            torch.testing.assert_close(reader(tokens(), documents=DOCUMENTS), expected, **near)
            with monkeypatch.context() as patch:
                patch.setattr("sepnb.models.fast.pieces.AT_ONCE", 100)  # a few rows of queries at a time
                torch.testing.assert_close(reader(tokens(), documents=DOCUMENTS), expected, **near)


@pytest.mark.parametrize("name", [name for name in NAMES if not CASES[name].causal_only])
def test_it_is_so_without_a_mask(name, monkeypatch):
    made = model(name, causal=False)
    near = {"rtol": 0, "atol": EXACT}
    with torch.no_grad():
        expected = apart(made, tokens(), None)
        torch.testing.assert_close(made(tokens(), documents=DOCUMENTS), expected, **near)
        monkeypatch.setattr("sepnb.models.fast.pieces.AT_ONCE", 100)
        torch.testing.assert_close(made(tokens(), documents=DOCUMENTS), expected, **near)


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_padding_on_the_left_is_a_document_that_no_text_hears(name):
    """Texts of 6 and of 9 tokens in one batch, the positions of each from 0 on."""
    made, text, padded = model(name), tokens(1, 6), []
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 1], [1] * 9])
    with torch.no_grad():
        for pad in (0, 5):
            row = torch.cat([torch.full((1, 3), pad), text], dim=1)
            padded.append(made(torch.cat([row, tokens(1)]), documents=documents))
        apart = (padded[0][0, 3:] - padded[1][0, 3:]).abs().max()
        # The counts of forget gates run over the padding, and in each difference that is taken out again.
        assert apart == 0 or (name == "forgetting" and apart < 1e-12)
        torch.testing.assert_close(padded[0][0, 3:], made(text)[0], rtol=0, atol=EXACT)
        torch.testing.assert_close(padded[0][1], made(tokens(1))[0], rtol=0, atol=EXACT)


@pytest.mark.parametrize("name", ["t5", "rope"])
def test_one_document_is_the_plain_text_and_a_model_of_compiled_formulas_is_not_led_astray(name, monkeypatch):
    made = model(name)
    plain = made(tokens())
    torch.testing.assert_close(made(tokens(), documents=torch.zeros(2, N).long()), plain, **TIGHT)
    packed = made(tokens(), torch.arange(N), documents=DOCUMENTS)
    monkeypatch.setattr(kernels, "on_cuda", lambda x: True)
    monkeypatch.setattr(kernels.Compiler, "compiled", lambda self, formula: formula)
    compile_formulas(made, "eager")  # FlexAttention would have no mask for documents
    torch.testing.assert_close(made(tokens(), torch.arange(N), documents=DOCUMENTS), packed, **TIGHT)


def test_what_counts_tokens_over_the_borders_of_documents_is_refused(unhooked):
    made, text = model("rope"), tokens()
    stretched = made.extended(extension=encodings.DynamicNTK(2.0, 4))
    for reader, cache, message in (
        (made, made.make_cache(2), "a cache cannot be had with documents"),
        (made.extended(window=4, sinks=1), None, "sinks, the first tokens of a sequence cannot be had"),
        (made.extended(log_scale=True), None, "log_scale cannot be had with documents"),
        (stretched, None, "frequencies that follow the length cannot be had with documents"),
    ):
        refused(f"{message}.*read each document by itself", reader, text, cache=cache, documents=DOCUMENTS)
        assert cache is None or len(cache) == 0


def test_malformed_documents_are_refused(unhooked):
    made, text = model("cope"), tokens()
    for documents, kind, message in (
        (DOCUMENTS[0], ValueError, r"documents have shape \[9\]; give \[2, 9\], one per token"),
        (DOCUMENTS.flip(-1).to(torch.uint8), ValueError, "document 0 comes after document 3 in sequence 0"),
    ):
        refused(message, made, text, error=kind, documents=documents)
    at = places(encodings.build("cope"))
    at[1, 4:] += 1  # in the middle of a document
    refused("position 6 comes after position 4, and cope counts tokens", made, text, at, documents=DOCUMENTS)

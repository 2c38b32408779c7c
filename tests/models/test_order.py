"""What a model may know of order: nothing later, and only what its positions or its mask tell."""

import pytest
import torch

from sepnb import encodings
from sepnb.streams import Streams

from ..encodings.cases import TIGHT, heard

DENSE, SEPARATED = Streams.dense(32), Streams(pos=12, sem=20)


BIDIRECTIONAL = [name for name in encodings.names(axes=1) if not encodings.build(name).causal_only]


def models(names: list[str]) -> list:
    cases = []
    for name in names:
        at_input = encodings.Site.INPUT in encodings.build(name).sites
        cases.append(pytest.param(DENSE, name, id=f"dense-{name}"))
        cases.append(
            pytest.param(SEPARATED, name if at_input else ("sinusoidal", name), id=f"separated-{name}")
        )
    return cases


@pytest.mark.parametrize(("streams", "encoding"), models(encodings.names(axes=1)))
def test_no_output_depends_on_a_later_token(built, text, streams, encoding):
    model, tokens = built(streams, encoding=encoding), text(2, 9)
    positions = heard(model.config.encodings[-1], torch.tensor([0, 1, 5, 9, 12, 30, 40, 41, 63]))
    before = model(tokens, positions)
    for place in (1, 4, 8):
        changed = tokens.clone()
        changed[:, place:] = (changed[:, place:] + 1) % 13
        after = model(changed, positions)
        torch.testing.assert_close(after[:, :place], before[:, :place], rtol=0, atol=1e-12)
        assert (after[:, place:] - before[:, place:]).abs().amin(dim=1).max() > 1e-6


@pytest.mark.parametrize(("streams", "encoding"), models(BIDIRECTIONAL))
def test_without_a_mask_tokens_and_positions_permuted_together_permute_the_outputs(
    built, text, streams, encoding
):
    model, tokens = built(streams, encoding=encoding, causal=False), text(2, 7)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    positions = torch.tensor([0, 1, 5, 9, 12, 30, 63])
    straight = model(tokens, positions)
    torch.testing.assert_close(model(tokens[:, order], positions[order]), straight[:, order], **TIGHT)


@pytest.mark.parametrize(("streams", "encoding"), models(encodings.names(axes=1)))
def test_default_positions_count_from_zero_and_nothing_remains_of_an_earlier_call(
    built, text, streams, encoding
):
    model, tokens = built(streams, encoding=encoding), text(2, 6)
    first = model(tokens)
    model(text(3, 9, seed=1), torch.arange(9) + 40)
    assert torch.equal(model(tokens), first)
    assert torch.equal(model(tokens, torch.arange(6)), first)

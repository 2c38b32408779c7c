"""Transformer-XL: where its parameters start, and what its layers share."""

import pytest
import torch

from sepnb.encodings import Heads, TransformerXL
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams


def test_biases_start_small_and_the_map_has_none_of_its_own():
    torch.manual_seed(0)
    module = TransformerXL().at_score(Heads(50, 40, 8))
    for bias in (module.u, module.v):
        assert bias.std().item() == pytest.approx(0.02, rel=0.1)
    assert module.distances.bias is None


# --- u and v of all layers


def tied(tie: bool, streams: Streams | None = None, **fields) -> LanguageModel:
    torch.manual_seed(0)
    streams, encoding = streams or Streams.dense(8), TransformerXL(tie=tie)
    encoding = encoding if len(streams.names) == 1 else ("sinusoidal", encoding)
    return LanguageModel(TransformerConfig(streams, 3, 2, encoding, max_length=8, **fields), 7).double()


def scores_of(model: LanguageModel) -> list[torch.nn.Module]:
    return [block.attention.averaging.pairs for block in model.transformer.blocks]


def test_tied_layers_share_u_and_v_and_have_maps_of_their_own():
    tie, own = tied(True), tied(False)
    first, *others = scores_of(tie)
    for other in others:
        assert other.u is first.u and other.v is first.v
        assert other.distances.weight is not first.distances.weight
    counts = [model.parameter_counts()["total"] for model in (own, tie)]
    assert counts[0] - counts[1] == 2 * (first.u.numel() + first.v.numel())
    assert len({id(pairs.u) for pairs in scores_of(own)}) == 3


def test_a_record_made_before_tying_keeps_its_key_and_layers_of_other_heads_are_refused():
    assert "tie" not in TransformerXL().resolved() and TransformerXL(tie=True).resolved()["tie"] is True
    strict = {"streams": Streams(pos=4, sem=4), "mode": "strict"}
    with pytest.raises(ValueError, match=r"one has 2 heads, another 1; give readout='both'"):
        tied(True, **strict)
    assert len(scores_of(tied(True, **strict, readout="both"))) == 3

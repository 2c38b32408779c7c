"""The dense model that computes a separated one."""

from dataclasses import replace

import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.dense import as_dense, off_diagonal
from sepnb.streams import BlockDiagonalLinear, Streams

STREAMS = Streams(pos=8, sem=24)
CONFIG = TransformerConfig(STREAMS, 3, 4, "sinusoidal", norm="joint", max_length=16)
TOKENS = torch.randint(20, (2, 16), generator=torch.Generator().manual_seed(0))


def made(config: TransformerConfig) -> LanguageModel:
    """A model with noise in every weight, so that no gain is 1 and no bias 0."""
    torch.manual_seed(0)
    model = LanguageModel(config, 20).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"bias": True, "activation": "swiglu"},
        {"norm_kind": "rms", "n_kv_heads": 2, "streams": Streams(pos=16, sem=16)},
        {"encoding": "learned", "expansion": 2, "causal": False, "tie_embeddings": True},
    ],
)
def test_a_dense_model_of_the_same_width_computes_the_separated_one(change) -> None:
    model = made(replace(CONFIG, **change))
    dense = as_dense(model)
    assert not dense.config.separated and dense.config.streams.d_model == model.config.streams.d_model
    with torch.no_grad():
        torch.testing.assert_close(dense(TOKENS), model(TOKENS), rtol=0, atol=1e-10)


def test_training_may_leave_the_blocks() -> None:
    dense = as_dense(made(CONFIG))
    maps = [m.blocks["sem"].weight for m in dense.modules() if isinstance(m, BlockDiagonalLinear)]
    assert {off_diagonal(weight, STREAMS) for weight in maps} == {0.0}
    torch.nn.functional.cross_entropy(dense(TOKENS[:, :-1]).flatten(0, 1), TOKENS[:, 1:].flatten()).backward()
    assert all(off_diagonal(weight.grad, STREAMS) > 0 for weight in maps)


def test_the_share_beside_the_blocks_is_that_of_the_squares() -> None:
    weight = torch.ones(64, 32)
    assert off_diagonal(weight, STREAMS) == pytest.approx(1 - (8 * 8 + 24 * 24) / 32**2)
    with pytest.raises(ValueError, match=r"\(30, 32\)"):
        off_diagonal(torch.ones(30, 32), STREAMS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": "split"}, "norm to be 'joint'"),
        ({"query_key": "strict"}, "query_key to be 'joint'"),
        ({"pos_stream": "reinjected"}, "pos_stream to be 'evolving'"),
        ({"readout": "both"}, "readout to be 'sem'"),
        ({"encoding": ("sinusoidal", "rope")}, "encodings to be 1, got 2"),
        ({"streams": Streams.dense(32)}, "single stream"),
    ],
)
def test_a_model_that_is_not_of_this_kind_is_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        as_dense(made(replace(CONFIG, **change)))

"""CoPE at gates that make it count tokens, and what it does with gaps and with what is not finite."""

import numpy as np
import pytest
import torch

from sepnb.encodings import cope_positions, cope_scores
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import Diverged, TrainingConfig, train

from .drawn import F64, random


def test_with_every_gate_open_it_counts_the_tokens_between_and_the_query_itself():
    n, m = 4, 7
    counted = cope_positions(torch.full((1, 1, n, m), 1e4, dtype=F64), 100)[0, 0]
    at = torch.arange(m)
    expected = (at[m - n :, None] - at + 1).clamp(min=0)
    assert torch.equal(counted, expected.to(F64))


def test_counts_are_taken_in_single_precision_in_a_bfloat16_model():
    counted = cope_positions(torch.full((1, 1, 1, 2000), 1e4, dtype=torch.bfloat16), 5000)
    assert counted.dtype == torch.float32 and counted[0, 0, 0, 0] == 2000


def test_gaps_are_refused_and_a_cache_is_left_as_it_was(unhooked):
    model = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "cope"), 11)
    tokens = torch.zeros(2, 3, dtype=torch.int64)
    message = "position {} comes after position {}, and cope counts tokens: .* give consecutive positions"
    for at, found in (
        (torch.tensor([4, 5, 7]), (7, 5)),
        (torch.tensor([2, 2, 3]), (2, 2)),
        (torch.tensor([2, 1, 0]), (1, 2)),
        (torch.tensor([[0, 1, 2], [5, 6, 9]]), (9, 6)),
    ):
        with pytest.raises(ValueError, match=message.format(*found)):
            model(tokens, at)
    model(tokens, torch.tensor([[0, 1, 2], [5, 6, 7]]))
    cache = model.make_cache(2)
    model(tokens, torch.arange(3) + 40, cache)
    with pytest.raises(ValueError, match=message.format(44, 42)):
        model(tokens, torch.arange(3) + 44, cache)
    assert len(cache) == 3
    model(tokens, torch.arange(3) + 43, cache)
    model(tokens[:, :1], cache=cache)
    assert cache.positions.tolist() == list(range(40, 47))


def test_what_is_not_finite_stays_so_and_is_no_index():
    """A place in the table of NaN is none that torch may be asked for."""
    q, k, table = random(1, 1, 3, 2), random(1, 1, 4, 2, seed=1), random(5, 2)
    k[0, 0, 1] = float("nan")
    scores = cope_scores(q, k, table)
    assert scores[0, 0, :, 1].isnan().all() and scores[0, 0, :, 2:].isfinite().any()
    table = table * float("inf")
    assert not cope_scores(q, random(1, 1, 4, 2), table).isfinite().any()


def test_a_training_that_diverges_says_so_and_at_which_step():
    torch.manual_seed(0)
    model = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "cope"), 11)
    with torch.no_grad():
        model.transformer.blocks[0].attention.averaging.pairs.table.fill_(float("nan"))
    config = TrainingConfig(steps=2, batch_size=2, length=6, learning_rate=1e-3)
    with pytest.raises(Diverged, match="the loss of step 0 is nan; lower learning_rate"):
        train(model, iter(np.ones((2, 2, 7), dtype=np.int64)), config)
    model = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "cope"), 11)
    config = TrainingConfig(steps=60, batch_size=2, length=6, learning_rate=1e30, warmup=0.0)
    with pytest.raises(Diverged, match=r"of step \d+ is (nan|inf)"):
        train(model, iter(np.random.default_rng(0).integers(0, 11, (60, 2, 7))), config)

"""A learned table: a row per position, no more rows than that, and only rows that were used learn."""

import pytest
import torch

from sepnb.encodings import Learned
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

LENGTH = 6


def model(streams: Streams | None = None) -> LanguageModel:
    torch.manual_seed(0)
    config = TransformerConfig(streams or Streams.dense(8), 1, 2, "learned", max_length=LENGTH)
    return LanguageModel(config, vocab_size=11)


def test_row_i_is_the_code_of_position_i():
    module = Learned().at_input(5, LENGTH)
    positions = torch.tensor([[0, 5], [3, 3]])
    assert module.table.shape == (LENGTH, 5) and module.limit == LENGTH
    assert torch.equal(module(positions), module.table[positions])


def test_rows_are_drawn_with_the_declared_spread():
    torch.manual_seed(0)
    for std in (0.02, 0.5):
        assert Learned(std=std).at_input(64, 512).table.std().item() == pytest.approx(std, rel=0.02)
    assert Learned().std == 0.02


@pytest.mark.parametrize("streams", [Streams.dense(8), Streams(pos=4, sem=4)], ids=repr)
def test_the_last_row_works_and_the_next_names_itself_the_table_and_the_remedy(streams):
    m = model(streams)
    m(torch.zeros(1, 1, dtype=torch.long), positions=torch.tensor([LENGTH - 1]))
    m(torch.zeros(1, LENGTH, dtype=torch.long))
    message = (
        r"position 6 has no row in the learned table of 6 positions \(0 to 5\); .*max_length of at least 7"
    )
    with pytest.raises(ValueError, match=message):
        m(torch.zeros(1, 1, dtype=torch.long), positions=torch.tensor([LENGTH]))
    with pytest.raises(ValueError, match=message):
        m(torch.zeros(1, LENGTH + 1, dtype=torch.long))
    with pytest.raises(ValueError, match="position 9 "):
        m(torch.zeros(2, 2, dtype=torch.long), positions=torch.tensor([[0, 1], [9, 2]]))


def test_a_cache_cannot_walk_past_the_table_and_is_left_as_it_was():
    m = model()
    cache = m.make_cache(1)
    m(torch.zeros(1, LENGTH, dtype=torch.long), cache=cache)
    with pytest.raises(ValueError, match="position 6 has no row"):
        m(torch.zeros(1, 1, dtype=torch.long), cache=cache)
    assert len(cache) == LENGTH


@pytest.mark.parametrize("streams", [Streams.dense(8), Streams(pos=4, sem=4)], ids=repr)
def test_only_the_rows_that_were_used_learn(streams):
    m = model(streams)
    m(torch.zeros(2, 3, dtype=torch.long), positions=torch.tensor([[1, 4, 1], [4, 1, 4]])).logsumexp(
        -1
    ).sum().backward()
    touched = m.transformer.input_encodings[0].table.grad.abs().sum(-1) > 0
    assert touched.tolist() == [False, True, False, False, True, False]


def test_a_table_without_rows_is_refused():
    with pytest.raises(ValueError, match="max_length is 0; a learned table needs at least 1 row"):
        Learned().at_input(4, 0)

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


# --- a table in every layer, and one that only queries and keys hear

SHAPES = {
    "dense": {"streams": Streams.dense(8)},
    "separated": {"streams": Streams(pos=4, sem=4)},
    "strict": {"streams": Streams(pos=4, sem=4), "mode": "strict", "readout": "both"},
}


def deep(shape: str, encoding: Learned, **fields) -> LanguageModel:
    """Three layers in float64; every parameter is drawn anew, a table at about 1."""
    torch.manual_seed(0)
    fields = {**SHAPES[shape], **fields}
    chosen = encoding if encoding.site == "input" or shape == "dense" else ("sinusoidal", encoding)
    config = TransformerConfig(n_layers=3, n_heads=2, encoding=chosen, max_length=LENGTH, **fields)
    model = LanguageModel(config, vocab_size=11).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return model


def tables(m: LanguageModel) -> list[torch.nn.Parameter]:
    return [parameter for name, parameter in m.named_parameters() if name.endswith(".table")]


TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
VARIANTS = [Learned(per_layer=True), Learned(site="query_key")]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_layer_may_have_a_table_of_its_own(shape):
    """All alike they are one table that is added again before every layer, and but for the first 0 they are
    one at the input."""
    own = deep(shape, Learned(per_layer=True))
    again, once = deep(shape, Learned(), pos_stream="reinjected"), deep(shape, Learned())
    assert len(tables(own)) == 3 and len(tables(again)) == len(tables(once)) == 1
    assert len({table.data_ptr() for table in tables(own)}) == 3
    assert not torch.equal(tables(own)[0], tables(own)[1])
    own_state = own.state_dict()
    for other in (again, once):
        other.load_state_dict({name: own_state[name] for name in other.state_dict()})
    with torch.no_grad():
        assert not torch.allclose(own(TOKENS), again(TOKENS))
        for later in tables(own)[1:]:
            later.copy_(tables(own)[0])
        torch.testing.assert_close(own(TOKENS), again(TOKENS), rtol=0, atol=1e-12)
        for later in tables(own)[1:]:
            later.zero_()
        torch.testing.assert_close(own(TOKENS), once(TOKENS), rtol=0, atol=1e-12)


def test_a_table_at_queries_and_keys_is_added_before_their_map_and_not_before_that_of_values():
    m = deep("dense", Learned(site="query_key"))
    attention, block = m.transformer.blocks[0].attention, m.transformer.blocks[0]

    def held() -> tuple[torch.Tensor, torch.Tensor]:
        cache = m.make_cache(2)
        m(TOKENS, cache=cache)
        return next(iter(cache._held.values()))

    with torch.no_grad():
        keys, values = held()
        u = block.attention_norm.parts({"sem": m.embedding(TOKENS)})["sem"]
        expected = (u + tables(m)[0][:4]) @ attention.query_key[0].weight[8:].T
        torch.testing.assert_close(keys, expected.unflatten(-1, (2, 4)).transpose(1, 2), rtol=0, atol=1e-12)
        tables(m)[0].add_(1.0 + torch.arange(LENGTH)[:, None])
        moved, still = held()
    assert torch.equal(still, values) and not torch.allclose(moved, keys)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("encoding", VARIANTS, ids=str)
def test_positions_are_heard_learnt_and_kept_in_a_cache(shape, encoding):
    m = deep(shape, encoding)
    full = m(TOKENS)
    for positions in (torch.tensor([1, 2, 3, 5]), torch.tensor([[0, 1, 2, 3], [0, 2, 4, 5]])):
        assert (m(TOKENS, positions) - full).abs().max() > 1e-6
        cache = m.make_cache(2)
        pieces = [m(TOKENS[:, n : n + 1], positions[..., n : n + 1], cache) for n in range(4)]
        torch.testing.assert_close(torch.cat(pieces, 1), m(TOKENS, positions), rtol=0, atol=1e-10)
    full.square().sum().backward()
    for table in tables(m):
        assert (table.grad[:4].abs().sum(-1) > 0).all() and (table.grad[4:] == 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("encoding", VARIANTS, ids=str)
def test_every_table_ends_and_is_continued_by_an_extrapolator(shape, encoding):
    m, longer = deep(shape, encoding).eval(), torch.ones(2, LENGTH + 2, dtype=torch.long)
    with pytest.raises(ValueError, match="position 7 has no row in the learned table of 6 positions"):
        m(longer)
    clamped = m.extended("clamp")
    with torch.no_grad():
        assert torch.equal(clamped(TOKENS), m(TOKENS))
        expected = m(longer, torch.arange(LENGTH + 2).clamp(max=LENGTH - 1))
        torch.testing.assert_close(clamped(longer), expected, rtol=0, atol=1e-12)


def test_what_is_not_used_is_not_in_a_record():
    assert Learned().resolved() == {"name": "learned", "std": 0.02}
    assert Learned(per_layer=True).resolved() == {"name": "learned", "std": 0.02, "per_layer": True}
    assert Learned(site="query_key").resolved() == {"name": "learned", "std": 0.02, "site": "query_key"}


def test_variants_that_contradict_each_other_are_refused(unhooked):
    with pytest.raises(ValueError, match="unknown site 'value'; use one of input, query_key"):
        Learned(site="value")
    with pytest.raises(ValueError, match="per_layer is for tables at the input, and site is 'query_key'"):
        Learned(per_layer=True, site="query_key")
    for pos_stream in ("reinjected", "constant"):
        with pytest.raises(ValueError, match=f"pos_stream=.{pos_stream}. gives every layer the same"):
            deep("separated", Learned(per_layer=True), pos_stream=pos_stream)

"""CoPE against a loop that counts, at gates that make it count tokens, and where the count ends."""

import math

import pytest
import torch
from torch import Tensor

from sepnb.encodings import Cope, Heads, cope_positions, cope_scores
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

from .drawn import F64, agree, drawn, random

SIZES = [(1, 1), (1, 6), (4, 4), (3, 6)]


def causal(n: int, m: int) -> Tensor:
    return torch.ones(n, m, dtype=torch.bool).tril(m - n)


def looped(q: Tensor, k: Tensor, table: Tensor, gate: str) -> Tensor:
    """`[B, H, N, M]`, 0 where the key comes after the query."""
    (batch, heads, n, d), m, last = q.shape, k.shape[-2], len(table) - 1
    found = []
    for b in range(batch):
        for h in range(heads):
            for row in range(n):
                i, logits = m - n + row, k[b, h] @ q[b, h, row]
                for j in range(m):
                    if j > i:
                        found.append(torch.zeros((), dtype=F64))
                        continue
                    gates = torch.sigmoid(logits if gate == "raw" else logits / d**0.5)
                    p = gates[j : i + 1].sum().clamp(max=last)
                    low = min(math.floor(p.item()), last)
                    high = min(low + 1, last)
                    e = (1 - (p - low)) * table[low] + (p - low) * table[high]
                    found.append(logits[j] / d**0.5 + q[b, h, row] @ e)
    return torch.stack(found).unflatten(0, (batch, heads, n, m))


@pytest.mark.parametrize("gate", ["raw", "scaled"])
@pytest.mark.parametrize("rows", [2, 3, 20])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_scores_and_module_are_the_counting_loop_in_value_and_every_gradient(n, m, rows, gate):
    q, k = random(2, 2, n, 3), random(2, 2, m, 3, seed=1)
    module = drawn(Cope(rows, gate).at_score(Heads(2, 3, 6)))
    leaves, at = [q, k, module.table], torch.arange(m)

    def expected() -> Tensor:
        return looped(q, k, module.table, gate)

    agree(lambda: cope_scores(q, k, module.table, gate=gate), expected, leaves, causal(n, m))
    prepared = module.prepare(at[m - n :], at)
    agree(lambda: module(q, k, prepared, slice(0, 2)), expected, leaves, causal(n, m))


def test_with_every_gate_open_it_counts_the_tokens_between_and_the_query_itself():
    n, m = 4, 7
    counted = cope_positions(torch.full((1, 1, n, m), 1e4, dtype=F64), 100)[0, 0]
    at = torch.arange(m)
    expected = (at[m - n :, None] - at + 1).clamp(min=0)
    assert torch.equal(counted, expected.to(F64))


def test_the_count_ends_at_the_last_row_and_never_rises_from_a_key_to_the_next():
    counted = cope_positions(random(2, 3, 9, 9), 4)
    assert counted.max() == 3
    assert (counted.diff(dim=-1) <= 0).all()


def test_gates_of_keys_after_the_query_are_shut_before_the_sum():
    logits = random(1, 1, 5, 5)
    changed = logits.masked_fill(~causal(5, 5), 1e3)
    assert torch.equal(cope_positions(logits, 64), cope_positions(changed, 64))


def test_counts_are_taken_in_single_precision_in_a_bfloat16_model():
    counted = cope_positions(torch.full((1, 1, 1, 2000), 1e4, dtype=torch.bfloat16), 5000)
    assert counted.dtype == torch.float32 and counted[0, 0, 0, 0] == 2000


def test_gates_and_the_share_of_two_rows_pass_gradients_back():
    q, k, table = (
        random(1, 1, 4, 3).requires_grad_(),
        random(1, 1, 4, 3, seed=1).requires_grad_(),
        random(9, 3),
    )
    moved = cope_scores(q, k, table) - q @ k.transpose(-1, -2) / 3**0.5
    moved[0, 0, -1, 0].backward()  # the keys enter it through the gates alone
    assert (k.grad.abs().amax((0, 1, 3)) > 0).all()


def test_a_table_of_zeros_as_at_the_start_leaves_plain_attention():
    module = Cope().at_score(Heads(2, 4, 8)).double()
    q, k, at = random(1, 2, 5, 4), random(1, 2, 5, 4, seed=1), torch.arange(5)
    scores = module(q, k, module.prepare(at, at), slice(0, 2))
    torch.testing.assert_close(scores, q @ k.transpose(-1, -2) / 2, rtol=0, atol=1e-12)
    assert module.table.shape == (64, 4)


def test_where_a_text_starts_plays_no_part_and_the_order_of_the_tokens_does():
    torch.manual_seed(0)
    model = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, "cope"), 11).double()
    with torch.no_grad():
        model.transformer.blocks[0].attention.averaging.pairs.table.normal_()
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    assert torch.equal(model(tokens, torch.arange(7) + 1000), model(tokens))
    swapped = tokens[:, [1, 0, 2, 3, 4, 5, 6]]
    assert (model(swapped) - model(tokens))[:, -1].abs().max() > 1e-6


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


def test_what_cannot_be_is_refused(unhooked):
    q = random(1, 1, 3, 2)
    for make, kind, message in (
        (lambda: Cope(1), ValueError, "n_positions is 1; counting needs at least 2"),
        (lambda: Cope(4.0), TypeError, r"n_positions must be an int, got 4\.0"),
        (lambda: Cope(gate="hard"), ValueError, "unknown gate 'hard'; use one of raw, scaled"),
        (lambda: cope_scores(q, q[:, :, :2], q[0, 0]), ValueError, "3 queries cannot be the last of 2 keys"),
        (
            lambda: TransformerConfig(Streams.dense(8), 1, 2, "cope", causal=False),
            ValueError,
            "cope is for causal models only",
        ),
    ):
        with pytest.raises(kind, match=message):
            make()

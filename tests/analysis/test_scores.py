"""The terms of a score sum to the score of the model itself, and each is of what it says it is of."""

import itertools
import math

import pytest
import torch

from sepnb.analysis import exchanged, residual_states, score_table, scores, split_scores
from sepnb.encodings import Learned, NTKByParts, PositionInterpolation, RoPE, YaRN
from sepnb.models import LanguageModel, TransformerConfig, attention_core, attention_hook
from sepnb.streams import Streams

from ..encodings.drawn import loud
from ..shared import refused

DENSE, SPLIT, WHOLE = Streams.dense(32), Streams(pos=12, sem=20), Streams(pos=8, sem=24)
L, N = 8, 19
TIGHT = {"rtol": 0, "atol": 1e-10}
CC, CP, PC, PP, ENCODING = scores.TERMS

KINDS = {
    "separated": {"streams": SPLIT},
    "constant": {"streams": WHOLE, "pos_stream": "constant", "bias": True},
    "strict": {"streams": WHOLE, "mode": "strict", "readout": "both", "bias": True},
    "strict, reinjected": {"streams": WHOLE, "mode": "strict", "pos_stream": "reinjected"},
    "untied": {"streams": WHOLE, "query_key": "untied", "bias": True},
    "reinjected": {"streams": SPLIT, "pos_stream": "reinjected", "encoding": "learned"},
    "concatenated": {"streams": SPLIT, "split": frozenset(), "readout": "both"},
    "joint norm": {"streams": SPLIT, "norm": "joint"},
    "no norm on positions": {"streams": SPLIT, "norm": "content"},
    "content": {"streams": WHOLE, "query_key": "content"},
    "separated, waves": {"streams": SPLIT, "encoding": ("sinusoidal", "phase")},
    "separated, RoPE": {"streams": SPLIT, "encoding": ("sinusoidal", "rope"), "n_kv_heads": 4},
    "strict, RoPE": {"streams": WHOLE, "mode": "strict", "encoding": ("sinusoidal", RoPE(streams=("pos",)))},
    "dense": {"streams": DENSE, "bias": True},
    "dense, rms": {"streams": DENSE, "norm_kind": "rms", "pos_stream": "reinjected"},
    "dense, every layer": {"streams": DENSE, "encoding": Learned(per_layer=True)},
    "dense, queries and keys": {"streams": DENSE, "encoding": Learned(site="query_key")},
    "dense, TUPE": {"streams": DENSE, "encoding": ("sinusoidal", "tupe")},
    "ALiBi": {"streams": DENSE, "encoding": ("sinusoidal", "alibi"), "n_kv_heads": 2},
    "T5": {"streams": DENSE, "encoding": "t5"},
    "both ways": {"streams": DENSE, "causal": False},
    "RoPE": {"streams": DENSE, "encoding": "rope"},
    "none": {"streams": DENSE, "encoding": "none"},
}
RULES = {
    "as trained": {},
    "slowed": {"extension": NTKByParts(4, L, 0.1, 1), "log_scale": True},
    "temperature": {"extension": YaRN(4, L, 1, 0.1, "rotations")},
    "window": {"window": 5, "sinks": 2, "log_scale": True},
}
LONGER = {"reinjected", "dense, every layer", "dense, queries and keys"}


def built(kind: str, **changes) -> LanguageModel:
    torch.manual_seed(0)
    settings = (
        {"n_layers": 2, "n_heads": 4, "max_length": L, "encoding": "sinusoidal"} | KINDS[kind] | changes
    )
    settings |= {"max_length": N} if kind in LONGER else {}
    return loud(LanguageModel(TransformerConfig(**settings), vocab_size=11), 0).double().eval()


def text(n: int = N, b: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randint(11, (b, n), generator=torch.Generator().manual_seed(seed))


def own_scores(model: LanguageModel, tokens: torch.Tensor, monkeypatch) -> dict:
    """What the model gives to its softmax, without the mask, by layer and heads."""
    found, given = {}, []

    def softmax(values, mask, *, causal):
        hidden = mask if mask is not None else torch.zeros(())
        given.append(values + torch.where(torch.isinf(hidden), 0, hidden))
        return plain(values, mask, causal=causal)

    def hook(layer, heads, compute):
        weights = compute()
        found[layer, heads] = given.pop(), weights
        return weights

    plain = attention_core.masked_softmax
    monkeypatch.setattr(attention_core, "masked_softmax", softmax)
    with attention_hook(model, hook), torch.no_grad():
        model(tokens)
    return found


def by_name(model, tokens) -> dict:
    return {(one.layer, one.heads): one for one in split_scores(model, tokens)}


SLOWED = (
    "separated",
    "strict, reinjected",
    "untied",
    "separated, waves",
    "strict, RoPE",
    "dense",
    "RoPE",
    "ALiBi",
)
"""Of these every rule is read, of the others the model as it was trained."""


@pytest.mark.parametrize(
    ("kind", "rule"),
    [*itertools.product(SLOWED, RULES), *((kind, "as trained") for kind in KINDS if kind not in SLOWED)],
)
def test_the_terms_sum_to_the_scores_of_the_model_itself(kind, rule, monkeypatch):
    model, tokens = built(kind).extended(**RULES[rule]), text()
    own, found = own_scores(model, tokens, monkeypatch), by_name(model, tokens)
    assert own.keys() == found.keys()
    for place, (theirs, weights) in own.items():
        ours = found[place]
        assert (theirs - ours.total).abs().max() < 1e-10, place
        torch.testing.assert_close(ours.attention(), weights.expand_as(ours.total), **TIGHT)


def test_the_split_is_that_of_queries_and_keys_made_by_hand():
    model, tokens = built("separated"), text(6, 1)
    model = model.extended(extension=PositionInterpolation(2.0), log_scale=True)
    block, state = model.transformer.blocks[1], residual_states(model, tokens)[1]
    u, weight = block.attention_norm.parts(state), block.attention.query_key[0].weight.detach()
    sides = {"content": ("sem", slice(12, 32)), "position": ("pos", slice(0, 12))}
    one = next(one for one in split_scores(model, tokens) if one.layer == 1 and 2 in one.heads)
    n_heads, at = len(block.attention.heads), block.attention.heads.index(2)
    for asks, (stream, columns) in sides.items():
        for answers, (other, theirs) in sides.items():
            q = u[stream][0] @ weight[8 * at : 8 * at + 8, columns].T
            k = u[other][0] @ weight[8 * (n_heads + at) : 8 * (n_heads + at) + 8, theirs].T
            for i in range(6):
                factor = max(1, math.log(i + 1) / math.log(L)) / math.sqrt(8)
                expected = factor * (k @ q[i])
                found = one.terms[f"{asks}-{answers}"][0, one.heads.index(2), i]
                torch.testing.assert_close(found, expected.detach(), **TIGHT)


def test_a_stream_that_reads_no_text_gives_a_position_term_of_positions_alone():
    for kind in ("constant", "strict", "untied"):
        one, other = (by_name(built(kind), text(seed=seed)) for seed in (0, 1))
        for place, ours in one.items():
            torch.testing.assert_close(ours.terms[PP], other[place].terms[PP], **TIGHT)
            assert ours.terms[PP].abs().max() > 1e-2
            if CC in ours.terms:
                assert (ours.terms[CC] - other[place].terms[CC]).abs().max() > 1e-2
    one, other = ([*split_scores(built("separated"), text(seed=seed))][-1] for seed in (0, 1))
    assert (one.terms[PP] - other.terms[PP]).abs().max() > 1e-2  # of a stream that heard the text in layer 0


@pytest.mark.parametrize("factor", [2, 3])
def test_interpolated_a_constant_stream_gives_at_f_times_a_pair_what_it_gave_at_the_pair(factor):
    model = built("constant")
    slowed = model.extended(extension=PositionInterpolation(factor))
    plain, slow = by_name(model, text(7)), by_name(slowed, text(6 * factor + 1))
    for place, ours in plain.items():
        found = slow[place].terms[PP][:, :, ::factor, ::factor]
        torch.testing.assert_close(found, ours.terms[PP], **TIGHT)


def test_in_a_dense_first_layer_content_is_the_token_under_the_size_of_the_whole_state():
    model, tokens = built("dense"), text(7, 1)
    attention, norm = model.transformer.blocks[0].attention, model.transformer.blocks[0].attention_norm
    token = model.embedding(tokens)
    x = token + model.transformer.input_encodings[0](torch.arange(7))
    size = (x.var(-1, keepdim=True, correction=0) + norm.eps).sqrt()
    content = (token - token.mean(-1, keepdim=True)) / size * norm.gain["sem"] + norm.bias["sem"]
    map_ = attention.query_key[0]
    q, k = (content @ map_.weight.T + map_.bias).unflatten(-1, (2, 4, 8)).unbind(-3)
    expected = torch.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(8)
    first = next(split_scores(model, tokens))
    torch.testing.assert_close(first.terms[CC], expected.detach(), **TIGHT)


def test_a_model_without_positions_has_the_content_term_alone_and_an_untied_one_no_cross_terms():
    assert {tuple(one.terms) for one in split_scores(built("RoPE"), text())} == {(CC,)}
    assert {tuple(one.terms) for one in split_scores(built("content"), text())} == {(CC,)}
    assert {tuple(one.terms) for one in split_scores(built("untied"), text())} == {(PP,), (CC, PP)}
    assert {tuple(one.terms) for one in split_scores(built("ALiBi"), text())} == {scores.TERMS}


@pytest.mark.parametrize("name", ["shaw", "transformer-xl", "distance-aware", "cope", "seqpe"])
def test_scores_that_are_no_sum_of_terms_are_refused_by_name(name):
    refused(rf"{name} .* there is no split", next, split_scores(built("dense", encoding=name), text()))


def test_terms_of_another_rule_are_exchanged_in_every_layer():
    model, tokens = built("separated"), text()
    slowed = model.extended(extension=PositionInterpolation(3.0))
    with torch.no_grad():
        own, other = model(tokens), slowed(tokens)
    close = {"rtol": 0, "atol": 1e-8}
    torch.testing.assert_close(exchanged(model, slowed, (), tokens), own, **close)
    torch.testing.assert_close(exchanged(model, slowed, scores.TERMS, tokens), other, **close)
    torch.testing.assert_close(exchanged(model, slowed, [CC], tokens), own, **close)  # no position in it
    mixed = exchanged(model, slowed, [PP], tokens)
    assert (mixed - own).abs().max() > 1e-3 and (mixed - other).abs().max() > 1e-3
    refused("unknown term 'position'", exchanged, model, slowed, ["position"], tokens)


def test_the_table_is_what_loops_over_pairs_find():
    model, tokens, n = built("separated"), text(2 * L + 3), 2 * L + 3
    how = {"extension": PositionInterpolation(2.0), "log_scale": True}
    table = score_table(model, tokens, length=L, **how)
    assert list(table.columns[:5]) == ["layer", "head", "term", "start", "stop"]
    place, h = (1, table.query("layer == 1")["head"].iloc[-1]), -1

    def of(read, given, first, term):
        pairs: dict[int, list] = {}
        for text_ in given.split(1):
            one = [s for s in split_scores(read, text_) if s.layer == 1][-1]
            x = one.terms[term][0, h]
            for i in range(first, given.shape[1]):
                middle = x[i, max(0, i - L + 1) : i + 1].mean()
                for j in range(i + 1):
                    start = 0 if i == j else 2 ** int(math.log2(i - j))
                    pairs.setdefault(start, []).append((x[i, j] - middle, one.attention()[0, h, i, j]))
        return {start: torch.tensor(found).T for start, found in pairs.items()}

    for term in scores.TERMS[:4]:
        rows = table[(table["layer"] == 1) & (table["head"] == place[1]) & (table["term"] == term)]
        now, was = of(model.extended(**how), tokens, L, term), of(model, tokens[:, :L], L // 2, term)
        assert sorted(now) == list(rows["start"]) == [0, 1, 2, 4, 8, 16]
        assert list(rows["stop"]) == [1, 2, 4, 8, 16, 32]
        for row in rows.itertuples():
            values, weights = now[row.start]
            assert row.mean == pytest.approx(float(values.mean()), abs=1e-9)
            assert row.std == pytest.approx(float(values.std(correction=0)), abs=1e-9)
            assert row.share == pytest.approx(float(weights.sum()) / (2 * (n - L)), abs=1e-9)
            values, weights = was[min(row.start, L // 2)]
            assert row.inside_mean == pytest.approx(float(values.mean()), abs=1e-9)
            assert row.inside_std == pytest.approx(float(values.std(correction=0)), abs=1e-9)
        assert rows["share"].sum() == pytest.approx(1) == rows["inside_share"].sum()
        assert 0 < rows["moved"].sum() < 1


def test_nothing_is_moved_where_a_term_has_no_part_in_it_and_all_where_it_has(monkeypatch):
    """Position alone decides in a map whose content columns are 0."""
    model = built("separated", n_layers=1)
    with torch.no_grad():
        model.transformer.blocks[0].attention.query_key[0].weight[:, 12:] = 0
    table = score_table(model, text(3 * L), length=L)
    moved = table.groupby("term")["moved"].sum()
    assert moved[PP] > 0.01 and moved.drop(PP).abs().max() == 0


def test_a_text_that_does_not_pass_the_trained_length_has_no_table():
    refused("8 tokens do not pass length 8", score_table, built("separated"), text(L), length=L)

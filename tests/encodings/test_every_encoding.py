"""What every encoding owes inside a language model: one answer, however it is computed.

An encoding that is added to the registry is tested here, and on several axes in `test_points`; one that acts
at scores brings its reference function, a line in `REFERENCES` or `BIASES`.
"""

import pytest
import torch
from torch import Tensor

from sepnb import encodings
from sepnb.encodings import Site
from sepnb.models import LanguageModel, TransformerConfig, averaging, frozen_attention
from sepnb.models.context import AttentionContext
from sepnb.streams import Streams
from sepnb.watch import MemoryWatch

from .drawn import F64

N, HEADS, WIDTH, LENGTH, VOCABULARY = 9, 4, 32, 128, 11
GAPS = torch.tensor([0, 1, 3, 4, 20, 21, 22, 60, 61])
ROWS = torch.stack([torch.arange(N) + 5, torch.tensor([4, 2, 9, 1, 0, 70, 8, 3, 6])])
STREAMS = {
    "dense": (Streams.dense(WIDTH), {}),
    "straddling": (Streams(pos=12, sem=20), {"readout": "both"}),
    "strict": (Streams(pos=8, sem=24), {"mode": "strict"}),
    "untied": (Streams(pos=8, sem=24), {"query_key": "untied"}),
}
TIGHT = {"rtol": 0, "atol": 1e-10}


def model(name: str, shape: str = "dense", **fields) -> LanguageModel:
    """Two layers in float64, every parameter drawn large enough to matter."""
    streams, more = STREAMS[shape]
    at_input = Site.INPUT in encodings.build(name).sites
    encoding = name if at_input or shape == "dense" else ("sinusoidal", name)
    settings = {"max_length": LENGTH, **more, **fields}
    torch.manual_seed(0)
    made = LanguageModel(TransformerConfig(streams, 2, HEADS, encoding, **settings), VOCABULARY).to(F64)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, parameter in made.named_parameters():
            noise = 0.3 * torch.randn(parameter.shape, generator=generator, dtype=F64)
            parameter.copy_(noise + 1 if "gain" in key else noise)
    return made


def tokens(batch: int = 2) -> Tensor:
    return torch.randint(VOCABULARY, (batch, N), generator=torch.Generator().manual_seed(1))


# --- the plain formula

REFERENCES = {
    "shaw": lambda m, q, k, at: encodings.shaw_scores(q, k, m.table[0], clip=m.clip),
    "distance-aware": lambda m, q, k, at: encodings.distance_aware_scores(q, k, m.w, m.v, at, at),
    "cope": lambda m, q, k, at: encodings.cope_scores(q, k, m.table),
    "transformer-xl": lambda m, q, k, at: encodings.transformer_xl_scores(
        q, k, _projected(m, q.shape[-2]), m.u, m.v
    ),
}
"""Scores by the module of a layer, its queries and keys, and the positions 0 to N - 1."""

BIASES = {
    "alibi": lambda m, at: encodings.alibi_bias(encodings.alibi_slopes(HEADS), at, at),
    "t5": lambda m, at: encodings.t5_bias(m.table, at, at),
    "kerple": lambda m, at: encodings.kerple_bias(m.r1, m.r2, at, at),
    "sandwich": lambda m, at: encodings.sandwich_bias(HEADS, at, at),
    "fire": lambda m, at: encodings.fire_bias(m.c, (m.multiplier * m.length).abs(), m.hidden, m.out, at, at),
}
"""What is added to scaled scores, by the module and the positions."""


TERMS = {
    "phase": lambda transformer, content, at: _phase(transformer.blocks[0].attention, content, at),
    "seqpe": lambda transformer, content, at: _seqpe(transformer.query_key_encodings[0], at),
}
"""What is added to products of queries and keys, unscaled, by the normalised content and the positions."""


def _phase(attention, content: Tensor, at: Tensor) -> Tensor:
    (term,) = attention.terms
    coefficients = term.coefficients(content).unflatten(-1, (HEADS, -1, 2)).transpose(1, 2)
    return encodings.phase_scores(torch.view_as_complex(coefficients.contiguous()), term.frequencies, at, at)


def _seqpe(module, at: Tensor) -> Tensor:
    """P_q P_k^T from embeddings by their definition, `[H, N, N]`."""
    embeddings = module.embeddings.encoder.plain(at)
    (of_queries,), (of_keys,) = module.queries, module.keys
    p_q, p_k = (made(embeddings).unflatten(-1, (HEADS, -1)).transpose(0, 1) for made in (of_queries, of_keys))
    return p_q @ p_k.transpose(-1, -2)


def _projected(module, m: int) -> Tensor:
    waves = encodings.sinusoidal(torch.arange(m), WIDTH, layout="halves", dtype=F64)
    return (waves @ module.distances.weight.T).unflatten(-1, (HEADS, -1)).transpose(0, 1)


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_the_weights_of_a_model_are_the_softmax_of_the_reference_scores(name):
    made, at, seen = model(name), torch.arange(N), torch.ones(N, N, dtype=torch.bool).tril()
    transformer = made.transformer
    block = transformer.blocks[0]
    with frozen_attention(made) as tapes, torch.no_grad():
        made(tokens())
        context = transformer.attention_context(at, at, F64)
        state = transformer.input_state(made.embedding(tokens()), at)
        (part,) = block.attention.queries_and_keys(0, block.attention_norm.parts(state))
        q, k = (
            x[..., : WIDTH // HEADS]
            for x in context.rotated(part.queries[0], part.keys[0], part.reads)  # and no term beside
        )
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        inner = block.attention.averaging
        if name in REFERENCES:
            scores = REFERENCES[name](inner.pairs, q, k, at)
        if name in BIASES:
            modules = [*transformer.score_encodings, *inner.biases]
            scores = scores + BIASES[name](modules[0], at)
        if name in TERMS:
            content = block.attention_norm.parts(state)["sem"]
            scores = scores + TERMS[name](transformer, content, at) * q.shape[-1] ** -0.5
        expected = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    bound = 1e-6 if name == "sandwich" else 1e-10  # fixed biases are kept in float32
    torch.testing.assert_close(tapes[0].weights, expected, rtol=0, atol=bound)


def test_every_encoding_that_makes_scores_has_a_reference_here():
    for name in encodings.names(axes=1):
        encoding = encodings.build(name)
        if Site.SCORE in encoding.sites:
            assert name in (REFERENCES if encoding.at_pairs(1, 4, 4, True) else BIASES)


# --- one answer


@pytest.mark.parametrize("shape", STREAMS)
@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_token_by_token_by_rows_and_behind_a_tape_is_one_full_pass(name, shape, monkeypatch):
    made, at = model(name, shape), tokens()
    windowed = made.extended(window=4, sinks=1, log_scale=True)
    with torch.no_grad():
        for reader, positions in ((made, None), (made, GAPS), (made, ROWS), (windowed, None)):
            full = reader(at, positions)
            cache = reader.make_cache(2)
            pieces = [
                reader(at[:, a:b], None if positions is None else positions[..., a:b], cache)
                for a, b in ((0, 5), (5, 6), (6, N))
            ]
            torch.testing.assert_close(torch.cat(pieces, dim=1), full, **TIGHT)
            with frozen_attention(reader):
                torch.testing.assert_close(reader(at, positions), full, **TIGHT)
            with monkeypatch.context() as patch:
                patch.setattr(averaging, "AT_ONCE", 100)  # a few rows of queries at a time
                torch.testing.assert_close(reader(at, positions), full, **TIGHT)


@pytest.mark.parametrize("shape", ["dense", "strict", "untied"])
@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_positions_of_rows_are_those_of_each_sequence_and_equal_rows_one_for_all(name, shape):
    made, at = model(name, shape), tokens()
    with torch.no_grad():
        for positions in (torch.arange(N), GAPS):
            torch.testing.assert_close(made(at, positions.expand(2, -1)), made(at, positions), **TIGHT)
        alone = torch.cat([made(at[b : b + 1], ROWS[b]) for b in range(2)])
        torch.testing.assert_close(made(at, ROWS), alone, **TIGHT)


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_gradients_reach_every_parameter_and_are_the_same_by_shared_positions_and_by_rows(name):
    outcomes = []
    for positions in (torch.arange(N), torch.arange(N).expand(2, -1)):
        made = model(name, "straddling")
        made(tokens(), positions).square().mean().backward()
        outcomes.append({key: parameter.grad for key, parameter in made.named_parameters()})
    for key, gradient in outcomes[0].items():
        assert gradient is not None and gradient.isfinite().all() and gradient.abs().max() > 0, key
        torch.testing.assert_close(outcomes[1][key], gradient, **TIGHT)


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_a_text_of_one_token_a_batch_of_none_and_at_scores_a_text_of_none_are_answered(name):
    made = model(name)
    sizes = [(0, 3), (1, 1)] + [(2, 0)] * (Site.SCORE in encodings.build(name).sites)
    with torch.no_grad():
        for batch, length in sizes:
            assert made(torch.zeros(batch, length, dtype=torch.int64)).shape == (batch, length, VOCABULARY)


# --- what does not fit the memory at once


def peak_of(name: str, length: int, monkeypatch) -> int:
    """Bytes that a pass without gradients holds at once, at the most."""
    made = model(name, max_length=2 * length)
    monkeypatch.setattr(averaging, "AT_ONCE", 2**14)
    monkeypatch.setattr(encodings.fire, "_AT_ONCE", 2**9)
    with torch.no_grad(), MemoryWatch() as watch:
        made(torch.zeros(1, length, dtype=torch.int64))
    return watch.peak


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_without_gradients_memory_grows_with_the_length_and_not_with_its_square(name, monkeypatch):
    """Twice the length: about twice the memory at the peak, whatever the encoding, scores, biases and masks
    included. With one score held for every pair it would be four times."""
    short, long = (peak_of(name, length, monkeypatch) for length in (256, 512))
    assert long <= 2.1 * short


@pytest.mark.parametrize("name", [n for n in encodings.names(axes=1) if not encodings.build(n).causal_only])
def test_without_a_mask_rows_of_queries_are_one_full_pass_too(name, monkeypatch):
    made, at = model(name, "straddling", causal=False), tokens()
    with torch.no_grad():
        full = made(at)
        made_of_rows = []
        rows = AttentionContext.rows
        monkeypatch.setattr(
            AttentionContext, "rows", lambda self, *ends: made_of_rows.append(ends) or rows(self, *ends)
        )
        monkeypatch.setattr(averaging, "AT_ONCE", 100)
        torch.testing.assert_close(made(at), full, **TIGHT)
    # The fused kernel holds no scores, so that without a bias there is nothing to cut.
    assert bool(made_of_rows) == (Site.SCORE in encodings.build(name).sites)


# --- what cannot be combined


def test_two_encodings_that_both_make_the_scores_are_refused():
    for pair, message in (
        (("shaw", "cope"), "shaw and cope would each make the scores of a layer; keep one of them"),
        (
            ("transformer-xl", "distance-aware"),
            "transformer-xl and distance-aware would each make the scores",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            LanguageModel(TransformerConfig(Streams.dense(8), 1, 2, pair), 5)


def test_a_bias_and_a_rotation_go_with_scores_made_otherwise():
    """RoPE turns queries and keys beforehand, a bias is added behind."""
    both = model("shaw")
    config = TransformerConfig(Streams.dense(WIDTH), 2, HEADS, ("rope", "alibi", "shaw"), max_length=LENGTH)
    more = LanguageModel(config, VOCABULARY).to(F64)
    more.load_state_dict(both.state_dict())
    at, cache = tokens(), more.make_cache(2)
    with torch.no_grad():
        full = more(at)
        assert (full - both(at)).abs().max() > 1e-3
        steps = torch.cat([more(at[:, i : i + 3], cache=cache) for i in (0, 3, 6)], dim=1)
    torch.testing.assert_close(steps, full, **TIGHT)

"""What every encoding owes inside a language model: one answer, however it is computed.

An encoding that is added to the registry is tested here, and on several axes in `test_points`; its class
brings its equation, `reference`, and its options, `tried`.
"""

import dataclasses

import pytest
import torch

from sepnb import encodings
from sepnb.analysis.memory import MemoryWatch
from sepnb.encodings import Site
from sepnb.models import LanguageModel, TransformerConfig, attention_core
from sepnb.models.context import AttentionContext
from sepnb.streams import Streams

from ..shared import refused
from .cases import (
    CASES,
    HEADS,
    LENGTH,
    NAMES,
    ON_TEXTS,
    STREAMS,
    TIGHT,
    VOCABULARY,
    WIDTH,
    N,
    heard,
    model,
    one_full_pass,
    peak_of,
    same_gradients,
    tokens,
)
from .drawn import F64
from .references import EXACT, REFERENCES, Written, reference_of

GAPS = torch.tensor([0, 1, 3, 4, 20, 21, 22, 60, 61])
ROWS = torch.stack([torch.arange(N) + 5, torch.tensor([4, 2, 9, 1, 0, 70, 8, 3, 6])])


# --- the equation

PLACES = {"from 0": torch.arange(N), "gaps": GAPS, "rows": ROWS}


READ = [*((places, "dense", True) for places in PLACES), ("gaps", "twelve heads", True)]
READ += [(places, "dense", False) for places in ("from 0", "rows")]


@pytest.mark.parametrize(
    ("name", "places", "shape", "causal"),
    [(name, *how) for name, case in CASES.items() for how in READ if how[-1] or not case.causal_only],
)
def test_a_model_is_the_equation_of_its_encoding_in_output_and_every_gradient(name, places, shape, causal):
    made, at = model(CASES[name], shape, causal=causal), heard(CASES[name], PLACES[places])
    Written(made).check(made, tokens(), at, bound=EXACT)


def test_every_encoding_of_the_registry_has_its_equation_at_every_site_where_it_acts():
    assert REFERENCES.keys() <= set(encodings.names()) == {case.name for case in CASES.values()}
    for case in CASES.values():
        reference = reference_of(case)
        told = {
            Site.INPUT: reference.at_input,
            Site.QUERY_KEY: reference.scores or reference.at_query_key,
            Site.SCORE: reference.scores,
            Site.VALUE: reference.at_value,
        }
        for site in case.sites:
            assert told[site] is not None, f"the reference of {case} says nothing of what acts at its {site}"


def test_every_option_of_every_encoding_has_another_value_in_some_case():
    """But for how parameters are drawn, noise in training, and models of several streams or other axes."""
    beside = {"std", "spread", "dropout", "streams", "dims", "class_token", "grid", "interpolation"}
    for name in encodings.names():
        for field in sorted({field.name for field in dataclasses.fields(encodings.build(name))} - beside):
            met = {getattr(case, field) for case in CASES.values() if case.name == name}
            assert len(met) > 1, (
                f"{name} is tested with {field}={met} alone: add {{{field!r}: another}} to `tried`, a class "
                f"attribute of {type(encodings.build(name)).__name__}"
            )


# --- one answer


ALIKE = ("sinusoidal", "xpos", "t5", "kerple", "sandwich", "tupe")
"""They act as a table, a rotation, a bias or columns of its own, of which another is read in every shape."""
EVERY = [(name, "dense") for name in ON_TEXTS]
EVERY += [(name, shape) for shape in list(STREAMS)[1:] for name in NAMES if name not in ALIKE]


@pytest.mark.parametrize(("name", "shape"), EVERY)
def test_token_by_token_by_rows_and_behind_a_tape_is_one_full_pass(name, shape, monkeypatch):
    made, at = model(ON_TEXTS[name], shape), tokens()
    gaps, rows = (heard(ON_TEXTS[name], positions) for positions in (GAPS, ROWS))
    windowed = made.extended(window=4, sinks=1, log_scale=True)
    with torch.no_grad():
        for reader, positions in ((made, None), (made, rows), (windowed, gaps)):
            one_full_pass(reader, at, positions, monkeypatch)


@pytest.mark.parametrize(("name", "shape"), [case for case in EVERY if case[1] in ("dense", "strict")])
def test_positions_of_rows_are_those_of_each_sequence_and_equal_rows_one_for_all(name, shape):
    made, at = model(ON_TEXTS[name], shape), tokens()
    with torch.no_grad():
        for positions in (torch.arange(N), heard(ON_TEXTS[name], GAPS)):
            torch.testing.assert_close(made(at, positions.expand(2, -1)), made(at, positions), **TIGHT)
        rows = heard(ON_TEXTS[name], ROWS)
        alone = torch.cat([made(at[b : b + 1], rows[b]) for b in range(2)])
        torch.testing.assert_close(made(at, rows), alone, **TIGHT)


@pytest.mark.parametrize("name", ON_TEXTS)
def test_gradients_reach_every_parameter_and_are_the_same_by_shared_positions_and_by_rows(name):
    same_gradients(lambda: model(ON_TEXTS[name], "straddling"), torch.arange(N))


@pytest.mark.parametrize("name", NAMES)
def test_a_text_of_one_token_a_batch_of_none_and_at_scores_a_text_of_none_are_answered(name):
    made = model(ON_TEXTS[name])
    sizes = [(0, 3), (1, 1)] + [(2, 0)] * (Site.SCORE in ON_TEXTS[name].sites)
    with torch.no_grad():
        for batch, length in sizes:
            assert made(torch.zeros(batch, length, dtype=torch.int64)).shape == (batch, length, VOCABULARY)


# --- what does not fit the memory at once


@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_without_gradients_memory_grows_with_the_length_and_not_with_its_square(name, monkeypatch):
    """Twice the length: about twice the memory at the peak, whatever the encoding, scores, biases and masks
    included. With one score held for every pair it would be four times."""
    lengths = 256, 512
    short, long = (peak_of(model(name, max_length=2 * n), n, None, monkeypatch) for n in lengths)
    assert long <= 2.1 * short


@pytest.mark.parametrize("name", ["alibi", "fire", "cope"])
def test_a_text_of_32768_tokens_is_evaluated_in_memory_that_grows_with_its_length(name, monkeypatch):
    """As it is evaluated, nothing made smaller. Of the pieces of queries all but the last, which has the most
    keys, are left out, or this would take minutes."""
    rows = attention_core.AttentionCore.attend

    def peak(length: int) -> int:
        config = TransformerConfig(Streams.dense(8), 1, 1, encodings.build(name), max_length=length)
        torch.manual_seed(0)
        made = LanguageModel(config, VOCABULARY).eval()

        def of_the_last(self, span, q, k, v, context):
            last = k.shape[-2] == length
            return rows(self, span, q, k, v, context) if last else torch.zeros_like(q[..., : v.shape[-1]])

        monkeypatch.setattr(attention_core.AttentionCore, "attend", of_the_last)
        with torch.no_grad(), MemoryWatch() as watch:
            made(torch.zeros(1, length, dtype=torch.int64))
        return watch.peak

    short, long = peak(16_384), peak(32_768)
    assert long <= 2.1 * short
    assert long < 32_768**2  # a quarter of what one float32 for every pair takes


def largest_of_a_step(name: str, length: int, batch: int) -> int:
    """Numbers of the largest tensor of a training step."""
    made = model(name)
    with MemoryWatch() as watch:
        made(tokens(batch, length)).square().mean().backward()
    return watch.largest


@pytest.mark.parametrize("batch", [1, 2])  # one sequence: less than a vector for every pair
@pytest.mark.parametrize("name", encodings.names(axes=1))
def test_no_tensor_of_a_training_step_has_more_than_a_number_for_every_pair_and_head(
    name, batch, monkeypatch
):
    """Where scores are made in the open, for every sequence too."""
    length = 128
    monkeypatch.setattr(encodings.fire.FireScore, "at_once", 2**12)
    openly = Site.SCORE in encodings.build(name).sites
    assert largest_of_a_step(name, length, batch) <= HEADS * length**2 * (batch if openly else 1)


@pytest.mark.parametrize(
    "name", [n for n in encodings.names(axes=1) if Site.SCORE in encodings.build(n).sites]
)
def test_without_gradients_no_batch_makes_more_scores_than_fit(name, monkeypatch):
    made, text, most = model(name), tokens(8, 256), HEADS * 256**2
    monkeypatch.setattr("sepnb.models.fast.pieces.AT_ONCE", most)
    monkeypatch.setattr(encodings.fire.FireScore, "at_once", most)
    with torch.no_grad():
        with MemoryWatch() as watch:
            together = made(text)
        assert watch.largest <= most
        alone = torch.cat([made(row[None]) for row in text[:2]])
    torch.testing.assert_close(together[:2], alone, **TIGHT)


@pytest.mark.parametrize("name", [n for n in encodings.names(axes=1) if not encodings.build(n).causal_only])
def test_without_a_mask_rows_of_queries_are_one_full_pass_too(name, monkeypatch):
    made, at = model(name, "straddling", causal=False), tokens()
    with torch.no_grad():
        full = made(at)
        made_of_rows = []
        rows = AttentionContext.rows
        monkeypatch.setattr(
            AttentionContext,
            "rows",
            lambda self, *ends, **how: made_of_rows.append(ends) or rows(self, *ends, **how),
        )
        monkeypatch.setattr("sepnb.models.fast.pieces.AT_ONCE", 100)
        torch.testing.assert_close(made(at), full, **TIGHT)
    # The fused kernel holds no scores, so that without a bias there is nothing to cut.
    assert bool(made_of_rows) == (Site.SCORE in encodings.build(name).sites)


# --- what cannot be combined


def test_two_encodings_that_both_make_the_scores_are_refused():
    config = TransformerConfig(Streams.dense(8), 1, 2, ("shaw", "cope"))
    refused("shaw and cope would each make the scores of a layer; keep one of them", LanguageModel, config, 5)


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

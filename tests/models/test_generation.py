"""Text that a model writes: a cache gives what the whole text gives, and draws follow the logits."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sepnb import encodings
from sepnb.models import LanguageModel
from sepnb.models.generation import drawn

from ..encodings.cases import IN_SHAPES, NAMES, STREAMS, TIGHT, model, tokens
from ..shared import refused

L = 8
SEPARATED = STREAMS["strict"][0]


def recomputed(reader: LanguageModel, text: torch.Tensor, n: int) -> torch.Tensor:
    """Greedy, with the whole text read for every token; where frequencies follow the length, that of the
    end."""
    end = text.shape[1] + n
    with torch.no_grad():
        for _ in range(n):
            whole = reader.make_cache(len(text), end) if reader.transformer.by_length else None
            text = torch.cat([text, reader(text, cache=whole)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return text


@pytest.mark.parametrize("name", NAMES)
def test_greedy_is_what_whole_recomputation_gives_for_every_encoding(name):
    """Of one with other options a cache is held against the whole text in `encodings/test_every_encoding`."""
    reader = model(name).eval()
    for prompt in (tokens(2, 1), tokens(3, 5)):
        assert torch.equal(reader.generate(prompt, 6), recomputed(reader, prompt, 6))


@pytest.mark.parametrize(("name", "shape"), [case for case in IN_SHAPES if case[1] != "dense"])
def test_and_in_every_shape_of_a_model(name, shape):
    reader, prompt = model(name, shape).eval(), tokens(2, 4)
    assert torch.equal(reader.generate(prompt, 6), recomputed(reader, prompt, 6))


EXTENDED = {
    "window": (("sinusoidal", "rope"), {"window": 3}),
    "sinks": (("sinusoidal", "rope"), {"window": 3, "sinks": 2}),
    "log scale": ("learned", {"extrapolator": "clamp", "log_scale": True}),
    "extrapolator": ("learned", {"extrapolator": "fourier", "window": 5}),
    "interpolate": ("learned", {"extrapolator": "interpolate", "length": 2 * L}),
    "extension": (("sinusoidal", "rope"), {"extension": encodings.YaRN(4.0, L)}),
    "by length": (("learned", "rope"), {"extrapolator": "clamp", "extension": encodings.DynamicNTK(4.0, L)}),
}


@pytest.mark.parametrize("mode", ["separated", "strict"])
@pytest.mark.parametrize("rule", EXTENDED)
def test_and_under_every_rule_of_evaluation_past_the_trained_length(built, text, mode, rule):
    encoding, how = EXTENDED[rule]
    reader = built(SEPARATED, encoding=encoding, mode=mode, max_length=L).extended(**how)
    assert torch.equal(reader.generate(text(2, L - 2), L), recomputed(reader, text(2, L - 2), L))


# --- the cache


@pytest.mark.parametrize("mode", ["separated", "strict"])
@pytest.mark.parametrize("window", [None, 3])
def test_a_cache_has_read_all_but_the_last_token_and_any_cut_gives_the_same_text(built, text, mode, window):
    reader, prompt = built(SEPARATED, mode=mode, window=window), text(2, 5)
    whole = reader.generate(prompt, 7)
    for cuts in ((7,), (0, 7), (3, 4), (1, 0, 0, 6)):
        cache, found = reader.make_cache(2), prompt
        for n in cuts:
            new = found if cache.read == 0 else found[:, -1:]
            found = torch.cat([found, reader.generate(new, n, cache=cache)[:, new.shape[1] :]], dim=1)
            assert cache.read == found.shape[1] - 1
        assert torch.equal(found, whole)
    with torch.no_grad():
        rest = torch.cat([whole[:, -1:], text(2, 2, seed=1)], dim=1)
        after = reader(rest, cache=cache)
        expected = reader(torch.cat([whole[:, :-1], rest], dim=1))[:, -3:]
    torch.testing.assert_close(after, expected, **TIGHT)


def test_a_text_goes_on_at_the_positions_after_those_that_a_cache_has_read(built, text):
    reader, prompt = built(SEPARATED), text(2, 6)
    at = torch.tensor([0, 3, 9, 10])
    cache = reader.make_cache(2)
    with torch.no_grad():
        reader(prompt[:, :4], at, cache)
        found, expected = reader.generate(prompt[:, 4:], 3, cache=cache), prompt
        for n in range(2, 5):
            there = torch.cat([at, torch.arange(11, 11 + n)])
            expected = torch.cat([expected, reader(expected, there)[:, -1].argmax(-1, keepdim=True)], dim=1)
    assert torch.equal(found, expected[:, 4:])


def test_what_a_cache_and_an_extrapolator_keep_of_it_can_be_read_by_a_training(built, text):
    reader, prompt = built(SEPARATED, encoding="learned", max_length=L), text(2, 5)
    reader = reader.extended("learned", steps=2)
    cache = reader.make_cache(2)
    written = reader.generate(prompt, L, cache=cache)
    reader(written[:, -1:], cache=cache).sum().backward()
    reader(written).sum().backward()


# --- what is drawn


def test_one_token_to_draw_from_is_the_greedy_one_also_where_logits_are_equal(built, text):
    reader = built(SEPARATED)
    for tied in (False, True):
        if tied:
            with torch.no_grad():
                reader.head.weight.zero_()
        greedy = reader.generate(text(2, 4), 5, top_k=3)
        for temperature in (1e-300, 1.0, 1e300):
            one = reader.generate(text(2, 4), 5, temperature=temperature, top_k=1)
            assert torch.equal(one, greedy)
        if not tied:
            assert torch.equal(reader.generate(text(2, 4), 5, temperature=1e-300), greedy)


@pytest.mark.parametrize(
    ("temperature", "top_k"), [(1.0, None), (0.4, None), (3.0, None), (1.5, 4), (1.0, 13)]
)
def test_tokens_are_drawn_with_the_probabilities_of_the_softmax(built, text, temperature, top_k):
    reader, many = built(SEPARATED), 4000
    with torch.no_grad():
        reader.head.weight.mul_(0.2)
        z = reader(text(1, 5))[0, -1] / temperature
    kept = z.topk(len(z) if top_k is None else top_k).indices
    expected = z[kept].softmax(-1) * many
    found = reader.generate(text(1, 5).expand(many, 5), 1, temperature=temperature, top_k=top_k, seed=3)
    counts = torch.bincount(found[:, -1], minlength=len(z))
    assert counts[kept].sum() == many
    common = expected >= 5  # the rest of a chi-square together, where there is one
    cells = [torch.cat([x[common], x[~common].sum()[None]]) for x in (counts[kept].double(), expected)]
    observed, wanted = (x if (~common).any() else x[:-1] for x in cells)
    assert len(wanted) >= 3 and chisquare(observed, wanted).pvalue > 0.001


@given(
    st.lists(st.floats(-50, 50), min_size=2, max_size=6),
    st.floats(0, 1, exclude_max=True),
    st.floats(1e-3, 1e3),
    st.integers(1, 6),
)
def test_what_is_drawn_is_where_a_number_falls_in_the_distribution(z, uniform, temperature, top_k):
    logits, k = torch.tensor([z], dtype=torch.float64), min(top_k, len(z))
    token = int(drawn(logits, torch.tensor([[uniform]], dtype=torch.float64), temperature, k))
    order = sorted(range(len(z)), key=lambda index: (-z[index], index))[:k]
    weights = torch.tensor([z[index] for index in order], dtype=torch.float64).div(temperature).softmax(-1)
    ends = weights.cumsum(-1).tolist()
    place = order.index(token)
    assert (ends[place - 1] if place else 0) - 1e-12 <= uniform <= ends[place] + 1e-12


def test_a_seed_is_a_text_whose_beginning_and_whose_rows_stay_and_torch_draws_on_as_before(built, text):
    reader, prompt = built(SEPARATED), text(1, 4).expand(5, 4)
    state = torch.get_rng_state()
    found = reader.generate(prompt, 9, temperature=1.0, seed=7)
    assert torch.equal(reader.generate(prompt, 9, temperature=1.0, seed=7), found)
    assert torch.equal(reader.generate(prompt[:2], 6, temperature=1.0, seed=7), found[:2, :10])
    assert len({tuple(row) for row in found.tolist()}) == 5
    assert not torch.equal(reader.generate(prompt, 9, temperature=1.0, seed=8), found)
    freely = [reader.generate(prompt, 9, temperature=1.0) for _ in range(2)]
    assert not torch.equal(*freely)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_what_one_row_reads_says_nothing_to_another(built, text, temperature):
    reader, prompt, how = built(SEPARATED), text(3, 4), {"temperature": temperature, "seed": 2}
    found = reader.generate(prompt, 6, **how)
    changed = torch.cat([prompt[:1], text(1, 4, seed=5), prompt[2:]])
    again = reader.generate(changed, 6, **how)
    assert torch.equal(again[[0, 2]], found[[0, 2]]) and not torch.equal(again[1, 4:], found[1, 4:])


# --- how it is read, and what is refused


def test_it_is_read_as_in_evaluation_and_every_module_gets_its_mode_back(built, text):
    reader = built(SEPARATED, dropout=0.5)
    greedy = reader.eval().generate(text(2, 4), 6)
    reader.train().transformer.blocks[0].eval()
    modes = [module.training for module in reader.modules()]
    assert torch.equal(reader.generate(text(2, 4), 6), greedy)
    assert [module.training for module in reader.modules()] == modes
    with torch.no_grad():
        reader.head.weight[3, 0] = torch.nan
    refused("the model's logits are not finite", reader.generate, text(2, 4), 6)
    assert [module.training for module in reader.modules()] == modes


@pytest.mark.parametrize("mode", ["separated", "strict"])
def test_a_position_without_a_row_is_refused_with_the_remedy_before_anything_is_computed(built, text, mode):
    reader, calls = built(SEPARATED, encoding="learned", mode=mode, max_length=L), []
    assert reader.generate(text(2, 5), 4).shape == (2, L + 1)  # the last token is read by nobody
    reader.transformer.register_forward_pre_hook(lambda *_: calls.append(1))
    cache = reader.make_cache(2)
    remedy = r"position 8 has no row in the learned table of 8 .*model.extended\(extrapolator=...\)"
    for kept in (None, cache):
        refused(remedy, reader.generate, text(2, 5), 5, cache=kept)
    assert not calls and cache.read == len(cache) == 0
    reader.generate(text(2, 5), 2, cache=cache)
    calls.clear()
    refused(remedy, reader.generate, text(2, 1), 3, cache=cache)
    assert not calls and cache.read == 6
    assert reader.extended("cyclic").generate(text(2, 5), 20).shape == (2, 25)


def test_a_length_that_a_cache_was_not_told_is_refused_before_anything_is_computed(built, text):
    reader = built(SEPARATED, encoding=("learned", "rope"))
    reader = reader.extended(extension=encodings.DynamicNTK(2.0, L))
    with pytest.raises(ValueError, match=r"say it beforehand: make_cache\(batch_size, length=...\)"):
        reader.generate(text(2, 4), 3, cache=reader.make_cache(2))
    cache = reader.make_cache(2, length=9)
    refused("position 9 is past the 9 positions", reader.generate, text(2, 4), 7, cache=cache)
    assert len(cache) == 0
    assert reader.generate(text(2, 4), 6, cache=cache).shape == (2, 10)


def test_tokens_a_cache_or_a_model_that_do_not_fit_are_refused(built, text, unhooked):
    reader, outside = built(SEPARATED), torch.full((2, 3), 13)
    points = built(SEPARATED, encoding=encodings.Sinusoidal(dims=2), axes=2)
    refused(r"tokens have shape \[2, 0\]; give at least", reader.generate, outside[:, :0], 2)
    refused("token 13 is outside the vocabulary 0 to 12", reader.generate, outside, 2)
    cache = reader.make_cache(3)
    refused("the cache holds 3 sequences, the input has 2", reader.generate, text(2, 3), 2, cache=cache)
    refused("this model is not causal", built(SEPARATED, causal=False).generate, text(2, 3), 2)
    refused("on 2 axes no position comes after another", points.generate, text(2, 3), 2)

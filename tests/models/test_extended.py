"""Another rule of evaluation: what it says, and that the weights and the original stay what they were."""

import copy
import itertools

import pytest
import torch

from sepnb import extrapolators
from sepnb.models import LanguageModel, extension
from sepnb.streams import Streams
from sepnb.training import next_token_losses

from ..encodings.drawn import TIGHT
from ..shared import refused
from .plain import Plain

L = 8
DENSE, SEPARATED = Streams.dense(32), Streams(pos=8, sem=24)
MODES = {
    "dense": {"streams": DENSE},
    "separated": {"streams": SEPARATED},
    "strict": {"streams": SEPARATED, "mode": "strict"},
}
OPTIONS = {"learned": {"steps": 3}, "interpolate": {"length": 2 * L}}


class Interpolation:
    """Position interpolation, for a test: every frequency divided by one factor."""

    def __call__(self, inv_freq, *, dim, base, length):
        return inv_freq / 4, 1.0


RULES = {
    "extrapolator": {"extrapolator": "clamp"},
    "literal": {"extrapolator": "sinusoidal", "form": "literal"},
    "extension": {"extension": Interpolation()},
    "window": {"window": 3, "sinks": 1},
    "log scale": {"log_scale": True},
}


def make(built, mode: str, encoding="learned", **fields) -> LanguageModel:
    fields = {**MODES[mode], "encoding": encoding, "max_length": L, **fields}
    return built(fields.pop("streams"), **fields)


# --- the original


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("mode", MODES)
def test_the_original_is_untouched_and_not_one_number_is_copied(built, text, mode, rule):
    model, tokens = make(built, mode, ("learned", "rope"), dropout=0.1, tie_embeddings=True), text(2, L)
    model.train()
    torch.manual_seed(0)
    before = model(tokens)
    names = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    other = model.extended(**RULES[rule])
    assert sorted(p.data_ptr() for p in other.parameters()) == sorted(names.values())
    assert {name: p.data_ptr() for name, p in model.named_parameters()} == names
    assert all(module.training for module in model.modules())
    assert not any(module.training for module in other.modules())
    assert other.head.weight is model.head.weight is model.embedding.weight
    other(tokens)
    torch.manual_seed(0)
    assert torch.equal(model(tokens), before)


@pytest.mark.parametrize("mode", MODES)
def test_a_step_of_the_original_moves_what_was_extended_and_its_table_where_it_is_extended_anew(
    built, text, mode
):
    model, tokens = make(built, mode), text(2, L + 4)
    other = model.extended("clamp")
    with torch.no_grad():
        before = other(tokens)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    next_token_losses(model, tokens[:, : L + 1]).mean().backward()
    optimiser.step()
    with torch.no_grad():
        after = other(tokens)
        assert not torch.allclose(after, before)
        anew = model.extended("clamp")
        assert not torch.equal(anew(tokens), after)
        assert torch.equal(anew(tokens[:, :L]), model.eval()(tokens[:, :L]))


# --- codes past the trained length


PLACES = list(itertools.product(MODES, ("learned", "sinusoidal")))
EVERY = list(itertools.product(extrapolators.METHODS, extrapolators.FORMS))


@pytest.mark.parametrize(
    ("mode", "encoding", "method", "form"),
    [
        *(("strict", "learned", *one) for one in EVERY),
        *((*place, "fourier", "corrected") for place in PLACES if place != ("strict", "learned")),
    ],
)
def test_an_extrapolator_is_a_longer_table(built, text, mode, encoding, method, form):
    """The model with the extrapolated rows written out, as a learned table twice as long."""
    options, tokens = OPTIONS.get(method, {}), text(2, 2 * L)
    model = make(built, mode, encoding)
    longer = make(built, mode, "learned", max_length=2 * L)
    table = model.transformer.input_encodings[0](torch.arange(L)).detach()
    rows = extrapolators.extrapolate(table, torch.arange(2 * L), method, form=form, **options)
    longer.load_state_dict(dict(model.state_dict()) | {"transformer.input_encodings.0.table": rows})
    other, there = model.extended(method, form, **options), torch.arange(2 * L)
    for positions in (None, there, torch.stack([there, there.flip(0)])):
        torch.testing.assert_close(other(tokens, positions), longer(tokens, positions), **TIGHT)


@pytest.mark.parametrize(("mode", "encoding"), PLACES)
@pytest.mark.parametrize("method", ["sinusoidal", "learned", "clamp"])
def test_a_corrected_extrapolator_leaves_the_logits_inside_the_window_bit_for_bit(
    built, text, method, mode, encoding
):
    model = make(built, mode, encoding)
    other = model.extended(method, **OPTIONS.get(method, {}))
    assert torch.equal(other(text(2, L)), model(text(2, L)))


# --- what a query sees


def visible(n: int, window: int, sinks: int) -> torch.Tensor:
    """Query by query and key by key."""
    seen = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        for j in range(i + 1):
            seen[i, j] = i - j < window or j < sinks
    return seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("more", "window", "sinks"),
    [
        *(((), *sizes) for sizes in ((1, 0), (3, 0), (3, 2), (1, 4), (5, 1))),
        *(((name,), 3, 2) for name in ("rope", "alibi")),
    ],
)
def test_a_window_is_the_mask_of_the_last_tokens_and_the_sinks(built, text, mode, more, window, sinks):
    model, tokens = make(built, mode, ("sinusoidal", *more)), text(2, 11)
    expected = Plain(model)(tokens, seen=visible(11, window, sinks))
    other = model.extended(window=window, sinks=sinks)
    torch.testing.assert_close(other(tokens), expected, **TIGHT)
    gaps = torch.tensor([0, 2, 3, 9, 10, 11, 30, 31, 40, 41, 60])
    expected = Plain(model)(tokens, gaps, seen=visible(11, window, sinks))
    torch.testing.assert_close(other(tokens, gaps), expected, **TIGHT)  # it counts tokens, not positions


# --- rules together


def test_rules_add_up_in_any_order_and_each_can_be_given_anew(built, text):
    model, tokens = make(built, "strict", ("learned", "rope")), text(2, 2 * L)
    rules = [RULES["extrapolator"], RULES["extension"], RULES["window"], RULES["log scale"]]
    together = model.extended(**{key: value for rule in rules for key, value in rule.items()})(tokens)
    for order in (rules, rules[::-1]):
        other = model
        for rule in order:
            other = other.extended(**rule)
        assert torch.equal(other(tokens), together)
    again = model.extended("zero").extended("cyclic", form="literal")
    assert torch.equal(again(tokens), model.extended("cyclic", form="literal")(tokens))
    wider = model.extended("zero", window=2, sinks=1).extended(window=6)
    assert torch.equal(wider(tokens), model.extended("zero", window=6)(tokens))
    refused("the two are one rule, also where a window is set already; give w", wider.extended, sinks=1)


# --- refusals


@pytest.mark.parametrize("mode", MODES)
def test_a_position_past_the_table_is_refused_by_name_and_with_the_remedies(built, text, mode):
    model = make(built, mode)
    message = (
        r"position 9 has no row in the learned table of 8 positions \(0 to 7\); train with max_length of at "
        r"least 10, .* name one of sepnb\.extrapolators\.METHODS: model\.extended\(extrapolator=\.\.\.\)"
    )
    for arguments in (
        (text(2, 10),),
        (text(2, 2), torch.tensor([9, 3])),
        (text(2, 2), torch.tensor([[0, 1], [9, 2]])),
    ):
        refused(message, model, *arguments)
    cache = model.make_cache(2)
    model(text(2, 7), cache=cache)
    refused("position 8 has no row", model, text(2, 2), cache=cache)
    assert model.extended("clamp")(text(2, 10)).isfinite().all()


@pytest.mark.parametrize(
    ("encoding", "rule", "message"),
    [
        ("rope", {"extrapolator": "clamp"}, "no encoding at the input, .* RoPE takes extension=..."),
        ("learned", {"extension": Interpolation()}, "and a sinusoid have them, and this model has none"),
        ("xpos", {"extension": Interpolation()}, "xPos has a decay of the distance beside them"),
        ("learned", {"sinks": 2}, "sinks=2 without a window: .* give window too"),
        ("learned", {"n_components": 4}, "'n_components' is an option of an extrapolator; name one"),
        ("learned", {"extrapolator": "clamp", "terms": 4}, "clamp has no option 'terms'"),
    ],
)
def test_a_rule_that_a_model_cannot_follow_is_refused_at_once(unhooked, built, encoding, rule, message):
    refused(message, make(built, "dense", encoding).extended, **rule)


# --- fitted once


@pytest.fixture
def fits(monkeypatch) -> list[str]:
    """The methods of the continuations that were fitted, by any model."""
    found, fit = [], extension.Continuation

    def counted(table, extrapolator, form):
        found.append(extrapolator.name)
        return fit(table, extrapolator, form)

    monkeypatch.setattr(extension, "Continuation", counted)
    return found


@pytest.mark.parametrize("mode", ["separated", "strict"])
def test_a_continuation_is_fitted_where_a_model_is_extended_and_never_again(built, text, fits, mode):
    model = built(SEPARATED, mode=mode, encoding="learned", max_length=4).extended("fourier", n_components=2)
    with torch.no_grad():
        cache, tokens = model.make_cache(2), text(2, 9)
        pieces = [model(tokens[:, n : n + 1], cache=cache) for n in range(9)]
        torch.testing.assert_close(torch.cat(pieces, 1), model(tokens), rtol=0, atol=1e-10)
    model(tokens).sum().backward()
    assert fits == ["fourier"]


def test_a_copy_and_a_moved_model_fit_their_own_continuation(built, text, fits):
    model = built(SEPARATED, encoding="learned", max_length=4).extended("cyclic")
    tokens = text(2, 9)
    with torch.no_grad():
        twin = copy.deepcopy(model)
        assert torch.equal(twin(tokens), model(tokens)) and len(fits) == 2
        before = twin(tokens)
        twin.float()
        torch.testing.assert_close(twin(tokens).double(), before, rtol=0, atol=1e-4)
        assert len(fits) == 3

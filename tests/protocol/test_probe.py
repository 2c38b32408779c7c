"""The verdicts of a probe, on models of which it is known what they do with a long text."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from sepnb.evaluation import evaluate
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.ladder_methods import METHODS as LADDER
from sepnb.experiments.ladder_methods import fits
from sepnb.experiments.methods import model_config
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.protocol import probe
from sepnb.protocol.adapters import reader
from sepnb.protocol.readings import Plan, read, windows
from sepnb.streams import Streams

from ..shared import refused
from .shapes import EVERY, TIMES, L, N, failing, looking_back, repeating

CHOSEN = {"trained_length": L, "times": TIMES}
FAR, NEAR = 3 * L, L // 2


def words(card) -> dict[str, str]:
    return {name: one.verdict for name, one in card.four.items()}


def small(encoding: str, **changes) -> LanguageModel:
    torch.manual_seed(0)
    streams = Streams.dense(16)
    config = TransformerConfig(streams, n_layers=1, n_heads=2, encoding=encoding, max_length=L, **changes)
    return LanguageModel(config, vocab_size=2 * EVERY)


# --- the four verdicts


@pytest.mark.parametrize(
    ("period", "looks", "survives", "uses"),
    [
        (FAR, FAR, "held", "held"),
        (NEAR, NEAR, "held", "refuted"),  # it uses context, and none that is far back
        (FAR, None, "held", "not testable here"),  # it uses none at all
    ],
)
def test_what_a_model_looks_at_decides_whether_it_uses_far_context(period, looks, survives, uses):
    card = probe(looking_back(looks), repeating(period), **CHOSEN)
    assert words(card) == {"survives": survives, "uses": uses, "quality": "not judged", "price": "not judged"}


def test_being_confused_past_the_trained_length_is_no_use_of_far_context():
    """Another passage there changes the losses, and so does leaving it out, to the better."""
    card = probe(failing(lambda at: at >= L, NEAR), repeating(NEAR), **CHOSEN)
    assert (card.survives.verdict, card.uses.verdict) == ("refuted", "refuted")
    assert card.survives.numbers["gap/4x"]["low"] > 0.03


def test_a_model_that_only_counts_tokens_gets_no_verdict():
    card = probe(lambda tokens: torch.zeros(*tokens.shape, 2 * EVERY), repeating(FAR), **CHOSEN)
    assert set(words(card).values()) == {"not testable here", "not judged"}
    assert "it has learned nothing" in card.survives.why


def test_a_reference_is_read_on_the_same_tokens_and_decides_quality_and_price():
    text, far = repeating(FAR), looking_back(FAR)
    same = probe(far, text, **CHOSEN, reference=far)
    assert words(same) == dict.fromkeys(("survives", "uses", "quality", "price"), "held")
    assert same.price.numbers["difference"]["mean"] == 0.0
    # Behind its window the reference finds no far token, so that its quality is that of the blind one.
    assert words(probe(looking_back(None), text, **CHOSEN, reference=far))["quality"] == "held"
    worse = probe(looking_back(None), repeating(NEAR), **CHOSEN, reference=looking_back(NEAR))
    assert (worse.quality.verdict, worse.price.verdict) == ("refuted", "refuted")


def test_a_table_that_ends_is_read_as_far_as_it_goes():
    card = probe(small("learned"), repeating(FAR), **CHOSEN)
    assert card.survives.verdict == card.uses.verdict == card.axes["index"].verdict == "not testable here"
    assert card.meta["read_up_to"] == L
    longer = probe(small("learned").extended("clamp"), repeating(FAR), **CHOSEN)
    assert longer.meta["read_up_to"] == N


# --- the axes


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (lambda at: at >= L, {"index": "refuted", "length": "held", "distance": "not testable here"}),
        (lambda at: at < -1, {"index": "held", "length": "held", "distance": "held"}),
        (lambda at: torch.arange(len(at)) >= L, {"index": "held", "length": "refuted", "distance": "held"}),
        (lambda at: at - at[0] >= L, {"index": "held", "length": "held", "distance": "refuted"}),
    ],
)
def test_each_axis_is_told_apart_from_the_others(where, found):
    card = probe(failing(where), repeating(4), **CHOSEN)
    assert {name: one.verdict for name, one in card.axes.items()} == found


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (looking_back(FAR), "takes no positions"),
        (lambda tokens, positions=None: looking_back(FAR)(tokens), "change nothing"),
        (small("none"), "change nothing"),
    ],
)
def test_without_positions_the_axes_are_not_judged_and_the_card_says_why(model, why):
    card = probe(model, repeating(FAR), **CHOSEN)
    for one in card.axes.values():
        assert one.verdict == "not judged" and why in one.why
    assert any(why in limit for limit in card.meta["limits"])


@pytest.mark.parametrize("name", LADDER)
def test_every_model_from_no_position_to_all_columns_is_probed_and_its_axes_where_it_has_positions(name):
    torch.manual_seed(0)
    size = lm.SIZES["smoke" if fits(name, "smoke") else "laptop"]
    model = LanguageModel(model_config(name, size))
    card = probe(model, repeating(FAR), **CHOSEN)
    judged = {one.verdict != "not judged" for one in card.axes.values()}
    assert judged == {name not in ("none", "forgetting")}


def test_a_rule_that_follows_the_length_is_read_at_each_length_by_itself():
    """As dynamic frequencies are: in a longer text the model says something else of the same beginning."""

    def model(tokens):
        longer = max(0, tokens.shape[1] // L - 1)
        return looking_back(NEAR)(tokens) / (1 + longer)

    plan = Plan(windows(repeating(NEAR), N), L, TIMES, N)
    found = read(reader(model), None, plan, device="cpu")
    assert found.follows_length
    for start, stop in pairwise(plan.borders):
        alone = evaluate(reader(model), plan.tokens[:, : stop + 1]).bits
        assert np.array_equal(found.native[:, start:stop], alone[:, start:stop])


# --- what it leaves as it was, and what it refuses


def test_the_model_comes_back_as_it_was_and_progress_ends_at_its_estimate():
    model = small("rope", dropout=0.5).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    seen = []
    card = probe(model, repeating(FAR), **CHOSEN, progress=lambda done, total: seen.append((done, total)))
    again = probe(model, repeating(FAR), **CHOSEN)
    assert card.to_json() == again.to_json(), "no dropout"
    assert model.training and all(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    done, totals = zip(*seen, strict=True)
    assert len(set(totals)) == 1 and list(done) == sorted(done)
    assert done[-2] == totals[0], "what is read is what was foreseen"


class Peeking(nn.Module):
    def forward(self, tokens):
        following = torch.cat([tokens[:, 1:], tokens[:, -1:]], dim=1)
        return 5.0 * nn.functional.one_hot(following, 2 * EVERY).float()


def peeking(strength: float, start: int = 0, further: int = 1):
    """A model that knows partners, and from a place on has heard of the token `further` on."""
    right = looking_back(None)

    def model(tokens):
        logits = right(tokens)
        ahead = nn.functional.one_hot(tokens[:, start + further :], 2 * EVERY)
        logits[:, start : tokens.shape[1] - further] += strength * ahead
        return logits

    return model


@pytest.mark.parametrize("strength", [12.0, 0.1])
@pytest.mark.parametrize(("start", "further"), [(0, 1), (L, 1), (2 * L, 1), (0, 5), (L, 3)])
@pytest.mark.parametrize("length", [L, 64])
def test_a_later_token_that_changes_one_answer_at_any_length_is_seen(strength, start, further, length):
    """Over half a trained length the mean hides it, the more the longer it is."""
    text = repeating(NEAR, windows=30 * length // L)
    with pytest.raises(ValueError, match=r"looks at later tokens: of .* bits; give"):
        probe(peeking(strength, start, further), text, trained_length=length, times=TIMES)


def test_a_model_or_a_reference_that_sees_later_tokens_is_refused_however_little_they_change():
    torch.manual_seed(0)
    attention = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(2 * EVERY, 16), attention, nn.Linear(16, 2 * EVERY))
    with torch.no_grad():
        model[2].weight.mul_(0.01)
    refused("looks at later tokens", probe, model, repeating(NEAR), **CHOSEN)
    how = {"reference": peeking(0.1), **CHOSEN}
    refused("looks at later tokens: of 16", probe, looking_back(NEAR), repeating(NEAR), **how)


def spoilt(value: float):
    def model(tokens):
        logits = torch.zeros(*tokens.shape, 2 * EVERY)
        logits[:, 3, 5] = value
        return logits

    return model


@pytest.mark.attack("models that return something else than logits")
@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (spoilt(float("nan")), ValueError, "has nan among its logits, first after token 4 of 16"),
        (spoilt(float("inf")), ValueError, "has inf among its logits"),
        (lambda tokens: torch.zeros(tokens.shape), ValueError, r"\[B, N, V\]"),
        (lambda tokens: torch.zeros(*tokens.shape, 3).long(), ValueError, "floating"),
        (lambda tokens: {"logits": 1}, TypeError, r"hf\(model\)"),
        (lambda tokens: torch.zeros(*tokens.shape, 9), ValueError, "token 15, <lambda> knows those below 9"),
        ("gpt2", TypeError, "a callable"),
    ],
)
def test_a_model_that_is_none_is_refused_with_a_remedy(model, error, message):
    refused(message, probe, model, repeating(FAR), error=error, **CHOSEN)


def never(tokens):
    raise AssertionError("something was read")


@pytest.mark.attack("bad arguments of a probe")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": repeating(FAR)[:-1]}, "1920 tokens, which is 29 windows of 64"),
        ({"text": np.full(2000, -1)}, "text holds -1"),
        ({"trained_length": 8}, "trained_length is 8"),
        ({"times": (2, 1)}, "rising"),
        ({"model": small("learned"), "trained_length": 20}, "a table of 16 positions"),
        ({"model": small("rope"), "text": np.full(2000, 16)}, "knows those below 16"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_read(changes, message):
    refused(message, probe, **{"model": never, "text": repeating(FAR, windows=40), **CHOSEN} | changes)

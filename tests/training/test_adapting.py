"""One part of a model is tuned: it moves, and of the other not one bit does."""

import copy

import numpy as np
import pytest
import torch

from sepnb.data.text import drawn_windows
from sepnb.encodings import NTKByParts, YaRN
from sepnb.models import Attention, LanguageModel, TransformerConfig, load, save
from sepnb.models.extension import extension_of
from sepnb.models.parts import reading_maps
from sepnb.streams import Streams
from sepnb.training import Diverged, TrainingConfig, adapt
from sepnb.training.adapting import low_rank, mask_of, rank_for, tune
from sepnb.training.batch import Batch
from sepnb.training.positions import DrawnFactors

from ..encodings.drawn import loud
from ..models.trained import weights

L, LENGTH, FACTORS = 8, 12, (2, 3)
SLOWED = {"extension": NTKByParts(2.0, L, 0.1, 1), "log_scale": True}
TEXT = np.random.default_rng(0).integers(13, size=400).astype(np.uint8)
HOW = {"length": LENGTH, "steps": 3, "learning_rate": 0.01, "batch_size": 2, "seed": 5}
SHAPES = {
    "separated": {},
    "constant": {"pos_stream": "constant"},
    "strict": {"mode": "strict", "readout": "both"},
    "joint maps": {"split": set(), "norm_kind": "rms"},
    "three streams": {"streams": Streams(row=8, col=8, sem=16)},
    "table": {"encoding": ("learned", "rope"), "max_length": LENGTH},
}


def made(shape: str = "separated", vocabulary: int = 13, slowed: bool = True, **fields) -> LanguageModel:
    told = {"streams": Streams(pos=8, sem=24), "encoding": "sinusoidal", "max_length": L}
    told |= SHAPES.get(shape, {}) | fields
    model = loud(LanguageModel(TransformerConfig(n_layers=2, n_heads=4, **told), vocabulary)).eval()
    return model.extended(**SLOWED) if slowed else model


def same(one: LanguageModel, other: LanguageModel) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


# --- what moves


EVERY = [(shape, part, ()) for shape in SHAPES for part in ("position", "content", "all")]
DRAWN = [(shape, part, FACTORS) for shape, part, _ in EVERY if shape != "table" and part != "all"]


@pytest.mark.parametrize(("shape", "part", "factors"), [*EVERY, *DRAWN])
def test_the_part_moves_and_every_other_number_stays_to_the_bit_and_so_does_the_model(shape, part, factors):
    model = made(shape).train()
    before, rules = weights(model), model.transformer.rules
    tuned = adapt(model, TEXT, part=part, factors=factors, **HOW)
    masks = mask_of(model, part)
    for name, after in tuned.named_parameters():
        mask = torch.ones_like(after, dtype=torch.bool) if masks is None else masks[name]
        moved = after != before[name]
        assert not (moved & ~mask).any() and (moved.any() or not mask.any()), name
        assert after.requires_grad and (mask.any() or after.grad is None)
    assert all(torch.equal(one, before[name]) and one.grad is None for name, one in model.named_parameters())
    assert model.training and not any(module.training for module in tuned.modules())
    assert tuned.transformer.rules == model.transformer.rules == rules


def test_a_model_is_tuned_as_it_reads_on_windows_that_the_seed_draws():
    model, plain = made(), made(slowed=False)
    sizes = {key: HOW[key] for key in ("batch_size", "length", "seed", "steps")}
    config, by_hand = TrainingConfig(3, 2, LENGTH, 0.01, weight_decay=0.0), copy.deepcopy(model)
    mask = model.parts()["position"]
    losses = tune(by_hand, drawn_windows([TEXT], "it", **sizes), config, mask)
    assert same(adapt(model, TEXT, **HOW), by_hand)
    assert same(adapt(model, torch.from_numpy(TEXT), **HOW), by_hand)
    assert losses != tune(plain, drawn_windows([TEXT], "it", **sizes), config, mask)


@pytest.mark.parametrize("factors", [(), FACTORS], ids=["one factor", "drawn factors"])
def test_a_seed_repeats_and_another_differs(factors):
    model = made()
    one, again, other = (adapt(model, TEXT, factors=factors, **HOW | {"seed": seed}) for seed in (5, 5, 6))
    assert same(one, again) and not same(one, other)


def test_tokens_above_a_byte_are_tokens():
    model, text = made(vocabulary=1000), 256 + np.arange(300) % 700
    tuned = adapt(model, text, part="content", **HOW)
    moved = (tuned.embedding.weight != model.embedding.weight).any(-1).nonzero().flatten()
    assert len(moved) > LENGTH and moved.min() >= 256


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("part", ["position", "content"])
def test_what_is_frozen_whole_has_no_gradient_and_what_is_frozen_in_part_a_gradient_of_zero(shape, part):
    model, whole, partly = made(shape), set(), set()
    masks, parameters = model.parts()[part], dict(model.named_parameters())

    def look(step: int) -> None:
        for name, parameter in parameters.items():
            if not masks[name].any():
                assert parameter.grad is None and not parameter.requires_grad
                whole.add(name)
                continue
            assert (parameter.grad[masks[name]] != 0).any()
            if not masks[name].all():
                assert (parameter.grad[~masks[name]] == 0).all()
                partly.add(name)

    windows = (TEXT[at : at + 2 * (LENGTH + 1)].reshape(2, -1).astype(np.int64) for at in (0, 50, 90))
    config = TrainingConfig(3, 2, LENGTH, 0.01, weight_decay=0.0)
    tune(model, windows, config, masks, on_step=look)
    assert whole and all("query_key" in name for name in partly) and partly
    assert all(parameter.requires_grad for parameter in parameters.values())
    model(torch.zeros(1, 3, dtype=torch.int64)).sum().backward()
    assert (parameters[min(partly)].grad[~masks[min(partly)]] != 0).any(), "the hooks are gone"


def test_what_was_frozen_before_stays_frozen():
    model = made()
    before = weights(model)
    model.head.weight.requires_grad_(False)
    windows = iter([TEXT[: LENGTH + 1].reshape(1, -1).astype(np.int64)])
    tune(model, windows, TrainingConfig(1, 1, LENGTH, 0.01, weight_decay=0.0), model.parts()["content"])
    assert not model.head.weight.requires_grad and torch.equal(model.head.weight, before["head.weight"])
    assert model.embedding.weight.requires_grad


# --- drawn factors


def watched(model: LanguageModel) -> list[tuple[float, list[int]]]:
    """The factor and the positions of every call of a model, and of its copies."""
    seen: list = []

    def look(module: LanguageModel, arguments: tuple) -> None:
        seen.append((extension_of(module).factor, arguments[1].tolist()))

    model.register_forward_pre_hook(look)
    return seen


@pytest.mark.parametrize("extension", [NTKByParts(5.0, L, 0.1, 1), YaRN(5.0, L, 1, 0.1)], ids=str)
@pytest.mark.parametrize("encoding", ["sinusoidal", ("sinusoidal", "rope")], ids=str)
def test_every_step_has_the_factor_and_the_positions_that_its_seed_draws(encoding, extension):
    model = made(encoding=encoding, slowed=False).extended(extension=extension)
    seen = watched(model)
    tuned = adapt(model, TEXT, factors=FACTORS, **HOW | {"steps": 30})
    draws = DrawnFactors(FACTORS, L).draws(length=LENGTH, seed=HOW["seed"], steps=30)
    assert seen == [(factor, list(range(start, start + LENGTH))) for factor, start in draws]
    assert {factor for factor, _ in seen} == set(FACTORS) and len({at[0] for _, at in seen}) > 5
    assert all(at[-1] < factor * L for factor, at in seen)
    assert tuned.transformer.rules == model.transformer.rules, "in the end the factor is what it was"
    assert extension_of(tuned).factor == 5.0


def test_after_a_divergence_factor_and_gradients_are_what_they_were():
    model = made()
    rules = model.transformer.rules
    config = TrainingConfig(9, 2, LENGTH, 0.01, weight_decay=0.0, positions=DrawnFactors(FACTORS, L))
    torch.nn.init.constant_(model.head.weight, torch.nan)
    batch = Batch(np.zeros((2, LENGTH), np.int64), np.ones((2, LENGTH), np.int64), np.arange(LENGTH))
    with pytest.raises(Diverged):
        tune(model, iter([batch] * 9), config, model.parts()["position"], seed=5)
    assert model.transformer.rules == rules and extension_of(model) == SLOWED["extension"]
    assert all(parameter.requires_grad for parameter in model.parameters())


# --- what is refused


@pytest.mark.parametrize(
    ("model", "how", "message"),
    [
        ({"streams": Streams.dense(32)}, {}, r"the position part of this model is empty.*or part='all'"),
        ({}, {"text": TEXT[:LENGTH]}, "the text has 12 tokens, and a window of length 12 needs one more"),
        ({}, {"text": TEXT[None]}, r"text must be 1-D and hold integers, got shape \(1, 400\) of uint8"),
        # One token that no window of this seed reads is refused like all: before anything is computed.
        ({}, {"text": np.append(TEXT, 13)}, "token 13, which is outside the vocabulary 0 to 12; give tokens"),
        ({}, {"factors": (1, 2)}, "length is 12, and 1 times 8 positions are 8: .* factors of at least 2"),
        ({"slowed": False}, {"factors": (2,)}, r"this model is read with None; give model\.extended\(exten"),
    ],
)
def test_what_cannot_be_tuned_is_refused_with_a_remedy(model, how, message):
    with pytest.raises((ValueError, TypeError), match=message):
        adapt(made(**model), **{"text": TEXT} | HOW | how)


def test_weight_decay_would_change_what_is_to_stay():
    config = TrainingConfig(1, 2, LENGTH, 0.01, weight_decay=0.1)
    model = made()
    with pytest.raises(ValueError, match=r"weight_decay is 0\.1, and it would change .*; give 0"):
        tune(model, iter([]), config, model.parts()["position"])


# --- of low rank


def changed(model: LanguageModel, rank: int = 2, seed: int = 3) -> dict[str, torch.Tensor]:
    """The model trained for a few steps; B A of queries and keys, by the name of the map they change."""
    products, tokens = {}, torch.from_numpy(TEXT[:60].astype(np.int64)).reshape(5, 12)
    before = model(tokens)
    with low_rank(model, rank, seed):
        assert torch.equal(model(tokens), before), "at the start it computes what it did"
        windows = (TEXT[at : at + 2 * (LENGTH + 1)].reshape(2, -1).astype(np.int64) for at in (0, 50, 90))
        reader = model.extended(**SLOWED)  # shares what is trained
        tune(reader, windows, TrainingConfig(3, 2, LENGTH, 0.01, weight_decay=0.0))
        for name, module in model.named_modules():
            if hasattr(module, "parametrizations"):
                change = module.parametrizations["weight"][0]
                pairs = zip(change.up, change.down, strict=True)
                products[f"{name}.weight"] = torch.cat([(up @ down).detach() for up, down in pairs])
        inside = model(tokens)
    assert torch.equal(model(tokens), inside) and not torch.equal(inside, before)
    return products


@pytest.mark.parametrize(
    "fields",
    [
        {"streams": Streams.dense(32), "encoding": "rope"},
        {"mode": "strict"},
        {"n_kv_heads": 2, "streams": Streams(pos=16, sem=16)},
    ],
    ids=["dense", "strict", "shared heads"],
)
def test_a_change_of_low_rank_is_added_to_queries_and_keys_and_to_nothing_else(fields, tmp_path):
    model = made(slowed=False, **fields).double()
    before, keys = weights(model), list(model.state_dict())
    products = changed(model)
    assert products.keys() == {name for name, mask in reading_maps(model).items() if mask.any()}
    for name, after in model.named_parameters():
        assert after.requires_grad
        if name not in products:
            assert torch.equal(after, before[name])
            continue
        change = after.detach() - before[name]
        torch.testing.assert_close(change, products[name], rtol=0, atol=1e-12)
        shared, d = model.config.heads_per_kv, model.config.head_width
        queries = len(change) * shared // (shared + 1)
        assert queries % d == 0
        ranks = [int(torch.linalg.matrix_rank(one, atol=1e-9)) for one in change.tensor_split([queries])]
        assert ranks == [2, 2]
    assert list(model.state_dict()) == keys
    save(model, tmp_path / "model")
    assert same(load(tmp_path / "model"), model)


def test_a_seed_draws_the_change_of_low_rank():
    models = [made(slowed=False) for _ in range(3)]
    one, again, other = (changed(model, seed=seed) for model, seed in zip(models, (3, 3, 4), strict=True))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)
    with pytest.raises(ValueError, match="rank is 0"), low_rank(models[0], 0, 1):
        pass
    assert all(parameter.requires_grad for parameter in models[0].parameters())


@pytest.mark.parametrize("numbers", [1, 500, 1234, 5000])
def test_a_rank_is_that_of_so_many_numbers(numbers):
    model = made(mode="strict", slowed=False)
    rank = rank_for(model, numbers)
    of = {}
    for r in (1, 2, rank):
        with low_rank(model, r, 0):
            of[r] = sum(one.numel() for one in model.parameters() if one.requires_grad)
    each = of[2] - of[1]
    assert of[rank] == rank * each
    assert rank == 1 if numbers <= each else abs(of[rank] - numbers) <= each / 2
    assert sum(isinstance(module, Attention) for module in model.modules()) == 2

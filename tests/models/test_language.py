"""The language model: it starts as declared, and it refuses what it cannot answer."""

import copy
import math

import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import next_token_losses

DENSE, WHOLE = Streams.dense(32), Streams(pos=8, sem=24)


@pytest.mark.parametrize("streams", [DENSE, WHOLE], ids=repr)
def test_the_start_is_the_declared_one(streams):
    torch.manual_seed(0)
    wide = Streams(**{name: 8 * width for name, width in streams.items})
    config = TransformerConfig(wide, 2, 4, "sinusoidal", bias=True, embedding_std=0.3)
    model = LanguageModel(config)
    assert model.embedding.weight.std().item() == pytest.approx(0.3, rel=0.03)
    assert model.embedding.weight.mean().abs() < 0.01
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear):
            writes = ".output." in name or ".down." in name
            expected = module.in_features**-0.5 * (0.5 if writes else 1.0)  # (2 * 2 layers)^-1/2
            assert module.weight.std().item() == pytest.approx(expected, rel=0.06), name
            assert module.bias is None or module.bias.abs().max() == 0, name
    assert model.head.bias is None


def test_an_untrained_model_is_not_far_from_uniform_and_two_of_a_seed_are_the_same(text):
    def loss(seed: int) -> float:
        torch.manual_seed(seed)
        model = LanguageModel(TransformerConfig(WHOLE, 2, 4, "sinusoidal"))
        return next_token_losses(model, text(8, 33)).mean().item()

    assert loss(0) == loss(0) != loss(1)
    assert math.log(256) - 0.5 < loss(0) < math.log(256) + 1.5


def test_tied_embeddings_are_one_parameter_counted_once_also_in_a_copy(text):
    config = TransformerConfig(WHOLE, 1, 4, "sinusoidal", tie_embeddings=True)
    model = LanguageModel(config, vocab_size=13)
    assert model.head.weight is model.embedding.weight
    assert model.parameter_counts()["tables"] == 13 * 24 + 2 * 24
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embedding.weight
    assert torch.equal(twin(text(1, 4)), model(text(1, 4)))

"""Nothing dead is built: from the declared start, one step moves every parameter of every legal shape."""

import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.training import next_token_losses

from . import shapes


def trained_once(text, shape: dict, **changes) -> LanguageModel:
    """A model at its declared start, in float64, with the gradients of one step."""
    torch.manual_seed(0)
    fields = {**shapes.fields(shape), "max_length": 8, **changes}
    model = LanguageModel(TransformerConfig(**fields), vocab_size=13).double()
    next_token_losses(model, text(8, 9)).mean().backward()
    return model


def dead(gradient: torch.Tensor) -> bool:
    """Whether a row or a column has no gradient: it would be counted without being used."""
    ends = [gradient.reshape(len(gradient), -1).abs().amax(1)]
    if gradient.dim() > 1:
        ends.append(gradient.abs().amax(0))
    return any(end.min() < 1e-12 for end in ends)


@pytest.mark.parametrize("shape", shapes.covering(), ids=shapes.name)
def test_every_row_and_column_of_every_parameter_has_a_finite_gradient_that_is_not_zero(text, shape):
    for name, parameter in trained_once(text, shape).named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert not dead(parameter.grad), name


@pytest.mark.parametrize("shape", shapes.covering(), ids=shapes.name)
def test_with_biases_only_that_of_the_keys_is_idle_and_only_where_nothing_rotates_it(text, shape):
    """It adds the same number to all scores of a query, which the softmax takes out again."""
    model = trained_once(text, shape, bias=True)
    rotated = "rope" in shape["encoding"]
    for name, parameter in model.named_parameters():
        if ".query_key." in name and name.endswith(".bias"):
            shared = model.config.heads_per_kv
            queries, keys = parameter.grad.split([len(parameter) * n // (shared + 1) for n in (shared, 1)])
            assert not dead(queries), name
            assert (keys.abs().max() < 1e-15) != rotated, name
        else:
            assert not dead(parameter.grad), name

"""What a position stream hears of the content, after every block and in every shape: nothing, exactly."""

from contextlib import nullcontext
from itertools import cycle

import pytest
import torch
from torch import Tensor

from sepnb.analysis.isolation import jacobian
from sepnb.analysis.isolation import leak as leak_between
from sepnb.models import LanguageModel, frozen_attention

from ..encodings.drawn import random
from . import shapes

TOKENS = 3
ALL_SPLIT = {"split": [shapes.WHOLE], "streams": shapes.SEPARATED}


def shaped(shape: dict, dtype: torch.dtype = torch.float64, **changes) -> LanguageModel:
    return shapes.model(shape, n_layers=3, **changes).to(dtype).eval()


def position_states(model: LanguageModel, content: Tensor) -> Tensor:
    """Every position stream after every block that computes it, `[B, all of them]`; batch 1 if shared."""
    states: list[Tensor] = []
    names = model.config.position_streams

    def keep(block, inputs, output) -> None:
        states.extend(output[name].flatten(1) for name in names if name in output)

    hooks = [block.register_forward_hook(keep) for block in model.transformer.blocks]
    try:
        model.transformer(content)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat(states, dim=1) if states else content.new_zeros(1, 0)


def leak(model: LanguageModel, *, frozen: bool) -> float | None:
    """The largest absolute derivative of any position state by the content; None where there is no path."""
    content = random(1, TOKENS, model.config.streams.widths["sem"]).to(model.embedding.weight.dtype)
    with frozen_attention(model) if frozen else nullcontext():
        outputs = position_states(model, content).shape[1]  # records the weights, when frozen
        copies = content.repeat(max(outputs, 1), 1, 1).requires_grad_()
        states = position_states(model, copies)
    if not states.requires_grad:
        return None
    # One copy for each number asked for, if the copies were computed one by one.
    heard = states.diagonal().sum() if len(states) > 1 else states.sum()
    (gradient,) = torch.autograd.grad(heard, copies, allow_unused=True)
    return None if gradient is None else gradient.abs().max().item()


TIED = {"tie_embeddings": True, "readout": "sem"}
CHANGES = [{}, {"bias": True}, {"dropout": 0.3}, {"causal": False}, TIED]


@pytest.mark.parametrize(
    ("shape", "changes"),
    list(zip(shapes.covering(**ALL_SPLIT), cycle(CHANGES))),
    ids=lambda fields: shapes.name(fields) if "split" in fields else str(fields),
)
def test_with_frozen_attention_no_position_state_hears_the_content(shape, changes):
    for dtype in (torch.float64, torch.float32):
        model = shaped(shape, dtype, **changes).train("dropout" in changes)
        assert leak(model, frozen=True) in (0.0, None)


@pytest.mark.parametrize("shape", shapes.covering(**ALL_SPLIT), ids=shapes.name)
def test_with_live_attention_isolated_streams_have_no_path_from_the_content_and_others_leak_by_routing(shape):
    model = shaped(shape)
    isolated = shape["query_key"] in ("strict", "untied") or shape["pos_stream"] == "constant"
    unheard = shape["query_key"] == "content" and shape["readout"] == "sem"  # no position stream is built
    assert model.config.isolated == isolated
    if isolated or unheard:
        assert leak(model, frozen=False) is None
    else:
        assert leak(model, frozen=False) > 1e-3


@pytest.mark.parametrize(
    "lacking", shapes.SPLITS[:-1], ids=lambda split: "+".join(sorted(split)) or "nothing"
)
@pytest.mark.parametrize(
    ("streams", "query_key"),
    [
        ("whole", "joint"),
        ("straddling", "joint"),
        ("three", "strict"),
        ("turned", "content"),
        ("straddling", "content"),
    ],
)
def test_each_split_that_lacks_leaks_although_attention_is_frozen(lacking, streams, query_key):
    """norm, value_output and mlp are each needed: without any one of them the content passes."""
    shape = {"streams": streams, "encoding": "sinusoidal", "query_key": query_key, "split": lacking}
    assert leak(shaped(shape), frozen=True) > 1e-3
    assert leak(shaped({**shape, "split": shapes.WHOLE}), frozen=True) in (0.0, None)
    constant = shaped({**shape, "pos_stream": "constant"})
    assert leak(constant, frozen=False) is None  # nothing is ever written to a constant stream


@pytest.mark.parametrize("query_key", ["joint", "strict", "content"])
def test_two_position_streams_do_not_hear_each_other_either(query_key):
    shape = {"streams": "three", "encoding": "sinusoidal", "query_key": query_key, "readout": "both"}
    transformer = shaped({**shape, "split": shapes.WHOLE}).transformer
    state = transformer.input_state(random(1, TOKENS, 8), torch.arange(TOKENS))
    for frozen in (True, False):
        between = jacobian(transformer, state, frozen=frozen)
        for source, target in (("row", "col"), ("col", "row"), ("sem", "row"), ("sem", "col")):
            heard = leak_between(between, transformer.config.streams, source, target)
            read = {"joint": ("row", "col", "sem"), "strict": (), "content": ("sem",)}[query_key]
            assert (heard > 1e-3) == (not frozen and source in read)
            assert heard == 0.0 or heard > 1e-3

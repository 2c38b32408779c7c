"""The cost of SeqPE: what is timed is a training step, and what of it is done for positions."""

from dataclasses import replace

import pytest
import torch

from sepnb import experiments
from sepnb.experiments import seqpe_cost as cost
from sepnb.training.seqpe_losses import encoder_of

COST = experiments.get("seqpe_cost")
(SMOKE,) = COST.grid("smoke")


def test_the_pieces_are_steps_of_the_same_model_on_the_same_positions(monkeypatch):
    config, built, made = replace(SMOKE, every=2), [], cost.built
    monkeypatch.setattr(cost, "built", lambda *given: built.append(made(*given)) or built[-1])
    pieces = config.steps()
    bare, whole, positions = built
    assert all(map(torch.equal, whole.parameters(), positions.parameters()))
    calls = {name: [] for name in ("whole", "positions")}
    for name, model in zip(calls, (whole, positions), strict=True):
        encoder = encoder_of(model)
        encoder.register_forward_pre_hook(lambda _, given, name=name: calls[name].append(len(given[0])))
    for piece in pieces.values():
        piece()
    # Two steps: the text in each, the losses and their teacher in the first.
    assert calls["whole"] == calls["positions"] and len(calls["whole"]) == 4
    assert calls["whole"].count(config.length) == 2
    for model in (whole, positions):
        assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder_of(model).parameters())
    assert all(p.grad is not None for p in bare.parameters())
    assert positions.head.weight.grad is None, "no token is read for positions alone"


def test_a_record_holds_the_counted_shares_of_the_multiply_adds():
    metrics = COST.run(replace(SMOKE, every=1)).metrics
    assert 0 < metrics["products"] < 1 < metrics["products_longer"]
    beyond = metrics["products"] + metrics["products_columns"]
    assert beyond == pytest.approx(1 - 1 / metrics["products_longer"])
    assert 0 < metrics["products_teacher"] < metrics["products"]

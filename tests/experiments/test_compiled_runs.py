"""What a compiled training does, counted: its steps, its graphs, and what broke one.

The models are trained one after the other in one process, as in a worker of a grid, where torch would leave
the ninth model eager. The captured graphs are run as they are (the backend "eager"). The process is one of
its own, because the hook that checks shapes in tests cannot be compiled.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sepnb import experiments
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import methods
from sepnb.experiments.run import Run, attempted, trained
from sepnb.models import LanguageModel
from sepnb.training import TrainingConfig
from sepnb.training.batch import Batch

VOCABULARY = 7
SIZE = lm.Size(16, 24, 1, 2, 32, 2, 2, lm.TextConfig("sympy", 8, 8), compiler="eager")
NAMES = ("none", "sinusoidal", "learned-per-layer", "rope-partial", "t5", "fire", "shaw", "transformer-xl")
NAMES += ("distance-aware-added-signed", "cope", "seqpe", "rope-randomised", "separated-gaps")
"""One for each way in which an encoding acts, trained at random positions, at shifted ones and at gaps too:
more models than the eight that torch compiles of one function."""


def config_of(name: str) -> Run:
    """A method at the least size, and without an auxiliary loss, which is never compiled."""
    config = methods.run_of("fake", "smoke", name, 1, 1e-3, sizes={"smoke": SIZE})
    training = replace(config.training, auxiliary=None)
    return replace(config, training=training, data=Drawn("sympy", 8, 8))


@dataclass(frozen=True)
class Drawn(lm.TextConfig):
    """Random tokens, at the positions that the sampler of a run draws, or further on."""

    further: int = 0

    def batches(self, config: Run) -> Iterator[np.ndarray | Batch]:
        return drawn(config.training, self.further)


def drawn(training: TrainingConfig, further: int) -> Iterator[np.ndarray | Batch]:
    shape = training.steps, training.batch_size, training.length + 1
    tokens = np.random.default_rng(0).integers(VOCABULARY, size=shape)
    if training.positions is None:
        return iter(tokens)
    sizes = {"batch_size": training.batch_size, "length": training.length, "steps": training.steps}
    drawn = training.positions.positions(**sizes, seed=1)
    return (Batch(one[:, :-1], one[:, 1:], at + further) for one, at in zip(tokens, drawn, strict=True))


def drive() -> dict[str, list]:
    """Of each method the steps that ran compiled, the graphs of a step, what broke one, and its losses beside
    those of the same training without a compiler."""
    import torch

    counters, found = torch._dynamo.utils.counters, {}
    for name in NAMES:
        counters.clear()
        told = []
        for config in (config_of(name), _eager(config_of(name))):
            torch.manual_seed(1)
            model = LanguageModel(config.model, VOCABULARY)
            losses, metrics = attempted(config, model, "cpu")
            told.append((losses, metrics))
        (losses, metrics), (as_eager, _) = told
        breaks = list(counters["graph_break"])
        found[name] = [metrics["compiled_steps"], metrics["graphs_a_step"], breaks, losses, as_eager]
    return found


def _eager(config: Run) -> Run:
    return replace(config, training=replace(config.training, compiler=None))


@pytest.fixture(scope="module")
def driven(tmp_path_factory) -> dict[str, list]:
    from .. import shared  # not where this file is run as a script

    return shared.told_by(tmp_path_factory, __file__)


@pytest.mark.parametrize("name", NAMES)
def test_every_step_of_every_model_of_a_process_runs_one_graph_and_nothing_beside_it(driven, name):
    """Nothing is left for the host to read: a value that it needs would have broken the graph in two."""
    compiled, graphs, breaks, losses, as_eager = driven[name]
    assert compiled == SIZE.steps and graphs == 1 and breaks == []
    assert losses == pytest.approx(as_eager, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "further", "why"),
    [
        ("rope-randomised", -(10**4), r"position -\d+ is negative"),
        ("separated-gaps", -(10**4), r"position -\d+ is negative"),
        ("seqpe", 10**5, r"position 1\d{5} .* is not in \[0, 100000\)"),
    ],
)
def test_drawn_positions_are_checked_before_a_compiled_step_that_cannot(name, further, why):
    config = config_of(name)
    model = LanguageModel(config.model, VOCABULARY)
    with pytest.raises(ValueError, match=why):
        trained(replace(config, data=replace(config.data, further=further)), model, device="cpu")


@pytest.mark.parametrize("name", [name for name in NAMES if "seqpe" not in name])
def test_a_step_that_is_not_compiled_reads_nothing_of_its_device(name):
    """On the device "meta", which has no values, reading one is an error: here only the losses at the end."""
    config, taken = _eager(config_of(name)), []
    model = LanguageModel(config.model, VOCABULARY).to("meta")
    with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
        trained(config, model, device="meta", on_step=taken.append)
    assert len(taken) == SIZE.steps


def test_nor_does_a_step_of_an_image_model_whose_places_are_drawn():
    config, taken = experiments.get("images").config("smoke", "axial-rope-shifts/class", 1), []
    model = config.build().to("meta")
    with pytest.raises(NotImplementedError, match="meta"):
        how = {"device": "meta", "stop_after": SIZE.steps, "on_step": taken.append}
        trained(config, model, **how)
    assert len(taken) == SIZE.steps


@pytest.mark.parametrize("name", ["seqpe", "seqpe-input"])
def test_what_seqpe_minimises_beside_the_loss_reads_nothing_of_its_device(name):
    config = methods.run_of("fake", "smoke", name, 1, 1e-3, sizes={"smoke": SIZE})
    model = LanguageModel(config.model, VOCABULARY).to("meta")
    loss = config.training.bound_auxiliary(1)
    for _ in range(3):
        loss(model).backward()


def test_a_training_without_a_compiler_says_nothing_of_one():
    config = _eager(config_of("rope"))
    _, metrics = attempted(config, LanguageModel(config.model, VOCABULARY), "cpu")
    assert not {"compiled_steps", "graphs_a_step"} & metrics.keys()


if __name__ == "__main__":
    print(json.dumps(drive()))

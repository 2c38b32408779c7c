"""Compiled formulas: the same function, captured whole, in training only, and eager where nothing compiles.

The captured graphs are run as they are (the backend "eager"), so that what is tested is ours: what goes into
a formula, and what it gives back. They are captured in a process of their own, because the hook that checks
shapes in tests cannot be compiled.
"""

import dataclasses
import json
import warnings

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from sepnb import encodings
from sepnb.models import LanguageModel, TransformerConfig, compile_formulas, context
from sepnb.models.fast import kernels
from sepnb.streams import Streams
from sepnb.training import TrainingConfig
from sepnb.training.compiled import CompiledSteps

COMPILED = ["none", "learned", "rope", "xpos", "alibi", "kerple", "shaw", "transformer-xl", "distance-aware"]
COMPILED += ["cope", "forgetting"]
"""One of each kind of formula: a fixed and a trained bias, rotations, scores made otherwise, columns more."""
INDUCTOR = "kerple"
"""The encoding whose formula is compiled to machine code: a trained bias, and with it a whole attention."""


def graphs(name: str) -> int:
    """How many graphs a training step captures, which two layers share: one of a rotation, and one of an
    explicit softmax, which a trained bias takes too."""
    encoding = encodings.build(name)
    score = encoding.at_score(encodings.Heads(2, 8, 16))
    trained = score is not None and any(parameter.requires_grad for parameter in score.parameters())
    explicit = isinstance(score, encodings.PairModule)
    turned = isinstance(encoding.at_query_key(encodings.Heads(width=8)), encodings.QueryKeyModule)
    return turned + (trained or explicit)


def model(encoding: str, streams: Streams | None = None, n_layers: int = 2, **fields) -> LanguageModel:
    streams = Streams.dense(16) if streams is None else streams
    used = encoding if len(streams.names) == 1 else ("learned", encoding)
    config = TransformerConfig(streams, n_layers, 2, used, max_length=12, **fields)
    torch.manual_seed(0)
    made = LanguageModel(config, 7).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def outcome(made: LanguageModel) -> list[torch.Tensor]:
    """The logits and the gradient of every parameter."""
    made.zero_grad()
    logits = made(torch.arange(24).reshape(2, 12) % 7)
    logits.square().mean().backward()
    return [logits.detach(), *(parameter.grad.clone() for parameter in made.parameters())]


def drive() -> dict[str, list]:
    """Per encoding: how far compiled is from eager, the graphs, and what broke one."""
    counters, found = torch._dynamo.utils.counters, {}
    for name in COMPILED:
        torch.compiler.reset()
        counters.clear()
        made = model(name)
        eager = outcome(made)
        compile_formulas(made, "eager")
        pairs = zip(eager, outcome(made), strict=True)
        apart = max(float((one - other).abs().max()) for one, other in pairs)
        with torch.no_grad():
            made(torch.zeros(1, 9, dtype=torch.int64))  # another length, but no gradients
        found[name] = [apart, counters["stats"]["unique_graphs"], list(counters["graph_break"])]
    torch.compiler.reset()
    counters.clear()
    kernels.LEAST_ROWS, least = 3, kernels.LEAST_ROWS
    made = model("transformer-xl", Streams(pos=8, sem=8), query_key="strict", n_layers=3)
    eager = outcome(made)
    compile_formulas(made, "eager")
    pairs = zip(eager, outcome(made), strict=True)
    apart = max(float((one - other).abs().max()) for one, other in pairs)
    found["pieces"] = [apart, counters["frames"]["total"], counters["frames"]["ok"]]
    kernels.LEAST_ROWS = least
    torch.compiler.reset()
    made = model(INDUCTOR)
    eager = outcome(made)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        compiled = compile_formulas(made, "inductor")
    told = [str(one.message) for one in told]
    apart = max(float((one - other).abs().max()) for one, other in zip(eager, outcome(made), strict=True))
    found["inductor"] = [apart, compiled, told]
    found["two lengths"] = [symbolic(of) for of in ("formulas", "whole")]
    return found


def symbolic(what: str) -> list[bool]:
    """Of every graph that a training on texts of two lengths captures, whether it is for any length."""
    told = []

    def watch(graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
        sizes = [size for one in inputs for size in (one.shape if torch.is_tensor(one) else [one])]
        told.append(any(isinstance(size, torch.SymInt) for size in sizes))
        return graph

    torch.compiler.reset()
    torch._dynamo.register_backend(watch, name=what)
    made = model("rope").float()
    schedule = TrainingConfig(2, 2, 12, 1e-3, warmup=0.0, compiler=what)
    if what == "formulas":
        compile_formulas(made, what)
    schedule = schedule if what == "whole" else dataclasses.replace(schedule, compiler=None)
    with CompiledSteps().forward(made, schedule, "cpu") as forward:
        for length in (6, 12):
            forward(torch.zeros(2, length, dtype=torch.int64)).mean().backward()
    return told


@pytest.fixture(scope="module")
def driven(tmp_path_factory) -> dict[str, list]:
    from .. import shared  # not where this file is run as a script

    return shared.told_by(tmp_path_factory, __file__)


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_formula_is_the_eager_one_captured_whole_and_once(driven, name):
    apart, captured, breaks = driven[name]
    assert apart < 1e-12
    assert captured == graphs(name) and breaks == []


def test_machine_code_of_a_formula_is_the_eager_one_and_without_a_compiler_that_is_said(driven):
    apart, compiled, told = driven["inductor"]
    if compiled:
        assert 0 < apart < 1e-12 and told == []  # sums in another order: it was compiled
    else:
        assert apart == 0 and "needs the C++ compiler" in told[0]


def test_each_length_of_a_training_has_graphs_of_its_own(driven):
    """With one for any length FlexAttention of torch 2.11 fails."""
    formulas, whole = driven["two lengths"]
    assert len(formulas) == 2 * graphs("rope") and len(whole) == 2
    assert not any(formulas) and not any(whole)


def test_all_pieces_of_all_layers_are_compiled(driven):
    """Strict, three layers: more shapes than the eight graphs of a formula that torch would make."""
    apart, frames, compiled = driven["pieces"]
    assert apart < 1e-12
    assert frames == compiled > 8


def kernels_called(made: LanguageModel) -> set[str]:
    """The attention kernels of torch that a training step calls."""
    called = set()

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            called.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    with Watch():
        made(torch.zeros(1, 12, dtype=torch.int64))
    return {name for name in called if "attention" in name}


def test_a_fixed_bias_reaches_the_fused_kernel_and_only_where_it_was_asked_for():
    made = model("alibi")
    assert kernels_called(made) == set()  # three dimensions: the unfused formula, which records were made by
    eager = outcome(made)
    assert compile_formulas(made, "eager")
    assert kernels_called(made) == {"_scaled_dot_product_flash_attention_for_cpu"}
    for one, other in zip(eager, outcome(made), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
    assert not compile_formulas(made, None)
    assert all(torch.equal(one, other) for one, other in zip(eager, outcome(made), strict=True))


def test_nothing_is_compiled_unless_asked_for_nor_where_no_gradients_are_taken(monkeypatch):
    def refuse(*_):
        pytest.fail("something was compiled")

    monkeypatch.setattr(kernels.Compiler, "compiled", refuse)
    assert context.kernels is kernels
    for name in encodings.names(axes=1):
        made = model(name)
        outcome(made)
        compile_formulas(made, "eager")
        with torch.no_grad():
            made(torch.zeros(1, 9, dtype=torch.int64))


def test_without_a_compiler_the_formulas_stay_eager_and_a_warning_names_it(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O3")
    made = model("rope")
    with pytest.warns(UserWarning, match="needs the C\\+\\+ compiler no-such-compiler, .*stay eager"):
        assert not compile_formulas(made)
    assert made.transformer.compiler is None


if __name__ == "__main__":
    print(json.dumps(drive()))

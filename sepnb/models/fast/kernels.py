"""The formulas of attention, each compiled to one kernel, for a model that is asked to.

Where gradients are taken, `compile_formulas` has rotations of queries and keys compiled, and the core of a
layer whose softmax is explicit or whose bias is trained: torch's fused kernel answers such a bias with its
unfused formula anyway. A fixed bias is handed over in the four dimensions that the fused kernel wants. On a
CPU, a long text whose attention is causal and needs a mask or the explicit softmax goes through in up to
`PIECES` pieces of queries, each with the keys up to the last of them: four equal pieces compute five eighths
of the square. On CUDA biases go to FlexAttention, see `flex`.

What a model computes stays the same up to the order of float32 sums, which is why nothing of this is done
unless asked for: a record is replayed by the kernels that made it. Evaluation stays eager: it meets many
lengths, and each would be compiled anew. A training meets one or two, and each has a graph of its own:
with one for any length torch 2.11 fails on FlexAttention.
"""

import inspect
import os
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch
from torch import nn

from ... import validation

Formula = TypeVar("Formula", bound=Callable)

NARROWEST = 16
"""Columns of a head that FlexAttention takes on CUDA, at least."""

PIECES, LEAST_ROWS = 4, 128
"""There are at most so many pieces, and each but the last has at least so many queries."""

MOST_GRAPHS = 64
"""Of one formula: after the limit of torch, which is 8, another shape would be eager without a word."""


CALLS: Counter[str] = Counter()
"""How often graphs that a backend compiled were run in this process."""


class CompilerMissing(ValueError):
    """What is to be compiled cannot be compiled on this machine."""


def check_compiler(backend: str | None, device: str | torch.device) -> None:
    """Refuse a backend of torch.compile that this machine cannot serve: on a CPU, inductor writes C++; on
    CUDA, Triton compiles what launches its kernels, in C."""
    kind = torch.device(device).type
    if backend != "inductor" or kind not in ("cpu", "cuda"):
        return
    if kind == "cuda":
        language, variable, usual = "C", "CC", ("gcc", "clang")
    else:
        language, variable = "C++", "CXX"
        usual = ("clang++" if sys.platform == "darwin" else "g++",)
    named = os.environ.get(variable)
    commands = [named.split()[0]] if named else usual
    if not any(map(shutil.which, commands)):
        raise CompilerMissing(
            f"torch.compile needs the {language} compiler {' or '.join(commands)}, which is not there; "
            f"install it, or name another in the environment variable {variable}"
        )


def compile_formulas(model: nn.Module, backend: str | None = "inductor") -> bool:
    """Have a `Transformer`, or what holds some, train by formulas compiled by a backend of torch.compile from
    now on; None: by eager ones again. Returns whether they will be compiled: where a compiler is missing they
    stay eager, and a warning says which."""
    if backend is not None:
        validation.instance("backend", backend, str, "'inductor'")
    validation.instance("model", model, nn.Module)
    stacks = [module for module in model.modules() if hasattr(module, "compiler")]
    if not stacks:
        raise ValueError(f"{type(model).__name__} holds no Transformer; give a model of sepnb.models")
    parameter = next(model.parameters(), None)
    try:
        check_compiler(backend, "cpu" if parameter is None else parameter.device)
    except CompilerMissing as missing:
        warnings.warn(f"{missing}; until then the formulas stay eager", stacklevel=2)
        backend = None
    for stack in stacks:
        stack.compiler = backend
    return backend is not None


def flexible(model: nn.Module) -> bool:
    """Whether FlexAttention would take the scores of every layer on CUDA, as `flex` says: products and
    biases, or products and the gates of the DA-Transformer, of heads of `NARROWEST` columns or more."""
    stacks = [module for module in model.modules() if hasattr(module, "score_encodings")]
    layers = [block.attention.core for stack in stacks for block in stack.blocks]
    biased = any(len(stack.score_encodings) for stack in stacks) or any(len(layer.biases) for layer in layers)
    gated = any(layer.pairs is not None for layer in layers)
    fits = all(layer.elementwise and layer.head_width >= NARROWEST for layer in layers)
    whole = all(stack.config.causal and stack.window is None for stack in stacks)
    return biased != gated and fits and whole


@cache
def counted(backend: str) -> Callable:
    """The backend of torch.compile of this name, by which every run of a graph is counted in `CALLS`. What
    fell back to eager, as torch does without an error, is then seen."""
    compile_graph = torch._dynamo.lookup_backend(backend)

    def compiler(graph: torch.fx.GraphModule, inputs: list) -> Callable:
        run = compile_graph(graph, inputs)

        def count(*arguments: object) -> object:
            CALLS[backend] += 1
            return run(*arguments)

        return count

    return compiler


class CompiledSteps:
    """How many steps of a training ran a compiled graph, and how many graphs the last step ran."""

    def __init__(self) -> None:
        self.steps, self.graphs, self._before = 0, 0, CALLS.total()

    def end_step(self) -> None:
        """To be called after each step."""
        now = CALLS.total()
        self.graphs, self._before = now - self._before, now
        self.steps += self.graphs > 0


@cache
def _compiled(formula: Formula, backend: str) -> Formula:
    has_limit = "recompile_limit" in inspect.signature(torch.compile).parameters  # older torch has none
    limit = {"recompile_limit": MOST_GRAPHS} if has_limit else {}
    return torch.compile(formula, backend=counted(backend), dynamic=False, **limit)


def on_cuda(x: torch.Tensor) -> bool:
    """Whether a kernel for CUDA would take this tensor."""
    return x.is_cuda


def on_cpu(x: torch.Tensor) -> bool:
    """Whether a CPU computes with this tensor."""
    return x.device.type == "cpu"


def compiles(backend: str | None) -> bool:
    """Whether formulas are compiled now: where gradients are taken, and not inside another compilation."""
    return backend is not None and torch.is_grad_enabled() and not torch.compiler.is_compiling()


def chosen(formula: Formula, backend: str | None) -> Formula:
    """The formula, compiled if formulas are."""
    return _compiled(formula, backend) if compiles(backend) else formula


def rows_of_a_piece(n: int) -> int:
    """How many of n queries one piece has."""
    return -(-n // min(PIECES, max(1, n // LEAST_ROWS)))

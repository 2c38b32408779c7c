"""The formulas of attention, each compiled to one kernel, for a model that is asked to.

Where gradients are taken, `compile_formulas` compiles rotations of queries and keys, and the core of a layer
whose softmax is explicit or whose bias is trained: torch's fused kernel falls back to its unfused formula for
such a bias. A fixed bias is handed over in the four dimensions that the fused kernel wants. On a
CPU, a long text whose attention is causal and needs a mask or the explicit softmax goes through in up to
`PIECES` pieces of queries, each with the keys up to the last of them: four equal pieces compute five eighths
of the square. On CUDA biases go to FlexAttention, see `flex`.

A model computes the same up to the order of float32 sums, so nothing of this is done unless requested: a
record is replayed by the kernels that made it. Evaluation stays eager, because it meets many lengths and each
would be compiled anew. A training meets one or two, each with a graph of its own: one graph for all lengths
fails on FlexAttention in torch 2.11.
"""

import inspect
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """Let a `Transformer`, or a module that holds some, train with formulas compiled by a backend of
    torch.compile; None: with eager ones again. Returns whether they will be compiled: if the compiler is
    missing they stay eager, and a warning names it."""
    if backend is not None:
        validation.instance("backend", backend, str, "'inductor'")
    return _given(model, None if backend is None else compiler_of(backend))


@contextmanager
def formulas_by(model: nn.Module, compiler: "Compiler") -> Iterator[None]:
    """Inside, the formulas of a model are compiled by this compiler; then by what it had before."""
    with validation.restored(_stacks(model), "compiler"):
        _given(model, compiler)
        yield


def _stacks(model: nn.Module) -> list[nn.Module]:
    validation.instance("model", model, nn.Module)
    if not (stacks := [module for module in model.modules() if hasattr(module, "compiler")]):
        raise ValueError(f"{type(model).__name__} holds no Transformer; give a model of sepnb.models")
    return stacks


def _given(model: nn.Module, compiler: "Compiler | None") -> bool:
    stacks, parameter = _stacks(model), next(model.parameters(), None)
    if compiler is not None:
        try:
            check_compiler(compiler.backend, "cpu" if parameter is None else parameter.device)
        except CompilerMissing as missing:
            warnings.warn(f"{missing}; until then the formulas stay eager", stacklevel=3)
            compiler = None
    for stack in stacks:
        stack.compiler = compiler
    return compiler is not None


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


class Compiler:
    """A backend of torch.compile, with what it compiled. `runs` counts how often its graphs ran: what fell
    back to eager, as torch does without an error, is then seen."""

    def __init__(self, backend: str) -> None:
        self.backend, self.runs = backend, 0
        self._formulas: dict[Callable, Callable] = {}

    def __deepcopy__(self, memo: dict) -> "Compiler":
        """A copy of a model is compiled by the same."""
        return self

    def __call__(self, graph: torch.fx.GraphModule, inputs: list) -> Callable:
        """A graph, compiled: what torch.compile asks of a backend."""
        run = torch._dynamo.lookup_backend(self.backend)(graph, inputs)

        def counted(*arguments: object) -> object:
            self.runs += 1
            return run(*arguments)

        return counted

    def compiled(self, formula: Formula) -> Formula:
        """A formula, compiled once."""
        if formula not in self._formulas:
            has_limit = "recompile_limit" in inspect.signature(torch.compile).parameters  # older torch: none
            limit = {"recompile_limit": MOST_GRAPHS} if has_limit else {}
            self._formulas[formula] = torch.compile(formula, backend=self, dynamic=False, **limit)
        return self._formulas[formula]


@cache
def compiler_of(backend: str) -> Compiler:
    """The compiler that all models share which are given no other, so that none compiles a formula again."""
    return Compiler(backend)


def on_cuda(x: torch.Tensor) -> bool:
    """Whether a kernel for CUDA would take this tensor."""
    return x.is_cuda


def on_cpu(x: torch.Tensor) -> bool:
    """Whether a CPU computes with this tensor."""
    return x.device.type == "cpu"


def compiles(compiler: Compiler | None) -> bool:
    """Whether formulas are compiled now: where gradients are taken, and not inside another compilation."""
    return compiler is not None and torch.is_grad_enabled() and not torch.compiler.is_compiling()


def chosen(formula: Formula, compiler: Compiler | None) -> Formula:
    """The formula, compiled if formulas are."""
    return compiler.compiled(formula) if compiles(compiler) else formula


def rows_of_a_piece(n: int) -> int:
    """How many of n queries one piece has."""
    return -(-n // min(PIECES, max(1, n // LEAST_ROWS)))

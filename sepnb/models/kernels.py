"""The formulas of attention, each compiled to one kernel, for a model that is asked to.

`compile_formulas` changes three things, where gradients are taken. Rotations of queries and keys are
compiled. So is the averaging of a layer whose scores are made in the open, or whose bias is trained: torch's
fused kernel answers such a bias with its unfused formula anyway. And a fixed bias is handed over in the four
dimensions without which the fused kernel does not take it. What a model computes stays the same up to the
order of float32 sums, which is why nothing of this is done unless asked for: a record is replayed by the
kernels that made it. On CUDA biases then go to FlexAttention, see `flex`; a training there asks for it where
`flexible` says so, and compiles every other model as a whole.

Evaluation stays eager: it meets many lengths, and each would be compiled anew.
"""

import os
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import torch
from torch import nn

Formula = TypeVar("Formula", bound=Callable)

NARROWEST = 16
"""Columns of a head that FlexAttention takes on CUDA, at least."""


class CompilerMissing(ValueError):
    """What is to be compiled cannot be compiled on this machine."""


def check_compiler(backend: str | None, device: str | torch.device) -> None:
    """Refuse a backend of torch.compile that this machine cannot serve: on a CPU, inductor writes C++.

    Raises:
        CompilerMissing: no C++ compiler; the message has the remedy.
    """
    if backend != "inductor" or torch.device(device).type != "cpu":
        return
    default = "clang++" if sys.platform == "darwin" else "g++"
    if shutil.which(command := os.environ.get("CXX", default).split()[0]) is None:
        raise CompilerMissing(
            f"torch.compile needs the C++ compiler {command}, which is not there; install it, or name "
            f"another in the environment variable CXX"
        )


def compile_formulas(model: nn.Module, backend: str | None = "inductor") -> bool:
    """Have a model train by compiled formulas from now on; None: by eager ones again.

    Args:
        model: a `Transformer`, or what holds some.
        backend: of torch.compile.

    Returns:
        Whether the formulas will be compiled. Where a compiler is missing they stay eager, and a warning says
        which.

    Raises:
        ValueError: nothing in the model has formulas to compile.
    """
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
    """Whether FlexAttention would take the scores of every layer on CUDA: products and biases, causal.

    Scores that are made otherwise (Shaw's keys, Transformer-XL, the gates of DA-Transformer, CoPE) and what
    is added to averages (Shaw's values) stay with the plain formula; so does a model of heads of fewer than
    `NARROWEST` columns.
    """
    stacks = [module for module in model.modules() if hasattr(module, "score_encodings")]
    layers = [block.attention.averaging for stack in stacks for block in stack.blocks]
    biased = any(len(stack.score_encodings) for stack in stacks) or any(len(layer.biases) for layer in layers)
    fits = all(not layer.in_the_open and layer.head_width >= NARROWEST for layer in layers)
    return biased and fits and all(stack.config.causal for stack in stacks)


@cache
def _compiled(formula: Formula, backend: str) -> Formula:
    return torch.compile(formula, backend=backend)


def on_cuda(x: torch.Tensor) -> bool:
    """Whether a kernel for CUDA would take this tensor."""
    return x.is_cuda


def chosen(formula: Formula, backend: str | None) -> Formula:
    """The formula, compiled if there is a backend and gradients are taken. Inside another compilation it is a
    part of that."""
    if backend is None or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return formula
    return _compiled(formula, backend)

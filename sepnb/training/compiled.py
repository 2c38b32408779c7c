"""The forward passes of a training that compiles, and how often compiled graphs ran in its steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ..models.fast import kernels
from .config import TrainingConfig


class CompiledSteps:
    """What computes the logits of a training, see `forward`; in how many `steps` compiled graphs ran, and how
    many `graphs` in the last step."""

    def __init__(self) -> None:
        self.steps, self.graphs = 0, 0
        self._compiler: kernels.Compiler | None = None

    @contextmanager
    def forward(self, model: nn.Module, config: TrainingConfig, device: str) -> Iterator[Callable]:
        """Yields the function that computes the logits of a step: the model, compiled as a whole if the
        config has a compiler. On CUDA a model whose biases FlexAttention takes is compiled formula by
        formula, because the compiler of a whole model would not choose that kernel; not with drawn positions,
        which FlexAttention would have to read from the device.

        What was compiled before is forgotten: torch would leave the ninth model of a process eager."""
        if config.compiler is None:
            yield model
            return
        torch.compiler.reset()
        self._compiler = kernels.Compiler(config.compiler)
        if torch.device(device).type == "cuda" and config.positions is None and kernels.flexible(model):
            with kernels.formulas_by(model, self._compiler):
                yield model
        else:
            yield torch.compile(model, backend=self._compiler, dynamic=False)

    def end_step(self) -> None:
        """To be called after each step."""
        if self._compiler is not None:
            self.graphs, self._compiler.runs = self._compiler.runs, 0
            self.steps += self.graphs > 0

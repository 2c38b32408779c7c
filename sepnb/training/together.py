"""One training in several processes, each of which computes its rows of every batch.

All processes draw the same batches and hold the same weights. The gradient of the whole batch is the mean of
theirs, weighted by what each computed, so that every process takes the step that one alone would take: the
losses agree to the order of sums. What is drawn inside of a model, such as dropout, is drawn in each process.

A script that `torchrun --nproc-per-node 2` starts calls `torch.distributed.init_process_group`, trains with
`train(..., together=Together())`, and writes what it has to write where `Together().rank` is 0.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Together:
    """The processes of the default group of `torch.distributed`, as `train` takes them.

    Attributes:
        rank, count: the number of this process, and how many there are.

    Raises:
        ValueError: this process belongs to no group.
    """

    def __init__(self) -> None:
        if not (dist.is_available() and dist.is_initialized()):
            raise ValueError(
                "this process belongs to no group; start it by torchrun and call "
                "torch.distributed.init_process_group first, or leave together= out"
            )
        self.rank, self.count = dist.get_rank(), dist.get_world_size()
        self._share: Tensor | float = 1.0

    def begin(self, model: nn.Module) -> None:
        """Give every process the weights and buffers of the first."""
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor, src=0)

    def rows(
        self, tokens: Tensor, targets: Tensor, positions: Tensor | None, weights: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """The share of a batch that this process reads: inputs, targets, positions and weights.

        Raises:
            ValueError: fewer inputs than processes.
        """
        if len(tokens) < self.count:
            raise ValueError(f"a batch of {len(tokens)} for {self.count} processes; start no more of them")
        own = slice(self.rank, None, self.count)
        each = 2 if tokens.ndim == 2 else 3  # dimensions of positions that differ by input
        if positions is not None and positions.ndim == each:
            positions = positions[own]
        self._share = len(tokens[own]) / len(tokens)
        if weights is not None:
            total, weights = weights.sum(dtype=torch.float64), weights[own]
            here = weights.sum(dtype=torch.float64)
            self._share = here / total
            weights = torch.where(here > 0, weights, torch.ones_like(weights))  # its share is 0 then
        return tokens[own], targets[own], positions, weights

    def join(self, model: nn.Module, *losses: Tensor) -> list[Tensor]:
        """Put the gradient of the whole batch into the parameters; the losses of the whole batch."""
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        whole = parameters_to_vector(gradients) * self._share
        dist.all_reduce(whole)
        vector_to_parameters(whole, gradients)
        means = torch.stack([loss.detach() for loss in losses]) * self._share
        dist.all_reduce(means)
        return list(means)

"""What differs when a training runs on a GPU: nothing waits, and few kernels are launched.

Batches are copied from pinned memory while the GPU computes, AdamW is one kernel, and a loss is read once it
has arrived. On a CPU nothing changes, bit for bit.
"""

from contextlib import AbstractContextManager, nullcontext
from math import isfinite

import torch
from torch import Tensor, nn

from .. import validation
from .config import PRECISIONS, TrainingConfig


def placed(model: nn.Module, device: str | torch.device) -> nn.Module:
    """The model on a device. A model without values may stay without them, to count what a step does."""
    without = all(parameter.is_meta for parameter in model.parameters())
    return model.to(device if without and str(device) == "meta" else validation.device("device", device))


def autocast(device: str, precision: str) -> AbstractContextManager:
    """Forward passes in `precision` on `device`; parameters stay as they are, losses are float32 or wider."""
    validation.one_of("precision", precision, PRECISIONS)
    if precision == "float32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=getattr(torch, precision))


def sent(tensor: Tensor | None, device: str) -> Tensor | None:
    """A tensor of the host on the device; on its way there, where this is a GPU."""
    if tensor is None:
        return None
    if torch.device(device).type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def optimiser(
    model: nn.Module, config: TrainingConfig, adamw: torch.optim.Optimizer | None = None
) -> torch.optim.Optimizer:
    """AdamW with weight decay on the weights of linear maps only, a tied embedding among them; fused where
    the model is on a GPU. One that is given is checked: its steps change this model and nothing else."""
    if adamw is not None:
        own = set(model.parameters())
        groups = validation.instance("adamw", adamw, torch.optim.Optimizer, "optimiser(model, config)")
        if any(one not in own for group in groups.param_groups for one in group["params"]):
            raise ValueError(
                "adamw is of another model, and this one would stay as it is; give its optimiser"
            )
        return adamw
    maps = {module.weight for module in model.modules() if isinstance(module, nn.Linear)}
    groups = [
        {"params": [p for p in model.parameters() if p in maps], "weight_decay": config.weight_decay},
        {"params": [p for p in model.parameters() if p not in maps], "weight_decay": 0.0},
    ]
    fused = {"fused": True} if on_gpu(model) else {}
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, **fused)


def on_gpu(model: nn.Module) -> bool:
    return all(parameter.is_cuda for parameter in model.parameters())


class Lookout:
    """Watches the losses while they are computed, so that a diverged training ends early.

    A loss on the CPU is read at once. From a GPU one loss at a time is copied to the host, and read once it
    has arrived: nothing waits, and the end is some steps late.
    """

    def __init__(self) -> None:
        self._sent: tuple[Tensor, torch.cuda.Event] | None = None

    def lost(self, loss: Tensor) -> bool:
        """Whether the newest loss that the host has is not finite; `loss` is that of the step just taken."""
        if not loss.is_cuda:
            return loss.device.type == "cpu" and not isfinite(loss.item())
        if self._sent is not None and not self._sent[1].query():
            return False
        lost = self._sent is not None and not isfinite(self._sent[0].item())
        copy = loss.to("cpu", non_blocking=True)
        self._sent = copy, torch.cuda.current_stream(loss.device).record_event()
        return lost

"""Random tensors, and two computations held against each other in their output and in every gradient."""

from collections.abc import Callable

import torch
from torch import Tensor

F64 = torch.float64
TIGHT = {"rtol": 0, "atol": 1e-10}
GAPS = torch.tensor([0, 1, 2, 5, 9, 30, 31])
UNSORTED = torch.tensor([7, 3, 3, 40, 0, 21, 8])
ROWS = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [9, 4, 6, 1, 0, 70, 2]])
OFFSET = torch.arange(7) + 4096
POSITIONS = {"from zero": torch.arange(7), "offset": OFFSET, "gaps": GAPS, "unsorted": UNSORTED, "rows": ROWS}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def drawn(module: torch.nn.Module, seed: int = 0, std: float = 0.5) -> torch.nn.Module:
    """The module in float64 with every parameter from N(0, std^2)."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(std * torch.randn(parameter.shape, generator=generator, dtype=F64))
    return module


def loud(model: torch.nn.Module, seed: int = 0, std: float = 0.3) -> torch.nn.Module:
    """Maps and biases from N(0, std^2), gains about 1: attention far from uniform, nothing saturated."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = std * torch.randn(parameter.shape, generator=generator, dtype=F64)
            parameter.copy_(noise + 1 if "gain" in name else noise)
    return model


def agree(
    ours: Callable[[], Tensor],
    expected: Callable[[], Tensor],
    leaves: list[Tensor],
    seen: Tensor | None = None,
    bound: float = 1e-10,
) -> None:
    """Both give the same tensor and the same gradient by every leaf, where `seen` says to look."""
    outcomes = []
    for compute in (ours, expected):
        for leaf in leaves:
            leaf.requires_grad_().grad = None
        out = compute()
        out = out if seen is None else out.masked_fill(~seen, 0.0)
        weights = random(*out.shape, seed=9)
        (out * weights).sum().backward()
        outcomes.append([out.detach(), *(leaf.grad for leaf in leaves)])
    for one, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=bound)

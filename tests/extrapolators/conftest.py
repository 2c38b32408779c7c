"""Tables to continue, and the printed formulas' own arithmetic kept out of them: plain numbers in float64."""

from collections.abc import Callable

import pytest
import torch

F64 = torch.float64


@pytest.fixture
def table() -> Callable[..., torch.Tensor]:
    """`table(L, d_pos)`: entries from N(0.01, 0.05^2), rough and not centred, as learned tables are."""

    def draw(length: int = 12, width: int = 5, seed: int = 0, dtype: torch.dtype = F64) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return (0.01 + 0.05 * torch.randn(length, width, generator=generator, dtype=F64)).to(dtype)

    return draw


@pytest.fixture
def wavy() -> Callable[..., torch.Tensor]:
    """`wavy(L, d_pos, waves=4)`: a smooth table, the first harmonics of the window with random phases."""

    def draw(length: int = 64, width: int = 5, waves: int = 4, seed: int = 0) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        turns = torch.arange(length, dtype=F64)[:, None, None] / length * torch.arange(1, waves + 1)[:, None]
        phases, sizes = torch.rand(2, waves, width, generator=generator, dtype=F64)
        return (sizes * torch.sin(2 * torch.pi * (turns + phases))).sum(1)

    return draw

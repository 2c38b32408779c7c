"""Equation (5) of the slides: the window repeated, giving way to a perceptron of the position.

What is printed: p_i = (1 - alpha_i) p_(i mod L) + alpha_i f(i/L), alpha_i = sigmoid(5 (i/L - 1)), f an MLP
from R to R^d_pos. alpha is not 0 inside the window, so that trained rows change: at i = L-1 half of the row
is f. And nothing says what f should be beyond the window; two ways to train it follow, and neither is the
slides'. Whatever f is, it is a perceptron of one number: far out it is a constant (with tanh, as here) or a
straight line (ReLU), and after a norm one direction, which is a clamp.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from ..validation import one_of, whole
from .base import Extrapolator, Rule, keep_window, working_dtype

PROTOCOLS = ("window", "masked")
LEARNING_RATE = 3e-3


def blend(positions: Tensor, length: int) -> Float[Tensor, "..."]:
    """alpha_i = sigmoid(5 (i/length - 1)), the share of the perceptron, in float64."""
    return torch.sigmoid(5 * (positions.to(torch.float64) / length - 1))


@dataclass(frozen=True)
class Learned(Extrapolator):
    """Equation (5). Corrected: rows of the window come from the table.

    f has two hidden layers and is fitted in float64 on the CPU by Adam on all rows at once, with a learning
    rate that falls as a cosine. The fit depends on the table and these options only, and is kept.

    Args:
        protocol: "window" regresses f(i/L) on row i of the window. "masked" pretends that the table ends at
            L' = L/8 and fits what (5) would have to put at L' <= i < L, so that f sees i/L' up to 8.
        seed: of the initial weights, from a generator of its own.
        hidden: width of both hidden layers, at most 2^12.
        steps: of Adam, at most 2^20.
    """

    name = "learned"

    protocol: str = "window"
    seed: int = 0
    hidden: int = 64
    steps: int = 1000

    def __post_init__(self) -> None:
        one_of("protocol", self.protocol, PROTOCOLS)
        for name, lowest, most in (("seed", 0, 2**63 - 1), ("hidden", 1, 2**12), ("steps", 0, 2**20)):
            whole(name, getattr(self, name), lowest, most)

    def corrected(self, table: Tensor) -> Rule:
        return keep_window(table, self.literal(table))

    def literal(self, table: Tensor) -> Rule:
        dtype, length = working_dtype(table), len(table)
        rows, f = table.to(dtype), self.perceptron(table)

        def rule(positions: Tensor) -> Tensor:
            share = blend(positions, length).to(dtype)[:, None]
            beyond = f((positions.to(torch.float64) / length).to(dtype))
            return torch.lerp(rows.index_select(0, positions % length), beyond, share)

        return rule

    def perceptron(self, table: Float[Tensor, "L d_pos"]) -> Callable[[Tensor], Tensor]:
        """The fitted f: positions in units of L, `[N]`, to rows `[N, d_pos]`, not rounded below float32."""
        content = table.detach().to("cpu", torch.float64).numpy().tobytes()
        there = table.device, working_dtype(table)
        layers = [(w.to(*there), b.to(*there)) for w, b in _fitted(content, tuple(table.shape), self)]
        return lambda units: _forward(layers, units)

    def targets(self, table: Float[Tensor, "L d_pos"]) -> tuple[Tensor, Tensor]:
        """What f is fitted to, float64: arguments `[n]` and rows `[n, d_pos]`."""
        rows = table.detach().to(torch.float64)
        positions = torch.arange(len(rows), device=rows.device)
        if self.protocol == "window":
            return positions.to(torch.float64) / len(rows), rows
        length = max(1, len(rows) // 8)
        positions = positions[length:]
        share = blend(positions, length)[:, None]
        beyond = (rows[length:] - (1 - share) * rows[positions % length]) / share
        return positions.to(torch.float64) / length, beyond


def _forward(layers: list[tuple[Tensor, Tensor]], units: Tensor) -> Tensor:
    *hidden, (weight, bias) = layers
    state = units[:, None]
    for inner, offset in hidden:
        state = torch.tanh(torch.addmm(offset, state, inner))
    return torch.addmm(bias, state, weight)


@lru_cache(maxsize=32)
def _fitted(content: bytes, shape: tuple[int, int], options: Learned) -> tuple[tuple[Tensor, Tensor], ...]:
    """Weights and biases of f, float64 on the CPU. The key is the content of the table, not its address."""
    with torch.inference_mode(False), torch.enable_grad():
        table = torch.frombuffer(bytearray(content), dtype=torch.float64).reshape(shape)
        units, targets = options.targets(table)
        layers = _initial(units, targets, options)
        parameters = [tensor.requires_grad_() for layer in layers for tensor in layer]
        optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, options.steps))
        scale = targets.square().mean().clamp(min=torch.finfo(torch.float64).tiny)
        for _ in range(options.steps):
            error = _forward(layers, units) - targets
            optimiser.zero_grad()
            (error.square().mean() / scale).backward()
            optimiser.step()
            schedule.step()
    return tuple((weight.detach(), bias.detach()) for weight, bias in layers)


def _initial(units: Tensor, targets: Tensor, options: Learned) -> list[tuple[Tensor, Tensor]]:
    """N(0, 1/fan-in) and zeros, but the first layer, whose bends are spread evenly over the arguments seen:
    with a plain start all bend near 0, and f fits little more than the mean of the window. Each turns within
    about the distance to the next bend."""
    generator = torch.Generator().manual_seed(options.seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    hidden, width, size = options.hidden, targets.shape[1], float(targets.square().mean().sqrt())
    low, high = float(units[0]), float(units[-1])
    slopes = draw(1, hidden) * (hidden / (high - low or 1.0))  # one row has no extent
    bends = torch.linspace(low, high, hidden, dtype=torch.float64)
    return [
        (slopes, -(slopes * bends)[0]),
        (draw(hidden, hidden) * hidden**-0.5, torch.zeros(hidden, dtype=torch.float64)),
        (draw(hidden, width) * (size * hidden**-0.5), torch.zeros(width, dtype=torch.float64)),
    ]

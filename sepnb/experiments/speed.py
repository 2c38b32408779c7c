"""Chapter 20: how much faster a separated or strict model runs than the dense one of its width.

A run is one cell: the dense model and one variant, timed in turns, so that every ratio is of one process on
one machine. Timed is a training step of the blocks without the optimiser, forward and backward: that is what
the multiply-adds count. Every block computes every stream (readout="both"), and the content as well as the
learned table of positions asks for gradients, so that no block is cheaper than the formula.

The kernel of attention does fewer multiply-adds in a second than the maps, and separation leaves it as it is.
So it is timed alone too, for a second limit beside the exact one, see `SpeedRun.limit_at_rates`; unlike the
first it is of one machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..analysis.flops import KINDS, speedup
from ..analysis.timing import paired_ratio
from ..models import Transformer, TransformerConfig
from ..streams import Streams
from ..training.device import autocast
from ..validation import one_of
from .run import Metrics, Rows
from .timed import Ratios, Step, Steps, TimedRun, Times, built, timed

VARIANTS = ("separated", "strict")
REPEATS = {"smoke": 9, "laptop": 15, "gpu": 15}
CONTENT_STD = 0.5


@dataclass(frozen=True, kw_only=True)
class SpeedRun(TimedRun):
    """One cell: a variant against the dense model of the same width.

    Args:
        variant: one of `VARIANTS`.
        width, n_heads, n_layers: of both models.
        pos_parts: d_pos is one part in this many of the width.
        compiler: a backend of torch.compile for both models, or None for eager.

    Raises:
        ValueError: an unknown variant, parts that do not divide the width, and what `TimedRun` or
            `TransformerConfig` refuses.
    """

    variant: str
    width: int
    n_heads: int
    pos_parts: int
    n_layers: int = 4
    compiler: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("variant", self.variant, VARIANTS)
        if self.pos_parts < 2 or self.width % self.pos_parts:
            raise ValueError(
                f"pos_parts is {self.pos_parts}; it must be at least 2 and divide the width {self.width}"
            )
        self.models()  # what does not fit together is refused here and not in the middle of a grid

    @property
    def pos_width(self) -> int:
        """d_pos, in columns."""
        return self.width // self.pos_parts

    def models(self) -> dict[str, TransformerConfig]:
        """The two that are timed, by name: `dense` and the variant. They differ in streams and mode only."""
        split = Streams(pos=self.pos_width, sem=self.width - self.pos_width)
        shared = {"readout": "both", "max_length": self.length}
        return {
            name: TransformerConfig(streams, self.n_layers, self.n_heads, "learned", mode=mode, **shared)
            for name, streams, mode in (
                ("dense", Streams.dense(self.width), "separated"),
                (self.variant, split, self.variant),
            )
        }

    def speedup(self, *kinds: str) -> float:
        """The ratio of the two models' multiply-adds of some kinds."""
        return speedup(*self.models().values(), self.length, self.batch_size, kinds)

    @property
    def limit(self) -> float:
        """The ratio of the multiply-adds of the two models."""
        return self.speedup(*KINDS)

    def limit_at_rates(self, attention_share: float) -> float:
        """The limit where attention takes this share of the dense model's time: it is made faster by the
        ratio of its own multiply-adds, and all other time, norms and sums too, by that of the maps."""
        maps = self.speedup(*(kind for kind in KINDS if kind != "attention"))
        return 1 / (attention_share / self.speedup("attention") + (1 - attention_share) / maps)

    @property
    def method(self) -> str:
        return self.variant

    @property
    def label(self) -> str:
        sizes = f"D={self.width}, d_pos={self.pos_width}, N={self.length}, B={self.batch_size}"
        return f"{self.variant}, {sizes}, {'eager' if self.compiler is None else 'compiled'}"

    @property
    def cell(self) -> str:
        sizes = f"d{self.width}-pos{self.pos_width}-n{self.length}-b{self.batch_size}"
        return f"{sizes}-{self.compiler or 'eager'}"

    def resolved(self) -> dict[str, Any]:
        models = {name: config.resolved() for name, config in self.models().items()}
        return super().resolved() | {"models": models}

    def content(self, device: str) -> Tensor:
        """`[B, N, D]`: the dense model takes all of it, a variant its first d_sem columns."""
        return CONTENT_STD * self.normal(self.batch_size, self.length, self.width, device=device)

    def steps(self, device: str) -> Steps:
        """The dense model, the variant, and the kernel of attention alone."""
        content = self.content(device)
        made = {n: built(Transformer, model, self.seed, device) for n, model in self.models().items()}
        steps = {name: _step(self, model, content, device) for name, model in made.items()}
        return steps | {"attention": _attention(self, device)}

    def ratios(self, times: Times) -> Ratios:
        return {"ratio": ("dense", self.variant)}

    def counted(self, times: Times, steps: Steps) -> Metrics:
        share = 1 / paired_ratio(times["dense"], times["attention"]).median
        ratio = paired_ratio(times["dense"], times[self.variant]).median
        return {
            "limit": self.limit,
            "attention_share": share,
            "limit_at_rates": self.limit_at_rates(share),
            "share_reached": share_reached(ratio, self.limit),
            "width": self.width,
            "pos_width": self.pos_width,
            "length": self.length,
            "batch_size": self.batch_size,
            "compiled": int(self.compiler is not None),
        }

    def rows(self, times: Times) -> Rows:
        rounds = zip(times["dense"], times[self.variant], times["attention"], strict=True)
        return [
            {"kind": "pair", "repeat": repeat, "dense_s": a, "variant_s": b, "attention_s": c, "ratio": a / b}
            for repeat, (a, b, c) in enumerate(rounds)
        ]

    def fingerprint(self, device: str) -> dict[str, list[float]]:
        """The mean square of each stream that each model puts out, for the first sequence."""
        content, squares = self.content(device)[:1], {}
        for name, settings in self.models().items():
            model = built(Transformer, settings, self.seed, device)
            with torch.no_grad(), autocast(device, self.precision):
                outputs = model(content[..., : settings.streams.widths["sem"]])
            squares[name] = [float(x.float().square().mean()) for x in outputs.values()]
        return squares


def share_reached(ratio: float, limit: float) -> float:
    """How much of the time that the counts promise to save was saved: (1 - 1/ratio) / (1 - 1/limit)."""
    return (1 - 1 / ratio) / (1 - 1 / limit)


def _step(config: SpeedRun, model: Transformer, content: Tensor, device: str) -> Step:
    """One forward and backward pass, from a fixed gradient of every output."""
    forward: nn.Module = model
    if config.compiler is not None:
        forward = torch.compile(model, backend=config.compiler, dynamic=False)
    generator = torch.Generator().manual_seed(config.seed + 1)
    gradients = [
        torch.randn(*content.shape[:-1], width, generator=generator).to(device)
        for width in model.config.streams.widths.values()
    ]
    content = content[..., : model.config.streams.widths["sem"]].clone().requires_grad_()
    leaves = [content, *model.parameters()]  # once, as an optimiser holds them: the more modules, the longer
    return config.step(lambda: list(forward(content).values()), leaves, gradients)


def _attention(config: SpeedRun, device: str) -> Step:
    """The fused kernel on the heads of every block of the dense model, forward and backward, and no more."""
    shape = (4, config.batch_size, config.length, config.n_heads, config.width // config.n_heads)
    drawn = config.normal(*shape, device=device).to(getattr(torch, config.precision))
    *inputs, gradient = (x.transpose(1, 2) for x in drawn)
    inputs = [x.detach().requires_grad_() for x in inputs]

    def step() -> None:
        for _ in range(config.n_layers):
            for x in inputs:
                x.grad = None
            F.scaled_dot_product_attention(*inputs, is_causal=True).backward(gradient)

    return step


def cells(profile: str, variants: Sequence[str]) -> list[dict[str, Any]]:
    shape = {"repeats": REPEATS[profile]}
    if profile == "smoke":
        shape |= {"width": 128, "n_heads": 4, "length": 128, "batch_size": 4, "n_layers": 2}
        sizes = [{"pos_parts": 4}]
    elif profile == "gpu":
        shape |= {"width": 1024, "n_heads": 16, "length": 1024, "batch_size": 16, "precision": "bfloat16"}
        compilers = (None, "inductor")
        sizes = [{"pos_parts": parts, "compiler": how} for how in compilers for parts in (8, 4, 2)]
    else:
        shape |= {"n_heads": 8, "length": 256, "batch_size": 8, "width": 256}
        sizes = [
            *({"pos_parts": parts} for parts in (8, 4, 2)),
            {"pos_parts": 4, "width": 512, "batch_size": 4},
            {"pos_parts": 4, "length": 1024, "batch_size": 4},
            {"pos_parts": 4, "batch_size": 4, "compiler": "inductor"},
        ]
    return [{**shape, **size, "variant": variant} for size in sizes for variant in variants]


EXPERIMENT = timed(
    SpeedRun,
    cells,
    name="speed",
    title="Speed against the dense model",
    question="""How many times faster than the dense model of the same width do separated and strict
        models train, and how much of what their multiply-adds allow is that?""",
    order=9,
    methods=VARIANTS,
    smoke=VARIANTS[:1],
    costs={"smoke": 1.0, "laptop": 25.0, "gpu": 30.0},
)

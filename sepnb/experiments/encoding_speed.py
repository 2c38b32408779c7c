"""Chapters 20 and 7: the cost of an encoding beside causal attention without positions.

A run is one encoding at one length: everything that it does between projected queries and averaged values,
its tables and biases included, forward and backward in one layer. In a model all layers share these tables,
so that here is the dearest case. It is timed in turns with torch's fused causal attention on the same
queries, keys and values: eager, with its formulas compiled, and as x-transformers has it, eager and compiled
as a whole, see `peer`. *Ahead* is the speed of our step, compiled if there is a compiler, over that of the
faster step of x-transformers. An encoding that acts at the input costs attention nothing and has no run.

Two numbers beside each ratio say what could be reached. Neither is a bound, and the aims were set without
them:

- The *route* is measured: attention without positions by the kernel that the encoding has to take. A trained
  bias, and scores that are no product plus bias, take the explicit softmax; a fixed bias takes the fused
  kernel with a mask, and a rotation that kernel as it is.
- The *products* are counted: the multiply-adds of the fused kernel over those of the encoding's formula. The
  kernel leaves out the half of the square that causal attention hides; with a mask, as in the explicit
  softmax, all of it is counted, in four pieces five eighths of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import encodings
from ..analysis.flops import products_of
from ..analysis.timing import check_alike
from ..encodings import Site
from ..encodings.forgetting import ForgettingTerm
from ..models import Transformer, TransformerConfig, attention_weights, causal_mask, compile_formulas
from ..models.attention import with_terms
from ..models.fast import kernels
from ..records.store import Record
from ..streams import Streams
from ..training.device import autocast
from . import peer
from .peer import Core
from .run import Metrics, Rows
from .timed import Ratios, Steps, TimedRun, Times, built, timed
from .timed import run as time_cell

REPEATS = {"smoke": 9, "laptop": 11, "gpu": 15}
TARGETS = {
    **{(name, length): 0.95 for name in ("rope", "xpos") for length in (512, 1024)},
    **{(name, 512): 0.95 for name in ("alibi", "sandwich")},
    **{(name, 1024): 0.75 for name in ("alibi", "sandwich")},
    **{(name, 512): 0.6 for name in ("t5", "kerple")},
    **{(name, 512): 0.4 for name in ("transformer-xl", "shaw", "distance-aware")},
}
"""The share of the fused kernel's speed that the compiled step should reach on a CPU, set beforehand."""

ALIKE = {"float32": 1e-4, "bfloat16": 5e-2}
"""By how much two steps may differ, as a share of the largest number, by the precision of a cell."""


OPEN = 6.0
"""The logit of a gate that keeps all but a quarter of a per cent."""

SHARE = {"rope-partial": encodings.RoPE(partial=1 / 4)}
"""RoPE on a share of the columns, as `ladder_text` calls it."""


def timed_methods() -> list[str]:
    """The encodings of indices that act on what is timed: queries, keys, scores or values. `none` is the
    control: what the model's own path costs beside a bare call."""
    names = [name for name in encodings.names(axes=1) if Site.INPUT not in encodings.build(name).sites]
    return [*names, *SHARE]


@dataclass(frozen=True, kw_only=True)
class EncodingSpeedRun(TimedRun):
    """One cell.

    Args:
        method: one of `timed_methods`.
        n_heads, head_width: of queries and keys.
        compiler: a backend of torch.compile for the compiled step; None leaves that step out.

    Raises:
        ValueError: an encoding that is not timed, and what `TimedRun` or `TransformerConfig` refuses.
    """

    method: str
    n_heads: int
    head_width: int
    compiler: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method not in timed_methods():
            raise ValueError(f"{self.method!r} is not timed; use one of {', '.join(timed_methods())}")
        _ = self.model  # what does not fit together is refused here and not in the middle of a grid

    @property
    def model(self) -> TransformerConfig:
        streams = Streams.dense(self.n_heads * self.head_width)
        encoding = SHARE.get(self.method, self.method)
        return TransformerConfig(streams, 1, self.n_heads, encoding, max_length=self.length)

    @property
    def label(self) -> str:
        return f"{self.method}, N={self.length}, B={self.batch_size}, H={self.n_heads}, d={self.head_width}"

    @property
    def cell(self) -> str:
        return f"n{self.length}-b{self.batch_size}-h{self.n_heads}-d{self.head_width}"

    def resolved(self) -> dict[str, Any]:
        return super().resolved() | {"model": self.model.resolved()}

    def steps(self, device: str = "cpu") -> Steps:
        """`fused`, `eager`, and where there are such, `compiled`, `route`, `x-transformers` and
        `x-transformers, compiled`."""
        cores: dict[str, tuple[Core, Sequence[Tensor]]] = {"fused": (fused, ())}
        for name, backend in (("eager", None), ("compiled", self.compiler)):
            if name == "eager" or backend is not None:
                model = self.layer(device)
                compile_formulas(model, backend)
                cores[name] = own(model), list(model.parameters())
        if (bare := route(model, self, device)) is not None:
            cores["route"] = bare, ()
        if (theirs := peer.attention(self.method, self.n_heads, self.head_width)) is not None:
            cores[peer.NAME] = core, leaves = theirs
            if self.compiler is not None:
                cores[peer.COMPILED] = torch.compile(core, backend=self.compiler), leaves
        steps = {}
        for name, (core, parameters) in cores.items():
            *leaves, gradient = self.inputs(device)
            leaves = [leaf.requires_grad_() for leaf in leaves]
            once = partial(lambda core, leaves: [core(*leaves)], core, leaves)
            steps[name] = self.step(once, [*leaves, *parameters], [gradient])
        return steps

    def layer(self, device: str) -> Transformer:
        """A model of one layer. Forget gates are nearly open in it: as they are drawn, half is forgotten from
        a token to the next, and a CPU takes several times as long to multiply the tiny weights that are
        left."""
        model = built(Transformer, self.model, self.seed, device)
        for term in model.blocks[0].attention.terms:
            if isinstance(term, ForgettingTerm):
                torch.nn.init.constant_(term.gates.bias, OPEN)
        return model

    def inputs(self, device: str) -> tuple[Tensor, ...]:
        """Queries, keys, values and the gradient of the output, `[B, H, N, d]` each."""
        size = self.batch_size, self.n_heads, self.length, self.head_width
        return self.normal(4, *size, device=device).unbind()

    def check(self, steps: Steps) -> None:
        if self.compiler is not None:
            check_alike(steps["compiled"](), steps["eager"](), ALIKE[self.precision])

    @property
    def ours(self) -> str:
        return "eager" if self.compiler is None else "compiled"

    def ratios(self, times: Times) -> Ratios:
        """Every share of the fused kernel's speed, and how far ahead of the faster of theirs ours is."""
        columns = {name: name.replace(", ", "_").replace("-", "_") for name in times if name != "fused"}
        ratios = {column: ("fused", name) for name, column in columns.items()}
        if theirs := [name for name in (peer.NAME, peer.COMPILED) if name in times]:
            ratios["ahead"] = min(theirs, key=lambda name: median(times[name])), self.ours
        return ratios

    def counted(self, times: Times, steps: Steps) -> Metrics:
        # Counted afterwards, on formulas run as they are: while products are counted nothing compiled is
        # called, and what was compiled is not called any more until all is compiled anew.
        products = products_of(steps["fused"]) / products_of(steps[self.ours])
        target = TARGETS.get((self.method, self.length))
        aim = {} if target is None else {"target": target}
        return {"length": self.length, "products": products, **aim}

    def rows(self, times: Times) -> Rows:
        version = peer.version() if peer.NAME in times else "not installed, or without it"
        return [*super().rows(times), {"kind": "package", "name": peer.NAME, "version": version}]

    def fingerprint(self, device: str) -> dict[str, list[float]]:
        """The mean square of what every head puts out for the first sequence, eager, without gradients."""
        q, k, v, _ = (x[:1] for x in self.inputs(device))
        with torch.no_grad(), autocast(device, self.precision):
            out = own(self.layer(device))(q, k, v)
        return {"heads": out.float().square().mean(dim=(0, 2, 3)).tolist()}


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The baseline: causal attention without positions in torch's fused kernel."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def explicit(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same by the plain formula."""
    return attention_weights(q, k, None, causal=True) @ v


def own(model: Transformer) -> Core:
    """What one layer of the model does from projected queries, keys and values to averaged values. Gates are
    computed from states of the model's width; the queries of all heads stand for these."""
    attention = model.blocks[0].attention
    (span,) = attention.groups[0].spans

    def core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        at = torch.arange(q.shape[-2], device=q.device)
        context = model.attention_context(at, at, q.dtype, consecutive=True)
        terms = attention.terms_of(q.transpose(1, 2).flatten(-2), context)
        q, k = with_terms(span, *context.rotated(q, k, ("sem",)), terms)
        return attention.core(span, q, k, v, context)

    return core


def route(model: Transformer, config: EncodingSpeedRun, device: str) -> Core | None:
    """Attention without positions by the kernel that the encoding takes in training; a mask that this kernel
    needs is made beforehand. None where that is the fused kernel as it is, and on CUDA for what may go to
    FlexAttention."""
    inner, length = model.blocks[0].attention.core, config.length
    whole = config.compiler is None or torch.device(device).type != "cpu"
    size = length if whole else kernels.rows_of_a_piece(length)
    pieces = [(start, min(start + size, length)) for start in range(0, length, size)]
    biases = [*model.score_encodings, *inner.biases]
    if torch.device(device).type == "cuda" and (biases or kernels.flexible(model)):
        return None
    if inner.explicit or any(list(bias.parameters()) for bias in biases):
        compiler = None if config.compiler is None else kernels.compiler_of(config.compiler)
        return _piecewise(lambda q, k, v: kernels.chosen(explicit, compiler)(q, k, v), pieces)
    if not biases:
        return None
    hidden = ~causal_mask(length, length, torch.device(device))
    mask = torch.zeros(1, 1, *hidden.shape, device=device).masked_fill(hidden, -torch.inf)

    def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows = mask[..., k.shape[-2] - q.shape[-2] : k.shape[-2], : k.shape[-2]]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=rows.to(q.dtype))

    return _piecewise(masked, pieces)


def _piecewise(core: Core, pieces: Sequence[tuple[int, int]]) -> Core:
    """The queries of each piece with the keys up to its end."""

    def joined(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        parts = [core(q[..., a:b, :], k[..., :b, :], v[..., :b, :]) for a, b in pieces]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)

    return joined


def cells(profile: str, _: Sequence[str]) -> list[dict[str, Any]]:
    methods = timed_methods()
    if profile == "smoke":
        methods = ["none", "rope", "alibi", "t5", "shaw"]  # one of each way to act
        sizes = [{"length": 32, "batch_size": 2, "n_heads": 2, "head_width": 8}]
    else:
        lengths = (512, 1024) if profile == "laptop" else (1024, 4096)
        sizes = [{"length": n, "batch_size": 8, "n_heads": 8, "head_width": 64} for n in lengths]
    settings = {
        "repeats": REPEATS[profile],
        "compiler": None if profile == "smoke" else "inductor",
        "precision": "bfloat16" if profile == "gpu" else "float32",
    }
    return [{"method": name, **size, **settings} for size in sizes for name in methods]


def installed() -> bool:
    """Named here, so that the experiment can be sent to another process."""
    return peer.installed()


def run(config: EncodingSpeedRun, **how: Any) -> Record:
    peer.check(config.profile)
    return time_cell(config, **how)


EXPERIMENT = timed(
    EncodingSpeedRun,
    cells,
    name="encoding_speed",
    title="Speed of the encodings",
    question="""What share of the speed of causal attention without positions is left with each encoding,
        eager and compiled, and what share does its route leave, the same kernel without positions?""",
    costs={"smoke": 0.5, "laptop": 100.0, "gpu": 30.0},
    computes=run,
    installed=installed,
    columns={"length": attrgetter("length")},
)

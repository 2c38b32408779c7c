"""Chapter 16: what do the two losses of SeqPE make of the space of positions, without any text?

An encoder is trained on its own losses alone and looked at through windows of neighbouring positions, at the
`starts` that training reached or never saw, and at as many positions spread evenly over all that the losses
see. Every run looks at its randomly initialised encoder too, since digits that positions share make
embeddings alike before anything is learned.

Every variant is one change of the first, but for `released`. In all but `scale-free` the distillation takes
raw products, whose inverse temperature is the squared length of the embeddings.

The records of `seqpe_geometry` showed that products and distances part: with both losses the products of a
window are hardly ordered, and the distances are. No rule asked for distances when that was seen. So rules
were written then, and `seqpe_distances` trains some of the encoders with fresh seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data.draws import generator_of
from ..records.provenance import Clock
from ..records.store import Record, digest
from ..seqpe import SequentialPositionEncoder, contrastive_loss
from ..seqpe.digits import misaligned, period
from ..seqpe.geometry import geometry, likeness
from ..seqpe.sampling import CandidateSampler, WindowSampler
from ..training.config import TrainingConfig
from ..training.loop import Diverged, train
from ..training.seqpe_losses import RELEASED, SeqPELosses
from ..validation import one_of
from .base import Experiment
from .methods import Method, listed
from .run import Progress, recorded

LARGEST = 20_000
"""Positions that the losses see lie below this, as in the released text program."""

LENGTH = 128
"""Positions of a window, the trained length."""

SEEN, UNSEEN = (1_000, 5_000, 12_000, 19_000), (24_000, 50_000, 91_000)
"""About where windows begin, below the largest position that a loss sees and past it."""

SPREAD, STEP = "spread", LARGEST // LENGTH
"""The group of positions that lie so far apart."""

FRESH = 512
"""Anchors of the contrastive task at the end, with candidates of the released mixture."""


def starts(base: int) -> dict[str, tuple[int, ...]]:
    """Where windows begin. An aligned start is a multiple of the smallest power of the base that a window
    fits into: the low digits run as in the trained one. A misaligned one is an odd step further on."""
    unit, step = period(LENGTH, base), misaligned(LENGTH, base)
    groups = {"trained": (0,)}
    for name, near in (("", SEEN), (", never seen", UNSEEN)):
        aligned = tuple(round(start / unit) * unit for start in near)
        groups[f"aligned{name}"] = aligned
        groups[f"misaligned{name}"] = tuple(start + step for start in aligned)
    return groups


BOTH = "both"
METHODS = listed(
    Method(BOTH, "contrastive and distillation"),
    Method("contrastive", "contrastive alone", BOTH, training={"distillation": 0.0}),
    Method("distillation", "distillation alone", BOTH, training={"contrastive": 0.0}),
    Method("scale-free", "distillation free of scale", BOTH, training={"distillation_scale": None}),
    Method(
        "around",
        "half of the anchors ask for neighbours",
        BOTH,
        training={"kinds": (("around", 0.5), ("edited", 0.2), ("window", 0.3))},
    ),
    Method("uniform", "all candidates uniform", BOTH, training={"kinds": (("uniform", 1.0),)}),
    Method("base-2", "binary digits", BOTH, {"base": 2, "digits": 17}),
    Method("base-16", "hexadecimal digits", BOTH, {"base": 16, "digits": 5}),
    Method("released", "scale, reduction and first weights as released", BOTH, {"std": 0.02}, RELEASED),
    axes=0,
)
"""Of an encoder alone: `model` holds settings of the encoder, `training` those of its losses; `kinds` are
those of the candidates."""

WIDTH = {"smoke": 16, "laptop": 64, "gpu": 128}
STEPS = {"smoke": 30, "laptop": 1_200, "gpu": 10_000}
RATE = 1e-3


@dataclass(frozen=True)
class SeqPEGeometryRun:
    """An encoder, its losses and its training."""

    experiment: str
    profile: str
    method: str
    seed: int

    def __post_init__(self) -> None:
        one_of("variant", self.method, METHODS)

    @property
    def label(self) -> str:
        return METHODS[self.method].says

    @property
    def encoder(self) -> dict[str, Any]:
        """Settings of the encoder."""
        width = WIDTH[self.profile]
        own = {"width": width, "heads": max(1, width // 32), "base": 10, "digits": 5}
        return own | dict(METHODS[self.method].model)

    @property
    def losses(self) -> SeqPELosses:
        weights = dict(METHODS[self.method].training)
        kinds = {"kinds": weights.pop("kinds")} if "kinds" in weights else {}
        return SeqPELosses(
            CandidateSampler((LARGEST,), window=(2 * LENGTH,), base=self.encoder["base"], **kinds),
            WindowSampler((LARGEST,), (LENGTH,), away=(LENGTH // 4,)),
            n_heads=self.encoder["heads"],
            **weights,
        )

    @property
    def training(self) -> TrainingConfig:
        return TrainingConfig(STEPS[self.profile], 1, 1, RATE, weight_decay=0.0, auxiliary=self.losses)

    @property
    def key(self) -> str:
        return f"{self.method}-seed{self.seed}-{digest(self.resolved())[:8]}"

    def resolved(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "variant": self.method,
            "seed": self.seed,
            "encoder": self.encoder,
            "training": self.training.resolved(),
            "windows": {group: list(at) for group, at in starts(self.encoder["base"]).items()},
            "length": LENGTH,
            "spread": STEP,
            "fresh": FRESH,
        }


class PositionsOnly(nn.Module):
    """An encoder for the training loop, in a language of one letter: of its tokens nothing can be learned,
    and what is minimised is the auxiliary loss alone."""

    def __init__(self, encoder: SequentialPositionEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, tokens: Tensor) -> Tensor:
        """`[B, L]` to logits `[B, L, 1]`, all zero."""
        return torch.zeros(*tokens.shape, 1, device=tokens.device)


def letters(steps: int) -> Iterator[np.ndarray]:
    """As many batches of the one text of that language."""
    return (np.zeros((1, 2), dtype=np.int64) for _ in range(steps))


def initial(config: SeqPEGeometryRun) -> SequentialPositionEncoder:
    """The untrained encoder of a run."""
    torch.manual_seed(config.seed)
    return SequentialPositionEncoder(**config.encoder)


def trained(
    config: SeqPEGeometryRun,
    *,
    device: str = "cpu",
    stop_after: int | None = None,
    progress: Progress | None = None,
) -> tuple[SequentialPositionEncoder, list[float]]:
    """The encoder after its training, and what each step minimised, in nats; raises `Diverged`."""
    encoder, curve = initial(config).to(device), []
    training, loss = config.training, config.losses.bind(config.seed)

    def noted(model: nn.Module) -> Tensor:
        value = loss(model)
        curve.append(value.detach())
        return value

    train(
        PositionsOnly(encoder),
        letters(training.steps),
        training,
        device=device,
        auxiliary=replace(loss, value=noted),
        stop_after=stop_after,
        on_step=None if progress is None else lambda step: progress(step + 1, training.steps),
    )
    return encoder, [float(value) for value in curve]


def finite(**measures: float) -> dict[str, float]:
    """Measures with six digits, as a record holds them; without those that embeddings which are all alike do
    not have."""
    return {name: float(f"{value:.6g}") for name, value in measures.items() if isfinite(value)}


def windows_of(encoder: SequentialPositionEncoder, state: str) -> list[dict[str, Any]]:
    """A row of the kind "window" for every start, with the measures of `geometry` and how like the trained
    window it is, and one of the spread positions, which are like none."""
    encoder.eval()
    within, rows = torch.arange(LENGTH), []
    with torch.no_grad():
        own = encoder(within)
        for group, begun in (starts(encoder.base) | {SPREAD: (0,)}).items():
            for start in begun:
                embeddings = encoder(STEP * within if group == SPREAD else start + within)
                measures = geometry(embeddings, within)._asdict()
                if group != SPREAD:
                    measures["likeness"] = likeness(own, embeddings)
                about = {"kind": "window", "state": state, "group": group, "start": start}
                rows.append(about | finite(**measures))
    return rows


def fresh(encoder: SequentialPositionEncoder, seed: int) -> dict[str, float]:
    """The contrastive task on a draw of its own, of positions that the training drew too: the loss at scale
    1/sqrt(D), in nats, and how often the nearest candidate has the largest product."""
    sampler = CandidateSampler((LARGEST,), anchors=FRESH, window=(2 * LENGTH,), base=encoder.base)
    anchors, candidates = map(torch.from_numpy, sampler.draw(generator_of(seed, "seqpe-fresh")))
    encoder.eval()
    with torch.no_grad():
        ours = encoder(anchors)
        theirs = encoder(candidates.flatten(0, 1)).unflatten(0, candidates.shape[:2])
        at = (anchors.to(ours.device), candidates.to(ours.device))
        loss = contrastive_loss(ours, theirs, *at)
        products = torch.einsum("pd,pkd->pk", ours, theirs)
        apart = (at[1] - at[0][:, None]).square().sum(dim=-1)
        right = apart.gather(1, products.argmax(dim=1, keepdim=True))[:, 0] == apart.amin(dim=1)
    return {"fresh_loss": float(loss), "fresh_accuracy": float(right.double().mean())}


def metrics_of(rows: Sequence[Mapping[str, Any]], state: str) -> dict[str, float]:
    """The mean of every measure over the windows of a group, as `<measure>/<group>`, of the randomly
    initialised encoder as `drawn/<measure>/<group>`; without those that some window has not."""
    every: dict[str, list[float | None]] = {}
    for row in rows:
        for measure in ("order", "adjacency", "norm", "distance", "likeness"):
            name = f"{measure}/{row['group']}"
            every.setdefault(name if state == "trained" else f"{state}/{name}", []).append(row.get(measure))
    return {name: float(np.mean(values)) for name, values in every.items() if None not in values}


def run(config: SeqPEGeometryRun, *, device: str = "cpu", progress: Progress | None = None) -> Record:
    """Train an encoder on its losses alone, and look at it before and after."""
    clock = Clock(device)
    begins = fingerprint(config, device=device)
    begun, first = Clock(device), initial(config).to(device)
    rows = windows_of(first, "drawn")
    metrics = {"parameters": sum(p.numel() for p in first.parameters())} | metrics_of(rows, "drawn")
    try:
        encoder, curve = trained(config, device=device, progress=progress)
    except Diverged as error:  # a result like any other: kept, and without measures
        metrics["diverged_at_step"] = error.step
    else:
        metrics["train_cpu_s"] = begun.cpu_s
        pieces = np.array_split(np.array(curve), min(60, len(curve)))
        ends = np.cumsum([len(piece) for piece in pieces])
        rows += [
            {"kind": "curve", "step": int(end), **finite(loss=piece.mean())}
            for end, piece in zip(ends, pieces, strict=True)
        ]
        windows = windows_of(encoder, "trained")
        metrics |= metrics_of(windows, "trained") | fresh(encoder, config.seed)
        rows += windows
    return recorded(config, clock, metrics, rows, begins)


def fingerprint(config: SeqPEGeometryRun, *, device: str = "cpu", **_: object) -> dict[str, list[float]]:
    """Lengths of some initial embeddings, and what the first five steps minimise."""
    with torch.no_grad():
        first = initial(config).to(device)(torch.tensor([0, 1, LENGTH, LARGEST])).norm(dim=1)
    _, curve = trained(config, device=device, stop_after=5)
    return {"initial_norms": first.tolist(), "first_losses": curve}


SHARED = {
    "order": 7,
    "plan": SeqPEGeometryRun,
    "computes": run,
    "begins": fingerprint,
    "costs": {"smoke": 2.0, "laptop": 60.0, "gpu": 120.0},
}
GEOMETRY = Experiment(
    name="seqpe_geometry",
    title="Two losses and a space",
    question="""Which of SeqPE's two losses orders embeddings by distance, and which carries the geometry
        of the trained window to positions elsewhere?""",
    methods=tuple(METHODS),
    smoke=(BOTH, "base-2"),
    **SHARED,
)
DISTANCES = Experiment(
    name="seqpe_distances",
    title="Two losses and distances, on fresh seeds",
    question="""Do the Euclidean distances of SeqPE's embeddings follow the distances of positions, and
        which of its losses sees to it?""",
    methods=(BOTH, "contrastive", "distillation"),
    smoke=(BOTH,),
    seeds=(7, 8, 9, 10, 11, 12),
    **SHARED,
)

"""What SeqPE costs in training: the share of a step that is spent on positions, and how much longer it takes.

Three pieces are timed against each other, forward and backward: the step of a dense model with the term of
the score and both losses; of that step what is done for positions alone, the embeddings of the text, their
maps to queries and keys, and the losses; and the step of the model without an encoding. The second leaves out
that queries and keys are longer by the columns of the term; how much longer a step takes than without an
encoding has it in. A piece is as many
steps as lie from one computation of the losses to the next. The optimiser's step is not timed.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from ..analysis.seqpe_cost import step_cost
from ..models import LanguageModel, TransformerConfig
from ..records.store import digest
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.loop import autocast, next_token_losses
from ..training.seqpe_losses import SeqPELosses
from . import language_modelling as lm
from .encoding_methods import seqpe_losses
from .language_modelling import Metrics
from .timed import Steps, Timed, TimedRun, Times, with_quartiles

TARGET = 0.05
"""The largest share that was thought bearable, set beforehand, for the narrowest encoder."""

WIDTHS = {"smoke": (8,), "laptop": (32, 64, 128), "gpu": (32, 64, 128)}
EVERY = {"smoke": (2,), "laptop": (1, 4), "gpu": (1, 4)}
LENGTH = {"smoke": 64, "laptop": 512, "gpu": 512}
REPEATS = {"smoke": 9, "laptop": 21, "gpu": 51}


@dataclass(frozen=True)
class SeqPECostRun(TimedRun):
    """One cell: the width of the encoder, and in how many steps its losses are computed once.

    Args:
        experiment, profile, seed: as in every run; the seed draws parameters and positions.
        width: of the encoder.
        every: as in `SeqPELosses`.
        length: N, tokens of a sequence.
        repeats: timed rounds.
    """

    experiment: str
    profile: str
    width: int
    every: int
    length: int
    repeats: int
    seed: int = 0

    @property
    def method(self) -> str:
        return f"width-{self.width}-every-{self.every}"

    @property
    def label(self) -> str:
        steps = "every step" if self.every == 1 else f"every {self.every} steps"
        return f"encoder {self.width} wide, losses in {steps}, N={self.length}"

    @property
    def size(self) -> lm.Size:
        """That of the profile, at this length."""
        return replace(lm.SIZES[self.profile], length=self.length)

    @property
    def model(self) -> TransformerConfig:
        size, encoding = self.size, SeqPE(width=self.width)
        streams = Streams.dense(size.width)
        return TransformerConfig(streams, size.n_layers, size.n_heads, encoding, max_length=size.length)

    @property
    def losses(self) -> SeqPELosses:
        """Those of the method `seqpe`, without shift steps: every step that has losses has both."""
        return replace(seqpe_losses(self.size, self.width), shifts=None, every=self.every)

    @property
    def key(self) -> str:
        return f"{self.method}-n{self.length}-seed{self.seed}-{digest(self.resolved())[:8]}"

    def resolved(self) -> dict[str, Any]:
        """Every setting in plain JSON types."""
        return asdict(self) | {
            "model": self.model.resolved(),
            "losses": self.losses.resolved(),
            "batch_size": self.size.batch_size,
            "precision": self.size.precision,
        }

    def steps(self, device: str) -> Steps:
        return pieces(self, device)

    def metrics(self, times: Times, steps: Steps) -> Metrics:
        batch_size, losses = self.size.batch_size, self.losses
        counted = step_cost(self.model, batch_size=batch_size, length=self.length, losses=losses)
        return {
            "width": self.width,
            "every": self.every,
            "length": self.length,
            **with_quartiles("share", times["positions"], times["whole"]),
            **with_quartiles("longer", times["whole"], times["bare"]),
            "products": counted.encoder,
            "products_columns": counted.longer_queries,
            "products_teacher": counted.taught / sum(counted),
            "products_longer": sum(counted) / counted.backbone,
            "target": TARGET,
        }

    def fingerprint(self, device: str) -> dict[str, list[float]]:
        """The first loss of the tokens, in nats, and that of positions."""
        model = _built(self, self.model, device)
        with torch.no_grad():
            tokens = next_token_losses(model, _tokens(self, device)).mean()
            own = self.losses.bind(self.seed)(model)
        return {"first_losses": [float(tokens), float(own)]}


def _built(config: SeqPECostRun, model: TransformerConfig, device: str) -> LanguageModel:
    torch.manual_seed(config.seed)
    return LanguageModel(model).to(device).train()


def _tokens(config: SeqPECostRun, device: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(config.seed)
    return torch.randint(256, (config.size.batch_size, config.length + 1), generator=generator).to(device)


def pieces(config: SeqPECostRun, device: str = "cpu") -> dict[str, Callable[[], None]]:
    """What is timed, by name: `whole`, `positions` and `bare`."""
    tokens, every = _tokens(config, device), config.every
    at = torch.arange(config.length, device=device)
    bare = _built(config, replace(config.model, encoding="none"), device)
    made = {name: _built(config, config.model, device) for name in ("whole", "positions")}
    losses = {name: config.losses.bind(config.seed) for name in made}

    def stepped(model: nn.Module, loss: Callable[[], torch.Tensor]) -> None:
        model.zero_grad(set_to_none=True)
        with autocast(device, config.size.precision):
            value = loss()
        value.backward()

    def whole() -> None:
        model = made["whole"]
        for _ in range(every):
            stepped(model, lambda: next_token_losses(model, tokens).mean() + losses["whole"](model))

    def positions() -> None:
        model = made["positions"]
        (module,) = model.transformer.query_key_encodings

        def embedded() -> torch.Tensor:
            sides = module.prepare(at, at)
            return sum(columns.sum() for side in sides for columns in side.maps) + losses["positions"](model)

        for _ in range(every):
            stepped(model, embedded)

    def without() -> None:
        for _ in range(every):
            stepped(bare, lambda: next_token_losses(bare, tokens).mean())

    return {"whole": whole, "positions": positions, "bare": without}


class SeqPECost(Timed):
    """What does SeqPE cost in training?"""

    name: ClassVar[str] = "seqpe_cost"
    title: ClassVar[str] = "The cost of SeqPE"
    question: ClassVar[str] = (
        "What share of a training step goes to SeqPE's encoder and losses, and what share of its "
        "multiply-adds would that be?"
    )
    runs: ClassVar = SeqPECostRun
    costs: ClassVar = {"smoke": 3.0, "laptop": 60.0, "gpu": 20.0}

    def cells(self, profile: str) -> list[dict[str, Any]]:
        shape = {"length": LENGTH[profile], "repeats": REPEATS[profile]}
        return [
            {"width": width, "every": every, **shape} for width in WIDTHS[profile] for every in EVERY[profile]
        ]

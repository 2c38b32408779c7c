"""What SeqPE costs in training: the share of a step that is spent on positions, and how much longer it takes.

Three pieces are timed against each other, forward and backward, without the optimiser's step:

- *whole*: the step of a dense model with the term of the score and both losses;
- *positions*: of that step what is done for positions alone, the embeddings of the text, their maps to
  queries and keys, and the losses, but not the longer queries and keys;
- *bare*: the step of the model without an encoding.

A piece is as many steps as lie from one computation of the losses to the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..analysis.seqpe_cost import step_cost
from ..models import LanguageModel, TransformerConfig
from ..seqpe import SeqPE
from ..streams import Streams
from ..training.device import autocast
from ..training.losses import next_token_losses
from ..training.seqpe_losses import SeqPELosses
from . import language_modelling as lm
from .encoding_methods import seqpe_losses
from .run import Metrics
from .timed import Ratios, Steps, TimedRun, Times, built, timed

TARGET = 0.05
"""The largest share that was thought bearable, set beforehand, for the narrowest encoder."""

WIDTHS = {"smoke": (8,), "laptop": (32, 64, 128), "gpu": (32, 64, 128)}
EVERY = {"smoke": (2,), "laptop": (1, 4), "gpu": (1, 4)}
LENGTH = {"smoke": 64, "laptop": 512, "gpu": 512}
REPEATS = {"smoke": 9, "laptop": 21, "gpu": 51}


@dataclass(frozen=True, kw_only=True)
class SeqPECostRun(TimedRun):
    """One cell.

    Args:
        width: of the encoder.
        every: its losses are computed once in so many steps, as in `SeqPELosses`.
    """

    width: int
    every: int

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
    def cell(self) -> str:
        return f"n{self.length}"

    def resolved(self) -> dict[str, Any]:
        return super().resolved() | {"model": self.model.resolved(), "losses": self.losses.resolved()}

    def steps(self, device: str = "cpu") -> Steps:
        tokens, at = self.tokens(self.length + 1, device), torch.arange(self.length, device=device)
        models = (replace(self.model, encoding="none"), self.model, self.model)
        bare, whole, positions = (built(LanguageModel, model, self.seed, device) for model in models)
        losses, alone = (self.losses.bind(self.seed) for _ in range(2))
        (module,) = positions.transformer.query_key_encodings

        def of_text(model: LanguageModel) -> Tensor:
            return next_token_losses(model, tokens).mean()

        def of_embeddings() -> Tensor:
            return sum(columns.sum() for side in module.prepare(at, at) for columns in side.maps)

        def piece(model: LanguageModel, loss: Callable[[], Tensor]) -> Callable[[], None]:
            def steps() -> None:
                for _ in range(self.every):
                    model.zero_grad(set_to_none=True)
                    with autocast(device, self.precision):
                        value = loss()
                    value.backward()

            return steps

        return {
            "whole": piece(whole, lambda: of_text(whole) + losses(whole)),
            "positions": piece(positions, lambda: of_embeddings() + alone(positions)),
            "bare": piece(bare, lambda: of_text(bare)),
        }

    def ratios(self, times: Times) -> Ratios:
        return {"share": ("positions", "whole"), "longer": ("whole", "bare")}

    def counted(self, times: Times, steps: Steps) -> Metrics:
        sizes = {"batch_size": self.batch_size, "length": self.length}
        counted = step_cost(self.model, losses=self.losses, **sizes)
        return {
            "width": self.width,
            "every": self.every,
            "length": self.length,
            "products": counted.encoder,
            "products_columns": counted.longer_queries,
            "products_teacher": counted.taught / sum(counted),
            "products_longer": sum(counted) / counted.backbone,
            "target": TARGET,
        }

    def fingerprint(self, device: str) -> dict[str, list[float]]:
        """The first loss of the tokens, in nats, and that of positions."""
        model = built(LanguageModel, self.model, self.seed, device)
        with torch.no_grad():
            tokens = next_token_losses(model, self.tokens(self.length + 1, device)).mean()
            own = self.losses.bind(self.seed)(model)
        return {"first_losses": [float(tokens), float(own)]}


def cells(profile: str, _: Sequence[str]) -> list[dict[str, Any]]:
    size = lm.SIZES[profile]
    shape = {"length": LENGTH[profile], "repeats": REPEATS[profile]}
    shape |= {"batch_size": size.batch_size, "precision": size.precision}
    return [
        {"width": width, "every": every, **shape} for width in WIDTHS[profile] for every in EVERY[profile]
    ]


EXPERIMENT = timed(
    SeqPECostRun,
    cells,
    name="seqpe_cost",
    title="The cost of SeqPE",
    question="""What share of a training step goes to SeqPE's encoder and losses, and what share of its
        multiply-adds would that be?""",
    costs={"smoke": 3.0, "laptop": 60.0, "gpu": 20.0},
)

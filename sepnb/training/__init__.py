"""Training: one loop, what yields its batches, and what it minimises.

`loop` trains any model as a `config` says, and `device` holds what a GPU does otherwise. `positions` and
`shifts` say where a text or a grid is read; `losses` and `seqpe_losses` say what is minimised beside the
next token; `checkpoints` keeps a training that was left; `adapting` trains one part of a model and leaves the
other; `memory` reads a text segment by segment.
"""

from .adapting import adapt
from .batch import Batch
from .config import TrainingConfig
from .device import autocast, optimiser
from .loop import Diverged, train
from .losses import next_token_losses, target_losses

__all__ = [
    "Batch",
    "Diverged",
    "TrainingConfig",
    "adapt",
    "autocast",
    "next_token_losses",
    "optimiser",
    "target_losses",
    "train",
]

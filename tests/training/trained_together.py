"""Trains a small model in float64, alone or in processes that share it, and prints the losses of some cases.

`trained_together.py RANK COUNT FILE`: FILE is where the processes meet.
"""

import json
import sys
from collections.abc import Iterator

import numpy as np
import torch
import torch.distributed as dist

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train
from sepnb.training.batch import Batch
from sepnb.training.positions import RandomOffset
from sepnb.training.together import Together

STEPS, LENGTH = 6, 8
CASES = {"even": 4, "uneven": 3, "weighted": 4, "placed": 4}
"""How many texts each batch has."""


def texts(case: str, config: TrainingConfig) -> Iterator[np.ndarray | Batch]:
    generator = np.random.default_rng(5)
    sizes = {"batch_size": config.batch_size, "length": LENGTH, "seed": 3, "steps": STEPS}
    places = config.positions.positions(**sizes) if config.positions else STEPS * [None]
    for place in places:
        batch = generator.integers(7, size=(config.batch_size, LENGTH + 1))
        if case == "weighted":
            weights = generator.random((config.batch_size, LENGTH)).astype(np.float32)
            weights[1::2] = 0.0  # all that the second process computes
            yield Batch(batch[:, :-1], batch[:, 1:], weights=weights)
        else:
            yield batch if place is None else Batch(batch[:, :-1], batch[:, 1:], place)


def losses(case: str, together: Together | None) -> list[float]:
    torch.manual_seed(1 if together is None else 1 + together.rank)  # the first process's weights are taken
    fields = {"streams": Streams(pos=8, sem=8), "encoding": "learned", "max_length": 32}
    model = LanguageModel(TransformerConfig(n_layers=1, n_heads=2, **fields), vocab_size=7).double()
    positions = RandomOffset(32) if case == "placed" else None
    config = TrainingConfig(
        steps=STEPS, batch_size=CASES[case], length=LENGTH, learning_rate=1e-2, positions=positions
    )
    return train(model, texts(case, config), config, together=together)


if __name__ == "__main__":
    rank, count, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    together = None
    if count > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)
        together = Together()
    print(json.dumps({case: losses(case, together) for case in CASES}))
    if together is not None:
        dist.destroy_process_group()

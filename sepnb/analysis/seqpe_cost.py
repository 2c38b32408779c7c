"""What the sequential encoder costs, in multiply-adds of its maps and of attention; and its share of a step.

Norms, activations, softmax, embeddings and the choice of distinct prefixes are not counted.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from ..models import LanguageModel, TransformerConfig
from ..seqpe import SeqPE
from ..seqpe.digits import Positions
from ..seqpe.encoder import PrefixTree, SequentialPositionEncoder
from ..seqpe.injection import EmbeddedQueryKey
from ..training.seqpe_losses import SeqPELosses, encoder_of
from .flops import per_token

TRAINED = 3
"""A map that learns costs three times its forward pass: the backward one has two products for each."""


class Cost(NamedTuple):
    """Multiply-adds of one forward pass: by the definition (`plain`); with shared prefixes (`tree`); and with
    the last layer computed at the last slot alone besides, as `forward` does it (`shared`)."""

    plain: int
    tree: int
    shared: int


def multiply_adds(encoder: SequentialPositionEncoder, positions: Positions) -> Cost:
    """The cost of encoding these positions, repetitions included in `plain` only."""
    strings = encoder.strings(positions)
    sizes = PrefixTree.of(strings).sizes
    config = encoder.transformer.config
    w, layers = config.streams.d_model, config.n_layers
    ends = w * encoder.output.out_features
    p, slots = len(strings), strings.shape[1] + 1
    seen = slots * (slots + 1) // 2  # pairs of a slot and what it may look at
    plain = p * (layers * (12 * w * w * slots + 2 * w * seen) + ends)

    nodes, distinct = sum(sizes), sizes[-1]
    paths = sum((s + 1) * size for s, size in enumerate(sizes))
    shared = distinct * ends
    for layer in range(layers):
        slot = 1 if layer == 0 else distinct  # the last slot is the same for all until it has looked
        keys_and_values = 2 * w * w * (nodes + slot)
        # In the last layer nobody reads what a digit's slot would write.
        writing = 0 if layer == layers - 1 else nodes
        queries = w * w * (writing + slot)
        rest = 9 * w * w * (writing + distinct)
        looking = 2 * w * ((paths if writing else 0) + distinct * slots)
        shared += keys_and_values + queries + rest + looking
    # What the slots of digits would ask, look at and write in the last layer, for nobody.
    unread = 10 * w * w * nodes + 2 * w * paths
    return Cost(plain, shared + unread, shared)


class StepCost(NamedTuple):
    """Multiply-adds of one training step on B sequences of N tokens that share their positions.

    Attributes:
        backbone: blocks and read-out of the model without the encoding.
        columns: what the term of the score adds to attention.
        maps: from embeddings to P_q and P_k.
        text: the encoder, on the positions of the text.
        losses: the encoder, on the positions of its losses but the teacher's.
        taught: the encoder, forward only, on those of the teacher: positions of the text, so that a single
            pass for both would save at most this.
    """

    backbone: float
    columns: float
    maps: float
    text: float
    losses: float
    taught: float

    @property
    def encoder(self) -> float:
        """The share of the encoder, its losses and its maps in the whole step."""
        return (self.maps + self.text + self.losses + self.taught) / sum(self)

    @property
    def longer_queries(self) -> float:
        """The share of `columns`, longer queries and keys, in the whole step."""
        return self.columns / sum(self)


def step_cost(
    config: TransformerConfig,
    *,
    batch_size: int,
    length: int,
    losses: SeqPELosses | None = None,
    vocab_size: int = 256,
    draws: int = 32,
) -> StepCost:
    """The cost of a step that reads the text from position 0 on, with the losses of a mean step.

    The positions of the losses are drawn: their cost is the mean over `draws` draws of seed 0.

    Raises:
        ValueError: a model without SeqPE, or with several encoders, and what `per_token` refuses.
    """
    model = LanguageModel(config, vocab_size)
    encoder, tokens = encoder_of(model), batch_size * length
    rest = tuple(one for one in config.encodings if not isinstance(one, SeqPE))
    at_input = any(isinstance(one, SeqPE) for one in config.input_encodings)
    bare = config if at_input else replace(config, encoding=rest or "none")
    blocks, whole = (per_token(one, length, batch_size) for one in (bare, config))
    read_out = model.head.in_features * model.head.out_features
    injected = [one for one in model.transformer.query_key_encodings if isinstance(one, EmbeddedQueryKey)]
    maps = sum(made.weight.numel() for one in injected for made in (*one.queries, *one.keys))
    text = multiply_adds(encoder, torch.arange(length)).shared
    drawn, taught = (0.0, 0.0) if losses is None else _of_losses(encoder, losses, draws)
    return StepCost(
        backbone=TRAINED * tokens * (blocks + read_out),
        columns=TRAINED * tokens * (whole - blocks),
        maps=TRAINED * length * maps,
        text=TRAINED * text,
        losses=drawn,
        taught=taught,
    )


def _of_losses(encoder: SequentialPositionEncoder, losses: SeqPELosses, draws: int) -> tuple[float, float]:
    """The mean cost of the losses in a step, and of the teacher in it. Shift steps have no distillation."""
    generator, total, teachers = np.random.PCG64(0), 0.0, 0.0
    distilled = 1.0 if losses.shifts is None else 1.0 - losses.shifts.probability
    for _ in range(draws):
        candidates, windows = losses.draw(generator)
        contrasted, taught = candidates and losses.contrastive, windows and losses.distillation
        alone = [candidates.anchors[:, None], candidates.candidates] if contrasted else []
        both = [*alone, windows.student] if taught else alone
        shifted, whole = (TRAINED * _encoded(encoder, parts) for parts in (alone, both))
        total += distilled * whole + (1 - distilled) * shifted
        teachers += distilled * _encoded(encoder, [windows.teacher] if taught else [])
    return total / draws / losses.every, teachers / draws / losses.every


def _encoded(encoder: SequentialPositionEncoder, parts: list[np.ndarray]) -> int:
    """One pass over positions `[R, m, n]` each; nothing where there are none."""
    flat = [part.reshape(-1, part.shape[-1]) for part in parts]
    return multiply_adds(encoder, np.concatenate(flat)).shared if flat else 0

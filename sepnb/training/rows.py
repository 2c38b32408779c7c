"""Rows of a position table past the trained length, fitted while every weight of the model stays as it is.

If a model lacks nothing in longer texts but the vectors of the new positions, then vectors found by its own
training must restore it. `lengthened` gives a trained model a longer table, `fit_rows` trains the new rows
and nothing else.

Shape letters: L trained length, w width of the stream that the table fills.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from ..encodings import Learned
from ..encodings.learned import LearnedInput
from ..models import LanguageModel
from ..validation import whole
from .adapting import only
from .config import TrainingConfig
from .loop import train


def table_of(model: LanguageModel) -> LearnedInput:
    """The learned table at the input of a model.

    Raises:
        ValueError: what the model has at its input is another encoding, several, or none.
    """
    modules = list(model.transformer.input_encodings)
    if len(modules) != 1 or not isinstance(modules[0], LearnedInput) or len(model.config.encodings) != 1:
        found = ", ".join(encoding.name for encoding in model.config.encodings)
        raise ValueError(f"rows are fitted in one learned table at the input, got {found}; use lengthened()")
    return modules[0]


def lengthened(model: LanguageModel, length: int, known: int | None = None) -> LanguageModel:
    """A copy of a trained model with a learned table of `length` rows, `[length, w]`; no weight is shared.

    The first `known` rows are what the model's own encoding gives to these positions, bit for bit, whether it
    is a table or a formula. Those after them begin as these again, row i as row i mod `known`: a fit starts
    from the control `wrap`.

    Args:
        model: with one encoding, at the input.
        length: positions that the copy reads.
        known: rows that are kept, at most `length`; by default those of the trained length.

    Raises:
        ValueError: a size out of range, or another encoding.
    """
    known = whole("known", model.config.max_length if known is None else known, 1, model.config.max_length)
    whole("length", length, known)
    modules = list(model.transformer.input_encodings)
    if len(modules) != 1 or len(model.config.encodings) != 1:
        found = ", ".join(encoding.name for encoding in model.config.encodings)
        raise ValueError(f"a table replaces one encoding at the input, got {found}; give such a model")
    device = next(model.parameters()).device
    with torch.no_grad():
        rows = modules[0](torch.arange(known, device=device))
    own = "transformer.input_encodings.0."
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith(own)}
    longer = LanguageModel(replace(model.config, encoding=Learned(), max_length=length)).to(device)
    weights[f"{own}table"] = rows[torch.arange(length, device=device) % known]
    longer.load_state_dict(weights)
    return longer


def fit_rows(
    model: LanguageModel, known: int, batches: Iterator[np.ndarray], config: TrainingConfig, **how: object
) -> list[float]:
    """Train the rows from `known` on of a model's table, in place, and nothing else of it; returns the mean
    loss of every step, in nats per token.

    All bytes of a window count. Under a causal mask those before `known` read no fitted row: their loss is a
    constant, whose gradient is 0.

    Args:
        model: one with a learned table, as it is or under another rule of evaluation.
        known: rows that are kept, from 0 on and fewer than there are.
        batches, config, how: as in `sepnb.training.train`.

    Raises:
        ValueError: no row is left to fit; what `table_of` and `train` refuse.
    """
    rows = table_of(model).table
    if not 0 <= known < len(rows):
        raise ValueError(f"known is {known}; the table has {len(rows)} rows, give 0 to {len(rows) - 1}")
    masks = {name: torch.zeros_like(one, dtype=torch.bool) for name, one in model.named_parameters()}
    (own,) = (name for name, one in model.named_parameters() if one is rows)
    masks[own][known:] = True
    with only(model, masks):  # a table does not decay: a number whose gradients are all 0 stays as it is
        return train(model, batches, config, **how)

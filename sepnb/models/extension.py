"""The same weights under another rule of evaluation: codes past the trained length, frequencies, windows.

Nothing is trained and nothing of the original is written. The two share their parameters.
"""

import torch
from torch import Tensor

from ..encodings import InputModule
from ..encodings.rope import ContextExtension, RotaryQueryKey
from ..encodings.xpos import XPosQueryKey
from ..extrapolators import Continuation, build
from . import windows
from .tower import PassMemory, arithmetic, may_remember
from .weights import Model, sharing_copy


class ExtrapolatedInput(InputModule):
    """The codes of an input encoding below `length`, as a table, continued by an extrapolator.

    At inference the continuation is fitted once, and again when a parameter of the encoding is another one.

    Args:
        module: a learned table, or any other input encoding: its first `length` codes are the table.
        length: rows of the table, the trained length.
        method, form, options: of `sepnb.extrapolators.extrapolate`.

    Raises:
        ValueError, TypeError: of `extrapolate`, at once and not at the first position past the table.
    """

    def __init__(
        self, module: InputModule, length: int, method: str, form: str, options: dict[str, object]
    ) -> None:
        super().__init__()
        self.module, self.length = module, length
        self.method, self.form, self.options = method, form, options
        spread = options.get("length")  # of `interpolate`, which has no row past it
        self.limit = max(spread, length) if isinstance(spread, int) else None
        self._memory: PassMemory[Continuation] = PassMemory()
        parameter = next(module.parameters(), None)
        device = None if parameter is None else parameter.device
        self(torch.arange(min(2, length), device=device))

    def refusal(self, position: int) -> str:
        return (
            f"position {position} is outside length {self.limit}, over which {self.method} spreads the "
            f"table; give length={position + 1} or more"
        )

    def forward(self, positions: Tensor) -> Tensor:
        device = positions.device
        if not may_remember(self):
            return self._continuation(device)(positions)
        key = (device, arithmetic(device))
        return self._memory.recall(self.parameters(), key, lambda: self._continuation(device))(positions)

    def _continuation(self, device: torch.device) -> Continuation:
        """The table as it is now, and what is fitted on it."""
        table = self.module(torch.arange(self.length, device=device)).detach()
        return Continuation(table, build(self.method, **self.options), self.form)


def extended(
    model: Model,
    *,
    extrapolator: str | None,
    form: str,
    extension: ContextExtension | None,
    window: int | None,
    sinks: int,
    log_scale: bool,
    options: dict[str, object],
) -> Model:
    """See `LanguageModel.extended`, whose transformer this changes in a copy of `model`."""
    windows.check(window, model.config.causal)
    if isinstance(sinks, bool) or not isinstance(sinks, int):
        raise TypeError(f"sinks must be an int, got {sinks!r}")
    if sinks < 0:
        raise ValueError(f"sinks is {sinks}; give 0 or more")
    if sinks and window is None:
        raise ValueError(
            f"sinks={sinks} without a window: the two are one rule, also where a window is set already; give "
            f"window too"
        )
    built = model.config.window
    if window is not None and built is not None and (window > built or sinks):
        raise ValueError(
            f"window={window} and sinks={sinks}: the config of this model has window={built}, and a query "
            f"never sees a token before that; give a window of at most {built}, without sinks"
        )
    if extrapolator is None and (options or form != "corrected"):
        raise ValueError(f"{next(iter(options), 'form')!r} is an option of an extrapolator; name one")
    if log_scale and model.config.max_length < 2:
        raise ValueError(
            f"log_scale divides by ln L, and L is {model.config.max_length}; train on at least 2"
        )
    if extrapolator is not None and model.config.axes > 1:
        raise ValueError(
            f"an extrapolator continues a table of indices, and positions here have {model.config.axes} "
            f"coordinates; fit them to the trained grid instead"
        )
    clone = sharing_copy(model)
    transformer = clone.transformer
    if window is not None:
        transformer.window, transformer.sinks = window, sinks
    transformer.log_scale |= log_scale
    if extrapolator is not None:
        tables = [
            transformer.input_encodings,
            *transformer.later_encodings,
            transformer.projection_encodings,
        ]
        if not any(len(modules) for modules in tables):
            raise ValueError(
                "this model has no encoding at the input, so there is nothing to extrapolate; RoPE takes "
                "extension=..., and every model takes window=..."
            )
        length = clone.config.max_length
        for modules in tables:
            for index, module in enumerate(modules):
                modules[index] = ExtrapolatedInput(_trained(module), length, extrapolator, form, options)
    if extension is not None:
        rotary = [module for module in transformer.query_key_encodings if isinstance(module, RotaryQueryKey)]
        if not rotary:
            raise ValueError("a context extension changes the frequencies of RoPE, and this model has none")
        if any(isinstance(module, XPosQueryKey) for module in rotary):
            raise ValueError(
                "a context extension changes frequencies, and xPos has a decay of the distance beside them, "
                "which would stay as it was: no published extension says what becomes of it; use RoPE"
            )
        for module in rotary:
            module.extend(extension)
    return clone.eval()


def _trained(module: InputModule) -> InputModule:
    """The encoding that was trained, whatever continued it so far."""
    return module.module if isinstance(module, ExtrapolatedInput) else module

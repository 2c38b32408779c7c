"""The same weights under another rule of evaluation: positions past the trained length, frequencies, windows.

Nothing is trained and nothing of the original is written. The two share their parameters. A rule can be told
in JSON's types, `rule_of`, and given to another model of the same config, `follow`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import validation
from ..encodings import InputModule, build_extension
from ..encodings.base import from_json, to_json
from ..encodings.context import ContextExtension, Extension
from ..encodings.rope import Rotation
from ..extrapolators import Continuation, build
from . import windows
from .weights import Model, sharing_copy


class ExtrapolatedInput(InputModule):
    """The first `length` position embeddings of an input encoding, as a table, continued by an extrapolator;
    method, form, options and errors are those of `sepnb.extrapolators.extrapolate`.

    The continuation is fitted at once, on the table as it is now, and again where the model is moved to
    another device or dtype.
    """

    def __init__(
        self, module: InputModule, length: int, method: str, form: str, options: dict[str, object]
    ) -> None:
        super().__init__()
        self.module, self.length = module, length
        self.method, self.form, self.options = method, form, options
        spread = options.get("length")  # of `interpolate`, which has no row past it
        self.limit = max(spread, length) if isinstance(spread, int) else None
        parameter = next(module.parameters(), None)
        self._fitted: Continuation | None = None
        self(torch.arange(min(2, length), device=None if parameter is None else parameter.device))

    def refusal(self, position: int) -> str:
        return (
            f"position {position} is outside length {self.limit}, over which {self.method} spreads the "
            f"table; give length={position + 1} or more"
        )

    def forward(self, positions: Tensor) -> Tensor:
        if self._fitted is None or self._fitted.table.device != positions.device:
            table = self.module(torch.arange(self.length, device=positions.device)).detach()
            self._fitted = Continuation(table, build(self.method, **self.options), self.form)
        return self._fitted(positions)

    @property
    def outdated(self) -> bool:
        """Whether what it continues was trained on since."""
        if (fitted := self._fitted) is None:
            return False
        table = self.module(torch.arange(self.length, device=fitted.table.device))
        return not torch.equal(table.detach(), fitted.table)

    def refit(self) -> None:
        """Fit the table anew at the next call, because it has changed."""
        self._fitted = None

    def _apply(self, fn: Callable, recurse: bool = True) -> "ExtrapolatedInput":
        self.refit()  # the table has another device or dtype now
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_fitted": None}  # a copy fits its own, and a file needs none


def extended(
    model: Model,
    extrapolator: str | None = None,
    form: str = "corrected",
    extension: ContextExtension | None = None,
    window: int | None = None,
    sinks: int = 0,
    log_scale: bool = False,
    **options: object,
) -> Model:
    """The same weights under another rule of evaluation; never retrains, never changes the original.

    The weights are shared. An extrapolator continues the table as it is now: call this anew after more
    training. Rules add up: a rule that the model follows already stays unless it is given here. Window and
    sinks are one rule: a new window without sinks has none. A config's window can only be narrowed.

    Args:
        extrapolator, form, options: of `sepnb.extrapolators.extrapolate`, such as `length` for "interpolate".
            What the encoding at the input gives to positions below `max_length` is the table.
        extension: slower waves, for every encoding of the model that is made of waves: RoPE, a sinusoid at
            the input (dense or in a stream), the content-to-position term and others; position interpolation
            slows forget gates, too. Of RoPE it may follow the length of the text, which is the largest
            position of a call + 1, or that of the cache. Its attention factor (YaRN's temperature) multiplies
            queries and keys where RoPE turns them; in a model without RoPE its square multiplies all logits.
        window: tokens that a query sees, itself included; positions keep their indices.
        sinks: tokens at the beginning that it sees besides (Xiao et al. 2024); with a window only.
        log_scale: multiply a query's logits, biases such as ALiBi's excepted, by max(1, ln n / ln L), n the
            keys that it sees, to sharpen attention again over many keys (Chiang and Cholak 2022).

    Raises:
        TypeError, ValueError: a rule that this model cannot follow, and what the extrapolator refuses.
    """
    windows.check(window, model.config.causal)
    validation.whole("sinks", sinks, 0, needs="give 0 or more")
    validation.flag("log_scale", log_scale)
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
        tables = (transformer.input_encodings, *transformer.later_encodings, transformer.projection_encodings)
        if not any(len(modules) for modules in tables):
            raise ValueError(
                "this model has no encoding at the input, so there is nothing to extrapolate; RoPE takes "
                "extension=..., and every model takes window=..."
            )
        length = clone.config.max_length
        for modules in tables:
            for index, module in enumerate(modules):
                trained = module.module if isinstance(module, ExtrapolatedInput) else module
                modules[index] = ExtrapolatedInput(trained, length, extrapolator, form, options)
    if extension is not None:
        stretch(clone, extension)
    return clone.eval()


def stretch(model: Model, extension: ContextExtension) -> None:
    """Take the frequencies of a context extension, in place, wherever the model has any: what `extended` does
    to a copy. A model without any is a ValueError, and so is an extension that one of them cannot follow."""
    transformer = model.transformer
    waves = transformer.extendable
    if not waves:
        found = ", ".join(encoding.name for encoding in model.config.encodings)
        raise ValueError(
            f"a context extension changes frequencies, as RoPE and a sinusoid have them, and this model has "
            f"none ({found}); a learned table takes extrapolator='interpolate', every model window=..."
        )
    for module in waves:
        module.extend(extension)
    turning = any(isinstance(module, Rotation) for module in waves)
    transformer.temperature = 1.0 if turning else waves[0].attention_factor ** 2
    for module in transformer.modules():
        if isinstance(module, ExtrapolatedInput):
            module.refit()


def extension_of(model: Model) -> ContextExtension | None:
    """The context extension whose frequencies a model has; None where it has those it was built with."""
    return next((module.extension for module in model.transformer.extendable), None)


def rule_of(model: Model, plain: Model) -> dict[str, Any]:
    """The rule that all calls of `extended` together gave to a model, in JSON's types; empty if there was
    none. `plain` is built from the same config.

    Raises:
        ValueError: a context extension of another kind than those of this package, which no JSON tells; a
            table that was trained on since it was continued.
    """
    transformer, rule = model.transformer, {}
    if (transformer.window, transformer.sinks) != (model.config.window, 0):
        rule |= {"window": transformer.window, "sinks": transformer.sinks}
    if transformer.log_scale:
        rule["log_scale"] = True
    for mine, built in zip(transformer.extendable, plain.transformer.extendable, strict=True):
        if mine.extension != built.extension:
            if not isinstance(mine.extension, Extension):
                raise ValueError(
                    f"the frequencies come from {mine.extension!r}, which is no extension of this package "
                    f"and cannot be saved; keep the model as it was before extended(), or use one of "
                    f"sepnb.encodings"
                )
            rule["extension"] = mine.extension.resolved()
    for module in transformer.modules():
        if isinstance(module, ExtrapolatedInput):
            if module.outdated:
                raise ValueError(
                    "the weights were trained on since a table of them was continued; call extended() anew"
                )
            rule |= {"extrapolator": module.method, "form": module.form, "options": to_json(module.options)}
    return rule


def follow(model: Model, rule: Mapping[str, Any]) -> Model:
    """The model under a rule that `rule_of` told; without one, the model itself."""
    if not rule:
        return model
    how = dict(rule)
    options = validation.instance("options", how.pop("options", {}), dict)
    if "extension" in how:
        how["extension"] = build_extension(**validation.instance("extension", how["extension"], dict))
    return extended(model, **how, **{key: from_json(value) for key, value in options.items()})


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model, each once, by the names that they have without a rule of evaluation."""
    weights, seen = {}, set()
    inner = [path for path, module in model.named_modules() if isinstance(module, ExtrapolatedInput)]
    for name, tensor in model.state_dict(keep_vars=True).items():
        for path in inner:
            name = name.replace(f"{path}.module.", f"{path}.", 1) if name.startswith(path) else name
        if id(tensor) not in seen:
            seen.add(id(tensor))
            weights[name] = tensor
    return weights

"""What the protocol reads: any causal language model as one callable, with what the host must know of it.

A `Reader` takes tokens `[B, N]` and, if it can, positions `[N]`, and gives logits `[B, N, V]`. It is made of
a callable, of a `LanguageModel`, or by `hf` of a model of transformers.
"""

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from .. import validation
from ..encodings.context import ContextExtension, Extension
from ..encodings.held import held_embeddings
from ..models import LanguageModel
from ..models.door import limited
from ..models.extension import extension_of
from .stretching import stretched

MISSING = "transformers is not installed; `pip install '.[run,hf]'` brings it"
TABLES = ("wpe", "position_embeddings", "embed_positions", "position_embedding", "pos_emb")
"""How models of transformers call a table of positions, whether trained or computed beforehand."""

ALIKE, ROUGHLY = 0.01, 0.1
"""Bits by which two readings may differ in the mean and count as one, in float32 and in lower precision."""
SAME = 1e-4
"""Bits by which, in float32, one token may differ between readings of one shape: six causal architectures
gave 1e-7 at most, and a bidirectional one with random weights 3e-4."""


class Reader(nn.Module):
    """A causal language model, with its output checked.

    Attributes:
        label: what it is, for the card.
        vocab_size: tokens below it can be read; None: not known before it has answered.
        limit: positions below it can be read, the rows of a table; None: no bound is known.
        takes_positions: whether it can be given positions at all.
        why_not: the reason where it cannot.
        under: what was done to a trained model before it is read, in JSON's types: its context `extension` by
            name and options, `log_scale`, the name of its `adapter`; of these what there is.
        read: tokens read so far; `on_read` is called with it after each pass.
    """

    def __init__(
        self,
        call: Callable[..., Tensor],
        label: str,
        *,
        module: nn.Module | None = None,
        vocab_size: int | None = None,
        limit: int | None = None,
        takes_positions: bool = True,
        why_not: str = "",
        under: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.under = dict(under or {})
        self.label = ", ".join([label, *in_words(self.under)])
        self.vocab_size, self.limit = vocab_size, limit
        self.takes_positions, self.why_not = takes_positions, why_not
        self.read, self.on_read = 0, None
        # Not submodules: whoever calls `to` or `eval` on the reader must not move somebody else's model.
        self.__dict__["call"], self.__dict__["module"] = call, module

    @property
    def device(self) -> str:
        """Where its weights are; the CPU for a callable without any."""
        first = None if self.module is None else next(self.module.parameters(), None)
        return "cpu" if first is None else str(first.device)

    @property
    def alike(self) -> float:
        """Bits by which the same text may differ between two of its readings, by rounding alone."""
        return ROUGHLY if self._bytes in (1, 2) else ALIKE

    @property
    def same(self) -> float:
        """Bits by which one token may differ between two readings of one shape: `SAME` for weights known as
        float32 or wider, else `alike`."""
        return SAME if self._bytes >= 4 else self.alike

    @property
    def _bytes(self) -> int:
        """Bytes of a weight; 0 if no weights are known."""
        first = None if self.module is None else next(self.module.parameters(), None)
        return 0 if first is None else first.element_size()

    @contextmanager
    def evaluating(self) -> Iterator["Reader"]:
        """Without dropout and gradients inside; the model trains on afterwards if it did before."""
        module = nn.Module() if self.module is None else self.module
        training = [one for one in module.modules() if one.training]
        module.eval()
        try:
            with torch.no_grad(), held_embeddings(module):
                yield self
        finally:
            self.on_read = None
            for one in training:
                one.training = True

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Logits `[B, N, V]`.

        Raises:
            ValueError, TypeError: what the model returned is not finite or not of this form.
        """
        given = (tokens,) if positions is None else (tokens, positions)
        logits = checked(self.call(*given), tokens, self.label)
        self.vocab_size = logits.shape[-1] if self.vocab_size is None else self.vocab_size
        self.read += tokens.numel()
        if self.on_read is not None:
            self.on_read(self.read)
        return logits


def in_words(under: Mapping[str, Any]) -> list[str]:
    """What a model is read under, each rule as the label has it."""
    words = []
    if "extension" in under:
        extension = under["extension"]
        by = next((f" with {key} {extension[key]:g}" for key in ("factor", "base") if key in extension), "")
        words.append(extension["name"] + by)
    if under.get("log_scale"):
        words.append("log scale")
    if "adapter" in under:
        words.append(f"adapter {under['adapter']}")
    return words


def resolved(extension: ContextExtension) -> dict[str, Any]:
    """Name and options of an extension; of one of another kind than ours its name."""
    if isinstance(extension, Extension):
        return extension.resolved()
    return {"name": str(getattr(extension, "name", type(extension).__name__))}


def checked(logits: Any, tokens: Tensor, label: str) -> Tensor:
    """Logits for each of the tokens, on their device; finite ones."""
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"{label} returned {type(logits).__name__}, not a tensor of logits; a model of transformers is "
            f"given as hf(model), of any other give what computes logits [B, N, V]"
        )
    if logits.dim() != 3 or logits.shape[:2] != tokens.shape or not logits.is_floating_point():
        raise ValueError(
            f"{label} returned {list(logits.shape)} of {logits.dtype} for tokens {list(tokens.shape)}; "
            f"logits of the next token are floating, [B, N, V]"
        )
    if not (fine := logits.isfinite()).all():
        row, place, word = (~fine).nonzero()[0].tolist()
        raise ValueError(
            f"{label} has {logits[row, place, word].item()} among its logits, first after token {place + 1} "
            f"of {tokens.shape[1]}; a loss would mean nothing. Look at its weights, or read in float32"
        )
    return logits.to(tokens.device)


def reader(model: Any) -> Reader:
    """The reader of whatever `probe` takes."""
    if isinstance(model, Reader):
        return model
    if isinstance(model, LanguageModel):
        return ours(model)
    if hasattr(getattr(model, "config", None), "model_type"):
        raise TypeError(f"{type(model).__name__} is a model of transformers; give hf(model)")
    if not callable(model) or isinstance(model, type):
        raise TypeError(
            f"model must be a callable from tokens [B, N] to logits [B, N, V], a LanguageModel, or "
            f"hf(model); got {validation.shown(model)}"
        )
    module = model if isinstance(model, nn.Module) else None
    call = model.forward if module is not None else model
    takes = _takes(call, "positions")
    label = type(model).__name__ if module is not None else getattr(model, "__name__", type(model).__name__)
    return Reader(
        model, label, module=module, takes_positions=takes, why_not="" if takes else "it takes no positions"
    )


def ours(model: LanguageModel, adapter: str | None = None) -> Reader:
    """The reader of a model of this package; its limit is that of its tables. `adapter` is the name of the
    model's adapter for the card, which the model itself does not know."""
    config = model.config
    if config.axes != 1 or not config.causal:
        raise ValueError("the model is no causal model of texts; give one with a causal mask and one axis")
    limits = [one.limit for one in limited(model.transformer) if isinstance(one.limit, int)]
    named = [" + ".join(encoding.name for encoding in config.encodings)]
    named += [one.method for one in model.transformer.input_encodings if hasattr(one, "method")]
    if model.transformer.window is not None:
        named.append(f"window {model.transformer.window}")
    under: dict[str, Any] = {}
    if (extension := extension_of(model)) is not None:
        under["extension"] = resolved(extension)
    if model.transformer.log_scale:
        under["log_scale"] = True
    if adapter is not None:
        under["adapter"] = adapter
    return Reader(
        model,
        ", ".join(["sepnb", *named]),
        module=model,
        vocab_size=model.vocab_size,
        limit=min(limits, default=None),
        under=under,
    )


def hf(model: Any, extension: Extension | None = None) -> Reader:
    """A causal language model of transformers, such as `AutoModelForCausalLM.from_pretrained` gives.

    It is read without a cache. Positions go through `position_ids` where its `forward` takes them, with a
    mask of ones beside them: without it transformers takes positions that jump for several texts in one row.
    State that rotary modules keep from the length of an earlier text (dynamic NTK, LongRoPE) is reset before
    and after each pass. The number of rows of a position table is determined here, on the host, so that no
    device looks up a row that does not exist.

    Args:
        extension: of `sepnb.encodings`, such as `YaRN(8.0, original_length=1024)`: a copy is read, with the
            same weights and the slower rotations that the model's own classes build from `rope_parameters`.

    Raises:
        ModuleNotFoundError: transformers is not installed; the message says how to install it.
        TypeError: not a model of transformers, no extension.
        ValueError: one that does not predict the next token, such as an encoder-decoder; with an extension
            one without RoPE, one whose rotations are scaled already or whose class scales none.
    """
    if not isinstance(model, nn.Module) or not isinstance(model, transformers().PreTrainedModel):
        raise TypeError(
            f"hf takes a model of transformers, such as AutoModelForCausalLM.from_pretrained(...); got "
            f"{validation.shown(model)}"
        )
    name = type(model).__name__
    config = model.config.get_text_config()
    if getattr(config, "is_encoder_decoder", False) or model.get_output_embeddings() is None:
        raise ValueError(f"{name} has no logits of the next token; load it by AutoModelForCausalLM")
    if extension is not None:
        model = stretched(model, extension)
    takes = _takes(model.forward, "position_ids")
    return Reader(
        _Transformers(model, takes),
        f"{name} ({config.model_type})",
        module=model,
        vocab_size=model.get_input_embeddings().num_embeddings,
        limit=_rows(model),
        takes_positions=takes,
        why_not="" if takes else f"{name} takes no position_ids",
        under=None if extension is None else {"extension": resolved(extension)},
    )


def transformers() -> ModuleType:
    """The package, if it is installed."""
    if importlib.util.find_spec("transformers") is None:
        raise ModuleNotFoundError(MISSING, name="transformers")
    return importlib.import_module("transformers")


class _Transformers:
    """Tokens and positions to logits, by a model of transformers."""

    def __init__(self, model: nn.Module, takes_positions: bool) -> None:
        self.model, self.takes_positions = model, takes_positions
        self.rotary = [one for one in model.modules() if any("inv_freq" in name for name, _ in _own(one))]
        self.before = [_unread(dict(_own(one))) for one in self.rotary]

    def __call__(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """Logits `[B, N, V]` of tokens `[B, N]` at positions `[N]`."""
        given = {"attention_mask": torch.ones_like(tokens), "use_cache": False}
        if positions is not None:
            if not self.takes_positions:
                raise ValueError(f"{type(self.model).__name__} takes no position_ids; leave positions out")
            given["position_ids"] = positions.expand(tokens.shape)
        try:
            self.restore(tokens.device)
            return self.model(tokens, **given).logits
        finally:
            self.restore(tokens.device)

    def restore(self, device: torch.device) -> None:
        """Frequencies and lengths as they were before any text was read."""
        for module, before in zip(self.rotary, self.before, strict=True):
            for name, value in before.items():
                value = value.to(device, copy=True) if isinstance(value, Tensor) else value
                if name in module._buffers:
                    module._buffers[name] = value
                else:
                    setattr(module, name, value)


def _own(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Buffers of a module, and numbers and tensors among its attributes, copied: what passes may change."""
    for name, value in module._buffers.items():
        if value is not None:
            yield name, value.detach().clone()
    for name, value in vars(module).items():
        if name == "training" or name.startswith("_"):
            continue
        if isinstance(value, Tensor):
            yield name, value.detach().clone()
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def _unread(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a rotary module, its frequencies those that it had before it read anything."""
    for name in [one for one in state if one.endswith("original_inv_freq")]:
        state[name.replace("original_", "")] = state[name]
    if "original_max_seq_len" in state and "max_seq_len_cached" in state:
        state["max_seq_len_cached"] = state["original_max_seq_len"]
    return state


def _rows(model: nn.Module) -> int | None:
    """Positions that a model's tables can answer, the least of them; None where it has no table.

    A table is a module or a buffer of one of the names in `TABLES` whose first axis counts positions; some
    keep a few rows in front, `offset`, for other uses."""
    found = []
    for name, module in model.named_modules():
        if name.rpartition(".")[2] in TABLES and isinstance(getattr(module, "weight", None), Tensor):
            found.append(module.weight.shape[0] - int(getattr(module, "offset", 0)))
        for own, buffer in module.named_buffers(recurse=False):
            if own in TABLES and buffer.dim() == 2:
                found.append(buffer.shape[0])
    return min(found, default=None)


def _takes(function: Callable, name: str) -> bool:
    """Whether a function has a parameter of this name; one that takes any keyword may ignore it."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of C, and says nothing
        return False
    return any(one.name == name for one in parameters)

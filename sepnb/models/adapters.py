"""One tuned part of a model in a file of its own: an adapter, to be put on its base and taken off again.

A file holds the numbers of one part (`parts`), the rule by which the model is read with them, such as the
context extension that they were tuned under, and a digest of the rest, so that it is put on no other base. It
is a safetensors file under a seal, as those of `saving`; nothing in it is run.

    tuned = adapt(model.extended(extension=NTKByParts(8.0, 128), log_scale=True), text, ...)
    save_adapter(tuned, model, "long.safetensors")
    again = load_adapter(model, "long.safetensors")     # reads as `tuned` does; `model` is what it was
"""

import copy
import hashlib
import os
from typing import Any

import torch
from torch import Tensor

from .. import __version__, validation
from ..records import sealed
from ..records.store import as_stored
from ..validation import shown
from .extension import follow, rule_of, weights_of
from .language import LanguageModel
from .parts import PARTS, Masks, parts
from .saving import built_as, file_at

FORMAT, VERSION = "sepnb adapter", 1

AGAIN = "save the adapter again from the model that was tuned, or get the file anew"


def save_adapter(model: LanguageModel, base: LanguageModel, path: str | os.PathLike[str]) -> None:
    """Write the part in which a tuned model differs from its base, whole or not at all.

    Args:
        model: a copy of the base in which one part was tuned, as `sepnb.training.adapt` gives it, with the
            rule by which it is read.
        base: the model as it was trained, without a rule of `extended`.
        path: of the file; one that is there is replaced, folders are made.

    Raises:
        TypeError: no language model, or a subclass of one; no path.
        ValueError: another config or dtype; weights that are the same, or that differ in both parts; weights
            that are not finite; a base that follows a rule; a folder.
    """
    path = file_at(path)
    for name, one in (("model", model), ("base", base)):
        _a_model(name, one)
    masks, weights = _checked(base), weights_of(model)
    if model.config != base.config or model.vocab_size != base.vocab_size:
        raise ValueError("model and base have other configs; give the base that the model was tuned from")
    mine, its = (next(one.parameters()).dtype for one in (model, base))
    if mine != its:  # the file would be put on no base
        raise ValueError(f"the weights of model and base are of {mine} and {its}; give both in one dtype")
    differ = {
        name: weights[name].detach().cpu() != one.detach().cpu() for name, one in weights_of(base).items()
    }
    part = _the_part(differ, masks)
    kept = {
        name: weights[name].detach()[mask.to(weights[name].device)].cpu() for name, mask in _in(masks[part])
    }
    for name, tensor in kept.items():
        if not tensor.isfinite().all():
            raise ValueError(f"the weight {name} holds numbers that are not finite: the tuning diverged")
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "sepnb": __version__,
        "part": part,
        "config": base.config.resolved(),
        "vocab_size": base.vocab_size,
        "rule": rule_of(model, built_as(model)),
        "rest": _digest(base, masks[part]),
    }
    sealed.write(path, kept, as_stored(meta))


def load_adapter(base: LanguageModel, path: str | os.PathLike[str]) -> LanguageModel:
    """The model that `save_adapter` was given, on the device of the base and ready to be read (`eval`); the
    base stays as it is, and no weight is shared.

    Raises:
        TypeError: no language model, or a subclass of one; no path.
        FileNotFoundError: there is no file.
        ValueError: a file that is damaged or holds no adapter; one that was tuned on another base; a base
            that follows a rule of `extended`.
    """
    path = file_at(path)
    masks = _checked(_a_model("base", base))
    try:
        kept, meta = sealed.read(path, AGAIN)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}; give one that save_adapter() wrote") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT or meta.get("part") not in PARTS:
        raise ValueError(f"{path} holds no adapter; give the path of a file that save_adapter() wrote")
    if meta.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {shown(meta.get('version'))} of the format, and sepnb {__version__} reads "
            f"version {VERSION}; use the sepnb that wrote it, {shown(meta.get('sepnb'))}"
        )
    own = dict(_in(masks[meta["part"]]))
    of = {"config": base.config.resolved(), "vocab_size": base.vocab_size}
    same = as_stored(of) == {key: meta.get(key) for key in of}
    if not same or meta.get("rest") != _digest(base, masks[meta["part"]]):
        what = "weights" if same else "settings"
        raise ValueError(f"{path} was tuned on a base with other {what}; give the model that it was tuned on")
    shapes = {name: (int(mask.sum()),) for name, mask in own.items()}
    fitting = {name: tuple(one.shape) for name, one in kept.items()} == shapes
    dtype = next(base.parameters()).dtype
    if not fitting or any(one.dtype != dtype or not one.isfinite().all() for one in kept.values()):
        raise ValueError(f"{path} holds other weights than the {meta['part']} part of this base has; {AGAIN}")
    model = copy.deepcopy(base)
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            if name in own:
                weight[own[name].to(weight.device)] = kept[name].to(weight.device)
    try:
        return follow(model, validation.instance("rule", meta.get("rule"), dict)).eval()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds a rule that this base cannot follow: {error}; {AGAIN}") from None


def _a_model(name: str, model: Any) -> LanguageModel:
    """A language model whose weights have values, and no subclass, which may be more than its config says."""
    if type(model) is not LanguageModel:
        raise TypeError(f"{name} must be a LanguageModel, no subclass, got {shown(model)}")
    for weight, tensor in weights_of(model).items():
        validation.readable(f"the weight {weight} of {name}", tensor)
    return model


def _checked(base: LanguageModel) -> dict[str, Masks]:
    """The parts of a base, which follows no rule."""
    if rule := rule_of(base, built_as(base)):
        raise ValueError(
            f"the base is read by a rule of extended() ({', '.join(rule)}); give it as it was trained: the "
            f"rule is a part of the adapter"
        )
    return {part: {name: mask.cpu() for name, mask in own.items()} for part, own in parts(base).items()}


def _in(masks: Masks) -> list[tuple[str, Tensor]]:
    """The masks that hold anything, by name."""
    return [(name, mask) for name, mask in masks.items() if mask.any()]


def _the_part(differ: dict[str, Tensor], masks: dict[str, Masks]) -> str:
    """The one part in which weights differ."""
    changed = {
        part: [name for name, mask in masks[part].items() if (differ[name] & mask).any()] for part in PARTS
    }
    if not any(changed.values()):
        raise ValueError("model and base have the same weights; tune a part of the model first, by adapt()")
    if all(changed.values()):
        first, second = (changed[part][0] for part in PARTS)
        raise ValueError(
            f"both parts were tuned ({first}, {second}), and an adapter holds one; keep the model by save()"
        )
    return next(part for part in PARTS if changed[part])


def _digest(base: LanguageModel, masks: Masks) -> str:
    """SHA-256 of all numbers of a base that the masks leave out, with the names of their parameters."""
    digest = hashlib.sha256()
    for name, weight in sorted(weights_of(base).items()):
        weight, mask = weight.detach().cpu(), masks.get(name)
        rest = weight.flatten() if mask is None else weight[~mask]
        digest.update(f"{name} {rest.dtype} {len(rest)}\n".encode())
        digest.update(rest.contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()

"""A trained model as one file: its weights, what to build them into, and by which rule it is read.

The file is a safetensors file under a seal, see `sepnb.records.sealed`: any program reads its weights, none
runs what is in it, and one that was damaged is refused. Its metadata say in JSON which class of which config
to build, and what `extended` gave the model, if anything. `save` builds the model from what it is about to
write, and `load` gives one back only when every weight is there and fits: no file is half a model.

What is not kept: the optimiser and the state of a training (`sepnb.training.checkpoints` keeps those), which
weights are frozen, and the device: a model comes back on the CPU.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .. import __version__, validation
from ..encodings.base import from_json
from ..records import sealed
from ..records.store import as_stored
from ..validation import shown
from .config import TransformerConfig
from .extension import follow, rule_of, weights_of
from .image import ImageClassifier
from .language import LanguageModel

FORMAT, VERSION = "sepnb model", 1

SIZES: dict[type[nn.Module], tuple[str, ...]] = {
    LanguageModel: ("vocab_size",),
    ImageClassifier: ("n_classes", "patch", "channels"),
}
"""The classes that can be kept, and what each is built from beside a config."""

KINDS = {kind.__name__: kind for kind in SIZES}

AGAIN = "save the model again from where it was trained, or get the file anew"


def save(model: LanguageModel | ImageClassifier, path: str | os.PathLike[str]) -> None:
    """Write a model whole or not at all, so that `load` gives it back: the same logits, bit for bit on the
    same machine. A rule of evaluation, from `extended`, is kept with it; an extrapolator is fitted again on
    loading, on the same table. A file that is there is replaced, folders are made.

    Raises:
        TypeError: no model, or a subclass of one, which may be more than its config says; no path.
        ValueError: a folder; what `load` would refuse, such as weights that are not finite; an encoding or a
            context extension that is known by its class alone.
    """
    path = file_at(path)
    if type(model) not in SIZES:
        got = shown(type(model))
        raise TypeError(f"model must be a LanguageModel or an ImageClassifier, no subclass, got {got}")
    weights = weights_of(model)
    for name, tensor in weights.items():
        validation.readable(name, tensor)
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    meta = {"format": FORMAT, "version": VERSION, "sepnb": __version__, **_described(model)}
    meta = as_stored(meta | {"rule": _rule(model, built_as(model))})
    _check_same(model, _restored(meta, kept))
    sealed.write(path, kept, meta)


def load(path: str | os.PathLike[str]) -> LanguageModel | ImageClassifier:
    """The model that `save` wrote: on the CPU, in the dtype that it had, ready to be read (`eval`). Nothing
    in a file is run, and torch's random state is left alone.

    Raises:
        TypeError: no path.
        FileNotFoundError: there is no file.
        ValueError: one that is damaged or holds no model; a format, an encoding or an option that is not
            known here; weights that are missing, too many, not finite, or of other shapes than the config
            says. The message names the file and what to do.
    """
    path = file_at(path)
    try:
        kept, meta = sealed.read(path, AGAIN)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}; give the path of one that save() wrote") from None
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise ValueError(f"{path} holds tensors, and no model; give the path of one that save() wrote")
    if meta.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {shown(meta.get('version'))} of the format, written by sepnb "
            f"{shown(meta.get('sepnb'))}; sepnb {__version__} reads version {VERSION}: use the sepnb that "
            f"wrote it"
        )
    try:
        return _restored(meta, kept)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} holds a model that cannot be built: {error}. If it was made with an encoding of your "
            f"own, import its module first; else {AGAIN}"
        ) from None


def file_at(path: Any) -> Path:
    """`path` as a Path; raise for another type and for a folder."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a Path, such as 'model.safetensors', got {shown(path)}")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder; name a file in it, such as {Path(path) / 'model.safetensors'}")
    return Path(path)


def built_as(model: LanguageModel | ImageClassifier) -> LanguageModel | ImageClassifier:
    """A model of the same config, with first weights of its own and without a rule."""
    return _built(as_stored(_described(model)))


def _described(model: LanguageModel | ImageClassifier) -> dict[str, Any]:
    """What a model is built from."""
    return {
        "model": type(model).__name__,
        "sizes": {size: getattr(model, size) for size in SIZES[type(model)]},
        "config": model.config.resolved(),
    }


def _built(meta: Mapping[str, Any], device: str = "cpu") -> LanguageModel | ImageClassifier:
    """The model that the metadata describe, with its first weights; on the device meta with shapes alone."""
    kind = validation.named("model", meta.get("model"), KINDS)
    sizes = validation.instance("sizes", meta.get("sizes"), dict)
    if set(sizes) != set(SIZES[kind]):
        raise ValueError(f"a {kind.__name__} is built from {', '.join(SIZES[kind])}, and got {shown(sizes)}")
    config = TransformerConfig.from_resolved(meta.get("config"))
    with torch.random.fork_rng(devices=[]), torch.device(device):
        return kind(config, **sizes)


def _restored(meta: Mapping[str, Any], kept: Mapping[str, Tensor]) -> LanguageModel | ImageClassifier:
    """The model that the metadata describe, with copies of the stored weights."""
    with suppress(RuntimeError):  # of an encoding of somebody's own that reads a value while it is built
        _check_weights(weights_of(_built(meta, "meta")), kept)  # before room is made for what does not fit
    model = _built(meta)
    rule = validation.instance("rule", meta.get("rule"), dict)
    dtype = _check_weights(weights_of(model), kept)
    model = model.to(dtype).eval()
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            weight.copy_(kept[name])
    if isinstance(model, ImageClassifier):
        return model.extended(**{key: from_json(value) for key, value in rule.items()}) if rule else model
    return follow(model, rule)


def _check_weights(built: Mapping[str, Tensor], kept: Mapping[str, Tensor]) -> torch.dtype:
    """Their dtype, which is one; refuse any other weights than those of a model as it is built."""
    for name, weight in built.items():
        if name not in kept:
            raise ValueError(f"the weight {name} is missing")
        if kept[name].shape != weight.shape:
            shapes = f"shape {list(kept[name].shape)}, and its config says {list(weight.shape)}"
            raise ValueError(f"the weight {name} has {shapes}")
    if more := sorted(kept.keys() - built.keys()):
        raise ValueError(f"the weight {more[0]} has no place in a model of this config")
    if len(dtypes := {validation.floating(name, weight).dtype for name, weight in kept.items()}) > 1:
        raise ValueError(f"the weights are of {' and '.join(sorted(map(str, dtypes)))}; give them one dtype")
    for name, weight in kept.items():
        if not weight.isfinite().all():
            raise ValueError(f"the weight {name} holds numbers that are not finite: the training diverged")
    return dtypes.pop()


def _rule(model: LanguageModel | ImageClassifier, plain: nn.Module) -> dict[str, Any]:
    """By which rule the model is read, in JSON's types."""
    if isinstance(model, ImageClassifier):
        return {} if model.fit is None else {"fit": list(model.fit)}
    return rule_of(model, plain)


def _check_same(model: nn.Module, again: nn.Module) -> None:
    """Refuse to save a model that would be loaded as a different one."""
    if again.config != model.config:
        raise ValueError(
            f"what its config tells builds another model: an encoding of {model.config.encodings!r} inherits "
            f"its name, and is known by its class alone; give that class a name of its own"
        )
    if again.transformer.rules != model.transformer.rules:
        raise ValueError(
            "this model is read by a rule that extended() does not give; set it by extended() alone"
        )
    kinds = {name: type(module) for name, module in again.named_modules()}
    for name, module in model.named_modules():
        if kinds.get(name) is not type(module):
            raise ValueError(
                f"its {name} is a {type(module).__name__}, which its config does not build, so that another "
                f"model would be loaded; save the model that it was put into"
            )

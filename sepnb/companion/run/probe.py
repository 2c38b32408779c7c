"""`sepnb probe`: a model and a text from files, the card on the screen, and its page and numbers beside each
other in a folder."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from safetensors import SafetensorError

from sepnb import paths, protocol, validation
from sepnb.companion.run import screens
from sepnb.encodings.context import EXTENSIONS, Extension
from sepnb.models import LanguageModel, load, load_adapter
from sepnb.protocol.adapters import in_words, ours, transformers
from sepnb.protocol.stretching import plain

ROOM = 200_000
"""Bytes that a card takes at most, tried before a model is read for hours."""

LONGEST_NAME = 200
"""Characters of a file's name, of which its system takes 255."""

BY_FACTOR = {
    name: kind
    for name, kind in EXTENSIONS.items()
    if {field.name for field in fields(kind) if field.default is MISSING} <= {"factor", "original_length"}
}
"""The context extensions that a factor and the trained length say."""


def probe(
    console: Console,
    model: str,
    text: Path,
    *,
    length: int,
    times: str,
    reference: str | None,
    device: str,
    out: Path,
    extension: str | None = None,
    factor: float | None = None,
    adapter: Path | None = None,
    log_scale: bool = False,
) -> protocol.Card:
    """Probe the model of a path or name on the text of a file, under a context extension by its name and
    factor, an adapter of ours or both; print the card, write it to `out` as HTML and JSON, each whole or not
    at all. A reference is read as it is.

    Raises:
        ValueError, OSError: what cannot be read, probed or written, before a long reading where possible.
    """
    parts = [part.strip() for part in times.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"--times {times!r}: give whole numbers separated by commas, such as 1,2,4,8")
    protocol.rising(grown := tuple(map(int, parts)))
    if not text.is_file():
        raise FileNotFoundError(f"--text {text}: there is no such file")
    under = {"extension": asked(extension, factor, length), "adapter": adapter, "log_scale": log_scale}
    paths.try_writing(out, ROOM)
    own, tokens = loaded(model, text, **under)
    other = None
    if reference is not None:
        other, its = loaded(reference, text)
        if not np.array_equal(tokens, its):
            raise ValueError(
                f"{model} and {reference} cut the text into other tokens: their losses do not compare; "
                f"give a reference with the same tokenizer"
            )
    columns = TextColumn("reading"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading")
        card = protocol.probe(
            own,
            tokens,
            trained_length=length,
            times=grown,
            reference=other,
            device=device,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    screens.say(console, card.title, "bold")
    screens.say(console, card.subtitle)
    for head, rows in card.tables():
        console.print(screens.rows(head[1:], [row[1:] for row in rows]))
    for limit in card.meta["limits"]:
        screens.say(console, limit)
    words = "-".join([Path(model).name, *in_words(own.under)])
    name = re.sub(r"[^\w.-]+", "-", words)[:LONGEST_NAME] or "card"
    for suffix, content in (("html", card.to_html()), ("json", card.to_json())):
        paths.write_atomically(out / f"{name}.{suffix}", content)
    screens.say(console, f"The card is at {out / f'{name}.html'}, its numbers beside it")
    return card


def asked(name: str | None, factor: float | None, length: int) -> Extension | None:
    """The context extension of a name and a factor, for texts of that trained length."""
    validation.whole("--length", length, protocol.SHORTEST)
    if name is None:
        if factor is not None:
            raise ValueError(f"--factor {factor:g} is that of a context extension; add one: --extension yarn")
        return None
    if name in EXTENSIONS and name not in BY_FACTOR:
        raise ValueError(
            f"--extension {name} needs more than a factor; use one of {', '.join(BY_FACTOR)}, or give it in "
            f"Python: model.extended(extension=...)"
        )
    kind = validation.named("context extension", name, BY_FACTOR)
    if factor is None:
        raise ValueError(f"--extension {name} has no factor; add one of at least 1, such as --factor 8")
    known = {"factor": factor, "original_length": length}
    return kind(**{field.name: known[field.name] for field in fields(kind) if field.name in known})


def loaded(
    model: str,
    text: Path,
    *,
    extension: Extension | None = None,
    adapter: Path | None = None,
    log_scale: bool = False,
) -> tuple[protocol.Reader, np.ndarray]:
    """A model, and the text in its tokens: bytes for a file of `sepnb.models.save`, what the tokenizer makes
    of UTF-8 for a model of transformers, and for both the integers of a `.npy` file."""
    foreign = not model.endswith(".safetensors")
    if foreign and (adapter is not None or log_scale):
        option = "--log-scale" if adapter is None else f"--adapter {adapter}"
        raise ValueError(
            f"{option} is for models of sepnb, and {model} is no .safetensors file of sepnb.models.save; "
            f"give such a file, or leave the option out"
        )
    there = _numbers(text) if text.suffix == ".npy" else None
    if not foreign:
        saved = load(model)
        if not isinstance(saved, LanguageModel):
            raise ValueError(f"{model} holds {type(saved).__name__}; a probe reads language models")
        if adapter is not None:
            saved = load_adapter(saved, adapter)
        if extension is not None or log_scale:
            saved = saved.extended(extension=extension, log_scale=log_scale)
        name = None if adapter is None else adapter.name
        return ours(saved, name), np.frombuffer(text.read_bytes(), np.uint8) if there is None else there
    try:
        package = transformers()
    except ModuleNotFoundError as missing:
        raise ValueError(f"{model} is no .safetensors file of sepnb.models.save, and {missing}") from None
    where = {"local_files_only": True} if Path(model).is_dir() else {}
    if extension is not None:
        plain(package.AutoConfig.from_pretrained(model, **where).get_text_config())
    if there is None:
        try:
            tokenizer = package.AutoTokenizer.from_pretrained(model, **where)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{model} has no tokenizer that can be loaded ({error}); give its tokens as --text FILE.npy"
            ) from None
        try:
            words = text.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"--text {text} is no text in UTF-8 ({error}); give another, or a .npy"
            ) from None
        there = np.array(tokenizer(words, add_special_tokens=False)["input_ids"], dtype=np.int64)
    try:
        whole = package.AutoModelForCausalLM.from_pretrained(model, **where)
    except (OSError, ValueError, SafetensorError) as error:
        raise ValueError(f"{model} holds no model that can be loaded ({error}); fetch it again") from None
    return protocol.hf(whole, extension), there


def _numbers(file: Path) -> np.ndarray:
    """The integers of a `.npy` file."""
    try:
        found = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"--text {file} is no array that numpy saved ({error})") from None
    if found.dtype.kind not in "iu":
        raise ValueError(f"--text {file} holds {found.dtype}; tokens are integers")
    return found

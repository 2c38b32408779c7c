"""`sepnb probe`: a model and a text from files, the card on the screen, and its page and numbers beside each
other in a folder."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from sepnb import paths, protocol
from sepnb.companion import screens
from sepnb.models import LanguageModel, load
from sepnb.protocol.adapters import transformers

ROOM = 200_000
"""Bytes that a card takes at most, tried before a model is read for hours."""


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
) -> protocol.Card:
    """Probe the model of a path or name on the text of a file; print the card, write it to `out` as HTML and
    JSON, each whole or not at all.

    Raises:
        ValueError, OSError: what cannot be read, probed or written, before a long reading where possible.
    """
    told = [part.strip() for part in times.split(",")]
    if not all(part.isdecimal() for part in told):
        raise ValueError(f"--times {times!r}: give whole numbers separated by commas, such as 1,2,4,8")
    if not text.is_file():
        raise FileNotFoundError(f"--text {text}: there is no such file")
    paths.try_writing(out, ROOM)
    own, tokens = loaded(model, text)
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
            times=tuple(map(int, told)),
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
    name = re.sub(r"[^\w.-]+", "-", Path(model).name) or "card"
    for suffix, content in (("html", card.to_html()), ("json", card.to_json())):
        paths.write_atomically(out / f"{name}.{suffix}", content)
    screens.say(console, f"The card is at {out / f'{name}.html'}, its numbers beside it")
    return card


def loaded(model: str, text: Path) -> tuple[Any, np.ndarray]:
    """A model, and the text in its tokens: bytes for a file of `sepnb.models.save`, what the tokenizer makes
    of UTF-8 for a model of transformers, and for both the integers of a `.npy` file."""
    there = _numbers(text) if text.suffix == ".npy" else None
    if model.endswith(".safetensors"):
        saved = load(model)
        if not isinstance(saved, LanguageModel):
            raise ValueError(f"{model} holds {type(saved).__name__}; a probe reads language models")
        return saved, np.frombuffer(text.read_bytes(), np.uint8) if there is None else there
    try:
        package = transformers()
    except ModuleNotFoundError as missing:
        raise ValueError(f"{model} is no .safetensors file of sepnb.models.save, and {missing}") from None
    where = {"local_files_only": True} if Path(model).is_dir() else {}
    if there is None:
        try:
            tokenizer = package.AutoTokenizer.from_pretrained(model, **where)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{model} has no tokenizer that can be loaded ({error}); give its tokens as --text FILE.npy"
            ) from None
        words = text.read_text(encoding="utf-8")
        there = np.array(tokenizer(words, add_special_tokens=False)["input_ids"], dtype=np.int64)
    return protocol.hf(package.AutoModelForCausalLM.from_pretrained(model, **where)), there


def _numbers(file: Path) -> np.ndarray:
    """The integers of a `.npy` file."""
    try:
        found = np.load(file, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"--text {file} is no array that numpy saved ({error})") from None
    if found.dtype.kind not in "iu":
        raise ValueError(f"--text {file} holds {found.dtype}; tokens are integers")
    return found

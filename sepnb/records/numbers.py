"""Chapter numbers: what a chapter says in figures, as a small JSON file that prose and tests read.

A chapter's last cell calls `publish`; the number role and the regression tests call `load`. The file is
`<build>/<profile>/<chapter>.json` and holds `{"chapter", "profile", "numbers"}`, so that a file copied to
the wrong place is noticed. Nothing here imports torch: reading a number must cost nothing.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sepnb import paths

Number = float | int | str
NOT_RUN = "not run"
"""What a chapter publishes for a number that no run stands behind yet: shown as it is in any format."""
KEY = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


class NumbersError(ValueError):
    """Numbers that cannot be published, or a file of numbers that cannot be trusted."""


def path(chapter: str, profile: str) -> Path:
    """Where the numbers of `chapter` live for `profile`."""
    for what, value in (("chapter", chapter), ("profile", profile)):
        if not isinstance(value, str) or not NAME.fullmatch(value):
            raise NumbersError(f"{what} {value!r} is not a plain name (letters, digits, '_' and '-')")
    return paths.build() / profile / f"{chapter}.json"


def mean_of(values: Iterable[float | None]) -> Number:
    """The mean of one value a seed, of those that are there (not None or NaN); `NOT_RUN` where none is."""
    known = [float(value) for value in values if value is not None and not math.isnan(value)]
    return math.fsum(known) / len(known) if known else NOT_RUN


def publish(chapter: str, numbers: Mapping[str, Any], *, profile: str) -> None:
    """Write a chapter's numbers, all or nothing, to `path(chapter, profile)`, and print the file's name, but
    not its folder: the machine that ran the chapter has no place on a page.

    Args:
        chapter: the chapter's name, such as `"01_order"`.
        numbers: name to float, int, bool or str; names are lower_snake words. NumPy scalars and
            zero-dimensional tensors are taken at their value.
        profile: the profile the chapter ran at.

    Raises:
        NumbersError: nothing to publish, a name that is not lower_snake, a value that is not a scalar,
            or one that is NaN or infinite. The message names every offender.
    """
    target = path(chapter, profile)
    if not numbers:
        raise NumbersError(f"{chapter}: no numbers; a chapter publishes at least one")
    clean, problems = {}, []
    for key, value in numbers.items():
        try:
            clean[key] = _checked(key, value)
        except NumbersError as problem:
            problems.append(str(problem))
    if problems:
        raise NumbersError(f"{chapter}: " + "; ".join(problems))
    write_json(target, {"chapter": chapter, "profile": profile, "numbers": clean})
    print(f"written: {target.name}")


def load(chapter: str, profile: str) -> dict[str, Number]:
    """The numbers that `chapter` published at `profile`.

    Raises:
        NumbersError: the file is missing, is no JSON, or belongs to another chapter or profile. The
            message starts with the path and ends with the remedy.
    """
    file = path(chapter, profile)
    remedy = f"run `sepnb run {chapter} --profile {profile}`"
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NumbersError(f"{file}: chapter {chapter} has not run at {profile}; {remedy}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NumbersError(f"{file}: not valid JSON ({error}); {remedy}") from None
    if not isinstance(stored, dict) or not isinstance(stored.get("numbers"), dict):
        raise NumbersError(f"{file}: holds no 'numbers'; {remedy}")
    if (stored.get("chapter"), stored.get("profile")) != (chapter, profile):
        where = f"{stored.get('chapter')!r} at {stored.get('profile')!r}"
        raise NumbersError(f"{file}: holds the numbers of {where}; {remedy}")
    return stored["numbers"]


def write_json(target: Path, content: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never half of it."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    paths.write_atomically(target, text + "\n")


def _checked(key: Any, value: Any) -> Number:
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise NumbersError(f"name {key!r} is not lower_snake words")
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, float | int | str):
        raise NumbersError(f"{key} is a {type(value).__name__}, not a single number or text")
    if isinstance(value, float) and not math.isfinite(value):
        raise NumbersError(f"{key} is {value}; only finite numbers are published")
    return value

"""Tensors and their metadata in one checksummed file: a file with a single changed bit is refused.

It is a safetensors file, which other programs can read and which cannot execute code. Its header holds the
metadata as JSON under the key "told", and the SHA-256 of the whole file with 64 zeros in place of the digest.
Like the checksum of a record, this seal detects accidents; it is not a signature.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ..paths import write_atomically
from .store import canonical

_OPEN = b"0" * 64
_SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})"')
"""It stands once in a header: quotes within the metadata are escaped."""


def write(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write tensors by name, and their metadata, whole or not at all.

    Args:
        path: of the file; one that is there is replaced.
        tensors: on the CPU, none of which shares memory with another.
        meta: the metadata, in JSON's types.

    Raises:
        ValueError: a number of the metadata is not finite.
    """
    header = {"told": canonical(meta), "sha256": _OPEN.decode()}
    dense = {name: tensor.contiguous() for name, tensor in tensors.items()}
    content = safetensors.torch.save(dense, header)
    seal = hashlib.sha256(content).hexdigest().encode()
    write_atomically(path, content.replace(b'"sha256":"' + _OPEN, b'"sha256":"' + seal, 1))


def read(path: Path, remedy: str = "delete it") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and their metadata. `remedy` ends the error message: what to do with a refused file.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: it cannot be read, another program wrote it, or it is not as it was written.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); see to it, or take it away") from None
    size = int.from_bytes(content[:8], "little")
    found = _SEAL.search(content[8 : 8 + size])
    if found is None:
        raise ValueError(f"{path} holds no tensors under a seal, or not all of them; {remedy}")
    first, last = (8 + end for end in found.span(1))
    opened = hashlib.sha256(content[:first])
    opened.update(_OPEN)
    opened.update(memoryview(content)[last:])
    if opened.hexdigest() != found[1].decode():
        raise ValueError(f"{path} is damaged: its checksum is that of another content; {remedy}")
    try:
        meta = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["told"])
        return safetensors.torch.load(content), meta
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} has a seal, and was not written here ({error}); {remedy}") from None

"""The GPUs of this machine: whether there are any, which of them a command uses, and how fast one is."""

import ctypes
import os
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path

QUICK = 2**12
"""Rows and columns of the matrices whose product tells the speed of a GPU."""


def missing() -> str | None:
    """Why nothing can be computed on a GPU here; None where it can. Torch is imported to find out only where
    it was built for GPUs and a driver is there."""
    if "torch" not in sys.modules:
        built = _built()
        if built is not None and not built.keys() & {"cuda", "hip"}:
            return "the torch that is installed was built for the CPU alone"
        if built is not None and "hip" not in built and not _driver():
            return "there is no driver of NVIDIA here"
    import torch

    return None if torch.cuda.is_available() else f"torch {torch.__version__} finds none"


def _built() -> dict[str, str] | None:
    """What torch says of its build without being imported: its version, that of CUDA or of HIP where it was
    built for it, and the like; None where it does not say."""
    found = find_spec("torch")
    file = Path(found.origin).with_name("version.py") if found and found.origin else None
    if file is None or not file.is_file():
        return None
    said = re.findall(r"(?m)^(\w+)\b[^=\n]*= *'([^'\n]+)'", file.read_text(encoding="utf-8"))
    return dict(said) or None


def _driver() -> bool:
    """Whether the library through which CUDA speaks with GPUs can be loaded."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return sys.platform != "linux"  # it has another name there
    return True


def visible() -> list[str]:
    """The GPUs that torch finds, as `CUDA_VISIBLE_DEVICES` names them."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return (named.split(",") if named else [str(number) for number in range(count)])[:count]


def only(number: int) -> None:
    """Let this process and those that it starts see one of the visible GPUs, which then is `cuda`; to be
    called before anything asks for a GPU. Where there is no such one, none is found."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = named.split(",") if named else [str(one) for one in range(number + 1)]
    os.environ["CUDA_VISIBLE_DEVICES"] = names[number] if number < len(names) else "-1"


def peak() -> float:
    """Multiply-adds that the first GPU does in a second at best: those of a product of large matrices in
    bfloat16, the quickest of some."""
    import torch

    a = torch.ones(QUICK, QUICK, dtype=torch.bfloat16, device="cuda")
    took = []
    for _ in range(5):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        a @ a
        torch.cuda.synchronize()
        took.append(time.perf_counter() - begun)
    return QUICK**3 / min(took)

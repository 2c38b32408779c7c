"""The GPUs of this machine: whether there are any, which of them a command uses, and how fast one is."""

import os
import time

QUICK = 2**12
"""Rows and columns of the matrices whose product tells the speed of a GPU."""


def missing() -> str | None:
    """Why nothing can be computed on a GPU here; None where it can."""
    import torch

    return None if torch.cuda.is_available() else f"torch {torch.__version__} finds none"


def visible() -> list[str]:
    """The GPUs that torch finds, as `CUDA_VISIBLE_DEVICES` names them."""
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return (named.split(",") if named else [str(number) for number in range(count)])[:count]


def only(number: int) -> None:
    """Restrict this process and its children to one of the visible GPUs, which then is `cuda`. Call it before
    anything uses a GPU. If there is no GPU of this number, all are hidden."""
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

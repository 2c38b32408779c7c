"""Attention in x-transformers, the peer beside which encodings are timed.

It stays out of the environment: `make bench` brings it into a folder of its own. Where it is missing it is no
column, and records that are to be published are refused.
"""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable

from torch import Tensor

from .. import encodings

NAME = "x-transformers"
COMPILED = f"{NAME}, compiled"
METHODS = ("none", "rope", "xpos", "alibi", "t5", "cope")
"""The encodings that it has of those that are timed, and attention without any."""

Core = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys and values `[B, H, N, d]` to averaged values."""


class PackageMissing(ValueError):
    """A record is to hold what another package takes, and that is not installed."""


def installed() -> bool:
    return importlib.util.find_spec("x_transformers") is not None


def check(profile: str) -> None:
    """Refuse a record that would be published without its column of x-transformers.

    Raises:
        PackageMissing: with the remedy.
    """
    if profile != "smoke" and not installed():
        raise PackageMissing(
            f"{NAME} is not installed, and the records of the {profile} profile hold its time beside "
            f"ours; `make bench KEEP={profile}` installs it into a folder of its own and runs them"
        )


def version() -> str:
    return importlib.metadata.version(NAME)


def attention(method: str, n_heads: int, head_width: int) -> tuple[Core, list[Tensor]] | None:
    """The same attention in x-transformers and its parameters; None where it is not installed or has no such
    encoding. Its CoPE hands scaled products to the gates: another function, and the same work."""
    if method not in METHODS or not installed():
        return None
    package = importlib.import_module("x_transformers.x_transformers")
    attend = importlib.import_module("x_transformers.attend").Attend
    if method == "cope":
        gates = package.CoPE(head_width, n_heads, max_pos=encodings.build("cope").n_positions)
        kernel = attend(causal=True, flash=False, cope=gates)
        return lambda q, k, v: kernel.to(q.device)(q, k, v)[0], list(gates.parameters())
    kernel = attend(causal=True, flash=method != "t5")  # its fused path refuses a trained bias
    if method in ("alibi", "t5"):
        if method == "alibi":
            bias = package.AlibiPositionalBias(n_heads)
        else:
            bias = package.RelativePositionBias(head_width**0.5, causal=True, heads=n_heads)

        def biased(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            n = q.shape[-2]
            return kernel(q, k, v, attn_bias=bias.to(q.device)(n, n))[0]

        return biased, list(bias.parameters())
    rotary = package.RotaryEmbedding(head_width, use_xpos=method == "xpos")

    def rotated(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if method != "none":
            angles, scale = rotary.to(q.device).forward_from_seq_len(q.shape[-2])
            q = package.apply_rotary_pos_emb(q, angles, scale)
            k = package.apply_rotary_pos_emb(k, angles, scale**-1.0)
        return kernel(q, k, v)[0]

    return rotated, []

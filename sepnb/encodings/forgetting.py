"""Forget gates (FoX, the Forgetting Transformer; Lin et al. 2025): what a token says decides how much of all
that stands before it fades.

    f_t = sigmoid(w_h . x_t + b_h)                              one gate of head h for every token
    S_ij = q_i . k_j / sqrt(d) + log f_(j+1) + ... + log f_i    what lies between key j and query i

x is the normalised state that makes queries and keys; where every gate of a head has the same value the bias
is ALiBi's. With c_i, the sum of log f up to token i, the bias is c_i - c_j: the product of the columns
[c_i, 1] of a query and [1, -c_j] of a key. So the distance that this encoding counts *is* two more columns of
queries and keys, and it is computed as such. Tokens are counted and their positions play no part: a model
refuses gaps, and takes consecutive positions from any start. Causal models only.

In a text s times as long the gates can be slowed down as waves can: `PositionInterpolation(s)` divides every
log f_t, and so the bias, by s, as it divides the slopes of ALiBi in Al-Khateeb et al. (2023).

Shape letters: B batch, H heads, N query length, M key length, d head width.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..validation import floats
from .base import Encoding, Extendable, Heads, Site, TermModule
from .context import ContextExtension, PositionInterpolation, check_extension


def forgetting_bias(logits: Float[Tensor, "B H M"]) -> Float[Tensor, "B H M M"]:
    """The bias of every query `i` and key `j`, the sum of log sigmoid(logits) over the tokens j+1 to i, in
    float32 or wider; 0 for keys after the query, where it means nothing."""
    floats(logits=(logits, "B H M"))
    c = _counted(logits)
    return (c[..., :, None] - c[..., None, :]).tril()


def _counted(logits: Tensor) -> Tensor:
    """c, over the last dimension."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.logsigmoid(wide).cumsum(dim=-1)


class ForgettingTerm(TermModule, Extendable):
    """The gates of one layer. At the start b = 0, as in the authors' code, and about half of what came before
    is kept from a token to the next."""

    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self.gates = nn.Linear(heads.content_width, heads.reading)
        self.scale = heads.width**0.5  # undoes that of the score
        self.more, self.products = 2, self.gates.weight.numel()
        self.extend(None)

    def extend(self, extension: ContextExtension | None) -> None:
        check_extension(extension)
        if extension is not None and not isinstance(extension, PositionInterpolation):
            raise ValueError(
                f"{extension!r} tells waves apart by their frequency, and forget gates have none; of the "
                f"context extensions they follow PositionInterpolation alone"
            )
        self.extension = extension
        self.slower = 1.0 if extension is None else extension.factor

    def prepare(self, query_positions: Tensor, key_positions: Tensor) -> None:
        return None

    def kept(self, content: Tensor) -> Tensor:
        """The logits of the gates, `[B, H, M, 1]`."""
        return self.gates(content).transpose(1, 2)[..., None]

    def forward(self, content: Tensor, prepared: None, kept: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits = self.kept(content) if kept is None else kept
        c = _counted(logits[..., 0])[..., None] * (self.scale / self.slower)
        # bfloat16 has 8 significant bits, and counts grow with the text: there each is split over 3 columns.
        pieces = []
        for _ in range(1 if logits.dtype == c.dtype else 3):
            pieces.append(c.to(logits.dtype))
            c = c - pieces[-1]
        counts = torch.cat(pieces, dim=-1)
        ones = torch.ones_like(counts)
        first = counts.shape[-2] - content.shape[1]
        queries = torch.cat([counts, ones], dim=-1)[..., first:, :]
        return queries, torch.cat([ones, -counts], dim=-1)


@dataclass(frozen=True)
class Forgetting(Encoding):
    """A forget gate for every head and token, in every head that reads the sem stream.

    With a window a query hears only the gates of tokens that it sees. Where logits are scaled
    (`log_scale`), the bias is scaled with them.
    """

    name = "forgetting"
    order = 15.5
    sites = frozenset({Site.QUERY_KEY})
    left_out = "an arm of `ladder_text`, which compares it with RoPE on a share of the columns"
    causal_only = True
    counts_tokens = True

    def each_layer(self, site: Site) -> bool:
        return True

    def at_query_key(self, heads: Heads) -> TermModule:
        return ForgettingTerm(heads)

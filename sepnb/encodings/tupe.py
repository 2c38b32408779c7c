"""The untied position term (TUPE, Ke et al. 2021): position meets position, content meets content.

    S_ij += (p_i W_Q) (p_j W_K)^T

p is a sinusoid, the same in every layer, normalised; the maps differ from head to head and from layer to
layer. Nothing is added to the content, and no product of content with position is in the score. A separated
model with `query_key="untied"` and a constant position stream is a dense one of the width of its sem stream
with this term (a test says so). The paper has a learned table and one pair of maps for all layers.

Written as more columns of queries and keys: those of a key are p_j, those of a query p_i W_Q W_K^T.

Shape letters: H heads, N query length, M key length, d head width, w columns of p.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..validation import WIDEST, whole
from .base import Encoding, Extendable, Heads, Site, TermModule
from .context import ContextExtension
from .sinusoidal import Sinusoidal, SinusoidalInput, sinusoidal


class TupeTerm(TermModule, Extendable):
    """The term of one layer, under the scale d^-1/2 of the score."""

    def __init__(self, heads: Heads, columns: int) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(columns)), nn.Parameter(torch.zeros(columns))
        self.query, self.key = (nn.Linear(columns, heads.reading * heads.width, bias=False) for _ in range(2))
        self.n_heads, self.more = heads.reading, columns
        self.products = 0  # of positions alone: made once for all tokens of a batch
        self.waves = SinusoidalInput(columns, Sinusoidal())

    def extend(self, extension: ContextExtension | None) -> None:
        self.waves.extend(extension)
        self.extension, self.attention_factor = extension, self.waves.attention_factor

    def prepare(self, query_positions: Tensor, key_positions: Tensor) -> tuple[Tensor, Tensor]:
        """The sinusoids `[*B, N, w]` and `[*B, M, w]`, in float64."""
        return self.waves(query_positions), self.waves(key_positions)

    def _normalised(self, p: Tensor) -> Tensor:
        return F.layer_norm(p.to(self.gain.dtype), (self.more,), self.gain, self.bias)

    def forward(self, content: Tensor, prepared: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        at, keys = (self._normalised(p).unsqueeze(-3) for p in prepared)
        of_query, of_key = (m.weight.unflatten(0, (self.n_heads, -1)) for m in (self.query, self.key))
        asked = at @ (of_query.transpose(-1, -2) @ of_key)  # [*B, H, N, w]
        asked, keys = (x if x.dim() == 4 else x[None] for x in (asked, keys))
        return asked.to(content.dtype), keys.to(content.dtype)


@dataclass(frozen=True)
class Tupe(Encoding):
    """The untied position term, in every head that reads the sem stream.

    Args:
        columns: of the sinusoid, at least 2; None takes a quarter of the model width, as wide as the position
            stream of the separated models of this book.
    """

    name = "tupe"
    order = 6.5
    sites = frozenset({Site.QUERY_KEY})
    left_out = "the dense twin of an untied model, compared in `matched_loss`"
    reads_index = True

    columns: int | None = None

    def __post_init__(self) -> None:
        if self.columns is not None:
            whole("columns", self.columns, 2, WIDEST, needs="a sinusoid that is normalised has 2 at least")

    def code(self, width: int, length: int) -> tuple[str, Callable[[Tensor], Tensor]]:
        columns = self.columns or width
        return "position: the waves that queries and keys project", lambda at: sinusoidal(at, columns)

    def each_layer(self, site: Site) -> bool:
        return True

    def at_query_key(self, heads: Heads) -> TermModule:
        return TupeTerm(heads, self.columns or max(2, heads.model_width // 4))

"""The embeddings of SeqPE inside a model: at its input, or where queries meet keys (Li et al. 2025).

    input      x_0 <- x_0 + E, or E is the position stream itself
    score      softmax((q k^T + a P_q P_k^T) d^-1/2): a bias of each head that no content changes
    add        q <- q + P_q,  k <- k + P_k
    multiply   q <- q * P_q,  k <- k * P_k

with E the embeddings of the positions and P_q = W_q E + c_q, P_k = W_k E + c_k, cut into heads: one map for
all layers, or one for each. The term of the score is written as more columns, [q || a P_q] and [k || P_k],
under the scale of the head: no bias of N x M is held.

P_k is made of the positions of all keys in every pass, also with a cache. Whoever makes many passes with the
same weights does so inside of `encodings.held.held_embeddings(model)`: there each position is encoded once.

Shape letters: B batch, H heads, N positions, d head width, n coordinates, D columns of an embedding.
"""

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..encodings.base import Heads, InputModule, Place, QueryKeyModule
from ..encodings.held import Holding
from .digits import LARGEST, as_grid, check_range
from .encoder import SequentialPositionEncoder


class Embeddings(Holding):
    """Positions int `[*B, N]`, or of n > 1 coordinates `[*B, N, n]`, to embeddings `[*B, N, D]`.

    With `class_token` the origin has a vector of its own, drawn as the encoder's last slot is, and not the
    embedding of its digits. The losses of the encoder do not see it.
    """

    def __init__(self, encoder: SequentialPositionEncoder, *, class_token: bool = False) -> None:
        super().__init__()
        self.encoder, self.class_token, self.columns = encoder, None, encoder.output.out_features
        if class_token:
            self.class_token = nn.Parameter(encoder.std * torch.randn(self.columns))

    def check_drawn(self, positions: Tensor) -> None:
        """Refuse positions of a training step that the digits cannot write, before they go to a device."""
        grid = as_grid(positions.reshape(-1, self.encoder.dims))
        check_range(grid, self.encoder.base, self.encoder.digits)

    def forward(self, positions: Tensor) -> Tensor:
        grid = positions.unsqueeze(-1) if self.encoder.dims == 1 else positions
        shape, grid = grid.shape[:-1], as_grid(grid.flatten(end_dim=-2))
        sizes = tuple(highest + 1 for highest in self.encoder.highest)
        if self.held is not None and not torch.is_grad_enabled() and prod(sizes) <= LARGEST:
            check_range(grid, self.encoder.base, self.encoder.digits, self.encoder.vouched)
            strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
            numbers = (grid * torch.tensor(strides, device=grid.device)).sum(dim=-1)
            embeddings = self.held.of(
                numbers, lambda new: self.encoder(torch.stack(torch.unravel_index(new, sizes), dim=-1))
            )
        else:
            embeddings = self.encoder(grid)
        if self.class_token is not None:
            origin = (grid == 0).all(dim=-1, keepdim=True)
            embeddings = torch.where(origin.to(embeddings.device), self.class_token, embeddings)
        return embeddings.unflatten(0, shape)


class EmbeddedInput(InputModule):
    """The embeddings themselves, at the input of a model."""

    def __init__(self, encoder: SequentialPositionEncoder, *, class_token: bool = False) -> None:
        super().__init__()
        self.embeddings = Embeddings(encoder, class_token=class_token)
        self.limit = encoder.highest[0] + 1 if encoder.dims == 1 else None

    def refusal(self, position: int) -> str:
        encoder = self.embeddings.encoder
        return (
            f"position {position} is not in [0, {self.limit}), what {encoder.digits[0]} digits of base "
            f"{encoder.base} can write; give more digits"
        )

    def forward(self, positions: Tensor) -> Tensor:
        return self.embeddings(positions)


class Columns(NamedTuple):
    """P_q or P_k of every head, one entry for each layer or one entry that all layers share.

    Attributes:
        maps, heads: for each entry the columns `[*B, H, N, d]`, and the numbers of its H heads.
        shared: how many query heads share one of these heads.
    """

    maps: tuple[Tensor, ...]
    heads: tuple[tuple[int, ...], ...]
    shared: int

    def at(self, place: Place | None) -> Tensor:
        """Those of one place, `[*B, h, N, d]`."""
        if place is None:
            return self.maps[0]
        layer = place.layer if len(self.maps) > 1 else 0
        own, columns = self.heads[layer], self.maps[layer]
        asked = tuple(dict.fromkeys(head // self.shared for head in place.heads))
        if asked == own:
            return columns
        at = [own.index(head) for head in asked]
        whole = at == list(range(at[0], at[0] + len(at)))
        return columns[..., at[0] : at[0] + len(at), :, :] if whole else columns[..., at, :, :]


class EmbeddedQueryKey(QueryKeyModule):
    """Changes queries and keys by P_q and P_k.

    The arguments are those of `SeqPE`; maps are made for the heads that a layer has. Only "multiply" has the
    shift c_k: at "score" and "add" the softmax would cancel it.
    """

    def __init__(
        self,
        encoder: SequentialPositionEncoder,
        heads: Heads,
        site: str,
        factor: float,
        per_layer: bool,
        *,
        class_token: bool = False,
    ) -> None:
        super().__init__()
        self.embeddings = Embeddings(encoder, class_token=class_token)
        self.site, self.factor = site, factor
        self.head_width, self.more = heads.width, heads.width if site == "score" else 0
        self.once = site != "multiply"
        every = tuple(sorted({head for layer in heads.layers for head in layer}))
        self.shared, self.asking = heads.shared, heads.layers if per_layer else (every,)
        self.answering = tuple(
            tuple(dict.fromkeys(head // self.shared for head in layer)) for layer in self.asking
        )
        width = encoder.output.out_features
        self.queries = nn.ModuleList(nn.Linear(width, len(own) * heads.width) for own in self.asking)
        self.keys = nn.ModuleList(
            nn.Linear(width, len(own) * heads.width, bias=site == "multiply") for own in self.answering
        )

    def prepare(
        self, query_positions: Tensor, key_positions: Tensor, length: int | None = None
    ) -> tuple[Columns, Columns]:
        if key_positions is query_positions:
            of_queries = of_keys = self.embeddings(query_positions)
        else:  # in one pass, so that what both have is encoded once
            ends = -1 if self.embeddings.encoder.dims == 1 else -2
            both = [positions.flatten(end_dim=ends) for positions in (query_positions, key_positions)]
            embedded = self.embeddings(torch.cat(both)).split([len(positions) for positions in both])
            of_queries, of_keys = (
                rows.unflatten(0, positions.shape if ends == -1 else positions.shape[:-1])
                for rows, positions in zip(embedded, (query_positions, key_positions), strict=True)
            )
        p_q = [self._heads(made(of_queries)) for made in self.queries]
        if self.site == "score" and self.factor != 1:
            p_q = [self.factor * columns for columns in p_q]
        p_k = [self._heads(made(of_keys)) for made in self.keys]
        return Columns(tuple(p_q), self.asking, 1), Columns(tuple(p_k), self.answering, self.shared)

    def _heads(self, x: Tensor) -> Tensor:
        """`[*B, N, H*d]` to `[*B, H, N, d]`."""
        return x.unflatten(-1, (-1, self.head_width)).transpose(-2, -3)

    def forward(self, x: Tensor, prepared: Columns, place: Place | None = None) -> Tensor:
        columns = prepared.at(place).to(x.dtype)
        if self.site != "score":
            own, beside = x.split([self.head_width, x.shape[-1] - self.head_width], dim=-1)
            own = own + columns if self.site == "add" else own * columns
            return torch.cat([own, beside], dim=-1) if beside.shape[-1] else own
        shape = torch.broadcast_shapes(x.shape[:-1], columns.shape[:-1])
        return torch.cat([x.expand(*shape, -1), columns.expand(*shape, -1)], dim=-1)

"""The terms of the scores by the distance of query and key, inside the trained length L and past it.

A softmax removes what all keys of a query have in common, so each term is reported minus its mean over the L
nearest keys of its query. *Inside* are the queries L/2 to L-1 of a text of L, which see many keys; *past* are
those from L on, in longer texts.

Shape letters: B sequences, H heads, N tokens, E bins of distances.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..encodings.context import ContextExtension
from ..models import LanguageModel
from ..validation import whole
from .scores import Scores, split_scores


def score_table(
    model: LanguageModel,
    tokens: Int[Tensor, "B N"],
    *,
    length: int,
    extension: ContextExtension | None = None,
    log_scale: bool = False,
) -> pd.DataFrame:
    """A row for each layer, head, term of `scores.TERMS` and bin of distances `start` to `stop` - 1.

    Past L the model reads under the extension and with log n, where these are given; inside it reads as it
    was trained. Bins end at L, L/2, L/4 and so on, and at 2 L, 4 L; those without a pair are left out.

    Returns:
        `mean` and `std` of the term over the pairs past L; `inside_mean` and `inside_std`, from distance L on
        those of the last bin inside; `share` and `inside_share`, the attention that a bin has, of all terms;
        and `moved`, how much of the attention past L comes to or leaves a bin when this term alone is put
        back to its inside mean and spread at each distance. Over all bins that is a total variation, 0 to 1.
    """
    if tokens.shape[1] <= whole("length", length, 2):
        raise ValueError(f"texts of {tokens.shape[1]} tokens do not pass length {length}; give longer ones")
    read = model.extended(extension=extension, log_scale=log_scale)
    edges = distances(length, tokens.shape[1])
    inside = _profiles(model, tokens[:, :length], length, length // 2, edges)
    past = _profiles(read, tokens, length, length, edges)
    moved = _moved(read, tokens, length, edges, inside, past)
    rows = []
    for (layer, heads, term), now in past.items():
        was = inside[layer, heads, term]
        columns = {"mean": now.mean, "std": now.std, "inside_mean": was.mean, "inside_std": was.std}
        columns |= {"share": now.share, "inside_share": was.share, "moved": moved[layer, heads, term]}
        for h, head in enumerate(heads):
            for at, (start, stop) in enumerate(pairwise(edges.tolist())):
                if now.pairs[at]:
                    where = {"layer": layer, "head": head, "term": term, "start": start, "stop": stop}
                    rows.append(where | {name: float(x[h, at]) for name, x in columns.items()})
    return pd.DataFrame(rows).sort_values(["layer", "head"], kind="stable", ignore_index=True)


def distances(length: int, n: int) -> Int[Tensor, " edges"]:
    """Edges of the bins: 0, and L halved down to 1 and doubled until n is reached."""
    edges = {length >> k for k in range(length.bit_length())}
    while max(edges) < n:
        edges.add(2 * max(edges))
    return torch.tensor([0, *sorted(edges)])


@dataclass(frozen=True)
class Profile:
    """A term by distance: pairs `[E]`; mean and standard deviation over them, and share of the attention,
    `[H, E]`. Mean and deviation of bins without pairs are those of the last bin that has some."""

    pairs: Int[Tensor, " E"]
    mean: Float[Tensor, "H E"]
    std: Float[Tensor, "H E"]
    share: Float[Tensor, "H E"]


Terms = tuple[int, tuple[int, ...], str]
"""A layer, its heads, and a term of theirs."""


@dataclass(frozen=True)
class Pairs:
    """The pairs of a text whose query is not before `first`, by the bin of their distance."""

    which: Bool[Tensor, "N N"]
    bins: Int[Tensor, "N N"]
    near: Bool[Tensor, "N N"]
    n_bins: int

    @classmethod
    def of(cls, scores: Scores, length: int, first: int, edges: Tensor) -> "Pairs":
        at = torch.arange(len(scores.seen), device=scores.seen.device)
        apart = (at[:, None] - at).abs()
        bins = torch.bucketize(apart, edges.to(at.device)[1:], right=True)
        return cls(scores.seen & (at >= first)[:, None], bins, scores.seen & (apart < length), len(edges) - 1)

    def centred(self, x: Tensor) -> Tensor:
        """A term `[1, H, N, N]` less its mean over the near keys of each query, in float64."""
        x = x.double()
        return x - (x * self.near).sum(-1, keepdim=True) / self.near.sum(-1, keepdim=True)

    def summed(self, x: Tensor) -> Tensor:
        """Numbers of pairs `[1, H, N, N]`, added up by bin: `[H, E]`."""
        found = x.new_zeros(x.shape[1], self.n_bins)
        return found.index_add_(-1, self.bins[self.which], x[0, :, self.which])


def _texts(
    model: LanguageModel, tokens: Tensor, length: int, first: int, edges: Tensor
) -> Iterator[tuple[Scores, Pairs, Tensor]]:
    """One text and layer after another: the scores, their pairs, and the attention weights in float64."""
    for text in tokens.split(1):
        for scores in split_scores(model, text):
            yield scores, Pairs.of(scores, length, first, edges), scores.attention(scores.total.double())


def _profiles(
    model: LanguageModel, tokens: Tensor, length: int, first: int, edges: Tensor
) -> dict[Terms, Profile]:
    sums: dict[Terms, Tensor] = {}
    queries = len(tokens) * (tokens.shape[1] - first)
    for scores, pairs, weights in _texts(model, tokens, length, first, edges):
        for name, x in scores.terms.items():
            x, key = pairs.centred(x), (scores.layer, scores.heads, name)
            found = torch.stack([pairs.summed(y) for y in (torch.ones_like(x), x, x.square(), weights)])
            sums[key] = sums.get(key, 0) + found
    profiles = {}
    for key, (count, total, squares, attention) in sums.items():
        known = (count[0] > 0).nonzero()[:, 0]
        places = torch.arange(count.shape[1], device=known.device)
        at = known[(torch.searchsorted(known, places, right=True) - 1).clamp(min=0)]
        mean, square = (x[:, at] / count[:, at] for x in (total, squares))
        std = (square - mean.square()).clamp(min=0).sqrt()
        profiles[key] = Profile(count[0].long(), mean, std, attention / queries)
    return profiles


def _moved(
    model: LanguageModel,
    tokens: Tensor,
    length: int,
    edges: Tensor,
    inside: dict[Terms, Profile],
    past: dict[Terms, Profile],
) -> dict[Terms, Tensor]:
    """How much of the attention of the queries past L comes or goes with each term put back, `[H, E]`."""
    moved: dict[Terms, Tensor] = {}
    queries = len(tokens) * (tokens.shape[1] - length)
    for scores, pairs, weights in _texts(model, tokens, length, length, edges):
        for name, x in scores.terms.items():
            key = scores.layer, scores.heads, name
            was, now, x = inside[key], past[key], pairs.centred(x)
            spread = torch.where(now.std > 0, was.std / now.std, 1)
            back = was.mean[:, pairs.bins] + (x - now.mean[:, pairs.bins]) * spread[:, pairs.bins]
            change = scores.attention(scores.total.double() - x + back) - weights
            moved[key] = moved.get(key, 0) + pairs.summed(change.abs() / 2) / queries
    return moved

"""What positions do to a score, inside FlexAttention: the scores of a batch are never held, nor are sums of
them.

A bias that is a function of the distance alone is `[H, N]` numbers: those of the last query with every key.
The kernel looks them up while it makes the scores, as it does the factors of the DA-Transformer. Another
bias, such as FIRE's, is looked up pair by pair, `[H, N, N]` for the whole batch. The gradient of what is
looked up is summed by atomic additions, in no fixed order: two runs on a GPU may differ in the last bits.

It serves causal attention of a whole text with itself, on CUDA, where `compile_formulas` asks for it and
gradients are taken: FlexAttention has no backward pass on a CPU. Elsewhere the bias joins the mask. Scores
that need more than their product and one number (Shaw, Transformer-XL, CoPE) stay with the plain formula.

Shape letters: B batch, H heads, N tokens, d head width, e columns of queries and keys.
"""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from ..context import AttentionContext
from ..layout import Span
from . import kernels

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Combine = Callable[[Tensor, Tensor], Tensor]


def attend(core: nn.Module, span: Span, q: Tensor, k: Tensor, v: Tensor, context: AttentionContext) -> Tensor:
    """The output of an `AttentionCore`, softmax(combine(q k^T scale, number of the pair)) v; these numbers
    come from a table as `joined` takes it."""
    q = q if context.sharpening is None else q * context.sharpening
    if core.pairs is not None:
        distances = context.key_positions - context.key_positions[-1]
        table, combine = core.pairs.of_distance(distances, span.built), core.pairs.combine
    else:
        table, combine = _biases(core, span, context), torch.add
    mask, scale = _causal(q.shape[-2], q.device), core.head_width**-0.5
    return kernels.chosen(_attention, context.compiler)(q, k, v, table, mask, scale, combine)


def _biases(core: nn.Module, span: Span, context: AttentionContext) -> Tensor:
    """The sum of the biases of these heads, as `joined` takes it: by distance where all of them allow it."""
    of_distance = all(bias.toeplitz for bias in (*context.biases, *core.biases))
    queries, keys = context.query_positions, context.key_positions
    queries = queries[-1:] if of_distance else queries
    tables = [bias(queries, keys, True)[list(span.heads)] for bias in context.biases]
    tables += [bias(queries, keys, True)[span.built] for bias in core.biases]
    table = sum(tables[1:], start=tables[0])
    return table[:, 0] if of_distance else table


def joined(table: Tensor, combine: Combine = torch.add) -> ScoreMod:
    """What FlexAttention calls for every score: it joins it with the number of the pair, a bias as a rule.

    `table` is `[H, N]`, for the distances N - 1 down to 0, or `[H, N, N]`, for every query and key. A kernel
    looks up whole blocks: a hidden key after the query is given the number of distance 0.
    """
    if table.dim() == 3:
        return lambda score, batch, head, query, key: combine(score, table[head, query, key])
    last = table.shape[-1] - 1
    return lambda score, batch, head, query, key: combine(
        score, table[head, (key - query).clamp(max=0) + last]
    )


def _attention(
    q: Tensor, k: Tensor, v: Tensor, table: Tensor, mask: BlockMask, scale: float, combine: Combine
) -> Tensor:
    # The closure is made in here: one from outside is another function at every call, and compiled anew.
    return flex_attention(q, k, v, score_mod=joined(table, combine), block_mask=mask, scale=scale)


@lru_cache(maxsize=8)
def _causal(n: int, device: torch.device) -> BlockMask:
    """A causal mask of blocks, made once for a length. Making it holds all pairs for a moment, two bytes for
    each: 2 GiB at 32,768 tokens."""
    return create_block_mask(lambda batch, head, query, key: query >= key, None, None, n, n, device=device)

"""The scores of every head, split exactly into what content and position give to queries and to keys.

A head scores a pair by q k^T d^-1/2, and queries and keys are linear in the normalised state u. Where that is
a sum, u = c + p, the score is a sum of four *terms*, with nothing left over:

    S = content-content + content-position + position-content + position-position

The first word is what the query is made of, the second what the key is made of. In a model with position
streams c is the sem stream and p are the others; a concatenated model mixes the two from its first layer on,
and p is then what stands in the position columns. In a dense model c + p is no split of a *normalised* state,
because the norm divides by one size of both. Held at that size, and at the mean, it is linear: p is what the
position embeddings at the input give, normalised with the mean and size of the whole state; c is the rest. In
layer 0 that rest is the token. In later layers it is all that the blocks wrote, what they wrote about
positions too. Biases of maps and norms count as content, in heads that read no content as position.

Which term breaks past the trained length, and which must be slowed down to heal it? `exchanged` lets a model
read with some terms of another rule of evaluation, such as slowed positions, and all others as they were.

RoPE and what else maps queries and keys linearly acts on each term. Columns of its own that an encoding adds
(`phase`, TUPE) and biases of the score (ALiBi, T5) are a fifth term, "encoding". What is no sum is refused.

Shape letters: B sequences, H heads, N tokens.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ..encodings.base import Place
from ..models import LanguageModel, attention_hook
from ..models.attention import Attention, Part, of_heads
from ..models.context import AttentionContext
from ..models.layout import Span
from ..models.windows import visible
from ..streams import StreamNorm
from ..validation import instance, one_of

State = Mapping[str, Tensor]

TERMS = ("content-content", "content-position", "position-content", "position-position", "encoding")


@dataclass(frozen=True)
class Scores:
    """The terms of some heads of one layer.

    Attributes:
        layer, heads: counted from 0, as in the model.
        terms: of query and key, by the names of `TERMS` that these heads have. With log n or a temperature
            each is multiplied by it. "encoding" may have a batch of 1.
        seen: which keys a query sees.
    """

    layer: int
    heads: tuple[int, ...]
    terms: dict[str, Float[Tensor, "B H N N"]]
    seen: Bool[Tensor, "N N"]

    @property
    def total(self) -> Float[Tensor, "B H N N"]:
        """The scaled scores of the model, biases of the encodings included, without a mask."""
        return sum(self.terms.values())

    def attention(self, total: Tensor | None = None) -> Float[Tensor, "B H N N"]:
        """The attention weights of the model, or of other scores in the place of `total`."""
        total = self.total if total is None else total
        return total.masked_fill(~self.seen, -torch.inf).softmax(-1)


def split_scores(model: LanguageModel, tokens: Int[Tensor, "B N"]) -> Iterator[Scores]:
    """The terms of every head that is built, layer by layer, under whatever rule of evaluation the model has,
    at positions 0 to N-1.

    The model is put into evaluation mode. ValueError: an encoding whose scores are no sum of such terms.
    """
    transformer = check(model).eval().transformer
    weight, n = model.embedding.weight.detach(), tokens.shape[1]
    positions = torch.arange(n, device=weight.device)
    seen = torch.ones(n, n, dtype=torch.bool, device=weight.device)
    if model.config.causal:
        seen = visible(n, n, weight.device, window=transformer.window, sinks=transformer.sinks)
    with torch.no_grad():  # never around a yield: it would hold where the terms are used
        context = transformer.attention_context(positions, positions, weight.dtype)
        embeddings = transformer.embeddings(positions, weight.dtype)
        x = transformer.input_state(model.embedded(tokens.to(weight.device)), positions, embeddings)
        given = {"sem": embeddings["sem"]} if "sem" in embeddings else {}  # to a dense state, so far
    for layer, block in enumerate(transformer.blocks):
        with torch.no_grad():
            x, given = (transformer.entering(layer, one, embeddings, positions) for one in (x, given))
            u = block.attention_norm.parts(x)
            content = {name: y if name == "sem" else torch.zeros_like(y) for name, y in u.items()}
            if "sem" in given:
                content["sem"] = content["sem"] - held(block.attention_norm, x["sem"], given["sem"])
            here = block.attention.context_here(context)
            mixed = "sem" in given or here.embedding is not None
            found = [*_terms(block.attention, here, u, content, mixed, seen)]
            x = {**x, **block(x, context)}
        for heads, terms in found:
            yield Scores(layer, heads, terms, seen)


@torch.no_grad()
def exchanged(
    model: LanguageModel, other: LanguageModel, terms: Collection[str], tokens: Int[Tensor, "B N"]
) -> Float[Tensor, "B N V"]:
    """Logits of a model whose `terms`, in every layer, are those of `other`: the same weights under another
    rule of evaluation. Both models use the mixed attention, and later layers read its result."""
    for name in terms:
        one_of("term", name, TERMS)
    weights: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def hook(layer, heads, compute):
        return weights[layer, heads] if (layer, heads) in weights else compute()

    with attention_hook(model, hook) as n_layers, attention_hook(other, hook):
        for layer in range(n_layers):
            pairs = zip(split_scores(model, tokens), split_scores(other, tokens), strict=True)
            made = [(own, new) for own, new in pairs if own.layer == layer]
            for own, new in made:
                mixed = {name: (new if name in terms else own).terms[name] for name in own.terms}
                weights[layer, own.heads] = own.attention(sum(mixed.values()))
        return model(tokens.to(model.embedding.weight.device))


def check(model: LanguageModel) -> LanguageModel:
    """Refuse a model whose scores are no sum of the terms."""
    transformer = instance("model", model, LanguageModel).transformer
    names = " and ".join(encoding.name for encoding in model.config.encodings)
    if model.config.axes > 1:
        raise ValueError(f"positions have {model.config.axes} coordinates; the split is for texts")
    if any(block.attention.core.pairs is not None for block in transformer.blocks):
        raise ValueError(f"{names} makes scores that are no product of a query and a key; there is no split")
    if any(module.once for module in transformer.query_key_encodings):
        raise ValueError(
            f"{names} adds vectors to queries and keys that are no linear map of the state; there is no split"
        )
    return model


def held(norm: StreamNorm, x: Float[Tensor, "B N w"], part: Float[Tensor, "*B N w"]) -> Tensor:
    """The contribution of a part of a dense state x to the normalised x, with mean and size of x held: linear
    in the part, without the bias."""
    variance = x.square().mean(-1, keepdim=True)
    if norm.kind == "layer":
        part, variance = part - part.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return part * (variance + norm.eps).rsqrt() * norm.gain["sem"]


def _terms(
    layer: Attention, context: AttentionContext, u: State, content: State, mixed: bool, seen: Tensor
) -> Iterator[tuple[tuple[int, ...], dict[str, Tensor]]]:
    """The heads of each span of a layer, and their terms. `mixed`: the sem stream holds positions too."""
    scale = layer.head_width**-0.5 * (1.0 if context.sharpening is None else context.sharpening)
    for index, group in enumerate(layer.groups):
        whole, alone = (layer.queries_and_keys(index, x) for x in (context.embedded(u), content))
        for span in group.spans:
            terms: dict[str, Tensor] = {}
            for number, parts in enumerate(zip(whole, alone, strict=True)):
                (q, k), of_content = (_rotated(layer, context, span, number, part) for part in parts)
                made = {"content": of_content, "position": (q - of_content[0], k - of_content[1])}
                if "sem" not in parts[0].reads:
                    made = {"position": (q, k)}
                elif parts[0].reads == ("sem",) and not mixed:
                    made = {"content": (q, k)}
                for (asks, (q, _)), (answers, (_, k)) in product(made.items(), repeat=2):
                    terms[f"{asks}-{answers}"] = q @ k.transpose(-1, -2) * scale
            added = [
                of_heads(q, span) @ of_heads(k, span).transpose(-1, -2) * scale
                for term, prepared in zip(layer.terms, context.terms, strict=True)
                if "sem" in group.reads
                for q, k in [term(u["sem"], prepared)]
            ]
            if context.biases or len(layer.core.biases):
                bias = layer.core.mask(span, context.dtype, context).masked_fill(~seen, 0)
                added.append(bias if bias.dim() == 4 else bias.expand(1, len(span.heads), -1, -1))
            if added:
                terms["encoding"] = sum(added)
            yield span.heads, terms


def _rotated(
    layer: Attention, context: AttentionContext, span: Span, number: int, part: Part
) -> tuple[Tensor, Tensor]:
    """Queries and keys `[B, H, N, d]` of a part as encodings map them, one key for each head."""
    q, k = part.queries[span.number], part.keys[span.number]
    q, k = context.rotated(q, k, part.reads, Place(layer.layer, span.heads), first=number == 0)
    return q, k.repeat_interleave(layer.shared, dim=1)

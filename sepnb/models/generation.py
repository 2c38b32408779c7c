"""Text that a model writes: each token is read once, and what it leaves behind is kept in a cache.

A token is chosen from the logits z after the last one: the largest (temperature 0), or drawn with the
probabilities softmax(z / temperature), of the `top_k` largest alone where that is given. A draw inverts the
distribution function at one uniform number a token, from a generator of each sequence: sequences do not
influence each other, and torch's own random state is left alone.

Shape letters: B sequences, N tokens of the prompt, V tokens of the vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn

from .. import validation
from ..validation import FARTHEST
from . import door
from .cache import KVCache

LARGEST_SEED = 2**63 - 1


def generate(
    model: nn.Module,
    tokens: Integer[Tensor, "B N"],
    n: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    seed: int | None = None,
    cache: KVCache | None = None,
) -> Integer[Tensor, "B N+{n}"]:
    """The tokens, and n more that the model chooses after them; it is read as in evaluation, without
    gradients, and every module is given its mode back.

    Args:
        tokens: `[B, N]`, integers below the vocabulary size, at least one a sequence. The result has their
            dtype, or int64 where that does not hold the vocabulary.
        n: how many to add, 0 or more.
        temperature: 0 takes the token of the largest logit, of several the first; above 0 tokens are drawn.
        top_k: draw among so many tokens of the largest logits; None draws among all.
        seed: of the draws. With the same one the first m of n tokens are those that are drawn where m are
            asked for, whatever the other sequences are. None: another text every time.
        cache: of `make_cache`, in place of a new one; tokens come after what it has read. Afterwards it has
            read all returned tokens but the last, also with n = 0, so
            `generate(text[:, -1:], n, cache=cache)` continues a text. If frequencies follow the length of the
            text, a new cache is made for N + n positions.

    Raises:
        TypeError, ValueError: an argument of another type or out of its range; a cache of another batch or
            model; a position that the model has no answer for, before anything is computed; logits that are
            not finite.
    """
    tokens = _checked_tokens(model, tokens)
    batch, length = tokens.shape
    validation.whole("n", n, 0, FARTHEST)
    choose = _chooser(batch, model.vocab_size, temperature, top_k, seed)
    if cache is None:
        if not n:
            return tokens.clone()
        cache = model.make_cache(batch, length + n if model.transformer.by_length else None)
    _check_cache(model, cache, batch, length + n - 1)
    written = [tokens.long()]
    with _evaluated(model):
        for _ in range(n):
            written.append(choose(_last_logits(model, written[-1], cache)))
        if not n and length > 1:
            _last_logits(model, tokens[:, :-1], cache)
    holds = torch.iinfo(tokens.dtype).max >= model.vocab_size - 1
    return torch.cat(written, dim=1).to(tokens.dtype if holds else torch.int64)


def _checked_tokens(model: nn.Module, tokens: Tensor) -> Tensor:
    """Tokens that a text can go on after, in their own dtype."""
    config = model.config
    if not config.causal:
        raise ValueError(
            "this model is not causal: it has seen what comes after a token and cannot write it; build it "
            "with causal=True"
        )
    if config.axes > 1:
        raise ValueError(
            f"on {config.axes} axes no position comes after another; call the model with the positions of "
            f"each step"
        )
    door.check_tokens(tokens, model.vocab_size, model.embedding.weight.device)
    if not len(tokens) or not tokens.shape[1]:
        raise ValueError(
            f"tokens have shape {list(tokens.shape)}; give at least one sequence, and each at least one "
            f"token: an empty text has no last token to go on after"
        )
    return tokens


def _check_cache(model: nn.Module, cache: KVCache, batch: int, count: int) -> None:
    """Refuse a cache that is not for this model, and `count` tokens after it that the model cannot read."""
    transformer = model.transformer
    validation.instance("cache", cache, KVCache)
    cache.check(batch, model.config, transformer.window, transformer.sinks)
    if not count:
        return
    weight = model.embedding.weight
    ends = cache.next_positions(1, weight.device) + (count - 1)  # of each sequence, [1] or [B, 1]
    door.check_positions(ends, transformer)
    if transformer.by_length:
        cache.whole_length(ends)
    if door.bounded(transformer) and cache.room is None:  # one that rolls holds less: each step says how much
        starts = ends - (count - 1) if cache.positions is None else cache.positions.amin(-1, keepdim=True)
        door.check_span(torch.cat([starts, ends], dim=-1), transformer, weight.dtype)


@contextmanager
def _evaluated(model: nn.Module) -> Iterator[None]:
    """The model as in evaluation, then every module in the mode that it was in. Not `inference_mode`: what it
    leaves in a cache, or in a continued table, could be read by no training."""
    with validation.restored(model.modules(), "training"), torch.no_grad():
        model.eval()
        yield


def _last_logits(model: nn.Module, tokens: Tensor, cache: KVCache) -> Float[Tensor, "B V"]:
    """Those after the last token alone: of a long prompt and a large vocabulary all would fill a memory."""
    state = model.transformer(model.embedded(tokens), cache=cache)
    return model.logits({name: x[:, -1] for name, x in state.items()})


def _chooser(
    batch: int, vocab_size: int, temperature: float, top_k: int | None, seed: int | None
) -> Callable[[Tensor], Tensor]:
    """What takes logits `[B, V]` to tokens `[B, 1]`."""
    validation.number("temperature", temperature, 0)
    if top_k is not None:
        validation.whole("top_k", top_k, 1, vocab_size)
    generators = _generators(batch, seed)

    def choose(logits: Tensor) -> Tensor:
        if not logits.isfinite().all():
            raise ValueError(
                "the model's logits are not finite, so there is no token to choose; its weights diverged, or "
                "its dtype is too narrow"
            )
        if temperature == 0:
            return logits.argmax(dim=-1, keepdim=True)
        uniform = [torch.rand(1, generator=one, dtype=torch.float64) for one in generators]
        return drawn(logits, torch.stack(uniform).to(logits.device), temperature, top_k)

    return choose


def _generators(batch: int, seed: int | None) -> list[torch.Generator]:
    """One for each sequence, by its number alone: more sequences leave the first ones what they were."""
    source = torch.Generator()
    if seed is None:
        source.seed()
    else:
        source.manual_seed(validation.whole("seed", seed, 0, LARGEST_SEED))
    seeds = torch.randint(LARGEST_SEED, (batch,), generator=source).tolist()
    return [torch.Generator().manual_seed(one) for one in seeds]


def drawn(
    logits: Float[Tensor, "B V"], uniform: Float[Tensor, "B 1"], temperature: float, top_k: int | None = None
) -> Int[Tensor, "B 1"]:
    """The tokens at which numbers in [0, 1) fall in the distribution functions of softmax(z / temperature),
    most probable tokens first; of equal ones the first comes first, as in `argmax`."""
    z, order = logits.double().sort(dim=-1, descending=True, stable=True)
    # The largest is taken off first: at any temperature it is then 0, and the others overflow to -inf.
    weights = ((z[:, :top_k] - z[:, :1]) / temperature).exp().cumsum(dim=-1)
    return order.gather(-1, torch.searchsorted(weights / weights[:, -1:], uniform, right=True))

"""What a step of training shows of a model: its logits, and the gradient of every parameter."""

import torch

from sepnb.models import LanguageModel


def outcome(made: LanguageModel, *given, read_by=None, **named) -> list[torch.Tensor]:
    """The logits and the gradient of every parameter that has one."""
    made.zero_grad()
    logits = (read_by or made)(*given, **named)
    logits.square().mean().backward()
    return [logits.detach(), *(p.grad.clone() for p in made.parameters() if p.grad is not None)]


def close(ours: list[torch.Tensor], theirs: list[torch.Tensor], atol: float = 1e-10) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


def in_pieces(
    reader: LanguageModel, text: torch.Tensor, sizes: int | list[int], length: int | None = None
) -> torch.Tensor:
    """The logits of a text that is read through one cache, so many tokens at a time."""
    cache = reader.make_cache(len(text), length)
    return torch.cat([reader(piece, cache=cache) for piece in text.split(sizes, dim=1)], dim=1)


def weights(made: LanguageModel) -> dict[str, torch.Tensor]:
    """Copies of all parameters, by name."""
    return {name: weight.detach().clone() for name, weight in made.named_parameters()}

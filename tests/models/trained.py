"""What a step of training shows of a model: its logits, and the gradient of every parameter."""

import torch

from sepnb.models import LanguageModel

TIGHT = {"rtol": 0, "atol": 1e-10}


def outcome(made: LanguageModel, *given, read_by=None, **named) -> list[torch.Tensor]:
    """The logits and the gradient of every parameter that has one."""
    made.zero_grad()
    logits = (read_by or made)(*given, **named)
    logits.square().mean().backward()
    return [logits.detach(), *(p.grad.clone() for p in made.parameters() if p.grad is not None)]


def close(ours: list[torch.Tensor], theirs: list[torch.Tensor], atol: float = 1e-10) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=atol)

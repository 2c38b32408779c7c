"""The weights of a model: what they begin with, how many they are, and a copy that shares them."""

import copy
from typing import TypeVar

from torch import nn

from .config import TransformerConfig

Model = TypeVar("Model", bound=nn.Module)


def own_modules(model: nn.Module) -> list[nn.Module]:
    """The modules of a model, in the order of `modules()`, without those of a standalone network: the part of
    an encoding that says `standalone = True`, draws its own first weights, and is no layer of the model."""
    inner = [module for module in model.modules() if module is not model]
    networks = [module for module in inner if getattr(module, "standalone", False)]
    theirs = {part for network in networks for part in network.modules()}
    return [module for module in model.modules() if module not in theirs]


def initialise_maps(model: nn.Module, config: TransformerConfig) -> None:
    """N(0, 1/fan-in) for the linear maps of a model with a `transformer`, block by block; biases are 0.

    What writes to the residual state starts smaller by (2 n_layers)^-1/2, so that the state does not
    grow with depth (Radford et al. 2019). A block of a split map is initialised like a map of its own width.
    """
    shrink = (2 * config.n_layers) ** -0.5
    writers: set[nn.Module] = set()
    for block in model.transformer.blocks:
        writers.update(block.attention.output.blocks.values(), block.mlp.down.blocks.values())
    for module in own_modules(model):
        if isinstance(module, nn.Linear):
            std = module.in_features**-0.5
            nn.init.normal_(module.weight, std=std * shrink if module in writers else std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Trained numbers: `blocks` (the stack of blocks, norms included), `tables` (embedding, positions,
    output) and `total`. Nothing dead is built, so nothing dead is counted."""
    parts = (model, model.transformer.blocks)
    total, blocks = (sum(parameter.numel() for parameter in part.parameters()) for part in parts)
    return {"total": total, "blocks": blocks, "tables": total - blocks}


def sharing_copy(model: Model) -> Model:
    """A copy of a model that has the same parameters and may follow another rule of evaluation."""
    clone = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    for module in clone.modules():
        if hasattr(module, "pattern_hook"):
            module.pattern_hook = None  # attention that is frozen here is not frozen there for ever
    return clone

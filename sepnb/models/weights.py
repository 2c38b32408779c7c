"""The weights of a model: what they begin with, how many they are, and a copy that shares them.

Language models and image classifiers are the same stack of blocks between an embedding and an output layer.
"""

import copy
from typing import TypeVar

from torch import nn

from .config import TransformerConfig

Model = TypeVar("Model", bound=nn.Module)


def own_modules(model: nn.Module) -> list[nn.Module]:
    """The modules of a model, in the order of `modules()`, without those of a standalone network.

    Such a network, a part of an encoding, says `standalone = True`: it draws its own first weights, and its
    layers are no layers of the model.
    """
    networks = [
        module for module in model.modules() if module is not model and getattr(module, "standalone", False)
    ]
    apart = {part for network in networks for part in network.modules()}
    return [module for module in model.modules() if module not in apart]


def initialise_maps(model: nn.Module, config: TransformerConfig) -> None:
    """N(0, 1/fan-in) for the linear maps of a model with a `transformer`, block by block; biases are 0.

    What writes to the residual state starts smaller by (2 n_layers)^-1/2, so that the state does not
    grow with depth (Radford et al. 2019). A block of a split map is initialised like a map of its own
    width; the same rule gives the dense model its own. A standalone network has drawn itself.
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
    output) and `total`. Nothing dead is built, so nothing dead is counted, but for the biases of keys; see
    `TransformerConfig.bias`."""
    total, blocks = (
        sum(parameter.numel() for parameter in part.parameters())
        for part in (model, model.transformer.blocks)
    )
    return {"total": total, "blocks": blocks, "tables": total - blocks}


def sharing_copy(model: Model) -> Model:
    """A copy of a model that has the same parameters and may follow another rule of evaluation."""
    clone = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    for module in clone.modules():
        if hasattr(module, "pattern_hook"):
            module.pattern_hook = None  # attention that is frozen here is not frozen there for ever
    return clone

"""Networks that stand apart: what looks at the layers of a model, or draws them, passes by."""

from torch import nn


def own_modules(model: nn.Module) -> list[nn.Module]:
    """The modules of a model, in the order of `modules()`, without those of a network that stands apart.

    Such a network, a part of an encoding, says `stands_apart = True`: it draws its own first weights, and its
    layers are no layers of the model.
    """
    networks = [
        module for module in model.modules() if module is not model and getattr(module, "stands_apart", False)
    ]
    apart = {part for network in networks for part in network.modules()}
    return [module for module in model.modules() if module not in apart]

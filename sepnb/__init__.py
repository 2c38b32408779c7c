"""sepnb: what happens when position gets its own dimensions?

The main names are available here, such as `sepnb.LanguageModel`. Each is imported on first access:
`import sepnb` alone does not import torch.
"""

from importlib import import_module

_HOMES = {
    "ImageClassifier": "sepnb.models",
    "LanguageModel": "sepnb.models",
    "Streams": "sepnb.streams",
    "TrainingConfig": "sepnb.training",
    "TransformerConfig": "sepnb.models",
    "adapt": "sepnb.training",
    "load": "sepnb.models",
    "load_adapter": "sepnb.models",
    "save": "sepnb.models",
    "save_adapter": "sepnb.models",
    "train": "sepnb.training",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    if name == "__version__":
        found = import_module("importlib.metadata").version("sepnb")
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # asked for once
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Models: one transformer for dense, separated and strict, a language model and an image classifier on it,
a KV cache and position tables.

`attention` and `transformer` are the model as the equations have it. `config` says what a model is, `layout`
what follows from that, `validation` what a call may be given, `windows` which keys a query sees.
`extension` changes how a trained model is read, `generation` writes with one, `saving` keeps one in a file,
`adapters` a part of one: `parts` says which weights belong to position and which to content.
`attention_core` chooses the kernel, and `pattern` shows and replaces attention weights. `fast` has what is
there for speed, or for one chapter.
"""

from .adapters import load_adapter, save_adapter
from .attention import Attention
from .attention_core import attention_weights
from .cache import KVCache
from .config import TransformerConfig
from .fast.kernels import compile_formulas
from .image import ImageClassifier
from .language import LanguageModel
from .pattern import attention_hook, frozen_attention
from .position_tables import PositionTables
from .saving import load, save
from .transformer import Block, Transformer
from .windows import causal_mask

__all__ = [
    "Attention",
    "Block",
    "ImageClassifier",
    "KVCache",
    "LanguageModel",
    "PositionTables",
    "Transformer",
    "TransformerConfig",
    "attention_hook",
    "attention_weights",
    "causal_mask",
    "compile_formulas",
    "frozen_attention",
    "load",
    "load_adapter",
    "save",
    "save_adapter",
]

"""Models: one transformer for dense, separated and strict, a language model on it, and a KV cache."""

from .attention import Attention
from .cache import KVCache
from .config import TransformerConfig
from .freezing import attention_weights, causal_mask, frozen_attention
from .kernels import compile_formulas
from .language import LanguageModel
from .transformer import Block, Transformer

__all__ = [
    "Attention",
    "Block",
    "KVCache",
    "LanguageModel",
    "Transformer",
    "TransformerConfig",
    "attention_weights",
    "causal_mask",
    "compile_formulas",
    "frozen_attention",
]

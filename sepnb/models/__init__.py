"""Models: one transformer for dense, separated and strict, a language model on it, KV cache and memory."""

from .attention import Attention
from .cache import KVCache
from .config import TransformerConfig
from .freezing import attention_weights, causal_mask, frozen_attention
from .kernels import compile_formulas
from .language import LanguageModel
from .memory import SegmentMemory, in_segments
from .transformer import Block, Transformer

__all__ = [
    "Attention",
    "Block",
    "KVCache",
    "LanguageModel",
    "SegmentMemory",
    "Transformer",
    "TransformerConfig",
    "attention_weights",
    "causal_mask",
    "compile_formulas",
    "frozen_attention",
    "in_segments",
]

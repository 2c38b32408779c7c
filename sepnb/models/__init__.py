"""Models: one transformer for dense, separated and strict, a language model and an image classifier on it,
a KV cache and a segment memory."""

from .attention import Attention
from .block import Block
from .cache import KVCache
from .config import TransformerConfig
from .freezing import attention_weights, causal_mask, frozen_attention
from .image import ImageClassifier
from .kernels import compile_formulas
from .language import LanguageModel
from .memory import SegmentMemory, in_segments
from .transformer import Transformer

__all__ = [
    "Attention",
    "Block",
    "ImageClassifier",
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

"""Small models whose every parameter is drawn anew: no test leans on the ones and zeros of the start."""

from collections.abc import Callable

import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig, attention_core
from sepnb.streams import Streams

from ..encodings.drawn import loud

VOCABULARY = 13


@pytest.fixture
def built() -> Callable[..., LanguageModel]:
    """`built(streams, encoding=..., **fields of the config)`: two layers, heads of width 8, in float64."""

    def build(
        streams: Streams, *, encoding="sinusoidal", dtype=torch.float64, seed: int = 0, **fields
    ) -> LanguageModel:
        fields = {"n_layers": 2, "n_heads": streams.d_model // 8, "max_length": 64, **fields}
        model = LanguageModel(TransformerConfig(streams, encoding=encoding, **fields), VOCABULARY)
        return loud(model, seed).to(dtype)

    return build


@pytest.fixture
def calls(monkeypatch) -> list[tuple[int, int]]:
    """Queries and keys of every call that computes some rows."""
    found, rows = [], attention_core.AttentionCore.attend

    def watched(self, span, q, k, v, context):
        assert k.shape[-2] == v.shape[-2] == context.n_keys
        found.append((q.shape[-2], k.shape[-2]))
        return rows(self, span, q, k, v, context)

    monkeypatch.setattr(attention_core.AttentionCore, "attend", watched)
    return found


@pytest.fixture
def text() -> Callable[..., torch.Tensor]:
    """`text(batch, length, seed=0)`: random tokens."""

    def tokens(batch: int, length: int, seed: int = 0) -> torch.Tensor:
        return torch.randint(VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))

    return tokens

"""How far predictions move in a long text: against a plain loop, and 0 where nothing moves."""

import numpy as np
import pytest
import torch

from sepnb.evaluation.steadiness import moved
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

L, N = 8, 24


def model_of(encoding: str, layers: int = 1) -> LanguageModel:
    torch.manual_seed(0)
    config = TransformerConfig(Streams(pos=8, sem=24), layers, 4, encoding, max_length=L)
    model = LanguageModel(config)
    for module in model.transformer.input_encodings:
        for table in module.parameters():
            torch.nn.init.normal_(table)
    return model.eval()


TOKENS = np.random.default_rng(0).integers(0, 256, (3, N))


@torch.no_grad()
def test_it_is_the_divergence_of_each_byte_written_out():
    model = model_of("learned", layers=2)
    reader = model.extended("clamp")
    found = moved(model, reader, TOKENS, length=L, batch_size=2)
    assert found.shape == (3, N - L)
    far = reader(torch.from_numpy(TOKENS)).double().softmax(-1)
    for w in range(3):
        for i in range(L, N):
            start = (i // (L // 2) - 1) * (L // 2)  # the fresh window whose last half holds byte i
            window = torch.from_numpy(TOKENS[w : w + 1, start : start + L])
            p, q = model(window).double().softmax(-1)[0, i - start], far[w, i]
            assert found[w, i - L] == pytest.approx(float((p * (p / q).log2()).sum()), abs=1e-5)


@torch.no_grad()
def test_a_model_that_sees_its_own_byte_only_does_not_move_whatever_the_index():
    model = model_of("sinusoidal").extended(window=1)
    model.transformer.input_encodings[0].forward = lambda positions: torch.zeros(len(positions), 8)
    assert np.abs(moved(model, model, TOKENS, length=L)).max() < 1e-6


def test_windows_that_do_not_fit_are_refused():
    model = model_of("sinusoidal")
    for tokens, length in ((TOKENS[:, :L], L), (TOKENS[:, :23], L), (TOKENS, 7), (TOKENS[0], L)):
        with pytest.raises(ValueError, match="N a multiple of length / 2 and above length"):
            moved(model, model, tokens, length=length)

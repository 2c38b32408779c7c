"""The query-gated phase read: its definition, distances and nothing else, and what it leaves as it was."""

import math

import pytest
import torch

from sepnb.analysis.isolation import jacobian, leak
from sepnb.encodings import phase_frequencies, phase_scores
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.streams import Streams

from .drawn import F64, loud, random

DENSE, SEPARATED = Streams.dense(32), Streams(pos=8, sem=24)


def model(streams: Streams, encoding, seed: int = 0, **fields) -> LanguageModel:
    """Two layers in float64, all parameters of a size that shows."""
    fields = {"n_layers": 2, "n_heads": 4, "max_length": 16, **fields}
    torch.manual_seed(seed)
    return loud(LanguageModel(TransformerConfig(streams, encoding=encoding, **fields), 11).to(F64))


def tokens(batch: int = 2, length: int = 9) -> torch.Tensor:
    return torch.randint(11, (batch, length), generator=torch.Generator().manual_seed(1))


# --- the definition


def test_wavelengths_are_geometric_from_four_to_the_longest():
    lengths = 2 * math.pi / phase_frequencies(6, 128.0)
    assert lengths[0].item() == pytest.approx(4.0) and lengths[-1].item() == pytest.approx(128.0)
    torch.testing.assert_close(lengths[1:] / lengths[:-1], torch.full((5,), 32 ** (1 / 5), dtype=F64))


def test_the_term_is_the_printed_sum_over_complex_exponentials():
    frequencies, c = phase_frequencies(3, 20.0), random(1, 2, 2, 3) + 1j * random(1, 2, 2, 3, seed=1)
    scores = phase_scores(c, frequencies, torch.tensor([5, 11]), torch.tensor([0, 4, 11]))
    assert scores.shape == (1, 2, 2, 3) and scores.dtype == F64
    for h in range(2):
        for n, i in enumerate((5, 11)):
            for m, j in enumerate((0, 4, 11)):
                z = [complex(math.cos(w * (i - j)), math.sin(w * (i - j))) for w in frequencies.tolist()]
                expected = sum((complex(c[0, h, n, k]) * z[k]).real for k in range(3))
                assert scores[0, h, n, m].item() == pytest.approx(expected, abs=1e-12)


# --- in a model


@pytest.mark.parametrize(
    ("streams", "encoding", "fields"),
    [
        (DENSE, "phase", {}),
        (DENSE, ("alibi", "phase"), {}),
        (SEPARATED, ("sinusoidal", "phase"), {}),
        (SEPARATED, ("sinusoidal", "phase"), {"mode": "strict"}),
        (SEPARATED, ("sinusoidal", "phase"), {"query_key": "untied"}),
        (SEPARATED, ("sinusoidal", "phase"), {"query_key": "content"}),
        (SEPARATED, ("sinusoidal", "rope", "phase"), {"pos_stream": "constant"}),
        (Streams(pos=16, sem=16), ("sinusoidal", "phase"), {"n_kv_heads": 2}),
    ],
    ids=repr,
)
def test_a_score_is_that_of_the_model_without_it_plus_the_term(streams, encoding, fields):
    """The first layer's weights, against those of a model without the term and the term's own columns."""
    given = model(streams, encoding, **fields)
    without = model(
        streams, tuple(e for e in encoding if e != "phase") if encoding != "phase" else "none", **fields
    )
    without.load_state_dict(given.state_dict(), strict=False)
    first, seen = given.transformer.blocks[0].attention, {}
    first.terms[0].register_forward_hook(lambda module, args, out: seen.update(content=args[0], columns=out))
    with frozen_attention(given) as ours, frozen_attention(without) as plain, torch.no_grad():
        given(tokens()), without(tokens())
    q, k = seen["columns"]
    heads = [n for n, head in enumerate(first.heads) if "sem" in given.config.reads(head)]
    expected = plain[0].weights[:, heads].log() + q @ k.transpose(-1, -2) * given.config.head_width**-0.5
    torch.testing.assert_close(ours[0].weights[:, heads], expected.softmax(-1), rtol=0, atol=1e-10)
    others = [n for n in range(len(first.heads)) if n not in heads]
    assert torch.equal(ours[0].weights[:, others], plain[0].weights[:, others])


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize("query_key", ["joint", "strict", "untied"])
def test_with_frozen_attention_the_pos_stream_does_not_hear_the_content(query_key, dtype):
    transformer = (
        model(SEPARATED, ("sinusoidal", "phase"), query_key=query_key, readout="both").to(dtype).transformer
    )
    state = transformer.input_state(random(1, 5, 24).to(dtype), torch.arange(5))
    frozen, live = (leak(jacobian(transformer, state, frozen=still), SEPARATED) for still in (True, False))
    assert frozen == 0.0 and (live == 0.0) == (query_key != "joint")

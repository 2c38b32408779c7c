"""What an adapter says where the package of a model is missing; the models are in tests/oracles."""

import pytest
from torch import nn

from sepnb.encodings import NTKAware, RaisedBase, YaRN
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.protocol import hf
from sepnb.protocol.adapters import reader
from sepnb.streams import Streams


class Halved:
    """A context extension of somebody's own."""

    def __call__(self, inv_freq, *, dim, base, length):
        return inv_freq / 2, 1.0


def test_without_transformers_its_adapter_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[run,hf\]'"):
        hf(nn.Linear(2, 2))


def test_what_is_no_module_is_no_model():
    with pytest.raises(TypeError, match="AutoModelForCausalLM"):
        hf("gpt2")


@pytest.mark.parametrize(
    ("encoding", "rule", "label"),
    [
        ("rope", {}, "sepnb, rope"),
        ("rope", {"window": 8}, "sepnb, rope, window 8"),
        ("learned", {"extrapolator": "wrap"}, "sepnb, learned, wrap"),
        ("rope", {"extension": YaRN(8.0, 16)}, "sepnb, rope, yarn with factor 8"),
        ("rope", {"extension": RaisedBase(5e5)}, "sepnb, rope, raised-base with base 500000"),
        ("sinusoidal", {"extension": NTKAware(2.5)}, "sepnb, sinusoidal, ntk-aware with factor 2.5"),
        ("rope", {"extension": Halved()}, "sepnb, rope, Halved"),
        ("alibi", {"log_scale": True}, "sepnb, alibi, log scale"),
    ],
)
def test_a_model_of_ours_is_called_by_its_encoding_and_its_rule_of_evaluation(encoding, rule, label):
    config = TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding=encoding, max_length=16)
    assert reader(LanguageModel(config).extended(**rule)).label == label

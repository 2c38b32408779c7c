"""What an adapter says where the package of a model is missing; the models are in tests/oracles."""

import pytest
from torch import nn

from sepnb.protocol import hf


def test_without_transformers_its_adapter_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sepnb\[run,hf\]'"):
        hf(nn.Linear(2, 2))


def test_what_is_no_module_is_no_model():
    with pytest.raises(TypeError, match="AutoModelForCausalLM"):
        hf("gpt2")

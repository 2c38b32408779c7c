"""The package itself: its main names, and that asking for none of them costs nothing."""

import importlib.metadata
import subprocess
import sys

import pytest

import sepnb

MAIN = {
    "models": (
        *("ImageClassifier", "LanguageModel", "TransformerConfig"),
        *("load", "load_adapter", "save", "save_adapter"),
    ),
    "streams": ("Streams",),
    "training": ("TrainingConfig", "adapt", "train"),
}


def asked(code: str) -> str:
    """What a fresh interpreter prints."""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_importing_the_package_imports_nothing_else():
    heavy = (
        "[name for name in ('torch', 'numpy', 'importlib.metadata', 'sepnb.models') if name in sys.modules]"
    )
    assert asked(f"import sys, sepnb; dir(sepnb); print({heavy})") == "[]"


def test_every_main_name_is_that_of_its_home_and_is_listed_and_a_module_is_had_as_ever():
    assert {name for names in MAIN.values() for name in names} | {"__version__"} == set(sepnb.__all__)
    assert set(sepnb.__all__) <= set(dir(sepnb))
    for home, names in MAIN.items():
        module = importlib.import_module(f"sepnb.{home}")
        for name in names:
            assert getattr(sepnb, name) is getattr(module, name)
    assert sepnb.__version__ == importlib.metadata.version("sepnb")
    told = asked(
        "from sepnb import validation; print(validation.__name__); "
        "from sepnb import *; print(LanguageModel.__name__, load.__module__)"
    )
    assert told.splitlines() == ["sepnb.validation", "LanguageModel sepnb.models.saving"]


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'sepnb' has no attribute 'LangaugeModel'"):
        _ = sepnb.LangaugeModel

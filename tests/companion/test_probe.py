"""`sepnb probe` from files: what it prints and writes, and what it refuses before a model is read."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

from sepnb import cli
from sepnb.models import ImageClassifier, LanguageModel, TransformerConfig, save
from sepnb.streams import Streams

WORDS = b"the quick brown fox jumps over the lazy dog and sleeps. " * 40


def sepnb(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["probe", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.fixture
def files(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """A model that was saved, and a text."""
    monkeypatch.setattr(cli, "console", Console(width=200, highlight=False))
    torch.manual_seed(0)
    config = TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding="alibi")
    model, text = tmp_path / "mine.safetensors", tmp_path / "text.txt"
    save(LanguageModel(config), model)
    text.write_bytes(WORDS)
    return model, text


def test_the_card_is_printed_and_written_as_a_page_and_as_json(files, tmp_path) -> None:
    model, text = files
    out = tmp_path / "cards"
    status, output = sepnb(model, "--text", text, "--length", 16, "--times", "1,2,4", "--out", out)
    assert status == 0
    assert sorted(file.name for file in out.iterdir()) == ["mine.safetensors.html", "mine.safetensors.json"]
    told = json.loads((out / "mine.safetensors.json").read_text(encoding="utf-8"))
    assert told["meta"]["times"] == [1, 2, 4] and told["meta"]["windows"] == (len(WORDS) - 1) // 64
    for name in ("survives", "uses", "quality", "price"):
        assert name in output and told[name]["verdict"] in output
    assert "This is one checkpoint" in output and "mine.safetensors.html" in output


def test_tokens_of_a_file_are_read_as_they_are_and_a_reference_decides_the_price(files, tmp_path) -> None:
    model, _ = files
    tokens = tmp_path / "tokens.npy"
    np.save(tokens, np.frombuffer(WORDS, np.uint8).astype(np.int64))
    asked = ("--text", tokens, "--length", 16, "--times", "2", "--out", tmp_path / "cards")
    status, _ = sepnb(model, *asked, "--reference", model)
    told = json.loads((tmp_path / "cards" / "mine.safetensors.json").read_text(encoding="utf-8"))
    assert status == 0 and told["price"]["numbers"]["difference"]["mean"] == 0.0


@pytest.mark.attack("models, texts and options that cannot be probed")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"--text": "nowhere.txt"}, "does not exist"),
        ({"--times": "1,x"}, "give whole numbers separated by commas"),
        ({"--times": "4,2"}, "give rising ints"),
        ({"--length": 4000}, "30 windows need"),
        ({"--out": __file__}, ""),
        ({"--device": "cuda"}, "needs a GPU"),
        ({"--text": "floats.npy"}, "holds float64; tokens are integers"),
        ({"--text": "empty.npy"}, "no array that numpy saved"),
        ({"model": "picture.safetensors"}, "holds ImageClassifier"),
        ({"model": "no/such-model"}, "pip install 'sepnb[run,hf]'"),
    ],
)
def test_what_cannot_be_probed_is_refused_with_a_remedy_and_nothing_is_written(
    files, tmp_path, monkeypatch, changes, told
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("floats.npy", np.zeros(2000))
    Path("empty.npy").touch()
    picture = TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding="none", causal=False)
    save(ImageClassifier(picture, n_classes=2, patch=2), "picture.safetensors")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    model, text = files
    asked = {"model": model, "--text": text, "--length": 16, "--times": "1,2", "--out": tmp_path / "cards"}
    asked |= changes
    status, output = sepnb(asked.pop("model"), *(part for pair in asked.items() for part in pair))
    assert status == 2 and told in output and "Traceback" not in output
    assert not list(tmp_path.rglob("*.html")) and not list(tmp_path.rglob("*.json"))

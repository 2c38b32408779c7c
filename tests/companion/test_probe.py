"""`sepnb probe` from files: what it prints and writes, and what it refuses before a model is read."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from sepnb.companion.run.probe import BY_FACTOR, loaded
from sepnb.encodings import NTKByParts, YaRN
from sepnb.models import ImageClassifier, LanguageModel, TransformerConfig, save, save_adapter
from sepnb.streams import Streams

WORDS = b"the quick brown fox jumps over the lazy dog and sleeps. " * 40


@pytest.fixture
def probe(sepnb):
    """`probe(*arguments)`: what `sepnb probe` says of them."""
    return lambda *arguments: sepnb("probe", *arguments)


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path]:
    """A model that was saved, and a text."""
    torch.manual_seed(0)
    config = TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding="alibi")
    model, text = tmp_path / "mine.safetensors", tmp_path / "text.txt"
    save(LanguageModel(config), model)
    text.write_bytes(WORDS)
    return model, text


def test_the_card_is_printed_and_written_as_a_page_and_as_json(probe, files, tmp_path) -> None:
    model, text = files
    out = tmp_path / "cards"
    status, output = probe(model, "--text", text, "--length", 16, "--times", "1,2,4", "--out", out)
    assert status == 0
    assert sorted(file.name for file in out.iterdir()) == ["mine.safetensors.html", "mine.safetensors.json"]
    told = json.loads((out / "mine.safetensors.json").read_text(encoding="utf-8"))
    assert told["meta"]["times"] == [1, 2, 4] and told["meta"]["windows"] == (len(WORDS) - 1) // 64
    for name in ("survives", "uses", "quality", "price"):
        assert name in output and told[name]["verdict"] in output
    assert "This is one checkpoint" in output and "mine.safetensors.html" in output


def test_tokens_of_a_file_are_read_as_they_are_and_a_reference_decides_the_price(
    probe, files, tmp_path
) -> None:
    model, _ = files
    tokens = tmp_path / "tokens.npy"
    np.save(tokens, np.frombuffer(WORDS, np.uint8).astype(np.int64))
    asked = ("--text", tokens, "--length", 16, "--times", "2", "--out", tmp_path / "cards")
    status, _ = probe(model, *asked, "--reference", model)
    told = json.loads((tmp_path / "cards" / "mine.safetensors.json").read_text(encoding="utf-8"))
    assert status == 0 and told["price"]["numbers"]["difference"]["mean"] == 0.0


@pytest.fixture
def base(tmp_path) -> Path:
    """A separated model with a sinusoid, and beside it `long.safetensors`, an adapter tuned under an
    extension."""
    torch.manual_seed(1)
    streams = Streams(pos=4, sem=8)
    config = TransformerConfig(streams, n_layers=1, n_heads=2, encoding="sinusoidal", max_length=16)
    trained = LanguageModel(config)
    tuned = copy.deepcopy(trained)
    with torch.no_grad():
        for name, mask in tuned.parts()["position"].items():
            tuned.get_parameter(name)[mask] += 0.1
    tuned = tuned.extended(extension=NTKByParts(2.0, 16), log_scale=True)
    save(trained, tmp_path / "base.safetensors")
    save_adapter(tuned, trained, tmp_path / "long.safetensors")
    return tmp_path / "base.safetensors"


def test_a_model_is_read_under_an_adapter_and_an_extension_and_its_card_says_both(
    probe, base, tmp_path
) -> None:
    """One that is given stands in place of the one that the adapter was tuned under; the rest of that rule
    stays. Cards of one model under several rules lie beside each other."""
    text, out = tmp_path / "text.txt", tmp_path / "cards"
    text.write_bytes(WORDS)
    asked = (base, "--text", text, "--length", 16, "--times", "2", "--out", out)
    adapter, yarn = ("--adapter", tmp_path / "long.safetensors"), ("--extension", "yarn", "--factor", 4)
    for options in ((), adapter, (*adapter, *yarn), ("--log-scale",)):
        status, output = probe(*asked, *options)
        assert status == 0, output
    assert "adapter long.safetensors" not in output and "sepnb, sinusoidal, log scale" in output
    cards = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in out.glob("*.json")}
    tuned = "base.safetensors-ntk-by-parts-with-factor-2-log-scale-adapter-long.safetensors"
    both = tuned.replace("ntk-by-parts-with-factor-2", "yarn-with-factor-4")
    assert cards.keys() == {"base.safetensors", tuned, both, "base.safetensors-log-scale"}
    assert cards["base.safetensors"]["meta"]["under"] == {}
    told = cards[both]["meta"]
    assert told["model"] == "sepnb, sinusoidal, yarn with factor 4, log scale, adapter long.safetensors"
    assert told["under"] == {
        "extension": YaRN(4.0, 16).resolved(),
        "log_scale": True,
        "adapter": "long.safetensors",
    }
    last = {card["curve"][-1]["model"] for card in cards.values()}
    assert len(last) == len(cards), "each was read as it is named"


@pytest.mark.parametrize("name", BY_FACTOR)
def test_every_extension_that_the_help_names_reaches_the_model_with_the_length_as_trained(
    probe, files, tmp_path, name
) -> None:
    _, text = files
    model = tmp_path / "rope.safetensors"
    save(LanguageModel(TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding="rope")), model)
    asked = ("--text", text, "--length", 16, "--times", "2", "--extension", name, "--factor", 2)
    status, output = probe(model, *asked, "--out", tmp_path / "cards")
    assert status == 0, output
    (card,) = (tmp_path / "cards").glob(f"rope.safetensors-{name}-with-factor-2.json")
    told = json.loads(card.read_text(encoding="utf-8"))["meta"]["under"]["extension"]
    assert (told["name"], told["factor"], told.get("original_length", 16)) == (name, 2.0, 16)
    assert name in " ".join(probe("--help")[1].split())


def test_a_text_and_a_model_of_transformers_that_cannot_be_read_are_named(tmp_path, monkeypatch) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise SafetensorError("header too small")

    kinds = {"AutoTokenizer": lambda *_, **__: None, "AutoModelForCausalLM": damaged}
    package = SimpleNamespace(**{kind: SimpleNamespace(from_pretrained=how) for kind, how in kinds.items()})
    monkeypatch.setattr("sepnb.companion.run.probe.transformers", lambda: package)
    latin, tokens = tmp_path / "latin.txt", tmp_path / "tokens.npy"
    latin.write_bytes(b"\xe9t\xe9")
    np.save(tokens, np.arange(9))
    with pytest.raises(ValueError, match=r"latin\.txt is no text in UTF-8"):
        loaded("some/model", latin)
    with pytest.raises(ValueError, match=r"some/model holds no model that can be loaded \(header too"):
        loaded("some/model", tokens)


@pytest.mark.attack("models, texts and options that cannot be probed")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--text": "nowhere.txt"}, "does not exist"),
        ({"--times": "4,2", "model": "no/such-model"}, "give rising ints"),  # before a model is loaded
        ({"--length": 4000}, "30 windows need"),
        ({"--device": "cuda"}, "needs a GPU"),
        ({"--text": "empty.npy"}, "no array that numpy saved"),
        ({"model": "picture.safetensors"}, "holds ImageClassifier"),
        ({"model": "no/such-model"}, "pip install '.[run,hf]'"),
        ({"--extension": "longrope", "--factor": 8}, "longrope needs more than a factor; use one of posi"),
        ({"--extension": "yarn"}, "yarn has no factor; add one of at least 1, such as --factor 8"),
        ({"--extension": "yarn", "--factor": "nan"}, "factor is nan; it must be finite and at least 1"),
        ({"--factor": 8}, "--factor 8 is that of a context extension; add one: --extension yarn"),
        ({"--adapter": "picture.safetensors"}, "holds no adapter"),
        ({"--adapter": "picture.safetensors", "model": "no/such-model"}, "is for models of sepnb, and"),
    ],
)
def test_what_cannot_be_probed_is_refused_with_a_remedy_and_nothing_is_written(
    probe, files, tmp_path, monkeypatch, changes, message
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.npy").touch()
    picture = TransformerConfig(Streams.dense(8), n_layers=1, n_heads=2, encoding="none", causal=False)
    save(ImageClassifier(picture, n_classes=2, patch=2), "picture.safetensors")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    model, text = files
    asked = {"model": model, "--text": text, "--length": 16, "--times": "1,2", "--out": tmp_path / "cards"}
    asked |= changes
    status, output = probe(asked.pop("model"), *(part for pair in asked.items() for part in pair))
    assert status == 2 and message in output and "Traceback" not in output
    assert not list(tmp_path.rglob("*.html")) and not list(tmp_path.rglob("*.json"))

"""A tuned part in a file of its own: put on its base it is the tuned model, and it is put on no other."""

import copy
import json
from pathlib import Path

import pytest
import safetensors
import torch

from sepnb.encodings import NTKByParts, YaRN
from sepnb.models import LanguageModel, load_adapter, save, save_adapter
from sepnb.models.parts import PARTS, counted
from sepnb.records import sealed
from sepnb.streams import Streams

from ..shared import refused
from .test_extended import Interpolation
from .trained import weights

SEPARATED = Streams(pos=8, sem=24)
RULE = {"extension": NTKByParts(8.0, 64, 0.5, 4), "log_scale": True}
MODELS = {
    "sinusoid": {},
    "strict": {"mode": "strict", "readout": "both", "encoding": ("sinusoidal", "rope")},
    "constant": {"pos_stream": "constant", "tie_embeddings": True},
    "three": {"streams": Streams(row=8, col=8, sem=16), "split": ()},
}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "deep" / "long.safetensors"


def tuned(base: LanguageModel, *parts: str, rule=RULE) -> LanguageModel:
    """A copy in which every number of these parts is another, under a rule."""
    masks = [base.parts()[part] for part in parts]
    model = copy.deepcopy(base.extended(**rule) if rule else base)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            for mask in masks:
                noise = 1 + torch.rand(weight.shape, generator=generator).to(weight.dtype)
                weight.add_(noise * mask[name])
    return model


def same(one: LanguageModel, other: LanguageModel, tokens: torch.Tensor) -> None:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys() and one.config == other.config
    assert all(weight.dtype == theirs[name].dtype for name, weight in ours.items())
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
    assert one.transformer.rules == other.transformer.rules
    with torch.no_grad():
        assert torch.equal(one(tokens), other(tokens))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [*((kind, torch.float32) for kind in MODELS), ("constant", torch.bfloat16)],
)
def test_an_adapter_comes_back_bit_for_bit_with_its_rule_and_the_base_is_what_it_was(
    built, text, path, kind, dtype, part
):
    base = built(**{"streams": SEPARATED, "dtype": dtype} | MODELS[kind]).train()
    before, rules = weights(base), base.transformer.rules
    model = tuned(base, part).eval()
    save_adapter(model, base, path)
    again = load_adapter(base, str(path))
    same(again, model, text(2, 20))
    assert base.training and not any(module.training for module in again.modules())
    assert all(torch.equal(weight, before[name]) for name, weight in base.named_parameters())
    assert base.transformer.rules == rules
    assert not {p.data_ptr() for p in base.parameters()} & {p.data_ptr() for p in again.parameters()}
    kept, told = sealed.read(path)
    assert told["part"] == part
    assert sum(one.numel() for one in kept.values()) == counted(base.parts()[part])


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"window": 5, "sinks": 2},
        {"extension": YaRN(4.0, 64)},
        {"extrapolator": "clamp", "log_scale": True},
    ],
    ids=lambda rule: "-".join(rule) or "none",
)
def test_so_it_does_under_any_rule_and_can_be_given_another(built, text, path, rule):
    base = built(SEPARATED, encoding=("learned", "rope"), max_length=64)
    model = tuned(base, "position", rule={})
    model = model.extended(**rule) if rule else model.eval()
    save_adapter(model, base, path)
    again, tokens = load_adapter(base, path), text(2, 20)
    same(again, model, tokens)
    same(again.extended(window=3), model.extended(window=3), tokens)


def test_a_dense_model_is_content_and_any_program_reads_the_file(built, text, path):
    base = built(Streams.dense(32))
    model = tuned(base, "content")
    save_adapter(model, base, path)
    same(load_adapter(base, path), model, text(2, 9))
    with safetensors.safe_open(path, "pt") as opened:
        told = json.loads(opened.metadata()["told"])
    assert told["part"] == "content" and told["rule"]["extension"] == RULE["extension"].resolved()


# --- what is not kept


class Larger(LanguageModel):
    """More than its config says."""


def test_what_is_no_adapter_is_refused_with_a_remedy_and_nothing_is_written(built, path):
    base = built(SEPARATED)
    model = tuned(base, "position")
    save_adapter(model, base, path)
    before = path.read_bytes()
    lost = tuned(base, "position")
    torch.nn.init.constant_(lost.norm.gain["sem"], 0)
    larger = Larger(base.config, base.vocab_size).double()
    infinite = tuned(base, "position")
    name = next(name for name, mask in base.parts()["position"].items() if mask.all())
    torch.nn.init.constant_(dict(infinite.named_parameters())[name], torch.inf)
    for one, other, message in (
        (tuned(base, *PARTS), base, r"both parts were tuned \(.*, .*\).*keep the model by save\(\)"),
        (lost, base, "both parts were tuned"),
        (base.extended(**RULE), base, r"the same weights; tune a part of the model first, by adapt\(\)"),
        (model, base.extended(**RULE), r"extended\(\) \(log_scale, extension\); give it as it was trained"),
        (tuned(built(SEPARATED, max_length=32), "position"), base, "have other configs; give the base that"),
        (
            tuned(base, "position", rule={"extension": Interpolation()}),
            base,
            "which is no extension of this package",
        ),
        (infinite, base, "numbers that are not finite: the tuning diverged"),
        (larger, base, "model must be a LanguageModel, no subclass, got Larger"),
        (copy.deepcopy(model).to("meta"), base, "of model is on the device meta and has no values"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            save_adapter(one, other, path)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


# --- what is not put on


@pytest.fixture
def base(built, path) -> LanguageModel:
    """A base whose adapter is kept at `path`."""
    base = built(SEPARATED)
    save_adapter(tuned(base, "position"), base, path)
    return base


def moved(base: LanguageModel, part: str) -> LanguageModel:
    """A copy with one number of a part one step of its dtype away."""
    model = tuned(base, rule={})
    name = next(name for name, mask in base.parts()[part].items() if mask.all())
    with torch.no_grad():
        row = dict(model.named_parameters())[name].view(-1)
        row[-1] = torch.nextafter(row[-1], row.new_tensor(torch.inf))
    return model


def test_it_is_put_on_no_other_base(base, built, path):
    weights, settings = ("with other weights; give the model that it was", "with other settings; give the")
    refused(weights, load_adapter, moved(base, "content"), path)
    refused("other weights", load_adapter, built(SEPARATED, dtype=torch.float32), path)
    refused(settings, load_adapter, built(SEPARATED, max_length=32), path)
    refused(r"by a rule of extended\(\) \(window, sinks\)", load_adapter, base.extended(window=3), path)
    refused("is on the device meta and has no values", load_adapter, copy.deepcopy(base).to("meta"), path)
    for other in (torch.nn.Linear(2, 2), Larger(base.config, base.vocab_size)):
        refused("base must be a LanguageModel, no subclass", load_adapter, other, path, error=TypeError)


def test_what_the_part_was_before_does_not_matter(base, text, path):
    other = moved(base, "position")
    same(load_adapter(other, path), load_adapter(base, path), text(2, 9))


def test_a_damaged_adapter_is_refused(base, path):
    """Wherever it is damaged, as the tests of the seal say."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    for damaged in (content, content[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"long\.safetensors .*; save the adapter again"):
            load_adapter(base, path)


NAME = "transformer.blocks.0.attention.query_key.0.weight"
FILES = {
    "another format": ({"format": "sepnb model"}, "holds no adapter; give the path of a file that"),
    "no part": ({"part": "all"}, "holds no adapter"),
    "another version": ({"version": 2, "sepnb": "9.9"}, "version 2 .* use the sepnb that wrote it, '9.9'"),
    "a weight is missing": (lambda w: {k: v for k, v in w.items() if k != NAME}, "holds other weights"),
    "a shorter weight": (lambda w: w | {NAME: w[NAME][1:]}, "holds other weights"),
    "not finite": (lambda w: w | {NAME: w[NAME] / 0}, "holds other weights"),
    "the other part": ({"part": "content"}, "on a base with other weights"),
    "an unknown rule": ({"rule": {"temperature": 2}}, "cannot follow: 'temperature' is an option of"),
    "another extension": ({"rule": {"extension": {"name": "yam"}}}, "cannot follow: unknown context ext"),
}


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_tells_what_is_not_so_is_refused_with_path_and_remedy(base, path, what):
    change, message = FILES[what]
    kept, told = sealed.read(path)
    sealed.write(path, *((change(kept), told) if callable(change) else (kept, told | change)))
    refused(rf"long\.safetensors .*{message}", load_adapter, base, path)


def test_a_kept_model_is_no_adapter_and_neither_is_a_folder_or_nothing(base, path):
    save(base, path)
    refused("holds no adapter; give the path of a file that save_adapter", load_adapter, base, path)
    refused("deep is a folder", load_adapter, base, path.parent)
    nowhere, none = path.with_name("nowhere"), "there is no file .*nowhere; give one that save_adapter"
    refused(none, load_adapter, base, nowhere, error=FileNotFoundError)

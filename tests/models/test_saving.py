"""A model that was kept comes back as it was, or not at all."""

import dataclasses
import hashlib
import io
import json
import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch

from sepnb import encodings
from sepnb.analysis.directions import kept_within
from sepnb.encodings import RoPE, sandwich
from sepnb.models import ImageClassifier, LanguageModel, TransformerConfig, load, save, saving
from sepnb.records import sealed
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, checkpoints, optimiser

from ..encodings.cases import CASES, heard, model, tokens
from ..shared import refused
from . import test_image as pictures
from .test_extended import Interpolation

SEPARATED = Streams(pos=8, sem=24)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "deep" / "model.safetensors"


def kept(made: torch.nn.Module, path: Path) -> torch.nn.Module:
    save(made, path)
    return load(path)


def same(one: torch.nn.Module, other: torch.nn.Module, *given: torch.Tensor) -> None:
    """Bit for bit in everything: config, weights by name, and what they give."""
    assert type(one) is type(other) and one.config == other.config
    ours, theirs = one.state_dict(), other.state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in ours.items():
        assert weight.dtype == theirs[name].dtype and torch.equal(weight, theirs[name]), name
    with torch.no_grad():
        assert torch.equal(one.eval()(*given), other(*given))


@pytest.mark.parametrize("case", CASES)
def test_every_encoding_comes_back_bit_for_bit(path, case):
    made, at = model(CASES[case]), torch.tensor([0, 2, 3, 9, 10, 11, 30, 31, 40])
    same(made, kept(made, path), tokens(), heard(CASES[case], at))


@pytest.mark.parametrize(
    "fields",
    [
        *({"norm": norm, "norm_kind": "rms"} for norm in ("split", "joint", "content")),
        {"dtype": torch.float64, "norm": "joint"},
        {"dtype": torch.bfloat16, "mode": "strict", "norm": "content", "readout": "both"},
        {"query_key": "content", "pos_stream": "constant"},
        {"pos_stream": "reinjected", "split": {"mlp"}},
        {"streams": Streams(pos=16, sem=16), "n_kv_heads": 2, "bias": True, "activation": "swiglu"},
        {"tie_embeddings": True, "dropout": 0.3, "window": 4},
        {"causal": False},
        {"streams": Streams(sem=24, pos=8)},
    ],
    ids=str,
)
def test_so_do_norms_modes_and_the_other_fields_in_every_dtype(built, text, path, fields):
    made = built(**{"streams": SEPARATED, "encoding": "learned", "dtype": torch.float32} | fields)
    same(made, kept(made, path), text(2, 9))


def test_a_model_comes_back_ready_to_read_and_to_train_tied_where_it_was_and_torch_draws_on(
    built, text, path
):
    made = built(SEPARATED, tie_embeddings=True, dropout=0.5).train()
    state = torch.get_rng_state()
    again = kept(made, path)
    assert torch.equal(torch.get_rng_state(), state)
    assert made.training and not any(module.training for module in again.modules())
    assert again.head.weight is again.embedding.weight
    assert all(parameter.requires_grad for parameter in again.parameters())
    before = made.embedding.weight.clone()
    adamw = optimiser(again, TrainingConfig(1, 2, 4, 0.1))
    again(text(2, 4)).sum().backward()
    adamw.step()
    assert torch.equal(made.embedding.weight, before) and not torch.equal(again.embedding.weight, before)


# --- the rule by which it is read

RULES = [
    {"window": 3},
    {"window": 3, "sinks": 2},
    {"log_scale": True},
    {"extension": encodings.YaRN(4.0, 8)},
    {"extension": encodings.DynamicNTK(2.0, 8)},
    {"extension": encodings.LongRoPE((1.0,) * 4, (1.0, 2, 3, 4), 2.0, 8)},
    {"extrapolator": "learned", "steps": 3, "seed": 5},
    {"extrapolator": "sinusoidal", "form": "literal"},
    {"extrapolator": "interpolate", "length": 20, "window": 9, "extension": encodings.NTKAware(2.0)},
]


OTHER_WAVES = ("sinusoidal", ("learned", "phase"), ("sinusoidal", "rope"))
SLOWED = [
    {"extension": encodings.YaRN(4.0, 8), "log_scale": True},
    {"extension": encodings.NTKAware(2)},
    {"extrapolator": "clamp", "extension": encodings.YaRN(4.0, 8)},
]


@pytest.mark.parametrize(
    ("mode", "encoding", "rule"),
    [
        *(("separated", ("learned", "rope"), rule) for rule in RULES),
        *(("strict", encoding, rule) for encoding in OTHER_WAVES for rule in SLOWED),
    ],
    ids=lambda given: "-".join([given] if isinstance(given, str) else given),
)
def test_a_model_is_kept_with_the_rule_by_which_it_is_read(built, text, path, mode, encoding, rule):
    made = built(SEPARATED, encoding=encoding, mode=mode, max_length=8)
    read = made.extended(**rule)
    again = kept(read, path)
    same(read, again, text(2, 20 if "extrapolator" in rule else 8))
    assert again.transformer.rules == read.transformer.rules
    same(made, kept(made, path), text(2, 8))


def test_rules_that_were_added_one_by_one_are_kept_together_and_can_be_added_to(built, text, path):
    made = built(SEPARATED, encoding=("learned", RoPE(extension=encodings.NTKAware(2.0))), max_length=8)
    read = (
        made.extended(window=7)
        .extended("cyclic")
        .extended("fourier", n_components=2)
        .extended(log_scale=True)
    )
    again = kept(read, path)
    same(read, again, text(2, 20))
    same(read.extended("clamp", window=3), again.extended("clamp", window=3), text(2, 20))


def test_a_rule_that_no_file_can_tell_is_refused(built, text, path):
    made = built(SEPARATED, encoding=("learned", "rope"), max_length=8)
    with pytest.raises(ValueError, match=r"Interpolation.*keep the model as it was before extended\(\)"):
        save(made.extended(extension=Interpolation()), path)
    read = made.extended("clamp")
    made(text(2, 8)).sum().backward()
    optimiser(made, TrainingConfig(1, 2, 4, 0.1)).step()
    refused(r"trained on since a table of them was continued; call extended\(\) anew", save, read, path)
    save(made.extended("clamp"), path)
    by_hand = made.extended(window=4)
    by_hand.transformer.window, by_hand.transformer.sinks = None, 2
    refused("without a window", save, by_hand, path.with_name("other"))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_module_that_no_config_builds_is_refused(path):
    """Without weights of its own it would be gone after loading, and nothing would say so."""
    made = LanguageModel(TransformerConfig(Streams.dense(32), 1, 4, "sinusoidal", max_length=8))
    refused(r"a _Within, which its config does not build", save, kept_within(made, made), path)


# --- images


@pytest.mark.parametrize(("shape", "name"), pictures.CASES)
def test_an_image_classifier_comes_back_too_with_its_fit(path, shape, name):
    made = pictures.classifier(shape, name)
    same(made, kept(made, path), pictures.images())
    if made.config.real_positions:
        fitted = made.extended(fit=pictures.GRID)
        again = kept(fitted, path)
        assert again.fit == pictures.GRID
        same(fitted, again, pictures.images(5, 2))


# --- what is refused


@pytest.fixture
def one(built, path) -> LanguageModel:
    """A model, kept at `path`."""
    made = built(SEPARATED, encoding=("learned", "rope"))
    save(made, path)
    return made


def test_any_program_reads_the_weights_and_the_file_says_what_they_are_of(one, path):
    tensors = safetensors.torch.load_file(path)
    assert all(torch.equal(tensors[name], weight) for name, weight in one.state_dict().items())
    with safetensors.safe_open(path, "pt") as opened:
        told = json.loads(opened.metadata()["told"])
    assert (told["format"], told["version"], told["model"]) == ("sepnb model", 1, "LanguageModel")
    assert TransformerConfig.from_resolved(told["config"]) == one.config and told["sizes"] == {
        "vocab_size": 13
    }


def changed(path: Path, weights=None, **told) -> None:
    """Written anew, under a good seal, with other weights or another thing told."""
    tensors, old = sealed.read(path)
    sealed.write(path, tensors if weights is None else weights(tensors), old | told)


HEAD = "head.weight"
NESTED: list = []
for _ in range(800):
    NESTED = [NESTED]
SPOILT = {
    "missing": (lambda w: {k: v for k, v in w.items() if k != HEAD}, "the weight head.weight is missing"),
    "more": (lambda w: w | {"more": torch.zeros(1)}, "the weight more has no place in a model of this"),
    "another shape": (lambda w: w | {HEAD: w[HEAD][:-1]}, r"shape \[12, 24\], and its config says \[13"),
    "nan": (lambda w: w | {HEAD: w[HEAD] * torch.nan}, "the weight head.weight holds numbers that are not"),
    "two dtypes": (lambda w: w | {HEAD: w[HEAD].half()}, "torch.float16 and torch.float64; give them one"),
    "integers": (lambda w: w | {HEAD: w[HEAD].long()}, "head.weight must be floating, got torch.int64"),
    "another class": ({"model": "Module"}, "unknown model 'Module'; did you mean LanguageModel"),
    "other sizes": (
        {"sizes": {"patch": 3}},
        "a LanguageModel is built from vocab_size, and got {'patch': 3}",
    ),
    "no config": ({"config": None}, "resolved must be a Mapping"),
    "an unknown rule": ({"rule": {"temperature": 2}}, "'temperature' is an option of an extrapolator"),
    "no rule": ({"rule": [1]}, r"rule must be a dict, got \[1\]"),
    "odd options": ({"rule": {"extrapolator": "clamp", "options": [1]}}, "options must be a dict"),
    "a field": ({"depth": 2}, "a config has no option 'depth'"),
    "an encoding": ({"encoding": [{"name": "mine"}]}, "unknown encoding 'mine'.*import its module first"),
    "other widths": ({"streams": {"pos": 16, "sem": 16}}, "has shape .*, and its config says"),
    "a stream that no module can have": ({"streams": {"__class__": 8, "sem": 24}}, "no stream can be called"),
    "deep options": ({"encoding": [{"name": "rope", "base": NESTED}]}, "recursion|base"),
}
"""Other weights, other things told, or other fields of the config."""


@pytest.mark.attack("models that cannot be, under a good seal")
@pytest.mark.parametrize("what", SPOILT)
def test_what_is_no_model_under_a_good_seal_is_refused_with_path_and_remedy(one, path, what):
    change, message = SPOILT[what]
    if callable(change):
        changed(path, change)
    else:
        told = change.keys() <= {"model", "sizes", "config", "rule"}
        changed(path, **(change if told else {"config": one.config.resolved() | change}))
    refused(rf"(?s)model\.safetensors holds a model .*{message}.*save the model again", load, path)


def test_shapes_are_compared_before_room_is_made_for_any_weight(path, monkeypatch):
    made = LanguageModel(TransformerConfig(SEPARATED, 1, 2, "learned", max_length=8), 13)
    save(made, path)
    changed(path, config=made.config.resolved() | {"max_length": 10**9})
    built, on = saving._built, []

    def noted(told, device="cpu"):
        on.append(device)
        assert device == "meta", "this would take 32 GB"
        return built(told, device)

    monkeypatch.setattr(saving, "_built", noted)
    refused(r"has shape \[8, 8\], and its config says \[1000000000, 8\]", load, path)
    assert on == ["meta"]


def test_a_model_whose_encoding_reads_a_value_while_it_is_built_comes_back(built, text, path, monkeypatch):
    """On the device meta, where shapes are compared, there is none to read."""

    def read(width: int, base: float) -> torch.Tensor:
        return torch.tensor([torch.tensor(base).item() ** -1.0] * (width // 2), dtype=torch.float64)

    monkeypatch.setattr(sandwich, "_frequencies", read)
    made = built(SEPARATED, encoding=("learned", "sandwich"), max_length=8)
    same(made, kept(made, path), text(2, 8))


@pytest.mark.parametrize("depth", [500, 5000])
def test_what_nests_too_deep_is_refused_with_path_and_remedy(one, path, depth):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header["__metadata__"] |= {"told": "[" * depth + "]" * depth, "sha256": "0" * 64}
    text = json.dumps(header, separators=(",", ":")).encode()
    opened = len(text).to_bytes(8, "little") + text + content[8 + size :]
    seal = hashlib.sha256(opened).hexdigest().encode()
    path.write_bytes(opened.replace(b"0" * 64, seal, 1))
    refused("has a seal, and was not written|holds tensors, and no model", load, path)


@pytest.mark.parametrize("version", [2, None])
def test_a_version_that_is_not_known_is_refused(one, path, version):
    changed(path, version=version, sepnb="9.9")
    refused(r"model\.safetensors has version .* by sepnb '9\.9'.*use the sepnb that", load, path)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.attack("files of models with a flipped bit, cut short, or of another program")
def test_a_damaged_file_and_one_that_another_program_wrote_are_refused_and_nothing_is_run(one, path):
    content, stream = path.read_bytes(), io.BytesIO()
    torch.save(one.state_dict(), stream)
    others = [content[:-9], b"", pickle.dumps(Harmful()), stream.getvalue()]
    others.append(safetensors.torch.save(one.state_dict()))
    for place in range(0, len(content), 997):
        others.append(bytearray(content))
        others[-1][place] ^= 1 << place % 8
    for foreign in others:
        path.write_bytes(foreign)
        refused(r"model\.safetensors .*; save the model again", load, path)


def test_a_checkpoint_is_no_model_and_no_file_is_said_to_be_none(one, path):
    adamw = optimiser(one, TrainingConfig(1, 2, 4, 0.1))
    checkpoints.save(path, checkpoints.take(one, adamw, [], {}))
    refused(r"model\.safetensors holds tensors, and no model; give the path", load, path)
    nowhere = path.with_name("nowhere")
    refused("there is no file .*nowhere; give the path of one", load, nowhere, error=FileNotFoundError)


def test_what_could_not_be_loaded_is_not_written_and_what_was_there_stays(one, path, unhooked):
    class Larger(LanguageModel):
        """More than its config says."""

    @dataclasses.dataclass(frozen=True)
    class Faster(RoPE):
        """A variant: it keeps the name."""

    config, before = one.config, path.read_bytes()
    variant = LanguageModel(dataclasses.replace(config, encoding=("learned", Faster())), 13)
    lost, mixed, shorter = (LanguageModel(config, 13) for _ in range(3))
    torch.nn.init.constant_(lost.norm.gain["sem"], torch.inf)
    mixed.head.double()
    del shorter.transformer.blocks[1]
    for never, message in (
        (Larger(config, 13), "model must be a LanguageModel or an ImageClassifier, no subclass, got"),
        (variant, r"an encoding of .*Faster.* inherits its name"),
        (lost, r"the weight norm\.gain\.sem holds numbers that are not finite: the training diverged"),
        (mixed, "the weights are of torch.float32 and torch.float64; give them one dtype"),
        (shorter, r"the weight transformer\.blocks\.1.* is missing"),
        (LanguageModel(config, 13).to("meta"), "is on the device meta and has no values"),
    ):
        refused(message, save, never, path, error=(ValueError, TypeError))
    refused(r"deep is a folder; name a file in it, such as .*model\.safetensors", save, one, path.parent)
    assert path.read_bytes() == before and len(list(path.parent.iterdir())) == 1


def test_a_path_may_be_text_and_a_file_that_is_there_is_replaced(one, built, path, text):
    other = built(SEPARATED, seed=1)
    save(other, str(path))
    same(other, load(str(path)), text(2, 5))
    assert isinstance(kept(pictures.classifier(), path), ImageClassifier)

"""One description for dense and separated: what two models differ in, what they count, what is refused."""

import dataclasses
import itertools
import json

import pytest
import torch

from sepnb.encodings import ALiBi, RoPE
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.layout import Layout
from sepnb.records.store import canonical, digest
from sepnb.streams import Streams

from ..shared import refused
from . import shapes

SEPARATED, DENSE = Streams(pos=16, sem=48), Streams.dense(64)


def config(**fields) -> TransformerConfig:
    fields = {"streams": SEPARATED, "n_layers": 2, "n_heads": 4, "encoding": "sinusoidal", **fields}
    return TransformerConfig(**fields)


def test_dense_and_separated_differ_in_one_field():
    ours, theirs = config(streams=Streams.dense(64)).resolved(), config().resolved()
    assert {key for key in ours if ours[key] != theirs[key]} == {"streams"}
    strict = config(mode="strict").resolved()
    assert {key for key in strict if strict[key] != theirs[key]} == {"mode"}


def test_a_model_without_a_pos_stream_is_the_dense_model_in_every_mode():
    dense = Streams.dense(64)
    assert config(streams=Streams(pos=0, sem=64)) == config(streams=dense)
    separated, strict = (
        LanguageModel(config(streams=dense, mode=mode)).state_dict() for mode in ("separated", "strict")
    )
    assert {k: v.shape for k, v in separated.items()} == {k: v.shape for k, v in strict.items()}


def test_the_sem_readout_does_not_count_what_reaches_nothing():
    """Last block, 16/48 in heads of 16: W_V, W_O, MLP and norm of pos, W_Q and W_K of its one head."""
    dead = 10 * 16**2 + 2 * 16 + 2 * 64 * 16
    counts = LanguageModel(config(n_layers=3)).parameter_counts()
    assert counts["blocks"] == 102_144 - dead
    assert (
        counts["tables"] == 2 * 256 * 48 + 2 * 48 and counts["total"] == counts["blocks"] + counts["tables"]
    )


def test_the_presets_are_the_factors_they_name_and_a_factor_that_is_given_wins():
    assert (config().reading, config(mode="strict").reading) == ("joint", "strict")
    assert config(query_key="strict").reading == "strict"
    assert config(mode="strict", query_key="content").reading == "content"
    assert config().splits == {"norm", "value_output", "mlp"}
    joint, lacking = config(norm="joint"), config(split={"mlp", "value_output"})
    assert joint.splits == lacking.splits == {"value_output", "mlp"}
    found = [[(n, p.shape) for n, p in LanguageModel(c).named_parameters()] for c in (joint, lacking)]
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["separated", "strict"])
def test_a_norm_of_the_content_alone_keeps_the_magnitude_of_positions_that_a_split_norm_erases(mode):
    """The learned table times three, everything else alike: nearly the same logits only where p is normed."""
    tokens, changed = torch.arange(12)[None], {}
    for norm in ("split", "content"):
        torch.manual_seed(0)
        one = config(norm=norm, mode=mode, encoding="learned", n_layers=1)
        assert one.splits == config().splits and one.isolated is (mode == "strict")
        model = LanguageModel(one).double()
        (encoding,) = model.transformer.input_encodings
        with torch.no_grad():
            encoding.table.normal_()
            before = model(tokens)
            encoding.table.mul_(3)
            changed[norm] = float((model(tokens) - before).abs().max())
    assert changed["split"] < 1e-4 and changed["content"] > 1e-2
    gains = [name for name, _ in model.named_parameters() if "gain" in name]
    assert gains and all(name.endswith("gain.sem") for name in gains)
    with pytest.raises(ValueError, match="norm='content' contradicts a split without 'norm'"):
        config(norm="content", split={"mlp"})


def test_a_split_is_a_set_however_it_is_given():
    configs = [config(split=kind(("norm", "mlp"))) for kind in (frozenset, set, list, tuple)]
    assert len(set(configs)) == 1
    assert configs[0].resolved()["split"] == ["mlp", "norm"]
    assert json.loads(json.dumps(configs[0].resolved())) == configs[0].resolved()


def test_a_joint_norm_reads_every_stream_so_the_last_block_computes_every_stream():
    assert Layout.of(config()).last == ("sem",) and Layout.of(config(norm="joint")).last == ("pos", "sem")


def test_resolved_names_every_field_in_json_types_and_every_option_of_an_encoding():
    resolved = config(encoding=("learned", RoPE(base=500.0))).resolved()
    assert json.loads(json.dumps(resolved)) == resolved
    later = {"query_key", "split", "pos_stream", "n_kv_heads", "dropout", "axes", "window", "nope_every"}
    assert set(resolved) == {field.name for field in dataclasses.fields(TransformerConfig)} - later
    assert resolved["streams"] == {"pos": 16, "sem": 48}
    assert resolved["encoding"] == [
        {"name": "learned", "std": 0.02},
        {"name": "rope", "base": 500.0, "layout": "half"},
    ]
    assert config(encoding=("learned", "rope")).resolved() != resolved


def through_json(config: TransformerConfig) -> TransformerConfig:
    return TransformerConfig.from_resolved(json.loads(canonical(config.resolved())))


def test_every_field_comes_back_from_json():
    every = {
        "mode": "strict",
        "norm": "content",
        "readout": "both",
        "max_length": 99,
        "causal": False,
        "expansion": 3,
        "activation": "swiglu",
        "norm_kind": "rms",
        "bias": True,
        "embedding_std": 0.1,
        "query_key": "joint",
        "split": {"norm", "mlp"},
        "pos_stream": "constant",
        "n_kv_heads": 4,
        "dropout": 0.25,
    }
    others = [config(**every), config(tie_embeddings=True, window=7), config(streams=Streams(sem=48, pos=16))]
    others += [config(streams=Streams(row=8, col=8, sem=48), axes=2), config(encoding="learned")]
    others += [config(n_layers=1, n_heads=8), config(nope_every=2, encoding=("sinusoidal", "rope"))]
    changed = [{n for n, v in vars(one).items() if v != getattr(config(), n)} for one in others]
    assert set().union(*changed) == {field.name for field in dataclasses.fields(TransformerConfig)}
    for one in others:
        assert through_json(one) == one


def test_two_configs_are_equal_where_they_describe_one_model():
    by_name, built = config(encoding=("learned", "rope")), config(encoding=("learned", RoPE()))
    assert by_name == built and hash(by_name) == hash(built) and len({by_name, built}) == 1
    assert by_name != config(encoding=("learned", RoPE(base=9.0))) != config() and by_name != "rope"

    class Steeper(ALiBi):
        """A variant: it keeps the name, by which it is told as the one that it inherits from."""

    variant = config(encoding=("sinusoidal", Steeper()))
    assert through_json(variant) != variant


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"depth": 3}, "a config has no option 'depth'; it has streams, n_layers, n_heads, encoding"),
        ({"streams": [["sem", 48], ["sem", 16]]}, "name one of them twice"),
        ({"streams": "sem"}, "streams are told as widths by name, or as pairs of both, got 'sem'"),
        ({"encoding": [{"base": 3}]}, "encodings are told as a list of names with their options"),
        ({"encoding": [{"name": "rope", "base": 0.5}]}, "base is 0.5; it must be above 1"),
    ],
    ids=str,
)
def test_what_no_config_told_is_refused(unhooked, changed, message):
    with pytest.raises((ValueError, TypeError)) as refused:
        TransformerConfig.from_resolved(config().resolved() | changed)
    assert message in str(refused.value)


def test_a_config_of_the_product_of_all_factors_exists_or_is_refused():
    """46,080 shapes, as far as a factor has a say: all that is legal is accepted, and nothing else is."""
    free = {"split": [shapes.WHOLE], "readout": ["sem"], "activation": ["gelu"], "norm_kind": ["layer"]}
    factors = {**shapes.FACTORS, **free}
    count = 0
    for values in itertools.product(*factors.values()):
        shape = dict(zip(factors, values, strict=True))
        if shapes.legal(shape):
            TransformerConfig(**shapes.fields(shape))
            count += 1
        else:
            with pytest.raises(ValueError):
                TransformerConfig(**shapes.fields(shape))
    assert count == 344


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_heads": 5}, "5 heads do not divide the model width 64; 4 would"),
        ({"streams": Streams(pos=64)}, "needs a stream named sem for its content, got Streams(pos=64)"),
        ({"tie_embeddings": True, "readout": "both"}, "tie_embeddings needs readout='sem'"),
        ({"encoding": "rope"}, "one encoding at the input to fill its position streams, got 0 (none); add"),
        ({"encoding": ("learned", "sinusoidal")}, "got 2 (learned, sinusoidal); keep one"),
        ({"mode": "strict", "streams": Streams(pos=20, sem=44)}, "16; the nearest that are: 16 and 32"),
        ({"mode": "strict", "streams": Streams(sem=40, pos=16, more=8)}, "d_pos=16 is no multiple"),
        ({"n_kv_heads": 3}, "3 key and value heads do not divide 4 heads; use one of 1, 2, 4"),
        ({"n_kv_heads": 2}, "d_pos be a multiple of 32; the nearest that is: 32"),
        (
            {"pos_stream": "constant", "streams": DENSE},
            "needs a position stream; give Streams(pos=..., sem=...)",
        ),
        (
            {"pos_stream": "reinjected", "streams": DENSE, "encoding": "rope"},
            "at the input, e.g. 'sinusoidal'",
        ),
        ({"streams": Streams(pos=1, sem=63)}, "give pos at least 2 columns, or use norm_kind='rms'"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_the_value_and_what_would(unhooked, changes, message):
    with pytest.raises((ValueError, TypeError)) as refused:
        config(**changes)
    assert message in str(refused.value)


def test_two_orders_of_the_same_streams_are_two_records():
    """Keys are taken from JSON with sorted names, where an object has no order."""
    assert config(streams=Streams(pos=16, sem=48)).resolved()["streams"] == {"pos": 16, "sem": 48}
    assert config(streams=Streams.dense(64)).resolved()["streams"] == {"sem": 64}
    turned = config(streams=Streams(sem=48, pos=16)).resolved()
    assert turned["streams"] == [["sem", 48], ["pos", 16]]
    digests = {
        digest(config(streams=Streams(**widths)).resolved())
        for widths in (
            {"pos": 16, "sem": 48},
            {"sem": 48, "pos": 16},
            {"row": 8, "col": 8, "sem": 48},
            {"col": 8, "row": 8, "sem": 48},
        )
    }
    assert len(digests) == 4


def test_a_rotation_of_the_content_is_for_models_that_have_a_content_part():
    rotated, alone = ("sinusoidal", RoPE(streams=("sem",))), ("sinusoidal", RoPE(streams=("pos",)))
    for query_key in ("untied", "content"):
        config(query_key=query_key, encoding=rotated)
    for query_key in ("joint", "strict"):
        message = "rope on sem only: .* too; use query_key='untied' or 'content'"
        refused(message, config, query_key=query_key, encoding=rotated)
    refused("rope on pos only: .* too; use query_key='strict' or 'untied'", config, encoding=alone)

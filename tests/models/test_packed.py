"""A packed model holds its rounded weights and its layout, and refuses what its script cannot compute."""

import base64
import json

import numpy as np
import pytest
import torch

from sepnb.encodings.context import NTKByParts, PositionInterpolation
from sepnb.encodings.sinusoidal import Sinusoidal
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.fast.packed import packed, rounded
from sepnb.streams import Streams

from ..shared import refused


def model_of(**fields) -> LanguageModel:
    torch.manual_seed(0)
    given = {"streams": Streams(pos=8, sem=16), "n_layers": 2, "n_heads": 3, "encoding": "sinusoidal"}
    return LanguageModel(TransformerConfig(**(given | {"max_length": 16} | fields)))


@pytest.mark.parametrize("mode", ["strict", "separated"])
def test_weights_come_back_by_name_and_shape_as_the_rounded_model_has_them(mode):
    model = model_of(mode=mode)
    read = json.loads(json.dumps(packed(model)))
    values = np.frombuffer(base64.b64decode(read["weights"]), dtype="<f2").astype(np.float32)
    pieces = np.split(values, np.cumsum([np.prod(shape) for _, shape in read["tensors"]])[:-1])
    wanted = dict(rounded(model).named_parameters())
    assert [name for name, _ in read["tensors"]] == list(wanted)
    for (name, shape), piece in zip(read["tensors"], pieces, strict=True):
        assert torch.equal(torch.from_numpy(piece.reshape(shape)), wanted[name].detach()), name


def test_the_layout_says_which_heads_read_and_write_what():
    strict, joint = (packed(model_of(mode=mode))["layers"] for mode in ("strict", "separated"))
    sem = [{"head": 1, "writes": "sem"}, {"head": 2, "writes": "sem"}]
    pos = {"head": 0, "writes": "pos"}
    assert strict[0]["groups"] == [
        {"reads": ["pos"], "heads": [pos]},
        {"reads": ["pos", "sem"], "heads": sem},
    ]
    assert joint[0]["groups"] == [{"reads": ["pos", "sem"], "heads": [pos, *sem]}]
    assert [layer["outputs"] for layer in strict] == [["pos", "sem"], ["sem"]]
    assert strict[1]["groups"][-1]["heads"] == sem


def test_slowed_positions_are_told():
    model = model_of()
    assert packed(model)["slowed"] is None and packed(model)["log_scale"] is False
    slowed = packed(model.extended(extension=NTKByParts(8, 16, 0.5, 4), log_scale=True))
    assert slowed["slowed"] == {"factor": 8, "length": 16, "alpha": 0.5, "beta": 4}
    assert slowed["log_scale"] is True and slowed["weights"] == packed(model)["weights"]


def test_rounding_leaves_the_original_as_it_is():
    model = model_of()
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    small = rounded(model)
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())
    assert any(not torch.equal(one, before[name]) for name, one in small.named_parameters())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"streams": Streams.dense(24)}, "one stream"),
        ({"norm_kind": "rms"}, "norm_kind is 'rms'"),
        ({"bias": True}, "bias is True"),
        ({"pos_stream": "constant"}, "pos_stream is 'constant'"),
        ({"encoding": Sinusoidal(layout="halves")}, "interleaved"),
        ({"encoding": ("sinusoidal", "alibi")}, "encoding is"),
        ({"streams": Streams(pos=6, sem=18)}, "straddles"),
        ({"streams": Streams(pos=512, sem=1024), "n_heads": 3}, "at most"),
    ],
)
def test_what_the_script_does_not_compute_is_refused(fields, said):
    refused(said, packed, model_of(**fields))


def test_another_rule_of_evaluation_and_weights_beyond_float16_are_refused():
    loud = model_of()
    torch.nn.init.constant_(loud.head.weight, 1e6)
    refused("window", packed, model_of().extended(window=4))
    refused("NTKByParts", packed, model_of().extended(extension=PositionInterpolation(2)))
    refused("65504", packed, loud)

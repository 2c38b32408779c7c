"""Which numbers of a model belong to position: all that its position streams are made of, and no other."""

import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.parts import PARTS, counted, reading_maps
from sepnb.streams import Streams

from ..encodings.drawn import loud
from . import shapes

SHAPES = shapes.covering()
POSITIONS = torch.tensor([0, 2, 3, 7, 8, 11])


def model_of(shape: dict) -> LanguageModel:
    model = LanguageModel(TransformerConfig(**shapes.fields(shape)), 13)
    return loud(model).double().eval()


@pytest.mark.parametrize("shape", SHAPES, ids=shapes.name)
def test_every_number_is_in_one_part(shape):
    model = model_of(shape)
    masks = model.parts()
    assert tuple(masks) == PARTS
    for name, parameter in model.named_parameters():
        position, content = masks["position"].pop(name), masks["content"].pop(name)
        assert position.dtype == content.dtype == torch.bool
        assert position.shape == content.shape == parameter.shape
        assert torch.equal(position, ~content)
    assert masks == {"position": {}, "content": {}}
    assert model.config.separated or not counted(model.parts()["position"])


@pytest.mark.parametrize(
    ("streams", "fields", "numbers", "of"),
    [
        (Streams(pos=32, sem=96), {}, 61_888, 573_568),
        (Streams(pos=32, sem=96), {"pos_stream": "constant"}, 24_832, 518_080),
        (Streams.dense(128), {}, 0, None),
    ],
    ids=["separated", "constant", "dense"],
)
def test_the_numbers_of_the_models_of_the_book(streams, fields, numbers, of):
    model = LanguageModel(TransformerConfig(streams, 4, 4, "sinusoidal", **fields))
    masks = model.parts()
    total = model.parameter_counts()["total"]
    assert counted(masks["position"]) == numbers and counted(masks["content"]) == total - numbers
    assert of is None or total == of


ISOLATED = [shape for shape in SHAPES if TransformerConfig(**shapes.fields(shape)).isolated]


@pytest.mark.parametrize("shape", ISOLATED, ids=shapes.name)
def test_position_tables_are_made_of_the_position_part_to_the_number(shape):
    """By their gradients. Left out: the norm behind the last block, and rows of a learned table."""
    model = model_of(shape)
    tables = model.position_tables(POSITIONS)
    made = [one for one in (*tables.tables, *tables.streams.values()) if one is not None]
    generator = torch.Generator().manual_seed(0)
    sum((one * torch.randn(one.shape, generator=generator)).sum() for one in made).backward()
    masks = model.parts()["position"]
    for name, parameter in model.named_parameters():
        moved = torch.zeros_like(masks[name]) if parameter.grad is None else parameter.grad != 0
        if name.endswith(".table"):
            assert masks[name].all() and moved.any(-1).nonzero().flatten().tolist() == POSITIONS.tolist()
        elif not name.startswith("norm."):
            assert torch.equal(moved, masks[name]), name


JOINT = shapes.covering(streams=shapes.SEPARATED, readout=["sem"], split=[shapes.WHOLE])


@pytest.mark.parametrize(
    "shape", [one for one in JOINT if not {"rope", "alibi"} & set(one["encoding"])], ids=shapes.name
)
def test_without_the_columns_that_read_positions_no_position_matters(built, text, shape):
    model, tokens = model_of(shape), text(2, len(POSITIONS))
    before = model(tokens, POSITIONS)
    columns, masks = reading_maps(model, model.config.position_streams), model.parts()["position"]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            assert not (columns[name] & ~masks[name]).any()
            parameter.masked_fill_(columns[name], 0)
    if shape["query_key"] != "content":
        assert not torch.allclose(model(tokens, POSITIONS), before)
    torch.testing.assert_close(model(tokens), model(tokens, POSITIONS), rtol=0, atol=1e-12)
    with torch.no_grad():  # what is left reads the content still
        for name, parameter in model.named_parameters():
            parameter.masked_fill_(reading_maps(model)[name] & ~columns[name], 0)
    assert not torch.allclose(model(tokens), before)


@pytest.mark.parametrize("mode", ["separated", "strict"])
def test_the_masks_of_an_extended_model_are_those_of_its_parameters(built, mode):
    model = built(Streams(pos=8, sem=24), encoding="learned", mode=mode)
    own, other = model.parts(), model.extended("clamp").parts()
    for part in PARTS:
        assert len(own[part]) == len(other[part]) and counted(own[part]) == counted(other[part])

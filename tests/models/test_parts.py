"""Which numbers of a model belong to position: all that its position streams are made of, and no other."""

import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.models.parts import PARTS, counted, reading_maps

from . import shapes

SHAPES = shapes.covering()
POSITIONS = torch.tensor([0, 2, 3, 7, 8, 11])


@pytest.mark.parametrize("shape", SHAPES, ids=shapes.name)
def test_every_number_is_in_one_part(shape):
    model = shapes.model(shape)
    masks = model.parts()
    assert tuple(masks) == PARTS
    for name, parameter in model.named_parameters():
        position, content = masks["position"].pop(name), masks["content"].pop(name)
        assert position.dtype == content.dtype == torch.bool
        assert position.shape == content.shape == parameter.shape
        assert torch.equal(position, ~content)
    assert masks == {"position": {}, "content": {}}
    assert model.config.separated or not counted(model.parts()["position"])


ISOLATED = [shape for shape in SHAPES if TransformerConfig(**shapes.fields(shape)).isolated]


@pytest.mark.parametrize("shape", ISOLATED, ids=shapes.name)
def test_position_tables_are_made_of_the_position_part_to_the_number(shape):
    """By their gradients. Left out: the norm behind the last block, and rows of a learned table."""
    model = shapes.model(shape)
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
    model, tokens = shapes.model(shape), text(2, len(POSITIONS))
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


@pytest.mark.parametrize("shape", [shape for shape in ISOLATED if shape["readout"] == "sem"], ids=shapes.name)
def test_what_reads_position_tables_is_made_of_the_content_part_to_the_number(shape):
    """By the gradients of the logits, the tables given: the other side of what makes them."""
    model, tokens = shapes.model(shape), torch.arange(2 * 12).reshape(2, 12) % 13
    with torch.no_grad():
        tables = model.position_tables(12)
    model(tokens, tables=tables).square().sum().backward()
    for name, mask in model.parts()["content"].items():
        parameter = dict(model.named_parameters())[name]
        moved = torch.zeros_like(mask) if parameter.grad is None else parameter.grad != 0
        assert torch.equal(moved, mask), name


@pytest.mark.parametrize("shape", JOINT, ids=shapes.name)
def test_under_the_attention_that_it_has_each_part_computes_its_own_streams(shape):
    """With the weights of attention held, another position part changes nothing of the content, and another
    content part nothing of the position streams, as the last block is given and gives them."""
    model, tokens, states = shapes.model(shape), torch.arange(2 * 6).reshape(2, 6), {}

    def note(_, given: tuple, found: dict) -> None:
        states.update({name: x.clone() for name, x in {**given[0], **found}.items()})

    model.transformer.blocks[-1].register_forward_hook(note)
    own = {name: weight.clone() for name, weight in model.state_dict().items()}
    with frozen_attention(model), torch.no_grad():
        model(tokens)
        before = dict(states)
        for part, mine in zip(PARTS, (model.config.position_streams, ("sem",)), strict=True):
            for name, weight in model.named_parameters():
                weight[model.parts()[part][name]] *= -1.5
            model(tokens)
            for name, x in before.items():
                moves = name in mine and filled(model, name)
                assert torch.equal(x, states[name]) != moves, (part, name)
            model.load_state_dict(own)


def filled(model: LanguageModel, stream: str) -> bool:
    """Whether a stream as the last block has it depends on weights at all: a sinusoid does not, where blocks
    leave it as it was."""
    table = any(encoding.name == "learned" for encoding in model.config.input_encodings)
    return stream == "sem" or table or model.config.pos_stream != "constant"

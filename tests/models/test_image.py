"""The image classifier: one transformer, any resolution, and two rules for where patches are."""

import dataclasses

import pytest
import torch
from torch import Tensor

from sepnb import encodings
from sepnb.encodings import AxialRoPE, Learned, Sinusoidal
from sepnb.models import ImageClassifier, TransformerConfig
from sepnb.models.image import with_origin
from sepnb.seqpe import SeqPE
from sepnb.streams import Streams

from ..encodings.drawn import F64, TIGHT, loud
from ..shared import refused

PATCH, CLASSES, CHANNELS = 4, 5, 2
GRID = (3, 4)
TWO = {
    "none": "none",
    "sinusoidal": Sinusoidal(dims=2),
    "axial-rope": AxialRoPE(),
    "learned": Learned(grid=GRID),
    "seqpe": SeqPE(width=8, digits=2, dims=2, class_token=True),
    "seqpe-multiply": SeqPE(width=8, digits=2, dims=2, class_token=True, site="multiply", per_layer=True),
}
STREAMS = {
    "dense": ({"streams": Streams.dense(32)}, TWO),
    "separated": ({"streams": Streams(pos=8, sem=24)}, {k: TWO[k] for k in ("sinusoidal", "learned")}),
    "strict": ({"streams": Streams(pos=8, sem=24), "mode": "strict"}, {"sinusoidal": TWO["sinusoidal"]}),
    "rows": ({"streams": Streams(row=8, col=8, sem=16), "mode": "strict"}, {"sinusoidal": "sinusoidal"}),
}
CASES = [pytest.param(shape, name, id=f"{shape}-{name}") for shape in STREAMS for name in STREAMS[shape][1]]


def classifier(shape: str = "dense", name: str = "sinusoidal", **changes) -> ImageClassifier:
    """Two layers in float64, heads of width 8, every parameter drawn anew."""
    fields, known = STREAMS[shape]
    config = TransformerConfig(n_layers=2, n_heads=4, encoding=known[name], causal=False, axes=2, **fields)
    made = ImageClassifier(dataclasses.replace(config, **changes), CLASSES, PATCH, channels=CHANNELS)
    loud(made, seed=0)
    return made.double()


def images(rows: int = GRID[0], columns: int = GRID[1], batch: int = 2, seed: int = 1) -> Tensor:
    shape = (batch, CHANNELS, rows * PATCH, columns * PATCH)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


# --- patches


def test_patches_are_cut_row_by_row_as_their_places_are_counted_and_keep_their_pixels():
    whole, made = images(), classifier()
    cut = made.patches(whole)
    assert cut.shape == (2, 12, CHANNELS * PATCH * PATCH)
    for row in range(GRID[0]):
        for column in range(GRID[1]):
            pixels = whole[:, :, row * PATCH :, column * PATCH :][:, :, :PATCH, :PATCH]
            assert torch.equal(cut[:, row * GRID[1] + column], pixels.flatten(1))
            assert made.positions(*GRID)[row * GRID[1] + column].tolist() == [row + 1, column + 1]
    unfolded = torch.nn.functional.unfold(whole, PATCH, stride=PATCH).transpose(1, 2)
    assert torch.equal(cut, unfolded)


# --- one model


@pytest.mark.parametrize(("shape", "name"), CASES)
def test_what_is_said_does_not_depend_on_the_order_in_which_patches_are_read(shape, name):
    """Patches and positions permuted together leave the class token as it is; patches alone do not."""
    made, whole, order = classifier(shape, name), images(), torch.randperm(12)
    places = made.positions(*GRID)
    shuffled = made.patches(whole)[:, order]
    back = shuffled.unflatten(2, (CHANNELS, PATCH, PATCH)).unflatten(1, GRID).permute(0, 3, 1, 4, 2, 5)
    back = back.flatten(4).flatten(2, 3)
    with torch.no_grad():
        expected = made(whole)
        torch.testing.assert_close(made(back, places[order]), expected, **TIGHT)
        assert ((made(back) - expected).abs().max() > 1e-3) == (name != "none")


@pytest.mark.parametrize(("shape", "name"), CASES)
def test_images_do_not_hear_each_other_and_may_have_their_own_places(shape, name):
    made, whole = classifier(shape, name), images()
    places = torch.stack([made.positions(*GRID), made.positions(*GRID).flip(0)])
    with torch.no_grad():
        alone = torch.cat([made(whole[b : b + 1], places[b]) for b in range(2)])
        torch.testing.assert_close(made(whole, places), alone, **TIGHT)


@pytest.mark.parametrize(("shape", "name"), CASES)
def test_gradients_reach_every_parameter(shape, name):
    made = classifier(shape, name)
    made(images()).square().mean().backward()
    for key, parameter in made.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, key


def test_the_logits_are_read_from_the_class_token_alone():
    made = classifier()
    with torch.no_grad():
        content = made.embedding(made.patches(images()))
        content = torch.cat([made.class_token.expand(2, 1, -1), content], 1)
        state = made.transformer(content, with_origin(made.positions(*GRID), 2))["sem"][:, 0]
        expected = made.head(made.norm.parts({"sem": state})["sem"])
        torch.testing.assert_close(made(images()), expected, **TIGHT)


@pytest.mark.parametrize("name", ["none", "sinusoidal", "learned", "rope", "alibi", "t5"])
def test_on_one_axis_an_encoding_of_texts_hears_the_number_of_a_patch(name):
    made = classifier(encoding=encodings.build(name), axes=1)
    assert made.positions(2, 3).tolist() == [1, 2, 3, 4, 5, 6]
    with torch.no_grad():
        turned = made(images(), made.positions(*GRID).flip(0))
        assert ((turned - made(images())).abs().max() > 1e-3) == (name != "none")


def test_the_parameters_are_those_counted_by_hand():
    """Dense, width 32, two layers of 12 D^2 + 4 D; and a patch embedding, a token, a norm, a head."""
    made = classifier(name="learned")
    tables = 32 * CHANNELS * PATCH**2 + 32 + (12 + 1) * 32 + 2 * 32 + 32 * CLASSES
    blocks = 2 * (12 * 32**2 + 4 * 32)
    assert made.parameter_counts() == {"total": blocks + tables, "blocks": blocks, "tables": tables}


# --- other resolutions


def test_on_a_larger_canvas_the_grid_grows_and_in_upscaling_it_keeps_its_corners():
    made = classifier()
    assert made.positions(5, 6)[[0, -1]].tolist() == [[1, 1], [5, 6]]
    fitted = made.extended(fit=GRID)
    assert fitted.positions(5, 7)[[0, -1]].tolist() == [[1, 1], [3, 4]]
    assert fitted.positions(5, 7)[1].tolist() == [1, 1.5]
    assert made.fit is None and fitted.extended(fit=None).positions(5, 6).dtype == torch.int64


@pytest.mark.parametrize("name", [name for name in TWO if not name.startswith("seqpe")])
def test_at_the_trained_resolution_the_two_rules_are_one_and_at_others_two(name):
    made = classifier(name=name)
    fitted, larger = made.extended(fit=GRID), images(6, 8)
    with torch.no_grad():
        torch.testing.assert_close(fitted(images()), made(images()), **TIGHT)
        if name in ("sinusoidal", "axial-rope"):
            assert (fitted(larger) - made(larger)).abs().max() > 1e-3


def test_an_extended_model_shares_its_weights_and_follows_what_is_trained_later():
    made = classifier()
    fitted = made.extended(fit=GRID)
    assert {p.data_ptr() for p in fitted.parameters()} == {p.data_ptr() for p in made.parameters()}
    with torch.no_grad():
        before = fitted(images(6, 7))
        made.class_token.mul_(2.0)
        assert (fitted(images(6, 7)) - before).abs().max() > 1e-6
    assert not fitted.training


# --- what is refused


def test_images_of_no_whole_patches_and_a_rule_that_a_model_cannot_follow_are_refused(unhooked):
    broad = torch.zeros((2, CHANNELS, 12, 18), dtype=F64)
    refused("width is 18, and patches have a side of 4; 16 would be whole", classifier(), broad)
    row, places = classifier(encoding="rope", axes=1), "fit needs places between two patches, and"
    refused(f"{places} on one axis are none", row.extended, fit=GRID)
    rows = classifier("rows", encoding="learned", max_length=9)
    refused(f"{places} learned takes none", rows.extended, fit=GRID)

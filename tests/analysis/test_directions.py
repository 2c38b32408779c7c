"""Directions of trained positions: an orthonormal basis of them; what a model reads within them."""

import numpy as np
import pytest
import torch

from sepnb.analysis.directions import kept_within, trained_directions
from sepnb.encodings import PositionInterpolation, YaRN
from sepnb.experiments.language_modelling import SIZES
from sepnb.experiments.methods import model_config
from sepnb.models import LanguageModel

F64 = torch.float64
LENGTH = SIZES["smoke"].length


def built(name: str = "sinusoidal") -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(model_config(name, SIZES["smoke"])).double().eval()


def test_trained_directions_are_those_of_the_covariance_above_a_bound():
    (encode,) = built().transformer.input_encodings
    shown = trained_directions(encode, LENGTH, least=0.1)
    table = encode(torch.arange(LENGTH)).numpy()
    variances, vectors = np.linalg.eigh(np.cov(table.T, bias=True))
    large = variances >= 0.1**2 * variances.max()
    assert 1 < shown.axes.shape[1] == large.sum() < len(large)
    np.testing.assert_allclose(shown.mean, table.mean(0), atol=1e-12)
    np.testing.assert_allclose(shown.axes.T @ shown.axes, np.eye(large.sum()), atol=1e-12)
    np.testing.assert_allclose(
        shown.axes @ shown.axes.T, vectors[:, large] @ vectors[:, large].T, atol=1e-9
    )  # the same space
    outside = variances[~large].sum() / variances.sum()
    np.testing.assert_allclose(shown.share_outside(torch.from_numpy(table)), outside, rtol=1e-6)


def test_slowed_positions_are_projected_and_trained_ones_stay():
    model = built()
    slow = model.extended(extension=YaRN(8, LENGTH))
    kept, shown = kept_within(slow, model), trained_directions(model.transformer.input_encodings[0], LENGTH)
    far = torch.arange(8 * LENGTH)
    (plain,), (projected,) = (one.transformer.input_encodings for one in (slow, kept))
    assert 0.05 < shown.share_outside(plain(far)) < 0.9 and shown.share_outside(projected(far)) < 1e-20
    torch.testing.assert_close(projected(far), shown.inside(plain(far)), rtol=0, atol=1e-12)
    tokens = torch.randint(SIZES["smoke"].width, (1, 2 * LENGTH))
    with torch.no_grad():
        at_once = kept_within(model, model, least=1e-6)(tokens[:, :LENGTH])
        torch.testing.assert_close(at_once, model(tokens[:, :LENGTH]), rtol=0, atol=1e-6)
        assert (kept(tokens) - slow(tokens)).abs().max() > 1e-3
        assert slow(tokens).equal(model.extended(extension=YaRN(8, LENGTH))(tokens)), "left as it was"


def test_interpolation_stays_within_the_directions_of_training():
    (encode,) = built().extended(extension=PositionInterpolation(8)).transformer.input_encodings
    (trained,) = built().transformer.input_encodings
    shown = trained_directions(trained, LENGTH, least=1e-4)
    assert shown.share_outside(encode(torch.arange(7 * LENGTH))) < 1e-6


def test_bad_lengths_bounds_and_models_are_refused():
    (encode,) = built().transformer.input_encodings
    for length, least, says in ((1, 0.1, "length is 1"), (4, 0.0, "least is 0"), (4, 1.5, "least is 1.5")):
        with pytest.raises(ValueError, match=says):
            trained_directions(encode, length, least)
    with pytest.raises(ValueError, match="no encoding at the input"):
        kept_within(built("rope"), built("rope"))

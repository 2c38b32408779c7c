"""Fitted rows: what is trained, what is not, and that a fit finds rows that a model can read."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train
from sepnb.training.rows import fit_rows, lengthened

from ..shared import refused

L, LONG = 8, 32
SEPARATED = Streams(pos=8, sem=24)
MODELS = {
    "dense": {"streams": Streams.dense(32), "encoding": "learned"},
    "separated": {"streams": SEPARATED, "encoding": "learned"},
    "strict": {"streams": SEPARATED, "encoding": "learned", "mode": "strict"},
    "plain": {"streams": SEPARATED, "encoding": "learned", "norm": "content"},
    "sinusoid": {"streams": SEPARATED, "encoding": "sinusoidal"},
}


def model_of(name: str) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(TransformerConfig(n_layers=2, n_heads=4, max_length=L, **MODELS[name]))


def batches(steps: int, length: int, seed: int = 0):
    draw = np.random.default_rng(seed)
    return (draw.integers(0, 256, (2, length + 1)) for _ in range(steps))


def table(model: LanguageModel) -> torch.Tensor:
    return model.transformer.input_encodings[0].table


@pytest.mark.parametrize("name", MODELS)
def test_a_lengthened_model_is_the_trained_one_inside_its_length_and_wraps_after_it(name):
    model, tokens = model_of(name).eval(), torch.arange(LONG)[None]
    longer = lengthened(model, LONG).eval()
    with torch.no_grad():
        assert torch.equal(longer(tokens[:, :L]), model(tokens[:, :L]))
        wrapped = model.extended("wrap")(tokens)
        torch.testing.assert_close(longer(tokens), wrapped, rtol=1e-5, atol=1e-5)
    assert table(longer).shape == (LONG, MODELS[name]["streams"].items[0][1])
    assert not {p.data_ptr() for p in longer.parameters()} & {p.data_ptr() for p in model.parameters()}


@pytest.mark.parametrize("window", [None, L])
@pytest.mark.parametrize("name", MODELS)
def test_only_the_rows_past_the_known_ones_change_and_all_of_them_do(name, window):
    model = lengthened(model_of(name), LONG)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    reader = model.extended(window=window)  # it shares its parameters with the model
    losses = fit_rows(reader, L, batches(6, LONG), TrainingConfig(6, 2, LONG, 0.1))
    assert len(losses) == 6 and np.isfinite(losses).all()
    for key, value in model.state_dict().items():
        if key.endswith("input_encodings.0.table"):
            assert torch.equal(value[:L], before[key][:L])
            assert (value[L:] != before[key][L:]).any(dim=1).all()
        else:
            assert torch.equal(value, before[key]), key


def test_after_a_fit_the_whole_model_trains_again():
    model = lengthened(model_of("separated"), LONG)
    fit_rows(model, L, batches(1, LONG), TrainingConfig(1, 2, LONG, 0.1))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    train(model, batches(2, LONG), TrainingConfig(2, 2, LONG, 0.1))
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == set(before)
    assert not torch.equal(table(model)[:L], before["transformer.input_encodings.0.table"][:L])


def test_a_fit_finds_the_rows_again_that_were_taken_from_a_trained_model():
    """Each token is the one three places before: every row but the first three is needed."""
    config = dataclasses.replace(model_of("separated").config, max_length=16)
    torch.manual_seed(0)
    model = LanguageModel(config)

    def copies(steps: int, seed: int):
        draw = np.random.default_rng(seed)
        return (np.tile(draw.integers(0, 12, (8, 3)), (1, 6))[:, :17] for _ in range(steps))

    train(model, copies(300, 0), TrainingConfig(300, 8, 16, 0.01))
    windows = torch.from_numpy(next(copies(1, 1)))

    def wrong(reader: LanguageModel) -> float:
        with torch.no_grad():
            given = reader.eval()(windows[:, :-1]).argmax(-1)
        return float((given[:, 8:] != windows[:, 9:]).double().mean())

    halved = lengthened(model, 16, known=8)
    assert wrong(model) < 0.02 and wrong(halved) > 0.2
    fit_rows(halved, 8, copies(200, 2), TrainingConfig(200, 8, 16, 0.05))
    assert wrong(halved) < 0.05


def test_what_cannot_be_fitted_is_refused():
    model, how = model_of("separated"), (L, batches(1, L), TrainingConfig(1, 2, L, 0.1))
    refused("known is 8; the table has 8 rows, give 0 to 7", fit_rows, model, *how)
    refused("length is 4", lengthened, model, 4)
    refused("rows are fitted in one learned table at the input, got s", fit_rows, model_of("sinusoid"), *how)
    rotated = LanguageModel(dataclasses.replace(model.config, streams=Streams.dense(32), encoding="rope"))
    refused("a table replaces one encoding at the input, got rope", lengthened, rotated, LONG)

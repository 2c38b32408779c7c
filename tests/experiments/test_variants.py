"""Variants: one change each, rates of the method they start from, and what is asked of all of them."""

import re

import pytest
import torch

from sepnb import experiments
from sepnb.evaluation import evaluate
from sepnb.evaluation.context import with_replaced_context
from sepnb.evaluation.protocols import Protocol
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.long_windows import ReplacedContext
from sepnb.experiments.variant_methods import VARIANTS
from sepnb.models import LanguageModel

from .smoke_runs import smoke, texts_of, unseen, untrained

SCREEN, PUBLISHED = experiments.get("recipe_screen"), experiments.get("recipes")
run_of = PUBLISHED.training_of


# --- one change


@pytest.mark.parametrize("name", VARIANTS)
def test_every_recipe_builds_a_model_that_reads_past_its_trained_length(name):
    config = smoke("recipes", name)
    model = LanguageModel(config.model).eval()
    tokens = torch.randint(256, (1, 2 * config.training.length), generator=torch.Generator().manual_seed(0))
    assert model(tokens).isfinite().all()
    assert re.fullmatch(r"[a-z0-9.-]+", config.key)


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
def test_compared_models_have_the_parameters_that_they_are_said_to_have(profile):
    def blocks(name: str) -> int:
        with torch.device("meta"):
            return LanguageModel(run_of(profile, name, 1).model).parameter_counts()["blocks"]

    assert abs(blocks("separated-torus-phase-long-gaps-wide") / blocks("rope") - 1) < 0.01
    for below, above in (  # no rung of the ladder has more than the one below
        ("untied", "strict-sinusoidal"),
        ("strict-sinusoidal", "strict-phase-narrow"),
        ("strict-phase", "untied-rope"),
    ):
        assert 0.9 * blocks(below) < blocks(above) <= blocks(below)


# --- what is read


@pytest.mark.parametrize(
    ("name", "reading", "sides"),
    [
        ("separated-sinusoidal", Protocol("native"), "index+length+distance"),
        ("separated-offsets", Protocol("native"), "length+distance"),
        ("separated-offsets", Protocol("native-at-7x", start=7 * 64), "none"),
        ("separated-torus-offsets", Protocol("native-at-1m", start=1_000_000), "index"),
        ("separated-gaps", Protocol("native"), "length"),
        ("separated-gaps-hidden", Protocol("native"), "index+length+distance"),
        ("rope-gaps", Protocol("native"), "length"),
        ("dense-phase", Protocol("native-window-sinks", window=60, sinks=4), "distance"),
        ("untied", Protocol("native-at-100k", start=100_000), "index"),
        ("rope", Protocol("oracle", window=64, stride=1), "none"),
    ],
)
def test_the_sides_of_a_reading_that_training_never_showed(name, reading, sides):
    assert unseen(smoke("recipes", name), reading) == sides


def test_the_gain_is_what_a_foreign_past_costs_over_the_native_reading(one_thread):
    config = smoke("recipes", "rope")
    model = untrained(config)
    held = texts_of(config).passages(config)
    length = texts_of(config).beyond.length
    sizes = {"recent": length, "stride": length // 2}
    foreign = with_replaced_context(model, held.tokens, held.documents, **sizes).bits
    native = evaluate(model, held.tokens, held.documents).bits
    _, rows = config.of(ReplacedContext)(config, model)
    assert [(row["start"], row["stop"]) for row in rows] == [(length * k, 2 * length * k) for k in (1, 2, 4)]
    for row in rows:
        expected = (foreign - native)[:, row["start"] : row["stop"]].mean()
        assert row["bits_per_byte"] == pytest.approx(expected, abs=1e-6)
        assert abs(row["bits_per_byte"]) > 1e-6


def test_the_screening_reads_the_validation_text_only(one_thread, monkeypatch):
    splits = lm.splits_of(lm.SIZES["smoke"].text.name)
    config = smoke("recipes", "rope")
    assert texts_of(config).held_out(config) is splits.test
    monkeypatch.setattr(lm, "splits_of", lambda name: Closed(splits))
    record = SCREEN.run(smoke("recipe_screen", "rope", steps=4))
    assert "val_bits_per_byte" in record.metrics and "bits_per_byte" not in record.metrics
    assert record.metrics["native/8x"] > 0


class Closed:
    """Splits whose test text nobody may open."""

    def __init__(self, splits) -> None:
        self.train, self.validation, self.sha256 = splits.train, splits.validation, splits.sha256

    @property
    def test(self):
        raise AssertionError("the test text was read")

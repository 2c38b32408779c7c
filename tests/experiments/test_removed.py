"""Position taken away from trained models, and separated models written out as dense ones: what is removed,
what is tuned, and what is read."""

import dataclasses

import pytest
import torch

from sepnb import experiments
from sepnb.claims import ladder as rules
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import opened, removed
from sepnb.experiments.methods import model_config
from sepnb.experiments.run import Run, trained_once
from sepnb.models import LanguageModel
from sepnb.models.extension import extension_of
from sepnb.models.parts import parts

from .smoke_runs import differing, smoke, untaught

REMOVED, OPENED = experiments.get("removed_text"), experiments.get("opened_text")
pytestmark = pytest.mark.usefixtures("one_thread")


def asked_of(experiment: str) -> set[str]:
    """The columns that the rules of an experiment ask for."""
    judged = [one for one in rules.CLAIMS.values() if one.experiment == f"experiment/{experiment}"]
    return {ask.partition(":")[2] or "bits_per_byte" for one in judged for p in one.asks for ask in p[:1]}


def removal_of(config: Run) -> removed.Removing:
    return config.of(removed.Removed).tuning


def test_rope_without_position_is_a_model_without_an_encoding():
    torch.manual_seed(0)
    model = LanguageModel(model_config("rope")).double()
    bare = LanguageModel(dataclasses.replace(model.config, encoding="none")).double()
    bare.load_state_dict(model.state_dict())
    tokens = torch.randint(256, (2, 200))
    with torch.no_grad():
        found, expected = removed.without_position(model)(tokens), bare(tokens)
        assert (model(tokens) - expected).abs().max() > 0.1
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_a_separated_model_without_position_has_the_first_position_everywhere():
    torch.manual_seed(0)
    model = LanguageModel(model_config("separated-sinusoidal")).double()
    still = removed.without_position(model)
    p = still.transformer.embeddings(torch.arange(1000), torch.float64)["pos"]
    torch.testing.assert_close(p, p[:1].expand_as(p), rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="frequencies"):
        removed.without_position(LanguageModel(model_config("learned")))


@pytest.mark.parametrize("cell", removed.CELLS)
def test_an_arm_tunes_its_part_and_is_read_as_it_was_tuned(cell):
    config = REMOVED.config("smoke", cell, 1)
    model, removal = config.build(), removal_of(config)
    start, (tuning, _) = untaught(config, model), removal.each
    batches = list(config.of(removed.Removed).samples(config, tuning))
    changed, losses = removal.tuned(config, start, iter(batches), tuning, device="cpu")
    assert len(losses) == 2 and tuning.length == config.training.length
    before = dict(model.named_parameters())
    moved = {name: one != before[name] for name, one in changed.named_parameters()}
    for part, masks in parts(model).items():
        touched = any((one & masks[name]).any() for name, one in moved.items())
        left = {"content-removed": {"position"}}.get(cell.split("/")[1], set())
        assert touched == (part not in left) or not any(mask.any() for mask in masks.values()), part
    still = removed.STOPPED if "removed" in cell else None
    assert extension_of(changed) == still and not changed.transformer.log_scale
    far = removal.reader(changed, 8)
    assert (extension_of(far) == removed.STOPPED) == ("removed" in cell)
    assert far.transformer.log_scale == (cell != "rope/kept"), "YaRN has a temperature instead"


def test_arms_of_a_model_share_its_training_and_are_tuned_on_the_same_texts():
    runs = {cell: REMOVED.config("laptop", cell, 3) for cell in removed.CELLS}
    stretched = experiments.get("stretched_text")
    for cell, run in runs.items():
        method, _ = cell.split("/")
        assert run.base == stretched.config("laptop", method, 3).base
        (tuning, *_) = removal_of(run).each
        assert (tuning.length, tuning.batch_size) == (run.training.length, run.training.batch_size)
        assert tuning.targets == run.training.targets // 4 and not tuning.weight_decay
        for other in (key for key in runs if key.startswith(f"{method}/")):
            allowed = ("method", "tunings", "removed.")
            assert all(key.startswith(allowed) for key in differing(run, runs[other]))


@pytest.mark.parametrize("cell", REMOVED.smoke)
def test_a_record_of_a_removal_has_what_its_rules_ask_for_and_its_rate_is_the_best_inside(cell):
    config = smoke("removed_text", cell, 2)
    record = REMOVED.run(config)
    assert record.metrics.keys() >= asked_of("removed_text") | {f"slowed/{k}x" for k in (2, 4, 8, 16)}
    tunings = {
        row["learning_rate"]: row["val_bits_per_byte"] for row in record.rows if row["kind"] == "tuning"
    }
    assert record.metrics["tuning_rate"] == min(tunings, key=tunings.get) and len(tunings) == 2
    start, measure = trained_once(config.base), config.of(removed.Removed)
    tuned, _ = measure.tune(config, start, measure.tunings[-1], device="cpu")
    paid = lm.score(config, tuned, "validation", "cpu").bits_per_byte
    assert list(tunings.values())[-1] == pytest.approx(paid, abs=1e-6)


def test_a_model_written_out_begins_where_the_separated_one_is_and_leaves_the_blocks():
    written, kept = (smoke("opened_text", cell, 2) for cell in reversed(opened.CELLS))
    assert differing(written, kept) <= {"method", "opened"}
    one, other = OPENED.run(written), OPENED.run(kept)
    assert one.metrics.keys() >= asked_of("opened_text")
    assert one.metrics["before_bits_per_byte"] == other.metrics["before_bits_per_byte"]
    first = [next(row for row in two.rows if row["kind"] == "tuning") for two in (one, other)]
    assert first[0]["first_bits_per_byte"] == pytest.approx(first[1]["first_bits_per_byte"], abs=1e-5)
    assert first[0]["last_bits_per_byte"] != first[1]["last_bits_per_byte"]
    beside = {name: share for name, share in one.metrics.items() if name.startswith("beside/")}
    assert beside.keys() == {f"beside/{kind}" for kind in ("value", "output", "up", "down")}
    assert all(0 < share < 0.5 for share in beside.values())
    assert not any(name.startswith("beside/") for name in other.metrics)
    assert one.metrics["parameters"] > other.metrics["parameters"]

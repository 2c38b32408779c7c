"""The cost of reading: every reader reads the same text, whole and in quarters, and nothing else is timed."""

from dataclasses import replace

import pytest
import torch

from sepnb import experiments
from sepnb.experiments import reading_cost as cost
from sepnb.models import LanguageModel

COST = experiments.get("reading_cost")
SMOKE = {cell.reader: cell for cell in COST.grid("smoke")}


@pytest.mark.parametrize("reader", cost.READERS)
def test_whole_and_quarters_are_readings_of_the_same_tokens_by_the_same_weights(reader, monkeypatch):
    cell, made = SMOKE[reader], []
    built = cost.built
    monkeypatch.setattr(cost, "built", lambda *given: made.append(built(*given)) or made[-1])
    steps = cell.steps()
    assert list(steps) == ["whole", "quarters", *(["reference"] if reader != "sinusoidal" else [])]
    whole, quarters = (steps[name]() for name in ("whole", "quarters"))
    assert whole.shape == (1, 128, 256) and quarters.shape == (4, 32, 256)
    assert not whole.requires_grad
    torch.testing.assert_close(whole[0, :32], quarters[0], rtol=1e-4, atol=1e-4)
    assert all(map(torch.equal, made[0].parameters(), made[1].parameters()))
    assert not any(model.training for model in made)


def test_tables_made_beforehand_give_the_logits_of_the_model_that_makes_them(monkeypatch):
    own = SMOKE["strict"].steps()["whole"]()
    calls, original = [], LanguageModel.position_tables
    monkeypatch.setattr(
        LanguageModel, "position_tables", lambda *given: calls.append(given) or original(*given)
    )
    steps = SMOKE["strict-tables"].steps()
    assert len(calls) == 2  # for the text and for its quarters
    torch.testing.assert_close(steps["whole"](), own, rtol=1e-4, atol=1e-4)
    steps["quarters"]()
    assert len(calls) == 2


def test_a_record_holds_growth_speed_and_their_counted_limits():
    laptop = {c.method: c for c in COST.grid("laptop")}
    for reader, length, low, high in (
        ("rope", 32768, 3.4, 4),
        ("rope", 2048, 1.4, 2.0),
        ("rope-window", 32768, 1, 1.01),
    ):
        cell = laptop[f"{reader}-at-{length}"]
        assert low < cell.products(reader, length) / cell.products(reader, length // 4) < high
    tables = laptop["strict-tables-at-32768"]
    saved = tables.products("sinusoidal", 32768) / tables.products("strict-tables", 32768)
    assert saved == pytest.approx(4 / 3, rel=0.03)  # a quarter of the heads
    metrics = COST.run(SMOKE["separated"]).metrics
    assert metrics["speed_limit"] > 1 and metrics["growth_limit"] > 1
    assert metrics["growth_lower"] <= metrics["growth"] <= metrics["growth_upper"]
    assert metrics["reading_s"] > 0
    assert "speed" not in COST.run(SMOKE["sinusoidal"]).metrics


def test_memory_is_that_of_one_reading_and_grows_with_the_text_but_not_with_its_square(monkeypatch):
    peaks = {}
    for reader in ("sinusoidal", "strict-tables"):
        for length in (512, 1024):
            cell = replace(SMOKE[reader], length=length)
            times = dict.fromkeys(("whole", "quarters", "reference"), [1.0] * 9)
            steps = {"whole": cell.reading(reader, cell.tokens(cell.length, "cpu"))}
            peaks[reader, length] = cell.counted(times, steps)["peak_mb"]
    for reader in ("sinusoidal", "strict-tables"):
        assert 1.8 < peaks[reader, 1024] / peaks[reader, 512] < 2.2
    assert peaks["strict-tables", 1024] < peaks["sinusoidal", 1024]
    assert peaks["sinusoidal", 1024] > 1024 * 256 * 4 / 1e6  # the logits alone

"""From the records of a screening to the rate of every run: nothing missing, nothing diverged, no typing."""

import numpy as np
import pandas as pd
import pytest

from sepnb import experiments
from sepnb.experiments import images, seqpe_stream
from sepnb.experiments.screening import at_an_end, best_rates, rates_of, require_rate, screened_rate


def screening(**losses: list[float]) -> pd.DataFrame:
    rows = [
        {"method": name, "status": "ok", "learning_rate": rate, "val_bits_per_byte": loss}
        for name, own in losses.items()
        for rate, loss in zip((0.1, 0.2, 0.4), own, strict=True)
    ]
    return pd.DataFrame(rows)


def test_the_best_rate_is_the_one_with_the_least_validation_loss():
    table = screening(a=[2.5, 2.4, 2.6], b=[2.3, 2.4, np.nan], c=[3.0, 2.9, 2.8])
    assert best_rates(table) == {"a": 0.2, "b": 0.1, "c": 0.4}


def test_an_incomplete_screening_chooses_nothing():
    table = screening(a=[2.5, 2.4, 2.6])
    with pytest.raises(ValueError, match="1 of 3 runs of the screening are missing"):
        best_rates(table.assign(status=["ok", "not run", "ok"]))
    with pytest.raises(ValueError, match="1 of 3 runs of the screening are missing or stale"):
        best_rates(table.assign(status=["ok", "ok", "stale"]))
    with pytest.raises(ValueError, match="b diverged at every rate"):
        best_rates(screening(a=[2.5, 2.4, 2.6], b=[np.nan] * 3))


def test_a_rate_at_an_end_is_told_and_one_beyond_it_tried_until_there_is_none():
    table = screening(a=[2.5, 2.4, 2.6], b=[2.3, 2.4, np.nan], c=[3.0, 2.9, 2.8], d=[np.nan, 2.0, np.nan])
    assert at_an_end(table) == {"b": 0.1, "c": 0.4}
    beyond = {"b": (0.05,), "c": (0.8, 1.6)}
    tried = {name: rates_of(name, (0.1, 0.2, 0.4), beyond) for name in "abc"}
    assert tried == {"a": [0.1, 0.2, 0.4], "b": [0.05, 0.1, 0.2, 0.4], "c": [0.1, 0.2, 0.4, 0.8, 1.6]}
    more = pd.DataFrame(
        {"method": name, "status": "ok", "learning_rate": rate, "val_bits_per_byte": 9.0}
        for name, rates in beyond.items()
        for rate in rates
    )
    assert not at_an_end(pd.concat([table, more]))


def test_the_loss_may_have_another_name():
    table = screening(a=[2.5, 2.4, 2.6]).rename(columns={"val_bits_per_byte": "val_nats"})
    assert best_rates(table, "val_nats") == {"a": 0.2}


def test_a_profile_takes_its_own_rates_then_the_laptops_and_what_was_not_screened_the_one_that_is_given():
    rates = {"laptop": {"a": 0.1, "b": 0.2}, "gpu": {"a": 0.4}}
    assert screened_rate(rates, "gpu", "a", 9.0) == 0.4
    assert screened_rate(rates, "gpu", "b", 9.0) == 9.0  # a screening is taken whole
    assert screened_rate(rates, "smoke", "b", 9.0) == 0.2
    assert screened_rate({}, "laptop", "a", 9.0) == 9.0


def test_what_will_be_published_is_not_trained_at_a_rate_that_nobody_screened():
    rates = {"laptop": {"a": 0.1}}
    for profile in ("laptop", "gpu"):
        require_rate(rates, profile, "a", "the_screen")
        with pytest.raises(
            ValueError, match=f"'b' is written down for '{profile}'; run `sepnb run the_screen"
        ):
            require_rate(rates, profile, "b", "the_screen")
    require_rate({}, "smoke", "a", "the_screen")


@pytest.mark.parametrize(("name", "module"), [("images", images), ("seqpe_stream", seqpe_stream)])
def test_a_grid_without_rates_refuses_to_begin(name, module, monkeypatch):
    monkeypatch.setattr(module, "LEARNING_RATES", {})
    experiment = experiments.get(name)
    for config in experiment.grid("laptop", seeds=[1]):
        with pytest.raises(ValueError, match=r"no learning rate of .* is written down"):
            experiment.run(config)

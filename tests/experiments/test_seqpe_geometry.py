"""The experiment `seqpe_geometry`: one change each, encoders trained on positions alone, windows apart."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.experiments import seqpe_geometry as geo
from sepnb.experiments.seqpe_geometry import METHODS, SeqPEGeometryRun
from sepnb.seqpe import digits
from sepnb.seqpe.geometry import geometry

from .smoke_runs import assert_same

EXPERIMENT = experiments.get("seqpe_geometry")


def smoke(variant: str = geo.BOTH, seed: int = 1) -> SeqPEGeometryRun:
    return SeqPEGeometryRun("seqpe_geometry", "smoke", variant, seed)


@pytest.fixture
def short(monkeypatch, one_thread):
    """Eight steps are the same code as thirty."""
    monkeypatch.setitem(geo.STEPS, "smoke", 8)


@pytest.mark.parametrize("variant", [name for name in METHODS if name != geo.BOTH])
def test_a_variant_differs_from_the_first_in_what_it_declares(variant):
    declared, first, own = METHODS[variant], smoke(), smoke(variant)
    assert own.encoder == first.encoder | dict(declared.model)
    changed = {
        field.name
        for field in dataclasses.fields(own.losses)
        if getattr(own.losses, field.name) != getattr(first.losses, field.name)
    }
    numerals = {"candidates"} if "kinds" in declared.training or "base" in declared.model else set()
    assert changed == declared.training.keys() - {"kinds"} | numerals
    assert own.losses.candidates.base == own.encoder["base"]


@pytest.mark.parametrize("base", [2, 10, 16])
def test_windows_are_aligned_seen_and_far_as_their_groups_say(base):
    """An aligned window has the low digits of the trained one; a misaligned one stands beside it."""
    places = next(k for k in range(20) if base**k >= geo.LENGTH)
    within = torch.arange(geo.LENGTH)
    low = digits(within, base=base, width=15 if base > 2 else 20)[:, -places:]
    groups = geo.starts(base)
    for group, starts in groups.items():
        for start in starts:
            here = digits(start + within, base=base, width=15 if base > 2 else 20)[:, -places:]
            assert torch.equal(here, low) == (not group.startswith("misaligned"))
            assert (start >= geo.LARGEST) == group.endswith("never seen")
            assert start == 0 or start >= geo.LENGTH
            assert start + geo.LENGTH <= geo.LARGEST or start >= geo.LARGEST
    own = [geo.initial(smoke(variant)) for variant in METHODS]
    far = max(start for starts in groups.values() for start in starts)
    assert all(min(one.highest) >= far + geo.LENGTH - 1 for one in own if one.base == base)
    assert geo.starts(10)["aligned"] == geo.SEEN and geo.starts(2)["misaligned"][0] % 2 == 1


def test_a_language_of_one_letter_teaches_nothing_and_the_losses_do(short):
    config = smoke()
    encoder, curve = geo.trained(config)
    assert len(curve) == 8 and np.isfinite(curve).all()
    before = geo.initial(config).state_dict()
    assert any(not torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    logits = geo.PositionsOnly(encoder)(torch.zeros(2, 3, dtype=torch.int64))
    assert logits.shape == (2, 3, 1) and not logits.requires_grad and (logits == 0).all()


def test_a_run_repeats_exactly_and_its_rows_are_its_metrics(short):
    one, again = EXPERIMENT.run(smoke()), EXPERIMENT.run(smoke())
    assert_same(one, again)
    curve = [row["loss"] for row in one.rows if row["kind"] == "curve"]
    assert curve[:5] == pytest.approx(one.fingerprint["first_losses"], rel=1e-5)
    for state, prefix in (("drawn", "drawn/"), ("trained", "")):
        windows = [row for row in one.rows if row["kind"] == "window" and row["state"] == state]
        begun = [(group, at) for group, starts in geo.starts(10).items() for at in starts]
        assert [(row["group"], row["start"]) for row in windows] == [*begun, ("spread", 0)]
        far = [row["likeness"] for row in windows if row["group"] == "misaligned"]
        assert one.metrics[f"{prefix}likeness/misaligned"] == pytest.approx(np.mean(far))
        assert one.metrics[f"{prefix}likeness/trained"] == 1.0
        assert f"{prefix}order/spread" in one.metrics and f"{prefix}likeness/spread" not in one.metrics
    assert one.rows[:16] == geo.windows_of(geo.initial(smoke()), "drawn")
    assert EXPERIMENT.run(smoke(seed=2)).metrics["order/trained"] != one.metrics["order/trained"]


def test_a_window_is_looked_at_as_its_embeddings_are():
    encoder = geo.initial(smoke())
    rows, at = geo.windows_of(encoder, "drawn"), torch.arange(geo.LENGTH)
    for group, step in (("misaligned", 1), ("spread", geo.STEP)):
        row = next(row for row in rows if row["group"] == group)
        with torch.no_grad():
            expected = geometry(encoder.plain(row["start"] + step * at), at)
        assert row["order"] == pytest.approx(expected.order, abs=1e-4)
        assert row["norm"] == pytest.approx(expected.norm, rel=1e-4)
        assert row["distance"] == pytest.approx(expected.distance, abs=1e-4)
    assert geo.STEP * geo.LENGTH <= geo.LARGEST < (geo.STEP + 1) * geo.LENGTH


def test_embeddings_that_are_all_alike_leave_out_what_cannot_be_measured():
    encoder = geo.initial(smoke())
    torch.nn.init.zeros_(encoder.output.weight), torch.nn.init.ones_(encoder.output.bias)
    with np.errstate(all="ignore"), pytest.warns():
        rows = geo.windows_of(encoder, "trained")
    assert all("order" not in row and "likeness" not in row and row["norm"] == 4.0 for row in rows)
    assert geo.metrics_of(rows, "trained").keys() == {
        f"{measure}/{group}" for measure in ("adjacency", "norm") for group in (*geo.starts(10), "spread")
    }


@pytest.mark.parametrize("variant", [geo.BOTH, "base-2"])
def test_digits_that_positions_share_make_an_untrained_encoder_look_alike(variant):
    """The control of the experiment: aligned windows keep the low digits, windows beside them do not."""
    rows = [row for seed in range(3) for row in geo.windows_of(geo.initial(smoke(variant, seed)), "drawn")]
    found = geo.metrics_of(rows, "drawn")
    assert found["drawn/likeness/aligned"] > found["drawn/likeness/misaligned"] + 0.2

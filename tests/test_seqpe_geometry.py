"""The experiment `seqpe_geometry`: one change each, encoders trained on positions alone, windows apart."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.experiments import seqpe_geometry as geo
from sepnb.experiments.seqpe_geometry import VARIANTS, SeqPEGeometryRun
from sepnb.seqpe.geometry import geometry
from sepnb.training import Diverged

EXPERIMENT = experiments.get("seqpe_geometry")
PUBLISHED = ("laptop", "gpu")


def smoke(variant: str = geo.BOTH, seed: int = 1) -> SeqPEGeometryRun:
    return SeqPEGeometryRun("smoke", variant, seed)


@pytest.fixture
def short(monkeypatch, one_thread):
    """Eight steps are the same code as thirty."""
    monkeypatch.setitem(geo.STEPS, "smoke", 8)


def test_every_variant_has_six_seeds_and_the_grid_runs_seed_by_seed():
    for profile in PUBLISHED:
        grid = EXPERIMENT.grid(profile)
        assert [run.seed for run in grid] == sorted(run.seed for run in grid)
        for variant in VARIANTS:
            assert [run.seed for run in grid if run.variant == variant] == [1, 2, 3, 4, 5, 6]
        assert len({run.key for run in grid}) == len(grid) == 6 * len(VARIANTS)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != geo.BOTH])
def test_a_variant_differs_from_the_first_in_what_it_declares(variant):
    declared, first, own = VARIANTS[variant], smoke(), smoke(variant)
    assert {k: v for k, v in own.encoder.items() if first.encoder.get(k) != v} == {
        k: v for k, v in declared.encoder.items() if first.encoder.get(k) != v
    }
    changed = {
        field.name
        for field in dataclasses.fields(own.losses)
        if getattr(own.losses, field.name) != getattr(first.losses, field.name)
    }
    assert changed <= {*declared.losses, *(["candidates"] if declared.kinds else [])}
    assert changed or declared.encoder or not declared.trained


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_encoder_writes_the_farthest_window(variant):
    farthest = max(start for starts in geo.STARTS.values() for start in starts) + geo.LENGTH - 1
    assert min(geo.drawn(smoke(variant)).highest) >= farthest


def test_windows_are_aligned_seen_and_far_as_their_groups_say():
    for group, starts in geo.STARTS.items():
        for start in starts:
            assert (start % 1000 == 0) == (not group.startswith("misaligned"))
            assert (start >= geo.LARGEST) == group.endswith("never seen")
            assert start == 0 or start >= geo.LENGTH
            assert (start + geo.LENGTH <= geo.LARGEST) or start >= geo.LARGEST


def test_a_language_of_one_letter_teaches_nothing_and_the_losses_do(short):
    config = smoke()
    encoder, curve = geo.trained(config)
    assert len(curve) == 8 and np.isfinite(curve).all()
    before = geo.drawn(config).state_dict()
    assert any(not torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    logits = geo.PositionsOnly(encoder)(torch.zeros(2, 3, dtype=torch.int64))
    assert logits.shape == (2, 3, 1) and not logits.requires_grad and (logits == 0).all()


def test_the_encoder_that_is_not_trained_is_as_drawn(short):
    encoder, curve = geo.trained(smoke("drawn"))
    assert curve == []
    for one, other in zip(encoder.parameters(), geo.drawn(smoke()).parameters(), strict=True):
        assert torch.equal(one, other)
    assert smoke("drawn").resolved()["training"] is None


def test_a_run_repeats_exactly_and_its_rows_are_its_metrics(short):
    one, again = EXPERIMENT.run(smoke()), EXPERIMENT.run(smoke())
    assert one.rows == again.rows and one.fingerprint == again.fingerprint
    assert {k: v for k, v in one.metrics.items() if k != "train_cpu_s"} == {
        k: v for k, v in again.metrics.items() if k != "train_cpu_s"
    }
    curve = [row["loss"] for row in one.rows if row["kind"] == "curve"]
    assert curve[:5] == pytest.approx(one.fingerprint["first_losses"], rel=1e-5)
    windows = [row for row in one.rows if row["kind"] == "window"]
    assert [row["start"] for row in windows] == [at for starts in geo.STARTS.values() for at in starts]
    far = [row["likeness"] for row in windows if row["group"] == "misaligned"]
    assert one.metrics["likeness/misaligned"] == pytest.approx(np.mean(far))
    assert one.metrics["likeness/trained"] == 1.0
    assert EXPERIMENT.run(smoke(seed=2)).metrics["order/trained"] != one.metrics["order/trained"]


def test_a_window_is_looked_at_as_its_embeddings_are():
    encoder = geo.drawn(smoke())
    row = next(row for row in geo.looked_at(encoder) if row["start"] == 384)
    with torch.no_grad():
        expected = geometry(encoder.plain(384 + torch.arange(geo.LENGTH)), torch.arange(geo.LENGTH))
    assert row["order"] == pytest.approx(expected.order, abs=1e-4)
    assert row["norm"] == pytest.approx(expected.norm, rel=1e-4)


def test_a_run_that_diverges_is_kept_without_measures(short, monkeypatch):
    monkeypatch.setattr(geo, "train", lambda *a, **k: (_ for _ in ()).throw(Diverged([float("nan")], 1.0)))
    monkeypatch.setattr(geo.SeqPEGeometry, "fingerprint", lambda *a, **k: {})
    record = EXPERIMENT.run(smoke())
    assert record.metrics["diverged_at_step"] == 0 and record.rows == []


def test_digits_that_positions_share_make_an_untrained_encoder_look_alike():
    """The control of the experiment: shifts by whole thousands keep three digits, others none."""
    rows = [row for seed in range(3) for row in geo.looked_at(geo.drawn(smoke("drawn", seed)))]
    found = geo.metrics_of(rows)
    assert found["likeness/aligned"] > found["likeness/misaligned"] + 0.2


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match="unknown variant 'all'; use one of both, contrastive"):
        SeqPEGeometryRun("smoke", "all", 1)

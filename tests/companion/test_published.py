"""Records are replayed: equal ones stand, changed ones are marked, and the mark is taken back."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sepnb.companion.check import contradictions, published
from sepnb.data.dataset import DataSet
from sepnb.records.store import Record, Store


@pytest.fixture
def store(fake, checkout: Path) -> Store:
    """A published store with the four records of the grid."""
    store = Store()
    for config in fake().grid("laptop"):
        store.write(fake().run(config))
    return store


def statuses(replays: list) -> dict[str, str]:
    return {replay.key: replay.status for replay in replays}


def test_records_that_begin_as_they_did_are_equal(fake, store) -> None:
    replays = published.check([fake()], side_by_side=2)
    assert statuses(replays) == dict.fromkeys(("a-seed1", "a-seed2", "b-seed1", "b-seed2"), "equal")
    assert published.exit_status(replays) == 0


def test_a_changed_computation_is_marked_and_the_mark_is_taken_back(fake, store) -> None:
    replays = published.check([fake(drift=2e-4)])
    assert set(statuses(replays).values()) == {"stale"} and published.exit_status(replays) == 1
    why = store.load("laptop", "fake")["a-seed1"].stale
    assert why is not None and why.startswith(
        "first_losses[1] was 6.4, is 6.40128 (tolerance 0.0001 relative)"
    )
    assert set(statuses(published.check([fake()])).values()) == {"equal"}
    assert store.load("laptop", "fake")["a-seed1"].stale is None
    assert not (store.root / "laptop" / "stale.json").exists()


@pytest.mark.attack("a record whose settings were edited and signed again")
def test_a_config_that_is_not_that_of_the_grid_is_stale_whatever_was_computed(fake, store) -> None:
    """A name is a digest of the config, and nothing but this holds a record to it: any steps would do."""
    record = store.load("laptop", "fake")["a-seed1"]
    store.write(replace(record, config=record.config | {"steps": 10**9}))
    replays = {replay.key: replay for replay in published.check([fake()])}
    assert statuses(list(replays.values()))["a-seed2"] == "equal"
    assert replays["a-seed1"].status == "stale" and published.exit_status(list(replays.values())) == 1
    told = "its config is not that of the grid: steps is 1000000000 there and absent here"
    assert replays["a-seed1"].detail == told == store.load("laptop", "fake")["a-seed1"].stale
    store.write(replace(record, config={}))
    assert "method is absent there and 'a' here" in str(published.check([fake()])[0])


@pytest.mark.parametrize(("device", "rounding", "change"), [("cpu", 5e-5, 2e-4), ("cuda", 1e-3, 1e-2)])
def test_each_device_has_its_own_tolerance(fake, checkout, device: str, rounding, change) -> None:
    Store().write(fake().run(fake().grid("laptop")[0], device=device))
    assert set(statuses(published.check([fake(drift=rounding)])).values()) == {"equal"}
    assert set(statuses(published.check([fake(drift=change)])).values()) == {"stale"}


def test_a_replay_that_fails_makes_the_record_stale(fake, store) -> None:
    config = fake(methods=("broken",)).grid("laptop", [1])[0]
    record = store.load("laptop", "fake")["b-seed1"]
    store.write(replace(record, key=config.key, config=config.resolved()))
    replays = published.check([fake(methods=("a", "b", "broken"))])
    assert statuses(replays) | {"broken-seed1": "stale"} == statuses(replays)
    assert "RuntimeError: no such layer" in next(r.detail for r in replays if r.key == "broken-seed1")


def test_a_sample_is_the_same_one_each_time_and_can_leave_no_trace(fake, store) -> None:
    first, second = (published.check([fake(drift=0.1)], sample=2, mark=False) for _ in range(2))
    assert len(first) == 2 and statuses(first) == statuses(second)
    assert set(statuses(first).values()) == {"stale"}
    assert not (store.root / "laptop" / "stale.json").exists()


def test_more_seeds_than_the_grid_declares_are_replayed_and_lost_runs_are_orphans(fake, store) -> None:
    store.write(fake().run(fake().grid("laptop", [9])[0]))
    found = statuses(published.check([fake(methods=("a",))]))
    assert found["a-seed9"] == "equal"
    assert found["b-seed1"] == found["b-seed2"] == "orphaned"


def test_data_that_is_not_at_hand_is_named_with_the_remedy(fake, store, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(DataSet, "status", lambda self: "missing")
    reading = fake(needs=("eltec-eng",))
    for config in reading.grid("laptop"):
        store.write(reading.run(config))
    replays = published.check([reading])
    assert set(statuses(replays).values()) == {"not replayed"} and published.exit_status(replays) == 2
    assert "data set eltec-eng is missing: run `sepnb data eltec-eng`" in replays[0].detail


def test_nothing_checked_is_no_success(fake, store) -> None:
    assert published.exit_status([]) == 2
    assert published.exit_status(published.check([fake(methods=("c",))])) == 2, "all are orphaned"


# --- what a record tells twice


TEXT = Record(
    "in_window",
    "laptop",
    "rope",
    {"seed": 1, "text": {}, "training": {"steps": 3, "batch_size": 2, "length": 5, "learning_rate": 0.1}},
    {"bits_per_byte": 2.0, "test_bytes": 30, "learning_rate": 0.1, "moved-far": 0.5, "canvas-9/grow": 0.25}
    | {"accuracy/native/2x": 0.75, "val_accuracy": 0.5, "ratio": 1.5, "steps": 3},
    [
        {"kind": "document", "bits": 40.0, "bytes": 10},
        {"kind": "document", "bits": 20.0, "bytes": 20},
        {"kind": "learning", "accuracy": 0.5},
        {"kind": "distance", "reader": "native", "times": 2, "accuracy": 1.0, "n": 10},
        {"kind": "distance", "reader": "native", "times": 2, "accuracy": 0.5, "n": 10},
        {"kind": "moved", "move": "far", "accuracy": 0.5},
        {"kind": "view", "change": "canvas", "grid": 9, "rule": "grow", "accuracy": 0.25},
        *({"kind": "pair", "ratio": ratio} for ratio in (1.0, 1.5, 9.0)),
    ],
    {},
    {"seed": 1, "commit": "a", "data": {"novels": "d1"}, "bytes_seen": 30},
)


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ("provenance", {"data": {"novels": "d2"}}, "the digest of its data is"),
        ("provenance", {"commit": "c"}, "its commit is 'c', and the history has None"),
        ("provenance", {"bytes_seen": 31}, "bytes_seen is 31, and steps x batch x length are 30"),
        *(
            ("metrics", {name: value + 1}, f"{name} is {value + 1}, and ")
            for name, value in TEXT.metrics.items()
        ),
        ("metrics", {"bits_per_byte": 2.00001}, "bits_per_byte is 2.00001, and its rows give 2.0"),
        ("rows", [{"kind": "document", "bits": "2", "bytes": 1}], "another form than a run gives them"),
        ("rows", [{"kind": "document", "bits": 2.0, "bytes": 0}], "test_bytes|another form"),
        ("config", {"training": {"steps": 4}}, "steps is 3, and its config says 4|another form"),
    ],
)
def test_a_record_that_contradicts_itself_is_told_by_one_of_its_two_numbers(part, changes, message) -> None:
    of = {"data": {"novels": "d1"}, "commits": {"a", "b"}}
    assert contradictions.of(TEXT, **of) is None
    assert contradictions.of(TEXT, of["data"], None) is None, "without a history"
    changed = changes if part == "rows" else getattr(TEXT, part) | changes
    assert re.search(message, contradictions.of(replace(TEXT, **{part: changed}), **of))


def test_a_record_that_contradicts_itself_is_stale(fake, store) -> None:
    record = store.load("laptop", "fake")["a-seed1"]
    store.write(replace(record, provenance=record.provenance | {"data": {"novels": "another"}}))
    replays = published.check([fake()])
    assert statuses(replays) == {"a-seed1": "stale"} | dict.fromkeys(
        ("a-seed2", "b-seed1", "b-seed2"), "equal"
    )
    assert "it contradicts itself: the digest of its data" in store.load("laptop", "fake")["a-seed1"].stale

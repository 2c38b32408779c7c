"""Published runs are trained again: what a checksum and the first steps cannot see is seen."""

from dataclasses import dataclass, field, replace

import pytest

from sepnb.companion.check import published, retrained
from sepnb.records.provenance import processor_name
from sepnb.records.store import Record, Store


@pytest.fixture
def texts(fake) -> type:
    """A fake experiment on texts: its runs have losses per byte, `off` by so much."""

    @dataclass(frozen=True)
    class Texts(fake):
        off: float = 0.0
        found: dict | None = field(default=None, hash=False)

        def run(self, config, *, device="cpu", progress=None) -> Record:
            record = super().run(config, device=device, progress=progress)
            found = self.found or {"val_bits_per_byte": 2.0 + self.off, "train_cpu_s": 3.0}
            return replace(record, metrics=found, provenance=record.provenance | {"cpu_s": 9.0})

    return Texts


@pytest.fixture
def store(texts, checkout) -> Store:
    store = Store()
    for config in texts().grid("laptop"):
        store.write(texts().run(config))
    return store


@pytest.mark.attack("a number written into a record that is signed again")
def test_a_number_that_somebody_wrote_into_a_record_is_found(texts, store) -> None:
    """Signed again, it passes the replay of the first steps."""
    record = store.load("laptop", "fake")["a-seed1"]
    store.write(replace(record, metrics=record.metrics | {"val_bits_per_byte": 1.9}))
    assert {one.status for one in published.check([texts()], mark=False)} == {"equal"}
    ended = retrained.check(retrained.drawn([texts()], 9))
    assert {one.key: one.status for one in ended} == {
        **dict.fromkeys(("a-seed2", "b-seed1", "b-seed2"), "equal"),
        "a-seed1": "stale",
    }
    told = next(one.detail for one in ended if one.status == "stale")
    assert told == "val_bits_per_byte is 1.9000 in the record and 2.0000 here (allowed 0.03)"
    assert published.exit_status(ended) == 1
    assert store.load("laptop", "fake")["a-seed1"].stale is None, "it judges, and marks nothing"


@pytest.mark.parametrize("kind", ["accuracy/native/8x", "val_accuracy", "adjacency/trained", "parameters"])
def test_on_its_own_processor_a_record_of_any_kind_is_drawn_and_held_to_its_own_metric(texts, store, kind):
    import torch

    here = {"device_name": processor_name(), "torch": torch.__version__}
    measured = texts(found={kind: 0.5, "train_cpu_s": 3.0})
    for config in measured.grid("laptop"):
        record = measured.run(config)
        store.write(replace(record, provenance=record.provenance | here))
    record = store.load("laptop", "fake")["a-seed1"]
    store.write(replace(record, metrics={kind: 0.502, "train_cpu_s": 2.0}))
    ended = {one.key: one for one in retrained.check(retrained.drawn([measured], 9))}
    assert len(ended) == 4 and [key for key, one in ended.items() if one.status == "stale"] == ["a-seed1"]
    told = f"{kind} is 0.5020 in the record and 0.5000 here (allowed 0.001)"
    assert ended["a-seed1"].detail == told, "times may differ"
    assert retrained.drawn([replace(measured, alone=True)], 9) == [], "no two times are alike"


def test_what_a_text_alone_gives_may_be_missing_in_the_run_of_today_and_nothing_else(texts):
    stored = {"val_bits_per_byte": 2.0, "unigram_bits_per_byte": 4.0}
    assert retrained.differs(stored, {"val_bits_per_byte": 2.0}, 0.03) is None
    assert "unigram" in retrained.differs(stored, stored | {"unigram_bits_per_byte": 4.1}, 0.03)
    assert "the run gives" in retrained.differs(stored, {"unigram_bits_per_byte": 4.0}, 0.03)


@pytest.mark.parametrize(("off", "status"), [(0.02, "equal"), (0.04, "stale"), (float("nan"), "stale")])
def test_rounding_is_allowed_and_no_more(texts, store, off: float, status: str) -> None:
    ended = retrained.check(retrained.drawn([texts(off=off)], 9))
    assert {one.status for one in ended} == {status}


def test_a_run_that_fails_ends_itself_only(texts, store) -> None:
    record = store.load("laptop", "fake")["b-seed1"]
    broken = texts(methods=("a", "broken"))
    config = broken.grid("laptop", [1])[1]
    store.write(replace(record, key=config.key, config=config.resolved()))
    ended = {one.key: one for one in retrained.check(retrained.drawn([broken], 9))}
    assert ended["broken-seed1"].detail == "RuntimeError: no such layer"
    assert ended["a-seed1"].status == ended["a-seed2"].status == "equal"


def test_each_draw_names_its_runs_and_names_them_again(texts, store) -> None:
    names = {draw: [one.key for one in retrained.drawn([texts()], 2, draw=draw)] for draw in "12345678"}
    assert names["1"] == [one.key for one in retrained.drawn([texts()], 2, draw="1")]
    assert {key for drawn in names.values() for key in drawn} == {"a-seed1", "a-seed2", "b-seed1", "b-seed2"}


def test_what_cannot_be_compared_is_not_drawn(texts, store, monkeypatch) -> None:
    store.mark_stale("laptop", "fake", "a-seed1", "init changed")
    record = store.load("laptop", "fake")["a-seed2"]
    store.write(replace(record, provenance=record.provenance | {"cpu_s": retrained.LONGEST + 1}))
    store.write(replace(store.load("laptop", "fake")["b-seed1"], metrics={"accuracy": 1.0}))
    assert [one.key for one in retrained.drawn([texts()], 9)] == ["b-seed2"]
    assert retrained.drawn([texts(methods=("a",))], 9) == []
    from sepnb.data import registry

    missing = type("Absent", (), {"status": lambda self: "missing"})
    monkeypatch.setattr(registry, "get", lambda name: missing())
    assert retrained.drawn([texts(needs=("eltec-eng",))], 9) == []

"""The store gives back what a run wrote, and refuses everything else with the path and the reason."""

import contextlib
import dataclasses
import itertools
import json
import os
import random
import stat
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatch
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sepnb import paths
from sepnb.records.store import Record, RecordError, Store, canonical, digest

from ..shared import MADE

RECORD = Record(
    experiment="in_window",
    profile="laptop",
    key="rope-seed1",
    config={"model": {"streams": {"sem": 128}, "bias": False}, "seed": 1, "text": None},
    metrics={"bits_per_byte": 2.125, "parameters": 788_480, "tiny": 1e-300, "third": 1 / 3},
    rows=[{"kind": "document", "document": "Émile", "bits": 0.1}, {"kind": "position", "start": 0}],
    fingerprint={"first_losses": [5.5, 5.25]},
    provenance={"commit": "abc", "dirty": False, "seed": 1, **MADE},
)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def published(tmp_path, monkeypatch) -> Store:
    """The published store of a checkout of its own."""
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    monkeypatch.delenv("SEPNB_RESULTS", raising=False)
    return Store()


def with_provenance(**changes) -> Record:
    return dataclasses.replace(RECORD, provenance={**RECORD.provenance, **changes})


def fault(call: Callable, *given: Any) -> str:
    """What a call says that refuses a record."""
    with pytest.raises(RecordError) as refused:
        call(*given)
    return str(refused.value)


def signed(path: Path, **changes) -> None:
    """Change a record and give it the right checksum: what a careful forger or an older program would do."""
    content = json.loads(path.read_text()) | changes
    content = {key: value for key, value in content.items() if key != "checksum" and value != "absent"}
    path.write_text(json.dumps({**content, "checksum": digest(content)}))


# --- what is written comes back


def test_a_record_comes_back_as_it_was_written_and_a_second_one_replaces_it(store):
    path = store.write(RECORD)
    assert path == store.root / "laptop" / "in_window" / "rope-seed1.json"
    assert store.read(path) == RECORD
    assert store.load("laptop", "in_window") == {"rope-seed1": RECORD}
    assert store.load("gpu", "in_window") == store.load("laptop", "other") == {}
    text = path.read_text()  # sorted, a value a line: a change is a small difference
    assert text.endswith("}\n") and '\n "experiment": "in_window",\n' in text
    assert text == store.write(RECORD).read_text()
    better = dataclasses.replace(RECORD, metrics={"bits_per_byte": 2.0})
    store.write(better)
    assert store.load("laptop", "in_window") == {"rope-seed1": better}


@settings(max_examples=30)
@given(
    metrics=st.dictionaries(
        st.text(min_size=1), st.floats(allow_nan=False, allow_infinity=False) | st.integers()
    )
)
def test_every_number_and_name_comes_back_bit_for_bit(tmp_path_factory, metrics):
    store = Store(tmp_path_factory.mktemp("store"))
    path = store.write(dataclasses.replace(RECORD, metrics=metrics))
    assert store.read(path).metrics == metrics
    assert list(map(repr, store.read(path).metrics.values())) == [
        repr(metrics[key]) for key in sorted(metrics)
    ]


def test_the_default_store_is_the_published_one(published, tmp_path, monkeypatch):
    assert published.root == tmp_path / "results" and published.published
    assert not Store(tmp_path / "other").published
    monkeypatch.setenv("SEPNB_RESULTS", str(tmp_path / "elsewhere"))
    assert Store().root == tmp_path / "elsewhere" and not Store().published


def test_the_canonical_form_does_not_depend_on_the_order_of_keys():
    assert canonical({"b": 1, "a": [1.5, None]}) == '{"a":[1.5,null],"b":1}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1}) != digest({"a": 2, "b": 1.0})


# --- what is refused


def dropped(text: str, field: str) -> str:
    return json.dumps({key: value for key, value in json.loads(text).items() if key != field})


NOT_WHOLE = "not whole JSON"
EDITED = "its content does not match its checksum"
DAMAGED = {
    "empty": (lambda text: "", NOT_WHOLE),
    "one character": (lambda text: text[:1], NOT_WHOLE),
    "half": (lambda text: text[: len(text) // 2], NOT_WHOLE),
    "without its end": (lambda text: text[:-3], NOT_WHOLE),
    "no text": (lambda text: b"\xff\xfe" + text.encode(), NOT_WHOLE),
    "nested without end": (lambda text: "[" * 100_000, NOT_WHOLE),
    # A person would read the first number, the program the second, and the checksum is that of the second.
    "a key twice": (
        lambda text: text.replace('"bits_per_byte":', '"bits_per_byte": 1.0, "bits_per_byte":'),
        "not whole JSON (the key 'bits_per_byte' stands twice)",
    ),
    "without its checksum": (lambda text: dropped(text, "checksum"), EDITED),
    **{
        f"{new} for {old}": (lambda text, old=old, new=new: text.replace(old, new), EDITED)
        for old, new in (
            ("2.125", "2.124"),
            ("788480", "788481"),
            ("5.25", "5.250000001"),
            ('"bias": false', '"bias": true'),
            ('"dirty": false', '"dirty": true'),
            ("rope-seed1", "rope-seed2"),
        )
    },
    **{
        number: (lambda text, number=number: text.replace("2.125", number), "metrics.bits_per_byte is ")
        for number in ("NaN", "Infinity", "1e999")
    },
    **{text: (lambda _, text=text: text, "schema ") for text in ("[]", "3", '"record"', "null", "{}")},
}


@pytest.mark.attack("records that were cut or edited by hand, among them one with a key that stands twice")
@pytest.mark.parametrize("what", DAMAGED)
def test_what_was_cut_or_edited_is_refused_by_its_path_and_a_load_is_too(store, what):
    damage, said = DAMAGED[what]
    path = store.write(RECORD)
    before = path.read_text()
    after = damage(before)
    assert after != before
    path.write_bytes(after if isinstance(after, bytes) else after.encode())
    for read in ((store.read, path), (store.load, "laptop", "in_window")):
        assert fault(*read).startswith(f"{path}: {said}")


@pytest.mark.attack("bytes of a record that are changed, lost, doubled or moved at random")
def test_a_record_damaged_at_random_is_refused_or_says_the_same(store, tries):
    path = store.write(RECORD)
    whole, draw = path.read_bytes(), random.Random(7)
    for _ in range(tries(200, 5000)):
        start, stop = sorted(draw.choices(range(len(whole) + 1), k=2))
        head, part, tail = whole[:start], whole[start:stop], whole[stop:]
        place = draw.randrange(len(whole))
        flipped = whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :]
        noise = draw.randbytes(min(4, len(part)))
        path.write_bytes(draw.choice([flipped, head + tail, head + 2 * part + tail, head + noise + tail]))
        with contextlib.suppress(RecordError):
            assert store.read(path) == RECORD


@pytest.mark.attack("a record copied to another's place")
def test_a_record_in_another_place_is_refused(store):
    path = store.write(RECORD)
    for place in (
        "laptop/in_window/other.json",
        "gpu/in_window/rope-seed1.json",
        "laptop/lr_screen/rope-seed1.json",
    ):
        moved = store.root / place
        moved.parent.mkdir(parents=True, exist_ok=True)
        moved.write_bytes(path.read_bytes())
        assert fault(store.read, moved).startswith(f"{moved}: it says that it is laptop/in_window/rope-seed1")


@pytest.mark.attack("records of another form with the right checksum")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"schema": other}, f"schema {other!r}, this version reads 1") for other in (0, 2, "1", None)),
        ({"metrics": "absent"}, "metrics missing or unknown"),
        ({"more": 1}, "more missing or unknown"),
        ({"metrics": None}, "metrics is a NoneType and no dict"),
        ({"key": 1}, "key is a int and no str"),
        ({"rows": {}}, "rows is a dict and no list"),
        ({"rows": [1]}, "rows holds a int"),
        ({"metrics": {"bits_per_byte": "2.1"}}, "metrics holds a str"),
        ({"fingerprint": {"first_losses": 5.5}}, "fingerprint holds a float"),
        ({"provenance": {}}, "the seed of its provenance is None"),
        ({"provenance": {"seed": 1, "commit": ["abc"]}}, "the commit of its provenance is ['abc']"),
        *(
            ({"provenance": RECORD.provenance | {name: None}}, f"the {name} of its provenance is None")
            for name in ("started", "cpu_s", "torch", "device_name")
        ),
        ({"fingerprint": {"first_losses": [5.5, "5.2"]}}, "first_losses of its fingerprint holds a str"),
        ({"config": RECORD.config | {"seed": 2}}, "its seed is 2 in its config and 1 in its provenance"),
        ({"key": "../../../x"}, "its key '../../../x' is no name of a file or a folder"),
    ],
)
def test_a_well_signed_record_of_another_form_is_refused(store, changes, said):
    path = store.write(RECORD)
    signed(path, **changes)
    assert fault(store.read, path) == f"{path}: {said}; run it again"


@pytest.mark.parametrize("field", ["profile", "experiment", "key"])
@pytest.mark.parametrize("name", ["../../../x", "/x", "a/b", "..", ".hidden", "", "a\0b", None, 7])
def test_no_record_is_written_or_looked_for_outside_of_its_store(store, field, name):
    record = dataclasses.replace(RECORD, **{field: name})
    with pytest.raises(RecordError, match=f"the {field} is .* names no file or folder of this store; give"):
        store.write(record)
    with pytest.raises(RecordError, match=field):
        store.path(record.profile, record.experiment, record.key)
    assert not list(store.root.parent.iterdir())


@pytest.mark.attack("folders, links in a circle and unreadable files where records should be")
@pytest.mark.parametrize("what", ["another kind", "loop", "unreadable"])
@pytest.mark.parametrize("of", ["record", "folder"])
def test_what_cannot_be_read_is_refused_with_its_path_and_not_taken_for_empty(store, monkeypatch, what, of):
    place = store.root / "laptop" / "in_window"
    place.parent.mkdir(parents=True)
    if of == "record":
        place.mkdir()
        place /= "rope-seed1.json"
    make_it, another = (Path.touch, Path.mkdir) if of == "record" else (Path.mkdir, Path.touch)
    if what == "another kind":
        another(place)
    elif what == "loop":
        place.symlink_to(place)
    else:  # root may read everything, so that the mode of a file would not do

        def refused(*_, **__):
            raise PermissionError(13, "Permission denied")

        make_it(place)
        monkeypatch.setattr(Path, "read_text" if of == "record" else "iterdir", refused)
    assert fault(store.load, "laptop", "in_window").startswith(f"{place}: cannot be read (")


def test_a_store_that_collects_what_it_refuses_gives_the_others(store):
    path = store.write(RECORD)
    good = dataclasses.replace(RECORD, key="rope-seed2")
    store.write(good)
    path.write_text("{")
    collecting = Store(store.root, refused={})
    assert collecting.load("laptop", "in_window") == {"rope-seed2": good}
    assert list(collecting.refused) == [path] and "not whole JSON" in str(collecting.refused[path])
    with pytest.raises(RecordError):
        store.load("laptop", "in_window")


@pytest.mark.attack("records of code that was not committed")
@pytest.mark.parametrize(
    ("dirty", "reason"), [(True, "made from a tree with uncommitted changes"), (None, "of no commit")]
)
def test_only_the_published_store_refuses_records_that_are_not_of_a_commit(store, published, dirty, reason):
    record = with_provenance(dirty=dirty)
    assert store.read(store.write(record)) == record
    path = published.write(record)
    assert fault(published.read, path) == f"{path}: {reason}; commit the code, then run it again"
    assert published.read(published.write(with_provenance(dirty=False))).provenance["dirty"] is False


@pytest.mark.attack("numbers that are not finite, in every part of a record")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("changes", "where"),
    [
        (lambda x: {"metrics": {"bits_per_byte": x}}, "metrics.bits_per_byte"),
        (lambda x: {"rows": [{"kind": "curve"}, {"bits": x}]}, "rows[1].bits"),
        (lambda x: {"fingerprint": {"first_losses": [1.0, x]}}, "fingerprint.first_losses[1]"),
        (lambda x: {"config": {"training": {"rate": x}}}, "config.training.rate"),
    ],
)
def test_nan_is_never_written_and_the_error_says_where_it_is(store, number, changes, where):
    path = store.write(RECORD)
    assert fault(store.write, dataclasses.replace(RECORD, **changes(number))).startswith(
        f"{path}: {where} is {number}"
    )
    assert store.read(path) == RECORD


# --- whole or not at all


@pytest.mark.attack("an interruption or a full disk in the middle of a write")
@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(store, monkeypatch, step, interruption):
    path = store.write(RECORD)

    def interrupted(*_, **__):
        raise interruption("in the middle")

    monkeypatch.setattr(os, step, interrupted)
    with pytest.raises(interruption):
        store.write(dataclasses.replace(RECORD, metrics={"bits_per_byte": 1.0}))
    monkeypatch.undo()
    assert [entry.name for entry in path.parent.iterdir()] == ["rope-seed1.json"]
    assert store.read(path) == RECORD


def _write_on(root):
    for number in itertools.count():
        Store(root).write(dataclasses.replace(RECORD, metrics={"number": number}, key=f"key-{number % 3}"))


@pytest.mark.attack("writers that are killed at any moment")
def test_a_writer_that_is_killed_leaves_whole_records_and_loses_none(store, tries):
    draw, there = random.Random(7), {}
    for _ in range(tries(5, 60)):
        writer = get_context("fork").Process(target=_write_on, args=(store.root,))
        writer.start()
        time.sleep(draw.uniform(0.02, 0.08))
        writer.kill()
        writer.join()
        found = store.load("laptop", "in_window")
        assert there.keys() <= found.keys()
        there = found
    assert there


@pytest.mark.attack("drafts of writers that were killed")
def test_what_a_killed_writer_left_is_no_record_and_no_change_and_goes_with_a_later_write(store, monkeypatch):
    drafts = []
    monkeypatch.setattr(os, "replace", lambda draft, path: drafts.append(draft))
    path = store.write(RECORD)
    monkeypatch.undo()
    old, fresh = (path.with_name(f"{drafts[0].stem[:-1]}{end}.part") for end in "xy")
    for draft in (old, fresh):
        draft.write_text('{"schema": 1')
    assert store.load("laptop", "in_window") == {}
    os.utime(old, (0, 0))
    store.write(RECORD)
    assert sorted(path.parent.iterdir()) == sorted([path, fresh])  # somebody may be at that one now
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text().splitlines()
    assert any(fnmatch(fresh.name, pattern) for pattern in ignored)


@pytest.mark.attack("records whose settings are not those of their grid")
def test_a_record_is_stale_where_its_config_is_not_that_of_its_run(store):
    assert RECORD.held_to(SimpleNamespace(resolved=lambda: {**RECORD.config})) is RECORD
    for name, value, told in (
        ("seed", 2, "seed is 1 there and 2 here"),
        ("model", {}, "model.streams.sem is 128 there and absent here, and 2 more"),
        ("steps", None, "steps is absent there and None here"),
    ):
        other = SimpleNamespace(resolved=lambda name=name, value=value: {**RECORD.config, name: value})
        assert RECORD.held_to(other).stale == f"its config is not that of the grid: {told}"
    marked = dataclasses.replace(RECORD, stale="first_losses[0] was 5.5, is 5.4")
    assert marked.held_to(other) is marked


def test_others_may_read_the_file_as_far_as_the_umask_lets_them(tmp_path):
    umask = os.umask(0o027)
    try:
        paths.write_atomically(tmp_path / "file", "text")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


# --- staleness, and who read what


def test_a_mark_of_staleness_is_read_with_the_record_and_does_not_touch_its_file(store):
    path = store.write(RECORD)
    before = path.read_bytes()
    store.mark_stale("laptop", "in_window", "rope-seed1", "first_losses[0] was 5.5, is 5.4")
    store.mark_stale("laptop", "in_window", "gone", "its grid has no such run")
    (record,) = store.load("laptop", "in_window").values()
    assert record.stale == "first_losses[0] was 5.5, is 5.4"
    assert record == RECORD and path.read_bytes() == before
    assert json.loads((store.root / "laptop" / "stale.json").read_text()) == {
        "in_window/gone": "its grid has no such run",
        "in_window/rope-seed1": "first_losses[0] was 5.5, is 5.4",
    }


def test_a_mark_is_taken_back_by_none_and_by_a_new_record_and_the_last_one_takes_the_file(store):
    store.write(RECORD)
    marks = store.root / "laptop" / "stale.json"
    for key in ("rope-seed1", "other"):
        store.mark_stale("laptop", "in_window", key, "why")
    store.write(RECORD)
    assert store.load("laptop", "in_window")["rope-seed1"].stale is None and marks.exists()
    store.mark_stale("laptop", "in_window", "other", None)
    assert not marks.exists()
    store.mark_stale("laptop", "in_window", "other", None)  # nothing to take back is no error


@pytest.mark.parametrize("text", ["{", "[]"])
def test_marks_that_cannot_be_read_are_refused_with_the_remedy(store, text):
    store.write(RECORD)
    marks = store.root / "laptop" / "stale.json"
    marks.write_text(text)
    said = fault(store.load, "laptop", "in_window")
    assert said.startswith(f"{marks}: ") and "delete it and run `sepnb check --published`" in said


def test_what_is_loaded_is_noted_where_the_environment_asks_for_it(store, tmp_path, monkeypatch):
    log = tmp_path / "log"
    store.write(RECORD)
    store.load("laptop", "in_window")
    assert not log.exists()
    monkeypatch.setenv("SEPNB_READ_LOG", str(log))
    store.load("laptop", "in_window")
    store.load("smoke", "none_yet")
    assert log.read_text() == "laptop/in_window\nsmoke/none_yet\n"


def _mark(root, key):
    Store(root).mark_stale("laptop", "in_window", key, "why")


@pytest.mark.attack("marks of staleness written by four processes at once")
def test_marks_that_several_processes_write_at_once_are_all_kept(tmp_path, monkeypatch):
    """Read, change and write are one: without the lock about half of these were lost."""
    monkeypatch.setenv("SEPNB_BUILD", str(tmp_path / "build"))
    root, keys = tmp_path / "results", [f"key-{number}" for number in range(40)]
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        list(pool.map(partial(_mark, root), keys))
    marks = json.loads((root / "laptop" / "stale.json").read_text())
    assert marks == {f"in_window/{key}": "why" for key in keys}
    assert [path.name for path in (root / "laptop").iterdir()] == ["stale.json"], "no lock beside the records"

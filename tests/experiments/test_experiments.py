"""Experiments: methods that differ in one thing, runs that repeat exactly, tables that only load."""

import dataclasses
import itertools
import math
import pickle
import re

import numpy as np
import pytest

from sepnb import experiments
from sepnb.claims.asks import Ask
from sepnb.claims.evidence import judge
from sepnb.data import registry
from sepnb.encodings import InputModule, QueryKeyModule, ScoreModule
from sepnb.evaluation.long_windows import Beyond
from sepnb.experiments import language_modelling as lm
from sepnb.experiments import run as runs
from sepnb.experiments.in_window import METHODS
from sepnb.experiments.long_windows import LongTexts, metrics_of
from sepnb.experiments.methods import SPINE, model_config
from sepnb.experiments.run import Run
from sepnb.models import LanguageModel
from sepnb.records.store import Store
from sepnb.training import Diverged

from ..shared import refused
from .smoke_runs import assert_same, differing, grid_of, made, shortened, smoke, texts_of

IN_WINDOW, SCREEN = experiments.get("in_window"), experiments.get("lr_screen")
WHERE = list(itertools.product(experiments.names(), experiments.PROFILES))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def run_of(method: str) -> Run:
    return smoke("in_window", method, steps=8)


# --- the registry


def test_what_chooses_a_setting_comes_before_what_uses_it():
    names = experiments.names()
    chooses = max(map(names.index, ("lr_screen", "table_sweep")))
    assert chooses < names.index("in_window") < names.index("extrapolation")
    orders = [experiments.get(name).order for name in names]
    assert orders == sorted(orders)
    for name in names:
        experiment = experiments.get(name)
        assert experiment.name == name and experiment.title and experiment.question.endswith(("?", "read."))


def test_an_experiment_from_outside_is_had_by_its_name_and_takes_no_other_s(monkeypatch):
    monkeypatch.setattr(experiments, "_REGISTRY", dict(experiments._REGISTRY))
    mine = dataclasses.replace(IN_WINDOW, name="mine", question="Is it mine?")
    experiments.register(mine)
    assert experiments.get("mine") is mine and experiments.names()[-1] == "mine"
    refused("there is an experiment 'mine' already", experiments.register, mine)
    refused("experiment must be a Experiment, got", experiments.register, "mine", error=TypeError)


def test_unknown_names_are_answered_with_near_matches():
    refused(r"unknown experiment 'in_windo'; did you mean in_window\?", experiments.get, "in_windo")
    for ask in (IN_WINDOW.grid, IN_WINDOW.table, IN_WINDOW.seconds, IN_WINDOW.data_sets, SCREEN.grid):
        refused("unknown profile 'huge'; use one of smoke, laptop, gpu", ask, "huge")
    refused(r"unknown method 'ropes'; did you mean rope", model_config, "ropes", lm.SIZES["smoke"])


# --- the grids


@pytest.mark.parametrize(("name", "profile"), WHERE)
def test_every_run_of_a_grid_has_a_key_of_its_own_that_is_a_file_name_and_data_that_are_registered(
    name, profile
):
    experiment, grid = experiments.get(name), grid_of(name, profile)
    keys = [config.key for config in grid]
    assert len(keys) == len(set(keys)) > 0
    assert all(re.fullmatch(r"[a-z0-9.-]+", key) and len(key) < 100 for key in keys)
    others = {config.key for config in experiment.grid(profile, seeds=[77])}
    assert others and not others & set(keys)
    read = {one for config in grid for one in getattr(config, "data_sets", ())}
    assert read == set(experiment.data_sets(profile)) and all(registry.get(one).name == one for one in read)


@pytest.mark.parametrize(("name", "profile"), WHERE)
def test_long_texts_are_told_in_multiples_of_the_length_that_every_run_is_scored_at(name, profile):
    for run in grid_of(name, profile):
        for measure in getattr(run, "measures", ()):
            texts = getattr(measure, "texts", measure)
            assert not isinstance(texts, LongTexts) or texts.beyond.length == run.data.window, run.key


@pytest.mark.parametrize("name", experiments.names())
def test_an_experiment_and_its_runs_can_be_sent_to_another_process(name):
    experiment = experiments.get(name)
    run, *_ = grid_of(name, "smoke")
    sent = pickle.loads(pickle.dumps((experiment, run)))
    assert sent[0].name == name and sent[1].key == run.key


def test_any_change_of_a_setting_is_another_key():
    config = run_of("rope")
    changed = [
        dataclasses.replace(config, seed=config.seed + 1),
        dataclasses.replace(config, training=dataclasses.replace(config.training, clip=2.0)),
        dataclasses.replace(config, model=dataclasses.replace(config.model, bias=True)),
        dataclasses.replace(config, data=dataclasses.replace(config.data, test_bytes=1)),
    ]
    assert len({item.key for item in [config, *changed]}) == 5


# --- one factor


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_two_methods_of_a_seed_differ_only_in_streams_encoding_and_screened_rate(profile):
    grid = IN_WINDOW.grid(profile)
    assert profile == "smoke" or {run.seed for run in grid} == set(range(1, 7)), "verdicts rest on six seeds"
    runs = [config for config in grid if config.seed == 1]
    assert len(runs) == len(IN_WINDOW.cells(profile)) > 3
    allowed = {"method", "model.encoding", "training.learning_rate"}
    for one, other in itertools.combinations(runs, 2):
        changed = differing(one, other)
        assert {key for key in changed if not key.startswith("model.streams.")} <= allowed
        assert changed & {"model.encoding", "model.streams.pos", "model.streams.sem"}


TRAINED_ALIKE = [
    ("extrapolation", "in_window", {"beyond"}),
    ("encodings", "in_window", {"beyond"}),
    ("inside", "in_window", {"text", "inspection"}),
    ("fitted_rows", "extrapolation", {"text", "beyond", "fit"}),
    ("extrapolation_wikitext", "extrapolation", {"text", "beyond", "markers"}),
]
"""Two experiments, and in which settings their runs of a method and seed may differ."""


@pytest.mark.parametrize("profile", experiments.PROFILES)
@pytest.mark.parametrize(("name", "like", "besides"), TRAINED_ALIKE)
def test_what_two_experiments_have_in_common_is_trained_alike(name, like, besides, profile):
    one, other = experiments.get(name), experiments.get(like)
    for method in set(one.methods) & SPINE.keys():
        ours, theirs = (of.config(profile, method, 3) for of in (one, other))
        assert {key.split(".")[0] for key in differing(ours, theirs)} <= besides | {"experiment"}, method
        assert ours.data.window == theirs.data.window


def test_every_method_is_built_of_the_same_parts_joined_in_the_same_way():
    """The residual path, norms, attention and MLP are the same classes with the same settings."""

    def skeleton(method: str) -> list:
        model = LanguageModel(run_of(method).model)
        encodings = (InputModule, QueryKeyModule, ScoreModule)
        parts = [
            (re.sub(r"\b(pos|sem)\b", "*", name), type(module))
            for name, module in model.named_modules()
            if not isinstance(module, encodings)
        ]
        norms = {(m.kind, m.split, m.eps) for m in model.modules() if hasattr(m, "gain")}
        return [sorted(set(parts), key=str), norms]

    expected = skeleton("none")
    assert expected[1] == {("layer", True, 1e-5)}
    for method in METHODS:
        assert skeleton(method) == expected, method


def test_all_methods_of_a_seed_read_the_same_bytes_in_the_same_order(monkeypatch):
    read = {}

    def reading(model, batches, training, **_):
        read[config.seed, config.method] = np.stack(list(itertools.islice(batches, 3)))
        return [0.0]

    monkeypatch.setattr(runs, "train", reading)
    for config in IN_WINDOW.grid("smoke", seeds=[1, 2]):
        IN_WINDOW.fingerprint(config)
    assert len(read) == 2 * len(IN_WINDOW.smoke)
    for seed, method in read:
        assert np.array_equal(read[seed, method], read[seed, "none"])
    assert not np.array_equal(read[1, "none"], read[2, "none"])


# --- a run


@pytest.mark.parametrize("method", ["rope", "separated-learned-wide"])
def test_a_run_repeats_exactly_and_begins_with_its_fingerprint(one_thread, method):
    config = run_of(method)
    one, again = (IN_WINDOW.run(config) for _ in range(2))
    assert IN_WINDOW.fingerprint(config) == one.fingerprint == again.fingerprint
    assert_same(one, again)
    other = dataclasses.replace(config, seed=config.seed + 1)
    assert IN_WINDOW.fingerprint(other) != one.fingerprint


def test_a_record_tells_what_was_run_and_its_rows_agree_with_its_metrics(one_thread, store):
    config = run_of("separated-sinusoidal")
    done = []
    record = IN_WINDOW.run(config, progress=lambda *step: done.append(step))
    assert store.read(store.write(record)) == record
    assert done == [(step, 8) for step in range(1, 9)]
    assert (record.experiment, record.profile, record.key) == ("in_window", "smoke", config.key)
    assert record.config == config.resolved()
    assert record.provenance["bytes_seen"] == 8 * 8 * 64 and record.provenance["seed"] == config.seed
    assert record.provenance["data"].keys() == {"sympy"}

    metrics = record.metrics
    model = LanguageModel(config.model).parameter_counts()
    assert (metrics["parameters"], metrics["block_parameters"]) == (model["total"], model["blocks"])
    assert metrics["bigram_bits_per_byte"] < metrics["unigram_bits_per_byte"] < 8
    assert 4 < metrics["bits_per_byte"] < 8.5 and 4 < metrics["val_bits_per_byte"] < 8.5
    assert len(record.fingerprint["first_losses"]) == 5
    assert len(record.fingerprint["initial_bits_per_byte"]) == 1

    rows = {
        kind: [row for row in record.rows if row["kind"] == kind]
        for kind in ("curve", "position", "document")
    }
    assert sum(map(len, rows.values())) == len(record.rows)
    scored = sum(row["bytes"] for row in rows["document"])
    assert scored == metrics["test_bytes"]
    assert sum(row["bits"] for row in rows["document"]) / scored == pytest.approx(metrics["bits_per_byte"])
    assert len({row["document"] for row in rows["document"]}) == len(rows["document"])
    assert [row["start"] for row in rows["position"]] == [0, *(row["stop"] for row in rows["position"][:-1])]
    assert rows["position"][-1]["stop"] == config.training.length
    mean = sum(row["bits_per_byte"] * (row["stop"] - row["start"]) for row in rows["position"])
    assert mean / config.training.length == pytest.approx(metrics["bits_per_byte"])
    first = record.fingerprint["first_losses"][0] / np.log(2)
    assert rows["curve"][0]["bits_per_byte"] == pytest.approx(first)


def test_a_screening_scores_the_validation_text_only(one_thread):
    record = SCREEN.run(shortened(SCREEN.grid("smoke")[0], steps=3))
    assert "val_bits_per_byte" in record.metrics and "bits_per_byte" not in record.metrics
    assert {row["kind"] for row in record.rows} == {"curve"}


READ_FURTHER = [
    *(("encodings", name) for name in ("learned-query-key", "cope", "seqpe-input", "rope-randomised")),
    ("seqpe_stream", "strict-seqpe"),
    ("recipes", "separated-phase-offsets"),
]


@pytest.mark.parametrize(("name", "method"), READ_FURTHER)
def test_a_run_trains_and_tells_every_reading_of_a_longer_text_in_its_rows_and_metrics(
    name, method, one_thread
):
    short = Beyond(64, 2, documents=2, windows=1, part=1, tight=1, batch_bytes=2048)
    experiment, config = experiments.get(name), smoke(name, method, steps=4, beyond=short)
    record = experiment.run(config)
    losses, metrics = record.fingerprint["first_losses"], record.metrics
    assert len(losses) == 4 and losses[-1] < losses[0] and 4 < metrics["bits_per_byte"] < 9
    assert record.fingerprint == experiment.fingerprint(config)
    rows = [row for row in record.rows if row["kind"] == "reading"]
    assert {row["reading"] for row in rows} == {reading.id for reading in texts_of(config).readings}
    told = metrics_of(rows, short.length)
    gains = [row for row in record.rows if row["kind"] == "gain"]
    told |= {f"gain/{row['stop'] // short.length}x": row["bits_per_byte"] for row in gains}
    assert told.items() <= metrics.items() and all(map(math.isfinite, metrics.values()))
    assert bool(gains) == (name != "encodings")


# --- the table


def test_a_table_only_loads_and_says_of_every_run_of_the_grid_how_it_stands(store, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a table computed something")

    for module, name in ((runs, "train"), (lm, "evaluate"), (lm, "LanguageModel")):
        monkeypatch.setattr(module, name, never)
    grid = IN_WINDOW.grid("smoke")
    table = IN_WINDOW.table("smoke", store)
    assert list(table["status"]) == ["not run"] * len(grid)
    assert table.attrs["records"] == [] and table.attrs["profile"] == "smoke"

    first, second = made(grid[0], bits_per_byte=3.5), made(grid[2], bits_per_byte=2.5, parameters=9)
    store.write(second)
    store.write(first)
    store.write(made(dataclasses.replace(grid[0], seed=99), bits_per_byte=0.0))  # of no run of the grid
    store.mark_stale("smoke", "in_window", grid[2].key, "first_losses[0] was 5, is 4")
    table = IN_WINDOW.table("smoke", store)
    assert list(table["method"]) == [config.method for config in grid]
    assert list(table["label"]) == [config.label for config in grid]
    assert list(table["seed"]) == [config.seed for config in grid]
    expected = ["not run"] * len(grid)
    expected[0], expected[2] = "ok", "stale"
    assert list(table["status"]) == expected
    assert table["bits_per_byte"][0] == 3.5 and table["bits_per_byte"][2] == 2.5
    assert table["bits_per_byte"].isna().sum() == len(grid) - 2
    assert table.attrs["records"] == [first, second]
    copied = table[table["status"] == "ok"].copy().attrs["records"]
    assert copied is table.attrs["records"]  # every step of pandas copies attrs; records would cost seconds
    assert IN_WINDOW.table("laptop", store)["status"].eq("not run").all()
    other = {"config": first.config | {"seed": 9}, "provenance": first.provenance | {"seed": 9}}
    store.write(dataclasses.replace(first, **other))  # the name is that of seed 1
    table = IN_WINDOW.table("smoke", store)
    assert table["status"][0] == "stale" and "seed is 9 there and 1 here" in table.attrs["records"][0].stale


def test_tidy_rows_carry_their_method_and_seed(store):
    grid = IN_WINDOW.grid("smoke")
    for config in grid[:2]:
        store.write(made(config, ({"kind": "position", "start": 0}, {"kind": "document"})))
    rows = IN_WINDOW.rows("smoke", "position", store)
    assert list(rows["method"]) == [config.method for config in grid[:2]]
    assert list(rows["seed"]) == [1, 1] and list(rows["start"]) == [0, 0]
    assert len(IN_WINDOW.rows("laptop", "position", store)) == 0


# --- a run that diverges


def test_a_run_that_diverges_is_a_record_without_a_score_and_the_claims_hear_of_it(store, monkeypatch):
    def explodes(model, batches, config, **options):
        raise Diverged([6.0] * 7 + [float("nan")], config.learning_rate)

    monkeypatch.setattr(runs, "train", explodes)
    record = IN_WINDOW.run(IN_WINDOW.grid("smoke")[0])
    assert record.metrics["diverged_at_step"] == 7 and "bits_per_byte" not in record.metrics
    assert len(record.fingerprint["first_losses"]) == runs.FINGERPRINT_STEPS
    store.write(record)
    for config in IN_WINDOW.grid("smoke")[1:]:
        store.write(made(config, bits_per_byte=2.0))
    verdict = judge(IN_WINDOW.table("smoke", store), [Ask("none", "rope", high=0.0)])
    assert verdict.word == "not testable here" and "diverged" in verdict.detail

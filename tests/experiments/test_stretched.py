"""Slowed positions: one training for all that reads or tunes it, one choice of readings, and parts of a model
that are tuned alike."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from sepnb import experiments
from sepnb.analysis.timing import one_thread
from sepnb.claims import stretched as rules
from sepnb.experiments import adapted, stretched, tasks
from sepnb.experiments import run as runs
from sepnb.experiments.readings import READINGS, SLOWING, read_by
from sepnb.experiments.run import At, Run
from sepnb.experiments.tuning import Tuning, masks_of
from sepnb.models.extension import extension_of
from sepnb.models.parts import counted, parts
from sepnb.records.store import Record
from sepnb.training import Diverged
from sepnb.training.adapting import low_rank, rank_for

from .smoke_runs import differing, untaught

ONE_WAVE = ("rope-8th", "separated-sinusoidal-one")
STRETCHED, ADAPTED = experiments.get("stretched_mqar"), experiments.get("adapted_mqar")
PAIRS = [(one, stretched.EXPERIMENTS[n]) for n, one in enumerate(adapted.EXPERIMENTS)]
METHOD, CELL = "separated-sinusoidal", "separated-sinusoidal/position"
pytestmark = pytest.mark.usefixtures("one_thread")


def tuning_of(config: Run) -> Tuning:
    return config.of(adapted.TunedAnswers).tuning


def samples_of(config: Run):
    """The batches of its first tuning."""
    return config.of(adapted.TunedAnswers).samples(config, tuning_of(config).each[0])


# --- the grid


@pytest.mark.parametrize("profile", experiments.PROFILES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].task)
def test_arms_of_a_method_share_the_training_of_the_run_that_reads_it_and_differ_in_what_is_tuned(
    pair, profile
):
    arms, reads = pair
    runs = {cell: arms.config(profile, cell, 3) for cell in arms.methods}
    for cell, run in runs.items():
        method, _ = cell.split("/")
        read = reads.config(profile, method, 3)
        assert run.base == read.base and run.base.training == run.training
        assert run.base.method == method and not run.base.measures and run.base.data.times == (1,)
        assert run.base != arms.config(profile, cell, 4).base
        for other in (key for key in runs if key.startswith(f"{method}/")):
            slowed = {"readings"} if cell.endswith("evenly") != other.endswith("evenly") else set()
            assert differing(run, runs[other]) <= {"method", "tunings"} | slowed
    readings = {cell: tuning_of(run).reading for cell, run in runs.items()}
    for cell, reading in readings.items():
        evenly = "interpolation-log" if cell.endswith("evenly") else "parts-1-32-log"
        assert reading == ("yarn" if cell.startswith("rope/") else evenly)


def test_two_methods_train_on_the_same_and_choose_among_the_same_readings():
    first, *others = STRETCHED.grid("laptop", [3])
    for other in others:
        allowed, own = ("method", "training.learning_rate", "model."), READINGS
        if other.method in ONE_WAVE:  # NTK-aware scaling leaves its frequency as it is
            allowed, own = (*allowed, "readings"), tuple(n for n in READINGS if not n.startswith("ntk"))
        elif other.method == "forgetting":  # all positions of gates alike
            allowed, own = (*allowed, "readings"), ("interpolation", "interpolation-log")
        assert all(key.startswith(allowed) for key in differing(first, other))
        assert other.of(stretched.SlowedAnswers).readings == own
    assert len(READINGS) == len(set(READINGS)) == 2 * len(SLOWING)


@pytest.mark.parametrize(
    ("task", "method", "readings"),
    [("", METHOD, READINGS), ("_latest_value", "forgetting", ("interpolation", "interpolation-log"))],
)
def test_every_reading_reads_the_model_of_stretched_in_each_of_its_ways_and_by_log_n_alone(
    task, method, readings
):
    every, read = experiments.get(f"every_reading{task}"), experiments.get(f"stretched{task or '_mqar'}")
    config = every.config("smoke", method, 1)
    assert config.base == read.config("smoke", method, 1).base
    assert READINGS == rules.READINGS
    metrics = every.run(config).metrics
    ways = {name.split("/")[1] for name in metrics if name.startswith("accuracy/") and name.endswith("/16x")}
    assert ways == {*readings, "native", "log"}


def test_further_rates_are_tried_while_the_best_stands_at_an_end_twice_at_most():
    tuning = tuning_of(ADAPTED.config("laptop", CELL, 1))
    rates = [one.learning_rate for one in tuning.each]

    def tried(best: Callable[[list[float]], float]) -> list[float]:
        found, metrics = [], {}
        for one in tuning.tried(metrics):
            found.append(one.learning_rate)
            metrics["tuning_rate"] = best(found)
        return found

    assert tried(max) == [*rates, 0.032, 0.064] and tried(min) == [*rates, 0.001, 0.0005]
    assert tried(lambda found: 0.008) == rates
    assert tried(lambda found: min(max(found), 0.032)) == [*rates, 0.032, 0.064]
    assert tried(lambda found: 0.016) == [*rates, 0.032]
    assert list(tuning.tried({})) == list(tuning.each), "all diverged"


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_the_dense_control_adds_the_waves_of_the_concatenated_model_and_nothing_else(profile):
    """In every way of slowing down; spread over all columns they are the same in each copy."""
    text, positions = experiments.get("stretched_text"), torch.tensor([0, 1, 77, 1000])
    control, spread, beside = (
        text.config(profile, name, 1).build()
        for name in (stretched.QUARTER, stretched.SPREAD, "concatenated-sinusoidal")
    )
    for reading in READINGS:
        (quarter,), (all_columns,), (own,) = (
            [encode(positions) for encode in read_by(model, reading, 8).transformer.input_encodings]
            for model in (control, spread, beside)
        )
        waves = own.shape[-1]
        assert torch.equal(quarter[:, :waves], own) and quarter[:, waves:].eq(0).all()
        assert len(all_columns.T) == len(quarter.T) == 4 * waves
        torch.testing.assert_close(all_columns, torch.cat(4 * [own / 2], dim=-1))


@pytest.mark.parametrize("profile", experiments.PROFILES)
def test_the_control_has_every_fourth_wave_and_its_partners_the_fastest_or_all_in_as_few_columns(profile):
    text = experiments.get("stretched_text")
    every, control, fastest, squeezed, slower = (
        text.config(profile, name, 1).build().transformer.input_encodings[0]
        for name in ("sinusoidal", stretched.QUARTER, stretched.FASTEST, stretched.SQUEEZED, stretched.SLOWER)
    )
    (waves,), (quarter,) = every.frequencies, control.frequencies
    torch.testing.assert_close(quarter, waves[::4])
    torch.testing.assert_close(fastest.frequencies[0], waves[: len(quarter)])
    assert torch.equal(squeezed.frequencies[0], waves)
    first, later = slower.frequencies[0].split([len(quarter), len(waves) - len(quarter)])
    torch.testing.assert_close(first, quarter)
    assert later.max() < quarter.min(), "and the others are slower"
    for power in (8, 32):
        model = text.config(profile, f"sinusoidal-base-{power}", 1).build().transformer
        (found,) = model.input_encodings[0].frequencies
        exact = 10.0 ** (-power * torch.arange(len(waves), dtype=torch.float64) / len(waves))
        torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0)
    positions = torch.arange(4 * len(waves))
    for encode in (control, fastest, squeezed):
        assert encode(positions)[:, 2 * len(quarter) :].eq(0).all()
    lengths = [encode(positions).norm(dim=-1).mean() for encode in (control, fastest, squeezed)]
    assert lengths[0].allclose(lengths[1]) and 0.8 < lengths[2] / lengths[0] < 1.25


# --- what is tuned


def untrained(cell: str, profile: str = "laptop") -> tuple[Run, torch.nn.Module]:
    config = ADAPTED.config(profile, cell, 1)
    return config, config.build()


@pytest.mark.parametrize("profile", ["laptop", "gpu"])
@pytest.mark.parametrize("method", ["sinusoidal", "rope"])
def test_the_change_of_low_rank_has_as_many_numbers_as_the_position_part(method, profile):
    separated, model = untrained(CELL, profile)
    numbers = counted(parts(model)["position"])
    assert tuning_of(separated).numbers(model) == numbers
    config, dense = untrained(f"{method}/low-rank", profile)
    assert tuning_of(config).numbers(dense) == numbers
    with low_rank(dense, rank_for(dense, numbers), 1):
        trained = sum(one.numel() for one in dense.parameters() if one.requires_grad)
    assert trained == pytest.approx(numbers, rel=0.03)


def test_an_arm_that_is_not_slowed_reads_as_it_was_trained_and_the_others_by_their_reading():
    config, model = untrained("separated-sinusoidal/position-not-slowed", "smoke")
    assert tuning_of(config).reader(model, 8) is model
    config, model = untrained(CELL, "smoke")
    for factor in (8, 16):
        read = tuning_of(config).reader(model, factor)
        assert extension_of(read) == SLOWING["parts-1-32"](factor, 64) and read.transformer.log_scale
    assert tuning_of(config).reader(model, 1) is model


def test_a_tuning_draws_the_same_new_samples_for_every_arm():
    runs = [ADAPTED.config("smoke", cell, 1) for cell in (CELL, "rope/all", "sinusoidal/low-rank")]
    drawn = [list(samples_of(run)) for run in runs]
    for step in zip(*drawn, strict=True):
        for other in step[1:]:
            assert all(map(torch.equal, step[0].tensors(), other.tensors()))
    tuning = tuning_of(runs[0]).each[0]
    sizes = {"length": tuning.length, "seed": 1, "steps": tuning.steps}
    at = [start for _, start in tuning.positions.draws(**sizes)]
    assert [int(one.positions[0]) for one in drawn[0]] == at
    plain = ADAPTED.config("smoke", "separated-sinusoidal/position-one-factor", 1)
    for one, other in zip(drawn[0], samples_of(plain), strict=True):
        assert np.array_equal(one.inputs, other.inputs) and other.positions is None
    begun = {row[:32].tobytes() for batch in runs[0].batches() for row in batch.inputs}
    assert not begun & {row[:32].tobytes() for batch in drawn[0] for row in batch.inputs}


# --- how a model is read


@pytest.fixture
def ways(monkeypatch) -> list:
    """What `tasks.asked` is given, of the calls that are made; it is not asked."""
    seen: list = []

    def asked(config, model, device, ways: Callable, apart) -> tuple[dict, list]:
        seen.append((ways, apart))
        return {}, []

    monkeypatch.setattr(tasks, "asked", asked)
    return seen


def test_native_is_the_model_window_hides_the_rest_and_stretched_is_the_reading_that_was_chosen(ways):
    config = STRETCHED.config("smoke", METHOD, 1)
    model = config.build().eval()
    metrics, rows = config.of(stretched.SlowedAnswers)(config, model, At(start=untaught(config, model)))
    scores = {row["reading"]: row["nats"] for row in rows}
    assert list(scores) == list(READINGS) and len(set(scores.values())) > 5
    reading = READINGS[metrics["reading"]]
    assert scores[reading] == min(scores.values())
    samples = config.data.held_out(8 * 64)
    again = tasks.score(config, read_by(model, reading, 8), samples, "cpu")["nats"]
    assert again == scores[reading]
    ((of, apart),) = ways
    found = {times: dict(of(times)) for times in config.data.times}
    assert {times: sorted(own) for times, own in found.items()} == {
        1: ["native"],
        2: ["native", "stretched"],
        4: ["native", "stretched"],
        8: ["native", "stretched", "window"],
        16: ["native", "stretched", "window"],
        32: ["stretched"],
    }
    assert apart == (8, 16, 32)
    for times, own in found.items():
        assert own.get("native", model) is model
        if "window" in own:
            rules = own["window"].transformer
            assert (rules.window, rules.sinks, rules.log_scale) == (64, 0, False)
            assert extension_of(own["window"]) is None
        if "stretched" in own:
            expected = read_by(model, reading, times).transformer.rules
            assert own["stretched"].transformer.rules == expected and times > 1
            assert extension_of(own["stretched"]).factor == times


def test_a_reading_is_an_extension_of_its_factor_and_says_whether_logits_grow():
    model = STRETCHED.config("smoke", METHOD, 1).build().eval()
    for reading in READINGS:
        assert read_by(model, reading, 1) is model
        read = read_by(model, reading, 8)
        extension = extension_of(read)
        assert extension == SLOWING[reading.removesuffix("-log")](8, 64) and extension.factor == 8
        assert getattr(extension, "original_length", 64) == 64
        assert read.transformer.log_scale == reading.endswith("-log")


# --- a run


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[dict[str, Record], list]:
    """A smoke run of each, on a clean tree of a commit, and the checkpoints that they keep."""
    folder = tmp_path_factory.mktemp("build")
    with pytest.MonkeyPatch.context() as patch, one_thread():
        patch.setenv("SEPNB_BUILD", str(folder))
        patch.setattr(runs, "code_state", lambda: ("a" * 40, False))
        records = {METHOD: STRETCHED.run(STRETCHED.config("smoke", METHOD, 1))}
        records |= {cell: ADAPTED.run(ADAPTED.config("smoke", cell, 1)) for cell in ADAPTED.smoke}
    return records, sorted((folder / "checkpoints").iterdir())


def test_what_reads_and_what_tunes_a_model_train_it_once(made):
    records, kept = made
    assert len(kept) == 2, "of the separated model, and of the dense one"
    one, other = records[METHOD], records[CELL]
    for name in ("train_cpu_s", "train_nats", "parameters", "learning_rate"):
        assert one.metrics[name] == other.metrics[name]
    assert one.fingerprint["first_losses"] == other.fingerprint["first_losses"]


def test_a_record_of_readings_has_every_way_at_every_length(made):
    record = made[0][METHOD]
    places = {name.removeprefix("accuracy/") for name in record.metrics if name.startswith("accuracy/")}
    native, longer = (1, 2, 4, 8, 16), (2, 4, 8, 16, 32)
    expected = {*(f"native/{k}x" for k in native), *(f"stretched/{k}x" for k in longer)}
    assert places == expected | {"window/8x", "window/16x"}
    readings = {row["reading"]: row["nats"] for row in record.rows if row["kind"] == "reading"}
    assert READINGS[record.metrics["reading"]] == min(readings, key=readings.get)
    assert {"far/stretched", "far/stretched/16x", "far/stretched/32x"} <= record.metrics.keys()


@pytest.mark.parametrize("cell", ADAPTED.smoke)
def test_a_record_of_tunings_has_their_scores_and_the_best_of_them_is_read(made, cell):
    record, config = made[0][cell], ADAPTED.config("smoke", cell, 1)
    tunings = {row["learning_rate"]: row["nats"] for row in record.rows if row["kind"] == "tuning"}
    assert (
        list(tunings) == [one.learning_rate for one in tuning_of(config).each]
        and len(set(tunings.values())) == 2
    )
    assert record.metrics["tuning_rate"] == min(tunings, key=tunings.get)
    assert record.metrics["val_nats"] == min(tunings.values())
    assert record.metrics["tuned_numbers"] == made[0][CELL].metrics["tuned_numbers"]
    places = {name.removeprefix("accuracy/") for name in record.metrics if name.startswith("accuracy/")}
    assert places == {"native/1x", "window/8x", *(f"adapted/{k}x" for k in (1, 8, 16, 32))}


def test_the_fingerprint_of_a_record_is_had_again(made):
    for (name, record), one in zip(made[0].items(), (STRETCHED, ADAPTED, ADAPTED), strict=True):
        assert one.fingerprint(one.config("smoke", name, 1)) == record.fingerprint


@pytest.mark.parametrize(
    "cell", [CELL, "separated-sinusoidal/content", "sinusoidal/low-rank", "sinusoidal/maps"]
)
def test_a_tuning_changes_its_part_and_is_read_as_before(cell):
    config = ADAPTED.config("smoke", cell, 1)
    model = config.build()
    start = untaught(config, model)
    tuning = tuning_of(config)
    (changed, losses), (again, repeated) = (
        tuning.tuned(config, start, samples_of(config), tuning.each[0], device="cpu") for _ in range(2)
    )
    assert losses == repeated and extension_of(changed) is None and not changed.transformer.log_scale
    masks = masks_of(model, "maps" if "low-rank" in cell else tuning.arm.part)
    before, twice = dict(model.named_parameters()), dict(again.named_parameters())
    moved = {name: one != before[name] for name, one in changed.named_parameters()}
    assert not any((one & ~masks[name]).any() for name, one in moved.items())
    assert any(one.any() for one in moved.values())
    assert all(torch.equal(one, twice[name]) for name, one in changed.named_parameters())


def test_a_rate_that_diverges_is_told_and_not_chosen_and_without_one_left_the_model_is_read_as_it_is(
    monkeypatch, ways
):
    config, whole = ADAPTED.config("smoke", CELL, 1), Tuning.tuned
    model = config.build()
    start = untaught(config, model)
    rates = [one.learning_rate for one in tuning_of(config).each]

    def at(bad: list[float]):
        def tuned(self, config, start, batches, tuning, **how):
            if tuning.learning_rate in bad:
                raise Diverged([6.0, float("nan")], tuning.learning_rate)
            return whole(self, config, start, batches, tuning, **how)

        return tuned

    for bad in (rates[:-1], rates):
        monkeypatch.setattr(Tuning, "tuned", at(bad))
        metrics, rows = config.of(adapted.TunedAnswers)(config, model, At(start=start))
        assert [row.get("diverged_at_step") for row in rows] == [1 if rate in bad else None for rate in rates]
        assert metrics.get("tuning_rate") == (rates[-1] if bad != rates else None)
    (some, _), (none, _) = ways
    embedding = model.embedding.weight
    assert torch.equal(dict(none(8))["adapted"].embedding.weight, embedding)
    shared = [dict(one(8))["adapted"].embedding.weight is embedding for one in (some, none)]
    assert shared == [False, True] and "val_nats" not in metrics

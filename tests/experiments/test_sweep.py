"""Learning-rate sweeps: rates are read from the published records, by one plain rule, and typed nowhere."""

import json
import re
import shutil

import pytest

from sepnb import experiments, paths
from sepnb.companion.run import runs
from sepnb.encodings import Learned
from sepnb.experiments import budget, images, in_window, task_grid
from sepnb.experiments import methods as book
from sepnb.experiments.in_window import LR_SCREEN
from sepnb.experiments.run import Run
from sepnb.experiments.scales import TABLES, scale_of
from sepnb.experiments.sweep import LEVEL, MORE_SEEDS, RATES, Sweep
from sepnb.records.store import Store

from ..shared import refused
from .smoke_runs import differing, grid_of, made

ALL = {name: experiments.get(name) for name in experiments.names()}
SWEEPS = {name: one for name, one in ALL.items() if isinstance(one, Sweep)}
GRIDS = {
    name: one for name, one in ALL.items() if name not in SWEEPS and isinstance(one.grid("smoke")[0], Run)
}
SINGLE = {"context_extension": LR_SCREEN, "images": images.SCREEN}


def sweep_of(experiment, config: Run) -> tuple[Sweep, str]:
    """The sweep that chose the rate of a run, and the run's method there."""
    method = (config.base or config).method
    if hasattr(experiment, "swept"):
        return experiment.swept(method)
    if experiment.name == "budget":
        return budget.SWEEPS[budget.budget_of(config)], method
    return getattr(experiment, "sweep", None) or SINGLE[experiment.name], method


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout without records, into which `publish` puts those of a sweep."""
    monkeypatch.setenv("SEPNB_ROOT", str(tmp_path))
    return tmp_path


def sweep(**changes) -> Sweep:
    how = {"title": "t", "order": 0, "methods": ("rope", "alibi"), "smoke": ("rope",)}
    return Sweep(name="lr_screen", **how | {"config_of": book.run_of, "costs": {}} | changes)


def publish(root, one: Sweep, profile: str, losses: dict[str, list[float | None]], seed: int = 0) -> None:
    """Records of these losses by trial, of those that are tried then, None where a run diverged."""
    for method, own in losses.items():
        for trial, loss in zip(one.trials(profile, method), own, strict=False):
            metrics = {} if loss is None else {one.score: loss}
            Store(root / "results").write(made(one.config(profile, trial, seed), **metrics))


# --- the rule


def test_a_rate_is_that_of_the_profile_else_that_of_the_laptop_else_the_default(checkout):
    one = sweep()
    assert {one.rate(profile, "rope") for profile in experiments.PROFILES} == {one.default}
    publish(checkout, one, "laptop", {"rope": [2.4, 2.5, 2.6], "alibi": [2.6, 2.4, 2.5]})
    assert one.best("laptop") == {"rope": 2e-3, "alibi": 4e-3}
    assert {one.rate(profile, "rope") for profile in experiments.PROFILES} == {2e-3}
    publish(checkout, one, "gpu", {"rope": [2.6, 2.5, 2.4]})
    assert one.rate("gpu", "rope") == 8e-3 and one.rate("gpu", "alibi") == 4e-3
    publish(checkout, one, "smoke", {"rope": [2.6, 2.4, 2.5]})
    assert one.rate("smoke", "rope") == one.rate("laptop", "rope") == 2e-3
    refused("lr_screen tries no 'ropes', so that it has no rate; it tries rope", one.rate, "laptop", "ropes")


def test_a_method_is_swept_when_it_was_tried_at_every_rate_and_a_diverged_run_is_never_the_best(checkout):
    one = sweep()
    publish(checkout, one, "laptop", {"rope": [2.4, 2.3], "alibi": [2.6, None, 2.7]})
    assert one.best("laptop") == {"alibi": 2e-3}
    publish(checkout, one, "laptop", {"rope": [None, None, None]})
    assert "rope" not in one.best("laptop"), "diverged at every rate"


def test_a_rate_at_an_end_is_told_and_one_beyond_it_is_tried_at_the_size_where_it_stood(checkout):
    one = sweep()
    publish(checkout, one, "laptop", {"rope": [2.4, 2.5, 2.6], "alibi": [2.5, 2.4, 2.6]})
    assert one.at_an_end("laptop") == {"rope": 2e-3}

    def tried(of, profile="laptop", method="rope"):
        return sorted({trial[1] for trial in of.trials(profile, method)})

    assert tried(one) == [1e-3, *RATES] and tried(one, method="alibi") == list(RATES)
    assert tried(one, "gpu") == list(RATES) and tried(one, "smoke") == [RATES[0]]
    assert tried(sweep(stops=("rope",))) == list(RATES), "it guesses"
    assert tried(sweep(ladder=(7e-4, *RATES))) == [7e-4, *RATES]


def test_a_rate_beyond_an_end_counts_once_its_run_is_published_and_nothing_is_trained_before(checkout):
    one = sweep()
    publish(checkout, one, "laptop", {"rope": [2.6, 2.5, 2.4]})
    assert one.best("laptop") == one.at_an_end("laptop") == {"rope": 8e-3}
    assert one.waiting("laptop", "rope") == [("rope", 1.6e-2)]
    with pytest.raises(ValueError, match=r"'rope' is to be tried at 0.016 too, .*; run `sepnb run lr_screen"):
        one.require("laptop", "rope")
    publish(checkout, one, "laptop", {"rope": [2.6, 2.5, 2.4, 2.3]})
    assert one.best("laptop") == one.at_an_end("laptop") == {"rope": 1.6e-2}
    assert one.waiting("laptop", "rope") == [("rope", 3.2e-2)], (
        "until the best has a worse one on either side"
    )
    publish(checkout, one, "laptop", {"rope": [2.6, 2.5, 2.4, 2.3, 2.5]})
    one.require("laptop", "rope")


def test_of_trials_that_one_seed_does_not_rank_the_mean_of_three_decides(checkout):
    one = sweep(methods=("rope",), level=LEVEL, stops=())
    publish(checkout, one, "laptop", {"rope": [2.5, 2.400, 2.401, 2.5]})
    refused(r"'rope' is to be tried at 0.004, 0.008 too", one.require, "laptop", "rope")
    assert one.rate("laptop", "rope") == 4e-3 and one.level_trials("laptop", "rope") == [
        ("rope", 4e-3),
        ("rope", 8e-3),
    ]
    assert not sweep(methods=("rope",)).level_trials("laptop", "rope"), "where one seed ranks"
    for seed, losses in ((7, (2.41, 2.40)), (8, (2.42, 2.401))):
        for trial, loss in zip(one.level_trials("laptop", "rope"), losses, strict=True):
            record = made(one.config("laptop", trial, seed), **{one.score: loss})
            Store(checkout / "results").write(record)
    assert one.rate("laptop", "rope") == 8e-3, "the mean of three"
    seeds = {run.seed for run in one.grid("laptop") if run.training.learning_rate == 2e-3}
    assert seeds == {0} and one.waiting("laptop", "rope") == [("rope", 1.6e-2)]


def test_where_every_trial_has_three_seeds_their_median_decides_and_none_counts_before_all_are_there(
    checkout,
):
    one = sweep(methods=("rope",), seeds=(0, *MORE_SEEDS))
    assert sorted({run.seed for run in one.grid("laptop")}) == [0, *MORE_SEEDS] == [0, 7, 8]
    assert {run.seed for run in one.grid("smoke")} == {0}
    publish(checkout, one, "laptop", {"rope": [2.1, 2.5, 2.9]})
    publish(checkout, one, "laptop", {"rope": [2.8, 2.5, 2.4]}, seed=7)
    assert not one.best("laptop") and one.rate("laptop", "rope") == one.default
    refused("no published record gives 'rope' a learning rate", one.require, "laptop", "rope")
    publish(checkout, one, "laptop", {"rope": [2.7, None]}, seed=8)
    assert not one.best("laptop"), "the last rate has two seeds"
    publish(checkout, one, "laptop", {"rope": [2.7, None, 2.3]}, seed=8)
    assert one.scores("laptop") == {("rope", 2e-3): 2.7, ("rope", 4e-3): 2.5, ("rope", 8e-3): 2.4}
    assert one.rate("laptop", "rope") == 8e-3, "one seed, and the mean of two, would take others"
    assert one.waiting("laptop", "rope") == [("rope", 1.6e-2)]


def test_a_table_is_drawn_at_the_scale_that_is_best_with_its_rate_and_by_default_as_ever(checkout):
    one = sweep(scaled=True, methods=("learned", "separated-learned"))
    trials = one.trials("laptop", "learned")
    assert (
        set(trials) == {("learned", rate, std) for rate in RATES for std in TABLES.stds} and len(trials) == 9
    )
    assert len({one.config("laptop", trial, 0).key for trial in trials}) == 9
    run = book.run_of("x", "laptop", "learned", 1, 4e-3)
    assert differing(run, one.settled("laptop", "learned", run)) == set()
    losses = [2.9, 2.8, 2.7, 2.6, 2.4, 2.5, 2.3, None, 2.7]
    publish(checkout, one, "laptop", {"learned": losses})
    assert one.chosen("laptop") == {"learned": trials[6]} and one.std("gpu", "learned") == trials[6][2]
    assert one.rate("laptop", "learned") == trials[6][1] and one.at_an_end("laptop") == {"learned": RATES[0]}
    (table,) = one.settled("smoke", "learned", run).model.encodings
    assert table == Learned(std=trials[6][2]) and one.std("laptop", "separated-learned") is None


def test_a_scale_beyond_an_end_is_tried_at_the_best_rate_and_counts_once_it_is_published(checkout):
    one = sweep(scaled=True, methods=("learned",))
    first = one.declared("learned")
    assert one.trials("laptop", "learned") == one.trials("gpu", "learned") == first and len(first) == 9
    publish(checkout, one, "laptop", {"learned": [2.9, 2.8, 2.7, 2.6, 2.4, 2.5, 2.4, 2.3, 2.7]})
    further = ("learned", 4e-3, 1.0)
    assert one.chosen("laptop") == {"learned": first[7]}
    assert one.trials("laptop", "learned") == [*first, further]
    assert one.waiting("laptop", "learned") == [further]
    refused(r"'learned' is to be tried at 0.004 at scale 1 too", one.require, "laptop", "learned")
    publish(checkout, one, "laptop", {"learned": [2.9, 2.8, 2.7, 2.6, 2.4, 2.5, 2.4, 2.3, 2.7, 2.5]})
    assert one.chosen("laptop") == {"learned": first[7]} and not one.waiting("laptop", "learned")


OF_TEXTS = [name for name, one in SWEEPS.items() if one.scaled and one.rates == RATES]


def test_the_rates_of_a_grid_hang_on_no_store_that_a_command_reads_or_writes(tmp_path, monkeypatch):
    """A temporary store, as of tests and of a check, has none of the sweep's records; keys stay the same."""
    keys = {name: [c.key for c in experiments.get(name).grid("laptop", [7])] for name in GRIDS}
    monkeypatch.setenv("SEPNB_RESULTS", str(tmp_path))
    assert keys == {name: [c.key for c in experiments.get(name).grid("laptop", [7])] for name in GRIDS}


def test_a_stale_mark_turns_no_rate_and_a_changed_record_is_refused(checkout):
    one = sweep()
    publish(checkout, one, "laptop", {"rope": [2.4, 2.5, 2.6]})
    config = one.config("laptop", ("rope", 2e-3), 0)
    Store(checkout / "results").mark_stale("laptop", "lr_screen", config.key, "changed")
    assert one.rate("laptop", "rope") == 2e-3
    file = checkout / "results" / "laptop" / "lr_screen" / f"{config.key}.json"
    content = json.loads(file.read_text())
    content["metrics"]["val_bits_per_byte"] = 9.0
    file.unlink()
    file.write_text(json.dumps(content))
    refused("its content does not match its checksum", one.rate, "laptop", "rope")


def test_what_will_be_published_is_not_trained_at_a_rate_that_nobody_swept(checkout):
    one = sweep()
    one.require("smoke", "rope")
    refused(r"gives 'rope' a learning rate for 'gpu'; run `sepnb run lr_screen", one.require, "gpu", "rope")
    publish(checkout, one, "laptop", {"rope": [2.5, 2.4, 2.6]})
    one.require("laptop", "rope")
    with pytest.raises(ValueError, match="run `sepnb run lr_screen --profile gpu`"):
        one.require("gpu", "rope")  # a rate of another size of model is none
    publish(checkout, one, "gpu", {"rope": [2.5, 2.4, 2.6]})
    one.require("gpu", "rope")


@pytest.mark.parametrize("name", [name for name in experiments.names() if not experiments.get(name).chooses])
def test_what_a_grid_waits_for_runs_before_it(name, checkout):
    """A run of the gpu profile, where nothing was swept, names an experiment of an earlier phase, or none."""
    grid = experiments.get(name)
    planned = runs.phases([experiments.get(one) for one in experiments.names()], "gpu")
    phase = {one.name: number for number, phase in enumerate(planned) for one in phase}
    for config in grid.grid("gpu")[:1]:
        try:
            grid.refuse(config)
        except ValueError as error:
            (needed,) = re.findall(r"`sepnb run (\w+) --profile gpu`", str(error))
            assert phase[needed] < phase[name]


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_without_rates_refuses_to_begin(name, checkout):
    for config in GRIDS[name].grid("laptop", seeds=[1])[:4]:
        refused(r"no published record gives .* a learning rate for 'laptop'", GRIDS[name].run, config)


def test_of_rates_that_are_alike_the_middle_one_is_taken_and_of_two_the_lower(checkout):
    one = sweep(methods=("rope",), alike=0.01)
    for losses, rate in (([2.409, 2.405, 2.4], 4e-3), ([2.5, 2.405, 2.4], 4e-3), ([2.5, 2.42, 2.4], 8e-3)):
        shutil.rmtree(checkout / "results", ignore_errors=True)
        publish(checkout, one, "laptop", {"rope": losses})
        assert one.best("laptop") == {"rope": rate}


def test_a_run_of_a_task_is_drawn_at_the_scale_that_its_sweep_chose(checkout):
    experiment = experiments.get("mqar")
    trials = experiment.sweep.trials("laptop", "sinusoidal-gap")
    losses = [0.1 if trial[1:] == (3e-3, 1.0) else 1.0 for trial in trials]
    publish(checkout, experiment.sweep, "laptop", {"sinusoidal-gap": losses})
    (run,) = (one for one in experiment.grid("laptop", seeds=[1]) if one.method == "sinusoidal-gap")
    assert (run.training.learning_rate, run.model.embedding_std) == (3e-3, 1.0)


# --- the published sweeps


def test_tables_and_the_content_beside_an_added_sinusoid_are_drawn_at_the_best_of_their_scales():
    sweep = in_window.TABLE_SWEEP
    for name in ("in_window", "extrapolation", "fitted_rows"):
        for run in experiments.get(name).grid("laptop", [1]):
            if (scale := scale_of(run.model)) and run.method in sweep.methods:
                assert scale.of(run.resolved()["model"]) == sweep.std("laptop", run.method), run.key


@pytest.mark.parametrize("name", SWEEPS)
def test_where_the_best_rate_of_a_laptop_stands_at_an_end_a_further_one_is_waited_for(name):
    one = SWEEPS[name]
    ends = set(one.at_an_end("laptop")) - {*one.stops}
    assert not {method for method in ends if not one.waiting("laptop", method)}
    whole = {config.method for config in one.grid("laptop")}
    assert whole == set(one.methods)
    seeds, published = {config.seed for config in one.grid("laptop")}, set(range(1, 7))
    assert 0 in seeds <= {0, *MORE_SEEDS} and not seeds & published, "no seed of a published run chooses"


@pytest.mark.parametrize("name", OF_TEXTS)
def test_the_scale_that_is_chosen_stands_between_two_that_were_tried(name):
    one = SWEEPS[name]
    tried = {(method, std[0]) for method, _, *std in one.scores("laptop") if std}
    for method, _, *std in one.chosen("laptop").values():
        others = {scale for of, scale in tried if of == method and std}
        assert not std or min(others) < std[0] < max(others), f"{method}: declare a scale past the end"


@pytest.mark.parametrize("name", task_grid.GUESSES)
def test_a_method_is_said_to_guess_that_found_hardly_an_answer_at_any_rate_and_scale(name):
    for record in Store(paths.root() / "results").load("laptop", f"{name}_sweep").values():
        guesses = record.config["method"] in task_grid.GUESSES[name]
        assert not guesses or record.metrics["val_accuracy"] < 2 / 8  # eight values stand in the text


@pytest.mark.parametrize("name", GRIDS)
def test_every_published_run_has_the_rate_of_a_sweep_that_tried_all_of_its_method(name):
    experiment = GRIDS[name]
    published = Store(paths.root() / "results").load("laptop", name)
    for config in grid_of(name, "laptop"):
        if config.key not in published:
            continue
        sweep, as_one = sweep_of(experiment, config)
        assert as_one in sweep.best("laptop"), f"run `sepnb run {sweep.name} --profile laptop`"


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_trains_at_the_rate_of_its_sweep_with_seeds_that_chose_none(name):
    experiment, swept = GRIDS[name], set()
    for profile in experiments.PROFILES:
        for config in grid_of(name, profile):
            sweep, as_one = sweep_of(experiment, config)
            assert config.training.learning_rate == sweep.rate(profile, as_one)
            assert config.seed != 0 or name == "recipe_screen"
            swept.add(as_one)
    assert swept and all(any(one in sweep.methods for sweep in SWEEPS.values()) for one in swept)

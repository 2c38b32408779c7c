"""What a run of the gpu profile is expected to take: its operations, at a quarter of what a GPU does."""

from dataclasses import replace

import pytest

from sepnb import experiments
from sepnb.analysis.flops import per_token
from sepnb.experiments import expected
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.run import Run

from .smoke_runs import grid_of

IN_WINDOW = experiments.get("in_window")
ROPE = IN_WINDOW.config("gpu", "rope", 1)


def test_a_run_takes_its_operations_at_a_quarter_of_the_peak_and_a_step_of_a_small_model_a_least_time():
    size, peak = lm.SIZES["gpu"], 1e13
    tokens = size.steps * size.batch_size * size.length
    work = 3 * tokens * (per_token(ROPE.model, size.length) + size.width * 256)
    assert expected.of_run(IN_WINDOW, ROPE, peak) == pytest.approx((4 * work / peak,) * 2)
    small = replace(ROPE, training=replace(ROPE.training, batch_size=1))
    gpu, alone = expected.of_run(IN_WINDOW, small)
    assert (gpu, alone) == (expected.LEAST_OF_GPU * size.steps, expected.LEAST_STEP * size.steps)


def test_the_grid_that_a_gpu_has_run_takes_about_what_is_expected_of_it():
    """Nine runs of three methods, side by side; scoring is not counted, and machines differ."""
    needle = experiments.get("needle")
    table = needle.table("gpu")
    made = {record.key for record in table.attrs["records"]}
    runs = [expected.of_run(needle, config) for config in needle.grid("gpu") if config.key in made]
    told, took = expected.together(runs, side_by_side=9), table["train_gpu_s"].mean()
    assert 0.5 < told / took < 2


def test_runs_side_by_side_share_a_gpu_where_they_do_not_fill_it():
    runs = [expected.Expected(1.0, 8.0)] * 4
    told = [expected.together(runs, side_by_side) for side_by_side in (1, 2, 4, 99)]
    assert told == [32.0, 16.0, 8.0, 4.0]  # four of them fill it for four seconds
    assert expected.together(runs, 4, gpus=2) == 4.0
    assert expected.together([], 4) == 0.0


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_is_expected_to_take_some_time_and_only_what_trains_no_model_says_it_itself(name):
    experiment = experiments.get(name)
    config = grid_of(name, "gpu")[0]
    assert expected.of_run(experiment, config).alone > 0
    assert isinstance(config, Run) != ("gpu" in experiment.costs)

"""Paired timings: what is timed, in which order, and what a neighbour on the machine can do to a ratio."""

import gc
import time

import numpy as np
import pytest
import torch

from sepnb.analysis import timing
from sepnb.analysis.timing import check_alike, interleaved, paired_ratio

from ..shared import refused


class Clock:
    """A clock that stands still unless a step takes time."""

    def __init__(self) -> None:
        self.now, self.calls = 100.0, []

    def step(self, name: str, seconds: float):
        def run() -> None:
            self.calls.append(name)
            self.now += seconds

        return run


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing.time, "process_time", lambda: clock.now)
    return clock


def test_steps_take_turns_and_the_warm_up_is_not_timed(clock):
    times = interleaved({"a": clock.step("a", 2.0), "b": clock.step("b", 0.5)}, repeats=9)
    assert times == {"a": [2.0] * 9, "b": [0.5] * 9}
    assert "".join(clock.calls) == "ab" * 2 + "abba" * 4 + "ab"
    assert paired_ratio(times["a"], times["b"]) == (4.0, 4.0, 4.0)


def test_the_ratio_is_the_median_of_the_pairs_with_its_quartiles():
    found = paired_ratio([2.0, 6.0, 12.0, 4.0, 5.0], [2.0] * 5)
    assert found == (2.5, 2.0, 3.0)
    assert str(found) == "2.500 (2.000 to 3.000)"
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 2, 31), rng.uniform(1, 2, 31)
    found = paired_ratio(list(a), list(b))
    assert found.lower < found.median < found.upper
    assert found == pytest.approx(tuple(np.quantile(a / b, [0.5, 0.25, 0.75])))


def test_waiting_is_not_counted_and_working_is():
    def work() -> None:
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass

    def wait_and_work() -> None:
        time.sleep(0.03)
        work()

    times = interleaved({"work": work, "wait": wait_and_work}, repeats=9)
    assert min(times["work"] + times["wait"]) >= 0.02
    assert np.median(times["wait"]) < 0.035  # and not 0.05


def test_the_steps_run_on_one_thread_without_the_collector_and_both_come_back():
    seen = []

    def look() -> None:
        seen.append((torch.get_num_threads(), gc.isenabled()))
        torch.ones(50, 50).exp()

    def fails() -> None:
        if len(seen) > 3:
            raise RuntimeError("stop")
        look()

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        interleaved({"look": look}, repeats=9)
        assert seen == [(1, True)] * 2 + [(1, False)] * 9
        assert (torch.get_num_threads(), gc.isenabled()) == (2, True)
        seen.clear()
        refused("stop", interleaved, {"fails": fails}, error=RuntimeError, repeats=9)
        assert (torch.get_num_threads(), gc.isenabled()) == (2, True)
    finally:
        torch.set_num_threads(threads)


def test_what_would_give_a_wrong_ratio_is_refused(clock):
    steps = {"a": clock.step("a", 1.0), "idle": clock.step("idle", 0.0)}
    refused("repeats is 8; a median with quartiles takes at least 9", interleaved, steps, repeats=8)
    assert clock.calls == []
    refused("'idle' took no measurable time; give it more work", interleaved, steps, repeats=9)
    refused("3 times cannot be paired with 2", paired_ratio, [1.0, 1.0, 1.0], [1.0, 1.0])
    refused("0 times", paired_ratio, [], [])


def test_on_a_gpu_events_on_its_stream_are_read_after_the_last_kernel(monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing
            self.number = sum(entry.startswith("event") for entry in log)
            log.append(f"event {self.number}")

        def record(self) -> None:
            log.append(f"record {self.number}")

        def synchronize(self) -> None:
            log.append(f"wait {self.number}")

        def elapsed_time(self, end: "Event") -> float:
            log.append(f"read {self.number} to {end.number}")
            return 1500.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("idle"))
    assert timing.cuda_seconds(lambda: log.append("step")) == 1.5
    assert log[2:] == ["idle", "record 0", "step", "record 1", "wait 1", "read 0 to 1"]
    times = interleaved({"a": lambda: None}, repeats=9, device="cuda:0")
    assert times == {"a": [1.5] * 9}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_s_own_clock_sees_its_work():
    x = torch.randn(4096, 4096, device="cuda")

    def products(count: int):
        def step() -> None:
            for _ in range(count):
                x @ x

        return step

    times = interleaved({"one": products(10), "two": products(20)}, repeats=9, device="cuda")
    assert 1.5 < paired_ratio(times["two"], times["one"]).median < 2.5


def test_steps_are_alike_by_the_largest_number_of_each_of_their_tensors():
    some, few = torch.tensor([1.0, -100.0]), torch.tensor([1e-3])
    check_alike([some + 1e-3, few], [some, few], 1e-4)
    for other, message in (
        ([some, few + 1e-3], "gradients 1"),
        ([some + 1, few], "outputs"),
        ([some * torch.nan, few], "outputs"),
        ([some], "one step has 0 gradients, the other 1"),
    ):
        refused(message, check_alike, other, [some, few], 1e-4, error=RuntimeError)

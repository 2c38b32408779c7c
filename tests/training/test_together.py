"""Several processes train as one alone would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sepnb.training.together import Together

SCRIPT = Path(__file__).with_name("trained_together.py")


def told(count: int, meeting: Path) -> list[dict[str, list[float]]]:
    """The losses that each of so many processes tells."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "JAXTYPING_DISABLE": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(count), str(meeting)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    return [json.loads(process.communicate(timeout=300)[0]) for process in processes]


def test_two_processes_have_the_losses_of_one_with_the_same_batches(tmp_path) -> None:
    (alone,) = told(1, tmp_path / "alone")
    first, second = told(2, tmp_path / "both")
    assert first == second
    for case, losses in alone.items():
        assert len(set(losses)) > 1, "nothing was trained"
        assert first[case] == pytest.approx(losses, rel=0, abs=1e-10), case


def test_a_process_without_a_group_is_told_how_to_have_one() -> None:
    with pytest.raises(ValueError, match="start it by torchrun and call"):
        Together()

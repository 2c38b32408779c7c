"""Chapter numbers: written whole, refused when they say nothing, found or explained."""

import json

import numpy as np
import pytest
import torch

from sepnb.records import numbers
from sepnb.records.numbers import NumbersError

from ..shared import refused


def test_what_is_published_is_loaded_and_scalars_are_taken_at_their_value(checkout, capsys) -> None:
    given = {"loss": 1.25, "n_runs": 3, "best_method": "rope", "agrees": True}
    arrays = {"a": np.float32(0.5), "b": torch.tensor(3), "c": np.int64(7)}
    shown = numbers.publish("01_order", given | arrays, profile="smoke")
    assert shown is None  # a cell shows what its last line returns
    assert capsys.readouterr().out == "written: 01_order.json\n"
    path = numbers.path("01_order", "smoke")
    assert path == checkout / "build" / "smoke" / "01_order.json"
    loaded = numbers.load("01_order", "smoke")
    assert loaded == given | {"a": 0.5, "b": 3, "c": 7}
    assert [type(loaded[name]) for name in arrays] == [float, int, int]
    assert json.loads(path.read_text())["chapter"] == "01_order"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "no numbers"),
        ({"loss": float("nan")}, "loss is nan"),
        ({"Loss": 1.0}, "'Loss' is not lower_snake"),
        ({"losses": [1.0, 2.0]}, "losses is a list"),
        ({"first": float("nan"), "fine": 1.0, "second": []}, r"first is nan.*second is a list"),
    ],
)
def test_what_says_nothing_is_refused(checkout, content: dict, message: str) -> None:
    refused(message, numbers.publish, "01_order", content, error=NumbersError, profile="smoke")
    assert not (checkout / "build").exists()


@pytest.mark.attack("names of chapters that lead to other folders")
@pytest.mark.parametrize("name", ["../01_order", ""])
def test_a_chapter_name_cannot_lead_elsewhere(checkout, name: str) -> None:
    refused("not a plain name", numbers.publish, name, {"loss": 1.0}, error=NumbersError, profile="smoke")


@pytest.mark.attack("files of chapter numbers that were cut, edited or moved")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "has not run at laptop"),
        ('{"chapter": "01_order", "numb', "not valid JSON"),
        ("[1, 2]", "holds no 'numbers'"),
        ('{"chapter": "02_other", "profile": "laptop", "numbers": {}}', "'02_other' at 'laptop'"),
        ('{"chapter": "01_order", "profile": "smoke", "numbers": {}}', "'01_order' at 'smoke'"),
    ],
)
def test_a_file_that_cannot_be_trusted_says_so_with_path_and_remedy(
    checkout, text: str | None, message: str
) -> None:
    path = numbers.path("01_order", "laptop")
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    with pytest.raises(NumbersError, match=message) as caught:
        numbers.load("01_order", "laptop")
    assert str(caught.value).startswith(str(path))
    assert "sepnb run 01_order --profile laptop" in str(caught.value)


def test_a_failed_write_leaves_the_old_file_and_no_other(checkout, monkeypatch) -> None:
    numbers.publish("01_order", {"loss": 1.0}, profile="smoke")

    def no_space(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", no_space)
    refused("no space", numbers.publish, "01_order", {"loss": 2.0}, error=OSError, profile="smoke")
    assert numbers.load("01_order", "smoke") == {"loss": 1.0}
    path = numbers.path("01_order", "smoke")
    assert list(path.parent.iterdir()) == [path]


def test_a_mean_is_of_the_seeds_that_are_there_and_of_none_it_says_so() -> None:
    assert numbers.mean_of([1.0, None, float("nan"), 2.0]) == 1.5
    assert numbers.mean_of(np.array([0.25])) == 0.25
    assert numbers.mean_of([]) == numbers.mean_of([None]) == numbers.NOT_RUN

"""The tutorial runs as it stands on the page, on any text, and says what comes of it."""

import re
from pathlib import Path

import pytest
import torch

from sepnb import paths

PAGE = (paths.root() / "book" / "tutorial.md").read_text(encoding="utf-8")
CODE = "\n\n".join(re.findall(r"(?ms)^```python\n(.*?)^```", PAGE))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str, Path]:
    """The names that the code of the page defines, what it prints, and the folder in which it ran."""
    folder = tmp_path_factory.mktemp("tutorial")
    text = (paths.root() / "README.md").read_bytes()[:8_000]
    (folder / "my-text.txt").write_bytes(text)
    names, printed, state = {}, [], torch.get_rng_state()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        names["print"] = lambda *parts: printed.append(" ".join(map(str, parts)))
        exec(compile(CODE, "book/tutorial.md", "exec"), names)
    torch.set_rng_state(state)
    return names, "\n".join(printed), folder


def test_it_learns_reads_on_is_tuned_writes_and_keeps_what_it_wrote_with(ran):
    names, printed, folder = ran
    assert names["losses"][0] > names["losses"][-1]
    labels = ("as trained", "within a window", "slowed down", "tuned")
    rows = [line for line in printed.splitlines() if line.startswith(labels)]
    assert len(rows) == 4 and all(len(re.findall(r"\d+\.\d+", row)) == 3 for row in rows)
    assert names["written"].shape == (1, 204) and "The " in printed
    assert names["again"].transformer.log_scale and not names["base"].transformer.log_scale
    files = {file.name: file.stat().st_size for file in folder.iterdir()}
    assert files.keys() == {"my-text.txt", "my-model.safetensors", "longer.safetensors"}
    assert 8 < files["my-model.safetensors"] / files["longer.safetensors"] < 10  # "a ninth of the first"


def test_what_the_page_shows_as_printed_is_what_the_code_prints(ran):
    """Line by line, numbers left out: they are of one run on a larger text. The share is the same."""
    _, printed, _ = ran
    lines = printed.splitlines()
    forms = [re.sub(r"\d+\.?\d*", "0", line) for line in lines]
    shown = "".join(re.findall(r"(?ms)^```text\n(.*?)^```", PAGE)).splitlines()
    assert len(shown) >= 5
    for line in shown:
        assert re.sub(r"\d+\.?\d*", "0", line) in forms, line
        if "weights" in line:
            assert line in lines


def test_only_the_position_part_is_tuned(ran):
    names, _, _ = ran
    before, masks = dict(names["model"].named_parameters()), names["model"].parts()
    differ = {name: weight != before[name] for name, weight in names["tuned"].named_parameters()}
    assert any(differ[name].any() for name in differ)
    assert not any((differ[name] & masks["content"][name]).any() for name in differ)

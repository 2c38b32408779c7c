"""One more encoding is one more file: in a copy of package and tests, nothing else is changed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ENCODING = '''
"""A bias that falls with a power of the distance, at a rate of each head."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from .base import Encoding, Heads, ScoreModule, Site
from .reference import Layer, biased
from .relative import by_distance


class WaningScore(ScoreModule):
    toeplitz = True

    def __init__(self, n_heads: int, power: float) -> None:
        super().__init__()
        self.power, self.rate = power, nn.Parameter(torch.randn(n_heads))

    def forward(self, query_positions: Tensor, key_positions: Tensor, consecutive: bool = False) -> Tensor:
        return by_distance(self._of, query_positions, key_positions, consecutive)

    def _of(self, relative: Tensor) -> Tensor:
        rate = self.rate.exp().reshape(-1, *[1] * relative.dim())
        return -rate * relative.abs().to(rate.dtype) ** self.power


@dataclass(frozen=True)
class Waning(Encoding):
    """A bias of a power of the distance."""

    name: ClassVar[str] = "waning"
    sites: ClassVar[frozenset[Site]] = frozenset({Site.SCORE})

    power: float = 0.5
    per_layer: bool = False

    def at_score(self, heads: Heads) -> ScoreModule:
        return WaningScore(heads.count, self.power)
'''
OWED = """

def _written(layer: Layer, heads: int) -> Tensor:
    return -layer.leaf("rate").exp()[:, None, None] * layer.distance.abs() ** layer.encoding.power


Waning.reference = biased(_written)
Waning.tried = ({"power": 0.25}, {"per_layer": True})
Waning.left_out = "it is made for a test"
"""
USED = """
import torch

from sepnb import encodings
from sepnb.analysis.inventory import inventory
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams


def test_waning_is_known():
    assert encodings.names()[-2:] == ["waning", "zigzag"]
    assert encodings.build("waning", power=0.3).power == 0.3
    row = inventory(["waning"], length=8, width=16, n_heads=2).iloc[0]
    assert (row.sites, row.depends_on, row.parameters, row.cache) == ("score", "distance", 2, True)
    config = TransformerConfig(Streams(pos=8, sem=8), 1, 2, ("learned", "waning"), max_length=8)
    assert LanguageModel(config, 5)(torch.zeros(1, 8, dtype=torch.int64)).shape == (1, 8, 5)
"""
SHARED = (
    "tests/encodings/test_registry.py",
    "tests/encodings/test_every_encoding.py",
    "tests/encodings/test_tells_apart.py",
    "tests/encodings/test_used.py",
    "tests/experiments/test_encoding_experiment.py::test_every_encoding_of_the_registry_is_in_the_table_or_left_out_with_"
    "a_reason",
)
OF_ALL = "of_the_registry or every_option or in_their_order"
"""Those of the shared tests that look at the whole registry."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the shared tests say in a copy of package and tests that has two more encodings: one is whole, the
    other has nothing of what it owes. Compiled modules are copied too, which saves time."""
    copied = tmp_path_factory.mktemp("copied")
    skipped = shutil.ignore_patterns("oracles", "notebooks", "book", "reference")
    for folder in ("sepnb", "tests"):
        shutil.copytree(ROOT / folder, copied / folder, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", copied)
    other = ENCODING.replace("waning", "zigzag").replace("Waning", "Zigzag")
    for name, text in {"waning": ENCODING + OWED, "zigzag": other}.items():
        (copied / "sepnb" / "encodings" / f"{name}.py").write_text(text, encoding="utf-8")
    (copied / "tests" / "encodings" / "test_used.py").write_text(USED, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copied), "PYTHONDONTWRITEBYTECODE": "1"}
    which = f"waning and (equation_of_its or one_full_pass or known or hears or saturate) or {OF_ALL}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SHARED, "-k", which]
    return subprocess.run(command, cwd=copied, env=environment, capture_output=True, text=True).stdout


def test_a_new_file_is_listed_built_measured_and_held_to_its_equation_without_another_edit(said):
    """Of three cases: the equation six times, and one answer; that of the first in three more shapes. What it
    reads of positions is measured twice."""
    passed = int(said.rsplit(" passed", 1)[0].split()[-1])
    assert passed >= 1 + 3 * (6 + 1) + 3 + 1 + 2, said
    assert not re.search(r"(?m)^FAILED.*waning|Waning (one|says)|of Waning", said), said


def test_what_a_new_file_leaves_out_is_asked_for_by_name_and_place(said):
    assert " 3 failed" in " " + said.splitlines()[-1], said[-3000:]
    told = " ".join(said.split())
    for words in (
        "zigzag has no equation to be held against: give sepnb.encodings.zigzag.Zigzag one, a class "
        "attribute `reference`",
        "add {'per_layer': another} to `tried`, a class attribute of Zigzag",
        "zigzag is neither compared nor left out: either a method of sepnb/experiments/encoding_methods.py "
        "has it, or sepnb.encodings.zigzag.Zigzag says why none has, a class attribute `left_out`",
    ):
        assert words in told, told[-3000:]

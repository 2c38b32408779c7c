"""Tensors under a seal come back as they were, or not at all."""

import hashlib
import pickle
from pathlib import Path

import pytest
import safetensors.torch
import torch

from sepnb.records import sealed

from ..shared import refused

TENSORS = {
    "matrix": torch.arange(12.0).reshape(3, 4).T,
    "bits": torch.tensor([1.5, -0.0], dtype=torch.bfloat16),
    "one": torch.tensor(2**40),
    "none": torch.empty(0, 3),
}
TOLD = {"steps": 3, "losses": [0.1, 1e-300], "text": 'a "sha256":"' + 64 * "0" + '"'}


@pytest.fixture
def path(tmp_path) -> Path:
    sealed.write(tmp_path / "deep" / "one.safetensors", TENSORS, TOLD)
    return tmp_path / "deep" / "one.safetensors"


def test_what_is_written_is_read_bit_for_bit_here_and_by_any_program(path):
    tensors, told = sealed.read(path)
    assert told == TOLD and tensors.keys() == TENSORS.keys()
    for found in (tensors, safetensors.torch.load_file(path)):
        for name, tensor in TENSORS.items():
            assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)


@pytest.mark.attack("one flipped bit in every byte of a file of tensors")
def test_a_file_with_a_flipped_bit_is_refused_wherever_it_is(path):
    content = path.read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        refused(r"one\.safetensors .*; delete it", sealed.read, path)


@pytest.mark.attack("files of tensors that were cut short or made longer")
def test_so_is_one_that_is_cut_or_longer(path):
    content = path.read_bytes()
    changes = [*(content[:end] for end in range(0, len(content), 7)), content + b" ", content * 2]
    for changed in changes:
        path.write_bytes(changed)
        refused(r"one\.safetensors .*; delete it", sealed.read, path)


class Harmful:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.attack("pickles and files that another program wrote")
@pytest.mark.parametrize("how", ["a pickle", "plain tensors", "sealed by another hand", "a folder"])
def test_what_was_not_written_here_is_refused_and_nothing_of_it_runs(how, tmp_path):
    path = tmp_path / "one.safetensors"
    plain = safetensors.torch.save({"x": torch.zeros(1)}, {"sha256": 64 * "0"})
    seal = hashlib.sha256(plain).hexdigest().encode()
    if how == "a folder":
        path.mkdir()
    else:
        content = {"a pickle": pickle.dumps(Harmful()), "plain tensors": plain}
        path.write_bytes(content.get(how, plain.replace(64 * b"0", seal, 1)))
    refused(r"one\.safetensors ", sealed.read, path)


def test_no_file_is_no_damage(tmp_path):
    with pytest.raises(FileNotFoundError):
        sealed.read(tmp_path / "one.safetensors")

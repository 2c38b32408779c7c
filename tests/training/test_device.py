"""What only a GPU is given, seen without one."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from sepnb.models import LanguageModel, TransformerConfig
from sepnb.models.fast import pieces
from sepnb.models.fast.kernels import CompilerMissing, check_compiler
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, device, optimiser
from sepnb.validation import unread, vouched

CONFIG = TrainingConfig(steps=2, batch_size=2, length=4, learning_rate=1e-3)


def test_adamw_is_one_kernel_on_a_gpu_and_stays_what_it_is_on_a_cpu(monkeypatch):
    model = nn.Linear(2, 2)
    assert optimiser(model, CONFIG).defaults["fused"] is None
    monkeypatch.setattr(device, "on_gpu", lambda model: True)
    assert optimiser(model, CONFIG).defaults["fused"] is True


def test_a_batch_goes_to_a_gpu_from_pinned_memory_and_nobody_waits():
    log = []
    tensor = SimpleNamespace(
        pin_memory=lambda: log.append("pinned") or tensor, to=lambda *where, **how: log.append((where, how))
    )
    device.sent(tensor, "cuda:1")
    assert log == ["pinned", (("cuda:1",), {"non_blocking": True})]
    there = torch.arange(3)
    assert device.sent(there, "cpu") is there


def test_a_gpu_needs_a_compiler_of_c_too(monkeypatch):
    found = {"g++": "/usr/bin/g++"}
    monkeypatch.setattr("shutil.which", found.get)
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(CompilerMissing, match=r"needs the C compiler gcc or clang, .* variable CC"):
        check_compiler("inductor", "cuda:0")
    check_compiler("eager", "cuda")
    found["clang"] = "/usr/bin/clang"
    check_compiler("inductor", "cuda:0")
    monkeypatch.setenv("CC", "icx -O2")
    with pytest.raises(CompilerMissing, match="needs the C compiler icx, "):
        check_compiler("inductor", "cuda")


def test_more_scores_are_held_at_once_on_a_large_gpu(monkeypatch):
    memory = {"cuda:0": 2**30, "cuda:1": 80 * 2**30}
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda at: SimpleNamespace(total_memory=memory[str(at)])
    )
    held = [pieces.at_once(torch.device(name)) for name in ("cpu", "cuda:0", "cuda:1")]
    assert held[0] == held[1] == pieces.AT_ONCE
    assert 16 * held[0] < held[2] < memory["cuda:1"] / 64  # copies of them fit beside one another


def test_what_was_vouched_for_before_is_so_afterwards_whatever_ends_it():
    made = LanguageModel(TransformerConfig(Streams.dense(8), 1, 2, "seqpe", max_length=8), 7)
    at = torch.zeros(1, device="meta")

    def told() -> set[bool]:
        return {module.vouched for module in made.modules() if hasattr(module, "vouched")}

    with vouched(made):
        with pytest.raises(KeyError), vouched(made, False):
            assert told() == {False}
            raise KeyError
        assert told() == {True} and unread(at, made.transformer.vouched)
        assert not unread(torch.zeros(1), True)  # what lies on the host costs nothing
    assert told() == {False} and not unread(at)

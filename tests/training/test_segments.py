"""Training in consecutive segments: the bytes follow each other, the one loop reads them with a memory."""

import dataclasses

import numpy as np
import pytest
import torch

from sepnb.data import text as texts
from sepnb.data.text import Document, Text
from sepnb.evaluation.protocols import trained_sides
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, optimiser, train
from sepnb.training.memory import SegmentMemory
from sepnb.training.positions import Segments

L, B, COUNT = 4, 3, 3
TEXT = Text("two", tuple(Document(f"d{k}", "a", (np.arange(60) + 100 * k).astype(np.uint8)) for k in (0, 1)))
SIZES = {"batch_size": B, "length": L, "seed": 5}
CONFIG = TrainingConfig(
    steps=7, batch_size=B, length=L, learning_rate=1e-2, positions=Segments(COUNT), memory=4
)


def model() -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(TransformerConfig(Streams.dense(16), 2, 2, "rope", max_length=L))


def test_segments_are_the_windows_of_the_seed_cut_and_read_on_at_the_next_position():
    batches = list(CONFIG.positions.batches(TEXT, **SIZES, steps=7))
    assert len(batches) == 7
    whole = list(texts.sample_batches(TEXT, batch_size=B, length=COUNT * L, seed=5, steps=3))
    for step, batch in enumerate(batches):
        chunk, start = whole[step // COUNT], step % COUNT * L
        assert np.array_equal(batch.inputs, chunk[:, start : start + L])
        assert np.array_equal(batch.targets, chunk[:, start + 1 : start + L + 1])
        assert batch.positions.tolist() == list(range(start, start + L))
    alone = list(CONFIG.positions.positions(batch_size=B, length=L, seed=5, steps=7))
    assert [at.tolist() for at in alone] == [batch.positions.tolist() for batch in batches]
    assert CONFIG.positions.trained_indices(L) == COUNT * L
    assert CONFIG.positions.coverage(batch_size=B, length=L, seed=5, steps=7) == 1.0


@pytest.mark.parametrize(("count", "memory"), [(3, 0), (3, 2), (3, 4), (3, 100), (1, 4)])
def test_the_distances_of_a_training_are_those_to_what_its_memory_holds(count, memory):
    config = dataclasses.replace(CONFIG, positions=Segments(count), memory=memory)
    held, seen = np.empty(0, dtype=np.int64), []
    for at in config.positions.positions(**SIZES, steps=2 * count):
        held = held[:0] if at[0] == 0 else held  # another text
        keys = np.concatenate([held, at])
        seen.append(int(at.max() - keys.min()))
        held = keys[len(keys) - min(memory, len(keys)) :]
    assert trained_sides(config) == (count * L, max(seen) + 1)


def by_hand(config: TrainingConfig, start: int = 0) -> list[float]:
    """The losses of the schedule, the memory written out."""
    m = model().train()
    adamw = optimiser(m, config)
    losses = []
    for step, batch in enumerate(config.positions.batches(TEXT, **SIZES, steps=config.steps)):
        if step % COUNT == 0:
            memory = SegmentMemory(m, B, config.memory)
        for group in adamw.param_groups:
            group["lr"] = config.rate(step)
        tokens, targets, at, _ = batch.tensors()
        logits = memory(tokens, at)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        adamw.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), config.clip)
        adamw.step()
        losses.append(loss.item())
    return losses


def test_the_loop_trains_with_the_memory_and_empties_it_where_texts_begin():
    drawn = CONFIG.positions.batches(TEXT, **SIZES, steps=7)
    losses = train(model(), drawn, CONFIG)
    assert losses == pytest.approx(by_hand(CONFIG), abs=1e-5)
    without = dataclasses.replace(CONFIG, memory=0)
    control = train(model(), without.positions.batches(TEXT, **SIZES, steps=7), without)
    assert control[0] == losses[0] and abs(control[1] - losses[1]) > 1e-4


def test_a_record_made_before_memories_keeps_its_key():
    plain = TrainingConfig(steps=1, batch_size=1, length=1, learning_rate=1.0)
    assert "memory" not in plain.resolved()
    resolved = CONFIG.resolved()
    assert resolved["memory"] == 4 and resolved["positions"] == {"name": "segments", "count": COUNT}


def test_what_a_memory_cannot_be_trained_with_is_refused():
    with pytest.raises(ValueError, match=r"memory is 4, and what a step reads.*give positions=Segments"):
        dataclasses.replace(CONFIG, positions=None)
    with pytest.raises(TypeError, match="memory must be an int, got True"):
        dataclasses.replace(CONFIG, memory=True)
    with pytest.raises(ValueError, match="memory is -1; it is a number of tokens, 0 for none"):
        dataclasses.replace(CONFIG, memory=-1)
    with pytest.raises(ValueError, match=r"memory is 4 and compiler 'inductor'.*set compiler=None"):
        dataclasses.replace(CONFIG, compiler="inductor")
    with pytest.raises(ValueError, match="count is 0; it must be at least 1"):
        Segments(0)
    late = list(CONFIG.positions.batches(TEXT, **SIZES, steps=7))[1:]
    with pytest.raises(
        ValueError, match=r"reads on at position 4, and no checkpoint keeps a memory.*of 3 ste"
    ):
        train(model(), iter(late), CONFIG, start=1)
    with pytest.raises(ValueError, match="no document of two has 101 bytes"):
        next(Segments(25).batches(TEXT, **SIZES, steps=1))

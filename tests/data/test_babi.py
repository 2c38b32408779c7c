"""Stories: what is read of bAbI, what the simulation writes, and that both mean what they say."""

import io
import tarfile

import pytest

from sepnb.data import babi, containers, registry, text

from .. import stories
from ..shared import refused

SETS = registry.names("stories")
COUNTS = {  # questions of task 1, 2, 3 in training, validation and test
    "babi": {1: (9000, 1000, 1000), 2: (9000, 1000, 1000), 3: (900, 100, 1000)},
    "simulated-stories": dict.fromkeys((1, 2, 3), (1350, 150, 500)),
}
every_task = pytest.mark.parametrize("task", babi.TASKS)
every_set = pytest.mark.parametrize("name", SETS)


@every_set
@every_task
def test_a_reader_of_the_statements_gives_every_answer(name, task, data_set):
    data_set(name)
    for split in babi.SPLITS:
        for question in babi.load(task, split, name):
            assert stories.answer(question.statements, question.words) == question.answer


@every_set
@every_task
def test_the_support_is_enough_and_its_last_statement_holds_the_answer(name, task, data_set):
    data_set(name)
    for question in babi.load(task, "test", name):
        assert len(set(question.support)) == task
        told = [question.statements[index] for index in question.support]
        assert [question.answer in statement for statement in told] == [False] * (task - 1) + [True]
        assert {"Where", "?"} <= set(question.words) and question.words[-1] == "?"
        if task == 3:  # the place before, where the thing was taken along, and the place that is asked from
            assert question.words[-2] in told[1] and question.words[-3:-1][0] == "the"


@every_set
@every_task
def test_splits_have_their_sizes_and_share_no_story(name, task, data_set):
    data_set(name)
    splits = [babi.load(task, split, name) for split in babi.SPLITS]
    assert tuple(map(len, splits)) == COUNTS[name][task]
    last = [{q.statements for q in split if len(q.statements) >= 10} for split in splits]
    assert all(last) and not (last[0] & last[1] or last[0] & last[2] or last[1] & last[2])


@every_set
def test_the_words_are_all_that_are_needed(name, data_set):
    data_set(name)
    used = {
        word
        for task in babi.TASKS
        for split in babi.SPLITS
        for question in babi.load(task, split, name)
        for sentence in (*question.statements, question.words)
        for word in sentence
    }
    assert used == set(babi.WORDS) and len(babi.WORDS) == len(used)


def test_the_offline_stories_need_no_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SEPNB_DATA", str(tmp_path))
    parts = registry.get("simulated-stories").read()  # its hash is asserted
    assert sorted(parts) == sorted(
        f"qa{task}_{split}.txt" for task in (1, 2, 3) for split in ("train", "test")
    )


def test_a_story_is_read_as_its_lines_say():
    lines = (
        "1 Mary moved to the bathroom.\n2 Where is Mary? \tbathroom\t1\n3 Mary went back to the office.\n"
        "4 Where is Mary? \toffice\t3\n1 John went to the garden.\n2 Where is John? \tgarden\t1\n"
    )
    first, second = babi._stories(lines)
    assert [question.answer for question in first] == ["bathroom", "office"]
    assert first[1].statements[1] == ("Mary", "went", "back", "to", "the", "office", ".")
    assert first[1].support == (1,) and first[1].words == ("Where", "is", "Mary", "?")
    assert second[0].statements == (("John", "went", "to", "the", "garden", "."),)


def packed(contents: dict[str, bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name, data in contents.items():
            info = tarfile.TarInfo(f"tasks_1-20_v1-2/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["w:gz", "w:xz"])
def test_the_three_tasks_are_read_from_their_tar(tmp_path, mode):
    wanted = {name: name.encode() for name in containers.BABI_FILES}
    others = {"en/qa10_indefinite-knowledge_test.txt": b"not read", "shuffled/qa1_x_test.txt": b"not read"}
    file = tmp_path / "babi_tasks_1-20_v1-2_en.tar.xz"
    file.write_bytes(packed(others | wanted, mode))
    assert containers.babi_archive(tmp_path) == containers.babi_tar(file) == wanted
    for bad in (file.read_bytes()[:150], b"<html>"):
        file.write_bytes(bad)
        with pytest.raises(containers.Unreadable, match=r"tar\.xz is not a whole packed \.tar"):
            containers.babi_tar(file)


def test_what_is_unknown_is_refused(unhooked):
    for bad in (4, [1]):
        refused("unknown task .*; use one of 1, 2, 3", babi.load, bad, "train", "simulated-stories")
    refused("unknown split 'valid'; use one of train, valid", babi.load, 1, "valid", "simulated-stories")
    refused("unknown name 'sympy'; use one of simulated-stories, babi", babi.load, 1, "train", "sympy")
    refused(r"babi holds stories, see sepnb\.data\.babi\.load; sets of", text.load, "babi")

"""The names that commands take: known, listed and answered when misspelt."""

import pytest
from typer.testing import CliRunner

from sepnb import cli
from sepnb.companion.run import names
from sepnb.experiments import names as every_experiment


def test_names_are_sorted_into_experiments_and_chapters(write_chapter) -> None:
    for name in ("01_order", "02_more"):
        write_chapter(name)
    asked = names.sort_out(["02_more", "in_window", "chapters", "in_window"])
    assert asked.experiments == ["in_window"]
    assert [one.name for one in asked.chapters] == ["02_more", "01_order"]
    asked = names.sort_out(names.GROUPS)
    assert asked.experiments == every_experiment()
    assert [one.name for one in asked.chapters] == ["01_order", "02_more"]


def test_a_pattern_means_the_names_that_it_fits(write_chapter) -> None:
    write_chapter("01_order")
    asked = names.sort_out(["seqpe_stream*", "*order"])
    assert set(asked.experiments) == {name for name in every_experiment() if name.startswith("seqpe_stream")}
    assert len(asked.experiments) > 1 and [one.name for one in asked.chapters] == ["01_order"]
    with pytest.raises(ValueError, match=r"'nedle\*' is no chapter and no experiment; did you mean needle"):
        names.sort_out(["nedle*"])


def test_what_needs_a_package_of_its_own_is_run_by_its_name_or_where_that_is_installed(monkeypatch) -> None:
    for there in (False, True):
        monkeypatch.setattr("sepnb.experiments.peer.installed", lambda there=there: there)
        for group in ("experiments", "*"):
            found = names.load(names.sort_out([group]), "gpu")
            missing = set(every_experiment()) - {one.name for one in found}
            assert missing == (set() if there else {"encoding_speed"})
        (found,) = names.load(names.sort_out(["encoding_speed"]), "gpu")
        assert found.name == "encoding_speed"


@pytest.mark.parametrize("command", ["run", "data"])
def test_the_help_of_a_command_lists_the_names_that_it_takes(write_chapter, command) -> None:
    write_chapter("01_order")
    done = CliRunner().invoke(cli.app, [command, "-h"])
    lists = {"run": [*every_experiment(), "01_order"], "data": ["eltec-eng", "babi"]}
    assert not set(lists[command]) - set(done.output.replace(",", "").split())
    assert done.exit_code == 0

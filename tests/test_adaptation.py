"""What changes with the number of axes: counted on real models, and on code whose count is known."""

import sys

import pytest

from sepnb import adaptation


@pytest.fixture(scope="module")
def counted() -> dict:
    return {
        (family, after): adaptation.changes(family, after - 1, after)
        for family in adaptation.FAMILIES
        for after in (2, 3)
    }


def test_seqpe_is_the_same_encoding_on_every_number_of_axes(counted):
    for axes in (2, 3):
        found = counted["seqpe", axes]
        assert found.exists and found.same and found.hears > 1e-3
        assert found.model == ("model.axes", "model.encoding.dims")
        assert {key.split(".")[-1] for key in found.training} == {
            "grid", "ranges", "window", "trained", "places", "away", "distillation"
        }, "sizes, and the weight of a loss that is divided by the places of a window"  # fmt: skip
    assert set(counted["seqpe", 2].lines) == {"seqpe/encoder.py", "seqpe/injection.py"}
    assert not counted["seqpe", 3].lines


def test_rope_becomes_another_encoding_once(counted):
    assert not counted["rope", 2].same and counted["rope", 3].same
    assert counted["rope", 2].lines.keys() == {"encodings/axial.py"} and not counted["rope", 3].lines
    assert "model.encoding.name" in counted["rope", 2].model
    assert sum(counted["rope", 2].lines.values()) > sum(counted["seqpe", 2].lines.values())
    assert counted["rope", 2].hears > 1e-3 and not counted["rope", 2].training


def test_the_axial_form_is_rope_on_one_axis_and_changes_no_line(counted):
    """The same function, and the opposite counts: what a family's count says hangs on its first class."""
    assert adaptation.apart("rope", "axial-rope") < 1e-12 < 1e-3 < adaptation.apart("rope", "alibi")
    for axes in (2, 3):
        found = counted["axial-rope", axes]
        assert found.same and not found.lines and not found.training and found.hears > 1e-3
        assert found.model == ("model.axes", "model.encoding.dims")
    with pytest.raises(ValueError, match="alibi has no form on 2 axes"):
        adaptation.apart("rope", "alibi", axes=2)


def test_alibi_has_no_form_and_the_model_says_so(counted):
    assert not counted["alibi", 2].exists and not counted["alibi", 3].exists
    assert "alibi takes positions of 1 coordinate, and axes is 2" in adaptation.refusal("alibi", 2)
    assert adaptation.refusal("alibi", 1) == "" and adaptation.settings("alibi", 3) is None


def test_the_table_tells_what_was_counted(counted):
    table = adaptation.table().set_index(["family", "axes"])
    assert list(table.index) == list(counted)
    for at, found in counted.items():
        row = table.loc[at]
        assert (row["has"], row["same"], row["hears"]) == (found.exists, found.same, found.hears)
        assert (row["model"], row["training"]) == (len(found.model), len(found.training))
        assert row["lines"] == sum(found.lines.values())


def test_the_sinusoid_changes_one_setting(counted):
    assert counted["sinusoidal", 2].model == ("model.axes", "model.encoding.dims")
    assert counted["sinusoidal", 3].same and not counted["sinusoidal", 3].lines


def test_an_unknown_family_is_answered_with_the_known_ones(unhooked):
    with pytest.raises(ValueError, match="unknown family 'shaw'; use one of seqpe, rope"):
        adaptation.form("shaw", 2)


def branch(axes: int) -> int:
    total = 1
    if axes > 1:
        total += 1
        total += 2
    return total if axes == 1 else -total


def test_lines_that_run_are_those_that_ran_here_and_the_tracer_before_is_back():
    before = sys.gettrace()
    first = branch.__code__.co_firstlineno
    with adaptation.traced({__file__}) as one:
        branch(1)
    with adaptation.traced({__file__}) as two:
        branch(2)
    with adaptation.traced(set()) as none:
        branch(2)
    own = range(first, first + 7)
    assert {line - first for _, line in one if line in own} == {1, 2, 5}
    assert {line - first for _, line in two if line in own} == {1, 2, 3, 4, 5}
    assert not none and sys.gettrace() is before


def test_questions_are_comparisons_of_a_number_of_axes_with_one(tmp_path, monkeypatch):
    (tmp_path / "form.py").write_text(
        "def f(dims, n, self):\n"
        "    a = 1 if dims == 1 else 2\n"
        "    if self.axes > 1 and n > 1:\n"
        "        return dims > 2\n"
        "    return a\n"
    )
    monkeypatch.setattr(adaptation, "HERE", tmp_path)
    monkeypatch.setitem(adaptation.FAMILIES, "made", adaptation.Family(("rope",), ("form.py",)))
    assert adaptation.questions("made") == 2

"""The scoreboard: every statement once, with the word of its claim; and the table of methods."""

import re

import pandas as pd
import pytest

from sepnb import claims
from sepnb.claims import recipes
from sepnb.claims.ledger import Row
from sepnb.claims.verdict import Verdict
from sepnb.companion.evidence import scoreboard, verdict_table
from sepnb.records.verdicts import WORDS

from ...claims.test_budget import ORDERED, trained


@pytest.fixture(scope="module")
def rows():
    """Every claim with a word of its own, so that a wrong one would show."""
    return [
        Row(claim, Verdict(WORDS[n % len(WORDS)], f"reason {n}"), (), None, None)
        for n, claim in enumerate(claims.CLAIMS)
    ]


def test_every_statement_stands_once_with_the_word_and_the_reason_of_its_claim(rows):
    lines = scoreboard.scoreboard(rows).splitlines()
    by_id = {row.claim.id: row for row in rows}
    for one in claims.source_map().statements:
        (line,) = [x for x in lines if x.startswith(f"| {one.says} ")]
        assert len(re.findall(r"(?<!\\)\|", line)) == (4 if one.kind == "claim" else 3)
        assert one.note in line
        if one.kind == "claim":
            verdict = by_id[one.target].verdict
            assert f"[{verdict.word}]" in line and f"<claim-{one.target}>`: {verdict.why}" in line
    assert sum(line.startswith("### ") for line in lines) == 4


SHIFT = {"rope": 0.0, recipes.BEST: -0.05, "separated-sinusoidal": 0.2, "sinusoidal": 0.4, "rope-gaps": 0.01}


def runs(seeds: int = 6) -> pd.DataFrame:
    """Runs of some methods, each above RoPE by its shift, with a little noise a seed."""
    table = []
    for method, shift in SHIFT.items():
        for seed in range(1, seeds + 1):
            noise = 0.002 * (-1) ** seed
            row = {"method": method, "seed": seed, "status": "ok", "bits_per_byte": 2.4 + shift + noise}
            for reading, above in (("native", shift), ("native-window", 0.01)):
                row |= {f"gap/{reading}/{k}": above + noise for k in ("2x", "4x", "8x")}
                row[f"{reading}/8x"] = 2.3 + above + noise * seed
            table.append(row)
    return pd.DataFrame(table)


def judged(table: pd.DataFrame | None, **more: pd.DataFrame) -> dict[str, dict[str, Verdict]]:
    tables = {recipes.TABLE: table, **trained(ORDERED)}
    tables |= {f"experiment/{name}": one for name, one in more.items()}
    return {line.label: found for line, found in verdict_table.verdict_table(tables)}


def test_each_column_is_judged_within_its_bounds():
    found = judged(runs())
    words = {label: {name: one.word for name, one in cells.items()} for label, cells in found.items()}
    best = words[next(line.label for line in verdict_table.LINES if line.method == recipes.BEST)]
    assert (best["survives"], best["quality"]) == ("held", "held")
    assert words["RoPE, read behind a window"]["survives"] == "held"
    alone = words["separated, sinusoidal"]
    assert (alone["survives"], alone["quality"], alone["price"]) == ("refuted", "refuted", "held")
    assert found["separated, sinusoidal"]["price"].numbers["separated-sinusoidal minus sinusoidal"] < 0
    assert found["RoPE"]["price"].why == "it is a base"
    assert found["RoPE, trained with position gaps"]["price"].word == "held"
    assert words["ALiBi"]["survives"] == "not run"
    assert found["RoPE, read with YaRN"]["survives"].why == "not read so"
    assert judged(runs(), budget=None)["separated, sinusoidal"]["price"].word == "not run"
    few = judged(runs(seeds=3))["RoPE"]
    assert few["survives"].word == "not judged"


def test_a_price_that_more_training_turns_is_partly_whatever_a_short_one_says():
    more = trained(ORDERED, sinusoidal_16=2.15)["experiment/budget"]
    found = {label: cells["price"] for label, cells in judged(runs(), budget=more).items()}
    turned = found["separated, sinusoidal"]
    assert turned.word == "partly" and "ahead at 4x, behind at 16x" in turned.why
    assert found["strict, sinusoidal"].word == "not run"
    assert found["RoPE, trained with position gaps"].word == "held"


def test_without_records_and_rules_every_cell_reads_not_run():
    for found in judged(None).values():
        assert {one.word for one in found.values()} == {"not run"}
        assert list(found) == ["survives", *verdict_table.TASKS, "quality", "price"]


def test_a_task_is_a_column_that_is_judged_under_the_names_of_tasks(monkeypatch):
    asked = []

    def uses(table, method, reader):
        asked.append((method, reader))
        return Verdict("not run" if table is None else "held", "6 seeds")

    monkeypatch.setattr(verdict_table, "uses", uses)
    monkeypatch.setattr(verdict_table, "TASKS", (*verdict_table.TASKS, "indirect_index"))
    assert "experiment/indirect_index" in verdict_table.needs()
    found = judged(runs(), indirect_index=pd.DataFrame({"method": ["rope"]}))
    assert {cells["indirect_index"].word for cells in found.values()} == {"held"}
    assert {cells["needle"].word for cells in found.values()} == {"not run"}
    assert {("rope", "native"), ("rope", "window"), ("rope-gap", "native")} <= set(asked)


def test_every_method_of_the_table_is_one_of_the_experiments():
    from sepnb import experiments

    known = {
        name: {config.method for config in experiments.get(name).grid("laptop")}
        for name in ("recipes", "extrapolation", *verdict_table.TASKS)
    }
    read = known["recipes"] | known["extrapolation"]
    for line in verdict_table.LINES:
        asked = line.task or line.method
        assert line.base is None or line.base in read
        assert line.task is None or all(asked in known[task] for task in verdict_table.TASKS)
        assert line.method in read or asked in known["needle"]

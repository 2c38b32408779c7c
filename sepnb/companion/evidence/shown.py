"""The verdicts of one chapter: shown, and named for its prose."""

from collections.abc import Mapping

import pandas as pd

from sepnb.claims.ledger import get
from sepnb.claims.verdict import Verdict
from sepnb.companion.evidence.reason import because, titled


def show(verdicts: Mapping[str, Verdict], *, caption: str, budget: bool = False) -> dict[str, str]:
    """Display a table of claim, verdict and reason, and return the words as chapter numbers, `verdict_<id>`.

    Args:
        budget: with a column that says what more training makes of a verdict; its label is the chapter number
            `budget_<id>`.
    """
    from sepnb.plots.figures import show_table  # brings matplotlib, which nothing else here needs

    labels = {name: one.budget for name, one in verdicts.items() if budget and one.budget}
    table = pd.DataFrame(
        [[get(name).title, one.counted, because(get(name), one)] for name, one in verdicts.items()],
        columns=["claim", "verdict", "because"],
    )
    if budget:
        table.insert(2, "more training", [titled(str(labels.get(name, ""))) for name in verdicts])
    show_table(table, caption=caption)
    return words(verdicts) | {f"budget_{_key(name)}": one.label for name, one in labels.items()}


def words(verdicts: Mapping[str, Verdict]) -> dict[str, str]:
    """The words alone, as chapter numbers, `verdict_<id>`: every comparison stands on the page of claims."""
    return {f"verdict_{_key(name)}": one.word for name, one in verdicts.items()}


def _key(name: str) -> str:
    return name.replace("-", "_")

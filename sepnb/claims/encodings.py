"""Does an encoding survive past its trained length by itself? One rule for all of `encodings` (chapter 5).

Written before its records, and no claim of a source: a column of the chapter's table. The four encodings that
`extrapolation` trains with six seeds in the same way are judged by its records. All others have three seeds,
with which no comparison can be decided, whatever it shows: of three differences no two-sided sign test at 5 %
can be sure.
"""

from sepnb.claims import evidence, extrapolation
from sepnb.claims.asks import gap, levels
from sepnb.claims.language_model import BAR
from sepnb.claims.verdict import Tables, Verdict

TABLE = "experiment/encodings"

SIX_SEEDS = ("sinusoidal", "learned", "rope", "alibi")
"""Judged by the records of `extrapolation`."""


def survival(tables: Tables, method: str) -> Verdict:
    """Under its own rule, which for a table is its last row held, the method is less than +0.03 bits per byte
    above its own sliding window at stride 1, at 2, 4 and 8 times the trained length."""
    rule = "clamp" if method.startswith("learned") else "native"
    table = tables.get(extrapolation.TABLE if method in SIX_SEEDS else TABLE)
    return evidence.judge(table, levels(method, *gap(rule), high=0.03), floors=(BAR,)).of_ours()

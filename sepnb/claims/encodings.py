"""Does an encoding survive past its trained length by itself? One rule for all of `encodings` (chapter 5).

Written before its records, and no claim of a source: a column of the chapter's table. The four encodings that
`extrapolation` trains with six seeds in the same way are judged by its records. All others have three seeds,
with which the rules of evidence leave every comparison undecided, whatever it shows: of three differences no
two-sided sign test at 5 % can be sure. The bound is in bits per byte and stands in the function.
"""

from sepnb.claims import extrapolation
from sepnb.claims.verdict import Tables, Verdict

TABLE = "experiment/encodings"

SIX_SEEDS = ("sinusoidal", "learned", "rope", "alibi")
"""Judged by the records of `extrapolation`."""


def survival(tables: Tables, method: str) -> Verdict:
    """Under its own rule, which for a table is its last row held, the method is less than +0.03 bits per byte
    above its own sliding window at stride 1, at 2, 4 and 8 times the trained length."""
    rule = "clamp" if method.startswith("learned") else "native"
    judged_by = extrapolation.TABLE if method in SIX_SEEDS else TABLE
    asked = extrapolation.over_oracle(method, [rule], high=0.03)
    return extrapolation.gaps({extrapolation.TABLE: tables.get(judged_by)}, asked)

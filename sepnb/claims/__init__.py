"""The claims ledger: what the sources say, the rule that decides, and what our records answer.

    from sepnb import claims

    for row in claims.evaluate():
        print(row.claim.id, row.verdict.word, row.verdict.detail)

To add a claim, write one `Claim(...)` in the module of its chapter or experiment, and pin its digest.
"""

from sepnb.claims.asks import Ask
from sepnb.claims.claim import Claim
from sepnb.claims.extrapolation import survival
from sepnb.claims.ledger import CLAIMS, Row, evaluate, get, judge
from sepnb.claims.sources import SourceMap, Statement
from sepnb.claims.sources import load as source_map
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records.verdicts import WORDS

__all__ = [
    "CLAIMS",
    "WORDS",
    "Ask",
    "Claim",
    "Row",
    "SourceMap",
    "Statement",
    "Tables",
    "Verdict",
    "evaluate",
    "get",
    "judge",
    "source_map",
    "survival",
]

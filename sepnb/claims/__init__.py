"""The claims ledger: what the sources say, the rule that decides, and what our records answer."""

from sepnb.claims.in_window import CLAIMS as IN_WINDOW
from sepnb.claims.verdict import WORDS, Claim, Tables, Verdict

CLAIMS: tuple[Claim, ...] = IN_WINDOW

__all__ = ["CLAIMS", "WORDS", "Claim", "Tables", "Verdict"]

"""Experiment `reading_cost` (chapter 21): what a long text costs, read in one piece on one thread of a CPU.

Written before its records. Known was a trial: one reading each of 2,048 and of 8,192 tokens. *Growth* is the
time of a text in one piece over that of the same tokens as four texts; *speed* is over that of the dense
sinusoidal model, timed in turns.
"""

from functools import partial

from sepnb.claims.asks import each, levels
from sepnb.claims.claim import Claim
from sepnb.claims.measured import by_rounds

TABLE = "experiment/reading_cost"
LENGTHS = "2048, 8192, 32768"

_of = partial(Claim, experiments=(TABLE,), how=by_rounds)

CLAIMS = {
    "a-longer-text-costs-more-a-token": _of(
        "A token of a longer text costs more",
        levels("sinusoidal-at-32768, rope-at-32768", "growth", low=2.0),
        source="article-positional-encoding",
        remark="With the maps alone it would be 1, with attention alone 4.",
    ),
    "behind-a-window-a-token-costs-the-same": _of(
        "Behind a window a token of a longer text costs the same",
        levels(each("rope-window-at-{}", LENGTHS), "growth", low=0.8, high=1.25),
    ),
    "separation-alone-saves-little-in-long-texts": _of(
        "In a long text separation alone saves little time",
        levels("separated-at-32768, strict-at-32768", "speed", high=1.15),
        remark="The text is read alone: no other shares the position branch of the strict model.",
    ),
    "tables-made-beforehand-pay-in-long-texts": _of(
        "In a long text position tables that were made beforehand save time",
        levels("strict-tables-at-32768", "speed", low=1.2),
        remark="A quarter of the heads then has nothing to do.",
    ),
    "a-bias-halves-the-speed-in-long-texts": _of(
        "In a long text a bias of the distance costs half of the speed",
        levels("alibi-at-32768", "speed", high=0.5),
        remark="torch's kernel for a CPU takes a bias as a mask of all pairs, hidden ones included.",
    ),
}

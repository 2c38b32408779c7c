"""Positions slowed down in trained models (chapter 12): who reads further, and is it the split that helps?

Written before the records. Trials had been seen: one or two seeds of every model on recall and on the latest
value, at rates that were not swept.
"""

from sepnb.claims.asks import pairs
from sepnb.claims.claim import Claim
from sepnb.claims.recall import learned

DENSE, BESIDE, SEPARATED, ROPE = "sinusoidal", "concatenated-sinusoidal", "separated-sinusoidal", "rope"
AT_16X = ("accuracy/stretched/16x", "near/stretched/16x")
"""All answers in texts of sixteen trained lengths, and those less than one trained length back."""

TASKS = {
    "mqar": "recalls values",
    "latest_value": "finds latest values",
    "needle": "finds needles",
}
REMARK = "Trials of one or two seeds had been seen."


def of_task(task: str, does: str) -> dict[str, Claim]:
    """What is asked of every task.

    Args:
        task: its name; the experiment is `stretched_<task>`.
        does: what a model does there, in words.
    """
    of = {"experiments": (f"experiment/stretched_{task}",), "remark": REMARK}

    def compared(title: str, one: str, other: str, *columns: str, low: float = 0.0) -> Claim:
        pair = f"{one} - {other}"
        return Claim(title, pairs(pair, *columns, low=low), unless=learned(f"{one}, {other}"), **of)

    name = f"stretched-{task.replace('_', '-')}"
    return {
        f"{name}-beside-can-be-slowed-added-cannot": compared(
            f"With positions slowed down, a model with position beside content {does} at sixteen trained "
            f"lengths more often than one with position added to content",
            *(BESIDE, DENSE, *AT_16X),
        ),
        f"{name}-the-split-adds-to-it": compared(
            f"With positions slowed down, a separated model {does} at sixteen trained lengths more often "
            f"than a model with position beside content that is not split",
            *(SEPARATED, BESIDE, *AT_16X),
        ),
        f"{name}-separated-more-than-dense": compared(
            f"With positions slowed down, a separated model {does} at sixteen trained lengths more often "
            f"than a dense one",
            *(SEPARATED, DENSE, *AT_16X),
        ),
        f"{name}-as-often-as-slowed-rope": compared(
            f"With positions slowed down, a separated model {does} at sixteen trained lengths as often as "
            f"RoPE slowed down alike, within 3 points",
            *(SEPARATED, ROPE, AT_16X[0]),
            low=-0.03,
        ),
    }


CLAIMS = {key: claim for task, does in TASKS.items() for key, claim in of_task(task, does).items()}

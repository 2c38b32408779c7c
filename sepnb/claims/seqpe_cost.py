"""Rules on the experiment `seqpe_cost`: what SeqPE's encoder and losses take of a training step (chapter 16).

Written before its records. A record is one machine, timed in rounds; the quartiles over its rounds stand in
the place of seeds.
"""

from collections.abc import Callable

from sepnb.claims.evidence import _not_complete
from sepnb.claims.verdict import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Claim, Tables, Verdict

TABLE = "experiment/seqpe_cost"


def light(tables: Tables, told: str, column: str, share: Callable[[float], float]) -> Verdict:
    """Whether a share of the step of `width-32-every-1`, made of a column of its record, is below 5 % in
    three quarters of the rounds; not reproduced if it is above in three quarters, undecided between the two.
    """
    table, method = tables.get(TABLE), "width-32-every-1"
    if obstacle := _not_complete(table, [method]):
        return obstacle
    run = table[table.method == method].iloc[0]
    low, middle, high = (share(float(run[f"{column}{end}"])) for end in ("_lower", "", "_upper"))
    word = REPRODUCED if high < 0.05 else NOT_REPRODUCED if low > 0.05 else UNDECIDED
    detail = f"{told} {middle:.1%} of a step, quartiles {low:.1%} to {high:.1%}"
    return Verdict(word, detail, {"share": middle})


def rule_the_encoder_is_lightweight(tables: Tables) -> Verdict:
    """With an encoder of 32 columns and both losses in every step, on the profile's batch of sequences of 512
    tokens, what is done for positions alone takes less than 5 % of the time of a training step, in three
    quarters of the rounds. Left out is that the term of the score makes queries and keys longer."""
    return light(tables, "for positions alone", "share", lambda share: share)


def rule_all_that_seqpe_adds_is_light(tables: Tables) -> Verdict:
    """With the same encoder and losses on the same batch, everything by which the step is longer than without
    an encoding takes less than 5 % of its time, in three quarters of the rounds."""
    return light(tables, "all of it", "longer", lambda longer: 1 - 1 / longer)


OURS = "ours, written before the records"
_FROM_THE_TABLE = {"needs": (TABLE,), "stands_on": (light, _not_complete)}

CLAIMS = (
    Claim(
        id="the-encoder-is-lightweight",
        source="seqpe-abstract",
        statement="The sequential position encoder is lightweight: the embeddings and their losses take a "
        "small part of a training step.",
        rule=rule_the_encoder_is_lightweight,
        **_FROM_THE_TABLE,
    ),
    Claim(
        id="all-that-seqpe-adds-is-light",
        source=OURS,
        statement="So is everything that a step with it has more, longer queries and keys among it.",
        rule=rule_all_that_seqpe_adds_is_light,
        **_FROM_THE_TABLE,
    ),
)

"""Rules on the experiment `seqpe_cost`: what SeqPE's encoder and losses take of a training step (chapter 16).

Written before its records. A record is one machine, timed in rounds; the quartiles over its rounds stand in
the place of seeds.
"""

from sepnb.claims.evidence import _not_complete
from sepnb.claims.verdict import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Claim, Tables, Verdict

TABLE = "experiment/seqpe_cost"


def rule_the_encoder_is_lightweight(tables: Tables) -> Verdict:
    """With an encoder of 32 columns and both losses in every step, on the profile's batch of sequences of 512
    tokens, what is done for positions alone takes less than 5 % of the time of a training step in three
    quarters of the rounds. Not reproduced
    if it takes more in three quarters of them; undecided between the two."""
    table, method = tables.get(TABLE), "width-32-every-1"
    if obstacle := _not_complete(table, [method]):
        return obstacle
    run = table[table.method == method].iloc[0]
    low, share, high = (float(run[name]) for name in ("share_lower", "share", "share_upper"))
    told = f"{share:.1%} of a step, quartiles {low:.1%} to {high:.1%}"
    word = REPRODUCED if high < 0.05 else NOT_REPRODUCED if low > 0.05 else UNDECIDED
    return Verdict(word, told, {"share": share})


CLAIMS = (
    Claim(
        id="the-encoder-is-lightweight",
        source="seqpe-abstract",
        statement="The sequential position encoder is lightweight: to train with it and with its losses "
        "takes a small part of a step.",
        rule=rule_the_encoder_is_lightweight,
        needs=(TABLE,),
        stands_on=(_not_complete,),
    ),
)

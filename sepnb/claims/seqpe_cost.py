"""Rules on the experiment `seqpe_cost`: what SeqPE's encoder and losses take of a training step (chapter 16).

Written before its records. A record is one machine, timed in rounds; the quartiles over its rounds stand in
the place of seeds.
"""

from sepnb.claims.evidence import _not_complete
from sepnb.claims.verdict import NOT_REPRODUCED, PARTLY, REPRODUCED, UNDECIDED, Claim, Tables, Verdict

TABLE = "experiment/seqpe_cost"


def rule_the_encoder_is_lightweight(tables: Tables) -> Verdict:
    """With an encoder of 32 columns and both losses in every step, on the profile's batch of sequences of 512
    tokens, in three quarters of the rounds (a) what is done for positions alone, which leaves out that the
    term of the score makes queries and keys longer, takes less than 5 % of the time of a training step; (b)
    so does everything by which the step is longer than without an encoding. One of the two fails if it takes
    more in three quarters of the rounds, and is open between the two. *Partly* if one holds and one fails;
    undecided if one is open."""
    table, method = tables.get(TABLE), "width-32-every-1"
    if obstacle := _not_complete(table, [method]):
        return obstacle
    run = table[table.method == method].iloc[0]
    ends = ("_lower", "", "_upper")
    alone = [float(run[f"share{end}"]) for end in ends]
    whole = [1 - 1 / float(run[f"longer{end}"]) for end in ends]
    told, words = [], set()
    for what, (low, share, high) in (("for positions alone", alone), ("all of it", whole)):
        words.add(REPRODUCED if high < 0.05 else NOT_REPRODUCED if low > 0.05 else UNDECIDED)
        told.append(f"{what} {share:.1%} of a step, quartiles {low:.1%} to {high:.1%}")
    word = UNDECIDED if UNDECIDED in words else words.pop() if len(words) == 1 else PARTLY
    return Verdict(word, "; ".join(told), {"share": alone[1], "share of all": whole[1]})


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

"""Rules on the experiment `shaw_clip` (chapter 3): precise position near the query and far from it.

Written before its records. All bounds are in bits per byte and stand inside the functions, so that the commit
that last touched a function is the commit that last moved its bounds.
"""

from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, judge
from sepnb.claims.in_window import OURS
from sepnb.claims.verdict import NOT_RUN, NOT_TESTABLE, Claim, Tables, Verdict

TABLE = "experiment/shaw_clip"


def worth_of_far_keys(tables: Tables, distance: int) -> float:
    """What the unclipped model pays more when the keys from this distance on are hidden from it: mean over
    seeds, validation text."""
    table = tables[TABLE]
    runs = table[table.method == "keys-unclipped"]
    return float((runs[f"val_bits_window_{distance}"] - runs["val_bits_per_byte"]).mean())


def rule_precise_position_is_useless_far_away(tables: Tables) -> Verdict:
    """Vectors clipped at a distance minus unclipped ones are below +0.03 bits per byte, for each of the
    distances 4, 8 and 16 at which the far keys are used: hidden from the unclipped model, the keys from there
    on cost it more than 0.03 in the mean over seeds. Not testable if that is none of the three. *Partly*:
    useless beyond one distance and not beyond another."""
    far = {clip: Comparison(f"keys-{clip}", "keys-unclipped", high=0.03) for clip in (4, 8, 16)}
    verdict = judge(tables.get(TABLE), list(far.values()), bar=3.35)
    if verdict.word in (NOT_RUN, NOT_TESTABLE):
        return verdict
    worth = {clip: worth_of_far_keys(tables, clip) for clip in far}
    listed = ", ".join(f"{value:+.3f} from {clip} on" for clip, value in worth.items())
    numbers = {f"hidden from {clip} on": value for clip, value in worth.items()}
    used = [far[clip] for clip, value in worth.items() if value > 0.03]
    if not used:
        return Verdict(NOT_TESTABLE, f"far keys are hardly used at all: hidden, they cost {listed}", numbers)
    judged = judge(tables[TABLE], used, bar=3.35)
    return Verdict(judged.word, f"{judged.detail}; far keys, hidden, cost {listed}", judged.numbers | numbers)


def rule_precise_position_helps_nearby(tables: Tables) -> Verdict:
    """Vectors clipped at distance 8 minus vectors clipped at distance 1, which tell a token from all before
    it and no more, are below 0. The bar is 4.0, below the entropy of single bytes (about 4.48): a model that
    its clip holds back is to be judged and not refused."""
    return judge(tables.get(TABLE), [Comparison("keys-8", "keys-1", high=0.0)], bar=4.0)


CLAIMS = (
    Claim(
        id="precise-position-is-useless-far-away",
        source="notes-positional-encoding",
        statement="It is hypothesised that precise positional information is not useful beyond a certain "
        "distance.",
        rule=rule_precise_position_is_useless_far_away,
        needs=(TABLE,),
        stands_on=(worth_of_far_keys, *RULES_OF_EVIDENCE),
    ),
    Claim(
        id="precise-position-helps-nearby",
        source=OURS,
        statement="Near the query precise position is useful: a model that tells the nearest eight distances "
        "apart is better than one that tells a token from all earlier ones. (Without this, that it is "
        "useless far away would say little.)",
        rule=rule_precise_position_helps_nearby,
        needs=(TABLE,),
        stands_on=RULES_OF_EVIDENCE,
    ),
)

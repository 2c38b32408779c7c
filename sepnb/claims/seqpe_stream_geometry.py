"""Rules on the experiment `seqpe_stream_geometry`: where embeddings of SeqPE lie (chapter 16).

*Moved* is how far a window of the stream lies from the trained one, place by place, *narrowed* its spread,
both in units of the spread of the trained window: its own places in an order drawn at random have moved by
1.41. The two starts of a kind are averaged before seeds are compared. Where a rule says *twice* or *half*,
it compares logarithms to base 2. *Covered*, *aligned* and what a start costs are those of
`claims.seqpe_stream`. Rules on windows were written when the bits per byte of one seed of these models in
`seqpe_stream` were known, and the same measures of strict models of the size of a smoke test, trained for
240 steps with three seeds. The unit shrinks with the resolution, so that *moved* and *resolution* are not
two independent findings.

A position is *folded* where the curve of embeddings repeats itself: to some embedding a sixteenth of a
trained length or more before it a position is nearer than half of how near it is to the one exactly so far
before. Rules on folds were written when curves and costs of SeqPE in the score with seeds 1 to 5 were known,
and are about seeds 7 to 18, of which nothing was. Compared are those whose curve folds at eight positions or
more between one and eight trained lengths; with fewer than six a claim is *undecided*.
"""

import numpy as np
import pandas as pd

from sepnb.claims import recipes, seqpe_geometry, seqpe_stream
from sepnb.claims.evidence import RULES_OF_EVIDENCE, Comparison, _not_complete
from sepnb.claims.seqpe_stream import far, kinds
from sepnb.claims.verdict import NOT_TESTABLE, Claim, Tables, Verdict

TABLE = "experiment/seqpe_stream_geometry"


def chain() -> tuple[str, ...]:
    """The models, each with one change of the one before."""
    return tuple(f"separated-seqpe{stage}" for stage in ("-plain", "-shifts", "-contrastive", ""))


def column(measure: str, group: str, kind: str) -> str:
    """The mean of a measure over the starts of a kind."""
    return f"{measure}/{group}-{kind}"


def averaged(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column for each measure and kind of start, the mean over its two, and its logarithm to
    base 2, as `log2 <column>`."""
    names = [
        column(m, g, k) for m in ("moved", "narrowed") for g in ("covered", "never-seen") for k in kinds()
    ]
    means = {
        one: table.reindex(columns=[f"{one}-1", f"{one}-2"]).astype(float).mean(axis=1, skipna=False)
        for one in names
    }
    logs = {f"log2 {one}": np.log2(values.where(values > 0)) for one, values in means.items()}
    return pd.concat([table, pd.DataFrame(means | logs, index=table.index)], axis=1)


def compared(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """As `seqpe_geometry.measured`, on the runs of this experiment."""
    table = tables.get(TABLE)
    ready = table if table is None or table.empty else averaged(table)
    return seqpe_geometry.measured({seqpe_geometry.TABLE: ready}, comparisons)


def by_the_losses(measure: str, **bounds: float) -> list[Comparison]:
    """With both losses less with shift steps alone, at covered starts of both kinds, as logarithms."""
    names = [f"log2 {column(measure, 'covered', kind)}" for kind in kinds()]
    return [Comparison(f"separated-seqpe:{one}", f"separated-seqpe-shifts:{one}", **bounds) for one in names]


def rule_digit_strings_keep_an_aligned_window(tables: Tables) -> Verdict:
    """With digit strings alone, without shift steps and losses, a window at covered aligned starts has moved
    by less than 0.5, at covered misaligned starts by more than 1."""
    aligned, misaligned = (column("moved", "covered", kind) for kind in kinds())
    model = "separated-seqpe-plain"
    return compared(
        tables,
        [
            Comparison(f"{model}:{aligned}", recipes.ZERO, high=0.5),
            Comparison(f"{model}:{misaligned}", recipes.ZERO, low=1.0),
        ],
    )


def rule_the_losses_move_an_aligned_window(tables: Tables) -> Verdict:
    """With both losses a window at covered aligned starts has moved more than twice as far as with shift
    steps alone."""
    return compared(tables, by_the_losses("moved", low=1.0)[:1])


def rule_the_losses_narrow_far_windows(tables: Tables) -> Verdict:
    """At covered starts, aligned and misaligned, the spread of a window is with both losses less than half of
    what it is with shift steps alone."""
    return compared(tables, by_the_losses("narrowed", high=-1.0))


def rule_the_losses_cost_resolution(tables: Tables) -> Verdict:
    """The resolution of the trained window, its spread over the mean length of its embeddings, is lower with
    both losses than with shift steps alone (difference below 0)."""
    pair = [f"{model}:resolution" for model in ("separated-seqpe", "separated-seqpe-shifts")]
    return compared(tables, [Comparison(*pair, high=0.0)])


def rule_a_start_costs_what_its_window_moved(tables: Tables) -> Verdict:
    """Over the eight starts of the four models of a seed, the rank correlation of how far a window moved with
    what the same bytes cost more there than from 0 on, in the same model, is above 0.5 (Spearman, one value a
    seed)."""
    models = list(chain())
    ours, costs = tables.get(TABLE), tables.get(seqpe_stream.TABLE)
    if obstacle := _not_complete(ours, models) or _not_complete(costs, models):
        return obstacle
    joined = ours[ours.method.isin(models)].merge(
        costs, on=["method", "seed"], suffixes=("", " of the costs")
    )
    starts = [f"{g}-{k}-{n}" for g in ("covered", "never-seen") for k in kinds() for n in (1, 2)]
    found = []
    for seed, runs in joined.groupby("seed"):
        moved = runs[[f"moved/{one}" for one in starts]].astype(float)
        paid = runs[[far(one) for one in starts]].astype(float).sub(runs["native/1x"].astype(float), axis=0)
        ranks = [pd.Series(values.to_numpy().ravel()).rank() for values in (moved, paid)]
        spearman = float(np.corrcoef(*ranks)[0, 1])
        found.append({"method": "chain", "seed": seed, "status": "ok", "rank": spearman})
    pair = [Comparison("chain:rank", recipes.ZERO, low=0.5)]
    return seqpe_geometry.measured({seqpe_geometry.TABLE: pd.DataFrame(found)}, pair)


def where_curves_fold(tables: Tables, comparisons: list[Comparison]) -> Verdict:
    """Comparisons of dense with SeqPE as a term of the score, over the seeds from 7 on whose curve folds at
    eight positions or more past the trained length and up to eight times it."""
    table, model = tables.get(TABLE), "dense-seqpe-score"
    if obstacle := _not_complete(table, [model]):
        return obstacle
    own = table[(table.method == model) & (table.seed > 6) & (table.folded.astype(float) >= 8)]
    if own.empty:
        return Verdict(NOT_TESTABLE, "the curve of no model turns back")
    return seqpe_geometry.measured({seqpe_geometry.TABLE: own}, comparisons)


def rule_seqpe_fails_where_its_curve_turns_back(tables: Tables) -> Verdict:
    """In a long text, past the trained length, bytes at folded positions cost dense with SeqPE as a term of
    the score more than 0.5 bits per byte more than bytes at the others, in the mean over each."""
    model = "dense-seqpe-score"
    return where_curves_fold(tables, [Comparison(f"{model}:bits/folded", f"{model}:bits/others", low=0.5)])


def rule_it_is_the_look_alike_in_sight(tables: Tables) -> Verdict:
    """Of the same models: read from the first folded position on, at that index and with nothing before it,
    the bytes of its run of folded positions cost less than 0.1 bits per byte more than read from 0 on."""
    model = "dense-seqpe-score"
    return where_curves_fold(tables, [Comparison(f"{model}:alone/folded", f"{model}:alone/first", high=0.1)])


def rule_positions_that_are_not_folded_mend_it(tables: Tables) -> Verdict:
    """Of the same models: where the text is read at the positions that are not folded, in their order, all
    bytes past the trained length together cost less than as first read (difference below 0), and less than
    0.05 bits per byte more than those that first stood at positions that are not folded."""
    model = "dense-seqpe-score"
    mended = f"{model}:mended/past"
    return where_curves_fold(
        tables,
        [
            Comparison(mended, f"{model}:past", high=0.0),
            Comparison(mended, f"{model}:bits/others", high=0.05),
        ],
    )


_OURS = {
    "source": seqpe_stream.OURS,
    "needs": (TABLE,),
    "stands_on": (
        chain,
        column,
        averaged,
        compared,
        by_the_losses,
        where_curves_fold,
        far,
        kinds,
        seqpe_geometry.measured,
        recipes.compared,
        *RULES_OF_EVIDENCE,
    ),
}

CLAIMS = (
    Claim(
        id="digit-strings-keep-an-aligned-window",
        statement="Where only the text trains digit strings, a window of the stream with the low digits of "
        "the trained one lies where that lies, and one with other low digits elsewhere.",
        rule=rule_digit_strings_keep_an_aligned_window,
        **_OURS,
    ),
    Claim(
        id="the-losses-move-an-aligned-window",
        statement="The losses of SeqPE move a window of the stream that shift steps alone leave where the "
        "trained one lies.",
        rule=rule_the_losses_move_an_aligned_window,
        **_OURS,
    ),
    Claim(
        id="the-losses-narrow-far-windows",
        statement="Under the losses of SeqPE the places of a window elsewhere lie closer together, beside "
        "those of the trained window, than under shift steps alone.",
        rule=rule_the_losses_narrow_far_windows,
        **_OURS,
    ),
    Claim(
        id="the-losses-cost-resolution",
        statement="Under the losses of SeqPE the places of the trained window differ by a smaller part of "
        "what they have in common.",
        rule=rule_the_losses_cost_resolution,
        **_OURS,
    ),
    Claim(
        id="a-start-costs-what-its-window-moved",
        statement="Over the starts and models of the chain together, windows of the stream that moved "
        "farther cost more.",
        rule=rule_a_start_costs_what_its_window_moved,
        **_OURS | {"needs": (TABLE, seqpe_stream.TABLE)},
    ),
    Claim(
        id="seqpe-fails-where-its-curve-turns-back",
        statement="In a long text SeqPE in a term of the score fails at indices at which the curve of its "
        "embeddings has turned back on itself.",
        rule=rule_seqpe_fails_where_its_curve_turns_back,
        **_OURS,
    ),
    Claim(
        id="it-is-the-look-alike-in-sight",
        statement="It does not fail at these indices where no earlier position is in sight that they could "
        "be taken for.",
        rule=rule_it_is_the_look_alike_in_sight,
        **_OURS,
    ),
    Claim(
        id="positions-that-are-not-folded-mend-it",
        statement="Read at positions that leave out those where the curve has turned back, the same models "
        "do not fail, without further training.",
        rule=rule_positions_that_are_not_folded_mend_it,
        **_OURS,
    ),
)

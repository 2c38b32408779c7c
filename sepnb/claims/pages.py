"""The text that the book's extension puts on the pages of claims and of sources (MyST)."""

import re
from collections import Counter
from collections.abc import Sequence

from sepnb.claims import budget
from sepnb.claims.budget import DEPENDENT
from sepnb.claims.ledger import Row, evaluate, get
from sepnb.claims.sources import Document, SourceMap, Statement, load
from sepnb.claims.verdict import NOT_RUN
from sepnb.records.markup import code, said
from sepnb.records.markup import row as table_row

SHORT = 9
_EVIDENCE = """
A statement of a source is *reproduced* or *not reproduced*, a hypothesis of ours *held* or *refuted*.
Differences are means over seeds, below zero where the first method is better in bits per byte. Each is held
against the bounds of its rule by two-sided t tests, paired by seed, with Holm's correction over the
comparisons of the claim at 5 %. A claim says that all of them hold: one that fails is enough against it, and
one that is left open makes it *undecided* otherwise. With fewer than six seeds it is *not judged*. *Partly*
is for claims that count their parts, and for a verdict on short training whose ranking turns with more. Where
bits per byte are compared, every method needs a mean below 3.35 bits per byte inside the trained length, just
under the bigram entropy of the text; otherwise the claim is *not testable here*.

Rules name methods as the tables of their experiments do. A model *survives* if it reads texts of several
trained lengths about as well as through its sliding window. 2x, 4x, 8x and 16x are the bins that end at so
many times the trained length. The *gap* is what a model costs more than the same model through a window of
the trained length that slides byte by byte over the same bytes. The *gain* is what it costs more once the
text further back than a trained length is that of another novel. In `extrapolation` the sinusoidal, Fourier,
cyclic, learned and ALiBi-like rules are the slides' equations (2) to (6), corrected; the sliding window has
stride 1.

In `budget` the bar holds for the longest training, and a ranking is decided by intervals that hold together
(Bonferroni). In `inside` some quantities are no bits per byte, and some are held against a bound by
themselves. In `shaw_clip` a clip is judged at the largest distance from which on keys cost something when
they are hidden. In `seqpe_geometry`, `seqpe_distances` and `seqpe_stream_geometry` there is no bar. *Order*
is the rank correlation of nearness with the inner product, *adjacency* how often the largest product is that
of a nearest neighbour, *likeness* the correlation of a window's inner products with those of the trained
window; windows are moved and narrowed in units of the spread of the trained one. In `seqpe_stream` *covered*
starts lie below the largest position of training, *never seen* ones past it, and *aligned* ones keep the low
digits of the trained window. In `images` and `volumes` scores are shares of right answers and higher is
better; a method with places must answer more than half of the pictures or cubes rightly, as it was trained.
""".strip()
_KINDS = {
    "claim": "judged by a claim",
    "chapter": "in a chapter",
    "page": "in a table that is measured",
    "planned": "planned",
    "not-empirical": "not empirical",
}


def page(rows: Sequence[Row] | None = None) -> str:
    """The ledger: a table of verdicts, then each claim with its rule, its numbers and its records; by default
    as `evaluate` judges the published records."""
    rows = evaluate() if rows is None else rows
    documents = load().documents
    count = Counter(row.verdict.word for row in rows)
    counts = ", ".join(f"{n} {word}" for word, n in count.most_common())
    return "\n".join(
        [
            "### All verdicts",  # in a nested parse, what stands before the first heading would come out last
            "",
            f"{len(rows)} claims: {counts}.",
            "",
            table_row("claim", "verdict"),
            table_row("---", "---"),
            *(table_row(_link(row.claim.id), _badge(row) + _turned(row)) for row in rows),
            "",
            _EVIDENCE,
            "",
            *(line for row in rows for line in _section(row, documents)),
        ]
    )


def source_map_page(rows: Sequence[Row] | None = None) -> str:
    """Every statement of the source documents, one table a document, with links to chapters and verdicts."""
    source_map = load()
    verdicts = {row.claim.id: row.verdict.word for row in (evaluate() if rows is None else rows)}
    lines = []
    for document in source_map.documents:
        count = Counter(statement.kind for statement in document.statements)
        counts = ", ".join(f"{n} {_KINDS[kind]}" for kind, n in count.most_common())
        lines += [f"## {document.title}", "", f"{len(document.statements)} statements: {counts}.", ""]
        lines += [table_row("what it says", "what becomes of it"), table_row("---", "---")]
        for statement in document.statements:
            note = f" *{statement.note}*" if statement.note else ""
            lines.append(table_row(statement.says + note, _where(statement, source_map, verdicts)))
        lines.append("")
    return "\n".join(lines)


def _where(statement: Statement, source_map: SourceMap, verdicts: dict[str, str]) -> str:
    target = statement.target
    match statement.kind:
        case "claim":
            return f"claim: {_link(target)} ({verdicts[target]})"
        case "chapter":
            return f"chapter: {{doc}}`/notebooks/executed/{target}`"
        case "page":
            return f"measured: {{doc}}`{target}`"
        case "planned":
            return f"planned, chapter {target}: {source_map.planned[target]}"
    return f"not empirical: {target}"


def _section(row: Row, documents: Sequence[Document]) -> list[str]:
    claim, verdict = row.claim, row.verdict
    source = claim.source
    for one in documents:
        if one.source == source:
            says = [f"“{said.says}”" for said in one.statements if said.target == claim.id]
            source = " ".join([one.title + ":", *says])
    return [
        f"(claim-{claim.id})=",
        f"### {claim.title}",
        "",
        f"Source: {source}",
        "",
        "Rule",
        f": {_formulas(claim.rule)}",
        "",
        "Verdict",
        f": {_badge(row)} {said(_sentence(verdict.detail))}",
        "",
        *_more_training(row),
        "Evidence",
        f": {_evidence(row)}",
        "",
        "Rule last changed",
        f": {_when(row)}",
        "",
    ]


def _turned(row: Row) -> str:
    """Beside a verdict that more training turns."""
    more = row.verdict.budget
    return f" *{DEPENDENT}*" if more and more.label == DEPENDENT else ""


def _more_training(row: Row) -> list[str]:
    if row.verdict.budget is None:
        return []
    told = said(_sentence(str(row.verdict.budget)).removesuffix("."))
    return ["More training", f": {told} ({_need(budget.TABLE)}, smaller models).", ""]


def _evidence(row: Row) -> str:
    found = []
    for one in row.sources:
        what = [_need(one.need), "nothing yet"]
        if one.records:
            seeds = ", ".join(said(seed) for seed in one.seeds)
            commits = ", ".join(code(commit[:SHORT]) for commit in one.commits)
            made = f"{one.records} records, seeds {seeds}, made at {commits}"
            what[1:] = [f"profile {one.profile}", made]
        elif one.profile is not None and row.verdict.word != NOT_RUN:
            what[1:] = [f"profile {one.profile}", "computed anew with every build of this book"]
        lent = " (more training)" if one.need == budget.TABLE else " (methods beside those judged)"
        lent = "" if one.need in row.claim.experiments else lent
        found.append(", ".join(what) + lent)
    return "; ".join(found)


def _need(need: str) -> str:
    kind, _, name = need.partition("/")
    return f"experiment `{name}`" if kind == "experiment" else f"chapter {{doc}}`/notebooks/executed/{name}`"


def _when(row: Row) -> str:
    if row.rule_commit is None:
        return "unknown (no history at hand, or the rule has changes that are not committed)"
    after = [_need(name) for name, first in row.precedes.items() if first is False]
    made = any(one.commits for one in row.sources if one.need in row.precedes)
    order = ""
    if after:
        of = f" of {', '.join(after)}" if len(row.precedes) > 1 else ""
        order = f", **after records were made**{of}: the rule may have been written with the result in view"
    elif made:
        order = "; whether that was before the records is unknown"
        if all(row.precedes.values()):
            order = ", before the records were made"
    if row.turned is not None:
        order += f". The word was *{row.turned.was}* until, after the records, {row.turned.reason}."
    return f"`{row.rule_commit[:SHORT]}`{order}"


def _badge(row: Row) -> str:
    word = row.verdict.word
    stale = " [stale]{.sepnb-badge .sepnb-stale}" if row.verdict.stale else ""
    return f"[{word}]{{.sepnb-badge .sepnb-{word.replace(' ', '-')}}}{stale}"


def _link(claim_id: str) -> str:
    return f"{{ref}}`{get(claim_id).title} <claim-{claim_id}>`"


def _formulas(text: str) -> str:
    return re.sub(r"\bW_[VO]\b", r"$\g<0>$", text)


def _sentence(detail: str) -> str:
    return f"{detail[0].upper()}{detail[1:]}.".replace(" -", " \N{MINUS SIGN}")

"""The text of the scoreboard (MyST): every statement of the sources with its verdict and one line of why, and
the table of methods."""

from collections import Counter
from collections.abc import Sequence

from sepnb.claims.ledger import Row, load
from sepnb.claims.sources import Document
from sepnb.claims.sources import load as source_map
from sepnb.claims.verdict import Cause, Tables, Verdict
from sepnb.companion.evidence.ledger_page import KINDS, badge, link, where, worded
from sepnb.companion.evidence.reason import because
from sepnb.companion.evidence.verdict_table import FIXED, needs, verdict_table
from sepnb.records.markup import said, table, within
from sepnb.records.store import Store
from sepnb.records.verdicts import HELD, NOT_RUN, NOT_TESTABLE, REFUTED, UNDECIDED

WORDS = {"mqar": "uses: recall", "latest_value": "uses: latest value", "needle": "uses: needle"}
"""The heads of the columns of tasks; any other says its name."""

IN_CELLS = {HELD: "yes", REFUTED: "no", UNDECIDED: "open", NOT_TESTABLE: "not testable"}
"""Verdicts in the table of methods, whose columns are questions."""


def scoreboard(rows: Sequence[Row]) -> str:
    """How many statements records could judge; then a table for each source: what it says, the verdict and
    why, and below it, folded, what no claim judges."""
    found, judged = source_map(), {row.claim.id: row for row in rows}
    count = Counter(judged[one.target].verdict.word for one in found.statements if one.kind == "claim")
    tally = ", ".join(f"{n} {word}" for word, n in count.most_common())
    lines = [
        f"The sources make {len(found.statements)} statements, and {count.total()} of them say something "
        f"that our records could contradict: {tally}.",
        "",
    ]
    for document in found.documents:
        lines += [f"### {document.title}", "", *_judged(document, judged), *_rest(document)]
    return "\n".join(lines)


def _judged(document: Document, judged: dict[str, Row]) -> list[str]:
    """The statements that claims judge, in their order."""
    cells = [
        (worded(one), badge(judged[one.target]), _why(judged[one.target]))
        for one in document.statements
        if one.kind == "claim"
    ]
    return within("statements", table(("what it says", "verdict", "why"), cells)) if cells else []


def _rest(document: Document) -> list[str]:
    """The other statements, and what became of each."""
    rest = [one for one in document.statements if one.kind != "claim"]
    counts = Counter(KINDS[one.kind] for one in rest)
    kinds = ", ".join(f"{n} {kind}" for kind, n in counts.most_common())
    cells = [(worded(one), where(one, {})) for one in rest]
    fold = [f"````{{dropdown}} {len(rest)} statements that no claim judges: {kinds}", ""]
    return [*fold, *table(("what it says", "what becomes of it"), cells)[:-1], "````", ""] if rest else []


def _why(row: Row) -> str:
    """The claim, as a link, and the reason in short."""
    return f"{link(row.claim.id)}: {said(because(row.claim, row.verdict))}"


def methods() -> str:
    """The verdict table of methods, a word and the mean difference in each cell."""
    store = Store()
    tables: Tables = {need: load(need, None, store).content for need in needs()}
    made = verdict_table(tables)
    heads = [WORDS.get(name, name) for name in made[0][1]]
    cells = [(line.label, *(_cell(name, one) for name, one in found.items())) for line, found in made]
    return "\n".join(within("methods", table(("method", *heads), cells)))


def _cell(column: str, verdict: Verdict) -> str:
    """A badge; for what is in bits per byte the last mean too, that of the bin that ends at eight lengths. A
    dash of what was not run."""
    if verdict.cause is Cause.BASE:
        return "base"
    if verdict.word == NOT_RUN:
        return "\N{EN DASH}"
    unlearned = verdict.cause is Cause.NOT_LEARNED
    word = "not learned" if unlearned else IN_CELLS.get(verdict.word, verdict.word)
    values = list(verdict.numbers.values())
    shown = f" {values[-1]:+.2f}".replace("-", "\N{MINUS SIGN}") if column in FIXED and values else ""
    return f"[{word}]{{.sepnb-badge .sepnb-{verdict.word.replace(' ', '-')}}}{shown}"

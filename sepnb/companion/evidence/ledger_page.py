"""The text that the book's extension puts on the pages of claims and of sources (MyST)."""

import re
from collections import Counter
from collections.abc import Sequence

from sepnb.claims import budget
from sepnb.claims.budget import DEPENDENT
from sepnb.claims.claim import OURS, Claim
from sepnb.claims.evidence import by_rounds
from sepnb.claims.ledger import Row, get
from sepnb.claims.rule import conditions, lines
from sepnb.claims.sources import Document, Statement, load
from sepnb.companion.evidence.headlines import headlines
from sepnb.records.markup import code, said, table, within
from sepnb.records.verdicts import NOT_RUN, OF_OURS, PARTLY

SHORT = 9
DECIDED = {*OF_OURS, *OF_OURS.values(), PARTLY}
KINDS = {
    "claim": "judged by a claim",
    "chapter": "in a chapter",
    "page": "in a table that is measured",
    "not-empirical": "not empirical",
}


def page(rows: Sequence[Row]) -> str:
    """The ledger, a fold for each claim: the headlines, those of each source in the order of its statements,
    then our own; then the verdicts that turned."""
    documents = load().documents
    count = Counter(row.verdict.word for row in rows)
    counts = ", ".join(f"{n} {word}" for word, n in count.most_common())
    # In a nested parse, what stands before the first heading would come out last.
    lines = ["### All verdicts", "", f"{len(rows)} claims: {counts}. {_errors(rows)}", ""]
    for title, group in _groups(rows, documents).items():
        lines += [f"### {title}", "", *(line for row in group for line in _fold(row, documents))]
    return "\n".join([*lines, *_verdicts_that_turned(rows)])


def _errors(rows: Sequence[Row]) -> str:
    """How many of the words that tests decided may be wrong by chance."""
    decided = [
        row
        for row in rows
        if row.verdict.word in DECIDED and any(one.p is not None for one in row.verdict.answers)
    ]
    return (
        f"Tests over seeds decided {len(decided)} of them. Holm's correction ends with each claim: chance "
        f"alone may turn one in twenty, up to about {round(len(decided) / 20)} of these, and nothing "
        "corrects it."
    )


def _verdicts_that_turned(rows: Sequence[Row]) -> list[str]:
    turned = [
        (link(row.claim.id), row.turned.was, badge(row), row.turned.reason) for row in rows if row.turned
    ]
    return [
        "### Verdicts that turned",
        "",
        "A claim keeps its name when its rule, the judge or its records change. These had another word "
        "before, and the last column says why.",
        "",
        *within("statements", table(("claim", "before", "now", "why"), turned)),
    ]


def _groups(rows: Sequence[Row], documents: Sequence[Document]) -> dict[str, list[Row]]:
    """The claims by what says them; a group of none is left out."""
    by_id, first = {row.claim.id: row for row in rows}, headlines()
    groups = {"Headlines": [by_id[name] for name in first if name in by_id]}
    for one in documents:
        said_there = dict.fromkeys(said.target for said in one.statements if said.kind == "claim")
        own = [by_id[name] for name in said_there if name in by_id and name not in first]
        groups[one.title] = [row for row in own if row.claim.source == one.source]
    shown = {row.claim.id for group in groups.values() for row in group}
    groups["Hypotheses of this book"] = [row for row in rows if row.claim.id not in shown]
    return {title: group for title, group in groups.items() if group}


def source_map_page(rows: Sequence[Row]) -> str:
    """Every statement of the source documents, one table a document, with links to chapters and verdicts."""
    source_map = load()
    verdicts = {row.claim.id: row.verdict.word for row in rows}
    lines = []
    for document in source_map.documents:
        count = Counter(statement.kind for statement in document.statements)
        counts = ", ".join(f"{n} {KINDS[kind]}" for kind, n in count.most_common())
        lines += [f"## {document.title}", "", f"{len(document.statements)} statements: {counts}.", ""]
        cells = [(worded(statement), where(statement, verdicts)) for statement in document.statements]
        lines += table(("what it says", "what becomes of it"), cells)
    return "\n".join(lines)


def worded(statement: Statement) -> str:
    """What a statement says, and the note on it."""
    return f"{statement.says} *{statement.note}*" if statement.note else statement.says


def where(statement: Statement, verdicts: dict[str, str]) -> str:
    """What becomes of a statement, with a link."""
    target = statement.target
    match statement.kind:
        case "claim":
            return f"claim: {link(target)} ({verdicts[target]})"
        case "chapter":
            return f"chapter: {{doc}}`/notebooks/executed/{target}`"
        case "page":
            return f"measured: {{doc}}`/book/{target}`"
    return f"not empirical: {target}"


def _fold(row: Row, documents: Sequence[Document]) -> list[str]:
    """A claim, folded under its verdict and its title."""
    claim, verdict = row.claim, row.verdict
    source = claim.source
    for one in documents:
        if one.source == source:
            says = [f"“{said.says}”" for said in one.statements if said.target == claim.id]
            source = " ".join([one.title + ":", *says])
    if source == OURS and row.precedes is False:
        source += ", and its rule changed later" if not row.unseen else " of some methods"
    return [
        f"(claim-{claim.id})=",
        f"~~~~{{dropdown}} {badge(row)} {claim.title}{_turned(row)}",
        f":class-container: sepnb-claim{' sepnb-late' if row.precedes is False else ''}",
        "",
        f"Source: {source}",
        "",
        "Rule",
        *_rule(claim),
        "",
        "Verdict",
        f": {badge(row)} {said(_sentence(verdict.detail))}",
        "",
        *_more_training(row),
        "Evidence",
        f": {_evidence(row)}",
        "",
        "Rule last changed",
        f": {_when(row)}",
        "~~~~",
        "",
    ]


def _rule(claim: Claim) -> list[str]:
    """The rule in words; what a declaration asks, as a table."""
    if claim.rule:
        return [f": {_formulas(claim.rule)}"]
    heads = ("of", "minus", "what is measured", "asked for")
    some = claim.parts and len(claim.asks) > 1
    rest = [conditions([*claim.floors, *claim.unless], some=some), claim.remark]
    asked = [one.cells for one in lines(claim.asks, claim.metric)]
    body = ["", *table(heads, asked), " ".join(rest).strip()]
    over = "in three quarters of the rounds" if claim.how is by_rounds else "in the mean over the seeds"
    return [f": Each line, {over}:", *(f"  {line}".rstrip() for line in body)]


def _turned(row: Row) -> str:
    """The mark after a verdict that changes with more training."""
    more = row.verdict.budget
    return f" *{DEPENDENT}*" if more and more.label == DEPENDENT else ""


def _more_training(row: Row) -> list[str]:
    if row.verdict.budget is None:
        return []
    sentence = said(_sentence(str(row.verdict.budget)).removesuffix("."))
    return ["More training", f": {sentence} ({_need(budget.TABLE)}, smaller models).", ""]


def _evidence(row: Row) -> str:
    found = []
    for one in row.sources:
        what = [_need(one.need), "nothing yet"]
        if one.records:
            seeds = ", ".join(said(seed) for seed in one.seeds)
            commits = ", ".join(code(commit[:SHORT]) for commit in one.made_at)
            made = f"{one.records} records, seeds {seeds}, made at {commits}"
            what[1:] = [f"profile {one.profile}", made]
        elif one.profile is not None and row.verdict.word != NOT_RUN:
            what[1:] = [f"profile {one.profile}", "computed anew with every build of this book"]
        lent = " (more training)" if one.need == budget.TABLE else " (methods beside those judged)"
        lent = "" if one is row.sources[0] else lent
        found.append(", ".join(what) + lent)
    return "; ".join(found)


def _need(need: str) -> str:
    kind, _, name = need.partition("/")
    return f"experiment `{name}`" if kind == "experiment" else f"chapter {{doc}}`/notebooks/executed/{name}`"


def _when(row: Row) -> str:
    if row.rule_commit is None:
        return "unknown (no history at hand, or the rule has changes that are not committed)"
    order = {
        False: _after(row),
        True: ", before the records were made",
        None: "; whether that was before the records is unknown",
    }[row.precedes]
    text = f"`{row.rule_commit[:SHORT]}`{order if row.sources[0].commits else ''}"
    if row.turned is not None:
        text += f". The word was *{row.turned.was}* until, after the records, {row.turned.reason}."
    return text


def _after(row: Row) -> str:
    if row.unseen:
        return f", **after records were made**, and before those of {', '.join(map(code, row.unseen))}"
    return ", **after records were made**: the rule may have been written with the result in view"


def badge(row: Row) -> str:
    """The word of a verdict with its count, in its colour."""
    word = row.verdict.word
    stale = " [stale]{.sepnb-badge .sepnb-stale}" if row.verdict.stale else ""
    return f"[{row.verdict.counted}]{{.sepnb-badge .sepnb-{word.replace(' ', '-')}}}{stale}"


def link(claim_id: str) -> str:
    """The title of a claim, with a link to it."""
    return f"{{ref}}`{get(claim_id).title} <claim-{claim_id}>`"


def _formulas(text: str) -> str:
    return re.sub(r"\bW_[VO]\b", r"$\g<0>$", text)


def _sentence(detail: str) -> str:
    return f"{detail[0].upper()}{detail[1:]}.".replace(" -", " \N{MINUS SIGN}")

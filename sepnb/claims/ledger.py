"""The ledger: every claim, judged on what is published now."""

import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import pandas as pd

from sepnb.claims.claim import Claim
from sepnb.claims.provenance import History, Pin
from sepnb.claims.verdict import Tables, Verdict
from sepnb.records import numbers
from sepnb.records.store import RecordError, Store

MODULES = (
    "exact, shaw_clip, context_extension, language_model, extrapolation, recipes, seqpe_geometry, images, "
    "seqpe_stream, speed, inside, recall, matched_loss, stretched, ladder"
)
CLAIMS: tuple[Claim, ...] = tuple(
    replace(claim, id=claim_id)
    for name in MODULES.split(", ")
    for claim_id, claim in import_module(f"sepnb.claims.{name}").CLAIMS.items()
)

PUBLISHED = ("gpu", "laptop")


@dataclass(frozen=True)
class Source:
    """The table of an experiment or the numbers of a chapter, and the profile; None if nothing was found. An
    experiment also has the number of its records, their seeds and, by method, their commits."""

    need: str
    content: pd.DataFrame | Mapping[str, Any] | None = None
    profile: str | None = None
    records: int = 0
    seeds: tuple[int, ...] = ()
    commits: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def made_at(self) -> list[str]:
        """All of these commits."""
        return sorted(set().union(*self.commits.values()))

    def judged_by(self, claim: Claim) -> dict[str, frozenset[str]]:
        """The commits of the records that judge a claim, by method: of the methods that it names, or of all
        if it names an unknown one."""
        known = self.commits.keys() | {name for lent in claim.beside.values() for name in lent}
        asked = claim.methods if claim.methods <= known else self.commits
        return {name: self.commits[name] for name in asked if name in self.commits}


@dataclass(frozen=True)
class Row:
    """One claim with its verdict and what stands behind it.

    Attributes:
        sources: what was read, in the order of `Claim.needs`.
        rule_commit: the commit that first had the rule; None if git cannot tell.
        precedes: whether the rule came before the records of the methods that it names; None if git cannot
            tell. Experiments that only lend methods do not count.
        unseen: if it did not, the methods whose records all came after it.
        turned: how the verdict turned after the rule was made; None if it did not.
    """

    claim: Claim
    verdict: Verdict
    sources: tuple[Source, ...]
    rule_commit: str | None
    precedes: bool | None
    turned: Pin | None = None
    unseen: tuple[str, ...] = ()

    @property
    def profile(self) -> str | None:
        """The profile of the records that are judged; None if nothing was read."""
        return self.sources[0].profile

    def as_data(self) -> dict[str, Any]:
        """What `sepnb claims --json` prints of it; a number that is not finite is null."""
        found = self.verdict.numbers.items()
        return {name: getattr(self.claim, name) for name in ("id", "title", "source")} | {
            "verdict": self.verdict.word,
            "numbers": {name: value if math.isfinite(value) else None for name, value in found},
            "rule_commit": self.rule_commit,
            "timing": {True: "before", False: "after"}.get(self.precedes),
        }


def get(claim_id: str) -> Claim:
    """The claim of this id; a ValueError where there is none."""
    found = {claim.id: claim for claim in CLAIMS}
    if claim_id not in found:
        raise ValueError(f"no claim {claim_id!r} in the ledger; it has {', '.join(found)}")
    return found[claim_id]


def judge(claim_ids: Iterable[str], tables: Tables) -> dict[str, Verdict]:
    """The verdicts of these claims, by their ids.

    Raises:
        ValueError: no claim of this id, or a table that it needs is not among `tables`: a verdict of "not
            run" would hide that it was forgotten.
    """
    verdicts = {}
    for claim_id in claim_ids:
        claim = get(claim_id)
        if missing := [need for need in claim.needs if need not in tables]:
            raise ValueError(
                f"claim {claim_id!r} needs {', '.join(missing)}; the tables given are {', '.join(tables)}"
            )
        verdicts[claim_id] = claim.judge(tables)
    return verdicts


Loaded = Callable[[str, str], pd.DataFrame]
"""The table of an experiment at a profile."""


def evaluate(
    profile: str | None = None, store: Store | None = None, *, table: Loaded | None = None
) -> list[Row]:
    """Judge every claim.

    Args:
        profile: of the records and chapter numbers. None takes, for each experiment, gpu if its grid is
            complete and laptop otherwise, and for each chapter the profile that the book is built from, else
            any at which it has run: what chapters decide exactly does not depend on the profile.
        store: None is the published one. Of one that collects `refused`, claims are judged without the
            records refused, as if these had not been run.
        table: gives the tables of that store, if they are there already; it keeps them unchanged.

    Raises:
        RecordError: a record that cannot be trusted, in a store that does not collect them.
    """
    store, history = Store() if store is None else store, History()
    names = dict.fromkeys(need for claim in CLAIMS for need in claim.needs)
    sources = {need: load(need, profile, store, table) for need in names}
    rows = []
    for claim in CLAIMS:
        rule, judged = history.rule_commit(claim), sources[claim.experiment].judged_by(claim)
        precedes = history.precedes(rule, set().union(*judged.values()))
        unseen = history.unseen(rule, judged) if precedes is False else ()
        read = tuple(sources[need] for need in claim.needs)
        verdict = claim.judge({one.need: one.content for one in read})
        rows.append(Row(claim, verdict, read, rule, precedes, history.turned(claim), unseen))
    return rows


def load(need: str, profile: str | None, store: Store, table: Loaded | None = None) -> Source:
    """What a claim is judged by, read from the records or from the numbers of a chapter; as in `evaluate`."""
    kind, _, name = need.partition("/")
    if kind == "chapter":
        built = os.environ.get("SEPNB_PROFILE", "laptop")  # what the book is being built from, not a leftover
        for candidate in dict.fromkeys((built, *PUBLISHED, "smoke")) if profile is None else (profile,):
            if numbers.path(name, candidate).exists():
                return Source(need, numbers.load(name, candidate), candidate)
        return Source(need)
    from sepnb import experiments  # brings torch, which nothing else here needs

    try:
        there = PUBLISHED if profile is None else (profile,)
        # a profile without any record need not lay out its grid
        for candidate in [one for one in there if store.files(one, name)] or there[-1:]:
            loaded = table(name, candidate) if table else experiments.get(name).table(candidate, store)
            if (loaded.status == "ok").all():
                break
    except RecordError as error:  # of the folder as a whole
        if store.refused is None:
            raise
        store.refused[store.root / name] = error
        return Source(need)
    records, content = loaded.attrs["records"], loaded.copy(deep=False)
    content.attrs = {}  # pandas copies them deeply at every step, and no rule reads them
    commits: dict[str, set[str]] = defaultdict(set)
    for record in records:
        commits[record.config.get("method", "")].add(record.provenance.get("commit") or "unknown")
    seeds = tuple(sorted({record.provenance["seed"] for record in records}))
    made = {name: frozenset(several) for name, several in commits.items()}
    return Source(need, content, candidate, len(records), seeds, made)

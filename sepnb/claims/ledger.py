"""The ledger: every claim, judged on what is published now."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sepnb.claims import (
    context_extension,
    encoding_speed,
    exact,
    extrapolation,
    image_counts,
    images,
    inside,
    language_model,
    recipes,
    seqpe_geometry,
    seqpe_stream,
    seqpe_stream_geometry,
    shaw_clip,
)
from sepnb.claims.claim import Claim
from sepnb.claims.provenance import History, Pin
from sepnb.claims.verdict import Verdict
from sepnb.records.store import RecordError, Store

CLAIMS: tuple[Claim, ...] = (
    *exact.CLAIMS,
    *shaw_clip.CLAIMS,
    *context_extension.CLAIMS,
    *language_model.CLAIMS,
    *extrapolation.CLAIMS,
    *recipes.CLAIMS,
    *seqpe_geometry.CLAIMS,
    *images.CLAIMS,
    *image_counts.CLAIMS,
    *seqpe_stream.CLAIMS,
    *seqpe_stream_geometry.CLAIMS,
    *encoding_speed.CLAIMS,
    *inside.CLAIMS,
)

PUBLISHED = ("gpu", "laptop")


@dataclass(frozen=True)
class Source:
    """An experiment or a chapter as the ledger reads it.

    Attributes:
        need: `experiment/<name>` or `chapter/<name>`.
        content: its table or its numbers; None if there are none.
        profile: of what was read; None if there was nothing.
        records: how many records the table holds; 0 for a chapter.
        commits: those that the records were made from.
    """

    need: str
    content: pd.DataFrame | Mapping[str, Any] | None = None
    profile: str | None = None
    records: int = 0
    seeds: tuple[int, ...] = ()
    commits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One claim with its verdict and what stands behind it.

    Attributes:
        sources: what was read, in the order of `Claim.needs`.
        rule_commit: the commit that first had the rule; None if git cannot tell.
        precedes: by each experiment that the claim judges, whether the rule came before its records; None if
            git cannot tell. Of experiments that only lend methods nothing is asked.
        turned: how the verdict turned after the rule was made; None if it did not.
    """

    claim: Claim
    verdict: Verdict
    sources: tuple[Source, ...]
    rule_commit: str | None
    precedes: Mapping[str, bool | None]
    turned: Pin | None = None

    @property
    def profile(self) -> str | None:
        """Of the experiments that are judged; None if nothing was read."""
        judged = [one for one in self.sources if one.need in self.claim.experiments]
        return " and ".join(dict.fromkeys(one.profile for one in judged if one.profile)) or None

    @property
    def timing(self) -> dict[str, str | None]:
        """By each experiment judged: whether the rule came "before" or "after" its records, None if
        unknown."""
        return {
            need: {True: "before", False: "after", None: None}[one] for need, one in self.precedes.items()
        }

    def as_data(self) -> dict[str, Any]:
        """What `sepnb claims --json` prints of it; a number that is not finite is null."""
        numbers = {
            name: value if math.isfinite(value) else None for name, value in self.verdict.numbers.items()
        }
        return {
            "id": self.claim.id,
            "title": self.claim.title,
            "source": self.claim.source,
            "verdict": self.verdict.word,
            "numbers": numbers,
            "rule_commit": self.rule_commit,
            "timing": self.timing,
        }


def get(claim_id: str) -> Claim:
    """The claim of this id.

    Raises:
        ValueError: there is none.
    """
    for claim in CLAIMS:
        if claim.id == claim_id:
            return claim
    raise ValueError(f"no claim {claim_id!r} in the ledger; it has {', '.join(c.id for c in CLAIMS)}")


def evaluate(profile: str | None = None, store: Store | None = None) -> list[Row]:
    """Judge every claim.

    Args:
        profile: of the records and chapter numbers. None takes, for each experiment, gpu if its grid is
            complete and laptop otherwise, and for each chapter the profile that the book is built from, else
            any at which it has run: what chapters decide exactly does not depend on the profile.
        store: None is the published one. Of one that collects `refused`, claims are judged without the
            records refused, as if these had not been run.

    Raises:
        RecordError: a record that cannot be trusted, in a store that does not collect them.
    """
    store, history = Store() if store is None else store, History()
    names = dict.fromkeys(need for claim in CLAIMS for need in claim.needs)
    sources = {need: load(need, profile, store) for need in names}
    rows = []
    for claim in CLAIMS:
        rule = history.rule_commit(claim)
        rows.append(
            Row(
                claim=claim,
                verdict=claim.judge({need: sources[need].content for need in claim.needs}),
                sources=tuple(sources[need] for need in claim.needs),
                rule_commit=rule,
                precedes={n: history.precedes(rule, sources[n].commits) for n in claim.experiments},
                turned=history.turned(claim),
            )
        )
    return rows


def load(need: str, profile: str | None, store: Store) -> Source:
    """What a claim is judged by, read from the records or from the numbers of a chapter; as in `evaluate`."""
    kind, _, name = need.partition("/")
    return _experiment(need, name, profile, store) if kind == "experiment" else _chapter(need, name, profile)


def _experiment(need: str, name: str, profile: str | None, store: Store) -> Source:
    from sepnb import experiments  # brings torch, which nothing else here needs

    try:
        there = PUBLISHED if profile is None else (profile,)
        # a profile without any record need not lay out its grid
        for candidate in [one for one in there if store.files(one, name)] or there[-1:]:
            table = experiments.get(name).table(candidate, store)
            if (table.status == "ok").all():
                break
    except RecordError as error:  # of the folder as a whole
        if store.refused is None:
            raise
        store.refused[store.root / name] = error
        return Source(need)
    records = table.attrs["records"]
    table.attrs = {}  # pandas copies them deeply at every step, and no rule reads them
    return Source(
        need,
        content=table,
        profile=candidate,
        records=len(records),
        seeds=tuple(sorted({record.provenance["seed"] for record in records})),
        commits=tuple(sorted({record.provenance.get("commit") or "unknown" for record in records})),
    )


def _chapter(need: str, name: str, profile: str | None) -> Source:
    from sepnb.records import numbers

    built = os.environ.get("SEPNB_PROFILE", "laptop")  # what the book is being built from, not a leftover
    for candidate in dict.fromkeys((built, *PUBLISHED, "smoke")) if profile is None else (profile,):
        if numbers.path(name, candidate).exists():
            return Source(need, content=numbers.load(name, candidate), profile=candidate)
    return Source(need)

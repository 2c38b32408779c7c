"""The ledger: every claim, judged on what is published now."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sepnb.claims import (
    ablation,
    beyond,
    budget,
    context_extension,
    dimensions,
    encoding_speed,
    exact,
    extrapolation,
    history,
    images,
    images_seqpe,
    in_window,
    inside,
    recipes,
    recipes_quality,
    seqpe_cost,
    seqpe_distances,
    seqpe_geometry,
    seqpe_stream,
    seqpe_stream_geometry,
    seqpe_stream_quality,
    shaw_clip,
    volumes,
)
from sepnb.claims.dependence import Dependence, under_budgets
from sepnb.claims.verdict import Claim, Verdict
from sepnb.records.store import RecordError, Store

CLAIMS: tuple[Claim, ...] = (
    exact.CLAIMS
    + in_window.CLAIMS
    + shaw_clip.CLAIMS
    + ablation.CLAIMS
    + budget.CLAIMS
    + extrapolation.CLAIMS
    + beyond.CLAIMS
    + inside.CLAIMS
    + recipes.CLAIMS
    + recipes_quality.CLAIMS
    + context_extension.CLAIMS
    + seqpe_geometry.CLAIMS
    + seqpe_distances.CLAIMS
    + seqpe_stream.CLAIMS
    + seqpe_stream_quality.CLAIMS
    + seqpe_stream_geometry.CLAIMS
    + seqpe_cost.CLAIMS
    + images.CLAIMS
    + images_seqpe.CLAIMS
    + encoding_speed.CLAIMS
    + volumes.CLAIMS
    + dimensions.CLAIMS
)

PUBLISHED = ("gpu", "laptop")


@dataclass(frozen=True)
class Row:
    """One claim with its verdict and what stands behind it.

    Args:
        profile: of the records or chapter numbers read; None if there were none.
        records: how many records the experiment's table holds; 0 for a claim that a chapter decides.
        record_commits: the commits that the records were made from.
        rule_commit: the last commit of the rule; None if git cannot tell.
        precedes: whether the rule's commit came before the records'; None if git cannot tell.
        budget: what more training makes of the verdict; None where no run says.
    """

    claim: Claim
    verdict: Verdict
    profile: str | None
    records: int
    seeds: tuple[int, ...]
    record_commits: tuple[str, ...]
    rule_commit: str | None
    precedes: bool | None
    budget: Dependence | None = None


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
    store = Store() if store is None else store
    sources: dict[str, _Source] = {}

    def source(need: str) -> _Source:
        if need not in sources:
            sources[need] = _load(need, profile, store)
        return sources[need]

    labels = under_budgets((claim.id for claim in CLAIMS), source(budget.TABLE).content)
    rule_commits = history.rule_commits(CLAIMS)
    rows = []
    for claim in CLAIMS:
        used = [source(need) for need in claim.needs]
        commits = tuple(sorted({commit for one in used for commit in one.commits}))
        rule = rule_commits[claim.id]
        rows.append(
            Row(
                claim=claim,
                verdict=claim.rule({need: source(need).content for need in claim.needs}),
                profile=" and ".join(dict.fromkeys(s.profile for s in used if s.profile)) or None,
                records=sum(one.records for one in used),
                seeds=tuple(sorted({seed for one in used for seed in one.seeds})),
                record_commits=commits,
                rule_commit=rule,
                precedes=history.precedes(rule, commits),
                budget=labels.get(claim.id),
            )
        )
    return rows


@dataclass(frozen=True)
class _Source:
    content: pd.DataFrame | Mapping[str, Any] | None = None
    profile: str | None = None
    records: int = 0
    seeds: tuple[int, ...] = ()
    commits: tuple[str, ...] = ()


def _load(need: str, profile: str | None, store: Store) -> _Source:
    kind, _, name = need.partition("/")
    return _experiment(name, profile, store) if kind == "experiment" else _chapter(name, profile)


def _experiment(name: str, profile: str | None, store: Store) -> _Source:
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
        return _Source()
    records = table.attrs["records"]
    table.attrs = {}  # pandas copies them deeply at every step, and no rule reads them
    return _Source(
        content=table,
        profile=candidate,
        records=len(records),
        seeds=tuple(sorted(record.provenance["seed"] for record in records)),
        commits=tuple(record.provenance.get("commit") or "unknown" for record in records),
    )


def _chapter(name: str, profile: str | None) -> _Source:
    from sepnb.records import numbers

    built = os.environ.get("SEPNB_PROFILE", "laptop")  # what the book is being built from, not a leftover
    for candidate in dict.fromkeys((built, *PUBLISHED, "smoke")) if profile is None else (profile,):
        if numbers.path(name, candidate).exists():
            return _Source(content=numbers.load(name, candidate), profile=candidate)
    return _Source()

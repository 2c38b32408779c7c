"""What `sepnb check` does, shown while it is done."""

import os
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from rich.console import Console

from sepnb import paths
from sepnb.companion.check import published, regression, retrained, tolerances
from sepnb.companion.run import chapters, screens
from sepnb.records.store import Store


def check_published(console: Console, profiles: Sequence[str], sample: int | None) -> int:
    """Replay published records, show what is not equal, mark what is stale, list what cannot be trusted; the
    exit status."""
    from sepnb import experiments

    every = [experiments.get(name) for name in experiments.names()]
    store = Store(refused={})
    with console.status("replaying the start of published runs") as status:
        replays = published.check(
            every,
            profiles=profiles,
            store=store,
            sample=sample,
            side_by_side=min(2, os.cpu_count() or 1),
            on_end=lambda done, total: status.update(f"replayed {done} of {total} published runs"),
        )
    if not replays and not store.refused:
        raise ValueError(
            f"{store.root} holds no record of {' or '.join(profiles)}, so that nothing was checked; "
            f"`sepnb results` says what is published, and SEPNB_RESULTS names another store"
        )
    if odd := [(one.status, one.name, one.detail) for one in replays if one.detail]:
        console.print(screens.rows(("", "record", "why"), odd))
    counts = Counter(one.status for one in replays)
    summary = ", ".join(f"{counts[word]} {word}" for word in published.STATUSES)
    console.print(f"{len(replays)} published records: {summary}")
    screens.refused(console, store.refused)
    return 1 if store.refused else published.exit_status(replays)


def check_whole(console: Console, profile: str, count: int, draw: str) -> int:
    """Train so many published runs again, say what each gave; the exit status."""
    from sepnb import experiments

    every = [experiments.get(name) for name in experiments.names()]
    jobs = retrained.drawn(every, count, profile=profile, draw=draw, store=Store(refused={}))
    if not jobs:
        raise ValueError(
            f"no published run of {profile} can be trained again here; see `sepnb results`, `data`"
        )
    seconds = sum(one.record.provenance["cpu_s"] for one in jobs)
    screens.say(
        console, f"training {len(jobs)} published runs again: {screens.duration(seconds)} of CPU time"
    )

    def ended(one: published.Replay) -> None:
        screens.say(console, f"{one.name}: {one.detail or 'equal'}")

    return published.exit_status(
        retrained.check(jobs, side_by_side=min(2, os.cpu_count() or 1), on_end=ended)
    )


def check_numbers(
    console: Console, names: Sequence[str], profile: str, *, update: bool, reason: str, measure: bool
) -> int:
    """Recompute chapters, all where none is named, in an empty store and compare, or take new references or
    tolerances."""
    chosen = [chapters.find(name).name for name in names]
    known = [chapter.name for chapter in chapters.discover()]
    if not known:
        raise ValueError(f"{paths.root()} holds no chapters: numbers are checked in a checkout of the book")
    say = partial(screens.say, console)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sepnb-check-") as work:
        if measure:
            found, numbers = tolerances.measure(Path(work), chapters=chosen, profile=profile, say=say)
            say(f"tolerances: {tolerances.write_tolerances(found, profile, known)}")
            for line in tolerances.loose(found):
                say(f"wider than the spread over seeds, so it guards little: {line}")
        else:
            say(f"recomputing {', '.join(chosen) or 'every chapter'} at {profile} in an empty store")
            numbers = regression.recompute(Path(work), chapters=chosen, profile=profile, quiet=False)
    if update:
        for file in regression.update(numbers, profile, reason):
            say(f"reference: {file}")
    compared = [regression.compare(name, metrics, profile) for name, metrics in numbers.items()]
    problems = [*chain(*compared), *regression.orphans(known, profile)]
    for problem in problems:
        say(problem)
    if not (count := sum(len(metrics) for metrics in numbers.values())):
        raise ValueError(f"{', '.join(chosen or known)} published no number, so that nothing was checked")
    verdict = f"{len(problems)} differ" if problems else "all as the reference says"
    took = screens.duration(time.monotonic() - began)
    say(f"{count} numbers of {len(numbers)} chapters: {verdict} ({took})")
    return 1 if problems else 0

"""What the commands do, shown while it is done: the part between the command line and the machinery."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from sepnb import paths
from sepnb.companion.run import chapters, execute, runs, screens
from sepnb.companion.run import names as known_names
from sepnb.companion.run.chapters import Chapter
from sepnb.companion.run.cluster import Cluster
from sepnb.companion.run.gpus import missing, only, visible
from sepnb.records.store import RecordError, Store


def cluster(
    console: Console, kind: str | None, jobs: int | None, threads: int, asked: Mapping[str, Any]
) -> Cluster | None:
    """The cluster that `run` was asked for, with what else was asked of it; None where none was."""
    given = {name: value for name, value in asked.items() if value is not None}
    if kind is None:
        if given:
            raise ValueError(f"--{next(iter(given))} goes with --cluster slurm")
        return None
    if jobs is not None:
        raise ValueError("--jobs counts processes of this command; with --cluster give --parallel")
    return Cluster(**{"parallel": 2, **given}, threads=threads, say=partial(screens.say, console))


def device(asked: str | None, profile: str, place: Cluster | None = None) -> str:
    """The device to compute on: as asked; by default cuda for the gpu profile and the CPU for the others.

    Of several GPUs `cuda:N` is one, which the processes of the command then see alone, as `cuda`.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", asked or "auto"):
        raise ValueError(f"--device {asked!r}: give cpu, cuda, one of several GPUs as cuda:1, or auto")
    if asked and ":" in asked and place is not None:
        raise ValueError(f"--device {asked} names a GPU of this machine; with --cluster give --gpus")
    if place is not None:
        return place.device(asked, profile)  # this machine computes nothing
    if asked == "cpu" or (asked is None and profile != "gpu"):
        return "cpu"
    if asked and ":" in asked:
        only(int(asked.partition(":")[2]))
    lacking = missing()
    if lacking is None or asked == "auto":
        return "cpu" if lacking else "cuda"
    why = f"--device {asked}" if asked else "the gpu profile"
    raise ValueError(f"{why} needs a GPU, and {lacking}; --device cpu computes without")


def seeds(text: str | None) -> list[int] | None:
    """`"0,1,2"` as a list; None stays None."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        remedy = "give whole numbers separated by commas, such as 0,1,2, each of at most 18 digits"
        raise ValueError(f"--seeds {text!r}: {remedy}")
    found = [int(part) for part in parts]
    if len(set(found)) < len(found):
        raise ValueError(f"--seeds {text!r}: a seed is given twice")
    return found


def run_experiments(
    console: Console,
    wanted: Sequence[Any],
    *,
    profile: str,
    device: str,
    seeds: Sequence[int] | None,
    methods: Sequence[str] | None = None,
    fresh: bool,
    folder: Path | None,
    jobs: int,
    threads: int,
    shard: tuple[int, int] = (1, 1),
    cluster: Cluster | None = None,
) -> bool:
    """Run what is missing of these grids, here or on a cluster; True when everything is there at the end.

    Runs that choose settings come first; runs that use these settings are planned afterwards. On GPUs, `jobs`
    counts processes per GPU, and a timed run has its GPU to itself. A record that cannot be trusted is left
    as it is and listed; the others are run.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise ValueError(
            "sepnb run computes each run in one process, and torchrun started several of it; use --jobs or "
            "--cluster for many runs, and sepnb.training.together in a script for one of your own"
        )
    if cluster is not None:
        cluster.check()
    store = Store(folder or runs.store_for(profile).root, refused={})
    how = {"seeds": seeds, "methods": methods, "device": device, "store": store, "fresh": fresh}
    todo, tallies = runs.plan(wanted, profile, **how, shard=shard)
    gpus = visible() if device == "cuda" and cluster is None else []
    began = time.monotonic()
    if todo:
        runs.check_clean(store)
        for name in dict.fromkeys(one.experiment.name for one in todo):
            store.try_write(profile, name)
        if absent := runs.absent_data({(one, profile) for one in wanted}):
            raise ValueError("; ".join(sorted(set(absent.values()))))
        places = f" on each of {len(gpus)} GPUs" if len(gpus) > 1 else ""
        about = screens.duration(runs.expected_seconds(todo, jobs, len(gpus)))
        about += "" if gpus or profile != "gpu" else " on an A100"
        there = sum(one.skipped for one in tallies)
        console.print(
            f"{len(todo)} runs of {', '.join(one.experiment for one in tallies)} at {profile} on {device}, "
            f"{jobs} side by side{places}: about {about} ({there} are there already)"
        )
        options = {"threads": threads, "gpus": gpus if len(gpus) > 1 else (), "cluster": cluster}
        tallies = []
        for phase in runs.phases(wanted, profile):
            width = 1 if device == "cuda" and phase[0].alone else jobs
            planned = runs.plan(phase, profile, **how, shard=shard)
            tallies += _run_phase(console, *planned, side_by_side=width, **options)
    console.print(screens.tallies(tallies))
    if todo:
        console.print(f"{screens.duration(time.monotonic() - began)}; records in {store.root}", markup=False)
    screens.refused(console, store.refused)
    return all(tally.complete for tally in tallies) and not store.refused


def _run_phase(
    console: Console,
    todo: Sequence[runs.GridRun],
    tallies: Sequence[runs.Tally],
    *,
    cluster: Cluster | None,
    **options: Any,
) -> list[runs.Tally]:
    """Do the runs that were planned together, and show how they fare."""
    labels = [f"{one.experiment.name}: {one.config.label}, seed {one.config.seed}" for one in todo]
    if not todo:
        return list(tallies)
    with screens.Bars(console, "runs", labels) as bars:

        def ended(index: int, error: str | None) -> None:
            bars.end(index)
            if error or not console.is_terminal:
                screens.say(console, f"{labels[index]}: {error or 'stored'}")

        if cluster is not None:
            options["through"] = cluster.run_jobs
        try:
            return runs.run(todo, tallies, **options, on_progress=bars.step, on_end=ended)
        except KeyboardInterrupt:
            if cluster is not None and (message := cluster.left_running()):
                screens.say(console, message)
            raise


def run_chapters(
    console: Console,
    wanted: Sequence[Chapter],
    *,
    profile: str,
    device: str,
    seed: int,
    fresh: bool,
    jobs: int,
    threads: int,
) -> bool:
    """Execute what is not current of these chapters, show what failed; True when none did."""
    todo = [execute.Job(chapter, profile, seed, device, threads, fresh) for chapter in wanted]
    due = [job for job in todo if job.why() is not None]
    if due:
        message = f"executing {len(due)} of {len(todo)} chapters at {profile}"
        past = [chapters.last_seconds(job.chapter, profile) for job in due]
        if None not in past:
            message += f" about {screens.duration(sum(past) / min(jobs, len(due)))}"
        console.print(message)
    with screens.Bars(console, "chapters", [job.chapter.name for job in todo]) as bars:
        outcomes = execute.execute_all(todo, side_by_side=jobs, on_progress=bars.step)
        for number in range(len(todo)):
            bars.end(number)
    for outcome, job in zip(outcomes, todo, strict=True):
        if outcome.failure:
            kept = job.chapter.output(profile, "failed.ipynb")
            console.print(screens.failure(outcome, str(kept) if kept.exists() else None))
    console.print(screens.outcomes(outcomes))
    return all(outcome.failure is None for outcome in outcomes)


def data(console: Console, wanted: Sequence[str]) -> None:
    """Fetch these data sets; where none is named, say which are at hand."""
    from sepnb.data import registry

    for one in [registry.get(name) for name in wanted]:
        screens.say(console, f"{one.name}: {one.fetch()}")
    if wanted:
        return
    sets = [registry.get(name) for name in registry.names()]
    table = [(one.name, one.status(), one.title, one.licence) for one in sets]
    console.print(screens.rows(("data set", "status", "what", "licence"), table))
    screens.say(console, f"data folder: {paths.data()}")
    for one in (one for one, row in zip(sets, table, strict=True) if row[1] == "damaged"):
        try:
            one.read()
        except ValueError as why:
            screens.say(console, str(why))
    if any(row[1] != "at hand" for row in table):
        console.print("`sepnb data NAME` fetches one; SEPNB_DATA names a folder that has them")


def list_results(console: Console, parts: Sequence[str] | None, profiles: Sequence[str]) -> int:
    """What is published, missing, stale, orphaned and refused of the experiments whose names hold one of the
    parts; the exit status."""
    from sepnb import experiments

    wanted = known_names.named(parts, experiments.names())
    refused: dict[Path, RecordError] = {}
    table, details = [], []
    for of in profiles:
        store = Store(runs.store_for(of).root, refused=refused)
        for name in wanted:
            grid = {config.key: config for config in experiments.get(name).grid(of)}
            before = len(refused)
            try:
                records = store.load(of, name)
            except RecordError as error:  # none of this experiment can be read
                refused[store.path(of, name, "any")] = error
                table.append((name, of, len(grid), "?", "?", "?", "?", "?"))
                continue
            held = {key: one.held_to(grid[key]) for key, one in records.items() if key in grid}
            stale = {key: record.stale for key, record in {**records, **held}.items() if record.stale}
            orphans = sorted(records.keys() - grid.keys())
            there = len(held.keys() - stale.keys())
            bad = {path.stem for path in [*refused][before:]}
            missing = len(grid.keys() - records.keys() - bad)
            table.append((name, of, len(grid), there, missing, len(stale), len(orphans), len(bad)))
            details += [f"stale: {of}/{name}/{key}: {why}" for key, why in stale.items()]
            details += [f"orphaned (in no grid): {of}/{name}/{key}" for key in orphans]
    counted = ("runs in grid", "published", "missing", "stale", "orphaned", "refused")
    console.print(screens.rows(("experiment", "profile", *counted), table))
    for line in details:
        screens.say(console, line)
    screens.refused(console, refused)
    return 1 if refused else 0

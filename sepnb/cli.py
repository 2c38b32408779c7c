"""The command line: `sepnb run | build | check | bench | data | results | claims | probe | doctor`.

Exit status: 0 success; 1 something failed, differs or is stale; 2 the command could not be carried out.
Imports that load torch are local, so that a command with nothing to do ends at once.
"""

import gc
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sepnb import __version__, paths
from sepnb.companion.book import build as book
from sepnb.companion.check.published import PROFILES
from sepnb.companion.check.regression import RecomputeError
from sepnb.companion.run import names as known
from sepnb.companion.run import options as opt
from sepnb.companion.run import screens
from sepnb.companion.run.chapters import discover
from sepnb.records.store import Store

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=160)  # a log has no width, and folded tables are hard to read
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="What happens when position gets its own dimensions? Run, build and check the book.",
)
RESUMED = "; what had ended is kept, and the same command does the rest"


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"sepnb {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and end.")
    ] = False,
) -> None:
    """What every command shares."""


@app.command(cls=known.listing("experiments", "chapters"))
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Chapters or experiments, `chapters`, `experiments`, or patterns as 'needle*'."),
    ] = None,
    profile: opt.OfProfile = opt.Profile.laptop,
    device: opt.OnDevice = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, such as 0,1,2 (default: those of the grid).")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods, such as rope,alibi (default: all of the grid).")
    ] = None,
    fresh: opt.Fresh = False,
    store: Annotated[Path | None, typer.Option(help="Write records to this folder instead.")] = None,
    jobs: opt.Jobs = None,
    threads: opt.Threads = 1,
    shard: opt.Shard = None,
    cluster: opt.OnCluster = None,
    partition: opt.Partition = None,
    parallel: opt.Parallel = None,
    gpus: opt.Gpus = None,
    minutes: opt.Minutes = None,
) -> None:
    """Run experiments record by record, and execute chapters. Without names: all of both.

    What is already there is skipped; an interrupted run is resumed by the same command. On a cluster, Ctrl-C
    leaves the jobs running, and the same command waits for them again.
    """
    from sepnb.companion.run import tasks

    with _said(RESUMED):
        how = {"partition": partition, "parallel": parallel, "gpus": gpus, "minutes": minutes}
        place, numbers = tasks.cluster(console, cluster, jobs, threads, how), tasks.seeds(seeds)
        part, chosen = tasks.runs.shard_of(shard), None if methods is None else methods.split(",")
        asked = known.sort_out(names or known.GROUPS[: 1 if place else 2])
        chapters = asked.chapters
        if place is not None and chapters:
            raise ValueError(f"--cluster runs experiments; run {chapters[0].name} without it")
        if chapters and not asked.experiments and numbers and len(numbers) > 1:
            raise ValueError(f"a chapter has one seed, --seeds gives {len(numbers)}")
        where = tasks.device(device, profile, place)
        width = jobs or parallel or (4 if where == "cuda" else min(2, os.cpu_count() or 1))
        options = {"device": where, "fresh": fresh, "jobs": width, "threads": threads}
        options["profile"] = profile.value
        good = True
        if experiments := known.load(asked, profile):
            cut = {"seeds": numbers, "methods": chosen, "shard": part, "folder": store}
            good = tasks.run_experiments(console, experiments, cluster=place, **cut, **options)
        if chapters:
            seed = numbers[0] if numbers and len(numbers) == 1 else 0
            good = tasks.run_chapters(console, chapters, seed=seed, **options) and good
    raise typer.Exit(0 if good else 1)


@app.command()
def build(
    profile: opt.OfProfile = opt.Profile.laptop,
    device: opt.OnDevice = None,
    fresh: opt.Fresh = False,
    jobs: opt.Jobs = None,
) -> None:
    """Execute the chapters that changed, then build the HTML book from all of them. Trains nothing."""
    from sepnb.companion.run import tasks

    with _said(RESUMED), book.alone(partial(screens.say, console)):
        began = time.monotonic()
        found = discover()
        if not found:
            raise ValueError(f"{paths.root()} holds no chapters: the book is built in a checkout of it")
        options = {"profile": profile, "device": tasks.device(device, profile), "seed": 0, "threads": 1}
        width = jobs or min(2, os.cpu_count() or 1)
        if not tasks.run_chapters(console, found, fresh=fresh, jobs=width, **options):
            raise book.BuildError("the book is not built while a chapter fails")
        executed = time.monotonic()
        book.stage(found, profile)
        with console.status("Jupyter Book builds the pages"):
            made = book.build(profile, say=partial(screens.say, console), fresh=fresh)
        chapters_took, pages_took = executed - began, time.monotonic() - executed
        parts = f"chapters {screens.duration(chapters_took)}, pages {screens.duration(pages_took)}"
        console.print(parts if made else f"{parts} (nothing changed)")
        screens.say(console, f"The book is at {book.html() / 'index.html'}")


@app.command(cls=known.listing("chapters"))
def check(
    chapters: Annotated[list[str] | None, typer.Argument(help="Chapters to compute; none: all.")] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Replay the start of every published run.")
    ] = False,
    profile: Annotated[
        opt.Profile | None, typer.Option(help="Default: smoke; with --published laptop and gpu.")
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Make the fresh numbers the reference.")] = False,
    reason: Annotated[str, typer.Option(help="Why the reference moves; stored in it.")] = "",
    measure: Annotated[bool, typer.Option("--measure", help="Measure the tolerances anew.")] = False,
    sample: Annotated[
        int | None, typer.Option(min=1, help="With --published: replay only this many.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="With --published --sample N: train N runs again, to the end.")
    ] = False,
    draw: Annotated[str, typer.Option(help="With --whole: another text draws other runs.")] = "",
) -> None:
    """Compute the chapters' numbers afresh and compare with the reference; or replay published records."""
    from sepnb.companion.check import tasks

    with _said():
        if update and not reason.strip():
            raise ValueError("--update needs --reason TEXT: a reference moves for a reason")
        if published and (update or measure):
            raise ValueError("--published goes with neither --update nor --measure")
        if published and chapters:
            raise ValueError(
                f"--published replays records of experiments, not chapters: {' '.join(chapters)}"
            )
        if (whole or draw) and not (whole and published and sample):
            raise ValueError("runs are trained again with --published --whole --sample N, N of them")
        if whole:
            status = tasks.check_whole(console, profile or "laptop", sample, draw)
        elif published:
            status = tasks.check_published(console, [profile] if profile else PROFILES, sample)
        else:
            options = {"update": update, "reason": reason, "measure": measure}
            status = tasks.check_numbers(console, chapters or (), profile or "smoke", **options)
    raise typer.Exit(status)


@app.command()
def bench(
    variants: Annotated[
        list[str] | None,
        typer.Argument(help="`separated`, `strict` (none: both), or `encodings`."),
    ] = None,
    profile: opt.OfProfile = opt.Profile.laptop,
    device: opt.OnDevice = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Timed pairs of each cell (default: the profile's).")
    ] = None,
) -> None:
    """Time separated and strict models against the dense one, or encodings against attention without any.

    Beside each ratio stands that of the multiply-adds.

    Nothing is stored; `sepnb run speed encoding_speed` measures the same and keeps it.
    """
    from sepnb.companion.run import tasks

    with _said():
        options = {"profile": profile, "device": tasks.device(device, profile), "repeats": repeats}
        from sepnb.companion.run import bench as benches

        if variants == ["encodings"]:
            good = benches.bench_encodings(console, **options)
        else:
            good = benches.bench_models(console, variants=variants or (), **options)
    raise typer.Exit(0 if good else 1)


@app.command(cls=known.listing("data sets"))
def data(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets to fetch; none: say what is at hand.")
    ] = None,
) -> None:
    """Say which data sets are at hand, or fetch some from their owners."""
    from sepnb.companion.run import tasks

    with _said():
        tasks.data(console, names or ())


@app.command(cls=known.listing("experiments"))
def results(
    names: opt.OfNames = None,
    profile: Annotated[opt.Profile | None, typer.Option(help="Default: laptop and gpu.")] = None,
) -> None:
    """List per experiment and profile what is published, missing, stale, orphaned and refused.

    A record that cannot be trusted is listed with the reason, the others are counted, the exit status is 1.
    """
    from sepnb.companion.run import tasks

    with _said():
        status = tasks.list_results(console, names, [profile] if profile else PROFILES)
    raise typer.Exit(status)


@app.command()
def claims(
    names: opt.OfNames = None,
    profile: Annotated[
        opt.Profile | None, typer.Option(help="Default: gpu where complete, else laptop.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects.")] = False,
) -> None:
    """Print the ledger: every claim and what our records say of it.

    Claims are judged without the records that cannot be trusted; these are listed, and the exit status is 1.
    """
    refused: dict[Path, Exception] = {}
    with _said():
        collecting = gc.isenabled()
        gc.disable()  # large libraries make many objects when they are imported, and keep them
        try:
            from sepnb import claims as ledger

            kept = known.named(names, [claim.id for claim in ledger.CLAIMS])
            found = [row for row in ledger.evaluate(profile, Store(refused=refused)) if row.claim.id in kept]
            gc.freeze()  # else the first collection would look at all of them
        finally:
            if collecting:
                gc.enable()
        if as_json:
            print(json.dumps([row.as_data() for row in found], indent=1))
        else:
            table = [(row.claim.id, row.verdict.word, row.profile or "", row.verdict.detail) for row in found]
            console.print(screens.rows(("claim", "verdict", "profile", "why"), table))
        screens.refused(Console(stderr=True, highlight=False) if as_json else console, refused)
    raise typer.Exit(1 if refused else 0)


@app.command()
def probe(
    model: Annotated[
        str, typer.Argument(help="Folder or name of a transformers model, or a .safetensors file of sepnb.")
    ],
    text: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="Text that it never saw; .npy: its tokens.")
    ],
    length: Annotated[int, typer.Option(help="Tokens of its training texts.")],
    times: Annotated[str, typer.Option(help="Lengths to judge, in trained lengths.")] = "1,2,4,8",
    reference: Annotated[
        str | None, typer.Option(help="Another model with the same tokens, for quality and price.")
    ] = None,
    extension: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read it with slower waves: yarn, ntk-by-parts, ntk-aware, dynamic-ntk, llama3 or "
            "position-interpolation.",
        ),
    ] = None,
    factor: Annotated[float | None, typer.Option(help="How many trained lengths it is to reach.")] = None,
    adapter: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="An adapter of sepnb, tuned on MODEL.")
    ] = None,
    log_scale: Annotated[
        bool, typer.Option("--log-scale", help="Sharpen attention over many keys; models of sepnb only.")
    ] = False,
    device: opt.OnDevice = None,
    out: Annotated[Path, typer.Option(help="Where the card goes, as HTML and JSON.")] = Path("probe"),
) -> None:
    """Judge any causal language model past its trained length: does it survive, does it use far context?

    A model of transformers needs an extra: pip install '.[run,hf]'.
    """
    with _said():
        from sepnb.companion.run import tasks

        options = {"times": times, "reference": reference, "device": tasks.device(device, "laptop")}
        options |= {"extension": extension, "factor": factor, "adapter": adapter, "log_scale": log_scale}
        from sepnb.companion.run import probe as probes

        probes.probe(console, model, text, length=length, out=out, **options)


@app.command()
def doctor(attack: opt.OfAttacks = False) -> None:
    """Look at everything the commands rely on; exit status 1 if something cannot work."""
    from sepnb.companion.run import doctor as doctors

    with _said():
        good = doctors.attack() if attack else doctors.report(console)
    raise typer.Exit(0 if good else 1)


@contextmanager
def _said(interrupted: str = "") -> Iterator[None]:
    """Turn errors that say what to do into one line and exit status 2; an interruption into 130."""
    try:
        yield
    except KeyboardInterrupt:
        screens.say(console, f"interrupted{interrupted}", "yellow")
        raise typer.Exit(130) from None
    except (book.BuildError, RecomputeError) as error:
        screens.say(console, str(error), "red")
        raise typer.Exit(1) from None
    except (ValueError, OSError) as error:
        screens.say(console, f"error: {error}", "red")
        raise typer.Exit(2) from None


if __name__ == "__main__":
    app()

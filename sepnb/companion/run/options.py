"""The options that commands share, or that make a group: what they take, and what their help says."""

from enum import StrEnum
from typing import Annotated

import typer

Profile = StrEnum("Profile", ["smoke", "laptop", "gpu"])
Where = StrEnum("Where", ["slurm"])

OfProfile = Annotated[
    Profile, typer.Option(help="smoke: seconds, for tests; laptop: 2 CPU cores; gpu: one GPU.")
]
OnDevice = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:N or auto (default: cuda for gpu, else cpu).")
]
OfNames = Annotated[
    list[str] | None, typer.Argument(help="Only those with one of these in their name (default: all).")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do again what is already there.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Processes side by side (default: 2 on a CPU, 4 on each GPU)."),
]
Shard = Annotated[
    str | None, typer.Option(help="Only every n-th run, from the i-th on, as i/n: machines share a grid.")
]
Threads = Annotated[int, typer.Option(min=1, help="Threads that each process may use.")]

OnCluster = Annotated[
    Where | None, typer.Option(help="Submit the runs of experiments as one job array, and wait for it.")
]
Partition = Annotated[str | None, typer.Option(help="With --cluster slurm: where (default: its own).")]
Parallel = Annotated[int | None, typer.Option(min=1, help="With --cluster: tasks at a time (default: 2).")]
Gpus = Annotated[
    int | None, typer.Option(min=0, max=1, help="With --cluster: GPUs of a task (default: none).")
]
Minutes = Annotated[
    int | None,
    typer.Option(min=2, help="With --cluster: after which a task is ended (default: from its size)."),
]
OfAttacks = Annotated[bool, typer.Option("--attack", help="Make every attack on this checkout instead.")]

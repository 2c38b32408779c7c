"""What a person sees in the terminal: bars with an estimate, one screen per failure, summary tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from sepnb.companion.execute import Outcome
from sepnb.companion.runs import Tally
from sepnb.records.store import RecordError

COLOURS = {"ran": "green", "cached": "cyan", "failed": "bold red"}


def duration(seconds: float) -> str:
    """Seconds in words that suit their size."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


class Bars:
    """One bar for the whole and one for each job under way; silent where the output is no terminal."""

    def __init__(self, console: Console, what: str, labels: Sequence[str]) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self.progress = Progress(
            *columns,
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.labels = labels
        self.whole = self.progress.add_task(what, total=len(labels))
        self.tasks: dict[int, int] = {}

    def step(self, index: int, done: int, total: int) -> None:
        """Job `index` has done `done` of `total` steps."""
        if index not in self.tasks:
            self.tasks[index] = self.progress.add_task(f"  {escape(self.labels[index])}", total=total)
        self.progress.update(self.tasks[index], completed=done, total=total)
        self._sum()

    def end(self, index: int) -> None:
        """Job `index` has ended."""
        if index in self.tasks:
            self.progress.update(self.tasks[index], completed=self._task(index).total, visible=False)
        else:
            self.tasks[index] = self.progress.add_task("", total=1, completed=1, visible=False)
        self._sum()

    def _task(self, index: int):
        return next(task for task in self.progress.tasks if task.id == self.tasks[index])

    def _sum(self) -> None:
        shares = [
            (task.completed / task.total)
            for task in self.progress.tasks
            if task.id != self.whole and task.total
        ]
        self.progress.update(self.whole, completed=round(sum(shares), 2))


@contextmanager
def bars(console: Console, what: str, labels: Sequence[str]) -> Iterator[Bars]:
    """Progress bars for jobs with these labels, in the order of their indices."""
    made = Bars(console, what, labels)
    with made.progress:
        yield made


def failure(outcome: Outcome, kept: str | None) -> Panel:
    """The screen for a chapter that failed: where, what, the line, the last frames, what was kept."""
    assert outcome.failure is not None
    told = outcome.failure
    lines = [Text(f"{told.place}, {told.cell}"), Text(told.error, style="bold red")]
    if told.line:
        lines.append(Text(f"    {told.line}", style="bold"))
    if told.trace:
        lines += [Text(""), Text(told.trace)]
    if kept:
        lines += [Text(""), Text(f"partly executed notebook: {kept}")]
    return Panel(Group(*lines), title=escape(outcome.chapter), title_align="left", border_style="red")


def outcomes(results: Iterable[Outcome]) -> Table:
    """How the chapters fared."""
    table = _table("chapter", "status", "time", "why it ran")
    for one in results:
        status = Text(one.status, style=COLOURS[one.status])
        table.add_row(one.chapter, status, duration(one.seconds) if one.seconds else "", one.why)
    return table


def tallies(results: Iterable[Tally]) -> Table:
    """How the grids fared."""
    table = _table("experiment", "there before", "ran", "failed", "left", "time in runs")
    for one in results:
        failed = Text(str(len(one.failed)), style="bold red" if one.failed else "")
        row = (one.experiment, str(one.skipped), str(one.ran), failed, str(one.left), duration(one.seconds))
        table.add_row(*row)
    return table


def refused(console: Console, records: Mapping[Path, RecordError]) -> None:
    """The records that were left out, one line each with path, reason and remedy."""
    for error in dict.fromkeys(map(str, records.values())):
        console.print(f"refused: {error}", markup=False, soft_wrap=True, style="red")


def rows(header: Sequence[str], content: Iterable[Sequence[object]]) -> Table:
    """A plain table of anything."""
    table = _table(*header)
    for row in content:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table


def _table(*header: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(header):
        table.add_column(name, overflow="fold", no_wrap=index == 0)
    return table

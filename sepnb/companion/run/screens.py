"""What a person sees in the terminal: bars with an estimate, one screen per failure, summary tables."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.progress import MofNCompleteColumn, Progress, TaskID, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from sepnb.companion.run.execute import Outcome
from sepnb.companion.run.runs import Tally
from sepnb.records.store import RecordError

COLOURS = {"ran": "green", "cached": "cyan", "failed": "bold red"}


def say(console: Console, line: str, style: str | None = None) -> None:
    """A line as it stands: brackets are no markup, and nothing is folded."""
    console.print(line, markup=False, soft_wrap=True, style=style)


def duration(seconds: float) -> str:
    """Seconds in words that suit their size."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


class Bars(Progress):
    """One bar for the whole and one for each job under way; silent where the output is no terminal.

    Args:
        labels: of the jobs, in the order of their indices.
    """

    def __init__(self, console: Console, what: str, labels: Sequence[str]) -> None:
        columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self.labels = labels
        self.whole = self.add_task(what, total=len(labels))
        self.under_way: dict[int, TaskID] = {}
        self.shares: dict[int, float] = {}

    def step(self, index: int, done: int, total: int) -> None:
        """Job `index` has done `done` of `total` steps."""
        if index not in self.under_way:
            self.under_way[index] = self.add_task(f"  {escape(self.labels[index])}", total=total)
        self.update(self.under_way[index], completed=done, total=total)
        self.shares[index] = done / total
        self.update(self.whole, completed=round(sum(self.shares.values()), 2))

    def end(self, index: int) -> None:
        """Job `index` has ended."""
        self.step(index, 1, 1)
        self.update(self.under_way[index], visible=False)


def failure(outcome: Outcome, kept: str | None) -> Panel:
    """The screen for a chapter that failed: where, what, the line, the last frames, what was kept."""
    assert outcome.failure is not None
    failure = outcome.failure
    lines = [Text(f"{failure.place}, {failure.cell}"), Text(failure.error, style="bold red")]
    if failure.line:
        lines.append(Text(f"    {failure.line}", style="bold"))
    if failure.trace:
        lines += [Text(""), Text(failure.trace)]
    if kept:
        lines += [Text(""), Text(f"partly executed notebook: {kept}")]
    return Panel(Group(*lines), title=escape(outcome.chapter), title_align="left", border_style="red")


def outcomes(results: Iterable[Outcome]) -> Table:
    """How the chapters fared."""
    content = []
    for one in results:
        status = Text(one.status, style=COLOURS[one.status])
        content.append((one.chapter, status, duration(one.seconds) if one.seconds else "", one.why))
    return rows(("chapter", "status", "time", "why it ran"), content)


def tallies(results: Iterable[Tally]) -> Table:
    """How the grids fared."""
    content = []
    for one in results:
        failed = Text(str(len(one.failed)), style="bold red" if one.failed else "")
        content.append((one.experiment, one.skipped, one.ran, failed, one.left, duration(one.seconds)))
    return rows(("experiment", "there before", "ran", "failed", "left", "time in runs"), content)


def refused(console: Console, records: Mapping[Path, RecordError]) -> None:
    """The records that were left out, one line each with path, reason and remedy."""
    for error in dict.fromkeys(map(str, records.values())):
        say(console, f"refused: {error}", "red")


def rows(header: Sequence[str], content: Iterable[Sequence[object]]) -> Table:
    """A plain table of anything."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(header):
        table.add_column(name, overflow="fold", no_wrap=index == 0)
    for row in content:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return table

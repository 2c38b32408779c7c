"""Where a record contradicts itself, its experiment or the history: facts that are stored twice are compared.

Whoever writes a number into a record and signs it again has to find all places that imply it. Exceptions by
design are left out: a run of context extensions also sees the texts of its tunings, a run on images counts
pixels, and tasks that are drawn see no bytes of a text.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from statistics import median

from sepnb.records.store import Record

ROUNDED = 1e-5
"""Rows of tasks are rounded to five digits."""


def of(record: Record, data: Mapping[str, str], commits: Collection[str] | None) -> str | None:
    """The first contradiction in words, None where there is none. `data` are the registered digests of what
    its experiment reads, `commits` is the history, None if it is not known."""
    try:
        facts = [*_provenance(record, data, commits), *_settings(record), *_rows(record)]
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        form = "its rows or settings have another form than a run gives them"
        return f"{form} ({type(error).__name__}: {error})"
    apart = [f"{what} is {got!r}, and {source} {due!r}" for what, got, source, due in facts if got != due]
    return apart[0] if apart else None


def _provenance(record: Record, data: Mapping[str, str], commits: Collection[str] | None) -> Iterator[tuple]:
    yield "the digest of its data", record.provenance.get("data", {}), "registered is", data
    if commits is not None and (commit := record.provenance["commit"]) not in commits:
        yield "its commit", commit, "the history has", None


def _settings(record: Record) -> Iterator[tuple]:
    config, metrics, seen = record.config, record.metrics, record.provenance.get("bytes_seen")
    training = config.get("training")
    if not isinstance(training, dict):
        return
    for name in ("learning_rate", "steps"):
        if name in metrics:
            yield name, metrics[name], "its config says", training[name]
    if ("text" in config or seen) and not config.keys() & {"images", "tunings"}:
        due = training["steps"] * training["batch_size"] * training["length"]
        yield "bytes_seen", seen, "steps x batch x length are", due


def _rows(record: Record) -> Iterator[tuple]:
    metrics, kinds = record.metrics, defaultdict(list)
    for row in record.rows:
        kinds[row.get("kind")].append(row)
    if documents := kinds["document"]:
        read = sum(row["bytes"] for row in documents)
        yield "test_bytes", metrics["test_bytes"], "its documents have", read
        yield _near("bits_per_byte", metrics, sum(row["bits"] for row in documents) / read, 1e-9)
    if (learning := kinds["learning"]) and "val_accuracy" in metrics:
        yield "val_accuracy", metrics["val_accuracy"], "its last row says", learning[-1]["accuracy"]
    answers = defaultdict(list)
    for row in kinds["distance"]:
        if "reader" in row:
            answers[f"accuracy/{row['reader']}/{row['times']}x"].append(row)
    for name, rows in answers.items():
        if name in metrics:
            mean = sum(row["accuracy"] * row["n"] for row in rows) / sum(row["n"] for row in rows)
            yield _near(name, metrics, mean, ROUNDED)
    for row in (row for row in kinds["moved"] if "move" in row):  # not attention that a term moves
        yield f"moved-{row['move']}", metrics[f"moved-{row['move']}"], "its row says", row["accuracy"]
    for row in kinds["view"]:
        name = f"{row['change']}-{row['grid']}/{row['rule']}"
        yield name, metrics[name], "its row says", row["accuracy"]
    if pairs := kinds["pair"]:
        yield _near("ratio", metrics, median(row["ratio"] for row in pairs), 1e-12)


def _near(name: str, metrics: dict[str, float], due: float, within: float) -> tuple:
    """A metric that its rows give up to rounding: the metric itself where it is near enough."""
    got = metrics[name]
    return name, got, "its rows give", got if math.isclose(got, due, rel_tol=within, abs_tol=within) else due

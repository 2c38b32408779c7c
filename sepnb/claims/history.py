"""When a rule last changed, and whether that was before the records it judges: what git knows, or None."""

import inspect
import json
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from sepnb import paths
from sepnb.claims.verdict import Claim
from sepnb.records.store import write_atomically


@lru_cache(maxsize=1024)
def _git(root: Path, *arguments: str) -> str | None:
    """Output of a git command in the checkout; None if there is no git, no checkout, or the command fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def forget() -> None:
    """Ask git again: answers are kept for the life of the process."""
    _git.cache_clear()


def rule_commits(claims: Iterable[Claim]) -> dict[str, str | None]:
    """`rule_commit` of each claim, by its id; git's answers are kept in the build folder until HEAD moves."""
    head, memory = _git(paths.root(), "rev-parse", "HEAD"), paths.build() / "rule_commits.json"
    try:
        kept = json.loads(memory.read_text(encoding="utf-8"))
        before = kept["commits"] if kept["head"] == head else {}
    except (OSError, ValueError, LookupError, TypeError):
        before = {}
    found, now = {}, {}
    for claim in claims:
        spans = _spans(claim)
        key = " ".join(spans or ())
        found[claim.id] = spans and (before.get(key) or _last_commit(spans))
        if found[claim.id]:
            now[key] = found[claim.id]
    if head and now != before:
        write_atomically(memory, json.dumps({"head": head, "commits": now}, indent=1) + "\n")
    return found


def rule_commit(claim: Claim) -> str | None:
    """The commit that last touched the claim's rule or a function it stands on.

    None if git cannot tell: outside a checkout, in a shallow one, or while a file of the rule has changes
    that are not committed.
    """
    spans = _spans(claim)
    return spans and _last_commit(spans)


def _spans(claim: Claim) -> tuple[str, ...] | None:
    """Where the rule and what it stands on are written, as `git log` wants it; None if git cannot tell."""
    root = paths.root()
    functions = (claim.rule, *claim.stands_on)
    names = [_name(root, inspect.getsourcefile(function)) for function in functions]
    if None in names or _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    changed = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *_folders(names))
    if changed is None or {line.split(" ")[-1] for line in changed.split("\n")} & set(names):
        return None
    # ^ searches each function from the top of its file, not from where the last one was found
    return tuple(f"-L^:def {f.__name__}(:{name}" for f, name in zip(functions, names, strict=True))


@lru_cache(maxsize=1024)
def _name(root: Path, file: str) -> str | None:
    """A file as git calls it; None where the package is installed elsewhere than in the checkout."""
    try:
        return Path(file).resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return None


def _folders(names: Iterable[str | None]) -> list[str]:
    return sorted({Path(name or "").parent.as_posix() for name in names})


def _last_commit(spans: tuple[str, ...]) -> str | None:
    return _git(paths.root(), "log", *spans, "-s", "-1", "--format=%H") or None


def precedes(rule: str | None, records: Iterable[str]) -> bool | None:
    """Whether the rule's commit is, or is an ancestor of, every record's commit; None if git cannot tell."""
    commits = set(records)
    if rule is None or not commits:
        return None
    root = paths.root()
    if any(_git(root, "cat-file", "-t", commit) != "commit" for commit in commits):
        return None
    return all(_git(root, "merge-base", "--is-ancestor", rule, commit) is not None for commit in commits)

"""When a rule last changed, and whether that was before the records it judges: what git knows, or None."""

import inspect
import subprocess
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from sepnb import paths
from sepnb.claims.verdict import Claim


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


def rule_commit(claim: Claim) -> str | None:
    """The commit that last touched the claim's rule or a function it stands on.

    None if git cannot tell: outside a checkout, in a shallow one, or while a file of the rule has changes
    that are not committed.
    """
    root = paths.root()
    functions = (claim.rule, *claim.stands_on)
    try:
        files = [Path(inspect.getsourcefile(function)).resolve() for function in functions]
        names = [file.relative_to(root.resolve()).as_posix() for file in files]
    except ValueError:  # the package is installed elsewhere than in the checkout
        return None
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    if _git(root, "status", "--porcelain", "--", *sorted(set(names))) != "":
        return None
    # ^ searches each function from the top of its file, not from where the last one was found
    spans = [f"-L^:def {function.__name__}(:{name}" for function, name in zip(functions, names, strict=True)]
    return _git(root, "log", *spans, "-s", "-1", "--format=%H") or None


def precedes(rule: str | None, records: Iterable[str]) -> bool | None:
    """Whether the rule's commit is, or is an ancestor of, every record's commit; None if git cannot tell."""
    commits = set(records)
    if rule is None or not commits:
        return None
    root = paths.root()
    if any(_git(root, "cat-file", "-t", commit) != "commit" for commit in commits):
        return None
    return all(_git(root, "merge-base", "--is-ancestor", rule, commit) is not None for commit in commits)

"""When a rule was made, and whether that was before the records that it judges.

`pinned.json` holds, for every claim, the digests that its declaration had (`Claim.digest`), each with the
commit that first had it, null for the commit that wrote the entry, and the reason for the change. An entry
with `was`, the verdict until then, repeats a digest: the word turned, by this change of the rule or by one of
the judge or of the records.
"""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sepnb import paths
from sepnb.claims.claim import Claim

PINNED = Path(__file__).with_name("pinned.json")


@dataclass(frozen=True)
class Pin:
    """One entry of `pinned.json`."""

    digest: str
    commit: str | None
    reason: str
    was: str | None = None


def pins() -> dict[str, list[Pin]]:
    """Every state of every rule, by the id of its claim, the oldest first."""
    entries = json.loads(PINNED.read_text(encoding="utf-8"))
    return {claim: [Pin(**entry) for entry in states] for claim, states in entries.items()}


class History:
    """What git knows of the commits of rules and records; without a whole checkout it knows nothing."""

    def __init__(self) -> None:
        self.pins = pins()
        self.ancestors = _ancestors(paths.root())

    def rule_commit(self, claim: Claim) -> str | None:
        """The commit that first had the claim's rule as it is now; None if it is not pinned or git cannot
        tell."""
        states = [pin for pin in self.pins.get(claim.id, []) if pin.was is None]
        if not states or states[-1].digest != claim.digest:
            return None
        commit = states[-1].commit or _entries(paths.root()).get((claim.id, claim.digest))
        return commit if commit in self.ancestors else None

    def turned(self, claim: Claim) -> Pin | None:
        """How the verdict last turned; None if it did not."""
        turns = [pin for pin in self.pins.get(claim.id, []) if pin.was is not None]
        return turns[-1] if turns else None

    def precedes(self, rule: str | None, records: Iterable[str]) -> bool | None:
        """Whether the rule's commit is, or is an ancestor of, every record's commit; None if git cannot
        tell."""
        commits = set(records)
        if rule is None or not commits or not {rule, *commits} <= self.ancestors.keys():
            return None
        number, _ = self.ancestors[rule]
        return all(self.ancestors[commit][1] >> number & 1 for commit in commits)

    def unseen(self, rule: str | None, records: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
        """Of methods and the commits of their records, those all of whose records came after the rule."""
        return tuple(sorted(name for name, made in records.items() if self.precedes(rule, made)))


def _git(root: Path, *arguments: str) -> str:
    """Output of a git command in the checkout; nothing if there is no git, no checkout, or the command
    fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@lru_cache(maxsize=4)
def _ancestors(root: Path) -> dict[str, tuple[int, int]]:
    """Each commit of the history: its number, and the set of the numbers of it and its ancestors, as bits."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return {}
    found: dict[str, tuple[int, int]] = {}
    for line in _git(root, "rev-list", "--topo-order", "--reverse", "--parents", "HEAD").splitlines():
        commit, *parents = line.split()
        known = 1 << len(found)
        for parent in parents:
            known |= found[parent][1]
        found[commit] = (len(found), known)
    return found


@lru_cache(maxsize=4)
def _entries(root: Path) -> dict[tuple[str, str], str]:
    """The first commit that wrote a digest for a claim into `pinned.json`, by both."""
    try:
        name = PINNED.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:  # the package is installed elsewhere than in the checkout
        return {}
    found, commit = {}, ""
    for line in _git(root, "log", "--reverse", "--format=commit %H", "-p", "-U0", "--", name).splitlines():
        if line.startswith("commit "):
            commit = line.removeprefix("commit ")
        for claim, states in re.findall(r'^\+\s*"([^"]+)": (\[.*\]),?$', line):
            for digest in re.findall(r'"digest": "(\w+)"', states):
                found.setdefault((claim, digest), commit)
    return found


def forget() -> None:
    """Ask git again: answers are kept for the life of the process."""
    for one in (_ancestors, _entries):
        one.cache_clear()

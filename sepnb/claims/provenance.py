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
from functools import cached_property
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
        self.ancestors = _ancestors()

    def rule_commit(self, claim: Claim) -> str | None:
        """The commit that first had the claim's rule as it is now; None if it is not pinned or git cannot
        tell."""
        states = [pin for pin in self.pins.get(claim.id, []) if pin.was is None]
        if not states or states[-1].digest != claim.digest:
            return None
        commit = states[-1].commit or self._entries.get((claim.id, claim.digest))
        return commit if commit in self.ancestors else None

    def turned(self, claim: Claim) -> Pin | None:
        """How the verdict last turned; None if it did not."""
        return next((pin for pin in reversed(self.pins.get(claim.id, [])) if pin.was is not None), None)

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

    @cached_property
    def _entries(self) -> dict[tuple[str, str], str]:
        """The first commit that wrote a digest for a claim into `pinned.json`, by both."""
        found, commit = {}, ""
        for line in _git("log", "--reverse", "--format=commit %H", "-p", "-U0", "--", str(PINNED.resolve())):
            if line.startswith("commit "):
                commit = line.removeprefix("commit ")
            for claim, states in re.findall(r'^\+\s*"([^"]+)": (\[.*\]),?$', line):
                for digest in re.findall(r'"digest": "(\w+)"', states):
                    found.setdefault((claim, digest), commit)
        return found


def _git(*arguments: str) -> list[str]:
    """The lines that a git command says in the checkout; none if there is no git, no checkout, or the command
    fails, as where the package is installed elsewhere than in the checkout."""
    command = ["git", "-C", str(paths.root().resolve()), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines()


def _ancestors() -> dict[str, tuple[int, int]]:
    """Each commit of the history: its number, and the set of the numbers of it and its ancestors, as bits."""
    if _git("rev-parse", "--is-shallow-repository") != ["false"]:
        return {}
    found: dict[str, tuple[int, int]] = {}
    for line in _git("rev-list", "--topo-order", "--reverse", "--parents", "HEAD"):
        commit, *parents = line.split()
        known = 1 << len(found)
        for parent in parents:
            known |= found[parent][1]
        found[commit] = (len(found), known)
    return found

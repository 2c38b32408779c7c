"""A claim: a statement, and the rule that decides it, as data."""

import ast
import functools
import hashlib
import inspect
import json
import re
import textwrap
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import pandas as pd

from sepnb.claims import budget
from sepnb.claims.asks import Ask, Floor, Unless
from sepnb.claims.evidence import by_seeds, methods_of
from sepnb.claims.verdict import Tables, Verdict

OURS = "ours, written before the records"


@dataclass(frozen=True)
class Claim:
    """A statement that our records can judge.

    Args:
        title: the statement in plain words; what a source says stands in `book/source_map.yml`.
        asks: the comparisons that must all lie inside their bounds.
        rule: what decides, in the reader's words; by default derived from asks and conditions, see
            `sepnb.claims.rule`.
        remark: what a derived rule does not say.
        source: public short name of the document that makes the statement.
        experiment: whose runs or numbers are judged, `experiment/<name>` or `chapter/<name>`.
        beside: methods that are borrowed from other experiments, which were there before, by experiment.
        metric: the column that an ask without a column means.
        higher_is_better: on which side of a floor a method must be.
        floors: what a method must clear, or comparisons with it are dropped.
        unless: conditions without which the claim is not testable.
        turns: pairs of methods whose order the claim is about, if the experiment `budget` trained both.
        parts: some asks that hold and some that fail make *partly*.
        derive: computes further columns from the table of the experiment.
        how: `by_seeds`, another judge of `evidence` or `uses`, or a function of its own if asks cannot say
            the rule.
        id: short kebab-case name, which the ledger gives.

    Raises:
        ValueError: an experiment of another form, no title, or no asks.
    """

    title: str
    asks: Sequence[Ask]
    _: KW_ONLY
    experiment: str
    rule: str = ""
    remark: str = ""
    source: str = OURS
    beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    metric: str = "bits_per_byte"
    higher_is_better: bool = False
    floors: tuple[Floor, ...] = ()
    unless: Unless | Sequence[Unless] = ()
    turns: tuple[tuple[str, str], ...] = ()
    parts: bool = False
    derive: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    how: Callable[["Claim", Tables], Verdict] = by_seeds
    id: str = ""

    def __post_init__(self):
        object.__setattr__(self, "asks", tuple(self.asks))
        one = isinstance(self.unless, Unless)
        object.__setattr__(self, "unless", (self.unless,) if one else tuple(self.unless))
        if not self.title or not self.asks:
            raise ValueError(f"claim {self.title!r} has no {'asks' if self.title else 'title'}; give it some")
        for need in self.needs:
            if not re.fullmatch(r"(experiment|chapter)/\w+", need):
                form = "experiment/<name> or chapter/<name>"
                raise ValueError(f"claim {self.title!r} needs {need!r}; write {form}")

    @property
    def needs(self) -> tuple[str, ...]:
        """What it is judged by: its experiment, then those that lend methods, and `budget` where that trained
        the same pairs."""
        return (self.experiment, *self.beside, *([budget.TABLE] if self.turns else []))

    def judge(self, tables: Tables) -> Verdict:
        """What these tables say, by the names of `needs`.

        More training that turns the order of two methods overrides what a short one decided: the claim then
        holds at some budgets, which is *partly*. A hypothesis of ours is held or refuted, not reproduced."""
        verdict = self.how(self, tables)
        if self.turns:
            verdict = budget.overridden(verdict, self.turns, tables.get(budget.TABLE))
        return verdict.of_ours() if self.is_ours else verdict

    @property
    def is_ours(self) -> bool:
        """Whether it is a hypothesis of ours, and not a statement of a source."""
        return self.source.startswith("ours")

    def table(self, tables: Tables) -> pd.DataFrame | None:
        """The runs of its experiment, with the columns made of others, and the borrowed methods."""
        found = []
        for name in (self.experiment, *self.beside):
            runs = tables.get(name)
            if runs is None or runs.empty:
                continue
            if name in self.beside:
                runs = runs[runs["method"].isin(self.beside[name])]
            elif self.derive and not (runs["status"] == "not run").all():
                made = self.derive(runs)
                runs = pd.concat([runs.drop(columns=made.columns, errors="ignore"), made], axis=1)
            found.append(runs)
        return found[0] if len(found) == 1 else pd.concat(found, ignore_index=True) if found else None

    @property
    def methods(self) -> set[str]:
        """Those that its asks and conditions name."""
        return set(methods_of([*self.asks, *(ask for one in self.unless for ask in one.asks)]))

    @functools.cached_property
    def digest(self) -> str:
        """Of all that decides: asks, bounds, floors, conditions, experiments, and the code of functions of
        its own."""
        said = {
            "asks": [tuple(map(str, ask)) for ask in self.asks],
            "experiments": [self.experiment],
            "beside": {name: sorted(methods) for name, methods in self.beside.items()},
            "metric": [self.metric, self.higher_is_better],
            "floors": [
                [*map(str, floor[:4]), *(name for name in ("seeds", "one_sided") if getattr(floor, name))]
                for floor in self.floors
            ],
            "unless": [
                [[tuple(map(str, ask)) for ask in one.asks], one.any, one.ratio, False]  # as pinned
                + ([] if one.of is None else [tuple(map(str, one.of))])
                for one in self.unless
            ],
            "parts": self.parts,
            "turns": self.turns,
            "how": code(self.how),
            "derive": code(self.derive),
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


CORE = (
    "sepnb.claims.asks",
    "sepnb.claims.claim",
    "sepnb.claims.evidence",
    "sepnb.claims.uses",
    "sepnb.claims.verdict",
)
"""What all claims share; its functions are named in a digest and not followed."""


def code(function: Callable | None) -> str:
    """The source of a function, without comments and docstrings, and of what it calls in the modules of
    claims."""
    function = inspect.unwrap(function) if function else None
    if not isinstance(function, types.FunctionType) or function.__module__ in CORE:
        return str(getattr(function, "__qualname__", function))
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    parts = [ast.unparse(tree).replace('"', "'")]
    for name in sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}):
        value = function.__globals__.get(name)
        if isinstance(value, types.FunctionType) and value.__module__.startswith("sepnb.claims"):
            parts.append(code(value))
        elif isinstance(value, str | int | float | tuple):
            parts.append(f"{name} = {value!r}")
    return "\n".join(parts)

"""The role `{num}`, which pastes a number into prose with a link to where it was computed (`quoted`).

    chapter/key:format                            01_order/loss:.3f
    experiment/method/metric:format               in_window/rope/bits_per_byte:.3f
    experiment/a minus b/metric:format            in_window/rope minus none/bits_per_byte:+.3f
    experiment/a/metric minus other:format        recipes/rope/native-at-1m minus native/1x:+.3f
    experiment/a minus b/metric minus other:format, a metric of a minus another of b

The first is a number that a chapter published at the profile of the build. The others are means over seeds
of records: a metric is a column of the experiment's table; it may hold slashes, as a method may. A `±` at the
end of the format adds half the 95 % interval. Where no run is there, the text is "not run". Without a format
a float is written by `g`.
"""

import hashlib
import re
from dataclasses import dataclass

import pandas as pd
from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole

from sepnb.companion.book import once, translated
from sepnb.companion.run.chapters import nearest
from sepnb.companion.run.runs import store_for
from sepnb.records import numbers
from sepnb.records.run_table import text_of

logger = logging.getLogger(__name__)

PAGE = "book/numbers"
"""The page with every quoted number of records."""
OF_CHAPTER = re.compile(r"(?P<chapter>\d[\w-]*)/(?P<key>\w+)(?::(?P<form>.+))?")
OF_RECORDS = re.compile(r"(?P<experiment>[a-z]\w*)/(?P<asked>[^/:]+/[^:]+)(?::(?P<form>.+))?")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class NumberRole(SphinxRole):
    """What cannot be shown is printed as `??` with one located warning (`sepnb.num`), so `-W` fails."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        profile, source = self.config.sepnb_profile, self.text.partition("/")[0]
        recorded = OF_RECORDS.fullmatch(self.text.strip())
        try:
            store = store_for(profile)
            for path in store.files(profile, source) if recorded else [numbers.path(source, profile)]:
                self.env.note_dependency(str(path))
            text = translated.said(number(self.text, profile), self.env)
            text = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
        except ValueError as problem:
            logger.warning("%s", problem, location=self.get_location(), type="sepnb", subtype="num")
            return [nodes.inline(self.rawtext, "??", classes=["sepnb-missing"])], []
        home = PAGE if recorded else f"notebooks/executed/{source}"
        if not translated.known(home, self.env):
            return [nodes.inline(self.rawtext, text, classes=["sepnb-num"])], []
        target = {"refdomain": "", "reftype": "number", "reftarget": home}
        target |= {"refdoc": self.env.docname, "anchor": anchor(self.text.strip())}
        link = addnodes.pending_xref("", nodes.inline("", text), **target)
        return [nodes.inline("", "", link, classes=["sepnb-num"])], []


def anchor(name: str) -> str:
    """The id of the place that explains a number: a row of `PAGE`, the same for every format, or a cell."""
    if found := OF_CHAPTER.fullmatch(name):
        return f"made-{found['key'].replace('_', '-')}"
    return f"n-{hashlib.sha256(name.partition(':')[0].encode()).hexdigest()[:10]}"


def number(text: str, profile: str) -> str:
    """The formatted number that `text` means, at the profile of the book.

    Raises:
        ValueError: no name of a number; an experiment, a chapter, a key, a method or a metric that is not
            there, with what is; a format that the value does not take.
    """
    if parts := OF_CHAPTER.fullmatch(text.strip()):
        chapter, key = parts["chapter"], parts["key"]
        have = numbers.load(chapter, profile)
        if key not in have:
            raise ValueError(f"{chapter} published no {key!r} at {profile}; {nearest(key, have)}")
        value = have[key]
        form = parts["form"] or ("g" if isinstance(value, float) else "")
        shown = value if value == numbers.NOT_RUN else _formatted(text, value, form)
        return shown if isinstance(value, str) else typeset(shown)
    if parts := OF_RECORDS.fullmatch(text.strip()):
        form = parts["form"] or "g"
        _formatted(text, 0.5, form.removesuffix("±"))  # also where nothing has run
        values = asked_of(f"{parts['experiment']}/{parts['asked']}", profile).values
        if not len(values):
            return numbers.NOT_RUN
        if form.endswith("±"):
            return text_of(values, form.removesuffix("±"))
        return typeset(format(float(values.mean()), form))
    raise ValueError(
        f"{text!r} is not a number's name: write chapter/key:format or experiment/method/metric:format"
    )


def _formatted(text: str, value: numbers.Number, form: str) -> str:
    try:
        return format(value, form)
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{text!r}: {value!r} does not take the format {form!r} ({problem})") from None


def typeset(shown: str) -> str:
    """A formatted number as print has it: a real minus sign, and powers of ten instead of `e-15`."""

    def power(found: re.Match) -> str:
        sign = "\N{SUPERSCRIPT MINUS}" if found[1] == "-" else ""
        return "\N{MULTIPLICATION SIGN}10" + sign + found[2].translate(_RAISED)

    shown = re.sub(r"e([+-])0*(\d+)", power, shown)
    return "\N{MINUS SIGN}" + shown[1:] if shown.startswith("-") else shown


@dataclass(frozen=True)
class Asked:
    """What a number of records is computed from: `metric` of `method`, less `other` of `beside` where they
    are not empty, and the value of each seed."""

    method: str
    metric: str
    beside: str
    other: str
    values: pd.Series


def asked_of(name: str, profile: str) -> Asked:
    """Resolve `experiment/method/metric`, without a format; `values` is empty where these runs are missing.

    A column that no run has counts as not run while the method has no runs, here or published. Once it has
    some, the columns of these tables are all that exist, and any other column is an error.

    Raises:
        ValueError: an experiment, a method or a metric that is not there, with what is.
    """
    experiment, _, asked = name.partition("/")
    tables = [once.runs(experiment, of) for of in dict.fromkeys((profile, "laptop"))]
    known = {method for one in tables for method in one.frame["method"]}
    method = "|".join(map(re.escape, sorted(known, reverse=True)))  # the longer first of two that begin alike
    parts = re.fullmatch(rf"(?P<a>{method})(?: minus (?P<b>{method}))?/(?P<metric>.+)", asked)
    if parts is None:
        said = asked.partition("/")[0].split(" minus ")
        unknown = next((one for one in said if one not in known), asked)
        raise ValueError(f"{experiment} has no method {unknown!r}; {nearest(unknown, known)}")
    first, (metric, _, other) = parts["a"], parts["metric"].partition(" minus ")
    columns = {column for one in tables for column in one.frame}
    ran = any((one.made["method"] == first).any() for one in tables)
    for column in (metric, other or metric):
        if ran and column not in columns:
            raise ValueError(f"{experiment} has no column {column!r}; {nearest(column, columns)}")
    values = tables[0].values(first, metric)
    if not (parts["b"] or other):
        return Asked(first, metric, "", "", values)
    beside, other = parts["b"] or first, other or metric
    return Asked(first, metric, beside, other, (values - tables[0].values(beside, other)).dropna())

"""What a change of the code must keep: the name of every published record, and the verdict of every claim.

`records.txt` names the published records, `<profile>/<experiment>/<key>`, and `ledger.json` holds of
every claim its verdict, a digest of its rule and the commit that first had that rule. What has changed since
then stands in the three tables below, with the reason.
"""

import hashlib
import json
import re
from pathlib import Path

import pytest

from sepnb import claims, experiments, paths
from sepnb.companion.check import published
from sepnb.companion.evidence import headlines, ledger_page
from sepnb.records.store import Record, Store

from ..book import prose
from ..shared import withdrawn

HERE = Path(__file__).parent
NAMES = (HERE / "records.txt").read_text(encoding="utf-8").split()
LEDGER = json.loads((HERE / "ledger.json").read_text(encoding="utf-8"))

RENAMED = "separated-sinusoidal-wide was two models: this one has 38 + 114 columns, the other 40 + 120"

_OLD, _NEW = "separated-sinusoidal-wide-lr0.004-seed", "separated-sinusoidal-38-114-lr0.004-seed"
MOVED: dict[str, tuple[str | None, str]] = {
    f"laptop/{experiment}/{_OLD}{old}": (f"laptop/{experiment}/{_NEW}{new}", RENAMED)
    for experiment, old, new in (
        ("recipes", "1-aa8cd487", "1-860ee1df"),
        ("recipes", "2-725814bd", "2-014c662b"),
        ("recipes", "3-3c45e940", "3-9f20ced1"),
        ("recipes", "4-3a00ab41", "4-82fc6280"),
        ("recipes", "5-04d5fe5c", "5-bd696032"),
        ("recipes", "6-a7f97627", "6-cdef52f7"),
        ("recipe_screen", "0-969e83f8", "0-ffdd252a"),
    )
}
"""Name of a record: its name of today, None if it was withdrawn, and why."""

WITHDRAWN = {
    "scale and rate of a learned table are now chosen together; dense, it had been all but silent": (
        r"laptop/(in_window|extrapolation)/(learned|separated-learned-wide)-lr"
        r"|laptop/(inside|encodings|extrapolation_wikitext)/learned-(per-layer-|query-key-)?lr"
        r"|laptop/(lr_screen|encoding_screen)/.*learned-"
    ),
    "models with position gaps got a learning rate of their own, and one that adds a sinusoid a scale": (
        r"laptop/recipes/(rope-gaps|dense-phase-gaps(-other)?)-lr0\.004"
        r"|laptop/recipes/sinusoidal-torus-phase-long-gaps-lr0\.008"
    ),
    "rates and scales of the smallest models of texts are now swept over the whole schedule": (
        r"laptop/ablation_screen/"
        r"|laptop/ablation/(sinusoidal|learned|separated-learned)(-reinjected|-constant)?-lr0\.008"
        r"|laptop/ablation/separated-sinusoidal-pos-half-lr0\.008"
    ),
    "the best rate stood at an end of those tried, and one beyond is better": (
        r"laptop/encodings/(t5-lr0\.008|seqpe-input-lr0\.002)"
    ),
    "where the embeddings of SeqPE lie is asked no more: the finding of chapter 18 does not rest on it": (
        r"laptop/seqpe_stream_geometry/"
    ),
    "Toeplitz distillation was removed: no page argued from its models, and none of them survived": (
        r"laptop/(recipes|recipe_screen)/untied-(constant-)?clamp-"
    ),
    "the experiment in cubes asked on three axes what the one on images asks on two, and left the book": (
        r"laptop/volume"
    ),
}
"""Why records were withdrawn, and of which names."""
MOVED |= {name: (None, why) for why, told in WITHDRAWN.items() for name in NAMES if re.match(told, name)}

_GRID = {run.key for run in experiments.get("budget").grid("laptop")}
MOVED |= {
    name: (None, "each budget has rates by a sweep of its own")
    for name in NAMES
    if name.startswith("laptop/budget/") and name.rpartition("/")[2] not in _GRID
}

FAILED = "one significant failure was enough against a claim that says all"
IN_PART = "a claim that says all was no longer called partly where some of it fails"
BUDGET = "a ranking that turns with the budget overrode the verdict of the short one"
BOTH = "far answers alone were not enough any more, and a mean below 90 % had to be so by a test"
ALONE = "a method that had not learned the task voided its own comparisons alone, and not the whole claim"
FIT = "a fit that misses its control no longer voided a comparison against which its faults work"
TURNED: dict[str, tuple[str, str]] = {
    "tuning-plain-rope-is-enough": ("refuted", FAILED),
    "separation-costs-nothing-at-equal-width": ("partly", BUDGET),
    "separation-ahead-at-every-budget": ("refuted", IN_PART),
    "separation-makes-extrapolation-easier": ("not reproduced", FAILED),
    "random-offsets-survive": ("refuted", FAILED),
    "seqpe-is-ahead-on-a-larger-canvas-direction": ("refuted", IN_PART),
    "seqpe-is-ahead-of-an-interpolated-table": ("refuted", IN_PART),
    "separation-helps-seqpe": ("refuted", FAILED),
    "seqpe-surpasses-strong-baselines": ("not reproduced", IN_PART),
    "seqpe-surpasses-them-past-the-length": ("not reproduced", FAILED),
    "splitting-makes-fitting-harder": ("held", FIT),
    "mqar-separation-finds-more": ("undecided", ALONE),
    "needle-a-separated-model-uses": ("undecided", BOTH),
    "needle-separation-finds-more": ("refuted", ALONE),
    "needle-baselines-struggle": ("reproduced", ALONE),
    "needle-ntk-generalises": ("undecided", BOTH),
}
"""Id of a claim: its verdict of today, and why it is another."""

BACK = {"strict-as-good-as-separated": ("refuted", "three seeds chose the rate of the strict table again")}
"""Id of a claim that turned and turned back: its verdict in between, and why it is the first again."""

REWORDED: dict[str, str] = {
    "latest-value-a-separated-model-uses": "7f19a2f54f389ab3",
    "mqar-a-separated-model-uses": "7ad651899ec2dbca",
    "needle-a-separated-model-uses": "7ad651899ec2dbca",
    "needle-ntk-generalises": "0265c05ce5ccdbc7",
    "questions-a-separated-model-uses": "7f19a2f54f389ab3",
    "questions-rope-uses": "964b3f2ad9c08583",
    "questions-scaled-rope-uses": "0265c05ce5ccdbc7",
    "questions-seqpe-uses": "6bc395dd2bba1e90",
}
"""Id of a claim: the digest of its rule of today. *Uses* is asked of all answers of 8 L too, of any number of
seeds from six, and refuted by a test."""


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    """Every published record by its name."""
    store, found = Store(), {}
    for folder in sorted(path for path in paths.results().glob("*/*") if path.is_dir()):
        profile, experiment = folder.parts[-2:]
        for key, record in store.load(profile, experiment).items():
            found[f"{profile}/{experiment}/{key}"] = record
    return found


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> dict[str, claims.Row]:
    """Every claim judged on the published records and on the committed numbers of the chapters."""
    build = tmp_path_factory.mktemp("build")
    (build / "smoke").mkdir()
    for file in (paths.root() / "tests" / "reference" / "smoke").glob("[0-9]*.json"):
        content = json.loads(file.read_text(encoding="utf-8"))
        kept = {key: content[key] for key in ("chapter", "profile", "numbers")}
        (build / "smoke" / file.name).write_text(json.dumps(kept), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEPNB_BUILD", str(build))
        patch.delenv("SEPNB_PROFILE", raising=False)
        return {row.claim.id: row for row in claims.evaluate()}


def test_every_verdict_that_prose_quotes_is_what_the_ledger_says_now(ledger) -> None:
    """The sentence before it was written for that word."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in prose.sources()}
    quoted = [(page, *one) for page, text in pages.items() for one in headlines.quoted(text)]
    assert len(quoted) == sum(text.count("{verdict}`") for text in pages.values()) > 20
    turned = [told for told in quoted if ledger[told[1]].verdict.word != told[2]]
    assert not turned, "write these sentences anew"


def test_every_published_record_is_there_or_was_moved_for_a_reason(records) -> None:
    assert MOVED.keys() <= set(NAMES) and all(why for _, why in MOVED.values())
    expected = {MOVED[name][0] if name in MOVED else name for name in NAMES} - {None}
    assert expected <= records.keys(), sorted(expected - records.keys())[:5]


def test_every_published_record_is_a_run_of_its_grid_with_this_config(records) -> None:
    """The name of a record is a digest of its config: neither may drift, whatever is renamed in the code."""
    configs = {}
    for experiment in map(experiments.get, experiments.names()):
        for profile in published.PROFILES:
            for config in experiment.grid(profile):
                configs[f"{profile}/{config.experiment}/{config.key}"] = config
    odd = [
        name
        for name, record in records.items()
        if name not in configs or json.loads(json.dumps(configs[name].resolved())) != record.config
    ]
    assert not odd, f"{len(odd)} records are of no run that the code knows, such as {odd[:3]}"


def test_every_verdict_is_as_it_was_or_changed_for_a_reason(ledger) -> None:
    assert TURNED.keys() <= LEDGER.keys() and all(why for _, why in TURNED.values())
    gone = withdrawn()
    assert LEDGER.keys() <= ledger.keys() | gone.keys(), "an id of a claim is a public name"
    assert not ledger.keys() & gone.keys()
    said = {"reproduced": "held", "not reproduced": "refuted"}  # of hypotheses of ours, since they have words
    for name in LEDGER.keys() & gone.keys():
        word, told = LEDGER[name]["verdict"], gone[name][0].split(", earlier ")
        assert {word, said.get(word)} & {*told}, f"{name} was withdrawn with another word"
    before = {
        name: said.get(entry["verdict"], entry["verdict"]) if ledger[name].claim.is_ours else entry["verdict"]
        for name, entry in LEDGER.items()
        if name in ledger
    }
    wanted = before | {name: word for name, (word, _) in TURNED.items()}
    now = {name: row.verdict.word for name, row in ledger.items() if name in LEDGER}
    assert {name: word for name, word in now.items() if word != wanted[name]} == {}
    idle = [name for name, (word, _) in TURNED.items() if word == before[name]]
    assert not idle, "these have not turned"
    marked = {name: (row.turned.was, row.turned.reason) for name, row in ledger.items() if row.turned}
    expected = {name: (before[name], why) for name, (_, why) in TURNED.items()} | BACK
    assert marked == expected
    listed = ledger_page.page(list(ledger.values())).partition("### Verdicts that turned")[2]
    for name, (was, why) in expected.items():
        row = next(line for line in listed.splitlines() if f"<claim-{name}>" in line)
        assert f"| {was} | [{now[name]}" in row and row.endswith(f"| {why} |"), "the page says so too"


def test_no_rule_in_words_is_changed_without_an_entry(ledger) -> None:
    """What a declaration asks is pinned by its digest, see `sepnb/claims/pinned.json`."""
    pinned = {name: entry["rule"] for name, entry in LEDGER.items() if name in ledger}
    pinned |= REWORDED
    by_hand = {name: digest(ledger[name].claim.rule) for name in pinned if ledger[name].claim.rule}
    assert by_hand == {name: pinned[name] for name in by_hand}
    assert all(entry["commit"] for entry in LEDGER.values())


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

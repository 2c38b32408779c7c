"""Rules that asks alone cannot say: functions of their own, and derived columns, on invented tables."""

import json

import numpy as np
import pandas as pd
import pytest

from sepnb import claims, paths
from sepnb.claims import exact, extrapolation, images, inside, seqpe_stream
from sepnb.claims.seqpe_stream import KINDS


def table(rows, *, seeds=range(1, 7), noise=1e-4, fixed=()) -> pd.DataFrame:
    """One row a run: `rows` are columns by method, all but the `fixed` ones with noise."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"method": method, "seed": seed, "status": "ok"}
        | {
            name: value if name in fixed else value + noise * rng.standard_normal()
            for name, value in row.items()
        }
        for method, row in rows.items()
        for seed in seeds
    )


def word(claim_id: str, found) -> str:
    claim = claims.get(claim_id)
    tables = found if isinstance(found, dict) else {claim.experiment: found}
    return claim.judge(tables).word


# --- chapter 21 ---------------------------------------------------------------------------------------------

ROUTING = "only-the-routing-hears-a-new-index"
READABLE = "position-is-readable-without-an-encoding"
SEPARATED = ("separated-learned", "separated-sinusoidal", "strict-learned")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "held"),
        ({"strict-learned": 1e-9}, "partly"),
        (dict.fromkeys(SEPARATED, 0.01), "refuted"),
        ({"learned": 1e-4}, "not testable here"),
    ],
)
def test_with_attention_held_not_one_run_moves(changes, expected):
    moves = dict.fromkeys(SEPARATED, 0.0) | {"learned": 0.3} | changes
    rows = {name: {"bits_per_byte": 2.5, "held": moved} for name, moved in moves.items()}
    frame = table(rows, fixed=("held",))
    frame = frame[(frame.method != "strict-learned") | (frame.seed < 4)]  # described, with three seeds
    assert word(ROUTING, frame) == expected
    assert word(ROUTING, frame.assign(bits_per_byte=3.4)) == "not testable here"
    assert word(ROUTING, frame[frame.method != "strict-learned"]) == "not run"
    assert word(ROUTING, frame.assign(status="stale")) == word(ROUTING, None) == "not run"


@pytest.mark.parametrize(
    ("index", "logarithm", "floor", "expected"),
    [
        (0.7, 0.8, 0.0, "held"),
        (0.3, 0.8, 0.0, "partly"),
        (0.3, 0.4, 0.0, "refuted"),
        (0.5, 0.8, 0.0, "undecided"),
        (0.3, 0.5, 0.0, "undecided"),
        (0.7, 0.8, 0.2, "not testable here"),
    ],
)
def test_the_index_is_readable_or_in_part_its_logarithm(index, logarithm, floor, expected):
    own = {"bits_per_byte": 2.5, "index/joint": index, "log_index/joint": logarithm, "input/joint": floor}
    assert word(READABLE, table({"none": own})) == expected


@pytest.mark.parametrize(("inside_", "expected"), [(0.0, "not reproduced"), (0.35, "reproduced")])
def test_drift_is_counted_less_that_of_a_start_inside_the_trained_length(inside_, expected):
    """What moves as much where every index was trained is not moved by a new one."""
    far = {f"drift/{name}": 0.4 for name in inside.FIVE}
    rows = {"separated-learned": {"bits_per_byte": 2.5, "another_text": 1.0, "drift/trained": inside_} | far}
    assert word("semantic-integrity-is-preserved", table(rows)) == expected


# --- chapter 18 ---------------------------------------------------------------------------------------------


def test_columns_are_made_of_both_starts_of_a_kind():
    run = {f"native-at-covered-aligned-{n}": float(n) for n in (1, 2)}
    made = seqpe_stream.averaged_starts(pd.DataFrame([run]))
    assert made["native-at-covered-aligned"].item() == 1.5
    assert made["native-at-never-seen-aligned"].isna().all()


@pytest.mark.parametrize(("other", "expected"), [(4.9, "not testable here"), (4.3, "held")])
def test_of_two_models_that_know_nothing_at_a_far_index_none_is_better(other, expected):
    """The entropy of single bytes is 4.5; the first pays 0.2 less than the other."""
    ends = [f"native-at-never-seen-{kind}-{n}" for kind in KINDS for n in (1, 2)]
    rows = {
        name: {"bits_per_byte": 2.5, "unigram_bits_per_byte": 4.5} | dict.fromkeys(ends, paid)
        for name, paid in (("separated-seqpe", other - 0.2), ("separated-seqpe-shifts", other))
    }
    assert word("the-losses-carry-the-stream-further", table(rows)) == expected


# --- costs and images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("share", "expected"), [(0.04, "held"), (0.06, "refuted")])
def test_what_a_step_is_longer_by_is_told_as_a_share_of_it(share, expected):
    ends = ("_lower", "", "_upper")
    row = {f"longer{end}": 1 / (1 - share) for end in ends} | {f"share{end}": 0.5 for end in ends}
    frame = table({"width-32-every-1": row, "width-64-every-1": row}, seeds=[0], noise=0.0)
    verdict = claims.get("all-that-seqpe-adds-is-light").judge({seqpe_stream.COST: frame})
    assert verdict.word == expected and verdict.numbers == {"width-32-every-1:added": pytest.approx(share)}
    assert word("the-encoder-is-lightweight", frame) == "not reproduced"


def test_each_encoding_at_each_length_is_a_cell_of_its_own():
    row = {"compiled_lower": 0.96, "compiled": 0.97, "compiled_upper": 0.98}
    frame = pd.concat([table({"rope": row}, seeds=[0], noise=0.0).assign(length=n) for n in (512, 1024)])
    assert word("compiled-rope-is-nearly-free", frame.reset_index()) == "held"
    slow = frame.assign(**{name: frame[name] - 0.1 * (frame.length == 1024) for name in row})
    assert word("compiled-rope-is-nearly-free", slow) == "partly"
    assert word("compiled-rope-is-nearly-free", frame[frame.length == 512]) == "not testable here"


@pytest.mark.parametrize(
    ("quantity", "bound"),
    [("a/class:canvas-14/grow", 0.15), ("a/direction:spread-14/grow", 0.636), ("b/direction:x/grow", 0.3)],
)
def test_right_answers_count_from_0_05_above_what_is_guessed(quantity, bound):
    assert images.gained(quantity).low == pytest.approx(bound)


@pytest.mark.parametrize(
    ("heard", "plain", "expected"),
    [
        ({}, {}, "held"),
        ({"moved-covered-aligned": 0.6}, {}, "refuted"),
        ({"shuffled_accuracy": 0.95}, {}, "not testable here"),
        ({}, {f"moved-covered-{how}": 0.96 for how in KINDS}, "not testable here"),
        ({}, {"accuracy": 0.8}, "not testable here"),
    ],
)
def test_places_are_read_alike_only_by_a_model_that_hears_them(heard, plain, expected):
    columns = {"accuracy": 0.97, "shuffled_accuracy": 0.5}
    moved, lost = ({f"moved-covered-{how}": value for how in KINDS} for value in (0.97, 0.4))
    rows = {"seqpe/direction": columns | moved | heard, "seqpe-plain/direction": columns | lost | plain}
    assert word("seqpe-reads-covered-places-alike-direction", table(rows, noise=1e-3)) == expected


# --- chapter 7 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "reading", "need"),
    [
        ("t5", "native", extrapolation.ENCODINGS),
        ("learned-per-layer", "clamp", extrapolation.ENCODINGS),
        ("alibi", "native", extrapolation.TABLE),
        ("learned", "clamp", extrapolation.TABLE),
    ],
)
def test_an_encoding_survives_with_a_gap_below_the_bound_and_three_seeds_decide_nothing(
    method, reading, need
):
    def survives(gap, seeds=6, inside=2.5, of=need):
        row = {"bits_per_byte": inside} | {f"gap/{reading}/{k}": gap for k in ("2x", "4x", "8x")}
        return claims.survival({of: table({method: row}, seeds=range(seeds))}, method).word

    assert [survives(0.0), survives(0.2), survives(0.2, 3)] == ["held", "refuted", "not judged"]
    assert survives(0.0, inside=3.4) == "not testable here"
    (other,) = {extrapolation.TABLE, extrapolation.ENCODINGS} - {need}
    assert survives(0.0, of=other) == "not run"


# --- chapters 1 and 8 to 10 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("claim_id", exact.CLAIMS)
def test_exact_claims_have_their_controls(claim_id):
    """On the committed numbers of the chapter each is decided; a control that is blind takes that away."""
    claim = claims.get(claim_id)
    chapter = claim.experiment
    file = paths.root() / "tests" / "reference" / "smoke" / f"{chapter.partition('/')[2]}.json"
    numbers = json.loads(file.read_text(encoding="utf-8"))["numbers"]
    assert word(claim_id, {chapter: numbers}) in {"reproduced", "partly", "not reproduced", "held"}
    for control in (ask.a for one in claim.unless for ask in one.asks):
        blind = numbers | {control: 1e-9 if numbers[control] > 1e-3 else 0.01}
        assert word(claim_id, {chapter: blind}) == "not testable here"
    for ask in claim.asks:
        assert word(claim_id, {chapter: numbers | {ask.a: 1e-5}}) not in ("reproduced", "held")

"""The declarations: each asks what its words say, of methods that run with the seeds that verdicts need."""

import math
import re

import pytest

from sepnb import experiments, extrapolators
from sepnb.claims import (
    CLAIMS,
    context_extension,
    encoding_speed,
    extrapolation,
    get,
    images,
    seqpe_stream,
    seqpe_stream_geometry,
)
from sepnb.claims.asks import ZERO, Ask
from sepnb.claims.claim import by_seeds
from sepnb.claims.evidence import methods_of

OF_EXPERIMENTS = [claim for claim in CLAIMS if claim.asks and claim.experiments[0].startswith("experiment/")]


def test_ids_and_titles_are_unique_and_needs_exist():
    assert len({claim.id for claim in CLAIMS}) == len({claim.title for claim in CLAIMS}) == len(CLAIMS)
    for claim in CLAIMS:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", claim.id)
        assert claim.title[0].isupper() and not claim.title.endswith(".")
        for need in claim.needs:
            kind, _, name = need.partition("/")
            assert kind == "chapter" or experiments.get(name)


def told(bound: float) -> str:
    """A number as a rule may write it."""
    forms = {f"{bound:g}", f"{bound:.2f}", f"{bound:.0e}".replace("e-0", "e-"), f"{100 * bound:g} %"}
    return "|".join(map(re.escape, forms))


IN_WORDS = {
    "separation-costs-nothing-at-equal-parameters": {0.95, 1.05},  # within 5 %
    "the-losses-move-an-aligned-window": {1.0},  # twice, as a logarithm to base 2
    "the-losses-narrow-far-windows": {1.0},  # half
    "ahead-of-x-transformers": {1.0},  # less time
    "position-is-readable-without-an-encoding": {0.5},  # half of the variance
}
GUESSES = {0.15, 0.3, 0.771, 0.636}
"""What is guessed of images and 0.05 more: `images.above_chance`, of many claims alike."""


def test_every_bound_stands_in_the_words_of_its_rule():
    for claim in OF_EXPERIMENTS:
        bounds = {
            abs(bound)
            for ask in [*claim.asks, *(ask for one in claim.unless for ask in one.asks)]
            for bound in (ask.low, ask.high)
            if math.isfinite(bound) and bound
        } - IN_WORDS.get(claim.id, set())
        if claim.experiments == (images.TABLE,):
            bounds = {bound for bound in bounds if round(bound, 3) not in GUESSES}
        for bound in bounds:
            assert re.search(rf"(?<![\d.])({told(bound)})(?![\d])", claim.rule), f"{claim.id}: {bound}"


def grid(name: str) -> dict[str, set[int]]:
    """The seeds of every method, as the claims call it."""
    seeds: dict[str, set[int]] = {}
    for config in experiments.get(name).grid("laptop"):
        at = {"budget": "at {0.budget}x", "encoding_speed": "at {0.length}"}.get(name)
        method = f"{config.method} {at.format(config)}" if at else config.method
        seeds.setdefault(method, set()).add(getattr(config, "seed", 0))
    return seeds


def test_what_is_compared_is_run_with_the_seeds_that_a_verdict_needs():
    grids = {}
    for claim in OF_EXPERIMENTS:
        for need in claim.needs:
            name = need.partition("/")[2]
            if name not in grids:
                grids[name] = grid(name)
        own = grids[claim.experiments[0].partition("/")[2]]
        lent = {m: need.partition("/")[2] for need, methods in claim.beside.items() for m in methods}
        compared = set(methods_of(claim.asks))
        conditions = set(methods_of(ask for one in claim.unless for ask in one.asks))
        if claim.how is seqpe_stream_geometry.ranks:
            compared = set(seqpe_stream_geometry.CHAIN)
        for method in compared | conditions:
            seeds = grids[lent[method]][method] if method in lent else own.get(method, set())
            assert seeds, f"{claim.id}: {method} is not run"
            if method in compared and claim.how is by_seeds:
                assert len(seeds) >= 6, f"{claim.id}: {method}"


MEANT = """
separation-costs-nothing-at-equal-width: 2, separated-sinusoidal - sinusoidal < 0.03
position-information-helps: 6, separated-learned - none < 0
rope-leads-in-window: 6, rope - separated-learned-wide < 0
alibi-level-with-separated-sinusoid: 1, -0.03 < alibi - separated-sinusoidal < 0.03
a-pos-stream-needs-no-reinjection: 2, -0.03 < separated-learned-reinjected - separated-learned < 0.03
no-single-wall-costs: 3, separated-sinusoidal - separated-sinusoidal-both-readout < 0.03
separation-ahead-at-every-budget: 3, separated-sinusoidal at 16x - sinusoidal at 16x < -0.03
the-five-extrapolate: 15, separated-learned:gap/cyclic/4x < 0.03
separation-makes-extrapolation-easier: 10, separated-learned:gap/alibi/8x - learned:gap/alibi/8x < 0
wrap-in-disguise: 6, -0.05 < separated-learned:fourier-full/2x - separated-learned:wrap/2x < 0.05
mask-rescues-no-extrapolator: 15, 0.03 < separated-learned:gap/learned-window/8x
lookup-tables-limit-extrapolation: 20, 0.03 < learned:gap/interpolate/2x
rope-needs-a-window: 4, rope:gap/native-window/8x < 0.03
rope-leads-more-on-longer-sequences: 6, rope:gap/native/4x - learned:gap/clamp/4x < 0
alibi-does-not-use-longer-context: 2, -0.02 < alibi:gap/native/4x
random-offsets-survive: 6, strict-offsets:gap/native/8x < 0.03
covered-indices-are-no-extrapolation: 2, 0.03 < strict-offsets:native-at-1m - strict-offsets:native/1x
the-torus-and-a-window-reach-the-oracle: 4, separated-torus-offsets:gap/native-window/8x < 0.05
true-gaps-teach-use: 8, 0 < dense-phase-gaps:gain/8x - dense-phase-gaps-other:gain/8x
something-uses-the-far-past: 5, 0 < rope:margin
a-separated-model-stands-beside-rope: 6,
    separated-torus-phase-long-gaps-wide:native/8x - rope:native-window/8x < 0.02
the-phase-read-closes-half-of-the-gap-to-rope: 1, separated-phase - separated-sinusoidal+rope < 0
ntk-tuned-reads-on: 4, yarn:tight/tuned/16x - yarn:tight/tuned-oracle/16x < 0.03
yarn-wins-frozen: 5, yarn:frozen/4x - raised-base:frozen/4x < 0
tuning-plain-rope-is-enough: 6, rope:tuned/4x - llama3:tuned/4x < 0.03
separation-steadies-the-content: 5, separated-learned:added drift/fourier - learned:added drift/fourier < 0
pos-stream-carries-almost-no-text: 3, separated-learned:text/pos < 0.01
contrast-alone-orders-positions: 2, 0.1 < contrastive:order/misaligned - contrastive:drawn/order/misaligned
distillation-carries-the-geometry: 2,
    0.1 < both:likeness/misaligned, never seen - contrastive:likeness/misaligned, never seen
shared-digits-look-like-geometry: 3, 0.2 < base-16:drawn/likeness/aligned - base-16:drawn/likeness/misaligned
seqpe-reaches-indices-never-seen: 4, strict-seqpe:native-at-never-seen-aligned - strict-seqpe:native/1x < 0.03
the-losses-carry-the-stream-further: 2,
    separated-seqpe:native-at-never-seen-aligned - separated-seqpe-shifts:native-at-never-seen-aligned < 0
a-seqpe-stream-stands-beside-rope: 4, separated-seqpe:native/2x - rope:native-window/2x < 0.02
seqpe-surpasses-them-past-the-length: 9, dense-seqpe-score:native/8x - alibi:native/8x < 0
the-losses-narrow-far-windows: 2,
    separated-seqpe:log2 narrowed/covered-aligned - separated-seqpe-shifts:log2 narrowed/covered-aligned < -1
axial-rope-survives-a-larger-canvas: 2,
    -0.03 < axial-rope/direction:canvas-14/grow - axial-rope/direction:accuracy
seqpe-is-ahead-on-upscaled-images-class: 3,
    0 < seqpe/class:upscaled-14/grow - sinusoidal-shifts/class:upscaled-14/fit
seqpe-reaches-places-never-seen: 2,
    -0.03 < seqpe/direction:moved-never-seen-misaligned - seqpe/direction:accuracy
seqpe-is-ahead-in-larger-cubes: 4, 0 < seqpe:spread-12 - axial-rope:spread-12
ahead-of-x-transformers: 10, 1 < cope at 512:ahead
"""
"""One family each: how many asks it has, and one of them."""


def said(ask: Ask) -> str:
    name = ask.a if ask.b == ZERO else f"{ask.a} - {ask.b}"
    low = "" if math.isinf(ask.low) else f"{ask.low:g} < "
    return low + name + ("" if math.isinf(ask.high) else f" < {ask.high:g}")


def test_families_ask_what_is_meant():
    for line in MEANT.replace(",\n    ", ", ").strip().splitlines():
        claim_id, _, meant = line.partition(": ")
        many, _, one = meant.partition(", ")
        asks = [said(ask) for ask in get(claim_id).asks]
        assert len(asks) == len(set(asks)) == int(many) and one in asks, claim_id


def test_families_of_one_form_differ_in_what_they_are_about_alone():
    """Claims that come in twos and fives: their asks are those of each other, with a word exchanged."""
    five = [get(f"extrapolation-{name}-survives").asks for name in extrapolation.FIVE]
    assert sum(five, ()) == get("the-five-extrapolate").asks and {len(asks) for asks in five} == {3}
    for one, other, words in (
        ("seqpe-is-ahead-on-a-larger-canvas-{}", "seqpe-is-ahead-on-upscaled-images-{}", images.TASKS),
        ("losses-and-shifts-carry-seqpe-{}", "seqpe-reads-covered-places-alike-{}", images.TASKS),
    ):
        for form in (one, other):
            a, b = (get(form.format(word)) for word in words)
            assert [Ask(*(str(x).replace(*words) for x in ask)) for ask in a.asks] == [
                Ask(*map(str, ask)) for ask in b.asks
            ]
    assert get("seqpe-survives").asks != get("seqpe-and-a-window-survive").asks


CONDITIONS = {
    "alibi-does-not-use-longer-context": [
        "rope-long:gap/native/8x",
        "separated-sinusoidal-long:gap/native/8x",
    ],
    "seqpe-survives": ["none", "none"],
    "seqpe-reads-covered-indices-alike": [
        "none",
        "none",
        *(
            f"{mode}-seqpe-plain:native-at-covered-aligned+native-at-covered-misaligned"
            for mode in ("separated", "strict")
        ),
    ],
    "the-toeplitz-clamp-frees-of-the-index": ["untied-constant:native-at-1m"],
    "the-phase-read-closes-half-of-the-gap-to-rope": ["rope"],
    "the-geometry-reaches-positions-never-seen": ["both:order/misaligned", "both:likeness/misaligned"],
    "semantic-integrity-is-preserved": ["separated-learned:another_text"],
    "separation-costs-nothing-at-equal-parameters": [
        "separated-learned-wide:block_parameters",
        "separated-sinusoidal-wide:block_parameters",
    ],
    "seqpe-reaches-places-never-seen": [
        "seqpe/direction:shuffled_accuracy",
        "seqpe-plain/direction:moved-never-seen-aligned+moved-never-seen-misaligned",
    ],
}


@pytest.mark.parametrize("claim_id", CONDITIONS)
def test_a_condition_is_about_what_the_rule_says(claim_id):
    assert [ask.a for one in get(claim_id).unless for ask in one.asks] == CONDITIONS[claim_id]


def test_use_of_the_far_past_is_asked_only_of_a_text_that_has_something_to_give():
    asking = {claim.id for claim in CLAIMS if extrapolation.TEXT_HAS_MORE in claim.unless}
    assert asking == {
        "alibi-does-not-use-longer-context",
        "something-uses-the-far-past",
        "true-gaps-teach-use",
        "a-tuned-extension-uses-longer-contexts",
        "a-seqpe-stream-uses-the-far-past",
    }
    condition = extrapolation.TEXT_HAS_MORE
    assert condition.any and {ask.high for ask in condition.asks} == {-0.02}


def test_all_that_reads_positions_alike_is_asked_whether_it_hears_them():
    hearing = {claim.id for claim in CLAIMS if seqpe_stream.HEARD in claim.unless}
    assert len(hearing) == 5 and "misaligned-starts-cost-more" in hearing
    assert {ask.low for ask in seqpe_stream.HEARD.asks} == {0.2}


def test_bits_per_byte_have_the_floor_below_byte_pairs():
    """All but geometry, and what is timed, has a floor; images and cubes must answer half of it rightly."""
    for claim in OF_EXPERIMENTS:
        name = claim.experiments[0].partition("/")[2]
        floors = {(floor.bound, floor.column) for floor in claim.floors}
        if name == "encoding_speed" or (name.startswith("seqpe_") and name != "seqpe_stream"):
            assert not floors
        elif name in ("images", "volumes"):
            accuracy = {(0.5, "accuracy")} | ({(0.86, "accuracy")} if name == "images" else set())
            assert claim.higher_is_better and claim.metric == "accuracy"
            assert floors == (set() if claim.id == "three-axes-are-learned" else accuracy)
        else:
            near = claim.id == "precise-position-helps-nearby"
            assert floors == {(4.0 if near else 3.35, "bits_per_byte")} and not claim.higher_is_better


def test_the_floor_lies_a_tenth_of_a_bit_below_byte_pairs(data_set):
    from sepnb.claims.language_model import BAR
    from sepnb.data import text

    data_set("eltec-eng")
    novels = text.load("eltec-eng")
    assert text.entropies(novels.train, novels.test).bigram - 0.1 > BAR.bound == 3.35


def test_the_floors_of_images_are_above_what_the_place_of_one_thing_tells():
    from sepnb.experiments.images import SIZES

    direction = SIZES["laptop"].direction
    for view, side in (("upscaled-14", 7), ("spread-14", 14)):
        assert images.guessed("direction", view) == round(direction.by_one_place(side), 3)
    assert images.guessed("direction", "canvas-14") == 0.25 and images.guessed("class", "spread-14") == 0.1
    assert images.PLACES.bound == round((1 + direction.by_one_place(7)) / 2, 2)


def test_names_are_those_of_the_experiments():
    from sepnb.experiments import context_extension as extended
    from sepnb.experiments import peer

    assert extrapolators.SOURCE_METHODS == extrapolation.FIVE
    assert extrapolators.CONTROLS == extrapolation.CONTROLS
    assert {*context_extension.EXTENSIONS, "rope"} == set(extended.METHODS)
    assert set(encoding_speed.BESIDE) == set(peer.METHODS) - {"none"}


def test_the_speeds_asked_for_are_the_aims_of_the_experiment():
    from sepnb.experiments.encoding_speed import TARGETS

    asked = {
        ask.a.removesuffix(":compiled"): ask.low
        for claim in encoding_speed.CLAIMS.values()
        for ask in claim.asks
        if ask.a.endswith(":compiled")
    }
    aims = {f"{m} at {n}": aim for (m, n), aim in TARGETS.items() if m not in ("xpos", "sandwich")}
    assert asked == aims  # xPos and Sandwich take the routes of RoPE and ALiBi

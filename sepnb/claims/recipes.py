"""Experiment `recipes` (chapter 12): what makes a model survive past its trained length, use the far past, at
what price.

Written before its records, with what the screening had shown: one seed, on the validation text. It chose the
models that are compared. A reading's *gap* is its bits per byte minus those of the same model through a
window of the trained length that slides byte by byte, over the same bytes. The *gain* is what a model pays
more once the text further back than a trained length is that of another novel. Bins end at 2, 4 and 8 times
the trained length.

Three rules were written anew when other models of the table had run, and before either side of most of their
comparisons had: those on true gaps, which differed from their base in the waves too and left out the chunk of
another novel, and the ladder, whose rungs had not the same parameters. A fourth, on half of the gap to RoPE,
was narrowed with its records in view: it held, and there was no gap.
"""

from functools import partial

import pandas as pd

from sepnb.claims import extrapolation
from sepnb.claims.asks import Ask, changes, each, gap, levels, pairs, unless
from sepnb.claims.claim import Claim
from sepnb.claims.extrapolation import TEXT_HAS_MORE
from sepnb.claims.language_model import BAR

TABLE = "experiment/recipes"

OFFSETS = ("separated-offsets", "strict-offsets")
FOIL = "long, gaps-other"
BEST = "separated-torus-phase-long-gaps-wide"
AT_A_MILLION = (("native-at-1m", "native/1x"),)
"""What the same bytes cost more at indices from 1,000,000 on than from 0 on."""

LONG = {extrapolation.TABLE: extrapolation.TRAINED_LONG}


def margins(table: pd.DataFrame) -> pd.DataFrame:
    """`margin`: of each run the smaller of 0.03 minus the gap and the gain minus 0.02."""
    read = table.reindex(columns=["gap/native/8x", "gain/8x"]).astype(float)
    both = pd.DataFrame({"survives": 0.03 - read["gap/native/8x"], "uses": read["gain/8x"] - 0.02})
    return pd.DataFrame({"margin": both.min(axis=1, skipna=False)})


_of = partial(Claim, experiments=(TABLE,), floors=(BAR,))
_changed = partial(_of, source="ours, changed when some records were there")

CLAIMS = (
    _of(
        "random-offsets-survive",
        "Trained at random offsets, a separated sinusoid survives",
        "A sinusoid in dimensions of its own, trained at random offsets, reads texts of eight times the "
        "trained length as well as through a sliding window.",
        "Separated and strict sinusoidal, trained at random offsets that cover all indices read, are less "
        "than +0.03 bits per byte above their own sliding windows at stride 1, at 2, 4 and 8 times the "
        "trained length, with all keys in sight.",
        levels(OFFSETS, *gap("native"), high=0.03),
    ),
    _of(
        "random-offsets-and-a-window-survive",
        "With random offsets and a window it survives",
        "Trained at random offsets it survives at least where each query sees no more keys than in training.",
        "The same two models, each query held to the last keys of one trained length, are less than +0.03 "
        "above their own sliding windows at stride 1, at 2, 4 and 8 times the trained length.",
        levels(OFFSETS, *gap("native-window"), high=0.03),
    ),
    _of(
        "the-encoding-makes-extrapolation-fail",
        "It is the encoding that makes extrapolation fail",
        "The choice of the position encoding is what makes extrapolation fail.",
        "With the encoding as it was and only the training changed, to random offsets that cover all "
        "indices read, separated sinusoidal stays more than +0.03 bits per byte above its own sliding "
        "window at stride 1, at 2, 4 and 8 times the trained length, each query held to the last keys of "
        "one trained length, so that neither the number of the keys nor their distance is new.",
        levels("separated-offsets", *gap("native-window"), low=0.03),
        source="notes-positional-encoding",
    ),
    _of(
        "covered-indices-are-no-extrapolation",
        "Random offsets cover indices and do not extrapolate",
        "Random offsets cover indices and do not extrapolate: past the covered ones the model fails.",
        "Trained at random offsets, separated and strict sinusoidal pay more than 0.03 bits per byte more "
        "for the same bytes at indices from 1,000,000 on, far past the covered ones, than from 0 on.",
        changes(OFFSETS, AT_A_MILLION, low=0.03),
    ),
    _of(
        "the-torus-and-a-window-reach-the-oracle",
        "A short-period sinusoid and a window reach the sliding-window baseline",
        "A sinusoid without slow waves, random offsets and a window make a model that survives to eight "
        "trained lengths, and at index 1,000,000 inside the trained length, with an ordinary cache.",
        "With no wave longer than twice the trained length, random offsets, and each query held to the last "
        "keys of one trained length, separated sinusoidal is less than +0.05 bits per byte above its own "
        "sliding window at stride 1, at 2, 4 and 8 times the trained length; and the same bytes cost less "
        "than 0.05 more at indices from 1,000,000 on, which no offset covered, than from 0 on.",
        levels("separated-torus-offsets", *gap("native-window"), high=0.05)
        + changes("separated-torus-offsets", AT_A_MILLION, high=0.05),
    ),
    _of(
        "the-phase-read-survives",
        "A content-to-position term with waves survives",
        "A score that reads distances by waves which the content of the query chooses survives past the "
        "trained length.",
        "With the phase read up to the trained length and no other change, the dense model without any "
        "other position, and separated sinusoidal, are less than +0.03 bits per byte above their own "
        "sliding windows at stride 1, at 2, 4 and 8 times the trained length, with all keys in sight.",
        levels("dense-phase, separated-phase", *gap("native"), high=0.03),
    ),
    _of(
        "the-phase-read-with-true-gaps-survives",
        "Trained with position gaps, the content-to-position term survives",
        "Trained on two pieces of a text at a far distance, a model that reads distances by waves survives "
        "past the trained length with all keys in sight.",
        "With the phase read up to 8 trained lengths, trained on two chunks at their true distance, the "
        "dense model without any other position, and separated sinusoidal, are less than +0.03 bits per "
        "byte above their own sliding windows at stride 1, at 2, 4 and 8 times the trained length, with all "
        "keys in sight.",
        levels("dense-phase-gaps, separated-phase-gaps", *gap("native"), high=0.03),
    ),
    _of(
        "the-toeplitz-clamp-frees-of-the-index",
        "Toeplitz distillation makes a model indifferent to where a text begins",
        "Teaching the position scores of far indices what those of near ones say makes a model indifferent "
        "to where a text begins, without random offsets.",
        "Trained with the Toeplitz clamp of weight 0.1 and without random offsets, the untied model with a "
        "constant pos stream pays less than 0.03 bits per byte more for the same bytes at indices from "
        "1,000,000 on than from 0 on; not testable unless without the clamp it pays more than 0.03.",
        changes("untied-constant-clamp", AT_A_MILLION, high=0.03),
        unless=unless(
            "nothing to repair without the clamp", changes("untied-constant", AT_A_MILLION, low=0.03)
        ),
    ),
    _of(
        "the-toeplitz-clamp-survives",
        "With Toeplitz distillation a model survives",
        "With position scores that are constant past the last trained distance a model survives past the "
        "trained length.",
        "Trained with the Toeplitz clamp of weight 0.1 and without random offsets, the untied model with a "
        "constant pos stream is less than +0.03 bits per byte above its own sliding window at stride 1, at "
        "2, 4 and 8 times the trained length, with all keys in sight.",
        levels("untied-constant-clamp", *gap("native"), high=0.03),
    ),
    _of(
        "separation-makes-recipes-easier",
        "Random offsets carry a separated model further than a dense one",
        "The same recipe carries a separated model further than a dense one.",
        "Trained at the same random offsets, separated sinusoidal is less far above its own sliding window "
        "at stride 1 than dense sinusoidal above its own (difference below 0), at 2, 4 and 8 times the "
        "trained length, with all keys in sight.",
        pairs("separated-offsets - sinusoidal-offsets", *gap("native"), high=0.0),
    ),
    _of(
        "log-n-helps-past-the-length",
        "Logits that grow with log n help past the trained length",
        "Logits that grow with the logarithm of the number of keys help past the trained length.",
        "In the last bin, multiplying the logits by ln n / ln L (n keys in sight, L the trained length) "
        "lowers the bits per byte of RoPE, of the phase read in its place, and of separated sinusoidal with "
        "random offsets.",
        changes("rope, dense-phase, separated-offsets", [("native-log/8x", "native/8x")], high=0.0),
    ),
    _of(
        "something-uses-the-far-past",
        "Models that survive depend on the far past",
        "Models that survive past the trained length also depend on what lies further back than it: foreign "
        "text there costs them, whether they used what stood there or are disturbed by it.",
        "In the bin that ends at 8 times the trained length each of five models is less than +0.03 bits per "
        "byte above its own sliding window at stride 1, all keys in sight, and pays more than 0.02 more "
        "once its far past is foreign (gain): RoPE, separated sinusoidal with random offsets, the torus "
        "with them, the phase read with true gaps, and its dense twin. One comparison a model: of each seed "
        "the smaller of two margins, 0.03 less the gap and the gain less 0.02; its mean is above 0. A gain "
        "does not tell use from being disturbed by foreign text. Not testable unless RoPE or separated "
        "sinusoidal, trained at eight lengths, gains more than 0.02 over its own sliding window there.",
        levels(
            "rope, separated-offsets, separated-torus-offsets, separated-phase-gaps, dense-phase-gaps",
            "margin",
            low=0.0,
        ),
        beside=LONG,
        unless=(TEXT_HAS_MORE,),
        derive=margins,
    ),
    _changed(
        "true-gaps-teach-use",
        "Training with position gaps teaches a model to use the far past",
        "Training on two distant pieces of a novel at their true distance teaches a model to use the far "
        "past.",
        "Trained on two chunks of a novel at their true distance, separated sinusoidal with the phase read "
        "up to 8 trained lengths, and the dense model with it, gain more from their far past than the same "
        "models trained on contiguous text, and more than trained with a second chunk of another novel "
        "(differences above 0), in the bins that end at 4 and at 8 times the trained length. Not testable "
        "unless RoPE or separated sinusoidal, trained at eight lengths, gains more than 0.02 over its own "
        "sliding window in the last bin.",
        pairs(
            each("separated-phase-gaps - separated-phase-{}", FOIL)
            + each("dense-phase-gaps - dense-phase-{}", FOIL),
            *("gain/4x", "gain/8x"),
            low=0.0,
        ),
        beside=LONG,
        unless=(TEXT_HAS_MORE,),
    ),
    _of(
        "no-recipe-beats-a-window-on-rope",
        "No recipe of equal width beats RoPE behind a window",
        "Separated models with a recipe, as wide as RoPE's, pay more at eight times the trained length than "
        "RoPE with a window, which needs no recipe.",
        "In the bin that ends at 8 times the trained length four separated models pay more than RoPE whose "
        "queries are held to the last keys of one trained length (differences above 0): with random "
        "offsets, and with the phase read trained at true gaps, all keys in sight; with the torus and "
        "random offsets, and with the phase read alone, held to as many keys.",
        [
            Ask(f"{name}/8x", "rope:native-window/8x", low=0.0)
            for name in (
                "separated-offsets:native",
                "separated-torus-offsets:native-window",
                "separated-phase:native-window",
                "separated-phase-gaps:native",
            )
        ],
    ),
    _of(
        "a-separated-model-stands-beside-rope",
        "With as many parameters, a separated model matches RoPE behind a window",
        "With as many parameters as RoPE, a separated model reads texts of eight times the trained length "
        "from index 0 with all keys in sight no worse than RoPE with a window, and texts of the trained "
        "length at index 1,000,000 as well as at 0.",
        "With as many parameters as RoPE's model (within 1 % in the blocks), separated with the torus and "
        "the phase read up to 8 trained lengths, trained at true gaps, survives: less than +0.03 bits per "
        "byte above its own sliding window at stride 1, at 2, 4 and 8 times the trained length, all keys in "
        "sight. It pays less than 0.03 more for the same bytes at indices from 1,000,000 on than from 0 on. "
        "And it is less than +0.02 above RoPE inside the trained length, and in the last bin, all keys in "
        "sight, above RoPE with a window of one trained length.",
        [
            *levels(BEST, *gap("native"), high=0.03),
            *changes(BEST, AT_A_MILLION, high=0.03),
            Ask(BEST, "rope", high=0.02),
            Ask(f"{BEST}:native/8x", "rope:native-window/8x", high=0.02),
        ],
    ),
    _of(
        "separation-helps-the-survivor",
        "The separated survivor is ahead of a dense one without position embeddings",
        "The separated model that is to survive pays fewer bits than a dense one with the same phase read "
        "and gaps, no code of positions and 8 % more parameters.",
        "The same separated model is below the dense one with the phase read, trained at true gaps, which "
        "has 8 % more parameters in its blocks: inside the trained length, and in the bin that ends at 8 "
        "times it, all keys in sight (differences below 0).",
        pairs(f"{BEST} - dense-phase-gaps", "bits_per_byte", "native/8x", high=0.0),
    ),
    _of(
        "a-stream-of-its-own-helps-the-survivor",
        "The survivor is better with position in dimensions of its own",
        "What makes a model survive does so with fewer bits where position has dimensions of its own than "
        "where it is added to the meaning.",
        "With the torus, the phase read up to 8 trained lengths and true gaps in both, separated, as wide "
        "as dense and with fewer parameters, is below dense with the code added to the embedding: inside "
        "the trained length, and in the bin that ends at 8 times it, all keys in sight (differences below "
        "0).",
        pairs(
            "separated-torus-phase-long-gaps - sinusoidal-torus-phase-long-gaps",
            "bits_per_byte",
            "native/8x",
            high=0.0,
        ),
    ),
    _of(
        "far-distances-need-no-true-text",
        "To bear far keys it is enough to have met their distances",
        "To bear far keys it is enough to have met their distances: what stands there need not belong to "
        "the text.",
        "With the phase read up to 8 trained lengths, trained on two distant chunks of which the second is "
        "of another novel, separated sinusoidal and dense are less than +0.03 bits per byte above their own "
        "sliding windows at stride 1, at 2, 4 and 8 times the trained length, with all keys in sight.",
        levels("separated-phase-gaps-other, dense-phase-gaps-other", *gap("native"), high=0.03),
    ),
    _of(
        "random-offsets-are-free-in-window",
        "Random offsets cost nothing inside the trained length",
        "Random offsets cost nothing inside the trained length.",
        "Inside the trained length random offsets cost separated and strict sinusoidal, and the separated "
        "torus, less than +0.03 bits per byte.",
        pairs(
            "separated-offsets - separated-sinusoidal, strict-offsets - strict-sinusoidal, "
            "separated-torus-offsets - separated-torus",
            high=0.03,
        ),
    ),
    _changed(
        "true-gaps-are-free-in-window",
        "Position gaps cost nothing inside the trained length",
        "Training on distant pieces costs nothing inside the trained length.",
        "Inside the trained length true gaps cost separated sinusoidal with the phase read up to 8 trained "
        "lengths, and the dense model with it, less than +0.03 bits per byte.",
        pairs(
            "separated-phase-gaps - separated-phase-long, dense-phase-gaps - dense-phase-long",
            high=0.03,
        ),
    ),
    _changed(
        "the-phase-read-closes-half-of-the-gap-to-rope",
        "A content-to-position term closes half of the gap to RoPE",
        "What separated models lack against RoPE is a product of content and distance: a query-gated phase "
        "read closes at least half of the gap.",
        "Inside the trained length, separated sinusoidal with the phase read up to the trained length is "
        "below the mean of separated sinusoidal and RoPE. Not testable unless RoPE is below separated "
        "sinusoidal there, by the same test: else there is no gap to close.",
        pairs("separated-phase - separated-sinusoidal+rope", high=0.0),
        unless=unless("no gap to close", pairs("rope - separated-sinusoidal", high=0.0), tested=True),
    ),
    _changed(
        "ladder-of-expressivity",
        "The more a score can say of content and position together, the better",
        "The more a score can say of content and position together, the better the model, at no more "
        "parameters: position with position, content with absolute position, content of the query with "
        "distance, RoPE.",
        "Inside the trained length, of models whose position heads see positions only, each rung is better "
        "than the one before (differences below 0), with no more parameters in its blocks and on the same "
        "tokens: position with position only (untied); with the cross terms of content and absolute "
        "position (strict), as many parameters; with the phase read too, content of the query with "
        "distance, in a narrower model; and RoPE in the sem heads, content with distance both ways, without "
        "cross terms, against the phase read in a model of the same width, which has more.",
        pairs(
            "strict-sinusoidal - untied, strict-phase-narrow - strict-sinusoidal, untied-rope - strict-phase",
            high=0.0,
        ),
    ),
    _of(
        "the-position-stream-matters-beside-rope",
        "A stream of absolute positions still helps beside relative scores",
        "Where the score already knows distances, a stream of absolute positions still helps.",
        "Inside the trained length, separated sinusoidal with RoPE in all heads is below the dense model "
        "with RoPE alone, and separated sinusoidal with the phase read below the dense model with the phase "
        "read alone.",
        pairs("separated-rope - rope, separated-phase - dense-phase", high=0.0),
    ),
)

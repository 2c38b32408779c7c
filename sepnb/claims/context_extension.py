"""Experiment `context_extension` (chapter 6): other frequencies for a trained RoPE model.

Written before its records. *Frozen* is read under the extension without training, *tuned* after a twentieth
of the steps at four times the trained length, 4 L; both with a factor of 4. The oracle of a tuned model is
that model itself, with the same weights and frequencies, through a window of the trained length L that slides
byte by byte over the same bytes: what it pays less than that is what it takes from further back, and not what
the tuning taught it. Bins end at 2, 4, 8 and 16 times the trained length.
"""

from functools import partial

from sepnb.claims.asks import Ask, against, changes, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.extrapolation import TEXT_HAS_MORE
from sepnb.claims.language_model import BAR
from sepnb.claims.recipes import LONG

EXTENSIONS = ("position-interpolation", "ntk-aware", "ntk-by-parts", "yarn", "llama3", "raised-base")


def over_oracle(*places: str) -> list[tuple[str, str]]:
    """The columns of a tuned model and of its oracle."""
    return [(f"tight/tuned/{k}", f"tight/tuned-oracle/{k}") for k in places]


_of = partial(Claim, experiments=("experiment/context_extension",), floors=(BAR,))
_article = partial(_of, source="article-positional-encoding")

CLAIMS = (
    _article(
        "ntk-frozen-helps",
        "NTK scaling without tuning improves on plain RoPE",
        "NTK scaling without fine-tuning shows some improvement past the trained length.",
        "NTK-aware, frozen, pays less than plain RoPE (difference below 0) in the bins that end at 2 and 4 "
        "times the trained length.",
        pairs("ntk-aware - rope", "frozen/2x", "frozen/4x", high=0.0),
    ),
    _article(
        "the-window-improves-plain-rope",
        "A sliding window improves plain RoPE on long texts",
        "Approximate attention, like a sliding window, offers improvements past the trained length.",
        "Plain RoPE, not tuned, pays less with every query held to the last keys of one trained length than "
        "with all keys in sight (difference below 0), in all bins that end at 2 to 16 times that length.",
        changes("rope", [(f"frozen-window/{k}", f"frozen/{k}") for k in ("2x", "4x", "8x", "16x")], high=0.0),
    ),
    _article(
        "tuned-extensions-reach-the-tuned-length",
        "Tuned extensions work up to the length they are tuned for",
        "Position interpolation and adaptive scaling work well up to the lengths that they are fine-tuned "
        "for.",
        "Position interpolation, NTK-aware, NTK-by-parts and YaRN, tuned, are less than +0.03 bits per byte "
        "above their own oracle in the bins that end at 2 and 4 times the trained length, which the tuning "
        "has shown.",
        changes(
            "position-interpolation, ntk-aware, ntk-by-parts, yarn",
            over_oracle("2x", "4x"),
            high=0.03,
        ),
    ),
    _article(
        "ntk-tuned-reads-on",
        "Tuned NTK methods read on past the length they are tuned for",
        "NTK-based methods generalise to lengths that the fine-tuning has not shown.",
        "NTK-aware and YaRN, tuned, are less than +0.03 bits per byte above their own oracle in the bins "
        "that end at 8 and 16 times the trained length, past what the tuning has shown.",
        changes("ntk-aware, yarn", over_oracle("8x", "16x"), high=0.03),
    ),
    _of(
        "pi-frozen-costs-inside",
        "Position interpolation without tuning costs inside the trained length",
        "Position interpolation slows all frequencies and so costs inside the trained length unless it is "
        "tuned; NTK-aware scaling, which keeps the fast ones, costs less.",
        "Position interpolation, frozen, pays more than 0.03 bits per byte more than plain RoPE inside the "
        "trained length, and NTK-aware, frozen, pays less there than position interpolation (difference "
        "below 0).",
        [
            Ask("position-interpolation:frozen/1x", "rope:frozen/1x", low=0.03),
            Ask("ntk-aware:frozen/1x", "position-interpolation:frozen/1x", high=0.0),
        ],
    ),
    _of(
        "yarn-wins-frozen",
        "Without tuning YaRN is the best extension",
        "Of the extensions without tuning YaRN is the best at the length it is built for.",
        "YaRN, frozen, pays less than every other extension, frozen (difference below 0), in the bin that "
        "ends at 4 times the trained length.",
        against("yarn", [name for name in EXTENSIONS if name != "yarn"], "frozen/4x", high=0.0),
    ),
    _of(
        "frozen-extension-beats-the-window",
        "Without tuning an extension beats a window",
        "Without tuning an extension does more for a trained RoPE model than a window at evaluation.",
        "In the bin that ends at 4 times the trained length YaRN and NTK-aware, frozen, pay less "
        "(difference below 0) than plain RoPE with every query held to the last keys of one trained length.",
        [Ask(f"{name}:frozen/4x", "rope:frozen-window/4x", high=0.0) for name in ("yarn", "ntk-aware")],
    ),
    _of(
        "tuning-plain-rope-is-enough",
        "Plain RoPE tuned equally is as good as any extension",
        "Up to the length of the tuning, plain RoPE tuned equally is as good as any extension.",
        "Plain RoPE, tuned, pays less than 0.03 bits per byte more than each extension, tuned, in the bin "
        "that ends at 4 times the trained length.",
        against("rope", EXTENSIONS, "tuned/4x", high=0.03),
    ),
    _of(
        "a-tuned-extension-uses-longer-contexts",
        "After a little tuning the longer context is used",
        "After a little tuning at the longer length the longer context is used.",
        "YaRN and NTK-aware, tuned, pay less than the same tuned model that never sees more than one "
        "trained length, its own oracle (difference below 0), in the bin that ends at 4 times that length. "
        "Not testable unless RoPE or separated sinusoidal, trained at eight lengths, gains more than 0.02 "
        "over its own sliding window in the bin that ends there.",
        changes("yarn, ntk-aware", over_oracle("4x"), high=0.0),
        beside=LONG,
        unless=(TEXT_HAS_MORE,),
    ),
)

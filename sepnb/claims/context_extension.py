"""Experiment `context_extension` (chapter 6): other frequencies for a trained RoPE model.

Written before its records. *Frozen* is read under the extension without training, *tuned* after a twentieth
of the steps at four times the trained length; both with a factor of 4. The sliding window of a tuned model is
that model itself, with its new weights and frequencies: what it pays less than through that window is what it
takes from further back, and not what the tuning taught it.
"""

from functools import partial

from sepnb.claims.asks import Ask, against, changes, pairs
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR

EXTENSIONS = ("position-interpolation", "ntk-aware", "ntk-by-parts", "yarn", "llama3", "raised-base")


def over_window(*places: str) -> list[tuple[str, str]]:
    """The columns of a tuned model and of the same model through its sliding window."""
    return [(f"tight/tuned/{k}", f"tight/tuned-oracle/{k}") for k in places]


_of = partial(Claim, experiment="experiment/context_extension", floors=(BAR,))
_article = partial(_of, source="article-positional-encoding")

CLAIMS = {
    "ntk-frozen-helps": _article(
        "NTK scaling without tuning improves on plain RoPE",
        pairs("ntk-aware - rope", "frozen/2x", "frozen/4x", high=0.0),
    ),
    "the-window-improves-plain-rope": _article(
        "A sliding window improves plain RoPE on long texts",
        changes("rope", [(f"frozen-window/{k}", f"frozen/{k}") for k in ("2x", "4x", "8x", "16x")], high=0.0),
    ),
    "tuned-extensions-reach-the-tuned-length": _article(
        "Tuned extensions work up to the length they are tuned for",
        changes("position-interpolation, ntk-aware, ntk-by-parts, yarn", over_window("2x", "4x"), high=0.03),
    ),
    "ntk-tuned-reads-on": _article(
        "Tuned NTK methods read on past the length they are tuned for",
        changes("ntk-aware, yarn", over_window("8x", "16x"), high=0.03),
    ),
    "frozen-extension-beats-the-window": _of(
        "Without tuning an extension beats a window",
        [Ask(f"{name}:frozen/4x", "rope:frozen-window/4x", high=0.0) for name in ("yarn", "ntk-aware")],
    ),
    "tuning-plain-rope-is-enough": _of(
        "Plain RoPE tuned equally is as good as any extension",
        against("rope", EXTENSIONS, "tuned/4x", high=0.03),
    ),
}

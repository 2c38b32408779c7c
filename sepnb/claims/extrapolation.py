"""Experiment `extrapolation` (chapters 9, 11 and 12): the five extrapolators, the separation, and encodings
alone.

Written before its records. A reading's *gap* is its bits per byte minus those of the same model through a
window of the trained length that slides byte by byte, over the same bytes: so read, the model never leaves
what it was trained on. Bins end at 2, 4 and 8 times the trained length. Every model must clear the bar inside
its trained length: past it, what a model knew is the question.
"""

from functools import partial

from sepnb.claims.asks import FAR, Ask, each, gap, levels, pairs, unless
from sepnb.claims.claim import Claim
from sepnb.claims.language_model import BAR

TABLE = "experiment/extrapolation"

FIVE = ("sinusoidal", "fourier", "cyclic", "learned", "alibi")
"""The slides' equations (2) to (6), by the names of `sepnb.extrapolators`."""

CONTROLS = ("clamp", "wrap", "reflect", "zero", "interpolate")

OURS, DENSE = "separated-learned", "learned"

TRAINED_LONG = ("rope-long", "separated-sinusoidal-long")
(TEXT_HAS_MORE,) = unless(
    "no model trained at the long length gains more than 0.02",
    levels(TRAINED_LONG, "gap/native/8x", high=-0.02),
    any=True,
)
"""A model trained at eight lengths gains more than 0.02 bits per byte over its sliding window in the last
bin: else the text, for models of this size, cannot judge whether any uses more."""

_of = partial(Claim, experiments=(TABLE,), floors=(BAR,))
_slides = partial(_of, source="slides-separation")
_seqpe = partial(_of, source="seqpe-abstract")
_article = partial(_of, source="article-positional-encoding")
_notes = partial(_of, source="notes-positional-encoding")


def smaller(a: str, b: str) -> list[Ask]:
    """The gap of one `model:reading` is smaller than that of another, in every bin."""
    (one, reading), (other, its) = a.split(":"), b.split(":")
    return [Ask(f"{one}:gap/{reading}/{k}", f"{other}:gap/{its}/{k}", high=0.0) for k in FAR]


def alike(readings: tuple[str, ...], other: str, margin: float) -> list[Ask]:
    """Readings of separated learned lie within a margin of another, in every bin."""
    return [
        Ask(f"{OURS}:{name}/{k}", f"{OURS}:{other}/{k}", -margin, margin) for name in readings for k in FAR
    ]


CLAIMS = (
    _slides(
        "the-five-extrapolate",
        "The five approaches extrapolate the position embeddings",
        "Five approaches extrapolate the positional embeddings beyond the training window.",
        "Separated learned under each of equations (2) to (6), corrected, is less than +0.03 bits per byte "
        "above its own sliding window at stride 1, at 2, 4 and 8 times the trained length: one family of "
        "fifteen.",
        levels(OURS, *gap(FIVE), high=0.03),
    ),
    _slides(
        "extrapolation-sinusoidal-survives",
        "Sinusoidal extrapolation survives past the trained length",
        "Sinusoidal extrapolation, equation (2), generates the positions beyond the window with sines and "
        "cosines of the amplitude of the learned embeddings.",
        "Separated learned under equation (2), corrected, is less than +0.03 bits per byte above its own "
        "sliding window at stride 1, at 2, 4 and 8 times the trained length.",
        levels(OURS, *gap("sinusoidal"), high=0.03),
    ),
    _slides(
        "extrapolation-fourier-survives",
        "Fourier extrapolation survives past the trained length",
        "Fourier extrapolation, equation (3), rebuilds the positions beyond the window from the dominant "
        "frequencies of the learned embeddings.",
        "Separated learned under equation (3), corrected, is less than +0.03 bits per byte above its own "
        "sliding window at stride 1, at 2, 4 and 8 times the trained length.",
        levels(OURS, *gap("fourier"), high=0.03),
    ),
    _slides(
        "extrapolation-cyclic-survives",
        "Cyclic linear extrapolation survives past the trained length",
        "Cyclic linear extrapolation, equation (4), continues the window by repeating it with a linear "
        "shift.",
        "Separated learned under equation (4), corrected, is less than +0.03 bits per byte above its own "
        "sliding window at stride 1, at 2, 4 and 8 times the trained length.",
        levels(OURS, *gap("cyclic"), high=0.03),
    ),
    _slides(
        "extrapolation-learned-survives",
        "Learned extrapolation survives past the trained length",
        "Learned extrapolation, equation (5), continues the window by a network that learns a continuous "
        "transformation of normalised positions.",
        "Separated learned under equation (5), corrected, is less than +0.03 bits per byte above its own "
        "sliding window at stride 1, at 2, 4 and 8 times the trained length.",
        levels(OURS, *gap("learned"), high=0.03),
    ),
    _slides(
        "extrapolation-alibi-survives",
        "ALiBi-like extrapolation survives past the trained length",
        "The ALiBi-like extrapolation, equation (6), continues the window by attenuating the embedding of "
        "its last position.",
        "Separated learned under equation (6), corrected, is less than +0.03 bits per byte above its own "
        "sliding window at stride 1, at 2, 4 and 8 times the trained length.",
        levels(OURS, *gap("alibi"), high=0.03),
    ),
    _slides(
        "separation-makes-extrapolation-easier",
        "The separation makes extrapolation easier",
        "The separation has a fundamental advantage for sequence lengths not seen in training: the same "
        "extrapolation loses less than in the dense model that adds its learned table.",
        "Under each of equations (2) to (6), corrected, the gap of separated learned to its own sliding "
        "window at stride 1 is smaller than that of dense learned to its own (difference below 0), at 2 and "
        "at 8 times the trained length: one family of ten.",
        pairs(f"{OURS} - {DENSE}", *gap(FIVE, ("2x", "8x")), high=0.0),
    ),
    _slides(
        "only-the-position-needs-extrapolating",
        "Only the position needs extrapolating",
        "Beyond the trained length only the positional part needs to be extrapolated. (A sinusoid needs no "
        "extrapolation, so that a separated model filled with one should read on.)",
        "Separated and strict sinusoidal, whose rows are known at every position, are less than +0.03 bits "
        "per byte above their own sliding windows at stride 1, at 2, 4 and 8 times the trained length.",
        levels("separated-sinusoidal, strict-sinusoidal", *gap("native"), high=0.03),
    ),
    _of(
        "wrap-in-disguise",
        "The Fourier and the cyclic extrapolation only repeat the table",
        "The Fourier and the cyclic extrapolation do what repeating the table does.",
        "On separated learned, the Fourier extrapolation with all its components and the cyclic one as "
        "printed each lie within 0.05 bits per byte of repeating the table, at 2, 4 and 8 times the trained "
        "length.",
        alike(("fourier-full", "cyclic-literal"), "wrap", 0.05),
    ),
    _of(
        "clamp-in-disguise",
        "The ALiBi-like and the learned extrapolation only hold the last row",
        "The ALiBi-like and the learned extrapolation do about what holding the last row does.",
        "On separated learned, the ALiBi-like and the learned extrapolation, corrected, each lie within "
        "0.10 bits per byte of holding the last row, at 2, 4 and 8 times the trained length.",
        alike(("alibi", "learned"), "clamp", 0.10),
    ),
    _of(
        "mask-rescues-no-extrapolator",
        "A window mask rescues no extrapolator",
        "It is not the number of visible keys that breaks the five extrapolators: a window over the keys "
        "rescues none of them.",
        "Separated learned under each of equations (2) to (6), corrected, with every query held to the last "
        "keys of one trained length, is still more than +0.03 bits per byte above its own sliding window at "
        "stride 1, at 2, 4 and 8 times the trained length.",
        levels(OURS, *gap(each("{}-window", FIVE)), low=0.03),
    ),
    _seqpe(
        "lookup-tables-limit-extrapolation",
        "The size of a learned table limits extrapolation",
        "The fixed-size table of a learned encoding limits extrapolation beyond the trained length, "
        "whichever rule fills its missing rows without training.",
        "Dense learned is more than +0.03 bits per byte above its own sliding window at stride 1, at 2 and "
        "at 8 times the trained length, under each of equations (2) to (6), corrected, and each of the "
        "controls clamp, wrap, reflect, zero and interpolate.",
        levels(DENSE, *gap(FIVE + CONTROLS, ("2x", "8x")), low=0.03),
    ),
    _of(
        "strict-as-good-as-separated",
        "A position stream without text is as good as one with it",
        "A position stream that never hears the text costs nothing inside the trained length: strict is as "
        "good as separated.",
        "Inside the trained length strict minus separated is below +0.02 bits per byte, for the learned "
        "table and for the sinusoid.",
        pairs("strict-learned - separated-learned, strict-sinusoidal - separated-sinusoidal", high=0.02),
        turns=(("strict-sinusoidal", "separated-sinusoidal"),),
    ),
    _seqpe(
        "expert-designed-encodings-mitigate",
        "ALiBi and RoPE lose less past the trained length than a table",
        "Expert-designed encodings such as ALiBi and RoPE mitigate the limits of a table beyond the trained "
        "length.",
        "The gaps of ALiBi and of RoPE to their own sliding windows at stride 1 are smaller than that of "
        "dense learned with its last row held (difference below 0), at 2, 4 and 8 times the trained length.",
        [*smaller("alibi:native", "learned:clamp"), *smaller("rope:native", "learned:clamp")],
    ),
    _article(
        "sinusoid-does-not-extrapolate",
        "The sinusoidal encoding does not extrapolate",
        "Sinusoidal encoding has limitations with longer contexts.",
        "Dense sinusoidal is more than +0.03 bits per byte above its own sliding window at stride 1, at 2, "
        "4 and 8 times the trained length.",
        levels("sinusoidal", *gap("native"), low=0.03),
    ),
    _of(
        "separation-helps-the-sinusoid",
        "With a sinusoid the separated model loses less past the trained length",
        "With a sinusoid as well, the separated model loses less beyond the trained length than the dense "
        "one that adds it.",
        "The gap of separated sinusoidal to its own sliding window at stride 1 is smaller than that of "
        "dense sinusoidal to its own (difference below 0), at 2, 4 and 8 times the trained length.",
        pairs("separated-sinusoidal - sinusoidal", *gap("native"), high=0.0),
    ),
    _article(
        "rope-struggles-beyond-length",
        "RoPE struggles past the trained length",
        "Models trained with RoPE struggle with sequences longer than those they were trained on.",
        "RoPE is more than +0.03 bits per byte above its own sliding window at stride 1, at 2, 4 and 8 "
        "times the trained length.",
        levels("rope", *gap("native"), low=0.03),
    ),
    _of(
        "rope-needs-a-window",
        "A window over the keys repairs RoPE",
        "What breaks RoPE is the distance and the number of the keys: a window over the keys is enough to "
        "repair it.",
        "At 4 and 8 times the trained length RoPE is more than +0.03 bits per byte above its own sliding "
        "window at stride 1, and less than +0.03 above it once every query is held to the last keys of one "
        "trained length.",
        levels("rope", *gap("native", ("4x", "8x")), low=0.03)
        + levels("rope", *gap("native-window", ("4x", "8x")), high=0.03),
    ),
    _article(
        "rope-leads-more-on-longer-sequences",
        "RoPE's lead over absolute encodings grows with length",
        "Going from absolute encodings to RoPE has improved performance especially on longer sequences.",
        "The gap of RoPE to its own sliding window at stride 1 is smaller than that of dense sinusoidal, "
        "and than that of dense learned with its last row held (differences below 0), at 2, 4 and 8 times "
        "the trained length: what RoPE is ahead there, it is ahead by more than within its window.",
        [*smaller("rope:native", "sinusoidal:native"), *smaller("rope:native", "learned:clamp")],
    ),
    _notes(
        "alibi-flat-beyond-length",
        "ALiBi reads texts longer than those it was trained on",
        "With ALiBi one trains on short sequences and reads longer ones.",
        "ALiBi is less than +0.03 bits per byte above its own sliding window at stride 1, at 2, 4 and 8 "
        "times the trained length.",
        levels("alibi", *gap("native"), high=0.03),
    ),
    _notes(
        "alibi-does-not-use-longer-context",
        "ALiBi does not use more context than it was trained on",
        "Given a longer context than in training, ALiBi might not use more of it than it was trained on.",
        "ALiBi is not more than 0.02 bits per byte below its own sliding window at stride 1, at 4 and 8 "
        "times the trained length; not testable unless one of the two models trained at the long length "
        "gains more than 0.02 over its sliding window in the last bin, so that this text has something to "
        "give to longer contexts.",
        levels("alibi", *gap("native", ("4x", "8x")), low=-0.02),
        unless=(TEXT_HAS_MORE,),
    ),
)

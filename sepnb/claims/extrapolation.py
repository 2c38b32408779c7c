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
    "no model trained at eight lengths gains more than 0.02 over its own sliding window",
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
        levels(OURS, *gap(FIVE), high=0.03),
        statement="Five approaches extrapolate the positional embeddings beyond the training window.",
    ),
    _slides(
        "extrapolation-sinusoidal-survives",
        "Sinusoidal extrapolation survives past the trained length",
        levels(OURS, *gap("sinusoidal"), high=0.03),
        statement="Sinusoidal extrapolation, equation (2), generates the positions beyond the window with "
        "sines and cosines of the amplitude of the learned embeddings.",
    ),
    _slides(
        "extrapolation-fourier-survives",
        "Fourier extrapolation survives past the trained length",
        levels(OURS, *gap("fourier"), high=0.03),
        statement="Fourier extrapolation, equation (3), rebuilds the positions beyond the window from the "
        "dominant frequencies of the learned embeddings.",
    ),
    _slides(
        "extrapolation-cyclic-survives",
        "Cyclic linear extrapolation survives past the trained length",
        levels(OURS, *gap("cyclic"), high=0.03),
        statement="Cyclic linear extrapolation, equation (4), continues the window by repeating it with a "
        "linear shift.",
    ),
    _slides(
        "extrapolation-learned-survives",
        "Learned extrapolation survives past the trained length",
        levels(OURS, *gap("learned"), high=0.03),
        statement="Learned extrapolation, equation (5), continues the window by a network that learns a "
        "continuous transformation of normalised positions.",
    ),
    _slides(
        "extrapolation-alibi-survives",
        "ALiBi-like extrapolation survives past the trained length",
        levels(OURS, *gap("alibi"), high=0.03),
        statement="The ALiBi-like extrapolation, equation (6), continues the window by attenuating the "
        "embedding of its last position.",
    ),
    _slides(
        "separation-makes-extrapolation-easier",
        "The separation makes extrapolation easier",
        pairs(f"{OURS} - {DENSE}", *gap(FIVE, ("2x", "8x")), high=0.0),
        statement="The separation has a fundamental advantage for sequence lengths not seen in training: "
        "the same extrapolation loses less than in the dense model that adds its learned table.",
    ),
    _slides(
        "only-the-position-needs-extrapolating",
        "Only the position needs extrapolating",
        levels("separated-sinusoidal, strict-sinusoidal", *gap("native"), high=0.03),
        statement="Beyond the trained length only the positional part needs to be extrapolated. (A sinusoid "
        "needs no extrapolation, so that a separated model filled with one should read on.)",
    ),
    _of(
        "wrap-in-disguise",
        "The Fourier and the cyclic extrapolation only repeat the table",
        alike(("fourier-full", "cyclic-literal"), "wrap", 0.05),
    ),
    _of(
        "clamp-in-disguise",
        "The ALiBi-like and the learned extrapolation only hold the last row",
        alike(("alibi", "learned"), "clamp", 0.10),
    ),
    _of(
        "mask-rescues-no-extrapolator",
        "A window mask rescues no extrapolator",
        levels(OURS, *gap(each("{}-window", FIVE)), low=0.03),
    ),
    _seqpe(
        "lookup-tables-limit-extrapolation",
        "The size of a learned table limits extrapolation",
        levels(DENSE, *gap(FIVE + CONTROLS, ("2x", "8x")), low=0.03),
        statement="The fixed-size table of a learned encoding limits extrapolation beyond the trained "
        "length, whichever rule fills its missing rows without training.",
    ),
    _of(
        "strict-as-good-as-separated",
        "A position stream without text is as good as one with it",
        pairs("strict-learned - separated-learned, strict-sinusoidal - separated-sinusoidal", high=0.02),
        turns=(("strict-sinusoidal", "separated-sinusoidal"),),
    ),
    _seqpe(
        "expert-designed-encodings-mitigate",
        "ALiBi and RoPE lose less past the trained length than a table",
        [*smaller("alibi:native", "learned:clamp"), *smaller("rope:native", "learned:clamp")],
        statement="Expert-designed encodings such as ALiBi and RoPE mitigate the limits of a table beyond "
        "the trained length.",
    ),
    _article(
        "sinusoid-does-not-extrapolate",
        "The sinusoidal encoding does not extrapolate",
        levels("sinusoidal", *gap("native"), low=0.03),
        statement="Sinusoidal encoding has limitations with longer contexts.",
    ),
    _of(
        "separation-helps-the-sinusoid",
        "With a sinusoid the separated model loses less past the trained length",
        pairs("separated-sinusoidal - sinusoidal", *gap("native"), high=0.0),
    ),
    _article(
        "rope-struggles-beyond-length",
        "RoPE struggles past the trained length",
        levels("rope", *gap("native"), low=0.03),
        statement="Models trained with RoPE struggle with sequences longer than those they were trained on.",
    ),
    _of(
        "rope-needs-a-window",
        "A window over the keys repairs RoPE",
        levels("rope", *gap("native", ("4x", "8x")), low=0.03)
        + levels("rope", *gap("native-window", ("4x", "8x")), high=0.03),
    ),
    _article(
        "rope-leads-more-on-longer-sequences",
        "RoPE's lead over absolute encodings grows with length",
        [*smaller("rope:native", "sinusoidal:native"), *smaller("rope:native", "learned:clamp")],
        statement="Going from absolute encodings to RoPE has improved performance especially on longer "
        "sequences.",
    ),
    _notes(
        "alibi-flat-beyond-length",
        "ALiBi reads texts longer than those it was trained on",
        levels("alibi", *gap("native"), high=0.03),
        statement="With ALiBi one trains on short sequences and reads longer ones.",
    ),
    _notes(
        "alibi-does-not-use-longer-context",
        "ALiBi does not use more context than it was trained on",
        levels("alibi", *gap("native", ("4x", "8x")), low=-0.02),
        statement="Given a longer context than in training, ALiBi might not use more of it than it was "
        "trained on.",
        unless=(TEXT_HAS_MORE,),
    ),
)

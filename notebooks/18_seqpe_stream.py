# %% [markdown]
# # 18. SeqPE as the position stream
#
# **Finding.** A separated model keeps the position in dimensions of its own, the position stream. SeqPE writes an index as a string of
# digits and lets a small network turn it into a vector. We fill the position stream with these vectors and let some training texts begin at
# a random index (*random offsets*). If we add SeqPE's two losses, the model gets worse far from index 0. For a text that begins not at 0
# but at another round index seen in training (a multiple of 1,000), the bits per byte change by
# {num}`18_seqpe_stream/covered_aligned_shifts:+.2f` with random offsets alone, and by {num}`18_seqpe_stream/covered_aligned_separated:+.2f`
# if both losses are added. Added to random offsets, the losses help only in texts longer than two trained lengths, where the model fails
# with or without them.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import experiments
from sepnb.data import text as texts
from sepnb.evaluation import evaluate
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.encoding_methods import RANDOM_POSITIONS
from sepnb.experiments.methods import run_of
from sepnb.experiments.seqpe_stream import BESIDE, MODES, starts
from sepnb.experiments.variant_methods import root
from sepnb.models import LanguageModel
from sepnb.plots import figures
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.seqpe import digits, distillation_loss
from sepnb.seqpe.digits import misaligned, period
from sepnb.training import train
from sepnb.training.seqpe_losses import encoder_of

figures.use_style()
runs = experiments.get("seqpe_stream").table(profile)
recipes = experiments.get("recipes").table(profile)
beside = recipes[recipes.method.isin(BESIDE)].copy()
beside.attrs["records"] = [
    one for one in recipes.attrs["records"] if one.config["method"] in BESIDE
]
of = RunTable(pd.concat([runs, beside], ignore_index=True))
methods = list(dict.fromkeys(runs.method))
have = RunTable(runs).made
numbers = {"runs": len(have), "runs_declared": len(runs)}
beyond = RunTable(experiments.get("extrapolation").table(profile))

# %% tags=["hide-input"]
KINDS = {"aligned": "round", "misaligned": "not round"}
GROUPS = {
    "seen,\nround": "covered-aligned",
    "seen,\nnot round": "covered-misaligned",
    "never seen,\nround": "never-seen-aligned",
    "never seen,\nnot round": "never-seen-misaligned",
}
ENDS = {
    "sinusoidal": "sinusoid",
    "sinusoidal-shifts": "sinusoid, offsets",
    "seqpe-plain": "digits alone",
    "seqpe-shifts": "digits, offsets",
    "seqpe-contrastive": "offsets + contrastive",
    "seqpe": "offsets + both losses",
    "seqpe-still": "both losses, no offsets",
    "seqpe-score-contrastive": "score, contrastive",
    "seqpe-score": "score, both losses",
}
BASES = {"sinusoidal": "dense, sinusoid", "rope": "dense, RoPE"}
SCORE = "dense-seqpe-score"
CHAIN = {
    "separated-seqpe-plain": "plain",
    "separated-seqpe-shifts": "shifts",
    "separated-seqpe-contrastive": "contrastive",
    "separated-seqpe": "separated",
}
PLAIN, SHIFTED, CONTRASTED, BOTH = CHAIN


def named(method):
    """The name of a method in figures and tables."""
    mode, _, end = method.partition("-")
    return f"{mode}, {ENDS[end]}" if end in ENDS else BASES.get(method, method)


def at_start(method, group, number):
    """By seed, how much more one start of a group costs than 0."""
    return of.minus(f"{method}:native-at-{group}-{number}", f"{method}:native/1x")


def moved(method, group):
    """By seed, how much more the starts of a group cost than 0: the mean of both."""
    return (at_start(method, group, 1) + at_start(method, group, 2)) / 2


# %% tags=["hide-input"]
QUOTED = {
    "covered-aligned": CHAIN,
    "covered-misaligned": {PLAIN: "plain", SHIFTED: "shifts"},
    "never-seen-aligned": {
        BOTH: "separated",
        "separated-sinusoidal-shifts": "separated_sinusoid",
        SCORE: "score",
    },
}
numbers |= {
    f"{group.replace('-', '_')}_{short}": chapter_numbers.mean_of(moved(name, group))
    for group, names in QUOTED.items()
    for name, short in names.items()
}
without = beyond.values("none", "native/1x")
covered = sum(moved("separated-seqpe", f"covered-{kind}") for kind in KINDS) / 2
covered = (covered + of.values("separated-seqpe", "native/1x")).reindex(without.index)
numbers["bits_covered_separated"] = chapter_numbers.mean_of(covered)


# %% tags=["hide-input"]
def look_of(method):
    """Colour and marker say where the position embedding goes."""
    looks = {"separated": ("#6b4500", "o"), "strict": ("#00558a", "s")}
    colour, marker = looks.get(method.split("-")[0], ("#d55e00", "D"))
    return figures.Method(method, colour, marker=marker)


def panels(titles, values_of, order):
    """A panel per title and a row per method, of `values_of(method, title)` by seed."""
    size = (8.6, 1.2 + 0.27 * len(order))
    fig, axes = plt.subplots(1, len(titles), figsize=size, sharey=True)
    for ax, title in zip(axes, titles, strict=True):
        ax.set_xscale("symlog", linthresh=0.1)
        rows = {named(one): [(values_of(one, title), look_of(one))] for one in order}
        figures.seed_rows(ax, rows, size=6, missing="not run")
        ax.axvline(0.03, color=figures.FAINT, linewidth=1, linestyle=":")
        ax.set(title=title, xlabel="bits per byte")
        ax.set_xticks([0, 0.1, 1], ["0", "0.1", "1"])
        ax.minorticks_off()
    return fig


fig = panels(GROUPS, lambda name, title: moved(name, GROUPS[title]), methods)
shifted, both = (text_of(moved(name, "covered-aligned")) for name in (SHIFTED, BOTH))
shown = (
    f"At round starts seen in training, the separated model loses {both} bits per "
    f"byte with both losses and {shifted} with random offsets alone. "
)
figures.show(
    fig,
    name="fig-stream-starts",
    alt="Four dot plots over the methods: how much more the same bytes cost at a far "
    f"start than from index 0 on. {shown}",
    caption=f"{shown}Each panel shows how much more the same bytes cost if the text "
    "begins at a far index and not at 0. Round: the low digits are the same "
    "as from 0 on. Seen: below the largest index drawn in training. Dots: means; bars: "
    "95 % t intervals; ticks: seeds. Dotted: the bound of the rules, 0.03. "
    "Linear up to 0.1, then logarithmic.",
)

# %% [markdown]
# > **Question.** Does a position stream of digit strings let a separated or strict model read longer texts than in training, or texts that
# > begin at indices never seen in training?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 30 s of one CPU core, most of it for three tiny trainings; nothing is downloaded. The records:
#   `sepnb run seqpe_stream`, with runs of three to four minutes on one core, which read ELTeC (`sepnb data eltec-eng`).
# - **You need**: {doc}`chapter 10 <10_strict>` for the strict model, {doc}`chapter 12 <12_extrapolators>` for the sliding-window baseline
#   and the four verdicts, {doc}`far distances <93_far_distances>` for variants and replaced context.
# - **You will learn**: what SeqPE's losses change in a separated model; how to test a far index apart from a longer text.
# - **Claims tested**: the rules were written before the records of `seqpe_stream`. Known by then were the records of the sinusoid without
#   random offsets, of RoPE and of ALiBi, some runs of SeqPE in the score, and that no model trained at eight lengths gains from far text.
# - **Of the source** we read the abstract and the released code, not the paper itself.
# ```
#
# ## An embedding for every index
#
# A longer text has new indices, more keys and longer distances. {term}`SeqPE` {cite:p}`li2025` has an embedding for every index, and two
# losses that train it without any text. The state of a separated model joins a position stream and a content stream,
# $[\,p_i \,\|\, s_t\,]$. Here the embedding of the index $i$ is the position stream:
#
# $$
# p_i = E(\mathrm{digits}(i)) .
# $$ (eq-seqpe-stream)
#
# This stream reaches the content through attention alone. In the package this is {class}`~sepnb.seqpe.SeqPE` with `site="input"`.

# %%
small = lm.SIZES["smoke"]
RATE = 4e-3  # the learning rate of the live trainings
config = run_of("demo", "smoke", "strict-seqpe", seed, RATE).model
torch.manual_seed(seed)
model = LanguageModel(config).eval()
encoder = encoder_of(model)
indices = torch.tensor([0, 1, 12, 1385, 91_000])
content = torch.zeros(1, len(indices), config.streams.widths["sem"])
state = model.transformer.input_state(content, indices)
assert torch.allclose(state["pos"][0], encoder.plain(indices), atol=1e-6)
assert not state["sem"].any(), "the content holds no position"
for i, string in zip(indices.tolist(), encoder.strings(indices).tolist(), strict=True):
    print(f"{i:>6} -> {' '.join(map(str, string))}")
numbers["highest"] = encoder.highest[0]
numbers["encoder_parameters"] = sum(p.numel() for p in encoder.parameters())
numbers["parameters"] = model.parameter_counts()["total"]
try:
    model(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([encoder.highest[0] + 1]))
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# Five digits end at {num}`18_seqpe_stream/highest:,`, and the next position is refused. The encoder has
# {num}`18_seqpe_stream/encoder_parameters:,` of the small model's {num}`18_seqpe_stream/parameters:,` parameters. Longer texts need no more
# parameters, as long as their indices have at most five digits.
#
# ## What the losses touch
#
# Training minimises
#
# $$
# \mathcal{L} = \mathcal{L}_{\text{text}} + \lambda_{\text{c}}\, \mathcal{L}_{\text{contrastive}}
#   + \lambda_{\text{d}}\, \mathcal{L}_{\text{distillation}}.
# $$ (eq-seqpe-objective)
#
# The contrastive loss asks which of several positions is nearest. The distillation loss makes the inside of other windows look like that of
# the trained one ({doc}`chapter 16 <16_two_losses>`). The gradients of both losses reach the encoder and nothing else
# ({class}`~sepnb.training.seqpe_losses.SeqPELosses`).

# %%
losses = run_of("demo", "smoke", "strict-seqpe", seed, RATE).training.auxiliary
model.train()
losses.bind(seed)(model).backward()
touched = {name for name, p in model.named_parameters() if p.grad is not None}
own = {name for name, _ in model.named_parameters() if ".encoder." in name}
assert touched == own, "no gradient outside of the encoder"
print(f"{len(touched)} of {len(list(model.parameters()))} parameter tensors")

# %% [markdown]
# In a tenth of the training steps, the texts of a batch begin at one random index ({term}`random offsets <random-offset training>`), so the
# layers above the stream meet far embeddings too. Those steps have no distillation loss, because its teacher is the window at 0.
#
# ## Round starts
#
# A window of $L$ positions has a {term}`round start` if it begins at a multiple of the smallest power of ten that is at least $L$. Its low
# digits then run as in the window at 0, and only the digits before them are new. Other windows have other low digits. A model that has
# learned only the low digits would read round windows well and the others badly.

# %%
L = lm.SIZES["laptop" if profile == "smoke" else profile].length
every, step = period(L), misaligned(L)
own = digits(torch.arange(L), width=5)
low = len(str(every)) - 1
rows = []
for name, start in starts(L).items():
    window = digits(start + torch.arange(L), width=5)
    same = bool((window[:, -low:] == own[:, -low:]).all())
    assert same == ("misaligned" not in name)
    rows.append(
        {
            "start": start,
            "first position": " ".join(map(str, window[0].tolist())),
            "last position": " ".join(map(str, window[-1].tolist())),
            "low digits": "as at 0" if same else "others",
            "seen in training": "yes" if start + L <= RANDOM_POSITIONS * L else "no",
        }
    )
figures.show_table(
    pd.DataFrame(rows).sort_values("start"),
    caption=f"The starts at which a trained length of {L} is read. Round starts are "
    f"multiples of {every}; the others lie {step} further on.",
)
numbers["largest"] = RANDOM_POSITIONS * L

# %% [markdown]
# Random offsets {cite:p}`kiyono2021,likhomanenko2021` and losses draw positions below {num}`18_seqpe_stream/largest:,`. We call an index
# below this limit {term}`seen in training <index seen in training>`, even for methods that train without offsets and losses. At each of the
# four starts never seen, some digit occurs at a place where it never occurred in training.
#
# ## Live: three tiny streams
#
# We briefly train three strict models on source code. A sinusoid and SeqPE with its losses get the same random offsets. The third model has
# digit strings alone and is trained only on the window at 0. All three then read the same bytes from ever farther starts.

# %%
held_out = texts.windows(
    texts.load(small.text.name).validation, length=small.length, per_document=1024
).tokens[:24]
near, step = period(small.length), misaligned(small.length)
aligned = near * np.array([1, 3, 8, 15, 40, 100, 240, 480, 910])
begun = {"aligned": aligned, "misaligned": aligned + step}
THREE = {
    "sinusoid": "strict-sinusoidal-shifts",
    "digits": "strict-seqpe-plain",
    "seqpe": "strict-seqpe",
}
# In float64, because with the losses errors of rounding grow and change numbers.
models, live, from_zero = {}, {}, {}
for what, name in THREE.items():
    run = run_of("demo", "smoke", name, seed, RATE, steps=120)
    models[what], loss = run.build().double(), run.training.bound_auxiliary(seed)
    train(models[what], run.batches(), run.training, device=device, auxiliary=loss)

    def bits(start, model=models[what]):
        at = start + np.arange(small.length)
        return evaluate(model, held_out, positions=at, device=device).bits_per_byte

    from_zero[what] = bits(0)
    for kind, at in begun.items():
        live[what, kind] = np.array([bits(start) for start in at]) - from_zero[what]

# %% [markdown]
# At the first layer, a window of the stream is a cloud of points, one for each place. We measure how far it has moved from the
# cloud at 0, place by place, in units of the width of that cloud. Shuffling the places of the cloud at 0 would move it by $\sqrt 2$ widths on
# average.


# %%
def cloud(model, start):
    """The stream of a window at the first layer, `[L, d_pos]`."""
    at = start + torch.arange(small.length, device=device)
    nothing = torch.zeros(1, len(at), config.streams.widths["sem"], device=device)
    state = model.eval().transformer.input_state(nothing.double(), at)
    return state["pos"][0].detach().double()


def displacement(one, other):
    """How far two clouds lie apart, place by place."""
    return (one - other).square().sum(dim=1).mean().sqrt().item()


def spread(one):
    """How far the places of a cloud lie from their mean."""
    return displacement(one, one.mean(dim=0))


away, width = {}, {}
for what, kind in live:
    home = cloud(models[what], 0)
    there = [cloud(models[what], int(start)) for start in begun[kind]]
    wide = spread(home)
    away[what, kind] = np.array([displacement(home, one) for one in there]) / wide
    width[what, kind] = np.array([spread(one) for one in there]) / wide

largest = RANDOM_POSITIONS * small.length
seen = begun["misaligned"] + small.length <= largest
for kind in begun:
    familiar = live["digits", kind][seen]
    numbers[f"live_digits_{kind}_covered"] = float(familiar.mean())
numbers |= {f"live_{one}_home": from_zero[one] for one in ("sinusoid", "seqpe")}

# %% tags=["hide-input"]
LIVE = {
    "sinusoid": ("sinusoid, random offsets", "#6b4500", "v"),
    "digits": ("digit strings alone", "#d55e00", "o"),
    "seqpe": ("SeqPE: offsets, both losses", "#00558a", "D"),
}
fig, axes = plt.subplots(2, 3, figsize=(8.6, 4.6), sharex=True, sharey="row")
for column, (what, (title, colour, marker)) in enumerate(LIVE.items()):
    for kind, at in begun.items():
        dash = "-" if kind == "aligned" else (0, (1, 1.2))
        look = figures.Method(KINDS[kind], colour, dash, marker, kind == "aligned")
        axes[0, column].plot(at, live[what, kind], **look.line())
        axes[1, column].plot(at, away[what, kind], **look.line())
    axes[0, column].set(title=title, xscale="log")
    axes[1, column].set(xlabel="index of the first byte", yscale="log")
    axes[1, column].axhline(2**0.5, color=figures.FAINT, linewidth=1)
    axes[0, column].axhline(0, color=figures.FAINT, linewidth=1)
    for ax in axes[:, column]:
        ax.axvline(largest, color=figures.FAINT, linewidth=1, linestyle=":")
    axes[0, column].legend(frameon=False, fontsize=8.5)
axes[0, 0].set_ylabel("bits per byte\nmore than from 0")
axes[1, 0].set_ylabel("moved, in widths\nof the cloud at 0")
figures.show(
    fig,
    name="fig-stream-live",
    alt="Six panels, a column for each of three tiny strict models. Above: how much "
    "more the same windows cost than at index 0, against the index at which they "
    "begin, at round starts and at others. Below: how far their position stream has "
    "moved, with a line at the square root of two. A dotted line marks the largest "
    "position drawn in training. Digit strings alone lose only at starts that are not "
    "round; SeqPE has moved at nearly all starts.",
    caption="Digit strings alone lose at starts that are not round, the sinusoid at "
    "both kinds. Above: how much more the same bytes cost than from 0 on. Below: how "
    "far the stream of their window has moved, with a line at the square root of 2. "
    f"Dotted: the largest position drawn in training, {largest:,}. Tiny "
    "models, trained live on source code with one seed.",
)

# %% [markdown]
# **With digit strings alone**, the model reads the last digits and hardly the first, which were always 0. Left of the dotted line, round
# starts change its loss by {num}`18_seqpe_stream/live_digits_aligned_covered:+.3f` bits per byte, other starts by
# {num}`18_seqpe_stream/live_digits_misaligned_covered:+.3f`.
#
# **With random offsets and both losses**, round windows move as far as others. A far start still costs little, because this tiny model
# hardly uses positions. From 0 on its loss is {num}`18_seqpe_stream/live_seqpe_home:.2f` bits per byte, against
# {num}`18_seqpe_stream/live_sinusoid_home:.2f` for the model with the sinusoid.
#
# ## The experiment
#
# A series starts from its base, the sinusoid, and changes one thing at a time, apart from the learning rate (the best of three for each
# mode, chosen with one seed). Digit strings replace the sinusoid. Then random offsets are added, then the contrastive loss, then the
# distillation. *Separated* and *strict* models have the stream. *Dense* models add the embedding to the content. *Score* means a dense
# model with SeqPE as a term of the score, as in the released text program. *SeqPE* without further words means a model with random offsets
# and both losses.
#
# The sinusoids without random offsets and RoPE are runs of {doc}`far distances <93_far_distances>`, with the same seeds
# and bytes.
#
# A model that hardly uses positions reads all indices equally well. So the claim on seen indices counts only if its models are clearly
# better than a model without positions.
#
# ### Where a text begins
#
# We read one trained length of bytes from 0 on and from the starts listed above. Neither the number of keys nor any distance is new, so
# the difference is the cost of the index ({numref}`fig-stream-starts`).
#
# **At seen starts, digit strings alone are nearly periodic.** Round starts cost the separated model only
# {num}`18_seqpe_stream/covered_aligned_plain:+.3f` bits per byte, and other starts cost
# {num}`18_seqpe_stream/covered_misaligned_plain:+.2f`. Past the limit, round starts cost clearly more too. Random offsets reduce the cost
# of other seen starts to {num}`18_seqpe_stream/covered_misaligned_shifts:+.2f`. At round starts there is hardly anything to gain.
#
# **Added to random offsets, the two losses hurt.** At seen round starts the contrastive loss raises the cost from
# {num}`18_seqpe_stream/covered_aligned_shifts:+.3f` to {num}`18_seqpe_stream/covered_aligned_contrastive:+.2f`; the distillation changes
# little. Without the random offsets, the model with both losses loses about twice as much there. At seen starts that are not round, this
# model still loses less, on average, than digit strings alone.
#
# We expected SeqPE to read seen indices as well as those from 0 on ({verdict}`seqpe-reads-covered-indices-alike: refuted`), and those never
# seen too. It does neither.
#
# **With both losses, a start far from 0 was worse on average than having no positions at all** (exploratory). In texts that begin at seen
# starts, the separated model with both losses has a loss of {num}`18_seqpe_stream/bits_covered_separated:.2f` bits per byte (three seeds).
# A model without positions has a loss of {num}`extrapolation/none/native/1x:.2f`, wherever the text begins.
#
# **The sinusoid loses less at indices never seen.** At round starts never seen, the separated sinusoid with the same offsets loses
# {num}`18_seqpe_stream/never_seen_aligned_separated_sinusoid:+.2f` bits per byte, and SeqPE loses
# {num}`18_seqpe_stream/never_seen_aligned_separated:+.2f`. We had claimed that SeqPE loses less
# ({verdict}`seqpe-beats-the-sinusoid-at-far-indices: refuted`). As a term of the score, SeqPE loses
# {num}`18_seqpe_stream/never_seen_aligned_score:+.2f`.

# %% tags=["hide-cell"]
whole = profile == "laptop" and len(have) == len(runs)
if whole:  # what is said
    assert at_start(PLAIN, "never-seen-aligned", 1).mean() > 0.4, "from 8000 on"
    offsets_aside = []
    for kind in KINDS:
        group, far = f"covered-{kind}", f"never-seen-{kind}"
        share = moved("separated-seqpe-still", group) / moved(BOTH, group)
        assert share.between(1.8, 2.5).all(), "twice as much"
        assert abs((moved(BOTH, group) - moved(CONTRASTED, group)).mean()) < 0.03
        assert (moved(BOTH, far) - moved(SHIFTED, far)).min() > 0, "cost more there"
        less = moved(PLAIN, group).mean() - moved("separated-seqpe-still", group).mean()
        offsets_aside.append(less)
    assert offsets_aside[0] < 0 < offsets_aside[1], "lower at the others, on average"

# %% [markdown]
# ### A longer text
#
# In a text of eight trained lengths, a model with random offsets has seen every index in training, but never so many keys or such long
# distances. The {term}`gap <gap>` of a model is its loss minus its loss with a sliding window of one trained length, which moves byte by
# byte. We measure it in bins that end at two, four and eight lengths.

# %% tags=["hide-input"]
BINS = {"to 2L": "2x", "to 4L": "4x", "to 8L": "8x"}


def worst(name, how):
    """The gap in the bin with the largest mean, by seed."""
    found = [of.values(name, f"gap/{how}/{k}") for k in BINS.values()]
    return max(found, key=lambda gap: gap.mean() if len(gap) else -np.inf)


def price(name):
    """By seed, the loss inside the trained length minus that of the base."""
    return of.difference(name, root(name), "bits_per_byte")


told = {
    "gap_shifts": worst(SHIFTED, "native"),
    "gap_separated": worst(BOTH, "native"),
    "gap_separated_sinusoid": worst("separated-sinusoidal-shifts", "native"),
    "price_separated": price(BOTH),
    "lead_separated": of.minus(f"{BOTH}:native/8x", "rope:native-window/8x"),
}
numbers |= {key: chapter_numbers.mean_of(values) for key, values in told.items()}

everything = [*BESIDE, *methods]
fig = panels(
    BINS, lambda name, title: of.values(name, f"gap/native/{BINS[title]}"), everything
)
longer = "; ".join(
    f"{mode} {of.text(f'{mode}-seqpe', 'gap/native/8x', '+.3f')}" for mode in MODES
)
found_here = (
    "In longer texts every stream is far above its own sliding window. With random "
    "offsets, the losses narrow the gap from two lengths on. "
)
figures.show(
    fig,
    name="fig-stream-longer",
    alt="Three dot plots over the methods: bits per byte above the model's own sliding "
    "window in the bins that end at two, four and eight trained lengths, all keys "
    f"visible. {found_here}",
    caption=f"{found_here}Bits per byte above the model's own sliding window, with all "
    "keys visible. From four to eight trained lengths, with offsets and both losses: "
    f"{longer}. Marks as in the first figure.",
)

# %% [markdown]
# **With random offsets, the losses help from two lengths on.** In its worst bin the separated model is
# {num}`18_seqpe_stream/gap_separated:+.2f` bits per byte above its sliding window with both losses and
# {num}`18_seqpe_stream/gap_shifts:+.2f` with random offsets alone. From two lengths on, the gap is smaller in every seed if both losses or
# the contrastive loss alone are added to the offsets. If the distillation is added to the contrastive loss, the gap changes little there,
# but up to two lengths it is narrower in every seed.
#
# **The sinusoid** with the same offsets, in a tenth of the steps, is {num}`18_seqpe_stream/gap_separated_sinusoid:+.2f` above its sliding
# window. In five of six comparisons (two kinds of model, three bins), SeqPE has the smaller gap in every seed; the sixth is open. But a
# sinusoid trained at random offsets in every step is only {num}`recipes/separated-offsets/gap/native/8x:+.2f` above in the last bin
# ({doc}`far distances <93_far_distances>`), less than SeqPE with both losses.
#
# **Most of SeqPE's gap comes from the index.** If a text of one trained length begins at index $7L$ and not at 0, SeqPE loses
# {num}`seqpe_stream/separated-seqpe/native-at-7x minus native/1x:+.2f` and the sinusoid
# {num}`seqpe_stream/separated-sinusoidal-shifts/native-at-7x minus native/1x:+.2f`. A window mask hides far keys but keeps the indices. So
# it helps the sinusoid a lot and SeqPE hardly at all.
#
# **Separation does not narrow SeqPE's gap.** We expected SeqPE to have a smaller gap in a separated model than added to a dense one
# ({verdict}`separation-helps-seqpe: refuted`). But in the bin up to two lengths the separated model has the larger gap in every seed. This
# rests on few windows: on more of them, with a coarser sliding window, the seeds of the two models overlap. In bits per byte the separated
# model is ahead of the dense one in every bin and seed, because the dense one is worse inside the trained length too.
#
# **As a term of the score** SeqPE in effect attends only to the last trained length: a mask of that width changes its loss by less than a
# millionth of a bit per byte. In four of six seeds it fails between one and two trained lengths and recovers by eight. In the last bin its
# gap is {num}`seqpe_stream/dense-seqpe-score/gap/native/8x:+.3f`, far smaller than with any position stream. But RoPE with a window has a
# lower loss in every bin and seed.

# %% tags=["hide-cell"]
read = [f"native/{k}" for k in BINS.values()]
first, *late = [f"gap/{one}" for one in read]


def lower(one, other, *metrics):
    """Whether one method is below another in every seed, in every metric."""
    return all(of.difference(one, other, k).max() < 0 for k in metrics)


def unclear(one, other, *metrics):
    """Whether seeds disagree, in every metric."""
    return not any(lower(one, other, k) or lower(other, one, k) for k in metrics)


if whole:  # what is said of the streams
    for mode in ("separated", "strict"):
        both, sinusoid = f"{mode}-seqpe", f"{mode}-sinusoidal-shifts"
        assert lower(both, sinusoid, *late)
        ours = of.minus(f"{both}:native-at-7x", f"{both}:native/1x").mean()
        assert 0.85 < ours / of.mean(both, "gap/native/8x") < 1, "nearly all"
        gap, wide = (worst(one, "native").mean() for one in (both, sinusoid))
        assert abs(worst(both, "native-window").mean() - gap) < 0.06, "hardly"
        assert worst(sinusoid, "native-window").mean() < wide / 2, "much"
    assert lower(BOTH, SHIFTED, *late) and lower(CONTRASTED, SHIFTED, *late)
    assert unclear(BOTH, SHIFTED, first)
    assert unclear(BOTH, "separated-sinusoidal-shifts", first)
    assert lower(BOTH, CONTRASTED, first), "the distillation narrows it here alone"
    assert all(abs(of.difference(BOTH, CONTRASTED, k).mean()) < 0.02 for k in late)
    assert lower("dense-seqpe", BOTH, first)
    assert lower(BOTH, "dense-seqpe", "bits_per_byte", *read)

# %% tags=["hide-cell"]
if whole:  # what is said of the term of the score
    for other in ("rope", "sinusoidal", "dense-sinusoidal-shifts"):
        assert lower(SCORE, other, *read[1:])
    for k in read:
        masked = k.replace("/", "-window/")
        assert of.minus(f"{SCORE}:{k}", f"{SCORE}:{masked}").abs().max() < 1e-6
        assert of.minus(f"{SCORE}:{k}", f"rope:{masked}").min() > 0
    streams = [name for name in methods if not name.startswith(SCORE)]
    for k in late:
        assert of.mean(SCORE, k) < min(of.mean(name, k) for name in streams) / 4
    to_two, to_eight = of.values(SCORE, first), of.values(SCORE, late[-1])
    fails = to_two > 0.4
    assert list(fails).count(True) == 4 and (to_eight[fails] < 0.1).all(), "recover"

# %% [markdown]
# ### What the stream is worth
#
# The table has the measures of {doc}`far distances <93_far_distances>`.

# %% tags=["hide-input"]
judged = pd.DataFrame(
    {
        "method": named(name),
        "gap": text_of(worst(name, "native")),
        "gap, window": text_of(worst(name, "native-window")),
        "loss to 8L": of.text(name, "native/8x"),
        "uses": of.text(name, "gain/8x", "+.3f"),
        "above RoPE": text_of(of.minus(f"{name}:native/8x", "rope:native-window/8x")),
        "price": text_of(price(name)),
    }
    for name in methods
)
figures.show_table(
    judged,
    caption="In bits per byte, means over seeds and 95 % t intervals. Gap: above its "
    "own sliding window in the worst of three bins, with all keys visible and with a "
    "window mask. In the bin that ends at 8 trained lengths: the loss, the cost of "
    "replaced context (uses), and the loss above RoPE with a window. Price: inside the "
    "trained length, above the base of the series.",
)

# %% [markdown]
# **SeqPE is not free.** We expected it to cost nothing inside the trained length ({verdict}`seqpe-is-free-in-window: refuted`). But there
# the separated model with offsets and both losses is {num}`18_seqpe_stream/price_separated:+.3f` bits per byte above the separated
# sinusoid, the base of its series.
#
# **It does not match RoPE with a window.** We had expected that it would, but in the last bin the separated model with SeqPE is
# {num}`18_seqpe_stream/lead_separated:+.2f` bits per byte above it.
#
# **It hardly uses the far past.** Replacing the far context changes its loss by {num}`seqpe_stream/separated-seqpe/gain/8x:+.3f` bits per
# byte. But even models trained on long texts gain nothing from far context ({doc}`chapter 12 <12_extrapolators>`).

# %% [markdown]
# ## What the abstract claims, and what we can say
#
# These are the statements of the paper's abstract {cite:p}`li2025` that our records can judge, at our scale. In the rows on language
# modelling and longer texts, SeqPE is a term of the score in a dense model, as in the released text program, but with a narrower encoder
# and different training.
#
# | the abstract, in our words | our verdict |
# |---|---|
# | The size of a learned table limits extrapolation | {verdict}`lookup-tables-limit-extrapolation: reproduced` |
# | The contrastive loss aligns distances | {verdict}`the-contrast-aligns-distances: reproduced` |
# | The distillation repeats the geometry elsewhere | {verdict}`distillation-carries-the-geometry: undecided` |
# | The distillation helps in longer texts | {verdict}`distillation-further-enhances-extrapolation: undecided` |
# | SeqPE surpasses strong baselines in language modelling | {verdict}`seqpe-surpasses-strong-baselines: not reproduced` |
# | It surpasses them in longer texts | {verdict}`seqpe-surpasses-them-past-the-length: not reproduced` |
# | It surpasses them in long-context question answering | {verdict}`questions-seqpe-surpasses-strong-baselines: not reproduced` |
# | It leads in the classification of images | {verdict}`seqpe-leads-in-image-classification: not reproduced` |
# | Its encoder is lightweight | {verdict}`the-encoder-is-lightweight: undecided` |

# %% tags=["hide-input"]
inside = of.difference(SCORE, "rope", "bits_per_byte")
below = of.difference(SCORE, "sinusoidal", "bits_per_byte")
alibi = (of.values(SCORE, "native/8x") - beyond.values("alibi", "native/8x")).dropna()
numbers["score_inside_rope"] = chapter_numbers.mean_of(inside)
numbers["score_inside_sinusoid"] = chapter_numbers.mean_of(below)
numbers["score_longer_alibi"] = chapter_numbers.mean_of(alibi)

# %% [markdown]
# **Inside the trained length** SeqPE as a term of the score is worse than RoPE by {num}`18_seqpe_stream/score_inside_rope:.3f` bits per
# byte and better than the sinusoid without random offsets ({num}`18_seqpe_stream/score_inside_sinusoid:+.3f`).
#
# **Past it**, in the last bin, it beats the dense sinusoid with the same offsets, and RoPE without a window, which fails there. RoPE with a
# window is better. ALiBi is better by {num}`18_seqpe_stream/score_longer_alibi:.3f` bits per byte. {doc}`Chapter 7 <07_every_encoding>`
# compares SeqPE with *every* encoding, with three seeds.
#
# **The encoder** is called lightweight in the abstract. We ask whether it takes less than a twentieth of a training step
# ({verdict}`the-encoder-is-lightweight: undecided`). The narrowest encoder, with its maps and with losses in every step, takes
# {num}`seqpe_cost/width-32-every-1/share:.1%`, too near that bound for the rounds to decide ({doc}`chapter 20 <20_cost_and_speed>`). We
# also claimed this of everything that SeqPE adds, with its longer queries and keys ({verdict}`all-that-seqpe-adds-is-light: refuted`).

# %% [markdown]
# ## What to take away
#
# 1. **Added to random offsets, the two losses hurt the stream far from index 0.** With random offsets alone, a seen round start costs
#    almost nothing; with both losses it costs much more. We expected the losses to help at indices never seen
#    ({verdict}`the-losses-carry-the-stream-further: refuted`), but there the model with both losses loses more in every seed.
# 2. **Far from index 0 and in longer texts, random offsets help even when both losses are used.** Inside the trained length they cost more
#    than our bound, three hundredths of a bit per byte.
# 3. **The stream does not survive in a longer text**, with all keys visible or with a window. We had expected that it would
#    ({verdict}`seqpe-survives: refuted`). Most of its gap comes from the index.
# 4. **As a term of the score**, where the release has it, SeqPE beats the dense sinusoid. Inside the trained length it loses to RoPE, and
#    past it to RoPE with a window.
#
# **Limits.** One kind of text, models of less than a million parameters, one training budget ({num}`18_seqpe_stream/runs` of
# {num}`18_seqpe_stream/runs_declared` runs at this profile). The losses have the released strength and were not tuned; only the contrastive
# loss was run alone, and only with random offsets. What both losses add to offsets was tested in the separated model only. We judge a
# reimplementation, whose encoder has a quarter of the model's width (released: all of it). At far indices we read one trained length at a
# time, from two starts of each kind. The rates of the bases, of RoPE and of ALiBi were chosen after 500 of the 1,200 steps, those of SeqPE
# and of the sinusoid with random offsets after all of them.
#
# **What would change our mind.** Training many times as long, or contrastive candidates from around the anchor, if either reverses a
# verdict above.

# %% [markdown]
# ## Exercises
#
# **1. (medium)** Why is the stream of a strict model with SeqPE computed once per batch, at random offsets too? Which option of
# {class}`~sepnb.training.shifts.ShiftSteps` would end that, and at what cost?

# %% tags=["hide-cell"]
# Solution. One offset is drawn for the whole batch, so that all sequences share their
# positions. per="sequence" would give each its own: the stream then runs once for every
# sequence, and the encoder reads as many windows as there are sequences.
shared = run_of("demo", "smoke", "strict-seqpe", seed, RATE).training.positions
sizes = {"batch_size": 3, "length": 8, "seed": 1, "steps": 1}
for per, shape in (("step", (8,)), ("sequence", (3, 8))):
    always = replace(shared, probability=1.0, per=per)
    (drawn,) = always.batches(texts.load(small.text.name).train, **sizes)
    assert always.outside(drawn.positions) and drawn.positions.shape == shape
assert shared.per == "step"

# %% [markdown]
# **2. (hard)** Let the distillation loss be zero for every window of $L$ positions. Which inner products of a text of $2L$ must then
# equal those of the trained window, and which need not? Show first that windows at multiples of $L$ alone say nothing about products
# across two of them.

# %% tags=["hide-cell"]
# Solution.
# Each window at a multiple of L may be turned freely: products within it stay, up to
# one constant for each window and head, but products across windows change. A window
# that begins between them notices. With windows everywhere, every pair less than L
# apart lies in some window, so its product is given up to that constant. A pair that is
# L or more apart lies in none. The loss is about indices and says nothing about
# distances that no text has shown.
length, columns = 32, 8
home = torch.randn(length, columns, dtype=torch.float64)
turned = home @ torch.linalg.qr(torch.randn(columns, columns, dtype=torch.float64)).Q
between = torch.cat([home[length // 2 :], turned[: length // 2]])
aligned_loss, between_loss = (
    distillation_loss(home[None], window[None], 1).item()
    for window in (turned, between)
)
assert aligned_loss < 1e-12 and between_loss > 0.1
assert (home @ turned.T - home @ home.T).abs().max() > 1
print(f"at L {aligned_loss:.1e}, at L/2 {between_loss:.2f}")

# %% tags=["hide-cell"]
chapter_numbers.publish("18_seqpe_stream", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(runs, beside)

# %% [markdown]
# # Training for far distances
#
# {doc}`Chapter 13 <13_slow_down>` slows positions down after training. On this page models see far positions in training, and a training
# step still costs no more than on short texts.
#
# **Finding.** Two things together let a model read excerpts of novels eight times as long as its training texts, nearly as well as through
# a sliding window. *Position gaps* are jumps in the positions of short training texts; they make far distances familiar. A
# *content-to-position term* is added to the score; it lets the content of a query choose a distance. Separation is not needed: a dense
# model with both and without any position embedding has the lowest loss in {numref}`fig-works-levels`.
#
# **The doubt.** Reading far text without harm is not the same as using it. We could not show that any of these models gained from far text
# in novels. {doc}`Chapter 19 <19_far_text>` has tasks that need it.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import encodings, experiments
from sepnb.data import text as texts
from sepnb.encodings import Heads, Phase
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.methods import POS_SHARE
from sepnb.experiments.variant_methods import VARIANTS, reference
from sepnb.experiments.variants import WINNER
from sepnb.plots import figures, shapes
from sepnb.plots.shapes import DASHED, DOTTED
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import NOT_RUN, RunTable, text_of
from sepnb.training.positions import RandomOffset, TrueGap

figures.use_style()
numbers = {}
size, small = lm.SIZES["laptop"], lm.SIZES["smoke"]
L, d_pos = size.length, size.width // POS_SHARE
library = texts.load(small.text.name)

# %% [markdown]
# ## Four questions
#
# A *variant* is a method of {doc}`chapter 11 <11_language_model>`, or another variant, with one thing changed. All variants read novels of
# eight trained lengths. The *last bin* is the second half of such a text, from $4L$ to $8L$. We ask four questions of each variant, the
# first three in the last bin:
#
# | question | number |
# |---|---|
# | does it *survive*? | bits per byte over its own sliding window at stride 1, all keys visible; below $+0.03$ |
# | does it *use* the far past? | what it costs to replace the far text by another novel; above $+0.02$, and it survives |
# | *quality* | how far its loss is above that of RoPE with a window of $L$ |
# | *price* | how far its loss inside the trained length is above that of its base, a method of chapter 11 |
#
# Results are means over seeds on the test text, from {num}`93_far_distances/runs` of {num}`93_far_distances/runs_declared` declared runs.
# Results *in selection* come from one seed on the validation text, and no verdict rests on them. We chose the models of some claims when
# these results were known; the {doc}`claims page </book/claims>` says so.

# %% tags=["hide-input"]
runs = experiments.get("recipes").table(profile)
extrapolation = experiments.get("extrapolation").table(profile)
of = RunTable(runs)
methods = list(dict.fromkeys(runs.method))
numbers["runs"], numbers["runs_declared"] = len(of.made), len(runs)
SWEPT = "laptop" if profile == "smoke" else profile  # smoke runs take those rates


LINES = {
    "separated sinusoid": ("separated-sinusoidal", "native", "#6b4500", "o", DOTTED),
    "RoPE": ("rope", "native", "#d55e00", "^", DASHED),
    "RoPE, window": ("rope", "native-window", "#d55e00", "^", "-"),
    "ALiBi": ("alibi", "native", "#009e73", "D", (0, (3, 1, 1, 1))),
    "dense, term and gaps": ("dense-phase-gaps", "native", "#0072b2", "s", DASHED),
    "separated, term and gaps": (WINNER, "native", "#6b4500", "v", "-"),
}
BINS = ("1x", "2x", "4x", "8x")
levels = {}
for label, (name, how, *_) in LINES.items():
    source = RunTable(extrapolation) if name == "alibi" else of
    losses = {k: source.values(name, f"{how}/{k}") for k in BINS}
    levels[label] = pd.DataFrame(losses)
known = [set(one.index) for one in levels.values() if len(one)]
shared = sorted(set.intersection(*known)) if known else []
means = {label: one.reindex(shared).mean() for label, one in levels.items()}
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.6))
for ax, bound in zip(axes, (np.inf, 3), strict=True):
    low = {label: one for label, one in means.items() if not one.max() >= bound}
    shapes.curves(ax, range(4), low, [LINES[label][2:] for label in low])
    ax.set_xticks(range(4), ["0 to L", "to 2L", "to 4L", "to 8L"])
    ax.set(xlabel="position in the text", ylabel="bits per byte")
axes[0].set_title("all", fontsize=10)
axes[1].set_title("those below 3, closer", fontsize=10)
axes[0].legend(fontsize=8, loc="center right", bbox_to_anchor=(1.02, 0.4))
at_end = {label: one["8x"] for label, one in means.items()}
figures.show(
    fig,
    name="fig-works-levels",
    alt="Bits per byte by position up to eight trained lengths for six models and ways "
    "of reading; on the right those below 3 alone."
    + (f" Lowest at the end is {min(at_end, key=at_end.get)}." if shared else ""),
    caption="Models with the content-to-position term and position gaps read far text "
    "as well as near text; RoPE does so only with a window. In the last bin "
    f"the dense model with both is at {at_end['dense, term and gaps']:.3f} "
    "bits per byte, the separated one at "
    f"{at_end['separated, term and gaps']:.3f}, RoPE at {at_end['RoPE']:.3f}, "
    f"and at {at_end['RoPE, window']:.3f} with a window of L. Test text, means "
    f"over the {len(shared)} seeds that all models share. ALiBi is from the "
    "runs of chapter 12, on the same bytes.",
)

# %% [markdown]
# Three things are new past the trained length, and each can be shown in training or bounded:
#
# | new | show it in training | or bound it |
# |---|---|---|
# | *index* | random offsets | a sinusoid of short period |
# | *number of keys* | (only long texts do) | a window; sharper attention |
# | *distance* | position gaps | a score that reads distances by waves |
#
# ## The index
#
# **{term}`Random offsets <random-offset training>`** show more indices: each sequence of $L$ tokens begins at a random index below a
# maximum, as in Kiyono et al. {cite:p}`kiyono2021`. ({cite:t}`ruoss2023` draw the positions themselves at random; some models of
# {doc}`chapter 19 <19_far_text>` are trained at such *random positions*.)
#
# **The {term}`short-period sinusoid`** bounds what is new. Its base is chosen so that the longest period is $2L$:
#
# $$
# b = \left(\frac{L}{\pi}\right)^{d_{\text{pos}} / (d_{\text{pos}} - 2)} .
# $$ (eq-torus)
#
# Every wave then shows at least half of its period in every text. At larger indices the other half of the slowest wave and *combinations*
# of waves are still new.

# %%
torus = encodings.base_of_longest_wave(d_pos, 2 * L)
assert np.isclose(torus, (L / np.pi) ** (d_pos / (d_pos - 2)))
assert np.isclose(2 * np.pi * torus ** (1 - 2 / d_pos), 2 * L)
sizes = {"batch_size": 3, "length": 8, "seed": seed, "steps": 1}
batch = next(RandomOffset(64, per="sequence").batches(library.train, **sizes))
for row in batch.positions:
    print(*row)

# %% [markdown]
# Random offsets only move the edge of what the model has seen. At index 1,000,000, which no offset covered, the loss of the separated
# sinusoid with offsets is still {num}`recipes/separated-offsets/native-at-1m minus native/1x:+.2f` bits per byte above that at index 0.
# Without offsets it is {num}`recipes/separated-sinusoidal/native-at-1m minus native/1x:+.2f` above, and the short period alone does not
# help ({num}`recipes/separated-torus/native-at-1m minus native/1x:+.2f`).
#
# We had claimed that offsets alone let a model survive ({verdict}`random-offsets-survive: refuted`). In texts of $8L$ the offsets did show
# all indices, and yet the separated sinusoid is {num}`recipes/separated-offsets/gap/native/8x:+.2f` above its sliding window. Only the
# number of keys and their distances are new there.
#
# A separated model with short periods, offsets and a window reaches its sliding-window baseline, also at index 1,000,000
# ({verdict}`the-torus-and-a-window-reach-the-oracle: held`). With all keys visible the same model is
# {num}`recipes/separated-torus-offsets/gap/native/8x:+.3f` above it.
#
# ## A score in which content chooses a distance
#
# With linear maps on $[\,p \,\Vert\, s\,]$ the score of two tokens is a sum of four products: content with content, content with position
# both ways, position with position. The cross terms can say "this word likes index 17". None of the four can say "this word looks three
# back", because that combines content with a *distance*. Term (b) of Transformer-XL, {eq}`eq-relative-xl`, can, and so can RoPE
# {cite:p}`su2021`. Here are the scores of a *sem head* (a head that writes to the content stream), from the poorest to the richest:
#
# | rung | score of a sem head | here |
# |---|---|---|
# | position with position only | $q_s k_s + q_p k_p$ | *untied*, as in {cite:t}`kitaev2018` and TUPE {cite:p}`ke2021` |
# | and cross terms | $(q_s + q_p)(k_s + k_p)$ | strict, separated |
# | and content with distance | $+ \operatorname{Re} \sum_m c_m(s_i)\, z_m(i)\, \overline{z_m(j)}$ | *content-to-position term* |
# | content with distance, both ways | $q_s^\top R_{j-i}\, k_s + q_p k_p$ | RoPE on the sem heads |
#
# The **{term}`content-to-position term`** is Transformer-XL's term (b) {cite:p}`dai2019` with fixed waves $z_m(i) = e^{\mathrm{j} w_m i}$
# and free coefficients $c_m$, linear in the content of the query. The key gives only its place. In code the term is a set of additional
# columns of queries and keys, the real and imaginary parts of $c_m z_m(i)$ and of $z_m(j)$.

# %% tags=["hide-input"]
torch.manual_seed(seed)
term = Phase(longest=L, waves=16).at_query_key(
    Heads(content_width=8, reading=3, max_length=L)
)
term = term.double()
content = torch.randn(1, 1, 8, dtype=torch.float64)


def looks_at(start, content=content):
    """Scores `[3, L]` of one query over the keys up to it, of a text from `start`."""
    keys = torch.arange(start, start + L)
    with torch.no_grad():
        query, key = term(content, term.prepare(keys[-1:], keys))
    return (query @ key.transpose(-1, -2))[0, :, 0]


moved = (looks_at(10**6) - looks_at(0)).abs().max()
assert 0 < moved < 1e-8

fig, ax = plt.subplots(figsize=(6.8, 2.7))
dashes = "-", DASHED, DOTTED
looks = zip(("#0072b2", "#d55e00", "#009e73"), [""] * 3, dashes, strict=True)
drawn = {n: torch.randn(1, 1, 8, dtype=torch.float64) for n in (1, 2, 3)}
terms = {f"content {n}": looks_at(0, one)[0].flip(-1) for n, one in drawn.items()}
shapes.curves(ax, np.arange(L), terms, looks)
ax.set(xlabel="distance to the key", ylabel="term of the score")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-works-phase",
    alt="Three wavy curves of the term against the distance, one for each of "
    "three random contents of the query.",
    caption="The content of a query chooses its distances: what the "
    "content-to-position term adds to the score, for three random contents. Each has "
    "its own curve over the distance, the same at every index.",
)

# %% [markdown]
# Inside the trained length the term lowers the loss of a strict model, even if the model with the term is narrower and has fewer parameters
# ({num}`recipes/strict-phase-narrow minus strict-sinusoidal/bits_per_byte:+.3f`). In long texts the term alone is not enough. With waves up
# to $8L$ but no gaps, the separated model is {num}`recipes/separated-phase-long/gap/native/8x:+.3f` above its sliding window in the last
# bin, and the dense model {num}`recipes/dense-phase-long/gap/native/8x:+.3f`.
#
# ## Far distances from short texts
#
# **{term}`Position gaps <position gaps>`** train on two chunks of $L/2$ tokens of the same novel. The chunks keep their true indices, and
# up to $8L$ bytes between them are not read. The price is that contiguous context shrinks to $L/2$. PoSE {cite:p}`zhu2024` and the segments
# of {cite:t}`karypis2024` extend the windows of trained models in a similar way. Here a model is trained in this way from the start.

# %%
batch = next(TrueGap(8 * 8).batches(library.train, **sizes))
for row in batch.positions:
    print(*row)

# %% [markdown]
# Gaps repair most of what the term leaves. Trained with gaps, the separated model with the term is
# {num}`recipes/separated-phase-gaps/gap/native/8x:+.3f` above its sliding window and the dense one
# {num}`recipes/dense-phase-gaps/gap/native/8x:+.3f`. Both are below the bound of survival on average, and the separated one is too near it
# for six seeds to decide.
#
# RoPE fails without gaps, and gaps repair nearly all of it: with gaps it is {num}`recipes/rope-gaps/gap/native/8x:+.3f` above its sliding
# window, still more than the bound. And gaps do not repair every score: in selection, a separated sinusoid with gaps and without the term
# is at {num}`recipe_screen/separated-gaps/gap/native/8x:+.2f`.
#
# We also took the far chunk from another novel, so that it shows a distance and nothing else. The separated model trained in this way is
# {num}`recipes/separated-phase-gaps-other/gap/native/8x:+.3f` above its window and the dense one
# {num}`recipes/dense-phase-gaps-other/gap/native/8x:+.3f` (exploratory).
#
# ## What survived
#
# We read the variants on the test text with all keys visible. On average, the only variants that stay below the bound were trained with
# position gaps. (ALiBi, which is no variant, survives without.) If *survives* is below zero in the table, a model reads better with all
# keys than through its own sliding window (at stride 1, on {num}`12_extrapolators/windows_tight` long windows per seed). If *uses* is above
# zero, its predictions depend on the far past. Only if both hold does the far past help. The names of variants are made of these words:
#
# | word | means |
# |---|---|
# | offsets | trained at random offsets |
# | torus | short-period sinusoid |
# | phase; phase long | content-to-position term, with waves up to $L$; up to $8L$, as also in *separated phase gaps* and *dense phase gaps* |
# | gaps; gaps other | position gaps; with the second chunk of another novel |
# | untied | no cross terms |
# | constant | the position stream is the same in every layer |
# | wide; 38 114; narrow | as many parameters as RoPE; the same width without the term; fewer parameters than strict without the term |

# %% tags=["hide-input"]
COLUMNS = {
    "inside L": "{}:bits_per_byte",
    "to 8L": "{}:native/8x",
    "to 8L, window": "{}:native-window/8x",
    "survives": "{}:gap/native/8x",
    "uses": "{}:gain/8x",
    "at 1,000,000": "{}:native-at-1m - {}:native/1x",
}
gap = {name: of.mean(name, "gap/native/8x") for name in methods}
read = [name for name in methods if not np.isnan(gap[name])]
alive = [name for name in read if gap[name] < 0.03]
gapped = [name for name in alive if "gaps" in name.split("-")]
users = [name for name in methods if of.mean(name, "gain/8x") > 0.02]
ran = read or methods
losses = of.grid(
    {name.replace("-", " "): name for name in ran}, COLUMNS, head="variant"
)
prices = (of.difference(name, reference(name), "bits_per_byte") for name in ran)
losses["price"] = list(map(text_of, prices))
losses["parameters"] = [of.times(name, "rope", "block_parameters") for name in ran]
figures.show_table(
    losses,
    caption=f"With all keys visible {len(alive)} of {len(read)} variants stay on "
    f"average below +0.03 over their sliding window, {len(gapped)} of them trained "
    f"with gaps. Replacing far text costs more than 0.02 in {len(users)}. "
    "Bits per byte, means over seeds and 95 % t intervals: inside the trained "
    "length, and in the bin that ends at eight trained lengths with all keys visible "
    "and with a window of L. Survives, uses and price: the questions above. At "
    "1,000,000: L bytes that begin at this index, minus the same from 0. Parameters "
    "are those of the blocks, as multiples of RoPE's.",
)

# %% [markdown]
# ALiBi survives without gaps ({num}`extrapolation/alibi/gap/native/8x:+.3f` above its sliding window). But its loss in the last bin,
# {num}`extrapolation/alibi/native/8x:.3f` bits per byte, is higher than that of RoPE with a window.
#
# **We could not show that any variant uses far text.** Replacing the far text costs more than $0.02$ only in the separated sinusoid
# ({num}`recipes/separated-sinusoidal/gain/8x:+.3f±`), which does not survive. In the survivors it costs at most
# {num}`recipes/dense-phase-gaps/gain/8x:+.3f`.
#
# Perhaps this text does not reward far context, or training was too short. Even RoPE and the separated sinusoid, trained on texts of $8L$
# in chapter 12, gain less than $0.02$ over their sliding windows (their gaps are {num}`extrapolation/rope-long/gap/native/8x:+.3f` and
# {num}`extrapolation/separated-sinusoidal-long/gap/native/8x:+.3f`). Either way we cannot test here whether gaps teach a model to use far
# text.
#
# Exploratory: sliding windows aside, the lowest loss in the last bin is {num}`recipes/dense-phase/native-window/8x:.3f`. It belongs to the
# dense model with the term and *without* gaps, attending only to the last $L$ bytes.
#
# **What it costs inside the trained length.** Offsets cost a separated model with a short-period sinusoid
# {num}`recipes/separated-torus-offsets minus separated-torus/bits_per_byte:+.3f` bits per byte. Gaps cost a separated model with the term
# {num}`recipes/separated-phase-gaps minus separated-phase-long/bits_per_byte:+.3f`. The term, which adds parameters, changes the loss by
# {num}`recipes/separated-phase minus separated-sinusoidal/bits_per_byte:+.3f`.
#
# ## Was it the separation?
#
# Not by itself. Against the same sinusoid added to the content, separation helps. But a dense model with the same kind of score and no
# position embedding, which has more parameters, does better still. We compare a separated model that has the term, gaps and all keys
# visible with three others:
#
# 1. *RoPE with a window.* With as many parameters, the separated model matches it ({verdict}`a-separated-model-stands-beside-rope: held`).
#    Its loss minus that of RoPE is {num}`recipes/separated-torus-phase-long-gaps-wide minus rope/native/8x minus native-window/8x:+.3f` in
#    the last bin and {num}`recipes/separated-torus-phase-long-gaps-wide minus rope/bits_per_byte:+.3f` inside the trained length.
# 2. *A dense model with the same kind of score and training*, which has no position embedding and
#    {num}`recipes/dense-phase-gaps minus separated-torus-phase-long-gaps-wide/block_parameters:,.0f` more parameters in its blocks. We had
#    expected the separated model to be better ({verdict}`separation-helps-the-survivor: refuted`). In the last bin it is
#    {num}`recipes/separated-torus-phase-long-gaps-wide minus dense-phase-gaps/native/8x:+.3f` bits per byte above the dense model.
# 3. *A dense model with the same sinusoid added to the content*, at the best learning rate and scale that we tried. The sinusoid is better
#    in a stream of its own ({verdict}`a-stream-of-its-own-helps-the-survivor: held`). This separated model is narrower than the one above,
#    with two thirds of the dense model's parameters. Its loss minus that of the dense model is
#    {num}`recipes/separated-torus-phase-long-gaps minus sinusoidal-torus-phase-long-gaps/native/8x:+.3f` in the last bin.
#
# **Limits.** The models are small and have one training budget. In novels, models of this kind gain at most
# {num}`12_extrapolators/beyond_most` bits per byte from context beyond eight bytes. Variants mostly take the learning rate of their base.
# In selection, RoPE with gaps is {num}`93_far_distances/gaps_rate_gain` bits per byte better at a lower rate, so other variants may lose as
# much by keeping the rate of their base.
#
# **What would change our mind.** A text that rewards far context, and on which one of these models gains from that context or a separated
# model beats its dense twin.

# %% [markdown]
# In selection we ran {num}`93_far_distances/recipes_screened` of {num}`93_far_distances/recipes_declared` declared variants and chose among
# them. Later we added twins and controls. The trials are the records of `recipe_screen`, and the learning rates those of `recipe_sweep`.
# Four more variants trained the position part of an untied model without reading text. None survived, no page argues from them, and their
# code and records are no longer kept ({doc}`/book/withdrawn`).

# %% tags=["hide-cell"]
screen = experiments.get("recipe_screen").table(profile)
numbers["recipes_screened"] = len(RunTable(screen).made)
numbers["recipes_declared"] = len(VARIANTS)
swept = experiments.get("recipe_sweep")
scores = swept.scores(SWEPT)
own, base = (
    ("rope-gaps", experiments.get(name).rate(SWEPT, method))
    for name, method in (("recipe_sweep", "rope-gaps"), ("lr_screen", "rope"))
)
there = {own, base} <= set(scores)
gain = f"{scores[base] - scores[own]:.3f}" if there else NOT_RUN
numbers["gaps_rate_gain"] = gain

# %% tags=["hide-cell"]
chapter_numbers.publish("93_far_distances", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(runs, extrapolation, screen, swept.table(SWEPT))

# %% [markdown]
# # 5. Biases and distances
#
# **Finding.** A bias is a number added to an attention score, here mostly a function of the distance. Models whose bias keeps falling with
# the distance (ALiBi, KERPLE and, on average, Sandwich) predict texts of eight trained lengths about as well with all keys visible as
# through a window of the trained length. T5's bias no longer changes from distance {num}`05_biases/t5_last_begins` on, and between four and
# eight trained lengths the loss of T5 is {num}`encodings/t5/gap/native/8x:.2f` bits per byte above its loss through the window. RoPE has no
# bias, and its loss there is {num}`encodings/rope/gap/native/8x:.2f` above its own window.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import experiments
from sepnb.analysis.flops import per_token
from sepnb.data import text as texts
from sepnb.encodings import alibi_bias, alibi_slopes, build, distance_aware_gate
from sepnb.encodings.cope import cope_positions
from sepnb.encodings.distance_aware import distance_aware_scores
from sepnb.encodings.fire import fire_ratio
from sepnb.encodings.kerple import kerple_bias
from sepnb.encodings.sandwich import sandwich_bias
from sepnb.encodings.t5 import t5_bias, t5_buckets
from sepnb.evaluation import sliding
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.plots import figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable
from sepnb.records.verdicts import SURVIVES
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train

figures.use_style()
generator = torch.Generator().manual_seed(seed)
numbers = {}
H, L = 8, 64  # heads of the drawings; the trained length of the live models
# Normal numbers in float64, so that "equal" can mean "equal to rounding".
noise = partial(torch.randn, generator=generator, dtype=torch.float64)


PLACES = ("1x", "2x", "4x", "8x")
NAMES = "alibi t5 kerple-log kerple-power fire sandwich distance-aware cope rope none"
encodings = experiments.get("encodings")
in_all = encodings.table(profile)
of = RunTable(in_all)
trained_at = encodings.grid(profile)[0].training.length
ran = [name for name in NAMES.split() if len(of.values(name, "native/1x"))]
levels, above = (
    {name: [of.mean(name, f"{what}/{place}") for place in PLACES] for name in ran}
    for what in ("native", "gap/native")
)
cut = 0.18  # the second panel ends here
level_past = [  # no verdict: means over seeds
    figures.METHODS[name].label for name in ran if max(above[name][1:]) < SURVIVES
]


# %% tags=["hide-input"]
COLOURS = {  # on other pages biases share one hue; here they need several
    "t5": "#0072b2",
    "kerple-log": "#7b5ea7",
    "kerple-power": "#7b5ea7",
    "fire": "#8f6b00",
    "sandwich": figures.INK,
    "distance-aware": "#b3364f",
    "cope": "#2b86b0",
}
UNNAMED = {"label": "_"}
fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.8), width_ratios=(1, 1.25))
for name, level in levels.items():
    look = figures.METHODS[name]
    look = replace(look, colour=COLOURS.get(name, look.colour))
    for ax, line in zip(axes, (level, above[name]), strict=True):  # named in one panel
        named = (above[name][-1] < cut) == (ax is axes[1])
        ax.plot(range(4), line, **look.line(markersize=5) | ({} if named else UNNAMED))
for ax in axes:
    ax.set_xticks(range(4), ["0 to L", "to 2L", "to 4L", "to 8L"])
    ax.set_xlabel("position in the text")
axes[0].set_ylabel("bits per byte")
axes[1].set_ylabel("bits per byte over its own window")
axes[1].axhline(SURVIVES, color=figures.FAINT, linewidth=1, linestyle=":")
axes[1].set_ylim(min(map(min, above.values()), default=0) - 0.02, cut)
figures.entropy_lines(axes[0], in_all, at=-0.1)
for ax in axes:
    figures.label_lines(ax)
figures.show(
    fig,
    name="fig-biases-encodings",
    alt="Bits per byte by position, to eight trained lengths L, for the biases of this "
    "chapter, RoPE and no encoding; dotted, the entropy of bytes and of pairs. RoPE "
    "climbs steeply past L, T5 and FIRE slowly. Right, over the model's own sliding "
    "window: ALiBi, KERPLE, Sandwich and CoPE stay near zero. Without records: the "
    "words not run.",
    caption=f"{len(level_past)} methods stay within {SURVIVES:g} bits per byte of "
    f"their own sliding window in every bin past L: {'; '.join(level_past) or 'none'}. "
    "The first panel shows the loss of every method, the second how far this loss "
    "is above that window (dotted: the bound). Lines that leave the second panel have "
    f"their names in the first. Trained at L = {trained_at} bytes, all keys visible, "
    "means over seeds. Three seeds cannot rank methods next to each other.",
)

# %% [markdown]
# > **Question.** What happens to attention when a function of the distance is *added* to a score, or *multiplied* into it? What is left
# > of the effect in texts longer than those of training?
#
# RoPE puts the distance into queries and keys ({doc}`chapter 4 <04_rotation>`). The methods of this chapter change the score instead. Six
# add a *bias* to it, and the seventh multiplies.
#
# | method | what changes the score | what is learned | what it depends on |
# |---|---|---|---|
# | ALiBi | a straight line, added | nothing | distance |
# | T5 | a table of buckets, added | the table | distance |
# | KERPLE | a logarithm or a power, added | two numbers a head | distance |
# | Sandwich | a sum of waves, added | nothing | distance |
# | FIRE | a small perceptron, added | the perceptron, two numbers | distance, and index of the query |
# | CoPE | an entry of a table, looked up by a count of tokens, added | the table | what the text says |
# | DA-Transformer | a gate, multiplied | two numbers a head | distance |
#
# The dotted lines in the first panel of {numref}`fig-biases-encodings` are the loss of a model that knows only how often each byte, or each
# pair of bytes, occurs. Six seeds judge ALiBi. The other methods have three, too few to rank methods that lie close together.
#
# Four terms for reading longer texts recur in many chapters.
#
# - The {term}`sliding window <sliding-window baseline>` of a model is the same model, but at every token it reads only the last $L$ tokens,
#   and their positions start again at 0. Read in this way, the model never meets anything new, so its loss is the bar for the model that
#   sees the whole text.
# - The {term}`gap` is the loss of a model minus that of its own sliding window, on the same text.
# - A model {term}`survives` if its gap stays below a small bound. It then loses next to nothing by seeing the whole text.
# - It {term}`uses` far text if it loses something when that text is taken away. A model can survive and use nothing: in these runs no model
#   with a bias loses anything when keys more than a trained length back are hidden.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 25 s of one CPU core, most of it for two tiny trainings; nothing is downloaded. Memory: under 1 GB. The
#   records: `sepnb run extrapolation encodings`; the second is the grid of {doc}`chapter 7 <07_every_encoding>`.
# - **You need**: {doc}`chapter 1 <01_order>` for scores and weights; a sigmoid.
# - **You will learn**: what a bias does to the odds of two keys that a factor does not. Why longer segments lower the mean loss even of a
#   model that reads only the last $L$ tokens.
# - **Claims tested** (see {doc}`/book/claims`): two on ALiBi, with the records of {doc}`chapter 12 <12_extrapolators>`.
# ```
#
# ## A bias, and what it can do
#
# Let $t = i - j$ be the distance from a query back to a key. ALiBi, T5, KERPLE and Sandwich have the form
#
# $$
# S_{ij} = \frac{q_i \cdot k_j}{\sqrt d} + b_h(i - j), \qquad a_{ij} = \frac{e^{S_{ij}}}{\sum_{j'} e^{S_{ij'}}} ,
# $$ (eq-biases-form)
#
# with one function $b_h$ for each head $h$. Look at the odds of two keys, $j$ near and $j'$ far:
#
# $$
# \frac{a_{ij}}{a_{ij'}} = \exp\!\left( \frac{q_i \cdot k_j - q_i \cdot k_{j'}}{\sqrt d} \right)
# \cdot \exp\bigl( b_h(i - j) - b_h(i - j') \bigr) .
# $$ (eq-biases-odds)
#
# So the bias multiplies the odds by a factor that content cannot change, in every text and at every place. (FIRE's factor also changes with
# the place of the query. CoPE is the exception: its factor depends on the text.) A bias has a value at any distance, but training tests it
# only at the distances that occur in the training texts.
#
# ## ALiBi: a straight line
#
# ALiBi {cite:p}`press2022` takes $b_h(t) = -m_h\, t$, a penalty in proportion to the distance. Nothing in it is trained. Each head has its
# own slope $m_h$. For $H = 8$ heads the slopes are $\tfrac12, \tfrac14, \dots, \tfrac1{256}$; in general
#
# $$
# m_h = 2^{-8h/H}, \qquad h = 1, \dots, H, \quad H \text{ a power of two} .
# $$ (eq-biases-slopes)
#
# The lecture notes among our sources stop here, but 12 heads are common. For any other $H$ the authors take the slopes for the largest
# power of two below it, and add every second slope of the list for twice that power. The slopes of the heads are then not in order:
#
# ```{literalinclude} ../../sepnb/encodings/alibi.py
# :pyobject: alibi_slopes
# :start-at: power =
# :dedent:
# ```

# %%
slopes = alibi_slopes(H, dtype=torch.float64)
assert slopes.tolist() == [2.0**-h for h in range(1, 9)]
twelve = alibi_slopes(12, dtype=torch.float64)
assert torch.equal(twelve[:8], slopes)
torch.testing.assert_close(twelve[8:], 2.0 ** (0.5 - torch.arange(1, 5).double()))
assert (twelve[1:] > twelve[:-1]).any(), "not in order for 12"
printed_for_12 = 2.0 ** (-8 * torch.arange(1, 13) / 12).double()
assert (printed_for_12.sort()[0] - twelve.sort()[0]).abs().max() > 1e-2

# %% [markdown]
# ### By hand
#
# A query at position 2 sees three keys with the same product, in head 1 ($m = \tfrac12$). The biases are $-1, -\tfrac12, 0$, so the
# weights are in proportion to $e^{-1}, e^{-1/2}, 1$: about one fifth, three tenths and a half.
#
# Some code adds $+m\,j$ instead of $-m\,|i - j|$. In a causal model both give the same weights. Without a mask the first is *wrong*.

# %%
i = torch.arange(40)
bias = alibi_bias(slopes, i, i)  # [H, N, M]
assert bias[0, 2, :3].tolist() == [-1, -0.5, 0]
by_hand = torch.tensor([math.exp(-1), math.exp(-0.5), 1.0], dtype=torch.float64)
torch.testing.assert_close(bias[0, 2, :3].softmax(0), by_hand / by_hand.sum())

products = noise(8, 40, 40)
causal = torch.full((40, 40), -torch.inf, dtype=torch.float64).triu(1)
key_linear = slopes[:, None, None] * i


def weights(added, mask=causal):
    return (products + added + mask).softmax(dim=-1)


torch.testing.assert_close(weights(key_linear), weights(bias), rtol=0, atol=1e-12)
apart = weights(key_linear, 0) - weights(bias, 0)
assert apart.abs().max() > 0.1, "without a mask they are two models"

# %% [markdown]
# A slope is easier to read as a length. Among keys with equal products, one that is $\ln 2 / m_h$ tokens farther back has half the weight.

# %%
equal = torch.arange(0, 64 * 1024, dtype=torch.float64)
decay = torch.exp(-slopes[:, None] * equal)
shares = decay / decay.sum(dim=1, keepdim=True)
closed = 1 / torch.expm1(slopes)  # the mean of a geometric law
torch.testing.assert_close((shares * equal).sum(dim=1), closed, rtol=1e-6, atol=0)
numbers["reach_head_1"], numbers["reach_head_8"] = closed[0].item(), closed[7].item()
numbers["beyond_128_head_8"] = shares[7, 128:].sum().item()

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.3))
at = np.arange(0, 257)
shades = plt.get_cmap("viridis")(np.linspace(0.35, 0.85, H))
for head, (m, shade) in enumerate(zip(slopes.tolist(), shades, strict=True)):
    axes[0].plot(at, -m * at, color=shade)
    axes[1].plot(at, np.exp(-m * at), color=shade)
    end = (min(7.5 / m, 256), max(-m * 256, -7.5))  # where each line gets its name
    name = f"head {head + 1}" if head > 3 else f"{head + 1}"
    offset = (4 if head > 4 else -4, 0)
    shapes.beside(axes[0], name, end, offset, color=shade, fontsize=9)
axes[0].set(ylim=(-8, 0.4), ylabel="bias", xlabel="distance (tokens)", xlim=(0, 310))
axes[1].set(ylabel="weight, 1 for an equal key here", xlabel="distance (tokens)")
for ax in axes:
    figures.trained_length(ax, 128, "L =")
figures.show(
    fig,
    name="fig-biases-alibi",
    alt="Two panels over distances to 256. Left: eight straight lines from zero, the "
    "steepest falling below minus 8 within 16 tokens, the flattest reaching minus 1. "
    "Right: the same as exponentials; at 128 five of the eight are near zero.",
    caption="Every head of ALiBi has a horizon. Left: the bias by distance. Right: "
    "the weight of a key, as a share of the weight of an equal key at "
    "distance 0. At distance 128 only the last three of eight heads give it "
    "more than a tenth.",
)

# %% tags=["remove-input"]
moving.show(
    "slopes",
    {"heads": H, "length": 128},
    name="moving-slopes",
    alt="The weight of an equal key against its distance, a curve for each head of "
    "ALiBi; the number of heads and a distance are chosen.",
    instead="the figure above, which has eight heads",
)

# %% [markdown]
# Head 1 looks {num}`05_biases/reach_head_1:.1f` tokens back on average, head 8 {num}`05_biases/reach_head_8:.0f`. This is the bias towards
# recency that the lecture notes mention. But in a long text head 8 still puts {num}`05_biases/beyond_128_head_8:.0%` of its weight beyond
# the last 128 tokens, so a model *may* use far text. Does it?
#
# ## The early-token curse
#
# {cite:t}`press2022` train at 512 tokens and evaluate at thousands, and the perplexity falls, as if the model used the longer context. But
# their Appendix B shows that through a sliding window the curve is flat. {cite:t}`press2021` call the reason the early-token curse.
#
# Cut a text into segments of $N$ bytes and score each alone. The first bytes of every segment have little context and a high loss, and
# longer segments have fewer first bytes. So the mean falls for *any* model. We show this with a small ALiBi model that is trained on this
# page (a *live* model). It *cannot* use more context, because it reads through a sliding window of its trained length, $L = 64$.

# %%
steps = 120
library = texts.load("sympy")


def made(encoding, longest=L):
    """A model of two layers and four heads, drawn from the same seed."""
    torch.manual_seed(seed)
    config = TransformerConfig(Streams.dense(64), 2, 4, encoding, max_length=longest)
    return LanguageModel(config)


def trained(encoding, dtype=torch.float32):
    """Such a model after a training at length L on the same bytes."""
    model = made(encoding).to(dtype)
    order = {"batch_size": 8, "length": L, "seed": seed, "steps": steps}
    batches = texts.sample_batches(library.train, **order)
    train(model, batches, TrainingConfig(steps, 8, L, 4e-3))
    return model.eval()


# %%
alibi_model = trained("alibi")
# Not the first window of a file: first lines are all alike.
cut = texts.windows(library.validation, length=8 * L, per_document=3 * 8 * L)
held = cut.tokens[cut.start > 0][:16]


def in_segments(n):
    """Bits of the same bytes in segments of n, read through a window of L."""
    pieces = [held[:, k : k + n + 1] for k in range(0, 8 * L, n)]  # [segments, n + 1]
    return sliding(alibi_model, np.concatenate(pieces), window=L, stride=8).bits


lengths = [L // 4, L // 2, L, 2 * L, 4 * L, 8 * L]
by_segment = {n: in_segments(n) for n in lengths}
assert all(bits.size == held[:, 1:].size for bits in by_segment.values())
paid = {n: float(bits.mean()) for n, bits in by_segment.items()}
# The same bytes inside the longest segments; those of the first of L are left out.
whole = np.concatenate([by_segment[8 * L][:, k : k + L] for k in range(L, 8 * L, L)])
excess = (by_segment[L][len(held) :] - whole).mean(axis=0)  # [L]: by position
numbers["curse_first_bytes"] = float(excess[:8].mean())
numbers["curse_later_bytes"] = float(excess[L // 2 :].mean())
assert paid[8 * L] < paid[L] < paid[L // 4]
assert numbers["curse_first_bytes"] > 10 * abs(numbers["curse_later_bytes"])

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.1))
edges = [0, 1, 2, 4, 8, 16, 32, 64]
look = figures.METHODS["alibi"].line(label="_")
by_position = [excess[a:b].mean() for a, b in pairwise(edges)]
axes[0].plot([(a + b + 1) / 2 for a, b in pairwise(edges)], by_position, **look)
axes[1].plot(lengths, [paid[n] for n in lengths], **look)
axes[0].set(xlabel="byte of a segment of L", ylabel="bits more than in one of 8L")
axes[1].set(xlabel="bytes of a segment", ylabel="bits per byte")
for ax in axes:
    ax.set_xscale("log", base=2)
figures.trained_length(axes[1], L, "L =")
figures.show(
    fig,
    name="fig-biases-curse",
    alt="Left: how much more a byte loses in a segment of the trained length than "
    "inside a long segment, by its place; the difference falls to zero within some ten "
    "bytes. Right: the mean over a segment against its length, falling all the way to "
    "eight trained lengths.",
    caption="Longer segments have a lower mean, although the model sees at most L = "
    f"{L} bytes. By position: the first bytes of a segment lose more than inside a "
    "long one. By length of the segment: the mean over the same bytes is "
    f"{paid[L]:.3f} bits in segments of L and {paid[8 * L]:.3f} in segments of 8L. "
    "One live model.",
)

# %% [markdown]
# In segments of $L$, the first eight bytes lose {num}`05_biases/curse_first_bytes:.2f` bits more each than inside a long
# segment; for the second half the difference is {num}`05_biases/curse_later_bytes:.3f`. So the mean falls with the length of a segment
# ({numref}`fig-biases-curse`, second panel), although *no byte had more than $L$ of context*. This book therefore compares by position, and
# against the model's own {term}`sliding window <sliding-window baseline>`.
#
# ## Does ALiBi use the far context?
#
# The models of {doc}`chapter 12 <12_extrapolators>` are larger, read novels, and have six seeds. They read with all keys visible and
# through a sliding window, which is the baseline.

# %%
runs = experiments.get("extrapolation").table(profile)
of_long, of_short = (
    RunTable(runs).values(name, "train_cpu_s") for name in ("rope-long", "rope")
)
numbers["rope_long_dearer"] = chapter_numbers.mean_of(of_long / of_short)
config = made("alibi", 4 * L).config
counted = per_token(config, 4 * L) / per_token(config, L)
assert abs(counted - (12 * 64 + 4 * L) / (12 * 64 + L)) < 1e-12
numbers["alibi_cheaper_counted"] = counted

# %% [markdown]
# ALiBi's loss is flat past its trained length ({verdict}`alibi-flat-beyond-length: reproduced`). In the bin that ends at $8L$, with
# all keys visible, it differs from its own sliding window by {num}`extrapolation/alibi/gap/native/8x:.3f` bits per byte.
#
# The lecture notes suspect that ALiBi ignores the far context. Here it does, but that cannot be put down to ALiBi: in these texts not even
# models *trained* at $8L$ gain much over their own sliding window.
#
# The notes add that it is cheaper to train at $L$ and read at $4L$ than to train at $4L$. By how much? The maps of a block cost the same
# per byte in any text; only attention grows. With $12 D^2$ multiply-adds for the maps and $N D$ for causal attention, a byte of a text of
# $4L$ costs
#
# $$
# \frac{12 D^2 + 4 L D}{12 D^2 + L D} = \frac{12 D + 4 L}{12 D + L}
# $$ (eq-biases-cheaper)
#
# times as much as a byte of a text of $L$: nearly 4 times as much if $L$ is much larger than $D$, and about as much if $L$ is small. For
# the live model it is {num}`05_biases/alibi_cheaper_counted:.2f` times. Among whole trainings (chapter 12), RoPE trained at $8L$ on as many
# bytes took {num}`05_biases/rope_long_dearer:.2f` times the CPU seconds of RoPE trained at $L$. So the saving is real, but modest at these
# sizes, and not special to ALiBi: any model that loses nothing in longer texts may be trained on short ones.
#
# ## T5: a table of buckets
#
# T5 {cite:p}`raffel2020` learns the function as a table with one number for each head and *bucket* of distances. Half of the
# buckets hold one distance each. The others divide the rest, and become wider in proportion to the distance:
#
# $$
# \operatorname{bucket}(t) = \begin{cases} t & t < e \\
# \min\!\left( n - 1,\; e + \left\lfloor \dfrac{\ln (t/e)}{\ln (T/e)}\, (n - e) \right\rfloor \right) & t \ge e
# \end{cases} \quad e = \tfrac{n}{2} ,
# $$ (eq-biases-t5)
#
# with $n = 32$ buckets and $T = 128$. Two mistakes are common: the wrong sign (the authors' code starts from key minus query, which is
# $-t$), and a logarithm that rounds down at a border.

# %%
t = torch.arange(0, 2049)
buckets = t5_buckets(-t)
logarithm = torch.log(t.clamp(min=1).double() / 16) / math.log(8) * 16
printed = torch.where(t < 16, t, (16 + (logarithm + 1e-9).floor().long()).clamp(max=31))
assert torch.equal(buckets, printed)
assert not t5_buckets(t).any(), "the wrong sign: every key would be bucket 0"
widths = buckets.bincount()
last_begins = int((buckets == 31).nonzero()[0])
assert last_begins == build("t5").saturates_at
assert (widths[:16] == 1).all() and (widths[17:31].diff() >= 0).all()
numbers["t5_last_begins"] = last_begins
table = noise(32, H)
looked_up = t5_bias(table, i, i)  # [H, N, M]
assert torch.equal(looked_up[3, 30, 5], table[t5_buckets(torch.tensor(-25)), 3])

# %% [markdown]
# From distance {num}`05_biases/t5_last_begins` on, all distances share the last bucket. So past a trained length of 128 no *distance* is
# new to the model: there are only more keys. (T5 leaves out the $\sqrt d$; here it is kept.)
#
# ## KERPLE, Sandwich, FIRE
#
# **KERPLE** {cite:p}`chi2022` takes kernels, each with two learned positive numbers per head and layer:
#
# $$
# \begin{aligned}
# b(t) &= -r_1 \ln (1 + r_2\, t) && \text{(logarithmic)}, \\
# b(t) &= -r_1\, t^{\,r_2} && \text{(power, } r_2 \le 2) .
# \end{aligned}
# $$ (eq-biases-kerple)
#
# With the logarithm the odds fall as a power of the distance, $e^{b(t)} = (1 + r_2 t)^{-r_1}$, so the far past fades but never vanishes.
# ALiBi is the power form with $r_2 = 1$, and the limit of the logarithmic one for $r_2 \to 0$ with $r_1 r_2$ kept fixed.

# %%
ones = torch.ones(H, dtype=torch.float64)
power = kerple_bias(slopes, ones, i, i, form="power")
torch.testing.assert_close(power, bias, rtol=0, atol=1e-12)
nearly = kerple_bias(slopes * 1e6, ones * 1e-6, i, i)
torch.testing.assert_close(nearly, bias, rtol=0, atol=1e-3)
between = kerple_bias(slopes, ones, i, i)
assert (between - bias).abs().max() > 1, "in between it is a curve of its own"

# %% [markdown]
# **Sandwich** {cite:p}`chi2023` starts from the dot product of two {term}`sinusoids <sinusoidal encoding>`, which is a
# function of the distance alone, and gives each head its own compression,
#
# $$
# b_h(t) = \left( \sum_{m=1}^{D'/2} \cos (t\, w_m) - \frac{D'}{2} \right) \frac{H}{8h} , \qquad w_m = 10{,}000^{-2m/D'}.
# $$ (eq-biases-sandwich)
#
# Published code disagrees on whether $m$ begins at 0 or at 1, and the softmax depends on it.

# %%
from_1 = sandwich_bias(H, i, i)[0]
w_from_0 = 10_000.0 ** (-2 * torch.arange(0, 64, dtype=torch.float64) / 128)
from_0 = torch.cos((i[:, None] - i)[..., None] * w_from_0).sum(-1) - 64
rows_apart = ((from_0 - from_0[:, :1]) - (from_1 - from_1[:, :1])).abs().max()
assert rows_apart > 0.5, "the index set matters"

# %% [markdown]
# **FIRE** {cite:p}`li2024` learns the function itself with a small perceptron. Its input is how far the key is *relative to the
# query's own position*:
#
# $$
# b(i, j) = \operatorname{MLP}\!\left( \frac{\psi(i - j)}{\psi(\max(\tau, i))} \right), \qquad \psi(x) = \ln (c\,x + 1) .
# $$ (eq-biases-fire)
#
# The quotient lies in $[0, 1]$ at any length. If $\tau$ is below the trained length (ours starts at $L/4$), training shows the perceptron
# that whole range. The price is that past $\tau$ the bias also depends on $i$. In the package:
#
# ```{literalinclude} ../../sepnb/encodings/fire.py
# :pyobject: _bias
# :start-at: ratio =
# :dedent:
# ```

# %%
c, threshold = torch.tensor([0.1, 100.0], dtype=torch.float64)
queries = torch.tensor([50, 100, 400, 1600])
quotients = [
    fire_ratio(c, threshold, q[None], torch.arange(int(q) + 1))[0] for q in queries
]
by_print = torch.log(0.1 * (400 - torch.arange(401.0)) + 1) / math.log(0.1 * 400 + 1)
torch.testing.assert_close(quotients[2], by_print.double(), rtol=1e-5, atol=1e-6)
assert all(r.min() >= 0 and r.max() <= 1 for r in quotients)
at_20 = [r[-21].item() for r in quotients]  # the key 20 back
assert at_20[0] == at_20[1] > at_20[2] > at_20[3], "alike up to the threshold, then not"
numbers["fire_at_20_near"], numbers["fire_at_20_far"] = at_20[0], at_20[3]

# %% [markdown]
# For a query at 100, a key 20 tokens back is {num}`05_biases/fire_at_20_near:.2f` of the way to the farthest key, on FIRE's logarithmic
# scale. For a query at 1600 it is {num}`05_biases/fire_at_20_far:.2f`, so the same distance gets another bias.
#
# ## All on one axis
#
# The first panel below shows ALiBi, both forms of KERPLE, and Sandwich. All four keep falling with the distance, Sandwich in waves.

# %%
far = torch.arange(0, 1025)
last, keys_back = torch.tensor([1024]), 1024 - far  # one query, its keys by distance
curves = {
    "ALiBi, head 3": alibi_bias(slopes, last, keys_back)[2, 0],
    "KERPLE, log": kerple_bias(ones, ones / 2, last, keys_back)[2, 0],
    "KERPLE, power": kerple_bias(*[ones / 2] * 2, last, keys_back, form="power")[2, 0],
    "Sandwich, head 3": sandwich_bias(H, last, keys_back)[2, 0],
}
drop = {n: ((v[8] - v[16]) / (v[512] - v[1024])).item() for n, v in curves.items()}
assert abs(drop["ALiBi, head 3"] - 1 / 64) < 1e-9 and 0.7 < drop["KERPLE, log"] < 1

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), width_ratios=(1.4, 1))
methods = "alibi", "kerple-log", "kerple-power", "sandwich"
for (name, curve), method in zip(curves.items(), methods, strict=True):
    inside = curve[-1] > -22  # ALiBi leaves the picture before its end
    colour = COLOURS.get(method, figures.METHODS[method].colour)
    line = {"color": colour, "label": name if inside else "_"}
    line["linewidth"] = 1 if method == "sandwich" else 1.8
    line["linestyle"] = (0, (5, 2)) if method == "kerple-power" else "-"
    axes[0].plot(far + 1, curve, **line)
    if not inside:
        axes[0].text(120, -21, name, fontsize=9.5, ha="right", color=colour)
axes[0].set(ylim=(-22, 1), ylabel="bias")
axes[0].set_title("four curves of the distance")
axes[0].set_xscale("log", base=2)
figures.label_lines(axes[0])
dashes = [(0, (1, 1.5)), "-", (0, (5, 2)), (0, (5, 1.5, 1, 1.5))]
for position, quotient, dash in zip(queries.tolist(), quotients, dashes, strict=True):
    named = f"{position}" if position > 100 else "≤ 100"
    at = np.arange(len(quotient)) + 1
    axes[1].plot(at, quotient.flip(0), color=COLOURS["fire"], linestyle=dash)
    if position > 50:
        name = {"ha": "center", "va": "bottom", "color": COLOURS["fire"]}
        axes[1].text(at[-1], 1.02, named, fontsize=9.5, **name)
axes[1].set(ylim=(0, 1.14), ylabel="input of FIRE's perceptron")
axes[1].set_title(r"FIRE, $\tau = 100$, queries at")
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set_xlabel("distance + 1 (tokens)")
figures.show(
    fig,
    name="fig-biases-curves",
    alt="Left: bias against distance on a logarithmic axis. ALiBi bends down and "
    "leaves the picture near 180; KERPLE's logarithm is nearly a straight line to "
    "minus 6; its power form leaves near 512 at minus 11 and more; Sandwich falls "
    "early, then slowly, with waves. Right: the input of FIRE's perceptron against "
    "distance; queries at 50 and 100 share a curve, those at 400 and 1600 lie below.",
    caption="Four curves of the distance: on a logarithmic axis KERPLE's logarithm is "
    "nearly a line. It falls about as much from 512 to 1024 as from 8 to 16, while "
    "ALiBi falls 64 times as much. FIRE rescales the axis for each query past its "
    "threshold.",
)

# %% [markdown]
# ## CoPE: counting something else
#
# In CoPE {cite:p}`golovneva2024` the distance itself is learned. Each key from $j$ to $i$ opens a gate for the query or leaves it closed,
# and the open gates are counted,
#
# $$
# g_{ij} = \sigma(q_i \cdot k_j), \qquad p_{ij} = \sum_{t=j}^{i} g_{it} ,
# $$ (eq-biases-cope)
#
# up to $P - 1$. The bias is $q_i \cdot e[p_{ij}]$, interpolated between the rows of a table $e$. With all gates open, $p_{ij} = i - j + 1$
# is the ordinary distance plus one. With gates that open only at spaces, the position of a key is *how many words ago* it was.

# %%
phrase = "the dog bit the man on the leg"
spaces = torch.tensor([letter == " " for letter in phrase])
n = len(phrase)
every = cope_positions(torch.full((1, 1, n, n), 40.0, dtype=torch.float64), 64)[0, 0]
distances = (torch.arange(n)[:, None] - torch.arange(n)).clamp(min=-1) + 1
torch.testing.assert_close(every.tril(), distances.double().tril(), rtol=0, atol=1e-9)
gate = torch.where(spaces, 40.0, -40.0).double().expand(1, 1, n, n)
words_ago = cope_positions(gate, 64)[0, 0][-1].round().long()
counted = torch.tensor([phrase[place:].count(" ") for place in range(n)])
assert torch.equal(words_ago, counted)
print(phrase)
print("".join(map(str, words_ago.tolist())))

# %% [markdown]
# The bias mixes two rows of the table and multiplies by the query ({func}`sepnb.encodings.cope_scores`). `rows` holds the products of
# queries and table:
#
# ```{literalinclude} ../../sepnb/encodings/cope.py
# :pyobject: _scores
# :start-at: products, width
# :dedent:
# ```
#
# Nothing makes the model count words, but it *can*. All keys more than $P - 1$ counts back share one row.
#
# ## DA-Transformer: a factor
#
# The DA-Transformer {cite:p}`wu2021` multiplies the distance $R = |i - j|$ by a learned number per head, $w$, which favours far keys
# where it is positive and near keys where it is negative. A function $f$ turns $wR$ into a coefficient, which *multiplies* the score:
#
# $$
# A = \operatorname{softmax}\!\left( \frac{\operatorname{ReLU}(Q K^\top) \odot f(R)}{\sqrt d} \right), \qquad
# f(R) = \frac{1 + e^{v}}{1 + e^{v - w R}} .
# $$ (eq-biases-da)
#
# (We read only the abstract and the lecture notes, and start from $v = 0$ and an even spread of $w$.)
#
# ### Five wishes
#
# The notes list what $f$ was asked to do. In terms of $x = w R$: (1) $f = 1$ at distance 0; (2) $f \to 0$ for $x \to -\infty$, so that
# local heads suppress far keys; (3) bounded for $x \to +\infty$; (4) its scale can be tuned; (5) monotone.

# %%
line = torch.linspace(-60, 60, 4001, dtype=torch.float64)  # x = w R
CANDIDATES = {
    "DA, (1+e^v) / (1+e^(v-x))": lambda x, v: distance_aware_gate(x, 1.0, v),
    "sigmoid, 1 / (1+e^-x)": lambda x, v: torch.sigmoid(x),
    "twice the sigmoid": lambda x, v: 2 * torch.sigmoid(x),
    "exponential, e^x": lambda x, v: torch.exp(x),
    "line, 1 + x": lambda x, v: 1 + x,
    "a bump, e^(-x^2)": lambda x, v: torch.exp(-(x**2)),
}


def wishes(f):
    """Which of the five hold, over x from -60 to 60 and v from -2 to 2."""
    values = {v: f(line, torch.tensor(v, dtype=torch.float64)) for v in (-2.0, 0, 2)}
    middle = values[0]
    return {
        "1 at 0": abs(middle[2000].item() - 1) < 1e-12,
        "to 0": abs(middle[0].item()) < 1e-9,
        "bounded": (middle[-1] - middle[-1001]).abs().item() < 1e-3,  # from x = 45 on
        "tunable": (values[2] - values[-2]).abs().max().item() > 1e-3,
        "monotone": bool((middle.diff() >= 0).all()),
    }


# %% tags=["hide-input"]
asked_of = {name: wishes(f) for name, f in CANDIDATES.items()}
figures.show_table(
    pd.DataFrame(
        {"function of x = wR": name}
        | {wish: "yes" if met else "no" for wish, met in of.items()}
        for name, of in asked_of.items()
    ),
    caption="Of six functions, only the paper's, a sigmoid with a learned bound, "
    "meets all five wishes. Checked over x from -60 to 60.",
    highlight=[0],
)
assert [all(of.values()) for of in asked_of.values()] == [True, *[False] * 5]
for v in (-2.0, 0.0, 2.0):
    bound = distance_aware_gate(torch.tensor(1e9), 1.0, v).item()
    assert abs(bound - (1 + math.exp(v))) < 1e-4

# %% [markdown]
# For the paper's function all five hold, with the bound $1 + e^v$. In float32 the printed formula overflows at a large distance, so the
# package computes the same function as $\exp(\operatorname{softplus}(v) - \operatorname{softplus}(v - wR))$. A gate is cheap: two
# parameters per head and layer, one exponential for each distance and head, and one product for each pair. But torch's fused kernel has no
# place for a factor, so the softmax is computed explicitly here ({doc}`chapter 20 <20_cost_and_speed>` has its time).

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.2))
at = torch.arange(0, 65, dtype=torch.float64)
of_w = {w: distance_aware_gate(at, w, 0.0) for w in (-0.3, -0.1, 0.0, 0.1, 0.3)}
colours = "#0072b2", "#56b4e9", "#6b6f74", "#e69f00", "#d55e00"
for (w, gate), colour in zip(of_w.items(), colours, strict=True):
    axes[0].plot(at, gate, color=colour, label=f"$w = {w:g}$")
for v, colour in zip((-2, 0, 1, 2), colours[1:], strict=True):
    for w, label in ((-0.15, "_"), (0.15, f"$v = {v}$")):
        gate = distance_aware_gate(at, w, float(v))
        axes[1].plot(at, gate, color=colour, label=label)
for ax, title in zip(axes, ("$v = 0$", r"$w = \pm 0.15$"), strict=True):
    ax.set(xlabel="distance (tokens)", ylabel="$f$", title=title)
    low, high = ax.get_ylim()
    ax.set_ylim(low - 0.05 * (high - low), high)
    figures.label_lines(ax)
figures.show(
    fig,
    name="fig-biases-gate",
    alt="The gate f against distance. Left, v = 0: for negative w it falls from one to "
    "zero, for positive w it rises from one to two, for w = 0 it is one. Right, w = "
    "plus and minus 0.15: larger v raises the upper bound, from about 1.1 to 8.4.",
    caption="The gate of the DA-Transformer. With $v = 0$, heads with negative $w$ "
    "prefer near keys, and heads with positive $w$ far keys. With $w$ fixed, $v$ sets "
    "the bound, $1 + e^v$.",
)

# %% [markdown]
# ### Multiplying and adding are different
#
# "The scaling is multiplicative, since adding might over-amplify", say the notes. The authors of ALiBi report that multiplying did worse. A
# bias $b$ multiplies odds by $e^{b}$, by equation {eq}`eq-biases-odds`. A factor $f$ scales their logarithm,
# $a_{ij}/a_{ij'} = \exp(f s_{ij} - f' s_{ij'})$, so it turns *content* up or down. At $f = 0$ the content of a key is ignored, but not the
# key: a score of 0 still has the weight $e^0 = 1$ before normalising.
#
# Suppose a local head looks for one near key with score $s = 5$ among $N - 1$ far keys. Under a perfect gate ($f = 1$ at the near key, 0 at
# all others) the near key has the weight
#
# $$
# \frac{e^{s}}{e^{s} + (N - 1)} \;\longrightarrow\; 0 \quad \text{as } N \to \infty .
# $$ (eq-biases-dilution)
#
# Below, the far keys have random positive products, as a ReLU leaves them. We compare a gate ($w = -1$), no gate ($w = 0$) and a bias.

# %%
wanted, lengths = 5.0, 2 ** torch.arange(3, 15)
ago = torch.arange(int(lengths[-1]), dtype=torch.float64)
content = noise(len(ago)).abs()  # products of the far keys, all positive
content[0] = wanted  # the key here


def weights_here(scores):
    """Weight of the key here among the nearest 8, 16, ... keys."""
    return np.array([scores[:n].softmax(0)[0].item() for n in lengths.tolist()])


gated = {w: content * distance_aware_gate(ago, w, 0.0) for w in (0.0, -1.0, -1000.0)}
ungated, diluted, perfect = (weights_here(scores) for scores in gated.values())
kept = weights_here(content - slopes[1] * ago)
added = weights_here(content + distance_aware_gate(ago, -1.0, 0.0))
by_formula = math.exp(wanted) / (math.exp(wanted) + lengths.numpy() - 1)
# First where f is 1 here and 0 elsewhere, then for a gate with a slope, in the limit.
np.testing.assert_allclose(perfect, by_formula, rtol=1e-12)
np.testing.assert_allclose(diluted[-1], by_formula[-1], rtol=0.01)
assert (ungated < diluted).all() and (diluted < by_formula).all()
assert diluted[-1] > 2 * ungated[-1], "far content is muted, and number still wins"
numbers["diluted_16384"], numbers["ungated_16384"] = diluted[-1], ungated[-1]
numbers["kept_16384"], numbers["added_16384"] = kept[-1], added[-1]
assert kept.min() > 0.85
# At one and the same content a gate that is added moves the odds by e at most.
ends = distance_aware_gate(torch.tensor([0.0, 1e6]), -1.0, 0.0)
torch.testing.assert_close(ends, torch.tensor([1.0, 0.0]))
assert (added / ungated).max() <= math.e and added[-1] < 0.1

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.2))
ax.plot(lengths, kept, "D-", color="#009e73", label="bias added (slope 1/4)")
ax.plot(lengths, diluted, "o--", color="#b3364f", label="gate multiplied ($w = -1$)")
ax.plot(lengths, ungated, "s:", color="#6b6f74", label="no gate ($w = 0$)")
ax.set_xscale("log", base=2)
ax.set(ylim=(-0.07, 1.05), xlabel="visible keys", ylabel="weight of the wanted key")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-biases-dilution",
    alt="Weight of one wanted key against the number of visible keys, up to 16384. "
    "With an added bias it stays near one; with a multiplied gate it falls from the "
    "same height to about one per cent, and lower still without a gate.",
    caption="With a bias the wanted key keeps its weight. With a gate it does not: the "
    "gate mutes what far keys say, but each keeps the weight $e^0$, and there are many."
    " One key with score 5, all others with random positive products.",
)

# %% [markdown]
# Among 16384 keys the wanted one keeps {num}`05_biases/diluted_16384:.3f` of the weight with the gate, {num}`05_biases/ungated_16384:.3f`
# without one, and {num}`05_biases/kept_16384:.3f` with the bias. The gate suppresses what the far keys say, as wish (2) asks, but not
# their weight. The wanted key still needs a score of the order of $\ln N$, as in attention without any bias {cite:p}`chiang2022`. A bias
# that keeps falling with the distance gives the wanted key that lead for free.
#
# The same gate *added*, $\operatorname{ReLU}(q \cdot k)/\sqrt d + f(R)$, lowers the weight of a far key by at most a factor of $e$, so the
# wanted key keeps only {num}`05_biases/added_16384:.3f`.
#
# ### What the ReLU does
#
# Without the ReLU, a gate above 1 would make a *negative* product more negative, as the notes say. They add that attention becomes sparse,
# "since only positive attention is amplified". The scores do become sparse, but the weights do not: after a softmax nothing is zero, and
# all keys with negative products get the same weight.

# %%
one_q, one_k = noise(1, 1, 1, 16), noise(1, 1, 2, 16)
product = (one_q @ one_k.transpose(-1, -2)).squeeze()
one_k = one_k * -product.sign()[:, None]  # both products are negative now
here = {"query_positions": torch.tensor([9]), "key_positions": torch.tensor([0, 9])}
both = distance_aware_scores(one_q, one_k, 0.5, 0.0, **here).squeeze()
assert (both == 0).all() and (both.softmax(0) == 0.5).all()
plain_product = (one_q @ one_k.transpose(-1, -2)).squeeze() / 4
factors = distance_aware_gate(torch.tensor([9.0, 0.0]).double(), 0.5, 0.0)
assert factors[0] > factors[1] == 1
assert (plain_product * factors)[0] < plain_product[0] < 0, "favoured, and pushed down"

# %% [markdown]
# How much weight do keys with score zero get? We count in a live DA model, before and after training.

# %%
# In float64, so that every machine counts the same scores.
da_model = trained("distance-aware", torch.float64)
untrained = made("distance-aware").eval()
sample = torch.from_numpy(held[:4, :L]).long()


def zero_scores(model):
    """Of visible pairs: the share with score 0, their weight, the least weight."""
    with torch.no_grad(), frozen_attention(model) as tapes:
        model(sample)
        recorded = torch.stack([tape.weights for tape in tapes]).double()
    recorded = recorded[..., 16:, :]  # a query with few keys may have none with score 0
    seen = torch.ones(L, L, dtype=torch.bool).tril()[16:].expand_as(recorded)
    least = recorded.masked_fill(~seen, torch.inf).amin(dim=-1, keepdim=True)
    tied = seen & (recorded <= least * (1 + 1e-6))
    tied &= tied.sum(dim=-1, keepdim=True) > 1  # one alone is the smallest, and no tie
    shares = tied.sum() / seen.sum(), recorded[tied].sum() / recorded.sum()
    return *(share.item() for share in shares), recorded[seen].min().item()


# %% tags=["hide-input"]
models = {"before training": untrained, f"after {steps} steps": da_model}
columns = ["model", "scores that are 0", "weight they get", "least weight"]
counted = pd.DataFrame(
    [[name, *zero_scores(m)] for name, m in models.items()], columns=columns
)
figures.show_table(
    counted,
    caption="Many scores are 0, but no weight is. The share of pairs of a live DA "
    "model with score 0, and their share of all attention, over all layers and heads, "
    "for queries with 17 keys or more.",
    formats=dict(zip(columns[1:], (".0%", ".0%", ".1e"), strict=True)),
)
assert (counted["least weight"] > 0).all() and (counted["weight they get"] > 0.02).all()
numbers["zero_before"], numbers["zero_after"] = counted["scores that are 0"]
numbers["zero_weight_after"] = counted["weight they get"].iloc[-1]

# %% [markdown]
# Before training {num}`05_biases/zero_before:.0%` of the scores are zero, afterwards {num}`05_biases/zero_after:.0%`, and these keys get
# {num}`05_biases/zero_weight_after:.0%` of all attention.
#
# (biases-trained)=
# ## What these methods are worth in trained models
#
# The experiment `encodings` trains all methods of this chapter with three seeds, each at the best learning rate of a sweep, and reads texts
# of up to $8L$ ({numref}`fig-biases-encodings`; {doc}`chapter 7 <07_every_encoding>` has the other encodings). Each statement below is true
# of every one of the three seeds, but three seeds are too few for a verdict.
#
# **Inside the trained length**, Sandwich ({num}`encodings/sandwich minus rope/bits_per_byte:+.3f` bits per byte) and KERPLE's power
# ({num}`encodings/kerple-power minus rope/bits_per_byte:+.3f`) have a lower loss than RoPE. KERPLE's logarithm is too near RoPE for three
# seeds to tell. ALiBi ({num}`encodings/alibi minus rope/bits_per_byte:+.3f`), T5 and the DA-Transformer have a higher one.
#
# **T5 meets too many keys.** Its loss at $8L$ is {num}`encodings/t5/native/8x:.2f`, but {num}`encodings/t5/native-window/8x:.2f`
# when it sees only the last $L$ keys.
#
# **FIRE meets an unfamiliar index.** Its loss is {num}`encodings/fire/native/8x:.2f`, and hiding keys does not help. A text of $L$ that
# merely begins at $7L$ already loses {num}`encodings/fire/native-at-7x minus native/1x:.2f` more than one that begins at 0, because there
# every distance is a smaller share of the way than in training.
#
# **The gate.** At these lengths many far keys dilute the weight of a near one only a little: the DA-Transformer ends
# {num}`encodings/distance-aware/gap/native/8x:+.2f` above its sliding window at $8L$. The model that adds its gate loses
# {num}`encodings/distance-aware-added minus distance-aware/bits_per_byte:.3f` more inside $L$ and ends
# {num}`encodings/distance-aware-added/gap/native/8x:+.2f` above its window. In our computation above, the wanted key had almost the same
# weight with either gate, so that computation did not predict the difference.
#
# ## What to take away
#
# 1. **A bias multiplies the odds of two keys by a factor that does not depend on the content**, except in CoPE. A gate of zero sets the
#    score of a far key to 0, and the key still gets weight, because $e^0 = 1$.
# 2. **ALiBi's loss is flat past the trained length** ({verdict}`alibi-flat-beyond-length: reproduced`). A mean that falls over longer
#    segments does not show that a model uses them.
# 3. **In these runs, models whose bias keeps falling stay level with their sliding window.** T5 ends {num}`encodings/t5/gap/native/8x:+.2f`
#    above its own window, and FIRE {num}`encodings/fire/gap/native/8x:+.2f`. But a falling bias is not the only way: CoPE
#    ({num}`encodings/cope/gap/native/8x:+.2f`) and Shaw's labels ({num}`encodings/shaw/gap/native/8x:+.2f`, {doc}`chapter 3 <03_relative>`)
#    treat all far keys alike, and these models stay level, too.
#
# **Limits.** Identities and curves are exact. The live models are tiny, with one seed. The comparison has one budget, one width and three
# seeds; only ALiBi was also trained for longer ({doc}`chapter 11 <11_language_model>`). The initial values of FIRE, CoPE and DA are ours.
#
# **What would change our mind.** A DA model whose weight on keys with score 0 vanishes as texts grow. An ALiBi model whose loss is below
# that of its own sliding window, after a training that is long enough to learn to use far text.
#
# ## Exercises
#
# **1. (medium)** A bias can imitate a gate if it may look at the content. Write $b_{ij}$ that makes
# {eq}`eq-biases-form` the score of the DA-Transformer. Why is that no bias in the sense of this chapter?

# %% tags=["hide-cell"]
# Solution. b = (f - 1) s for s > 0 and -s for s <= 0. It depends on the product, so no
# table of distances can hold it.
q_, k_ = noise(1, 1, 6, 8), noise(1, 1, 6, 8)
where = torch.arange(6)
score = q_ @ k_.transpose(-1, -2) / math.sqrt(8)
f = distance_aware_gate((where[:, None] - where).abs().double(), -0.2, 0.4)
needed = torch.where(score > 0, (f - 1) * score, -score)
target = distance_aware_scores(q_, k_, -0.2, 0.4, where, where)
torch.testing.assert_close(score + needed, target, rtol=0, atol=1e-12)
at_distance_1 = needed[0, 0].diagonal(-1)
assert at_distance_1.std() > 1e-2, "one distance, many biases"

# %% [markdown]
# **2. (hard)** Under KERPLE's logarithmic form with $r_1 > 1$, in an endless text, the total weight of all keys with equal products beyond
# distance $T$ is finite. For which $r_1$ is it not, and what does that say about longer texts?

# %% tags=["hide-cell"]
# Solution. The weights are (1 + r2 t)^-r1, and their sum converges only for r1 > 1. For
# r1 <= 1 the far past outweighs the rest in a long text, as under a gate.
ts = torch.arange(0, 2**20, dtype=torch.float64)
for r1, finite in ((2.0, True), (0.5, False)):
    mass = (1 + ts) ** -r1
    early, late = mass[: 2**10].sum(), mass[: 2**20].sum()
    assert ((late / early) < 1.01) == finite
    print(f"r1 = {r1}: a million keys weigh {late / early:.2f} times a thousand")

# %% tags=["hide-cell"]
DA = "distance-aware"
unrun = in_all.method[in_all.status == "not run"]  # tables are not spoken of
if profile == "laptop" and unrun.str.startswith("learned").all():  # what is said
    past, less = of.values, of.difference
    for name in ("sandwich", "kerple-log", "kerple-power"):
        assert less(name, "rope", "bits_per_byte").max() < 0, "inside, below RoPE"
    for name in ("alibi", "t5", DA):
        assert less(name, "rope", "bits_per_byte").min() > 0, "inside, above RoPE"
    assert past("t5", "gap/native/8x").min() > 0.1, "T5 falls off"
    behind = past("t5", "native-window/8x") - past("t5", "native/8x")
    assert behind.max() < -0.1, "and is mended"
    behind = past("fire", "native-window/8x") - past("fire", "native/8x")
    assert behind.abs().max() < 0.02, "FIRE is not"
    assert (past("fire", "native-at-7x") - past("fire", "native/1x")).min() > 0.2
    gap = past(DA, "gap/native/8x")
    assert 0 < gap.min() < gap.max() < 0.1
    assert past(f"{DA}-added", "gap/native/8x").min() > 0.5
    assert less(f"{DA}-added", DA, "bits_per_byte").min() > 0.3

# %% tags=["hide-cell"]
chapter_numbers.publish("05_biases", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(in_all, runs)

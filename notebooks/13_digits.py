# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 13. Positions as digits
#
# **Finding.** A network that reads a position digit by digit gives every position an embedding. Before any training these embeddings
# know digits and not distance: seen from position 500, its neighbour 499 is at a cosine of {num}`13_digits/cosine_499:.2f`, and
# 600, which shares four of five digits with it, at {num}`13_digits/cosine_600:.2f`.

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
from matplotlib.colors import ListedColormap
from scipy.stats import spearmanr

from sepnb.analysis.seqpe_cost import multiply_adds
from sepnb.analysis.timing import cpu_seconds, one_thread
from sepnb.encodings import sinusoidal
from sepnb.models import LanguageModel, Transformer, TransformerConfig
from sepnb.plots import diagrams, figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.seqpe import (
    SeqPE,
    SequentialPositionEncoder,
    contrastive_loss,
    digits,
    distillation_loss,
)
from sepnb.seqpe.encoder import PrefixTree
from sepnb.seqpe.geometry import geometry, likeness
from sepnb.seqpe.sampling import WindowSampler
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, next_token_losses, optimiser
from sepnb.training.seqpe_losses import RELEASED_SHIFTS, encoder_of

figures.use_style()
# Nothing here is trained: every profile reads the same networks.
L, WIDTH, N_DRAWN = 128, 64, 5
numbers = {}


def encoder(number=0, **settings):
    """An encoder as it is initialised, in float64: `number` counts how often."""
    torch.manual_seed(seed + number)
    made = SequentialPositionEncoder(**{"width": WIDTH, **settings})
    return made.double().eval().requires_grad_(False)


# %% tags=["hide-input"]
first = encoder()(torch.arange(1000))


def cosines(embeddings, of):
    """Of one row with all."""
    rows = torch.nn.functional.normalize(embeddings, dim=-1)
    return rows @ rows[of]


seen = cosines(first, 500)
waves = cosines(sinusoidal(torch.arange(1000), WIDTH, dtype=torch.float64), 500)
fig, ax = plt.subplots(figsize=(7.2, 3.4))
around = np.arange(380, 721)
ax.plot(around, waves[around], color="#e69f00", label="sinusoid")
ax.plot(around, seen[around], color=figures.POS, lw=1.2, label="untrained encoder")
for p, side, shift in ((499, "right", -8), (600, "left", 8)):
    ax.plot(p, seen[p], "o", color=figures.POS, markersize=7)
    where = {"xytext": (shift, 5), "textcoords": "offset points", "ha": side}
    ax.annotate(f"{p}", (p, seen[p]), **where, fontsize=10, weight="bold")
hundreds = {"color": figures.FAINT, "lw": 0.8, "ls": ":", "zorder": 0}
ax.vlines(range(400, 701, 100), 0, 1.06, **hundreds)
ax.set(xlabel="position", xlim=(380, 720), ylim=(0, 1.06))
ax.set_ylabel("cosine with position 500")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-digits-from-500",
    alt="Cosine of the embedding of position 500 with those of positions 380 to 720. "
    "The sinusoid has one peak at 500 and falls off on both sides. The untrained "
    "encoder is high and uneven everywhere, jumps at the hundreds, and its value at "
    "499 lies below that at 600; both are marked.",
    caption="To the untrained encoder 600 is more like 500 than 499 is: it shares "
    f"four of five digits and is at a cosine of {seen[600]:.2f}, while 499 shares two "
    f"and is at {seen[499]:.2f}. The sinusoid knows its neighbours. Dotted: the "
    "hundreds.",
)

# %% [markdown]
# > **Question.** Can a position be read like a word, digit by digit, so that none lacks an embedding and no table has to
# > grow? And what does such an embedding know of distances before anything is trained?
#
# Every encoding so far either looks a position up or computes with it. A table of positions learns whatever is needed and ends at its
# last row. A wave, a fixed slope or a rotation never ends and learns nothing. T5's buckets and the curves of KERPLE learn and do not
# end, but know distances alone.
#
# SeqPE {cite:p}`li2025` takes another way: write the position down, in digits, and let a small network read what is written. This
# chapter builds the network, counts it, makes it cheap, and looks at it before its first training step. {term}`SeqPE` has two losses
# beside that of the task; they follow in {doc}`the next chapter <14_two_losses>`.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 10 s of one CPU core at any profile; no GPU is used, nothing is downloaded. Memory: under 1 GB.
# - **You need**: {doc}`chapter 2 <02_absolute>` (tables and sinusoids), what a transformer block is.
# - **You will learn**: what a carry does to neighbours; why strings of one width, padded on the left; what the encoder
#   costs. Why beginnings that are shared need to be read only once, and that an untrained network sees shared digits and not distance.
# - **Claims tested**: none. Whether SeqPE helps a language model is a question of its records.
# ```
#
# ```{admonition} What was read, and what was not
# :class: warning
# Of the paper we had the abstract and the released code, not the body: its equations and all its tables of results are
# unknown here. So no number of the paper stands on this page. What is called *released* is what the code does; where the
# printed method differs from it, we would not know.
# ```
#
# ## What a table cannot do
#
# A table of $L$ rows has no row $L$; {doc}`chapter 11 <11_extrapolators>` is about what can be invented in its place. There is
# a second thing, less often said: its rows share nothing. What is learned at position 7 changes row 7 and no other, so every
# index needs its own texts, and the rows beyond the usual length stay at their first values.
#
# Let both take one step of gradient descent that moves the embedding of position 1234, and see who else moves.

# %%
positions = torch.arange(10_000)
drawing = torch.Generator().manual_seed(seed)
table = torch.randn(len(positions), WIDTH, generator=drawing)
table = table.double().requires_grad_()
read = encoder(digits=4).requires_grad_(True)


def moved_by_a_step(embed, parameters, at=1234):
    """Share of the other positions whose embedding a step for position `at` changes."""
    before = embed(positions).detach()
    gradients = torch.autograd.grad(embed(positions[at : at + 1]).sum(), parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= 1e-3 * gradient
    moved = (embed(positions).detach() != before).any(dim=1)
    assert moved[at]
    return float(moved.double().sum() - 1) / (len(positions) - 1)


numbers["moved_table"] = moved_by_a_step(lambda p: table[p], [table])
numbers["moved_encoder"] = moved_by_a_step(read, list(read.parameters()))
print(f"table: {numbers['moved_table']:.0%}, encoder: {numbers['moved_encoder']:.0%}")
assert numbers["moved_table"] == 0 and numbers["moved_encoder"] == 1

# %% [markdown]
# In the table {num}`13_digits/moved_table:.0%` of the others move, in the encoder {num}`13_digits/moved_encoder:.0%`: all share
# their weights. Whether they move the way they should is another matter.
#
# And tables grow with what they can name. A table of the cells of $n$ axes needs $p^n$ rows, an encoder $n$ times as many digits. (One
# table an axis, added, needs $n\,p$ rows, and can only add.)

# %%
ranges = [("a text of 512", 512, 3, 1), ("20,000 positions", 20_000, 5, 1)]
ranges += [("a million positions", 10**6, 6, 1), ("100 x 100 patches", 10**4, 2, 2)]
ranges += [("1000 x 1000 x 1000 points", 10**9, 3, 3)]
rows = []
for name, count, width, dims in ranges:
    made = encoder(digits=width, dims=dims)
    sizes = {"rows": count, "numbers of a table": count * WIDTH}
    weights = sum(parameter.numel() for parameter in made.parameters())
    rows.append({"what is named": name, **sizes, "numbers of the encoder": weights})
grown = pd.DataFrame(rows)
figures.show_table(
    grown,
    formats=dict.fromkeys(grown.columns[1:], ",d"),
    caption=f"Both of width {WIDTH}. The encoder grows by an embedding for each more "
    "place and, above one axis, for each coordinate.",
)

# %% [markdown]
# ## Digits
#
# A position $p$ in base $b$ with $W$ places is
#
# $$
# s_k(p) = \left\lfloor p \,/\, b^{\,W-1-k} \right\rfloor \bmod b, \qquad k = 0, \dots, W-1 ,
# $$ (eq-digits-string)
#
# most significant first and padded with zeros on the left. The function is `sepnb.seqpe.digits`; $n$ coordinates follow
# each other in one string, row before column.
#
# ```{literalinclude} ../../sepnb/seqpe/digits.py
# :pyobject: digits
# :start-at: powers =
# :dedent:
# ```

# %%
assert digits([123], width=5).tolist() == [[0, 0, 1, 2, 3]]
assert digits([(2, 3)], width=2).tolist() == [[0, 2, 0, 3]]
assert digits([(2, 300)], width=(1, 3)).tolist() == [[2, 3, 0, 0]]  # unequal ranges
assert digits([123], base=2, width=8).tolist() == [[0, 1, 1, 1, 1, 0, 1, 1]]

for base, width in ((2, 10), (3, 7), (10, 3), (16, 3)):
    all_of_them = torch.arange(base**width)
    powers = base ** torch.arange(width - 1, -1, -1)
    written = digits(all_of_them, base=base, width=width)
    assert torch.equal(written @ powers, all_of_them)

try:
    digits([100_000], width=5)
except ValueError as refused:
    print(refused)

# %% [markdown]
# The check that a number comes back from its digits holds for any order of the places that one agrees on. The likely mistakes
# are others. Written without padding, *99* and *100* have their ones in different places; padded on the right, *12* and
# *120* are one string. Both fail the test that a place means the same in every string:


# %%
def left_aligned(p, width=5):
    """Digits first, zeros after them."""
    written = str(p)
    return [int(symbol) for symbol in written.ljust(width, "0")]


assert left_aligned(12) == left_aligned(120)
tens = digits(torch.arange(1000), width=5)[:, 3]  # the place of the tens
assert torch.equal(tens, torch.arange(1000) // 10 % 10)
assert [left_aligned(p)[3] for p in (99, 100)] != [9, 0], "no place of the tens there"

# %% [markdown]
# Strings have a geometry of their own, and it is not that of the line: at a carry neighbours have little in common.

# %% tags=["hide-input"]
shown = torch.arange(996, 1004)
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.3), width_ratios=(1, 2.1))
for ax, (base, width) in zip(axes, ((10, 5), (2, 11)), strict=True):
    strings = digits(shown, base=base, width=width)
    changed = torch.zeros_like(strings)
    changed[1:] = strings[1:] != strings[:-1]
    tints = ListedColormap([figures.GROUND, "#b9d6ea"])
    shapes.heat_map(ax, changed, cmap=tints, vmin=0, vmax=1, aspect="auto")
    shapes.write_cells(ax, [list(map(str, string)) for string in strings.tolist()])
    ax.set_yticks(range(len(shown)), [f"{p:,}" for p in shown.tolist()])
    ax.set_xticks(range(width), [f"${base}^{{{width - 1 - k}}}$" for k in range(width)])
    ax.tick_params(length=0)
    ax.set_title(f"base {base}")
carry = digits([999, 1000], width=5)
numbers["carry"] = int((carry[0] != carry[1]).sum())
every = digits(torch.arange(10**5), width=5)
numbers["changes"] = float((every[1:] != every[:-1]).sum(dim=1).double().mean())
far = digits([0, 90_000], width=5)
assert int((far[0] != far[1]).sum()) == 1
figures.show(
    fig,
    name="fig-digits-strings",
    alt="The digits of the positions 996 to 1003, one row each, in base 10 on the left "
    "and base 2 on the right; digits that "
    "differ from those of the row above are tinted. In base 10 the row of 1000 is "
    "tinted in four places, the rows beside it in one, the first in none.",
    caption="What changes from one position to the next (tinted). From 999 to 1000 it "
    f"is {numbers['carry']} digits of five, over all strings {numbers['changes']:.2f} "
    "on average; 0 and 90,000 differ in one.",
)

# %% tags=["remove-input"]
moving.show(
    "odometer",
    {"most": 100_000, "start": 999},
    name="moving-odometer",
    alt="A position as the wheels of an odometer, those that turn to the next position "
    "in colour, and how many digits change around it; position and base are chosen.",
    instead="the figure above, around 1,000",
)

# %% [markdown]
# {numref}`fig-digits-strings` is the problem that SeqPE sets itself: 999 and 1000 are neighbours and share one digit, 0 and
# 90,000 lie nine tenths of the whole range apart and share four. A network that reads digits has to learn what a carry is.
#
# ## The encoder
#
# Each digit enters as a vector, with a vector for its place and, in several dimensions, one for its coordinate. A last slot
# holds the same learned vector for every position. A small causal transformer reads the slots from left to right; the last
# one has seen them all, and its state is the embedding:
#
# $$
# \begin{aligned}
# x_k &= \mathrm{Digit}[s_k(p)] + \mathrm{Place}[k] + \mathrm{Dim}[\text{coordinate of } k], \qquad x_S = \mathrm{cls}, \\
# E(p) &= \mathrm{Linear}\left(\mathrm{LayerNorm}\left(\mathrm{Transformer}(x_0, \dots, x_S)_S\right)\right) .
# \end{aligned}
# $$ (eq-digits-encoder)
#
# ```{literalinclude} ../../sepnb/seqpe/encoder.py
# :pyobject: SequentialPositionEncoder.plain
# :dedent:
# ```

# %% tags=["hide-input"]
fig, ax = diagrams.canvas((7.4, 3.8), x=(-0.3, 11.2), y=(-0.8, 6.3))
pos = {"colour": figures.POS, "fill": figures.POS + "26"}
centre, levels = np.arange(6) * 1.8 + 0.7, {"digits": 0, "layer 1": 2, "layer 2": 4}
for slot, (x, label) in enumerate(zip(centre, [*"00123", "cls"], strict=True)):
    for name, y in levels.items():
        look = {"colour": figures.FAINT} if y == 4 and slot < 5 else pos
        words = label if name == "digits" else ""
        diagrams.box(ax, (x - 0.7, y), (1.4, 0.7), words, **look)
    added = f"+ Place[{slot}]" if slot < 5 else "learned"
    ax.text(x, -0.15, added, ha="center", va="top", fontsize=8.5)
for below, above, ends in ((0.75, 1.95, range(6)), (2.75, 3.95, [5])):
    for end in ends:
        for x in centre[: end + 1]:
            line = [x, centre[end]], [below, above]
            ax.plot(*line, color=figures.FAINT, lw=0.8, zorder=0)
for name, y in levels.items():
    ax.text(centre[5] + 0.85, y + 0.35, name, va="center", fontsize=9)
diagrams.arrow(ax, (9.7, 4.75), (9.7, 5.35))
diagrams.box(ax, (7.4, 5.4), (3.1, 0.7), "norm, linear map", **pos)
diagrams.arrow(ax, (7.35, 5.75), (6.4, 5.75))
ax.text(6.3, 5.75, "$E(123)$", ha="right", va="center", fontsize=12)
figures.show(
    fig,
    name="fig-digits-encoder",
    alt="Six slots side by side hold the digits 0, 0, 1, 2, 3 and a learned vector, "
    "each digit with a vector of its place. Lines lead from every slot to itself and "
    "to the slots on its right in layer 1, and from all slots of layer 1 to the last "
    "slot of layer 2. From there an arrow leads through a norm and a linear map to E "
    "of 123. The other slots of layer 2 are grey.",
    caption="The encoder reads 123. A slot sees itself and those on its left, so what "
    "a digit's slot holds depends on the digits up to it. Of the last layer only the "
    "last slot is read; the grey boxes are never computed.",
)

# %% [markdown]
# The blocks are those of the models of this book, pre-norm with biases; nothing was written twice. Its size follows from the
# formula: for width $w$, $S$ places, $D$ columns of the result and two layers,
#
# $$
# 2\,(12 w^2 + 13 w) + (b + S + [n > 1]\, n + 1)\, w + 2 w + (w + 1) D .
# $$ (eq-digits-count)
#
# The two configurations of the release are a text encoder of width 768 with five digits, and an image encoder of width 384 with two
# digits for each of two coordinates.

# %%
RELEASED = {"text": {"width": 768, "digits": 5}}
RELEASED["image"] = {"width": 384, "digits": 2, "dims": 2}
OURS = {"models": {"width": SeqPE.width, "digits": SeqPE.digits}}


def by_formula(width, digits, dims=1, base=10):
    """(eq-digits-count)."""
    embeddings = base + digits * dims + (dims > 1) * dims + 1
    blocks = 2 * (12 * width**2 + 13 * width)
    return blocks + embeddings * width + 2 * width + (width + 1) * width


for name, settings in (RELEASED | OURS).items():
    with torch.device("meta"):  # counted, not filled
        made = SequentialPositionEncoder(**settings)
    count = sum(parameter.numel() for parameter in made.parameters())
    assert count == by_formula(**settings)
    numbers[f"parameters_{name}"] = count
    print(f"{name}: {count:,}")
assert (numbers["parameters_text"], numbers["parameters_image"]) == (14780160, 3704064)
numbers["width_models"] = SeqPE.width

# %% [markdown]
# The text encoder has {num}`13_digits/parameters_text:,` parameters and the image encoder {num}`13_digits/parameters_image:,`, as many as
# the released modules.
#
# By default `SeqPE` has width {num}`13_digits/width_models` and five digits, which makes {num}`13_digits/parameters_models:,` parameters.
# That is the encoder of the models of this book where it changes scores. At the input its last map is as wide as the stream.
#
# Three properties can be checked on any encoder: an embedding does not depend on what else is in the batch, it depends on every digit,
# and no two positions share one. The last lines show that it is the places that carry the order of digits: with their vectors in the
# opposite order it is another function.

# %%
drawn = encoder()
some = torch.randperm(10**5, generator=torch.Generator().manual_seed(1))[:500]
together, alone = drawn(some), torch.cat([drawn(p[None]) for p in some[:5]])
torch.testing.assert_close(alone, together[:5], rtol=0, atol=1e-12)
torch.testing.assert_close(drawn(some.flip(0)), together.flip(0), rtol=0, atol=1e-12)

for place in range(5):  # the last slot reads every digit, the first one too
    other = drawn([12_345 + 10 ** (4 - place)])
    assert (other - drawn([12_345])).abs().max() > 1e-3
assert torch.pdist(together).min() > 1e-3

places = drawn.place.weight
reversed_places = encoder()
reversed_places.place.weight.copy_(places.flip(0))
assert not torch.allclose(reversed_places([12_300]), drawn([12_300])), "places count"

# %% [markdown]
# ## What is shared need only be read once
#
# Read 512 positions of five digits by the definition, and each layer processes 3,072 slots. But under the causal mask the state of a digit's
# slot is a function of the digits up to it: *00118* and *00123* begin alike, and so do their first three slots, in every layer.
# The distinct beginnings of many strings form a tree.

# %% tags=["hide-input"]
few = torch.arange(118, 124)
tree = PrefixTree.of(digits(few, width=5))
fig, ax = plt.subplots(figsize=(7.0, 2.9))
heights = [-np.arange(tree.sizes[-1], dtype=float)]
for place in range(4, 0, -1):  # a beginning stands in the middle of what it begins
    ancestor = tree.above[place][place - 1].numpy()
    groups = range(tree.sizes[place - 1])
    heights.insert(0, np.array([heights[0][ancestor == g].mean() for g in groups]))
for place, digit in enumerate(tree.digit):
    for node, symbol in enumerate(digit.tolist()):
        at = (place, heights[place][node])
        if place:
            before = heights[place - 1][int(tree.above[place][place - 1][node])]
            ax.plot([place - 1, place], [before, at[1]], color=figures.FAINT, zorder=0)
        ax.plot(*at, "o", markersize=19, color="#d9e7f1", markeredgecolor=figures.POS)
        ax.text(*at, str(symbol), ha="center", va="center", fontsize=11)
for p, height in zip(few.tolist(), heights[-1], strict=True):
    ax.text(4.25, height, f"{p}", va="center", fontsize=10)
ax.set(xlim=(-0.4, 4.8), ylim=(-5.6, 0.6), yticks=[])
ax.set_xticks(range(5), ["ten\nthousands", "thousands", "hundreds", "tens", "ones"])
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
figures.show(
    fig,
    name="fig-digits-tree",
    alt="A tree from left to right. The digits 0, 0, 1 form a chain; at the tens it "
    "parts into 1 and 2, and at the ones into 8 and 9 under the first and 0, 1, 2, 3 "
    "under the second, which end in the positions 118 to 123.",
    caption=f"The beginnings of the strings of 118 to 123: {sum(tree.sizes)} nodes "
    f"stand for the {5 * len(few)} digits.",
)

# %% [markdown]
# So each node is computed once, the last slot once for each position, and in the last layer the last slot alone
# (`SequentialPositionEncoder.forward`). The function is the same, in values and in gradients:

# %%
some = torch.arange(3000, 3064)
learning = encoder().requires_grad_(True)
weights = list(learning.parameters())
probe = torch.randn(64, WIDTH, generator=torch.Generator().manual_seed(2)).double()
both = [learning(some), learning.plain(some)]
torch.testing.assert_close(*both, rtol=0, atol=1e-11)
one, other = (torch.autograd.grad((found * probe).sum(), weights) for found in both)
for by_tree, by_definition in zip(one, other, strict=True):
    torch.testing.assert_close(by_tree, by_definition, rtol=0, atol=1e-9)

# The likely mistake, to share what does not only depend on the digits before:
forwards = digits(some, width=5)
backwards = forwards.flip(1)  # least significant first: almost no beginning is shared
nodes = [sum(PrefixTree.of(strings).sizes) for strings in (forwards, backwards)]
assert nodes[1] > 2 * nodes[0]

# %% [markdown]
# The arithmetic that this saves can be counted (`sepnb.analysis.seqpe_cost`): multiply-adds of all maps and of attention, by the
# definition and by the tree alone. A second saving needs no shared beginning: the last layer is read at its last slot only.

# %%
text_encoder, image_encoder = encoder(), encoder(**RELEASED["image"])
grid = torch.cartesian_prod(torch.arange(14), torch.arange(14))
at_random = torch.randint(20_000, (512,), generator=torch.Generator().manual_seed(seed))
windows = {
    "0 to 511": (text_encoder, torch.arange(512)),
    "16,000 to 16,511": (text_encoder, torch.arange(16_000, 16_512)),
    "512 at random below 20,000": (text_encoder, at_random),
    "all 100,000 of five digits": (text_encoder, torch.arange(10**5)),
    "14 x 14 patches": (image_encoder, grid),
}
rows = []
for name, (made, where) in windows.items():
    strings = made.strings(where)
    cost = multiply_adds(made, where)
    counted = {"digits": strings.numel(), "nodes": sum(PrefixTree.of(strings).sizes)}
    saved = {"times fewer, by the tree": cost.plain / cost.tree}
    saved["and the last slot alone"] = cost.plain / cost.shared
    rows.append({"positions": name, **counted, **saved})
costs = pd.DataFrame(rows)

# %% tags=["hide-input"]
figures.show_table(
    costs,
    formats={"digits": ",d", "nodes": ",d"} | dict.fromkeys(saved, ".2f"),
    caption="Digits of all strings, nodes of their tree, and how many times fewer "
    "multiply-adds that makes. Neighbours share most of what they are "
    "written with, positions at random much less.",
)
saving = costs.set_index("positions")[list(saved)]
by_tree, ratio = (saving[name] for name in saved)
numbers["saved_tree"] = f"{by_tree['0 to 511']:.2f}"
numbers["saved_window"] = ratio["0 to 511"]
numbers["saved_far"] = ratio["16,000 to 16,511"]
numbers["saved_random"] = ratio["512 at random below 20,000"]
numbers["saved_grid"] = ratio["14 x 14 patches"]
assert numbers["saved_window"] > 3 and numbers["saved_random"] < numbers["saved_window"]

# %% [markdown]
# On a window of 512 the tree alone saves a factor of {num}`13_digits/saved_tree`, and both together {num}`13_digits/saved_window:.2f`. On
# positions at random, which most positions of the two losses are, it is {num}`13_digits/saved_random:.2f`.
#
# Positions are also the same for every sequence of a batch and every layer. Those of the text are encoded once in a step, those of the
# losses in a second pass, and the teacher's in a third. At inference the embeddings are a table again, as long as it fits into what is
# held (`sepnb.seqpe.injection.HELD`); only the maps from its rows to the queries and keys of positions are made anew in every pass. How
# much of the time of a training step the encoder takes is measured in {doc}`chapter 16 <16_seqpe_stream>`.
#
# No position is handled one by one, neither when digits are taken nor when they are read. Here an encoder of eight columns reads a
# million positions of six digits each:

# %%
million, read = torch.arange(10**6), []
assert digits(million, width=6).shape == (10**6, 6)
written = torch.empty(10**6, 6, dtype=torch.int64)
narrow = encoder(width=8, digits=6).float()
with one_thread(), torch.no_grad():
    for _ in range(2):  # the first round warms up
        by_tensors = cpu_seconds(lambda: digits(million, width=6))
        writing = cpu_seconds(lambda: written.fill_(7))
        part = cpu_seconds(lambda: narrow.plain(million[:1000]))
    whole = cpu_seconds(lambda: read.append(narrow(million)))
assert read[0].shape == (10**6, 8)
assert torch.allclose(read[0][::9_999], narrow.plain(million[::9_999]), atol=1e-5)
print(f"digits of a million positions: {by_tensors / writing:.0f} times writing them")
print(f"all of them read: {whole / part:.0f} times 1,000 by the definition")

# %% [markdown]
# ## Before any training
#
# Is the space of an untrained encoder, with weights as they were initialised, a space of positions? {numref}`fig-digits-from-500`, the
# first of this page, looks around from position 500. What it shows holds for each of several initialisations:

# %%
numbers["cosine_499"], numbers["cosine_600"] = seen[499].item(), seen[600].item()
assert seen[600] > seen[499] and waves[499] > waves[600]
for number in range(N_DRAWN):  # whatever the weights it starts with
    other = cosines(encoder(number)(torch.arange(1000)), 500)
    assert other[600] > other[499]

# %% [markdown]
# A neighbour across a carry is further away than a position that is a hundred off and differs in a single digit. Is that so for all
# positions? Take some at random and look at the cosines of all pairs, by how many digits they share, and by how near they are.

# %%
chosen = torch.randint(10**5, (200,), generator=torch.Generator().manual_seed(seed + 7))
strings = digits(chosen, width=5)
pairs = torch.triu_indices(200, 200, offset=1)
equal = (strings[:, None] == strings[None]).sum(dim=-1)[*pairs].numpy()
near = -(chosen[:, None] - chosen[None]).abs()[*pairs].numpy()


def by_digits(embeddings):
    """Mean cosine of pairs with 0 to 3 equal digits; its rank correlation with
    nearness, of all pairs and of those without an equal digit."""
    rows = torch.nn.functional.normalize(embeddings, dim=-1)
    found = (rows @ rows.T)[*pairs].numpy()
    means = [found[equal == count].mean() for count in range(4)]
    alone = equal == 0
    told = [spearmanr(found[of], near[of]).statistic for of in (equal >= 0, alone)]
    return np.array([*means, *told])


drawings = np.array([by_digits(encoder(number)(chosen)) for number in range(N_DRAWN)])
of_table = torch.randn(200, WIDTH, generator=torch.Generator().manual_seed(seed))
control = by_digits(of_table.double())
assert (np.diff(drawings[:, :4], axis=1) > 0).all(), "each shared digit brings nearer"
assert drawings[:, 4].mean() > 2 * abs(drawings[:, 5].mean()), "and distance does not"

# %% tags=["hide-input"]
columns = [f"{count} equal" for count in range(4)]
columns += ["nearness, all", "nearness, none equal"]
told = pd.DataFrame(
    [drawings.mean(axis=0), drawings.min(axis=0), drawings.max(axis=0), control],
    columns=columns,
)
kinds = ("mean", "least", "largest")
names = [f"untrained encoder, {what} of {N_DRAWN}" for what in kinds]
told.insert(0, "embeddings", [*names, "random table (control)"])
figures.show_table(
    told,
    formats=dict.fromkeys(columns, ".2f"),
    caption="Mean cosine of pairs by how many of five digits are equal, and the rank "
    "correlation of cosines with nearness: of all pairs, and of those that share no "
    "digit.",
)
kept = ("cosine_none_equal", "cosine_three_equal", "rank_near", "rank_near_alone")
numbers |= dict(zip(kept, drawings.mean(axis=0)[[0, 3, 4, 5]].tolist(), strict=True))

# %% [markdown]
# Each shared digit brings two positions nearer: with no digit in common the mean cosine is {num}`13_digits/cosine_none_equal:.2f`, with
# three {num}`13_digits/cosine_three_equal:.2f`.
#
# Nearness correlates with the cosine, at {num}`13_digits/rank_near:.2f`, because near positions tend to share their leading digits. Among
# pairs without a digit in common the correlation is {num}`13_digits/rank_near_alone:.2f`. A random table has nothing of either.
#
# This has a consequence for all that follows. Move the window of $L$ positions by 1,000: the low digits run through it exactly as
# before, and only one high digit differs. Move it by 384, and every carry falls elsewhere. To an encoder that was never trained the
# first of these windows looks familiar and the second does not.

# %%
STARTS = {"first window": 0, "moved by 1,000": 1000, "moved by 384": 384}
panels = {name: encoder()(torch.arange(s, s + L)) for name, s in STARTS.items()}
torch.manual_seed(seed)
panels["random table (control)"] = torch.randn(L, WIDTH, dtype=torch.float64)


def like(start):
    """Likeness of the window at `start` to the first one, for each initialisation."""
    found = []
    for number in range(N_DRAWN):
        made = encoder(number)
        windows = [made(torch.arange(s, s + L)) for s in (0, start)]
        found.append(likeness(*windows))
    return np.array(found)


aligned, misaligned, short = like(1000), like(384), like(100)
by_chance = likeness(panels["first window"], panels["random table (control)"])
numbers["like_aligned"], numbers["like_misaligned"] = aligned.mean(), misaligned.mean()
numbers["like_table"], numbers["like_short"] = by_chance, short.mean()
assert aligned.min() > misaligned.max()
assert (short < aligned).all(), "of each encoder: 100 is shorter than the window"
assert (short > misaligned).all()

# %%
order = [geometry(encoder(n)(torch.arange(L)), torch.arange(L)) for n in range(N_DRAWN)]
numbers["order"] = float(np.mean([found.order for found in order]))
numbers["adjacency"] = float(np.mean([found.adjacency for found in order]))
wave = sinusoidal(torch.arange(L), WIDTH, dtype=torch.float64)
wave = geometry(wave, torch.arange(L))
numbers["order_sinusoid"], numbers["adjacency_sinusoid"] = wave.order, wave.adjacency

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 4, figsize=(7.6, 2.5), sharey=True)
for ax, (name, embeddings) in zip(axes, panels.items(), strict=True):
    rows = torch.nn.functional.normalize(embeddings, dim=-1)
    image = ax.imshow(rows @ rows.T, cmap="cividis", vmin=0.5, vmax=1)
    window = f"\n[{STARTS[name]:,}, {STARTS[name] + L:,})" if name in STARTS else ""
    ax.set_title(name + window, fontsize=9)
    ax.set(xticks=[0, 64, 127], yticks=[0, 64, 127])
fig.colorbar(image, ax=axes, label="cosine", shrink=0.85, extend="min")
figures.show(
    fig,
    name="fig-digits-windows",
    alt="Four square images of cosines inside a window of 128 positions. In the first "
    "two, the first window and the one moved by 1,000, the same dark band stands out "
    "towards the end; in the third, moved by 384, bands lie at other places; the "
    "fourth, of a random table, is dark but for its diagonal.",
    caption="A window that is moved by a round number looks like the first one to an "
    "untrained encoder. Drawn are cosines inside a window. Likeness to the first: "
    f"{aligned.mean():.2f} when moved by 1,000 (mean of {N_DRAWN} initialisations), "
    f"{misaligned.mean():.2f} by 384; a random table {by_chance:.2f}.",
)

# %% [markdown]
# {numref}`fig-digits-windows` is a warning. A distillation asks windows far out to look like the trained one. At starts that are
# multiples of a power of ten longer than the window, its task is half done before it has begun. Whoever tests SeqPE far out at round
# numbers tests the digits. (A window moved by 100, less than its length, has a likeness of {num}`13_digits/like_short:.2f`, between the
# two.) In this book round starts and others are always kept apart, and the untrained encoder is shown with the trained one.
#
# Inside the window an untrained encoder orders pairs by distance at a Spearman correlation of {num}`13_digits/order:.2f`, the sinusoid at
# {num}`13_digits/order_sinusoid:.2f`. For {num}`13_digits/adjacency:.0%` of the positions the most similar other one is a neighbour. That
# is what the two losses have to improve on.
#
# ## Any number of coordinates
#
# In the release *n-dimensional* is one or two. Here it is any number of coordinates, of unequal ranges. A position that the digits cannot
# write is refused with the remedy, where the release ends in whatever the indexing of a list raises.

# %%
video = encoder(dims=3, digits=(4, 2, 2))  # frames, rows, columns
points = torch.tensor([[0, 0, 0], [7, 0, 0], [0, 7, 0], [0, 0, 7], [9_999, 99, 99]])
assert video(points).shape == (5, WIDTH)
assert torch.pdist(video(points)).min() > 1e-3
assert video.highest == (9_999, 99, 99)

folded = encoder(dims=3, digits=(4, 2, 2))  # the same draw
counts = torch.tensor([4, 2, 2])
folded.place.weight.add_(folded.dim.weight.repeat_interleave(counts, dim=0))
folded.dim.weight.zero_()
torch.testing.assert_close(folded(points), video(points), rtol=0, atol=1e-12)

# %% [markdown]
# The last three lines say something of {eq}`eq-digits-encoder`: Place counts through the whole string and so knows the coordinate
# already. Dim can be folded into it without a change of the function. It is kept because the release has it, and it costs $n w$ numbers.
#
# ## Details: what the released code does differently
#
# The code that we read and the one of this book differ in places. What the table has under *seen here* is computed in the folded cells
# before it; nothing in it is taken on trust.


# %% tags=["hide-input"]
def spread(embeddings):
    """Standard deviation of the scaled inner products of all pairs, in nats."""
    products = embeddings @ embeddings.T / embeddings.shape[1] ** 0.5
    return float(products[*torch.triu_indices(*products.shape, 1)].std())


numbers["spread_released"] = spread(encoder(std=0.02)(chosen))
numbers["spread_kept"] = spread(encoder()(chosen))

torch.manual_seed(seed)
wide = SequentialPositionEncoder(**RELEASED["text"]).eval()
anchors, candidates = torch.arange(16) * 1249, torch.randint(20_000, (16, 32))
with torch.no_grad():
    embedded = wide(torch.cat([anchors, candidates.flatten()])).split([16, 512])
given = (embedded[0], embedded[1].unflatten(0, (16, 32)), anchors, candidates)
numbers["contrastive_released"] = contrastive_loss(*given, scale=1.0).item()
numbers["contrastive_scaled"] = contrastive_loss(*given).item()
numbers["contrastive_chance"] = float(np.log(32))

teacher, student = (encoder()(torch.arange(s, s + 32))[None] for s in (0, 384))
by_row = distillation_loss(teacher, student, 4)
by_element = distillation_loss(teacher, student, 4, reduction="released")
numbers["reduction_ratio"] = (by_row / by_element).item()

noisy = encoder(dropout=0.1).train()
passes = [noisy(chosen) for _ in range(2)]
numbers["dropout_apart"] = float((passes[0] - passes[1]).norm() / passes[0].norm())

# %% [markdown]
# Some differences are not of the encoder but of how a model is trained and read with it. They need a small language model whose scores have
# the term of SeqPE.


# %% tags=["hide-input"]
def language_model(**options):
    torch.manual_seed(seed)
    code = SeqPE(width=32, **options)
    shape = TransformerConfig(Streams.dense(64), 2, 4, code, max_length=64)
    return LanguageModel(shape)


model, text = language_model(), torch.randint(256, (2, 65))
schedule = TrainingConfig(800, 2, 64, 4e-3)  # the defaults of this book
next_token_losses(model, text).mean().backward()
part, whole = (
    torch.cat([p.grad.flatten() for p in of.parameters() if p.grad is not None]).norm()
    for of in (encoder_of(model), model)
)
numbers["clip_share"], numbers["clip_norm"] = float(part / whole), float(whole)
decays = optimiser(encoder_of(model), schedule).param_groups[0]
decayed = sum(p.numel() for p in decays["params"])
all_of_it = sum(p.numel() for p in encoder_of(model).parameters())
numbers["decay_share"] = decayed / all_of_it
kept = [1 - schedule.rate(s) * decays["weight_decay"] for s in range(schedule.steps)]
numbers["decay_taken"] = 1 - float(np.prod(kept))

# %% tags=["hide-input"]
model.eval()
with torch.no_grad():
    whole, cache = model(text), model.make_cache(2)
    pieces = [model(text[:, at : at + 1], None, cache) for at in range(65)]
    token_by_token = torch.cat(pieces, dim=1)
    blind = language_model(factor=0.0).eval()(text)  # the same draw, no term
cached_apart = float((token_by_token - whole).abs().max())
numbers["blind_apart"] = float((blind - whole).abs().max())
# The release validates twenty times in a training.
numbers["validation_shifted"] = 1 - (1 - 0.1) ** 20
assert cached_apart < 1e-4 < numbers["blind_apart"]

# %% tags=["hide-input"]
(starts,) = WindowSampler((20_000,), (512,)).starts.tolist()
one_numeral = "28" + "0"
assert one_numeral == "2" + "80"
texts = RELEASED_SHIFTS["starts"]
table = f"""
first weights | standard deviation 0.02 at any width
| the gain of the released width kept at every width
| scores of the contrastive loss at width {WIDTH} differ by
{numbers["spread_released"]:.3f} nats (standard deviation) against
{numbers["spread_kept"]:.2f}

inner products of the contrastive loss | as they are | divided by the root of D
| loss before training at width 768: {numbers["contrastive_released"]:.1f} against
{numbers["contrastive_scaled"]:.2f}; chance is {numbers["contrastive_chance"]:.2f}

mean of the distillation loss | over all entries | over rows
| released is {numbers["reduction_ratio"]:.0f} times smaller at windows of 32

dropout in the encoder | 0.1, in the teacher too | none
| two passes over the same positions differ by {numbers["dropout_apart"]:.0%} of their
norm

weight decay of the encoder's maps | 0
| {decays["weight_decay"]:g}, as of every map; 0 where it is alone
| acts on {numbers["decay_share"]:.0%} of its parameters; over the schedule it alone
takes {numbers["decay_taken"]:.0%} of a weight

largest norm of the gradient | 5.0, encoder and model apart
| {schedule.clip:g}, of both together
| the encoder's is {numbers["clip_share"]:.0%} of {numbers["clip_norm"]:.1f} in a first
step: where it is cut, the model's decides by how much

a token read after a cache
| its term is one constant over all keys: it depends on no position
| the term is made of all keys' positions
| token by token and whole differ by {cached_apart:.0e}; without the term logits move by
{numbers["blind_apart"]:.2f}

validation | a tenth of them at a random shifted window | from position 0 on, always
| of its 20 validations at least one is shifted with a probability of
{numbers["validation_shifted"]:.0%}, and the best of them is kept

starts of shift steps | {texts}, drawn once, many in a step | drawn anew, one in a step
| released, at most {texts / starts:.1%} of the {starts:,} windows of 512 below 20,000
occur; what it makes of a training: not measured

anchors of the contrastive loss | all in a shuffled order | drawn anew in every step
| not measured

edited candidates of two axes | both numerals run together, cut anew at random
| one numeral is edited
| (28, 0) and (2, 80) are both {one_numeral}, run together; what it makes of a training:
not measured
"""
rows = [row.split("|") for row in table.split("\n\n")]
rows = [[" ".join(cell.split()) for cell in row] for row in rows]
figures.show_table(
    pd.DataFrame(rows, columns=["what", "released", "here", "seen here"]),
    caption="Where the two differ, and what that changes in an untrained encoder or "
    "model.",
)
assert 10 * numbers["spread_released"] < numbers["spread_kept"]
assert numbers["contrastive_released"] > 3 * numbers["contrastive_chance"]
assert abs(numbers["reduction_ratio"] - 32) < 1e-6

# %% [markdown]
# `````{dropdown} Details: the first two rows, in words
# **The first row is about our scale.** Take width 64 with the released deviation, and divide scores by the root of $D$ as here. The scores
# among which the contrastive loss has to choose then differ by {num}`13_digits/spread_released:.3f` nats, and as released by eight times
# that. Scaling the weights with the width leaves {num}`13_digits/spread_kept:.2f`. Released as a whole, scale and deviation together, a
# narrow encoder does learn ({doc}`chapter 14 <14_two_losses>`, among the variants).
#
# **The second.** Without the scale the loss begins at {num}`13_digits/contrastive_released:.1f`, far above the
# {num}`13_digits/contrastive_chance:.2f` of a guess among 32. The reason: undivided products of similar numerals are tens of nats apart,
# so that the candidate that looks most like the anchor wins, near or not. (This is one initialisation and 16 anchors with uniform candidates.
# One of the released modules with theirs gave 37.7.) <!-- given: one run of the released modules -->
#
# Both released forms are options: `std`, and `scale` and `reduction` of the losses.
# `````
#
# ## What to take away
#
# 1. Written in digits, every position up to $b^W - 1$ has an embedding, in any number of dimensions, from weights that all positions
#    share. A step for one position moves {num}`13_digits/moved_encoder:.0%` of the others, wanted or not.
# 2. Positions share the beginnings of their strings. Read once, these save a factor of {num}`13_digits/saved_tree` on a window, and
#    {num}`13_digits/saved_window:.2f` where nothing of the last layer is computed that nobody reads. The function is exactly the same.
# 3. Before training the space knows digits, not distance. Each shared digit brings two positions nearer; among pairs that share none, the
#    cosine correlates with nearness at {num}`13_digits/rank_near_alone:.2f`.
# 4. A window that is moved by a power of ten longer than itself looks like the first one for that reason alone. Tests far out must not
#    start at round numbers only.
#
# **Limits.** Nothing on this page is trained, and the encoders are of one width with first weights of our choice. Likeness and order are
# measures of inner products, as the losses read them; a model reads them through a map.
#
# **What would change our mind.** An untrained encoder to which a window at a start that is not round looks as much like the first one as
# a window at a round start. Or a position below $b^W$ that two digit strings share.
#
# ## Exercises
#
# Try each before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (easy)** How many digits change on average from $p$ to $p + 1$ in base $b$, over very long ranges? Check it against base 2 and
# base 10.

# %% tags=["hide-cell"]
# Solution. Place k (from the right) changes every b^k steps:
# 1 + 1/b + 1/b^2 + ... = b / (b - 1).
for base, width in ((2, 16), (10, 5)):
    every = digits(torch.arange(base**width), base=base, width=width)
    changes = (every[1:] != every[:-1]).sum(dim=1).double().mean().item()
    print(base, round(changes, 4))
    assert abs(changes - base / (base - 1)) < 1e-3

# %% [markdown]
# **2. (easy)** Which base needs the fewest nodes for the tree of the positions 0 to 999, among 2, 10 and 32, with as many places as the
# range asks for? And the fewest vectors of digits and places?

# %% tags=["hide-cell"]
# Solution. Base 32 needs the fewest nodes, base 2 the fewest vectors.
nodes, vectors = {}, {}
for base, width in ((2, 10), (10, 3), (32, 2)):
    strings = digits(torch.arange(1000), base=base, width=width)
    nodes[base] = sum(PrefixTree.of(strings).sizes)
    vectors[base] = base + width
print(nodes, vectors)
# A large base has few inner nodes, a small one few vectors: its strings are long, its
# alphabet short.
assert min(nodes, key=nodes.get) == 32 and min(vectors, key=vectors.get) == 2

# %% [markdown]
# **3. (medium)** Give the encoder digits least significant first. Which of the shared slots is left, and what becomes of the saving on 0
# to 511?

# %% tags=["hide-cell"]
# Solution. All first digits differ within ten neighbours; from the third digit on,
# strings of 512 neighbours are distinct.
there = PrefixTree.of(digits(torch.arange(512), width=5)).sizes
back = PrefixTree.of(digits(torch.arange(512), width=5).flip(1)).sizes
print(there, back)
assert there == [1, 1, 6, 52, 512] and back == [10, 100, 512, 512, 512]

# %% [markdown]
# **4. (hard)** Without the causal mask, could prefixes be shared? Find a pair of strings that shows it.

# %% tags=["hide-cell"]
# Solution. No: a slot would read the digits after it. Make the encoder's transformer
# bidirectional and compare the first slot.
causal = encoder().transformer
both_ways = Transformer(replace(causal.config, causal=False)).double()
both_ways.load_state_dict(causal.state_dict())
slots = [encoder().digit(digits([p], width=5)) for p in (12_345, 12_349)]
for model, shares in ((causal, True), (both_ways, False)):
    with torch.no_grad():
        one, other = (model(x)["sem"][:, 0] for x in slots)
    assert torch.equal(one, other) == shares

# %% tags=["hide-cell"]
chapter_numbers.publish("13_digits", numbers, profile=profile)

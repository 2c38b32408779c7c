# %% [markdown]
# # 15. Positions as digits
#
# **Finding.** A network that reads positions digit by digit has an embedding for every string of digits. Before training, these embeddings
# reflect shared digits more than distance. Written with five digits, 600 shares four with 500, and their cosine is
# {num}`15_digits/cosine_600:.2f`. The neighbour 499 shares two, and its cosine with 500 is {num}`15_digits/cosine_499:.2f`.
#
# ```{admonition} Part III in short
# :class: note
# Part III has four chapters, this one included. SeqPE writes a position as a string of digits, and a small encoder turns the string into an
# embedding.
#
# - **This chapter**: what such an encoder computes before any training.
# - {doc}`Chapter 16 <16_two_losses>`: the contrastive loss makes distances between embeddings follow distances between positions. What the
#   distillation loss adds is open.
# - {doc}`Chapter 17 <17_two_dimensions>`: on images larger than those of training, SeqPE does not lead.
# - {doc}`Chapter 18 <18_seqpe_stream>`: a model has position in columns of its own, which hold the embeddings of SeqPE. The losses of SeqPE
#   then do harm far from index 0, and the model fails on longer texts.
#
# The main line of the book continues in {doc}`chapter 19 <19_far_text>`.
# ```

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
from sepnb.encodings import sinusoidal
from sepnb.models import Transformer
from sepnb.plots import diagrams, figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.seqpe import SeqPE, SequentialPositionEncoder, digits
from sepnb.seqpe.encoder import PrefixTree
from sepnb.seqpe.geometry import geometry, likeness

figures.use_style()
# Nothing here is trained: every profile reads the same networks.
L, WIDTH, N_DRAWN = 128, 64, 5
numbers = {}


def encoder(number=0, **settings):
    """An untrained encoder in float64; `number` is that of its initialisation."""
    torch.manual_seed(seed + number)
    made = SequentialPositionEncoder(**{"width": WIDTH, **settings})
    return made.double().eval().requires_grad_(False)


# %% tags=["hide-input"]
first = encoder()(torch.arange(1000))


def cosines(embeddings, of):
    """Cosines of one row with all rows."""
    rows = torch.nn.functional.normalize(embeddings, dim=-1)
    return rows @ rows[of]


seen = cosines(first, 500)
waves = cosines(sinusoidal(torch.arange(1000), WIDTH, dtype=torch.float64), 500)
fig, ax = plt.subplots(figsize=(7.2, 3.4))
around = np.arange(380, 721)
ax.plot(around, waves[around], color="#e69f00", label="sinusoid")
ax.plot(around, seen[around], color=figures.POS, lw=1.2, label="untrained encoder")
about = {"va": "baseline", "fontsize": 10, "weight": "bold"}
for p, aside in ((499, -8), (600, 8)):
    ax.plot(p, seen[p], "o", color=figures.POS, markersize=7)
    shapes.beside(ax, f"{p}", (p, seen[p]), (aside, 5), **about)
hundreds = {"color": figures.FAINT, "lw": 0.8, "ls": ":", "zorder": 0}
ax.vlines(range(400, 701, 100), 0, 1.06, **hundreds)
ax.set(xlabel="position", xlim=(380, 720), ylim=(0, 1.06))
ax.set_ylabel("cosine with position 500")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-digits-from-500",
    alt="Cosine of the embedding of position 500 with those of positions 380 to 720. "
    "The sinusoid has one peak at 500 and falls on both sides. The curve of the "
    "untrained encoder is high and uneven and jumps at the hundreds; the marked point "
    "at 499 is lower than the one at 600.",
    caption="To an untrained encoder, 600 looks more similar to 500 "
    f"(cosine {seen[600]:.2f}) than the neighbour 499 ({seen[499]:.2f}), because it "
    "shares more digits. For the sinusoid, neighbours are most similar. Dotted lines: "
    "the hundreds.",
)

# %% [markdown]
# > **Question.** Can a network read a position digit by digit, so that every position has an embedding and no table has to grow? And what
# > do such embeddings say about distance before any training?
#
# A table of positions is learned, but it ends at its last row. Sinusoids, ALiBi's slopes and rotations never end, but they are not learned.
# T5's buckets and KERPLE's curves are learned and never end, but they know only distances. {term}`SeqPE` {cite:p}`li2025` lets a small
# network read the digits of the position. In this chapter we look at that network before training. SeqPE trains it with two losses, the
# subject of {doc}`the next chapter <16_two_losses>`.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 10 s of one CPU core; no GPU is used, nothing is downloaded. Memory: under 1 GB.
# - **You need**: {doc}`chapter 2 <02_absolute>` (tables and sinusoids), and what a transformer block is.
# - **You will learn**: how digits of neighbours differ, what the encoder costs, and what it knows before training.
# - **Claims tested**: none. Chapters 16 to 18 test SeqPE itself.
# ```
#
# ```{admonition} What was read, and what was not
# :class: warning
# We read the paper's abstract and its released code, but not the paper itself. *Released* means what the code does; the paper may differ.
# ```
#
# ## What a table cannot do
#
# The rows of a table share nothing: what a model learns at position 7 changes row 7 only. So every index has to occur in training. Let us
# take one gradient step for position 1234, in a table and in an encoder. How many other embeddings move?

# %%
positions = torch.arange(10_000)
drawing = torch.Generator().manual_seed(seed)
table = torch.randn(len(positions), WIDTH, generator=drawing)
table = table.double().requires_grad_()
read = encoder(digits=4).requires_grad_(True)


def moved_by_a_step(embed, parameters, at=1234):
    """Share of the other positions whose embedding changes in a step for `at`."""
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
# In the table {num}`15_digits/moved_table:.0%` of the other embeddings move. In the encoder {num}`15_digits/moved_encoder:.0%` move,
# because all embeddings share its weights. Whether these changes are useful is not measured here.
#
# Tables also grow quickly. For $n$ axes with $p$ values each, a table with a row for each point needs $p^n$ rows, but the string of digits
# is only $n$ times as long as for one axis, so the encoder gains only a few vectors.
#
# ## Digits
#
# In base $b$ with $W$ places, the digits of a position $p$ are
#
# $$
# s_k(p) = \left\lfloor p \,/\, b^{\,W-1-k} \right\rfloor \bmod b, \qquad k = 0, \dots, W-1 .
# $$ (eq-digits-string)
#
# The most significant digit comes first, and zeros fill the string on the left. Several coordinates follow each other: the row, then the
# column. In the package:
#
# ```{literalinclude} ../../sepnb/seqpe/digits.py
# :pyobject: written
# :start-at: powers =
# :dedent:
# ```

# %%
assert digits([123], width=5).tolist() == [[0, 0, 1, 2, 3]]
assert digits([(2, 3)], width=2).tolist() == [[0, 2, 0, 3]]
assert digits([(2, 300)], width=(1, 3)).tolist() == [[2, 3, 0, 0]]  # unequal ranges
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
# (With zeros on the right, *12* and *120* would be the same string. With zeros on the left, each place means the same in every string.)
#
# At a carry, neighbours differ in several digits.

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
at_carry = int((carry[0] != carry[1]).sum())
every = digits(torch.arange(10**5), width=5)
on_average = float((every[1:] != every[:-1]).sum(dim=1).double().mean())
far = digits([0, 90_000], width=5)
assert int((far[0] != far[1]).sum()) == 1
figures.show(
    fig,
    name="fig-digits-strings",
    alt="The digits of the positions 996 to 1003, one row each, in base 10 on the left "
    "and base 2 on the right; digits that differ from the row above are tinted. In "
    "base 10 the row of 1000 is tinted in four places, the first row in none, every "
    "other row in one.",
    caption=f"From 999 to 1000, {at_carry} of five digits change; on average over all "
    f"neighbours {on_average:.2f} do. Tinted: digits that differ from the row above.",
)

# %% tags=["remove-input"]
moving.show(
    "odometer",
    {"most": 100_000, "start": 999},
    name="moving-odometer",
    alt="An odometer shows a position. The wheels that turn at the next position are "
    "coloured, and a chart shows how many digits change around it. The reader chooses "
    "position and base.",
    instead="the figure above, around 1,000",
)

# %% [markdown]
# Here is the problem. The neighbours 999 and 1000 share one digit ({numref}`fig-digits-strings`), but the distant positions 0 and 90,000
# share four. So a network that reads digits has to learn what a carry is.
#
# ## The encoder
#
# Each digit becomes a vector. We add a vector for its place and, with several coordinates, one for its coordinate. A last slot holds the
# same learned vector for every position. A small causal transformer reads the slots, and the state of the last slot becomes the embedding:
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
    caption="The encoder reads 123. Each slot sees itself and the slots on its left, "
    "so it depends only on the digits up to its own. Only the last slot of the last "
    "layer is read; the grey boxes can be left out.",
)

# %% [markdown]
# The blocks are this book's pre-norm blocks, with biases. The release has a text encoder of width 768 with five digits, and an image
# encoder of width 384 with two digits for each of two coordinates.

# %%
RELEASED = {"text": {"width": 768, "digits": 5}}
RELEASED["image"] = {"width": 384, "digits": 2, "dims": 2}
OURS = {"models": {"width": SeqPE.width, "digits": SeqPE.digits}}
for name, settings in (RELEASED | OURS).items():
    with torch.device("meta"):  # counted, not filled
        made = SequentialPositionEncoder(**settings)
    numbers[f"parameters_{name}"] = sum(one.numel() for one in made.parameters())
    print(f"{name}: {numbers[f'parameters_{name}']:,}")
assert (numbers["parameters_text"], numbers["parameters_image"]) == (14780160, 3704064)
numbers["width_models"] = SeqPE.width

# %% [markdown]
# At these sizes our encoders have {num}`15_digits/parameters_text:,` and {num}`15_digits/parameters_image:,` parameters, exactly as many as
# the released modules.
#
# The default encoder of this book has width {num}`15_digits/width_models`, five digits and {num}`15_digits/parameters_models:,`
# parameters. The encoders whose embeddings we compare below have width 64.
#
# An embedding must depend on every digit but not on the rest of the batch. No two positions may have the same embedding. The next cell
# tests these three properties on samples.

# %%
drawn = encoder()
some = torch.randperm(10**5, generator=torch.Generator().manual_seed(1))[:500]
together, alone = drawn(some), torch.cat([drawn(p[None]) for p in some[:5]])
torch.testing.assert_close(alone, together[:5], rtol=0, atol=1e-12)
for place in range(5):  # the last slot reads every digit, the first one too
    other = drawn([12_345 + 10 ** (4 - place)])
    assert (other - drawn([12_345])).abs().max() > 1e-3
assert torch.pdist(together).min() > 1e-3

# %% [markdown]
# ## Read shared beginnings only once
#
# Read separately, 512 positions of five digits give each layer 3,072 slots. But under the causal mask a slot depends only on the digits up
# to its own. *00118* and *00123* share their first three digits, so their first three slots are equal in every layer. The distinct
# beginnings of many strings form a tree ({numref}`fig-digits-tree`).

# %% tags=["hide-input"]
few = torch.arange(118, 124)
tree = PrefixTree.of(digits(few, width=5))
fig, ax = plt.subplots(figsize=(7.0, 2.9))
heights = [-np.arange(tree.sizes[-1], dtype=float)]
for place in range(4, 0, -1):  # a node is drawn in the middle of its branches
    ancestor = tree.above[place][place - 1].numpy()
    groups = range(tree.sizes[place - 1])
    heights.insert(0, np.array([heights[0][ancestor == g].mean() for g in groups]))
for place, digit in enumerate(tree.digit):
    for node, symbol in enumerate(digit.tolist()):
        at = (place, heights[place][node])
        if place:
            before = heights[place - 1][int(tree.above[place][place - 1][node])]
            ax.plot([place - 1, place], [before, at[1]], color=figures.FAINT, zorder=0)
        ax.plot(
            *at, "o", markersize=19, color=figures.GROUND, markeredgecolor=figures.POS
        )
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
    alt="A tree from left to right. The digits 0, 0, 1 follow each other without a "
    "branch. At the tens the tree splits into 1 and 2, and at the ones into 8 and 9 "
    "under the first and 0, 1, 2, 3 under the second: the positions 118 to 123.",
    caption=f"The strings of 118 to 123 share beginnings: their {5 * len(few)} digits "
    f"need only {sum(tree.sizes)} nodes.",
)

# %% [markdown]
# So we compute each node of the tree only once, and then the last slot of each position. In the last layer we compute only these last
# slots, because nothing else is read. Values and gradients stay the same up to rounding:

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

# The likely mistake is to write the last digit first: few beginnings are shared.
nodes = [
    sum(PrefixTree.of(s).sizes)
    for s in (digits(some, width=5), digits(some, width=5).flip(1))
]
assert nodes[1] > 2 * nodes[0]

# %% [markdown]
# How many multiply-adds does this save (`sepnb.analysis.seqpe_cost`)?

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
    saved = {"times fewer with the tree": cost.plain / cost.tree}
    saved["and the last slot alone"] = cost.plain / cost.shared
    rows.append({"positions": name, **counted, **saved})
costs = pd.DataFrame(rows)

# %% tags=["hide-input"]
figures.show_table(
    costs,
    formats={"digits": ",d", "nodes": ",d"} | dict.fromkeys(saved, ".2f"),
    caption="Neighbours share more beginnings than random positions. Columns: digits "
    "of all strings, nodes of their tree, and the factors by which multiply-adds "
    "fall.",
)
saving = costs.set_index("positions")[list(saved)]
by_tree, ratio = (saving[name] for name in saved)
numbers["saved_tree"] = f"{by_tree['0 to 511']:.2f}"
numbers["saved_window"] = ratio["0 to 511"]
numbers["saved_random"] = ratio["512 at random below 20,000"]
assert numbers["saved_window"] > 3 and numbers["saved_random"] < numbers["saved_window"]

# %% [markdown]
# On the positions 0 to 511, the tree alone saves a factor of {num}`15_digits/saved_tree`. Together with computing only the last slots of
# the last layer, it saves a factor of {num}`15_digits/saved_window:.2f`. On random positions, both together save a factor of
# {num}`15_digits/saved_random:.2f`.
#
# All sequences of a batch and all layers use the same embeddings. So a training step runs the encoder once for the text and twice for the
# two losses.
#
# ## Before any training
#
# {numref}`fig-digits-from-500` shows one untrained encoder. All initialisations that we drew rank 600 above 499:

# %%
numbers["cosine_499"], numbers["cosine_600"] = seen[499].item(), seen[600].item()
assert seen[600] > seen[499] and waves[499] > waves[600]
for number in range(N_DRAWN):  # for every initialisation
    other = cosines(encoder(number)(torch.arange(1000)), 500)
    assert other[600] > other[499]

# %% [markdown]
# Do shared digits also matter more than distance for random pairs?

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
assert abs(control[3] - control[0]) < 0.1 and abs(control[4]) < 0.1
kept = ("cosine_none_equal", "cosine_three_equal", "rank_near", "rank_near_alone")
numbers |= dict(zip(kept, drawings.mean(axis=0)[[0, 3, 4, 5]].tolist(), strict=True))

# %% [markdown]
# On average, embeddings with more digits in common are more similar: over five initialisations, the mean cosine is
# {num}`15_digits/cosine_none_equal:.2f` with no digit in common and {num}`15_digits/cosine_three_equal:.2f` with three of five. Nearness
# (minus the distance) has a rank correlation of {num}`15_digits/rank_near:.2f` with the cosine, probably because near positions tend to
# share leading digits.
#
# Among pairs without a common digit, the correlation is only {num}`15_digits/rank_near_alone:.2f`. A random table shows neither effect.
#
# Shared digits matter for windows too. A *window* is a run of consecutive positions, and the first window begins at 0. If we move it by
# 1,000, one high digit changes and the low digits stay as they were. If we move it by 384, the low digits change too, and every carry falls
# somewhere else.

# %%
STARTS = {"first window": 0, "moved by 1,000": 1000, "moved by 384": 384}
panels = {name: encoder()(torch.arange(s, s + L)) for name, s in STARTS.items()}
torch.manual_seed(seed)
panels["random table (control)"] = torch.randn(L, WIDTH, dtype=torch.float64)


def like(start):
    """Likeness of the window at `start` to the first one, by initialisation."""
    found = []
    for number in range(N_DRAWN):
        made = encoder(number)
        windows = [made(torch.arange(s, s + L)) for s in (0, start)]
        found.append(likeness(*windows))
    return np.array(found)


aligned, misaligned = like(1000), like(384)
by_chance = likeness(panels["first window"], panels["random table (control)"])
assert aligned.min() > misaligned.max()

# %%
order = [geometry(encoder(n)(torch.arange(L)), torch.arange(L)) for n in range(N_DRAWN)]
numbers["order"] = float(np.mean([found.order for found in order]))
wave = sinusoidal(torch.arange(L), WIDTH, dtype=torch.float64)
numbers["order_sinusoid"] = geometry(wave, torch.arange(L)).order

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
    alt="Four square images of cosines inside a window of 128 positions. The first "
    "window and the one moved by 1,000 have the same dark band towards the end. In the "
    "one moved by 384 the bands are elsewhere. The image of a random table is dark "
    "except for its diagonal.",
    caption="To an untrained encoder, a window moved by 1,000 looks like the first "
    "one; one moved by 384 does not. Colour shows the cosine of two positions in a "
    f"window. Likeness to the first window: {aligned.mean():.2f} when moved by 1,000 "
    f"(mean of {N_DRAWN} initialisations), {misaligned.mean():.2f} by 384, "
    f"{by_chance:.2f} for a random table.",
)

# %% [markdown]
# In {numref}`fig-digits-windows`, the *likeness* of two windows is the correlation of the inner products inside them. SeqPE's distillation
# loss is meant to make far windows look like the window in which a model is trained, here the first one. But the window that starts at
# 1,000 looks like the first window before any training, because its low digits are the same.
#
# So a test only at *round starts* such as 1,000 cannot tell learning from shared digits. This book therefore separates round starts from
# others and shows the untrained encoder next to the trained one.
#
# Inside the first window, nearness and inner product have a Spearman correlation of {num}`15_digits/order:.2f` in the untrained encoder and
# of {num}`15_digits/order_sinusoid:.2f` in the sinusoid.
#
# ## Any number of coordinates
#
# The release handles one or two coordinates. Here there can be any number, each with its own range.

# %%
video = encoder(dims=3, digits=(4, 2, 2))  # frames, rows, columns
points = torch.tensor([[0, 0, 0], [7, 0, 0], [0, 7, 0], [0, 0, 7], [9_999, 99, 99]])
assert video(points).shape == (5, WIDTH)
assert torch.pdist(video(points)).min() > 1e-3
assert video.highest == (9_999, 99, 99)

# %% [markdown]
# ## What the released code does differently
#
# <!-- given: settings of the released code and of this book -->
#
# | what | released | here |
# |---|---|---|
# | first weights | standard deviation 0.02 at any width | scaled with the width, so that the gain is that of the released width |
# | inner products of the contrastive loss | as they are | divided by the root of $D$ |
# | mean of the distillation loss | over all entries, so the loss is $m$ times smaller for windows of $m$ positions | over rows |
# | dropout in the encoder | 0.1, in the teacher too, so two passes over the same positions differ | none |
# | weight decay of the encoder's maps | 0 | 0.1, as for every map; 0 if the encoder is trained alone |
# | gradient clipped to norm | 5.0, for encoder and model separately | 1.0, for both together |
# | a token read after a cache | its term is the same for all keys, so it depends on no position | its term uses the positions of all keys |
# | validation | one in ten at a random shifted window; the best of twenty validations is kept | always from position 0 on |
# | starts of shift steps | 320, drawn once, many in a step | drawn anew, one in a step |
# | anchors of the contrastive loss | all, in a shuffled order | drawn anew in every step |
# | edited candidates of two axes | joined, so that (28, 0) and (2, 80) are both 280, and cut again at random | one numeral is edited |
#
# The first two rows belong together: we changed both for our narrow encoders. With both as released, and with the released mean, such an
# encoder learns equally well ({doc}`chapter 16 <16_two_losses>`, in the figure of the variants).
#
# ## What to take away
#
# 1. Written in digits, every position up to $b^W - 1$ has an embedding, and a position can have any number of coordinates. All positions
#    share the weights, so a gradient step for one position moves the embeddings of all others.
# 2. Computing shared beginnings once, and in the last layer only the last slot, divides the multiply-adds on the positions 0 to 511 by
#    {num}`15_digits/saved_window:.2f`. The result is the same up to rounding.
# 3. Before training, the embeddings reflect digits more than distance. The window moved by 1,000 looks like the first one. So tests at far
#    positions must not start only at round numbers.
#
# **Limits.** Nothing here is trained. All embeddings that we compare have one width and initial weights of our choice. We measure cosines
# and, as the losses do, inner products of the embeddings themselves. A model first sends the embeddings through a linear map, which can
# change both the cosines and the inner products.
#
# **What would change our mind.** An untrained encoder for which windows at other starts are as similar to the first window as those at
# round starts. Or two digit strings for one position below $b^W$.
#
# ## Exercises
#
# Try each before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (medium)** Give the encoder the least significant digit first. Which beginnings of the positions 0 to 511 are still shared?

# %% tags=["hide-cell"]
# Solution. All first digits differ within ten neighbours; from the third digit on,
# strings of 512 neighbours are distinct.
there = PrefixTree.of(digits(torch.arange(512), width=5)).sizes
back = PrefixTree.of(digits(torch.arange(512), width=5).flip(1)).sizes
print(there, back)
assert there == [1, 1, 6, 52, 512] and back == [10, 100, 512, 512, 512]

# %% [markdown]
# **2. (hard)** Could beginnings be shared without the causal mask? Find a pair of strings that shows it.

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
chapter_numbers.publish("15_digits", numbers, profile=profile)

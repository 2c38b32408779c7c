# %% [markdown]
# # 4. Rotation: RoPE
#
# **Finding.** RoPE rotates every query and key by an angle proportional to its position. The score of a given query and key then depends
# only on how far apart they are. The rotation alone does not make far tokens fade. The usual argument that they fade is an upper bound on
# the score, and this bound falls with the distance. In a small trained model the falling bound was looser, for nearly every query and key
# that we measured, than a simple bound that does not fall ({numref}`fig-rotation-trained`).

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import copy
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.patches import Wedge

from sepnb.analysis.states import inputs_of
from sepnb.data import text
from sepnb.encodings import (
    RoPE,
    apply_rope,
    apply_xpos,
    rope_frequencies,
    sinusoidal,
    xpos_scales,
)
from sepnb.evaluation import evaluate
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.plots import figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train

figures.use_style()
# The profile chooses sizes; every profile runs the same code.
width, L = 64, 128
n_steps = {"smoke": 250, "laptop": 300, "gpu": 600}[profile]
QUERY, KEY = "#d55e00", "#0072b2"
generator = torch.Generator().manual_seed(seed)
numbers = {}
# Normal numbers in float64, so that "equal" can mean "equal to rounding".
noise = partial(torch.randn, generator=generator, dtype=torch.float64)


# %% [markdown]
# **Try it: a score is a chain of arrows.** Drag the distance. Each arrow is a pair of columns that turns at its own speed, and the score
# is how far to the right the chain ends: the fast arrows soon curl up, while the slowest still point ahead.

# %% tags=["remove-input"]
moving.show(
    "phasors",
    {"d": 32, "base": 10_000, "most": 512},
    name="moving-phasors",
    alt="The terms of a score as arrows, one for each pair of columns, head to tail, "
    "and below them the score against the distance. The reader chooses distance, "
    "columns of the head and base.",
    instead="the figure on fast and slow pairs, whose waves the score adds up",
)

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
w_drawn, angle_q, angle_k = 0.42, 0.25, 0.1


def arrow(ax, angle, colour, label="", length=1.0, alpha=1.0):
    tip = length * np.array([np.cos(angle), np.sin(angle)])
    style = {"color": colour, "alpha": alpha, "arrowstyle": "-|>", "shrinkA": 0}
    style |= {"shrinkB": 0, "lw": 1.8, "mutation_scale": 12}
    ax.annotate("", xy=tip, xytext=(0, 0), arrowprops=style)
    ax.text(*(1.2 * tip), label, color=colour, ha="center", va="center", fontsize=9.5)


for ax in axes:
    ax.add_patch(plt.Circle((0, 0), 1, fill=False, color=figures.FAINT, lw=0.8))
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    ax.axis("off")
for p in range(6):
    arrow(axes[0], angle_q + p * w_drawn, QUERY, str(p), alpha=1 - 0.12 * p)
axes[0].set_title("one vector at positions 0 to 5", loc="center", fontsize=10)
for i, j in ((3, 1), (7, 5)):
    to_q, to_k = angle_q + i * w_drawn, angle_k + j * w_drawn
    low, high = sorted((np.degrees(to_q), np.degrees(to_k)))
    wedge = {"color": figures.SEM, "alpha": 0.35, "lw": 0}
    axes[1].add_patch(Wedge((0, 0), 0.5, low, high, **wedge))
    arrow(axes[1], to_q, QUERY, f"$q_{i}$")
    arrow(axes[1], to_k, KEY, f"$k_{j}$")
axes[1].set_title("two apart, at two places", loc="center", fontsize=10)
figures.show(
    fig,
    name="fig-rotation-plane",
    alt="Two unit circles. Left: one arrow drawn six times, each turned by the same "
    "angle beyond the last. Right: a query and a key at positions 3 and 1, and the "
    "same two at positions 7 and 5, turned further; the shaded angle between query and "
    "key is the same both times.",
    caption="One vector at positions 0 to 5: a position turns it and keeps its length. "
    "Two apart, at two places: if a query and a key move on together, from positions "
    "3 and 1 to 7 and 5, the angle between them (shaded) stays the same, and so does "
    "their score.",
)

# %% [markdown]
# > **Question.** Can queries and keys get their positions one by one, so that a score depends only on how far apart the two are? And what
# > follows for the scores of far tokens?
#
# {doc}`Chapter 1 <01_order>` found two encodings whose scores do not change when a whole text moves along. ALiBi subtracts a function of
# the distance from every score. Rotary position embedding, or RoPE {cite:p}`su2021`, changes queries and keys one by one, and the distance
# comes out of their product. We derive RoPE and then test two common statements: that far tokens fade, and that fast rotations serve
# position while slow ones serve meaning.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 15 s of one CPU core, most of it for one tiny training; no GPU is used, nothing is downloaded. Memory:
#   under 1 GB.
# - **You need**: {doc}`chapter 1 <01_order>`; complex numbers in polar form, $z = |z|\, e^{J\theta}$ with $J^2 = -1$.
# - **You will learn**: why scores that depend only on distances lead to a rotation; what it is that decays in the famous decay; what
#   happens when a band of frequencies stops; why positions in bfloat16 go wrong from 257 on.
# - **Claims tested**: none here. Chapters {doc}`11 <11_language_model>`, {doc}`12 <12_extrapolators>` and {doc}`13 <13_slow_down>`
#   compare RoPE with other methods.
# ```
#
# ## What one would want
#
# "The dog bit the man" means the same on page 1 and on page 100. *Bit* should find out that *dog* is one token back, whatever its index.
# With a position embedding added at the input, $x_i = p_i + s_t$, the score of query $i$ and key $j$ has four terms,
#
# $$
# q_i \cdot k_j = (p_i + s) W_Q W_K^\top (p_j + s')^\top ,
# $$ (eq-rotation-added)
#
# and three of them contain $p_i$ or $p_j$. A model can learn to make them harmless, but nothing forces it to. So we *ask* for a function
# $f(x, p)$ that puts position $p$ into a query or a key, such that
#
# $$
# \langle f(q, i),\, f(k, j) \rangle = g(q, k, i - j), \qquad f(x, 0) = x .
# $$ (eq-rotation-ask)
#
# The second half says that position 0 encodes nothing. Every candidate must pass this test: if all positions move by the same amount, no
# score may change.

# %%
q, k = noise(12, 8), noise(12, 8)  # [N, d] and [M, d]
here = torch.arange(12)


def scores(put, put_key=None, shift=0):
    """All scores [N, M] when `put(x, positions)` gives vectors their positions."""
    return put(q, here + shift) @ (put_key or put)(k, here + shift).T


def shift_error(put, put_key=None):
    """Largest change of a score when all move by 5; 0 is what we ask for."""
    moved = scores(put, put_key, shift=5) - scores(put, put_key)
    return moved.abs().max().item()


def added(x, positions):
    return x + sinusoidal(positions, 8).double()


print(f"a sinusoid added to queries and keys: {shift_error(added):.2f}")
assert shift_error(added) > 1e-3

# %% [markdown]
# ## The derivation
#
# Take $d = 2$ and read a vector as one complex number, $x = x_1 + J x_2$. The inner product of two vectors is then
# $\operatorname{Re}(q\, \overline{k})$. We ask a little more than {eq}`eq-rotation-ask` does: the whole product
# $f(q,i)\, \overline{f(k,j)}$ must be a function $g$ of $q$, $k$ and $i - j$. In polar form, $f(x, p) = \rho(x, p)\, e^{J \Theta(x, p)}$,
# it has two parts,
#
# $$
# \begin{aligned}
# \rho(q, i)\, \rho(k, j) &= \rho_g(q, k, i - j), \\
# \Theta(q, i) - \Theta(k, j) &= \Theta_g(q, k, i - j),
# \end{aligned}
# $$ (eq-rotation-polar)
#
# where $\rho_g$ and $\Theta_g$ are modulus and phase of $g$. The right sides depend only on $i - j$.
#
# **The modulus.** Set $i = j$ and $q = k$. Then $\rho(q, i)^2 = \rho_g(q, q, 0)$ is the same at every position, also at 0, where it is
# $|q|^2$. So
#
# $$
# \rho(x, p) = |x| :
# $$ (eq-rotation-modulus)
#
# a position must not change the length of a vector. (This treats queries and keys alike. {ref}`xPos <rotation-xpos>` does not.)
#
# **The phase.** Set $i = j$ again, now with any $q$ and $k$, and compare with position 0:
# $\Theta(q, i) - \Theta(k, i) = \theta_q - \theta_k$, so $\Theta(q, i) - \theta_q = \Theta(k, i) - \theta_k$. A position adds the same
# angle to every vector; call it $\varphi(i)$. Now set $j = i - 1$:
#
# $$
# \varphi(i) - \varphi(i - 1) = \Theta_g(q, k, 1) - \theta_q + \theta_k .
# $$ (eq-rotation-phase)
#
# The right side does not depend on $i$. So $\varphi$ grows in equal steps from $\varphi(0) = 0$: $\varphi(p) = p\, w$, the angle is
# *linear* in the position. Together,
#
# $$
# f(x, p) = x\, e^{J p w}, \qquad
# \operatorname{Re}\bigl( f(q, i)\, \overline{f(k, j)} \bigr)
# = \operatorname{Re}\bigl( q\, \overline{k}\; e^{J (i - j) w} \bigr) .
# $$ (eq-rotation-solution)
#
# Multiplying by $e^{J p w}$ turns the plane by the angle $p w$ ({numref}`fig-rotation-plane`). As a matrix that acts on the column
# $(x_1, x_2)^\top$,
#
# $$
# R_p = \begin{pmatrix} \cos p w & -\sin p w \\ \sin p w & \cos p w \end{pmatrix}, \qquad
# R_i^\top R_j = R_{j - i} .
# $$ (eq-rotation-matrix)
#
# {doc}`Chapter 2 <02_absolute>` writes the same matrix *after a row*, where it turns the other way.
#
# ### By hand
#
# Let $w = \pi/2$, a quarter turn for each position, $q = (1, 0)$ at $i = 2$ and $k = (0, 1)$ at $j = 1$. Both are turned to $(-1, 0)$, so
# their score is 1. One position on, both are $(0, -1)$, and it is again 1. Unrotated it would be 0.
#
# `apply_rope` is {eq}`eq-rotation-solution`, and we compare it with complex numbers. This check notices if one of the two turns the other
# way; a check of norms would not.

# %%
quarter = torch.tensor([torch.pi / 2], dtype=torch.float64)
hand_q, hand_k = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]], dtype=torch.float64)


def hand(i, j):
    at_i, at_j = torch.tensor([i]), torch.tensor([j])
    turned = apply_rope(hand_q, at_i, quarter), apply_rope(hand_k, at_j, quarter)
    return (turned[0] * turned[1]).sum().item()


assert abs(hand(2, 1) - 1) < 1e-15 and abs(hand(3, 2) - 1) < 1e-15
assert abs(hand(0, 0)) < 1e-15
assert abs(hand(1, 2) + 1) < 1e-15  # the sign of i - j counts

pair = noise(6, 2)
angles = torch.arange(6) * quarter / 3
as_complex = torch.view_as_complex(pair) * torch.polar(torch.ones_like(angles), angles)
ours = apply_rope(pair, torch.arange(6), quarter / 3)
torch.testing.assert_close(ours, torch.view_as_real(as_complex), rtol=0, atol=1e-14)
backwards = apply_rope(pair, -torch.arange(6), quarter / 3)
assert (backwards - ours).abs().max() > 1e-3, "the other way round is another function"

# %% [markdown]
# ## From two columns to a head
#
# A head has $d$ columns, $d$ even. Inner products add up over columns, so we divide them into $d/2$ pairs and turn pair $m$ by its own
# frequency $w_m$. $R_p$ is then {term}`block-diagonal` with one $2 \times 2$ rotation for each pair, and
#
# $$
# (R_i q) \cdot (R_j k) = q^\top R_i^\top R_j\, k
# = \operatorname{Re} \sum_{m=0}^{d/2 - 1} h_m\, e^{J (i - j) w_m}, \qquad h_m = q_m \overline{k_m} .
# $$ (eq-rotation-score)
#
# These are the arrows of the chain at the top of the page, there with all $h_m = 1$. Any frequencies will do. RoPE takes those of the
# {term}`sinusoidal encoding`, a geometric sequence from 1 downwards,
#
# $$
# w_m = b^{-2m/d}, \qquad b = 10{,}000 .
# $$ (eq-rotation-frequencies)
#
# Nobody builds the $d \times d$ matrix, because nearly all of it is zeros. Two element-wise products do the same:
#
# $$
# R_p\, x = x \odot \cos(p w) + x^{\perp} \odot \sin(p w) ,
# $$ (eq-rotation-hadamard)
#
# where $x^{\perp}$ holds $(-x_2, x_1)$ for each pair $(x_1, x_2)$, and each $w_m$ appears twice. In the package, where `cos` and `sin`
# are those of $p\,w$:
#
# ```{literalinclude} ../../sepnb/encodings/rope.py
# :pyobject: rotate
# :start-at: if layout
# :dedent:
# ```

# %%
d = 8
w, _ = rope_frequencies(d)
assert torch.equal(w, 10_000.0 ** (-2 * torch.arange(d // 2).double() / d))
assert not torch.allclose(w, 10_000.0 ** (-torch.arange(d // 2).double() / d))


def rotation_matrix(p):
    """R_p, for pairs of neighbouring columns."""
    cos, sin = (p * w).cos(), (p * w).sin()
    return torch.block_diag(*torch.stack([cos, -sin, sin, cos]).T.reshape(-1, 2, 2))


def neighbours(x, positions):
    return apply_rope(x, positions, w, layout="interleaved")


def by_hadamard(x, p):
    perpendicular = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    angle = (p * w).repeat_interleave(2)
    return x * angle.cos() + perpendicular * angle.sin()


at_9 = neighbours(q, torch.full((12,), 9))
torch.testing.assert_close(at_9, q @ rotation_matrix(9).T, rtol=0, atol=1e-14)
torch.testing.assert_close(at_9, by_hadamard(q, 9), rtol=0, atol=1e-14)
assert (at_9 - q @ rotation_matrix(9)).abs().max() > 1e-3  # the transpose turns back
print(tuple(q.shape), "->", tuple(at_9.shape), " zeros in R_9:", 64 - 4 * d // 2)

# %% [markdown]
# Four properties follow, and each has a mistake that would break it: rotations compose, $R_a R_b = R_{a+b}$; they keep norms; $R_0$ is
# exactly the identity; and scores depend on $i - j$.


# %%
def rope(x, positions):
    return apply_rope(x, positions, w)  # the book's default layout, "half"


def everywhere(p):
    return torch.full((12,), p)


twice = rope(rope(q, everywhere(40)), everywhere(7))
torch.testing.assert_close(twice, rope(q, everywhere(47)), rtol=0, atol=1e-13)
torch.testing.assert_close(rope(q, here).norm(dim=-1), q.norm(dim=-1))
assert torch.equal(rope(q, everywhere(0)), q)

# %%
candidates = {
    "RoPE": (rope, rope),
    "only the query turns": (rope, lambda x, p: x),
    "the key turns the other way": (rope, lambda x, p: rope(x, -p)),
    "the angle is quadratic": (lambda x, p: rope(x, p**2),) * 2,
    "the length grows": (lambda x, p: rope(x, p) * (1 + 0.1 * p)[:, None],) * 2,
    "nothing turns": (lambda x, p: x,) * 2,
}
plain = q @ k.T
table = pd.DataFrame(
    {
        "what is done": name,
        "change under a shift": shift_error(*pair),
        "effect of positions": (scores(*pair) - plain).abs().max().item(),
    }
    for name, pair in candidates.items()
)
figures.show_table(
    table,
    caption="Largest change of a score when all positions move by 5, and largest "
    "difference that positions make at all (float64). Only RoPE depends on positions "
    "but not on a shift; 1e-14 is rounding.",
    formats=dict.fromkeys(table.columns[1:], ".2g"),
    highlight=[0],
)
moved = table.set_index("what is done")["change under a shift"]
assert moved["RoPE"] < 1e-12 and moved["nothing turns"] == 0
assert (moved.drop(["RoPE", "nothing turns"]) > 1e-3).all()
assert table["effect of positions"][0] > 1e-3, "or RoPE would be no encoding"

# %% [markdown]
# All the wrong rows are real mistakes. The last one passes the shift test by doing nothing, so a second test must check that positions
# matter.
#
# ### Two layouts
#
# *Which* two columns make a pair is a convention, and public code disagrees. *Interleaved* pairs neighbours, $(2m, 2m+1)$; *half* pairs
# $(m, m + d/2)$, which is our default. They are the same function of permuted columns. With $P$ the permutation that puts even columns
# first,
#
# $$
# R^{\text{half}}_p\, (P x) = P\, (R^{\text{interleaved}}_p\, x) .
# $$ (eq-rotation-layouts)

# %%
evens_first = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
half_of_permuted = apply_rope(q[:, evens_first], here, w, layout="half")
assert torch.equal(half_of_permuted, neighbours(q, here)[:, evens_first])
difference = (scores(rope) - scores(neighbours)).abs().max().item()
assert difference > 1e-3, "without the permutation the layouts give other scores"
print(f"same columns, other layout: scores differ by up to {difference:.1f}")

# %% [markdown]
# Both layouts have all the properties in the table, so no test of properties notices that a checkpoint was loaded with the wrong one. A
# {ref}`trained model <rotation-trained>` below shows the cost.
#
# ### "My dog" and "I walk my dog"
#
# One of the web articles behind this book explains RoPE with two sentences. In "my dog" the vector of *dog* is turned by $2\theta$,
# because it is the second word, in "I walk my dog" by $4\theta$, and "the attention score between two tokens depends only on their
# relative positions". (We count from 0, so it is $\theta$ and $3\theta$, with the same scores.) We try it with two blocks of random
# weights and four words:

# %%
torch.manual_seed(seed)
config = TransformerConfig(Streams.dense(32), 2, 2, "rope", max_length=8)
reader = LanguageModel(config, vocab_size=4).to(device).double().eval()
long = torch.arange(4, device=device)[None]  # "I walk my dog"
short = long[:, 2:]  # "my dog"


def ratio_and_weight(tokens):
    """Per block: weight of dog on my over that on itself, and the weight on my."""
    with torch.no_grad(), frozen_attention(reader) as tapes:
        reader(tokens)
    rows = [tape.weights[0, 0, -1, -2:] for tape in tapes]  # first head, query dog
    return [(row[0] / row[1]).item() for row in rows], [row[0].item() for row in rows]


# %%
ratio_short, weight_short = ratio_and_weight(short)
ratio_long, weight_long = ratio_and_weight(long)
assert abs(ratio_short[0] - ratio_long[0]) < 1e-12
assert abs(ratio_short[1] - ratio_long[1]) > 1e-6
assert weight_long[0] < weight_short[0]
numbers["dog_ratio_change_block_1"] = abs(ratio_short[0] - ratio_long[0])
numbers["dog_ratio_change_block_2"] = abs(ratio_short[1] - ratio_long[1])

# %% [markdown]
# In the first block the article is right. The ratio of the weights of *dog* on *my* and on itself depends only on the two scores, and
# between the sentences it changes by {num}`04_rotation/dog_ratio_change_block_1:.0e`, which is rounding. The *weight* on *my* does change,
# because in the longer sentence more keys share the attention. In the second block the *scores* change too: the ratio changes by
# {num}`04_rotation/dog_ratio_change_block_2:.2f`, because by then *my* has read *I* and *walk*, so its key is another one. For a *given*
# query and key the score depends only on their relative position. Here the key itself has changed.
#
# ### Values are left alone
#
# RoPE does not turn values. If it did, the output would be $z_i = \sum_j a_{ij} R_j v_j$, and since $R_{j+c} = R_c R_j$,
#
# $$
# z_{i + c} = R_c\, z_i :
# $$ (eq-rotation-values)
#
# the same text, moved by $c$, would write the same vector turned by $c$ into the {term}`residual path`, and every layer above would see
# *absolute* positions.

# %%
v = noise(12, 8)
weights = scores(rope).div(d**0.5).softmax(dim=-1)  # the same under any shift


def read(c, turn_values):
    return weights @ (rope(v, here + c) if turn_values else v)


assert torch.equal(read(5, False), read(0, False))
assert (read(5, True) - read(0, True)).abs().max() > 1e-3
turned_by_5 = rope(read(0, True), everywhere(5))
torch.testing.assert_close(read(5, True), turned_by_5, rtol=0, atol=1e-13)

# %% [markdown]
# ## Fast and slow pairs
#
# {eq}`eq-rotation-score` is a sum of waves over the distance $\delta = i - j$. Pair $m$ repeats after $2\pi / w_m$ tokens. For a head of
# 64 columns:

# %% tags=["hide-input"]
shown_w, _ = rope_frequencies(64)
far = torch.arange(0, 513)
fig, ax = plt.subplots(figsize=(7.4, 3.4))
of_pairs = torch.cos(shown_w[:, None] * far)
image = shapes.heat_map(ax, of_pairs, reach=1, aspect="auto")
period = 2 * np.pi / shown_w.numpy()
ticks = [0, 4, 8, 12, 16, 20, 24, 28, 31]
ax.set_yticks(ticks, [f"{m}  ({period[m]:,.0f})" for m in ticks])
ax.set_xlabel(r"distance $\delta = i - j$ (tokens)")
ax.set_ylabel("pair $m$ (period in tokens)")
fig.colorbar(image, ax=ax, label=r"$\cos(\delta\, w_m)$", ticks=[-1, 0, 1])
figures.show(
    fig,
    name="fig-rotation-waves",
    alt="Heat map of the cosine of distance times frequency for 32 pairs and distances "
    "up to 512. The upper rows flicker, "
    "the middle rows show a few broad stripes, the lower rows are uniformly one.",
    caption="Each pair of columns is a wave over the distance. The first pairs "
    f"distinguish neighbours; {(period > 1024).sum()} of 32 make less than half a turn "
    "in 512 tokens, and the last ones hardly turn at all.",
)
assert abs(period[0] - 2 * np.pi) < 1e-12 and period[-1] < 2 * np.pi * 10_000

# %% [markdown]
# A pair that does not turn within the trained length compares content with content, wherever the two tokens are. This is what one of our
# articles means by "low frequencies enable long-distance semantic attention".
#
# ## Does a score decay with the distance?
#
# A set of notes among our sources concludes: "intuitively tokens do not influence other tokens that are relatively far away". The
# argument {cite:p}`su2021` is a bound. Let $S_m(\delta) = \sum_{n < m} e^{J \delta w_n}$ be the partial sums of the waves, $S_0 = 0$, and
# put $h_{d/2} = 0$. Each wave is a difference of partial sums, and summing by parts (Abel's summation) gives
#
# $$
# \sum_{m=0}^{d/2-1} h_m\, e^{J \delta w_m}
# = \sum_{m=0}^{d/2-1} h_m (S_{m+1} - S_m)
# = -\sum_{m=0}^{d/2-1} S_{m+1} (h_{m+1} - h_m) .
# $$ (eq-rotation-abel)
#
# With the triangle inequality,
#
# $$
# \Bigl| \sum_m h_m\, e^{J \delta w_m} \Bigr|
# \;\le\; \max_m |h_{m+1} - h_m| \;\cdot\; \sum_{m=0}^{d/2-1} |S_{m+1}(\delta)| .
# $$ (eq-rotation-bound)
#
# The second factor depends on neither query nor key. It falls with the distance, in waves, because far away the fast arrows point in all
# directions and their sums stay small.
#
# But a falling upper bound need not make the score fall. There is a simpler bound that does not fall at all:
# $|\sum_m h_m e^{J \delta w_m}| \le \sum_m |h_m|$. At any distance $\delta_0$ you choose, one key *attains* it:
#
# $$
# k_m = q_m\, e^{J \delta_0 w_m} \quad\Longrightarrow\quad h_m\, e^{J \delta w_m} = |q_m|^2\, e^{J (\delta - \delta_0) w_m} .
# $$ (eq-rotation-tuned)


# %%
def products(q, k):
    """h_m as [..., d/2] complex numbers, for the layout "half"."""
    one, other = (torch.complex(*x.chunk(2, dim=-1)) for x in (q, k))
    return one * other.conj()


def waves(distance, w):
    return torch.polar(torch.ones(()).double(), distance[..., None].double() * w)


def partial_sums(distance, w):
    """Sum over m of |S_{m+1}|: the factor of the bound that falls."""
    return waves(distance, w).cumsum(dim=-1).abs().sum(dim=-1)


def largest_step(h):
    """max |h_{m+1} - h_m| with h_{d/2} = 0."""
    return torch.diff(h, append=torch.zeros_like(h[..., :1])).abs().amax(dim=-1)


wide_q, wide_k, distance = noise(200, 64), noise(200, 64), torch.arange(200)
h = products(wide_q, wide_k)
exact = (h * waves(distance, shown_w)).sum(dim=-1)
rotated = apply_rope(wide_q, distance, shown_w) * wide_k  # the keys are at 0
torch.testing.assert_close(exact.real, rotated.sum(dim=-1), rtol=0, atol=1e-12)
S = waves(distance, shown_w).cumsum(dim=-1)
steps = torch.diff(h, append=torch.zeros_like(h[:, :1]))
torch.testing.assert_close(-(S * steps).sum(dim=-1), exact, rtol=0, atol=1e-12)
assert (exact.abs() <= largest_step(h) * partial_sums(distance, shown_w)).all()
assert largest_step(torch.ones(32) + 0j) == 1  # the last step, to zero, counts

# %% [markdown]
# {numref}`fig-rotation-decay` compares the two bounds for $d = 64$ with three scores: that of equal $h_m$, that of a key tuned to distance
# 300 by {eq}`eq-rotation-tuned`, and the root mean square over random phases of the $h_m$. All are drawn as shares of $\sum_m |h_m|$.

# %%
equal = waves(far, shown_w).sum(dim=-1).real / 32
bound = partial_sums(far, shown_w) / 32
tuned = waves(far - 300, shown_w).sum(dim=-1).real / 32
random_phases = torch.polar(torch.ones(400, 32).double(), 2 * torch.pi * noise(400, 32))
at_random = (random_phases @ waves(far, shown_w).T).real.pow(2).mean(dim=0).sqrt() / 32
assert abs(tuned[300] - 1) < 1e-12 and abs(equal[0] - 1) < 1e-12
assert abs(bound[0] - 33 / 2) < 1e-12, "at distance 0 the bound is (d/2 + 1)/2"
numbers["bound_at_0"] = bound[0].item()
numbers["bound_far"] = bound[-100:].mean().item()
numbers["bound_least"] = bound.min().item()
numbers["equal_far"] = equal[-100:].mean().item()
assert bound.min() > 1, "for equal products it says less than the simple one"
ramp = torch.arange(32, 0, -1).double()  # products that go down to zero in equal steps
bound_ramp = partial_sums(far, shown_w) / ramp.sum()
assert bound_ramp[1:].max() < 1, "for these it says more than the simple one"

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.7))
curves = {"bound (Abel)": bound, "bound (simple)": torch.ones_like(bound)}
curves |= {"tuned to 300": tuned, "all equal": equal, "random phases, rms": at_random}
looks = ("#26282b", "", shapes.DASHED), ("#6b6f74", "", shapes.DOTTED)
looks += ("#d55e00", "", "-"), ("#0072b2", "", "-")
looks += (("#009e73", "", (0, (7, 1.5, 1, 1.5))),)
shapes.curves(ax, far, curves, looks, linewidth=1.4)
ax.set_yscale("symlog", linthresh=1, linscale=1.6)
ax.set_yticks([0, 0.5, 1, 5, 10], ["0", "0.5", "1", "5", "10"])
ax.minorticks_off()
ax.set(xlabel=r"distance $\delta$ (tokens)", ylabel=r"share of $\sum_m |h_m|$")
ax.set(xlim=(0, 512), ylim=(-0.08, 20))
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-rotation-decay",
    alt="Curves over distances to 512. The Abel bound falls from sixteen and a half "
    "in waves but stays above one, the simple bound. The score of equal products "
    "falls from one in waves. That of a tuned key peaks at one at distance 300. The "
    "root mean square for random phases is flat.",
    caption="A bound falls with the distance, but for equal products it stays above "
    "the simple bound, which does not fall. A key tuned to distance 300 has its "
    "largest score there, and for random phases the distance makes no difference. "
    "(Linear below 1, logarithmic above.)",
)

# %% [markdown]
# For equal products the bound falls from {num}`04_rotation/bound_at_0:.1f` to {num}`04_rotation/bound_far:.1f`, its mean over the last
# hundred distances, and it is nowhere below {num}`04_rotation/bound_least:.1f`. So at every distance shown it is looser than the simple
# bound, which is 1. It *can* be tighter, if the products change smoothly from pair to pair, for instance if they go down to zero in equal
# steps.
#
# There *is* a decay for equal products, for instance if query and key are equal and all their pairs have the same length. The fast waves
# average out, and the mean over the last hundred distances is {num}`04_rotation/equal_far:.2f` of the score at 0. But queries and keys are
# learned. What does a trained model do?
#
# (rotation-trained)=
# ## A trained model
#
# We train one model with two blocks and two heads of 32 columns for a few seconds, on the Python sources of a library that PyTorch
# installs. One small model with one seed can show that something *happens*, but not how often.

# %%
library = text.load("sympy")
torch.manual_seed(seed)
config = TransformerConfig(Streams.dense(width), 2, 2, "rope", max_length=L)
model = LanguageModel(config).to(device)
untrained = copy.deepcopy(model).eval()
order = {"batch_size": 8, "length": L, "seed": seed, "steps": n_steps}
batches = text.sample_batches(library.train, **order)
train(model, batches, TrainingConfig(n_steps, 8, L, 4e-3), device=device)
model.eval().requires_grad_(False)
held_out = text.windows(library.validation, length=L, per_document=2 * L).tokens[:128]


def bits(model, **rule):
    """Held-out bits per byte under an evaluation rule such as window=8."""
    return evaluate(model.extended(**rule), held_out, device=device).bits_per_byte


numbers["bits"] = bits(model)
print("windows", held_out.shape, f" {numbers['bits']:.3f} bits per byte")

# %% [markdown]
# First we load these weights into a model with the wrong layout. Every shape fits, and nothing complains. Then we permute the columns of
# each head's queries and keys by {eq}`eq-rotation-layouts`, and it is the old model again.

# %%
d = config.head_width
neighbouring = RoPE(layout="interleaved")
other = TransformerConfig(Streams.dense(width), 2, 2, neighbouring, max_length=L)
stranger = LanguageModel(other).to(device)
stranger.load_state_dict(model.state_dict())
numbers["bits_wrong_layout"] = bits(stranger)

back = torch.arange(d).view(2, d // 2).T.flatten()  # half to neighbours
for block in stranger.transformer.blocks:
    weight = block.attention.query_key[0].weight  # [2 H d, D]: queries, then keys
    weight.data = weight.data.unflatten(0, (-1, d))[:, back].flatten(0, 1)
numbers["bits_permuted"] = bits(stranger)
print({key: round(bits, 4) for key, bits in numbers.items() if key.startswith("bits")})
assert abs(numbers["bits_permuted"] - numbers["bits"]) < 1e-4
assert numbers["bits_wrong_layout"] > numbers["bits"] + 0.05

# %% [markdown]
# The loss of the model is {num}`04_rotation/bits:.2f` bits per byte. With the wrong layout it is {num}`04_rotation/bits_wrong_layout:.2f`,
# and with permuted weights again {num}`04_rotation/bits_permuted:.2f`.
#
# ### Its scores, by distance
#
# We take the normalised inputs of each attention layer and compute queries and keys before any rotation. The model's own attention weights
# confirm that these are right.


# %%
def queries_and_keys(model, tokens):
    """Per layer q and k before rotation, [B, H, N, d] each, and the weights."""
    layers = [block.attention for block in model.transformer.blocks]
    with torch.no_grad(), frozen_attention(model) as tapes, inputs_of(layers) as read:
        model(tokens)
        given = zip(layers, list(read), strict=True)
        parts = [
            layer.queries_and_keys(0, streams)[0] for layer, (streams, *_) in given
        ]
    weights = [tape.weights.cpu() for tape in tapes]
    return [(part.queries[0].cpu(), part.keys[0].cpu()) for part in parts], weights


sample = torch.from_numpy(held_out[::16, :L]).to(device)
pairs, model_weights = queries_and_keys(model, sample)
trained_w, _ = rope_frequencies(d)
for (q_l, k_l), a in zip(pairs, model_weights, strict=True):
    turned_q, turned_k = (apply_rope(x, torch.arange(L), trained_w) for x in (q_l, k_l))
    logits = turned_q @ turned_k.mT / d**0.5
    ahead = ~torch.ones(L, L, dtype=torch.bool).tril()
    mine = logits.masked_fill(ahead, -torch.inf).softmax(dim=-1)
    torch.testing.assert_close(mine, a, rtol=0, atol=1e-5)

# %% [markdown]
# For every query and key of these texts we now know $h_m$, so we also know what their score *would be* at any other distance. That takes
# the text out of the comparison: if RoPE makes far tokens fade, the same two vectors must score less when they are farther apart.

# %%
i, j = torch.tril_indices(L, L)


def all_products(pairs):
    """h_m of every query with every key that it sees, both layers and all heads."""
    seen = ((q_l[..., i, :].double(), k_l[..., j, :].double()) for q_l, k_l in pairs)
    return torch.cat([products(*one).flatten(0, 2) for one in seen])


h = all_products(pairs)
real_distance = (i - j).repeat(len(h) // len(i))
score = (h * waves(real_distance, trained_w)).sum(dim=-1).real / d**0.5
simple = h.abs().sum(dim=-1) / d**0.5
falls = partial_sums(torch.arange(L), trained_w)[real_distance]
abel = largest_step(h) * falls / d**0.5
assert (score.abs() <= torch.minimum(simple, abel) + 1e-12).all()
numbers["abel_says_more"] = (abel < simple).double().mean().item()
assert numbers["abel_says_more"] < 0.01, "or the decay of the bound would bind"

# %% [markdown]
# Now we put the same pairs at every distance of the window, and for comparison do the same with the model before its training.

# %%
drawn = torch.randperm(len(h), generator=generator)[:4000]
everywhere_w = waves(torch.arange(L), trained_w)
stretches = {"nearest": (0, 4), "middle": (16, L // 2), "far": (L // 2, L)}


def move(h):
    """Scores [4000, L] of the drawn pairs at all distances."""
    return (h[drawn] @ everywhere_w.T).real / d**0.5


def medians(moved):
    return {
        f"median_{stretch}": moved[:, start:stop].median(dim=0).values.mean().item()
        for stretch, (start, stop) in stretches.items()
    }


at_first = medians(move(all_products(queries_and_keys(untrained, sample)[0])))
moved = move(h)
numbers |= medians(moved)
rms = moved.pow(2).mean(dim=0).sqrt()
numbers["rms_far_over_near"] = (rms[L // 2 :].mean() / rms[:8].mean()).item()
far_above_near = moved[:, L // 2 :].mean(dim=1) > moved[:, :8].mean(dim=1)
numbers["far_above_near"] = far_above_near.double().mean().item()

learned = numbers["median_nearest"] - numbers["median_far"]
drawn_so = at_first["median_nearest"] - at_first["median_far"]
print(f"nearest above far: {learned:.2f} trained, {drawn_so:.4f} before training")
assert learned > 10 * abs(drawn_so), "the preference for near keys was learned"

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.7))
at = np.arange(L)
by_distance = [score[real_distance == one] for one in range(L)]
in_text = np.array([values.median().item() for values in by_distance])
low, middle, high = np.quantile(moved.numpy(), (0.05, 0.5, 0.95), axis=0)
abel_at = [abel[real_distance == one].median().item() for one in range(L)]
bounds = {"bound (Abel)": abel_at, "bound (simple)": [simple.median().item()] * L}
looks = (figures.INK, "", shapes.DASHED), ("#6b6f74", "", shapes.DOTTED)
ax.fill_between(at, low, high, color="#0072b2", alpha=0.2, linewidth=0)
ax.plot(at, middle, color="#0072b2", label="all pairs, moved")
dots = {"color": "#d55e00", "markersize": 3, "linestyle": "none"}
ax.plot(at[::4], in_text[::4], "o", **dots, label="pairs in the text")
shapes.curves(ax, at, bounds, looks)
ax.set(xlabel=r"distance $\delta$ (tokens)", xlim=(0, L - 1))
ax.set_yscale("symlog", linthresh=10)
ax.set_ylabel("scaled score")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-rotation-trained",
    alt="Trained scores against distance to the trained length. A band from the fifth "
    "to the ninety-fifth percentile, its median, and dots for the median of the pairs "
    "as they are in the text, which lie on that line. All are far below two lines for "
    "the bounds, and the falling bound is above the flat one.",
    caption="In a trained model near keys score more, but beyond a dozen tokens "
    "nothing fades, and the falling bound is above the simple one for "
    f"{1 - numbers['abel_says_more']:.0%} of the pairs. Line and band (nine of ten): "
    "the same pairs put at every distance. Dots: pairs at their distance in the text. "
    "All lines are medians, over both layers and all heads.",
)

# %% [markdown]
# This model *has* a preference for near keys. With the same vectors, the median score is {num}`04_rotation/median_nearest:.1f` at the four
# nearest distances and {num}`04_rotation/median_middle:.1f` between 16 and half of the window. The preference was learned, because before
# the training both were nearly zero.
#
# But beyond the first dozen tokens nothing fades: in the far half the median is {num}`04_rotation/median_far:.1f`. Nor do the scores shrink
# towards zero. In the far half the pairs keep {num}`04_rotation/rms_far_over_near:.0%` of the root mean square that they have at the first
# eight distances (strongly negative scores count as well), and {num}`04_rotation/far_above_near:.0%` of them score more there than near, on
# average.
#
# The falling bound explains none of this: it is tighter than the simple one for only {num}`04_rotation/abel_says_more:.1%` of the pairs.
# Learned queries and keys *can* make far tokens matter little. RoPE alone does not: queries and keys can also learn to prefer a far
# distance.
#
# ### Bands that stop
#
# Fast pairs for position, slow pairs for meaning: {cite:t}`barbero2025` find this division of labour in large trained models. We cut the
# pairs, from fast to slow, into four bands and try two interventions on each. A *stopped* band ($w_m = 0$) still compares content but no
# longer knows distances. A *removed* band ($h_m = 0$) adds nothing to the score.
#
# If stopping a band costs something, the model uses the distances that this band measures. If only removing it costs something, the model
# needs the band only for its content. *Near* is what the change costs while each query sees 8 keys, *far* what it costs in addition when
# each query sees the whole window.

# %%
n_pairs, near_window = d // 2, 8
quarter = n_pairs // 4
bands = [list(range(first, first + quarter)) for first in range(0, n_pairs, quarter)]
third, last = (rope_frequencies(d)[0][band] * (L - 1) for band in bands[2:])
assert last.max() < 0.13 and third.max() > 1, "radians, in the window"


def stopped(band):
    """As a context extension: these pairs do not turn."""

    def frequencies(inv_freq, *, dim, base, length):
        inv_freq = inv_freq.clone()
        inv_freq[band] = 0
        return inv_freq, 1.0

    return model.extended(extension=frequencies)


def removed(band):
    """Queries without these pairs: columns m and m + d/2 of every head are zero."""
    changed = copy.deepcopy(model)
    columns = band + [m + d // 2 for m in band]
    for block in changed.transformer.blocks:
        weight = block.attention.query_key[0].weight.data.unflatten(0, (2, -1, d))
        weight[0, :, columns] = 0  # 0: queries
    return changed


# %%
base_near, base_full = bits(model, window=near_window), numbers["bits"]
rows = []
for n, band in enumerate(bands):
    for name, change in (("stopped", stopped), ("removed", removed)):
        changed = change(band)
        near = bits(changed, window=near_window) - base_near
        whole = bits(changed) - base_full
        rows.append({"band": n, "change": name, "near": near, "far": whole - near})
cost = pd.DataFrame(rows)
slowest = cost[cost.band == 3].set_index("change")
numbers["band_3_stopped_near"] = slowest.near["stopped"]
numbers["band_3_removed_near"] = slowest.near["removed"]
numbers["band_3_removed_far"] = slowest.far["removed"]
numbers["all_stopped"] = bits(stopped(list(range(n_pairs)))) - base_full
numbers["far_gain"] = base_near - base_full
numbers["length"] = L
print(cost.round(3).to_string(index=False))
assert abs(bits(stopped([])) - base_full) < 1e-6, "stopping nothing changes nothing"
assert slowest.loc["stopped", ["near", "far"]].abs().max() < 0.01, "they hardly turn"
still = cost[cost.change == "stopped"].set_index("band")
assert still.near.idxmax() == 0 and still.far.idxmax() == 1
fastest = cost[cost.band == 0].set_index("change").near
assert fastest["stopped"] > fastest["removed"]

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.4), sharey=True)
period = 2 * np.pi / trained_w.numpy()
ends = [(period[band[0]], period[band[-1]]) for band in bands]
names = [f"{first:,.0f}–{last:,.0f}" for first, last in ends]  # noqa: RUF001
looks = (("stopped", "#d55e00", "^", -0.1), ("removed", "#0072b2", "s", 0.1))
for ax, where in zip(axes, ("near", "far"), strict=True):
    for change, colour, marker, aside in looks:
        own = cost[cost.change == change]
        x = own.band + aside
        ax.vlines(x, 0, own[where], color=colour, linewidth=2.2)
        ax.plot(x, own[where], marker, color=colour, label=change, linestyle="none")
    ax.axhline(0, color=figures.FAINT, linewidth=0.8)
    ax.set_xticks(range(4), names, fontsize=8)
    ax.set(xlabel="periods of the band (tokens)", xlim=(-0.5, 3.5))
axes[0].set_title(f"near: {near_window} keys visible")
axes[1].set_title(f"far: {L} keys, beyond the near cost")
axes[0].set_ylabel("cost (bits per byte)")
axes[1].legend()
figures.show(
    fig,
    name="fig-rotation-bands",
    alt="Cost in bits per byte of stopping or removing each of four bands of pairs, "
    "near and far. Near, stopping costs most in the fastest band; far, in the second. "
    "Stopping the two slow bands costs next to nothing, removing them a little.",
    caption="Stopping the fastest band costs most with few keys visible (near), and "
    "stopping the second adds most with all keys visible (far). Stopping the two slow "
    "bands costs next to nothing, but removing them costs a little, because their "
    f"content is used. Four bands of {n_pairs // 4} pairs in a model trained at length "
    f"{L}, one seed.",
)

# %% [markdown]
# Stopping the slowest band was bound to do no harm: within the window its pairs turn by about an eighth of a radian at most. But the
# fastest pair of the third band turns by more than a radian, so for that band the small cost is a finding. Removing either costs a little
# more than stopping it, so the model uses their content. If all pairs are stopped, the causal mask is the only source of order left, and
# the loss rises by {num}`04_rotation/all_stopped:.2f`.
#
# The web article quoted above says that slow pairs serve *far* meaning. One seed cannot show that, and this model gains only
# {num}`04_rotation/far_gain:.3f` bits per byte from seeing {num}`04_rotation/length` keys instead of 8.
#
# One surprise: with 8 keys visible, stopping the fastest band is *worse* than removing it. A likely reason is that the model learned
# the products of this band for pairs that turn. Without the turning these products say the same at every distance.
#
# ## What went wrong: positions in bfloat16
#
# Trained models often run in bfloat16, whose numbers have eight significant bits. So bfloat16 can count to 256; beyond 256 it has only
# every second integer, and beyond 512 only every fourth. If positions and frequencies are cast to bfloat16 together with the model, some
# tokens rotate by the position of a neighbour. All shapes are right, and short tests pass. `apply_rope` avoids this: it computes angles in
# float64 and casts only cosines and sines. Here is what happens if the angles are computed in bfloat16:

# %%
counted = torch.arange(1024)
numbers["bf16_distinct_1024"] = len(counted.bfloat16().unique())
assert torch.equal(counted[:257].bfloat16().long(), counted[:257])
assert int(counted[257].bfloat16()) == 256, "257 is the first that is lost"


def rotate_in_bf16(x, positions):
    """What NOT to do: angles in the dtype of the model."""
    angle = (positions.bfloat16()[:, None] * trained_w.bfloat16()).float()
    a, b = x.float().chunk(2, dim=-1)
    turned = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.cat(turned, dim=-1).bfloat16()


starts = 2 ** torch.arange(0, 13)
one_q, one_k = noise(64, d).bfloat16(), noise(64, d).bfloat16()


def score_errors(rotate):
    """Rms error of scores at distance 3 by where the key is, over their rms."""
    exact_q, exact_k = one_q.double(), one_k.double()
    errors = []
    for start in starts.tolist():
        at = torch.arange(64) + start  # 64 neighbouring places
        q_true = apply_rope(exact_q, at + 3, trained_w)
        true = (q_true * apply_rope(exact_k, at, trained_w)).sum(-1)
        got = (rotate(one_q, at + 3).double() * rotate(one_k, at).double()).sum(-1)
        errors.append(((got - true).pow(2).mean() / true.pow(2).mean()).sqrt().item())
    return np.array(errors)


wrong = score_errors(rotate_in_bf16)
right = score_errors(lambda x, positions: apply_rope(x, positions, trained_w))
numbers["bf16_angles_error_4096"] = wrong[-1]
numbers["bf16_cast_error_4096"] = right[-1]
assert right.max() < 0.02 and wrong[starts >= 512].min() > 0.1

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.2))
errors = {"angles in bfloat16": wrong, "angles in float64, then cast": right}
shapes.curves(ax, starts, errors, (("#b3364f", "s", "-"), ("#0072b2", "o", "-")))
shapes.mark(ax, 256, "256")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.set(xlabel="position of the key", ylabel="relative error of the scores")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-rotation-bf16",
    alt="Relative error of scores at distance three against the position of the key, "
    "both axes logarithmic. With angles in bfloat16 it rises to order one past a few "
    "hundred; with angles in float64 it stays below one per cent.",
    caption="With angles in bfloat16 the error of a score grows with the position and "
    "reaches the size of the scores. With float64 angles it stays at the "
    "rounding of the format. The queries and keys are the same at all "
    "positions, and always at distance 3.",
)

# %% [markdown]
# Bfloat16 can distinguish {num}`04_rotation/bf16_distinct_1024` of the first 1024 positions. At position 4096 the error of a score is
# {num}`04_rotation/bf16_angles_error_4096:.1f` times its size, against {num}`04_rotation/bf16_cast_error_4096:.3f` with angles in float64.
#
# (rotation-xpos)=
# ## xPos: a decay that is real
#
# In {eq}`eq-rotation-modulus` we treated queries and keys alike. If they may differ, $\rho_q(i)\, \rho_k(j)$ must depend only on $i - j$,
# and, apart from constants, the exponentials $\zeta^{i}$ and $\zeta^{-j}$ have this property. xPos {cite:p}`sun2023` uses these
# exponentials:
#
# $$
# \begin{gathered}
# q_m\, \zeta_m^{\,i/512}\, e^{J i w_m}, \quad k_m\, \zeta_m^{-j/512}\, e^{J j w_m}
# \;\Longrightarrow\; h_m\, \zeta_m^{\,\delta/512}\, e^{J \delta w_m}, \\
# \zeta_m = \frac{2m/d + 0.4}{1.4} .
# \end{gathered}
# $$ (eq-rotation-xpos)
#
# Now every term falls with the distance, the fast pairs most, and the tuned key attains the bound $\sum_m |h_m|\, \zeta_m^{\delta/512}$.
# The price is a direction: for keys *after* the query the factor grows without limit, so xPos is for causal models.

# %%
at = torch.arange(40)
one_x, other_x = apply_xpos(wide_q[:40], wide_k[:40], at, at)
zeta = (torch.arange(32).double() / 32 + 0.4) / 1.4
torch.testing.assert_close(xpos_scales(torch.tensor([512]), 64)[0], zeta)
h_xpos = products(wide_q[39], wide_k[:40]) * zeta ** ((39.0 - at)[:, None] / 512)
by_equation = (h_xpos * waves(39 - at, shown_w)).sum(dim=-1).real
torch.testing.assert_close((one_x @ other_x.T)[39], by_equation, rtol=0, atol=1e-12)
later_x, later = apply_xpos(wide_q[:40], wide_k[:40], at + 300, at + 300)
torch.testing.assert_close(later_x @ later.T, one_x @ other_x.T, rtol=0, atol=1e-10)
reach = (zeta ** (torch.arange(0, 2049)[:, None] / 512)).mean(dim=-1)
for far_off in (512, 2048):
    numbers[f"xpos_reach_{far_off}"] = reach[far_off].item()
assert reach[0] == 1 and (reach.diff() < 0).all()

# %% [markdown]
# With products of equal size, the largest score that xPos can reach at distance 512 is {num}`04_rotation/xpos_reach_512:.2f` of that at
# distance 0, and at 2048 it is {num}`04_rotation/xpos_reach_2048:.2f`; far away mostly the slow pairs are left. With RoPE it stays at 1.
# Its authors also use blockwise causal attention, so their results past the trained length are due to both together. Does xPos make a model
# better? {doc}`Chapter 7 <07_every_encoding>` trains both, with three seeds, which give no verdict:
#
# | bits per byte | xPos | RoPE |
# |---|---|---|
# | inside the trained length | {num}`encodings/xpos/bits_per_byte:.2f` | {num}`encodings/rope/bits_per_byte:.2f` |
# | $4L$ to $8L$, all keys visible | {num}`encodings/xpos/native/8x:.2f` | {num}`encodings/rope/native/8x:.2f` |
# | the same, through a sliding window | {num}`encodings/xpos/oracle-coarse/8x:.2f` | {num}`encodings/rope/oracle-coarse/8x:.2f` |
#
# ## What to take away
#
# 1. If a position **turns** every vector by an angle **linear** in the position and does not stretch it, scores depend only on distances,
#    although every vector gets its position separately. Values stay as they are.
# 2. The famous decay is that of an **upper bound**. For the trained pairs measured here it says less than a bound that does not decay. If
#    a trained model prefers near keys, it is because its queries and keys have learned that.
# 3. Pairs that hardly turn within the trained length compare content. In one small model (one seed), with 8 keys visible, stopping the
#    slowest band costs {num}`04_rotation/band_3_stopped_near:.3f` bits per byte and removing it
#    {num}`04_rotation/band_3_removed_near:.3f`. With all keys, removing it costs {num}`04_rotation/band_3_removed_far:.3f` more.
# 4. Layout and precision fail silently. A wrong layout passes every check of shapes and norms, and too low a precision also passes tests on
#    short texts.
#
# **Limits.** The identities are exact. The trained model is one tiny model of source code with one seed, and it hardly uses far text. It
# shows that scores *need* not decay, not how large models distribute their work. The derivation leads to rotation under its assumptions:
# two columns, the whole complex product, and the same treatment of queries and keys. Without these assumptions there are other solutions,
# such as xPos.
#
# **What would change our mind.** A trained model in which {eq}`eq-rotation-bound` is below the simple bound for most pairs: then the
# decay would bind. Or a slow band whose stopping costs bits within the trained length.
#
# **Where it goes on.** {doc}`Chapter 6 <06_longer_contexts>` changes the frequencies after training, so that a model can read longer texts.
# Such changes are called {term}`context extensions <context extension>`.
#
# ## Exercises
#
# Try each before you unfold its solution. Every solution ends with a check that fails if it is wrong.
#
# **1. (medium)** Bidirectional ALiBi cannot distinguish left from right ({doc}`chapter 1 <01_order>`). Can RoPE? For which queries and
# keys is its score the same at $\delta$ and at $-\delta$, for all $\delta$?

# %% tags=["hide-cell"]
# Solution. Re(h e^{Jx}) - Re(h e^{-Jx}) = -2 Im(h) sin x: it is blind exactly where
# every h_m is real, e.g. for k = q.
turned = [apply_rope(wide_q[:1], torch.tensor([p]), shown_w) for p in (7, -7)]
right_of, left_of = turned
assert abs(((right_of - left_of) * wide_k[0]).sum()) > 1e-3
assert abs(((right_of - left_of) * wide_q[0]).sum()) < 1e-12
real = products(wide_q[0], 3 * wide_q[0])
assert real.imag.abs().max() < 1e-12

# %% [markdown]
# **2. (hard)** {eq}`eq-rotation-bound` depends on the order of the pairs, the score does not. Which order makes $\max_m |h_{m+1} - h_m|$
# small, and does the bound then say more than the simple one for the trained model's pairs? Try the order by $|h_m|$.

# %% tags=["hide-cell"]
# Solution. Sorted by size, with the smallest next to the 0 at the end; the waves move
# along with their products.
order = h[drawn[:500]].abs().argsort(dim=-1, descending=True)
sorted_h = h[drawn[:500]].gather(-1, order)
for one in (0, 16, 64, L - 1):
    wave = waves(torch.tensor(one), trained_w).expand(500, -1).gather(-1, order)
    value = (sorted_h * wave).sum(dim=-1)
    limit = largest_step(sorted_h) * wave.cumsum(dim=-1).abs().sum(dim=-1)
    assert (value.abs() <= limit + 1e-12).all()
    share = (limit < h[drawn[:500]].abs().sum(dim=-1)).double().mean().item()
    print(f"distance {one}: below the simple bound for {share:.0%} of the pairs")
    assert share < 0.5, "phases still jump between neighbours, so the steps stay large"

# %% tags=["hide-cell"]
chapter_numbers.publish("04_rotation", numbers, profile=profile)

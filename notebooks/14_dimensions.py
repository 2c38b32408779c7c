# %% [markdown]
# # 14. How many dimensions does position need?
#
# **Finding.** It depends on what the model is asked. RoPE rotates the columns of a head in pairs, some fast and some slow. To recall a
# value that was written once, one fast pair of columns in each head is enough for RoPE: at sixteen trained lengths it finds
# {num}`stretched_mqar/rope-8th/accuracy/native/16x:.0%` of the values with nothing changed. To find the *latest* of several values nearly
# always, it took a slow pair as well; with the fast pair alone a model finds {num}`stretched_latest_value/rope-8th/accuracy/native/1x:.0%`
# inside the trained length. In longer texts it was enough to slow down the slow pair and to sharpen attention.
#
# In novels one pair is not enough: the loss falls as more columns turn, from {num}`ladder_text/none/bits_per_byte:.2f` bits per byte
# without position to {num}`ladder_text/rope-16th/bits_per_byte:.2f` with one pair and {num}`ladder_text/rope/bits_per_byte:.2f` on all
# columns.
#
# Slowed down and tuned on texts of eight trained lengths, a quarter of the columns loses nothing there, but in texts of sixteen it loses
# {num}`ladder_adapted_text/rope-partial/maps-one-factor/gap/slowed/16x:.2f` and all columns
# {num}`ladder_adapted_text/rope/maps-one-factor/gap/slowed/16x:.2f`.
#
# The best model of novels on this page has no positions. It has *forget gates*: each token decides how much of the text before it fades,
# which amounts to two more columns. In recall no model beats it, and in novels of eight trained lengths its loss does not rise. But of the
# latest values it finds only {num}`stretched_latest_value/forgetting/accuracy/native/16x:.0%` at sixteen lengths, hardly more than a guess.
# With slower gates and sharper attention it finds {num}`stretched_latest_value/forgetting/accuracy/stretched/16x:.0%`. RoPE with a fast and
# a slow pair, slowed down, finds {num}`stretched_latest_value/rope-partial/accuracy/stretched/16x:.0%`.

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
from sepnb.encodings import (
    Forgetting,
    Heads,
    PositionInterpolation,
    RoPE,
    alibi_bias,
    forgetting_bias,
    rope_frequencies,
)
from sepnb.experiments.language_modelling import SIZES
from sepnb.experiments.methods import model_config
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.plots import figures, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable
from sepnb.streams import Streams

figures.use_style()
numbers = {}

# %% tags=["hide-input"]
SHARES = {
    "none": "none",
    "rope-16th": "1/16",
    "rope-8th": "1/8",
    "rope-partial": "1/4",
    "rope-half": "1/2",
    "rope": "all",
}
recall = experiments.get("stretched_mqar").table(profile)
latest = experiments.get("stretched_latest_value").table(profile)
found, newest = RunTable(recall), RunTable(latest)
look = figures.METHODS["rope"]
TIMES = (1, 2, 4, 8, 16)
DASHES = {
    "rope-8th": "-",
    "rope-partial": shapes.DASHED,
    "rope-half": (0, (5, 1.5, 1, 1.5)),
    "rope": (0, (1, 1.2)),
}
LINES = {
    name: look.line(linestyle=dash, label=SHARES[name]) for name, dash in DASHES.items()
}
LINES["forgetting"] = figures.METHODS["forgetting"].line(linestyle="-")

# %% tags=["hide-input"]
TASKS = "a value written once", "the latest of several values"
NAMES = "each_pair_mqar", "each_pair_latest_value"
tables = [experiments.get(name).table(profile) for name in NAMES]
LOOKS = (
    replace(look, label=TASKS[0]),
    replace(look, label=TASKS[1], colour=figures.INK, marker="s"),
)
PAIRS_OF_TWO = "none", "the slow pair", "the fast pair", "both"
VIEWS = (
    ("inside L: which pair is stopped", 1, "native stopped-2 stopped-1"),
    ("at 16 L: which pair is slowed down", 16, "log slowed-2 slowed-1 slowed-all"),
)
ONE, pairs = "rope-partial", [RunTable(table) for table in tables]
fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.2), sharex=True)
for ax, (title, times, ways) in zip(axes, VIEWS, strict=True):
    rows = {}
    for pair, way in zip(PAIRS_OF_TWO, ways.split(), strict=False):
        both = [of.values(ONE, f"accuracy/{way}/{times}x") for of in pairs]
        rows[pair] = list(zip(both, LOOKS, strict=True))
    figures.seed_rows(ax, rows, size=6)
    ax.set(xlim=(-0.03, 1.05), xlabel="values found")
    ax.set_title(title, fontsize=10.5)
    for of, one in zip((found, newest), LOOKS, strict=True):
        if len(guess := of.values(ONE, f"chance/random source/{times}x")):
            ax.axvline(guess.mean(), color=one.colour, linewidth=1, linestyle=":")
for one in LOOKS:
    axes[0].plot([], [], **one.line(linestyle="", label=one.label))
ran = len(pairs[1].values(ONE, "accuracy/stopped-2/1x"))
if ran:
    fig.legend(loc="outside upper center", ncols=2)
figures.show(
    fig,
    name="fig-dimensions-pairs",
    alt="Two panels of dots, the share of values found in two tasks. Left, without the "
    "slow pair a model still recalls nearly everything and finds under a third of "
    "the latest values; without the fast pair it loses a third and a seventh. Right, "
    "in long texts only slowing the slow pair alone keeps both near the top.",
    caption="Models that find the latest value rely on their slow pair, and in longer "
    "texts it is enough to slow this pair down. Values found by RoPE with one fast and "
    "one slow pair in each head; each task has its own models, weights unchanged. "
    "Panel *inside L* (L is the trained length): the frequency of a stopped pair is 0. "
    "Panel *at 16 L*: frequencies divided by 16, attention sharpened in every row, "
    "also where no pair is slowed. Dotted: a guess among the values of the text "
    "(written once) or of the key (latest). Large: means of twelve seeds with 95 % t "
    "intervals; small: each seed.",
)

# %% [markdown]
# > **Question.** A head compares queries and keys in some number of columns. How many of them does position need, inside the trained
# > length and past it?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: seconds of one CPU core; nothing is trained or downloaded. The records come from
#   `sepnb run stretched_mqar stretched_latest_value every_reading_latest_value each_pair_mqar each_pair_latest_value`, two minutes a run,
#   and `sepnb run ladder_text ladder_adapted_text removed_text`, five to eight minutes a run.
# - **You need**: {doc}`chapter 4 <04_rotation>` for RoPE and {doc}`chapter 13 <13_slow_down>` for slowing positions down.
# - **You will learn**: what current models do, why they do it, which pairs of RoPE break in longer texts, and why forget gates are two more
#   columns.
# - **Claims tested**: each verdict on this page is a link to its rule.
# ```
#
# ## What public models do
#
# This book gives position its own columns in the whole model. Many current models do a part of this, in queries and keys alone. The table
# has eight public models in which position does not act in every column of every layer. The numbers are from their configurations in the
# *transformers* library {cite:p}`huggingface2026`.

# %% tags=["hide-input"]
PUBLIC = (  # model, columns that turn, columns of a query, in which layers, how
    ("GPT-J 6B, 2021", 64, 256, "all", "its first columns"),
    ("GPT-NeoX 20B, 2022", 24, 96, "all", "its first columns"),
    ("GLM-4 9B, 2024", 64, 128, "all", "its first columns"),
    ("DeepSeek-V3, 2024", 64, 192, "all", "one key for all heads"),
    ("Llama 4 Scout, 2025", 128, 128, "3 of 4", "the fourth has no position"),
    ("SmolLM3 3B, 2025", 128, 128, "3 of 4", "the fourth has no position"),
    ("Qwen3-Next 80B, 2025", 64, 256, "1 of 4", "the other three are linear attention"),
    ("Gemma 4, 2026", 128, 512, "1 of 6", "the fastest pairs; all turn in the others"),
)
figures.show_table(
    pd.DataFrame(
        {
            "model": model,
            "columns that turn": f"{turn} of {width}",
            "share": f"{turn / width:.0%}",
            "in layers": layers,
            "how": how,
        }
        for model, turn, width, layers, how in PUBLIC
    ),
    caption="Columns of a query that rotate with position in eight public models.",
)

# %% [markdown]
# The reasons differ. GPT-NeoX {cite:p}`black2022` rotates a quarter of the columns to save work. Gemma rotates only the fastest pairs, as
# {cite:t}`barbero2025` propose, who suspect that the slow ones are used for meaning. Llama 4 and SmolLM3 leave position out of whole layers
# to read further. DeepSeek does it for the sake of its cache.
#
# ## Why DeepSeek gives position its own columns
#
# A cache that keeps the keys and values of every head is large. DeepSeek keeps one short vector $c_j$ for each token and makes all keys
# from it, $k_j = W c_j$ {cite:p}`deepseek2024`. It does not even compute these keys to score a query, because
#
# $$
# q_i^\top k_j = q_i^\top W c_j = (W^\top q_i)^\top c_j .
# $$ (eq-dims-absorb)
#
# So $W$ is applied once, to the query. With RoPE there is a rotation in between,
#
# $$
# q_i^\top R(j - i)\, W c_j ,
# $$ (eq-dims-between)
#
# and the rotation differs from one pair of query and key to the next, so no matrix can be applied to the query once for all keys. The way
# out is to let position act in columns that are not made from $c_j$. A query then has {num}`14_dimensions/deepseek_content` columns that
# compare content and {num}`14_dimensions/deepseek_turning` that rotate, and the key has its rotating part once for all heads:
#
# $$
# S_{ij} \propto q_i^{\text{c}\,\top} k_j^{\text{c}} + q_i^{\text{r}\,\top} R(j - i)\, k_j^{\text{r}} .
# $$ (eq-dims-two)
#
# The second term sees content as well, because $q^{\text{r}}$ and $k^{\text{r}}$ are made from it. `RoPE(partial=1/4, shared=True)` is this
# layout without the compression. The next cell checks {eq}`eq-dims-absorb`.

# %%
g = torch.Generator().manual_seed(seed)
d, short, N = 8, 4, 32
W = torch.randn(d, short, generator=g, dtype=torch.float64)
q = torch.randn(d, generator=g, dtype=torch.float64)
c = torch.randn(N, short, generator=g, dtype=torch.float64)

torch.testing.assert_close(c @ W.T @ q, c @ (W.T @ q))

numbers["deepseek_turning"] = PUBLIC[3][1]
numbers["deepseek_content"] = PUBLIC[3][2] - PUBLIC[3][1]

# %% [markdown]
# ## RoPE on a share of the columns
#
# Let only the first $d_{\text{r}}$ of the $d$ columns of a head turn, at the frequencies of a head that has $d_{\text{r}}$ columns. Two
# columns that turn together are a *pair*. What a pair is to RoPE, a *wave* is to the sinusoid of a separated model. Where the two kinds of
# models are compared, we count waves for RoPE as well. A score is then
#
# $$
# S_{ij} \propto \underbrace{\sum_{m < d_{\text{r}}/2} q_{i,m}^\top R\big((j - i)\, b^{-2m/d_{\text{r}}}\big)\, k_{j,m}}_{\text{content and position}}
#   + \underbrace{\sum_{n \ge d_{\text{r}}} q_{i,n}\, k_{j,n}}_{\text{content alone}} .
# $$ (eq-dims-partial)
#
# By hand, for the models of novels below: a head has 32 columns. An eighth of them is 4, so two pairs turn. The fast pair turns by
# $w_0 = 1$ radian from one token to the next. The slow one turns by $w_1 = 10{,}000^{-2/4} = 0.01$ radians, which makes $1.28$ radians in
# a text of $L = 128$. <!-- given: computed by hand, checked by the code below --> A sixteenth is one pair, which goes round every $2\pi$
# tokens. It says nearly the same about a key 7 tokens back and one 51 tokens back, so alone it cannot tell these two apart.

# %%
size = SIZES["laptop"]
width = size.width // size.n_heads  # of a head
few, _ = rope_frequencies(width // 8)
np.testing.assert_allclose(few, [1, 0.01])
assert np.isclose(128 * few[1], 1.28) and size.length == 128
near, far = (n % (2 * np.pi) for n in (7, 51))
assert abs(near - far) < 0.02


def score(encoding, q, k, i, j):
    """Of one query and one key of a head, before the division by sqrt(d)."""
    module = encoding.at_query_key(Heads(width=len(q)))
    at, of_key = module.prepare(torch.tensor([i]), torch.tensor([j]))
    return float(module(q[None], at)[0] @ module(k[None], of_key)[0])


q, k = torch.randn(2, width, generator=g, dtype=torch.float64)
r = width // 8
angle = (90 - 100) * few  # of a key at 90, seen from a query at 100
(a, b), (x, y) = q[:r].chunk(2), k[:r].chunk(2)
turned = (a * x + b * y) * angle.cos() + (b * x - a * y) * angle.sin()
by_hand = turned.sum() + q[r:] @ k[r:]
assert np.isclose(score(RoPE(partial=1 / 8), q, k, 100, 90), by_hand)

# %% [markdown]
# ## Forget gates are two more columns
#
# FoX {cite:p}`lin2025` has no position at all. Each token has a gate $f_t$ between 0 and 1 for each head, computed from the token, and a
# score is lowered by the logarithms of all gates between key and query:
#
# $$
# S_{ij} = \frac{q_i^\top k_j}{\sqrt d} + \sum_{t = j+1}^{i} \log f_t .
# $$ (eq-dims-forget)
#
# Write $c_i = \sum_{t \le i} \log f_t$ for the count up to token $i$. Then the sum is $c_i - c_j$, and that is a product of two columns:
#
# $$
# c_i - c_j = [c_i,\; 1] \cdot [1,\; -c_j] .
# $$ (eq-dims-columns)
#
# So FoX is a transformer without position whose queries and keys have two more columns. They hold a place in the text that the tokens
# themselves have counted. If all gates of a head are alike, $c_i$ is a multiple of $i$ and the bias is ALiBi's.

# %%
N = 24
ends = (7, 15)  # where a sentence ends, its gate is nearly shut
logits = torch.full((1, 1, N), 3.0, dtype=torch.float64)
logits[..., ends] = -2.0
count = logits.sigmoid().log().cumsum(-1)[0, 0]
queries = torch.stack([count, torch.ones(N, dtype=torch.float64)], dim=-1)
keys = torch.stack([torch.ones(N, dtype=torch.float64), -count], dim=-1)
bias = (queries @ keys.T).tril()
torch.testing.assert_close(bias, forgetting_bias(logits)[0, 0], rtol=0, atol=1e-12)

alike = torch.full((1, 1, N), 1.0, dtype=torch.float64)
slope = -alike[0, 0, :1].sigmoid().log()
at = torch.arange(N)
torch.testing.assert_close(
    forgetting_bias(alike)[0], alibi_bias(slope, at, at).tril(), rtol=0, atol=1e-12
)

# %% [markdown]
# The count can be slowed down like the angle of a wave. In a text $s$ times as long as those of training, position interpolation divides
# each $\log f_t$ by $s$, so that the bias becomes $(c_i - c_j) / s$. {cite:t}`alkhateeb2023` proposed the same for ALiBi, where the slopes
# are divided.

# %%
gates = Forgetting().at_query_key(Heads(1, width, content_width=8, reading=1)).double()
assert gates.more == 2, "columns"
content = torch.randn(1, N, 8, generator=g, dtype=torch.float64)
gates.extend(PositionInterpolation(16))
queries, keys = gates(content, None)
slowed = (queries @ keys.mT / width**0.5).tril()
plain = forgetting_bias(gates.kept(content)[..., 0])
torch.testing.assert_close(slowed, plain / 16, rtol=0, atol=1e-12)

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(9.0, 3.2))
axes[0].plot(at, count, marker="o", color=figures.METHODS["alibi"].colour, markersize=4)
axes[0].set(xlabel="token $i$", ylabel="count $c_i$")
axes[0].set_title("gates that a sentence's end shuts", fontsize=10)
hidden = np.triu(np.ones((N, N), dtype=bool), 1)
TITLES = "$[c_i, 1] \\cdot [1, -c_j]$", "all gates alike: ALiBi"
for ax, title, shown in zip(
    axes[1:], TITLES, (bias, forgetting_bias(alike)[0, 0]), strict=True
):
    values = np.where(hidden, np.nan, shown.numpy())
    image = shapes.heat_map(ax, values, cmap="viridis", vmin=float(bias.min()), vmax=0)
    ax.set(xlabel="key $j$", ylabel="query $i$")
    ax.set_title(title, fontsize=10)
fig.colorbar(image, ax=axes[1:], label="added to the score", shrink=0.8)
figures.show(
    fig,
    name="fig-dimensions-forgetting",
    alt="Left, the count falls a little with each token and by two at each of two "
    "sentence ends. Middle, the bias of every query and key is near zero within a "
    "sentence and drops in steps between sentences. Right, with equal gates it falls "
    "evenly with distance.",
    caption="The bias of forget gates is the product of two columns of the query and "
    "two of the key. Left, the counts of a text in which the ends of two sentences "
    "have nearly shut gates. Middle, their bias. Right, the bias where all gates are "
    "alike.",
)

# %% [markdown]
# ## Recall: one fast pair is enough
#
# The models of {doc}`chapter 13 <13_slow_down>` learn to recall the value of each key from texts of 64 symbols. Their heads have 16
# columns, so an eighth of a head is a single pair of columns, which turns by one radian from each symbol to the next.
# {numref}`fig-dimensions-recall` shows on its left what they recall from longer texts with nothing changed.

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.5), sharey=True)
for ax, title, table in zip(axes, TASKS, (found, newest), strict=True):
    for name, line in LINES.items():
        if len(table.values(name, "accuracy/native/1x")):
            means = [table.mean(name, f"accuracy/native/{times}x") for times in TIMES]
            ax.plot(TIMES, means, **line)
    ax.set_xscale("log", base=2)
    ax.set_xticks(TIMES, ["L", *(f"{times}L" for times in TIMES[1:])])
    ax.set(xlabel="length of the text", ylim=(0, 1.05))
    ax.set_title(title, fontsize=10.5)
    figures.label_lines(ax)
axes[0].set_ylabel("values found")
GUESS = "chance/random source/16x"
if len(newest.values("rope", GUESS)):
    axes[1].axhline(newest.mean("rope", GUESS), color=figures.FAINT, linewidth=1)
figures.show(
    fig,
    name="fig-dimensions-recall",
    alt="Two panels, values found against the length of the text, nothing changed, a "
    "line for each share of columns that turn. Left, for a value written once, an "
    "eighth of the columns stays near the top and all columns fall to near zero at "
    "sixteen trained lengths. Right, for the latest of several values, all lines "
    "fall, to less than a half with an eighth and to a twentieth with a quarter.",
    caption="One fast pair in each head recalls what was written once, sixteen times "
    "further and with nothing changed; of several values it finds the last one less "
    "often. Values found by RoPE on shares of the columns, and by FoX, by the length "
    "of the text in trained lengths L. Thin line: a guess among the values of the key. "
    "Means of twelve seeds.",
)

# %% [markdown]
# With one pair a model finds {num}`stretched_mqar/rope-8th/accuracy/native/16x:.1%` of the values at $16L$, against
# {num}`stretched_mqar/rope/accuracy/native/16x:.0%` with all columns, and inside the trained length all shares find nearly every value. We
# had claimed, for eight lengths, that each share recalls more than all columns
# ({verdict}`ladder-mqar-unchanged-a-share-recalls-more: held`).
#
# What is different about one pair? A wave puts every position on a circle, and $n$ waves together put it at a point,
# $p_i = (\cos w_1 i, \sin w_1 i, \dots, \cos w_n i, \sin w_n i) / \sqrt n$. By *newness* we mean how far a position past $L$ is from the
# nearest trained one:
#
# $$
# \operatorname*{mean}_{L \le i < 16L}\; \min_{0 \le j < L}\; \lVert p_i - p_j \rVert .
# $$ (eq-dims-newness)
#
# RoPE sees only distances; in training these, too, run from 0 to $L - 1$, so the same number says how new they are. One wave of a radian
# has a newness of {num}`14_dimensions/new_one`. With a second fast wave it is {num}`14_dimensions/new_two`: training shows every angle of
# both waves, but not every combination of the two. With a second wave a hundred times as slow, of which training shows a tenth of the
# circle, it is {num}`14_dimensions/new_quarter`. We thought of this measure only after we had seen the shares and the first seeds with fast
# waves.
#
# The next cell checks the measure where the answer is known.


# %% tags=["hide-input"]
def waves_of(pairs, base=10_000.0):
    """The frequencies of so many pairs, from one radian a token down."""
    return base ** (-np.arange(pairs) / pairs)


def newness(waves, read=None, period=None, length=64, times=16):
    """How far a position from L to 16L is from the nearest trained one, on average;
    `read` are the frequencies of the long text, where these are others, and positions
    begin again after each `period`."""
    past, trained = np.arange(length, times * length), np.arange(length)
    if period is not None:
        past, trained = past % period, trained % period
    # on the circle of each wave, as complex numbers
    far = np.exp(1j * past[:, None] * (waves if read is None else read))
    apart = far[:, None] - np.exp(1j * trained[:, None] * waves)
    return np.linalg.norm(apart, axis=2).min(axis=1).mean() / len(waves) ** 0.5


EIGHT, FAST = waves_of(8), waves_of(8, base=10)
WAVES = {
    "rope-8th": EIGHT[:1],
    "p-rope-quarter": EIGHT[:2],
    "rope-half": waves_of(4),
    "rope-partial": waves_of(2),
    "rope": EIGHT,
    "rope-nope-2": EIGHT,
    "rope-fast": FAST,
    "separated-sinusoidal": EIGHT,
    "separated-sinusoidal-fast": FAST,
    "separated-sinusoidal-one": EIGHT[:1],
    "separated-sinusoidal-repeated": EIGHT,
}
NEW = {
    name: newness(waves, period=32 if name.endswith("repeated") else None)
    for name, waves in WAVES.items()
}
numbers |= {
    "new_one": f"{NEW['rope-8th']:.2f}",
    "new_two": f"{NEW['p-rope-quarter']:.2f}",
    "new_quarter": f"{NEW['rope-partial']:.2f}",
}

# %%
L, slow = 64, np.array([1e-3])
later = np.arange(L, 16 * L)
chords = 2 * np.sin(slow * (later - (L - 1)) / 2)
assert np.isclose(newness(slow), chords.mean())
assert np.isclose(newness(np.repeat(slow, 2)), newness(slow))
assert newness(np.array([2 * np.pi / 32])) < 1e-9
assert newness(EIGHT, period=L // 2) == 0 < newness(EIGHT, period=2 * L)

# %% [markdown]
# The next table adds models that meet fewer new angles in long texts, or none. Some have eight waves that are all fast (a base of 10 in
# place of 10,000), so that only combinations of angles can be new. One separated model has a single wave. In another one positions begin
# again after every 32 symbols, so that a longer text has no new position at all.

# %% tags=["hide-input"]
ROWS = {
    "RoPE on an eighth: one wave": "rope-8th",
    "RoPE's two fastest pairs": "p-rope-quarter",
    "RoPE on half: four waves": "rope-half",
    "RoPE on a quarter: a fast and a slow one": "rope-partial",
    "RoPE on all: eight waves": "rope",
    "RoPE on all, in the first of two layers": "rope-nope-2",
    "RoPE on all: eight fast ones": "rope-fast",
    "separated: eight waves": "separated-sinusoidal",
    "separated: eight fast ones": "separated-sinusoidal-fast",
    "separated: one wave": "separated-sinusoidal-one",
    "separated: eight that repeat": "separated-sinusoidal-repeated",
    "FoX: no position, forget gates": "forgetting",
}
ASKED = {
    "at L": "{}:accuracy/native/1x",
    "at 16L, unchanged": "{}:accuracy/native/16x",
    "at 16L, slowed down": "{}:accuracy/stretched/16x",
}
recalls = found.grid(ROWS, ASKED, ".2f", head="model")
recalls.insert(1, "newness", [NEW.get(name, np.nan) for name in ROWS.values()])
figures.show_table(
    recalls,
    caption="Share of values recalled, by the waves of a model, and how new its "
    "positions up to 16L are. Slowed down: in the way that validation chose for each "
    "model, which may sharpen attention, too. One wave is left as it is. Means over "
    "twelve seeds and 95 % t intervals.",
    formats={"newness": ".2f"},
)

# %% [markdown]
# 1. **RoPE in both layers recalls less where positions are newer.** With two fast waves it recalls more than with a fast and a slow one
#    ({verdict}`ladder-mqar-fast-pairs-need-no-slowing: held`). But newness is not all. RoPE in the first layer alone has the same waves as
#    RoPE in both, and finds far more, though not the nine tenths that we had claimed
#    ({verdict}`ladder-mqar-position-in-the-first-layer-recalls-unchanged: refuted`).
# 2. **Unchanged separated models fall short even with fewer new angles.** With eight fast waves, with a single wave and with positions that
#    repeat, such a model finds more than with eight waves of base 10,000. We had claimed nine tenths for fast waves, in RoPE as well
#    ({verdict}`ladder-mqar-fast-waves-recall-unchanged: refuted`), and for a single wave
#    ({verdict}`ladder-mqar-one-wave-recalls-unchanged: refuted`), and as many with positions that repeat as with a single wave
#    ({verdict}`ladder-mqar-repeated-waves-recall-unchanged: refuted`).
# 3. **A single wave in a separated model lacks mostly attention** (exploratory): with the wave left as it is and attention sharpened, it
#    finds {num}`stretched_mqar/separated-sinusoidal-one/accuracy/stretched/16x:.0%`. RoPE with eight fast pairs does not even learn the
#    task.
# 4. **Slowed down, RoPE recalls nearly the same on every share of its columns, and in one layer as in both.** The runs cannot say whether
#    half of the columns is within three points of all columns ({verdict}`ladder-mqar-slowed-a-share-recalls-as-often: undecided`).
#
# We have not measured why one pair is enough for recall. Without any position the task is learned only in part: such models find
# {num}`mqar/none/accuracy/native/1x:.0%` of the values inside the trained length (another experiment, six seeds).
#
# ## The latest value: one pair is not enough
#
# In the second task of {doc}`chapter 13 <13_slow_down>` each key is written several times with different values, and the model has to find
# the one that was written last. Our rules for it were written after the runs of recall, and before any run of this task with few columns.

# %% tags=["hide-input"]
INSIDE = "accuracy/native/1x"
LATEST = {
    label: name for label, name in ROWS.items() if len(newest.values(name, INSIDE))
}
figures.show_table(
    newest.grid(LATEST, ASKED, ".2f", head="model"),
    caption="Share of latest values found. Means over twelve seeds and 95 % t "
    "intervals.",
)

# %% [markdown]
# 1. **One fast pair learns the task less well.** Inside the trained length it finds fewer of the latest values than a fast and a slow pair.
#    These find as many as all columns do, and so does RoPE on half of the columns. We had claimed that every share does
#    ({verdict}`ladder-latest-value-a-share-is-enough-inside: partly`).
# 2. **Unchanged, no model is good at $16L$.** One fast pair and two find the most. A guess among the values of the key finds
#    {num}`stretched_latest_value/rope-8th/chance/random source/16x:.0%`; every model with a slow wave finds fewer.
# 3. **A slow pair beside a fast one makes an unchanged model worse in longer texts.** At $8L$ two fast pairs find
#    {num}`stretched_latest_value/p-rope-quarter/accuracy/native/8x:.0%`, and a fast and a slow one
#    {num}`stretched_latest_value/rope-partial/accuracy/native/8x:.0%`. But slow pairs are not all that counts, because RoPE on all columns
#    has the most of them and finds {num}`stretched_latest_value/rope/accuracy/native/8x:.0%`. We had claimed that each share finds more
#    than all columns; an eighth does, a quarter and half find fewer ({verdict}`ladder-latest-value-unchanged-a-share-finds-more: partly`).
# 4. **Slowed down in the ways of chapter 13, a fast and a slow pair do best**, here and in recall (exploratory). We had claimed that each
#    share finds as many as all columns, within three points. A quarter does, and half does not
#    ({verdict}`ladder-latest-value-slowed-a-share-finds-as-often: partly`). The next section finds a way of slowing down RoPE on all
#    columns with which it does as well.
# 5. **In the first layer alone, position seems too little for the latest value.** Slowed down, every seed finds fewer at $16L$ than with
#    RoPE in both layers (exploratory).
#
# ## One pair at a time
#
# Do the two pairs do different work, then? We changed one pair of the trained models that have a fast and a slow one, in every head, and
# left their weights alone. Each task has its own models. The fast pair turns by one radian a symbol, the slow pair by a hundredth of it. A
# pair that is *stopped* has the frequency 0: its two columns compare content as if every key were at distance 0.
# {numref}`fig-dimensions-pairs`, the first figure of this page, shows the results.
#
# The rules on stopped pairs were written before any model was read in this way. The rules on slowing down were not blind: with two pairs
# NTK-aware scaling and YaRN slow the slow pair alone, and their results were in the table above.
#
# 1. **Models that find the latest value rely on their slow pair.** With it stopped they find
#    {num}`each_pair_latest_value/rope-partial/accuracy/stopped-2/1x:.0%` of the latest values inside the trained length, fewer than a guess
#    among the values of the key. The models of recall still find {num}`each_pair_mqar/rope-partial/accuracy/stopped-2/1x:.1%`.
# 2. **Stopping the fast pair costs recall more than the latest value, and both less than we had claimed.** With it stopped the models
#    recall {num}`each_pair_mqar/rope-partial/accuracy/stopped-1/1x:.0%` of the values and find
#    {num}`each_pair_latest_value/rope-partial/accuracy/stopped-1/1x:.0%` of the latest ones. We had claimed less than a half for both, so
#    of each of our two rules only the part on the slow pair holds, in recall ({verdict}`each-pair-mqar-recall-needs-the-fast-pair: partly`)
#    and for the latest value ({verdict}`each-pair-latest-value-order-needs-both-pairs: partly`).
# 3. **In a longer text it is enough to slow the slow pair down.** With its frequency divided by 16, and attention sharpened, the models
#    find {num}`each_pair_mqar/rope-partial/accuracy/slowed-2/16x:.1%` of the values at $16L$ and
#    {num}`each_pair_latest_value/rope-partial/accuracy/slowed-2/16x:.0%` of the latest ones. Our rules asked for more than with no pair
#    slowed down and for as many as with both, within three points, in recall ({verdict}`each-pair-mqar-the-slow-pair-is-all-to-slow: held`)
#    and in the second task ({verdict}`each-pair-latest-value-the-slow-pair-is-all-to-slow: held`).
# 4. **Slowing the fast pair down sixteen times breaks these models.** With both pairs slowed down, which is position interpolation with
#    sharper attention, they find {num}`each_pair_mqar/rope-partial/accuracy/slowed-all/16x:.0%` and
#    {num}`each_pair_latest_value/rope-partial/accuracy/slowed-all/16x:.0%`. Newness is not the reason, because it is about the same as with
#    the slow pair alone slowed down. Perhaps the fast pair no longer tells a symbol from its neighbour.
# 5. **With four and with eight pairs it works best to slow down all but the fastest one or two** ({numref}`fig-dimensions-keep`;
#    exploratory). Before the runs with eight pairs we claimed that it is better there, too, to leave the fastest pair alone than to slow
#    down all. It is, in recall ({verdict}`each-pair-mqar-the-fastest-pair-keeps-its-speed: held`) and for the latest value
#    ({verdict}`each-pair-latest-value-the-fastest-pair-keeps-its-speed: held`). In these three models the pairs that are best left alone
#    turn more than three times in a trained text, and the next pair about once or less.

# %% tags=["hide-input"]
PAIRS = {"rope-partial": 2, "rope-half": 4, "rope": 8}


def kept(of, name, n):
    """Values found at 16L, by how many of n pairs, the fastest, keep their speed."""
    part = [f"slowed-from-{i}" for i in range(2, n)]
    ways = ["slowed-all", *part, f"slowed-{n}", "log"]
    return [of.mean(name, f"accuracy/{way}/16x") for way in ways]


fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.3), sharey=True)
for ax, task, of in zip(axes, TASKS, pairs, strict=True):
    for (name, n), dash in zip(PAIRS.items(), ("-", shapes.DASHED, ":"), strict=True):
        if len(of.values(name, f"accuracy/slowed-{n}/16x")):
            line = look.line(linestyle=dash, label=f"{n} pairs")
            ax.plot(range(n + 1), kept(of, name, n), **line)
    ax.set(xlabel="fastest pairs that keep their speed", ylim=(0, 1.05))
    ax.set_title(task, fontsize=10.5)
axes[0].set_ylabel("values found at 16L")
if axes[0].lines:
    handles, names = axes[0].get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper center", ncols=3)
figures.show(
    fig,
    name="fig-dimensions-keep",
    alt="Two panels, values found at sixteen trained lengths against the number of "
    "pairs that keep their speed, a line for models with two, four and eight pairs. "
    "Every line is highest at one or two pairs and falls to the right; that of two "
    "pairs is far lower at both ends.",
    caption="Slow down all pairs but the fastest one or two. Values found at 16 L by "
    "RoPE with two, four and eight pairs in each head, weights unchanged, with "
    "attention sharpened. At 0 all pairs are slowed down sixteen times, at the right "
    "end of a line none. Means of twelve seeds.",
)

# %% [markdown]
# So these models divide the work, but not completely: a stopped fast pair leaves two thirds of the recall. The readings say what a trained
# model relies on, not what a model needs. Models that never had a slow pair find
# {num}`stretched_latest_value/rope-8th/accuracy/native/1x:.0%` of the latest values, and models without any position recall more than these
# do with the fast pair stopped.

# %% tags=["hide-cell"]
# What the sentences say.
NATIVE, SLOWED = "accuracy/native/16x", "accuracy/stretched/16x"
if profile == "laptop" and {"rope-8th", "forgetting"} <= set(LATEST.values()):
    at_16 = {name: newest.mean(name, NATIVE) for name in LATEST.values()}
    above = {name for name in at_16 if at_16[name] > newest.mean(name, GUESS)}
    assert above == {"rope-8th", "p-rope-quarter", "forgetting"}
    assert at_16["forgetting"] < min(at_16["rope-8th"], at_16["p-rope-quarter"])
    at_8 = {name: newest.mean(name, "accuracy/native/8x") for name in LATEST.values()}
    assert max(at_8, key=at_8.get) == "forgetting"
    lost = found.mean("forgetting", NATIVE) - found.mean("forgetting", SLOWED)
    assert 0.25 < lost < 0.4, "a third"
    slow = {name: newest.mean(name, SLOWED) for name in LATEST.values()}
    shares = "rope-partial", "rope-half", "rope"
    assert slow["forgetting"] < min(slow[name] for name in shares)
    in_all = newest.minus(f"rope:{SLOWED}", f"rope-nope-2:{SLOWED}")
    assert in_all.min() > 0, "each of the twelve"
    for of, names in ((newest, LATEST), (found, ROWS)):
        slowed = [of.mean(name, SLOWED) for name in names.values()]
        assert of.mean("rope-partial", SLOWED) == np.nanmax(slowed)
if profile == "laptop" and ran:
    no_fast, no_slow = (
        [of.mean(ONE, f"accuracy/stopped-{n}/1x") for of in pairs] for n in (1, 2)
    )
    assert no_slow[1] < newest.mean(ONE, "chance/random source/1x") < no_fast[1]
    assert no_fast[0] < no_fast[1], "the fast pair matters more for recall"
    w = waves_of(2)
    assert abs(newness(w, read=w / [1, 16]) - newness(w, read=w / 16)) < 0.01
    for of in pairs:
        best = {name: int(np.argmax(kept(of, name, n))) for name, n in PAIRS.items()}
        assert best["rope-partial"] == best["rope-half"] == 1 and best["rope"] in (1, 2)
    turns = 64 * EIGHT / (2 * np.pi)  # with four pairs every second of these
    assert turns[1] > 3 and abs(turns[2] - 1) < 0.05

# %% [markdown]
# ## Novels: the first columns bring most of the gain
#
# For each share we trained language models with six seeds, all with the same width, heads and steps, and each at the best of several
# learning rates. Next to them are separated models with a sixteenth to a half of their width for position, and with about as many
# parameters as the others.

# %% tags=["hide-input"]
novels = experiments.get("ladder_text").table(profile)
of = RunTable(novels)
SEPARATED = "separated-sinusoidal-wide"
OWN = {  # the same shares of the width
    "separated-sinusoidal-pos-16th-wide": "1/16",
    "separated-sinusoidal-pos-8th-wide": "1/8",
    SEPARATED: "1/4",
    "separated-sinusoidal-pos-half-wide": "1/2",
}
made = [name for name in SHARES if len(of.values(name, "bits_per_byte"))]
KINDS = {
    "RoPE": (SHARES, look),
    "separated": (OWN, figures.METHODS[SEPARATED]),
    "FoX": ({"forgetting": "none"}, figures.METHODS["forgetting"]),
}


def drawn(ax, column, shares, look, label, dash="-"):
    """Means of the models along the shares, and a small tick for each seed."""
    have = [name for name in shares if len(of.values(name, column))]
    at = [list(SHARES.values()).index(shares[name]) for name in have]
    means = [of.mean(name, column) for name in have]
    style = {"color": look.colour, "linestyle": dash, "marker": look.marker}
    ax.plot(at, means, label=label, **style)
    for x, name in zip(at, have, strict=True):
        values = of.values(name, column)
        ax.plot([x] * len(values), values, "_", color=look.colour, alpha=0.5)


fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.5))
for kind, (shares, one) in KINDS.items():
    drawn(axes[0], "bits_per_byte", shares, one, kind)
    slowed = kind != "FoX"
    label, dash = (f"{kind}, unchanged", shapes.DASHED) if slowed else ("_", "-")
    drawn(axes[1], "gap/native/8x", shares, one, label, dash)
    if slowed:
        drawn(axes[1], "gap/slowed/8x", shares, one, "_")
axes[0].set(title="inside the trained length", ylabel="bits per byte")
axes[1].set(title="at eight trained lengths", ylabel="bits per byte above its window")
for ax in axes:
    ax.set(xlabel="share of the columns", xlim=(-0.3, len(SHARES) - 0.7))
    ax.set_xticks(range(len(SHARES)), SHARES.values())
if made:
    fig.legend(loc="outside upper center", ncols=5, handlelength=3)
figures.show(
    fig,
    name="fig-dimensions-ladder",
    alt="Two panels against the share of columns, from none to all. Left, the loss "
    "of RoPE falls steeply up to an eighth and slowly after it; the separated models "
    "are lowest at a quarter; FoX is lowest of all. Right, at eight trained lengths "
    "the loss above the window, positions slowed down, is lowest for RoPE on all "
    "columns, and for the separated models with an eighth; unchanged, it is zero for "
    "FoX.",
    caption="Few columns bring most of the gain, RoPE on all columns loses least when "
    "slowed down, and FoX is best left alone. Novels; L is the trained length. Right: "
    "the loss in the bin that ends at 8L, unchanged (dashed, and FoX) and slowed down "
    "(solid). Large: means of six seeds; small: each seed. In a separated model the "
    "share is of the whole width.",
)

# %% tags=["hide-input"]
ARMS = {
    "no position": "none",
    **{f"RoPE on {share}": name for name, share in list(SHARES.items())[1:]},
    "RoPE's fastest quarter": "p-rope-quarter",
    "RoPE on 1/4, one key for all heads": "rope-shared-key",
    "RoPE in three of four layers": "rope-nope-4",
    "RoPE in every second layer": "rope-nope-2",
    "forget gates": "forgetting",
    **{f"separated, {share}": name for name, share in OWN.items()},
}
READ = {
    "inside": "{}:bits_per_byte",
    "as trained, 8L": "{}:gap/native/8x",
    "slowed, 8L": "{}:gap/slowed/8x",
}
figures.show_table(
    of.grid(ARMS, READ, ".3f", head="model"),
    caption="Bits per byte inside the trained length, and then above the model's own "
    "sliding window in the bin that ends at 8L, as trained and with positions slowed "
    "down in the way that validation texts of 8L prefer. Means over six seeds and 95 % "
    "t intervals.",
)

# %% [markdown]
# 1. **Most of the gain comes from few columns.** The last half of the columns brings only
#    {num}`ladder_text/rope-half minus rope/bits_per_byte:.3f±` bits per byte. We claimed that every share from a sixteenth on is as good as
#    all columns, within a hundredth of a bit ({verdict}`ladder-text-a-share-of-the-columns-is-enough: undecided`, because the claim counts
#    its parts and two of four are open). A sixteenth and an eighth are clearly worse. A quarter is
#    {num}`ladder_text/rope-partial minus rope/bits_per_byte:.3f±` behind, and for a quarter and for half six seeds do not decide it.
# 2. **Few columns do not make a model easier to slow down.** At eight trained lengths RoPE on all columns ends
#    {num}`ladder_text/rope/gap/slowed/8x:.2f` bits above its window, on a quarter {num}`ladder_text/rope-partial/gap/slowed/8x:.2f` and on
#    an eighth {num}`ladder_text/rope-8th/gap/slowed/8x:.2f`. We claimed the opposite
#    ({verdict}`ladder-text-slowed-a-share-loses-less: refuted`). The shares are not in order, though: half is worse than a quarter.
#    Separated models of every width lose more than RoPE on all columns (exploratory).
# 3. **Without changes, the model without position loses less at 8L than any RoPE** (exploratory): it ends
#    {num}`ladder_text/none/gap/native/8x:.2f` bits above its window, and RoPE on all columns {num}`ladder_text/rope/gap/native/8x:.2f`. But
#    RoPE slowed down has a lower loss there than the model without position.
# 4. **No model depends on the order of distant words.** We shuffled the words further back than $L$. On average no model then loses more
#    than a hundredth of a bit. Whether a small share depends on their order more than all columns do is open
#    ({verdict}`ladder-text-a-small-share-hears-more-of-the-order: undecided`).
# 5. **For a separated model a sixteenth of the width is too little, and more than a quarter is no better** (the figure). We had claimed
#    that a sixteenth, an eighth and half of the width are no more than a hundredth behind a quarter
#    ({verdict}`ladder-text-a-sixteenth-of-the-width-is-enough: undecided`): a sixteenth clearly is. The other two are open once the test
#    allows for three comparisons.
# 6. **One rotated key for all heads: we saw no cost.** On a quarter of the columns the difference to a key for each head is
#    {num}`ladder_text/rope-shared-key minus rope-partial/bits_per_byte:+.3f±` inside the trained length. Whether it is below a hundredth,
#    there and slowed down at $8L$, is open ({verdict}`ladder-text-one-rotated-key-is-enough: undecided`).
# 7. **Layers without position: we saw no gain**, unlike in recall. We had claimed that they make RoPE read further, unchanged and slowed
#    down ({verdict}`ladder-text-layers-without-position-read-further: undecided`); on average they lose a little more at $8L$. And we had
#    claimed that they cost no more than a hundredth inside the trained length. With every second layer they clearly cost more
#    ({verdict}`ladder-text-layers-without-position-cost-nothing: undecided`).

# %% [markdown]
# **And with a little tuning?** As in {doc}`chapter 13 <13_slow_down>`, we slowed four of these models down by YaRN and tuned $W_Q$ and
# $W_K$ on texts of $8L$.

# %% tags=["hide-input"]
adapted = experiments.get("ladder_adapted_text").table(profile)
after = RunTable(adapted)
TUNED = {
    "RoPE on all columns": "rope/maps-one-factor",
    "RoPE on 1/4": "rope-partial/maps-one-factor",
    "RoPE on 1/8": "rope-8th/maps-one-factor",
    "RoPE in three of four layers": "rope-nope-4/maps-one-factor",
}
FAR = {f"{k}L": f"{{}}:gap/slowed/{k}x:+.3f±" for k in (2, 8, 16)}
figures.show_table(
    after.grid(TUNED, FAR | {"loss, 8L": "{}:slowed/8x:.2f±"}, head="model"),
    caption="Tuned on texts of 8L: bits per byte above the sliding window of the "
    "untuned model, in the last half of texts of 2L, 8L and 16L, whose positions are "
    "slowed down as many times; then the loss itself. Means over six seeds and 95 % t "
    "intervals.",
)

# %% tags=["hide-cell"]
if profile == "laptop" and len(after.made):  # what the sentences below say
    at_8, at_16 = (
        {name: after.values(name, f"gap/slowed/{k}x") for name in TUNED.values()}
        for k in (8, 16)
    )
    whole, quarter, eighth, fewer_layers = TUNED.values()
    assert max(at_8[whole].mean(), at_8[quarter].mean(), at_8[fewer_layers].mean()) < 0
    assert (at_8[eighth] > at_8[whole]).all() and 0 < at_8[eighth].mean() < 0.05
    assert (at_16[eighth] > at_16[whole] + 0.02).all(), "in every seed"
    assert (at_16[quarter] > at_16[eighth]).all(), "in every seed"
    assert at_16[fewer_layers].mean() < at_16[whole].mean()

# %% [markdown]
# 1. **At the length of the tuning a quarter of the columns loses no more than all of them, and an eighth a little more.** We had claimed
#    that neither loses more, within three hundredths of a bit ({verdict}`ladder-adapted-text-a-share-loses-no-more: partly`): at $8L$ a
#    quarter ends {num}`ladder_adapted_text/rope-partial/maps-one-factor/gap/slowed/8x:+.3f±` from its window and an eighth
#    {num}`ladder_adapted_text/rope-8th/maps-one-factor/gap/slowed/8x:+.3f±`.
# 2. **Beyond that length few columns lose more** (exploratory). At $16L$ RoPE on a quarter of the columns is
#    {num}`ladder_adapted_text/rope-partial/maps-one-factor/gap/slowed/16x:+.2f` bits above its window and on an eighth
#    {num}`ladder_adapted_text/rope-8th/maps-one-factor/gap/slowed/16x:+.2f`, but on all columns only
#    {num}`ladder_adapted_text/rope/maps-one-factor/gap/slowed/16x:+.2f`.
# 3. **RoPE in three of four layers loses no more than in all of them**
#    ({verdict}`ladder-adapted-text-every-fourth-layer-without-position-loses-no-more: held`). At $16L$ it ends
#    {num}`ladder_adapted_text/rope-nope-4/maps-one-factor/gap/slowed/16x:+.2f` above its window.
#
# ## Forget gates in recall, latest values and novels
#
# FoX has no positions that could be new. The table shows what its models find and lose in longer texts, unchanged, and with gates slowed
# down as many times as the text is longer. When the gates are slowed down, attention is sharpened as well in the two tasks but
# not in novels, because the validation texts preferred that. The last column shows RoPE on all columns, slowed down, for comparison:
#
# | | FoX, unchanged | FoX, slowed down | RoPE, slowed down |
# |---|---:|---:|---:|
# | values recalled at $16L$ | {num}`stretched_mqar/forgetting/accuracy/native/16x:.1%` | {num}`stretched_mqar/forgetting/accuracy/stretched/16x:.0%` | {num}`stretched_mqar/rope/accuracy/stretched/16x:.1%` |
# | latest values found at $16L$ | {num}`stretched_latest_value/forgetting/accuracy/native/16x:.0%` | {num}`stretched_latest_value/forgetting/accuracy/stretched/16x:.0%` | {num}`stretched_latest_value/rope/accuracy/stretched/16x:.0%` |
# | novels, bits per byte above its window at $8L$ | {num}`ladder_text/forgetting/gap/native/8x:+.3f` | {num}`ladder_text/forgetting/gap/slowed/8x:+.2f` | {num}`ladder_text/rope/gap/slowed/8x:+.2f` |
#
# 1. **In recall and in novels nothing has to be slowed down.** FoX recalls nearly everything, and we had claimed nine tenths
#    ({verdict}`ladder-mqar-forget-gates-recall-unchanged: held`). In novels it survives, as we had claimed
#    ({verdict}`ladder-text-forget-gates-survive: held`): its loss is the same with the whole text and with a window. So it gains nothing
#    from what is further back than $L$, which novels hardly reward. Inside the trained length it has
#    {num}`ladder_text/forgetting/bits_per_byte:.2f` bits per byte ({num}`ladder_text/forgetting minus rope/bits_per_byte:+.3f±` compared
#    with RoPE on all columns; exploratory).
# 2. **It loses the latest value in longer texts.** At $8L$ it still finds more than any other unchanged model, but at $16L$ not the nine
#    tenths that we had claimed ({verdict}`ladder-latest-value-forget-gates-find-unchanged: refuted`).
# 3. **There slower gates help.** With sharper attention as well it finds
#    {num}`stretched_latest_value/forgetting/accuracy/stretched/16x:.0%`. We had claimed nine tenths once more
#    ({verdict}`ladder-latest-value-slowed-gates-find: refuted`). Sharper attention alone does not help
#    ({num}`every_reading_latest_value/forgetting/accuracy/log/16x:.0%`, {verdict}`ladder-latest-value-gates-have-to-be-slowed: held`), and
#    slower gates alone help less ({num}`every_reading_latest_value/forgetting/accuracy/interpolation/16x:.0%`). As with waves in chapter
#    13, both are needed.
# 4. **Where forgetting was right, slower gates do harm** (exploratory). In recall both changes together cost FoX a third of the values. In
#    novels slower gates alone break the model.

# %% tags=["hide-cell"]
# What the sentences say.
if profile == "laptop" and len(made) == len(SHARES):
    AT = "gap/slowed/8x"
    slow = {name: of.mean(name, AT) for name in (*list(SHARES)[1:], SEPARATED)}
    assert min(slow, key=slow.get) == "rope" and max(slow, key=slow.get) == SEPARATED
    own = {share: of.mean(name, AT) for name, share in OWN.items()}
    assert slow["rope"] < own["1/8"] < own["1/2"] < own["1/4"] < own["1/16"]
    far = {name: of.mean(name, "gap/native/8x") for name in (*SHARES, SEPARATED)}
    assert min(far, key=far.get) == "none"
    inside = [of.mean(name, "bits_per_byte") for name in SHARES]
    assert inside == sorted(inside, reverse=True)
    assert of.mean("rope", "slowed/8x") < of.mean("none", "native/8x")
    heard = [of.mean(name, "shuffled/8x") for name in ARMS.values()]
    assert np.nanmax(np.abs(heard)) < 0.01
    recalled = [found.mean(name, n) for name in ROWS.values() for n in (NATIVE, SLOWED)]
    assert found.mean("forgetting", NATIVE) == np.nanmax(recalled)
    losses = [of.mean(name, "bits_per_byte") for name in ARMS.values()]
    assert of.mean("forgetting", "bits_per_byte") == np.nanmin(losses)
    for name in ("rope-nope-4", "rope-nope-2"):
        assert of.mean(name, "gap/native/8x") > far["rope"]
        assert of.mean(name, "gap/slowed/8x") > slow["rope"]

# %% [markdown]
# ## Taking position away after training
#
# Slowing positions down has a limit. At a factor that is large enough nothing turns any more, and RoPE has become a model without position:

# %%
torch.manual_seed(seed)
little = SIZES["smoke"]
rope = LanguageModel(model_config("rope", little)).double().eval()
bare = LanguageModel(model_config("none", little)).double().eval()
bare.load_state_dict(rope.state_dict())
tokens = torch.randint(256, (1, 100), generator=g)
with torch.no_grad():
    wanted = bare(tokens)
    for factor in (1, 10, 1e3, 1e6, 2.0**53):
        slow = rope.extended(extension=PositionInterpolation(factor))
        print(f"{factor:8.0e}: {(slow(tokens) - wanted).abs().max():.1e}")
torch.testing.assert_close(slow(tokens), wanted, rtol=0, atol=1e-9)

# %% [markdown]
# DroPE {cite:p}`gelberg2025` does this on purpose. It trains with RoPE, takes RoPE away, tunes the model a little at its trained length,
# and then reads longer texts. We did the same in novels, with RoPE and with a separated model whose positions are stopped, and tuned on a
# quarter of the bytes of the training. For comparison, the same models are tuned in the same way with their positions kept, and read longer
# texts with slower positions.
#
# | tuned, in novels | RoPE, inside L | gap at 8L | separated, inside L | gap at 8L |
# |---|---|---|---|---|
# | with positions, then slowed down | {num}`removed_text/rope/kept/adapted-1/1x:.2f` | {num}`removed_text/rope/kept/gap/slowed/8x:+.2f` | {num}`removed_text/separated-sinusoidal/kept/adapted-1/1x:.2f` | {num}`removed_text/separated-sinusoidal/kept/gap/slowed/8x:+.2f` |
# | without position | {num}`removed_text/rope/removed/adapted-1/1x:.2f` | {num}`removed_text/rope/removed/gap/slowed/8x:+.2f` | {num}`removed_text/separated-sinusoidal/removed/adapted-1/1x:.2f` | {num}`removed_text/separated-sinusoidal/removed/gap/slowed/8x:+.2f` |
# | without position, content alone | &ndash; | &ndash; | {num}`removed_text/separated-sinusoidal/content-removed/adapted-1/1x:.2f` | {num}`removed_text/separated-sinusoidal/content-removed/gap/slowed/8x:+.2f` |
# | and then the position part alone, with positions | &ndash; | &ndash; | {num}`removed_text/separated-sinusoidal/position-back/adapted-1/1x:.2f` | {num}`removed_text/separated-sinusoidal/position-back/gap/slowed/8x:+.2f` |
#
# (Bits per byte, means over six seeds. A gap is to the window of the model before tuning, so it includes what is lost inside the trained
# length. The windows of text are others than in the tables above: compare within this table only.)
#
# These small models still need position. Without it both lose about one bit per byte inside the trained length. We had claimed that they
# lose nothing ({verdict}`removed-text-costs-nothing-inside: refuted`). So they do not survive at eight lengths either
# ({verdict}`removed-text-survives: refuted`). The longer text adds little to that: through a window of $L$ tuned RoPE without position
# already has a gap of {num}`removed_text/rope/removed/gap/adapted-oracle/8x:+.2f`. At eight lengths RoPE without position is worse than
# RoPE slowed down. A separated model is better without position than with slowed positions
# ({verdict}`removed-text-reads-further-than-slowed: partly`), because in novels it reads slowed positions badly unless it was tuned on them
# ({doc}`chapter 13 <13_slow_down>`).
#
# Which weights have to change when position goes? In the separated model tuning the content alone is as good as tuning everything
# ({verdict}`removed-text-content-is-all-to-tune: held`). If the position part alone is then tuned with its positions, most of what was lost
# comes back, but not all ({verdict}`removed-text-position-comes-back: refuted`). The authors of DroPE report that it works in much larger
# models, which small ones cannot contradict.
#
# ## What to take away
#
# 1. **Look at the waves before the share.** To find again what was written once, one fast wave was enough, for RoPE with nothing changed
#    and for a separated model with sharper attention. To find nearly always what was written last, RoPE took a slow wave as well. In longer
#    texts, slow down the slower waves and leave the fastest alone. Here the fastest were the one or two waves that turn at least three
#    times in a trained text.
# 2. **In novels, turning a quarter to a half of the columns costs little** inside the trained length, so the other columns are free for
#    other uses, such as a shared cache. Slowed down, a model on all columns loses least. With $W_Q$ and $W_K$ tuned on texts of $8L$ a
#    quarter loses nothing there either, but more than all columns in texts of $16L$.
# 3. **Compare with forget gates.** In novels they beat every rotation of this page, in recall none beats them, and in neither does anything
#    have to be slowed down. To find the latest value in long texts slow their gates down and sharpen attention; RoPE on a quarter, half or
#    all of its columns, slowed down, is still better.
#
# **Limits.** Both tasks are made up, and their texts have equally many keys at every length. The models learned them in 1,500
# steps, <!-- given: the steps of a laptop's run --> and longer training may close the gap of the fast pairs. In text there is one size,
# one kind of text and one short training, and the shared key was trained there only.
#
# Pairs differ in number and in speed, and no model with slow pairs alone was trained. Single pairs were slowed down only by a factor of
# sixteen. A stopped pair is also new to the model, so a model may lose more than what the pair did. A head has 16 or 32 columns here and
# up to 512 in the models of the table. So an eighth is one or two pairs here and may be 32 there, and what counts may be the number of
# pairs and not the share.
#
# In the tasks the layer without position is always the second of two; in novels it is one or two of four. All gates of a model were slowed
# down alike, as many times as the text is longer. We tried sharper attention without slower gates for latest values only.
#
# **What would change our mind.** A model that finds as many latest values with its slow pair stopped. RoPE that finds more in longer texts
# with all its pairs slowed down than with the slow ones alone. In either case the two kinds of pairs would not do different work. In text,
# a larger head in which an eighth is as good as all.
#
# **What is not new here.** Partial rotation is in use since GPT-J, and {cite:t}`khan2026` vary the share. {cite:t}`barbero2025` found
# that trained models use fast pairs for the tokens just before, and rotate these pairs alone. {cite:t}`liu2024` saw that a small base lets
# RoPE read further, and explain it by the angles of each wave alone; here that was not enough for eight waves. The identity of forget gates
# and two columns follows from the definition of {cite:t}`lin2025`.
#
# ## Exercises
#
# **1. (easy)** A cache of DeepSeek-V3 keeps $c_j$ with 512 numbers and the rotating key with 64, for each token and layer. A cache of all
# keys and values would keep, for each of 128 heads, a key of 192 and a value of 128. How many times as large is it?

# %% tags=["hide-cell"]
# Solution
whole, kept = 128 * (192 + 128), 512 + 64
print(f"{whole / kept:.0f} times")
assert whole // kept == 71

# %% [markdown]
# **2. (medium)** Which of these change their logits if the first token is at index 500 instead of 0: RoPE on a quarter, every second
# layer without position, FoX?

# %% tags=["hide-cell"]
# Solution. None: they depend on distances, or on the tokens between.
text = torch.randint(256, (1, 20), generator=g)
every_second = {"encoding": "rope", "nope_every": 2}
gates = {"encoding": "forgetting"}
for fields in ({"encoding": RoPE(partial=1 / 4)}, every_second, gates):
    torch.manual_seed(seed)
    config = TransformerConfig(Streams.dense(32), 2, 4, **fields)
    model = LanguageModel(config).double()
    with torch.no_grad():
        moved = model(text, torch.arange(500, 520)) - model(text)
    assert moved.abs().max() < 1e-9

# %% tags=["hide-cell"]
chapter_numbers.publish("14_dimensions", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(novels, adapted, recall, latest, *tables)

# %% [markdown]
# # 3. Relative positions: Shaw and Transformer-XL
#
# **Finding.** A model that knows only that a key is earlier, and not how far back it is, loses
# {num}`shaw_clip/keys-1 minus keys-unclipped/val_bits_per_byte:.2f` bits per byte against one that knows every distance. If only the
# distances from 4 on share a label, the model loses nothing that we could measure. So exact distances help nearby. Farther out, even the
# model that knows every distance hardly uses the keys: hiding every key at distance 8 or more costs it only {num}`03_relative/hidden_8`
# bits per byte.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import math
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from sepnb import experiments
from sepnb.analysis.flops import products_of
from sepnb.analysis.memory import MemoryWatch
from sepnb.analysis.states import inputs_of
from sepnb.data import text
from sepnb.encodings import (
    Shaw,
    TransformerXL,
    alibi_bias,
    shaw_output,
    shaw_scores,
    sinusoidal,
    transformer_xl_scores,
)
from sepnb.evaluation import evaluate
from sepnb.experiments import shaw_clip
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.plots import figures, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train

figures.use_style()
# The profile chooses sizes; every profile runs the same code.
n_steps = {"smoke": 250, "laptop": 250, "gpu": 500}[profile]
width, L, F64 = 64, 64, torch.float64
generator = torch.Generator().manual_seed(seed)
numbers = {}


def noise(*shape):
    """Normal numbers in float64, so that "equal" can mean "equal to rounding"."""
    return torch.randn(*shape, generator=generator, dtype=F64)


# %% tags=["hide-input"]
clipping = experiments.get("shaw_clip")
sweep = clipping.table(profile)
of_clips = RunTable(sweep)
numbers["clip_laptop_runs"] = len(clipping.grid("laptop"))
WHOLE = f"{shaw_clip.UNCLIPPED}:val_bits"


def above_unclipped(asked):
    """What is lost against the unclipped model at each distance: one value a seed."""
    unclipped = f"{WHOLE}_per_byte"
    return {
        one: of_clips.minus(asked.format(one), unclipped) for one in shaw_clip.CLIPS
    }


clipped = above_unclipped("keys-{}:val_bits_per_byte")
hidden = above_unclipped(WHOLE + "_window_{}")
but_first = above_unclipped(WHOLE + "_window_{}_sinks")

# %% tags=["hide-input"]
level = [one for one in clipped if clipped[one].mean() < 0.03]
found = "Every clip costs 0.03 or more."
if level:
    found = (
        f"Keys from distance {min(level)} on can share one label at a mean cost below "
        "0.03 bits per byte; sharing from any nearer distance costs more."
    )
drawn = (
    ("hidden", hidden, "#6b6f74", "s"),
    ("hidden, first four kept", but_first, "#e69f00", "^"),
    ("one label", clipped, "#0072b2", "o"),
)
seen_costs = pd.concat([one for _, costs, *_ in drawn for one in costs.values()])
top = max([0.3, *seen_costs])
ticks = [tick for tick in (-0.03, 0, 0.03, 0.1, 0.3, 1) if tick <= top]

fig, ax = plt.subplots(figsize=(6.8, 3.4))
ax.axhspan(-0.03, 0.03, color=figures.FAINT, alpha=0.15, linewidth=0)
ax.axhline(0, color=figures.FAINT, linewidth=0.8)
for name, costs, colour, marker in drawn:
    means = [costs[one].mean() for one in shaw_clip.CLIPS]
    ax.plot(shaw_clip.CLIPS, means, marker=marker, color=colour, label=name)
    for one, values in costs.items():
        ax.plot([one] * len(values), values, "_", color=colour, markersize=10)
ax.set_yscale("symlog", linthresh=0.1)
ax.set_yticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
shapes.powers_of_two(ax, shaw_clip.CLIPS)
ax.set(xlabel="from this distance on (tokens)", ylabel="cost (bits per byte)")
ax.set(xlim=(0.8, 33), ylim=(-0.05, 1.3 * top))
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-relative-clip",
    alt="Cost in bits per byte against the distance from which on keys share one "
    "label, are hidden, or are hidden except the first four; distances from 1 to 32, "
    "every seed a tick, a band for the margin. " + found,
    caption=found
    + " Lines: the cost if all keys at this distance or farther share one label (one "
    "vector for all their distances), or are hidden (all, or all but the first four "
    "tokens). The cost of hiding keys is an upper bound for what the model gains from "
    "them. Validation text; the band is ±0.03, the axis is linear to 0.1.",
)

# %% [markdown]
# > **Question.** How can a score depend on the distance between its two tokens, and on nothing else about their places? And how
# > far out does the exact distance matter?
#
# With position embeddings added to the tokens, relative positions are one matrix away: a head *can* learn to read them
# ({doc}`chapter 2 <02_absolute>`). Two later papers put them into the {term}`score` directly. Shaw, Uszkoreit and Vaswani
# {cite:p}`shaw2018` give every distance a learned vector. Transformer-XL {cite:p}`dai2019` takes the score of absolute embeddings
# apart and replaces whatever names a place.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 25 s of one CPU core, most of it for two tiny trainings; no GPU is used, nothing is
#   downloaded. Memory: under 1 GB. The records of one section come from `sepnb run shaw_clip`: {num}`03_relative/clip_laptop_runs` runs of
#   about a minute each on one core, on the novels that `sepnb data eltec-eng` downloads.
# - **You need**: {doc}`chapter 2 <02_absolute>`, or at least its section *What to take away*.
# - **You will learn**: how to score by distance without a vector for every pair; what clipping does to longer texts; the four terms of
#   Transformer-XL, and a shift of rows that is easy to get wrong.
# - **Claim tested** (see {doc}`/book/claims`): `precise-position-helps-nearby`. Its rule was committed before the first record
#   was made.
# ```
#
# ## Where a place hides in a score
#
# With a position embedding added at the input, the score of query $i$ and key $j$ is, before scaling and with $s$ and $s'$ the embeddings
# of the two tokens,
#
# $$
# \begin{aligned}
# (p_i + s)\, W\, (p_j + s')^\top
# &= \underbrace{s W s'^\top}_{\text{content, content}}
# + \underbrace{s W p_j^\top}_{\text{content, position}} \\
# &\quad + \underbrace{p_i W s'^\top}_{\text{position, content}}
# + \underbrace{p_i W p_j^\top}_{\text{position, position}}, \qquad W = W_Q W_K^\top .
# \end{aligned}
# $$ (eq-relative-four)
#
# Three of the four terms name a place. If you move a whole text along by a few tokens, they change.

# %%
N, D = 12, 16
content, W = noise(N, D), noise(D, D) / D


def four_terms(start):
    """The four terms for a text that begins at index `start`."""
    p = sinusoidal(torch.arange(N) + start, D, dtype=F64)
    return {
        "content, content": content @ W @ content.T,
        "content, position": content @ W @ p.T,
        "position, content": p @ W @ content.T,
        "position, position": p @ W @ p.T,
    }


here, there = four_terms(0), four_terms(5)
p = sinusoidal(torch.arange(N), D, dtype=F64)
whole = (p + content) @ W @ (p + content).T
torch.testing.assert_close(sum(here.values()), whole, rtol=0, atol=1e-12)
moved = {name: (there[name] - here[name]).abs().max().item() for name in here}
print({name: f"{change:.2f}" for name, change in moved.items()})
assert moved.pop("content, content") == 0 and min(moved.values()) > 1e-2

# %% [markdown]
# ## Shaw: a graph with labelled edges
#
# Think of a sentence as a graph. Every token is a node, every pair $(i, j)$ is an edge from the query to the key, and the label of the edge
# is the relative position $j - i$. Each label has two learned vectors, one for the key and one for the value. Labels are *clipped*: from a
# distance of $k$ on, all edges to the left share one label, and all edges to the right share another. That leaves $2k + 1$ labels, however
# long the text is.

# %% tags=["hide-input"]
words = ["the", "dog", "bit", "the", "man"]
LABELS = {-2: "#0072b2", -1: "#56b4e9", 0: "#6b6f74", 1: "#e69f00", 2: "#d55e00"}


def signed_label(label):
    return f"{label:+d}".replace("-", "\N{MINUS SIGN}") if label else "0"


fig, axes = plt.subplots(1, 2, figsize=(8.4, 2.7), width_ratios=(1.7, 1))
axes[0].set(xlim=(-0.6, 4.6), ylim=(-0.75, 1.75), aspect="equal")
axes[0].axis("off")
for j, word in enumerate(words):
    label = int(np.clip(j - 1, -2, 2))
    about = {"ha": "center", "va": "center"}
    axes[0].text(j, 0, word, fontsize=11, **about)
    axes[0].text(j, -0.45, signed_label(label), color=LABELS[label], **about)
    if j != 1:
        style = {"arrowstyle": "-|>", "color": LABELS[label], "lw": 1.8}
        style["connectionstyle"] = f"arc3,rad={-0.75 * np.sign(j - 1):.2f}"
        axes[0].annotate("", (j, 0.22), (1, 0.22), arrowprops=style)
axes[0].set_title("edges of the query “dog”, $k = 2$", loc="center", fontsize=10)
labels = np.clip(np.arange(7) - np.arange(7)[:, None], -2, 2)
shapes.heat_map(axes[1], labels, reach=3, cmap="PuOr_r")
words_in = [[signed_label(label) for label in row] for row in labels]
shapes.write_cells(axes[1], words_in, white=abs(labels) == 2, fontsize=8)
axes[1].set(xlabel="key $j$", ylabel="query $i$", xticks=[], yticks=[])
figures.show(
    fig,
    name="fig-relative-graph",
    alt="Left: the sentence the dog bit the man with arrows from dog to the other "
    "words; below the words the labels minus one, zero, "
    "plus one, plus two and again plus two. Right: a seven by seven table of labels, "
    "constant along diagonals, minus two below and plus two above.",
    caption="Every pair of tokens is an edge, labelled with the clipped relative "
    "position. *the* and *man* on the right are two and three away from *dog* but "
    "share a label: for tokens $k$ or more away, the model knows only the side.",
)

# %% [markdown]
# Let $c(r)$ be the label, which is $r$ clipped to $[-k, k]$, and let the tables $a^K, a^V$ have $2k + 1$ rows of $d$ numbers. Then
#
# $$
# S_{ij} = \frac{q_i \cdot \bigl( k_j + a^K_{c(j-i)} \bigr)}{\sqrt d}, \qquad
# z_i = \sum_j a_{ij} \bigl( v_j + a^V_{c(j-i)} \bigr) .
# $$ (eq-relative-shaw)
#
# Taken literally, this needs a vector for every pair. We compute the scores that way once, to check the package and to show four easy
# mistakes. The package itself needs no such vectors:
#
# ```{literalinclude} ../../sepnb/encodings/shaw.py
# :pyobject: shaw_scores
# :start-at: index =
# :dedent:
# ```


# %%
def of_pairs(table, clip, *, sign=1):
    """A vector for every pair, [N, N, d]: row c(j - i) + clip of the table."""
    at = torch.arange(N)
    return table[(sign * (at - at[:, None])).clamp(-clip, clip) + clip]


d, clip = 8, 3
q, k, v = noise(1, 1, N, d), noise(1, 1, N, d), noise(1, 1, N, d)
keys, values = noise(2 * clip + 1, d), noise(2 * clip + 1, d)
scores = shaw_scores(q, k, keys, clip=clip)[0, 0]
content_only = (q @ k.mT)[0, 0]


def of_keys(table=keys, clip=clip, sign=1):
    return (q[0, 0, :, None] * of_pairs(table, clip, sign=sign)).sum(dim=-1)


forms = {
    "as printed": (content_only + of_keys()) / d**0.5,
    "query minus key": (content_only + of_keys(sign=-1)) / d**0.5,
    "only the first product scaled": content_only / d**0.5 + of_keys(),
    "clipped one too early": (content_only + of_keys(keys[1:-1], clip - 1)) / d**0.5,
    "no vectors at all": content_only / d**0.5,
}
# %%
mistakes = pd.DataFrame(
    {"what is computed": name, "largest difference": (form - scores).abs().max().item()}
    for name, form in forms.items()
)
figures.show_table(
    mistakes,
    caption="Largest difference between shaw_scores and the formula with a vector for "
    "every pair: as printed, and with four mistakes (float64).",
    formats={"largest difference": ".1e"},
    highlight=[0],
)
difference = mistakes["largest difference"]
assert difference[0] < 1e-13 and (difference[1:] > 0.1).all()

# %%
weights = scores.masked_fill(torch.ones(N, N).triu(1) > 0, -torch.inf).softmax(dim=-1)
ours = shaw_output(weights[None, None], v, values, clip=clip)[0, 0]
pairs = v[0, 0] + of_pairs(values, clip)  # [N, N, d]
torch.testing.assert_close(ours, torch.einsum("ij,ijd->id", weights, pairs))
turned = v[0, 0] + of_pairs(values, clip, sign=-1)
assert (ours - torch.einsum("ij,ijd->id", weights, turned)).abs().max() > 0.1

by_hand = torch.zeros(3, 1, dtype=F64)
by_hand[0] = 1.0  # the label "one or more back"
nothing, ask = torch.zeros(1, 1, 3, 1, dtype=F64), torch.ones(1, 1, 3, 1, dtype=F64)
three = shaw_scores(ask, nothing, by_hand, clip=1)[0, 0]
assert three.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0]], "the past is below"

# %% [markdown]
# The small matrix at the end of the code is a case to do **by hand**: width 1, $k = 1$, all queries 1, all keys 0, and only the label *one
# or more back* has a vector. A model with the wrong sign trains to a sensible loss, so the test needs a table that is not symmetric.
#
# ### Without a vector for every pair
#
# There are $N^2$ pairs but only $2k+1$ labels, so $q_i \cdot a^K_c$ is one of only $2k+1$ numbers for each query. Compute these numbers,
# $Q\, (a^K)^\top$, and *gather* them: look up the number for the label of each pair. For the value vectors, go the other way and *bin*: add
# up the weights of each label and multiply the $2k+1$ sums by the table,
#
# $$
# \sum_j a_{ij}\, a^V_{c(j-i)} = \sum_{c=-k}^{k} \Bigl( \sum_{j:\, c(j-i) = c} a_{ij} \Bigr) a^V_c .
# $$ (eq-relative-binned)
#
# The paper saves memory in another way, by sharing tables over heads and sequences and by reshapes. Gathering and binning work for any
# positions. To compare, we let PyTorch report every tensor that it makes and take the largest.

# %%
HEADS, HEAD_WIDTH, CLIP = 4, 32, 16


def largest(n, direct):
    """Entries of the largest tensor in the score of n queries and keys."""
    q, k = (torch.zeros(1, HEADS, n, HEAD_WIDTH) for _ in range(2))
    table, at = torch.zeros(2 * CLIP + 1, HEAD_WIDTH), torch.arange(n)
    with MemoryWatch() as seen:
        if direct:
            vectors = table[(at - at[:, None]).clamp(-CLIP, CLIP) + CLIP]
            q @ k.mT + torch.einsum("bhnd,nmd->bhnm", q, vectors)
        else:
            shaw_scores(q, k, table, clip=CLIP)
    return seen.largest


lengths = [64, 128, 256, 512]
for_pairs, ours = ([largest(n, direct) for n in lengths] for direct in (True, False))
assert for_pairs == [n * n * HEAD_WIDTH for n in lengths]
assert ours == [HEADS * n * n for n in lengths], "no more than the scores"
numbers["memory_ratio"] = for_pairs[-1] / ours[-1]

# %% [markdown]
# At every length a vector for every pair takes {num}`03_relative/memory_ratio:.0f` times the memory of gathering, which holds only the
# scores. The ratio is $d / H$ for one sequence. With a table for each head it would be $d$.
#
# ### Which rows learn, and what longer texts ask for
#
# In a causal model no query sees a later key, so the rows of positive labels are never used. The row of label $-k$ belongs to *all* keys
# that are $k$ or more tokens back. As long as $k$ is below the trained length $L$, training reaches this row, and a longer text needs no
# other. In that sense clipping "lets us generalize to sequence lengths not seen in training", as the notes among our sources put it. If
# $k \ge L$, the first longer text meets an untrained row.


# %%
def rows_with_gradient(clip, length):
    """Labels whose vectors a causal model with texts of this length trains."""
    torch.manual_seed(seed)
    model = LanguageModel(TransformerConfig(Streams.dense(16), 1, 2, Shaw(clip)), 11)
    model(torch.arange(length)[None] % 11).square().mean().backward()
    (pairs,) = (block.attention.averaging.pairs for block in model.transformer.blocks)
    moved = torch.nonzero(pairs.table.grad.abs().amax(dim=(0, 2))).flatten()
    return (moved - clip).tolist()


assert rows_with_gradient(4, 16) == rows_with_gradient(4, 64) == [-4, -3, -2, -1, 0]
assert rows_with_gradient(16, 16) == list(range(-15, 1)), "label -16 was never met"
assert rows_with_gradient(16, 17)[0] == -16, "one token more, and it is asked for"
print("clip 4, 16 tokens:", rows_with_gradient(4, 16))

# %% [markdown]
# ### What a trained table says
#
# We train one model for a few seconds on source code: two blocks of two heads, $k = 16$, texts of 64 tokens. Then we look at the part of
# its scores that Shaw's vectors add, $q_i \cdot a^K_c / \sqrt d$, averaged over queries.

# %%
library = text.load("sympy")
held_out = text.windows(library.validation, length=4 * L, per_document=8 * L)
held_out = held_out.tokens[:48]


def trained(encoding):
    """A tiny model with this encoding, trained on texts of L bytes."""
    torch.manual_seed(seed)
    config = TransformerConfig(Streams.dense(width), 2, 2, encoding, max_length=L)
    model = LanguageModel(config).to(device)
    order = {"batch_size": 8, "length": L, "seed": seed, "steps": n_steps}
    batches = text.sample_batches(library.train, **order)
    train(model, batches, TrainingConfig(n_steps, 8, L, 4e-3), device=device)
    return model.eval().requires_grad_(False)


# %%
def caught(model, tokens):
    """Per layer: the module that makes the scores, its q and k, and the weights."""
    layers = [block.attention.averaging.pairs for block in model.transformer.blocks]
    with torch.no_grad(), frozen_attention(model) as tapes, inputs_of(layers) as found:
        model(tokens)
    return [
        (layer, *given[:2], tape.weights)
        for layer, given, tape in zip(layers, found, tapes, strict=True)
    ]


# %%
shaw = trained(Shaw(CLIP))
sample = torch.from_numpy(held_out[:24, :L]).to(device)
added = {}  # (layer, head) -> the mean of q . a^K / sqrt(d) by distance, 0 to CLIP
ahead = torch.ones(L, L, dtype=torch.bool, device=device).triu(1)
for layer, (module, q_l, k_l, a) in enumerate(caught(shaw, sample)):
    table = module.table[0]
    again = shaw_scores(q_l, k_l, table, clip=CLIP).masked_fill(ahead, -torch.inf)
    torch.testing.assert_close(again.softmax(dim=-1), a, rtol=0, atol=1e-5)
    products = q_l @ table[: CLIP + 1].flip(0).T / q_l.shape[-1] ** 0.5
    for head in range(2):
        added[layer, head] = products[:, head].mean(dim=(0, 1)).cpu().numpy()
spread = {key: np.ptp(one) for key, one in added.items()}
numbers["shaw_added_range"] = float(max(spread.values()))
near_heads = sum(int(one.argmax()) < 4 for one in added.values())

# %%
beyond = {
    rule: evaluate(shaw.extended(window=w), held_out, device=device).bits.mean(axis=0)
    for rule, w in (("all keys", None), ("window", L))
}
numbers["shaw_inside"] = beyond["all keys"][:L].mean()
numbers["shaw_beyond"] = beyond["all keys"][L:].mean()
numbers["shaw_beyond_window"] = beyond["window"][L:].mean()
assert abs(beyond["window"][:L].mean() - numbers["shaw_inside"]) < 1e-6

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.3))
looks = ("#0072b2", "o", "-"), ("#0072b2", "s", shapes.DASHED)
looks += ("#d55e00", "^", "-"), ("#d55e00", "D", shapes.DASHED)
named = {f"block {n + 1}, head {head + 1}": one for (n, head), one in added.items()}
shapes.curves(ax, range(CLIP + 1), named, looks, markersize=4)
ax.axhline(0, color=figures.FAINT, linewidth=0.8)
ax.set_xticks([0, 4, 8, 12, 16], ["0", "4", "8", "12", "16 or more"])
ax.set(xlabel="distance into the past (tokens)")
ax.set_ylabel("mean of what is added\nto the score")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-relative-table",
    alt="Mean contribution of Shaw's vectors to the scores by distance from 0 to 16 or "
    "more, one line for each of four heads.",
    caption="What a trained table adds to the scores of four heads, by distance. "
    f"{near_heads} of 4 heads favour a distance below 4 most. Tiny model, one seed.",
)

# %% [markdown]
# What the vectors add varies by up to {num}`03_relative/shaw_added_range:.1f` over distances, although the rows began as small noise
# ($0.02$). The two heads of a block share a table, so they look alike; the two blocks have separate tables and differ more.
#
# What happens in longer texts? The loss is {num}`03_relative/shaw_inside:.2f` bits per byte within 64 tokens. Between 64 and 256 it is
# {num}`03_relative/shaw_beyond:.2f` with all keys visible and {num}`03_relative/shaw_beyond_window:.2f` with only the last 64. So the model
# does not break, because no row of its table is new. Only the *number* of far keys is new, and a window takes even that away.
#
# {doc}`Chapter 7 <07_every_encoding>` reads larger models at up to eight times their length. Between four and eight trained lengths the
# loss differs from that of the model's own sliding window by {num}`encodings/shaw/gap/native/8x:+.2f` bits per byte for Shaw and by
# {num}`encodings/transformer-xl/gap/native/8x:+.2f` for Transformer-XL (means of three seeds, which decide nothing).
#
# (relative-clip)=
# ## Is precise position useless beyond a distance?
#
# The notes give a second reason for clipping: "it is hypothesised" that precise "positional information is not useful beyond a certain
# distance". {cite:t}`shaw2018` proposed this and varied the clip in translation, where hardly anything was lost down to a clip of 2. The
# experiment `shaw_clip` trains models that differ only in the clip. At a clip of 1 there is one label for the token itself and one for all
# earlier tokens; at the trained length nothing is clipped.
#
# There is a trap. If a clip of 8 costs nothing, either exact position is useless from distance 8 on, or the *keys* from there on are
# useless, with or without a position. So we also let the unclipped model read with these keys hidden. {numref}`fig-relative-clip`, the
# first of this page, shows both costs: giving far keys one label, and not seeing them.
#
# The cost of hiding keys is an upper bound for what the model gains from them, because it was never trained to read without them. Hiding
# also takes away the first tokens of the text, which often receive the attention that no other key needs {cite:p}`xiao2024`. So the model
# reads a second time with the first four tokens visible, and the smaller cost counts.

# %% tags=["hide-input"]
for one in (1, 4, 8):
    numbers[f"hidden_{one}"] = text_of(hidden[one])
    numbers[f"but_first_{one}"] = text_of(but_first[one])

# %% [markdown]
# Costs on validation text, in bits per byte:
#
# | keys from this distance on | share one label | are hidden | are hidden except the first four |
# |---|---|---|---|
# | 8 | {num}`shaw_clip/keys-8 minus keys-unclipped/val_bits_per_byte:+.3f±` | {num}`03_relative/hidden_8` | {num}`03_relative/but_first_8` |
# | 4 | {num}`shaw_clip/keys-4 minus keys-unclipped/val_bits_per_byte:+.3f±` | {num}`03_relative/hidden_4` | {num}`03_relative/but_first_4` |
# | 1 | {num}`shaw_clip/keys-1 minus keys-unclipped/val_bits_per_byte:+.3f±` | {num}`03_relative/hidden_1` | {num}`03_relative/but_first_1` |
#
# From distance 4 on, one label does as well as many. But these models lose little even if the keys are hidden, so we cannot say whether a
# model that does use far keys would need their exact positions. The notes' hypothesis cannot be tested here. Exact position does help
# nearby (our own hypothesis: {verdict}`precise-position-helps-nearby: held`).
#
# With a clip of 8, adding vectors at the values to those at the keys changes the loss by
# {num}`shaw_clip/keys-values-8 minus keys-8/bits_per_byte:+.3f±` (three seeds). The paper also found keys alone as good as both.
#
# ## Transformer-XL: four terms again
#
# Transformer-XL starts from {eq}`eq-relative-four` and replaces whatever names a place. The key's embedding $p_j$ becomes $p_{i-j}$, the
# sinusoid *of the distance*, and gets a separate matrix $W_r$. (The paper calls this sinusoid $R_{i-j}$; here $R$ is a rotation.) The
# query's embedding $p_i$ becomes a learned vector, $u$ where it meets content and $v$ where it meets distances. Both vectors are the same
# at all places, because where a query looks should not depend on where the query is.
#
# $$
# S_{ij} = \frac{1}{\sqrt d} \bigl[\;
# \underbrace{q_i \cdot k_j}_{(a)}
# + \underbrace{q_i \cdot W_r p_{i-j}}_{(b)}
# + \underbrace{u \cdot k_j}_{(c)}
# + \underbrace{v \cdot W_r p_{i-j}}_{(d)}
# \;\bigr]
# $$ (eq-relative-xl)
#
# (a) addresses by content. (b) is a bias for distances that depends on the content of the query. (c) is a global bias for content and (d) a
# global bias for distances, the same for all queries. In this book each layer has its own $u$, $v$ and $W_r$.
#
# ```{admonition} Deviation from the source
# :class: warning
# By default the authors' release shares $u$ and $v$ over the layers. And this is only the *score* of Transformer-XL. The paper also keeps
# the states of an earlier segment (see below), and its results rest on both: a perplexity of
# 18.3 on WikiText-103, where 20.5 was the best before. <!-- given: abstract of the paper -->
# ```
#
# We train the same tiny model with this score and take its scores apart.
#
# ```{literalinclude} ../../sepnb/encodings/transformer_xl.py
# :pyobject: transformer_xl_scores
# :start-at: content =
# :dedent:
# ```

# %%
xl = trained(TransformerXL())
module, q_x, k_x, a_x = caught(xl, sample)[1]  # the second block
d_x = q_x.shape[-1]
waves = sinusoidal(torch.arange(L), width, layout="halves").to(device)
maps = module.distances.weight.unflatten(0, (2, d_x))  # W_r of each head: [H, d, D]
r = waves @ maps.mT  # [H, M, d], row t is W_r p_t
one, head = 0, 0
q_1, k_1, r_1 = q_x[one, head], k_x[one, head], r[head]
u, v_bias = module.u[head], module.v[head]
distance = (torch.arange(L)[:, None] - torch.arange(L)).clamp(min=0).to(device)
terms = {
    "(a) content": q_1 @ k_1.T,
    "(b) content, distance": (q_1 @ r_1.T).gather(1, distance),
    "(c) global content": (u @ k_1.T).expand(L, L),
    "(d) global distance": (v_bias @ r_1.T)[distance],
}
terms = {name: (term / d_x**0.5).cpu() for name, term in terms.items()}
total = transformer_xl_scores(q_x, k_x, r, module.u, module.v)
seen = ~ahead.cpu()
again, own = sum(terms.values())[seen], total[one, head].cpu()[seen]
torch.testing.assert_close(again, own, rtol=0, atol=1e-4)
mine = total.masked_fill(ahead, -torch.inf).softmax(dim=-1)
torch.testing.assert_close(mine, a_x, rtol=0, atol=1e-5)

# %% [markdown]
# The four terms add up to the scores that the model computed in its faster way. Each has the shape that the formula predicts:
# (c) depends only on the key, (d) only on the distance.

# %%
spreads = {name[1]: term[seen].std().item() for name, term in terms.items()}
numbers["xl_sd_c"], numbers["xl_sd_b"] = spreads["c"], spreads["b"]
assert min(spreads, key=spreads.get) == "c" and max(spreads, key=spreads.get) == "b"
for name, term in terms.items():
    rest = sum(terms.values()) - term
    assert (rest - total[one, head].cpu())[seen].abs().max() > 1e-3, name
assert torch.equal(terms["(c) global content"][0], terms["(c) global content"][-1])
diagonals = terms["(d) global distance"]
assert torch.equal(diagonals[1:, 1:][seen[1:, 1:]], diagonals[:-1, :-1][seen[1:, 1:]])

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 5, figsize=(9.2, 2.5), sharey=True)
panels = terms | {"sum": sum(terms.values())}
for ax, (name, one) in zip(axes, panels.items(), strict=True):
    own = (one - one[seen].mean()).masked_fill(~seen, torch.nan)
    reach = own[seen].abs().quantile(0.99).item()
    shapes.heat_map(ax, own, reach)
    title = f"{name}\ns.d. {one[seen].std().item():.2f}"
    ax.set_title(title, loc="center", fontsize=8.5)
    ax.set(xticks=[0, 32], yticks=[0, 32, 63])
axes[0].set_ylabel("query $i$")
axes[2].set_xlabel("key $j$")
figures.show(
    fig,
    name="fig-relative-terms",
    alt="Five lower triangles for 64 queries and keys: an irregular texture, a texture "
    "of diagonals that changes from row to row, vertical stripes, smooth diagonals, "
    "and their sum.",
    caption="The four terms of one head of a trained model, and their sum. (c) is made "
    "of columns, (d) of diagonals, and (b), content with distance, varies most. Dark "
    "purple is high. Each panel has its own scale and its mean taken off; s.d. is the "
    "standard deviation. Tiny model, one seed.",
)

# %% [markdown]
# Over the visible pairs, the standard deviations of the four terms lie between {num}`03_relative/xl_sd_c:.2f` (c) and
# {num}`03_relative/xl_sd_b:.2f` (b). This is one head of one tiny model, and shows only what each term *can* be.
#
# ### The memory of earlier segments
#
# Why score by distance at all? The reason is what the paper calls recurrence. A long text is read segment by segment, and each layer
# keeps its inputs $m$ at the last few tokens, without gradient (sg). The next segment makes additional keys and values from them,
#
# $$
# \tilde h = [\operatorname{sg}(m) \Vert h], \qquad q = h W_Q, \quad k = \tilde h W_K, \quad v = \tilde h W_V .
# $$ (eq-relative-memory)
#
# If positions counted from the start of each segment, two visible tokens would have the same position. Distances simply continue across the
# border. A trained model makes the same keys and values from $m$ every time, so it can keep these instead: a KV cache with `room` for a few
# tokens reads a text in this way. The model trained above shows two consequences. If the memory holds the whole text, reading in segments
# gives the same as reading at once. If it holds one segment, each layer passes the influence of a byte one segment further.

# %%
segment, targets = 16, torch.from_numpy(held_out[:24, 1 : L + 1]).long().to(device)
other = sample.clone()
other[:, 0] = (other[:, 0] + 1) % 256  # the first byte of every text, changed


def alone(tokens):
    """Each segment by itself."""
    return torch.cat([xl(piece) for piece in tokens.split(segment, dim=1)], dim=1)


def in_segments(tokens, size, positions=None):
    """Each segment after the last `size` tokens before it."""
    cache = xl.make_cache(len(tokens))
    cache.room = size
    pieces = tokens.split(segment, dim=1)
    return torch.cat([xl(piece, positions, cache) for piece in pieces], dim=1)


ways = {
    "each segment alone": alone,
    "memory of half a segment": partial(in_segments, size=8),
    "memory of one segment": partial(in_segments, size=16),
    "memory of the whole text": partial(in_segments, size=L),
    "at once": xl,
    # As it should not be: each segment's positions begin at 0.
    "memory, positions from 0 on": partial(
        in_segments, size=L, positions=torch.arange(segment, device=device)
    ),
}

# %%
read = []
with torch.no_grad():
    logits = {way: forward(sample) for way, forward in ways.items()}
    for way, forward in ways.items():
        changed = (forward(other) - logits[way]).abs().amax(dim=(0, 2)) > 1e-6
        late = logits[way][:, segment:].transpose(1, 2)
        paid = F.cross_entropy(late, targets[:, segment:]).item() / math.log(2)
        heard = int(changed.nonzero().max())
        read.append({"reading": way, "bits per byte": paid, "reaches byte": heard})
read = pd.DataFrame(read)
heard = dict(zip(read["reading"], read["reaches byte"], strict=True))
at_once, remembered = logits["at once"], logits["memory of the whole text"]
torch.testing.assert_close(remembered, at_once, rtol=0, atol=1e-4)
assert heard["each segment alone"] == segment - 1
assert heard["memory of one segment"] == (1 + 2) * segment - 1, "two layers, two on"
wrong = (logits["memory, positions from 0 on"] - at_once).abs().max()
assert wrong > 1e-2, "two tokens at one distance"
figures.show_table(
    read,
    caption=f"The live model reads texts of {L} bytes in segments of {segment}. Shown "
    "are the bits per byte after the first segment, and the last byte whose prediction "
    "changes when the first byte of the text does.",
    formats={"bits per byte": ".3f"},
)
for key, way in (("alone", 0), ("one", 2), ("whole", 4)):
    numbers[f"memory_{key}"] = float(read["bits per byte"][way])

# %% [markdown]
# After the first segment the loss is {num}`03_relative/memory_alone:.3f` bits per byte when each segment is read alone,
# {num}`03_relative/memory_one:.3f` with a memory of one segment, and {num}`03_relative/memory_whole:.3f` at once. The last row of the table
# is a mistake made on purpose: if every segment counts its positions from 0, two tokens share a distance, and the loss is higher than
# without a memory. None of this book's experiments uses {term}`segment memory <segment memory>`.
#
# ### A shift instead of a table of pairs
#
# Terms (b) and (d) need $(q_i + v) \cdot W_r p_{i-j}$ for every pair. With $M$ keys there are only $M$ distances, so one product with $M$
# vectors gives all the numbers, but in the wrong places: column $t$ is a distance, and should be a key. The authors' code {cite:p}`dai2019`
# orders the columns from distance $M-1$ down to 0. Then row $n$ has to move left by $N - 1 - n$. A column of padding and two reshapes move
# all rows at once. {cite:t}`huang2019` published this step earlier as *skewing*, for Shaw's keys.


# %%
def relative_shift(x):
    """Columns for distances M - 1 to 0 to columns for keys, as the authors' code."""
    n, m = x.shape
    padded = F.pad(x, (1, 0))  # [N, M + 1]
    return padded.reshape(m + 1, n)[1:].reshape(n, m)


n, m = 3, 5  # the last 3 queries of 5 keys
falling = torch.arange(m - 1, -1, -1).double().expand(n, m)
print(relative_shift(falling).long())
wanted = torch.full((n, m), -1.0, dtype=F64)
for row in range(n):
    for j in range(m - n + row + 1):
        wanted[row, j] = (m - n) + row - j  # query minus key
visible = wanted >= 0
assert torch.equal(relative_shift(falling)[visible], wanted[visible])
numbers["shift_garbage"] = int((relative_shift(falling)[~visible] != 0).sum())

# %% [markdown]
# Every entry that the causal mask leaves visible is a distance. The 3 entries that it hides are padding or belong to the next row, and
# {num}`03_relative/shift_garbage` of them is not zero. Without the mask a token would look ahead, at noise.
#
# The trick can go wrong without an error: the distances may begin at $M$ instead of $M - 1$, or ascend. So we check it with a double loop
# over the printed formula.


# %%
def by_loop(q, k, r, u, v):
    """Transformer-XL, visible pairs only: the last N of M positions."""
    n, m = len(q), len(k)
    out = torch.full((n, m), -torch.inf, dtype=F64)
    for row in range(n):
        for j in range(m - n + row + 1):
            t = (m - n) + row - j
            out[row, j] = (q[row] + u) @ k[j] + (q[row] + v) @ r[t]
    return out / q.shape[-1] ** 0.5


# %%
n, m, d = 7, 11, 6
q, k, u, v = noise(n, d), noise(m, d), noise(d), noise(d)
more = noise(m + 1, d)  # W_r p_t for t = 0 .. M
r = more[:m]
visible = torch.ones(n, m, dtype=torch.bool).tril(m - n)


def shifted(columns):
    return ((q + u) @ k.T + relative_shift((q + v) @ columns.T)) / d**0.5


truth = by_loop(q, k, r, u, v)[visible]
of_package = transformer_xl_scores(
    q[None, None], k[None, None], r[None], u[None], v[None]
)
for right in (shifted(r.flip(0)), of_package[0, 0]):
    torch.testing.assert_close(right[visible], truth, rtol=0, atol=1e-12)
for wrong in (shifted(more[1:].flip(0)), shifted(r)):  # from M on, and ascending
    assert (wrong[visible] - truth).abs().max() > 0.1

# %% [markdown]
# ## What it costs
#
# Neither encoding is a plain bias, so torch's fused attention kernel does not apply, and there are more products to compute. Per token and
# layer, with $B$ sequences of $N$ tokens and all pairs of queries and keys, plain attention needs $2ND$ multiply-adds for scores and
# averages. On top of that come
#
# | | multiply-adds per token |
# |---|---|
# | Shaw, keys | $(k+1)\, D$ |
# | Shaw, values | $(2k+1)\, D$ |
# | Transformer-XL, distances | $N D$ |
# | Transformer-XL, $W_r p_t$ of all distances | $D^2 / B$ |
#
# Shaw's table is short, so its share of the products falls with the length of the text. Transformer-XL's table is as long as the text, so
# what it adds approaches half of the products of plain attention. PyTorch's counter confirms these numbers exactly.

# %%
B, D = 2, 128


def multiply_adds(encoding, n):
    """Of one block on B sequences of n tokens, per token, explicit softmax."""
    torch.manual_seed(seed)
    model = LanguageModel(TransformerConfig(Streams.dense(D), 1, 4, encoding), 11)
    tokens = torch.zeros(B, n, dtype=torch.int64)
    with torch.no_grad(), frozen_attention(model):
        return products_of(lambda: model(tokens)) / (B * n)


spans = [64, 128, 256, 512, 1024]
plain = np.array([multiply_adds("none", n) for n in spans])
of = {"Shaw, keys": Shaw(CLIP, values=False), "Shaw, keys and values": Shaw(CLIP)}
of["Transformer-XL"] = TransformerXL()
counted = {name: [multiply_adds(one, n) for n in spans] for name, one in of.items()}
extra = {name: np.array(found) - plain for name, found in counted.items()}
of_attention = 2 * D * np.array(spans)
assert (np.diff(plain) == np.diff(of_attention)).all(), "what grows is 2 N D"
assert (extra["Shaw, keys"] == (CLIP + 1) * D).all()
assert (extra["Shaw, keys and values"] == (3 * CLIP + 2) * D).all()
assert (extra["Transformer-XL"] == of_attention / 2 + D * D / B).all()
at_512 = {name: (more / of_attention)[3] for name, more in extra.items()}
numbers["cost_shaw_512"] = at_512["Shaw, keys and values"]
numbers["cost_xl_512"] = at_512["Transformer-XL"]

# %% [markdown]
# At 512 tokens Shaw's vectors at keys and values add {num}`03_relative/cost_shaw_512:.0%` to the products of attention, and
# Transformer-XL adds {num}`03_relative/cost_xl_512:.0%`. The time grows by more than that, because gathering and binning also move memory.
#
# ## What to take away
#
# 1. A relative encoding adds to each score a term that depends on the distance of the two tokens, a **label of the pair**. Shaw looks it up
#    in a table of clipped distances, Transformer-XL computes it from a wave of the distance. Neither uses an index.
# 2. There are $N^2$ pairs but few labels, so no vector for a pair is ever needed: **gather** scores by label, **bin** weights by label, or
#    **shift** rows.
# 3. Exact distances help nearby ({verdict}`precise-position-helps-nearby: held`). Our models hardly use far keys, so they cannot show
#    whether exact distances help far out.
#
# **Limits.** Identities and counts are exact. The two live models are tiny, with one seed each.
#
# The experiment on clips has one size, one kind of text and one learning rate, that of RoPE in the sweep of `ablation`. A clip that costs
# nothing shows that these labels are dispensable, not that precise position is useless: two layers with a clip of $k$ together reach back
# $2k$ tokens, and a causal mask gives position without any vector.
#
# **What would change our mind.** A clip that costs more than the band of {numref}`fig-relative-clip` at a distance where hiding the keys
# costs little: then models would need exact far distances for something other than far keys.
#
# **Where it goes on.** {doc}`RoPE <04_rotation>` also scores by distance, but changes queries and keys one by one.
#
# ## Exercises
#
# Try each before you unfold its solution. Every solution ends with a check that fails if it is wrong.
#
# **1. (medium)** Give every query a column that is always 1. Which table makes `shaw_scores` add ALiBi's penalty, and where does it
# stop?

# %% tags=["hide-cell"]
# Solution. Row c holds -m |c| sqrt(d) in that column and zeros elsewhere. Beyond the
# clip the penalty no longer grows.
slope, d, clip = 0.5, 6, 4
q, k = noise(1, 1, N, d), noise(1, 1, N, d)
q[..., 0] = 1.0
table = torch.zeros(2 * clip + 1, d, dtype=F64)
steps = (torch.arange(2 * clip + 1) - clip).abs().double()
table[:, 0] = -slope * steps * d**0.5
plain = q @ k.mT / d**0.5
added = (shaw_scores(q, k, table, clip=clip) - plain)[0, 0]
at = torch.arange(N)
penalty = alibi_bias(torch.tensor([slope], dtype=F64), at, at)[0]
near = (at - at[:, None]).abs() <= clip
torch.testing.assert_close(added[near], penalty[near], rtol=0, atol=1e-12)
far = added[~near]
torch.testing.assert_close(far, torch.full_like(far, -slope * clip), rtol=0, atol=1e-12)

# %% [markdown]
# **2. (hard)** An encoder also sees later keys, so there are $2N - 1$ distances, from $N-1$ down to $-(N-1)$. Which shift puts a product
# with that many columns in its places?

# %% tags=["hide-cell"]
# Solution. Row n again moves left by N - 1 - n: the same padding and reshapes, now of
# 2N - 1 columns. Then take the first N columns.
n = 5
falling = torch.arange(n - 1, -n, -1).double().expand(n, 2 * n - 1)
both_ways = relative_shift(falling)[:, :n]
at = torch.arange(n)
assert torch.equal(both_ways, (at[:, None] - at).double())
next_to_it = relative_shift(falling)[:, 1 : n + 1]
assert not torch.equal(next_to_it, (at[:, None] - at).double())

# %% tags=["hide-cell"]
chapter_numbers.publish("03_relative", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(sweep)

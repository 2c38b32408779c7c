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
# # 3. Relative positions: Shaw and Transformer-XL
#
# **Finding.** One label for all earlier tokens, in place of a label for every distance, costs a model
# {num}`shaw_clip/keys-1 minus keys-unclipped/val_bits_per_byte:.2f` bits per byte: exact distances help nearby. From distance 8 on,
# hiding the keys altogether costs only {num}`03_relative/hidden_8`, so the claim that exact distances are useless far out is
# *{num}`03_relative/verdict_precise_position_is_useless_far_away`*.

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

from sepnb import claims, experiments
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
from sepnb.training.memory import SegmentMemory, in_segments

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
numbers["clip_laptop_runs"] = len(clipping.grid("laptop"))
there = sweep[sweep.status != "not run"]


def costs_of_clips(column):
    """What each clip costs beside no clip: one value a seed."""
    pairs = {one: (f"keys-{one}", shaw_clip.UNCLIPPED) for one in shaw_clip.CLIPS}
    return {
        one: RunTable(sweep).difference(*pair, column) for one, pair in pairs.items()
    }


def costs_of_hiding(kept=""):
    """What the unclipped model loses through each window: one value a seed."""
    of = partial(RunTable(sweep).values, shaw_clip.UNCLIPPED)
    return {
        one: of(f"val_bits_window_{one}{kept}") - of("val_bits_per_byte")
        for one in shaw_clip.CLIPS
    }


tested, clipped = map(costs_of_clips, ("bits_per_byte", "val_bits_per_byte"))
hidden, but_first = costs_of_hiding(), costs_of_hiding("_sinks")

# %% tags=["hide-input"]
level = [one for one in clipped if len(clipped[one]) and clipped[one].mean() < 0.03]
found = "The runs are still to come." if there.empty else "No clip costs below 0.03."
if level:
    found = (
        f"Keys from distance {min(level)} on can share one label at a mean cost below "
    )
    found += "0.03 bits per byte; from no nearer distance that was tried."
drawn = (
    ("not seen", hidden, "#6b6f74", "s"),
    ("not seen, first kept", but_first, "#e69f00", "^"),
    ("not labelled apart", clipped, "#0072b2", "o"),
)
seen_costs = pd.concat([one for _, costs, *_ in drawn for one in costs.values()])
top = max([0.3, *seen_costs])
ticks = [tick for tick in (-0.03, 0, 0.03, 0.1, 0.3, 1) if tick <= top]

fig, ax = plt.subplots(figsize=(6.8, 3.4))
ax.axhspan(-0.03, 0.03, color=figures.FAINT, alpha=0.15, linewidth=0)
ax.axhline(0, color=figures.FAINT, linewidth=0.8)
for name, costs, colour, marker in drawn:
    have = [one for one in shaw_clip.CLIPS if len(costs[one])]
    means = [costs[one].mean() for one in have]
    if have:
        ax.plot(have, means, marker=marker, color=colour, label=name)
    for one in have:
        ax.plot([one] * len(costs[one]), costs[one], "_", color=colour, markersize=10)
ax.set_yscale("symlog", linthresh=0.1)
ax.set_yticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
shapes.powers_of_two(ax, shaw_clip.CLIPS)
ax.set(xlabel="from this distance on (tokens)", ylabel="cost (bits per byte)")
ax.set(xlim=(0.8, 33), ylim=(-0.05, 1.3 * top))
figures.not_run(ax) if there.empty else figures.label_lines(ax)
figures.show(
    fig,
    name="fig-relative-clip",
    alt="Cost in bits per byte against the distance from which on keys are not "
    "labelled apart, not seen, and not seen but for the first tokens; distances from 1 "
    "to 32, every seed a tick, a band for the margin. " + found,
    caption=found
    + " Costs of one label for the keys from a distance on (*not labelled apart*), and "
    "of hiding them, with the first four tokens visible or not (validation text; band: "
    "±0.03, linear to 0.1). Not seeing costs at least what the keys say.",
)

# %% tags=["remove-input"]
figures.provenance(sweep)

# %% [markdown]
# > **Question.** How can a score depend on the distance of its two tokens, and on nothing else about their places? And how
# > far out does the exact distance matter?
#
# {doc}`Chapter 2 <02_absolute>` added position embeddings to the tokens and found that relative positions are one matrix away:
# a head *can* learn to read them. Two papers of the following years give them directly, at the {term}`score`.
# Shaw, Uszkoreit and Vaswani {cite:p}`shaw2018` attach a learned vector to every distance. Transformer-XL {cite:p}`dai2019` takes
# the score of absolute embeddings apart into four terms and replaces whatever names a place. Both had to solve the same practical
# problem: there are $N^2$ pairs of tokens, and only $N$ distances.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 25 s of one CPU core at any profile, most of it for two tiny trainings; no GPU is used, nothing is
#   downloaded. Memory: under 1 GB. The records of one section: `sepnb run shaw_clip`, {num}`03_relative/clip_laptop_runs` runs of
#   about a minute on one core, on the novels of `sepnb data eltec-eng`.
# - **You need**: {doc}`chapter 2 <02_absolute>`, or what it says to take away.
# - **You will learn**: how a table of distances is read without a vector for every pair. What clipping does to longer
#   texts. The four terms of Transformer-XL, one by one. A shift of rows that replaces a table of pairs, and three ways to
#   get it wrong. What all this costs in multiplications.
# - **Claims tested** (see {doc}`/book/claims`): `precise-position-is-useless-far-away`, `precise-position-helps-nearby`. Their
#   rules were committed before the first record was made.
# ```
#
# ## Where a place hides in a score
#
# With a position embedding added at the input, query $i$ and key $j$ score, before scaling,
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
# Three of the four name a place. Move a whole text along by a few tokens, and these three change, in a model with random weights as
# in most others.

# %%
N, D = 12, 16
content, W = noise(N, D), noise(D, D) / D


def four_terms(start):
    """The terms of (eq-relative-four) for a text that begins at index `start`."""
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
# Look at a sentence as a graph. Every token is a node, every pair $(i, j)$ an edge, directed from the query to the key, and the edge
# has a label: the relative position $j - i$. What a label means is learned, two vectors for each: one where the key is used, one
# where the value is used. Labels are *clipped*: from a distance of $k$ on, all edges to the left have one label, and so have all to
# the right. That leaves $2k + 1$ labels, whatever the length of the text.

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
    caption="Every pair of tokens is an edge, its label the clipped relative position. "
    "*the* and *man* on the right are two and "
    "three away from *dog* and share a label: what is farther than $k$ is only known "
    "to be far, and on which side.",
)

# %% [markdown]
# With $c(r)$ the label, $r$ clipped to $[-k, k]$, and with tables $a^K, a^V$ of $2k + 1$ rows of $d$ numbers,
#
# $$
# S_{ij} = \frac{q_i \cdot \bigl( k_j + a^K_{c(j-i)} \bigr)}{\sqrt d}, \qquad
# z_i = \sum_j a_{ij} \bigl( v_j + a^V_{c(j-i)} \bigr) .
# $$ (eq-relative-shaw)
#
# Written like this it asks for a vector for every pair. We write it like this once, as a reference, and hold
# `shaw_scores` and `shaw_output` against it, together with the mistakes that are easily made.
#
# The scores of `shaw_scores` need no such vector, as the next heading shows:
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
    "every pair, as printed and with four mistakes (float64).",
    formats={"largest difference": ".1e"},
    highlight=[0],
)
difference = mistakes["largest difference"]
assert difference[0] < 1e-13 and (difference[1:] > 0.1).all()
numbers["shaw_error"] = difference[0]

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
# The little matrix at the end is the case to do by hand: width 1, $k = 1$, all queries 1, all keys 0, and only the label *one or more
# back* has a vector. With the sign the other way round every one of these functions runs, trains and gives sensible losses; only
# the meaning of each row is another. A table that is not symmetric is the test.
#
# ### Without a vector for every pair
#
# The table has $2k+1$ rows, so $q_i \cdot a^K_c$ takes only $2k+1$ values for each query. Compute those, $Q\, (a^K)^\top$, and
# look up for each pair the column of its label. For the values the other way round: add up the weights of each label, which
# gives $2k+1$ numbers a query, and multiply these by the table,
#
# $$
# \sum_j a_{ij}\, a^V_{c(j-i)} = \sum_{c=-k}^{k} \Bigl( \sum_{j:\, c(j-i) = c} a_{ij} \Bigr) a^V_c .
# $$ (eq-relative-binned)
#
# The paper saves memory by sharing the tables over heads and sequences, and by reshapes. (Its big model shares them over heads; its
# base model has tables for every layer and head.) Gathering and binning need no reshaping and work for any positions. We let
# PyTorch report every tensor that is made, and keep the size of the largest.

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
held = {"a vector for every pair": for_pairs, "ours": ours}
numbers["memory_ratio"] = for_pairs[-1] / ours[-1]

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.6, 3.0))
looks = ("#b3364f", "s", shapes.DASHED), ("#0072b2", "o", "-")
mebibytes = {name: 4 * np.array(entries) / 2**20 for name, entries in held.items()}
shapes.curves(ax, lengths, mebibytes, looks)
ax.set_yscale("log")
shapes.powers_of_two(ax, lengths)
ax.set(xlabel="tokens", ylabel="largest tensor (MiB)")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-relative-memory",
    alt="Largest tensor in mebibytes against the number of tokens, both axes "
    "logarithmic: two parallel lines, the one for a vector "
    "for every pair eight times above ours.",
    caption=f"One sequence, {HEADS} heads of {HEAD_WIDTH} columns, float32: the "
    "largest tensor that the scores need. A vector for every pair takes "
    f"{numbers['memory_ratio']:.0f} times what gathering takes, which holds the scores "
    "themselves and no more.",
)

# %% [markdown]
# The ratio is $d / H$ for one sequence. A direct translation of the formula with a table for each head would make a vector for every
# pair *and head*, and the ratio would be $d$.
#
# ### Which rows learn, and what longer texts ask for
#
# In a causal model no query sees a later key, so the rows of positive labels are never used. They are no capacity, and a
# count of parameters that includes them flatters.
#
# On the other side there is the row of label $-k$, which belongs to *all* keys from $k$ back on. If $k$ is well below the trained
# length $L$, it is trained by more pairs than any other: $(L - k)(L - k + 1)/2$ in a text, where label 0 has $L$. As long as $k < L$, a
# longer text asks for no row that was not trained. In that sense clipping "lets us generalize to sequence lengths not seen in
# training", as the notes among our sources put it. If $k$ is not below $L$, the rows from $-L$ on were never seen, and the first longer
# text meets one.


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
# One model, two blocks of two heads, $k = 16$, trained for a few seconds on source code of texts of 64 tokens. We catch what enters its
# scores and look at the part that Shaw's vectors add, $q_i \cdot a^K_c / \sqrt d$, averaged over queries.

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
favourite = {key: int(one.argmax()) for key, one in added.items()}
by_block = np.array([[added[layer, head] for head in (0, 1)] for layer in (0, 1)])
numbers["shaw_heads_differ"] = np.abs(by_block[:, 0] - by_block[:, 1]).max()
numbers["shaw_blocks_differ"] = np.abs(np.diff(by_block.mean(axis=1), axis=0)).max()
numbers["shaw_heads_favouring_near"] = sum(one < 4 for one in favourite.values())

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
    caption="What a trained table adds to the scores of four heads. In "
    f"{numbers['shaw_heads_favouring_near']} of 4 heads the most favoured distance is "
    "below 4. Tiny model, one seed.",
)

# %% [markdown]
# What the vectors add varies by up to {num}`03_relative/shaw_added_range:.1f` over distances. Every row began as noise. The heads of a
# block share a table, and only their queries differ: on average they are at most {num}`03_relative/shaw_heads_differ:.1f` apart. The
# two blocks have separate tables, and their means are up to {num}`03_relative/shaw_blocks_differ:.1f` apart.
#
# And longer texts? The model has a loss of {num}`03_relative/shaw_inside:.2f` bits per byte within 64 tokens. Between 64 and 256, with all keys
# visible, it has {num}`03_relative/shaw_beyond:.2f`; through a window of 64 keys, {num}`03_relative/shaw_beyond_window:.2f`. No row is new
# to it, so nothing breaks for want of a vector. But the *number* of far keys is new, and what that does one tiny model cannot judge.
#
# {doc}`Chapter 25 <25_every_encoding>` reads trained models at up to eight times their length. Compared with their own sliding windows, Shaw's
# vectors end at {num}`encodings/shaw/gap/native/8x:+.2f` bits per byte (keys alone {num}`encodings/shaw-keys/gap/native/8x:+.2f`), and
# Transformer-XL at {num}`encodings/transformer-xl/gap/native/8x:+.2f`: means of three seeds, which decide nothing.
#
# (relative-clip)=
# ## Is precise position useless beyond a distance?
#
# The notes give a second reason for clipping: "it is hypothesised" that precise "positional information is not useful beyond a certain
# distance". {cite:t}`shaw2018` put the hypothesis forward and varied the clip themselves. In translation hardly anything is lost down
# to a clip of 2, and a clip of 0 fails; with several layers, they add, exact places may travel further than the clip. Their table has
# no control for far keys that are not used at all.
#
# The experiment `shaw_clip` has one. It trains models that differ in the clip alone, from 1, one label for a token and one for all before
# it, up to the trained length, where nothing is clipped.
#
# There is a trap. If a clip of 8 costs nothing, it may be that precise position is useless from distance 8 on, or that *keys*
# from distance 8 on are of no use, precise or not. So the unclipped model also reads through windows that hide these keys altogether.
# The curves of {numref}`fig-relative-clip` belong together: what it costs not to label far keys apart, and what it costs not to see them.
#
# `````{dropdown} Details: what hiding measures, and the rule
# What hiding costs is an upper bound of what the keys say. The model was never trained with a window, and with the keys it loses what
# its softmax rests on, the first tokens {cite:p}`xiao2024` and the number of keys. So it reads a second time with the first four tokens
# visible, and the smaller cost counts.
#
# Of the distances 4, 8 and 16 the rule takes the largest at which not to see costs more than $0.03$ bits per byte either way, by a
# t-test. It asks whether not to label apart costs less than $0.03$ there. Where no distance passes the first test, the claim is not
# testable here. The claim says that *there is* such a distance; the smaller ones show where it lies. The rule takes the clips' costs on
# the test text. The curves are all on the validation text.
# `````

# %% tags=["hide-input"]
figures.show_table(
    pd.DataFrame(
        {
            "distance": one,
            "not labelled apart, test": text_of(tested[one]),
            "not labelled apart": text_of(clipped[one]),
            "not seen": text_of(hidden[one]),
            "not seen, first kept": text_of(but_first[one]),
            "seeds": len(clipped[one]),
        }
        for one in shaw_clip.CLIPS
    ),
    caption="Bits per byte that it costs when keys from this distance on are not "
    "labelled apart (another model, clipped there, minus the "
    "unclipped one) and not seen (the unclipped model through a window, without and "
    "with the first four tokens; upper bounds): "
    "mean over seeds and 95 % t interval. All but the first column on validation text.",
)

# %% tags=["hide-input"]
IDS = ("precise-position-is-useless-far-away", "precise-position-helps-nearby")
numbers |= claims.show(
    claims.judge(IDS, {"experiment/shaw_clip": sweep}),
    caption="The two claims on the clip, judged by rules written beforehand.",
)
for one in shaw_clip.CLIPS:
    numbers[f"hidden_{one}"] = text_of(hidden[one])
    numbers[f"but_first_{one}"] = text_of(but_first[one])

# %% [markdown]
# Costs on validation text, in bits per byte:
#
# | keys from this distance on | share one label | are hidden | are hidden but for the first four |
# |---|---|---|---|
# | 8 | {num}`shaw_clip/keys-8 minus keys-unclipped/val_bits_per_byte:+.3f±` | {num}`03_relative/hidden_8` | {num}`03_relative/but_first_8` |
# | 4 | {num}`shaw_clip/keys-4 minus keys-unclipped/val_bits_per_byte:+.3f±` | {num}`03_relative/hidden_4` | {num}`03_relative/but_first_4` |
# | 1 | {num}`shaw_clip/keys-1 minus keys-unclipped/val_bits_per_byte:+.3f±` | {num}`03_relative/hidden_1` | {num}`03_relative/but_first_1` |
#
# The hypothesis of the notes, that precise position is useless far away, is
# **{num}`03_relative/verdict_precise_position_is_useless_far_away`**. The rule can decide only where far keys are shown to be used. Our
# own hypothesis is that precise position helps nearby, without which the first would say little. It is
# **{num}`03_relative/verdict_precise_position_helps_nearby`**.
#
# Vectors at the values as well as the keys change the loss by {num}`shaw_clip/keys-values-8 minus keys-8/bits_per_byte:+.3f±` with a clip
# of 8 and by {num}`shaw_clip/keys-values-unclipped minus keys-unclipped/bits_per_byte:+.3f±` without one (below zero they help; three
# seeds, no verdict). The paper found keys alone as good as both, on one translation task.
#
# ## Transformer-XL: four terms again
#
# The second way starts from {eq}`eq-relative-four` and replaces, term by term, whatever names a place. The key's embedding $p_j$ becomes
# $p_{i-j}$, the sinusoid *of the distance* (the paper calls it $R_{i-j}$; in this book $R$ is a rotation). It has its own matrix, $W_r$:
# where to look depends on how far it is, and a key's content and its distance are read by two different matrices. The query's
# embedding $p_i$ becomes a learned vector, $u$ before content and $v$ before distances. A query's own place should not matter for where it
# looks, so what replaces it is the same at all places.
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
# (a) addresses by content. (b) is a bias of positions that depends on the content of the query. (c) is a global bias of content, the
# same for all queries, and (d) a global bias of positions. In the book each layer has its own $u$, $v$ and $W_r$.
#
# ```{admonition} Deviation from the source
# :class: warning
# The authors' release shares $u$ and $v$ over the layers unless told otherwise. And this is the *score* of Transformer-XL: the
# paper also carries the states of an earlier segment along, which is shown below, and its results rest on both. It reports a perplexity of
# 18.3 on WikiText-103 where 20.5 was the best before. <!-- given: abstract of the paper -->
# ```
#
# We train the same tiny model with it and take its scores apart.
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
# The four terms add up to `transformer_xl_scores`, and the softmax of that is what the model computed in its faster way. Each
# term has the shape that the formula foretells: (c) depends on the key alone, (d) on the distance alone. Leaving out any one of
# them is a different function.

# %%
for name, term in terms.items():
    numbers[f"xl_sd_{name[1]}"] = term[seen].var().item() ** 0.5
    rest = sum(terms.values()) - term
    assert (rest - total[one, head].cpu())[seen].abs().max() > 1e-3, name
assert torch.equal(terms["(c) global content"][0], terms["(c) global content"][-1])
diagonals = terms["(d) global distance"]
assert torch.equal(diagonals[1:, 1:][seen[1:, 1:]], diagonals[:-1, :-1][seen[1:, 1:]])
print({name: f"{numbers[f'xl_sd_{name[1]}']:.2f}" for name in terms})

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 5, figsize=(9.2, 2.5), sharey=True)
panels = terms | {"sum": sum(terms.values())}
for ax, (name, one) in zip(axes, panels.items(), strict=True):
    own = (one - one[seen].mean()).masked_fill(~seen, torch.nan)
    reach = own[seen].abs().quantile(0.99).item()
    shapes.heat_map(ax, own, reach)
    title = f"{name}\ns.d. {one[seen].std().item():.2f}"
    ax.set_title(title, loc="center", fontsize=8.5)
    ax.set(xticks=[0, 32, 63], yticks=[0, 32, 63])
axes[0].set_ylabel("query $i$")
axes[2].set_xlabel("key $j$")
named = {name[1]: name.partition(" ")[2] for name in terms}
quietest, *_, loudest = sorted("abcd", key=lambda one: numbers[f"xl_sd_{one}"])
assert (quietest, loudest) == ("c", "b"), "the text names them"
figures.show(
    fig,
    name="fig-relative-terms",
    alt="Five lower triangles for 64 queries and keys: an irregular texture, a texture "
    "of diagonals that changes from row to row, "
    "vertical stripes, smooth diagonals, and their sum.",
    caption="The four terms of one head of a trained model and their sum. (c) is made "
    "of columns, (d) of diagonals. The largest spread here is that of "
    f"({loudest}), {named[loudest]}. Each panel is minus its mean and has its own "
    "scale; dark purple is high, s.d. the standard deviation. Tiny model, one seed.",
)

# %% [markdown]
# Over the pairs that a query sees, the standard deviations of the four terms lie between {num}`03_relative/xl_sd_c:.2f` (c) and
# {num}`03_relative/xl_sd_b:.2f` (b). One head of one tiny model: this shows what each term *can* be.
#
# ### What is carried from segment to segment
#
# Why score distances, if embeddings of indices do? Because of what the paper calls recurrence. A long text is read segment by
# segment, and each layer keeps its inputs at the last $M$ tokens, without gradient. The next segment makes more keys and values of them,
#
# $$
# \tilde h = [\operatorname{sg}(m) \Vert h], \qquad q = h W_Q, \quad k = \tilde h W_K, \quad v = \tilde h W_V .
# $$ (eq-relative-memory)
#
# With an embedding of the index *in its segment*, two tokens would then have one position. A distance has no such trouble: it
# goes on over the border. `in_segments` of {mod}`sepnb.training.memory` reads so, with any encoding that continues.
#
# Two things follow from {eq}`eq-relative-memory`, and both are checked on the model trained above. With room for the whole text, reading in
# segments *is* reading at once. And with a memory of one segment each layer carries what it reads one segment on, so that with two
# layers a byte reaches two segments further, and no more.

# %%
segment, targets = 16, torch.from_numpy(held_out[:24, 1 : L + 1]).long().to(device)
other = sample.clone()
other[:, 0] = (other[:, 0] + 1) % 256  # the first byte of every text, changed


def alone(tokens):
    """Each segment by itself."""
    return torch.cat([xl(piece) for piece in tokens.split(segment, dim=1)], dim=1)


def restarted(tokens):
    """A memory as it should not be: each segment's positions begin at 0."""
    memory = SegmentMemory(xl, len(tokens), L)
    at = torch.arange(segment, device=device)
    pieces = tokens.split(segment, dim=1)
    return torch.cat([memory(piece, at) for piece in pieces], dim=1)


ways = {
    "each segment alone": alone,
    "memory of half a segment": partial(in_segments, xl, length=segment, size=8),
    "memory of one segment": partial(in_segments, xl, length=segment, size=16),
    "memory of the whole text": partial(in_segments, xl, length=segment, size=L),
    "at once": xl,
    "memory, positions from 0 on": restarted,
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
    caption=f"Texts of {L} bytes, read in segments of {segment} by the live model: "
    "bits per byte after the first segment, and the last byte whose prediction changes "
    "when the first byte of the text does. A memory of half a segment holds, at the "
    f"first border, bytes {segment // 2} to {segment - 1}.",
    formats={"bits per byte": ".3f"},
)
for key, way in (("alone", 0), ("one", 2), ("whole", 4)):
    numbers[f"memory_{key}"] = float(read["bits per byte"][way])

# %% [markdown]
# Alone, a segment costs {num}`03_relative/memory_alone:.3f` bits per byte after the first, with a memory of one segment
# {num}`03_relative/memory_one:.3f`, and at once {num}`03_relative/memory_whole:.3f`. In training the states of the memory get no gradient;
# the maps that make keys and values of them do. {term}`Segment memory <segment memory>` is no experiment of this book: its
# language models read each window at once.
#
# ### A shift instead of a table of pairs
#
# Terms (b) and (d) need $(q_i + v) \cdot W_r p_{i-j}$ for every pair. There are only $M$ distances, so one product with $M$ vectors gives
# all numbers that are needed, in the wrong places: column $t$ is a distance and should be a key. The authors' released code
# {cite:p}`dai2019` orders the columns by falling distance, $M-1$ down to 0, and then row $n$ has to be shifted to the left by
# $N - 1 - n$. A column of padding and two reshapes do that to all rows at once, without a copy for each. The step was published before as *skewing*
# {cite:p}`huang2019`, for Shaw's keys without a vector for every pair.


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
# Every entry on and below the diagonal is a distance. The 3 above it are leftovers of the next row, and not all of them are zero
# (not zero: {num}`03_relative/shift_garbage`): whoever forgets the mask lets a token look ahead, at noise.
#
# It is a trick with three ways to be one off, and none of them raises an error: distances that begin at $M$ instead of $M - 1$,
# a padding on the right side instead of the left, and the ascending order. The check is a double loop over the printed formula.


# %%
def by_loop(q, k, r, u, v):
    """(eq-relative-xl), visible pairs only: the last N of M positions."""
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


def shifted(columns, shift=relative_shift):
    return ((q + u) @ k.T + shift((q + v) @ columns.T)) / d**0.5


def padded_right(x):
    return F.pad(x, (0, 1)).reshape(m + 1, n)[1:].reshape(n, m)


heads = q[None, None], k[None, None], r[None]
ways = {
    "shift, distances M-1 to 0": shifted(r.flip(0)),
    "distances M to 1": shifted(more[1:].flip(0)),
    "padding on the right": shifted(r.flip(0), padded_right),
    "ascending distances": shifted(r),
    "no shift": shifted(r.flip(0), lambda x: x),
    "transformer_xl_scores": transformer_xl_scores(*heads, u[None], v[None])[0, 0],
}
# %%
truth = by_loop(q, k, r, u, v)
wrong = {name: (way - truth)[visible].abs().max().item() for name, way in ways.items()}
figures.show_table(
    pd.DataFrame({"way": wrong.keys(), "largest difference": wrong.values()}),
    caption="Largest difference from the double loop over all visible pairs of 7 "
    "queries and 11 keys (float64).",
    formats={"largest difference": ".1e"},
    highlight=[0, 5],
)
right = ("shift, distances M-1 to 0", "transformer_xl_scores")
assert all((error < 1e-12) == (name in right) for name, error in wrong.items())
assert min(error for name, error in wrong.items() if name not in right) > 0.1
numbers["xl_error"] = wrong["transformer_xl_scores"]
numbers["xl_off_by_one"] = wrong["distances M to 1"]

# %% [markdown]
# ## What it costs
#
# Neither encoding is a bias of the distance alone: as a mask it would be a matrix for every sequence and head, with its gradient, and
# Shaw's values need the weights themselves. Here the softmax is computed explicitly, and there are more products. How many more
# can be counted exactly, with PyTorch's counter on the modules themselves. Per token and layer, with $B$ sequences of $N$ tokens
# and the full square of queries and keys, plain attention needs $2ND$ multiply-adds for scores and averages. On top of it come
#
# | | multiply-adds per token |
# |---|---|
# | Shaw, keys | $(k+1)\, D$ |
# | Shaw, values | $(2k+1)\, D$ |
# | Transformer-XL, distances | $N D$ |
# | Transformer-XL, $W_r p_t$ of all distances | $D^2 / B$ |
#
# since Shaw's table is short and Transformer-XL's is as long as the text.

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
shares = {name: more / of_attention for name, more in extra.items()}
numbers["cost_shaw_512"] = shares["Shaw, keys and values"][3]
numbers["cost_xl_512"] = shares["Transformer-XL"][3]

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.2))
looks = ("#0072b2", "o", shapes.DASHED), ("#0072b2", "s", "-"), ("#d55e00", "^", "-")
shapes.curves(ax, spans, shares, looks)
ax.set_yscale("log")
ax.yaxis.set_major_formatter("{x:g}")
shapes.powers_of_two(ax, spans)
ax.set(xlabel="tokens $N$", ylabel="more multiply-adds,\nas a share of $2ND$")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-relative-cost",
    alt="Additional multiply-adds as a share of those of attention against the number "
    "of tokens, both axes logarithmic. The two lines for Shaw fall in proportion to "
    "the length; that for Transformer-XL levels off at one half.",
    caption=f"Counted, for a width of {D}, a clip of {CLIP} and {B} sequences. Shaw's "
    "share falls with the length; Transformer-XL "
    "adds a third product beside scores and averages, so its share goes to one half.",
)

# %% [markdown]
# At 512 tokens Shaw's vectors at keys and values add {num}`03_relative/cost_shaw_512:.0%` to the products of attention, and
# Transformer-XL {num}`03_relative/cost_xl_512:.0%`. A count is a lower bound and not a time: gathering and binning multiply nothing and
# still move memory.
#
# ````{dropdown} Details: what a causal kernel saves
# A causal kernel that skips what it need not compute saves up to half of $2ND$. Explicit attention does not, unless its queries go
# through in pieces, each with the keys up to its last one: four of them save three eighths. With `sepnb.models.compile_formulas` a
# model does so on a CPU; the trainings of this book, which are eager, do not.
# ````
#
# ## What to take away
#
# 1. A relative encoding gives the score a **label of the pair**. Shaw looks it up in a table of clipped distances, Transformer-XL
#    computes it from a wave of the distance; both leave no index anywhere.
# 2. There are $N^2$ pairs and few labels. **Gather** scores by label, **bin** weights by label, or **shift** rows: no vector for a
#    pair is ever made. Each of these has a mistake that runs without error, and a loop finds it.
# 3. Exact distances help nearby: *{num}`03_relative/verdict_precise_position_helps_nearby`*. Whether they are useless far out is
#    *{num}`03_relative/verdict_precise_position_is_useless_far_away`*, since far keys that are not used at all need no exact distance.
# 4. Clipping below the trained length leaves no row of the past untrained.
#
# **Limits.** Identities and counts are exact. The two trained models are tiny and one seed each; what they show can be, and need not
# be.
#
# The experiment on clips is one size, one kind of text and one learning rate for all. Where far tokens say little, it can only
# speak of small distances, and its rule says so. A clip that costs nothing shows that exact labels from this table are dispensable, not
# that precise position is useless: two clipped layers reach twice the clip, and a causal mask gives position without any vector.
# The rate is that of RoPE in the learning-rate sweep of `ablation`; clips had no
# sweep.
#
# **What would change our mind.** A clip that costs more than the margin at a distance where hiding the keys costs little: then models
# would need exact far distances for something other than far keys. For the exact parts, any entry of the tables above on
# the wrong side of rounding.
#
# **Where it goes on.** {doc}`RoPE <04_rotation>` reaches scores of distances from the other side, by changing queries and keys one by one.
#
# ## Exercises
#
# Try each before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (easy)** Four layers, heads of 32 columns, $k = 16$, tables at keys and values shared over the heads: how many numbers do Shaw's
# tables have, and how many of them does a causal model ever use?

# %% tags=["hide-cell"]
# Solution. 4 layers x 2 tables x 33 rows x 32 columns; used are the rows of labels -16
# to 0, 17 of 33.
config = TransformerConfig(Streams.dense(128), 4, 4, Shaw(16))
named_tables = LanguageModel(config).named_parameters()
counted = sum(p.numel() for name, p in named_tables if name.endswith(".table"))
assert counted == 4 * 2 * 33 * 32 == 8448 and 4 * 2 * 17 * 32 == 4352

# %% [markdown]
# **2. (medium)** Give every query a column that is always 1. Which table makes `shaw_scores` add ALiBi's penalty, and where does it
# stop?

# %% tags=["hide-cell"]
# Solution. Row c holds -m |c| sqrt(d) in that column and zeros elsewhere; from the clip
# on the penalty stays what it is there.
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
# **3. (medium)** A query of zeros meets {eq}`eq-relative-xl`. Which terms are left, and what does it look at? Then leave out $u$ and $v$.

# %% tags=["hide-cell"]
# Solution. (c) and (d): content that is sought by all queries, at preferred distances.
# Without u and v all scores are 0: it averages.
n, d = 6, 4
zero, k, r = torch.zeros(1, 1, n, d, dtype=F64), noise(1, 1, n, d), noise(1, n, d)
u, v = noise(1, d), noise(1, d)
left = transformer_xl_scores(zero, k, r, u, v)[0, 0]
loop = by_loop(zero[0, 0], k[0, 0], r[0], u[0], v[0])
below = torch.ones(n, n, dtype=torch.bool).tril()
torch.testing.assert_close(left[below], loop[below], rtol=0, atol=1e-12)
silent = transformer_xl_scores(zero, k, r, torch.zeros_like(u), torch.zeros_like(v))
assert left[below].abs().max() > 0.1 and silent.abs().max() == 0

# %% [markdown]
# **4. (hard)** An encoder sees later keys as well, so there are $2N - 1$ distances, $N-1$ down to $-(N-1)$. Which shift puts a product
# with that many columns in its places?

# %% tags=["hide-cell"]
# Solution. Row n has to be shifted left by N - 1 - n again: the same padding and
# reshape, of 2N - 1 columns, and then the first N.
n = 5
falling = torch.arange(n - 1, -n, -1).double().expand(n, 2 * n - 1)
both_ways = relative_shift(falling)[:, :n]
at = torch.arange(n)
assert torch.equal(both_ways, (at[:, None] - at).double())
next_to_it = relative_shift(falling)[:, 1 : n + 1]
assert not torch.equal(next_to_it, (at[:, None] - at).double())

# %% tags=["hide-cell"]
chapter_numbers.publish("03_relative", numbers, profile=profile)

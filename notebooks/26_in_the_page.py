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
# # 26. A model in the page
#
# **Finding.** Two small separated models run in this page, and you can watch one of them lose its way. Trained from index 0,
# it loses {num}`26_in_the_page/index_zero:.2f` bits per byte where a text begins at twice the trained length: what its position
# stream contributes to the scores collapses, and what the text contributes in the first layer does not move. Trained at random
# starts, the same model loses {num}`26_in_the_page/index_random:.2f`.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import base64

import matplotlib.pyplot as plt
import numpy as np
import torch

from sepnb.analysis import residual_states
from sepnb.data import text
from sepnb.evaluation.losses import evaluate, sliding
from sepnb.models import LanguageModel, TransformerConfig, attention_hook
from sepnb.models.packed import packed, rounded
from sepnb.plots import figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train
from sepnb.training.positions import RandomOffset

figures.use_style()
numbers = {}
L, STEPS, BATCH, STRIDE = 64, 240, 16, 8
LONG, FAR = 8 * L, 2 * L

library = text.load("sympy")
config = TransformerConfig(
    Streams(pos=16, sem=48), 2, 4, "sinusoidal", mode="strict", max_length=L
)
sizes = {"batch_size": BATCH, "length": L, "seed": seed, "steps": STEPS}


def trained(positions=None):
    """A tiny strict model that reads at indices from 0 on, or where a sampler says,
    with its weights rounded as the page carries them."""
    torch.manual_seed(seed)
    model = LanguageModel(config)
    draw = text.sample_batches if positions is None else positions.batches
    schedule = TrainingConfig(STEPS, BATCH, L, 8e-3, positions=positions)
    train(model, draw(library.train, **sizes), schedule, device=device)
    return rounded(model).cpu()


models = {"zero": trained(), "random": trained(RandomOffset(LONG + L))}

# %% tags=["hide-input"]
held_out = text.windows(library.test, length=LONG, per_document=LONG).tokens
held_out = held_out[:: max(1, len(held_out) // 20)][:20]
read = {}
for name, model in models.items():
    read[name, "plain"] = evaluate(model, held_out).bits
    read[name, "masked"] = evaluate(model.extended(window=L), held_out).bits
    read[name, "reread"] = sliding(model, held_out, window=L, stride=STRIDE).bits
    short = held_out[:, : L + 1]
    for start in (0, FAR, LONG):
        moved = evaluate(model, short, positions=np.arange(L) + start).bits
        read[name, start] = moved
    numbers[f"inside_{name}"] = read[name, 0].mean()
    numbers[f"index_{name}"] = read[name, FAR].mean() - read[name, 0].mean()
    for rule in ("plain", "masked"):
        more = read[name, rule] - read[name, "reread"]
        numbers[f"{rule}_{name}"] = more[:, L:].mean()
assert numbers["index_zero"] > 0.4 > 0.1 > abs(numbers["index_random"])
assert min(numbers["plain_zero"], numbers["masked_zero"]) > 0.5
assert 0.7 > numbers["plain_random"] > numbers["masked_random"] + 0.05

RULES = {
    "plain": ("as it is", "#d55e00", "-"),
    "masked": ("window mask", "#7b5ea7", (0, (5, 2))),
    "reread": ("sliding window", "#009e73", (0, (1, 1.2))),
}
SAYS = {"zero": "trained from index 0", "random": "trained at random starts"}
PIECE = 32
fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.4), sharey=True)
for ax, (name, says) in zip(axes, SAYS.items(), strict=True):
    for rule, (label, colour, dash) in RULES.items():
        bits = read[name, rule].reshape(len(held_out), -1, PIECE).mean(axis=(0, 2))
        at = np.arange(PIECE / 2, LONG, PIECE)
        ax.plot(at, bits, color=colour, linestyle=dash, label=label)
    shapes.mark(ax, L, f"L = {L}")
    ax.set(xlabel="index", xticks=np.arange(0, LONG + 1, 2 * L))
    ax.set_title(says, pad=18)
axes[0].set_ylabel("bits per byte")
axes[1].legend(loc="upper left")
figures.show(
    fig,
    name="fig-page-rules",
    alt="Two panels of loss against index up to eight trained lengths under three "
    "rules. Left, trained from index 0: as it is and behind a window mask the loss "
    "jumps past L and stays high; the sliding window stays level. Right, trained at "
    "random starts: the window mask lies close to the sliding window, and as it is "
    "the loss rises a little.",
    caption="Past L, what fails is the index: a window mask, which takes far keys away "
    "and leaves the indices, does not help the model that was trained from index 0, "
    "and nearly suffices for the one trained at random starts. The sliding window "
    f"reads every piece of {STRIDE} bytes from index 0. Live, one seed, "
    f"{len(held_out)} held-out files, pieces of {PIECE} bytes.",
)

# %% [markdown]
# > **Question.** What does the position stream of a separated model do, byte by byte and head by head, and what becomes of it at
# > indices that it has never seen?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 15 s of one CPU core at any profile, most of it for two tiny trainings; nothing is downloaded. In the page, the
#   time it takes you to play.
# - **You need**: {doc}`chapter 9 <09_strict>` for the strict model; {doc}`chapter 11 <11_extrapolators>` for the difference between
#   an unseen index and an unseen length.
# - **You will learn**: to tell a failure of the index from a failure of the length; to take a score apart into what each stream
#   contributes; how little a separated transformer needs.
# - **Claims tested**: none here. The same question is put to larger models in {doc}`chapter 12 <12_what_works>`.
# ```
#
# ## The panel
#
# Both models are strict: two layers, 16 columns for position and 48 for the text, L = 64. They were trained for a few seconds on
# Python source code when this page was made. One read every text from index 0. The other read each step at a random start below
# eight trained lengths. Their weights are in the page; your browser computes everything below, and nothing leaves it.

# %% tags=["remove-input"]
document = held_out[4]
texts = [
    [
        bytes(document[: L + 1].tolist()).decode(errors="ignore"),
        "held-out code, L bytes",
    ],
    [
        bytes(document[:200].tolist()).decode(errors="ignore"),
        "held-out code, 200 bytes",
    ],
    [bytes(document[:LONG].tolist()).decode(errors="ignore"), "held-out code, 8 L"],
    ["    x = f(x, 1)\n" * 24, "one line, again and again"],
    [
        "Caf\u00e9, \u03b1 and \u03b2: two bytes each",
        "bytes above 127",
    ],
]
carried = [
    {"says": SAYS[name], "packed": packed(model), "trained": trained_below}
    for (name, model), trained_below in zip(models.items(), (L, LONG + L), strict=True)
]
moving.show(
    "model",
    {
        "models": carried,
        "texts": texts,
        "length": L,
        "levels": [round(float(numbers[f"inside_{name}"]), 3) for name in models],
    },
    name="moving-model",
    alt="A panel that runs two small models: a text, a start index, a rule of "
    "evaluation and a head are chosen; shown are the loss of every byte, the guesses "
    "for the next one, and the parts of the head's scores.",
    instead="the figure above for the losses, and the one below for the scores",
)

# %% [markdown]
# The upper chart has a point for every byte of your text. Under it are the guesses for the byte after the one that you look at. The
# maps show a head: a row for each query, a column for each key. A score is the sum of the maps, and the softmax makes the last one
# of it.
#
# ## Three things to try
#
# **Index or length?** Leave the short text and move the start index from 0 to 64 and further. No text becomes longer, no distance new;
# only the indices are. The first model loses its way at once, the second does not notice. Then take the text of 8 L, start at 0 and
# go through the rules.
#
# **Who points?** Look at layer 1, head 2 of the first model, and move the start index across L. The map `sem · sem` stays as it
# is, to the last digit. The map `pos · pos` loses the band along its diagonal. Which of the two told the head to look at the last
# few bytes?
#
# **What does the stream know of the text?** Choose a head that reads positions only, and type something else. Its maps depend on the
# number of bytes alone. Then look at layer 2 and type again.
#
# ## What is to be seen
#
# The losses of {numref}`fig-page-rules`, in numbers: past L the first model loses {num}`26_in_the_page/plain_zero:.2f` bits
# more than its own sliding window on the same bytes, and behind a window mask still {num}`26_in_the_page/masked_zero:.2f`. The mask
# takes away the far keys and leaves the indices. So most of this failure is the index. Where the dashed line comes down in between,
# the waves of the sinusoid have come round; the last exercise asks where.
#
# The second model loses {num}`26_in_the_page/plain_random:.2f` and behind the mask {num}`26_in_the_page/masked_random:.2f`. Its
# indices were trained; what was not are distances above L and so many keys, and these the mask takes away.
#
# The cure has a price, at least in so short a training: inside L the second model has {num}`26_in_the_page/inside_random:.2f` bits
# per byte where the first has {num}`26_in_the_page/inside_zero:.2f`.
#
# ### A score, taken apart
#
# In a strict model a sem head projects both streams to queries and keys, and adds:
#
# $$
# S_{ij} = \frac{(q^{\text{pos}}_i + q^{\text{sem}}_i) \cdot (k^{\text{pos}}_j + k^{\text{sem}}_j)}{\sqrt d}
# = \sum_{a, b \,\in\, \{\text{pos},\, \text{sem}\}} \frac{q^{a}_i \cdot k^{b}_j}{\sqrt d} .
# $$ (eq-page-parts)
#
# A softmax does not notice what is constant in a row. So from each part its mean over the visible keys is taken away, and the root
# mean square of what is left says how strongly that part tells keys apart.


# %%
@torch.no_grad()
def parts_of(model, layer, place, tokens, positions):
    """The four parts of the scores of a sem head, `[B, N, N]` each, by the streams of
    query and key; `place` counts the sem heads."""
    block = model.transformer.blocks[layer]
    u = block.attention_norm.parts(residual_states(model, tokens, positions)[layer])
    group, weight = block.attention.groups[-1], block.attention.query_key[-1].weight
    d = config.head_width
    W_q, W_k = weight.unflatten(0, (2, group.n_heads, d))[:, place]
    q = {name: u[name] @ W_q[:, at].T for name, at in group.reads.items()}
    k = {name: u[name] @ W_k[:, at].T for name, at in group.reads.items()}
    return {(a, b): q[a] @ k[b].mT / d**0.5 for a in q for b in k}


VISIBLE = torch.ones(L, L, dtype=torch.bool).tril()


def centred(part):
    """A part less its mean over the keys that a query sees."""
    means = (part * VISIBLE).sum(-1) / VISIBLE.sum(-1)
    return part - means[..., None]


def spread(part):
    """The root mean square of what is left."""
    return centred(part)[..., VISIBLE].square().mean().sqrt().item()


# %% [markdown]
# The sum of the parts, through the softmax, must be the weights of the model itself:

# %%
tokens = torch.from_numpy(held_out[:, :L])
here = torch.arange(L)
kept = {}


def keep(layer, heads, compute):
    kept[layer, heads] = compute()
    return kept[layer, heads]


with torch.no_grad(), attention_hook(models["zero"], keep):
    models["zero"](tokens)
for layer in (0, 1):
    summed = sum(parts_of(models["zero"], layer, 1, tokens, here).values())
    weights = summed.masked_fill(~VISIBLE, -torch.inf).softmax(-1)
    torch.testing.assert_close(weights, kept[layer, (1, 2, 3)][:, 1])

# %% tags=["hide-input"]
sizes_of = {}
for name, model in models.items():
    for start in (0, FAR):
        for pair, part in parts_of(model, 0, 0, tokens, here + start).items():
            sizes_of[name, start, *pair] = spread(part)
for name in models:
    for where, start in (("near", 0), ("far", FAR)):
        numbers[f"points_{name}_{where}"] = sizes_of[name, start, "pos", "pos"]
numbers["content_zero"] = sizes_of["zero", 0, "sem", "sem"]
assert sizes_of["zero", FAR, "sem", "sem"] == numbers["content_zero"]
assert numbers["points_zero_far"] < 0.6 * numbers["points_zero_near"]
assert numbers["points_random_far"] > 0.6 * numbers["points_random_near"]
fig, axes = plt.subplots(2, 4, figsize=(8.6, 4.6))
one = slice(4, 5)
for row, start in zip(axes, (0, FAR), strict=True):
    found = parts_of(models["zero"], 0, 0, tokens[one], here + start)
    for ax, ((a, b), part) in zip(row, found.items(), strict=True):
        drawn = centred(part)[0].masked_fill(~VISIBLE, torch.nan)
        image = shapes.heat_map(ax, drawn.numpy(), reach=8)
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{a} · {b}: {spread(part):.1f}", fontsize=10)
    row[0].set_ylabel(f"from index {start}\nqueries")
for ax in axes[-1]:
    ax.set_xlabel("keys")
fig.colorbar(image, ax=axes, label="score, minus its row's mean", shrink=0.7)
figures.show(
    fig,
    name="fig-page-parts",
    alt="Two rows of four triangular maps of the parts of a head's scores, query by "
    "key: from index 0 the part of position with position is strong and the others are "
    "weak; from twice the trained length it is weak too, and the part of content with "
    "content is the same map as before.",
    caption="What tells keys apart in layer 1, head 2 of the model trained from index "
    "0, on one text that begins at index 0 (above) and at 2 L (below). In the titles: "
    "stream of the query, stream of the key, root mean square. The part of the text "
    "with the text is the same to the last digit.",
)

# %% [markdown]
# From index 0 the part that reads positions only has a root mean square of {num}`26_in_the_page/points_zero_near:.1f`, and the
# part that reads the text only {num}`26_in_the_page/content_zero:.1f`: this head goes by position. From 2 L on the first is
# {num}`26_in_the_page/points_zero_far:.1f`. The head does not look at a wrong place; it no longer
# looks at recent bytes in particular.
#
# In the model that was trained at random starts the same part goes from {num}`26_in_the_page/points_random_near:.1f` to
# {num}`26_in_the_page/points_random_far:.1f`. What extrapolates there is no property of the separation. The indices have been seen.
#
# Only the first layer is so clean. In the second, the text that a head reads has passed through the attention of the first, and
# a lost head there changes what everyone reads afterwards. {doc}`Chapter 22 <22_inside>` follows that through the layers.
#
# ## The same model a second time
#
# The page carries the weights in float16 and the layout of the streams, heads and layers, as base64 text. The losses above
# were computed from the rounded weights too.

# %%
carried = packed(models["zero"])
restored = np.frombuffer(base64.b64decode(carried["weights"]), dtype="<f2")
parameters = torch.cat([one.detach().flatten() for one in models["zero"].parameters()])
assert np.array_equal(restored.astype(np.float32), parameters.numpy())
numbers["weights"] = len(restored)
numbers["kilobytes"] = len(carried["weights"]) // 1024
print(carried["streams"], carried["layers"][1]["groups"])

# %% [markdown]
# {num}`26_in_the_page/weights:,` weights are {num}`26_in_the_page/kilobytes` kB of text. The script that reads them is a second
# implementation of the whole model, in plain JavaScript. Its attention:
#
# ```{literalinclude} ../../book/_static/model.js
# :language: javascript
# :start-at: const attention =
# :end-before: /** Into d columns
# :dedent:
# ```
#
# Queries and keys are the only place where `reads` may name both streams; `values`, `z` and the output maps have one matrix for each
# stream. A test gives both implementations the same texts, at start indices on both sides of L, and compares every logit.
#
# ````{admonition} The whole script
# :class: dropdown
# ```{literalinclude} ../../book/_static/model.js
# :language: javascript
# ```
# ````
#
# ## What to take away
#
# - A separated transformer that was trained from index 0 fails past L because of the index: {num}`26_in_the_page/plain_zero:.2f` bits
#   above its own sliding window as it is, {num}`26_in_the_page/masked_zero:.2f` behind a window mask.
# - Its heads lose what the position stream contributed. In the first layer the contribution of the text is untouched.
# - Random starts teach the index. What they leave, {num}`26_in_the_page/plain_random:.2f` bits, belongs to length and distance, and
#   most of it goes away behind a window mask.
# - These are two models of a few seconds and one seed each: a demonstration, and no verdict.
#
# ## Exercises
#
# Try each in the panel before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (easy)** Read a text that begins at 2 L at the indices modulo L. What is the loss of the first model, and why does this say
# nothing about a text that is longer than L?

# %% tags=["hide-cell"]
# Solution. 2 L is a multiple of L, so that every byte is read at the index that it
# would have from 0 on: the same numbers. In a longer text byte L would stand at index 0
# again, beside byte L - 1 at index L - 1, and no training showed that neighbourhood.
wrapped = (np.arange(L) + FAR) % L
again = evaluate(models["zero"], held_out[:, : L + 1], positions=wrapped).bits
assert np.array_equal(again, read["zero", 0])

# %% [markdown]
# **2. (medium)** Change one byte of the text. Which of the four parts of a score of layer 1 can change, and in which rows and columns?

# %% tags=["hide-cell"]
# Solution. With byte t changed: sem-sem in row t and column t, sem-pos in row t,
# pos-sem in column t. The part of position with position changes nowhere.
changed, t = tokens[:1].clone(), 20
changed[0, t] = (changed[0, t] + 1) % 256
before, after = (parts_of(models["zero"], 0, 0, x, here) for x in (tokens[:1], changed))
moved = {pair: (before[pair] != after[pair])[0] for pair in before}
rest = here != t
assert not moved["pos", "pos"].any() and not moved["sem", "pos"][rest].any()
assert not moved["pos", "sem"][:, rest].any()
assert not moved["sem", "sem"][rest][:, rest].any() and moved["sem", "sem"][t].any()

# %% [markdown]
# **3. (hard)** Move the start index of the first model slowly past L. Somewhere between 3 L and 4 L it reads nearly as well as from 0.
# Why there? The sinusoid has 16 columns and base 10,000.

# %% tags=["hide-cell"]
# Solution. Pair m comes round after 2 pi 10000^(m/8) indices: 6, 20, 63, 199 and 628
# for the first five. Near 192 the third has made three turns and the fourth almost one,
# and the slower ones have hardly moved. An index there looks like one near 0.
waves = 2 * np.pi * 10_000.0 ** (np.arange(8) / 8)
turns = 3 * L / waves[[2, 3]]
assert np.abs(turns - turns.round()).max() < 0.06
at = {}
for start in (2 * L, 3 * L, 4 * L):
    moved = {"positions": np.arange(L) + start}
    at[start] = evaluate(models["zero"], held_out[:, : L + 1], **moved).bits.mean()
print({start: round(float(bits), 2) for start, bits in at.items()})
assert at[3 * L] < min(at[2 * L], at[4 * L]) - 0.1

# %% [markdown]
# ---
# The next cell writes the numbers that this page's sentences and the regression tests read.

# %% tags=["hide-cell"]
chapter_numbers.publish("26_in_the_page", numbers, profile=profile)

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
# **Finding.** You can watch a small separated model break in this page, and heal. It was trained on texts of 64 bytes. On texts
# eight times as long, it loses {num}`26_in_the_page/plain_zero:.2f` bits per byte more than the same model behind a sliding window.
# Slow its positions down eight times, without any training, and this falls to {num}`26_in_the_page/slowed_zero:.2f`. Tune its
# position weights as well, {num}`26_in_the_page/share:.0%` of all, for a few seconds, and it falls to
# {num}`26_in_the_page/tuned_zero:.2f`.

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
from sepnb.encodings import NTKByParts
from sepnb.evaluation.losses import evaluate, sliding
from sepnb.models import LanguageModel, TransformerConfig, attention_hook
from sepnb.models.packed import packed, rounded
from sepnb.plots import figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, adapt, train
from sepnb.training.positions import RandomOffset

figures.use_style()
numbers = {}
L, STEPS, BATCH, STRIDE = 64, 240, 16, 8
LONG, FAR = 8 * L, 2 * L
BANDS = {"alpha": 0.5, "beta": 4}

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


def slowed(model, factor):
    """The same weights at slowed positions, with log-n scaling of the logits."""
    return model.extended(extension=NTKByParts(factor, L, **BANDS), log_scale=True)


models = {"zero": trained(), "random": trained(RandomOffset(LONG + L))}
training = np.concatenate([document.data for document in library.train.documents])
tuning = {"length": LONG, "steps": 60, "batch_size": 2, "learning_rate": 1e-2}
tuned = adapt(slowed(models["zero"], 8), training, seed=seed, device=device, **tuning)
tuned = rounded(tuned).cpu()
masks = models["zero"].parts()
after = dict(tuned.named_parameters())
for weight_name, before in models["zero"].named_parameters():
    content = masks["content"][weight_name]
    assert torch.equal(after[weight_name][content], before[content])

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
readers = {"slowed": slowed(models["zero"], 8), "tuned": tuned}
for name, reader in readers.items():
    read[name] = evaluate(reader, held_out).bits
    numbers[f"inside_{name}"] = read[name][:, :L].mean()
    numbers[f"{name}_zero"] = (read[name] - read["zero", "reread"])[:, L:].mean()
moved = evaluate(slowed(models["zero"], 4), short, positions=np.arange(L) + FAR).bits
numbers["index_slowed"] = moved.mean() - read["zero", 0].mean()
position = sum(int(mask.sum()) for mask in masks["position"].values())
numbers["share"] = position / sum(one.numel() for one in after.values())
assert numbers["index_zero"] > 0.4 > 0.1 > abs(numbers["index_random"])
assert min(numbers["plain_zero"], numbers["masked_zero"]) > 0.5
assert 0.7 > numbers["plain_random"] > numbers["masked_random"] + 0.05
assert numbers["plain_zero"] > numbers["slowed_zero"] + 0.3
assert numbers["slowed_zero"] > numbers["tuned_zero"] + 0.1

RULES = {
    "plain": ("as trained", "#d55e00", "-"),
    "masked": ("window mask", "#7b5ea7", (0, (5, 2))),
    "slowed": ("8 times slower", "#0072b2", (0, (5, 2))),
    "tuned": ("and position weights tuned", "#0072b2", "-"),
    "reread": ("sliding window", "#009e73", (0, (1, 1.2))),
}
PANELS = {
    "trained from index 0": [("zero", "plain"), ("zero", "masked"), ("zero", "reread")],
    "the same, slowed down": ["slowed", "tuned", ("zero", "reread")],
    "trained at random starts": [
        ("random", "plain"),
        ("random", "masked"),
        ("random", "reread"),
    ],
}
PIECE = 32
fig, axes = plt.subplots(1, 3, figsize=(8.6, 3.6), sharey=True)
for ax, (says, shown) in zip(axes, PANELS.items(), strict=True):
    for key in shown:
        label, colour, dash = RULES[key if isinstance(key, str) else key[1]]
        bits = read[key].reshape(len(held_out), -1, PIECE).mean(axis=(0, 2))
        at = np.arange(PIECE / 2, LONG, PIECE)
        ax.plot(at, bits, color=colour, linestyle=dash, label=label)
    shapes.mark(ax, L, f"L = {L}")
    ax.set(xlabel="index", xticks=np.arange(0, LONG + 1, 2 * L), ylim=(3, 5.6))
    ax.set_title(says, pad=18)
    ax.legend(loc="upper left", fontsize=8.5)
axes[0].set_ylabel("bits per byte")
figures.show(
    fig,
    name="fig-page-rules",
    alt="Three panels of loss against index up to eight trained lengths. Left, trained "
    "from index 0: as trained and with a window mask the loss jumps past L and stays "
    "high; the sliding window stays level. Middle, the same weights at slowed "
    "positions: the loss no longer jumps at L and rises slowly; with tuned position "
    "weights it stays closer to the sliding window. Right, trained at random starts: "
    "the window mask lies close to the sliding window, and without it the loss rises "
    "a little.",
    caption="Past L the first model fails. A window mask does not help, because it "
    "takes far keys away and leaves the indices. Slower positions help, and more so "
    "once the position weights are tuned to them. Random starts in training help too. "
    f"The sliding window reads every piece of {STRIDE} bytes from index 0. Live, one "
    f"seed, {len(held_out)} held-out files, pieces of {PIECE} bytes.",
)

# %% [markdown]
# > **Question.** What does the position stream of a separated model do, byte by byte and head by head? What goes wrong at
# > indices that it has never seen, and what does it take to mend it?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 30 s of one CPU core at any profile, most of it for three tiny trainings; nothing is downloaded. In the page, the
#   time it takes you to play.
# - **You need**: {doc}`chapter 9 <09_strict>` for the strict model; {doc}`chapter 6 <06_longer_contexts>` for slower frequencies;
#   {doc}`chapter 11 <11_extrapolators>` for the difference between an unseen index and an unseen length.
# - **You will learn**: to tell a failure of the index from a failure of the length; to mend one by slowing positions down; to take
#   a score apart into what each stream contributes; how little a separated transformer needs.
# - **Claims tested**: none here. The same question is put to larger models in {doc}`chapter 12 <12_what_works>`.
# ```
#
# ## The panel
#
# All models are strict: two layers, 16 columns for position and 48 for the text, L = 64. They were trained for a few seconds on
# Python source code when this page was made. The first read every text from index 0. The second read each step at a random start
# below eight trained lengths. The third is the first with its position weights tuned at positions eight times slower. Their weights
# are in the page; your browser computes everything below, and nothing leaves it.
#
# **Break it and heal it.** Two lines repeat for four trained lengths, and yet past L they cost
# {num}`26_in_the_page/line_rest:.1f` bits per byte. Move *Slow positions down* from *as trained* to *8 times slower*: the thick line
# to the right of L comes down to {num}`26_in_the_page/slowed_rest:.1f`.

# %% tags=["remove-input"]
document = held_out[4]
repeated = ("    if x is None:\n        return None\n" * 7)[: 4 * L]
texts = [
    [repeated, "two lines, again and again, 4 L"],
    [
        bytes(document[:LONG].tolist()).decode(errors="ignore"),
        "held-out code, 8 L",
    ],
    [
        bytes(document[: L + 1].tolist()).decode(errors="ignore"),
        "held-out code, L bytes",
    ],
    [
        bytes(document[:200].tolist()).decode(errors="ignore"),
        "held-out code, 200 bytes",
    ],
    [
        "Caf\u00e9, \u03b1 and \u03b2: two bytes each",
        "bytes above 127",
    ],
]
carried = [
    {"says": "trained from index 0", "packed": packed(models["zero"]), "trained": L},
    {
        "says": "trained at random starts",
        "packed": packed(models["random"]),
        "trained": LONG + L,
    },
    {
        "says": "from index 0, position weights tuned 8 times slower",
        "packed": packed(tuned),
        "trained": L,
    },
]
line = np.frombuffer(repeated.encode(), np.uint8)[None].astype(np.int64)
for name, model in {"line": models["zero"], **readers}.items():
    bits = evaluate(model, line).bits
    numbers[f"{name}_first"], numbers[f"{name}_rest"] = (
        bits[0, :L].mean(),
        bits[0, L:].mean(),
    )
assert numbers["line_rest"] > numbers["slowed_rest"] + 1 > numbers["line_first"] + 1
moving.show(
    "model",
    {
        "models": carried,
        "texts": texts,
        "length": L,
        "bands": BANDS,
    },
    name="moving-model",
    alt="A panel that runs three small models: a text, by how much positions are "
    "slowed down, a start index, a rule of evaluation and a head are chosen; shown are "
    "the loss of every byte, the guesses for the next one, and the parts of the head's "
    "scores.",
    instead="the figure above for the losses, and the one below for the scores",
)

# %% [markdown]
# The upper chart has a point for every byte of your text. Under it are the guesses for the byte after the one that you look at. The
# maps show a head: a row for each query, a column for each key. A score is the sum of the maps, and the softmax makes the last one
# of it.
#
# ## Four things to try
#
# **How slow?** On the repeated lines, try factors from 1 to 16. A factor of 2 mends the text up to 2 L and no further, because
# only those indices then look like indices below L. A larger factor mends more and costs more in the first L bytes, because
# neighbours get harder to tell apart. Choose the third model: it was tuned at factor 8, and there it reads the repeated lines at
# {num}`26_in_the_page/tuned_rest:.1f` bits past L, and at {num}`26_in_the_page/tuned_first:.1f` before. Then try the held-out code,
# which is harder to mend.
#
# **Index or length?** Take the short text of L bytes and move the start index from 0 to 64 and further. No text becomes longer, no
# distance is new; only the indices are. The first model loses its way at once, and the second does not notice. Slow the first down
# by 4. Then take the text of 8 L, start at 0 and go through the rules.
#
# **Who points?** With positions as trained, look at layer 1, head 2 of the first model, and move the start index across L. The map `sem · sem` stays as it
# is, to the last digit. The map `pos · pos` loses the band along its diagonal. Which of the two told the head to look at the last
# few bytes?
#
# **What does the stream know of the text?** Choose a head that reads positions only, and type something else. Its maps depend on the
# number of bytes alone. Then look at layer 2 and type again.
#
# ## What you can see
#
# {numref}`fig-page-rules` shows the same losses over 20 files. Past L the first model loses {num}`26_in_the_page/plain_zero:.2f` bits
# more than its own sliding window on the same bytes. With a window mask it still loses {num}`26_in_the_page/masked_zero:.2f`. The mask
# takes away the far keys and leaves the indices, so most of this failure comes from the index. The dashed line comes down in between
# where the waves of the sinusoid have come round; the last exercise asks where.
#
# The second model loses {num}`26_in_the_page/plain_random:.2f` bits, and {num}`26_in_the_page/masked_random:.2f` with the mask. It was
# trained at all these indices. It was not trained at distances above L or with so many keys, and the mask takes these away. But random
# starts have a price, at least in so short a training: inside L the second model needs {num}`26_in_the_page/inside_random:.2f` bits
# per byte and the first {num}`26_in_the_page/inside_zero:.2f`.
#
# ### Slower positions
#
# The position stream starts as a sinusoid: position $p$ is the sine and the cosine of $p\,w_m$, with eight angular frequencies $w_m$.
# A wave makes $t_m = L w_m / 2\pi$ turns in a trained text. Slowed down by a factor $f$, it becomes
#
# $$
# w_m' = k_m\, w_m + (1 - k_m)\, \frac{w_m}{f}, \qquad
# k_m = \min\!\Big(1, \max\!\Big(0, \frac{t_m - \alpha}{\beta - \alpha}\Big)\Big).
# $$ (eq-page-slower)
#
# A wave with at least $\beta = 4$ turns has shown the model all its phases, so it stays and keeps neighbours apart. A wave with at
# most half a turn ($\alpha = 0.5$) is divided by $f$, so that a text of $f L$ bytes shows no more of it than training did. Besides,
# the logits of a query that sees $n > L$ keys are multiplied by $\ln n / \ln L$, because a softmax over more keys is flatter.
#
# With $f = 8$ and the weights as trained, the first model loses {num}`26_in_the_page/slowed_zero:.2f` bits past L instead of
# {num}`26_in_the_page/plain_zero:.2f`. Inside L it pays for this: {num}`26_in_the_page/inside_slowed:.2f` bits per byte instead of
# {num}`26_in_the_page/inside_zero:.2f`, because it has never read such slow positions. The third model has. It was tuned on 60 batches
# of two texts of 8 L, and only its position weights were allowed to change. Past L it loses {num}`26_in_the_page/tuned_zero:.2f` bits,
# and inside L it needs {num}`26_in_the_page/inside_tuned:.2f`. Its content weights are those of the first model, bit for bit (the code
# of this page checks that). So the tuned part can be taken off for short texts, and then the price inside L is zero.
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


def alike(part, other):
    """The correlation of two parts, both less the means of their rows."""
    pair = [centred(one)[..., VISIBLE].flatten() for one in (part, other)]
    return torch.corrcoef(torch.stack(pair))[0, 1].item()


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
slower = slowed(models["zero"], 4)
parts_slowed = parts_of(slower, 0, 0, tokens, here + FAR)
near = parts_of(models["zero"], 0, 0, tokens, here)["pos", "pos"]
far = parts_of(models["zero"], 0, 0, tokens, here + FAR)["pos", "pos"]
numbers["alike_far"] = alike(far, near)
numbers["alike_slowed"] = alike(parts_slowed["pos", "pos"], near)
assert numbers["alike_slowed"] > 0.5 > 0.3 > numbers["alike_far"]
assert spread(parts_slowed["sem", "sem"]) == numbers["content_zero"]
fig, axes = plt.subplots(3, 4, figsize=(8.6, 6.6))
one = slice(4, 5)
ROWS = [
    ("from index 0", models["zero"], 0),
    (f"from index {FAR}", models["zero"], FAR),
    (f"{FAR}, 4 times slower", slower, FAR),
]
for row, (says, model, start) in zip(axes, ROWS, strict=True):
    found = parts_of(model, 0, 0, tokens[one], here + start)
    for ax, ((a, b), part) in zip(row, found.items(), strict=True):
        drawn = centred(part)[0].masked_fill(~VISIBLE, torch.nan)
        image = shapes.heat_map(ax, drawn.numpy(), reach=8)
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{a} · {b}: {spread(part):.1f}", fontsize=10)
    row[0].set_ylabel(f"{says}\nqueries", fontsize=10)
for ax in axes[-1]:
    ax.set_xlabel("keys")
fig.colorbar(image, ax=axes, label="score, minus its row's mean", shrink=0.7)
figures.show(
    fig,
    name="fig-page-parts",
    alt="Three rows of four triangular maps of the parts of a head's scores, query by "
    "key: from index 0 the part of position with position is strong and the others are "
    "weak; from twice the trained length it is weak too; with positions slowed down "
    "its band along the diagonal is back, broader and weaker. The part of content with "
    "content is the same map three times.",
    caption="What tells keys apart in layer 1, head 2 of the model trained from index "
    "0, on one text that begins at index 0 (above), at 2 L (middle) and at 2 L with "
    "positions 4 times slower (below). In the titles: stream of the query, stream of "
    "the key, root mean square. The part of the text with the text is the same to the "
    "last digit.",
)

# %% [markdown]
# From index 0 the part that reads positions only has a root mean square of {num}`26_in_the_page/points_zero_near:.1f`, and the
# part that reads the text only {num}`26_in_the_page/content_zero:.1f`: this head goes by position. From 2 L on the first is
# {num}`26_in_the_page/points_zero_far:.1f`. The head does not look at a wrong place; it no longer
# looks at recent bytes in particular, and its map has a correlation of {num}`26_in_the_page/alike_far:.2f` with the map from index 0.
# With positions 4 times slower, at the same indices, the correlation is {num}`26_in_the_page/alike_slowed:.2f`: the head looks at
# recent bytes again, although less sharply. Meanwhile the part that reads the text only has not changed in any digit, because in a
# separated model position is a part of its own.
#
# In the model that was trained at random starts the same part goes from {num}`26_in_the_page/points_random_near:.1f` to
# {num}`26_in_the_page/points_random_far:.1f`. What extrapolates there is no property of the separation. The indices have been seen.
#
# Only the first layer is so clean. In the second, the text that a head reads has passed through the attention of the first, and
# a lost head there changes what everyone reads afterwards. {doc}`Chapter 22 <22_inside>` follows that through the layers.
#
# ## The same model a second time
#
# The page holds the weights in float16, as base64 text, and the layout of the streams, heads and layers. The losses above
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
# stream. A test gives both implementations the same texts, at start indices on both sides of L, as trained and at positions up to
# 16 times slower, and compares every logit.
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
#   above its own sliding window without changes at reading time, {num}`26_in_the_page/masked_zero:.2f` with a window mask.
# - Its heads lose what the position stream contributed. In the first layer the contribution of the text is untouched.
# - Slower positions bring much of it back without training ({num}`26_in_the_page/slowed_zero:.2f`), and more once the position
#   weights alone are tuned to them ({num}`26_in_the_page/tuned_zero:.2f`).
# - Random starts teach the index. They leave {num}`26_in_the_page/plain_random:.2f` bits, which come from length and distance, and
#   most of these go away with a window mask.
# - These are three models of a few seconds and one seed each: a demonstration, and no verdict. {doc}`Chapter 12 <12_what_works>`
#   asks larger models.
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

# %% [markdown]
# # 20. Cost and speed
#
# **Finding.** A *separated* model keeps position and content in different columns. This alone saves multiply-adds, but little memory in
# training. The *strict* model, in which the position heads see nothing but positions, saves both. With a quarter of the width for position,
# a training step of the separated model is {num}`20_cost_and_speed/step_separated:.2f` times as fast as a step of the dense model, and a
# step of the strict model {num}`20_cost_and_speed/step_strict:.2f` times as fast. In a text of 32,768 tokens, where nearly all work is
# attention, the separated model is {num}`reading_cost/separated-at-32768/speed:.2f` times as fast as the dense one.

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
from sepnb.analysis import flops
from sepnb.analysis.memory import kept_for_backward
from sepnb.experiments.reading_cost import LENGTHS, READERS
from sepnb.models import Transformer, TransformerConfig
from sepnb.plots import figures, shapes
from sepnb.plots.shapes import DASHED, DOTTED
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import NOT_RUN
from sepnb.streams import Streams

figures.use_style()
numbers = {}
KINDS = {
    kind: figures.METHODS[f"{kind}-sinusoidal"] for kind in ("separated", "strict")
}

# %% tags=["hide-input"]
timed = experiments.get("speed").table(profile)
cells = experiments.get("speed").grid(profile)
runs = timed.to_dict("records")
there = [run for run in runs if run["status"] != NOT_RUN]
fig, ax = plt.subplots(figsize=(7.4, 0.9 + 0.34 * len(cells)))
for height, (cell, run) in enumerate(zip(reversed(cells), reversed(runs), strict=True)):
    if run["status"] == NOT_RUN:
        continue
    colour, marker = KINDS[cell.variant].colour, KINDS[cell.variant].marker
    ax.plot([1, cell.limit], [height] * 2, color=colour, alpha=0.25, linewidth=5)
    ax.plot(cell.limit, height, "|", color=colour, markersize=13, markeredgewidth=2)
    ax.plot(run["limit_at_rates"], height, "|", color=figures.FAINT, markersize=11)
    ends = [abs(run["ratio"] - run[f"ratio_{end}"]) for end in ("lower", "upper")]
    look = {"color": colour, "marker": marker, "markersize": 6}
    ax.errorbar(run["ratio"], height, xerr=np.array(ends)[:, None], **look)
labels = [cell.label.replace(", eager", "") for cell in reversed(cells)]
labels = [label.replace("d_pos", r"$d_\mathrm{pos}$") for label in labels]
ax.set_yticks(range(len(cells)), labels, fontsize=9)
ax.set(xlabel="times as fast as the dense model of the same width", xlim=(0.98, None))
reached = pd.Series([run["share_reached"] for run in there], dtype=float)
pairs = list(zip(there[::2], there[1::2], strict=False))  # separated, strict
ahead = sum(strict["ratio"] > one["ratio"] for one, strict in pairs)
figures.show(
    fig,
    name="fig-cost-steps",
    alt="For each shape the measured speed over the dense model, as a marker on a bar "
    "that ends at the ratio of the multiply-adds. The markers are in the last third of "
    "each bar; strict models reach further than separated ones.",
    caption=f"Strict is faster than separated in {ahead} of {len(pairs)} shapes. The "
    f"measured steps save {reached.min():.0%} to {reached.max():.0%} of the time that "
    "their multiply-adds alone would save. Markers are medians of paired ratios, with "
    "quartiles. Coloured bars end at the limit by multiply-adds. Grey ticks are the "
    "limit if attention takes the share of time that it really takes on this machine.",
)

# %% [markdown]
# > **Question.** What does a model with position in its own dimensions cost, in time and in memory, compared with a dense model
# > and its encodings?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 12 s of one CPU core, under 1 GB; nothing is trained or downloaded. The records:
#   `sepnb run speed seqpe_cost reading_cost` and `make bench KEEP=laptop`, about two hours of an idle core. `sepnb bench` times
#   your machine and keeps nothing.
# - **You need**: {doc}`chapter 10 <10_strict>` for the strict model and its tables.
# - **You will learn**: what separation saves in time and in memory, and what each encoding costs.
# - **Claims tested**: each verdict is shown in the text and links to its rule. Timings have no seeds: a bound holds if three quarters of
#   the rounds are inside it, and fails if three quarters are outside. All bounds were committed before their records.
# ```
#
# ## How it is measured
#
# A time depends on the machine and on the hour, but a ratio of two times depends on them much less. So the two computations that we compare
# take turns on one thread, and we show medians of their ratios, with quartiles. We measure CPU time, because on a shared machine elapsed
# time also measures what other users do. A step is one forward and one backward pass through the blocks, without the optimiser.
#
# ## What it multiplies
#
# {eq}`eq-strict-cost` counts the multiply-adds. Separation cuts values, outputs and the MLP down to diagonal blocks, and leaves queries and
# keys as they are. The strict model computes its position branch once for all texts of a batch that begin at the same index. Here are the
# counts for $D = 256$ with 64 columns for position and texts of 256 tokens, in batches of one, eight and endlessly many:

# %%
laptop = experiments.get("speed").grid("laptop")
quarter = next(c for c in laptop if c.pos_parts == 4)
pair = {name: replace(quarter, variant=name) for name in KINDS}
for name, cell in pair.items():
    one, eight, endless = (replace(cell, batch_size=n).limit for n in (1, 8, 10**9))
    print(f"{name}: {one:.3f}, {eight:.3f}, {endless:.3f} times fewer multiply-adds")
alone = replace(pair["strict"], batch_size=1).limit
assert pair["separated"].limit < alone < pair["strict"].limit

# %% [markdown]
# ## Why not all of it is saved
#
# The measured steps gain less than these counts promise ({numref}`fig-cost-steps`). One reason is the kernel of attention, which separation
# does not change. It takes {num}`20_cost_and_speed/attention_share:.0%` of the time of the dense step, although it does only
# {num}`20_cost_and_speed/attention_counted:.0%` of the multiply-adds. The grey ticks of the figure are the limit with that share of time.
# They are close to the measured speeds if at most a quarter of the width is for position and nothing is compiled.
#
# ## What an encoding leaves
#
# A dense model pays for its encoding in every layer. Here we time one layer of attention with each encoding, forward and backward, on one
# thread, in turns with torch's fused causal kernel without positions:

# %% tags=["hide-input"]
shares = experiments.get("encoding_speed").table(profile)
ran = shares[shares.status != NOT_RUN]
PATHS = ["compiled", "eager", "x_transformers", "x_transformers_compiled"]
ran = ran.reindex(columns=ran.columns.union([*PATHS, "ahead", "length"]))
longest = ran.length.max()
at = ran[ran.length == longest].astype(dict.fromkeys(PATHS, float))
ours = "compiled" if at.compiled.notna().all() else "eager"
order = at.sort_values(ours)
fig, ax = plt.subplots(figsize=(6.8, 4.0))
for height, run in enumerate(order.to_dict("records")):
    known = "kerple-log" if run["method"] == "kerple" else run["method"]
    look = figures.METHODS.get(known, figures.Method(known, figures.INK))
    ax.plot([run["eager"], run[ours]], [height] * 2, color=look.colour, alpha=0.3)
    ax.plot(run["eager"], height, "o", color=look.colour, markerfacecolor="none")
    ax.plot(run[ours], height, "o", color=look.colour)
theirs = order[PATHS[2:]].max(axis=1)
ax.plot(theirs, range(len(order)), "x", color=figures.INK)
names = {name: look.label for name, look in figures.METHODS.items()}
names["kerple"] = "KERPLE"
ax.set_yticks(range(len(order)), [names.get(name, name) for name in order.method])
ax.axvline(1, color=figures.FAINT, linewidth=1)
ax.set(xlabel="share of the fused kernel's speed", xlim=(0, None))
figures.show(
    fig,
    name="fig-cost-encodings",
    alt="A dot plot of the encodings by the share of the fused kernel's speed that "
    "they leave. Rotations and no encoding are near one; fixed biases too, if they "
    "are compiled; FoX above four fifths; Transformer-XL and SeqPE near one half; "
    "TUPE and CoPE lowest.",
    caption="Compiled rotations and fixed biases leave nearly all of the speed; an "
    f"encoding with scores of another form leaves less. N = {longest:,}. Filled: "
    "compiled; open: eager; cross: x-transformers, the faster of eager and compiled."
    if ours == "compiled"
    else f"N = {longest:,}: eager steps.",
)


# %% tags=["remove-input"]
def of_step(column, variant="separated"):
    """A column of the cell of this page in the records, or that it was not run."""
    for cell, run in zip(cells, runs, strict=True):
        if cell.key == pair[variant].key and run["status"] != NOT_RUN:
            return float(run[column])
    return NOT_RUN


numbers |= {f"step_{name}": of_step("ratio", name) for name in pair}
numbers["attention_share"] = of_step("attention_share")
dense_block = flops.blocks(pair["strict"].models()["dense"], quarter.length)[0]
by_kind = dense_block.by_kind()
numbers["attention_counted"] = by_kind["attention"] / sum(by_kind.values())
for name, column in {
    "rope": "compiled",
    "cope": "compiled",
    "forgetting": "compiled",
    "alibi": "ahead",
}.items():
    share = ran[(ran.method == name) & (ran.length == 1024)][column]
    numbers[f"{name}_{column}_at_1024"] = chapter_numbers.mean_of(share)

# %% [markdown]
# Some encodings can use the fused kernel: a rotation is applied before the kernel, a fixed bias is given to it as a mask, and the forget
# gates of FoX are two more columns. A trained bias, or a score of another form, needs an explicit softmax.
#
# Compiled RoPE leaves {num}`20_cost_and_speed/rope_compiled_at_1024:.0%` of the kernel's speed, and FoX
# {num}`20_cost_and_speed/forgetting_compiled_at_1024:.0%` (we timed gates that are nearly open). CoPE, which computes positions by counting
# tokens between query and key, leaves {num}`20_cost_and_speed/cope_compiled_at_1024:.0%`.
#
# Our ALiBi is {num}`20_cost_and_speed/alibi_ahead_at_1024:.2f` times as fast as that of the library x-transformers.
#
# FoX, TUPE, the content-to-position term and partial RoPE were timed on another processor than the rest; each share is of the fused
# kernel's speed on the same processor.
#
# ## What SeqPE adds
#
# SeqPE computes position embeddings with a small encoder, which is trained with two extra losses ({doc}`chapter 18 <18_seqpe_stream>`).

# %% tags=["hide-input"]
cost = experiments.get("seqpe_cost").table(profile)


def timed_as(row, name, form=".2f"):
    """A number of a row, with quartiles if it was timed; in words if there is none."""
    if row["status"] == NOT_RUN:
        return NOT_RUN
    if not np.isfinite(row.get(name, np.nan)):
        return "by definition 1"
    keys = (name, f"{name}_lower", f"{name}_upper")
    told = [format(row[key], form) for key in keys if key in row]
    return "{} ({} to {})".format(*told) if len(told) == 3 else told[0]


figures.show_table(
    pd.DataFrame(
        {
            "what": row["label"],
            "share of the time": timed_as(row, "share", ".1%"),
            "share of the multiply-adds": timed_as(row, "products", ".1%"),
            "of these, longer queries, keys": timed_as(row, "products_columns", ".1%"),
            "time / none": timed_as(row, "longer"),
            "multiply-adds / none": timed_as(row, "products_longer"),
        }
        for row in cost.to_dict("records")
    ),
    caption="The share of a training step that goes to the encoder, its losses and its "
    "maps, in time and in multiply-adds; the multiply-adds that the longer queries and "
    "keys add; and the whole step as a multiple of one without an encoding. Medians "
    "and quartiles of rounds timed in turn.",
)

# %% [markdown]
# **A narrow encoder is cheap, but the whole step is not.** The narrowest encoder, with its maps and with losses in every step, takes
# {num}`seqpe_cost/width-32-every-1/share:.1%` of the time of a training step. But the whole step takes
# {num}`seqpe_cost/width-32-every-1/longer:.2f` times as long as a step without an encoding. Every query and key is longer, too, but the
# step has only {num}`seqpe_cost/width-32-every-1/products_longer:.2f` times the multiply-adds; we have not measured where the rest of the
# time goes.
#
# ## Reading 32,768 tokens
#
# For one token the maps of a block (its weight matrices) cost $12 D^2$ multiply-adds at any length, and attention over $N$ tokens costs
# $N D$. At $D = 128$ and $N = 32{,}768$ attention costs about twenty times as much as the maps. We time the reading of one text of this
# length without gradients, and of the same tokens as four texts of a quarter of the length. If only the maps counted, both would take the
# same time; if only attention counted, the one long text would take four times as long.

# %% tags=["hide-input"]
reading = experiments.get("reading_cost").table(profile)
grid = experiments.get("reading_cost").grid(profile)
read = list(zip(grid, reading.to_dict("records"), strict=True))
shown = [(cell, run) for cell, run in read if run["status"] != NOT_RUN]
LOOKS = {
    "sinusoidal": ("#e69f00", "o", DASHED),
    "rope": ("#d55e00", "^", "-"),
    "rope-window": ("#d55e00", "v", DOTTED),
    "alibi": ("#009e73", "D", "-"),
    "separated": ("#6b4500", "o", "-"),
    "strict": ("#6b4500", "v", DOTTED),
    "strict-tables": ("#6b4500", "P", "-"),
}
assert LOOKS.keys() == READERS.keys()
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.6), sharex=True)
panels = {"reading_s": "CPU seconds for 1,000 tokens", "peak_mb": "MB held at the peak"}
for ax, (column, label) in zip(axes, panels.items(), strict=True):
    for name, (colour, marker, dash) in LOOKS.items():
        own = [run for cell, run in shown if cell.reader == name]
        lengths = [run["length"] for run in own]
        each = 1000 / np.array(lengths) if column == "reading_s" else 1
        values = each * np.array([run[column] for run in own])
        look = {"color": colour, "marker": marker, "linestyle": dash}
        ax.plot(lengths, values, label=READERS[name], **look)
    ax.set(xlabel="tokens in the text", ylabel=label)
    ax.set_yscale("log")
    ticks = sorted({run["length"] for _, run in shown})
    shapes.powers_of_two(ax, ticks, [f"{tick:,}" for tick in ticks])
entries = axes[0].get_legend_handles_labels()
fig.legend(*entries, loc="outside lower center", ncols=2, handlelength=3)
figures.show(
    fig,
    name="fig-cost-reading",
    alt="Two panels against the length of the text, both axes logarithmic: CPU seconds "
    "for 1,000 tokens, and megabytes held at the peak, for seven readers.",
    caption="A token costs more in a longer text, but hardly more if the model attends "
    "only to a window. Time is in CPU seconds for 1,000 tokens, on one thread of this "
    "machine. Memory is the most bytes held at once, counted. Both axes are "
    "logarithmic.",
)

# %% tags=["hide-input"]
at_end = max(LENGTHS[profile])


def read_at_end(cell, run):
    """Of a reader, in time and by the multiply-adds alone."""
    whole = cell.products(cell.reader, cell.length)
    return {
        "reader": READERS[cell.reader],
        "one text over four": timed_as(run, "growth"),
        "counted": whole / cell.products(cell.reader, cell.length // 4),
        "times as fast as dense, sinusoidal": timed_as(run, "speed"),
        "counted ": cell.products("sinusoidal", cell.length) / whole,
    }


figures.show_table(
    pd.DataFrame(read_at_end(*pair) for pair in read if pair[0].length == at_end),
    caption=f"{at_end:,} tokens: how many times as long one text takes as four texts "
    "of a quarter of the length, and how many times as fast the model is as the dense "
    "sinusoidal one. Counted: what the multiply-adds alone would give. Medians and "
    "quartiles of rounds timed in turn.",
    formats={"counted": ".2f", "counted ": ".2f"},
)

# %% [markdown]
# RoPE takes {num}`reading_cost/rope-at-32768/growth:.2f` times as long for one text as for four. With a window of the trained length it
# takes {num}`reading_cost/rope-window-at-32768/growth:.2f` times as long, and it reads {num}`reading_cost/rope-window-at-32768/speed:.1f`
# times as fast as the dense sinusoid without a window.
#
# The split maps save little here, because maps are only about a twentieth of the arithmetic. Most of what the separated model saves comes
# from the last block: nothing reads the position stream after it, so its position head is left out. The strict model can save more. Its
# position heads look at positions only, so their work can be done beforehand for all texts (`model.position_tables`,
# {doc}`chapter 10 <10_strict>`). A quarter of the heads then have nothing left to do, and reading is
# {num}`reading_cost/strict-tables-at-32768/speed:.2f` times as fast as with the dense model.
#
# ALiBi reads at {num}`reading_cost/alibi-at-32768/speed:.2f` of the speed of the sinusoid, because torch's CPU kernel takes a bias as a
# mask of all pairs, hidden ones included, and reads it from memory for every head. The four shorter texts share one smaller mask, so the
# one long text takes {num}`reading_cost/alibi-at-32768/growth:.1f` times as long as the four.
#
# ## Memory
#
# The largest part of the memory of a training is what autograd keeps for the backward pass. This part can be counted exactly: we count each
# kept tensor once and leave out the weights.


# %%
def training_memory(config, batch=8, length=256):
    """Megabytes: four numbers a weight, and what is kept for the backward pass."""
    torch.manual_seed(seed)
    model = Transformer(config)
    width = config.streams.widths["sem"]
    content = torch.randn(batch, length, width, requires_grad=True)
    weights = list(model.parameters())
    kept = kept_for_backward(lambda: model(content), weights=weights)
    return 4 * 4 * sum(w.numel() for w in weights) / 1e6, kept / 1e6


# %% tags=["hide-input"]
models = {"dense": pair["strict"].models()["dense"]}
models |= {name: cell.models()[name] for name, cell in pair.items()}
WEIGHTS, KEPT = "weights, gradients, AdamW (MB)", "kept for the backward pass (MB)"
sizes = [training_memory(config) for config in models.values()]
held = pd.DataFrame(sizes, models, columns=[WEIGHTS, KEPT])
together = held.sum(axis=1)
held["together / dense"] = together / together["dense"]
for name in pair:
    numbers[f"kept_{name}"] = held[KEPT][name] / held[KEPT]["dense"]
figures.show_table(
    held.reset_index(names="model"),
    caption="What training keeps in memory, for D = 256 with 64 for position, four "
    "blocks, 8 texts of 256 tokens, in float32. The separated model has fewer "
    "weights but keeps more; the strict one has less of both.",
    formats=dict(zip(held.columns, (".1f", ".1f", ".2f"), strict=True)),
)
assert numbers["kept_strict"] < 1 < numbers["kept_separated"]

# %% [markdown]
# **Separation alone saves little memory in training.** The separated model keeps {num}`20_cost_and_speed/kept_separated:.2f` times what the
# dense one does: its vectors are as wide as before, and heads that read both streams keep a joined copy of them as well. The strict model
# keeps {num}`20_cost_and_speed/kept_strict:.2f` times what the dense one does. The choice of the encoding can matter more than the choice
# between separated and strict. The next table is for one layer of eight heads and two texts of 512 tokens:

# %% tags=["hide-input"]
layer = TransformerConfig(Streams.dense(256), 1, 8, "none", max_length=512)
NAMES = "none rope alibi t5 transformer-xl shaw distance-aware cope".split()
made = (replace(layer, encoding=name) for name in NAMES)
kept = [training_memory(config, batch=2, length=512)[1] for config in made]
of_layer = pd.Series(kept, NAMES)
heavier = of_layer / of_layer["none"]
labels = [figures.METHODS[name].label for name in NAMES]
figures.show_table(
    pd.DataFrame({"encoding": labels, "kept (MB)": of_layer, "kept / none": heavier}),
    caption="What one layer, with its MLP, keeps for the backward pass, eager. An "
    "encoding that needs an explicit softmax keeps numbers for every pair of tokens.",
    formats={"kept (MB)": ".1f", "kept / none": ".1f"},
)
numbers |= {f"kept_{name}": heavier[name] for name in ("rope", "shaw", "cope")}

# %% [markdown]
# RoPE keeps {num}`20_cost_and_speed/kept_rope:.1f` times what a layer without an encoding does, Shaw {num}`20_cost_and_speed/kept_shaw:.1f`
# times, CoPE {num}`20_cost_and_speed/kept_cope:.0f` times. The last two factors grow with the length.
#
# ## What to take away
#
# 1. **Separation alone saves arithmetic, and little memory.** A training step gains less than its multiply-adds promise; one reason is the
#    kernel of attention. The strict model saves both, as long as the texts of a batch share their positions.
# 2. **In long texts attention is the price.** A token of a longer text costs more
#    ({verdict}`a-longer-text-costs-more-a-token: reproduced`). With a window it costs hardly more.
# 3. **In long texts separation alone saves little time** ({verdict}`separation-alone-saves-little-in-long-texts: held`). With position
#    tables made beforehand, the strict model saves more.
# 4. **The kernel decides what an encoding costs.** On a CPU compiled RoPE is nearly free ({verdict}`compiled-rope-is-nearly-free: held`),
#    and our encodings are faster than those of x-transformers. In a long text ALiBi, whose bias this kernel takes as a mask of all pairs,
#    costs most of the speed.
#
# **Limits.** One thread of a CPU (four encodings on another kind than the rest), float32, random weights. We timed no GPU. Times are those
# of the commit named in the records at the end of the page.
#
# **What would change our mind.** A GPU on which the speed-up of a separated step of this size comes near the ratio of the multiply-adds.
#
# ## Exercises
#
# **1. (easy)** At $D = 128$, how long must a text be for attention to take as many multiply-adds as the maps of a dense block?

# %% tags=["hide-cell"]
# Solution. N D = 12 D^2, so N = 12 D.
dense = TransformerConfig(Streams.dense(128), 1, 4, "sinusoidal")
(block,) = flops.blocks(dense, 12 * 128)
kinds = block.by_kind()
assert kinds["attention"] == sum(kinds.values()) / 2
print(f"{12 * 128:,} tokens")

# %% [markdown]
# **2. (medium)** In a strict model, texts that each begin at an index of their own cannot share the position branch. By the counts, how
# much of the gain is left?

# %% tags=["hide-cell"]
# Solution. Every text has a position branch of its own: the count of a batch of one.
own, shared = alone, pair["strict"].limit
print(f"{own:.2f} of {shared:.2f}: {(own - 1) / (shared - 1):.0%} of the gain")
assert (own - 1) / (shared - 1) < 0.75

# %% tags=["hide-cell"]
chapter_numbers.publish("20_cost_and_speed", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(timed, shares, cost, reading)

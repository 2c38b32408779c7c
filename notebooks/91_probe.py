# %% [markdown]
# # Probe your own model
#
# **Finding.** One call asks any causal language model the questions of this book. Here it asks two small ones. RoPE with a window survives
# texts of eight trained lengths (*{num}`91_probe/survives_window`*). A model whose learned table of positions is repeated past its end does
# not: its verdict is *{num}`91_probe/survives_wrap`*, because its loss is {num}`91_probe/gap_wrap:.2f` bits per byte above that of its own
# sliding window.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import numpy as np
import pandas as pd
import torch

from sepnb.data import text as texts
from sepnb.encodings import YaRN
from sepnb.evaluation import evaluate
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.plots import figures
from sepnb.protocol import probe
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import text_of
from sepnb.records.verdicts import SURVIVES, answers_to
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train

figures.use_style()
L, steps, batch_size = 32, 300, 16
library = texts.load("sympy")
numbers = {}


def trained(encoding):
    """A small dense model, trained on this page."""
    torch.manual_seed(seed)
    size = {"n_layers": 2, "n_heads": 4, "max_length": L}
    model = LanguageModel(
        TransformerConfig(Streams.dense(48), encoding=encoding, **size)
    )
    sizes = {"batch_size": batch_size, "length": L, "seed": seed, "steps": steps}
    batches = texts.sample_batches(library.train, **sizes)
    train(model, batches, TrainingConfig(steps, batch_size, L, 8e-3), device=device)
    return model


rope, learned = trained("rope"), trained("learned")
held_out = np.concatenate([one.data for one in library.test.documents])
text = held_out[: 30 * 8 * L + 1]  # thirty windows of eight trained lengths
window = probe(rope.extended(window=L), text, trained_length=L, reference=rope)
wrap = probe(learned.extended("wrap"), text, trained_length=L, reference=rope)

# %% tags=["hide-input"]
figures.show(
    wrap.figure(),
    name="fig-probe-wrap",
    alt="Loss by position of a model with a learned table that is repeated, up to "
    "eight trained lengths. Past the trained length it rises above its own sliding "
    "window. At the right the verdicts, survives refuted.",
    caption="The card of a model whose learned table is repeated. Past the trained "
    "length its loss rises above that of its own sliding window.",
)

# %% [markdown]
# > **Question.** Does your model read texts longer than those of its training, does it use what is far back, and what does that
# > cost?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 20 s of one CPU core, under 1 GB; two tiny models are trained, nothing is downloaded.
# - **You need**: {doc}`far distances <93_far_distances>` (the four questions), {doc}`chapter 6 <06_longer_contexts>` (sliding window).
# - **You will learn**: to read a card, and to see how much slower waves help a model.
# - **Claims tested**: none. A card judges one checkpoint; a claim of this book judges at least six.
# ```
#
# ## One call
#
# Any callable from tokens to logits will do:
#
# ```python
# card = probe(model, text, trained_length=32, reference=another)
# ```
#
# The result is a *card*: a short report with four verdicts and their numbers. You can have it as JSON, Markdown, a page or a figure. Here
# are the verdicts of RoPE with a window of its trained length $L$:

# %%
for name, one in window.four.items():
    print(f"{name}: {one.verdict}; {one.why}")

# %% [markdown]
# `hf` wraps a model of the library transformers. This page does not run the example:
#
# ```python
# from transformers import AutoModelForCausalLM, AutoTokenizer
# from sepnb.protocol import hf, probe
#
# name = "path/to/model"
# model = AutoModelForCausalLM.from_pretrained(name)
# tokens = AutoTokenizer.from_pretrained(name)(novel)["input_ids"]
# card = probe(hf(model), tokens, trained_length=1024)
# ```
#
# The command `sepnb probe path/to/model --text novel.txt --length 1024` prints the card and writes it as a page.
#
# ## With and without slower waves
#
# A model with RoPE can be read with slower waves ({doc}`chapter 6 <06_longer_contexts>`). Compare the verdict on the unchanged model with
# the verdict on the same model with slower waves:

# %%
above = {}
slower = rope.extended(extension=YaRN(8, L))
for name, model in {"as trained": rope, "8 times slower": slower}.items():
    survives = probe(model, text, trained_length=L, reference=rope).survives
    above[name] = survives.numbers["gap/8x"]["mean"]
    print(f"{name}: survives {survives.verdict}, {above[name]:+.2f} bits per byte")
assert above["8 times slower"] < above["as trained"] / 2, "more than half is gone"

# %% [markdown]
# Slower waves remove more than half of the loss above the sliding window, but the model, which was not tuned for them, still does not
# survive. RoPE with a window, probed above, does better.
#
# For a model of the library transformers, `hf(model, extension=YaRN(8, 1024))` slows the waves through the model's own `rope_parameters`.
# On the command line the options are `--extension yarn --factor 8`. With `--adapter FILE` the command reads a model of this package with an
# adapter.
#
# ## What the verdicts are made of
#
# The text is cut into windows of the longest length. The model reads each window with all keys visible, and again through a sliding window
# of $L$, which needs no extrapolation. *Survives* compares the two losses on the same tokens, stretch by stretch:
#
# ```{literalinclude} ../../sepnb/protocol/verdicts.py
# :pyobject: survives
# :start-at: gaps =
# :end-at: answers =
# :dedent:
# ```
#
# *Uses* asks for more. Text older than $L$ is once replaced by another passage and once left out, and both must cost something. (If far
# text only confuses a model, its loss falls when the old part is left out.)
#
# *Quality* and *price* compare the model with a reference, here RoPE. *Quality* compares them far out, where RoPE reads through its sliding
# window, and *price* compares them inside the trained length.

# %% tags=["hide-input"]
cards = {"RoPE with a window": window, "learned table, repeated": wrap}
rows = [
    [name, *(one.verdict for one in card.four.values())] for name, card in cards.items()
]
figures.show_table(
    pd.DataFrame(rows, columns=["model", *window.four]),
    caption="The four verdicts of both models.",
)
for name, card in {"window": window, "wrap": wrap}.items():
    numbers |= {f"{key}_{name}": card.four[key].verdict for key in ("survives", "uses")}
    numbers[f"gap_{name}"] = card.survives.numbers["gap/8x"]["mean"]

# %% [markdown]
# ## By hand
#
# Student's test asks whether the mean difference over windows is on one side of the bound. These four differences have
# a mean of 0.02, below the bound of 0.03, but they scatter too much to decide. <!-- given: invented numbers -->

# %%
gaps = np.array([0.01, 0.05, 0.00, 0.02])
bounds = [(-np.inf, SURVIVES)]
assert answers_to([gaps], bounds) == ["open"]
assert answers_to([np.tile(gaps, 10)], bounds) == ["holds"]  # forty such windows decide
print(text_of(gaps), text_of(np.tile(gaps, 10)))

# %% [markdown]
# So a probe asks for thirty windows, and more text narrows every interval.
#
# ## Index, length and distance apart
#
# A text longer than $L$ has new positions, more keys and larger distances. If positions can be passed to the model, the card shows what
# each of these three costs alone. *Held* means that this cost is less than the bound of *survives*:
#
# - *index*: the same windows of $L$, begun far out;
# - *distance*: the older half of a window is moved far back, the recent half stays;
# - *length*: all older tokens of a long text share a few trained positions, so only the number of keys is new.

# %% tags=["hide-input"]
rows = [
    [name, axis, one.verdict, one.numbers.get("cost", {}).get("mean")]
    for name, card in cards.items()
    for axis, one in card.axes.items()
]
columns = ["model", "side", "verdict", "cost, bits per byte"]
figures.show_table(
    pd.DataFrame(rows, columns=columns),
    caption="What new indices, larger distances and more keys cost, each alone. Means "
    "over windows.",
    formats={columns[-1]: "+.3f"},
)
index = window.axes["index"].numbers["cost"]["mean"]
assert abs(index) < 1e-4, "RoPE knows differences of positions only"

# %% [markdown]
# RoPE only sees differences of indices, so a new index alone costs it nothing. RoPE with a window fails in the row *distance*. The texts of
# this row have only $L$ tokens, so the mask hides none of them. In a long text the model survives, because the mask hides every distance
# beyond $L$.
#
# The repeated table already fails at a new index. A token far back has both a new index and a new distance, so the card cannot say what the
# distance alone costs.
#
# ## What to take away
#
# 1. The baseline of a long text is the model's own sliding window. At eight trained lengths RoPE with a window differs from it
#    by {num}`91_probe/gap_window:.3f` bits per byte.
# 2. A model that survives need not use far text. The verdict on use is *{num}`91_probe/uses_window`* for RoPE with a window, which
#    survives, and *{num}`91_probe/uses_wrap`* for the repeated table, which does not.
# 3. A card judges one checkpoint. Its intervals are over windows of text and say nothing about another training.
#
# **Limits.** Windows of one text are taken as independent, and replaced context comes from the same text. No model was trained with several
# tokens at one position, and this alone may refute *length*. A model to which positions cannot be passed, such as BLOOM, gets no such
# table.
#
# ## Exercises
#
# **1. (easy)** Predict the verdicts of a model that only counts pairs of bytes. Then probe it.

# %% tags=["hide-cell"]
# Solution. It survives, because nothing older than one byte reaches it. It cannot use
# what it cannot lose, so *uses* is not testable.
data = np.concatenate([one.data for one in library.train.documents]).astype(int)
counts = np.bincount(data[:-1] * 256 + data[1:], minlength=256**2).reshape(256, 256)
logits = torch.from_numpy(np.log(counts + 0.1)).float()
pairs = probe(lambda tokens: logits[tokens], text, trained_length=L)
assert pairs.survives.verdict == "held"
assert pairs.uses.verdict == "not testable here"
print(pairs.uses.why)

# %% [markdown]
# **2. (medium)** The far windows of the probe never begin at a multiple of $L$. What would a repeated table show if they did?

# %% tags=["hide-cell"]
# Solution. At a multiple of L it repeats its training bit for bit, which is no evidence
# that it continues anything.
repeated = learned.extended("wrap")
inside = text[: 32 * L].reshape(-1, L).astype(int)
at = {start: start + np.arange(L - 1) for start in (0, 7 * L, 7 * L - L // 3)}
bits = {start: evaluate(repeated, inside, positions=p).bits for start, p in at.items()}
assert np.array_equal(bits[0], bits[7 * L])
assert abs(bits[0] - bits[7 * L - L // 3]).max() > 0.01

# %% tags=["hide-cell"]
chapter_numbers.publish("91_probe", numbers, profile=profile)

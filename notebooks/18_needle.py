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
# # 18. Needle in a haystack
#
# **Finding.** Of the digits of needles that stand four to eight trained lengths back in a novel, RoPE finds
# {num}`needle/rope/far/native:.1%` as it was trained and {num}`needle/rope/far/yarn:.1%` with the frequencies of YaRN, without further
# training.
#
# **Models with a content-to-position term of short period, trained with position gaps, find distant needles, with separation and without
# it.** The separated model finds {num}`needle/separated-content-gap/far/native:.1%` of those far back, and a dense sinusoid
# {num}`needle/sinusoidal-content-gap/far/native:.1%`. The dense model is larger. But a separated model of the same size finds no more than
# the smaller one: {num}`needle/separated-content-gap-wide/far/native:.1%`.
#
# Larger models, trained on a GPU with texts four times as long, find {num}`18_needle/gpu_separated:.0%` with separation and
# {num}`18_needle/gpu_dense:.0%` without it, in three seeds each.
#
# Gaps alone reach far as well, with a dense sinusoid {num}`needle/sinusoidal-gap/far/native:.1%`, with RoPE
# {num}`needle/rope-gap/far/native:.1%`; the term, with its short period, adds the rest. Without it
# {num}`18_needle/gap_learned_separated` separated runs learn the task, with it all.
#
# Near the end of such a text needles are harder for the separated model: of those at most a trained length back it finds
# {num}`needle/separated-content-gap/near/native:.1%`, one of the twin's size {num}`needle/separated-content-gap-wide/near/native:.1%`, the
# dense twin {num}`needle/sinusoidal-content-gap/near/native:.1%`. So of all needles in such texts it finds
# {num}`needle/separated-content-gap/accuracy/native/8x:.1%`, and its use of them is
# *{num}`18_needle/verdict_needle_a_separated_model_uses`*. In the larger models on the GPU this deficit is gone: there the separated model
# finds {num}`18_needle/gpu_near_separated:.0%` of the near needles and the dense one {num}`18_needle/gpu_near_dense:.0%`. Exploratory, with one
# caution: the short sweep of the smaller model solved the task at no rate.
#
# Of the methods with six runs, the task was learned by: {num}`18_needle/learned`; as trained, a needle that far back is used by:
# {num}`18_needle/uses`.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import re
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import claims, experiments
from sepnb.companion import evidence
from sepnb.companion.evidence import recall_shown as shown
from sepnb.data import text as texts
from sepnb.evaluation.tasks import grid, needle
from sepnb.plots import answers, chooser, figures
from sepnb.plots.shapes import DASHED
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable

figures.use_style()
table = experiments.get("needle").table(profile)
rows = experiments.get("needle").rows(profile, "depth")
methods = experiments.get("needle").methods
numbers = dict(shown.counted(table, methods))
if profile == "laptop":  # what is said
    far = table.groupby("method")["far/native"].mean()
    dense, separated = far["sinusoidal-content-gap"], far["separated-content-gap"]
    assert dense > separated > max(far["rope-gap"], far["separated-content-gap-wide"])
    assert dense > max(far["sinusoidal-gap"], far["rope-gap"])
    found = RunTable(table).values("separated-content-gap", "accuracy/native/1x")
    assert found.min() > 0.95
found = RunTable(table).values("separated-gap", "accuracy/native/1x")
numbers["gap_learned_separated"] = f"{(found >= 0.95).sum()} of {len(found)}"
chance = {times: answers.best_guess(table, times) for times in answers.TIMES}

# %% tags=["hide-input"]
PANELS = {
    "RoPE": ("rope", "native"),
    "RoPE, window of L": ("rope", "window"),
    "RoPE, NTK-aware": ("rope", "ntk"),
    "RoPE, YaRN": ("rope", "yarn"),
    "RoPE, gaps": ("rope-gap", "native"),
    "ALiBi": ("alibi", "native"),
    "separated, content and gaps": ("separated-content-gap", "native"),
    "dense, content and gaps": ("sinusoidal-content-gap", "native"),
}
of = RunTable(table)
plain, yarn = (of.mean("rope", f"far/{reader}") for reader in ("native", "yarn"))
lost = (
    "RoPE loses the needles of longer texts; read with YaRN it finds most of them. "
    if plain < 0.5 < yarn
    else ""
)
figures.show(
    answers.maps(rows, PANELS, chance=chance),
    name="fig-needle-maps",
    alt="Maps of the share of needle digits found, by the length of the text from "
    "one to sixteen trained lengths and by the depth of the needle, a panel a "
    "method; cells that are no better than a guess are hatched. RoPE as trained "
    "keeps the end of long texts only; with YaRN, or trained with gaps, most cells "
    "are found, and nearly all by the dense model with content and gaps.",
    caption=f"{lost}Digits of needles found (%) by the length of the text, in trained "
    "lengths L, and the depth at which the needle stands, means over seeds. Hatched: "
    "no better than the best guess.",
)
figures.provenance(table)

# %% [markdown]
# > **Question.** A small fact is hidden somewhere in a long text, and the model is asked for it. How long may the text be, and where
# > may the fact stand?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 10 s of one CPU core at any profile; nothing is trained or downloaded. The records:
#   `sepnb run needle_sweep`, then `needle`, about two minutes a run, on ELTeC (`sepnb data eltec-eng`).
# - **You need**: {doc}`chapter 6 <06_longer_contexts>` for context extensions and the window,
#   {doc}`chapter 12 <12_what_works>` for position gaps.
# - **You will learn**: how the needle test is built, what it takes to solve it by guessing, and which sentences of the article
#   on extending contexts the records bear out.
# - **Claims tested**: those under *Verdicts* (see {doc}`/book/claims`).
# ```
#
# ## Learned, or not
#
# In texts of its trained length a model must find ninety-five of a hundred digits before its failure in longer ones is read as
# anything. The table also gives the best guess of a digit, made without looking at the name.

# %% tags=["hide-input"]
figures.show_table(
    shown.learned_table(table, methods),
    caption="Needles inside the trained length, digit by digit: means over seeds and "
    "95 % t intervals, the worst seed, and of the seeds that found 95 % the median "
    "step. In the first two thirds of the steps texts are half as long, those asked "
    "too.",
)
figures.provenance(table)

# %% [markdown]
# ## The test
#
# The needle test became known through the maps of Kamradt {cite:p}`kamradt2023`: one sentence is embedded in a long text of
# another kind, the model is asked for it, and a table of length against depth shows where it is found. Our models read bytes and
# have less than a million parameters, so that the needle is smaller: a capital and three digits in braces. The haystack is
# made of novels that training never saw.
#
# There are four needles in each text. A text with one could be solved by copying its only digits, without reading the
# question. The question is the opening brace; the answers are the digits after the capital.
#
# ```{literalinclude} ../../sepnb/evaluation/tasks/needle.py
# :pyobject: needle
# :start-at: inside =
# :end-at: asks =
# :dedent:
# ```
#
# Here is a text of the kind, made from source code that is at hand without a download. Brackets mark the digits that
# answer.

# %%
library = texts.load("sympy").train
documents = b"".join(one.data.tobytes() for one in library.documents[:20])
plain = bytes(byte for byte in documents if 31 < byte < 127)
hay = np.frombuffer(plain.translate(bytes.maketrans(b"{}", b"()")), np.uint8)


def as_text(samples, row=0):
    """A sample as characters, the digits that answer in brackets."""
    sources = set(samples.source[row][samples.scored[row]].tolist())
    line = [
        f"[{chr(byte)}]" if at in sources else chr(byte)
        for at, byte in enumerate(samples.tokens[row].tolist())
    ]
    return "".join(line)


print(as_text(needle(hay, 1, 160, seed=seed, depth=0.5)))

# %% [markdown]
# ## An independent reader
#
# A reader that is given the characters alone looks for the needle with the right capital. It must agree with the generator, at
# every depth.


# %%
def digits_of(text, name):
    """The digits of the first needle of this name."""
    return re.search(r"\{" + name + r"(\d\d\d)\}", text)[1]


right = []
for depth in (0, 0.3, 0.7, 1):
    samples = needle(hay, 50, 200, seed=seed, depth=depth)
    for tokens, targets, scored in zip(
        samples.tokens, samples.targets, samples.scored, strict=True
    ):
        text = bytes(tokens.tolist()).decode("ascii")
        at = int(scored.argmax())  # the capital of the question
        said = bytes(targets[scored].tolist()).decode("ascii")
        right.append(digits_of(text, text[at]) == said)
numbers["reader"] = float(np.mean(right))
assert all(right)
print(f"{len(right)} questions, the reader agrees in {np.mean(right):.0%}")

# %% [markdown]
# ## What a guess finds
#
# Chance is far above zero, and it depends on how the guess is made. Any digit is right in one case of ten. The commonest digit of
# the needles does better, and naming the digit of any of the four needles at the same place better still, since one of four is
# the right needle. By hand: a quarter, and a tenth of the other three quarters.

# %%
samples = needle(hay, 4000, 128, seed=seed)
numbers |= {
    f"guess_{name.replace(' ', '_')}": level for name, level in samples.chance.items()
}
by_hand = 1 / 4 + 3 / 4 / 10
print({name: round(level, 3) for name, level in samples.chance.items()}, by_hand)
assert abs(samples.chance["random source"] - by_hand) < 0.01

# %% [markdown]
# A model that finds {num}`18_needle/guess_random_source:.0%` of the digits has found nothing. A map of the common kind, whose
# colours begin at zero, would show this as a third of the way.
#
# ## How to read a map
#
# `grid` reads any callable from tokens to logits. Two readers that are written and not trained show the ends of what a map can
# look like: one knows every needle, the other only those among its last bytes.


# %%
def finder(tokens, window):
    """Logits of a reader that finds a needle whose digits stand in its window."""
    logits = torch.zeros(*tokens.shape, 256)
    for row, line in enumerate(tokens.tolist()):
        text = bytes(line).decode("ascii")
        asked = text.rindex("{")  # the question: a brace, a capital, two digits
        first = text.index(text[asked : asked + 2])
        for step in range(1, 4):
            if asked + step - (first + step + 1) < window:
                logits[row, asked + step, line[first + step + 1]] = 1.0
    return logits


L = 64
task = partial(needle, hay)
lengths = [L * times for times in answers.TIMES]
seen = {
    window: grid(partial(finder, window=window), task, lengths=lengths, n=10, seed=seed)
    for window in (10**6, L)
}
numbers["window_finder_8x"] = float(seen[L].query("length == 8 * @L").accuracy.mean())
assert (seen[10**6].accuracy == 1).all()
table_of = seen[L].pivot_table(index="depth", columns="length", values="accuracy")
print(table_of.round(2).to_string())

# %% [markdown]
# Behind a window the map is a wedge along the bottom: only what stands among the last bytes is found, and that is a smaller
# part of a longer text. A trained model with such a map does not use its long context. The rule of *uses* therefore asks what
# the same model finds behind a window of $L$, and counts only answers that stand four to eight trained lengths back.
#
# ## Who uses a needle far back
#
# Context extensions are given the factor of each length.

# %% tags=["hide-input"]
LEARNED_ROWS = ("learned", "separated-learned", "strict-learned")
figures.show_table(
    shown.uses_table(table, [one for one in methods if one not in LEARNED_ROWS]),
    caption="Does the method use a needle that stands 4L to 8L back, in texts of 8L? "
    "Digits found, means over seeds and 95 % t intervals. Held: it does. Not "
    "testable: it has not learned the task, or its window finds more than a guess.",
)
figures.provenance(table)

# %% tags=["hide-cell"]
figures.show_table(
    shown.uses_table(table, LEARNED_ROWS),
    caption="Learned tables, by the rule for what lies past L.",
)

# %% [markdown]
# The sinusoid that is added to tokens was trained at the rate that one seed preferred, and is unstable there: inside the trained
# length it finds {num}`needle/sinusoidal/accuracy/native/1x:.2f±` of the digits. So the rule cannot read what it does in longer texts.
#
# ## The dense twin beside every separated model
#
# Position gaps, as in PoSE {cite:p}`zhu2024`, show a model the distances of long texts in short ones. If they carry the needle, a dense
# model trained with them finds it too, and nothing is due to separation.

# %% tags=["hide-input"]
figures.show_table(
    shown.twins_table(table, methods),
    caption="Needle digits found 4L to 8L back, by what was changed against the plain "
    "model. Means over seeds and 95 % t intervals; a dash: there is no such model.",
)
figures.provenance(table)

# %% [markdown]
# ## By length, and how soon it is learned

# %% tags=["hide-input"]
DRAWN = (
    *("none", "rope", "alibi", "rope-gap", "sinusoidal-content-gap"),
    *("separated-content-gap", "separated-randomised"),
)
YARN = {"label": "RoPE, YaRN", "linestyle": DASHED}
fig, axes = plt.subplots(2, 1, figsize=(7.6, 6.6))
answers.by_length(axes[0], table, [*DRAWN, "rope:yarn"], {"rope:yarn": YARN})
longer = experiments.get("needle").short_steps(profile)
answers.steps(axes[1], table, DRAWN, longer=longer)
figures.show(
    fig,
    name="fig-needle-lengths",
    alt="Above, the share of needle digits found against the length of the text, a "
    "line a method and thin ones for its seeds, dotted the best guess. Below, the "
    "steps until ninety-five in a hundred digits were found, a tick for each seed.",
    caption="Above: digits found by the length of the text; thin lines are seeds, "
    "dotted is the best guess. Below: steps until 95 % were found in texts of the "
    "length that is trained then, half of L up to the line; markers are medians.",
)
figures.provenance(table)

# %% [markdown]
# ## On a GPU: longer texts, larger models
#
# **What the term and the gaps carry, they carry with texts four times as long, in both models.** There training texts have 512 bytes,
# models four layers of width 128, and the asked texts up to 8,192 bytes. Three rates were tried of each method, the dense sinusoid's at three
# scales; of those that solved the task alike a model has the middle one. Of the digits that stand four to eight trained lengths back the
# separated model finds {num}`18_needle/gpu_separated:.1%`, the dense one {num}`18_needle/gpu_dense:.1%`.
#
# RoPE with the same gaps finds {num}`18_needle/gpu_rope:.1%`; {num}`18_needle/gpu_reached_rope` of its runs learned the task. Plain RoPE with
# the frequencies of YaRN, the strongest partner on the laptop, was not run on the GPU.
#
# It also takes longer to begin. The separated model finds ninety-five of a hundred digits after a median of
# {num}`18_needle/gpu_steps_separated:.0f` steps, the dense one after {num}`18_needle/gpu_steps_dense:.0f`, all while texts are short.
# Three seeds show a size, and no rule judges them.

# %% tags=["hide-input"]
LARGER = ("separated-content-gap", "sinusoidal-content-gap", "rope-gap")
gpu = experiments.get("needle").table("gpu")
on_gpu = RunTable(gpu)
curves = experiments.get("needle").rows("gpu", "learning")
fig, ax = plt.subplots(figsize=(7.6, 3.4))
answers.learning(ax, curves, LARGER)
figures.show(
    fig,
    name="fig-needle-gpu",
    alt="The share of needle digits found against the step of training, a line a "
    "method and thin ones for its three seeds. The separated and the dense model with "
    "content and gaps rise together to all digits within some hundred steps; RoPE with "
    "gaps stays below for a thousand or more, one of its seeds to the end.",
    caption="With the term both models learn within some hundred steps, RoPE with gaps "
    "alone much later. Digits found while models are trained on an H100, on held-out "
    "texts as long as those of training, half of L = 512 up to the line. Thin lines "
    "are seeds, thick ones their means."
    if len(curves)
    else "Not run at this profile.",
)
COLUMNS = {
    "inside": "accuracy/native/1x",
    "4L to 8L back": "far/native",
    "at most L back, of 8L": "near/native",
    "in texts of 16L": "accuracy/native/16x",
    "there, whole needles": "exact_match/native/16x",
}
figures.show_table(
    pd.DataFrame(
        {"method": figures.title(name)}
        | {head: on_gpu.text(name, column, ".2f") for head, column in COLUMNS.items()}
        for name in LARGER
    ),
    caption="Digits found by models trained on an H100, means over three seeds and "
    "95 % t intervals.",
)
for name, method in zip(("separated", "dense", "rope"), LARGER, strict=True):
    digits, reached = (
        on_gpu.values(method, column) for column in ("far/native", "steps_to_0.95")
    )
    numbers[f"gpu_{name}"] = chapter_numbers.mean_of(digits)
    near = on_gpu.values(method, "near/native")
    numbers[f"gpu_near_{name}"] = chapter_numbers.mean_of(near)
    numbers[f"gpu_steps_{name}"] = chapter_numbers.mean_of([reached.median()])
    numbers[f"gpu_reached_{name}"] = f"{len(reached)} of {len(digits)}"
if len(on_gpu.made):  # what is said
    assert numbers["gpu_separated"] >= numbers["gpu_dense"] > numbers["gpu_rope"]
    assert numbers["gpu_near_separated"] >= numbers["gpu_near_dense"]
    assert numbers["gpu_steps_rope"] > 2 * numbers["gpu_steps_dense"]
figures.provenance(gpu)

# %% [markdown]
# ## The map of every method
#
# Choose a method and a way to read it. The list holds all that was run.

# %% tags=["hide-input"]
found = {
    figures.title(method): {
        shown.READINGS.get(reader, reader): answers.cells(rows, method, reader)
        for reader in [*shown.readings(table, method), "window"]
    }
    for method in methods
}
chooser.show(
    found,
    chance=chance,
    name="map-needle",
    alt="A list of methods and a table of digits found by length and depth of the one "
    "that is chosen.",
    instead="the first figure of this page, for eight of the methods",
)
figures.provenance(table)

# %% [markdown]
# ## Verdicts
#
# The article on extending contexts says of the needle test that baseline models struggle beyond their trained length, that
# approximate attention, here a sliding window, does slightly better, most of all near the end, and that scaled frequencies improve much.

# %% tags=["hide-input"]
IDS = [one.id for one in claims.CLAIMS if one.needs == ("experiment/needle",)]
numbers |= evidence.show(
    claims.judge(IDS, {"experiment/needle": table}),
    caption="The claims of this chapter. The rules of use and of what voids a "
    "comparison were changed after these records; the one at equal parameters was "
    "asked after those of the dense twin.",
)
figures.provenance(table)

# %% [markdown]
# ## What to take away
#
# 1. Baselines struggle beyond their trained length: *{num}`18_needle/verdict_needle_baselines_struggle`*. A window does
#    better, most of all near the end: *{num}`18_needle/verdict_needle_window_better_near_the_end`*.
# 2. Scaled frequencies find many more needles: *{num}`18_needle/verdict_needle_scaled_rope_improves`*. The NTK-based ones generalise to
#    eight trained lengths: *{num}`18_needle/verdict_needle_ntk_generalises`*.
# 3. A separated model finds distant needles, and its dense twin finds at least as many. Whether the separated model *uses* its text is
#    *{num}`18_needle/verdict_needle_a_separated_model_uses`*, because it loses needles near the question. A separated model finds more far
#    back than its dense twins: *{num}`18_needle/verdict_needle_separation_finds_more`*, by the one pair of which both learned the task.
#    Dense twins do as well: *{num}`18_needle/verdict_needle_dense_twins_do_as_well`*, since RoPE with the same gaps finds fewer. The dense
#    sinusoid with the same term does as well as a separated model of its size:
#    *{num}`18_needle/verdict_needle_dense_twin_does_as_well_at_equal_parameters`*.
#
# **Limits.** Needles are of one form, and training shows the same form: this measures whether a model can reach far back,
# not whether it understands what it reads. Texts have at most 2,048 bytes, and models less than a million parameters. The article
# speaks of large models and of tens of thousands of tokens.
#
# ## Exercises
#
# **1. (easy)** How often is the whole answer, three digits, right by naming a random one of the four needles?

# %% tags=["hide-cell"]
# Solution. A quarter, and hardly more by luck: far above the cube of the chance of one
# digit, since the digits of a needle are right or wrong together.
whole = 1 / 4 + 3 / 4 / 1000
print(f"{whole:.3f} against {by_hand**3:.3f}")
assert whole > by_hand**3

# %% [markdown]
# **2. (medium)** Why must the haystack not hold a brace before a capital? What would the generator say?

# %% tags=["hide-cell"]
# Solution. It could be taken for a needle, and the question would have two answers.
try:
    needle(np.frombuffer(b"{K123} " * 40, np.uint8), 1, 100, seed=seed)
except ValueError as error:
    print(error)
else:
    raise AssertionError("it must refuse")

# %% [markdown]
# ---
# The next cell writes the numbers that this page's sentences, the {doc}`claims page </book/claims>` and the regression
# tests read.

# %% tags=["hide-cell"]
chapter_numbers.publish("18_needle", numbers, profile=profile)

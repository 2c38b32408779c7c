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
# # 23. The scoreboard
#
# ```{scoreboard-finding}
# ```
#
# The table of methods asks four things of each: does it *survive* past its trained length, does it *use* what
# lies there, does it
# read it with the *quality* of RoPE behind a window, and what is its *price* inside?
#
# ```{verdict-table}
# ```
#
# *Survives*: at most 0.03 bits per byte above its own sliding window, in every bin to eight trained lengths. *Quality*: at <!-- given: the bounds of the table -->
# most 0.02 above RoPE behind a window in the last bin. *Price*: at most 0.03 above the method it varies, inside the trained <!-- given: the bounds of the table -->
# length; of a dense model with the content-to-position term, above the dense sinusoid; of separated and strict, above the dense model with
# the same encoding.
#
# Numbers are means over six seeds in bits per byte, of survival those of the last bin; below zero is better.
# *Uses* is judged
# by tasks, each in its own chapter, over far answers and over all; novels can show no more than surviving, since these models hardly gain
# from context beyond eight bytes. *Not learned* is a task that is not solved inside the trained length, so that
# longer texts say nothing. *Open* is what six seeds do not decide, a dash what was not run; the loss of YaRN is in
# {doc}`chapter 6 <06_longer_contexts>`, by other rules. The bounds of survival, quality and price are those
# of {doc}`chapter 12 <12_what_works>`, and were put together here after its records.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sepnb import claims, experiments
from sepnb.claims.asks import Ask
from sepnb.claims.evidence import judge
from sepnb.claims.recipes import BEST
from sepnb.extrapolators import SOURCE_METHODS
from sepnb.plots import answers, figures
from sepnb.plots.shapes import DASHED
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable

figures.use_style()
numbers = {}

# %% tags=["hide-input"]
names = ("recipes", "extrapolation", "mqar")
tables = {name: experiments.get(name).table(profile) for name in names}
ROPE, TRAINED = figures.METHODS["rope"], figures.METHODS["separated-content-gap"]
READ = {
    "RoPE": ("recipes", "rope:native", ROPE.line()),
    "RoPE, window of L": ("recipes", "rope:native-window", ROPE.line(linestyle=DASHED)),
    "ALiBi": ("extrapolation", "alibi:native", figures.METHODS["alibi"].line()),
    "separated, trained far": ("recipes", f"{BEST}:native", TRAINED.line()),
    "dense, trained far": (
        *("recipes", "dense-phase-gaps:native"),
        {"color": figures.INK, "linestyle": DASHED},
    ),
}
PLACES = ("1x", "2x", "4x", "8x")


def losses(experiment, line):
    """Bits per byte up to each place, means over seeds; NaN of what was not run."""
    method, reading = line.split(":")
    of = RunTable(tables[experiment])
    return np.array([of.mean(method, f"{reading}/{place}") for place in PLACES])


five = [losses("extrapolation", f"separated-learned:{one}") for one in SOURCE_METHODS]
x = range(len(PLACES))
fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.7))
if np.isfinite(five).any():
    blue = figures.METHODS["separated-learned"].colour
    lowest, highest = np.min(five, axis=0), np.max(five, axis=0)
    left.fill_between(x, lowest, highest, color=blue, alpha=0.25, linewidth=0)
    left.plot(x, (lowest + highest) / 2, color=blue, alpha=0, label="the five rules")
    for label, (experiment, line, look) in READ.items():
        left.plot(
            x, losses(experiment, line), **look | {"label": label, "markersize": 4}
        )
    figures.label_lines(left, fontsize=8.5)
else:
    figures.not_run(left)
left.set_xticks(x, ["to L", "to 2L", "to 4L", "to 8L"])
left.set(xlabel="position in the text", ylabel="bits per byte")
left.set_title("predicting the next byte")
YARN = {"label": "RoPE, YaRN", "linestyle": DASHED}
ASKED = ("rope", "rope:yarn", "separated-randomised", "sinusoidal-randomised")
answers.by_length(right, tables["mqar"], ASKED, {"rope:yarn": YARN})
right.set_title("recalling a value")
found = RunTable(tables["mqar"])
told = {name: f"{found.mean(name, 'far/native'):.1%}" for name in ASKED[2:]}
figures.show(
    fig,
    name="fig-read-further",
    alt="Left: bits per byte by position up to eight trained lengths. RoPE and the "
    "five rules rise to more than four and a half; RoPE behind a window, ALiBi and the "
    "two models trained for it stay level. Right: recalled values by length of the "
    "text up to sixteen trained lengths. RoPE falls to a guess; RoPE with YaRN and the "
    "separated model at random positions stay near one.",
    caption="In text, reading past the trained length L needs training for it or a "
    "changed score, not separation. Left: the rules that continue a position fail; the "
    "separated model that was trained at far distances does not, nor does a dense one "
    "trained likewise. Right: values recalled in longer texts. Of those four to eight "
    "lengths back the separated model "
    f"at random positions finds {told['separated-randomised']}, the dense one "
    f"{told['sinusoidal-randomised']}. Means over seeds; thin lines are seeds."
    if np.isfinite(five).any() and len(found.made)
    else "Not run yet: the records of the experiments are missing at this profile.",
)
figures.provenance(*tables.values())

# %% [markdown]
# **The question.** What is left of every statement of the four sources, once it has been put to a test that
# it could fail?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: a few seconds of one CPU core. Nothing is trained or downloaded; the tables read the records of
#   all experiments.
# - **You need**: nothing. Each row links to the claim with its rule, and to the chapter that made the
#   records.
# - **You will learn**: how a verdict is computed, and what became of each statement.
# ```
#
# ## How a verdict comes about
#
# Nobody types a verdict. A claim asks whether differences lie inside bounds that were written before its
# records. The seeds are the
# sample: runs of one seed are paired, and a t test over the pairs decides, corrected over all comparisons of
# the claim. Here is one
# judged by hand, with losses that were made up:

# %%
losses = {
    "ours": [2.41, 2.40, 2.43, 2.39, 2.42, 2.41],
    "theirs": [2.46, 2.44, 2.47, 2.46, 2.45, 2.46],
}
table = pd.DataFrame(
    {"method": name, "seed": seed, "status": "ok", "bits_per_byte": loss}
    for name, of_seeds in losses.items()
    for seed, loss in enumerate(of_seeds, 1)
)
better = [Ask("ours", "theirs", high=0.0)]
verdict = judge(table, better).of_ours()
print(verdict.word, "|", verdict.detail)
apart = np.subtract(losses["ours"], losses["theirs"])
assert np.isclose(verdict.numbers["ours minus theirs"], apart.mean())
assert verdict.word == "held"
numbers["invented_difference"] = float(apart.mean())

# %% [markdown]
# Three seeds of the same losses decide nothing, and a margin that the difference straddles stays open:

# %%
few = judge(table[table.seed <= 3], better).of_ours()
close = judge(table, [Ask("ours", "theirs", high=-0.045)]).of_ours()
print(few.word, "|", few.detail)
print(close.word, "|", close.detail)
assert (few.word, close.word) == ("not judged", "undecided")

# %% [markdown]
# ## What the sources say
#
# Every statement was written down before it was known whether it could be tested. Many are definitions, which
# a chapter builds. Some no
# experiment could decide. The rest are claims.

# %% tags=["hide-input"]
found = claims.source_map()
kinds = ("claim", "chapter", "page", "not-empirical")
heads = ("judged", "built", "measured", "not empirical")
counts = {
    one.title: Counter(said.kind for said in one.statements) for one in found.documents
}
rows = [[title, *(count[kind] for kind in kinds)] for title, count in counts.items()]
figures.show_table(
    pd.DataFrame(rows, columns=["source", *heads]),
    caption="Statements by what becomes of them: judged by a claim, built or explained "
    "in a chapter, measured by a table of the build, or not empirical.",
)
numbers["statements"] = len(found.statements)

# %% [markdown]
# ## Statement by statement
#
# The words of the verdicts are explained on the page of {doc}`claims </book/claims>`. *Why* names the claim,
# which has the rule, its
# commit and its records; of a family of comparisons it counts how many hold, fail, or stay open.
#
# ```{scoreboard}
# ```
#
# ## What to take away
#
# 1. **A statement that could have failed is worth more than one that could not.** Most statements of the
#    sources are definitions; those that could be put to a
#    test are in the tables above, whatever came out.
# 2. **A refutation is one of scale.** *Not reproduced* says that models of this size, on these texts,
#    contradict the statement. It does not
#    say what a larger model does.
#
# **Limits.** Whoever writes a rule chooses what counts. Rules are printed with their commits, so that you can
# disagree with one.
#
# **What would change our mind.** A record that can be replayed, and under a rule that is older than it says
# otherwise.
#
# ## Exercise
#
# **1. (easy)** With how many seeds can a two-sided sign test at five per cent decide anything at all? <!-- given: the level of the exercise -->

# %% tags=["hide-cell"]
# Solution. If all n differences have one sign, p = 2 / 2^n: below 0.05 from n = 6 on.
smallest = next(n for n in range(1, 20) if 2 / 2**n < 0.05)
print(f"{smallest} seeds")
assert smallest == 6

# %% [markdown]
# ---
# The next cell writes the numbers that this page's sentences and the regression tests read.

# %% tags=["hide-cell"]
chapter_numbers.publish("23_scoreboard", numbers, profile=profile)

# %% [markdown]
# # 19. Is far text used?
#
# **Finding.** Small models can find a fact far back in a long text, and they need no position dimensions for it. RoPE, read with the
# frequencies of YaRN and not trained any further, finds {num}`needle/rope/far/yarn:.0%` of the *needles* (facts hidden in a long text) that
# are four to eight trained lengths back. It also finds nearly all answers of two further tasks, recall and the latest value. Without YaRN
# the same weights find {num}`needle/rope/far/native:.0%` of the needles. So the model had learned to search, but could not do it at new
# distances. Familiar distances alone are not enough: with position interpolation it finds {num}`needle/rope/far/interpolation:.0%`.
#
# A model can also be trained for far distances. A *separated* model keeps position and content in different columns. Trained with gaps
# between positions, and with a term in its scores that lets content choose a distance (the content-to-position term), it finds
# {num}`needle/separated-content-gap/far/native:.0%` of these needles, but only {num}`needle/separated-content-gap/near/native:.0%` of those
# in the last trained length. Its dense twin, which adds position to content, finds {num}`needle/sinusoidal-content-gap/far/native:.0%`. So
# separation does not help here. We had claimed that it would ({verdict}`needle-separation-finds-more: refuted`).
#
# **The doubt.** Finding a name is not the same as understanding a text. No model here reliably answers questions about a story from that
# far back, and RoPE with YaRN does no better than a guess ({num}`questions/rope/far/yarn:.0%`).

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
from collections import Counter
from functools import partial
from itertools import pairwise
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

from sepnb import experiments
from sepnb.companion.evidence import recall_shown as shown
from sepnb.data import babi
from sepnb.data import text as texts
from sepnb.evaluation.tasks import (
    indirect_index,
    latest_value,
    mqar,
    needle,
    questions,
)
from sepnb.plots import answers, chooser, figures
from sepnb.plots.shapes import DASHED
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import NOT_RUN, RunTable

figures.use_style()
TITLES = {
    "needle": "Needles",
    "mqar": "Recall",
    "latest_value": "The latest value",
    "questions": "Questions",
    "indirect_index": "Some places from a name",
}
tasks = {name: experiments.get(name) for name in TITLES}
tables = {name: task.table(profile) for name, task in tasks.items()}
of = {name: RunTable(table) for name, table in tables.items()}
gpu = tasks["needle"].table("gpu")
counted = {
    f"{name}_{word}": count
    for name, task in tasks.items()
    for word, count in shown.counted(tables[name], task.methods).items()
}
QUOTED = "needle_learned needle_uses mqar_uses latest_value_learned questions_learned"
numbers = {name: counted[name] for name in QUOTED.split()}
FAR = "far/native"
YARN = {"label": "RoPE, YaRN", "linestyle": DASHED}


SHARED = {
    "RoPE": ("rope", "native"),
    "RoPE, only the last L tokens": ("rope", "window"),
    "RoPE, YaRN": ("rope", "yarn"),
    "ALiBi": ("alibi", "native"),
}


def chance(name):
    """The best guess in a task, by the length of the text."""
    return {times: answers.best_guess(tables[name], times) for times in answers.TIMES}


def maps(name, own, *, what, seen, caption):
    """Maps by length and depth: of the shared models, then of the task's own."""
    rows = tasks[name].rows(profile, "depth")
    figures.show(
        answers.maps(rows, SHARED | own, chance=chance(name)),
        name=f"fig-{name}-maps",
        alt=f"Maps of the share of {what}, by the length of the text from one to "
        "sixteen trained lengths and by the depth of the answer, a panel a method; "
        f"cells that are no better than a guess are hatched. {seen}",
        caption=f"{caption} Cells are shares in %, means over seeds, by the length of "
        "the text in trained lengths L and the depth of the answer, from the start of "
        "the text (above) to its end. Hatched: no better than the best guess. A model "
        "that uses only its last tokens leaves a wedge along the bottom.",
    )


# %% tags=["hide-input"]
FOUR = [name for name in TITLES if name != "indirect_index"]
trained_far = {
    name: "content-gap" if name == "needle" else "randomised" for name in FOUR
}
ROWS = {
    "RoPE": ("rope", "native"),
    "RoPE, read with YaRN": ("rope", "yarn"),
    "ALiBi": ("alibi", "native"),
    "dense, far positions": ("sinusoidal-{}", "native"),
    "separated, far positions": ("separated-{}", "native"),
}
HEIGHTS = range(len(ROWS))[::-1]
ground = {"facecolor": figures.GROUND, "edgecolor": "none", "pad": 1}
fig, axes = plt.subplots(1, 4, figsize=(9.2, 2.3), sharey=True)
for ax, name in zip(axes, FOUR, strict=True):
    rows = {}
    for height, (label, (method, reader)) in zip(HEIGHTS, ROWS.items(), strict=True):
        method = method.format(trained_far[name])
        values = of[name].values(method, f"far/{reader}")
        if shown.is_learned(tables[name], method) == "no":
            ax.text(0.04, height, "not learned", va="center", fontsize=9, bbox=ground)
            values = []
        rows[label] = [(values, figures.METHODS[method])]
    figures.seed_rows(ax, rows, size=6)
    ax.axvline(chance(name)[8], color=figures.FAINT, linestyle=":", zorder=0.5)
    ax.set(xlim=(-0.03, 1.05), xticks=(0, 0.5, 1), xticklabels=("0", "50 %", "100 %"))
    ax.set_title(TITLES[name], fontsize=10.5)
    ax.tick_params(axis="y", labelsize=9)
    if of[name].made.empty:
        figures.not_run(ax)
figures.show(
    fig,
    name="fig-far-found",
    alt="Four panels, one a task, with a row for each of five models: the share of "
    "answers found four to eight trained lengths back. RoPE as trained finds few. "
    "Read with YaRN it finds nearly all needles, recalled values and latest values. "
    "Models trained for far positions find needles and recalled values. In questions "
    "all rows are near the dotted line of a guess.",
    caption="RoPE finds answers four to eight trained lengths back if it is read with "
    "YaRN, but not those of questions about a story, where all means are near a guess. "
    "Texts are eight trained lengths long. Ticks are seeds, markers means, bars 95 % t "
    "intervals; dotted is the best guess. Rows named far positions were trained with "
    "gaps and a content-to-position term for needles, and at random positions for the "
    "other tasks.",
)

# %% [markdown]
# > **Question.** A model was trained on short texts. Now it reads a long one in which the answer is far back. Does it find the answer, or
# > does it only keep a low loss?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 15 s of one CPU core; nothing is downloaded. The records:
#   `sepnb run needle mqar latest_value indirect_index questions`, each after its learning-rate sweep. A run takes one to four minutes; the
#   texts are ELTeC and bAbI (`sepnb data eltec-eng babi`).
# - **You need**: {doc}`chapter 6 <06_longer_contexts>` for context extensions and the window, {doc}`far distances <93_far_distances>` for
#   random positions, position gaps and the content-to-position term, {doc}`chapter 18 <18_seqpe_stream>` for SeqPE.
# - **You will learn**: how a needle is hidden and scored, what a guess finds, why a task must be learned before its failure means anything,
#   and why every separated model needs a dense twin.
# - **Claims tested**: those on these tasks are on {doc}`the claims page </book/claims>`.
# ```
#
# The loss cannot tell whether far text is used, because far text hardly helps in novels ({doc}`chapter 12 <12_extrapolators>`). A task can
# tell, because we know where its answer is. In this chapter a method *uses* far text if
#
# 1. it has learned the task: inside the trained length $L$ it finds at least ninety-five percent of the answers;
# 2. in texts of $8L$ it finds at least ninety percent of the answers that are $4L$ to $8L$ back, and at least ninety percent of all
#    answers;
# 3. if it attends only to the last $L$ tokens, it finds at most three points more of the far answers than the best guess does.
#
# All three must hold on average and in five of six seeds. Use is *refuted* if a test over the seeds puts one of the shares of condition 2
# below ninety percent (one-sided, with Holm's correction for the two shares). We added the share of all answers after the records had been
# made. The earlier rule asked only for the far answers.
#
# ## Needle in a haystack
#
# **Models find most of the distant needles if they are read with YaRN or trained with gaps. Gaps work best together with a
# content-to-position term.** YaRN needs no training. *Gaps* are jumps in the positions of short training texts, so that the model meets the
# distances of long texts. The *content-to-position term* lets the content of a query choose a distance; here it is used together with a
# sinusoid of short period.

# %% tags=["hide-input"]
maps(
    "needle",
    {
        "RoPE, gaps": ("rope-gap", "native"),
        "dense, gaps": ("sinusoidal-gap", "native"),
        "dense, content and gaps": ("sinusoidal-content-gap", "native"),
        "separated, content and gaps": ("separated-content-gap", "native"),
    },
    what="needle digits found",
    seen="RoPE without changes keeps the end of long texts only; with YaRN, or trained "
    "with gaps, most cells are found, and nearly all by the dense model with content "
    "and gaps.",
    caption="RoPE keeps only the end of long texts. With YaRN, or with gaps in "
    "training, models find most needles at any depth.",
)

# %% [markdown]
# **Separation is not what helps.** The dense twin of the separated model does as well, and RoPE with gaps, which lacks the term, finds
# fewer needles ({verdict}`needle-dense-twins-do-as-well: partly`). The twin has more parameters. But a separated model as large as the twin
# finds no more far needles than the smaller one, and the twin still does as well
# ({verdict}`needle-dense-twin-does-as-well-at-equal-parameters: held`).
#
# Gaps alone do much of the work. Without the term {num}`19_far_text/gap_learned_separated` separated runs learn the task, and with it every
# run does; so few runs decide nothing. Altogether {num}`19_far_text/needle_learned` learned the task, and {num}`19_far_text/needle_uses`
# uses far needles when read without changes. RoPE with YaRN finds more than ninety percent of them, but six seeds leave open whether it
# meets all three conditions.

# %% tags=["hide-input"]
SMALL = {
    "separated, content and gaps": "separated-content-gap",
    "the same, as large as the dense one": "separated-content-gap-wide",
    "dense, content and gaps": "sinusoidal-content-gap",
    "RoPE, gaps": "rope-gap",
    "dense, gaps": "sinusoidal-gap",
}
FOUND = {"4L to 8L back": "{}:far/native", "last L": "{}:near/native"}
on_gpu = RunTable(gpu)
small, larger = (
    made.grid(SMALL, {f"{size}: {head}": one for head, one in FOUND.items()}, ".2f")
    for size, made in {"small": of["needle"], "larger": on_gpu}.items()
)
figures.show_table(
    small.merge(larger, on="method"),
    caption="The small separated model misses needles near the end of a text; the "
    "larger one does not. Share of digits found in texts of 8L, by how far "
    "back they are: the small models of this page in six seeds, the larger "
    "ones (four layers of width 128, trained on texts of 512 bytes) in three. "
    "Means over seeds and 95 % t intervals.",
)
without = of["needle"].values("separated-gap", "accuracy/native/1x")
numbers["gap_learned_separated"] = f"{(without >= 0.95).sum()} of {len(without)}"

# %% [markdown]
# **The doubt: near needles.** In texts of $8L$ the separated model misses needles in the *last* $L$. It finds
# {num}`needle/separated-content-gap/near/native:.0%` of them, its dense twin {num}`needle/sinusoidal-content-gap/near/native:.0%`, and RoPE
# trained with position gaps {num}`needle/rope-gap/near/native:.0%`. So six seeds leave open whether the separated model meets our
# definition of using far text ({verdict}`needle-a-separated-model-uses: undecided`). The larger separated model does not miss near needles,
# but its runs are exploratory, with three seeds and without YaRN.
#
# Our sources say four things about needles:
#
# - Baselines struggle beyond their trained length ({verdict}`needle-baselines-struggle: reproduced`).
# - RoPE with a window finds a few more needles than without one, most of all near the end of the text
#   ({verdict}`needle-window-better-near-the-end: reproduced`).
# - RoPE with scaled frequencies finds many more needles ({verdict}`needle-scaled-rope-improves: partly`). Here it does with every rule
#   except position interpolation.
# - NTK-based rules generalise to longer texts ({verdict}`needle-ntk-generalises: undecided`). Two of the three rules do not; for YaRN it is
#   open.
#
# Here you can compare any two methods, and any two ways of reading them:

# %% tags=["hide-input"]
depths = tasks["needle"].rows(profile, "depth")
cells = {
    figures.title(method): {
        shown.READINGS.get(reader, reader): answers.cells(depths, method, reader)
        for reader in [*shown.readings(tables["needle"], method), "window"]
    }
    for method in tasks["needle"].methods
}
chooser.show(
    cells,
    chance=chance("needle"),
    name="map-needle",
    alt="Two lists of methods, and under each a table of the digits found by the one "
    "that is chosen, by length of the text and depth of the needle.",
    instead="the maps of eight methods above",
    chosen=("sinusoidal, content and gaps: as trained", "RoPE: YaRN"),
)

# %% [markdown]
# ### How a needle is hidden
#
# The test became known through the maps of Kamradt {cite:p}`kamradt2023`: one sentence is put into a long text of another kind, and the
# model is asked for it. Our tiny models read bytes, so a needle here is a capital and three digits in braces, hidden in novels that
# training never saw. Each text holds four needles, because with one needle a model could copy the only digits without reading the question.
#
# `needle` draws the places of the needles; the question repeats the start of one needle:
#
# ```{literalinclude} ../../sepnb/evaluation/tasks/needle.py
# :pyobject: needle
# :start-at: inside =
# :end-at: whole =
# :dedent:
# ```
#
# Here is such a text, made from source code. Brackets mark the digits that are the answer.

# %%
library = texts.load("sympy").train
code = b"".join(one.data.tobytes() for one in library.documents[:20])
plain = bytes(byte for byte in code if 31 < byte < 127)
hay = np.frombuffer(plain.translate(bytes.maketrans(b"{}", b"()")), np.uint8)


def as_text(samples, words, between=" "):
    """The first sample in words: sources in brackets, answers after arrows."""
    sources = set(samples.source[0][samples.scored[0]].tolist())
    line = []
    for i, token in enumerate(samples.tokens[0].tolist()):
        line.append(f"[{words[token]}]" if i in sources else words[token])
        if between and samples.scored[0, i]:
            line[-1] += f"→{words[samples.targets[0, i]]}"
    return between.join(line)


BYTES = [chr(byte) for byte in range(256)]
sample = needle(hay, 1, 160, seed=seed, depth=0.5)
print(as_text(sample, BYTES, between=""))

# %% [markdown]
# ### How it is scored
#
# Only the three digits are scored. The model predicts them at the capital of the question and at the first two digits. `source` says where
# in the text it had to look.

# %%
for at in np.flatnonzero(sample.scored[0]):
    read, right, source = (
        each[0, at] for each in (sample.tokens, sample.targets, sample.source)
    )
    print(f"at {chr(read)}: right is {chr(right)}, which is {at - source} bytes back")
    assert sample.tokens[0, source] == right

# %% [markdown]
# **By hand: what does a guess find?** A random digit is right one time in ten. It is better to name the digits of one of the four needles
# at random. A quarter of the time it is the right needle, and otherwise a digit is still right by luck one time in ten:
# $\tfrac14 + \tfrac34 \cdot \tfrac1{10}$.

# %%
samples = needle(hay, 4000, 128, seed=seed)
numbers["guess_random_source"] = samples.chance["random source"]
by_hand = 1 / 4 + 3 / 4 / 10
print({name: round(level, 3) for name, level in samples.chance.items()}, by_hand)
assert abs(samples.chance["random source"] - by_hand) < 0.01

# %% [markdown]
# A model that finds {num}`19_far_text/guess_random_source:.0%` of the digits does no better than this guess.
#
# ## Recall and the latest value
#
# **Training at far positions teaches recall. The latest of several values is harder.** In *recall* {cite:p}`arora2023` a text holds noise
# and keys, each followed by its value; at the end the model is asked for the value of each key. In *the latest value* a key is written
# several times, and only its last value is right, so order matters.
#
# The separated model with the content-to-position term, trained with position gaps, recalls
# {num}`mqar/separated-content-gap/far/native:.1%` of the far values and meets our rule for using far text
# ({verdict}`mqar-a-separated-model-uses: held`). The separated model that was trained at *random positions* (the tokens of a text, in
# training and in reading, get increasing positions, drawn at random from a range 32 times as long as a training text) recalls
# {num}`mqar/separated-randomised/far/native:.1%`. It finds {num}`latest_value/separated-randomised/far/native:.0%` of the far latest
# values.
#
# We had expected a separated model to use far latest values too ({verdict}`latest-value-a-separated-model-uses: refuted`). Without changes
# at reading time no method uses them, although {num}`19_far_text/latest_value_learned` learned the task. In recall,
# {num}`19_far_text/mqar_uses` use far values without changes. Only RoPE with the frequencies of YaRN or of Llama 3 (two ways to slow it
# down, {doc}`chapter 6 <06_longer_contexts>`) uses far values in both tasks.

# %% tags=["hide-input"]
DRAWN = (
    *("rope", "rope:yarn", "alibi", "rope-gap", "separated-gap"),
    *("sinusoidal-randomised", "separated-randomised"),
)
fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.7))
for ax, name in zip(axes, ("mqar", "latest_value"), strict=True):
    answers.by_length(ax, tables[name], DRAWN, {"rope:yarn": YARN})
    ax.set_title(TITLES[name])
figures.show(
    fig,
    name="fig-what-lengths",
    alt="Share of answers found against the length of the text, up to sixteen trained "
    "lengths, for recall and for the latest value; one line a method, thin ones for "
    "its seeds, dotted the best guess.",
    caption="With YaRN, RoPE keeps solving both tasks up to sixteen trained lengths. "
    "Models trained at random positions keep recall better than the latest "
    "value. All answers of a text count, near and far. Thin lines are seeds, "
    "thick ones their means, dotted is the best guess that needs no position. "
    "If a line is low at 1, the task was not learned, and the line says "
    "nothing about longer texts.",
)

# %% [markdown]
# **Does separation help?** In recall this is open. In both pairs of models that learned recall, the separated model finds more far values
# than the dense sinusoid, by {num}`mqar/separated-gap minus sinusoidal-gap/far/native:.2f±` with gaps and by
# {num}`mqar/separated-randomised minus sinusoidal-randomised/far/native:.2f±` at random positions. The claim asks for a clear lead in every
# pair ({verdict}`mqar-separation-finds-more: undecided`). Whether RoPE with gaps recalls as many values is open as well.
#
# In the latest value only one pair of models learned the task, with the term and gaps. There the separated model finds more far values than
# its dense twin, {num}`latest_value/separated-content-gap/far/native:.0%` against
# {num}`latest_value/sinusoidal-content-gap/far/native:.0%`. Neither share is enough to count as use. With the term and random positions,
# the dense model finds more than either of them, but its separated twin did not learn the task, so this pair is not compared.
#
# **At random positions a separated model learns order in fewer steps than a dense one that adds the same sinusoid**
# ({verdict}`separation-learns-order-sooner: held`). Training begins with texts of half the length. By the end of this phase
# {num}`19_far_text/order_while_short_separated` separated runs find ninety-five percent of the latest values, and
# {num}`19_far_text/order_while_short_sinusoidal` runs of the dense sinusoid do. Exploratory: with the content-to-position term the lead is
# gone.
#
# **The doubt: a model can learn that large indices mean questions.** Trained at random positions, the separated model misses values *near*
# the question, because in training only questions had the highest indices ({verdict}`near-answers-are-lost-by-index: held`). In texts of
# $8L$ it finds {num}`mqar/separated-randomised/near/native:.0%` of them. If the same texts are read at positions from the lower three
# quarters of the range, it finds {num}`mqar/separated-randomised/near/lower:.0%`.
#
# A model without any encoding still recalls {num}`mqar/none/far/native:.0%` of the far values. We had expected it to recall as well as the
# strict model ({verdict}`recall-needs-no-position: refuted`).

# %% tags=["hide-cell"]
latest, half = tables["latest_value"], tasks["latest_value"].short_steps(profile)
for short in ("separated", "sinusoidal"):
    numbers[f"order_while_short_{short}"] = shown.learned_by(
        latest, [f"{short}-randomised"], half
    )

# %% [markdown]
# ### The two tasks as text
#
# One short function solves both tasks, because a later pair overwrites an earlier one. It must agree with every answer of the generators.


# %%
def vocabulary(**kinds):
    """A word for each id: kinds in the order of ids; of those named noise, a dot."""
    return [
        "." if kind == "noise" else f"{kind}{n}"
        for kind, count in kinds.items()
        for n in range(count)
    ]


def each_question(samples, words):
    """The words up to each question, and the right answer."""
    for row, at in np.argwhere(samples.scored).tolist():
        line = [words[token] for token in samples.tokens[row, : at + 1]]
        yield line, words[samples.targets[row, at]]


def written(words, key):
    """The values that were written for a key, in order."""
    return [b for a, b in pairwise(words) if a == key and b[0] == "v"]


MADE = {
    "mqar": (mqar, vocabulary(k=32, v=32, noise=16)),
    "latest_value": (latest_value, vocabulary(k=6, v=32, noise=16)),
}
for name, (task, words) in MADE.items():
    print(f"{TITLES[name]}: {as_text(task(1, 36, seed=seed), words)}")
    samples = task(100, 64, seed=seed)
    numbers[f"guess_{name}"] = max(samples.chance.values())
    for line, answer in each_question(samples, words):
        assert written(line, line[-1])[-1] == answer

# %% [markdown]
# In recall, a guess that names any value of the text is right in {num}`19_far_text/guess_mqar:.0%` of the questions. In the latest value, a
# guess that names any value of the right key is right in {num}`19_far_text/guess_latest_value:.0%`.
#
# ## What and where
#
# **A separated model can find most words that are a given number of places from a name.** Inside the trained length it finds
# {num}`indirect_index/separated-sinusoidal/accuracy/native/1x:.0%` of the answers. The dense sinusoid finds
# {num}`indirect_index/sinusoidal/accuracy/native/1x:.0%`, and RoPE {num}`indirect_index/rope/accuracy/native/1x:.0%`.
#
# The task, *indirect indexing* {cite:p}`gopalakrishnan2025`, asks for the word up to four places to the left or right of a name. The
# content of the name tells the model its place, another word gives the shift, and the answer is at place plus shift. In a separated model
# each MLP reads one stream. Place and shift are in different streams, so one would expect the model to fail.

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.6, 3.6))
mixed = [f"separated-sinusoidal{where}" for where in ("", "-wide", "-joint-mlp")]
learning = tasks["indirect_index"].rows(profile, "learning")
answers.learning(ax, learning, [*mixed, "sinusoidal", "rope"])
figures.show(
    fig,
    name="fig-what-places",
    alt="Share of answers found against the step of training, for models that mix the "
    "streams nowhere, in the MLP, or everywhere. The separated ones rise early and at "
    "once, the dense ones slowly; all but RoPE fall where texts become longer.",
    caption="Some runs of separated models find most answers early and suddenly; "
    "dense models improve slowly. Answers found on held-out texts "
    "as long as those of training at that step. Thin lines are seeds, thick "
    "ones their means.",
)

# %% [markdown]
# The seeds of one model differ by more than the means of the models do. So six seeds leave open whether the separated model does as well as
# the dense one, whether it does better than RoPE, and whether a joint MLP, which sees both streams, would help it.
#
# **The doubt: perhaps no model adds a shift to a place.** One head per distance could bring every name its neighbours, and the rest could
# be done by content. We did not look inside the models. By our first condition no model has learned the task, so nothing follows for longer
# texts.

# %%
SHIFTS = [f"{k:+d}" for k in (*range(-4, 0), *range(1, 5))]
PLACES = [*vocabulary(s=32, X=16), *SHIFTS]
print(as_text(indirect_index(1, 32, seed=seed), PLACES))
samples = indirect_index(100, 64, seed=seed)
for line, answer in each_question(samples, PLACES):
    place = line.index(line[-1]) + int(line[-2])
    assert line[place] == answer

# %% [markdown]
# ## Questions about a story
#
# **No model here uses a statement four trained lengths back or more.** For a needle the name is enough. For a question about a story, a
# model must also know who went where, and which move was the last. Even ALiBi, the best of the models read without changes, finds
# {num}`questions/alibi/far/native:.0%` of the answers $4L$ to $8L$ back, about as many as a guess. In the last $L$ ALiBi and SeqPE find
# {num}`questions/alibi/near/native:.0%`, and RoPE finds {num}`questions/rope/near/native:.0%`.

# %% tags=["hide-input"]
maps(
    "questions",
    {
        "RoPE, random positions": ("rope-randomised", "native"),
        "SeqPE, score": ("seqpe", "native"),
        "dense, random positions": ("sinusoidal-randomised", "native"),
        "separated, random positions": ("separated-randomised", "native"),
    },
    what="questions answered",
    seen="At sixteen lengths most are, except at the end for ALiBi and SeqPE.",
    caption="From eight trained lengths on, models answer no better than a guess, "
    "except near the end of a story with ALiBi, SeqPE or a window.",
)

# %% [markdown]
# Four claims say that a model uses far answers. All four fail, although {num}`19_far_text/questions_learned` learned the task:
#
# - A separated model uses far answers ({verdict}`questions-a-separated-model-uses: refuted`).
# - RoPE uses them ({verdict}`questions-rope-uses: refuted`).
# - RoPE with scaled frequencies uses them ({verdict}`questions-scaled-rope-uses: not reproduced`).
# - SeqPE uses them ({verdict}`questions-seqpe-uses: refuted`).
#
# It is open whether dense twins answer as well as the separated model: of the two dense models only RoPE learned the task.
#
# The abstract of SeqPE says that in long-context question answering it surpasses strong baselines in exact match
# ({verdict}`questions-seqpe-surpasses-strong-baselines: not reproduced`). In texts of $8L$ our SeqPE answers
# {num}`questions/seqpe/accuracy/native/8x:.0%` of all questions, fewer than ALiBi ({num}`questions/alibi/accuracy/native/8x:.0%`). We do
# not know which benchmark the abstract means.
#
# ### How a story is stretched
#
# The stories of bAbI {cite:p}`weston2015` are simulated: persons go to places, and questions ask where somebody is. We take stories of at
# most two statements and stretch them with sentences from other stories, about other persons and things.

# %%
L = 48  # words, of a laptop's run
ask = partial(questions, 1, statements=2, data_set="simulated-stories", split="test")
for times in (1, 2):
    print(fill(as_text(ask(1, times * L, seed=seed + 3), babi.WORDS), 86), "\n")

# %% [markdown]
# The answer is one word, so {term}`exact match` and containment (the answer occurs in what the model says) are the same number, the
# accuracy.
#
# **The doubt: rarity can replace the question.** The added sentences are only about other persons. So in a long text the person asked for
# is the one named *least*, and a reader can use this without looking at the question:


# %%
def told_of(words):
    """Where each person was last, and how often each was told of."""
    at, often, who = {}, Counter(), None
    for word in words:
        if word in babi.PERSONS:
            who = word
            often[who] += 1
        elif word in babi.PLACES and who:
            at[who] = word
    return at, often


for times in answers.TIMES:
    samples, hits = ask(300, times * L, seed=seed), []
    for words, answer in each_question(samples, babi.WORDS):
        at, often = told_of(words[:-4])
        assert at[words[-2]] == answer  # the person asked for: the generator is right
        hits.append(at[min(at, key=often.get)] == answer)
    if times in (1, 16):
        numbers[f"rarest_{times}x"] = float(np.mean(hits))
    print(f"{times:2d} L: without the question, by rarity {np.mean(hits):.0%}")

# %% [markdown]
# In texts of $L$ this rule finds {num}`19_far_text/rarest_1x:.0%` of the answers, in texts of $16L$ {num}`19_far_text/rarest_16x:.0%`. Such
# a reader must still look at the whole text. So a far answer that is found shows that far text is used, but not that the question is
# understood.
#
# ## What to take away
#
# 1. **A model may have learned to search far more text than it can read.** With the frequencies of YaRN the same weights of RoPE find
#    nearly all far needles and values.
# 2. **Training for far distances works, too**: position gaps, and a term by which content chooses a distance. It takes no separation.
# 3. **Read the share of all answers beside that of far ones.** A model can find far answers and miss near ones.
# 4. **Recall is not understanding.** No model here answers questions about a long story reliably.
#
# ## What would change our mind
#
# - **YaRN for the others.** Here only RoPE was read with other frequencies. {doc}`Chapter 13 <13_slow_down>` also slows down the positions
#   of separated and dense models, on recall, on the latest value and on needles; RoPE is still ahead there.
# - **Larger models**, with more seeds, YaRN and the other tasks, could change the order of the methods.
# - **Longer training**, or other training positions, might make a model use far latest values, or far answers in stories.
# - **Fairer stories.** If fillers also named the persons who are asked for, the same models might fail sooner.
#
# **Limits.** The models have two layers of width 64 and were trained on texts of 48 to 128 tokens. *Not learned* means not learned within a
# number of steps that is the same for all methods, at a learning rate chosen with one seed. An answer far back may lie at an index that was
# trained, which favours absolute encodings. Few latest values are $4L$ to $8L$ back, {num}`19_far_text/asked_far:.0f` a run. We did not try
# concatenation. We also did not try the dense model that did best on novels, which has the term but no added sinusoid.

# %% tags=["hide-cell"]
asked = tasks["latest_value"].rows(profile, "distance")
asked = asked[asked.times == 8].sort_values("start").n if len(asked) else asked
numbers["asked_far"] = asked.iloc[-1] if len(asked) else NOT_RUN

# %% [markdown]
# The folded tables list all methods, in every way in which they were read.

# %% tags=["hide-cell"]
for name in FOUR:
    figures.show_table(
        shown.uses_table(tables[name], tasks[name].methods),
        caption=f"{TITLES[name]}: does the method use an answer 4L to 8L back, in "
        "texts of 8L? Means over seeds and 95 % t intervals. Not testable: it has not "
        "learned the task, or the last L tokens give it more than a guess.",
    )
for name, title in TITLES.items():
    figures.show_table(
        shown.learned_table(tables[name], tasks[name].methods),
        caption=f"{title}: answers found inside the trained length. Means over seeds "
        "and 95 % t intervals, the worst seed, and of the seeds that found 95 % the "
        "median step.",
    )

# %% tags=["hide-cell"]
# Checks of what the sentences say.
if profile == "laptop":
    far = {name: partial(one.mean, metric=FAR) for name, one in of.items()}
    inside = partial(of["questions"].mean, metric="accuracy/native/1x")
    near = partial(of["questions"].mean, metric="near/native")
    every = partial(of["questions"].mean, metric="accuracy/native/8x")
    guess = {name: chance(name)[8] for name in FOUR}
    assert min(of[name].mean("rope", "far/yarn") for name in FOUR[:3]) > 0.95
    assert of["questions"].mean("rope", "far/yarn") < guess["questions"]
    assert far["needle"]("rope") < guess["needle"]
    own, wide, dense, rope, gaps = map(far["needle"], SMALL.values())
    assert dense > own > wide > rope > gaps > 0.8
    ends = (f"{one}-content-randomised" for one in ("separated", "sinusoidal"))
    lead = [shown.learned_by(latest, [one], half) for one in ends]
    assert lead == sorted(lead), "the lead is gone"
    assert counted["latest_value_uses"][:4] == counted["questions_uses"][:4] == "0 of"
    assert min(near("alibi"), near("seqpe")) > 0.95 > 0.5 > near("rope")
    assert every("alibi") > every("seqpe") > every("rope")
    assert inside("separated-randomised") > 0.95 > inside("sinusoidal-randomised")
    larger = partial(on_gpu.mean, metric="near/native")
    assert larger("separated-content-gap") >= larger("sinusoidal-content-gap") > 0.95
    assert far["questions"]("alibi") - guess["questions"] < answers.ABOVE_CHANCE

# %% [markdown]
# ## Exercises
#
# **1. (easy)** A guess names one of the four needles at random. How often is its whole answer, three digits, right?

# %% tags=["hide-cell"]
# Solution. A quarter, and hardly more by luck: far above the cube of the chance of one
# digit, since the digits of a needle are right or wrong together.
whole = 1 / 4 + 3 / 4 / 1000
print(f"{whole:.3f} against {by_hand**3:.3f}")
assert whole > by_hand**3

# %% [markdown]
# **2. (medium)** A reader takes the *first* move of the person asked for, not the last. How often is it right, and why is that no small
# share?

# %% tags=["hide-cell"]
# Solution. Wherever the person moves once. With at most two statements that is most of
# the stories: a model on this plateau has not learned order, and looks half able.
hits = []
for words, answer in each_question(ask(300, 4 * L, seed=seed), babi.WORDS):
    after = words[words.index(words[-2]) : -4]
    first = next(word for word in after if word in babi.PLACES)
    hits.append(first == answer)
print(f"first move: {np.mean(hits):.0%}")
assert 0.5 < np.mean(hits) < 0.95

# %% tags=["hide-cell"]
chapter_numbers.publish("19_far_text", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(*tables.values(), gpu)

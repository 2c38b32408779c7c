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
# # 19. What and where
#
# **Finding.** In recall by content a separated model trained at random positions finds
# {num}`mqar/separated-randomised/far/native:.1%` of the answers that stand four to eight trained lengths back. RoPE finds
# {num}`mqar/rope/far/native:.1%` as it was trained, and {num}`mqar/rope/far/yarn:.1%` with the frequencies of YaRN and no further
# training. So far answers can be found with a stream for position and without one.
#
# A dense sinusoid at random positions finds {num}`mqar/sinusoidal-randomised/accuracy/native/1x:.1%` of the answers inside the
# trained length and {num}`mqar/sinusoidal-randomised/far/native:.1%` of the far ones, with its content drawn at the scale that
# serves it best.
#
# *Which value is the latest* is a question of order, and there the stream at random positions does not reach as far: it finds
# {num}`latest_value/separated-randomised/far/native:.1%` of the values that far back, RoPE with the frequencies of YaRN
# {num}`latest_value/rope/far/yarn:.1%`.
#
# Where *where* depends on *what* the split does not forbid the answer. Asked for what stands a few places from a name, the separated
# model finds {num}`indirect_index/separated-sinusoidal/accuracy/native/1x:.1%` of the answers inside the trained length, the dense
# sinusoid {num}`indirect_index/sinusoidal/accuracy/native/1x:.1%` and RoPE {num}`indirect_index/rope/accuracy/native/1x:.1%`. Six seeds
# do not decide between them.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import math
from collections import defaultdict
from functools import partial
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import claims, experiments
from sepnb.companion import evidence
from sepnb.companion.evidence import recall_shown as shown
from sepnb.evaluation.tasks import (
    grid,
    indirect_index,
    latest_value,
    mqar,
    occurrence,
    ordered_copy,
)
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.plots import answers, chooser, figures
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import NOT_RUN, RunTable
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train
from sepnb.training.loop import Weighted

figures.use_style()
numbers = {}
TITLES = {
    "mqar": "What: recall by content",
    "latest_value": "Where: the latest value",
    "indirect_index": "Find, then go k places on",
    "occurrence": "The k-th value of a key",
    "ordered_copy": "Copy in order",
}
tables = {name: experiments.get(name).table(profile) for name in TITLES}
methods = {name: experiments.get(name).methods for name in TITLES}
for name, table in tables.items():
    for word, count in shown.counted(table, methods[name]).items():
        numbers[f"{name}_{word}"] = count

# %% tags=["hide-input"]
TWO = ("mqar", "latest_value")
DRAWN = (
    *("none", "rope", "alibi", "rope-randomised", "rope-gap", "sinusoidal-randomised"),
    *("separated-randomised", "strict-randomised", "separated-gap"),
)
fig, axes = plt.subplots(1, 2, figsize=(9.6, 3.9))
for ax, name in zip(axes, TWO, strict=True):
    answers.by_length(ax, tables[name], DRAWN)
    ax.set_title(TITLES[name])
at_8L = {
    (task, name): RunTable(tables[task]).mean(name, "accuracy/native/8x")
    for task in TWO
    for name in ("rope", "separated-randomised")
}
drop = (
    "At eight trained lengths RoPE recalls "
    f"{at_8L['mqar', 'rope']:.0%} and the separated model at random positions "
    f"{at_8L['mqar', 'separated-randomised']:.0%} of the values; of the latest "
    "values they "
    f"find {at_8L['latest_value', 'rope']:.0%} and "
    f"{at_8L['latest_value', 'separated-randomised']:.0%}. "
    if np.isfinite(list(at_8L.values())).all()
    else ""
)
figures.show(
    fig,
    name="fig-what-lengths",
    alt="Share of answers found against the length of the text, up to sixteen trained "
    "lengths, for recall by content and for the latest value; one line a method, thin "
    "ones for its seeds, dotted the best guess. What has no records says not run.",
    caption=f"{drop}Answers found by the length of the text, in trained lengths L: "
    "thin lines are seeds, thick ones their means, dotted is the best guess that "
    "needs no position. A line that is low at 1 was not learned and says nothing "
    "about length.",
)

# %% tags=["hide-input"]
figures.provenance(*(tables[name] for name in TWO))

# %% [markdown]
# Trained with position gaps a separated model finds {num}`latest_value/separated-gap/far/native:.1%` of the latest values that far
# back, RoPE {num}`latest_value/rope-gap/far/native:.1%`. No rule asked for this comparison beforehand.
#
# The dense sinusoid with gaps finds {num}`latest_value/sinusoidal-gap/far/native:.1%`, and inside the trained length
# {num}`latest_value/sinusoidal-gap/accuracy/native/1x:.1%`: by the bar of this book it has not learned the task in every seed.
#
# But gaps lose what is nearer. Of all latest values in texts of eight trained lengths the separated model with gaps finds
# {num}`latest_value/separated-gap/accuracy/native/8x:.1%`, RoPE with gaps {num}`latest_value/rope-gap/accuracy/native/8x:.1%`, and the
# separated model at random positions {num}`latest_value/separated-randomised/accuracy/native/8x:.1%`.
#
# Of the methods with six runs, recall by content was learned by {num}`19_what_and_where/mqar_learned`; as trained, it is used
# that far back by {num}`19_what_and_where/mqar_uses`.
#
# The latest value was learned by
# {num}`19_what_and_where/latest_value_learned` and is used by {num}`19_what_and_where/latest_value_uses`.
#
# > **Question.** Does a model use an answer that it can see, when the text is longer than any of its training? And is *what*
# > was written found more easily than *where*?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 15 s of one CPU core at any profile; one tiny model is trained on the page, nothing is downloaded. The
#   records: `sepnb run mqar_sweep latest_value_sweep`, then `mqar latest_value`; and the same of `indirect_index`,
#   `occurrence` and `ordered_copy`, one to three minutes a run.
# - **You need**: {doc}`chapter 6 <06_longer_contexts>` for context extensions, {doc}`chapter 12 <12_what_works>` for random
#   positions, position gaps and the content-to-position term.
# - **You will learn**: why a task must be learned before its failure means anything; what a best guess finds; why every
#   separated model needs its dense twin beside it.
# - **Claims tested**: those under *Verdicts* (see {doc}`/book/claims`).
# ```
#
# ## Learned, or not
#
# A model that cannot do a task in texts of its trained length tells nothing by failing in longer ones. So this table comes
# before everything else: a task counts as learned where at least ninety-five in a hundred answers are found inside the
# trained length, in the mean of six seeds and in five of them. Beside it stands what a guess finds that needs no position.

# %% tags=["hide-input"]
figures.show_table(
    shown.learned_table(tables["mqar"], methods["mqar"]),
    caption="Recall by content, inside the trained length: means over seeds and 95 % t "
    "intervals, the worst seed, and of the seeds that found 95 % the median step. In "
    "the first two thirds of the steps texts are half as long, those asked too.",
)
figures.provenance(tables["mqar"])

# %% tags=["hide-input"]
figures.show_table(
    shown.learned_table(tables["latest_value"], methods["latest_value"]),
    caption="The latest value of a key, inside the trained length, as above.",
)
figures.provenance(tables["latest_value"])

# %% [markdown]
# ## Five tasks, as text
#
# *Recall by content* is the multi-query associative recall of Arora et al. {cite:p}`arora2023`: pairs of a key and a value
# stand anywhere among noise, and each key is asked at the end. No answer depends on where a pair stands. In *the latest value*
# a key is written several times and only its last value is right: the same text, but order decides. This is how recall is
# drawn:
#
# ```{literalinclude} ../../sepnb/evaluation/tasks/recall.py
# :pyobject: mqar
# :start-at: draws =
# :dedent:
# ```
#
# The other three ask for places as well. *Indirect indexing* {cite:p}`gopalakrishnan2025` finds a name and goes some places
# left or right. The *k-th value* counts the writes of a key. *Copying in order* repeats the items of a text. One short sample of each:
# the word that answers stands in brackets, the word that asks before an arrow.


# %% tags=["hide-input"]
def vocabulary(**kinds):
    """A word for each id: kinds in the order of ids; of those named noise, a dot."""
    return [
        "." if kind == "noise" else f"{kind}{n}"
        for kind, count in kinds.items()
        for n in range(count)
    ]


SHIFTS = [f"{k:+d}" for k in (*range(-4, 0), *range(1, 5))]
MADE = {
    "mqar": (mqar, vocabulary(k=32, v=32, noise=16)),
    "latest_value": (latest_value, vocabulary(k=6, v=32, noise=16)),
    "indirect_index": (indirect_index, [*vocabulary(s=32, X=16), *SHIFTS]),
    "occurrence": (
        occurrence,
        [*vocabulary(k=4, v=32), "1st", "2nd", "3rd", *16 * ["."]],
    ),
    "ordered_copy": (ordered_copy, [*vocabulary(s=32, noise=16), "|"]),
}


def as_text(samples, words, row=0):
    """A sample as a line, its sources in brackets and its answers behind arrows."""
    sources = set(samples.source[row][samples.scored[row]].tolist())
    line = []
    for i, token in enumerate(samples.tokens[row].tolist()):
        word = f"[{words[token]}]" if i in sources else words[token]
        if samples.scored[row, i]:
            word += f"→{words[samples.targets[row, i]]}"
        line.append(word)
    return " ".join(line)


# %%
LEAST = {"mqar": 32, "latest_value": 36, "indirect_index": 32}
for name, (task, words) in MADE.items():
    print(
        f"{TITLES[name]}\n  {as_text(task(1, LEAST.get(name, 36), seed=seed), words)}"
    )

# %% [markdown]
# ## An independent reader
#
# Is the answer that a generator gives the right one? A reader that knows none of its arrays must find it from the words
# alone. One rule serves the first two tasks, since the later pair overwrites the earlier.


# %%
def pairs_of(text):
    """Every value that was written for a key, in order."""
    written = defaultdict(list)
    for a, b in pairwise(text):
        if a[0] == "k" and b[0] == "v":
            written[a].append(b)
    return written


def read(name, text, at):
    """The answer to the question at index `at`, from the words up to there."""
    before, word = text[: at + 1], text[at]
    if name in ("mqar", "latest_value"):
        return pairs_of(before)[word][-1]
    if name == "occurrence":
        return pairs_of(before)[text[at - 1]][int(word[0]) - 1]
    if name == "indirect_index":
        return before[before.index(word) + int(text[at - 1])]
    mark = text.index("|")
    return [one for one in text[:mark] if one != "."][at - mark]


# %%
for name, (task, words) in MADE.items():
    samples = task(100, 64, seed=seed)
    asked = np.argwhere(samples.scored)
    texts = [[words[token] for token in row] for row in samples.tokens.tolist()]
    right = [
        read(name, texts[row], at) == words[samples.targets[row, at]]
        for row, at in asked.tolist()
    ]
    numbers[f"reader_{name}"] = float(np.mean(right))
    numbers[f"guess_{name}"] = max(samples.chance.values())
    print(
        f"{name:15s} {len(right)} questions, the reader agrees in {np.mean(right):.0%}"
    )
    assert all(right)

# %% [markdown]
# Chance is not zero. Whoever names any value that stands in the text is right in
# {num}`19_what_and_where/guess_mqar:.0%` of the questions of recall; of the latest value, whoever names any value of the right
# key, in {num}`19_what_and_where/guess_latest_value:.0%`. A model far past its trained length may be content with that.
#
# ## How to read a map
#
# `grid` reads a model, any callable from tokens to logits, at several lengths and depths. Here the model is the reader above,
# once with the whole text in view and once behind a window: it knows the answer exactly if the pair stands among the last
# $L$ tokens.


# %%
def exact_reader(tokens, window):
    """Logits of a reader that remembers the pairs of the last `window` tokens."""
    logits = torch.zeros(*tokens.shape, 80)
    for row, text in enumerate(tokens.tolist()):
        held = {}  # value and its index, by key
        for at, (token, after) in enumerate(pairwise([*text, 0])):
            if token < 32 <= after < 64:
                held[token] = after, at + 1
            elif token in held and at - held[token][1] < window:
                logits[row, at, held[token][0]] = 1.0
    return logits


L = 64
maps = {}
for says, window in {"whole text": 10**6, "window of L": L}.items():
    reader = partial(exact_reader, window=window)
    lengths = [L * times for times in answers.TIMES[:4]]
    maps[says] = grid(reader, mqar, lengths=lengths, n=40, seed=seed)
at_8 = maps["window of L"].query("length == 8 * @L")
numbers["window_reader_8x"] = float(
    (at_8["accuracy"] * at_8["n"]).sum() / at_8["n"].sum()
)
assert (maps["whole text"]["accuracy"] == 1).all()
print(f"behind a window, at eight lengths: {numbers['window_reader_8x']:.1%} found")

# %% [markdown]
# Behind a window only the last rows of the map stay bright, and fewer of them the longer the text. A map of a trained model that
# looks like this uses its window and nothing else. That is why *uses* asks for a control: the same model behind a window of $L$
# must find no more than the best guess, or the far answer could be had without looking far.
#
# ## A model that learns it in seconds
#
# Eight keys, three pairs, texts of twelve tokens: small enough for two layers of width 32 to learn on this page. Then it reads
# longer texts.

# %%
easy = partial(mqar, keys=8, values=8, noise=4, pairs=3)
short, steps, batch = 12, 200, 128


def batches():
    """A new batch for every step; only the answers count."""
    for step in range(steps):
        new = easy(batch, short, seed=1000 * (seed + 1) + step)
        yield Weighted(new.tokens, new.targets, new.scored.astype(np.float32))


torch.manual_seed(seed)
tiny = LanguageModel(
    TransformerConfig(Streams.dense(32), 2, 2, "rope", max_length=short), 20
)
losses = train(tiny, batches(), TrainingConfig(steps, batch, short, 7e-3))
numbers["live_first_nats"] = losses[0]
lengths = [short * times for times in answers.TIMES]
live = grid(tiny.eval(), easy, lengths=lengths, n=100, seed=seed)
by_length = live.groupby("length")["accuracy"].mean()
print(
    "nats at steps 0, 50, 100, 149:", *(f"{losses[k]:.2f}" for k in (0, 50, 100, 149))
)
print("answers found:", *(f"{n} tokens {a:.0%}" for n, a in by_length.items()))

# %% [markdown]
# The loss stays on a plateau, at which the model names any of the three values, and then falls at once. How long the plateau
# lasts depends on the seed (try another), so that *when* a model learns is another question, and one seed does not
# answer it.
#
# ## Who uses an answer far back
#
# A method *uses* far answers if it has learned the task and, in texts of eight trained lengths, finds at least ninety in a hundred of those
# four to eight lengths back and ninety in a hundred of all answers, in the mean and in five of six seeds. With a window of $L$ it must find
# no more of the far ones than the best guess. It is *refuted* only where a one-sided test over the seeds puts one of the two shares below
# ninety. The first rule, written before the records, asked for the far answers alone; this one came after them. RoPE is also read with the context extensions of {doc}`chapter 6 <06_longer_contexts>`, at the factor of each length,
# without any further training.

# %% tags=["hide-input"]
LEARNED_ROWS = ("learned", "separated-learned", "strict-learned")


def show_uses(name):
    """The verdicts of a task, for all methods but those with a learned table."""
    figures.show_table(
        shown.uses_table(
            tables[name], [one for one in methods[name] if one not in LEARNED_ROWS]
        ),
        caption=f"{TITLES[name]}: does the method use an answer that stands 4L to 8L "
        "back, in texts of 8L? Means over seeds and 95 % t intervals. Held: it does. "
        "Not testable: it has not learned the task, or its window finds more than a "
        "guess.",
    )


show_uses("mqar")
figures.provenance(tables["mqar"])

# %% tags=["hide-input"]
show_uses("latest_value")
figures.provenance(tables["latest_value"])

# %% [markdown]
# A learned table has nothing past its last row. The next cell holds it under the five rules of
# {doc}`chapter 11 <11_extrapolators>` and their controls.

# %% tags=["hide-cell"]
for name in TWO:
    figures.show_table(
        shown.uses_table(tables[name], LEARNED_ROWS),
        caption=f"{TITLES[name]}: learned tables, by the rule for what lies past L.",
    )

# %% [markdown]
# ## The dense twin beside every separated model
#
# A separated model that reads on proves nothing about separation as long as nobody has trained a dense one at the same positions.
# A twin is fair only if it was drawn as it learns best: beside a sinusoid that is added, token embeddings of the usual size are too
# small for random positions, so every such model was tried at three scales. Position gaps are those of PoSE
# {cite:p}`zhu2024`. Read a line of the table from left to right: if the dense column is as
# good, the change did it and not the stream.

# %% tags=["hide-input"]
for name in TWO:
    figures.show_table(
        shown.twins_table(tables[name], methods[name]),
        caption=f"{TITLES[name]}: answers found 4L to 8L back, by what was changed "
        "against the plain model. Means over seeds and 95 % t intervals; a dash: "
        "there is no such model.",
    )
figures.provenance(*(tables[name] for name in TWO))

# %% [markdown]
# In recall, gaps give the separated model {num}`mqar/separated-gap/far/native:.1%` of the far values, RoPE
# {num}`mqar/rope-gap/far/native:.1%` and the dense sinusoid {num}`mqar/sinusoidal-gap/far/native:.1%`. Over the dense sinusoid this is
# {num}`mqar/separated-gap minus sinusoidal-gap/far/native:+.3f`, and at random positions
# {num}`mqar/separated-randomised minus sinusoidal-randomised/far/native:+.3f`, with about a third fewer parameters in the separated model.
#
# RoPE with gaps is the fairer partner. Against it the separated model finds {num}`mqar/separated-gap minus rope-gap/far/native:+.3f` more of the
# far values, but {num}`mqar/separated-gap minus rope-gap/near/native:+.3f` of the near ones, and over all
# {num}`mqar/separated-gap minus rope-gap/accuracy/native/8x:+.3f`.
#
# With a content-to-position term and a short-period sinusoid as well, the separated model finds
# {num}`mqar/separated-content-gap/far/native:.1%`. Its dense twin does not learn recall at all, at any rate or scale that was tried, best at the highest rate: inside
# the trained length it finds {num}`mqar/sinusoidal-content-gap/accuracy/native/1x:.1%`. This twin adds a sinusoid; the dense model with the term and no
# added sinusoid, the best in text, was not run. So this pair is dropped. The other two decide whether separation finds more than its dense
# twins: *{num}`19_what_and_where/verdict_mqar_separation_finds_more`*.
#
# ## Steps until it is learned
#
# All methods take the same steps, and two of them can end equally good although one was done much earlier. Here order is of most
# interest. At random positions {num}`19_what_and_where/order_while_short_separated` separated runs find ninety-five in a hundred latest
# values while texts are still of half the length, {num}`19_what_and_where/order_while_short_sinusoidal` of the dense sinusoid and
# {num}`19_what_and_where/order_while_short_rope` of RoPE.
#
# With a content-to-position term and a short period this lead is gone: {num}`19_what_and_where/order_with_term_separated` separated runs
# come as far by then, and {num}`19_what_and_where/order_with_term_sinusoidal` dense ones.
#
# Random positions are what makes order slow. At the positions of the text a separated model needs a median of
# {num}`19_what_and_where/order_steps_separated:.0f` steps, ALiBi {num}`19_what_and_where/order_steps_alibi:.0f`, the dense sinusoid
# {num}`19_what_and_where/order_steps_sinusoidal:.0f` and RoPE {num}`19_what_and_where/order_steps_rope:.0f`. So the lead of a separated model is one
# over a dense model that adds the same sinusoid. Concatenation, which splits nothing, was not run here.
#
# What is learned so does not extrapolate as trained: of the far values the separated model then finds
# {num}`latest_value/separated-sinusoidal/far/native:.1%`. No rule asked for these comparisons.
#
# That a stream of its own learns order in fewer steps is *{num}`19_what_and_where/verdict_separation_learns_order_sooner`*. The rule
# counts all steps of one schedule, in which the texts that are asked grow with those that are trained. So an early run was
# asked shorter texts than a late one.

# %% tags=["hide-input"]
fig, axes = plt.subplots(2, 1, figsize=(7.6, 6.2))
longer = {name: experiments.get(name).short_steps(profile) for name in TWO}
for ax, name in zip(axes, TWO, strict=True):
    answers.steps(
        ax,
        tables[name],
        (*DRAWN, "sinusoidal", "separated-sinusoidal"),
        longer=longer[name],
    )
    ax.set_title(TITLES[name])
latest = tables["latest_value"], longer["latest_value"]
for short in ("separated", "sinusoidal", "rope"):
    numbers[f"order_while_short_{short}"] = shown.learned_by(
        latest[0], [f"{short}-randomised"], latest[1]
    )
    if short != "rope":
        numbers[f"order_with_term_{short}"] = shown.learned_by(
            latest[0], [f"{short}-content-randomised"], latest[1]
        )
for short in ("separated", "alibi", "sinusoidal", "rope"):
    plain = "separated-sinusoidal" if short == "separated" else short
    reached = RunTable(latest[0]).values(plain, "steps_to_0.95")
    numbers[f"order_steps_{short}"] = chapter_numbers.mean_of([reached.median()])
figures.show(
    fig,
    name="fig-what-steps",
    alt="Steps of training until ninety-five in a hundred answers were found, a tick "
    "for each seed and a marker for the median, by method, for recall by content and "
    "for the latest value; beside them how many seeds never got there.",
    caption="Steps until 95 % of the answers were found, in held-out texts of the "
    "length that is trained then, half of L up to the line: ticks are seeds, markers "
    "medians. At the right, the seeds that did not get there.",
)

# %% [markdown]
# ## One model for both?
#
# Trials had put the term with gaps first for content, and random positions for order. Can one model have the term, be trained at random
# positions, and do both? It is compared with models that have other changes, and with its dense twin.

# %% tags=["hide-input"]
ONE_FOR_BOTH = (
    *("separated-gap", "separated-content-gap", "separated-randomised"),
    *("separated-content-randomised", "sinusoidal-content-randomised"),
)
COLUMNS = {
    "inside": "accuracy/native/1x",
    "4L to 8L back": "far/native",
    "all of 8L": "accuracy/native/8x",
}
WORDS = {"mqar": "recall", "latest_value": "latest value"}
of_both = {name: RunTable(tables[name]) for name in TWO}
figures.show_table(
    pd.DataFrame(
        {"method": figures.title(method)}
        | {
            f"{WORDS[name]}, {head}": of_both[name].text(method, column, ".2f")
            for name in TWO
            for head, column in COLUMNS.items()
        }
        for method in ONE_FOR_BOTH
    ),
    caption="Answers found in both tasks, inside the trained length and in texts of "
    "8L: those 4L to 8L back, and all. Means over seeds and 95 % t intervals.",
)
for name in TWO:
    for short in ("separated", "sinusoidal"):
        numbers[f"both_{name}_{short}"] = shown.learned_by(
            tables[name], [f"{short}-content-randomised"], math.inf
        )
asked = experiments.get("latest_value").rows(profile, "distance")
asked = asked[asked.times == 8].sort_values("start").n if len(asked) else asked
numbers["asked_far"] = asked.iloc[-1] if len(asked) else NOT_RUN
one, twin = ONE_FOR_BOTH[-2:]
if min(len(of_both[name].values(twin, "far/native")) for name in TWO):  # what is said
    assert of_both["mqar"].mean(twin, "accuracy/native/1x") < 0.25
    assert of_both["latest_value"].mean(twin, "far/native") > of_both[
        "latest_value"
    ].mean(one, "far/native")
figures.provenance(*(tables[name] for name in TWO))

# %% [markdown]
# By the bar of this book it does neither. In recall {num}`19_what_and_where/both_mqar_separated` of its runs come to ninety-five in a
# hundred, in the latest value {num}`19_what_and_where/both_latest_value_separated`.
#
# That it uses far answers is *{num}`19_what_and_where/verdict_mqar_one_model_with_both_uses`* in the first and
# *{num}`19_what_and_where/verdict_latest_value_one_model_with_both_uses`* in the second.
#
# Its dense twin learns the one and not the other. In the latest value {num}`19_what_and_where/both_latest_value_sinusoidal` of its runs come
# to that share, and of the far values they find {num}`latest_value/sinusoidal-content-randomised/far/native:.1%`, where the separated
# model finds {num}`latest_value/separated-content-randomised/far/native:.1%`.
#
# In recall the twin guesses: inside the trained length it finds {num}`mqar/sinusoidal-content-randomised/accuracy/native/1x:.1%` of the
# values. It had five rates at three scales of its content. That it does as well is
# *{num}`19_what_and_where/verdict_mqar_dense_with_both_too`* and *{num}`19_what_and_where/verdict_latest_value_dense_with_both_too`*, because in
# each task one of the two has not learned.
#
# What does both is a trained RoPE read with other frequencies, and no training taught it. With those of YaRN it finds
# {num}`mqar/rope/far/yarn:.0%` and {num}`latest_value/rope/far/yarn:.0%` of the far answers.
#
# With those of Llama 3 it finds {num}`mqar/rope/far/llama3:.0%` and {num}`latest_value/rope/far/llama3:.0%`. Only RoPE was read with other
# frequencies; the sinusoids were not.
#
# Of the rows of the table, position gaps alone come nearest to both: with them a separated model finds
# {num}`mqar/separated-gap/far/native:.1%` of the far values in recall and {num}`latest_value/separated-gap/far/native:.1%` of the latest
# ones. What they lose is nearer.
#
# In recall alone a strict model is enough. Its position stream no text ever reaches, and with the term and gaps it finds
# {num}`mqar/strict-content-gap/far/native:.1%` of the far values, and in texts of sixteen lengths
# {num}`mqar/strict-content-gap/accuracy/native/16x:.1%` of all. No rule asked for it.
#
# ## The map of a method
#
# Where in the text is the answer lost? The figure shows a few methods, the list below it all of them in every way in which they
# were read.

# %% tags=["hide-input"]
PANELS = {
    "none": ("none", "native"),
    "RoPE": ("rope", "native"),
    "RoPE, window of L": ("rope", "window"),
    "RoPE, YaRN": ("rope", "yarn"),
    "RoPE, random positions": ("rope-randomised", "native"),
    "sinusoidal, random positions": ("sinusoidal-randomised", "native"),
    "separated, random positions": ("separated-randomised", "native"),
    "strict, random positions": ("strict-randomised", "native"),
}
rows = experiments.get("mqar").rows(profile, "depth")
chance = {times: answers.best_guess(tables["mqar"], times) for times in answers.TIMES}
figures.show(
    answers.maps(rows, PANELS, chance=chance),
    name="fig-what-maps",
    alt="Maps of the share of values recalled by length of the text, one to sixteen "
    "trained lengths, and by depth, a panel a method; cells no better than a guess are "
    "hatched. Methods without records say not run.",
    caption="Recall by content: answers found (%) by the length of the text and the "
    "depth at which the pair stands, means over seeds. Hatched: no better than the "
    "best guess.",
)
found = {
    figures.title(method): {
        shown.READINGS.get(reader, reader): answers.cells(rows, method, reader)
        for reader in [*shown.readings(tables["mqar"], method), "window"]
    }
    for method in methods["mqar"]
}
chooser.show(
    found,
    chance=chance,
    name="map-recall",
    alt="A list of methods and a table of answers found by length and depth of the one "
    "that is chosen.",
    instead="the figure above, for eight of the methods",
)
figures.provenance(tables["mqar"])

# %% [markdown]
# ## What an absolute index loses is near
#
# The maps of the models with a sinusoid at random positions are darkest at the bottom: far past the trained length they lose
# the answers *near* the question. A model that knows which index it stands at can learn that only questions stand at the
# highest ones. In training the questions are the last eighth of every text, and random positions carry them to the last
# eighth of the indices. In a long text this eighth also holds pairs.
#
# If that is the reason, the same texts read at the lower three quarters of the positions must give the answers back.
# RoPE tells no index, so it is the control; the dense sinusoid tells one, without a stream for it.

# %% tags=["hide-input"]
LOWER = {
    "native": {"label": "at all positions of training", "marker": "o"},
    "lower": {
        "label": "at the lower three quarters",
        "marker": "s",
        "linestyle": (0, (4, 1.5)),
    },
}
ON_STREAMS = {
    "separated": "separated-randomised",
    "strict": "strict-randomised",
    "dense sinusoid": "sinusoidal-randomised",
    "RoPE": "rope-randomised",
}
by_distance = experiments.get("mqar").rows(profile, "distance")
fig, axes = plt.subplots(2, 2, figsize=(7.6, 5.6), sharex=True, sharey=True)
for ax, (title, method) in zip(axes.flat, ON_STREAMS.items(), strict=True):
    answers.by_distance(ax, by_distance, method, LOWER)
    ax.set_title(f"{title}, random positions")
    ax.tick_params(axis="x", labelsize=9)
    ax.label_outer()
if axes[0, 0].get_lines():
    axes[0, 0].legend(loc="lower right", frameon=False, fontsize=8.5)
figures.show(
    fig,
    name="fig-what-near",
    alt="Share of answers found in texts of sixteen trained lengths against the "
    "distance of the answer, for four methods trained at random positions, read at "
    "all positions and at the lower three quarters of them. What has no records says "
    "not run.",
    caption="Recall by content in texts of 16 L, by how far back the answer stands: "
    "thin lines are seeds, thick ones means. Solid: read at random positions as in "
    "training. Dashed: at the lower three quarters of them.",
)
figures.provenance(tables["mqar"])

# %% [markdown]
# In texts of sixteen trained lengths the separated model finds {num}`mqar/separated-randomised/accuracy/native/16x:.1%` of all
# answers as trained and {num}`mqar/separated-randomised/accuracy/lower/16x:.1%` at the lower positions. That these losses come from the
# index is *{num}`19_what_and_where/verdict_near_answers_are_lost_by_index`*, by a rule that was written before any of these models
# was read at the lower positions. The dense
# sinusoid was trained later, and that rule does not judge it; it shows the same. An absolute index is not only a place that may be unseen:
# it also carries what always stood there in training.
#
# ## Go some places on from a name
#
# The next task puts *what* and *where* together {cite:p}`gopalakrishnan2025`: find a name, go one to four places to the left or right,
# and say what stands there. The place is a sum. Content finds one part of it, and a word tells the other.
#
# In a separated model no layer adds them: its MLPs read one stream each, and the shift is in the one and the place in the other. One
# would expect it to fail. So beside it stand a separated model whose MLP alone reads and writes both streams, one as large as the
# dense one, one with as few columns for position in which nothing is split, and the dense sinusoid.

# %% tags=["hide-input"]
MIXED = {
    "separated": "separated-sinusoidal",
    "separated, wide": "separated-sinusoidal-wide",
    "joint MLP": "separated-sinusoidal-joint-mlp",
    "concatenated": "concatenated-sinusoidal",
    "dense": "sinusoidal",
    "RoPE": "rope",
}
places = experiments.get("indirect_index")
while_trained = places.rows(profile, "learning")
of_places = RunTable(tables["indirect_index"])
ends = {
    short: of_places.mean(method, "accuracy/native/1x")
    for short, method in MIXED.items()
}
groups = {"narrow": ["separated"], "wide": ["separated, wide"]}
for group, shorts in (groups | {"whole": ["dense", "RoPE"]}).items():
    numbers[f"places_solved_{group}"] = shown.learned_by(
        tables["indirect_index"],
        [MIXED[short] for short in shorts],
        places.short_steps(profile),
    )
of_rope = of_places.values("rope", "accuracy/native/1x")
numbers["places_worst_rope"] = of_rope.min() if len(of_rope) else NOT_RUN
fig, ax = plt.subplots(figsize=(7.6, 4.2))
answers.learning(ax, while_trained, list(MIXED.values()))
figures.show(
    fig,
    name="fig-what-places",
    alt="Share of answers found against the step of training, for models that mix the "
    "streams nowhere, in the MLP, or everywhere. A model without records has no line; "
    "without any the figure says not run.",
    caption=(
        f"Go some places on from a name: the separated model ends at "
        f"{ends['separated']:.0%} of the answers, the dense one at "
        f"{ends['dense']:.0%}, and seeds lie far apart. "
        if np.isfinite([ends[one] for one in ("separated", "dense")]).all()
        else ""
    )
    + "Answers found on held-out texts of the length that is trained at that step: "
    "thin lines are seeds, thick ones their means. A model without a line was not run.",
)
figures.show_table(
    shown.learned_table(tables["indirect_index"], methods["indirect_index"]),
    caption="Go some places on from a name, inside the trained length, as above.",
)
figures.provenance(tables["indirect_index"])

# %% [markdown]
# The expectation fails. The separated model finds {num}`indirect_index/separated-sinusoidal/accuracy/native/1x:.1%` of the answers, one
# of the dense one's size {num}`indirect_index/separated-sinusoidal-wide/accuracy/native/1x:.1%`, the dense sinusoid
# {num}`indirect_index/sinusoidal/accuracy/native/1x:.1%`. Seeds of one model lie further apart than these means.
#
# RoPE's lie furthest: its worst run finds {num}`19_what_and_where/places_worst_rope:.1%`, the mean of its six
# {num}`indirect_index/rope/accuracy/native/1x:.1%`.
#
# It is learned in two ways. While texts were short {num}`19_what_and_where/places_solved_narrow` separated runs came to the
# bar, early and at once, and {num}`19_what_and_where/places_solved_wide` of the larger ones. Of those with the dense sinusoid and with RoPE
# {num}`19_what_and_where/places_solved_whole` did; they rise slowly. No rule asked for this, and each model has a learning rate that its own
# sweep chose. All but RoPE lose nearly everything where the texts become longer, and learn it again.
#
# That the separated model does as well as the dense one is *{num}`19_what_and_where/verdict_a_separated_model_adds_shifts`*, and that it
# does better than RoPE is *{num}`19_what_and_where/verdict_a_separated_model_adds_shifts_before_rope`*.
#
# With a joint MLP it finds {num}`indirect_index/separated-sinusoidal-joint-mlp/accuracy/native/1x:.1%`. That this is what it lacks is
# *{num}`19_what_and_where/verdict_adding_shifts_needs_a_joint_mlp`*, and that it does more than width is
# *{num}`19_what_and_where/verdict_a_joint_mlp_is_more_than_size`*. A model might do without the sum: a
# head for each of the four distances brings every name its neighbours, and the rest is content. Whether these models do so was not looked at.
#
# By the bar of this book none of them has learned the task within these steps, so that nothing is said of longer texts.
#
# Random positions leave no distance to add, since neighbours stand a random way apart. That models trained at them do not learn this is
# *{num}`19_what_and_where/verdict_random_positions_leave_no_distance`*.
#
# ## Two more tasks of order
#
# Methods were also to count and to copy. Again, what was learned comes first.

# %% tags=["hide-input"]
MORE = ("occurrence", "ordered_copy")
for name in MORE:
    figures.show_table(
        shown.uses_table(tables[name], methods[name]),
        caption=f"{TITLES[name]}: learned, and used 4L to 8L back, with the best guess "
        "beside it.",
    )
figures.provenance(*(tables[name] for name in MORE))

# %% [markdown]
# ## Verdicts

# %% tags=["hide-input"]
IDS = [
    one.id
    for one in claims.CLAIMS
    if one.needs in [(f"experiment/{name}",) for name in (*TWO, "indirect_index")]
]
verdicts = claims.judge(IDS, {f"experiment/{name}": tables[name] for name in tables})
numbers |= evidence.show(
    verdicts,
    caption="The claims of this chapter. The rules of use and of what voids a "
    "comparison were changed after these records.",
)
figures.provenance(*(tables[name] for name in TWO))

# %% [markdown]
# ## What to take away
#
# 1. A separated model recalls values at eight trained lengths:
#    *{num}`19_what_and_where/verdict_mqar_a_separated_model_uses`*. Its dense twins do as well:
#    *{num}`19_what_and_where/verdict_mqar_dense_twins_do_as_well`*.
# 2. A separated model finds the latest value at eight trained lengths:
#    *{num}`19_what_and_where/verdict_latest_value_a_separated_model_uses`*. Its dense twins do as well:
#    *{num}`19_what_and_where/verdict_latest_value_dense_twins_do_as_well`*.
# 3. With a plain sinusoid at the same random positions a separated model learns order in fewer steps than a dense one:
#    *{num}`19_what_and_where/verdict_separation_learns_order_sooner`*. While texts are short
#    {num}`19_what_and_where/order_while_short_separated` of its runs get there and {num}`19_what_and_where/order_while_short_sinusoidal` of the dense
#    sinusoid's. With the term the separated model is not sooner. At the positions of the text all of them need fewer steps still, and as
#    trained they do not extrapolate.
# 4. As trained, no model that was tried does both; RoPE read with the frequencies of YaRN or Llama 3 does. With the term, at random
#    positions, a separated model recalls values at eight trained lengths: *{num}`19_what_and_where/verdict_mqar_one_model_with_both_uses`*; it finds latest values there:
#    *{num}`19_what_and_where/verdict_latest_value_one_model_with_both_uses`*.
# 5. A separated model goes some places on from a name as well as a dense one:
#    *{num}`19_what_and_where/verdict_a_separated_model_adds_shifts`*. That it lacks an MLP over both streams is
#    *{num}`19_what_and_where/verdict_adding_shifts_needs_a_joint_mlp`*.
# 6. Recall needs no position, so that a model without any encoding does as well as the strict one:
#    *{num}`19_what_and_where/verdict_recall_needs_no_position`*.
#
# **Limits.** Two layers of width 64 and texts of 64 tokens in training. All methods take the same number of steps, which is
# enough for some and not for others. *Not learned* means that six seeds do not come to the bar within these steps. Their learning rate,
# and their scale where there is one, are those that one seed of a sweep chose. That seed may have learned the task, at this rate or at another.
#
# For the latest value three dense sinusoids did best at the largest scale of their content. Each was tried at twice that scale too, and
# none does better by more than a hundredth of a nat, within which trials count as alike.
#
# Answers far back in long texts may stand at indices that were trained, which flatters absolute encodings. Few latest values stand that
# far back, {num}`19_what_and_where/asked_far:.0f` a run, so that one answer is more than a hundredth.
#
# Going on from a name no model had learned by the bar when the steps ended, and with four heads and four distances it might be
# solved without any sum. RoPE's rate was chosen with one seed, which may have been a lucky one. Concatenation alone was not run.
#
# ## Exercises
#
# **1. (easy)** Why are the values of a sample of recall drawn without replacement, and the symbols of a copy with?

# %% tags=["hide-cell"]
# Solution. Equal values would let a wrong pair give the right answer. Different items,
# each used once, would let a copier exclude those that it has written already.
drawn = mqar(50, 64, seed=seed)
values = np.sort(np.where(drawn.tokens[:, :56] // 32 == 1, drawn.tokens[:, :56], -1))
assert all(len(set(row[row >= 0])) == 8 for row in values)
copied = ordered_copy(50, 64, seed=seed)
items = copied.targets[copied.scored].reshape(50, 8)
assert any(len(set(row)) < 8 for row in items)

# %% [markdown]
# **2. (medium)** A reader remembers only the *first* pair of each key. What does it find in the task of the latest value?

# %% tags=["hide-cell"]
# Solution. Nothing: scored are the keys that were written twice or more, and all values
# differ, so the first value is never the last.
task, words = MADE["latest_value"]
samples = task(100, 64, seed=seed)
texts = [[words[token] for token in row] for row in samples.tokens.tolist()]
first = [
    pairs_of(texts[row][: at + 1])[texts[row][at]][0] == words[samples.targets[row, at]]
    for row, at in np.argwhere(samples.scored).tolist()
]
print(f"found: {np.mean(first):.0%}")
assert not any(first)

# %% [markdown]
# ---
# The next cell writes the numbers that this page's sentences, the {doc}`claims page </book/claims>` and the regression
# tests read.

# %% tags=["hide-cell"]
chapter_numbers.publish("19_what_and_where", numbers, profile=profile)

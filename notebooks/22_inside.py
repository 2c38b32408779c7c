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
# # 22. Inside the model
#
# **Finding.** In a separated model a new index reaches the content only through attention: while every head is held where it looks at
# index 0, the content does not move at all. Left free, the heads look elsewhere. Past the trained length the content of a separated model then
# moves by {num}`22_inside/drift_five_separated:.2f` of its norm, a mean over five rules for new indices, and among trained
# indices by {num}`inside/separated-learned/drift/trained:.2f`.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import copy

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import analysis, claims, experiments
from sepnb.analysis.scores import split_scores
from sepnb.companion import evidence
from sepnb.data import text
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.inspection import FAR, SHOWN
from sepnb.experiments.methods import model_config
from sepnb.models import LanguageModel
from sepnb.plots import figures
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.training import TrainingConfig, train

figures.use_style()
numbers = {}

# %% tags=["hide-input"]
records = experiments.get("inside")
table = records.table(profile)
of, have = RunTable(table), RunTable(table).made
present = list(dict.fromkeys(have.method))
SEPARATED = ("separated-learned", "separated-sinusoidal", "strict-learned")
DENSE = ("none", "learned", "sinusoidal", "rope")


def rows(kind: str, **wanted) -> pd.DataFrame:
    """The rows of one kind with these values; empty if nothing was run."""
    found = records.rows(profile, kind)
    for column, value in wanted.items():
        found = found if found.empty else found[found[column] == value]
    return found


def draw(ax, own: pd.DataFrame, value: str, *, seeds: float = 0, shift=0, **line):
    """The mean over seeds by depth; with `seeds` above 0 every seed too, that faint.
    Returns the means."""
    for _, run in own.groupby("seed") if seeds else ():
        ax.plot(run.depth, run[value], color=line["color"], alpha=seeds, linewidth=0.9)
    means = own.groupby("depth")[value].mean()
    ax.plot(means.index + shift, means, **line)
    return means


def by_depth(ax, name: str = "depth", **about) -> None:
    """An axis of whole numbers with room at both ends."""
    ax.xaxis.set_major_locator(plt.MaxNLocator(integer=True, min_n_ticks=1))
    low, high = ax.dataLim.intervalx
    low, high = (low, high) if np.isfinite([low, high]).all() else (0, 1)
    ax.set(xlabel=name, xlim=(low - 0.15, high + 0.15), **about)


def label(ax, *, least: int = 1, **look) -> None:
    """The lines are labelled, or where there are fewer than `least`: "not run"."""
    figures.label_lines(ax, **look) if len(ax.lines) >= least else figures.not_run(ax)


def told(value: float, form: str = ".2f") -> str:
    """A number for a caption, or that there is none."""
    return "not run" if np.isnan(value) else text_of([value], form)


RULES = {
    "sinusoidal": ("#0072b2", "(2) sinusoidal"),
    "fourier": ("#009e73", "(3) Fourier"),
    "cyclic": ("#d55e00", "(4) cyclic"),
    "learned": ("#7b5ea7", "(5) learned"),
    "alibi": ("#e69f00", "(6) ALiBi-like"),
    "clamp": (figures.FAINT, "clamp"),
}

BEFORE = {"label": "_", "marker": "", "linestyle": (0, (1, 2)), "linewidth": 1}

# %% tags=["hide-input"]
FIVE = ("sinusoidal", "fourier", "cyclic", "learned", "alibi")
fig, ax = plt.subplots(figsize=(6.8, 3.7))
order = [*FIVE, "clamp", "wrap", "trained"]
offsets = {"learned": 0.22, "separated-learned": 0, "strict-learned": -0.22}
shown = [name for name in offsets if name in present]
for method in shown:
    look, how = figures.METHODS[method], {"interval": False, "size": 5.5}
    for row, rule in enumerate(reversed(order)):
        values, height = of.values(method, f"drift/{rule}"), row + offsets[method]
        figures.seed_row(ax, height, values, look, labelled=row == 0, **how)
labels = {rule: name for rule, (_, name) in RULES.items()}
labels |= {"wrap": "wrap", "trained": "trained index"}
ax.set_yticks(range(len(order)), [labels[rule] for rule in reversed(order)])
ax.set(xlabel="drift of the content at the last depth (share of its norm)")
ax.set_xlim(0)
if shown:
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
else:
    figures.not_run(ax)
five = {
    method: np.mean([of.mean(method, f"drift/{rule}") for rule in FIVE])
    for method in ("separated-learned", "learned")
}
numbers["drift_five_separated"] = chapter_numbers.mean_of([five["separated-learned"]])
numbers["drift_five_dense"] = chapter_numbers.mean_of([five["learned"]])
figures.show(
    fig,
    name="fig-inside-rules",
    alt="Dot plot of the drift of the content at the last depth, one row per rule for "
    "unseen positions, with dense, separated and strict models of a learned table, one "
    "tick per seed. The separated model lies near 0.6 under most rules and near 0.2 at "
    "trained indices; the dense one lies far to the right under the cyclic rule.",
    caption="How far the content moves when a text starts around "
    f"{', '.join(map(str, FAR))} times the trained length instead of at 0, as a share "
    "of its norm, by the rule that makes the new indices. Mean over the five rules "
    f"with a number, separated: {told(five['separated-learned'])}; dense: "
    f"{told(five['learned'])}. Among trained indices (last row), separated: "
    f"{told(of.mean('separated-learned', 'drift/trained'))}. Ticks: every seed.",
)
figures.provenance(table)

# %% [markdown]
# > **Question.** What do the layers of a trained model hold of position and of text, and how far does a text's
# > representation move when it starts at an index that was never trained?
#
# The chapters before this one look at models from outside: what they predict, and at what cost. The slides
# promise something about the inside. Only the position vectors have to be extrapolated, they say, and so
# the architecture *preserves the integrity of the learned semantic representations*. That is a statement about
# vectors, and vectors can be looked at.
#
# {doc}`Chapter 7 <07_two_streams>` left a question as well. Content can leak into the position stream through
# the attention weights, and in models with random weights it does. Does it in trained ones?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 12 s of one CPU core at any profile; two tiny models are trained on the page, nothing is
#   downloaded. Memory: under 1 GB. The records behind most figures: `sepnb run inside`, 30 runs of about two
#   minutes on one core; they read ELTeC (`sepnb data eltec-eng`).
# - **You need**: {doc}`chapter 7 <07_two_streams>` for the streams and the routing leak,
#   {doc}`chapter 11 <11_extrapolators>` for the rules; what a linear regression is; variance.
# - **You will learn**: how to record and differentiate a model's states; how to probe them without fooling
#   yourself; what a new index does to the content, and by which way it gets there.
# - **Claims tested** (see {doc}`/book/claims`): the six under *Verdicts*. Their rules were committed before the first
#   record was made.
# ```
#
# ## What there is to look at
#
# A block adds to what it is given. Between two blocks there is a *residual state*: one vector for each token,
# and in a separated model one for each token and stream. With $n$ blocks there are $n + 1$ of them; *depth* $l$
# is the state after $l$ blocks, so that depth 0 is the input.
#
# Two tiny models are trained here, on the source code that is always at hand: a separated one with a learned
# table, and a dense one without any encoding. The originals are kept, because some of what one finds in a
# trained model was there before it was trained.

# %%
small = lm.SIZES["smoke"]
library = text.load(small.text.name)
schedule = TrainingConfig(small.steps, small.batch_size, small.length, 4e-3)
sizes = {"batch_size": small.batch_size, "length": small.length, "steps": small.steps}


def live(method: str) -> dict[str, LanguageModel]:
    """A tiny model before and after training."""
    torch.manual_seed(seed)
    model = LanguageModel(model_config(method, small))
    before = copy.deepcopy(model)
    batches = text.sample_batches(library.train, seed=seed, **sizes)
    train(model, batches, schedule, device=device)
    return {"initial": before.to(device).eval(), "trained": model.eval()}


separated, bare = live("separated-learned"), live("none")

# %%
twice = 2 * small.length
held_out = text.windows(library.test, length=small.length, per_document=twice)
tokens = torch.from_numpy(held_out.tokens[:48, : small.length])
states = analysis.residual_states(separated["trained"], tokens)
for depth, state in enumerate(states):
    print("depth", depth, {name: list(x.shape) for name, x in state.items()})

# %% [markdown]
# The last block leaves no pos stream, because the output is read from the sem stream, and what nobody reads is
# not built. A check of the recording: the last state, normed and multiplied by the output matrix, must be what the
# model says.

# %%
model = separated["trained"]
with torch.no_grad():
    said = model(tokens.to(device)).cpu()
    rebuilt = model.head(model.norm.parts({"sem": states[-1]["sem"].to(device)})["sem"])
assert torch.allclose(said, rebuilt.cpu(), atol=1e-5)

# %% [markdown]
# ## Which stream depends on which, by depth
#
# Chapter {doc}`7 <07_two_streams>` differentiates one stream by the other, with the attention weights *frozen* or
# *live*. Here the same derivative is taken at a real text, after each block. Its size alone says little, since
# the streams have different scales. So we compare: disturb the pos input and the sem input by the same share of
# their root mean square $\rho$; in which proportion do the two arrive in the pos stream?
#
# $$
# \lambda_l \;=\; \frac{\rho_{\text{sem}} \,\big\| \partial p^{(l)} / \partial s^{(0)} \big\|_F}
# {\rho_{\text{pos}} \,\big\| \partial p^{(l)} / \partial p^{(0)} \big\|_F}
# $$ (eq-inside-leak)
#
# At $\lambda = 1$ the position stream depends on the text as much as on the positions. In the package this is
# `relative`; `largest` is the largest absolute entry, which must be `0.0` when the weights are frozen.

# %%
sentence = tokens[:1, :8].to(device)
leaks = pd.DataFrame(
    {"model": state, "weights": "frozen" if frozen else "live", **vars(one)}
    for state, one_model in separated.items()
    for frozen in (True, False)
    for one in analysis.leakage(one_model, sentence, depth=1, frozen=frozen)
)
leaks["direction"] = leaks.target + " by " + leaks.source
frozen, freed = leaks[leaks.weights == "frozen"], leaks[leaks.weights == "live"]
assert (frozen.largest == 0.0).all(), "exactly zero, before and after training"
assert (freed.largest > 0.0).all()
to_pos = freed[freed.target == "pos"].set_index("model").relative
numbers["live_leak_initial"] = to_pos["initial"]
numbers["live_leak_trained"] = to_pos["trained"]
numbers["live_leak_frozen"] = frozen.largest.max()

# %% tags=["hide-input"]
figures.show_table(
    leaks[["model", "weights", "direction", "largest", "relative"]],
    caption="Derivatives between the streams of a tiny separated model after its first "
    "block, at a text of eight bytes. Frozen they are exactly zero; live, training has "
    "changed how large they are.",
    formats={"largest": ".2g", "relative": ".2g"},
)

# %% [markdown]
# With frozen weights training changes nothing: the zeros are a property of the architecture. With live weights
# the relative leak into the pos stream went from {num}`22_inside/live_leak_initial:.2g` to
# {num}`22_inside/live_leak_trained:.2g` in this one short training. On novels, with more layers and more steps,
# training makes it smaller as well, and leaves some of it.

# %% tags=["hide-input"]
leak = rows("leak", weights="live", target="pos")
fig, ax = plt.subplots(figsize=(6.8, 3.3))
largest = {}
for method in [name for name in SEPARATED[:2] if name in present]:
    for state, dash in (("initial", (0, (1, 1.5))), ("trained", "-")):
        look = figures.METHODS[method]
        own = leak[(leak.method == method) & (leak.state == state)]
        line = look.line(label=f"{look.label}, {state}", linestyle=dash)
        means = draw(ax, own, "relative", seeds=0.3, **line)
        largest[method, state] = means.max()
ax.set_yscale("log")
by_depth(ax, "blocks passed", ylabel="relative leak, pos by sem")
label(ax)
of_table = ("separated-learned", "initial"), ("separated-learned", "trained")
first, last = (told(largest.get(which, np.nan)) for which in of_table)
figures.show(
    fig,
    name="fig-inside-leak",
    alt="Relative derivative of the pos stream by the text, on a log scale, against "
    "blocks passed; dotted before training, solid after it, one thin line per seed. In "
    "both separated models the solid lines lie below the dotted ones.",
    caption="How strongly the pos stream depends on the text, live, in proportion to "
    "how strongly it depends on the positions. At its largest, separated learned: "
    f"{first} before training, {last} after it. The strict variant is not drawn: it "
    "has zero, which a log scale does not show.",
)
figures.provenance(table)

# %% [markdown]
# A derivative says what a *small* change of the text would do. The texts that a model reads differ by more than
# that, and only along some directions. The next measure looks at the states of whole texts.
#
# ## How much of a state is position
#
# Let $x_{bi}$ be the state of token $i$ of text $b$. The variance of the states over texts and positions falls
# into two parts that sum to one:
#
# $$
# \frac{\sum_{b,i} \lVert x_{bi} - \bar x \rVert^2}{S}
# = \underbrace{\frac{B \sum_{i} \lVert \bar x_{i} - \bar x \rVert^2}{S}}_{\text{position}}
# + \underbrace{\frac{\sum_{b,i} \lVert x_{bi} - \bar x_{i} \rVert^2}{S}}_{\text{text}} = 1 ,
# $$ (eq-inside-shares)
#
# where $\bar x_i$ is the mean over texts at position $i$, $\bar x$ the mean over everything and $S$ the sum on the
# left. A pos stream that were a function of position alone would have a text share of exactly zero. By hand: two
# texts, two positions, one column. The measure of the package, of states `x` in float64:
#
# ```{literalinclude} ../../sepnb/analysis/geometry.py
# :pyobject: variance_shares
# :start-at: text =
# :dedent:
# ```

# %%
by_hand = torch.tensor([[[0.0], [4.0]], [[2.0], [6.0]]])  # x[b, i]: rows are texts
# means by position 1 and 5, overall 3: position 2 (4 + 4) = 16, text 4 * 1 = 4
assert analysis.variance_shares(by_hand) == (16 / 20, 4 / 20)
shares = {n: analysis.variance_shares(states[1][n]).text for n in ("pos", "sem")}
numbers["live_text_share_pos"] = shares["pos"]
print("of the variance between texts:", {n: f"{one:.4f}" for n, one in shares.items()})

# %% tags=["hide-input"]
variance = rows("variance")
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.5))
panels = (
    (axes[0], "pos", "text", "between texts, pos stream", SEPARATED),
    (axes[1], "sem", "position", "between positions, content", SEPARATED + DENSE),
)
for ax, stream, share, title, methods in panels:
    for method in [name for name in methods if name in present]:
        look = figures.METHODS[method]
        wanted = stream if method in SEPARATED else "joint"
        own = variance[(variance.method == method) & (variance.stream == wanted)]
        draw(ax, own[own.state == "trained"], share, **look.line(markersize=4))
        if method in SEPARATED or method == "none":
            draw(ax, own[own.state == "initial"], share, **look.line(**BEFORE))
    by_depth(ax, title=title, ylabel="share of variance", ylim=(0, None))
axes[0].set_yscale("symlog", linthresh=1e-5)
axes[0].set_ylim(-2e-6, 1)
for ax in axes:
    label(ax, fontsize=8.5)
figures.show(
    fig,
    name="fig-inside-variance",
    alt="Two panels against depth. Left: the share of the pos stream's variance "
    "between texts, log scale with zero. Right: the share of the content's variance "
    "between positions. Solid lines after training, dotted before.",
    caption="Left: the share of the trained pos stream that differs between texts, at "
    "its largest over depths; separated learned: "
    f"{told(of.mean('separated-learned', 'text/pos'), '.2g')}, strict learned: "
    f"{told(of.mean('strict-learned', 'text/pos'), '.2g')}. Right: what "
    "position explains of the content, which is the sem stream or, dense, the whole "
    "state. Solid: trained; dotted: the same models before training. Means over seeds.",
)
figures.provenance(table)

# %% [markdown]
# ## Reading a state with a straight line
#
# A *linear probe* is a regression from a state to something that one suspects in it. It is fitted on one set of
# documents and scored on others, so that it cannot profit from what it has seen. Ours is the ridge regression in
# closed form, on standardised features:
#
# $$
# W = \big( Z^\top Z / n + \lambda I \big)^{-1} Z^\top (Y - \bar Y) / n , \qquad \lambda = 10^{-3} .
# $$ (eq-inside-ridge)
#
# The score for the index is $R^2$: 1 for a perfect reading, 0 for always guessing the mean, negative for worse than
# that.
#
# ### What went wrong: a probe that reads positions out of noise
#
# Unseen documents are not enough. A position embedding is the same in every document, so a probe can learn its rows
# by heart. Here is a table of 64 positions and 32 columns drawn at random, with nothing in it that grows with the
# index, and a little noise on top, different in every text.

# %%
generator = torch.Generator().manual_seed(seed)
rough = torch.randn(64, 32, generator=generator)
noisy = [torch.randn(20, 64, 32, generator=generator) for _ in range(2)]
fit_on, score_on = (rough + 0.1 * noise for noise in noisy)
index = torch.arange(64.0)
kept = torch.arange(64) % 4 != 2  # three positions of four are fitted


def r_squared(fit: torch.Tensor, score: torch.Tensor, at, ask) -> float:
    """Fit the index at positions `at`, score it at positions `ask` of other texts."""
    known = index[at].repeat(len(fit))[:, None]
    said = analysis.fit_probe(fit[:, at].flatten(0, 1), known)(score[:, ask])[..., 0]
    return analysis.r_squared(said, index[ask].expand_as(said))


every = torch.ones(64, dtype=torch.bool)
by_heart = r_squared(fit_on, score_on, every, every)
really = r_squared(fit_on, score_on, kept, ~kept)
numbers["random_table_known"] = by_heart
numbers["random_table_unseen"] = really
assert by_heart > 0.2 > 0 > really
print(f"known positions {by_heart:.2f}, unseen positions {really:.2f}")

# %% [markdown]
# At the positions that it was fitted on, the probe explains
# {num}`22_inside/random_table_known:.0%` of the variance of the index of texts that it never saw. At the others it
# is worse than guessing. A first draft of this chapter had only the first score, and it made every table look like
# a ruler. From here on the score is the second: **unseen documents and unseen positions**. The first is an upper
# bound, and is used only where a claim says that something can *not* be read.
#
# ### Where is position written?

# %% tags=["hide-input"]
probes = rows("position probe", target="index")
if not probes.empty:
    probes = probes.assign(unseen=probes.unseen.clip(lower=-0.25))
fig, axes = plt.subplots(1, 3, figsize=(9.4, 3.6), sharey=True)
panels = (
    (axes[0], "joint", DENSE, "dense"),
    (axes[1], "pos", SEPARATED, "pos stream"),
    (axes[2], "sem", SEPARATED, "sem stream"),
)
for ax, stream, methods, title in panels:
    for method in [name for name in methods if name in present]:
        own = probes[(probes.method == method) & (probes.stream == stream)]
        before, look = own[own.state == "initial"], figures.METHODS[method]
        trained = own[own.state == "trained"]
        draw(ax, trained, "unseen", seeds=0.25, **look.line(markersize=4))
        if method in ("none", "separated-learned"):
            draw(ax, before, "unseen", **look.line(**BEFORE))
    ax.axhline(0, color=figures.FAINT, linewidth=1)
    by_depth(ax, title=title, ylim=(-0.27, 1.03))
    label(ax, least=2, fontsize=8.5)
axes[0].set_ylabel("$R^2$ of the index")
own = [told(of.mean("separated-learned", f"index/{one}")) for one in ("pos", "sem")]
none, rope = (told(of.mean(name, "index/joint")) for name in ("none", "rope"))
figures.show(
    fig,
    name="fig-inside-position",
    alt="Three panels of R squared of a linear probe for the index against depth: "
    "dense models, the pos stream and the sem stream of separated models, one thin "
    "line per seed; dotted lines before training.",
    caption="How well a straight line reads the index, in unseen documents and at "
    f"unseen positions. Best over depths: no encoding {none}, RoPE {rope}; separated "
    f"learned: pos stream {own[0]}, sem stream {own[1]}. Values below {told(-0.25)} "
    "are drawn there; dotted: before training.",
)
figures.provenance(table)

# %% [markdown]
# The dense model *without* an encoding is the interesting one. Its input holds no position at all, and its
# attention weights are symmetric in the tokens, but for the causal mask. {cite:t}`haviv2022` found that such models
# learn where they are, {cite:t}`kazemnejad2023` gave a construction. The mask does it: the first token averages over
# itself alone, the hundredth over a hundred, and an average over more tokens is a smaller, steadier one. In the records
# some of that is there before training. In the live model:


# %%
def read_index(model: LanguageModel, depth: int) -> float:
    """R squared of the index of unseen documents and positions, in the content."""
    state = analysis.residual_states(model, tokens)[depth]["sem"]
    return r_squared(state[:24], state[24:], kept, ~kept)


without = {state: read_index(one, depth=1) for state, one in bare.items()}
numbers |= {f"live_none_{state}": value for state, value in without.items()}
print({state: round(value, 2) for state, value in without.items()})

# %% [markdown]
# The $R^2$ of the index after one block is {num}`22_inside/live_none_initial:.2f` before training and
# {num}`22_inside/live_none_trained:.2f` after it; there are few texts here, and a straight line may not be the right
# reader for what a mask leaves (exercise 4).
#
# Reading an index inside the trained length is one thing. Does the reading *continue*? The probes fitted below $L$
# are asked for the positions from $L$ to $2L - 1$ of longer texts. In the folded table they do better than always
# guessing the middle of the new positions in one case only: for the embeddings that the cyclic rule makes.

# %% tags=["hide-cell"]
beyond = rows("position beyond")
listed = []
for method in present:
    stream = "pos" if method in SEPARATED else "joint"
    own = beyond[(beyond.method == method) & (beyond.stream == stream)]
    for rule, chosen in own.groupby("rule", sort=False):
        last = chosen[chosen.depth == chosen.depth.max()]
        about = (figures.METHODS[method].label, stream, int(last.depth.iloc[0]), rule)
        listed.append((*about, last.r_squared.mean(), last.error.mean()))
columns = ["method", "stream", "depth", "rule", "R squared", "error in positions"]
listed = pd.DataFrame(listed, columns=columns)
figures.show_table(
    listed,
    caption="The index read at positions past the trained length by probes fitted "
    "below it. R squared is 0 for always guessing the middle of the new positions. For "
    "the rules of a learned table other than clamp the embedding itself is read, at "
    "depth 0. Means over seeds.",
    formats={"R squared": ".2f", "error in positions": ".0f"},
)
figures.provenance(table)

# %% [markdown]
# ## Is there text in the position stream?
#
# A share of variance can be small and still hold everything about a byte: a whisper is quiet, and yet it can be
# understood. So we probe for bytes: probes name the current and the previous byte from the pos stream. They do so once as it is, and
# once after the mean of each position is taken away. That leaves the whisper alone, amplified to the same loudness as everything
# else. The baseline is the *majority rate*, how often the most frequent byte is right.

# %%
fit_tokens, score_tokens = tokens[:24], tokens[24:]
pos = states[1]["pos"].double()
whisper = pos - analysis.position_mean(pos[:24])
rate = analysis.majority_rate(fit_tokens.flatten(), score_tokens.flatten())
named = {"majority": rate}
asked = {"pos": pos, "pos minus mean": whisper, "sem": states[1]["sem"]}
for name, x in asked.items():
    probe = analysis.fit_classifier(x[:24].flatten(0, 1), fit_tokens.flatten(), 256)
    named[name] = analysis.accuracy(probe, x[24:].flatten(0, 1), score_tokens.flatten())
numbers["live_byte_whisper"] = named["pos minus mean"] - rate
print({name: round(value, 3) for name, value in named.items()})

# %% tags=["hide-input"]
probed = rows("byte probe", method="separated-learned")
looks = {
    "pos": (figures.POS, "-", "o"),
    "pos less position": (figures.MIXED, (0, (4, 1.5)), "s"),
    "sem": ("#a87400", "-", "^"),
}
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), sharey=True)
for ax, target in zip(axes, ("current", "previous"), strict=True):
    own = probed[probed.target == target] if len(probed) else probed
    for stream, (colour, dash, marker) in looks.items() if len(own) else ():
        line = {"color": colour, "linestyle": dash, "marker": marker}
        name = stream.replace("less position", "minus mean")
        draw(ax, own[own.stream == stream], "accuracy", label=name, **line)
    by_depth(ax, title=f"the {target} byte", ylim=(0, 1.03))
    if len(own):
        ax.axhline(own[own.stream == "majority"].accuracy.mean(), color=figures.FAINT)
    label(ax, fontsize=8.5)
axes[0].set_ylabel("named correctly")
pos_gain, rest_gain, sem_gain = (
    told(of.mean("separated-learned", f"byte/{name}"), "+.3f")
    for name in ("pos", "pos_less_position", "sem")
)
figures.show(
    fig,
    name="fig-inside-bytes",
    alt="Two panels: how often a probe names the current and the previous byte, from "
    "the pos stream, from what is left of it without the mean of each position, and "
    "from the sem stream, against depth. The pos stream lies a little above the "
    "majority rate, the sem stream far above it.",
    caption="Naming bytes from the streams of separated learned. Gain over the "
    f"majority rate (grey line) at the best depth and target: pos {pos_gain}, pos "
    f"without the mean of each position {rest_gain}, sem {sem_gain}. Means over seeds.",
)
figures.provenance(table)

# %% [markdown]
# ## The shape of position
#
# Averaged over texts, a pos stream is a table with one row per position, and each depth has its own. The input is
# the position embedding; what do blocks make of it? The figure draws the rows in the plane of their first two
# principal components.

# %% tags=["hide-input"]
drawn = ("separated-learned", "separated-sinusoidal", "none")
drawn = [name for name in drawn if name in present]
paths = rows("path")
depths_of = {
    method: [  # at the input of a model without an encoding there is nothing to see
        depth
        for depth in sorted(paths[paths.method == method].depth.unique())
        if depth or method != "none"
    ][:4]
    for method in drawn
}
columns, n = max(map(len, depths_of.values()), default=1), max(1, len(drawn))
size = (1 + 1.9 * columns, 2.1 * n)
fig, axes = plt.subplots(n, columns, figsize=size, squeeze=False)
for row, method in enumerate(drawn):
    own = paths[(paths.method == method) & (paths.seed == paths.seed.min())]
    at = own.positions.iloc[0]
    for ax, depth in zip(axes[row], depths_of[method], strict=False):
        part = own[own.depth == depth].set_index("component")
        one, two = part.loc[1], part.loc[2]
        ax.plot(one["values"], two["values"], color=figures.FAINT, linewidth=0.8)
        how = {"c": at, "cmap": "viridis", "s": 14, "zorder": 3}
        dots = ax.scatter(one["values"], two["values"], **how)
        ax.set_title(f"depth {depth}: {one['share'] + two['share']:.0%}", fontsize=9.5)
        ax.set_aspect("equal", "datalim")
    axes[row, 0].set_ylabel(figures.METHODS[method].label, fontsize=9.5)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.set_axis_on() if ax.collections else ax.set_axis_off()
if drawn:
    fig.colorbar(dots, ax=axes, shrink=0.6, label="position")
else:
    figures.not_run(axes[0, 0])
figures.show(
    fig,
    name="fig-inside-paths",
    alt="Small multiples of paths in a plane, one dot per position coloured from first "
    "to last: rows are methods, columns are depths.",
    caption="The mean state at each position, in the plane of its first two principal "
    "components, with the share of variance that the plane holds: the pos streams of "
    "two separated models, and the whole state of the dense model without an encoding "
    "(from depth 1 on). First seed.",
)
figures.provenance(table)

# %% [markdown]
# One block makes a smooth curve of the input. In every pos stream of the folded table nearly all of the variance lies in a
# plane from depth 1 on. For separated learned the next figure shows that slow waves carry most of it.

# %% tags=["hide-cell"]
geometry = rows("geometry")
columns = {
    "median_step": "step / row norm",
    "frequencies_8": "top 8 waves",
    "components_2": "top 2 directions",
    "components_8": "top 8 directions",
}
shape = []
for method in [name for name in SEPARATED if name in present]:
    own = geometry[geometry.method == method]
    own = own.assign(median_step=own.median_step / own.mean_row_norm)
    for depth, means in own.groupby("depth")[[*columns]].mean().iterrows():
        shape.append((figures.METHODS[method].label, depth, *means))
shape = pd.DataFrame(shape, columns=["method", "depth", *columns.values()])
figures.show_table(
    shape,
    caption="The pos stream by depth, its mean row taken away: the median distance of "
    "neighbouring rows over the mean norm of a row (smooth is small), and the energy "
    "in its strongest waves and directions. Means over seeds.",
    formats=dict.fromkeys(columns.values(), ".2f"),
)
figures.provenance(table)

# %% tags=["hide-input"]
spectrum = rows("spectrum", method="separated-learned")
rough = shape[shape.method == "separated learned"]["step / row norm"]
step, at_end = (
    told(float(rough.iloc[n])) if len(rough) else "not run" for n in (0, -1)
)
fig, ax = plt.subplots(figsize=(6.8, 3.2))
if spectrum.empty:
    figures.not_run(ax)
else:
    depths = sorted(spectrum.depth.unique())
    shades = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(depths)))
    for depth, shade in zip(depths, shades, strict=True):
        shares = np.mean(spectrum[spectrum.depth == depth]["shares"].tolist(), axis=0)
        turns = np.arange(1, len(shares) + 1)
        ax.plot(turns, shares.cumsum(), color=shade, label=f"depth {depth}")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:.0f}")
    ax.legend()
ax.set(xlabel="turns over the trained length", ylabel="energy up to there")
ax.set_ylim(0, 1.03)
figures.show(
    fig,
    name="fig-inside-spectrum",
    alt="Cumulated energy of the pos stream's mean rows against the number of turns "
    "over the trained length, one line per depth.",
    caption="Slow and fast waves in the pos stream of separated learned, by depth: the "
    "share of the energy in waves of at most so many turns over the trained length. A "
    "smooth table rises early. The step to the next row in units of a row's norm: at "
    f"the input {step}, at the last depth {at_end}. Means over seeds.",
)
figures.provenance(table)

# %% [markdown]
# ## The same text at another index
#
# Now the slides' promise. Take a text of half the trained length $L$, and let it start elsewhere: inside the window,
# where every index is trained, and past it. No length and no distance in it is new, only the indices are. The
# *drift* of a layer is how far its content has moved from where it is when the text starts at 0:
#
# $$
# \delta_l(s) = \frac{\lVert x^{(l)}(s) - x^{(l)}(0) \rVert_F}{\lVert x^{(l)}(0) \rVert_F} ,
# $$ (eq-inside-drift)
#
# where *content* is the sem stream of a separated model and the whole state of a dense one, which has no other. An
# intact representation has a drift of zero. Two rulers help to read the numbers: the drift to a start at $L/2$,
# where all indices are trained, and the distance to *another text*.
#
# By which way does a new index reach the content? In a separated model there is only one. Values, outputs, MLPs and
# norms keep the streams apart, so a position can act on the content only by deciding *where* the heads look. If the
# heads are held to look where they look at start 0, the content must not move by a single bit. In a dense model
# the position embedding itself is part of the content.

# %%
short = tokens[:, : small.length // 2]
torch.manual_seed(seed)
dense = LanguageModel(model_config("sinusoidal", small)).to(device).eval()
moves = []
half = torch.arange(small.length // 2)
for name, one in (("separated", separated["trained"]), ("dense, untrained", dense)):
    past = one.extended("clamp") if name == "separated" else one
    there = half + 4 * small.length
    here = analysis.residual_states(one, short)[-1]["sem"]
    moved = analysis.residual_states(past, short, there)[-1]["sem"]
    still, held = (
        analysis.held_attention_states(past, short, at)[-1]["sem"]
        for at in (half, there)
    )
    live_drift, held_drift = analysis.drift(moved, here), analysis.drift(held, still)
    moves.append(
        {"model": name, "drift, live": live_drift, "drift, attention held": held_drift}
    )

# %% tags=["hide-input"]
moves = pd.DataFrame(moves).set_index("model")
numbers["live_drift"], numbers["live_drift_held"] = moves.loc["separated"]
assert numbers["live_drift_held"] == 0.0
assert moves.loc["dense, untrained", "drift, attention held"] > 1e-3
figures.show_table(
    moves.reset_index(),
    caption="Drift of the final content, four trained lengths away: live, and with "
    "every head looking where it looks at index 0.",
    formats=dict.fromkeys(moves.columns, ".3f"),
)

# %% [markdown]
# With attention held the drift of the trained separated model is {num}`22_inside/live_drift_held:.1f`, to the last
# bit. So the promise is kept in one sense: nothing in the content itself has to be extrapolated. In another it is
# empty, because the heads are not held, and then the drift is {num}`22_inside/live_drift:.2f`.

# %% tags=["hide-input"]
moved = rows("drift")
TRAINED = {"color": figures.INK, "linestyle": (0, (2, 2)), "linewidth": 1.2}


def by_rule(ax, own: pd.DataFrame, value: str, shift: int = 0) -> None:
    """A line a rule by depth, and a dotted one for trained indices."""
    for rule, (colour, name) in RULES.items():
        line = {"color": colour, "marker": "o", "markersize": 3.5, "label": name}
        draw(ax, own[own.rule == rule], value, shift=shift, **line)
    trained = own[own.rule == "trained"]
    draw(ax, trained, value, shift=shift, label="trained index", **TRAINED)


fig, axes = plt.subplots(1, 2, figsize=(8.6, 3.7), sharey=True)
for ax, method in zip(axes, ("separated-learned", "learned"), strict=True):
    ax.set(xlabel="depth", title=figures.METHODS[method].label)
    if method in present:
        by_rule(ax, moved[moved.method == method], "drift")
        by_depth(ax)
    else:
        figures.not_run(ax)
for ax in axes:  # they share an axis: only now do all lines stand where they will
    figures.label_lines(ax, fontsize=8.5)
axes[0].set_ylabel("drift of the content")
among, apart = (
    told(of.mean("separated-learned", one)) for one in ("drift/trained", "another_text")
)
figures.show(
    fig,
    name="fig-inside-drift",
    alt="Drift of the content against depth for six rules past the trained length, in "
    "a separated and a dense model with a learned table; dotted, the drift to trained "
    "indices.",
    caption=f"How far the content moves when a text starts near {SHOWN} times the "
    "trained length instead of at 0, by depth and rule. At the last depth of separated "
    f"learned: among trained indices (dotted) {among}; from one text to another "
    f"{apart}. Means over seeds.",
)
figures.provenance(table)

# %% [markdown]
# Read this figure and {numref}`fig-inside-rules` with two warnings in mind. A model that does not read the index has no
# drift, whatever order is worth to it: without an encoding it is zero, and with RoPE, whose scores read differences
# only, it is rounding. A small drift says something only of a model that reads indices, and is a virtue only together
# with a low loss; {doc}`chapter 10 <10_language_model>` has the losses. And the content of the strict model does
# not keep still among trained indices either: it moves by {num}`inside/strict-learned/drift/trained:.2f` of its norm there.
#
# Content moves because attention does. How much of it goes elsewhere? The figure takes, for each layer, the total
# variation distance between the weights at the new index and those at index 0: the share of attention that has moved to
# other tokens. Position heads write to the pos stream, sem heads to the sem stream; both read both.

# %% tags=["hide-input"]
routing = rows("routing", method="separated-learned")
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), sharey=True)
elsewhere = {}
for ax, heads in zip(axes, ("pos", "sem"), strict=True):
    ax.set(xlabel="block", title=f"heads that write to {heads}", ylim=(0, 1.03))
    elsewhere[heads] = np.nan
    if routing.empty:
        figures.not_run(ax)
        continue
    own = routing[(routing.heads == heads) & (routing.start > 0)]
    by_rule(ax, own, "distance", shift=1)
    by_depth(ax, "block")
    figures.label_lines(ax, fontsize=8.5)
    of_five = own[own.rule.isin(FIVE)].groupby(["rule", "depth"]).distance.mean()
    elsewhere[heads] = of_five.mean()
axes[0].set_ylabel("share of attention elsewhere")
figures.show(
    fig,
    name="fig-inside-routing",
    alt="Share of attention that goes elsewhere past the trained length, against the "
    "block, for heads that write to the pos stream and to the sem stream, one line per "
    "rule.",
    caption="Past the trained length the heads of separated learned look elsewhere. "
    f"The share of attention that moves near {SHOWN} times that length, over the five "
    f"rules: position heads {told(elsewhere['pos'])}, sem heads "
    f"{told(elsewhere['sem'])}. Means over seeds.",
)
figures.provenance(table)

# %% [markdown]
# Does it matter? A representation may move along directions that nobody reads. The last figure draws the drift against
# what the same texts lose there: bits per byte minus those at index 0. All models are on one
# picture, each under each of its rules.

# %% tags=["hide-input"]
read = [name for name in have.columns if name.startswith("drift/")]
points = [
    (method, of.mean(method, name), of.mean(method, name.replace("drift/", "excess/")))
    for method in present
    for name in read
]
points = pd.DataFrame(points, columns=["method", "drift", "excess"]).dropna()
fig, ax = plt.subplots(figsize=(6.8, 3.8))
for method, own in points.groupby("method", sort=False):
    look = figures.METHODS[method].line(linestyle="", markersize=6)
    ax.plot(own.drift, own.excess, **look)
ax.axhline(0, color=figures.FAINT, linewidth=1)
ax.set(xlabel="drift of the content at the last depth")
ax.set_ylabel("bits per byte more than at index 0")
ax.legend(fontsize=8.5) if len(points) else figures.not_run(ax)
many = len(points) > 2
together = np.corrcoef(points.drift, points.excess)[0, 1] if many else np.nan
figures.show(
    fig,
    name="fig-inside-excess",
    alt="Scatter plot of bits per byte above those at index 0 against the drift of the "
    "content, one marker per method and rule.",
    caption="What the drift costs: one marker per method and rule, means over seeds "
    f"and far starts, trained starts included. The correlation is {told(together)}.",
)
figures.provenance(table)

# %% [markdown]
# ## What a score is made of
#
# Attention is where the streams meet, so look at one score. Queries and keys are linear in the normalised state, and in a separated model
# this state is content plus position. The score of a pair is therefore a sum of four products: content asks and content answers,
# position asks and position answers, and the two that cross. Nothing is left over.

# %%
torch.manual_seed(seed)
parted = LanguageModel(model_config("separated-sinusoidal", small)).to(device).eval()
parts = next(split_scores(parted, tokens[:2, : small.length]))
shares = {name: float(term.std()) for name, term in parts.terms.items()}
content = parts.terms["content-content"]
later = next(
    split_scores(
        parted, tokens[:2, : small.length], torch.arange(small.length) + small.length
    )
).terms["content-content"]
assert torch.equal(content, later), "content with content does not hear the index"
print({name: round(share, 3) for name, share in shares.items()})

# %% [markdown]
# In the first layer the term of content with content is the same at any index, to the last bit. The other three are what breaks in
# long texts, and they can be mended by themselves: {doc}`chapter 12 <12_what_works>` follows the terms of a trained head past the trained
# length.
#
# ## Verdicts
#
# The rules stand in {mod}`sepnb.claims`; each was committed before the records it judges.

# %%
IDS = [one.id for one in claims.CLAIMS if one.needs == ("experiment/inside",)]
numbers |= evidence.show(
    claims.judge(IDS, {"experiment/inside": table}),
    caption="The six claims of this chapter, judged by rules written beforehand.",
)
figures.provenance(table)

# %% [markdown]
# ## What to take away
#
# 1. **The content does not keep its integrity past the trained length**
#    (*{num}`22_inside/verdict_semantic_integrity_is_preserved`*). In separated learned it moves by
#    {num}`22_inside/drift_five_separated:.2f` of its norm under the five rules, among trained indices by
#    {num}`inside/separated-learned/drift/trained:.2f`.
# 2. **A new index reaches the content only through attention.** In a separated model that is exact
#    (*{num}`22_inside/verdict_only_the_routing_hears_a_new_index`*): a rule that keeps where heads look keeps everything.
#    Whether separation steadies the content against a dense model is
#    *{num}`22_inside/verdict_separation_steadies_the_content`*: it does under the Fourier and the cyclic rule, and six seeds leave the
#    other three open.
# 3. **Text is a small share of the trained pos stream, and can be read there.** The hypothesis that it carries almost none:
#    *{num}`22_inside/verdict_pos_stream_carries_almost_no_text`*. Between texts lies {num}`inside/separated-learned/text/pos:.2g` of
#    its variance, and yet a probe names bytes from it {num}`inside/separated-learned/byte/pos:+.3f` better than the majority rate.
# 4. **The sem stream hardly shows the index** (*{num}`22_inside/verdict_content_hides_the_position`*), and the index can be read
#    without any encoding (*{num}`22_inside/verdict_position_is_readable_without_an_encoding`*).
#
# **Limits.** The probes are linear: what they miss may be written in another way. The drift counts every direction alike, also
# those that the output ignores. Texts of half the trained length at far indices isolate the index; a long text has more
# keys as well, and that is another chapter. One language, models of less than a million parameters, one budget. The
# leak is measured at texts of a few bytes.
#
# **What would change our mind.** About the routing, a single nonzero drift with attention held. About the pos stream, a
# nonlinear probe that names bytes from it. About integrity, an extrapolator whose drift stays at that of trained indices:
# the architecture does not forbid one.
#
# ## Exercises
#
# Try each before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (easy)** A probe is fitted on a random table of $L$ rows and $w$ columns, without noise and with very little ridge. Which
# $R^2$ do you expect at the positions that it was fitted on? Check it for 128 rows and 32 columns.

# %% tags=["hide-cell"]
# Solution. 32 random directions of the 127 that a centred target can have: about w / (L
# - 1), a quarter.
found = []
for draw in range(20):
    rows_of = torch.randn(128, 32, generator=torch.Generator().manual_seed(draw))
    positions = torch.arange(128.0)[:, None]
    probe = analysis.fit_probe(rows_of, positions, ridge=1e-9)
    found.append(analysis.r_squared(probe(rows_of), positions))
print(f"{np.mean(found):.3f}; predicted {32 / 127:.3f}")
assert abs(np.mean(found) - 32 / 127) < 0.05

# %% [markdown]
# **2. (easy)** States that have nothing to do with position still have a position share by {eq}`eq-inside-shares`. How large is
# it for $B$ texts, on average?

# %% tags=["hide-cell"]
# Solution. The mean over B independent texts has 1/B of their variance: the share is
# about 1/B.
noise = torch.randn(25, 300, 16, generator=torch.Generator().manual_seed(0))
assert abs(analysis.variance_shares(noise).position - 1 / 25) < 0.005

# %% [markdown]
# **3. (medium)** The drift of a dense model with a sinusoid is not zero even with attention held. Which part of it is there at
# depth 0 already? Predict it from the position embeddings and the token embedding, then check.

# %% tags=["hide-cell"]
# Solution. At depth 0 the state is embedding plus code, so that the difference is the
# difference of two codes.
places = torch.arange(8)
code = dense.transformer.input_encodings[0]
words = short[:4, :8]
difference = (code((places + 100).to(device)) - code(places.to(device))).cpu()
start = analysis.residual_states(dense, words)[0]["sem"]
predicted = (len(words) ** 0.5 * difference.norm() / start.norm()).item()
moved = analysis.residual_states(dense, words, places + 100)[0]["sem"]
measured = analysis.drift(moved, start)
assert abs(predicted - measured) < 1e-5

# %% [markdown]
# **4. (hard)** The model without an encoding knows where it is by its mask. Build the simplest such clock: uniform attention over
# visible tokens whose values are independent with variance 1. How does the expected squared norm of the average fall with the
# index, and which function of the index could a linear probe therefore hope for?

# %% tags=["hide-cell"]
# Solution. The mean of i + 1 independent values has variance 1 / (i + 1): its squared
# norm falls like that, and the index is a nonlinear function of the state. A first
# token that always has the same value does better: its share of the mean is 1 / (i +
# 1), which is linear in the state. So a line reads 1 / (i + 1) well, and the index
# itself badly.
values = torch.randn(400, 64, 8, generator=torch.Generator().manual_seed(0))
values[:, 0] = torch.eye(8)[0] * 8
counts = torch.arange(1, 65)
averages = values.cumsum(1) / counts[:, None]
squared = averages[:, :, 1:].square().sum(-1).mean(0)[1:]
assert ((squared * counts[1:] ** 2 / counts[:-1] / 7 - 1).abs() < 0.15).all()
scores = {}
for name, target in (("index", counts.double()), ("1 / (i + 1)", 1 / counts.double())):
    known = target.repeat(200)[:, None]
    said = analysis.fit_probe(averages[:200].flatten(0, 1), known)(averages[200:])[
        ..., 0
    ]
    scores[name] = analysis.r_squared(said, target.expand_as(said))
print({name: round(score, 2) for name, score in scores.items()})
assert scores["1 / (i + 1)"] > 0.9 > scores["index"]

# %% [markdown]
# ---
# The next cell writes the numbers that this page's sentences, the {doc}`claims page </book/claims>` and the
# regression tests read.

# %% tags=["hide-cell"]
chapter_numbers.publish("22_inside", numbers, profile=profile)

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
# # 10. The separated language model
#
# **Finding.** Separation learns faster, not better, than adding the same sinusoid. In small models separated minus dense is
# {num}`10_language_model/gain_at_1x` bits per byte after a short training and
# {num}`10_language_model/gain_at_16x` after sixteen times as much. At equal parameters a larger lead ends level, at {num}`10_language_model/gain_wide_at_16x`.
# This lead is over a dense model that adds the same sinusoid. RoPE is ahead from the start: RoPE minus separated is
# {num}`10_language_model/rope_minus_separated_at_1x`.
#
# **The position stream need not evolve.** A constant one, which every layer reads unchanged, is as good or better: constant minus evolving is
# {num}`ablation/separated-sinusoidal-constant minus separated-sinusoidal/bits_per_byte:+.3f±` bits per byte with a sinusoid and
# {num}`ablation/separated-learned-constant minus separated-learned/bits_per_byte:+.3f±` with a learned table. In effect a separated model is
# a model of content whose queries and keys have features of position.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import math
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.ticker import MaxNLocator
from scipy.stats import ttest_1samp

from sepnb import claims, experiments
from sepnb.analysis import flops
from sepnb.claims import language_model as of_this_chapter
from sepnb.claims.budget import exchanges, places
from sepnb.claims.budget import models as ranked_models
from sepnb.data import text
from sepnb.evaluation import evaluate
from sepnb.experiments import ablation
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.ablation import COMPARED
from sepnb.experiments.budget import BUDGETS
from sepnb.experiments.budget import METHODS as KEY_MODELS
from sepnb.experiments.in_window import METHODS
from sepnb.experiments.methods import model_config
from sepnb.experiments.scale_sweep import TABLES
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.plots import figures
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import NOT_RUN, RunTable, summarise, text_of
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train

figures.use_style()
numbers = {}


# %% tags=["hide-input"]
def loaded(experiment: str) -> pd.DataFrame:
    """The table of an experiment; scores that are not there yet are NaN."""
    rows = experiments.get(experiment).table(profile)
    for column in ("bits_per_byte", "block_parameters"):
        if column not in rows:
            rows[column] = np.nan
    return rows


budgets = loaded("budget")
trained = budgets.dropna(subset=["bits_per_byte"])
levels = {
    cell: runs.bits_per_byte for cell, runs in trained.groupby(["method", "budget"])
}
smaller = ablation.SIZES[profile]
read = {
    n: steps * smaller.batch_size * smaller.length
    for n, steps in zip(budgets.budget, budgets.steps, strict=True)
}
bytes_read = ", ".join(f"{n}x: {bytes_:,} bytes read" for n, bytes_ in read.items())


def over_budgets(ax, seeds: dict[int, pd.Series], look: figures.Method, **line) -> None:
    """The means over seeds at each budget as a line, and every seed as a tick."""
    if seeds:
        at = [read[n] for n in seeds]
        ax.plot(at, [values.mean() for values in seeds.values()], **look.line(**line))
    for n, values in seeds.items():
        ticks = {"color": look.colour, "markersize": 10}
        ax.plot([read[n]] * len(values), values, "_", **ticks)


def budget_axis(ax) -> None:
    ax.set_xscale("log")
    ax.minorticks_off()
    labels = [f"{n}x\n{bytes_ / 1e6:.2g} MB" for n, bytes_ in read.items()]
    ax.set_xticks(list(read.values()), labels)
    ax.set(xlabel="bytes read in training (log scale)")


EQUAL_WIDTH = "separated minus dense, sinusoidal"
EQUAL_COUNT = "widened to equal parameters, minus dense"
GAPS = {
    EQUAL_WIDTH: ("separated-sinusoidal", "sinusoidal"),
    EQUAL_COUNT: ("separated-sinusoidal-wide", "sinusoidal"),
    "strict minus separated, sinusoidal": ("strict-sinusoidal", "separated-sinusoidal"),
    "RoPE minus separated sinusoidal": ("rope", "separated-sinusoidal"),
}
gaps = {
    (name, n): RunTable(trained[trained.budget == n]).difference(*pair, "bits_per_byte")
    for name, pair in GAPS.items()
    for n in read
}

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.2))
ax.axhline(0, color=figures.FAINT, linewidth=1.2)
for name, (a, _) in GAPS.items():
    own = {n: gaps[name, n] for n in read if len(gaps[name, n])}
    over_budgets(ax, own, figures.METHODS[a], label=name)
ax.set(ylabel="difference (bits per byte)")
if ax.get_legend_handles_labels()[0]:
    budget_axis(ax)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
else:
    figures.not_run(ax)
at_first, at_last = (
    f"at {text_of(gaps.get((EQUAL_WIDTH, n), []))}" for n in (BUDGETS[0], BUDGETS[-1])
)
figures.show(
    fig,
    name="fig-budget-gap",
    alt="Differences in bits per byte between pairs of models against bytes read in "
    "training, with a line at zero: separated minus dense with a sinusoid begins "
    f"{at_first} and ends {at_last}.",
    caption="Separated minus dense, at equal width, begins "
    f"{at_first} and ends {at_last}. Four differences at one, four and sixteen times "
    f"the shortest training, paired by seed, small models ($D = {smaller.width}$). "
    "Below zero the first of the two is better. Every number is under Details.",
)

# %% tags=["remove-input"]
for n in BUDGETS:
    keys = ("gain", "gain_wide", "strict_minus_separated", "rope_minus_separated")
    for key, name in zip(keys, GAPS, strict=True):
        if key != "strict_minus_separated" or n == BUDGETS[-1]:  # of that, the end
            numbers[f"{key}_at_{n}x"] = text_of(gaps.get((name, n), []))
figures.provenance(budgets)

# %% [markdown]
# > **Question.** How many bits per byte do dense and separated language models lose inside the trained length,
# > at equal width and at equal parameters?
#
# Chapters {doc}`7 <07_two_streams>` and {doc}`8 <08_split_mlp_norm>` put a transformer together in two streams. Separation has a
# price that can be counted: a block-diagonal matrix has fewer weights than a full one, and position and meaning can no longer
# meet in the values, the outputs and the MLPs. Before anybody asks what this is good for beyond the trained length, there is
# a question inside of it. On ordinary text, at ordinary positions, what does it cost?
#
# This chapter trains the model on English novels beside sinusoid, learned table, RoPE, ALiBi and no encoding, and answers with
# paired seeds. All other encodings are trained in {doc}`chapter 25 <25_every_encoding>`.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: this page loads records and trains six tiny models, about 20 s of one CPU core at any profile;
#   nothing is downloaded. The records: `sepnb run lr_screen table_sweep in_window`, one to three minutes a run on one core. Those of
#   the small models: `sepnb run ablation_sweep budget_short_sweep`, then `ablation budget`, ten seconds to two
#   minutes a run. They read ELTeC (`sepnb data eltec-eng`).
# - **You need**: chapters {doc}`7 <07_two_streams>` and {doc}`8 <08_split_mlp_norm>`, or their takeaways.
# - **You will learn**: how the comparison is made fair, what separation costs and gives inside the trained
#   length, which of its parts does what, and whether more training changes the answer.
# - **Claims tested**: those under *Verdicts* (see {doc}`/book/claims`).
# ```
#
# ## What is compared
#
# Nine models, one class. A *method* sets two fields of the config and nothing else: how the width is divided
# into streams, and the encoding. Residual path, norms, read-out, schedule, text and order of the batches are
# the same for all.
#
# - **Dense**: one stream of width $D$. A position embedding is added to the token's; RoPE turns queries
#   and keys; ALiBi lowers scores; *none* leaves order to the causal mask.
# - **Separated**: $D = d_{\text{pos}} + d_{\text{sem}}$ with $d_{\text{pos}} = D/4$, which is also the
#   width of one head, as the slides first tried. The position embedding fills the pos stream, and the output is read from the
#   sem stream only.
# - **Separated, wide**: the same with a larger $D$, so that it has about as many parameters as the dense
#   model. No single comparison is fair: at equal width the separated model has fewer
#   weights, at equal parameters it is wider. So there are two.

# %% tags=["hide-input"]
size = lm.SIZES[profile]
models = {method: LanguageModel(model_config(method, size)) for method in METHODS}
overview = pd.DataFrame(
    {
        "method": figures.METHODS[method].label,
        "width": " + ".join(f"{w} {name}" for name, w in model.config.streams.items),
        "block parameters": model.parameter_counts()["blocks"],
        "all parameters": model.parameter_counts()["total"],
        "multiply-adds a token": round(flops.per_token(model.config, size.length)),
    }
    for method, model in models.items()
)
blocks = overview["block parameters"]
excess = blocks.iloc[-1] / blocks.iloc[0] - 1
figures.show_table(
    overview,
    caption=f"The nine models of profile {profile}. The wide ones have {excess:+.1%} "
    "block parameters beside the dense ones.",
    formats=dict.fromkeys(overview.columns[2:], ",d"),
)

# %% [markdown]
# "They differ in one factor" is easily said, and public comparisons often differ in more: an extra norm in
# one branch, another residual path, another initial scale. So let the configs say it themselves.


# %%
def differing(a: TransformerConfig, b: TransformerConfig) -> set[str]:
    """The fields in which two resolved configs differ."""
    left, right = a.resolved(), b.resolved()
    return {field for field in left if left[field] != right[field]}


config = {method: model_config(method, size) for method in METHODS}
for pair in (
    ("learned", "separated-learned"),
    ("sinusoidal", "separated-sinusoidal"),
    ("separated-learned", "separated-learned-wide"),
):
    assert differing(*(config[name] for name in pair)) == {"streams"}
assert differing(config["none"], config["rope"]) == {"encoding"}
parts = [
    {type(module).__name__ for module in LanguageModel(config[name]).modules()}
    for name in ("learned", "separated-learned")
]
assert parts[0] == parts[1], "built of the same classes"

# %% [markdown]
# ## The measure
#
# A text is a string of bytes $t_0, t_1, \dots$; the vocabulary is 256 and nothing is tokenised. The model is
# asked for each byte, given the bytes before it in its window of $L$. Its loss is
#
# $$
# \text{bits per byte} \;=\; -\frac{1}{n} \sum_{i=1}^{n} \log_2 P\!\left(t_i \mid t_{i-k}, \dots, t_{i-1}\right), \qquad k \le L .
# $$ (eq-bits-per-byte)
#
# A model that knows nothing loses 8. Counting bytes alone (unigram), or pairs of bytes (bigram), on the
# training text gives two baselines. A model that does not get well below the second has hardly learned to look
# back, and comparing it would compare noise. So the rules of this chapter judge only methods whose mean is below
# $3.35$, set beforehand, a little under the loss of counting pairs on these novels.
#
# In the package, the logits and the bytes that came give the nats of every byte:
#
# ```{literalinclude} ../../sepnb/training/loop.py
# :pyobject: target_losses
# :start-at: wide =
# :dedent:
# ```
#
# `evaluate` keeps them by window and position and turns them into bits. A model with uniform logits must lose exactly 8, and a
# model that is sure and right, nothing.


# %%
class Constant(torch.nn.Module):
    """Logits that favour byte `sure` by a margin, whatever it reads."""

    def __init__(self, sure: int = 0, margin: float = 0.0):
        super().__init__()
        favoured = torch.nn.functional.one_hot(torch.tensor(sure), 256)
        self.logits = torch.nn.Parameter(margin * favoured.float())

    def forward(self, tokens):
        return self.logits.expand(*tokens.shape, 256)


windows_of_a = np.full((3, 9), ord("a"))
assert evaluate(Constant(ord("a"), 50.0), windows_of_a).bits_per_byte < 1e-6
knows_nothing = evaluate(Constant(), windows_of_a).bits_per_byte
print("knows nothing:", knows_nothing, "bits per byte")

# %% [markdown]
# ## A training, live
#
# The models behind the records need minutes. Here is the same code at the smallest size, on the text that is
# always at hand: the Python sources of a library that PyTorch installs. Two models, dense and separated, read
# the same batches in the same order.

# %%
small = lm.SIZES["smoke"]
library = text.load(small.text.name)
held_out = text.windows(
    library.validation, length=small.length, per_document=small.text.validation_bytes
)
schedule = TrainingConfig(small.steps, small.batch_size, small.length, 4e-3)
sizes = {"batch_size": small.batch_size, "length": small.length, "steps": small.steps}


def live(config: TransformerConfig) -> tuple[np.ndarray, float]:
    """Train a tiny model: its training curve and held-out loss, in bits per byte."""
    torch.manual_seed(seed)
    model = LanguageModel(config)
    batches = text.sample_batches(library.train, seed=seed, **sizes)
    curve = np.array(train(model, batches, schedule, device=device)) / np.log(2)
    return curve, evaluate(model, held_out.tokens, device=device).bits_per_byte


pair = ("learned", "separated-learned")
curves = {method: live(model_config(method, small)) for method in pair}
numbers["live_learned"] = curves["learned"][1]
numbers["live_separated_learned"] = curves["separated-learned"][1]

# %% tags=["hide-input"]
fig, ax = plt.subplots()
for method, (curve, _) in curves.items():
    smooth = np.convolve(curve, np.ones(8) / 8, mode="valid")
    look = figures.METHODS[method].line(marker="")
    ax.plot(np.arange(len(smooth)) + 8, smooth, **look)
ax.set(xlabel="optimiser step", ylabel="training loss (bits per byte)")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-live-training",
    alt="Training loss against step for a dense and a separated model with a learned "
    "table; both fall from above seven bits per byte along nearly the same path.",
    caption="In the first seconds dense and separated learn at much the same pace: "
    "source code, one seed, each point a mean of eight steps.",
)

# %% [markdown]
# ## What went wrong: two baselines that looked worse than they are
#
# While this chapter was built, the first dense sinusoidal baseline was poor. Token embeddings are commonly
# drawn with a standard deviation of $0.02$, while the entries of a sinusoid have a root mean square near
# $\sqrt{1/2}$. Added at the input, position starts some thirty times louder than meaning. In a separated
# model each stream has a norm, and loudness should matter less.
#
# A win over a baseline with a bad start would be a false one. So the embedding's scale is a field of the
# config, tokens are drawn at one half, and here is the difference it makes, live.


# %%
def drawn(method: str, std: float) -> float:
    """Held-out bits per byte when token embeddings are drawn from N(0, std^2)."""
    return live(replace(model_config(method, small), embedding_std=std))[1]


pair = ("sinusoidal", "separated-sinusoidal")
by_std = pd.DataFrame({"method": [figures.METHODS[method].label for method in pair]})
for std in (0.02, 0.5):
    by_std[f"drawn at {std}"] = [drawn(method, std) for method in pair]
by_std["gain"] = by_std["drawn at 0.02"] - by_std["drawn at 0.5"]
for method, gain in zip(pair, by_std["gain"], strict=True):
    numbers[f"embedding_gain_{method.replace('-', '_')}"] = gain
figures.show_table(
    by_std,
    caption="Held-out bits per byte of tiny models by the standard deviation of the "
    "token embedding; one seed, live.",
    formats=dict(zip(by_std.columns[1:], (".3f", ".3f", "+.3f"), strict=True)),
)

# %% [markdown]
# Drawn at the louder scale, the dense model gains {num}`10_language_model/embedding_gain_sinusoidal:.2f` bits
# per byte in this small demonstration, the separated one
# {num}`10_language_model/embedding_gain_separated_sinusoidal:.2f`. One seed of a tiny model decides nothing,
# but it shows where to look when a baseline is weak.
#
# That repair broke the next baseline. A learned table was still drawn at $0.02$, as large models do, beside tokens that were now at
# one half: position began all but silent. The first records of this chapter compared separated models with that muted table, and
# separation appeared to improve it by far. The records were withdrawn.
#
# Now every learned table, and the content beside an added sinusoid, is tried at three scales, each with three learning rates, over the
# whole schedule on the validation text. Where the best of the three stood at an end, one beyond it was tried. The two dense models did
# best where position is loudest; louder still they are worse.

# %% tags=["hide-input"]
scales = experiments.get("table_sweep")
tried = scales.table(profile)
tried["method"] = [run.method for run in scales.grid(profile)]
tried["std"] = [scales.trial_of(run.resolved())[2] for run in scales.grid(profile)]
tried = tried[(tried.status != "not run") & (tried.seed == 0)].reindex(
    columns=["method", "std", "learning_rate", "val_bits_per_byte"]
)
lowest = tried.groupby(["method", "std"]).val_bits_per_byte.min()
LOUDNESS = ("quieter", "quiet", "between", "loud", "louder")
STDS = {
    "table": dict(zip((0.005, 0.02, 0.1, 0.5, 1.0), LOUDNESS, strict=True)),
    "tokens": dict(zip((2.0, 1.0, 0.5, 0.25), LOUDNESS[1:], strict=True)),
}
used = {
    run.method: run.training.learning_rate
    for run in experiments.get("in_window").grid(profile)
}


def kind_of(method: str) -> str:
    """What is drawn louder or quieter: loud tokens are a quiet position."""
    return "table" if scales.scale(method) is TABLES else "tokens"


def by_loudness(method: str) -> pd.Series:
    """The least loss of a method over rates, by how loud position is beside content."""
    own = lowest.get(method, pd.Series(dtype=float))
    return own.rename(index=STDS[kind_of(method)]).reindex(LOUDNESS)


def told_scale(method: str) -> str:
    """The scale at which the runs below are drawn."""
    std = scales.std(SWEPT, method)
    return f"{kind_of(method)} at {std:g}, rate {used[method]:g}" if std else "not run"


SWEPT = "laptop" if profile == "smoke" else profile  # whose rates and scales runs have
beside_content = [name for name in METHODS if name in scales.methods]
loudness = pd.DataFrame(map(by_loudness, beside_content), index=beside_content)
gained = loudness["quiet"] - loudness.loc[:, "quiet":].min(axis=1)
numbers["loudness_gain_learned"] = chapter_numbers.mean_of([gained["learned"]])
if profile == "laptop" and loudness.loc[:, "quiet":"loud"].notna().all(axis=None):
    assert gained["separated-learned"] == 0, "the text says that it gains nothing"
    assert not (loudness["louder"] < loudness["loud"]).any(), "as is said"
added = tried[tried.method == "sinusoidal"]
at_its_rate = added[added.learning_rate == used["sinusoidal"]].val_bits_per_byte.min()


def quietest_loss(sweep: str, method: str) -> float:
    """What a table loses at the quietest scale tried of it, means over the seeds."""
    one, losses = experiments.get(sweep), {}
    if (used_trial := one.chosen(profile).get(method)) is None:
        return np.nan
    table = one.table(profile)
    for run, loss in zip(one.grid(profile), table.val_bits_per_byte, strict=True):
        losses.setdefault(one.trial_of(run.resolved()), []).append(loss)
    quietest = min(trial for trial in losses if trial[:2] == used_trial[:2])
    return np.mean(losses[quietest]) - np.mean(losses[used_trial])


for short, sweep, method in (
    ("wide", "table_sweep", "separated-learned-wide"),
    ("constant", "ablation_sweep", "separated-learned-constant"),
):
    loss = quietest_loss(sweep, method)
    numbers[f"quietest_loss_{short}"] = chapter_numbers.mean_of([loss])
numbers["sinusoid_rate_gain"] = chapter_numbers.mean_of(
    [at_its_rate - added.val_bits_per_byte.min()]
)
figures.show_table(
    pd.DataFrame(
        {
            "method": [figures.METHODS[name].label for name in beside_content],
            **{f"position {how}": loudness[how].to_numpy() for how in LOUDNESS},
            "drawn below": list(map(told_scale, beside_content)),
        }
    ),
    caption="Validation bits per byte by how loud position is beside content when "
    "training begins, at the best of the rates tried, one seed. Learned tables have a "
    "standard deviation of 0.005, 0.02, 0.1, 0.5 and 1 beside tokens at 0.5; beside a "
    "sinusoid tokens have 2, 1, 0.5 and 0.25. An end was tried where the best of the "
    "three between stood beside it.",
    formats={f"position {how}": ".3f" for how in LOUDNESS},
)
figures.provenance(scales.table(profile))

# %% [markdown]
# A louder table gains the dense model {num}`10_language_model/loudness_gain_learned:.3f` bits per byte and the separated one nothing. A separate
# norm makes the scale of a table nearly irrelevant; an added table needs it set.
#
# ## The experiment
#
# **Text.** ELTeC {cite:p}`eltec`, ninety-nine English novels of the years 1840 to 1920. Whole novels are held
# out, and no author stands on both sides: twenty novels are the test text, of which the first part of each,
# {num}`10_language_model/test_bytes:,` bytes in all, is scored; ten others are the validation text.
#
# **Learning rate.** Each method has the best of the same three rates on the validation text, with a seed that is not used again.
# Where the best stands at an edge, a further rate is tried.
#
# Learned tables take rate and scale together, over the whole schedule; *none* is
# tried over the whole of it too, since less than half leaves it on a plateau. Where one seed does not rank two of these, two more
# decide. All others, the sinusoid among them, take the rate of the
# shorter sweep under *Details*. Over the whole schedule the dense sinusoid would prefer another rate to its own, by
# {num}`10_language_model/sinusoid_rate_gain:.3f` bits per byte in that one seed.
#
# **Runs.** Every method is trained with the same seeds. A seed fixes the order of the batches, so the methods
# of a seed read the same bytes in the same order, and differences are taken seed by seed.

# %% tags=["hide-input"]
table = experiments.get("in_window").table(profile)
have = table[table.status != "not run"]
NOTHING = f"Nothing has run: sepnb run in_window --profile {profile}"
score = RunTable(table).intervals("bits_per_byte")
numbers["seeds"] = len(set(have.seed))
numbers["test_bytes"] = int(have.test_bytes.iloc[0]) if score else NOT_RUN
numbers["bytes_seen"] = size.steps * size.batch_size * size.length
FACTS = ["parameters", "block_parameters", "train_cpu_s"]
facts = have.reindex(columns=["method", *FACTS]).groupby("method")[FACTS].median()
facts = facts.reindex(METHODS).astype(float)
results = pd.DataFrame(
    {
        "method": figures.METHODS[method].label,
        "bits per byte": str(score[method]),
        "seeds": score[method].seeds,
        "block parameters": int(facts.block_parameters[method]),
        "all parameters": int(facts.parameters[method]),
        "CPU seconds": facts.train_cpu_s[method],
    }
    for method in sorted(score, key=lambda method: score[method].mean)
)
figures.show_table(
    results,
    caption="Test bits per byte inside the trained length, best first: mean over seeds "
    "and 95 % t interval. CPU seconds of training are the median over runs that shared "
    "two cores: an indication, no benchmark.",
    formats={"block parameters": ",d", "all parameters": ",d", "CPU seconds": ".0f"},
)
figures.provenance(table)


# %% tags=["hide-input"]
order = sorted(score, key=lambda method: score[method].mean, reverse=True)
labels = [figures.METHODS[method].label for method in order] or ["not run"]
best, worst = labels[-1], labels[0]
fig, ax = plt.subplots(figsize=(6.8, 3.9))
for row, method in enumerate(order):
    scores = have.loc[have.method == method, "bits_per_byte"]
    figures.seed_row(ax, row, scores, figures.METHODS[method])
if order:
    counted = have["bigram_bits_per_byte"].iloc[0]
    ax.axvline(counted, color=figures.FAINT, linestyle=":")
    ax.set_yticks(range(len(order)), labels)
ax.set(xlabel="test bits per byte (lower is better; dotted: counting pairs of bytes)")
figures.show(
    fig,
    name="fig-in-window",
    alt="Dot plot of test bits per byte for the nine methods, one tick per seed, "
    f"sorted. Lowest is {best}, highest {worst}.",
    caption=f"Inside the trained length the lowest mean is that of *{best}* "
    f"({score[order[-1]].mean:.3f} bits per byte), the highest that of *{worst}* "
    f"({score[order[0]].mean:.3f}). Markers: means; bars: 95 % t intervals over seeds; "
    "ticks: every seed."
    if order
    else NOTHING,
)

# %% tags=["remove-input"]
figures.provenance(table)

# %% [markdown]
# ## The price of separation, in pairs
#
# Seeds move all methods together, since a seed is also an order of the text; that is why the intervals above
# are wider than the question needs. The difference within a seed is sharper. Below zero the separated model
# is better. The claim that separation costs nothing asks that the difference lie left of $+0.03$ bits per
# byte, a margin written down beforehand. All of this is after one short training, and {numref}`fig-budget-gap` shows what more of it does.

# %%
pairs = {
    "learned, equal width": ("separated-learned", "learned"),
    "learned, equal parameters": ("separated-learned-wide", "learned"),
    "sinusoidal, equal width": ("separated-sinusoidal", "sinusoidal"),
    "sinusoidal, equal parameters": ("separated-sinusoidal-wide", "sinusoidal"),
}
minus = RunTable(table).difference
differences = {name: minus(*pair, "bits_per_byte") for name, pair in pairs.items()}
for name, values in differences.items():
    print(f"{name:30s}", text_of(values, ".3f"))

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 2.7))
rows = {
    name: [(differences[name], figures.METHODS[separated])]
    for name, (separated, _) in pairs.items()
}
figures.seed_rows(ax, rows, margin=0.03)
ax.set(xlabel="separated minus dense (bits per byte)")
listed = "; ".join(
    f"{name} {values.mean():+.3f}".replace("-", "\N{MINUS SIGN}")
    for name, values in differences.items()
    if len(values)
)
figures.show(
    fig,
    name="fig-price",
    alt="Differences in bits per byte between separated and dense models, four rows, "
    "one tick per seed, with lines at zero and at the margin of the rule.",
    caption=f"Separated minus dense, seed by seed: {listed or 'not run'}. "
    "Left of zero the separated model is better; the dashed line is the margin up to "
    "which separation counts as free.",
)

# %% tags=["remove-input"]
figures.provenance(table)

# %% [markdown]
# ## How far back do these models read?
#
# Two models with the same mean may earn it at different places. The first bytes of a window have almost no
# context, and no encoding can help there.

# %% tags=["hide-input"]
axes = {"index": "method", "columns": "start", "values": "bits_per_byte"}
by_position = experiments.get("in_window").rows(profile, "position")
means = by_position.reindex(columns=axes.values()).pivot_table(**axes, sort=False)
means = means.reindex(METHODS)
first, eight, last = (
    means.get(start, pd.Series(np.nan, index=means.index))
    for start in (0, 8, means.columns.max())
)
gain = eight - last
numbers["rope_gain_after_eight"] = chapter_numbers.mean_of([gain["rope"]])

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 4.0))
for method in score:
    if not method.endswith("-wide"):
        curve, look = means.loc[method].dropna(), figures.METHODS[method]
        ax.plot(curve.index + 1, curve.to_numpy(), **look.line(markersize=4))
ax.set_xscale("log", base=2)
ax.xaxis.set_major_formatter("{x:.0f}")
ax.set(xlabel="least bytes of context in the bin (log scale)")
ax.set(ylabel="test bits per byte")
figures.label_lines(ax)
bare = f"{gain['none']:+.2f}".replace("-", "\N{MINUS SIGN}")
figures.show(
    fig,
    name="fig-by-position",
    alt="Test bits per byte against bytes of context on a log scale, one line per "
    "method of equal width; the lines start together, part within a few bytes and run "
    "nearly flat from eight bytes on.",
    caption="With one byte of context all methods lose the same, within "
    f"{first.max() - first.min():.2f} bits per byte; they part within the first bytes. "
    "From eight bytes of context to the second half of the window RoPE gains only "
    f"{gain['rope']:.2f}, and the model without an encoding {bare} "
    "(negative: more context hurts it). Means over seeds."
    if score
    else NOTHING,
)

# %% tags=["remove-input"]
figures.provenance(table)

# %% [markdown]
# ## One factor at a time
#
# The separated model is not one change but several: position has columns beside the embedding and not in it; norms,
# values, outputs and MLPs are split; the output is read from one stream. Which of them costs, and which gives?
# The experiment `ablation` takes the full model and the dense one and changes one thing at a time.
#
# A *variant* is another model, its reference, with the fields replaced that it declares. So that twenty-nine of
# them can be paid for, the models are smaller than above: $D = 64$, three layers, $L = 64$ on a laptop, the same
# text, of which less is scored. Every variant has its rate and scale from the sweep. What one field does is the difference within a seed.
# Differences compare with each other; levels do not compare with those above.

# %% tags=["hide-input"]
for name, variant in COMPARED.items():
    if variant.base is not None:
        smaller = ablation.SIZES[profile]
        own, reference = (model_config(one, smaller) for one in (name, variant.base))
        fields = {field: getattr(own, field) for field in variant.model}
        assert own == replace(reference, **fields)
changed = [name for name, variant in COMPARED.items() if variant.base]
alone = sum(len(COMPARED[name].model) == 1 for name in changed)
print(f"{len(changed)} variants with a reference, {alone} of them change one field")


# %% tags=["hide-input"]
def effect(name: str) -> pd.Series:
    """A variant minus its reference, seed by seed; empty where either has not run."""
    return RunTable(factors).difference(name, COMPARED[name].base, "bits_per_byte")


factors = loaded("ablation")
rate_of = {
    run.method: run.training.learning_rate
    for run in experiments.get("ablation").grid(profile)
}


def told_of(name: str) -> dict[str, object]:
    """A row of the table: a variant, what it pays, its difference to its reference."""
    variant = COMPARED[name]
    runs = factors[factors.method == name].dropna(subset=["bits_per_byte"])
    return {
        "reference": variant.base or "",
        "change": variant.says,
        "bits per byte": text_of(runs.bits_per_byte, ".3f"),
        "minus the reference": text_of(effect(name)) if variant.base else "",
        "seeds": len(runs),
        "block parameters": runs.block_parameters.median(),
        "rate": f"{rate_of[name]:g}" if name in rate_of else "",
    }


# %% tags=["hide-input"]
LOOKS = {name: figures.METHODS[name] for name in COMPARED if name in figures.METHODS}
beside = figures.Method("concatenated sinusoidal", figures.MIXED, marker="h")
LOOKS["concatenated-sinusoidal"] = beside
MARGIN = 0.03  # bits per byte, of the rules


def draw_effects(named: dict[str, str]) -> plt.Figure:
    """A row for each label and its variant, in the look of that or of its reference.

    The band is the margin. The axis is linear to 0.05 and logarithmic beyond.
    """
    fig, ax = plt.subplots(figsize=(6.8, 1.0 + 0.33 * len(named)))
    ax.axvspan(-MARGIN, MARGIN, color=figures.FAINT, alpha=0.15, linewidth=0)
    ax.set_xscale("symlog", linthresh=0.05)
    rows = {
        label: [(effect(name), LOOKS.get(name, LOOKS[COMPARED[name].base]))]
        for label, name in named.items()
    }
    figures.seed_rows(ax, rows, missing="not run")
    found = map(effect, named.values())
    largest = (values.abs().max() for values in found if len(values))
    reach = 1.3 * max([0.1, *largest])
    ticks = [tick for tick in (0.03, 0.1, 0.3, 1.0) if tick < reach]
    ax.set_xticks([-tick for tick in reversed(ticks)] + [0, *ticks])
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set(xlim=(-reach, reach), xlabel="variant minus reference (bits per byte)")
    return fig


# %% tags=["hide-input"]
def finding(named: dict[str, str]) -> str:
    """What a figure of effects shows, in words."""
    means = {label: effect(name).mean() for label, name in named.items()}
    found = {label: mean for label, mean in means.items() if np.isfinite(mean)}
    if not found:
        return "None of these variants has run at this profile."
    low, high = min(found, key=found.get), max(found, key=found.get)
    inside = sum(abs(value) < MARGIN for value in found.values())
    return (
        f"Of {len(named)} changes {len(found)} have run; the means of {inside} lie "
        f"within {MARGIN} bits per byte of the reference (the band). Lowest: *{low}* "
        f"({found[low]:+.3f}); highest: *{high}* ({found[high]:+.3f}). The axis is "
        "logarithmic beyond ±0.05."
    ).replace("(-", "(\N{MINUS SIGN}")


def effects_around(*references: str) -> dict[str, str]:
    """Labels and names of the variants of these references; the fate of p is below."""
    named = {}
    for name, variant in COMPARED.items():
        if variant.base in references and "pos_stream" not in variant.model:
            other = f" ({LOOKS[variant.base].label.split()[0]})"
            named[variant.says + other * (variant.base != references[0])] = name
    return named


shown = effects_around("separated-sinusoidal", "strict-sinusoidal")
figures.show(
    draw_effects(shown),
    name="fig-around-separated",
    alt="Dot plot of differences in bits per byte, one row for each change of the full "
    "separated model, one tick per seed, with a line at zero and a band for the "
    "margin.",
    caption="One change of the full separated model at a time. " + finding(shown) + " "
    "Right of zero the change makes it worse. The last row changes the strict model.",
)

# %% tags=["remove-input"]
figures.provenance(factors)

# %% [markdown]
# {numref}`fig-around-separated` takes the full model apart. Its first rows make one part whole again and leave the others
# split: such a variant is larger, since a full matrix has more weights than its blocks. The rows on
# queries and keys forbid more than the separation does. Where they read *content only*, the one door is closed through which
# position acts in a separated model: what is left is a narrow model without an encoding.
#
# {numref}`fig-around-dense` comes from the other side. The *concatenated* model is the dense one with the position embedding beside
# the token's: full matrices, one norm, read out as a whole. It stands halfway. From dense to concatenated position gets columns;
# from concatenated to separated norms, maps and MLPs are split.

# %% tags=["hide-input"]
shown = effects_around("sinusoidal", "concatenated-sinusoidal")
figures.show(
    draw_effects(shown),
    name="fig-around-dense",
    alt="Dot plot of differences in bits per byte, one row for each change of the "
    "dense model and of the concatenated model, one tick per seed.",
    caption="One change of the dense model, and of the concatenated one, at a time. "
    + finding(shown),
)

# %% tags=["remove-input"]
figures.provenance(factors)

# %% [markdown]
# Two numbers divide the whole way. From dense to concatenated it is
# {num}`ablation/concatenated-sinusoidal minus sinusoidal/bits_per_byte:+.3f±` bits per byte, from concatenated to
# separated {num}`ablation/separated-sinusoidal minus concatenated-sinusoidal/bits_per_byte:+.3f±`. So at this budget, four times the shortest,
# more than half of the lead comes from concatenation, which splits nothing. Concatenation was not run at the other budgets, nor at random
# positions.
#
# ### Position in every layer
#
# A dense model adds the position embedding once, below the first layer, and the layers above must carry it through. Some
# say that it is better added again in every layer. In a separated model nothing
# overwrites it; instead one may ask whether the layers improve on it. It can *evolve* through the layers like everything else, be
# added again in every layer, or be handed to every
# layer as it came, *constant*: what attention and MLP would make of it is then not even built.

# %% tags=["hide-input"]
fates = [name for name in changed if "pos_stream" in COMPARED[name].model]
fates.sort(key=lambda name: (name.split("-")[-1], "separated" in name))
words = {"constant": "constant", "reinjected": "in every layer"}
fates = {
    f"{LOOKS[COMPARED[name].base].label}, {words[name.split('-')[-1]]}": name
    for name in fates
}
figures.show(
    draw_effects(fates),
    name="fig-every-layer",
    alt="Dot plot of differences in bits per byte for position handed constant to "
    "every layer and for position added in every layer, in dense and separated models.",
    caption="What becomes of a position embedding, against the model that is given it "
    "once, below the first layer. " + finding(fates),
)


# %% [markdown]
# ## More training
#
# A difference after little training can be a difference in speed. The experiment `budget` trains six models of the
# small size for one, four and sixteen times as long, each schedule with its warm-up and decay, and the separated one
# widened to the parameters of the dense one ({numref}`fig-budget-gap`, {numref}`fig-budget`).
# Each budget has its own sweep over rates, and over scales where position is added: a longer training prefers lower rates.
#
# Two models *exchange places* if one is ahead at one budget and the other at another, each time by an interval
# that leaves out zero. A ranking in which that happens is *budget-dependent*, and so is a verdict that rests on it:
# the table of verdicts carries the label.

# %% tags=["hide-input"]
RANKED = ranked_models()
whole = [m for m in RANKED if all((m, n) in levels for n in read)]


def pairs_in_words(pairs: list[tuple[str, str]]) -> str:
    labels = [[figures.METHODS[name].label for name in pair] for pair in pairs]
    return "; ".join(map(" and ".join, labels)) or "none"


# %% tags=["hide-input"]
turned, settled = [], []
if len(whole) > 1:
    standing = places(trained, whole)
    means = standing.groupby(["a", "b"], sort=False)["difference"]
    both_signs = means.agg(lambda values: len(set(np.sign(values))) > 1)
    turned, settled = list(both_signs[both_signs].index), exchanges(standing)
fig, ax = plt.subplots(figsize=(6.8, 4.0))
for method in KEY_MODELS:
    own = {n: levels[method, n] for n in read if (method, n) in levels}
    over_budgets(ax, own, figures.METHODS[method])
ax.set(ylabel="test bits per byte")
ax.margins(y=0.2)  # names below the lowest line stay off the axis
if levels:
    budget_axis(ax)
    figures.label_lines(ax)
else:
    figures.not_run(ax)
figures.show(
    fig,
    name="fig-budget",
    alt="Test bits per byte against bytes read in training, one line for each of seven "
    "models, every seed a tick, at three budgets.",
    caption=(
        f"With more training {len(settled)} of {math.comb(len(whole), 2)} pairs "
        f"exchange places beyond the intervals: {pairs_in_words(settled)}. Means alone "
        f"change order between two budgets in {len(turned)}: {pairs_in_words(turned)}. "
        "Ticks: every seed."
        if whole
        else "None of the models has run at every budget."
    ),
)

# %% tags=["remove-input"]
numbers["budget_order_turned"] = pairs_in_words(turned) if whole else "not run"
figures.provenance(budgets)

# %% [markdown]
# ## Verdicts
#
# The rules stand in {mod}`sepnb.claims`. They are computed
# here from the records of this page, and again on the {doc}`claims page </book/claims>`, which prints both commits.
# All but one were committed before the first record; that of `separation-ahead-at-equal-parameters-and-every-budget` was written
# when three seeds of the models of equal width had been seen.

# %% tags=["hide-input"]
IDS = list(of_this_chapter.CLAIMS)
tables = {"in_window": table, "ablation": factors, "budget": budgets}
tables = {f"experiment/{name}": rows for name, rows in tables.items()}
numbers |= claims.show(
    claims.judge(IDS, tables),
    budget=True,
    caption=f"The {len(IDS)} claims of this chapter, judged by rules of which all but "
    "one were written beforehand: seven on "
    "the models of the first sections, six on single factors, three on more training. "
    "More training: whether two models that a claim compares exchange places between "
    "the budgets of the smaller size, where they were trained there.",
)

figures.provenance(table, factors, budgets)

# %% [markdown]
# ## What to take away
#
# 1. **Separation learns faster, not better, than adding the same sinusoid.** With sixteen times the training a lead of the separated
#    sinusoid becomes a deficit at equal width and ends level at equal parameters ({numref}`fig-budget-gap`). RoPE is ahead from the start.
#    That separation costs nothing is *{num}`10_language_model/verdict_separation_costs_nothing_at_equal_width`* at equal width and
#    *{num}`10_language_model/verdict_separation_costs_nothing_at_equal_parameters`* at equal parameters.
# 2. **A learned table works better in its own columns**, by {num}`in_window/separated-learned minus learned/bits_per_byte:+.3f` bits per
#    byte after a short training (*{num}`10_language_model/verdict_separation_improves_a_learned_table`*). The dense table is drawn at the
#    best of four scales, which gains it {num}`10_language_model/loudness_gain_learned:.3f`; behind a separate norm the scale hardly
#    matters.
# 3. **Columns for position help, and splitting costs nothing more.** Columns alone, with nothing split, change the small dense model by
#    {num}`ablation/concatenated-sinusoidal minus sinusoidal/bits_per_byte:+.3f±` bits per byte
#    (*{num}`10_language_model/verdict_concatenation_alone_helps`*). A norm for each stream costs nothing
#    (*{num}`10_language_model/verdict_split_norm_costs_nothing`*), and neither does any other single split
#    (*{num}`10_language_model/verdict_no_single_wall_costs`*).
# 4. **The position stream need not evolve.** Handed constant to every layer, a sinusoid differs from one that evolves by
#    {num}`ablation/separated-sinusoidal-constant minus separated-sinusoidal/bits_per_byte:+.3f` bits per byte and a learned table by
#    {num}`ablation/separated-learned-constant minus separated-learned/bits_per_byte:+.3f`. That both are level within the margin is
#    *{num}`10_language_model/verdict_constant_pos_stream_ties_with_evolving`*, because the constant table may be better than level. After
#    sixteen times the shortest training, in a model with an untied term, the difference is
#    {num}`matched_loss/untied-constant minus untied/bits_per_byte:+.3f` ({doc}`chapter 17 <17_perplexity>`). The
#    statement that position helps when it is added again in every layer is
#    *{num}`10_language_model/verdict_position_at_every_layer_helps`*.
#
# **Limits.** One language, one kind of text, models of less than a million parameters that read
# {num}`10_language_model/bytes_seen:,` bytes. From eight bytes of context on, RoPE gains no more than
# {num}`10_language_model/rope_gain_after_eight:.2f` bits per byte: these models hardly read further back, so this compares how well
# *near* positions are distinguished. None of it says anything about longer texts.
#
# Learning rates come from few values and one seed, and every best one has a worse one on either side. For some models two of them differ by
# less than a seed changes. Of the first three scales the dense sinusoid did best with the quietest content, where position is loudest.
# Tokens half as loud again gain it {num}`10_language_model/quieter_gain:.3f` bits per byte in the ablation, where they are used. In the
# larger models, and after the least and the most training, they are worse.
#
# Two separated tables do best at the quietest scale of the table above, the wide one here and the constant one of the ablation. A quarter of
# that is worse by {num}`10_language_model/quietest_loss_wide:.3f` for the wide one, in the mean of three seeds of which the first said
# otherwise, and by {num}`10_language_model/quietest_loss_constant:.3f` for the constant one. So every scale used here has a worse one on
# either side.
#
# Of the ablation, models that a claim compares have six seeds on a laptop, the last three of them added after the first three were seen; the others
# have three, which decide nothing. A variant of another shape draws other initial weights from the same seed, so only batches are paired.
# RoPE and ALiBi are dense here; RoPE in a separated model is a variant of {doc}`chapter 12 <12_what_works>`. CPU seconds
# come from shared cores.
#
# **What would change our mind.** A dense model that, drawn and tuned as carefully, comes within the margin of
# its separated twin with more training: then the gain is speed of learning. In the small models it does. In the
# larger ones nobody has looked.

# %% [markdown]
# ## Details
#
# What a reviewer needs: learning rates, every variant, where and for whom the difference holds, and what a second of training buys.
#
# ### Learning rates

# %% tags=["hide-input"]
screen = experiments.get("lr_screen").table(profile)
rated_here = [
    name
    for name in METHODS
    if experiments.get("in_window").swept(name)[0].name == "lr_screen"
]
compared = screen[screen.method.isin(rated_here) & (screen.status != "not run")]
axes = {"index": "method", "columns": "learning_rate", "values": "val_bits_per_byte"}
rates = compared.reindex(columns=axes.values()).pivot_table(**axes, sort=False)
at_an_end = experiments.get("lr_screen").at_an_end(SWEPT)
edges = [figures.METHODS[name].label for name in rates.index if name in at_an_end]
listed = rates.rename(columns=lambda rate: f"{rate:g}").reset_index()
listed["used"] = [f"{used[name]:g}" for name in rates.index]
listed["method"] = [figures.METHODS[name].label for name in rates.index]
figures.show_table(
    listed,
    caption="Validation bits per byte by learning rate, one seed, and the rate used "
    f"below. At an edge of those tried: {', '.join(edges) or 'no method'}. "
    "The model without an encoding (none) ran the whole schedule, the others less than "
    "half of it.",
    formats=dict.fromkeys(listed.columns[1:-1], ".3f"),
)
figures.provenance(screen)

# %% [markdown]
# ### Every variant

# %% tags=["hide-input"]
screened = experiments.get("ablation_sweep").table(profile)
by_trial = experiments.get("ablation_sweep").scores(profile)


def least_at(std: float) -> float:
    """The best dense sinusoid of the ablation beside content of one scale."""
    those = (by_trial[one] for one in by_trial if one[::2] == ("sinusoidal", std))
    return min(those, default=np.nan)


quieter = least_at(0.5) - least_at(0.25)
numbers["quieter_gain"] = chapter_numbers.mean_of([quieter])
swept = map(experiments.get("ablation").swept, rate_of)
at_the_edge = sum(base in sweep.at_an_end(SWEPT) for sweep, base in swept)
figures.show_table(
    pd.DataFrame(map(told_of, COMPARED)),
    caption="Every variant: test bits per byte with 95 % t interval over seeds, and "
    "the paired difference to its reference, below zero where the change helps. Rates: "
    f"{(screened.status == 'ok').sum()} of {len(screened)} runs of the sweep are "
    "there, of the whole schedule. The best one was the lowest or the highest tried "
    f"for {at_the_edge} of {len(rate_of)} models.",
    formats={"block parameters": ",.0f"},
)
figures.provenance(factors)

# %% [markdown]
# Learned tables, and the content beside an added sinusoid, were tried at three scales too, and past the end at which the best
# stood. The middle of the budgets takes the same rates and scales. The widths of position stand on both sides of one head, $d_\text{pos} = d_\text{head}$.
#
# One variant needs three fields, the concatenated one. On one stream it means nothing to split or to choose what is
# read, so `split` and `readout` only say that nothing is split.
#
# ### Every budget

# %% tags=["hide-input"]
figures.show_table(
    pd.DataFrame(
        {"method": figures.METHODS[method].label}
        | {f"{n}x": text_of(levels.get((method, n), []), ".3f") for n in BUDGETS}
        for method in KEY_MODELS
    ),
    caption="Test bits per byte after one, four and sixteen times the shortest "
    f"training ({bytes_read}); mean over seeds and 95 % t interval.",
)
figures.show_table(
    pd.DataFrame(
        {"difference": name}
        | {f"{n}x": text_of(gaps.get((name, n), [])) for n in BUDGETS}
        for name in GAPS
    ),
    caption="The differences of the first figure, in bits per byte and paired by seed: "
    "below zero the first of the two is better. Means and 95 % t intervals.",
)
figures.provenance(budgets)

# %% [markdown]
# ### Seconds

# %% tags=["hide-input"]
curve_rows = experiments.get("in_window").rows(profile, "curve")
curve_rows = curve_rows.reindex(columns=["method", "step", "bits_per_byte"])
block = facts.block_parameters
share_of_blocks = block["separated-learned"] / block["learned"]
numbers["block_parameter_share"] = chapter_numbers.mean_of([share_of_blocks])
shown = ("sinusoidal", "learned", "rope", "separated-learned", "separated-learned-wide")
fig, ax = plt.subplots(figsize=(6.8, 3.8))
for method in shown:
    runs = curve_rows[curve_rows.method == method]
    curve = runs.groupby("step")["bits_per_byte"].mean()
    seconds = (curve.index + 1) / size.steps * facts.train_cpu_s[method]
    ax.plot(seconds, curve.to_numpy(), **figures.METHODS[method].line(marker=""))
ax.set(xlabel="CPU seconds of training", ylabel="training loss (bits per byte)")
if score:
    ax.set_ylim(None, curve_rows.bits_per_byte.quantile(0.93))
ax.legend()
share = facts.train_cpu_s["separated-learned"] / facts.train_cpu_s["learned"]
figures.show(
    fig,
    name="fig-seconds",
    alt="Training loss against CPU seconds for five methods; the separated model of "
    "equal width ends earlier because its steps are cheaper.",
    caption="The same runs against CPU seconds instead of steps. At equal width a "
    f"separated training takes {share:.2f} times the dense one's seconds on the cores "
    "we used (shared, so an indication only). Means over seeds."
    if score
    else NOTHING,
)

# %% tags=["remove-input"]
figures.provenance(table)

# %% [markdown]
# ### Novels
#
# Seeds tell how much a difference depends on chance in training. They do not tell whether it holds for other
# books. The figure takes the same difference novel by novel; its spread is about the *evaluation*, and no
# verdict rests on it.

# %% tags=["hide-input"]
documents = experiments.get("in_window").rows(profile, "document")
documents = documents.reindex(columns=["method", "document", "bits", "bytes"])
documents["bits_per_byte"] = documents["bits"] / documents["bytes"]
axes = {"index": "document", "columns": "method", "values": "bits_per_byte"}
novels = documents.pivot_table(**axes).reindex(columns=METHODS)
fig, ax = plt.subplots(figsize=(6.8, 3.1))
ax.axhline(0, color=figures.FAINT, linewidth=1.2)
for name, (a, b) in pairs.items():
    line = figures.METHODS[a].line(label=name, markersize=4, linestyle="")
    ax.plot((novels[a] - novels[b]).sort_values().to_numpy(), **line)
ax.set(xlabel="held-out documents, sorted for each pair")
ax.set(ylabel="separated minus dense\n(bits per byte)")
ax.xaxis.set_major_locator(MaxNLocator(integer=True))
ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
wins = [f"{name} {(novels[a] < novels[b]).sum()}" for name, (a, b) in pairs.items()]
figures.show(
    fig,
    name="fig-per-novel",
    alt="For each of the four pairs, the difference in bits per byte in every held-out "
    "document, sorted.",
    caption=f"Of {len(novels)} held-out documents the separated model is better in: "
    f"{'; '.join(wins)}. Means over seeds."
    if len(novels)
    else NOTHING,
)

# %% tags=["remove-input"]
figures.provenance(table)

# %% [markdown]
# ## Exercises
#
# **1. (easy)** By which factor does the split with $r = 1/4$ shrink the matrices of a block? Derive it from
# the counts of chapter {doc}`7 <07_two_streams>` and check it against a model.


# %% tags=["hide-cell"]
# Solution
def block_matrices(streams: Streams) -> int:
    """Weights in the matrices of a block whose streams are both read out."""
    one = LanguageModel(TransformerConfig(streams, 1, 4, "sinusoidal", readout="both"))
    blocks = one.transformer.blocks.modules()
    maps = [module for module in blocks if isinstance(module, torch.nn.Linear)]
    return sum(module.weight.numel() for module in maps)


r = 1 / 4
by_formula = (2 + 10 * (r**2 + (1 - r) ** 2)) / 12
by_model = block_matrices(Streams(pos=32, sem=96)) / block_matrices(Streams.dense(128))
assert abs(by_formula - by_model) < 1e-12
print(f"queries and keys stay full, the rest is split: {by_formula:.4f} of the dense")

# %% [markdown]
# **2. (easy)** Which width gives a separated model with $r = 1/4$ as many block matrices as the dense model
# of width $D$? Compare with the *wide* models of this chapter.

# %% tags=["hide-cell"]
# Solution
needed = size.width / np.sqrt(by_formula)
print(f"dense D = {size.width} needs a separated D of {needed:.1f}; here {size.wide}.")
print(f"Heads of whole columns would also allow {size.wide - 4}: nearer, and narrower.")
assert abs(needed / size.wide - 1) < 0.06

# %% [markdown]
# **3. (medium)** How much does pairing by seed buy? Compare the interval of the paired difference between
# RoPE and *none* with the one you get when you forget which runs share a seed.

# %% tags=["hide-cell"]
# Solution
pair = RunTable(table).difference("rope", "none", "bits_per_byte")
if len(pair) > 1:
    apart = np.hypot(score["rope"].half, score["none"].half)
    together = summarise(pair)
    print(f"paired: {together};  seeds forgotten: {together.mean:.3f} ± {apart:.3f}")
else:
    print(f"{len(pair)} seeds: no interval")

# %% [markdown]
# **4. (medium)** Does the separated model need its position stream in the read-out? Train the small separated
# model with `readout="both"`, live, and compare. Count the parameters, too: what is built that was not built
# before?

# %% tags=["hide-cell"]
# Solution
narrow = model_config("separated-learned", small)
both = replace(narrow, readout="both")
totals = [LanguageModel(one).parameter_counts()["total"] for one in (narrow, both)]
# The last block's position values, output and MLP, and the read-out's columns.
assert totals[1] > totals[0]
print("parameters:", *totals)
print(
    f"sem {curves['separated-learned'][1]:.3f}, both {live(both)[1]:.3f} bits per byte"
)

# %% [markdown]
# **5. (hard)** The rules of this chapter ask a paired $t$ test. Suppose that separation truly costs nothing:
# how often would six seeds show that the difference lies left of $+0.03$ bits per byte, given the spread over
# seeds in {numref}`fig-price`? And three seeds? Simulate it; a rule that cannot find what it looks for is no
# rule.

# %% tags=["hide-cell"]
# Solution

spreads = [values.std(ddof=1) for values in differences.values() if len(values) > 1]


def power(spread: float, seeds: int, margin: float = 0.03, trials: int = 2000) -> float:
    """How often a true difference of 0 is shown to lie below the margin, at 5 %."""
    draws = np.random.default_rng(0).normal(0, spread, (trials, seeds))
    test = ttest_1samp(draws, margin, axis=1)
    return float(((test.pvalue < 0.05) & (draws.mean(axis=1) < margin)).mean())


# A single seed has no spread: two examples instead.
for spread in spreads or [0.01, 0.03]:
    six, three = power(spread, 6), power(spread, 3)
    print(f"spread {spread:.3f}: six seeds {six:.2f}, three {three:.2f}")
assert power(0.01, 6) > power(0.01, 3)

# %% tags=["hide-cell"]
chapter_numbers.publish("10_language_model", numbers, profile=profile)

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
# # SeqPE as the position stream
#
# > **Question.** Does a position stream of digit strings carry a separated and a strict model past their trained length,
# > and to indices that no loss ever saw?
#
# The book's two halves meet here. Part II gave position its own columns, so that of what is new in a longer text, indices,
# number of keys and distances, the first can be asked alone: rows of the position stream that were never trained. {term}`SeqPE` {cite:p}`li2025` has a row for every number that its
# digits can write, and two losses that shape those rows without any text. What they shape is usually added to content or
# hidden in a score; here it is a stream of its own.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 15 s of one CPU core at any profile, most of it for two tiny trainings; nothing is downloaded. The
#   records behind the second half: `sepnb run seqpe_stream`, runs of three to four minutes on one core, two side by
#   side; they read ELTeC (`sepnb data eltec-eng`).
# - **You need**: {doc}`chapter 9 <09_strict>` for the strict model, {doc}`chapter 11 <11_extrapolators>` for the oracle
#   and the four verdicts, {doc}`chapter 12 <12_what_works>` for recipes and a foreign past.
# - **You will learn**: what SeqPE's losses touch in a separated model and what they leave alone; why a far index may be
#   near in digits; and how to ask apart for a covered index, an index that no loss saw, and a longer text.
# - **Claims tested** (see {doc}`/book/claims`): `seqpe-survives`, `seqpe-and-a-window-survive`,
#   `seqpe-reads-covered-indices-alike`, `seqpe-reaches-indices-never-seen`,
#   `shift-steps-help-a-stream-of-digit-strings`, `shift-steps-help-beside-the-losses`, `misaligned-starts-cost-more`,
#   `seqpe-beats-the-sinusoid-at-far-indices`, `seqpe-beats-the-sinusoid-past-the-length`,
#   `distillation-carries-the-stream-further`, `the-losses-carry-the-stream-further`, `seqpe-is-free-in-window`,
#   `a-seqpe-stream-stands-beside-rope`, `a-seqpe-stream-uses-the-far-past`, `separation-helps-seqpe`,
#   `distillation-helps-past-the-length`, `all-that-seqpe-adds-is-light`; and, of the abstract,
#   `distillation-further-enhances-extrapolation`, `seqpe-surpasses-strong-baselines`,
#   `seqpe-surpasses-them-past-the-length`, `the-encoder-is-lightweight`. All rules precede the records of this experiment. Known were those of the sinusoid,
#   RoPE and ALiBi that stand beside it, one screening seed of both dense forms of SeqPE, and runs of the term of the score in the table of all encodings; and
#   that this text has nothing to give past the trained length, so that `a-seqpe-stream-uses-the-far-past` cannot be decided here.
# ```
#
# ```{admonition} What was read of the source
# :class: warning
# Of the paper the abstract and the released code were read, not the body and none of its tables: no number of it is quoted,
# and what is judged here is what the abstract says, at the scale of this book.
# ```

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %%
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import claims, experiments, figures, summaries
from sepnb.companion import numbers as chapter_numbers
from sepnb.data import text as texts
from sepnb.evaluation import evaluate
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.encoding_methods import RANDOM_POSITIONS
from sepnb.experiments.recipe_methods import root, run_of
from sepnb.experiments.seqpe_stream import BESIDE, METHODS, starts
from sepnb.models import LanguageModel
from sepnb.seqpe import digits, distillation_loss
from sepnb.seqpe.digits import misaligned, period
from sepnb.seqpe.objective import encoder_of
from sepnb.training import train

figures.use_style()
numbers = {}

# %% [markdown]
# ## A row for every index
#
# The state of a separated model is $[\,p_i \,\|\, s_t\,]$. With SeqPE at the input the position stream begins as
#
# $$
# p_i = E(\mathrm{digits}(i)),
# $$ (eq-seqpe-stream)
#
# the encoder's embedding itself, as wide as the stream: nothing is added to it, and nothing of it reaches the content
# but through attention. In the package this is the encoding {class}`~sepnb.encodings.SeqPE` with `site="input"`. A likely
# mistake is to add the embedding to the whole state; the next cell would notice.

# %%
small = lm.SIZES["smoke"]
config = run_of("demo", "smoke", "strict-seqpe", seed, METHODS).model
torch.manual_seed(seed)
model = LanguageModel(config).eval()
encoder = encoder_of(model)
indices = torch.tensor([0, 1, 12, 1385, 91_000])
content = torch.zeros(1, len(indices), config.streams.widths["sem"])
state = model.transformer.input_state(content, indices)
assert torch.allclose(state["pos"][0], encoder.plain(indices), atol=1e-6)
assert not state["sem"].any(), "the content hears no position"
for i, string in zip(indices.tolist(), encoder.strings(indices).tolist(), strict=True):
    print(f"{i:>6} -> {' '.join(map(str, string))}")
numbers["highest"] = encoder.highest[0]
numbers["encoder_parameters"] = sum(p.numel() for p in encoder.parameters())
numbers["parameters"] = model.parameter_counts()["total"]
try:
    model(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([encoder.highest[0] + 1]))
except ValueError as refusal:
    print(refusal)

# %% [markdown]
# Five digits end at {num}`16_seqpe_stream/highest:,`; the next position is refused and not wrapped. The encoder has
# {num}`16_seqpe_stream/encoder_parameters:,` of the small model's {num}`16_seqpe_stream/parameters:,` parameters, whatever
# the length of a text: a longer one needs no new parameter.
#
# ## What the losses touch
#
# Training minimises
#
# $$
# \mathcal{L} = \mathcal{L}_{\text{text}} + \lambda_{\text{c}}\, \mathcal{L}_{\text{contrastive}}
#   + \lambda_{\text{d}}\, \mathcal{L}_{\text{distillation}}.
# $$ (eq-seqpe-objective)
#
# The contrastive loss asks that of some candidates the nearest position has the largest inner product with an anchor; the
# distillation, that the embeddings of a window anywhere lie to each other as those of the trained window do. Both read
# positions alone ({class}`~sepnb.seqpe.objective.SeqPELosses`). In a separated model what they shape *is* the position
# stream, and they reach nothing else:

# %%
losses = run_of("demo", "smoke", "strict-seqpe", seed, METHODS).training.auxiliary
model.train()
losses.bind(seed)(model).backward()
touched = {name for name, p in model.named_parameters() if p.grad is not None}
own = {name for name, _ in model.named_parameters() if ".encoder." in name}
assert touched == own, "no gradient outside of the encoder"
print(f"{len(touched)} of {len(list(model.parameters()))} parameter tensors")

# %% [markdown]
# A tenth of the steps are *shift steps*: the text is read at a random offset, one for the whole batch, below the largest
# position that the losses draw. So the layers above the stream meet far rows, too. On those steps nothing is distilled,
# because the teacher is the window at 0, and the text was not there.
#
# ## Near in digits
#
# To a table 1000 and 1385 are two rows. To digits they differ in kind. A window of $L$ positions that begins at a multiple
# of the least power of ten not below $L$ has the low digits of the window at 0, place by place: it is *aligned*, and only the
# digits before them are new. A window that begins elsewhere runs through other strings of low digits, and its carries fall elsewhere. An
# encoder that learned nothing but the low digits would read the first kind perfectly and the second not at all. Hence all
# that follows asks for the two apart.

# %%
L = lm.SIZES["laptop"].length
unit, step = period(L), misaligned(L)
own = digits(torch.arange(L), width=5)
low = len(str(unit)) - 1
rows = []
for name, start in starts(L).items():
    window = digits(start + torch.arange(L), width=5)
    same = bool((window[:, -low:] == own[:, -low:]).all())
    assert same == ("misaligned" not in name)
    rows.append(
        {
            "start": start,
            "first position": " ".join(map(str, window[0].tolist())),
            "last position": " ".join(map(str, window[-1].tolist())),
            "low digits": "as at 0" if same else "others",
            "covered": "yes" if start + L <= RANDOM_POSITIONS * L else "never seen",
        }
    )
figures.show_table(
    pd.DataFrame(rows).sort_values("start"),
    caption=f"Where a trained length of {L} is read. Aligned starts are multiples of "
    f"{unit}, misaligned ones {step} further on.",
)
numbers["largest"] = RANDOM_POSITIONS * L
numbers["unit"], numbers["step"] = unit, step

# %% [markdown]
# Shift steps and losses draw positions below {num}`16_seqpe_stream/largest:,`: no gradient ever came from an index past it. Two of
# the starts never seen lie at about twice that, two near the end of what five digits write. In all four some digit has never
# stood at its place: below {num}`16_seqpe_stream/largest:,` the thousands are 0 to 4, and the first of the five is always 0.
#
# ## Live: two tiny streams
#
# Two strict models, trained for a moment on source code at the same shift steps: one with a sinusoid, one with SeqPE and
# its losses. Then both read the same bytes, a trained length at a time, from ever farther starts.

# %%
held_out = texts.windows(
    texts.load(small.text.name).validation, length=small.length, per_document=1024
).tokens[:24]
near, step = period(small.length), misaligned(small.length)
aligned = near * np.array([1, 3, 8, 15, 40, 100, 240, 480, 910])
live = {}
for name in ("strict-sinusoidal-shifts", "strict-seqpe"):
    run = run_of("demo", "smoke", name, seed, METHODS)
    trained, auxiliary = lm.build(run), run.training.auxiliary
    bound = None if auxiliary is None else auxiliary.bind(seed)
    train(trained, lm.batches(run), run.training, device=device, auxiliary=bound)

    def bits(start, model=trained):
        at = start + np.arange(small.length)
        return evaluate(model, held_out, positions=at, device=device).bits_per_byte

    for kind, begun in (("aligned", aligned), ("misaligned", aligned + step)):
        live[name, kind] = np.array([bits(start) for start in begun]) - bits(0)
largest = RANDOM_POSITIONS * small.length
seen = aligned + step + small.length <= largest
for (name, kind), costs in live.items():
    key = f"{'sinusoid' if 'sinusoid' in name else 'seqpe'}_{kind}"
    numbers[f"live_{key}_covered"] = float(costs[seen].mean())
    numbers[f"live_{key}_beyond"] = float(costs[~seen].mean())

# %% tags=["hide-input"]
LIVE = {
    "strict-sinusoidal-shifts": ("sinusoid", "#6b4500", "v"),
    "strict-seqpe": ("SeqPE", "#00558a", "D"),
}
KINDS = {"aligned": "-", "misaligned": (0, (1, 1.2))}
fig, ax = plt.subplots(figsize=(6.8, 3.3))
for (name, kind), costs in live.items():
    what, colour, marker = LIVE[name]
    look = figures.Method(
        f"{what}, {kind}", colour, KINDS[kind], marker, kind == "aligned"
    )
    begun = aligned + (step if kind == "misaligned" else 0)
    ax.plot(begun, costs, **look.line())
ax.axhline(0, color=figures.FAINT, linewidth=1)
ax.set_xscale("log")
figures.trained_length(ax, largest, "largest position of any loss:")
ax.set(xlabel="index of the first byte", ylabel="bits per byte\nmore than from 0")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-stream-live",
    alt="Bits per byte that the same windows cost more than at index 0, against the "
    "index at which they begin, for a tiny "
    "strict model with a sinusoid and one with SeqPE, at aligned and misaligned "
    "starts. A line marks the largest trained position.",
    caption="Live, tiny models, source code, one seed. Past the largest trained "
    "position the same bytes cost on average "
    f"{numbers['live_seqpe_aligned_beyond']:+.2f} bits per byte with SeqPE at aligned "
    f"starts, {numbers['live_seqpe_misaligned_beyond']:+.2f} at misaligned ones, with "
    f"the sinusoid {numbers['live_sinusoid_aligned_beyond']:+.2f} and "
    f"{numbers['live_sinusoid_misaligned_beyond']:+.2f}.",
)

# %% [markdown]
# Below the largest covered position the two models move by {num}`16_seqpe_stream/live_sinusoid_misaligned_covered:+.3f`
# (sinusoid) and {num}`16_seqpe_stream/live_seqpe_misaligned_covered:+.3f` (SeqPE) at misaligned starts. A model this small
# may stand still because it hardly listens to its positions: the experiment asks only models that are clearly better than one without any.
#
# ## The experiment
#
# Each chain changes one thing at a time, beside the rate, and a test holds it to that: digit strings in the place of the sinusoid, then
# shift steps, then the contrastive loss, then the distillation. *Separated* and *strict* have the stream; *dense* adds the
# same embedding to the content, because the question of the book is whether a stream of its own helps. The last two methods have
# SeqPE where its text program has it, as a term of the score, without and with the distillation: of them we ask what the abstract says. One method has both losses and no shift steps. Learning rates are screened in each mode over the whole schedule, for digit
# strings with shift steps and both losses, for the sinusoid with shift steps, and for the term of the score (`seqpe_stream_screen`): the best of three, or one beyond them where the best stands at an end.
# Where the losses look is narrower than in {doc}`chapter 14 <14_two_losses>`: a box of candidates spans two trained lengths, in the release half of one, and indices reach to 4,096, there to 20,000.
# <!-- given: settings of the release and of this experiment --> The nearest candidate is therefore nearer than there, and the question more local.
#
# The sinusoids without shift steps and RoPE are runs of {doc}`chapter 12 <12_what_works>`, of the same seeds on the same bytes.

# %%
runs = experiments.get("seqpe_stream").table(profile)
recipes = experiments.get("recipes").table(profile)
beside = recipes[recipes.method.isin(BESIDE)].copy()
beside.attrs["records"] = [
    one for one in recipes.attrs["records"] if one.config["method"] in BESIDE
]
together = pd.concat([runs, beside], ignore_index=True)
methods = list(dict.fromkeys(runs.method))
have = runs[runs.status != "not run"]


def scores(method, metric):
    """A metric of each run of a method that has it, by seed; empty where nothing was
    run."""
    return summaries.by_seed(together, method, metric)


def less(a, b):
    """One `method:metric` minus another, for every seed that has both."""
    return (scores(*a.split(":")) - scores(*b.split(":"))).dropna()


# %%
declared = pd.DataFrame(
    {
        "method": name.replace("-", " "),
        "what is changed": recipe.change,
        "of": (recipe.base or "").replace("-", " "),
        "runs": f"{(have.method == name).sum()} of {(runs.method == name).sum()}",
    }
    for name, recipe in METHODS.items()
    if name in methods
)
figures.show_table(
    declared,
    caption="The methods that are run at this profile, each with its one change.",
)
figures.provenance(runs)

# %% [markdown]
# ### Where a text begins
#
# A trained length of bytes is read from 0 on and at the starts above. Neither the number of keys nor any distance is new: what
# is paid more is the price of the index alone.

# %%
GROUPS = {
    "covered,\naligned": "covered-aligned",
    "covered,\nmisaligned": "covered-misaligned",
    "never seen,\naligned": "never-seen-aligned",
    "never seen,\nmisaligned": "never-seen-misaligned",
}


def moved(method, group):
    """What the starts of a group cost more than 0, by seed: the mean of both."""
    costs = [
        less(f"{method}:native-at-{group}-{number}", f"{method}:native/1x")
        for number in (1, 2)
    ]
    return sum(costs) / len(costs)


# %% tags=["hide-input"]
def look_of(method):
    """A colour and a marker by where the code of positions goes."""
    looks = {"separated": ("#6b4500", "o"), "strict": ("#00558a", "s")}
    colour, marker = looks.get(method.split("-")[0], ("#d55e00", "D"))
    return figures.Method(method, colour, marker=marker)


def panels(titles, values_of, order):
    """A panel a title, a row a method, every seed a tick; `values_of(method, title)`
    gives the values."""
    size = (8.6, 1.2 + 0.27 * len(order))
    fig, axes = plt.subplots(1, len(titles), figsize=size, sharey=True)
    for ax, title in zip(axes, titles, strict=True):
        if have.empty:
            figures.not_run(ax)
            continue
        ax.set_xscale("symlog", linthresh=0.1)
        for bound, dash in ((0, "-"), (0.03, ":")):
            ax.axvline(bound, color=figures.FAINT, linewidth=1, linestyle=dash)
        for row, name in enumerate(order):
            values = values_of(name, title)
            figures.seed_row(ax, row, values, look_of(name), size=6, missing="not run")
        ax.set(title=title, xlabel="bits per byte")
        ax.set_xticks([0, 0.1, 1], ["0", "0.1", "1"])
        ax.minorticks_off()
    if len(have):
        axes[0].set_yticks(range(len(order)), [one.replace("-", " ") for one in order])
    return fig


# %% tags=["hide-input"]
order = methods[::-1]
fig = panels(GROUPS, lambda name, title: moved(name, GROUPS[title]), order)
far = {
    mode: moved(f"{mode}-seqpe", "never-seen-misaligned")
    for mode in ("separated", "strict")
}
told = "; ".join(f"{mode} {summaries.told(costs)}" for mode, costs in far.items())
figures.show(
    fig,
    name="fig-stream-starts",
    alt="Four dot plots over the methods: what the same bytes cost more at covered and "
    "at never seen starts, aligned and "
    "misaligned, than from index 0 on.",
    caption=(
        "What the same bytes cost more than from 0 on. At misaligned starts that no "
        f"loss saw, with SeqPE: {told}. "
        "Dotted: the bound of the rules, 0.03. Dots: means; bars: 95 % t intervals; "
        "ticks: every seed; linear up to 0.1, "
        "logarithmic above."
        if len(have)
        else "Not run yet: the records of the experiment are missing at this profile."
    ),
)

# %% tags=["remove-input"]
figures.provenance(runs)

# %% [markdown]
# ### A longer text
#
# Up to eight trained lengths no index is new to a model with shift steps: what is new is the number of keys, and how far off
# they are. The bar is the same model through a window of one trained length that slides byte by byte.

# %% tags=["hide-input"]
BINS = {"to 2L": "2x", "to 4L": "4x", "to 8L": "8x"}
everything = [*BESIDE, *methods][::-1]
fig = panels(
    BINS, lambda name, title: scores(name, f"gap/native/{BINS[title]}"), everything
)
longer = {
    mode: scores(f"{mode}-seqpe", "gap/native/8x")
    for mode in ("separated", "strict", "dense")
}
told = "; ".join(f"{mode} {summaries.told(gap)}" for mode, gap in longer.items())
figures.show(
    fig,
    name="fig-stream-longer",
    alt="Three dot plots over the methods: bits per byte over the model's own sliding "
    "window in the bins that end at two, four "
    "and eight trained lengths, all keys in sight.",
    caption=(
        "Bits per byte over the own sliding window, all keys in sight. To eight "
        f"trained lengths, with SeqPE: {told}. Marks as "
        "in the figure above; the four methods at the top are runs of chapter 12."
        if len(have)
        else "Not run yet: the records of the experiment are missing at this profile."
    ),
)

# %% tags=["remove-input"]
figures.provenance(runs)

# %% tags=["remove-input"]
figures.provenance(beside)

# %% [markdown]
# ### The four verdicts
#
# Digit strings write every number that is read here: nothing is clamped, wrapped or continued, as {doc}`chapter 11 <11_extrapolators>` does with tables and waves. Models without a code,
# with ALiBi, and trained at the long length stand in {doc}`chapter 12 <12_what_works>`, with the entropies of bytes and of pairs of bytes.
#
# As in that chapter: *survives*, bits per byte over its own sliding window at stride 1, all keys in sight, in the worst of the three bins, and
# beside it with a window mask; *uses*, what a foreign past costs; *quality*, the last bin beside RoPE with a window;
# *price*, what is paid inside the trained length more than the root of the chain. The last column is the price in time.


# %% tags=["hide-input"]
def times(name, other, metric):
    """A metric of a method as a multiple of another's: the median over seeds."""
    ratios = (scores(name, metric) / scores(other, metric)).dropna()
    return f"{ratios.median():.2f}" if len(ratios) else "not run"


def worst(name, reading):
    """The gap of the bin in which it is largest on average, by seed."""
    found = [scores(name, f"gap/{reading}/{k}") for k in BINS.values()]
    return max(found, key=lambda gap: gap.mean() if len(gap) else -np.inf)


judged = pd.DataFrame(
    {
        "method": name.replace("-", " "),
        "survives": summaries.told(worst(name, "native")),
        "with a window": summaries.told(worst(name, "native-window")),
        "uses": summaries.told(scores(name, "gain/8x")),
        "quality": summaries.told(less(f"{name}:native/8x", "rope:native-window/8x")),
        "price": summaries.told(
            less(f"{name}:bits_per_byte", f"{root(name, METHODS)}:bits_per_byte")
        ),
        "parameters": scores(name, "parameters").median(),
        "training": times(name, root(name, METHODS), "train_cpu_s"),
    }
    for name in methods
)
figures.show_table(
    judged,
    caption="In bits per byte, means over seeds and 95 % t intervals. Survives: over "
    "its own sliding window, all keys in sight, and with a window mask, in the worst "
    "of three bins. Uses: the cost of a foreign past. Quality: beside RoPE with a "
    "window, both in the bin that ends at 8 trained lengths. Price: inside the trained "
    "length, over the root of the chain. "
    "Training: CPU time, as a multiple of the root's, which was run at other hours.",
    formats={"parameters": ",.0f"},
)
figures.provenance(runs)

# %%
ALSO = ("native", "native-window", "native-window-sinks", "native-log")
figures.show_table(
    pd.DataFrame(
        {"method": name.replace("-", " ")}
        | {
            one.removeprefix("native-").replace("-", " and "): summaries.told(
                scores(name, f"{one}/8x"), ".3f"
            )
            for one in ALSO
        }
        for name in [*BESIDE, *methods]
    ),
    caption="Bits per byte in the bin that ends at 8 trained lengths, however the "
    "model is read: as it is (native), through a window of one trained length, with "
    "the first tokens of the text beside it (sinks), and with logits that grow with "
    "the logarithm of the number of keys.",
)
figures.provenance(runs)
figures.provenance(beside)

# %%
told = {}
for mode in ("separated", "strict", "dense"):
    ours, sinusoid = f"{mode}-seqpe", f"{mode}-sinusoidal-shifts"
    told |= {
        f"gap_{mode}": worst(ours, "native"),
        f"window_{mode}": worst(ours, "native-window"),
        f"gain_{mode}": scores(ours, "gain/8x"),
        f"price_{mode}": less(
            f"{ours}:bits_per_byte", f"{root(ours, METHODS)}:bits_per_byte"
        ),
        f"gap_{mode}_sinusoid": worst(sinusoid, "native"),
        f"far_{mode}_sinusoid": moved(sinusoid, "never-seen-misaligned"),
        f"lead_{mode}": less(f"{ours}:native/8x", "rope:native-window/8x"),
    }
    told |= {
        f"{group.replace('-', '_')}_{mode}": moved(ours, group)
        for group in GROUPS.values()
    }
for stage in ("plain", "shifts", "contrastive"):
    told[f"far_{stage}"] = moved(f"separated-seqpe-{stage}", "never-seen-misaligned")
numbers |= {key: chapter_numbers.mean_of(values) for key, values in told.items()}

# %% [markdown]
# Differences in bits per byte; below zero is fewer.
#
# **Inside.** SeqPE with shift steps and losses costs the separated model {num}`16_seqpe_stream/price_separated:+.3f`, the strict
# one {num}`16_seqpe_stream/price_strict:+.3f`, more than the sinusoid at the root of its chain.
#
# **Covered indices.** At aligned starts {num}`16_seqpe_stream/covered_aligned_separated:+.3f` and
# {num}`16_seqpe_stream/covered_aligned_strict:+.3f` (separated, strict), at misaligned ones
# {num}`16_seqpe_stream/covered_misaligned_separated:+.3f` and {num}`16_seqpe_stream/covered_misaligned_strict:+.3f`.
#
# **Indices never seen.** At aligned starts {num}`16_seqpe_stream/never_seen_aligned_separated:+.3f` and
# {num}`16_seqpe_stream/never_seen_aligned_strict:+.3f`, at misaligned ones
# {num}`16_seqpe_stream/never_seen_misaligned_separated:+.3f` and
# {num}`16_seqpe_stream/never_seen_misaligned_strict:+.3f`; the sinusoid at the same shift steps
# {num}`16_seqpe_stream/far_separated_sinusoid:+.3f` and {num}`16_seqpe_stream/far_strict_sinusoid:+.3f`. Along the separated
# chain: digits alone {num}`16_seqpe_stream/far_plain:+.3f`, with shift steps {num}`16_seqpe_stream/far_shifts:+.3f`, with the
# contrastive loss {num}`16_seqpe_stream/far_contrastive:+.3f`, with the distillation the number above.
#
# **Longer texts.** In its worst bin SeqPE stands {num}`16_seqpe_stream/gap_separated:+.3f` (separated),
# {num}`16_seqpe_stream/gap_strict:+.3f` (strict) and {num}`16_seqpe_stream/gap_dense:+.3f` (added to a dense model) from its
# own sliding window, the sinusoids {num}`16_seqpe_stream/gap_separated_sinusoid:+.3f`,
# {num}`16_seqpe_stream/gap_strict_sinusoid:+.3f` and {num}`16_seqpe_stream/gap_dense_sinusoid:+.3f`; with a window mask SeqPE
# {num}`16_seqpe_stream/window_separated:+.3f` and {num}`16_seqpe_stream/window_strict:+.3f`. A foreign past changes its bits
# by {num}`16_seqpe_stream/gain_separated:+.3f` and {num}`16_seqpe_stream/gain_strict:+.3f`, and beside RoPE with a window it
# pays {num}`16_seqpe_stream/lead_separated:+.3f` and {num}`16_seqpe_stream/lead_strict:+.3f`.
#
# ## Verdicts

# %%
tables = {
    "experiment/seqpe_stream": runs,
    "experiment/recipes": beside,
    "experiment/extrapolation": experiments.get("extrapolation").table(profile),
    "experiment/encodings": experiments.get("encodings").table(profile),
}
IDS = [one.id for one in claims.CLAIMS if one.needs[0] == "experiment/seqpe_stream"]
verdicts = claims.judge(IDS, tables)
numbers |= claims.show(
    verdicts,
    short=True,
    caption="The claims of this chapter, judged by rules written beforehand. With "
    "fewer than six seeds a comparison is "
    "undecided, whatever its size.",
)
figures.provenance(runs)

# %% [markdown]
# ## What the abstract claims, and what we can say
#
# The abstract of the paper {cite:p}`li2025` makes statements of four kinds: on what other encodings lack, on what its two losses do, on what SeqPE is good
# for, and on what its encoder costs. The table has those that this book judges by records, those on images of {doc}`chapter 15 <15_two_dimensions>` among them; where perplexity is meant, SeqPE is where
# the released text program has it: a term of the score, in a dense model. Its encoder is narrower than the released one, and it is trained in another way (see the limits). The lead inside the trained length and past it are two
# claims; that the second is the larger is shown by the numbers below and judged by no rule.

# %%
ABSTRACT = [
    one
    for one in claims.CLAIMS
    if one.source == "seqpe-abstract"
    and all(name.startswith("experiment/") for name in one.needs)
]
for name in {name for one in ABSTRACT for name in one.needs} - set(tables):
    tables[name] = experiments.get(name.removeprefix("experiment/")).table(profile)
ALL_LIGHT = "all-that-seqpe-adds-is-light"
said = claims.judge([*(one.id for one in ABSTRACT), ALL_LIGHT], tables)
for short, name in (
    ("lightweight", "the-encoder-is-lightweight"),
    ("all_light", ALL_LIGHT),
):
    numbers[f"verdict_{short}"] = said[name].word
figures.show_table(
    pd.DataFrame(
        {
            "the abstract, in our words": one.statement,
            "claim": one.id,
            "our verdict": said[one.id].word,
            "the paper's tables": "not read",
        }
        for one in ABSTRACT
    ),
    caption="What the abstract says and what our records say to it, at our scale.",
)

# %%
SCORE, LONGER = "dense-seqpe-score", "dense-sinusoidal-shifts"
told = {
    "inside_rope": less(f"{SCORE}:bits_per_byte", "rope:bits_per_byte"),
    "inside_sinusoid": less(f"{SCORE}:bits_per_byte", "sinusoidal:bits_per_byte"),
    "longer_rope": less(f"{SCORE}:native/8x", "rope:native/8x"),
    "longer_sinusoid": less(f"{SCORE}:native/8x", f"{LONGER}:native/8x"),
}
alibi = summaries.by_seed(tables["experiment/extrapolation"], "alibi", "native/8x")
told["longer_alibi"] = (scores(SCORE, "native/8x") - alibi).dropna()
numbers |= {f"score_{key}": chapter_numbers.mean_of(v) for key, v in told.items()}

# %% [markdown]
# Against RoPE SeqPE stands at {num}`16_seqpe_stream/score_inside_rope:+.3f` bits per byte inside the trained length and at
# {num}`16_seqpe_stream/score_longer_rope:+.3f` in the last bin, where RoPE without a window fails by itself and is no high bar;
# against the sinusoid at {num}`16_seqpe_stream/score_inside_sinusoid:+.3f` and, with the same shift steps,
# {num}`16_seqpe_stream/score_longer_sinusoid:+.3f`; against ALiBi, the bar that counts there, at
# {num}`16_seqpe_stream/score_longer_alibi:+.3f` in that bin. Beside *every* encoding, with three seeds, it stands in
# {doc}`chapter 5 <05_biases>`.
#
# Two of its statements are judged by counts of code, in {doc}`chapter 15 <15_two_dimensions>`: that more dimensions ask for no redesign by hand is
# *{num}`15_two_dimensions/verdict_no_manual_redesign`*, that the designs of experts must be modified *{num}`15_two_dimensions/verdict_expert_designs_must_be_modified`*. That self-attention is invariant to order
# is taken apart in {doc}`chapter 1 <01_order>`: it is equivariant.
# What this page cannot say: exact match in long-context question answering follows with the chapters on long contexts. What the paper's tables say of any of these we do not know.
#
# ### What the encoder costs
#
# The abstract calls the encoder lightweight. A model that trains with it pays for the embeddings of its own positions, for
# their maps and for both losses. Timed piece by piece against each other, forward and backward, without the optimiser: the step, of
# that what is done for positions alone, and the step of the model without an encoding. What is done once a step is the same for one sequence and for a batch.

# %%
cost = experiments.get("seqpe_cost").table(profile)


def ranged(row, name, form):
    """A median with its quartiles; "not run" without a record."""
    if row.status == "not run":
        return "not run"
    low, high = getattr(row, f"{name}_lower"), getattr(row, f"{name}_upper")
    return f"{getattr(row, name):{form}} ({low:{form}} to {high:{form}})"


def counted(row, name, form):
    """What the same step has of multiply-adds; "not run" without a record."""
    return "not run" if row.status == "not run" else f"{getattr(row, name):{form}}"


# %% tags=["hide-input"]
figures.show_table(
    pd.DataFrame(
        {
            "what": row.label,
            "share of the step": ranged(row, "share", ".1%"),
            "of its multiply-adds": counted(row, "products", ".1%"),
            "longer queries, keys": counted(row, "products_columns", ".1%"),
            "times as long": ranged(row, "longer", ".2f"),
            "times the multiply-adds": counted(row, "products_longer", ".2f"),
        }
        for row in cost.itertuples()
    ),
    caption="The share of a training step that goes to the encoder, its losses and its "
    "maps; beside them, counted, what the term of the score adds to queries and keys; "
    "and the step as a multiple of that without an encoding, which has both in it. "
    "Medians and quartiles of rounds timed in turn.",
)
figures.provenance(cost)

# %%
narrow = cost.method.iloc[0]  # the narrowest encoder, the most often
for name in ("share", "products", "products_columns", "products_teacher"):
    found = summaries.by_seed(cost, narrow, name)
    numbers[f"cost_{name}"] = chapter_numbers.mean_of(found)

# %% [markdown]
# With the narrowest encoder, and losses as often as any, {num}`16_seqpe_stream/cost_share:.1%` of the time of a step and
# {num}`16_seqpe_stream/cost_products:.1%` of its multiply-adds go to the encoder, its losses and its maps. Not in these two: the term of the score makes queries and
# keys longer, which is another {num}`16_seqpe_stream/cost_products_columns:.1%` of the multiply-adds; how much longer the step takes has it in. A step encodes in three passes, the text, the
# positions of the losses, and the teacher's, which are all among the text's: one pass for both would save
# {num}`16_seqpe_stream/cost_products_teacher:.1%` of the multiply-adds at most, and more of the time, since small passes are mostly overhead. That what is done for positions alone is light, less than a twentieth of the
# time, is *{num}`16_seqpe_stream/verdict_lightweight`*; that all is by which the step is longer, *{num}`16_seqpe_stream/verdict_all_light`*. Rows with losses every four steps say what
# a user may save: the models of text and of images in this book have them in every step.

# %%
numbers["runs"], numbers["runs_declared"] = len(have), len(runs)

# %% [markdown]
# ## What to take away
#
# 1. **The losses of SeqPE shape the position stream and nothing else.** They need no text. The text's own loss
#    trains the encoder too, through attention; in a strict model the stream itself reads nothing of the text. That they carry the stream further than shift steps alone is
#    *{num}`16_seqpe_stream/verdict_the_losses_carry_the_stream_further`*, that shift steps help beside them
#    *{num}`16_seqpe_stream/verdict_shift_steps_help_beside_the_losses`*, and that it is the distillation,
#    *{num}`16_seqpe_stream/verdict_distillation_carries_the_stream_further`*.
# 2. **A far index is three questions**: covered, never seen with the low digits of the window at 0, never seen with
#    others. That covered indices
#    read alike is *{num}`16_seqpe_stream/verdict_seqpe_reads_covered_indices_alike`*; that those no loss saw do,
#    *{num}`16_seqpe_stream/verdict_seqpe_reaches_indices_never_seen`*; that alignment decides,
#    *{num}`16_seqpe_stream/verdict_misaligned_starts_cost_more`*.
# 3. **A longer text is another question.** That the stream survives is
#    *{num}`16_seqpe_stream/verdict_seqpe_survives`*, with a window
#    *{num}`16_seqpe_stream/verdict_seqpe_and_a_window_survive`*; that it uses the far past,
#    *{num}`16_seqpe_stream/verdict_a_seqpe_stream_uses_the_far_past`*.
# 4. **Against the sinusoid at the same shift steps**: better at far indices is
#    *{num}`16_seqpe_stream/verdict_seqpe_beats_the_sinusoid_at_far_indices`*, past the length
#    *{num}`16_seqpe_stream/verdict_seqpe_beats_the_sinusoid_past_the_length`*. That it is free inside is
#    *{num}`16_seqpe_stream/verdict_seqpe_is_free_in_window`*, and that it stands beside RoPE,
#    *{num}`16_seqpe_stream/verdict_a_seqpe_stream_stands_beside_rope`*.
# 5. **Was it the separation?** That SeqPE carries a separated model further than a dense one is
#    *{num}`16_seqpe_stream/verdict_separation_helps_seqpe`*.
# 6. **Of the abstract**: that SeqPE surpasses the sinusoid and RoPE is
#    *{num}`16_seqpe_stream/verdict_seqpe_surpasses_strong_baselines`*, that it surpasses them and ALiBi past the trained length
#    *{num}`16_seqpe_stream/verdict_seqpe_surpasses_them_past_the_length`*, that the distillation helps there
#    *{num}`16_seqpe_stream/verdict_distillation_further_enhances_extrapolation`* (of a stream, *{num}`16_seqpe_stream/verdict_distillation_helps_past_the_length`*).
#
# **Limits.** One kind of text, models of less than a million parameters, one training budget
# ({num}`16_seqpe_stream/runs` of {num}`16_seqpe_stream/runs_declared` runs at this profile). The weights of the losses
# are of the released strength and were not tuned. Rates were chosen with one seed, with both losses, and are those of the whole chain of a mode; those of the roots, RoPE and ALiBi were chosen after 500 of the 1,200 steps, those of SeqPE and of the sinusoid with shift steps after all; between separated and dense the distillation differs in one thing
# more, one head for 32 columns and two for 128. What is judged of the abstract is judged of a reimplementation whose encoder has a quarter of the model's width (released: all of it), decays and is clipped with
# the model (released: no decay, and a clip of its own) and whose contrastive loss is scaled; {doc}`chapter 13 <13_digits>` lists what differs. Far out only
# single trained lengths are read, at two pairs of starts a group.
#
# **What would change our mind.** Of each verdict above, the opposite at a training many times as long, or
# with candidates from around the anchor.
#
# ## Exercises
#
# **1. (easy)** How many digits of base 10, and of base 2, does a text of 1,000,000 tokens need?

# %% tags=["hide-cell"]
for base in (10, 2):
    width = next(n for n in range(1, 64) if base**n >= 1_000_000)
    assert digits([999_999], base=base, width=width).shape == (1, width)
    print(f"base {base}: {width}")

# %% [markdown]
# **2. (easy)** Is 24,000 + 384 aligned for a trained length of 128? For one of 8?

# %% tags=["hide-cell"]
# For neither: 24,384 is no multiple of 1000, nor of 10.
assert period(128) == 1000 and period(8) == 10
print([24_384 % period(length) == 0 for length in (128, 8)])

# %% [markdown]
# **3. (medium)** Why is the stream of a strict model with SeqPE computed once per batch on shift steps too? Which option of
# {class}`~sepnb.shift_steps.ShiftSteps` would end that, and what would it cost?

# %% tags=["hide-cell"]
# A shift step draws one offset for the whole batch, so that all sequences share their
# positions. per="sequence" would give
# each its own: the stream then runs once for every sequence, and the encoder reads as
# many windows as there are sequences.
shared = run_of("demo", "smoke", "strict-seqpe", seed, METHODS).training.positions
sizes = {"batch_size": 3, "length": 8, "seed": 1, "steps": 1}
for per, shape in (("step", (8,)), ("sequence", (3, 8))):
    always = replace(shared, probability=1.0, per=per)
    (drawn,) = always.batches(texts.load(small.text.name).train, **sizes)
    assert always.outside(drawn.positions) and drawn.positions.shape == shape
assert shared.per == "step"

# %% [markdown]
# **4. (hard)** Let the distillation loss be zero for every window of $L$ positions. Which inner products of a text of $2L$ does that
# bind to those of the trained window, and which not? Show first that windows at multiples of $L$ alone bind nothing across two of
# them.

# %% tags=["hide-cell"]
# Windows at multiples of L may each be turned as they like: within them all products
# stay, but for one constant a window and head, across them none does. A window that
# begins between them notices. With windows everywhere every pair less than L apart lies
# in some window, and is bound, up to that constant; a pair that is L or more apart lies
# in none. The loss is about indices, and says nothing of distances that no text has
# shown.
length, columns = 32, 8
home = torch.randn(length, columns, dtype=torch.float64)
turned = home @ torch.linalg.qr(torch.randn(columns, columns, dtype=torch.float64)).Q
between = torch.cat([home[length // 2 :], turned[: length // 2]])
aligned_loss, between_loss = (
    distillation_loss(home[None], window[None], 1).item()
    for window in (turned, between)
)
assert aligned_loss < 1e-12 and between_loss > 0.1
assert (home @ turned.T - home @ home.T).abs().max() > 1
print(f"at L {aligned_loss:.1e}, at L/2 {between_loss:.2f}")

# %% [markdown]
# ---
# The next cell writes the numbers that this page's sentences, the {doc}`claims page </book/claims>` and the
# regression tests read.

# %%
chapter_numbers.publish("16_seqpe_stream", numbers, profile=profile)

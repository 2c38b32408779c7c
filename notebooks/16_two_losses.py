# %% [markdown]
# # 16. Two losses and a space
#
# **Finding.** SeqPE's contrastive loss makes distances between embeddings follow distances between positions. We measure this in windows
# (runs of consecutive positions) that do not begin at round numbers. They lie outside the first, trained window but within the range from
# which both losses draw positions. In these windows the rank correlation between the two kinds of distance is
# {num}`seqpe_distances/contrastive/drawn/distance/misaligned:.2f` before training. After training it is
# {num}`seqpe_distances/contrastive/distance/misaligned:.2f` with the contrastive loss alone and
# {num}`seqpe_distances/distillation/distance/misaligned:.2f` with the distillation loss alone.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
from math import exp, log

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch.nn.functional import normalize

from sepnb import experiments
from sepnb.data.draws import generator_of
from sepnb.experiments import seqpe_geometry as geo
from sepnb.plots import figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.seqpe import SequentialPositionEncoder, contrastive_loss, distillation_loss
from sepnb.seqpe.geometry import geometry
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.training import TrainingConfig, train
from sepnb.training.seqpe_losses import SeqPELosses

figures.use_style()
torch.manual_seed(seed)
F64 = torch.float64
numbers = {}
sweep = experiments.get("seqpe_geometry").table(profile)
fresh = experiments.get("seqpe_distances").table(profile)
of, again = RunTable(sweep), RunTable(fresh)
numbers["runs"], numbers["runs_declared"] = len(of.made), len(sweep)
PLACES = tuple(geo.starts(10))
GROUPS = (*PLACES, geo.SPREAD)

# %% tags=["hide-input"]
LOOKS = {
    geo.BOTH: figures.Method("both losses", "#0072b2", marker="o"),
    "contrastive": figures.Method("contrastive alone", "#d55e00", marker="s"),
    "distillation": figures.Method("distillation alone", "#009e73", marker="^"),
    "around": figures.Method("both, half around", "#cc79a7", marker="D"),
}
DRAWN = figures.Method("before training", figures.FAINT, marker="o", filled=False)


def rows_of_seeds(ax, runs, measure, groups, looks, *, labelled=False):
    """For each group a row of the untrained encoder, then one of each variant."""
    rows = {
        says: [(runs.values(geo.BOTH, f"drawn/{measure}/{group}"), DRAWN)]
        + [
            (runs.values(one, f"{measure}/{group}"), look)
            for one, look in looks.items()
        ]
        for group, says in groups.items()
    }
    figures.seed_rows(ax, rows, size=5, labelled=labelled)


SHORT = {
    "trained": "trained window",
    "misaligned": "windows elsewhere",
    "misaligned, never seen": "windows past 20,000",
    "spread": "spread over 20,000",
}
THREE = {name: look for name, look in LOOKS.items() if name != "around"}
fig, axes = plt.subplots(1, 2, figsize=(8.6, 4.2), sharey=True)
rows_of_seeds(axes[0], again, "distance", SHORT, THREE, labelled=True)
rows_of_seeds(axes[1], again, "order", SHORT, THREE)
axes[0].set(title="distances of embeddings", xlabel="rank correlation with distance")
axes[1].set(title="inner products", xlabel="rank correlation with nearness")
fig.legend(loc="outside upper center", ncols=4, fontsize=8.5)
figures.show(
    fig,
    name="fig-losses-distances",
    alt="Dot plots of rank correlations for an encoder before training and after three "
    "trainings, in four groups of positions. On the left, for distances, the two "
    "trainings with the contrastive loss are right of the others in every group. On "
    "the right, for inner products, they clearly are only for spread positions, and "
    "in the trained window they are left of the others.",
    caption="With the contrastive loss, alone or with the distillation, distances of "
    "embeddings follow distances of positions in every group. Inner products follow "
    "nearness clearly only for positions spread over the whole range. Windows "
    "elsewhere begin below 20,000, not at round numbers. Markers: means; bars: 95 % t "
    "intervals; ticks: seeds.",
)

# %% [markdown]
# > **Question.** Which of SeqPE's two losses orders the embeddings by position? And does the order reach positions where the
# > losses never drew anything?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 25 s of one CPU core; no GPU, no downloads. The records: `sepnb run seqpe_geometry`, 54 runs of about a
#   minute on one core, and `sepnb run seqpe_distances`, 18 more.
# - **You need**: {doc}`chapter 15 <15_digits>`, or its takeaways; softmax and cross-entropy.
# - **You will learn**: what each loss asks for and what it ignores; how to tell a learned geometry from shared digits.
# - **Claims tested**: five rules were committed before the first record (before the one on far positions, a trial with one seed had been
#   seen). Two rules on distances were written after seeds 1 to 6 had been seen, and are judged on seeds 7 to 12.
# - **Of the source** we read the abstract and the released code, not the paper itself.
# ```
#
# ## Why two losses
#
# The encoder of {doc}`chapter 15 <15_digits>` reads numerals, and `1000` looks more like `2000` than like `999`. So SeqPE {cite:p}`li2025`
# trains it with two losses besides that of the task. The *contrastive* loss is meant to make embeddings of near positions similar. The
# *distillation* loss is meant to make any other window look, inside, like the *trained window*: the first positions, where a model reads
# its texts.
#
# ## The contrastive loss: which one is nearest?
#
# Take a position $p$, the *anchor*, and some *candidates* $c_1, \dots, c_K$. The embedding of the candidate nearest to $p$ should have
# the largest inner product with that of $p$. (If two are equally near, the first counts.)
#
# $$
# y = \operatorname*{arg\,min}_j \lvert p - c_j \rvert^2, \qquad
# \mathcal{L}_{\text{ct}} = -\log \frac{\exp(s \, e_p \cdot e_{c_y})}{\sum_j \exp(s \, e_p \cdot e_{c_j})} .
# $$ (eq-losses-contrastive)
#
# In the package ({func}`sepnb.seqpe.contrastive_loss`), with anchors `[P, D]` and candidates `[P, K, D]`:
#
# ```{literalinclude} ../../sepnb/seqpe/losses.py
# :pyobject: contrastive_loss
# :start-at: scores =
# :dedent:
# ```
#
# By hand, with one column: the anchor 5 has embedding 1. The candidates 9, 3 and 6 have embeddings 2, 1 and 3. The third is nearest.

# %%
anchor, candidates = torch.tensor([5]), torch.tensor([[9, 3, 6]])
e_anchor = torch.tensor([[1.0]], dtype=F64)
e_candidates = torch.tensor([[[2.0], [1.0], [3.0]]], dtype=F64)
by_function = contrastive_loss(e_anchor, e_candidates, anchor, candidates, scale=1.0)
by_hand = -log(exp(3) / (exp(2) + exp(1) + exp(3)))
assert abs(by_function.item() - by_hand) < 1e-12
# Only the nearest one counts: moving the others further away changes nothing.
further = torch.tensor([[90_000, 0, 6]])
moved = contrastive_loss(e_anchor, e_candidates, anchor, further, scale=1.0)
assert moved == by_function
print(f"by hand {by_hand:.4f}, by the function {by_function.item():.4f}")

# %% [markdown]
# As the last check shows, the loss asks only which candidate is nearest, not how far away the others are.
#
# The release has $s = 1$, but products grow with the number of columns $D$. A wide untrained encoder then gives wrong answers with
# confidence. Its loss starts above $\log K$, the loss of a blind guess. Our default is $s = 1/\sqrt D$.
#
# ### Which questions are asked?
#
# The candidates decide what the encoder learns. In the release, four anchors in ten draw their candidates from anywhere. Up to a quarter of
# these candidates are made by *editing the digits* of the anchor, and an edited candidate is never the right answer. Each of the other six
# draws its candidates from one box of neighbouring positions, which can lie *anywhere*. How near is the right answer?

# %%
sampled = {}
for kind in ("uniform", "edited", "window", "around"):
    sampler = CandidateSampler(
        (geo.LARGEST,), anchors=1_024, kinds=((kind, 1.0),), window=(2 * geo.LENGTH,)
    )
    p, c = sampler.draw(generator_of(seed, "seqpe-fresh"))
    sampled[kind] = np.sort(np.abs(c - p[:, None])[..., 0].min(axis=1))
for kind in ("uniform", "around"):
    numbers[f"neighbours_{kind}"] = float((sampled[kind] == 1).mean())

# %% tags=["hide-input"]
KINDS = {
    "uniform": ("anywhere", "#6b6f74", shapes.DOTTED),
    "edited": ("anywhere, a quarter edited", "#d55e00", shapes.DASHED),
    "window": ("a box anywhere", "#0072b2", "-"),
    "around": ("a box around the anchor (ours)", "#009e73", "-"),
}
median = {kind: f"{np.median(found):.0f}" for kind, found in sampled.items()}
fig, ax = plt.subplots(figsize=(6.8, 3.4))
for kind, (label, colour, dash) in KINDS.items():
    share = np.arange(1, len(sampled[kind]) + 1) / len(sampled[kind])
    ax.plot(sampled[kind], share, color=colour, linestyle=dash, label=label)
ax.set_xscale("log")
ax.set_xlabel("distance of the nearest candidate (positions, log scale)")
ax.set_ylabel("share of anchors with\na nearer right answer")
ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9)
figures.show(
    fig,
    name="fig-losses-asked",
    alt="Cumulative share of anchors against the distance of the nearest candidate, "
    "for four kinds of candidates. In a box around the anchor the nearest is a few "
    "positions away, anywhere it is hundreds, in a box anywhere thousands.",
    caption="Only a box around the anchor asks about neighbours. The curves show how "
    "far the right answer is from the anchor, for 32 candidates below 20,000. Medians: "
    f"anywhere {median['uniform']}, with edited numerals {median['edited']}, box "
    f"anywhere {median['window']}, box around the anchor {median['around']}.",
)

# %% [markdown]
# With candidates from anywhere, the right answer is a direct neighbour for only {num}`16_two_losses/neighbours_uniform:.1%` of the
# anchors. A box anywhere is usually far away, so the question becomes which end of it is nearer. With a box *around* the anchor, the right
# answer is a direct neighbour more often ({num}`16_two_losses/neighbours_around:.0%` of the anchors). The release has no such box; we add
# it as a variant.
#
# ## The distillation loss: look like the trained window
#
# The second loss is about *windows*. Take places $a$ inside the trained window and the same places in a window elsewhere, $a + \Delta$.
# In each window, and for each head $h$ (a block of columns), compute all inner products and turn each row into a distribution:
#
# $$
# \begin{gathered}
# P = \operatorname{softmax}_{\text{rows}}\bigl(E_h(a)\, E_h(a)^{\!\top}\bigr), \\
# Q = \operatorname{softmax}_{\text{rows}}\bigl(E_h(a + \Delta)\, E_h(a + \Delta)^{\!\top}\bigr), \\
# \mathcal{L}_{\text{kd}} = \mathrm{KL}(\bar P \,\Vert\, Q) + \mathrm{KL}(Q \,\Vert\, \bar P) .
# \end{gathered}
# $$ (eq-losses-distillation)
#
# The bar stops the gradient, so that the gradient flows only through the window elsewhere, the *student*. The trained window is the
# *teacher*. The loss is the mean over rows, heads and windows ({func}`sepnb.seqpe.distillation_loss`):
#
# ```{literalinclude} ../../sepnb/seqpe/losses.py
# :pyobject: distillation_loss
# :start-at: heads =
# :dedent:
# ```
#
# What does this loss notice? Here is one teacher with several students:


# %%
def kd(teacher, student, **options):
    """The loss of one window of five places, in two heads of four columns."""
    return distillation_loss(teacher[None], student[None], 2, **options).item()


home = torch.randn(5, 8, dtype=F64)
turned = torch.linalg.qr(torch.randn(4, 4, dtype=F64)).Q
across = torch.linalg.qr(torch.randn(8, 8, dtype=F64)).Q
cases = {
    "the same": home,
    "each head turned": (home.unflatten(1, (2, 4)) @ turned).flatten(1),
    "turned across the heads": home @ across,
    "twice as long": 2 * home,
    "every vector moved by the same": home + 1,
    "places in another order": home[[1, 0, 2, 3, 4]],
}
divergence = {name: kd(home, other) for name, other in cases.items()}
assert divergence["the same"] == 0 and divergence["each head turned"] < 1e-12
assert min(list(divergence.values())[2:]) > 1e-3
figures.show_table(
    pd.DataFrame({"student": divergence.keys(), "loss": divergence.values()}),
    caption="Rotating a student inside each head costs nothing; every other change "
    "here costs something. Distillation loss in nats per row.",
    formats={"loss": ".3f"},
)

# %% [markdown]
# The loss depends only on the products inside each head, and adding one constant to all of them changes nothing. The products are *raw*, as
# in the release, so the length of the embeddings matters. Their direction does not: each head of a window elsewhere may be rotated in any
# way. But attention scores positions by $W_q e_p \cdot W_k e_{p'}$, which depends on the direction. So a window can look perfect to this
# loss and still be read differently:

# %%
w_q, w_k = torch.randn(2, 8, 8, dtype=F64)


def score(e):
    return (e @ w_q.T) @ (e @ w_k.T).T


both_heads = torch.block_diag(turned, turned)
assert kd(home, home @ both_heads) < 1e-12
assert (score(home) - score(home @ both_heads)).abs().max() > 1

# %% [markdown]
# The next cell checks two more properties. Without the stop-gradient the teacher would learn from the student too. And the release divides
# by the number of *entries*, $m^2$ for $m$ places, although a divergence is a sum over a row. We divide by the number of rows. So the
# released weight of $0.1$ corresponds to $0.1/m$ here. <!-- given: the released weight -->

# %%
teacher, student = (torch.randn(1, 5, 8, dtype=F64).requires_grad_() for _ in range(2))
for beta, taught in ((1.0, False), (0.5, True)):
    teacher.grad = student.grad = None
    distillation_loss(teacher, student, 2, beta=beta).backward()
    moves = teacher.grad is not None and bool(teacher.grad.abs().max() > 0)
    assert moves == taught and student.grad.abs().max() > 0
rows = distillation_loss(teacher, student, 2)
released = distillation_loss(teacher, student, 2, reduction="released")
assert abs(rows / released - 5) < 1e-9  # m = 5 places

# %% [markdown]
# ### Shared digits are a trap
#
# Take a power of the base (here ten) that is at least as large as the length of the window. Every multiple of it is a {term}`round start`.
# In a window at a round start the low digits run as in the trained window. We call such windows *aligned* and all others *misaligned*.

# %%
torch.manual_seed(seed)
untrained = SequentialPositionEncoder(width=64, heads=2).eval()
within, cost = torch.arange(geo.LENGTH), {}
with torch.no_grad():
    own = untrained(within)[None]
    for group in ("aligned", "misaligned"):
        windows = [untrained(start + within)[None] for start in geo.starts(10)[group]]
        cost[group] = [distillation_loss(own, one, 2).item() for one in windows]
        numbers[f"drawn_{group}"] = float(np.mean(cost[group]))
assert max(cost["aligned"]) < min(cost["misaligned"])
print({group: np.round(found, 3).tolist() for group, found in cost.items()})

# %% [markdown]
# Windows at round starts look like the trained one before anything is learned. Their distillation loss is
# {num}`16_two_losses/drawn_aligned:.3f`, and that of other windows is {num}`16_two_losses/drawn_misaligned:.3f`. So we never average the
# two kinds.
#
# ## A toy training
#
# We train a small encoder on a thousand positions with both losses, twice from the same weights. One training uses the released candidates;
# in the other, half of the anchors draw their candidates from a box around themselves.

# %%
RANGE, HOME, STEPS, LOOKS_AT = 1_000, 64, 200, (0, 50, 100, 200)
NEAR, FAR = torch.arange(HOME), torch.arange(HOME) * (RANGE // HOME)
MIXTURES = {
    "released": (("edited", 0.4), ("window", 0.6)),
    "half around": (("around", 0.5), ("edited", 0.2), ("window", 0.3)),
}


# %%
def schooled(kinds):
    """The embeddings of near and of far positions after some steps of both losses."""
    torch.manual_seed(seed)
    encoder = SequentialPositionEncoder(width=32, heads=1, digits=4).to(device)
    candidates = CandidateSampler((RANGE,), window=(HOME,), kinds=kinds)
    windows = WindowSampler((RANGE,), (HOME,), away=(HOME // 4,))
    losses = SeqPELosses(candidates, windows, n_heads=1)
    config = TrainingConfig(STEPS, 1, 1, 3e-3, weight_decay=0.0, auxiliary=losses)
    seen = {}

    def look(step):
        if step in LOOKS_AT:
            encoder.eval()
            with torch.no_grad():
                seen[step] = encoder(NEAR).cpu(), encoder(FAR).cpu()
            encoder.train()

    look(0)
    how = {"device": device, "auxiliary": losses.bind(seed)}
    given = geo.PositionsOnly(encoder), geo.letters(STEPS), config
    train(*given, on_step=lambda step: look(step + 1), **how)
    return seen


# %%
lessons = {name: schooled(kinds) for name, kinds in MIXTURES.items()}
orders = {
    (name, step): (geometry(near, NEAR).order, geometry(far, FAR).order)
    for name, seen in lessons.items()
    for step, (near, far) in seen.items()
}
numbers["live_near_released"], numbers["live_far_released"] = orders["released", STEPS]
numbers["live_near_around"], far_around = orders["half around", STEPS]
assert numbers["live_near_around"] > numbers["live_near_released"]
assert seed or far_around < 0.1, "with this seed the spread positions are not ordered"
assert numbers["live_far_released"] > numbers["live_near_released"] + 0.3


def signed(value):
    return text_of([value], "+.2f")


# %% tags=["hide-input"]
columns = {
    "before training": ("released", 0),
    "released candidates": ("released", STEPS),
    "half around the anchor": ("half around", STEPS),
}
fig, axes = plt.subplots(2, 3, figsize=(8.2, 5.6))
for column, (title, (name, step)) in enumerate(columns.items()):
    axes[0, column].set_title(title)
    both = axes[:, column], lessons[name][step], orders[name, step]
    for ax, e, order in zip(*both, strict=True):
        unit = normalize(e, dim=1)
        image = ax.imshow(unit @ unit.T, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set(xticks=[], yticks=[], xlabel=f"order {signed(order)}")
        ax.spines[:].set_visible(True)
axes[0, 0].set_ylabel("positions 0 to 63")
axes[1, 0].set_ylabel("positions every 15th below 1,000")
fig.colorbar(image, ax=axes, shrink=0.7, label="cosine of two embeddings")
figures.show(
    fig,
    name="fig-losses-live",
    alt="Six heat maps of cosines between embeddings, above for sixty-four "
    "neighbouring positions, below for sixty-four spread over a thousand. Before "
    "training there is a plaid of shared digits. With the released candidates the "
    "neighbours are all alike and the spread positions ordered. If half of the "
    "anchors draw candidates around themselves, the neighbours form blocks of ten and "
    "the spread positions repeat.",
    caption=f"After {STEPS} steps of a toy training, the released candidates have "
    "ordered spread positions but hardly neighbours. If half of the anchors draw "
    "candidates around themselves, it is the reverse with this seed. Colour shows the "
    "cosine of two embeddings. *Order*: rank correlation of nearness with the inner "
    "product. Before training, shared digits make a plaid.",
)

# %% [markdown]
# **In this toy training the candidates decide which order the encoder learns.** The released candidates order positions spread over the
# range ({num}`16_two_losses/live_far_released:+.2f`), but hardly the sixty-four neighbours ({num}`16_two_losses/live_near_released:+.2f`).
# With boxes around half of the anchors, the neighbours are ordered ({num}`16_two_losses/live_near_around:+.2f`), in blocks of ten. With the
# seed of this page the spread positions then are not, and with other seeds they are. One seed proves nothing; the experiment below has six.
#
# ### Products and distances
#
# Both losses compare inner products. Two embeddings can also be compared by their distance,
# $\lVert e - f \rVert^2 = \lVert e \rVert^2 + \lVert f \rVert^2 - 2 \langle e, f \rangle$. If all embeddings had the same length, both
# comparisons would give the same order. Here they do not:

# %%
near = lessons["released"][STEPS][0].double()
mean, lengths = near.mean(dim=0), near.norm(dim=1)
as_they_are, centred = geometry(near, NEAR), geometry(near - mean, NEAR)
common = mean.square().sum() / near.square().sum(dim=1).mean()
numbers["live_distance_near"] = signed(as_they_are.distance)
level = geometry(near / lengths[:, None], NEAR)  # of one length each
numbers["live_common"] = f"{common:.1%}"
assert as_they_are.distance > as_they_are.order + 0.1
assert min(centred.order, level.order) > as_they_are.order + 0.1
assert abs(centred.distance - as_they_are.distance) < 1e-9

# %% [markdown]
# For the sixty-four neighbours, the rank correlation is {num}`16_two_losses/live_near_released:+.2f` by products and
# {num}`16_two_losses/live_distance_near` by distance.
#
# The reason is that all embeddings of the window share one large vector, their mean, which makes up {num}`16_two_losses/live_common` of
# their squared length. In the products this mean outweighs the rest, so small differences in length decide the order. If we remove the
# mean, or scale all embeddings to one length, the products order positions much better.
#
# Move the slider through the toy training with the released candidates. Each point is one of the spread positions, in the plane of the
# first two principal components at the end of the training.

# %% tags=["hide-input"]
last = lessons["released"][STEPS][1]
mean = last.mean(dim=0)
basis = torch.linalg.svd(last - mean).Vh[:2]
basis = basis * torch.where(basis.sum(dim=1, keepdim=True) < 0, -1.0, 1.0)  # one sign
places = {
    step: ((far - far.mean(dim=0)) @ basis.T).double().numpy().round(4).tolist()
    for step, (_, far) in lessons["released"].items()
}
moving.show(
    "training",
    {
        "steps": list(places),
        "positions": FAR.tolist(),
        "places": list(places.values()),
        "start": len(places) - 1,
    },
    name="moving-losses",
    alt="Scatter plot with a slider over steps of training: sixty-four positions "
    "spread over a thousand, joined in order, in the plane of two principal "
    "components. Before training they form a tangle; at the end they lie along a "
    "curve, in the order of positions.",
    instead="the figure of cosines above, left and middle, for how similar the same "
    "positions are before and after",
)

# %% [markdown]
# ## The experiment
#
# `seqpe_geometry` trains encoders of 64 columns on the two losses alone: no text is read. The losses draw positions below 20,000, and the
# trained window has 128. Encoders are measured before and after training, in six groups of positions:
#
# - the *trained* window;
# - windows elsewhere below 20,000, at round starts (*aligned*) and at other starts (*misaligned*);
# - both again past 20,000, where the losses drew nothing (*never seen*);
# - 128 positions *spread* over the range.
#
# The measures are
#
# - *distance*: the rank correlation of the distance of two positions with the Euclidean distance of their embeddings;
# - *order*: the rank correlation of the nearness of two positions with the inner product of their embeddings;
# - *adjacency*: the share of positions whose largest product is with a direct neighbour;
# - *likeness*: the correlation of a window's products with those of the trained window.
#
# ### The contrastive loss orders distances
#
# The rules on distances are judged on seeds 7 to 12 (`seqpe_distances`, {numref}`fig-losses-distances`). In the trained window the
# correlation is {num}`seqpe_distances/both/distance/trained:+.2f±` with both losses,
# {num}`seqpe_distances/contrastive/distance/trained:+.2f±` with the contrastive loss alone and
# {num}`seqpe_distances/distillation/distance/trained:+.2f±` with the distillation alone. Exploratory: the contrastive loss orders distances
# past 20,000 too.
#
# ### Binary digits come first

# %% tags=["hide-input"]
BLUE = figures.Method("trained window", "#0072b2", marker="o")
ORANGE = figures.Method("windows elsewhere", "#d55e00", marker="s", filled=False)
says = {"before training": (geo.BOTH, "drawn/")}
says |= {method.says: (name, "") for name, method in geo.METHODS.items()}
rows = {
    one: [
        (of.values(name, f"{at}distance/{group}"), look)
        for group, look in (("trained", BLUE), ("misaligned", ORANGE))
    ]
    for one, (name, at) in says.items()
    if len(of.values(name, "distance/trained"))
}
rows = dict(sorted(rows.items(), key=lambda row: -row[1][0][0].mean()))
fig, ax = plt.subplots(figsize=(7.6, 4.2))
figures.seed_rows(ax, rows, size=5, labelled=True)
ax.tick_params(axis="y", labelsize=9)
ax.set(xlabel="rank correlation of distances", xlim=(None, 1.02))
ax.legend(loc="lower right", fontsize=8.5)
means = pd.DataFrame(
    {n: [of.mean(n, f"distance/{g}") for g in GROUPS] for n in geo.METHODS}
)
figures.show(
    fig,
    name="fig-losses-variants",
    alt="Dot plot of the rank correlation of distances, sorted, for the untrained "
    "encoder and the variants of training. Binary digits are at the right, near one, "
    "with little spread between seeds; the untrained encoder and the distillation "
    "alone are at the left.",
    caption="With binary digits the mean correlation is highest in "
    f"{(means['base-2'] == means.max(axis=1)).sum()} of {len(GROUPS)} groups of "
    "positions. Two groups are shown. Rows have decimal digits and both losses unless "
    "they say otherwise.",
)

# %% [markdown]
# Exploratory: with binary digits the correlation in the trained window is {num}`seqpe_geometry/base-2/distance/trained:+.2f±`, against
# {num}`seqpe_geometry/both/distance/trained:+.2f±` with decimal digits. (These are seeds 1 to 6; the section above has seeds 7 to 12, in
# which the same model is at {num}`seqpe_distances/both/distance/trained:+.2f±`.) But at starts past 20,000 that are not round, the lead is
# within the spread of the seeds. Binary strings are also longer: 17 digits instead of five.
#
# ### Products order what is far apart

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.6, 5.0))
everywhere = dict(zip(GROUPS, GROUPS, strict=True))
rows_of_seeds(axes[0], of, "order", everywhere, LOOKS, labelled=True)
elsewhere = dict(zip(PLACES[1:], PLACES[1:], strict=True))
rows_of_seeds(axes[1], of, "likeness", elsewhere, LOOKS)
axes[0].set(xlabel="rank correlation with nearness", title="order of inner products")
axes[1].set(xlabel="correlation of products", title="likeness to the trained window")
fig.legend(loc="outside upper center", ncols=5, fontsize=8.5)
windows_best = max(of.mean(geo.BOTH, f"order/{group}") for group in PLACES)
far, near = (
    [of.text(v, f"order/{group}", "+.2f") for v in (geo.BOTH, "around")]
    for group in ("spread", "misaligned")
)
figures.show(
    fig,
    name="fig-losses-records",
    alt="Dot plots of an encoder before training and after four trainings. Left, the "
    "order of inner products: with both losses it is near one for spread positions and "
    "below a half in every window. Right, the likeness to the trained window: before "
    "training it is high at round starts and near zero at others.",
    caption=(
        "Inner products order spread positions, but hardly those of a window. "
        if of.mean(geo.BOTH, "order/spread") > 0.5 > windows_best
        else ""
    )
    + f"Order with both losses: {far[0]} for spread positions, {near[0]} in "
    "misaligned windows (those that do not begin at round numbers). If half of the "
    f"anchors draw candidates around themselves: {far[1]} and {near[1]}. Likeness: how "
    "similar windows elsewhere are to the trained one.",
)

# %% [markdown]
# With both losses the order of spread positions rises from {num}`seqpe_geometry/both/drawn/order/spread:+.2f±` to
# {num}`seqpe_geometry/both/order/spread:+.2f±`; the contrastive loss alone does nearly as well. In the *trained* window, where a model
# would read its texts, the order fell in four of the seeds 1 to 6 and in all of the seeds 7 to 12, where it ended at
# {num}`seqpe_distances/both/order/trained:+.2f±`.
#
# If half of the anchors draw candidates around themselves, the order in the trained window reaches
# {num}`seqpe_geometry/around/order/trained:+.2f±`. Even then, at starts that are not round, the largest product is with a direct neighbour
# for only {num}`seqpe_geometry/around/adjacency/misaligned:.0%±` of the positions (2 in 127 by chance).
#
# ### Does the likeness to the trained window grow?
#
# Before training, windows at round starts have a likeness of {num}`seqpe_geometry/both/drawn/likeness/aligned:+.2f±` to the trained window,
# and other windows {num}`seqpe_geometry/both/drawn/likeness/misaligned:+.2f±`. The distillation is meant to raise the latter. Training with
# both losses changes it by {num}`seqpe_geometry/both/likeness/misaligned minus drawn/likeness/misaligned:+.2f±`, so six seeds cannot say
# whether it rises or falls.
#
# The distillation alone changes this likeness by
# {num}`seqpe_geometry/distillation/likeness/misaligned minus drawn/likeness/misaligned:+.2f±`. The likeness clearly grows in only one
# variant: the one in which half of the anchors draw candidates around themselves.
#
# ## What to take away
#
# 1. **The contrastive loss aligns distances of embeddings with those of positions**, as the abstract says
#    ({verdict}`the-contrast-aligns-distances: reproduced`). With both losses the two kinds of distance agree as well, and also in the
#    trained window ({verdict}`the-losses-order-distances: held`).
# 2. **Inner products order positions that are far apart.** We also expected them to order the positions inside a window
#    ({verdict}`the-losses-order-positions: undecided`); in the trained window their order fell in most seeds.
# 3. **What the distillation is good for remains open.** With six seeds we cannot tell whether it repeats the geometry of the trained window
#    elsewhere ({verdict}`distillation-carries-the-geometry: undecided`). We also cannot tell whether inner products are ordered at
#    positions that the losses never drew.
# 4. **Shared digits make even an untrained encoder look as if it had learned a geometry**
#    ({verdict}`shared-digits-look-like-geometry: held`). So every figure of such a geometry should show an untrained encoder as well.
#
# **Limits.** {num}`16_two_losses/runs` of {num}`16_two_losses/runs_declared` runs of `seqpe_geometry` exist. The two losses are trained
# here without a task. With the gradient of a task, or after longer training, inner products may
# order neighbours after all. All variants have one width, one learning rate and one schedule. {doc}`Chapter 18 <18_seqpe_stream>` trains
# models of text.
#
# **What would change our mind.** With the released candidates, an order of inner products in the *trained* window that training raises by
# more than a tenth. (If half of the anchors draw candidates around themselves, training already raises it by more.) Or, at starts that are
# not round, a likeness more than a tenth higher with the distillation than without.
#
# ## Exercises
#
# Try each before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (medium)** Find embeddings of two columns for which the contrastive loss can be made as small as you like, whichever candidate is
# nearest, as long as no two are equally near. Can you do it with one column, $e_p = c \cdot p$?

# %% tags=["hide-cell"]
# Solution. Not with c p: the product of the anchor with the largest candidate is the
# largest, near or not. On a circle it works: the cosine of the angle between two
# positions falls with their distance, as long as all lie within half a turn, and a long
# enough radius makes the softmax as sharp as one likes.
at, others = torch.tensor([10]), torch.tensor([[9, 13, 30]])


def on_a_circle(p, radius):
    angle = p.double() * (np.pi / 64)
    return radius * torch.stack([angle.cos(), angle.sin()], dim=-1)


line = contrastive_loss(at[:, None].double(), others[..., None].double(), at, others)
losses = [
    contrastive_loss(on_a_circle(at, r), on_a_circle(others, r), at, others, scale=1.0)
    for r in (1, 10, 100)
]
assert line > 100 and losses[2] < 1e-3 < losses[1] < losses[0]

# %% [markdown]
# **2. (hard)** One orthogonal matrix that keeps the heads apart turns the embeddings of all positions. Which of the two losses changes?
# And if every window has its own matrix?

# %% tags=["hide-cell"]
# Solution. One matrix for all changes no inner product, so neither loss changes. One
# matrix for each window changes the products across windows, and so the contrastive
# loss, whose candidates may lie in another window than the anchor. The distillation
# never asks across windows.
e, c = torch.randn(8, 8, dtype=F64), torch.randn(8, 15, 8, dtype=F64)
at, at_c = torch.arange(8), (7 * torch.arange(15)).expand(8, -1)
plain = contrastive_loss(e, c, at, at_c)
assert abs(contrastive_loss(e @ both_heads, c @ both_heads, at, at_c) - plain) < 1e-12
assert abs(contrastive_loss(e @ both_heads, c, at, at_c) - plain) > 1e-3
assert distillation_loss(e[None], (e @ both_heads)[None], 2) < 1e-12

# %% tags=["hide-cell"]
chapter_numbers.publish("16_two_losses", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(sweep, fresh)

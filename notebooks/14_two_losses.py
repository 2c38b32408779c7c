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
# # 14. Two losses and a space
#
# > **Question.** What do the two losses of SeqPE make of the space of positions: which of them orders it, and which carries
# > the order to places where the model never read a text?
#
# The encoder of {doc}`chapter 13 <13_digits>` can be asked for any position that its digits can write. That is not yet a reason to trust the answer: it
# knows numerals, and `1000` looks more like `2000` than like `999`. SeqPE {cite:p}`li2025` therefore trains its encoder with two losses beside
# that of the task. One says that near positions are alike, the other that far windows look inside as the trained one does.
# This chapter takes them apart, first by hand, then without any text: only positions, an encoder, and one loss or the other.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 25 s of one CPU core at any profile, most of it for two tiny trainings; no GPU is used, nothing is
#   downloaded. The records of the last sections: `sepnb run seqpe_geometry`, 54 runs of about a minute on one core, and
#   `sepnb run seqpe_distances`, 18 more; no data.
# - **You need**: {doc}`chapter 13 <13_digits>`, or its takeaways; softmax and cross-entropy.
# - **You will learn**: what question each loss asks; which answers are never asked for; what a stop-gradient decides; how to
#   tell an order of far positions from an order of neighbours, and a learned geometry from shared digits.
# - **Claims tested** (see {doc}`/book/claims`): `the-losses-order-positions`, `the-losses-order-far-positions`,
#   `contrast-alone-orders-positions`, `distillation-carries-the-geometry`, `the-geometry-reaches-positions-never-seen`,
#   `neighbours-are-hardly-asked-for`, `shared-digits-look-like-geometry`: their rules were committed before the first record was made.
#   `the-losses-order-distances` and `the-contrast-aligns-distances` were written after, and are judged on fresh seeds.
# - **Of the source** the abstract and the released code were read, not the body: no number of it is quoted in this book, and where the
#   code is odd, the text says what is done instead.
# ```

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

from sepnb import claims, experiments
from sepnb.data.draws import generator_of
from sepnb.experiments import seqpe_geometry as geo
from sepnb.plots import figures, interactive, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.seqpe import SequentialPositionEncoder, contrastive_loss, distillation_loss
from sepnb.seqpe.geometry import geometry, likeness
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.training import TrainingConfig, train
from sepnb.training.seqpe_losses import SeqPELosses

figures.use_style()
torch.manual_seed(seed)
F64 = torch.float64
numbers = {}

# %% [markdown]
# ## The contrastive loss: which one is nearest?
#
# Take a position $p$, the *anchor*, and some *candidates* $c_1, \dots, c_K$. One of them is nearest to $p$; of those equally near
# the first counts. Its embedding shall have the largest inner product with that of $p$:
#
# $$
# y = \operatorname*{arg\,min}_j \lvert p - c_j \rvert^2, \qquad
# \mathcal{L}_{\text{ct}} = -\log \frac{\exp(s \, e_p \cdot e_{c_y})}{\sum_j \exp(s \, e_p \cdot e_{c_j})} .
# $$ (eq-losses-contrastive)
#
# In the package ({func}`sepnb.seqpe.contrastive_loss`), of anchors `[P, D]` and candidates `[P, K, D]`:
#
# ```{literalinclude} ../../sepnb/seqpe/losses.py
# :pyobject: contrastive_loss
# :start-at: scores =
# :dedent:
# ```
#
# By hand, with one column, the anchor 5 and the candidates 9, 3 and 6:
# nearest is 6, the third. The products are 2, 1 and 3 times the anchor's 1.

# %%
anchor, candidates = torch.tensor([5]), torch.tensor([[9, 3, 6]])
e_anchor = torch.tensor([[1.0]], dtype=F64)
e_candidates = torch.tensor([[[2.0], [1.0], [3.0]]], dtype=F64)
by_function = contrastive_loss(e_anchor, e_candidates, anchor, candidates, scale=1.0)
by_hand = -log(exp(3) / (exp(2) + exp(1) + exp(3)))
assert abs(by_function.item() - by_hand) < 1e-12
# The likely mistake: to take the nearest in the order of the numbers, the last below
# the anchor.
assert abs(by_hand - (-log(exp(1) / (exp(2) + exp(1) + exp(3))))) > 1
# Only which one is nearest counts: to move the others further away changes nothing.
further = torch.tensor([[90_000, 0, 6]])
moved = contrastive_loss(e_anchor, e_candidates, anchor, further, scale=1.0)
assert moved == by_function
numbers["by_hand"] = by_hand
print(f"by hand {by_hand:.4f}, by the function {by_function.item():.4f}")

# %% [markdown]
# The last check is a limit of the loss: the *distance* is asked for only through the question which one is nearest. Whether the second nearest is
# one or ten thousand positions further off is nowhere said.
#
# Released, $s = 1$. The products of $D$ columns grow with $D$, and then the loss of an encoder that knows nothing is far above
# $\log K$, the loss of a blind guess. Ours has $s = 1/\sqrt D$ unless told otherwise:

# %%
guess = CandidateSampler((geo.LARGEST,), anchors=16, kinds=(("uniform", 1.0),))
at, around = map(torch.from_numpy, guess.draw(generator_of(seed, "seqpe-fresh")))
by_width = []
for width in (64, 256, 768):
    torch.manual_seed(seed)
    encoder = SequentialPositionEncoder(width=width).eval()  # a head for 64 columns
    with torch.no_grad():
        ours, theirs = encoder(at), encoder(around.flatten(0, 1)).unflatten(0, (16, -1))
    found = [contrastive_loss(ours, theirs, at, around, scale=s) for s in (1.0, None)]
    by_width.append((width, *map(float, found)))
by_width = pd.DataFrame(by_width, columns=["width", "released, s = 1", "ours"])
numbers["guess"] = log(around.shape[1])
numbers["drawn_released_768"] = by_width["released, s = 1"].iloc[-1]
numbers["drawn_ours_768"] = by_width["ours"].iloc[-1]
figures.show_table(
    by_width,
    caption="Contrastive loss of encoders as they are drawn, in nats, with 32 uniform "
    f"candidates; a blind guess costs {numbers['guess']:.2f} (one draw of 16 anchors). "
    "The widest has the width of the released text encoder.",
    formats={"released, s = 1": ".2f", "ours": ".2f"},
)

# %% [markdown]
# ### Which questions are asked?
#
# A loss teaches what it asks for, and what it asks for is decided by the candidates. Released, four anchors in ten draw theirs anywhere, and up to a
# quarter of these are made by *editing the anchor's digits*, kept only if they are farther than the nearest: a numeral that looks alike is never
# the right answer. The other six in ten draw all candidates from one box of neighbouring positions, and the box stands *anywhere*.
# So how near is the right answer?

# %%
sampled = {}
for kind in ("uniform", "edited", "window", "around"):
    sampler = CandidateSampler(
        (geo.LARGEST,), anchors=1_024, kinds=((kind, 1.0),), window=(2 * geo.LENGTH,)
    )
    p, c = sampler.draw(generator_of(seed, "seqpe-fresh"))
    sampled[kind] = np.sort(np.abs(c - p[:, None])[..., 0].min(axis=1))
    numbers[f"median_{kind}"] = float(np.median(sampled[kind]))
    numbers[f"neighbours_{kind}"] = float((sampled[kind] == 1).mean())

# %% tags=["hide-input"]
KINDS = {
    "uniform": ("anywhere", "#6b6f74", shapes.DOTTED),
    "edited": ("anywhere, a quarter edited", "#d55e00", shapes.DASHED),
    "window": ("a box anywhere", "#0072b2", "-"),
    "around": ("a box around the anchor (ours)", "#009e73", "-"),
}
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
    "for four kinds of candidates. A box around the anchor answers within a few "
    "positions; candidates from anywhere within hundreds; a box anywhere within "
    "thousands.",
    caption="How near the right answer is, for 32 candidates below 20,000. Median: "
    f"anywhere {numbers['median_uniform']:.0f}, with edited numerals "
    f"{numbers['median_edited']:.0f}, in a box anywhere "
    f"{numbers['median_window']:.0f}; in a box around the anchor "
    f"{numbers['median_around']:.0f}.",
)

# %% [markdown]
# The right answer is a direct neighbour of the anchor for {num}`14_two_losses/neighbours_uniform:.1%` of the anchors with candidates from
# anywhere and {num}`14_two_losses/neighbours_window:.1%` with a box anywhere. The box knows where it stands and not where the
# anchor stands: its candidates are near *each other*, and that question is which end of the box is nearer. The released losses hardly
# ever ask who stands next to whom. A box *around* the anchor does: {num}`14_two_losses/neighbours_around:.0%`. It is not in the release; here it is an
# ablation.
#
# ## The distillation loss: look as you do at home
#
# The contrastive loss is about pairs. The second loss is about *windows*. Some places $a$ inside the trained window and the same places in a
# window elsewhere, $a + \Delta$, are encoded; within each window and head $h$ all inner products are taken, and each row becomes a
# distribution:
#
# $$
# \begin{gathered}
# P = \operatorname{softmax}_{\text{rows}}\bigl(E_h(a)\, E_h(a)^{\!\top}\bigr), \\
# Q = \operatorname{softmax}_{\text{rows}}\bigl(E_h(a + \Delta)\, E_h(a + \Delta)^{\!\top}\bigr), \\
# \mathcal{L}_{\text{kd}} = \mathrm{KL}(\bar P \,\Vert\, Q) + \mathrm{KL}(Q \,\Vert\, \bar P) .
# \end{gathered}
# $$ (eq-losses-distillation)
#
# The bar stops the gradient: the trained window is the *teacher*, and only the student moves. Every row of $P$ and of $Q$ is a distribution, and a divergence is that of a row; the
# loss is its mean over rows, heads and windows ({func}`sepnb.seqpe.distillation_loss`):
#
# ```{literalinclude} ../../sepnb/seqpe/losses.py
# :pyobject: distillation_loss
# :start-at: heads =
# :dedent:
# ```
#
# What does it see, and what not?


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
    caption="Distillation loss of a student made from its teacher (nats a row): it "
    "depends on the products inside a head, up to one constant for all, and on no "
    "direction.",
    formats={"loss": ".3f"},
)

# %% [markdown]
# The products are *raw*, as released: twice as long is not the same. So the temperature of the softmax is one over the squared length of the embeddings in a head, which nobody sets and
# which training changes. The option `scale=None` divides by the mean squared length of the teacher and puts the scale of attention in its place: stretched together, teacher and student
# pay what they paid before, and a student that alone is longer still pays. It is no default, for a reason that only a training shows, below.

# %%
long = 3 * home, 3 * cases["places in another order"]
short = home, cases["places in another order"]
assert abs(kd(*long, scale=None) - kd(*short, scale=None)) < 1e-12
assert abs(kd(*long) - kd(*short)) > 1e-3  # raw products depend on the length of all
assert kd(home, 2 * home, scale=None) > 1e-3
sharpest = torch.softmax(long[0] @ long[0].T, dim=1).max(dim=1).values
assert sharpest.min() > 0.9  # a row of long vectors says "myself", and little else

# %% [markdown]
# A window far away may lie anywhere in the space, turned as it likes: only what its places are *to each other* counts. That is a limit, too. A score of
# positions reads two maps of the embeddings, $W_q e_p \cdot W_k e_{p'}$, and depends on the direction that this loss ignores:

# %%
w_q, w_k = torch.randn(2, 8, 8, dtype=F64)


def score(e):
    return (e @ w_q.T) @ (e @ w_k.T).T


both_heads = torch.block_diag(turned, turned)
assert kd(home, home @ both_heads) < 1e-12
assert (score(home) - score(home @ both_heads)).abs().max() > 1

# %% [markdown]
# Two things are easy to get wrong. Without the stop-gradient the teacher learns from the student; and the release divides
# by the number of *entries*, $m^2$, where a divergence is a sum over a row, so that its weight of $0.1$ is $0.1/m$ of ours. <!-- given: the released weight -->

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
# And one more, of the schedule: the teacher has to be the window that the model reads. In a *shift step* the model reads a window somewhere
# else, and to distil then would teach the far window to a farther one. Our objective skips the loss in such a step, and refuses a training
# whose shift steps it does not know, one whose texts stand anywhere, and a teacher's window that is longer than the text.
#
# There is a trap for whoever measures it, too. A drawn encoder repeats digits: at a start that is a multiple of a power of ten not below the length of the window
# the low digits run as they do in the trained window.

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
# Before any training the loss is {num}`14_two_losses/drawn_aligned:.3f` at such *aligned* starts and {num}`14_two_losses/drawn_misaligned:.3f` at
# *misaligned* ones beside them. From here on the two are never averaged.
#
# ## A toy training
#
# Now an encoder that has nothing else to learn. A thousand positions, 32 columns, and from the same first weights two trainings
# that differ in the candidates alone: the released mixture, and one where half of the anchors ask in a box around themselves and the other half as released.

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
for name, key in (("released", "released"), ("half around", "around")):
    numbers[f"live_near_{key}"], numbers[f"live_far_{key}"] = orders[name, STEPS]
numbers["live_near_drawn"], numbers["live_far_drawn"] = orders["released", 0]
assert numbers["live_far_released"] > numbers["live_near_released"] + 0.3

# %%
near = normalize(lessons["half around"][STEPS][0], dim=1)
cosines, tens = near @ near.T, NEAR // 10
same = tens[:, None] == tens
apart = ~torch.eye(HOME, dtype=torch.bool)
numbers["live_same_ten"] = cosines[same & apart].mean().item()
numbers["live_other_ten"] = cosines[~same].mean().item()


def signed(value):
    return text_of([value], "+.2f")


# %% tags=["hide-input"]
columns = {
    "as drawn": ("released", 0),
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
    alt="Six heat maps of cosines between embeddings: above of sixty-four neighbouring "
    "positions, below of sixty-four spread over a thousand; as drawn, after training "
    "with the released candidates, and with half of the anchors asking around "
    "themselves. Drawn encoders show a plaid of shared digits.",
    caption=f"What {STEPS} steps make of the space. *Order*: rank correlation of "
    "nearness with the inner product. Released candidates: "
    f"{signed(numbers['live_far_released'])} for spread positions, "
    f"{signed(numbers['live_near_released'])} for neighbours; half around: "
    f"{signed(numbers['live_far_around'])} and {signed(numbers['live_near_around'])}. "
    "As drawn, the plaid is that of shared digits.",
)

# %% [markdown]
# **Whoever asks far orders what is far.** The released candidates order the positions spread over the range ({num}`14_two_losses/live_far_released:+.2f`) and hardly the
# sixty-four neighbours ({num}`14_two_losses/live_near_released:+.2f`). With the box around the anchor it is the other way round: neighbours are at {num}`14_two_losses/live_near_around:+.2f`. There
# positions of the same ten are nearly alike, and those of different tens hardly, which is what the blocks are. Two short trainings of one seed prove nothing; they say where to
# look. So the experiment below looks at both kinds of positions.
#
# Products are one way to ask, and the one in which the losses ask. The other is the distance of two embeddings: $\lVert e - f \rVert^2 = \lVert e \rVert^2 + \lVert f \rVert^2 - 2 \langle e, f \rangle$. Where
# all embeddings are of one length the two say the same.

# %%
near = lessons["released"][STEPS][0].double()
mean, lengths = near.mean(dim=0), near.norm(dim=1)
as_they_are, centred = geometry(near, NEAR), geometry(near - mean, NEAR)
common = mean.square().sum() / near.square().sum(dim=1).mean()
numbers["live_distance_near"] = signed(as_they_are.distance)
numbers["live_near_centred"] = signed(centred.order)
level = geometry(near / lengths[:, None], NEAR)  # of one length each
numbers["live_near_level"] = signed(level.order)
numbers["live_common"] = f"{common:.1%}"
numbers["live_length_spread"] = f"{lengths.std() / lengths.mean():.1%}"
assert as_they_are.distance > as_they_are.order + 0.1
assert min(centred.order, level.order) > as_they_are.order + 0.1
assert abs(centred.distance - as_they_are.distance) < 1e-9

# %% [markdown]
# By distance the sixty-four neighbours, which products order at {num}`14_two_losses/live_near_released:+.2f`, are ordered at {num}`14_two_losses/live_distance_near`. The window has drawn together: one vector, the mean of all, has
# {num}`14_two_losses/live_common` of their squared length. What is left follows the positions; but products see it beside that vector, and small differences in length decide them.
# Brought to one length, or without the mean, which leaves distances what they were, products are ordered as distances are. The records ask for both.
#
# And what has the distillation to go by? Its teacher is the window of neighbours; how much a row of its softmax says is how far it is from uniform, in nats, at most the logarithm of 64.


# %%
def told_by_a_row(e, scale):
    """How far the rows of the distillation's softmax are from uniform, in nats."""
    free = e.shape[1] ** 0.5 / e.square().sum(dim=1).mean()
    rows = ((free if scale is None else scale) * (e @ e.T)).softmax(dim=1)
    return log(len(e)) + float((rows * rows.clamp_min(1e-30).log()).sum(dim=1).mean())


for key, step in (("drawn", 0), ("schooled", STEPS)):
    e = lessons["released"][step][0].double()
    numbers[f"live_norm_{key}"] = float(e.norm(dim=1).mean())
    for form, scale in (("raw", 1.0), ("free", None)):
        numbers[f"live_told_{form}_{key}"] = told_by_a_row(e, scale)
assert numbers["live_told_free_schooled"] < 0.1 * numbers["live_told_raw_schooled"]
assert numbers["live_told_raw_schooled"] < numbers["live_told_raw_drawn"]

# %% [markdown]
# The released losses lengthen the embeddings of the window and make them more alike. Raw, a row of the teacher says {num}`14_two_losses/live_told_raw_drawn:.2f` nats as drawn and
# {num}`14_two_losses/live_told_raw_schooled:.2f` in the end; free of scale it ends at {num}`14_two_losses/live_told_free_schooled:.5f`: flat, and a flat teacher has nothing to teach. Raw rows grow flatter too, but the growing
# length keeps some of what they say. So the released form is the default here, with its dependence on length, and the other is an option. This encoder was trained raw; what comes of
# one that is trained free of scale is a row of the records below.
#
# Go through it yourself. Each point is one of the spread positions in the plane of the first two principal components of the end, coloured by position; the slider
# goes through this toy training with the released candidates, from the encoder as drawn to its last step.

# %% tags=["hide-input"]
last = lessons["released"][STEPS][1]
mean = last.mean(dim=0)
basis = torch.linalg.svd(last - mean).Vh[:2]
basis = basis * torch.where(basis.sum(dim=1, keepdim=True) < 0, -1.0, 1.0)  # one sign
frames = {
    step: ((far - far.mean(dim=0)) @ basis.T).numpy()
    for step, (_, far) in lessons["released"].items()
}
moving = interactive.paths_with_slider(
    frames,
    values=FAR.tolist(),
    labels=[f"position {at}" for at in FAR.tolist()],
    prefix="steps of training: ",
    axis="principal component",
)
interactive.show(
    moving,
    name="plot-losses-school",
    alt="Scatter plot with a slider over steps of training: sixty-four positions "
    "spread over a thousand, joined in order, in the plane of two principal "
    "components. As drawn they are a tangle; in the end they lie along a curve in the "
    "order of positions.",
    instead="the figure of cosines above, left and middle, for how like the same "
    "positions are before and after",
)

# %% [markdown]
# ## The experiment
#
# `seqpe_geometry` trains encoders of 64 columns on positions below 20,000 with a trained window of 128, and looks at each as it was drawn and as it was
# trained, in six kinds of places:
#
# - the trained window;
# - windows elsewhere whose starts keep the low digits as they are in the trained one, *aligned*; and windows beside these, *misaligned*;
# - both again past 20,000, where no loss ever was, *never seen*;
# - 128 positions *spread* over the whole range.
#
# *Order* is the rank correlation above. *Distance* is that of the distance of two positions with the Euclidean distance of their embeddings: of embeddings of one length the two
# say the same. *Adjacency* says how often the largest product is that of a nearest neighbour. *Likeness* is the correlation
# of a window's products with those of the trained window; the *norm* is the mean length of an embedding. The distillation of these trainings takes raw products, as
# released, but for one that is free of scale. Why the alignment? A drawn encoder knows the digits, and windows that share
# all low digits with the trained one look like it before anything is learned. Whoever tests shifts by a round number tests this.

# %% tags=["hide-input"]
sweep = experiments.get("seqpe_geometry").table(profile)
fresh = experiments.get("seqpe_distances").table(profile)
of, there = RunTable(sweep), RunTable(sweep).made
numbers["runs"], numbers["runs_declared"] = len(there), len(sweep)
PLACES = tuple(geo.starts(10))
GROUPS = (*PLACES, geo.SPREAD)
MEASURES = {
    "order": "rank correlation of nearness with the inner product",
    "distance": "rank correlation of distances of positions with those of embeddings",
    "adjacency": "how often the largest product is that of a neighbour",
    "likeness": "correlation of products with those of the trained window",
    "norm": "mean length of an embedding",
}
FORMS = {"adjacency": ".2f", "norm": ".1f"}
says = {"as drawn": (geo.BOTH, "drawn/")}
says |= {method.says: (name, "") for name, method in geo.METHODS.items()}
for measure, about in MEASURES.items():
    form, groups = (
        FORMS.get(measure, "+.2f"),
        PLACES if measure == "likeness" else GROUPS,
    )
    rows = [
        {"encoder": encoder}
        | {g: of.text(name, f"{state}{measure}/{g}", form) for g in groups}
        for encoder, (name, state) in says.items()
    ]
    caption = f"{measure.capitalize()}: {about}; mean over seeds and 95 % t interval."
    figures.show_table(pd.DataFrame(rows), caption=caption)
figures.provenance(sweep)

# %% tags=["hide-input"]
LOOKS = {
    geo.BOTH: figures.Method("both", "#0072b2", marker="o"),
    "contrastive": figures.Method("contrastive alone", "#d55e00", marker="s"),
    "distillation": figures.Method("distillation alone", "#009e73", marker="^"),
    "around": figures.Method("half around", "#cc79a7", marker="D"),
}
DRAWN = figures.Method("as drawn", figures.FAINT, marker="o", filled=False)


def rows_of_seeds(ax, measure, groups):
    """A row a group and variant: the drawn encoder above, then the trained ones."""
    ax.axvline(0, color=figures.FAINT, linewidth=0.8)
    for place, group in enumerate(reversed(groups)):
        column, how = f"{measure}/{group}", {"size": 5, "labelled": place == 0}
        values = of.values(geo.BOTH, f"drawn/{column}")
        figures.seed_row(ax, place + 0.32, values, DRAWN, **how)
        for number, (variant, look) in enumerate(LOOKS.items()):
            height, values = place + 0.16 - 0.16 * number, of.values(variant, column)
            figures.seed_row(ax, height, values, look, **how)
    ax.set_yticks(range(len(groups)), list(reversed(groups)))
    ax.set_ylim(-0.6, len(groups) - 0.4)


# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(8.6, 5.0))
rows_of_seeds(axes[0], "order", GROUPS)
rows_of_seeds(axes[1], "likeness", PLACES[1:])
axes[0].set(xlabel="order", title="near is alike?")
axes[1].set(xlabel="likeness to the trained window", title="as at home?")
if there.empty:
    for ax in axes:
        figures.not_run(ax)
else:
    entries = axes[0].get_legend_handles_labels()
    fig.legend(*entries, loc="outside upper center", ncols=5, fontsize=8.5)
far, near = (
    [of.text(v, f"order/{group}", "+.2f") for v in (geo.BOTH, "around")]
    for group in ("spread", "misaligned")
)
figures.show(
    fig,
    name="fig-losses-records",
    alt="Dot plots. Left, the order of embeddings for the encoder as drawn and four "
    "trainings, in six groups of positions. Right, the likeness to "
    "the trained window in four groups. Every seed a tick.",
    caption="What the losses make of the space. With both losses the order of spread "
    f"positions is {far[0]}, that of neighbours in misaligned windows {near[0]}; with "
    f"half of the anchors asking around themselves {far[1]} and {near[1]}.",
)
figures.provenance(sweep)

# %% tags=["hide-input"]
TABLES = {"experiment/seqpe_geometry": sweep, "experiment/seqpe_distances": fresh}
IDS = [one.id for one in claims.CLAIMS if set(one.needs) <= set(TABLES)]
numbers |= claims.show(
    claims.judge(IDS, TABLES),
    caption="The claims of this chapter, judged by rules written beforehand; the two "
    "on distances after seeds 1 to 6 were seen, and judged on seeds 7 to 12.",
)
figures.provenance(fresh)

# %% [markdown]
# {num}`14_two_losses/runs` of {num}`14_two_losses/runs_declared` runs are there.
#
# **The losses order what is far apart, not neighbours.** With both losses spread positions have an order of
# {num}`seqpe_geometry/both/order/spread:+.2f±` (drawn {num}`seqpe_geometry/both/drawn/order/spread:+.2f±`), neighbours in misaligned windows one of
# {num}`seqpe_geometry/both/order/misaligned:+.2f±`. The contrastive loss alone does as much. In the *trained* window, where texts will be read, both losses leave next to no order, less than
# as drawn.
#
# **The candidates decide.** With half of the anchors asking around themselves spread positions have an order of only {num}`seqpe_geometry/around/order/spread:+.2f±`, no more than with the distillation
# alone, which has no candidates; the trained window has one of {num}`seqpe_geometry/around/order/trained:+.2f±`.
#
# **Distances are ordered where products are not.** With both losses the order of distances in the trained window is {num}`seqpe_geometry/both/distance/trained:+.2f±` (drawn
# {num}`seqpe_geometry/both/drawn/distance/trained:+.2f±`). In a window products and distances part, as in the toy training above. Binary digits win every column of the table, with
# {num}`seqpe_geometry/base-2/distance/trained:+.2f±` there; no rule asked which base is best.
#
# No rule asked for distances when this was seen; the two that do now are judged on seeds that were drawn and trained after. There both losses reach
# {num}`seqpe_distances/both/distance/trained:+.2f±` in the trained window, the contrastive loss alone {num}`seqpe_distances/contrastive/distance/trained:+.2f±`, the distillation alone
# {num}`seqpe_distances/distillation/distance/trained:+.2f±`.
#
# **What looks like the trained window does so before training.** As drawn, aligned windows have a likeness of {num}`seqpe_geometry/both/drawn/likeness/aligned:+.2f±` to the trained one and misaligned windows
# {num}`seqpe_geometry/both/drawn/likeness/misaligned:+.2f±`. Both losses change the latter by {num}`seqpe_geometry/both/likeness/misaligned minus drawn/likeness/misaligned:+.2f±`.
#
# The distillation alone, whose purpose likeness is, changes it by {num}`seqpe_geometry/distillation/likeness/misaligned minus drawn/likeness/misaligned:+.2f±`; only with half of the anchors asking around
# themselves does it grow, by {num}`seqpe_geometry/around/likeness/misaligned minus drawn/likeness/misaligned:+.2f±`. Free of scale the distillation does no better.
#
# **The contrastive loss makes embeddings long.** In the trained window they have a length of {num}`seqpe_geometry/both/drawn/norm/trained:.1f±` as drawn and {num}`seqpe_geometry/both/norm/trained:.1f±` after both
# losses; the distillation alone shortens them. The distillation takes raw products, so that the square of this length is the inverse temperature of its softmax. Longer embeddings need not
# make sharper rows: in the toy training above they grew flatter, because the window's embeddings became alike. What a flat teacher does to the distillation these records cannot tell.
#
# **Neighbours are hardly found.** In misaligned windows the largest product is that of a neighbour for {num}`seqpe_geometry/both/adjacency/misaligned:.2f±` of the positions with the released candidates, and
# for {num}`seqpe_geometry/around/adjacency/misaligned:.2f±` with half of them around the anchor; by chance for 2 in 127.
#
# ## Takeaways
#
# 1. **The contrastive loss asks one question**, which candidate is nearest, and what is learned hangs on the candidates. The two losses order far positions
#    (*{num}`14_two_losses/verdict_the_losses_order_far_positions`*). Whether they order those of a window is *{num}`14_two_losses/verdict_the_losses_order_positions`*, and so is whether neighbours are
#    distinguished better where they are asked for (*{num}`14_two_losses/verdict_neighbours_are_hardly_asked_for`*).
# 2. **Alike by what?** The distances of embeddings in a window are another matter than their products, which the common part of all of them decides. Both losses order distances
#    (*{num}`14_two_losses/verdict_the_losses_order_distances`*), and it is the contrast that does, as the abstract has it (*{num}`14_two_losses/verdict_the_contrast_aligns_distances`*). Binary digits order them best.
# 3. **The distillation compares windows**, each head's products up to one constant, and no direction. Whether it is what repeats the trained window elsewhere is
#    *{num}`14_two_losses/verdict_distillation_carries_the_geometry`*; whether the contrast alone orders products, *{num}`14_two_losses/verdict_contrast_alone_orders_positions`*.
# 4. **Shared digits look like geometry** (*{num}`14_two_losses/verdict_shared_digits_look_like_geometry`*). A shift by a round number tests them, and not what was
#    learned. An untrained encoder belongs in every such figure.
# 5. Whether what was taught holds past the largest position that any loss saw is *{num}`14_two_losses/verdict_the_geometry_reaches_positions_never_seen`*: too little was learned that could reach further.
#
# **Limits.** What *shift steps* do needs a text to shift: their ablation is in {doc}`chapter 16 <16_seqpe_stream>`, digit strings with them and without. The two losses are alone here. Beside a task, whose gradient reaches the encoder through the scores, another balance may come out, and
# a longer training may order neighbours after all. One width, one rate, one schedule for all variants; base and digits are compared at one size.
# Inner products inside a window are what both losses are about; a score reads them through maps, and whether a model listens is another question.
#
# **What would change our mind.** Of each verdict above, records that turn it: an order of neighbours in the *trained* window more than a tenth above the drawn one; a
# likeness in misaligned windows more than a tenth higher with the distillation than without.
#
# ## Exercises
#
# Try each before you unfold its solution; every solution ends with a check that fails if it is wrong.
#
# **1. (easy)** All candidates are equally far from the anchor. What is the loss of an encoder whose products are all equal, and does a larger $s$ change it?

# %% tags=["hide-cell"]
# A blind guess among K, whatever s: log K. The first of the equally near counts as the
# right answer.
k = 7
same = torch.ones(1, k, 3, dtype=F64)
for s in (0.1, 1.0, 10.0):
    at, others = torch.tensor([4]), torch.tensor([[3, 5] + [3] * (k - 2)])
    loss = contrastive_loss(same[:, 0], same, at, others, scale=s)
    assert abs(loss.item() - log(k)) < 1e-12

# %% [markdown]
# **2. (medium)** Give embeddings of two columns for which the contrastive loss can be made as small as you like, whichever candidate is nearest, as long as no two are
# equally near. Can you do it with one column, $e_p = c \cdot p$?

# %% tags=["hide-cell"]
# Not with c p: the product of the anchor with the largest candidate is the largest,
# near or not. On a circle it works: the cosine of
# the angle between two positions falls with their distance, as long as all lie within
# half a turn, and a long enough radius makes the softmax as sharp as one likes.
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
# **3. (medium)** The teacher is the trained window. What does the distillation teach if the embeddings of the trained window are all the same vector?

# %% tags=["hide-cell"]
# That every window be uniform: the rows of the teacher are 1/m. A student pays unless
# its products in a row are equal too,
# and a student that knows all positions apart is pulled towards knowing none.
blind = torch.ones(1, 6, 6, dtype=F64)
knowing = 3 * torch.eye(6, dtype=F64)[None]
assert torch.pdist(knowing[0]).min() > 1
assert distillation_loss(blind, blind * 2, 1) < 1e-12  # longer, and still all alike
assert distillation_loss(blind, knowing, 1) > 1

# %% [markdown]
# **4. (hard)** Let the embeddings of all positions be turned by one orthogonal matrix that keeps heads apart. Which of the two losses changes? And if
# every window has its own matrix?

# %% tags=["hide-cell"]
# By one matrix for all no inner product changes, and neither loss does. By one of its
# own in each window the products across windows
# change, and with them the contrastive loss, whose candidates may lie in another window
# than the anchor; the distillation never asks across.
e, c = torch.randn(8, 8, dtype=F64), torch.randn(8, 15, 8, dtype=F64)
at, at_c = torch.arange(8), (7 * torch.arange(15)).expand(8, -1)
plain = contrastive_loss(e, c, at, at_c)
assert abs(contrastive_loss(e @ both_heads, c @ both_heads, at, at_c) - plain) < 1e-12
assert abs(contrastive_loss(e @ both_heads, c, at, at_c) - plain) > 1e-3
assert distillation_loss(e[None], (e @ both_heads)[None], 2) < 1e-12

# %% [markdown]
# **5. (hard)** Aligned starts keep the low digits. For base 16 and a window of 128, what is the smallest shift that does so, and is a shift of $1{,}000$ aligned?

# %% tags=["hide-cell"]
# The smallest power of the base that holds the window: 256. 1,000 = 3 * 256 + 232 is
# not a multiple of it.
groups = geo.starts(16)
assert all(start % 256 == 0 for start in groups["aligned"]) and 1_000 % 256 == 232
torch.manual_seed(seed)
drawn = SequentialPositionEncoder(width=64, heads=2, base=16).eval()
window = torch.arange(geo.LENGTH)
with torch.no_grad():
    own = drawn(window)
    alike = {shift: likeness(own, drawn(window + shift)) for shift in (1_024, 1_000)}
assert alike[1_024] > alike[1_000]

# %% tags=["hide-cell"]
chapter_numbers.publish("14_two_losses", numbers, profile=profile)

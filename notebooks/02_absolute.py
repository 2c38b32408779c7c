# %% [markdown]
# # 2. Absolute positions: waves and tables
#
# **Finding.** The sinusoid of an index is a vector of sines and cosines. Moving $c$ places on multiplies it by one matrix, the same at
# every index. So a head that has learned the right matrix can look five tokens back from any position ({numref}`fig-absolute-scores`, with
# $R_{-5}$). With a random matrix $A$ the distance explains only {num}`02_absolute/distance_share_random:.0%` of the variance of the scores.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import math

import matplotlib.pyplot as plt
import mpmath
import numpy as np
import pandas as pd
import torch

from sepnb import experiments
from sepnb.data import text
from sepnb.encodings import Learned, sinusoidal
from sepnb.evaluation import evaluate
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.plots import figures, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train

figures.use_style()
# The profile chooses sizes; every profile runs the same code.
n_steps = {"smoke": 300, "laptop": 300, "gpu": 600}[profile]
d, base, F64 = 64, 10_000.0, torch.float64
generator = torch.Generator().manual_seed(seed)
numbers = {}


def code(positions, dim=d, layout="interleaved"):
    """The sinusoid in float64, so that "equal" can mean "equal to rounding"."""
    return sinusoidal(positions, dim, layout=layout, dtype=F64)


# %% tags=["hide-input"]
def shift_matrix(c, dim=d):
    """The rotation by c positions for rows on the left, layout "interleaved"."""
    angles = c * base ** (-2 * torch.arange(dim // 2, dtype=F64) / dim)
    turns = torch.stack([angles.cos(), -angles.sin(), angles.sin(), angles.cos()])
    return torch.block_diag(*turns.T.reshape(-1, 2, 2))


places = code(torch.arange(64))
drawn = 0.02 * torch.randn(512, d, generator=generator, dtype=F64)  # for later
mixed = torch.randn(d, d, generator=generator, dtype=F64) / d**0.5
maps = {
    "$p_i \\cdot p_j$": torch.eye(d, dtype=F64),
    "$p_i\\, R_{-5}\\, p_j^\\top$": shift_matrix(-5),
    "$p_i\\, A\\, p_j^\\top$, $A$ random": mixed,
}
scores = {name: places @ matrix @ places.T for name, matrix in maps.items()}


def from_distance(scores):
    """Share of the variance of scores [N, N] that a function of i - j explains."""
    n = len(scores)
    means = torch.stack([scores.diagonal(k).mean() for k in range(1 - n, n)])
    at = torch.arange(n)
    fitted = means[at - at[:, None] + n - 1]
    spread = (scores - scores.mean()).square().sum()
    return 1 - ((scores - fitted).square().sum() / spread).item()


numbers["distance_share_random"] = from_distance(list(scores.values())[2])

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 3, figsize=(8.4, 3.5), sharey=True)
for ax, (name, values) in zip(axes, scores.items(), strict=True):
    shapes.heat_map(ax, values)
    share = max(0.0, from_distance(values))
    ax.set_title(f"{name}\ndistance explains {share:.0%}", loc="center", fontsize=10)
    ax.set(xlabel="key $j$", xticks=[0, 32], yticks=[0, 32, 63])
axes[0].set_ylabel("query $i$")
figures.show(
    fig,
    name="fig-absolute-scores",
    alt="Three heat maps of scores for 64 queries and keys. The first two are made of "
    "parallel diagonals, darkest on the main diagonal and on the one five to its "
    "left. The third is a patchwork without diagonals.",
    caption="Scores between sinusoids, dark where they are high. The plain dot "
    "product depends on the distance alone. With the fixed rotation $R_{-5}$ "
    "in between, a query looks five tokens back. With a random matrix $A$ the "
    f"distance explains {numbers['distance_share_random']:.0%} of the variance.",
)

# %% [markdown]
# > **Question.** What does a position embedding say about places and distances? And is it enough to add it once?
#
# {doc}`Chapter 1 <01_order>` ended with four sites at which position can enter a transformer. The oldest is the input: a vector $p_i$
# that depends only on the index is added to the embedding of the token,
#
# $$
# x_i = p_i + s_t .
# $$ (eq-absolute-added)
#
# The vector comes either from a formula, sines and cosines of the index {cite:p}`vaswani2017`, or from a table of trained rows
# {cite:p}`gehring2017,devlin2019`. People say that the formula contains relative positions too, because a shift is a linear map. That is
# true, but a model still has to learn to use it.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 20 s of one CPU core, most of it for one tiny training; no GPU is used, nothing is downloaded. Memory:
#   under 1 GB. The records shown at the end: `sepnb run ablation_sweep ablation` and `sepnb run encoding_screen encodings`.
# - **You need**: {doc}`chapter 1 <01_order>`; the addition theorems of sine and cosine.
# - **You will learn**: why a shift is a rotation, and how a head can ask for "five back"; where float32 and bfloat16 lose count; which rows
#   of a table learn.
# - **Claims tested**: one claim of the notes among our sources, with runs of {doc}`chapter 11 <11_language_model>`.
# ```
#
# ## An embedding made of waves
#
# A binary number is a row of digits, each of which changes at its own pace. The {term}`sinusoidal encoding` does the same with waves.
# Each pair $m$ of columns holds the sine and the cosine of the index at its own frequency,
#
# $$
# \begin{aligned}
# p_i[2m] &= \sin(i\, w_m), & p_i[2m+1] &= \cos(i\, w_m), \\
# w_m &= b^{-2m/D}, & m &= 0, \dots, D/2 - 1 ,
# \end{aligned}
# $$ (eq-absolute-sinusoid)
#
# with $b = 10{,}000$. The wavelengths go from $2\pi$ tokens to $2\pi b^{1-2/D}$, which is about 47,000 tokens for $D = 64$. The package
# computes frequencies and embedding as follows, and a double loop checks the result.
#
# ```{literalinclude} ../../sepnb/encodings/sinusoidal.py
# :pyobject: _frequencies
# :start-at: step =
# :dedent:
# ```
#
# ```{literalinclude} ../../sepnb/encodings/sinusoidal.py
# :pyobject: _embedding
# :start-at: angles =
# :dedent:
# ```


# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.4, 3.2))
image = shapes.heat_map(ax, code(torch.arange(128)).T, reach=1, aspect="auto")
ax.set(xlabel="index $i$", ylabel="column", yticks=[0, 16, 32, 48, 63])
fig.colorbar(image, ax=ax, label="entry", ticks=[-1, 0, 1])
wavelength = 2 * np.pi * base ** (2 * np.arange(d // 2) / d)
figures.show(
    fig,
    name="fig-absolute-code",
    alt="Heat map of the sinusoid, 64 columns over 128 indices. The upper columns "
    "flicker, and further down the stripes become broader. In the lower half, columns "
    "that are nearly zero alternate with columns that are nearly one.",
    caption="The sinusoids of the first 128 indices. Fast columns distinguish "
    "neighbours but soon repeat. Slow columns distinguish the places where the fast "
    f"ones repeat. {(wavelength > 128).sum()} of {d // 2} pairs have waves "
    "longer than the figure.",
)

# %% [markdown]
# ### Does every index have its own embedding?
#
# Yes. Two indices with the same sine and cosine in the first pair would differ by a multiple of $2\pi$, and 0 is the only integer that is
# such a multiple. But how close do the two most similar embeddings come?

# %%
first = torch.arange(2048)
rows = []
for width in (2, 4, 8, 16, 64):
    codes = code(first, width)
    apart = torch.cdist(codes, codes).fill_diagonal_(math.inf)
    pair = divmod(int(apart.argmin()), len(first))
    rows.append(
        {
            "columns": width,
            "nearest two": f"{pair[0]} and {pair[1]}",
            "distance": apart.min().item(),
            "embeddings in bfloat16": len(codes.bfloat16().unique(dim=0)),
            "indices in bfloat16": len(code(first.bfloat16(), width).unique(dim=0)),
        }
    )
near = pd.DataFrame(rows)
figures.show_table(
    near,
    caption="The two most similar embeddings among the first 2048 indices. The last "
    "two columns count how many different embeddings are left when the embeddings are "
    "rounded to bfloat16, and when the indices are rounded first.",
    formats={"distance": ".2g"},
)
numbers["nearest_2_columns"] = near.distance[0]
numbers["nearest_64_columns"] = near.distance.iloc[-1]
numbers["distinct_indices_bf16"] = int(near["indices in bfloat16"].iloc[-1])
assert near.distance[0] < 1e-4 and near.distance.iloc[-1] > 1
assert abs(710 - 113 * 2 * math.pi) < 1e-4, "710 tokens are 113 turns, almost"
assert near["embeddings in bfloat16"].iloc[-1] == len(first), "all are different"

# %% [markdown]
# With two columns, the embeddings of indices 710 apart nearly coincide, at a distance of {num}`02_absolute/nearest_2_columns:.0e`, because
# the wave of $2\pi$ makes almost exactly 113 turns between them. With $D = 64$ the nearest two are neighbours, at a distance of
# {num}`02_absolute/nearest_64_columns:.2f`, and even bfloat16 can distinguish those. But bfloat16 cannot *count*: if the indices are
# rounded first, only {num}`02_absolute/distinct_indices_bf16` of 2048 embeddings are left.
#
# ### Three functions, one name
#
# Public code disagrees on the order of the columns, and sometimes on the frequencies. *Interleaved* is {eq}`eq-absolute-sinusoid`. *Halves*
# puts all sines before all cosines. A third convention, *halves, endpoint*, orders the columns in the same way but uses another grid of
# frequencies, $w_m = b^{-m/(D/2 - 1)}$, which ends at exactly $1/b$.

# %%
layouts = ("interleaved", "halves", "halves-endpoint")
one = {layout: code(torch.arange(200), layout=layout) for layout in layouts}
sines_first = torch.cat([torch.arange(0, d, 2), torch.arange(1, d, 2)])
assert torch.equal(one["interleaved"][:, sines_first], one["halves"])
assert not torch.allclose(one["interleaved"], one["halves"])
slowest = torch.asin(one["halves-endpoint"][1, d // 2 - 1])
assert abs(slowest - 1 / base) < 1e-12, "the last frequency is 1/b itself"
gram = {layout: codes @ codes.T for layout, codes in one.items()}
torch.testing.assert_close(gram["halves"], gram["interleaved"], rtol=0, atol=1e-12)
difference = (gram["halves-endpoint"] - gram["interleaved"]).abs().max().item()
assert difference > 1
numbers["endpoint_gram_difference"] = difference
print(f"{difference:.1f} of {d // 2}")

# %% [markdown]
# The first two differ only by a permutation of the columns. The third is a different function: its dot products differ too, by up to
# {num}`02_absolute/endpoint_gram_difference:.1f`. If you train a model with one layout and run it with another, nothing raises an error.
#
# ## A shift is a rotation
#
# The notes among our sources say that for any fixed offset, the encoding at the shifted position "can be obtained through linear
# projection" of the encoding at the original position. The addition theorems show it. For pair $m$,
#
# $$
# \begin{aligned}
# &\bigl( \sin (i{+}c) w_m,\; \cos (i{+}c) w_m \bigr) \\
# &\qquad = \bigl( \sin i w_m,\; \cos i w_m \bigr)
# \begin{pmatrix} \cos c\, w_m & -\sin c\, w_m \\ \sin c\, w_m & \cos c\, w_m \end{pmatrix} .
# \end{aligned}
# $$ (eq-absolute-pair)
#
# The matrix on the right turns the plane by the angle $c\, w_m$. It contains the offset $c$ but not the index $i$. Put one such matrix
# for each pair along a diagonal and call the result $R_c$. Then the same map moves every embedding $c$ places on:
#
# $$
# p_{i+c} = p_i\, R_c \qquad \text{for all } i .
# $$ (eq-absolute-shift)
#
# This is more than a projection: $R_c$ keeps lengths, and $R_{-c}$ undoes it.


# %%
def shift_error(c, layout="interleaved", matrix=None):
    """Largest entry of |p_{i+c} - p_i R_c| over 300 indices."""
    at = torch.arange(50, 350)
    moved = code(at, layout=layout) @ (shift_matrix(c) if matrix is None else matrix)
    return (code(at + c, layout=layout) - moved).abs().max().item()


turned_by_7 = [[math.cos(7), -math.sin(7)], [math.sin(7), math.cos(7)]]
turned_by_7 = torch.tensor(turned_by_7, dtype=F64)
torch.testing.assert_close(shift_matrix(7)[:2, :2], turned_by_7)
numbers["shift_error"] = max(shift_error(c) for c in (-50, -7, 0, 1, 33, 1000))
numbers["shift_error_layout"] = shift_error(7, layout="halves")
numbers["shift_error_direction"] = shift_error(7, matrix=shift_matrix(7).T)
assert numbers["shift_error"] < 1e-12
assert min(numbers["shift_error_layout"], numbers["shift_error_direction"]) > 0.1
assert shift_error(7, layout="halves-endpoint") > 0.1
torch.testing.assert_close(shift_matrix(3) @ shift_matrix(4), shift_matrix(7))

# %% [markdown]
# The error of {eq}`eq-absolute-shift` is {num}`02_absolute/shift_error:.0e`. With the wrong layout it is
# {num}`02_absolute/shift_error_layout:.1f`, and with the transposed matrix, which turns back,
# {num}`02_absolute/shift_error_direction:.1f`. A check that only compares the lengths of the vectors would notice neither mistake.
#
# Does *any* embedding have this property? Take 512 random rows, like a table before training, and fit the best matrix that takes each
# row to the next.


# %%
def unexplained(rows):
    """Share of the squares of rows i + 1 that no linear map of rows i gives."""
    here, following = rows[:-1], rows[1:]
    best = torch.linalg.lstsq(here, following, driver="gelsd").solution
    return ((following - here @ best).square().sum() / following.square().sum()).item()


numbers["unexplained_random"] = unexplained(drawn)
assert unexplained(code(torch.arange(512))) < 1e-12, "the sinusoid is explained whole"
assert numbers["unexplained_random"] > 0.5

# %% [markdown]
# No: {num}`02_absolute/unexplained_random:.0%` of the sum of squares remains unexplained, and the rest is noise that a matrix of
# $64 \times 64$ numbers can fit. Waves have this property, and random rows do not.
#
# ## What a dot product says about the distance
#
# Attention compares vectors by their dot products. For two sinusoids, the products of sines and cosines add up to
#
# $$
# p_i \cdot p_j = \sum_{m=0}^{D/2-1} \cos\bigl( (i - j)\, w_m \bigr) :
# $$ (eq-absolute-dot)
#
# a function of the distance, the same everywhere in the text. The dot product cannot tell left from right, because the cosine is even. Nor
# does it say *how far*, because it falls at first and then goes up and down.

# %%
distance, there = torch.arange(0, 257), torch.tensor([1000])


def dot(dim, layout="interleaved"):
    """The sinusoid of 1000 with those before it, over D/2."""
    with_all = code(there, dim, layout) @ code(1000 - distance, dim, layout).T
    return (with_all / (dim // 2))[0]


dots = {f"{dim} columns": dot(dim) for dim in (16, 64, 512)}
dots["64, endpoint"] = dot(64, "halves-endpoint")
w = base ** (-2 * torch.arange(d // 2, dtype=F64) / d)
by_equation = torch.cos(distance[:, None] * w).mean(dim=-1)
torch.testing.assert_close(dots["64 columns"], by_equation, rtol=0, atol=1e-12)
after = code(there) @ code(1000 + distance).T / (d // 2)
torch.testing.assert_close(after[0], by_equation, rtol=0, atol=1e-12)  # left = right
assert int((256 * w < 0.5).sum()) == 10, "the pairs that have hardly turned"
rises = torch.nonzero(dots["64 columns"].diff() > 0)
numbers["dot_rises_at"] = int(rises[0]) + 1
numbers["dot_at_256"] = dots["64 columns"][-1].item()

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.5))
looks = ("#009e73", "", (0, (7, 1.5, 1, 1.5))), ("#e69f00", "", "-")
looks += ("#0072b2", "", shapes.DOTTED), ("#b3364f", "", shapes.DASHED)
shapes.curves(ax, distance, dots, looks, linewidth=1.4)
ax.axhline(0, color=figures.FAINT, linewidth=0.8)
ax.set(xlabel="distance $|i - j|$ (tokens)", ylabel="$p_i \\cdot p_j$ over $D/2$")
ax.set(xlim=(0, 256))
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-absolute-dot",
    alt="Dot product of two sinusoids over their distance to 256, for four kinds. All "
    "start at one, fall steeply within three tokens and then decline slowly, with "
    "ripples: large ones with 16 columns, smaller ones with 64, hardly any with 512.",
    caption="The dot product of two sinusoids depends only on their distance. With 64 "
    f"columns it falls steeply at first, but from distance {numbers['dot_rises_at']} "
    "on it also rises in places, so that one value belongs to several distances.",
)

# %% [markdown]
# With 64 columns the curve stops falling steadily at distance {num}`02_absolute/dot_rises_at`. At 256 it is still
# {num}`02_absolute/dot_at_256:.2f`, because ten of the 32 pairs have hardly turned.
#
# ### How a head can ask for "five back"
#
# Attention puts a learned matrix between two embeddings, $p_i W_Q W_K^\top p_j^\top$. Suppose it learns $W_Q W_K^\top = R_{-c}$. By
# {eq}`eq-absolute-shift`, $p_i R_{-c} = p_{i-c}$, so
#
# $$
# p_i\, R_{-c}\, p_j^\top = p_{i-c} \cdot p_j = \sum_m \cos\bigl( (i - j - c)\, w_m \bigr) ,
# $$ (eq-absolute-back)
#
# which is largest at $j = i - c$, wherever the query is ({numref}`fig-absolute-scores`, middle). In this sense the encoding "encodes
# both the absolute position of a token, and its position relative to other tokens": relative positions are *one matrix away*. With
# almost any other matrix, though, the scores depend on both indices.

# %%
plain, back, random = (from_distance(one) for one in scores.values())
assert abs(plain - 1) < 1e-12 and abs(back - 1) < 1e-12 and random < 0.9
asked = places @ shift_matrix(-5) @ places.T
assert torch.equal(asked[5:].argmax(dim=1), torch.arange(59)), "always five back"
wrong = places @ shift_matrix(5) @ places.T
assert not torch.equal(wrong[5:].argmax(dim=1), torch.arange(59))

# %% [markdown]
# In a model the position embedding never comes alone. The score of two tokens has three more terms, which contain content. The
# {doc}`next chapter <03_relative>` takes them apart.
#
# ## Far out, the arithmetic fails first
#
# The formula holds for any index, but float32 knows an angle of $10^6$ only to within $0.03$, and its sine and cosine no better.
# `sinusoidal` computes angles in float64 and rounds at the end. We compare both with an independent library of arbitrary precision.

# %%
mpmath.mp.dps = 60
powers = [10**n for n in range(1, 9)]
exact_w = [mpmath.mpf(10) ** (mpmath.mpf(-8 * m) / d) for m in range(d // 2)]


def exact(i):
    """The sinusoid of index i from sixty digits, interleaved."""
    both = [f(i * w) for w in exact_w for f in (mpmath.sin, mpmath.cos)]
    return torch.tensor([float(x) for x in both], dtype=F64)


def in_float32(i):
    """What NOT to do: angles in float32."""
    angle = torch.tensor(float(i)) * (base ** (-2 * torch.arange(d // 2) / d)).float()
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten().double()


def error(make):
    return [(make(i) - exact(i)).abs().max().item() for i in powers]


errors = {
    "angles in float32": error(in_float32),
    "ours, as float32": error(lambda i: sinusoidal(torch.tensor(i), d).double()),
    "ours, as float64": error(lambda i: code(torch.tensor(i))),
}
numbers["float32_error_1e6"] = errors["angles in float32"][5]
numbers["ours_error_1e6"] = errors["ours, as float32"][5]
assert max(errors["ours, as float32"]) < 1e-7 and max(errors["ours, as float64"]) < 1e-7
assert numbers["float32_error_1e6"] > 1e-3

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.1))
looks = ("#b3364f", "s", "-"), ("#e69f00", "o", shapes.DASHED), ("#0072b2", "^", "-")
shapes.curves(ax, powers, errors, looks)
ax.set(xscale="log", yscale="log", xlabel="index", ylabel="largest error of an entry")
figures.label_lines(ax)
figures.show(
    fig,
    name="fig-absolute-precision",
    alt="Largest error of a sinusoid against the index from ten to ten to the eight, "
    "both axes logarithmic. With angles in float32 "
    "it rises to order one. Rounded at the end it stays near three times ten to the "
    "minus eight. In float64 it stays below that.",
    caption="Angles in float32 lose one digit for each digit of the index, and at a "
    "hundred million nothing is left. With angles in float64 the sinusoid is right to "
    "the last digit of float32 at all these indices.",
)

# %% [markdown]
# At index $10^6$ the error is {num}`02_absolute/float32_error_1e6:.3f` with angles in float32 and {num}`02_absolute/ours_error_1e6:.0e`
# with ours. This matters, because the book asks models about indices up to a million.
#
# ## A table of rows
#
# The other kind of embedding needs no formula. A {term}`learned encoding` is a matrix of $L$ rows, drawn from
# $\mathcal{N}(0, 0.02^2)$ and trained like any other weight. The embedding of index $i$ is row $i$. Three things follow.
#
# **It ends.** Row $L$ does not exist, so a program that asks for it must get an error.

# %%
L, short = 64, 48
torch.manual_seed(seed)
config = TransformerConfig(Streams.dense(d), 2, 2, "learned", max_length=L)
model = LanguageModel(config).to(device)
rows_of = next(p for name, p in model.named_parameters() if name.endswith("table"))
before = rows_of.detach().clone()
assert tuple(rows_of.shape) == (L, d) and abs(before.std() / 0.02 - 1) < 0.05
tokens = torch.randint(256, (2, 1), generator=generator).to(device)
model(tokens, torch.tensor([L - 1], device=device))  # the last row is there
try:
    model(tokens, torch.tensor([L], device=device))
    raise AssertionError("row L was given")
except ValueError as refused:
    print(refused)

# %% [markdown]
# **It begins almost silent.** The root mean square of a fresh row is 0.02. <!-- given: how the table is drawn --> That of a
# sinusoid is {num}`02_absolute/rms_sinusoid:.2f`, and that of a token's embedding here is {num}`02_absolute/rms_token:.2f`.
# {doc}`Chapter 11 <11_language_model>` measures what so loud a sinusoid can spoil.
#
# **Only the rows in use learn.** Row $i$ gets its gradient from the tokens at index $i$ and from nothing else. We let the model read tokens
# at four indices and look where the gradient arrives.

# %%
numbers["rms_sinusoid"] = code(torch.arange(L)).square().mean().sqrt().item()
numbers["rms_token"] = model.embedding.weight.square().mean().sqrt().item()
at = torch.tensor([3, 9, 10, 40], device=device)
tokens = torch.randint(256, (2, 4), generator=generator).to(device)
model(tokens, at).square().mean().backward()
reached = torch.nonzero(rows_of.grad.abs().sum(dim=1)).flatten()
print("asked for", at.tolist(), " gradient in", reached.tolist())
assert torch.equal(reached, at)
model.zero_grad()

# %% [markdown]
# ### Rows that never learn
#
# So what happens to a table of 64 rows when no training text is longer than 48? We train one tiny model here, on the Python sources of
# a library that PyTorch installs.

# %%
library = text.load("sympy")
order = {"batch_size": 8, "length": short, "seed": seed, "steps": n_steps}
batches = text.sample_batches(library.train, **order)
train(model, batches, TrainingConfig(n_steps, 8, short, 4e-3), device=device)
model.eval().requires_grad_(False)
trained = rows_of.detach().cpu().clone()
same = (trained == before.cpu()).all(dim=1)
print("rows that are bit for bit what they were:", torch.nonzero(same).flatten())
assert torch.equal(same, torch.arange(L) >= short)
numbers["norm_fresh"] = before.norm(dim=1).mean().item()
numbers["norm_trained"] = trained[:short].norm(dim=1).mean().item()

# %%
held_out = text.windows(library.validation, length=L, per_document=4 * L).tokens
bits = evaluate(model, held_out, device=device).bits.mean(axis=0)  # [L]
numbers["bits_last_trained"] = bits[short - 16 : short].mean()
numbers["bits_untrained"] = bits[short:].mean()
rows_of.zero_()
silent = evaluate(model, held_out, device=device).bits.mean(axis=0)
rows_of.copy_(trained)
numbers["table_worth"] = (silent - bits)[:short].mean()
centred = torch.cat([trained[:short] - trained[:short].mean(dim=0), trained[short:]])
unit = torch.nn.functional.normalize(centred, dim=1)
alike = unit @ unit.T
near, far_apart = (alike.diagonal(k)[: short - k].mean().item() for k in (1, 32))
assert near > 0.1 > abs(alike.diagonal(1)[short:].mean()) and far_apart < 0

# %% tags=["hide-input"]
near, far_apart = (text_of([cosine], ".2f") for cosine in (near, far_apart))
fig, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), width_ratios=(1.1, 1))
axes[0].plot(trained.norm(dim=1), "s", color=figures.METHODS["learned"].colour)
axes[0].plot(before.cpu().norm(dim=1), "_", color=figures.INK, markersize=7)
figures.trained_length(axes[0], short, "longest text")
axes[0].text(2, before.norm(dim=1).max() + 0.01, "before training", fontsize=9)
axes[0].set(xlabel="row", ylabel="length of the row", ylim=(0, None))
image = shapes.heat_map(axes[1], alike, reach=1)
axes[1].set(xlabel="row", ylabel="row", xticks=[0, 24, 48], yticks=[0, 24, 48])
fig.colorbar(image, ax=axes[1], label="cosine of two rows", ticks=[-1, 0, 1])
figures.show(
    fig,
    name="fig-absolute-table",
    alt="Left: length of each of 64 rows after training, with marks for their length "
    "before. The first 48 have grown, the last 16 lie on their marks. Right: cosines "
    "between rows. Among the first 48, near rows are alike and far rows are opposed; "
    "the rest are unrelated.",
    caption=f"A table of {L} rows after training on texts of {short} tokens. Left: the "
    f"first {short} rows have grown, and the last {L - short} are as they were drawn. "
    f"Right: near rows have become alike, and early rows differ from late ones. The "
    f"cosine is {near} one row apart and {far_apart} at 32 rows. One seed.",
)

# %% [markdown]
# The rows that were used have grown from {num}`02_absolute/norm_fresh:.2f` to {num}`02_absolute/norm_trained:.2f` on average. For the
# cosines we subtract the mean of the used rows first, so some cosines must be negative. But training decided which: rows that are far apart
# have the negative ones. Nothing told the model that index 7 lies between 6 and 8. It learned from texts that near rows are alike, though
# only coarsely so far. The unused rows are noise.
#
# **A surprise.** We expected the untrained rows to hurt. But the loss is {num}`02_absolute/bits_last_trained:.2f` bits per byte on the
# last sixteen trained places, and {num}`02_absolute/bits_untrained:.2f` on the sixteen untrained places after them. The reason is that
# this model hardly uses its table: with *all* rows set to zero, the loss in the first 48 places rises by only
# {num}`02_absolute/table_worth:.3f`. This is one seed. {doc}`Chapter 12 <12_extrapolators>` trains for longer, with six seeds.
#
# ## Where a table can enter
#
# All layers can *share* one table, added to the input of each, or every layer can have *its own*. A table can also enter
# *queries and keys only*, $W_Q (u_i + p_i)$ and $W_K (u_j + p_j)$ with $u$ the normalised input of a layer, as
# {cite:t}`press2021` do with the sinusoid.


# %%
def placed(**fields):
    torch.manual_seed(seed)
    config = TransformerConfig(Streams.dense(32), 3, 2, max_length=L, **fields)
    return LanguageModel(config).double().eval()


PLACED = {
    "once, at the input": {"encoding": "learned"},
    "learned, one table in every layer": {
        "encoding": "learned",
        "pos_stream": "reinjected",
    },
    "learned, a table a layer": {"encoding": Learned(per_layer=True)},
    "learned, queries and keys": {"encoding": Learned(site="query_key")},
}


def tables(model):
    return [p for name, p in model.named_parameters() if name.endswith("table")]


def reached_by_table(model):
    """Largest change of the logits under other tables, the attention weights held."""
    text_here = torch.arange(24)[None] * 7 % 256
    with torch.no_grad(), frozen_attention(model):
        first = model(text_here)
        for table in tables(model):
            table.add_(torch.randn_like(table))
        return (model(text_here) - first).abs().max().item()


# %%
models = ((name, placed(**fields)) for name, fields in PLACED.items())
where = pd.DataFrame(
    {
        "where": name,
        "tables": len(tables(one)),
        "their parameters": sum(table.numel() for table in tables(one)),
        "change through values": reached_by_table(one),
    }
    for name, one in models
)
figures.show_table(
    where,
    caption=f"Four places for a table of {L} rows in a model of 3 layers and width 32. "
    "Last column: how much the logits change when the table changes and all "
    "attention weights are held fixed.",
    formats={"their parameters": ",d", "change through values": ".2g"},
)
of_values = where.set_index("where")["change through values"]
assert of_values["learned, queries and keys"] == 0, "values must not contain the table"
assert (of_values.drop("learned, queries and keys") > 1e-3).all()
assert list(where.tables) == [1, 1, 3, 1]

# %% [markdown]
# If only queries and keys read the table, position decides which tokens are read, but it is not part of what is read: with the attention
# weights held fixed, changing the table changes nothing. {doc}`Chapter 8 <08_two_streams>` goes further. It gives position columns of its
# own, a {term}`stream`, so that position decides which tokens are read and nothing else.
#
# (absolute-every-layer)=
# ## First layer only, or every layer?
#
# The notes say: "Position encoding can either be applied to only the first input, or in every layer". They add that the second tends to
# perform better. The experiment `ablation` compares models that differ in this one factor, with the same seeds and learning rate, for the
# sinusoid and for a *shared* table. (In models with a sinusoid, the token embeddings start at the scale that suits each model best.) The
# experiment `encodings` has a table *for each layer* and one for queries and keys, each with its own learning rate.

# %%
COMPARED = (
    ("ablation", "sinusoidal-reinjected", "sinusoidal", "sinusoidal, in every layer"),
    ("ablation", "learned-reinjected", "learned", "learned, one table in every layer"),
    ("encodings", "learned-per-layer", "learned", "learned, a table a layer"),
    ("encodings", "learned-query-key", "learned", "learned, queries and keys"),
)
runs = {n: experiments.get(n).table(profile) for n in ("ablation", "encodings")}
differences = {
    label: RunTable(runs[name]).difference(changed, reference, "bits_per_byte")
    for name, changed, reference, label in COMPARED
}
# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 2.6))
rows = {
    label: [(differences[label], figures.METHODS[reference])]
    for _, _, reference, label in COMPARED
}
figures.seed_rows(ax, rows, missing="not run")
ax.set_xlabel("bits per byte minus added once (left is better)")
ax.set_xlim(right=max(0.03, ax.get_xlim()[1]))
run = {label: values.mean() for label, values in differences.items() if len(values)}
ahead = [f"*{label}* ({text_of([mean])})" for label, mean in run.items() if mean < 0]
figures.show(
    fig,
    name="fig-absolute-layers",
    alt="Dot plot with four rows, one for each way of adding the embedding: the "
    "difference in bits per byte from the model that adds it once, with one tick per "
    "seed and a line at zero.",
    caption=f"Of these {len(run)} ways to add positions again or elsewhere, "
    f"{' and '.join(ahead) or 'none'} {'have' if len(ahead) > 1 else 'has'} a lower "
    "mean loss than adding them once at the input. Each tick is a seed; bars are 95 % "
    "t intervals.",
)

# %% tags=["hide-input"]
grid = experiments.get("ablation").grid("laptop")
rates = {run.method: run.training.learning_rate for run in grid}
assert len({rates[method] for _, *pair, _ in COMPARED[:2] for method in pair}) == 1

# %% [markdown]
# | instead of once at the input | bits per byte |
# |---|---|
# | sinusoidal, in every layer | {num}`ablation/sinusoidal-reinjected minus sinusoidal/bits_per_byte:+.3f±` |
# | learned, one table in every layer | {num}`ablation/learned-reinjected minus learned/bits_per_byte:+.3f±` |
# | learned, a table a layer | {num}`encodings/learned-per-layer minus learned/bits_per_byte:+.3f±` |
# | learned, queries and keys | {num}`encodings/learned-query-key minus learned/bits_per_byte:+.3f±` |
#
# The first two rows decide the notes' claim, by a rule that was committed before the records: adding position in every layer did not lower
# the loss ({verdict}`position-at-every-layer-helps: not reproduced`). The other two rows have three seeds and no rule, so they are
# exploratory.
#
# Inside the trained length the table for queries and keys has a lower loss than the table at the input, but longer texts break it, too.
# There the last row of the table replaces every row that is missing. We compare each model with itself, reading through a window that
# slides along the text and starts its positions at 0 again. At eight trained lengths the loss is above that of this window by
# {num}`encodings/learned-query-key/gap/clamp/8x:+.2f` bits per byte for the table at queries and keys, and by
# {num}`encodings/learned/gap/clamp/8x:+.2f` for the table at the input ({doc}`chapter 7 <07_every_encoding>`).
#
# ## What to take away
#
# 1. A shift by $c$ turns each pair of columns by one angle, the same at every index. Relative positions are *one matrix away*: a head
#    can learn that matrix, but does not get it for free.
# 2. The dot product of two sinusoids depends on their distance, without its sign, and does not fall steadily.
# 3. A table learns each row from the tokens at that index alone. Rows that no text reaches remain as they were drawn.
#
# **Limits.** The statements about the sinusoid are exact. The trained table comes from one tiny model with one seed. Texts past the
# {term}`trained length` are the subject of {doc}`chapter 12 <12_extrapolators>`.
#
# **What would change our mind.** Waves for which {eq}`eq-absolute-shift` fails by more than rounding. For the last section, runs in
# which position in every layer helps one of the two embeddings and hurts the other: the statement would then be about
# embeddings and not about layers.
#
# **Where it goes on.** The {doc}`next chapter <03_relative>` gives relative positions directly, at the score.
#
# ## Exercises
#
# Try each before you unfold its solution. Every solution ends with a check that fails if it is wrong.
#
# **1. (hard)** Which matrices $A$ make $p_i A\, p_j^\top$ a function of $i - j$ alone? Show that they can produce *any* score
# $\sum_m a_m \cos(\delta w_m) + b_m \sin(\delta w_m)$, with $\delta = i - j$.

# %% tags=["hide-cell"]
# Solution. Those that no shift changes, R_c A R_c^T = A. They have one block a_m 1 +
# b_m J for each pair, with J = ((0, -1), (1, 0)).
a, b = torch.randn(2, d // 2, generator=generator, dtype=F64)
J = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=F64)
blocks = [x * torch.eye(2, dtype=F64) + y * J for x, y in zip(a, b, strict=True)]
A = torch.block_diag(*blocks)
torch.testing.assert_close(shift_matrix(9) @ A @ shift_matrix(9).T, A)
delta = (torch.arange(64)[:, None] - torch.arange(64))[..., None] * w
wanted = (a * delta.cos() - b * delta.sin()).sum(dim=-1)  # the sign of b is free
torch.testing.assert_close(places @ A @ places.T, wanted, rtol=0, atol=1e-11)
assert from_distance(places @ (A + mixed) @ places.T) < 0.999

# %% [markdown]
# **2. (medium)** A batch is padded *on the left*, so that all texts end together. A colleague takes the index of the column as
# the position. Which rows of a learned table do short texts then train, and how would you fix it?

# %% tags=["hide-cell"]
# Solution. Only the late rows. Compute positions from the padding mask instead, so that
# every text begins at row 0.
mask = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]])
positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
assert positions.tolist() == [[0, 0, 0, 0, 1], [0, 1, 2, 3, 4]]
learner = placed(encoding="learned")
tokens = torch.randint(256, (1, 2), generator=generator)
by_column, by_mask = torch.tensor([3, 4]), positions[0, 3:]
reached = []
for at in (by_column, by_mask):
    learner.zero_grad()
    learner(tokens, at).square().mean().backward()
    reached.append(torch.nonzero(tables(learner)[0].grad.abs().sum(dim=1)).flatten())
assert reached[0].tolist() == [3, 4] and reached[1].tolist() == [0, 1]

# %% tags=["hide-cell"]
chapter_numbers.publish("02_absolute", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(runs["ablation"], runs["encodings"])

# %% [markdown]
# # 8. Two streams: values and output
#
# **Finding.** Give position its own columns in every token's vector, and split attention's value and output matrices along the same border
# (the MLP and the norm are split too, see the next chapter). Each vector then consists of two *streams*, one of position and one of
# meaning. While the attention weights are held fixed, text cannot influence position at all: every derivative from one stream to the other
# is {num}`08_two_streams/frozen_jacobian_split:.0f`, exactly ({numref}`fig-streams-jacobian`). If only the value matrices are left unsplit,
# the largest such derivative is about {num}`08_two_streams/frozen_jacobian_full_value:.2f` or more in every random model. *Live* attention
# weights are computed from both streams, and through them each stream still influences the other.

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from torch import nn

from sepnb.analysis.isolation import jacobian, join_streams, leak, through_blocks
from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.plots import figures, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.streams import BlockDiagonalLinear, Streams

figures.use_style()
# The profile chooses sizes; every profile runs the same code.
n_tokens, n_seeds = {"smoke": (5, 3), "laptop": (8, 8), "gpu": (12, 16)}[profile]
D, H = 32, 4
numbers = {}


# %% tags=["hide-input"]
def build_model(d_pos=8, *, seed=seed, dtype=torch.float64, **changes):
    """Separated, with random weights; `readout="both"` keeps the last pos stream."""
    torch.manual_seed(seed)
    settings = {
        "n_layers": 2,
        "n_heads": H,
        "encoding": "sinusoidal",
        "readout": "both",
    }
    config = TransformerConfig(Streams(pos=d_pos, sem=D - d_pos), **settings | changes)
    return LanguageModel(config).to(device, dtype).requires_grad_(False)


def input_state(model, text):
    """The residual state before the first block: one [1, N, w] per stream."""
    tokens = torch.tensor([list(text.encode())], device=device)
    positions = torch.arange(len(text), device=device)
    return model.transformer.input_state(model.embedding(tokens), positions)


# %% tags=["hide-input"]
def measure(d_pos, seed, control=()):
    """The largest entry of each block of the Jacobian from stream to stream."""
    model = build_model(d_pos, seed=seed)
    state = input_state(model, "semantic streams"[:n_tokens])
    streams = model.config.streams
    for where in control:  # full matrices instead of blocks
        join_streams(model.transformer, where)
    frozen, live = (
        jacobian(model.transformer, state, frozen=flag) for flag in (True, False)
    )
    return {
        "frozen, sem → pos": leak(frozen, streams),
        "frozen, pos → sem": leak(frozen, streams, "pos", "sem"),
        "live, sem → pos": leak(live, streams),
        "live, pos → sem": leak(live, streams, "pos", "sem"),
        "jacobians": (frozen, live),
    }


# %% tags=["hide-input"]
variants = {
    "d_pos = 8": (8, ()),
    "d_pos = 5 (head 0 straddles)": (5, ()),
    "d_pos = 12 (head 1 straddles)": (12, ()),
    "control: full W_V": (8, ("value",)),
    "control: full W_O": (8, ("output",)),
    "control: full W_V and W_O": (8, ("value", "output")),
}
seeds = range(seed, seed + n_seeds)
measured = {
    name: [measure(d_pos, s, control) for s in seeds]
    for name, (d_pos, control) in variants.items()
}

# %% tags=["hide-input"]
separated = measured["d_pos = 8"][0]["jacobians"]
joined = measured["control: full W_V and W_O"][0]["jacobians"]
pictures = {"separated, frozen": separated[0], "separated, live": separated[1]}
pictures["full $W_V$ and $W_O$, frozen"] = joined[0]
figures.show(
    shapes.jacobians({name: one.cpu() for name, one in pictures.items()}, pos=8),
    name="fig-streams-jacobian",
    alt="Three thirty-two by thirty-two heat maps of derivatives. Separated with "
    "frozen attention: the two blocks that lead from stream to stream are empty, "
    "exactly zero. Separated with live attention: they are filled. Full value and "
    "output matrices with frozen attention: filled.",
    caption="With fixed attention weights nothing passes between the streams "
    "(*separated, frozen*: exactly 0). With live attention weights each stream "
    "influences the other (*separated, live*). Unsplit value and output matrices leak "
    "even with fixed weights (last panel). Colour shows how strongly each output "
    "column depends on each input column: the largest derivative over all pairs of "
    "tokens, in one random model.",
)

# %% [markdown]
# > **Question.** If position gets its own columns, how must attention be built so that position and meaning never mix? And what still
# > passes between them?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 7 s of one CPU core at profile `smoke`, about 10 s at `laptop`; no GPU is used. Memory: under 1 GB. Nothing is
#   downloaded, nothing is trained.
# - **You need**: {doc}`chapter 1 <01_order>`; block matrices; what a Jacobian is.
# - **You will learn**: why values keep the streams apart and attention weights do not; how to measure isolation exactly, with controls that
#   must leak; what the split saves.
# - **Claims tested**: two sentences of the slides. Each verdict is shown in the text and links to its rule.
# ```
#
# The source of this part of the book is a set of slides in French. Instead of *adding* a position vector to a token's embedding, they
# reserve some dimensions for position alone. This chapter keeps position and meaning apart inside attention;
# {doc}`the next one <09_split_mlp_norm>` does so in the rest of the block.
#
# The idea is older than the slides. {cite:t}`kitaev2018` already concatenated content and position, and split the weights of attention and
# of the feed-forward layers. {cite:t}`lequeu2026` study such models in depth. The book adds exact tests, and comparisons in which only one
# factor changes.
#
# ## What goes in
#
# We divide the width, $D = d_{\text{pos}} + d_{\text{sem}}$. A token enters as $x_i = [\,p_i \,\Vert\, s_t\,]$, equation {eq}`eq-input`,
# with position first ($\Vert$ puts two vectors side by side). The position columns are the *pos stream*. The other columns, for meaning
# (semantics), are the *sem stream*. Two texts of the same length then have the same position columns, and a letter has the same semantic
# columns wherever it occurs.


# %%
model = build_model()
one, two = input_state(model, "position"), input_state(model, "semantic")
print({name: tuple(part.shape) for name, part in one.items()})
assert torch.equal(one["pos"], two["pos"]) and not torch.equal(one["sem"], two["sem"])
first_o, second_o = one["sem"][0, 1], one["sem"][0, 6]  # of "position"
assert torch.equal(first_o, second_o)

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.8, 2.7))
for ax, state, text in ((axes[0], one, "position"), (axes[1], two, "semantic")):
    x = model.config.streams.join(state)[0]
    image = shapes.heat_map(ax, x.cpu(), reach=2.5, aspect="auto")
    ax.axvline(7.5, color=figures.INK, linewidth=2)
    ax.set_yticks(range(8), list(text))
    ax.set_xticks([0, 8, 31])
    ax.set_xlabel("column of $x$")
    ax.text(3.5, -0.9, "pos", ha="center", weight="bold", color=figures.POS)
    ax.text(19.5, -0.9, "sem", ha="center", weight="bold", color="#a87400")
    ax.tick_params(length=0)
fig.colorbar(image, ax=axes, shrink=0.8, label="value", ticks=[-2, 0, 2])
figures.show(
    fig,
    name="fig-streams-input",
    alt="Two heat maps of an eight by thirty-two input, for the words 'position' and "
    "'semantic'. A line separates eight pos columns from twenty-four sem columns. The "
    "pos columns of the two are identical, the sem columns differ.",
    caption="The input of a separated model for two words of eight letters. The pos "
    "columns depend only on the index, so they are the same in both words. The sem "
    "columns depend only on the letter.",
)

# %% [markdown]
# A {term}`dense model` with added positions starts with the sum $p_i + s_t$, and in general neither part can be recovered from it. In a
# separated model nothing is mixed *yet*.
#
# ## Values that stay in their columns
#
# Attention averages the values $V = u\, W_V$, where $u = [\,u_{\text{pos}} \,\Vert\, u_{\text{sem}}\,]$ is the normalised input. With a
# full $W_V$ every column of $V$ reads every input column. The slides make $W_V$ block diagonal:
#
# $$
# \begin{aligned}
# V &= [\,u_{\text{pos}} \,\Vert\, u_{\text{sem}}\,]
# \begin{pmatrix} W_{V,\text{pos}} & 0 \\ 0 & W_{V,\text{sem}} \end{pmatrix} \\
# &= [\,u_{\text{pos}} W_{V,\text{pos}} \,\Vert\, u_{\text{sem}} W_{V,\text{sem}}\,] .
# \end{aligned}
# $$ (eq-streams-values)
#
# The book's `BlockDiagonalLinear` stores the two blocks and nothing else:
#
# ```{literalinclude} ../../sepnb/streams.py
# :pyobject: BlockDiagonalLinear.parts
# :dedent:
# ```
#
# By hand, with two columns per stream:
#
# $$
# [\,1, 1 \,\Vert\, 2, 1\,] \begin{pmatrix} 1 & 2 & & \\ 0 & 1 & & \\ & & 3 & 0 \\ & & 1 & 1 \end{pmatrix}
# = [\,1, 3 \,\Vert\, 7, 1\,] .
# $$

# %%
W_pos = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
W_sem = torch.tensor([[3.0, 0.0], [1.0, 1.0]])
u = torch.tensor([1.0, 1.0, 2.0, 1.0])

split = BlockDiagonalLinear(Streams(pos=2, sem=2))  # (eq-streams-values)
with torch.no_grad():
    split.blocks["pos"].weight.copy_(W_pos.T)  # torch's Linear stores the transpose
    split.blocks["sem"].weight.copy_(W_sem.T)
assert split(u).tolist() == [1, 3, 7, 1]
assert torch.equal(split(u), u @ torch.block_diag(W_pos, W_sem))  # zeros included

# %% [markdown]
# Then the values are averaged with the attention weights. For output column $c$ of token $i$,
#
# $$
# z_{ic} = \sum_{j=1}^{M} a_{ij}\, V_{jc} .
# $$ (eq-streams-sum)
#
# The sum runs over the *keys* $j$, the rows of $V$, while the column $c$ stays fixed. So attention mixes tokens, not columns. In the
# package, the attention layer turns the normalised streams `u` into its output as follows. Three lines matter here: the first makes the
# values, the one with `averaged` is {eq}`eq-streams-sum`, and the last applies $W_O$. The lines between them serve encodings of other
# chapters.
#
# ```{literalinclude} ../../sepnb/models/attention.py
# :pyobject: Attention.forward
# :start-at: values =
# :dedent:
# ```
#
# Here is {eq}`eq-streams-sum` again, written as loops over small numbers:

# %%
a = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])  # N = 2 queries, M = 3 keys
V = [[1.0, 3.0, 7.0, 1.0], [2.0, 0.0, 0.0, 4.0], [0.0, 2.0, 1.0, 1.0]]
V = torch.tensor(V)  # [M, D]

z = torch.zeros(2, 4)
for i in range(2):
    for c in range(4):
        for j in range(3):  # over keys, (eq-streams-sum)
            z[i, c] += a[i, j] * V[j, c]
assert torch.equal(z, a @ V)
assert z[0].tolist() == [1.5, 1.5, 3.5, 2.5]

V_other_text = V.clone()
V_other_text[:, 2:] = 99.0  # other semantics at every token
assert torch.equal((a @ V_other_text)[:, :2], z[:, :2]), "pos must not notice"

# %% [markdown]
# ```{admonition} Deviation from the source: four slips
# :class: warning
# - The slides let the sum of {eq}`eq-streams-sum` run to $d_{\text{model}}$. It must end at the number of keys $M$. In the loop above
#   $d_{\text{model}}$ is 4, so the sum would ask for a fourth key, but there are only three. The slides' *conclusion* is right.
# - They print $\operatorname{softmax}(Q \cdot K / \sqrt{d})$. The shapes need a transpose, $Q K^\top$.
# - They call a position unseen when $i > L_{\max}$. Their window is $[0, L_{\max} - 1]$, so the first unseen index is $L_{\max}$ itself.
#   With this book's $L$ for $L_{\max}$, unseen means $i \ge L$.
# - They omit the norm and the residual path. {doc}`Chapter 9 <09_split_mlp_norm>` shows that the norm decides whether the streams stay
#   apart at all.
# ```

# %% [markdown]
# ## Heads, and the one that straddles
#
# Each head computes its own weights and owns $d = D/H$ neighbouring columns of $z$. The slides first tried $d_{\text{pos}} = d$, so that
# head 0 owns exactly the pos columns and is "the position head". But $d_{\text{pos}}$ is a hyperparameter and need not equal $d$. With
# $d_{\text{pos}} = 5$ and $d = 8$, head 0 owns five pos columns *and* three sem columns: it *straddles* the border.

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(7.2, 3.3))
for row, d_pos in enumerate((8, 5, 12)):
    y = -1.85 * row
    for column in range(D):
        colour = figures.POS if column < d_pos else figures.SEM
        look = {"facecolor": colour, "alpha": 0.85, "linewidth": 0}
        ax.add_patch(plt.Rectangle((column + 0.05, y), 0.9, 0.8, **look))
    for h in range(H):
        frame = {"fill": False, "edgecolor": figures.INK, "linewidth": 1.4}
        ax.add_patch(plt.Rectangle((h * 8, y - 0.07), 8, 0.94, **frame))
        straddles = h * 8 < d_pos < (h + 1) * 8
        look = {"ha": "center", "va": "bottom", "fontsize": 9}
        look["weight"] = "bold" if straddles else "normal"
        ax.text(h * 8 + 4, y + 0.93, f"head {h}" + "\nstraddles" * straddles, **look)
    own = f"$d_{{\\mathrm{{pos}}}} = {d_pos}$"
    ax.text(-0.7, y + 0.4, own, ha="right", va="center")
ax.text(0, -3.95, "pos columns", color=figures.POS, weight="bold", va="top")
ax.text(32, -3.95, "sem columns", color="#a87400", weight="bold", ha="right", va="top")
ax.set(xlim=(-5, 32.5), ylim=(-4.55, 1.4))
ax.axis("off")
figures.show(
    fig,
    name="fig-streams-heads",
    alt="Three rows of thirty-two columns in four heads of eight. With d_pos 8 the "
    "pos columns fill head 0 exactly. With d_pos 5 they fill five columns of head 0, "
    "with d_pos 12 head 0 and half of head 1: these heads straddle.",
    caption="Which head owns which columns of $z$, for three values of "
    "$d_{\\text{pos}}$. $W_O$ is cut where the colour changes, not at the "
    "border of a head, so a straddling head mixes nothing.",
)

# %% [markdown]
# Does a straddling head leak? No. By {eq}`eq-streams-sum`, a head averages all its columns, pos and sem, *with the same weights*, but it
# never adds one column to another. Only the next matrix, $W_O$, must be cut at the right place:
#
# $$
# y = x + z \begin{pmatrix} W_{O,\text{pos}} & 0 \\ 0 & W_{O,\text{sem}} \end{pmatrix} ,
# $$ (eq-streams-output)
#
# with the border between the blocks at column $d_{\text{pos}}$ of the concatenated heads.
#
# ## Measuring isolation
#
# "Does not mix" is a statement about derivatives. Let $F$ be the whole stack of blocks and $x$ its input state. The streams are isolated
# if the block of the Jacobian that leads from one to the other vanishes:
#
# $$
# J_{\text{pos} \leftarrow \text{sem}} = \frac{\partial F(x)_{\text{pos}}}{\partial x_{\text{sem}}} = 0 .
# $$ (eq-streams-jacobian)
#
# We can compute this derivative in two ways.
#
# - *Frozen*: record the attention weights $a_{ij}$ at $x$ and hold them constant. Whatever still passes goes through values, outputs, MLPs
#   and norms, the paths that have to be cut.
# - *Live*: differentiate everything. $Q$ and $K$ read both streams, so content moves the weights, and the weights move the average of the
#   position columns. This is the *routing leak*. The slides' architecture allows it by design.
#
# We report the largest absolute entry. Zero means exactly `0.0`, not "small": where there is no path, automatic differentiation
# multiplies and adds only zeros.


# %%
ways = ("sem → pos", "pos → sem")
columns = [f"{kind}, {way}" for kind in ("frozen", "live") for way in ways]
by_run = {
    name: np.array([[run[column] for column in columns] for run in runs])
    for name, runs in measured.items()
}
largest = {name: found.max(axis=0).tolist() for name, found in by_run.items()}
smallest = {name: found.min(axis=0).tolist() for name, found in by_run.items()}
figures.show_table(
    pd.DataFrame(
        [[name, *values] for name, values in largest.items()],
        columns=["model", *columns],
    ),
    caption=f"Largest entry of the Jacobian between streams; the largest of {n_seeds} "
    "random models (two blocks, float64).",
    formats=dict.fromkeys(columns, ".2g"),
)
# %%
split_models = [name for name in variants if name.startswith("d_pos")]
controls = [name for name in variants if name.startswith("control")]
for name in split_models:
    assert largest[name][:2] == [0.0, 0.0], "frozen: exactly zero, or not separated"
    assert min(smallest[name][2:]) > 1e-3, "live: the routing leak must be visible"
for name in controls:
    assert min(smallest[name][:2]) > 1e-3, "controls must leak, or the test is blind"
numbers["frozen_jacobian_split"] = max(max(largest[name][:2]) for name in split_models)
numbers["live_jacobian_split"] = min(smallest[name][2] for name in split_models)
numbers["live_jacobian_sem_by_pos"] = min(smallest[name][3] for name in split_models)
numbers["frozen_jacobian_dense"] = min(smallest["control: full W_V and W_O"][:2])
numbers["frozen_jacobian_full_value"] = min(smallest["control: full W_V"][:2])
numbers["frozen_jacobian_full_output"] = min(smallest["control: full W_O"][:2])

# %% [markdown]
# With frozen weights the separated models give {num}`08_two_streams/frozen_jacobian_split:.1f` in both directions, with or without a
# straddling head. A full $W_V$ alone already makes the streams leak, and so does a full $W_O$ alone. The table shows the leakiest of the
# random models. In the least leaky one the largest derivative is still {num}`08_two_streams/frozen_jacobian_full_value:.2f` for $W_V$ and
# {num}`08_two_streams/frozen_jacobian_full_output:.2f` for $W_O$. So both splits are needed, and inside attention they are enough
# ({verdict}`block-values-keep-streams-apart: reproduced`). The measurement does see a leak where there is one.
#
# ## The routing leak
#
# With live weights the same models leak. In the least leaky of them the largest derivative is {num}`08_two_streams/live_jacobian_split:.2f`
# from sem to pos, and {num}`08_two_streams/live_jacobian_sem_by_pos:.2f` from pos to sem. In the panel *separated, live* of
# {numref}`fig-streams-jacobian` no block is empty. The slides say that "only the positional embeddings depend on the index, while the
# semantic representations stay invariant". This holds for the *input* of the first block and for no later state
# ({verdict}`semantics-do-not-depend-on-position: partly`).
#
# Forward passes show the same. If a second text of the same length is read with the attention weights of the first, the two texts have the
# same pos stream, bit for bit. If the second text is read with its own attention weights, its pos stream differs from the first.

# %%
model32 = build_model(dtype=torch.float32)
one, two = input_state(model32, "position"), input_state(model32, "semantic")
with frozen_attention(model32):
    first = through_blocks(model32.transformer, one)  # records its weights
    second = through_blocks(model32.transformer, two)  # reuses them
assert torch.equal(first["pos"], second["pos"]), "float32, and still bit for bit"
assert not torch.equal(first["sem"], second["sem"])

live = through_blocks(model32.transformer, two)
change = (live["pos"] - first["pos"]).norm() / first["pos"].norm()
print(f"relative change of the pos stream with weights of its own: {change:.2f}")
assert change > 1e-3

# %% [markdown]
# How large is the routing leak? That depends on how strongly the weights react to content, so we scale $W_Q$ and $W_K$ by a factor $g$.
# At $g = 0$ all scores are 0 and the attention weights are uniform, whatever the text.

# %%
factors = [0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0]


def routing_leak(factor, seed):
    """The live leak from sem to pos when queries and keys are scaled by `factor`."""
    model = build_model(seed=seed)
    for block in model.transformer.blocks:
        for projection in block.attention.query_key:
            projection.weight.mul_(factor)
    state = input_state(model, "semantic streams"[:n_tokens])
    return leak(jacobian(model.transformer, state, frozen=False), model.config.streams)


leaks = np.array([[routing_leak(factor, s) for factor in factors] for s in seeds])
assert (leaks[:, 0] == 0.0).all() and (leaks[:, 1] > 0).all()
numbers["routing_leak_at_1"] = float(np.median(leaks[:, factors.index(1.0)]))
numbers["routing_leak_at_quarter"] = float(np.median(leaks[:, factors.index(0.25)]))

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.4, 3.3))
ax.plot(factors[1:], leaks[:, 1:].T, color=figures.MIXED, linewidth=0.9, alpha=0.45)
middle = np.median(leaks[:, 1:], axis=0)
ax.plot(factors[1:], middle, color=figures.MIXED, linewidth=2.4)
ax.set_yscale("log")
shapes.powers_of_two(ax, factors[1:], ["1/8", "1/4", "1/2", "1", "2", "4"])
shapes.mark(ax, 1, "as initialised", height=1.01)
ax.set(xlabel="factor $g$ on $W_Q$ and on $W_K$", ylabel="live leak, sem → pos")
figures.show(
    fig,
    name="fig-streams-routing",
    alt="The live leak from sem to pos against the factor on the query and key "
    "matrices, both axes logarithmic. It rises in nearly a straight line of slope "
    "two. One thin line per seed, a thick line for the median.",
    caption="The more strongly attention reacts to content, the larger the routing "
    "leak. It grows roughly with the square of $g$ over five octaves. At $g = "
    "0$, which a logarithmic axis cannot show, it is exactly zero. Thin "
    f"lines: {n_seeds} random models; thick line: their median.",
)

# %% [markdown]
# The leak grows roughly with the square of $g$ because scores are products of a query and a key. From a quarter of the initial scale to the
# full initial scale, the median leak grows from {num}`08_two_streams/routing_leak_at_quarter:.3f` to
# {num}`08_two_streams/routing_leak_at_1:.2f`. These are *random* models, so they show only that the leak is possible.
# {doc}`Chapter 21 <21_inside>` asks whether *trained* models use it, and the strict variant of {doc}`chapter 10 <10_strict>` removes it by
# construction.
#
# ## What it costs, or saves
#
# A dense block has $4 D^2$ numbers in $W_Q, W_K, W_V, W_O$ and $8 D^2$ in an MLP of four times the width. The separated block keeps $W_Q$
# and $W_K$ whole and makes all other matrices block diagonal, so the counts are
#
# $$
# \begin{aligned}
# \text{dense: } & 12 D^2, \\
# \text{separated: } & 2 D^2 \\
# & {} + 10\,(d_{\text{pos}}^2 + d_{\text{sem}}^2) ,
# \end{aligned}
# $$ (eq-streams-count)
#
# each plus $4D$ for two norms with gain and bias. We check the formula against whole stacks of blocks:


# %%
def formula(width, d_pos, n_layers):
    """Parameters of the stack of blocks, and two norms a block."""
    squares = d_pos**2 + (width - d_pos) ** 2
    matrices = 12 * width**2 if d_pos == 0 else 2 * width**2 + 10 * squares
    return n_layers * (matrices + 4 * width)


def counted(width, d_pos, n_layers):
    """The same, counted on a model."""
    streams = Streams(pos=d_pos, sem=width - d_pos)
    encoding = "sinusoidal" if d_pos else "none"
    config = TransformerConfig(streams, n_layers, 4, encoding, readout="both")
    return LanguageModel(config).parameter_counts()["blocks"]


# %%
rows = []
sizes = (64, 0, 3), (64, 16, 3), (64, 32, 3), (128, 0, 4), (128, 32, 4), (76, 19, 3)
for size in sizes:  # width, d_pos and number of blocks
    total = formula(*size)
    assert counted(*size) == total
    rows.append([*size, total, total / formula(size[0], 0, size[2])])
columns = ["D", "d_pos", "blocks", "parameters", "of dense"]
figures.show_table(
    pd.DataFrame(rows, columns=columns),
    caption="Parameters of the blocks by formula, equal to the count on the model.",
    formats={"parameters": ",", "of dense": ".3f"},
)
dense, quarter = formula(64, 0, 3), formula(64, 16, 3)
numbers["share_of_dense_quarter"] = quarter / dense
numbers["wide_over_dense"] = formula(76, 19, 3) / dense

# %% [markdown]
# At $d_{\text{pos}} = D/4$ the separated blocks have {num}`08_two_streams/share_of_dense_quarter:.1%` of the parameters of the dense ones.
# So at {term}`equal width` the separated model has fewer weights. At {term}`equal parameters` it has a wider residual path: a separated
# model with $D = 76$ has {num}`08_two_streams/wide_over_dense:.3f` times the parameters of a dense one with $D = 64$. The book shows both
# comparisons.
#
# ## What went wrong: zeros that drift
#
# The cheap way to build a block-diagonal matrix is to take a full one whose off-diagonal blocks *start* at zero. The initial model then
# passes every test above. But do the zeros survive five optimiser steps on a random regression problem?

# %%
torch.manual_seed(seed)
streams = Streams(pos=8, sem=24)
outside = torch.block_diag(torch.ones(8, 8), torch.ones(24, 24)) == 0
full, blocks = nn.Linear(D, D, bias=False), BlockDiagonalLinear(streams)
with torch.no_grad():
    full.weight[outside] = 0.0
inputs, targets = torch.randn(64, D), torch.randn(64, D)
for layer in (full, blocks):
    adamw = torch.optim.AdamW(layer.parameters(), lr=1e-2)
    for _ in range(5):
        adamw.zero_grad()
        (layer(inputs) - targets).square().mean().backward()
        adamw.step()
numbers["drift_of_initial_zeros"] = full.weight[outside].abs().max().item()
stored = torch.block_diag(*(block.weight for block in blocks.blocks.values()))
drift = numbers["drift_of_initial_zeros"]
print(f"off-block: {drift:.3f} (full), {stored[outside].abs().max():.1f} (blocks)")
assert drift > 1e-3 and not stored[outside].any()

# %% [markdown]
# The zeros have moved by up to {num}`08_two_streams/drift_of_initial_zeros:.3f`, about five times the learning rate, because nothing held
# them in place. Applying a mask in every forward pass would be correct, but would cost time and memory. So the book stores only the blocks,
# and also tests isolation after training steps.
#
# ## What to take away
#
# 1. The attention weights mix tokens, not columns. If $W_V$ and $W_O$ are block diagonal, both cut at column $d_{\text{pos}}$, the value
#    path is separated **exactly**, even when a head straddles the border. Splitting only one of the two is not enough.
# 2. The attention weights read both streams, so live weights let position and content influence each other, and the largest derivative is
#    at least {num}`08_two_streams/live_jacobian_split:.2f` in every model here. Separated does not mean independent.
# 3. A separated block with a quarter of the width for position has {num}`08_two_streams/share_of_dense_quarter:.1%` of the parameters of
#    a dense one. So every comparison must be made twice: at equal width *and* at equal parameters.
#
# **Limits.** The zeros are exact for any weights. The sizes of the leaks belong to random models of one small shape with the book's
# initialisation; trained models can differ in either direction. The norm and the MLP were split throughout; the next chapter shows why.
#
# **What would change our mind.** A single nonzero derivative from one stream to the other in a frozen Jacobian of a split model, for any
# width, head count or weights. The package's tests look for one, also in models with biases, RMS norms, no mask or straddling heads.
#
# ## Exercises
#
# Try each before you unfold its solution. Every solution ends with a check that fails if it is wrong.
#
# **1. (easy)** At which share $r = d_{\text{pos}}/D$ does the separated block have the fewest parameters, and what fraction of the dense
# block's parameters is that? Derive it from {eq}`eq-streams-count`.

# %% tags=["hide-cell"]
# Solution. r^2 + (1 - r)^2 is smallest at r = 1/2, where it is 1/2: (2 + 10/2) / 12 =
# 7/12 of the matrices.
shares = [(2 + 10 * (r**2 + (1 - r) ** 2)) / 12 for r in np.linspace(0.01, 0.99, 99)]
assert np.argmin(shares) == 49 and min(shares) == 7 / 12
matrices = (counted(64, 32, 1) - 4 * 64) / (12 * 64**2)
assert abs(matrices - 7 / 12) < 1e-12

# %% [markdown]
# **2. (medium)** With $d_{\text{pos}} = 5$, cut $W_O$ at the head's border, column 8, instead of column 5. Predict which of the two
# directions leaks, then measure.

# %% tags=["hide-cell"]
# Solution. Columns 5 to 7 of z are semantic, but the wrong cut counts them to the pos
# block: its first five outputs read them (sem to pos), and its last three, which belong
# to sem, read the pos columns. Both directions leak.
from sepnb.analysis.isolation import DenseMap


class CutElsewhere(DenseMap):
    def __init__(self, streams, cut):
        super().__init__(streams)
        self.map = BlockDiagonalLinear(Streams(pos=cut, sem=D - cut)).double()


straddling = build_model(5)
for block in straddling.transformer.blocks:
    elsewhere = CutElsewhere(straddling.config.streams, cut=8)
    block.attention.output = elsewhere.requires_grad_(False)
wrong = jacobian(straddling.transformer, input_state(straddling, "border"), frozen=True)
assert leak(wrong, straddling.config.streams) > 1e-3
assert leak(wrong, straddling.config.streams, "pos", "sem") > 1e-3

# %% tags=["hide-cell"]
chapter_numbers.publish("08_two_streams", numbers, profile=profile)

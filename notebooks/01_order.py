# %% [markdown]
# # 1. Attention does not know order
#
# **Finding.** Without a position encoding and without a mask, a transformer gives every word of *the dog bit the man* the same output as
# in *the man bit the dog*. A shuffle moves the outputs and changes none of them ({numref}`fig-order-attention`). A causal mask alone lets
# a model notice order, but the last token, which predicts the next one, notices it only if there is a second block
# ({numref}`fig-order-depth`).

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from sepnb.models import LanguageModel, TransformerConfig, frozen_attention
from sepnb.plots import diagrams, figures, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, optimiser

compared = ("none", "sinusoidal", "learned", "rope", "alibi")
figures.use_style()
# The profile chooses sizes; every profile runs the same code.
SIZES = {"smoke": (32, 12, 3, 140), "laptop": (64, 32, 3, 140)}
SIZES["gpu"] = (128, 64, 8, 320)
width, n_tokens, n_seeds, n_steps = SIZES[profile]
numbers = {}

# %% tags=["hide-input"]
words = ["the", "dog", "bit", "the", "man"]
vocabulary = sorted(set(words))
tokens = [[vocabulary.index(word) for word in words]]
tokens = torch.tensor(tokens, device=device)  # [B, N] = [1, 5]
# Word n of the shuffle is order[n].
order = torch.tensor([0, 4, 2, 3, 1], device=device)
shuffled = tokens[:, order]


def build_model(encoding="none", *, causal=False, n_layers=2, vocab=256, seed=seed):
    """A dense model with random weights, in float64."""
    torch.manual_seed(seed)
    settings = {"max_length": 2 * n_tokens, "causal": causal}
    config = TransformerConfig(Streams.dense(width), n_layers, 4, encoding, **settings)
    model = LanguageModel(config, vocab).to(device).double()
    return model.eval().requires_grad_(False)


model = build_model(vocab=len(vocabulary))
with frozen_attention(model) as tapes:  # records the attention weights of every layer
    before = model(tokens)
weights_before = tapes[0].weights[0, 0]  # first layer, first head: [N, M]
with frozen_attention(model) as tapes:
    after = model(shuffled)
weights_after = tapes[0].weights[0, 0]

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.5), sharey=False)
top = float(weights_before.max()) * 1.1
pairs = (weights_before, tokens, "as written"), (weights_after, shuffled, "shuffled")
for ax, (weights, ids, title) in zip(axes, pairs, strict=True):
    labels = [vocabulary[t] for t in ids[0]]
    shapes.heat_map(ax, weights.cpu(), cmap="Blues", vmin=0, vmax=top)
    words_in = [[f"{weight:.2f}" for weight in row] for row in weights]
    shapes.write_cells(ax, words_in, white=weights > 0.7 * weights.max(), fontsize=9)
    ax.set_xticks(range(5), labels)
    ax.set_yticks(range(5), labels)
    ax.set(title=title, xlabel="key", ylabel="query")
    ax.tick_params(length=0)
figures.show(
    fig,
    name="fig-order-attention",
    alt="Two five by five tables of attention weights, for 'the dog bit the man' and "
    "'the man bit the dog'. The second has the same entries as the first, with the "
    "rows and columns of dog and man exchanged.",
    caption="A shuffle only moves the attention weights: *dog* looks at *bit* with the "
    "same weight in both sentences. The two rows of *the* are equal, because without "
    "positions nothing distinguishes the two words.",
)

# %% [markdown]
# > **Question.** What does a transformer without any position encoding make of a shuffled sentence? And where can position enter to
# > change that?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 12 s of one CPU core at {term}`profile` `smoke`, about 20 s at `laptop`; no GPU is used, nothing is downloaded. Memory:
#   under 1 GB.
# - **You need**: matrix products and the softmax. {doc}`Notation </book/notation>` and {doc}`glossary </book/glossary>` have pages of their
#   own.
# - **You will learn**: why {term}`self-attention <attention weight>` is *equivariant* to order and not *invariant*; how a
#   {term}`causal mask` brings order in, and at which depth; at which {term}`site` each encoding acts.
# - **Claims tested**: three sentences of the sources. Each verdict is shown in the text and links to its rule.
# ```
#
# This book began with web articles, lecture notes and slides about position, and tests what they say ({doc}`/book/claims` lists it). One of
# the articles proposes an experiment: shuffle the words of a sentence, and "a basic Transformer would process these shuffled sentences
# identically", because attention "produces the same output regardless of input order". We do that experiment in double precision. The
# statement is wrong, in an instructive way.
#
# ## A sentence and its shuffle
#
# *The dog bit the man* has five words, two of them equal. A shuffle turns it into its opposite.
#
# The model is the {term}`dense model` of the book: two pre-norm blocks without biases, here without a position encoding. It has no causal
# mask either, so every token sees every other. Its weights are random, because only the last experiment needs training, and we compute in
# float64, so that "equal" can mean "equal up to rounding". Word $n$ of the shuffle is word `order[n]` of the sentence. Its row and column
# of the attention weights move with it:

# %%
print("attention weights", tuple(weights_before.shape), "  logits", tuple(before.shape))
moved_with_the_words = weights_before[order][:, order]
torch.testing.assert_close(weights_after, moved_with_the_words, rtol=0, atol=1e-12)
torch.testing.assert_close(after, before[:, order], rtol=0, atol=1e-12)

# %% [markdown]
# {numref}`fig-order-attention` already contains the whole argument. A weight $a_{ij}$ depends on what token $i$ asks and what token $j$
# offers, but not on where the two are.
#
# ## The derivation
#
# Write the tokens as the rows of a matrix $U \in \mathbb{R}^{N \times D}$ and a shuffle as a permutation matrix $\Pi$ (each row and column
# holds a single 1; $\Pi^\top \Pi = 1$). The shuffled input is then $\Pi U$. In one head without the mask ({doc}`Notation </book/notation>`,
# equation {eq}`eq-attention`), the scores of the shuffled input are
#
# $$
# \begin{aligned}
# &(\Pi U W_Q)(\Pi U W_K)^\top d^{-1/2} \\
# &\quad = \Pi\, \bigl( U W_Q W_K^\top U^\top d^{-1/2} \bigr)\, \Pi^\top .
# \end{aligned}
# $$ (eq-order-scores)
#
# The softmax works on each row alone. If the entries of a row are permuted, its weights are permuted in the same way. So the softmax
# commutes with $\Pi$ on either side. The weights become $\Pi A \Pi^\top$, and with the values $\Pi U W_V$ the head returns
#
# $$
# (\Pi A \Pi^\top)(\Pi U W_V) = \Pi\, (A\, U W_V) .
# $$ (eq-order-head)
#
# The two inner permutations cancel, because $\Pi^\top \Pi = 1$: the sum over keys does not depend on their order. Norm, MLP, output map and
# residual sum act on each token alone, so they commute with $\Pi$ too. By induction over the blocks, for the whole model $f$,
#
# $$
# f(\Pi x) = \Pi f(x) .
# $$ (eq-order-equivariance)
#
# A map with this property is {term}`permutation equivariant`. A map with $f(\Pi x) = f(x)$ would be permutation *invariant*.
#
# ### By hand
#
# Take two tokens, $x = (0, \sqrt{\ln 2})$, and one head of width 1 with all matrices equal to 1. The first token has the scores $(0, 0)$
# and the weights $(1/2, 1/2)$, and the second has the scores $(0, \ln 2)$ and the weights $(1/3, 2/3)$. Exchange the tokens, and the two
# outputs are exchanged.

# %%
x = torch.tensor([0.0, np.log(2) ** 0.5], dtype=torch.float64)


def head(x):
    """One head of width 1 with unit matrices."""
    return torch.outer(x, x).softmax(dim=-1) @ x


by_hand = x[1] * torch.tensor([1 / 2, 2 / 3], dtype=torch.float64)
torch.testing.assert_close(head(x), by_hand, rtol=0, atol=1e-15)
torch.testing.assert_close(head(x.flip(0)), by_hand.flip(0), rtol=0, atol=1e-15)

# %% [markdown]
# ### The check
#
# We measure two errors on random bytes and a random shuffle. The first compares $f(\Pi x)$ with $\Pi f(x)$ and must vanish. The second
# compares $f(\Pi x)$ with $f(x)$ and must **not** vanish. The first alone would prove nothing: it also vanishes for a model that always
# returns the same logits.


# %%
def equivariance_error(model, tokens, order, positions=None):
    """Largest entry of |f(Pi x) - Pi f(x)|."""
    moved = model(tokens[:, order], positions) - model(tokens)[:, order]
    return moved.abs().max().item()


def invariance_error(model, tokens, order):
    """Largest entry of |f(Pi x) - f(x)|."""
    return (model(tokens[:, order]) - model(tokens)).abs().max().item()


# %%
generator = torch.Generator().manual_seed(seed)
text = torch.randint(256, (4, n_tokens), generator=generator).to(device)
shuffle = torch.randperm(n_tokens, generator=generator).to(device)
plain = build_model()
numbers["equivariance_error"] = equivariance_error(plain, text, shuffle)
numbers["invariance_error"] = invariance_error(plain, text, shuffle)
print({name: f"{value:.1e}" for name, value in numbers.items()})
assert numbers["equivariance_error"] < 1e-12, "a shuffle only moves the outputs"
assert numbers["invariance_error"] > 1e-3, "and they do move: it is not invariant"

# %% [markdown]
# ```{admonition} Deviation from the source
# :class: warning
# The source says that attention "is permutation equivalent" and "produces the same output regardless of input order". The first is a slip
# for *equivariant*, the second describes *invariance*. No logit of $f(\Pi x)$ differs from that of $\Pi f(x)$ by more than
# {num}`01_order/equivariance_error:.1e`, which is rounding. But one of them differs from the same logit of $f(x)$ by
# {num}`01_order/invariance_error:.2f`, so attention is not invariant ({verdict}`attention-is-permutation-invariant: not reproduced`). Each
# token keeps its own output wherever it moves, so the model cannot tell *dog* as the second word from *dog* as the fifth.
# ```
#
# ## What averaging does to order
#
# The article's statement is true of a model that averages its outputs. Many models reduce the token outputs to one vector, for instance
# to their mean, $\frac{1}{N} \mathbf{1}^\top f(x)$ with $\mathbf{1}$ the vector of ones. A sum does not change when its terms are
# reordered, $\mathbf{1}^\top \Pi = \mathbf{1}^\top$, so
#
# $$
# \mathbf{1}^\top f(\Pi x) = \mathbf{1}^\top \Pi f(x) = \mathbf{1}^\top f(x) .
# $$ (eq-order-invariance)
#
# The pooled model *is* invariant: it sees a bag of words. Our sentence has $5!/2! = 60$ distinct orders. How many different answers does
# a pooled model give?

# %%
from itertools import permutations

orders = sorted(set(permutations(tokens[0].tolist())))
sentences = torch.tensor(orders, device=device)  # [60, 5]


def distinct_answers(model, sentences):
    """Number of different pooled outputs, to eight decimals."""
    return len(torch.unique(model(sentences).mean(dim=1).mul(1e8).round(), dim=0))


distinct = {}
for encoding in compared:
    pooled = build_model(encoding, vocab=len(vocabulary))
    distinct[encoding] = distinct_answers(pooled, sentences)
print(distinct)
numbers["orders"], numbers["distinct_alibi"] = len(orders), distinct["alibi"]
assert distinct["none"] == 1 and len(orders) == 60
assert {distinct[name] for name in ("sinusoidal", "learned", "rope")} == {60}

# %% [markdown]
# Without an encoding all {num}`01_order/orders` orders get the same answer. With a sinusoid, a learned table or RoPE each order gets its
# own. ALiBi gives only {num}`01_order/distinct_alibi` different answers; we explain below why.
#
# ## A causal mask gives position too
#
# A language model must not look ahead, so its mask removes the weights with $j > i$. But "ahead" is a statement about order, and a shuffle
# moves the tokens but not the mask. So the softmax no longer commutes with $\Pi$, the step from {eq}`eq-order-scores` to
# {eq}`eq-order-head` fails, and the test from above must fail too:

# %%
causal = build_model(causal=True)
numbers["causal_equivariance_error"] = equivariance_error(causal, text, shuffle)
print(f"with a causal mask: {numbers['causal_equivariance_error']:.2f}")
assert numbers["causal_equivariance_error"] > 1e-3, "it must notice the shuffle"

# %% [markdown]
# A causal model notices the shuffle. So attention treats a shuffled sentence alike only without a mask
# ({verdict}`attention-is-permutation-equivariant: partly`).
#
# A causal model without an encoding is called {term}`NoPE`. Such models pick up positional information in training
# {cite:p}`haviv2022,kazemnejad2023`. But *how deep* must they be? We keep the last token in place and shuffle only what comes before it.
# Whatever the order of the earlier tokens, the last token sees them all, so the mask removes nothing from its row.


# %%
def last_token_change(n_layers, causal, seed):
    """Largest change of the last token's logits when those before it are shuffled."""
    model = build_model(causal=causal, n_layers=n_layers, seed=seed)
    before = torch.randperm(n_tokens - 1, generator=generator)
    order = torch.cat([before, torch.tensor([n_tokens - 1])])
    return (model(text[:, order.to(device)]) - model(text))[:, -1].abs().max().item()


# %%
depths, seeds = [1, 2, 3, 4], range(n_seeds)
changes = {
    causal: np.array([[last_token_change(n, causal, s) for n in depths] for s in seeds])
    for causal in (False, True)
}
numbers["last_token_change_depth_1"] = float(changes[True][:, 0].max())
numbers["last_token_change_depth_2"] = float(changes[True][:, 1].min())
assert numbers["last_token_change_depth_1"] < 1e-12 and changes[False].max() < 1e-12
assert numbers["last_token_change_depth_2"] > 1e-3

# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.6, 3.3))
looks = (True, "#d55e00", "^", "causal mask"), (False, "#6b6f74", "o", "no mask")
for causal_mask, colour, marker, label in looks:
    values = np.maximum(changes[causal_mask], 1e-17)
    shift = 0.05 if causal_mask else -0.05
    dots = {"marker": marker, "color": colour, "alpha": 0.55, "linestyle": "none"}
    for row in values:
        ax.plot(np.array(depths) + shift, row, **dots)
    middle = np.median(values, axis=0)
    ax.plot(np.array(depths) + shift, middle, color=colour, linewidth=1.2)
    ax.text(4.12, middle[-1], label, color=colour, va="center")
ax.axhspan(1e-17, 1e-13, color=figures.FAINT, alpha=0.13, linewidth=0)
ax.text(1.3, 1e-14, "rounding error", fontsize=9, color=figures.INK)
ax.set(yscale="log", ylim=(1e-17, 30), xticks=depths, xlim=(0.7, 4.9))
ax.set(xlabel="blocks", ylabel="change of the last token's logits")
figures.show(
    fig,
    name="fig-order-depth",
    alt="Change of the last token's logits when earlier tokens are shuffled, on a "
    "logarithmic scale, for one to four blocks. Without a mask the change stays at "
    "rounding error for all depths. With a causal mask it is rounding error for one "
    "block and about one from two blocks on.",
    caption="With a causal mask and one block, the last token does not notice that "
    "the tokens before it were shuffled; with two or more blocks it does. "
    f"Every marker is a random model without an encoding ({n_seeds} seeds), "
    "and the lines join their medians.",
)

# %% [markdown]
# With **one** block the last token's logits change by at most {num}`01_order/last_token_change_depth_1:.1e`, which is rounding: the next
# byte is predicted from a bag of the past. With **two** blocks they change by at least {num}`01_order/last_token_change_depth_2:.2f`. In
# the first block each earlier token sums up what came before *it*. These sums depend on the order, and the second block reads them. A
# NoPE model has to compute position, and that takes a layer.
#
# ## Where position can enter
#
# A causal mask breaks {eq}`eq-order-equivariance` as a side effect. An encoding breaks it on purpose, at one or more of four
# {term}`sites <site>`.

# %% tags=["hide-input"]
fig, ax = diagrams.canvas((7.4, 3.1), x=(-0.1, 12.6), y=(-0.2, 5.0))
steps = (
    (0.0, 2, 1.3, "$E[t]$"),
    (1.9, 2, 1.4, "$x_i$"),
    (4.2, 3, 1.8, "$q_i,\\; k_j$"),
    (4.2, 1, 1.8, "$v_j$"),
    (6.7, 3, 1.5, "$q_i \\cdot k_j$"),
    (8.8, 3, 1.5, "$a_{ij}$"),
    (10.7, 2, 1.3, "$\\sum_j a_{ij} v_j$"),
)
for x, y, across, label in steps:
    diagrams.box(ax, (x, y - 0.42), (across, 0.84), label)
ways = (
    "1.3,2 1.9,2; 3.3,2 4.2,3; 3.3,2 4.2,1; 6,3 6.7,3; 8.2,3 8.8,3; "
    "10.3,3 10.7,2.3; 6,1 10.7,1.7; 12,2 12.55,2"
)
for way in ways.split(";"):
    start, end = (tuple(map(float, point.split(","))) for point in way.split())
    diagrams.arrow(ax, start, end, colour=figures.FAINT)
bold = {"color": figures.POS, "weight": "bold", "fontsize": 10.5}
sites = (
    (2.6, 2.42, "input", "sinusoidal, learned"),
    (5.1, 3.42, "query/key", "RoPE"),
    (7.45, 3.42, "score", "ALiBi"),
)
for x, y, site, who in sites:
    diagrams.arrow(ax, (x, y + 0.75), (x, y + 0.02), colour=figures.POS, width=2.2)
    ax.text(x, y + 0.86, f"{site}\n", ha="center", va="bottom", **bold)
    ax.text(x, y + 0.84, who, ha="center", va="bottom", fontsize=9)
diagrams.arrow(ax, (5.1, -0.12), (5.1, 0.56), colour=figures.POS, width=2.2)
ax.text(5.3, 0.2, "value", va="center", **bold)
ax.text(6.3, 0.2, "none of these encodings", fontsize=9, va="center")
ax.text(9.55, 3.62, "softmax over $j$", ha="center", fontsize=9)
figures.show(
    fig,
    name="fig-order-sites",
    alt="Flow of one attention layer: token embedding, input x, then queries and keys "
    "above and values below; their product gives scores, the softmax gives weights, "
    "the weighted sum of values is the result. Arrows mark four sites: input "
    "(sinusoidal, learned), query/key (RoPE), score (ALiBi) and value (none of these "
    "encodings).",
    caption="Position can enter a transformer at four sites; each is labelled with "
    "the encodings of this chapter that act there. The input site acts once, "
    "the others in every block.",
)

# %% [markdown]
# - **input**: a vector that depends on the index is added to the token's embedding. It comes from sines and cosines {cite:p}`vaswani2017`
#   or from a learned table.
# - **query/key**: RoPE rotates $q_i$ and $k_j$ by angles proportional to their indices {cite:p}`su2021`.
# - **score**: ALiBi subtracts a penalty that grows with $|i - j|$ {cite:p}`press2022`.
# - **value**: a vector is added to the values. None of these four encodings does that; one of {doc}`chapter 3 <03_relative>` does.
#
# Three experiments distinguish these encodings. The models are bidirectional, so that no mask gives them order, and have random weights.
#
# 1. *Tokens alone*: we shuffle the tokens but leave the indices in place. An encoding that contains order must break
#    {eq}`eq-order-equivariance`.
# 2. *Tokens with their positions*: we shuffle both. Every token keeps its index, so equivariance must **return**. A model that uses the
#    order in which its tokens are stored (the order of its rows) fails here.
# 3. *Shift*: we add 7 to every index. A relative encoding sees the same distances, so its outputs must not change.


# %%
def measure(encoding):
    """Errors of the three experiments for one encoding."""
    model = build_model(encoding)
    here = torch.arange(n_tokens, device=device)
    return {
        "encoding": encoding,
        "tokens alone": equivariance_error(model, text, shuffle),
        "with positions": equivariance_error(model, text, shuffle, positions=shuffle),
        "shift by 7": (model(text, here + 7) - model(text, here)).abs().max().item(),
    }


# %%
table = pd.DataFrame([measure(encoding) for encoding in compared])
figures.show_table(
    table,
    caption="Largest change of a logit in each experiment (float64). Values below "
    "1e-12 are rounding.",
    formats=dict.fromkeys(table.columns[1:], ".1e"),
)
errors = table.set_index("encoding")
assert (errors["with positions"] < 1e-12).all(), "order lies in what is handed over"
alone, shift = errors["tokens alone"], errors["shift by 7"]
assert (alone.drop("none") > 1e-3).all() and alone["none"] < 1e-12
assert (shift[["none", "rope", "alibi"]] < 1e-12).all()
assert (shift[["sinusoidal", "learned"]] > 1e-3).all()
numbers |= {f"{name}_equivariance_error": alone[name] for name in compared[1:]}
numbers["worst_error_with_positions"] = errors["with positions"].max()

# %% [markdown]
# For the model without an encoding all three errors are rounding, because it knows nothing about positions. With each of the four encodings
# a shuffle of the tokens alone changes more than their order ({verdict}`position-breaks-the-symmetry: reproduced`). *Sinusoidal* and
# *learned* notice a shift, because they are absolute: each index has a vector of its own. *RoPE* and *ALiBi* do not notice it, because only
# differences of indices reach the scores. Every encoding passes the second experiment, the worst with an error of
# {num}`01_order/worst_error_with_positions:.1e`. So without a mask the indices are a model's only source of order, and the book relies on
# that whenever it gives a model indices it has never seen. (A causal mask is a second source: it depends on the order of the rows, not on
# their indices.)
#
# ## A task that needs order
#
# So far the models were random. What can they *learn*? Here is a very small task that needs order: a sequence of eight symbols holds *A*
# and *B* once each, among four kinds of filler. Did *A* come first? We train a bidirectional model with one block and average its logits
# over the tokens; the first two columns are the two answers. Only the encoding changes; seeds, data and learning rate stay the same.
#
# The test set holds every sequence together with its mirror image, which has the opposite answer. So a model that cannot tell left from
# right scores exactly one half.

# %%
A, B, SYMBOLS, LENGTH = 0, 1, 6, 8


def draw(size, generator):
    """Sequences [size, 8] that hold A and B once each, and whether B came first."""
    x = torch.randint(2, SYMBOLS, (size, LENGTH), generator=generator)
    places = torch.rand(size, LENGTH, generator=generator).argsort(dim=1)[:, :2]
    x.scatter_(1, places, torch.tensor([[A, B]]).expand(size, 2))
    return x.to(device), (places[:, 0] > places[:, 1]).long().to(device)


x_test, _ = draw(300, torch.Generator().manual_seed(10_000))
x_test = torch.cat([x_test, x_test.flip(1)])
y_test = ((x_test == A).long().argmax(1) > (x_test == B).long().argmax(1)).long()
assert y_test.sum() * 2 == len(y_test)

# %% [markdown]
# The book's training loop predicts next tokens. This task has one label per sequence, so it needs its own loop, with the book's optimiser
# and schedule.


# %%
def answers(model, x):
    """Logits of the two answers, [B, 2], averaged over tokens."""
    return model(x).mean(dim=1)[:, :2]


@torch.no_grad()
def accuracy(model):
    return (answers(model, x_test).argmax(dim=1) == y_test).double().mean().item()


# %%
def learn(encoding, seed, every=20):
    """Train one small model; returns (step, test accuracy), now and then."""
    torch.manual_seed(seed)
    streams = Streams.dense(32)
    config = TransformerConfig(streams, 1, 2, encoding, max_length=LENGTH, causal=False)
    model = LanguageModel(config, SYMBOLS).to(device)
    schedule = TrainingConfig(n_steps, 32, LENGTH, learning_rate=1e-2)
    adamw, data = optimiser(model, schedule), torch.Generator().manual_seed(seed)
    curve = [(0, accuracy(model))]
    for step in range(n_steps):
        x, y = draw(32, data)
        for group in adamw.param_groups:
            group["lr"] = schedule.rate(step)
        adamw.zero_grad()
        F.cross_entropy(answers(model, x), y).backward()
        adamw.step()
        if (step + 1) % every == 0:
            curve.append((step + 1, accuracy(model)))
    return np.array(curve)


# %%
seeds = range(seed, seed + n_seeds)
curves = {name: [learn(name, s) for s in seeds] for name in compared}
final = {name: np.array([c[-1, 1] for c in runs]) for name, runs in curves.items()}
for name in ("none", "rope", "alibi"):
    numbers[f"accuracy_{name}"] = float(final[name].mean())
numbers["training_seeds"] = n_seeds

# %% tags=["hide-input"]
fig, axes = plt.subplots(1, 5, figsize=(8.2, 2.7), sharey=True)
for ax, (name, runs) in zip(axes, curves.items(), strict=True):
    look = figures.METHODS[name]
    ax.axhline(0.5, color=figures.FAINT, linewidth=1, linestyle=(0, (2, 2)))
    for curve in runs:
        ax.plot(curve[:, 0], curve[:, 1], color=look.colour, linewidth=1.1, alpha=0.85)
    ax.set_title(look.label, color=look.colour, fontsize=10.5)
    ax.set(ylim=(0.3, 1.03), xticks=[0, n_steps // 2, n_steps])
axes[0].text(n_steps, 0.47, "chance", ha="right", va="top", fontsize=9)
axes[0].set_ylabel("accuracy on the test set")
axes[2].set_xlabel("training steps")
figures.show(
    fig,
    name="fig-order-learning",
    alt="Five panels of test accuracy over training steps, one line per seed, chance "
    "drawn at one half. Sinusoidal, learned and RoPE rise from one half to one. The "
    "model without encoding and the one with ALiBi stay at one half.",
    caption="*Which of two symbols came first?* A bidirectional model with averaged "
    "outputs cannot learn to answer without an encoding, nor with ALiBi, "
    "which does not distinguish left from right. Every line is one of "
    f"{n_seeds} seeds; a step reads 32 sequences.",
)
assert abs(final["none"] - 0.5).max() < 0.02 and abs(final["alibi"] - 0.5).max() < 0.02
assert min(final[name].mean() for name in ("sinusoidal", "learned", "rope")) > 0.9

# %% [markdown]
# Without an encoding the mean accuracy over {num}`01_order/training_seeds` seeds is {num}`01_order/accuracy_none:.3f`, as
# {eq}`eq-order-invariance` predicts. The models with sinusoidal, learned and RoPE positions answer nearly every question; the accuracy of
# RoPE is {num}`01_order/accuracy_rope:.3f`. This task is too small to rank the three.
#
# ### What went wrong: ALiBi
#
# We expected ALiBi to join the three. It scores {num}`01_order/accuracy_alibi:.3f` with every seed, because its penalty $|i - j|$ stays the
# same when a sequence is read backwards. If $\Pi$ is the *reversal*, the argument of {eq}`eq-order-head` applies again: a bidirectional
# ALiBi model is equivariant to reversal. Once its outputs are pooled, a sentence and its mirror image get the same answer. So ALiBi
# distinguishes near from far, but not left from right. That is also why it gave only {num}`01_order/distinct_alibi` answers for
# {num}`01_order/orders` sentences: each sentence shares its answer with its mirror image.
#
# ALiBi was made for causal models, where the mask supplies the direction {cite:p}`press2022`, so the symmetry does no harm there. RoPE
# rotates by the signed $i - j$ and needs no mask to distinguish left from right.

# %%
reversal = torch.arange(n_tokens - 1, -1, -1, device=device)
mirrored = {}
for name in ("alibi", "rope"):
    mirrored[name] = equivariance_error(build_model(name), text, reversal)
    print(f"reversal, {name}: {mirrored[name]:.1e}")
assert mirrored["alibi"] < 1e-12 and mirrored["rope"] > 1e-3
up_to_mirror = {min(sentence, sentence[::-1]) for sentence in orders}
assert distinct["alibi"] == len(up_to_mirror)

# %% [markdown]
# ## What to take away
#
# 1. Self-attention without positions and without a mask is permutation **equivariant**: a shuffle moves the outputs and changes none of
#    them. It becomes **invariant**, a bag of words, when the outputs are pooled, for instance averaged.
# 2. A causal mask alone breaks this, but the last token notices order only from the **second** block on.
# 3. An encoding puts order back at one or more of four sites. Absolute encodings know the index, RoPE knows the signed distance, and
#    bidirectional ALiBi knows the distance without its sign.
#
# **Limits.** The equivariance results are exact and hold for any weights; float64 shows them to rounding. The training task is tiny, with
# one block and one learning rate. It shows with which encodings a model can learn the task, but it does not rank them and says nothing
# about text.
#
# **What would change our mind.** An error above rounding when we shuffle tokens together with their positions: then order would enter
# somewhere other than through the positions. Or a bidirectional model without an encoding that beats chance on the mirrored test set: then
# {eq}`eq-order-invariance` or its code would be wrong.
#
# ## Exercises
#
# Try each before you unfold its solution. Every solution ends with a check that fails if it is wrong.
#
# **1. (medium)** Replace the mean by the output of the *first* token, as encoders with a classification token do. Which shuffles does a
# model without an encoding still not notice? Write the property as an equation and check it.

# %% tags=["hide-cell"]
# Solution. f(Pi x)_0 = f(x)_0 for every Pi that keeps token 0 in place: the rest is
# still a bag.
rest = 1 + torch.randperm(n_tokens - 1, generator=generator)
keeps_first = torch.cat([torch.tensor([0]), rest]).to(device)
first = plain(text)[:, 0]
torch.testing.assert_close(plain(text[:, keeps_first])[:, 0], first, rtol=0, atol=1e-12)
assert (plain(text[:, shuffle.roll(1)])[:, 0] - first).abs().max() > 1e-3

# %% [markdown]
# **2. (medium)** A packed batch holds two documents of equal length in one row, with the indices of each starting at 0. Without a mask
# between them, can a model with *learned* positions distinguish "document 1, then document 2" from the reverse? Predict, then check with
# `positions`.

# %% tags=["hide-cell"]
# Solution. No: exchanging the documents moves tokens with their positions, and
# experiment 2 says that nothing else is seen.
half = n_tokens // 2
packed = torch.arange(half, device=device).repeat(2)
exchange = torch.cat([torch.arange(half, 2 * half), torch.arange(half)]).to(device)
table_model, row = build_model("learned"), text[:, : 2 * half]
one, other = table_model(row, packed), table_model(row[:, exchange], packed)
torch.testing.assert_close(other, one[:, exchange], rtol=0, atol=1e-12)

# %% tags=["hide-cell"]
chapter_numbers.publish("01_order", numbers, profile=profile)

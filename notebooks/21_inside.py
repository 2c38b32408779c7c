# %% [markdown]
# # 21. Inside: what a separated model does
#
# **Finding.** A separated model keeps position and *content* in different columns. An index that training never showed can reach the
# content in one way only: by changing where the attention heads look. If every head keeps looking where it looks at index 0, the content
# does not change by a single bit ({verdict}`only-the-routing-hears-a-new-index: held`).
#
# In normal use, however, the heads are free. Past the trained length they look elsewhere, and the content of the last layer moves by
# {num}`21_inside/drift_five_separated:.2f` of its norm, on average over the five rules of {doc}`chapter 12 <12_extrapolators>`, which give
# new indices a vector. Between two trained indices it moves by {num}`inside/separated-learned/drift/trained:.2f`. The slides behind this
# book promise that the content keeps its integrity; our records contradict this
# ({verdict}`semantic-integrity-is-preserved: not reproduced`).

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from sepnb import analysis, experiments
from sepnb.data import text
from sepnb.encodings import NTKByParts
from sepnb.evaluation.losses import evaluate, sliding
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.inspection import FAR, SHOWN
from sepnb.experiments.methods import model_config, run_of
from sepnb.models import LanguageModel, TransformerConfig, attention_hook
from sepnb.models.fast.packed import packed, rounded
from sepnb.plots import figures, moving, shapes
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable, text_of
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, adapt, train
from sepnb.training.positions import RandomOffset

figures.use_style()
numbers = {}

# %% tags=["hide-input"]
records = experiments.get("inside")
table = records.table(profile)
of = RunTable(table)
SEPARATED = ("separated-learned", "separated-sinusoidal", "strict-learned")
DENSE = ("none", "learned", "sinusoidal", "rope")
FIVE = ("sinusoidal", "fourier", "cyclic", "learned", "alibi")
RULES = figures.RULES


COLUMNS = "method seed state depth target stream heads rule start weights component"
COLUMNS += " relative distance unseen accuracy share values positions components_2"


def rows(kind: str, **wanted) -> pd.DataFrame:
    """The rows of one kind with these values; empty if nothing was run."""
    found = records.rows(profile, kind).reindex(columns=COLUMNS.split())
    return found[found[list(wanted)].eq(pd.Series(wanted)).all(axis=1)]


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


def told(value: float, form: str = ".2f") -> str:
    """A number for a caption, or that there is none."""
    return "not run" if np.isnan(value) else text_of([value], form)


# %% tags=["hide-input"]
fig, ax = plt.subplots(figsize=(6.8, 3.7))
labels = {rule: RULES[rule].label for rule in (*FIVE, "clamp")}
labels |= {"wrap": "wrap", "trained": "trained index"}
drifts = {
    says: [
        (of.values(method, f"drift/{rule}"), figures.METHODS[method])
        for method in ("learned", "separated-learned", "strict-learned")
    ]
    for rule, says in labels.items()
}
figures.seed_rows(ax, drifts, interval=False, size=5.5, labelled=True)
ax.set(xlabel="drift at the last depth (share of the content's norm)")
ax.set_xlim(0)
fig.legend(loc="outside upper center", ncols=3, columnspacing=1, handletextpad=0.2)
for kind, method in {"separated": "separated-learned", "dense": "learned"}.items():
    drift = np.mean([of.mean(method, f"drift/{rule}") for rule in FIVE])
    numbers[f"drift_five_{kind}"] = chapter_numbers.mean_of([drift])
figures.show(
    fig,
    name="fig-inside-rules",
    alt="Dot plot of the drift of the content at the last depth, one row per rule for "
    "unseen positions, with dense, separated and strict models of a learned table, one "
    "tick per seed. The separated model lies near 0.6 under most rules and near 0.2 at "
    "trained indices; the dense one lies far to the right under the cyclic rule.",
    caption="Past the trained length the content moves under every rule, in separated "
    "models too. Each marker says how far the content of a text moves when "
    f"the text starts around {', '.join(map(str, FAR))} times the trained "
    "length instead of at 0, as a share of its norm. *Wrap* repeats the table. "
    "Last row: the text starts half-way "
    "inside the trained length, where the strict model already moves by "
    f"{told(of.mean('strict-learned', 'drift/trained'))}. Ticks: every seed.",
)

# %% [markdown]
# > **Question.** What happens inside a separated model, layer by layer and head by head, when it meets an index that it has never seen? And
# > what do its two streams hold?
#
# ```{admonition} Before you start
# :class: note
# - **Time**: about 40 s of one CPU core; nothing is downloaded. The records on novels: `sepnb run inside`, 30 runs of about
#   two minutes on one core.
# - **You need**: {doc}`chapter 8 <08_two_streams>` for the streams, {doc}`chapter 10 <10_strict>` for the strict model,
#   {doc}`chapter 12 <12_extrapolators>` for the rules, {doc}`chapter 13 <13_slow_down>` for slowing down.
# - **You will learn**: to tell a failure of the index from one of the length; to split a score by streams; to probe a model without fooling
#   yourself.
# - **Claims tested** (see {doc}`/book/claims`): six. Their rules were committed before the first record.
# ```
#
# ## A model that breaks and heals
#
# **Watch a small separated model break, and heal it.** Its text repeats two lines of code for four trained lengths. Inside the trained
# length, L = 64 bytes, the model reads them at {num}`21_inside/line_first:.1f` bits per byte. Past L the same lines cost
# {num}`21_inside/line_rest:.1f`, although nothing in the text is new. Now move *Slow positions down* to *8 times slower*, and the thick
# line to the right of L comes down to {num}`21_inside/slowed_rest:.1f`.

# %% tags=["hide-input"]
L, STEPS, BATCH, STRIDE = 64, 240, 16, 8
LONG, AWAY = 8 * L, 2 * L
BANDS = {"alpha": 0.5, "beta": 4}
library = text.load("sympy")
config = TransformerConfig(
    Streams(pos=16, sem=48), 2, 4, "sinusoidal", mode="strict", max_length=L
)


def trained(positions=None):
    """A tiny strict model that reads at indices from 0 on, or where a sampler says,
    with its weights rounded as the page has them."""
    torch.manual_seed(seed)
    model = LanguageModel(config)
    schedule = TrainingConfig(STEPS, BATCH, L, 8e-3, positions=positions)
    batches = lm.windows_of(library.train, schedule, seed)
    train(model, batches, schedule, device=device)
    return rounded(model).cpu()


def slowed(model, factor):
    """The same weights at slowed positions, with log-n scaling of the logits."""
    return model.extended(extension=NTKByParts(factor, L, **BANDS), log_scale=True)


models = {"zero": trained(), "random": trained(RandomOffset(LONG + L))}
training = np.concatenate([document.data for document in library.train.documents])
tuning = {"length": LONG, "steps": 60, "batch_size": 2, "learning_rate": 1e-2}
tuned = adapt(slowed(models["zero"], 8), training, seed=seed, device=device, **tuning)
tuned = rounded(tuned).cpu()
masks = models["zero"].parts()
after = dict(tuned.named_parameters())
for weight_name, before in models["zero"].named_parameters():
    content = masks["content"][weight_name]
    assert torch.equal(after[weight_name][content], before[content])
held_out = text.windows(library.test, length=LONG, per_document=LONG).tokens
held_out = held_out[:: max(1, len(held_out) // 20)][:20]

# %% tags=["remove-input"]
document = held_out[4]
repeated = ("    if x is None:\n        return None\n" * 7)[: 4 * L]
texts = [
    [repeated, "two lines, again and again, 4 L"],
    [bytes(document[:LONG].tolist()).decode(errors="ignore"), "held-out code, 8 L"],
    ["Caf\u00e9, \u03b1 and \u03b2: two bytes each", "bytes above 127"],
]
panel = {
    "trained from index 0": (models["zero"], L),
    "trained at random starts": (models["random"], LONG + L),
    "from index 0, position weights tuned 8 times slower": (tuned, L),
}
line = np.frombuffer(repeated.encode(), np.uint8)[None].astype(np.int64)
readers = {"slowed": slowed(models["zero"], 8), "tuned": tuned}
for name, model in {"line": models["zero"], **readers}.items():
    bits = evaluate(model, line).bits[0]
    numbers[f"{name}_rest"] = bits[L:].mean()
    if name != "slowed":
        numbers[f"{name}_first"] = bits[:L].mean()
# The text that stands there first shows the point: slowed down, the model reads better.
assert numbers["line_rest"] > numbers["slowed_rest"] + 1 > numbers["line_first"] + 1
moving.show(
    "model",
    {
        "models": [
            {"says": says, "packed": packed(model), "trained": reach}
            for says, (model, reach) in panel.items()
        ],
        "texts": texts,
        "length": L,
        "bands": BANDS,
    },
    name="moving-model",
    alt="A panel that runs three small models: a text and its length, a start index, "
    "by how much positions are slowed down, a rule of evaluation and a head are "
    "chosen; shown are the loss of every byte, the guesses for the next one, and the "
    "parts of the head's scores.",
    instead="the first figure below for the losses, and the second for the scores",
)

# %% [markdown]
# The upper chart has a point for every byte, and under it are the guesses for the next one. The maps show one head: first the parts of its
# scores, query by key, then the weights that the softmax makes of their sum.
#
# Your browser runs three *strict* models (their position heads see positions only), trained on Python code for a few seconds. The first
# read every text from index 0, the second from a random index below 8 L. The third is the first model with its position weights
# ({num}`21_inside/share:.0%` of all weights) tuned at positions eight times slower.
#
# - **How slow?** A factor of 2 mends the lines up to 2 L and no further, because only those indices then look like indices below L. A
#   larger factor mends more, but costs more in the first L bytes, perhaps because neighbours get harder to tell apart, perhaps because such
#   slow positions are new. The third model, tuned at factor 8, reads the lines at {num}`21_inside/tuned_first:.1f` bits up to L and at
#   {num}`21_inside/tuned_rest:.1f` past it.
# - **Index or length?** Set *Length* to L and move *Start index* past L. The text is as short as in training, and only its indices are new.
#   The first model breaks at once, and the second does not notice.

# %% tags=["hide-input"]
losses, by_index = {}, {}
short = held_out[:, : L + 1]
for name, model in models.items():
    losses[name, "plain"] = evaluate(model, held_out).bits
    losses[name, "masked"] = evaluate(model.extended(window=L), held_out).bits
    losses[name, "reread"] = sliding(model, held_out, window=L, stride=STRIDE).bits
    near, far = (
        evaluate(model, short, positions=np.arange(L) + start).bits.mean()
        for start in (0, AWAY)
    )
    numbers[f"inside_{name}"], by_index[name] = near, far - near
    for rule in ("plain", "masked"):
        more = losses[name, rule] - losses[name, "reread"]
        numbers[f"{rule}_{name}"] = more[:, L:].mean()
for name, reader in readers.items():
    losses["zero", name] = evaluate(reader, held_out).bits
    numbers[f"inside_{name}"] = losses["zero", name][:, :L].mean()
    more = losses["zero", name] - losses["zero", "reread"]
    numbers[f"{name}_zero"] = more[:, L:].mean()
position = sum(int(mask.sum()) for mask in masks["position"].values())
numbers["share"] = position / sum(one.numel() for one in after.values())
assert by_index["zero"] > 0.4 > 0.1 > abs(by_index["random"])
assert min(numbers["plain_zero"], numbers["masked_zero"]) > 0.5
assert 0.7 > numbers["plain_random"] > numbers["masked_random"] + 0.05
assert numbers["plain_zero"] > numbers["slowed_zero"] + 0.3
assert numbers["slowed_zero"] > numbers["tuned_zero"] + 0.1

# %% tags=["hide-input"]
READ = {
    "plain": ("without changes", "#d55e00", "-"),
    "masked": ("window mask", "#7b5ea7", (0, (5, 2))),
    "slowed": ("8 times slower", "#0072b2", (0, (5, 2))),
    "tuned": ("and position weights tuned", "#0072b2", "-"),
    "reread": ("sliding window", "#009e73", (0, (1, 1.2))),
}
PANELS = {
    "trained from index 0": ("zero", "plain masked reread"),
    "the same, slowed down": ("zero", "slowed tuned reread"),
    "trained at random starts": ("random", "plain masked reread"),
}
PIECE = 32
at = np.arange(PIECE / 2, LONG, PIECE)
fig, axes = plt.subplots(1, 3, figsize=(8.6, 3.6), sharey=True)
for ax, (says, (name, ways)) in zip(axes, PANELS.items(), strict=True):
    for way in ways.split():
        label, colour, dash = READ[way]
        bits = losses[name, way].reshape(len(held_out), -1, PIECE).mean(axis=(0, 2))
        ax.plot(at, bits, color=colour, linestyle=dash, label=label)
    shapes.mark(ax, L, f"L = {L}")
    ax.set(xlabel="index", xticks=np.arange(0, LONG + 1, 2 * L), ylim=(3, 5.6))
    ax.set_title(says, pad=18)
    ax.legend(loc="upper left", fontsize=8.5)
axes[0].set_ylabel("bits per byte")
figures.show(
    fig,
    name="fig-page-rules",
    alt="Three panels of loss against index up to eight trained lengths. Left, trained "
    "from index 0: as trained and with a window mask the loss jumps past L and stays "
    "high; the sliding window stays level. Middle, the same weights at slowed "
    "positions: the loss no longer jumps at L and rises slowly; with tuned position "
    "weights it stays closer to the sliding window. Right, trained at random starts: "
    "the window mask lies close to the sliding window, and without it the loss rises "
    "a little.",
    caption="Past L the model trained from index 0 fails, and a window mask does not "
    "save it. Slower positions help, and more so once the position weights are tuned "
    "to them. Random starts in training help too. The sliding window starts again at "
    f"index 0 for every {STRIDE} bytes. Computed on this page with one seed: "
    f"{len(held_out)} held-out files, means over pieces of {PIECE} bytes.",
)

# %% [markdown]
# New indices do more harm here than a longer text. In this model a window mask, which removes the far keys and keeps the new indices,
# leaves most of the extra loss. Slower positions ({eq}`eq-slow-parts`, with attention sharpened in longer texts) bring the loss down
# without any training, and tuned position weights bring it down further. Each remedy costs something inside L, but you can read short texts
# without the tuned part.
#
# | trained | read | bits per byte inside L | past L, above the sliding window |
# |---|---|---|---|
# | from index 0 | without changes | {num}`21_inside/inside_zero:.2f` | {num}`21_inside/plain_zero:.2f` |
# | | with a window mask | the same | {num}`21_inside/masked_zero:.2f` |
# | | 8 times slower | {num}`21_inside/inside_slowed:.2f` | {num}`21_inside/slowed_zero:.2f` |
# | | 8 times slower and tuned | {num}`21_inside/inside_tuned:.2f` | {num}`21_inside/tuned_zero:.2f` |
# | at random starts | without changes | {num}`21_inside/inside_random:.2f` | {num}`21_inside/plain_random:.2f` |
# | | with a window mask | the same | {num}`21_inside/masked_random:.2f` |
#
# ### A score, taken apart
#
# In a strict model a head that writes to the content reads both streams, so its score is a sum of four parts:
#
# $$
# S_{ij} = \frac{(q^{\text{pos}}_i + q^{\text{sem}}_i) \cdot (k^{\text{pos}}_j + k^{\text{sem}}_j)}{\sqrt d}
# = \sum_{a, b \,\in\, \{\text{pos},\, \text{sem}\}} \frac{q^{a}_i \cdot k^{b}_j}{\sqrt d} .
# $$ (eq-page-parts)
#
# A softmax ignores what is the same for all keys. So we subtract from each part its mean over the keys that the query sees. The root mean
# square of the rest says how strongly this part tells keys apart.


# %%
@torch.no_grad()
def parts_of(model, layer, place, tokens, positions):
    """The four parts of the scores of a sem head, `[B, N, N]` each, by the streams of
    query and key; `place` counts the sem heads."""
    block = model.transformer.blocks[layer]
    states = analysis.residual_states(model, tokens, positions)
    u = block.attention_norm.parts(states[layer])
    group, weight = block.attention.groups[-1], block.attention.query_key[-1].weight
    d = config.head_width
    W_q, W_k = weight.unflatten(0, (2, group.n_heads, d))[:, place]
    q = {name: u[name] @ W_q[:, at].T for name, at in group.reads.items()}
    k = {name: u[name] @ W_k[:, at].T for name, at in group.reads.items()}
    return {(a, b): q[a] @ k[b].mT / d**0.5 for a in q for b in k}


VISIBLE = torch.ones(L, L, dtype=torch.bool).tril()


def centred(part):
    """A part less its mean over the keys that a query sees."""
    means = (part * VISIBLE).sum(-1) / VISIBLE.sum(-1)
    return part - means[..., None]


def spread(part):
    """The root mean square of what is left."""
    return centred(part)[..., VISIBLE].square().mean().sqrt().item()


def alike(part, other):
    """The correlation of two parts, both less the means of their rows."""
    pair = [centred(one)[..., VISIBLE].flatten() for one in (part, other)]
    return torch.corrcoef(torch.stack(pair))[0, 1].item()


# %% [markdown]
# The softmax of their sum must give the model's own attention weights:

# %%
page_tokens = torch.from_numpy(held_out[:, :L])
here = torch.arange(L)
kept = {}


def keep(layer, heads, compute):
    kept[layer, heads] = compute()
    return kept[layer, heads]


with torch.no_grad(), attention_hook(models["zero"], keep):
    models["zero"](page_tokens)
for layer in (0, 1):
    summed = sum(parts_of(models["zero"], layer, 1, page_tokens, here).values())
    weights = summed.masked_fill(~VISIBLE, -torch.inf).softmax(-1)
    torch.testing.assert_close(weights, kept[layer, (1, 2, 3)][:, 1])

# %% tags=["hide-input"]
point, word = ("pos", "pos"), ("sem", "sem")
slower = slowed(models["zero"], 4)
home, far, slow = (
    parts_of(model, 0, 0, page_tokens, here + start)
    for model, start in ((models["zero"], 0), (models["zero"], AWAY), (slower, AWAY))
)
numbers["content_zero"] = spread(home[word])
assert numbers["content_zero"] == spread(far[word]) == spread(slow[word])
numbers["points_zero_near"], numbers["points_zero_far"] = map(
    spread, (home[point], far[point])
)
assert numbers["points_zero_far"] < 0.6 * numbers["points_zero_near"]
numbers["alike_far"] = alike(far[point], home[point])
numbers["alike_slowed"] = alike(slow[point], home[point])
assert numbers["alike_slowed"] > 0.5 > 0.3 > numbers["alike_far"]
ROWS = {"from index 0": home, f"from index {AWAY}": far}
ROWS[f"{AWAY}, 4 times slower"] = slow
fig, axes = plt.subplots(3, 4, figsize=(8.6, 6.6))
for row, (says, found) in zip(axes, ROWS.items(), strict=True):
    for ax, ((a, b), part) in zip(row, found.items(), strict=True):
        drawn = centred(part[4]).masked_fill(~VISIBLE, torch.nan)
        image = shapes.heat_map(ax, drawn.numpy(), reach=8)
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"{a} · {b}: {spread(part[4]):.1f}", fontsize=10)
    row[0].set_ylabel(f"{says}\nqueries", fontsize=10)
for ax in axes[-1]:
    ax.set_xlabel("keys")
fig.colorbar(image, ax=axes, label="score, minus its row's mean", shrink=0.7)
figures.show(
    fig,
    name="fig-page-parts",
    alt="Three rows of four triangular maps of the parts of a head's scores, query by "
    "key: from index 0 the part of position with position is strong and the others are "
    "weak; from twice the trained length it is weak too; with positions slowed down "
    "its band along the diagonal is back, broader and weaker. The part of content with "
    "content is the same map three times.",
    caption="Past L the part that reads only positions loses its band (middle row), "
    "and slower positions bring the band back (bottom row). The part that "
    "reads only the text is the same in all three rows. Layer 1, head 2 of "
    "the model trained from index 0, on one text that begins at index 0 (top "
    "row), at 2 L (middle), and at 2 L with positions 4 times slower "
    "(bottom). In the titles: stream of the query, stream of the key, root "
    "mean square.",
)

# %% [markdown]
# When the text begins at index 0, the head of the figure goes by position: the part that reads only positions has a root mean square of
# {num}`21_inside/points_zero_near:.1f`, the part that reads only the text {num}`21_inside/content_zero:.1f`. When the text begins at 2 L,
# the position part falls to {num}`21_inside/points_zero_far:.1f`. The head does not look at a wrong place; it stops preferring recent
# bytes.
#
# With positions 4 times slower the head prefers recent bytes again, though less sharply. The correlation of its position part with the one
# from index 0 is then {num}`21_inside/alike_slowed:.2f`; without slowing it is {num}`21_inside/alike_far:.2f`.
#
# **Doubt.** These models were trained for seconds with one seed, so this is a demonstration and not a verdict. And the parts are this clean
# only in the first layer, because the second layer reads what the first has mixed. The rest of this chapter studies larger models.
#
# ## Does text leak into the position stream?
#
# **Yes, through the attention weights. Training makes the leak smaller but does not close it.** Values, norms and MLPs keep the streams
# apart, but attention weights are computed from both. So a change of the text can change where a position head looks, and with it the pos
# stream. {doc}`Chapter 8 <08_two_streams>` found this leak in random models, and the figure compares it before and after training. A
# *relative* leak of 1 means that the pos stream depends as much on the text as on the positions.

# %% tags=["hide-input"]
leak = rows("leak", weights="live", target="pos")
fig, ax = plt.subplots(figsize=(6.8, 3.3))
largest = {}
for method in SEPARATED[:2]:
    for state, dash in (("initial", (0, (1, 1.5))), ("trained", "-")):
        look = figures.METHODS[method]
        own = leak[(leak.method == method) & (leak.state == state)]
        line = look.line(label=f"{look.label}, {state}", linestyle=dash)
        means = draw(ax, own, "relative", seeds=0.3, **line)
        largest[method, state] = means.max()
ax.set_yscale("log")
by_depth(ax, "blocks passed", ylabel="relative leak, sem → pos")
figures.label_lines(ax)
first, last = (
    told(largest["separated-learned", state]) for state in ("initial", "trained")
)
figures.show(
    fig,
    name="fig-inside-leak",
    alt="Relative derivative of the pos stream by the text, on a log scale, against "
    "blocks passed; dotted before training, solid after it, one thin line per seed. In "
    "both separated models the solid lines lie below the dotted ones.",
    caption="Training shrinks the leak of text into the pos stream but does not "
    f"remove it: the largest value is {first} before training and {last} after "
    "it (separated learned). Both inputs are disturbed by the same share of "
    "their size, and the change caused by the text is divided by the change "
    "caused by the positions. The leak of the strict variant is zero, which a "
    "log scale cannot show.",
)

# %% [markdown]
# **Doubt.** The leak says what a *small* change of the text would do, and real texts differ by more. So a section below looks for bytes in
# the pos stream.
#
# ## What a new index does to the content
#
# **A new index acts on the content only by changing where the heads look.** Take a text of half the trained length and let it start at
# another index. Its length and its distances are familiar; only its indices are new. The *drift* after $l$ blocks is how far the content
# $x^{(l)}$ has moved from where it is when the text starts at 0:
#
# $$
# \delta_l(s) = \frac{\lVert x^{(l)}(s) - x^{(l)}(0) \rVert_F}{\lVert x^{(l)}(0) \rVert_F} .
# $$ (eq-inside-drift)
#
# In a separated model the content is the sem stream. With every head held where it looks at start 0, its drift must be zero to the last
# bit. In a dense model the content is the whole state, and this state moves even with the heads held, because the position embedding is
# part of it.

# %%
run = run_of("demo", "smoke", "separated-learned", seed, 4e-3, steps=120)
assert run.data.name == library.name
model, length = run.build(), run.training.length
train(model, run.batches(), run.training, device=device)
windows = text.windows(library.test, length=length, per_document=2 * length).tokens
half = torch.arange(length // 2)
beginning = torch.from_numpy(windows[:48, : len(half)])

# %%
there, moves = half + 4 * length, {}
readers = model.eval(), model.extended("clamp")
torch.manual_seed(seed)
dense = LanguageModel(model_config("sinusoidal")).to(device).eval()
for name, (near, far) in {"separated": readers, "dense": (dense, dense)}.items():
    at_home = analysis.residual_states(near, beginning)[-1]["sem"]
    moved = analysis.residual_states(far, beginning, there)[-1]["sem"]
    still, held = (
        analysis.held_attention_states(far, beginning, at)[-1]["sem"]
        for at in (half, there)
    )
    moves[name] = analysis.drift(moved, at_home), analysis.drift(held, still)
numbers["live_drift"], numbers["live_drift_held"] = moves["separated"]
assert numbers["live_drift_held"] == 0.0
assert moves["dense"][1] > 1e-3
for name, (live, held) in moves.items():
    print(f"{name}: drift {live:.3f}, with attention held {held:.3f}")

# %% [markdown]
# With attention held, the drift of this small separated model is {num}`21_inside/live_drift_held:.1f`; with attention free it is
# {num}`21_inside/live_drift:.2f`. All models of novels agree ({verdict}`only-the-routing-hears-a-new-index: held`). So nothing in the
# content itself has to be extrapolated. But in normal use the heads are free, and much of their attention moves to other tokens.

# %% tags=["hide-input"]
routing = rows("routing", method="separated-learned")
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), sharey=True)
elsewhere = {}
for ax, heads in zip(axes, ("pos", "sem"), strict=True):
    ax.set(xlabel="block", title=f"heads that write to {heads}", ylim=(0, 1.03))
    own = routing[(routing.heads == heads) & (routing.start > 0)]
    for rule, look in RULES.items():
        line = look.line(markersize=3.5, linestyle="-")
        draw(ax, own[own.rule == rule], "distance", shift=1, **line)
    dotted = {"color": figures.INK, "linestyle": (0, (2, 2)), "linewidth": 1.2}
    among = own[own.rule == "trained"]
    draw(ax, among, "distance", shift=1, label="trained index", **dotted)
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
    caption="Past the trained length the heads of the separated model look elsewhere. "
    "Each point is the share of attention that has moved to other tokens (total "
    f"variation distance) near {SHOWN} times that length. Mean over the five rules: "
    f"position heads {told(elsewhere['pos'])}, sem heads {told(elsewhere['sem'])}. "
    "Dotted: at trained indices. Means over seeds.",
)

# %% [markdown]
# Does separation at least steady the content, compared with a dense model? Under the Fourier and the cyclic rule it does; the other three
# are open (exploratory).
#
# **Doubt.** A small drift is not good in itself: a model that ignores the index has none. The drift also counts directions that the output
# ignores.
#
# ## Where is position written?
#
# **Position is written in the pos stream and hardly in the sem stream. A dense model without any encoding computes it too.** We look with a
# *linear probe*, a ridge regression from a state to the index. It is fitted on some documents and scored on others. The score $R^2$ is 1
# for a perfect reading, 0 for always guessing the mean, and negative for worse than that.
#
# ### What went wrong: a probe that reads positions out of noise
#
# Scoring on unseen documents is not enough. A position embedding is the same in every document, so a probe can learn its rows by heart. As
# an example, we take 64 random rows, in which nothing grows with the index, and add a little noise that differs from text to text.

# %%
generator = torch.Generator().manual_seed(seed)
rough = torch.randn(64, 32, generator=generator)
noisy = [torch.randn(20, 64, 32, generator=generator) for _ in range(2)]
fit_on, score_on = (rough + 0.1 * noise for noise in noisy)
index = torch.arange(64.0)
fitted = torch.arange(64) % 4 != 2  # three positions of four


def r_squared(fit: torch.Tensor, score: torch.Tensor, at, ask) -> float:
    """Fit the index at positions `at`, score it at positions `ask` of other texts."""
    known = index[at].repeat(len(fit))[:, None]
    said = analysis.fit_probe(fit[:, at].flatten(0, 1), known)(score[:, ask])[..., 0]
    return analysis.r_squared(said, index[ask].expand_as(said))


every = torch.ones(64, dtype=torch.bool)
by_heart = r_squared(fit_on, score_on, every, every)
really = r_squared(fit_on, score_on, fitted, ~fitted)
numbers["random_table_known"] = by_heart
assert by_heart > 0.2 > 0 > really
print(f"known positions {by_heart:.2f}, unseen positions {really:.2f}")

# %% [markdown]
# At positions that it was fitted on, the probe explains {num}`21_inside/random_table_known:.0%` of the variance of the index, in texts that
# it never saw. At other positions it is worse than guessing the mean. Our first draft had only the first score, and by that score every
# table looks like a ruler. From here on we score on **unseen documents and unseen positions**. To claim that something can *not* be read,
# we test at known positions, where the probe's task is easiest.

# %% tags=["hide-input"]
BEFORE = {"label": "_", "marker": "", "linestyle": (0, (1, 2)), "linewidth": 1}
probes = rows("position probe", target="index")
probes = probes.assign(unseen=probes.unseen.clip(lower=-0.25))
fig, axes = plt.subplots(1, 3, figsize=(9.4, 3.6), sharey=True)
panels = (
    (axes[0], "joint", DENSE, "dense"),
    (axes[1], "pos", SEPARATED, "pos stream"),
    (axes[2], "sem", SEPARATED, "sem stream"),
)
for ax, stream, methods, title in panels:
    for method in methods:
        own = probes[(probes.method == method) & (probes.stream == stream)]
        before, look = own[own.state == "initial"], figures.METHODS[method]
        afterwards = own[own.state == "trained"]
        draw(ax, afterwards, "unseen", seeds=0.25, **look.line(markersize=4))
        if method in ("none", "separated-learned"):
            draw(ax, before, "unseen", **look.line(**BEFORE))
    ax.axhline(0, color=figures.FAINT, linewidth=1)
    by_depth(ax, title=title, ylim=(-0.27, 1.03))
    figures.label_lines(ax, fontsize=8.5)
axes[0].set_ylabel("$R^2$ of the index")
own = [told(of.mean("separated-learned", f"index/{one}")) for one in ("pos", "sem")]
none, rope = (told(of.mean(name, "index/joint")) for name in ("none", "rope"))
figures.show(
    fig,
    name="fig-inside-position",
    alt="Three panels of R squared of a linear probe for the index against depth: "
    "dense models, the pos stream and the sem stream of separated models, one thin "
    "line per seed; dotted lines before training.",
    caption="A linear probe reads the index from the pos stream and hardly from the "
    "sem stream, in unseen documents and at unseen positions. Best over depths: no "
    f"encoding {none}, RoPE {rope}; separated learned: pos stream {own[0]}, sem stream "
    f"{own[1]}. Values below {told(-0.25)} are drawn there; dotted: before training.",
)

# %% [markdown]
# The sem stream hardly shows the index ({verdict}`content-hides-the-position: held`). But a probe finds it in a dense model *without* an
# encoding ({verdict}`position-is-readable-without-an-encoding: held`), whose input holds no position {cite:p}`haviv2022,kazemnejad2023`.
# The causal mask may be enough: the first token averages over itself alone, the hundredth over a hundred, and an average over more tokens
# is smaller and steadier.
#
# **Doubt.** What a linear probe misses may be written in another way. And what it finds inside the trained length need not *continue* past
# it.
#
# ## Is there text in the position stream?
#
# **Very little, but a probe can still read it.** Only {num}`inside/separated-learned/text/pos:.2g` of the variance of the trained pos
# stream lies between texts. But a weak signal can be readable. So probes name the current and the previous byte from the whole stream, and
# then again after the mean of each position is subtracted, which makes the text stand out. The baseline is the *majority rate*: how often
# one is right who always names the most frequent byte.

# %% tags=["hide-input"]
probed = rows("byte probe", method="separated-learned")
looks = {
    "pos": (figures.POS, "-", "o"),
    "pos less position": (figures.MIXED, (0, (4, 1.5)), "s"),
    "sem": ("#a87400", "-", "^"),
}
fig, axes = plt.subplots(1, 2, figsize=(8.2, 3.3), sharey=True)
for ax, target in zip(axes, ("current", "previous"), strict=True):
    own = probed[probed.target == target]
    for stream, (colour, dash, marker) in looks.items():
        look = {"color": colour, "linestyle": dash, "marker": marker}
        name = stream.replace("less position", "minus mean")
        draw(ax, own[own.stream == stream], "accuracy", label=name, **look)
    by_depth(ax, title=f"the {target} byte", ylim=(0, 1.03))
    ax.axhline(own[own.stream == "majority"].accuracy.mean(), color=figures.FAINT)
    figures.label_lines(ax, fontsize=8.5)
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
    caption="A probe names bytes from the pos stream of separated learned a little "
    "better than the majority rate (grey line), and far better from the sem stream. "
    f"Gain over that rate at the best depth and target: pos {pos_gain}, pos without "
    f"the mean of each position {rest_gain}, sem {sem_gain}. Means over seeds.",
)

# %% [markdown]
# So our hypothesis that the pos stream holds almost no text is half true ({verdict}`pos-stream-carries-almost-no-text: partly`). Almost all
# of its variance is position, but a probe names more bytes than our bound allows. We did not ask whether any head reads them.
#
# ## The shape of position
#
# **One block turns positions into a smooth curve.** Averaged over texts, a pos stream is a table with one row per position, and each depth
# has its own.

# %% tags=["hide-input"]
drawn = ("separated-learned", "separated-sinusoidal", "none")
drawn = [name for name in drawn if len(of.seeds(name))]
paths = rows("path")
depths = sorted(paths.depth.unique())[:4]
down, across = max(1, len(drawn)), max(1, len(depths))
size = (1 + 1.9 * across, 2.1 * down)
fig, axes = plt.subplots(down, across, figsize=size, squeeze=False)
for row, method in zip(axes, drawn, strict=False):
    own = paths[(paths.method == method) & (paths.seed == paths.seed.min())]
    how = {"c": own.positions.iloc[0], "cmap": "viridis", "s": 14, "zorder": 3}
    row[0].set_title(figures.METHODS[method].label, fontsize=9.5, loc="left")
    for ax, depth in zip(row, depths, strict=True):
        part = own[own.depth == depth].set_index("component")
        if part.empty or (method == "none" and not depth):
            continue  # at the input of a model without an encoding: nothing to see
        one, two = part.loc[1], part.loc[2]
        ax.plot(one["values"], two["values"], color=figures.FAINT, linewidth=0.8)
        dots = ax.scatter(one["values"], two["values"], **how)
        ax.set_xlabel(f"depth {depth}: {one['share'] + two['share']:.0%}")
        ax.set_aspect("equal", "datalim")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.set_axis_on() if ax.collections else ax.set_axis_off()
if drawn:
    fig.colorbar(dots, ax=axes, shrink=0.6, label="position")
figures.show(
    fig,
    name="fig-inside-paths",
    alt="Small multiples of paths in a plane, one dot per position coloured from first "
    "to last: rows are methods, columns are depths.",
    caption="After one block neighbouring positions lie next to each other. Each dot "
    "is the mean state at a position, in the plane of the first two principal "
    "components; under each is the share of variance that it holds. The first two "
    "rows show the pos streams of two separated models, the last row the whole state "
    "of the dense model without an encoding (from depth 1 on). First seed.",
)

# %% tags=["hide-cell"]
later = rows("geometry")
later = later[later.method.isin(SEPARATED) & (later.depth > 0)]
assert profile != "laptop" or later.components_2.min() > 0.95, "of every seed"

# %% [markdown]
# **Doubt.** The figure shows one seed. In every seed of every separated model, from depth 1 on, nearly all of the variance of the pos
# stream lies in a plane. We did not ask whether a smooth curve is easier to continue.
#
# ## What to take away
#
# 1. **A new index reaches the content only through attention.** If a rule let the heads look at the same tokens as before, the content
#    would not change. None of the five does: the content moves by {num}`21_inside/drift_five_separated:.2f` of its norm.
# 2. **The small model of this page, trained from index 0, fails past L mostly because of the index.** The head that we took apart loses
#    what the position stream contributed. The part that reads only the text is unchanged. Slower positions bring much of the lost part
#    back.
# 3. **The pos stream holds position, as a smooth curve, and a whisper of text.** The sem stream hardly shows the index.
#
# **Limits.** One language, models of less than a million parameters, one budget. Models without an encoding and those with a learned table,
# dense and separated, have six seeds, all others three. A long text has more keys as well as new indices;
# {doc}`chapter 12 <12_extrapolators>` treats both.
#
# **What would change our mind.** On the routing: a single drift that is not zero although attention is held. On the pos stream: a nonlinear
# probe that names many bytes from it. On integrity: a rule under which the content moves no more than between trained indices. The
# architecture does not forbid such a rule.
#
# ## Exercises
#
# **1. (easy)** A probe is fitted on a random table of $L$ rows and $w$ columns, without noise. Which $R^2$ do you expect at the positions
# that it was fitted on? Check it for 128 rows and 32 columns.

# %% tags=["hide-cell"]
# Solution. 32 random directions of the 127 that a centred target can have: about w / (L
# - 1), a quarter.
found = []
for drawing in range(20):
    rows_of = torch.randn(128, 32, generator=torch.Generator().manual_seed(drawing))
    positions = torch.arange(128.0)[:, None]
    probe = analysis.fit_probe(rows_of, positions, ridge=1e-9)
    found.append(analysis.r_squared(probe(rows_of), positions))
print(f"{np.mean(found):.3f}; predicted {32 / 127:.3f}")
assert abs(np.mean(found) - 32 / 127) < 0.05

# %% [markdown]
# **2. (hard)** Move the start index of the first model of the page slowly past L. If the text begins at 3 L, and so lies between 3 L and 4
# L, the model reads it nearly as well as from 0. Why there? The sinusoid has 16 columns and base 10,000.

# %% tags=["hide-cell"]
# Solution. Pair m comes round after 2 pi 10000^(m/8) indices: 6, 20, 63, 199 and 628
# for the first five. Near 192 the third has made three turns and the fourth almost one,
# and the slower ones have hardly moved. An index there looks like one near 0.
waves = 2 * np.pi * 10_000.0 ** (np.arange(8) / 8)
turns = 3 * L / waves[[2, 3]]
assert np.abs(turns - turns.round()).max() < 0.06
at = {}
for start in (2 * L, 3 * L, 4 * L):
    from_here = {"positions": np.arange(L) + start}
    at[start] = evaluate(models["zero"], short, **from_here).bits.mean()
print({start: round(float(bits), 2) for start, bits in at.items()})
assert at[3 * L] < min(at[2 * L], at[4 * L]) - 0.1

# %% tags=["hide-cell"]
chapter_numbers.publish("21_inside", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(table)

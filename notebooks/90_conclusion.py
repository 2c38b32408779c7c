# %% [markdown]
# # What was found
#
# **Finding.** A sinusoid can be slowed down with less loss, so that a model reads further, if it has few waves. It seems to depend on the
# *fast* ones, which turn at least once in a trained text. Where position has columns of its own, it has fewer waves, so fewer are fast.
# In novels of eight trained lengths a model that adds as few to the content has most of this gain, and one that adds all waves with the
# base $10^{16}$ instead of 10,000 half of it. The usual sinusoid loses much. With a small part of the weights tuned, models with few fast
# waves lose nothing there against themselves reading through a sliding window. Keeping position and content apart in every layer does not
# bring a model closer to its window, and continuing positions fails.
#
# Nothing here says that any of these models is better than RoPE. RoPE loses nothing either, and its loss is lower.
#
# ```{chapter-figure} 13_slow_down/fig-slow-hands
# ```

# %% tags=["parameters"]
profile = "smoke"
seed = 0
device = "cpu"

# %% tags=["hide-input"]
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sepnb import claims, experiments
from sepnb.claims.asks import Ask
from sepnb.claims.evidence import judge
from sepnb.claims.recipes import BEST
from sepnb.extrapolators import SOURCE_METHODS
from sepnb.plots import answers, figures
from sepnb.plots.shapes import DASHED
from sepnb.records import numbers as chapter_numbers
from sepnb.records.run_table import RunTable

figures.use_style()
numbers = {}

# %% [markdown]
# > **Question.** What happens when position gets its own dimensions? The chapters before this one have asked;
# > this one puts their answers together.
#
# ```{admonition} Before you start
# :class: note
# - **Time**: a few seconds of one CPU core. Nothing is trained or downloaded; numbers and tables come from the records of all experiments.
# - **You need**: nothing. Each part names the chapter that has the details.
# - **You will learn**: what was found, how a verdict is computed, and what became of each statement of the sources.
# ```
#
# A word in brackets is the verdict on a claim, and links to the rule of the claim and its records. *Held* (for a claim of ours) and
# *reproduced* (for one of a source) mean that the records agree with the claim; *refuted* and *not reproduced* mean that they contradict
# it, and then the sentence says what was claimed.
#
# *Partly* means that a claim counts its parts and some hold while others fail, or that a longer training turns the result. A claim about
# *all* of several things falls as soon as one of them fails, and its badge counts the failures. *Undecided* leaves the claim open; if it
# counts its parts, some of them may have failed. *Exploratory* marks a result that no rule asked for before we saw it. *L* is the trained
# length.
#
# ## Slow positions down
#
# Past L a model meets positions that it has never seen. If we divide the frequencies of a sinusoid, a long text uses only positions like
# those of training ({doc}`chapter 13 <13_slow_down>`).
#
# **Position next to the content can be slowed down with less loss.** In recall, slower positions and sharper attention are enough to find
# values in texts sixteen times as long; sharper attention alone is not ({verdict}`every-reading-log-alone-is-not-enough: held`). A model
# that has position next to its content (*concatenated*) recalls more than one that adds it
# ({verdict}`stretched-mqar-beside-can-be-slowed-added-cannot: held`). In novels of eight trained lengths it is
# {num}`stretched_text/concatenated-sinusoidal/gap/slowed/8x:+.2f` bits per byte above its own sliding window, and the usual dense model
# {num}`stretched_text/sinusoidal/gap/slowed/8x:+.2f` ({verdict}`stretched-text-beside-can-be-slowed-added-cannot: held`).
#
# **In novels that is mostly because it has fewer waves.** A dense model with as few is
# {num}`stretched_text/sinusoidal-quarter/gap/slowed/8x:+.2f` above, and the concatenated one is ahead of it
# ({verdict}`stretched-text-it-is-not-the-number-of-waves: held`). With content drawn half as large it is
# {num}`stretched_text/sinusoidal-quarter-strong/gap/slowed/8x:+.2f` above, and then it is open whether columns of their own do more
# ({verdict}`stretched-text-own-columns-beat-few-large-waves: undecided`). The space that the waves take and the size of their vectors are
# not the reason ({verdict}`stretched-text-few-waves-lose-less-in-as-few-directions: held`,
# {verdict}`stretched-text-few-waves-lose-less: held`).
#
# **It seems to be the fast waves that do harm**, those that turn at least once in a trained text. A model with the fastest quarter of the
# waves loses {num}`stretched_text/sinusoidal-quarter-fastest/gap/slowed/8x:.2f` bits per byte. We had claimed that it loses less than one
# with all waves ({verdict}`stretched-text-the-fastest-waves-lose-less: undecided`). With a larger base fewer waves are fast, and a dense
# model with all 64 waves loses less: {num}`stretched_text/sinusoidal-base-8/gap/slowed/8x:.2f` with the base $10^8$ and
# {num}`stretched_text/sinusoidal-base-32/gap/slowed/8x:.2f` with $10^{32}$ ({verdict}`stretched-text-two-more-bases-lose-less: held`). In
# recall the base $10^{16}$ helps, too ({verdict}`stretched-mqar-a-larger-base-recalls-more: held`).
#
# **After a longer training slowing down costs more, and the fast waves are not the whole reason.** We trained three dense models four
# times as long. In novels of eight trained lengths the usual one now loses {num}`stretched_text_longer/sinusoidal/gap/slowed/8x:.2f` bits
# per byte, the one with the base $10^{16}$ {num}`stretched_text_longer/sinusoidal-slower/gap/slowed/8x:.2f`
# ({verdict}`stretched-text-longer-a-larger-base-loses-less: held`), and the one with a quarter of the waves
# {num}`stretched_text_longer/sinusoidal-quarter/gap/slowed/8x:.2f` ({verdict}`stretched-text-longer-few-waves-lose-less: held`). The last
# two have the same number of fast waves, so something else counts as well.
#
# **Splitting the weights helps in recall and does harm in novels.** In recall a model with separate streams (*separated*) is ahead of the
# concatenated one at equal width ({verdict}`stretched-mqar-the-split-adds-to-it: held`), but hardly with as many parameters (exploratory).
# In novels the separated model is {num}`stretched_text/separated-sinusoidal/gap/slowed/8x:+.2f` above its window
# ({verdict}`stretched-text-the-split-adds-to-it: refuted`: we had claimed that the split helps). Much of this comes from a position stream
# that changes from layer to layer: if every layer reads the position embeddings as they are, it is
# {num}`stretched_text/separated-sinusoidal-constant/gap/slowed/8x:+.2f` ({verdict}`stretched-text-a-constant-stream-loses-less: held`).
#
# **With a small part of the weights tuned on longer texts, models with few fast waves lose nothing in novels.** In the concatenated model
# we tune the weights that read position, {num}`adapted_text/concatenated-sinusoidal/position-one-factor/tuned_numbers:,.0f` of
# {num}`stretched_text/concatenated-sinusoidal/parameters:,.0f`, and it survives at eight trained lengths
# ({verdict}`adapted-text-beside-survives-with-one-factor: held`). A dense model gets a small adapter. With a quarter of the waves it
# loses {num}`adapted_text/sinusoidal-quarter/low-rank-one-factor/gap/slowed/8x:+.3f±` bits per byte, and six seeds leave open whether the
# concatenated model loses less ({verdict}`adapted-text-it-is-not-the-number-of-waves: undecided`). With all waves and the base $10^{16}$
# it loses {num}`adapted_text/sinusoidal-slower/low-rank-one-factor-yarn/gap/slowed/8x:+.3f±`, less than the usual dense model
# ({verdict}`adapted-text-a-larger-base-loses-less: held`). The usual dense model loses more than the concatenated one, too
# ({verdict}`adapted-text-beside-loses-less-than-a-dense-adapter: held`).
#
# The separated model, with {num}`13_slow_down/position_share:.0%` of its weights tuned, stays within our bound
# ({verdict}`adapted-text-position-part-survives-with-one-factor: held`), and so does one with a constant position stream
# ({verdict}`adapted-text-a-constant-stream-survives-with-one-factor: held`).
#
# **Beyond the length of the tuning, tuning alone does not replace slower positions.** We also tuned models at positions as in training. At
# eight lengths, that of the tuning, RoPE then loses nothing either, and the concatenated model hardly anything
# ({verdict}`adapted-text-tuning-without-slowing-is-not-enough: held`). At sixteen RoPE loses
# {num}`adapted_text/rope/maps-not-slowed/gap/slowed/16x:.2f` bits per byte, against
# {num}`adapted_text/rope/maps-one-factor/gap/slowed/16x:.2f` with slower positions, and the concatenated model
# {num}`adapted_text/concatenated-sinusoidal/position-not-slowed/gap/slowed/16x:.2f` against
# {num}`adapted_text/concatenated-sinusoidal/position-one-factor/gap/slowed/16x:.2f`.
#
# The dense model with a quarter of the waves, of which an adapter is tuned, loses
# {num}`adapted_text/sinusoidal-quarter/low-rank-not-slowed/gap/slowed/8x:.2f` at eight lengths already
# ({verdict}`adapted-text-tuning-few-waves-without-slowing-is-not-enough: held`). With an adapter in place of the weights that read
# position, the concatenated model loses {num}`adapted_text/concatenated-sinusoidal/low-rank-not-slowed/gap/slowed/8x:.2f` there. No rule
# asked for this, but it matters which weights are tuned.
#
# **Slowed down, RoPE is at least as good as these models everywhere.** It needs no dimensions of its own to be slowed down. In novels it
# loses as little, tuned and untuned, and its loss is lower. In recall it is open whether the separated model keeps up
# ({verdict}`stretched-mqar-as-often-as-slowed-rope: undecided`); with as many parameters it does not
# ({verdict}`stretched-mqar-as-often-as-slowed-rope-at-equal-parameters: refuted`).
#
# Where a key gets several values and the last one counts, RoPE finds {num}`stretched_latest_value/rope/accuracy/stretched/16x:.0%` at
# sixteen trained lengths and the separated model {num}`stretched_latest_value/separated-sinusoidal/accuracy/stretched/16x:.0%`
# ({verdict}`stretched-latest-value-as-often-as-slowed-rope: refuted`). Tuned on longer texts of the task, the two are level
# ({verdict}`adapted-latest-value-as-often-as-rope-tuned-alike: held`). *Needles*, codes hidden in a novel, are found by RoPE alone among
# the slowed models, {num}`stretched_needle/rope/accuracy/stretched/16x:.0%` of their digits (exploratory).
#
# ## How many columns does position need?
#
# Many public models let only a part of the columns of queries and keys turn with position ({doc}`chapter 14 <14_dimensions>`). How many
# they need depends on the task. To recall a value that was written once, one fast pair of columns in each head is enough: RoPE on an eighth
# of the columns finds {num}`stretched_mqar/rope-8th/accuracy/native/16x:.0%` of the values at sixteen trained lengths with nothing changed,
# and RoPE on all of them {num}`stretched_mqar/rope/accuracy/native/16x:.0%`. At eight lengths every share of the columns recalls more than
# all of them ({verdict}`ladder-mqar-unchanged-a-share-recalls-more: held`).
#
# To find the *latest* of several values nearly always, RoPE took a slow pair as well. In a longer text this slow pair is what breaks. It
# is enough to slow it down and to sharpen attention, in recall ({verdict}`each-pair-mqar-the-slow-pair-is-all-to-slow: held`) and for the
# latest value ({verdict}`each-pair-latest-value-the-slow-pair-is-all-to-slow: held`). RoPE on all columns, with eight pairs, also finds
# more if its fastest pair keeps its speed ({verdict}`each-pair-mqar-the-fastest-pair-keeps-its-speed: held`,
# {verdict}`each-pair-latest-value-the-fastest-pair-keeps-its-speed: held`).
#
# In novels a few columns are not enough for RoPE. The loss falls as more of them turn. We had claimed that a sixteenth, an eighth, a
# quarter and half of the columns are each as good as all of them. A sixteenth and an eighth are clearly worse
# ({verdict}`ladder-text-a-share-of-the-columns-is-enough: undecided`, because a quarter and half are open). We had also claimed that RoPE
# on fewer columns loses less when it is slowed down, and it loses more ({verdict}`ladder-text-slowed-a-share-loses-less: refuted`).
#
# With $W_Q$ and $W_K$ tuned on texts of eight lengths, a quarter of the columns loses no more there than all of them, and an eighth a
# little more ({verdict}`ladder-adapted-text-a-share-loses-no-more: partly`). At sixteen lengths a quarter loses
# {num}`ladder_adapted_text/rope-partial/maps-one-factor/gap/slowed/16x:.2f` bits per byte and all columns
# {num}`ladder_adapted_text/rope/maps-one-factor/gap/slowed/16x:.2f` (exploratory). Tuned alike, RoPE in three of four layers loses no
# more at eight lengths than in all of them ({verdict}`ladder-adapted-text-every-fourth-layer-without-position-loses-no-more: held`).
#
# For separated models we compared a sixteenth, an eighth and half of the width for position with a quarter. Inside the trained length a
# sixteenth is clearly worse, and an eighth and half are open ({verdict}`ladder-text-a-sixteenth-of-the-width-is-enough: undecided`).
#
# In recall not every layer has to know positions. Slowed down, a model with RoPE only in the first of two layers finds
# {num}`stretched_mqar/rope-nope-2/accuracy/stretched/16x:.0%` of the values at sixteen lengths, as a model with RoPE in both layers does.
# But it finds only {num}`stretched_latest_value/rope-nope-2/accuracy/stretched/16x:.0%` of the latest values, against
# {num}`stretched_latest_value/rope/accuracy/stretched/16x:.0%` with RoPE in both (exploratory).
#
# The best model of novels in chapter 14 has no positions, and in recall no model is better. It has forget gates (FoX): each token sets how
# fast the text before it fades, which amounts to two more columns. In novels this model has {num}`ladder_text/forgetting/bits_per_byte:.2f`
# bits per byte, against {num}`ladder_text/rope/bits_per_byte:.2f` for RoPE (exploratory), and it does not break in longer texts
# ({verdict}`ladder-text-forget-gates-survive: held`). At sixteen trained lengths it recalls
# {num}`stretched_mqar/forgetting/accuracy/native/16x:.1%` of the values, with nothing changed
# ({verdict}`ladder-mqar-forget-gates-recall-unchanged: held`). We had claimed that it also finds nine tenths of the latest values, but it
# finds {num}`stretched_latest_value/forgetting/accuracy/native/16x:.0%`
# ({verdict}`ladder-latest-value-forget-gates-find-unchanged: refuted`).
#
# Forget gates can be slowed down like waves. With slower gates and sharper attention FoX finds
# {num}`stretched_latest_value/forgetting/accuracy/stretched/16x:.0%` of the latest values; we had claimed nine tenths again
# ({verdict}`ladder-latest-value-slowed-gates-find: refuted`). With sharper attention alone it finds no more than before
# ({verdict}`ladder-latest-value-gates-have-to-be-slowed: held`). In recall the same reading does harm:
# {num}`stretched_mqar/forgetting/accuracy/stretched/16x:.0%` (exploratory).
#
# ## Do not continue them
#
# The slides propose five rules that continue the table of positions past its last row, and say that they extrapolate. None of them does
# ({verdict}`the-five-extrapolate: not reproduced`), not even after long training
# ({verdict}`the-five-extrapolate-after-long-training: refuted`). The nearest that any of them comes to the model's own sliding window is
# {num}`12_extrapolators/least_gap:+.2f` bits per byte above it ({doc}`chapter 12 <12_extrapolators>`).
#
# Better rows do not seem to be enough for a separated model. We fitted rows past the trained length to the frozen weights, as an estimate
# of the best that any rule could compute. With these rows a dense model reads on: in the next length it is
# {num}`fitted_rows/learned/gap/fitted/2x:+.2f` bits per byte above its sliding window ({verdict}`fitted-rows-survive-dense: held`). A
# separated model is {num}`fitted_rows/separated-learned/gap/fitted/2x:+.2f` above. So the slides' premise that only new vectors are missing
# fails ({verdict}`only-new-vectors-are-missing: not reproduced`). They also say that separation makes it easier to continue positions. It
# does so under one of their five rules, but not under the other four ({verdict}`separation-makes-extrapolation-easier: not reproduced`).
#
# ## What separation costs, and what it gives
#
# While the attention weights are held fixed, the two streams stay exactly apart ({verdict}`block-values-keep-streams-apart: reproduced`).
# The norm has to be split for this as well. The slides say that values, outputs and MLP suffice
# ({verdict}`values-output-and-mlp-suffice: not reproduced`; chapters {doc}`8 <08_two_streams>` and {doc}`9 <09_split_mlp_norm>`). Live
# attention weights read both streams. Through them, and only through them, a new index reaches the content
# ({verdict}`only-the-routing-hears-a-new-index: held`). Past L it moves the content far, although the slides say that the content stays
# intact ({verdict}`semantic-integrity-is-preserved: not reproduced`; {doc}`chapter 21 <21_inside>`).
#
# In a short training the separation costs nothing at equal parameters ({verdict}`separation-costs-nothing-at-equal-parameters: held`). A
# separated model is even ahead of a dense one of equal width that adds the same sinusoid: separated minus dense is
# {num}`11_language_model/gain_at_1x` bits per byte. We had claimed that this lead lasts, and it does not
# ({verdict}`separation-ahead-at-every-budget: refuted`): after sixteen times the training it is {num}`11_language_model/gain_at_16x`. RoPE
# ends ahead of the separated model of equal width, and level with the one of equal parameters
# ({num}`11_language_model/rope_minus_separated_at_16x` and {num}`11_language_model/rope_minus_wide_at_16x`;
# {doc}`chapter 11 <11_language_model>`).
#
# Adding can do what concatenating does: a dense model of the same width can compute exactly what a separated one with a joint norm
# computes. We started a dense model at such weights and trained it on with every weight free. Its loss becomes no lower than that of the
# separated model that is trained on for as long ({verdict}`opened-text-a-dense-model-gains-nothing: held`), and its matrices stay nearly
# block diagonal ({verdict}`opened-text-stays-in-its-blocks: held`). We do not know whether training would find such weights from a random
# start.
#
# In long texts separation alone saves hardly any time ({verdict}`separation-alone-saves-little-in-long-texts: held`). A training step on
# short texts becomes faster ({doc}`chapter 20 <20_cost_and_speed>`).
#
# ## Is far text used?
#
# A model that does not break on a longer text need not use it. Novels can only show whether a model breaks, because models of this size
# hardly gain from context beyond eight bytes. In novels, training for far distances keeps a model from breaking, and separation is not the
# reason: we had claimed that a separated model beats a dense one that is trained in the same way, and it does not
# ({verdict}`separation-helps-the-survivor: refuted`).

# %% tags=["hide-input"]
names = ("recipes", "extrapolation", "mqar")
tables = {name: experiments.get(name).table(profile) for name in names}
ROPE, TRAINED = figures.METHODS["rope"], figures.METHODS["separated-content-gap"]
FAR = {"color": figures.INK, "linestyle": DASHED}
READ = {
    "RoPE": ("recipes", "rope:native", ROPE.line()),
    "RoPE, window of L": ("recipes", "rope:native-window", ROPE.line(linestyle=DASHED)),
    "ALiBi": ("extrapolation", "alibi:native", figures.METHODS["alibi"].line()),
    "separated, trained far": ("recipes", f"{BEST}:native", TRAINED.line()),
    "dense, trained far": ("recipes", "dense-phase-gaps:native", FAR),
}
PLACES = ("1x", "2x", "4x", "8x")


def losses(experiment, line):
    """Bits per byte up to each place, means over seeds; NaN of what was not run."""
    method, reading = line.split(":")
    of = RunTable(tables[experiment])
    return np.array([of.mean(method, f"{reading}/{place}") for place in PLACES])


# %% tags=["hide-input"]
five = [losses("extrapolation", f"separated-learned:{one}") for one in SOURCE_METHODS]
x = range(len(PLACES))
fig, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.7))
if np.isfinite(five).any():
    blue = figures.METHODS["separated-learned"].colour
    lowest, highest = np.min(five, axis=0), np.max(five, axis=0)
    left.fill_between(x, lowest, highest, color=blue, alpha=0.25, linewidth=0)
    left.plot(x, (lowest + highest) / 2, color=blue, alpha=0, label="the five rules")
    for label, (experiment, line, look) in READ.items():
        look = look | {"label": label, "markersize": 4}
        left.plot(x, losses(experiment, line), **look)
    figures.label_lines(left, fontsize=8.5)
left.set_xticks(x, ["to L", "to 2L", "to 4L", "to 8L"])
left.set(xlabel="position in the text", ylabel="bits per byte")
left.set_title("predicting the next byte")
YARN = {"label": "RoPE, YaRN", "linestyle": DASHED}
ASKED = ("rope", "rope:yarn", "separated-randomised", "sinusoidal-randomised")
answers.by_length(right, tables["mqar"], ASKED, {"rope:yarn": YARN})
right.set_title("recalling a value")
found = RunTable(tables["mqar"])
told = {name: f"{found.mean(name, 'accuracy/native/8x'):.0%}" for name in ASKED[2:]}
figures.show(
    fig,
    name="fig-read-further",
    alt="Left: bits per byte by position up to eight trained lengths. RoPE and the "
    "five rules rise to more than four and a half; RoPE behind a window, ALiBi and the "
    "two models trained for it stay level. Right: recalled values by length of the "
    "text up to sixteen trained lengths. RoPE falls to a guess; RoPE with YaRN and the "
    "separated model at random positions stay near one.",
    caption="A model reads on in novels if it was trained for far distances, or if its "
    "score fades or stops with distance (ALiBi, a window). Separation is not needed. "
    "In predicting the next byte the rules that continue a position fail; the "
    "separated model that was trained at far distances does not, nor does a dense one "
    "trained in the same way. Recalling a value: values recalled in longer texts. At "
    "eight lengths the separated model trained at random positions recalls "
    f"{told['separated-randomised']}, the dense one {told['sinusoidal-randomised']}. "
    "Means over seeds; thin lines are single seeds."
    if np.isfinite(five).any() and len(found.made)
    else figures.NOT_RUN,
)

# %% [markdown]
# So we also gave the models tasks whose answers are far back ({doc}`chapter 19 <19_far_text>`). A separated model recalls values far back
# if its score lets content choose a distance and if it is trained with position gaps, which are texts whose positions jump
# ({verdict}`mqar-a-separated-model-uses: held`). Six seeds leave open whether it also finds needles
# ({verdict}`needle-a-separated-model-uses: undecided`). A dense model of equal size finds distant needles as well as it does
# ({verdict}`needle-dense-twin-does-as-well-at-equal-parameters: held`). We had claimed that a separated model reliably finds the latest
# value of a key that far back, and it does not ({verdict}`latest-value-a-separated-model-uses: refuted`). Nor do a separated model
# ({verdict}`questions-a-separated-model-uses: refuted`) and RoPE ({verdict}`questions-rope-uses: refuted`) answer questions about a long
# story.
#
# ## Are positions better as digits?
#
# SeqPE reads a position as a string of digits. Its two losses do order distances ({verdict}`the-losses-order-distances: held`;
# {doc}`chapter 16 <16_two_losses>`). We had hoped that SeqPE, as a position stream, survives in longer texts, and it does not
# ({verdict}`seqpe-survives: refuted`). It is not free inside the trained length either ({verdict}`seqpe-is-free-in-window: refuted`;
# {doc}`chapter 18 <18_seqpe_stream>`). On images, the losses and random offsets let SeqPE name classes on larger grids
# ({verdict}`losses-and-shifts-carry-seqpe-class: held`), but it is not ahead of a fitted table
# ({verdict}`seqpe-is-ahead-of-an-interpolated-table: refuted`; {doc}`chapter 17 <17_two_dimensions>`).
#
# ## What is not known
#
# - **Scale.** All models are tiny. The language models have four layers of width 128 and read novels in windows of 128 bytes; those that
#   compare short with long training have three layers and windows of 64 bytes. The models for recall have two layers of width 64 and read
#   64 tokens. A *no* on this page is about models of this size. Only the needles were also tested with models twice as wide. We do not know
#   whether the lead of few waves at slowed positions lasts at larger width. It lasts after four times the training, but both models then
#   read slowed positions worse than before, and we tuned neither.
# - **Use in natural text.** These novels reward hardly any context, so they cannot say whether slowed positions help a model to *use* what
#   it reads.
# - **More tasks.** Twelve seeds judge slowed positions in recall and with latest values; needles have seven, which only explore. Most
#   comparisons with RoPE tuned in the same way are declared but have not been run. {doc}`Provenance </book/provenance>` lists what is left.
# - **Tuning after a longer training.** Sinusoids with few waves or a larger base were tuned after the short training alone.
#
# ## Method by method
#
# The table asks four questions of each method. Does it *survive* past its trained length? Does it *use* the text there? Does it reach the
# *quality* of RoPE with a window? What is its *price* inside the trained length? The slowed and the tuned models of the first part are not
# in the table, except RoPE with YaRN, because other rules judge them.
#
# ```{verdict-table}
# ```
#
# *Survives*: at most 0.03 bits per byte above its own sliding window, in every bin to eight trained lengths. <!-- given: the bounds -->
# *Quality*: at most 0.02 above RoPE with a window in the last bin. *Price*: at most 0.03 above its base, <!-- given: the bounds --> inside
# the trained length. The base is the method that it varies: for a dense model with the content-to-position term the dense sinusoid, for a
# separated or strict model the dense model with the same encoding.
#
# Numbers are means over six seeds in bits per byte, and below zero is better. For survival the number is that of the last bin. *Uses* is
# judged by tasks: a model has to find the far answers, and all answers together. *Not learned* means that a task is not solved inside the
# trained length, so that longer texts say nothing. *Open* means that six seeds do not decide it, and a dash that it was never run. The loss
# of YaRN is in {doc}`chapter 6 <06_longer_contexts>`, judged by other rules. The bounds are those of
# {doc}`far distances <93_far_distances>`; we combined them into this table after the records of that page.
#
# ## How a verdict comes about
#
# Nobody types a verdict. A claim asks whether differences lie inside written bounds; the page of {doc}`claims </book/claims>` says of each
# whether its rule is older than its records. The seeds are the sample: runs of the same seed are paired, and a t test over the pairs
# decides, corrected for all comparisons of the claim. Here is one judged by hand, with losses that were made up:

# %%
losses = {
    "ours": [2.41, 2.40, 2.43, 2.39, 2.42, 2.41],
    "theirs": [2.46, 2.44, 2.47, 2.46, 2.45, 2.46],
}
table = pd.DataFrame(
    {"method": name, "seed": seed, "status": "ok", "bits_per_byte": loss}
    for name, of_seeds in losses.items()
    for seed, loss in enumerate(of_seeds, 1)
)
better = [Ask("ours", "theirs", high=0.0)]
verdict = judge(table, better).of_ours()
print(verdict.word, "|", verdict.detail)
apart = np.subtract(losses["ours"], losses["theirs"])
assert np.isclose(verdict.numbers["ours minus theirs"], apart.mean())
assert verdict.word == "held"

# %% [markdown]
# With three of these seeds nothing is decided, and a bound that lies inside the interval of the difference leaves the claim open:

# %%
few = judge(table[table.seed <= 3], better).of_ours()
close = judge(table, [Ask("ours", "theirs", high=-0.045)]).of_ours()
print(few.word, "|", few.detail)
print(close.word, "|", close.detail)
assert (few.word, close.word) == ("not judged", "undecided")

# %% [markdown]
# ## What the sources say
#
# Every statement was written down before it was known whether it could be tested. Many are definitions, which a chapter builds. Some could
# not be decided by any experiment. The rest are claims.

# %% tags=["hide-input"]
found = claims.source_map()
heads = {"claim": "judged", "chapter": "built", "not-empirical": "not empirical"}
counts = {
    one.title: Counter(said.kind for said in one.statements) for one in found.documents
}
assert set().union(*counts.values()) <= heads.keys()
rows = [[title, *(count[kind] for kind in heads)] for title, count in counts.items()]
figures.show_table(
    pd.DataFrame(rows, columns=["source", *heads.values()]),
    caption="Statements by what becomes of them: judged by a claim, built or explained "
    "in a chapter, or not empirical.",
)
numbers["statements"] = len(found.statements)

# %% [markdown]
# ## Statement by statement
#
# The words of the verdicts are explained on the page of {doc}`claims </book/claims>`. The column *Why* names the claim, whose entry has the
# rule, its commit and its records. For a family of comparisons it counts how many hold, fail, or stay open.
#
# ```{scoreboard}
# ```
#
# ## What to take away
#
# 1. **Slow positions down; do not continue them.** A sinusoid can be slowed down with less loss if it has few waves, and few that turn
#    within a trained text. RoPE can be slowed down as well, and adds no position to the content either.
# 2. **Nothing else has to be split.** Keeping position and content apart in every layer is exact under fixed attention and costs little.
#    In longer texts it helps only in recall and at equal width. Inside the trained length its lead over added positions does not outlast a
#    longer training. Compared with RoPE we found no advantage.
# 3. **A refutation holds at this scale.** *Not reproduced* says that models of this size, on these texts, contradict the statement. It does
#    not say what a larger model does.
#
# **Limits.** Whoever writes a rule chooses what counts. Rules are printed with their commits, so that you can disagree with one.
#
# **What would change our mind.** A record that can be replayed and that says otherwise, under a rule that was written before it.
#
# ## Exercise
#
# **1. (easy)** With how many seeds can a two-sided sign test at five per cent decide anything at
# all? <!-- given: the level of the exercise -->

# %% tags=["hide-cell"]
# Solution. If all n differences have one sign, p = 2 / 2^n: below 0.05 from n = 6 on.
smallest = next(n for n in range(1, 20) if 2 / 2**n < 0.05)
print(f"{smallest} seeds")
assert smallest == 6

# %% tags=["hide-cell"]
chapter_numbers.publish("90_conclusion", numbers, profile=profile)

# %% tags=["hide-input"]
figures.provenance(*tables.values())

"""The counted cost of the encoder is that of its maps, and shared prefixes save most of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from sepnb.analysis.flops import per_token, products_of
from sepnb.analysis.seqpe_cost import multiply_adds, step_cost
from sepnb.experiments import language_modelling as lm
from sepnb.experiments.encoding_methods import seqpe_losses
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.seqpe import SeqPE, SequentialPositionEncoder
from sepnb.seqpe.encoder import PrefixTree
from sepnb.seqpe.sampling import CandidateSampler, WindowSampler
from sepnb.streams import Streams
from sepnb.training import TrainingConfig, train
from sepnb.training.seqpe_losses import SeqPELosses, encoder_of
from sepnb.training.shifts import ShiftSteps

GRID = torch.cartesian_prod(torch.arange(14), torch.arange(14))


def maps(encoder: SequentialPositionEncoder, positions: torch.Tensor, plain: bool) -> int:
    """Multiply-adds of the linear maps of a pass, as torch counts them."""
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        (encoder.plain if plain else encoder)(positions)
    counts = counter.get_flop_counts()["Global"]
    return sum(count for op, count in counts.items() if str(op) in ("aten.addmm", "aten.mm")) // 2


def looks(encoder: SequentialPositionEncoder, positions: torch.Tensor) -> tuple[int, int]:
    """Multiply-adds of attention, slot by slot: a score and a weighted sum over the width for each pair."""
    w, layers = encoder.transformer.config.streams.d_model, encoder.transformer.config.n_layers
    strings = encoder.strings(positions)
    tree, slots = PrefixTree.of(strings), strings.shape[1] + 1
    plain = layers * len(strings) * sum(range(1, slots + 1))
    last = tree.sizes[-1] * slots
    shared = layers * last + (layers - 1) * sum((s + 1) * size for s, size in enumerate(tree.sizes))
    return 2 * w * plain, 2 * w * shared


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("settings", "positions"),
    [({"digits": 5}, torch.arange(300)), ({"digits": 2, "dims": 2}, GRID), ({"digits": 5}, torch.zeros(9))],
    ids=["window", "grid", "one"],
)
def test_the_count_is_that_of_the_maps_and_of_every_look(settings, positions, layers):
    encoder = SequentialPositionEncoder(width=16, heads=2, layers=layers, out_features=24, **settings)
    positions = positions.long()
    cost, attention = multiply_adds(encoder, positions), looks(encoder, positions)
    assert cost.plain == maps(encoder, positions, plain=True) + attention[0]
    assert cost.shared == maps(encoder, positions, plain=False) + attention[1]


def test_neighbouring_positions_cost_less_than_a_third_and_scattered_ones_less_than_a_half():
    encoder = SequentialPositionEncoder(width=64, heads=1, digits=5)
    for start in (0, 7_003):
        cost = multiply_adds(encoder, torch.arange(start, start + 512))
        assert cost.plain > 3 * cost.shared
        assert cost.plain > 2.5 * cost.tree > 2.5 * cost.shared, "most of it is the tree's"
    scattered = torch.randint(20_000, (512,), generator=torch.Generator().manual_seed(0))
    cost = multiply_adds(encoder, scattered)
    assert 2 * cost.shared < cost.plain < 3 * cost.shared
    released = multiply_adds(SequentialPositionEncoder(width=384, digits=2, dims=2), GRID)
    assert released.plain > 3 * released.shared


@pytest.mark.parametrize("layers", [1, 2])
def test_what_the_tree_alone_saves_is_what_the_same_tree_costs_with_a_layer_read_whole(layers):
    """A further layer costs what reads the last slot alone; the one before it is then read whole."""
    sizes = {"width": 16, "heads": 2, "digits": 5}
    one, more = (
        multiply_adds(SequentialPositionEncoder(layers=count, **sizes), torch.arange(300))
        for count in (layers, layers + 1)
    )
    tree = PrefixTree.of(SequentialPositionEncoder(layers=1, **sizes).strings(torch.arange(300)))
    nodes, ends = sum(tree.sizes), tree.sizes[-1]
    # keys and values of all slots; query, looks and the rest of the last slot alone
    last = 2 * 16 * 16 * (nodes + ends) + 10 * 16 * 16 * ends + 2 * 16 * ends * 6
    assert one.tree + last == more.shared


LOSSES = SeqPELosses(
    CandidateSampler((4096,), window=(256,)), WindowSampler((4096,), (128,), away=(32,)), n_heads=1
)
LAPTOP = TransformerConfig(Streams.dense(128), 4, 4, "seqpe", max_length=512)


@pytest.mark.parametrize(
    ("streams", "encoding", "fields"),
    [
        (Streams.dense(16), SeqPE(width=8, digits=3), {}),
        (Streams.dense(16), SeqPE(site="multiply", width=8, digits=3, per_layer=True), {}),
        (Streams(pos=8, sem=8), SeqPE(site="input", width=8, digits=3), {"readout": "both"}),
    ],
    ids=["score", "multiply", "input"],
)
def test_the_step_is_the_products_that_torch_counts_and_every_look_of_the_encoder(streams, encoding, fields):
    """Forward, in a model that reads every product of its maps: torch counts the squares of attention."""
    b, n = 3, 12
    config = TransformerConfig(streams, 2, 2, encoding, max_length=n, causal=False, **fields)
    model, at = LanguageModel(config, 11), torch.arange(n)
    cost = step_cost(config, batch_size=b, length=n, vocab_size=11)
    with torch.no_grad():
        counted = products_of(lambda: model(torch.zeros(b, n, dtype=torch.int64)))
    _, looked = looks(encoder_of(model), at)
    padded = b * n * n * 16 * 2 if cost.columns else 0  # values are padded to the width of queries, per layer
    assert sum(cost) / 3 == pytest.approx(counted + looked - padded, rel=1e-12)
    assert cost.backbone == 3 * b * n * (per_token(bare(config), n, b) + model.head.weight.numel())
    assert (cost.columns > 0) == (encoding.site == "score") and (cost.maps > 0) == (encoding.site != "input")


def bare(config: TransformerConfig) -> TransformerConfig:
    return config if config.input_encodings else replace(config, encoding="none")


def test_losses_cost_their_draws_less_in_every_other_step_and_on_shift_steps():
    sizes = {"batch_size": 8, "length": 128, "draws": 4}
    whole, none = (step_cost(LAPTOP, losses=losses, **sizes) for losses in (LOSSES, None))
    assert none.losses == none.taught == 0 and none[:4] == whole[:4]
    encoder = encoder_of(LanguageModel(LAPTOP))
    once = multiply_adds(encoder, torch.arange(0, 4096, 4)).shared  # 1,024 strings, spread as draws are
    assert 0.5 * 3 * once < whole.losses < 2 * 3 * once
    assert step_cost(LAPTOP, losses=replace(LOSSES, every=4), **sizes).losses == whole.losses / 4
    alone = step_cost(LAPTOP, losses=replace(LOSSES, distillation=0.0), **sizes)
    shifts = ShiftSteps(4096, probability=0.25)
    shifted = step_cost(LAPTOP, losses=replace(LOSSES, shifts=shifts), **sizes)
    assert shifted.losses == pytest.approx(0.75 * whole.losses + 0.25 * alone.losses)
    assert 0 < alone.losses < whole.losses and alone.taught == 0
    assert shifted.taught == pytest.approx(0.75 * whole.taught)


def test_what_a_pass_of_its_own_costs_the_teacher_is_the_forward_pass_on_places_of_the_text():
    whole = step_cost(LAPTOP, batch_size=8, length=128, losses=LOSSES, draws=4)
    encoder = encoder_of(LanguageModel(LAPTOP))
    every = multiply_adds(encoder, torch.arange(128)).shared
    assert 0.9 * every < whole.taught <= every  # 16 windows of 32 places leave out few of the 128
    assert whole.taught < 0.01 * sum(whole)
    teacher = LOSSES.draw(np.random.PCG64(0))[1].teacher
    assert teacher.min() >= 0 and teacher.max() < 128


@pytest.mark.parametrize("distilled", [True, False])
def test_a_step_encodes_in_three_passes_and_in_two_without_a_teacher(distilled):
    model = LanguageModel(replace(LAPTOP, max_length=128))
    calls = []
    encoder_of(model).register_forward_pre_hook(lambda _, given: calls.append(len(given[0])))
    losses = LOSSES if distilled else replace(LOSSES, distillation=0.0)
    config = TrainingConfig(1, 1, 128, 1e-3, auxiliary=losses)
    batch = iter([np.zeros((1, 129), dtype=np.int64)])
    train(model, batch, config, auxiliary=config.bound_auxiliary(0))
    asked = 16 + 16 * 32 + (16 * 32 if distilled else 0)
    assert calls == [128, asked, 16 * 32][: 3 if distilled else 2]


def test_the_encoder_is_at_most_a_twentieth_of_a_step_of_the_laptop_model_at_512():
    """In multiply-adds, with the losses of the experiments at that length, in every step. What the term of
    the score adds to queries and keys is more than the encoder, and counted apart."""
    size = replace(lm.SIZES["laptop"], length=512)
    losses = replace(seqpe_losses(size), shifts=None)
    assert losses.windows.trained == (512,) and losses.windows.ranges == (32 * 512,)
    model = TransformerConfig(Streams.dense(size.width), size.n_layers, size.n_heads, "seqpe", max_length=512)
    sizes = {"batch_size": size.batch_size, "length": 512}
    cost = step_cost(model, losses=losses, **sizes)
    assert 0.005 < cost.encoder <= 0.05 < cost.longer_queries < 0.2
    wide = step_cost(replace(model, encoding=SeqPE(width=128)), losses=seqpe_losses(size, 128), **sizes)
    assert wide.encoder > 0.05, "a wide one is not"

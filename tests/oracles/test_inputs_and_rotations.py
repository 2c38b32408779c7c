"""Codes at the input and rotations of queries and keys, against public implementations.

Positions stay below 64: there the float32 angles of the packages are good to a few units in the last place.
"""

import pytest
import torch
from torch import Tensor

from sepnb.encodings import (
    DynamicNTK,
    Heads,
    Llama3,
    LongRoPE,
    NTKAware,
    PositionInterpolation,
    RoPE,
    YaRN,
    apply_axial_rope,
    apply_rope,
    apply_xpos,
    axial_rope_frequencies,
    grid_positions,
    rope_frequencies,
    sinusoidal,
)

pytestmark = pytest.mark.oracle

N, HEADS, D = 50, 2, 16
AT = torch.arange(N)
TRAINED = 2048


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --- sinusoidal


def test_sinusoidal_interleaved_is_distilbert_s_and_labml_s(public, agree):
    table = torch.empty(N, D)
    public("transformers.models.distilbert.modeling_distilbert").create_sinusoidal_embeddings(N, D, table)
    agree(sinusoidal(AT, D), table, 2e-6)
    labml = public("labml_nn.transformers.positional_encoding").get_positional_encoding(D, N)
    agree(sinusoidal(AT, D), labml[:, 0], 1e-5)  # the exponents of its frequencies are float32


def test_sinusoidal_halves_is_marian_s_and_x_transformers(public, agree):
    marian = public("transformers.models.marian.modeling_marian").MarianSinusoidalPositionalEmbedding
    agree(sinusoidal(AT, D, layout="halves"), marian(N, D).create_weight(), 2e-6)
    scaled = public("x_transformers.x_transformers").ScaledSinusoidalEmbedding(D)
    agree(sinusoidal(AT, D, layout="halves"), scaled(torch.zeros(1, N, D)) / scaled.scale, 1e-5)


def test_sinusoidal_halves_endpoint_is_fairseq_s(public, agree):
    table = public("transformers.models.m2m_100.modeling_m2m_100").M2M100SinusoidalPositionalEmbedding
    agree(sinusoidal(AT, D, layout="halves-endpoint"), table.get_embedding(N, D), 1e-5)


# --- rotary


def rotated(x: Tensor, layout: str) -> Tensor:
    return apply_rope(x, torch.arange(x.shape[-2]), rope_frequencies(x.shape[-1])[0], layout=layout)


def test_rope_half_is_llama_s_and_labml_s(public, agree):
    llama = public("transformers.models.llama.modeling_llama")
    config = public("transformers.models.llama.configuration_llama").LlamaConfig(
        hidden_size=HEADS * D, num_attention_heads=HEADS
    )
    q, k = drawn(2, HEADS, N, D), drawn(2, HEADS, N, D, seed=1)
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, AT[None])
    for ours, theirs in zip((q, k), llama.apply_rotary_pos_emb(q, k, cos, sin), strict=True):
        agree(rotated(ours, "half"), theirs, 2e-5)
    labml = public("labml_nn.transformers.rope").RotaryPositionalEmbeddings(D)
    agree(rotated(q, "half"), labml(q.permute(2, 0, 1, 3)).permute(1, 2, 0, 3), 2e-5)


def test_rope_interleaved_is_that_of_two_independent_packages(public, leaf, agree):
    q = drawn(2, HEADS, N, D)
    lucid = public("rotary_embedding_torch").RotaryEmbedding(D, cache_if_possible=False)
    agree(rotated(q, "interleaved"), lucid.rotate_queries_or_keys(q), 2e-5)
    torchtune = leaf("torchtune.modules.position_embeddings").RotaryPositionalEmbeddings(D)
    agree(rotated(q, "interleaved"), torchtune(q.transpose(1, 2)).transpose(1, 2), 2e-5)


def test_partial_rotary_is_gpt_neox_s(public, agree):
    neox = public("transformers.models.gpt_neox.modeling_gpt_neox")
    config = public("transformers.models.gpt_neox.configuration_gpt_neox").GPTNeoXConfig(
        hidden_size=HEADS * D, num_attention_heads=HEADS, rotary_pct=0.25
    )
    q = drawn(2, HEADS, N, D)
    cos, sin = neox.GPTNeoXRotaryEmbedding(config)(q, AT[None])
    assert cos.shape[-1] == D // 4  # it did take the share
    theirs, _ = neox.apply_rotary_pos_emb(q, q, cos, sin)
    module = RoPE(partial=0.25).at_query_key(Heads(width=D))
    agree(module(q, module.prepare(AT, AT)[0]), theirs, 2e-5)


SHORT, LONG = [1 + 0.1 * m for m in range(32)], [1 + 0.25 * m for m in range(32)]
ORIGINAL = {"original_max_position_embeddings": TRAINED}
EXTENSIONS = {
    "linear": ({"factor": 8.0}, {"extension": PositionInterpolation(8.0)}),
    "dynamic": ({"factor": 4.0}, {"extension": DynamicNTK(4.0, TRAINED), "length": 5 * TRAINED}),
    "yarn": ({"factor": 8.0, **ORIGINAL}, {"extension": YaRN(8.0, TRAINED)}),
    "llama3": (
        {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **ORIGINAL},
        {"extension": Llama3(8.0, TRAINED)},
    ),
    "longrope": (
        {"factor": 8.0, "short_factor": SHORT, "long_factor": LONG, **ORIGINAL},
        {"extension": LongRoPE(tuple(SHORT), tuple(LONG), 8.0, TRAINED), "length": 5 * TRAINED},
    ),
    "proportional": ({"partial_rotary_factor": 0.25}, {"p": 0.25}),
}
"""Settings of transformers by its name of the method, and ours."""


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_frequencies_of_a_context_extension_are_those_of_transformers(kind, public, agree):
    theirs, ours = EXTENSIONS[kind]
    config = public("transformers.models.llama.configuration_llama").LlamaConfig(
        hidden_size=4 * 64,
        num_attention_heads=4,
        max_position_embeddings=TRAINED,
        rope_parameters={"rope_theta": 10_000.0, "rope_type": kind, **theirs},
    )
    compute = public("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS[kind]
    frequencies, factor = compute(config, torch.device("cpu"), seq_len=ours.get("length"))
    mine, my_factor = rope_frequencies(64, **ours)
    plain, _ = rope_frequencies(64)
    assert (mine - plain).abs().max() > 1e-3  # the method did something
    agree(mine / plain, frequencies.double() / plain, 2e-6)
    assert my_factor == pytest.approx(factor, abs=2e-7)


def test_ntk_aware_is_x_transformers_and_llama3_is_torchtune_s(public, leaf, agree):
    theirs = public("x_transformers.x_transformers").RotaryEmbedding(64, base_rescale_factor=8.0).inv_freq
    plain, _ = rope_frequencies(64)
    mine, _ = rope_frequencies(64, extension=NTKAware(8.0))
    agree(mine / plain, theirs.double() / plain, 2e-6)
    torchtune = leaf("torchtune.models.llama3_1._position_embeddings").Llama3ScaledRoPE(64, base=500_000)
    plain, _ = rope_frequencies(64, base=500_000)
    mine, _ = rope_frequencies(64, base=500_000, extension=Llama3(8.0, 8192))
    agree(mine / plain, torchtune.theta.double() / plain, 2e-6)


def test_xpos_scores_are_those_of_its_public_implementation(public, agree):
    """Queries and keys on their own depend on where one counts from; their products do not."""
    q, k = drawn(2, HEADS, N, D), drawn(2, HEADS, N, D, seed=1)
    theirs = public("rotary_embedding_torch").RotaryEmbedding(D, use_xpos=True, cache_if_possible=False)
    a, b = theirs.rotate_queries_and_keys(q, k)
    c, d = apply_xpos(q, k, AT, AT, layout="interleaved")
    agree((c @ d.mT).tril(), (a @ b.mT).tril(), 5e-5)


# --- images


def test_axial_rope_is_that_of_two_independent_packages(public, leaf, agree):
    rows, columns = 3, 4
    lucid = public("rotary_embedding_torch")
    x, frequencies = drawn(2, rows * columns, D), axial_rope_frequencies(D)
    angles = lucid.RotaryEmbedding(D // 2, cache_if_possible=False).get_axial_freqs(rows, columns)
    theirs = lucid.apply_rotary_emb(angles, x.unflatten(1, (rows, columns))).flatten(1, 2)
    at = grid_positions(rows, columns)
    agree(apply_axial_rope(x, at, frequencies, layout="interleaved"), theirs, 2e-5)

    side = 3  # its images are square, its column comes before its row, and both begin at 1
    module = leaf("torchtune.modules.position_embeddings").VisionRotaryPositionalEmbeddings(
        patch_size=1, tile_size=side, max_num_tiles=1, dim=D // 2
    )
    x = drawn(1, side * side + 1, HEADS, D)  # the last is the class token, at (0, 0)
    at = torch.cat([grid_positions(side, side).flip(-1) + 1, torch.zeros(1, 2)])
    ours = apply_axial_rope(x.transpose(1, 2), at, frequencies, layout="interleaved").transpose(1, 2)
    agree(ours, module(x), 2e-5)

"""Biases and scores made of positions, and the window, against public implementations."""

import sys
import types

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from sepnb.encodings import (
    Heads,
    TransformerXL,
    alibi_bias,
    alibi_slopes,
    cope_scores,
    kerple_bias,
    sandwich_bias,
    shaw_output,
    shaw_scores,
    sinusoidal,
    t5_bias,
    t5_buckets,
    transformer_xl_scores,
)
from sepnb.models.windows import visible

pytestmark = pytest.mark.oracle

B, N, HEADS, D = 2, 12, 3, 8
WIDTH = HEADS * D
AT = torch.arange(N)
SEEN = torch.ones(N, N, dtype=torch.bool).tril()
NEMO = "nemo.collections.nlp.modules.common.megatron.position_embedding"


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def randomise(module: torch.nn.Module, std: float = 0.3) -> torch.nn.Module:
    """Every parameter from N(0, std^2), and nothing dropped out."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(std * torch.randn_like(parameter))
    return module.eval()


def projected(x: Tensor, linear: torch.nn.Linear) -> Tensor:
    """`[B, N, width]` to the heads `[B, H, N, d]`."""
    return linear(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)


def weights_of(scores: Tensor, seen: Tensor | None = None) -> Tensor:
    return (scores if seen is None else scores.masked_fill(~seen, -torch.inf)).softmax(-1)


# --- biases


@pytest.mark.parametrize("heads", [1, 3, 8, 12, 40])
def test_alibi_slopes_are_those_of_four_public_implementations(heads, public, agree):
    ours = alibi_slopes(heads)
    ones = torch.ones(1, 2)
    bloom = public("transformers.models.bloom.modeling_bloom").build_alibi_tensor(ones, heads, torch.float32)
    mpt = public("transformers.models.mpt.modeling_mpt").build_mpt_alibi_tensor(heads, 2)
    witnesses = [
        bloom[:, 0, 1],
        -mpt[:, 0, 0],
        public("labml_nn.transformers.alibi").get_slopes(heads),
        public("x_transformers.x_transformers").AlibiPositionalBias(heads).slopes.flatten(),
    ]
    for theirs in witnesses:
        assert (ours - theirs).abs().max() <= 1e-6
    if heads > 1:
        agree(ours, torch.stack(witnesses).double().mean(0), 1e-6)


def test_alibi_bias_is_x_transformers_also_where_queries_follow_more_keys(public, agree):
    theirs = public("x_transformers.x_transformers").AlibiPositionalBias(HEADS)
    agree(alibi_bias(alibi_slopes(HEADS), AT[-5:], AT), theirs(5, N), 1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("settings", [(32, 128), (16, 40), (32, 1000)])
def test_t5_buckets_are_those_of_transformers_and_x_transformers(settings, bidirectional, public):
    relative = torch.arange(-2048, 2049)
    n_buckets, longest = settings
    ours = t5_buckets(relative, n_buckets=n_buckets, max_distance=longest, bidirectional=bidirectional)
    t5 = public("transformers.models.t5.modeling_t5").T5Attention
    assert torch.equal(ours, t5._relative_position_bucket(relative, bidirectional, n_buckets, longest))
    other = public("x_transformers.x_transformers").RelativePositionBias
    assert torch.equal(ours, other._relative_position_bucket(relative, not bidirectional, n_buckets, longest))


@pytest.mark.parametrize("decoder", [False, True])
def test_t5_bias_is_transformers(decoder, public, agree):
    config = public("transformers.models.t5.configuration_t5").T5Config(
        d_model=WIDTH, d_kv=D, num_heads=HEADS, is_decoder=decoder
    )
    module = randomise(
        public("transformers.models.t5.modeling_t5").T5Attention(
            config, has_relative_attention_bias=True, layer_idx=0
        )
    )
    at = torch.arange(200)
    theirs = module.compute_bias(5, 200, past_seen_tokens=195)[0]
    ours = t5_bias(module.relative_attention_bias.weight, at[-5:], at, bidirectional=not decoder)
    agree(ours, theirs, 0.0)


def test_kerple_is_nemo_s(leaf, agree):
    kerple = leaf(f"{NEMO}.kerple_relative_position_embedding").KERPLERelativePositionEmbedding(
        False, HEADS, None, max_seq_len=N
    )
    with torch.no_grad():
        kerple.kerple_a.copy_(drawn(*kerple.kerple_a.shape).exp())
        kerple.kerple_b.copy_(drawn(*kerple.kerple_b.shape, seed=1).exp())
    ours = kerple_bias(kerple.kerple_b.flatten(), kerple.kerple_a.flatten(), AT, AT)
    agree(ours.tril(), kerple(N, N)[0].tril(), 1e-5)


def test_sandwich_is_nemo_s(leaf, agree, monkeypatch):
    """Both count the waves from 1. Its decorator only warns, and would need the rest of the package."""
    decorators = types.SimpleNamespace(experimental=lambda decorated: decorated)
    monkeypatch.setitem(sys.modules, "nemo.utils.decorators", decorators)
    sandwich = leaf(f"{NEMO}.sandwich_relative_position_embedding").SandwichRelativePositionEmbedding(
        False, HEADS, None, 128, max_seq_len=N
    )
    agree(sandwich_bias(HEADS, AT, AT).tril(), sandwich(N, N)[0].tril(), 1e-5)


# --- scores


def test_transformer_xl_scores_are_xlnet_s(public, agree):
    """XLNet has rows for the distances N down to 1 - N and shifts them in its own way."""
    config = public("transformers.models.xlnet.configuration_xlnet").XLNetConfig(
        d_model=WIDTH, n_head=HEADS, d_inner=WIDTH
    )
    module = randomise(public("transformers.models.xlnet.modeling_xlnet").XLNetRelativeAttention(config))
    u, v = module.r_w_bias, module.r_r_bias
    q, k, value = (drawn(N, B, HEADS, D, seed=seed) for seed in range(3))
    rows = drawn(2 * N, 1, HEADS, D, seed=3)
    hidden = (~SEEN).float()[..., None, None].expand(-1, -1, B, 1)
    _, theirs = module.rel_attn_core(
        q, k, value, rows.expand(-1, B, -1, -1), attn_mask=hidden, output_attentions=True
    )
    r = rows[:, 0].flip(0)[N - 1 : -1].transpose(0, 1)  # row t is of distance t
    scores = transformer_xl_scores(q.permute(1, 2, 0, 3), k.permute(1, 2, 0, 3), r, u, v)
    agree(weights_of(scores, SEEN), theirs.permute(2, 3, 0, 1), 5e-6)


def test_the_transformer_xl_module_without_a_mask_is_a_conformer_s(public, agree):
    """There the sines and cosines of R are interleaved, so the columns of W_r are in another order."""
    conformer = public("transformers.models.wav2vec2_conformer.modeling_wav2vec2_conformer")
    config = public("transformers.models.wav2vec2_conformer.configuration_wav2vec2_conformer")
    config = config.Wav2Vec2ConformerConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, position_embeddings_type="relative"
    )
    config._attn_implementation = "eager"
    theirs = randomise(conformer.Wav2Vec2ConformerSelfAttention(config))
    x = drawn(B, N, WIDTH)
    codes = conformer.Wav2Vec2ConformerRelPositionalEmbedding(config)(x)
    expected = theirs(x, relative_position_embeddings=codes)[1]

    ours = TransformerXL().at_score(Heads(HEADS, D, WIDTH, causal=False))
    with torch.no_grad():
        ours.u.copy_(theirs.pos_bias_u)
        ours.v.copy_(theirs.pos_bias_v)
        weight = theirs.linear_pos.weight
        ours.distances.weight.copy_(torch.cat([weight[:, 0::2], weight[:, 1::2]], dim=1))
    q, k = projected(x, theirs.linear_q), projected(x, theirs.linear_k)
    for consecutive in (True, False):
        scores = ours(q, k, ours.prepare(AT, AT, consecutive), slice(None))
        agree(weights_of(scores), expected, 5e-6)
    rows = (sinusoidal(AT, WIDTH) @ weight.T).unflatten(-1, (HEADS, -1)).transpose(0, 1)
    mask = torch.zeros(N, N).masked_fill(~SEEN, -torch.inf)
    masked = theirs(x, attention_mask=mask[None, None], relative_position_embeddings=codes)[1]
    agree(weights_of(transformer_xl_scores(q, k, rows, ours.u, ours.v), SEEN), masked, 5e-6)


def test_shaw_scores_and_values_are_those_of_vits_where_nothing_is_clipped(public, agree):
    """Beyond its window VITS adds nothing, where the paper clips: they agree up to clip + 1 tokens."""
    config = public("transformers.models.vits.configuration_vits").VitsConfig(
        hidden_size=WIDTH, num_attention_heads=HEADS, window_size=N - 1, attention_dropout=0.0
    )
    module = randomise(public("transformers.models.vits.modeling_vits").VitsAttention(config))
    x = drawn(B, N, WIDTH)
    expected, _ = module(x)
    q, k, v = (projected(x, linear) for linear in (module.q_proj, module.k_proj, module.v_proj))
    weights = weights_of(shaw_scores(q, k, module.emb_rel_k[0], clip=N - 1))
    ours = shaw_output(weights, v, module.emb_rel_v[0], clip=N - 1)
    agree(module.out_proj(ours.transpose(1, 2).flatten(-2)), expected, 3e-6)


def test_clipped_shaw_scores_are_those_of_wav2vec2_bert(public, agree):
    clip = 4
    bert = public("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    config = public("transformers.models.wav2vec2_bert.configuration_wav2vec2_bert").Wav2Vec2BertConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=clip,
        right_max_position_embeddings=clip,
    )
    config._attn_implementation = "eager"
    module = randomise(bert.Wav2Vec2BertSelfAttention(config))
    x = drawn(B, N, WIDTH)
    q, k = projected(x, module.linear_q), projected(x, module.linear_k)
    ours = weights_of(shaw_scores(q, k, module.distance_embedding.weight, clip=clip))
    agree(ours, module(x)[1], 3e-6)


def test_shaw_by_one_table_is_opennmt_s(leaf, agree):
    """OpenNMT has one table for keys and values; its two products are ours with that table twice."""
    onmt = leaf("onmt.modules.multi_headed_attn")
    clip, (q, k, v) = 4, (drawn(B, HEADS, N, D, seed=seed) for seed in range(3))
    table = drawn(2 * clip + 1, D, seed=3)
    matrix = table[onmt.gen_relative_positions(N, clip)]  # [N, N, d]
    expected = (q @ k.mT + onmt.relative_matmul(q, matrix, True)) * D**-0.5
    agree(shaw_scores(q, k, table, clip=clip), expected, 3e-6)
    weights = weights_of(expected)
    expected = weights @ v + onmt.relative_matmul(weights, matrix, False)
    agree(shaw_output(weights, v, table, clip=clip), expected, 3e-6)


def test_cope_is_x_transformers(public, agree):
    """It passes scaled logits to the gates, and hides later keys before."""
    module = randomise(public("x_transformers.x_transformers").CoPE(D, HEADS, max_pos=6), std=1.0)
    q, k = drawn(B, HEADS, N, D), drawn(B, HEADS, N, D, seed=1)
    logits = q @ k.mT * D**-0.5
    expected = logits + module(q, logits.masked_fill(~SEEN, -torch.finfo(logits.dtype).max))
    agree(cope_scores(q, k, module.pos_emb, gate="scaled").tril(), expected.tril(), 5e-6)


# --- no encoding, and the window


def test_attention_without_positions_is_torch_s(agree):
    q, k, v = (drawn(B, HEADS, N, D, seed=seed) for seed in range(3))
    ours = weights_of(q @ k.mT * D**-0.5, SEEN) @ v
    agree(ours, F.scaled_dot_product_attention(q, k, v, is_causal=True), 1e-6)


@pytest.mark.parametrize("window", [1, 3, N, 2 * N])
def test_the_sliding_window_is_transformers(window, public):
    """A window counts the token itself."""
    theirs = public("transformers.masking_utils").sliding_window_causal_mask_function(window)
    seen = theirs(torch.tensor(0), torch.tensor(0), AT[:, None], AT)
    assert torch.equal(visible(N, N, torch.device("cpu"), window=window), seen)

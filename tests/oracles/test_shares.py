"""Whole attention layers in which positions have some columns of a head, against public ones with the same
weights; and the bias of forget gates.

What theirs has beside, normalised queries and keys, a gate of the output, a latent of keys and values, is set
to what changes nothing.
"""

import pytest
import torch
from torch import Tensor, nn

from sepnb.encodings import Forgetting, Heads, RoPE, forgetting_bias
from sepnb.models import Transformer, TransformerConfig
from sepnb.streams import Streams

pytestmark = pytest.mark.oracle

B, N, HEADS, D = 2, 12, 4, 16
WIDTH = HEADS * D
AT = torch.cat([torch.arange(N // 2), torch.arange(N // 2) + 40])
X = torch.randn(B, N, WIDTH, generator=torch.Generator().manual_seed(0))
HIDDEN = torch.full((1, 1, N, N), -torch.inf).triu(1)
SIZE = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "attn_implementation": "eager"}


def own(encoding, **fields) -> tuple[dict[str, Tensor], Tensor]:
    """W_Q, W_K, W_V and W_O of a layer of ours, and what it gives for `X` at `AT`."""
    torch.manual_seed(1)
    stack = Transformer(TransformerConfig(Streams.dense(WIDTH), 1, HEADS, encoding, **fields)).eval()
    layer = stack.blocks[0].attention
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.3)  # scores that are far from uniform
    q, k = layer.query_key[0].weight.split([WIDTH, len(layer.query_key[0].weight) - WIDTH])
    weights = {"q": q, "k": k, "v": layer.value.blocks["sem"].weight, "o": layer.output.blocks["sem"].weight}
    out = layer({"sem": X}, stack.attention_context(AT, AT, X.dtype))["sem"]
    return {name: weight.detach() for name, weight in weights.items()}, out


def theirs(layer: nn.Module, rotary: nn.Module, weights: dict[str, Tensor]) -> Tensor:
    """What a layer of theirs gives with these weights."""
    for name, weight in weights.items():
        with torch.no_grad():
            layer.get_submodule(name).weight.copy_(weight)
    with torch.no_grad():
        return layer.eval()(X, rotary(X, AT[None]), HIDDEN)[0]


@pytest.mark.parametrize("shared", [1, 2])
def test_rope_on_a_quarter_of_the_columns_is_the_attention_of_qwen3_next(shared, public, agree):
    """Its gates are shut half, so that what comes out is half of ours."""
    qwen = public("transformers.models.qwen3_next.modeling_qwen3_next")
    config = public("transformers").Qwen3NextConfig(
        **SIZE,
        num_key_value_heads=HEADS // shared,
        head_dim=D,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.25},
    )
    layer, rotary = qwen.Qwen3NextAttention(config, 0), qwen.Qwen3NextRotaryEmbedding(config)
    assert rotary(X, AT[None])[0].shape[-1] == D // 4  # it did take the share
    layer.q_norm = layer.k_norm = nn.Identity()
    weights, ours = own(RoPE(partial=0.25), n_kv_heads=HEADS // shared)
    each = weights["q"].unflatten(0, (HEADS, D))
    gated = torch.cat([each, torch.zeros_like(each)], dim=1).flatten(0, 1)
    copied = {"q_proj": gated, "k_proj": weights["k"], "v_proj": weights["v"], "o_proj": weights["o"]}
    agree(ours / 2, theirs(layer, rotary, copied), 2e-5)


@pytest.mark.parametrize(("layout", "interleave"), [("interleaved", True), ("half", False)])
def test_a_shared_key_is_the_attention_of_deepseek_v3_without_its_compression(
    layout, interleave, public, agree
):
    """Its latent is as wide as the model and made by the identity."""
    deepseek, turning = public("transformers.models.deepseek_v3.modeling_deepseek_v3"), D // 4
    config = public("transformers").DeepseekV3Config(
        **SIZE,
        num_key_value_heads=HEADS,
        q_lora_rank=None,
        kv_lora_rank=WIDTH,
        qk_rope_head_dim=turning,
        qk_nope_head_dim=D - turning,
        v_head_dim=D,
        rope_interleave=interleave,
    )
    layer, rotary = deepseek.DeepseekV3Attention(config, 0), deepseek.DeepseekV3RotaryEmbedding(config)
    layer.kv_a_layernorm = nn.Identity()
    weights, ours = own(RoPE(partial=0.25, shared=True, layout=layout))
    keys, common = weights["k"].split([HEADS * (D - turning), turning])
    of_head = [keys.unflatten(0, (HEADS, -1)), weights["v"].unflatten(0, (HEADS, D))]
    copied = {  # what turns stands last in a head of theirs
        "q_proj": weights["q"].unflatten(0, (HEADS, D)).roll(-turning, dims=1).flatten(0, 1),
        "kv_a_proj_with_mqa": torch.cat([torch.eye(WIDTH), common]),
        "kv_b_proj": torch.cat(of_head, dim=1).flatten(0, 1),
        "o_proj": weights["o"],
    }
    agree(ours, theirs(layer, rotary, copied), 2e-5)


def test_the_bias_of_forget_gates_is_x_transformers(public, agree):
    gates = public("x_transformers.x_transformers").DataDependentAlibi(WIDTH, HEADS)
    module = Forgetting().at_query_key(Heads(HEADS, D, content_width=WIDTH, reading=HEADS))
    with torch.no_grad():
        module.gates.weight.copy_(gates.to_forget_gates[0].weight)
        module.gates.bias.copy_(gates.to_forget_gates[0].bias.normal_())
        agree(forgetting_bias(module.kept(X)[..., 0]), gates(X).tril(), 2e-5)

"""Models of transformers under the probe, and our model as one of them.

Six architectures from their configs, with random weights, trained for a moment: nothing is downloaded.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn
from typer.testing import CliRunner

from sepnb import cli
from sepnb.encodings import (
    DynamicNTK,
    Llama3,
    LongRoPE,
    NTKAware,
    NTKByParts,
    PositionInterpolation,
    RaisedBase,
    RoPE,
    YaRN,
)
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.protocol import hf, probe
from sepnb.streams import Streams

from ..protocol.shapes import EVERY, TIMES, L, N, repeating

pytestmark = pytest.mark.oracle

V, D, HEADS, LAYERS, NEAR = 2 * EVERY, 32, 2, 2, L // 2
SIZE = {"vocab_size": V, "hidden_size": D, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
ROTARY = SIZE | {"intermediate_size": 2 * D, "max_position_embeddings": L, "num_key_value_heads": HEADS}
ENDS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0}
MODELS: dict[str, tuple[str, dict]] = {
    "llama": ("Llama", ROTARY),
    "qwen": ("Qwen3", ROTARY | {"head_dim": D // HEADS}),
    "gpt-neox": ("GPTNeoX", SIZE | {"intermediate_size": 2 * D, "max_position_embeddings": L}),
    "deepseek-v3": (
        "DeepseekV3",
        ROTARY
        | {"moe_intermediate_size": D, "n_routed_experts": 4, "n_group": 2, "topk_group": 1}
        | {"num_experts_per_tok": 2, "first_k_dense_replace": 1, "kv_lora_rank": 8, "q_lora_rank": 8}
        | {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16},
    ),
    "gpt2": ("GPT2", {"vocab_size": V, "n_embd": D, "n_layer": LAYERS, "n_head": HEADS, "n_positions": N}),
    "bloom": ("Bloom", {"vocab_size": V, "hidden_size": D, "n_layer": LAYERS, "n_head": HEADS}),
}
UNSTRETCHED: dict[str, tuple[str, dict]] = {
    "falcon": ("Falcon", SIZE),
    "gemma": ("Gemma3Text", ROTARY | {"head_dim": D // HEADS}),
}
"""Architectures whose RoPE no extension can act on."""


@pytest.fixture
def build(public) -> Callable[..., nn.Module]:
    """`build(architecture, …)`: a random model of it; what is given replaces its config."""

    def made(name: str, **changes) -> nn.Module:
        kind, settings = (MODELS | UNSTRETCHED)[name]
        package = public("transformers")
        heads = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}
        torch.manual_seed(0)
        config = getattr(package, f"{kind}Config")(**ENDS | settings | changes)
        return getattr(package, heads.get(kind, f"{kind}ForCausalLM"))(config).eval()

    return made


def schooled(model: nn.Module, steps: int = 60) -> nn.Module:
    """Trained on windows of L, long enough to know more than how often a token comes."""
    text, rng = repeating(NEAR, seed=1), np.random.default_rng(0)
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        starts = rng.integers(0, len(text) - L, 16)
        batch = torch.from_numpy(np.stack([text[at : at + L + 1] for at in starts]))
        loss = F.cross_entropy(model(batch[:, :-1]).logits.flatten(0, 1), batch[:, 1:].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_is_probed_and_its_axes_are_what_its_positions_allow(name, build) -> None:
    card = probe(hf(schooled(build(name))), repeating(NEAR), trained_length=L, times=TIMES)
    assert "learned nothing" not in card.survives.why
    assert card.survives.numbers.keys() == {"gap/2x", "gap/4x"} and card.meta["read_up_to"] == N
    found = {axis: one.verdict for axis, one in card.axes.items()}
    if name == "bloom":
        assert set(found.values()) == {"not judged"} and "takes no position_ids" in card.axes["index"].why
        return
    assert "not judged" not in found.values()
    cost = card.axes["index"].numbers["cost"]["mean"]
    if name == "gpt2":
        assert abs(cost) > 3e-3, "rows that no training touched"
    else:
        assert found["index"] == "held" and abs(cost) < 1e-3, "a rotation knows differences only"


def test_a_table_of_the_trained_length_is_never_asked_for_a_row_that_it_has_not(build) -> None:
    short = hf(schooled(build("gpt2", n_positions=L)))
    assert short.limit == L
    card = probe(short, repeating(NEAR), trained_length=L, times=TIMES)
    assert card.meta["read_up_to"] == L
    assert card.survives.verdict == card.axes["index"].verdict == "not testable here"
    assert card.axes["length"].numbers, "more keys fit at trained positions"


def test_frequencies_that_a_long_text_left_behind_are_put_back(build) -> None:
    """Dynamic NTK keeps those of the longest text until a short one comes."""
    model = build("llama", rope_parameters=DYNAMIC)
    tokens = torch.from_numpy(repeating(NEAR)[None, :N])
    middle, reader = tokens[:, : N // 2], hf(model)
    with torch.no_grad():
        fresh = reader(middle)
        reader(tokens)
        assert torch.equal(reader(middle), fresh)
        assert torch.equal(model(middle).logits, fresh), "nothing is left in the model"
        model(tokens)
        assert not torch.equal(model(middle).logits, fresh), "the trap is there"
        assert torch.equal(hf(model)(middle), fresh), "and was before the adapter"


def test_positions_that_jump_are_not_taken_for_several_texts(build) -> None:
    model = schooled(build("llama"), steps=20)
    tokens = torch.from_numpy(repeating(NEAR)[None, :L])
    at = torch.cat([torch.arange(L // 2), torch.arange(100, 100 + L // 2)])
    with torch.no_grad():
        ours = hf(model)(tokens, at)
        asked = {"position_ids": at[None], "use_cache": False}
        packed = model(tokens, **asked).logits
        masked = model(tokens, **asked, attention_mask=torch.ones_like(tokens)).logits
    assert torch.equal(ours, masked) and not torch.allclose(ours, packed, atol=1e-4)


def test_what_is_no_causal_language_model_is_refused(public, build) -> None:
    with pytest.raises(TypeError, match="AutoModelForCausalLM"):
        hf(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no logits of the next token"):
        hf(build("llama").model)
    with pytest.raises(TypeError, match=r"give hf\(model\)"):
        probe(build("llama"), repeating(NEAR), trained_length=L, times=TIMES)


@pytest.mark.parametrize("kind", ["BertLMHeadModel", "BertForMaskedLM"])
def test_a_bidirectional_model_is_refused_and_no_card_is_made(kind, public) -> None:
    """With random weights too, of which later tokens change little."""
    package = public("transformers")
    torch.manual_seed(0)
    config = package.BertConfig(**SIZE, intermediate_size=2 * D, max_position_embeddings=N)
    with pytest.raises(ValueError, match="looks at later tokens"):
        probe(hf(getattr(package, kind)(config).eval()), repeating(NEAR), trained_length=L, times=TIMES)


# --- our model as theirs


def pairs() -> list[tuple[str, str]]:
    """Names of our weights and of Llama's for the same thing; ours hold several of theirs in one, joined by
    a plus."""
    named = [("embedding.weight", "model.embed_tokens.weight"), ("head.weight", "lm_head.weight")]
    named += [("norm.gain.sem", "model.norm.weight")]
    for layer in range(LAYERS):
        ours, theirs = f"transformer.blocks.{layer}", f"model.layers.{layer}"
        attention = f"{theirs}.self_attn"
        named += [
            (f"{ours}.attention_norm.gain.sem", f"{theirs}.input_layernorm.weight"),
            (f"{ours}.mlp_norm.gain.sem", f"{theirs}.post_attention_layernorm.weight"),
            (
                f"{ours}.attention.query_key.0.weight",
                f"{attention}.q_proj.weight+{attention}.k_proj.weight",
            ),
            (f"{ours}.attention.value.blocks.sem.weight", f"{attention}.v_proj.weight"),
            (f"{ours}.attention.output.blocks.sem.weight", f"{attention}.o_proj.weight"),
            (
                f"{ours}.mlp.up.blocks.sem.weight",
                f"{theirs}.mlp.gate_proj.weight+{theirs}.mlp.up_proj.weight",
            ),
            (f"{ours}.mlp.down.blocks.sem.weight", f"{theirs}.mlp.down_proj.weight"),
        ]
    return named


def to_llama(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our weights under their names."""
    found = {}
    for name, others in pairs():
        names = others.split("+")
        found |= zip(names, ours[name].split([len(theirs[one]) for one in names]), strict=True)
    return found


def from_llama(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The way back."""
    return {name: torch.cat([theirs[one] for one in others.split("+")]) for name, others in pairs()}


def twins(
    build: Callable[..., nn.Module], shared: int = 1, dtype: torch.dtype = torch.float32, **changes
) -> tuple[LanguageModel, nn.Module]:
    """A model of ours and a Llama with the same weights."""
    torch.manual_seed(1)
    shape = {"n_layers": LAYERS, "n_heads": 4, "n_kv_heads": 4 // shared, "encoding": RoPE(layout="half")}
    look = {"norm_kind": "rms", "activation": "swiglu", "expansion": 2}
    ours = LanguageModel(TransformerConfig(Streams.dense(D), **shape, **look), V).to(dtype).eval()
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.3)  # gains too, and scores that are no longer uniform
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4 // shared}
    settings = heads | {"rms_norm_eps": 1e-5, "tie_word_embeddings": False} | changes
    theirs = build("llama", **settings).to(dtype)
    theirs.load_state_dict(to_llama(ours.state_dict(), theirs.state_dict()))
    return ours, theirs


@pytest.mark.parametrize("shared", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rope_with_rms_norm_and_swiglu_is_llama_there_and_back(shared, dtype, build, agree) -> None:
    """Also with shared keys and values, and at positions that jump."""
    ours, theirs = twins(build, shared, dtype)
    back = LanguageModel(ours.config, V).to(dtype).eval()
    back.load_state_dict(from_llama(theirs.state_dict()))
    tokens = torch.from_numpy(repeating(NEAR)[: 2 * L].reshape(2, L))
    jumping = torch.cat([torch.arange(L // 2), torch.arange(40, 40 + L // 2)])
    with torch.no_grad():
        for at in (None, jumping):
            asked = (tokens,) if at is None else (tokens, at)
            agree(ours(*asked), hf(theirs)(*asked), 1e-5)
            assert torch.equal(back(*asked), ours(*asked))


# --- under a context extension

EXTENSIONS = [
    PositionInterpolation(4.0),
    NTKAware(4.0),
    DynamicNTK(4.0, L),
    NTKByParts(4.0, L, beta=2),
    YaRN(4.0, L),
    YaRN(4.0, L, beta_fast=2, beta_slow=0.5),
    Llama3(4.0, L),
    RaisedBase(5e5),
]


@pytest.mark.parametrize("extension", EXTENSIONS, ids=lambda one: one.name)
def test_an_extension_is_the_same_for_ours_and_for_theirs_and_leaves_both_as_they_were(
    extension, build, agree
) -> None:
    """Their config may name another length than the trained one."""
    ours, theirs = twins(build, max_position_embeddings=4 * N)
    tokens = torch.from_numpy(repeating(NEAR)[: 2 * N].reshape(2, N))
    with torch.no_grad():
        before, told = hf(theirs)(tokens), theirs.config.to_dict()
        stretched = hf(theirs, extension)
        agree(ours.extended(extension=extension)(tokens), stretched(tokens), 1e-5)
        assert not torch.allclose(stretched(tokens), before, atol=1e-3)
        assert torch.equal(hf(theirs)(tokens), before) and theirs.config.to_dict() == told
        weights = zip(stretched.module.parameters(), theirs.parameters(), strict=True)
        assert all(one is other for one, other in weights)
        halved = hf(theirs.bfloat16(), extension)(tokens)  # whose frequencies a cast has rounded
    assert halved.dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["qwen", "gpt-neox", "deepseek-v3"])
def test_partial_rotations_and_those_of_latent_attention_are_stretched_too(name, build) -> None:
    """As a model whose config said so from the beginning."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": L, "rope_theta": 10_000.0}
    yarn |= {"partial_rotary_factor": 0.25} if name == "gpt-neox" else {}
    model, written = build(name), build(name, rope_parameters=yarn)
    written.load_state_dict(model.state_dict())
    tokens = torch.from_numpy(repeating(NEAR)[None, :N])
    with torch.no_grad():
        assert torch.equal(hf(model, YaRN(4.0, L))(tokens), hf(written)(tokens))


def test_a_card_says_what_stretching_gives_a_model(build) -> None:
    model = schooled(build("llama"))
    asked = {"trained_length": L, "times": TIMES}
    card = probe(hf(model, DynamicNTK(4.0, L)), repeating(NEAR), **asked, reference=hf(model))
    assert card.meta["model"] == "LlamaForCausalLM (llama), dynamic-ntk with factor 4"
    assert card.meta["under"] == {"extension": DynamicNTK(4.0, L).resolved()}
    assert card.meta["follows_length"] and card.price.numbers["difference"]["mean"] == 0.0
    inside, last = card.curve[0], card.curve[-1]
    plain = probe(hf(model), repeating(NEAR), **asked).curve
    assert inside["model"] == plain[0]["model"] and last["model"] != plain[-1]["model"]


@pytest.mark.parametrize(
    ("name", "changes", "extension", "message"),
    [
        ("gpt2", {}, YaRN(4.0, L), "this gpt2 model has none .* no rope_parameters; read it without"),
        ("bloom", {}, YaRN(4.0, L), "this bloom model has none"),
        ("falcon", {"alibi": True}, YaRN(4.0, L), "this falcon model has none .* it has ALiBi"),
        ("gemma", {}, YaRN(4.0, L), "differ by layer .sliding_attention, full_attention."),
        (
            "llama",
            {"rope_parameters": DYNAMIC},
            YaRN(4.0, L),
            "scaled already .rope_type dynamic",
        ),
        ("llama", {}, YaRN(4.0, L, ramp="rotations"), "cannot say YaRN"),
        ("llama", {}, NTKByParts(4.0, L, alpha=0), "cannot say NTKByParts"),
        ("llama", {}, LongRoPE((1,) * 8, (2,) * 8, 4.0, L), "cannot say LongRoPE"),
        ("llama", {}, RaisedBase(100.0), "below 10000"),
    ],
)
def test_what_cannot_be_stretched_is_refused(name, changes, extension, message, build) -> None:
    with pytest.raises(ValueError, match=message):
        hf(build(name, **changes), extension)


def test_an_extension_is_one_of_ours_and_a_class_that_ignores_it_is_found_out(public, build) -> None:
    model = build("llama")
    with pytest.raises(TypeError, match=r"extension must be a Extension, such as YaRN\(8.0"):
        hf(model, "yarn")
    rotary = public("transformers.models.llama.modeling_llama").LlamaRotaryEmbedding

    class Deaf(rotary):
        def __init__(self, config):
            super().__init__(config)
            self.inv_freq, self.attention_scaling = self.compute_default_rope_parameters(config)

    model.model.rotary_emb = Deaf(model.config)
    with pytest.raises(ValueError, match=r"Deaf .* has other frequencies than these"):
        hf(model, YaRN(4.0, L))
    model.model.rotary_emb.rope_type = None
    with pytest.raises(ValueError, match="Deaf of LlamaForCausalLM takes no scaling"):
        hf(model, YaRN(4.0, L))


def test_the_command_line_asks_the_config_before_it_loads_a_model(
    tmp_path, monkeypatch, public, build
) -> None:
    """And reads one that can be stretched."""
    monkeypatch.setattr(cli, "console", Console(width=200, highlight=False))
    np.save(tmp_path / "text.npy", repeating(NEAR))
    asked = ["--text", tmp_path / "text.npy", "--length", L, "--times", "2", "--out", tmp_path / "cards"]
    asked += ["--extension", "ntk-aware", "--factor", 2]
    for name in ("llama", "gpt2"):
        build(name).save_pretrained(tmp_path / name)
    done = CliRunner().invoke(cli.app, ["probe", *map(str, (tmp_path / "llama", *asked))])
    assert done.exit_code == 0, done.output
    assert [file.name for file in (tmp_path / "cards").glob("*.json")] == [
        "llama-ntk-aware-with-factor-2.json"
    ]
    loads = public("transformers").AutoModelForCausalLM
    monkeypatch.setattr(loads, "from_pretrained", lambda *_, **__: pytest.fail("a model was loaded"))
    done = CliRunner().invoke(cli.app, ["probe", *map(str, (tmp_path / "gpt2", *asked))])
    assert done.exit_code == 2 and "this gpt2 model has none" in " ".join(done.output.split())

"""The table of chapter 14, which says in how many columns of which layers public models let position act."""

import ast

import pytest

from sepnb import paths

pytestmark = pytest.mark.oracle


def told() -> dict[str, tuple[int, int, str]]:
    """Of each model the columns that turn, the columns of a query, and in which layers; as in the chapter."""
    chapter = ast.parse((paths.root() / "notebooks" / "14_dimensions.py").read_text(encoding="utf-8"))
    (table,) = (
        node.value
        for node in chapter.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLIC"
    )
    return {name.split(",")[0]: (turn, of, layers) for name, turn, of, layers, _ in ast.literal_eval(table)}


def share(config, factor: float, width: int | None = None) -> tuple[int, int]:
    width = width or getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(width * factor), width


def every(layers: list, one: object) -> str:
    """How often `one` comes among layers that repeat: "1 of 4", or "3 of 4"."""
    period = next(n for n in range(1, len(layers)) if layers[:-n] == layers[n:])
    return f"{layers[:period].count(one)} of {period}"


def test_the_table_of_public_models_is_what_their_configurations_say(public):
    t = public("transformers")
    gpt_j, neox, glm, deepseek = t.GPTJConfig(), t.GPTNeoXConfig(), t.GlmConfig(), t.DeepseekV3Config()
    llama, smol, qwen, gemma = (
        t.Llama4TextConfig(),
        t.SmolLM3Config(),
        t.Qwen3NextConfig(),
        t.Gemma4TextConfig(),
    )
    last = gemma.layer_types.index("full_attention")
    turning = gemma.rope_parameters["full_attention"]["partial_rotary_factor"]
    wide = gemma.to_dict()["per_layer_config"][f"{last:02d}"]["head_dim"]
    assert told() == {
        "GPT-J 6B": (gpt_j.rotary_dim, gpt_j.n_embd // gpt_j.n_head, "all"),
        "GPT-NeoX 20B": (*share(neox, neox.rope_parameters["partial_rotary_factor"]), "all"),
        "GLM-4 9B": (*share(glm, glm.rope_parameters["partial_rotary_factor"]), "all"),
        "DeepSeek-V3": (
            deepseek.qk_rope_head_dim,
            deepseek.qk_rope_head_dim + deepseek.qk_nope_head_dim,
            "all",
        ),
        "Llama 4 Scout": (*share(llama, 1), every(llama.no_rope_layers, 1)),
        "SmolLM3 3B": (*share(smol, 1), every(smol.no_rope_layers, 1)),
        "Qwen3-Next 80B": (
            *share(qwen, qwen.rope_parameters["partial_rotary_factor"]),
            every(qwen.layer_types, "full_attention"),
        ),
        "Gemma 4": (*share(gemma, turning, wide), every(gemma.layer_types, "full_attention")),
    }

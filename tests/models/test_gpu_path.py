"""The path of the gpu profile, driven on a CPU: bfloat16 forward passes of a compiled model.

What only a GPU can show (its kernels, its memory, its speed) is not claimed here. What breaks a compilation
or a forward pass in bfloat16 is the same everywhere, and shows here for one model per site. The models run
in a process of their own, because the hook that checks shapes in tests cannot be compiled.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from sepnb.models import TransformerConfig
from sepnb.streams import Streams
from sepnb.training import TrainingConfig

LENGTH, VOCABULARY = 8, 11
EAGER = TrainingConfig(steps=2, batch_size=2, length=LENGTH, learning_rate=1e-3, warmup=0.0)
DENSE, SEPARATED = Streams.dense(16), Streams(pos=6, sem=10)  # heads of 4: the second one straddles


def config(streams: Streams, encoding: str | tuple[str, ...], **fields) -> TransformerConfig:
    return TransformerConfig(streams, 1, 4, encoding, max_length=LENGTH, **fields)


CASES = {
    "rope": config(DENSE, "rope"),
    "separated-sinusoidal": config(SEPARATED, "sinusoidal"),
    "separated-alibi": config(SEPARATED, ("sinusoidal", "alibi")),
    "strict-rms": config(Streams(pos=4, sem=12), "learned", mode="strict", norm_kind="rms"),
    "joint-both-bias": config(SEPARATED, "sinusoidal", norm="joint", readout="both", bias=True),
}
EXTENDED = {
    "learned": {"extrapolator": "learned", "steps": 20},
    "procrustes": {"extrapolator": "sinusoidal", "align": "procrustes"},
}
"""How the models that have an encoding at the input read twice their trained length."""

VARIANTS = {"eager": EAGER, "compiled": replace(EAGER, compiler="aot_eager", precision="bfloat16")}


def drive() -> dict[str, dict]:
    """Two training steps and a scoring of every case in every variant; what broke a graph, by its reason."""
    import torch

    from sepnb.evaluation import evaluate
    from sepnb.models import LanguageModel
    from sepnb.training import train

    counters = torch._dynamo.utils.counters
    found: dict[str, dict] = {}
    for case, model_config in CASES.items():
        for variant, training in VARIANTS.items():
            torch.compiler.reset()
            counters.clear()
            torch.manual_seed(0)
            model = LanguageModel(model_config, VOCABULARY)
            tokens = np.random.default_rng(0).integers(VOCABULARY, size=(3, 2, LENGTH + 1))
            losses = train(model, iter(tokens), training)
            longer = np.random.default_rng(1).integers(VOCABULARY, size=(2, 2 * LENGTH + 1))
            rules = EXTENDED if model_config.input_encodings else {}
            found[f"{case} {variant}"] = {
                "losses": losses,
                "bits": evaluate(model, tokens[2], precision=training.precision).bits_per_byte,
                "extended": {
                    rule: evaluate(
                        model.extended(**options), longer, precision=training.precision
                    ).bits_per_byte
                    for rule, options in rules.items()
                },
                "dtypes": sorted({str(parameter.dtype) for parameter in model.parameters()}),
                "finite": all(bool(parameter.isfinite().all()) for parameter in model.parameters()),
                "graphs": counters["stats"]["unique_graphs"],
                "breaks": list(counters["graph_break"]),
            }
    return found


@pytest.fixture(scope="module")
def driven(tmp_path_factory) -> dict[str, dict]:
    from .. import shared  # not where this file is run as a script

    return shared.told_by(tmp_path_factory, __file__)


@pytest.mark.parametrize("case", CASES)
def test_compiled_training_in_bfloat16_follows_the_eager_one_in_float32(driven, case):
    eager, compiled = (driven[f"{case} {variant}"] for variant in VARIANTS)
    assert eager["graphs"] == 0
    assert compiled["graphs"] >= 1 and compiled["breaks"] == []
    assert compiled["finite"] and np.isfinite(compiled["losses"]).all()
    assert compiled["dtypes"] == ["torch.float32"]
    assert compiled["losses"] != eager["losses"]
    assert compiled["losses"] == pytest.approx(eager["losses"], abs=0.05)
    assert compiled["bits"] == pytest.approx(eager["bits"], abs=0.05)


@pytest.mark.parametrize("case", [case for case, built in CASES.items() if built.input_encodings])
@pytest.mark.parametrize("rule", EXTENDED)
def test_extrapolated_positions_are_read_in_bfloat16_as_in_float32(driven, case, rule):
    eager, rounded = (driven[f"{case} {variant}"]["extended"][rule] for variant in VARIANTS)
    assert rounded == pytest.approx(eager, abs=0.05)


if __name__ == "__main__":
    print(json.dumps(drive()))

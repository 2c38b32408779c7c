"""Chapter 10: one factor at a time. What does each part of the separation cost or give?

A variant is another model with the fields that it declares replaced, and nothing else; its difference from
that reference is what the fields do. The models are smaller than those of `in_window` on a laptop, so that
many variants and several seeds can be paid for: differences compare inside this experiment only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ..models import TransformerConfig
from ..streams import Streams
from ..training.loop import TrainingConfig
from . import language_modelling as lm
from .base import check_profile
from .screening import screened_rate

SIZES = {
    "smoke": lm.Size(64, 80, 2, 4, 64, 8, 60, lm.TextConfig("sympy", 1024, 2048)),
    "laptop": lm.Size(64, 80, 3, 4, 64, 16, 1200, lm.TextConfig("eltec-eng", 8_192, 20_480)),
    "gpu": lm.SIZES["gpu"],
}
"""On a laptop 410 kB of the test novels are scored, the first 20 kB of each."""

SEEDS = {"smoke": (1,), "laptop": (1, 2, 3), "gpu": (1, 2, 3, 4, 5, 6)}
"""The grid runs seed by seed. Three show the size of a difference and leave every comparison undecided."""

JUDGED = (
    "separated-sinusoidal",
    "separated-sinusoidal-joint-norm",
    "separated-sinusoidal-joint-value-output",
    "separated-sinusoidal-joint-mlp",
    "separated-sinusoidal-both-readout",
    "separated-sinusoidal-constant",
    "separated-sinusoidal-reinjected",
    "sinusoidal",
    "sinusoidal-reinjected",
    "concatenated-sinusoidal",
    "concatenated-sinusoidal-split-norm",
    "learned",
    "learned-reinjected",
    "separated-learned",
    "separated-learned-constant",
    "separated-learned-reinjected",
)
"""What the claims compare: six seeds on a laptop too, the least that a verdict needs. Seeds 4 to 6 were added
after the first three were seen, for every claim alike; no claim could have had a verdict without them."""

JUDGED_SEEDS = {"smoke": (), "laptop": (1, 2, 3, 4, 5, 6), "gpu": (1, 2, 3, 4, 5, 6)}


def _with_pos_share(parts: int) -> Callable[[lm.Size], Streams]:
    """Streams of the same width in which position has one part in `parts`."""
    return lambda size: Streams(pos=size.width // parts, sem=size.width - size.width // parts)


def _wide(size: lm.Size) -> Streams:
    return Streams(pos=size.wide // lm.POS_SHARE, sem=size.wide - size.wide // lm.POS_SHARE)


@dataclass(frozen=True)
class Variant:
    """One change of one model.

    Args:
        factor: what is changed, in a few words.
        reference: the model that is changed, a variant or a method of `language_modelling.METHODS`. A
            variant without one is such a method itself, the start of a family.
        changes: the fields of `TransformerConfig` that are replaced, each by a value or, where it depends on
            the size, by a function of it.
    """

    factor: str
    reference: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)


def _around_separated() -> dict[str, Variant]:
    full = "separated-sinusoidal"
    return {
        full: Variant("everything split"),
        f"{full}-joint-norm": Variant("one norm over the whole width", full, {"norm": "joint"}),
        f"{full}-joint-value-output": Variant(
            "values and output not split", full, {"split": frozenset({"norm", "mlp"})}
        ),
        f"{full}-joint-mlp": Variant("MLP not split", full, {"split": frozenset({"norm", "value_output"})}),
        f"{full}-both-readout": Variant("output read from both streams", full, {"readout": "both"}),
        "strict-sinusoidal": Variant("position heads read position only", full, {"mode": "strict"}),
        f"{full}-content": Variant("queries and keys read content only", full, {"query_key": "content"}),
        f"{full}-constant": Variant("pos stream constant over layers", full, {"pos_stream": "constant"}),
        f"{full}-reinjected": Variant("code added again in every layer", full, {"pos_stream": "reinjected"}),
        f"{full}-pos-16th": Variant(
            "d_pos = D/16, less than one head", full, {"streams": _with_pos_share(16)}
        ),
        f"{full}-pos-8th": Variant(
            "d_pos = D/8, on a laptop less than one head", full, {"streams": _with_pos_share(8)}
        ),
        f"{full}-pos-half": Variant("d_pos = D/2", full, {"streams": _with_pos_share(2)}),
        f"{full}-wide": Variant("as many parameters as dense", full, {"streams": _wide}),
        "strict-sinusoidal-wide": Variant(
            "as many parameters as dense", "strict-sinusoidal", {"streams": _wide}
        ),
    }


def _around_dense() -> dict[str, Variant]:
    dense, concatenated = "sinusoidal", "concatenated-sinusoidal"
    nothing: frozenset[str] = frozenset()
    return {
        dense: Variant("dense, code added to the embedding"),
        f"{dense}-reinjected": Variant("code added in every layer", dense, {"pos_stream": "reinjected"}),
        "none": Variant("no encoding", dense, {"encoding": "none"}),
        "rope": Variant("RoPE", dense, {"encoding": "rope"}),
        "alibi": Variant("ALiBi", dense, {"encoding": "alibi"}),
        concatenated: Variant(
            "code beside the embedding, nothing split",
            dense,
            {"streams": _with_pos_share(lm.POS_SHARE), "split": nothing, "readout": "both"},
        ),
        f"{concatenated}-split-norm": Variant("norm split", concatenated, {"split": frozenset({"norm"})}),
        f"{concatenated}-split-value-output": Variant(
            "values and output split", concatenated, {"split": frozenset({"value_output"})}
        ),
        f"{concatenated}-split-mlp": Variant("MLP split", concatenated, {"split": frozenset({"mlp"})}),
        f"{concatenated}-sem-readout": Variant(
            "output read from the sem columns", concatenated, {"readout": "sem"}
        ),
    }


def _learned() -> dict[str, Variant]:
    """The fate of the code again, with a learned table in the place of the sinusoid."""
    dense, full = "learned", "separated-learned"
    return {
        dense: Variant("dense, learned table added"),
        f"{dense}-reinjected": Variant("table added in every layer", dense, {"pos_stream": "reinjected"}),
        full: Variant("everything split, learned table"),
        f"{full}-constant": Variant("pos stream constant over layers", full, {"pos_stream": "constant"}),
        f"{full}-reinjected": Variant("table added again in every layer", full, {"pos_stream": "reinjected"}),
    }


VARIANTS: dict[str, Variant] = {**_around_separated(), **_around_dense(), **_learned()}
"""Each with the fields in which it differs from its reference.

The concatenated model is the one that needs three: on a single stream `split` and `readout` have no effect,
so that it differs from the dense model in its streams, and from the separated one in `split` and `readout`.
`-wide` is wider: it has about as many block parameters as the dense model (within 5 %; strict on gpu 6 %).
"""

SMOKE = ("separated-sinusoidal", "separated-sinusoidal-constant")

DEFAULT_RATE = 4e-3
LEARNING_RATES: dict[str, dict[str, float]] = {
    "laptop": {
        "separated-sinusoidal": 8e-3,
        "separated-sinusoidal-joint-norm": 8e-3,
        "separated-sinusoidal-joint-value-output": 8e-3,
        "separated-sinusoidal-joint-mlp": 8e-3,
        "separated-sinusoidal-both-readout": 8e-3,
        "strict-sinusoidal": 8e-3,
        "separated-sinusoidal-content": 8e-3,
        "separated-sinusoidal-constant": 8e-3,
        "separated-sinusoidal-reinjected": 8e-3,
        "separated-sinusoidal-pos-16th": 8e-3,
        "separated-sinusoidal-pos-8th": 8e-3,
        "separated-sinusoidal-pos-half": 8e-3,
        "separated-sinusoidal-wide": 8e-3,
        "strict-sinusoidal-wide": 8e-3,
        "sinusoidal": 8e-3,
        "sinusoidal-reinjected": 8e-3,
        "none": 4e-3,
        "rope": 8e-3,
        "alibi": 8e-3,
        "concatenated-sinusoidal": 8e-3,
        "concatenated-sinusoidal-split-norm": 8e-3,
        "concatenated-sinusoidal-split-value-output": 8e-3,
        "concatenated-sinusoidal-split-mlp": 8e-3,
        "concatenated-sinusoidal-sem-readout": 8e-3,
        "learned": 8e-3,
        "learned-reinjected": 8e-3,
        "separated-learned": 8e-3,
        "separated-learned-constant": 8e-3,
        "separated-learned-reinjected": 8e-3,
    }
}
"""The rate of each variant: the best of `ablation_screen` on the validation text of the profile, as
`screening.best_rates` gives it. For all but one it is the largest of the three. A profile without an
entry takes the laptop's, and without that the middle one; a test asks for an entry as soon as the profile's
screening is published."""


def learning_rate(profile: str, name: str) -> float:
    """The rate of a variant in the runs of a profile."""
    return screened_rate(LEARNING_RATES, profile, name, DEFAULT_RATE)


def model_config(name: str, size: lm.Size) -> TransformerConfig:
    """The model of a variant at a size: its reference with the declared fields replaced.

    Raises:
        ValueError: an unknown variant.
    """
    if name not in VARIANTS:
        raise ValueError(f"unknown variant {name!r}; use one of {', '.join(VARIANTS)}")
    variant = VARIANTS[name]
    if variant.reference is None:
        return lm.model_config(name, size)
    changes = {key: value(size) if callable(value) else value for key, value in variant.changes.items()}
    return replace(model_config(variant.reference, size), **changes)


def run_of(
    experiment: str, profile: str, name: str, seed: int, rate: float, steps: int | None = None
) -> lm.LanguageModelRun:
    """A run of a variant at the size of its profile, over the whole schedule or over `steps`."""
    size = SIZES[profile]
    training = TrainingConfig(
        steps or size.steps,
        size.batch_size,
        size.length,
        rate,
        precision=size.precision,
        compiler=size.compiler,
    )
    return lm.LanguageModelRun(experiment, profile, name, seed, model_config(name, size), training, size.text)


class Ablation(lm.TextExperiment):
    """What does each part of the separation cost or give, one factor at a time?"""

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "One factor at a time"
    question: ClassVar[str] = "What does each part of the separation cost or give, one factor at a time?"
    order: ClassVar[int] = 4

    def grid(self, profile: str, seeds: Sequence[int] | None = None) -> list[lm.LanguageModelRun]:
        names = SMOKE if check_profile(profile) == "smoke" else tuple(VARIANTS)
        return [
            run_of(self.name, profile, name, seed, learning_rate(profile, name))
            for seed in (sorted({*SEEDS[profile], *JUDGED_SEEDS[profile]}) if seeds is None else seeds)
            for name in names
            if seeds is not None or seed in SEEDS[profile] or name in JUDGED
        ]

    def seconds(self, profile: str) -> float:
        return {"smoke": 1.5, "laptop": 40.0, "gpu": 60.0}[check_profile(profile)]

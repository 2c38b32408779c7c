"""The ablation and the budget: variants differ in what they declare, grids compare like with like."""

import dataclasses

import pytest
import torch

from sepnb import experiments
from sepnb.claims import budget as budget_claims
from sepnb.experiments import budget
from sepnb.experiments.ablation import COMPARED, SIZES
from sepnb.experiments.methods import model_config
from sepnb.models import LanguageModel, TransformerConfig

from .smoke_runs import differing

ABLATION, SWEEP, BUDGET = (experiments.get(name) for name in ("ablation", "ablation_sweep", "budget"))
CHANGED = [name for name, variant in COMPARED.items() if variant.base is not None]


def scored(config: TransformerConfig) -> torch.Tensor:
    """Logits of the model that one seed draws, for tokens that are always the same."""
    torch.manual_seed(1)
    model = LanguageModel(config).double().eval()
    with torch.no_grad():
        return model(torch.arange(24).reshape(2, 12) * 5)


# --- one factor


def test_what_the_concatenated_model_changes_besides_its_streams_does_nothing_to_a_dense_one():
    dense = model_config("sinusoidal", SIZES["smoke"])
    changes = {k: v for k, v in COMPARED["concatenated-sinusoidal"].model.items() if k != "streams"}
    assert torch.equal(scored(dense), scored(dataclasses.replace(dense, **changes)))


def test_concatenated_and_separated_differ_in_what_is_split_and_in_the_readout():
    size = SIZES["laptop"]
    concatenated, full = (model_config(n, size) for n in ("concatenated-sinusoidal", "separated-sinusoidal"))
    assert differing(concatenated, full) == {"split", "readout"}
    assert concatenated.splits == frozenset() and full.splits == {"norm", "value_output", "mlp"}
    for wall, taken in (("split-norm", "norm"), ("split-value-output", "value_output"), ("split-mlp", "mlp")):
        assert model_config(f"concatenated-sinusoidal-{wall}", size).splits == {taken}
    for wall, taken in (("joint-norm", "norm"), ("joint-value-output", "value_output"), ("joint-mlp", "mlp")):
        assert model_config(f"separated-sinusoidal-{wall}", size).splits == full.splits - {taken}


@pytest.mark.parametrize("name", CHANGED)
def test_every_change_changes_what_the_model_computes(name):
    variant, size = COMPARED[name], SIZES["laptop"]
    own, reference = (scored(model_config(n, size)) for n in (name, variant.base))
    assert (own - reference).abs().max() > 1e-3


@pytest.mark.parametrize(("profile", "within"), [("smoke", 0.05), ("laptop", 0.05), ("gpu", 0.06)])
@pytest.mark.parametrize("kind", ["separated", "strict"])
def test_the_wide_models_have_about_as_many_block_parameters_as_the_dense_one(kind, profile, within):
    names = ("sinusoidal", f"{kind}-sinusoidal", f"{kind}-sinusoidal-wide")
    with torch.device("meta"):
        models = [LanguageModel(model_config(name, SIZES[profile])) for name in names]
    dense, equal, wide = (model.parameter_counts()["blocks"] for model in models)
    assert equal < 0.8 * dense and wide == pytest.approx(dense, rel=within)


# --- the grids


def test_the_claims_on_budgets_ask_for_what_is_run():
    assert (*budget_claims.RANKED, budget.WIDE) == budget.METHODS
    assert budget_claims.BUDGETS == budget.BUDGETS

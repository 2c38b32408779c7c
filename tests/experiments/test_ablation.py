"""The ablation and the budget: variants differ in what they declare, grids compare like with like."""

import dataclasses
import itertools

import pytest
import torch

from sepnb import experiments
from sepnb.claims import budget as budget_claims
from sepnb.experiments import ablation, budget
from sepnb.experiments.ablation import COMPARED, SIZES
from sepnb.experiments.budget import budget_of
from sepnb.experiments.methods import model_config
from sepnb.experiments.run import Run
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.records.store import Store

ABLATION, SWEEP, BUDGET = (experiments.get(name) for name in ("ablation", "ablation_sweep", "budget"))
CHANGED = [name for name, variant in COMPARED.items() if variant.base is not None]
PUBLISHED = ("laptop", "gpu")


def differing(a: TransformerConfig, b: TransformerConfig) -> set[str]:
    names = [field.name for field in dataclasses.fields(TransformerConfig)]
    return {name for name in names if getattr(a, name) != getattr(b, name)}


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


def test_the_full_model_gives_one_head_to_position_and_the_sweep_brackets_it():
    size = SIZES["laptop"]
    width = {name: model_config(name, size).streams.widths.get("pos") for name in COMPARED}
    full = "separated-sinusoidal"
    assert width[full] == model_config(full, size).head_width == 16
    assert [width[f"{full}-pos-{share}"] for share in ("16th", "8th", "half")] == [4, 8, 32]
    assert {model_config(name, size).streams.d_model for name in COMPARED if "wide" not in name} == {64}


def test_a_share_of_less_than_one_head_is_called_so():
    for name, small in (("pos-16th", PUBLISHED), ("pos-8th", ("laptop",))):
        variant = f"separated-sinusoidal-{name}"
        models = {profile: model_config(variant, SIZES[profile]) for profile in PUBLISHED}
        assert {p for p, one in models.items() if one.streams.widths["pos"] < one.head_width} == {*small}
        assert "less than one head" in COMPARED[variant].says
        assert ("laptop" in COMPARED[variant].says) is (len(small) == 1)


# --- the grids


def settings(config: Run) -> dict:
    """What two runs of one seed must share: all but the variant, its model and its screened rate."""
    resolved = config.resolved()
    training = {k: v for k, v in resolved["training"].items() if k != "learning_rate"}
    return {"profile": config.profile, "training": training, "text": resolved["text"]}


@pytest.mark.parametrize("profile", PUBLISHED)
def test_every_variant_has_three_seeds_what_claims_compare_six_on_the_same_schedule_and_text(profile):
    grid = ABLATION.grid(profile)
    seeds = {name: tuple(c.seed for c in grid if c.method == name) for name in COMPARED}
    few = ablation.DESCRIBED if profile == "laptop" else ()
    assert seeds == {name: (1, 2, 3) if name in few else (1, 2, 3, 4, 5, 6) for name in COMPARED}
    assert len(grid) == sum(map(len, seeds.values()))
    assert [c.method for c in ABLATION.grid(profile, seeds=[9])] == list(COMPARED)
    assert all(settings(config) == settings(grid[0]) for config in grid)
    assert [config.seed for config in grid] == sorted(config.seed for config in grid)
    assert not {config.seed for config in grid} & {config.seed for config in SWEEP.grid(profile)}


@pytest.mark.parametrize("profile", PUBLISHED)
def test_budgets_are_multiples_of_one_schedule_and_the_middle_one_is_that_of_the_ablation(profile):
    grid = BUDGET.grid(profile)
    assert {(c.method, budget_of(c)) for c in grid} == set(itertools.product(budget.METHODS, budget.BUDGETS))
    shortest = min(config.training.steps for config in grid)
    for config in grid:
        assert config.training.steps == shortest * budget_of(config)
    ablated = {c.method: c for c in ABLATION.grid(profile)}  # a seed changes no setting
    middle = [config for config in grid if budget_of(config) == budget.MIDDLE]
    assert len(middle) == len(budget.METHODS) * len(BUDGET.seeds)
    for config in middle:
        same = ablated[config.method]
        assert (config.model, config.training, config.data) == (same.model, same.training, same.data)


def test_the_claims_on_budgets_ask_for_what_is_run():
    assert (*budget_claims.RANKED, budget.WIDE) == budget.METHODS
    assert budget_claims.BUDGETS == budget.BUDGETS


def test_smoke_runs_a_variant_and_its_reference():
    (reference, variant) = ABLATION.grid("smoke")
    assert COMPARED[variant.method].base == reference.method
    assert {budget_of(config) for config in BUDGET.grid("smoke")} < set(budget.BUDGETS)


def test_the_budget_of_a_run_stands_in_its_config_and_of_every_row_in_the_table(tmp_path):
    grid = BUDGET.grid("smoke")
    assert [config.resolved()["budget"] for config in grid] == [budget_of(config) for config in grid]
    table = BUDGET.table("smoke", Store(tmp_path))
    assert list(table["budget"]) == [budget_of(config) for config in grid]
    assert list(table["steps"]) == [config.training.steps for config in grid]
    assert set(table["status"]) == {"not run"} and table.attrs["records"] == []

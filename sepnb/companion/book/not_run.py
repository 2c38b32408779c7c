"""What of the declared grids nobody has run on a laptop, how long it would take, and why it waits (MyST)."""

from sepnb.records.markup import code, table

RECALL = (
    "First come the methods that tell what is due to separation: every separated model that was changed, its "
    "dense twins, RoPE and its context extensions, ALiBi, no encoding. Other encodings wait."
)
SLOWED = (
    "The models that the rules compare came first, in recall and on the latest value; needles and most "
    "novels follow."
)
REASONS = {
    **dict.fromkeys(
        (
            *(f"stretched_{name}" for name in ("mqar", "latest_value", "needle", "text")),
            *(f"adapted_{name}" for name in ("mqar", "latest_value", "needle", "text")),
        ),
        SLOWED,
    ),
    **dict.fromkeys(("mqar", "latest_value", "needle"), RECALL),
    "every_reading": "First came the four models that the finding compares; forget gates wait.",
    "questions": "First come the methods that the other tasks had put in front.",
    "indirect_index": "First came the models that differ in what is mixed; those at random positions wait.",
}
"""By experiment. A sweep belongs to the grid that it chooses for."""


def left() -> dict[str, tuple[int, int]]:
    """Runs without a record and all runs, for every grid of the laptop that is not whole."""
    from sepnb import experiments

    found = {}
    for experiment in map(experiments.get, experiments.names()):
        states = experiment.table("laptop")["status"]
        if not experiment.chooses and (absent := int((states == "not run").sum())):
            found[experiment.name] = absent, len(states)
    return found


def page() -> str:
    from sepnb import experiments

    rows = []
    for name, (absent, runs) in left().items():
        experiment = experiments.get(name)
        hours = absent * experiment.seconds("laptop") / 3600
        cells = (experiment.title, code(f"sepnb run {name}"), f"{absent} of {runs}", f"{hours:.1f}")
        rows.append((*cells, REASONS.get(name, "no reason is given")))
    heads = ("experiment", "command", "runs left", "core hours", "why they wait")
    return "\n".join(table(heads, rows, right=("runs left", "core hours")))

"""What of the declared grids nobody has run on a laptop, how long it would take, and why it waits (MyST)."""

from sepnb.companion.book import once
from sepnb.records.markup import code, table

RECALL = (
    "First come the methods that tell what is due to separation: every separated model that was changed, its "
    "dense twins, RoPE and its context extensions, ALiBi, no encoding. Other encodings wait."
)
SLOWED = (
    "First came the models that the rules compare. Others wait: a stream that stays as it is, a strict "
    "model, the content-to-position term."
)
TEXTS = (
    "First came the models that the rules compare. Others wait: a strict model, the content-to-position "
    "term, and those that another grid reads in the same way."
)
NEEDLES = (
    "Too few of the models with a sinusoid learn this task, so no rule about them could be judged, however "
    "many had run."
)
REASONS = {
    **dict.fromkeys(("stretched_mqar", "stretched_latest_value"), SLOWED),
    "stretched_text": TEXTS,
    "stretched_text_longer": "First came the models that its rules compare; a run takes ten minutes.",
    **dict.fromkeys(("stretched_needle", "adapted_needle"), NEEDLES),
    "adapted_mqar": "Recall needs no tuning: slower positions are enough. Harder tasks came first.",
    "adapted_latest_value": "First came what can be judged: too few of the dense models learn this task.",
    "adapted_text": "First came the tunings that the rules compare; other budgets and parts wait.",
    **dict.fromkeys(("mqar", "latest_value", "needle"), RECALL),
    "every_reading": "First came the four models that the finding compares; the others wait.",
    "questions": "First come the methods that the other tasks had put in front.",
    "indirect_index": "First came the models that differ in what is mixed; those at random positions wait.",
}
"""By experiment. A sweep belongs to the grid that it chooses for."""


def left() -> dict[str, tuple[int, int]]:
    """Runs without a record and all runs, for every grid of the laptop that is not whole."""
    from sepnb import experiments

    found = {}
    for experiment in map(experiments.get, experiments.names()):
        states = once.frame(experiment.name, "laptop")["status"]
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

"""Real kernels run small chapters: what succeeds is kept, what fails is explained, no one harms another."""

import io
import json
import re
import sys

from rich.console import Console

from sepnb.companion.run import screens
from sepnb.companion.run.chapters import Chapter
from sepnb.companion.run.execute import Job, Outcome, execute, execute_all
from sepnb.records import numbers

FAILING = """
# %%
import sys

print(sys.executable)


# %%
def deep(n):
    if n == 0:
        raise ValueError("[bold] is 3, the bound is 2")
    return deep(n - 1)


x = deep(30)
"""


def test_a_failing_chapter_fills_one_screen_and_the_others_still_run(write_chapter, checkout) -> None:
    bad, good = write_chapter("01_bad", FAILING), write_chapter("02_good")
    # What an earlier, successful run of the bad chapter left:
    numbers.publish(bad.name, {"answer": 41}, profile="smoke")
    bad.output("smoke").write_text("{}", encoding="utf-8")
    seen = []
    outcomes = execute_all(
        [Job(bad, "smoke"), Job(good, "smoke")], on_progress=lambda *step: seen.append(step)
    )

    assert [outcome.status for outcome in outcomes] == ["failed", "ran"], outcomes
    failure = outcomes[0].failure
    assert failure is not None
    line = next(n for n, text in enumerate(bad.text.splitlines(), 1) if "raise ValueError" in text)
    assert (failure.cell, failure.place) == ("code cell 3 of 4", f"notebooks/01_bad.py:{line}")
    assert failure.error == "ValueError: [bold] is 3, the bound is 2"
    assert failure.line == 'raise ValueError("[bold] is 3, the bound is 2")'
    assert "\x1b" not in failure.trace

    kept = bad.output("smoke", "failed.ipynb")
    notebook = json.loads(kept.read_text(encoding="utf-8"))
    printed = [
        o["text"] for c in notebook["cells"] for o in c.get("outputs", []) if o["output_type"] == "stream"
    ]
    assert [text.strip() if isinstance(text, str) else "".join(text).strip() for text in printed] == [
        sys.executable
    ]
    for kind in ("ipynb", "json", "manifest.json"):
        assert not bad.output("smoke", kind).exists(), kind
    assert Job(bad, "smoke").why() == "the last run failed"

    assert numbers.load("02_good", "smoke") == {"answer": 42, "half": 0.5}
    assert Job(good, "smoke").why() is None
    assert execute(Job(good, "smoke")) == Outcome("02_good", "cached", 0.0)
    assert Job(good, "smoke", seed=1).why() == "the parameters changed"
    assert seen[-1] == (1, 4, 4)

    console = Console(width=100, record=True, file=io.StringIO())
    console.print(screens.failure(outcomes[0], str(kept)))
    screen = console.export_text()
    assert len(screen.splitlines()) <= 40
    for part in ("01_bad", "code cell 3 of 4", f"01_bad.py:{line}", "[bold] is 3, the bound is 2", kept.name):
        assert part in re.sub(r"\s*│\n│\s*", "", screen), part


def test_side_by_side_each_chapter_has_its_own_fate(write_chapter) -> None:
    silent = write_chapter("01_silent")
    silent.path.write_text(silent.text.split("# %%\nfrom sepnb.records")[0], encoding="utf-8")
    late = write_chapter("02_late", "\n# %%\nprofile = 'elsewhere'\n")
    good = write_chapter("03_good")
    jobs = [Job(Chapter(one.path), "smoke", seed=2) for one in (silent, late, good)]
    outcomes = execute_all(jobs, side_by_side=2)
    assert [outcome.status for outcome in outcomes] == ["failed", "failed", "ran"]
    assert all("published no numbers" in outcome.failure.error for outcome in outcomes[:2] if outcome.failure)
    assert numbers.load("03_good", "smoke")["half"] == 2.5

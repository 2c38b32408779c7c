"""What is installed, what is declared and what the files around the package say must be one thing."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from typer.main import get_command

from sepnb import cli

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
HASHED = (ROOT / "requirements-hashed.lock").read_text(encoding="utf-8")
CUDA = re.compile(r"nvidia-|cuda-|triton")

UNLOCKED = ("lab", "hf", "cluster")
"""Extras that stay out of the lock, as the oracles do."""
DIRECT = [
    (extra, Requirement(text))
    for extra, texts in {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}.items()
    for text in texts
    if extra not in UNLOCKED
]


def _locked() -> list[Requirement]:
    return [Requirement(line) for line in LOCK.splitlines() if line and not line.startswith("#")]


def _pins() -> dict[str, Version]:
    """The versions that the lock gives for the interpreter and platform of this test."""
    return {
        canonicalize_name(pin.name): Version(str(pin.specifier).removeprefix("=="))
        for pin in _locked()
        if pin.marker is None or pin.marker.evaluate()
    }


# --- the lock ---


def test_the_lock_pins_every_package_exactly_names_no_place_and_serves_machines_without_a_gpu():
    for pin in _locked():
        assert re.fullmatch(r"==[^*,]+", str(pin.specifier)), pin
        assert pin.url is None and not Version(str(pin.specifier)[2:]).local, pin
        assert not CUDA.match(pin.name), pin
    assert not re.search(r"(?m)^-|://|(^|\s)/\w", LOCK), "the lock names a folder, an address or an option"
    assert _pins()["torch"] == Version("2.13.0")


def test_the_hashed_lock_is_the_lock_with_cuda_and_a_digest_of_every_file():
    pins: dict[str, int] = {}
    for block in re.split(r" \\\n    |\n(?=\S)", HASHED.rstrip()):
        if re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", block):
            pins[[*pins][-1]] += 1
        elif not block.startswith("#"):
            pins[block] = 0
    assert all(pins.values()), [pin for pin, hashes in pins.items() if not hashes]
    assert {Requirement(pin) for pin in pins if not CUDA.match(pin)} == set(_locked())
    assert any(CUDA.match(pin) for pin in pins)


def test_what_is_installed_is_what_is_locked():
    """Except torch: a host may bring its own, within the range of the package."""
    pins = _pins()
    pins.pop("torch")
    installed = {name: Version(importlib.metadata.version(name)) for name in pins}
    assert installed == pins
    assert importlib.metadata.version("torch") in next(r for _, r in DIRECT if r.name == "torch").specifier


def test_the_lock_is_closed():
    """It is installed without a resolver, so it must hold all that we and its packages ask for."""
    pins, seen, wrong = _pins(), set(), []
    assert all(pins[canonicalize_name(wanted.name)] in wanted.specifier for _, wanted in DIRECT)
    todo = [(canonicalize_name(r.name), frozenset(r.extras)) for _, r in DIRECT]
    while todo:
        name, extras = item = todo.pop()
        if item in seen:
            continue
        seen.add(item)
        for text in importlib.metadata.requires(name) or []:
            need = Requirement(text)
            applies = need.marker is None or any(
                need.marker.evaluate({"extra": extra}) for extra in extras or [""]
            )
            if not applies or CUDA.match(need.name):
                continue
            pin = pins.get(canonicalize_name(need.name))
            if pin is None or not need.specifier.contains(pin, prereleases=True):
                wrong.append(f"{name} asks for {need}, the lock has {pin}")
            todo.append((canonicalize_name(need.name), frozenset(need.extras)))
    assert not wrong
    assert len({name for name, _ in seen}) > 80, "the walk through the dependencies ended early"


def test_every_import_of_the_package_is_declared():
    """Modules import what the package or its experiments need; what makes the book may import the book's as
    well. What the bare package does without the others is tried below."""
    owners = importlib.metadata.packages_distributions()
    declared = {
        extra: {canonicalize_name(r.name) for e, r in DIRECT if e == extra} for extra in ("", "run", "book")
    }
    optional = {
        Requirement(text).name for extra in UNLOCKED for text in PROJECT["optional-dependencies"][extra]
    } | set(re.findall(r"(?m)^([\w-]+)==", (ROOT / "requirements-paper.txt").read_text(encoding="utf-8")))
    undeclared = []
    for path in sorted((ROOT / "sepnb").rglob("*.py")):
        allowed = declared[""] | declared["run"] | (declared["book"] if "companion" in path.parts else set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module]
            else:
                continue
            named = {module.split(".")[0] for module in modules} - sys.stdlib_module_names - {"sepnb"}
            for top in named - optional:
                if not allowed & {canonicalize_name(owner) for owner in owners.get(top, [])}:
                    undeclared.append(f"{path.relative_to(ROOT)} imports {top}")
    assert not undeclared


# --- the wheel, outside of the repository ---


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with what the wheel of this checkout installs, and nothing else of it."""
    folder = tmp_path_factory.mktemp("wheel")
    script = f"from hatchling.build import build_wheel; print(build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(folder / done.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(folder / "site-packages")
    return folder / "site-packages"


def _needed(wanted: set[str]) -> set[str]:
    """These distributions and all that they ask for, as far as they are installed here."""
    seen, todo = set(), [*wanted]
    while todo:
        name = canonicalize_name(todo.pop())
        if name in seen:
            continue
        try:
            asked = map(Requirement, importlib.metadata.requires(name) or [])
        except importlib.metadata.PackageNotFoundError:
            continue
        seen.add(name)
        todo += [need.name for need in asked if need.marker is None or need.marker.evaluate({"extra": ""})]
    return seen


BARE = """
import sys
sys.path.insert(0, {folder!r})

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def _bare(installed: Path, script: str, home: Path) -> subprocess.CompletedProcess:
    """Run a script with the installed wheel where only what it declares is there, from another folder."""
    core = _needed({r.name for extra, r in DIRECT if not extra})
    owners = importlib.metadata.packages_distributions()
    hidden = {top for top, names in owners.items() if not core & {canonicalize_name(one) for one in names}}
    start = BARE.format(folder=str(installed), hidden=hidden - {"sepnb"})
    kept = {name: value for name, value in os.environ.items() if not re.match("SEPNB|PYTHON|XDG", name)}
    return subprocess.run(
        [sys.executable, "-c", start + script],
        cwd=home,
        env=kept | {"HOME": str(home)},
        capture_output=True,
        text=True,
    )


TRAINS = """
import torch, sepnb, sepnb.encodings, sepnb.evaluation, sepnb.extrapolators, sepnb.seqpe, sepnb.training
from sepnb import paths
from sepnb.models import LanguageModel, TransformerConfig
from sepnb.streams import Streams

model = LanguageModel(TransformerConfig(Streams(pos=8, sem=8), 1, 2, "learned", max_length=8))
logits = model(torch.zeros(2, 8, dtype=torch.long))
torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.ones(16, dtype=torch.long)).backward()
print(sepnb.__file__)
print(paths.build())
print(paths.results())

import importlib

for room in ("analysis", "evaluation.tasks", "protocol"):
    try:
        importlib.import_module("sepnb." + room)
    except ModuleNotFoundError as missing:
        print(missing)
"""


def test_an_installed_wheel_trains_a_model_with_nothing_but_its_five_packages(installed, tmp_path):
    """And a room that needs more than these says what to install."""
    done = _bare(installed, TRAINS, tmp_path)
    assert done.returncode == 0, done.stderr
    *places, one, two, three = done.stdout.splitlines()
    module, build, results = map(Path, places[-3:])
    assert module == installed / "sepnb" / "__init__.py"
    for place in (build, results):
        assert place.is_relative_to(tmp_path) and "sepnb" in place.parts, "it writes among the packages"
    missing = (
        r"(pandas|matplotlib) is not installed; the extra run of sepnb brings it.*pip install '\.\[run\]'"
    )
    assert all(re.fullmatch(missing, line) for line in (one, two, three)), done.stdout


def test_the_command_line_of_a_bare_installation_says_what_to_install(installed, tmp_path):
    script = "import runpy; sys.argv = ['sepnb', 'results']; runpy.run_module('sepnb', run_name='__main__')"
    done = _bare(installed, script, tmp_path)
    assert done.returncode == 1 and "pip install '.[run]'" in done.stderr
    assert "Traceback" not in done.stderr


# --- the files beside it ---


def test_the_citation_and_the_changelog_name_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == PROJECT["version"] == importlib.metadata.version("sepnb")
    assert citation["license"] == [PROJECT["license"], "CC-BY-4.0"]
    heads = re.findall(r"(?m)^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", GUIDES["CHANGELOG.md"])
    assert heads[0] == ("Unreleased", "") and heads[1][0] == PROJECT["version"]
    assert all(day for _, day in heads[1:])


JOBS = {
    f"{path.name}: {name}": {"permissions": workflow.get("permissions")} | job
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for workflow in [yaml.safe_load(path.read_text(encoding="utf-8"))]
    for name, job in workflow["jobs"].items()
}


@pytest.mark.attack(
    "actions and packages that change under their name, and jobs that execute code and may write"
)
@pytest.mark.parametrize("name", JOBS)
def test_a_job_takes_what_is_pinned_and_what_executes_code_may_only_read_and_keeps_no_token(name):
    """The first `make` of a job installs. What is newest cannot be written down: that job only reads."""
    steps, allowed = JOBS[name]["steps"], JOBS[name]["permissions"]
    assert isinstance(allowed, dict), "no permissions are those of the repository's settings"
    writes = {scope for scope, right in allowed.items() if right == "write"}
    commands = [step["run"] for step in steps if "run" in step]
    runs = re.search(r"\b(make|pip|python|bash|sepnb|jupyter)\b", "\n".join(commands)) is not None
    assert not (runs and writes), f"it executes code and may write {writes}"
    assert "contents" not in writes or name == "publish.yml: chapters"
    for step in steps:
        action = step.get("uses", "")
        assert not action or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert "actions/checkout@" not in action or step["with"]["persist-credentials"] is False
        assert "github.token" not in str(step) or writes
    made = [command for command in commands if "make " in command]
    assert not made or "HASHES=1" in made[0]
    assert name == "weekly.yml: newest" or not any("pip install" in command for command in commands)


# --- what the guides say ---

GUIDES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "CONTRIBUTING.md", "SUPPORT.md", "CHANGELOG.md")
}


def test_the_readme_s_example_runs():
    (example,) = re.findall(r"(?ms)^```python\n(.*?)^```", GUIDES["README.md"])
    names = {}
    exec(example, names)
    assert names["logits"].shape == (1, 128, 256)


@pytest.mark.parametrize("guide", GUIDES)
def test_every_command_and_option_that_a_guide_names_exists(guide):
    targets = set(re.findall(r"(?m)^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    named = set(re.findall(r"[`\n(]make ([a-z]+)", GUIDES[guide]))
    assert named <= targets and (named or guide == "SUPPORT.md")
    commands = get_command(cli.app).commands
    calls = re.findall(r"[`\n/(]sepnb ([a-z]+)([^`\n#]*)", GUIDES[guide])
    assert calls
    for name, rest in calls:
        options = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--\w+", rest)) <= options, f"sepnb {name}{rest}"


@pytest.mark.parametrize("guide", ("README.md", "CONTRIBUTING.md"))
def test_every_place_that_a_guide_names_exists(guide):
    made = {"results/", "build/mine", "notebooks/executed/NN_name", "notebooks/NN_name.py", "build/"}
    made |= {f"build/{name}" for name in ("html/index.html", "paper.pdf")}
    named = set(re.findall(r"[`( ]((?:sepnb|book|notebooks|results|tests|build)/[\w./-]*)", GUIDES[guide]))
    assert named
    assert not [place for place in named - made if not (ROOT / place).exists()]


# --- the commands ---


@pytest.fixture
def checkout(tmp_path) -> Path:
    """The files that `make install` reads, alone in a folder."""
    for name in ("Makefile", "pyproject.toml", *(path.name for path in ROOT.glob("requirements*.lock"))):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(["make", *arguments], cwd=folder, env=quiet, capture_output=True, text=True)


def _stands_in(place: Path, does: str) -> None:
    """A program of this name that only does that."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{does}\n", encoding="utf-8")
    place.chmod(0o755)


def _stamped(checkout: Path) -> None:
    """As after an installation of what is in the checkout."""
    want = ["git", "hash-object", "requirements.lock", "pyproject.toml"]
    stamp = subprocess.run(want, cwd=checkout, capture_output=True, check=True).stdout
    (checkout / ".venv").mkdir(exist_ok=True)
    (checkout / ".venv" / "installed").write_bytes(stamp)


def test_make_alone_lists_every_command_and_without_a_book_nothing_is_served(checkout):
    said = _make(checkout).stdout
    phony = re.search(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"))[1].split()
    assert [line.split()[1] for line in said.splitlines()] == sorted(phony, key=said.index)
    assert {"book", "test", "notebooks", "serve", "gpu"} <= set(phony)
    ended = _make(checkout, "serve")
    assert ended.returncode != 0 and "run make book" in ended.stderr


@pytest.mark.parametrize("which", ["1", "cpu"])
def test_an_installation_by_digests_leaves_nothing_out_and_takes_one_torch(checkout, which):
    for name in ("python", "uv"):
        _stands_in(checkout / ".venv" / "bin" / name, "exit 0")
    assert _make(checkout, "install", f"HASHES={which}").returncode == 0
    asked = (checkout / ".venv" / "hashed.txt").read_text(encoding="utf-8")
    names = re.findall(r"(?m)^([\w.-]+)==", asked)
    assert names.count("torch") == 1 and {pin.name for pin in _locked()} <= set(names)
    assert any(map(CUDA.match, names)) == (which == "1")
    assert ("torch==2.13.0+cpu" in asked) == (which == "cpu")
    assert len(re.findall("--hash=sha256:", asked)) >= len(names)


def test_an_old_python_is_refused_with_the_remedy(checkout):
    old = checkout / "python3.9"
    _stands_in(old, '[ "$1" = --version ] && echo Python 3.9.1\nexit 1')
    ended = _make(checkout, "install", f"PYTHON={old}")
    assert ended.returncode != 0
    assert "needs Python >= 3.11" in ended.stderr and "Python 3.9.1" in ended.stderr
    assert "PYTHON=python3.12" in ended.stderr
    assert not (checkout / ".venv").exists()


def test_an_installation_is_known_by_content_not_by_date(checkout):
    """With the stamp of this content nothing is installed, though every file is new; another content is."""
    _stamped(checkout)
    (checkout / "requirements.lock").touch()
    unchanged = _make(checkout, "install", "PYTHON=false")
    assert (unchanged.returncode, unchanged.stdout, unchanged.stderr) == (0, "", "")
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("one-more==1.0\n")
    assert _make(checkout, "install", "PYTHON=false").returncode != 0


def test_a_skipped_test_fails_in_ci_and_nowhere_else(tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_skips(): pytest.skip('no data here')\n"
        "@pytest.mark.gpu\n"
        "def test_gpu(): pytest.skip('no GPU here')\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    script = "import os, pytest\n"
    for ci, more in (("", []), ("true", ["-n", "1"])):  # in a worker too
        options = ["-p", "no:cacheprovider", "-rfs", str(tmp_path), *more]
        script += f"os.environ['CI'] = {ci!r}\npytest.main({options})\n"
    said = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True).stdout
    here, in_ci = said.split(" 2 skipped")
    assert "no data here" in here
    assert "no data here" in in_ci and " 1 failed, 1 skipped" in in_ci

# What a newcomer types. `make` alone lists the commands; README.md explains them.

PYTHON ?= python3
PORT ?= 8000
BIND ?= 127.0.0.1

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

# uv does not read pip's settings: these are the ones that decide where packages come from.
UV_FLAGS := $(foreach place,$(PIP_FIND_LINKS),--find-links $(place)) \
	$(if $(PIP_INDEX_URL),--default-index $(PIP_INDEX_URL)) $(if $(PIP_NO_INDEX),--no-index)
export UV_PYTHON := $(BIN)/python
export UV_PYTHON_DOWNLOADS := never
# Compiled modules are kept even where the environment says otherwise, or every kernel would compile torch again.
export PYTHONDONTWRITEBYTECODE :=

OLD_PYTHON = sepnb needs Python >= 3.11; name one, for example: make book PYTHON=python3.12
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "$(OLD_PYTHON) ($(PYTHON): `$(PYTHON) --version 2>&1`)" >&2; exit 1; }

# Public packages are held against the encodings in a folder beside the environment, which stays as it is.
ORACLES := $(CURDIR)/build/oracles
WITH_ORACLES = PYTHONPATH=$(ORACLES)
INSTALL_ORACLES = $(BIN)/uv pip install -q $(UV_FLAGS) --no-deps --target $(ORACLES) --requirement requirements-oracles.txt

# So is what submits to clusters; Slurm itself is the system's.
SUBMITIT := $(CURDIR)/build/submitit

# And typst, which sets the paper.
TYPST := $(CURDIR)/build/typst

# What `make slowed` runs, and where. To try it on a CPU in a minute: PROFILE=smoke DEVICE=cpu JOBS=1 SEEDS=1
# COMPARED=separated-sinusoidal TUNED=separated-sinusoidal/position.
PROFILE ?= gpu
DEVICE ?= cuda
SEEDS ?= 1,2
JOBS ?= 9
COMPARED ?= separated-sinusoidal,rope
TUNED ?= separated-sinusoidal/position,rope/maps
SLOWED = $(BIN)/sepnb run --profile $(PROFILE) --device $(DEVICE) --jobs $(JOBS)

.PHONY: help book paper french test oracles cluster bench notebooks lab serve slowed gpu install lock clean

help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1 \2/p' Makefile | awk '{ $$2 = sprintf("%-10s", $$2) } 1'

book: install ## execute the chapters that changed and build the HTML book
	@$(BIN)/sepnb build

paper: book ## set the paper from the records, as build/paper.pdf, with typst
	@$(BIN)/uv pip install -q $(UV_FLAGS) --no-deps --require-hashes --target $(TYPST) --requirement requirements-paper.txt
	@PYTHONPATH=$(TYPST) $(BIN)/python -m sepnb.companion.book.paper

french: book ## bring the catalogs of the French pages to what the English ones say, and list what is missing
	@$(BIN)/python -m sepnb.companion.book.catalogs

test: install ## run everything that guards the project
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist worksteal

oracles: install ## hold the encodings against public packages, which stay out of .venv
	@$(INSTALL_ORACLES)
	$(WITH_ORACLES) $(BIN)/python -m pytest -m oracle tests/oracles tests/experiments/test_encoding_speed.py

cluster: install ## run grids on a Slurm of one node, which the machine must have, and kill what can be killed
	@echo "Installing submitit into $(SUBMITIT)"
	@$(BIN)/uv pip install -q $(UV_FLAGS) --no-deps --target $(SUBMITIT) submitit==1.5.4 cloudpickle==3.1.3
	PYTHONPATH=$(SUBMITIT) $(BIN)/python -m pytest -m cluster tests/cluster

bench: install ## time the encodings beside x-transformers (KEEP=laptop: and store the records of a profile)
	@$(INSTALL_ORACLES)
	@$(WITH_ORACLES) $(BIN)/sepnb $(if $(KEEP),run encoding_speed --profile $(KEEP),bench encodings)

notebooks: install ## write an .ipynb copy of every chapter beside its source; copies with edits are left
	@$(BIN)/python -m sepnb.companion.book.notebooks write

lab: install ## open the chapters in Jupyter Lab
	@$(BIN)/python -m sepnb.companion.book.notebooks write || true # it has said which have edits, and stay as they are
	@$(BIN)/uv pip install -q $(UV_FLAGS) --constraint requirements.lock --requirement pyproject.toml --extra lab
	@$(BIN)/jupyter lab notebooks

serve: ## serve the built book on this machine
	@test -f build/html/index.html || { echo "There is no book yet: run make book" >&2; exit 1; }
	@echo "The book is at http://127.0.0.1:$(PORT)/ (Ctrl-C stops)"
	@$(BIN)/python -m http.server --bind $(BIND) --directory build/html $(PORT)

slowed: install ## needles at slowed positions on a GPU, sized for ten minutes (SEEDS=1,2 by default)
	@$(SLOWED) stretched_needle_sweep --methods $(COMPARED)
	@$(SLOWED) stretched_needle --methods $(COMPARED) --seeds $(SEEDS)
	@$(SLOWED) adapted_needle --methods $(TUNED) --seeds $(SEEDS)

gpu: install ## run the experiments of the gpu profile; what is finished is kept, so it can be resumed
	@$(BIN)/sepnb run --profile gpu

# The stamp holds the content that was installed: an unchanged lock installs nothing, whatever its date.
# torch comes first and with its own dependencies, which bring CUDA where the machine can use it. The lock
# names every other package, so the rest needs no resolver. An environment that was made with
# --system-site-packages keeps the host's torch. With HASHES=1 nothing is installed but wheels whose digests
# are written down, those of torch and CUDA too; with HASHES=cpu the other wheel of torch, without CUDA.
install: ## make .venv from requirements.lock (the commands above do it by themselves)
	@want="`git hash-object requirements.lock pyproject.toml`"; \
	[ "$$want" != "`cat $(STAMP) 2>/dev/null`" ] || exit 0; \
	set -e; start=`date +%s`; \
	$(BIN)/python -c 'import pip' 2>/dev/null || { $(CHECK_PYTHON); $(PYTHON) -m venv $(VENV); }; \
	echo "Installing the locked packages into $(VENV)"; \
	if [ -n "$(HASHES)" ]; then \
		sed -n '/^uv==/,/[^\\]$$/p' requirements-hashed.lock > $(VENV)/uv.txt; \
		if [ "$(HASHES)" = cpu ]; then \
			awk '/^[a-z]/ { kept = !/^(torch==|nvidia-|cuda-|triton)/ } kept' requirements-hashed.lock | \
				cat requirements-cpu.lock - > $(VENV)/hashed.txt; \
		else cp requirements-hashed.lock $(VENV)/hashed.txt; fi; \
		$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt; \
		$(BIN)/uv pip install -q $(UV_FLAGS) --no-deps --only-binary :all: --require-hashes \
			--requirement $(VENV)/hashed.txt; \
	else \
		$(BIN)/python -m pip install -qq --disable-pip-version-check "`grep '^uv==' requirements.lock`"; \
		grep -q 'include-system-site-packages = true' $(VENV)/pyvenv.cfg || \
			$(BIN)/uv pip install $(UV_FLAGS) --constraint requirements.lock torch; \
		grep -v '^torch==' requirements.lock | $(BIN)/uv pip install -q $(UV_FLAGS) --no-deps --requirement -; \
	fi; \
	$(BIN)/uv pip install -q --no-deps --no-build-isolation --editable .; \
	echo "$$want" > $(STAMP); \
	echo "Installed in $$((`date +%s` - start)) s"

# CUDA packages come with torch where they are of use, so the lock does not name them. The hashed lock does: it
# is installed without asking torch. What the oracles, other people's models and clusters need stays out of both.
RESOLVE = $(BIN)/uv pip compile -q $(UV_FLAGS) --universal --python-version 3.11 --extra run --extra book --extra test \
	--extra install --no-annotate --custom-compile-command "make lock"
lock: install ## resolve requirements.lock again from pyproject.toml (UPGRADE=1: to the newest versions)
	@mkdir -p build && cp requirements.lock build/requirements.lock
	@$(RESOLVE) $(if $(UPGRADE),--upgrade) --output-file build/requirements.lock pyproject.toml
	@grep -vE '^(nvidia|cuda|triton)' build/requirements.lock > requirements.lock
	@$(RESOLVE) --generate-hashes --constraint build/requirements.lock --output-file requirements-hashed.lock pyproject.toml
	@$(MAKE) --no-print-directory install

clean: ## delete what was built (not .venv, not records, not notebooks with edits)
	@[ ! -x $(BIN)/python ] || $(BIN)/python -m sepnb.companion.book.notebooks clean
	rm -rf build _build notebooks/executed .pytest_cache .ruff_cache .hypothesis

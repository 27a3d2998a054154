# Everything from a fresh clone: `make demo` and `make test` set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTED := $(VENV)/.ready-for-tests
SNAKEMAKE := $(BIN)/snakemake
SNAKEFILES := Snakefile workflow/Snakefile workflow/rules $(wildcard workflow/mamushi_extras/*/rules.smk)
# Makes a SLURM with made-up GPUs on a machine that has none; comes with the shared data.
SLURM_UP := $(or $(MAMUSHI_SHARED),../shared)/slurm/slurm-up

# Bytecode is kept, of what is imported: pip would compile four times as much, for a minute.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --no-compile
# The lock has all that its packages need, so two can fetch side by side and resolve nothing. The
# largest, of torch and transformers, come first.
PINNED := sed -n '/==/p' | sort -r | xargs -P 2 -n 19 $(PIP) --no-deps

.DEFAULT_GOAL := help
.PHONY: help setup plan demo demo-evidence demo-unlearning real-ranking real real-unlearning lab one-cell bench test test-fast coverage test-slow test-slurm test-all lint format clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 17

setup: $(READY) ## make the virtual environment .venv from the lock file, without what tests need

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Mamushi needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	    "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian or Ubuntu:" \
	    "sudo apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV) from requirements.lock; this takes a minute or more, once."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) pip==26.3
	sed '/^# For development/,$$d' requirements.lock | $(PINNED)
	@# With what torch's build for this machine asks for. What is imported is compiled meanwhile.
	$(BIN)/python -c 'import accelerate, transformers.models.llama.modeling_llama' & \
	  $(PIP) --constraint requirements.lock --no-build-isolation --editable . && \
	  $(BIN)/python -c 'import snakemake.cli, seaborn, sklearn.linear_model' && wait
	touch $@

$(TESTED): $(READY)
	sed '1,/^# For development/d' requirements.lock | $(PINNED)
	touch $@

# The start page, with a link to the report that was written last.
START := $(BIN)/python -c 'from mamushi_cluster.hooks import print_start_page; print_start_page()'

demo: $(READY) ## synthetic texts and a tiny model, a minute: results/report.html
	$(SNAKEMAKE) --profile profiles/demo --report results/report.html --report-after-run
	$(START)

demo-evidence: $(READY) ## the demo's diagnostics, frontier and advice: results/evidence.html
	$(SNAKEMAKE) --profile profiles/demo evidence
	$(SNAKEMAKE) --profile profiles/demo --report results/evidence.html evidence
	$(START)

# The first run measures the budgets of the configuration, and says where each curve crosses; the same
# command then measures finer ones there. With `fine: null`, as in studies/real, it has nothing to do.
demo-unlearning: $(READY) ## the demo's half-gap budgets: results/unlearning.html
	$(SNAKEMAKE) --profile profiles/demo unlearning
	$(SNAKEMAKE) --profile profiles/demo unlearning
	$(SNAKEMAKE) --profile profiles/demo --report results/unlearning.html unlearning
	$(START)

# A study's configuration. Two models side by side are faster than one on two cores.
STUDY := $(SNAKEMAKE) --cores 2 --configfile
REAL := $(STUDY) studies/real/config.yaml $(if $(JIGSAW),studies/real/jigsaw.yaml) --max-threads 1
ifdef JIGSAW
export MAMUSHI_JIGSAW := $(JIGSAW)
endif

real-ranking: $(TESTED) ## a real model and real posts, ranked, with the evidence; see studies/real
	$(BIN)/python -m studies.real.fetch_smollm2 results/models
	$(REAL) -- removals evidence

real: real-ranking ## then retrained, about an hour: results/real.html; JIGSAW=folder adds Jigsaw
	$(REAL) -- all studies
	$(REAL) --report results/real.html -- all studies evidence
	$(START)

real-unlearning: real-ranking ## and the half-gap budgets there: results/real-unlearning.html
	$(REAL) -- unlearning
	$(REAL) -- unlearning
	$(REAL) --report results/real-unlearning.html -- unlearning
	$(START)

lab: $(READY) ## three kinds of synthetic texts with known truth: results/lab.html; see studies/lab
	$(STUDY) studies/lab/config.yaml
	$(STUDY) studies/lab/config.yaml --report results/lab.html
	$(START)

# On a GPU of 80 GB, of which `make gpu-check` comes first. The hours of a cell: studies/one_cell.
MODEL ?= gemma-2-2b
DATASET ?= newsgroups
ONE_CELL := $(SNAKEMAKE) --profile profiles/gpu --configfile profiles/paper-literal/science.yaml \
  --config 'grid={datasets: [$(DATASET)], models: [$(MODEL)]}'

one-cell: $(READY) ## one panel of the paper's Figures 2 and 3: DATASET=, MODEL=; see studies/one_cell
	$(ONE_CELL) -- all
	$(ONE_CELL) --report results/one-cell.html -- all
	$(BIN)/python -m studies.one_cell.run $(DATASET) $(MODEL)

# make plan PROFILE=profiles/slurm TARGETS=unlearning ARGS="--configfile mine.yaml"
plan: $(READY) ## what a run would take: PROFILE=, TARGETS=, ARGS= (of mamushi plan)
	@$(BIN)/python -m mamushi plan $(TARGETS) $(if $(PROFILE),--profile $(PROFILE)) $(ARGS)

bench: $(READY) ## time the software at a small size, on the CPU: benchmarks/results
	$(BIN)/python -m benchmarks

.PHONY: gpu-check
gpu-check: $(READY) ## five minutes on a GPU of your own: right kernels, and speed
	$(BIN)/python -m benchmarks gpu_check

.PHONY: evidence-page
evidence-page: $(READY) ## every number of docs/science/evidence.md on real texts again, from its archive
	$(BIN)/python -m studies.evidence.page

.PHONY: docs
docs: $(TESTED) ## the documentation, with every table's columns: results/docs/index.html
	$(BIN)/mkdocs build --strict --quiet

VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' workflow/mamushi/__init__.py)

.PHONY: release
release: $(READY) ## tag what is committed and build its wheel in dist; CONTRIBUTING.md has the steps before
	@git diff --quiet HEAD || { echo "commit your changes first" >&2; exit 1; }
	@grep -q '^## \[$(VERSION)\]' CHANGELOG.md || { echo "CHANGELOG.md has no $(VERSION)" >&2; exit 1; }
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	git tag --annotate v$(VERSION) --message "Mamushi $(VERSION)"

# The linters are among the tests, so that one line at the end says everything. Order and groups are
# those of tests/conftest.py.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
# Three at a time on two cores, because some wait.
SIDE_BY_SIDE := -n 3 --dist loadgroup --no-loadscope-reorder
ROOM := config data evaluation evidence io lm selection unlearning

test: $(TESTED) ## lint, types, all unit tests, what runs again, the demo: some five minutes
	$(PYTEST) $(SIDE_BY_SIDE) -m "not slow and not slurm"

test-fast: $(TESTED) ## units of the core alone, in three minutes; ROOM=lm: of one room, in one
	$(PYTEST) $(SIDE_BY_SIDE) -m "not slow and not slurm and not real_data" $(addprefix tests/unit/,$(ROOM))

coverage: $(TESTED) ## which lines the unit tests run: results/coverage
	mkdir -p results/coverage
	$(PYTEST) $(SIDE_BY_SIDE) -m "not slow and not slurm" --cov --cov-report=html:results/coverage \
	  --cov-report=term tests/unit tests/extras | tee results/coverage/summary.txt
	@grep '^TOTAL' results/coverage/summary.txt > results/coverage/total.txt

test-slow: $(TESTED) ## the tests that `test` leaves out: faults, random kills, long grids
	$(PYTEST) $(SIDE_BY_SIDE) -m "slow and not slurm"

# One test at a time: some stop a daemon or a node.
test-slurm: $(TESTED) ## the tests that need a SLURM; brings one up where slurm-up is at hand
	@scontrol ping 2>/dev/null | grep -q UP || ! test -x $(SLURM_UP) || test "$$(id -u)" != 0 || \
	  FAKE_SLURM_CONF=AccountingStorageEnforce=limits $(SLURM_UP) || \
	  echo "slurm-up failed: no SLURM to test on" >&2
	$(PYTEST) tests/slurm

test-all: ## all of these, within half an hour; the last line counts them
	.ci/run

lint: $(TESTED) ## formatting, lint and types of Python and Snakemake
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/snakefmt --check $(SNAKEFILES)
	$(SNAKEMAKE) --lint
	$(BIN)/hadolint envs/Dockerfile

format: $(TESTED) ## format Python and Snakemake files
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/snakefmt $(SNAKEFILES)

.PHONY: bits
bits: $(TESTED) ## every number as at another commit, to the last bit: BASE=
	$(BIN)/python -m tests.bits $(BASE)

clean: ## delete .venv and caches; results and Snakemake's records of them stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

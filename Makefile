# Everything a fresh machine needs is installed by these targets; run and test set themselves up.
# What ends make ends its tests too: they are `exec`uted, so that no shell takes the signal in their place.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
WHEELS := --only-binary :all:
LOCK   := --quiet --universal --python-version 3.11 --generate-hashes $(WHEELS) --emit-build-options
SBOM   := --pyproject pyproject.toml --spec-version 1.6 --output-reproducible --validate

.PHONY: setup run test gates nightly busy check docs pictures bench stack stack-down up down pin lock sbom format clean

KERNELS = $(BIN)/python -c "import shadowtime.services.pipeline; from shadowtime.shared.kernels.decorator import load_all; load_all()"

setup: $(BASE)
	@$(PYTHON) .ci/commit-msg --install

# The packages of replays and workers, and the command. Its kernels are compiled when they are first used.
$(BASE): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "Shadowtime needs Python 3.11 to 3.13; name one: make PYTHON=python3.12 …"; exit 1; }
	@echo "installing what requirements.lock names into $(VENV), once …"
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(WHEELS) --require-hashes -r requirements.lock
	@$(BIN)/python .ci/command $(VENV)
	touch $@

# All that tests, checks and docs need, too.
$(READY): $(BASE) requirements-dev.lock
	@echo "installing what requirements-dev.lock names into $(VENV), once …"
	$(PIP) $(WHEELS) --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	$(KERNELS)  # once, into their cache
	touch $@

run: $(BASE)
	$(BIN)/shadowtime replay --policy fcfs --policy easy --policy easy-sjbf --policy lwf --policy wfp --policy best --report report.html

test: export PYTHONDONTWRITEBYTECODE :=  # hundreds of commands are started: what one has read of the source, all use
test: $(READY)
	-$(BIN)/python -m shadowtime.stack.install compose browser registry  # where a server cannot be had, its tests skip; in CI they fail
	-$(BIN)/python -m tests.support.grafana
	$(KERNELS)  # those that have changed: each test process would compile them for itself
	exec env JDK_JAVA_OPTIONS="$$($(BIN)/python -m tests.support.class_archive)" $(BIN)/python -m pytest -q -m "not archive and not nightly" --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 40 --durations-min 15

gates: $(READY)
	-$(BIN)/python -m shadowtime.stack.install compose
	exec $(BIN)/python -m pytest -q -m archive

nightly: export PYTHONDONTWRITEBYTECODE :=
nightly: $(READY)
	-$(BIN)/python -m shadowtime.stack.install compose browser registry slurm jupyterhub
	$(PIP) $(WHEELS) --no-deps --require-hashes -r requirements-mutants.lock  # complete without dependencies: one has no wheel
	exec $(BIN)/python -m tests.nightly

busy: $(READY)
	exec $(BIN)/python -m tests.support.busy

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(MAKE) docs

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(READY)
	-$(BIN)/python -m shadowtime.stack.install browser
	$(BIN)/python docs/tournament.py
	$(BIN)/python -m tests.support.pictures

bench: $(READY)
	$(BIN)/python -m tests.benchmarks
	$(BIN)/python -m tests.benchmarks.since_release

stack: $(READY)
	$(BIN)/python -m shadowtime.stack.install
	$(BIN)/shadowtime stack up $(if $(SECURE),--secure) $(if $(TLS),--tls)

stack-down: $(READY)
	$(BIN)/shadowtime stack down

up:
	docker compose up --build --detach

down:
	docker compose down

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

pin: $(READY)
	$(BIN)/python -m shadowtime.stack.pin

lock:
	uv pip compile $(LOCK) --extra stream pyproject.toml -o requirements.lock
	uv pip compile $(LOCK) --extra boosted --extra campaign --extra dev --extra frames --extra grafana --extra stream -c requirements.lock pyproject.toml -o requirements-dev.lock
	uv pip compile $(LOCK) --excludes tests/mutation/excludes.txt -c requirements-dev.lock tests/mutation/requirements.in -o requirements-mutants.lock
	uv pip compile $(LOCK) -c requirements-dev.lock stack/jupyterhub/requirements.in -o requirements-jupyterhub.lock

sbom: $(READY)
	$(BIN)/cyclonedx-py requirements requirements.lock $(SBOM) --output-file sbom.cdx.json

clean:
	rm -rf $(VENV) site report.html sbom.cdx.json

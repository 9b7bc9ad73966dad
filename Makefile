# Everything a fresh machine needs is installed by these targets; run and test set themselves up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LOCK   := --quiet --universal --python-version 3.11 --generate-hashes

.PHONY: setup run test gates check bench stack stack-down up down lock format clean

setup: $(READY)

$(READY): requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "Shadowtime needs Python 3.11 to 3.13; name one: make PYTHON=python3.12 …"; exit 1; }
	@echo "installing what requirements-dev.lock names into $(VENV), once …"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -c "import services.pipeline"  # compiles the kernels once, into their cache
	touch $@

run: $(READY)
	$(BIN)/python -m replayer --policy fcfs --policy easy --policy easy-sjbf --policy best --report report.html

test: $(READY)
	-$(BIN)/python -m stack.install compose browser  # where a server cannot be had, its tests skip; in CI they fail
	$(BIN)/python -m pytest -q -m "not archive" --numprocesses 2 --dist loadfile

gates: $(READY)
	-$(BIN)/python -m stack.install compose
	$(BIN)/python -m pytest -q -m archive

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m tests.benchmarks

stack: $(READY)
	$(BIN)/python -m stack.install
	$(BIN)/python -m stack up

stack-down: $(READY)
	$(BIN)/python -m stack down

up: $(READY)
	$(BIN)/python -m stack.env
	docker compose up --build --detach

down:
	docker compose down

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:
	uv pip compile $(LOCK) pyproject.toml -o requirements.lock
	uv pip compile $(LOCK) --extra dev --extra grafana -c requirements.lock pyproject.toml -o requirements-dev.lock

clean:
	rm -rf $(VENV) report.html

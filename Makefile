# Everything a fresh machine needs is installed by these targets; run and test set themselves up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: setup run test gates check bench lock format clean

setup: $(READY)

$(READY): requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -c "import services.pipeline"  # compiles the kernels once, into their cache
	touch $@

run: $(READY)
	$(BIN)/python -m replayer --policy fcfs --policy easy --policy easy-sjbf --policy best --report report.html

test: $(READY)
	$(BIN)/python -m pytest -q -m "not archive"

gates: $(READY)
	$(BIN)/python -m pytest -q -m archive

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m tests.benchmarks

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) report.html

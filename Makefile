# Two commands: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
PINS := --constraint .ci/constraints.txt

.PHONY: demo quick-demo words test lint clean

demo: words $(VENV)/train
	@echo
	$(BIN)/seal train rooms -m local:tiny --config examples/quick.toml

# What CI runs of it: fewer of everything, and a warm start too short to teach much.
quick-demo: words $(VENV)/train
	@echo
	$(BIN)/seal train rooms -m local:tiny --config examples/ci.toml

words: $(VENV)/core
	$(BIN)/seal check rooms
	@echo
	$(BIN)/seal evolve rooms -m sim:novice

test: $(VENV)/dev
	$(BIN)/seal fetch bfcl
	$(BIN)/python -m pytest -q -n 2

lint: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 14))' \
	  || { echo "SEAL needs Python 3.11 to 3.13; choose one with: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install $(PINS) --upgrade pip

$(VENV)/core: pyproject.toml .ci/constraints.txt | $(BIN)/python
	$(PIP) install $(PINS) --editable .
	@touch $@

$(VENV)/train: pyproject.toml .ci/constraints.txt | $(BIN)/python
	$(PIP) install $(PINS) --editable '.[train]'
	@touch $@

$(VENV)/dev: pyproject.toml .ci/constraints.txt | $(BIN)/python
	$(PIP) install $(PINS) --editable '.[all]' --group dev
	@touch $@

clean:
	rm -rf $(VENV) runs

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test check bench clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(STAMP) ## find the right aggregation for MUTAG, and compare with the paper
	$(BIN)/gnn-vpa demo

test: check ## lint, type-check and test: all that continuous integration does
	$(BIN)/pytest -n auto --dist loadgroup --cov --cov-report=
	@echo 'Lines that the tests run, in all and of files below 80 % (why: CONTRIBUTING.md):'
	@$(BIN)/coverage report | awk '/^TOTAL/ || ($$NF ~ /%$$/ && $$NF + 0 < 80)'

check: $(STAMP) ## lint and type-check only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP) ## measure speed and memory against PyTorch Geometric
	$(BIN)/python -m benchmarks

clean: ## remove the environment, caches and results
	rm -rf $(VENV) runs build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("gnn-vpa needs Python 3.11 or newer, and $(PYTHON) is %d.%d: try make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DOCS   := $(VENV)/.installed-docs
SITE   := build/site
LOWEST := .venv-lowest

# Where somebody has turned this on, each of the processes that tests start would compile anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check test-lowest docs bench release-check clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

demo: $(STAMP) ## find the right aggregation for MUTAG, and compare with the paper
	$(BIN)/gnn-vpa demo

# One process more than cores: tests of processes mostly wait.
test: check $(DOCS) ## lint, type-check and test: all that continuous integration does
	@$(BIN)/coverage erase
	COUNT_LINES=1 $(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 1)') --dist loadgroup
	@$(BIN)/coverage combine --quiet
	@echo 'Lines that the tests run, in all and of files below 80 % (why: CONTRIBUTING.md):'
	@$(BIN)/coverage report | awk '/^TOTAL/ || ($$NF ~ /%$$/ && $$NF + 0 < 80)'

check: $(STAMP) ## lint and type-check only
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --num-workers 2

# The rooms that lean on other libraries. The rest of the suite differs in nothing that they bring.
test-lowest: $(LOWEST)/.installed ## test with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/pytest -n auto -m 'not browser' tests/analysis tests/auditing tests/cli/test_app.py \
		tests/cli/test_errors.py tests/cli/test_options.py tests/cli/test_report.py tests/cli/test_variance.py \
		tests/estimators tests/graphs tests/paper tests/pyg tests/signal tests/trained tests/experiments/test_store.py

docs: $(DOCS) ## build the site into build/site; a warning is an error
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs $(SITE)
	@echo 'The site: $(SITE)/index.html'

bench: $(STAMP) ## measure speed and memory against PyTorch Geometric, and remember the ratios
	$(BIN)/python -m benchmarks --history
	$(BIN)/python -m benchmarks loop --datasets MUTAG --models GIN,GCN --history
	-$(BIN)/python -m benchmarks compare

release-check: $(STAMP) ## build, check, install and try what would be released (RELEASE='--no-trial': no installing)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,release]'
	$(BIN)/python -m release $(RELEASE)

clean: ## remove the environment, caches and results
	rm -rf $(VENV) $(LOWEST) runs build dist docs/_generated .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage*

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("gnn-vpa needs Python 3.11 or newer, and $(PYTHON) is %d.%d: try make PYTHON=python3.12" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(DOCS): $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet --constraint constraints-lowest.txt torch
	$(LOWEST)/bin/pip install --quiet --constraint constraints-lowest.txt --editable . \
		hypothesis pytest coverage pytest-xdist PyYAML
	@touch $@

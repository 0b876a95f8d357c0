# make demo, make test, make check, make campaign: each makes a virtual environment in .venv first, with what it needs and no more.
# `make VENV=DIR check` makes it elsewhere.
# `make` lists the targets.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS)
PYTEST := $(BIN)/python -m pytest
JAX_SAMPLE := -m jax tests/jax/test_sample.py tests/jax/lowering/test_to_jax.py tests/stablehlo/test_sample.py tests/stablehlo/test_operations.py \
    tests/stablehlo/test_linear_algebra.py tests/runtime/engines/test_law.py
TESTS_ONCE := $(if $(ONCE),--once=$(ONCE))
JAX := -m 'jax and not campaign' tests/jax tests/stablehlo tests/runtime/engines tests/docs

.DEFAULT_GOAL := help
.PHONY: help demo test check jax docs lint types campaign mutants release generated clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

$(VENV)/.tidu: pyproject.toml
	@echo "Installing tidu into $(VENV): click, ml_dtypes, msgpack, NumPy, pydantic and SciPy, about 250 MB."
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV); }
	$(PIP) -e .
	touch $@

$(VENV)/.test: $(VENV)/.tidu
	@echo "Installing pytest, hypothesis, mpmath and jsonschema into $(VENV)."
	$(PIP) -e '.[test]'
	touch $@

$(VENV)/.check: $(VENV)/.tidu
	@echo "Installing JAX, ONNX, Dask and all else that tests compare with into $(VENV), about 2 GB: a few minutes, once."
	$(PIP) -e '.[check]'
	touch $@ $(VENV)/.test

demo: $(VENV)/.tidu  ## derivatives of a formula, of a graph, and of a model of real data: within a minute
	PATH="$(CURDIR)/$(BIN):$$PATH" sh samples/demo.sh

test: $(VENV)/.test  ## while writing: laws, formats and commands, in four minutes
	$(PYTEST) $(TESTS_ONCE)
	@! $(BIN)/python -c 'import jax' 2>/dev/null || $(PYTEST) $(JAX_SAMPLE)

check: $(VENV)/.check  ## before landing: every test, the site, lint and types, in 25 minutes; nothing may be skipped
	TIDU_TEST_ALL=1 $(PYTEST) --tier check $(TESTS_ONCE)
	$(MAKE) -j -O jax docs lint types

jax: $(VENV)/.check  ## the part of check that imports JAX, which other tests must not: they fork
	TIDU_TEST_ALL=1 $(PYTEST) --tier check $(JAX)

docs: $(VENV)/.check  ## the part of check that builds the site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	TIDU_TEST_ALL=1 $(PYTEST) --tier check -m site tests/docs

lint: $(VENV)/.check  ## the part of check that reads the sources' style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.check  ## the part of check that reads the sources' types
	$(BIN)/mypy

campaign: $(VENV)/.check  ## hours: random inputs and long runs; docs/reliability.md has the seeds and figures
	$(PYTEST) --tier campaign -m 'not jax and not site'
	$(PYTEST) --tier campaign -m jax tests/jax tests/stablehlo tests/runtime/engines tests/docs

mutants: $(VENV)/.check  ## 90 minutes: which faults in the sources the tests see
	$(BIN)/python -m tests.mutants

release: $(VENV)/.check  ## build dist/, check it, and try the README's commands in an empty environment
	sh tools/release.sh

generated: $(VENV)/.check  ## write what is generated from the sources: schemas, tables of the docs
	$(BIN)/tidu schema > schemas/document.schema.json
	$(BIN)/python tools/index.py
	$(BIN)/python tools/catalogue.py > docs/primitives.md
	$(BIN)/python -m tools.identities > docs/identities.md
	$(BIN)/python -m tools.kinks > docs/kinks.md
	$(BIN)/python -m tools.operators
	$(BIN)/python -m tools.stablehlo
	$(BIN)/python tools/reference.py > docs/commands.md

clean:  ## remove what make has made
	rm -rf .venv dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

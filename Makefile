# The two commands of the README are `make demo` and `make test`. Both make a virtual environment in .venv first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test jax lint types campaign schemas catalogue clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv || { $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv .venv; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	touch $@

demo: $(STAMP)  ## forward over reverse on a small graph, then logistic regression on real data
	PATH="$(CURDIR)/$(BIN):$$PATH" sh samples/demo.sh

test: demo  ## the same, then the tests
	$(BIN)/python -m pytest

.venv/.jax: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,jax]'
	touch $@

jax: .venv/.jax  ## every primitive against JAX, which this installs
	$(BIN)/python -m pytest -m jax tests/jax

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

campaign: $(STAMP)  ## the long runs that the ordinary suite leaves out
	$(BIN)/python -m pytest -m campaign

schemas: $(STAMP)  ## write schemas/ anew
	$(BIN)/python -m tidu_cli.documents.schema > schemas/document.schema.json

catalogue: $(STAMP)  ## write docs/primitives.md anew
	$(BIN)/python -m tidu_cli.checking.catalogue > docs/primitives.md

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis

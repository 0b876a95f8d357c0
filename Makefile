# The two commands of the README are `make demo` and `make test`. Both make a virtual environment in .venv first.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test jax docs lint types campaign index schemas catalogue identities onnx stablehlo commands man clean

$(STAMP): pyproject.toml
	@echo "Installing tidu and what its tests need into .venv, about 2 GB: a few minutes, once."
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

jax: .venv/.jax  ## every primitive against JAX, which this installs; functions of JAX and modules of StableHLO
	$(BIN)/python -m pytest -m "jax and not campaign" tests/jax tests/stablehlo tests/runtime/engines tests/docs

.venv/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,docs]'
	touch $@

docs: .venv/.docs  ## the site, into site/, and its tests
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m pytest -m site tests/docs

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

campaign: $(STAMP)  ## the long runs that the ordinary suite leaves out
	$(BIN)/python -m pytest -m campaign

schemas: $(STAMP)  ## write schemas/ anew
	$(BIN)/tidu schema > schemas/document.schema.json

index: $(STAMP)  ## write anew which file of tidu_cli/lax/ has an op
	$(BIN)/python tools/index.py

man: $(STAMP)  ## write man/ anew
	$(BIN)/python tools/manual.py man

catalogue: $(STAMP)  ## write docs/primitives.md anew
	$(BIN)/python tools/catalogue.py > docs/primitives.md

identities: $(STAMP)  ## write docs/identities.md anew
	$(BIN)/python -m tools.identities > docs/identities.md

onnx: $(STAMP)  ## write the tables of docs/onnx.md anew
	$(BIN)/python -m tools.operators

stablehlo: $(STAMP)  ## write the table of docs/stablehlo.md anew
	$(BIN)/python -m tools.stablehlo

commands: $(STAMP)  ## write docs/commands.md anew
	$(BIN)/python tools/reference.py > docs/commands.md

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache .hypothesis

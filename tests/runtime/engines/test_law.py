"""Engines against the plain interpreter: all primitives, random documents and their derivatives, edges of dtypes, batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.runtime.engines.local import require_agreement
from tests.strategies import ANY, REAL, documents, seeds
from tidu_cli.checking.numeric.examples import example_cases, of_operand, one_node_document
from tidu_cli.checking.numeric.sampling import draw
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.runtime.engines.choosing import ENGINES
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

NATIVE = ENGINES["native"].module()
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 5e-324, -2.2e-308, 1.7e308, 2.0**31, 2.0**63]


def runs(graph):
    """Whether the engine runs a graph: refusals are tested elsewhere."""
    return NATIVE.refusal(graph, BUILTIN) is None


def values_for(head, seed, interval=(0.1, 0.9)):
    """Values of the inputs, all of tensors."""
    rng = np.random.default_rng(seed)
    return {i.key: np.asarray(draw(rng, i.type, interval)) for i in head.inputs}


@pytest.mark.parametrize("op", [p.name for p in BUILTIN])
def test_examples_of_primitives(op):
    rng = np.random.default_rng(0)
    for example, case in example_cases(BUILTIN, BUILTIN[op]):
        if not all(isinstance(t, TensorType) for t in (*case.operands, *case.results)):
            continue
        head = one_node_document(case).head
        if runs(head):
            operands = [draw(rng, t, of_operand(example.within, k)) for k, t in enumerate(case.operands)]
            require_agreement("native", head, {i.key: x for i, x in zip(head.inputs, operands, strict=True)})


@settings(max_examples=150)
@given(documents(makers=ANY, dtypes=("f64", "f32", "c128"), shapes=((), (), (3,))), seeds)
def test_random_documents(document, seed):
    head = materialize(document).head
    if runs(head):
        require_agreement("native", head, values_for(head, seed))


@settings(max_examples=100)
@given(documents(makers=REAL, dtypes=("f64",), shapes=((),), max_graphs=2, max_nodes=12, bindings=False), seeds)
def test_derivatives_of_random_documents_of_scalars(document, seed):
    wrt = [i.key for i in document.free_inputs]
    head = materialize(transpose(linearize(document, wrt))).head
    if runs(head):
        require_agreement("native", head, values_for(head, seed))


@settings(max_examples=100)
@given(documents(makers=REAL, dtypes=("f64",), shapes=((),), max_graphs=1, bindings=False), st.data())
def test_edges(document, data):
    """NaN, infinities, zeros of both signs, subnormal numbers and others that overflow."""
    head = materialize(document).head
    if runs(head):
        values = {i.key: np.asarray(data.draw(st.sampled_from(EDGES))) for i in head.inputs}
        require_agreement("native", head, values)


@settings(max_examples=60)
@given(documents(makers=REAL, dtypes=("f64",), shapes=((),), max_graphs=1, max_nodes=12, bindings=False), seeds, st.integers(1, 40))
def test_batches_are_items_one_by_one(document, seed, size):
    """Bit for bit on the same engine."""
    rng = np.random.default_rng(seed)
    head = materialize(document).head
    if not runs(head):
        return
    batch = {str(i.key): rng.uniform(0.1, 0.9, size) for i in head.inputs}
    together = tidu.evaluate(document, batch, batch=dict.fromkeys(batch, 0), engine="native")
    for k in range(size):
        alone = tidu.evaluate(document, {key: x[k] for key, x in batch.items()}, engine="native")
        assert {key: y[k].tobytes() for key, y in together.items()} == {key: y.tobytes() for key, y in alone.items()}

"""Engines against the plain interpreter: all primitives, random documents and their derivatives, edges of dtypes, batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.graphs.strategies import ANY, REAL, documents, seeds
from tests.programs import needs
from tests.runtime.engines.local import require_agreement
from tests.tiers import examples
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand, one_node_document
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.choosing import engine_named
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

# Marked, as hypothesis would take a package that is missing for a failure, and look for the smallest.
NATIVE = needs("llvmlite")
ENGINE = pytest.mark.parametrize("engine", [pytest.param("native", marks=NATIVE), pytest.param("xla", marks=pytest.mark.jax)])
FUSED = frozenset({"xla"})
"""Engines that may make a sum of a product which was not rounded, and to which subnormal numbers are zeros."""

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 1.7e308, 2.0**31, 2.0**63]
SUBNORMAL = [5e-324, -2.2e-308]


def require(engine, head, values):
    """Raises AssertionError where the engine differs. What it refuses, as tests of the engines say, passes."""
    module = engine_named(engine)
    if module.refusal(head, BUILTIN) is None:
        require_agreement(engine, head, values, fused=engine in FUSED)


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
        operands = [draw(rng, t, of_operand(example.within, k)) for k, t in enumerate(case.operands)]
        require("native", head, {i.key: x for i, x in zip(head.inputs, operands, strict=True)})


@ENGINE
@settings(max_examples=examples(80, check=25))
@given(documents(makers=ANY, dtypes=("f64", "f32", "c128"), shapes=((), (), (3,))), seeds)
def test_random_documents(engine, document, seed):
    head = materialize(document).head
    require(engine, head, values_for(head, seed))


@ENGINE
@settings(max_examples=examples(60, check=15))
@given(documents(makers=REAL, dtypes=("f64",), shapes=((),), max_graphs=2, max_nodes=12, bindings=False), seeds)
def test_derivatives_of_random_documents_of_scalars(engine, document, seed):
    wrt = [i.key for i in document.free_inputs]
    head = materialize(transpose(linearize(document, wrt))).head
    require(engine, head, values_for(head, seed))


@ENGINE
@settings(max_examples=examples(60, check=20))
@given(documents(makers=REAL, dtypes=("f64",), shapes=((),), max_graphs=1, bindings=False), st.data())
def test_edges(engine, document, data):
    """NaN, infinities, zeros of both signs, subnormal numbers and others that overflow."""
    head = materialize(document).head
    edges = EDGES if engine in FUSED else EDGES + SUBNORMAL
    require(engine, head, {i.key: np.asarray(data.draw(st.sampled_from(edges))) for i in head.inputs})


@ENGINE
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("dtype", ["f64", "f32", "c128"])
def test_sums_begin_at_zero(engine, n, dtype):
    x = np.full((2, n), -0.0, numpy_dtype(np, dtype))
    document = tidu.trace(lambda x: np.sum(x, axis=1) * 2, x)
    total = tidu.evaluate(document, {"x": x}, engine=engine)["y"]
    assert not np.signbit([total.real, total.imag]).any()


@pytest.mark.parametrize("engine", ["numpy", "native", pytest.param("xla", marks=pytest.mark.jax)])
def test_inputs_that_no_output_needs_may_be_given_or_left_out(engine):
    compiled = tidu.compile(tidu.trace(lambda x, unused: x * x, "f64[]", "f64[2]"), engine=engine)
    assert compiled.inputs == {"x": "f64[]", "unused": "f64[2]"}
    assert compiled({"x": 3.0}) == compiled({"x": 3.0, "unused": [1, 2]}) == {"y": 9}
    many = compiled.map({"x": np.arange(3.0), "unused": np.zeros((3, 2))}, {"x": 0, "unused": 0}, chunk=2)
    np.testing.assert_array_equal(many["y"], [0, 1, 4])


SCALARS = documents(makers=REAL, dtypes=("f64",), shapes=((),), max_graphs=1, max_nodes=12, bindings=False)


@NATIVE
@settings(max_examples=examples(60, check=20))
@given(SCALARS, seeds, st.integers(1, 40))
def test_batches_are_items_one_by_one(document, seed, size):
    """Bit for bit."""
    rng = np.random.default_rng(seed)
    head = materialize(document).head
    if engine_named("native").refusal(head, BUILTIN) is not None:
        return
    batch = {str(i.key): rng.uniform(0.1, 0.9, size) for i in head.inputs}
    together = tidu.evaluate(document, batch, batch=dict.fromkeys(batch, 0), engine="native")
    for k in range(size):
        alone = tidu.evaluate(document, {key: x[k] for key, x in batch.items()}, engine="native")
        assert {key: y[k].tobytes() for key, y in together.items()} == {key: y.tobytes() for key, y in alone.items()}


@pytest.mark.jax
@settings(max_examples=examples(60, check=20))
@given(SCALARS, seeds, st.integers(1, 40))
def test_batches_are_graphs_of_arrays(document, seed, size):
    """XLA has one program for a number and another for many, whose products it may contract otherwise."""
    head = materialize(document).head
    batched, _ = vectorized(head, [i.key for i in head.inputs], size)
    require("xla", batched, values_for(batched, seed))

"""recompute with records: the same values to the bit, and less memory at once where the state of a computation is a record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate, free_inputs
from tests.graphs.record_graphs import flattened, random_arguments, record_graphs
from tests.graphs.sketch import Value, function, key
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tests.transforms.large.test_recompute import All
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import moves
from tidu_cli.runtime.memory import evaluation
from tidu_cli.transforms.checkpoints import Cheap, Named, Policy, Sqrt
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.recompute import recompute
from tidu_cli.transforms.transpose import transpose

STATE = "{x: f64[1000], v: f64[1000]}"


def bits(doc: Document, seed: int) -> dict[str, bytes]:
    """Of all outputs, array by array, at random inputs."""
    types = free_inputs(doc)
    values = {k: random_arguments({k: t}, np.random.default_rng([seed, *str(k).encode()]))[k] for k, t in types.items()}
    outputs = {o.key: o.type for o in doc.head.outputs}
    arrays = flattened(evaluate(doc, values, primitives=doc.cases.vocabulary), outputs)
    return {str(k): np.asarray(x).tobytes() for k, x in arrays.items()}


@settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(record_graphs(), st.sampled_from([Sqrt(), Cheap(), Cheap(1e6), All()]), seeds)
def test_no_bit_changes(pair: tuple[Document, Document], policy: Policy, seed: int) -> None:
    doc = pair[0]
    gradient = transpose(linearize(doc, [k for k, t in free_inputs(doc).items() if moves(t)]))
    assert bits(recompute(gradient, policy), seed) == bits(materialize(gradient), seed)


def steps(n: int) -> Document:
    """n steps of a recurrence whose state is a record."""

    def body(p: Value) -> dict[str, Value]:
        apply = p.sketch.apply
        for _ in range(n):
            x, v = apply("field", p, name="x"), apply("field", p, name="v")
            p = apply("record", apply("sin", x + v), apply("tanh", v * apply("sin", x * v)), type=STATE)
        return {"y": apply("reduce_sum", apply("field", p, name="x"), axes=(0,))}

    return function("f", {"p": STATE}, body)


@pytest.mark.parametrize(("policy", "part"), [(Sqrt(), 6), (Cheap(4.0), 3)], ids=["sqrt", "cheap"])
def test_the_peak_of_a_recurrence_falls(policy: Policy, part: int) -> None:
    gradient = transpose(linearize(steps(100), [key("p")]))
    kept, again = materialize(gradient), recompute(gradient, policy)
    assert evaluation(again).peak < evaluation(kept).peak / part
    assert bits(again, 0) == bits(kept, 0)


def test_a_record_that_is_named_is_dropped_with_its_fields() -> None:
    def first(p: Value) -> dict[str, Value]:
        apply = p.sketch.apply
        x, v = apply("field", p, name="x"), apply("field", p, name="v")
        state = apply("record", apply("sin", x), apply("tanh", v), type=STATE)
        squares = apply("field", state, name="x") * apply("field", state, name="v")
        return {"q": state, "y": apply("reduce_sum", squares, axes=(0,))}

    doc = function("f", {"p": STATE}, first)
    gradient = transpose(linearize(doc, [key("p")], outputs=[key("y")]))
    kept, again = materialize(gradient), recompute(gradient, Named(values=(key("q"),)))
    assert bits(again, 0) == bits(kept, 0)
    for doc, is_late in ((kept, False), (again, True)):
        cases = [doc.head.case(n) for n in range(doc.head.n_nodes)]
        first_late = next(n for n, case in enumerate(cases) if case.mask is not None)
        assert [n > first_late for n, case in enumerate(cases) if case.op in ("sin", "tanh")] == [is_late] * 2

"""What a derivative takes and gives follows from the pipeline and the function's inputs and outputs, never from its body.

Each random function is held against one of the same inputs and outputs, all of which are zero: nothing depends on anything there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import free_inputs
from tests.graphs.record_graphs import record_graphs
from tests.graphs.sketch import Sketch, Value, function, key
from tests.graphs.strategies import ANY, documents
from tests.tiers import examples
from tidu_cli.errors import TransformError
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type, moves
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms import shorthands
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

law = settings(max_examples=examples(100, check=50), suppress_health_check=list(HealthCheck))

Ports = tuple[list[tuple[Key, Type]], list[tuple[Key, Type]]]
passes = st.lists(
    st.tuples(st.sampled_from(["forward", "reverse", "columns", "rows"]), st.booleans(), st.integers(0)), min_size=1, max_size=3
)


def ports(document: Document) -> Ports:
    """The inputs and outputs of a document."""
    return list(free_inputs(document).items()), [(o.key, o.type) for o in document.head.outputs]


def zero_twin(document: Document) -> Document:
    """A function of the same inputs and outputs, without nodes."""
    sketch = Sketch({str(k): t for k, t in free_inputs(document).items()}, cases=document.cases)
    outputs = [Output(o.key, None, o.type) for o in document.head.outputs]
    return replace(document, graphs=(sketch.builder.build(document.head.name, outputs),), bindings=())


def piped(document: Document, pipeline: Sequence[tuple[str, bool, int]]) -> Ports | str:
    """What the result of a pipeline takes and gives, or why there is none. Each pass is by some inputs that move."""
    try:
        for way, merged, chosen in pipeline:
            moving = [k for k, t in free_inputs(document).items() if moves(t)]
            document = linearize(document, [moving[(chosen + k) % len(moving)] for k in range(1 + chosen % 2)])
            if way in ("reverse", "rows"):
                document = transpose(document)
            if way in ("columns", "rows"):
                document = matrix(document)
            if merged:
                document = materialize(document)
    except TransformError as refused:
        return str(refused).partition(": ")[2]
    single = materialize(document)
    assert ports(single) == ports(document), "materialized, it is the same function"
    return ports(single)


@settings(law, max_examples=examples(100, check=25))
@given(documents(makers=ANY), passes)
def test_pipelines(document: Document, pipeline: list[tuple[str, bool, int]]) -> None:
    assert piped(document, pipeline) == piped(zero_twin(document), pipeline)


@law
@given(record_graphs(), passes)
def test_pipelines_of_records(pair: tuple[Document, Document], pipeline: list[tuple[str, bool, int]]) -> None:
    document = pair[0]
    assert piped(document, pipeline) == piped(zero_twin(document), pipeline)


def has_matrix(document: Document) -> bool:
    """Whether outputs are real: of complex ones the matrix is refused, by rows, unless the function is said to be holomorphic."""
    return not any(isinstance(o.type, TensorType) and o.type.complex for o in document.head.outputs)


@law
@given(documents(makers=ANY, dtypes=("f64",)), st.integers(0))
def test_shorthands(document: Document, chosen: int) -> None:
    assume(has_matrix(document))
    wrt = list(free_inputs(document))[: 1 + chosen % 2]
    twin = zero_twin(document)
    for name, derive in _derivatives(document, wrt):
        derived = derive(document).document
        assert ports(derived) == ports(derive(twin).document), name


def _derivatives(document: Document, wrt: list[Key]) -> list[tuple[str, Callable[[Document], shorthands.Pipeline]]]:
    """The shorthands that suit a document, by inputs wrt."""
    ways: list[tuple[str, Callable[[Document], shorthands.Pipeline]]] = [
        ("jvp", lambda d: shorthands.jvp(d, wrt, value=True)),
        ("vjp", lambda d: shorthands.vjp(d, wrt, value=True)),
        ("jacobian", lambda d: shorthands.jacobian(d, wrt)),
        ("jacobian --forward", lambda d: shorthands.jacobian(d, wrt, reverse=False)),
        ("jacobian --reverse", lambda d: shorthands.jacobian(d, wrt, reverse=True)),
    ]
    numbers = [o.key for o in document.head.outputs if str(o.type) == "f64[]"][:1]
    if numbers:
        ways += [
            ("grad", lambda d: shorthands.grad(d, wrt, numbers)),
            ("hvp", lambda d: shorthands.hvp(d, wrt, numbers)),
            ("hessian", lambda d: shorthands.hessian(d, wrt, numbers)),
        ]
    if str(free_inputs(document)[wrt[0]]) == "f64[]":
        ways.append(("derivative", lambda d: shorthands.derivative(d, wrt[:1], order=3)))
    return ways


@law
@given(documents(makers=ANY, dtypes=("f64",)), st.integers(0))
def test_both_modes_of_the_jacobian_have_the_same_blocks(document: Document, chosen: int) -> None:
    assume(has_matrix(document))
    wrt = list(free_inputs(document))[: 1 + chosen % 3]
    forward, reverse = (shorthands.jacobian(document, wrt, reverse=way).document for way in (False, True))
    assert [(o.key, o.type.shape) for o in forward.head.outputs] == [(o.key, o.type.shape) for o in reverse.head.outputs]
    assert ports(forward)[0] == ports(reverse)[0] == list(free_inputs(document).items())


def scalar(body: Callable[[Value, Value], Value]) -> Document:
    return function("f", {"x": "f64[]", "y": "f64[]"}, body)


X, Y = key("x"), key("y")
SECOND = {
    "ff": lambda d: linearize(linearize(d, [X]), [X]),
    "fr": lambda d: linearize(transpose(linearize(d, [X])), [X]),
    "rf": lambda d: transpose(linearize(linearize(d, [X]), [X])),
    "rr": lambda d: transpose(linearize(transpose(linearize(d, [X])), [X])),
}


@pytest.mark.parametrize("way", SECOND)
@pytest.mark.parametrize("body", [lambda x, y: x + x, lambda x, y: x * y, lambda x, y: y * y, lambda x, y: x * x * y])
def test_second_derivatives_are_numbers_in_all_four_modes(way: str, body: Callable[[Value, Value], Value]) -> None:
    """By x twice: 0 but of the last. What is not needed may be left out."""
    single = materialize(SECOND[way](scalar(body))).head
    assert [str(i.key) for i in single.inputs[:2]] == ["x", "y"]
    given = {i.key: 1.0 for i in single.inputs}
    x2y = scalar(body).head.n_nodes == 2
    (value,) = evaluate(single, given | {Y: 3.0}).values()
    assert value == (6.0 if x2y else 0.0)
    if not x2y:
        assert evaluate(single, {}) == {o.key: np.zeros(()) for o in single.outputs}

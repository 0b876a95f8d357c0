"""matrix: the blocks are what the linear graph does to unit tangents, by columns and by rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.graphs.interpret import evaluate, free_inputs, random_inputs
from tests.graphs.strategies import ANY, documents, seeds
from tests.tiers import examples
from tests.transforms.laws.test_laws import law, nearly, wrt_of
from tidu_cli import load, trace
from tidu_cli.errors import TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import filled
from tidu_cli.graph.types import TensorType
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.shorthands import jacobian
from tidu_cli.transforms.transpose import transpose


def blocks_one_by_one(linear: Document, values: dict[Key, object]) -> dict[str, object]:
    """The blocks of the head's matrix, a column at a time by the plain interpreter."""
    inputs, outputs = linear.head.inputs, linear.head.outputs
    columns: dict[Key, list[dict[Key, object]]] = {}
    for declared in inputs:
        columns[declared.key] = []
        for k in range(declared.type.size):
            units = {i.key: np.zeros(i.type.size) for i in inputs}
            units[declared.key][k] = 1
            shaped = {i.key: units[i.key].reshape(i.type.shape) for i in inputs}
            columns[declared.key].append(evaluate(linear, {**values, **shaped}))
    blocks: dict[str, object] = {}
    for output in outputs:
        for declared in inputs:
            images = [np.asarray(c[output.key], float) for c in columns[declared.key]]
            stacked = np.stack(images, axis=-1) if images else np.zeros((*output.type.shape, 0))
            blocks[f"{output.key.name}/{declared.key.name}"] = stacked.reshape((*output.type.shape, *declared.type.shape))
    return blocks


def real(document: Document) -> bool:
    types = [i.type for g in document.graphs for i in g.inputs] + [o.type for g in document.graphs for o in g.outputs]
    return not any(t.complex for t in types)


@settings(law, max_examples=examples(80, check=25))
@given(documents(makers=ANY).filter(real), seeds)
def test_blocks_are_the_columns_and_the_rows(doc: Document, seed: int) -> None:
    values = random_inputs(doc, seed)
    linear = linearize(doc, wrt_of(doc, seed))
    due = blocks_one_by_one(linear, values)
    by_columns = evaluate(matrix(linear), values)
    assert [str(k) for k in by_columns] == list(due)
    for key, block in by_columns.items():
        assert np.shape(block) == np.shape(due[key.name])
        assert nearly(np.asarray(block, float), due[key.name], 1e-12)
    by_rows = evaluate(matrix(transpose(linear)), values)
    assert {str(k) for k in by_rows} <= set(due)
    for key, block in by_rows.items():
        assert np.shape(block) == np.shape(due[key.name])
        assert nearly(np.asarray(block, float), due[key.name], 1e-9)
    forgotten = {o.key.name for o in linear.head.outputs if o.value is None}
    assert {name.partition("/")[0] for name in set(due) - {str(k) for k in by_rows}} <= forgotten


@law
@given(documents(makers=ANY).filter(real), seeds)
def test_materialized_matrix_has_the_same_values(doc: Document, seed: int) -> None:
    values = random_inputs(doc, seed)
    document = matrix(linearize(doc, wrt_of(doc, seed)))
    once, twice = evaluate(document, values), evaluate(materialize(document), values)
    assert list(once) == list(twice)
    assert all(np.asarray(once[k]).tobytes() == np.asarray(twice[k]).tobytes() for k in once)


def test_the_hessian_of_several_inputs_has_a_block_for_any_two() -> None:
    document = load("samples/rosenbrock.json")
    x, y = Key("x"), Key("y")
    (output,) = document.head.outputs
    second = matrix(linearize(transpose(linearize(document, [x, y])), [x, y]))
    f = output.key.name
    assert [str(o.key) for o in second.head.outputs] == [f"{f}/x/x", f"{f}/x/y", f"{f}/y/x", f"{f}/y/y"]
    blocks = evaluate(second, {x: 1.5, y: -0.5, output.key.cotangent(1): 1.0})
    assert [float(v) for v in blocks.values()] == [1200 * 1.5**2 - 400 * -0.5 + 2, -400 * 1.5, -400 * 1.5, 200]


def test_reverse_over_reverse_gives_the_hessian_by_rows() -> None:
    document = load("samples/rosenbrock.json")
    x, y = Key("x"), Key("y")
    (output,) = document.head.outputs
    gradient = transpose(linearize(document, [x, y]))
    values = {x: 1.5, y: -0.5, output.key.cotangent(1): 1.0}
    forward = evaluate(matrix(linearize(gradient, [x, y])), values)
    reverse = evaluate(matrix(transpose(linearize(gradient, [x, y]))), values)
    assert list(forward) == list(reverse)
    assert all(nearly(forward[k], reverse[k], 1e-14) for k in forward)


def test_once_the_seed_is_a_constant_names_say_d() -> None:
    document = load("samples/cube.json")
    (output,) = document.head.outputs
    gradient = transpose(linearize(document, [Key("x")]))
    seeded = materialize(bind_constants(gradient, {output.key.cotangent(1): filled(output.type, 1)}))
    assert [str(o.key) for o in matrix(linearize(seeded, [Key("x")])).head.outputs] == ["d/x/x"]


def test_tangents_are_named_d() -> None:
    first = linearize(load("samples/cube.json"), [Key("x")])
    (output,) = matrix(linearize(first, [Key("x")])).head.outputs
    assert str(output.key) == "dy/x"


@pytest.mark.parametrize(("n", "by_rows"), [(2, True), (3, False), (4, False)])
def test_a_jacobian_goes_by_rows_where_there_are_fewer_of_them(n: int, by_rows: bool) -> None:
    document = trace(lambda x: np.concatenate([x, x])[:n], "f64[3]")
    assert ("transpose" in [stage.transform.__name__ for stage in jacobian(document, [Key("x")]).stages]) == by_rows


def test_a_holomorphic_function_has_a_complex_matrix() -> None:
    document = load("samples/complex.json")
    linear = linearize(document, [Key("z")], outputs=[Key("square")])
    z = 1.5 - 0.5j
    for head in (linear, transpose(linear)):
        blocks = evaluate(matrix(head, holomorphic=True), {Key("z"): z, Key("w"): 0j})
        assert list(blocks.values()) == [2 * z]


@pytest.mark.parametrize("transposed", [False, True])
def test_complex_inputs_need_a_holomorphic_function(transposed: bool) -> None:
    linear = linearize(load("samples/complex.json"), [Key("z")])
    with pytest.raises(TransformError, match="holomorphic=True says"):
        matrix(transpose(linear) if transposed else linear)


def test_holomorphic_functions_are_of_complex_numbers() -> None:
    with pytest.raises(TransformError, match="a holomorphic function is one of complex numbers"):
        matrix(linearize(load("samples/cube.json"), [Key("x")]), holomorphic=True)


def test_the_head_must_be_linear() -> None:
    with pytest.raises(TransformError, match=r"graph 'cube' is not a linear graph; matrix\(\) takes the output of linearize\(\)"):
        matrix(load("samples/cube.json"))


def test_fixed_inputs_are_gone() -> None:
    document = load("samples/rosenbrock.json")
    fixed = materialize(bind_constants(document, {Key("y"): filled(TensorType("f64"), 2)}))
    assert [str(i.key) for i in fixed.head.inputs] == ["x"]
    both = {Key("x"): 0.3, Key("y"): 2.0}
    assert evaluate(fixed, {Key("x"): 0.3}) == evaluate(document, both)


def test_fix_keeps_what_documents_of_several_graphs_compute() -> None:
    document = transpose(linearize(load("samples/rosenbrock.json"), [Key("x"), Key("y")]))
    key = next(k for k in free_inputs(document) if k.path)
    fixed = bind_constants(document, {key: filled(TensorType("f64"), 1)})
    values = {Key("x"): 0.3, Key("y"): 2.0}
    assert evaluate(fixed, values) == evaluate(document, {**values, key: 1.0})
    with pytest.raises(TransformError, match=f"input '{key}' is bound to a value of graph 'constants', so it cannot be set"):
        bind_constants(fixed, {key: filled(TensorType("f64"), 1)})


def test_fix_wants_the_declared_type() -> None:
    with pytest.raises(TransformError, match=r"input 'x' is f64\[\], and cannot be set to a constant f32\[\]"):
        bind_constants(load("samples/cube.json"), {parse_key("x"): filled(TensorType("f32"), 1)})

"""Integers have tangents: arithmetic on integers differentiates as the same arithmetic on floats.

(JAX gives integers float0, so there is nothing to compare with there.)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.graphs.interpret import evaluate, inner
from tests.graphs.sketch import Value, function, key, op, type_of
from tests.graphs.twins import twins
from tests.tiers import examples, few
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import INTEGERS, Type, leaves, tangent_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.tangents import natural
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

law = settings(max_examples=examples(120, check=40), suppress_health_check=[HealthCheck.too_slow])

N, X = key("n"), key("x")
Graphs = tuple[Document, Document, dict[Any, Any]]


def directions(doc: Document, seed: int = 0) -> dict[Any, Any]:
    """Small integers for the inputs of the head, so that sums of them are exact."""
    rng = np.random.default_rng(seed)
    return {i.key: rng.integers(-4, 5, i.type.shape).astype(float) for i in doc.head.inputs}


def assert_same(results: dict[Any, Any], expected: dict[Any, Any]) -> None:
    assert list(results) == list(expected)
    for k, x in expected.items():
        assert results[k].dtype == x.dtype
        assert np.array_equal(results[k], x, equal_nan=True), k


WRT = ["n", "m", "w"]


@law
@given(twins())
def test_the_jvp_is_that_of_the_same_graph_of_floats(graphs: Graphs) -> None:
    whole, real, at = graphs
    wrt = [key(k) for k in WRT]
    jvps = [linearize(doc, wrt) for doc in (whole, real)]
    assert_same(*(evaluate(doc, at | directions(doc)) for doc in jvps))


@law
@given(twins())
def test_second_derivatives_are_those_of_the_same_graph_of_floats(graphs: Graphs) -> None:
    whole, real, at = graphs
    wrt = [key(k) for k in WRT]
    second = [linearize(linearize(doc, wrt), wrt) for doc in (whole, real)]
    first = directions(linearize(whole, wrt))
    assert_same(*(evaluate(doc, at | first | directions(doc, 1)) for doc in second))


def derived(doc: Document, path: str, wrt: list[Any]) -> Document:
    """Differentiated once for each letter, from left to right: f for forward, r for reverse."""
    for step in path:
        doc = linearize(doc, wrt)
        doc = transpose(doc) if step == "r" else doc
    return doc


@pytest.mark.parametrize("path", ["fr", "rf", "rr", *map("".join, product("fr", repeat=3))])
@settings(law, max_examples=examples(40, check=11))
@given(graphs=twins())
def test_higher_derivatives_are_those_of_the_same_graph_of_floats(path: str, graphs: Graphs) -> None:
    whole, real, at = graphs
    both = [derived(doc, path, [key(k) for k in WRT]) for doc in (whole, real)]
    for g, graph in enumerate(both[0].graphs):
        moving = (i for i in graph.inputs if i.key not in at)
        at |= {i.key: np.random.default_rng([g, *str(i.key).encode()]).integers(-4, 5, i.type.shape).astype(float) for i in moving}
    assert_same(*(evaluate(doc, at) for doc in both))


@law
@given(twins())
def test_the_transpose_is_the_adjoint(graphs: Graphs) -> None:
    whole, real, at = graphs
    linear = linearize(whole, [key(k) for k in WRT])
    vjp = transpose(linear)
    assert [o.type for o in vjp.head.outputs] == [i.type for i in linear.head.inputs]
    v, u = directions(linear), directions(vjp, 1)
    forward, backward = evaluate(linear, at | v), evaluate(vjp, at | u)
    left = sum(inner(forward[k.dual()], c) for k, c in u.items())
    right = sum(inner(backward[k.dual()], t) for k, t in v.items())
    scale = sum(float(np.sum(np.abs(forward[k.dual()] * c))) for k, c in u.items())
    scale += sum(float(np.sum(np.abs(backward[k.dual()] * t))) for k, t in v.items())
    assert abs(left - right) <= (1e-12 if whole.head.inputs[0].type.dtype == "i64" else 1e-4) * max(scale, 1)
    assert_same(backward, evaluate(transpose(linearize(real, [key(k) for k in WRT])), at | u))


@law
@given(twins())
def test_fragments_link_and_materialize(graphs: Graphs) -> None:
    whole, _, at = graphs
    linear = linearize(whole, [key(k) for k in WRT])
    expected = evaluate(linear, at | directions(linear))
    for doc in (materialize(linear), resolve([whole, detach(linear, len(whole.graphs))])):
        assert_same(evaluate(doc, at | directions(linear)), expected)


# What is a number and what is none


def tangent_of(inputs: dict[str, str], body: Callable[..., Value], at: dict[str, Any], wrt: str = "n") -> Any:
    """The derivative of y in the direction of ones."""
    doc = linearize(function("f", inputs, body), [key(wrt)])
    (y,) = evaluate(
        doc, {key(k): np.asarray(v) for k, v in at.items()} | {key(wrt).tangent(1): 1.0 + zeros_of(inputs[wrt])}
    ).values()
    return y.tolist() if y.dtype.kind == "f" else y


def zeros_of(text: str) -> Any:
    return np.zeros(type_of(text).shape)


def null(inputs: dict[str, str], body: Callable[..., Value], wrt: str = "n") -> bool:
    """Whether the tangent is a structural zero, and nothing was emitted for it."""
    head = linearize(function("f", inputs, body), [key(wrt)]).head
    return head.outputs[0].value is None and not head.n_nodes


TWO = {"n": "i32[]", "m": "i32[]"}
WIDE = {"n": "i64[]", "m": "i64[]"}


@pytest.mark.parametrize("name", ["div", "and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic"])
@pytest.mark.parametrize("wrt", ["n", "m"])
def test_operations_that_round_or_work_on_bits_are_steps(name: str, wrt: str) -> None:
    assert null(TWO, op(name), wrt)


@pytest.mark.parametrize("name", ["not", "population_count", "clz", "sign", "stop_gradient"])
def test_functions_of_bits_are_steps(name: str) -> None:
    assert null({"n": "i32[]"}, op(name))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_have_no_tangent(name: str) -> None:
    assert null(TWO, op(name))


@pytest.mark.parametrize(("n", "m"), [(7, 3), (-7, 3), (7, -3), (-7, -3), (6, 3), (2, 5)])
def test_a_remainder_is_what_the_fixed_quotient_leaves(n: int, m: int) -> None:
    at = {"n": n, "m": m}
    assert tangent_of(TWO, op("rem"), at) == 1.0
    assert tangent_of(TWO, op("rem"), at, "m") == -int(n / m)


def test_the_remainder_by_zero_is_the_dividend_whatever_the_zero() -> None:
    assert tangent_of(TWO, op("rem"), {"n": 7, "m": 0}) == 1.0
    assert tangent_of(TWO, op("rem"), {"n": 7, "m": 0}, "m") == 0.0


def test_quotient_and_remainder_make_up_the_dividend() -> None:
    # n = m (n div m) + n rem m: so do the derivatives.
    def body(n: Value, m: Value) -> Value:
        return m * op("div")(n, m) + op("rem")(n, m)

    assert tangent_of(TWO, body, {"n": 17, "m": 5}) == 1.0
    assert tangent_of(TWO, body, {"n": 17, "m": 5}, "m") == 0.0


@pytest.mark.parametrize("dtype", sorted(INTEGERS))
def test_conversions_between_integers_keep_the_number(dtype: str) -> None:
    doc = function("f", {"n": f"{dtype}[]"}, lambda n: op("convert_element_type")(n, new_dtype="i64"))
    linear = linearize(doc, [N])
    assert linear.head.inputs[0].type == natural(type_of(f"{dtype}[]"))
    assert evaluate(linear, {N: np.asarray(5), N.tangent(1): np.asarray(0.5)})[key("y@1")].tolist() == 0.5


def test_from_float_to_integer_rounds() -> None:
    def rounded(x: Value) -> Value:
        return op("convert_element_type")(op("convert_element_type")(x, new_dtype="i32"), new_dtype="f64")

    assert null({"n": "f64[]"}, rounded)


def test_an_integer_output_of_floats_stays_inactive_beside_an_active_one() -> None:
    def body(n: Value, x: Value) -> Value:
        return op("mul")(n, op("convert_element_type")(x, new_dtype="i32"))

    doc = function("f", {"n": "i32[]", "x": "f64[]"}, body)
    linear = linearize(doc, [N, X])
    assert [o.value is None for o in transpose(linear).head.outputs] == [False, True]


def test_to_bool_is_no_number() -> None:
    def body(n: Value) -> Value:
        return op("convert_element_type")(op("convert_element_type")(n, new_dtype="bool"), new_dtype="f64")

    assert null({"n": "i32[]"}, body)


@pytest.mark.parametrize("dtype", sorted(INTEGERS))
def test_as_an_index_an_integer_contributes_nothing(dtype: str) -> None:
    numbers = {"offset_dims": (), "collapsed_slice_dims": (0,), "start_index_map": (0,)}
    put = {"update_window_dims": (), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}

    def row(n: Value) -> Value:
        return op("reshape")(n, new_sizes=(1,))

    for body in (
        lambda n, x: op("dynamic_slice")(x, n, slice_sizes=(1,)),
        lambda n, x: op("dynamic_update_slice")(x, op("slice")(x, start_indices=(0,), limit_indices=(1,)), n),
        lambda n, x: op("gather")(x, row(n), dimension_numbers=numbers, slice_sizes=(1,), mode="clip"),
        lambda n, x: op("scatter-add")(x, row(n), op("reduce_sum")(x, axes=(0,)), dimension_numbers=put, mode="clip"),
    ):
        assert null({"n": f"{dtype}[]", "x": "f64[4]"}, body)


def test_as_a_selector_an_integer_contributes_nothing() -> None:
    assert null({"n": "i32[]", "x": "f64[2]"}, lambda n, x: op("select_n")(n, x, x, x))
    assert null({"n": "i32[3]"}, lambda n: op("argmax")(n, axes=(0,), index_dtype="i32"))


def test_what_serves_as_index_and_as_number_counts_as_number() -> None:
    # n x[n], the derivative of which is x[n].
    def body(n: Value, x: Value) -> Value:
        read = op("reshape")(op("dynamic_slice")(x, n, slice_sizes=(1,)), new_sizes=())
        return op("convert_element_type")(n, new_dtype="f64") * read

    assert tangent_of({"n": "i32[]", "x": "f64[3]"}, body, {"n": 2, "x": [3.0, 5.0, 7.0]}) == 7.0


def test_index_arithmetic_leaves_nothing_behind() -> None:
    def body(n: Value, x: Value) -> Value:
        return op("dynamic_slice")(x, n * n + 1, slice_sizes=(1,))

    doc = linearize(function("f", {"n": "i32[]", "x": "f64[8]"}, body), [N])
    assert [g.n_nodes for g in doc.graphs[1:]] == [0] * len(doc.graphs[1:])


@pytest.mark.parametrize(("base", "exponent"), [("f64", "i32"), ("f64", "i64"), ("f32", "i64"), ("c128", "u8")])
def test_an_exponent_of_integers_is_a_number(base: str, exponent: str) -> None:
    tangent = tangent_of({"x": f"{base}[]", "n": f"{exponent}[]"}, op("pow"), {"x": 1.5, "n": 3}, "n")
    dtype = np.float32 if base == "f32" else np.float64
    linear = linearize(function("f", {"x": f"{base}[]", "n": f"{exponent}[]"}, op("pow")), [N])
    (y,) = evaluate(linear, {X: np.asarray(1.5), N: np.asarray(3), N.tangent(1): np.asarray(1.0)}).values()
    assert abs(np.asarray(y if tangent is None else tangent) - 1.5**3 * np.log(1.5)) < 10 * np.finfo(dtype).eps


@pytest.mark.parametrize("great", [2**53 + 1, 2**63 - 1])
def test_integers_are_compared_as_they_are(great: int) -> None:
    # In f64, the dtype of their tangents, n and n - 1 are the same number, and would tie.
    for name, at in (("max", great - 1), ("min", great)):
        other = great + great - 1 - at
        assert tangent_of(WIDE, op(name), {"n": at, "m": other}) == 0.0
        assert tangent_of(WIDE, op(name), {"n": at, "m": other}, "m") == 1.0


def test_products_of_small_integers_in_a_wider_dtype() -> None:
    def body(n: Value) -> Value:
        return op("dot_general")(n, n, dimension_numbers=(((0,), (0,)), ((), ())), preferred_element_type="i64")

    linear = linearize(function("f", {"n": "i8[3]"}, body), [N])
    assert [str(i.type) for i in linear.head.inputs] == ["f64[3]"] and [str(o.type) for o in linear.head.outputs] == ["f64[]"]
    assert tangent_of({"n": "i8[3]"}, body, {"n": np.array([100, 50, 20], np.int8)}) == 340.0


@pytest.mark.parametrize("path", ["f", "r", "ff", "fr", "rf", "rr"])
@pytest.mark.parametrize("dtype", sorted(INTEGERS - {"i64"}))
def test_derivatives_have_the_digits_of_the_floats_that_an_integer_meets(dtype: str, path: str) -> None:
    """However few bits it has: those of an f64 function are to the bit those by a 64-bit integer."""

    def body(n: Value, x: Value) -> Value:
        return op("sin")(op("convert_element_type")(n, new_dtype="f64") * x) * x

    results = []
    for integer in (dtype, "i64"):
        doc = derived(function("f", {"n": f"{integer}[]", "x": "f64[]"}, body), path, [N, X])
        at = {i.key: np.float64(0.1 + k / 7) for k, i in enumerate(i for g in doc.graphs for i in g.inputs)}
        results.append(evaluate(doc, at | {N: numpy_dtype(np, integer).type(3)}))
    assert_same(*results)


def test_an_integers_tangent_converts_to_the_floats_that_it_meets() -> None:
    def body(n: Value, x: Value) -> Value:
        return op("convert_element_type")(n, new_dtype="f32") * x

    linear = linearize(function("f", {"n": "i32[]", "x": "f32[]"}, body), [N, X])
    assert [str(i.type) for i in linear.head.inputs] == ["f64[]", "f32[]"]
    assert [str(o.type) for o in linear.head.outputs] == ["f32[]"]
    assert [str(o.type) for o in transpose(linear).head.outputs] == ["f64[]", "f32[]"]


def test_unsigned_integers_wrap_but_their_derivatives_do_not() -> None:
    assert tangent_of({"n": "u8[]", "m": "u8[]"}, op("sub"), {"n": 3, "m": 5}, "m") == -1.0


def test_the_matrix_of_an_integer_function() -> None:
    doc = materialize(matrix(linearize(function("f", {"n": "i64[3]"}, lambda n: op("cumsum")(n, axis=0)), [N])))
    (block,) = evaluate(doc, {N: np.arange(3)}).values()
    assert np.array_equal(block, np.tril(np.ones((3, 3))))


# Every primitive that takes integers


def holds_integers(type_: Type) -> bool:
    return any(leaf.dtype in INTEGERS for _, leaf in leaves(type_))


def integer_cases() -> list[Any]:
    params = []
    for primitive in BUILTIN:
        for _, case in example_cases(BUILTIN, primitive):
            if any(map(holds_integers, case.operands)):
                params.append(pytest.param(case, id=f"{case.op}-{','.join(map(str, case.operands))}"))
    return params


@pytest.mark.parametrize("case", few(integer_cases(), 480))
def test_every_rule_takes_integers(case: Any) -> None:
    doc = one_node_document(case)
    wrt = [i.key for i in doc.head.inputs if holds_integers(i.type)]
    linear = linearize(doc, wrt)
    assert [o.type for o in linear.head.outputs] == [tangent_type(t) for t in case.results]
    vjp = transpose(linear)
    assert [o.type for o in vjp.head.outputs] == [i.type for i in linear.head.inputs]
    linearize(vjp, wrt)

"""Patterns at the edges: known matrices, empty arrays, loops without steps, halves, numbers of many columns, what is too large."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as td
from tests.cli.running import invoke, succeed
from tests.graphs.strategies import seeds
from tests.sparse.test_derivatives import array, dense
from tests.tiers import examples
from tidu_cli.errors import ArgumentError, LimitError
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import Limits, limited
from tidu_cli.rules import families
from tidu_cli.rules.families import of_one_type
from tidu_cli.rules.terms import op
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.sparse.patterns import pattern
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


def shown(document: Any, *wrt: str) -> list[str]:
    matrix = td.sparsity(document, wrt=list(wrt or "x")).matrix.toarray()
    return ["".join(map(str, row)) for row in matrix.astype(int)]


@given(st.sampled_from(["ij,j->i", "j,ji->i", "ij,jk->ik", "kj,ji->ki", "bij,bj->bi", "bij,bjk->bik", "ji,j->i"]), seeds)
@settings(max_examples=examples(150, check=40))
def test_a_product_with_a_known_matrix_has_its_entries(subscripts: str, seed: int) -> None:
    rng, sizes = np.random.default_rng(seed), {"i": 4, "j": 5, "k": 2, "b": 3}
    inputs, _ = subscripts.split("->")
    left, right = inputs.split(",")
    matrix, vector = (left, right) if "i" in left else (right, left)
    known = rng.normal(size=[sizes[c] for c in matrix]) * (rng.uniform(size=[sizes[c] for c in matrix]) < 0.3)
    shape = [sizes[c] for c in vector]

    def function(x: Any) -> Any:
        operands = (known, x) if matrix == left else (x, known)
        return np.einsum(subscripts, *operands).ravel()

    document, x = td.trace(function, x="f64[" + ",".join(map(str, shape)) + "]"), rng.normal(size=shape)
    due = dense(document, ["x"], {"x": x})
    found = td.sparsity(document, wrt="x").matrix.toarray()
    assert not ((due != 0) & ~found).any()
    if "b" not in subscripts:
        assert (found == (due != 0)).all()
    np.testing.assert_allclose(array(td.evaluate(td.jacobian(document, wrt="x", sparse=True), {"x": x})).toarray(), due, atol=1e-13)


def test_a_known_matrix_that_is_full_is_dense() -> None:
    assert shown(td.trace(lambda x: np.ones((2, 3)) @ x, x="f64[3]")) == ["111", "111"]


SMALL = {
    "no elements": (lambda x: x[:0] * 2, []),
    "no input that counts": (lambda x: np.ones(2), ["000", "000"]),
    "a loop without steps": (lambda x: td.scan(lambda c, t: (c + t, c * t), x[0], x[:0])[0], ["100"]),
    "what a loop without steps stacks": (lambda x: td.scan(lambda c, t: (c + t, c * t), x[0], x[:0])[1], []),
    "a branch that is known": (lambda x: td.cond(np.bool_(True), lambda x: x[:2], lambda x: x[1:], x), ["100", "010"]),
    "a branch that is not": (lambda x: td.cond(x[0] > 0, lambda x: x[:2], lambda x: x[1:], x), ["110", "011"]),
    "any number of steps": (lambda x: td.while_loop(lambda c: c[0] < 5.0, lambda c: np.roll(c, 1) * 2.0, x), ["111"] * 3),
    "padding of nothing": (lambda x: np.pad(x[:0], 1), ["000", "000"]),
}


@pytest.mark.every
@pytest.mark.parametrize("name", SMALL)
def test_small(name: str) -> None:
    function, due = SMALL[name]
    document = td.trace(function, x="f64[3]")
    assert shown(document) == due
    x = np.array([1.0, 1.5, 2.0])
    found = td.sparse_array(td.evaluate(td.jacobian(document, wrt="x", sparse=True), {"x": x}))
    assert found.shape == (len(due), 3)
    assert not due or (found.toarray() == dense(document, ["x"], {"x": x})).all()


def test_an_input_of_no_elements() -> None:
    document = td.trace(lambda x, y: x.sum() + y, x="f64[0]", y="f64[2]")
    assert shown(document, "x", "y") == ["10", "01"] and shown(document) == ["", ""]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_entries_are_of_a_dtype_that_scipy_has(dtype: str, tmp_path: Any) -> None:
    for name in ("j.npz", "j.mtx"):
        succeed(
            "jacobian",
            "x[1:] * x[:-1]",
            "-i",
            f"x:{dtype}[3]",
            "--wrt",
            "x",
            "--sparse",
            "--set",
            "x=2,3,5",
            "-o",
            str(tmp_path / name),
        )
    found = td.sparse_array(td.load_values(tmp_path / "j.npz"))
    assert found.toarray().tolist() == [[3, 2, 0], [0, 5, 3]]
    assert found.dtype == ("f8" if dtype == "f64" else "f4")


@given(st.integers(1, 300), seeds)
@settings(max_examples=examples(60, check=15))
def test_numbers_that_depend_on_more_and_more(n: int, seed: int) -> None:
    """Sets of columns, then bits: as an array of the same sums."""
    rng = np.random.default_rng(seed)
    taken = rng.permutation(n)[: max(1, n - 3)].tolist()

    def numbers(x: Any) -> Any:
        total, sums = x[taken[0]] * x[0], []
        for k in taken[1:]:
            total = total + np.sin(x[k])
            sums.append(total)
        return np.stack([total * 2.0, *sums[-2:], x[0] * 0.0])

    found = td.sparsity(td.trace(numbers, x=f"f64[{n}]"), wrt="x").matrix.toarray()
    due = np.zeros((min(2, len(taken) - 1) + 2, n), bool)
    due[:-1, [0, *taken]] = True
    if len(taken) > 2:
        due[1, taken[-1]] = taken[-1] == 0
    assert (found == due).all()


@given(st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)), st.booleans(), seeds)
@settings(max_examples=examples(100, check=30))
def test_sums_up_to_and_from(shape: tuple[int, int, int], back: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    places, ends = rng.integers(0, 6, shape), rng.integers(0, shape[1], (2, 4))

    def function(x: Any) -> Any:
        sums = np.cumsum(x[places][:, :: -1 if back else 1], axis=1)
        return (sums[:, ends[0]] + sums[:, ends[1]]).ravel()

    document = td.trace(function, x="f64[6]")
    due = dense(document, ["x"], {"x": np.ones(6)}) != 0
    assert (td.sparsity(document, wrt="x").matrix.toarray() == due).all()
    turned = transpose(linearize(document, [Key("x")]))
    assert (pattern(turned, [Key("y", (-1,))]).matrix.toarray() == due.T).all()


@pytest.mark.every
@pytest.mark.parametrize("name", ["cumsum", "fft", "sort", "matrix"])
def test_what_is_too_large_is_refused_before_it_is_made(name: str) -> None:
    functions = {
        "cumsum": lambda x: np.cumsum(x),
        "fft": lambda x: np.fft.fft(x).real,
        "sort": lambda x: np.sort(x),
        "matrix": lambda x: np.outer(x, x) @ x,
    }
    n = 2_000 if name == "matrix" else 1_000_000
    with limited(Limits(memory=20_000_000)), pytest.raises(LimitError, match="the pattern of the derivative, at a node"):
        td.sparsity(td.trace(functions[name], x=f"f64[{n}]"), wrt="x")


def test_places_that_are_inputs_are_said_to_be_dense() -> None:
    found = td.sparsity(td.trace(lambda x, i: x[i] + np.sort(x), x="f64[4]", i="i64[4]"), wrt="x")
    assert found.dense == ("gather",)
    result = invoke("jacobian", "sort(x)", "-i", "x:f64[3]", "--wrt", "x", "--sparse", "-v")
    assert "dense where nothing better is known: gather" in result.stderr and "in 3 directions" in result.stderr


def of_one_node(primitives: PrimitiveSet, name: str, type_: TensorType, attrs: dict[str, Any]) -> Document:
    case, table = primitives.case(name, primitives.parse_attrs(name, attrs), None, [type_]), CaseTable(primitives)
    builder = GraphBuilder(table, [Input(Key("x"), type_)])
    y = Output(Key("y"), builder.append(table.intern(case), [0]), type_)
    return Document((builder.build("f", [y]),), table)


def test_a_primitive_of_others_that_says_nothing_is_dense() -> None:
    """Each element and the sum of all, which is its own adjoint."""
    blur = families.linear(
        "blur",
        of_one_type(FLOATS),
        lambda np, attrs, operands, results: lambda x: x + x.sum(dtype=x.dtype),
        lambda node, ct, type_: op("blur")(ct),
        dtypes=FLOATS,
        batch=lambda node: [node.operands[0] + op("broadcast_in_dim")(
            op("reduce_sum")(node.operands[0], axes=(1,)), shape=node.operands[0].type.shape, broadcast_dimensions=(0,)
        )],
        formula="x + Σ x",
        summary="each element and the sum of all",
    )  # fmt: skip
    document = of_one_node(PrimitiveSet.of([*BUILTIN, blur]), "blur", TensorType("f64", (3,)), {})
    found = td.sparsity(document, wrt="x")
    assert (found.n_entries, found.dense) == (9, ("blur",))
    entries = td.evaluate(td.jacobian(document, wrt="x", sparse=True), {"x": np.ones(3)})
    assert (td.sparse_array(entries).toarray() == np.ones((3, 3)) + np.eye(3)).all()


def test_rounding_to_fewer_bits_moves_nothing() -> None:
    """The numbers of many elements have more bits than are kept."""
    attrs = {"exponent_bits": 5, "mantissa_bits": 3}
    document = of_one_node(BUILTIN, "reduce_precision", TensorType("f64", (100,)), attrs)
    assert (td.sparsity(document, wrt="x").matrix.toarray() == np.eye(100, dtype=bool)).all()


def test_both() -> None:
    document = td.trace(lambda x: x[1:] * x[:-1], x="f64[4]")
    both = td.jacobian(document, wrt="x", sparse=True, both=True)
    assert td.diff(both, td.jacobian(document, wrt="x", sparse=True))["same"]
    for wrong in ({}, {"sparse": True, "reverse": True}, {"sparse": True, "strong_zeros": True}):
        with pytest.raises(ArgumentError, match="'both'"):
            td.jacobian(document, wrt="x", both=True, **wrong)
    result = invoke("jacobian", "x**2", "-i", "x:f64[3]", "--wrt", "x", "--both")
    assert result.exit_code == 2 and "--both is of --sparse" in result.stderr


def test_sparse_array_of_other_values() -> None:
    with pytest.raises(ArgumentError, match="has no col, data, row, shape"):
        td.sparse_array({"y": np.ones(3)})
    with pytest.raises(ArgumentError):
        td.sparse_array(np.ones(3))  # type: ignore[arg-type]

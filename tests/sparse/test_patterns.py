"""A pattern has every entry of the derivative that is not zero, and where nothing cancels no other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tidu_cli as td
from tests.graphs.interpret import random_inputs
from tests.graphs.strategies import documents, seeds
from tests.lax.test_batching import drawn
from tests.tiers import examples, few
from tidu_cli.checking.numeric.trials import example_cases, of_operand, one_node_document, with_diagonal
from tidu_cli.errors import LimitError, MissingRuleError, TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import Limits, limited
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.sparse.patterns import pattern
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

LINEAR = [p.name for p in BUILTIN if p.groups or p.rules.transpose or p.rules.jvp]


def is_real(type_: Any) -> bool:
    return isinstance(type_, TensorType) and type_.inexact and not type_.complex


def images(linear: Document, at: dict[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Where the matrix of a linear head is not zero at a point, by evaluating it in each unit direction, of random length."""
    graph = materialize(linear).head
    tangents = {i.key: i.type for i in linear.head.inputs}
    columns = []
    for key, type_ in tangents.items():
        for k in range(type_.size):
            moves = {other: np.zeros(t.shape, "f8") for other, t in tangents.items()}
            moves[key].ravel()[k] = rng.uniform(0.5, 1.5)
            with np.errstate(all="ignore"):
                values = evaluate(graph, {**at, **moves})
            parts = [np.ravel(values[o.key]) if o.value is not None else np.zeros(o.type.size) for o in graph.outputs]
            columns.append(np.concatenate(parts) != 0)
    return np.array(columns).T


@pytest.mark.parametrize("name", LINEAR)
def test_every_example_of_every_primitive(name: str) -> None:
    primitive, rng = BUILTIN[name], np.random.default_rng(7)
    for example, case in few(example_cases(BUILTIN, primitive), 12):
        if not all(isinstance(t, TensorType) and t.dtype in ("f64", "i32", "i64", "bool") for t in (*case.operands, *case.results)):
            continue
        document = one_node_document(case)
        able = [
            k
            for k, t in enumerate(case.operands)
            if is_real(t) and not primitive.domain.is_index(k) and k not in primitive.rules.inert
        ]
        wrt = [document.head.inputs[k].key for k in able]
        if not wrt:
            continue
        try:
            forward = linearize(document, wrt)
            directions = [forward, *([] if primitive.rules.irreversible else [transpose(forward)])]
        except MissingRuleError:
            continue
        for linear in directions:
            found = pattern(linear, [i.key for i in linear.head.inputs]).matrix.toarray()
            for _ in range(2):
                at = {
                    i.key: with_diagonal(drawn(rng, i.type, of_operand(example.within, k)), of_operand(example.diagonals, k))
                    for k, i in enumerate(document.head.inputs)
                }
                seen = images(linear, at, rng)
                assert not (seen & ~found).any(), (case, linear.head.name)


@given(documents(), seeds)
@settings(max_examples=examples(500, check=60))
def test_random_documents(document: Document, seed: int) -> None:
    document = materialize(document)
    wrt = [key for key, i in document.inputs.items() if is_real(i.type)]
    linear = linearize(document, wrt) if wrt else None
    if linear is None or not all(is_real(o.type) for o in linear.head.outputs):
        return
    found = pattern(linear, [i.key for i in linear.head.inputs]).matrix.toarray()
    at = {key: value for key, value in random_inputs(linear, seed).items() if key in document.inputs}
    seen = images(linear, at, np.random.default_rng(seed))
    assert not (seen & ~found).any()


def added(x: Any) -> Any:
    y = np.zeros(2) * x[0]
    np.add.at(y, np.array([1, 0, 1, 1]), x[:4] ** 2)
    return y


EXACT = {
    "neighbours": (lambda x: x[1:] * x[:-1], "110000 011000 001100 000110 000011"),
    "sums up to": (lambda x: np.cumsum(x**2), "100000 110000 111000 111100 111110 111111"),
    "pairs": (lambda x: np.sum(np.sin(x.reshape(3, 2)), axis=1), "110000 001100 000011"),
    "known places": (lambda x: x[np.array([4, 0, 4])] ** 2, "000010 100000 000010"),
    "added at places": (added, "010000 101100"),
    "known zeros": (lambda x: x * np.array([1.0, 0, 2, 0, 0, 3]), "100000 000000 001000 000000 000000 000001"),
    "of each matrix": (lambda x: np.linalg.inv(np.eye(1) + x.reshape(6, 1, 1)).ravel()[:2], "100000 010000"),
    "a system of pairs": (
        lambda x: td.linear_solve(lambda y: y * x[0] + y.reshape(3, 2)[:, ::-1].ravel(), x**2)[:3],
        "110000 110000 101100",
    ),
    "roots": (lambda x: td.root(lambda y: y**3 + y - x[:4], np.ones(4)), "100000 010000 001000 000100"),
    "turned and joined": (lambda x: np.concatenate([x[::-2], x[:1]]), "000001 000100 010000 100000"),
}


@pytest.mark.every
@pytest.mark.parametrize("name", EXACT)
def test_nothing_more_where_nothing_cancels(name: str) -> None:
    function, due = EXACT[name]
    found = td.sparsity(td.trace(function, x="f64[6]"), wrt="x").matrix.toarray()
    assert [("".join(map(str, row))) for row in found.astype(int)] == due.split()


def test_a_loop_is_followed_step_by_step() -> None:
    def recurrence(x: Any) -> Any:
        return td.scan(lambda c, xt: (c + xt**2, c * 2), 0.0, x)[1]

    found = td.sparsity(td.trace(recurrence, x="f64[4]"), wrt="x").matrix.toarray()
    assert (found == np.tril(np.ones((4, 4)), -1)).all()


def test_a_loop_of_many_steps_is_not() -> None:
    """What may be at one step may be at all: more than there is, and soon."""

    def recurrence(x: Any) -> Any:
        return td.scan(lambda c, _: (np.roll(c, 1) * c, None), x, None, length=1_000_000)[0]

    found = td.sparsity(td.trace(recurrence, x="f64[3]"), wrt="x").matrix
    assert found.nnz == 9


def test_second_derivatives_of_a_sum_of_local_terms() -> None:
    document = td.trace(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), x="f64[5]")
    found = td.sparsity(document, wrt="x", second=True).matrix.toarray()
    assert (found == (np.abs(np.subtract.outer(np.arange(5), np.arange(5))) < 2)).all()


def test_places_that_are_not_known_may_be_any() -> None:
    found = td.sparsity(td.trace(lambda x, i: x[i], x="f64[5,2]", i="i64[2]"), wrt="x")
    assert (found.shape, found.n_entries) == ((4, 10), 20)  # but columns stay where they are


def test_what_is_dense_is_said() -> None:
    found = td.sparsity(td.trace(lambda x, i: x[i], x="f64[5]", i="i64[]"), wrt="x")
    assert found.n_entries == 5 and "5 entries" in repr(found)
    lower = td.sparsity(td.trace(lambda x: np.linalg.eigvalsh(x), x="f64[3,3]"), wrt="x")
    assert lower.n_entries == 3 * 6  # it reads the lower triangle


def test_more_entries_than_memory_is_allowed_for() -> None:
    document = td.trace(lambda x: np.cumsum(x), x="f64[2000]")
    with (
        limited(Limits(memory=1_000_000)),
        pytest.raises(LimitError, match=r"pattern of the derivative, at a node cumsum: 9\.54 MiB"),
    ):
        td.sparsity(document, wrt="x")


def test_a_constant_loop_that_never_ends_is_not_run() -> None:
    """And counts as what is not known."""
    factor = td.trace(lambda x, y: x * td.while_loop(lambda y: y > 0, lambda y: y + 1.0, y), x="f64[2]", y="f64[]")
    document = td.materialize(factor, set={"y": 1.0})
    with limited(Limits(steps=1000)):
        assert td.sparsity(document, wrt="x").matrix.toarray().tolist() == [[True, False], [False, True]]


def test_a_product_whose_pattern_would_never_be_done() -> None:
    document = td.trace(lambda x: x @ x, x="f64[3000,3000]")
    with limited(Limits(memory=2_000_000_000)), pytest.raises(LimitError, match="at a node dot_general: 126 GiB"):
        td.sparsity(document, wrt="x")


def test_systems_of_several_arrays() -> None:
    def solved(a: Any, b: Any, c: Any) -> Any:
        return td.linear_solve(
            lambda p: {"x": a * p["x"] + p["y"][0], "y": 2 * p["y"], "z": p["z"][::-1]}, {"x": b, "y": c, "z": b}
        )

    document = td.trace(solved, a="f64[]", b="f64[2]", c="f64[2]")
    found = td.sparsity(document, wrt=("b", "c")).matrix.toarray().astype(int)
    assert found.tolist() == [[1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [1, 1, 0, 0]]
    at = {"a": 3.0, "b": np.array([1.0, 2.0]), "c": np.array([3.0, 4.0])}
    entries = td.evaluate(td.jacobian(document, wrt=("b", "c"), sparse=True), at)
    dense = td.evaluate(td.jacobian(document, wrt=("b", "c")), at)
    rows = [np.concatenate([dense[f"{y}/b"], dense[f"{y}/c"]], axis=1) for y in map(str, (o.key for o in document.head.outputs))]
    whole = np.zeros((6, 4))
    whole[entries["row"], entries["col"]] = entries["data"]
    assert np.allclose(whole, np.concatenate(rows), atol=1e-12)


def test_an_input_of_integers_is_refused() -> None:
    with pytest.raises(TransformError, match="'i'"):
        td.sparsity(td.trace(lambda x, i: x[i], x="f64[5]", i="i64[2]"), wrt="i")


def test_records_count_as_their_arrays() -> None:
    document = td.trace(lambda p: p["a"][1:] * p["b"], p={"a": "f64[3]", "b": "f64[2]"})
    wrt = [key for key, i in document.inputs.items() if isinstance(i.type, RecordType) or is_real(i.type)]
    assert td.sparsity(document, wrt=wrt).matrix.toarray().astype(int).tolist() == [[0, 1, 0, 1, 0], [0, 0, 1, 0, 1]]

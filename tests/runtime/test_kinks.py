"""`tidu eval --kinks`: what is listed where operands tie or sit on a boundary, and that derivatives there are as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidu_cli
from tests.cli.running import ROOT, invoke, succeed
from tests.graphs.templates import jvp, make_case, type_of
from tidu_cli.checking.numeric.trials import example_cases, of_operand, one_node_document, with_diagonal
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules import kinks as words
from tools.kinks import to_markdown

NAN, INF = math.nan, math.inf

POINTS = {
    "max": ((1.0, 1.0), [0.5, 0.5], [0.5, 0.5]),
    "min": ((1.0, 1.0), [0.5, 0.5], [0.5, 0.5]),
    "abs": ((0.0,), [1.0], [0.0]),
    "sign": ((0.0,), [0.0], [0.0]),
    "pow": ((0.0, 0.0), [NAN, 0.0], [0.0, 0.0]),
    "div": ((1.0, 0.0), [INF, -INF], [INF, -INF]),
    "floor": ((1.0,), [0.0], [0.0]),
    "ceil": ((1.0,), [0.0], [0.0]),
    "round": ((0.5,), [0.0], [0.0]),
    "rem": ((4.0, 2.0), [1.0, -2.0], [1.0, -2.0]),
    "clamp": ((-1.0, 1.0, 1.0), [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
    "log": ((0.0,), [INF], [INF]),
    "log1p": ((-1.0,), [INF], [INF]),
    "sqrt": ((0.0,), [INF], [INF]),
    "rsqrt": ((0.0,), [-INF], [-INF]),
    "cbrt": ((0.0,), [INF], None),
    "asin": ((1.0,), [INF], [INF]),
    "acos": ((1.0,), [-INF], [-INF]),
    "atanh": ((1.0,), [INF], [INF]),
    "acosh": ((1.0,), [INF], [INF]),
    "atan2": ((0.0, 0.0), [NAN, NAN], [0.0, 0.0]),
}
"""Of ops a point at their kink, and the derivatives there of JAX 0.10.2 (which make jax compares) and PyTorch 2.13, recorded."""

ARRAYS = {"reduce_max", "reduce_min", "argmax", "argmin", "cummax", "cummin", "sort", "top_k", "eigh"} | {
    *("reduce_window_max", "reduce_window_min", "select_and_gather_add", "select_and_scatter_add", "scatter-max", "scatter-min")
}
COMPARISONS = {"lt", "le", "gt", "ge"}


def means(text, slopes):
    """Whether slopes by each operand are what a convention says."""
    word = text.partition(";")[0]
    if word == "half each":
        return slopes == [0.5, 0.5]
    if word == "NaN":
        return any(map(math.isnan, slopes))
    if word == "infinite":
        return all(map(math.isinf, slopes))
    if word == "infinite or NaN":
        return not any(map(math.isfinite, slopes))
    if word == "that of one side":
        return slopes == [1.0, -2.0]
    return slopes == [0.0] * len(slopes) if word == "0" else sorted(slopes)[-1] == float(word) and sum(slopes) == float(word)


def slopes(op, operands):
    operands = [np.asarray(x) for x in operands]
    case = make_case(op, {}, map(type_of, operands))
    ones = [[np.ones(()) if j == k else None for j in range(len(operands))] for k in range(len(operands))]
    return [0.0 if (t := jvp(case, operands, one)[0]) is None else float(t) for one in ones]


def kinks_of(op):
    rule = BUILTIN[op].rules.kinks
    return rule(words) if rule else ()


def rows(f, at, **types):
    return tidu_cli.kinks(tidu_cli.trace(f, **types), at)


@pytest.mark.parametrize("op", POINTS)
def test_conventions_are_those_of_the_derivatives(op):
    point, jax, pytorch = POINTS[op]
    told = kinks_of(op)[0].conventions
    assert means(told["tidu"], slopes(op, point))
    assert means(told["jax"], jax) and (means(told["pytorch"], pytorch) if pytorch else told["pytorch"] == "")
    case = make_case(op, {}, [TensorType("f64")] * len(point))
    (row,) = tidu_cli.kinks(one_node_document(case), {f"x{k}": x for k, x in enumerate(point)})
    assert row == {"node": f"graph '{op}', node 0 ({op})", "step": [], "times": 1, "elements": 1, "index": []} | {
        "at": kinks_of(op)[0].at, **told
    }  # fmt: skip


def test_all_ops_with_kinks_are_tried():
    assert {p.name for p in BUILTIN.primitives.values() if p.rules.kinks} == {*POINTS, *ARRAYS, *COMPARISONS}


@pytest.mark.parametrize("op", sorted({*POINTS, *ARRAYS} - {"argmax", "argmin"}))
def test_there_is_none_elsewhere(op):
    random = np.random.default_rng(0)
    for example, case in example_cases(BUILTIN, BUILTIN[op]):
        if not all(isinstance(t, TensorType) and t.dtype == "f64" for t in case.operands):
            continue
        operands = {
            f"x{k}": with_diagonal(random.uniform(*of_operand(example.within, k), t.shape), of_operand(example.diagonals, k))
            for k, t in enumerate(case.operands)
        }
        assert tidu_cli.kinks(one_node_document(case), operands) == []


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x.max(), ("reduce_max", [1], 2)),
        (lambda x: x.argmax() * 1.0, ("argmax", [1], 2)),
        (lambda x: np.maximum.accumulate(x), ("cummax", [2], 1)),
        (lambda x: np.sort(x), ("sort", [3], 1)),
        (lambda x: np.where(x < 3.0, x, 0.0), ("lt", [1], 2)),
    ],
)
def test_ties_of_arrays(f, expected):
    (row,) = rows(f, {"x": [1.0, 3.0, 3.0, 2.0]}, x="f64[4]")
    assert (row["node"].partition("(")[2][:-1], row["index"], row["elements"]) == expected


def window_attrs(**attrs):
    plain = {"window_strides": [1, 1], "padding": [[0, 0], [0, 0]], "base_dilation": [1, 1], "window_dilation": [1, 1]}
    return {"window_dimensions": [2, 2], **plain, **attrs}


X = np.array([[1.0, 3, 0, 2], [3, 2, 2, 2], [1, 0, 0, 9]])


@pytest.mark.parametrize(
    ("op", "attrs", "expected"),
    [
        ("reduce_window_max", window_attrs(), [[1, 0, 1], [0, 1, 0]]),
        ("reduce_window_min", window_attrs(), [[0, 0, 0], [0, 1, 0]]),
        ("reduce_window_max", window_attrs(window_strides=[1, 2]), [[1, 1], [0, 0]]),
        ("reduce_window_max", window_attrs(window_dilation=[1, 2]), [[0, 0], [0, 0]]),
        ("reduce_window_max", window_attrs(padding=[[-1, 0], [1, 0]], base_dilation=[1, 1]), [[0, 0, 1, 0]]),
        ("select_and_gather_add", window_attrs(select_prim="le"), [[0, 0, 0], [0, 1, 0]]),
    ],
)
def test_windows_with_ties(op, attrs, expected):
    n = 2 if op.startswith("select") else 1
    document = one_node_document(make_case(op, attrs, [TensorType("f64", X.shape)] * n))
    found = tidu_cli.kinks(document, {f"x{k}": X for k in range(n)})
    due = np.argwhere(expected).tolist()
    assert [(row["elements"], row["index"]) for row in found] == ([(len(due), due[0])] if due else [])


def test_the_first_of_ties_in_a_window_has_the_derivative():
    document = one_node_document(make_case("reduce_window_max", window_attrs(), [TensorType("f64", (2, 2))]))
    (row,) = tidu_cli.kinks(document, {"x0": [[1.0, 2.0], [2.0, 2.0]]})
    assert (row["tidu"], row["index"]) == ("the first of them", [0, 0])
    (output,) = document.head.outputs
    back = tidu_cli.evaluate(tidu_cli.vjp(document, "x0"), {"x0": [[1.0, 2.0], [2.0, 2.0]], f"{output.key}@-1": [[1.0]]})
    assert back["x0@-1"].tolist() == [[0, 1], [0, 0]]


def test_scattered_values_that_tie():
    numbers = {"update_window_dims": [], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
    types = [TensorType("f64", (3,)), TensorType("i64", (4, 1)), TensorType("f64", (4,))]
    document = one_node_document(make_case("scatter-max", {"dimension_numbers": numbers, "mode": "fill"}, types))
    at = {"x0": [1.0, 2.0, 3.0], "x1": [[1], [0], [1], [9]], "x2": [2.0, 5.0, 2.0, 3.0]}
    (row,) = tidu_cli.kinks(document, at)
    assert (row["index"], row["elements"], row["tidu"]) == ([1], 1, "equal shares")
    (output,) = document.head.outputs
    shares = tidu_cli.evaluate(tidu_cli.vjp(document, "x2"), {**at, f"{output.key}@-1": [0.0, 1.0, 0.0]})["x2@-1"]
    assert np.allclose(shares, [1 / 3, 0, 1 / 3, 0])
    assert tidu_cli.kinks(document, {**at, "x2": [4.0, 5.0, 2.0, 3.0]}) == []


def test_equal_eigenvalues():
    (row,) = rows(lambda x: np.linalg.eigh(x)[1], {"x": np.eye(2)}, x="f64[2,2]")
    assert row["at"] == "eigenvalues 0 and 1 are equal, 1" and row["tidu"].startswith("eigenvectors have no derivative")
    assert row["jax"] == row["pytorch"] == "NaN of vectors"


@pytest.mark.parametrize("element", [NAN, INF])
def test_singular_values_of_what_is_not_finite_are_not_0(element):
    batch = np.array([[[1.0, element], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
    assert rows(lambda x: np.linalg.pinv(x), {"x": batch[0]}, x="f64[2,2]") == []
    (row,) = rows(lambda x: np.linalg.pinv(x), {"x": batch}, x="f64[2,2,2]")
    assert row["at"] == "singular value 1 of matrix [1] is 0"


def loop(x):
    final, seen = tidu_cli.scan(lambda c, u: (np.maximum(c, u) * 1.0, np.abs(c - 3.0)), x, np.arange(6.0), 6)
    return final + seen.sum()


def test_loops_say_which_step():
    found = [(row["node"].rpartition("(")[2], row["step"], row["times"]) for row in rows(loop, {"x": 1.0}, x="f64[]")]
    assert found == [("max)", [1], 1), ("abs)", [4], 1)]
    doubled = rows(lambda x: tidu_cli.while_loop(lambda c: c < 10.0, lambda c: np.maximum(c, 4.0) + 1.0, x), {"x": 4.0}, x="f64[]")
    assert [(row["node"], row["step"]) for row in doubled] == [
        ("graph 'f', node 0 (while), body, node 1 (max)", [0]),
        ("graph 'f', node 0 (while), condition, node 1 (lt)", [6]),
    ]


def test_equations_are_looked_into_at_their_solutions():
    (row,) = rows(lambda x: tidu_cli.root(lambda y: y + np.maximum(y, 0.0) - x, x + 1.0), {"x": 0.0}, x="f64[]")
    assert (row["node"], row["times"]) == ("graph 'f', node 2 (root), f, node 1 (max)", 1)
    (row,) = rows(lambda a: tidu_cli.linear_solve(lambda x: np.maximum(a, 1.0) * x, a + 2.0), {"a": 1.0}, a="f64[]")
    assert row["node"] == "graph 'f', node 2 (linear_solve), matvec, node 1 (max)"


def test_the_last_step_of_a_reversed_loop_is_met_first():
    back = tidu_cli.trace(
        lambda x: tidu_cli.scan(lambda c, u: (np.abs(c) * u, None), x, np.array([0.0, 1.0, 0.0, 1.0]), 4, reverse=True)[0],
        x="f64[]",
    )
    (row,) = tidu_cli.kinks(back, {"x": 2.0})
    assert row["step"] == [1] and row["times"] == 2


def test_branches_that_are_taken():
    f = lambda x: tidu_cli.cond(x > 1.0, lambda x: np.sqrt(x), lambda x: np.abs(x), x)  # noqa: E731
    (row,) = rows(f, {"x": 0.0}, x="f64[]")
    assert row["node"].endswith("(cond), branch 0, node 0 (abs)")
    g = lambda k, x: tidu_cli.switch(k, [np.sqrt, np.abs], x)  # noqa: E731
    for index, branch in ((-1, 0), (0, 0), (1, 1), (5, 1)):  # clamped, as by evaluation
        (row,) = rows(g, {"k": index, "x": 0.0}, k="i32[]", x="f64[]")
        assert f"branch {branch}, " in row["node"]


def test_a_tie_with_the_first_element_that_is_left_out():
    document = one_node_document(make_case("top_k", {"k": 1, "axis": 0}, [TensorType("f64", (3,))]))
    (row,) = tidu_cli.kinks(document, {"x0": [1.0, 3.0, 3.0]})
    assert row["at"] == "elements tie" and tidu_cli.kinks(document, {"x0": [1.0, 1.0, 3.0]}) == []


def test_integers_and_what_no_output_needs_are_not_listed():
    assert rows(lambda k, x: np.maximum(k, 2) * x, {"k": 2, "x": 1.0}, k="i64[]", x="f64[]") == []
    document = tidu_cli.load(ROOT / "samples/kinks.json")
    (row,) = tidu_cli.kinks(document, {"x": np.zeros(5)}, output="magnitude")
    assert row["node"] == "graph 'kinks', node 3 (abs)" and row["elements"] == 5


def test_a_derivative_and_custom_operations_are_looked_into():
    f = tidu_cli.load(ROOT / "samples/kinks.json")
    document = tidu_cli.vjp(f, "x", output="relu")
    nodes = [row["node"] for row in tidu_cli.kinks(document, {"x": np.zeros(5), "relu@-1": np.ones(5)})]
    assert any("(max)" in node for node in nodes)
    with pytest.raises(EvaluationError, match="missing inputs: x"):
        tidu_cli.kinks(f, {})


def test_outputs_on_stdout_are_as_without():
    given = ("eval", ROOT / "samples/kinks.json", "--set", "x=[-2,-1,0,1,2]")
    listed = invoke(*given, "--kinks")
    assert listed.exit_code == 0 and listed.stdout_bytes == succeed(*given) and len(listed.stderr.splitlines()) == 5
    for more in (["--stream"], ["--batch", "x=0"], ["--move", "x=[1,1,1,1,1]"]):
        refused = invoke(*given, "--kinks", *more)
        assert refused.exit_code == 2 and "--kinks is of one point" in refused.stderr


def test_the_page_is_current():
    assert (ROOT / "docs" / "kinks.md").read_text() == to_markdown(), "make generated writes it"

"""Strong zeros: with them the VJP is the adjoint of the JVP wherever the JVP is finite, and elsewhere nothing changes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as td
from tests.graphs.templates import apply, make_case, type_of
from tests.tiers import examples, thin
from tests.transforms.large.test_bulk import large_from
from tidu_cli.formats.write import format_document
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.types import INEXACT
from tidu_cli.lax.arrays.structural import numpy_dtype

INF, NAN = math.inf, math.nan

SINGULAR = {
    "sqrt(x)": (0.0,),
    "log(x)": (0.0,),
    "1 / x": (0.0,),
    "w / x": (0.0,),
    "x ** 0.5": (0.0,),
    "x ** w": (0.0,),
    "arcsin(x)": (1.0, -1.0),
    "arccos(x)": (1.0, -1.0),
    "arctanh(x)": (1.0, -1.0),
    "arccosh(x)": (1.0,),
    "cbrt(x)": (0.0,),
    "sqrt(log1p(x))": (0.0, -1.0),
    "log(sqrt(x) + x * w)": (0.0,),
    "exp(w / x) * sqrt(x)": (0.0,),
}
"""Formulas in x and w, with the points x where a slope is not finite."""

BRANCHES = (
    "where({0}, x * w, {1})",
    "where({0}, x, {1} * sin(w)) ** 2",
    "where({0}, w, exp({1})) / (2 + x)",
    "sum(where({0}, w * w, {1}) * w)",
)


def document(branch: str, formula: str, points: tuple[float, ...]) -> td.Document:
    """A function of x and w that takes another branch where the formula is singular."""
    guard = " | ".join(f"(x == {p})" for p in points)
    return td.formula(branch.format(f"({guard})", formula), x="f64[4]", w="f64[4]")


def values(document: td.Document, **given: object) -> list[np.ndarray]:
    return [np.asarray(v) for v in td.evaluate(document, given).values()]


def products(document: td.Document, at: dict[str, object], ct: np.ndarray, **options: bool) -> list[np.ndarray]:
    return values(td.vjp(document, ["x", "w"], **options), **at, **{"y@-1": ct})


points = st.sampled_from([(b, f) for b in BRANCHES for f in SINGULAR])
seeds = st.integers(0, 2**32 - 1)


def example(case: tuple[str, str], seed: int) -> tuple[td.Document, dict[str, object], np.random.Generator, np.ndarray]:
    """A document, values with singular points among them, what draws more, and a cotangent with zeros of both signs."""
    branch, formula = case
    rng = np.random.default_rng(seed)
    doc = document(branch, formula, SINGULAR[formula])
    inside = rng.uniform(0.2, 0.8, 4) + ("arccosh" in formula)
    at = {"x": np.where(rng.random(4) < 0.6, rng.choice(SINGULAR[formula], 4), inside), "w": rng.uniform(0.5, 2, 4)}
    (output,) = doc.head.outputs
    shape = output.type.shape
    ct = np.where(rng.random(shape) < 0.3, rng.choice([0.0, -0.0], shape), rng.normal(size=shape))
    return doc, at, rng, ct


@settings(max_examples=examples(80))
@given(points, seeds)
def test_the_vjp_is_the_adjoint_of_the_jvp_where_that_is_finite(case: tuple[str, str], seed: int) -> None:
    doc, at, rng, ct = example(case, seed)
    t = {"x@1": rng.normal(size=4), "w@1": rng.normal(size=4)}
    (moved,) = values(td.jvp(doc, ["x", "w"]), **at, **t)
    assert np.isfinite(moved).all()
    pulled = products(doc, at, ct, strong_zeros=True)
    due = float(np.sum(moved * ct))
    assert abs(sum(float(np.sum(p * v)) for p, v in zip(pulled, t.values(), strict=True)) - due) <= 1e-12 * (
        1 + np.abs(moved).sum()
    )


@settings(max_examples=examples(40))
@given(points)
def test_large_graphs_have_them_too(case: tuple[str, str]) -> None:
    branch, formula = case
    linear = td.linearize(document(branch, formula, SINGULAR[formula]), ["x", "w"])
    with large_from(float("inf")):
        due = format_document(td.transpose(linear, strong_zeros=True), "json", types=True)
    with large_from(0):
        assert format_document(td.transpose(linear, strong_zeros=True), "json", types=True) == due


@settings(max_examples=examples(80))
@given(points, seeds)
def test_what_is_no_nan_keeps_its_bits(case: tuple[str, str], seed: int) -> None:
    doc, at, _, ct = example(case, seed)
    weak, strong = products(doc, at, ct), products(doc, at, ct, strong_zeros=True)
    for a, b in zip(weak, strong, strict=True):
        kept = ~np.isnan(a)
        assert a[kept].tobytes() == b[kept].tobytes()


def test_a_jacobian_with_them_is_by_rows_also_where_columns_are_cheaper() -> None:
    function = td.formula("where(x > 0, log(x) * ones(2), 0)", x="f64[]")
    (jacobian,) = values(td.jacobian(function, "x", strong_zeros=True), x=0.0)
    assert jacobian.tolist() == [0, 0]
    by_rows, by_default = td.jacobian(function, "x", reverse=True), td.jacobian(function, "x")
    assert format_document(by_rows, "json") != format_document(by_default, "json")


def test_without_them_a_branch_not_taken_is_nan() -> None:
    doc = document(BRANCHES[0], "sqrt(x)", (0.0,))
    at = {"x": np.zeros(4), "w": np.ones(4)}
    assert np.isnan(products(doc, at, np.ones(4))[0]).all()
    assert products(doc, at, np.ones(4), strong_zeros=True)[0].tolist() == [1.0] * 4


@pytest.mark.parametrize("formula", thin(SINGULAR, 4))
def test_second_derivatives_agree_with_forward_mode(formula: str) -> None:
    singular = SINGULAR[formula]
    doc = td.formula(BRANCHES[0].format(f"x == {singular[0]}", formula), x="f64[]", w="f64[]")
    at, keys = {"x": singular[0], "w": 1.25}, ["x", "w"]
    hessian = values(td.hessian(doc, keys, strong_zeros=True), **at)
    assert hessian == [0.0, 1.0, 1.0, 0.0]  # of x w
    twice = td.linearize(td.vjp(doc, keys, strong_zeros=True), keys)
    again = td.materialize(td.transpose(twice, strong_zeros=True))  # reverse over reverse
    seeds = {str(i.key): 1.0 for i in again.head.inputs if str(i.key) not in at}
    assert np.isfinite(values(again, **at, **seeds)).all()


def loops(x: np.ndarray, w: np.ndarray) -> object:
    def step(carry: object, s: object) -> tuple[object, object]:
        root = np.where(s > 0, np.sqrt(s), w * s)
        return carry + td.cond(s > 0.5, lambda s: np.where(s > 1, np.log(s - 1), s), lambda s: s * s, s) * root, carry

    last, _ = td.scan(step, w, x)
    return last


def test_they_reach_graphs_within_nodes() -> None:
    doc = td.trace(loops, "f64[3]", "f64[]")
    at = {"x": np.array([0.0, 1.0, 0.25]), "w": 1.5}
    t = {"x@1": np.array([0.3, -0.7, 0.2]), "w@1": 0.4}
    (moved,) = values(td.jvp(doc, ["x", "w"]), **at, **t)
    gradient = td.grad(doc, ["x", "w"], strong_zeros=True)
    assert np.isnan(values(td.grad(doc, ["x", "w"]), **at)[0]).any()
    pulled = values(gradient, **at)
    assert math.isclose(float(pulled[0] @ t["x@1"] + pulled[1] * t["w@1"]), float(moved), rel_tol=1e-14)
    assert "strong_mul" in {c.op for c in cases_within(gradient.cases.cases)}


@pytest.mark.parametrize("op", ["strong_mul", "strong_div"])
def test_kernels_on_zeros_and_infinities(op: str) -> None:
    x, y = (np.array(v) for v in ([0.0, INF, -INF, NAN, -3.0, -0.0, 0.0, INF], [INF, 0.0, -0.0, 0.0, 0.0, 2.0, 0.0, NAN]))
    strong = y if op == "strong_mul" else x
    for dtype in sorted(INEXACT):
        operands = [np.asarray(v).astype(numpy_dtype(np, dtype)) for v in (x, y)]
        with np.errstate(all="ignore"):
            plain = apply(make_case(op.removeprefix("strong_"), {}, map(type_of, operands)), operands)[0]
            array = apply(make_case(op, {}, map(type_of, operands)), operands)[0]
        masked = (strong == 0) & (plain != plain)
        assert array.dtype == plain.dtype and masked.any() and np.isnan(plain).sum() > np.isnan(array).sum()
        assert (array[masked] == 0).all()
        assert array[~masked].tobytes() == plain[~masked].tobytes()


ROOT = {
    "inputs": [{"key": "x", "type": "f64[]"}],
    "outputs": [{"key": "y", "type": "f64[]"}],
    "forward": {"inputs": [{"key": "x"}], "nodes": [{"op": "sqrt", "inputs": [0]}], "outputs": [{"key": "y", "value": 1}]},
    "backward": {
        "inputs": [{"key": "x"}, {"key": {"cotangent": {"of": "y", "pass": 1}}}],
        "nodes": [{"op": "rsqrt", "inputs": [0]}, {"op": "mul", "inputs": [1, 2]}],
        "outputs": [{"key": {"cotangent": {"of": "x", "pass": 1}}, "value": 3}],
    },
}
"""The square root, with twice its derivative."""


def test_they_reach_operations_of_the_document(tmp_path: Path) -> None:
    nodes = [{"op": "a_root", "inputs": [0]}, {"op": "gt", "inputs": [0, 1]}, {"op": "select_n", "inputs": [2, 0, 1]}]
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": nodes, "outputs": [{"key": "y", "value": 3}]}
    path = tmp_path / "f.json"
    path.write_text(json.dumps({"tidu": 1, "ops": {"a_root": ROOT}, "graphs": [graph]}))
    doc = td.load(path)
    assert [math.isnan(values(td.grad(doc, "x"), x=0.0)[0]), *values(td.grad(doc, "x", strong_zeros=True), x=0.0)] == [True, 1.0]

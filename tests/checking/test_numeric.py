"""numeric: wrong rules are caught by the law that they break, and no verdict is given where difference quotients say nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from tests.checking.sets import SAMPLES, applied, changed, including, sample
from tests.graphs.sketch import function, op
from tests.tiers import few
from tidu_cli.checking.numeric.exact_laws import linear_verdicts
from tidu_cli.checking.numeric.laws import Verdict, check_numerically, check_primitive_numerically
from tidu_cli.checking.numeric.trials import Leaf, example_cases
from tidu_cli.checking.report import _where, check_document, check_primitive
from tidu_cli.errors import MissingRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case, Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INEXACT, leaves
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules import families
from tidu_cli.rules.catalogue import Example
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.families import binary, linear_jvp, linear_transpose, unary
from tidu_cli.rules.terms import Term
from tidu_cli.rules.terms import op as emit
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.linearize import linearize

LAWS = ["jvp", "adjoint", "linear", "second", "symmetry"]
cos, sin = emit("cos"), emit("sin")


def broken(verdicts: Sequence[Verdict]) -> set[str]:
    assert [v.law for v in verdicts if v.law != "integers"] == LAWS  # which is judged where there are integers
    return {v.law for v in verdicts if not v.ok}


def check(name: str, primitives: PrimitiveSet, *types: str, **rest: object) -> set[str]:
    return broken(check_numerically(applied(name, *(types or ("f64[3]",)), primitives=primitives), primitives, **rest))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_samples_are_right(path: Path) -> None:
    document = sample(path.stem)
    verdicts = check_numerically(document, vocabulary(document.cases))
    assert broken(verdicts) == set()
    # The constants of samples/constants.json are not finite.
    silent = set(LAWS) if path.stem == "constants" else set()
    assert {v.law for v in verdicts if v.error is None} == silent


def test_a_wrong_factor_in_a_jvp() -> None:
    def off(factor: float) -> PrimitiveSet:
        wrong = unary("sin", INEXACT, tangent=lambda t, x, y: cos(x) * factor * t, formula="", summary="")
        return changed("sin", jvp=wrong.rules.jvp)

    assert check("sin", off(1.0)) == set()
    assert check("sin", off(1.000001)) == {"jvp"}  # its own derivative is wrong by as much, and right as that of the JVP
    assert check("sin", off(-1.0), "c128[2]") == {"jvp"}


def test_a_wrong_second_derivative() -> None:
    """The derivative is right in value, but what it is made of has a wrong derivative."""
    wrong = unary("wrong", INEXACT, tangent=lambda t, x, y: -sin(x) * 1.5 * t, kernel=lambda np, *_: np.cos, formula="", summary="")
    slope = emit("wrong")
    bent = unary("bent", INEXACT, tangent=lambda t, x, y: slope(x) * t, kernel=lambda np, *_: np.sin, formula="", summary="")
    assert check("bent", including(wrong, bent)) == {"second"}


def test_an_asymmetric_second_derivative() -> None:
    """f(x, y) = x y², of which only the derivative by x has a wrong derivative."""
    wrong = unary("wrong", INEXACT, tangent=lambda t, x, y: x * 3.0 * t, kernel=lambda np, *_: np.square, formula="", summary="")
    squared = emit("wrong")
    f = binary(
        "f",
        INEXACT,
        tangents=(lambda t, x, y, z: squared(y) * t, lambda t, x, y, z: x * y * 2.0 * t),
        kernel=lambda *_: lambda x, y: x * y * y,
        formula="",
        summary="",
    )
    assert check("f", including(wrong, f), "f64[3]", "f64[3]") == {"second", "symmetry"}


def test_a_wrong_transpose() -> None:
    wrong = changed("neg", transpose=linear_transpose(lambda attrs, ct, type_: ct))
    assert check("neg", BUILTIN) == set()
    assert check("neg", wrong) == {"adjoint"}


def test_a_transpose_without_conjugate() -> None:
    # Right for real numbers, and for complex ones the transpose that is no adjoint.
    def transpose(node):
        active = 0 if node.active[0] else 1
        made = node.operands[1 - active] * node.cotangents[0]
        return [made, None] if active == 0 else [None, made]

    wrong = changed("mul", transpose=transpose)
    assert check("mul", wrong, "f64[3]", "f64[3]") == set()
    assert check("mul", wrong, "c128[3]", "c128[3]") == {"adjoint"}


def test_a_linear_node_that_is_not_linear() -> None:
    bend = unary(
        "bend",
        INEXACT,
        tangent=None,
        kernel=lambda *_: lambda x: x + x * x / 100,
        transpose=linear_transpose(lambda attrs, ct, type_: ct),
        formula="",
        summary="",
    )
    primitives = including(families.changed(bend, jvp=linear_jvp("bend")))
    assert {"jvp", "adjoint", "linear"} <= check("bend", primitives)


def verdicts_of(document: Document, **rest: object) -> dict[str, float | None]:
    return {v.law: v.error for v in check_numerically(document, BUILTIN, **rest)}


def nested(function: str) -> Document:
    """stop_gradient(x) * x, or what else is made of x, within the body of a loop of two steps."""
    body = {
        "inputs": [{"key": "x", "type": "f64[]"}],
        "nodes": [{"op": function, "inputs": [0]}, {"op": "mul", "inputs": [1, 0]}],
        "outputs": [{"key": "y", "value": 2}],
    }
    attrs = {"length": 2, "num_consts": 0, "num_carry": 1, "reverse": False, "body": body}
    node = {"op": "scan", "inputs": [0], "attrs": attrs}
    outputs = [{"key": "y", "value": 1}]
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [node], "outputs": outputs}
    return parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "nested")[0]


def test_what_stop_gradient_passes_on_is_held_still() -> None:
    """Its derivative is by intention not that of the values, but that of the function with it fixed."""
    stop, x = op("stop_gradient"), {Key("x"): np.array(1.5)}
    for f in (lambda x: stop(x) * x, lambda x: stop(x * stop(x)) * x * x, lambda x: op("sin")(stop(x)) + op("exp")(x)):
        verdicts = check_numerically(function("f", {"x": "f64[]"}, f), BUILTIN, given=x)
        assert broken(verdicts) == set() and None not in {v.error for v in verdicts}

    def tangent(t: Term, x: Term, y: Term) -> Term:
        return cos(x) * 2.0 * t

    wrong = changed("sin", jvp=unary("sin", INEXACT, tangent=tangent, formula="", summary="").rules.jvp)
    document = function("f", {"x": "f64[]"}, lambda x: op("sin")(x) * stop(x))
    assert broken(check_numerically(document, wrong, given=x)) == {"jvp"}


def test_it_is_held_within_a_loop_too() -> None:
    x = {Key("x"): np.array(0.5)}
    verdicts = check_numerically(nested("stop_gradient"), BUILTIN, given=x)
    assert broken(verdicts) == set() and None not in {v.error for v in verdicts}
    wrong = changed("mul", jvp=BUILTIN["add"].rules.jvp)
    assert "jvp" in broken(check_numerically(nested("stop_gradient"), wrong, given=x))
    assert None not in verdicts_of(nested("sin"), given=x).values()


def test_a_vjp_that_is_nan_where_the_jvp_is_finite_fails() -> None:
    gt, select_n, sqrt = op("gt"), op("select_n"), op("sqrt")
    document = function("f", {"x": "f64[3]"}, lambda x: select_n(gt(x, x - x), x, sqrt(x)))
    at_zero = {Key("x"): np.array([0.0, 1.0, 2.0])}
    verdicts = {v.law: v for v in check_numerically(document, BUILTIN, given=at_zero)}
    assert verdicts["adjoint"].error == math.inf and not verdicts["adjoint"].ok
    report = check_document(document, BUILTIN, ["numeric"], given=at_zero)
    (failure,) = report.failures
    assert failure.startswith("numeric: adjoint has relative error inf, above 1e-11; the VJP is NaN where ")
    assert report.to_data()["numeric"]["adjoint"]["error"] == "Infinity"
    assert broken(check_numerically(document, BUILTIN, given={Key("x"): np.array([0.5, 1.0, 2.0])})) == set()
    # Where the JVP is not finite either, there is no derivative to be right.
    assert verdicts_of(applied("sqrt", "f64[]"), given={Key("x0"): np.array(0.0)})["adjoint"] is None


def test_no_verdict_at_a_jump() -> None:
    verdicts = verdicts_of(applied("floor", "f64[]"), given={Key("x0"): np.array(2.0)})
    assert verdicts["jvp"] is None
    assert verdicts_of(applied("floor", "f64[]"), given={Key("x0"): np.array(2.5)})["jvp"] == 0


def test_no_verdict_where_there_is_no_finite_value() -> None:
    verdicts = verdicts_of(applied("log", "f64[]"), given={Key("x0"): np.array(-1.0)})
    assert set(verdicts.values()) == {None}


def test_nothing_to_differentiate() -> None:
    assert check_numerically(applied("and", "i32[]", "i32[]"), BUILTIN) == []
    assert check_numerically(applied("lt", "f64[]", "f64[]"), BUILTIN) == []
    assert check_numerically(applied("sin", "f64[]"), BUILTIN, fixed={Key("x0")}) == []


def test_given_inputs_decide_where() -> None:
    """A rule that is wrong far out only is found there only."""
    gt, select_n = emit("gt"), emit("select_n")

    def tangent(t: Term, x: Term, y: Term) -> Term:
        return select_n(gt(x, 10.0), cos(x), 0.0) * t

    primitives = changed("sin", jvp=unary("sin", INEXACT, tangent=tangent, formula="", summary="").rules.jvp)
    assert check("sin", primitives, "f64[]") == set()
    assert check("sin", primitives, "f64[]", given={Key("x0"): np.array(11.0)}) == {"jvp"}


def test_the_seed_decides_where_and_the_same_seed_decides_the_same() -> None:
    document = sample("rosenbrock")
    assert verdicts_of(document, seed=1) == verdicts_of(document, seed=1) != verdicts_of(document, seed=2)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f64", 1e-8), ("f32", 2e-2), ("c64", 2e-2), ("c128", 1e-8)])
def test_the_tolerance_is_that_of_the_least_precise_value(dtype: str, tolerance: float) -> None:
    verdicts = check_numerically(applied("convert_element_type", f"{dtype}[]", new_dtype="c128"), BUILTIN)
    assert {v.law: v.tolerance for v in verdicts}["jvp"] == tolerance
    assert broken(verdicts) == set()


def test_a_primitive_is_tried_in_the_dtypes_asked_for() -> None:
    conjugate_lost = changed("mul", examples=BUILTIN["mul"].catalogue.examples[:1], transpose=lambda node: (
        [node.operands[1] * node.cotangents[0], None] if node.active[0] else [None, node.operands[0] * node.cotangents[0]]
    ))  # fmt: skip
    mul = conjugate_lost["mul"]
    assert broken(check_primitive_numerically(mul, conjugate_lost, ["f64"])) == set()
    assert broken(check_primitive_numerically(mul, conjugate_lost, ["c128"])) == {"adjoint"}
    assert broken(check_primitive_numerically(mul, conjugate_lost, ["f64", "c128"])) == {"adjoint"}
    assert check_primitive_numerically(BUILTIN["erf"], BUILTIN, ["c128"]) == []


def double_precision(primitives: PrimitiveSet, primitive: Primitive) -> list[tuple[Example, Case]]:
    """Examples in f64, c128 and integers alone: of each kind one in `make check`."""
    kinds: dict[str, list[tuple[Example, Case]]] = {"f64": [], "c128": [], "": []}
    for example, case in example_cases(primitives, primitive):
        used = {leaf.dtype for t in (*case.operands, *case.results) for _, leaf in leaves(t)} & {*INEXACT}
        if used <= kinds.keys():
            kinds["c128" if "c128" in used else "f64" if used else ""].append((example, case))
    return [pair for kind in kinds.values() for pair in few(kind, 1)]


@pytest.mark.parametrize("name", [p.name for p in BUILTIN])
def test_every_primitive_in_double_precision(name: str) -> None:
    primitive = BUILTIN[name]
    with patch("tidu_cli.checking.numeric.trials.example_cases", double_precision):
        verdicts = check_primitive_numerically(primitive, BUILTIN, ["f64", "c128"])
    assert all(v.ok and v.tolerance <= 1e-8 for v in verdicts)
    differentiable = any(d in INEXACT for d in primitive.domain.dtypes) and name not in NO_TANGENT
    silent = {v.law for v in verdicts if v.error is None}
    assert bool(verdicts) == differentiable
    assert silent == (set() if primitive.rules.faithful or name == "stop_gradient" else {"jvp", "second"})
    assert not any(v.error is not None and math.isnan(v.error) for v in verdicts)


NO_TANGENT = {
    *("eq", "ne", "lt", "le", "gt", "ge", "is_finite", "nextafter", "constant", "iota", "size", "argmax", "argmin", "schur"),
    "bitcast_convert_type",
}
"""Primitives of floats whose results, or operands, carry no tangent."""


def affine(constant: float) -> Document:
    """x@1 + c in a linear graph, as readers refuse it where c is not zero."""
    from tidu_cli.formats import read

    tangent, role = {"tangent": {"of": "x", "pass": 1}}, {"linearized": {"active_mask": [True, False]}}
    literal = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[]", "data": [constant]}}}
    inputs = [{"key": "x", "type": "f64[]"}]
    outputs = [{"key": {"tangent": {"of": "y", "pass": 1}}, "value": 1}]
    linear = {"name": "f@1", "linear": {"pass": 1}, "inputs": [{"key": tangent, "type": "f64[]"}], "outputs": outputs}
    linear["nodes"] = [{"op": "add", "inputs": [0, [0, 1]], "role": role}]
    graphs = [{"name": "f", "inputs": inputs, "nodes": [literal], "outputs": [{"key": "y", "value": 0}]}, linear]
    with patch.object(read, "check_zeros"):
        return parse_document(json.dumps({"tidu": 1, "graphs": graphs}).encode(), "affine")[0]


@pytest.mark.parametrize(("constant", "wrong"), [(0, set()), (-0.0, set()), (5, {"zero", "additive"}), (1e-300, {"zero"})])
def test_linear_graphs_are_tried_at_zero(constant: float, wrong: set[str]) -> None:
    document = affine(constant)
    assert {v.law for v in linear_verdicts(document, BUILTIN) if not v.ok} == wrong
    report = check_document(document, BUILTIN, ["numeric"])
    assert [f"numeric: {law} has" in text for law, text in zip(sorted(wrong, reverse=True), report.failures, strict=True)] == [
        True for _ in wrong
    ]


def test_a_primitive_that_says_it_is_linear_and_is_not() -> None:
    """Which readers believe: x + 1, with the rules of the identity."""
    shifted = unary(
        "shifted",
        INEXACT,
        tangent=None,
        kernel=lambda np, attrs, operands, results: lambda x: x + 1,
        transpose=linear_transpose(lambda attrs, ct, type_: ct),
        formula="",
        summary="",
    )
    primitives = including(families.changed(shifted, jvp=linear_jvp("shifted")))
    document = linearize(applied("shifted", "f64[]", primitives=primitives), [Key("x0")], primitives=primitives)
    read, _ = parse_document(format_document(document, "json"), "shifted", primitives)
    assert {v.law for v in linear_verdicts(read, primitives) if not v.ok} == {"zero", "additive"}


def at_datetime(unit: str, since: str, times: str) -> Document:
    """How many units since a date, times v, or what else is made of that."""
    literal = {"value": {"type": "datetime[ms][]", "data": [since]}}
    nodes = [
        {"op": "constant", "inputs": [], "attrs": literal},
        {"op": "sub", "inputs": [0, 2]},
        {"op": "convert_element_type", "inputs": [3], "attrs": {"new_dtype": f"duration[{unit}]"}},
        {"op": "convert_element_type", "inputs": [4], "attrs": {"new_dtype": "f64"}},
        {"op": times, "inputs": [5, 1]},
    ]
    inputs = [{"key": "t", "type": "datetime[ms][]"}, {"key": "v", "type": "f64[]"}]
    graph = {"name": "f", "inputs": inputs, "nodes": nodes, "outputs": [{"key": "y", "value": 6}]}
    return parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "hours")[0]


@pytest.mark.parametrize("since", ["1970-01-01", "2026-01-31T12:00", "1800-01-01"])
@pytest.mark.parametrize("unit", ["h", "s", "D"])
@pytest.mark.parametrize("times", ["mul", "div", "add", "atan2"])
def test_no_alarm_where_rounding_hides_the_difference(since: str, unit: str, times: str) -> None:
    """Of a duration of decades, steps of less than a millisecond leave few digits."""
    for seed in few(range(3), 1):
        verdicts = check_numerically(at_datetime(unit, since, times), BUILTIN, seed=seed)
        assert [v for v in verdicts if not v.ok] == []
        assert any(v.error is not None for v in verdicts if v.law in ("jvp", "integers"))


@pytest.mark.parametrize("factor", [2.0, 1 + 1e-6, 1 + 1e-7])
def test_what_is_wrong_is_so_by_all_steps(factor: float) -> None:
    wrong = unary("sin", INEXACT, tangent=lambda t, x, y: cos(x) * factor * t, formula="", summary="")
    assert check("sin", changed("sin", jvp=wrong.rules.jvp)) == {"jvp"}


def test_places_of_times_are_said_as_times() -> None:
    """In messages: dates, and not the format of a number."""
    at = {Leaf(Key("s"), ("time",)): np.array(5000, "datetime64[ms]"), Leaf(Key("d")): np.array([0, 1], "datetime64[ns]")}
    said = _where(Verdict("jvp", 1.0, 1e-8, at=at))
    assert said == ", at s.time = 1970-01-01T00:00:05.000, d = [1970-01-01T00:00:00.000000000, 1970-01-01T00:00:00.000000001]"


def test_what_has_no_derivative_is_said() -> None:
    told = {p.name: check_primitive(p, BUILTIN, ["closure"], dtypes=[]).lines() for p in BUILTIN if p.rules.inert}
    assert {"schur", "nextafter", "polygamma"} == set(told)
    for name, lines in told.items():
        assert any(f"note: {name} has no derivative in input" in line and not line.endswith(": ") for line in lines)
        wrt = [Key(f"x{BUILTIN[name].rules.inert[0]}")]
        with pytest.raises(MissingRuleError, match=f"{name} has no derivative.*: {BUILTIN[name].rules.inert_reason}"):
            linearize(applied(name, *["f64[2,2]" if name == "schur" else "f64[]"] * BUILTIN[name].domain.arity), wrt)

"""Derivatives of functions of Python where they are called, by JAX's conventions, which tests/jax compares them with."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import pickle
import re

import numpy as np
import pytest

import tidu
from tidu_cli.adapters.numpy import derived
from tidu_cli.errors import ArgumentError, TiduError

X = np.array([0.3, -1.2, 2.0])


def loss(params, x, n=2):
    return np.sum(np.tanh(params["w"] @ x + params["b"]) ** n)


PARAMS = {"w": np.arange(6.0).reshape(2, 3) / 10, "b": np.array([0.1, -0.2])}


def test_a_gradient_is_built_as_the_argument_and_that_of_the_document():
    gradient = tidu.grad(loss)(PARAMS, X)
    document = tidu.grad(tidu.trace(loss, PARAMS, X), "params")
    due = document({"params": PARAMS, "x": X})
    assert {f"params.{name}@-1": value.tolist() for name, value in gradient.items()} == {k: v.tolist() for k, v in due.items()}
    both = tidu.grad(loss, wrt=["x", "params"])(PARAMS, x=X)
    assert isinstance(both, tuple) and both[1]["b"].tolist() == gradient["b"].tolist()
    assert both[0].tolist() == tidu.grad(loss, 1)(PARAMS, X).tolist() == tidu.grad(loss, wrt=-1)(PARAMS, X).tolist()
    value, again = tidu.value_and_grad(loss)(PARAMS, X)
    assert value == loss(PARAMS, X) and again["w"].tolist() == gradient["w"].tolist()


def test_derivatives_nest_and_close_over_what_is_traced():
    third = tidu.grad(tidu.grad(tidu.grad(np.sin)))
    assert third(0.5) == pytest.approx(-np.cos(0.5))
    assert tidu.grad(lambda x: x * tidu.grad(lambda y: x * y**2)(3.0))(2.0) == pytest.approx(24.0)
    assert tidu.grad(lambda x: tidu.vjp(lambda y: x * y**2)(x)[1](1.0)[0])(2.0) == pytest.approx(8.0)
    by_forward = tidu.jacobian(tidu.grad(lambda x: np.sum(x**4)))(X)
    np.testing.assert_allclose(by_forward, tidu.hessian(lambda x: np.sum(x**4))(X))
    assert tidu.trace(lambda x: tidu.grad(np.sin)(x), "f64[]")(0.0)["y"] == 1

    def descent(w):
        def step(c, t):
            return c - 0.1 * tidu.grad(lambda c: np.sum((c * t - w) ** 2))(c), None

        return np.sum(tidu.scan(step, w * 0.0, np.arange(1.0, 4.0))[0])

    h = 1e-6
    for k in range(3):
        e = np.eye(3)[k]
        slope = (descent(X + h * e) - descent(X - h * e)) / (2 * h)
        assert tidu.grad(descent)(X)[k] == pytest.approx(slope, rel=1e-6)


def test_products_are_those_of_the_matrices():
    def f(x, y):
        return {"a": np.sin(x) * y, "b": (np.sum(x) * y,)}

    v, dy = np.array([1.0, 0.5, -2.0]), 0.7
    jacobian = tidu.jacobian(f, wrt=(0, 1))(X, 2.0)
    value, tangent = tidu.jvp(f)((X, 2.0), (v, dy))
    np.testing.assert_allclose(tangent["a"], jacobian["a"][0] @ v + jacobian["a"][1] * dy)
    np.testing.assert_allclose(tangent["b"][0], jacobian["b"][0][0] @ v + jacobian["b"][0][1] * dy)
    again, pullback = tidu.vjp(f)(X, 2.0)
    np.testing.assert_allclose(value["a"], again["a"])
    by_x, by_y = pullback({"a": v, "b": (2.0,)})
    np.testing.assert_allclose(by_x, v @ jacobian["a"][0] + 2 * jacobian["b"][0][0])
    np.testing.assert_allclose(by_y, v @ jacobian["a"][1] + 2 * jacobian["b"][0][1])

    def g(x, y):
        return np.sum(x**3) * y

    (xx, xy), (yx, yy) = tidu.hessian(g, wrt=(0, 1))(X, 2.0)
    hx, hy = tidu.hvp(g)((X, 2.0), (v, dy))
    np.testing.assert_allclose(hx, xx @ v + xy * dy)
    np.testing.assert_allclose(hy, yx @ v + yy * dy)


def test_a_function_is_traced_once_for_a_kind_of_arguments_and_few_are_kept(monkeypatch):
    calls = []

    def f(x, n, mode="sum"):
        calls.append((n, mode))
        return getattr(np, mode)(x**n)

    gradient = tidu.grad(f)
    for x in (X, X + 1, X * 2):
        np.testing.assert_allclose(gradient(x, 3), 3 * x**2)
    assert calls == [(3, "sum")]
    gradient(X, 2), gradient(X.astype("f4"), 2), gradient(X[:2], 2), gradient(X, 2, mode="mean"), gradient(X, 2)
    assert len(calls) == 5
    assert gradient(X.astype("f4"), 2).dtype == np.float32
    assert repr(gradient) == "<grad of f by 0, traced for 5 kinds of arguments>"
    monkeypatch.setattr(derived, "KEPT", 2)
    gradient(X, 4), gradient(X, 5)
    assert "2 kinds" in repr(gradient)
    assert tidu.grad(lambda x, option: x * 2)(1.0, [object()]) == 2
    by_kind = tidu.grad(lambda x, option: x * (10 if isinstance(option, list) else 1) * (2 if option[0] is True else 3))
    assert [by_kind(1.0, option) for option in ([True], (True,), [1], (1,))] == [20, 2, 30, 3]


@dataclasses.dataclass
class Model:
    weight: np.ndarray
    rate: float
    name: str = "model"
    nothing: None = None


def test_dataclasses_constants_and_numbers_of_python():
    gradient = tidu.grad(lambda m, x: np.sum(m.weight * x) * m.rate)(Model(X, 2.0, "a"), X)
    assert gradient.weight.tolist() == (2 * X).tolist() and gradient.rate == pytest.approx(X @ X)
    assert gradient.name is None and gradient.nothing is None
    assert tidu.grad(lambda x: x**3)(2) == 12.0
    assert tidu.grad(lambda x, *rest: x * rest[1], wrt=2)(2.0, 3.0, 4.0) == 2.0
    assert tidu.grad(lambda x: x * tidu.stop_gradient(x))(3.0) == 3.0
    assert tidu.stop_gradient({"a": (1.0, X)})["a"][1] is X


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tidu.grad(lambda x: x)(X), "grad is of a function that returns one real number, and <lambda> returns f64[3]"),
        (lambda: tidu.hessian(lambda x: (x, x))(1.0), "returns f64[], f64[]; return a sum, or take the jacobian"),
        (lambda: tidu.grad(lambda x: 1.0 * x)(np.arange(3)), "argument 'x' is i64[3], which has no derivative"),
        (lambda: tidu.grad(lambda x: x, wrt=1)(2.0), "wrt=1: <lambda> is called without such an argument (arguments: x)"),
        (lambda: tidu.grad(loss, wrt="parms")(PARAMS, X), "wrt='parms': loss is called without such an argument; did you mean"),
        (lambda: tidu.grad(lambda x: 1.0)("text"), "grad by 'x', which has no array or number"),
        (lambda: tidu.grad(lambda x: x, output="y"), "grad of a function has no argument 'output' (it takes wrt, strong_zeros)"),
        (lambda: tidu.grad(lambda x: x, wrt=[]), "argument 'wrt' takes the number or name of an argument"),
        (lambda: tidu.grad(lambda x: x, wrt=True), "argument 'wrt' takes the number or name of an argument"),
        (lambda: tidu.grad(lambda x: x, 0, 1), "grad of a function takes wrt, strong_zeros by name"),
        (lambda: tidu.jvp(lambda x: x)(3.0, 1.0), "jvp takes the arguments of <lambda> as a tuple, such as (x,)"),
        (lambda: tidu.jvp(lambda x: x)((3.0,), (1.0, 2.0)), "jvp: 'tangents' holds 0, 1"),
        (lambda: tidu.jvp(lambda x: x)((X,), (X[:2],)), "expected f64[3], got f64[2]"),
        (lambda: tidu.vjp(lambda x: x)(3.0)[1]((1.0,)), "vjp: 'cotangents' is a tuple"),
        (lambda: tidu.grad(lambda x: undefined)(1.0), "NameError: name 'undefined' is not defined"),  # type: ignore[name-defined] # noqa: F821
        (lambda: tidu.jacobian(lambda x: x, forward=True, strong_zeros=True), "'strong_zeros' is of reverse mode"),
        (lambda: tidu.grad(dict), "argument 'document' takes a document, not a class"),
        (lambda: tidu.stop_gradient("text"), "stop_gradient takes arrays, also nested, not a value of type str"),
    ],
)
def test_misuse_is_told_in_a_line(call, says):
    with pytest.raises(TiduError, match=re.escape(says)) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_documents_and_what_is_compiled_are_called_as_functions():
    document = tidu.trace(lambda params, x: params["a"] * x + params["b"], {"a": "f64[]", "b": "f64[]"}, "f64[2]")
    params, x = {"a": 2.0, "b": 1.0}, [3.0, 4.0]
    for f in (document, tidu.compile(document)):
        for result in (f(params, x), f(params, x=x), f(x=x, params=params), f({"params.a": 2.0, "params.b": 1.0, "x": x})):
            assert result["y"].tolist() == [7.0, 9.0]
        with pytest.raises(ArgumentError, match=r"takes 2 inputs \(params, x\), not 3"):
            f(params, x, x)
        with pytest.raises(ArgumentError, match="input 'x' is given by position and by name"):
            f(params, x, x=x)
        assert len(f.inputs) == 3 and [str(key) for key in f.outputs] == ["y"]
    assert repr(
        tidu.compile(document)
    ) == "<Compiled <lambda>(params.a: f64[], params.b: f64[], x: f64[2]) -> y: f64[2], by numpy>".replace(
        "<lambda>", document.head.name
    )
    assert tidu.compile(tidu.formula("x**2"))(3.0) == tidu.formula("x**2")(3.0) == {"y": 9.0}


def test_copies_and_pickles_compute_the_same():
    """What was made for calls stays behind: an engine may hold locks and machine code."""
    gradient = tidu.grad(loss)
    due = gradient(PARAMS, X)
    for other in (copy.deepcopy(gradient), copy.copy(gradient), pickle.loads(pickle.dumps(gradient))):
        assert repr(other).endswith("traced for 0 kinds of arguments>") and repr(gradient).endswith("for 1 kind of arguments>")
        assert all((other(PARAMS, X)[name] == due[name]).all() for name in due)


def test_integers_beyond_all_floats_are_refused():
    with pytest.raises(ArgumentError, match=r"^argument 'x' is an integer larger than any float$"):
        tidu.grad(lambda x: x * x)(10**400)


NAMES = ["grad", "value_and_grad", "hessian", "jacobian", "jvp", "vjp", "hvp", "stop_gradient", "Document", "Compiled"]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_help_run(name):
    tests = doctest.DocTestFinder(recurse=False).find(getattr(tidu, name), name, globs={"tidu": tidu, "np": np})
    assert sum(len(test.examples) for test in tests)
    for test in tests:
        assert not doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed

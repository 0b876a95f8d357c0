"""An output of one element is one number, whatever axes it has: its derivatives are those of the number."""

from __future__ import annotations

import numpy as np
import pytest

import tidu_cli
from tidu_cli.errors import TransformError
from tidu_cli.graph.graph import Document

FORMULA = "sum(sin(x) * x[0])"
X = np.array([0.3, -1.2, 2.5])
SHAPES = [(1,), (1, 1), (1, 1, 1)]


def shaped(shape: tuple[int, ...], type_: str = "f64[3]") -> Document:
    return tidu_cli.formula(f"reshape({FORMULA}, {shape})" if shape else FORMULA, x=type_)


@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_are_those_of_the_number(shape: tuple[int, ...]) -> None:
    number, array = shaped(()), shaped(shape)
    values = tidu_cli.evaluate(tidu_cli.grad(array, "x", value=True), x=X)
    assert values["y"].shape == shape
    step = 1e-6 * np.eye(3)
    ys = [[tidu_cli.evaluate(array, x=X + sign * d)["y"].item() for d in step] for sign in (1, -1)]
    np.testing.assert_allclose(values["x@-1"], np.subtract(*ys) / 2e-6, rtol=1e-8)
    for derive, more in ((tidu_cli.grad, {}), (tidu_cli.hvp, {"x@2": np.ones(3)}), (tidu_cli.hessian, {})):
        expected = tidu_cli.evaluate(derive(number, "x"), {"x": X, **more})
        derived = tidu_cli.evaluate(derive(array, "x"), {"x": X, **more})
        assert list(derived) == list(expected)
        for key, value in expected.items():
            np.testing.assert_array_equal(derived[key], value)


@pytest.mark.parametrize("shape", SHAPES)
def test_its_cotangent_keeps_the_shape(shape: tuple[int, ...]) -> None:
    vjp = tidu_cli.vjp(shaped(shape, "f32[3]"), "x")
    assert [str(i.type) for i in vjp.head.inputs if str(i.key) == "y@-1"] == [f"f32[{','.join('1' for _ in shape)}]"]
    by_one = tidu_cli.evaluate(vjp, {"x": X.astype("f4"), "y@-1": np.ones(shape, "f4")})
    np.testing.assert_array_equal(
        tidu_cli.evaluate(tidu_cli.grad(shaped(shape, "f32[3]"), "x"), x=X.astype("f4"))["x@-1"], by_one["x@-1"]
    )


def test_more_numbers_are_refused_with_the_ways_out() -> None:
    boxes = tidu_cli.formula("boxes = reshape(concatenate([x, x]), (1, 2, 3000))", x="f32[3000]")
    with pytest.raises(TransformError) as refused:
        tidu_cli.grad(boxes, "x")
    assert str(refused.value) == (
        "a gradient is of one real number, and output 'boxes' is f32[1,2,3000]; compose a loss with it, such as "
        "compose(document, formula('sum(boxes)', boxes='f32[1,2,3000]')), or add sum=True for that one, "
        "or give a cotangent to vjp()"
    )
    loss = tidu_cli.compose(boxes, tidu_cli.formula("sum(boxes)", boxes="f32[1,2,3000]"))
    assert np.all(tidu_cli.evaluate(tidu_cli.grad(loss, "x"), x=np.ones(3000, "f4"))["x@-1"] == 2)


def test_the_way_out_is_by_position_where_a_name_is_none_of_a_formula() -> None:
    odd = tidu_cli.rename(tidu_cli.formula("2.0 * x", x="f64[3]"), keys={"y": "box/0"})
    with pytest.raises(TransformError, match=r"formula\('sum\(y\)', y='f64\[3\]'\).*, or take jacobian\(\)$"):
        tidu_cli.hessian(odd, "x")
    loss = tidu_cli.compose(odd, tidu_cli.formula("sum(y)", y="f64[3]"))
    assert tidu_cli.evaluate(tidu_cli.grad(loss, "x"), x=X)["x@-1"].tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(TransformError, match="output 'y' is f64\\[0\\]"):
        tidu_cli.grad(tidu_cli.formula("x + x", x="f64[0]"), "x")

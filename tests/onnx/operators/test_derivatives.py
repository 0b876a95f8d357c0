"""The check of operators' derivatives sees what is wrong."""

import numpy as np
import pytest

import tidu_cli as api
from tests.onnx.operators import derivatives
from tests.onnx.operators.derivatives import one_node, require_right

X = np.array([0.3, -0.7, 1.1], np.float32)
MODEL = one_node("Mul", {"x": X, "w": X + 1})


def test_right_derivatives_pass():
    require_right(MODEL, {"x": X, "w": X + 1})


@pytest.mark.parametrize(("name", "told"), [("jvp", "the JVP of y is off"), ("vjp", "<w, Jv> is")])
def test_wrong_derivatives_are_seen(monkeypatch, name, told):
    """The derivatives of x w in w alone, as those in both."""

    class Wrong:
        jvp, vjp, compile = staticmethod(api.jvp), staticmethod(api.vjp), staticmethod(api.compile)

    right = getattr(api, name)

    def in_one(document, wrt, outputs):
        derivative = right(document, wrt, outputs)
        zero = {"x@1": np.zeros(3)} if name == "jvp" else {"y@-1": np.ones(3)}
        return api.materialize(derivative, set=zero)

    setattr(Wrong, name, staticmethod(in_one))
    monkeypatch.setattr(derivatives, "api", Wrong)
    with pytest.raises(AssertionError, match=told):
        require_right(MODEL, {"x": X, "w": X + 1})


def test_one_side_of_a_kink_is_no_derivative():
    x = np.zeros(2, np.float32)
    with pytest.raises(AssertionError, match="is off"):
        require_right(one_node("LeakyRelu", {"x": x}, alpha=0.25), {"x": x})

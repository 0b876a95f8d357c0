"""Losses of classes of ONNX: labels are inputs, or known."""

import numpy as np
import pytest

import tidu_cli as api
from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.one_node import NEWEST, One, by_runtime, by_tidu, draw, dtypes, eps, require_agreement, require_equal
from tests.tiers import few
from tidu_cli.errors import TiduError

CLASSES = 5


def scores(dtype, *rest):
    return draw(np.random.default_rng(0), dtype, (3, CLASSES, *rest), special=False)


def labels(*rest, ignored=None, dtype="i8"):
    rng = np.random.default_rng(1)
    classes = rng.integers(0, CLASSES, (3, *rest))
    return (classes if ignored is None else np.where(rng.random(classes.shape) < 0.4, ignored, classes)).astype(dtype)


def weights(dtype):
    return (np.abs(draw(np.random.default_rng(2), "f4", (CLASSES,), special=False)) + 0.1).astype(dtype)


def one_of(op, dtype, rest, weighted, ignored, reduction, version):
    operands = [scores(dtype, *rest), labels(*rest, ignored=ignored), *([weights(dtype)] if weighted else [])]
    attrs = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
    return One(op, operands, attrs, version, 2 if op == "SoftmaxCrossEntropyLoss" else 1)


@pytest.mark.parametrize("op", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [None, 2, -1, 100])
def test_losses(op, reduction, weighted, ignored):
    for rest in few([(), (4,), (2, 3)], 1):
        one = one_of(op, "f4", rest, weighted, ignored, reduction, 13)
        if ignored == -1:  # to which the reference evaluator is blind
            require_equal(by_tidu(one), by_runtime(one), f"{one}", 1e-5, 1e-5)
        else:
            require_agreement(one, 1e-5, 1e-5)
    one = one_of(op, "f8", (2,), weighted, ignored, reduction, 12)
    require_right(one.model, one.given)
    for dtype in few(dtypes(op, 13), 2):
        one = one_of(op, dtype, (2,), weighted, ignored, reduction, 13)
        expected = [x.astype(dtype) for x in by_tidu(one_of(op, "f8", (2,), weighted, ignored, reduction, NEWEST))]
        require_equal(by_tidu(one), expected, f"{one}", 16 * eps(dtype), 16 * eps(dtype))


def test_scores_may_be_large():
    one = One("SoftmaxCrossEntropyLoss", [np.array([[1e4, 0.0]]), np.array([1])], {"reduction": "sum"})
    require_equal(by_tidu(one), [np.array(1e4)], "f8")


def test_the_gradient_is_the_softmax_less_the_labels():
    from tests.onnx.operators.node_tests import imported

    x, y = scores("f8"), labels(dtype="i4")
    one = One("SoftmaxCrossEntropyLoss", [x, y], {"reduction": "sum"})
    document = api.grad(imported(one.model, one.given).document, ["x0"], "y0")
    gradients = api.evaluate(document, {"x0": x, "x1": y})
    powers = np.exp(x)
    expected = powers / powers.sum(1, keepdims=True) - np.eye(CLASSES)[y]
    np.testing.assert_allclose(next(v for k, v in gradients.items() if "x0" in k), expected, rtol=1e-13, atol=1e-13)


def test_what_is_ignored_has_no_gradient_even_where_it_is_infinite():
    from tests.onnx.operators.node_tests import imported

    x, y = np.array([[-np.inf, -1.0], [-2.0, -3.0]]), np.array([0, 1])
    one = One("NegativeLogLikelihoodLoss", [x, y], {"ignore_index": 0})
    document = api.grad(imported(one.model, one.given).document, ["x0"], "y0")
    gradients = api.evaluate(document, {"x0": x, "x1": y})
    np.testing.assert_array_equal(next(v for k, v in gradients.items() if "x0" in k), [[0.0, 0.0], [0.0, -1.0]])


@pytest.mark.parametrize(("operands", "attrs", "text"), [
    ([scores("f4", 2), labels(3)], {}, r"labels of shape \[3, 3\] do not fit classes, axis 1, of shape \[3, 5, 2\]"),
    ([scores("f4"), labels(), np.ones(4, "f4")], {}, r"weights of shape \[4\] do not fit 5 classes"),
    ([scores("f4"), labels()], {"reduction": "total"}, "its reduction is 'total'"),
])  # fmt: skip
def test_what_does_not_fit(operands, attrs, text):
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        with pytest.raises(TiduError, match=rf"node 0 \({op}\): {text}"):
            by_tidu(One(op, operands, attrs))


def test_known_labels_are_classes():
    with pytest.raises(TiduError, match="index 5 is out of range"):
        by_tidu(One("NegativeLogLikelihoodLoss", [scores("f4"), np.array([0, 5, 1])]), fold=True)

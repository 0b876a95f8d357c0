"""The words in which an operation says where it has no derivative, or several, and by which convention it has one all the same.

A primitive's rule `kinks` is given this module, so that what only computes need not import it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.frozen import Frozen

Where = Callable[[Any, Any, Any, Any], Any]
"""From (numpy, attrs, operands, results) to a mask of the elements that are at a kink; or to a text, as a `SingularRule` gives."""


class Kink(Frozen):
    """A kink: `where` it is, what holds there, `at`, and the derivative of tidu and of others there; None is that of tidu.

    JAX's and PyTorch's are those of their functions of the same name; `onnx` is that of ONNX Runtime's training graphs, as ONNX
    itself has no derivatives, or of ONNX, where a value is chosen. Empty: there is none.
    """

    where: Where
    at: str = ""
    tidu: str = ""
    jax: str | None = None
    pytorch: str | None = None
    onnx: str | None = None

    @property
    def conventions(self) -> dict[str, str]:
        """The derivatives, by whose they are."""
        told = {"tidu": self.tidu, "jax": self.jax, "pytorch": self.pytorch, "onnx": self.onnx}
        return {name: self.tidu if text is None else text for name, text in told.items()}


def tie(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    """The two operands are equal."""
    return operands[0] == operands[1]


def whole(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    """The operand is an integer."""
    return operands[0] == np.floor(operands[0])


def at(*places: float, operand: int = 0) -> Where:
    """An operand is one of these numbers."""
    return lambda np, attrs, operands, results: np.isin(operands[operand], places)


def origin(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    """All operands are 0."""
    return (operands[0] == 0) & (operands[1] == 0)


def attained(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    """Several elements along the axes are the result; or are what is at the place that it says."""
    (x,), (y,) = operands, results
    y = np.expand_dims(y, attrs.axes)
    taken = x == (y if y.dtype == x.dtype else np.take_along_axis(x, y.astype(np.int64), attrs.axes[0]))
    return taken & (taken.sum(attrs.axes, keepdims=True) > 1)


def attained_again(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    """An element is equal to the extremum of those before it along the axis."""
    x, y = (np.moveaxis(each[0], attrs.axis, 0) for each in (operands, results))
    x, y = (each[::-1] if attrs.reverse else each for each in (x, y))
    again = np.concatenate([np.zeros_like(x[:1], bool), (x[1:] == y[1:]) & (y[:-1] == y[1:])])
    return np.moveaxis(again[::-1] if attrs.reverse else again, 0, attrs.axis)


def neighbours(np: Any, keys: Any, axis: int) -> Any:
    """Keys in order, of which some are equal: all that are equal to the one before."""
    same = np.logical_and.reduce([np.diff(np.moveaxis(key, axis, 0), axis=0) == 0 for key in keys])
    return np.moveaxis(np.concatenate([np.zeros_like(np.moveaxis(keys[0], axis, 0)[:1], bool), same]), 0, axis)

"""Tests of operators that the package onnx brings, with an axis of inputs open: read, and written, as those of fixed sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.onnx.operators.node_tests import array
from tidu_cli.adapters.numpy.arrays.array import name_of
from tidu_cli.adapters.onnx.contents import Choices, as_key
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.reading.node import NeedsValueError
from tidu_cli.api import evaluate
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.sizes.reading import parse_size
from tidu_cli.graph.types import TensorType


@dataclass
class Opened:
    """A test one axis of whose inputs of these names is open: the document, and inputs of a number of elements along it."""

    model: bytes
    document: Document
    constants: dict[str, Any]
    free: dict[str, Any]
    names: list[str]
    axis: int

    @property
    def number(self) -> int:
        """What the size is in the test."""
        return int(self.free[self.names[0]].shape[self.axis])

    def inputs(self, n: int) -> dict[str, Any]:
        """Inputs of n elements along the axis: those of the test, and these again."""
        return {name: _resized(x, n, self.axis) if name in self.names else x for name, x in self.free.items()}

    def fixed(self, given: dict[str, Any]) -> Document:
        """The document for inputs of these shapes. Raises TiduError."""
        types = {name: TensorType(name_of(x.dtype), x.shape) for name, x in given.items()}
        return import_model(loaded(self.model), Choices(types=types, values=self.constants)).document


def opened(case: Any, axis: int) -> Opened | None:
    """A test, opened along an axis as many elements as the first input has there. None where that is not read."""
    model = case.model.SerializeToString()
    given = dict(zip([i.name for i in case.model.graph.input], map(array, case.data_sets[0][0]), strict=False))
    constants = _constants(model, given)
    if constants is None:
        return None
    free = {name: x for name, x in given.items() if name not in constants}
    wide = [name for name, x in free.items() if x.ndim > axis and x.shape[axis] > 1]
    names = [name for name in wide if free[name].shape[axis] == free[wide[0]].shape[axis]]
    size = parse_size("N")
    types = {
        name: TensorType(name_of(x.dtype), tuple(size if name in names and k == axis else n for k, n in enumerate(x.shape)))
        for name, x in free.items()
    }
    try:
        document = import_model(loaded(model), Choices(types=types, values=constants)).document
    except TiduError:
        return None
    return Opened(model, document, constants, free, names, axis) if names else None


def _constants(model: bytes, given: dict[str, Any]) -> dict[str, Any] | None:
    """The inputs that have to be constants, None where the test is not read as it is."""
    constants: dict[str, Any] = {}
    while True:
        types = {name: TensorType(name_of(x.dtype), x.shape) for name, x in given.items() if name not in constants}
        try:
            import_model(loaded(model), Choices(types=types, values=constants))
            return constants
        except NeedsValueError as error:
            more = {name: given[name] for name in error.inputs if name not in constants and name in given}
            if not more:
                return None
            constants.update(more)
        except TiduError:
            return None


def _resized(x: Any, n: int, axis: int) -> Any:
    return np.take(np.concatenate([x] * -(-n // x.shape[axis]), axis), range(n), axis)


def values_of(document: Document, given: dict[str, Any]) -> dict[str, Any]:
    """What a document gives for inputs by the names that they have in the model."""
    return evaluate(document, {str(as_key(name)): x for name, x in given.items() if as_key(name) in document.inputs})


def require_same(found: dict[str, Any], due: dict[str, Any], what: str, rtol: float = 1e-5) -> None:
    """Raises AssertionError unless dtypes, shapes and values agree, but for the rounding of sums in another order."""
    for key, y in due.items():
        x, y = np.asarray(found[key]), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{what}, {key}: {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        x, y = (v.astype("f8") if v.dtype.kind in "fV" else v for v in (x, y))
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol, rtol, err_msg=f"{what}, {key}")
        else:
            np.testing.assert_array_equal(x, y, err_msg=f"{what}, {key}")

"""The tests of operators that the package onnx brings, and what becomes of them here.

`python -m tests.onnx.operators.node_tests [PATTERN]` prints the outcome of each whose name has the pattern, and how many there are
of a kind.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx

from tidu_cli.adapters.numpy.arrays.array import dtype_of
from tidu_cli.adapters.onnx.contents import Choices, as_key
from tidu_cli.adapters.onnx.loading import HELD, array_of, loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.reading.node import NeedsValueError
from tidu_cli.api import evaluate
from tidu_cli.errors import TiduError
from tidu_cli.port_data import Imported


@dataclass(frozen=True)
class Outcome:
    """`kind` is passed, refused, wrong or broken (an exception that is none of tidu's); `text` says why."""

    kind: str
    text: str = ""


@cache
def modules() -> list[str]:
    """The modules of the package that define tests, about one for each operator."""
    from onnx.backend.test.case import node

    return [module.name for module in pkgutil.walk_packages(node.__path__, f"{node.__name__}.") if not module.ispkg]


@cache
def cases_of(module: str) -> dict[str, Any]:
    """The tests of a module by name: each has a model, and data sets of inputs and outputs. They are made when it is imported."""
    from onnx.backend.test.case import node

    before = len(node._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(module)
    return {case.name: case for case in node._NodeTestCases[before:]}


def cases() -> dict[str, Any]:
    """All tests by name."""
    return {name: case for module in modules() for name, case in cases_of(module).items()}


def has_tensors_only(case: Any) -> bool:
    """Whether all inputs and outputs of a test are tensors of numbers."""
    values = [*case.model.graph.input, *case.model.graph.output]
    return all(v.type.WhichOneof("value") == "tensor_type" and v.type.tensor_type.elem_type != 8 for v in values)


def imported(model: Any, given: dict[str, Any], cast: str | None = None) -> Imported:
    """The document of a model; the values of inputs that sizes depend on are constants of it. Raises TiduError."""
    values: dict[str, Any] = {}
    types = {i.name: i.type.tensor_type for i in model.graph.input}
    open_ = {name for name, t in types.items() if not t.HasField("shape") or not all(d.HasField("dim_value") for d in t.shape.dim)}
    while True:
        shapes = {name: _type(given[name], cast) for name in open_ - set(values) if name in given}
        try:
            return import_model(model, Choices(types=shapes, values=values, cast=cast))
        except NeedsValueError as error:
            more = {name: given[name] for name in error.inputs if name not in values and name in given}
            if not more:
                raise
            values.update(more)


def _type(x: Any, cast: str | None) -> Any:
    from tidu_cli.adapters.numpy.arrays.array import name_of
    from tidu_cli.graph.types import FLOATS, TensorType

    dtype = name_of(np.asarray(x).dtype)
    return TensorType(cast if cast and dtype in FLOATS else dtype, np.shape(x))


def outcome(case: Any) -> Outcome:
    """What becomes of a test."""
    model = loaded(case.model.SerializeToString())
    names = [i.name for i in model.graph.input]
    for inputs, expected in case.data_sets:
        given = dict(zip(names, map(array, inputs), strict=False))
        try:
            document = imported(model, given).document
            values = {str(as_key(name)): x for name, x in given.items() if as_key(name) in document.inputs}
            outputs = evaluate(document, values)
        except TiduError as error:
            return Outcome("refused", str(error))
        for declared, x in zip(model.graph.output, map(array, expected), strict=True):
            y = np.asarray(outputs[str(as_key(declared.name))])
            if y.dtype != x.dtype or y.shape != x.shape:
                return Outcome("wrong", f"{declared.name}: {y.dtype}{list(y.shape)}, not {x.dtype}{list(x.shape)}")
            rtol = max(case.rtol, 2**-6) if y.dtype.name == "bfloat16" else case.rtol  # as the package's runner has it
            try:
                np.testing.assert_allclose(*(v.astype("f4") if v.dtype.name == "bfloat16" else v for v in (y, x)), rtol, case.atol)
            except AssertionError as error:
                return Outcome("wrong", f"{declared.name}: " + " ".join(str(error).split())[:300])
    return Outcome("passed")


def array(x: Any) -> Any:
    """A value of a data set as NumPy's array, of the dtype that holds the numbers of those with 2, 4 or 8 bits."""
    if isinstance(x, onnx.TensorProto):
        return array_of(x)
    array = np.asarray(x)
    code = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return array.astype(dtype_of(HELD[code][1])) if code in HELD else array


def main(pattern: str = "") -> None:
    """Print the outcomes."""
    kinds: Counter[str] = Counter()
    for name, case in cases().items():
        if re.search(pattern, name) and has_tensors_only(case):
            try:
                verdict = outcome(case)
            except Exception as error:
                verdict = Outcome("broken", f"{type(error).__name__}: {error}")
            kinds[verdict.kind] += 1
            if verdict.kind != "passed":
                print(f"{verdict.kind:8} {name}: {verdict.text[:250]}")
    print(dict(kinds), f"onnx {onnx.__version__}")


if __name__ == "__main__":
    main(*sys.argv[1:])

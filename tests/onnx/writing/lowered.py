"""Cases of primitives as models, and what tidu, onnx's reference evaluator and onnxruntime make of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tidu_cli.adapters.onnx.writing.model import onnx_model
from tidu_cli.api import evaluate
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand, one_node_document, with_diagonal
from tidu_cli.graph.graph import Case
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.recipes.special_function import Recipe
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Example

ROUNDING = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""The rounding that results may differ by, relative to numbers above 1: some units in the last place, of sums of some terms."""

OTHERS = ("c64", "c128", "datetime", "duration")
"""Dtypes that ONNX has not got."""


LONG = frozenset(p.name for p in BUILTIN if isinstance(p.evaluation.definition, Recipe))
"""Primitives whose recipes take programs long; `tests/lax/special/test_definitions.py` tries them at many points."""


def case(op: str, attrs: Mapping[str, Any], *types: str) -> Case:
    """A primary case."""
    return BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, [parse_value_type(t, BUILTIN.records) for t in types])


def told(given: Case) -> str:
    """The case in a line."""
    return f"{given.op}({', '.join(map(str, given.operands))}) {given.attrs.to_data(binary=True) or ''}"


def foreign(given: Case) -> bool:
    """Whether a case has operands or results that are no arrays of dtypes that ONNX has."""
    types = [*given.operands, *given.results]
    return any(isinstance(t, RecordType) or str(t).startswith(OTHERS) for t in types)


def dtypes(given: Case) -> set[str]:
    """The dtypes of operands and results."""
    return {t.dtype for t in (*given.operands, *given.results) if isinstance(t, TensorType)}


def examples(op: str) -> list[tuple[Example, Case]]:
    """The catalogue's examples of a primitive."""
    return list(example_cases(BUILTIN, BUILTIN[op]))


def point(example: Example, given: Case) -> list[Any]:
    """Operands of an example, drawn anew for each but always the same."""
    rng = np.random.default_rng(sum(map(ord, told(given))))
    return [
        with_diagonal(draw(rng, t, of_operand(example.within, k)), of_operand(example.diagonals, k))
        for k, t in enumerate(given.operands)
    ]


def drawn(given: Case, values: Mapping[int, Any]) -> list[Any]:
    """Operands with these values, flat, by their number; the others are drawn."""
    rng = np.random.default_rng(len(told(given)))
    operands = []
    for k, t in enumerate(given.operands):
        assert isinstance(t, TensorType)
        if k in values:
            with warnings.catch_warnings(action="ignore"):
                operands.append(np.resize(np.asarray(values[k]).astype(numpy_dtype(np, t.dtype)), t.shape))
        else:
            operands.append(draw(rng, t, (-3.0, 3.0)))
    return operands


def checked_model(given: Case) -> Any:
    """The model of a case, which the checker takes, with its types. Raises NoMeaningError."""
    model = onnx_model(one_node_document(given))
    onnx.checker.check_model(model, full_check=True)
    return model


def by_tidu(given: Case, operands: list[Any]) -> list[Any]:
    """What tidu computes."""
    values = evaluate(one_node_document(given), {f"x{k}": x for k, x in enumerate(operands)})
    return [np.asarray(values[f"y{k}"]) for k in range(len(given.results))]


def by_reference(model: Any, operands: list[Any]) -> list[Any]:
    """What the reference evaluator computes."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, {f"x{k}": x for k, x in enumerate(operands)})]


def by_runtime(model: Any, operands: list[Any]) -> list[Any]:
    """What onnxruntime computes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {f"x{k}": x for k, x in enumerate(operands)}))


def difference(results: list[Any], due: list[Any], relative: bool = False) -> str:
    """What differs by more than rounding, "" if nothing does. Relative to the numbers themselves, if so, also below 1."""
    for k, (y, expected) in enumerate(zip(results, due, strict=True)):
        if (y.dtype, y.shape) != (expected.dtype, expected.shape):
            return f"result {k} is {y.dtype}{y.shape}, not {expected.dtype}{expected.shape}"
        rounding = ROUNDING.get(y.dtype.name)
        if rounding is None:
            same = y == expected
        else:
            least = {"float16": 6e-8}.get(y.dtype.name, float(np.finfo(np.float32).tiny)) if relative else rounding
            wide, due_wide = y.astype(np.float64), expected.astype(np.float64)
            same = np.isclose(wide, due_wide, rounding, least, equal_nan=True)
        if not np.all(same):
            at = int(np.argmin(same))
            return f"result {k} at {at}: {y.ravel()[at]}, not {expected.ravel()[at]} ({int(np.sum(~same))} of {same.size})"
    return ""

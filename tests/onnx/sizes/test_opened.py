"""The tests of operators that the package onnx brings, opened: what is read is what fixed sizes give, and so is what is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidu_cli as api
from tests.onnx.operators.evaluators import by_runtime
from tests.onnx.operators.node_tests import cases_of, has_tensors_only, modules
from tests.onnx.sizes.opened import opened, require_same, values_of
from tests.tiers import few
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import FLOATS

NUMBERS = (1, 2, 3, 7)


def some_of(module: str) -> list[Any]:
    cases = [case for case in cases_of(module).values() if has_tensors_only(case)]
    return few([case for case in cases if not case.name.endswith(("_expanded", "_expanded_ver18"))], 3)


@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("module", modules())
def test_what_is_read_is_what_fixed_sizes_give(module: str, axis: int) -> None:
    for case in some_of(module):
        model = opened(case, axis)
        for n in (model.number, *NUMBERS) if model else ():
            given = model.inputs(n)
            try:
                fixed = model.fixed(given)
            except TiduError:  # sizes that the operator does not take
                continue
            try:
                found = values_of(model.document, given)
            except TiduError as error:
                if n == model.number or "is at" not in str(error):  # beyond the bounds that the operator needs
                    raise
                continue
            require_same(found, values_of(fixed, given), f"{case.name}, {n}", 2e-2 if "16" in case.name else 1e-5)


@pytest.mark.parametrize("module", modules())
def test_what_is_written_is_what_is_evaluated(module: str) -> None:
    """Values, and the cotangents of all inputs of floats."""
    for case in some_of(module):
        model = opened(case, 0)
        for document in _derived(model.document) if model and "16" not in case.name else ():
            try:
                data = onnx_bytes(document)
            except TiduError as error:
                if "size={'N': 32} in load or specialize" not in str(error) and "ONNX" not in str(error):
                    raise
                continue
            rng = np.random.default_rng(0)
            for n in (model.number, 1, 3):
                given = model.inputs(n)
                for i in document.inputs.values():
                    if i.key.path:
                        shape = [n if str(size) == "N" else size for size in i.type.shape]
                        if not all(isinstance(size, int) for size in shape):
                            break
                        given[str(i.key)] = rng.standard_normal(shape).astype("f4" if i.type.dtype == "f32" else "f8")
                else:
                    _require_written(case.name, document, data, given)


def _derived(document: Any) -> list[Any]:
    floats = [str(i.key) for i in document.head.inputs if i.type.dtype in FLOATS]
    outputs = [str(o.key) for o in document.head.outputs if o.type.dtype in FLOATS]
    try:
        return [document, api.vjp(document, floats, outputs[0])] if floats and outputs else [document]
    except TiduError:
        return [document]


def _require_written(name: str, document: Any, data: bytes, given: dict[str, Any]) -> None:
    try:
        due = values_of(document, given)
    except TiduError:  # of a size beyond the bounds that the operator needs
        return
    try:
        found = by_runtime(data, given)
    except Exception as error:  # each runtime has its own
        if not any(told in str(error) for told in ("NOT_IMPLEMENTED", "bfloat16", "Numpy_type")):
            raise
        return
    require_same(found, due, name, 1e-3)

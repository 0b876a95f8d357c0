"""A module that tidu wrote, and that is no document by its claims any more, is read operation by operation: to the same values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.graphs.templates import apply
from tests.stablehlo.claims.test_values import NEAR, require_close
from tests.stablehlo.claims.written import document_of, in_this_process, is_written, some
from tests.stablehlo.modules import main, of_text
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.evaluate import evaluate

REFUSED = {
    "stablehlo.scatter": ("scatter-sub", "scatter-max", "scatter-min"),
    "stablehlo.reduce_window": (
        "cumlogsumexp",
        "cumprod",
        "reduce_window_max",
        "reduce_window_min",
        "select_and_gather_add",
        "select_and_scatter_add",
    ),
    "stablehlo.custom_call": ("qr",),
}
"""Primitives that are written with forms of operations that are not read, some of them only in some dtypes."""


@pytest.fixture(autouse=True)
def _parsed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidu_cli.adapters.stablehlo.files.parsed", in_this_process)


@pytest.mark.parametrize("op", [p.name for p in BUILTIN])
def test_examples_have_the_same_values(op: str) -> None:
    rng = np.random.default_rng(0)
    examples = (
        (example, case)
        for example, case in example_cases(BUILTIN, BUILTIN[op])
        if all(isinstance(t, TensorType) and t.dtype in ("f64", "bool", "i32") for t in (*case.operands, *case.results))
    )
    for example, case in some(examples, 1):
        require_values(case, [np.asarray(draw(rng, t, of_operand(example.within, k))) for k, t in enumerate(case.operands)])


def require_values(case: Case, operands: list[Any]) -> None:
    """Raises AssertionError unless what is read of a case's module has the values of the case."""
    if not is_written(case):
        return
    text = format_document(document_of([case]), "mlir").decode()
    unclaimed = re.sub(r' attributes \{tidu\.checksum = "[^"]*", tidu\.document = "[^"]*"\}', "", text, count=1)
    assert "tidu.document" not in unclaimed
    try:
        document, _ = parse_document(unclaimed.encode(), "f.mlir")
    except DocumentError as error:
        if any(operation in str(error) and case.op in ops for operation, ops in REFUSED.items()):
            return
        raise
    values = evaluate(document.head, {i.key: x for i, x in zip(document.head.inputs, operands, strict=True)})
    for output, expected in zip(document.head.outputs, apply(case, operands), strict=True):
        units = max(256, NEAR.get(case.op, (0, ""))[0])
        require_close(np.asarray(values[output.key]), np.asarray(expected), units, str(case)[:400])


def test_numbers_that_stand_elsewhere_in_the_file_are_refused() -> None:
    body = "%c = stablehlo.constant dense_resource<blob> : tensor<2xf64>\nreturn %c : tensor<2xf64>"
    with pytest.raises(DocumentError, match=r"stablehlo.constant.*: has an array in a form that is not read, dense_resource<blob>"):
        of_text(main("%x: tensor<2xf64>", "tensor<2xf64>", body))

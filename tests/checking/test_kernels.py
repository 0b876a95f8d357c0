"""What kernels compute, against types, definitions and batches: each fault is seen by the one that it breaks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.checking.sets import changed
from tidu_cli.checking.numeric.exact_laws import kernel_verdicts
from tidu_cli.checking.report import check_primitive
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.terms import op

exp, sin = op("exp"), op("sin")


@pytest.mark.parametrize("primitive", list(BUILTIN), ids=lambda p: p.name)
def test_built_in_ones(primitive):
    verdicts = kernel_verdicts(primitive, BUILTIN, {"f64", "c128"})
    assert [(v.law, v.error) for v in verdicts if not v.ok] == []
    assert primitive.evaluation.definition is None or "definition" in {v.law for v in verdicts}


@pytest.mark.parametrize(
    ("law", "fault"),
    [
        ("types", {"kernel": lambda np_, attrs, operands, results: lambda x: np.sinh(x).astype(np.longdouble)}),
        ("definition", {"definition": lambda attrs, operands: [sin(operands[0])]}),
        ("batch", {"batch": lambda node: [sin(node.operands[0])]}),
    ],
)
def test_a_fault_is_seen(law, fault):
    right = {"definition": lambda attrs, operands: [(exp(operands[0]) - exp(-operands[0])) * 0.5]}
    for told, due in ((right, set()), (right | fault, {law})):
        primitives = changed("sinh", **told)
        verdicts = kernel_verdicts(primitives["sinh"], primitives, {"f64"})
        assert {v.law for v in verdicts} == {"types", "definition", "batch"}
        assert {v.law for v in verdicts if not v.ok} == due
    report = check_primitive(primitives["sinh"], primitives, ["numeric"], dtypes=["f64"])
    assert any(f"numeric: {law} has relative error" in failure for failure in report.failures)
